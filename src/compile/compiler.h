// SPDX-License-Identifier: Apache-2.0
// source -> image. An interface, so that tests can put a scripted compiler in NVRTC's place.
#pragma once

#include "compile/kernel_image.h"
#include "specialize/kernel_source.h"
#include "support/result.h"

#include <string>
#include <vector>

namespace jitgemm {

class Compiler {
 public:
  virtual ~Compiler() = default;

  // Tells two compilers apart that may produce different code; part of the cache key.
  virtual std::string identity() const = 0;
  // Thread-safe; takes 0.1 to 0.3 s.
  virtual Result<KernelImage> compile(const KernelSource& source) const = 0;
};

// The one ordered list of options, for the compiler and for the cache key.
std::vector<std::string> compile_options(const std::string& target);

}  // namespace jitgemm
