// SPDX-License-Identifier: Apache-2.0
// Fragment sizes follow from the shape: a warp's 32 lanes (a warpgroup's 128) share a matrix
// evenly, in 32-bit registers (.f64: 64-bit). The one exception is mma.m8n8k4.f16 (PTX
// ISA 9.7.14.5.1).
#include "ptx/fragment_size.h"

#include <algorithm>

namespace jitgemm::ptx {
namespace {

constexpr size_t kWarpLanes = 32;
constexpr size_t kWarpgroupLanes = 128;

// Registers of one lane for a matrix of so many elements.
size_t registers(size_t elements, Type type, size_t lanes) {
  // Six- and four-bit elements of .kind::f8f6f4 take a byte each (PTX ISA 9.7.14.5.10).
  const int bits =
      type_kind(type) == TypeKind::kFloat ? std::max(type_bits(type), 8) : type_bits(type);
  const size_t register_bits = type == Type::kF64 ? 64 : 32;
  return elements * static_cast<size_t>(bits) / (lanes * register_bits);
}

size_t mma_fragment(char matrix, const Modifiers& m) {
  const bool quarter_warp = m.m == 8 && m.k == 4 && m.types[1] == Type::kF16;
  const Type d = m.types[0];
  // Elements of 4 and 6 bits lie in a byte each.
  const auto held_in = [&](Type type) {
    return m.mma_kind == MmaKind::kF8f6f4 ? Type::kE4m3 : type;
  };
  // Of a sparse A half the elements are stored.
  const bool sparse = m.has(Flag::kSparse) || m.has(Flag::kSparseOrdered);
  const size_t a_columns = sparse ? m.k / 2u : m.k;
  switch (matrix) {
    case 'a':
      return quarter_warp ? 2 : registers(size_t{m.m} * a_columns, held_in(m.types[1]), kWarpLanes);
    case 'b':
      return quarter_warp ? 2 : registers(size_t{m.n} * m.k, held_in(m.types[2]), kWarpLanes);
    case 'c':
    case 'd': {
      const Type type = matrix == 'c' ? m.types[3] : d;
      if (quarter_warp) return type == Type::kF16 ? 4 : 8;
      return registers(size_t{m.m} * m.n, type, kWarpLanes);
    }
    default: return 0;
  }
}

// PTX ISA 9.7.16.8.3, Table "shape and .num".
size_t tmem_registers(const Modifiers& m) {
  switch (m.tmem_shape) {
    case TmemShape::k16x64b:
    case TmemShape::k32x32b:
    case TmemShape::k16x32bx2: return m.count;
    case TmemShape::k16x128b: return size_t{m.count} <= 64 ? size_t{m.count} * 2 : 0;
    case TmemShape::k16x256b: return size_t{m.count} <= 32 ? size_t{m.count} * 4 : 0;
    case TmemShape::kNone:
    case TmemShape::k128x256b:
    case TmemShape::k4x256b:
    case TmemShape::k128x128b:
    case TmemShape::k64x128b:
    case TmemShape::k32x128b: return 0;
  }
  return 0;
}

// N is a multiple of 8 up to 256; integers take multiples of 16 above 32, and 24 (PTX
// ISA 9.7.15.5.2).
size_t wgmma_registers(const Modifiers& m) {
  if (m.n == 0 || m.n % 8 != 0 || m.n > 256) return 0;
  if (m.types[0] == Type::kS32 && m.n > 32 && m.n % 16 != 0) return 0;
  return registers(size_t{m.m} * m.n, m.types[0], kWarpgroupLanes);
}

}  // namespace

std::optional<size_t> vector_count(std::string_view rule, const Modifiers& m) {
  if (rule.empty() || rule == "any" || rule == "pack") return std::nullopt;
  if (rule == "2") return 2;
  if (rule == "4") return 4;
  if (rule == "vec") return m.vector;
  if (rule == "dim") return m.dim;
  // Gather and scatter name one column and four rows whatever the map's rank (PTX
  // ISA 9.7.9.25.5.2).
  if (rule == "coordinates") {
    const bool rows =
        m.tensor_mode == TensorMode::kTileGather4 || m.tensor_mode == TensorMode::kTileScatter4;
    return rows ? size_t{5} : m.dim;
  }
  // A 16x16 matrix of bytes is two registers, an 8x8 one of 16-bit elements is one.
  if (rule == "num") return m.m == 16 && m.n == 16 ? size_t{m.count} * 2 : m.count;
  if (rule == "tmem") return tmem_registers(m);
  if (rule == "wgmma_d") return wgmma_registers(m);
  if (rule.starts_with("mma_")) return mma_fragment(rule.back(), m);
  return 0;
}

}  // namespace jitgemm::ptx
