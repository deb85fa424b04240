// SPDX-License-Identifier: Apache-2.0
// The C ABI of the simulator alone: any kernel, described by a document.
#include "jitgemm/jitgemm.h"

#include "api/call_guard.h"
#include "simrun/kernel_run.h"
#include "simrun/launch_json.h"
#include "simrun/report_json.h"
#include "support/strict_json.h"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <utility>

namespace jitgemm {
namespace {

static_assert(sizeof(jitgemm_sim_run_arguments) == 8 * 8);

Status check(const jitgemm_sim_run_arguments& arguments) {
  if (arguments.ptx == nullptr) return null_argument("arguments.ptx");
  if (arguments.launch_json == nullptr) return null_argument("arguments.launch_json");
  if (arguments.buffers == nullptr && arguments.buffer_count != 0) {
    return null_argument("arguments.buffers");
  }
  for (size_t i = 0; i < arguments.buffer_count; ++i) {
    const jitgemm_sim_buffer& buffer = arguments.buffers[i];
    if (buffer.name == nullptr) return null_argument(fmt::format("buffers[{}].name", i).c_str());
    if (buffer.data == nullptr && buffer.bytes != 0) {
      return null_argument(fmt::format("buffers[{}].data", i).c_str());
    }
  }
  // Each is written back on its own, so one place for two would keep what came last.
  const auto overlap = [](const jitgemm_sim_buffer& a, const jitgemm_sim_buffer& b) {
    const auto first = reinterpret_cast<uintptr_t>(a.data);
    const auto second = reinterpret_cast<uintptr_t>(b.data);
    return a.bytes != 0 && b.bytes != 0 &&
           (first <= second ? second - first < a.bytes : first - second < b.bytes);
  };
  for (size_t i = 0; i < arguments.buffer_count; ++i) {
    for (size_t j = 0; j < i; ++j) {
      const jitgemm_sim_buffer &a = arguments.buffers[j], &b = arguments.buffers[i];
      if (std::strcmp(a.name, b.name) == 0) {
        return invalid_argument(fmt::format(
            "buffers[{}].name: expected a name of its own, found {}", i, printable(b.name)));
      }
      if (overlap(a, b)) {
        return invalid_argument(fmt::format(
            "buffers[{}].data: expected memory of its own, found an overlap with buffers[{}] ({})",
            i, j, printable(a.name)));
      }
    }
  }
  return ok_status();
}

Status sim_run(const jitgemm_sim_run_arguments& arguments) {
  JITGEMM_TRY(check(arguments));
  JITGEMM_ASSIGN(simrun::RunDescription description,
                 simrun::parse_launch_json(arguments.launch_json));
  JITGEMM_ASSIGN(simrun::KernelRun run,
                 simrun::KernelRun::create(arguments.ptx, std::move(description),
                                           arguments.folder == nullptr ? "" : arguments.folder));
  for (size_t i = 0; i < arguments.buffer_count; ++i) {
    const jitgemm_sim_buffer& buffer = arguments.buffers[i];
    JITGEMM_TRY(run.fill(buffer.name, {static_cast<const std::byte*>(buffer.data), buffer.bytes})
                    .with_context(fmt::format("buffers[{}]", i)));
  }
  JITGEMM_ASSIGN(const simrun::RunReport report, run.run());
  for (size_t i = 0; i < arguments.buffer_count; ++i) {
    const jitgemm_sim_buffer& buffer = arguments.buffers[i];
    JITGEMM_ASSIGN(const std::span<const std::byte> contents, run.buffer(buffer.name));
    if (!contents.empty() && run.writable(buffer.name)) {
      std::memcpy(buffer.data, contents.data(), contents.size());
    }
  }
  if (arguments.report != nullptr) {
    const std::string text = simrun::to_json_text(report);
    arguments.report(text.c_str(), text.size(), arguments.report_user);
  }
  if (report.mismatches.empty()) return ok_status();
  return {StatusCode::kVerificationFailed, report.mismatches.front()};
}

}  // namespace
}  // namespace jitgemm

extern "C" {

jitgemm_status jitgemm_sim_run(const jitgemm_sim_run_arguments* arguments) {
  return jitgemm::guarded([&]() -> jitgemm::Status {
    jitgemm_sim_run_arguments read;
    JITGEMM_TRY(jitgemm::read_struct("arguments", arguments, read));
    return jitgemm::sim_run(read);
  });
}

}  // extern "C"
