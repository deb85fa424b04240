// SPDX-License-Identifier: Apache-2.0
// The programs of tests/ptx/cases as values: their text for a target, what they start from, what
// they must leave. Shared by the test that runs them on the simulator, by the program that runs
// them on a GPU, and by the page that says what was confirmed. The format is described in
// tests/ptx/cases/README.md.
#pragma once

#include "sim/models_tensor_map.h"
#include "sim/simulator.h"
#include "support/result.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jitgemm::ptx_cases {

inline constexpr size_t kThreadBytes = 512;  // of the input and of the output of a thread
inline constexpr size_t kMemoryBytes = 1 << 16;

using Values = std::vector<uint64_t>;  // one for all threads, or one a thread
using Assignment = std::map<std::string, Values>;

struct CaseRun {
  Assignment in, out;
  std::vector<std::pair<size_t, Values>> memory_in, memory_out;  // 32-bit words from a byte offset
};

struct Case {
  std::string file;   // "scalar.case"
  uint32_t line = 0;  // of its first line
  std::string block;  // its lines as they are in the file, comments apart
  std::string body, globals;
  uint32_t threads = 1, ctas = 1, cluster = 1, shared = 0;
  std::string map;  // words that describe a tensor map over the memory
  std::vector<CaseRun> runs;
  // An o register holds an f32 that may be 2^-within * max(1, |expected|) away; 0: bits are
  // compared.
  int within = 0;

  std::string place() const;  // file:line
};

// The bytes that a run starts from or has left.
struct CaseBytes {
  std::vector<std::byte> in, out, memory;
};

// The cases of all files of the folder, files by name.
std::vector<Case> read_cases(const std::string& folder);

// The module of a case; its entry is `k`.
std::string case_text(const Case& c, std::string_view target);
// A target that has all that the case uses.
std::string_view case_target(const Case& c);
// The lines of that text, from 1, that come from the case and not from what surrounds it.
std::pair<uint32_t, uint32_t> body_lines(const Case& c, std::string_view target);
// SHA-256, in hex, of the case and its text for the target.
std::string case_digest(const Case& c, std::string_view target);

CaseBytes initial_bytes(const Case& c, const CaseRun& run);
// The tensor map over memory at that address; only if the case has one.
sim::TensorMap case_map(const Case& c, uint64_t memory_address);
// The entry's parameters: three addresses and, at 64, 128 bytes of a map.
std::vector<std::byte> case_parameters(uint64_t in, uint64_t out, uint64_t memory,
                                       const void* encoded_map);

// Runs on the simulator; `bytes` become what it left.
Result<sim::Report> run_on_simulator(const Case& c, const sim::Program& program,
                                     const sim::Options& options, CaseBytes& bytes);

// The bytes that two machines must agree on: all but memory in which a kernel has edited a tensor
// map, whose format is each machine's own, and what the threads leave where a case allows a
// distance.
std::string comparable_bytes(const Case& c, const CaseBytes& bytes);

// "" if the bytes are what the case expects, else the first difference.
std::string difference(const Case& c, const CaseRun& run, const CaseBytes& found);
// Of a case with `within`: the greatest distance of an f32, over max(1, |expected|).
double greatest_distance(const Case& c, const CaseRun& run, const CaseBytes& found);

}  // namespace jitgemm::ptx_cases
