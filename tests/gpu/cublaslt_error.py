#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our error and cuBLASLt's, on the same operands, in one run on one GPU.

Draws normal operands, quantises them (1x128 and 128x128 blocks, amax/448), multiplies them with
`jitgemm run` and with cuBLASLt's block-scaled product as torch offers it, fp32 output both, and
compares each with a float64 product of the dequantised operands. Fails where our relative L2 is
above 1.05 times cuBLASLt's or above 1.4e-4: Hopper's short FP8 accumulator is the floor of both.

Needs torch with CUDA on an SM90 GPU. Exit codes: 0 passed, 1 failed, 77 skipped with the reason.
Prints one JSON object.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

SHAPES = ((128, 2112, 7168), (1024, 7168, 2048), (4096, 4096, 4096), (4096, 2048, 2048))
LIMIT = 1.4e-4
RATIO = 1.05
SKIP = 77


def skip(reason):
    print(f"SKIPPED cublaslt_error: {reason}")
    sys.exit(SKIP)


def quantise(torch, x, rows):
    """Codes, scales [ceil(rows of x / rows), k/128] and the float64 values that they stand for."""
    m, k = x.shape
    blocks = x.view(-(-m // rows), rows, k // 128, 128)
    scales = blocks.abs().amax(dim=(1, 3)) / 448.0
    codes = (blocks / scales[:, None, :, None]).clamp(-448, 448).to(torch.float8_e4m3fn)
    values = codes.double() * scales.double()[:, None, :, None]
    return codes.view(m, k), scales, values.view(m, k)


def cublaslt(torch, a, b, a_scales, b_scales, wanted):
    """Tries the layouts of B's scales that torch's versions expect, and takes the one that is right."""
    column_major = a_scales.t().contiguous().t()
    said = []
    for name, scales in (
        ("transposed view", b_scales.t()),
        ("transposed copy", b_scales.t().contiguous()),
        ("column-major", b_scales.t().contiguous().t()),
        ("row-major", b_scales),
    ):
        try:
            out = torch._scaled_mm(a, b.t(), scale_a=column_major, scale_b=scales, out_dtype=torch.float32)
        except (RuntimeError, ValueError) as error:
            said.append(f"{name}: {str(error).splitlines()[0][:200]}")
            continue
        error = relative_l2(out, wanted)
        if error < 1e-2:
            return error
        said.append(f"{name}: error {error:.3g}")
    return "; ".join(said)


def relative_l2(found, wanted):
    return float((found.double() - wanted).norm() / wanted.norm())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jitgemm", required=True, help="the jitgemm command")
    options = parser.parse_args()
    try:
        import torch
        from safetensors.torch import load_file, save_file
    except ImportError as error:
        skip(str(error))
    if not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] != 9:
        skip("no SM90 GPU")

    torch.manual_seed(1)
    rows, failed = [], False
    for m, n, k in SHAPES:
        a, a_scales, a_values = quantise(torch, torch.randn(m, k, device="cuda"), 1)
        full = torch.randn(-(-n // 128) * 128, k, device="cuda")
        b, b_scales, b_values = quantise(torch, full, 128)
        b, b_values = b[:n].contiguous(), b_values[:n]
        wanted = a_values @ b_values.t()
        with tempfile.TemporaryDirectory() as name:
            source, result = pathlib.Path(name) / "in", pathlib.Path(name) / "out"
            save_file({"a": a.cpu(), "b": b.cpu(), "a_scales": a_scales.cpu(), "b_scales": b_scales.cpu()}, str(source))
            command = [options.jitgemm, "run", "block_scaled_mm", "--device", "cuda:0", "--arch", "sm_90a",
                       "--input", str(source), "--output", str(result), "--out-dtype", "f32", "--no-verify"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                print(done.stdout + done.stderr)
                return 1
            ours = relative_l2(load_file(str(result))["out"].cuda(), wanted)
        theirs = cublaslt(torch, a, b, a_scales, b_scales, wanted)
        row = {"m": m, "n": n, "k": k, "jitgemm": ours, "cublaslt": theirs}
        row["passed"] = ours <= LIMIT and isinstance(theirs, float) and ours <= RATIO * theirs
        failed |= not row["passed"]
        rows.append(row)
    print(json.dumps({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "products": rows}, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
