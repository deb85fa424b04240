// SPDX-License-Identifier: Apache-2.0
// JSON from files that nobody vouches for: no key twice in an object, bounded nesting, no
// exception.
#pragma once

#include "support/result.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace jitgemm {

// CORRUPT_DATA with the reason. `max_depth` counts containers inside each other.
Result<nlohmann::json> parse_strict_json(std::string_view text, int max_depth);

// Text from a file in quotes, cut to 64 characters and with control characters replaced: fit for an
// error message.
std::string printable(std::string_view text);

}  // namespace jitgemm
