// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu_kernels.h"

#include <algorithm>
#include <array>

namespace jitgemm::bench {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kScanThreads = 512;
constexpr int kCtasOfASm = 8;

// kernels/templates/measure_draw.cu
struct MeasureDrawParams {
  uint64_t values;
  uint64_t rows;
  uint64_t columns;
  int64_t row_stride;
  int64_t column_stride;
  uint64_t seed;
  float deviation;
  float low;
  float high;
  uint32_t reserved;
};
static_assert(sizeof(MeasureDrawParams) == 64);

// kernels/templates/measure_spin.cu
struct MeasureSpinParams {
  uint64_t nanoseconds;
};
static_assert(sizeof(MeasureSpinParams) == 8);

// kernels/templates/measure_scan.cu
struct MeasureScanParams {
  uint64_t data;
  uint64_t bytes;
  uint64_t found;
};
static_assert(sizeof(MeasureScanParams) == 24);

struct Row {
  const char* name;
  const char* file;
  uint32_t threads;
  const char* constant;
  int64_t value;
};
constexpr std::array<Row, 7> kKernels = {
    {{"draw_codes", "measure_draw.cu", kThreads, "kKind", 0},
     {"draw_scales", "measure_draw.cu", kThreads, "kKind", 1},
     {"draw_bf16", "measure_draw.cu", kThreads, "kKind", 2},
     {"spin", "measure_spin.cu", 1, nullptr, 0},
     {"scan_f32", "measure_scan.cu", kScanThreads, "kType", 0},
     {"scan_bf16", "measure_scan.cu", kScanThreads, "kType", 1},
     {"scan_f16", "measure_scan.cu", kScanThreads, "kType", 2}}
};

Result<BuiltKernel> build(Context& context, Arch arch, const Row& row) {
  std::vector<SpecField> fields = {
      {"kThreads", row.threads}
  };
  if (row.constant != nullptr) fields.emplace_back(row.constant, row.value);
  return context.builder().build(row.file, arch, fields, BuildMode::kCached);
}

}  // namespace

Status GpuKernels::compile(Context& context, Arch arch) {
  for (const Row& row : kKernels) {
    JITGEMM_ASSIGN(const BuiltKernel kernel, build(context, arch, row));
  }
  return ok_status();
}

Result<std::unique_ptr<GpuKernels>> GpuKernels::create(Context& context, Device& device) {
  std::unique_ptr<GpuKernels> kernels(new GpuKernels(device));
  for (const Row& row : kKernels) {
    JITGEMM_ASSIGN(const BuiltKernel kernel, build(context, device.info().arch, row));
    LaunchGeometry geometry;
    geometry.block = {row.threads, 1, 1};
    JITGEMM_ASSIGN(kernels->loaded_[row.name], context.load(device, kernel, geometry));
  }
  return kernels;
}

Status GpuKernels::launch(const std::string& name, std::span<const std::byte> params,
                          std::span<const MemoryRange> ranges, uint32_t ctas, uint32_t threads,
                          StreamHandle stream) const {
  LaunchRequest request;
  request.geometry.grid = {ctas, 1, 1};
  request.geometry.block = {threads, 1, 1};
  request.params = params.data();
  request.param_bytes = params.size();
  request.ranges = ranges;
  return device_.launch(*loaded_.at(name), request, stream);
}

Status GpuKernels::draw(const char* kernel, uint64_t address, uint64_t element_bytes,
                        const DrawLayout& layout, uint64_t seed, StreamHandle stream) const {
  const MeasureDrawParams params[1] = {
      {address, static_cast<uint64_t>(layout.rows), static_cast<uint64_t>(layout.columns),
       layout.row_stride, layout.column_stride, seed, kCodeDeviation, kLowestScale, kHighestScale,
       0}
  };
  const int64_t last =
      (layout.rows - 1) * layout.row_stride + (layout.columns - 1) * layout.column_stride;
  const MemoryRange ranges[] = {
      {address, element_bytes * static_cast<uint64_t>(last + 1), true, true}
  };
  const auto ctas = static_cast<uint32_t>(kCtasOfASm * device_.info().sm_count);
  return launch(kernel, std::as_bytes(std::span(params)), ranges, ctas, kThreads, stream);
}

Status GpuKernels::draw_codes(uint64_t address, int64_t rows, int64_t columns, uint64_t seed,
                              StreamHandle stream) const {
  return draw("draw_codes", address, 1, {rows, columns, columns, 1}, seed, stream);
}

Status GpuKernels::draw_scales(uint64_t address, const DrawLayout& layout, uint64_t seed,
                               StreamHandle stream) const {
  return draw("draw_scales", address, 4, layout, seed, stream);
}

Status GpuKernels::draw_bf16(uint64_t address, int64_t rows, int64_t columns, uint64_t seed,
                             StreamHandle stream) const {
  return draw("draw_bf16", address, 2, {rows, columns, columns, 1}, seed, stream);
}

Status GpuKernels::spin(double microseconds, StreamHandle stream) const {
  const MeasureSpinParams params[1] = {{static_cast<uint64_t>(1000 * microseconds)}};
  return launch("spin", std::as_bytes(std::span(params)), {}, 1, 1, stream);
}

Status GpuKernels::scan(uint64_t address, uint64_t bytes, DType dtype, uint64_t found,
                        StreamHandle stream) const {
  const MeasureScanParams params[1] = {
      {address, bytes, found}
  };
  const MemoryRange ranges[] = {
      {address, bytes},
      { found, sizeof(uint64_t),    true, true}
  };
  const char* name = dtype == DType::kF32    ? "scan_f32"
                     : dtype == DType::kBF16 ? "scan_bf16"
                                             : "scan_f16";
  const auto ctas = static_cast<uint32_t>(4 * device_.info().sm_count);
  return launch(name, std::as_bytes(std::span(params)), ranges, ctas, kScanThreads, stream);
}

}  // namespace jitgemm::bench
