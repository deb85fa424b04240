// SPDX-License-Identifier: Apache-2.0
#include "json.h"

#include <algorithm>
#include <cstdio>

namespace jitgemm::cli {

Json document(const char* verb) {
  return {
      {"schema", 1   },
      {"verb",   verb}
  };
}

void print(const Json& json) {
  // Names come from files and may be no UTF-8.
  std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

Json to_json(const GemmProblem& p) {
  static constexpr const char* kPolicies[] = {"exact", "class", "any"};
  static constexpr const char* kMajors[] = {"row", "column", "packed"};
  const Grouping& g = p.grouping;
  Json json = {
      {"operation",       g.grouped() ? "group_gemm_fp8_nt_groupwise" : "block_scaled_mm"},
      {"arch",            arch_info(p.arch).target                                       },
      {"m",               p.m                                                            },
      {"n",               p.n                                                            },
      {"k",               p.k                                                            },
      {"a_dtype",         dtype_info(p.a_dtype).name                                     },
      {"a_code_dtype",    dtype_info(p.quantizes_a() ? p.a_code_dtype : p.a_dtype).name  },
      {"b_dtype",         dtype_info(p.b_dtype).name                                     },
      {"scale_dtype",     dtype_info(p.scale_dtype).name                                 },
      {"out_dtype",       dtype_info(p.out_dtype).name                                   },
      {"group_n",         p.group_n                                                      },
      {"group_k",         p.group_k                                                      },
      {"a_scale_major",   kMajors[static_cast<int>(p.a_scale_major)]                     },
      {"b_scale_major",   kMajors[static_cast<int>(p.b_scale_major)]                     },
      {"scale_values",    p.scale_values == ScaleValues::kAnyFloat ? "any" : "pow2"      },
      {"m_policy",        kPolicies[static_cast<int>(p.m_policy)]                        },
      {"batch_invariant", p.batch_invariant                                              }
  };
  if (g.grouped()) {
    json["layout"] = group_layout_name(g.layout);
    json["groups"] = g.groups;
    json["expected_m"] = g.expected_m;
    json["row_alignment"] = g.row_alignment;
    json["zero_ungrouped"] = g.zero_ungrouped;
    json["count_invalid"] = g.count_invalid;
  }
  return json;
}

Json to_json(const QuantizePlan& plan) {
  return {
      {"kernel",       "quantize_rows"                   },
      {"source_dtype", dtype_info(plan.source_dtype).name},
      {"code_dtype",   dtype_info(plan.code_dtype).name  },
      {"scale_dtype",  dtype_info(plan.scale_dtype).name },
      {"power_of_two", plan.power_of_two                 },
      {"group_k",      plan.group_k                      },
      {"vector",       plan.vector                       },
      {"blocks",       plan.blocks                       },
      {"threads",      plan.threads                      },
      {"reasons",      plan.reasons                      }
  };
}

Json to_json(const AlignPlan& plan) {
  return {
      {"kernel",      "align_rows"    },
      {"a",           plan.a          },
      {"b",           plan.b          },
      {"a_scales",    plan.a_scales   },
      {"b_scales",    plan.b_scales   },
      {"row_bytes",   plan.row_bytes  },
      {"pitch",       plan.pitch      },
      {"unit",        plan.unit       },
      {"threads",     plan.threads    },
      {"estimate_us", plan.estimate_us},
      {"reasons",     plan.reasons    }
  };
}

Json to_json(const OperationPlan& plan, int sm_count) {
  Json launches = Json::array();
  for (const LaunchPlan& launch : plan.launches) {
    const LaunchGeometry g =
        launch_geometry(launch, std::max<int64_t>(plan.problem.m, 1), sm_count);
    Json json;
    json["kernel"] = launch_name(launch);
    json["grid"] = {g.grid.x, g.grid.y, g.grid.z};
    json["block"] = {g.block.x, g.block.y, g.block.z};
    json["cluster"] = {g.cluster.x, g.cluster.y, g.cluster.z};
    json["plan"] = std::visit([](const auto& planned) { return to_json(planned); }, launch);
    launches.push_back(json);
  }
  Json json;
  json["problem"] = to_json(plan.problem);
  json["launches"] = launches;
  json["workspace_bytes"] = workspace_layout(plan, plan.problem.m).bytes;
  json["workspace_alignment"] = kWorkspaceAlignment;
  return json;
}

Json to_json(const GemmPlan& plan) {
  Json constants = Json::object();
  for (const auto& [name, value] : plan.extra_fields) constants[name] = value;
  return {
      {"problem",              to_json(plan.problem)                       },
      {"kernel",               kernel_family_info(plan.family).name        },
      {"source",               plan_source_name(plan.source)               },
      {"planned_m",            plan.planned_m                              },
      {"tile",                 {plan.tile_m, plan.tile_n, plan.tile_k}     },
      {"stages",               plan.stages                                 },
      {"threads",              plan.threads                                },
      {"cluster",              plan.cluster                                },
      {"split_k",              plan.split_k                                },
      {"feed_a",               feed_name(plan.feed_a)                      },
      {"feed_b",               feed_name(plan.feed_b)                      },
      {"store",                plan.store == Store::kTma ? "tma" : "direct"},
      {"shared_bytes",         plan.shared_bytes                           },
      {"workspace_bytes",      plan.workspace_bytes                        },
      {"row_bits_depend_on_m", row_bits_depend_on_m(plan)                  },
      {"estimate_us",          plan.estimate_us                            },
      {"constants",            constants                                   },
      {"reasons",              plan.reasons                                }
  };
}

Json to_json(const KernelImage& image) {
  return {
      {"entry",               image.entry              },
      {"target",              image.target             },
      {"compiler",            image.compiler           },
      {"compile_ms",          image.compile_ms         },
      {"registers",           image.registers          },
      {"spill_bytes",         image.spill_bytes        },
      {"stack_bytes",         image.stack_bytes        },
      {"static_shared_bytes", image.static_shared_bytes},
      {"ptx_bytes",           image.ptx.size()         },
      {"cubin_bytes",         image.cubin.size()       }
  };
}

Json to_json(const ErrorMetrics& m) {
  return {
      {"count",                 m.count                },
      {"max_abs",               m.max_abs              },
      {"relative_l2",           m.relative_l2          },
      {"dissimilarity",         m.dissimilarity        },
      {"mean_ratio",            m.mean_ratio           },
      {"non_finite",            m.non_finite           },
      {"non_finite_mismatches", m.non_finite_mismatches},
      {"differences",           m.differences          }
  };
}

}  // namespace jitgemm::cli
