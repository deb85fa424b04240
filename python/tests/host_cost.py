# SPDX-License-Identifier: Apache-2.0
"""What an eager call costs the host, beside an empty torch custom op with the same tensors.

    python python/tests/host_cost.py [FILE]    prints JSON, or writes it

Each figure is the least of many batches, in microseconds a call, on a product so small that the GPU
keeps up with the host.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

import jitgemm

CALLS = 200
BATCHES = 30


def microseconds(call: Callable[[], Any]) -> float:
    for _ in range(20):
        call()
    best = float("inf")
    for _ in range(BATCHES):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - started)
    torch.cuda.synchronize()
    return round(best / CALLS * 1e6, 3)


@torch.library.custom_op("jitgemm_test::empty", mutates_args=("out",))
def empty(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor, out: torch.Tensor) -> None:
    """Nothing."""


_library = torch.library.Library("jitgemm_test_raw", "DEF")
_library.define("empty(Tensor a, Tensor b, Tensor c, Tensor d, Tensor(a!) out) -> ()")
_library.impl("empty", lambda *arguments: None, "CUDA")


def measure() -> dict[str, Any]:
    """The figures, by name."""
    m, n, k = 16, 128, 128
    a = torch.randn(m, k, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn)
    a_scales, b_scales = torch.ones(m, 1, device="cuda"), torch.ones(1, 1, device="cuda")
    out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    rows = torch.zeros(m, device="cuda", dtype=torch.int32)
    stack, stack_scales = b[None], b_scales[None]
    options = (128, 128, "any", "exact", False)
    calls: dict[str, Callable[[], Any]] = {
        "empty_custom_op": lambda: empty(a, b, a_scales, b_scales, out),
        "empty_library_op": lambda: torch.ops.jitgemm_test_raw.empty(a, b, a_scales, b_scales, out),
        "torch_empty": lambda: torch.empty(m, n, device="cuda", dtype=torch.bfloat16),
        "block_scaled_mm_out": lambda: jitgemm.block_scaled_mm(a, b, a_scales, b_scales, out),
        "block_scaled_mm_new": lambda: jitgemm.block_scaled_mm(a, b, a_scales, b_scales),
        "block_scaled_mm_op": lambda: torch.ops.jitgemm.block_scaled_mm_out(a, b, a_scales, b_scales, out, *options),
        "group_deepgemm_out": lambda: jitgemm.group_deepgemm_fp8_nt_groupwise(
            a, stack, a_scales, stack_scales, rows, out=out
        ),
    }
    figures: dict[str, Any] = {}
    for name, call in calls.items():
        try:
            figures[name] = microseconds(call)
        except jitgemm.Unsupported as error:
            figures[name] = str(error)
    for name in ("block_scaled_mm_out", "group_deepgemm_out"):
        if isinstance(figures[name], float):
            figures[f"{name}_over_empty_library_op"] = round(figures[name] - figures["empty_library_op"], 3)
            figures[f"{name}_over_empty_custom_op"] = round(figures[name] - figures["empty_custom_op"], 3)
    return {"unit": "us", "gpu": torch.cuda.get_device_name(), "torch": torch.__version__, **figures}


if __name__ == "__main__":
    text = json.dumps(measure(), indent=2)
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w") as file:
            file.write(text + "\n")
    else:
        print(text)
