// SPDX-License-Identifier: Apache-2.0
#include "support/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace jitgemm {
namespace {

struct Vector {
  std::string message;
  const char* digest;
};

// FIPS 180-2 appendix B and the NIST CAVP byte-oriented short-message vectors.
TEST(Sha256, GivesThePublishedDigests) {
  const Vector vectors[] = {
      {"",                                                         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc",                                                      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"                                                            },
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmn"
       "opq"
       "rsmnopqrstnopqrstu",                                "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {std::string(1000000,                                        'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
      {"\xd3",                                                          "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1"                                                                                                                      },
      {"\x11\xaf",                                                          "5ca7133fa735326081558ac312c620eeca9970d1e70a4b95533d956f072d1f98"},
  };
  for (const Vector& v : vectors) {
    EXPECT_EQ(to_hex(sha256(v.message)), v.digest) << v.message.size() << " bytes";
  }
}

TEST(Sha256, ThePortableCodeGivesTheDigestOfTheProcessorsInstructions) {
  std::string message;
  for (size_t size = 0; size < 300; ++size) {
    Sha256 portable(true);
    portable.update(message);
    ASSERT_EQ(portable.finish(), sha256(message)) << size << " bytes";
    message += static_cast<char>(size * 31 + 7);
  }
}

TEST(Sha256, DoesNotDependOnHowTheBytesAreCut) {
  std::string message;
  for (int i = 0; i < 200; ++i) message += static_cast<char>(i * 7);
  for (size_t size = 0; size <= message.size(); ++size) {
    const std::string_view whole(message.data(), size);
    for (const size_t step : {1, 3, 55, 63, 64, 65}) {
      Sha256 hash;
      for (size_t at = 0; at < size; at += step) hash.update(whole.substr(at, step));
      ASSERT_EQ(hash.finish(), sha256(whole)) << size << " bytes in steps of " << step;
    }
  }
}

}  // namespace
}  // namespace jitgemm
