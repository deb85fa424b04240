// SPDX-License-Identifier: Apache-2.0
// How an instruction gets its semantics: each exec_*.cpp offers rows {opcode, chooser}; the decoder
// asks the chooser once for each instruction of a loaded program, and it answers with the function
// to execute or with the reason why this form is not supported. See README.md for how to add one.
#pragma once

#include "ptx/module.h"
#include "sim/program.h"

#include <span>
#include <string>

namespace jitgemm::sim {

struct Choice {
  ExecuteFn execute = nullptr;
  uint32_t flags = 0;         // OpFlags
  uint64_t payload = 0;       // becomes Op::payload
  std::string unsupported{};  // reason, if execute is null

  static Choice refuse(std::string reason) { return {nullptr, 0, 0, std::move(reason)}; }
};

// `operands` are the slots of the form as the resolver filled them: what is a register, an
// immediate, present or not. Values of registers are not known here.
using ChooseFn = Choice (*)(const ptx::Function& function, const ptx::Instruction& instruction);

struct OpcodeRow {
  ptx::Opcode opcode;
  ChooseFn choose;
};

std::span<const OpcodeRow> integer_rows();
std::span<const OpcodeRow> integer_bit_rows();  // counts, fields, masks, byte products
std::span<const OpcodeRow> logic_rows();        // and shifts, byte permutation
std::span<const OpcodeRow> compare_rows();      // and selection
std::span<const OpcodeRow> mov_rows();
std::span<const OpcodeRow> float_rows();
std::span<const OpcodeRow> half_rows();  // f16 and bf16 arithmetic
std::span<const OpcodeRow> convert_rows();
std::span<const OpcodeRow> packed_convert_rows();
std::span<const OpcodeRow> memory_rows();
std::span<const OpcodeRow> matrix_move_rows();  // ldmatrix, stmatrix, movmatrix
std::span<const OpcodeRow> address_rows();      // cvta, isspacep, mapa, prefetch, ...
std::span<const OpcodeRow> atomic_rows();
std::span<const OpcodeRow> control_rows();
std::span<const OpcodeRow> call_rows();  // call, ret, the stack
std::span<const OpcodeRow> barrier_rows();
std::span<const OpcodeRow> warp_rows();
std::span<const OpcodeRow> async_copy_rows();  // cp.async without bulk
// Asynchronous and matrix instructions.
std::span<const OpcodeRow> mbarrier_rows();
std::span<const OpcodeRow> tma_rows();
std::span<const OpcodeRow> wgmma_rows();
std::span<const OpcodeRow> tcgen05_rows();
std::span<const OpcodeRow> tcgen05_access_rows();
std::span<const OpcodeRow> tcgen05_mma_rows();
std::span<const OpcodeRow> mma_rows();

// Asks the rows of the instruction's opcode, in the order of the lists above, for one that takes
// it.
Choice choose_instruction(const ptx::Function& function, const ptx::Instruction& instruction);

}  // namespace jitgemm::sim
