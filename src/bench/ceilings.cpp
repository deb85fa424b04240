// SPDX-License-Identifier: Apache-2.0
#include "bench/ceilings.h"

#include "bench/gpu_stage.h"

#include <utility>

namespace jitgemm::bench {
namespace {

constexpr size_t kBytes = size_t{4} << 30;
constexpr int64_t kSide = 8192;

// `amount` is what a unit moves or computes, in the unit of the ceiling for 1 us.
Status measure(GpuStage& stage, const std::vector<std::pair<Ceiling, double>>& work,
               std::vector<Ceiling>& ceilings) {
  RestedSchedule schedule;
  schedule.rounds = 5;
  JITGEMM_ASSIGN(const auto samples, measure_rested(stage, work.size(), schedule));
  for (size_t i = 0; i < work.size(); ++i) {
    auto [ceiling, amount] = work[i];
    ceiling.rested = amount / summarize(samples[i]).median;
    JITGEMM_ASSIGN(const SustainedFigure figure, measure_sustained(stage, i, {}));
    ceiling.sustained = amount / figure.unit_us;
    ceilings.push_back(ceiling);
  }
  return ok_status();
}

Status memory_ceilings(GpuSession& session, std::vector<Ceiling>& ceilings) {
  JITGEMM_ASSIGN(const DeviceMemory from, DeviceMemory::create(session, kBytes));
  JITGEMM_ASSIGN(const DeviceMemory to, DeviceMemory::create(session, kBytes));
  JITGEMM_ASSIGN(const DeviceMemory counter, DeviceMemory::create(session, sizeof(uint64_t)));
  JITGEMM_TRY(session.fill(from.address(), 1, kBytes));
  JITGEMM_TRY(session.fill(counter.address(), 0, sizeof(uint64_t)));
  GpuStage stage(session);
  stage.add([&](CuStream stream) {
    return session.check(
        session.timing().copy_on_device_async(to.address(), from.address(), kBytes, stream),
        "cuMemcpyDtoDAsync");
  });
  stage.add([&](CuStream stream) {
    return session.kernels().scan(from.address(), kBytes, DType::kBF16, counter.address(), stream);
  });
  stage.add([&](CuStream) { return session.fill(to.address(), 1, kBytes); });
  const double gb = static_cast<double>(kBytes) / 1e3;
  return measure(stage,
                 {
                     {{"copy", "GB/s"}, 2 * gb},
                     {{"read", "GB/s"}, gb    },
                     {{"fill", "GB/s"}, gb    }
  },
                 ceilings);
}

Status matrix_ceilings(GpuSession& session, CublasLt& peers, std::vector<Ceiling>& ceilings) {
  GemmProblem problem;
  problem.arch = session.device().info().arch;
  problem.m = kSide;
  problem.n = kSide;
  problem.k = kSide;
  JITGEMM_ASSIGN(const Operands fp8, Operands::draw(session, problem, 1));
  // Operands of two bytes lie in those of twice as many codes.
  GemmProblem wide = problem;
  wide.k = 2 * kSide;
  JITGEMM_ASSIGN(const Operands bf16, Operands::draw(session, wide, 1));
  JITGEMM_TRY(session.kernels().draw_bf16(bf16.sets()[0].a, kSide, kSide, 1, session.stream()));
  JITGEMM_TRY(session.kernels().draw_bf16(bf16.sets()[0].b, kSide, kSide, 2, session.stream()));

  struct Row {
    const char* name;
    CublasLtKind kind;
    const Operands* operands;
  };
  const Row rows[] = {
      {"fp8_tensorwise",      CublasLtKind::kTensorwise,     &fp8 },
      {"fp8_tensorwise_slow", CublasLtKind::kTensorwiseSlow, &fp8 },
      {"fp8_block",           CublasLtKind::kBlock,          &fp8 },
      {"bf16",                CublasLtKind::kBF16,           &bf16}
  };
  GpuStage stage(session);
  std::vector<std::unique_ptr<Contender>> contenders;
  std::vector<std::pair<Ceiling, double>> work;
  const double flops = Shape{kSide, kSide, kSide}.flops();
  for (const Row& row : rows) {
    Result<std::unique_ptr<Contender>> contender =
        make_cublaslt_contender(peers, row.kind, problem, *row.operands);
    if (!contender && contender.error().code() == StatusCode::kUnsupported) continue;
    if (!contender) return contender.error();
    JITGEMM_TRY(stage.add(**contender, 1, true));
    contenders.push_back(std::move(*contender));
    work.push_back({
        {row.name, "TFLOP/s"},
        flops / 1e6
    });
  }
  return work.empty() ? ok_status() : measure(stage, work, ceilings);
}

}  // namespace

Result<std::vector<Ceiling>> measure_ceilings(GpuSession& session, CublasLt* peers) {
  std::vector<Ceiling> ceilings;
  JITGEMM_TRY(memory_ceilings(session, ceilings));
  if (peers != nullptr) JITGEMM_TRY(matrix_ceilings(session, *peers, ceilings));
  return ceilings;
}

}  // namespace jitgemm::bench
