# SPDX-License-Identifier: Apache-2.0
"""What the GPU tests compute, as sizes and as problems, so that their kernels can be compiled side by side
before the first test: hundreds, which one after the other would take longer than the tests.

    python python/tests/gpu_problems.py [ARCH]    compiles all of them into the cache; needs no GPU, no torch
"""

from __future__ import annotations

import itertools
import os
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jitgemm

Problem = jitgemm.GemmProblem | jitgemm.GroupedGemmProblem


def grouped(m: int, n: int, k: int, groups: int, **options: Any) -> jitgemm.GroupedGemmProblem:
    return jitgemm.GroupedGemmProblem(m=m, n=n, k=k, groups=groups, **{"m_policy": "class", **options})


# --- vLLM ---------------------------------------------------------------------------------------------

VLLM_M = (1, 7, 8, 83, 4096)
VLLM_N = (128, 512, 576, 7168, 13824)
VLLM_K = (256, 3884, 4096, 13824, 16384)


def vllm() -> Iterator[Problem]:
    for m, n, k in itertools.product(VLLM_M, VLLM_N, VLLM_K):
        yield jitgemm.GemmProblem(m=m, n=n, k=k, m_policy="class")


# --- FlashInfer ---------------------------------------------------------------------------------------

SIZES = (128, 256, 512, 4096, 8192)
DENSE_M = (1, 4, 16, 32, *SIZES)


def flashinfer_dense() -> Iterator[Problem]:
    for m, n, k, major in itertools.product(DENSE_M, SIZES, SIZES, ("row", "column")):
        yield jitgemm.GemmProblem(m=m, n=n, k=k, m_policy="class", a_scale_major=major, b_scale_major=major)


GROUP_SHAPES = ((128, 512), (512, 128), (4096, 7168), (7168, 2048))
GROUPS = (1, 4, 8, 64, 128, 256)
BATCH_M = (128, 256, 512, 1024)  # the peer's own, for masked groups of any number


def group_rows_of(groups: int) -> tuple[int, ...]:
    """m of that many groups. The peer's own grid stops at 128 rows a group; of more groups, two."""
    return (128, 256, 512, 1024) if groups <= 8 else (128, 1024)


def masked_rows(groups: int, m: int) -> tuple[list[int], int]:
    """Rows in use of each group, and the hint."""
    drawn = random.Random(1000 * groups + m)
    rows = [drawn.randrange(m) for _ in range(groups)]
    return rows, min(sum(rows) // groups + 1, m)


def flashinfer_groups() -> Iterator[Problem]:
    for (n, k), groups in itertools.product(GROUP_SHAPES, GROUPS):
        for m in group_rows_of(groups):
            yield grouped(m, n, k, groups)
        for m in BATCH_M:
            yield grouped(m, n, k, groups, layout="masked", expected_m=masked_rows(groups, m)[1])


SEGMENT_M = (4, 128, 256, 512, 4096, 8192)
SEGMENT_GROUPS = (1, 2, 4, 8)


def flashinfer_segments() -> Iterator[Problem]:
    for n, k, groups, m in itertools.product(SIZES, SIZES, SEGMENT_GROUPS, SEGMENT_M):
        yield grouped(m, n, k, groups, layout="row_pointers")


# --- DeepGEMM -----------------------------------------------------------------------------------------

DEEP_GEMM_SHAPES = ((6144, 7168), (7168, 3072), (4096, 4096), (4096, 2048))
DEEP_GEMM_CONTIGUOUS = ((4, 8192), (8, 4096))
DEEP_GEMM_MASKED = ((32, 192), (6, 1024), (32, 20), (6, 20))
DEEP_GEMM_MOST = 4096


def counts_around(groups: int, mean: int) -> list[int]:
    drawn = random.Random(groups)
    return [int(mean * (0.7 + 0.6 * drawn.random())) for _ in range(groups)]


def padded(counts: list[int], alignment: int) -> list[int]:
    """The group of each row, with -1 up to the next multiple."""
    rows: list[int] = []
    for group, count in enumerate(counts):
        rows += [group] * count + [-1] * (-count % alignment)
    return rows


def deep_gemm() -> Iterator[Problem]:
    for n, k in DEEP_GEMM_SHAPES:
        for groups, mean in DEEP_GEMM_CONTIGUOUS:
            m = len(padded(counts_around(groups, mean), 128))
            yield grouped(m, n, k, groups, a_scale_major="column", row_alignment=128)
        for groups, mean in DEEP_GEMM_MASKED:
            yield grouped(DEEP_GEMM_MOST, n, k, groups, layout="masked", expected_m=mean)


# --- Ours: skewed routing -------------------------------------------------------------------------------

ROUTED_GROUPS = (1, 2, 7, 8, 32, 128, 256)
ROUTED_ALIGNMENTS = (1, 8, 16, 32, 64, 128)
ROUTED_SHAPES = tuple(itertools.product((128, 576, 2048, 4096, 7168), (128, 512, 2048, 7168)))


def routed(groups: int, rows: int, alignment: int) -> list[int]:
    """The group of each row: few groups have most rows, some have none, runs begin at multiples, in any order."""
    drawn = random.Random(1000 * groups + alignment)
    weights = [1.0 / (1 + rank) ** 1.2 for rank in range(groups)]
    drawn.shuffle(weights)
    counts = [0] * groups
    for group in drawn.choices(range(groups), weights, k=rows):
        counts[group] += 1
    order = list(range(groups))
    drawn.shuffle(order)
    found: list[int] = []
    for group in order:
        found += [group] * counts[group] + [-1] * (-counts[group] % alignment)
    return found


def routed_cases(groups: int) -> Iterator[tuple[list[int], int, int, int]]:
    """(the group of each row, alignment, n, k): three shapes an alignment, all of them over the groups."""
    turn = 5 * ROUTED_GROUPS.index(groups)
    for i, alignment in enumerate(ROUTED_ALIGNMENTS):
        indices = routed(groups, 300, alignment)
        for j in range(3):
            n, k = ROUTED_SHAPES[(turn + 3 * i + j) % len(ROUTED_SHAPES)]
            # What there is of b must leave room for its double-precision copy.
            yield indices, alignment, n, min(k, 2048) if groups > 128 else k


def skewed() -> Iterator[Problem]:
    for groups in ROUTED_GROUPS:
        for indices, alignment, n, k in routed_cases(groups):
            yield grouped(len(indices), n, k, groups, row_alignment=alignment)


# The functions of test_gpu.py that run a grid -> its problems.
GRIDS: dict[str, Callable[[], Iterator[Problem]]] = {
    "test_vllm_block_matmul_grid": vllm,
    "test_flashinfer_dense_grid": flashinfer_dense,
    "test_flashinfer_group_and_batch_grid": flashinfer_groups,
    "test_flashinfer_segment_grid": flashinfer_segments,
    "test_deep_gemm_contiguous_grid": deep_gemm,
    "test_deep_gemm_masked_grid": deep_gemm,
    "test_grouped_products_of_skewed_routing_leave_everything_else_alone": skewed,
}


def problems_of(tests: set[str]) -> list[Problem]:
    """Those of the grids that some tests run, each once."""
    chosen = {grid for name, grid in GRIDS.items() if name in tests}
    return list(dict.fromkeys(problem for grid in chosen for problem in grid()))


if __name__ == "__main__":
    archs = sys.argv[1:] or ["sm_90a"]
    report = jitgemm.prewarm(problems_of(set(GRIDS)), archs, workers=os.cpu_count())
    print(f"{report.problems} problems, {len(report.failures)} failures, {report.seconds:.0f} s")
    sys.exit(1 if report.failures else 0)
