// SPDX-License-Identifier: Apache-2.0
// One product run for real and judged: prepare, launch on guarded buffers, compare with the float64
// reference. What `jitgemm run`, the tests and the GPU check all call, on any device.
#pragma once

#include "runtime/context.h"
#include "verify/compare.h"
#include "verify/inputs.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace jitgemm {

struct GemmCaseOptions {
  bool verify = true;
  // Compare bit for bit with the reference: for inputs whose result is exact.
  bool exact = false;
  // At most this many rows and as many columns are compared: the first, the last, those at the
  // borders of tiles, and random ones. 0: all.
  int64_t sampled_lines = 0;
  // Also check weighted sums along every row and every column, computed by a path that never forms
  // the product.
  bool checksums = false;
  BuildMode build = BuildMode::kCached;
  size_t scale_shift = 0;  // bytes that both operands' scales begin behind a multiple of 256
  int timed_launches = 0;  // on a GPU, after the checked one
  uint64_t seed = 1;
};

struct GemmCaseResult {
  OperationPlan operation;
  GemmPlan plan;      // of its product
  KernelImage image;  // of the product
  bool from_cache = false;
  std::string device;
  int sm_count = 0;  // that launches were laid out for
  HostTensor out;
  // Against the float64 result, and against it rounded once to the output's dtype.
  ErrorMetrics errors;
  ErrorMetrics rounded_errors;
  bool verified = false;
  Verdict verdict;
  double prepare_ms = 0;
  double run_ms = 0;                // of the checked launch, on the host's clock
  std::optional<double> kernel_us;  // median of the timed launches
  std::optional<double> tflops;     // of that, counting 2 m n k
};

// A Status that is not OK means that the case could not be run; a wrong result is a failed verdict.
Result<GemmCaseResult> run_gemm_case(Context& context, Device& device, const GemmProblem& problem,
                                     const PlanOverrides& overrides,
                                     const BlockScaledTensors& tensors,
                                     const GemmCaseOptions& options);

// The largest relative L2 error that a right result may have, against float64.
double relative_l2_limit(const GemmProblem& problem, const Device& device);

}  // namespace jitgemm
