// SPDX-License-Identifier: Apache-2.0
#include "sim/exec.h"

#include "fmt/format.h"

#include <iterator>

namespace jitgemm::sim {

Choice choose_instruction(const ptx::Function& function, const ptx::Instruction& instruction) {
  // Each list is constant; asking them in turn happens once an instruction of a loaded program.
  using Rows = std::span<const OpcodeRow> (*)();
  constexpr Rows kLists[] = {
      integer_rows, integer_bit_rows, logic_rows,       compare_rows,        mov_rows,
      float_rows,   half_rows,        convert_rows,     packed_convert_rows, memory_rows,
      address_rows, atomic_rows,      matrix_move_rows, control_rows,        call_rows,
      barrier_rows, warp_rows,        async_copy_rows,  mbarrier_rows,       tma_rows,
      wgmma_rows,   mma_rows,         tcgen05_rows,     tcgen05_access_rows, tcgen05_mma_rows};
  Choice refused;
  for (const Rows rows : kLists) {
    for (const OpcodeRow& row : rows()) {
      if (row.opcode != instruction.opcode) continue;
      Choice choice = row.choose(function, instruction);
      if (choice.execute != nullptr) return choice;
      refused = std::move(choice);
    }
  }
  if (refused.unsupported.empty()) {
    refused.unsupported =
        fmt::format("{} is not implemented", ptx::opcode_name(instruction.opcode));
  }
  return refused;
}

}  // namespace jitgemm::sim
