// SPDX-License-Identifier: Apache-2.0
// Shared memory, atomics, warp operations, asynchronous copies by element.
__device__ int counter;
extern __shared__ float dynamic[];

extern "C" __global__ void memory_kernel(const float4* in, float* out, int* flags, double* sums) {
  __shared__ float tile[32][33];
  __shared__ alignas(16) float4 staged[64];
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const float4 v = __ldg(in + threadIdx.x);
  staged[threadIdx.x & 63] = v;
  tile[warp][lane] = v.x;
  dynamic[threadIdx.x] = v.y;
  __syncthreads();
  float x = tile[lane][warp] + dynamic[threadIdx.x ^ 1] + staged[lane].z;
  x += __shfl_xor_sync(0xffffffffu, x, 16);
  x += __shfl_down_sync(0xffffffffu, x, 1);
  const unsigned mask = __ballot_sync(0xffffffffu, x > 0);
  if (__any_sync(0xffffffffu, x < 0)) x = -x;
  const unsigned peers = __match_any_sync(__activemask(), lane & 3);
  x += __reduce_add_sync(0xffffffffu, static_cast<unsigned>(lane));
  atomicAdd(out, x);
  atomicAdd(sums, static_cast<double>(x));
  atomicMax(flags, static_cast<int>(mask ^ peers));
  atomicCAS(flags + 1, 3, 4);
  atomicExch(&counter, lane);
  atomicInc(reinterpret_cast<unsigned*>(flags) + 2, 9);
  atomicAdd(&tile[0][0], 1.0f);
  __threadfence();
  __threadfence_block();
  __syncwarp();
  int ready;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(ready) : "l"(flags) : "memory");
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flags + 3), "r"(ready) : "memory");
  asm volatile("red.relaxed.gpu.global.add.u32 [%0+16], %1;" ::"l"(flags), "r"(1) : "memory");
  if (__syncthreads_or(ready)) out[1 + threadIdx.x] = x;
  const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(&staged[lane]));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target), "l"(in + lane));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(target), "l"(in + lane),
               "r"(lane < 7 ? 4 : 0));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  unsigned r0, r1, r2, r3;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
               : "r"(target));
  float c[4] = {};
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(r0), "r"(r1), "r"(r2), "r"(r3), "r"(r0), "r"(r1));
  reinterpret_cast<float4*>(out)[64 + threadIdx.x] = make_float4(c[0], c[1], c[2], c[3]);
}
