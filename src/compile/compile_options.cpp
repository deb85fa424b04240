// SPDX-License-Identifier: Apache-2.0
#include "compile/compiler.h"

namespace jitgemm {

std::vector<std::string> compile_options(const std::string& target) {
  return {
      "--gpu-architecture=" + target,
      "--std=c++20",
      "-default-device",
      // Registers and spills come back in the log. It leaves the code as it is, but is recorded in
      // the cubin, so it is always on: the same kernel has one image.
      "--ptxas-options=-v",
  };
}

}  // namespace jitgemm
