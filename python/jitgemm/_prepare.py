# SPDX-License-Identifier: Apache-2.0
"""Work ahead of the first call: plans, kernels in the cache, operations on a device, manifests.

Works on problems; needs no arrays and, but for prepare, no device.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import dataclasses
import json
import os
import pathlib
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from . import _abi, _problem, _runtime, errors
from ._problem import GemmProblem, GroupedGemmProblem, Problem


def plan(problem: Problem, arch: str = "sm_90a") -> str:
    """Says in a few lines which kernel a problem gets on an arch, and why.

    Args:
        problem: what is to be computed.
        arch: ``"sm_90a"``, ``"sm_100a"``, ``"sm_100f"``, ``"sm_103a"`` or ``"sm_103f"``.

    Raises:
        InvalidArgument, Unsupported: as a call with that problem would.
    """
    return _abi.read_text(problem.kind.plan, ctypes.byref(problem.to_c()), _runtime.arch_number(arch))


def compile(problem: Problem, arch: str = "sm_90a") -> None:
    """Compiles a problem's kernel for an arch into the cache, unless it is there. Needs no device;
    takes up to half a second.

    Raises:
        NoCompiler, CompileFailed, and what plan raises.
    """
    context = _runtime.default_context()
    _abi.check(problem.kind.compile(context.handle, ctypes.byref(problem.to_c()), _runtime.arch_number(arch)))


def prepare(problem: Problem, device: Any = None) -> _runtime.Operation:
    """Plans, compiles if the cache has no such kernel, and loads: what the first call of a problem
    would do. Preparing again is cheap. Not while the calling thread captures a graph.

    A call finds the operation if its whole problem is this one: distances and alignments too (the
    dense 16-byte aligned arrays of torch and numpy have the defaults), and m, of which any in the
    same class will do with m_policy ``"class"``, and any at all with ``"any"``.

    Args:
        problem: what is to be computed.
        device: ``"cuda:N"``, N, a torch.device, or ``"sim"``. Default: torch's current CUDA device
            if torch is imported and has one, else the simulator.

    Raises:
        NoDriver, DeviceError, NoCompiler, CompileFailed, and what plan raises.
    """
    opened = _runtime.open_device(_device_name(device))
    return opened.prepare(problem.kind, problem.to_c())


def _device_name(device: Any) -> str:
    torch: Any = sys.modules.get("torch")
    if device is None:
        if torch is None or not torch.cuda.is_available():
            return "sim"
        return f"cuda:{torch.cuda.current_device()}"
    if isinstance(device, int):
        return f"cuda:{device}"
    name = str(device)
    if name == "cpu":
        return "sim"
    if name == "cuda":
        return f"cuda:{torch.cuda.current_device() if torch is not None and torch.cuda.is_available() else 0}"
    return name


# --- Manifests (the format is described in cache/README.md) -----------------------------------------

_DTYPE_NAMES = {"F8_E4M3", "F8_E5M2", "F8_E8M0", "F16", "BF16", "F32"}
_INTEGERS = {"n", "k", "group_n", "group_k"}
_GROUPED_INTEGERS = {"groups", "expected_m", "row_alignment"}
_TEXTS = {
    "a_dtype": _DTYPE_NAMES,
    "b_dtype": _DTYPE_NAMES,
    "scale_dtype": _DTYPE_NAMES,
    "out_dtype": _DTYPE_NAMES,
    "scale_values": _problem.SCALE_VALUES.keys(),
    "a_scale_major": _problem.SCALE_MAJORS.keys(),
    "b_scale_major": _problem.SCALE_MAJORS.keys(),
    "m_policy": _problem.M_POLICIES.keys(),
}
_LAYOUTS = _problem.LAYOUTS.keys() - {"columns"}
_OPS: dict[str, type[Problem]] = {"block_scaled_mm": GemmProblem, "group_gemm_fp8_nt_groupwise": GroupedGemmProblem}


def _corrupt(where: str, message: str) -> errors.CorruptData:
    return errors.CorruptData(f"{where}: {message}")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _field(where: str, name: str, value: Any, grouped: bool) -> Any:
    """One field of an entry, checked."""
    if name == "a_code_dtype" and not grouped:
        if value not in _DTYPE_NAMES:
            raise _corrupt(where, f"{name}: expected one of {', '.join(sorted(_DTYPE_NAMES))}, found {value!r}")
    elif name in _INTEGERS or (grouped and name in _GROUPED_INTEGERS):
        if not _is_integer(value):
            raise _corrupt(where, f"{name}: expected an integer, found {value!r}")
    elif name in _TEXTS or (grouped and name == "layout"):
        words = _TEXTS.get(name, _LAYOUTS)
        if value not in words:
            raise _corrupt(where, f"{name}: expected one of {', '.join(sorted(words))}, found {value!r}")
    elif grouped and name == "zero_ungrouped":
        if not isinstance(value, bool):
            raise _corrupt(where, f"{name}: expected true or false, found {value!r}")
    else:
        raise _corrupt(where, f"unknown field {name!r}")
    return value


def _entry_problems(where: str, entry: dict[str, Any]) -> list[Problem]:
    """The problems of an entry whose kernels may differ: one for each class of m in its range."""
    if "op" not in entry:
        raise _corrupt(where, "op: missing")
    kind = _OPS.get(entry["op"]) if isinstance(entry["op"], str) else None
    if kind is None:
        raise errors.Unsupported(f"{where}: op: expected one of {', '.join(_OPS)}, found {entry['op']!r}")
    grouped = kind is GroupedGemmProblem
    fields: dict[str, Any] = {}
    for name, value in entry.items():
        if name not in ("name", "archs", "op", "m"):
            fields[name] = _field(where, name, value, grouped)
    for name in ("n", "k", *(("layout", "groups") if grouped else ())):
        if name not in fields:
            raise _corrupt(where, f"{name}: missing")
    if "m" not in entry:
        raise _corrupt(where, "m: missing")
    rows = [entry["m"]] * 2 if _is_integer(entry["m"]) else entry["m"]
    if not (isinstance(rows, list) and len(rows) == 2 and all(map(_is_integer, rows)) and rows[0] <= rows[1]):
        raise _corrupt(where, f"m: expected an integer or [first, last], found {entry['m']!r}")
    policy = fields.setdefault("m_policy", "exact" if rows[0] == rows[1] else "class")
    problems: list[Problem] = []
    m = rows[0]
    while m <= rows[1]:
        problems.append(kind(m=m, **fields))
        if policy == "any":
            break
        m = _abi.lib.jitgemm_m_class_bound(m) + 1 if policy == "class" else m + 1
    return problems


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _corrupt("manifest", f"the key {name!r} appears twice")
        found[name] = value
    return found


def read_manifest(manifest: str | os.PathLike[str]) -> list[tuple[str, Problem, tuple[str, ...]]]:
    """The name, problem and archs of everything that a manifest asks for.

    Raises:
        CorruptData: not a manifest; the message names the entry and the field.
        IoError: the file cannot be read.
    """
    path = pathlib.Path(manifest)
    try:
        document = json.loads(path.read_text(), object_pairs_hook=_unique_keys)
    except OSError as error:
        raise errors.IoError(f"manifest: {error}") from error
    except ValueError as error:
        if isinstance(error, errors.Error):
            raise
        raise _corrupt(str(path), f"not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != 1:
        raise _corrupt(str(path), "schema: expected 1")
    unknown = document.keys() - {"schema", "name", "description", "defaults", "entries"}
    if unknown:
        raise _corrupt(str(path), f"unknown field {sorted(unknown)[0]!r}")
    defaults = document.get("defaults", {})
    entries = document.get("entries")
    if not isinstance(defaults, dict) or not isinstance(entries, list) or not entries:
        raise _corrupt(str(path), "expected an object of defaults and a list of entries")
    work = []
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise _corrupt(str(path), f"entries: expected objects with a name, found {entry!r}")
        full = {**defaults, **entry}
        archs = full.get("archs")
        if not isinstance(archs, list) or not archs or any(arch not in _runtime.ARCHS for arch in archs):
            raise _corrupt(entry["name"], f"archs: expected a list of {', '.join(_runtime.ARCHS)}, found {archs!r}")
        for problem in _entry_problems(entry["name"], full):
            work.append((entry["name"], problem, tuple(archs)))
    return work


@dataclasses.dataclass(frozen=True)
class PrewarmReport:
    """What prewarm did.

    Attributes:
        problems: how many problems were asked for; several may share a kernel.
        failures: name and reason of each that failed.
        seconds: wall time.
    """

    problems: int
    failures: tuple[str, ...]
    seconds: float


class _Bar:
    """A line on standard error that is drawn over itself; nothing where that is no terminal."""

    def __call__(self, done: int, total: int, name: str) -> None:
        if not sys.stderr.isatty():
            return
        filled = 30 * done // max(total, 1)
        line = f"\r\033[K[{'#' * filled}{'.' * (30 - filled)}] {done}/{total} {name}"
        sys.stderr.write("\r\033[K" if done == total else line)
        sys.stderr.flush()


def prewarm(
    manifest: str | os.PathLike[str] | Iterable[Problem],
    archs: Iterable[str] | None = None,
    *,
    device: Any = None,
    progress: bool | Callable[[int, int, str], None] = True,
    workers: int | None = None,
) -> PrewarmReport:
    """Compiles every kernel that a manifest's shapes need into the cache, so that serving compiles
    nothing. Needs no device; what is in the cache already costs next to nothing.

    Args:
        manifest: file of a manifest (see cache/README.md), or problems.
        archs: targets to compile for; default: those of the manifest's entries, for problems
            ``("sm_90a",)``.
        device: also load the kernels there (see :func:`prepare`); archs is then that device's.
        progress: True draws a bar on a terminal's standard error; or a function of (done, total,
            name), called by one thread at a time.
        workers: compilations at a time; default: one a core, at most 8. Each takes some hundred MB.

    Returns:
        What was done. A problem that cannot be compiled is in its failures and stops nothing.

    Raises:
        CorruptData, IoError: the manifest cannot be read.
        NoCompiler: there is no NVRTC, so nothing could be compiled.
    """
    started = time.monotonic()
    asked: list[tuple[str, Problem, tuple[str, ...]]] = []
    if isinstance(manifest, (str, os.PathLike)):
        asked += read_manifest(manifest)
    else:
        asked += [("problem", problem, ("sm_90a",)) for problem in manifest]
    opened = None if device is None else _runtime.open_device(_device_name(device))
    chosen = None if archs is None else tuple(archs)
    for arch in chosen or ():
        _runtime.arch_number(arch)
    work: list[tuple[str, Problem, str]] = []
    for name, problem, entry_archs in asked:
        for arch in (opened.arch,) if opened is not None else chosen or entry_archs:
            work.append((f"{name} m={problem.m} {arch}", problem, arch))

    show: Callable[[int, int, str], None] | None = _Bar() if progress is True else progress or None
    lock = threading.Lock()
    done = 0
    failures: list[str] = []

    def one(item: tuple[str, Problem, str]) -> None:
        nonlocal done
        name, problem, arch = item
        failure = None
        try:
            if opened is not None:
                opened.prepare(problem.kind, problem.to_c())
            else:
                compile(problem, arch)
        except errors.NoCompiler:
            raise
        except errors.Error as error:
            failure = f"{name}: {error}"
        with lock:
            done += 1
            if failure is not None:
                failures.append(failure)
            if show is not None:
                show(done, len(work), name)

    count = workers if workers is not None else min(os.cpu_count() or 1, 8)
    with concurrent.futures.ThreadPoolExecutor(max(count, 1), "jitgemm-prewarm") as pool:
        for _ in pool.map(one, work):
            pass
    return PrewarmReport(len(work), tuple(failures), time.monotonic() - started)
