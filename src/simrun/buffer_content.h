// SPDX-License-Identifier: Apache-2.0
// Bytes of buffers: made from a description before a run, written to files and compared after it.
// Not for other folders.
#pragma once

#include "simrun/launch_description.h"
#include "support/result.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace jitgemm::simrun {

// Relative names of files are taken from `folder`; "" is the current one.
std::string path_in(const std::string& folder, const std::string& file);

// Fills all bytes with what the description says, except kFields (whose addresses are known only
// later), which zeroes them. kNone leaves them as they are.
Status fill_content(const ContentDescription& content, const BufferDescription& buffer,
                    const std::string& folder, std::span<std::byte> bytes);

// "" if the buffer holds what was expected; else the first difference and how many there are.
std::string compare_content(const ExpectationDescription& expectation,
                            const BufferDescription& buffer, std::span<const std::byte> found,
                            std::span<const std::byte> expected);

// Whether the outputs can be written, before a run is spent on them: each to a place of its own.
Status check_outputs(std::span<const BufferDescription> buffers, const std::string& folder);

// Writes every buffer that has an output. Tensors of one safetensors file are written together.
Status write_outputs(std::span<const BufferDescription> buffers,
                     std::span<const std::span<const std::byte>> contents,
                     const std::string& folder);

// The bits of element i.
uint64_t element_bits(const ElementType& type, std::span<const std::byte> bytes, uint64_t i);

}  // namespace jitgemm::simrun
