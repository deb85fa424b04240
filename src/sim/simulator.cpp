// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator.h"

#include "fmt/format.h"
#include "sim/async_state.h"
#include "sim/decode.h"
#include "sim/machine_state.h"
#include "sim/report.h"
#include "sim/scheduler.h"

#include <algorithm>

namespace jitgemm::sim {
namespace {

constexpr uint32_t kMaxThreadsPerCta = 1024;
// CUDA C++ Programming Guide, technical specifications per compute capability.
constexpr std::array<uint32_t, 3> kMaxGrid = {2147483647, 65535, 65535};
constexpr std::array<uint32_t, 3> kMaxBlock = {1024, 1024, 64};
constexpr uint32_t kMaxCtasPerCluster = 16;
constexpr uint64_t kMaxSharedBytes = 227 * 1024;

std::string triple(const std::array<uint32_t, 3>& v) {
  return fmt::format("{}x{}x{}", v[0], v[1], v[2]);
}

Status check_geometry(const DecodedKernel& kernel, const Launch& launch) {
  const ptx::Function& f = *kernel.function;
  for (size_t d = 0; d < 3; ++d) {
    if (launch.grid[d] == 0 || launch.block[d] == 0 || launch.cluster[d] == 0) {
      return invalid_argument(
          fmt::format("launch of {}: grid {}, block {} and cluster {} must be positive", f.name,
                      triple(launch.grid), triple(launch.block), triple(launch.cluster)));
    }
    if (launch.grid[d] > kMaxGrid[d] || launch.block[d] > kMaxBlock[d]) {
      return invalid_argument(fmt::format(
          "launch of {}: grid {} and block {}, at most {} and {} allowed", f.name,
          triple(launch.grid), triple(launch.block), triple(kMaxGrid), triple(kMaxBlock)));
    }
    if (launch.grid[d] % launch.cluster[d] != 0) {
      return invalid_argument(fmt::format("launch of {}: grid {} is not a multiple of cluster {}",
                                          f.name, triple(launch.grid), triple(launch.cluster)));
    }
    if (f.reqntid[0] != 0 && launch.block[d] != std::max(1u, f.reqntid[d])) {
      return invalid_argument(fmt::format("launch of {}: block {} but .reqntid {}", f.name,
                                          triple(launch.block), triple(f.reqntid)));
    }
    if (f.reqnctapercluster[0] != 0 && launch.cluster[d] != std::max(1u, f.reqnctapercluster[d])) {
      return invalid_argument(fmt::format("launch of {}: cluster {} but .reqnctapercluster {}",
                                          f.name, triple(launch.cluster),
                                          triple(f.reqnctapercluster)));
    }
  }
  const uint64_t threads = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  uint64_t allowed = kMaxThreadsPerCta;
  if (f.maxntid[0] != 0) {
    allowed = std::min(
        allowed, uint64_t{f.maxntid[0]} * std::max(1u, f.maxntid[1]) * std::max(1u, f.maxntid[2]));
  }
  if (threads > allowed) {
    return invalid_argument(fmt::format("launch of {}: {} threads a CTA, at most {} allowed",
                                        f.name, threads, allowed));
  }
  const uint64_t ctas = uint64_t{launch.cluster[0]} * launch.cluster[1] * launch.cluster[2];
  if (ctas > kMaxCtasPerCluster) {
    return invalid_argument(fmt::format("launch of {}: {} CTAs a cluster, at most {} allowed",
                                        f.name, ctas, kMaxCtasPerCluster));
  }
  const uint64_t shared =
      uint64_t{kernel.shared_static_bytes} - kSharedReserved + launch.dynamic_shared_bytes;
  if (shared > kMaxSharedBytes) {
    return invalid_argument(
        fmt::format("launch of {}: {} bytes of shared memory, at most {} allowed", f.name, shared,
                    kMaxSharedBytes));
  }
  if (launch.parameters.size() != f.parameter_size) {
    return invalid_argument(
        fmt::format("launch of {}: {} bytes of parameters given, the entry takes {}", f.name,
                    launch.parameters.size(), f.parameter_size));
  }
  return ok_status();
}

bool has_storage(const ptx::Symbol& s) {
  return s.kind == ptx::SymbolKind::kVariable && s.size != 0 &&
         (s.space == ptx::Space::kGlobal || s.space == ptx::Space::kConst);
}

// Gives module variables in .global and .const their storage.
Result<std::shared_ptr<ModuleVariables>> allocate_variables(const ptx::Module& module,
                                                            uint64_t memory_limit) {
  uint64_t total = 0;
  for (const ptx::Symbol& s : module.symbols) {
    if (!has_storage(s)) continue;
    total += s.size;
    if (total > memory_limit) {
      return Status(StatusCode::kOutOfMemory,
                    fmt::format("the module's variables need more than the memory limit, {} bytes",
                                memory_limit));
    }
  }
  auto variables = std::make_shared<ModuleVariables>();
  std::vector<uint64_t>& addresses = variables->addresses;
  addresses.assign(module.symbols.size(), 0);
  variables->storage.resize(module.symbols.size());
  for (size_t i = 0; i < module.symbols.size(); ++i) {
    const ptx::Symbol& s = module.symbols[i];
    if (!has_storage(s)) continue;
    const uint64_t align = std::max<uint64_t>(s.align, 16);
    auto storage = std::make_unique<std::byte[]>(s.size + align);
    std::byte* base =
        storage.get() + (align - reinterpret_cast<uintptr_t>(storage.get()) % align) % align;
    if (!s.data.empty()) std::memcpy(base, s.data.data(), std::min<size_t>(s.data.size(), s.size));
    addresses[i] = reinterpret_cast<uint64_t>(base);
    variables->storage[i] = std::move(storage);
  }
  for (size_t i = 0; i < module.symbols.size(); ++i) {
    const ptx::Symbol& s = module.symbols[i];
    for (const ptx::Relocation& r : s.relocations) {
      if (addresses[i] == 0) continue;
      const uint64_t base = r.is_function ? function_address(r.index) : addresses[r.index];
      const uint64_t value = base + static_cast<uint64_t>(r.addend);
      std::memcpy(reinterpret_cast<std::byte*>(addresses[i]) + r.offset, &value, r.bytes);
    }
  }
  return variables;
}

// Lets the kernel reach the module variables and writes their addresses into the constant bank.
void place_variables(GridState& grid) {
  const ptx::Module& module = grid.program->module;
  const std::vector<uint64_t>& addresses = grid.variables->addresses;
  for (size_t i = 0; i < module.symbols.size(); ++i) {
    const ptx::Symbol& s = module.symbols[i];
    if (!has_storage(s)) continue;
    // Module variables without an initialiser are zero (PTX ISA 5.4.4).
    grid.memory.add(reinterpret_cast<const void*>(addresses[i]), s.size, true,
                    s.space == ptx::Space::kGlobal, true, fmt::format("variable {}", s.name));
  }
  grid.constants = grid.kernel->constants;
  for (const VariableAddress& v : grid.kernel->variable_addresses) {
    const uint64_t value = addresses[v.symbol] + static_cast<uint64_t>(v.addend);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      std::memcpy(grid.constants.data() + v.offset + lane * v.bytes, &value, v.bytes);
    }
  }
}

}  // namespace

const DecodedKernel* DecodedProgram::find(std::string_view entry) const {
  for (const DecodedKernel& kernel : kernels) {
    if (kernel.function->name == entry) return &kernel;
  }
  return nullptr;
}

Result<Program> Program::load(std::string_view ptx) {
  JITGEMM_ASSIGN(std::shared_ptr<const DecodedProgram> decoded, decode_program(ptx));
  return Program(std::move(decoded));
}

std::vector<std::string> Program::entries() const {
  std::vector<std::string> names;
  for (const DecodedKernel& kernel : decoded_->kernels) names.push_back(kernel.function->name);
  return names;
}

Result<std::shared_ptr<ModuleVariables>> Program::make_variables(uint64_t memory_limit) const {
  return allocate_variables(decoded_->module, memory_limit);
}

Status check_launch(const Program& program, const Launch& launch) {
  const DecodedKernel* kernel = program.decoded().find(launch.entry);
  if (kernel == nullptr)
    return invalid_argument(fmt::format("the module has no entry named '{}'", launch.entry));
  return check_geometry(*kernel, launch);
}

Result<Report> run(const Program& program, const Launch& launch, const Options& options) {
  JITGEMM_TRY(check_launch(program, launch));
  const DecodedKernel* kernel = program.decoded().find(launch.entry);
  if (launch.variables != nullptr &&
      launch.variables->addresses.size() != program.decoded().module.symbols.size()) {
    return invalid_argument(
        fmt::format("launch of {}: the variables belong to another module", launch.entry));
  }

  GridState grid;
  grid.program = &program.decoded();
  grid.kernel = kernel;
  grid.launch = launch;
  grid.options = options;
  grid.parameters.assign(launch.parameters.begin(), launch.parameters.end());
  grid.launch.parameters = grid.parameters;
  grid.threads_per_cta = launch.block[0] * launch.block[1] * launch.block[2];
  grid.warps_per_cta = (grid.threads_per_cta + kLanes - 1) / kLanes;
  grid.ctas_per_cluster = launch.cluster[0] * launch.cluster[1] * launch.cluster[2];
  grid.shared_bytes = kernel->shared_static_bytes + launch.dynamic_shared_bytes;
  for (size_t i = 0; i < launch.memory.size(); ++i) {
    const MemoryRange& r = launch.memory[i];
    grid.memory.add(r.base, r.bytes, r.readable, r.writable, r.initialised || !options.sanitize,
                    r.name.empty() ? fmt::format("memory range {} of the launch", i) : r.name,
                    r.written, r.log);
  }
  grid.races.limit(options.memory_limit / 4);
  if (launch.programmatic_dependent) grid.memory.expect_predecessor(launch.predecessor_writes);
  grid.variables = launch.variables;
  if (grid.variables == nullptr) {
    JITGEMM_ASSIGN(grid.variables, program.make_variables(options.memory_limit));
  }
  place_variables(grid);
  grid.memory.seal();

  GridResult result = run_grid(grid);
  if (!result.fault.empty()) return Status(StatusCode::kSimulatorFault, std::move(result.fault));
  Report report = make_report(grid, result.counts);
  report.async_operations = result.async_operations;
  report.peak_state_bytes = result.peak_state_bytes;
  report.race_state_bytes = grid.races.state_bytes();
  report.unjudged_accesses = grid.races.unjudged();
  report.ctas = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  report.clusters = report.ctas / grid.ctas_per_cluster;
  report.warps = report.ctas * grid.warps_per_cta;
  report.statistics = std::move(result.statistics);
  return report;
}

}  // namespace jitgemm::sim
