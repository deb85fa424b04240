// SPDX-License-Identifier: Apache-2.0
// The 32-bit instruction descriptor of tcgen05.mma (PTX ISA 9.7.16.4.2) for every kind, with .ws
// and sparse A too: decoding and legality of types, shapes (9.7.16.2.1), transposes and negations
// (9.7.16.10.1). Pure functions.
#pragma once

#include "sim/models_mma.h"
#include "sim/models_number_formats.h"

#include <cstdint>
#include <string>

namespace jitgemm::sim {

enum class Tcgen05Kind : uint8_t { kF16, kTf32, kF8f6f4, kI8, kMxf8f6f4, kMxf4, kMxf4nvf4 };
std::string_view tcgen05_kind_name(Tcgen05Kind kind);
bool is_block_scaled(Tcgen05Kind kind);
// Two 4-bit elements a byte, against one element a byte container.
bool is_packed_fp4(Tcgen05Kind kind);

struct InstructionDescriptor {
  int m = 0;
  int n = 0;
  int k = 0;
  NumberFormat a_format = NumberFormat::kF16;
  NumberFormat b_format = NumberFormat::kF16;
  MmaResult result = MmaResult::kF32;
  bool negate_a = false;
  bool negate_b = false;
  bool a_mn_major = false;
  bool b_mn_major = false;
  NumberFormat scale_format = NumberFormat::kUe8m0;
  uint32_t scale_a_id = 0;
  uint32_t scale_b_id = 0;
  int scales_per_row = 0;  // of the block-scaled kinds, else 0
  uint32_t max_shift = 0;  // of .ws: of the columns of B
  bool sparse = false;     // A holds K / 2 elements a row
  uint32_t sparsity_selector = 0;
};

struct DecodedInstruction {
  InstructionDescriptor descriptor;
  std::string error;  // the illegal field and why; empty: legal
};

// cta_group is 1 or 2. scales_per_row: what the mnemonic says, 1, 2 or 4 (scale_vec::1X, 2X, 4X, or
// the block sizes that stand for them), of the block-scaled kinds, else 0; with K = 96 the row has
// 3 or 6 (9.7.16.10.7.1). That K is legal for sm_103a alone, which the caller judges.
DecodedInstruction decode_instruction(Tcgen05Kind kind, uint32_t bits, int cta_group,
                                      int scales_per_row, bool weight_stationary = false,
                                      bool sparse = false);

}  // namespace jitgemm::sim
