// SPDX-License-Identifier: Apache-2.0
#include "support/strict_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace jitgemm {
namespace {

using Json = nlohmann::json;

// Reads a text without keeping it: the parser that keeps it takes the last of two equal keys in
// silence, and with a callback it takes time that grows with the square of an object's size.
class Strictness final : public nlohmann::json_sax<Json> {
 public:
  explicit Strictness(int max_depth) : max_depth_(max_depth) {}

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_array(size_t /*elements*/) override { return open(); }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool start_object(size_t /*elements*/) override {
    keys_.emplace_back();
    return open();
  }
  bool end_object() override {
    --depth_;
    keys_.pop_back();
    return true;
  }
  bool key(string_t& key) override {
    if (keys_.back().insert(key).second) return true;
    fault_ = "key " + printable(key) + " appears twice";
    return false;
  }
  bool parse_error(size_t byte, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    too_large_ = dynamic_cast<const Json::out_of_range*>(&error) != nullptr;
    byte_ = byte;
    return false;
  }

  const std::string& fault() const { return fault_; }  // of what is JSON; empty: none
  bool too_large() const { return too_large_; }        // a number is
  size_t byte() const { return byte_; }                // where it stopped

 private:
  bool open() {
    if (++depth_ <= max_depth_) return true;
    fault_ = "nested too deeply";
    return false;
  }

  int max_depth_, depth_ = 0;
  std::vector<std::set<std::string>> keys_;
  std::string fault_;
  bool too_large_ = false;
  size_t byte_ = 0;
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
  if (!Json::sax_parse(text, &strictness)) {
    if (!strictness.fault().empty()) return corrupt_data(strictness.fault());
    if (strictness.too_large()) return corrupt_data("not JSON: a number is too large for a double");
    return corrupt_data("not JSON: " + describe_place(text, strictness.byte()));
  }
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
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
