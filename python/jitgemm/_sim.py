# SPDX-License-Identifier: Apache-2.0
"""Any PTX on the simulator: the C call with arrays of Python as its buffers.

Knows nothing of products and needs no context, device or compiler.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Mapping
from typing import Any

from . import _abi, _arrays, errors

# numpy's names of dtypes -> those of a launch description.
_DTYPES = {
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    **{f"{sign}int{bits}": f"{letter}{bits}" for sign, letter in (("u", "U"), ("", "I")) for bits in (8, 16, 32, 64)},
}


def sim_run(
    ptx: str | bytes,
    launch: Mapping[str, Any] | str,
    buffers: Mapping[str, Any] | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Runs launches of any PTX module on the simulator, with its sanitizer on.

    >>> x = np.arange(64, dtype=np.float32)
    >>> launch = {"launches": [{"entry": "k", "block": 64, "parameters": [{"buffer": "x"}]}]}
    >>> report = jitgemm.sim_run(ptx, launch, {"x": x})  # x now holds what the kernel wrote

    The kernel can touch the buffers, its module's variables and nothing else. Needs no GPU and no
    compiler. May be called by any number of threads; releases the GIL. Waits for the end.

    Args:
        ptx: the text of a module, from any compiler.
        launch: the description that docs/simulator.md documents, as a mapping or as its JSON text.
            ``"schema"`` may be left out of a mapping, and so may the description of a buffer that
            an array is given for: it then has the array's dtype and shape.
        buffers: name to array: a numpy array, a torch tensor in host memory or a writable buffer
            such as a bytearray; contiguous. It holds what the buffer begins with and, unless the
            buffer's access is ``"in"``, afterwards what it ends with. Buffers without an array are
            filled as the description says.
        folder: of the files that the description names; the current one without it.

    Returns:
        The report: statistics of each launch, and what was compared.

    Raises:
        SimulatorFault: the kernel broke a rule, or a limit was reached; no array was changed.
        VerificationFailed: a buffer does not hold what the description expects; the arrays and the
            exception's ``report`` are there.
        InvalidArgument, CorruptData: the description is wrong.
        Unsupported: the module has an instruction that is not simulated.
        OutOfMemory, IoError: as they say.
    """
    if not isinstance(launch, (str, Mapping)):
        raise errors.InvalidArgument(f"launch: expected a mapping or JSON text, found {type(launch).__name__}")
    if not isinstance(buffers, (Mapping, type(None))):
        raise errors.InvalidArgument(f"buffers: expected a mapping, found {type(buffers).__name__}")
    if not isinstance(folder, (str, bytes, os.PathLike, type(None))):
        raise errors.InvalidArgument(f"folder: expected a path, found {type(folder).__name__}")
    arrays = dict(buffers or {})
    for name in arrays:
        if not isinstance(name, str):
            raise errors.InvalidArgument(f"buffers: expected names as keys, found {name!r}")
    document = launch if isinstance(launch, str) else _completed(launch, arrays)
    text = document if isinstance(document, str) else _to_json(document)
    memory = {name: _memory(name, array, _is_input(document, name)) for name, array in arrays.items()}
    given = (_abi.SimBuffer * max(1, len(memory)))(
        *(_abi.SimBuffer(_to_c("buffers", name), address, size) for name, (address, size, _) in memory.items())
    )
    reports: list[str] = []

    def keep(report: int, length: int, user: Any) -> None:
        reports.append(ctypes.string_at(report, length).decode("utf-8", "replace"))

    arguments = _abi.SimRunArguments(
        struct_size=ctypes.sizeof(_abi.SimRunArguments),
        ptx=_to_c("ptx", ptx),
        launch_json=_to_c("launch", text),
        folder=None if folder is None else os.fsencode(folder),
        buffers=given,
        buffer_count=len(memory),
        report=_abi.TextCallback(keep),
    )
    status = _abi.lib.jitgemm_sim_run(ctypes.byref(arguments))
    report: dict[str, Any] = json.loads(reports[0]) if reports else {}
    if status != _abi.STATUS_OK:
        error = _abi.last_error(status)
        if isinstance(error, errors.VerificationFailed):
            error.report = report
        raise error
    return report


def _completed(launch: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The description with what the arrays say."""
    document = {"schema": 1, **launch}
    if not isinstance(document.get("buffers", {}), Mapping):
        return document  # for the library to refuse
    described = dict(document.get("buffers", {}))
    for name, array in arrays.items():
        if name not in described:
            described[name] = _description(name, array)
    if described:
        document["buffers"] = described
    return document


def _description(name: str, array: Any) -> dict[str, Any]:
    if not (_arrays.is_numpy(array) or _arrays.is_torch(array)):
        try:
            return {"dtype": "U8", "shape": memoryview(array).nbytes}
        except TypeError as error:
            raise _no_buffer(name, array) from error
    text = str(getattr(array.dtype, "name", array.dtype)).removeprefix("torch.")
    if text not in _DTYPES:
        raise errors.InvalidArgument(f"{name}: expected one of {', '.join(_DTYPES)}, found {text}")
    return {"dtype": _DTYPES[text], "shape": list(array.shape) or 1}


def _to_c(name: str, text: str | bytes) -> bytes:
    """As C reads it: up to the first NUL, so there must be none."""
    if not isinstance(text, (str, bytes)):
        raise errors.InvalidArgument(f"{name}: expected text, found {type(text).__name__}")
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    if b"\0" in data:
        raise errors.InvalidArgument(f"{name}: expected text without NUL, found one at byte {data.index(0)}")
    return data


def _to_json(document: Mapping[str, Any]) -> str:
    def number(value: Any) -> Any:
        if hasattr(value, "item") and not getattr(value, "ndim", 0):  # a scalar of numpy or torch
            return value.item()
        raise TypeError(f"found {type(value).__name__}")

    try:
        return json.dumps(document, default=number, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise errors.InvalidArgument(f'launch: expected what JSON has (NaN is the string "nan"): {error}') from error


def _is_input(document: Mapping[str, Any] | str, name: str) -> bool:
    """Whether the kernel only reads the buffer, as far as a mapping says."""
    described = document.get("buffers", {}) if isinstance(document, Mapping) else {}
    buffer = described.get(name) if isinstance(described, Mapping) else None
    return isinstance(buffer, Mapping) and buffer.get("access") == "in"


def _memory(name: str, array: Any, read_only: bool) -> tuple[int, int, Any]:
    """Address, bytes, and what keeps them."""
    if _arrays.is_numpy(array):
        if not (array.flags.c_contiguous and (array.flags.writeable or read_only) and array.dtype.isnative):
            raise errors.InvalidArgument(
                f"{name}: expected a contiguous array in this machine's byte order, writable unless its access is 'in'"
            )
        return array.__array_interface__["data"][0], array.nbytes, array
    if _arrays.is_torch(array):
        if array.device.type != "cpu" or not array.is_contiguous():
            raise errors.InvalidArgument(f"{name}: expected a contiguous tensor in host memory")
        return array.data_ptr(), array.numel() * array.element_size(), array
    try:
        size = memoryview(array).nbytes
        held = (ctypes.c_char * size).from_buffer(array)
    except (TypeError, ValueError) as error:
        raise _no_buffer(name, array) from error
    return ctypes.addressof(held), size, held


def _no_buffer(name: str, array: Any) -> errors.InvalidArgument:
    return errors.InvalidArgument(
        f"{name}: expected a numpy array, a torch tensor or a writable buffer, found {type(array).__name__}"
    )
