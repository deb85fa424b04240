// SPDX-License-Identifier: Apache-2.0
// What must hold for any launch description and any program given to the simulator together: a
// report, or a status with a message, within the limits. Descriptions that name files are read and
// not run. Shared by the fuzzer and by the test that replays its corpus. The input is the JSON, a
// line "=====", the PTX.
#pragma once

#include "simrun/kernel_run.h"
#include "simrun/launch_json.h"
#include "simrun/report_json.h"

#include <cstdlib>
#include <string_view>
#include <utility>

namespace jitgemm {

inline bool touches_files(const simrun::RunDescription& description) {
  using Kind = simrun::ContentDescription::Kind;
  const auto reads = [](const simrun::ContentDescription& c) {
    return c.kind == Kind::kFile || c.kind == Kind::kSafetensors;
  };
  for (const simrun::BufferDescription& b : description.buffers) {
    if (b.output || reads(b.content) || (b.expect && reads(b.expect->content))) return true;
  }
  return !description.options.trace_file.empty();
}

// True if the launches ran to their end.
inline bool check_launch(std::string_view input) {
  constexpr std::string_view kSeparator = "\n=====\n";
  const size_t at = input.find(kSeparator);
  auto description = simrun::parse_launch_json(input.substr(0, at));
  const auto told = [](const Status& status) {
    if (status.ok() || status.message().empty()) std::abort();
    return false;
  };
  if (!description) return told(description.error());
  if (at == std::string_view::npos || touches_files(*description)) return false;
  description->options.memory_limit = 4 << 20;
  description->options.simulator.step_limit = 20000;
  description->options.simulator.threads = 1;
  auto run =
      simrun::KernelRun::create(input.substr(at + kSeparator.size()), std::move(*description), "");
  if (!run) return told(run.error());
  const auto report = run->run();
  if (!report) return told(report.error());
  if (simrun::to_json_text(*report).empty() || simrun::to_text(*report, true).empty()) std::abort();
  return true;
}

}  // namespace jitgemm
