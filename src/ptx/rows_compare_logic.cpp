// SPDX-License-Identifier: Apache-2.0
// Comparison, selection, logic and shifts: PTX ISA 9.7.6, 9.7.7 and 9.7.8.
#include "ptx/instruction_rows.h"

namespace jitgemm::ptx {
namespace {

using enum Opcode;

// clang-format off
constexpr FormRow kRows[] = {
    {kSet, "set.<@cmp>{.ftz}.<u32|s32|f32>.<b16|b32|b64|@int|f32|f64> =d, a:1, b:1", "9.7.6.1"},
    {kSet, "set.<@cmp>.<and|or|xor>{.ftz}.<u32|s32|f32>.<b16|b32|b64|@int|f32|f64> =d, a:1, b:1, c:pred", "9.7.6.1"},
    {kSet, "set.<@cmp>{.ftz}.<u16|s16|u32|s32|f16|f16x2>.<f16|f16x2> =d, a:1, b:1", "9.7.7.1"},
    {kSet, "set.<@cmp>.<and|or|xor>{.ftz}.<u16|s16|u32|s32|f16|f16x2>.<f16|f16x2> =d, a:1, b:1, c:pred", "9.7.7.1"},
    {kSet, "set.<@cmp>.<u16|s16|u32|s32|bf16|bf16x2>.<bf16|bf16x2> =d, a:1, b:1", "9.7.7.1"},
    {kSet, "set.<@cmp>.<and|or|xor>.<u16|s16|u32|s32|bf16|bf16x2>.<bf16|bf16x2> =d, a:1, b:1, c:pred", "9.7.7.1"},
    {kSet, "set.<@cmp>{.ftz}.bf16.f16 =d, a:1, b:1", "9.7.7.1"},
    {kSet, "set.<@cmp>{.ftz}.f16.<@int|b16|b32|b64|f32|f64|bf16> =d, a:1, b:1", "9.7.7.1"},
    {kSetp, "setp.<@cmp>{.ftz}.<b16|b32|b64|@int|f32|f64> =p:pred|?=q:pred, a, b", "9.7.6.2"},
    {kSetp, "setp.<@cmp>.<and|or|xor>{.ftz}.<b16|b32|b64|@int|f32|f64> =p:pred|?=q:pred, a, b, c:pred", "9.7.6.2"},
    {kSetp, "setp.<@cmp>{.ftz}.<f16|bf16> =p:pred|?=q:pred, a, b", "9.7.7.2"},
    {kSetp, "setp.<@cmp>.<and|or|xor>{.ftz}.<f16|bf16> =p:pred|?=q:pred, a, b, c:pred", "9.7.7.2"},
    {kSetp, "setp.<@cmp>{.ftz}.<f16x2|bf16x2> =p:pred|=q:pred, a, b", "9.7.7.2"},
    {kSetp, "setp.<@cmp>.<and|or|xor>{.ftz}.<f16x2|bf16x2> =p:pred|=q:pred, a, b, c:pred", "9.7.7.2"},
    {kSelp, "selp.<b16|b32|b64|@int|f32|f64> =d, a, b, c:pred", "9.7.6.3"},
    {kSlct, "slct.<b16|b32|b64|@int|f32|f64>.s32 =d, a, b, c:1", "9.7.6.4"},
    {kSlct, "slct{.ftz}.<b16|b32|b64|@int|f32|f64>.f32 =d, a, b, c:1", "9.7.6.4"},
    {kAnd, "and.<pred|b16|b32|b64> =d, a, b", "9.7.8.1"},
    {kOr, "or.<pred|b16|b32|b64> =d, a, b", "9.7.8.2"},
    {kXor, "xor.<pred|b16|b32|b64> =d, a, b", "9.7.8.3"},
    {kNot, "not.<pred|b16|b32|b64> =d, a", "9.7.8.4"},
    {kCnot, "cnot.<b16|b32|b64> =d, a", "9.7.8.5"},
    {kLop3, "lop3.b32 =d, a, b, c, #lut:any", "9.7.8.6"},
    {kLop3, "lop3.<and|or>.b32 =d|=p:pred, a, b, c, #lut:any, q:pred", "9.7.8.6"},
    {kShf, "shf.<l|r>.<clamp|wrap>.b32 =d, a, b, c:u32", "9.7.8.7"},
    {kShl, "shl.<b16|b32|b64> =d, a, b:u32", "9.7.8.8"},
    {kShr, "shr.<b16|b32|b64|@int> =d, a, b:u32", "9.7.8.9"},
};
// clang-format on

}  // namespace

std::span<const FormRow> compare_and_logic_rows() {
  return kRows;
}

}  // namespace jitgemm::ptx
