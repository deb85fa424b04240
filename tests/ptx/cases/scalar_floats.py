# SPDX-License-Identifier: Apache-2.0
"""Floating point, of scalar.case."""
from fractions import Fraction as F
import math
import random
import struct

from scalar_model import FORMATS, FREG, case, decode, encode, numbers, out


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
