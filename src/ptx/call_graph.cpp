// SPDX-License-Identifier: Apache-2.0
// Cycles are the strongly connected components of the call graph (Tarjan), with a stack of its own
// so that no length of a chain of calls needs recursion.
#include "ptx/call_graph.h"

#include <algorithm>
#include <set>
#include <utility>

namespace jitgemm::ptx {
namespace {

constexpr size_t kTargetSlot = 1;  // of the rows of call: (ret), f, (args), proto
constexpr size_t kPrototypeSlot = 3;

FormalParameter formal(const Module& module, const Function& function, const Parameter& parameter) {
  if (parameter.in_register) return {true, function.registers[parameter.index].type, 0, 1};
  const Symbol& symbol = module.symbols[parameter.index];
  return {false, symbol.type, symbol.size, symbol.align};
}

// Types may differ in name, sizes may not.
bool fits(const FormalParameter& wanted, const FormalParameter& found) {
  if (wanted.in_register != found.in_register) return false;
  return wanted.in_register ? type_bits(wanted.type) == type_bits(found.type)
                            : wanted.size == found.size;
}

bool has_prototype(const Module& module, const Function& function, const CallPrototype& prototype) {
  const auto same = [&](const std::vector<FormalParameter>& wanted,
                        const std::vector<Parameter>& found) {
    return std::equal(wanted.begin(), wanted.end(), found.begin(), found.end(),
                      [&](const FormalParameter& a, const Parameter& b) {
                        return fits(a, formal(module, function, b));
                      });
  };
  return same(prototype.return_list, function.returns) &&
         same(prototype.parameter_list, function.parameters);
}

class CycleFinder {
 public:
  explicit CycleFinder(const Module& module)
      : module_(module),
        order_(module.functions.size(), kNoIndex),
        low_(module.functions.size(), 0),
        cycle_(module.functions.size(), kNoIndex),
        open_(module.functions.size(), false) {}

  std::vector<uint32_t> run() {
    for (uint32_t f = 0; f < order_.size(); ++f) {
      if (order_[f] == kNoIndex) visit(f);
    }
    return std::move(cycle_);
  }

 private:
  void enter(uint32_t function) {
    order_[function] = low_[function] = next_++;
    open_[function] = true;
    component_.push_back(function);
    path_.emplace_back(function, 0);
  }

  void visit(uint32_t root) {
    enter(root);
    while (!path_.empty()) {
      auto& [function, at] = path_.back();
      const std::vector<uint32_t>& callees = module_.functions[function].callees;
      if (at < callees.size()) {
        const uint32_t callee = callees[at++];
        if (order_[callee] == kNoIndex) {
          enter(callee);
        } else if (open_[callee]) {
          low_[function] = std::min(low_[function], order_[callee]);
        }
        continue;
      }
      const uint32_t done = function;
      path_.pop_back();
      if (!path_.empty()) low_[path_.back().first] = std::min(low_[path_.back().first], low_[done]);
      if (low_[done] == order_[done]) close(done);
    }
  }

  void close(uint32_t root) {
    const auto first = std::find(component_.rbegin(), component_.rend(), root).base() - 1;
    const std::vector<uint32_t>& callees = module_.functions[root].callees;
    const bool cycle = component_.end() - first > 1 ||
                       std::find(callees.begin(), callees.end(), root) != callees.end();
    for (auto at = first; at != component_.end(); ++at) {
      open_[*at] = false;
      if (cycle) cycle_[*at] = root;
    }
    component_.erase(first, component_.end());
  }

  const Module& module_;
  uint32_t next_ = 0;
  std::vector<uint32_t> order_, low_, cycle_, component_;
  std::vector<bool> open_;
  std::vector<std::pair<uint32_t, size_t>> path_;
};

}  // namespace

bool is_indirect_call(const Function& function, const Instruction& instruction) {
  return instruction.opcode == Opcode::kCall && instruction.operand_count > kTargetSlot &&
         function.operands_of(instruction)[kTargetSlot].is_register();
}

std::vector<uint32_t> indirect_targets(const Module& module, const Function& function,
                                       const Instruction& instruction) {
  const Operand& prototype = function.operands_of(instruction)[kPrototypeSlot];
  if (prototype.kind == OperandKind::kCallTargets) {
    return function.call_target_lists[prototype.index];
  }
  std::vector<uint32_t> targets;
  if (prototype.kind != OperandKind::kPrototype) return targets;
  for (uint32_t f = 0; f < module.functions.size(); ++f) {
    const Function& candidate = module.functions[f];
    if (candidate.address_taken && !candidate.is_declaration &&
        has_prototype(module, candidate, function.prototypes[prototype.index])) {
      targets.push_back(f);
    }
  }
  return targets;
}

void add_indirect_callees(Module& module) {
  for (Function& function : module.functions) {
    std::vector<bool> known;  // callees; made for the first indirect call
    std::set<std::pair<OperandKind, uint32_t>> seen;
    for (const Instruction& instruction : function.instructions) {
      if (!is_indirect_call(function, instruction)) continue;
      const Operand& how = function.operands_of(instruction)[kPrototypeSlot];
      if (!seen.emplace(how.kind, how.index).second) continue;
      if (known.empty()) {
        known.resize(module.functions.size());
        for (const uint32_t callee : function.callees) known[callee] = true;
      }
      for (const uint32_t target : indirect_targets(module, function, instruction)) {
        if (!known[target]) function.callees.push_back(target);
        known[target] = true;
      }
    }
  }
}

std::vector<uint32_t> call_cycles(const Module& module) {
  return CycleFinder(module).run();
}

}  // namespace jitgemm::ptx
