// SPDX-License-Identifier: Apache-2.0
// From PTX text to ops: the step between the front end (src/ptx) and the interpreter. Places
// registers in the warp's file, turns immediates and symbols into constants, and finds where
// branches reconverge.
#pragma once

#include "sim/program.h"
#include "support/result.h"

#include <memory>
#include <string_view>

namespace jitgemm::sim {

Result<std::shared_ptr<const DecodedProgram>> decode_program(std::string_view text);
// For modules that were made or changed in memory; the lines of the text stay empty.
Result<std::shared_ptr<const DecodedProgram>> decode_module(ptx::Module module,
                                                            std::string_view text);

// Device-function parameters and call parameters lie in the thread's local memory; their addresses
// in .param space have this bit, those of an entry's parameters don't.
inline constexpr uint64_t kParamFrameBit = uint64_t{1} << 31;

}  // namespace jitgemm::sim
