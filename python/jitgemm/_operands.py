# SPDX-License-Identifier: Apache-2.0
"""From the arrays of a call to the problem that it is: which shapes, orders and dtypes fit together.

Says which array is wrong and how. Options are what a call says besides its arrays; each kind of product
has its own, with the checks and the C struct that belong to it.
"""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any, ClassVar

from . import _abi, _arrays, _checks, _runtime, errors
from ._arrays import View
from ._checks import choice
from ._problem import LAYOUTS, M_POLICIES, SCALE_VALUES, ceil_div, prepared_m


def check_group(name: str, value: Any) -> int:
    return _checks.integer(name, value, 1, 2**31 - 1)


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
            assumed = " (assumed; jitgemm.view takes a device)" if found.device_assumed else ""
            raise errors.InvalidArgument(
                f"{name}: expected memory of {where.get(device, device)} like a, "
                f"found {where.get(found.device, found.device)}{assumed}"
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


FP8 = (_abi.F8_E4M3, _abi.F8_E5M2)
OUTPUTS = (_abi.BF16, _abi.F16, _abi.F32)
SIXTEEN_BITS = (_abi.BF16, _abi.F16)


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


def check_scales(name: str, found: View, rows: tuple[int, ...], blocks: int, words: str) -> None:
    if found.dtype == _arrays.I32:
        check_shape(name, found, (*rows, ceil_div(blocks, 4)), f"[{words}, ceil(ceil(k / group_k) / 4)]")
    else:
        check_shape(name, found, (*rows, blocks), f"[{words}, ceil(k / group_k)]")


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


# --- The kinds of products -----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class DenseOptions:
    """What a call of block_scaled_mm says besides its arrays; hashable."""

    kind: ClassVar[_runtime.Kind] = _runtime.DENSE

    group_n: int = 128
    group_k: int = 128
    scale_values: str = "any"
    m_policy: str = "exact"
    batch_invariant: bool = False

    def check(self, views: dict[str, View]) -> tuple[int, tuple[int, ...]]:
        """m and the shape of out of a call whose shapes and dtypes fit together."""
        _checks.present(views, ("a", "b", "b_scales"))
        a, b, b_scales = (views[name] for name in ("a", "b", "b_scales"))
        a_scales = views.get("a_scales")
        check_rank("a", a, "[m, k]")
        check_rank("b", b, "[n, k]")
        check_dtype("a", a, FP8 if a_scales is not None else OUTPUTS)
        check_dtype("b", b, FP8)
        m, k = a.shape
        n = b.shape[0]
        check_shape("b", b, (n, k), "[n, k]")
        group_n = check_group("group_n", self.group_n)
        blocks = ceil_div(k, check_group("group_k", self.group_k))
        if a_scales is not None:
            check_scales("a_scales", a_scales, (m,), blocks, "m")
        check_scales("b_scales", b_scales, (ceil_div(n, group_n),), blocks, "ceil(n / group_n)")
        return m, (m, n)

    def problem(self, views: dict[str, View]) -> _abi.GemmProblem:
        """The C struct for checked arrays and out."""
        m, n = views["a"].shape[0], views["b"].shape[0]
        check_shape("out", views["out"], (m, n), "[m, n]")
        return _abi.GemmProblem(struct_size=ctypes.sizeof(_abi.GemmProblem), **_common(self, views, m, True))


@dataclasses.dataclass(frozen=True)
class GroupedOptions:
    """What a call of grouped_block_scaled_mm says besides its arrays; hashable."""

    kind: ClassVar[_runtime.Kind] = _runtime.GROUPED

    group_n: int = 128
    group_k: int = 128
    layout: str = "row_indices"
    expected_m: int = 0
    row_alignment: int = 0
    zero_ungrouped: bool = False
    scale_values: str = "any"
    m_policy: str = "exact"
    batch_invariant: bool = False

    def check(self, views: dict[str, View]) -> tuple[int, tuple[int, ...]]:
        """m and the shape of out of a call whose shapes and dtypes fit together."""
        _checks.present(views, ("a", "b", "group_rows"))
        a, b, rows = (views[name] for name in ("a", "b", "group_rows"))
        layout = choice("layout", LAYOUTS, self.layout)
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
        blocks = ceil_div(k, check_group("group_k", self.group_k))
        n_blocks = ceil_div(n, check_group("group_n", self.group_n))
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

    def problem(self, views: dict[str, View]) -> _abi.GroupedGemmProblem:
        """The C struct for checked arrays and out."""
        a, b, out = (views[name] for name in ("a", "b", "out"))
        layout = choice("layout", LAYOUTS, self.layout)
        masked = layout == _abi.GROUPS_MASKED
        m, k = a.shape[-2:]
        groups, n = b.shape[:2]
        check_shape("out", out, (groups, m, n) if masked else (m, n), "[groups, m, n]" if masked else "[m, n]")
        counter = views.get("invalid_count")
        if counter is not None:
            check_dtype("invalid_count", counter, (_arrays.I32,))
            check_shape("invalid_count", counter, (1,), "[1]")
        common = _common(self, views, m, not masked)
        lda, ldb, ldo = (common[name] for name in ("lda", "ldb", "ldo"))

        def scale_stride(name: str) -> int:
            side = name[0]
            return scale_group_stride(name, views.get(name), common[f"{side}_scale_major"], common[f"{side}_scale_ld"])

        return _abi.GroupedGemmProblem(
            struct_size=ctypes.sizeof(_abi.GroupedGemmProblem),
            groups=groups,
            expected_m=_checks.integer("expected_m", self.expected_m, 0, 2**31 - 1),
            a_group_stride=group_stride("a", a, m * (lda or k)) if masked else 0,
            b_group_stride=group_stride("b", b, n * (ldb or k)),
            out_group_stride=group_stride("out", out, m * (ldo or n)) if masked else 0,
            a_scale_group_stride=scale_stride("a_scales") if masked else 0,
            b_scale_group_stride=scale_stride("b_scales"),
            layout=layout,
            row_alignment=_checks.integer("row_alignment", self.row_alignment, 0, 2**31 - 1),
            zero_ungrouped=_checks.flag("zero_ungrouped", self.zero_ungrouped),
            count_invalid=int(counter is not None),
            **common,
        )


Options = DenseOptions | GroupedOptions


def _common(options: Options, views: dict[str, View], m: int, m_is_shared: bool) -> dict[str, Any]:
    """The fields that the C structs of all kinds have. m_is_shared: one operation may serve several m."""
    a, b, out = (views[name] for name in ("a", "b", "out"))
    if not out.writable:
        raise errors.InvalidArgument("out: expected an array that may be written to, found a read-only one")
    a_major, a_ld = scale_layout("a_scales", views.get("a_scales"))
    b_major, b_ld = scale_layout("b_scales", views.get("b_scales"))
    policy = choice("m_policy", M_POLICIES, options.m_policy)
    return {
        "m": prepared_m(m, policy, a_major, a_ld) if m_is_shared else m,
        "n": b.shape[-2],
        "k": a.shape[-1],
        "a_dtype": a.dtype,
        "b_dtype": b.dtype,
        "scale_dtype": scale_dtype(views),
        "out_dtype": out.dtype,
        "group_n": check_group("group_n", options.group_n),
        "group_k": check_group("group_k", options.group_k),
        "a_scale_major": a_major,
        "b_scale_major": b_major,
        "scale_values": choice("scale_values", SCALE_VALUES, options.scale_values),
        "m_policy": policy,
        "lda": row_stride("a", a),
        "ldb": row_stride("b", b),
        "ldo": row_stride("out", out),
        "a_scale_ld": a_ld,
        "b_scale_ld": b_ld,
        "alignment": alignment_of(a.address, b.address, out.address),
        "batch_invariant": _checks.flag("batch_invariant", options.batch_invariant),
    }
