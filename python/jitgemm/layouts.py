# SPDX-License-Identifier: Apache-2.0
"""Layouts of scales: rows contiguous with 16-byte columns, and exponents packed four to a word.

Kernels take row-major scales as they are; these serve callers who hold scales for other libraries.
Work on torch tensors and numpy arrays.
"""

from __future__ import annotations

import sys
from typing import Any

from . import _abi, _arrays, errors
from ._problem import ceil_div


def aligned_rows(rows: int, item_size: int) -> int:
    """Rows rounded up so that a column of them is a multiple of 16 bytes."""
    if item_size not in (1, 2, 4, 8, 16):
        raise errors.InvalidArgument(f"item_size: expected 1, 2, 4, 8 or 16 bytes, found {item_size}")
    step = 16 // item_size
    return ceil_div(rows, step) * step


def _column_major(like: Any, columns: int, name: str) -> Any:
    """Zeros [..., rows, columns] with rows contiguous and columns of whole 16 bytes."""
    *lead, rows, _ = like.shape
    shape = (*lead, columns, aligned_rows(rows, 4))
    if _arrays.is_torch(like):
        torch: Any = sys.modules["torch"]
        memory = torch.zeros(shape, dtype=getattr(torch, name), device=like.device)
    elif _arrays.is_numpy(like):
        memory = sys.modules["numpy"].zeros(shape, name)
    else:
        raise errors.Unsupported(f"scales: expected a torch tensor or a numpy array, found {type(like).__name__}")
    return memory.swapaxes(-1, -2)[..., :rows, :]


def _check_float(scales: Any) -> None:
    if scales.ndim < 2 or _arrays.dtype_code("scales", scales.dtype) != _abi.F32:
        raise errors.InvalidArgument(
            f"scales: expected float32 [..., rows, blocks], found {scales.dtype} {list(scales.shape)}"
        )


def rows_contiguous(scales: Any) -> Any:
    """Scales with rows contiguous and columns of whole 16 bytes.

    Args:
        scales: float32 [..., rows, blocks], in any order.

    Returns:
        The same values and shape; a copy unless they lie so already.
    """
    _check_float(scales)
    *lead, rows, blocks = scales.shape
    column = aligned_rows(rows, 4)
    view = _arrays.as_view("scales", scales)
    wanted = _arrays.dense_strides((*lead, blocks, column))
    if view.strides == (*wanted[:-2], 1, column):
        return scales
    out = _column_major(scales, blocks, "float32")
    out[...] = scales
    return out


def pack_exponents(scales: Any, *, check: bool = True) -> Any:
    """The exponents of power-of-two scales, four blocks of k to an int32, the lowest block lowest.

    Args:
        scales: float32 [..., rows, blocks], positive powers of two.
        check: raise if one is not (waits for the GPU, so not during graph capture); without it the
            fraction of such a scale is dropped.

    Returns:
        int32 [..., rows, ceil(blocks / 4)] with rows contiguous and columns of whole 16 bytes.

    Raises:
        InvalidArgument: a scale is not a positive power of two, so packing would change it.
    """
    _check_float(scales)
    blocks = scales.shape[-1]
    library: Any = sys.modules["torch" if _arrays.is_torch(scales) else "numpy"]
    bits = (scales.contiguous() if _arrays.is_torch(scales) else library.ascontiguousarray(scales)).view(library.int32)
    if check and bool(((bits & 0x7FFFFF) != 0).any() | (bits <= 0).any() | (bits >= 0x7F800000).any()):
        raise errors.InvalidArgument(
            "scales: expected positive powers of two, found others; packing keeps exponents only and would change "
            "them. Quantise with powers of two, or pass the float32 scales, which are applied exactly"
        )
    out = _column_major(scales, ceil_div(blocks, 4), "int32")
    for block in range(4):
        part = (bits[..., block::4] >> 23) & 0xFF
        # Shifting into the sign bit is meant: the word's highest byte is the fourth block.
        out[..., : part.shape[-1]] |= (part << (8 * block)) if block < 3 else ((part ^ 0x80) - 0x80) << 24
    return out


def unpack_exponents(packed: Any, blocks: int) -> Any:
    """The float32 scales that packed exponents stand for; the inverse of :func:`pack_exponents`.

    Args:
        packed: int32 [..., rows, ceil(blocks / 4)], in any order.
        blocks: of k.

    Returns:
        float32 [..., rows, blocks], row-major.
    """
    if packed.ndim < 2 or _arrays.dtype_code("packed", packed.dtype) != _arrays.I32:
        raise errors.InvalidArgument(f"packed: expected int32 [..., rows, words], found {packed.dtype}")
    if packed.shape[-1] != ceil_div(blocks, 4):
        raise errors.InvalidArgument(f"packed: expected {ceil_div(blocks, 4)} words a row, found {packed.shape[-1]}")
    library: Any = sys.modules["torch" if _arrays.is_torch(packed) else "numpy"]
    parts = [(packed >> (8 * block)) & 0xFF for block in range(4)]
    exponents = library.stack(parts, -1).reshape(*packed.shape[:-1], -1)[..., :blocks]
    # 2^-127 is no normal number, and the largest exponent stands for NaN.
    bits = library.where(exponents == 0, 1 << 22, exponents << 23)
    bits = library.where(exponents == 255, 0x7FC00000, bits)
    if _arrays.is_torch(packed):
        return bits.to(library.int32).contiguous().view(library.float32)
    return library.ascontiguousarray(bits.astype(library.int32)).view(library.float32)
