// SPDX-License-Identifier: Apache-2.0
// Small integer matrices for tests of matrix instructions: packed into the no-swizzle K-major
// layout (core matrices of 8 rows by 16 bytes, the two of a row pair 128 bytes apart, row groups
// 256 bytes apart), with the product computed in plain loops.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace jitgemm::sim {

// 32 one-byte elements a row.
struct SmallMatrix {
  int rows = 0;
  std::vector<int> values;  // rows * 32, in -3..3

  SmallMatrix(int row_count, uint32_t seed)
      : rows(row_count), values(static_cast<size_t>(row_count) * 32) {
    uint32_t state = seed * 2654435761u + 1;
    for (int& v : values) {
      state = state * 1664525u + 1013904223u;
      v = static_cast<int>(state >> 24) % 7 - 3;
    }
  }
  int at(int row, int k) const {
    return values[static_cast<size_t>(row) * 32 + static_cast<size_t>(k)];
  }

  // e4m3 codes of -3..3.
  static uint8_t code(int v) {
    const uint8_t magnitudes[] = {0x00, 0x38, 0x40, 0x44};
    return static_cast<uint8_t>(magnitudes[v < 0 ? -v : v] | (v < 0 ? 0x80 : 0));
  }
  std::vector<uint8_t> packed(bool integers = false) const {
    std::vector<uint8_t> bytes(static_cast<size_t>(rows) * 32);
    for (int r = 0; r < rows; ++r) {
      for (int k = 0; k < 32; ++k) {
        const int at_byte = r / 8 * 256 + k / 16 * 128 + r % 8 * 16 + k % 16;
        bytes[static_cast<size_t>(at_byte)] =
            integers ? static_cast<uint8_t>(at(r, k)) : code(at(r, k));
      }
    }
    return bytes;
  }
};

inline int dot(const SmallMatrix& a, int row, const SmallMatrix& b, int column) {
  int sum = 0;
  for (int k = 0; k < 32; ++k) sum += a.at(row, k) * b.at(column, k);
  return sum;
}

// PTX: a matrix descriptor for the layout above in `rd`, from the 32-bit shared address in `r`.
// `high` is the upper half: stride 256 >> 4 and what the family adds.
inline std::string descriptor(const std::string& rd, const std::string& r,
                              const std::string& temporary, const std::string& temporary64,
                              uint32_t high) {
  return "shr.u32 " + temporary + ", " + r + ", 4;\nand.b32 " + temporary + ", " + temporary +
         ", 0x3fff;\nor.b32 " + temporary + ", " + temporary + ", 0x80000;\ncvt.u64.u32 " + rd +
         ", " + temporary + ";\nmov.u64 " + temporary64 + ", " +
         std::to_string(uint64_t{high} << 32) + ";\nor.b64 " + rd + ", " + rd + ", " + temporary64 +
         ";\n";
}
inline constexpr uint32_t kWgmmaHigh = 256 >> 4;
inline constexpr uint32_t kTcgen05High = 256 >> 4 | 1 << 14;

}  // namespace jitgemm::sim
