// SPDX-License-Identifier: Apache-2.0
#include "json.h"

#include <cstdio>

namespace jitgemm::cli {

Json document(const char* verb) {
  return {
      {"schema", 1   },
      {"verb",   verb}
  };
}

void print(const Json& json) {
  std::printf("%s\n", json.dump(2).c_str());
}

Json to_json(const GemmProblem& p) {
  static constexpr const char* kPolicies[] = {"exact", "class", "any"};
  static constexpr const char* kMajors[] = {"row", "column"};
  return {
      {"operation",     "block_scaled_mm"                                        },
      {"arch",          arch_info(p.arch).target                                 },
      {"m",             p.m                                                      },
      {"n",             p.n                                                      },
      {"k",             p.k                                                      },
      {"a_dtype",       dtype_info(p.a_dtype).name                               },
      {"b_dtype",       dtype_info(p.b_dtype).name                               },
      {"scale_dtype",   dtype_info(p.scale_dtype).name                           },
      {"out_dtype",     dtype_info(p.out_dtype).name                             },
      {"group_n",       p.group_n                                                },
      {"group_k",       p.group_k                                                },
      {"a_scale_major", kMajors[static_cast<int>(p.a_scale_major)]               },
      {"b_scale_major", kMajors[static_cast<int>(p.b_scale_major)]               },
      {"scale_values",  p.scale_values == ScaleValues::kAnyFloat ? "any" : "pow2"},
      {"m_policy",      kPolicies[static_cast<int>(p.m_policy)]                  }
  };
}

Json to_json(const GemmPlan& plan) {
  Json constants = Json::object();
  for (const auto& [name, value] : plan.extra_fields) constants[name] = value;
  return {
      {"problem",         to_json(plan.problem)                       },
      {"kernel",          kernel_family_info(plan.family).name        },
      {"source",          plan_source_name(plan.source)               },
      {"planned_m",       plan.planned_m                              },
      {"tile",            {plan.tile_m, plan.tile_n, plan.tile_k}     },
      {"stages",          plan.stages                                 },
      {"threads",         plan.threads                                },
      {"cluster",         plan.cluster                                },
      {"split_k",         plan.split_k                                },
      {"feed_a",          feed_name(plan.feed_a)                      },
      {"feed_b",          feed_name(plan.feed_b)                      },
      {"store",           plan.store == Store::kTma ? "tma" : "direct"},
      {"shared_bytes",    plan.shared_bytes                           },
      {"workspace_bytes", plan.workspace_bytes                        },
      {"constants",       constants                                   },
      {"reasons",         plan.reasons                                }
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
