// SPDX-License-Identifier: Apache-2.0
// Where the values of a kernel lie: registers and values given at the start in the warp's file,
// constants and addresses of variables in the constant bank, locals and parameters of functions in
// the thread's local memory. For decode.cpp, which turns instructions into ops; it knows no
// instruction.
#pragma once

#include "ptx/module.h"
#include "sim/program.h"
#include "support/result.h"

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace jitgemm::sim {

class KernelLayout {
 public:
  // `cycles`: ptx::call_cycles. What lies where goes into the kernel.
  KernelLayout(const ptx::Module& module, const std::vector<uint32_t>& cycles,
               DecodedKernel& kernel);
  // The entry and every function that it reaches: once, before anything else.
  void place(const std::vector<uint32_t>& functions);

  // An operand of an instruction of function f, read as `type`.
  Result<Operand> operand(uint32_t f, const ptx::Operand& source, ptx::Type type,
                          ptx::OperandRole role);
  Operand register_operand(uint32_t f, uint32_t index) const;
  Operand constant(uint64_t value, uint8_t bytes);
  // Where in its frame, or in local memory, a function has the parameters of its calls and its own.
  uint64_t call_frame(uint32_t f) const { return call_frame_.at(f); }
  uint64_t parameter_frame(uint32_t f) const { return parameter_frame_.at(f); }
  uint32_t file_bytes() const { return file_; }

 private:
  struct Placed {
    uint32_t offset = 0, state = 0;
  };

  uint32_t take_file(uint32_t bytes_per_lane);
  void place_registers(const std::vector<uint32_t>& functions);
  void place_frames(const std::vector<uint32_t>& functions);
  uint32_t new_constant(uint64_t value, uint8_t bytes);
  Operand initial(InitialValue v);
  Operand frame_address(uint32_t f, uint64_t offset, int64_t addend, bool parameter, uint8_t bytes);
  Result<Operand> symbol_address(uint32_t f, uint32_t index, int64_t addend, uint8_t bytes);

  const ptx::Module& module_;
  const std::vector<uint32_t>& cycles_;
  DecodedKernel& kernel_;
  Operand scratch_;
  uint32_t file_ = 0;
  std::map<uint32_t, std::vector<Placed>> registers_;
  std::map<uint32_t, uint64_t> local_frame_, call_frame_, parameter_frame_;
  std::map<std::pair<uint64_t, uint8_t>, uint32_t> constants_;
  std::map<std::tuple<uint32_t, int64_t, uint8_t>, uint32_t> variables_;
  std::map<std::tuple<int, int, uint8_t, uint8_t, bool, int64_t>, uint32_t> initial_;
};

}  // namespace jitgemm::sim
