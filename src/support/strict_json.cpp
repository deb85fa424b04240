// SPDX-License-Identifier: Apache-2.0
#include "support/strict_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace jitgemm {
namespace {

using Json = nlohmann::json;

// The parser's callback: sees each key before the object silently keeps only the last of two.
class Strictness {
 public:
  explicit Strictness(int max_depth) : max_depth_(max_depth) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (!fault_.empty()) return false;
    const bool opens =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth >= max_depth_) fault_ = "nested too deeply";
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end && !keys_.empty()) keys_.pop_back();
    if (event == Json::parse_event_t::key && !keys_.empty()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) fault_ = "key " + printable(key) + " appears twice";
    }
    return fault_.empty();
  }
  const std::string& fault() const { return fault_; }

 private:
  int max_depth_;
  std::vector<std::set<std::string>> keys_;
  std::string fault_;
};

// Where the parser stopped, whose count of bytes begins with 1.
std::string describe_place(std::string_view text, size_t byte) {
  const size_t at = std::min(byte == 0 ? 0 : byte - 1, text.size());
  const std::string_view before = text.substr(0, at);
  const size_t line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const size_t newline = before.rfind('\n');
  const size_t column = newline == std::string_view::npos ? at + 1 : at - newline;
  const std::string_view rest = text.substr(at, 16);
  return "line " + std::to_string(line) + ", column " + std::to_string(column) + ", at " +
         (rest.empty() ? "the end of the text" : printable(rest));
}

}  // namespace

Result<Json> parse_strict_json(std::string_view text, int max_depth) {
  Strictness strictness(max_depth);
  try {
    Json parsed = Json::parse(text, std::ref(strictness));
    if (!strictness.fault().empty()) return corrupt_data(strictness.fault());
    if (!parsed.is_discarded()) return parsed;
    return corrupt_data("not JSON");
  } catch (const Json::parse_error& error) {
    if (!strictness.fault().empty()) return corrupt_data(strictness.fault());
    return corrupt_data("not JSON: " + describe_place(text, error.byte));
  } catch (const Json::out_of_range&) {
    if (!strictness.fault().empty()) return corrupt_data(strictness.fault());
    return corrupt_data("not JSON: a number is too large for a double");
  }
}

std::string printable(std::string_view text) {
  std::string result = "'";
  for (const char c : text.substr(0, 64)) {
    const bool visible = static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
    result += visible ? c : '?';
  }
  return result + (text.size() > 64 ? "...'" : "'");
}

}  // namespace jitgemm
