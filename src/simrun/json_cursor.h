// SPDX-License-Identifier: Apache-2.0
// A value of a JSON document that knows its path, so that every error says where, what was expected
// and what was found. Unknown fields are errors. Not for other folders.
#pragma once

#include "support/result.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace jitgemm::simrun {

class JsonCursor {
 public:
  using Json = nlohmann::json;

  JsonCursor(const Json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  const Json& json() const { return *value_; }
  // INVALID_ARGUMENT "path: expected what, found ...".
  Status expected(std::string_view what) const;
  Status error(std::string_view what) const;

  // An object whose fields are all among the names.
  Status require_object(std::initializer_list<std::string_view> fields) const;
  Status require_array() const;
  size_t size() const { return value_->size(); }
  JsonCursor element(size_t i) const;
  std::optional<JsonCursor> field(std::string_view name) const;
  Result<JsonCursor> required(std::string_view name) const;

  Result<std::string> text() const;
  // Text that can name a file.
  Result<std::string> file_name() const;
  Result<bool> boolean() const;
  Result<uint64_t> integer(uint64_t least, uint64_t most) const;
  Result<int64_t> signed_integer(int64_t least, int64_t most) const;
  Result<double> number(double least) const;
  Result<double> number() const;

 private:
  const Json* value_;
  std::string path_;
};

}  // namespace jitgemm::simrun
