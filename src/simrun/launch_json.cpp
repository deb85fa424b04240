// SPDX-License-Identifier: Apache-2.0
#include "simrun/launch_json.h"

#include "simrun/field_json.h"
#include "simrun/json_cursor.h"
#include "support/strict_json.h"

#include <fmt/format.h>

#include <limits>

namespace jitgemm::simrun {
namespace {

constexpr int kMaxDepth = 12;
constexpr uint64_t kMaxElements = uint64_t{1} << 40;

Result<double> number_or(const JsonCursor& object, std::string_view name, double otherwise) {
  const std::optional<JsonCursor> field = object.field(name);
  if (!field) return otherwise;
  return field->number();
}

Result<uint64_t> integer_or(const JsonCursor& object, std::string_view name, uint64_t otherwise,
                            uint64_t least, uint64_t most) {
  const std::optional<JsonCursor> field = object.field(name);
  if (!field) return otherwise;
  return field->integer(least, most);
}

Result<ContentDescription> parse_values(const JsonCursor& values, const BufferDescription& buffer,
                                        ContentDescription content) {
  JITGEMM_TRY(values.require_array());
  const uint64_t count = buffer.bytes / buffer.type->bytes;
  if (values.size() != count) {
    return values.error(
        fmt::format("expected {} values for the buffer's shape, found {}", count, values.size()));
  }
  content.kind = ContentDescription::Kind::kValues;
  for (size_t i = 0; i < values.size(); ++i) {
    JITGEMM_ASSIGN(const uint64_t bits, parse_element(values.element(i), *buffer.type));
    content.values.push_back(bits);
  }
  return content;
}

Result<ContentDescription> parse_content(const JsonCursor& json, const BufferDescription& buffer,
                                         const NameTable& names) {
  using Kind = ContentDescription::Kind;
  ContentDescription content;
  content.path = json.path();
  if (!json.json().is_object() || json.size() == 0) {
    return json.expected(
        "an object with one of file, safetensors, values, value, iota, random, fields");
  }
  if (const auto values = json.field("values")) {
    JITGEMM_TRY(json.require_object({"values"}));
    return parse_values(*values, buffer, std::move(content));
  }
  if (const auto value = json.field("value")) {
    JITGEMM_TRY(json.require_object({"value"}));
    content.kind = Kind::kValue;
    JITGEMM_ASSIGN(const uint64_t bits, parse_element(*value, *buffer.type));
    content.values.push_back(bits);
    return content;
  }
  if (const auto file = json.field("file")) {
    JITGEMM_TRY(json.require_object({"file"}));
    content.kind = Kind::kFile;
    JITGEMM_ASSIGN(content.file, file->file_name());
    return content;
  }
  if (const auto file = json.field("safetensors")) {
    JITGEMM_TRY(json.require_object({"safetensors", "tensor"}));
    content.kind = Kind::kSafetensors;
    JITGEMM_ASSIGN(content.file, file->file_name());
    JITGEMM_ASSIGN(const JsonCursor tensor, json.required("tensor"));
    JITGEMM_ASSIGN(content.tensor, tensor.text());
    return content;
  }
  if (const auto iota = json.field("iota")) {
    JITGEMM_TRY(json.require_object({"iota"}));
    JITGEMM_TRY(iota->require_object({"start", "step"}));
    content.kind = Kind::kIota;
    JITGEMM_ASSIGN(content.start, number_or(*iota, "start", 0));
    JITGEMM_ASSIGN(content.step, number_or(*iota, "step", 1));
    return content;
  }
  if (const auto random = json.field("random")) {
    JITGEMM_TRY(json.require_object({"random"}));
    JITGEMM_TRY(random->require_object({"low", "high", "seed"}));
    content.kind = Kind::kRandom;
    JITGEMM_ASSIGN(content.start, number_or(*random, "low", -1));
    JITGEMM_ASSIGN(content.step, number_or(*random, "high", 1));
    JITGEMM_ASSIGN(content.seed,
                   integer_or(*random, "seed", 1, 0, std::numeric_limits<uint64_t>::max()));
    if (!(content.start <= content.step)) {
      return random->error(
          fmt::format("expected low <= high, found {} and {}", content.start, content.step));
    }
    return content;
  }
  if (const auto fields = json.field("fields")) {
    JITGEMM_TRY(json.require_object({"fields"}));
    content.kind = Kind::kFields;
    JITGEMM_ASSIGN(content.fields, parse_fields(*fields, names, buffer.bytes));
    return content;
  }
  return json.expected(
      "an object with one of file, safetensors, values, value, iota, random, fields");
}

Result<OutputDescription> parse_output(const JsonCursor& json) {
  OutputDescription output;
  if (json.json().is_string()) {
    JITGEMM_ASSIGN(output.file, json.file_name());
    return output;
  }
  if (!json.json().is_object())
    return json.expected("the name of a file, or an object of safetensors and tensor");
  JITGEMM_TRY(json.require_object({"safetensors", "tensor"}));
  JITGEMM_ASSIGN(const JsonCursor file, json.required("safetensors"));
  JITGEMM_ASSIGN(output.file, file.file_name());
  JITGEMM_ASSIGN(const JsonCursor tensor, json.required("tensor"));
  JITGEMM_ASSIGN(output.tensor, tensor.text());
  if (output.tensor.empty() || output.tensor == "__metadata__")
    return tensor.expected("the name of a tensor");
  return output;
}

Status parse_shape(const JsonCursor& json, BufferDescription& buffer) {
  if (json.json().is_array()) {
    for (size_t i = 0; i < json.size(); ++i) {
      JITGEMM_ASSIGN(const uint64_t extent, json.element(i).integer(0, kMaxElements));
      buffer.shape.push_back(extent);
    }
  } else {
    JITGEMM_ASSIGN(const uint64_t extent, json.integer(0, kMaxElements));
    buffer.shape.push_back(extent);
  }
  uint64_t count = 1;
  for (const uint64_t extent : buffer.shape) {
    if (extent != 0 && count > kMaxElements / extent) {
      return json.error(fmt::format("expected at most {} elements", kMaxElements));
    }
    count *= extent;
  }
  buffer.bytes = count * buffer.type->bytes;
  return ok_status();
}

// Everything but contents, which may name other buffers.
Result<BufferDescription> parse_buffer(const JsonCursor& json, const std::string& name) {
  JITGEMM_TRY(json.require_object({"dtype", "shape", "access", "fill", "output", "expect"}));
  BufferDescription buffer;
  buffer.path = json.path();
  buffer.name = name;
  JITGEMM_ASSIGN(const JsonCursor dtype, json.required("dtype"));
  JITGEMM_ASSIGN(const std::string type, dtype.text());
  buffer.type = find_element_type(type);
  if (buffer.type == nullptr) return dtype.expected("one of " + element_type_list());
  JITGEMM_ASSIGN(const JsonCursor shape, json.required("shape"));
  JITGEMM_TRY(parse_shape(shape, buffer));
  if (const auto access = json.field("access")) {
    JITGEMM_ASSIGN(const std::string word, access->text());
    if (word == "in") {
      buffer.access = BufferAccess::kIn;
    } else if (word == "out") {
      buffer.access = BufferAccess::kOut;
    } else if (word != "inout") {
      return access->expected("in, out or inout");
    }
  }
  if (const auto output = json.field("output")) {
    JITGEMM_ASSIGN(buffer.output, parse_output(*output));
  }
  return buffer;
}

Status parse_contents(const JsonCursor& json, const NameTable& names, BufferDescription& buffer) {
  if (const auto fill = json.field("fill")) {
    JITGEMM_ASSIGN(buffer.content, parse_content(*fill, buffer, names));
  }
  const auto expect = json.field("expect");
  if (!expect) return ok_status();
  if (!expect->json().is_object()) return expect->expected("an object");
  ExpectationDescription expectation;
  if (const auto limit = expect->field("max_abs")) {
    JITGEMM_ASSIGN(expectation.max_abs, limit->number(0));
  }
  if (const auto limit = expect->field("max_rel")) {
    JITGEMM_ASSIGN(expectation.max_rel, limit->number(0));
  }
  JsonCursor::Json rest = expect->json();
  rest.erase("max_abs");
  rest.erase("max_rel");
  JITGEMM_ASSIGN(expectation.content, parse_content({rest, expect->path()}, buffer, names));
  buffer.expect = std::move(expectation);
  return ok_status();
}

Status parse_extents(const JsonCursor& launch, std::string_view name,
                     std::array<uint32_t, 3>& extents) {
  const auto json = launch.field(name);
  if (!json) return ok_status();
  constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
  if (!json->json().is_array()) {
    JITGEMM_ASSIGN(const uint64_t x, json->integer(1, kMost));
    extents[0] = static_cast<uint32_t>(x);
    return ok_status();
  }
  if (json->size() == 0 || json->size() > 3) return json->expected("1 to 3 integers");
  for (size_t i = 0; i < json->size(); ++i) {
    JITGEMM_ASSIGN(const uint64_t extent, json->element(i).integer(1, kMost));
    extents[i] = static_cast<uint32_t>(extent);
  }
  return ok_status();
}

Result<ParameterDescription> parse_parameter(const JsonCursor& json, const NameTable& names) {
  ParameterDescription parameter;
  parameter.path = json.path();
  if (!json.json().is_object()) return json.expected("an object");
  if (const auto name = json.field("name")) {
    JITGEMM_ASSIGN(parameter.name, name->text());
  }
  if (const auto fields = json.field("struct")) {
    JITGEMM_TRY(json.require_object({"name", "struct"}));
    parameter.is_struct = true;
    JITGEMM_ASSIGN(parameter.fields,
                   parse_fields(*fields, names, std::numeric_limits<uint32_t>::max()));
    return parameter;
  }
  JsonCursor::Json rest = json.json();
  rest.erase("name");
  JITGEMM_ASSIGN(FieldDescription field, parse_field({rest, json.path()}, names, false));
  parameter.fields.push_back(std::move(field));
  return parameter;
}

Result<LaunchDescription> parse_launch(const JsonCursor& json, const NameTable& names) {
  JITGEMM_TRY(json.require_object(
      {"entry", "grid", "block", "cluster", "dynamic_shared", "pdl", "parameters"}));
  LaunchDescription launch;
  launch.path = json.path();
  JITGEMM_ASSIGN(const JsonCursor entry, json.required("entry"));
  JITGEMM_ASSIGN(launch.entry, entry.text());
  JITGEMM_TRY(parse_extents(json, "grid", launch.grid));
  JITGEMM_TRY(parse_extents(json, "block", launch.block));
  JITGEMM_TRY(parse_extents(json, "cluster", launch.cluster));
  JITGEMM_ASSIGN(const uint64_t shared, integer_or(json, "dynamic_shared", 0, 0, 227 * 1024));
  launch.dynamic_shared_bytes = static_cast<uint32_t>(shared);
  if (const auto pdl = json.field("pdl")) {
    JITGEMM_ASSIGN(launch.programmatic_dependent, pdl->boolean());
  }
  if (const auto parameters = json.field("parameters")) {
    JITGEMM_TRY(parameters->require_array());
    for (size_t i = 0; i < parameters->size(); ++i) {
      JITGEMM_ASSIGN(ParameterDescription parameter,
                     parse_parameter(parameters->element(i), names));
      launch.parameters.push_back(std::move(parameter));
    }
  }
  return launch;
}

Status parse_options(const JsonCursor& json, RunOptions& options) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  JITGEMM_TRY(json.require_object({"seed", "last_warps", "numerics", "sanitize", "races", "strict",
                                   "threads", "step_limit", "time_limit", "memory_limit",
                                   "statistics", "trace"}));
  sim::Options& simulator = options.simulator;
  JITGEMM_ASSIGN(simulator.seed, integer_or(json, "seed", 0, 0, kMost));
  if (const auto warps = json.field("last_warps")) {
    JITGEMM_TRY(warps->require_array());
    for (size_t i = 0; i < warps->size(); ++i) {
      JITGEMM_ASSIGN(const uint64_t warp, warps->element(i).integer(0, 63));
      simulator.last_warps |= uint64_t{1} << warp;
    }
  }
  JITGEMM_ASSIGN(const uint64_t threads, integer_or(json, "threads", 1, 1, 1024));
  simulator.threads = static_cast<uint32_t>(threads);
  JITGEMM_ASSIGN(simulator.step_limit,
                 integer_or(json, "step_limit", simulator.step_limit, 1, kMost));
  JITGEMM_ASSIGN(const uint64_t seconds, integer_or(json, "time_limit", 0, 0, 1'000'000));
  simulator.time_limit_ms = seconds * 1000;
  JITGEMM_ASSIGN(options.memory_limit,
                 integer_or(json, "memory_limit", options.memory_limit, 1, kMost));
  if (const auto sanitize = json.field("sanitize")) {
    JITGEMM_ASSIGN(simulator.sanitize, sanitize->boolean());
  }
  if (const auto races = json.field("races")) {
    JITGEMM_ASSIGN(simulator.races, races->boolean());
  }
  if (const auto strict = json.field("strict")) {
    JITGEMM_ASSIGN(simulator.strict, strict->boolean());
  }
  if (const auto statistics = json.field("statistics")) {
    JITGEMM_ASSIGN(simulator.statistics, statistics->boolean());
  }
  if (const auto trace = json.field("trace")) {
    JITGEMM_ASSIGN(options.trace_file, trace->file_name());
  }
  if (const auto numerics = json.field("numerics")) {
    JITGEMM_ASSIGN(const std::string word, numerics->text());
    const std::optional<sim::Numerics> mode = parse_numerics(word);
    if (!mode) return numerics->expected("exact, hopper or blackwell");
    options.numerics = mode;
  }
  return ok_status();
}

}  // namespace

std::optional<sim::Numerics> parse_numerics(std::string_view word) {
  for (const sim::Numerics mode :
       {sim::Numerics::kExact, sim::Numerics::kHopper, sim::Numerics::kBlackwell}) {
    if (word == sim::numerics_name(mode)) return mode;
  }
  return std::nullopt;
}

Result<RunDescription> parse_launch_json(std::string_view text) {
  JITGEMM_ASSIGN(const nlohmann::json document, parse_strict_json(text, kMaxDepth));
  const JsonCursor root(document, "");
  JITGEMM_TRY(root.require_object({"schema", "buffers", "tensor_maps", "launches", "options"}));
  JITGEMM_ASSIGN(const JsonCursor schema, root.required("schema"));
  JITGEMM_TRY(schema.json() == 1 ? ok_status() : schema.expected("1"));
  RunDescription run;
  NameTable names;
  const auto buffers = root.field("buffers");
  if (buffers) {
    if (!buffers->json().is_object()) return buffers->expected("an object");
    for (const auto& [name, unused] : buffers->json().items()) {
      JITGEMM_ASSIGN(BufferDescription buffer, parse_buffer(*buffers->field(name), name));
      names.buffers[name] = {run.buffers.size(), buffer.bytes, buffer.type};
      run.buffers.push_back(std::move(buffer));
    }
  }
  if (const auto maps = root.field("tensor_maps")) {
    if (!maps->json().is_object()) return maps->expected("an object");
    for (const auto& [name, unused] : maps->json().items()) {
      JITGEMM_ASSIGN(TensorMapDescription map, parse_tensor_map(*maps->field(name), names));
      map.name = name;
      names.tensor_maps[name] = run.tensor_maps.size();
      run.tensor_maps.push_back(std::move(map));
    }
  }
  for (BufferDescription& buffer : run.buffers) {
    JITGEMM_TRY(parse_contents(*buffers->field(buffer.name), names, buffer));
  }
  JITGEMM_ASSIGN(const JsonCursor launches, root.required("launches"));
  JITGEMM_TRY(launches.require_array());
  for (size_t i = 0; i < launches.size(); ++i) {
    JITGEMM_ASSIGN(LaunchDescription launch, parse_launch(launches.element(i), names));
    run.launches.push_back(std::move(launch));
  }
  if (run.launches.empty()) return launches.expected("at least one launch");
  if (const auto options = root.field("options")) {
    JITGEMM_TRY(parse_options(*options, run.options));
  }
  return run;
}

}  // namespace jitgemm::simrun
