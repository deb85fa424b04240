# SPDX-License-Identifier: Apache-2.0
"""Work ahead of the first call: plans, kernels in the cache, operations on a device.

Works on problems; needs no arrays and, but for prepare, no device.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import dataclasses
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from . import _abi, _checks, _runtime, errors
from ._manifest import read_manifest
from ._problem import Problem, checked


def plan(problem: Problem, arch: str = "sm_90a") -> str:
    """Says in a few lines which kernel a problem gets on an arch, and why.

    Args:
        problem: what is to be computed.
        arch: ``"sm_90a"``, ``"sm_100a"``, ``"sm_100f"``, ``"sm_103a"`` or ``"sm_103f"``.

    Raises:
        InvalidArgument, Unsupported: as a call with that problem would.
    """
    given = ctypes.byref(checked(problem).to_c())
    return _abi.read_text(problem.kind.plan, given, _runtime.arch_number(arch))


def compile(problem: Problem, arch: str = "sm_90a") -> None:
    """Compiles a problem's kernel for an arch into the cache, unless it is there. Needs no device;
    takes up to half a second.

    Raises:
        NoCompiler, CompileFailed, and what plan raises.
    """
    context = _runtime.default_context()
    given = ctypes.byref(checked(problem).to_c())
    _abi.check(problem.kind.compile(context.handle, given, _runtime.arch_number(arch)))


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
    given = checked(problem).to_c()
    return _runtime.open_device(_device_name(device)).prepare(problem.kind, given)


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
        What was done. A problem that does not compile is in its failures and stops nothing.

    Raises:
        CorruptData, IoError: the manifest cannot be read.
        Unsupported: the manifest has an entry without a kernel.
        NoCompiler: there is no NVRTC, so nothing could be compiled.
        InvalidArgument: an argument is none of these.
    """
    started = time.monotonic()
    asked: list[tuple[str, Problem, tuple[str, ...]]] = []
    if isinstance(manifest, (str, os.PathLike)):
        asked += read_manifest(manifest)
    elif isinstance(manifest, Iterable):
        asked += [("problem", checked(problem), ("sm_90a",)) for problem in manifest]
    else:
        raise _checks.wrong("manifest", "a file or problems", manifest)
    if archs is not None and (isinstance(archs, str) or not isinstance(archs, Iterable)):
        raise _checks.wrong("archs", "a list of targets", archs)
    if not isinstance(progress, bool) and not callable(progress):
        raise _checks.wrong("progress", "True, False or a function", progress)
    count = min(os.cpu_count() or 1, 8) if workers is None else _checks.integer("workers", workers, 1, 1024)
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

    with concurrent.futures.ThreadPoolExecutor(count, "jitgemm-prewarm") as pool:
        for _ in pool.map(one, work):
            pass
    return PrewarmReport(len(work), tuple(failures), time.monotonic() - started)
