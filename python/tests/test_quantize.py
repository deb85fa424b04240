# SPDX-License-Identifier: Apache-2.0
"""The numpy quantisers against their definition."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from products import E4M3, E5M2

import jitgemm
from jitgemm import utils


def definition(x: np.ndarray, rows: int, columns: int, pow2: bool, largest: float, dtype: Any) -> Any:
    """One block after the other, as the formula is written."""
    x = x.astype(np.float32)
    codes = np.empty(x.shape, dtype)
    scales = np.empty((-(-x.shape[0] // rows), -(-x.shape[1] // columns)), np.float32)
    for i in range(scales.shape[0]):
        for j in range(scales.shape[1]):
            block = np.s_[i * rows : (i + 1) * rows, j * columns : (j + 1) * columns]
            scale = np.maximum(np.abs(x[block]).max() / np.float32(largest), np.float32(1e-10))
            if pow2:
                fraction, exponent = np.frexp(scale)
                scale = np.float32(np.ldexp(1.0, exponent - (fraction == 0.5)))
            scales[i, j] = scale
            codes[block] = np.clip(x[block] / scale, -largest, largest).astype(dtype)
    return codes, scales


@pytest.mark.parametrize("source", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("rule", "dtype", "largest"), [("amax", E4M3, 448.0), ("pow2", E5M2, 57344.0)])
def test_codes_and_scales_are_those_of_the_definition(
    rng: np.random.Generator, source: Any, rule: str, dtype: Any, largest: float
) -> None:
    x = (rng.standard_normal((70, 200)) * 10.0 ** rng.integers(-3, 3, (70, 1))).astype(source)
    x[:, 128:] *= x.dtype.type(0)  # a block of zeros
    for found, rows in (
        (jitgemm.per_token_cast_to_fp8(x, scale_rule=rule, dtype=dtype), 1),
        (jitgemm.per_block_cast_to_fp8(x, scale_rule=rule, dtype=dtype, group_n=32), 32),
    ):
        codes, scales = definition(x, rows, 128, rule == "pow2", largest, dtype)
        assert (found[1] == scales).all()
        assert found[0].dtype == dtype
        assert (found[0].view(np.uint8) == codes.view(np.uint8)).all()


def test_codes_times_scales_are_near_the_source(rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 130, 300)).astype(np.float32)
    codes, scales = utils.per_block_cast_to_fp8(x)
    assert scales.shape == (3, 2, 3)
    back = codes.astype(np.float32) * np.repeat(np.repeat(scales, 128, 1)[:, :130], 128, 2)[:, :, :300]
    assert np.linalg.norm(back - x) < 0.03 * np.linalg.norm(x)


def test_a_power_of_two_stays_and_everything_else_rises() -> None:
    x = np.array([[448.0, 0.0], [449.0, 0.0], [3 * 448.0, 1.0]], np.float32)
    _, scales = jitgemm.per_token_cast_to_fp8(x, scale_rule="pow2")
    assert scales.tolist() == [[1.0], [2.0], [4.0]]


def test_nan_and_infinity_spoil_their_block_alone() -> None:
    x = np.ones((3, 256), np.float32)
    x[0, 5], x[1, 7] = np.nan, np.inf
    codes, scales = jitgemm.per_token_cast_to_fp8(x)
    values = codes.astype(np.float32)
    assert np.isnan(scales[0, 0])
    assert np.isnan(values[0, :128]).all()
    assert np.isinf(scales[1, 0])
    assert np.isnan(values[1, 7])
    assert (np.delete(values[1, :128], 7) == 0).all()
    assert (values[:, 128:] == 448).all()
    assert (values[2] == 448).all()


@pytest.mark.parametrize(
    ("x", "options", "words"),
    [
        (np.ones(3, np.float32), {}, "x: expected a matrix"),
        (np.ones((3, 3), np.int32), {}, "x: expected dtype float32, float16 or bfloat16"),
        (np.ones((3, 3), np.float32), {"scale_rule": "max"}, "scale_rule: expected one of amax, pow2"),
        (np.ones((3, 3), np.float32), {"dtype": "float16"}, "dtype: expected float8_e4m3fn or float8_e5m2"),
        (np.ones((3, 3), np.float32), {"group_k": 0}, "group_k: expected an integer from 1"),
        (np.ones((3, 3), np.float32), {"min_scale": "1"}, "min_scale: expected a number, found '1'"),
    ],
)
def test_a_wrong_argument_is_named(x: np.ndarray, options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        jitgemm.per_token_cast_to_fp8(x, **options)
