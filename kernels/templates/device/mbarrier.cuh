// SPDX-License-Identifier: Apache-2.0
// Shared-memory addresses, mbarriers, named barriers, cluster barriers and proxy fences: one thin
// wrapper an instruction. Shared by the kernels of every architecture from sm_90 on; knows nothing
// of tiles or pipelines.
#pragma once

using SharedAddress =
    unsigned;  // an address in the .shared::cta window, as 32-bit operands want it

__device__ __forceinline__ SharedAddress shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// PTX ISA 9.7.13.15 "mbarrier". A phase completes when `count` arrivals and all expected bytes are
// in.
__device__ __forceinline__ void mbarrier_init(SharedAddress barrier, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

// Makes initialised barriers visible to the async proxy and to the other CTAs of the cluster.
// Threads of this CTA still need a CTA barrier, those of others a cluster barrier.
__device__ __forceinline__ void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(SharedAddress barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void mbarrier_arrive_expect_tx(SharedAddress barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Announces bytes of the current phase without arriving.
__device__ __forceinline__ void mbarrier_expect_tx(SharedAddress barrier, unsigned bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Arrives on the barrier at the same offset in the shared memory of a CTA of the cluster. Releases
// no more than the default scope, this CTA: enough to say that a stage may be overwritten, not to
// hand over data (a wider release costs a GPU-wide memory barrier).
__device__ __forceinline__ void mbarrier_arrive_remote(SharedAddress barrier, unsigned cta_rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(barrier),
      "r"(cta_rank)
      : "memory");
}

// Arrives once every earlier cp.async of this thread has landed; the arrival is one of the counted
// ones (PTX ISA "cp.async.mbarrier.arrive", .noinc).
__device__ __forceinline__ void mbarrier_arrive_after_cp_async(SharedAddress barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ bool mbarrier_try_wait(SharedAddress barrier, unsigned parity) {
  unsigned done;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

// Whether the phase has completed, without waiting.
__device__ __forceinline__ bool mbarrier_test(SharedAddress barrier, unsigned parity) {
  unsigned done;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

// Waits for the phase of the given parity to complete; acquires what was released into it.
__device__ __forceinline__ void mbarrier_wait(SharedAddress barrier, unsigned parity) {
  while (!mbarrier_try_wait(barrier, parity)) {
  }
}

// The same two for a hand-over of data between CTAs of a cluster: what the arriving thread wrote or
// read before, the waiting thread finds done.
__device__ __forceinline__ void mbarrier_arrive_remote_release(SharedAddress barrier,
                                                               unsigned cta_rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(barrier),
      "r"(cta_rank)
      : "memory");
}

__device__ __forceinline__ void mbarrier_wait_cluster(SharedAddress barrier, unsigned parity) {
  unsigned done;
  do {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (done == 0);
}

// Orders this thread's ordinary shared-memory accesses before later ones by the async proxy (TMA,
// wgmma, tcgen05), once a barrier has told the issuing thread (PTX ISA "membar/fence",
// .proxy.async).
__device__ __forceinline__ void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The same over all state spaces, for accesses to the shared memory of other CTAs of the cluster.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async;" ::: "memory");
}

// A launch with programmatic dependence may begin before its predecessor has ended: nothing that
// predecessor wrote, or may still read, is touched before this (PTX ISA "griddepcontrol"). Any
// other launch passes at once.
__device__ __forceinline__ void wait_for_predecessor() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

// From here on the next grid, if it was launched with programmatic dependence, may begin: it still
// waits for all of this one where it says wait_for_predecessor. After this grid's own wait, so that
// whatever is before both has ended by then.
__device__ __forceinline__ void allow_successor() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// PTX ISA "barrier.sync": `threads` is a multiple of 32; barrier 0 is __syncthreads().
__device__ __forceinline__ void named_barrier_sync(unsigned barrier, unsigned threads) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// PTX ISA "barrier.cluster": every thread of every CTA of the cluster that has not ended takes
// part.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

__device__ __forceinline__ unsigned cluster_cta_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// One lane of a converged warp, the same one each time (PTX ISA "elect.sync").
__device__ __forceinline__ bool elect_one() {
  unsigned elected;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(elected));
  return elected != 0;
}
