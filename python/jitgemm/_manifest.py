# SPDX-License-Identifier: Apache-2.0
"""Manifests: files that list problems whose kernels are compiled ahead of time.

The format and its rules are described in cache/README.md; the command line has a reader of its own, and
both refuse the same files. Knows problems; neither contexts nor devices.
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
from collections.abc import Collection
from typing import Any

from . import _abi, _problem, _runtime, errors
from ._problem import GemmProblem, GroupedGemmProblem, Problem

_MOST_ENTRIES = 100_000
_MOST_EXACT = 65_536
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1

_INTEGERS = {"n": _INT64_MAX, "k": _INT64_MAX, "group_n": _INT32_MAX, "group_k": _INT32_MAX}
_GROUPED_INTEGERS = {"groups": _INT32_MAX, "expected_m": _INT32_MAX, "row_alignment": _INT32_MAX}
_CODES = ("F8_E4M3", "F8_E5M2")
_FLOATS = ("F32", "BF16", "F16")
_TEXTS: dict[str, Collection[str]] = {
    "a_dtype": (*_CODES, *_FLOATS),
    "a_code_dtype": _CODES,
    "b_dtype": _CODES,
    "scale_dtype": ("F32", "F8_E8M0"),
    "out_dtype": _FLOATS,
    "scale_values": _problem.SCALE_VALUES,
    "a_scale_major": _problem.SCALE_MAJORS,
    "b_scale_major": _problem.SCALE_MAJORS,
    "m_policy": _problem.M_POLICIES,
}
_LAYOUTS = ("row_indices", "end_offsets", "row_pointers", "masked")
_ONLY_GROUPED = ("layout", "groups", "expected_m", "row_alignment", "zero_ungrouped")
_FIELDS = {"op", "m", "archs", *_INTEGERS, *_TEXTS, *_ONLY_GROUPED}
_DENSE, _GROUPED = "block_scaled_mm", "group_gemm_fp8_nt_groupwise"


def _shown(value: Any) -> str:
    """A value as an error message shows it."""
    text = json.dumps(value)
    return text if len(text) <= 64 else text[:64] + "..."


def _bad(where: str, name: str, expected: str, found: Any) -> errors.CorruptData:
    return errors.CorruptData(f"{where}: field '{name}': expected {expected}, found {_shown(found)}")


def _missing(where: str, name: str) -> errors.CorruptData:
    return errors.CorruptData(f"{where}: field '{name}' is missing")


def _words(names: Collection[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}"


def _integer(where: str, name: str, value: Any, greatest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= greatest:
        raise _bad(where, name, f"an integer from 0 to {greatest}", value)
    return value


def _text(where: str, name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _bad(where, name, "a text that is not empty", value)
    try:
        value.encode()
    except UnicodeEncodeError as error:  # half of a pair of surrogates
        raise errors.CorruptData(f"{where}: not JSON: field '{name}': {error.reason}") from error
    return value


def _refuse_unknown(where: str, found: dict[str, Any], known: Collection[str]) -> None:
    for name in found:
        if name not in known:
            raise errors.CorruptData(f"{where}: unknown field '{name[:64]}'")


def _field(where: str, name: str, value: Any, grouped: bool) -> Any:
    """One field of an entry that becomes the problem's field of that name."""
    if name in _ONLY_GROUPED and not grouped:
        raise errors.CorruptData(f"{where}: field '{name}' is for \"{_GROUPED}\"")
    if name in _INTEGERS or name in _GROUPED_INTEGERS:
        number = _integer(where, name, value, {**_INTEGERS, **_GROUPED_INTEGERS}[name])
        if name in ("group_n", "group_k") and number == 0:  # which C would take for the default
            raise errors.CorruptData(f"{where}: {name}: expected at least 1, found 0")
        return number
    if name == "zero_ungrouped":
        if not isinstance(value, bool):
            raise _bad(where, name, "true or false", value)
        return value
    words = _LAYOUTS if name == "layout" else _TEXTS[name]
    if not isinstance(value, str) or value not in words:
        raise _bad(where, name, _words(words), value)
    return value


def _rows(where: str, entry: dict[str, Any]) -> tuple[int, int]:
    """The first and the last m."""
    if "m" not in entry:
        raise _missing(where, "m")
    value = entry["m"]
    if not isinstance(value, list):
        m = _integer(where, "m", value, _INT32_MAX)
        return m, m
    if len(value) != 2:
        raise _bad(where, "m", "an integer, or [first, last]", value)
    first, last = (_integer(where, "m", m, _INT32_MAX) for m in value)
    if first > last:
        raise _bad(where, "m", "first <= last", value)
    return first, last


def _archs(where: str, entry: dict[str, Any]) -> tuple[str, ...]:
    if "archs" not in entry:
        raise _missing(where, "archs")
    value = entry["archs"]
    if not isinstance(value, list) or not value:
        raise _bad(where, "archs", 'a list of targets, e.g. ["sm_90a"]', value)
    for arch in value:
        if not isinstance(arch, str):
            raise _bad(where, "archs", "a list of targets", value)
        if arch not in _runtime.ARCHS:
            raise errors.Unsupported(
                f"{where}: field 'archs': {_shown(arch)} has no kernels; supported are {', '.join(_runtime.ARCHS)}"
            )
    if len(set(value)) != len(value):
        raise _bad(where, "archs", "each target once", value)
    return tuple(value)


def _refuse_wrong_values(where: str, problem: Problem, archs: tuple[str, ...]) -> None:
    """A value that no problem may have is bad data here, not a wrong call; what has no kernel stays Unsupported."""
    for arch in archs:
        length = ctypes.c_size_t(0)
        try:
            given = ctypes.byref(problem.to_c())
            _abi.check(problem.kind.plan(given, _runtime.arch_number(arch), None, ctypes.byref(length)))
        except errors.Unsupported as error:
            raise errors.Unsupported(f"{where}: {error.message}") from error
        except errors.InvalidArgument as error:
            raise errors.CorruptData(f"{where}: {error.message}") from error


def _entry(where: str, entry: dict[str, Any]) -> tuple[list[Problem], tuple[str, ...]]:
    """The problems of an entry whose kernels may differ, one for each class of m in its range, and its archs."""
    if "op" not in entry:
        raise _missing(where, "op")
    if entry["op"] not in (_DENSE, _GROUPED):
        raise _bad(where, "op", f'"{_DENSE}" or "{_GROUPED}"', entry["op"])
    grouped = entry["op"] == _GROUPED
    fields = {
        name: _field(where, name, value, grouped)
        for name, value in entry.items()
        if name not in ("name", "archs", "op", "m")
    }
    for name in ("n", "k", *(("layout", "groups") if grouped else ())):
        if name not in fields:
            raise _missing(where, name)
    first, last = _rows(where, entry)
    policy = fields.setdefault("m_policy", "class" if isinstance(entry["m"], list) else "exact")
    if policy == "exact" and last - first >= _MOST_EXACT:
        raise _bad(where, "m", f'a range of at most {_MOST_EXACT} values, since "m_policy" is exact', entry["m"])
    if grouped and fields.pop("a_code_dtype", "F8_E4M3") != "F8_E4M3":
        raise _bad(where, "a_code_dtype", "the default, since groups are not quantised", entry["a_code_dtype"])
    kind = GroupedGemmProblem if grouped else GemmProblem
    archs = _archs(where, entry)
    _refuse_wrong_values(where, kind(m=last, **fields), archs)
    problems: list[Problem] = []
    m = first
    while m <= last:
        problems.append(kind(m=m, **fields))
        if policy == "any":
            break
        m = _abi.lib.jitgemm_m_class_bound(m) + 1 if policy == "class" else m + 1
    return problems, archs


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise errors.CorruptData(f"key '{name[:64]}' appears twice")
        found[name] = value
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _document(path: pathlib.Path) -> dict[str, Any]:
    """The file as JSON, its outermost fields checked."""
    where = str(path)
    try:
        found = json.loads(
            path.read_text(encoding="utf-8-sig"), object_pairs_hook=_unique_keys, parse_constant=_no_constant
        )
    except OSError as error:
        raise errors.IoError(f"manifest: {error}") from error
    except errors.CorruptData as error:
        raise errors.CorruptData(f"{where}: {error.message}") from error
    except ValueError as error:
        raise errors.CorruptData(f"{where}: not JSON: {error}") from error
    if not isinstance(found, dict):
        raise errors.CorruptData(f"{where}: expected an object")
    _refuse_unknown(where, found, ("schema", "name", "description", "defaults", "entries"))
    if "schema" not in found:
        raise _missing(where, "schema")
    if type(found["schema"]) is not int or found["schema"] != 1:
        raise errors.Unsupported(f"{where}: field 'schema': this version reads 1, found {_shown(found['schema'])}")
    for name in ("name", "description"):
        if name not in found:
            raise _missing(where, name)
        _text(where, name, found[name])
    return found


def read_manifest(manifest: str | os.PathLike[str]) -> list[tuple[str, Problem, tuple[str, ...]]]:
    """The name, problem and archs of everything that a manifest asks for.

    Raises:
        CorruptData: not a manifest; the message names the entry and the field.
        Unsupported: a manifest of another schema, an unknown arch, or an entry that has no kernel.
        IoError: the file cannot be read.
    """
    path = pathlib.Path(manifest)
    try:
        return _read(path)
    except RecursionError as error:
        raise errors.CorruptData(f"{path}: nested too deeply") from error


def _read(path: pathlib.Path) -> list[tuple[str, Problem, tuple[str, ...]]]:
    document = _document(path)
    defaults = document.get("defaults", {})
    if not isinstance(defaults, dict):
        raise _bad(str(path), "defaults", "an object", defaults)
    _refuse_unknown(f"{path}: defaults", defaults, _FIELDS)
    if "entries" not in document:
        raise _missing(str(path), "entries")
    entries = document["entries"]
    if not isinstance(entries, list) or not 1 <= len(entries) <= _MOST_ENTRIES:
        raise errors.CorruptData(f"{path}: field 'entries': expected a list of 1 to {_MOST_ENTRIES}")
    work: list[tuple[str, Problem, tuple[str, ...]]] = []
    for i, entry in enumerate(entries):
        where = f"{path}: entries[{i}]"
        if not isinstance(entry, dict):
            raise errors.CorruptData(f"{where}: expected an object")
        if "name" not in entry:
            raise _missing(where, "name")
        name = _text(where, "name", entry["name"])
        where += f" '{name[:64]}'"
        _refuse_unknown(where, entry, {"name", *_FIELDS})
        problems, archs = _entry(where, {**defaults, **entry})
        work += [(name, problem, archs) for problem in problems]
    return work
