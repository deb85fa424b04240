// SPDX-License-Identifier: Apache-2.0
// What the tcgen05 files share (PTX ISA 9.7.16): the CTA pair, regions of tensor memory and who
// uses them, and the pipe in which tcgen05.mma and tcgen05.cp take effect in order. Not for other
// files.
#pragma once

#include "sim/async_state.h"
#include "sim/exec.h"
#include "sim/exec_matrix.h"

#include <span>
#include <string>

namespace jitgemm::sim {

// Lane groups of all 128 lanes.
inline constexpr uint32_t kAllLaneGroups = (1u << kTensorLaneGroups) - 1;

struct TensorAddress {
  uint32_t lane = 0;
  uint32_t column = 0;
};
inline TensorAddress tensor_address(uint64_t value) {
  return {static_cast<uint32_t>(value >> 16 & 0xffff), static_cast<uint32_t>(value & 0xffff)};
}

// All tcgen05 instructions of a CTA use one cta_group; a pair needs a cluster of an even number of
// CTAs.
Step use_cta_group(Warp& warp, const Op& op, uint8_t cta_group);
// The CTAs that an instruction works on: this one, or the pair with the even rank first.
std::vector<Cta*> group_ctas(Cta& cta, uint8_t cta_group);

// The region lies in allocated columns. `sanitize` off: only bounds.
Step check_region(Warp& warp, const Op& op, Cta& cta, const TensorRegion& region, const char* what);
// No tcgen05.st or tcgen05.ld on it still waits for its wait::st or wait::ld.
Step check_region_settled(Warp& warp, const Op& op, Cta& cta, const TensorRegion& region,
                          const char* what);

// Earlier accesses of these cells by other threads, and by this thread's own pipe, are ordered
// before this instruction (9.7.16.6.3, 9.7.16.6.4): writes always, reads if it `writes`.
Step check_tensor_order(Warp& warp, const Op& op, Cta& cta, const TensorRegion& region, bool writes,
                        const char* what);

template <typename F>
void for_each_part(Cta& cta, const TensorRegion& region, F f) {
  for (uint32_t group = 0; group < kTensorLaneGroups; ++group) {
    if ((region.lane_groups >> group & 1) == 0) continue;
    for (uint32_t c = region.column; c < region.column + region.columns; ++c)
      f(cta.async_state->part(group, c));
  }
}

// Submits an operation of the tensor pipe after all earlier ones of the CTA or pair, and remembers
// it for the thread's next commit.
void submit_tensor_operation(Warp& warp, const Op& op, uint32_t lane, const char* name,
                             std::function<void(Cluster&)> complete);

// A shared-memory descriptor (9.7.16.4.1), or the fault that it is illegal.
Step read_tcgen05_descriptor(Warp& warp, const Op& op, uint32_t lane, const Operand& slot,
                             const char* what, MatrixDescriptor& descriptor);

// tcgen05.cp.
Choice choose_tcgen05_cp(const ptx::Function& function, const ptx::Instruction& instruction);

}  // namespace jitgemm::sim
