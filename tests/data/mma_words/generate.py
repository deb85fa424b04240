# SPDX-License-Identifier: Apache-2.0
"""Writes the result words that the tests of src/sim/models_mma.cpp are compared with.

usage: python3 generate.py OUTPUT_DIRECTORY      (needs the package mmasim 2.1.1 and torch)

One line a case: kind m n k d a b s block | A codes | B codes | C words | D words | scales A | scales B,
all in hexadecimal, k (for C and D: n) fastest. Only ROWS rows of A are kept; rows are independent.
"""

import pathlib
import sys

import torch
from mmasim.nv_ptx import sim as nv

ROWS, COLS = 8, 8
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}
INT = {8: torch.uint8, 16: torch.int16, 32: torch.int32}
STYLES = ("unit", "wide", "bits")


def float_operand(kind, rows, k, style):
    """A tensor of the operand's type: unit normal, wide dynamic range, or random finite codes."""
    types = {"f16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32,
             "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
    if kind in ("e2m3", "e3m2", "e2m1"):
        codes = torch.randint(0, 1 << BITS[kind], (rows, k), dtype=torch.uint8)
        return codes << 2 if kind == "e2m1" else codes
    if style == "bits":
        container = INT[max(8, BITS[kind])]
        low, high = (0, 256) if container == torch.uint8 else (-(1 << (BITS[kind] - 1)), (1 << (BITS[kind] - 1)) - 1)
        value = torch.randint(low, high, (rows, k)).to(container).view(types[kind])
        if kind in ("bf16", "tf32"):  # keep sums finite
            wide = value.float()
            wide = torch.where(wide.abs() > 1e12, wide * 0 + 3.0, wide)
            value = torch.where(wide.isfinite(), wide, torch.ones_like(wide)).to(types[kind])
    else:
        value = torch.randn(rows, k)
        if style == "wide":
            value = value * torch.exp2(torch.randint(-10, 6, (rows, k)).float())
        value = value.to(types[kind])
    wide = value.float()
    return torch.where(wide.isfinite(), wide, torch.ones_like(wide)).to(types[kind])


def accumulator(d, style, rows, cols):
    value = torch.randn(rows, cols) * (1 if style == "unit" else 64)
    if style == "wide":
        value = value * torch.exp2(torch.randint(-20, 12, (rows, cols)).float())
    if style == "bits":
        value[:, ::2] = 0
    return value.to(torch.float16 if d == "f16" else torch.float32)


def scales(kind, rows, blocks, style):
    if kind == "ue8m0":
        low, high = (120, 134) if style != "wide" else (90, 160)
        return torch.randint(low, high, (rows, blocks), dtype=torch.uint8).view(torch.float8_e8m0fnu)
    high = 0x7E if style != "bits" else 0xFE
    codes = torch.randint(0, high, (rows, blocks), dtype=torch.uint8)
    codes[(codes & 0x7F) == 0x7F] = 0x38
    return codes.view(torch.float8_e4m3fn)


def words(tensor):
    width = tensor.element_size()
    flat = tensor.contiguous().view(INT[8 * width]).flatten().tolist()
    return ",".join(format(x & ((1 << (8 * width)) - 1), "x") for x in flat)


def plain_case(kind, op, style):
    a = float_operand(op.a_type_ptx, op.m, op.k, style)
    b = float_operand(op.b_type_ptx, op.n, op.k, style)
    c = accumulator("f16" if op.d_type == torch.float16 else "f32", style, op.m, op.n)
    d = op(a, b.T, c)
    # fp4 in an 8-bit container sits in bits 2-5; the files hold the bare code.
    a_codes = a >> 2 if op.a_type_ptx == "e2m1" else a
    b_codes = b >> 2 if op.b_type_ptx == "e2m1" else b
    d_name = "f16" if op.d_type == torch.float16 else "f32"
    head = f"{kind} {ROWS} {COLS} {op.k} {d_name} {op.a_type_ptx} {op.b_type_ptx} - 0"
    return " | ".join([head, words(a_codes[:ROWS]), words(b_codes[:COLS]), words(c[:ROWS, :COLS]),
                       words(d[:ROWS, :COLS]), "-", "-"])


def scaled_case(kind, op, s_name, style):
    blocks = op.k // op.block_size
    packed = op.packing == 2
    if packed:  # two codes a byte; mmasim takes the high nibble first
        a_codes = torch.randint(0, 16, (op.m, op.k), dtype=torch.uint8)
        b_codes = torch.randint(0, 16, (op.n, op.k), dtype=torch.uint8)
        a = (a_codes[:, ::2] << 4) | a_codes[:, 1::2]
        b = (b_codes[:, ::2] << 4) | b_codes[:, 1::2]
    else:
        a = float_operand(op.a_type_ptx, op.m, op.k, style)
        b = float_operand(op.b_type_ptx, op.n, op.k, style)
        a_codes = a >> 2 if op.a_type_ptx == "e2m1" else a
        b_codes = b >> 2 if op.b_type_ptx == "e2m1" else b
    sa, sb = scales(s_name, op.m, blocks, style), scales(s_name, op.n, blocks, style)
    c = accumulator("f32", style, op.m, op.n)
    d = op(a, b.T, c, sa, sb.T)
    head = f"{kind} {ROWS} {COLS} {op.k} f32 {op.a_type_ptx} {op.b_type_ptx} {s_name} {op.block_size}"
    return " | ".join([head, words(a_codes[:ROWS]), words(b_codes[:COLS]), words(c[:ROWS, :COLS]),
                       words(d[:ROWS, :COLS]), words(sa[:ROWS]), words(sb[:COLS])])


def main(directory):
    torch.manual_seed(20261129)
    out = pathlib.Path(directory)
    fp8 = ("e4m3", "e5m2")
    wgmma = [f"m64n8k8.f32.tf32.tf32", "m64n8k16.f32.f16.f16", "m64n8k16.f16.f16.f16", "m64n8k16.f32.bf16.bf16"]
    wgmma += [f"m64n8k32.{d}.{a}.{b}" for d in ("f32", "f16") for a, b in (("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e5m2", "e5m2"))]
    plain = ["m64n8k8.kind::tf32.f32.tf32.tf32", "m64n8k16.kind::f16.f32.f16.f16",
             "m64n8k16.kind::f16.f32.bf16.bf16", "m64n8k16.kind::f16.f16.f16.f16"]
    plain += [f"m64n8k32.kind::f8f6f4.f32.{a}.{b}" for a, b in
              (("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e2m3", "e3m2"), ("e2m1", "e4m3"))]
    plain += ["m64n8k32.kind::f8f6f4.f16.e4m3.e4m3"]
    scaled = [(f"m128n8k32.kind::mxf8f6f4.block32.f32.{a}.{b}.ue8m0", "ue8m0") for a, b in
              (("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e2m3", "e3m2"), ("e2m1", "e4m3"))]
    scaled += [("m128n8k64.kind::mxf4.block32.f32.e2m1.e2m1.ue8m0", "ue8m0"),
               ("m128n8k64.kind::mxf4nvf4.block32.f32.e2m1.e2m1.ue8m0", "ue8m0"),
               ("m128n8k64.kind::mxf4nvf4.block16.f32.e2m1.e2m1.ue8m0", "ue8m0"),
               ("m128n8k64.kind::mxf4nvf4.block16.f32.e2m1.e2m1.ue4m3", "ue4m3")]
    with open(out / "wgmma.txt", "w") as file:
        for name in wgmma:
            op = nv.WGMMA("Hopper", name)
            for style in STYLES:
                print(plain_case("wgmma", op, style), file=file)
    with open(out / "tcgen05.txt", "w") as file:
        for name in plain:
            op = nv.TCGen05MMA("Blackwell", name)
            for style in STYLES:
                print(plain_case(op.kind, op, style), file=file)
        for name, s_name in scaled:
            op = nv.TCGen05MMABlockScale("Blackwell", name)
            for style in STYLES:
                print(scaled_case(op.kind, op, s_name, style), file=file)
    # mma.sync of sm_120. Written last: the words of the other files do not depend on it.
    kinds = [f"m16n8k32.kind::f8f6f4.{d}.{a}.{b}.{d}" for d, a, b in
             (("f32", "e4m3", "e5m2"), ("f32", "e2m3", "e3m2"), ("f32", "e2m1", "e4m3"), ("f16", "e4m3", "e4m3"))]
    block = [(name.replace("m128", "m16").replace(".ue", ".f32.ue"), s_name) for name, s_name in scaled]
    with open(out / "mma_sync.txt", "w") as file:
        for name in kinds:
            op = nv.MMA("RTX Blackwell", name)
            for style in STYLES:
                print(plain_case(op.kind, op, style), file=file)
        for name, s_name in block:
            op = nv.MMABlockScale("RTX Blackwell", name)
            for style in STYLES:
                print(scaled_case(op.kind, op, s_name, style), file=file)


main(sys.argv[1])
