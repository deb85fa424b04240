// SPDX-License-Identifier: Apache-2.0
#include "specialize/kernel_source.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitgemm {
namespace {

// The numbers that templates give to operand and output types (Spec::kTypeA, kTypeB, kOut).
int operand_type_number(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3: return 0;
    case DType::kF8E5M2: return 1;
    case DType::kF16: return 2;
    default: return 3;
  }
}

int out_type_number(DType dtype) {
  if (dtype == DType::kF32) return 0;
  return dtype == DType::kBF16 ? 1 : 2;
}

std::vector<SpecField> spec_fields(const GemmPlan& plan) {
  const GemmProblem& p = plan.problem;
  const Grouping& g = p.grouping;
  // A grouped kernel takes m at run time whatever the policy: nothing in it would gain from m.
  const int64_t m = p.m_policy == MPolicy::kExact && !g.grouped() ? p.m : 0;
  std::vector<SpecField> fields = {
      {"kArch",         arch_info(p.arch).compute_capability                           },
      {"kM",            m                                                              },
      {"kN",            p.n                                                            },
      {"kK",            p.k_bytes()                                                    }, // of one row of an operand
      {"kScaled",       p.scaled() ? 1 : 0                                             },
      {"kGroupN",       p.group_n                                                      },
      {"kGroupK",       p.group_k                                                      },
      {"kTypeA",        operand_type_number(p.a_dtype)                                 },
      {"kTypeB",        operand_type_number(p.b_dtype)                                 },
      {"kScaleType",    p.scale_dtype == DType::kF32 ? 0 : 1                           },
      {"kOut",          out_type_number(p.out_dtype)                                   },
      {"kTileM",        plan.tile_m                                                    },
      {"kTileN",        plan.tile_n                                                    },
      {"kTileK",        plan.tile_k                                                    },
      {"kStages",       plan.stages                                                    },
      {"kThreads",      plan.threads                                                   },
      {"kCluster",      plan.cluster                                                   },
      {"kSplitK",       plan.split_k                                                   },
      {"kFeedA",        static_cast<int>(plan.feed_a)                                  },
      {"kFeedB",        static_cast<int>(plan.feed_b)                                  },
      {"kStore",        static_cast<int>(plan.store)                                   },
      {"kSharedBytes",  plan.shared_bytes                                              },
      {"kPackedA",      p.a_scale_major == ScaleMajor::kPacked ? 1 : 0                 },
      {"kPackedB",      p.b_scale_major == ScaleMajor::kPacked ? 1 : 0                 },
      {"kGroupLayout",  static_cast<int>(g.layout)                                     },
      {"kGroups",       g.groups                                                       },
      {"kRowAlignment", g.layout == GroupLayout::kEndOffsets ? std::max(g.row_alignment, 1) : 1},
      {"kZeroUngrouped",               g.zero_ungrouped ? 1 : 0                                                              },
      {"kCountInvalid",               g.count_invalid ? 1 : 0 },
  };
  fields.insert(fields.end(), plan.extra_fields.begin(), plan.extra_fields.end());
  return fields;
}

}  // namespace

Result<KernelSource> specialize(const GemmPlan& plan, const TemplateStore& store) {
  const KernelFamilyInfo& family = kernel_family_info(plan.family);
  KernelSource source;
  source.name = family.template_file;
  source.entry = "jitgemm_kernel";
  source.target = arch_info(plan.problem.arch).target;
  JITGEMM_ASSIGN(source.files, store.closure(family.template_file));

  source.text = "#define JITGEMM_SPECIALIZED 1\n\nstruct Spec {\n";
  for (const auto& [name, value] : spec_fields(plan)) {
    source.text += fmt::format("  static constexpr int {} = {};\n", name, value);
  }
  source.text += fmt::format("}};\n\n#include \"{}\"\n", family.template_file);
  return source;
}

}  // namespace jitgemm
