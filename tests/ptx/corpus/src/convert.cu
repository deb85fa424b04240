// SPDX-License-Identifier: Apache-2.0
// Conversions of narrow formats through the toolkit's headers, which bring much inline assembly.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#if __CUDA_ARCH__ >= 1000
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#endif

extern "C" __global__ void convert_kernel(const float* in, unsigned char* out8, __half* out16,
                                          __nv_bfloat16* outb) {
  const int i = threadIdx.x;
  const float x = in[i];
  const __nv_fp8_e4m3 a(x);
  const __nv_fp8_e5m2 b(x * 2);
  out8[i] = a.__x ^ b.__x;
  const __half h = __float2half_rn(x);
  out16[i] = __hadd(__hmul(h, h), __float2half(static_cast<float>(a)));
  const __half2 h2 = __floats2half2_rn(x, -x);
  out16[64 + i] = __low2half(__hfma2(h2, h2, h2));
  const __nv_bfloat162 b2 = __floats2bfloat162_rn(x, x + 1);
  outb[i] = __high2bfloat16(__hmul2(b2, b2));
  outb[64 + i] = __float2bfloat16_rz(x);
  out8[64 + i] = static_cast<unsigned char>(__hmax(h, __double2half(0.5)) > h);
#if __CUDA_ARCH__ >= 1000
  const __nv_fp4x2_e2m1 f(make_float2(x, x + 1));
  out8[128 + i] = f.__x;
  const __nv_fp8x2_e8m0 s(make_float2(x, x));
  out8[192 + i] = static_cast<unsigned char>(s.__x);
  const __nv_fp6_e2m3 six(x);
  out8[256 + i] = six.__x;
#endif
}
