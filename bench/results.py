# SPDX-License-Identifier: Apache-2.0
"""Reading result files of `jitgemm bench` and recorded figures of peers; ratios between them.

A contender's time belongs to a regime, "rested" or "sustained", and is compared inside it only. Knows no Markdown and
no plots.
"""

from __future__ import annotations

import json
import math
import pathlib

DECODE_WEIGHTS = ((2112, 7168), (24576, 1536), (7168, 16384), (4096, 7168), (7168, 2048))
SEED_M = {
    2048: (349, 1024, 4533, 6918, 20480, 51200, 65536, 98304, 118784, 250880, 516096, 704512),
    4096: (237, 3072, 4096, 8192, 16384, 24576, 49152, 65536, 98304, 131072, 258048, 299520),
}


def load(path):
    document = json.loads(pathlib.Path(path).read_text())
    if document.get("schema") != 1 or document.get("verb") != "bench":
        raise ValueError(f"{path}: expected a result file of jitgemm bench, schema 1")
    return document


def labelled(documents, label):
    """Those that are for a table of their own; label "": for the tables of shapes."""
    return [d for d in documents if d.get("label", "") == label]


def merge(documents):
    """One document of several runs on one kind of device: of two rows for one shape the later stays. None of none."""
    if not documents:
        return None
    first = documents[0]
    for document in documents[1:]:
        if document["device"] != first["device"]:
            raise ValueError(f"results of {first['device']} and {document['device']} do not belong into one table")
    shapes, ceilings = {}, {}
    for document in sorted(documents, key=lambda d: d["date"]):
        for shape in document["shapes"]:
            shape = dict(shape, date=document["date"], commit=document["commit"])
            groups = tuple(shape.get("groups", {}).items())
            shapes[(groups, shape["m"], shape["n"], shape["k"], shape["out_dtype"])] = shape
        ceilings.update({c["name"]: c for c in document["ceilings"]})
    last = max(documents, key=lambda d: d["date"])
    return dict(last, shapes=list(shapes.values()), ceilings=list(ceilings.values()))


def family(shape):
    if "groups" in shape:
        return shape["groups"]["kind"]
    if shape["n"] == shape["k"] and shape["m"] in SEED_M.get(shape["n"], ()):
        return "seed"
    if (shape["n"], shape["k"]) in DECODE_WEIGHTS and shape["m"] <= 128:
        return "decode"
    return "odd"


def shapes_of(result, wanted_family, out_dtype):
    """In the order of the weights, then of m."""
    chosen = [s for s in result["shapes"] if s["out_dtype"] == out_dtype and family(s) == wanted_family]
    if wanted_family in ("contiguous", "masked"):
        return chosen  # as the suite has them
    order = {nk: i for i, nk in enumerate(DECODE_WEIGHTS)}
    return sorted(chosen, key=lambda s: (order.get((s["n"], s["k"]), 0), s["n"], s["k"], s["m"]))


def time_us(contender, regime):
    if contender is None or regime not in contender:
        return None
    return contender[regime]["median_us" if regime == "rested" else "mean_us"]


def ours(shape, programmatic=False):
    """The planner's own choice: the first of our contenders."""
    return contender(shape, "jitgemm", programmatic)


def ours_as(shape, form, layout):
    """Of groups: the planner's choice for that form of rows, told by that layout."""
    return next((c for c in shape["contenders"]
                 if c["name"] == "jitgemm" and c["form"] == form and c["layout"] == layout), None)


def best_of_ours(shape, regime="rested"):
    """The fastest of our contenders, and how many were timed."""
    timed = [c for c in shape["contenders"] if c["name"] == "jitgemm" and time_us(c, regime) is not None]
    return min(timed, key=lambda c: time_us(c, regime), default=None), len(timed)


def contender(shape, name, programmatic=False):
    """`programmatic`: with launches that may begin before the one in front has ended."""
    return next((c for c in shape["contenders"]
                 if c["name"] == name and c.get("programmatic", False) == programmatic), None)


def peers(shape):
    return [c for c in shape["contenders"] if c["name"] != "jitgemm"]


def ratio(shape, name, regime):
    """Our time over the peer's, in this run; None without both."""
    mine, theirs = time_us(ours(shape), regime), time_us(contender(shape, name), regime)
    return mine / theirs if mine and theirs else None


def derived_ratio(shape, regime, recorded):
    """(ours / cuBLASLt block, this run) / (peer / cuBLASLt block, recorded); None without all four."""
    here = ratio(shape, "cublaslt_block", regime)
    for row in recorded["rows"]:
        same = all(row[key] == shape[key] for key in ("m", "n", "k", "out_dtype")) and row["regime"] == regime
        if same and here:
            return here / (row["deepgemm_us"] / row["cublaslt_block_us"])
    return None


def recorded_groups(shape, regime, recorded):
    """The recorded row of the same groups, or None."""
    wanted = dict(shape["groups"], n=shape["n"], k=shape["k"], out_dtype=shape["out_dtype"], regime=regime)
    return next((row for row in recorded["grouped"] if all(row[key] == value for key, value in wanted.items())), None)


def derived_group_ratio(shape, regime, recorded):
    """(ours / loop of cuBLASLt, this run) / (peer / loop, recorded); None without all four."""
    here, row = ratio(shape, "cublaslt_loop", regime), recorded_groups(shape, regime, recorded)
    if not here or not row or "cublaslt_loop_us" not in row:
        return None
    return here / (row["deepgemm_us"] / row["cublaslt_loop_us"])


def geometric_mean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def decode_goal_us(shape):
    """The goal for few rows of weights above 20 MB: 1.15 times the bytes at 4.6 TB/s, and 2.4 us. None of others."""
    weights = shape["n"] * shape["k"]
    return 1.15 * shape["fewest_bytes"] / 4.6e6 + 2.4 if weights > 20e6 and shape["m"] <= 128 else None


def ceiling(result, name, regime):
    return next((c[regime] for c in result["ceilings"] if c["name"] == name), None)


def floor_us(shape, result, regime):
    """The least time by the ceilings of the run: tensor cores or memory, whichever is slower. None without ceilings."""
    flops, read = ceiling(result, "fp8_tensorwise", regime), ceiling(result, "read", regime)
    if not flops or not read:
        return None
    products = 2 * shape["m"] * shape["n"] * shape["k"]
    return max(products / (flops * 1e6), shape["fewest_bytes"] / (read * 1e3))
