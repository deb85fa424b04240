// SPDX-License-Identifier: Apache-2.0
// A PTX module decoded for execution: each entry with the functions that it reaches becomes one
// flat array of ops, each op a function pointer and operands that are offsets into a warp's
// register file. Made once by decode.cpp, immutable afterwards, shared by all warps. Knows nothing
// of a launch.
#pragma once

#include "ptx/module.h"

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace jitgemm::sim {

class Warp;
struct Op;

using LaneMask = uint32_t;
inline constexpr uint32_t kLanes = 32;
inline constexpr LaneMask kAllLanes = ~LaneMask{0};

// What the interpreter does after an op.
enum class Step : uint8_t {
  kNext,    // go on with the following op
  kJumped,  // the op has set the split's pc, or ended or forked the split
  kParked,  // the op called Warp::park; the split waits
  kFault,   // the op called Warp::fault
};

using ExecuteFn = Step (*)(Warp& warp, const Op& op, LaneMask active);

// An operand of an op. Registers, immediates, constant special registers and symbol addresses all
// look alike: 32 values at `offset` of one of two banks (the warp's file, the kernel's constants),
// 4, 8 or 16 bytes each (registers of 8 and 16 bits occupy 4). A predicate is one LaneMask.
enum class OperandKind : uint8_t { kNone, kValue, kPredicate, kAddress, kList, kSink };

struct Operand {
  OperandKind kind = OperandKind::kNone;
  uint8_t bank = 0;      // 0: warp, 1: constants
  uint8_t bytes = 0;     // per lane: 4, 8, 16; of kAddress the width of its base register
  bool negated = false;  // !p
  bool written = false;  // the op writes it (role of the slot)
  bool is_register = false;
  uint32_t offset = 0;       // in the bank; of kList: first element in DecodedKernel::lists
  uint32_t state = 0;        // index into the warp's register states; 0: always defined
  uint32_t count = 0;        // elements of kList
  int64_t displacement = 0;  // of kAddress: added to the base value
};

enum OpFlags : uint32_t {
  kOpReconvergence = 1u << 0,    // some branch reconverges here
  kOpAligned = 1u << 1,          // .aligned: all live lanes of the warp, or a fault
  kOpOwnGuard = 1u << 2,         // called even if no lane is active (bra); handles its guard itself
  kOpOwnPendingCheck = 1u << 3,  // may touch pending registers; checks them itself
  kOpWholeWarp = 1u << 4,        // .aligned in effect although the text does not say it
  kOpMemory = 1u << 5,
  kOpMatrix = 1u << 6,
  kOpAsync = 1u << 7,
  kOpFragments = 1u << 8,  // touches a register that some wgmma of the kernel uses, and is none
};

struct Op {
  ExecuteFn execute = nullptr;
  const Operand* slots = nullptr;  // one for each slot of the instruction's form, in its order
  const ptx::Instruction* instruction = nullptr;  // modifiers, position; null: synthetic
  uint64_t payload = 0;                           // whatever the chooser stored
  uint32_t flags = 0;
  uint32_t guard_offset = 0;  // of a LaneMask in bank 0
  uint32_t guard_state = 0;   // 0: no guard
  bool guard_negated = false;
  uint8_t slot_count = 0;
  uint16_t function = 0;                // index in the module
  uint32_t target = 0;                  // op index: of bra; of call the callee's first op
  uint32_t reconverge = ptx::kNoIndex;  // op index of the immediate post-dominator
  uint32_t index = 0;                   // of this op

  const Operand& slot(uint32_t i) const { return slots[i]; }
  const ptx::Modifiers& modifiers() const { return instruction->modifiers; }
};

// A special register or a shared symbol's address: written into the warp's file when the warp
// starts.
struct InitialValue {
  enum class Kind : uint8_t { kSpecial, kSharedAddress, kDynamicSharedAddress };
  Kind kind = Kind::kSpecial;
  ptx::SpecialRegister special = ptx::SpecialRegister::kTid;
  uint8_t component = 0;
  uint8_t bytes = 4;
  bool generic = false;  // of addresses
  uint32_t offset = 0;   // in the warp's file
  int64_t value = 0;  // of addresses: offset in shared memory, to which rank and window are added
};

// The address of a module-scope variable: patched into the constant bank at the start of a run.
struct VariableAddress {
  uint32_t symbol = 0;
  int64_t addend = 0;
  uint32_t offset = 0;  // in the constant bank
  uint8_t bytes = 8;
};

// Per-lane copies between two places of the .param frame, at call and at return.
struct ParamCopy {
  uint32_t from = 0, to = 0, bytes = 0;       // byte offsets in the thread's local memory
  bool from_frame = false, to_frame = false;  // counted from the function's frame on the stack
  bool from_register = false, to_register = false;
  Operand from_operand, to_operand;
};

struct CallSite {
  uint32_t callee_first_op = 0;
  uint32_t callee = ptx::kNoIndex;  // index in the module
  bool reenters = false;            // the caller may run again before this call returns
  std::vector<ParamCopy> arguments, results;
};

// A function that may run again before it has returned. Its locals and parameters lie in a frame on
// the thread's stack, and a call that may come back to it keeps its registers.
struct StackFrame {
  uint64_t bytes = 0;
  std::vector<Operand> registers;
  // File slots that hold addresses in the frame; displacement is the distance from its base.
  std::vector<Operand> addresses;
};

// The number by which a program knows a function; no space contains it.
inline constexpr uint64_t kFunctionWindow = uint64_t{4} << 56;
constexpr uint64_t function_address(uint32_t function) {
  return kFunctionWindow + (uint64_t{function} + 1) * 16;
}

struct DecodedKernel {
  // Ops point into slot_storage, so a kernel may be moved and never copied.
  DecodedKernel() = default;
  DecodedKernel(DecodedKernel&&) = default;
  DecodedKernel& operator=(DecodedKernel&&) = default;
  DecodedKernel(const DecodedKernel&) = delete;
  DecodedKernel& operator=(const DecodedKernel&) = delete;

  const ptx::Function* function = nullptr;
  std::vector<Op> ops;
  std::deque<std::vector<Operand>> slot_storage;  // stable addresses behind Op::slots
  std::vector<Operand> lists;
  std::vector<std::vector<uint32_t>> target_lists;  // op indices, of brx.idx
  std::vector<CallSite> call_sites;
  // Of each call through a register: the call site for each function that it may reach.
  std::vector<std::map<uint32_t, uint32_t>> indirect_calls;
  std::map<uint32_t, StackFrame> stack_frames;  // by function; only those in a cycle of calls
  uint64_t stack_base = 0;   // in a thread's local memory, behind what has its own place
  bool uses_stack = false;   // recursion or dynamic allocation
  uint32_t file_bytes = 0;   // registers of all functions, initial values
  uint32_t state_count = 1;  // 0 is the always-defined one
  std::vector<InitialValue> initial_values;
  std::vector<std::byte> constants;
  std::vector<VariableAddress> variable_addresses;
  uint64_t local_bytes = 0;  // per thread: locals and call params of all functions
  uint32_t shared_static_bytes =
      0;  // dynamic shared memory begins here (the reserved kilobyte included)
};

struct DecodedProgram {
  ptx::Module module;
  std::vector<std::string> lines;  // of the text, for reports
  std::vector<DecodedKernel> kernels;

  const DecodedKernel* find(std::string_view entry) const;
};

}  // namespace jitgemm::sim
