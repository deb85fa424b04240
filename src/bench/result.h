// SPDX-License-Identifier: Apache-2.0
// What a run of the benchmark found: plain values, every sample kept. One file a run holds them as
// JSON; tables are made of that file and of nothing else.
#pragma once

#include "bench/contender.h"
#include "bench/contender_check.h"
#include "bench/grouped_shapes.h"
#include "bench/regimes.h"
#include "bench/shapes.h"
#include "bench/statistics.h"

#include <optional>
#include <string>
#include <vector>

namespace jitgemm::bench {

struct SustainedResult {
  double call_us = 0;
  int64_t calls = 0;
  DeviceState state;
};

// How often one launch was repeated, and how often the bits of its result were others.
struct RepeatResult {
  int runs = 0;
  int differing = 0;
};

struct ContenderResult {
  ContenderInfo info;
  double estimate_us = 0;  // of a plan, by the model
  // Why it was not timed; empty if it was.
  std::string not_timed;
  std::optional<CheckResult> check;
  std::vector<double> rested_us;  // a call, in the order they were taken
  std::optional<SustainedResult> sustained;
  std::optional<RepeatResult> repeats;
};

struct ShapeResult {
  Shape shape;  // of groups: all rows in use
  std::optional<GroupedShape> groups;
  std::string out_dtype;
  double fewest_bytes = 0;
  int sets = 1;  // of operands that a graph rotates over; 1 with single_call
  bool single_call =
      false;  // not as a graph; groups always are, since a loop over them is many calls
  double setup_s = 0;
  std::vector<ContenderResult> contenders;
};

struct Ceiling {
  std::string name;  // "copy", "read", "fill", "fp8_tensorwise", ...
  std::string unit;  // "GB/s" or "TFLOP/s"
  double rested = 0;
  double sustained = 0;
};

struct BenchResult {
  std::string date;
  std::string commit;
  std::string version;
  std::string device;
  int sm_count = 0;
  int driver_version = 0;
  double power_limit_w = 0;
  std::string cublaslt;  // version, or why it is not there
  int rounds = 0;
  std::string label;  // which table a run is for, where its shapes are also in another
  std::vector<Ceiling> ceilings;
  std::vector<ShapeResult> shapes;
};

// One document, "schema": 1.
std::string to_json(const BenchResult& result);

}  // namespace jitgemm::bench
