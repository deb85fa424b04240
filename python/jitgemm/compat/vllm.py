# SPDX-License-Identifier: Apache-2.0
"""Drop-in for vLLM's block-scaled FP8 functions: those of ``quantization.utils.fp8_utils`` and of
``vllm.utils.deep_gemm``.

What differs: any block shape whose columns are a multiple of 32, any m, n and k; float32 scales are
never rounded to powers of two.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from .. import _arrays, errors, layouts
from .._dense import block_scaled_mm
from ..quantize import per_block_cast_to_fp8 as _per_block
from ..quantize import per_token_cast_to_fp8 as _per_token
from . import deep_gemm
from .deep_gemm import (
    calc_diff,
    get_col_major_tma_aligned_tensor,
    get_mn_major_tma_aligned_tensor,
    transform_sf_into_required_layout,
)

__all__ = [
    "block_scaled_mm",
    "w8a8_block_fp8_matmul",
    "w8a8_triton_block_scaled_mm",
    "cutlass_scaled_mm",
    "per_token_group_quant_fp8",
    "fp8_gemm_nt",
    "m_grouped_fp8_gemm_nt_contiguous",
    "fp8_m_grouped_gemm_nt_masked",
    "per_block_cast_to_fp8",
    "calc_diff",
    "get_col_major_tma_aligned_tensor",
    "get_mn_major_tma_aligned_tensor",
    "transform_sf_into_required_layout",
    "is_deep_gemm_supported",
    "is_deep_gemm_e8m0_used",
]


def w8a8_block_fp8_matmul(
    A: Any, B: Any, As: Any, Bs: Any, block_size: Sequence[int], output_dtype: Any = "float16"
) -> Any:
    """A [.., k] times B [n, k] transposed, with scales As [.., ceil(k / block_k)] and Bs
    [ceil(n / block_n), ceil(k / block_k)]; block_size is [block_n, block_k]. Returns [.., n] of
    output_dtype: float16, bfloat16 or float32."""
    try:
        block_n, block_k = block_size
    except (TypeError, ValueError):
        raise errors.InvalidArgument(f"block_size: expected [block_n, block_k], found {block_size!r}") from None
    if tuple(A.shape[:-1]) != tuple(As.shape[:-1]):
        raise errors.InvalidArgument(
            f"As: expected leading extents {list(A.shape[:-1])} like A, found {list(As.shape[:-1])}"
        )
    rows = 1
    for extent in A.shape[:-1]:
        rows *= extent
    out = block_scaled_mm(
        A if A.ndim == 2 else A.reshape(rows, A.shape[-1]),
        B,
        As if As.ndim == 2 else As.reshape(rows, As.shape[-1]),
        Bs,
        None,
        output_dtype,
        block_n,
        block_k,
        m_policy="class",
    )
    return out if A.ndim == 2 else out.reshape(*A.shape[:-1], B.shape[0])


w8a8_triton_block_scaled_mm = w8a8_block_fp8_matmul
cutlass_scaled_mm = w8a8_block_fp8_matmul


def per_token_group_quant_fp8(
    x: Any,
    group_size: int,
    eps: float = 1e-10,
    dtype: Any = None,
    column_major_scales: bool = False,
    tma_aligned_scales: bool = False,
    out_q: Any = None,
    use_ue8m0: bool | None = None,
) -> tuple[Any, Any]:
    """Codes [.., k] and float32 scales [.., k / group_size]; use_ue8m0 rounds scales up to powers of
    two (default: no). Scales are row-major, or have rows contiguous if asked for."""
    codes, scales = _per_token(
        x if x.ndim > 1 else x.reshape(1, -1),
        group_k=group_size,
        scale_rule="pow2" if use_ue8m0 else "amax",
        dtype="float8_e4m3fn" if dtype is None else dtype,
        min_scale=eps / 448,
    )
    if x.ndim == 1:
        codes, scales = codes[0], scales[0]
    elif column_major_scales and tma_aligned_scales:
        scales = layouts.rows_contiguous(scales)
    elif column_major_scales:
        scales = _contiguous(scales.swapaxes(-1, -2)).swapaxes(-1, -2)
    if out_q is None:
        return codes, scales
    if tuple(out_q.shape) != tuple(codes.shape) or out_q.dtype != codes.dtype:
        raise errors.InvalidArgument(f"out_q: expected {codes.dtype} {list(codes.shape)}, found {list(out_q.shape)}")
    out_q[...] = codes
    return out_q, scales


def _contiguous(array: Any) -> Any:
    return array.contiguous() if _arrays.is_torch(array) else array.copy()


def fp8_gemm_nt(*args: Any, is_deep_gemm_e8m0_used: bool | None = None, **options: Any) -> None:
    """As deep_gemm.fp8_gemm_nt. is_deep_gemm_e8m0_used makes no difference: scales are exact."""
    deep_gemm.fp8_gemm_nt(*args, **options)


def m_grouped_fp8_gemm_nt_contiguous(*args: Any, **options: Any) -> None:
    """As deep_gemm.m_grouped_fp8_gemm_nt_contiguous."""
    deep_gemm.m_grouped_fp8_gemm_nt_contiguous(*args, **options)


def fp8_m_grouped_gemm_nt_masked(*args: Any, **options: Any) -> None:
    """As deep_gemm.m_grouped_fp8_gemm_nt_masked."""
    deep_gemm.m_grouped_fp8_gemm_nt_masked(*args, **options)


def per_block_cast_to_fp8(x: Any, block_size: Sequence[int] = (128, 128), use_ue8m0: bool = False) -> tuple[Any, Any]:
    """Codes and scales of [n, k], a scale for each block of block_size."""
    group_n, group_k = block_size
    return _per_block(
        x, group_n=group_n, group_k=group_k, scale_rule="pow2" if use_ue8m0 else "amax", min_scale=1e-4 / 448
    )


def is_deep_gemm_supported() -> bool:
    """Whether torch's current GPU has kernels."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_available() and torch.cuda.get_device_capability()[0] in (9, 10)


def is_deep_gemm_e8m0_used() -> bool:
    """Whether scales must be powers of two: they need not be."""
    return False
