// SPDX-License-Identifier: Apache-2.0
// plan -> specialise -> key -> cache or compile -> image. Thread-safe; one compile per key at a
// time in this process, and as far as locks work in others.
#pragma once

#include "cache/disk_cache.h"
#include "compile/compiler.h"
#include "plan/gemm_plan.h"
#include "specialize/template_store.h"
#include "support/digest.h"
#include "support/log.h"
#include "support/result.h"

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>

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

  Result<BuiltKernel> build(const GemmPlan& plan, BuildMode mode);
  // The translation unit alone, with its key.
  Result<KernelSource> source(const GemmPlan& plan) const { return specialize(plan, templates_); }
  Result<CanonicalKey> key(const KernelSource& source);
  Result<std::shared_ptr<Compiler>> compiler();

 private:
  Result<BuiltKernel> build_alone(const KernelSource& source, const CanonicalKey& key,
                                  BuildMode mode);

  TemplateStore templates_;
  std::shared_ptr<DiskCache> cache_;
  OpenCompiler open_compiler_;
  Logger log_;
  std::mutex mutex_;
  std::shared_ptr<Compiler> compiler_;
  std::map<std::string, std::shared_future<Result<BuiltKernel>>> in_flight_;  // by key bytes
};

}  // namespace jitgemm
