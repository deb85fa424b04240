// SPDX-License-Identifier: Apache-2.0
// Random numbers by counter, with the bits of RandomStream (src/verify/random.cpp), whose comments
// explain the arithmetic: a number is a function of (seed, stream, index) alone. Every double
// operation is an intrinsic with its own rounding, since a compiler may not fuse those.
#pragma once

// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC11): ten rounds.
__device__ __forceinline__ uint4 philox4x32(uint4 counter, uint2 key) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned high0 = __umulhi(0xD2511F53u, counter.x);
    const unsigned high1 = __umulhi(0xCD9E8D57u, counter.z);
    const unsigned low0 = 0xD2511F53u * counter.x;
    const unsigned low1 = 0xCD9E8D57u * counter.z;
    counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
    key.x += 0x9E3779B9u;
    key.y += 0xBB67AE85u;
  }
  return counter;
}

// Draws 4 block to 4 block + 3 of a stream, 32 uniform bits each.
__device__ __forceinline__ uint4 random_words(unsigned long long seed, unsigned stream,
                                              unsigned long long block) {
  return philox4x32(
      make_uint4(static_cast<unsigned>(block), static_cast<unsigned>(block >> 32), stream, 0u),
      make_uint2(static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32)));
}

__device__ __forceinline__ double natural_log(double u) {
  const long long bits = __double_as_longlong(u);
  int exponent = static_cast<int>(static_cast<unsigned long long>(bits) >> 52) - 1023;
  double f = __longlong_as_double((bits & 0x000fffffffffffffLL) | 0x3ff0000000000000LL);
  if (f > 1.4142135623730951) {
    f = __dmul_rn(f, 0.5);
    exponent += 1;
  }
  const double z = __ddiv_rn(__dadd_rn(f, -1.0), __dadd_rn(f, 1.0));
  const double z2 = __dmul_rn(z, z);
  double sum = __ddiv_rn(1.0, 21.0);
#pragma unroll
  for (int odd = 19; odd >= 1; odd -= 2) {
    sum = __dadd_rn(__dmul_rn(sum, z2), __ddiv_rn(1.0, static_cast<double>(odd)));
  }
  return __dadd_rn(__dmul_rn(static_cast<double>(exponent), 0.6931471805599453),
                   __dmul_rn(__dmul_rn(2.0, z), sum));
}

// 1 - x^2 / (i (i + 1)) (1 - ...), from i = kFirst down to 2 or 1 in steps of 2.
template <int kFirst>
__device__ __forceinline__ double series(double x2) {
  double sum = 1.0;
#pragma unroll
  for (int i = kFirst; i >= 1; i -= 2) {
    const double divisor = static_cast<double>(i) * (static_cast<double>(i) + 1.0);
    sum = __dadd_rn(1.0, -__dmul_rn(__ddiv_rn(x2, divisor), sum));
  }
  return sum;
}

// Cosine and sine of 2 pi (octant + rest) / 8.
__device__ __forceinline__ double2 octant_cosine_sine(unsigned octant, double rest) {
  const double from = octant % 2 == 0 ? rest : __dadd_rn(1.0, -rest);
  const double x = __dmul_rn(from, 0.7853981633974483);
  const double x2 = __dmul_rn(x, x);
  const double s = __dmul_rn(x, series<16>(x2));
  const double c = series<17>(x2);
  // Octants 1, 2, 5 and 6 are nearer to the vertical axis.
  const bool swapped = ((octant + 1) / 2) % 2 == 1;
  const double cosine = swapped ? s : c;
  const double sine = swapped ? c : s;
  return make_double2(octant >= 2 && octant <= 5 ? -cosine : cosine, octant >= 4 ? -sine : sine);
}

// Draws 2 pair and 2 pair + 1 of a standard normal.
__device__ __forceinline__ float2 normal_pair(unsigned long long seed, unsigned stream,
                                              unsigned long long pair) {
  const uint4 words = random_words(seed, stream, pair);
  const unsigned long long radius_bits =
      (static_cast<unsigned long long>(words.x) << 32 | words.y) >> 11;
  const unsigned long long angle_bits =
      (static_cast<unsigned long long>(words.z) << 32 | words.w) >> 11;
  const double u =
      __dmul_rn(__dadd_rn(static_cast<double>(static_cast<long long>(radius_bits)), 1.0), 0x1p-53);
  const double radius = __dsqrt_rn(__dmul_rn(-2.0, natural_log(u)));
  const double rest = __dmul_rn(
      static_cast<double>(static_cast<long long>(angle_bits & ((1ull << 50) - 1))), 0x1p-50);
  const double2 angle = octant_cosine_sine(static_cast<unsigned>(angle_bits >> 50), rest);
  return make_float2(__double2float_rn(__dmul_rn(radius, angle.x)),
                     __double2float_rn(__dmul_rn(radius, angle.y)));
}
