// SPDX-License-Identifier: Apache-2.0
// The rules were checked against what ptxas 13.0 accepts, text by text of the instruction table and
// target by target (tests/data/ptx_targets).
#include "ptx/targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace jitgemm::ptx {
namespace {

using enum Opcode;

// Holds for mnemonics with all of these words; all rules that apply must hold. A family without a
// rule is on every target.
struct Rule {
  Opcode opcode;
  std::string_view words;
  std::string_view targets;
};

// clang-format off
constexpr Rule kRules[] = {
    {kAdd, "bf16", "90+"},
    {kAdd, "bf16 f32", "100+"},
    {kAdd, "bf16x2", "90+"},
    {kAdd, "f16 f32", "100+"},
    {kAdd, "f32x2", "100+"},
    {kAdd, "s16x2", "90+"},
    {kAdd, "u16x2", "90+"},
    {kSub, "bf16", "90+"},
    {kSub, "bf16 f32", "100+"},
    {kSub, "bf16x2", "90+"},
    {kSub, "f16 f32", "100+"},
    {kSub, "f32x2", "100+"},
    {kMul, "bf16", "90+"},
    {kMul, "bf16x2", "90+"},
    {kMul, "f32x2", "100+"},
    {kAbs, "bf16", "80+"},
    {kAbs, "bf16x2", "80+"},
    {kNeg, "bf16", "80+"},
    {kNeg, "bf16x2", "80+"},
    {kMin, "NaN", "80+"},
    {kMin, "abs", "86+"},
    {kMin, "bf16", "80+"},
    {kMin, "bf16x2", "80+"},
    {kMin, "f16", "80+"},
    {kMin, "f16x2", "80+"},
    {kMin, "relu", "90+"},
    {kMin, "s16x2", "90+"},
    {kMin, "u16x2", "90+"},
    {kMax, "NaN", "80+"},
    {kMax, "abs", "86+"},
    {kMax, "bf16", "80+"},
    {kMax, "bf16x2", "80+"},
    {kMax, "f16", "80+"},
    {kMax, "f16x2", "80+"},
    {kMax, "relu", "90+"},
    {kMax, "s16x2", "90+"},
    {kMax, "u16x2", "90+"},
    {kFma, "bf16", "80+"},
    {kFma, "bf16 f32", "100+"},
    {kFma, "bf16x2", "80+"},
    {kFma, "f16 f32", "100+"},
    {kFma, "f32x2", "100+"},
    {kFma, "oob", "90+"},
    {kFma, "relu", "80+"},
    {kEx2, "bf16", "90+"},
    {kEx2, "bf16x2", "90+"},
    {kTanh, "bf16", "90+"},
    {kTanh, "bf16x2", "90+"},
    {kSet, "bf16", "90+"},
    {kSetp, "bf16", "90+"},
    {kSetp, "bf16x2", "90+"},
    {kLd, "L2::256B", "80+"},
    {kLd, "L2::cache_hint", "80+"},
    {kLd, "cluster", "90+"},
    {kLd, "shared::cluster", "90+"},
    {kSt, "L2::cache_hint", "80+"},
    {kSt, "cluster", "90+"},
    {kSt, "shared::cluster", "90+"},
    {kStAsync, "", "90+"},
    {kStBulk, "", "100+"},
    {kPrefetch, "L2::evict_last", "80+"},
    {kPrefetch, "L2::evict_normal", "80+"},
    {kPrefetch, "tensormap", "90+"},
    {kApplypriority, "", "80+"},
    {kDiscard, "", "80+"},
    {kCreatepolicy, "", "80+"},
    {kIsspacep, "shared::cluster", "90+"},
    {kCvta, "shared::cluster", "90+"},
    {kCvt, "bf16", "80+"},
    {kCvt, "bf16 f16", "90+"},
    {kCvt, "bf16x2", "80+"},
    {kCvt, "e2m1x2", "100f 110f 120f"},
    {kCvt, "e2m3x2", "100f 110f 120f"},
    {kCvt, "e3m2x2", "100f 110f 120f"},
    {kCvt, "e4m3x2", "89+"},
    {kCvt, "e5m2x2", "89+"},
    {kCvt, "f16x2", "80+"},
    {kCvt, "relu", "80+"},
    {kCvt, "rn satfinite tf32", "100+"},
    {kCvt, "rn tf32", "90+"},
    {kCvt, "rna", "80+"},
    {kCvt, "rs", "100a 103a"},
    {kCvt, "rz tf32", "90+"},
    {kCvt, "ue8m0x2", "100f 110f 120f"},
    {kMapa, "", "90+"},
    {kGetctarank, "", "90+"},
    {kCpAsync, "", "80+"},
    {kCpAsyncCommitGroup, "", "80+"},
    {kCpAsyncWaitGroup, "", "80+"},
    {kCpAsyncWaitAll, "", "80+"},
    {kCpAsyncMbarrierArrive, "", "80+"},
    {kCpAsyncBulk, "", "90+"},
    {kCpAsyncBulk, "cp_mask", "100+"},
    {kCpReduceAsyncBulk, "", "90+"},
    {kCpAsyncBulkPrefetch, "", "90+"},
    {kCpAsyncBulkTensor, "", "90+"},
    {kCpAsyncBulkTensor, "cta_group::1", "100f 110f"},
    {kCpAsyncBulkTensor, "cta_group::2", "100f 110f"},
    {kCpReduceAsyncBulkTensor, "", "90+"},
    {kCpAsyncBulkPrefetchTensor, "", "90+"},
    {kCpAsyncBulkCommitGroup, "", "90+"},
    {kCpAsyncBulkWaitGroup, "", "90+"},
    {kTensormapReplace, "", "90a 100f 110f 120f"},
    {kTensormapCpFenceproxy, "", "90+"},
    {kBarrierClusterArrive, "", "90+"},
    {kBarrierClusterWait, "", "90+"},
    {kFence, "cluster", "90+"},
    {kFenceProxy, "async", "90+"},
    {kFenceProxy, "async::generic", "90+"},
    {kFenceProxy, "tensormap::generic", "90+"},
    {kFenceMbarrierInit, "", "90+"},
    {kAtom, "L2::cache_hint", "80+"},
    {kAtom, "b128", "90+"},
    {kAtom, "bf16", "90+"},
    {kAtom, "bf16x2", "90+"},
    {kAtom, "cluster", "90+"},
    {kAtom, "shared::cluster", "90+"},
    {kAtom, "v2", "90+"},
    {kAtom, "v4", "90+"},
    {kAtom, "v8", "90+"},
    {kRed, "L2::cache_hint", "80+"},
    {kRed, "bf16", "90+"},
    {kRed, "bf16x2", "90+"},
    {kRed, "cluster", "90+"},
    {kRed, "shared::cluster", "90+"},
    {kRed, "v2", "90+"},
    {kRed, "v4", "90+"},
    {kRed, "v8", "90+"},
    {kRedAsync, "", "90+"},
    {kRedux, "", "80+"},
    {kRedux, "f32", "100f"},
    {kGriddepcontrol, "", "90+"},
    {kElect, "", "90+"},
    {kMbarrierInit, "", "80+"},
    {kMbarrierInval, "", "80+"},
    {kMbarrierExpectTx, "", "90+"},
    {kMbarrierCompleteTx, "", "90+"},
    {kMbarrierArrive, "", "80+"},
    {kMbarrierArrive, "cluster", "90+"},
    {kMbarrierArrive, "expect_tx", "90+"},
    {kMbarrierArrive, "shared::cluster", "90+"},
    {kMbarrierArriveDrop, "", "80+"},
    {kMbarrierArriveDrop, "expect_tx", "90+"},
    {kMbarrierArriveDrop, "shared::cluster", "90+"},
    {kMbarrierTestWait, "", "80+"},
    {kMbarrierTryWait, "", "90+"},
    {kMbarrierPendingCount, "", "80+"},
    {kClusterlaunchcontrolTryCancel, "", "100+"},
    {kClusterlaunchcontrolTryCancel, "multicast::cluster::all", "100f 110f 120f"},
    {kClusterlaunchcontrolQueryCancel, "", "100+"},
    {kLdmatrix, "b8", "100f 110f 120f"},
    {kLdmatrix, "b8x16", "100f 110f 120f"},
    {kStmatrix, "", "90+"},
    {kStmatrix, "b8", "100f 110f 120f"},
    {kMma, "bf16", "80+"},
    {kMma, "block_scale", "120f"},
    {kMma, "e2m1", "120f"},
    {kMma, "e2m3", "120f"},
    {kMma, "e3m2", "120f"},
    {kMma, "e4m3", "89+"},
    {kMma, "f64", "80+"},
    {kMma, "f64 m16n8k16", "90+"},
    {kMma, "f64 m16n8k4", "90+"},
    {kMma, "f64 m16n8k8", "90+"},
    {kMma, "kind::f8f6f4", "100f 110f 120f"},
    {kMma, "m16n8k16", "80+"},
    {kMma, "m16n8k32", "80+"},
    {kMma, "m16n8k64", "80+"},
    {kMma, "tf32", "80+"},
    {kWgmmaMmaAsync, "", "90a"},
    {kWgmmaFence, "", "90a"},
    {kWgmmaCommitGroup, "", "90a"},
    {kWgmmaWaitGroup, "", "90a"},
    {kTcgen05Alloc, "", "100f 110f"},
    {kTcgen05Dealloc, "", "100f 110f"},
    {kTcgen05RelinquishAllocPermit, "", "100f 110f"},
    {kTcgen05Ld, "", "100f 110f"},
    {kTcgen05Ld, "red", "103f 110f"},
    {kTcgen05St, "", "100f 110f"},
    {kTcgen05Wait, "", "100f 110f"},
    {kTcgen05Cp, "", "100f 110f"},
    {kTcgen05Shift, "", "100a 103a 110a"},
    {kTcgen05Mma, "", "100f 110f"},
    {kTcgen05Mma, "kind::i8", "100a 110a"},
    {kTcgen05Mma, "scale_vec::1X", "100a 103a 110a"},
    {kTcgen05Mma, "scale_vec::2X", "100a 103a 110a"},
    {kTcgen05Mma, "scale_vec::4X", "100a 103a 110a"},
    {kTcgen05Mma, "sp kind::mxf4", "100a 103a 110a"},
    {kTcgen05Mma, "sp kind::mxf4nvf4", "100a 103a 110a"},
    {kTcgen05MmaWs, "", "100f 110f"},
    {kTcgen05MmaWs, "kind::i8", "100a 110a"},
    {kTcgen05Fence, "", "100f 110f"},
    {kTcgen05Commit, "", "100f 110f"},
    {kSetmaxnreg, "", "90a 100f 110f 120f"},
};
// clang-format on

// Calls f with each part of a text between separators.
template <typename F>
void for_parts(std::string_view text, char separator, F f) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) f(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool has_word(std::string_view mnemonic, std::string_view word) {
  bool found = false;
  for_parts(mnemonic, '.', [&](std::string_view part) { found |= part == word; });
  return found;
}

bool applies(const Rule& rule, std::string_view mnemonic) {
  bool all = true;
  for_parts(rule.words, ' ', [&](std::string_view word) { all &= has_word(mnemonic, word); });
  return all;
}

int family_of(int number) {
  return number / 10;
}

// "90+" names every target from 90 on, "90a" that one alone, "100f" the family-specific and
// architecture-specific ones of that family from 100 on; several, with spaces between, are
// alternatives.
bool is_among(Target target, std::string_view alternatives) {
  bool found = false;
  for_parts(alternatives, ' ', [&](std::string_view alternative) {
    const char kind = alternative.back();
    int number = 0;
    std::from_chars(alternative.data(), alternative.data() + alternative.size() - 1, number);
    if (kind == '+') found |= target.number >= number;
    if (kind == 'a') found |= target.number == number && target.suffix == 'a';
    if (kind == 'f') {
      found |= target.suffix != 0 && target.number >= number &&
               family_of(target.number) == family_of(number);
    }
  });
  return found;
}

}  // namespace

std::optional<Target> parse_target(std::string_view name) {
  if (!name.starts_with("sm_")) return std::nullopt;
  name.remove_prefix(3);
  Target target;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), target.number);
  if (error != std::errc() || target.number < 10) return std::nullopt;
  name.remove_prefix(static_cast<size_t>(end - name.data()));
  if (name == "a" || name == "f")
    target.suffix = name[0];
  else if (!name.empty())
    return std::nullopt;
  if (target.number == 101) target.number = 110;  // its name since PTX ISA 9.0
  return target;
}

std::string target_problem(Target target, Opcode opcode, std::string_view mnemonic) {
  for (const Rule& rule : kRules) {
    if (rule.opcode != opcode || is_among(target, rule.targets) || !applies(rule, mnemonic))
      continue;
    std::string wanted;
    for_parts(rule.targets, ' ', [&](std::string_view alternative) {
      const char kind = alternative.back();
      const std::string_view number = alternative.substr(0, alternative.size() - 1);
      wanted += fmt::format("{}sm_{}{}", wanted.empty() ? "" : ", ", number,
                            kind == '+'   ? " and later"
                            : kind == 'f' ? "f and its family"
                                          : "a");
    });
    return fmt::format("the module's target sm_{}{} does not have it{}; {} has", target.number,
                       target.suffix == 0 ? "" : std::string(1, target.suffix),
                       rule.words.empty() ? "" : fmt::format(" (.{})", rule.words), wanted);
  }
  return "";
}

}  // namespace jitgemm::ptx
