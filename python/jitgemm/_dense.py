# SPDX-License-Identifier: Apache-2.0
"""block_scaled_mm: the public function, and how arrays that are not torch tensors reach the library."""

from __future__ import annotations

import ctypes
from typing import Any

from . import _abi, _arrays, _launch, _problem, _runtime, _state


def block_scaled_mm(
    a: Any,
    b: Any,
    a_scales: Any,
    b_scales: Any,
    out: Any = None,
    out_dtype: Any = None,
    group_n: int = 128,
    group_k: int = 128,
    *,
    scale_values: str = "any",
    m_policy: str = "exact",
    batch_invariant: bool = False,
    stream: int | None = None,
) -> Any:
    """The product of two FP8 matrices with a scale for each block.

    ``out[i,j] = sum over kb of dot(a[i,kb], b[j,kb]) * (a_scales[i,kb] * b_scales[j // group_n, kb])``

    where kb runs over the blocks of group_k columns; the last may be short. Accumulates in fp32 and
    rounds once. Any m from 0, any n and k from 1.

    torch tensors on a GPU run on the current stream of their device; nothing waits. numpy arrays
    and CPU tensors run on the simulator (see :func:`jitgemm.simulator`). Arrays with ``__dlpack__``
    or ``__cuda_array_interface__`` need out. The first call of a problem plans, compiles or finds
    its kernel in the cache (up to half a second); :func:`jitgemm.prepare` does that ahead of time.

    Works under torch.compile and in CUDA graph capture (prepared before); there is no gradient.
    Any number of threads may call it at once; the GIL is released while the library works. The
    arrays are used until the stream has passed the launch; torch's allocator knows that.

    Args:
        a: [m, k], float8_e4m3fn or float8_e5m2; rows contiguous, any distance between them. Or
            float32, bfloat16 or float16 without a_scales: it is quantised to float8_e4m3fn first,
            as :func:`jitgemm.per_token_cast_to_fp8` would, into a workspace of the call.
        b: [n, k], as a.
        a_scales: [m, ceil(k / group_k)], float32 of any value; either order contiguous. Or
            float8_e8m0fnu (uint8 is read as that) for both scales, or int32: exponents packed four
            to a word, [m, ceil(k / group_k / 4)], rows contiguous and columns of whole 16 bytes
            (:func:`jitgemm.layouts.pack_exponents`). None if a is not FP8.
        b_scales: [ceil(n / group_n), ceil(k / group_k)], as a_scales.
        out: [m, n] to be written, rows contiguous; a new array without it.
        out_dtype: bfloat16 (default), float16 or float32, as a name or a torch or numpy dtype;
            must agree with out if both are given.
        group_n: rows of b that share a scale, from 1.
        group_k: columns that share a scale, a multiple of 32.
        scale_values: ``"any"``, or ``"pow2"``: a promise that every float32 scale is a positive
            power of two, which SM100's tensor core applies itself.
        m_policy: ``"exact"``: the kernel is made for this m. ``"class"``: a kernel serves a class of
            m (about 25 up to 16384), for m that varies from call to call. ``"any"``: one kernel.
        batch_invariant: a row's bits depend neither on m nor on other rows.
        stream: address of a CUstream to use instead of torch's current one (of the default stream
            for other GPU arrays).

    Returns:
        out, or a new array of the kind and on the device of a.

    Raises:
        InvalidArgument: (a ValueError) shapes, dtypes or devices do not fit; the message says which.
        Unsupported: (a NotImplementedError) there is no kernel for it.
        CaptureNotReady: not prepared, and the stream is being captured.
        Error: the status of the C library, e.g. CompileFailed, NoCompiler, SimulatorFault.
    """
    backend = _state.torch_backend
    if backend is None and _arrays.is_torch(a):
        backend = _state.load_torch_backend()
    if backend is not None and isinstance(a, backend.Tensor):
        return backend.block_scaled_mm(
            a,
            b,
            a_scales,
            b_scales,
            out,
            out_dtype,
            group_n,
            group_k,
            scale_values,
            m_policy,
            batch_invariant,
            stream,
        )
    options = _problem.DenseOptions(group_n, group_k, scale_values, m_policy, batch_invariant)
    return _run(a, b, a_scales, b_scales, out, out_dtype, options, stream or 0)


def _run(
    a: Any,
    b: Any,
    a_scales: Any,
    b_scales: Any,
    out: Any,
    out_dtype: Any,
    options: _problem.DenseOptions,
    stream: int,
) -> Any:
    arrays = {"a": a, "b": b, "a_scales": a_scales, "b_scales": b_scales}
    views = {name: _arrays.as_view(name, array, stream) for name, array in arrays.items() if array is not None}
    m, n, _ = _problem.check_dense(views, options)
    given = None if out is None else _arrays.as_view("out", out, stream)
    code = _problem.out_code(out_dtype, given)
    if out is None:
        out = _launch.new_output(a, (m, n), code)
        given = _arrays.as_view("out", out, stream)
    assert given is not None
    views["out"] = given
    device = _runtime.open_device(_problem.check_devices(views))
    problem = _problem.dense_problem(views, options)
    if m == 0:
        return out
    operation = device.operation(_runtime.DENSE, problem, stream)
    workspace = _launch.Workspace(device, operation, m)
    arguments = _abi.GemmArguments(
        struct_size=ctypes.sizeof(_abi.GemmArguments),
        m=m,
        workspace=workspace.address,
        workspace_bytes=workspace.bytes,
        **{name: found.address for name, found in views.items()},
    )
    _abi.check(_abi.lib.jitgemm_gemm_launch(operation.handle, ctypes.byref(arguments), stream))
    workspace.keep_until_done(device, stream)
    return out
