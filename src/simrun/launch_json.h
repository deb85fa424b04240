// SPDX-License-Identifier: Apache-2.0
// A launch description from JSON; the format is in docs/simulator.md. The text is distrusted: every
// error is a status with the path of the value, what was expected and what was found.
#pragma once

#include "simrun/launch_description.h"
#include "support/result.h"

#include <string_view>

namespace jitgemm::simrun {

Result<RunDescription> parse_launch_json(std::string_view text);

}  // namespace jitgemm::simrun
