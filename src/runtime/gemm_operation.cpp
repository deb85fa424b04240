// SPDX-License-Identifier: Apache-2.0
#include "runtime/gemm_operation.h"

#include "problem/gemm_limits.h"
#include "problem/grouping_check.h"
#include "runtime/align_launch.h"
#include "runtime/matrix_bytes.h"
#include "runtime/quantize_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace jitgemm {
namespace {

// Of as many such matrices as there are groups, that many elements apart.
uint64_t grouped_bytes(uint64_t bytes, int64_t groups, int64_t stride, int64_t element_bytes) {
  if (bytes == 0 || groups <= 1) return bytes;
  return static_cast<uint64_t>((groups - 1) * stride * element_bytes) + bytes;
}

// The rows of the tensor map over all groups.
int64_t map_rows(int64_t rows, int64_t groups, int64_t group_rows) {
  return groups <= 1 ? rows : (groups - 1) * group_rows + rows;
}

uint64_t scale_bytes(int64_t rows, int64_t k_blocks, ScaleMajor major, int64_t stride,
                     int64_t element_bytes) {
  if (major == ScaleMajor::kRow) return matrix_bytes(rows, k_blocks, stride, element_bytes);
  const int64_t columns = major == ScaleMajor::kPacked ? (k_blocks + 3) / 4 : k_blocks;
  return rows == 0 ? 0 : matrix_bytes(columns, rows, stride, element_bytes);
}

// What the strides of scales count: elements, or words of four.
int64_t scale_unit_bytes(const GemmProblem& p, ScaleMajor major) {
  return major == ScaleMajor::kPacked ? 4 : dtype_info(p.scale_dtype).bytes;
}

Status check_pointer(const char* name, uint64_t address, uint64_t alignment) {
  if (address == 0)
    return invalid_argument(fmt::format("{}: expected an address, found NULL", name));
  if (address % alignment != 0) {
    return invalid_argument(fmt::format(
        "{}: expected an address that is a multiple of {}, found {:#x}", name, alignment, address));
  }
  return ok_status();
}

// Operands of 16 bits have no scales; an address given all the same is a mistake of the caller.
Status check_absent(const char* name, uint64_t address, const char* reason) {
  if (address == 0) return ok_status();
  return invalid_argument(
      fmt::format("{}: expected NULL, since {}, found {:#x}", name, reason, address));
}

struct ScaleStrides {
  int64_t a_row;
  int64_t a_block;
  int64_t b_row;
  int64_t b_block;
};

// The distance between columns of A's scales may depend on m, so it follows the launch's m.
int64_t a_scale_stride(const GemmProblem& p, int64_t m) {
  return p.a_scale_ld != 0 ? p.a_scale_ld : p.scale_ld(p.a_scale_major, m);
}

ScaleStrides scale_strides(const GemmProblem& p, int64_t m) {
  const int64_t a = a_scale_stride(p, m);
  const int64_t b = p.b_scale_ld_or_dense();
  const bool a_row_major = p.a_scale_major == ScaleMajor::kRow;
  const bool b_row_major = p.b_scale_major == ScaleMajor::kRow;
  return {a_row_major ? a : 1, a_row_major ? 1 : a, b_row_major ? b : 1, b_row_major ? 1 : b};
}

// "b_scales", or "b_scales of group 3".
std::string group_name(const char* name, int64_t group, int64_t groups) {
  return groups == 1 ? std::string(name) : fmt::format("{} of group {}", name, group);
}

Status check_power_of_two(Device& device, const std::string& name, uint64_t address, int64_t rows,
                          int64_t k_blocks, int64_t row_stride, int64_t column_stride) {
  if (rows == 0) return ok_status();
  if (address == 0)
    return invalid_argument(fmt::format("{}: expected an address, found NULL", name));
  const auto count =
      static_cast<size_t>((rows - 1) * row_stride + (k_blocks - 1) * column_stride + 1);
  std::vector<float> scales(count);
  JITGEMM_TRY(device.copy_to_host(scales.data(), address, count * sizeof(float)));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t block = 0; block < k_blocks; ++block) {
      const float scale = scales[static_cast<size_t>(row * row_stride + block * column_stride)];
      int exponent = 0;
      if (std::isfinite(scale) && scale >= 0x1p-127F && std::frexp(scale, &exponent) == 0.5F)
        continue;
      return invalid_argument(
          fmt::format("{}[{}, {}]: expected a power of two from 2^-127 to 2^127, found {}", name,
                      row, block, scale));
    }
  }
  return ok_status();
}

}  // namespace

Status GemmOperation::check(const GemmArguments& arguments) const {
  const GemmProblem& p = plan_.problem;
  if (p.m_policy != MPolicy::kExact) {
    JITGEMM_TRY(check_rows(p, arguments.m));
  } else if (arguments.m != p.m) {
    return invalid_argument(
        fmt::format("m: expected {} (the kernel is exact in m), found {}", p.m, arguments.m));
  }
  if (p.a_scale_ld != 0 && p.a_scale_major != ScaleMajor::kRow && arguments.m > p.a_scale_ld) {
    return invalid_argument(
        fmt::format("m: expected at most a_scale_ld = {}, found {}", p.a_scale_ld, arguments.m));
  }
  if (arguments.m == 0) return ok_status();
  const auto operand_alignment = static_cast<uint64_t>(p.alignment);
  const auto bytes_of = [](DType dtype) { return static_cast<uint64_t>(dtype_info(dtype).bytes); };
  const uint64_t a_alignment =
      p.quantizes_a() ? std::max(operand_alignment, bytes_of(p.a_dtype)) : operand_alignment;
  JITGEMM_TRY(check_pointer("a", arguments.a, a_alignment));
  JITGEMM_TRY(check_pointer("b", arguments.b, operand_alignment));
  if (p.scaled()) {
    if (p.quantizes_a()) {
      JITGEMM_TRY(check_absent("a_scales", arguments.a_scales, "the operation makes them"));
    } else {
      JITGEMM_TRY(check_pointer("a_scales", arguments.a_scales,
                                static_cast<uint64_t>(scale_unit_bytes(p, p.a_scale_major))));
    }
    JITGEMM_TRY(check_pointer("b_scales", arguments.b_scales,
                              static_cast<uint64_t>(scale_unit_bytes(p, p.b_scale_major))));
  } else {
    constexpr const char* kNoScales = "operands of 16 bits have no scales";
    JITGEMM_TRY(check_absent("a_scales", arguments.a_scales, kNoScales));
    JITGEMM_TRY(check_absent("b_scales", arguments.b_scales, kNoScales));
  }
  JITGEMM_TRY(
      check_pointer("out", arguments.out, std::max(operand_alignment, bytes_of(p.out_dtype))));
  if (p.grouping.grouped()) JITGEMM_TRY(check_groups(arguments));
  if (const uint64_t needed = workspace_bytes(arguments.m); needed > 0) {
    JITGEMM_TRY(check_pointer("workspace", arguments.workspace, kWorkspaceAlignment));
    if (arguments.workspace_bytes < needed) {
      return invalid_argument(fmt::format("workspace_bytes: expected at least {}, found {}", needed,
                                          arguments.workspace_bytes));
    }
  }
  return arguments.check_addresses ? check_addresses(arguments) : ok_status();
}

Status GemmOperation::check_addresses(const GemmArguments& arguments) const {
  const std::pair<const char*, uint64_t> addresses[] = {
      {"a",             arguments.a            },
      {"b",             arguments.b            },
      {"a_scales",      arguments.a_scales     },
      {"b_scales",      arguments.b_scales     },
      {"out",           arguments.out          },
      {"workspace",     arguments.workspace    },
      {"group_rows",    arguments.group_rows   },
      {"invalid_count", arguments.invalid_count},
  };
  for (const auto& [name, address] : addresses) {
    if (address != 0) JITGEMM_TRY(device_.check_address(address).with_context(name));
  }
  return ok_status();
}

// What a grouped product asks beyond one that is not.
Status GemmOperation::check_groups(const GemmArguments& arguments) const {
  const GemmPlan& plan = plan_.product();
  const GemmProblem& p = plan.problem;
  JITGEMM_TRY(check_pointer("group_rows", arguments.group_rows, sizeof(int32_t)));
  if (p.grouping.count_invalid) {
    JITGEMM_TRY(check_pointer("invalid_count", arguments.invalid_count, sizeof(uint32_t)));
  } else if (arguments.invalid_count != 0) {
    return invalid_argument(
        fmt::format("invalid_count: expected NULL without count_invalid, found {:#x}",
                    arguments.invalid_count));
  }
  JITGEMM_TRY(check_group_rows(p, arguments.m));
  const int64_t units = row_windows(plan, arguments.m) * ((p.n + plan.tile_n - 1) / plan.tile_n);
  if (units > kMostGroupUnits) {
    return unsupported(fmt::format("m: expected at most {} tiles of {} x {}, found {}",
                                   kMostGroupUnits, plan.tile_m, plan.tile_n, units));
  }
  return ok_status();
}

// What of a grouped product's parameters is not already that of one group.
Status GemmOperation::fill_groups(const GemmArguments& arguments, GemmParams& params) const {
  const GemmPlan& plan = plan_.product();
  GemmProblem p = plan.problem;
  p.m = arguments.m;
  params.a_group_stride = p.a_group_stride() * p.operand_bytes();
  params.b_group_stride = p.b_group_stride() * p.operand_bytes();
  params.out_group_stride = p.out_group_stride();
  params.a_scale_group_stride = p.a_scale_group_stride();
  params.b_scale_group_stride = p.b_scale_group_stride();
  // Planners use a tensor map only where groups are whole rows apart. Maps have 32-bit
  // coordinates; a larger m than the planned one may exceed them.
  const int64_t most = INT32_MAX / p.grouping.groups;
  bool too_many = false;
  const auto rows_of = [&](bool mapped, int64_t group_stride, int64_t ld) {
    if (!mapped) return int32_t{0};
    const int64_t rows = group_stride / ld;
    too_many |= rows > most;
    return static_cast<int32_t>(rows);
  };
  params.a_group_rows = rows_of(plan.a_map.used, params.a_group_stride, params.lda);
  params.b_group_rows = rows_of(plan.b_map.used, params.b_group_stride, params.ldb);
  params.out_group_rows = rows_of(plan.out_map.used, params.out_group_stride, params.ldo);
  params.a_scale_group_rows =
      rows_of(plan.a_scale_map.used, params.a_scale_group_stride, params.a_scale_stride_m);
  params.b_scale_group_rows =
      rows_of(plan.b_scale_map.used, params.b_scale_group_stride, params.b_scale_stride_n);
  if (too_many) {
    return unsupported(
        fmt::format("m: {} rows of each of {} groups are more than a tensor map spans", arguments.m,
                    p.grouping.groups));
  }
  params.group_rows = arguments.group_rows;
  params.invalid_count = arguments.invalid_count;
  return ok_status();
}

Status GemmOperation::launch_product(const GemmArguments& arguments, const LoadedKernel& kernel,
                                     StreamHandle stream) const {
  const GemmPlan& plan = plan_.product();
  const GemmProblem& p = plan.problem;
  GemmParams params = {};
  params.a = arguments.a;
  params.b = arguments.b;
  params.a_scales = arguments.a_scales;
  params.b_scales = arguments.b_scales;
  params.out = arguments.out;
  params.workspace = arguments.workspace;
  // Kernels count operands in bytes: for FP8, in elements.
  params.lda = p.lda_or_dense() * p.operand_bytes();
  params.ldb = p.ldb_or_dense() * p.operand_bytes();
  params.ldo = p.ldo_or_dense();
  const ScaleStrides strides = scale_strides(p, arguments.m);
  params.a_scale_stride_m = strides.a_row;
  params.a_scale_stride_k = strides.a_block;
  params.b_scale_stride_n = strides.b_row;
  params.b_scale_stride_k = strides.b_block;
  params.m = static_cast<int32_t>(arguments.m);
  const int64_t b_groups = p.grouping.grouped() ? p.grouping.groups : 1;
  const int64_t row_groups = p.grouping.separate_rows() ? p.grouping.groups : 1;
  if (p.grouping.grouped()) JITGEMM_TRY(fill_groups(arguments, params));

  std::array<TensorMapRequest, 5> maps;
  size_t map_count = 0;
  const auto add_map = [&](const TensorMapPlan& map, EncodedTensorMap& encoded, DType dtype,
                           uint64_t address, int64_t rows, int64_t columns, int64_t stride) {
    if (!map.used) return;
    maps[map_count++] = {matrix_tensor_map(dtype, address, rows, columns, stride, map), &encoded};
  };
  // Maps count bytes of operands, whatever their type.
  add_map(plan.a_map, params.a_map, DType::kF8E4M3, params.a,
          map_rows(arguments.m, row_groups, params.a_group_rows), p.k_bytes(), params.lda);
  add_map(plan.b_map, params.b_map, DType::kF8E4M3, params.b,
          map_rows(p.n, b_groups, params.b_group_rows), p.k_bytes(), params.ldb);
  add_map(plan.out_map, params.out_map, p.out_dtype, params.out,
          map_rows(arguments.m, row_groups, params.out_group_rows), p.n, params.ldo);
  if (plan.a_scale_map.used && (params.a_scales | params.b_scales) % 16 == 0) {
    params.scale_maps = 1;
    add_map(plan.a_scale_map, params.a_scale_map, DType::kF32, params.a_scales,
            map_rows(arguments.m, row_groups, params.a_scale_group_rows), p.k_blocks(),
            params.a_scale_stride_m);
    add_map(plan.b_scale_map, params.b_scale_map, DType::kF32, params.b_scales,
            map_rows(p.n_blocks(), b_groups, params.b_scale_group_rows), p.k_blocks(),
            params.b_scale_stride_n);
  }

  const int64_t a_unit = scale_unit_bytes(p, p.a_scale_major);
  const int64_t b_unit = scale_unit_bytes(p, p.b_scale_major);
  const int64_t out_element = dtype_info(p.out_dtype).bytes;
  const Grouping& g = p.grouping;
  const auto whole = [](uint64_t address, uint64_t bytes, int64_t groups, int64_t stride,
                        int64_t element, bool writable) {
    return MemoryRange{address, grouped_bytes(bytes, groups, stride, element), writable};
  };
  std::array<MemoryRange, 8> ranges = {
      {
       whole(arguments.a, matrix_bytes(arguments.m, p.k_bytes(), params.lda, 1), row_groups,
       params.a_group_stride, 1, false),
       whole(arguments.b, matrix_bytes(p.n, p.k_bytes(), params.ldb, 1), b_groups,
       params.b_group_stride, 1, false),
       whole(arguments.a_scales,
       scale_bytes(arguments.m, p.k_blocks(), p.a_scale_major,
       a_scale_stride(p, arguments.m), a_unit),
       row_groups, params.a_scale_group_stride, a_unit, false),
       whole(arguments.b_scales,
       scale_bytes(p.n_blocks(), p.k_blocks(), p.b_scale_major, p.b_scale_ld_or_dense(),
       b_unit),
       b_groups, params.b_scale_group_stride, b_unit, false),
       whole(arguments.out, matrix_bytes(arguments.m, p.n, params.ldo, out_element), row_groups,
       params.out_group_stride, out_element, true),
       }
  };
  size_t range_count = 5;
  if (!p.scaled()) {
    ranges[2] = ranges[4];  // in place of scales
    range_count = 3;
  }
  if (plan.workspace_bytes > 0) {
    ranges[range_count++] = {arguments.workspace, static_cast<uint64_t>(plan.workspace_bytes),
                             true};
  }
  if (g.grouped()) {
    ranges[range_count++] = {arguments.group_rows,
                             static_cast<uint64_t>(g.info_count(arguments.m)) * sizeof(int32_t),
                             false};
    if (g.count_invalid) {
      ranges[range_count++] = {arguments.invalid_count, sizeof(uint32_t), true, true};
    }
  }
  LaunchRequest request;
  request.geometry = launch_geometry(plan, arguments.m, device_.info().sm_count);
  request.params = &params;
  request.param_bytes = sizeof(params);
  request.maps = std::span(maps.data(), map_count);
  request.ranges = std::span(ranges.data(), range_count);
  request.programmatic_dependence = arguments.programmatic_dependence;
  return device_.launch(kernel, request, stream);
}

Status GemmOperation::launch(const GemmArguments& arguments, StreamHandle stream) const {
  JITGEMM_TRY(check(arguments));
  if (arguments.m == 0) return ok_status();
  const WorkspaceLayout layout = workspace_layout(plan_, arguments.m);
  const auto at = [&](int64_t offset) {
    return arguments.workspace + static_cast<uint64_t>(offset);
  };
  GemmArguments product = arguments;
  product.workspace = at(layout.product);
  auto kernel = kernels_.begin();
  if (const auto* quantize = plan_.before_product<QuantizePlan>()) {
    product.a = at(layout.a_codes);
    product.a_scales = at(layout.a_scales);
    product.programmatic_dependence = quantize->product_begins_early;
    const QuantizeParams params = {arguments.a,
                                   product.a,
                                   product.a_scales,
                                   quantize->source_ld,
                                   quantize->code_ld,
                                   quantize->scale_ld,
                                   static_cast<int32_t>(arguments.m),
                                   0};
    JITGEMM_TRY(launch_quantize(device_, **kernel++, *quantize, params,
                                arguments.programmatic_dependence, stream));
  }
  if (const auto* align = plan_.before_product<AlignPlan>()) {
    AlignParams params = {};
    const auto copy = [&](AlignedMatrix& matrix, uint64_t& address, int64_t pitch, int64_t rows,
                          int64_t offset) {
      matrix = {address, at(offset), pitch, rows};
      address = at(offset);
    };
    const bool dependence = product.programmatic_dependence;
    if (align->a) copy(params.a, product.a, align->a_pitch, arguments.m, layout.aligned_a);
    if (align->b) copy(params.b, product.b, align->b_pitch, align->n, layout.aligned_b);
    if (align->a_scales) {
      copy(params.a_scales, product.a_scales, align->a_scale_pitch, arguments.m,
           layout.aligned_a_scales);
    }
    if (align->b_scales) {
      copy(params.b_scales, product.b_scales, align->b_scale_pitch, align->n_blocks,
           layout.aligned_b_scales);
    }
    product.programmatic_dependence = align->product_begins_early;
    JITGEMM_TRY(launch_align(device_, **kernel++, *align, params, arguments.m, dependence, stream));
  }
  return launch_product(product, *kernels_.back(), stream);
}

Status GemmOperation::check_power_of_two_scales(const GemmArguments& arguments) const {
  JITGEMM_TRY(check(arguments));
  const GemmProblem& p = plan_.problem;
  if (!p.scaled() || p.scale_dtype == DType::kF8E8M0 || arguments.m == 0) return ok_status();
  const ScaleStrides strides = scale_strides(p, arguments.m);
  GemmProblem at_launch = p;
  at_launch.m = arguments.m;
  const int64_t b_groups = p.grouping.grouped() ? p.grouping.groups : 1;
  const int64_t row_groups = p.grouping.separate_rows() ? p.grouping.groups : 1;
  for (int64_t group = 0; group < (p.quantizes_a() ? 0 : row_groups); ++group) {
    const auto offset = static_cast<uint64_t>(group * at_launch.a_scale_group_stride());
    JITGEMM_TRY(check_power_of_two(device_, group_name("a_scales", group, row_groups),
                                   arguments.a_scales + offset * sizeof(float), arguments.m,
                                   p.k_blocks(), strides.a_row, strides.a_block));
  }
  for (int64_t group = 0; group < b_groups; ++group) {
    const auto offset = static_cast<uint64_t>(group * at_launch.b_scale_group_stride());
    JITGEMM_TRY(check_power_of_two(device_, group_name("b_scales", group, b_groups),
                                   arguments.b_scales + offset * sizeof(float), p.n_blocks(),
                                   p.k_blocks(), strides.b_row, strides.b_block));
  }
  return ok_status();
}

}  // namespace jitgemm
