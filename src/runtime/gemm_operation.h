// SPDX-License-Identifier: Apache-2.0
// A prepared operation: its launches and their kernels, loaded on one device. Launching checks the
// arguments, fills each launch's parameter struct and calls the device: no allocation, no lock, no
// file, no environment.
#pragma once

#include "device/device.h"
#include "plan/operation_plan.h"
#include "support/result.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace jitgemm {

// Addresses on the operation's device.
struct GemmArguments {
  uint64_t a = 0;
  uint64_t b = 0;
  uint64_t a_scales = 0;  // none where the operation quantises a
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
  // Ask the device whether each address is its own: a debugging aid.
  bool check_addresses = false;
};

// Tiles of a grouped product: what device/group_walk.cuh can count.
inline constexpr int64_t kMostGroupUnits = int64_t{1} << 30;

class GemmOperation {
 public:
  using Kernels = std::vector<std::shared_ptr<const LoadedKernel>>;

  // One kernel for each launch of the plan.
  GemmOperation(OperationPlan plan, Kernels kernels, Device& device)
      : plan_(std::move(plan)), kernels_(std::move(kernels)), device_(device) {}

  const OperationPlan& plan() const { return plan_; }
  Device& device() const { return device_; }
  // Of a launch with that m.
  uint64_t workspace_bytes(int64_t m) const {
    return static_cast<uint64_t>(workspace_layout(plan_, m).bytes);
  }

  // Copies fp32 scales to the host and looks at each: a debugging aid.
  Status check_power_of_two_scales(const GemmArguments& arguments) const;
  Status launch(const GemmArguments& arguments, StreamHandle stream) const;

 private:
  Status check(const GemmArguments& arguments) const;
  Status check_groups(const GemmArguments& arguments) const;
  Status check_addresses(const GemmArguments& arguments) const;
  Status fill_groups(const GemmArguments& arguments, GemmParams& params) const;
  // `arguments` are those of the product: its a is codes.
  Status launch_product(const GemmArguments& arguments, const LoadedKernel& kernel,
                        StreamHandle stream) const;

  OperationPlan plan_;
  Kernels kernels_;
  Device& device_;
};

}  // namespace jitgemm
