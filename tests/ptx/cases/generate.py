#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes scalar.case: one program or more for each row of the instruction table that computes on
registers alone. Expected values come from Python's integers and fractions, by the definitions of the
PTX ISA, and from nothing of the simulator. Run it in this folder; the result is committed."""
from fractions import Fraction as F
import math
import random
import struct

random.seed(7)
out = ["# Written by generate.py; do not edit.", ""]


def case(text, ins, outs):
    """text: statements; ins, outs: lists of {register: value}, one of each per run."""
    out.extend(line.strip() for line in text.strip().split("\n"))
    for i, o in zip(ins, outs):
        out.append("in " + " ".join(f"{k}={v:x}" for k, v in i.items()))
        out.append("out " + " ".join(f"{k}={v:x}" for k, v in o.items()))
    out.append("")


# --- integers ---------------------------------------------------------------------------------------
def mask(v, bits):
    return v & ((1 << bits) - 1)


def signed(v, bits):
    v = mask(v, bits)
    return v - (1 << bits) if v >> (bits - 1) else v


REG = {16: ("h", "k"), 32: ("a", "o"), 64: ("A", "O")}


def width(t):
    return int(t[1:])


def value(v, t):
    return signed(v, width(t)) if t[0] == "s" else mask(v, width(t))


def edge(bits, n):
    pool = [0, 1, 2, 5, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, 0x5A5A5A5A5A5A5A5A]
    return [mask(random.choice(pool + [random.getrandbits(bits)] * 4), bits) for _ in range(n)]


def ints(op, types, fn, n, out_bits=None, runs=3, in_bits=None, fix=None):
    """fn(type, *python ints) -> int; operands of the type's width unless in_bits says another."""
    for t in types:
        w = width(t)
        widths = [w if b is None else (2 * w if b == "2x" else b) for b in (in_bits or [None] * n)]
        ow = w if out_bits is None else (2 * w if out_bits == "2x" else out_bits)
        names, used = [], {}
        for b in widths:
            r = REG[b][0]
            names.append(f"{r}{used.get(r, 0)}")
            used[r] = used.get(r, 0) + 1
        o = f"{REG[ow][1]}0"
        ins, outs = [], []
        for _ in range(runs):
            vals = [edge(b, 1)[0] for b in widths]
            if fix:
                vals = fix(t, vals)
            args = [signed(v, b) if t[0] == "s" and b in (w, 2 * w) else v for v, b in zip(vals, widths)]
            ins.append(dict(zip(names, vals)))
            outs.append({o: mask(fn(t, *args), ow)})
        case(f"{op.format(t=t)} {o}, {', '.join(names)};", ins, outs)


INT = ["u16", "u32", "u64", "s16", "s32", "s64"]
W = ["u32", "s32", "u64", "s64"]


def sat32(v):
    return max(-(1 << 31), min((1 << 31) - 1, v))


def trunc_div(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def nonzero(t, v):
    b = v[1] or 3
    if t[0] == "s" and signed(b, width(t)) == -1:
        b = 3
    return [v[0], b] + v[2:]


ints("add.{t}", INT, lambda t, a, b: a + b, 2)
ints("sub.{t}", INT, lambda t, a, b: a - b, 2)
ints("add.sat.{t}", ["s32"], lambda t, a, b: sat32(a + b), 2)
ints("sub.sat.{t}", ["s32"], lambda t, a, b: sat32(a - b), 2)
ints("mul.lo.{t}", INT, lambda t, a, b: a * b, 2)
ints("mul.hi.{t}", INT, lambda t, a, b: (a * b) >> width(t), 2)
ints("mul.wide.{t}", ["u16", "u32", "s16", "s32"], lambda t, a, b: a * b, 2, out_bits="2x")
ints("mad.lo.{t}", INT, lambda t, a, b, c: a * b + c, 3)
ints("mad.hi.{t}", INT, lambda t, a, b, c: ((a * b) >> width(t)) + c, 3)
ints("mad.wide.{t}", ["u16", "u32", "s16", "s32"], lambda t, a, b, c: a * b + c, 3, "2x",
     in_bits=[None, None, "2x"])
ints("mad.hi.sat.{t}", ["s32"], lambda t, a, b, c: sat32(((a * b) >> 32) + c), 3)


def low24(t, v):
    return signed(v, 24) if t[0] == "s" else mask(v, 24)


ints("mul24.lo.{t}", ["u32", "s32"], lambda t, a, b: low24(t, a) * low24(t, b), 2)
ints("mul24.hi.{t}", ["u32", "s32"], lambda t, a, b: (low24(t, a) * low24(t, b)) >> 16, 2)
ints("mad24.lo.{t}", ["u32", "s32"], lambda t, a, b, c: low24(t, a) * low24(t, b) + c, 3)
ints("mad24.hi.{t}", ["u32", "s32"], lambda t, a, b, c: ((low24(t, a) * low24(t, b)) >> 16) + c, 3)
ints("mad24.hi.sat.{t}", ["s32"],
     lambda t, a, b, c: sat32(((low24(t, a) * low24(t, b)) >> 16) + c), 3)
ints("sad.{t}", INT, lambda t, a, b, c: c + abs(a - b), 3)
ints("div.{t}", INT, lambda t, a, b: trunc_div(a, b), 2, fix=nonzero)
ints("rem.{t}", INT, lambda t, a, b: a - b * trunc_div(a, b), 2, fix=nonzero)
ints("abs.{t}", ["s16", "s32", "s64"], lambda t, a: abs(a), 1)
ints("neg.{t}", ["s16", "s32", "s64"], lambda t, a: -a, 1)
ints("min.{t}", INT, lambda t, a, b: min(a, b), 2)
ints("max.{t}", INT, lambda t, a, b: max(a, b), 2)
ints("min.relu.{t}", ["s32"], lambda t, a, b: max(0, min(a, b)), 2)
ints("max.relu.{t}", ["s32"], lambda t, a, b: max(0, max(a, b)), 2)


def halves(fn, is_signed):
    def both(_, a, b):
        r = 0
        for i in (0, 16):
            x, y = mask(a >> i, 16), mask(b >> i, 16)
            if is_signed:
                x, y = signed(x, 16), signed(y, 16)
            r |= mask(fn(x, y), 16) << i
        return r
    return both


for name, fn in [("add", lambda a, b: a + b), ("min", min), ("max", max)]:
    ints(f"{name}.u16x2", ["b32"], halves(fn, False), 2)
    ints(f"{name}.s16x2", ["b32"], halves(fn, True), 2)
ints("max.relu.s16x2", ["b32"], halves(lambda a, b: max(0, a, b), True), 2)
ints("popc.{t}", ["b32", "b64"], lambda t, a: bin(a).count("1"), 1, out_bits=32)
ints("clz.{t}", ["b32", "b64"], lambda t, a: width(t) - a.bit_length(), 1, out_bits=32)


def bfind(shift):
    def f(t, a):
        a = ~a if a < 0 else a
        if a == 0:
            return -1
        return width(t) - a.bit_length() if shift else a.bit_length() - 1
    return f


ints("bfind.{t}", W, bfind(False), 1, out_bits=32)
ints("bfind.shiftamt.{t}", W, bfind(True), 1, out_bits=32)
ints("brev.{t}", ["b32", "b64"], lambda t, a: int(f"{a:0{width(t)}b}"[::-1], 2), 1)


def fns(m, base, offset):
    """The n-th set bit from base on (9.7.1.17)."""
    if offset == 0:
        return base if m >> base & 1 else 0xFFFFFFFF
    step, found, at = (1, offset, base) if offset > 0 else (-1, -offset, base)
    while 0 <= at < 32:
        if m >> at & 1:
            found -= 1
            if found == 0:
                return at
        at += step
    return 0xFFFFFFFF


vectors = [(0xAAAAAAAA, 3, 1), (0xAAAAAAAA, 3, -1), (0xAAAAAAAA, 3, 2), (0xAAAAAAAA, 4, 0), (0x10, 3, 2)]
case("fns.b32 o0, a0, a1, a2;",
     [{"a0": m, "a1": b, "a2": mask(o, 32)} for m, b, o in vectors],
     [{"o0": fns(m, b, o)} for m, b, o in vectors])


def bfe(t, a, pos, length):
    w, pos, length = width(t), pos & 0xFF, length & 0xFF
    a = mask(a, w)
    if length == 0:
        return 0
    sign = 0
    if t[0] == "s":
        sign = a >> min(pos + length - 1, w - 1) & 1
    r = 0
    for i in range(w):
        bit = a >> (pos + i) & 1 if i < length and pos + i < w else sign
        r |= bit << i
    return r


for t in W:
    x = "a" if width(t) == 32 else "A"
    o = "o" if width(t) == 32 else "O"
    runs = [(random.getrandbits(width(t)), p, n) for p, n in [(0, 8), (5, 11), (28, 16), (3, 0)]]
    case(f"bfe.{t} {o}0, {x}0, a6, a7;", [{f"{x}0": a, "a6": p, "a7": n} for a, p, n in runs],
         [{f"{o}0": bfe(t, a, p, n)} for a, p, n in runs])
for t in ["b32", "b64"]:
    x, o, w = ("a", "o", 32) if t == "b32" else ("A", "O", 64)
    ins, outs = [], []
    for p, n in [(0, 8), (5, 11), (28, 40)]:
        a, b = random.getrandbits(w), random.getrandbits(w)
        field = mask(mask((1 << n) - 1, w) << p, w)
        ins.append({f"{x}0": a, f"{x}1": b, "a6": p, "a7": n})
        outs.append({f"{o}0": (b & ~field) | (a << p & field)})
    case(f"bfi.{t} {o}0, {x}0, {x}1, a6, a7;", ins, outs)


def szext(mode, t, a, n):
    n = n & 31 if mode == "wrap" else n
    if n == 0:
        return 0
    if n >= 32:
        return a
    return signed(a, n) if t[0] == "s" else mask(a, n)


for mode in ["clamp", "wrap"]:
    ints(f"szext.{mode}.{{t}}", ["u32", "s32"], lambda t, a, n, m=mode: szext(m, t, mask(a, 32), mask(n, 32)), 2,
         fix=lambda t, v: [v[0], random.choice([0, 7, 16, 40])], runs=4)
    ins, outs = [], []
    for a, b in [(0, 32), (4, 8), (33, 2), (30, 9)]:
        p, n = (a & 31, b & 31) if mode == "wrap" else (min(a, 32), min(b, 32))
        ins.append({"a0": a, "a1": b})
        outs.append({"o0": mask(((1 << n) - 1) << p, 32)})
    case(f"bmsk.{mode}.b32 o0, a0, a1;", ins, outs)


def byte_of(t, v, i):
    v = v >> (8 * i) & 0xFF
    return signed(v, 8) if t[0] == "s" else v


for ta, tb in [("u32", "u32"), ("s32", "u32"), ("s32", "s32")]:
    a, b, c = random.getrandbits(32), random.getrandbits(32), random.getrandbits(32)
    d = c + sum(byte_of(ta, a, i) * byte_of(tb, b, i) for i in range(4))
    case(f"dp4a.{ta}.{tb} o0, a0, a1, a2;", [{"a0": a, "a1": b, "a2": c}], [{"o0": mask(d, 32)}])
    for part, base in [("lo", 0), ("hi", 2)]:
        pairs = [mask(a >> 16 * i, 16) for i in range(2)]
        if ta[0] == "s":
            pairs = [signed(x, 16) for x in pairs]
        d = c + sum(pairs[i] * byte_of(tb, b, base + i) for i in range(2))
        case(f"dp2a.{part}.{ta}.{tb} o0, a0, a1, a2;", [{"a0": a, "a1": b, "a2": c}], [{"o0": mask(d, 32)}])

# Two words make one number: add.cc then addc, and so on.
for bits, x, o in [(32, "a", "o"), (64, "A", "O")]:
    for t in [f"u{bits}", f"s{bits}"]:
        a, b = random.getrandbits(2 * bits), random.getrandbits(2 * bits)
        p, q = random.getrandbits(bits), random.getrandbits(bits)
        io = {f"{x}0": mask(a, bits), f"{x}1": a >> bits, f"{x}2": mask(b, bits), f"{x}3": b >> bits}
        res = lambda v: [{f"{o}0": mask(v, bits), f"{o}1": mask(v >> bits, bits)}]
        case(f"add.cc.{t} {o}0, {x}0, {x}2;\naddc.{t} {o}1, {x}1, {x}3;", [io], res(a + b))
        case(f"add.cc.{t} {o}0, {x}0, {x}2;\naddc.cc.{t} {o}1, {x}1, {x}3;", [io], res(a + b))
        case(f"sub.cc.{t} {o}0, {x}0, {x}2;\nsubc.{t} {o}1, {x}1, {x}3;", [io], res(a - b))
        io2 = {f"{x}0": p, f"{x}1": q, f"{x}2": mask(b, bits), f"{x}3": b >> bits}
        vp, vq = (signed(p, bits), signed(q, bits)) if t[0] == "s" else (p, q)
        case(f"mad.lo.cc.{t} {o}0, {x}0, {x}1, {x}2;\nmadc.hi.{t} {o}1, {x}0, {x}1, {x}3;", [io2],
             res(vp * vq + b))

# --- logic ------------------------------------------------------------------------------------------
B = ["b16", "b32", "b64"]
ints("and.{t}", B, lambda t, a, b: a & b, 2)
ints("or.{t}", B, lambda t, a, b: a | b, 2)
ints("xor.{t}", B, lambda t, a, b: a ^ b, 2)
ints("not.{t}", B, lambda t, a: ~a, 1)
ints("cnot.{t}", B, lambda t, a: int(a == 0), 1, runs=4, fix=lambda t, v: [random.choice([0, v[0]])])
for name, fn in [("and", lambda a, b: a & b), ("or", lambda a, b: a | b), ("xor", lambda a, b: a ^ b)]:
    runs = [(0, 1), (1, 1), (0, 0)]
    case(f"{name}.pred q0, p0, p1;", [{"p0": a, "p1": b} for a, b in runs], [{"q0": fn(a, b)} for a, b in runs])
case("not.pred q0, p0;", [{"p0": 0}, {"p0": 1}], [{"q0": 1}, {"q0": 0}])


def lop3(a, b, c, lut):
    r = 0
    for i in range(32):
        r |= (lut >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i
    return r


for lut in [0x80, 0xFE, 0x96, 0x1B]:
    ints(f"lop3.b32", ["b32"], lambda t, a, b, c: 0, 3, runs=0) if False else None
    a, b, c = (random.getrandbits(32) for _ in range(3))
    case(f"lop3.b32 o0, a0, a1, a2, {lut};", [{"a0": a, "a1": b, "a2": c}], [{"o0": lop3(a, b, c, lut)}])
    for name, fn in [("and", lambda x, y: x & y), ("or", lambda x, y: x | y)]:
        r = lop3(a, b, c, lut)
        case(f"lop3.{name}.b32 o0|q0, a0, a1, a2, {lut}, p0;", [{"a0": a, "a1": b, "a2": c, "p0": 1}],
             [{"o0": r, "q0": fn(int(r != 0), 1)}])
for d in "lr":
    for mode in ["clamp", "wrap"]:
        ins, outs = [], []
        for n in [0, 5, 31, 32, 40]:
            a, b = random.getrandbits(32), random.getrandbits(32)
            s = n & 31 if mode == "wrap" else min(n, 32)
            both = b << 32 | a
            ins.append({"a0": a, "a1": b, "a2": n})
            outs.append({"o0": mask(both << s >> 32, 32) if d == "l" else mask(both >> s, 32)})
        case(f"shf.{d}.{mode}.b32 o0, a0, a1, a2;", ins, outs)
for t in B + INT:
    w = width(t)
    x, o = REG[w]
    ins, l, r = [], [], []
    for n in [0, 3, w - 1, w, 200]:
        a = random.getrandbits(w) | 1 << (w - 1)
        ins.append({f"{x}0": a, "a7": n})
        l.append({f"{o}0": mask(a << min(n, w), w)})
        r.append({f"{o}0": mask(value(a, t) >> min(n, w), w)})
    if t[0] == "b":
        case(f"shl.{t} {o}0, {x}0, a7;", ins, l)
    case(f"shr.{t} {o}0, {x}0, a7;", ins, r)

# --- floating point ---------------------------------------------------------------------------------
FORMATS = {"f16": (5, 10, 16), "bf16": (8, 7, 16), "f32": (8, 23, 32), "f64": (11, 52, 64),
           "e4m3": (4, 3, 8), "e5m2": (5, 2, 8), "e2m3": (2, 3, 6), "e3m2": (3, 2, 6), "e2m1": (2, 1, 4)}


def decode(bits, fmt):
    e, m, w = FORMATS[fmt]
    s, x, f = bits >> (e + m) & 1, bits >> m & ((1 << e) - 1), bits & ((1 << m) - 1)
    bias = (1 << (e - 1)) - 1
    v = F(f, 1 << m) * F(2) ** (1 - bias) if x == 0 else (1 + F(f, 1 << m)) * F(2) ** (x - bias)
    return -v if s else v


def largest(fmt):
    e, m, w = FORMATS[fmt]
    bias = (1 << (e - 1)) - 1
    if fmt == "e4m3":
        return F(448)
    top = (1 << e) - 1 - bias if fmt in ("e2m3", "e3m2", "e2m1") else (1 << e) - 2 - bias
    return (2 - F(1, 1 << m)) * F(2) ** top


def encode(v, fmt, mode="rn", satfinite=False, neg_zero=False):
    """Rounds a fraction into a format."""
    e, m, w = FORMATS[fmt]
    sign = (1 if v < 0 or (v == 0 and neg_zero) else 0) << (e + m)
    a = abs(v)
    if a == 0:
        return sign
    bias = (1 << (e - 1)) - 1
    x = a.numerator.bit_length() - a.denominator.bit_length()
    while F(2) ** x > a:
        x -= 1
    while F(2) ** (x + 1) <= a:
        x += 1
    x = max(x, 1 - bias)
    unit = F(2) ** (x - m)
    n = a / unit
    low = n.numerator // n.denominator
    rest = n - low
    up = {"rn": rest > F(1, 2) or (rest == F(1, 2) and low & 1), "rna": rest >= F(1, 2), "rz": False,
          "rm": rest > 0 and v < 0, "rp": rest > 0 and v > 0}[mode]
    rounded = (low + int(up)) * unit
    if rounded > largest(fmt):
        toward_zero = mode == "rz" or (mode == "rm" and v > 0) or (mode == "rp" and v < 0)
        if satfinite or toward_zero:
            rounded = largest(fmt)
        else:
            return sign | ((1 << e) - 1) << m
    if rounded == 0:
        return sign
    x = max(rounded.numerator.bit_length() - rounded.denominator.bit_length() + 1, 1 - bias)
    while F(2) ** x > rounded and x > 1 - bias:
        x -= 1
    f = rounded / (F(2) ** (x - m))
    f = f.numerator
    return sign | (f if f < 1 << m else (x + bias) << m | (f - (1 << m)))


def numbers(fmt, n, small=False):
    e, m, w = FORMATS[fmt]
    bias = (1 << (e - 1)) - 1
    spread = min(6, bias - 1)
    return [random.getrandbits(1) << (e + m) | (bias + random.randint(-spread, spread)) << m | random.getrandbits(m)
            for _ in range(n)]


FREG = {"f16": ("h", "k"), "bf16": ("h", "k"), "f32": ("a", "o"), "f64": ("A", "O")}


def floats(op, fmt, n, fn, modes=("rn",), result=None, runs=3):
    """fn(*fractions) -> fraction; op has {m} for the rounding."""
    x, _ = FREG[fmt]
    o = FREG[result or fmt][1]
    for mode in modes:
        ins, outs = [], []
        for _ in range(runs):
            v = numbers(fmt, n)
            r = fn(*[decode(b, fmt) for b in v])
            ins.append({f"{x}{i}": b for i, b in enumerate(v)})
            outs.append({f"{o}0": encode(r, result or fmt, mode)})
        case(f"{op.format(m=mode)} {o}0, {', '.join(ins[0])};", ins, outs)


def pairs(op, fmt, n, fn, modes=("rn",)):
    """Two numbers in one register: f16x2, bf16x2, f32x2."""
    w = FORMATS[fmt][2]
    x, o = ("a", "o") if w == 16 else ("A", "O")
    for mode in modes:
        ins, outs = [], []
        for _ in range(2):
            halves_ = [numbers(fmt, n), numbers(fmt, n)]
            r = [encode(fn(*[decode(b, fmt) for b in h]), fmt, mode) for h in halves_]
            ins.append({f"{x}{i}": halves_[0][i] | halves_[1][i] << w for i in range(n)})
            outs.append({f"{o}0": r[0] | r[1] << w})
        case(f"{op.format(m=mode)} {o}0, {', '.join(ins[0])};", ins, outs)


RND = ("rn", "rz", "rm", "rp")
OPS = {"add": (2, lambda a, b: a + b), "sub": (2, lambda a, b: a - b), "mul": (2, lambda a, b: a * b)}
for name, (n, fn) in OPS.items():
    floats(name + ".{m}.f32", "f32", n, fn, RND)
    floats(name + ".{m}.f64", "f64", n, fn, RND)
    pairs(name + ".{m}.f32x2", "f32", n, fn, RND)
    floats(name + ".f16", "f16", n, fn)
    floats(name + ".bf16", "bf16", n, fn)
    pairs(name + ".f16x2", "f16", n, fn)
    pairs(name + ".rn.bf16x2", "bf16", n, fn)
fma = lambda a, b, c: a * b + c
floats("fma.{m}.f32", "f32", 3, fma, RND)
floats("fma.{m}.f64", "f64", 3, fma, RND)
pairs("fma.{m}.f32x2", "f32", 3, fma, RND)
floats("fma.rn.f16", "f16", 3, fma)
floats("fma.rn.bf16", "bf16", 3, fma)
pairs("fma.rn.f16x2", "f16", 3, fma)
pairs("fma.rn.bf16x2", "bf16", 3, fma)
# A factor of 0x7ff7, of either sign, is out of bounds and makes the result +0; as c it is a NaN.
for kind, one in [("f16", 0x3C00), ("bf16", 0x3F80)]:
    two, both = 0x4000, one << 16 | one
    case(f"fma.rn.oob.{kind} k0, h0, h1, h2;\nfma.rn.oob.relu.{kind} k1, h0, h1, h3;\nfma.rn.oob.{kind}x2 o0, a0, a1, a2;",
         [{"h0": one, "h1": one, "h2": one, "h3": one, "a0": one << 16 | 0x7FF7, "a1": both, "a2": both},
          {"h0": 0x7FF7, "h1": one, "h2": one, "h3": one, "a0": both, "a1": 0xFFF7 << 16 | one, "a2": both},
          {"h0": one, "h1": 0xFFF7, "h2": one, "h3": 0x7FF7, "a0": 0x7FFF7FFF, "a1": both, "a2": both},
          {"h0": one, "h1": one, "h2": 0x7FF7, "h3": 0x7FF7, "a0": both, "a1": both, "a2": 0x7FF7 << 16 | one}],
         [{"k0": two, "k1": two, "o0": two << 16}, {"k0": 0, "k1": 0, "o0": two}, {"k0": 0, "k1": 0, "o0": 0x7FFF7FFF},
          {"k0": 0x7FFF, "k1": 0x7FFF, "o0": 0x7FFF << 16 | two}])
floats("fma.rn.relu.f16", "f16", 3, lambda a, b, c: max(F(0), a * b + c))
floats("mad.{m}.f32", "f32", 3, fma, RND)
floats("mad.{m}.f64", "f64", 3, fma, RND)
floats("div.{m}.f32", "f32", 2, lambda a, b: a / b, RND)
floats("div.{m}.f64", "f64", 2, lambda a, b: a / b, RND)
floats("rcp.{m}.f32", "f32", 1, lambda a: 1 / a, RND)
floats("rcp.{m}.f64", "f64", 1, lambda a: 1 / a, RND)
for t in ["f32", "f64"]:
    floats(f"abs.{t}", t, 1, abs)
    floats(f"neg.{t}", t, 1, lambda a: -a)
    floats(f"min.{t}", t, 2, min)
    floats(f"max.{t}", t, 2, max)
    floats(f"copysign.{t}", t, 2, lambda a, b: abs(b) if a > 0 else -abs(b))
floats("min.f32", "f32", 3, min)
floats("max.f32", "f32", 3, max)
floats("min.xorsign.abs.f32", "f32", 2,
       lambda a, b: min(abs(a), abs(b)) * (1 if (a < 0) == (b < 0) else -1))
for t in ["f16", "bf16"]:
    floats(f"abs.{t}", t, 1, abs)
    floats(f"neg.{t}", t, 1, lambda a: -a)
    floats(f"min.{t}", t, 2, min)
    floats(f"max.{t}", t, 2, max)
    pairs(f"abs.{t}x2", t, 1, abs)
    pairs(f"neg.{t}x2", t, 1, lambda a: -a)
    pairs(f"min.{t}x2", t, 2, min)
    pairs(f"max.{t}x2", t, 2, max)
    # Mixed precision: the first operands are 16 bits wide, the sum is fp32.
    for name, fn in [("add", lambda a, c: a + c), ("sub", lambda a, c: a - c)]:
        for mode in RND:
            h, c = numbers(t, 1)[0], numbers("f32", 1)[0]
            case(f"{name}.{mode}.f32.{t} o0, h0, a0;", [{"h0": h, "a0": c}],
                 [{"o0": encode(fn(decode(h, t), decode(c, "f32")), "f32", mode)}])
    h, g, c = numbers(t, 2) + numbers("f32", 1)
    case(f"fma.rn.f32.{t} o0, h0, h1, a0;", [{"h0": h, "h1": g, "a0": c}],
         [{"o0": encode(decode(h, t) * decode(g, t) + decode(c, "f32"), "f32")}])


def perfect(fmt):
    """A number whose square is exact, so that its root is."""
    a = F(random.randint(1, 500), 1 << random.randint(0, 6))
    return a


for fmt, modes in [("f32", ("approx",) + RND), ("f64", RND)]:
    x, o = FREG[fmt]
    for mode in modes:
        roots = [perfect(fmt) for _ in range(3)]
        case(f"sqrt.{mode}.{fmt} {o}0, {x}0;", [{f"{x}0": encode(r * r, fmt)} for r in roots],
             [{f"{o}0": encode(r, fmt)} for r in roots])
one = {"f32": 0x3F800000, "f64": 0x3FF0000000000000}


def points(op, fmt, table):
    x, o = FREG[fmt]
    case(f"{op} {o}0, {x}0;", [{f"{x}0": encode(F(a), fmt)} for a, _ in table],
         [{f"{o}0": encode(F(b), fmt)} for _, b in table])


points("rcp.approx.f32", "f32", [(4, F(1, 4)), (F(1, 2), 2)])
points("rcp.approx.ftz.f64", "f64", [(4, F(1, 4)), (F(1, 2), 2)])
points("rsqrt.approx.f32", "f32", [(4, F(1, 2)), (F(1, 16), 4)])
points("rsqrt.approx.f64", "f64", [(4, F(1, 2)), (F(1, 16), 4)])
points("rsqrt.approx.ftz.f64", "f64", [(4, F(1, 2)), (F(1, 16), 4)])
points("sin.approx.f32", "f32", [(0, 0)])
points("cos.approx.f32", "f32", [(0, 1)])

def near(op, within, function, arguments):
    """An approximation whose error the ISA bounds: 2^-within, relative where the result exceeds 1."""
    bits = lambda v: struct.unpack("<I", struct.pack("<f", v))[0]
    inputs = [struct.unpack("<f", struct.pack("<f", a))[0] for a in arguments]
    out.append(f"within {within}")
    case(f"{op}.approx.f32 o0, a0;", [{"a0": bits(a)} for a in inputs], [{"o0": bits(function(a))} for a in inputs])


near("lg2", 22, math.log2, [8, 0.25, 3, 0.7, 1.1, 1e-30, 1e30, 12345.678])
near("rcp", 23, lambda a: 1 / a, [0.3, 0.7, 1e-30, 0.000123, 0.9])
near("rsqrt", 22, lambda a: a ** -0.5, [0.3, 0.7, 1e-30, 0.000123, 0.9])
near("sin", 20, math.sin, [0.5, 1, 2, 3, -0.7, -3.1])
near("cos", 20, math.cos, [0.5, 1, 2, 3, -0.7, -3.1])
near("ex2", 22, lambda a: 2 ** a, [0.3, 0.7, 10.1, 100.4, 1.5])
near("tanh", 11, math.tanh, [0.1, 0.5, 1, 2, -3, 20])
points("ex2.approx.f32", "f32", [(3, 8), (-2, F(1, 4))])
points("ex2.approx.f16", "f16", [(3, 8), (-2, F(1, 4))])
points("ex2.approx.ftz.bf16", "bf16", [(3, 8), (-2, F(1, 4))])
points("tanh.approx.f32", "f32", [(0, 0)])
points("tanh.approx.f16", "f16", [(0, 0)])
case("div.approx.f32 o0, a0, a1;", [{"a0": encode(F(6), "f32"), "a1": encode(F(4), "f32")}],
     [{"o0": encode(F(3, 2), "f32")}])
for word, bits, yes in [("finite", 0x3F800000, 1), ("finite", 0x7F800000, 0), ("infinite", 0xFF800000, 1),
                        ("number", 0x7FC00000, 0), ("notanumber", 0x7FC00000, 1), ("normal", 0x00000001, 0),
                        ("subnormal", 0x00000001, 1)]:
    case(f"testp.{word}.f32 q0, a0;", [{"a0": bits}], [{"q0": yes}])
case("testp.normal.f64 q0, A0;", [{"A0": one["f64"]}], [{"q0": 1}])
# fma.oob has no case: the simulator refuses it. Its numbers are still drawn, since those of every case below would be
# others without them, and the records of what a GPU left (confirmations.json) would count for nothing.
for t in ("f16", "bf16"):
    numbers(t, 3)

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
import math
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
with open("scalar.case", "w") as file:
    file.write("\n".join(out))
print(sum(1 for line in out if line.startswith("in ")), "runs")
