// SPDX-License-Identifier: Apache-2.0
// Programs that another compiler wrote (tests/data/triton): the simulator must load them and
// compute right results, under several orders, without a false alarm.
#include "unit/sim/ptx_run.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace jitgemm::sim::other_front_end_test {
namespace {

struct Sample {
  const char* name;
  const char* entry;
  bool bf16;
  uint32_t shared;  // dynamic bytes, as the compiler's metadata says
};

void PrintTo(const Sample& program, std::ostream* out) {
  *out << program.name;
}

constexpr uint32_t kTileM = 128, kTileN = 64;

// Small integers: every sum is exact in fp32, in any order.
int element(uint32_t row, uint32_t column, uint32_t salt) {
  return static_cast<int>((row * 7 + column * 13 + salt) % 9) - 4;
}

uint8_t e4m3(int v) {
  constexpr uint8_t kCodes[] = {0x00, 0x38, 0x40, 0x44, 0x48};  // 0 to 4
  return static_cast<uint8_t>(kCodes[v < 0 ? -v : v] | (v < 0 ? 0x80 : 0));
}

uint16_t bf16(int v) {
  const float f = static_cast<float>(v);
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return static_cast<uint16_t>(bits >> 16);
}

std::vector<uint8_t> matrix(uint32_t rows, uint32_t columns, uint32_t salt, bool wide) {
  std::vector<uint8_t> bytes(size_t{rows} * columns * (wide ? 2 : 1));
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint32_t c = 0; c < columns; ++c) {
      const size_t at = size_t{r} * columns + c;
      const int v = element(r, c, salt);
      if (wide) {
        const uint16_t code = bf16(v);
        std::memcpy(bytes.data() + 2 * at, &code, 2);
      } else {
        bytes[at] = e4m3(v);
      }
    }
  }
  return bytes;
}

class OtherFrontEnd : public testing::TestWithParam<Sample> {};

TEST_P(OtherFrontEnd, ComputesTheProductUnderEveryOrder) {
  const Sample& program = GetParam();
  std::ifstream file(std::string(JITGEMM_SOURCE_DIR) + "/tests/data/triton/" + program.name +
                     ".ptx");
  std::stringstream text;
  text << file.rdbuf();
  ASSERT_FALSE(text.str().empty());
  // A tail in every dimension.
  const uint32_t m = 130, n = 72, k = program.bf16 ? 144 : 288;
  std::vector<uint8_t> a = matrix(m, k, 1, program.bf16), b = matrix(n, k, 5, program.bf16);
  for (const uint64_t seed : {0, 1, 2}) {
    std::vector<float> c(size_t{m} * n, -1.0f);
    std::vector<uint8_t> storage(4 * 256 + 128), nothing(16);
    Runner runner(text.str());
    runner.launch.entry = program.entry;
    runner.launch.dynamic_shared_bytes = program.shared;
    runner.options.seed = seed;
    runner.options.strict = false;
    runner.grid(2, 128).buffer(a, true, false).buffer(b, true, false).buffer(c, false);
    runner.launch.grid = {(m + kTileM - 1) / kTileM, (n + kTileN - 1) / kTileN, 1};
    for (const uint32_t v : {m, n, k, k, k, n}) runner.value(v);
    // Scratch memory for tensor maps, 256 bytes a CTA, and for profiling.
    runner.launch.memory.push_back({storage.data(), storage.size(), true, true, false});
    const auto at = (reinterpret_cast<uintptr_t>(storage.data()) + 127) / 128 * 128;
    runner.value(reinterpret_cast<const void*>(at)).buffer(nothing);
    const std::string outcome = runner.outcome();
    ASSERT_EQ(outcome.substr(0, 2000), "") << "seed " << seed;
    for (uint32_t i = 0; i < m; ++i) {
      for (uint32_t j = 0; j < n; ++j) {
        int sum = 0;
        for (uint32_t x = 0; x < k; ++x) sum += element(i, x, 1) * element(j, x, 5);
        ASSERT_EQ(c[size_t{i} * n + j], static_cast<float>(sum)) << i << ", " << j;
      }
    }
  }
}

constexpr Sample kPrograms[] = {
    {"product_bf16_sm_90a",      "product",     true,  73728},
    {"product_e4m3_sm_90a",      "product",     false, 73728},
    {"product_tma_bf16_sm_90a",  "product_tma", true,  73752},
    {"product_tma_e4m3_sm_90a",  "product_tma", false, 73752},
    {"product_bf16_sm_100a",     "product",     true,  73744},
    {"product_e4m3_sm_100a",     "product",     false, 73744},
    {"product_tma_bf16_sm_100a", "product_tma", true,  73776},
    {"product_tma_e4m3_sm_100a", "product_tma", false, 73776},
};

INSTANTIATE_TEST_SUITE_P(Triton, OtherFrontEnd, testing::ValuesIn(kPrograms),
                         [](const testing::TestParamInfo<Sample>& program) {
                           return std::string(program.param.name);
                         });

}  // namespace
}  // namespace jitgemm::sim::other_front_end_test
