// SPDX-License-Identifier: Apache-2.0
// Layout rules, each checked by a second route: written through one model and read through another,
// or compared with the layout as another manual states it.
#include "sim/models_fragments.h"
#include "sim/models_instruction_descriptor.h"
#include "sim/models_smem_descriptor.h"
#include "sim/models_swizzle.h"
#include "sim/models_tensor_copy.h"
#include "sim/models_tensor_map.h"
#include "sim/models_tmem_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <vector>

namespace jitgemm::sim::model_layouts_test {
namespace {

constexpr SwizzleMode kAllModes[] = {
    SwizzleMode::kNone,        SwizzleMode::k32B,         SwizzleMode::k64B,
    SwizzleMode::k128B,        SwizzleMode::k128BAtom32B, SwizzleMode::k128BAtom32BFlip8B,
    SwizzleMode::k128BAtom64B,
};

TEST(ModelSwizzle, EveryModePermutesEachPeriodAndRepeats) {
  for (const SwizzleMode mode : kAllModes) {
    const uint32_t period = swizzle_period(mode);
    std::set<uint64_t> seen;
    for (uint32_t a = 0; a < period; ++a) {
      const uint64_t to = swizzle_address(mode, a);
      EXPECT_LT(to, period);
      seen.insert(to);
      EXPECT_EQ(swizzle_address(mode, to), a) << "an exchange undoes itself";
      EXPECT_EQ(swizzle_address(mode, a + 4 * period), to + 4 * period);
    }
    EXPECT_EQ(seen.size(), period);
  }
}

// The pattern tables of PTX ISA 5.5.7: where 16-byte chunk c of 128-byte line r lies.
TEST(ModelSwizzle, ChunksLieWhereTheManualsTablesPutThem) {
  const int table_128[3][8] = {
      {0, 1, 2, 3, 4, 5, 6, 7},
      {1, 0, 3, 2, 5, 4, 7, 6},
      {2, 3, 0, 1, 6, 7, 4, 5}
  };
  const int table_64[2][8] = {
      {0, 1, 2, 3, 4, 5, 6, 7},
      {1, 0, 3, 2, 5, 4, 7, 6}
  };
  const int table_32b_atoms[2][8] = {
      {0, 1, 2, 3, 4, 5, 6, 7},
      {2, 3, 0, 1, 6, 7, 4, 5}
  };
  for (uint64_t c = 0; c < 8; ++c) {
    for (uint64_t r = 0; r < 3; ++r) {
      EXPECT_EQ(swizzle_address(SwizzleMode::k128B, 128 * r + 16 * c) % 128 / 16, table_128[r][c]);
    }
    for (uint64_t r = 0; r < 2; ++r) {
      EXPECT_EQ(swizzle_address(SwizzleMode::k64B, 128 * r + 16 * c) % 128 / 16, table_64[r][c]);
      EXPECT_EQ(swizzle_address(SwizzleMode::k128BAtom32B, 128 * r + 16 * c) % 128 / 16,
                table_32b_atoms[r][c]);
    }
  }
}

// --- Matrix descriptors against tensor copies ---------------------------------------------------

uint64_t tcgen05_bits(uint32_t start, uint32_t leading, uint32_t stride, SwizzleMode mode) {
  uint64_t code = 0;
  switch (mode) {
    case SwizzleMode::kNone: code = 0; break;
    case SwizzleMode::k128BAtom32B: code = 1; break;
    case SwizzleMode::k128B: code = 2; break;
    case SwizzleMode::k64B: code = 4; break;
    case SwizzleMode::k32B: code = 6; break;
    default: ADD_FAILURE();
  }
  return (start >> 4) | (uint64_t{leading >> 4} << 16) | (uint64_t{stride >> 4} << 32) |
         (uint64_t{1} << 46) | (code << 61);
}

uint64_t wgmma_bits(uint32_t start, uint32_t leading, uint32_t stride, SwizzleMode mode) {
  uint64_t code = 0;
  if (mode == SwizzleMode::k128B) code = 1;
  if (mode == SwizzleMode::k64B) code = 2;
  if (mode == SwizzleMode::k32B) code = 3;
  return (start >> 4) | (uint64_t{leading >> 4} << 16) | (uint64_t{stride >> 4} << 32) |
         (code << 62);
}

// Copies a box of a byte tensor into a shared image; a byte's value is an id of its tensor
// position.
std::map<uint32_t, uint32_t> copied_bytes(uint32_t inner, uint32_t outer, SwizzleMode mode,
                                          uint32_t destination) {
  TensorMap map;
  map.rank = 2;
  map.address = 1 << 20;
  map.dims = {4096, 4096, 1, 1, 1};
  map.strides = {4096, 0, 0, 0};
  map.box = {inner, outer, 1, 1, 1};
  map.swizzle = mode;
  EXPECT_EQ(tensor_map_error(map), "");
  std::map<uint32_t, uint32_t> image;
  for (const BoxRow& row : box_rows(map, {})) {
    for (uint32_t i = row.valid_begin; i < row.valid_end; ++i) {
      const uint64_t at = swizzle_address(mode, destination + row.shared_offset + i);
      image[static_cast<uint32_t>(at)] = static_cast<uint32_t>(row.address + i - map.address);
    }
  }
  return image;
}

// K-major: rows of the tensor are rows of the matrix, dimension 0 is k. Each instruction step
// advances the start address by 32 bytes.
TEST(ModelSmemDescriptor, KMajorReadsWhatATensorCopyWrote) {
  for (const SwizzleMode mode : {SwizzleMode::k32B, SwizzleMode::k64B, SwizzleMode::k128B}) {
    const uint32_t width = swizzle_width(mode);
    auto image = copied_bytes(width, 64, mode, 2048);
    for (uint32_t step = 0; step < width / 32; ++step) {
      const uint32_t start = 2048 + 32 * step;
      const DecodedDescriptor blackwell =
          decode_tcgen05_descriptor(tcgen05_bits(start, 16, 8 * width, mode));
      const DecodedDescriptor hopper =
          decode_wgmma_descriptor(wgmma_bits(start, 16, 8 * width, mode));
      ASSERT_EQ(blackwell.error, "");
      ASSERT_EQ(hopper.error, "");
      for (uint32_t row = 0; row < 64; ++row) {
        for (uint32_t chunk = 0; chunk < 2; ++chunk) {
          const uint32_t at = k_major_address(blackwell.descriptor, row, chunk);
          EXPECT_EQ(at, k_major_address(hopper.descriptor, row, chunk));
          for (uint32_t i = 0; i < 16; ++i) {
            EXPECT_EQ(image.at(at + i), row * 4096 + 32 * step + 16 * chunk + i);
          }
        }
      }
    }
  }
}

// MN-major: dimension 0 of the tensor is m or n, rows are k. Two boxes side by side along m.
TEST(ModelSmemDescriptor, MnMajorReadsWhatTensorCopiesWrote) {
  for (const SwizzleMode mode :
       {SwizzleMode::k32B, SwizzleMode::k64B, SwizzleMode::k128B, SwizzleMode::k128BAtom32B}) {
    const uint32_t width = swizzle_width(mode);
    const uint32_t depth = 32;
    const uint32_t group = mode == SwizzleMode::k128BAtom32B ? 4 : 8;
    auto image = copied_bytes(width, depth, mode, 4096);
    auto second = copied_bytes(width, depth, mode, 4096 + width * depth);
    image.insert(second.begin(), second.end());
    const DecodedDescriptor d =
        decode_tcgen05_descriptor(tcgen05_bits(4096, width * depth, group * width, mode));
    ASSERT_EQ(d.error, "");
    for (uint32_t k = 0; k < depth; ++k) {
      for (uint32_t chunk = 0; chunk < 2 * width / 16; ++chunk) {
        const uint32_t at = mn_major_address(d.descriptor, chunk, k);
        for (uint32_t i = 0; i < 16; ++i) {
          EXPECT_EQ(image.at(at + i), k * 4096 + (chunk * 16) % width + i) << swizzle_name(mode);
        }
      }
    }
  }
}

// Without swizzle the canonical layouts are plain strides, in 16-byte units of T elements:
// K-major ((8,m),(T,2)) : ((1T,SBO),(1,LBO)); MN-major ((T,1,m),(8,k)) : ((1,T,SBO),(1T,LBO)).
TEST(ModelSmemDescriptor, NoSwizzleFollowsTheCanonicalStrides) {
  const MatrixDescriptor d =
      decode_tcgen05_descriptor(tcgen05_bits(1024, 2048, 256, SwizzleMode::kNone)).descriptor;
  for (uint32_t i = 0; i < 64; ++i) {
    for (uint32_t j = 0; j < 2; ++j) {
      EXPECT_EQ(k_major_address(d, i, j), 1024 + 16 * (i % 8) + 256 * (i / 8) + 2048 * j);
      EXPECT_EQ(mn_major_address(d, j, i), 1024 + 256 * j + 16 * (i % 8) + 2048 * (i / 8));
    }
  }
}

TEST(ModelSmemDescriptor, IllegalFieldsAreNamed) {
  const uint64_t good = tcgen05_bits(1024, 16, 1024, SwizzleMode::k128B);
  EXPECT_EQ(decode_tcgen05_descriptor(good).error, "");
  EXPECT_NE(decode_tcgen05_descriptor(good ^ (uint64_t{1} << 46)).error.find("46-48"),
            std::string::npos);
  EXPECT_NE(decode_tcgen05_descriptor(good | (uint64_t{1} << 61)).error.find("61-63"),
            std::string::npos);
  EXPECT_NE(decode_tcgen05_descriptor(good | (uint64_t{1} << 14)).error.find("14-15"),
            std::string::npos);
  EXPECT_EQ(decode_tcgen05_descriptor(good | (uint64_t{1} << 52)).error, "");
  EXPECT_NE(
      decode_tcgen05_descriptor(good | (uint64_t{1} << 52) | (uint64_t{1} << 49)).error.find("52"),
      std::string::npos);
  EXPECT_NE(decode_wgmma_descriptor(good).error, "")
      << "a tcgen05 descriptor is no wgmma descriptor";
}

// --- Instruction descriptors --------------------------------------------------------------------

// The fields in the order in which CUTLASS declares them, as bit-fields: another way to the same
// bits.
struct PlainFields {
  uint32_t sparse_id : 2, sparse : 1, saturate : 1, c_format : 2, zero0 : 1, a_format : 3,
      b_format : 3, a_negate : 1, b_negate : 1, a_major : 1, b_major : 1, n : 6, zero1 : 1, m : 5,
      zero2 : 1, shift : 2;
};
struct ScaledFields {
  uint32_t sparse_id : 2, sparse : 1, zero0 : 1, b_sf_id : 2, zero1 : 1, a_format : 3, b_format : 3,
      a_negate : 1, b_negate : 1, a_major : 1, b_major : 1, n : 6, scale_format : 1, m : 5,
      a_sf_id : 2, k_size : 1;
};
template <typename T>
uint32_t bits_of(const T& fields) {
  uint32_t bits = 0;
  static_assert(sizeof fields == sizeof bits);
  std::memcpy(&bits, &fields, sizeof bits);
  return bits;
}

TEST(ModelInstructionDescriptor, PlainFieldsDecode) {
  PlainFields f{};
  f.c_format = 1;
  f.a_format = 0;
  f.b_format = 1;
  f.b_negate = 1;
  f.a_major = 1;
  f.n = 128 / 8;
  f.m = 256 / 16;
  const DecodedInstruction out = decode_instruction(Tcgen05Kind::kF8f6f4, bits_of(f), 2, 0);
  ASSERT_EQ(out.error, "");
  const InstructionDescriptor& d = out.descriptor;
  EXPECT_EQ(d.m, 256);
  EXPECT_EQ(d.n, 128);
  EXPECT_EQ(d.k, 32);
  EXPECT_EQ(d.a_format, NumberFormat::kE4m3);
  EXPECT_EQ(d.b_format, NumberFormat::kE5m2);
  EXPECT_EQ(d.result, MmaResult::kF32);
  EXPECT_TRUE(d.negate_b && d.a_mn_major);
  EXPECT_FALSE(d.negate_a || d.b_mn_major);
}

TEST(ModelInstructionDescriptor, ScaledFieldsDecode) {
  ScaledFields f{};
  f.b_sf_id = 2;
  f.a_sf_id = 1;
  f.a_format = 5;
  f.b_format = 0;
  f.scale_format = 1;
  f.n = 64 / 8;
  f.m = 128 / 16;
  const DecodedInstruction out = decode_instruction(Tcgen05Kind::kMxf8f6f4, bits_of(f), 1, 1);
  ASSERT_EQ(out.error, "");
  EXPECT_EQ(out.descriptor.scale_b_id, 2u);
  EXPECT_EQ(out.descriptor.scale_a_id, 1u);
  EXPECT_EQ(out.descriptor.a_format, NumberFormat::kE2m1);
  EXPECT_EQ(out.descriptor.scale_format, NumberFormat::kUe8m0);
}

TEST(ModelInstructionDescriptor, ShapesOutsideTheTableAreRefused) {
  const auto error = [](Tcgen05Kind kind, int m, int n, int group) {
    PlainFields f{};
    f.c_format = kind == Tcgen05Kind::kI8 ? 2 : 1;
    f.a_format = f.b_format = kind == Tcgen05Kind::kTf32 ? 2 : 1;
    f.m = static_cast<uint32_t>(m / 16);
    f.n = static_cast<uint32_t>(n / 8);
    return decode_instruction(kind, bits_of(f), group, 0).error;
  };
  EXPECT_EQ(error(Tcgen05Kind::kF16, 64, 8, 1), "");
  EXPECT_EQ(error(Tcgen05Kind::kTf32, 128, 256, 2), "");
  EXPECT_NE(error(Tcgen05Kind::kF16, 256, 64, 1), "");
  EXPECT_NE(error(Tcgen05Kind::kF16, 64, 64, 2), "");
  EXPECT_NE(error(Tcgen05Kind::kF16, 128, 24, 2), "");
  EXPECT_EQ(error(Tcgen05Kind::kI8, 64, 24, 1), "");
  EXPECT_NE(error(Tcgen05Kind::kI8, 64, 40, 1), "");
  EXPECT_NE(error(Tcgen05Kind::kF16, 128, 0, 1), "");
}

// --- Tensor maps and boxes ----------------------------------------------------------------------

TEST(ModelTensorMap, RoundTripsAndRejectsGarbage) {
  TensorMap map;
  map.element = TensorElement::kBf16;
  map.rank = 5;
  map.address = 0x7f0012340;
  map.dims = {64, 1u << 20, uint64_t{1} << 32, 3, 2};
  map.strides = {128, 1 << 24, 4096, 1 << 30};
  map.box = {64, 256, 1, 2, 1};
  map.element_strides = {1, 2, 1, 8, 1};
  map.swizzle = SwizzleMode::k128B;
  map.nan_fill = true;
  EncodedMap bytes = encode_tensor_map(map);
  TensorMap back;
  ASSERT_TRUE(decode_tensor_map(bytes, back));
  EXPECT_EQ(back, map);
  bytes[30] ^= std::byte{1};
  EXPECT_FALSE(decode_tensor_map(bytes, back));
  EXPECT_FALSE(decode_tensor_map(EncodedMap{}, back));
}

// Against a plain walk over the box's elements.
TEST(ModelTensorCopy, BoxRowsMatchAnElementWalk) {
  TensorMap map;
  map.element = TensorElement::kU16;
  map.rank = 3;
  map.address = 4096;
  map.dims = {20, 7, 5, 1, 1};
  map.strides = {48, 480, 0, 0};
  map.box = {16, 4, 3, 1, 1};
  map.element_strides = {1, 2, 1, 1, 1};
  EXPECT_EQ(tensor_map_error(map), "");
  for (const Coordinates start : {
           Coordinates{0,  0,  0 },
           Coordinates{-3, 5,  3 },
           Coordinates{12, -2, -1},
           Coordinates{40, 0,  0 }
  }) {
    const std::vector<BoxRow> rows = box_rows(map, start);
    ASSERT_EQ(rows.size(), 6u);
    EXPECT_EQ(box_shared_bytes(map), 6 * 32u);
    size_t row = 0;
    for (int z = 0; z < 3; ++z) {
      for (int y = 0; y < 4; y += 2, ++row) {
        EXPECT_EQ(rows[row].shared_offset, row * 32);
        for (int x = 0; x < 16; ++x) {
          const int64_t gx = start[0] + x, gy = start[1] + y, gz = start[2] + z;
          const bool inside = gx >= 0 && gx < 20 && gy >= 0 && gy < 7 && gz >= 0 && gz < 5;
          const uint32_t byte = static_cast<uint32_t>(2 * x);
          EXPECT_EQ(byte >= rows[row].valid_begin && byte < rows[row].valid_end, inside);
          if (inside) {
            EXPECT_EQ(rows[row].address + byte, uint64_t(4096 + 2 * gx + 48 * gy + 480 * gz));
          }
        }
      }
    }
  }
}

// --- Tensor memory ------------------------------------------------------------------------------

TEST(ModelTmemLayout, EveryAccessShapeCoversItsRectangleOnce) {
  const TmemAccess shapes[] = {TmemAccess::k16x64b, TmemAccess::k16x128b, TmemAccess::k16x256b,
                               TmemAccess::k32x32b, TmemAccess::k16x32bx2};
  for (const TmemAccess shape : shapes) {
    const uint32_t registers = access_registers(shape, 4);
    std::set<std::pair<uint32_t, uint32_t>> cells;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      for (uint32_t r = 0; r < registers; ++r) {
        const TmemCell cell = access_cell(shape, lane, r, registers);
        EXPECT_LT(cell.lane, access_lanes(shape));
        EXPECT_LT(cell.column, 32 * registers / access_lanes(shape));
        cells.insert({cell.lane, cell.column});
      }
    }
    EXPECT_EQ(cells.size(), 32 * registers);
  }
}

// 16x256b is the accumulator fragment of mma.sync, 16x128b the fragment of 32-bit A elements, which
// is how stmatrix and mma users read them (PTX ISA 9.7.14.5).
TEST(ModelTmemLayout, AccessShapesAreTheMmaFragments) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < 16; ++r) {
      const MatrixIndex d = d_fragment(16, lane, r);
      const TmemCell c256 = access_cell(TmemAccess::k16x256b, lane, r, 0);
      EXPECT_EQ(static_cast<int>(c256.lane), d.row);
      EXPECT_EQ(static_cast<int>(c256.column), d.column);
      const MatrixIndex a = a_fragment(16, 32, lane, r, 0);
      const TmemCell c128 = access_cell(TmemAccess::k16x128b, lane, r, 0);
      EXPECT_EQ(static_cast<int>(c128.lane), a.row);
      EXPECT_EQ(static_cast<int>(c128.column), a.column);
    }
  }
}

// 512 bytes in which the word of row r lies at (r % 32) * 16 + (r / 32) * 4, copied by
// 32x128b.warpx4, put every row's scale word where tcgen05.mma looks for it, in all four replicas.
TEST(ModelTmemLayout, CopiedScaleWordsLieWhereTheMmaReadsThem) {
  const MatrixDescriptor source =
      decode_tcgen05_descriptor(tcgen05_bits(2048, 16, 128, SwizzleMode::kNone)).descriptor;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> cells;
  for (uint32_t row = 0; row < copy_rows(TmemCopy::k32x128b); ++row) {
    const uint32_t at = k_major_address(source, row, 0);
    for (uint32_t word = 0; word < 4; ++word) {
      const uint32_t offset = at + 4 * word - 2048;
      const uint32_t scaled_row = offset / 16 + 32 * (offset % 16 / 4);
      for (uint32_t replica = 0; replica < 4; ++replica) {
        cells[{copy_lane(TmemCopy::k32x128b, row, replica), word}] = scaled_row;
      }
    }
  }
  EXPECT_EQ(cells.size(), 512u);
  for (uint32_t row = 0; row < 128; ++row) {
    for (uint32_t replica = 0; replica < scale_a_replicas(); ++replica) {
      const TmemPlace a = scale_a_place(128, 1, row, replica);
      EXPECT_EQ(a.cta, 0u);
      EXPECT_EQ(cells.at({a.cell.lane, a.cell.column}), row);
      const TmemPlace b = scale_b_place(128, 128, 1, row, replica);
      EXPECT_EQ(cells.at({b.cell.lane, b.cell.column}), row);
    }
  }
  EXPECT_EQ(scale_b_columns(128, 256, 1), 8u);
}

// The layouts as CUTLASS writes them: shapes and strides over (lane 1, column 128).
TEST(ModelTmemLayout, AccumulatorsFollowThePublishedStrides) {
  const auto linear = [](const TmemPlace& p) { return p.cell.lane + 128 * p.cell.column; };
  for (uint32_t row = 0; row < 256; ++row) {
    for (uint32_t column = 0; column < 32; ++column) {
      const TmemPlace full = accumulator_place(256, 32, 2, row, column);
      EXPECT_EQ(full.cta, row / 128);
      EXPECT_EQ(linear(full), row % 128 + 128 * column);
      if (row >= 128) continue;
      EXPECT_EQ(linear(accumulator_place(128, 32, 1, row, column)), row + 128 * column);
      // 2x2: (64, (N/2, 2)) : (1, (128, 64))
      const TmemPlace half = accumulator_place(128, 32, 2, row, column);
      EXPECT_EQ(half.cta, row / 64);
      EXPECT_EQ(linear(half), row % 64 + 128 * (column % 16) + 64 * (column / 16));
      if (row >= 64) continue;
      // half datapath: ((16, 4), N) : ((1, 32), 128)
      EXPECT_EQ(linear(accumulator_place(64, 32, 1, row, column)),
                row % 16 + 32 * (row / 16) + 128 * column);
    }
  }
}

TEST(ModelTmemLayout, TwoByTwoScalesOfBFollowTheColumnsOfTheAccumulator) {
  for (uint32_t column = 0; column < 128; ++column) {
    const uint32_t half = accumulator_place(128, 128, 2, 0, column).cell.lane / 64;
    for (uint32_t replica = 0; replica < scale_b_replicas(128, 2); ++replica) {
      const TmemCell cell = scale_b_place(128, 128, 2, column, replica).cell;
      EXPECT_EQ(cell.lane / 64, half) << "the lanes that accumulate a column hold its scale";
      EXPECT_EQ(cell.lane % 32, column % 64 % 32);
      EXPECT_EQ(cell.column, column % 64 / 32);
    }
  }
}

// --- Fragments ----------------------------------------------------------------------------------

TEST(ModelFragments, EveryElementHasOneHolder) {
  struct Shape {
    int rows, bits, k, a_registers;
  };
  for (const Shape s : {
           Shape{16, 16, 16, 4},
           Shape{16, 16, 8,  2},
           Shape{16, 8,  32, 4},
           Shape{16, 32, 8,  4},
           Shape{16, 32, 4,  2},
           Shape{16, 64, 16, 8},
           Shape{8,  64, 4,  1}
  }) {
    const int per = s.bits >= 32 ? 1 : 32 / s.bits;
    std::set<std::pair<int, int>> a, b, d;
    for (int lane = 0; lane < 32; ++lane) {
      for (int r = 0; r < s.a_registers; ++r) {
        for (int i = 0; i < per; ++i) {
          const MatrixIndex at = a_fragment(s.rows, s.bits, lane, r, i);
          EXPECT_TRUE(at.row < s.rows && at.column < s.k);
          a.insert({at.row, at.column});
          if (r >= s.a_registers * 8 / s.rows) continue;
          const MatrixIndex bt = b_fragment(s.bits, lane, r, i);
          EXPECT_TRUE(bt.row < s.k && bt.column < 8);
          b.insert({bt.row, bt.column});
        }
      }
      for (int r = 0; r < s.rows / 4; ++r) {
        const MatrixIndex at = d_fragment(s.rows, lane, r);
        d.insert({at.row, at.column});
      }
    }
    EXPECT_EQ(a.size(), static_cast<size_t>(s.rows * s.k));
    EXPECT_EQ(b.size(), static_cast<size_t>(8 * s.k));
    EXPECT_EQ(d.size(), static_cast<size_t>(8 * s.rows));
  }
}

// Entries of the manual's figures for m16n8k16 (f16) and m64n16k16.
TEST(ModelFragments, KnownEntriesOfTheManual) {
  EXPECT_EQ(a_fragment(16, 16, 5, 3, 1).row, 9);
  EXPECT_EQ(a_fragment(16, 16, 5, 3, 1).column, 11);
  EXPECT_EQ(b_fragment(16, 6, 1, 0).row, 12);
  EXPECT_EQ(b_fragment(16, 6, 1, 0).column, 1);
  EXPECT_EQ(d_fragment(16, 9, 6).row, 10);
  EXPECT_EQ(d_fragment(16, 9, 6).column, 10);
}

// The tensor of the ISA's first example of im2col mode (5.5.4.1).
TEST(Im2col, PixelsFollowTheBoundingBox) {
  TensorMap map;
  map.address = 1 << 20;
  map.rank = 4;
  map.element = TensorElement::kU8;
  map.dims = {64, 9, 14, 64, 1};
  map.strides = {64, 64 * 9, 64 * 9 * 14, 0};
  map.im2col = true;
  map.box = {16, 64, 1, 1, 1};
  map.lower_corner = {-1, -1, 0};
  map.upper_corner = {-1, -1, 0};
  EXPECT_EQ(tensor_map_error(map), "");
  EXPECT_EQ(box_shared_bytes(map), 1024u);
  const auto rows = im2col_rows(map, {16, 7, 4, 0, 0}, {0, 0, 0});
  ASSERT_EQ(rows.size(), 64u);
  const auto at = [&](int w, int h, int n) {
    return map.address + 16 +
           static_cast<uint64_t>(64 * (w + 9 * (h + 14 * static_cast<int64_t>(n))));
  };
  EXPECT_EQ(rows[0].address, at(7, 4, 0));
  EXPECT_EQ(rows[0].valid_end, 16u);
  // The box ends at W = 7; the next row of it begins at -1, outside of the tensor.
  EXPECT_EQ(rows[1].valid_end, 0u);
  EXPECT_EQ(rows[2].address, at(0, 5, 0));
  EXPECT_EQ(rows[2].shared_offset, 32u);
  // With offsets a pixel is the one that many further.
  const auto shifted = im2col_rows(map, {16, 7, 4, 0, 0}, {2, 1, 0});
  EXPECT_EQ(shifted[0].valid_end, 0u);  // W = 9
  EXPECT_EQ(shifted[1].address, at(1, 6, 0));
  EXPECT_EQ(shifted[1].valid_end, 16u);
  // Behind the last row of the box: the next image. Behind the last image: nothing.
  const auto last = im2col_rows(map, {16, 7, 12, 63, 0}, {0, 0, 0});
  EXPECT_EQ(last[0].address, at(7, 12, 63));
  EXPECT_EQ(last[1 + 9 + 3].valid_end, 0u);
  map.lower_corner[0] = 9;
  EXPECT_NE(tensor_map_error(map), "");
}

TEST(Im2col, EachLimitIsTheOneThatItsMessageNames) {
  TensorMap map;
  map.address = 1 << 20;
  map.rank = 4;
  map.element = TensorElement::kU8;
  map.dims = {512, 9, 14, 64, 1};
  map.strides = {512, 512 * 9, 512 * 9 * 14, 0};
  map.im2col = true;
  map.box = {256, 1024, 1, 1, 1};
  EXPECT_EQ(tensor_map_error(map), "");
  map.box[1] = 1025;
  EXPECT_EQ(tensor_map_error(map), "a column of 1025 pixels is not in 1..1024");
  map.box = {272, 1024, 1, 1, 1};
  EXPECT_EQ(tensor_map_error(map), "box dimension 0 of 272 elements is not in 1..256");
  map.box[0] = 256;
  map.lower_corner[1] = -129;
  EXPECT_EQ(tensor_map_error(map), "the corner -129 of dimension 2 is not in -128..127");
}

}  // namespace
}  // namespace jitgemm::sim::model_layouts_test
