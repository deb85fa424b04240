# SPDX-License-Identifier: Apache-2.0
"""Drop-in for ``flashinfer.gemm``'s FP8 products with groupwise scales.

What differs: any shape, SM90 too, out may be bfloat16, float16 or float32, groups need no
alignment, and float32 scales are applied exactly.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from .._dense import block_scaled_mm
from .._grouped import (
    batch_deepgemm_fp8_nt_groupwise,
    granularity,
    group_deepgemm_fp8_nt_groupwise,
    grouped_block_scaled_mm,
    scale_for_each_row,
)
from .._problem import ceil_div
from ..quantize import per_block_cast_to_fp8, per_token_cast_to_fp8

__all__ = [
    "group_deepgemm_fp8_nt_groupwise",
    "batch_deepgemm_fp8_nt_groupwise",
    "gemm_fp8_nt_groupwise",
    "gemm_fp8_nt_blockscaled",
    "group_gemm_fp8_nt_groupwise",
    "fp8_blockscale_gemm_sm90",
    "per_token_cast_to_fp8",
    "per_block_cast_to_fp8",
]


def _row_major(scales: Any, scale_major_mode: str | None) -> Any:
    """Scales as [.., rows, blocks], whichever of the two modes they come in; no copy."""
    if scale_major_mode == "K":
        return scales
    if scale_major_mode in ("MN", None):
        return scales.swapaxes(-1, -2)
    raise errors.InvalidArgument(f"scale_major_mode: expected 'MN' or 'K', found {scale_major_mode!r}")


def _check_mma_sm(mma_sm: int) -> None:
    """How many SMs share a tile is the plan's choice; the argument has no effect on results."""
    if mma_sm not in (1, 2):
        raise errors.InvalidArgument(f"mma_sm: expected 1 or 2, found {mma_sm!r}")


def gemm_fp8_nt_groupwise(
    a: Any,
    b: Any,
    a_scale: Any,
    b_scale: Any,
    scale_major_mode: str | None = None,
    mma_sm: int = 1,
    scale_granularity_mnk: tuple[int, int, int] = (1, 128, 128),
    out: Any = None,
    out_dtype: Any = None,
    backend: str = "cutlass",
) -> Any:
    """a [m, k] times b [n, k] transposed, [m, n] of bfloat16 (default), float16 or float32.

    Scales in mode ``"K"`` are [m / gm, k / gk] and [n / gn, k / gk]; in mode ``"MN"`` (and None) the
    transposes of these. With gm above 1 each scale of a is repeated for its rows first. The backend
    ``"trtllm"`` is unsupported: its scales lie otherwise."""
    if backend not in ("cutlass", "auto"):
        raise errors.Unsupported(f"backend: expected 'cutlass', whose layouts these are, found {backend!r}")
    _check_mma_sm(mma_sm)
    rows, group_n, group_k = granularity(scale_granularity_mnk)
    a_scale = scale_for_each_row(_row_major(a_scale, scale_major_mode), rows, a.shape[0])
    return block_scaled_mm(
        a,
        b,
        a_scale,
        _row_major(b_scale, scale_major_mode),
        out,
        out_dtype,
        group_n,
        group_k,
        m_policy="class",
    )


def gemm_fp8_nt_blockscaled(
    a: Any,
    b: Any,
    a_scale: Any,
    b_scale: Any,
    scale_major_mode: str | None = "MN",
    mma_sm: int = 1,
    out: Any = None,
    out_dtype: Any = None,
) -> Any:
    """gemm_fp8_nt_groupwise with a scale for each 128 x 128 block of a, too."""
    return gemm_fp8_nt_groupwise(a, b, a_scale, b_scale, scale_major_mode, mma_sm, (128, 128, 128), out, out_dtype)


def group_gemm_fp8_nt_groupwise(
    a: Any,
    b: Any,
    a_scale: Any,
    b_scale: Any,
    m_indptr: Any,
    scale_granularity_mnk: tuple[int, int, int] = (1, 128, 128),
    scale_major_mode: str = "MN",
    mma_sm: int = 1,
    out: Any = None,
    out_dtype: Any = None,
) -> Any:
    """Grouped product whose groups are segments: group g has the rows m_indptr[g] to m_indptr[g + 1]
    (int32 [groups + 1] on the device; any numbers, not only multiples of 4).

    a [m, k], b [groups, n, k]; scales in mode ``"MN"`` are [k / gk, m] and [groups, k / gk, n / gn], in
    mode ``"K"`` [m, k / gk] and [groups, n / gn, k / gk]. Returns [m, n]."""
    _check_mma_sm(mma_sm)
    rows, group_n, group_k = granularity(scale_granularity_mnk)
    return grouped_block_scaled_mm(
        a,
        b,
        scale_for_each_row(_row_major(a_scale, scale_major_mode), rows, a.shape[0]),
        _row_major(b_scale, scale_major_mode),
        m_indptr,
        out,
        out_dtype,
        group_n,
        group_k,
        layout="row_pointers",
        m_policy="class",
    )


def fp8_blockscale_gemm_sm90(
    input: Any,
    weight: Any,
    input_scale: Any = None,
    weight_scale: Any = None,
    out: Any = None,
    out_dtype: Any = None,
) -> Any:
    """input [m, k] times weight [n, k] transposed, [m, n] of bfloat16 (default), float16 or float32.

    weight is FP8 with scales [ceil(n / 128), ceil(k / 128)] or [n, ceil(k / 128)]. input is FP8 with
    scales [m, ceil(k / 128)], or float32, bfloat16 or float16 without: then the operation quantises
    it first. A weight that is not FP8 is unsupported: it would be quantised in each call; use
    per_block_cast_to_fp8 once."""
    if weight_scale is None:
        raise errors.Unsupported("weight_scale: expected scales of an FP8 weight, found None")
    n = weight.shape[0]
    group_n = 128 if weight_scale.shape[0] == ceil_div(n, 128) else 1
    return block_scaled_mm(input, weight, input_scale, weight_scale, out, out_dtype, group_n, 128, m_policy="class")
