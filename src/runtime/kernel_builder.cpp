// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel_builder.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <exception>
#include <new>

namespace jitgemm {
namespace {

// A waiter that outlives this compiles for itself; a compile takes well under a second.
constexpr std::chrono::seconds kLockDeadline{20};

std::shared_ptr<const KernelImage> image_of(CacheEntry entry, const std::string& target) {
  auto image = std::make_shared<KernelImage>();
  image->entry = std::move(entry.metadata.entry_name);
  image->target = target;
  image->ptx = std::move(entry.ptx);
  image->cubin = std::move(entry.cubin);
  image->compiler = std::move(entry.metadata.compiler_version);
  image->registers = static_cast<int32_t>(entry.metadata.registers);
  image->spill_bytes = static_cast<int32_t>(entry.metadata.spill_bytes);
  image->stack_bytes = static_cast<int32_t>(entry.metadata.stack_bytes);
  image->static_shared_bytes = static_cast<int32_t>(entry.metadata.shared_bytes);
  image->compile_ms = static_cast<double>(entry.metadata.compile_ms);
  return image;
}

CacheEntry entry_of(const KernelImage& image, const CanonicalKey& key) {
  CacheEntry entry;
  entry.key = key.bytes;
  entry.metadata.entry_name = image.entry;
  entry.metadata.compiler_version = image.compiler;
  entry.metadata.registers = image.registers;
  entry.metadata.spill_bytes = image.spill_bytes;
  entry.metadata.stack_bytes = image.stack_bytes;
  entry.metadata.shared_bytes = image.static_shared_bytes;
  entry.metadata.compile_ms = std::lround(image.compile_ms);
  entry.metadata.created_unix_s = static_cast<int64_t>(std::time(nullptr));
  entry.ptx = image.ptx;
  entry.cubin = image.cubin;
  return entry;
}

CanonicalKey key_of(const KernelSource& source, const std::string& compiler_identity) {
  KeyBuilder builder("jitgemm kernel 1");
  builder.add("compiler", compiler_identity);
  builder.add("target", source.target);
  for (const std::string& option : compile_options(source.target)) builder.add("option", option);
  builder.add("entry", source.entry);
  builder.add("template", source.files.root.name);
  builder.add("template_sha256", to_hex(sha256(source.files.root.text)));
  for (const SourceFile& header : source.files.headers) {
    builder.add("header", header.name);
    builder.add("header_sha256", to_hex(sha256(header.text)));
  }
  builder.add("spec", source.text);
  return builder.build();
}

}  // namespace

Result<std::shared_ptr<Compiler>> KernelBuilder::compiler() {
  const std::scoped_lock lock(mutex_);
  if (compiler_ == nullptr) {
    JITGEMM_ASSIGN(compiler_, open_compiler_());
  }
  return compiler_;
}

Result<BuiltKernel> KernelBuilder::build_without_compiler(const KernelSource& source,
                                                          const Status& no_compiler) {
  std::vector<std::string> identities;
  {
    const std::scoped_lock lock(mutex_);
    if (!cached_identities_) cached_identities_ = cache_->key_values("compiler");
    identities = *cached_identities_;
  }
  for (const std::string& identity : identities) {
    CanonicalKey key = key_of(source, identity);
    CacheLookup found = cache_->find(key);
    if (!found.entry) continue;
    log_.info(fmt::format("{} for {} from the cache, compiled elsewhere by {}", source.name,
                          source.target, identity));
    return BuiltKernel{image_of(std::move(*found.entry), source.target), std::move(key), true};
  }
  return no_compiler.with_context(
      fmt::format("the cache has no {} kernel for this problem", source.target));
}

Result<BuiltKernel> KernelBuilder::build(const LaunchPlan& plan, BuildMode mode) {
  JITGEMM_ASSIGN(const KernelSource kernel_source, source(plan));
  return build(kernel_source, mode);
}

Result<BuiltKernel> KernelBuilder::build(std::string_view template_file, Arch arch,
                                         const std::vector<SpecField>& fields, BuildMode mode) {
  JITGEMM_ASSIGN(const KernelSource kernel_source,
                 specialize(template_file, arch, fields, templates_));
  return build(kernel_source, mode);
}

Result<BuiltKernel> KernelBuilder::build(const KernelSource& kernel_source, BuildMode mode) {
  const Result<std::shared_ptr<Compiler>> opened = compiler();
  if (!opened) {
    return mode == BuildMode::kCached ? build_without_compiler(kernel_source, opened.error())
                                      : Result<BuiltKernel>(opened.error());
  }
  const CanonicalKey kernel_key = key_of(kernel_source, (*opened)->identity());

  // Single flight: the first asker builds, the others wait for its result.
  std::promise<Result<BuiltKernel>> promise;
  std::shared_future<Result<BuiltKernel>> other;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = in_flight_.find(kernel_key.bytes);
    if (found != in_flight_.end()) {
      other = found->second;
    } else {
      in_flight_.emplace(kernel_key.bytes, promise.get_future().share());
    }
  }
  if (other.valid()) return other.get();
  // Waiters must hear of every way out, also of memory that runs out here.
  Result<BuiltKernel> built = [&]() -> Result<BuiltKernel> {
    try {
      return build_alone(kernel_source, kernel_key, mode);
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::kOutOfMemory, "host memory ran out while building a kernel");
    } catch (const std::exception& error) {
      return Status(StatusCode::kInternal, fmt::format("building a kernel: {}", error.what()));
    }
  }();
  {
    const std::scoped_lock lock(mutex_);
    in_flight_.erase(kernel_key.bytes);
  }
  promise.set_value(built);
  return built;
}

Result<BuiltKernel> KernelBuilder::build_alone(const KernelSource& source, const CanonicalKey& key,
                                               BuildMode mode) {
  const auto lookup = [&]() -> std::shared_ptr<const KernelImage> {
    CacheLookup found = cache_->find(key);
    return found.entry ? image_of(std::move(*found.entry), source.target) : nullptr;
  };
  KeyLock lock;
  if (mode == BuildMode::kCached) {
    if (auto image = lookup()) return BuiltKernel{std::move(image), key, true};
    lock = cache_->lock(key, std::chrono::steady_clock::now() + kLockDeadline);
    if (lock.waited()) {
      if (auto image = lookup()) return BuiltKernel{std::move(image), key, true};
    }
  }
  JITGEMM_ASSIGN(const std::shared_ptr<Compiler> opened, compiler());
  JITGEMM_ASSIGN(KernelImage image, opened->compile(source));
  log_.info(fmt::format("compiled {} for {} in {:.0f} ms: {} registers, {} bytes spilled",
                        source.name, source.target, image.compile_ms, image.registers,
                        image.spill_bytes));
  if (!image.warnings.empty()) log_.warning(image.warnings);
  cache_->publish(key, entry_of(image, key));
  return BuiltKernel{std::make_shared<const KernelImage>(std::move(image)), key, false};
}

}  // namespace jitgemm
