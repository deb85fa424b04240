// SPDX-License-Identifier: Apache-2.0
// Ranges (%r<1000>) are kept as ranges: a thousand names cost one entry.
#include "ptx/scope.h"

#include <charconv>

namespace jitgemm::ptx {

uint32_t ScopeTree::add_scope(uint32_t parent) {
  scopes_.emplace_back().parent = parent;
  return static_cast<uint32_t>(scopes_.size() - 1);
}

bool ScopeTree::declare(uint32_t scope, std::string_view name, Name value) {
  return scopes_[scope].names.emplace(name, value).second;
}

void ScopeTree::replace(uint32_t scope, std::string_view name, Name value) {
  scopes_[scope].names.insert_or_assign(name, value);
}

bool ScopeTree::declare_range(uint32_t scope, std::string_view prefix, uint32_t first,
                              uint32_t count, uint32_t elements) {
  return scopes_[scope].ranges.emplace(prefix, Range{first, count, elements}).second;
}

std::optional<Name> ScopeTree::find_here(const Scope& scope, std::string_view name) const {
  if (const auto found = scope.names.find(name); found != scope.names.end()) return found->second;
  if (scope.ranges.empty()) return std::nullopt;
  // The prefix may end in digits itself (%r1_<4>), so every split is tried, shortest number first.
  constexpr size_t kMaxDigits = 7;
  for (size_t digits = 1; digits <= kMaxDigits && digits < name.size(); ++digits) {
    const std::string_view number = name.substr(name.size() - digits);
    if (number.front() < '0' || number.front() > '9') break;
    if (number.front() == '0' && digits > 1) continue;
    const auto range = scope.ranges.find(name.substr(0, name.size() - digits));
    if (range == scope.ranges.end()) continue;
    uint32_t value = 0;
    std::from_chars(number.data(), number.data() + number.size(), value);
    const Range& r = range->second;
    if (value < r.count)
      return Name{Name::Kind::kRegister, r.first + value * r.elements, r.elements};
  }
  return std::nullopt;
}

std::optional<Name> ScopeTree::find(uint32_t scope, std::string_view name) const {
  for (uint32_t at = scope; at != kNoIndex; at = scopes_[at].parent) {
    if (auto found = find_here(scopes_[at], name)) return found;
  }
  return std::nullopt;
}

}  // namespace jitgemm::ptx
