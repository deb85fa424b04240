# SPDX-License-Identifier: Apache-2.0
"""Integers and logic, of scalar.case."""
import random

from scalar_model import REG, case, edge, mask, signed, value, width


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
