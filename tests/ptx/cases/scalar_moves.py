# SPDX-License-Identifier: Apache-2.0
"""Comparison, selection, moves and conversions, of scalar.case."""
from fractions import Fraction as F
import math
import random

from scalar_model import FORMATS, FREG, REG, case, decode, edge, encode, largest, mask, numbers, value, width
from scalar_integers import INT
from scalar_floats import RND


# --- comparison and selection -----------------------------------------------------------------------
CMP = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
       "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}
BOOL = {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}
for c, fn in CMP.items():
    t = random.choice(INT)
    x = REG[width(t)][0]
    a, b = edge(width(t), 2)
    r = int(fn(value(a, t), value(b, t)))
    case(f"setp.{c}.{t} q0, {x}0, {x}1;", [{f"{x}0": a, f"{x}1": b}, {f"{x}0": a, f"{x}1": a}],
         [{"q0": r}, {"q0": int(fn(1, 1))}])
    case(f"setp.{c}.{t} q0|q1, {x}0, {x}1;", [{f"{x}0": a, f"{x}1": b}], [{"q0": r, "q1": 1 - r}])
    for word, combine in BOOL.items():
        case(f"setp.{c}.{word}.{t} q0|q1, {x}0, {x}1, p0;", [{f"{x}0": a, f"{x}1": b, "p0": 1}],
             [{"q0": combine(r, 1), "q1": combine(1 - r, 1)}])
        case(f"set.{c}.{word}.u32.{t} o0, {x}0, {x}1, p0;", [{f"{x}0": a, f"{x}1": b, "p0": 1}],
             [{"o0": 0xFFFFFFFF * combine(r, 1)}])
    case(f"set.{c}.u32.{t} o0, {x}0, {x}1;", [{f"{x}0": a, f"{x}1": b}], [{"o0": 0xFFFFFFFF * r}])
    case(f"set.{c}.f32.{t} o0, {x}0, {x}1;", [{f"{x}0": a, f"{x}1": b}], [{"o0": 0x3F800000 * r}])
    for ft in ["f16", "bf16", "f32", "f64"]:
        x = FREG[ft][0]
        a, b = numbers(ft, 2)
        r = int(fn(decode(a, ft), decode(b, ft)))
        case(f"setp.{c}.{ft} q0, {x}0, {x}1;", [{f"{x}0": a, f"{x}1": b}], [{"q0": r}])
        case(f"setp.{c}.and.{ft} q0, {x}0, {x}1, p0;", [{f"{x}0": a, f"{x}1": b, "p0": 1}], [{"q0": r}])
    for ft in ["f16", "bf16"]:
        a, b = numbers(ft, 2), numbers(ft, 2)
        r = [int(fn(decode(a[i], ft), decode(b[i], ft))) for i in range(2)]
        io = {"a0": a[0] | a[1] << 16, "a1": b[0] | b[1] << 16}
        io1 = dict(io, p0=1)
        case(f"setp.{c}.{ft}x2 q0|q1, a0, a1;", [io], [{"q0": r[0], "q1": r[1]}])
        case(f"setp.{c}.xor.{ft}x2 q0|q1, a0, a1, p0;", [io1], [{"q0": r[0] ^ 1, "q1": r[1] ^ 1}])
        unit = 0x3C00 if ft == "f16" else 0x3F80
        case(f"set.{c}.{ft}.{ft} k0, h0, h1;", [{"h0": a[0], "h1": b[0]}], [{"k0": unit * r[0]}])
        case(f"set.{c}.or.u32.{ft} o0, h0, h1, p0;", [{"h0": a[0], "h1": b[0], "p0": 0}], [{"o0": 0xFFFFFFFF * r[0]}])
    a, b = numbers("f16", 2)
    case(f"set.{c}.bf16.f16 k0, h0, h1;", [{"h0": a, "h1": b}],
         [{"k0": 0x3F80 * int(fn(decode(a, "f16"), decode(b, "f16")))}])
    a, b = numbers("f32", 2)
    case(f"set.{c}.f16.f32 k0, a0, a1;", [{"a0": a, "a1": b}],
         [{"k0": 0x3C00 * int(fn(decode(a, "f32"), decode(b, "f32")))}])
for t in ["b16", "b32", "b64", "f32", "f64"]:
    w = width(t)
    x, o = REG[w]
    a, b = edge(w, 2)
    case(f"selp.{t} {o}0, {x}0, {x}1, p0;", [{f"{x}0": a, f"{x}1": b, "p0": p} for p in (0, 1)],
         [{f"{o}0": b}, {f"{o}0": a}])
    case(f"slct.{t}.s32 {o}0, {x}0, {x}1, a7;", [{f"{x}0": a, f"{x}1": b, "a7": c} for c in (0, 0xFFFFFFFF)],
         [{f"{o}0": a}, {f"{o}0": b}])
    case(f"slct.{t}.f32 {o}0, {x}0, {x}1, a7;", [{f"{x}0": a, f"{x}1": b, "a7": c} for c in (0x3F800000, 0xBF800000)],
         [{f"{o}0": a}, {f"{o}0": b}])

# --- moves and conversions --------------------------------------------------------------------------
case("mov.b32 o0, a0;", [{"a0": 0x12345678}], [{"o0": 0x12345678}])
case("mov.b64 O0, {a0, a1};", [{"a0": 1, "a1": 2}], [{"O0": 0x200000001}])
case("mov.b64 {o0, o1}, A0;", [{"A0": 0x200000001}], [{"o0": 1, "o1": 2}])
case("mov.b32 o0, {h0, h1};", [{"h0": 0x1111, "h1": 0x2222}], [{"o0": 0x22221111}])


def prmt(a, b, c, mode=""):
    data = b << 32 | a
    byte = lambda i: data >> (8 * (i & 7)) & 0xFF
    if mode == "":
        r = 0
        for i in range(4):
            s = c >> (4 * i) & 15
            v = byte(s)
            r |= ((0xFF if v & 0x80 else 0) if s & 8 else v) << (8 * i)
        return r
    c &= 3
    sel = {"f4e": [c, c + 1, c + 2, c + 3], "b4e": [c, c - 1, c - 2, c - 3], "rc8": [c] * 4,
           "ecl": [max(i, c) for i in range(4)], "ecr": [min(i, c) for i in range(4)],
           "rc16": [2 * (c & 1), 2 * (c & 1) + 1] * 2}[mode]
    return sum(byte(s) << (8 * i) for i, s in enumerate(sel))


for mode in ["", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]:
    runs = [(0x83828180, 0x07060504, c) for c in (0x3210, 0x7654, 0xF9A1, 0x0002)]
    case(f"prmt.b32{'.' + mode if mode else ''} o0, a0, a1, a2;",
         [{"a0": a, "a1": b, "a2": c} for a, b, c in runs], [{"o0": prmt(a, b, c, mode)} for a, b, c in runs])
for src, dst in [("s32", "s16"), ("u32", "u64"), ("s16", "s64"), ("u64", "u32"), ("s32", "s64")]:
    x, o = REG[width(src)][0], REG[width(dst)][1]
    v = edge(width(src), 3)
    case(f"cvt.{dst}.{src} {o}0, {x}0;", [{f"{x}0": a} for a in v],
         [{f"{o}0": mask(value(a, src), width(dst))} for a in v])
case("cvt.sat.u8.s32 o0, a0;", [{"a0": a} for a in (5, 300, 0xFFFFFFF0)], [{"o0": r} for r in (5, 255, 0)])
for mode in RND:
    a = random.getrandbits(31)
    case(f"cvt.{mode}.f32.s32 o0, a0;", [{"a0": a}], [{"o0": encode(F(a), "f32", mode)}])
    h = numbers("f64", 1)[0]
    case(f"cvt.{mode}.f32.f64 o0, A0;", [{"A0": h}], [{"o0": encode(decode(h, "f64"), "f32", mode)}])
for mode, fn in [("rni", lambda v: round(v)), ("rzi", math.trunc), ("rmi", math.floor), ("rpi", math.ceil)]:
    v = [F(-7, 2), F(5, 2), F(9, 4), F(-1, 4)]
    case(f"cvt.{mode}.s32.f32 o0, a0;", [{"a0": encode(a, "f32")} for a in v], [{"o0": mask(fn(a), 32)} for a in v])
case("cvt.f32.f16 o0, h0;", [{"h0": 0x3C01}], [{"o0": encode(decode(0x3C01, "f16"), "f32")}])
case("cvt.f32.bf16 o0, h0;", [{"h0": 0x3F81}], [{"o0": 0x3F810000}])
case("cvt.rn.bf16.s32 k0, a0;", [{"a0": 1000}], [{"k0": encode(F(1000), "bf16")}])
SIXTEEN = [("f16", ("rn", "rz")), ("bf16", ("rn", "rz", "rna"))]
for t, modes in SIXTEEN:
    for mode in modes:
        v = numbers("f32", 3)
        case(f"cvt.{mode}.{t}.f32 k0, a0;", [{"a0": a} for a in v],
             [{"k0": encode(decode(a, "f32"), t, mode)} for a in v])
        if mode != "rna":
            case(f"cvt.{mode}.relu.{t}.f32 k0, a0;", [{"a0": a} for a in v],
                 [{"k0": encode(max(F(0), decode(a, "f32")), t, mode)} for a in v])
            case(f"cvt.{mode}.satfinite.{t}.f32 k0, a0;", [{"a0": 0x7F7FFFFF}], [{"k0": encode(largest(t), t)}])
            case(f"cvt.{mode}.{t}x2.f32 o0, a0, a1;", [{"a0": v[0], "a1": v[1]}],
                 [{"o0": encode(decode(v[0], "f32"), t, mode) << 16 | encode(decode(v[1], "f32"), t, mode)}])


def tf32(v, mode):
    # 10 fraction bits, kept in the upper bits of an fp32 word.
    FORMATS["tf32"] = (8, 10, 19)
    return encode(v, "tf32", mode) << 13


v = numbers("f32", 2)
for mode in ["rna", "rn", "rz"]:
    case(f"cvt.{mode}.tf32.f32 o0, a0;", [{"a0": a} for a in v], [{"o0": tf32(decode(a, "f32"), mode)} for a in v])
for t in ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1"]:
    shift = 4 if t == "e2m1" else 8
    reg, wide = ("k0", 16) if t != "e2m1" else ("o0", 8)
    v = [encode(F(random.randint(-60, 60), 16), "f32") for _ in range(2)]
    big = encode(F(100000), "f32")
    ins = [{"a0": v[0], "a1": v[1]}, {"a0": big, "a1": v[0]}]
    e = lambda b: encode(decode(b, "f32"), t, "rn", True)
    r = [e(v[0]) << shift | e(v[1]), e(big) << shift | e(v[0])]
    halves_ = [encode(F(random.randint(-60, 60), 16), "f16") for _ in range(2)]
    packed = halves_[0] | halves_[1] << 16
    eh = lambda b: encode(decode(b, "f16"), t, "rn", True)
    rh = eh(halves_[1]) << shift | eh(halves_[0])
    codes = e(v[0]) << shift | e(v[1])
    back = encode(decode(e(v[1]), t), "f16", neg_zero=bool(v[1] >> 31)) \
        | encode(decode(e(v[0]), t), "f16", neg_zero=bool(v[0] >> 31)) << 16
    if t == "e2m1":
        # Two codes fill one byte: a .b8 register, widened.
        case(f".reg .b8 z;\ncvt.rn.satfinite.{t}x2.f32 z, a0, a1;\ncvt.u32.u8 o0, z;", ins, [{"o0": x} for x in r])
        case(f".reg .b8 z;\ncvt.rn.satfinite.{t}x2.f16x2 z, a0;\ncvt.u32.u8 o0, z;", [{"a0": packed}], [{"o0": rh}])
        case(f".reg .b8 z;\ncvt.u8.u32 z, a0;\ncvt.rn.f16x2.{t}x2 o0, z;", [{"a0": codes}], [{"o0": back}])
    else:
        case(f"cvt.rn.satfinite.{t}x2.f32 k0, a0, a1;", ins, [{"k0": x} for x in r])
        case(f"cvt.rn.satfinite.{t}x2.f16x2 k0, a0;", [{"a0": packed}], [{"k0": rh}])
        case(f"cvt.rn.f16x2.{t}x2 o0, h0;", [{"h0": codes}], [{"o0": back}])
# A power of two's exponent, biased by 127; .rp takes the next one up.
for mode, codes in [("rz", (127 + 3, 127 - 1)), ("rp", (127 + 4, 127))]:
    case(f"cvt.{mode}.ue8m0x2.f32 k0, a0, a1;",
         [{"a0": encode(F(12), "f32"), "a1": encode(F(3, 4), "f32")}], [{"k0": codes[0] << 8 | codes[1]}])
    case(f"cvt.{mode}.ue8m0x2.bf16x2 k0, a0;",
         [{"a0": encode(F(12), "bf16") << 16 | encode(F(3, 4), "bf16")}], [{"k0": codes[0] << 8 | codes[1]}])
case("cvt.rn.bf16x2.ue8m0x2 o0, h0;", [{"h0": 130 << 8 | 126}],
     [{"o0": encode(F(8), "bf16") << 16 | encode(F(1, 2), "bf16")}])
case("cvt.pack.sat.s16.s32 o0, a0, a1;", [{"a0": 70000, "a1": mask(-5, 32)}], [{"o0": 0x7FFF << 16 | 0xFFFB}])
case("cvt.pack.sat.u8.s32.b32 o0, a0, a1, a2;", [{"a0": 300, "a1": 7, "a2": 0xABCD1234}],
     [{"o0": mask(0xABCD1234 << 16, 32) | 255 << 8 | 7}])

# Stochastic rounding: the part of a unit that is dropped, in 2 ** -bits, plus the random bits; a carry
# takes the next value away from zero. Exponent bits, mantissa bits, random bits, width of a code.
SMALL = {"f16": (5, 10, 13, 16), "bf16": (8, 7, 16, 16), "e4m3": (4, 3, 16, 8), "e5m2": (5, 2, 16, 8),
         "e2m3": (2, 3, 16, 8), "e3m2": (3, 2, 16, 8), "e2m1": (2, 1, 8, 4)}
LARGEST = {"e4m3": 0x7E, "e5m2": 0x7B, "e2m3": 0x1F, "e3m2": 0x1F, "e2m1": 7}  # codes


def stochastic(v, fmt, rbits):
    exponents, mantissa, bits, width = SMALL[fmt]
    bias = 2 ** (exponents - 1) - 1
    a, e = abs(v), 1 - bias
    while a >= F(2) ** (e + 1):
        e += 1
    units = a / F(2) ** (e - mantissa)
    kept = math.floor(units)
    kept += math.floor((units - kept) * 2 ** bits) + rbits >= 2 ** bits
    code = kept + ((e - 1 + bias) << mantissa)
    return (v < 0) << (exponents + mantissa) | min(code, LARGEST.get(fmt, code))


def rs_inputs(values, rbits):
    return {**{f"a{i}": encode(v, "f32") for i, v in enumerate(values)}, "a4": rbits}


for fmt in ("f16", "bf16"):
    runs = [((F(123456789, 1 << 26), F(-98765431, 1 << 27)), r) for r in (0, 0x1FFF1FFF, 0x0FFF1234, 0x12340800)]
    m = (1 << SMALL[fmt][2]) - 1
    case(f"cvt.rs.{fmt}x2.f32 o0, a0, a1, a4;", [rs_inputs(v, r) for v, r in runs],
         [{"o0": stochastic(a, fmt, r >> 16 & m) << 16 | stochastic(b, fmt, r & m)} for (a, b), r in runs])
for fmt in ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1"):
    values = (F(1234567, 1 << 20), F(-3456789, 1 << 21), F(123457, 1 << 20), F(-9876543, 1 << 21))
    runs = [(v, r) for v in (values, (F(100000), F(-5, 64), F(11, 4), F(5, 4))) for r in (0, 0xFFFFFFFF, 0x7FFF8123, 0x12A8C4F0)]
    width = SMALL[fmt][3]
    share = lambda r, i: r >> (16, 16, 0, 0)[i] & 0xFFFF if width == 8 else r >> (24, 8, 16, 0)[i] & 0xFF
    d = "o0" if width == 8 else "k0"
    case(f"cvt.rs.satfinite.{fmt}x4.f32 {d}, {{a0, a1, a2, a3}}, a4;", [rs_inputs(v, r) for v, r in runs],
         [{d: sum(stochastic(x, fmt, share(r, i)) << (width * (3 - i)) for i, x in enumerate(v))} for v, r in runs])
