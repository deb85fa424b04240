#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compilation and host cost on this machine, as a result file for `bench/tables.py --jit`.

    bench/jit.py [--build build-dev] [--output jit.json] [--kernels 200]

Whole processes are timed here: the command compiling a product with nothing cached, beside the same binary compiling an
empty kernel. What happens inside one process comes from bench_jit (`ninja -C build-dev benches`). Without a GPU the
driver is the tests' fake one, whose calls do nothing: launches then show the cost of this library alone. NVRTC is in the
page cache.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SAMPLES = 9
PRODUCTS = (
    ("4096 x 4096 x 4096, sm_90a", ("-m", "4096", "-n", "4096", "-k", "4096", "--arch", "sm_90a")),
    ("64 x 2112 x 7168, sm_90a", ("-m", "64", "-n", "2112", "-k", "7168", "--arch", "sm_90a")),
    ("4096 x 4096 x 4096, sm_100a", ("-m", "4096", "-n", "4096", "-k", "4096", "--arch", "sm_100a")),
)


def row(what, unit, samples, digits=1):
    median = statistics.median(samples)
    return {"what": what, "unit": unit, "median": median, "spread": (max(samples) - min(samples)) / median,
            "digits": digits, "samples": samples}


def finish(command):
    """Wall and processor seconds of a process, and the most KiB that it held."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command}: exit code {process.returncode}")
    return {"wall": time.perf_counter() - start, "cpu": usage.ru_utime + usage.ru_stime}, usage.ru_maxrss


def cold_rows(jitgemm, clock):
    """A process each: start, NVRTC opened, one kernel compiled, end. The floor and the products take turns."""
    base = [jitgemm, "--cache-mode", "memory", "compile", "block_scaled_mm"]
    commands = {"the empty kernel": [*base, "--floor"]}
    commands.update({name: [*base, *flags] for name, flags in PRODUCTS})
    for command in commands.values():
        finish(command)
    samples = {name: [] for name in commands}
    for _ in range(SAMPLES):
        for name, command in commands.items():
            samples[name].append(1e3 * finish(command)[0][clock])
    rows = [row(f"compile, cold, a whole process: {name}", "ms", times) for name, times in samples.items()]
    floor = statistics.median(samples["the empty kernel"])
    rows += [row(f"over the empty kernel's: {name}", "ratio", [t / floor for t in samples[name]], 2)
             for name, _ in PRODUCTS]
    return rows


def prewarm(jitgemm, kernels, jobs):
    """Seconds, and the most KiB held, of a process that compiles so many distinct kernels into an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = pathlib.Path(folder) / "many.json"
        manifest.write_text(json.dumps({
            "schema": 1, "name": "many", "description": "Distinct kernels: m is a constant of each.",
            "defaults": {"op": "block_scaled_mm", "group_n": 128, "group_k": 128, "a_dtype": "F8_E4M3",
                         "b_dtype": "F8_E4M3", "scale_dtype": "F32", "out_dtype": "BF16", "m_policy": "exact",
                         "archs": ["sm_90a"]},
            "entries": [{"name": "x", "m": [1, kernels], "n": 256, "k": 512}]}))
        return finish([jitgemm, "--cache-dir", folder, "prewarm", "-q", "-j", str(jobs), manifest])


def many_kernels_rows(jitgemm, count, clock):
    """Many kernels, the memory that they take against a quarter of them, and what more threads gain."""
    rows, cores = [], os.cpu_count()
    for kernels in (count // 4, count):
        seconds, memory = prewarm(jitgemm, kernels, cores)
        rows.append(row(f"prewarm of {kernels} distinct kernels, {cores} threads", "s", [seconds[clock]]))
        rows.append(row(f"the most memory that it held, {kernels} kernels", "MiB", [memory / 1024], 0))
    few = max(8, count // 25)
    times = [prewarm(jitgemm, few, jobs)[0]["wall"] for jobs in (1, cores)]
    rows.append(row(f"prewarm of {few} kernels: wall time with one thread over that with {cores}", "ratio",
                    [times[0] / times[1]], 2))
    return rows


def machine():
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{os.cpu_count()} virtual cores of {model}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build-dev", type=pathlib.Path)
    parser.add_argument("--output", default="jit.json", type=pathlib.Path)
    parser.add_argument("--kernels", default=200, type=int, help="of prewarm; 0: leave it out")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall",
                        help="cpu: processor time, for a machine that is busy otherwise")
    parser.add_argument("--commit", default=None)
    options = parser.parse_args()
    jitgemm = options.build / "bin" / "jitgemm"
    fake = options.build / "lib" / "libjitgemm_fake_cuda.so"
    has_gpu = subprocess.run([jitgemm, "selftest", "--device", "cuda:0"], capture_output=True).returncode == 0
    inside = subprocess.run([options.build / "bin" / "bench_jit", options.clock, *([] if has_gpu else [fake])], check=True,
                            capture_output=True, text=True)
    document = json.loads(inside.stdout)
    rows = cold_rows(jitgemm, options.clock) + document["rows"]
    if options.kernels:
        rows += many_kernels_rows(jitgemm, options.kernels, options.clock)
    commit = options.commit or subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True,
                                              text=True).stdout.strip()
    options.output.write_text(json.dumps({
        "schema": 1, "verb": "jit", "machine": f"{machine()}, {options.build.name}", "date": datetime.datetime.now(datetime.timezone.utc).isoformat(),
        "commit": commit, "clock": {"wall": "wall time", "cpu": "processor time, since the machine was busy otherwise"}[options.clock],
        "driver": document["device"] if has_gpu else "a fake driver whose calls do nothing",
        "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
