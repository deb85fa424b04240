// SPDX-License-Identifier: Apache-2.0
// A tcgen05.mma between its issue (exec_tcgen05_mma.cpp) and its effect
// (exec_tcgen05_mma_effect.cpp), and which part of tensor memory it is about. Not for other files.
#pragma once

#include "sim/exec_tcgen05.h"
#include "sim/models_instruction_descriptor.h"
#include "sim/models_tmem_layout.h"
#include "sim/models_zero_columns.h"

#include <array>
#include <cstdint>
#include <vector>

namespace jitgemm::sim {

struct Tcgen05Mma {
  // What one CTA of the group contributes.
  struct Share {
    Cta* cta = nullptr;
    MatrixOperand a, b;
    std::vector<uint32_t> a_chunks, b_chunks;
    std::vector<bool> missing_rows, missing_columns;  // never written; empty: none
  };
  // M and the group whose layout each CTA's rows have.
  struct LayoutShape {
    int m = 0, cta_group = 1;
  };

  Tcgen05Kind kind = Tcgen05Kind::kF16;
  InstructionDescriptor descriptor;
  int cta_group = 1;
  bool weight_stationary = false;
  std::vector<bool> zero_columns;  // of B, with .ws; empty: none
  bool a_in_tensor_memory = false;
  bool read_d = false;
  int d_shift = 0;
  TensorAddress d, a, scale_a, scale_b, metadata;
  std::array<uint32_t, 8> disabled_lanes{};
  std::vector<Share> shares;
  std::vector<TensorRegion> written, read;  // the same in each CTA
  Origin origin;

  int rows_per_cta() const { return descriptor.m / cta_group; }
  // Layouts C and F: 64 rows a CTA in 16 lanes of each 32. A pair with sparse A has layout C, whose
  // CTAs have what F has.
  bool half_of_lanes() const {
    return rows_per_cta() == 64 && !weight_stationary && (cta_group == 1 || descriptor.sparse);
  }
  LayoutShape layout_shape() const {
    return half_of_lanes() ? LayoutShape{64, 1} : LayoutShape{descriptor.m, cta_group};
  }
  // The first row of a CTA, in the rows of that layout.
  uint32_t first_row(uint32_t cta_index) const {
    return half_of_lanes() ? 0 : cta_index * static_cast<uint32_t>(rows_per_cta());
  }
  // Lane groups of D, A and metadata: the lower or the upper 16 of each 32 lanes, or all.
  uint32_t row_lane_groups(const TensorAddress& at) const {
    if (!half_of_lanes()) return kAllLaneGroups;
    return at.lane == 0 ? 0x55u : 0xaau;
  }
  // Groups of four factors that the instruction reads from: the second only where K = 96 runs on
  // into it.
  uint32_t scale_groups(uint32_t id) const {
    return (id + static_cast<uint32_t>(descriptor.scales_per_row) + 3) / 4;
  }
  uint32_t scale_group_columns(bool is_a) const {
    return is_a ? scale_a_group_columns()
                : scale_b_group_columns(descriptor.m, descriptor.n, cta_group);
  }
  int stored_k() const { return descriptor.sparse ? descriptor.k / 2 : descriptor.k; }
  MetadataLayout metadata_layout() const {
    return format_bits(descriptor.a_format) > 8 ? MetadataLayout::kHalves : MetadataLayout::kRows;
  }
  uint32_t a_words() const {
    uint32_t codes[8];
    return static_cast<uint32_t>(stored_k()) /
           unpack_tensor_word(descriptor.a_format, is_packed_fp4(kind), 0, codes);
  }
};

void complete_tcgen05_mma(Cluster& cluster, Tcgen05Mma& o);

}  // namespace jitgemm::sim
