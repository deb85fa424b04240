// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4). Names cache entries and proves their payloads; it is not used for secrets.
// A leaf: it knows bytes and nothing else of the project.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace jitgemm {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256() = default;
  // `portable`: without the processor's instructions for it, which give the same digest.
  explicit Sha256(bool portable) : portable_(portable) {}
  void update(std::string_view bytes);
  // The digest of all bytes given so far. The object must not be used afterwards.
  Sha256Digest finish();

 private:
  static constexpr size_t kBlockBytes = 64;

  void compress(const uint8_t* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, kBlockBytes> pending_ = {};
  size_t pending_size_ = 0;
  uint64_t total_bytes_ = 0;
  bool portable_ = false;
};

Sha256Digest sha256(std::string_view bytes);

// 64 lower-case hexadecimal digits.
std::string to_hex(const Sha256Digest& digest);

// The digest as 32 raw bytes.
inline std::string_view as_bytes(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace jitgemm
