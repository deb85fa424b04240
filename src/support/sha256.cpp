// SPDX-License-Identifier: Apache-2.0
#include "support/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace jitgemm {
namespace {

// FIPS 180-4, 4.2.2.
constexpr std::array<uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t load_big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

void compress_portable(std::array<uint32_t, 8>& state, const uint8_t* block) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) w[i] = load_big_endian(block + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + kRoundConstants[i] + w[i];
    const uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<uint32_t, 8> added = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += added[i];
}

#if defined(__x86_64__)
// The processor's own rounds (Intel SDM, SHA256RNDS2, SHA256MSG1, SHA256MSG2): a disk hit hashes
// all of a template and its entry, which is most of its time otherwise.
bool has_sha_instructions() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const bool sse = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_1) != 0;
  return sse && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
}

__attribute__((target("sha,sse4.1"))) void compress_sha(std::array<uint32_t, 8>& state,
                                                        const uint8_t* block) {
  const auto load = [](const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  };
  const auto words = [](const std::array<uint32_t, 8>& s, int w3, int w2, int w1, int w0) {
    return _mm_set_epi32(
        static_cast<int>(s[static_cast<size_t>(w3)]), static_cast<int>(s[static_cast<size_t>(w2)]),
        static_cast<int>(s[static_cast<size_t>(w1)]), static_cast<int>(s[static_cast<size_t>(w0)]));
  };
  // The instructions want the state as (a, b, e, f) and (c, d, g, h), the first in the highest
  // word.
  const __m128i abef_before = words(state, 0, 1, 4, 5);
  const __m128i cdgh_before = words(state, 2, 3, 6, 7);
  __m128i abef = abef_before;
  __m128i cdgh = cdgh_before;
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  __m128i w[4];
  for (int i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(load(block + 16 * i), big_endian);
  for (int i = 0; i < 16; ++i) {
    const __m128i now = w[i % 4];
    const __m128i sum = _mm_add_epi32(now, load(kRoundConstants.data() + 4 * i));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    const __m128i last = w[(i + 3) % 4];
    const __m128i seven_back = _mm_alignr_epi8(last, w[(i + 2) % 4], 4);
    const __m128i partial = _mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) % 4]), seven_back);
    w[i % 4] = _mm_sha256msg2_epu32(partial, last);
  }
  abef = _mm_add_epi32(abef, abef_before);
  cdgh = _mm_add_epi32(cdgh, cdgh_before);
  alignas(16) std::array<uint32_t, 4> high;
  alignas(16) std::array<uint32_t, 4> low;
  _mm_store_si128(reinterpret_cast<__m128i*>(high.data()), abef);
  _mm_store_si128(reinterpret_cast<__m128i*>(low.data()), cdgh);
  state = {high[3], high[2], low[3], low[2], high[1], high[0], low[1], low[0]};
}
#endif

}  // namespace

void Sha256::compress(const uint8_t* block) {
#if defined(__x86_64__)
  static const bool kHasInstructions = has_sha_instructions();
  if (kHasInstructions && !portable_) return compress_sha(state_, block);
#endif
  compress_portable(state_, block);
}

void Sha256::update(std::string_view bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t size = bytes.size();
  total_bytes_ += size;
  if (pending_size_ > 0) {
    const size_t taken = std::min(size, kBlockBytes - pending_size_);
    std::copy_n(data, taken, pending_.data() + pending_size_);
    pending_size_ += taken;
    data += taken;
    size -= taken;
    if (pending_size_ < kBlockBytes) return;
    compress(pending_.data());
    pending_size_ = 0;
  }
  for (; size >= kBlockBytes; data += kBlockBytes, size -= kBlockBytes) compress(data);
  std::copy_n(data, size, pending_.data());
  pending_size_ = size;
}

Sha256Digest Sha256::finish() {
  const uint64_t bits = total_bytes_ * 8;
  pending_[pending_size_++] = 0x80;
  if (pending_size_ > kBlockBytes - 8) {
    std::fill(pending_.begin() + static_cast<ptrdiff_t>(pending_size_), pending_.end(), uint8_t{0});
    compress(pending_.data());
    pending_size_ = 0;
  }
  std::fill(pending_.begin() + static_cast<ptrdiff_t>(pending_size_), pending_.end(), uint8_t{0});
  for (size_t i = 0; i < 8; ++i) {
    pending_[kBlockBytes - 1 - i] = static_cast<uint8_t>(bits >> (8 * i));
  }
  compress(pending_.data());

  Sha256Digest digest;
  for (size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

Sha256Digest sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string to_hex(const Sha256Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace jitgemm
