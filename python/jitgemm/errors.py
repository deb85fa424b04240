# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class a status of the C library.

Every exception that jitgemm raises for a failed call is an :class:`Error`. Where Python has a
builtin exception for the situation, the class derives from it too, so that callers may catch
``ValueError`` or ``NotImplementedError`` and never mention jitgemm.
"""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "CaptureNotReady",
    "CompileFailed",
    "CorruptData",
    "DeviceError",
    "Error",
    "InternalError",
    "InvalidArgument",
    "IoError",
    "NoCompiler",
    "NoDriver",
    "NotReady",
    "OutOfMemory",
    "SimulatorFault",
    "Unsupported",
    "VerificationFailed",
]


class Error(RuntimeError):
    """A call failed.

    Attributes:
        status: the number of the C status, e.g. 2; the numbers never change.
        status_name: its name, e.g. ``"UNSUPPORTED"``.
        message: the parameter, what was expected and what was found.
    """

    status: int = 99
    status_name: str = "INTERNAL"
    message: str

    def __init__(self, message: str, status: int | None = None, status_name: str | None = None) -> None:
        if status is not None:
            self.status = status
        if status_name is not None:
            self.status_name = status_name
        self.message = message
        super().__init__(f"{self.status_name}: {message}")


class InvalidArgument(Error, ValueError):
    """The call is wrong."""

    status, status_name = 1, "INVALID_ARGUMENT"


class Unsupported(Error, NotImplementedError):
    """The call is right, but there is no kernel for it; the message says why."""

    status, status_name = 2, "UNSUPPORTED"


class NotReady(Error):
    """Not prepared on this device."""

    status, status_name = 3, "NOT_READY"


class CaptureNotReady(Error):
    """Not prepared on this device, and the stream is being captured. The capture is intact: call
    once (or :func:`jitgemm.prepare`) before capturing."""

    status, status_name = 4, "CAPTURE_NOT_READY"


class CompileFailed(Error):
    """The compiler refused the kernel; its log is in the message."""

    status, status_name = 10, "COMPILE_FAILED"


class NoCompiler(Error):
    """NVRTC could not be opened."""

    status, status_name = 11, "NO_COMPILER"


class NoDriver(Error):
    """The CUDA driver could not be opened."""

    status, status_name = 20, "NO_DRIVER"


class DeviceError(Error):
    """The driver failed; its name for the error is in the message."""

    status, status_name = 21, "DEVICE_ERROR"


class OutOfMemory(Error, MemoryError):
    """No memory on the host or the device."""

    status, status_name = 22, "OUT_OF_MEMORY"


class SimulatorFault(Error):
    """The simulated kernel broke a rule; the message says which and where."""

    status, status_name = 30, "SIMULATOR_FAULT"


class IoError(Error, OSError):
    """A file could not be read or written."""

    status, status_name = 40, "IO_ERROR"


class CorruptData(Error):
    """A file does not hold what it should, e.g. a manifest with an unknown field."""

    status, status_name = 41, "CORRUPT_DATA"


class VerificationFailed(Error):
    """A result differs from the reference.

    Attributes:
        report: of :func:`jitgemm.sim_run`: what was compared, and the statistics.
    """

    status, status_name = 50, "VERIFICATION_FAILED"
    report: dict[str, Any] | None = None


class InternalError(Error):
    """A bug in jitgemm."""

    status, status_name = 99, "INTERNAL"


class _Table:
    classes: ClassVar[dict[int, type[Error]]] = {
        kind.status: kind
        for kind in (
            InvalidArgument,
            Unsupported,
            NotReady,
            CaptureNotReady,
            CompileFailed,
            NoCompiler,
            NoDriver,
            DeviceError,
            OutOfMemory,
            SimulatorFault,
            IoError,
            CorruptData,
            VerificationFailed,
            InternalError,
        )
    }


def from_status(status: int, status_name: str, message: str) -> Error:
    """The exception for a status of the C library."""
    kind = _Table.classes.get(status)
    return kind(message) if kind is not None else Error(message, status, status_name)
