// SPDX-License-Identifier: Apache-2.0
// From the structs of jitgemm.h to the values of the library. What a field may hold is checked here
// as far as C lets through what C++ could not hold; the rest is for the problem's own validate.
// Knows no handle.
#pragma once

#include "jitgemm/jitgemm.h"

#include "problem/gemm_problem.h"
#include "runtime/gemm_operation.h"
#include "support/result.h"

#include <cstdint>

namespace jitgemm {

Result<Arch> convert_arch(int32_t arch);

// Every field as given.
Status convert_unchecked(const jitgemm_gemm_problem* given, Arch arch, GemmProblem& p);
Status convert_unchecked(const jitgemm_grouped_gemm_problem* given, Arch arch, GemmProblem& p);

// Valid, or an error.
Result<GemmProblem> convert(const jitgemm_gemm_problem* given, Arch arch);
Result<GemmProblem> convert(const jitgemm_grouped_gemm_problem* given, Arch arch);

// Copies what the caller's size says is there, and checks flags.
Status read_arguments(const jitgemm_gemm_arguments* given, jitgemm_gemm_arguments& out);
Status read_arguments(const jitgemm_grouped_gemm_arguments* given,
                      jitgemm_grouped_gemm_arguments& out);
GemmArguments convert(const jitgemm_gemm_arguments& c);
GemmArguments convert(const jitgemm_grouped_gemm_arguments& c);

}  // namespace jitgemm
