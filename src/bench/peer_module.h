// SPDX-License-Identifier: Apache-2.0
// Peers from outside: a shared library with the C interface of bench/peers/jitgemm_peer.h, or a
// Python file that a Python of this machine runs (bench/README.md). Nothing of either is part of
// this repository.
#pragma once

#include "bench/contender.h"
#include "bench/grouped_operands.h"
#include "bench/operands.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace jitgemm::bench {

// The functions of a module, mirrored from the header; a Python file fills in the same.
struct PeerFunctions {
  struct Problem;
  struct GroupedProblem;
  int32_t (*open)(const Problem* problem, void** peer, char* error, size_t error_bytes) = nullptr;
  // May be null: a module that knows no groups.
  int32_t (*open_grouped)(const GroupedProblem* problem, void** peer, char* error,
                          size_t error_bytes) = nullptr;
  int32_t (*launch)(void* peer, int32_t set, void* stream, char* error,
                    size_t error_bytes) = nullptr;
  // May be null: a module that cannot begin early.
  int32_t (*programmatic)(void* peer, char* error, size_t error_bytes) = nullptr;
  void (*close)(void* peer) = nullptr;
};

class PeerModule {
 public:
  // A path that ends in .py is a Python file; `python_library` names the interpreter's library for
  // it (empty: the loader's search).
  static Result<std::unique_ptr<PeerModule>> load(const std::string& path,
                                                  const std::string& python_library);

  const std::string& name() const { return name_; }
  const PeerFunctions& functions() const { return functions_; }

 private:
  PeerModule() = default;
  Status load_library(const std::string& path);

  std::string name_;
  PeerFunctions functions_;
};

// `module` and `operands` outlive the contender. UNSUPPORTED where it is to be `programmatic` and
// the module cannot.
Result<std::unique_ptr<Contender>> make_module_contender(const PeerModule& module,
                                                         const GemmProblem& problem,
                                                         const Operands& operands,
                                                         bool programmatic = false);
Result<std::unique_ptr<Contender>> make_module_contender(const PeerModule& module, DType out_dtype,
                                                         const GroupedOperands& operands,
                                                         bool programmatic = false);

}  // namespace jitgemm::bench
