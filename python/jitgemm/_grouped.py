# SPDX-License-Identifier: Apache-2.0
"""Grouped products: the public functions."""

from __future__ import annotations

import sys
from typing import Any

from . import _arrays, _checks, _launch, _operands, _state, errors
from ._problem import ceil_div


def grouped_block_scaled_mm(
    a: Any,
    b: Any,
    a_scales: Any,
    b_scales: Any,
    group_rows: Any,
    out: Any = None,
    out_dtype: Any = None,
    group_n: int = 128,
    group_k: int = 128,
    *,
    layout: str = "row_indices",
    expected_m: int = 0,
    row_alignment: int = 0,
    zero_ungrouped: bool = False,
    invalid_count: Any = None,
    scale_values: str = "any",
    m_policy: str = "exact",
    batch_invariant: bool = False,
    stream: int | None = None,
    workspace: Any = None,
) -> Any:
    """Several FP8 products in one launch: each group has a b of its own, and rows of a and out.

    ``out[i,j] = sum over kb of dot(a[i,kb], b[g,j,kb]) * (a_scales[i,kb] * b_scales[g, j // group_n, kb])``

    for every row i of group g. Which rows those are is read from group_rows on the device when the
    kernel runs, so a captured graph may be replayed with other contents, and nothing waits. The
    integers may be anything: an index that is no group counts as -1, a bound outside of [0, m] as
    the nearest in it, and nothing out of bounds is read or written. Rows of no group are left
    untouched; in a new array they are unspecified. A group without rows costs nothing.

    Streams, threads, ownership, torch.compile, graphs and gradients: as for
    :func:`jitgemm.block_scaled_mm`.

    Args:
        a: [m, k], float8_e4m3fn or float8_e5m2, rows contiguous; ``"masked"``: [groups, m, k]. Or
            bfloat16 or float16, like b and without scales: the plain product.
        b: [groups, n, k], as a.
        a_scales: [m, ceil(k / group_k)], ``"masked"``: [groups, m, ceil(k / group_k)]; float32 of
            any value in either order, or float8_e8m0fnu (uint8 is read as that). Or int32:
            exponents packed four to a word, [.., m, ceil(k / group_k / 4)], rows contiguous and
            columns of whole 16 bytes (:func:`jitgemm.layouts.pack_exponents`).
        b_scales: [groups, ceil(n / group_n), ceil(k / group_k)], as a_scales.
        group_rows: int32, on the device of a; its meaning depends on layout.
        out: [m, n] to be written, ``"masked"``: [groups, m, n]; a new array without it.
        out_dtype: bfloat16 (default), float16 or float32; must agree with out if both are given.
        group_n: rows of b that share a scale, from 1.
        group_k: columns that share a scale, a multiple of 32.
        layout: ``"row_indices"``: group_rows is [m], the group of each row or -1, in any order.
            ``"end_offsets"``: [groups], where each group's rows end; they begin where the group
            before ended, rounded up to row_alignment. ``"row_pointers"``: [groups + 1], where each
            group's rows begin, and the end of the last. ``"masked"``: [groups], how many rows of
            each group are in use.
        expected_m: rows of an average group, for the choice of tiles only; 0 is unknown.
        row_alignment: see layout; for ``"row_indices"`` a hint that runs usually begin at multiples
            of it (0 is 128).
        zero_ungrouped: zeroes the rows of ``out`` that are in no group; of masked groups those not in use.
        invalid_count: int32 [1] on the device: the number of out-of-range integers is added to it.
        scale_values: ``"any"``, or ``"pow2"``: a promise that every float32 scale is a positive
            power of two.
        m_policy: ``"exact"``, ``"class"`` or ``"any"``; kernels never depend on m, only tiles do.
        batch_invariant: a row's bits depend neither on m nor on other rows.
        stream: address of a CUstream to use instead of torch's current one.
        workspace: as for :func:`jitgemm.block_scaled_mm`.

    Returns:
        out, or a new array of the kind and on the device of a.

    Raises:
        InvalidArgument, Unsupported, CaptureNotReady, Error: as for :func:`jitgemm.block_scaled_mm`.
    """
    options = (
        group_n,
        group_k,
        layout,
        expected_m,
        row_alignment,
        zero_ungrouped,
        scale_values,
        m_policy,
        batch_invariant,
    )
    if group_rows is None:
        raise errors.InvalidArgument("group_rows: expected an array, found None")
    backend = _state.torch_backend
    if backend is None and _arrays.is_torch(a):
        backend = _state.load_torch_backend()
    if backend is not None and isinstance(a, backend.Tensor):
        if workspace is not None:
            raise errors.InvalidArgument("workspace: expected None for torch tensors, whose allocator provides it")
        return backend.product(a, b, a_scales, b_scales, group_rows, out, out_dtype, invalid_count, stream, options)
    arrays = {
        "a": a,
        "b": b,
        "a_scales": a_scales,
        "b_scales": b_scales,
        "group_rows": group_rows,
        "invalid_count": invalid_count,
    }
    return _launch.run(
        _operands.GroupedOptions(*options), arrays, out, out_dtype, _checks.address("stream", stream), workspace
    )


# --- Under the names and signatures that engines call -------------------------------------------------


def granularity(scale_granularity_mnk: tuple[int, int, int]) -> tuple[int, int, int]:
    """Rows of a, rows of b and columns that share a scale."""
    try:
        rows, columns, depth = scale_granularity_mnk
    except (TypeError, ValueError):
        raise errors.InvalidArgument(
            f"scale_granularity_mnk: expected three integers, found {scale_granularity_mnk!r}"
        ) from None
    return _operands.check_group("scale_granularity_mnk[0]", rows), columns, depth


def rows_of(a: Any) -> Any:
    """m of a, which may be anything."""
    shape: Any = getattr(a, "shape", ())
    if len(shape) < 2:
        raise errors.InvalidArgument(f"a: expected a matrix or a stack of them, found {type(a).__name__} {list(shape)}")
    return shape[-2]


def scale_for_each_row(scales: Any, rows: int, m: int) -> Any:
    """Scales [.., ceil(m / rows), blocks] as [.., m, blocks]; a copy where rows share a scale."""
    if rows == 1 or scales is None:
        return scales
    if len(getattr(scales, "shape", ())) < 2:
        raise errors.InvalidArgument(f"a_scales: expected a matrix or a stack of them, found {type(scales).__name__}")
    if scales.shape[-2] != ceil_div(m, rows):
        raise errors.InvalidArgument(
            f"a_scales: expected {ceil_div(m, rows)} rows, one for {rows} rows of a, found {scales.shape[-2]}"
        )
    if _arrays.is_torch(scales):
        return scales.repeat_interleave(rows, -2)[..., :m, :]
    if _arrays.is_numpy(scales):
        return sys.modules["numpy"].repeat(scales, rows, -2)[..., :m, :]
    raise errors.Unsupported(
        f"a_scales: expected a scale for every row of a {type(scales).__name__}; those of torch and numpy are repeated"
    )


def group_deepgemm_fp8_nt_groupwise(
    a: Any,
    b: Any,
    a_scale: Any,
    b_scale: Any,
    m_indices: Any,
    scale_granularity_mnk: tuple[int, int, int] = (1, 128, 128),
    out: Any = None,
    out_dtype: Any = None,
) -> Any:
    """Grouped product in which m_indices says each row's group.

    Any m, n, k and number of groups; groups may be in any order, missing, repeated, and need no
    alignment. Rows with -1, or an index that is no group, are left untouched. Scales are applied
    exactly, whatever their values. Runs on SM90 too. m may vary from call to call: tiles are chosen
    for a class of m. See :func:`jitgemm.grouped_block_scaled_mm`
    for streams, threads, ownership and graphs.

    Args:
        a: [m, k], float8_e4m3fn.
        b: [groups, n, k], float8_e4m3fn.
        a_scale: [m, ceil(k / 128)], float32; or exponents packed in int32 [m, ceil(k / 512)], see
            grouped_block_scaled_mm.
        b_scale: [groups, ceil(n / 128), ceil(k / 128)], float32; or packed with a row for each n and
            the granularity (1, 1, 128).
        m_indices: [m], int32.
        scale_granularity_mnk: rows of a, rows of b and columns that share a scale; columns a
            multiple of 32. Where several rows of a share one, a_scale is [ceil(m / rows), ..] and is
            first copied to a scale for each.
        out: [m, n] to be written; a new array without it.
        out_dtype: bfloat16 (default), float16 or float32; ignored if out is given.

    Returns:
        out, or a new array.

    Raises:
        ValueError: (InvalidArgument) shapes, dtypes or devices do not fit.
        NotImplementedError: (Unsupported) there is no kernel for it.
    """
    rows, group_n, group_k = granularity(scale_granularity_mnk)
    a_scale = a_scale if rows == 1 else scale_for_each_row(a_scale, rows, rows_of(a))
    return grouped_block_scaled_mm(
        a,
        b,
        a_scale,
        b_scale,
        m_indices,
        out,
        None if out is not None else out_dtype,
        group_n,
        group_k,
        m_policy="class",
    )


def batch_deepgemm_fp8_nt_groupwise(
    a: Any,
    b: Any,
    a_scale: Any,
    b_scale: Any,
    masked_m: Any,
    expected_m: int,
    scale_granularity_mnk: tuple[int, int, int] = (1, 128, 128),
    out: Any = None,
    out_dtype: Any = None,
) -> Any:
    """Batched product in which masked_m says how many rows of each group are in use.

    Rows beyond masked_m are left untouched; a group with none costs nothing.

    Args:
        a: [groups, m, k], float8_e4m3fn.
        b: [groups, n, k], float8_e4m3fn.
        a_scale: [groups, m, ceil(k / 128)], float32; or packed, as there.
        b_scale: [groups, ceil(n / 128), ceil(k / 128)], float32; or packed, as there.
        masked_m: [groups], int32, on the device.
        expected_m: rows of an average group, from 1: for the choice of tiles only.
        scale_granularity_mnk: as for group_deepgemm_fp8_nt_groupwise.
        out: [groups, m, n] to be written; a new array without it.
        out_dtype: bfloat16 (default), float16 or float32; ignored if out is given.

    Returns:
        out, or a new array.

    Raises:
        ValueError: (InvalidArgument) shapes, dtypes, devices or expected_m do not fit.
        NotImplementedError: (Unsupported) there is no kernel for it.
    """
    if not isinstance(expected_m, int) or expected_m < 1:
        raise errors.InvalidArgument(f"expected_m: expected an integer from 1, found {expected_m!r}")
    rows, group_n, group_k = granularity(scale_granularity_mnk)
    a_scale = a_scale if rows == 1 else scale_for_each_row(a_scale, rows, rows_of(a))
    return grouped_block_scaled_mm(
        a,
        b,
        a_scale,
        b_scale,
        masked_m,
        out,
        None if out is not None else out_dtype,
        group_n,
        group_k,
        layout="masked",
        expected_m=expected_m,
        m_policy="class",
    )
