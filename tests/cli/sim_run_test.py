#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""jitgemm sim: the example of the documents through the command, its outputs, flags and exit codes.

Usage: sim_run_test.py JITGEMM FOLDER_OF_THE_EXAMPLE
"""

import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

JITGEMM, EXAMPLE = sys.argv[1], pathlib.Path(sys.argv[2])


class SimRun(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        for name in ("transpose.ptx", "transpose.json"):
            shutil.copy(EXAMPLE / name, self.folder)

    def call(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess:
        done = subprocess.run([JITGEMM, *arguments], capture_output=True, text=True, cwd="/")
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def run_example(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess:
        return self.call("sim", "run", f"{self.folder}/transpose.ptx", "--launch", f"{self.folder}/transpose.json",
                         *arguments, code=code)

    def change(self, name: str, piece: str, by: str):
        path = self.folder / name
        text = path.read_text()
        self.assertIn(piece, text)
        path.write_text(text.replace(piece, by), errors="surrogateescape")

    def test_the_example_runs_and_writes_its_output(self):
        self.assertIn("1 of 1 buffers as expected", self.run_example().stdout)
        words = struct.unpack("<4096f", (self.folder / "y.bin").read_bytes())
        self.assertEqual(words[1], 64)
        self.assertEqual(words[64 * 5 + 7], 64 * 7 + 5)

    def test_statistics_name_conflicts_and_waits(self):
        text = self.run_example("--stats").stdout
        for part in ("ld.shared.f32", "named barrier", "bytes by space", "instructions by group"):
            self.assertIn(part, text)
        document = json.loads(self.run_example("--stats", "--json").stdout)
        self.assertEqual(document["schema"], 1)
        statistics = document["launches"][0]["statistics"]
        load = [a for a in statistics["shared_accesses"] if a["text"].startswith("ld.shared")]
        self.assertEqual(len(load), 1)
        # 4 CTAs of 32 warps, 31 conflicts each.
        self.assertEqual((load[0]["requests"], load[0]["conflicts"]), (128, 128 * 31))
        self.assertEqual(statistics["bytes"]["global"], {"read": 4096 * 4, "written": 4096 * 4})
        self.assertEqual(len(statistics["warps"]), 32)
        self.assertTrue(any(w["waits"] for w in statistics["warps"]))

    def test_a_trace_has_a_line_for_each_warp_instruction(self):
        self.run_example("--trace", f"{self.folder}/trace.txt")
        lines = (self.folder / "trace.txt").read_text().splitlines()
        document = json.loads(self.run_example("--json").stdout)
        executed = sum(launch["warp_instructions"] for launch in document["launches"])
        named = [line for line in lines if " cta " in line and "waits for" not in line and "goes on" not in line]
        # A barrier's end is told by "goes on"; the last warp of each CTA does not wait.
        waits = sum("goes on after" in line for line in lines)
        self.assertEqual(len(named) + waits, executed)
        self.assertNotIn("statistics", document["launches"][0])

    def test_seeds_give_the_same_result_and_repeat_themselves(self):
        digests = {json.loads(self.run_example("--json", "--seed", str(seed)).stdout)["buffers"][1]["sha256"]
                   for seed in (0, 1, 2)}
        self.assertEqual(len(digests), 1)
        for name in ("a", "b"):
            self.run_example("--seed", "5", "--trace", f"{self.folder}/{name}")
        # Buffers are at other addresses in another process.
        a, b = (re.sub("0x[0-9a-f]{9,}", "address", (self.folder / name).read_text()) for name in ("a", "b"))
        self.assertEqual(a, b)

    def test_a_wrong_result_is_exit_code_1(self):
        self.change("transpose.json", '"expect": {"iota": {"start": 0', '"expect": {"iota": {"start": 1')
        done = self.run_example(code=1)
        self.assertIn("buffer 'z'", done.stderr)
        self.assertEqual(len(json.loads(self.run_example("--json", code=1).stdout)["mismatches"]), 1)

    def test_a_missing_barrier_is_a_fault_with_its_line(self):
        self.change("transpose.ptx", "  bar.sync 0;\n", "")
        done = self.run_example(code=1)
        self.assertIn("SIMULATOR_FAULT", done.stderr)
        lines = (self.folder / "transpose.ptx").read_text().splitlines()
        load = next(i for i, line in enumerate(lines, 1) if "ld.shared.f32" in line)
        self.assertIn(f"memory never written was read before: shared offset 0x480 at line {load}", done.stderr)
        self.assertEqual(json.loads(self.run_example("--json", code=1).stdout)["status"], "SIMULATOR_FAULT")
        self.run_example("--sanitize", "off", code=1)  # no fault, but the wrong result

    def test_limits_and_wrong_inputs_are_told(self):
        self.assertIn("100 warp instructions", self.run_example("--step-limit", "100", code=1).stderr)
        self.assertIn("memory_limit", self.run_example("--memory-limit", "100", code=1).stderr)
        self.assertIn("numerics", self.run_example("--numerics", "fast", code=2).stderr)
        self.change("transpose.json", '"u32": 64', '"u32": -64')
        self.assertIn("launches[0].parameters[2].u32: expected a value of U32, found -64",
                      self.run_example(code=2).stderr)
        self.change("transpose.json", "{", "[")
        self.run_example(code=4)
        self.change("transpose.ptx", "bar.sync 0;", "bra.nowhere;")
        self.call("sim", "entries", f"{self.folder}/transpose.ptx", code=2)

    def test_every_error_is_one_json_document_if_asked_for(self):
        ptx, launch = f"{self.folder}/transpose.ptx", f"{self.folder}/transpose.json"
        self.change("transpose.ptx", "st.shared.f32", "/* caf\udce9 */ st.shared.f32")
        for code, arguments in (
            (2, ("sim",)), (2, ("sim", "run", ptx)), (2, ("sim", "run", ptx, "--launch", launch, "--bogus")),
            (2, ("sim", "run", ptx, "--launch", launch, "--seed", "-1")),
            (2, ("sim", "run", ptx, "--launch", launch, "--seed", "18446744073709551616")),
            (2, ("sim", "run", ptx, "--launch", launch, "--step-limit", "0")),
            (2, ("sim", "run", ptx, "--launch", launch, "--memory-limit", "-1")),
            (1, ("sim", "run", ptx, "--launch", "no\udcff")), (2, ("sim", "run", launch, "--launch", launch)),
            (2, ("sim", "run", "/dev/zero", "--launch", launch)), (1, ("sim", "run", ptx, "--launch", "/")),
            (1, ("sim", "run", ptx, "--launch", launch, "--trace", "/dev/full")),
            (1, ("sim", "run", ptx, "--launch", launch, "--step-limit", "1")),
        ):
            document = json.loads(self.call("--json", *arguments, code=code).stdout)
            self.assertEqual(set(document), {"status", "message"}, arguments)

    def test_a_description_that_is_no_json_is_named_by_line_and_column(self):
        self.change("transpose.json", '"launches": [', '"launches": [,')
        line = 1 + (self.folder / "transpose.json").read_text().split('"launches"')[0].count("\n")
        self.assertIn(f"not JSON: line {line}, column ", self.run_example(code=4).stderr)

    def test_entries_lists_parameters(self):
        self.assertIn("4 bytes, aligned to 4: n", self.call("sim", "entries", f"{self.folder}/transpose.ptx").stdout)
        document = json.loads(self.call("--json", "sim", "entries", f"{self.folder}/transpose.ptx").stdout)
        self.assertEqual([p["offset"] for p in document["entries"][0]["parameters"]], [0, 8, 16])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
