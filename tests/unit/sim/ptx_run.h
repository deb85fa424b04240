// SPDX-License-Identifier: Apache-2.0
// Running small PTX kernels in tests: parameters from values and pointers, memory from vectors.
#pragma once

#include "fmt/format.h"
#include "sim/simulator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

namespace jitgemm::sim {

// A target that has what the body uses.
inline const char* target_for(const std::string& body) {
  if (body.find("wgmma.") != std::string::npos) return "sm_90a";
  if (body.find("tcgen05.ld.red") != std::string::npos) return "sm_103a";
  const bool warp_kinds = body.find("mma.sync") != std::string::npos ||
                          body.find("mma.sp::ordered_metadata") != std::string::npos;
  return warp_kinds && body.find(".kind::") != std::string::npos ? "sm_120a" : "sm_100a";
}

// A module around the body of one entry `k`. Registers of every kind are declared in plenty.
inline std::string kernel_text(const std::string& parameters, const std::string& body,
                               const std::string& globals = "") {
  return std::string(".version 8.6\n.target ") + target_for(body) + "\n.address_size 64\n" +
         globals + "\n.visible .entry k(" + parameters +
         ")\n{\n.reg .pred %p<20>;\n.reg .b16 %h<20>;\n.reg .b32 %r<60>;\n.reg .b64 %rd<40>;\n.reg "
         ".f32 %f<40>;\n.reg .f64 %fd<20>;\n" +
         body + "\n}\n";
}

// The names of all faults that Runner has seen reported in this process.
inline std::set<std::string>& reported_faults() {
  static std::set<std::string> names;
  return names;
}

class Runner {
 public:
  explicit Runner(std::string text) : text_(std::move(text)) {
    launch.entry = "k";
    options.strict = true;
  }

  template <typename T>
  Runner& value(T v) {
    static_assert(std::is_trivially_copyable_v<T>);
    const size_t at = (parameters_.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    parameters_.resize(at + sizeof(T));
    std::memcpy(parameters_.data() + at, &v, sizeof(T));
    return *this;
  }
  template <typename T>
  Runner& buffer(std::vector<T>& v, bool initialised = true, bool writable = true) {
    launch.memory.push_back({v.data(), v.size() * sizeof(T), true, writable, initialised});
    return value(static_cast<const void*>(v.data()));
  }
  Runner& grid(uint32_t x, uint32_t block, uint32_t cluster = 1) {
    launch.grid = {x, 1, 1};
    launch.block = {block, 1, 1};
    launch.cluster = {cluster, 1, 1};
    return *this;
  }
  Result<Report> run() {
    Result<Program> program = Program::load(text_);
    if (!program) return program.error();
    return run(*program);
  }
  Result<Report> run(const Program& program) {
    launch.parameters = parameters_;
    Result<Report> report = sim::run(program, launch, options);
    if (!report) {
      const std::string& text = report.error().message();
      reported_faults().insert(text.substr(0, text.find('\n')));
    }
    return report;
  }
  // The message of the fault, or "" after a clean run, or the error's text with its name.
  std::string outcome() {
    const Result<Report> r = run();
    if (r) return "";
    return r.error().code() == StatusCode::kSimulatorFault ? r.error().message()
                                                           : r.error().to_string();
  }

  Launch launch;
  Options options;

 private:
  std::string text_;
  std::vector<std::byte> parameters_;
};

inline void expect_clean(Runner& runner) {
  const Result<Report> r = runner.run();
  EXPECT_TRUE(r.has_value()) << (r ? "" : r.error().to_string());
}

}  // namespace jitgemm::sim
