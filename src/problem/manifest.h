// SPDX-License-Identifier: Apache-2.0
// A manifest: a named list of problems to prepare ahead of time, read from JSON (the format is
// described in cache/README.md). An entry may hold a range of m; nothing here decides which kernels
// a range needs.
#pragma once

#include "problem/gemm_problem.h"
#include "support/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace jitgemm {

struct ManifestEntry {
  std::string name;
  // Every field but arch and m, which are below; m is m_last.
  GemmProblem problem;
  int64_t m_first = 0;
  int64_t m_last = 0;
  std::vector<Arch> archs;
};

struct Manifest {
  std::string name;
  std::string description;
  std::vector<ManifestEntry> entries;
};

// CORRUPT_DATA or UNSUPPORTED; the message names the entry and the field.
Result<Manifest> parse_manifest(std::string_view json);
Result<Manifest> read_manifest(const std::string& path);

}  // namespace jitgemm
