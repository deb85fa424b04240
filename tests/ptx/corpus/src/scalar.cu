// SPDX-License-Identifier: Apache-2.0
// Arithmetic, control flow, calls and memory that any kernel may contain.
struct Pair {
  float x;
  int n;
};

__device__ float table[4] = {1.0f, -2.5f, 0.25f, 1e30f};
__constant__ unsigned short codes[3] = {1, 2, 65535};
__device__ double scale = 0.1;
__device__ float* pointer_to_table = table;
extern "C" __device__ int printf(const char*, ...);

__device__ __noinline__ float weighted(float a, float b, Pair p) {
  return __fmaf_rn(a, p.x, b) / (p.n + 1);
}
__device__ __noinline__ unsigned long long collatz(unsigned long long n) {
  unsigned long long steps = 0;
  while (n != 1) {
    n = (n & 1) ? 3 * n + 1 : n >> 1;
    ++steps;
  }
  return steps;
}
using Operation = int (*)(int, int);
__device__ __noinline__ int add_up(int a, int b) {
  return a + b;
}
__device__ __noinline__ int take_off(int a, int b) {
  return a - b;
}
__device__ Operation operations[2] = {add_up, take_off};

extern "C" __global__ void __launch_bounds__(128, 2)
    scalar_kernel(const float* in, float* out, int n, Pair pair) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float value = in[i];
  switch (i % 9) {
    case 0: value = sqrtf(value); break;
    case 1: value = __sinf(value) + __cosf(value); break;
    case 2: value = value / 3.0f; break;
    case 3: value = exp2f(value); break;
    case 4: value = __log2f(value); break;
    case 5: value = rsqrtf(value); break;
    case 6: value = table[i & 3]; break;
    case 7: value = codes[i % 3] + pointer_to_table[i & 3]; break;
    default: value = weighted(value, 2.0f, pair);
  }
  const int integer = __float2int_rn(value);
  int mixed = __popc(integer) + __clz(integer) + __brev(integer) + __ffs(integer);
  mixed += __byte_perm(integer, i, 0x3210) + __mulhi(integer, i) + __umul24(integer, i) +
           __dp4a(integer, i, n);
  mixed += __funnelshift_l(integer, i, 7) + __sad(integer, i, 3u) + max(min(integer, 5), i);
  long long wide = static_cast<long long>(integer) * n;
  wide += wide / (n + 7) + wide % 13 + collatz(i + 1);
  mixed = operations[i & 1](mixed, integer);
  double precise = scale * value + 1.0 / (n + 0.5);
  float scratch[8];
  for (int k = 0; k < 8; ++k) scratch[k] = value * k;
  value += scratch[(i * 5) & 7];
  if (value > 1e6f) printf("large %d %f\n", i, static_cast<double>(value));
  out[i] = value + mixed + static_cast<float>(wide) + static_cast<float>(precise);
}

extern "C" __global__ void carry_kernel(unsigned* out, const unsigned* in) {
  unsigned lo, hi;
  asm("{\n\t.reg .u32 t;\n\tadd.cc.u32 %0, %2, %3;\n\taddc.u32 %1, %2, 0;\n\tmad.lo.cc.u32 %0, %2, "
      "%3, %0;\n\t"
      "madc.hi.u32 t, %2, %3, %1;\n\tmov.u32 %1, t;\n\t}"
      : "=&r"(lo), "=&r"(hi)
      : "r"(in[0]), "r"(in[1]));
  unsigned short half;
  asm("{.reg .b16 a,b; mov.b32{a,b},%1;\n add.u16 %0,a,b;}" : "=h"(half) : "r"(lo));
  unsigned bits;
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(bits) : "r"(lo), "r"(hi), "r"(in[2]));
  unsigned long long clock;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(clock));
  out[0] = lo + half + bits + static_cast<unsigned>(clock) + clock64();
  out[1] = hi;
  __nanosleep(10);
  if (in[3] == 77) __trap();
}
