// SPDX-License-Identifier: Apache-2.0
#include "support/strict_json.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <set>
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

}  // namespace

Result<Json> parse_strict_json(std::string_view text, int max_depth) {
  Strictness strictness(max_depth);
  Json parsed = Json::parse(text, std::ref(strictness), /*allow_exceptions=*/false);
  if (!strictness.fault().empty()) return corrupt_data(strictness.fault());
  if (parsed.is_discarded()) return corrupt_data("not JSON");
  return parsed;
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
