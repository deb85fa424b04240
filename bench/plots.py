#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plots of result files: time and fraction of the ceiling against m, one PNG and one SVG a shape family.

    bench/plots.py result.json [more.json ...] [--folder docs/plots] [--regime rested]

Needs matplotlib. The ceiling is the slower of tensor cores and memory, as the same run measured them.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

import results

ROOT = pathlib.Path(__file__).resolve().parent.parent
SERIES = {  # contender -> label, colour, marker
    "jitgemm": ("jitgemm", "#1b6ca8", "o"),
    "cublaslt_block": ("cuBLASLt, block scales", "#c1440e", "s"),
    "cublaslt_tensorwise": ("cuBLASLt, tensor-wise (no block scales)", "#888888", "^"),
}


def groups(result, out_dtype):
    """(family, n, k) -> shapes in the order of m; one m alone is no curve."""
    found = {}
    for family in ("seed", "decode", "odd"):
        for shape in results.shapes_of(result, family, out_dtype):
            found.setdefault((family, shape["n"], shape["k"]), []).append(shape)
    return {key: shapes for key, shapes in found.items() if len(shapes) > 1}


def curve(shapes, name, regime):
    pick = results.ours if name == "jitgemm" else lambda s: results.contender(s, name)
    points = [(s, results.time_us(pick(s), regime)) for s in shapes]
    return [(s, t) for s, t in points if t]


def plot(plt, result, shapes, title, regime, path):
    names = list(SERIES)
    names += sorted({c["name"] for s in shapes for c in s["contenders"]} - set(names))
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
    for name in names:
        points = curve(shapes, name, regime)
        if not points:
            continue
        label, colour, marker = SERIES.get(name, (name, None, "d"))
        style = {"label": label, "color": colour, "marker": marker, "markersize": 4, "linewidth": 1.2}
        left.plot([s["m"] for s, _ in points], [t for _, t in points], **style)
        floors = [(s["m"], results.floor_us(s, result, regime), t) for s, t in points]
        floors = [(m, floor / t) for m, floor, t in floors if floor]
        if floors:
            right.plot([m for m, _ in floors], [f for _, f in floors], **style)
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xlabel("m")
        axes.grid(True, linewidth=0.3)
    left.set_yscale("log")
    left.set_ylabel("time of a call, us")
    right.set_ylabel("fraction of the ceiling")
    right.set_ylim(0, 1.05)
    left.legend(fontsize=8)
    figure.suptitle(f"{title}, {regime}: {result['device']}, {result['date'][:10]}", fontsize=10)
    figure.tight_layout()
    figure.savefig(path.with_suffix(".png"), dpi=110, metadata={"Software": None})
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", help="result files of jitgemm bench")
    parser.add_argument("--folder", default=ROOT / "docs" / "plots", type=pathlib.Path)
    parser.add_argument("--regime", choices=("rested", "sustained"), default="rested")
    options = parser.parse_args()
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "jitgemm"  # the same input gives the same file
    from matplotlib import pyplot

    result = results.merge(results.labelled([results.load(path) for path in options.results], ""))
    options.folder.mkdir(parents=True, exist_ok=True)
    for out_dtype in ("BF16", "F32"):
        for (family, n, k), shapes in groups(result, out_dtype).items():
            name = f"{family}_{n}_{k}_{out_dtype.lower()}_{options.regime}"
            title = f"n = {n}, k = {k}, {out_dtype} out"
            plot(pyplot, result, shapes, title, options.regime, options.folder / name)
            print(options.folder / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
