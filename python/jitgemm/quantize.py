# SPDX-License-Identifier: Apache-2.0
"""Quantisers: fp32, fp16 or bf16 matrices to FP8 codes and one fp32 scale a block.

    scale = max(max(|x|) / largest, min_scale), with scale_rule "pow2" then rounded up to a power of 2
    code  = fp8(clamp(x / scale, -largest, largest)), to nearest, ties to even

in fp32; largest is 448 for e4m3 and 57344 for e5m2. The scale is rounded before the division, so
codes and scale belong together. A NaN makes its block's scale and codes NaN. The command ``jitgemm
quantize`` computes the same bits.
"""

from __future__ import annotations

import sys
from typing import Any

from . import _abi, _arrays, _checks, errors
from ._operands import check_group
from ._problem import ceil_div

_LARGEST = {_abi.F8_E4M3: 448.0, _abi.F8_E5M2: 57344.0}
SCALE_RULES = {"amax": 0, "pow2": 1}


def per_token_cast_to_fp8(
    x: Any,
    *,
    group_k: int = 128,
    scale_rule: str = "amax",
    dtype: Any = "float8_e4m3fn",
    min_scale: float = 1e-10,
) -> tuple[Any, Any]:
    """Quantises activations: a scale for each row and group_k columns.

    Args:
        x: [..., m, k], float32, float16 or bfloat16; a torch tensor or a numpy array.
        group_k: columns that share a scale; the last block of a row may be short.
        scale_rule: ``"amax"``: any float32. ``"pow2"``: the next power of two.
        dtype: ``"float8_e4m3fn"`` or ``"float8_e5m2"``.
        min_scale: the least scale, for blocks of zeros.

    Returns:
        New arrays of x's kind and device: codes [..., m, k], and float32 scales
        [..., m, ceil(k / group_k)], row-major. Fit as a and a_scales of
        :func:`jitgemm.block_scaled_mm`. torch runs it on the current stream and may compile it.

    Raises:
        InvalidArgument: a wrong rank, dtype or option.
    """
    return _quantise(x, 1, group_k, scale_rule, dtype, min_scale)


def per_block_cast_to_fp8(
    x: Any,
    *,
    group_n: int = 128,
    group_k: int = 128,
    scale_rule: str = "amax",
    dtype: Any = "float8_e4m3fn",
    min_scale: float = 1e-10,
) -> tuple[Any, Any]:
    """Quantises weights: a scale for each block of group_n rows and group_k columns.

    Args:
        x: [..., n, k]; leading axes, such as experts, are quantised alike.
        group_n: rows that share a scale; the last block may be short.
        group_k, scale_rule, dtype, min_scale: as in :func:`per_token_cast_to_fp8`.

    Returns:
        Codes [..., n, k] and float32 scales [..., ceil(n / group_n), ceil(k / group_k)], row-major.
        Fit as b and b_scales.

    Raises:
        InvalidArgument: a wrong rank, dtype or option.
    """
    return _quantise(x, group_n, group_k, scale_rule, dtype, min_scale)


def _quantise(
    x: Any, group_rows: int, group_columns: int, scale_rule: str, dtype: Any, min_scale: float
) -> tuple[Any, Any]:
    pow2 = _checks.choice("scale_rule", SCALE_RULES, scale_rule) == SCALE_RULES["pow2"]
    group_rows = check_group("group_n", group_rows)
    group_columns = check_group("group_k", group_columns)
    least = _checks.number("min_scale", min_scale)
    code = _arrays.dtype_code("dtype", dtype)
    if code not in _LARGEST:
        raise errors.InvalidArgument(f"dtype: expected float8_e4m3fn or float8_e5m2, found {_arrays.NAMES[code]}")
    if not (_arrays.is_torch(x) or _arrays.is_numpy(x)):
        raise errors.Unsupported(f"x: expected a torch tensor or a numpy array, found {type(x).__name__}")
    if x.ndim < 2:
        raise errors.InvalidArgument(f"x: expected a matrix or a stack of them, found shape {list(x.shape)}")
    if _arrays.dtype_code("x", x.dtype) not in (_abi.F32, _abi.F16, _abi.BF16):
        raise errors.InvalidArgument(f"x: expected dtype float32, float16 or bfloat16, found {x.dtype}")
    run = _torch_quantise if _arrays.is_torch(x) else _numpy_quantise
    return run(x, group_rows, group_columns, pow2, code, least)


def _torch_quantise(
    x: Any, group_rows: int, group_columns: int, pow2: bool, code: int, min_scale: float
) -> tuple[Any, Any]:
    torch: Any = sys.modules["torch"]
    *lead, rows, columns = x.shape
    row_blocks, column_blocks = ceil_div(rows, group_rows), ceil_div(columns, group_columns)
    pad = (0, column_blocks * group_columns - columns, 0, row_blocks * group_rows - rows)
    values = x.float()
    blocks = torch.nn.functional.pad(values, pad) if any(pad) else values
    blocks = blocks.reshape(*lead, row_blocks, group_rows, column_blocks, group_columns)
    scales = (blocks.abs().amax((-3, -1)) / _LARGEST[code]).clamp(min=min_scale)
    if pow2:
        raised = ((scales.view(torch.int32) + 0x7FFFFF) & ~0x7FFFFF).view(torch.float32)
        scales = torch.where(torch.isfinite(scales), raised, scales)
    scaled = (blocks / scales[..., :, None, :, None]).clamp(-_LARGEST[code], _LARGEST[code])
    scaled = scaled.reshape(*lead, row_blocks * group_rows, column_blocks * group_columns)[..., :rows, :columns]
    target = torch.float8_e5m2 if code == _abi.F8_E5M2 else torch.float8_e4m3fn
    return scaled.to(target).contiguous(), scales.contiguous()


def _numpy_quantise(
    x: Any, group_rows: int, group_columns: int, pow2: bool, code: int, min_scale: float
) -> tuple[Any, Any]:
    import ml_dtypes

    numpy: Any = sys.modules["numpy"]
    *lead, rows, columns = x.shape
    row_blocks, column_blocks = ceil_div(rows, group_rows), ceil_div(columns, group_columns)
    values = x.astype(numpy.float32)
    pad = [(0, 0)] * len(lead) + [(0, row_blocks * group_rows - rows), (0, column_blocks * group_columns - columns)]
    blocks = numpy.pad(values, pad).reshape(*lead, row_blocks, group_rows, column_blocks, group_columns)
    largest = numpy.float32(_LARGEST[code])
    scales = numpy.maximum(numpy.abs(blocks).max((-3, -1), initial=0.0) / largest, numpy.float32(min_scale))
    if pow2:
        raised = ((scales.view(numpy.uint32) + 0x7FFFFF) & 0xFF800000).astype(numpy.uint32).view(numpy.float32)
        scales = numpy.where(numpy.isfinite(scales), raised, scales)
    with numpy.errstate(invalid="ignore"):
        scaled = numpy.clip(blocks / scales[..., :, None, :, None], -largest, largest)
    scaled = scaled.reshape(*lead, row_blocks * group_rows, column_blocks * group_columns)[..., :rows, :columns]
    target = ml_dtypes.float8_e5m2 if code == _abi.F8_E5M2 else ml_dtypes.float8_e4m3fn
    return numpy.ascontiguousarray(scaled.astype(target)), numpy.ascontiguousarray(scales)
