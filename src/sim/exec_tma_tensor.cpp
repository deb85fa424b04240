// SPDX-License-Identifier: Apache-2.0
// Tensor copies and reductions of 1 to 5 dimensions (PTX ISA 9.7.9.25.5), in tile, gather4,
// scatter4 and im2col modes: the map is decoded and checked at issue, the box moves at completion.
// Which bytes a box touches is in models_tensor_copy, where they lie in models_swizzle.
#include "sim/access.h"
#include "sim/async_reduce.h"
#include "sim/exec_tma.h"
#include "sim/models_number_formats.h"
#include "sim/models_tensor_copy.h"
#include "sim/models_tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace jitgemm::sim {
namespace {

constexpr uint32_t kSharedAlign = 128;  // of the shared-memory end (9.7.9.25.5.2)
constexpr uint32_t kRowAlign = 16;      // of the global-memory end
constexpr uint64_t kMapBytes = 128;
constexpr uint64_t kMapAlign = 64;

Step map_fault(Warp& w, const Op& op, uint32_t lane, std::string text) {
  return w.fault(op, static_cast<int32_t>(lane), FaultKind::kTensorMap, std::move(text));
}

Step read_map(Warp& w, const Op& op, uint32_t lane, const Operand& operand, TensorMap& map) {
  Location at;
  const uint64_t address = w.address(operand, lane);
  if (locate(w, op, lane, Space::kGeneric, address, kMapBytes, kMapAlign, at) == Step::kFault)
    return Step::kFault;
  std::array<std::byte, kMapBytes> bytes;
  std::memcpy(bytes.data(), at.data, kMapBytes);
  if (!decode_tensor_map(bytes, map)) {
    return map_fault(w, op, lane, fmt::format("the 128 bytes at {:#x} are no tensor map", address));
  }
  if (std::string error = tensor_map_error(map); !error.empty()) {
    return map_fault(w, op, lane, "tensor map: " + error);
  }
  return Step::kNext;
}

void round_words(std::span<std::byte> bytes) {
  for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    uint32_t word;
    std::memcpy(&word, bytes.data() + i, 4);
    word = rounded_to_tf32(word);
    std::memcpy(bytes.data() + i, &word, 4);
  }
}

bool is_im2col(const ptx::Modifiers& m) {
  return m.tensor_mode == ptx::TensorMode::kIm2col ||
         m.tensor_mode == ptx::TensorMode::kIm2colNoOffs;
}

// The pixels of an im2col copy. offsets: null of a store, which has none.
Step find_pixels(Warp& w, const Op& op, uint32_t lane, const Operand* list, const TensorMap& map,
                 const Coordinates& at, std::vector<BoxRow>& rows) {
  for (uint32_t i = 0; i + 2 < map.rank; ++i) {
    const int64_t end = static_cast<int64_t>(map.dims[i + 1]) + map.upper_corner[i];
    if (at[i + 1] >= map.lower_corner[i] && at[i + 1] < end) continue;
    return map_fault(w, op, lane,
                     fmt::format("coordinate {} of dimension {} is not in the bounding box {}..{}",
                                 at[i + 1], i + 1, map.lower_corner[i], end - 1));
  }
  std::array<uint16_t, 3> offsets{};
  if (list != nullptr) {
    if (list->count + 2 != map.rank) {
      return map_fault(
          w, op, lane,
          fmt::format("{} im2col offsets for a tensor map of rank {}", list->count, map.rank));
    }
    for (uint32_t i = 0; i < list->count; ++i) {
      const Operand& offset = registers_of(w, *list)[i];
      if (w.require_defined(op, offset, LaneMask{1} << lane, "an im2col offset") == Step::kFault)
        return Step::kFault;
      offsets[i] = static_cast<uint16_t>(w.value(offset, lane));
      if (const uint32_t limit = im2col_offset_limit(map.rank); offsets[i] > limit) {
        return w.fault(op, static_cast<int32_t>(lane), FaultKind::kIllegalOperand,
                       fmt::format("im2col offset {} of dimension {}: 0..{} with a tensor map of "
                                   "rank {}",
                                   offsets[i], i + 1, limit, map.rank));
      }
    }
  }
  rows = im2col_rows(map, at, offsets);
  return Step::kNext;
}

// The rows of the box, or of four boxes of one row each for gather4 and scatter4, whose coordinates
// are one column and four rows (5.5.3.2), or pixels.
Step find_rows(Warp& w, const Op& op, uint32_t lane, const Operand& list, const Operand* offsets,
               TensorMap& map, std::vector<BoxRow>& rows) {
  const ptx::Modifiers& m = op.modifiers();
  Coordinates at{};
  for (uint32_t i = 0; i < list.count && i < at.size(); ++i) {
    const Operand& coordinate = registers_of(w, list)[i];
    if (w.require_defined(op, coordinate, LaneMask{1} << lane, "a coordinate") == Step::kFault)
      return Step::kFault;
    at[i] = static_cast<int32_t>(w.value(coordinate, lane));
  }
  if (m.dim != map.rank) {
    return map_fault(w, op, lane,
                     fmt::format("the instruction is {}-dimensional, its tensor map {}-dimensional",
                                 m.dim, map.rank));
  }
  // The PTX ISA does not say it, a GPU traps (CUDA_ERROR_ILLEGAL_INSTRUCTION on an H200).
  const TensorUnit unit = unit_of(map.element);
  if (int64_t{at[0]} * unit.global_bytes % (int64_t{kRowAlign} * unit.elements) != 0) {
    return map_fault(w, op, lane,
                     fmt::format("coordinate {} of dimension 0: rows of a box begin at multiples "
                                 "of {} bytes",
                                 at[0], kRowAlign));
  }
  if (is_im2col(m) != map.im2col) {
    return map_fault(
        w, op, lane,
        fmt::format("the instruction is {}, its tensor map {}", is_im2col(m) ? "im2col" : "tiled",
                    map.im2col ? "im2col" : "tiled"));
  }
  if (map.im2col) return find_pixels(w, op, lane, offsets, map, at, rows);
  if (m.tensor_mode != ptx::TensorMode::kTileGather4 &&
      m.tensor_mode != ptx::TensorMode::kTileScatter4) {
    rows = box_rows(map, at);
    return Step::kNext;
  }
  if (map.rank != 2 || map.box[1] != 1) {
    return map_fault(w, op, lane,
                     "gather4 and scatter4 need a tensor map of rank 2 with a box of one row");
  }
  for (uint32_t i = 0; i < 4; ++i) {
    std::vector<BoxRow> one = box_rows(map, {at[0], at[1 + i], 0, 0, 0});
    one[0].shared_offset = i * box_shared_bytes(map);
    rows.push_back(one[0]);
  }
  // From here on the map stands for the four rows.
  map.box[1] = 4;
  return Step::kNext;
}

// Calls f(offset in the row's shared bytes, length, shared address): 16 bytes at a time, 8 where
// the swizzle exchanges halves.
template <typename F>
void for_chunks(const TensorMap& map, const BoxRow& row, uint32_t start, uint32_t shared_bytes,
                F f) {
  const uint32_t step = map.swizzle == SwizzleMode::k128BAtom32BFlip8B ? 8 : 16;
  for (uint32_t i = 0; i < shared_bytes; i += step) {
    const uint64_t linear = uint64_t{start} + row.shared_offset + i;
    f(i, step, static_cast<uint32_t>(swizzle_address(map.swizzle, linear)));
  }
}

uint32_t row_shared_bytes(const TensorMap& map) {
  const TensorUnit unit = unit_of(map.element);
  return map.box[0] / unit.elements * unit.shared_bytes;
}

// One row as it appears in shared memory: valid bytes from global memory, the rest filled, packed
// types padded to their unit.
std::vector<std::byte> load_row(const TensorMap& map, const BoxRow& row) {
  const TensorUnit unit = unit_of(map.element);
  std::vector<std::byte> packed(row.bytes, std::byte{0});
  if (map.nan_fill) {
    for (uint32_t i = 0; i + 1 < row.bytes; i += 2)
      std::memcpy(packed.data() + i, &kOobNan16, sizeof kOobNan16);
  }
  if (row.valid_begin < row.valid_end) {
    std::memcpy(packed.data() + row.valid_begin,
                reinterpret_cast<const void*>(row.address + row.valid_begin),
                row.valid_end - row.valid_begin);
    if (rounds_when_loaded(map.element)) {
      round_words(std::span(packed).subspan(row.valid_begin, row.valid_end - row.valid_begin));
    }
  }
  if (unit.global_bytes == unit.shared_bytes) return packed;
  std::vector<std::byte> padded(row_shared_bytes(map), std::byte{0});
  for (uint32_t from = 0, to = 0; from < row.bytes;
       from += unit.global_bytes, to += unit.shared_bytes) {
    std::memcpy(padded.data() + to, packed.data() + from, unit.global_bytes);
  }
  return padded;
}

Step exec_load(Warp& w, const Op& op, LaneMask active) {
  return for_each_lane(active, [&](uint32_t lane) {
    TensorMap map;
    std::vector<BoxRow> rows;
    const bool im2col = is_im2col(op.modifiers());
    if (read_map(w, op, lane, op.slot(1), map) == Step::kFault ||
        find_rows(w, op, lane, op.slot(2), im2col ? &op.slot(4) : nullptr, map, rows) ==
            Step::kFault) {
      return Step::kFault;
    }
    const GlobalRaces::DeedId deed = begin_copy(w, op);
    for (const BoxRow& row : rows) {
      if (row.valid_begin == row.valid_end) continue;
      if (check_global_read(w, op, lane, deed, row.address + row.valid_begin,
                            row.valid_end - row.valid_begin) == Step::kFault) {
        return Step::kFault;
      }
    }
    const uint32_t bytes = box_shared_bytes(map);
    LoadTargets targets;
    if (locate_targets(w, op, lane, op.slot(0), op.slot(3), op.slot(im2col ? 5 : 4), bytes,
                       kSharedAlign, targets) == Step::kFault) {
      return Step::kFault;
    }
    AsyncOperation copy;
    copy.name = "cp.async.bulk.tensor";
    copy.origin = w.origin(op, static_cast<int32_t>(lane));
    copy.cta_rank = w.cta.rank;
    copy.complete = [map, rows = std::move(rows), targets, bytes, deed,
                     origin = copy.origin](Cluster& cluster) {
      copy_has_read(cluster, deed, cluster.async_writes + 1);
      const uint32_t row_bytes = row_shared_bytes(map);
      for (const BoxRow& row : rows) {
        cluster.global_in += row.valid_end - row.valid_begin;
        const std::vector<std::byte> data = load_row(map, row);
        for (const LoadTarget& target : targets.places) {
          for_chunks(
              map, row, target.offset, row_bytes, [&](uint32_t from, uint32_t length, uint32_t to) {
                std::memcpy(target.cta->shared.bytes.data() + to, data.data() + from, length);
              });
        }
      }
      for (const LoadTarget& target : targets.places) {
        finish_load(cluster, target, bytes, box_transaction_bytes(map), origin);
      }
    };
    w.cta.cluster.engine.submit(std::move(copy));
    return Step::kNext;
  });
}

// The source of a store must be there; where it has bytes that nobody has written, and no strict
// rules hold, what leaves of it: the bytes inside of the tensor.
Step check_box_source(Warp& w, const Op& op, uint32_t lane, const TensorMap& map,
                      const std::vector<BoxRow>& rows, const SharedPlace& source, uint32_t bytes) {
  const char* const kWhat = "the source of the tensor copy";
  if (w.cta.cluster.grid.options.strict || source.cta->shared.written.all(source.offset, bytes))
    return check_async_source(w, op, lane, *source.cta, source.offset, bytes, kWhat);
  Step step = Step::kNext;
  for (const BoxRow& row : rows) {
    for_chunks(
        map, row, source.offset, row.bytes, [&](uint32_t at, uint32_t length, uint32_t from) {
          const uint32_t begin = std::max(at, row.valid_begin);
          const uint32_t end = std::min(at + length, row.valid_end);
          if (step == Step::kFault || begin >= end) return;
          step =
              check_async_source(w, op, lane, *source.cta, from + (begin - at), end - begin, kWhat);
        });
  }
  return step;
}

bool reduce_type(TensorElement element, ReduceType& type) {
  switch (element) {
    case TensorElement::kU32: type = ReduceType::kU32; return true;
    case TensorElement::kS32: type = ReduceType::kS32; return true;
    case TensorElement::kU64: type = ReduceType::kU64; return true;
    case TensorElement::kS64: type = ReduceType::kS64; return true;
    case TensorElement::kF16: type = ReduceType::kF16; return true;
    case TensorElement::kBf16: type = ReduceType::kBf16; return true;
    case TensorElement::kF32:
    case TensorElement::kTf32: type = ReduceType::kF32; return true;
    case TensorElement::kF32Ftz:
    case TensorElement::kTf32Ftz: type = ReduceType::kF32Ftz; return true;
    default: return false;
  }
}

// Slots: map, coordinates, source.
Step exec_store(Warp& w, const Op& op, LaneMask active) {
  const bool reduces = op.instruction->opcode == ptx::Opcode::kCpReduceAsyncBulkTensor;
  // Source and place of the copies that this instruction has begun. Lanes that begin one and the
  // same, as CUTLASS's do, do not race without strict rules.
  std::vector<std::array<uint64_t, 3>> begun;
  return for_each_lane(active, [&](uint32_t lane) {
    TensorMap map;
    std::vector<BoxRow> rows;
    if (read_map(w, op, lane, op.slot(0), map) == Step::kFault ||
        find_rows(w, op, lane, op.slot(1), nullptr, map, rows) == Step::kFault) {
      return Step::kFault;
    }
    if (unit_of(map.element).global_bytes != unit_of(map.element).shared_bytes) {
      return map_fault(w, op, lane, "stores of padded sub-byte elements are not simulated");
    }
    const ptx::Operation operation = op.modifiers().operation;
    ReduceType type = ReduceType::kU32;
    if (reduces && (!reduce_type(map.element, type) || !reduce_is_legal(operation, type))) {
      return map_fault(w, op, lane,
                       "the reduction is not defined for the element type of the tensor map");
    }
    const uint32_t bytes = box_shared_bytes(map);
    SharedPlace source;
    if (locate_shared(w, op, lane, Space::kSharedCta, w.address(op.slot(2), lane), bytes,
                      kSharedAlign, source) == Step::kFault ||
        check_box_source(w, op, lane, map, rows, source, bytes) == Step::kFault) {
      return Step::kFault;
    }
    const std::array<uint64_t, 3> which = {source.offset, rows.front().address,
                                           rows.back().address};
    const bool again = !reduces && !w.cta.cluster.grid.options.strict &&
                       std::find(begun.begin(), begun.end(), which) != begun.end();
    begun.push_back(which);
    const GlobalRaces::DeedId deed = again ? 0 : begin_copy(w, op);
    for (const BoxRow& row : rows) {
      if (row.valid_begin == row.valid_end) continue;
      const uint64_t at = row.address + row.valid_begin;
      const uint64_t length = row.valid_end - row.valid_begin;
      if (check_global_write(w, op, lane, deed, at, length, reduces) == Step::kFault)
        return Step::kFault;
      w.cta.cluster.global_out += length;
    }
    const auto write = [=, rows = std::move(rows),
                        start = source.offset](const std::vector<std::byte>& data) {
      std::vector<std::byte> linear(row_shared_bytes(map));
      for (const BoxRow& row : rows) {
        for_chunks(map, row, start, row.bytes, [&](uint32_t to, uint32_t length, uint32_t from) {
          std::memcpy(linear.data() + to, data.data() + (from - start), length);
        });
        auto* global = reinterpret_cast<std::byte*>(row.address);
        if (!reduces) {
          if (row.valid_begin < row.valid_end) {
            std::memcpy(global + row.valid_begin, linear.data() + row.valid_begin,
                        row.valid_end - row.valid_begin);
          }
          continue;
        }
        const uint32_t step = reduce_bytes(type);
        for (uint32_t i = row.valid_begin; i < row.valid_end; i += step) {
          reduce_element(operation, type, global + i, linear.data() + i);
        }
      }
    };
    submit_store(w, op, lane, deed, *source.cta, source.offset, bytes, write);
    return Step::kNext;
  });
}

}  // namespace

Choice choose_tensor_copy(const ptx::Function&, const ptx::Instruction& instruction) {
  const ptx::Modifiers& m = instruction.modifiers;
  return {m.space == ptx::Space::kGlobal ? exec_store : exec_load, kOpAsync | kOpMemory, 0, ""};
}

Choice choose_tensor_reduce(const ptx::Function&, const ptx::Instruction&) {
  return {exec_store, kOpAsync | kOpMemory, 0, ""};
}

// A prefetch moves nothing that a program can see, but its map must be one.
Step exec_tensor_prefetch(Warp& w, const Op& op, LaneMask active) {
  return for_each_lane(active, [&](uint32_t lane) {
    TensorMap map;
    return read_map(w, op, lane, op.slot(0), map);
  });
}

}  // namespace jitgemm::sim
