// SPDX-License-Identifier: Apache-2.0
// The element codes of a matrix operand in shared memory: which 16-byte chunks a descriptor names
// and how elements are packed in them (PTX ISA 9.7.15.5.1.2, 9.7.16.10.4). Works on a view of the
// bytes; knows no machine. In f8f6f4 kinds a chunk holds 16 elements of any width, padded at its
// end.
#pragma once

#include "sim/models_number_formats.h"
#include "sim/models_smem_descriptor.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace jitgemm::sim {

struct MatrixOperand {
  MatrixDescriptor descriptor;
  NumberFormat format = NumberFormat::kF16;
  bool mn_major = false;
  bool packed_fp4 = false;  // mxf4 kinds: 32 elements a chunk
  uint32_t first_row = 0;   // of the matrix that the descriptor describes
  uint32_t rows = 0;
  uint32_t k = 0;
};

// Elements in a 16-byte chunk.
uint32_t chunk_elements(NumberFormat format, bool packed_fp4);

// Offsets of all chunks that the operand reads, in no particular order.
std::vector<uint32_t> chunk_addresses(const MatrixOperand& operand);
// Rows (of K-major: those; of MN-major: those of its elements) that the i-th of chunk_addresses()
// holds, counted from the first of the operand: [first, last).
struct RowRange {
  uint32_t first = 0, last = 0;
};
RowRange chunk_rows(const MatrixOperand& operand, size_t chunk);
// rows * k codes, k fastest, appended to `codes`.
void gather_codes(const MatrixOperand& operand, std::span<const std::byte> shared,
                  std::vector<uint32_t>& codes);
// The codes of one 16-byte chunk.
void unpack_chunk(NumberFormat format, bool packed_fp4, const std::byte* chunk, uint32_t* codes);
// The codes of one 32-bit word of A in tensor memory (9.7.16.10.4.3 and .5): 8-bit containers hold
// 4-bit elements in their bits 2-5 and 6-bit elements in their bits 0-5. Returns their number.
uint32_t unpack_tensor_word(NumberFormat format, bool packed_fp4, uint32_t word, uint32_t* codes);

}  // namespace jitgemm::sim
