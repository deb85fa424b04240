// SPDX-License-Identifier: Apache-2.0
#include "bench/peer_module.h"

#include "bench/python_host.h"
#include "support/dynamic_library.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace jitgemm::bench {

// jitgemm_peer_problem and jitgemm_peer_set of bench/peers/jitgemm_peer.h, as the simplest thing
// that has their layout; a test holds the two against each other.
struct PeerSet {
  uint64_t a, b, a_scales, b_scales, a_scales_column_major, b_scales_padded, out;
};
struct PeerFunctions::Problem {
  int64_t m, n, k, padded_m, k_blocks, padded_k_blocks, n_blocks;
  int32_t out_bytes, set_count;
  const PeerSet* sets;
};
static_assert(sizeof(PeerSet) == 56 && sizeof(PeerFunctions::Problem) == 72);

namespace {

constexpr int32_t kPeerVersion = 1;

class ModuleContender final : public Contender {
 public:
  ModuleContender(const PeerModule& module, const GemmProblem& problem, const Operands& operands)
      : module_(module) {
    for (const OperandSet& set : operands.sets()) {
      sets_.push_back({set.a, set.b, set.a_scales, set.b_scales, set.a_scales_column_major,
                       set.b_scales_padded, set.out});
    }
    const OperandLayout& layout = operands.layout();
    problem_ = {problem.m,
                problem.n,
                problem.k,
                layout.padded_m,
                layout.k_blocks,
                layout.padded_k_blocks,
                problem.n_blocks(),
                dtype_info(problem.out_dtype).bytes,
                static_cast<int32_t>(sets_.size()),
                sets_.data()};
    info_.name = module.name();
    info_.source = "peer";
    info_.error_limit = 5e-3;
  }
  ~ModuleContender() override {
    if (peer_ != nullptr) module_.functions().close(peer_);
  }
  ModuleContender(const ModuleContender&) = delete;
  ModuleContender& operator=(const ModuleContender&) = delete;

  Status open() {
    std::array<char, 512> error = {};
    if (module_.functions().open(&problem_, &peer_, error.data(), error.size()) == 0) {
      return ok_status();
    }
    peer_ = nullptr;
    return unsupported(fmt::format("{}: {}", module_.name(), error.data()));
  }

  const ContenderInfo& info() const override { return info_; }

  Status launch(size_t index, CuStream stream) override {
    std::array<char, 512> error = {};
    if (module_.functions().launch(peer_, static_cast<int32_t>(index), stream, error.data(),
                                   error.size()) == 0) {
      return ok_status();
    }
    return unsupported(fmt::format("{}: {}", module_.name(), error.data()));
  }

 private:
  const PeerModule& module_;
  ContenderInfo info_;
  std::vector<PeerSet> sets_;
  PeerFunctions::Problem problem_ = {};
  void* peer_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<PeerModule>> PeerModule::load(const std::string& path,
                                                     const std::string& python_library) {
  std::unique_ptr<PeerModule> module(new PeerModule());
  if (path.ends_with(".py")) {
    JITGEMM_TRY(load_python_peer(path, python_library, module->functions_, module->name_));
  } else {
    JITGEMM_TRY(module->load_library(path));
  }
  if (module->name_.empty() || module->name_ == "jitgemm") {
    return invalid_argument(
        fmt::format("--peer: {}: expected a name of its own, found '{}'", path, module->name_));
  }
  return module;
}

Status PeerModule::load_library(const std::string& path) {
  Result<DynamicLibrary> library = DynamicLibrary::open({path});
  if (!library) return invalid_argument("--peer: " + library.error().message());
  int32_t (*version)() = nullptr;
  const char* (*module_name)() = nullptr;
  std::string missing;
  const auto resolve = [&](auto& function, const char* symbol) {
    library->resolve(function, symbol, missing);
  };
  resolve(version, "jitgemm_peer_version");
  resolve(module_name, "jitgemm_peer_name");
  resolve(functions_.open, "jitgemm_peer_open");
  resolve(functions_.launch, "jitgemm_peer_launch");
  resolve(functions_.close, "jitgemm_peer_close");
  if (!missing.empty()) {
    return invalid_argument(fmt::format("--peer: {} lacks {}", path, missing));
  }
  if (version() != kPeerVersion) {
    return unsupported(fmt::format("--peer: {} has version {} of the interface, expected {}", path,
                                   version(), kPeerVersion));
  }
  name_ = module_name();
  return ok_status();
}

Result<std::unique_ptr<Contender>> make_module_contender(const PeerModule& module,
                                                         const GemmProblem& problem,
                                                         const Operands& operands) {
  auto contender = std::make_unique<ModuleContender>(module, problem, operands);
  JITGEMM_TRY(contender->open());
  return std::unique_ptr<Contender>(std::move(contender));
}

}  // namespace jitgemm::bench
