// SPDX-License-Identifier: Apache-2.0
// The compiler that we ship with: NVRTC, in this process, opened at first need.
#pragma once

#include "compile/compiler.h"
#include "compile/nvrtc_api.h"

#include <memory>
#include <string>

namespace jitgemm {

class NvrtcCompiler final : public Compiler {
 public:
  // `path` empty: found by the loader or in the usual places.
  static Result<std::unique_ptr<NvrtcCompiler>> open(const std::string& path);

  std::string identity() const override { return identity_; }
  Result<KernelImage> compile(const KernelSource& source) const override;

  const NvrtcApi& api() const { return api_; }

 private:
  explicit NvrtcCompiler(NvrtcApi api);

  NvrtcApi api_;
  std::string name_;      // "nvrtc 13.0"
  std::string identity_;  // the name and a digest of the library file
};

}  // namespace jitgemm
