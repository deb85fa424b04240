# SPDX-License-Identifier: Apache-2.0
"""torch._scaled_mm with block scales as a peer: jitgemm bench --peer bench/peers/torch_scaled_mm.py

torch hands the product to cuBLASLt, so what this shows beside the built-in peer is what torch adds: nothing on the
GPU, one would hope, since calls are captured into a graph. Scales are in the layouts that it wants beforehand: a's
column by column, b's with rows of a multiple of 4. Rows are padded to a multiple of 4, which cuBLASLt needs.
"""

import pathlib
import sys
import types

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cuda_memory import out_dtype, tensor_at  # noqa: E402

name = "torch_scaled_mm"


def open(problem):
    p = problem
    codes, scales = torch.float8_e4m3fn, torch.float32
    calls = []
    for s in p.sets:
        calls.append((
            tensor_at(s.a, p.padded_m, p.k, codes),
            tensor_at(s.b, p.n, p.k, codes).t(),
            tensor_at(s.a_scales_column_major, p.k_blocks, p.padded_m, scales).t(),
            tensor_at(s.b_scales_padded, p.n_blocks, p.padded_k_blocks, scales)[:, : p.k_blocks].t(),
            tensor_at(s.out, p.padded_m, p.n, out_dtype(p)),
        ))
    peer = types.SimpleNamespace(calls=calls)
    # Refuses here what it cannot do; what it allocates for itself it has from then on.
    _multiply(calls[0])
    torch.cuda.synchronize()
    return peer


def _multiply(call):
    a, b, a_scales, b_scales, out = call
    torch._scaled_mm(a, b, scale_a=a_scales, scale_b=b_scales, out_dtype=out.dtype, use_fast_accum=False, out=out)


def launch(peer, index, stream):
    with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
        _multiply(peer.calls[index])
