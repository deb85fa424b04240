# SPDX-License-Identifier: Apache-2.0
"""Running a product on arrays that are not torch tensors: numpy on the simulator, and GPU arrays
of any library through DLPack or ``__cuda_array_interface__``.

The torch path is ``_torch``; both end in the same C calls.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from . import _abi, _arrays, _runtime, errors


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
    """Memory for one launch; empty for most kernels."""

    def __init__(self, device: _runtime.Device, operation: _runtime.Operation, m: int) -> None:
        self.bytes, _ = operation.workspace(m)
        self.address = 0
        self._handle: _runtime._Handle | None = None
        if self.bytes:
            out = ctypes.c_void_p()
            _abi.check(_abi.lib.jitgemm_buffer_create(device.handle, self.bytes, ctypes.byref(out)))
            self._handle = _runtime._Handle(out.value or 0, _abi.lib.jitgemm_buffer_release)
            self.address = _abi.lib.jitgemm_buffer_address(out)

    def keep_until_done(self, device: _runtime.Device, stream: int) -> None:
        """A workspace is freed on return, so the launch must have ended; without one nothing waits."""
        if self.bytes and device.name != "sim":
            device.synchronize(stream)
