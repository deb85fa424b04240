// SPDX-License-Identifier: Apache-2.0
#include "bench/peer_module.h"

#include "bench/python_host.h"
#include "support/dynamic_library.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace jitgemm::bench {

// jitgemm_peer_problem, jitgemm_peer_set and their grouped twins of bench/peers/jitgemm_peer.h, as
// the simplest thing that has their layout; a test holds the two against each other.
struct PeerSet {
  uint64_t a, b, a_scales, b_scales, a_scales_column_major, b_scales_padded, out;
};
struct PeerFunctions::Problem {
  int64_t m, n, k, padded_m, k_blocks, padded_k_blocks, n_blocks;
  int32_t out_bytes, set_count;
  const PeerSet* sets;
};
struct PeerGroupedSet {
  uint64_t a, b, a_scales, b_scales, a_scales_column_major, out;
};
struct PeerFunctions::GroupedProblem {
  int64_t groups, rows, n, k, matrices, scale_rows, k_blocks, n_blocks, expected_rows;
  int32_t layout, out_bytes, set_count, reserved;
  uint64_t group_rows;
  const int64_t* counts;
  const PeerGroupedSet* sets;
};
static_assert(sizeof(PeerSet) == 56 && sizeof(PeerFunctions::Problem) == 72);
static_assert(sizeof(PeerGroupedSet) == 48 && sizeof(PeerFunctions::GroupedProblem) == 112);

namespace {

constexpr int32_t kPeerVersion = 1;

// What is told to a peer, kept as long as the peer is.
struct Told {
  std::vector<PeerSet> sets;
  PeerFunctions::Problem problem = {};
};
struct ToldGrouped {
  std::vector<PeerGroupedSet> sets;
  std::vector<int64_t> counts;
  PeerFunctions::GroupedProblem problem = {};
};

Told tell(const GemmProblem& problem, const Operands& operands) {
  Told told;
  for (const OperandSet& set : operands.sets()) {
    told.sets.push_back({set.a, set.b, set.a_scales, set.b_scales, set.a_scales_column_major,
                         set.b_scales_padded, set.out});
  }
  const OperandLayout& layout = operands.layout();
  told.problem = {problem.m,
                  problem.n,
                  problem.k,
                  layout.padded_m,
                  layout.k_blocks,
                  layout.padded_k_blocks,
                  problem.n_blocks(),
                  dtype_info(problem.out_dtype).bytes,
                  static_cast<int32_t>(told.sets.size()),
                  nullptr};
  return told;
}

ToldGrouped tell(DType out_dtype, const GroupedOperands& operands) {
  ToldGrouped told;
  const GroupedShape& shape = operands.shape();
  const GroupedForms& form = operands.form(peer_form(shape));
  for (size_t i = 0; i < form.sets.size(); ++i) {
    const GroupedRowSet& rows = form.sets[i];
    const GroupedWeightSet& weights = operands.weights()[i];
    told.sets.push_back(
        {rows.a, weights.b, rows.a_scales, weights.b_scales, rows.a_scales_column_major, rows.out});
  }
  told.counts = operands.counts();
  const GroupLayout layout = shape.masked() ? GroupLayout::kMasked : GroupLayout::kRowIndices;
  PeerFunctions::GroupedProblem& p = told.problem;
  p.groups = shape.groups;
  p.rows = form.layout.rows_of_matrix();
  p.n = shape.n;
  p.k = shape.k;
  p.matrices = form.layout.matrices;
  p.scale_rows = form.layout.scale_rows();
  p.k_blocks = operands.k_blocks();
  p.n_blocks = operands.n_blocks();
  p.expected_rows = shape.masked() ? shape.mean : shape.rows;
  p.layout = static_cast<int32_t>(layout);
  p.out_bytes = dtype_info(out_dtype).bytes;
  p.set_count = static_cast<int32_t>(told.sets.size());
  p.group_rows = form.group_rows;
  return told;
}

using ErrorText = std::array<char, 512>;

class ModuleContender final : public Contender {
 public:
  explicit ModuleContender(const PeerModule& module) : module_(module) {
    info_.name = module.name();
    info_.source = "peer";
    info_.error_limit = 5e-3;
  }
  ~ModuleContender() override {
    if (peer_ != nullptr) module_.functions().close(peer_);
  }
  ModuleContender(const ModuleContender&) = delete;
  ModuleContender& operator=(const ModuleContender&) = delete;

  Status open(Told told) {
    told_ = std::move(told);
    told_.problem.sets = told_.sets.data();
    ErrorText error = {};
    return opened(module_.functions().open(&told_.problem, &peer_, error.data(), error.size()),
                  error);
  }
  Status open(ToldGrouped told, GroupedForm form) {
    info_.form = form;
    if (module_.functions().open_grouped == nullptr) {
      return unsupported(module_.name() + ": knows no groups");
    }
    told_grouped_ = std::move(told);
    told_grouped_.problem.counts = told_grouped_.counts.data();
    told_grouped_.problem.sets = told_grouped_.sets.data();
    ErrorText error = {};
    return opened(module_.functions().open_grouped(&told_grouped_.problem, &peer_, error.data(),
                                                   error.size()),
                  error);
  }

  // From here on every launch may begin before the one in front of it has ended.
  Status begin_early() {
    if (module_.functions().programmatic == nullptr) {
      return unsupported(module_.name() + ": has no launches with programmatic dependence");
    }
    ErrorText error = {};
    if (module_.functions().programmatic(peer_, error.data(), error.size()) != 0) {
      return unsupported(fmt::format("{}: {}", module_.name(), error.data()));
    }
    info_.programmatic = true;
    return ok_status();
  }

  const ContenderInfo& info() const override { return info_; }

  Status launch(size_t index, CuStream stream) override {
    ErrorText error = {};
    if (module_.functions().launch(peer_, static_cast<int32_t>(index), stream, error.data(),
                                   error.size()) == 0) {
      return ok_status();
    }
    return unsupported(fmt::format("{}: {}", module_.name(), error.data()));
  }

 private:
  Status opened(int32_t result, const ErrorText& error) {
    if (result == 0) return ok_status();
    peer_ = nullptr;
    return unsupported(fmt::format("{}: {}", module_.name(), error.data()));
  }

  const PeerModule& module_;
  ContenderInfo info_;
  Told told_;
  ToldGrouped told_grouped_;
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
  functions_.open_grouped = reinterpret_cast<decltype(functions_.open_grouped)>(
      library->find("jitgemm_peer_open_grouped"));
  functions_.programmatic = reinterpret_cast<decltype(functions_.programmatic)>(
      library->find("jitgemm_peer_programmatic"));
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
                                                         const Operands& operands,
                                                         bool programmatic) {
  auto contender = std::make_unique<ModuleContender>(module);
  JITGEMM_TRY(contender->open(tell(problem, operands)));
  if (programmatic) JITGEMM_TRY(contender->begin_early());
  return std::unique_ptr<Contender>(std::move(contender));
}

Result<std::unique_ptr<Contender>> make_module_contender(const PeerModule& module, DType out_dtype,
                                                         const GroupedOperands& operands,
                                                         bool programmatic) {
  auto contender = std::make_unique<ModuleContender>(module);
  JITGEMM_TRY(contender->open(tell(out_dtype, operands), peer_form(operands.shape())));
  if (programmatic) JITGEMM_TRY(contender->begin_early());
  return std::unique_ptr<Contender>(std::move(contender));
}

}  // namespace jitgemm::bench
