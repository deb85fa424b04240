# SPDX-License-Identifier: Apache-2.0
"""Running a product on arrays that are not torch tensors: numpy on the simulator, and GPU arrays
of any library through DLPack or ``__cuda_array_interface__``.

The torch path is ``_torch``; both end in the same C calls.
"""

from __future__ import annotations

import ctypes
import math
import sys
from typing import Any

from . import _abi, _arrays, _operands, _runtime, errors
from ._arrays import View


def new_output(like: Any, shape: tuple[int, ...], code: int) -> Any:
    """A new array for the result, of the kind of the array ``like``."""
    if not _arrays.is_numpy(like):
        raise errors.InvalidArgument(
            f"out: expected an array, since none can be made for {type(like).__name__}; "
            "it can for torch tensors and numpy arrays"
        )
    numpy: Any = sys.modules["numpy"]
    name = _arrays.NAMES[code]
    if name == "bfloat16":
        import ml_dtypes

        return numpy.empty(shape, ml_dtypes.bfloat16)
    return numpy.empty(shape, name)


class Workspace:
    """Memory for one launch: the caller's, or some that is allocated for it; none for most kernels."""

    def __init__(self, device: _runtime.Device, operation: _runtime.Operation, m: int, given: View | None) -> None:
        self.bytes, _ = operation.workspace(m)
        self.address = 0
        self._handle: _runtime._Handle | None = None
        if given is not None:
            self.address, self.bytes = given.address, _workspace_bytes(given, device)
        elif self.bytes:
            out = ctypes.c_void_p()
            _abi.check(_abi.lib.jitgemm_buffer_create(device.handle, self.bytes, ctypes.byref(out)))
            self._handle = _runtime._Handle(out.value or 0, _abi.lib.jitgemm_buffer_release)
            self.address = _abi.lib.jitgemm_buffer_address(out)

    def keep_until_done(self, device: _runtime.Device, stream: int) -> None:
        """What was allocated is freed on return, so the launch must have ended; else nothing waits."""
        if self._handle is not None and device.name != "sim":
            device.synchronize(stream)


def _workspace_bytes(given: View, device: _runtime.Device) -> int:
    if given.device != device.name:
        raise errors.InvalidArgument(f"workspace: expected memory of {device.name} like a, found {given.device}")
    if not given.writable or given.strides != _arrays.dense_strides(given.shape):
        raise errors.InvalidArgument("workspace: expected a contiguous array that may be written to")
    return math.prod(given.shape) * _arrays.ITEM_SIZES[given.dtype]


def run(
    options: _operands.Options, arrays: dict[str, Any], out: Any, out_dtype: Any, stream: int, workspace: Any
) -> Any:
    """A product of arrays, by the names of the C arguments; those that are None are left out."""
    views = {name: _arrays.as_view(name, array, stream) for name, array in arrays.items() if array is not None}
    m, shape = options.check(views)
    given = None if out is None else _arrays.as_view("out", out, stream)
    code = _operands.out_code(out_dtype, given)
    if given is None:
        out = new_output(arrays["a"], shape, code)
        given = _arrays.as_view("out", out, stream)
    views["out"] = given
    device = _runtime.open_device(_operands.check_devices(views))
    problem = options.problem(views)
    if m == 0:
        return out
    kind = options.kind
    operation = device.operation(kind, problem, stream)
    lent = None if workspace is None else _arrays.as_view("workspace", workspace, stream)
    memory = Workspace(device, operation, m, lent)
    # The driver is asked about arrays that do not say where they are.
    assumed = any(found.device_assumed for found in (*views.values(), *(() if lent is None else (lent,))))
    arguments = kind.arguments(
        struct_size=ctypes.sizeof(kind.arguments),
        m=m,
        workspace=memory.address,
        workspace_bytes=memory.bytes,
        flags=_abi.LAUNCH_CHECK_ADDRESSES if assumed else 0,
        **{name: found.address for name, found in views.items()},
    )
    _abi.check(kind.launch(operation.handle, ctypes.byref(arguments), stream))
    memory.keep_until_done(device, stream)
    return out
