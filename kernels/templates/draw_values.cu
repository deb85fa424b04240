// SPDX-License-Identifier: Apache-2.0
// Operands that are no FP8 codes, and scales, by counter: element i is a function of (seed, stream,
// i) and of its column alone, with the bits of draw_operand (src/verify/operand_draw.h). A thread
// makes four elements at a time; those are one Philox block, of normal numbers two.
#ifndef JITGEMM_SPECIALIZED
#include "example/draw_values_spec.cuh"
#endif

#include "device/convert.cuh"
#include "device/random.cuh"

struct DrawValuesParams {
  void* values;
  unsigned long long count;
  unsigned long long cols;
  unsigned long long seed;
  unsigned stream;
  unsigned reserved;
};
static_assert(sizeof(DrawValuesParams) == 40, "src/selftest/device_inputs.cpp mirrors this struct");

// Spec::kKind, and Distribution of src/verify/operand_draw.h.
enum : int {
  kNormal = 0,
  kUniform = 1,
  kIntegers = 2,
  kMarkedIntegers = 3,
  kScaledNormal = 4,
  kSmallScales = 5,
  kIntegerScales = 6,
  kWideScales = 7,
};
// Spec::kOut beside the output types: a power of two as its biased exponent.
constexpr int kExponent = 3;

__device__ __forceinline__ float unit_of(unsigned bits) {
  return __fmul_rn(static_cast<float>(bits >> 8), 0x1p-24f);
}

__device__ __forceinline__ float integer_of(unsigned bits, unsigned count, int first) {
  return static_cast<float>(static_cast<int>(__umulhi(bits, count)) + first);
}

// What 32 random bits become.
__device__ __forceinline__ float value_of(unsigned bits, unsigned long long i,
                                          const DrawValuesParams& p) {
  if constexpr (Spec::kKind == kUniform) {
    return __fadd_rn(__fmul_rn(2.0f, unit_of(bits)), -1.0f);
  } else if constexpr (Spec::kKind == kIntegers) {
    return integer_of(bits, 9u, -4);
  } else if constexpr (Spec::kKind == kMarkedIntegers) {
    return i % p.cols % Spec::kGroupCols == 0 ? 448.0f : integer_of(bits, 9u, -4);
  } else if constexpr (Spec::kKind == kIntegerScales) {
    return integer_of(bits, 4u, 1);
  } else if constexpr (Spec::kKind == kWideScales) {
    const unsigned exponent = bits % 61u + 97u;
    return __uint_as_float((bits & 0x100u) << 23 | exponent << 23 | bits >> 9);
  } else {
    return __fmul_rn(unit_of(bits), 1e-2f);
  }
}

// 2^-12 to 2^11, by the block of columns.
__device__ __forceinline__ float power_of_block(unsigned long long i, const DrawValuesParams& p) {
  if constexpr (Spec::kKind == kScaledNormal) {
    const unsigned long long blocks = (p.cols + Spec::kGroupCols - 1) / Spec::kGroupCols;
    const unsigned long long block = i / p.cols * blocks + i % p.cols / Spec::kGroupCols;
    return __uint_as_float((static_cast<unsigned>(block % 24) + 115u) << 23);
  } else {
    return 1.0f;
  }
}

__device__ __forceinline__ void store(void* values, unsigned long long i, float value) {
  if constexpr (Spec::kOut == kExponent) {
    static_cast<unsigned char*>(values)[i] =
        static_cast<unsigned char>(__float_as_uint(value) >> 23);
  } else if constexpr (Spec::kPowerOfTwo != 0) {
    const unsigned exponent = __float_as_uint(value) >> 23 & 0xffu;
    static_cast<float*>(values)[i] = __uint_as_float((exponent == 0 ? 1u : exponent) << 23);
  } else {
    using Storage = typename OutputStorage<Spec::kOut>::Type;
    static_cast<Storage*>(values)[i] = convert_output<Spec::kOut>(value);
  }
}

extern "C" __global__ void __launch_bounds__(Spec::kThreads)
    jitgemm_kernel(const __grid_constant__ DrawValuesParams p) {
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * Spec::kThreads;
  for (unsigned long long block =
           static_cast<unsigned long long>(blockIdx.x) * Spec::kThreads + threadIdx.x;
       4 * block < p.count; block += step) {
    float values[4];
    const unsigned long long first = 4 * block;
    if constexpr (Spec::kKind == kNormal || Spec::kKind == kScaledNormal) {
      const float2 low = normal_pair(p.seed, p.stream, 2 * block);
      const float2 high = normal_pair(p.seed, p.stream, 2 * block + 1);
      values[0] = __fmul_rn(low.x, power_of_block(first, p));
      values[1] = __fmul_rn(low.y, power_of_block(first + 1, p));
      values[2] = __fmul_rn(high.x, power_of_block(first + 2, p));
      values[3] = __fmul_rn(high.y, power_of_block(first + 3, p));
    } else {
      const uint4 words = random_words(p.seed, p.stream, block);
      values[0] = value_of(words.x, first, p);
      values[1] = value_of(words.y, first + 1, p);
      values[2] = value_of(words.z, first + 2, p);
      values[3] = value_of(words.w, first + 3, p);
    }
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      if (first + i < p.count) {
        store(p.values, first + i, values[i]);
      }
    }
  }
}
