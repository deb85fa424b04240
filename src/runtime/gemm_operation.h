// SPDX-License-Identifier: Apache-2.0
// A prepared product: its plan and its kernel, loaded on one device. Launching checks the
// arguments, fills the parameter struct and calls the device: no allocation, no lock, no file, no
// environment.
#pragma once

#include "device/device.h"
#include "plan/gemm_plan.h"
#include "support/result.h"

#include <cstdint>
#include <memory>

namespace jitgemm {

// Addresses on the operation's device.
struct GemmArguments {
  uint64_t a = 0;
  uint64_t b = 0;
  uint64_t a_scales = 0;
  uint64_t b_scales = 0;
  uint64_t out = 0;
  // Rows. Under MPolicy::kExact it must be the problem's m.
  int64_t m = 0;
  uint64_t workspace = 0;
  uint64_t workspace_bytes = 0;
  // Of a grouped product: the layout's integers and, where asked for, the counter of those that
  // were out of range.
  uint64_t group_rows = 0;
  uint64_t invalid_count = 0;
  bool programmatic_dependence = false;
};

// A workspace must be aligned to this; 256 is what allocators of the driver give.
inline constexpr uint64_t kWorkspaceAlignment = 256;

// Tiles of a grouped product: what device/group_walk.cuh can count.
inline constexpr int64_t kMostGroupUnits = int64_t{1} << 30;

class GemmOperation {
 public:
  GemmOperation(GemmPlan plan, std::shared_ptr<const LoadedKernel> kernel, Device& device)
      : plan_(std::move(plan)), kernel_(std::move(kernel)), device_(device) {}

  const GemmPlan& plan() const { return plan_; }
  Device& device() const { return device_; }

  // Copies fp32 scales to the host and looks at each: a debugging aid.
  Status check_power_of_two_scales(const GemmArguments& arguments) const;
  Status launch(const GemmArguments& arguments, StreamHandle stream) const;

 private:
  Status check(const GemmArguments& arguments) const;
  Status fill_groups(const GemmArguments& arguments, GemmParams& params) const;
  Status fill(const GemmArguments& arguments, GemmParams& params) const;

  GemmPlan plan_;
  std::shared_ptr<const LoadedKernel> kernel_;
  Device& device_;
};

}  // namespace jitgemm
