// SPDX-License-Identifier: Apache-2.0
// plan -> source: the translation unit of one kernel, as text. The generated part is a named struct
// of constants and one #include; everything else is the template's own files.
#pragma once

#include "plan/gemm_plan.h"
#include "specialize/template_store.h"
#include "support/result.h"

#include <string>

namespace jitgemm {

struct KernelSource {
  std::string name;    // the program name that the compiler is told, e.g. "gemm_sm90.cu"
  std::string entry;   // the kernel's extern "C" name
  std::string target;  // "sm_90a"
  std::string text;    // the generated translation unit
  TemplateClosure files;
};

Result<KernelSource> specialize(const GemmPlan& plan, const TemplateStore& store);

}  // namespace jitgemm
