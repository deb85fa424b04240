// SPDX-License-Identifier: Apache-2.0
// Warpgroup matrix instructions (PTX ISA 9.7.15) and the fifth generation of tensor cores (9.7.16).
#include "ptx/instruction_rows.h"

namespace jitgemm::ptx {
namespace {

using enum Opcode;

// clang-format off
constexpr FormRow kRows[] = {
    {kWgmmaMmaAsync, "wgmma.mma_async.sync.aligned.m64n#k16.<f16|f32>.f16.f16 {+d:frag}*wgmma_d, adesc:b64, bdesc:b64, scaled:pred, #imma:any, #immb:any, #transa:any, #transb:any", "9.7.15.5.2"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sync.aligned.m64n#k16.<f16|f32>.f16.f16 {+d:frag}*wgmma_d, {a:b32}*4, bdesc:b64, scaled:pred, #imma:any, #immb:any, #transb:any", "9.7.15.5.2"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sync.aligned.m64n#k16.f32.bf16.bf16 {+d:frag}*wgmma_d, adesc:b64, bdesc:b64, scaled:pred, #imma:any, #immb:any, #transa:any, #transb:any", "9.7.15.5.2"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sync.aligned.m64n#k16.f32.bf16.bf16 {+d:frag}*wgmma_d, {a:b32}*4, bdesc:b64, scaled:pred, #imma:any, #immb:any, #transb:any", "9.7.15.5.2"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sync.aligned.m64n#k8.f32.tf32.tf32 {+d:frag}*wgmma_d, adesc:b64, bdesc:b64, scaled:pred, #imma:any, #immb:any", "9.7.15.5.2"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sync.aligned.m64n#k8.f32.tf32.tf32 {+d:frag}*wgmma_d, {a:b32}*4, bdesc:b64, scaled:pred, #imma:any, #immb:any", "9.7.15.5.2"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sync.aligned.m64n#k32.<f16|f32>.<e4m3|e5m2>.<e4m3|e5m2> {+d:frag}*wgmma_d, adesc:b64, bdesc:b64, scaled:pred, #imma:any, #immb:any", "9.7.15.5.2"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sync.aligned.m64n#k32.<f16|f32>.<e4m3|e5m2>.<e4m3|e5m2> {+d:frag}*wgmma_d, {a:b32}*4, bdesc:b64, scaled:pred, #imma:any, #immb:any", "9.7.15.5.2"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sync.aligned.m64n#k32{.satfinite}.s32.<u8|s8>.<u8|s8> {+d:frag}*wgmma_d, adesc:b64, bdesc:b64, scaled:pred", "9.7.15.5.2"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sync.aligned.m64n#k32{.satfinite}.s32.<u8|s8>.<u8|s8> {+d:frag}*wgmma_d, {a:b32}*4, bdesc:b64, scaled:pred", "9.7.15.5.2"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sp.sync.aligned.m64n#k32.<f16|f32>.f16.f16 {+d:frag}*wgmma_d, adesc:b64, bdesc:b64, meta:b32, #select:any, scaled:pred, #imma:any, #immb:any, #transa:any, #transb:any", "9.7.15.6.3"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sp.sync.aligned.m64n#k32.<f16|f32>.f16.f16 {+d:frag}*wgmma_d, {a:b32}*4, bdesc:b64, meta:b32, #select:any, scaled:pred, #imma:any, #immb:any, #transb:any", "9.7.15.6.3"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sp.sync.aligned.m64n#k32.f32.bf16.bf16 {+d:frag}*wgmma_d, adesc:b64, bdesc:b64, meta:b32, #select:any, scaled:pred, #imma:any, #immb:any, #transa:any, #transb:any", "9.7.15.6.3"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sp.sync.aligned.m64n#k32.f32.bf16.bf16 {+d:frag}*wgmma_d, {a:b32}*4, bdesc:b64, meta:b32, #select:any, scaled:pred, #imma:any, #immb:any, #transb:any", "9.7.15.6.3"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sp.sync.aligned.m64n#k16.f32.tf32.tf32 {+d:frag}*wgmma_d, adesc:b64, bdesc:b64, meta:b32, #select:any, scaled:pred, #imma:any, #immb:any", "9.7.15.6.3"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sp.sync.aligned.m64n#k16.f32.tf32.tf32 {+d:frag}*wgmma_d, {a:b32}*4, bdesc:b64, meta:b32, #select:any, scaled:pred, #imma:any, #immb:any", "9.7.15.6.3"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sp.sync.aligned.m64n#k64.<f16|f32>.<e4m3|e5m2>.<e4m3|e5m2> {+d:frag}*wgmma_d, adesc:b64, bdesc:b64, meta:b32, #select:any, scaled:pred, #imma:any, #immb:any", "9.7.15.6.3"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sp.sync.aligned.m64n#k64.<f16|f32>.<e4m3|e5m2>.<e4m3|e5m2> {+d:frag}*wgmma_d, {a:b32}*4, bdesc:b64, meta:b32, #select:any, scaled:pred, #imma:any, #immb:any", "9.7.15.6.3"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sp.sync.aligned.m64n#k64{.satfinite}.s32.<u8|s8>.<u8|s8> {+d:frag}*wgmma_d, adesc:b64, bdesc:b64, meta:b32, #select:any, scaled:pred", "9.7.15.6.3"},
    {kWgmmaMmaAsync, "wgmma.mma_async.sp.sync.aligned.m64n#k64{.satfinite}.s32.<u8|s8>.<u8|s8> {+d:frag}*wgmma_d, {a:b32}*4, bdesc:b64, meta:b32, #select:any, scaled:pred", "9.7.15.6.3"},
    {kWgmmaFence, "wgmma.fence.sync.aligned", "9.7.15.7.1"},
    {kWgmmaCommitGroup, "wgmma.commit_group.sync.aligned", "9.7.15.7.2"},
    {kWgmmaWaitGroup, "wgmma.wait_group.sync.aligned #n:any", "9.7.15.7.3"},
    {kTcgen05Alloc, "tcgen05.alloc.<@cta_group>.sync.aligned{.shared::cta}.b32 [dst], ncols", "9.7.16.7.1"},
    {kTcgen05Dealloc, "tcgen05.dealloc.<@cta_group>.sync.aligned.b32 taddr, ncols", "9.7.16.7.1"},
    {kTcgen05RelinquishAllocPermit, "tcgen05.relinquish_alloc_permit.<@cta_group>.sync.aligned", "9.7.16.7.1"},
    {kTcgen05Ld, "tcgen05.ld.sync.aligned.<16x64b|16x128b|16x256b|32x32b>.<@num>{.pack::16b}.b32 {=r}*tmem, [taddr]", "9.7.16.8.3"},
    {kTcgen05Ld, "tcgen05.ld.sync.aligned.16x32bx2.<@num>{.pack::16b}.b32 {=r}*tmem, [taddr], #offset:any", "9.7.16.8.3"},
    {kTcgen05Ld, "tcgen05.ld.red.sync.aligned.32x32b.<@num>.<min|max>{.abs}{.NaN}.f32 {=r}*tmem, =redval, [taddr]", "9.7.16.8.3"},
    {kTcgen05Ld, "tcgen05.ld.red.sync.aligned.32x32b.<@num>.<min|max>.<u32|s32> {=r}*tmem, =redval, [taddr]", "9.7.16.8.3"},
    {kTcgen05Ld, "tcgen05.ld.red.sync.aligned.16x32bx2.<@num>.<min|max>{.abs}{.NaN}.f32 {=r}*tmem, =redval, [taddr], #offset:any", "9.7.16.8.3"},
    {kTcgen05Ld, "tcgen05.ld.red.sync.aligned.16x32bx2.<@num>.<min|max>.<u32|s32> {=r}*tmem, =redval, [taddr], #offset:any", "9.7.16.8.3"},
    {kTcgen05St, "tcgen05.st.sync.aligned.<16x64b|16x128b|16x256b|32x32b>.<@num>{.unpack::16b}.b32 [taddr], {r}*tmem", "9.7.16.8.4"},
    {kTcgen05St, "tcgen05.st.sync.aligned.16x32bx2.<@num>{.unpack::16b}.b32 [taddr], #offset:any, {r}*tmem", "9.7.16.8.4"},
    {kTcgen05Wait, "tcgen05.<wait::ld|wait::st>.sync.aligned", "9.7.16.8.5"},
    {kTcgen05Cp, "tcgen05.cp.<@cta_group>.<128x256b|4x256b|128x128b>{.b8x16.<b6x16_p32|b4x16_p64>} [taddr], sdesc:b64", "9.7.16.9.2"},
    {kTcgen05Cp, "tcgen05.cp.<@cta_group>.64x128b.<warpx2::02_13|warpx2::01_23>{.b8x16.<b6x16_p32|b4x16_p64>} [taddr], sdesc:b64", "9.7.16.9.2"},
    {kTcgen05Cp, "tcgen05.cp.<@cta_group>.32x128b.warpx4{.b8x16.<b6x16_p32|b4x16_p64>} [taddr], sdesc:b64", "9.7.16.9.2"},
    {kTcgen05Shift, "tcgen05.shift.<@cta_group>.down [taddr]", "9.7.16.9.3", "which lanes it moves is not documented"},
    {kTcgen05Mma, "tcgen05.mma.<@cta_group>.<kind::f16|kind::tf32|kind::f8f6f4|kind::i8>{.<@collector_a>} [d], a:b64, b:b64, idesc:b32, ?{mask:b32}*any, enable:pred, ?#scale:any", "9.7.16.10.9.1"},
    {kTcgen05Mma, "tcgen05.mma.<@cta_group>.<kind::f16|kind::tf32|kind::f8f6f4|kind::i8>{.ashift}{.<@collector_a>} [d], [a], b:b64, idesc:b32, ?{mask:b32}*any, enable:pred, ?#scale:any", "9.7.16.10.9.1"},
    {kTcgen05Mma, "tcgen05.mma.<@cta_group>.<kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4>.block_scale{.<@scale_vec>}{.<@collector_a>} [d], a:b64, b:b64, idesc:b32, [sa], [sb], enable:pred", "9.7.16.10.9.1"},
    {kTcgen05Mma, "tcgen05.mma.<@cta_group>.<kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4>.block_scale{.<@scale_vec>}{.<@collector_a>} [d], [a], b:b64, idesc:b32, [sa], [sb], enable:pred", "9.7.16.10.9.1"},
    {kTcgen05Mma, "tcgen05.mma.sp.<@cta_group>.<kind::f16|kind::tf32|kind::f8f6f4|kind::i8>{.<@collector_a>} [d], a:b64, b:b64, [meta], idesc:b32, ?{mask:b32}*any, enable:pred, ?#scale:any", "9.7.16.10.9.2"},
    {kTcgen05Mma, "tcgen05.mma.sp.<@cta_group>.<kind::f16|kind::tf32|kind::f8f6f4|kind::i8>{.ashift}{.<@collector_a>} [d], [a], b:b64, [meta], idesc:b32, ?{mask:b32}*any, enable:pred, ?#scale:any", "9.7.16.10.9.2"},
    {kTcgen05Mma, "tcgen05.mma.sp.<@cta_group>.<kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4>.block_scale{.<@scale_vec>}{.<@collector_a>} [d], a:b64, b:b64, [meta], idesc:b32, [sa], [sb], enable:pred", "9.7.16.10.9.2"},
    {kTcgen05Mma, "tcgen05.mma.sp.<@cta_group>.<kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4>.block_scale{.<@scale_vec>}{.<@collector_a>} [d], [a], b:b64, [meta], idesc:b32, [sa], [sb], enable:pred", "9.7.16.10.9.2"},
    {kTcgen05MmaWs, "tcgen05.mma.ws.cta_group::1.<kind::f16|kind::tf32|kind::f8f6f4|kind::i8>{.<@collector_b>} [d], a:b64, b:b64, idesc:b32, enable:pred, ?zeromask:b64", "9.7.16.10.9.3"},
    {kTcgen05MmaWs, "tcgen05.mma.ws.cta_group::1.<kind::f16|kind::tf32|kind::f8f6f4|kind::i8>{.<@collector_b>} [d], [a], b:b64, idesc:b32, enable:pred, ?zeromask:b64", "9.7.16.10.9.3"},
    {kTcgen05MmaWs, "tcgen05.mma.ws.sp.cta_group::1.<kind::f16|kind::tf32|kind::f8f6f4|kind::i8>{.<@collector_b>} [d], a:b64, b:b64, [meta], idesc:b32, enable:pred, ?zeromask:b64", "9.7.16.10.9.4"},
    {kTcgen05MmaWs, "tcgen05.mma.ws.sp.cta_group::1.<kind::f16|kind::tf32|kind::f8f6f4|kind::i8>{.<@collector_b>} [d], [a], b:b64, [meta], idesc:b32, enable:pred, ?zeromask:b64", "9.7.16.10.9.4"},
    {kTcgen05Fence, "tcgen05.<fence::before_thread_sync|fence::after_thread_sync>", "9.7.16.11.1"},
    {kTcgen05Commit, "tcgen05.commit.<@cta_group>.mbarrier::arrive::one{.shared::cluster}{.multicast::cluster}.b64 [mbar], mask:b16?multicast::cluster", "9.7.16.12.1"},
};
// clang-format on

}  // namespace

std::span<const FormRow> tensor_core_rows() {
  return kRows;
}

}  // namespace jitgemm::ptx
