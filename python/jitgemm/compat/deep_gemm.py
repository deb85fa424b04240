# SPDX-License-Identifier: Apache-2.0
"""Drop-in for ``deep_gemm``. ``import jitgemm.compat.deep_gemm as deep_gemm``.

An operand is a pair of values and scales; the result goes into d. Scales are float32 of any value,
or packed int32 exponents. What differs: any shape; float32 scales are never rounded to powers of
two (disable_ue8m0_cast makes no difference); groups need no alignment; rows with index -1 are left
untouched. compiled_dims: m is a constant of the kernel if it is named there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

from .. import _arrays, errors, layouts
from .._dense import block_scaled_mm
from .._grouped import grouped_block_scaled_mm, scale_for_each_row
from .._problem import ceil_div
from ..quantize import per_block_cast_to_fp8 as _per_block
from ..quantize import per_token_cast_to_fp8 as _per_token

Pair = tuple[Any, Any]
_LEAST_AMAX = 1e-4


def _refuse(name: str, value: Any, accepted: tuple[Any, ...], why: str) -> None:
    if value not in accepted:
        raise errors.Unsupported(f"{name}: {why}, found {value!r}")


def _granularity(recipe: Any, recipe_a: Any, recipe_b: Any, b_scales: Any) -> tuple[int, int, int]:
    """Rows of a, rows of b and columns that share a scale: a recipe, or one for each operand."""
    if recipe is not None:
        if recipe_a is not None or recipe_b is not None:
            raise errors.InvalidArgument("recipe: expected either recipe, or recipe_a and recipe_b")
        rows, group_n, group_k = recipe
    elif recipe_a is not None or recipe_b is not None:
        if recipe_a is None or recipe_b is None:
            raise errors.InvalidArgument("recipe_a and recipe_b: expected both or neither")
        (rows, group_k), (group_n, b_group_k) = recipe_a, recipe_b
        if group_k != b_group_k:
            raise errors.Unsupported(f"recipe_b: expected {group_k} columns like recipe_a, found {b_group_k}")
    else:
        packed = _arrays.dtype_code("b scales", b_scales.dtype) == _arrays.I32
        rows, group_n, group_k = 1, 1 if packed else 128, 128
    return rows, group_n, group_k


def _policy(compiled_dims: str) -> str:
    if set(compiled_dims) - set("mnk"):
        raise errors.InvalidArgument(f"compiled_dims: expected some of m, n, k, found {compiled_dims!r}")
    return "exact" if "m" in compiled_dims else "class"


def fp8_gemm_nt(
    a: Pair,
    b: Pair,
    d: Any,
    c: Any = None,
    recipe: tuple[int, int, int] | None = None,
    recipe_a: tuple[int, int] | None = None,
    recipe_b: tuple[int, int] | None = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
    alpha: float | None = None,
) -> None:
    """d = alpha * a @ b.T + c: a is ([m, k], [m, k / 128]), b ([n, k], [n / 128, k / 128]), d [m, n] of
    bf16, fp16 or fp32, c like d (it may be d) or None. With c or alpha the product goes to float32
    memory of its own first, and one more operation of the array's library ends in d."""
    rows, group_n, group_k = _granularity(recipe, recipe_a, recipe_b, b[1])

    def product(out: Any) -> None:
        block_scaled_mm(
            a[0],
            b[0],
            scale_for_each_row(a[1], rows, a[0].shape[0]),
            b[1],
            out,
            None,
            group_n,
            group_k,
            m_policy=_policy(compiled_dims),
        )

    _scaled_and_added(product, d, c, alpha)


def _scaled_and_added(product: Callable[[Any], None], d: Any, c: Any, alpha: float | None) -> None:
    """d = alpha * product + c, all in float32 until it is rounded once into d."""
    if c is None and alpha in (None, 1.0):
        product(d)
        return
    if c is not None and tuple(c.shape) != tuple(d.shape):
        raise errors.InvalidArgument(f"c: expected shape {list(d.shape)} like d, found {list(c.shape)}")
    if _arrays.is_torch(d):
        result = d.new_empty(d.shape, dtype=sys.modules["torch"].float32)
    elif _arrays.is_numpy(d):
        result = sys.modules["numpy"].empty(d.shape, "float32")
    else:
        raise errors.Unsupported(f"c, alpha: expected d of torch or numpy, found {type(d).__name__}")
    product(result)
    if alpha is not None:
        result *= alpha
    if c is not None:
        result += c
    d[...] = result


def _transposed(x: Pair) -> Pair:
    """Values and scales with their last two axes swapped. Kernels read k contiguously: values that do
    not lie so are copied; scales may lie in either order."""
    values = x[0].swapaxes(-1, -2)
    if _arrays.is_torch(values):
        values = values.contiguous()
    elif _arrays.is_numpy(values):
        values = sys.modules["numpy"].ascontiguousarray(values)
    return values, None if x[1] is None else x[1].swapaxes(-1, -2)


def fp8_gemm_nn(a: Pair, b: Pair, d: Any, *args: Any, **options: Any) -> None:
    """d = a @ b with b ([k, n], [k / 128, n / 128]); copied first unless k is contiguous in memory."""
    fp8_gemm_nt(a, _transposed(b), d, *args, **options)


def fp8_gemm_tn(a: Pair, b: Pair, d: Any, *args: Any, **options: Any) -> None:
    """d = a.T @ b; as fp8_gemm_nn for both."""
    fp8_gemm_nn(_transposed(a), b, d, *args, **options)


def fp8_gemm_tt(a: Pair, b: Pair, d: Any, *args: Any, **options: Any) -> None:
    """d = a.T @ b.T; as fp8_gemm_nn for a."""
    fp8_gemm_nt(_transposed(a), b, d, *args, **options)


def m_grouped_fp8_gemm_nt_contiguous(
    a: Pair,
    b: Pair,
    d: Any,
    grouped_layout: Any,
    recipe: tuple[int, int, int] | None = None,
    recipe_a: tuple[int, int] | None = None,
    recipe_b: tuple[int, int] | None = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
    use_psum_layout: bool = False,
    ensure_zero_padding: bool = True,
    expected_m_for_psum_layout: int | None = None,
) -> None:
    """d[i] = a[i] @ b[g].T for the rows i of each group g.

    grouped_layout: int32 [m], the group of each row or -1; with use_psum_layout int32 [groups], where
    each group's rows end, and each group begins at a multiple of the alignment of
    get_mk_alignment_for_contiguous_layout(). ensure_zero_padding: with use_psum_layout, rows of d
    between groups, and behind the last, become zero."""
    _contiguous(
        a,
        b,
        d,
        grouped_layout,
        _granularity(recipe, recipe_a, recipe_b, b[1]),
        compiled_dims,
        use_psum_layout,
        ensure_zero_padding,
        expected_m_for_psum_layout,
    )


def _contiguous(
    a: Pair,
    b: Pair,
    d: Any,
    grouped_layout: Any,
    granularity: tuple[int, int, int],
    compiled_dims: str,
    use_psum_layout: bool,
    ensure_zero_padding: bool,
    expected_m: int | None,
) -> None:
    if not use_psum_layout and expected_m is not None:
        raise errors.InvalidArgument("expected_m_for_psum_layout: expected None without use_psum_layout")
    rows, group_n, group_k = granularity
    grouped_block_scaled_mm(
        a[0],
        b[0],
        scale_for_each_row(a[1], rows, a[0].shape[0]),
        b[1],
        grouped_layout,
        d,
        None,
        group_n,
        group_k,
        layout="end_offsets" if use_psum_layout else "row_indices",
        expected_m=expected_m or 0,
        row_alignment=_Alignment.value,
        zero_ungrouped=use_psum_layout and ensure_zero_padding,
        m_policy=_policy(compiled_dims),
    )


def m_grouped_fp8_gemm_nn_contiguous(a: Pair, b: Pair, d: Any, grouped_layout: Any, *args: Any, **options: Any) -> None:
    """The same with b ([groups, k, n], [groups, k / 128, n / 128]); copied first unless k is contiguous."""
    m_grouped_fp8_gemm_nt_contiguous(a, _transposed(b), d, grouped_layout, *args, **options)


def m_grouped_fp8_gemm_nt_masked(
    a: Pair,
    b: Pair,
    d: Any,
    masked_m: Any,
    expected_m: int,
    recipe: tuple[int, int, int] | None = None,
    recipe_a: tuple[int, int] | None = None,
    recipe_b: tuple[int, int] | None = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
) -> None:
    """d[g, i] = a[g, i] @ b[g].T for i below masked_m[g]: a ([groups, m, k], ..), d [groups, m, n],
    masked_m int32 [groups]; expected_m, the rows of an average group, steers the choice of tiles."""
    rows, group_n, group_k = _granularity(recipe, recipe_a, recipe_b, b[1])
    grouped_block_scaled_mm(
        a[0],
        b[0],
        scale_for_each_row(a[1], rows, a[0].shape[-2]),
        b[1],
        masked_m,
        d,
        None,
        group_n,
        group_k,
        layout="masked",
        expected_m=expected_m,
        m_policy=_policy(compiled_dims),
    )


fp8_fp4_gemm_nt = fp8_gemm_nt
fp8_m_grouped_gemm_nt_masked = m_grouped_fp8_gemm_nt_masked
gemm_fp8_fp8_bf16_nt = fp8_gemm_nt
m_grouped_gemm_fp8_fp8_bf16_nt_contiguous = m_grouped_fp8_gemm_nt_contiguous
m_grouped_gemm_fp8_fp8_bf16_nt_masked = m_grouped_fp8_gemm_nt_masked


def _no_kernel(name: str, why: str) -> Any:
    def refuse(*args: Any, **options: Any) -> NoReturn:
        raise errors.Unsupported(f"{name}: {why}")

    refuse.__name__ = name
    refuse.__doc__ = f"Unsupported: {why}."
    return refuse


_ALONG_K = "there is no kernel for groups along k (weight gradients)"
k_grouped_fp8_gemm_nt_contiguous = _no_kernel("k_grouped_fp8_gemm_nt_contiguous", _ALONG_K)
k_grouped_fp8_gemm_tn_contiguous = _no_kernel("k_grouped_fp8_gemm_tn_contiguous", _ALONG_K)
k_grouped_bf16_gemm_tn_contiguous = _no_kernel("k_grouped_bf16_gemm_tn_contiguous", _ALONG_K)


# --- Operands of 16 bits, without scales ---------------------------------------------------------------


def bf16_gemm_nt(a: Any, b: Any, d: Any, c: Any = None, compiled_dims: str = "nk", alpha: float | None = None) -> None:
    """d = alpha * a @ b.T + c: a [m, k] and b [n, k] of bf16 (or fp16), d [m, n] of bf16, fp16 or
    fp32; c and alpha as of fp8_gemm_nt."""
    # The grouped kernel with one group that ends at the last row.
    if _arrays.is_torch(a):
        end = a.new_full((1,), a.shape[0], dtype=sys.modules["torch"].int32)
    else:
        end = sys.modules["numpy"].full(1, a.shape[0], "int32")
    policy = _policy(compiled_dims)

    def product(out: Any) -> None:
        grouped_block_scaled_mm(a, b[None], None, None, end, out, layout="end_offsets", m_policy=policy)

    _scaled_and_added(product, d, c, alpha)


def m_grouped_bf16_gemm_nt_contiguous(
    a: Any,
    b: Any,
    d: Any,
    grouped_layout: Any,
    compiled_dims: str = "nk",
    use_psum_layout: bool = False,
    ensure_zero_padding: bool = True,
    expected_m_for_psum_layout: int | None = None,
) -> None:
    """m_grouped_fp8_gemm_nt_contiguous of bf16 (or fp16): a [m, k], b [groups, n, k]."""
    _contiguous(
        (a, None),
        (b, None),
        d,
        grouped_layout,
        (1, 128, 128),
        compiled_dims,
        use_psum_layout,
        ensure_zero_padding,
        expected_m_for_psum_layout,
    )


def m_grouped_bf16_gemm_nn_contiguous(
    a: Any,
    b: Any,
    d: Any,
    grouped_layout: Any,
    compiled_dims: str = "nk",
    use_psum_layout: bool = False,
    ensure_zero_padding: bool = True,
) -> None:
    """The same with b [groups, k, n]; copied first unless k is contiguous in memory."""
    m_grouped_bf16_gemm_nt_contiguous(
        a, _transposed((b, None))[0], d, grouped_layout, compiled_dims, use_psum_layout, ensure_zero_padding
    )


def m_grouped_bf16_gemm_nt_masked(
    a: Any, b: Any, d: Any, masked_m: Any, expected_m: int, compiled_dims: str = "nk"
) -> None:
    """m_grouped_fp8_gemm_nt_masked of bf16 (or fp16): a [groups, m, k], b [groups, n, k]."""
    policy = _policy(compiled_dims)
    grouped_block_scaled_mm(a, b, None, None, masked_m, d, layout="masked", expected_m=expected_m, m_policy=policy)


# --- Layouts -------------------------------------------------------------------------------------------


class _Alignment:
    """Rows that groups begin at multiples of, in contiguous layouts."""

    value = 128


def get_mk_alignment_for_contiguous_layout() -> int:
    """Rows to which groups of a contiguous layout are to be aligned; for m_indices a hint only."""
    return _Alignment.value


def set_mk_alignment_for_contiguous_layout(new_value: int) -> None:
    """Sets it for the process. Any value from 1."""
    if not isinstance(new_value, int) or new_value < 1:
        raise errors.InvalidArgument(f"new_value: expected an integer from 1, found {new_value!r}")
    _Alignment.value = new_value


get_m_alignment_for_contiguous_layout = get_mk_alignment_for_contiguous_layout
get_k_alignment_for_contiguous_layout = get_mk_alignment_for_contiguous_layout


def get_theoretical_mk_alignment_for_contiguous_layout(
    expected_m: int | None = None, num_groups: int | None = None
) -> int:
    """The alignment that wastes least: kernels have tiles of these many rows."""
    rows = 128 if expected_m is None else expected_m
    return next((step for step in (8, 16, 32, 64) if rows <= step), 128)


def get_tma_aligned_size(x: int, element_size: int) -> int:
    """x elements rounded up to whole 16 bytes."""
    return layouts.aligned_rows(x, element_size)


def get_mn_major_tma_aligned_tensor(sf: Any) -> Any:
    """float32 scales [.., mn, blocks] with mn contiguous and columns of whole 16 bytes."""
    return layouts.rows_contiguous(sf)


get_col_major_tma_aligned_tensor = get_mn_major_tma_aligned_tensor


def _capturing(tensor: Any) -> bool:
    torch: Any = sys.modules.get("torch")
    return _arrays.is_torch(tensor) and tensor.is_cuda and torch.cuda.is_current_stream_capturing()


def get_mn_major_tma_aligned_packed_ue8m0_tensor(sf: Any, psum_layout: Any = None) -> Any:
    """Packed exponents of float32 scales. Raises if one is not a power of two; during graph capture
    that cannot be looked at."""
    return layouts.pack_exponents(sf, check=not _capturing(sf))


def transform_sf_into_required_layout(
    sf: Any,
    mn: int,
    k: int,
    recipe: tuple[int, ...],
    num_groups: int | None = None,
    is_sfa: bool | None = None,
    disable_ue8m0_cast: bool = False,
    psum_layout: Any = None,
) -> Any:
    """The scales as kernels take them: float32 and packed scales of any order are taken as they are,
    so only shapes are checked."""
    group_mn, group_k = (recipe[0 if is_sfa else 1], recipe[2]) if len(recipe) == 3 else recipe
    blocks = ceil_div(k, group_k)
    packed = _arrays.dtype_code("sf", sf.dtype) == _arrays.I32
    expected = (*(() if num_groups is None else (num_groups,)), ceil_div(mn, group_mn))
    expected = (*expected, ceil_div(blocks, 4) if packed else blocks)
    if tuple(sf.shape) != expected:
        raise errors.InvalidArgument(f"sf: expected shape {list(expected)}, found {list(sf.shape)}")
    return sf


# --- Quantisers ------------------------------------------------------------------------------------------


def _rule(use_ue8m0: bool) -> str:
    return "pow2" if use_ue8m0 else "amax"


def per_token_cast_to_fp8(x: Any, use_ue8m0: bool, gran_k: int = 128, use_packed_ue8m0: bool = False) -> Pair:
    """Codes and scales of [m, k], a scale for each row and gran_k columns."""
    codes, scales = _per_token(x, group_k=gran_k, scale_rule=_rule(use_ue8m0), min_scale=_LEAST_AMAX / 448)
    return codes, layouts.pack_exponents(scales) if use_packed_ue8m0 else scales


def per_block_cast_to_fp8(x: Any, use_ue8m0: bool, gran_k: int = 128) -> Pair:
    """Codes and scales of [n, k], a scale for each gran_k x gran_k block."""
    return _per_block(x, group_n=gran_k, group_k=gran_k, scale_rule=_rule(use_ue8m0), min_scale=_LEAST_AMAX / 448)


def calc_diff(x: Any, y: Any) -> Any:
    """1 - 2 <x, y> / (<x, x> + <y, y>) in float64; 0 where both are zero."""
    x, y = (z.double() if _arrays.is_torch(z) else z.astype("float64") for z in (x, y))
    total = (x * x + y * y).sum()
    return 1 - 2 * (x * y).sum() / total if total != 0 else total


# --- Settings ------------------------------------------------------------------------------------------------


def get_num_sms() -> int:
    """SMs of torch's current device; kernels use them all."""
    torch: Any = sys.modules["torch"]
    return int(torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count)


def set_num_sms(num_sms: int) -> None:
    """Unsupported unless it changes nothing."""
    _refuse("num_sms", num_sms, (get_num_sms(),), "kernels use every SM")


def get_pdl() -> bool:
    """Programmatic dependent launch is off."""
    return False


def set_pdl(new_value: bool) -> None:
    """Unsupported unless it changes nothing."""
    _refuse("pdl", bool(new_value), (False,), "programmatic dependent launch is only in the C interface")
