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

// The numbers that quantize_rows.cu gives to its source's type (Spec::kSource).
std::vector<SpecField> spec_fields(const QuantizePlan& plan) {
  return {
      {"kArch",       arch_info(plan.arch).compute_capability},
      {"kK",          plan.k                                 },
      {"kGroupK",     plan.group_k                           },
      {"kSource",     out_type_number(plan.source_dtype)     },
      {"kTypeA",      operand_type_number(plan.code_dtype)   },
      {"kScaleType",  plan.scale_dtype == DType::kF32 ? 0 : 1},
      {"kPowerOfTwo", plan.power_of_two ? 1 : 0              },
      {"kVector",     plan.vector                            },
      {"kBlocks",     plan.blocks                            },
      {"kThreads",    plan.threads                           },
  };
}

std::vector<SpecField> spec_fields(const AlignPlan& plan) {
  return {
      {"kArch",       arch_info(plan.arch).compute_capability},
      {"kRowBytes",   plan.row_bytes                         },
      {"kPitch",      plan.pitch                             },
      {"kUnit",       plan.unit                              },
      {"kScaleBytes", std::max<int64_t>(plan.scale_row_bytes,  4)},
      {"kScalePitch",             std::max<int64_t>(plan.scale_pitch,                                        16)},
      {"kThreads",          plan.threads         },
  };
}

}  // namespace

Result<KernelSource> specialize(std::string_view template_file, Arch arch,
                                const std::vector<SpecField>& fields, const TemplateStore& store) {
  KernelSource source;
  source.name = template_file;
  source.entry = "jitgemm_kernel";
  source.target = arch_info(arch).target;
  JITGEMM_ASSIGN(source.files, store.closure(template_file));
  // Enumerators: static members of a struct would each become a variable of the module.
  source.text = "#define JITGEMM_SPECIALIZED 1\n\nstruct Spec {\n  enum : int {\n";
  for (const auto& [name, value] : fields) {
    source.text += fmt::format("    {} = {},\n", name, value);
  }
  source.text += fmt::format("  }};\n}};\n\n#include \"{}\"\n", template_file);
  return source;
}

Result<KernelSource> specialize(const GemmPlan& plan, const TemplateStore& store) {
  return specialize(kernel_family_info(plan.family).template_file, plan.problem.arch,
                    spec_fields(plan), store);
}

Result<KernelSource> specialize(const QuantizePlan& plan, const TemplateStore& store) {
  return specialize(kQuantizeTemplate, plan.arch, spec_fields(plan), store);
}

Result<KernelSource> specialize(const AlignPlan& plan, const TemplateStore& store) {
  return specialize(kAlignTemplate, plan.arch, spec_fields(plan), store);
}

Result<KernelSource> specialize(const LaunchPlan& plan, const TemplateStore& store) {
  return std::visit([&](const auto& launch) { return specialize(launch, store); }, plan);
}

}  // namespace jitgemm
