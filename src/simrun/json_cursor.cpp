// SPDX-License-Identifier: Apache-2.0
#include "simrun/json_cursor.h"

#include "support/strict_json.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitgemm::simrun {
namespace {

std::string join(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

std::string describe(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (value.is_string()) return printable(value.get_ref<const std::string&>());
  return value.dump();
}

}  // namespace

Status JsonCursor::error(std::string_view what) const {
  return invalid_argument(fmt::format("{}: {}", path_.empty() ? "document" : path_, what));
}

Status JsonCursor::expected(std::string_view what) const {
  return error(fmt::format("expected {}, found {}", what, describe(*value_)));
}

Status JsonCursor::require_object(std::initializer_list<std::string_view> fields) const {
  if (!value_->is_object()) return expected("an object");
  for (const auto& [key, unused] : value_->items()) {
    if (std::find(fields.begin(), fields.end(), key) != fields.end()) continue;
    std::string known;
    for (const std::string_view field : fields) {
      known += (known.empty() ? "" : ", ") + std::string(field);
    }
    return error(fmt::format("expected fields among {}, found {}", known, printable(key)));
  }
  return ok_status();
}

Status JsonCursor::require_array() const {
  return value_->is_array() ? ok_status() : expected("an array");
}

JsonCursor JsonCursor::element(size_t i) const {
  return {(*value_)[i], fmt::format("{}[{}]", path_, i)};
}

std::optional<JsonCursor> JsonCursor::field(std::string_view name) const {
  const auto found = value_->find(name);
  if (found == value_->end()) return std::nullopt;
  return JsonCursor(*found, join(path_, name));
}

Result<JsonCursor> JsonCursor::required(std::string_view name) const {
  if (std::optional<JsonCursor> found = field(name)) return *found;
  return error(fmt::format("expected a field '{}', found none", name));
}

Result<std::string> JsonCursor::text() const {
  if (!value_->is_string()) return expected("a string");
  return value_->get<std::string>();
}

Result<std::string> JsonCursor::file_name() const {
  JITGEMM_ASSIGN(std::string name, text());
  if (name.empty() || name.find('\0') != std::string::npos) return expected("the name of a file");
  return name;
}

Result<bool> JsonCursor::boolean() const {
  if (!value_->is_boolean()) return expected("true or false");
  return value_->get<bool>();
}

Result<uint64_t> JsonCursor::integer(uint64_t least, uint64_t most) const {
  if (value_->is_number_unsigned()) {
    if (const auto v = value_->get<uint64_t>(); v >= least && v <= most) return v;
  }
  return expected(fmt::format("an integer from {} to {}", least, most));
}

Result<int64_t> JsonCursor::signed_integer(int64_t least, int64_t most) const {
  const bool fits = value_->is_number_integer() &&
                    (!value_->is_number_unsigned() || value_->get<uint64_t>() <= INT64_MAX);
  if (fits && value_->get<int64_t>() >= least && value_->get<int64_t>() <= most)
    return value_->get<int64_t>();
  return expected(fmt::format("an integer from {} to {}", least, most));
}

Result<double> JsonCursor::number(double least) const {
  if (value_->is_number() && value_->get<double>() >= least) return value_->get<double>();
  return expected(fmt::format("a number from {} up", least));
}

Result<double> JsonCursor::number() const {
  if (!value_->is_number()) return expected("a number");
  return value_->get<double>();
}

}  // namespace jitgemm::simrun
