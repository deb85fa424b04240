# SPDX-License-Identifier: Apache-2.0
"""block_scaled_mm: the public function."""

from __future__ import annotations

from typing import Any

from . import _arrays, _checks, _launch, _operands, _state, errors


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
    workspace: Any = None,
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
    GPU arrays that are not torch's need workspace for that wherever the operation has one: without
    it the call allocates memory and waits for the stream, which breaks a capture.

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
        workspace: memory on the device of a, for GPU arrays that are not torch's: any contiguous
            array of as many bytes, so aligned, as ``prepare(...).workspace(m)`` says (0 for most
            problems; an a that is quantised has one, and on Hopper rows that TMA cannot address).
            In use until the stream has passed the launch. Without it the call allocates one, and
            waits for the stream to free it.

    Returns:
        out, or a new array of the kind and on the device of a.

    Raises:
        InvalidArgument: (a ValueError) shapes, dtypes or devices do not fit; the message says which.
        Unsupported: (a NotImplementedError) there is no kernel for it.
        CaptureNotReady: not prepared, and the stream is being captured.
        Error: the status of the C library, e.g. CompileFailed, NoCompiler, SimulatorFault.
    """
    options = (group_n, group_k, scale_values, m_policy, batch_invariant)
    backend = _state.torch_backend
    if backend is None and _arrays.is_torch(a):
        backend = _state.load_torch_backend()
    if backend is not None and isinstance(a, backend.Tensor):
        if workspace is not None:
            raise errors.InvalidArgument("workspace: expected None for torch tensors, whose allocator provides it")
        return backend.product(a, b, a_scales, b_scales, None, out, out_dtype, None, stream, options)
    arrays = {"a": a, "b": b, "a_scales": a_scales, "b_scales": b_scales}
    return _launch.run(
        _operands.DenseOptions(*options), arrays, out, out_dtype, _checks.address("stream", stream), workspace
    )
