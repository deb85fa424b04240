// SPDX-License-Identifier: Apache-2.0
// plan -> specialise -> key -> cache or compile -> image. Thread-safe; one compile per key at a
// time in this process, and as far as locks work in others. Where no compiler can be opened, the
// cache alone answers, with kernels of whichever compiler made them.
#pragma once

#include "cache/disk_cache.h"
#include "compile/compiler.h"
#include "plan/operation_plan.h"
#include "specialize/template_store.h"
#include "support/digest.h"
#include "support/log.h"
#include "support/result.h"

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jitgemm {

enum class BuildMode {
  kCached,   // a cache hit will do
  kCompile,  // compile always; the result is still published
};

struct BuiltKernel {
  std::shared_ptr<const KernelImage> image;
  CanonicalKey key;
  bool from_cache = false;
};

class KernelBuilder {
 public:
  // Called once, at the first build: the compiler's identity is part of every key.
  using OpenCompiler = std::function<Result<std::shared_ptr<Compiler>>()>;

  KernelBuilder(TemplateStore templates, std::shared_ptr<DiskCache> cache,
                OpenCompiler open_compiler, Logger log)
      : templates_(std::move(templates)),
        cache_(std::move(cache)),
        open_compiler_(std::move(open_compiler)),
        log_(std::move(log)) {}

  Result<BuiltKernel> build(const LaunchPlan& plan, BuildMode mode);
  // A template that no plan asks for, with these constants.
  Result<BuiltKernel> build(std::string_view template_file, Arch arch,
                            const std::vector<SpecField>& fields, BuildMode mode);
  // The translation unit alone, with its key.
  Result<KernelSource> source(const LaunchPlan& plan) const { return specialize(plan, templates_); }
  // The compiler, opened at first need.
  Result<std::shared_ptr<Compiler>> compiler();

 private:
  Result<BuiltKernel> build(const KernelSource& source, BuildMode mode);
  // A hit for any of the compilers whose kernels the cache folder holds; else `no_compiler`.
  Result<BuiltKernel> build_without_compiler(const KernelSource& source, const Status& no_compiler);
  Result<BuiltKernel> build_alone(const KernelSource& source, const CanonicalKey& key,
                                  BuildMode mode);

  TemplateStore templates_;
  std::shared_ptr<DiskCache> cache_;
  OpenCompiler open_compiler_;
  Logger log_;
  std::mutex mutex_;
  std::shared_ptr<Compiler> compiler_;
  // Identities of compilers found in the cache, once it was clear that there is none here.
  std::optional<std::vector<std::string>> cached_identities_;
  std::map<std::string, std::shared_future<Result<BuiltKernel>>> in_flight_;  // by key bytes
};

}  // namespace jitgemm
