// SPDX-License-Identifier: Apache-2.0
#include "ptx/confirmations.h"

#include "support/filesystem.h"
#include "support/strict_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

namespace jitgemm::ptx_cases {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<const char*, std::string Confirmation::*> kFields[] = {
    {"case",    &Confirmation::place  },
    {"digest",  &Confirmation::digest },
    {"result",  &Confirmation::result },
    {"message", &Confirmation::message},
    {"output",  &Confirmation::output },
    {"gpu",     &Confirmation::gpu    },
    {"driver",  &Confirmation::driver },
    {"commit",  &Confirmation::commit },
    {"date",    &Confirmation::date   },
};

Result<Confirmation> from_json(const nlohmann::json& json) {
  Confirmation record;
  if (!json.is_object()) return corrupt_data("a record: expected an object");
  for (const auto& [key, value] : json.items()) {
    const auto* field = std::find_if(std::begin(kFields), std::end(kFields),
                                     [&](const auto& f) { return f.first == key; });
    if (field == std::end(kFields) || !value.is_string()) {
      return corrupt_data("a record: unexpected field " + printable(key));
    }
    record.*field->second = value.get<std::string>();
  }
  if (record.digest.size() != 64) return corrupt_data("a record: expected a digest");
  return record;
}

}  // namespace

std::string to_line(const Confirmation& record) {
  Json json;
  for (const auto& [name, field] : kFields) {
    if (!(record.*field).empty()) json[name] = record.*field;
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Confirmation> from_line(std::string_view line) {
  JITGEMM_ASSIGN(const nlohmann::json json, parse_strict_json(line, 2));
  return from_json(json);
}

Result<Confirmations> read_confirmations(const std::string& path) {
  Confirmations records;
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return records;
  JITGEMM_ASSIGN(const std::string text, read_file(path));
  auto json = parse_strict_json(text, 4);
  if (!json) return json.error().with_context(path);
  if (!json->is_object() || json->value("schema", 0) != 1 || !json->contains("records")) {
    return corrupt_data(path + ": expected schema 1 and records");
  }
  for (const nlohmann::json& row : (*json)["records"]) {
    auto record = from_json(row);
    if (!record) return record.error().with_context(path);
    records[record->digest] = *record;
  }
  return records;
}

Status write_confirmations(const std::string& path, const Confirmations& records) {
  // In the order of the cases, a line each, so that a diff shows what has changed.
  std::vector<const Confirmation*> sorted;
  for (const auto& [digest, record] : records) sorted.push_back(&record);
  const auto key = [](const Confirmation* r) {
    const size_t colon = r->place.find(':');
    const std::string number = colon == std::string::npos ? "0" : r->place.substr(colon + 1);
    return std::pair(r->place.substr(0, colon), std::stoul(number));
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const auto* a, const auto* b) { return key(a) < key(b); });
  std::string text = "{\"schema\": 1, \"records\": [\n";
  for (size_t i = 0; i < sorted.size(); ++i) {
    text += to_line(*sorted[i]) + (i + 1 < sorted.size() ? ",\n" : "\n");
  }
  return write_file(path, text + "]}\n");
}

}  // namespace jitgemm::ptx_cases
