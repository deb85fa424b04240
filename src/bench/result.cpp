// SPDX-License-Identifier: Apache-2.0
#include "bench/result.h"

#include <nlohmann/json.hpp>

namespace jitgemm::bench {
namespace {

using Json = nlohmann::ordered_json;

const char* product_name(Product product) {
  return product == Product::kBlockScaled ? "block_scaled" : "tensorwise";
}

Json rates(const Shape& shape, double bytes, double call_us) {
  if (call_us <= 0) return Json::object();
  return {
      {"tflops", shape.flops() / (call_us * 1e6)},
      {"gb_s",   bytes / (call_us * 1e3)        }
  };
}

Json contender_json(const ContenderResult& c, const ShapeResult& s) {
  const Shape& shape = s.shape;
  const double bytes = s.fewest_bytes;
  Json json = {
      {"name",    c.info.name                 },
      {"variant", c.info.variant              },
      {"source",  c.info.source               },
      {"product", product_name(c.info.product)}
  };
  if (s.groups) {
    json["form"] = grouped_form_name(c.info.form);
    if (!c.info.layout.empty()) json["layout"] = c.info.layout;
  }
  if (c.info.programmatic) json["programmatic"] = true;
  if (c.estimate_us > 0) json["estimate_us"] = c.estimate_us;
  if (!c.not_timed.empty()) json["not_timed"] = c.not_timed;
  if (c.check) {
    json["check"] = {
        {"passed",      c.check->passed     },
        {"relative_l2", c.check->relative_l2},
        {"limit",       c.info.error_limit  },
        {"not_finite",  c.check->not_finite },
        {"checked",     c.check->checked    }
    };
  }
  if (c.repeats) {
    json["repeats"] = {
        {"runs",      c.repeats->runs     },
        {"differing", c.repeats->differing}
    };
  }
  if (!c.rested_us.empty()) {
    const Summary summary = summarize(c.rested_us);
    Json rested = {
        {"median_us",  summary.median  },
        {"spread",     summary.spread()},
        {"samples_us", c.rested_us     }
    };
    rested.update(rates(shape, bytes, summary.median));
    json["rested"] = rested;
  }
  if (c.sustained) {
    Json sustained = {
        {"mean_us",      c.sustained->call_us           },
        {"calls",        c.sustained->calls             },
        {"sm_clock_mhz", c.sustained->state.sm_clock_mhz},
        {"power_w",      c.sustained->state.power_w     }
    };
    sustained.update(rates(shape, bytes, c.sustained->call_us));
    json["sustained"] = sustained;
  }
  return json;
}

}  // namespace

std::string to_json(const BenchResult& r) {
  Json ceilings = Json::array();
  for (const Ceiling& c : r.ceilings) {
    ceilings.push_back({
        {"name",      c.name     },
        {"unit",      c.unit     },
        {"rested",    c.rested   },
        {"sustained", c.sustained}
    });
  }
  Json shapes = Json::array();
  for (const ShapeResult& s : r.shapes) {
    Json contenders = Json::array();
    for (const ContenderResult& c : s.contenders) {
      contenders.push_back(contender_json(c, s));
    }
    Json shape = {
        {"m",            s.shape.m     },
        {"n",            s.shape.n     },
        {"k",            s.shape.k     },
        {"out_dtype",    s.out_dtype   },
        {"fewest_bytes", s.fewest_bytes},
        {"sets",         s.sets        },
        {"single_call",  s.single_call },
        {"setup_s",      s.setup_s     },
        {"contenders",   contenders    }
    };
    if (s.groups) {
      shape["groups"] = {
          {"kind",  s.groups->masked() ? "masked" : "contiguous"        },
          {"count", s.groups->groups                                    },
          {"rows",  s.groups->rows                                      },
          {"mean",  s.groups->masked() ? s.groups->mean : s.groups->rows}
      };
    }
    shapes.push_back(std::move(shape));
  }
  Json document = {
      {"schema",         1               },
      {"verb",           "bench"         },
      {"date",           r.date          },
      {"commit",         r.commit        },
      {"version",        r.version       },
      {"device",         r.device        },
      {"sm_count",       r.sm_count      },
      {"driver_version", r.driver_version},
      {"power_limit_w",  r.power_limit_w },
      {"cublaslt",       r.cublaslt      },
      {"rounds",         r.rounds        },
      {"ceilings",       ceilings        },
      {"shapes",         shapes          }
  };
  if (!r.label.empty()) document["label"] = r.label;
  return document.dump(1) + "\n";
}

}  // namespace jitgemm::bench
