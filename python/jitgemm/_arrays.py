# SPDX-License-Identifier: Apache-2.0
"""Arrays of any library as addresses: numpy, torch, DLPack, ``__cuda_array_interface__``.

An array becomes a View: address, shape, strides in elements, dtype and device. Knows nothing of
products; imports neither numpy nor torch, but recognises their arrays once they are imported.
"""

from __future__ import annotations

import ctypes
import dataclasses
import sys
from typing import Any

from . import _abi, _checks, errors

# Dtypes that only Python knows of: integers that say which rows are whose, bytes, packed scales.
I32 = 100
U8 = 101

_CODES = {
    "float8_e4m3fn": _abi.F8_E4M3,
    "float8_e5m2": _abi.F8_E5M2,
    "float8_e8m0fnu": _abi.F8_E8M0,
    "float16": _abi.F16,
    "bfloat16": _abi.BF16,
    "float32": _abi.F32,
    "int32": I32,
    "uint8": U8,
}
_ALIASES = {
    "F8_E4M3": _abi.F8_E4M3,
    "F8_E5M2": _abi.F8_E5M2,
    "F8_E8M0": _abi.F8_E8M0,
    "F16": _abi.F16,
    "BF16": _abi.BF16,
    "F32": _abi.F32,
}
NAMES = {code: name for name, code in _CODES.items()}
ITEM_SIZES = {
    _abi.F8_E4M3: 1,
    _abi.F8_E5M2: 1,
    _abi.F8_E8M0: 1,
    _abi.F16: 2,
    _abi.BF16: 2,
    _abi.F32: 4,
    I32: 4,
    U8: 1,
}


def dtype_code(name: str, dtype: Any) -> int:
    """The number of a dtype that is given as a name, a torch dtype, a numpy dtype or a scalar type."""
    text = dtype if isinstance(dtype, str) else str(getattr(dtype, "name", None) or dtype).removeprefix("torch.")
    if isinstance(dtype, type):
        text = dtype.__name__
    code = _CODES.get(text) or _ALIASES.get(text)
    if code is None:
        raise errors.Unsupported(f"{name}: expected one of {', '.join(_CODES)}, found {text}")
    return code


@dataclasses.dataclass(frozen=True)
class View:
    """An array's memory, with whatever keeps it alive.

    Attributes:
        address: of the first element.
        shape: extents.
        strides: distances in elements.
        dtype: a number, see NAMES.
        device: ``"sim"`` for host memory, else ``"cuda:N"``.
        owner: the array, or what its library handed out for it.
        writable: may be an output.
        device_assumed: the array does not say its device; a launch asks the driver.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: int
    device: str
    owner: Any
    writable: bool = True
    device_assumed: bool = False


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides."""
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def is_numpy(array: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(array, numpy.ndarray)


def is_torch(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def view(array: Any, dtype: Any = None, *, device: Any = None, stream: int | None = None) -> View:
    """An array as jitgemm sees it, optionally read as another dtype of the same size.

    For libraries without FP8 dtypes: ``jitgemm.view(cupy_uint8_array, "float8_e4m3fn")`` may be
    passed wherever an array is expected. The view keeps the array alive, but not what its library
    knows of pending work: that is ordered before stream now, once. Whoever writes to the array
    later orders that himself, or makes another view.

    Args:
        array: a torch tensor, a numpy array, or anything with ``__dlpack__`` or
            ``__cuda_array_interface__``.
        dtype: a name such as ``"float8_e4m3fn"``, a torch dtype or a numpy dtype.
        device: ``"cuda:N"`` or N, for a ``__cuda_array_interface__`` whose array has no ``device``.
            Without it that is taken to be on GPU 0, and a launch asks the driver whether it is.
        stream: address of the CUstream that the view will be used on; default: the default stream.

    Raises:
        InvalidArgument: the dtype has another size, or the array is on another device.
        Unsupported: no such protocol, dtype or device.
    """
    where = device
    if device is not None and not isinstance(device, str):
        where = f"cuda:{_checks.integer('device', device, 0, 2**31 - 1)}"
    found = as_view("array", array, _checks.address("stream", stream), where)
    if where is not None and found.device_assumed:  # a view that was made without
        found = dataclasses.replace(found, device=where, device_assumed=False)
    if where is not None and where != found.device:
        raise errors.InvalidArgument(f"device: expected {found.device}, where the array is, found {where}")
    if dtype is None:
        return found
    code = dtype_code("dtype", dtype)
    if ITEM_SIZES[code] != ITEM_SIZES[found.dtype]:
        raise errors.InvalidArgument(
            f"dtype: expected one of {ITEM_SIZES[found.dtype]} bytes like {NAMES[found.dtype]}, found {NAMES[code]}"
        )
    return dataclasses.replace(found, dtype=code)


def as_view(name: str, array: Any, stream: int = 0, device: str | None = None) -> View:
    """The array as a View; name is for messages, stream is where it will be used, device where an
    array is that does not say."""
    if isinstance(array, View):
        return array
    if is_numpy(array):
        return _numpy_view(name, array)
    if is_torch(array):
        return _torch_view(name, array)
    if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        return _dlpack_view(name, array, stream)
    if hasattr(array, "__cuda_array_interface__"):
        return _cuda_view(name, array, stream, device)
    raise errors.Unsupported(
        f"{name}: expected a torch tensor, a numpy array, or an object with __dlpack__ or "
        f"__cuda_array_interface__, found {type(array).__name__}"
    )


def _element_strides(name: str, strides: tuple[int, ...], item_size: int) -> tuple[int, ...]:
    if any(stride % item_size for stride in strides):
        raise errors.Unsupported(f"{name}: expected strides of whole elements, found {strides} bytes")
    return tuple(stride // item_size for stride in strides)


def _numpy_view(name: str, array: Any) -> View:
    code = dtype_code(name, array.dtype)
    if not array.dtype.isnative:
        raise errors.Unsupported(f"{name}: expected the machine's byte order, found {array.dtype}")
    address = array.__array_interface__["data"][0]
    strides = _element_strides(name, array.strides, array.itemsize)
    return View(address, array.shape, strides, code, "sim", array, bool(array.flags.writeable))


def _torch_view(name: str, tensor: Any) -> View:
    kind = tensor.device.type
    if kind not in ("cuda", "cpu"):
        raise errors.Unsupported(f"{name}: expected a CUDA tensor, or a CPU tensor for the simulator, found {kind}")
    device = "sim" if kind == "cpu" else f"cuda:{tensor.get_device()}"
    return View(tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), dtype_code(name, tensor.dtype), device, tensor)


# --- DLPack (dlpack.h of DLPack 1.1) -----------------------------------------------------------------


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", _DLTensor),
    ]


_DL_CPU = 1
_DL_CUDA = 2
_DL_READ_ONLY = 1
_DL_TYPES = {
    (2, 32): _abi.F32,
    (2, 16): _abi.F16,
    (4, 16): _abi.BF16,
    (10, 8): _abi.F8_E4M3,
    (12, 8): _abi.F8_E5M2,
    (14, 8): _abi.F8_E8M0,
    (0, 32): I32,
    (1, 8): U8,
}

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_capsule_is_valid.restype = ctypes.c_int
_capsule_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _dlpack_view(name: str, array: Any, stream: int) -> View:
    device_type, device_id = (int(part) for part in array.__dlpack_device__())
    if device_type not in (_DL_CPU, _DL_CUDA):
        raise errors.Unsupported(f"{name}: expected CUDA or host memory, found DLPack device type {device_type}")
    # DLPack's numbers: None for the host, 1 for CUDA's legacy default stream.
    wanted = None if device_type == _DL_CPU else (stream or 1)
    try:
        try:
            capsule = array.__dlpack__(stream=wanted, max_version=(1, 1))
        except TypeError:
            capsule = array.__dlpack__(stream=wanted)
    except BufferError as error:
        raise errors.InvalidArgument(f"{name}: its library does not hand it out through DLPack: {error}") from error
    writable = True
    if _capsule_is_valid(capsule, b"dltensor_versioned"):
        managed = _DLManagedTensorVersioned.from_address(_capsule_pointer(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise errors.Unsupported(f"{name}: expected DLPack 1, found {managed.major}.{managed.minor}")
        writable = not managed.flags & _DL_READ_ONLY
        tensor = managed.dl_tensor
    else:
        tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    code = _DL_TYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if code is None:
        raise errors.Unsupported(
            f"{name}: no dtype for DLPack code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes"
        )
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else dense_strides(shape)
    device = "sim" if device_type == _DL_CPU else f"cuda:{device_id}"
    # An unconsumed capsule frees its tensor itself, when it goes.
    return View((tensor.data or 0) + tensor.byte_offset, shape, strides, code, device, (array, capsule), writable)


# --- __cuda_array_interface__, version 3 -------------------------------------------------------------

_TYPE_STRINGS = {"<f4": _abi.F32, "<f2": _abi.F16, "<i4": I32, "|u1": U8}


def _cuda_view(name: str, array: Any, stream: int, device: str | None) -> View:
    interface = array.__cuda_array_interface__
    for key in ("shape", "typestr", "data"):
        if key not in interface:
            raise errors.InvalidArgument(f"{name}: expected a __cuda_array_interface__ with {key!r}, found none")
    code = _TYPE_STRINGS.get(interface["typestr"])
    if code is None:
        raise errors.Unsupported(
            f"{name}: expected a typestr of {', '.join(_TYPE_STRINGS)} (FP8 as bytes, through jitgemm.view), "
            f"found {interface['typestr']}"
        )
    if interface.get("mask") is not None:
        raise errors.Unsupported(f"{name}: masked arrays have no kernel")
    shape = tuple(interface["shape"])
    given = interface.get("strides")
    strides = dense_strides(shape) if given is None else _element_strides(name, tuple(given), ITEM_SIZES[code])
    address, read_only = interface["data"]
    number = getattr(getattr(array, "device", None), "id", None)
    assumed = number is None and device is None
    if number is not None:
        device = f"cuda:{number}"
    elif device is None:
        device = "cuda:0"
    producer = interface.get("stream")
    # 1 is the legacy default stream, which other streams do not wait for either.
    if producer is not None and (0 if producer == 1 else producer) != stream:
        from . import _runtime

        _runtime.open_device(device).synchronize(0 if producer == 1 else producer)
    return View(address or 0, shape, strides, code, device, array, not read_only, assumed)
