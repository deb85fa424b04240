// SPDX-License-Identifier: Apache-2.0
// The owners of jitgemm.hpp: made, moved, found again, refused, and gone in the wrong order.
#include <cstdio>
#include <jitgemm/jitgemm.hpp>
#include <optional>
#include <string>
#include <utility>

namespace {

int run() {
  jitgemm::ContextOptions options;
  options.cache_mode = "memory";
  std::optional<jitgemm::Context> context(std::in_place, options);
  std::optional<jitgemm::Device> device(std::in_place, *context, "sim", JITGEMM_ARCH_SM_100A);
  jitgemm::GemmProblem problem;
  problem.m = 8;
  problem.n = 64;
  problem.k = 128;
  context->compile(problem, device->arch());
  jitgemm::Operation first(*device, problem);
  const jitgemm::Operation operation = std::move(first);
  if (jitgemm::Operation::find(*device, problem).get() != operation.get()) return 2;
  jitgemm::Buffer buffer(*device, 4);
  context.reset();
  device.reset();
  const char sent[4] = {1, 2, 3, 4};
  char received[4] = {};
  buffer.write(sent, sizeof(sent));
  buffer.read(received, sizeof(received));
  if (std::string(sent, 4) != std::string(received, 4)) return 3;
  if (operation.describe().find("sm_100a m=8 n=64 k=128") == std::string::npos) return 4;
  if (jitgemm::plan(problem, JITGEMM_ARCH_SM_90A).find("kernel") == std::string::npos) return 5;
  try {
    operation.launch(jitgemm::GemmArguments());
    return 6;
  } catch (const jitgemm::Error& error) {
    if (error.status() != JITGEMM_STATUS_INVALID_ARGUMENT) return 7;
    if (error.message() != "m: expected 8 (the kernel is exact in m), found 0") return 8;
  }
  std::printf("jitgemm %s works\n", jitgemm_version());
  return 0;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
