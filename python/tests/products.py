# SPDX-License-Identifier: Apache-2.0
"""Inputs, guarded arrays and the float64 reference of the CPU tests."""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np

E4M3 = ml_dtypes.float8_e4m3fn
E5M2 = ml_dtypes.float8_e5m2
GUARD = 0xA5


class Guarded:
    """An array with guard bytes on both sides of its memory and between its rows."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, row_stride: int | None = None, offset: int = 64) -> None:
        item = np.dtype(dtype).itemsize
        stride = row_stride or shape[-1]
        rows = int(np.prod(shape[:-1]))
        self.memory = np.full(offset + rows * stride * item + 64, GUARD, np.uint8)
        inner = self.memory[offset : offset + rows * stride * item].view(dtype)
        self.array = inner.reshape(*shape[:-1], stride)[..., : shape[-1]]

    def intact(self) -> bool:
        """Whether everything outside of the array is as it was."""
        inside = np.zeros(self.memory.shape, bool)
        start = self.array.__array_interface__["data"][0] - self.memory.__array_interface__["data"][0]
        offsets = np.array(start)
        for extent, stride in zip(self.array.shape, self.array.strides, strict=True):
            offsets = offsets[..., None] + np.arange(extent) * stride
        for byte in range(self.array.itemsize):
            inside[(offsets + byte).ravel()] = True
        return bool((self.memory[~inside] == GUARD).all())


@dataclasses.dataclass
class Product:
    """Operands of a block-scaled product; scales are any float32, so no power of two."""

    a: np.ndarray
    b: np.ndarray
    a_scales: np.ndarray
    b_scales: np.ndarray
    group_n: int = 128
    group_k: int = 128


def draw(
    rng: np.random.Generator,
    m: int,
    n: int,
    k: int,
    *,
    group_n: int = 128,
    group_k: int = 128,
    a_dtype: Any = E4M3,
    b_dtype: Any = E4M3,
) -> Product:
    blocks = -(-k // group_k)
    return Product(
        rng.standard_normal((m, k)).astype(a_dtype),
        rng.standard_normal((n, k)).astype(b_dtype),
        rng.uniform(0.5, 1.5, (m, blocks)).astype(np.float32),
        rng.uniform(0.5, 1.5, (-(-n // group_n), blocks)).astype(np.float32),
        group_n,
        group_k,
    )


def reference(p: Product) -> tuple[np.ndarray, np.ndarray]:
    """The product in float64, and for each element the sum of the absolute values of its terms."""
    k = p.a.shape[1]
    n = p.b.shape[0]
    a = p.a.astype(np.float64) * np.repeat(p.a_scales.astype(np.float64), p.group_k, 1)[:, :k]
    scales = np.repeat(np.repeat(p.b_scales.astype(np.float64), p.group_n, 0)[:n], p.group_k, 1)[:, :k]
    b = p.b.astype(np.float64) * scales
    return a @ b.T, np.abs(a) @ np.abs(b).T


# Half an ulp of the output type, and what a tensor core's accumulator may lose of the sum of a block.
ROUNDING = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
ACCUMULATION = 2.0**-12


def assert_close(found: np.ndarray, p: Product) -> None:
    expected, magnitude = reference(p)
    bound = ROUNDING[found.dtype.name] * np.abs(expected) + ACCUMULATION * magnitude
    wrong = ~(np.abs(found.astype(np.float64) - expected) <= bound)
    assert not wrong.any(), f"{wrong.sum()} of {wrong.size} are wrong, the first at {np.argwhere(wrong)[0]}"
