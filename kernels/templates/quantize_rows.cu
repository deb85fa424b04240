// SPDX-License-Identifier: Apache-2.0
// Rows of fp32, bf16 or fp16 to FP8 codes, with one scale for each run of group_k columns. A warp
// takes a few neighbouring scale blocks of one row: it loads them, finds each one's largest |x|,
// and writes the scale and the codes. All arithmetic is fp32, in the order that the host quantiser
// (src/verify/quantizer.h) documents, so that both give the same bits:
//   scale = max(amax / largest, 1e-10), with kPowerOfTwo rounded up to a power of two
//   code  = fp8(clamp(x / scale)), to nearest even
// A NaN makes its block's scale and codes NaN. Columns beyond k are neither read nor written.
#ifndef JITGEMM_SPECIALIZED
#include "example/quantize_rows_spec.cuh"
#endif

#include "device/convert.cuh"
#include "device/mbarrier.cuh"
#include "device/quantize.cuh"
#include "device/quantize_params.cuh"
#include "device/words.cuh"

struct Quantize {
  enum : int {
    kWarps = Spec::kThreads / 32,
    kBlocksOfRow = (Spec::kK + Spec::kGroupK - 1) / Spec::kGroupK,
    kUnitsOfRow = (kBlocksOfRow + Spec::kBlocks - 1) / Spec::kBlocks,
    // A lane takes kVector neighbouring columns of every 32 * kVector.
    kSteps = Spec::kGroupK / (32 * Spec::kVector),
    kValues = Spec::kGroupK / 32,
    // Longer blocks are read twice instead of being held in registers.
    kHeld = kValues <= 32,
    kSourceBytes = Spec::kSource == kF32 ? 4 : 2,
    kVectorBytes = Spec::kVector * kSourceBytes,
  };
};

static_assert(Spec::kGroupK % (32 * Spec::kVector) == 0, "a warp covers a scale block evenly");
static_assert(Spec::kK % Spec::kVector == 0, "a vector is within k or beyond it");
static_assert(Quantize::kVectorBytes <= 16, "the widest load is 16 bytes");
static_assert(Spec::kThreads % 32 == 0 && Spec::kBlocks >= 1, "warps of scale blocks");
static_assert(Spec::kScaleType == 0 || Spec::kPowerOfTwo == 1, "E8M0 holds powers of two only");

__device__ __forceinline__ float half_to_float(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

// kVector neighbouring elements, as one load; exact.
__device__ __forceinline__ void load_vector(const unsigned char* address, float* values) {
  using Word = typename Words<Quantize::kVectorBytes>::Type;
  union {
    Word word;
    unsigned short halves[Quantize::kVectorBytes / 2];
    float floats[Quantize::kVectorBytes / 4 > 0 ? Quantize::kVectorBytes / 4 : 1];
  } bits;
  bits.word = *reinterpret_cast<const Word*>(address);
#pragma unroll
  for (int i = 0; i < Spec::kVector; ++i) {
    if constexpr (Spec::kSource == kF32) {
      values[i] = bits.floats[i];
    } else if constexpr (Spec::kSource == kBF16) {
      values[i] = __uint_as_float(static_cast<unsigned>(bits.halves[i]) << 16);
    } else {
      values[i] = half_to_float(bits.halves[i]);
    }
  }
}

__device__ __forceinline__ void store_codes(unsigned char* address, const float* values,
                                            float scale) {
  using Word = typename Words<Spec::kVector>::Type;
  union {
    Word word;
    unsigned short pairs[Spec::kVector / 2 > 0 ? Spec::kVector / 2 : 1];
  } bits;
  if constexpr (Spec::kVector == 1) {
    bits.word = static_cast<Word>(encode_pair(__fdiv_rn(values[0], scale), 0.0f));
  } else {
#pragma unroll
    for (int i = 0; i < Spec::kVector; i += 2) {
      bits.pairs[i / 2] = static_cast<unsigned short>(
          encode_pair(__fdiv_rn(values[i], scale), __fdiv_rn(values[i + 1], scale)));
    }
  }
  *reinterpret_cast<Word*>(address) = bits.word;
}

// Neighbouring scale blocks of one row.
struct Unit {
  const QuantizeParams& p;
  long long row;
  int first_block;
  int lane;

  __device__ __forceinline__ int column(int block, int step) const {
    return (first_block + block) * Spec::kGroupK + (step * 32 + lane) * Spec::kVector;
  }
  __device__ __forceinline__ bool in_range(int block, int column) const {
    return first_block + block < Quantize::kBlocksOfRow && column < Spec::kK;
  }
  __device__ __forceinline__ void load(int block, int step, float* values) const {
    const int at = column(block, step);
    if (in_range(block, at)) {
      load_vector(static_cast<const unsigned char*>(p.source) +
                      (row * p.source_ld + at) * Quantize::kSourceBytes,
                  values);
    } else {
#pragma unroll
      for (int i = 0; i < Spec::kVector; ++i) {
        values[i] = 0.0f;
      }
    }
  }
  __device__ __forceinline__ void store(int block, int step, const float* values,
                                        float scale) const {
    const int at = column(block, step);
    if (in_range(block, at)) {
      store_codes(p.codes + row * p.code_ld + at, values, scale);
    }
  }
  // Of the whole warp's block; written by one lane.
  __device__ __forceinline__ float finish_scale(int block, float amax) const {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      amax = propagating_max(amax, __shfl_xor_sync(0xffffffffu, amax, distance));
    }
    const float scale = block_scale(amax);
    if (lane == 0 && first_block + block < Quantize::kBlocksOfRow) {
      store_scale(p.scales, row * p.scale_ld + first_block + block, scale);
    }
    return scale;
  }
};

__device__ __forceinline__ float amax_of(const float* values, float amax) {
#pragma unroll
  for (int i = 0; i < Spec::kVector; ++i) {
    amax = propagating_max(amax, fabsf(values[i]));
  }
  return amax;
}

__device__ __forceinline__ void quantize_held(const Unit& unit) {
  float values[Spec::kBlocks][Quantize::kSteps][Spec::kVector];
#pragma unroll
  for (int block = 0; block < Spec::kBlocks; ++block) {
#pragma unroll
    for (int step = 0; step < Quantize::kSteps; ++step) {
      unit.load(block, step, values[block][step]);
    }
  }
#pragma unroll
  for (int block = 0; block < Spec::kBlocks; ++block) {
    float amax = 0.0f;
#pragma unroll
    for (int step = 0; step < Quantize::kSteps; ++step) {
      amax = amax_of(values[block][step], amax);
    }
    const float scale = unit.finish_scale(block, amax);
#pragma unroll
    for (int step = 0; step < Quantize::kSteps; ++step) {
      unit.store(block, step, values[block][step], scale);
    }
  }
}

__device__ __forceinline__ void quantize_twice_read(const Unit& unit) {
  float values[Spec::kVector];
  for (int block = 0; block < Spec::kBlocks; ++block) {
    float amax = 0.0f;
    for (int step = 0; step < Quantize::kSteps; ++step) {
      unit.load(block, step, values);
      amax = amax_of(values, amax);
    }
    const float scale = unit.finish_scale(block, amax);
    for (int step = 0; step < Quantize::kSteps; ++step) {
      unit.load(block, step, values);
      unit.store(block, step, values, scale);
    }
  }
}

extern "C" __global__ void __launch_bounds__(Spec::kThreads)
    jitgemm_kernel(const __grid_constant__ QuantizeParams p) {
  wait_for_predecessor();
  allow_successor();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const long long units = static_cast<long long>(p.m) * Quantize::kUnitsOfRow;
  const long long step = static_cast<long long>(gridDim.x) * Quantize::kWarps;
  for (long long i = static_cast<long long>(blockIdx.x) * Quantize::kWarps + warp; i < units;
       i += step) {
    const long long row = i / Quantize::kUnitsOfRow;
    const int first = static_cast<int>(i - row * Quantize::kUnitsOfRow) * Spec::kBlocks;
    const Unit unit{p, row, first, lane};
    if constexpr (Quantize::kHeld) {
      quantize_held(unit);
    } else {
      quantize_twice_read(unit);
    }
  }
}
