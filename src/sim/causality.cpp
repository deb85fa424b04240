// SPDX-License-Identifier: Apache-2.0
#include "sim/causality.h"

#include <algorithm>

namespace jitgemm::sim {

void Clock::set(uint32_t agent, Epoch epoch) {
  if (agent >= epochs_.size()) epochs_.resize(agent + 1, 0);
  epochs_[agent] = std::max(epochs_[agent], epoch);
}

void Clock::join(const Clock& other) {
  if (other.epochs_.size() > epochs_.size()) epochs_.resize(other.epochs_.size(), 0);
  for (size_t i = 0; i < other.epochs_.size(); ++i)
    epochs_[i] = std::max(epochs_[i], other.epochs_[i]);
}

void FencedClock::raise(uint32_t agent, const Part& part) {
  if (agent >= parts_.size()) parts_.resize(agent + 1);
  Part& own = parts_[agent];
  own.all = std::max(own.all, part.all);
  if (part.some > own.some) {
    own.some = part.some;
    own.lanes = part.lanes;
  } else if (part.some == own.some) {
    own.lanes |= part.lanes;
  }
}

void FencedClock::join(const FencedClock& other) {
  for (uint32_t i = 0; i < other.parts_.size(); ++i) raise(i, other.parts_[i]);
}

void FencedClock::join_seen(const Clock& seen, uint32_t self, uint32_t warps) {
  for (uint32_t agent = 0; agent < warps; ++agent) {
    if (agent != self && seen.at(agent) != 0) raise(agent, {seen.at(agent), 0, 0});
  }
}

void Handover::join(const Handover& other) {
  seen.join(other.seen);
  fenced.join(other.fenced);
  tensor.join(other.tensor);
  threads.join(other.threads);
}

void Handover::clear() {
  seen.clear();
  fenced.clear();
  tensor.clear();
  threads.clear();
}

void WarpView::begin(Agents agents, uint32_t self, bool strict, uint64_t cluster) {
  agents_ = agents;
  self_ = self;
  tensor_fences_ = strict;
  now_ = 1;
  const uint32_t threads = agents.async_proxy() + 1;
  threads_.begin(self, cluster * threads, threads);
}

void WarpView::publish_tensor() {
  tensor_published_.join(tensor_);
  tensor_published_.set(self_, now_);
  tensor_published_.set(agents_.tensor_pipe(self_), now_);
}

void WarpView::release(Handover& to, bool relaxed, LaneMask lanes) {
  if (!relaxed) {
    threads_.release(to.threads, now_, lanes);
  } else if (const ThreadClock* fenced = threads_.fenced_in_cluster()) {
    to.threads.join(*fenced);
  }
  release_warp(to, relaxed);
}

void WarpView::release_warp(Handover& to, bool relaxed) {
  if (!tensor_fences_) publish_tensor();
  if (!relaxed) {
    to.seen.join(seen_);
    to.seen.set(self_, now_);
    to.fenced.join(fenced_);
  }
  to.tensor.join(tensor_published_);
  ++now_;
}

void WarpView::acquire(const Handover& from, bool relaxed, LaneMask lanes) {
  if (relaxed) {
    threads_.acquire_at_fence(from.threads);
  } else {
    threads_.acquire(from.threads, lanes);
  }
  acquire_warp(from, relaxed);
}

void WarpView::acquire_warp(const Handover& from, bool relaxed) {
  if (relaxed) {
    relaxed_.seen.join(from.seen);
    relaxed_.fenced.join(from.fenced);
  } else {
    seen_.join(from.seen);
    fenced_.join(from.fenced);
  }
  tensor_arrived_.join(from.tensor);
  if (!tensor_fences_) after_thread_sync();
}

void WarpView::release_writes(Handover& to) {
  to.threads.add(self_, kAllLanes, now_);
  to.seen.set(self_, now_++);
}

Handover WarpView::commit(LaneMask lanes) {
  Handover to;
  threads_.release(to.threads, now_, lanes);
  to.seen.join(seen_);
  to.seen.set(self_, now_);
  to.fenced.join(fenced_);
  to.tensor.join(tensor_);
  to.tensor.set(agents_.tensor_pipe(self_), now_);
  ++now_;
  return to;
}

void WarpView::lanes_synchronised() {
  threads_.meet(kAllLanes, now_);
  lanes_synchronised_ = now_++;
}

void WarpView::lanes_met(LaneMask lanes) {
  threads_.meet(lanes, now_++);
}

void WarpView::proxy_fence(LaneMask lanes, LaneMask live) {
  fenced_.join_seen(seen_, self_, agents_.warps);
  FencedClock::Part part;
  part.all = (live & ~lanes) == 0 ? now_ : lanes_synchronised_;
  part.some = now_;
  part.lanes = lanes;
  fenced_.raise(self_, part);
  ++now_;
}

void WarpView::before_thread_sync() {
  publish_tensor();
  ++now_;
}

void WarpView::after_thread_sync() {
  tensor_.join(tensor_arrived_);
  issue_.join(seen_);
  issue_.join(relaxed_.seen);
}

void WarpView::memory_fence(Handover& memory) {
  seen_.join(relaxed_.seen);
  fenced_.join(relaxed_.fenced);
  relaxed_.clear();
  release_memory(memory);
  acquire_memory(memory);
}

void WarpView::fence_threads(SyncScope scope, LaneMask lanes) {
  threads_.fence(scope, now_++, lanes);
}

ForeignPointer WarpView::release_threads(LaneMask lanes) {
  return threads_.snapshot(now_++, lanes);
}

}  // namespace jitgemm::sim
