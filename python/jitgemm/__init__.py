# SPDX-License-Identifier: Apache-2.0
"""Matrix products for NVIDIA GPUs whose kernels are specialised at run time.

Four lines on a machine without a GPU::

    import jitgemm, numpy as np
    a, a_scales = jitgemm.per_token_cast_to_fp8(np.random.randn(64, 512).astype("float32"))
    b, b_scales = jitgemm.per_block_cast_to_fp8(np.random.randn(256, 512).astype("float32"))
    print(jitgemm.block_scaled_mm(a, b, a_scales, b_scales))

Arrays say where a call runs: torch tensors on their GPU and torch's current stream, GPU arrays of
other libraries on theirs, numpy arrays on a simulator that executes the same kernels' PTX. Every
function may be called by any number of threads at once and releases the GIL while the library
works. Errors are :class:`jitgemm.Error` and also a ``ValueError`` or ``NotImplementedError`` where
one fits. torch is never imported by this package.
"""

from . import _abi, _state
from ._arrays import View, view
from ._dense import block_scaled_mm
from ._grouped import (
    batch_deepgemm_fp8_nt_groupwise,
    group_deepgemm_fp8_nt_groupwise,
    grouped_block_scaled_mm,
)
from ._prepare import PrewarmReport, compile, plan, prepare, prewarm
from ._problem import GemmProblem, GroupedGemmProblem
from ._runtime import Operation, configure, simulator
from ._sim import sim_run
from .errors import (
    CaptureNotReady,
    CompileFailed,
    CorruptData,
    DeviceError,
    Error,
    InternalError,
    InvalidArgument,
    IoError,
    NoCompiler,
    NoDriver,
    NotReady,
    OutOfMemory,
    SimulatorFault,
    Unsupported,
    VerificationFailed,
)
from .quantize import per_block_cast_to_fp8, per_token_cast_to_fp8

__version__: str = _abi.lib.jitgemm_version().decode()


def register_torch_ops() -> None:
    """Registers ``torch.ops.jitgemm``, for who calls them by that name. Happens by itself when
    jitgemm is imported after torch, and at the first call with a tensor. Imports torch."""
    _state.load_torch_backend()


__all__ = [
    "block_scaled_mm",
    "grouped_block_scaled_mm",
    "group_deepgemm_fp8_nt_groupwise",
    "batch_deepgemm_fp8_nt_groupwise",
    "per_token_cast_to_fp8",
    "per_block_cast_to_fp8",
    "GemmProblem",
    "GroupedGemmProblem",
    "plan",
    "compile",
    "prepare",
    "prewarm",
    "PrewarmReport",
    "Operation",
    "configure",
    "simulator",
    "sim_run",
    "view",
    "View",
    "register_torch_ops",
    "Error",
    "InvalidArgument",
    "Unsupported",
    "NotReady",
    "CaptureNotReady",
    "CompileFailed",
    "NoCompiler",
    "NoDriver",
    "DeviceError",
    "OutOfMemory",
    "SimulatorFault",
    "IoError",
    "CorruptData",
    "VerificationFailed",
    "InternalError",
]

_state.load_if_torch_is_imported()
