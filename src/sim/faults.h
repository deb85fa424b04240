// SPDX-License-Identifier: Apache-2.0
// What a simulated program can do wrong: one enumerator a rule, with the rule's sentence and its
// section in the PTX ISA. A fault names the instruction that broke the rule, not the one that
// noticed, wherever the two differ and the first is known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace jitgemm::sim {

// X(enumerator, short name, rule, PTX ISA section)
#define JITGEMM_SIM_FAULTS(X)                                                                      \
  X(kOutOfBounds, "out of bounds",                                                                 \
    "an access must lie inside one object that the launch declared", "5.1 State Spaces")           \
  X(kMisaligned, "misaligned access", "an address must be a multiple of the access size",          \
    "6.4.1 Addresses as Operands")                                                                 \
  X(kReadOnly, "write to read-only memory", "the range is not writable in this launch",            \
    "5.1.4 Global State Space")                                                                    \
  X(kWriteOnly, "read of write-only memory", "the range is not readable in this launch",           \
    "5.1.4 Global State Space")                                                                    \
  X(kWrongSpace, "address outside its state space",                                                \
    "the address must lie in the named state space", "6.4.1.1 Generic Addressing")                 \
  X(kUninitialisedMemory, "read of memory never written",                                          \
    "memory must be written before it is read", "8 Memory Consistency Model")                      \
  X(kUninitialisedRegister, "use of a register never written",                                     \
    "a value that is stored, used as address, branch condition or matrix input must have been "    \
    "written",                                                                                     \
    "5.1.1 Register State Space")                                                                  \
  X(kPendingRegister, "use of a register owned by an asynchronous operation",                      \
    "registers of an asynchronous operation may not be touched before its wait",                   \
    "9.7.15.4 Asynchronous Proxy / 9.7.16.6 tcgen05 consistency")                                  \
  X(kAsyncReadBeforeCompletion, "read of memory that an asynchronous write has not completed",     \
    "wait for the completion mechanism of the asynchronous operation before reading its "          \
    "destination",                                                                                 \
    "8.2 Asynchronous Operations; 9.7.9.25 Asynchronous copy")                                     \
  X(kAsyncOverwrite, "write to memory that an asynchronous operation still uses",                  \
    "the source and destination of an asynchronous operation may not be written until it "         \
    "completes",                                                                                   \
    "9.7.9.25 Asynchronous copy")                                                                  \
  X(kMissingProxyFence, "generic write consumed by the async proxy without a proxy fence",         \
    "fence.proxy.async must order a generic-proxy write before its use through the async proxy",   \
    "9.7.13.4 membar/fence: proxy fences")                                                         \
  X(kDivergedAligned, "divergence at an .aligned instruction",                                     \
    "all threads of the warp must execute the same .aligned instruction", "9.7.13.1 bar, barrier") \
  X(kWarpSync, "illegal member mask",                                                              \
    "the executing thread must be in the member mask, and all "                                    \
    "members must execute the same instruction with the same mask",                                \
    "9.7.13.2 bar.warp.sync")                                                                      \
  X(kBarrierMisuse, "illegal use of a CTA or cluster barrier",                                     \
    "barrier resource, thread count and arrival order must be legal", "9.7.13.1 bar, barrier")     \
  X(kMbarrierMisuse, "illegal use of an mbarrier object",                                          \
    "an mbarrier must be initialised, counts must stay in range, expected bytes must match",       \
    "9.7.13.15 mbarrier")                                                                          \
  X(kTransactionCount, "mbarrier transaction count mismatch",                                      \
    "bytes announced by expect_tx and bytes completed must agree in the phase",                    \
    "9.7.13.15.5 tx-count")                                                                        \
  X(kDescriptor, "illegal matrix or tensor descriptor", "every descriptor field must be legal",    \
    "9.7.15.5 / 9.7.16.4 Matrix descriptors")                                                      \
  X(kTensorMap, "illegal tensor copy", "tensor map, coordinates and box must be legal",            \
    "5.5 Tensors; 9.7.9.27 cp.async.bulk.tensor")                                                  \
  X(kWgmmaOrder, "wgmma ordering",                                                                 \
    "wgmma.fence, commit_group and wait_group must order register and "                            \
    "memory accesses",                                                                             \
    "9.7.15.7 Asynchronous wgmma")                                                                 \
  X(kTensorMemory, "illegal tensor memory access",                                                 \
    "tensor memory must be allocated, in range, and reachable from the warp",                      \
    "9.7.16.1 Tensor Memory")                                                                      \
  X(kTensorMemoryOrder, "tensor memory ordering",                                                  \
    "tcgen05 operations must be ordered by wait, commit and fence",                                \
    "9.7.16.6 tcgen05 consistency")                                                                \
  X(kTensorMemoryAllocation, "tensor memory allocation rule",                                      \
    "columns, order, permit and release of allocations must be legal", "9.7.16.7.1 tcgen05.alloc") \
  X(kTensorMemoryLeak, "tensor memory not freed at exit",                                          \
    "all tensor memory must be freed before the "                                                  \
    "kernel ends",                                                                                 \
    "9.7.16.7.1 tcgen05.alloc")                                                                    \
  X(kAsyncAtExit,                                                                                  \
    "thread block ended while an asynchronous operation still needs its shared memory",            \
    "shared memory must outlive the operations on it", "9.7.9.25 Asynchronous copy")               \
  X(kExitedCta, "access to shared memory of a CTA that has ended",                                 \
    "distributed shared memory may be accessed only while its CTA runs",                           \
    "5.1.7 Shared State Space")                                                                    \
  X(kRegisterCount, "illegal setmaxnreg",                                                          \
    "the count must be a multiple of 8 in 24..256 and the pool "                                   \
    "must allow it",                                                                               \
    "9.7.19.5 setmaxnreg")                                                                         \
  X(kIllegalOperand, "illegal operand value", "an operand must be in its legal range",             \
    "9.7 Instructions")                                                                            \
  X(kPredecessor, "access that may overtake the grid before",                                      \
    "a grid with programmatic dependence may touch what the grid before it writes only after "     \
    "griddepcontrol.wait",                                                                         \
    "9.7.13.13 griddepcontrol")                                                                    \
  X(kDataRace, "data race",                                                                        \
    "two accesses of one location, at least one a write and one plain, by threads that no "        \
    "synchronisation orders",                                                                      \
    "8.7.1 Conflict and data-races")                                                               \
  X(kIndirectCall, "illegal call through a register",                                              \
    "the register must hold the address of a function that the call's prototype or list of "       \
    "targets allows",                                                                              \
    "9.7.12.5 call")                                                                               \
  X(kStackOverflow, "stack overflow", "a thread's stack must hold its frames and allocations",     \
    "9.7.11.3 alloca")                                                                             \
  X(kTrap, "trap", "the program executed trap", "9.7.19.4 trap")                                   \
  X(kDeadlock, "deadlock", "some thread must be able to proceed", "8 Memory Consistency Model")    \
  X(kStepLimit, "step limit reached", "the run exceeded its limit of instructions", "-")           \
  X(kTimeLimit, "time limit reached", "the run exceeded its limit of time", "-")                   \
  X(kMemoryLimit, "memory limit reached", "the run exceeded its limit of simulator state", "-")

enum class FaultKind : uint8_t {
#define JITGEMM_SIM_FAULT_ENUMERATOR(e, n, r, s) e,
  JITGEMM_SIM_FAULTS(JITGEMM_SIM_FAULT_ENUMERATOR)
#undef JITGEMM_SIM_FAULT_ENUMERATOR
};

std::string_view fault_name(FaultKind kind);
std::string_view fault_rule(FaultKind kind);
std::string_view fault_section(FaultKind kind);

// Who did it: the instruction (index into DecodedProgram::ops), and the place in the grid.
struct Origin {
  static constexpr uint32_t kNoOp = ~uint32_t{0};
  uint32_t op = kNoOp;
  uint32_t cta[3] = {0, 0, 0};
  uint32_t warp = 0;
  int32_t lane = -1;  // -1: the warp as a whole
};

struct Fault {
  FaultKind kind = FaultKind::kTrap;
  Origin origin;
  std::string detail;    // what was found: addresses, sizes, values
  std::string operands;  // values of the operands in the faulting lane
};

}  // namespace jitgemm::sim
