// SPDX-License-Identifier: Apache-2.0
// What the tests of simrun share: a module around a body, and a run of it from JSON.
#pragma once

#include "simrun/kernel_run.h"
#include "simrun/launch_json.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace jitgemm::simrun {

inline std::string module_text(const std::string& parameters, const std::string& body,
                               const std::string& globals = "") {
  const bool blackwell = body.find("tcgen05.") != std::string::npos ||
                         body.find("clusterlaunchcontrol.") != std::string::npos ||
                         body.find("st.bulk") != std::string::npos;
  return std::string(".version 8.6\n.target ") + (blackwell ? "sm_100a" : "sm_90a") +
         "\n.address_size 64\n" + globals + "\n.visible .entry k(" + parameters +
         ")\n{\n.reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<40>;\n"
         ".reg .f32 %f<8>;\n.reg .f64 %fd<8>;\n" +
         body + "\nret;\n}\n";
}

inline Result<RunReport> run_json(const std::string& ptx, const std::string& json,
                                  const std::string& folder = "") {
  JITGEMM_ASSIGN(RunDescription description, parse_launch_json(json));
  JITGEMM_ASSIGN(KernelRun run, KernelRun::create(ptx, std::move(description), folder));
  return run.run();
}

// The text of the error, "" after a run whose expectations all hold.
inline std::string outcome(const std::string& ptx, const std::string& json,
                           const std::string& folder = "") {
  const Result<RunReport> report = run_json(ptx, json, folder);
  if (!report) return report.error().to_string();
  return report->mismatches.empty() ? "" : report->mismatches.front();
}

}  // namespace jitgemm::simrun
