// SPDX-License-Identifier: Apache-2.0
// What one matrix instruction computes, bit for bit, under three models of the tensor core:
// D = A * B^T (+ D), optionally block scaled. Works on codes that were gathered from registers,
// shared or tensor memory by the caller; knows nothing of where they came from.
//
//   exact      Products are exact; each output is accumulated in fp64, starting from D, in rising
//   k;
//              one rounding to the type of D (nearest even) at the end of the instruction's k step.
//   hopper     The alignment window fitted to an H200: see window_rule() in models_mma.cpp.
//   blackwell  The published window model of tcgen05.mma (25 fraction bits; 35 for the 4-bit scaled
//              kinds). Unconfirmed: no Blackwell GPU has judged it here.
#pragma once

#include "sim/models_number_formats.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace jitgemm::sim {

enum class MmaNumerics : uint8_t { kExact, kHopper, kBlackwell };
std::string_view mma_numerics_name(MmaNumerics numerics);

enum class MmaFamily : uint8_t { kMmaSync, kWgmma, kTcgen05 };
enum class MmaResult : uint8_t { kF32, kF16, kS32, kS32Saturated };

struct MmaProblem {
  int m = 0;
  int n = 0;
  int k = 0;  // the instruction's own k: 32 bytes of A, or 64 elements of fp4
  NumberFormat a_format = NumberFormat::kE4m3;
  NumberFormat b_format = NumberFormat::kE4m3;
  MmaResult result = MmaResult::kF32;
  std::span<const uint32_t> a;  // m * k codes, k fastest
  std::span<const uint32_t> b;  // n * k codes, k fastest
  std::span<uint32_t> d;        // m * n words, n fastest; f16 in the low half
  bool read_d = true;           // false: D = A * B^T
  bool negate_a = false;
  bool negate_b = false;
  int d_shift = 0;  // scale-input-d: D is multiplied by 2^-d_shift first (PTX ISA 9.7.16.10.9.1)

  // Block scaling (PTX ISA 9.7.16.10.7); scale_block 0: none. Codes are m (n) * k / scale_block.
  int scale_block = 0;
  NumberFormat scale_format = NumberFormat::kUe8m0;
  std::span<const uint32_t> scale_a;
  std::span<const uint32_t> scale_b;
};

void mma_accumulate(const MmaProblem& problem, MmaNumerics numerics, MmaFamily family);

// f64 mma.sync: a chain of fma in rising k (measured on an H200).
void mma_accumulate_f64(int m, int n, int k, std::span<const double> a, std::span<const double> b,
                        std::span<double> d);

}  // namespace jitgemm::sim
