// SPDX-License-Identifier: Apache-2.0
// The tensor memory accelerator: tiled copies between a tensor map and swizzled shared memory, and
// the 4-byte cp.async that stands in for it where rows are not 16-byte aligned. One wrapper an
// instruction; knows nothing of tiles or pipelines. Coordinates are in elements, innermost first.
#pragma once

#include "device/mbarrier.cuh"
#include "device/params.cuh"

// L2 eviction policies as the 64-bit operand that PTX calls cache-policy. createpolicy makes them
// from text; a full-fraction policy is a constant, so every kernel can make its own once.
__device__ __forceinline__ unsigned long long l2_evict_first_policy() {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
  return policy;
}

__device__ __forceinline__ unsigned long long l2_evict_last_policy() {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0;" : "=l"(policy));
  return policy;
}

__device__ __forceinline__ void tma_prefetch_map(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// PTX ISA 9.7.9.25.5.2 "cp.async.bulk.tensor". Out-of-range elements read as zero; the whole box
// counts toward the barrier's expected bytes all the same.
__device__ __forceinline__ void tma_load_2d(SharedAddress destination, const TensorMap* map, int x,
                                            int y, SharedAddress barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3}], [%4];" ::"r"(destination),
      "l"(map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

__device__ __forceinline__ void tma_load_2d(SharedAddress destination, const TensorMap* map, int x,
                                            int y, SharedAddress barrier,
                                            unsigned long long l2_policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(destination),
      "l"(map), "r"(x), "r"(y), "r"(barrier), "l"(l2_policy)
      : "memory");
}

// Writes the box at the same shared-memory offset of every CTA in the mask, and counts its bytes on
// each one's barrier at the same offset.
__device__ __forceinline__ void tma_load_2d_multicast(SharedAddress destination,
                                                      const TensorMap* map, int x, int y,
                                                      SharedAddress barrier,
                                                      unsigned short cta_mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(destination),
      "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(cta_mask)
      : "memory");
}

__device__ __forceinline__ void tma_store_2d(const TensorMap* map, SharedAddress source, int x,
                                             int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
      "r"(x), "r"(y), "r"(source)
      : "memory");
}

__device__ __forceinline__ void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Until at most `kPending` store groups of this thread still read shared memory.
template <int kPending>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

// Until at most `kPending` store groups of this thread are incomplete, their writes included.
template <int kPending>
__device__ __forceinline__ void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kPending) : "memory");
}

// PTX ISA 9.7.9.25.3.1 "cp.async": 4 bytes, of which the first `bytes` are read and the rest are
// zero. With 0 bytes the source is not accessed.
__device__ __forceinline__ void cp_async_4(SharedAddress destination, const void* source,
                                           unsigned bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(destination),
               "l"(__cvta_generic_to_global(source)), "r"(bytes)
               : "memory");
}

// The same with 16 bytes, past L1.
__device__ __forceinline__ void cp_async_16(SharedAddress destination, const void* source,
                                            unsigned bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(destination),
               "l"(__cvta_generic_to_global(source)), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

__device__ __forceinline__ void cp_async_wait_all() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// Where byte `column` of row `row` lies in a tile of 128-byte rows as TMA writes it with the
// 128-byte swizzle: the 16-byte unit's index within the row is XORed with the row's index modulo 8.
// The tile starts on a multiple of 1024 bytes. PTX ISA 5.5.7 "Swizzling modes".
__device__ __forceinline__ unsigned swizzle_128b(unsigned row, unsigned column) {
  return row * 128 + (column ^ ((row & 7) << 4));
}

// The same for 64-byte rows and the 64-byte swizzle: bits 4-5 are XORed with bits 7-8. The tile
// starts on a multiple of 512 bytes.
__device__ __forceinline__ unsigned swizzle_64b(unsigned row, unsigned column) {
  return row * 64 + (column ^ ((row / 2 & 3) << 4));
}
