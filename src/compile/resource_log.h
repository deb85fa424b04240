// SPDX-License-Identifier: Apache-2.0
// Reads ptxas' resource lines out of a compile log.
#pragma once

#include "compile/kernel_image.h"

#include <string>
#include <string_view>

namespace jitgemm {

// Fills registers, spills, stack and static shared memory; lines that are not about resources
// become image.warnings.
void read_resource_log(std::string_view log, KernelImage& image);

}  // namespace jitgemm
