// SPDX-License-Identifier: Apache-2.0
// Register moves, shuffles, address arithmetic between windows and conversions: PTX ISA 9.7.9.3
// - 9.7.9.7 and 9.7.9.19 - 9.7.9.24.
#include "ptx/instruction_rows.h"

namespace jitgemm::ptx {
namespace {

using enum Opcode;

// clang-format off
constexpr FormRow kRows[] = {
    {kMov, "mov.<pred|b16|b32|b64|b128|@int|f16|bf16|f16x2|bf16x2|f32|f64> =d, a", "9.7.9.3"},
    {kMov, "mov.<b16|b32|b64|b128> =d, {a}*pack", "9.7.9.4"},
    {kMov, "mov.<b16|b32|b64|b128> {=d}*pack, a", "9.7.9.4"},
    {kShfl, "shfl.sync.<up|down|bfly|idx>.b32 =d|?=p:pred, a, b:u32, c:u32, mask:u32", "9.7.9.6"},
    {kPrmt, "prmt.b32{.<f4e|b4e|rc8|ecl|ecr|rc16>} =d, a, b, c", "9.7.9.7"},
    {kIsspacep, "isspacep.<const|global|local|shared|shared::cta|shared::cluster|param|param::entry> =p:pred, $a:any", "9.7.9.19"},
    {kCvta, "cvta{.to}.<const|global|local|shared|shared::cta|shared::cluster|param|param::entry>.<u32|u64> =d, a", "9.7.9.20"},
    {kMapa, "mapa{.shared::cluster}.<u32|u64> =d, a, b:u32", "9.7.9.23"},
    {kGetctarank, "getctarank{.shared::cluster}.<u32|u64> =d:u32, a", "9.7.9.24"},
    // Any of the scalar types to any other.
    {kCvt, "cvt{.<@rnd|@rndi>}{.ftz}{.sat}.<u8|s8|@int|f16|f32|f64>.<u8|s8|@int|f16|bf16|f32|f64> =d:ge0, a:ge1", "9.7.9.21"},
    {kCvt, "cvt{.<@rnd|@rndi>}{.sat}.bf16.<u8|s8|@int|f16|bf16|f64> =d:ge0, a:ge1", "9.7.9.21"},
    {kCvt, "cvt.<rn|rz|rna>{.relu}{.satfinite}.bf16.f32 =d:ge0, a:ge1", "9.7.9.21"},
    {kCvt, "cvt.<rn|rz>.relu{.satfinite}.f16.f32 =d:ge0, a:ge1", "9.7.9.21"},
    {kCvt, "cvt.<rn|rz>.satfinite.f16.f32 =d:ge0, a:ge1", "9.7.9.21"},
    {kCvt, "cvt.<rn|rz>{.relu}{.satfinite}.<f16x2|bf16x2>.f32 =d, a:1, b:1", "9.7.9.21"},
    {kCvt, "cvt.rs{.relu}{.satfinite}.<f16x2|bf16x2>.f32 =d, a:1, b:1, rbits:b32", "9.7.9.21"},
    {kCvt, "cvt.rna{.satfinite}.tf32.f32 =d:b32, a:1", "9.7.9.21"},
    {kCvt, "cvt.<rn|rz>{.relu}{.satfinite}.tf32.f32 =d:b32, a:1", "9.7.9.21"},
    // Eight bits: two at a time, four with stochastic rounding.
    {kCvt, "cvt.rn.satfinite{.relu}.<e4m3x2|e5m2x2>.f32 =d, a:1, b:1", "9.7.9.21"},
    {kCvt, "cvt.rn.satfinite{.relu}.<e4m3x2|e5m2x2>.<f16x2|bf16x2> =d, a:1", "9.7.9.21"},
    {kCvt, "cvt.rn{.relu}.f16x2.<e4m3x2|e5m2x2> =d, a:1", "9.7.9.21"},
    {kCvt, "cvt.rs{.relu}.satfinite.<e4m3x4|e5m2x4>.f32 =d, {a:1}*4, rbits:b32", "9.7.9.21"},
    // Six and four bits.
    {kCvt, "cvt.rn.satfinite{.relu}.<e2m3x2|e3m2x2|e2m1x2>.f32 =d, a:1, b:1", "9.7.9.21"},
    {kCvt, "cvt.rn.satfinite{.relu}.<e2m3x2|e3m2x2|e2m1x2>.<f16x2|bf16x2> =d, a:1", "9.7.9.21"},
    {kCvt, "cvt.rn{.relu}.f16x2.<e2m3x2|e3m2x2|e2m1x2> =d, a:1", "9.7.9.21"},
    {kCvt, "cvt.rs{.relu}.satfinite.<e2m3x4|e3m2x4|e2m1x4>.f32 =d, {a:1}*4, rbits:b32", "9.7.9.21"},
    // Scale exponents.
    {kCvt, "cvt.<rz|rp>{.satfinite}.ue8m0x2.f32 =d, a:1, b:1", "9.7.9.21"},
    {kCvt, "cvt.<rz|rp>{.satfinite}.ue8m0x2.bf16x2 =d, a:1", "9.7.9.21"},
    {kCvt, "cvt.rn.bf16x2.ue8m0x2 =d, a:1", "9.7.9.21"},
    {kCvtPack, "cvt.pack.sat.<u16|s16>.s32 =d:b32, a:1, b:1", "9.7.9.22"},
    {kCvtPack, "cvt.pack.sat.<u8|s8|u4|s4>.s32.b32 =d:b32, a:1, b:1, c:b32", "9.7.9.22"},
};
// clang-format on

}  // namespace

std::span<const FormRow> move_and_convert_rows() {
  return kRows;
}

}  // namespace jitgemm::ptx
