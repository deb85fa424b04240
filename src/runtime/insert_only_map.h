// SPDX-License-Identifier: Apache-2.0
// A hash map that only grows and is read without a lock: for tables that are written while
// preparing and read on the way to a launch. Values never move and live as long as the map. Knows
// nothing of what it holds.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace jitgemm {

template <typename Key, typename Value, typename Hash>
class InsertOnlyMap {
 public:
  InsertOnlyMap() { publish(kFirstSlots); }
  InsertOnlyMap(const InsertOnlyMap&) = delete;
  InsertOnlyMap& operator=(const InsertOnlyMap&) = delete;

  // Null if the key is not there. No lock, no allocation.
  Value* find(const Key& key) const noexcept {
    const Table& table = *table_.load(std::memory_order_acquire);
    for (size_t i = Hash()(key);; ++i) {
      Node* node = table.slots[i & table.mask].load(std::memory_order_acquire);
      if (node == nullptr) return nullptr;
      if (node->key == key) return &node->value;
    }
  }

  // The value of the key: the one given, or the one that was there first.
  Value& insert(const Key& key, Value value) {
    const std::scoped_lock lock(mutex_);
    if (Value* found = find(key)) return *found;
    // A quarter of the slots stays free, so that probing ends soon.
    const size_t slots = tables_.back()->mask + 1;
    if ((nodes_.size() + 1) * 4 > slots * 3) publish(slots * 2);
    nodes_.push_back(std::make_unique<Node>(Node{key, std::move(value)}));
    place(*tables_.back(), *nodes_.back());
    return nodes_.back()->value;
  }

 private:
  static constexpr size_t kFirstSlots = 64;  // a power of two, as every later size

  struct Node {
    Key key;
    Value value;
  };
  struct Table {
    explicit Table(size_t count) : mask(count - 1), slots(count) {}
    size_t mask;
    std::vector<std::atomic<Node*>> slots;
  };

  static void place(Table& table, Node& node) {
    size_t i = Hash()(node.key);
    while (table.slots[i & table.mask].load(std::memory_order_relaxed) != nullptr) ++i;
    table.slots[i & table.mask].store(&node, std::memory_order_release);
  }

  // Old tables stay: a reader may still be in one. Together they are no larger than the newest.
  void publish(size_t slots) {
    tables_.push_back(std::make_unique<Table>(slots));
    for (const std::unique_ptr<Node>& node : nodes_) place(*tables_.back(), *node);
    table_.store(tables_.back().get(), std::memory_order_release);
  }

  std::mutex mutex_;  // of writers
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::atomic<const Table*> table_ = nullptr;
};

}  // namespace jitgemm
