// SPDX-License-Identifier: Apache-2.0
// Hopper's warpgroup matrix product: D[64, N] (fp32 registers) = A[64, 32 bytes] * B[N, 32 bytes]^T
// (+ D), both operands FP8 or of 16 bits in shared memory, K contiguous, 128-byte swizzle. Knows
// instructions, fences and descriptors (PTX ISA 9.7.15 "wgmma"), nothing of pipelines or scales.
#pragma once

#include "device/convert.cuh"
#include "device/mbarrier.cuh"

// Matrix descriptor of a tile of 128-byte rows, swizzled, starting on a multiple of 1024 bytes (PTX
// ISA 9.7.15.5.1): address / 16 in bits 0-13, distance of 8-row groups (1024) / 16 in bits 32-45,
// the 128-byte swizzle in bits 62-63. The leading-dimension offset does not matter for this layout.
// Advancing by 32 codes of k adds 32 bytes, that is 2, to the address field.
__device__ __forceinline__ unsigned wgmma_descriptor_low(SharedAddress tile) {
  return ((tile & 0x3ffffu) >> 4) | (1u << 16);
}
__device__ __forceinline__ unsigned long long wgmma_descriptor(unsigned low) {
  constexpr unsigned kHigh = 64u | (1u << 30);
  return (static_cast<unsigned long long>(kHigh) << 32) | low;
}

// Orders this warpgroup's accesses to registers (and what fences made visible in shared memory)
// before the wgmma that follow.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

template <int kOperandType>
struct WgmmaTypeName;
template <>
struct WgmmaTypeName<kE4M3> {
  static constexpr char kText[] = "e4m3";
};
template <>
struct WgmmaTypeName<kE5M2> {
  static constexpr char kText[] = "e5m2";
};
template <>
struct WgmmaTypeName<kF16Operand> {
  static constexpr char kText[] = "f16";
};
template <>
struct WgmmaTypeName<kBF16Operand> {
  static constexpr char kText[] = "bf16";
};

// How 32 bytes along K are spelt, and what only 16-bit types have: whether an operand is
// transposed (PTX ISA 9.7.15.5.2).
template <bool kWide>
struct WgmmaForm {
  static constexpr char kDepth[] = "k32";
  static constexpr char kTransposes[] = "";
};
template <>
struct WgmmaForm<true> {
  static constexpr char kDepth[] = "k16";
  static constexpr char kTransposes[] = ", 0, 0";
};

// Wgmma<N, type of A, type of B>::run(d, a, b, accumulate) issues one product; keep(d), after the
// wait, tells the compiler that the registers change until there. Accumulator i of a thread is,
// with w its warp in the warpgroup, l its lane, j = i / 4: row 16 * w + l / 4 + 8 * ((i / 2) % 2),
// column 8 * j + 2 * (l % 4) + i % 2.
template <int kN, int kTypeA, int kTypeB>
struct Wgmma;

// The accumulator operands of N = 8 * c as text (D_c) and as constraints (R_c).
#define JITGEMM_R(i) "+f"(d[4 * i]), "+f"(d[4 * i + 1]), "+f"(d[4 * i + 2]), "+f"(d[4 * i + 3])
#define JITGEMM_D_1 "%0, %1, %2, %3"
#define JITGEMM_R_1 JITGEMM_R(0)
#define JITGEMM_D_2 JITGEMM_D_1 ", %4, %5, %6, %7"
#define JITGEMM_R_2 JITGEMM_R_1, JITGEMM_R(1)
#define JITGEMM_D_3 JITGEMM_D_2 ", %8, %9, %10, %11"
#define JITGEMM_R_3 JITGEMM_R_2, JITGEMM_R(2)
#define JITGEMM_D_4 JITGEMM_D_3 ", %12, %13, %14, %15"
#define JITGEMM_R_4 JITGEMM_R_3, JITGEMM_R(3)
#define JITGEMM_D_5 JITGEMM_D_4 ", %16, %17, %18, %19"
#define JITGEMM_R_5 JITGEMM_R_4, JITGEMM_R(4)
#define JITGEMM_D_6 JITGEMM_D_5 ", %20, %21, %22, %23"
#define JITGEMM_R_6 JITGEMM_R_5, JITGEMM_R(5)
#define JITGEMM_D_7 JITGEMM_D_6 ", %24, %25, %26, %27"
#define JITGEMM_R_7 JITGEMM_R_6, JITGEMM_R(6)
#define JITGEMM_D_8 JITGEMM_D_7 ", %28, %29, %30, %31"
#define JITGEMM_R_8 JITGEMM_R_7, JITGEMM_R(7)
#define JITGEMM_D_9 JITGEMM_D_8 ", %32, %33, %34, %35"
#define JITGEMM_R_9 JITGEMM_R_8, JITGEMM_R(8)
#define JITGEMM_D_10 JITGEMM_D_9 ", %36, %37, %38, %39"
#define JITGEMM_R_10 JITGEMM_R_9, JITGEMM_R(9)
#define JITGEMM_D_11 JITGEMM_D_10 ", %40, %41, %42, %43"
#define JITGEMM_R_11 JITGEMM_R_10, JITGEMM_R(10)
#define JITGEMM_D_12 JITGEMM_D_11 ", %44, %45, %46, %47"
#define JITGEMM_R_12 JITGEMM_R_11, JITGEMM_R(11)
#define JITGEMM_D_13 JITGEMM_D_12 ", %48, %49, %50, %51"
#define JITGEMM_R_13 JITGEMM_R_12, JITGEMM_R(12)
#define JITGEMM_D_14 JITGEMM_D_13 ", %52, %53, %54, %55"
#define JITGEMM_R_14 JITGEMM_R_13, JITGEMM_R(13)
#define JITGEMM_D_15 JITGEMM_D_14 ", %56, %57, %58, %59"
#define JITGEMM_R_15 JITGEMM_R_14, JITGEMM_R(14)
#define JITGEMM_D_16 JITGEMM_D_15 ", %60, %61, %62, %63"
#define JITGEMM_R_16 JITGEMM_R_15, JITGEMM_R(15)
#define JITGEMM_D_17 JITGEMM_D_16 ", %64, %65, %66, %67"
#define JITGEMM_R_17 JITGEMM_R_16, JITGEMM_R(16)
#define JITGEMM_D_18 JITGEMM_D_17 ", %68, %69, %70, %71"
#define JITGEMM_R_18 JITGEMM_R_17, JITGEMM_R(17)
#define JITGEMM_D_19 JITGEMM_D_18 ", %72, %73, %74, %75"
#define JITGEMM_R_19 JITGEMM_R_18, JITGEMM_R(18)
#define JITGEMM_D_20 JITGEMM_D_19 ", %76, %77, %78, %79"
#define JITGEMM_R_20 JITGEMM_R_19, JITGEMM_R(19)
#define JITGEMM_D_21 JITGEMM_D_20 ", %80, %81, %82, %83"
#define JITGEMM_R_21 JITGEMM_R_20, JITGEMM_R(20)
#define JITGEMM_D_22 JITGEMM_D_21 ", %84, %85, %86, %87"
#define JITGEMM_R_22 JITGEMM_R_21, JITGEMM_R(21)
#define JITGEMM_D_23 JITGEMM_D_22 ", %88, %89, %90, %91"
#define JITGEMM_R_23 JITGEMM_R_22, JITGEMM_R(22)
#define JITGEMM_D_24 JITGEMM_D_23 ", %92, %93, %94, %95"
#define JITGEMM_R_24 JITGEMM_R_23, JITGEMM_R(23)
#define JITGEMM_D_25 JITGEMM_D_24 ", %96, %97, %98, %99"
#define JITGEMM_R_25 JITGEMM_R_24, JITGEMM_R(24)
#define JITGEMM_D_26 JITGEMM_D_25 ", %100, %101, %102, %103"
#define JITGEMM_R_26 JITGEMM_R_25, JITGEMM_R(25)
#define JITGEMM_D_27 JITGEMM_D_26 ", %104, %105, %106, %107"
#define JITGEMM_R_27 JITGEMM_R_26, JITGEMM_R(26)
#define JITGEMM_D_28 JITGEMM_D_27 ", %108, %109, %110, %111"
#define JITGEMM_R_28 JITGEMM_R_27, JITGEMM_R(27)
#define JITGEMM_D_29 JITGEMM_D_28 ", %112, %113, %114, %115"
#define JITGEMM_R_29 JITGEMM_R_28, JITGEMM_R(28)
#define JITGEMM_D_30 JITGEMM_D_29 ", %116, %117, %118, %119"
#define JITGEMM_R_30 JITGEMM_R_29, JITGEMM_R(29)
#define JITGEMM_D_31 JITGEMM_D_30 ", %120, %121, %122, %123"
#define JITGEMM_R_31 JITGEMM_R_30, JITGEMM_R(30)
#define JITGEMM_D_32 JITGEMM_D_31 ", %124, %125, %126, %127"
#define JITGEMM_R_32 JITGEMM_R_31, JITGEMM_R(31)

#define JITGEMM_WGMMA(n, c, a, b, scale, type_a, type_b, depth, transposes)                   \
  template <int kTypeA, int kTypeB>                                                           \
  struct Wgmma<n, kTypeA, kTypeB> {                                                           \
    using Form = WgmmaForm<(kTypeA >= kF16Operand)>;                                          \
    static __device__ __forceinline__ void run(float (&d)[n / 2], unsigned long long desc_a,  \
                                               unsigned long long desc_b, bool accumulate) {  \
      asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, " scale                \
                   ", 0;\n"                                                                   \
                   "wgmma.mma_async.sync.aligned.m64n" #n depth ".f32." type_a "." type_b     \
                   " {" JITGEMM_D_##c "}, " a ", " b ", accumulate, 1, 1" transposes ";\n}\n" \
                   : JITGEMM_R_##c                                                            \
                   : "l"(desc_a), "l"(desc_b), "r"(static_cast<int>(accumulate)),             \
                     "C"(WgmmaTypeName<kTypeA>::kText), "C"(WgmmaTypeName<kTypeB>::kText),    \
                     "C"(Form::kDepth), "C"(Form::kTransposes));                              \
    }                                                                                         \
    static __device__ __forceinline__ void keep(float (&d)[n / 2]) {                          \
      asm volatile("" : JITGEMM_R_##c::"memory");                                             \
    }                                                                                         \
  };

JITGEMM_WGMMA(8, 1, "%4", "%5", "%6", "%7", "%8", "%9", "%10")
JITGEMM_WGMMA(16, 2, "%8", "%9", "%10", "%11", "%12", "%13", "%14")
JITGEMM_WGMMA(24, 3, "%12", "%13", "%14", "%15", "%16", "%17", "%18")
JITGEMM_WGMMA(32, 4, "%16", "%17", "%18", "%19", "%20", "%21", "%22")
JITGEMM_WGMMA(40, 5, "%20", "%21", "%22", "%23", "%24", "%25", "%26")
JITGEMM_WGMMA(48, 6, "%24", "%25", "%26", "%27", "%28", "%29", "%30")
JITGEMM_WGMMA(56, 7, "%28", "%29", "%30", "%31", "%32", "%33", "%34")
JITGEMM_WGMMA(64, 8, "%32", "%33", "%34", "%35", "%36", "%37", "%38")
JITGEMM_WGMMA(80, 10, "%40", "%41", "%42", "%43", "%44", "%45", "%46")
JITGEMM_WGMMA(96, 12, "%48", "%49", "%50", "%51", "%52", "%53", "%54")
JITGEMM_WGMMA(112, 14, "%56", "%57", "%58", "%59", "%60", "%61", "%62")
JITGEMM_WGMMA(128, 16, "%64", "%65", "%66", "%67", "%68", "%69", "%70")
JITGEMM_WGMMA(144, 18, "%72", "%73", "%74", "%75", "%76", "%77", "%78")
JITGEMM_WGMMA(160, 20, "%80", "%81", "%82", "%83", "%84", "%85", "%86")
JITGEMM_WGMMA(176, 22, "%88", "%89", "%90", "%91", "%92", "%93", "%94")
JITGEMM_WGMMA(192, 24, "%96", "%97", "%98", "%99", "%100", "%101", "%102")
JITGEMM_WGMMA(208, 26, "%104", "%105", "%106", "%107", "%108", "%109", "%110")
JITGEMM_WGMMA(224, 28, "%112", "%113", "%114", "%115", "%116", "%117", "%118")
JITGEMM_WGMMA(240, 30, "%120", "%121", "%122", "%123", "%124", "%125", "%126")
JITGEMM_WGMMA(256, 32, "%128", "%129", "%130", "%131", "%132", "%133", "%134")
