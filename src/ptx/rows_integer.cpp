// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic and extended precision: PTX ISA 9.7.1 and 9.7.2.
#include "ptx/instruction_rows.h"

namespace jitgemm::ptx {
namespace {

using enum Opcode;

// clang-format off
constexpr FormRow kRows[] = {
    {kAdd, "add.<@int|u16x2|s16x2> =d, a, b", "9.7.1.1"},
    {kAdd, "add.sat.s32 =d, a, b", "9.7.1.1"},
    {kSub, "sub.<@int> =d, a, b", "9.7.1.2"},
    {kSub, "sub.sat.s32 =d, a, b", "9.7.1.2"},
    {kMul, "mul.<lo|hi>.<@int> =d, a, b", "9.7.1.3"},
    {kMul, "mul.wide.<u16|u32|s16|s32> =d:2x, a, b", "9.7.1.3"},
    {kMad, "mad.<lo|hi>.<@int> =d, a, b, c", "9.7.1.4"},
    {kMad, "mad.wide.<u16|u32|s16|s32> =d:2x, a, b, c:2x", "9.7.1.4"},
    {kMad, "mad.hi.sat.s32 =d, a, b, c", "9.7.1.4"},
    {kMul24, "mul24.<lo|hi>.<u32|s32> =d, a, b", "9.7.1.5"},
    {kMad24, "mad24.<lo|hi>.<u32|s32> =d, a, b, c", "9.7.1.6"},
    {kMad24, "mad24.hi.sat.s32 =d, a, b, c", "9.7.1.6"},
    {kSad, "sad.<@int> =d, a, b, c", "9.7.1.7"},
    {kDiv, "div.<@int> =d, a, b", "9.7.1.8"},
    {kRem, "rem.<@int> =d, a, b", "9.7.1.9"},
    {kAbs, "abs.<s16|s32|s64> =d, a", "9.7.1.10"},
    {kNeg, "neg.<s16|s32|s64> =d, a", "9.7.1.11"},
    {kMin, "min.<@int|u16x2|s16x2> =d, a, b", "9.7.1.12"},
    {kMin, "min.relu.<s32|s16x2> =d, a, b", "9.7.1.12"},
    {kMax, "max.<@int|u16x2|s16x2> =d, a, b", "9.7.1.13"},
    {kMax, "max.relu.<s32|s16x2> =d, a, b", "9.7.1.13"},
    {kPopc, "popc.<b32|b64> =d:u32, a", "9.7.1.14"},
    {kClz, "clz.<b32|b64> =d:u32, a", "9.7.1.15"},
    {kBfind, "bfind{.shiftamt}.<u32|u64|s32|s64> =d:u32, a", "9.7.1.16"},
    {kFns, "fns.b32 =d, mask, base, offset", "9.7.1.17"},
    {kBrev, "brev.<b32|b64> =d, a", "9.7.1.18"},
    {kBfe, "bfe.<u32|u64|s32|s64> =d, a, b:u32, c:u32", "9.7.1.19"},
    {kBfi, "bfi.<b32|b64> =f, a, b, c:u32, d:u32", "9.7.1.20"},
    {kSzext, "szext.<clamp|wrap>.<u32|s32> =d, a, b:u32", "9.7.1.21"},
    {kBmsk, "bmsk.<clamp|wrap>.b32 =d, a, b", "9.7.1.22"},
    {kDp4a, "dp4a.<u32|s32>.<u32|s32> =d:b32, a, b, c:b32", "9.7.1.23"},
    {kDp2a, "dp2a.<lo|hi>.<u32|s32>.<u32|s32> =d:b32, a, b, c:b32", "9.7.1.24"},
    {kAdd, "add.cc.<u32|s32|u64|s64> =d, a, b", "9.7.2.1"},
    {kAddc, "addc{.cc}.<u32|s32|u64|s64> =d, a, b", "9.7.2.2"},
    {kSub, "sub.cc.<u32|s32|u64|s64> =d, a, b", "9.7.2.3"},
    {kSubc, "subc{.cc}.<u32|s32|u64|s64> =d, a, b", "9.7.2.4"},
    {kMad, "mad.<lo|hi>.cc.<u32|s32|u64|s64> =d, a, b, c", "9.7.2.5"},
    {kMadc, "madc.<lo|hi>{.cc}.<u32|s32|u64|s64> =d, a, b, c", "9.7.2.6"},
};
// clang-format on

}  // namespace

std::span<const FormRow> integer_rows() {
  return kRows;
}

}  // namespace jitgemm::ptx
