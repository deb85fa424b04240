#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Emits the PTX of two products C = A * B^T that are written here, by another front end: Triton, on
LLVM's NVPTX back end. No GPU is needed. `product` reads through pointers (cp.async), `product_tma`
through tensor maps that the kernel writes itself. Run with triton 3.9.0 and TRITON_DISABLE_LINE_INFO=1
in this folder; the results are committed."""
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def product(a, b, c, m, n, k, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, k, BK):
        inside = first + depth < k
        x = tl.load(a + rows[:, None] * lda + (first + depth)[None, :], mask=(rows[:, None] < m) & inside[None, :], other=0.0)
        y = tl.load(b + columns[None, :] * ldb + (first + depth)[:, None], mask=(columns[None, :] < n) & inside[:, None], other=0.0)
        sums = tl.dot(x, y, sums)
    tl.store(c + rows[:, None] * ldc + columns[None, :], sums, mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def product_tma(a, b, c, m, n, k, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    first_row = tl.program_id(0) * BM
    first_column = tl.program_id(1) * BN
    a_tiles = tl.make_tensor_descriptor(a, shape=[m, k], strides=[lda, 1], block_shape=[BM, BK])
    b_tiles = tl.make_tensor_descriptor(b, shape=[n, k], strides=[ldb, 1], block_shape=[BN, BK])
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, k, BK):
        sums = tl.dot(a_tiles.load([first_row, first]), b_tiles.load([first_column, first]).T, sums)
    rows = first_row + tl.arange(0, BM)
    columns = first_column + tl.arange(0, BN)
    tl.store(c + rows[:, None] * ldc + columns[None, :], sums, mask=(rows[:, None] < m) & (columns[None, :] < n))


def emit(kernel, capability, dtype, bk):
    signature = {"a": "*" + dtype, "b": "*" + dtype, "c": "*fp32", "m": "i32", "n": "i32", "k": "i32", "lda": "i32",
                 "ldb": "i32", "ldc": "i32", "BM": "constexpr", "BN": "constexpr", "BK": "constexpr"}
    aligned = {(i,): [["tt.divisibility", 16]] for i in (0, 1, 2, 5, 6, 7, 8)}
    source = ASTSource(fn=kernel, signature=signature, constexprs={"BM": 128, "BN": 64, "BK": bk}, attrs=aligned)
    built = triton.compile(source, target=GPUTarget("cuda", capability, 32),
                           options={"num_warps": 4, "num_stages": 3})
    name = f"{kernel.fn.__name__}_{'bf16' if dtype == 'bf16' else 'e4m3'}_sm_{capability}a.ptx"
    with open(name, "w") as file:
        file.write(built.asm["ptx"])
    meta = built.metadata
    print(name, "shared", meta.shared, "scratch", meta.global_scratch_size)


for capability in (90, 100):
    for dtype, bk in (("bf16", 64), ("fp8e4nv", 128)):
        emit(product, capability, dtype, bk)
        emit(product_tma, capability, dtype, bk)
