// SPDX-License-Identifier: Apache-2.0
// The helper kernels of timing, run on the simulator.
#include "bench/gpu_kernels.h"

#include "selftest/device_buffer.h"
#include "verify/matrix_view.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace jitgemm::bench {
namespace {

class GpuKernelsTest : public testing::Test {
 protected:
  void SetUp() override {
    context_ = std::move(*Context::create({}));
    device_ = *context_->device("sim", Arch::kSm90a);
    auto kernels = GpuKernels::create(*context_, *device_);
    if (!kernels && kernels.error().code() == StatusCode::kNoCompiler) {
      GTEST_SKIP() << kernels.error().message();
    }
    ASSERT_TRUE(kernels) << kernels.error().to_string();
    kernels_ = std::move(*kernels);
  }

  DeviceBuffer buffer(size_t bytes) { return std::move(*DeviceBuffer::create(*device_, bytes, 0)); }

  template <typename T>
  std::vector<T> read(const DeviceBuffer& buffer) {
    const std::vector<std::byte> bytes = *buffer.read();
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  uint64_t scan(std::vector<float> values) {
    const DeviceBuffer data =
        std::move(*DeviceBuffer::copy_of(*device_, std::as_bytes(std::span(values))));
    const DeviceBuffer counter = buffer(8);
    const Status status =
        kernels_->scan(data.address(), data.bytes(), DType::kF32, counter.address(), nullptr);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return read<uint64_t>(counter)[0];
  }

  std::shared_ptr<Context> context_;
  Device* device_ = nullptr;
  std::unique_ptr<GpuKernels> kernels_;
};

TEST_F(GpuKernelsTest, CodesAreAClippedNormalWithoutNan) {
  const int64_t count = 50001;
  const DeviceBuffer codes = buffer(count);
  ASSERT_TRUE(kernels_->draw_codes(codes.address(), 1, count, 1, nullptr).ok());
  const std::vector<uint8_t> bytes = read<uint8_t>(codes);
  const std::vector<double> values =
      read_matrix(row_major_view(bytes.data(), DType::kF8E4M3, 1, count));
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    ASSERT_TRUE(std::isfinite(value));
    sum += value;
    squares += value * value;
  }
  const auto n = static_cast<double>(count);
  EXPECT_NEAR(sum / n, 0, 3);
  EXPECT_NEAR(std::sqrt(squares / n), kCodeDeviation, 3);
}

TEST_F(GpuKernelsTest, OneMatrixOfScalesIsTheSameInTwoLayouts) {
  const int64_t rows = 37;
  const int64_t columns = 5;
  const DeviceBuffer by_row = buffer(4 * rows * columns);
  const DeviceBuffer by_column = buffer(4 * 40 * columns);
  ASSERT_TRUE(
      kernels_->draw_scales(by_row.address(), {rows, columns, columns, 1}, 9, nullptr).ok());
  ASSERT_TRUE(kernels_->draw_scales(by_column.address(), {40, columns, 1, 40}, 9, nullptr).ok());
  const std::vector<float> first = read<float>(by_row);
  const std::vector<float> second = read<float>(by_column);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const float value = first[static_cast<size_t>(row * columns + column)];
      EXPECT_EQ(value, second[static_cast<size_t>(column * 40 + row)]);
      EXPECT_GE(value, kLowestScale);
      EXPECT_LE(value, kHighestScale);
    }
  }
  EXPECT_NE(first[0], first[1]);
}

TEST_F(GpuKernelsTest, AScanCountsEveryElementThatIsNotFinite) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values(10007, 1.0F);
  EXPECT_EQ(scan(values), 0u);
  values[0] = kNan;
  values[5000] = -kInfinity;
  values[10006] = kNan;  // in the tail that no vector covers
  EXPECT_EQ(scan(values), 3u);
}

TEST_F(GpuKernelsTest, AScanOf16BitElementsLooksAtBothHalves) {
  std::vector<uint16_t> values(4099, 0x3f80);
  values[2] = 0x7fc0;
  values[3] = 0xffff;
  values[4098] = 0x7f80;
  const DeviceBuffer data =
      std::move(*DeviceBuffer::copy_of(*device_, std::as_bytes(std::span(values))));
  const DeviceBuffer counter = buffer(8);
  ASSERT_TRUE(
      kernels_->scan(data.address(), data.bytes(), DType::kBF16, counter.address(), nullptr).ok());
  EXPECT_EQ(read<uint64_t>(counter)[0], 3u);
}

}  // namespace
}  // namespace jitgemm::bench
