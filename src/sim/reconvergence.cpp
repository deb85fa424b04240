// SPDX-License-Identifier: Apache-2.0
#include "sim/reconvergence.h"

#include <algorithm>

namespace jitgemm::sim {
namespace {

using ptx::BasicBlock;
using ptx::Function;
using ptx::Instruction;
using ptx::kNoIndex;
using ptx::Opcode;

const Instruction* last_of(const Function& f, const BasicBlock& b) {
  return b.end > b.first ? &f.instructions[b.end - 1] : nullptr;
}

// A block whose lanes end there: nothing but ret in an entry, or anything that ends with exit or
// trap.
bool is_exit_block(const Function& f, const BasicBlock& b) {
  const Instruction* last = last_of(f, b);
  if (last == nullptr || last->guard != kNoIndex) return false;
  if (last->opcode == Opcode::kExit || last->opcode == Opcode::kTrap) return true;
  return last->opcode == Opcode::kRet && f.is_entry && b.end - b.first == 1;
}

// The graph with a virtual exit node, as successor and predecessor lists.
struct Graph {
  std::vector<std::vector<uint32_t>> successors, predecessors;
  uint32_t exit = 0;

  void add(uint32_t from, uint32_t to) {
    successors[from].push_back(to);
    predecessors[to].push_back(from);
  }
  // Nodes from which the exit can be reached, in post order of the reverse graph.
  std::vector<uint32_t> reverse_post_order() const {
    std::vector<uint32_t> order;
    std::vector<bool> seen(successors.size(), false);
    std::vector<std::pair<uint32_t, size_t>> stack{
        {exit, 0}
    };
    seen[exit] = true;
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next < predecessors[node].size()) {
        const uint32_t p = predecessors[node][next++];
        if (!seen[p]) {
          seen[p] = true;
          stack.emplace_back(p, 0);
        }
      } else {
        order.push_back(node);
        stack.pop_back();
      }
    }
    return order;
  }
};

}  // namespace

std::vector<uint32_t> reconvergence_blocks(const Function& f) {
  const uint32_t n = static_cast<uint32_t>(f.blocks.size());
  Graph g;
  g.exit = n;
  g.successors.resize(n + 1);
  g.predecessors.resize(n + 1);
  std::vector<bool> exits(n);
  for (uint32_t b = 0; b < n; ++b) exits[b] = is_exit_block(f, f.blocks[b]);
  std::vector<std::pair<uint32_t, uint32_t>> dropped;
  for (uint32_t b = 0; b < n; ++b) {
    const std::vector<uint32_t>& successors = f.blocks[b].successors;
    const bool goes_on = std::any_of(successors.begin(), successors.end(),
                                     [&](uint32_t s) { return s < n && !exits[s]; });
    for (uint32_t s : successors) {
      if (s >= n) {
        g.add(b, g.exit);
      } else if (exits[s] && goes_on) {
        dropped.emplace_back(b, s);
      } else {
        g.add(b, s);
      }
    }
    if (successors.empty()) g.add(b, g.exit);
  }
  // Loops that only such an exit leaves need it after all, else nothing in them is post-dominated.
  std::vector<uint32_t> order = g.reverse_post_order();
  const auto reaches = [&](uint32_t b) {
    return std::find(order.begin(), order.end(), b) != order.end();
  };
  bool added = false;
  for (const auto& [from, to] : dropped) {
    if (reaches(from)) continue;
    g.add(from, to);
    added = true;
  }
  if (added) order = g.reverse_post_order();
  // Endless loops without any exit: their last block stands for one.
  for (uint32_t b = n; b-- > 0;) {
    if (reaches(b)) continue;
    g.add(b, g.exit);
    order = g.reverse_post_order();
  }

  // Immediate post-dominators by iteration (Cooper, Harvey, Kennedy). `number` is the post-order
  // number.
  std::vector<uint32_t> number(n + 1, 0), idom(n + 1, kNoIndex);
  for (uint32_t i = 0; i < order.size(); ++i) number[order[i]] = i;
  idom[g.exit] = g.exit;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = order.size(); i-- > 0;) {
      const uint32_t b = order[i];
      if (b == g.exit) continue;
      uint32_t best = kNoIndex;
      for (uint32_t s : g.successors[b]) {
        if (idom[s] == kNoIndex) continue;
        if (best == kNoIndex) {
          best = s;
          continue;
        }
        uint32_t a = s;
        while (a != best) {
          while (number[a] < number[best]) a = idom[a];
          while (number[best] < number[a]) best = idom[best];
        }
      }
      if (best != idom[b]) {
        idom[b] = best;
        changed = true;
      }
    }
  }
  std::vector<uint32_t> result(n, kNoIndex);
  for (uint32_t b = 0; b < n; ++b) {
    const uint32_t d = idom[b];
    if (d == g.exit) {
      result[b] = f.is_entry ? kNoIndex : kFunctionEnd;
    } else if (d != kNoIndex && !exits[d]) {
      result[b] = d;
    }
  }
  return result;
}

}  // namespace jitgemm::sim
