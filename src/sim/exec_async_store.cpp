// SPDX-License-Identifier: Apache-2.0
// st.async (PTX ISA 9.7.9.12) and red.async (9.7.13.7): a thread's registers into shared memory of
// a CTA of the cluster, completing on an mbarrier beside them. Checked when issued, in effect when
// completed. They belong to the generic proxy; here what they wrote counts, like bulk copies, as
// seen by who waits on the mbarrier, and is told apart by 16 bytes.
#include "sim/access.h"
#include "sim/async_reduce.h"
#include "sim/exec.h"
#include "sim/exec_tma.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

namespace jitgemm::sim {
namespace {

constexpr uint32_t kMbarrierBytes = 8;
constexpr uint32_t kMaxBytes = 16;  // .v4 of 32 bits, .v2 of 64

struct Source {
  std::array<std::byte, kMaxBytes> bytes{};
  uint32_t count = 0;
};

// Slots: [a], b, [mbar].
Step read_source(Warp& w, const Op& op, uint32_t lane, Source& source) {
  const uint32_t size = static_cast<uint32_t>(ptx::type_bits(op.modifiers().type())) / 8;
  for (const Operand& element : registers_of(w, op.slot(1))) {
    if (w.require_defined(op, element, LaneMask{1} << lane, "the value") == Step::kFault)
      return Step::kFault;
    const uint64_t value = w.value(element, lane);
    std::memcpy(source.bytes.data() + source.count, &value, size);
    source.count += size;
  }
  return Step::kNext;
}

Step locate_target(Warp& w, const Op& op, uint32_t lane, uint32_t bytes, LoadTarget& target) {
  const LaneMask bit = LaneMask{1} << lane;
  if (w.require_defined(op, op.slot(0), bit, "the address") == Step::kFault ||
      w.require_defined(op, op.slot(2), bit, "the address of the mbarrier") == Step::kFault) {
    return Step::kFault;
  }
  SharedPlace place, object;
  if (locate_shared(w, op, lane, Space::kSharedCluster, w.address(op.slot(0), lane), bytes, bytes,
                    place) == Step::kFault ||
      locate_shared(w, op, lane, Space::kSharedCluster, w.address(op.slot(2), lane), kMbarrierBytes,
                    kMbarrierBytes, object) == Step::kFault ||
      require_mbarrier(w, op, lane, *object.cta, object.offset) == Step::kFault) {
    return Step::kFault;
  }
  if (place.cta != object.cta) {
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kMbarrierMisuse,
                   fmt::format("the destination is in CTA rank {}, the mbarrier in CTA rank {}: "
                               "both must be in the same CTA",
                               place.cta->rank, object.cta->rank));
  }
  if (w.cta.cluster.ctas.size() < 2) {
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kIllegalOperand,
                   "the cluster must have more than one CTA");
  }
  target = {place.cta, place.offset, object.cta, object.offset};
  return Step::kNext;
}

void submit(Warp& w, const Op& op, uint32_t lane, const char* name, const LoadTarget& target,
            uint32_t bytes, std::function<void(Cluster&, std::byte*)> write) {
  target.cta->shared.shadow.begin_async_write(target.offset, bytes);
  AsyncOperation operation;
  operation.name = name;
  operation.origin = w.origin(op, static_cast<int32_t>(lane));
  operation.cta_rank = target.cta->rank;
  operation.complete = [=, write = std::move(write), origin = operation.origin](Cluster& cluster) {
    write(cluster, target.cta->shared.bytes.data() + target.offset);
    finish_load(cluster, target, bytes, bytes, origin);
  };
  w.cta.cluster.engine.submit(std::move(operation));
}

Step exec_store(Warp& w, const Op& op, LaneMask active) {
  return for_each_lane(active, [&](uint32_t lane) {
    Source source;
    LoadTarget target;
    if (read_source(w, op, lane, source) == Step::kFault ||
        locate_target(w, op, lane, source.count, target) == Step::kFault ||
        check_race(w, op, lane, *target.cta, target.offset, source.count, true) == Step::kFault) {
      return Step::kFault;
    }
    submit(w, op, lane, "st.async", target, source.count, [source](Cluster&, std::byte* to) {
      std::memcpy(to, source.bytes.data(), source.count);
    });
    return Step::kNext;
  });
}

Step exec_reduce(Warp& w, const Op& op, LaneMask active) {
  const auto type = static_cast<ReduceType>(op.payload);
  const ptx::Operation operation = op.modifiers().operation;
  return for_each_lane(active, [&](uint32_t lane) {
    Source source;
    LoadTarget target;
    if (read_source(w, op, lane, source) == Step::kFault ||
        locate_target(w, op, lane, source.count, target) == Step::kFault) {
      return Step::kFault;
    }
    const Origin origin = w.origin(op, static_cast<int32_t>(lane));
    submit(w, op, lane, "red.async", target, source.count, [=](Cluster& cluster, std::byte* to) {
      if (!target.cta->shared.written.all(target.offset, source.count) &&
          cluster.grid.options.sanitize) {
        cluster.raise(origin, FaultKind::kUninitialisedMemory,
                      fmt::format("shared memory of CTA rank {} at offset {:#x}, to which "
                                  "the reduction adds, was never written",
                                  target.cta->rank, target.offset));
      }
      reduce_element(operation, type, to, source.bytes.data());
    });
    return Step::kNext;
  });
}

}  // namespace

Choice choose_async_store(const ptx::Function&, const ptx::Instruction& instruction) {
  // .v4 of 64 bits is not among the forms' registers of 128 bits at most (9.7.9.12).
  const ptx::Modifiers& m = instruction.modifiers;
  if (m.vector == 4 && ptx::type_bits(m.type()) == 64)
    return Choice::refuse("st.async of four 64-bit values does not exist");
  return {exec_store, kOpAsync | kOpMemory, 0, ""};
}

Choice choose_async_reduce(const ptx::Function&, const ptx::Instruction& instruction) {
  const ptx::Modifiers& m = instruction.modifiers;
  const auto take = [](ReduceType type) {
    return Choice{exec_reduce, kOpAsync | kOpMemory, static_cast<uint64_t>(type), ""};
  };
  const ptx::Type type = m.type();
  switch (m.operation) {
    case ptx::Operation::kInc:
    case ptx::Operation::kDec:
      if (type == ptx::Type::kU32) return take(ReduceType::kU32);
      break;
    case ptx::Operation::kMin:
    case ptx::Operation::kMax:
      if (type == ptx::Type::kU32) return take(ReduceType::kU32);
      if (type == ptx::Type::kS32) return take(ReduceType::kS32);
      break;
    case ptx::Operation::kAnd:
    case ptx::Operation::kOr:
    case ptx::Operation::kXor:
      if (type == ptx::Type::kB32) return take(ReduceType::kU32);
      break;
    case ptx::Operation::kAdd:
      if (type == ptx::Type::kU32) return take(ReduceType::kU32);
      if (type == ptx::Type::kS32) return take(ReduceType::kS32);
      if (type == ptx::Type::kU64) return take(ReduceType::kU64);
      break;
    default: break;
  }
  return Choice::refuse("this operation is not defined for this type");
}

}  // namespace jitgemm::sim
