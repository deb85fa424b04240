// SPDX-License-Identifier: Apache-2.0
// Single loads and stores: shared memory by 32-bit address, that of another CTA of the cluster, and
// vector stores to global memory. The addresses must be aligned to the width.
#pragma once

#include "device/mbarrier.cuh"

__device__ __forceinline__ float load_shared_float(SharedAddress address) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}

__device__ __forceinline__ float2 load_shared_float2(SharedAddress address) {
  float2 value;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
               : "=f"(value.x), "=f"(value.y)
               : "r"(address)
               : "memory");
  return value;
}

__device__ __forceinline__ float4 load_shared_float4(SharedAddress address) {
  float4 value;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "r"(address)
               : "memory");
  return value;
}

__device__ __forceinline__ void store_shared(SharedAddress address, unsigned word) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}

__device__ __forceinline__ void store_shared(SharedAddress address, uint2 words) {
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(address), "r"(words.x), "r"(words.y)
               : "memory");
}

// Four 8 x 8 matrices of 16-bit elements from their register fragments: lanes 8 * i to 8 * i + 7
// give the addresses of matrix i's rows (PTX ISA "stmatrix").
__device__ __forceinline__ void store_shared_matrices(SharedAddress row, unsigned m0, unsigned m1,
                                                      unsigned m2, unsigned m3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
               "r"(m0), "r"(m1), "r"(m2), "r"(m3)
               : "memory");
}

// From the same offset in the shared memory of a CTA of the cluster (PTX ISA "mapa").
__device__ __forceinline__ float load_cluster_float(SharedAddress address, unsigned cta_rank) {
  float value;
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %1, %2;\n"
      "ld.shared::cluster.f32 %0, [remote];\n"
      "}\n"
      : "=f"(value)
      : "r"(address), "r"(cta_rank)
      : "memory");
  return value;
}

__device__ __forceinline__ float4 load_cluster_float4(SharedAddress address, unsigned cta_rank) {
  float4 value;
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %4, %5;\n"
      "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [remote];\n"
      "}\n"
      : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
      : "r"(address), "r"(cta_rank)
      : "memory");
  return value;
}

// Keeps the compiler from computing each neighbour of an address anew.
template <typename T>
__device__ __forceinline__ T* one_address(T* pointer) {
  asm volatile("" : "+l"(pointer));
  return pointer;
}

// A store without a branch.
__device__ __forceinline__ void store_global_if(bool condition, void* address, uint2 words) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %0, 0;\n"
      "@p st.global.v2.b32 [%1], {%2, %3};\n"
      "}\n" ::"r"(static_cast<int>(condition)),
      "l"(__cvta_generic_to_global(address)), "r"(words.x), "r"(words.y)
      : "memory");
}

__device__ __forceinline__ void store_global(void* address, unsigned word) {
  *static_cast<unsigned*>(address) = word;
}

__device__ __forceinline__ void store_global(void* address, uint2 words) {
  *static_cast<uint2*>(address) = words;
}

__device__ __forceinline__ void store_global(void* address, float4 values) {
  *static_cast<float4*>(address) = values;
}
