// SPDX-License-Identifier: Apache-2.0
// Clusters, mbarriers, bulk and tensor copies, and the warpgroup matrix instruction.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};
using u32 = unsigned;
using u64 = unsigned long long;

__device__ __forceinline__ void wait(u32 barrier, u32 parity) {
  asm volatile(
      "{\n\t.reg .pred P1;\n\tLAB_WAIT:\n\tmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], "
      "%1;\n\t"
      "@P1 bra DONE;\n\tbra LAB_WAIT;\n\tDONE:\n\t}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
__device__ __forceinline__ bool elect() {
  u32 chosen;
  asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.u32 %0, 1, 0, p;\n\t}"
               : "=r"(chosen));
  return chosen != 0;
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(256)
    hopper_kernel(const __grid_constant__ TensorMap map, float* out, const char* bytes) {
  extern __shared__ __align__(1024) unsigned char smem[];
  __shared__ __align__(8) u64 barriers[4];
  const u32 base = static_cast<u32>(__cvta_generic_to_shared(smem));
  const u32 full = static_cast<u32>(__cvta_generic_to_shared(barriers));
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x < 32 && elect()) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(full), "r"(1));
    asm volatile("mbarrier.init.shared::cta.b64 [%0+8], 2;" ::"r"(full));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (threadIdx.x >= 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x < 160 && elect()) {
      u64 policy;
      asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full), "r"(32768)
                   : "memory");
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
          "cluster.L2::cache_hint"
          " [%0], [%1, {%2, %3}], [%4], %5, %6;" ::"r"(base),
          "l"(&map), "r"(0), "r"(rank), "r"(full), "h"(static_cast<unsigned short>(3)), "l"(policy)
          : "memory");
      asm volatile(
          "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
          "[%1, {%2, %3, %4}], [%5];" ::"r"(base + 16384),
          "l"(&map), "r"(0), "r"(0), "r"(1), "r"(full)
          : "memory");
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
          "[%3];" ::"r"(base + 32768),
          "l"(bytes), "r"(128), "r"(full)
          : "memory");
      asm volatile(
          "{.reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1; "
          "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];}" ::"r"(full + 8),
          "r"(rank ^ 1)
          : "memory");
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  wait(full, 0);
  float d[8] = {};
  const u64 desc = (u64{1} << 62) | (u64{64} << 32) | ((base & 0x3ffff) >> 4);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %10, "
      "0;\nwgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3 "
      "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, 1, 1;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7])
      : "l"(desc), "l"(desc + 8), "r"(0));
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, "
      "{%8, %9, %10, %11}, %12, 1, 1, 1, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7])
      : "r"(rank), "r"(rank), "r"(rank), "r"(rank), "l"(desc));
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  asm volatile("bar.sync 1, 128;" ::: "memory");
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(base),
               "r"(__float_as_uint(d[0])), "r"(__float_as_uint(d[1])));
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (threadIdx.x == 0) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
        "r"(0), "r"(0), "r"(base)
        : "memory");
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    asm volatile(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(out),
        "r"(base), "r"(64)
        : "memory");
  }
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  for (int i = 0; i < 8; ++i) out[threadIdx.x * 8 + i] = d[i];
}
