// SPDX-License-Identifier: Apache-2.0
#include "sim/trace.h"

#include "fmt/format.h"
#include "sim/report.h"

namespace jitgemm::sim {
namespace {

std::string place(const Warp& warp, LaneMask lanes) {
  const auto& id = warp.cta.ctaid;
  return fmt::format("{:>8} cta {},{},{} warp {:<2} {:08x}", warp.cta.cluster.steps, id[0], id[1],
                     id[2], warp.index, lanes);
}

std::string text_of(const GridState& grid, const Op& op) {
  const uint32_t line = op.instruction == nullptr ? 0 : op.instruction->position.line;
  return fmt::format("{}: {}", line, source_line(grid, op));
}

}  // namespace

void TraceWriter::after(const Warp& warp, const Op& op, LaneMask active) {
  std::string line = fmt::format("{} {}", place(warp, active), text_of(*grid_, op));
  if (active != 0) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(active));
    if (const std::string results = describe_results(warp, op, lane); !results.empty()) {
      line += fmt::format(" -> {}", results);
    }
  }
  grid_->options.trace(line);
}

void TraceWriter::parked(const Warp& warp, const Split& split) {
  std::string line = fmt::format("{} waits for {}", place(warp, split.mask), split.wait.what);
  if (split.wait.describe != nullptr) line += " " + split.wait.describe(warp, split);
  line += fmt::format(" at {}", text_of(*grid_, grid_->kernel->ops[split.parked_op]));
  grid_->options.trace(line);
}

void TraceWriter::resumed(const Warp& warp, const Split& split, uint64_t steps) {
  grid_->options.trace(fmt::format("{} goes on after {} steps", place(warp, split.mask), steps));
}

void TraceWriter::cluster_ended(const Cluster& cluster) {
  grid_->options.trace(fmt::format("{:>8} cluster {} has ended", cluster.steps, cluster.number));
}

}  // namespace jitgemm::sim
