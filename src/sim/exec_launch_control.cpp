// SPDX-License-Identifier: Apache-2.0
// clusterlaunchcontrol (PTX ISA 9.7.13.17 and 9.7.13.18): a running cluster takes the place of one
// that has not started. The response of 16 bytes is the simulator's own: a word that says what it
// is, the coordinates of the cluster's first CTA. Which cluster is next, the scheduler knows.
#include "sim/access.h"
#include "sim/exec.h"
#include "sim/exec_tma.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

namespace jitgemm::sim {
namespace {

constexpr uint32_t kResponseBytes = 16;
constexpr uint32_t kMbarrierBytes = 8;
constexpr uint32_t kGranted = 0x434c4301, kRefused = 0x434c4300;
using Response = std::array<uint32_t, 4>;  // what it is; x, y, z

// Slots: [addr], [mbar].
Step exec_try_cancel(Warp& w, const Op& op, LaneMask active) {
  for (const uint32_t slot : {0u, 1u}) {
    if (w.require_defined(op, op.slot(slot), active, "an address") == Step::kFault)
      return Step::kFault;
  }
  return for_each_lane(active, [&](uint32_t lane) {
    SharedPlace place, object;
    if (locate_shared(w, op, lane, Space::kSharedCta, w.address(op.slot(0), lane), kResponseBytes,
                      kResponseBytes, place) == Step::kFault ||
        locate_shared(w, op, lane, Space::kSharedCta, w.address(op.slot(1), lane), kMbarrierBytes,
                      kMbarrierBytes, object) == Step::kFault) {
      return Step::kFault;
    }
    std::vector<LoadTarget> targets;
    const bool all = op.modifiers().has(ptx::Flag::kMulticastClusterAll);
    for (const auto& cta : w.cta.cluster.ctas) {
      if (!all && cta.get() != &w.cta) continue;
      if (require_mbarrier(w, op, lane, *cta, object.offset) == Step::kFault ||
          check_async_destination(w, op, lane, *cta, place.offset, kResponseBytes,
                                  "the response") == Step::kFault ||
          check_race(w, op, lane, *cta, place.offset, kResponseBytes, true) == Step::kFault) {
        return Step::kFault;
      }
      cta->shared.shadow.begin_async_write(place.offset, kResponseBytes);
      targets.push_back({cta.get(), place.offset, cta.get(), object.offset});
    }
    AsyncOperation request;
    request.name = "clusterlaunchcontrol.try_cancel";
    request.origin = w.origin(op, static_cast<int32_t>(lane));
    request.cta_rank = w.cta.rank;
    request.complete = [targets, origin = request.origin](Cluster& cluster) {
      Response response = {kRefused, 0, 0, 0};
      if (const auto first = cluster.grid.claim_cluster())
        response = {kGranted, (*first)[0], (*first)[1], (*first)[2]};
      for (const LoadTarget& target : targets) {
        std::memcpy(target.cta->shared.bytes.data() + target.offset, response.data(),
                    kResponseBytes);
        finish_load(cluster, target, kResponseBytes, kResponseBytes, origin);
      }
    };
    w.cta.cluster.engine.submit(std::move(request));
    return Step::kNext;
  });
}

// The response that a 128-bit register holds.
Step read_response(Warp& w, const Op& op, uint32_t lane, const Operand& handle, Response& out) {
  if (w.require_defined(op, handle, LaneMask{1} << lane, "the response") == Step::kFault)
    return Step::kFault;
  out = w.lanes<Response>(handle)[lane];
  if (out[0] == kGranted || out[0] == kRefused) return Step::kNext;
  return w.fault(op, static_cast<int32_t>(lane), FaultKind::kIllegalOperand,
                 "the 128 bits are no response of clusterlaunchcontrol.try_cancel");
}

// Slots: =p, handle.
Step exec_is_canceled(Warp& w, const Op& op, LaneMask active) {
  LaneMask canceled = 0;
  const Step step = for_each_lane(active, [&](uint32_t lane) {
    Response response;
    if (read_response(w, op, lane, op.slot(1), response) == Step::kFault) return Step::kFault;
    if (response[0] == kGranted) canceled |= LaneMask{1} << lane;
    return Step::kNext;
  });
  if (step == Step::kFault) return step;
  w.set_predicate(op.slot(0), canceled, active);
  return Step::kNext;
}

// Slots: {=d}*4 or =d, handle. Without a cluster the coordinates are undefined.
Step exec_first_ctaid(Warp& w, const Op& op, LaneMask active) {
  const Operand& d = op.slot(0);
  const bool vector = d.kind == OperandKind::kList;
  for (uint32_t i = 0; i < (vector ? 4u : 1u); ++i) {
    const Operand& to = registers_of(w, d)[i];
    const uint32_t word = vector ? i + 1 : static_cast<uint32_t>(op.payload);
    LaneMask undefined = 0;
    const Step step = for_each_lane(active, [&](uint32_t lane) {
      Response response;
      if (read_response(w, op, lane, op.slot(1), response) == Step::kFault) return Step::kFault;
      if (to.kind == OperandKind::kSink) return Step::kNext;
      if (response[0] != kGranted || word > 3) undefined |= LaneMask{1} << lane;
      w.set_value(to, lane, word > 3 ? 0 : response[word]);
      return Step::kNext;
    });
    if (step == Step::kFault) return step;
    if (to.kind != OperandKind::kSink) w.set_undefined(to, undefined, active);
  }
  return Step::kNext;
}

}  // namespace

Choice choose_cluster_cancel(const ptx::Function&, const ptx::Instruction&) {
  return {exec_try_cancel, kOpAsync, 0, ""};
}

Choice choose_cluster_query(const ptx::Function&, const ptx::Instruction& instruction) {
  switch (instruction.modifiers.operation) {
    case ptx::Operation::kIsCanceled: return {exec_is_canceled, 0, 0, ""};
    case ptx::Operation::kGetFirstCtaid: return {exec_first_ctaid, 0, 0, ""};
    case ptx::Operation::kGetFirstCtaidX: return {exec_first_ctaid, 0, 1, ""};
    case ptx::Operation::kGetFirstCtaidY: return {exec_first_ctaid, 0, 2, ""};
    case ptx::Operation::kGetFirstCtaidZ: return {exec_first_ctaid, 0, 3, ""};
    default: return Choice::refuse("unknown query");
  }
}

}  // namespace jitgemm::sim
