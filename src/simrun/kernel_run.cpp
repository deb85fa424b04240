// SPDX-License-Identifier: Apache-2.0
#include "simrun/kernel_run.h"

#include "sim/program.h"
#include "simrun/buffer_content.h"
#include "simrun/named_file.h"
#include "support/sha256.h"
#include "support/strict_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace jitgemm::simrun {
namespace {

constexpr size_t kAlignment = 1024;  // of buffers; a GPU's allocator gives 256 or more
// Behind each buffer, so that an index a little too far does not find another buffer. Nobody
// touches these bytes, so they cost addresses and no memory.
constexpr size_t kGuardBytes = 256 << 10;
constexpr size_t kFirstValues = 8;
constexpr size_t kMaxPrinted = 1 << 20;  // of a run, as much as a driver keeps
constexpr size_t kPrintedInFault = 1024;

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte[], FreeMemory>;

Result<Memory> allocate(const BufferDescription& buffer) {
  const size_t rounded =
      (std::max<size_t>(buffer.bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded + kGuardBytes));
  if (memory == nullptr) {
    return Status(StatusCode::kOutOfMemory,
                  fmt::format("{}: the host has no {} bytes", buffer.path, buffer.bytes));
  }
  // What nobody has filled looks like NaN, not like a lucky zero.
  std::memset(memory, 0xff, rounded);
  return Memory(memory);
}

struct EntryParameter {
  std::string name;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

std::vector<EntryParameter> parameters_of(const ptx::Module& module, const ptx::Function& entry) {
  std::vector<EntryParameter> parameters;
  for (const ptx::Parameter& p : entry.parameters) {
    const ptx::Symbol& symbol = module.symbols[p.index];
    parameters.push_back({symbol.name, symbol.offset, symbol.size});
  }
  return parameters;
}

Status check_parameter(const ParameterDescription& parameter, const EntryParameter& expected) {
  if (!parameter.name.empty() && parameter.name != expected.name) {
    return invalid_argument(fmt::format("{}.name: expected {}, the entry's parameter, found {}",
                                        parameter.path, printable(expected.name),
                                        printable(parameter.name)));
  }
  for (const FieldDescription& field : parameter.fields) {
    const bool fits = parameter.is_struct
                          ? field.at <= expected.bytes && field.size() <= expected.bytes - field.at
                          : field.size() == expected.bytes;
    if (fits) continue;
    if (parameter.is_struct) {
      return invalid_argument(fmt::format(
          "{}: expected to end within the {} bytes of parameter {}, found {} + {}", field.path,
          expected.bytes, printable(expected.name), field.at, field.size()));
    }
    return invalid_argument(fmt::format("{}: expected {} bytes for parameter {}, found {}",
                                        field.path, expected.bytes, printable(expected.name),
                                        field.size()));
  }
  return ok_status();
}

sim::Launch geometry_of(const LaunchDescription& launch) {
  sim::Launch request;
  request.entry = launch.entry;
  request.grid = launch.grid;
  request.block = launch.block;
  request.cluster = launch.cluster;
  request.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  return request;
}

Status check_launch(const sim::Program& program, const LaunchDescription& launch) {
  const ptx::Module& module = program.decoded().module;
  const ptx::Function* entry = module.find_entry(launch.entry);
  if (entry == nullptr) {
    std::string names;
    for (const ptx::Function& f : module.functions) {
      if (f.is_entry) names += (names.empty() ? "" : ", ") + f.name;
    }
    return invalid_argument(fmt::format("{}.entry: expected an entry of the module ({}), found {}",
                                        launch.path, names.empty() ? "it has none" : names,
                                        printable(launch.entry)));
  }
  const std::vector<EntryParameter> expected = parameters_of(module, *entry);
  if (launch.parameters.size() != expected.size()) {
    return invalid_argument(fmt::format("{}.parameters: expected {} for entry {}, found {}",
                                        launch.path, expected.size(), launch.entry,
                                        launch.parameters.size()));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    JITGEMM_TRY(check_parameter(launch.parameters[i], expected[i]));
  }
  const std::vector<std::byte> block(entry->parameter_size);
  sim::Launch request = geometry_of(launch);
  request.parameters = block;
  return sim::check_launch(program, request).with_context(launch.path);
}

}  // namespace

struct KernelRun::State {
  State(sim::Program loaded, RunDescription d, std::string f)
      : program(std::move(loaded)), description(std::move(d)), folder(std::move(f)) {}

  sim::Program program;
  RunDescription description;
  std::string folder;
  std::vector<Memory> memory;  // by buffer
  std::vector<sim::WrittenBits> written;
  std::vector<bool> filled;  // its contents were given
  // What the last launch wrote, by buffer; kept if the next one may start before its end.
  std::vector<sim::WrittenRange> last_writes;

  std::span<std::byte> bytes(size_t i) {
    return {memory[i].get(), static_cast<size_t>(description.buffers[i].bytes)};
  }
  uint64_t address(size_t i) const { return reinterpret_cast<uint64_t>(memory[i].get()); }

  Result<size_t> find(std::string_view name) const;
  Status fill_buffers();
  Status encode_maps();
  void place(const FieldDescription& field, std::span<std::byte> target) const;
  std::vector<std::byte> parameter_block(const LaunchDescription& launch) const;
  Result<sim::Report> run_launch(const LaunchDescription& launch, const sim::Options& options,
                                 const std::shared_ptr<sim::ModuleVariables>& variables,
                                 bool next_depends);
  Status compare(RunReport& report);
};

Result<size_t> KernelRun::State::find(std::string_view name) const {
  std::string names;
  for (size_t i = 0; i < description.buffers.size(); ++i) {
    if (description.buffers[i].name == name) return i;
    names += (names.empty() ? "" : ", ") + printable(description.buffers[i].name);
  }
  return invalid_argument(fmt::format("expected a buffer of the description ({}), found {}",
                                      names.empty() ? "it has none" : names, printable(name)));
}

Status KernelRun::State::encode_maps() {
  for (TensorMapDescription& m : description.tensor_maps) {
    m.map.address = address(m.buffer) + m.offset;
    if (const std::string error = sim::tensor_map_error(m.map); !error.empty()) {
      return invalid_argument(fmt::format("{}: {}", m.path, error));
    }
  }
  return ok_status();
}

void KernelRun::State::place(const FieldDescription& field, std::span<std::byte> target) const {
  using Kind = FieldDescription::Kind;
  switch (field.kind) {
    case Kind::kBytes:
      std::memcpy(target.data() + field.at, field.bytes.data(), field.bytes.size());
      break;
    case Kind::kBuffer: {
      const uint64_t value = address(field.index) + field.offset;
      std::memcpy(target.data() + field.at, &value, sizeof(value));
      break;
    }
    case Kind::kTensorMap: {
      const sim::EncodedMap map = sim::encode_tensor_map(description.tensor_maps[field.index].map);
      std::memcpy(target.data() + field.at, map.data(), map.size());
      break;
    }
  }
}

Status KernelRun::State::fill_buffers() {
  uint64_t total = 0;
  const uint64_t limit = description.options.memory_limit;
  for (const BufferDescription& buffer : description.buffers) {
    if (buffer.bytes > limit - total) {
      return Status(
          StatusCode::kOutOfMemory,
          fmt::format("{}: the buffers need more than memory_limit, {} bytes", buffer.path, limit));
    }
    total += buffer.bytes;
  }
  for (const BufferDescription& buffer : description.buffers) {
    JITGEMM_ASSIGN(Memory bytes, allocate(buffer));
    memory.push_back(std::move(bytes));
    written.push_back(sim::make_written_bits(buffer.bytes));
    filled.push_back(buffer.content.kind != ContentDescription::Kind::kNone);
  }
  JITGEMM_TRY(encode_maps());
  for (size_t i = 0; i < description.buffers.size(); ++i) {
    const BufferDescription& buffer = description.buffers[i];
    JITGEMM_TRY(fill_content(buffer.content, buffer, folder, bytes(i)));
    for (const FieldDescription& field : buffer.content.fields) place(field, bytes(i));
  }
  return ok_status();
}

std::vector<std::byte> KernelRun::State::parameter_block(const LaunchDescription& launch) const {
  const ptx::Module& module = program.decoded().module;
  const ptx::Function& entry = *module.find_entry(launch.entry);
  std::vector<std::byte> block(entry.parameter_size);
  const std::vector<EntryParameter> expected = parameters_of(module, entry);
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::span<std::byte> target =
        std::span(block).subspan(expected[i].offset, expected[i].bytes);
    for (const FieldDescription& field : launch.parameters[i].fields) place(field, target);
  }
  return block;
}

Result<sim::Report> KernelRun::State::run_launch(
    const LaunchDescription& launch, const sim::Options& options,
    const std::shared_ptr<sim::ModuleVariables>& variables, bool next_depends) {
  const std::vector<std::byte> block = parameter_block(launch);
  sim::Launch request = geometry_of(launch);
  request.parameters = block;
  request.programmatic_dependent = launch.programmatic_dependent;
  request.predecessor_writes = std::move(last_writes);
  request.variables = variables;
  last_writes.clear();
  for (size_t i = 0; i < description.buffers.size(); ++i) {
    const BufferDescription& buffer = description.buffers[i];
    sim::MemoryRange range;
    range.base = memory[i].get();
    range.bytes = buffer.bytes;
    range.writable = buffer.access != BufferAccess::kIn;
    // An "out" buffer may be read only where a kernel has written, and so may one without contents.
    range.initialised = buffer.access != BufferAccess::kOut && filled[i];
    range.name = fmt::format("buffer {}", printable(buffer.name));
    range.written = written[i];
    if (next_depends && range.writable) {
      range.log = sim::make_written_bits(buffer.bytes);
      last_writes.push_back({range.base, range.bytes, range.log});
    }
    request.memory.push_back(std::move(range));
  }
  return sim::run(program, request, options);
}

Status KernelRun::State::compare(RunReport& report) {
  for (size_t i = 0; i < description.buffers.size(); ++i) {
    const BufferDescription& buffer = description.buffers[i];
    if (!buffer.expect) continue;
    ++report.expectations;
    std::vector<std::byte> expected(buffer.bytes);
    JITGEMM_TRY(fill_content(buffer.expect->content, buffer, folder, expected));
    for (const FieldDescription& field : buffer.expect->content.fields) place(field, expected);
    std::string difference = compare_content(*buffer.expect, buffer, bytes(i), expected);
    if (!difference.empty()) report.mismatches.push_back(std::move(difference));
  }
  return ok_status();
}

KernelRun::KernelRun(std::unique_ptr<State> state) : state_(std::move(state)) {}
KernelRun::KernelRun(KernelRun&&) noexcept = default;
KernelRun& KernelRun::operator=(KernelRun&&) noexcept = default;
KernelRun::~KernelRun() = default;

Result<KernelRun> KernelRun::create(std::string_view ptx, RunDescription description,
                                    std::string folder) {
  auto loaded = sim::Program::load(ptx);
  if (!loaded) return loaded.error().with_context("PTX");
  sim::Program program = std::move(*loaded);
  for (const LaunchDescription& launch : description.launches) {
    JITGEMM_TRY(check_launch(program, launch));
  }
  auto state =
      std::make_unique<State>(std::move(program), std::move(description), std::move(folder));
  JITGEMM_TRY(check_outputs(state->description.buffers, state->folder));
  JITGEMM_TRY(state->fill_buffers());
  return KernelRun(std::move(state));
}

Result<std::span<const std::byte>> KernelRun::buffer(std::string_view name) const {
  JITGEMM_ASSIGN(const size_t i, state_->find(name));
  return std::span<const std::byte>(state_->bytes(i));
}

bool KernelRun::writable(std::string_view name) const {
  const Result<size_t> i = state_->find(name);
  return i && state_->description.buffers[*i].access != BufferAccess::kIn;
}

Status KernelRun::fill(std::string_view name, std::span<const std::byte> contents) {
  JITGEMM_ASSIGN(const size_t i, state_->find(name));
  const std::span<std::byte> target = state_->bytes(i);
  if (contents.size() != target.size()) {
    return invalid_argument(fmt::format("{}: expected {} bytes, found {}",
                                        state_->description.buffers[i].path, target.size(),
                                        contents.size()));
  }
  std::copy(contents.begin(), contents.end(), target.begin());
  state_->filled[i] = true;
  return ok_status();
}

const RunDescription& KernelRun::description() const {
  return state_->description;
}

Result<RunReport> KernelRun::run() {
  State& s = *state_;
  sim::Options options = s.description.options.simulator;
  options.memory_limit = s.description.options.memory_limit;
  const bool hopper = s.program.decoded().module.target.starts_with("sm_90");
  options.numerics = s.description.options.numerics.value_or(hopper ? sim::Numerics::kHopper
                                                                    : sim::Numerics::kExact);
  OutputFile trace;
  const std::string trace_path = path_in(s.folder, s.description.options.trace_file);
  if (!s.description.options.trace_file.empty()) {
    auto file = create_file(trace_path);
    if (!file) return file.error().with_context("trace");
    trace = std::move(*file);
    options.trace = [out = trace.get()](std::string_view line) {
      std::fwrite(line.data(), 1, line.size(), out);
      std::fputc('\n', out);
    };
  }
  RunReport report;
  options.print = [&report, &forward = s.description.options.print](std::string_view text) {
    if (forward) forward(text);
    report.printed += text.substr(0, kMaxPrinted - report.printed.size());
  };
  s.last_writes.clear();
  JITGEMM_ASSIGN(const std::shared_ptr<sim::ModuleVariables> variables,
                 s.program.make_variables(options.memory_limit));
  const std::vector<LaunchDescription>& launches = s.description.launches;
  for (size_t i = 0; i < launches.size(); ++i) {
    const LaunchDescription& launch = launches[i];
    const bool next_depends = i + 1 < launches.size() && launches[i + 1].programmatic_dependent;
    if (options.trace) options.trace(fmt::format("{}: {}", launch.path, launch.entry));
    auto result = s.run_launch(launch, options, variables, next_depends);
    if (!result) {
      const Status fault = result.error().with_context(launch.path);
      // Whoever does not follow what is printed gets the end of it, which is what explains a fault.
      if (report.printed.empty() || s.description.options.print) return fault;
      const size_t from = report.printed.size() - std::min(report.printed.size(), kPrintedInFault);
      std::string end = report.printed.substr(from);
      std::replace(end.begin(), end.end(), '\0', '?');  // a message ends at a zero in C
      return Status(fault.code(), fmt::format("{}\n  printed:  {}", fault.message(), end));
    }
    report.launches.push_back(std::move(*result));
    report.entries.push_back(launch.entry);
  }
  std::vector<std::span<const std::byte>> contents;
  for (size_t i = 0; i < s.description.buffers.size(); ++i) {
    const BufferDescription& buffer = s.description.buffers[i];
    contents.emplace_back(s.bytes(i));
    if (buffer.access == BufferAccess::kIn && !buffer.output) continue;
    BufferReport row;
    row.name = buffer.name;
    row.dtype = buffer.type->name;
    row.shape = buffer.shape;
    row.sha256 =
        to_hex(sha256({reinterpret_cast<const char*>(contents[i].data()), contents[i].size()}));
    const uint64_t count = buffer.bytes / buffer.type->bytes;
    for (uint64_t e = 0; e < std::min<uint64_t>(count, kFirstValues); ++e) {
      row.first_values.push_back(
          format_element(*buffer.type, element_bits(*buffer.type, contents[i], e)));
    }
    if (buffer.output) row.file = path_in(s.folder, buffer.output->file);
    report.buffers.push_back(std::move(row));
  }
  JITGEMM_TRY(write_outputs(s.description.buffers, contents, s.folder));
  JITGEMM_TRY(s.compare(report));
  if (trace != nullptr) {
    JITGEMM_TRY(finish_file(std::move(trace), trace_path).with_context("trace"));
  }
  return report;
}

}  // namespace jitgemm::simrun
