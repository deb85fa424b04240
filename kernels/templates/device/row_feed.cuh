// SPDX-License-Identifier: Apache-2.0
// Operand tiles for which TMA is illegal: rows that are not a multiple of 16 bytes apart. Threads
// of producer warps write the tile that TMA would have written: 128-byte rows in the 128-byte
// swizzle, zero beyond the operand's last row and beyond k. Nothing outside [row, row + k) is read.
// Knows nothing of barriers: the caller fences and arrives.
#pragma once

#include "device/memory.cuh"
#include "device/tma.cuh"

// Rows row0 and on of an operand, to a tile of shared memory.
struct FeedTile {
  SharedAddress tile;
  const unsigned char* data;
  long long ld;
  int rows;  // of the whole operand
  int row0;
};

// A 4-byte aligned word of which bytes outside [begin, end) are not read and come as zero.
__device__ __forceinline__ unsigned load_word_within(const unsigned char* word,
                                                     const unsigned char* begin,
                                                     const unsigned char* end) {
  unsigned value = 0;
#pragma unroll 1
  for (int i = 0; i < 4; ++i) {
    if (word + i >= begin && word + i < end) value |= static_cast<unsigned>(word[i]) << (8 * i);
  }
  return value;
}

// A 4-byte aligned word, or zero without a read. Free of branches, so that many are in flight.
__device__ __forceinline__ unsigned load_word_if(const unsigned char* word, bool condition) {
  unsigned value;
  asm("{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %2, 0;\n"
      "mov.b32 %0, 0;\n"
      "@p ld.global.b32 %0, [%1];\n"
      "}\n"
      : "=r"(value)
      : "l"(__cvta_generic_to_global(word)), "r"(static_cast<unsigned>(condition)));
  return value;
}

// 4 bytes of a row by cp.async; needs row distance and base to be multiples of 4.
template <int kK>
__device__ __forceinline__ void feed_word_cp_async(const FeedTile& to, int row, int k, int column) {
  const int left = kK - k;
  const bool inside = to.row0 + row < to.rows && left > 0;
  const unsigned char* source = inside ? to.data + (to.row0 + row) * to.ld + k : to.data;
  cp_async_4(to.tile + swizzle_128b(row, column), source, !inside ? 0 : left < 4 ? left : 4);
}

// The same by ordinary loads, for any row distance and alignment: two aligned words, shifted into
// place. kEnd: the row may begin or end within them.
template <int kK, bool kEnd>
__device__ __forceinline__ void feed_word_plain(const FeedTile& to, int row, int k, int column) {
  const bool inside = to.row0 + row < to.rows;
  const unsigned char* begin = inside ? to.data + (to.row0 + row) * to.ld : to.data;
  const unsigned char* end = inside ? begin + kK : begin;
  const unsigned char* from = begin + k;
  const unsigned misaligned = static_cast<unsigned>(reinterpret_cast<unsigned long long>(from)) & 3;
  const unsigned char* word = from - misaligned;
  unsigned low, high;
  if constexpr (kEnd) {
    low = load_word_within(word, begin, end);
    high = load_word_within(word + 4, begin, end);
  } else {
    low = load_word_if(word, inside);
    high = load_word_if(word + 4, inside && misaligned != 0);
  }
  store_shared(to.tile + swizzle_128b(row, column), __funnelshift_r(low, high, misaligned * 8));
}

enum class FeedBy { kCpAsync, kPlain, kPlainEnd };

// Two tiles of kFirst and kSecond rows (either may be 0), 128 bytes from k0 on. One warp takes one
// row at a time, so that its reads are contiguous; one loop for both tiles, so that its code exists
// once.
template <FeedBy kBy, int kFirst, int kSecond, int kK, int kWarps>
__device__ __forceinline__ void feed_rows_by(const FeedTile& first, const FeedTile& second, int k0,
                                             int warp, int lane) {
  constexpr int kUnroll = kBy == FeedBy::kPlainEnd ? 1 : 4;
#pragma unroll kUnroll
  for (int r = warp; r < kFirst + kSecond; r += kWarps) {
    const bool in_first = r < kFirst;
    const FeedTile& to = in_first ? first : second;
    const int row = in_first ? r : r - kFirst;
    const int column = lane * 4;
    if constexpr (kBy == FeedBy::kCpAsync) {
      feed_word_cp_async<kK>(to, row, k0 + column, column);
    } else {
      feed_word_plain<kK, kBy == FeedBy::kPlainEnd>(to, row, k0 + column, column);
    }
  }
}

template <bool kCpAsync, int kFirst, int kSecond, int kK, int kWarps>
__device__ __forceinline__ void feed_rows(const FeedTile& first, const FeedTile& second, int k0,
                                          int warp, int lane) {
  if constexpr (kCpAsync) {
    feed_rows_by<FeedBy::kCpAsync, kFirst, kSecond, kK, kWarps>(first, second, k0, warp, lane);
  } else if (k0 > 0 && k0 + 132 <= kK) {
    feed_rows_by<FeedBy::kPlain, kFirst, kSecond, kK, kWarps>(first, second, k0, warp, lane);
  } else {
    feed_rows_by<FeedBy::kPlainEnd, kFirst, kSecond, kK, kWarps>(first, second, k0, warp, lane);
  }
}
