// SPDX-License-Identifier: Apache-2.0
// Runs launches of one PTX module on the simulator as a description says: allocates and fills
// buffers, lays parameters out, launches in sequence, writes and compares results. The kernel can
// touch the buffers, its module's variables and nothing else of the process. It knows no kernel.
//
//   JITGEMM_ASSIGN(RunDescription description, parse_launch_json(json));
//   JITGEMM_ASSIGN(KernelRun run, KernelRun::create(ptx, std::move(description), folder));
//   JITGEMM_ASSIGN(RunReport report, run.run());
#pragma once

#include "simrun/launch_description.h"
#include "support/result.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace jitgemm::simrun {

struct BufferReport {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  std::string sha256;
  std::vector<std::string> first_values;  // a few
  std::string file;                       // where it was written; empty: nowhere
};

struct RunReport {
  std::vector<sim::Report> launches;
  std::vector<std::string> entries;     // of the launches
  std::vector<BufferReport> buffers;    // those that the kernel may write or that have an output
  std::vector<std::string> mismatches;  // of expectations; empty: all hold
  size_t expectations = 0;
  std::string printed;  // by vprintf, the first MiB
};

class KernelRun {
 public:
  // Loads the module, checks every launch against its entry, allocates and fills the buffers.
  // Errors: INVALID_ARGUMENT with the path in the description, UNSUPPORTED (the PTX has a form that
  // cannot be executed), IO_ERROR, CORRUPT_DATA, OUT_OF_MEMORY (beyond the memory limit).
  static Result<KernelRun> create(std::string_view ptx, RunDescription description,
                                  std::string folder);
  KernelRun(KernelRun&&) noexcept;
  KernelRun& operator=(KernelRun&&) noexcept;
  ~KernelRun();

  // The bytes of a buffer; and other contents for it, before a run. INVALID_ARGUMENT if there is
  // none of that name or the size differs.
  Result<std::span<const std::byte>> buffer(std::string_view name) const;
  Status fill(std::string_view name, std::span<const std::byte> contents);
  // False for an "in" buffer, and if there is none of that name.
  bool writable(std::string_view name) const;
  const RunDescription& description() const;

  // All launches. SIMULATOR_FAULT with the report of the fault; outputs are written only if no
  // launch faults.
  Result<RunReport> run();

 private:
  struct State;
  explicit KernelRun(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace jitgemm::simrun
