// SPDX-License-Identifier: Apache-2.0
// jitgemm doctor: what this machine has of what the library can use, and every effective setting.
#include "cli.h"
#include "compile/nvrtc_compiler.h"
#include "device/cuda_driver_api.h"
#include "json.h"

#include <fmt/format.h>

namespace jitgemm::cli {
namespace {

struct Finding {
  const char* subject;
  bool good;
  std::string text;
};

std::vector<Finding> examine(Context& context) {
  std::vector<Finding> findings;
  if (const auto compiler = NvrtcCompiler::open(context.settings().value("nvrtc"))) {
    findings.push_back({"nvrtc", true, (*compiler)->identity() + ", " + (*compiler)->api().path});
  } else {
    findings.push_back({"nvrtc", false, compiler.error().message()});
  }
  if (const auto driver = CudaDriverApi::open(context.settings().value("driver"))) {
    int version = 0;
    driver->driver_version(&version);
    findings.push_back(
        {"driver", true,
         fmt::format("CUDA {}.{}, {}", version / 1000, version % 1000 / 10, driver->path)});
  } else {
    findings.push_back(
        {"driver", false, driver.error().message() + "; products run on the simulator"});
  }
  if (const auto device = context.device("cuda:0", std::nullopt)) {
    const DeviceInfo& info = (*device)->info();
    findings.push_back({"gpu", true,
                        fmt::format("{}, {} SMs, kernels for {}", info.description, info.sm_count,
                                    arch_info(info.arch).target)});
  } else {
    findings.push_back({"gpu", false, device.error().message()});
  }
  if (const auto cache = context.cache().stat()) {
    const bool writable = cache->mode == CacheMode::kReadWrite;
    findings.push_back({"cache", writable,
                        writable ? fmt::format("{}: {} entries, {} bytes", cache->root,
                                               cache->entries, cache->bytes)
                                 : fmt::format("kernels are kept for this process only: {}",
                                               context.cache().problem())});
  } else {
    findings.push_back({"cache", false, cache.error().message()});
  }
  return findings;
}

Status doctor(Cli& cli) {
  JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create(cli.flags.context));
  const std::vector<Finding> findings = examine(*context);
  // Without a compiler nothing new can be built; without a GPU the simulator serves.
  const bool usable = findings[0].good;
  if (cli.flags.json) {
    Json json = document("doctor");
    json["version"] = JITGEMM_VERSION_STRING;
    json["usable"] = usable;
    for (const Finding& finding : findings)
      json[finding.subject] = {
          {"good", finding.good},
          {"text", finding.text}
      };
    json["settings"] = Json::array();
    for (const Setting& setting : context->settings().all) {
      json["settings"].push_back({
          {"name",   setting.name  },
          {"value",  setting.value },
          {"origin", setting.origin}
      });
    }
    print(json);
  } else {
    fmt::print("jitgemm {}\n", JITGEMM_VERSION_STRING);
    for (const Finding& finding : findings)
      fmt::print("{:<4} {:<8} {}\n", finding.good ? "ok" : "--", finding.subject, finding.text);
    fmt::print("\nsettings\n");
    for (const Setting& setting : context->settings().all) {
      fmt::print("  {:<16} {:<40} ({})\n", setting.name,
                 setting.value.empty() ? "-" : setting.value, setting.origin);
    }
  }
  if (!usable) cli.exit_code = kExitEnvironment;
  return ok_status();
}

}  // namespace

void add_doctor_command(CLI::App& app, Cli& cli) {
  app.add_subcommand("doctor", "Check the driver, NVRTC, the GPU, the cache and every setting")
      ->callback([&cli] {
        const Status status = doctor(cli);
        if (!status.ok()) cli.finish(status);
      });
}

}  // namespace jitgemm::cli
