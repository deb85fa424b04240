#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an eager call from Python costs the host, beside an empty torch custom op with the same tensors.

    bench/python_host.py [FILE]    prints JSON, or writes it, too; needs torch, a GPU, and jitgemm on PYTHONPATH

Contenders take turns, batch by batch, on products so small that the GPU keeps up with the host; the queue is emptied
between batches, untimed. The figure is the median of the batches, in microseconds a call.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

import jitgemm

CALLS = 100
BATCHES = 60
GOAL_US = 10.0  # over an empty custom op, with out given


def measure(calls: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Samples of each, in microseconds a call."""
    for call in calls.values():
        for _ in range(20):
            call()
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(BATCHES):
        for name, call in calls.items():
            torch.cuda.synchronize()
            started = time.perf_counter()
            for _ in range(CALLS):
                call()
            samples[name].append((time.perf_counter() - started) / CALLS * 1e6)
    torch.cuda.synchronize()
    return samples


@torch.library.custom_op("jitgemm_test::empty", mutates_args=("out",))
def empty(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor, out: torch.Tensor) -> None:
    """Nothing."""


_library = torch.library.Library("jitgemm_test_raw", "DEF")
_library.define("empty(Tensor a, Tensor b, Tensor c, Tensor d, Tensor(a!) out) -> ()")
_library.impl("empty", lambda *arguments: None, "CUDA")


def contenders() -> dict[str, Callable[[], Any]]:
    """The calls, by name."""
    m, n, k = 16, 128, 128
    a = torch.randn(m, k, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn)
    a_scales, b_scales = torch.ones(m, 1, device="cuda"), torch.ones(1, 1, device="cuda")
    out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    rows = torch.zeros(m, device="cuda", dtype=torch.int32)
    counts = torch.full((1,), m, device="cuda", dtype=torch.int32)
    stack, stack_scales = b[None], b_scales[None]
    batch, batch_out = (a[None], stack, a_scales[None], stack_scales), out[None]
    options = (128, 128, "any", "exact", False)
    return {
        "empty_custom_op": lambda: empty(a, b, a_scales, b_scales, out),
        "empty_library_op": lambda: torch.ops.jitgemm_test_raw.empty(a, b, a_scales, b_scales, out),
        "torch_empty": lambda: torch.empty(m, n, device="cuda", dtype=torch.bfloat16),
        "block_scaled_mm_out": lambda: jitgemm.block_scaled_mm(a, b, a_scales, b_scales, out),
        "block_scaled_mm_new": lambda: jitgemm.block_scaled_mm(a, b, a_scales, b_scales),
        "block_scaled_mm_op": lambda: torch.ops.jitgemm.block_scaled_mm_out(a, b, a_scales, b_scales, out, *options),
        "group_deepgemm_out": lambda: jitgemm.group_deepgemm_fp8_nt_groupwise(
            a, stack, a_scales, stack_scales, rows, out=out
        ),
        "batch_deepgemm_out": lambda: jitgemm.batch_deepgemm_fp8_nt_groupwise(*batch, counts, m, out=batch_out),
    }


def main() -> int:
    samples = measure(contenders())
    figures = {name: round(statistics.median(values), 3) for name, values in samples.items()}
    over = {
        name: {
            "over_empty_custom_op_us": round(figures[name] - figures["empty_custom_op"], 3),
            "over_empty_library_op_us": round(figures[name] - figures["empty_library_op"], 3),
        }
        for name in ("block_scaled_mm_out", "group_deepgemm_out", "batch_deepgemm_out")
    }
    document = {
        "schema": 1,
        "verb": "python_host",
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "goal_over_empty_custom_op_us": GOAL_US,
        "median_us": figures,
        "over": over,
        "samples_us": {name: [round(value, 3) for value in values] for name, values in samples.items()},
    }
    text = json.dumps(document, indent=1)
    print(text)
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w") as file:
            file.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
