// SPDX-License-Identifier: Apache-2.0
// A kernel written by hand for this test (tests/data/hand_written): clusters of two CTA pairs,
// multicast, tensor maps of three dimensions, exchanged operands, scale factors by tcgen05.cp. It
// has to load, to give right results under several orders with every rule on, and to be reported
// when an order that it relies on is taken away.
#include "sim/models_tensor_map.h"
#include "unit/sim/ptx_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

namespace jitgemm::sim::hand_written_test {
namespace {

constexpr uint32_t kBatches = 2, kM = 100, kN = 512, kK = 512;
constexpr uint32_t kBlocks = kK / 128;  // of k, for scale factors and stages
constexpr uint32_t kGroup = 512;        // bytes of scale factors of 128 rows and 128 columns

std::string kernel() {
  std::ifstream file(JITGEMM_SOURCE_DIR "/tests/data/hand_written/pair_multicast.ptx");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Integers from -3 to 3 as e4m3, exponents from -1 to 1.
int element(uint32_t batch, uint32_t row, uint32_t k, uint32_t salt) {
  return static_cast<int>((5 * batch + row * 7 + k * 13 + row * k % 11 + salt) % 7) - 3;
}
int exponent(uint32_t batch, uint32_t row, uint32_t block, uint32_t salt) {
  return static_cast<int>((batch + row + 2 * block + salt) % 3) - 1;
}
uint8_t e4m3(int v) {
  constexpr uint8_t kCodes[] = {0, 0x38, 0x40, 0x44};
  return static_cast<uint8_t>(kCodes[std::abs(v)] | (v < 0 ? 0x80 : 0));
}

// rows x k codes of each batch, and their scale factors in groups of `group_rows` rows.
struct Matrix {
  uint32_t rows, group_rows, salt;
  std::vector<uint8_t> codes, scales;

  Matrix(uint32_t r, uint32_t g, uint32_t s) : rows(r), group_rows(g), salt(s) {
    const uint32_t groups = (rows + group_rows - 1) / group_rows;
    scales.resize(size_t{kBatches} * groups * kBlocks * kGroup, 127);
    for (uint32_t b = 0; b < kBatches; ++b) {
      for (uint32_t row = 0; row < rows; ++row) {
        for (uint32_t k = 0; k < kK; ++k) codes.push_back(e4m3(element(b, row, k, salt)));
        for (uint32_t k = 0; k < kK / 32; ++k) {
          const size_t group = (size_t{b} * groups + row / group_rows) * kBlocks + k / 4;
          const uint32_t in_group = row % group_rows;
          scales[group * kGroup + in_group % 32 * 16 + in_group / 32 * 4 + k % 4] =
              static_cast<uint8_t>(127 + exponent(b, row, k, salt));
        }
      }
    }
  }
  std::vector<float> values(uint32_t b) const {
    std::vector<float> out;
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t k = 0; k < kK; ++k) {
        out.push_back(std::ldexp(static_cast<float>(element(b, row, k, salt)),
                                 exponent(b, row, k / 32, salt)));
      }
    }
    return out;
  }
  EncodedMap map(uint32_t box_rows) const {
    TensorMap m;
    m.element = TensorElement::kU8;
    m.rank = 3;
    m.address = reinterpret_cast<uint64_t>(codes.data());
    m.dims = {kK, rows, kBatches, 1, 1};
    m.strides = {kK, uint64_t{kK} * rows, 0, 0};
    m.box = {128, box_rows, 1, 1, 1};
    m.swizzle = SwizzleMode::k128B;
    return encode_tensor_map(m);
  }
  EncodedMap scale_map() const {
    const uint64_t groups = scales.size() / kBatches / kGroup;
    TensorMap m;
    m.element = TensorElement::kU32;
    m.rank = 3;
    m.address = reinterpret_cast<uint64_t>(scales.data());
    m.dims = {kGroup / 4, groups, kBatches, 1, 1};
    m.strides = {kGroup, kGroup * groups, 0, 0};
    m.box = {kGroup / 4, 1, 1, 1, 1};
    return encode_tensor_map(m);
  }
};

class PairMulticast {
 public:
  std::string run(const std::string& ptx, uint64_t seed) {
    std::fill(out_.begin(), out_.end(), -1.0F);
    Runner runner(ptx);
    runner.launch.entry = "pair_multicast";
    runner.options.seed = seed;
    runner.value(w_.map(128)).value(x_.map(16)).value(w_.scale_map()).value(x_.scale_map());
    runner.buffer(out_, false).value(kM).value(kN).value(kK);
    for (std::vector<uint8_t>* v : {&w_.codes, &w_.scales, &x_.codes, &x_.scales})
      runner.launch.memory.push_back({v->data(), v->size(), true, false, true});
    runner.launch.grid = {kN / 128, (kM + 63) / 64, kBatches};
    runner.launch.block = {256, 1, 1};
    runner.launch.cluster = {4, 1, 1};
    runner.launch.dynamic_shared_bytes = 3 * 21504 + 1024;
    runner.options.step_limit = 4'000'000;
    return runner.outcome();
  }
  // "" or the first wrong element.
  std::string compare() {
    if (expected_.empty()) compute();
    const auto wrong = std::mismatch(out_.begin(), out_.end(), expected_.begin());
    if (wrong.first == out_.end()) return "";
    return fmt::format("element {}: {} instead of {}", wrong.first - out_.begin(), *wrong.first,
                       *wrong.second);
  }

 private:
  Matrix w_{kN, 128, 0}, x_{kM, 64, 4};
  std::vector<float> out_ = std::vector<float>(size_t{kBatches} * kM * kN);
  std::vector<float> expected_;

  void compute() {
    for (uint32_t b = 0; b < kBatches; ++b) {
      const std::vector<float> x = x_.values(b), w = w_.values(b);
      for (uint32_t m = 0; m < kM; ++m) {
        for (uint32_t n = 0; n < kN; ++n) {
          // Exact in any order: sums of small multiples of 1/4.
          expected_.push_back(std::inner_product(&x[m * kK], &x[m * kK] + kK, &w[n * kK], 0.0F));
        }
      }
    }
  }
};

TEST(HandWritten, TwoPairsWithMulticastGiveRightResultsUnderEveryOrder) {
  PairMulticast problem;
  const std::string ptx = kernel();
  for (const uint64_t seed : {0, 1, 2, 3}) {
    ASSERT_EQ(problem.run(ptx, seed), "") << "seed " << seed;
    ASSERT_EQ(problem.compare(), "") << "seed " << seed;
  }
}

// What is left when a statement is taken out, as a fault of any of the orders or a wrong result.
TEST(HandWritten, WhatItReliesOnIsMissed) {
  const char* const statements[] = {
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64",
      "fence.mbarrier_init.release.cluster;",
      "tcgen05.wait::ld.sync.aligned;",
      "tcgen05.cp.cta_group::2.32x128b.warpx4",
      "mbarrier.arrive.expect_tx.shared::cta.b64",
      "tcgen05.dealloc",
  };
  for (const char* statement : statements) {
    std::string ptx = kernel();
    const size_t at = ptx.find(statement);
    ASSERT_NE(at, std::string::npos) << statement;
    ptx.replace(at, ptx.find(';', at) + 1 - at, "");
    PairMulticast problem;
    std::string noticed;
    for (uint64_t seed = 0; seed < 2 && noticed.empty(); ++seed) {
      noticed = problem.run(ptx, seed);
      if (noticed.empty()) noticed = problem.compare();
    }
    EXPECT_NE(noticed, "") << statement;
  }
}

}  // namespace
}  // namespace jitgemm::sim::hand_written_test
