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


def product(kind, idesc, first, scaled):
    """D = 2 + A * B, 128 x 8 x 32 of ones in e4m3; scale factors of 2 and 1."""
    words = f"tcgen05.mma.cta_group::1.kind::{kind}" + (".block_scale.scale_vec::1X" if scaled else "")
    tail = ", [t97], [t98]" if scaled else ""
    emit(*FILL2, *collect(*descriptors(1 << 46), *OWN, f"mov.b32 t60, a2;",
                          f"tcgen05.st.sync.aligned.32x32b.x8.b32 [t94], {{{', '.join(['t60'] * 8)}}};",
                          "add.u32 t95, t94, 16;",
                          f"tcgen05.st.sync.aligned.32x32b.x8.b32 [t95], {{{', '.join(['a0'] * 8)}}};",
                          "add.u32 t96, t94, 32;",
                          f"tcgen05.st.sync.aligned.32x32b.x4.b32 [t96], {{{', '.join(['a3'] * 4)}}};",
                          "add.u32 t96, t94, 36;",
                          f"tcgen05.st.sync.aligned.32x32b.x4.b32 [t96], {{{', '.join(['a4'] * 4)}}};",
                          "tcgen05.wait::st.sync.aligned;", "tcgen05.fence::before_thread_sync;", "bar.sync 0;",
                          "tcgen05.fence::after_thread_sync;", "add.u32 t95, t90, 16;", "add.u32 t97, t90, 32;",
                          "add.u32 t98, t90, 36;", f"mov.b32 t99, {idesc};", "setp.eq.u32 u6, tid, tid;",
                          f"@u2 {words} [t90], {first}, T1, t99{tail}, u6;", *WAIT,
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
finish("tensor.case", "Warpgroup matrices and tensor memory (PTX ISA 9.7.15, 9.7.16).")
