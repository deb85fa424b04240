# SPDX-License-Identifier: Apache-2.0
"""Integers and formats of PTX as Python computes them, and the text of a case. By the definitions of the PTX ISA, and
by nothing of the simulator."""
from fractions import Fraction as F
import random

# Lines of scalar.case, in order.
out = ["# Written by generate.py; do not edit.", ""]


def case(text, ins, outs):
    """text: statements; ins, outs: lists of {register: value}, one of each per run."""
    out.extend(line.strip() for line in text.strip().split("\n"))
    for i, o in zip(ins, outs):
        out.append("in " + " ".join(f"{k}={v:x}" for k, v in i.items()))
        out.append("out " + " ".join(f"{k}={v:x}" for k, v in o.items()))
    out.append("")


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
