# SPDX-License-Identifier: Apache-2.0
"""Owners of the C handles, the process's default context, and the simulator that host arrays run on.

Knows the C ABI and nothing of arrays. Handles are released with their owner; at the end of the
process they are left to it, since the driver may be gone by then.
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import dataclasses
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from . import _abi, _checks, _library, _state

ARCHS = {
    "sm_90a": _abi.ARCH_SM_90A,
    "sm_100a": _abi.ARCH_SM_100A,
    "sm_100f": _abi.ARCH_SM_100F,
    "sm_103a": _abi.ARCH_SM_103A,
    "sm_103f": _abi.ARCH_SM_103F,
}


def arch_number(arch: str) -> int:
    """``"sm_90a"`` to 900."""
    return _checks.choice("arch", ARCHS, arch)


def arch_name(number: int) -> str:
    """900 to ``"sm_90a"``."""
    return next(name for name, value in ARCHS.items() if value == number)


class _Handle:
    """A C handle, released when nothing refers to it."""

    def __init__(self, value: int, release: Callable[[int], None]) -> None:
        self.value = value
        weakref.finalize(self, release, value).atexit = False


class Context:
    """Settings, the cache of compiled kernels and the compiler."""

    def __init__(self, **options: str | None) -> None:
        given = _abi.ContextOptions(struct_size=ctypes.sizeof(_abi.ContextOptions))
        if options.get("nvrtc_library") is None:
            options["nvrtc_library"] = _library.find_nvrtc()
        for name, value in options.items():
            setattr(given, name, None if value is None else os.fsencode(str(value)))
        out = ctypes.c_void_p()
        _abi.check(_abi.lib.jitgemm_context_create(ctypes.byref(given), ctypes.byref(out)))
        self._handle = _Handle(out.value or 0, _abi.lib.jitgemm_context_release)
        self._devices: dict[tuple[str, int], Device] = {}
        self._lock = threading.Lock()

    @property
    def handle(self) -> int:
        return self._handle.value

    def device(self, name: str, arch: int = _abi.ARCH_OF_DEVICE) -> Device:
        """The device of that name (``"cuda:N"`` or ``"sim"``), opened once."""
        key = (name, arch)
        found = self._devices.get(key)
        if found is None:
            with self._lock:
                found = self._devices.get(key)
                if found is None:
                    found = self._devices[key] = Device(self, name, arch)
        return found


class Device:
    """An opened device."""

    def __init__(self, context: Context, name: str, arch: int) -> None:
        out = ctypes.c_void_p()
        _abi.check(_abi.lib.jitgemm_device_open(context.handle, name.encode(), arch, ctypes.byref(out)))
        self._handle = _Handle(out.value or 0, _abi.lib.jitgemm_device_release)
        self.context = context
        self.name = name
        self.arch = arch_name(_abi.lib.jitgemm_device_arch(out))

    @property
    def handle(self) -> int:
        return self._handle.value

    def synchronize(self, stream: int = 0) -> None:
        """Waits for everything on the stream."""
        _abi.check(_abi.lib.jitgemm_device_synchronize(self.handle, stream))

    def operation(self, kind: Kind, problem: Any, stream: int) -> Operation:
        """The problem's operation: the prepared one, else prepared now. While the stream is being
        captured nothing can be prepared: raises CaptureNotReady."""
        out = ctypes.c_void_p()
        status = kind.find(self.handle, ctypes.byref(problem), stream, ctypes.byref(out))
        if status == _abi.STATUS_NOT_READY:
            return self.prepare(kind, problem)
        _abi.check(status)
        return Operation(self, out.value or 0)

    def prepare(self, kind: Kind, problem: Any) -> Operation:
        """Plans, compiles if the cache has no such kernel, and loads."""
        out = ctypes.c_void_p()
        _abi.check(kind.prepare(self.handle, ctypes.byref(problem), ctypes.byref(out)))
        return Operation(self, out.value or 0)


@dataclasses.dataclass(frozen=True)
class Kind:
    """The C functions and structs for one kind of problem."""

    problem: Any
    arguments: Any
    plan: Any
    compile: Any
    prepare: Any
    find: Any
    launch: Any


DENSE = Kind(
    _abi.GemmProblem,
    _abi.GemmArguments,
    _abi.lib.jitgemm_gemm_plan,
    _abi.lib.jitgemm_gemm_compile,
    _abi.lib.jitgemm_gemm_prepare,
    _abi.lib.jitgemm_gemm_find,
    _abi.lib.jitgemm_gemm_launch,
)
GROUPED = Kind(
    _abi.GroupedGemmProblem,
    _abi.GroupedGemmArguments,
    _abi.lib.jitgemm_grouped_gemm_plan,
    _abi.lib.jitgemm_grouped_gemm_compile,
    _abi.lib.jitgemm_grouped_gemm_prepare,
    _abi.lib.jitgemm_grouped_gemm_find,
    _abi.lib.jitgemm_grouped_gemm_launch,
)


class Operation:
    """A problem that was prepared for a device: planned, compiled and loaded.

    Made by :func:`jitgemm.prepare`. While it lives, and after, a call with the same problem finds
    it. Immutable; may be used by any thread.

    Attributes:
        device: where it was prepared, e.g. ``"cuda:0"`` or ``"sim"``.
        arch: the target it was compiled for, e.g. ``"sm_90a"``.
    """

    def __init__(self, device: Device, handle: int) -> None:
        self._device = device
        self._handle = _Handle(handle, _abi.lib.jitgemm_operation_release)
        self.device = device.name
        self.arch = device.arch

    def workspace(self, m: int) -> tuple[int, int]:
        """Bytes of workspace that a launch with m rows needs, and their alignment. Calls allocate it
        themselves, unless they are given one."""
        size, alignment = ctypes.c_uint64(), ctypes.c_uint64()
        _abi.check(
            _abi.lib.jitgemm_operation_workspace_for(self.handle, m, ctypes.byref(size), ctypes.byref(alignment))
        )
        return size.value, alignment.value

    @property
    def handle(self) -> int:
        return self._handle.value

    def describe(self) -> str:
        """The plan in a few lines: which kernel, and why."""
        return _abi.read_text(_abi.lib.jitgemm_operation_describe, self.handle)


# --- The default context ---------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Simulator:
    """What host arrays run on. None leaves a setting to the context or the environment."""

    arch: str = "sm_90a"
    numerics: str | None = None
    seed: int | None = None
    threads: int | None = None
    sanitize: bool | str | None = None

    def options(self) -> dict[str, str | None]:
        if self.sanitize is None or isinstance(self.sanitize, str):
            sanitize = self.sanitize
        else:
            sanitize = str(_checks.flag("sanitize", self.sanitize))
        return {
            "sim_numerics": None if self.numerics is None else str(self.numerics),
            "sim_seed": None if self.seed is None else str(self.seed),
            "sim_threads": None if self.threads is None else str(self.threads),
            "sim_sanitize": sanitize,
        }


class _Process:
    """The process's contexts: one for each set of simulator settings, made when first used."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.options: dict[str, str | None] = {}
        self.contexts: dict[tuple[tuple[str, str | None], ...], Context] = {}

    def context(self, extra: dict[str, str | None]) -> Context:
        given = {name: value for name, value in extra.items() if value is not None}
        key = tuple(sorted(given.items()))
        found = self.contexts.get(key)
        if found is None:
            with self.lock:
                found = self.contexts.get(key)
                if found is None:
                    found = self.contexts[key] = Context(**{**self.options, **given})
        return found


_process = _Process()
_DEFAULT_SIMULATOR = Simulator()
_simulator: contextvars.ContextVar[Simulator] = contextvars.ContextVar("jitgemm_simulator", default=_DEFAULT_SIMULATOR)


def default_context() -> Context:
    """The context of the process."""
    return _process.context({})


def configure(
    *,
    cache_folder: str | None = None,
    cache_mode: str | None = None,
    nvrtc_library: str | None = None,
    driver_library: str | None = None,
    template_folder: str | None = None,
    log_level: str | None = None,
) -> None:
    """Sets what later calls of this process use; a setting that is not given falls back to its
    environment variable (``JITGEMM_CACHE_DIR``, ``JITGEMM_CACHE``, ``JITGEMM_NVRTC``,
    ``JITGEMM_DRIVER``, ``JITGEMM_TEMPLATES``, ``JITGEMM_LOG``) and then to its default. Call it
    before other functions: operations that exist keep the settings they were made with, and
    captured graphs stay valid.

    Args:
        cache_folder: folder of compiled kernels; a relative path is below the present working directory.
        cache_mode: ``"rw"``, ``"ro"`` or ``"memory"``.
        nvrtc_library: file of the NVRTC library. Default: that of an installed ``nvidia-cuda-nvrtc``
            package, else what the loader finds.
        driver_library: file of the CUDA driver library.
        template_folder: folder to read kernel templates from, while developing them.
        log_level: ``"off"``, ``"error"``, ``"warning"``, ``"info"`` or ``"debug"``; to standard error.

    Raises:
        InvalidArgument: a value is none of those listed.
    """
    options = {
        "cache_folder": cache_folder,
        "cache_mode": cache_mode,
        "nvrtc_library": nvrtc_library,
        "driver_library": driver_library,
        "template_folder": template_folder,
        "log_level": log_level,
    }
    checked = Context(**options)
    with _process.lock:
        _process.options = options
        _process.contexts = {(): checked}
    if _state.torch_backend is not None:
        _state.torch_backend.forget()


@contextlib.contextmanager
def simulator(
    arch: str = "sm_90a",
    *,
    numerics: str | None = None,
    seed: int | None = None,
    threads: int | None = None,
    sanitize: bool | str | None = None,
) -> Iterator[None]:
    """Chooses the simulator for host arrays (numpy, CPU tensors) inside a ``with`` block, for the
    calling thread or task only.

    >>> with jitgemm.simulator("sm_100a", seed=3):
    ...     out = jitgemm.block_scaled_mm(a, b, a_scales, b_scales)

    Args:
        arch: ``"sm_90a"``, ``"sm_100a"``, ``"sm_100f"``, ``"sm_103a"`` or ``"sm_103f"``.
        numerics: ``"auto"``, ``"exact"``, ``"hopper"`` or ``"blackwell"``.
        seed: schedule of warps and of asynchronous work; 0 finishes that as late as is legal.
        threads: host threads; 0 is one a core.
        sanitize: check memory accesses and synchronisation (default), or not; ``"no-races"`` checks
            all but races between threads.

    Raises:
        InvalidArgument: a value is none of those listed. Of values that are texts or numbers in the
            wrong range, the first call inside the block says so.
    """
    arch_number(arch)
    chosen = Simulator(arch, numerics, seed, threads, sanitize)
    chosen.options()
    token = _simulator.set(chosen)
    try:
        yield
    finally:
        _simulator.reset(token)


def current_simulator() -> Simulator:
    return _simulator.get()


def simulator_device() -> Device:
    """The simulated device of the calling thread's settings."""
    chosen = _simulator.get()
    return _process.context(chosen.options()).device("sim", arch_number(chosen.arch))


def open_device(name: str) -> Device:
    """``"cuda:N"``, or ``"sim"`` with the calling thread's settings."""
    return simulator_device() if name == "sim" else default_context().device(name)
