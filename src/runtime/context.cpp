// SPDX-License-Identifier: Apache-2.0
#include "runtime/context.h"

#include "compile/nvrtc_compiler.h"

#include <fmt/format.h>

#include <charconv>

namespace jitgemm {
namespace {

Result<uint64_t> parse_number(const Settings& settings, const std::string& name) {
  const std::string& text = settings.value(name);
  uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) {
    return invalid_argument(fmt::format("{}: expected a number, found '{}'", name, text));
  }
  return number;
}

Result<SimDeviceOptions> sim_options(const Settings& settings) {
  SimDeviceOptions options;
  const std::string& numerics = settings.value("sim_numerics");
  if (numerics != "auto") {
    for (const sim::Numerics mode :
         {sim::Numerics::kExact, sim::Numerics::kHopper, sim::Numerics::kBlackwell}) {
      if (sim::numerics_name(mode) == numerics) options.numerics = mode;
    }
    if (!options.numerics) {
      return invalid_argument(fmt::format(
          "sim_numerics: expected auto, exact, hopper or blackwell, found '{}'", numerics));
    }
  }
  JITGEMM_ASSIGN(options.seed, parse_number(settings, "sim_seed"));
  JITGEMM_ASSIGN(const uint64_t threads, parse_number(settings, "sim_threads"));
  options.threads = static_cast<uint32_t>(std::min<uint64_t>(threads, 1024));
  const std::string& sanitize = settings.value("sim_sanitize");
  if (sanitize != "0" && sanitize != "1" && sanitize != "no-races") {
    return invalid_argument(
        fmt::format("sim_sanitize: expected 0, 1 or no-races, found '{}'", sanitize));
  }
  options.sanitize = sanitize != "0";
  options.races = sanitize == "1";
  return options;
}

}  // namespace

Status Context::check(const Settings& settings) {
  JITGEMM_TRY(parse_log_level(settings.value("log_level")).error());
  JITGEMM_TRY(sim_options(settings).error());
  const std::string& mode = settings.value("cache_mode");
  if (mode == "rw" || mode == "ro" || mode == "memory") return ok_status();
  return invalid_argument(fmt::format("cache_mode: expected rw, ro or memory, found '{}'", mode));
}

Result<std::shared_ptr<Context>> Context::create(const ContextOptions& options) {
  std::shared_ptr<Context> context(new Context());
  context->settings_ = resolve_settings(options);
  const Settings& settings = context->settings_;
  JITGEMM_TRY(check(settings));
  JITGEMM_ASSIGN(const LogLevel level, parse_log_level(settings.value("log_level")));
  context->log_ = options.log_sink ? Logger(level, options.log_sink) : make_stderr_logger(level);
  JITGEMM_ASSIGN(context->device_options_.sim, sim_options(settings));
  context->device_options_.driver = settings.value("driver");

  const std::string& mode = settings.value("cache_mode");
  DiskCacheOptions cache_options;
  if (mode != "memory") cache_options.root = settings.value("cache_folder");
  cache_options.read_only = mode == "ro";
  context->cache_ = DiskCache::open(std::move(cache_options), context->log_);

  JITGEMM_ASSIGN(TuningDatabase tuning, open_tuning(settings, context->log_));
  context->tuning_ = std::make_shared<const TuningDatabase>(std::move(tuning));

  const std::string nvrtc = settings.value("nvrtc");
  context->builder_ = std::make_unique<KernelBuilder>(
      TemplateStore(settings.value("template_folder")), context->cache_,
      [nvrtc]() -> Result<std::shared_ptr<Compiler>> {
        JITGEMM_ASSIGN(std::unique_ptr<NvrtcCompiler> compiler, NvrtcCompiler::open(nvrtc));
        return std::shared_ptr<Compiler>(std::move(compiler));
      },
      context->log_);
  return context;
}

PlanRequest Context::plan_request(const PlanOverrides& overrides, const Device* device) const {
  PlanRequest request;
  request.overrides = overrides;
  request.tuning = tuning_.get();
  if (device != nullptr) {
    request.sm_count = device->info().plan_sm_count;
    // The simulator stands for whatever device has its SM count.
    if (device->info().driver_version != 0) request.device_name = device->info().description;
  }
  return request;
}

Result<Device*> Context::device(const std::string& name, std::optional<Arch> arch) {
  const std::string key = name + (arch ? fmt::format("/{}", arch_info(*arch).target) : "");
  const std::scoped_lock lock(mutex_);
  if (const auto found = devices_.find(key); found != devices_.end()) return found->second.get();
  JITGEMM_ASSIGN(std::shared_ptr<Device> device, open_device(name, arch, device_options_));
  // Under another name it may be here already, with its kernels.
  for (const auto& [asked, other] : devices_) {
    if (other->info().name == device->info().name && other->info().arch == device->info().arch) {
      device = other;
      break;
    }
  }
  return devices_.emplace(key, std::move(device)).first->second.get();
}

Result<std::shared_ptr<const LoadedKernel>> Context::load(Device& device, const BuiltKernel& kernel,
                                                          const LaunchGeometry& geometry) {
  const auto key = std::pair<const Device*, std::string>(&device, kernel.key.bytes);
  const std::scoped_lock lock(mutex_);
  if (const auto found = kernels_.find(key); found != kernels_.end()) return found->second;
  JITGEMM_ASSIGN(std::unique_ptr<LoadedKernel> loaded, device.load(*kernel.image, geometry));
  return kernels_.emplace(key, std::move(loaded)).first->second;
}

Result<PreparedGemm> Context::prepare(const GemmProblem& problem, const PlanOverrides& overrides,
                                      Device& device, BuildMode mode) {
  JITGEMM_ASSIGN(OperationPlan plan, plan_operation(problem, plan_request(overrides, &device)));
  return prepare(std::move(plan), device, mode);
}

Result<PreparedGemm> Context::prepare(OperationPlan plan, Device& device, BuildMode mode) {
  PreparedGemm prepared;
  GemmOperation::Kernels loaded;
  for (const LaunchPlan& launch : plan.launches) {
    JITGEMM_ASSIGN(BuiltKernel kernel, builder_->build(launch, mode));
    const LaunchGeometry geometry =
        launch_geometry(launch, plan.product().planned_m, device.info().sm_count);
    JITGEMM_ASSIGN(std::shared_ptr<const LoadedKernel> ready, load(device, kernel, geometry));
    loaded.push_back(std::move(ready));
    prepared.kernels.push_back(std::move(kernel));
  }
  prepared.operation = std::make_shared<GemmOperation>(std::move(plan), std::move(loaded), device);
  return prepared;
}

}  // namespace jitgemm
