// SPDX-License-Identifier: Apache-2.0
// plan -> source: the translation unit of one kernel, as text. The generated part is a named struct
// of constants and one #include; everything else is the template's own files.
#pragma once

#include "plan/operation_plan.h"
#include "specialize/template_store.h"
#include "support/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace jitgemm {

struct KernelSource {
  std::string name;    // the program name that the compiler is told, e.g. "gemm_sm90.cu"
  std::string entry;   // the kernel's extern "C" name
  std::string target;  // "sm_90a"
  std::string text;    // the generated translation unit
  TemplateClosure files;
};

Result<KernelSource> specialize(const GemmPlan& plan, const TemplateStore& store);
Result<KernelSource> specialize(const QuantizePlan& plan, const TemplateStore& store);
Result<KernelSource> specialize(const AlignPlan& plan, const TemplateStore& store);
Result<KernelSource> specialize(const LaunchPlan& plan, const TemplateStore& store);
// A template that no plan asks for, with these constants.
Result<KernelSource> specialize(std::string_view template_file, Arch arch,
                                const std::vector<SpecField>& fields, const TemplateStore& store);

}  // namespace jitgemm
