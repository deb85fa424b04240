// SPDX-License-Identifier: Apache-2.0
#include "mutating_device.h"

#include <array>

namespace jitgemm {
namespace {

constexpr size_t kMostRanges = 12;

// Stores every byte of its ranges again.
struct RewriteParams {
  std::array<uint64_t, kMostRanges> address{}, bytes{};
};

constexpr const char* kRewriter = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry rewrite(.param .align 8 .b8 ranges[192])
{
  .reg .pred %p<3>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<8>;
  mov.b64 %rd1, ranges;
  mov.u32 %r1, 12;
next_range:
  ld.param.u64 %rd2, [%rd1];
  ld.param.u64 %rd3, [%rd1+96];
  mov.u32 %r2, %tid.x;
  cvt.u64.u32 %rd4, %r2;
next_byte:
  setp.ge.u64 %p1, %rd4, %rd3;
  @%p1 bra done;
  add.u64 %rd5, %rd2, %rd4;
  ld.global.b8 %r3, [%rd5];
  st.global.b8 [%rd5], %r3;
  add.u64 %rd4, %rd4, 256;
  bra next_byte;
done:
  add.u64 %rd1, %rd1, 8;
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p2, %r1, 0;
  @%p2 bra next_range;
  ret;
}
)";

}  // namespace

Result<std::unique_ptr<LoadedKernel>> MutatingDevice::load(const KernelImage& image,
                                                           const LaunchGeometry& geometry) {
  loaded_.push_back(image.ptx);
  KernelImage chosen = image;
  if (image.ptx == original_) chosen.ptx = mutant_;
  if (rewriter_of_all_) rewriter_of_all_(chosen);
  JITGEMM_ASSIGN(std::unique_ptr<LoadedKernel> kernel, simulator_.load(chosen, geometry));
  if (image.ptx == original_) replaced_ = kernel.get();
  if (predecessor_ && rewriter_ == nullptr) {
    KernelImage rewriter;
    rewriter.entry = "rewrite";
    rewriter.target = image.target;
    rewriter.ptx = kRewriter;
    JITGEMM_ASSIGN(rewriter_, simulator_.load(rewriter, {}));
  }
  return kernel;
}

Status MutatingDevice::rewrite(const LaunchRequest& request, StreamHandle stream) const {
  if (request.ranges.size() > kMostRanges) return invalid_argument("too many ranges");
  RewriteParams params;
  std::vector<MemoryRange> ranges(request.ranges.begin(), request.ranges.end());
  for (size_t i = 0; i < ranges.size(); ++i) {
    params.address[i] = ranges[i].address;
    params.bytes[i] = ranges[i].bytes;
    ranges[i].writable = ranges[i].updated = true;
  }
  LaunchRequest rewrite;
  rewrite.geometry.grid = rewrite.geometry.cluster = {1, 1, 1};
  rewrite.geometry.block = {256, 1, 1};
  rewrite.params = &params;
  rewrite.param_bytes = sizeof(params);
  rewrite.ranges = ranges;
  return simulator_.launch(*rewriter_, rewrite, stream);
}

Status MutatingDevice::launch(const LoadedKernel& kernel, const LaunchRequest& request,
                              StreamHandle stream) const {
  if (!predecessor_ || &kernel != replaced_) return simulator_.launch(kernel, request, stream);
  JITGEMM_TRY(rewrite(request, stream));
  LaunchRequest dependent = request;
  dependent.programmatic_dependence = true;
  return simulator_.launch(kernel, dependent, stream);
}

}  // namespace jitgemm
