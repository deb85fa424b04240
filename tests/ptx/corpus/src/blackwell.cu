// SPDX-License-Identifier: Apache-2.0
// Tensor memory and the fifth-generation matrix instruction, alone and in CTA pairs.
using u32 = unsigned;
using u64 = unsigned long long;

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128)
    blackwell_kernel(float* out, u64 adesc, u64 bdesc, u32 idesc) {
  __shared__ u32 tmem_base;
  __shared__ __align__(8) u64 done;
  __shared__ __align__(128) unsigned char scales[512];
  const u32 slot = static_cast<u32>(__cvta_generic_to_shared(&tmem_base));
  const u32 barrier = static_cast<u32>(__cvta_generic_to_shared(&done));
  if (threadIdx.x < 32) {
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(slot),
                 "r"(512)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
  }
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier));
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  const u32 tmem = tmem_base;
  const u64 sdesc = (static_cast<u32>(__cvta_generic_to_shared(scales)) >> 4) | (u64{1} << 46);
  if (threadIdx.x == 0) {
    asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(tmem + 256), "l"(sdesc));
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\t"
        "tcgen05.mma.cta_group::2.kind::f8f6f4 [%0], %1, %2, %3, p;\n\t}" ::"r"(tmem),
        "l"(adesc), "l"(bdesc), "r"(idesc), "r"(0));
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\t"
        "tcgen05.mma.cta_group::2.kind::f16 [%0], [%1], %2, %3, {%5, %5, %5, %5, %5, %5, %5, %5}, "
        "p;\n\t}" ::"r"(tmem),
        "r"(tmem + 64), "l"(bdesc), "r"(idesc), "r"(1), "r"(0));
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\t"
        "tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.block32 [%0], %1, %2, %3, [%5], [%6], "
        "p;\n\t}" ::"r"(tmem),
        "l"(adesc), "l"(bdesc), "r"(idesc), "r"(1), "r"(tmem + 256), "r"(tmem + 260));
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\t"
        "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16 [%0], %1, %2, %3, [%5], [%6], "
        "p;\n\t}" ::"r"(tmem),
        "l"(adesc), "l"(bdesc), "r"(idesc), "r"(1), "r"(tmem + 256), "r"(tmem + 260));
    asm volatile(
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
        "[%0], %1;" ::"r"(barrier),
        "h"(static_cast<unsigned short>(3)));
  }
  u32 ready = 0;
  while (!ready) {
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, "
        "0x989680;\n\tselp.b32 %0, 1, 0, p;\n\t}"
        : "=r"(ready)
        : "r"(barrier), "r"(0)
        : "memory");
  }
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  u32 r[8];
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]),
                 "=r"(r[7])
               : "r"(tmem));
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
  asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(tmem));
  asm volatile("tcgen05.st.sync.aligned.32x32b.x2.b32 [%0], {%1, %2};" ::"r"(tmem + 8), "r"(r[0]),
               "r"(r[1]));
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
  float2 pair = make_float2(__uint_as_float(r[0]), __uint_as_float(r[1]));
  u64 packed;
  asm("mov.b64 %0, {%1, %2};" : "=l"(packed) : "f"(pair.x), "f"(pair.y));
  asm("fma.rn.f32x2 %0, %0, %0, %0;" : "+l"(packed));
  for (int i = 0; i < 8; ++i)
    out[threadIdx.x * 8 + i] = __uint_as_float(r[i]) + static_cast<float>(packed);
  __syncthreads();
  if (threadIdx.x < 32)
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(tmem), "r"(512));
}
