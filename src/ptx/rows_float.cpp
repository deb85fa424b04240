// SPDX-License-Identifier: Apache-2.0
// Floating point in every width, mixed precision included: PTX ISA 9.7.3, 9.7.4 and 9.7.5.
#include "ptx/instruction_rows.h"

namespace jitgemm::ptx {
namespace {

using enum Opcode;

// clang-format off
constexpr FormRow kRows[] = {
    {kTestp, "testp.<finite|infinite|number|notanumber|normal|subnormal>.<f32|f64> =p:pred, a", "9.7.3.1"},
    {kCopysign, "copysign.<f32|f64> =d, a, b", "9.7.3.2"},
    {kAdd, "add{.<@rnd>}{.ftz}{.sat}.f32 =d, a, b", "9.7.3.3"},
    {kAdd, "add{.<@rnd>}.f64 =d, a, b", "9.7.3.3"},
    {kAdd, "add{.<@rnd>}{.ftz}.f32x2 =d, a, b", "9.7.3.3"},
    {kAdd, "add{.rn}{.ftz}{.sat}.<f16|f16x2> =d, a, b", "9.7.4.1"},
    {kAdd, "add{.rn}.<bf16|bf16x2> =d, a, b", "9.7.4.1"},
    {kSub, "sub{.<@rnd>}{.ftz}{.sat}.f32 =d, a, b", "9.7.3.4"},
    {kSub, "sub{.<@rnd>}.f64 =d, a, b", "9.7.3.4"},
    {kSub, "sub{.<@rnd>}{.ftz}.f32x2 =d, a, b", "9.7.3.4"},
    {kSub, "sub{.rn}{.ftz}{.sat}.<f16|f16x2> =d, a, b", "9.7.4.2"},
    {kSub, "sub{.rn}.<bf16|bf16x2> =d, a, b", "9.7.4.2"},
    {kMul, "mul{.<@rnd>}{.ftz}{.sat}.f32 =d, a, b", "9.7.3.5"},
    {kMul, "mul{.<@rnd>}.f64 =d, a, b", "9.7.3.5"},
    {kMul, "mul{.<@rnd>}{.ftz}.f32x2 =d, a, b", "9.7.3.5"},
    {kMul, "mul{.rn}{.ftz}{.sat}.<f16|f16x2> =d, a, b", "9.7.4.3"},
    {kMul, "mul{.rn}.<bf16|bf16x2> =d, a, b", "9.7.4.3"},
    {kAdd, "add{.<@rnd>}{.sat}.f32.<f16|bf16> =d, a:1, c", "9.7.5.1"},
    {kSub, "sub{.<@rnd>}{.sat}.f32.<f16|bf16> =d, a:1, c", "9.7.5.2"},
    {kFma, "fma.<@rnd>{.ftz}{.sat}.f32 =d, a, b, c", "9.7.3.6"},
    {kFma, "fma.<@rnd>.f64 =d, a, b, c", "9.7.3.6"},
    {kFma, "fma.<@rnd>{.ftz}.f32x2 =d, a, b, c", "9.7.3.6"},
    {kFma, "fma.rn{.ftz}{.sat}.<f16|f16x2> =d, a, b, c", "9.7.4.4"},
    {kFma, "fma.rn{.ftz}.relu.<f16|f16x2> =d, a, b, c", "9.7.4.4"},
    {kFma, "fma.rn{.relu}.<bf16|bf16x2> =d, a, b, c", "9.7.4.4"},
    {kFma, "fma.rn.oob{.relu}.<f16|f16x2|bf16|bf16x2> =d, a, b, c", "9.7.4.4"},
    {kFma, "fma.<@rnd>{.sat}.f32.<f16|bf16> =d, a:1, b:1, c", "9.7.5.3"},
    {kMad, "mad{.<@rnd>}{.ftz}{.sat}.f32 =d, a, b, c", "9.7.3.7"},
    {kMad, "mad.<@rnd>.f64 =d, a, b, c", "9.7.3.7"},
    {kDiv, "div.<approx|full>{.ftz}.f32 =d, a, b", "9.7.3.8"},
    {kDiv, "div.<@rnd>{.ftz}.f32 =d, a, b", "9.7.3.8"},
    {kDiv, "div.<@rnd>.f64 =d, a, b", "9.7.3.8"},
    {kAbs, "abs{.ftz}.f32 =d, a", "9.7.3.9"},
    {kAbs, "abs.f64 =d, a", "9.7.3.9"},
    {kAbs, "abs{.ftz}.<f16|f16x2> =d, a", "9.7.4.6"},
    {kAbs, "abs.<bf16|bf16x2> =d, a", "9.7.4.6"},
    {kNeg, "neg{.ftz}.f32 =d, a", "9.7.3.10"},
    {kNeg, "neg.f64 =d, a", "9.7.3.10"},
    {kNeg, "neg{.ftz}.<f16|f16x2> =d, a", "9.7.4.5"},
    {kNeg, "neg.<bf16|bf16x2> =d, a", "9.7.4.5"},
    {kMin, "min{.ftz}{.NaN}{.xorsign}{.abs}.f32 =d, a, b, ?c", "9.7.3.11"},
    {kMin, "min.f64 =d, a, b", "9.7.3.11"},
    {kMin, "min{.ftz}{.NaN}{.xorsign}{.abs}.<f16|f16x2> =d, a, b", "9.7.4.7"},
    {kMin, "min{.NaN}{.xorsign}{.abs}.<bf16|bf16x2> =d, a, b", "9.7.4.7"},
    {kMax, "max{.ftz}{.NaN}{.xorsign}{.abs}.f32 =d, a, b, ?c", "9.7.3.12"},
    {kMax, "max.f64 =d, a, b", "9.7.3.12"},
    {kMax, "max{.ftz}{.NaN}{.xorsign}{.abs}.<f16|f16x2> =d, a, b", "9.7.4.8"},
    {kMax, "max{.NaN}{.xorsign}{.abs}.<bf16|bf16x2> =d, a, b", "9.7.4.8"},
    {kRcp, "rcp.<approx|@rnd>{.ftz}.f32 =d, a", "9.7.3.13"},
    {kRcp, "rcp.<@rnd>.f64 =d, a", "9.7.3.13"},
    {kRcp, "rcp.approx.ftz.f64 =d, a", "9.7.3.14"},
    {kSqrt, "sqrt.<approx|@rnd>{.ftz}.f32 =d, a", "9.7.3.15"},
    {kSqrt, "sqrt.<@rnd>.f64 =d, a", "9.7.3.15"},
    {kRsqrt, "rsqrt.approx{.ftz}.f32 =d, a", "9.7.3.16"},
    {kRsqrt, "rsqrt.approx.f64 =d, a", "9.7.3.16"},
    {kRsqrt, "rsqrt.approx.ftz.f64 =d, a", "9.7.3.17"},
    {kSin, "sin.approx{.ftz}.f32 =d, a", "9.7.3.18"},
    {kCos, "cos.approx{.ftz}.f32 =d, a", "9.7.3.19"},
    {kLg2, "lg2.approx{.ftz}.f32 =d, a", "9.7.3.20"},
    {kEx2, "ex2.approx{.ftz}.f32 =d, a", "9.7.3.21"},
    {kEx2, "ex2.approx.<f16|f16x2> =d, a", "9.7.4.10"},
    {kEx2, "ex2.approx.ftz.<bf16|bf16x2> =d, a", "9.7.4.10"},
    {kTanh, "tanh.approx.f32 =d, a", "9.7.3.22"},
    {kTanh, "tanh.approx.<f16|f16x2|bf16|bf16x2> =d, a", "9.7.4.9"},
};
// clang-format on

}  // namespace

std::span<const FormRow> float_rows() {
  return kRows;
}

}  // namespace jitgemm::ptx
