# SPDX-License-Identifier: Apache-2.0
"""Inputs, guarded tensors and references of the GPU tests; everything stays on the GPU."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

GUARD = 0xA5


class Guarded:
    """A tensor with guard bytes on both sides."""

    def __init__(self, values: Any, margin: int = 4096) -> None:
        size = values.numel() * values.element_size()
        self.memory = torch.full((size + 2 * margin,), GUARD, dtype=torch.uint8, device=values.device)
        self.margin = margin
        self.tensor = self.memory[margin : margin + size].view(values.dtype).view(values.shape)
        self.tensor.copy_(values)

    def intact(self) -> bool:
        ends = torch.cat([self.memory[: self.margin], self.memory[-self.margin :]])
        return bool((ends == GUARD).all())


def cast(values: Any) -> Any:
    return values.clamp(-448, 448).to(torch.float8_e4m3fn)


@dataclasses.dataclass
class Grouped:
    """Operands of grouped products with a scale for each 1 x 128 of a and 128 x 128 of b."""

    a: Any
    b: Any
    a_scales: Any
    b_scales: Any


def draw(rows: tuple[int, ...], groups: tuple[int, ...], n: int, k: int) -> Grouped:
    """a of rows x k, b of groups x n x k; scales are any float32."""
    blocks = -(-k // 128)

    def scales(*shape: int) -> Any:
        return torch.rand(*shape, device="cuda") + 0.5

    # Drawn as bf16, since float32 copies of all experts would not fit beside the rest.
    return Grouped(
        cast(torch.randn(*rows, k, device="cuda", dtype=torch.bfloat16)),
        cast(torch.randn(*groups, n, k, device="cuda", dtype=torch.bfloat16)),
        scales(*rows, blocks),
        scales(*groups, -(-n // 128), blocks),
    )


def exact(a: Any, b: Any, a_scales: Any, b_scales: Any) -> tuple[Any, Any]:
    """The product in float64, and the sum of the absolute values of each element's terms."""
    k, n = a.shape[1], b.shape[0]
    left = a.double() * a_scales.double().repeat_interleave(128, 1)[:, :k]
    right = b.double() * b_scales.double().repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
    return left @ right.T, left.abs() @ right.abs().T


def dequantised_rows(a: Any, a_scales: Any) -> Any:
    return a.float() * a_scales.repeat_interleave(128, 1)[:, : a.shape[1]]


def dequantised_weights(b: Any, b_scales: Any) -> Any:
    n, k = b.shape
    return b.float() * b_scales.repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]


def dequantised(a: Any, b: Any, a_scales: Any, b_scales: Any) -> Any:
    """The product in float32 of dequantised operands: what peers compare with."""
    return dequantised_rows(a, a_scales) @ dequantised_weights(b, b_scales).T


def assert_bound(found: Any, a: Any, b: Any, a_scales: Any, b_scales: Any) -> None:
    """Half an ulp of the output and what a tensor core's accumulator may lose."""
    expected, magnitude = exact(a, b, a_scales, b_scales)
    ulp = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 2.0**-24}[found.dtype]
    wrong = (found.double() - expected).abs() > ulp * expected.abs() + 2.0**-12 * magnitude
    assert not bool(wrong.any()), f"{int(wrong.sum())} of {wrong.numel()} are wrong"


class CloseLikePeer:
    """The peer's comparison of one product, part by part: every element within the tolerance, absolute
    plus relative.

    It was written for SM100, whose tensor cores accumulate FP8 products in fp32. Hopper's keep fewer
    bits (at k = 7168 the error's standard deviation is a third of the tolerance), so that among
    millions of elements a few near zero are off. There 1 in 10000 of the product may be, and every
    element is held to the bound that Hopper's accumulator allows.
    """

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.off = 0
        self.elements = 0

    def add(self, found: Any, a: Any, b: Any, a_scales: Any, b_scales: Any) -> None:
        expected = dequantised(a, b, a_scales, b_scales)
        self.off += int(((found.float() - expected).abs() > self.tolerance * (1 + expected.abs())).sum())
        self.elements += found.numel()
        assert_bound(found, a, b, a_scales, b_scales)

    def finish(self) -> None:
        allowed = 0.0 if torch.cuda.get_device_capability()[0] >= 10 else 1e-4
        assert self.off <= allowed * self.elements, f"{self.off} of {self.elements} are off"
