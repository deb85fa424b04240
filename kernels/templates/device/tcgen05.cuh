// SPDX-License-Identifier: Apache-2.0
// The tcgen05 family (fifth-generation tensor core, SM100): one wrapper per instruction, and the
// two descriptors that its matrix instructions take. PTX ISA 9.7.16. kCtaGroup is 1 or 2 and, as
// the ISA demands, one value throughout a kernel. Knows nothing of tiles or pipelines.
#pragma once

namespace tcgen05 {

// --- Tensor memory: allocation (PTX ISA 9.7.16.7)
// -------------------------------------------------

// Whole warp. columns: a power of two, 32..512. The base address is written to shared memory.
template <int kCtaGroup>
__device__ __forceinline__ void alloc(unsigned shared_slot, unsigned columns) {
  asm volatile("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;"
               :
               : "r"(shared_slot), "r"(columns), "n"(kCtaGroup)
               : "memory");
}

// Whole warp: no allocation follows; a waiting CTA on the same SM may go on.
template <int kCtaGroup>
__device__ __forceinline__ void relinquish_alloc_permit() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" : : "n"(kCtaGroup));
}

// The warp that allocated.
template <int kCtaGroup>
__device__ __forceinline__ void dealloc(unsigned address, unsigned columns) {
  asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;"
               :
               : "r"(address), "r"(columns), "n"(kCtaGroup)
               : "memory");
}

// --- Ordering (PTX ISA 9.7.16.6, 9.7.16.11)
// -------------------------------------------------------

// Before a thread synchronisation that hands earlier tcgen05 work to another thread.
__device__ __forceinline__ void fence_before_thread_sync() {
  asm volatile("tcgen05.fence::before_thread_sync;" : : : "memory");
}

// After a thread synchronisation, before tcgen05 work that depends on another thread's.
__device__ __forceinline__ void fence_after_thread_sync() {
  asm volatile("tcgen05.fence::after_thread_sync;" : : : "memory");
}

// One arrival at the mbarrier when every earlier tcgen05.mma and .cp of this thread is complete.
// Implies fence_before_thread_sync.
template <int kCtaGroup>
__device__ __forceinline__ void commit(unsigned barrier) {
  asm volatile("tcgen05.commit.cta_group::%1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
               :
               : "r"(barrier), "n"(kCtaGroup)
               : "memory");
}

// The same at the barrier of that offset in every CTA of the mask.
template <int kCtaGroup>
__device__ __forceinline__ void commit_multicast(unsigned barrier, unsigned short cta_mask) {
  asm volatile(
      "tcgen05.commit.cta_group::%2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
      "[%0], %1;"
      :
      : "r"(barrier), "h"(cta_mask), "n"(kCtaGroup)
      : "memory");
}

// --- Descriptors
// ----------------------------------------------------------------------------------

// Shared-memory descriptor (PTX ISA 9.7.16.4.1) of a K-major operand in the 128-byte swizzle, rows
// of 128 bytes: bits 0-13 address / 16, 32-45 distance of 8-row groups / 16, 46-48 the constant 1,
// 61-63 swizzle mode (2 is 128 bytes). The leading offset is unused in this layout. A step of 32
// one-byte elements along K adds 2 to it.
__device__ __forceinline__ unsigned long long operand_descriptor(unsigned shared_address) {
  constexpr unsigned long long kFixed = (1024ull >> 4) << 32 | 1ull << 46 | 2ull << 61;
  return kFixed | ((shared_address & 0x3FFFFu) >> 4);
}
enum : unsigned { kDescriptorStepPer32Bytes = 2 };

// The same for a block of scale factors: 32 rows of 16 bytes, no swizzle; groups of 8 rows lie 128
// bytes apart.
__device__ __forceinline__ unsigned long long scale_descriptor(unsigned shared_address) {
  constexpr unsigned long long kFixed = (128ull >> 4) << 32 | 1ull << 46;
  return kFixed | ((shared_address & 0x3FFFFu) >> 4);
}

// Instruction descriptor of kind::f8f6f4 or kind::f16 with an fp32 accumulator (PTX ISA
// 9.7.16.4.2): bits 4-5 accumulator format (1 is F32), 7-9 and 10-12 formats of A and B (0 E4M3, 1
// E5M2; of kind::f16: 0 F16, 1 BF16), 15 and 16 both
// 0 for K-major, 17-22 N / 8, 24-28 M / 16.
constexpr __device__ unsigned f8f6f4_descriptor(int type_a, int type_b, int m, int n) {
  return 1u << 4 | static_cast<unsigned>(type_a) << 7 | static_cast<unsigned>(type_b) << 10 |
         static_cast<unsigned>(n >> 3) << 17 | static_cast<unsigned>(m >> 4) << 24;
}

// Instruction descriptor of kind::mxf8f6f4: bits 4-5 byte of B's scale word, 23 scale format (1 is
// UE8M0), 29-30 byte of A's scale word; the other fields as above, without an accumulator format.
constexpr __device__ unsigned mxf8f6f4_descriptor(int type_a, int type_b, int m, int n,
                                                  int scale_byte) {
  return static_cast<unsigned>(scale_byte) << 4 | static_cast<unsigned>(type_a) << 7 |
         static_cast<unsigned>(type_b) << 10 | static_cast<unsigned>(n >> 3) << 17 | 1u << 23 |
         static_cast<unsigned>(m >> 4) << 24 | static_cast<unsigned>(scale_byte) << 29;
}

// --- Matrix instructions (PTX ISA 9.7.16.10.9), one thread
// ----------------------------------------

// D = A B, or D += A B; 32 elements of K.
template <int kCtaGroup>
__device__ __forceinline__ void mma_f8f6f4(unsigned d, unsigned long long a, unsigned long long b,
                                           unsigned descriptor, bool accumulate) {
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "setp.ne.b32 p, %4, 0;\n\t"
      "tcgen05.mma.cta_group::%5.kind::f8f6f4 [%0], %1, %2, %3, p;\n\t"
      "}"
      :
      : "r"(d), "l"(a), "l"(b), "r"(descriptor), "r"(static_cast<unsigned>(accumulate)),
        "n"(kCtaGroup)
      : "memory");
}

// The same for 16-bit operands; 16 elements of K.
template <int kCtaGroup>
__device__ __forceinline__ void mma_f16(unsigned d, unsigned long long a, unsigned long long b,
                                        unsigned descriptor, bool accumulate) {
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "setp.ne.b32 p, %4, 0;\n\t"
      "tcgen05.mma.cta_group::%5.kind::f16 [%0], %1, %2, %3, p;\n\t"
      "}"
      :
      : "r"(d), "l"(a), "l"(b), "r"(descriptor), "r"(static_cast<unsigned>(accumulate)),
        "n"(kCtaGroup)
      : "memory");
}

// The same with one UE8M0 scale per row and 32 elements of K, both operands', in tensor memory.
// .block32 is the spelling that family targets take as well.
template <int kCtaGroup>
__device__ __forceinline__ void mma_mxf8f6f4(unsigned d, unsigned long long a, unsigned long long b,
                                             unsigned descriptor, unsigned a_scales,
                                             unsigned b_scales, bool accumulate) {
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "setp.ne.b32 p, %4, 0;\n\t"
      "tcgen05.mma.cta_group::%7.kind::mxf8f6f4.block_scale.block32 "
      "[%0], %1, %2, %3, [%5], [%6], p;\n\t"
      "}"
      :
      : "r"(d), "l"(a), "l"(b), "r"(descriptor), "r"(static_cast<unsigned>(accumulate)),
        "r"(a_scales), "r"(b_scales), "n"(kCtaGroup)
      : "memory");
}

// --- Shared memory -> tensor memory (PTX ISA 9.7.16.9.2)
// ------------------------------------------

// 32 rows of 16 bytes to four columns, repeated in each of the four groups of 32 lanes.
template <int kCtaGroup>
__device__ __forceinline__ void copy_scales(unsigned d, unsigned long long descriptor) {
  asm volatile("tcgen05.cp.cta_group::%2.32x128b.warpx4 [%0], %1;"
               :
               : "r"(d), "l"(descriptor), "n"(kCtaGroup)
               : "memory");
}

// --- Tensor memory -> registers (PTX ISA 9.7.16.8)
// ------------------------------------------------

// Whole warp: lane l gets 16 (32) columns of tensor-memory lane 32 * (warp % 4) + l. The registers
// hold nothing before wait_load.
__device__ __forceinline__ void load(unsigned (&r)[16], unsigned address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x16.b32 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, [%16];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]),
        "=r"(r[7]), "=r"(r[8]), "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]),
        "=r"(r[14]), "=r"(r[15])
      : "r"(address)
      : "memory");
}

__device__ __forceinline__ void load(unsigned (&r)[32], unsigned address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, [%32];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]),
        "=r"(r[7]), "=r"(r[8]), "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]),
        "=r"(r[14]), "=r"(r[15]), "=r"(r[16]), "=r"(r[17]), "=r"(r[18]), "=r"(r[19]), "=r"(r[20]),
        "=r"(r[21]), "=r"(r[22]), "=r"(r[23]), "=r"(r[24]), "=r"(r[25]), "=r"(r[26]), "=r"(r[27]),
        "=r"(r[28]), "=r"(r[29]), "=r"(r[30]), "=r"(r[31])
      : "r"(address)
      : "memory");
}

// Every earlier load of this thread is complete. The registers pass through it, so that no use of
// them can be scheduled above.
__device__ __forceinline__ void wait_load(unsigned (&r)[16]) {
  asm volatile("tcgen05.wait::ld.sync.aligned;"
               : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]),
                 "+r"(r[7]), "+r"(r[8]), "+r"(r[9]), "+r"(r[10]), "+r"(r[11]), "+r"(r[12]),
                 "+r"(r[13]), "+r"(r[14]), "+r"(r[15])
               :
               : "memory");
}

__device__ __forceinline__ void wait_load(unsigned (&r)[32]) {
  asm volatile("tcgen05.wait::ld.sync.aligned;"
               : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]),
                 "+r"(r[7]), "+r"(r[8]), "+r"(r[9]), "+r"(r[10]), "+r"(r[11]), "+r"(r[12]),
                 "+r"(r[13]), "+r"(r[14]), "+r"(r[15]), "+r"(r[16]), "+r"(r[17]), "+r"(r[18]),
                 "+r"(r[19]), "+r"(r[20]), "+r"(r[21]), "+r"(r[22]), "+r"(r[23]), "+r"(r[24]),
                 "+r"(r[25]), "+r"(r[26]), "+r"(r[27]), "+r"(r[28]), "+r"(r[29])
               :
               : "memory");
  // An asm statement takes at most 30 read-write operands; the last two follow in order.
  asm volatile("" : "+r"(r[30]), "+r"(r[31]) : : "memory");
}

}  // namespace tcgen05
