// SPDX-License-Identifier: Apache-2.0
// The decision: which template, with which constants, and what a launch of it needs. A plain value
// that prints; made by a planner, read by the specializer and by the runtime.
#pragma once

#include "plan/kernel_family.h"
#include "problem/gemm_problem.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jitgemm {

// How an operand's tile reaches shared memory. The numbers are those of Spec::kFeedA and kFeedB.
enum class Feed : int32_t {
  kTma = 0,      // rows of a multiple of 16 bytes
  kCpAsync = 1,  // rows of a multiple of 4 bytes
  kPlain = 2,    // anything
};

// How a tile reaches the output. The numbers are those of Spec::kStore.
enum class Store : int32_t {
  kDirect = 0,
  kTma = 1,
};

// The swizzle of a shared-memory tile (PTX ISA, "Tensor swizzling modes"); the value is the span in
// bytes.
enum class Swizzle : int32_t { kNone = 0, k32B = 32, k64B = 64, k128B = 128 };

// The tensor map of one two-dimensional operand: its box, in elements. Addresses and extents are
// the launch's.
struct TensorMapPlan {
  bool used = false;
  int32_t box_rows = 0;
  int32_t box_columns = 0;
  Swizzle swizzle = Swizzle::k128B;

  bool operator==(const TensorMapPlan&) const = default;
};

enum class GridKind : int32_t {
  kTiles,       // one CTA a tile: (tiles of n, tiles of m, 1)
  kPersistent,  // as many CTAs as fit the device at once, each walking over tiles; (count, 1, 1)
};

enum class PlanSource : int32_t { kModel, kDatabase, kOverride };

// One more named constant of the Spec, beyond those that every family has.
using SpecField = std::pair<std::string, int64_t>;

struct GemmPlan {
  GemmProblem problem;
  KernelFamily family = KernelFamily::kReference;
  PlanSource source = PlanSource::kModel;
  // The m that the kernel is made for: the problem's under MPolicy::kExact, else an upper bound
  // that only guides the choice of tiles.
  int64_t planned_m = 0;
  // What the planner's model expects of a launch; 0 where it has no model. It ranks plans and is no
  // part of a kernel.
  double estimate_us = 0;
  int32_t tile_m = 0;
  int32_t tile_n = 0;
  int32_t tile_k = 0;
  int32_t stages = 1;
  int32_t threads = 0;
  int32_t cluster = 1;  // CTAs a cluster, along x
  int32_t split_k = 1;
  GridKind grid = GridKind::kTiles;
  int32_t ctas_per_sm = 1;
  Feed feed_a = Feed::kPlain;
  Feed feed_b = Feed::kPlain;
  Store store = Store::kDirect;
  TensorMapPlan a_map;
  TensorMapPlan b_map;
  TensorMapPlan out_map;
  // Of launches whose scales are 16-byte aligned; others are told to do without.
  TensorMapPlan a_scale_map;
  TensorMapPlan b_scale_map;
  int32_t shared_bytes = 0;  // dynamic
  int64_t workspace_bytes = 0;
  std::vector<SpecField> extra_fields;
  // Each preference that decided, with its reason.
  std::vector<std::string> reasons;
};

struct Dim3 {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
  bool operator==(const Dim3&) const = default;
};

struct LaunchGeometry {
  Dim3 grid;
  Dim3 block;
  Dim3 cluster;
  uint32_t shared_bytes = 0;
};

// The most windows of tile_m rows that m rows (of each group, where they have their own) can give;
// without groups, the rows of tiles.
int64_t row_windows(const GemmPlan& plan, int64_t m);

// The geometry for an actual m on a device with that many SMs. m >= 1.
LaunchGeometry launch_geometry(const GemmPlan& plan, int64_t m, int sm_count);

// The largest m of m's class (MPolicy::kClass): at most 32 classes over 1..16384, unbounded above.
int64_t m_class_bound(int64_t m);

// Whether a row's bits may differ between two m of one problem: another m may get a plan that
// splits k otherwise or swaps the operands.
bool row_bits_depend_on_m(const GemmPlan& plan);

// One line that tells a plan from every other plan of its problem: what reaches the specialiser and
// the launch. Stable, so that files may hold it.
std::string plan_identity(const GemmPlan& plan);

std::string_view feed_name(Feed feed);
std::string_view plan_source_name(PlanSource source);
// Several lines: the launch, the constants, the reasons.
std::string to_string(const GemmPlan& plan);

}  // namespace jitgemm
