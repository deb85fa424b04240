#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/performance.md from result files: the only writer of what is between its markers.

    bench/tables.py result.json [more.json ...] [--jit jit.json] [--document docs/performance.md] [--check]

A table is written between `<!-- table NAME -->` and `<!-- end NAME -->`; what the result files do not hold keeps the
table that is there. --check writes nothing and exits with 1 where the document would change.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys

import results

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORDED = ROOT / "bench" / "recorded" / "deepgemm_h200.json"


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def microseconds(value):
    return "-" if value is None else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def table(header, rows, text_columns=0):
    """Markdown; the first columns are text, the others numbers."""
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("|" + "|".join("---" if i < text_columns else "--:" for i in range(len(header))) + "|")
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def source_line(result, shapes):
    commits = sorted({s["commit"] for s in shapes})
    dates = sorted({s["date"][:10] for s in shapes})
    peers = result["cublaslt"] if result["cublaslt"][:1].isdigit() else "none"
    return (f"{result['device']}, driver {result['driver_version'] // 1000}.{result['driver_version'] % 1000 // 10}, "
            f"cuBLASLt {peers}; {', '.join(dates)}, commit {', '.join(commits)}.")


def label(contender):
    """How a plan came about, where it was not the model."""
    return {"override": " (override)", "database": " (tuned)"}.get(contender["source"], "")


def error_of(contender):
    return f"{contender['check']['relative_l2']:.2e}" if contender and "check" in contender else "-"


def timed_external(shapes, regime):
    """Names of the peers from outside that this run timed."""
    return sorted({c["name"] for s in shapes for c in results.peers(s)
                   if not c["name"].startswith("cublaslt") and results.time_us(c, regime)})


def dense_table(result, shapes, regime, recorded):
    """Ours beside the peers of the same run and, where DeepGEMM is none, beside its recorded figures by way of cuBLASLt."""
    external = timed_external(shapes, regime)
    derives = "deepgemm" not in external
    several = any(results.best_of_ours(s, regime)[1] > 1 for s in shapes)
    goals = regime == "rested" and any(results.decode_goal_us(s) for s in shapes)
    header = ["m", "n", "k", "ours us", "TFLOP/s", "of ceiling"] + (["goal us"] if goals else [])
    header += ["best of the plans us"] if several else []
    header += ["block us", "tensorwise us", *[f"{name} us" for name in external], "ours / block", "ours / tensorwise",
               *[f"ours / {name}" for name in external], *(["ours / DeepGEMM, derived"] if derives else []),
               "spread %" if regime == "rested" else "MHz / W", "error"]
    rows = []
    for shape in shapes:
        mine = results.ours(shape)
        time = results.time_us(mine, regime)
        floor = results.floor_us(shape, result, regime)
        row = [str(shape["m"]), str(shape["n"]), str(shape["k"])]
        row += [microseconds(time) + (label(mine) if mine and time else ""),
                number(mine[regime]["tflops"], 0) if time else "-", number(floor / time if floor and time else None)]
        if goals:
            row.append(microseconds(results.decode_goal_us(shape)))
        if several:
            best, count = results.best_of_ours(shape, regime)
            row.append(microseconds(results.time_us(best, regime)) + (f" of {count}" if count > 1 else ""))
        for name in ("cublaslt_block", "cublaslt_tensorwise", *external):
            row.append(microseconds(results.time_us(results.contender(shape, name), regime)))
        row += [number(results.ratio(shape, name, regime)) for name in ("cublaslt_block", "cublaslt_tensorwise", *external)]
        if derives:
            row.append(number(results.derived_ratio(shape, regime, recorded)))
        if not time:
            row.append("-")
        elif regime == "rested":
            row.append(number(100 * mine[regime]["spread"], 1))
        else:
            row.append(f"{mine[regime]['sm_clock_mhz']:.0f} / {mine[regime]['power_w']:.0f}")
        row.append(error_of(mine))
        rows.append(row)
    means = [f"{shown} {number(results.geometric_mean(results.ratio(s, name, regime) for s in shapes))}"
             for shown, name in (("block", "cublaslt_block"), ("tensorwise", "cublaslt_tensorwise"),
                                 *[(name, name) for name in external])]
    if derives:
        derived = results.geometric_mean(results.derived_ratio(s, regime, recorded) for s in shapes)
        means.append(f"DeepGEMM (derived) {number(derived)}")
    text = f"{source_line(result, shapes)} Geometric means of our time over the peer's: {', '.join(means)}."
    return text + "\n\n" + table(header, rows)


def grouped_table(result, shapes, kind, regime, recorded):
    """Ours in each form beside the peers of the same run, which get padded copies."""
    contiguous = kind == "contiguous"
    external = timed_external(shapes, regime)
    derives = "deepgemm" not in external
    header = ["groups", "rows"] + ([] if contiguous else ["mean", "in use"]) + ["n", "k", "ours us"]
    header += ["by pointers us", "padded us"] if contiguous else []
    header += ["TFLOP/s", "GB/s", "of ceiling", "loop us", *[f"{name} us" for name in external], "ours / loop"]
    header += [f"ours / {name}" for name in external]
    header += ["ours / DeepGEMM, derived" if contiguous else "DeepGEMM us, other run"] if derives else []
    header += ["error"]
    rows = []
    for shape in shapes:
        groups, mine = shape["groups"], results.ours(shape)
        time, floor = results.time_us(mine, regime), results.floor_us(shape, result, regime)
        row = [str(groups["count"]), str(groups["rows"])]
        row += [] if contiguous else [str(groups["mean"]), str(shape["m"])]
        row += [str(shape["n"]), str(shape["k"]), microseconds(time) + (label(mine) if mine and time else "")]
        if contiguous:
            for form, layout in (("tight", "row_pointers"), ("padded", "row_indices")):
                row.append(microseconds(results.time_us(results.ours_as(shape, form, layout), regime)))
        row += [number(mine[regime][rate], 0) if time else "-" for rate in ("tflops", "gb_s")]
        row.append(number(floor / time if floor and time else None))
        row += [microseconds(results.time_us(results.contender(shape, name), regime))
                for name in ("cublaslt_loop", *external)]
        row += [number(results.ratio(shape, name, regime)) for name in ("cublaslt_loop", *external)]
        if not derives:
            pass
        elif contiguous:
            row.append(number(results.derived_group_ratio(shape, regime, recorded)))
        else:
            there = results.recorded_groups(shape, regime, recorded)
            row.append(f"{there['deepgemm_us']:.1f} ({there['rows_in_use']} in use)" if there else "-")
        rows.append([*row, error_of(mine)])
    means = ", ".join(f"{name} {number(results.geometric_mean(results.ratio(s, name, regime) for s in shapes))}"
                      for name in ("cublaslt_loop", *external))
    text = f"{source_line(result, shapes)} Geometric means of our time over the peer's: {means}"
    if contiguous and derives:
        derived = results.geometric_mean(results.derived_group_ratio(s, regime, recorded) for s in shapes)
        text += f", DeepGEMM (derived) {number(derived)}"
    return text + ".\n\n" + table(header, rows)


def ceilings_table(result):
    rows = [[c["name"], c["unit"], number(c["rested"], 0), number(c["sustained"], 0)] for c in result["ceilings"]]
    return f"{result['device']}, {result['date'][:10]}.\n\n" + table(["what", "unit", "rested", "sustained"], rows, 2)


def pdl_table(result):
    """Launches that wait for the one in front to end, and launches that may begin before: the same for all."""
    names = sorted({c["name"] for s in result["shapes"] for c in results.peers(s) if c.get("programmatic")})
    rows = []
    for shape in result["shapes"]:
        off, on = (results.time_us(results.ours(shape, early), "rested") for early in (False, True))
        row = [str(shape["m"]), str(shape["n"]), str(shape["k"]), microseconds(off), microseconds(on),
               number(on / off if on and off else None)]
        row.append(microseconds(results.time_us(results.contender(shape, "cublaslt_block"), "rested")))
        for name in names:
            for early, mine in ((False, off), (True, on)):
                time = results.time_us(results.contender(shape, name, early), "rested")
                row += [microseconds(time), number(mine / time if mine and time else None)]
        rows.append(row)
    header = ["m", "n", "k", "ours us", "ours, edges on us", "on / off", "block us (has no edges)"]
    for name in names:
        header += [f"{name} us", "ours / it", f"{name}, edges on us", "ours / it, both on"]
    return source_line(result, result["shapes"]) + "\n\n" + table(header, rows)


def scales_table(result):
    """Row-major scales beside column-major ones, the same plan for both."""
    rows = []
    for shape in result["shapes"]:
        times = {False: None, True: None}
        for contender in shape["contenders"]:
            if contender["name"] != "jitgemm":
                continue
            columns = contender["variant"].endswith("scales=column")
            times[columns] = times[columns] or results.time_us(contender, "rested")
        rows.append([str(shape["m"]), str(shape["n"]), str(shape["k"]), *[microseconds(t) for t in times.values()],
                     number(times[False] / times[True] if all(times.values()) else None)])
    header = ["m", "n", "k", "row-major us", "column-major us", "row / column"]
    return source_line(result, result["shapes"]) + "\n\n" + table(header, rows)


def python_peers_table(result):
    """Ours beside peers that Python files are."""
    names = timed_external(result["shapes"], "rested")
    rows = []
    for shape in result["shapes"]:
        row = [shape["out_dtype"], str(shape["m"]), str(shape["n"]), str(shape["k"]),
               microseconds(results.time_us(results.ours(shape), "rested"))]
        for name in ("cublaslt_block", *names):
            row += [microseconds(results.time_us(results.contender(shape, name), "rested")),
                    number(results.ratio(shape, name, "rested"))]
        rows.append([*row, *[error_of(results.contender(shape, name)) for name in names]])
    header = ["out", "m", "n", "k", "ours us", "block us", "ours / block"]
    for name in names:
        header += [f"{name} us", f"ours / {name}"]
    header += [f"error of {name}" for name in names]
    return source_line(result, result["shapes"]) + "\n\n" + table(header, rows, 1)


def policies_table(shapes, ready=None):
    """What exact m buys: the same shape under the policies exact, class and any; and when its kernel is ready."""
    rows = []
    after = {(r["m"], r["n"], r["k"], r["policy"], r["from"]): r["median_ms"] for r in ready["rows"]} if ready else {}
    for shape in shapes:
        times = {"exact": None, "class": None, "any": None}
        for contender in shape["contenders"]:
            if contender["name"] != "jitgemm":
                continue
            policy = next((p for p in ("class", "any") if contender["variant"].endswith("m=" + p)), "exact")
            times[policy] = times[policy] or results.time_us(contender, "rested")
        if times["exact"] and (times["class"] or times["any"]):
            rows.append([str(shape["m"]), str(shape["n"]), str(shape["k"]), *[microseconds(t) for t in times.values()],
                         *[number(times[p] / times["exact"] if times[p] else None) for p in ("class", "any")]])
            if ready:
                key = (shape["m"], shape["n"], shape["k"])
                rows[-1] += [number(after.get((*key, policy, origin)), 0)
                             for policy, origin in (("exact", "compiled"), ("exact", "disk"))]
    header = ["m", "n", "k", "exact us", "class us", "any us", "class / exact", "any / exact"]
    if ready:
        header += ["exact ready, compiled ms", "exact ready, from disk ms"]
    if not rows:
        return None
    text = table(header, rows)
    if ready:
        text = (f"Ready: from the start of a process to the end of its first launch, medians of {ready['samples']}; "
                f"{ready['machine']}, {ready['device']}, {ready['date'][:10]}, commit {ready['commit']}.\n\n" + text)
    return text


def jit_table(jit):
    rows = [[row["what"], row["unit"], number(row["median"], row.get("digits", 1)), number(100 * row["spread"], 0)]
            for row in jit["rows"]]
    return (f"{jit['machine']}, {jit['date'][:10]}, commit {jit['commit']}; {jit['clock']}; {jit['driver']}.\n\n"
            + table(["what", "unit", "median", "spread %"], rows, 2))


def labelled_tables(documents, ready):
    """Those of runs that are for a table of their own."""
    tables = {}
    for label, make in (("pdl", pdl_table), ("python_peers", python_peers_table), ("scales", scales_table),
                        ("policies", lambda r: policies_table(r["shapes"], ready))):
        result = results.merge(results.labelled(documents, label))
        text = make(result) if result else None
        if text:
            tables[label] = text
    return tables


def all_tables(result, jit, recorded):
    tables = {}
    if jit is not None:
        tables["jit"] = jit_table(jit)
    if result is None:
        return tables
    if result["ceilings"]:
        tables["ceilings"] = ceilings_table(result)
    for family in ("seed", "decode", "odd"):
        for out_dtype in ("BF16", "F32"):
            shapes = results.shapes_of(result, family, out_dtype)
            for regime in ("rested", "sustained"):
                timed = [s for s in shapes if any(results.time_us(c, regime) for c in s["contenders"])]
                if timed:
                    tables[f"{family}_{out_dtype.lower()}_{regime}"] = dense_table(result, timed, regime, recorded)
    for kind in ("contiguous", "masked"):
        shapes = results.shapes_of(result, kind, "BF16")
        for regime in ("rested", "sustained"):
            timed = [s for s in shapes if any(results.time_us(c, regime) for c in s["contenders"])]
            if timed:
                tables[f"{kind}_{regime}"] = grouped_table(result, timed, kind, regime, recorded)
    return tables


def replace(document, tables):
    """The document with the tables between their markers; the names that it has no markers for."""
    missing = []
    for name, text in tables.items():
        pattern = re.compile(rf"(<!-- table {name} -->\n).*?(<!-- end {name} -->)", re.S)
        document, count = pattern.subn(lambda m, text=text: m.group(1) + text + "\n" + m.group(2), document)
        if count == 0:
            missing.append(name)
    return document, missing


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="*", help="result files of jitgemm bench")
    parser.add_argument("--jit", help="result file of bench/jit.py")
    parser.add_argument("--ready", help="result file of bench/ready.py")
    parser.add_argument("--document", default=ROOT / "docs" / "performance.md", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    documents = [results.load(path) for path in options.results]
    ready = json.loads(pathlib.Path(options.ready).read_text()) if options.ready else None
    jit = json.loads(pathlib.Path(options.jit).read_text()) if options.jit else None
    recorded = json.loads(RECORDED.read_text())
    before = options.document.read_text()
    found = all_tables(results.merge(results.labelled(documents, "")), jit, recorded)
    after, missing = replace(before, {**found, **labelled_tables(documents, ready)})
    if missing:
        print(f"{options.document} has no place for: {', '.join(missing)}", file=sys.stderr)
    if options.check:
        return 1 if after != before or missing else 0
    options.document.write_text(after)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
