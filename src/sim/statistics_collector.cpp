// SPDX-License-Identifier: Apache-2.0
#include "sim/statistics_collector.h"

#include "sim/access.h"
#include "sim/models_bank_conflicts.h"
#include "sim/report.h"

#include <algorithm>
#include <array>

namespace jitgemm::sim {
namespace {

constexpr uint32_t kMatrixRowBytes = 16;  // of ldmatrix and stmatrix (PTX ISA 9.7.14.5.15)
constexpr uint32_t kMatrixRows = 8;

// What an instruction does to the places that its lanes' addresses name.
struct CountedAccess {
  uint32_t bytes = 0;  // a lane; 0: no access of the kinds that are counted
  bool reads = false, writes = false;
  LaneMask addresses = kAllLanes;  // lanes that give one
};

CountedAccess access_of(const Op& op) {
  if (op.instruction == nullptr) return {};
  const ptx::Modifiers& m = op.modifiers();
  const auto bytes =
      static_cast<uint32_t>(std::max(8, ptx::type_bits(m.type())) / 8 * std::max<int>(1, m.vector));
  const uint32_t rows = kMatrixRows * std::max<uint32_t>(1, m.count);
  const LaneMask row_lanes = rows >= kLanes ? kAllLanes : (LaneMask{1} << rows) - 1;
  switch (op.instruction->opcode) {
    case ptx::Opcode::kLd:
    case ptx::Opcode::kLdu: return {bytes, true, false};
    case ptx::Opcode::kSt: return {bytes, false, true};
    case ptx::Opcode::kAtom:
    case ptx::Opcode::kRed: return {bytes, true, true};
    case ptx::Opcode::kLdmatrix: return {kMatrixRowBytes, true, false, row_lanes};
    case ptx::Opcode::kStmatrix: return {kMatrixRowBytes, false, true, row_lanes};
    default: return {};
  }
}

const Operand* address_of(const Op& op) {
  for (uint32_t i = 0; i < op.slot_count; ++i) {
    if (op.slot(i).kind == OperandKind::kAddress) return &op.slot(i);
  }
  return nullptr;
}

void count(SpaceBytes& bytes, const CountedAccess& access) {
  if (access.reads) bytes.read += access.bytes;
  if (access.writes) bytes.written += access.bytes;
}

}  // namespace

StatisticsCollector::StatisticsCollector(const GridState& grid)
    : grid_(&grid),
      accesses_(grid.kernel->ops.size()),
      instructions_(grid.warps_per_cta),
      lifetimes_(grid.warps_per_cta) {}

void StatisticsCollector::before(const Warp& warp, const Op& op, LaneMask active) {
  ++instructions_[warp.index];
  const CountedAccess access = access_of(op);
  if (access.bytes == 0) return;
  const Operand* operand = address_of(op);
  if (operand == nullptr) return;
  const Space space = space_of(op.modifiers().space);
  std::array<uint32_t, kLanes> own;  // offsets in the CTA's shared memory
  size_t own_count = 0;
  for (LaneMask lanes = active & access.addresses; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
    const uint64_t address = warp.address(*operand, lane);
    Space at = space;
    if (space == Space::kGeneric) {
      switch (address >> 56) {
        case kSharedWindow >> 56: at = Space::kSharedCta; break;
        case kLocalWindow >> 56: at = Space::kLocal; break;
        case kParamWindow >> 56: at = Space::kParam; break;
        default: at = Space::kGlobal; break;
      }
    }
    switch (at) {
      case Space::kSharedCta:
      case Space::kSharedCluster: {
        const auto offset = static_cast<uint32_t>(address);
        if (offset >> kSharedRankShift != warp.cta.rank) {
          count(sums_.cluster_shared, access);
        } else {
          count(sums_.shared, access);
          own[own_count++] = offset & kSharedOffsetMask;
        }
        break;
      }
      case Space::kLocal: count(sums_.local, access); break;
      case Space::kParam: sums_.parameter_bytes += access.bytes; break;
      case Space::kConst: sums_.constant_bytes += access.bytes; break;
      default: count(sums_.global, access); break;
    }
  }
  if (own_count == 0) return;
  const Wavefronts wavefronts = count_wavefronts(std::span(own.data(), own_count), access.bytes);
  Accesses& sums = accesses_[op.index];
  ++sums.requests;
  sums.wavefronts += wavefronts.needed;
  sums.ideal += wavefronts.ideal;
}

void StatisticsCollector::parked(const Warp& warp, const Split& split) {
  // What begins again after its wait counts then; what waits for other lanes has not begun.
  if (split.wait.resume == nullptr && !split.waits_aligned) --instructions_[warp.index];
}

void StatisticsCollector::resumed(const Warp& warp, const Split& split, uint64_t steps) {
  Waits& waits = waits_[{warp.index, split.parked_op, split.wait.what}];
  ++waits.waits;
  waits.steps += steps;
  waits.longest = std::max(waits.longest, steps);
}

void StatisticsCollector::cluster_ended(const Cluster& cluster) {
  sums_.steps += cluster.steps;
  sums_.copied_to_shared += cluster.copied_in;
  sums_.copied_from_shared += cluster.copied_out;
  sums_.copied_global.read += cluster.global_in;
  sums_.copied_global.written += cluster.global_out;
  for (uint64_t& lifetime : lifetimes_) lifetime += cluster.steps * cluster.ctas.size();
}

void StatisticsCollector::merge(const StatisticsCollector& other) {
  const auto add = [](SpaceBytes& to, const SpaceBytes& from) {
    to.read += from.read;
    to.written += from.written;
  };
  sums_.steps += other.sums_.steps;
  add(sums_.global, other.sums_.global);
  add(sums_.shared, other.sums_.shared);
  add(sums_.cluster_shared, other.sums_.cluster_shared);
  add(sums_.local, other.sums_.local);
  sums_.parameter_bytes += other.sums_.parameter_bytes;
  sums_.constant_bytes += other.sums_.constant_bytes;
  sums_.copied_to_shared += other.sums_.copied_to_shared;
  sums_.copied_from_shared += other.sums_.copied_from_shared;
  add(sums_.copied_global, other.sums_.copied_global);
  for (size_t i = 0; i < accesses_.size(); ++i) {
    accesses_[i].requests += other.accesses_[i].requests;
    accesses_[i].wavefronts += other.accesses_[i].wavefronts;
    accesses_[i].ideal += other.accesses_[i].ideal;
  }
  for (size_t i = 0; i < instructions_.size(); ++i) {
    instructions_[i] += other.instructions_[i];
    lifetimes_[i] += other.lifetimes_[i];
  }
  for (const auto& [key, from] : other.waits_) {
    Waits& to = waits_[key];
    to.waits += from.waits;
    to.steps += from.steps;
    to.longest = std::max(to.longest, from.longest);
  }
}

Statistics StatisticsCollector::finish() const {
  Statistics result = sums_;
  const auto line_of = [](const Op& op) {
    return op.instruction == nullptr ? 0 : op.instruction->position.line;
  };
  for (size_t i = 0; i < accesses_.size(); ++i) {
    if (accesses_[i].requests == 0) continue;
    const Op& op = grid_->kernel->ops[i];
    result.shared_accesses.push_back({line_of(op), source_line(*grid_, op), accesses_[i].requests,
                                      accesses_[i].wavefronts, accesses_[i].ideal});
  }
  for (uint32_t w = 0; w < instructions_.size(); ++w) {
    WarpStatistics warp;
    warp.warp = w;
    warp.instructions = instructions_[w];
    warp.lifetime_steps = lifetimes_[w];
    for (const auto& [key, waits] : waits_) {
      if (key.warp != w) continue;
      const Op& op = grid_->kernel->ops[key.op];
      warp.waits.push_back({std::string(key.what), line_of(op), source_line(*grid_, op),
                            waits.waits, waits.steps, waits.longest});
      warp.waited_steps += waits.steps;
    }
    std::stable_sort(warp.waits.begin(), warp.waits.end(),
                     [](const WaitSite& a, const WaitSite& b) { return a.steps > b.steps; });
    result.warps.push_back(std::move(warp));
  }
  return result;
}

}  // namespace jitgemm::sim
