// SPDX-License-Identifier: Apache-2.0
// Copies the rows of one or two matrices so far apart that each begins on a multiple of 16 bytes,
// which TMA asks for. A warp takes a run of one row: its lanes read words as wide as the source
// allows and write 16 bytes each. Nothing but the source's rows is read; bytes between rows of the
// copy are zero or left alone.
#ifndef JITGEMM_SPECIALIZED
#include "example/align_rows_spec.cuh"
#endif

#include "device/align_params.cuh"
#include "device/mbarrier.cuh"

struct Align {
  enum : int {
    kWarps = Spec::kThreads / 32,
    kPieces = 4,  // of 16 bytes, that a lane has in flight
    kRunBytes = 32 * 16 * kPieces,
    kRunsOfRow = (Spec::kRowBytes + kRunBytes - 1) / kRunBytes,
    kWords = 16 / Spec::kUnit,
  };
};

static_assert(Spec::kUnit == 1 || Spec::kUnit == 2 || Spec::kUnit == 4 || Spec::kUnit == 8,
              "rows that begin on a multiple of 16 need no copy");
static_assert(Spec::kRowBytes % Spec::kUnit == 0, "a word is within a row or beyond it");
static_assert(Spec::kPitch % 16 == 0 && Spec::kPitch >= Spec::kRowBytes, "rows of the copy");

template <int kBytes>
struct Word;
template <>
struct Word<8> {
  using Type = unsigned long long;
};
template <>
struct Word<4> {
  using Type = unsigned;
};
template <>
struct Word<2> {
  using Type = unsigned short;
};
template <>
struct Word<1> {
  using Type = unsigned char;
};

union Piece {
  uint4 vector;
  Word<Spec::kUnit>::Type words[Align::kWords];
};

extern "C" __global__ void __launch_bounds__(Spec::kThreads)
    jitgemm_kernel(const __grid_constant__ AlignParams p) {
  wait_for_predecessor();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const long long runs =
      (static_cast<long long>(p.rows[0]) + p.rows[1]) * static_cast<int>(Align::kRunsOfRow);
  const long long step = static_cast<long long>(gridDim.x) * Align::kWarps;
  for (long long i = static_cast<long long>(blockIdx.x) * Align::kWarps + warp; i < runs;
       i += step) {
    const long long row_of_both = i / Align::kRunsOfRow;
    const int first =
        static_cast<int>(i - row_of_both * Align::kRunsOfRow) * Align::kRunBytes + 16 * lane;
    const int matrix = row_of_both < p.rows[0] ? 0 : 1;
    const long long row = row_of_both - (matrix == 0 ? 0 : p.rows[0]);
    const unsigned char* source = (matrix == 0 ? p.source[0] : p.source[1]) +
                                  row * (matrix == 0 ? p.source_pitch[0] : p.source_pitch[1]) +
                                  first;
    unsigned char* destination =
        (matrix == 0 ? p.destination[0] : p.destination[1]) + row * Spec::kPitch + first;
    Piece pieces[Align::kPieces];
#pragma unroll
    for (int piece = 0; piece < Align::kPieces; ++piece) {
#pragma unroll
      for (int word = 0; word < Align::kWords; ++word) {
        const int offset = 512 * piece + Spec::kUnit * word;
        pieces[piece].words[word] =
            first + offset < Spec::kRowBytes
                ? *reinterpret_cast<const Word<Spec::kUnit>::Type*>(source + offset)
                : 0;
      }
    }
#pragma unroll
    for (int piece = 0; piece < Align::kPieces; ++piece) {
      if (first + 512 * piece < Spec::kRowBytes) {
        *reinterpret_cast<uint4*>(destination + 512 * piece) = pieces[piece].vector;
      }
    }
  }
}
