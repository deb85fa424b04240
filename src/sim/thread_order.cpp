// SPDX-License-Identifier: Apache-2.0
#include "sim/thread_order.h"

#include <algorithm>

namespace jitgemm::sim {
namespace {

bool by_agent(const KnownEvents& a, const KnownEvents& b) {
  return a.agent < b.agent;
}

// Adds to the entries of one agent, which are the last of the list from `first` on.
void add_known(std::vector<KnownEvents>& list, size_t first, const KnownEvents& fresh) {
  for (size_t i = first; i < list.size(); ++i) {
    KnownEvents& old = list[i];
    if ((fresh.lanes & ~old.lanes) == 0 && old.epoch >= fresh.epoch) return;
    if ((old.lanes & ~fresh.lanes) == 0 && old.epoch <= fresh.epoch) {
      list.erase(list.begin() + static_cast<ptrdiff_t>(i--));
    }
  }
  list.push_back(fresh);
}

}  // namespace

LaneMask ForeignClock::missing(uint64_t agent, LaneMask lanes, Epoch epoch) const {
  if (everything) return 0;
  KnownEvents key;
  key.agent = agent;
  for (auto e = std::lower_bound(known.begin(), known.end(), key, by_agent);
       e != known.end() && e->agent == agent; ++e) {
    if (e->epoch >= epoch) lanes &= ~e->lanes;
  }
  return lanes;
}

ForeignPointer join_foreign(const ForeignPointer& a, const ForeignPointer& b) {
  if (a == b || b == nullptr) return a;
  if (a == nullptr) return b;
  if (a->everything) return a;
  if (b->everything) return b;
  auto both = std::make_shared<ForeignClock>();
  both->known.reserve(std::max(a->known.size(), b->known.size()));
  auto x = a->known.begin(), y = b->known.begin();
  size_t first = 0;
  while (x != a->known.end() || y != b->known.end()) {
    const bool take_x = y == b->known.end() || (x != a->known.end() && x->agent <= y->agent);
    const KnownEvents& next = take_x ? *x++ : *y++;
    if (!both->known.empty() && both->known[first].agent != next.agent) first = both->known.size();
    add_known(both->known, first, next);
  }
  if (both->known == a->known) return a;
  if (both->known == b->known) return b;
  if (both->known.size() > ForeignClock::kMaxEntries) {
    both->known.clear();
    both->everything = true;
  }
  return both;
}

LaneMask ThreadClock::missing_in_parts(uint32_t agent, LaneMask lanes, Epoch epoch) const {
  for (const Part& p : parts_) {
    if (p.agent == agent && p.epoch >= epoch) lanes &= ~p.lanes;
  }
  return lanes;
}

void ThreadClock::add(uint32_t agent, LaneMask lanes, Epoch epoch) {
  if (agent >= whole_.size()) whole_.resize(agent + 1, 0);
  Epoch& whole = whole_[agent];
  if (whole >= epoch) return;
  if (lanes == kAllLanes) {
    whole = epoch;
    std::erase_if(parts_, [&](const Part& p) { return p.agent == agent && p.epoch <= epoch; });
    return;
  }
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& p = parts_[i];
    if (p.agent != agent) continue;
    if ((lanes & ~p.lanes) == 0 && p.epoch >= epoch) return;
    if ((p.lanes & ~lanes) == 0 && p.epoch <= epoch) {
      parts_.erase(parts_.begin() + static_cast<ptrdiff_t>(i--));
    }
  }
  parts_.push_back({agent, lanes, epoch});
  fold(agent);
}

// Parts that have all lanes together count for all lanes; and of many the lowest does.
void ThreadClock::fold(uint32_t agent) {
  while (true) {
    uint32_t count = 0;
    LaneMask lanes = 0;
    Epoch lowest = ~Epoch{0};
    for (const Part& p : parts_) {
      if (p.agent != agent) continue;
      ++count;
      lanes |= p.lanes;
      lowest = std::min(lowest, p.epoch);
    }
    if (count == 0 || (lanes != kAllLanes && count <= kMaxParts)) return;
    whole_[agent] = std::max(whole_[agent], lowest);
    std::erase_if(parts_,
                  [&](const Part& p) { return p.agent == agent && p.epoch <= whole_[agent]; });
  }
}

void ThreadClock::join(const ThreadClock& other) {
  if (other.whole_.size() > whole_.size()) whole_.resize(other.whole_.size(), 0);
  for (size_t i = 0; i < other.whole_.size(); ++i) whole_[i] = std::max(whole_[i], other.whole_[i]);
  if (!parts_.empty())
    std::erase_if(parts_, [&](const Part& p) { return whole_[p.agent] >= p.epoch; });
  for (const Part& p : other.parts_) add(p.agent, p.lanes, p.epoch);
  if (other.foreign_ != nullptr) foreign_ = join_foreign(foreign_, other.foreign_);
}

void ThreadClock::join(const ForeignPointer& other, uint64_t first_agent, uint32_t agents) {
  if (other == nullptr) return;
  KnownEvents key;
  key.agent = first_agent;
  for (auto e = std::lower_bound(other->known.begin(), other->known.end(), key, by_agent);
       e != other->known.end() && e->agent < first_agent + agents; ++e) {
    add(static_cast<uint32_t>(e->agent - first_agent), e->lanes, e->epoch);
  }
  foreign_ = join_foreign(foreign_, other);
}

ForeignPointer ThreadClock::to_foreign(uint64_t first_agent) const {
  auto own = std::make_shared<ForeignClock>();
  for (uint32_t agent = 0; agent < whole_.size(); ++agent) {
    if (whole_[agent] != 0) own->known.push_back({first_agent + agent, kAllLanes, whole_[agent]});
  }
  for (const Part& p : parts_) own->known.push_back({first_agent + p.agent, p.lanes, p.epoch});
  std::stable_sort(own->known.begin(), own->known.end(), by_agent);
  return join_foreign(own, foreign_);
}

void ThreadClock::clear() {
  whole_.clear();
  parts_.clear();
  foreign_.reset();
}

void ThreadView::begin(uint32_t self, uint64_t first_agent, uint32_t agents) {
  self_ = self;
  first_agent_ = first_agent;
  agents_ = agents;
}

bool ThreadView::knows(uint32_t lane, uint32_t agent, LaneMask lanes, Epoch epoch) const {
  const bool any = lanes == 0;
  if (any) lanes = kAllLanes;
  if (agent == self_) {
    if (any) return true;
    lanes &= ~(LaneMask{1} << lane);
    if (lanes == 0) return true;
  }
  const auto enough = [&](LaneMask missing) { return any ? missing != kAllLanes : missing == 0; };
  LaneMask missing = common_.missing(agent, lanes, epoch);
  if (enough(missing)) return true;
  for (const Partial& p : partials_) {
    if ((p.lanes >> lane & 1) == 0) continue;
    missing = p.clock.missing(agent, missing, epoch);
    if (enough(missing)) return true;
  }
  return false;
}

bool ThreadView::knows_foreign(uint32_t lane, uint64_t agent, LaneMask lanes, Epoch epoch) const {
  const bool any = lanes == 0;
  LaneMask missing = any ? kAllLanes : lanes;
  const auto look = [&](const ThreadClock& clock) {
    if (clock.foreign() != nullptr) missing = clock.foreign()->missing(agent, missing, epoch);
    return any ? missing != kAllLanes : missing == 0;
  };
  if (look(common_)) return true;
  for (const Partial& p : partials_) {
    if ((p.lanes >> lane & 1) != 0 && look(p.clock)) return true;
  }
  return false;
}

void ThreadView::release(ThreadClock& to, Epoch now, LaneMask lanes) const {
  to.join(common_);
  for (const Partial& p : partials_) {
    if ((p.lanes & lanes) != 0) to.join(p.clock);
  }
  to.add(self_, lanes, now);
}

ThreadClock& ThreadView::partial(LaneMask lanes) {
  for (Partial& p : partials_) {
    if (p.lanes == lanes) return p.clock;
  }
  if (partials_.size() == kMaxPartials) {
    common_.join(partials_.front().clock);
    partials_.erase(partials_.begin());
  }
  partials_.push_back({lanes, {}});
  return partials_.back().clock;
}

void ThreadView::acquire(const ThreadClock& from, LaneMask lanes) {
  (lanes == kAllLanes ? common_ : partial(lanes)).join(from);
}

void ThreadView::meet(LaneMask members, Epoch now) {
  if (members == kAllLanes) {
    for (const Partial& p : partials_) common_.join(p.clock);
    partials_.clear();
    common_.add(self_, kAllLanes, now);
    return;
  }
  ThreadClock met;
  for (const Partial& p : partials_) {
    if ((p.lanes & members) != 0) met.join(p.clock);
  }
  met.add(self_, members, now);
  partial(members).join(met);
}

ForeignPointer ThreadView::snapshot(Epoch now, LaneMask lanes) const {
  ThreadClock all;
  release(all, now, lanes);
  return all.to_foreign(first_agent_);
}

void ThreadView::acquire(const ForeignPointer& from, LaneMask lanes) {
  if (from == nullptr) return;
  for (const Recent& r : recent_) {
    if (r.clock == from && (lanes & ~r.lanes) == 0) return;
  }
  (lanes == kAllLanes ? common_ : partial(lanes)).join(from, first_agent_, agents_);
  recent_[next_recent_++ % recent_.size()] = {from, lanes};
}

void ThreadView::fence(SyncScope scope, Epoch now, LaneMask lanes) {
  if (has_pending_) {
    acquire(pending_, lanes);
    pending_.clear();
    has_pending_ = false;
  }
  const ForeignPointer published = snapshot(now, lanes);
  for (size_t s = 0; s <= static_cast<size_t>(scope); ++s) fenced_[s] = published;
  fenced_clock_.clear();
  release(fenced_clock_, now, lanes);
  fenced_any_ = true;
}

void ThreadView::acquire_at_fence(const ForeignPointer& from) {
  if (from == nullptr) return;
  pending_.join(from, first_agent_, agents_);
  has_pending_ = true;
}

void ThreadView::acquire_at_fence(const ThreadClock& from) {
  pending_.join(from);
  has_pending_ = true;
}

}  // namespace jitgemm::sim
