// SPDX-License-Identifier: Apache-2.0
// Loads, stores, cache control and atomics: PTX ISA 9.7.9.8 - 9.7.9.18 and 9.7.13.5 - 9.7.13.7.
#include "ptx/instruction_rows.h"

namespace jitgemm::ptx {
namespace {

using enum Opcode;

// clang-format off
constexpr FormRow kRows[] = {
    {kLd, "ld{.weak}{.<@space>}{.<@cop_ld>}{.<@l1>}{.<@l2>}{.L2::cache_hint}{.<@prefetch>}{.<v2|v4|v8>}.<@mem|b128> =d:ge0*vec, [a], policy:b64?L2::cache_hint", "9.7.9.8"},
    {kLd, "ld.volatile{.<@space>}{.<@prefetch>}{.<v2|v4>}.<@mem|b128> =d:ge0*vec, [a]", "9.7.9.8"},
    {kLd, "ld.<relaxed|acquire>.<@scope>{.<@space>}{.<@l1>}{.<@l2>}{.L2::cache_hint}{.<@prefetch>}{.<v2|v4|v8>}.<@mem|b128> =d:ge0*vec, [a], policy:b64?L2::cache_hint", "9.7.9.8"},
    {kLd, "ld.mmio.relaxed.sys{.global}.<@mem> =d:ge0, [a]", "9.7.9.8"},
    {kLd, "ld.global{.<ca|cg|cs>}.nc{.<@l1>}{.<@l2>}{.L2::cache_hint}{.<@prefetch>}{.<v2|v4|v8>}.<@mem|b128> =d:ge0*vec, [a], policy:b64?L2::cache_hint", "9.7.9.9"},
    {kLdu, "ldu{.global}{.<v2|v4>}.<@mem> =d:ge0*vec, [a]", "9.7.9.10"},
    {kSt, "st{.weak}{.<@space>}{.<wb|cg|cs|wt>}{.<@l1>}{.<@l2>}{.L2::cache_hint}{.<v2|v4|v8>}.<@mem|b128> [a], b:ge0*vec, policy:b64?L2::cache_hint", "9.7.9.11"},
    {kSt, "st.volatile{.<@space>}{.<v2|v4>}.<@mem|b128> [a], b:ge0*vec", "9.7.9.11"},
    {kSt, "st.<relaxed|release>.<@scope>{.<@space>}{.<@l1>}{.<@l2>}{.L2::cache_hint}{.<v2|v4|v8>}.<@mem|b128> [a], b:ge0*vec, policy:b64?L2::cache_hint", "9.7.9.11"},
    {kSt, "st.mmio.relaxed.sys{.global}.<@mem> [a], b:ge0", "9.7.9.11"},
    {kStAsync, "st.async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes{.<v2|v4>}.<b32|b64|u32|u64|s32|s64|f32|f64> [a], b*vec, [mbar]", "9.7.9.12"},
    {kStBulk, "st.bulk{.weak}{.shared::cta} [a], size:u64, #initval:any", "9.7.9.13"},
    {kPrefetch, "prefetch{.<global|local>}.<L1|L2> [a]", "9.7.9.15"},
    {kPrefetch, "prefetch.global.<L2::evict_last|L2::evict_normal> [a]", "9.7.9.15"},
    {kPrefetch, "prefetch{.<const|param|param::entry>}.tensormap [a]", "9.7.9.15"},
    {kPrefetchu, "prefetchu.L1 [a]", "9.7.9.15"},
    {kApplypriority, "applypriority{.global}.L2::evict_normal [a], #size:any", "9.7.9.16"},
    {kDiscard, "discard{.global}.L2 [a], #size:any", "9.7.9.17"},
    {kCreatepolicy, "createpolicy.range{.global}.<@l2>{.<L2::evict_first|L2::evict_unchanged>}.b64 =policy, [a], primary:u32, total:u32", "9.7.9.18"},
    {kCreatepolicy, "createpolicy.fractional.<@l2>{.<L2::evict_first|L2::evict_unchanged>}.b64 =policy, ?fraction:f32", "9.7.9.18"},
    {kCreatepolicy, "createpolicy.cvt.L2.b64 =policy, a", "9.7.9.18"},
    {kAtom, "atom{.<relaxed|acquire|release|acq_rel>}{.<@scope>}{.<global|shared|shared::cta|shared::cluster>}.<and|or|xor>{.L2::cache_hint}.<b32|b64> =d, [a], b, policy:b64?L2::cache_hint", "9.7.13.5"},
    {kAtom, "atom{.<relaxed|acquire|release|acq_rel>}{.<@scope>}{.<global|shared|shared::cta|shared::cluster>}.exch{.L2::cache_hint}.<b32|b64|b128> =d, [a], b, policy:b64?L2::cache_hint", "9.7.13.5"},
    {kAtom, "atom{.<relaxed|acquire|release|acq_rel>}{.<@scope>}{.<global|shared|shared::cta|shared::cluster>}.cas{.L2::cache_hint}.<b16|b32|b64|b128> =d, [a], b, c, policy:b64?L2::cache_hint", "9.7.13.5"},
    {kAtom, "atom{.<relaxed|acquire|release|acq_rel>}{.<@scope>}{.<global|shared|shared::cta|shared::cluster>}.add{.L2::cache_hint}.<u32|s32|u64|s64|f32|f64> =d, [a], b, policy:b64?L2::cache_hint", "9.7.13.5"},
    {kAtom, "atom{.<relaxed|acquire|release|acq_rel>}{.<@scope>}{.<global|shared|shared::cta|shared::cluster>}.<inc|dec>{.L2::cache_hint}.u32 =d, [a], b, policy:b64?L2::cache_hint", "9.7.13.5"},
    {kAtom, "atom{.<relaxed|acquire|release|acq_rel>}{.<@scope>}{.<global|shared|shared::cta|shared::cluster>}.<min|max>{.L2::cache_hint}.<u32|s32|u64|s64> =d, [a], b, policy:b64?L2::cache_hint", "9.7.13.5"},
    {kAtom, "atom{.<relaxed|acquire|release|acq_rel>}{.<@scope>}{.<global|shared|shared::cta|shared::cluster>}.add.noftz{.L2::cache_hint}.<f16|f16x2|bf16|bf16x2> =d, [a], b, policy:b64?L2::cache_hint", "9.7.13.5"},
    {kAtom, "atom{.<relaxed|acquire|release|acq_rel>}{.<@scope>}{.global}.add{.L2::cache_hint}.<v2|v4>.f32 {=d}*vec, [a], {b}*vec, policy:b64?L2::cache_hint", "9.7.13.5"},
    {kAtom, "atom{.<relaxed|acquire|release|acq_rel>}{.<@scope>}{.global}.<add|min|max>.noftz{.L2::cache_hint}.<v2|v4|v8>.<f16|bf16> {=d}*vec, [a], {b}*vec, policy:b64?L2::cache_hint", "9.7.13.5"},
    {kAtom, "atom{.<relaxed|acquire|release|acq_rel>}{.<@scope>}{.global}.<add|min|max>.noftz{.L2::cache_hint}.<v2|v4>.<f16x2|bf16x2> {=d}*vec, [a], {b}*vec, policy:b64?L2::cache_hint", "9.7.13.5"},
    {kRed, "red{.<relaxed|release>}{.<@scope>}{.<global|shared|shared::cta|shared::cluster>}.<and|or|xor>{.L2::cache_hint}.<b32|b64> [a], b, policy:b64?L2::cache_hint", "9.7.13.6"},
    {kRed, "red{.<relaxed|release>}{.<@scope>}{.<global|shared|shared::cta|shared::cluster>}.add{.L2::cache_hint}.<u32|s32|u64|s64|f32|f64> [a], b, policy:b64?L2::cache_hint", "9.7.13.6"},
    {kRed, "red{.<relaxed|release>}{.<@scope>}{.<global|shared|shared::cta|shared::cluster>}.<inc|dec>{.L2::cache_hint}.u32 [a], b, policy:b64?L2::cache_hint", "9.7.13.6"},
    {kRed, "red{.<relaxed|release>}{.<@scope>}{.<global|shared|shared::cta|shared::cluster>}.<min|max>{.L2::cache_hint}.<u32|s32|u64|s64> [a], b, policy:b64?L2::cache_hint", "9.7.13.6"},
    {kRed, "red{.<relaxed|release>}{.<@scope>}{.<global|shared|shared::cta|shared::cluster>}.add.noftz{.L2::cache_hint}.<f16|f16x2|bf16|bf16x2> [a], b, policy:b64?L2::cache_hint", "9.7.13.6"},
    {kRed, "red{.<relaxed|release>}{.<@scope>}{.global}.add{.L2::cache_hint}.<v2|v4>.f32 [a], {b}*vec, policy:b64?L2::cache_hint", "9.7.13.6"},
    {kRed, "red{.<relaxed|release>}{.<@scope>}{.global}.<add|min|max>.noftz{.L2::cache_hint}.<v2|v4|v8>.<f16|bf16> [a], {b}*vec, policy:b64?L2::cache_hint", "9.7.13.6"},
    {kRed, "red{.<relaxed|release>}{.<@scope>}{.global}.<add|min|max>.noftz{.L2::cache_hint}.<v2|v4>.<f16x2|bf16x2> [a], {b}*vec, policy:b64?L2::cache_hint", "9.7.13.6"},
    {kRedAsync, "red.async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes.<inc|dec|min|max|add|and|or|xor>.<b32|u32|s32|u64> [a], b, [mbar]", "9.7.13.7"},
    {kAlloca, "alloca.<u32|u64> =ptr, size, ?#align:any", "9.7.11.3"},
    {kStacksave, "stacksave.<u32|u64> =d", "9.7.11.1"},
    {kStackrestore, "stackrestore.<u32|u64> a", "9.7.11.2"},
};
// clang-format on

}  // namespace

std::span<const FormRow> memory_rows() {
  return kRows;
}

}  // namespace jitgemm::ptx
