// SPDX-License-Identifier: Apache-2.0
#include "simrun/report_json.h"

#include "support/strict_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace jitgemm::simrun {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const std::vector<sim::Counter>& counters, bool bytes) {
  Json json = Json::array();
  for (const sim::Counter& c : counters) {
    Json row = {
        {"name",                c.name               },
        {"warp_instructions",   c.instructions       },
        {"thread_instructions", c.thread_instructions}
    };
    if (bytes) row["bytes"] = c.bytes;
    json.push_back(std::move(row));
  }
  return json;
}

Json to_json(const sim::SpaceBytes& bytes) {
  return {
      {"read",    bytes.read   },
      {"written", bytes.written}
  };
}

Json to_json(const sim::Statistics& s) {
  Json json;
  json["steps"] = s.steps;
  json["bytes"] = {
      {"global",             to_json(s.global)        },
      {"shared",             to_json(s.shared)        },
      {"cluster_shared",     to_json(s.cluster_shared)},
      {"local",              to_json(s.local)         },
      {"parameters",         s.parameter_bytes        },
      {"constant",           s.constant_bytes         },
      {"copied_to_shared",   s.copied_to_shared       },
      {"copied_from_shared", s.copied_from_shared     },
      {"copied_global",      to_json(s.copied_global) }
  };
  json["shared_accesses"] = Json::array();
  for (const sim::SharedAccesses& a : s.shared_accesses) {
    json["shared_accesses"].push_back({
        {"line",       a.line       },
        {"text",       a.text       },
        {"requests",   a.requests   },
        {"wavefronts", a.wavefronts },
        {"conflicts",  a.conflicts()}
    });
  }
  json["warps"] = Json::array();
  for (const sim::WarpStatistics& w : s.warps) {
    Json row = {
        {"warp",           w.warp          },
        {"instructions",   w.instructions  },
        {"lifetime_steps", w.lifetime_steps},
        {"waited_steps",   w.waited_steps  },
        {"waits",          Json::array()   }
    };
    for (const sim::WaitSite& site : w.waits) {
      row["waits"].push_back({
          {"what",    site.what   },
          {"line",    site.line   },
          {"text",    site.text   },
          {"waits",   site.waits  },
          {"steps",   site.steps  },
          {"longest", site.longest}
      });
    }
    json["warps"].push_back(std::move(row));
  }
  return json;
}

Json to_json(const sim::Report& report, const std::string& entry) {
  Json json = {
      {"entry",                   entry                                      },
      {"numerics",                std::string(numerics_name(report.numerics))},
      {"seed",                    report.seed                                },
      {"clusters",                report.clusters                            },
      {"ctas",                    report.ctas                                },
      {"warps",                   report.warps                               },
      {"warp_instructions",       report.instructions                        },
      {"thread_instructions",     report.thread_instructions                 },
      {"matrix_instructions",     report.matrix_instructions                 },
      {"asynchronous_operations", report.async_operations                    },
      {"peak_state_bytes",        report.peak_state_bytes                    },
      {"unjudged_accesses",       report.unjudged_accesses                   }
  };
  json["groups"] = to_json(report.groups, false);
  json["instructions"] = to_json(report.classes, true);
  json["matrix"] = to_json(report.matrix, false);
  if (!report.statistics.warps.empty()) json["statistics"] = to_json(report.statistics);
  return json;
}

std::string percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? "-"
                    : fmt::format("{:.0f}%",
                                  100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string counters_text(const char* title, const std::vector<sim::Counter>& counters) {
  std::string text = fmt::format("  {:<48} {:>14} {:>16}\n", title, "warp", "thread");
  for (const sim::Counter& c : counters) {
    text +=
        fmt::format("    {:<46} {:>14} {:>16}\n", c.name, c.instructions, c.thread_instructions);
  }
  return text;
}

std::string statistics_text(const sim::Statistics& s) {
  std::string text = fmt::format("  {:<48} {:>14} {:>16}\n", "bytes by space", "read", "written");
  const auto space = [&](const char* name, const sim::SpaceBytes& bytes) {
    if (bytes.read + bytes.written == 0) return;
    text += fmt::format("    {:<46} {:>14} {:>16}\n", name, bytes.read, bytes.written);
  };
  space("global", s.global);
  space("shared", s.shared);
  space("shared, of other CTAs", s.cluster_shared);
  space("local", s.local);
  space("parameters", {s.parameter_bytes, 0});
  space("constant", {s.constant_bytes, 0});
  space("global, by asynchronous copies", s.copied_global);
  space("shared, by asynchronous copies", {s.copied_from_shared, s.copied_to_shared});
  if (!s.shared_accesses.empty()) {
    text += fmt::format("  {:<48} {:>14} {:>16}\n", "shared memory, by line", "requests",
                        "bank conflicts");
    for (const sim::SharedAccesses& a : s.shared_accesses) {
      text += fmt::format("    {:<46} {:>14} {:>16}\n",
                          fmt::format("{}: {}", a.line, a.text).substr(0, 46), a.requests,
                          a.conflicts());
    }
  }
  text += fmt::format("  {:<48} {:>14} {:>16} {:>8}\n", "warps, by index in the CTA",
                      "instructions", "waited steps", "share");
  for (const sim::WarpStatistics& w : s.warps) {
    text += fmt::format("    {:<46} {:>14} {:>16} {:>8}\n", fmt::format("warp {}", w.warp),
                        w.instructions, w.waited_steps, percent(w.waited_steps, w.lifetime_steps));
    for (const sim::WaitSite& site : w.waits) {
      text += fmt::format("      {} times, {} steps: {}\n        at {}: {}\n", site.waits,
                          site.steps, site.what, site.line, site.text);
    }
  }
  return text;
}

}  // namespace

std::string to_json_text(const RunReport& report) {
  Json json = {
      {"schema", 1        },
      {"verb",   "sim run"}
  };
  json["launches"] = Json::array();
  for (size_t i = 0; i < report.launches.size(); ++i) {
    json["launches"].push_back(to_json(report.launches[i], report.entries[i]));
  }
  json["buffers"] = Json::array();
  for (const BufferReport& b : report.buffers) {
    Json row = {
        {"name",   b.name        },
        {"dtype",  b.dtype       },
        {"shape",  b.shape       },
        {"sha256", b.sha256      },
        {"first",  b.first_values}
    };
    if (!b.file.empty()) row["file"] = b.file;
    json["buffers"].push_back(std::move(row));
  }
  json["printed"] = report.printed;
  json["expectations"] = report.expectations;
  json["mismatches"] = report.mismatches;
  // Names come from a file and may be no UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string to_text(const RunReport& report, bool statistics) {
  std::string text;
  for (size_t i = 0; i < report.launches.size(); ++i) {
    const sim::Report& r = report.launches[i];
    text += fmt::format(
        "launch {}: {}, numerics {}, seed {}: {} clusters, {} CTAs, {} warps; {} warp "
        "instructions, {} matrix instructions, {} asynchronous operations\n",
        i, report.entries[i], numerics_name(r.numerics), r.seed, r.clusters, r.ctas, r.warps,
        r.instructions, r.matrix_instructions, r.async_operations);
    if (r.unjudged_accesses != 0) {
      text += fmt::format(
          "  {} accesses to global memory were not judged for data races: their state would need "
          "more than a quarter of memory_limit\n",
          r.unjudged_accesses);
    }
    if (!statistics) continue;
    text += counters_text("instructions by group", r.groups);
    text += counters_text("instructions", r.classes);
    if (!r.matrix.empty()) text += counters_text("matrix instructions", r.matrix);
    text += statistics_text(r.statistics);
  }
  for (const BufferReport& b : report.buffers) {
    std::string shape;
    for (const uint64_t extent : b.shape)
      shape += fmt::format("{}{}", shape.empty() ? "" : ", ", extent);
    std::string values;
    for (const std::string& v : b.first_values) values += " " + v;
    text += fmt::format("buffer {} {} [{}] sha256 {}:{}{}\n", printable(b.name), b.dtype, shape,
                        b.sha256.substr(0, 16), values,
                        b.file.empty() ? "" : fmt::format(", written to {}", b.file));
  }
  if (report.expectations != 0) {
    text += fmt::format("expected   {} of {} buffers as expected\n",
                        report.expectations - report.mismatches.size(), report.expectations);
  }
  return text;
}

}  // namespace jitgemm::simrun
