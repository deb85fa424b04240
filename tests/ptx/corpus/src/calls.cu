// SPDX-License-Identifier: Apache-2.0
// Calls that a compiler does not inline: recursion, function pointers, virtual functions, a stack.
struct Shape {
  __device__ virtual int area(int scale) const = 0;
};
struct Square : Shape {
  int side;
  __device__ explicit Square(int s) : side(s) {}
  __device__ int area(int scale) const override { return side * side * scale; }
};
struct Strip : Shape {
  int length;
  __device__ explicit Strip(int l) : length(l) {}
  __device__ int area(int scale) const override { return length * scale; }
};

__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

// The array of each level is read by the level below it.
__device__ __noinline__ int sum_down(const int* above, int depth) {
  int own[4];
  for (int i = 0; i < 4; ++i) own[i] = above[i] + depth * i;
  if (depth == 0) return own[0] + own[1] + own[2] + own[3];
  return sum_down(own, depth - 1) + own[depth & 3];
}

__device__ __noinline__ int is_even(int n);
__device__ __noinline__ int is_odd(int n) {
  return n == 0 ? 0 : is_even(n - 1);
}
__device__ __noinline__ int is_even(int n) {
  return n == 0 ? 1 : is_odd(n - 1);
}

using Unary = int (*)(int);
__device__ __noinline__ int twice(int x) {
  return 2 * x;
}
__device__ __noinline__ int negate(int x) {
  return -x;
}
__device__ Unary table[] = {twice, negate, is_even};

extern "C" __global__ void calls(int* out, const int* in, int n) {
  const int i = static_cast<int>(threadIdx.x);
  const int start[4] = {in[i], 1, 2, 3};
  int* o = out + 6 * i;
  o[0] = ackermann(2, i & 3);
  o[1] = sum_down(start, i & 7);
  o[2] = is_even(in[i]);
  o[3] = table[static_cast<unsigned>(i) % 3](in[i]);
  Square square(in[i]);
  Strip strip(n);
  const Shape* shape = i % 2 == 0 ? static_cast<const Shape*>(&square) : &strip;
  o[4] = shape->area(3);
  int* scratch = static_cast<int*>(__builtin_alloca(static_cast<unsigned>(n) * sizeof(int)));
  for (int k = 0; k < n; ++k) scratch[k] = in[i] + k;
  int total = 0;
  for (int k = n - 1; k >= 0; --k) total = total * 3 + scratch[k];
  o[5] = total;
}
