// SPDX-License-Identifier: Apache-2.0
// tcgen05.cp (PTX ISA 9.7.16.9): from shared into tensor memory, decompressing on the way if asked;
// checked when issued, in effect when the tensor pipe gets to it. Layouts are in
// models_tmem_layout.
#include "sim/exec_matrix.h"
#include "sim/exec_tcgen05.h"
#include "sim/exec_tma.h"
#include "sim/models_tmem_layout.h"

#include <fmt/format.h>

#include <array>

namespace jitgemm::sim {
namespace {

// Four bytes of matrix A: four bits in the middle of a byte, six at its low end (9.7.16.10.4.3).
uint32_t tensor_word(NumberFormat packed, const uint32_t* codes) {
  uint32_t word = 0;
  for (uint32_t i = 0; i < 4; ++i)
    word |= (packed == NumberFormat::kE2m1 ? codes[i] << 2 : codes[i]) << (8 * i);
  return word;
}

bool copy_shape(const ptx::Modifiers& m, TmemCopy& shape) {
  switch (m.tmem_shape) {
    case ptx::TmemShape::k128x256b: shape = TmemCopy::k128x256b; return true;
    case ptx::TmemShape::k4x256b: shape = TmemCopy::k4x256b; return true;
    case ptx::TmemShape::k128x128b: shape = TmemCopy::k128x128b; return true;
    case ptx::TmemShape::k64x128b:
      shape = m.warp_multicast == ptx::WarpMulticast::kWarpx2Lanes02And13
                  ? TmemCopy::k64x128bPairs02
                  : TmemCopy::k64x128bPairs01;
      return true;
    case ptx::TmemShape::k32x128b: shape = TmemCopy::k32x128b; return true;
    default: return false;
  }
}

Step issue_cp(Warp& w, const Op& op, uint32_t lane) {
  TmemCopy shape = TmemCopy::k32x128b;
  copy_shape(op.modifiers(), shape);
  if (w.require_defined(op, op.slot(0), LaneMask{1} << lane, "the tensor memory address") ==
      Step::kFault)
    return Step::kFault;
  const TensorAddress to = tensor_address(w.address(op.slot(0), lane));
  MatrixDescriptor source;
  if (read_tcgen05_descriptor(w, op, lane, op.slot(1), "the source descriptor", source) ==
      Step::kFault)
    return Step::kFault;
  if (source.leading_is_absolute) {
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kDescriptor,
                   "the source descriptor: bit 52 (absolute leading-dimension address) is for "
                   "tcgen05.mma only");
  }
  const uint32_t row_bytes = copy_row_bytes(shape);
  const uint32_t last_lane = copy_lane(shape, copy_rows(shape) - 1, copy_replicas(shape) - 1);
  if (to.lane + last_lane >= TensorMemory::kLanes) {
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kTensorMemory,
                   fmt::format("tcgen05.cp reaches lane {} of 128", to.lane + last_lane));
  }
  const TensorRegion region{kAllLaneGroups, to.column, row_bytes / 4};
  // Sixteen elements of four or six bits, with padding behind, become bytes as matrix A has them.
  const NumberFormat packed =
      op.modifiers().types[1] == ptx::Type::kB4x16P64 ? NumberFormat::kE2m1 : NumberFormat::kE3m2;
  const bool decompresses = op.modifiers().types[0] != ptx::Type::kNone;
  const uint32_t packed_bytes = decompresses ? 2 * static_cast<uint32_t>(format_bits(packed)) : 16;
  std::vector<uint32_t> chunks;
  for (uint32_t row = 0; row < copy_rows(shape); ++row) {
    for (uint32_t chunk = 0; chunk < row_bytes / 16; ++chunk)
      chunks.push_back(k_major_address(source, row, chunk));
  }
  const std::vector<Cta*> ctas = group_ctas(w.cta, op.modifiers().cta_group);
  constexpr const char* kSource = "the source of tcgen05.cp";
  std::vector<uint8_t> flags;  // of the words of each chunk of each CTA
  for (Cta* cta : ctas) {
    if (check_region(w, op, *cta, region, "tcgen05.cp") == Step::kFault ||
        check_region_settled(w, op, *cta, region, "tcgen05.cp") == Step::kFault ||
        check_tensor_order(w, op, *cta, region, true, "tcgen05.cp") == Step::kFault) {
      return Step::kFault;
    }
    for (const uint32_t at : chunks) {
      bool missing = false;
      if (check_async_source(w, op, lane, *cta, at, packed_bytes, kSource, &missing) ==
          Step::kFault)
        return Step::kFault;
      // Words never written stay that, as production code copies scale factors that its tile has
      // not; words in flight are a fault.
      const WrittenMap& written = cta->shared.written;
      const bool in_flight =
          cta->shared.shadow.find_async_write(at, packed_bytes) != SharedShadow::kNone;
      if (missing && (in_flight || written.all(at, packed_bytes)))
        return check_async_source(w, op, lane, *cta, at, packed_bytes, kSource);
      for (uint32_t word = 0; word < 4; ++word) {
        const bool there = !missing || (!decompresses && written.all(at + 4 * word, 4));
        flags.push_back(there ? TensorMemory::kWritten : uint8_t{0});
      }
    }
  }
  for (Cta* cta : ctas) {
    for (const uint32_t at : chunks) cta->shared.shadow.begin_async_read(at, 16);
    for_each_part(*cta, region, [&](TensorPart& p) {
      ++p.async_writers;
      p.written = w.view.now();
      p.writer = static_cast<uint16_t>(cta->cluster.agents.tensor_pipe(w.cluster_warp));
      p.writing_op = op.index;
      p.writing_lane = static_cast<uint8_t>(lane);
    });
  }
  submit_tensor_operation(w, op, lane, "tcgen05.cp", [=](Cluster&) {
    size_t flag = 0;
    for (Cta* cta : ctas) {
      const uint32_t per_row = row_bytes / 16;
      for (size_t i = 0; i < chunks.size(); ++i, flag += 4) {
        const auto row = static_cast<uint32_t>(i) / per_row;
        const uint32_t column = to.column + 4 * (static_cast<uint32_t>(i) % per_row);
        std::array<uint32_t, 16> codes{};
        if (decompresses)
          unpack_chunk(packed, false, cta->shared.bytes.data() + chunks[i], codes.data());
        for (uint32_t word = 0; word < 4; ++word) {
          auto value = cta->shared.load<uint32_t>(chunks[i] + 4 * word);
          if (decompresses) value = tensor_word(packed, codes.data() + 4 * word);
          for (uint32_t replica = 0; replica < copy_replicas(shape); ++replica) {
            const uint32_t cell =
                TensorMemory::index(to.lane + copy_lane(shape, row, replica), column + word);
            cta->tensor->cells[cell] = value;
            cta->tensor->flags[cell] = flags[flag + word];
          }
        }
        cta->shared.shadow.end_async_read(chunks[i], 16);
      }
      for_each_part(*cta, region, [](TensorPart& p) { --p.async_writers; });
    }
  });
  return Step::kNext;
}

Step exec_cp(Warp& w, const Op& op, LaneMask active) {
  if (use_cta_group(w, op, op.modifiers().cta_group) == Step::kFault) return Step::kFault;
  return for_each_lane(active, [&](uint32_t lane) { return issue_cp(w, op, lane); });
}

}  // namespace

Step read_tcgen05_descriptor(Warp& w, const Op& op, uint32_t lane, const Operand& slot,
                             const char* what, MatrixDescriptor& out) {
  if (w.require_defined(op, slot, LaneMask{1} << lane, what) == Step::kFault) return Step::kFault;
  const uint64_t bits = w.value(slot, lane);
  const DecodedDescriptor decoded = decode_tcgen05_descriptor(bits);
  if (!decoded.error.empty()) {
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kDescriptor,
                   fmt::format("{} {:#x}: {}", what, bits, decoded.error));
  }
  out = decoded.descriptor;
  return Step::kNext;
}

Choice choose_tcgen05_cp(const ptx::Function&, const ptx::Instruction& instruction) {
  TmemCopy shape = TmemCopy::k32x128b;
  if (!copy_shape(instruction.modifiers, shape))
    return Choice::refuse("unknown shape of tcgen05.cp");
  return {exec_cp, kOpAsync, 0, ""};
}

}  // namespace jitgemm::sim
