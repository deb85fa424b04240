// SPDX-License-Identifier: Apache-2.0
// The door of the functional simulator: load the text of a PTX module, run one of its entries over
// a grid, get counters or a fault. It executes any PTX; it must not know what a kernel computes,
// how it is named or which library made it. Nothing behind this header is needed by a caller.
#pragma once

#include "sim/statistics.h"
#include "support/result.h"
#include "support/status.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace jitgemm::sim {

struct DecodedProgram;   // program.h
struct ModuleVariables;  // machine_state.h

// A loaded module. Immutable, cheap to copy, may be shared by threads.
class Program {
 public:
  // Parses, resolves and decodes. Every unsupported form of the text is listed in the one error
  // (kUnsupported), each with line and column, so that nothing unsupported is met during a run.
  static Result<Program> load(std::string_view ptx);

  std::vector<std::string> entries() const;
  // The module's .global and .const variables, as initialised. Launches that are given the same
  // ones see each other's writes, as the launches of one loaded module do on a GPU.
  // OUT_OF_MEMORY if they need more bytes than the limit.
  Result<std::shared_ptr<ModuleVariables>> make_variables(uint64_t memory_limit) const;
  const DecodedProgram& decoded() const { return *decoded_; }

 private:
  explicit Program(std::shared_ptr<const DecodedProgram> decoded) : decoded_(std::move(decoded)) {}
  std::shared_ptr<const DecodedProgram> decoded_;
};

// A bit a byte: which bytes of a range kernels have written. Kept by a caller who runs several
// launches on one range.
using WrittenBits = std::shared_ptr<std::atomic<uint64_t>[]>;
WrittenBits make_written_bits(uint64_t bytes);

// Bytes that a launch has written, as the launch after it is told.
struct WrittenRange {
  const void* base = nullptr;
  uint64_t bytes = 0;
  WrittenBits written;
};

// Host memory that the kernel may touch as global memory. Its device address is its host address.
struct MemoryRange {
  const void* base = nullptr;
  uint64_t bytes = 0;
  bool readable = true;
  bool writable = true;
  bool initialised = true;   // false: reading a byte before the kernel wrote it is a fault
  std::string name = {};     // for reports
  WrittenBits written = {};  // with initialised = false: what earlier launches wrote
  WrittenBits log = {};      // if given, gets what this launch writes
};

struct Launch {
  std::string entry;
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  std::array<uint32_t, 3> cluster = {1, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  std::span<const std::byte> parameters;  // laid out as the entry's .param list
  std::vector<MemoryRange> memory;
  bool programmatic_dependent = false;  // griddepcontrol is legal
  // What the grid before has written, if this one may start before its end: not to be touched
  // before griddepcontrol.wait.
  std::vector<WrittenRange> predecessor_writes = {};
  std::shared_ptr<ModuleVariables> variables = {};  // null: fresh ones for this launch
};

enum class Numerics : uint8_t { kExact, kHopper, kBlackwell };
std::string_view numerics_name(Numerics numerics);

struct Options {
  Numerics numerics = Numerics::kExact;
  // 0: warps and CTAs in order, asynchronous effects at the latest legal point. Any other value
  // permutes both; the same value gives the same run for a program without data races.
  uint64_t seed = 0;
  bool sanitize = true;
  bool races = true;  // part of sanitize: data races
  // Also the rules of the PTX ISA that today's parts do not enforce and that kernels in production
  // do without: tensor memory and the operands of tcgen05 are handed to another thread only between
  // tcgen05.fence::before_thread_sync and ::after_thread_sync (9.7.16.6.4), while 9.7.16.6.3 lets
  // any synchronisation of threads do; the lane of a tcgen05.ld or st address is the warp's first
  // (9.7.16.8.1); a relaxed arrival at a cluster barrier orders no memory (9.7.13.3); a CTA ends
  // after its bulk stores have read their sources (9.7.9.25) and the arrivals of its
  // tcgen05.commits have come.
  bool strict = false;
  uint32_t threads = 1;                  // host threads; clusters are spread over them
  uint64_t step_limit = 20'000'000'000;  // warp instructions of the whole grid
  uint64_t memory_limit = uint64_t{8}
                          << 30;  // bytes of simulator state (registers, shared, tensor)
  uint64_t time_limit_ms = 0;     // of this machine's clock; 0: none
  bool statistics = false;        // fills Report::statistics; slower
  // A bit for each warp of a CTA (the first 64) that runs last: one instruction at a time, and only
  // when no other warp of its cluster can go on and no asynchronous operation is in flight. What
  // the others have done by then is what they do without it.
  uint64_t last_warps = 0;
  // Called with a line of text for every warp instruction and every wait. The run then uses one
  // host thread.
  std::function<void(std::string_view line)> trace = {};
  // Gets what the kernel prints by vprintf, a call of a warp at a time. Without it nothing is
  // printed.
  std::function<void(std::string_view text)> print = {};
};

struct Counter {
  std::string name;
  uint64_t instructions = 0;         // warp level
  uint64_t thread_instructions = 0;  // summed over active lanes
  uint64_t bytes = 0;                // memory classes only
};

struct Report {
  std::vector<Counter> classes;  // by opcode, most frequent first
  std::vector<Counter> groups;   // by what they do: "integer", "load and store", ...
  std::vector<Counter> matrix;   // matrix instructions by their whole mnemonic
  uint64_t instructions = 0;
  uint64_t thread_instructions = 0;
  uint64_t global_bytes_read = 0, global_bytes_written = 0;
  uint64_t shared_bytes_read = 0, shared_bytes_written = 0;
  uint64_t local_bytes = 0;
  uint64_t async_operations = 0;
  uint64_t matrix_instructions = 0;  // mma.sync, wgmma and tcgen05.mma issues
  uint64_t clusters = 0, ctas = 0, warps = 0;
  uint64_t peak_state_bytes = 0;
  uint64_t race_state_bytes = 0;   // of what tells data races in global memory
  uint64_t unjudged_accesses = 0;  // to global memory, beyond the bound of that state
  Numerics numerics = Numerics::kExact;
  uint64_t seed = 0;
  Statistics statistics;  // with Options::statistics
  std::string to_string() const;
};

// Whether run() would begin: entry, sizes of grid, block, cluster, shared memory and parameters.
Status check_launch(const Program& program, const Launch& launch);

// Runs the grid to its end. A broken rule comes back as kSimulatorFault whose message is the
// report: kernel, PTX line and text, CTA, warp, lane, operands, rule, section of the PTX ISA.
Result<Report> run(const Program& program, const Launch& launch, const Options& options);

}  // namespace jitgemm::sim
