// SPDX-License-Identifier: Apache-2.0
// tcgen05.mma with sparse A (PTX ISA 9.7.16.10.8) in every kind, with .ws too: the test knows the
// whole of A, stores what is not zero, and lays out the metadata by formulas of its own. Sums are
// of small integers and exact.
#include "unit/sim/ptx_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <string>
#include <vector>

namespace jitgemm::sim::tcgen05_sparse_test {
namespace {

using ::testing::HasSubstr;

enum class Element { kF16, kTf32, kE4m3, kS8, kE2m1 };

struct SparseKind {
  const char* name;
  const char* words;  // of the mnemonic
  Element element;
  int k;           // of the whole A
  uint32_t idesc;  // without M and N
  bool scaled;
  int chunk;  // elements, of which half are kept
  int keeps;  // neighbours that are kept together
};

constexpr SparseKind kKinds[] = {
    {"f16",      "kind::f16",                          Element::kF16,  32,  1u << 4,                       false, 4, 1},
    {"tf32",     "kind::tf32",                         Element::kTf32, 16,  1u << 4 | 2u << 7 | 2u << 10,  false, 2, 1},
    {"f8f6f4",   "kind::f8f6f4",                       Element::kE4m3, 64,  1u << 4,                       false, 4, 1},
    {"i8",       "kind::i8",                           Element::kS8,   64,  2u << 4 | 1u << 7 | 1u << 10,  false, 4, 1},
    {"mxf8f6f4", "kind::mxf8f6f4.block_scale",         Element::kE4m3, 64,  1u << 23,                      true,  4, 1},
    {"mxf4",     "kind::mxf4.block_scale",             Element::kE2m1, 128, 1u << 7 | 1u << 10 | 1u << 23, true,  8,
     2                                                                                                                },
    {"mxf4nvf4", "kind::mxf4nvf4.block_scale.block16", Element::kE2m1, 128,
     1u << 7 | 1u << 10 | 1u << 23,                                                                        true,  8, 2},
};

int bits_of(Element e) {
  switch (e) {
    case Element::kF16: return 16;
    case Element::kTf32: return 32;
    case Element::kE2m1: return 4;
    default: return 8;
  }
}

uint32_t code_of(Element e, int v) {
  const uint32_t size = static_cast<uint32_t>(v < 0 ? -v : v), sign = v < 0 ? 1 : 0;
  constexpr uint32_t kHalf[] = {0, 0x3c00, 0x4000, 0x4200};
  constexpr uint32_t kE4m3[] = {0, 0x38, 0x40, 0x44};
  constexpr uint32_t kE2m1[] = {0, 2, 4, 5};
  switch (e) {
    case Element::kF16: return kHalf[size] | sign << 15;
    case Element::kTf32: return std::bit_cast<uint32_t>(static_cast<float>(v));
    case Element::kE4m3: return kE4m3[size] | sign << 7;
    case Element::kS8: return static_cast<uint32_t>(v) & 0xff;
    case Element::kE2m1: return kE2m1[size] | sign << 3;
  }
  return 0;
}

// Rows of 16-byte chunks without swizzle: 8 rows of a chunk one behind the other, then the row's
// next chunk, then the next 8 rows.
std::vector<uint8_t> pack(Element e, const std::vector<std::vector<int>>& rows) {
  const int bits = bits_of(e);
  const int row_bytes = static_cast<int>(rows[0].size()) * bits / 8;
  std::vector<uint8_t> bytes(rows.size() * static_cast<size_t>(row_bytes));
  for (int r = 0; r < static_cast<int>(rows.size()); ++r) {
    std::vector<uint8_t> row(static_cast<size_t>(row_bytes));
    for (int i = 0; i < static_cast<int>(rows[static_cast<size_t>(r)].size()); ++i) {
      const uint64_t code = code_of(e, rows[static_cast<size_t>(r)][static_cast<size_t>(i)]);
      for (int b = 0; b < bits; ++b) {
        const int at = i * bits + b;
        row[static_cast<size_t>(at / 8)] |= static_cast<uint8_t>((code >> b & 1) << (at % 8));
      }
    }
    for (int i = 0; i < row_bytes; ++i)
      bytes[static_cast<size_t>(r / 8 * 8 * row_bytes + i / 16 * 128 + r % 8 * 16 + i % 16)] =
          row[static_cast<size_t>(i)];
  }
  return bytes;
}

struct Sparse {
  SparseKind kind;
  int m = 128;
  bool ws = false;
  int selector = 0;
  bool illegal = false;  // metadata that mean nothing
  bool zeros = false;    // and of a chunk of zeros
  bool partial = false;  // the lower half of A is never written, nor are its results stored
  bool tagged = false;   // the upper bits of the scale factors' addresses are set
  bool strict = true;

  int n() const { return ws ? 64 : 8; }
  int columns() const { return ws ? 64 * m / 128 : 8; }

  struct Outcome {
    std::string fault;
    int wrong = 0;
  };

  Outcome run() const {
    uint32_t state = 77;
    const auto next = [&state](int below) {
      state = state * 1664525u + 1013904223u;
      return static_cast<int>((state >> 20) % static_cast<uint32_t>(below));
    };
    std::vector<std::vector<int>> a, stored, b;
    std::vector<std::vector<uint32_t>> metadata;  // by row and chunk
    for (int row = 0; row < m; ++row) {
      std::vector<int> whole(static_cast<size_t>(kind.k)), kept;
      std::vector<uint32_t> bits;
      for (int chunk = 0; chunk < kind.k / kind.chunk; ++chunk) {
        const int groups = kind.chunk / kind.keeps;
        const int first = next(groups > 2 ? groups - 1 : groups);
        const int second = groups > 2 ? first + 1 + next(groups - 1 - first) : first;
        for (const int group : {first, second}) {
          if (groups == 2 && group != first) break;
          for (int i = 0; i < kind.keeps; ++i) {
            const int value = zeros && row == 5 && chunk == 1 ? 0 : next(6) - 3;
            whole[static_cast<size_t>(chunk * kind.chunk + group * kind.keeps + i)] = value;
            kept.push_back(value);
          }
          if (groups == 2) break;
        }
        bits.push_back(groups == 2 ? (first == 0 ? 0b0100u : 0b1110u)
                                   : static_cast<uint32_t>(first | second << 2));
      }
      if ((illegal || zeros) && row == 5) bits[1] = 0;
      a.push_back(whole);
      stored.push_back(kept);
      metadata.push_back(bits);
    }
    for (int column = 0; column < n(); ++column) {
      std::vector<int> row;
      row.reserve(static_cast<size_t>(kind.k));
      for (int i = 0; i < kind.k; ++i) row.push_back(next(7) - 3);
      b.push_back(row);
    }
    // Two words a lane. Elements of 8 bits and less: the 64 bits of the lane's row. Wider ones: a
    // row's first 16 bits in one lane and its other 16 in the lane 8 further, low for rows 0 to 7
    // of 16 and high for the rest.
    std::vector<uint32_t> words(256);
    const int copies = ws ? 128 / m : 1;
    const bool wide = bits_of(kind.element) > 8;
    for (int row = 0; row < m; ++row) {
      const int base = !ws && m == 64 ? 32 * (row / 16) : row - row % 16;
      const int chunks = static_cast<int>(metadata[static_cast<size_t>(row)].size());
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const uint32_t bits = metadata[static_cast<size_t>(row)][static_cast<size_t>(chunk)];
        for (int copy = 0; copy < copies; ++copy) {
          const int lane = copy * m + (wide ? base + row % 8 + 8 * (chunk / 4) : base + row % 16);
          const int word = wide ? selector : chunk / 8;
          const int shift = wide ? 16 * (row / 8 % 2) + 4 * (chunk % 4) : 4 * (chunk % 8);
          words[static_cast<size_t>(2 * lane + word)] |= bits << shift;
        }
      }
    }
    std::vector<uint8_t> image = pack(kind.element, stored);
    const int a_bytes = static_cast<int>(image.size());
    const std::vector<uint8_t> second = pack(kind.element, b);
    image.insert(image.end(), second.begin(), second.end());
    std::vector<float> out(static_cast<size_t>(128 * columns()));
    Runner runner(text(a_bytes, static_cast<int>(image.size())));
    runner.grid(1, 128).buffer(image).buffer(words).buffer(out, false);
    runner.options.strict = strict;
    Outcome outcome;
    outcome.fault = runner.outcome();
    if (!outcome.fault.empty()) return outcome;
    for (int row = 0; row < (partial ? m / 2 : m); ++row) {
      for (int column = 0; column < n(); ++column) {
        int sum = 0;
        for (int i = 0; i < kind.k; ++i)
          sum += a[static_cast<size_t>(row)][static_cast<size_t>(i)] *
                 b[static_cast<size_t>(column)][static_cast<size_t>(i)];
        const int lane = ws        ? row + m * (column / columns())
                         : m == 64 ? 32 * (row / 16) + row % 16
                                   : row;
        const float got = out[static_cast<size_t>(lane * columns() + column % columns())];
        const float value =
            kind.element == Element::kS8 ? static_cast<float>(std::bit_cast<int32_t>(got)) : got;
        if (value != static_cast<float>(sum)) ++outcome.wrong;
      }
    }
    return outcome;
  }

  std::string text(int a_bytes, int bytes) const {
    const uint32_t idesc = kind.idesc | 1u << 2 | static_cast<uint32_t>(selector) |
                           static_cast<uint32_t>(n() / 8) << 17 |
                           static_cast<uint32_t>(m / 16) << 24;
    std::string body =
        fmt::format(R"(
  ld.param.u64 %rd1, [k_param_0];
  ld.param.u64 %rd2, [k_param_1];
  ld.param.u64 %rd3, [k_param_2];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tiles;
  mov.u32 %r3, base;
  mov.u32 %r4, done;
  shr.u32 %r5, %r1, 5;
  setp.eq.u32 %p1, %r5, 0;
  setp.eq.u32 %p2, %r1, 0;
  @%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r3], 128;
  @%p1 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  @%p2 mbarrier.init.shared.b64 [%r4], 1;
  @%p2 fence.mbarrier_init.release.cluster;
  mul.lo.u32 %r6, %r1, 16;
C:
  setp.ge.u32 %p3, %r6, {0};
  @%p3 bra D;
  setp.ge.u32 %p8, %r6, {4};
  setp.lt.and.u32 %p8, %r6, {2}, %p8;
  @%p8 bra E;
  cvt.u64.u32 %rd4, %r6;
  add.u64 %rd4, %rd4, %rd1;
  add.u32 %r7, %r2, %r6;
  ld.global.v4.u32 {{%r30, %r31, %r32, %r33}}, [%rd4];
  st.shared.v4.u32 [%r7], {{%r30, %r31, %r32, %r33}};
E:
  add.u32 %r6, %r6, 2048;
  bra C;
D:
  fence.proxy.async.shared::cta;
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
  ld.shared.u32 %r8, [%r3];
  shl.b32 %r9, %r5, 21;
  add.u32 %r10, %r8, %r9;
  mul.wide.u32 %rd5, %r1, 8;
  add.u64 %rd5, %rd5, %rd2;
  ld.global.v2.u32 {{%r11, %r12}}, [%rd5];
  add.u32 %r13, %r10, 64;
  tcgen05.st.sync.aligned.32x32b.x2.b32 [%r13], {{%r11, %r12}};
  mov.u32 %r14, 0x{1:x};
  add.u32 %r15, %r10, 80;
  tcgen05.st.sync.aligned.32x32b.x8.b32 [%r15], {{%r14, %r14, %r14, %r14, %r14, %r14, %r14, %r14}};
  tcgen05.wait::st.sync.aligned;
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
  add.u32 %r16, %r8, 64;
  add.u32 %r17, %r8, 80;
  add.u32 %r18, %r8, 84;
  shr.u32 %r19, %r2, 4;
  or.b32 %r20, %r19, 0x80000;
  cvt.u64.u32 %rd6, %r20;
  or.b64 %rd6, %rd6, 0x401000000000;
  add.u32 %r21, %r2, {2};
  shr.u32 %r21, %r21, 4;
  or.b32 %r21, %r21, 0x80000;
  cvt.u64.u32 %rd7, %r21;
  or.b64 %rd7, %rd7, 0x402000000000;
  mov.u32 %r22, {3};
  setp.ne.u32 %p4, %r1, %r1;
)",
                    bytes, 0x7f7f7f7fu, a_bytes, idesc, partial ? a_bytes / 2 : bytes);
    if (tagged) body += "or.b32 %r17, %r17, 0x40000000;\nor.b32 %r18, %r18, 0x80000000;\n";
    body += fmt::format(
        "@%p2 tcgen05.mma.{}sp.cta_group::1.{} [%r8], %rd6, %rd7, [%r16], %r22, {}%p4;\n",
        ws ? "ws." : "", kind.words, kind.scaled ? "[%r17], [%r18], " : "");
    body += fmt::format(R"(
  @%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];
W:
  mbarrier.try_wait.parity.shared.b64 %p5, [%r4], 0;
  @!%p5 bra W;
  tcgen05.fence::after_thread_sync;
  mul.wide.u32 %rd8, %r1, {};
  add.u64 %rd8, %rd8, %rd3;
  mov.u32 %r23, 0;
L:
  add.u32 %r24, %r10, %r23;
  tcgen05.ld.sync.aligned.32x32b.x8.b32 {{%r40, %r41, %r42, %r43, %r44, %r45, %r46, %r47}}, [%r24];
  tcgen05.wait::ld.sync.aligned;
)",
                        4 * columns());
    // Layouts of half of the lanes leave the other lanes alone.
    if (!ws && m == 64) body += "and.b32 %r25, %r1, 16;\nsetp.ne.u32 %p6, %r25, 0;\n@%p6 bra N;\n";
    if (partial) body += "setp.ge.u32 %p6, %r1, 64;\n@%p6 bra N;\n";
    body += fmt::format(R"(
  st.global.v4.u32 [%rd8], {{%r40, %r41, %r42, %r43}};
  st.global.v4.u32 [%rd8+16], {{%r44, %r45, %r46, %r47}};
N:
  add.u64 %rd8, %rd8, 32;
  add.u32 %r23, %r23, 8;
  setp.lt.u32 %p7, %r23, {};
  @%p7 bra L;
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, 128;
  ret;
)",
                        columns());
    return kernel_text(".param .u64 k_param_0, .param .u64 k_param_1, .param .u64 k_param_2", body,
                       ".shared .align 1024 .b8 tiles[8192];\n.shared .align 8 .b64 done;\n"
                       ".shared .align 4 .b32 base;\n");
  }
};

TEST(SparseTensorCore, EveryKindMultipliesWhatTheMetadataSay) {
  for (const SparseKind& kind : kKinds) {
    const Sparse::Outcome outcome = Sparse{kind}.run();
    EXPECT_EQ(outcome.fault, "") << kind.name;
    EXPECT_EQ(outcome.wrong, 0) << kind.name;
  }
}

TEST(SparseTensorCore, HalfOfTheLanesHoldSixtyFourRows) {
  for (const SparseKind& kind : kKinds) {
    if (kind.scaled) continue;  // has no M = 64
    Sparse sparse{kind};
    sparse.m = 64;
    const Sparse::Outcome outcome = sparse.run();
    EXPECT_EQ(outcome.fault, "") << kind.name;
    EXPECT_EQ(outcome.wrong, 0) << kind.name;
  }
}

TEST(SparseTensorCore, WeightStationaryFormsReadEveryCopy) {
  for (const SparseKind& kind : kKinds) {
    if (kind.scaled) continue;  // has no .ws
    for (const int m : {32, 64, 128}) {
      Sparse sparse{kind};
      sparse.m = m;
      sparse.ws = true;
      const Sparse::Outcome outcome = sparse.run();
      EXPECT_EQ(outcome.fault, "") << kind.name << " " << m;
      EXPECT_EQ(outcome.wrong, 0) << kind.name << " " << m;
    }
  }
}

TEST(SparseTensorCore, TheSelectorNamesTheColumn) {
  for (const SparseKind& kind : {kKinds[0], kKinds[1]}) {
    Sparse sparse{kind};
    sparse.selector = 1;
    const Sparse::Outcome outcome = sparse.run();
    EXPECT_EQ(outcome.fault, "") << kind.name;
    EXPECT_EQ(outcome.wrong, 0) << kind.name;
  }
  Sparse narrow{kKinds[2]};
  narrow.selector = 1;
  EXPECT_THAT(narrow.run().fault, HasSubstr("sparsity selector"));
}

TEST(SparseTensorCore, MetadataWithoutMeaningAreAFault) {
  Sparse sparse{kKinds[2]};
  sparse.illegal = true;
  EXPECT_THAT(sparse.run().fault, HasSubstr("metadata of row 5"));
  sparse.strict = false;
  EXPECT_THAT(sparse.run().fault, HasSubstr("metadata of row 5"));
}

// Compressors of production leave equal indices for them.
TEST(SparseTensorCore, OfAChunkOfZerosTheIndicesMayBeEqualWithoutStrictRules) {
  for (const SparseKind& kind : {kKinds[0], kKinds[2], kKinds[5]}) {
    Sparse sparse{kind};
    sparse.zeros = true;
    EXPECT_THAT(sparse.run().fault, HasSubstr("metadata of row 5")) << kind.name;
    sparse.strict = false;
    const Sparse::Outcome outcome = sparse.run();
    EXPECT_EQ(outcome.fault, "") << kind.name;
    EXPECT_EQ(outcome.wrong, 0) << kind.name;
  }
}

TEST(SparseTensorCore, UpperBitsOfScaleFactorAddressesAreIgnoredWithoutStrictRules) {
  Sparse sparse{kKinds[4]};
  sparse.tagged = true;
  EXPECT_THAT(sparse.run().fault, HasSubstr("scale factors of A begins at lane"));
  sparse.strict = false;
  const Sparse::Outcome outcome = sparse.run();
  EXPECT_EQ(outcome.fault, "");
  EXPECT_EQ(outcome.wrong, 0);
}

// Whole tiles are multiplied in production whose last rows nobody has loaded or will look at.
TEST(SparseTensorCore, RowsThatNobodyHasLoadedPassWithoutStrictRules) {
  for (const SparseKind& kind : kKinds) {
    Sparse sparse{kind};
    sparse.partial = true;
    sparse.strict = false;
    const Sparse::Outcome outcome = sparse.run();
    EXPECT_EQ(outcome.fault, "") << kind.name;
    EXPECT_EQ(outcome.wrong, 0) << kind.name;
    sparse.strict = true;
    EXPECT_THAT(sparse.run().fault, HasSubstr("never written")) << kind.name;
  }
}

}  // namespace
}  // namespace jitgemm::sim::tcgen05_sparse_test
