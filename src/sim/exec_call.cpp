// SPDX-License-Identifier: Apache-2.0
// Calls and returns (PTX ISA 9.7.12.5, 9.7.12.6) and the stack of a thread (9.7.11). A function has
// one place for its registers and locals; one that may run again before it has returned has its
// locals in a frame on the stack, and a call that may come back to it keeps its registers.
#include "fmt/format.h"
#include "ptx/call_graph.h"
#include "sim/exec.h"
#include "sim/exec_control.h"
#include "sim/exec_print.h"
#include "sim/lanes.h"

#include <algorithm>

namespace jitgemm::sim {
namespace {

const DecodedKernel& kernel_of(const Warp& w) {
  return *w.cta.cluster.grid.kernel;
}

// The values that move at a call, all read before any is written: in a call of itself a function's
// registers are both.
class ParameterMove {
 public:
  ParameterMove(Warp& warp, const std::vector<ParamCopy>& copies, LaneMask active)
      : w_(warp), copies_(copies), active_(active) {
    for (const ParamCopy& c : copies_) {
      for_lanes(active_, [&](uint32_t lane) { read(c, lane); });
    }
  }

  void write() {
    size_t at = 0;
    for (const ParamCopy& c : copies_) {
      for_lanes(active_, [&](uint32_t lane) {
        write_one(c, lane, at);
        at += size(c);
      });
    }
  }

 private:
  // Room for a value in either form: a register holds up to 16 bytes.
  static size_t size(const ParamCopy& c) { return std::max<size_t>(c.bytes, 16); }

  uint64_t place(uint32_t lane, uint32_t offset, bool in_frame) const {
    return lane * w_.local_bytes + offset + (in_frame ? w_.stack_frame[lane] : 0);
  }

  void read(const ParamCopy& c, uint32_t lane) {
    const size_t at = data_.size();
    data_.resize(at + size(c));
    written_.resize(at + size(c));
    if (c.from_register) {
      const Operand& o = c.from_operand;
      std::memcpy(data_.data() + at, w_.lanes<std::byte>(o) + size_t{lane} * o.bytes, o.bytes);
      const bool defined = (w_.undefined(o) >> lane & 1) == 0;
      std::fill_n(written_.begin() + static_cast<std::ptrdiff_t>(at), size(c), defined);
      return;
    }
    const uint64_t from = place(lane, c.from, c.from_frame);
    std::memcpy(data_.data() + at, w_.local.data() + from, c.bytes);
    for (uint32_t b = 0; b < c.bytes; ++b) written_[at + b] = w_.local_written.all(from + b, 1);
  }

  void write_one(const ParamCopy& c, uint32_t lane, size_t at) {
    const LaneMask bit = LaneMask{1} << lane;
    const auto first = written_.begin() + static_cast<std::ptrdiff_t>(at);
    if (c.to_register) {
      const Operand& o = c.to_operand;
      std::memcpy(w_.lanes<std::byte>(o) + size_t{lane} * o.bytes, data_.data() + at, o.bytes);
      const bool defined = std::all_of(first, first + c.bytes, [](bool b) { return b; });
      w_.set_undefined(o, defined ? 0 : bit, bit);
      return;
    }
    const uint64_t to = place(lane, c.to, c.to_frame);
    std::memcpy(w_.local.data() + to, data_.data() + at, c.bytes);
    for (uint32_t b = 0; b < c.bytes; ++b) {
      if (written_[at + b]) {
        w_.local_written.set(to + b, 1);
      } else {
        w_.local_written.clear(to + b, 1);
      }
    }
  }

  Warp& w_;
  const std::vector<ParamCopy>& copies_;
  LaneMask active_;
  std::vector<std::byte> data_;
  std::vector<bool> written_;
};

size_t lane_bytes(const Operand& o) {
  return o.kind == OperandKind::kPredicate ? sizeof(LaneMask) : size_t{o.bytes} * kLanes;
}

std::shared_ptr<SavedFrame> save_frame(const Warp& w, const StackFrame* registers) {
  auto saved = std::make_shared<SavedFrame>();
  saved->frame = w.stack_frame;
  saved->stack_pointer = w.stack_pointer;
  if (registers == nullptr) return saved;
  for (const Operand& o : registers->registers) {
    const std::byte* lanes = w.lanes<std::byte>(o);
    saved->file.insert(saved->file.end(), lanes, lanes + lane_bytes(o));
    saved->undefined.push_back(w.undefined(o));
  }
  return saved;
}

void restore_registers(Warp& w, const StackFrame& registers, const SavedFrame& saved,
                       LaneMask active) {
  const std::byte* from = saved.file.data();
  for (size_t i = 0; i < registers.registers.size(); ++i) {
    const Operand& o = registers.registers[i];
    if (o.kind == OperandKind::kPredicate) {
      LaneMask kept = 0;
      std::memcpy(&kept, from, sizeof(kept));
      LaneMask& now = *w.lanes<LaneMask>(o);
      now = (now & ~active) | (kept & active);
    } else {
      for_lanes(active, [&](uint32_t lane) {
        const size_t at = size_t{lane} * o.bytes;
        std::memcpy(w.lanes<std::byte>(o) + at, from + at, o.bytes);
      });
    }
    w.set_undefined(o, saved.undefined[i], active);
    from += lane_bytes(o);
  }
}

// The addresses of what lies in the frame, for lanes that enter the function or come back to it.
void set_addresses(Warp& w, const StackFrame& frame, LaneMask active) {
  for (const Operand& o : frame.addresses) {
    for_lanes(active, [&](uint32_t lane) {
      w.set_value(o, lane, w.stack_frame[lane] + static_cast<uint64_t>(o.displacement));
    });
  }
}

// Takes `bytes` from the stack of a lane; false: it has no room.
bool push(Warp& w, uint32_t lane, uint64_t bytes, uint64_t align, uint32_t& place) {
  const uint64_t at = (w.stack_pointer[lane] + align - 1) / align * align;
  if (at > w.local_bytes || bytes > w.local_bytes - at) return false;
  place = static_cast<uint32_t>(at);
  w.stack_pointer[lane] = static_cast<uint32_t>(at + bytes);
  w.local_written.clear(lane * w.local_bytes + at, bytes);
  return true;
}

Step overflow(Warp& w, const Op& op, uint32_t lane, std::string_view what, uint64_t bytes) {
  return w.fault(op, static_cast<int32_t>(lane), FaultKind::kStackOverflow,
                 fmt::format("{} of {} bytes; {} of the thread's {} bytes are in use", what, bytes,
                             w.stack_pointer[lane] - kernel_of(w).stack_base,
                             w.local_bytes - kernel_of(w).stack_base));
}

constexpr uint64_t kStackAlign = 16;

// Opens the callee's frame, if it has one.
Step enter_frame(Warp& w, const Op& op, uint32_t callee, LaneMask active) {
  const auto& frames = kernel_of(w).stack_frames;
  const auto found = frames.find(callee);
  if (found == frames.end()) return Step::kNext;
  const StackFrame& frame = found->second;
  for (LaneMask rest = active; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    if (!push(w, lane, frame.bytes, kStackAlign, w.stack_frame[lane]))
      return overflow(w, op, lane, "a call's frame", frame.bytes);
  }
  set_addresses(w, frame, active);
  for (const Operand& o : frame.registers) w.set_undefined(o, active, active);
  return Step::kNext;
}

Step call_site(Warp& w, const Op& op, LaneMask active, uint32_t index) {
  const DecodedKernel& kernel = kernel_of(w);
  const CallSite& site = kernel.call_sites[index];
  Split* s = &w.split();
  const uint32_t here = s->pc;
  if (active != s->mask) {
    // The lanes that do not call wait behind the call.
    const LaneMask rest = s->mask & ~active;
    s->frame = w.open_frame(here + 1, *s);
    s->mask = active;
    w.add_split(here + 1, rest, s->frame, s->return_stack);
    s = &w.split();
  }
  ReturnSite back{op.index, index, nullptr};
  ParameterMove arguments(w, site.arguments, active);
  if (kernel.uses_stack) {
    const StackFrame* kept = site.reenters ? &kernel.stack_frames.at(op.function) : nullptr;
    if (kept != nullptr && w.pending_registers != 0) {
      for (const Operand& o : kept->registers) {
        if (const LaneMask bad = w.state(o).pending & active; bad != 0) {
          return w.fault(op, std::countr_zero(bad), FaultKind::kPendingRegister,
                         fmt::format("a recursive call keeps a register that belongs to an "
                                     "asynchronous operation in lanes {:#010x}",
                                     bad));
        }
      }
    }
    back.saved = save_frame(w, kept);
    if (enter_frame(w, op, site.callee, active) == Step::kFault) return Step::kFault;
  }
  arguments.write();
  s->return_stack.push_back(std::move(back));
  s->pc = site.callee_first_op;
  return Step::kJumped;
}

Step call(Warp& w, const Op& op, LaneMask active) {
  return call_site(w, op, active, static_cast<uint32_t>(op.payload));
}

// Lanes that call one function go together; the others come back to this op in a split of their
// own, and all meet behind it.
Step call_indirect(Warp& w, const Op& op, LaneMask active) {
  const Operand& target = op.slot(0);
  if (w.require_defined(op, target, active, "the target of the call") == Step::kFault)
    return Step::kFault;
  const auto lane = static_cast<uint32_t>(std::countr_zero(active));
  const uint64_t address = w.value(target, lane);
  const auto& sites = kernel_of(w).indirect_calls[op.payload];
  const auto site = std::find_if(sites.begin(), sites.end(), [&](const auto& entry) {
    return function_address(entry.first) == address;
  });
  if (site == sites.end()) {
    const ptx::Module& module = w.cta.cluster.grid.program->module;
    const uint64_t index = (address - kFunctionWindow) / 16 - 1;
    const bool function = address > kFunctionWindow && index < module.functions.size() &&
                          function_address(static_cast<uint32_t>(index)) == address;
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kIndirectCall,
                   function
                       ? fmt::format("'{}' is not among the functions that this call may reach",
                                     module.functions[index].name)
                       : fmt::format("{:#x} is the address of no function", address));
  }
  LaneMask same = 0;
  for_lanes(active, [&](uint32_t l) {
    if (w.value(target, l) == address) same |= LaneMask{1} << l;
  });
  if (const LaneMask others = active & ~same; others != 0) {
    Split& s = w.split();
    const uint32_t here = s.pc;
    const LaneMask idle = s.mask & ~active;
    s.frame = w.open_frame(here + 1, s);
    s.mask = same;
    const int32_t frame = s.frame;
    const std::vector<ReturnSite> stack = s.return_stack;
    w.add_split(here, others, frame, stack);
    if (idle != 0) w.add_split(here + 1, idle, frame, stack);
  }
  return call_site(w, op, same, site->second);
}

Step ret_from_function(Warp& w, const Op& op, LaneMask active) {
  if (active == w.split().mask) {
    w.split().pc = op.target;
  } else {
    w.diverge(active, op.target, op.target);
  }
  return Step::kJumped;
}

// --- the stack
// ------------------------------------------------------------------------------------

constexpr uint64_t kDefaultAlign = 8;

Step alloca_op(Warp& w, const Op& op, LaneMask active) {
  if (w.require_defined(op, op.slot(1), active, "the size") == Step::kFault) return Step::kFault;
  for (LaneMask rest = active; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    const uint64_t bytes = w.value(op.slot(1), lane);
    uint32_t place = 0;
    if (!push(w, lane, bytes, op.payload, place))
      return overflow(w, op, lane, "an allocation", bytes);
    w.set_value(op.slot(0), lane, place);
  }
  w.set_defined(op.slot(0), active);
  return Step::kNext;
}

Step stacksave(Warp& w, const Op& op, LaneMask active) {
  for_lanes(active, [&](uint32_t lane) { w.set_value(op.slot(0), lane, w.stack_pointer[lane]); });
  w.set_defined(op.slot(0), active);
  return Step::kNext;
}

Step stackrestore(Warp& w, const Op& op, LaneMask active) {
  if (w.require_defined(op, op.slot(0), active, "the stack pointer") == Step::kFault)
    return Step::kFault;
  for (LaneMask rest = active; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    const uint64_t saved = w.value(op.slot(0), lane);
    if (saved < kernel_of(w).stack_base || saved > w.stack_pointer[lane]) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kIllegalOperand,
                     fmt::format("{:#x} was not saved on this stack, whose top is {:#x}", saved,
                                 w.stack_pointer[lane]));
    }
    w.stack_pointer[lane] = static_cast<uint32_t>(saved);
  }
  return Step::kNext;
}

// --- choosers
// -------------------------------------------------------------------------------------

template <ExecuteFn kFn>
Choice always(const ptx::Function&, const ptx::Instruction&) {
  return {kFn};
}

Choice choose_call(const ptx::Function& f, const ptx::Instruction& instruction) {
  if (ptx::is_indirect_call(f, instruction)) return {call_indirect};
  return {call};
}

Choice choose_ret(const ptx::Function& f, const ptx::Instruction&) {
  if (f.is_entry) return {execute_exit};
  return {ret_from_function};
}

Choice choose_alloca(const ptx::Function& f, const ptx::Instruction& instruction) {
  const ptx::Operand& align = f.operands_of(instruction)[2];
  const uint64_t bytes = align.present() ? align.value : kDefaultAlign;
  if (!std::has_single_bit(bytes) || bytes > 4096)
    return Choice::refuse("expected an alignment that is a power of two, at most 4096");
  return {alloca_op, 0, bytes};
}

constexpr OpcodeRow kRows[] = {
    {ptx::Opcode::kCall,         choose_call         },
    {ptx::Opcode::kRet,          choose_ret          },
    {ptx::Opcode::kAlloca,       choose_alloca       },
    {ptx::Opcode::kStacksave,    always<stacksave>   },
    {ptx::Opcode::kStackrestore, always<stackrestore>},
};

Step call_vprintf(Warp& w, const Op& op, LaneMask active) {
  if (print_formatted(w, op, active) == Step::kFault) return Step::kFault;
  ParameterMove(w, kernel_of(w).call_sites[op.payload].results, active).write();
  return Step::kNext;
}
Step call_assertfail(Warp& w, const Op& op, LaneMask active) {
  const int32_t lane = std::countr_zero(active);
  return w.fault(op, lane, FaultKind::kTrap,
                 fmt::format("an assertion of the program failed in lanes {:#010x}: {}", active,
                             describe_assertion(w, op, static_cast<uint32_t>(lane))));
}

}  // namespace

Step execute_function_end(Warp& w, const Op& op, LaneMask active) {
  Split& s = w.split();
  if (s.return_stack.empty()) {
    return w.fault(op, -1, FaultKind::kIllegalOperand,
                   "return from a function that was not called");
  }
  const ReturnSite back = std::move(s.return_stack.back());
  s.return_stack.pop_back();
  const DecodedKernel& kernel = kernel_of(w);
  const CallSite& site = kernel.call_sites[back.call_site];
  ParameterMove results(w, site.results, active);
  if (back.saved != nullptr) {
    for_lanes(active, [&](uint32_t lane) {
      w.stack_frame[lane] = back.saved->frame[lane];
      w.stack_pointer[lane] = back.saved->stack_pointer[lane];
    });
    if (site.reenters) {
      const StackFrame& caller = kernel.stack_frames.at(kernel.ops[back.op].function);
      restore_registers(w, caller, *back.saved, active);
      set_addresses(w, caller, active);
    }
  }
  results.write();
  s.pc = back.op + 1;
  return Step::kJumped;
}

ExecuteFn external_function(std::string_view name) {
  if (name == "vprintf") return call_vprintf;
  if (name == "__assertfail") return call_assertfail;
  return nullptr;
}

std::span<const OpcodeRow> call_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
