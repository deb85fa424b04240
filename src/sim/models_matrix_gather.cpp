// SPDX-License-Identifier: Apache-2.0
#include "sim/models_matrix_gather.h"

#include <algorithm>
#include <cstring>

namespace jitgemm::sim {

uint32_t chunk_elements(NumberFormat format, bool packed_fp4) {
  if (packed_fp4) return 32;
  switch (format_bits(format)) {
    case 32: return 4;
    case 16: return 8;
    default: return 16;
  }
}

void unpack_chunk(NumberFormat format, bool packed_fp4, const std::byte* chunk, uint32_t* codes) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(chunk);
  const int bits = format_bits(format);
  if (bits >= 8) {
    const uint32_t width = static_cast<uint32_t>(bits) / 8;
    for (uint32_t i = 0; i < 16 / width; ++i) {
      codes[i] = 0;
      std::memcpy(&codes[i], bytes + i * width, width);
    }
    return;
  }
  // Contiguous 4- or 6-bit fields, the first in the lowest bits.
  const uint32_t count = packed_fp4 ? 32 : 16;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t at = i * static_cast<uint32_t>(bits);
    uint32_t pair = bytes[at / 8];
    if (at / 8 + 1 < 16) pair |= static_cast<uint32_t>(bytes[at / 8 + 1]) << 8;
    codes[i] = (pair >> (at % 8)) & ((1u << bits) - 1);
  }
}

uint32_t unpack_tensor_word(NumberFormat format, bool packed_fp4, uint32_t word, uint32_t* codes) {
  const int bits = format_bits(format);
  if (bits == 32) {
    codes[0] = word;
    return 1;
  }
  if (bits == 16) {
    codes[0] = word & 0xffff;
    codes[1] = word >> 16;
    return 2;
  }
  if (packed_fp4) {
    for (uint32_t i = 0; i < 8; ++i) codes[i] = word >> (4 * i) & 0xf;
    return 8;
  }
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t container = word >> (8 * i) & 0xff;
    codes[i] = bits == 8 ? container : (bits == 6 ? container & 0x3f : container >> 2 & 0xf);
  }
  return 4;
}

std::vector<uint32_t> chunk_addresses(const MatrixOperand& o) {
  const uint32_t per_chunk = chunk_elements(o.format, o.packed_fp4);
  std::vector<uint32_t> out;
  if (!o.mn_major) {
    for (uint32_t row = o.first_row; row < o.first_row + o.rows; ++row) {
      for (uint32_t chunk = 0; chunk < o.k / per_chunk; ++chunk) {
        out.push_back(k_major_address(o.descriptor, row, chunk));
      }
    }
    return out;
  }
  const uint32_t first = o.first_row / per_chunk;
  const uint32_t last = (o.first_row + o.rows + per_chunk - 1) / per_chunk;
  for (uint32_t k = 0; k < o.k; ++k) {
    for (uint32_t chunk = first; chunk < last; ++chunk)
      out.push_back(mn_major_address(o.descriptor, chunk, k));
  }
  return out;
}

RowRange chunk_rows(const MatrixOperand& o, size_t chunk) {
  const uint32_t per_chunk = chunk_elements(o.format, o.packed_fp4);
  if (!o.mn_major) {
    const auto row = static_cast<uint32_t>(chunk / (o.k / per_chunk));
    return {row, row + 1};
  }
  const uint32_t first = o.first_row / per_chunk;
  const uint32_t count = (o.first_row + o.rows + per_chunk - 1) / per_chunk - first;
  const uint32_t begin = (first + static_cast<uint32_t>(chunk % count)) * per_chunk;
  const uint32_t end = begin + per_chunk;
  return {std::max(begin, o.first_row) - o.first_row,
          std::min(end, o.first_row + o.rows) - o.first_row};
}

void gather_codes(const MatrixOperand& o, std::span<const std::byte> shared,
                  std::vector<uint32_t>& codes) {
  const uint32_t per_chunk = chunk_elements(o.format, o.packed_fp4);
  const size_t base = codes.size();
  codes.resize(base + size_t{o.rows} * o.k);
  if (!o.mn_major) {
    uint32_t* to = codes.data() + base;
    for (uint32_t row = o.first_row; row < o.first_row + o.rows; ++row) {
      for (uint32_t chunk = 0; chunk < o.k / per_chunk; ++chunk, to += per_chunk) {
        unpack_chunk(o.format, o.packed_fp4,
                     shared.data() + k_major_address(o.descriptor, row, chunk), to);
      }
    }
    return;
  }
  uint32_t elements[32];
  for (uint32_t k = 0; k < o.k; ++k) {
    for (uint32_t row = 0; row < o.rows; ++row) {
      const uint32_t index = o.first_row + row;
      if (row == 0 || index % per_chunk == 0) {
        unpack_chunk(o.format, false,
                     shared.data() + mn_major_address(o.descriptor, index / per_chunk, k),
                     elements);
      }
      codes[base + size_t{row} * o.k + k] = elements[index % per_chunk];
    }
  }
}

}  // namespace jitgemm::sim
