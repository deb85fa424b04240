// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies, bulk copies and tensor copies: PTX ISA 9.7.9.25 - 9.7.9.27.
#include "ptx/instruction_rows.h"

namespace jitgemm::ptx {
namespace {

using enum Opcode;

// clang-format off
constexpr FormRow kRows[] = {
    {kCpAsync, "cp.async.<ca|cg>.<shared|shared::cta>.global{.L2::cache_hint}{.<@prefetch>} [dst], [src], #size:any, ?srcsize:u32, policy:b64?L2::cache_hint", "9.7.9.25.3.1"},
    {kCpAsync, "cp.async.<ca|cg>.<shared|shared::cta>.global{.L2::cache_hint}{.<@prefetch>} [dst], [src], #size:any, $ignore:pred, policy:b64?L2::cache_hint", "9.7.9.25.3.1"},
    {kCpAsyncCommitGroup, "cp.async.commit_group", "9.7.9.25.3.2"},
    {kCpAsyncWaitGroup, "cp.async.wait_group #n:any", "9.7.9.25.3.3"},
    {kCpAsyncWaitAll, "cp.async.wait_all", "9.7.9.25.3.3"},
    {kCpAsyncBulk, "cp.async.bulk.<shared::cta|shared::cluster>.global.mbarrier::complete_tx::bytes{.multicast::cluster}{.L2::cache_hint} [dst], [src], size:u32, [mbar], mask:b16?multicast::cluster, policy:b64?L2::cache_hint", "9.7.9.25.4.1"},
    {kCpAsyncBulk, "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [dst], [src], size:u32, [mbar]", "9.7.9.25.4.1"},
    {kCpAsyncBulk, "cp.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}{.cp_mask} [dst], [src], size:u32, policy:b64?L2::cache_hint, bytemask:b16?cp_mask", "9.7.9.25.4.1"},
    {kCpReduceAsyncBulk, "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.<and|or|xor|add|inc|dec|min|max>.<b32|b64|u32|s32|u64|s64> [dst], [src], size:u32, [mbar]", "9.7.9.25.4.2"},
    {kCpReduceAsyncBulk, "cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.<and|or|xor|add|inc|dec|min|max>.<b32|b64|u32|s32|u64|s64|f16|bf16|f32|f64> [dst], [src], size:u32, policy:b64?L2::cache_hint", "9.7.9.25.4.2"},
    {kCpReduceAsyncBulk, "cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.add.noftz.<f16|bf16> [dst], [src], size:u32, policy:b64?L2::cache_hint", "9.7.9.25.4.2"},
    {kCpAsyncBulkPrefetch, "cp.async.bulk.prefetch.L2.global{.L2::cache_hint} [src], size:u32, policy:b64?L2::cache_hint", "9.7.9.25.4.3"},
    {kCpAsyncBulkTensor, "cp.async.bulk.tensor.<@dim>.<shared::cta|shared::cluster>.global{.<tile|tile::gather4>}.mbarrier::complete_tx::bytes{.multicast::cluster}{.<@cta_group>}{.L2::cache_hint} [dst], [map, {c:b32}*coordinates], [mbar], mask:b16?multicast::cluster, policy:b64?L2::cache_hint", "9.7.9.25.5.2"},
    {kCpAsyncBulkTensor, "cp.async.bulk.tensor.<@dim>.<shared::cta|shared::cluster>.global.im2col.mbarrier::complete_tx::bytes{.multicast::cluster}{.<@cta_group>}{.L2::cache_hint} [dst], [map, {c:b32}*dim], [mbar], {info:b16}*any, mask:b16?multicast::cluster, policy:b64?L2::cache_hint", "9.7.9.25.5.2"},
    {kCpAsyncBulkTensor, "cp.async.bulk.tensor.<@dim>.<shared::cta|shared::cluster>.global.<im2col::w|im2col::w::128>.mbarrier::complete_tx::bytes{.multicast::cluster}{.<@cta_group>}{.L2::cache_hint} [dst], [map, {c:b32}*dim], [mbar], {info:b16}*any, mask:b16?multicast::cluster, policy:b64?L2::cache_hint", "9.7.9.25.5.2", "where a row of pixels goes on is shown in pictures only"},
    {kCpAsyncBulkTensor, "cp.async.bulk.tensor.<@dim>.global.shared::cta{.<tile|tile::scatter4>}.bulk_group{.L2::cache_hint} [map, {c:b32}*coordinates], [src], policy:b64?L2::cache_hint", "9.7.9.25.5.2"},
    {kCpAsyncBulkTensor, "cp.async.bulk.tensor.<@dim>.global.shared::cta.im2col_no_offs.bulk_group{.L2::cache_hint} [map, {c:b32}*dim], [src], policy:b64?L2::cache_hint", "9.7.9.25.5.2"},
    {kCpReduceAsyncBulkTensor, "cp.reduce.async.bulk.tensor.<@dim>.global.shared::cta.<and|or|xor|add|inc|dec|min|max>{.tile}.bulk_group{.L2::cache_hint} [map, {c:b32}*dim], [src], policy:b64?L2::cache_hint", "9.7.9.25.5.3"},
    {kCpReduceAsyncBulkTensor, "cp.reduce.async.bulk.tensor.<@dim>.global.shared::cta.<and|or|xor|add|inc|dec|min|max>.im2col_no_offs.bulk_group{.L2::cache_hint} [map, {c:b32}*dim], [src], policy:b64?L2::cache_hint", "9.7.9.25.5.3"},
    {kCpAsyncBulkPrefetchTensor, "cp.async.bulk.prefetch.tensor.<@dim>.L2.global{.<tile|tile::gather4>}{.L2::cache_hint} [map, {c:b32}*coordinates], policy:b64?L2::cache_hint", "9.7.9.25.5.4"},
    {kCpAsyncBulkPrefetchTensor, "cp.async.bulk.prefetch.tensor.<@dim>.L2.global.im2col{.L2::cache_hint} [map, {c:b32}*dim], {info:b16}*any, policy:b64?L2::cache_hint", "9.7.9.25.5.4"},
    {kCpAsyncBulkPrefetchTensor, "cp.async.bulk.prefetch.tensor.<@dim>.L2.global.<im2col::w|im2col::w::128>{.L2::cache_hint} [map, {c:b32}*dim], {info:b16}*any, policy:b64?L2::cache_hint", "9.7.9.25.5.4", "where a row of pixels goes on is shown in pictures only"},
    {kCpAsyncBulkCommitGroup, "cp.async.bulk.commit_group", "9.7.9.25.6.1"},
    {kCpAsyncBulkWaitGroup, "cp.async.bulk.wait_group{.read} #n:any", "9.7.9.25.6.2"},
    {kTensormapReplace, "tensormap.replace.tile.global_address{.<global|shared::cta>}.b1024.b64 [addr], value", "9.7.9.26"},
    {kTensormapReplace, "tensormap.replace.tile.<rank|elemtype|interleave_layout|swizzle_mode|swizzle_atomicity|fill_mode>{.<global|shared::cta>}.b1024.b32 [addr], value", "9.7.9.26"},
    {kTensormapReplace, "tensormap.replace.tile.<box_dim|global_dim|element_stride>{.<global|shared::cta>}.b1024.b32 [addr], #ord:any, value", "9.7.9.26"},
    {kTensormapReplace, "tensormap.replace.tile.global_stride{.<global|shared::cta>}.b1024.b64 [addr], #ord:any, value", "9.7.9.26"},
    {kTensormapCpFenceproxy, "tensormap.cp_fenceproxy.global.<shared|shared::cta>.tensormap::generic.release.<@scope>.sync.aligned [dst], [src], #size:any", "9.7.13.16"},
};
// clang-format on

}  // namespace

std::span<const FormRow> copy_rows() {
  return kRows;
}

}  // namespace jitgemm::ptx
