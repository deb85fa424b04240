// SPDX-License-Identifier: Apache-2.0
// What exec_tma.cpp, exec_tma_tensor.cpp and the files of their neighbours share: checks of a
// copy's two ends and the parts of its completion. Not for other files.
#pragma once

#include "sim/async_state.h"
#include "sim/exec.h"
#include "sim/machine_state.h"
#include "sim/race_check.h"

#include <cstddef>
#include <functional>
#include <vector>

namespace jitgemm::sim {

// Calls f(lane) for each active lane until a fault.
template <typename F>
Step for_each_lane(LaneMask active, F f) {
  for (LaneMask m = active; m != 0; m &= m - 1) {
    if (f(static_cast<uint32_t>(std::countr_zero(m))) == Step::kFault) return Step::kFault;
  }
  return Step::kNext;
}

// One destination of a load and the mbarrier that learns of its completion.
struct LoadTarget {
  Cta* cta = nullptr;
  uint32_t offset = 0;
  Cta* barrier_cta = nullptr;
  uint32_t barrier = 0;
};
struct LoadTargets {
  std::vector<LoadTarget> places;
};

// Resolves and checks the destinations (multicast mask, CTA pair) and marks them as being written.
Step locate_targets(Warp& warp, const Op& op, uint32_t lane, const Operand& destination,
                    const Operand& barrier, const Operand& mask, uint32_t bytes, uint32_t align,
                    LoadTargets& targets);
// The bytes at the target are there: written, no longer in flight, counted.
void finish_load(Cluster& cluster, const LoadTarget& target, uint32_t bytes,
                 uint32_t transaction_bytes, const Origin& origin);

// The global end of a copy.
Step check_global_read(Warp& warp, const Op& op, uint32_t lane, GlobalRaces::DeedId copy,
                       uint64_t address, uint64_t bytes);
// `reduces`: an atomic read and write of each element.
Step check_global_write(Warp& warp, const Op& op, uint32_t lane, GlobalRaces::DeedId copy,
                        uint64_t address, uint64_t bytes, bool reduces);

inline constexpr const char* kBulkReadName = "read of a bulk store";
inline constexpr const char* kBulkStoreName = "bulk store";
// Two operations of the lane's open bulk group: the read of shared memory, then write(data).
void submit_store(Warp& warp, const Op& op, uint32_t lane, GlobalRaces::DeedId copy_id, Cta& cta,
                  uint32_t offset, uint32_t bytes,
                  std::function<void(const std::vector<std::byte>&)> write);

Choice choose_tensor_copy(const ptx::Function& function, const ptx::Instruction& instruction);
Choice choose_tensor_reduce(const ptx::Function& function, const ptx::Instruction& instruction);
// tensormap.replace and tensormap.cp_fenceproxy.
Choice choose_map_edit(const ptx::Function& function, const ptx::Instruction& instruction);
// st.async and red.async.
Choice choose_async_store(const ptx::Function& function, const ptx::Instruction& instruction);
Choice choose_async_reduce(const ptx::Function& function, const ptx::Instruction& instruction);
// clusterlaunchcontrol.
Choice choose_cluster_cancel(const ptx::Function& function, const ptx::Instruction& instruction);
Choice choose_cluster_query(const ptx::Function& function, const ptx::Instruction& instruction);
Step exec_tensor_prefetch(Warp& warp, const Op& op, LaneMask active);

}  // namespace jitgemm::sim
