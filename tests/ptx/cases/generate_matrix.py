#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes matrix.case and tensor.case: the matrix instructions of the table, on matrices whose elements
are all the same, so that every element of the product is the number of terms times both, whatever the
layout; and tensor-memory accesses of every shape, whose layouts are written down here as formulas
(PTX ISA 9.7.16.2.3). Run it in this folder; the results are committed."""
import struct


def f32(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def f16(x):
    return struct.unpack("<H", struct.pack("<e", x))[0]


# Four bytes of ones in each type; s8 and s4 hold -1.
ONE = {"f16": 0x3C003C00, "bf16": 0x3F803F80, "tf32": 0x3F800000, "e4m3": 0x38383838, "e5m2": 0x3C3C3C3C,
       "u8": 0x01010101, "s8": 0xFFFFFFFF, "u4": 0x11111111, "s4": 0xFFFFFFFF}
SIGN = {"s8": -1, "s4": -1}
out = []


def emit(*lines):
    out.extend(lines)


def finish(name, head):
    with open(name, "w") as file:
        file.write("# Written by generate_matrix.py; do not edit.\n# " + head + "\n\n" + "\n".join(out))
    out.clear()


def group(first, count):
    return "{" + ", ".join(f"t{first + i}" for i in range(count)) + "}"


def packed(value, d):
    if d == "s32":
        return value & 0xFFFFFFFF
    return f32(value) if d == "f32" else f16(value) * 0x10001


# --- ldmatrix and its relatives, mma.sync -------------------------------------------------------------
emit("threads 32", "shared 1024", "shl.b32 t0, tid, 4;", "add.u32 t1, S, t0;", "and.b32 t2, tid, 7;",
     "mul.lo.u32 t3, t2, 131073;", "add.u32 t3, t3, 65536;", "st.shared.v4.b32 [t1], {t3, t3, t3, t3};",
     "bar.warp.sync -1;", "and.b32 t4, tid, 7;", "shl.b32 t4, t4, 4;", "add.u32 t4, S, t4;",
     "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {o0}, [t4];",
     "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {o1}, [t4];",
     "movmatrix.sync.aligned.m8n8.trans.b16 o2, o0;",
     "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [t4], {o0};",
     "ld.shared.b32 o3, [t4];")
# Row r of the matrix holds r in its even columns and 2 * r + 1 in its odd ones.
element = lambda r, c: 2 * r + 1 if c % 2 else r
pair = lambda f, l: f(l // 4, l % 4 * 2) | f(l // 4, l % 4 * 2 + 1) << 16
turned = lambda r, c: element(c, r)
emit("out o0: " + " ".join(f"{pair(element, l):x}" for l in range(32)),
     "out o1: " + " ".join(f"{pair(turned, l):x}" for l in range(32)),
     "out o2: " + " ".join(f"{pair(turned, l):x}" for l in range(32)),
     "out o3: " + " ".join(f"{turned(l % 8, 0) | turned(l % 8, 1) << 16:x}" for l in range(32)), "")


# Bytes: row r of memory holds 16 * r + c in column c, modulo 256.
byte = lambda r, c: (16 * r + c) & 0xFF
word = lambda values: sum((v & 0xFF) << (8 * i) for i, v in enumerate(values))
ROWS = ["threads 32", "shared 1024", "shl.b32 t0, tid, 4;", "add.u32 t1, S, t0;", "shl.b32 t2, tid, 4;", "and.b32 t2, t2, 255;",
        "mul.lo.u32 t2, t2, 0x01010101;", "add.u32 t3, t2, 0x03020100;", "add.u32 t4, t2, 0x07060504;",
        "add.u32 t5, t2, 0x0b0a0908;", "add.u32 t6, t2, 0x0f0e0d0c;"]
emit(*ROWS, "st.shared.v4.b32 [t1], {t3, t4, t5, t6};", "bar.warp.sync -1;",
     "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {o0, o1, o2, o3}, [t1];")
for r in range(4):
    emit(f"out o{r}: " + " ".join(f"{word([byte(16 * (r // 2) + 4 * (l % 4) + i, l // 4 + 8 * (r % 2)) for i in range(4)]):x}"
                                  for l in range(32)))
emit("")
# Four bits and six, from the low bits of the bytes of each row on.
for name, bits in [("b4x16_p64", 4), ("b6x16_p32", 6)]:
    field = lambda r, c: sum(byte(r, i) << (8 * i) for i in range(16)) >> (bits * c) & ((1 << bits) - 1)
    emit(*ROWS, "st.shared.v4.b32 [t1], {t3, t4, t5, t6};", "bar.warp.sync -1;",
         f"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.{name} {{o0, o1}}, [t1];",
         f"ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.{name} {{o2}}, [t1];")
    for r in range(2):
        emit(f"out o{r}: " + " ".join(f"{word([field(4 * (l % 4) + i, l // 4 + 8 * r) for i in range(4)]):x}" for l in range(32)))
    emit("out o2: " + " ".join(f"{word([field(l // 4, 4 * (l % 4) + i) for i in range(4)]):x}" for l in range(32)), "")
# A lane's register is of an accumulator: byte b is row l // 4 + 8 * (b // 2), column 2 * (l % 4) + b % 2.
emit("threads 32", "shared 1024", "and.b32 t0, tid, 7;", "shl.b32 t0, t0, 4;", "add.u32 t1, S, t0;",
     "mul.lo.u32 t2, tid, 0x01010101;", "or.b32 t2, t2, 0x60402000;",
     "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [t1], {t2};", "bar.warp.sync -1;", "ld.shared.v4.b32 {o0, o1, o2, o3}, [t1];")
held = lambda l, b: l | b << 5
for r in range(4):
    emit(f"out o{r}: " + " ".join(
        f"{word([held((4 * r + i) % 8 * 4 + l % 8 // 2, l % 2 + 2 * ((4 * r + i) // 8)) for i in range(4)]):x}" for l in range(32)))
emit("")


def mma(shape, d, a, b, na, nb, nd, k):
    emit("threads 32")
    for first, count, register in [(0, na, "a0"), (20, nb, "a1"), (40, nd, "a2")]:
        emit(*[f"mov.b32 t{first + i}, {register};" for i in range(count)])
    emit(f"mma.sync.aligned.{shape}.row.col.{d}.{a}.{b}.{d} {group(60, nd)}, {group(0, na)}, {group(20, nb)}, "
         f"{group(40, nd)};", "mov.b32 o0, t60;", f"mov.b32 o1, t{60 + nd - 1};")
    r = packed(SIGN.get(a, 1) * SIGN.get(b, 1) * k + 2, d)
    emit(f"in a0={ONE[a]:x} a1={ONE[b]:x} a2={packed(2, d):x}", f"out o0={r:x} o1={r:x}", "")


mma("m16n8k8", "f32", "f16", "f16", 2, 1, 4, 8)
mma("m16n8k16", "f16", "f16", "f16", 4, 2, 2, 16)
mma("m16n8k16", "f32", "bf16", "bf16", 4, 2, 4, 16)
mma("m16n8k8", "f32", "tf32", "tf32", 4, 2, 4, 8)
mma("m16n8k32", "s32", "u8", "s8", 4, 2, 4, 32)
mma("m8n8k16", "s32", "s8", "s8", 1, 1, 2, 16)
mma("m16n8k32", "f32", "e4m3", "e5m2", 4, 2, 4, 32)
emit("threads 32", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {O0, O1}, {A0}, {A1}, {A2, A2};",
     "in A0=3ff0000000000000 A1=4000000000000000 A2=3ff0000000000000",
     "out O0=4022000000000000 O1=4022000000000000", "")
for k, na, nb in [(4, 2, 1), (8, 4, 2), (16, 8, 4)]:
    wide = lambda first, count: "{" + ", ".join(f"T{first + i}" for i in range(count)) + "}"
    emit("threads 32", *[f"mov.b64 T{i}, A0;" for i in range(na)], *[f"mov.b64 T{10 + i}, A1;" for i in range(nb)],
         f"mma.sync.aligned.m16n8k{k}.row.col.f64.f64.f64.f64 {wide(20, 4)}, {wide(0, na)}, {wide(10, nb)}, {{A2, A2, A2, A2}};",
         "mov.b64 O0, T20;", "mov.b64 O1, T23;")
    f64 = lambda x: struct.unpack("<Q", struct.pack("<d", x))[0]
    emit(f"in A0={f64(1.5):x} A1={f64(2):x} A2={f64(1):x}", f"out O0={f64(1 + 3 * k):x} O1={f64(1 + 3 * k):x}", "")
# Sparse A (9.7.14.6): as below for wgmma, with B in registers: element k of its columns is
# {1, 2, 4, 8}[k % 4] times one more than its chunk of four, of tf32 {1, 2}[k % 2] and chunks of two.
ENCODE = {"f16": lambda v: f16(v), "bf16": lambda v: f32(v) >> 16, "tf32": lambda v: f32(v), "u8": lambda v: v, "s8": lambda v: v,
          "e4m3": lambda v: 0x38 + 8 * (v.bit_length() - 1) + (8 * v >> v.bit_length() - 1) - 8}
NIBBLES = [0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110]


def sparse_mma(d, a, b, k, select):
    bits = {"f16": 16, "bf16": 16, "tf32": 32}.get(a, 8)
    size, per = (2 if bits == 32 else 4), 32 // bits
    chunks = k // size
    lanes = chunks // 4
    value = lambda i: 2 ** (i % size) * (i // size + 1)
    na, nb, nd = k * bits // 128, k * bits // 128, 2 if d == "f16" else 4
    # Register r of B in lane l: elements k from (l % 4) * per + 4 * per * r on.
    word = lambda l, r: sum(ENCODE[b](value((l % 4) * per + 4 * per * r + i)) << (bits * i) for i in range(per))
    meta = [sum((NIBBLES[(5 * t + 3 * n + t * n) % 6] if bits != 32 else [0b0100, 0b1110][(t + n + t * n) % 2]) << (4 * n)
                for n in range(8)) for t in range(32)]

    def nibble(row, chunk):
        if bits == 8:
            return meta[4 * (row % 8) + select * lanes + row // 8 + 2 * (chunk // 8)] >> (4 * (chunk % 8)) & 15
        return meta[4 * (row % 8) + select * lanes + chunk // 4] >> (4 * (chunk % 4) + 16 * (row // 8)) & 15

    def total(row):
        found = 2
        for chunk in range(chunks):
            n = nibble(row, chunk)
            found += sum(value(size * chunk + p) for p in ([n & 3, n >> 2] if size == 4 else [int(n == 0b1110)]))
        return found

    emit("threads 32", f"mma.sp::ordered_metadata.sync.aligned.m16n8k{k}.row.col.{d}.{a}.{b}.{d} {group(60, nd)}, "
         f"{{{', '.join(['a4'] * na)}}}, {{{', '.join(f'a{r}' for r in range(nb))}}}, {{{', '.join(['a5'] * nd)}}}, a6, {select};",
         "mov.b32 o0, t60;", f"mov.b32 o1, t{60 + nd - 1};")
    emit(*[f"in a{r}: " + " ".join(f"{word(l, r):x}" for l in range(32)) for r in range(nb)],
         f"in a4={ONE[a]:x} a5={packed(2, d):x}", "in a6: " + " ".join(f"{m:x}" for m in meta))
    emit("out o0: " + " ".join(f"{packed(total(l // 4), d):x}" for l in range(32)),
         "out o1: " + " ".join(f"{packed(total(l // 4 + 8), d):x}" for l in range(32)), "")


for case in [("f32", "f16", "f16", 16, 3), ("f16", "f16", "f16", 32, 1), ("f32", "bf16", "bf16", 32, 0), ("f32", "tf32", "tf32", 8, 2),
             ("f32", "tf32", "tf32", 16, 1), ("f32", "e4m3", "e4m3", 64, 0), ("s32", "u8", "u8", 32, 1), ("s32", "u8", "u8", 64, 0)]:
    sparse_mma(*case)
# The kinds of sm_120: elements of ones, in a byte each or, of mxf4, in half a byte. Row r of A has the
# scale 2 ** (r // 8), column c of B 2 ** (c % 2), whatever the block; other bytes and lanes hold none.
CONTAINER = {"e4m3": 0x38383838, "e5m2": 0x3C3C3C3C, "e2m3": 0x08080808, "e3m2": 0x0C0C0C0C, "e2m1": 0x08080808}
for d, a, b in [("f32", "e4m3", "e2m1"), ("f32", "e2m3", "e5m2"), ("f16", "e3m2", "e4m3")]:
    nd = 4 if d == "f32" else 2
    emit("threads 32", f"mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.{d}.{a}.{b}.{d} {group(60, nd)}, {{a0, a0, a0, a0}}, "
         f"{{a1, a1}}, {{{', '.join(['a2'] * nd)}}};", "mov.b32 o0, t60;", f"mov.b32 o1, t{60 + nd - 1};")
    r = packed(34, d)
    emit(f"in a0={CONTAINER[a]:x} a1={CONTAINER[b]:x} a2={packed(2, d):x}", f"out o0={r:x} o1={r:x}", "")


def scaled(kind, k, ones, vector, scale, byte_id, thread_a, thread_b, sparse=False):
    """Sparse: of k elements of a row of A the first half of every chunk is stored."""
    one, two = {"ue8m0": (0x7F, 0x80), "ue4m3": (0x38, 0x40)}[scale]
    blocks = {"1X": 1, "2X": 2, "4X": 4}[vector]
    form = "e2m1.e2m1" if k == (128 if sparse else 64) else "e4m3.e4m3"
    words = "mma.sp::ordered_metadata.sync" if sparse else "mma.sync"
    b, metadata = ("a0, a0, a0, a0", "a4, 0, ") if sparse else ("a0, a0", "")
    products = k // 2 if sparse else k
    value = lambda v: sum(v << (8 * (byte_id + i)) for i in range(blocks))
    emit("threads 32", f"{words}.aligned.m16n8k{k}.row.col.kind::{kind}.block_scale.scale_vec::{vector}.f32.{form}.f32.{scale} "
         f"{{o0, o1, o2, o3}}, {{a0, a0, a0, a0}}, {{{b}}}, {{a1, a1, a1, a1}}, {metadata}a2, {{{byte_id}, {thread_a}}}, a3, "
         f"{{{byte_id}, {thread_b}}};")
    emit(f"in a0={ones:x} a1={f32(2):x}" + (" a4=44444444" if sparse else ""),
         "in a2: " + " ".join(f"{value([one, two][l % 2] if l % 4 // 2 == thread_a else 0):x}" for l in range(32)),
         "in a3: " + " ".join(f"{value([one, two][l // 4 % 2] if l % 4 == thread_b else 0):x}" for l in range(32)))
    for r in range(4):
        emit(f"out o{r}: " + " ".join(f"{f32(2 + products * 2 ** (r // 2) * 2 ** ((2 * (l % 4) + r % 2) % 2)):x}" for l in range(32)))
    emit("")


scaled("mxf8f6f4", 32, 0x38383838, "1X", "ue8m0", 2, 1, 3)
scaled("mxf4", 64, 0x22222222, "2X", "ue8m0", 2, 0, 1)
scaled("mxf4nvf4", 64, 0x22222222, "4X", "ue4m3", 0, 1, 2)
scaled("mxf4nvf4", 64, 0x22222222, "2X", "ue8m0", 0, 0, 0)
scaled("mxf8f6f4", 64, 0x38383838, "1X", "ue8m0", 2, 1, 3, True)
scaled("mxf4", 128, 0x22222222, "2X", "ue8m0", 2, 0, 1, True)
scaled("mxf4nvf4", 128, 0x22222222, "4X", "ue4m3", 0, 1, 2, True)
emit("threads 32", f"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e2m3.e5m2.f32 {group(60, 4)}, "
     "{a0, a0, a0, a0}, {a1, a1, a1, a1}, {a2, a2, a2, a2}, a3, 0;", "mov.b32 o0, t60;", "mov.b32 o1, t63;",
     f"in a0={CONTAINER['e2m3']:x} a1={CONTAINER['e5m2']:x} a2={f32(2):x} a3=44444444", f"out o0={f32(34):x} o1={f32(34):x}", "")


# The forms that Hopper emulates. Four-bit integers: element (row, k) of A is (3 * row + k) mod 16, of B
# (row, column) (row + 5 * column) mod 16, as signed or unsigned numbers.
def nibbles(m, k, a, b):
    signed = lambda v, t: v - 16 if t == "s4" and v > 7 else v
    at_a = lambda row, i: (3 * row + i) % 16
    at_b = lambda i, column: (i + 5 * column) % 16
    na, nb, nd = m * k // 256, k // 32, m // 4
    groups = m // 8
    words_a = lambda l, r: sum(at_a(l // 4 + 8 * (r % groups), l % 4 * 8 + i + 32 * (r // groups)) << (4 * i) for i in range(8))
    words_b = lambda l, r: sum(at_b(l % 4 * 8 + i + 32 * r, l // 4) << (4 * i) for i in range(8))
    total = lambda row, column: 7 + sum(signed(at_a(row, i), a) * signed(at_b(i, column), b) for i in range(k))
    emit("threads 32", f"mma.sync.aligned.m{m}n8k{k}.row.col.s32.{a}.{b}.s32 {{{', '.join(f'o{i}' for i in range(nd))}}}, "
         f"{{{', '.join(f'a{i}' for i in range(na))}}}, {{{', '.join(f'a{4 + i}' for i in range(nb))}}}, {{{', '.join(['a6'] * nd)}}};")
    emit(*[f"in a{r}: " + " ".join(f"{words_a(l, r):x}" for l in range(32)) for r in range(na)],
         *[f"in a{4 + r}: " + " ".join(f"{words_b(l, r):x}" for l in range(32)) for r in range(nb)], "in a6=7",
         *[f"out o{r}: " + " ".join(f"{total(l // 4 + 8 * (r // 2), 2 * (l % 4) + r % 2) & 0xFFFFFFFF:x}" for l in range(32))
           for r in range(nd)], "")


nibbles(8, 32, "s4", "u4")
nibbles(16, 32, "u4", "s4")
nibbles(16, 64, "s4", "s4")


# m8n8k4: quads q and q + 4 of lanes make product q of four (9.7.14.5.1). Element (r, c) of A is r + 2 * c + q, of
# B (r, c) 3 * r - c, of C r - c.
def quads(a_layout, b_layout, d, c):
    row = lambda l: l % 4 + 4 * (l // 16)
    q = lambda l: l % 16 // 4
    at_a = lambda l, i: (row(l), i) if a_layout == "row" else (i + 4 * (l // 16), l % 4)
    at_b = lambda l, i: (l % 4, i + 4 * (l // 16)) if b_layout == "row" else (i, row(l))
    at_d = lambda l, i, t: (row(l), i) if t == "f16" else ((l & 1) + (i & 2) + 4 * (l // 16), (i & 4) + (l & 2) + (i & 1))
    a = lambda r, k, p: r + 2 * k + p
    b = lambda k, n: 3 * k - n
    word = lambda values: sum(f16(v) << (16 * i) for i, v in enumerate(values))
    held = lambda l, t, f: ([word([f(*at_d(l, 2 * r + i, t), q(l)) for i in range(2)]) for r in range(4)] if t == "f16"
                            else [f32(f(*at_d(l, i, t), q(l))) for i in range(8)])
    nc, nd = 4 if c == "f16" else 8, 4 if d == "f16" else 8
    emit("threads 32", *[f"mov.b32 t{40 + i}, a{4 + i};" for i in range(4)],
         f"mma.sync.aligned.m8n8k4.{a_layout}.{b_layout}.{d}.f16.f16.{c} {group(60, nd)}, {{a0, a1}}, {{a2, a3}}, "
         f"{group(40, nc) if nc == 4 else '{' + ', '.join(['a4'] * 8) + '}'};", *[f"mov.b32 o{i}, t{60 + i};" for i in range(nd)])
    start = (lambda r, n, p: r - n) if nc == 4 else (lambda r, n, p: 2)
    emit(*[f"in a{r}: " + " ".join(f"{word([a(*at_a(l, 2 * r + i), q(l)) for i in range(2)]):x}" for l in range(32)) for r in range(2)],
         *[f"in a{2 + r}: " + " ".join(f"{word([b(*at_b(l, 2 * r + i)) for i in range(2)]):x}" for l in range(32)) for r in range(2)])
    if nc == 4:
        emit(*[f"in a{4 + r}: " + " ".join(f"{held(l, c, start)[r]:x}" for l in range(32)) for r in range(4)])
    else:
        emit(f"in a4={f32(2):x} a5=0 a6=0 a7=0")
    result = lambda r, n, p: start(r, n, p) + sum(a(r, k, p) * b(k, n) for k in range(4))
    emit(*[f"out o{i}: " + " ".join(f"{held(l, d, result)[i]:x}" for l in range(32)) for i in range(nd)], "")


quads("row", "col", "f32", "f32")
quads("col", "row", "f16", "f16")
quads("row", "row", "f32", "f16")
finish("matrix.case", "Matrices across the lanes of a warp (PTX ISA 9.7.14).")

# --- wgmma --------------------------------------------------------------------------------------------
# 64 bytes a thread: the first half of the CTA writes A, the second B. Unswizzled core matrices of 8 rows
# of 16 bytes, 128 bytes apart along K and 256 along the rows.
FILL = ["threads 128", "shared 8192", "shl.b32 t0, tid, 6;", "add.u32 t0, S, t0;", "setp.lt.u32 u1, tid, 64;",
        "selp.b32 t1, a0, a1, u1;"] + \
       [f"st.shared.v4.b32 [t0+{16 * i}], {{t1, t1, t1, t1}};" for i in range(4)] + \
       ["fence.proxy.async.shared::cta;"]


def descriptors(fixed):
    return ["shr.u32 t2, S, 4;", "cvt.u64.u32 T0, t2;", f"or.b64 T0, T0, {8 << 16 | 16 << 32 | fixed:#x};",
            "add.u64 T1, T0, 256;"]


def wgmma(d, a, b, k, scales):
    for registers in (False, True):
        count = {"f32": 4, "s32": 4, "f16": 2}[d]
        first = "{a0, a0, a0, a0}" if registers else "T0"
        # Where A is in registers it has no transpose.
        tail = "" if scales == 0 else ", 1, 1" + ("" if scales == 2 else ", 0" if registers else ", 0, 0")
        emit(*FILL, "bar.sync 0;", *descriptors(0), *[f"mov.b32 t{20 + i}, a2;" for i in range(count)],
             "setp.eq.u32 u0, tid, tid;", "wgmma.fence.sync.aligned;",
             f"wgmma.mma_async.sync.aligned.m64n8k{k}.{d}.{a}.{b} {group(20, count)}, {first}, T1, u0{tail};",
             "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;", "mov.b32 o0, t20;",
             f"mov.b32 o1, t{19 + count};")
        r = packed(SIGN.get(a, 1) * SIGN.get(b, 1) * k + 2, d)
        emit(f"in a0={ONE[a]:x} a1={ONE[b]:x} a2={packed(2, d):x}", f"out o0={r:x} o1={r:x}", "")


wgmma("f16", "f16", "f16", 16, 4)
wgmma("f32", "bf16", "bf16", 16, 4)
wgmma("f32", "tf32", "tf32", 8, 2)
wgmma("f32", "e4m3", "e5m2", 32, 2)
wgmma("s32", "u8", "s8", 32, 0)


# Sparse A: ones where the metadata say, against a B whose element k is {1, 2, 4, 8}[k % 4] times one more
# than its chunk of four (of tf32 {1, 2}[k % 2] and chunks of two), the same in every column.

def sparse(d, a, b, k, scales, select):
    bits = {"f16": 16, "bf16": 16, "tf32": 32}.get(a, 8)
    size = 2 if bits == 32 else 4
    value = lambda i: 2 ** (i % size) * (i // size + 1)
    # 16 bytes of B: elements of core matrix c, that is two threads' 64 bytes.
    per = 128 // bits
    words = [[sum(ENCODE[b](value(per * c + e)) << (bits * e) for e in range(per)) >> (32 * w) & 0xFFFFFFFF for w in range(4)]
             for c in range(k // per)]
    meta = [sum((NIBBLES[(7 * t + 3 * n + t * n) % 6] if bits != 32 else [0b0100, 0b1110][(t + n + t * n) % 2]) << (4 * n)
                for n in range(8)) for t in range(128)]

    def nibble(row, chunk):
        at = size * chunk
        if bits == 8:
            lane, bit = 4 * (row % 8) + row % 16 // 8 + 2 * (at // 32), at % 32
        else:
            half = k // 2
            lane, bit = 4 * (row % 8) + 2 * select + at // half, 4 * (at % half // size) + 16 * (row % 16 // 8)
        return meta[row // 16 * 32 + lane] >> bit & 15

    def total(row):
        sum_ = 2
        for chunk in range(k // size):
            n = nibble(row, chunk)
            places = [n & 3, n >> 2] if size == 4 else [[0, 1][n == 0b1110]]
            sum_ += sum(value(size * chunk + p) for p in places)
        return sum_

    for registers in (False, True):
        count = {"f32": 4, "s32": 4, "f16": 2}[d]
        first = "{a5, a5, a5, a5}" if registers else "T0"
        tail = "" if scales == 0 else ", 1, 1" + ("" if scales == 2 else ", 0" if registers else ", 0, 0")
        emit("threads 128", "shared 8192", "shl.b32 t0, tid, 6;", "add.u32 t0, S, t0;",
             *[f"st.shared.v4.b32 [t0+{16 * i}], {{a0, a1, a2, a3}};" for i in range(4)], "fence.proxy.async.shared::cta;",
             "bar.sync 0;", *descriptors(0), *[f"mov.b32 t{20 + i}, a6;" for i in range(count)],
             "setp.eq.u32 u0, tid, tid;", "wgmma.fence.sync.aligned;",
             f"wgmma.mma_async.sp.sync.aligned.m64n8k{k}.{d}.{a}.{b} {group(20, count)}, {first}, T1, a4, {select}, u0{tail};",
             "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;", "mov.b32 o0, t20;",
             f"mov.b32 o1, t{19 + count};")
        one = ONE[a]
        for w in range(4):
            emit(f"in a{w}: " + f"{one:x}*64 " + " ".join(f"{words[t // 2][w]:x}*2" for t in range(0, 2 * len(words), 2)) +
                 f" 0*{64 - 2 * len(words)}")
        emit("in a4: " + " ".join(f"{m:x}" for m in meta), f"in a5={one:x} a6={packed(2, d):x}")
        for o, high in [(0, 0), (1, 8)]:
            emit(f"out o{o}: " + " ".join(f"{packed(total(t // 32 * 16 + t % 32 // 4 + high), d):x}" for t in range(128)))
        emit("")


ONE["u8"] = 0x01010101
sparse("f16", "f16", "f16", 32, 4, 1)
sparse("f32", "bf16", "bf16", 32, 4, 0)
sparse("f32", "tf32", "tf32", 16, 2, 1)
sparse("f32", "e4m3", "e4m3", 64, 2, 0)
sparse("s32", "u8", "u8", 64, 0, 0)

# --- tcgen05: tensor memory ---------------------------------------------------------------------------
ALLOCATE = ["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [S+{at}], 64;",
            "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"]
FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 t90, 64;"
# Lane l, register r -> row and column of the shape (9.7.16.2.3.2 and on).
SHAPES = {"16x64b": (1, lambda l, r: (l // 4 + 8 * (l % 2), l // 2 % 2 + 2 * r)),
          "16x128b": (2, lambda l, r: (l // 4 + 8 * (r % 2), l % 4 + 4 * (r // 2))),
          "16x256b": (4, lambda l, r: (l // 4 + 8 * (r // 2 % 2), r % 2 + 2 * (l % 4) + 8 * (r // 4)))}
for shape, (count, place) in SHAPES.items():
    # Cells are written as 256 * lane + column through 32x32b and read through the shape.
    emit("threads 32", "shared 64", *[line.format(at=0) for line in ALLOCATE], "ld.shared.b32 t90, [S];",
         "shl.b32 t0, tid, 8;", *[f"add.u32 t{10 + i}, t0, {i};" for i in range(8)],
         f"tcgen05.st.sync.aligned.32x32b.x8.b32 [t90], {group(10, 8)};", "tcgen05.wait::st.sync.aligned;",
         f"tcgen05.ld.sync.aligned.{shape}.x1.b32 {group(30, count)}, [t90];", "tcgen05.wait::ld.sync.aligned;",
         *[f"mov.b32 o{r}, t{30 + r};" for r in range(count)],
         # Back through the same shape, eight columns on, and out through 32x32b.
         "add.u32 t91, t90, 8;", f"tcgen05.st.sync.aligned.{shape}.x1.b32 [t91], {group(30, count)};",
         "tcgen05.wait::st.sync.aligned;", "tcgen05.ld.sync.aligned.32x32b.x1.b32 {t50}, [t91];",
         "tcgen05.wait::ld.sync.aligned;", "setp.lt.u32 u0, tid, 16;", "selp.b32 o4, t50, 0, u0;", FREE)
    for r in range(count):
        emit(f"out o{r}: " + " ".join(f"{256 * place(l, r)[0] + place(l, r)[1]:x}" for l in range(32)))
    emit("out o4: " + " ".join(f"{256 * l:x}" for l in range(16)) + " 0*16", "")
emit("threads 32", "shared 64", *[line.format(at=0) for line in ALLOCATE], "ld.shared.b32 t90, [S];",
     "tcgen05.st.sync.aligned.16x32bx2.x1.b32 [t90], 16, {tid};", "tcgen05.wait::st.sync.aligned;",
     "tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {o0}, [t90], 16;",
     "tcgen05.ld.sync.aligned.32x32b.x1.b32 {t50}, [t90];", "add.u32 t91, t90, 16;",
     "tcgen05.ld.sync.aligned.32x32b.x1.b32 {t51}, [t91];",
     "tcgen05.wait::ld.sync.aligned;", "setp.lt.u32 u0, tid, 16;", "selp.b32 o1, t50, 0, u0;",
     "selp.b32 o2, t51, 0, u0;", FREE,
     "out o0: 0..1f", "out o1: 0..f 0*16", "out o2: 10..1f 0*16", "")


# Loads that also reduce: lane l has 3 * l, 2 - l, l and 1 in its columns.
for shape, offset in [("32x32b.x4", ""), ("16x32bx2.x2", ", 2")]:
    half = offset != ""
    count = 2 if half else 4
    values = lambda l: [(3 * (l % 16), 2 - l % 16), (l % 16, 1)][l // 16] if half else (3 * l, 2 - l, l, 1)
    for kind, reduce in [("max.s32", max), ("min.u32", None), ("max.abs.f32", None)]:
        integer = kind.endswith("32") and "f32" not in kind
        word = (lambda v: v & 0xFFFFFFFF) if integer else (lambda v: f32(v))
        best = {"max.s32": lambda v: max(v) & 0xFFFFFFFF, "min.u32": lambda v: min(x & 0xFFFFFFFF for x in v),
                "max.abs.f32": lambda v: f32(max(abs(x) for x in v))}[kind]
        emit("threads 32", "shared 64", *[line.format(at=0) for line in ALLOCATE], "ld.shared.b32 t90, [S];",
             "mul.lo.u32 t10, tid, 3;", "sub.u32 t11, 2, tid;", "mov.b32 t12, tid;", "mov.b32 t13, 1;",
             *([] if integer else [f"cvt.rn.f32.s32 t{10 + i}, t{10 + i};" for i in range(4)]),
             f"tcgen05.st.sync.aligned.32x32b.x4.b32 [t90], {group(10, 4)};", "tcgen05.wait::st.sync.aligned;",
             f"tcgen05.ld.red.sync.aligned.{shape}.{kind} {group(30, count)}, t40, [t90]{offset};",
             "tcgen05.wait::ld.sync.aligned;", "mov.b32 o0, t30;", "mov.b32 o1, t40;", FREE,
             "out o0: " + " ".join(f"{word(values(l)[0]):x}" for l in range(32)),
             "out o1: " + " ".join(f"{best(values(l)):x}" for l in range(32)), "")


# Copies from shared memory and products: an mbarrier at the end of shared memory.
def collect(*work):
    return ["add.u32 t92, S, 8192;", "add.u32 t93, S, 8256;", "setp.eq.u32 u2, tid, 0;", "setp.lt.u32 u3, tid, 32;",
            "@u2 mbarrier.init.shared.b64 [t92], 1;", "@u2 fence.mbarrier_init.release.cluster;",
            "@u3 " + ALLOCATE[0].replace("S+{at}", "t93"), "@u3 " + ALLOCATE[1], "bar.sync 0;",
            "tcgen05.fence::after_thread_sync;", "ld.shared.b32 t90, [t93];", *work]


WAIT = ["@u2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [t92];",
        "W: mbarrier.try_wait.parity.shared.b64 u4, [t92], 0;", "@!u4 bra W;", "tcgen05.fence::after_thread_sync;"]
END = ["tcgen05.fence::before_thread_sync;", "bar.sync 0;", "@u3 " + FREE]
# A warp's own lanes: 32 times its number, in the upper half of an address.
OWN = ["shr.u32 t94, tid, 5;", "shl.b32 t94, t94, 21;", "add.u32 t94, t94, t90;"]
FILL2 = [line.replace("8192", "8448") for line in FILL]  # with room for a barrier behind
for shape in ["128x256b", "4x256b", "128x128b", "64x128b.warpx2::02_13", "32x128b.warpx4"]:
    few = shape.startswith("4x")  # a row in the first lane of each 32
    emit(*FILL2, *collect(*descriptors(1 << 46), f"@u2 tcgen05.cp.cta_group::1.{shape} [t90], T0;", *WAIT, *OWN,
                          f"tcgen05.ld.sync.aligned.32x32b.x1.b32 {{t50}}, [t94];",
                          "tcgen05.wait::ld.sync.aligned;", "and.b32 t51, tid, 31;", f"setp.lt.u32 u5, t51, {1 if few else 32};",
                          "selp.b32 o0, t50, 0, u5;", *END),
         "in a0=11223344 a1=11223344",
         "out o0: " + "11223344 0*31 " * 4 if few else "out o0=11223344", "")

# Four bits go to the middle of a byte, six to its low end; elements 0 to 3 are the first column.
for shape, source, bits in [("128x128b", "b4x16_p64", 4), ("64x128b.warpx2::01_23", "b6x16_p32", 6), ("32x128b.warpx4", "b4x16_p64", 4)]:
    first = sum((0x11223344 >> (bits * i) & ((1 << bits) - 1)) << (8 * i + (2 if bits == 4 else 0)) for i in range(4))
    emit(*FILL2, *collect(*descriptors(1 << 46), f"@u2 tcgen05.cp.cta_group::1.{shape}.b8x16.{source} [t90], T0;", *WAIT, *OWN,
                          "tcgen05.ld.sync.aligned.32x32b.x1.b32 {o0}, [t94];", "tcgen05.wait::ld.sync.aligned;", *END),
         "in a0=11223344 a1=11223344", f"out o0={first:x}", "")


def product(kind, idesc, first, scaled, sparse=False):
    """D = 2 + A * B, 128 x 8 x 32 of ones in e4m3; scale factors of 2 and 1. Sparse: of 64, half of A's are zero."""
    words = f"tcgen05.mma{'.sp' if sparse else ''}.cta_group::1.kind::{kind}" + (".block_scale.scale_vec::1X" if scaled else "")
    metadata = ["mov.b32 t61, 0x44444444;", "add.u32 t62, t94, 40;", "tcgen05.st.sync.aligned.32x32b.x2.b32 [t62], {t61, t61};",
                "add.u32 t63, t90, 40;"] if sparse else []
    meta = ", [t63]" if sparse else ""
    tail = ", [t97], [t98]" if scaled else ""
    emit(*FILL2, *collect(*descriptors(1 << 46), *OWN, f"mov.b32 t60, a2;",
                          f"tcgen05.st.sync.aligned.32x32b.x8.b32 [t94], {{{', '.join(['t60'] * 8)}}};",
                          "add.u32 t95, t94, 16;",
                          f"tcgen05.st.sync.aligned.32x32b.x8.b32 [t95], {{{', '.join(['a0'] * 8)}}};",
                          "add.u32 t96, t94, 32;",
                          f"tcgen05.st.sync.aligned.32x32b.x4.b32 [t96], {{{', '.join(['a3'] * 4)}}};",
                          "add.u32 t96, t94, 36;",
                          f"tcgen05.st.sync.aligned.32x32b.x4.b32 [t96], {{{', '.join(['a4'] * 4)}}};", *metadata,
                          "tcgen05.wait::st.sync.aligned;", "tcgen05.fence::before_thread_sync;", "bar.sync 0;",
                          "tcgen05.fence::after_thread_sync;", "add.u32 t95, t90, 16;", "add.u32 t97, t90, 32;",
                          "add.u32 t98, t90, 36;", f"mov.b32 t99, {idesc};", "setp.eq.u32 u6, tid, tid;",
                          f"@u2 {words} [t90], {first}, T1{meta}, t99{tail}, u6;", *WAIT,
                          "tcgen05.ld.sync.aligned.32x32b.x8.b32 {o0, o1, o2, o3, o4, o5, o6, o7}, [t94];",
                          "tcgen05.wait::ld.sync.aligned;", *END),
         f"in a0={ONE['e4m3']:x} a1={ONE['e4m3']:x} a2={f32(2):x} a3=80808080 a4=7f7f7f7f",
         "out " + " ".join(f"o{i}={f32(2 + (64 if scaled else 32)):x}" for i in range(8)), "")


# Instruction descriptors (9.7.16.4.2): N / 8 from bit 17, M / 16 from bit 24; D is f32. Scaled: ue8m0.
PLAIN = 1 << 4 | 1 << 17 | 8 << 24
SCALED = 1 << 17 | 1 << 23 | 8 << 24
product("f8f6f4", PLAIN, "T0", False)
product("f8f6f4", PLAIN, "[t95]", False)
product("mxf8f6f4", SCALED, "T0", True)
product("mxf8f6f4", SCALED, "[t95]", True)
SPARSE = 1 << 2
product("f8f6f4", PLAIN | SPARSE, "T0", False, True)
product("f8f6f4", PLAIN | SPARSE, "[t95]", False, True)
product("mxf8f6f4", SCALED | SPARSE, "T0", True, True)
product("mxf8f6f4", SCALED | SPARSE, "[t95]", True, True)


def stationary(m, first, mask, sparse=False):
    """.ws: D = A * B, M x 64 x 32 of ones in e4m3, over 128 / M groups of lanes; columns of the mask are zero."""
    columns = 64 * m // 128
    words = "".join(f", {{{', '.join(['a0'] * 8)}}};" for _ in range(1))
    metadata = ["mov.b32 t61, 0x44444444;", "add.u32 t62, t94, 48;", "tcgen05.st.sync.aligned.32x32b.x2.b32 [t62], {t61, t61};",
                "add.u32 t63, t90, 48;"] if sparse else []
    idesc = 1 << 4 | 8 << 17 | m // 16 << 24 | (4 if sparse else 0)
    meta = ", [t63]" if sparse else ""
    emit(*FILL2, *collect(*descriptors(1 << 46), *OWN, "add.u32 t95, t94, 56;",
                          f"tcgen05.st.sync.aligned.32x32b.x8.b32 [t95]{words}", *metadata,
                          "tcgen05.wait::st.sync.aligned;", "tcgen05.fence::before_thread_sync;", "bar.sync 0;",
                          "tcgen05.fence::after_thread_sync;", "add.u32 t95, t90, 56;", f"mov.b32 t99, {idesc};",
                          "setp.ne.u32 u6, tid, tid;", f"mov.b64 T5, {mask:#x};",
                          f"@u2 tcgen05.mma.ws{'.sp' if sparse else ''}.cta_group::1.kind::f8f6f4 [t90], {first}, T1{meta}, t99, u6, T5;", *WAIT,
                          "tcgen05.ld.sync.aligned.32x32b.x16.b32 " + group(100, 16) + ", [t94];",
                          "tcgen05.wait::ld.sync.aligned;", *[f"mov.b32 o{i}, t{100 + 2 * i + i % 2};" for i in range(8)], *END),
         f"in a0={ONE['e4m3']:x} a1={ONE['e4m3']:x}")
    parts = 128 // m

    def zero(part, column):
        if not mask >> 39 & 1:
            return False
        skip, use = (mask >> 40 & 255) + 1, (mask >> 48 & 255) + 1
        ones = [1] * skip + [0] * use if mask >> (32 + part) & 1 else [0] * use + [1] * skip
        return ones[(column + (mask >> (8 * part) & 255)) % (skip + use)] == 1

    for i in range(8):
        emit(f"out o{i}: " + " ".join(f"{f32(0 if zero(t // m, 2 * i + i % 2) else 32):x}" for t in range(128)))
    emit("")


stationary(128, "T0", 0)
stationary(64, "[t95]", 1 << 39 | 2 << 40 | 3 << 48 | 1 << 32)
stationary(32, "T0", 1 << 39 | 2 << 40 | 3 << 48 | 3 << 32 | 1 << 8 | 2 << 16 | 1 << 24)
stationary(64, "T0", 0, True)
stationary(32, "[t95]", 0, True)
finish("tensor.case", "Warpgroup matrices and tensor memory (PTX ISA 9.7.15, 9.7.16).")
