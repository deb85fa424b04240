// SPDX-License-Identifier: Apache-2.0
// Built with -ffp-contract=off: a fused multiply-add would change the last bit of a normal draw.
#include "verify/random.h"

#include <bit>
#include <cmath>

namespace jitgemm {
namespace {

uint64_t multiply(uint32_t a, uint32_t b) {
  return static_cast<uint64_t>(a) * b;
}

// ln(u) for u in (0, 1]: u = 2^e f with f in [sqrt(1/2), sqrt(2)), ln(f) = 2 atanh((f-1)/(f+1)) by
// its Taylor series; |z| < 0.1716, so the first omitted term is below 2^-53 of the sum.
double natural_log(double u) {
  const uint64_t bits = std::bit_cast<uint64_t>(u);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double f = std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL);
  if (f > 1.4142135623730951) {
    f = f * 0.5;
    exponent += 1;
  }
  const double z = (f - 1.0) / (f + 1.0);
  const double z2 = z * z;
  double sum = 1.0 / 21.0;
  for (int odd = 19; odd >= 1; odd -= 2) sum = sum * z2 + 1.0 / odd;
  return exponent * 0.6931471805599453 + 2.0 * z * sum;
}

// Taylor series of sine and cosine on [0, pi/4]; the omitted terms are below 2^-53.
double small_sine(double x) {
  const double x2 = x * x;
  double sum = 1.0;
  for (int i = 16; i >= 2; i -= 2) sum = 1.0 - x2 / (i * (i + 1.0)) * sum;
  return x * sum;
}
double small_cosine(double x) {
  const double x2 = x * x;
  double sum = 1.0;
  for (int i = 17; i >= 1; i -= 2) sum = 1.0 - x2 / (i * (i + 1.0)) * sum;
  return sum;
}

struct SineCosine {
  double sine;
  double cosine;
};

// Sine and cosine of 2 pi (octant + rest) / 8, 0 <= rest < 1.
SineCosine octant_sine_cosine(unsigned octant, double rest) {
  constexpr double kQuarterPi = 0.7853981633974483;
  const double x = (octant % 2 == 0 ? rest : 1.0 - rest) * kQuarterPi;
  const double s = small_sine(x);
  const double c = small_cosine(x);
  switch (octant) {
    case 0: return {s, c};
    case 1: return {c, s};
    case 2: return {c, -s};
    case 3: return {s, -c};
    case 4: return {-s, -c};
    case 5: return {-c, -s};
    case 6: return {-c, s};
    default: return {-s, c};
  }
}

}  // namespace

PhiloxBlock philox4x32(PhiloxBlock counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = multiply(0xD2511F53U, counter[0]);
    const uint64_t p1 = multiply(0xCD9E8D57U, counter[2]);
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

PhiloxBlock RandomStream::block(uint64_t index) const {
  return philox4x32({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), stream_, 0},
                    {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
}

uint32_t RandomStream::bits(uint64_t index) const {
  return block(index / 4)[index % 4];
}

float RandomStream::uniform(uint64_t index) const {
  return static_cast<float>(bits(index) >> 8) * 0x1p-24F;
}

int32_t RandomStream::integer(uint64_t index, int32_t low, int32_t high) const {
  const auto span = static_cast<uint32_t>(high - low) + 1U;
  return low + static_cast<int32_t>(multiply(bits(index), span) >> 32);
}

std::array<float, 2> RandomStream::normal_pair(uint64_t pair) const {
  const PhiloxBlock words = block(pair);
  const uint64_t radius_bits = (static_cast<uint64_t>(words[0]) << 32 | words[1]) >> 11;
  const uint64_t angle_bits = (static_cast<uint64_t>(words[2]) << 32 | words[3]) >> 11;
  // In (0, 1], so that the logarithm is finite.
  const double u = (static_cast<double>(radius_bits) + 1.0) * 0x1p-53;
  const double radius = std::sqrt(-2.0 * natural_log(u));
  const double rest = static_cast<double>(angle_bits & ((uint64_t{1} << 50) - 1)) * 0x1p-50;
  const SineCosine angle = octant_sine_cosine(static_cast<unsigned>(angle_bits >> 50), rest);
  return {static_cast<float>(radius * angle.cosine), static_cast<float>(radius * angle.sine)};
}

float RandomStream::normal(uint64_t index) const {
  return normal_pair(index / 2)[index % 2];
}

}  // namespace jitgemm
