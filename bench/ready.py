#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long after the start of a process a kernel made for one m has run, as a result file for `bench/tables.py --ready`.

    bench/ready.py [--build build-dev] [--output ready.json] [--driver LIBRARY] [--commit TEXT]

Each sample is a process of bench_first_launch (`ninja -C build-dev benches`): it opens the device, prepares a product
under the m policy exact, and launches it once. The kernel comes from a cache on disk, or is compiled by NVRTC
(JITGEMM_NVRTC names it; without one that half is left out). On a machine without a GPU, --driver takes the tests' fake
one, and what is left is the cost of this library and of the compiler.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHAPES = [(m, n, k) for n, k in ((2112, 7168), (4096, 4096)) for m in (1, 64, 4533)]


def first_launch(program, shape, driver, environment):
    """The parts of one process in ms, their sum among them; or the text of its error."""
    start = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    command = [str(program), str(start), *map(str, shape), "exact", *([driver] if driver else [])]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        return None, done.stderr.strip()
    parts = json.loads(done.stdout)
    return {**parts, "all_ms": sum(parts.values())}, ""


def rows_of(program, samples, driver):
    rows, why = [], ""
    with tempfile.TemporaryDirectory() as folder:
        ways = {"compiled": {"JITGEMM_CACHE": "memory"}, "disk": {"JITGEMM_CACHE_DIR": os.environ.get("JITGEMM_CACHE_DIR", folder)}}
        for origin, environment in ways.items():
            for shape in SHAPES:
                # One process before: the compiler or the cache's file is in memory then, and the cache filled.
                first, why = first_launch(program, shape, driver, environment)
                if first is None:
                    print(f"ready: {origin}, {shape}: {why}", file=sys.stderr)
                    continue
                taken = [first_launch(program, shape, driver, environment)[0] for _ in range(samples)]
                taken = [t for t in taken if t]
                if not taken:
                    print(f"ready: {origin}, {shape}: the first launch alone succeeded", file=sys.stderr)
                    continue
                rows.append({"m": shape[0], "n": shape[1], "k": shape[2], "policy": "exact", "from": origin,
                             "median_ms": statistics.median(t["all_ms"] for t in taken), "samples": taken})
    return rows, why


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build-dev", type=pathlib.Path)
    parser.add_argument("--output", default="ready.json", type=pathlib.Path)
    parser.add_argument("--samples", default=3, type=int)
    parser.add_argument("--driver", default="", help="a driver library in place of the GPU's")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    rows, why = rows_of(options.build / "bin" / "bench_first_launch", options.samples, options.driver)
    if not rows:
        print(f"ready: nothing could be measured: {why}", file=sys.stderr)
        return 1
    options.output.write_text(json.dumps({
        "schema": 1, "verb": "ready", "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "device": "a fake driver whose calls do nothing" if options.driver else "its GPU",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(), "commit": options.commit,
        "samples": options.samples, "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
