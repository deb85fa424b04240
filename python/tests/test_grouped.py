# SPDX-License-Identifier: Apache-2.0
"""Grouped products of numpy arrays on the simulator, its sanitizer on, against float64."""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from products import E4M3, Guarded, Product, assert_close, draw

import jitgemm
from jitgemm import gemm, layouts, utils

N, K = 72, 272


@dataclasses.dataclass
class Groups:
    """Rows of several groups: one product a group that shares a and a_scales with the others."""

    a: np.ndarray
    b: np.ndarray
    a_scales: np.ndarray
    b_scales: np.ndarray

    def product(self, group: int, rows: Any) -> Product:
        return Product(self.a[rows], self.b[group], self.a_scales[rows], self.b_scales[group])


def draw_groups(rng: np.random.Generator, m: int, groups: int, n: int = N, k: int = K) -> Groups:
    parts = [draw(rng, m, n, k) for _ in range(groups)]
    return Groups(parts[0].a, np.stack([p.b for p in parts]), parts[0].a_scales, np.stack([p.b_scales for p in parts]))


def assert_rows_are(out: np.ndarray, given: Groups, indices: np.ndarray, untouched: Any) -> None:
    """Each row is its group's; rows of no group hold what they held."""
    groups = given.b.shape[0]
    for group in range(groups):
        rows = np.flatnonzero(indices == group)
        if rows.size:
            assert_close(out[rows], given.product(group, rows))
    others = (indices < 0) | (indices >= groups)
    assert (out[others] == untouched).all()


INDICES = {
    "aligned runs": np.repeat([1, 0, 2], 16),
    "any order, one missing, one twice, padding": np.r_[
        np.full(5, 2), np.full(3, -1), np.full(9, 0), np.full(4, 2), np.full(2, -1)
    ],
    "a group a row, ids that are none": np.array([0, 1, 2, -1, 0, 5, 2, 1, 2**31 - 1, 0, -(2**31)]),
}


@pytest.mark.parametrize("indices", INDICES.values(), ids=INDICES.keys())
def test_row_indices_in_any_order(rng: np.random.Generator, arch: str, indices: np.ndarray) -> None:
    indices = indices.astype(np.int32)
    given = draw_groups(rng, len(indices), 3)
    out = Guarded((len(indices), N), np.float32, N + 8)
    out.array[:] = 7
    with jitgemm.simulator(arch, sanitize=True):
        result = gemm.group_deepgemm_fp8_nt_groupwise(
            given.a, given.b, given.a_scales, given.b_scales, indices, out=out.array
        )
    assert result is out.array
    assert_rows_are(out.array, given, indices, 7)
    assert out.intact()


def test_rows_of_no_group_are_zeroed_and_counted_on_request(rng: np.random.Generator, arch: str) -> None:
    indices = INDICES["a group a row, ids that are none"].astype(np.int32)
    given = draw_groups(rng, len(indices), 3)
    out = np.full((len(indices), N), 7, np.float32)
    count = np.array([100], np.int32)
    with jitgemm.simulator(arch):
        jitgemm.grouped_block_scaled_mm(
            given.a,
            given.b,
            given.a_scales,
            given.b_scales,
            indices,
            out,
            zero_ungrouped=True,
            invalid_count=count,
        )
    assert_rows_are(out, given, indices, 0)
    assert count[0] == 103  # 5, the largest and the least integer; -1 says what it means


@pytest.mark.parametrize("zeroed", [False, True])
@pytest.mark.parametrize(
    ("layout", "integers", "indices"),
    [
        ("end_offsets", [5, 5, 14], np.repeat([0, 2, -1], [5, 9, 2])),
        ("row_pointers", [2, 7, 7, 15], np.repeat([-1, 0, 2, -1], [2, 5, 8, 1])),
    ],
)
def test_offsets_say_where_groups_begin_and_end(
    rng: np.random.Generator, arch: str, layout: str, integers: Any, indices: np.ndarray, zeroed: bool
) -> None:
    given = draw_groups(rng, 16, 3)
    out = np.full((16, N), 7, ml_dtypes.bfloat16)
    with jitgemm.simulator(arch):
        jitgemm.grouped_block_scaled_mm(
            given.a,
            given.b,
            given.a_scales,
            given.b_scales,
            np.array(integers, np.int32),
            out,
            layout=layout,
            row_alignment=1 if layout == "end_offsets" else 0,
            zero_ungrouped=zeroed,
        )
    assert_rows_are(out, given, indices, 0 if zeroed else 7)


def test_masked_groups_use_their_first_rows(rng: np.random.Generator, arch: str) -> None:
    parts = [draw(rng, 8, N, K) for _ in range(3)]
    masked = np.array([3, 0, 8], np.int32)
    out = np.full((3, 8, N), 7, np.float32)
    with jitgemm.simulator(arch):
        gemm.batch_deepgemm_fp8_nt_groupwise(
            np.stack([p.a for p in parts]),
            np.stack([p.b for p in parts]),
            np.stack([p.a_scales for p in parts]),
            np.stack([p.b_scales for p in parts]),
            masked,
            4,
            out=out,
        )
    for group, count in enumerate(masked):
        p = parts[group]
        if count:
            assert_close(out[group, :count], dataclasses.replace(p, a=p.a[:count], a_scales=p.a_scales[:count]))
        assert (out[group, count:] == 7).all()


def test_packed_exponents_are_scales(rng: np.random.Generator, arch: str) -> None:
    given = draw_groups(rng, 16, 2)
    given.a_scales = np.exp2(rng.integers(-3, 4, given.a_scales.shape)).astype(np.float32)
    given.b_scales = np.exp2(rng.integers(-3, 4, given.b_scales.shape)).astype(np.float32)
    indices = np.repeat([1, 0], 8).astype(np.int32)
    b_rows = np.repeat(given.b_scales, 128, 1)[:, :N]
    packed = layouts.pack_exponents(given.a_scales), layouts.pack_exponents(b_rows)
    with jitgemm.simulator("sm_100a"):
        out = gemm.group_deepgemm_fp8_nt_groupwise(given.a, given.b, *packed, indices, (1, 1, 128), out_dtype="float32")
    assert_rows_are(out, given, indices, None)


def test_operands_of_16_bits_have_no_scales(rng: np.random.Generator, arch: str) -> None:
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((3, 8, 136), (3, 72, 136)))
    masked = np.array([3, 0, 8], np.int32)
    out = np.full((3, 8, 72), 7, np.float32)
    with jitgemm.simulator(arch):
        jitgemm.grouped_block_scaled_mm(a, b, None, None, masked, out, layout="masked", expected_m=4)
    for group, count in enumerate(masked):
        expected = a[group, :count].astype(np.float64) @ b[group].astype(np.float64).T
        assert np.allclose(out[group, :count], expected, rtol=1e-5, atol=1e-3)
        assert (out[group, count:] == 7).all()
    with pytest.raises(ValueError, match="a_scales and b_scales: expected both, or neither"):
        jitgemm.grouped_block_scaled_mm(a, b, np.ones((3, 8, 2), np.float32), None, masked, layout="masked")
    with pytest.raises(ValueError, match="b: expected dtype float16"):
        jitgemm.grouped_block_scaled_mm(a, b.astype(np.float32), None, None, masked, layout="masked")


def test_the_example_of_the_documentation_runs_at_reduced_size(arch: str) -> None:
    m_per_group, n, k, group_size = 16, 128, 256, 2
    m = m_per_group * group_size
    rng = np.random.default_rng(0)
    a_f32 = rng.standard_normal((m, k)).astype(np.float32)
    b_f32 = rng.standard_normal((group_size, n, k)).astype(np.float32)
    a_fp8, a_scale = utils.per_token_cast_to_fp8(a_f32)
    b_fp8 = np.empty_like(b_f32, dtype=E4M3)
    b_scale = np.empty((group_size, n // 128, k // 128), dtype=np.float32)
    for i in range(group_size):
        b_fp8[i], b_scale[i] = utils.per_block_cast_to_fp8(b_f32[i])
    m_indices = np.empty(m, dtype=np.int32)
    for i in range(group_size):
        m_indices[slice(i * m_per_group, (i + 1) * m_per_group)] = i
    with jitgemm.simulator(arch):
        result = gemm.group_deepgemm_fp8_nt_groupwise(
            a_fp8, b_fp8, a_scale, b_scale, m_indices, out_dtype=ml_dtypes.bfloat16
        )
    assert result.shape == (32, 128)
    expected = np.concatenate([a_f32[i * 16 : i * 16 + 16] @ b_f32[i].T for i in range(group_size)])
    assert np.linalg.norm(result.astype(np.float32) - expected) < 0.06 * np.linalg.norm(expected)


@pytest.mark.parametrize(
    ("changes", "options", "kind", "words"),
    [
        ({"m_indices": np.zeros(15, np.int32)}, {}, ValueError, r"group_rows: expected shape \[m\] = \[16\]"),
        ({"m_indices": np.zeros(16, np.float32)}, {}, ValueError, "group_rows: expected dtype int32"),
        ({"m_indices": np.zeros(32, np.int32)[::2]}, {}, ValueError, "group_rows: expected contiguous"),
        ({"b": np.zeros((N, K), E4M3)}, {}, ValueError, r"b: expected shape \[groups, n, k\], found"),
        (
            {"b_scale": np.ones((3, 2, 3), np.float32)},
            {},
            ValueError,
            r"b_scales: expected shape \[groups, ceil\(n / group_n\), ceil\(k / group_k\)\] = \[2, 1, 3\]",
        ),
        (
            {},
            {"scale_granularity_mnk": (128, 128, 128)},
            ValueError,
            "a_scales: expected 1 rows, one for 128 rows of a",
        ),
        ({"a": None}, {"scale_granularity_mnk": (128, 128, 128)}, ValueError, "a: expected a matrix or a stack"),
        ({"a": None}, {}, ValueError, "a: expected an array, found None"),
        ({}, {"scale_granularity_mnk": (1, 128)}, ValueError, "scale_granularity_mnk: expected three integers"),
        (
            {},
            {"scale_granularity_mnk": (1, 128, 100)},
            NotImplementedError,
            "group_k: supported are the multiples of 32",
        ),
        ({}, {"out": np.empty((16, N + 1), np.float32)}, ValueError, r"out: expected shape \[m, n\]"),
        ({}, {"out_dtype": "int32"}, NotImplementedError, "out_dtype"),
    ],
)
def test_a_wrong_call_says_which_argument_and_what_was_expected(
    rng: np.random.Generator, changes: Any, options: Any, kind: type[Exception], words: str
) -> None:
    given = draw_groups(rng, 16, 2)
    arrays = {
        "a": given.a,
        "b": given.b,
        "a_scale": given.a_scales,
        "b_scale": given.b_scales,
        "m_indices": np.zeros(16, np.int32),
        **changes,
    }
    with pytest.raises(kind, match=words):
        gemm.group_deepgemm_fp8_nt_groupwise(**arrays, **options)


def test_groups_along_k_are_unsupported_with_a_reason(arch: str) -> None:
    problem = jitgemm.GroupedGemmProblem(m=16, n=N, k=K, groups=2, layout="columns")
    with pytest.raises(jitgemm.Unsupported, match="layout"):
        jitgemm.plan(problem, arch)


def test_masked_needs_an_expected_number_of_rows(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="expected_m: expected an integer from 1, found 0"):
        gemm.batch_deepgemm_fp8_nt_groupwise(None, None, None, None, None, 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"group_rows": None}, "group_rows: expected an array, found None"),
        ({"b": None}, "b: expected an array, found None"),
        ({"expected_m": 2.0}, "expected_m: expected an integer from 0 to 2147483647, found 2.0"),
        ({"expected_m": 2**64 + 3}, "expected_m: expected an integer"),
        ({"row_alignment": 2.0}, "row_alignment: expected an integer from 0"),
        ({"row_alignment": 2**32 + 1}, "row_alignment: expected an integer from 0"),
        ({"zero_ungrouped": None}, "zero_ungrouped: expected True or False, found None"),
    ],
)
def test_integers_and_flags_are_checked_before_c_cuts_them(rng: np.random.Generator, options: Any, words: str) -> None:
    given = draw_groups(rng, 4, 1)
    call = {**vars(given), "group_rows": np.zeros(4, np.int32), **options}
    with pytest.raises(jitgemm.InvalidArgument, match=words):
        jitgemm.grouped_block_scaled_mm(**call)


def test_flags_may_be_those_of_numpy(rng: np.random.Generator) -> None:
    given = draw_groups(rng, 2, 1)
    rows = np.array([-1, -1], np.int32)
    assert not jitgemm.grouped_block_scaled_mm(**vars(given), group_rows=rows, zero_ungrouped=np.bool_(True)).any()
