// SPDX-License-Identifier: Apache-2.0
// Where the text of kernel templates comes from: embedded in the library, or a folder on disk while
// a kernel is being developed. Knows names and text only; what a template needs is the
// specializer's.
#pragma once

#include "support/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace jitgemm {

struct TemplateFile {
  std::string_view name;  // relative to kernels/templates, e.g. "gemm_sm90.cu", "device/tma.cuh"
  std::string_view text;
};

// The files that were in kernels/templates when the library was built.
std::vector<TemplateFile> embedded_template_files();

struct SourceFile {
  std::string name;
  std::string text;
};

// A template and every file it includes, directly or not: the closure that enters the cache key.
struct TemplateClosure {
  SourceFile root;
  std::vector<SourceFile> headers;  // sorted by name
};

class TemplateStore {
 public:
  // An empty folder means the embedded files.
  explicit TemplateStore(std::string folder = {}) : folder_(std::move(folder)) {}

  Result<std::string> read(std::string_view name) const;
  Result<TemplateClosure> closure(std::string_view name) const;

 private:
  std::string folder_;
};

}  // namespace jitgemm
