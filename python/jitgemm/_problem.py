# SPDX-License-Identifier: Apache-2.0
"""Problems: what is to be computed, as Python values and as the C structs.

Described by sizes and names; ``_operands`` makes them from the arrays of a call. What has a kernel is for
the library to say.
"""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any, ClassVar

from . import _abi, _arrays, _checks, _runtime

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


def ceil_div(value: int, step: int) -> int:
    return -(-value // step)


_CHOICES = {
    "layout": LAYOUTS,
    "a_scale_major": SCALE_MAJORS,
    "b_scale_major": SCALE_MAJORS,
    "scale_values": SCALE_VALUES,
    "m_policy": M_POLICIES,
}
_FLAGS = {"batch_invariant", "zero_ungrouped", "count_invalid"}


# The m of a problem whose kernel serves every m: what such a kernel is planned for.
_ANY_M = 4096


def prepared_m(m: int, policy: int, a_major: int, a_ld: int) -> int:
    """The m to prepare for, so that every m that shares a kernel finds one operation. Scales of a
    whose columns are too close together for that m keep their own."""
    if policy == _abi.M_EXACT or m < 1:
        return m
    shared = _ANY_M if policy == _abi.M_ANY else int(_abi.lib.jitgemm_m_class_bound(m))
    return m if a_major != _abi.SCALE_MAJOR_ROW and 0 < a_ld < shared else shared


def _c_fields(problem: Any, struct: type[ctypes.Structure]) -> dict[str, int]:
    """The struct's fields but its size, from a description's attributes of the same names."""
    fields: dict[str, int] = {}
    for name, kind, *_ in struct._fields_[1:]:
        if not hasattr(problem, name):
            continue
        value = getattr(problem, name)
        if name == "a_code_dtype" and value is None:  # the library's default
            continue
        if name.endswith("_dtype"):
            fields[name] = _arrays.dtype_code(name, value)
        elif name in _CHOICES:
            fields[name] = _checks.choice(name, _CHOICES[name], value)
        elif name in _FLAGS:
            fields[name] = _checks.flag(name, value)
        else:
            fields[name] = _checks.field(name, value, 8 * ctypes.sizeof(kind))
    if fields.get("layout") != _abi.GROUPS_MASKED:
        fields["m"] = prepared_m(fields["m"], fields["m_policy"], fields["a_scale_major"], fields["a_scale_ld"])
    return fields


@dataclasses.dataclass(frozen=True)
class _Product:
    """What every description says."""

    kind: ClassVar[_runtime.Kind]

    m: int
    n: int
    k: int
    _: dataclasses.KW_ONLY
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

    def to_c(self) -> Any:
        """The C struct."""
        struct = self.kind.problem
        return struct(struct_size=ctypes.sizeof(struct), **_c_fields(self, struct))


@dataclasses.dataclass(frozen=True)
class GemmProblem(_Product):
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

    a_code_dtype: Any = dataclasses.field(default=None, kw_only=True)

    kind = _runtime.DENSE


@dataclasses.dataclass(frozen=True)
class GroupedGemmProblem(_Product):
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

    groups: int
    layout: str = "row_indices"
    expected_m: int = 0
    _: dataclasses.KW_ONLY
    a_group_stride: int = 0
    b_group_stride: int = 0
    out_group_stride: int = 0
    a_scale_group_stride: int = 0
    b_scale_group_stride: int = 0
    row_alignment: int = 0
    zero_ungrouped: bool = False
    count_invalid: bool = False

    kind = _runtime.GROUPED


Problem = GemmProblem | GroupedGemmProblem


def checked(problem: Any) -> Problem:
    """The problem, which is one."""
    if not isinstance(problem, GemmProblem | GroupedGemmProblem):
        raise _checks.wrong("problem", "a GemmProblem or a GroupedGemmProblem", problem)
    return problem
