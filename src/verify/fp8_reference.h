// SPDX-License-Identifier: Apache-2.0
// Small floating-point formats by arithmetic, straight from their definitions: sign, exponent with
// a bias, fraction. The ground truth of every verification, so it shares no code with the
// quantiser, the simulator or the kernels, and works on values (ldexp, division) rather than on bit
// tricks.
#pragma once

#include <cstdint>

namespace jitgemm {

// E4M3 (OCP "FN"): bias 7, no infinities, NaN is S.1111.111 alone, largest finite 448.
double decode_e4m3(uint8_t code);
// E5M2: IEEE-like, bias 15, infinities and NaN in the top binade, largest finite 57344.
double decode_e5m2(uint8_t code);
// UE8M0: 2^(code - 127), code 255 is NaN; no sign, no zero.
double decode_ue8m0(uint8_t code);
double decode_bf16(uint16_t code);
double decode_fp16(uint16_t code);

// One rounding to nearest, ties to even; overflow goes to infinity, NaN to the quiet NaN 0x7fc0 or
// 0x7e00. Subnormal results are kept.
uint16_t round_to_bf16(double value);
uint16_t round_to_fp16(double value);
float round_to_fp32(double value);

}  // namespace jitgemm
