// SPDX-License-Identifier: Apache-2.0
// Warpgroup matrix instructions (PTX ISA 9.7.15). Each of the four warps computes its own 16 rows
// of the 64, so a warp needs nothing of the others. An operation takes effect at the wait that
// returns its registers; until then they are pending. wgmma.fence orders earlier accesses to
// registers (9.7.15.7.1). A may be sparse (9.7.15.6).
#include "sim/exec.h"
#include "sim/exec_matrix.h"
#include "sim/models_fragments.h"
#include "sim/models_sparse.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace jitgemm::sim {
namespace {

constexpr uint32_t kRowsPerWarp = 16;

struct Form {
  bool a_in_registers = false;
  bool has_scales = false;  // imm-scale-a and -b
  bool transposes_a = false;
  bool transposes_b = false;
};

uint64_t encode(const Form& f) {
  return (f.a_in_registers ? 1u : 0u) | (f.has_scales ? 2u : 0u) | (f.transposes_a ? 4u : 0u) |
         (f.transposes_b ? 8u : 0u);
}
Form decode(uint64_t payload) {
  return {(payload & 1) != 0, (payload & 2) != 0, (payload & 4) != 0, (payload & 8) != 0};
}

// One operation between issue and completion.
struct Pending {
  Warp* warp = nullptr;
  MmaProblem problem;  // without spans
  std::span<const Operand> d;
  MatrixOperand a, b;
  bool a_in_registers = false;
  std::vector<uint32_t> a_codes;  // from registers
  std::vector<uint32_t> places;   // of sparse A: by row, of the elements stored
  std::vector<uint32_t> a_chunks, b_chunks;
  std::vector<bool> missing_rows, missing_columns;  // never written; empty: none
  Origin origin;
};

// Between an access of a register and a wgmma that uses it there is a wgmma.fence, unless both are
// accesses of an accumulator by wgmma of one shape (9.7.15.7.1). Reads of A twice are no conflict.
constexpr uint32_t kUseOfA = 1;
uint32_t use_of_d(const ptx::Modifiers& m) {
  return static_cast<uint32_t>(m.n) << 16 | static_cast<uint32_t>(m.k) << 1;
}

Step require_fenced(Warp& w, const Op& op, const Operand& r, uint32_t use) {
  if (!w.cta.cluster.grid.options.sanitize || r.state == 0) return Step::kNext;
  RegisterState& state = w.state(r);
  const char* what = use == kUseOfA ? "A" : "D";
  if (state.unfenced != 0) {
    return w.fault(op, std::countr_zero(state.unfenced), FaultKind::kWgmmaOrder,
                   fmt::format("no wgmma.fence after the last access to a register of {}", what));
  }
  if (state.matrix_use != 0 && state.matrix_use != use && w.cta.cluster.grid.options.strict) {
    return w.fault(
        op, -1, FaultKind::kWgmmaOrder,
        fmt::format("no wgmma.fence since a register of {} was used by a wgmma as {}", what,
                    state.matrix_use == kUseOfA ? "A" : "an accumulator of another use"));
  }
  state.matrix_use = use;
  return Step::kNext;
}

// The four warps issue the same instruction with the same descriptors; the last one to come forgets
// it.
Step check_agreement(Warp& w, const Op& op, uint64_t a, uint64_t b) {
  const uint32_t group = w.index / 4;
  if (4 * group + 4 > w.cta.warps.size()) {
    return w.fault(op, -1, FaultKind::kWgmmaOrder,
                   fmt::format("warp {} is in no whole warpgroup of the CTA's {} warps", w.index,
                               w.cta.warps.size()));
  }
  if (!w.cta.cluster.grid.options.sanitize) return Step::kNext;
  AsyncCtaState::Warpgroup& state = w.cta.async_state->warpgroups[group];
  const uint64_t number = state.issued[w.index % 4]++;
  const uint64_t at = number - state.first;
  if (at == state.issues.size()) {
    state.issues.push_back({op.index, w.index, a, b});
    return Step::kNext;
  }
  const AsyncCtaState::WgmmaIssue first = state.issues[at];
  while (!state.issues.empty() &&
         *std::min_element(state.issued.begin(), state.issued.end()) > state.first) {
    state.issues.pop_front();
    ++state.first;
  }
  if (first.op != op.index) {
    return w.fault(
        op, -1, FaultKind::kWgmmaOrder,
        fmt::format("warp {} of the warpgroup issued another wgmma here, of line {}", first.warp,
                    w.cta.cluster.grid.kernel->ops[first.op].instruction->position.line));
  }
  if (first.a != a || first.b != b) {
    return w.fault(
        op, -1, FaultKind::kDescriptor,
        fmt::format("warp {} of the warpgroup passes descriptors {:#x} and {:#x}, this one {:#x} "
                    "and {:#x}: they must be the same",
                    first.warp, first.a, first.b, a, b));
  }
  return Step::kNext;
}

Step read_descriptor(Warp& w, const Op& op, const Operand& slot, const char* what,
                     MatrixDescriptor& out, uint64_t& bits) {
  if (require_uniform(w, op, slot, kAllLanes, what, bits) == Step::kFault) return Step::kFault;
  const DecodedDescriptor decoded = decode_wgmma_descriptor(bits);
  if (!decoded.error.empty()) {
    return w.fault(op, 0, FaultKind::kDescriptor,
                   fmt::format("{} {:#x}: {}", what, bits, decoded.error));
  }
  out = decoded.descriptor;
  return Step::kNext;
}

Step read_sign(Warp& w, const Op& op, uint32_t slot, bool& negate) {
  const auto value = static_cast<int64_t>(static_cast<int32_t>(w.value(op.slot(slot), 0)));
  if (value != 1 && value != -1) {
    return w.fault(op, -1, FaultKind::kIllegalOperand,
                   fmt::format("the input scale is {}: 1 or -1 are legal", value));
  }
  negate = value == -1;
  return Step::kNext;
}

uint32_t& d_word(Pending& p, std::vector<uint32_t>& words, MatrixIndex at) {
  return words[static_cast<size_t>(at.row * p.problem.n + at.column)];
}

void complete(Pending& p) {
  Warp& w = *p.warp;
  MmaProblem& problem = p.problem;
  const bool half = problem.result == MmaResult::kF16;
  std::vector<uint32_t> a_codes = std::move(p.a_codes);
  std::vector<uint32_t> b_codes;
  std::vector<uint32_t> words(static_cast<size_t>(kRowsPerWarp) * static_cast<size_t>(problem.n));
  if (!p.a_in_registers) gather_codes(p.a, w.cta.shared.bytes, a_codes);
  if (!p.places.empty()) {
    for (const size_t row : expand_sparse_rows(a_codes, p.places, static_cast<size_t>(problem.k))) {
      if (p.missing_rows.empty() || !p.missing_rows[row])
        w.cta.cluster.raise(p.origin, FaultKind::kIllegalOperand, misplaced_element(row));
    }
  }
  gather_codes(p.b, w.cta.shared.bytes, b_codes);
  const auto each = [&](auto f) {
    for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
      for (int r = 0; r < static_cast<int>(p.d.size()); ++r) {
        f(w.lanes<uint32_t>(p.d[static_cast<size_t>(r)])[lane], lane, r);
      }
    }
  };
  if (problem.read_d) {
    each([&](uint32_t& reg, int lane, int r) {
      if (half) {
        d_word(p, words, d_fragment_half(16, lane, r, 0)) = reg & 0xffff;
        d_word(p, words, d_fragment_half(16, lane, r, 1)) = reg >> 16;
      } else {
        d_word(p, words, d_fragment(16, lane, r)) = reg;
      }
    });
  }
  // What was never written, in A, B or D, leaves nothing of its row, column or element.
  const auto is_missing = [&](LaneMask before, int lane, MatrixIndex at) {
    return (problem.read_d && (before >> lane & 1) != 0) ||
           (!p.missing_rows.empty() && p.missing_rows[static_cast<size_t>(at.row)]) ||
           (!p.missing_columns.empty() && p.missing_columns[static_cast<size_t>(at.column)]);
  };
  problem.a = a_codes;
  problem.b = b_codes;
  problem.d = words;
  mma_accumulate(problem, mma_numerics(w.cta.cluster.grid.options.numerics), MmaFamily::kWgmma);
  each([&](uint32_t& reg, int lane, int r) {
    if (half) {
      reg = d_word(p, words, d_fragment_half(16, lane, r, 0)) |
            d_word(p, words, d_fragment_half(16, lane, r, 1)) << 16;
    } else {
      reg = d_word(p, words, d_fragment(16, lane, r));
    }
  });
  for (int r = 0; r < static_cast<int>(p.d.size()); ++r) {
    const LaneMask before = w.undefined(p.d[static_cast<size_t>(r)]);
    LaneMask undefined = 0;
    if ((problem.read_d && before != 0) || !p.missing_rows.empty() || !p.missing_columns.empty()) {
      for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
        const bool bad = half ? is_missing(before, lane, d_fragment_half(16, lane, r, 0)) ||
                                    is_missing(before, lane, d_fragment_half(16, lane, r, 1))
                              : is_missing(before, lane, d_fragment(16, lane, r));
        if (bad) undefined |= LaneMask{1} << lane;
      }
    }
    RegisterState& state = w.state(p.d[static_cast<size_t>(r)]);
    state.undefined = undefined;
    state.partly = false;
  }
  end_operand_read(w.cta, p.a_chunks);
  end_operand_read(w.cta, p.b_chunks);
}

void read_a_registers(Warp& w, std::span<const Operand> registers, NumberFormat format, int k,
                      Pending& p) {
  const int bits = format_bits(format);
  const int per_register = 32 / bits;
  p.a_codes.assign(static_cast<size_t>(16 * k), 0);
  for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
    for (int r = 0; r < static_cast<int>(registers.size()); ++r) {
      const uint32_t word = w.lanes<uint32_t>(registers[static_cast<size_t>(r)])[lane];
      if ((w.undefined(registers[static_cast<size_t>(r)]) >> lane & 1) != 0) {
        p.missing_rows.resize(kRowsPerWarp);
        p.missing_rows[static_cast<size_t>(a_fragment(16, bits, lane, r, 0).row)] = true;
      }
      for (int i = 0; i < per_register; ++i) {
        const MatrixIndex at = a_fragment(16, bits, lane, r, i);
        const uint64_t mask = (uint64_t{1} << bits) - 1;
        p.a_codes[static_cast<size_t>(at.row * k + at.column)] =
            static_cast<uint32_t>(word >> (i * bits) & mask);
      }
    }
  }
}

Step exec_mma_async(Warp& w, const Op& op, LaneMask active) {
  const ptx::Modifiers& m = op.modifiers();
  const Form form = decode(op.payload);
  const bool sparse = m.has(ptx::Flag::kSparse);
  const uint32_t after = sparse ? 2 : 0;  // slots of the metadata come before the others
  const int stored_k = sparse ? m.k / 2 : m.k;
  auto pending = std::make_shared<Pending>();
  Pending& p = *pending;
  p.warp = &w;
  p.a_in_registers = form.a_in_registers;
  MmaProblem& problem = p.problem;
  problem.m = kRowsPerWarp;
  problem.n = m.n;
  problem.k = m.k;
  number_format(m.types[1], problem.a_format);
  number_format(m.types[2], problem.b_format);
  problem.result = m.types[0] == ptx::Type::kF16   ? MmaResult::kF16
                   : m.types[0] == ptx::Type::kF32 ? MmaResult::kF32
                   : m.has(ptx::Flag::kSatfinite)  ? MmaResult::kS32Saturated
                                                   : MmaResult::kS32;
  const Operand& scale_d = op.slot(3 + after);
  if (w.require_defined(op, scale_d, active, "scale-d") == Step::kFault) return Step::kFault;
  const LaneMask read_d = w.predicate(scale_d);
  if (read_d != 0 && read_d != kAllLanes) {
    return w.fault(op, -1, FaultKind::kIllegalOperand,
                   "scale-d differs between the lanes of the warp");
  }
  problem.read_d = read_d != 0;
  if (form.has_scales && (read_sign(w, op, 4 + after, problem.negate_a) == Step::kFault ||
                          read_sign(w, op, 5 + after, problem.negate_b) == Step::kFault)) {
    return Step::kFault;
  }
  const auto transposed = [&](bool has, uint32_t slot) {
    return has && (w.value(op.slot(slot + after), 0) & 1) != 0;
  };
  if (sparse && read_sparse_places(w, op, active, 3, kRowsPerWarp, format_bits(problem.a_format),
                                   p.places) == Step::kFault) {
    return Step::kFault;
  }
  p.b.format = problem.b_format;
  p.b.rows = m.n;
  p.b.k = m.k;
  p.b.mn_major = transposed(form.transposes_b, form.a_in_registers ? 6 : 7);
  uint64_t a_bits = 0;
  uint64_t b_bits = 0;
  if (read_descriptor(w, op, op.slot(2), "the descriptor of B", p.b.descriptor, b_bits) ==
      Step::kFault)
    return Step::kFault;

  p.d = registers_of(w, op.slot(0));
  for (const Operand& r : p.d) {
    if (require_fenced(w, op, r, use_of_d(m)) == Step::kFault) return Step::kFault;
    // A pending register will have been written by the operation before this one.
    const LaneMask written = ~w.state(r).pending;
    if (problem.read_d && require_fragment(w, op, r, written, "a register of D") == Step::kFault)
      return Step::kFault;
  }
  std::span<const Operand> a_registers;
  if (form.a_in_registers) {
    a_registers = registers_of(w, op.slot(1));
    for (const Operand& r : a_registers) {
      if (require_fenced(w, op, r, kUseOfA) == Step::kFault) return Step::kFault;
      if (require_fragment(w, op, r, active, "a register of A") == Step::kFault)
        return Step::kFault;
    }
    read_a_registers(w, a_registers, problem.a_format, stored_k, p);
  } else {
    p.a.format = problem.a_format;
    p.a.first_row = kRowsPerWarp * (w.index % 4);
    p.a.rows = kRowsPerWarp;
    p.a.k = static_cast<uint32_t>(stored_k);
    p.a.mn_major = transposed(form.transposes_a, 6);
    if (read_descriptor(w, op, op.slot(1), "the descriptor of A", p.a.descriptor, a_bits) ==
            Step::kFault ||
        begin_operand_read(w, op, w.cta, p.a, "matrix A", p.a_chunks, p.missing_rows) ==
            Step::kFault) {
      return Step::kFault;
    }
  }
  if (check_agreement(w, op, a_bits, b_bits) == Step::kFault ||
      begin_operand_read(w, op, w.cta, p.b, "matrix B", p.b_chunks, p.missing_columns) ==
          Step::kFault)
    return Step::kFault;

  AsyncWarpState& state = *w.async_state;
  AsyncOperation operation;
  operation.name = "wgmma.mma_async";
  operation.origin = p.origin = w.origin(op);
  operation.cta_rank = w.cta.rank;
  if (state.last_wgmma != 0) operation.after = {state.last_wgmma};
  operation.complete = [pending](Cluster&) { complete(*pending); };
  state.last_wgmma = w.cta.cluster.engine.submit(std::move(operation));
  AsyncWarpState::WgmmaGroup& group = state.wgmma.back();
  group.ids.push_back(state.last_wgmma);
  const auto own = [&](const Operand& r) {
    w.mark_pending(r, active);
    group.registers.emplace_back(r, active);
  };
  for (const Operand& r : p.d) own(r);
  for (const Operand& r : a_registers) own(r);
  return Step::kNext;
}

Step exec_fence(Warp& w, const Op&, LaneMask) {
  for (RegisterState& state : w.states) {
    state.unfenced = 0;
    state.matrix_use = 0;
  }
  return Step::kNext;
}

Step exec_commit(Warp& w, const Op&, LaneMask) {
  w.async_state->wgmma.emplace_back();
  return Step::kNext;
}

Step exec_wait(Warp& w, const Op& op, LaneMask) {
  std::vector<AsyncWarpState::WgmmaGroup>& groups = w.async_state->wgmma;
  const uint64_t keep = w.value(op.slot(0), 0);
  // The last entry is the group that is still open.
  const size_t committed = groups.size() - 1;
  if (committed <= keep) return Step::kNext;
  const size_t done = committed - keep;
  for (size_t i = 0; i < done; ++i) {
    for (const AsyncId id : groups[i].ids) w.cta.cluster.engine.complete(w.cta.cluster, id);
    for (const auto& [r, lanes] : groups[i].registers) w.clear_pending(r, lanes);
  }
  groups.erase(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(done));
  // Registers that a later group uses too are still not the program's.
  for (const AsyncWarpState::WgmmaGroup& group : groups) {
    for (const auto& [r, lanes] : group.registers) w.mark_pending(r, lanes);
  }
  return Step::kNext;
}

Choice choose_mma(const ptx::Function& function, const ptx::Instruction& instruction) {
  const ptx::Modifiers& m = instruction.modifiers;
  NumberFormat format = NumberFormat::kF16;
  if (!number_format(m.types[1], format) || !number_format(m.types[2], format)) {
    return Choice::refuse("this operand type of wgmma is not simulated");
  }
  // 9.7.15.2: n is a multiple of 8 up to 256; of the integer kind 8, 16, 24, then multiples of 16.
  const bool integer = m.types[0] == ptx::Type::kS32;
  if (m.n < 8 || m.n > 256 || m.n % 8 != 0 || (integer && m.n > 24 && m.n % 16 != 0)) {
    return Choice::refuse(fmt::format("n = {} is no shape of wgmma", m.n));
  }
  Form form;
  const auto operands = function.operands_of(instruction);
  form.a_in_registers = operands[1].kind == ptx::OperandKind::kVector;
  form.has_scales = operands.size() > (m.has(ptx::Flag::kSparse) ? 6u : 4u);
  const bool sixteen = format_bits(format) == 16;
  form.transposes_a = sixteen && !form.a_in_registers;
  form.transposes_b = sixteen;
  return {exec_mma_async, kOpAligned | kOpMatrix | kOpAsync | kOpOwnPendingCheck, encode(form), ""};
}

template <ExecuteFn kFn>
Choice aligned(const ptx::Function&, const ptx::Instruction&) {
  return {kFn, kOpAligned | kOpAsync, 0, ""};
}

constexpr OpcodeRow kRows[] = {
    {ptx::Opcode::kWgmmaMmaAsync,    choose_mma          },
    {ptx::Opcode::kWgmmaFence,       aligned<exec_fence> },
    {ptx::Opcode::kWgmmaCommitGroup, aligned<exec_commit>},
    {ptx::Opcode::kWgmmaWaitGroup,   aligned<exec_wait>  },
};

}  // namespace

std::span<const OpcodeRow> wgmma_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
