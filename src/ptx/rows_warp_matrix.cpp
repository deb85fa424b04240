// SPDX-License-Identifier: Apache-2.0
// Matrix instructions of one warp: PTX ISA 9.7.14. Single-bit forms, and sparse ones of four-bit
// integers, have no row.
#include "ptx/instruction_rows.h"

namespace jitgemm::ptx {
namespace {

using enum Opcode;

// clang-format off
constexpr FormRow kRows[] = {
    {kLdmatrix, "ldmatrix.sync.aligned.m8n8.<x1|x2|x4>{.trans}{.<shared|shared::cta>}.b16 {=d:b32}*num, [p]", "9.7.14.5.15"},
    {kLdmatrix, "ldmatrix.sync.aligned.m16n16.<x1|x2>.trans{.<shared|shared::cta>}.b8 {=d:b32}*num, [p]", "9.7.14.5.15"},
    {kLdmatrix, "ldmatrix.sync.aligned.m16n16.<x1|x2>.trans{.<shared|shared::cta>}.b8x16.<b6x16_p32|b4x16_p64> {=d:b32}*num, [p]", "9.7.14.5.15"},
    {kLdmatrix, "ldmatrix.sync.aligned.m8n16.<x1|x2|x4>{.<shared|shared::cta>}.b8x16.<b6x16_p32|b4x16_p64> {=d:b32}*num, [p]", "9.7.14.5.15"},
    {kStmatrix, "stmatrix.sync.aligned.m8n8.<x1|x2|x4>{.trans}{.<shared|shared::cta>}.b16 [p], {r:b32}*num", "9.7.14.5.16"},
    {kStmatrix, "stmatrix.sync.aligned.m16n8.<x1|x2|x4>.trans{.<shared|shared::cta>}.b8 [p], {r:b32}*num", "9.7.14.5.16"},
    {kMovmatrix, "movmatrix.sync.aligned.m8n8.trans.b16 =d:b32, a:b32", "9.7.14.5.17"},
    {kMma, "mma.sync.aligned.m8n8k4.<row|col>.<row|col>.<f16|f32>.f16.f16.<f16|f32> {=d:frag}*mma_d, {a:frag}*mma_a, {b:frag}*mma_b, {c:frag}*mma_c", "9.7.14.5"},
    {kMma, "mma.sync.aligned.<m16n8k8|m16n8k16>.row.col.<f16|f32>.f16.f16.<f16|f32> {=d:frag}*mma_d, {a:frag}*mma_a, {b:frag}*mma_b, {c:frag}*mma_c", "9.7.14.5"},
    {kMma, "mma.sync.aligned.<m16n8k8|m16n8k16>.row.col.f32.bf16.bf16.f32 {=d:frag}*mma_d, {a:frag}*mma_a, {b:frag}*mma_b, {c:frag}*mma_c", "9.7.14.5"},
    {kMma, "mma.sync.aligned.<m16n8k4|m16n8k8>.row.col.f32.tf32.tf32.f32 {=d:frag}*mma_d, {a:frag}*mma_a, {b:frag}*mma_b, {c:frag}*mma_c", "9.7.14.5"},
    {kMma, "mma.sync.aligned.<m8n8k4|m16n8k4|m16n8k8|m16n8k16>.row.col.f64.f64.f64.f64 {=d:frag}*mma_d, {a:frag}*mma_a, {b:frag}*mma_b, {c:frag}*mma_c", "9.7.14.5"},
    {kMma, "mma.sync.aligned.<m8n8k16|m16n8k16|m16n8k32>.row.col{.satfinite}.s32.<u8|s8>.<u8|s8>.s32 {=d:frag}*mma_d, {a:frag}*mma_a, {b:frag}*mma_b, {c:frag}*mma_c", "9.7.14.5"},
    {kMma, "mma.sync.aligned.<m8n8k32|m16n8k32|m16n8k64>.row.col{.satfinite}.s32.<u4|s4>.<u4|s4>.s32 {=d:frag}*mma_d, {a:frag}*mma_a, {b:frag}*mma_b, {c:frag}*mma_c", "9.7.14.5"},
    {kMma, "mma.sync.aligned.<m16n8k16|m16n8k32>.row.col.<f16|f32>.<e4m3|e5m2>.<e4m3|e5m2>.<f16|f32> {=d:frag}*mma_d, {a:frag}*mma_a, {b:frag}*mma_b, {c:frag}*mma_c", "9.7.14.5"},
    {kMma, "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.<f16|f32>.<e4m3|e5m2|e2m3|e3m2|e2m1>.<e4m3|e5m2|e2m3|e3m2|e2m1>.<f16|f32> {=d:frag}*mma_d, {a:frag}*mma_a, {b:frag}*mma_b, {c:frag}*mma_c", "9.7.14.5"},
    {kMma, "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale{.scale_vec::1X}.f32.<e4m3|e5m2|e2m3|e3m2|e2m1>.<e4m3|e5m2|e2m3|e3m2|e2m1>.f32.ue8m0 {=d:frag}*4, {a:frag}*4, {b:frag}*2, {c:frag}*4, sa:b32, {ida:b16}*2, sb:b32, {idb:b16}*2", "9.7.14.5"},
    {kMma, "mma.sync.aligned.m16n8k64.row.col.<kind::mxf4|kind::mxf4nvf4>.block_scale{.<scale_vec::2X|scale_vec::4X>}.f32.e2m1.e2m1.f32.<ue8m0|ue4m3> {=d:frag}*4, {a:frag}*4, {b:frag}*2, {c:frag}*4, sa:b32, {ida:b16}*2, sb:b32, {idb:b16}*2", "9.7.14.5"},
    {kMma, "mma.<sp|sp::ordered_metadata>.sync.aligned.<m16n8k16|m16n8k32>.row.col.<f16|f32>.f16.f16.<f16|f32> {=d:frag}*mma_d, {a:frag}*mma_a, {b:frag}*mma_b, {c:frag}*mma_c, meta:b32, #select:any", "9.7.14.6"},
    {kMma, "mma.<sp|sp::ordered_metadata>.sync.aligned.<m16n8k16|m16n8k32>.row.col.f32.bf16.bf16.f32 {=d:frag}*mma_d, {a:frag}*mma_a, {b:frag}*mma_b, {c:frag}*mma_c, meta:b32, #select:any", "9.7.14.6"},
    {kMma, "mma.<sp|sp::ordered_metadata>.sync.aligned.<m16n8k8|m16n8k16>.row.col.f32.tf32.tf32.f32 {=d:frag}*mma_d, {a:frag}*mma_a, {b:frag}*mma_b, {c:frag}*mma_c, meta:b32, #select:any", "9.7.14.6"},
    {kMma, "mma.<sp|sp::ordered_metadata>.sync.aligned.m16n8k64.row.col.f32.<e4m3|e5m2>.<e4m3|e5m2>.f32 {=d:frag}*mma_d, {a:frag}*mma_a, {b:frag}*mma_b, {c:frag}*mma_c, meta:b32, #select:any", "9.7.14.6"},
    {kMma, "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.<f16|f32>.<e4m3|e5m2|e2m3|e3m2|e2m1>.<e4m3|e5m2|e2m3|e3m2|e2m1>.<f16|f32> {=d:frag}*mma_d, {a:frag}*4, {b:frag}*4, {c:frag}*mma_c, meta:b32, #select:any", "9.7.14.6"},
    {kMma, "mma.<sp|sp::ordered_metadata>.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale{.scale_vec::1X}.f32.<e4m3|e5m2|e2m3|e3m2|e2m1>.<e4m3|e5m2|e2m3|e3m2|e2m1>.f32.ue8m0 {=d:frag}*4, {a:frag}*4, {b:frag}*4, {c:frag}*4, meta:b32, #select:any, sa:b32, {ida:b16}*2, sb:b32, {idb:b16}*2", "9.7.14.6"},
    {kMma, "mma.<sp|sp::ordered_metadata>.sync.aligned.m16n8k128.row.col.<kind::mxf4|kind::mxf4nvf4>.block_scale{.<scale_vec::2X|scale_vec::4X>}.f32.e2m1.e2m1.f32.<ue8m0|ue4m3> {=d:frag}*4, {a:frag}*4, {b:frag}*4, {c:frag}*4, meta:b32, #select:any, sa:b32, {ida:b16}*2, sb:b32, {idb:b16}*2", "9.7.14.6"},
    {kMma, "mma.<sp|sp::ordered_metadata>.sync.aligned.<m16n8k32|m16n8k64>.row.col{.satfinite}.s32.<u8|s8>.<u8|s8>.s32 {=d:frag}*mma_d, {a:frag}*mma_a, {b:frag}*mma_b, {c:frag}*mma_c, meta:b32, #select:any", "9.7.14.6"},
};
// clang-format on

}  // namespace

std::span<const FormRow> warp_matrix_rows() {
  return kRows;
}

}  // namespace jitgemm::ptx
