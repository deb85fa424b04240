// SPDX-License-Identifier: Apache-2.0
// The helpers of timing that run on the GPU, built and loaded like every other kernel: drawing
// operands, spinning, and scanning an output. kernels/templates/measure_*.cu.
#pragma once

#include "problem/dtype.h"
#include "runtime/context.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace jitgemm::bench {

// Where element (row, column) of a matrix lies, in elements.
struct DrawLayout {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 1;
};

// Codes of a normal of this deviation, clipped to what e4m3 holds; scales uniform in the range.
// Every scale differs from its neighbours, so that a wrong index shows.
inline constexpr float kCodeDeviation = 112;
inline constexpr float kLowestScale = 0.5F / 300;
inline constexpr float kHighestScale = 1.5F / 300;

class GpuKernels {
 public:
  static Result<std::unique_ptr<GpuKernels>> create(Context& context, Device& device);
  // Into the cache, for a machine without a compiler.
  static Status compile(Context& context, Arch arch);

  Status draw_codes(uint64_t address, int64_t rows, int64_t columns, uint64_t seed,
                    StreamHandle stream) const;
  Status draw_scales(uint64_t address, const DrawLayout& layout, uint64_t seed,
                     StreamHandle stream) const;
  Status draw_bf16(uint64_t address, int64_t rows, int64_t columns, uint64_t seed,
                   StreamHandle stream) const;
  Status spin(double microseconds, StreamHandle stream) const;
  // Adds the number of elements that are not finite to the counter (8 bytes) at `found`.
  Status scan(uint64_t address, uint64_t bytes, DType dtype, uint64_t found,
              StreamHandle stream) const;

 private:
  explicit GpuKernels(Device& device) : device_(device) {}
  Status launch(const std::string& name, std::span<const std::byte> params,
                std::span<const MemoryRange> ranges, uint32_t ctas, uint32_t threads,
                StreamHandle stream) const;
  Status draw(const char* kernel, uint64_t address, uint64_t element_bytes,
              const DrawLayout& layout, uint64_t seed, StreamHandle stream) const;

  Device& device_;
  std::map<std::string, std::shared_ptr<const LoadedKernel>> loaded_;
};

}  // namespace jitgemm::bench
