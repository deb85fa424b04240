# SPDX-License-Identifier: Apache-2.0
"""Problems: what is to be computed, as Python values and as the C structs.

From a description (sizes and names) or from the arrays of a call. Says which array is wrong and
how; what has a kernel is for the library to say.
"""

from __future__ import annotations

import ctypes
import dataclasses
import operator
from typing import Any

from . import _abi, _arrays, _runtime, errors
from ._arrays import View

SCALE_VALUES = {"any": _abi.SCALE_VALUES_ANY, "pow2": _abi.SCALE_VALUES_POWER_OF_TWO}
M_POLICIES = {"exact": _abi.M_EXACT, "class": _abi.M_CLASS, "any": _abi.M_ANY}
SCALE_MAJORS = {
    "row": _abi.SCALE_MAJOR_ROW,
    "column": _abi.SCALE_MAJOR_COLUMN,
    "packed": _abi.SCALE_MAJOR_PACKED,
}
LAYOUTS = {
    "row_indices": _abi.GROUPS_ROW_INDICES,
    "end_offsets": _abi.GROUPS_END_OFFSETS,
    "row_pointers": _abi.GROUPS_ROW_POINTERS,
    "masked": _abi.GROUPS_MASKED,
    "columns": _abi.GROUPS_COLUMNS,
}


def choice(name: str, table: dict[str, int], value: Any) -> int:
    """The number of one of a few names."""
    try:
        return table[value]
    except (KeyError, TypeError):
        raise errors.InvalidArgument(f"{name}: expected one of {', '.join(table)}, found {value!r}") from None


_CHOICES = {
    "layout": LAYOUTS,
    "a_scale_major": SCALE_MAJORS,
    "b_scale_major": SCALE_MAJORS,
    "scale_values": SCALE_VALUES,
    "m_policy": M_POLICIES,
}


def _c_fields(problem: Any, struct: type[ctypes.Structure]) -> dict[str, int]:
    """The struct's fields but its size, from a description's attributes of the same names."""
    fields: dict[str, int] = {}
    for name, *_ in struct._fields_[1:]:
        value = getattr(problem, name, None)
        if value is None:  # the library's default
            continue
        if name.endswith("_dtype"):
            value = _arrays.dtype_code(name, value)
        elif name in _CHOICES:
            value = choice(name, _CHOICES[name], value)
        fields[name] = int(value)
    if fields.get("layout") != _abi.GROUPS_MASKED:
        fields["m"] = prepared_m(fields["m"], fields["m_policy"], fields["a_scale_major"], fields["a_scale_ld"])
    return fields


@dataclasses.dataclass(frozen=True)
class GemmProblem:
    """One block-scaled product, described without arrays; what :func:`jitgemm.plan`,
    :func:`jitgemm.compile` and :func:`jitgemm.prepare` take. Sizes are in elements.

    ``out[i,j] = sum over kb of dot(a[i,kb], b[j,kb]) * (a_scales[i,kb] * b_scales[j // group_n, kb])``

    Attributes:
        m: rows of a and out; with m_policy ``"class"`` or ``"any"`` a typical or largest one.
        n: rows of b, columns of out.
        k: columns of a and b.
        a_dtype: ``"float8_e4m3fn"`` or ``"float8_e5m2"``; a torch or numpy dtype will do. Or
            ``"float32"``, ``"bfloat16"`` or ``"float16"``: quantised first, into the workspace.
        b_dtype: ``"float8_e4m3fn"`` or ``"float8_e5m2"``.
        scale_dtype: ``"float32"`` or ``"float8_e8m0fnu"``.
        out_dtype: ``"bfloat16"``, ``"float16"`` or ``"float32"``.
        group_n: rows of b that share a scale.
        group_k: columns that share a scale, a multiple of 32.
        a_scale_major: ``"row"`` (blocks of k contiguous), ``"column"`` (rows contiguous) or
            ``"packed"`` (exponents of four blocks of k in one int32, rows contiguous).
        b_scale_major: as a_scale_major.
        scale_values: ``"any"``, or ``"pow2"``: a promise that every scale is a positive power of two.
        m_policy: ``"exact"`` (m is a constant of the kernel), ``"class"`` (a kernel a class of m)
            or ``"any"`` (one kernel for every m).
        lda, ldb, ldo: distances between rows of a, b and out; 0 is dense.
        a_scale_ld, b_scale_ld: distances between rows (column-major: columns) of scales; 0 is dense.
        alignment: bytes that the addresses of a, b and out are multiples of.
        batch_invariant: a row's bits depend neither on m nor on other rows.
        a_code_dtype: what an a that is quantised becomes; None is ``"float8_e4m3fn"``.
    """

    m: int
    n: int
    k: int
    a_dtype: Any = "float8_e4m3fn"
    b_dtype: Any = "float8_e4m3fn"
    scale_dtype: Any = "float32"
    out_dtype: Any = "bfloat16"
    group_n: int = 128
    group_k: int = 128
    a_scale_major: str = "row"
    b_scale_major: str = "row"
    scale_values: str = "any"
    m_policy: str = "exact"
    lda: int = 0
    ldb: int = 0
    ldo: int = 0
    a_scale_ld: int = 0
    b_scale_ld: int = 0
    alignment: int = 16
    batch_invariant: bool = False
    a_code_dtype: Any = None

    kind = _runtime.DENSE

    def to_c(self) -> _abi.GemmProblem:
        """The C struct."""
        return _abi.GemmProblem(struct_size=ctypes.sizeof(_abi.GemmProblem), **_c_fields(self, _abi.GemmProblem))


@dataclasses.dataclass(frozen=True)
class GroupedGemmProblem:
    """Several products that share one launch, described without arrays; taken wherever a
    :class:`GemmProblem` is. Which rows are whose is known on the device only.

    Attributes:
        m: rows of a and out; with the layout ``"masked"`` those of each group.
        n: rows of each group's b, columns of out.
        k: columns of a and b.
        groups: how many.
        layout: ``"row_indices"``, ``"end_offsets"``, ``"row_pointers"`` or ``"masked"``; see
            :func:`jitgemm.grouped_block_scaled_mm`.
        expected_m: rows of an average group, for the choice of tiles only; 0 is unknown.
        a_group_stride, out_group_stride, a_scale_group_stride: with ``"masked"``, elements between
            groups; 0 is dense.
        b_group_stride, b_scale_group_stride: elements between groups; 0 is dense.
        row_alignment: ``"end_offsets"``: groups begin at multiples of it (0 is 1). ``"row_indices"``:
            runs usually do, a hint (0 is 128).
        zero_ungrouped: Zeroes the rows of out that are in no group.
        count_invalid: out-of-range integers are counted.

    The other attributes are those of :class:`GemmProblem`. Operands may also both be ``"bfloat16"`` or
    ``"float16"``, without scales.
    """

    m: int
    n: int
    k: int
    groups: int
    layout: str = "row_indices"
    expected_m: int = 0
    a_dtype: Any = "float8_e4m3fn"
    b_dtype: Any = "float8_e4m3fn"
    scale_dtype: Any = "float32"
    out_dtype: Any = "bfloat16"
    group_n: int = 128
    group_k: int = 128
    a_scale_major: str = "row"
    b_scale_major: str = "row"
    scale_values: str = "any"
    m_policy: str = "exact"
    lda: int = 0
    ldb: int = 0
    ldo: int = 0
    a_scale_ld: int = 0
    b_scale_ld: int = 0
    a_group_stride: int = 0
    b_group_stride: int = 0
    out_group_stride: int = 0
    a_scale_group_stride: int = 0
    b_scale_group_stride: int = 0
    alignment: int = 16
    row_alignment: int = 0
    zero_ungrouped: bool = False
    count_invalid: bool = False
    batch_invariant: bool = False

    kind = _runtime.GROUPED

    def to_c(self) -> _abi.GroupedGemmProblem:
        """The C struct."""
        return _abi.GroupedGemmProblem(
            struct_size=ctypes.sizeof(_abi.GroupedGemmProblem), **_c_fields(self, _abi.GroupedGemmProblem)
        )


Problem = GemmProblem | GroupedGemmProblem


# --- From the arrays of a call -----------------------------------------------------------------------


def ceil_div(value: int, step: int) -> int:
    return -(-value // step)


def check_group(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if not 1 <= number < 2**31:
        raise errors.InvalidArgument(f"{name}: expected an integer from 1 to 2147483647, found {value!r}")
    return number


def check_shape(name: str, found: View, expected: tuple[int, ...], words: str) -> None:
    if found.shape != expected:
        raise errors.InvalidArgument(f"{name}: expected shape {words} = {list(expected)}, found {list(found.shape)}")


def check_rank(name: str, found: View, words: str) -> None:
    rank = words.count(",") + 1
    if len(found.shape) != rank:
        raise errors.InvalidArgument(f"{name}: expected shape {words}, found {list(found.shape)}")


def check_dtype(name: str, found: View, accepted: tuple[int, ...]) -> None:
    if found.dtype not in accepted:
        names = " or ".join(_arrays.NAMES[code] for code in accepted)
        raise errors.InvalidArgument(f"{name}: expected dtype {names}, found {_arrays.NAMES[found.dtype]}")


def check_devices(views: dict[str, View]) -> str:
    """All on one device; which."""
    device = views["a"].device
    for name, found in views.items():
        if found.device != device:
            where = {"sim": "host memory"}
            raise errors.InvalidArgument(
                f"{name}: expected memory of {where.get(device, device)} like a, "
                f"found {where.get(found.device, found.device)}"
            )
    return device


def row_stride(name: str, found: View) -> int:
    """The distance between rows of a matrix, or a stack of them, whose rows are contiguous; 0 is dense."""
    rows, columns = found.shape[-2:]
    stride, step = found.strides[-2:]
    if rows == 0:
        return 0
    if columns > 1 and step != 1:
        raise errors.Unsupported(
            f"{name}: expected contiguous rows (last stride 1), found strides {list(found.strides)}; "
            "there is no kernel for another major order"
        )
    if rows <= 1 or stride == columns:
        return 0
    if stride < columns:
        raise errors.InvalidArgument(f"{name}: expected rows that do not overlap, found strides {list(found.strides)}")
    return stride


def scale_layout(name: str, found: View | None) -> tuple[int, int]:
    """Major order and leading distance (0 is dense) of a matrix of scales, or a stack of them."""
    if found is None:
        return _abi.SCALE_MAJOR_ROW, 0
    rows, blocks = found.shape[-2:]
    row_step, block_step = found.strides[-2:]
    if found.dtype == _arrays.I32:
        if rows > 1 and row_step != 1:
            raise errors.Unsupported(
                f"{name}: expected packed scales whose rows are contiguous (stride 1, MN-major), "
                f"found strides {list(found.strides)}"
            )
        dense = blocks <= 1 or rows == 0 or block_step == ceil_div(rows, 4) * 4
        if not dense and block_step < rows:
            raise errors.InvalidArgument(f"{name}: expected columns that do not overlap, found {list(found.strides)}")
        return _abi.SCALE_MAJOR_PACKED, 0 if dense else block_step
    if rows == 0:
        return _abi.SCALE_MAJOR_ROW, 0
    if blocks <= 1 or block_step == 1:
        if rows <= 1 or row_step == blocks:
            return _abi.SCALE_MAJOR_ROW, 0
        if row_step > blocks:
            return _abi.SCALE_MAJOR_ROW, row_step
    if rows <= 1 or row_step == 1:
        if block_step == rows:
            return _abi.SCALE_MAJOR_COLUMN, 0
        if block_step > rows:
            return _abi.SCALE_MAJOR_COLUMN, block_step
    raise errors.Unsupported(
        f"{name}: expected scales that are contiguous along rows or along blocks of k and do not overlap, "
        f"found shape {list(found.shape)} with strides {list(found.strides)}"
    )


def scale_dtype(views: dict[str, View]) -> int:
    """The dtype of all scales; bytes and packed words are exponents. Without any, the default."""
    codes: dict[str, int] = {}
    for name in ("a_scales", "b_scales"):
        if name not in views:
            continue
        code = views[name].dtype
        codes[name] = code = _abi.F8_E8M0 if code in (_arrays.U8, _arrays.I32) else code
        if code not in (_abi.F32, _abi.F8_E8M0):
            raise errors.InvalidArgument(
                f"{name}: expected dtype float32, float8_e8m0fnu, uint8 (exponents) or int32 (packed exponents), "
                f"found {_arrays.NAMES[code]}"
            )
        first = next(iter(codes.values()))
        if code != first:
            raise errors.InvalidArgument(
                f"{name}: expected dtype {_arrays.NAMES[first]} like a_scales, found {_arrays.NAMES[code]}"
            )
    return codes.get("b_scales", _abi.F32)


def alignment_of(*addresses: int) -> int:
    """The largest power of two up to 16 that divides every address."""
    low = 16
    for address in addresses:
        low |= address
    return low & -low


# The m of a problem whose kernel serves every m: what such a kernel is planned for.
_ANY_M = 4096


def prepared_m(m: int, policy: int, a_major: int, a_ld: int) -> int:
    """The m to prepare for, so that every m that shares a kernel finds one operation. Scales of a
    whose columns are too close together for that m keep their own."""
    if policy == _abi.M_EXACT or m < 1:
        return m
    shared = _ANY_M if policy == _abi.M_ANY else int(_abi.lib.jitgemm_m_class_bound(m))
    return m if a_major != _abi.SCALE_MAJOR_ROW and 0 < a_ld < shared else shared


FP8 = (_abi.F8_E4M3, _abi.F8_E5M2)
OUTPUTS = (_abi.BF16, _abi.F16, _abi.F32)
SIXTEEN_BITS = (_abi.BF16, _abi.F16)


@dataclasses.dataclass(frozen=True)
class DenseOptions:
    """What a call of block_scaled_mm says besides its arrays; hashable."""

    group_n: int = 128
    group_k: int = 128
    scale_values: str = "any"
    m_policy: str = "exact"
    batch_invariant: bool = False


def out_code(out_dtype: Any, out: View | None) -> int:
    """The output's dtype: out's, which out_dtype must agree with; else out_dtype; else bf16."""
    if out is not None:
        check_dtype("out", out, OUTPUTS)
        if out_dtype is not None and _arrays.dtype_code("out_dtype", out_dtype) != out.dtype:
            raise errors.InvalidArgument(
                f"out_dtype: expected {_arrays.NAMES[out.dtype]}, the dtype of out, found {out_dtype}"
            )
        return out.dtype
    code = _abi.BF16 if out_dtype is None else _arrays.dtype_code("out_dtype", out_dtype)
    if code not in OUTPUTS:
        raise errors.Unsupported(f"out_dtype: expected bfloat16, float16 or float32, found {_arrays.NAMES[code]}")
    return code


def check_dense(views: dict[str, View], options: DenseOptions) -> tuple[int, int, int]:
    """m, n and k of a call whose shapes and dtypes fit together."""
    a, b, b_scales = (views[name] for name in ("a", "b", "b_scales"))
    a_scales = views.get("a_scales")
    check_rank("a", a, "[m, k]")
    check_rank("b", b, "[n, k]")
    check_dtype("a", a, FP8 if a_scales is not None else OUTPUTS)
    check_dtype("b", b, FP8)
    m, k = a.shape
    n = b.shape[0]
    check_shape("b", b, (n, k), "[n, k]")
    group_n = check_group("group_n", options.group_n)
    group_k = check_group("group_k", options.group_k)
    blocks = ceil_div(k, group_k)
    if a_scales is not None:
        check_scales("a_scales", a_scales, (m,), blocks, "m")
    check_scales("b_scales", b_scales, (ceil_div(n, group_n),), blocks, "ceil(n / group_n)")
    return m, n, k


def check_scales(name: str, found: View, rows: tuple[int, ...], blocks: int, words: str) -> None:
    if found.dtype == _arrays.I32:
        check_shape(name, found, (*rows, ceil_div(blocks, 4)), f"[{words}, ceil(ceil(k / group_k) / 4)]")
    else:
        check_shape(name, found, (*rows, blocks), f"[{words}, ceil(k / group_k)]")


def dense_problem(views: dict[str, View], options: DenseOptions) -> Any:
    """The C struct for checked arrays."""
    a, b, b_scales, out = (views[name] for name in ("a", "b", "b_scales", "out"))
    a_scales = views.get("a_scales")
    m, k = a.shape
    n = b.shape[0]
    check_shape("out", out, (m, n), "[m, n]")
    if not out.writable:
        raise errors.InvalidArgument("out: expected an array that may be written to, found a read-only one")
    a_major, a_ld = scale_layout("a_scales", a_scales)
    b_major, b_ld = scale_layout("b_scales", b_scales)
    policy = choice("m_policy", M_POLICIES, options.m_policy)
    return _abi.GemmProblem(
        struct_size=ctypes.sizeof(_abi.GemmProblem),
        m=prepared_m(m, policy, a_major, a_ld),
        n=n,
        k=k,
        a_dtype=a.dtype,
        b_dtype=b.dtype,
        scale_dtype=scale_dtype(views),
        out_dtype=out.dtype,
        group_n=options.group_n,
        group_k=options.group_k,
        a_scale_major=a_major,
        b_scale_major=b_major,
        scale_values=choice("scale_values", SCALE_VALUES, options.scale_values),
        m_policy=policy,
        lda=row_stride("a", a),
        ldb=row_stride("b", b),
        ldo=row_stride("out", out),
        a_scale_ld=a_ld,
        b_scale_ld=b_ld,
        alignment=alignment_of(a.address, b.address, out.address),
        batch_invariant=int(options.batch_invariant),
    )


# --- Grouped products ----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class GroupedOptions:
    """What a call of grouped_block_scaled_mm says besides its arrays; hashable."""

    group_n: int = 128
    group_k: int = 128
    layout: str = "row_indices"
    expected_m: int = 0
    row_alignment: int = 0
    zero_ungrouped: bool = False
    scale_values: str = "any"
    m_policy: str = "exact"
    batch_invariant: bool = False


def check_grouped(views: dict[str, View], options: GroupedOptions) -> tuple[int, tuple[int, ...]]:
    """m and the shape of out of a call whose shapes and dtypes fit together."""
    a, b, rows = (views[name] for name in ("a", "b", "group_rows"))
    layout = choice("layout", LAYOUTS, options.layout)
    masked = layout == _abi.GROUPS_MASKED
    check_rank("a", a, "[groups, m, k]" if masked else "[m, k]")
    check_rank("b", b, "[groups, n, k]")
    scaled = "a_scales" in views
    if scaled != ("b_scales" in views):
        raise errors.InvalidArgument("a_scales and b_scales: expected both, or neither for operands of 16 bits")
    check_dtype("a", a, FP8 if scaled else SIXTEEN_BITS)
    check_dtype("b", b, FP8 if scaled else (a.dtype,))
    m, k = a.shape[-2:]
    groups, n = b.shape[:2]
    check_shape("b", b, (groups, n, k), "[groups, n, k]")
    if masked:
        check_shape("a", a, (groups, m, k), "[groups, m, k]")
    blocks = ceil_div(k, check_group("group_k", options.group_k))
    n_blocks = ceil_div(n, check_group("group_n", options.group_n))
    lead = (groups,) if masked else ()
    if scaled:
        check_scales("a_scales", views["a_scales"], (*lead, m), blocks, "groups, m" if masked else "m")
        check_scales("b_scales", views["b_scales"], (groups, n_blocks), blocks, "groups, ceil(n / group_n)")
    check_dtype("group_rows", rows, (_arrays.I32,))
    count, words = {
        _abi.GROUPS_ROW_INDICES: (m, "[m]"),
        _abi.GROUPS_ROW_POINTERS: (groups + 1, "[groups + 1]"),
    }.get(layout, (groups, "[groups]"))
    check_shape("group_rows", rows, (count,), words)
    if count > 1 and rows.strides != (1,):
        raise errors.InvalidArgument(f"group_rows: expected contiguous integers, found stride {rows.strides[0]}")
    return m, (*lead, m, n)


def group_stride(name: str, found: View, dense: int) -> int:
    """Elements between groups of a stack of matrices; 0 is dense."""
    groups = found.shape[0]
    stride = found.strides[0]
    if groups <= 1 or stride == dense:
        return 0
    if stride < 1:
        raise errors.InvalidArgument(
            f"{name}: expected groups that do not overlap, found strides {list(found.strides)}"
        )
    return stride


def scale_group_stride(name: str, found: View | None, major: int, leading: int) -> int:
    """The same of scales, whose dense stack depends on their order."""
    if found is None:
        return 0
    rows, blocks = found.shape[-2:]
    if major == _abi.SCALE_MAJOR_ROW:
        dense = rows * (leading or blocks)
    elif major == _abi.SCALE_MAJOR_COLUMN:
        dense = blocks * (leading or rows)
    else:
        dense = blocks * (leading or ceil_div(rows, 4) * 4)
    return group_stride(name, found, dense)


def grouped_problem(views: dict[str, View], options: GroupedOptions) -> Any:
    """The C struct for checked arrays."""
    a, b, out = (views[name] for name in ("a", "b", "out"))
    a_scales, b_scales = views.get("a_scales"), views.get("b_scales")
    layout = choice("layout", LAYOUTS, options.layout)
    masked = layout == _abi.GROUPS_MASKED
    m, k = a.shape[-2:]
    groups, n = b.shape[:2]
    check_shape("out", out, (groups, m, n) if masked else (m, n), "[groups, m, n]" if masked else "[m, n]")
    if not out.writable:
        raise errors.InvalidArgument("out: expected an array that may be written to, found a read-only one")
    counter = views.get("invalid_count")
    if counter is not None:
        check_dtype("invalid_count", counter, (_arrays.I32,))
        check_shape("invalid_count", counter, (1,), "[1]")
    a_major, a_ld = scale_layout("a_scales", a_scales)
    b_major, b_ld = scale_layout("b_scales", b_scales)
    a_scale_step = scale_group_stride("a_scales", a_scales, a_major, a_ld) if masked else 0
    b_scale_step = scale_group_stride("b_scales", b_scales, b_major, b_ld)
    lda, ldb, ldo = row_stride("a", a), row_stride("b", b), row_stride("out", out)
    policy = choice("m_policy", M_POLICIES, options.m_policy)
    return _abi.GroupedGemmProblem(
        struct_size=ctypes.sizeof(_abi.GroupedGemmProblem),
        m=m if masked else prepared_m(m, policy, a_major, a_ld),
        n=n,
        k=k,
        groups=groups,
        expected_m=options.expected_m,
        lda=lda,
        ldb=ldb,
        ldo=ldo,
        a_scale_ld=a_ld,
        b_scale_ld=b_ld,
        a_group_stride=group_stride("a", a, m * (lda or k)) if masked else 0,
        b_group_stride=group_stride("b", b, n * (ldb or k)),
        out_group_stride=group_stride("out", out, m * (ldo or n)) if masked else 0,
        a_scale_group_stride=a_scale_step,
        b_scale_group_stride=b_scale_step,
        layout=layout,
        a_dtype=a.dtype,
        b_dtype=b.dtype,
        scale_dtype=scale_dtype(views),
        out_dtype=out.dtype,
        group_n=options.group_n,
        group_k=options.group_k,
        a_scale_major=a_major,
        b_scale_major=b_major,
        scale_values=choice("scale_values", SCALE_VALUES, options.scale_values),
        m_policy=policy,
        alignment=alignment_of(a.address, b.address, out.address),
        row_alignment=options.row_alignment,
        zero_ungrouped=int(options.zero_ungrouped),
        count_invalid=int(counter is not None),
        batch_invariant=int(options.batch_invariant),
    )
