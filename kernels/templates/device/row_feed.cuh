// SPDX-License-Identifier: Apache-2.0
// Operand tiles for which TMA is illegal: rows that are not a multiple of 16 bytes apart. Threads
// of producer warps write the tile that TMA would have written: 128-byte rows in the 128-byte
// swizzle, zero beyond the operand's last row and beyond k. Nothing outside [row, row + k) is read.
// Knows nothing of barriers: the caller fences and arrives.
#pragma once

#include "device/tma.cuh"

// kRows rows from row0 and 128 bytes from k0 on, by cp.async of 4 bytes; needs row distance and
// base to be multiples of 4 bytes. One warp takes one row at a time, so that its reads are
// contiguous.
template <int kRows, int kK, int kWarps>
__device__ __forceinline__ void feed_rows_cp_async(SharedAddress tile, const unsigned char* data,
                                                   long long ld, int rows, int row0, int k0,
                                                   int warp, int lane) {
  const int column = lane * 4;
  const int left = kK - (k0 + column);
  const int bytes = left >= 4 ? 4 : (left > 0 ? left : 0);
#pragma unroll 4
  for (int r = warp; r < kRows; r += kWarps) {
    const bool inside = row0 + r < rows && bytes > 0;
    const unsigned char* source = inside ? data + (row0 + r) * ld + k0 + column : data;
    cp_async_4(tile + swizzle_128b(r, column), source, inside ? bytes : 0);
  }
}

// A 4-byte aligned word of which bytes outside [begin, end) are not read and come as zero.
__device__ __forceinline__ unsigned load_word_within(const unsigned char* word,
                                                     const unsigned char* begin,
                                                     const unsigned char* end) {
  if (word >= begin && word + 4 <= end) return *reinterpret_cast<const unsigned*>(word);
  unsigned value = 0;
// Only the two ends of a row come here.
#pragma unroll 1
  for (int i = 0; i < 4; ++i) {
    if (word + i >= begin && word + i < end) value |= static_cast<unsigned>(word[i]) << (8 * i);
  }
  return value;
}

// The same by ordinary loads, for any row distance and alignment: aligned words, shifted into
// place.
template <int kRows, int kK, int kWarps>
__device__ __forceinline__ void feed_rows_plain(SharedAddress tile, const unsigned char* data,
                                                long long ld, int rows, int row0, int k0, int warp,
                                                int lane) {
#pragma unroll 4
  for (int r = warp; r < kRows; r += kWarps) {
    unsigned low = 0;
    unsigned last = 0;
    unsigned shift = 0;
    if (row0 + r < rows) {  // the same for the whole warp
      const unsigned char* begin = data + (row0 + r) * ld;
      const unsigned char* end = begin + kK;
      const unsigned char* from = begin + k0;
      const unsigned misaligned =
          static_cast<unsigned>(reinterpret_cast<unsigned long long>(from)) & 3;
      const unsigned char* word = from - misaligned + lane * 4;
      shift = misaligned * 8;
      low = load_word_within(word, begin, end);
      if (lane == 31 && misaligned != 0) last = load_word_within(word + 4, begin, end);
    }
    const unsigned next = __shfl_down_sync(0xffffffffu, low, 1);
    const unsigned value = __funnelshift_r(low, lane == 31 ? last : next, shift);
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(tile + swizzle_128b(r, lane * 4)), "r"(value)
                 : "memory");
  }
}
