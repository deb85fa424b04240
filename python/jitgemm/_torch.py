# SPDX-License-Identifier: Apache-2.0
"""torch tensors: custom ops with fake functions, and a short way around the dispatcher when eager.

A call on plain tensors looks its prepared operation up by everything that the operation depends on
(shapes, strides, dtypes, devices, address alignment, options) and launches it on the current
stream. Anything else, be it torch.compile, a fake tensor, a subclass, a dispatch mode or autograd,
goes through ``torch.ops.jitgemm``. Imported only when torch is.
"""

from __future__ import annotations

import ctypes
from typing import Any, NoReturn

import torch

from . import _abi, _arrays, _checks, _operands, _runtime, errors

Tensor = torch.Tensor

_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))
_PLAIN_OR_NONE = _PLAIN | {type(None)}
_DTYPES = {
    _abi.BF16: torch.bfloat16,
    _abi.F16: torch.float16,
    _abi.F32: torch.float32,
}
_is_compiling = torch.compiler.is_compiling
_dispatch_modes = torch._C._len_torch_dispatch_stack
_grad_enabled = torch.is_grad_enabled


def _public_raw_stream(device: int) -> int:
    return int(torch.cuda.current_stream(device).cuda_stream)


# The same, without making an object.
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", _public_raw_stream)
_byref = ctypes.byref

# Prepared operations are small; callers whose shapes never repeat must not grow this for ever.
_MOST_READY = 1 << 16


class _Ready:
    """What a launch needs that does not change between calls of one key."""

    __slots__ = ("alignment", "dtype", "handle", "m", "operation", "shape", "workspace")

    def __init__(self, operation: _runtime.Operation | None, m: int, shape: tuple[int, ...], code: int) -> None:
        self.operation = operation
        self.handle = 0 if operation is None else operation.handle
        self.workspace, self.alignment = (0, 1) if operation is None else operation.workspace(m)
        self.m = m
        self.shape = shape
        self.dtype = _DTYPES[code]


_ready: dict[Any, _Ready] = {}


def _remember(key: Any, ready: _Ready) -> None:
    if len(_ready) >= _MOST_READY:
        _ready.clear()
    _ready[key] = ready


def forget() -> None:
    """Drops what earlier settings prepared."""
    _ready.clear()


def _plain(a: Any, b: Any, a_scales: Any, b_scales: Any, group_rows: Any, out: Any, invalid_count: Any) -> bool:
    """Whether the dispatcher would only get in the way."""
    return (
        type(a) in _PLAIN
        and type(b) in _PLAIN
        and type(a_scales) in _PLAIN_OR_NONE
        and type(b_scales) in _PLAIN_OR_NONE
        and type(group_rows) in _PLAIN_OR_NONE
        and type(out) in _PLAIN_OR_NONE
        and type(invalid_count) in _PLAIN_OR_NONE
        and not _dispatch_modes()
        and not (
            _grad_enabled()
            and (
                a.requires_grad
                or b.requires_grad
                or (a_scales is not None and a_scales.requires_grad)
                or (b_scales is not None and b_scales.requires_grad)
            )
        )
    )


def _elsewhere(*tensors: Any) -> Any:
    """What get_device() does not tell of tensors that are not on a GPU, and what these run on."""
    return tuple(None if tensor is None else tensor.device for tensor in tensors), _runtime.current_simulator()


def torch_dtype(out_dtype: Any, out: Any) -> Any:
    """The torch dtype of the result; None stays for out's."""
    if out_dtype is None:
        return torch.bfloat16 if out is None else None
    if isinstance(out_dtype, torch.dtype):
        return out_dtype
    return _DTYPES[_operands.out_code(out_dtype, None)]


def _on_stream(stream: int, a: Any) -> Any:
    """A context in which the stream is current: what is allocated there belongs to it, too."""
    if not isinstance(a, torch.Tensor) or not a.is_cuda or _is_compiling():
        raise errors.InvalidArgument("stream: expected None for tensors that are not on a GPU, and under torch.compile")
    stream = _checks.address("stream", stream)
    where = torch.cuda.ExternalStream(stream, a.device) if stream else torch.cuda.default_stream(a.device)
    return torch.cuda.stream(where)


def _refuse_gradient_of_out(out: Any, *inputs: Any) -> None:
    if out is not None and _grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in inputs):
        raise errors.Unsupported("out: there is no gradient; detach the inputs or use torch.no_grad()")


def _workspace(ready: _Ready, a: Any) -> tuple[Any, int]:
    """Memory for one launch, and its address. torch's allocator hands it out again in stream order."""
    alignment = ready.alignment
    memory = torch.empty(ready.workspace + alignment, dtype=torch.uint8, device=a.device)
    return memory, -(-memory.data_ptr() // alignment) * alignment


def _check_tensors(**arrays: Any) -> None:
    for name, array in arrays.items():
        if not isinstance(array, torch.Tensor):
            raise errors.InvalidArgument(f"{name}: expected a torch tensor like a, found {type(array).__name__}")


# --- One way for every kind of product: group_rows is None for a single one ----------------------------

_SIZE = ctypes.sizeof(_abi.GemmArguments)
_GROUPED_SIZE = ctypes.sizeof(_abi.GroupedGemmArguments)
_Arguments = _abi.GemmArguments
_GroupedArguments = _abi.GroupedGemmArguments
_launch = _abi.lib.jitgemm_gemm_launch
_launch_grouped = _abi.lib.jitgemm_grouped_gemm_launch


def product(
    a: Any,
    b: Any,
    a_scales: Any,
    b_scales: Any,
    group_rows: Any,
    out: Any,
    out_dtype: Any,
    invalid_count: Any,
    stream: int | None,
    options: tuple[Any, ...],
) -> Any:
    """jitgemm.block_scaled_mm and jitgemm.grouped_block_scaled_mm for tensors."""
    if stream is not None:
        with _on_stream(stream, a):
            return product(a, b, a_scales, b_scales, group_rows, out, out_dtype, invalid_count, None, options)
    if not _is_compiling() and _plain(a, b, a_scales, b_scales, group_rows, out, invalid_count):
        return _eager(a, b, a_scales, b_scales, group_rows, out, out_dtype, invalid_count, options)
    grouped = group_rows is not None
    given = {
        "a": a,
        "b": b,
        "a_scales": a_scales,
        "b_scales": b_scales,
        "group_rows": group_rows,
        "out": out,
        "invalid_count": invalid_count,
    }
    optional = ("a_scales", "group_rows", "out", "invalid_count", *(("b_scales",) if grouped else ()))
    _check_tensors(**{name: x for name, x in given.items() if x is not None or name not in optional})
    _refuse_gradient_of_out(out, a, b, a_scales, b_scales)
    dtype = torch_dtype(out_dtype, out)
    inputs = (a, b, a_scales, b_scales, group_rows) if grouped else (a, b, a_scales, b_scales)
    ops = torch.ops.jitgemm
    if out is None and invalid_count is None:
        return (ops.grouped_block_scaled_mm if grouped else ops.block_scaled_mm)(*inputs, dtype, *options)
    if out is None:
        out = a.new_empty((*a.shape[:-1], b.shape[-2]), dtype=dtype)
    elif dtype is not None and dtype != out.dtype:
        raise errors.InvalidArgument(f"out_dtype: expected {out.dtype}, the dtype of out, found {dtype}")
    if grouped:
        ops.grouped_block_scaled_mm_out(*inputs, out, invalid_count, *options)
    else:
        ops.block_scaled_mm_out(*inputs, out, *options)
    return out


def _eager(
    a: Any,
    b: Any,
    a_scales: Any,
    b_scales: Any,
    group_rows: Any,
    out: Any,
    out_dtype: Any,
    invalid_count: Any,
    options: tuple[Any, ...],
) -> Any:
    device = a.get_device()
    a_address = a.data_ptr()
    b_address = b.data_ptr()
    if out is None:
        out_address = 0
        out_key = out_dtype
    else:
        out_address = out.data_ptr()
        out_key = (out.shape, out.stride(), out.dtype, out.get_device(), out_dtype)
    if a_scales is None:
        a_scales_address = 0
        a_scales_key = None
    else:
        a_scales_address = a_scales.data_ptr()
        a_scales_key = (a_scales.shape, a_scales.stride(), a_scales.dtype, a_scales.get_device())
    if b_scales is None:
        b_scales_address = 0
        b_scales_key = None
    else:
        b_scales_address = b_scales.data_ptr()
        b_scales_key = (b_scales.shape, b_scales.stride(), b_scales.dtype, b_scales.get_device())
    if group_rows is None:
        rows_key: Any = None
    else:
        rows_key = (group_rows.shape, group_rows.stride(), group_rows.dtype, group_rows.get_device())
        if invalid_count is not None:
            rows_key += (invalid_count.shape, invalid_count.dtype, invalid_count.get_device())
    key = (
        a.shape,
        b.shape,
        a.stride(),
        b.stride(),
        a.dtype,
        b.dtype,
        device if device >= 0 else _elsewhere(a, b, a_scales, b_scales, out),
        b.get_device(),
        a_scales_key,
        b_scales_key,
        rows_key,
        (a_address | b_address | out_address) & 15,
        out_key,
        options,
    )
    stream = _raw_stream(device) if device >= 0 else 0
    try:
        ready = _ready.get(key)
    except TypeError as error:
        raise errors.InvalidArgument(f"expected options that can be hashed: {error}") from error
    if ready is None:
        arrays = {
            "a": a,
            "b": b,
            "a_scales": a_scales,
            "b_scales": b_scales,
            "group_rows": group_rows,
            "invalid_count": invalid_count,
        }
        given = _operands.DenseOptions(*options) if group_rows is None else _operands.GroupedOptions(*options)
        ready = _prepare(arrays, out, out_dtype, given, stream)
        _remember(key, ready)
    if out is None:
        out = torch.empty(ready.shape, dtype=ready.dtype, device=a.device)
        out_address = out.data_ptr()
    if ready.m == 0:
        return out
    workspace = 0
    if ready.workspace:
        _memory, workspace = _workspace(ready, a)
    if group_rows is None:
        status = _launch(
            ready.handle,
            _byref(
                _Arguments(
                    _SIZE,
                    a_address,
                    b_address,
                    a_scales_address,
                    b_scales_address,
                    out_address,
                    ready.m,
                    workspace,
                    ready.workspace,
                )
            ),
            stream,
        )
    else:
        status = _launch_grouped(
            ready.handle,
            _byref(
                _GroupedArguments(
                    _GROUPED_SIZE,
                    a_address,
                    b_address,
                    a_scales_address,
                    b_scales_address,
                    group_rows.data_ptr(),
                    out_address,
                    ready.m,
                    0 if invalid_count is None else invalid_count.data_ptr(),
                    workspace,
                    ready.workspace,
                )
            ),
            stream,
        )
    if status:
        raise _abi.last_error(status)
    return out


def _prepare(arrays: dict[str, Any], out: Any, out_dtype: Any, options: _operands.Options, stream: int) -> _Ready:
    views = {name: _arrays.as_view(name, array) for name, array in arrays.items() if array is not None}
    m, shape = options.check(views)
    if out is None:
        code = _operands.out_code(out_dtype, None)
        # Fresh memory of torch is aligned to more than any kernel asks for.
        views["out"] = _arrays.View(0, shape, _arrays.dense_strides(shape), code, views["a"].device, None)
    else:
        views["out"] = _arrays.as_view("out", out)
        code = _operands.out_code(out_dtype, views["out"])
    device = _runtime.open_device(_operands.check_devices(views))
    problem = options.problem(views)
    operation = None if m == 0 else device.operation(options.kind, problem, stream)
    return _Ready(operation, m, shape, code)


# --- Custom ops --------------------------------------------------------------------------------------

_library = torch.library.Library("jitgemm", "DEF")
_TAG = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)
_OPTIONS = "int group_n, int group_k, str scale_values, str m_policy, bool batch_invariant"


def _no_gradient(context: Any, *gradients: Any) -> NoReturn:
    raise errors.Unsupported("backward: there is no gradient; detach the inputs or use torch.no_grad()")


def _register(schema: str, run: Any, fake: Any, differentiable: bool) -> None:
    name = schema.partition("(")[0]
    _library.define(schema, tags=(_TAG,))
    for key in ("CUDA", "CPU"):
        _library.impl(name, run, key)
    torch.library.register_fake(f"jitgemm::{name}", fake, lib=_library)
    if differentiable:
        torch.library.register_autograd(f"jitgemm::{name}", _no_gradient, lib=_library)


def _run_dense(a: Any, b: Any, a_scales: Any, b_scales: Any, out_dtype: Any, *options: Any) -> Any:
    return _eager(a, b, a_scales, b_scales, None, None, out_dtype, None, options)


def _run_dense_out(a: Any, b: Any, a_scales: Any, b_scales: Any, out: Any, *options: Any) -> None:
    _eager(a, b, a_scales, b_scales, None, out, None, None, options)


def _fake_dense(a: Any, b: Any, a_scales: Any, b_scales: Any, out_dtype: Any, *options: Any) -> Any:
    torch._check(a.dim() == 2 and b.dim() == 2, lambda: "a and b: expected [m, k] and [n, k]")
    torch._check(a.shape[1] == b.shape[1], lambda: f"b: expected k = {a.shape[1]}, found {b.shape[1]}")
    return a.new_empty((a.shape[0], b.shape[0]), dtype=out_dtype)


def _fake_dense_out(a: Any, b: Any, a_scales: Any, b_scales: Any, out: Any, *options: Any) -> None:
    torch._check(
        out.dim() == 2 and out.shape[0] == a.shape[0] and out.shape[1] == b.shape[0], lambda: "out: expected [m, n]"
    )


_register(
    "block_scaled_mm(Tensor a, Tensor b, Tensor? a_scales, Tensor b_scales, ScalarType out_dtype, "
    f"{_OPTIONS}) -> Tensor",
    _run_dense,
    _fake_dense,
    True,
)
_register(
    f"block_scaled_mm_out(Tensor a, Tensor b, Tensor? a_scales, Tensor b_scales, Tensor(a!) out, {_OPTIONS}) -> ()",
    _run_dense_out,
    _fake_dense_out,
    False,
)


_GROUPED_OPTIONS = (
    "int group_n, int group_k, str layout, int expected_m, int row_alignment, bool zero_ungrouped, "
    "str scale_values, str m_policy, bool batch_invariant"
)
_GROUPED_INPUTS = "Tensor a, Tensor b, Tensor? a_scales, Tensor? b_scales, Tensor group_rows"


def _run_grouped(a: Any, b: Any, a_scales: Any, b_scales: Any, rows: Any, out_dtype: Any, *options: Any) -> Any:
    return _eager(a, b, a_scales, b_scales, rows, None, out_dtype, None, options)


def _run_grouped_out(
    a: Any, b: Any, a_scales: Any, b_scales: Any, rows: Any, out: Any, invalid_count: Any, *options: Any
) -> None:
    _eager(a, b, a_scales, b_scales, rows, out, None, invalid_count, options)


def _fake_grouped(a: Any, b: Any, a_scales: Any, b_scales: Any, rows: Any, out_dtype: Any, *options: Any) -> Any:
    torch._check(a.dim() in (2, 3) and b.dim() == 3, lambda: "a and b: expected [.., m, k] and [groups, n, k]")
    torch._check(a.shape[-1] == b.shape[2], lambda: f"b: expected k = {a.shape[-1]}, found {b.shape[2]}")
    return a.new_empty((*a.shape[:-1], b.shape[1]), dtype=out_dtype)


def _fake_grouped_out(
    a: Any, b: Any, a_scales: Any, b_scales: Any, rows: Any, out: Any, invalid_count: Any, *options: Any
) -> None:
    torch._check(out.dim() == a.dim() and out.shape[-1] == b.shape[1], lambda: "out: expected [.., m, n]")


_register(
    f"grouped_block_scaled_mm({_GROUPED_INPUTS}, ScalarType out_dtype, {_GROUPED_OPTIONS}) -> Tensor",
    _run_grouped,
    _fake_grouped,
    True,
)
_register(
    f"grouped_block_scaled_mm_out({_GROUPED_INPUTS}, Tensor(a!) out, Tensor(b!)? invalid_count, "
    f"{_GROUPED_OPTIONS}) -> ()",
    _run_grouped_out,
    _fake_grouped_out,
    False,
)
