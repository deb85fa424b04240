// SPDX-License-Identifier: Apache-2.0
// Copies rows of operands and of scales so far apart that each begins on a multiple of 16 bytes,
// which TMA asks for. A warp takes a run of one row: its lanes read words as wide as the source
// allows and write 16 bytes each. Nothing but the source's rows is read; bytes between rows of the
// copy are zero or left alone.
#ifndef JITGEMM_SPECIALIZED
#include "example/align_rows_spec.cuh"
#endif

#include "device/align_params.cuh"
#include "device/mbarrier.cuh"
#include "device/words.cuh"

constexpr int kWarps = Spec::kThreads / 32;
constexpr int kPieces = 4;  // of 16 bytes, that a lane has in flight
constexpr int kRunBytes = 32 * 16 * kPieces;

static_assert(Spec::kPitch % 16 == 0 && Spec::kPitch >= Spec::kRowBytes, "rows of the copy");
static_assert(Spec::kScalePitch % 16 == 0 && Spec::kScalePitch >= Spec::kScaleBytes,
              "rows of the copied scales");

// The run of a row that begins at byte `first`.
template <int kRowBytes, int kUnit>
__device__ __forceinline__ void copy_run(const unsigned char* source, unsigned char* destination,
                                         int first, int lane) {
  static_assert(kRowBytes % kUnit == 0, "a word is within a row or beyond it");
  using Unit = typename Words<kUnit>::Type;
  union {
    uint4 vector;
    Unit words[16 / kUnit];
  } pieces[kPieces];
  const int begin = first + 16 * lane;
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
    for (int word = 0; word < 16 / kUnit; ++word) {
      const int offset = begin + 512 * piece + kUnit * word;
      pieces[piece].words[word] =
          offset < kRowBytes ? *reinterpret_cast<const Unit*>(source + offset) : Unit{};
    }
  }
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    const int offset = begin + 512 * piece;
    if (offset < kRowBytes) {
      *reinterpret_cast<uint4*>(destination + offset) = pieces[piece].vector;
    }
  }
}

// A warp's part of one matrix: every step-th of its runs from `run` on. `run` becomes the warp's
// first in the matrix that follows.
template <int kRowBytes, int kPitch, int kUnit>
__device__ __forceinline__ void copy_matrix(const AlignedMatrix& m, long long& run, long long step,
                                            int lane) {
  constexpr int kRunsOfRow = (kRowBytes + kRunBytes - 1) / kRunBytes;
  const long long runs = m.rows * kRunsOfRow;
  for (; run < runs; run += step) {
    const long long row = run / kRunsOfRow;
    const int first = static_cast<int>(run - row * kRunsOfRow) * kRunBytes;
    copy_run<kRowBytes, kUnit>(m.source + row * m.source_pitch, m.destination + row * kPitch, first,
                               lane);
  }
  run -= runs;
}

extern "C" __global__ void __launch_bounds__(Spec::kThreads)
    jitgemm_kernel(const __grid_constant__ AlignParams p) {
  wait_for_predecessor();
  allow_successor();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const long long step = static_cast<long long>(gridDim.x) * kWarps;
  long long run = static_cast<long long>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / 32;
  copy_matrix<Spec::kRowBytes, Spec::kPitch, Spec::kUnit>(p.a, run, step, lane);
  copy_matrix<Spec::kRowBytes, Spec::kPitch, Spec::kUnit>(p.b, run, step, lane);
  copy_matrix<Spec::kScaleBytes, Spec::kScalePitch, 4>(p.a_scales, run, step, lane);
  copy_matrix<Spec::kScaleBytes, Spec::kScalePitch, 4>(p.b_scales, run, step, lane);
}
