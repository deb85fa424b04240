// SPDX-License-Identifier: Apache-2.0
// The flags of jitgemm run, and its part for grouped products.
#pragma once

#include "cli.h"

#include <cstdint>
#include <string>

namespace jitgemm::cli {

struct RunFlags {
  ProblemFlags problem;
  std::string device = "auto";
  std::string numerics;
  std::string sim_seed;
  uint64_t seed = 1;
  std::string data = "seed";
  std::string routing = "skewed";  // of grouped products
  std::string input;
  std::string output;
  bool no_verify = false;
  int repeat = 20;
  bool checksums = false;
};

// The problem's m is how many rows are drawn over all groups or, where they have rows of their own,
// how many each has room for.
Status run_grouped(Context& context, Device& device, GemmProblem problem,
                   const PlanOverrides& overrides, const RunFlags& flags, Cli& cli);

}  // namespace jitgemm::cli
