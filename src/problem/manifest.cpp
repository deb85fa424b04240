// SPDX-License-Identifier: Apache-2.0
#include "problem/manifest.h"

#include "support/filesystem.h"
#include "support/strict_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

namespace jitgemm {
namespace {

using Json = nlohmann::json;

constexpr int kSchema = 1;
constexpr std::string_view kOperation = "block_scaled_mm";
constexpr std::string_view kGroupedOperation = "group_gemm_fp8_nt_groupwise";
constexpr size_t kMaxEntries = 100'000;
constexpr int64_t kMaxExactMs = 65'536;  // each may be a kernel

constexpr std::array<std::string_view, 21> kEntryFields = {
    "op",
    "m",
    "n",
    "k",
    "group_n",
    "group_k",
    "a_dtype",
    "a_code_dtype",
    "b_dtype",
    "scale_dtype",
    "out_dtype",
    "scale_values",
    "a_scale_major",
    "b_scale_major",
    "m_policy",
    "archs",
    "layout",
    "groups",
    "expected_m",
    "row_alignment",
    "zero_ungrouped",
};

// A value as an error message shows it.
std::string shown(const Json& value) {
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Status bad_field(std::string_view field, std::string_view expected, const Json& found) {
  return corrupt_data(
      fmt::format("field '{}': expected {}, found {}", field, expected, shown(found)));
}

// The fields of one entry; what it does not have comes from the manifest's defaults.
class Fields {
 public:
  Fields(const Json& entry, const Json& defaults) : entry_(entry), defaults_(defaults) {}

  // Null when neither has it.
  const Json* find(std::string_view field) const {
    for (const Json* object : {&entry_, &defaults_}) {
      if (const auto it = object->find(field); it != object->end()) return &*it;
    }
    return nullptr;
  }
  Result<const Json*> require(std::string_view field) const {
    if (const Json* value = find(field)) return value;
    return corrupt_data(fmt::format("field '{}' is missing", field));
  }

 private:
  const Json& entry_;
  const Json& defaults_;
};

Result<int64_t> to_integer(std::string_view field, const Json& value, int64_t greatest) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(greatest)) {
    return bad_field(field, fmt::format("an integer from 0 to {}", greatest), value);
  }
  return value.get<int64_t>();
}

template <typename Integer>
Status read_integer(const Fields& fields, std::string_view field, bool required, Integer& target) {
  const Json* value = fields.find(field);
  if (value == nullptr) {
    if (!required) return ok_status();
    return corrupt_data(fmt::format("field '{}' is missing", field));
  }
  constexpr int64_t kGreatest = std::numeric_limits<Integer>::max();
  JITGEMM_ASSIGN(const int64_t number, to_integer(field, *value, kGreatest));
  target = static_cast<Integer>(number);
  return ok_status();
}

// A string field that stands for one of a few values.
template <typename Value>
Status read_choice(const Fields& fields, std::string_view field, std::string_view expected,
                   const std::vector<std::pair<std::string_view, Value>>& choices, Value& target) {
  const Json* value = fields.find(field);
  if (value == nullptr) return ok_status();
  if (value->is_string()) {
    for (const auto& [text, choice] : choices) {
      if (value->get_ref<const std::string&>() == text) {
        target = choice;
        return ok_status();
      }
    }
  }
  return bad_field(field, expected, *value);
}

Status read_dtype(const Fields& fields, std::string_view field, std::string_view expected,
                  const std::vector<DType>& accepted, DType& target) {
  std::vector<std::pair<std::string_view, DType>> choices;
  choices.reserve(accepted.size());
  for (const DType dtype : accepted) choices.emplace_back(dtype_info(dtype).name, dtype);
  return read_choice(fields, field, expected, choices, target);
}

Status read_flag(const Fields& fields, std::string_view field, bool& target) {
  const Json* value = fields.find(field);
  if (value == nullptr) return ok_status();
  if (!value->is_boolean()) return bad_field(field, "true or false", *value);
  target = value->get<bool>();
  return ok_status();
}

Status read_grouping(const Fields& fields, Grouping& grouping) {
  JITGEMM_TRY(fields.require("layout").error());
  std::vector<std::pair<std::string_view, GroupLayout>> layouts;
  for (const GroupLayout layout : {GroupLayout::kRowIndices, GroupLayout::kEndOffsets,
                                   GroupLayout::kRowPointers, GroupLayout::kMasked}) {
    layouts.emplace_back(group_layout_name(layout), layout);
  }
  JITGEMM_TRY(read_choice(fields, "layout", "row_indices, end_offsets, row_pointers or masked",
                          layouts, grouping.layout));
  constexpr int64_t kGreatest = std::numeric_limits<int32_t>::max();
  JITGEMM_ASSIGN(const Json* groups, fields.require("groups"));
  JITGEMM_ASSIGN(grouping.groups, to_integer("groups", *groups, kGreatest));
  if (const Json* expected = fields.find("expected_m")) {
    JITGEMM_ASSIGN(grouping.expected_m, to_integer("expected_m", *expected, kGreatest));
  }
  JITGEMM_TRY(read_integer(fields, "row_alignment", false, grouping.row_alignment));
  return read_flag(fields, "zero_ungrouped", grouping.zero_ungrouped);
}

// What only grouped entries may have.
Status refuse_grouping(const Fields& fields) {
  for (const std::string_view field :
       {"layout", "groups", "expected_m", "row_alignment", "zero_ungrouped"}) {
    if (fields.find(field) == nullptr) continue;
    return corrupt_data(fmt::format("field '{}' is for \"{}\"", field, kGroupedOperation));
  }
  return ok_status();
}

Status read_m(const Fields& fields, ManifestEntry& entry) {
  constexpr int64_t kGreatest = std::numeric_limits<int32_t>::max();
  JITGEMM_ASSIGN(const Json* value, fields.require("m"));
  if (!value->is_array()) {
    JITGEMM_ASSIGN(entry.m_last, to_integer("m", *value, kGreatest));
    entry.m_first = entry.m_last;
    entry.problem.m_policy = MPolicy::kExact;
  } else {
    if (value->size() != 2) return bad_field("m", "an integer, or [first, last]", *value);
    JITGEMM_ASSIGN(entry.m_first, to_integer("m", (*value)[0], kGreatest));
    JITGEMM_ASSIGN(entry.m_last, to_integer("m", (*value)[1], kGreatest));
    if (entry.m_first > entry.m_last) return bad_field("m", "first <= last", *value);
    entry.problem.m_policy = MPolicy::kClass;
  }
  entry.problem.m = entry.m_last;
  return ok_status();
}

Status read_archs(const Fields& fields, ManifestEntry& entry) {
  JITGEMM_ASSIGN(const Json* value, fields.require("archs"));
  if (!value->is_array() || value->empty()) {
    return bad_field("archs", "a list of targets, e.g. [\"sm_90a\"]", *value);
  }
  for (const Json& item : *value) {
    if (!item.is_string()) return bad_field("archs", "a list of targets", *value);
    const auto arch = parse_arch(item.get_ref<const std::string&>());
    if (!arch) return arch.error().with_context("field 'archs'");
    if (std::find(entry.archs.begin(), entry.archs.end(), *arch) != entry.archs.end()) {
      return bad_field("archs", "each target once", *value);
    }
    entry.archs.push_back(*arch);
  }
  return ok_status();
}

Status check_fields(const Json& object, bool named) {
  for (const auto& [key, unused] : object.items()) {
    if (named && key == "name") continue;
    if (std::find(kEntryFields.begin(), kEntryFields.end(), key) == kEntryFields.end()) {
      return corrupt_data(fmt::format("unknown field {}", printable(key)));
    }
  }
  return ok_status();
}

Status read_entry(const Json& object, const Json& defaults, ManifestEntry& entry) {
  JITGEMM_TRY(check_fields(object, /*named=*/true));
  const Fields fields(object, defaults);
  JITGEMM_ASSIGN(const Json* operation, fields.require("op"));
  GemmProblem& p = entry.problem;
  if (*operation == kGroupedOperation) {
    JITGEMM_TRY(read_grouping(fields, p.grouping));
  } else if (*operation == kOperation) {
    JITGEMM_TRY(refuse_grouping(fields));
  } else {
    return bad_field("op", fmt::format("\"{}\" or \"{}\"", kOperation, kGroupedOperation),
                     *operation);
  }
  JITGEMM_TRY(read_m(fields, entry));
  JITGEMM_TRY(read_integer(fields, "n", true, p.n));
  JITGEMM_TRY(read_integer(fields, "k", true, p.k));
  JITGEMM_TRY(read_integer(fields, "group_n", false, p.group_n));
  JITGEMM_TRY(read_integer(fields, "group_k", false, p.group_k));
  const std::vector<DType> codes = {DType::kF8E4M3, DType::kF8E5M2};
  JITGEMM_TRY(read_dtype(fields, "a_dtype", "F8_E4M3, F8_E5M2, F32, BF16 or F16",
                         {DType::kF8E4M3, DType::kF8E5M2, DType::kF32, DType::kBF16, DType::kF16},
                         p.a_dtype));
  JITGEMM_TRY(read_dtype(fields, "a_code_dtype", "F8_E4M3 or F8_E5M2", codes, p.a_code_dtype));
  JITGEMM_TRY(read_dtype(fields, "b_dtype", "F8_E4M3 or F8_E5M2", codes, p.b_dtype));
  JITGEMM_TRY(read_dtype(fields, "scale_dtype", "F32 or F8_E8M0", {DType::kF32, DType::kF8E8M0},
                         p.scale_dtype));
  JITGEMM_TRY(read_dtype(fields, "out_dtype", "F32, BF16 or F16",
                         {DType::kF32, DType::kBF16, DType::kF16}, p.out_dtype));
  JITGEMM_TRY(read_choice<ScaleValues>(
      fields, "scale_values", "any or pow2",
      {
          {"any",  ScaleValues::kAnyFloat  },
          {"pow2", ScaleValues::kPowerOfTwo}
  },
      p.scale_values));
  const std::vector<std::pair<std::string_view, ScaleMajor>> majors = {
      {"row",    ScaleMajor::kRow   },
      {"column", ScaleMajor::kColumn},
      {"packed", ScaleMajor::kPacked}
  };
  const std::string_view expected_major = "row, column or packed";
  JITGEMM_TRY(read_choice(fields, "a_scale_major", expected_major, majors, p.a_scale_major));
  JITGEMM_TRY(read_choice(fields, "b_scale_major", expected_major, majors, p.b_scale_major));
  JITGEMM_TRY(read_choice<MPolicy>(
      fields, "m_policy", "exact, class or any",
      {
          {"exact", MPolicy::kExact},
          {"class", MPolicy::kClass},
          {"any",   MPolicy::kAny  }
  },
      p.m_policy));
  if (const int64_t ms = entry.m_last - entry.m_first + 1;
      p.m_policy == MPolicy::kExact && ms > kMaxExactMs) {
    return bad_field(
        "m", fmt::format("a range of at most {} values, since \"m_policy\" is exact", kMaxExactMs),
        *fields.find("m"));
  }
  JITGEMM_TRY(read_archs(fields, entry));
  for (const Arch arch : entry.archs) {
    p.arch = arch;
    // A wrong value in a file is bad data, not a wrong call; what has no kernel stays UNSUPPORTED.
    const Status status = validate(p);
    if (status.code() == StatusCode::kInvalidArgument) return corrupt_data(status.message());
    JITGEMM_TRY(status);
  }
  return ok_status();
}

Status read_text(const Json& object, std::string_view field, std::string& target) {
  const auto it = object.find(field);
  if (it == object.end()) return corrupt_data(fmt::format("field '{}' is missing", field));
  if (!it->is_string() || it->get_ref<const std::string&>().empty()) {
    return bad_field(field, "a text that is not empty", *it);
  }
  target = it->get<std::string>();
  return ok_status();
}

Status read_top(const Json& root, Manifest& manifest) {
  if (!root.is_object()) return corrupt_data("expected an object");
  for (const auto& [key, unused] : root.items()) {
    if (key != "schema" && key != "name" && key != "description" && key != "defaults" &&
        key != "entries") {
      return corrupt_data(fmt::format("unknown field {}", printable(key)));
    }
  }
  if (!root.contains("schema")) return corrupt_data("field 'schema' is missing");
  if (!root["schema"].is_number_integer() || root["schema"] != kSchema) {
    return unsupported(fmt::format("field 'schema': this version reads {}, found {}", kSchema,
                                   shown(root["schema"])));
  }
  JITGEMM_TRY(read_text(root, "name", manifest.name));
  return read_text(root, "description", manifest.description);
}

Result<Json> read_defaults(const Json& root) {
  if (!root.contains("defaults")) return Json::object();
  const Json& defaults = root["defaults"];
  if (!defaults.is_object()) return bad_field("defaults", "an object", defaults);
  JITGEMM_TRY(check_fields(defaults, /*named=*/false).with_context("defaults"));
  return defaults;
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view json) {
  JITGEMM_ASSIGN(const Json root, parse_strict_json(json, 5));
  Manifest manifest;
  JITGEMM_TRY(read_top(root, manifest));
  JITGEMM_ASSIGN(const Json defaults, read_defaults(root));
  if (!root.contains("entries")) return corrupt_data("field 'entries' is missing");
  const Json& entries = root["entries"];
  if (!entries.is_array() || entries.empty() || entries.size() > kMaxEntries) {
    return corrupt_data(fmt::format("field 'entries': expected a list of 1 to {}", kMaxEntries));
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string where = fmt::format("entries[{}]", i);
    if (!entries[i].is_object()) return corrupt_data(where + ": expected an object");
    ManifestEntry entry;
    JITGEMM_TRY(read_text(entries[i], "name", entry.name).with_context(where));
    JITGEMM_TRY(read_entry(entries[i], defaults, entry)
                    .with_context(fmt::format("{} {}", where, printable(entry.name))));
    manifest.entries.push_back(std::move(entry));
  }
  return manifest;
}

Result<Manifest> read_manifest(const std::string& path) {
  JITGEMM_ASSIGN(const std::string text, read_file(path));
  auto manifest = parse_manifest(text);
  if (!manifest) return manifest.error().with_context(path);
  return manifest;
}

}  // namespace jitgemm
