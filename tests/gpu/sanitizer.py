#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compute-sanitizer over a small subset of single and grouped products on a GPU: memcheck and racecheck.

    tests/gpu/sanitizer.py [--build build-dev] [--output sanitizer.json] [--tool PATH]

The tool is --tool, COMPUTE_SANITIZER, or what PATH and the usual folder of a CUDA toolkit have; without one the exit code
is 77. Every run is in the JSON file with its summary and its first findings; exit code 1 where there are any.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# (binary, pattern of test names): tails, feeds, every layout of groups, stores by TMA and without.
SINGLE = ("gemm_tests", "*_gpu_*tails*:*_gpu_*odd*:*_gpu_*padded*:*_gpu_*unaligned*:*_gpu_*split*:*_gpu_*few*")
GROUPED = ("grouped_tests", ":".join(f"*_gpu_{name}" for name in (
    "indices_any_start", "indices_change_every_row_of_few", "indices_out_of_range_are_nobodys",
    "indices_ungrouped_rows_zeroed", "offsets_aligned_32", "offsets_zeroed", "pointers_leave_rows_out",
    "pointers_of_garbage", "masked_few_rows", "masked_padded_odd", "masked_zeroed_of_few", "rows_of_4_bytes", "k_tail_few_rows",
    "packed_scales_masked", "wide_indices_f32", "wide_masked_bf16", "wide_odd_rows", "bf16_masked_few_rows",
    "split_masked_zeroed", "swapped_split_masked", "swapped_shared_rows_masked")))
# Watching shared memory makes a kernel some hundred times slower: fewer, smaller products.
SINGLE_FEW = ("gemm_tests", "*_gpu_*tails*:*_gpu_*odd*")
GROUPED_FEW = ("grouped_tests", ":".join(f"*_gpu_{name}" for name in (
    "indices_change_every_row_of_few", "pointers_few_rows", "masked_few_rows", "rows_of_4_bytes_few_rows",
    "masked_zeroed_of_few", "wide_indices_bf16", "swapped_split_indices_zeroed", "swapped_shared_rows_indices_zeroed")))
RUNS = (("memcheck", SINGLE), ("memcheck", GROUPED), ("racecheck", SINGLE_FEW), ("racecheck", GROUPED_FEW))
SECONDS = 240


def find_tool(given):
    for name in (given, os.environ.get("COMPUTE_SANITIZER"), "compute-sanitizer", "/usr/local/cuda/bin/compute-sanitizer"):
        if name and shutil.which(name):
            return shutil.which(name)
    return None


def run(tool, check, folder, subset):
    binary, pattern = subset
    command = [tool, "--tool", check, "--print-limit", "5", "--error-exitcode", "9", folder / "bin" / binary,
               f"--gtest_filter={pattern}", "--gtest_brief=1"]
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS,
                              env={**os.environ, "JITGEMM_TEST_DEVICE": "cuda:0"})
        output, code = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode("utf-8", "replace")
        code = "timeout"
    tests = re.search(r"\[=+\] (\d+) tests? from", output)
    failed = re.findall(r"\[  FAILED  \] (\S+)", output)
    summaries = re.findall(r"=+ ((?:ERROR|RACECHECK) SUMMARY: .*)", output)
    findings = [line for line in output.splitlines() if line.startswith("=========") and "SUMMARY" not in line
                and "COMPUTE-SANITIZER" not in line]
    return {"check": check, "binary": binary, "filter": pattern, "tests": int(tests.group(1)) if tests else 0,
            "failed_tests": sorted(set(failed)), "exit_code": code, "summary": summaries, "findings": findings[:60],
            "tail": output.splitlines()[-5:], "seconds": round(time.monotonic() - start, 1)}


def clean(found):
    return found["exit_code"] == 0 and found["tests"] > 0 and not found["failed_tests"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build-dev", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--tool")
    options = parser.parse_args()
    tool = find_tool(options.tool)
    if tool is None:
        print("no compute-sanitizer: neither --tool, COMPUTE_SANITIZER nor PATH has one")
        return 77
    version = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout.strip().splitlines()
    found = []
    for check, subset in RUNS:
        found.append(run(tool, check, options.build, subset))
        last = found[-1]
        print(f"{check:<10} {last['binary']:<14} {last['tests']:>3} tests {last['seconds']:>6} s  exit {last['exit_code']}  "
              f"{'; '.join(last['summary'])}", flush=True)
        if options.output:
            document = {"schema": 1, "verb": "sanitizer", "tool": version[-1] if version else "", "runs": found}
            options.output.write_text(json.dumps(document, indent=1) + "\n")
    return 0 if all(map(clean, found)) else 1


if __name__ == "__main__":
    sys.exit(main())
