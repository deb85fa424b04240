// SPDX-License-Identifier: Apache-2.0
// Post-dominators by the iterative method of Cooper, Harvey and Kennedy on the reversed graph,
// whose root is a virtual exit. Blocks that never reach the exit (endless loops) get none.
#include "ptx/control_flow.h"

#include <algorithm>

namespace jitgemm::ptx {
namespace {

bool ends_block(Opcode opcode) {
  return opcode == Opcode::kBra || opcode == Opcode::kBrxIdx || opcode == Opcode::kRet ||
         opcode == Opcode::kExit || opcode == Opcode::kTrap;
}

// Instruction indices that the control transfer at the end of a block can go to, and whether it can
// also fall through.
bool transfer_targets(const Function& function, const Instruction& instruction,
                      std::vector<uint32_t>& targets) {
  if (instruction.opcode == Opcode::kBra) {
    targets.push_back(function.operands_of(instruction)[0].index);
  } else if (instruction.opcode == Opcode::kBrxIdx) {
    const auto& list = function.target_lists[function.operands_of(instruction)[1].index];
    targets.insert(targets.end(), list.begin(), list.end());
  }
  return !ends_block(instruction.opcode) || instruction.guard != kNoIndex;
}

std::vector<uint32_t> block_starts(const Function& function) {
  const size_t count = function.instructions.size();
  std::vector<bool> starts(count + 1);
  starts[0] = true;
  std::vector<uint32_t> targets;
  for (size_t i = 0; i < count; ++i) {
    const Instruction& instruction = function.instructions[i];
    if (ends_block(instruction.opcode)) starts[i + 1] = true;
    transfer_targets(function, instruction, targets);
  }
  for (const uint32_t target : targets) starts[target] = true;
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < count; ++i) {
    if (starts[i]) out.push_back(i);
  }
  return out;
}

// Reverse post-order of the reversed graph from the virtual exit (block number n).
std::vector<uint32_t> exit_first_order(const std::vector<std::vector<uint32_t>>& reversed) {
  const auto exit = static_cast<uint32_t>(reversed.size() - 1);
  std::vector<uint32_t> order;
  std::vector<bool> seen(reversed.size());
  std::vector<std::pair<uint32_t, size_t>> stack{
      {exit, 0}
  };
  seen[exit] = true;
  while (!stack.empty()) {
    auto& [block, next] = stack.back();
    if (next == reversed[block].size()) {
      order.push_back(block);
      stack.pop_back();
      continue;
    }
    const uint32_t child = reversed[block][next++];
    if (!seen[child]) {
      seen[child] = true;
      stack.emplace_back(child, 0);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

void find_post_dominators(std::vector<BasicBlock>& blocks) {
  const auto exit = static_cast<uint32_t>(blocks.size());
  std::vector<std::vector<uint32_t>> reversed(blocks.size() + 1);
  const auto successors = [&](uint32_t block) {
    std::vector<uint32_t> out = blocks[block].successors;
    if (out.empty()) out.push_back(exit);
    return out;
  };
  for (uint32_t i = 0; i < exit; ++i) {
    for (const uint32_t successor : successors(i)) reversed[successor].push_back(i);
  }
  const std::vector<uint32_t> order = exit_first_order(reversed);
  std::vector<uint32_t> rank(blocks.size() + 1, kNoIndex);
  for (uint32_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  std::vector<uint32_t> dominator(blocks.size() + 1, kNoIndex);
  dominator[exit] = exit;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 1; i < order.size(); ++i) {
      uint32_t meet = kNoIndex;
      for (uint32_t other : successors(order[i])) {
        if (dominator[other] == kNoIndex) continue;
        if (meet == kNoIndex) meet = other;
        while (meet != other) {
          while (rank[meet] > rank[other]) meet = dominator[meet];
          while (rank[other] > rank[meet]) other = dominator[other];
        }
      }
      if (dominator[order[i]] != meet) {
        dominator[order[i]] = meet;
        changed = true;
      }
    }
  }
  for (uint32_t i = 0; i < exit; ++i) {
    blocks[i].post_dominator = dominator[i] == exit ? kNoIndex : dominator[i];
  }
}

}  // namespace

void build_control_flow(Function& function) {
  function.blocks.clear();
  if (function.instructions.empty()) return;
  const auto count = static_cast<uint32_t>(function.instructions.size());
  const std::vector<uint32_t> starts = block_starts(function);
  std::vector<uint32_t> block_of(count, 0);
  for (size_t i = 0; i < starts.size(); ++i) {
    BasicBlock block;
    block.first = starts[i];
    block.end = i + 1 < starts.size() ? starts[i + 1] : count;
    for (uint32_t at = block.first; at < block.end; ++at) block_of[at] = static_cast<uint32_t>(i);
    function.blocks.push_back(std::move(block));
  }
  for (BasicBlock& block : function.blocks) {
    std::vector<uint32_t> targets;
    if (transfer_targets(function, function.instructions[block.end - 1], targets)) {
      targets.push_back(block.end);
    }
    for (const uint32_t target : targets) {
      if (target == count) continue;  // falling off the end is a return
      block.successors.push_back(block_of[target]);
    }
    std::sort(block.successors.begin(), block.successors.end());
    block.successors.erase(std::unique(block.successors.begin(), block.successors.end()),
                           block.successors.end());
  }
  find_post_dominators(function.blocks);
}

}  // namespace jitgemm::ptx
