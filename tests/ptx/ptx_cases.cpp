// SPDX-License-Identifier: Apache-2.0
// The command over tests/ptx/cases:
//   ptx_cases coverage CASES RECORDS PAGE [--check]   write the coverage page, or say if it is out
//   of date ptx_cases confirm CASES RECORDS COMMIT DATE       run every case on the GPU, write the
//   records ptx_cases worker CASES FIRST STEP                 what confirm starts: some of the
//   cases, one process
// A case that hangs or breaks the device costs its process and nothing else: confirm notes it and
// starts another at the next case.
#include "ptx/confirmations.h"
#include "ptx/coverage_page.h"
#include "ptx/gpu_cases.h"
#include "ptx/instruction_cases.h"
#include "support/filesystem.h"
#include "support/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <poll.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace jitgemm::ptx_cases {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kCaseTimeout = std::chrono::seconds(5);
constexpr auto kStartTimeout = std::chrono::seconds(30);  // of the driver and its context
constexpr auto kTotalTimeout = std::chrono::seconds(60);  // of a GPU on which all goes wrong
constexpr size_t kMaxWorkers = 8;

// One case on both machines.
Confirmation judge(const Case& c, GpuCases& gpu) {
  Confirmation record;
  record.place = c.place();
  record.digest = case_digest(c, kGpuTarget);
  record.gpu = gpu.gpu();
  record.driver = gpu.driver();
  const GpuOutcome outcome = gpu.run(c);
  record.message = outcome.message;
  if (outcome.kind != GpuOutcome::Kind::kRan) {
    record.result = outcome.kind == GpuOutcome::Kind::kRefused ? "refused" : "failed";
    return record;
  }
  record.result = "differs";
  const auto program = sim::Program::load(case_text(c, kGpuTarget));
  if (!program) {
    record.message = "the simulator does not load it: " + program.error().message();
    return record;
  }
  sim::Options options;
  options.numerics = sim::Numerics::kHopper;
  Sha256 output;
  double distance = 0;
  for (size_t i = 0; i < c.runs.size(); ++i) {
    const CaseBytes& found = outcome.left[i];
    if (std::string text = difference(c, c.runs[i], found); !text.empty()) {
      record.message = fmt::format("run {}: on the GPU {}", i, text);
      return record;
    }
    CaseBytes simulated = initial_bytes(c, c.runs[i]);
    if (const auto report = run_on_simulator(c, *program, options, simulated); !report) {
      record.message = fmt::format("run {}: on the simulator {}", i, report.error().message());
      return record;
    }
    if (comparable_bytes(c, found) != comparable_bytes(c, simulated)) {
      record.message = fmt::format("run {}: bytes that the case does not name differ", i);
      return record;
    }
    output.update(comparable_bytes(c, found));
    distance = std::max(distance, greatest_distance(c, c.runs[i], found));
  }
  record.result = "confirmed";
  if (c.within != 0)
    record.message =
        fmt::format("at most {:.1f} * 2^-{} away", std::ldexp(distance, c.within), c.within);
  record.output = to_hex(output.finish());
  return record;
}

int worker(const std::vector<Case>& cases, size_t first, size_t step) {
  Result<GpuCases> gpu = GpuCases::open();
  if (!gpu) {
    std::printf("error %s\n", gpu.error().to_string().c_str());
    return 1;
  }
  for (size_t i = first; i < cases.size(); i += step) {
    std::printf("begin %zu\n", i);
    std::fflush(stdout);
    const Confirmation record = judge(cases[i], *gpu);
    std::printf("end %s\n", to_line(record).c_str());
    std::fflush(stdout);
    if (record.result == "failed")
      std::_Exit(3);  // the context may be lost; leave no destructor to wait
  }
  std::printf("done\n");
  std::fflush(stdout);
  std::_Exit(0);
}

// One running worker process and what it has said.
struct Process {
  pid_t pid = -1;
  int pipe = -1;
  std::string text;  // not yet a whole line
  size_t first = 0;  // the case that it began with, or is at
  bool in_case = false;
  bool leaves = false;  // it has said that it ends itself
  Clock::time_point deadline;
};

class Confirmer {
 public:
  Confirmer(const std::vector<Case>& cases, std::string folder)
      : cases_(cases),
        folder_(std::move(folder)),
        workers_(std::clamp<size_t>(std::thread::hardware_concurrency() / 2, 1, kMaxWorkers)) {}

  // False: no case could be run at all; the reason was printed.
  bool run(Confirmations& records) {
    records_ = &records;
    for (size_t i = 0; i < workers_ && i < cases_.size(); ++i) start(i);
    const Clock::time_point last = Clock::now() + kTotalTimeout;
    while (!processes_.empty() && !hopeless_ && Clock::now() < last) {
      std::vector<pollfd> polls;
      for (const Process& p : processes_) polls.push_back({p.pipe, POLLIN, 0});
      ::poll(polls.data(), polls.size(), 100);
      // From the back, since a process that has ended is taken out.
      for (size_t i = processes_.size(); i-- > 0;) {
        if (polls[i].revents != 0) {
          read(i);
        } else if (Clock::now() > processes_[i].deadline) {
          end(i, processes_[i].in_case ? "it did not end in time"
                                       : "the driver did not answer in time");
        }
      }
    }
    for (size_t i = processes_.size(); i-- > 0;) stop(i);
    return !hopeless_;
  }

 private:
  void start(size_t first) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      hopeless_ = true;
      return;
    }
    const std::string index = std::to_string(first), step = std::to_string(workers_);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::execl("/proc/self/exe", "ptx_cases", "worker", folder_.c_str(), index.c_str(), step.c_str(),
              static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(ends[1]);
    Process p;
    p.pid = pid;
    p.pipe = ends[0];
    p.first = first;
    p.deadline = Clock::now() + kStartTimeout;
    processes_.push_back(std::move(p));
  }

  void stop(size_t i) {
    Process& p = processes_[i];
    ::kill(p.pid, SIGKILL);
    ::waitpid(p.pid, nullptr, 0);
    ::close(p.pipe);
    processes_.erase(processes_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  // The process is over, or must be: its case failed, and another process goes on behind it.
  void end(size_t i, const std::string& why) {
    const bool in_case = processes_[i].in_case, leaves = processes_[i].leaves;
    const size_t at = processes_[i].first;
    stop(i);
    if (in_case) {
      Confirmation record;
      record.place = cases_[at].place();
      record.digest = case_digest(cases_[at], kGpuTarget);
      record.result = "failed";
      record.message = why;
      add(std::move(record));
    } else if (!leaves && ++starts_without_case_ > workers_) {
      std::fprintf(stderr, "ptx_cases: %s\n", why.c_str());
      hopeless_ = true;
      return;
    }
    const size_t next = in_case ? at + workers_ : at;
    if (next < cases_.size()) start(next);
  }

  void read(size_t i) {
    char buffer[4096];
    const ssize_t got = ::read(processes_[i].pipe, buffer, sizeof(buffer));
    if (got <= 0) {
      end(i, "its process ended");
      return;
    }
    Process& p = processes_[i];
    p.text.append(buffer, static_cast<size_t>(got));
    for (size_t newline; (newline = p.text.find('\n')) != std::string::npos;) {
      const std::string line = p.text.substr(0, newline);
      p.text.erase(0, newline + 1);
      if (!take(p, line)) {
        stop(i);
        return;
      }
    }
  }

  // False when the process has nothing more to say.
  bool take(Process& p, const std::string& line) {
    if (line.starts_with("begin ")) {
      p.first = std::stoul(line.substr(6));
      p.in_case = true;
      p.deadline = Clock::now() + kCaseTimeout;
    } else if (line.starts_with("end ")) {
      Result<Confirmation> record = from_line(std::string_view(line).substr(4));
      const bool failed = !record || record->result == "failed";
      if (record) add(std::move(*record));
      p.in_case = false;
      p.first += workers_;
      p.deadline = Clock::now() + kStartTimeout;
      p.leaves = failed;
    } else if (line.starts_with("error ")) {
      std::fprintf(stderr, "ptx_cases: %s\n", line.c_str() + 6);
      hopeless_ = true;
      return false;
    } else if (line == "done") {
      return false;
    }
    return true;
  }

  void add(Confirmation record) { (*records_)[record.digest] = std::move(record); }

  const std::vector<Case>& cases_;
  std::string folder_;
  size_t workers_;
  std::vector<Process> processes_;
  size_t starts_without_case_ = 0;
  bool hopeless_ = false;
  Confirmations* records_ = nullptr;
};

int confirm(const std::string& folder, const std::string& path, const std::string& commit,
            const std::string& date) {
  const std::vector<Case> cases = read_cases(folder);
  Confirmations records;
  if (!Confirmer(cases, folder).run(records)) return 1;
  std::map<std::string, size_t> results;
  std::string gpu, driver;
  for (const auto& [digest, record] : records) {
    if (!record.gpu.empty()) gpu = record.gpu;
    if (!record.driver.empty()) driver = record.driver;
  }
  for (auto& [digest, record] : records) {
    record.gpu = gpu;
    record.driver = driver;
    record.commit = commit;
    record.date = date;
    ++results[record.result];
    if (record.result == "differs" || record.result == "failed") {
      std::printf("%s: %s: %s\n", record.place.c_str(), record.result.c_str(),
                  record.message.c_str());
    }
  }
  for (const auto& [result, count] : results) std::printf("%zu %s\n", count, result.c_str());
  if (const Status s = write_confirmations(path, records); !s.ok()) {
    std::fprintf(stderr, "ptx_cases: %s\n", s.to_string().c_str());
    return 1;
  }
  for (const Case& c : cases) {
    if (!records.contains(case_digest(c, kGpuTarget))) {
      std::printf("%s: nothing was found out\n", c.place().c_str());
      ++results["failed"];
    }
  }
  return results["differs"] + results["failed"] == 0 ? 0 : 1;
}

int coverage(const std::string& folder, const std::string& records_path,
             const std::string& page_path, bool check) {
  const Result<Confirmations> records = read_confirmations(records_path);
  if (!records) {
    std::fprintf(stderr, "ptx_cases: %s\n", records.error().to_string().c_str());
    return 1;
  }
  const Result<std::string> page = coverage_page(read_cases(folder), *records);
  if (!page) {
    std::fprintf(stderr, "ptx_cases: %s\n", page.error().to_string().c_str());
    return 1;
  }
  if (!check) return write_file(page_path, *page).ok() ? 0 : 1;
  const Result<std::string> found = read_file(page_path);
  if (found && *found == *page) return 0;
  std::fprintf(stderr, "%s is out of date: run ptx_cases coverage %s %s %s\n", page_path.c_str(),
               folder.c_str(), records_path.c_str(), page_path.c_str());
  return 1;
}

int usage() {
  std::fprintf(stderr,
               "usage: ptx_cases coverage CASES RECORDS PAGE [--check]\n"
               "       ptx_cases confirm CASES RECORDS COMMIT DATE\n");
  return 2;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return usage();
  const std::string& verb = arguments[0];
  if (verb == "coverage" && (arguments.size() == 4 || arguments.size() == 5)) {
    const bool check = arguments.size() == 5;
    if (check && arguments[4] != "--check") return usage();
    return coverage(arguments[1], arguments[2], arguments[3], check);
  }
  if (verb == "confirm" && arguments.size() == 5) {
    return confirm(arguments[1], arguments[2], arguments[3], arguments[4]);
  }
  if (verb == "worker" && arguments.size() == 4) {
    return worker(read_cases(arguments[1]), std::stoul(arguments[2]), std::stoul(arguments[3]));
  }
  return usage();
}

}  // namespace
}  // namespace jitgemm::ptx_cases

int main(int argc, char** argv) {
  return jitgemm::ptx_cases::run({argv + 1, argv + argc});
}
