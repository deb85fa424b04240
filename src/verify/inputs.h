// SPDX-License-Identifier: Apache-2.0
// Inputs of block_scaled_mm for tests, benchmarks and the CLI, drawn by counter: the same seed and
// shape give the same bytes on every machine and with any number of threads. Tensors are dense and
// row-major, as files hold them; lay_out puts them where a problem's strides want them.
#pragma once

#include "problem/gemm_problem.h"
#include "support/result.h"
#include "verify/host_tensor.h"
#include "verify/operand_draw.h"
#include "verify/reference.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace jitgemm {

enum class InputKind {
  // Standard normal values, quantised: A by the largest |x| of each 1 x group_k block, B by the
  // largest x (not |x|) of each group_n x group_k block, so that some of B saturates.
  kSeed,
  // The same with |x| for both.
  kAmax,
  // Codes of values uniform over +-448 (or +-57344), scales uniform on [0, 0.01).
  kUniformCodes,
  // The codes of kUniformCodes; scales of either sign, 2^-30 to 2^31 in size.
  kWideScales,
  // Integers |a|, |b| <= 4 with scales 1, 2, 3 or 4: every intermediate result is an integer below
  // 2^24, so every right implementation gives the same bits. Holds for group_k <= 128, k < 2^16.
  kSmallIntegers,
  // kUniformCodes with NaN and infinite codes and scales, zero, negative, subnormal and huge scales
  // in some rows and columns, and many rows left alone.
  kSpecialValues,
};
std::optional<InputKind> parse_input_kind(std::string_view name);  // "seed", "amax", "uniform", ...
std::string_view input_kind_name(InputKind kind);

struct BlockScaledTensors {
  HostTensor a;  // the codes
  HostTensor b;
  HostTensor a_scales;
  HostTensor b_scales;
  // Where the operation quantises a: what it quantises, [m, k]. a and a_scales are then what it
  // must make of it. Empty otherwise.
  HostTensor a_source;
  int64_t group_n = 128;
  int64_t group_k = 128;

  BlockScaledInputs views() const;
};

// Shapes, dtypes and groups come from the problem; with power-of-two scales (declared, or F8_E8M0)
// each scale is a power of two. Layouts and leading dimensions are not looked at. `draw` draws what
// input_draws names, with the bits of draw_operand, which is asked unless another is given.
Result<BlockScaledTensors> make_block_scaled_tensors(const GemmProblem& problem, InputKind kind,
                                                     uint64_t seed, int threads = 0,
                                                     const DrawOperand& draw = draw_operand);

// What is drawn for a problem: "a", "b", and "a_scales" and "b_scales" where they are not those of
// quantised normal values.
std::vector<OperandDraw> input_draws(const GemmProblem& problem, InputKind kind, uint64_t seed,
                                     int threads = 0);

// How a and b are drawn for a problem whose operands are FP8.
std::array<OperandDraw, 2> operand_draws(const GemmProblem& problem, InputKind kind, uint64_t seed,
                                         int threads = 0);

// Makes a and a_scales of a_source as the problem's operation does.
Status quantize_source(const GemmProblem& problem, BlockScaledTensors& tensors, int threads = 0);

// The random stream that A's values come from, element i of the dense matrix being draw i.
inline constexpr uint32_t kStreamOfA = 1;

// Standard normal values in F32, F16 or BF16.
Result<HostTensor> make_normal_tensor(std::string name, DType dtype, std::vector<int64_t> shape,
                                      uint64_t seed, uint32_t stream, int threads = 0);

// The four operands in the memory order of the problem. Bytes between rows are 0xff, NaN in every
// type here, so that a kernel that reads padding shows it.
struct BlockScaledStorage {
  std::vector<std::byte> a;
  std::vector<std::byte> b;
  std::vector<std::byte> a_scales;
  std::vector<std::byte> b_scales;
};
Result<BlockScaledStorage> lay_out(const GemmProblem& problem, const BlockScaledTensors& tensors);

}  // namespace jitgemm
