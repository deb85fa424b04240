#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the jitgemm command and looks at its output, its JSON and its exit codes: command_test.py JITGEMM"""

import json
import os
import pathlib
import stat
import struct
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

JITGEMM = None
OPERATION = "block_scaled_mm"


def run(*arguments, path=None, cwd=None):
    environment = dict(os.environ)
    if path is not None:
        environment["PATH"] = path
    return subprocess.run([JITGEMM, *arguments], capture_output=True, text=True, env=environment, cwd=cwd)


def run_json(*arguments):
    done = run("--json", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


class CommandLine(unittest.TestCase):
    GROUPED = "group_gemm_fp8_nt_groupwise"

    def refused(self, *arguments, words, code=2, **keywords):
        """One line on standard error that has every word, and nothing done."""
        done = run(*arguments, **keywords)
        self.assertEqual(done.returncode, code, (arguments, done.stdout, done.stderr))
        self.assertEqual(done.stdout, "", arguments)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("jitgemm: "), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr, arguments)

    def test_errors_have_one_form(self):
        for arguments, words in (
            ((), ("INVALID_ARGUMENT: verb: expected one of run, plan,", "found none")),
            (("frobnicate", "--top", "3"), ("verb: expected one of run,", "found 'frobnicate'")),
            (("cache", "burn"), ("verb: expected one of list, stat, clear; found 'burn'",)),
            (("plan",), ("operation is required",)),
            (("plan", OPERATION, "--frob"), ("--frob",)),
            (("plan", OPERATION, "-n", "many"), ("--n: expected a number", "'many'")),
            (("plan", OPERATION, "-m", "0", "--group-k", "0"), ("group_k",)),
        ):
            self.refused(*arguments, words=("INVALID_ARGUMENT", *words))
            document = json.loads(run("--json", *arguments).stdout)
            self.assertEqual(document["status"], "INVALID_ARGUMENT")
            self.assertIn(words[0].removeprefix("INVALID_ARGUMENT: "), document["message"])

    def test_what_would_be_ignored_is_refused(self):
        plan = ("plan", OPERATION)
        with tempfile.TemporaryDirectory() as folder:
            for arguments, words in (
                ((*plan, "--layout", "masked"), ("--layout", self.GROUPED, OPERATION)),
                ((*plan, "--groups", "3"), ("--groups", self.GROUPED, OPERATION)),
                (("plan", self.GROUPED, "--layout", "rows"), ("--layout: expected row_indices", "'rows'")),
                (("plan", self.GROUPED, "--layout", "columns"), ("layout: groups along k",)),
                ((*plan, "--zero-ungrouped"), ("--zero-ungrouped", self.GROUPED)),
                (("run", OPERATION, "--device", "sim", "--routing", "zzz"), ("--routing", self.GROUPED)),
                (("run", self.GROUPED, "--device", "sim", "--checksums"), ("--checksums", OPERATION)),
                (("run", OPERATION, "--device", "sim", "--checksums", "--no-verify"), ("--checksums", "--no-verify")),
                (("run", OPERATION, "--device", "sim", "--repeat", "-1"), ("--repeat", "-1", "0 to")),
                ((*plan, "--sm-count", "-4"), ("--sm-count", "-4", "1 to")),
                ((*plan, "--tile-m", "0"), ("--tile-m", "0", "1 to")),
                (("source", OPERATION, "--launch", "0"), ("--launch", "0", "1 to")),
                (("prewarm", "/dev/null", "-j", "-3"), ("--jobs", "-3", "1 to")),
                ((*plan, "--cache-mode", "foo"), ("cache_mode", "rw, ro or memory", "foo")),
                ((*plan, "--log", "foo"), ("log level", "warning", "foo")),
                ((*plan, "--tuning-db", folder + "/none.json"), ("--tuning-db", "expected a file", "none.json")),
                (("verify", "--device", "sim", "--max-macs", "1000"), ("--max-macs", "expected at least", "1000")),
                (("verify", "--device", "sim", "--manifest", "x"), ("--manifest", "--suite manifest", "grid")),
                (("selftest", "--device", "cuda:0", "--arch", "sm_90a"), ("--arch", "cuda:0")),
                (("compile", OPERATION, "--floor", "--ptx", "x"), ("--ptx", "--floor")),
                (("run", OPERATION, "--device", "sim", "--data", "x"), ("--data: expected seed", "'x'")),
                (("run", OPERATION, "--device", "sim", "--seed", "-1"), ("--seed", "expected an integer", "'-1'")),
                ((*plan, "--out-dtype", "x"), ("--out-dtype: expected one of", "'x'")),
                (("tune", "--list", "--merge", "x"), ("--list", "--merge")),
            ):
                self.refused(*arguments, words=words)

    def test_settings_of_the_environment_are_checked_at_once_too(self):
        with unittest.mock.patch.dict(os.environ, JITGEMM_CACHE="foo"):
            self.refused("plan", OPERATION, words=("cache_mode", "foo"))

    def test_a_list_is_one_argument(self):
        with tempfile.TemporaryDirectory() as folder:
            manifest = one_kernel_manifest(folder)
            self.assertEqual(run("prewarm", "--dry-run", "--arch", "sm_90a,sm_100a", manifest, "-q").stdout,
                             "2 kernels (dry run)\n")
        self.refused("bench", "-m", "64", "-n", "128", "-k", "256", OPERATION, "--regime", "cold", words=("cold",))

    def test_help_names_every_arch_and_dtype(self):
        text = " ".join(run("plan", "--help").stdout.split())
        self.assertIn("sm_90a, sm_100a, sm_100f, sm_103a, sm_103f", text)
        self.assertIn("F8_E4M3 or F8_E5M2; of groups also F16 or BF16", text)

    def test_every_document_begins_with_schema_and_verb(self):
        with tempfile.TemporaryDirectory() as folder:
            row = pathlib.Path(folder, "rows.json")
            row.write_text('{"schema": 1, "rows": []}')
            for arguments in (
                ("tune", "--list"),
                ("tune", "--merge", str(row)),
                ("tune", "--export", folder + "/all.json"),
                ("plan", OPERATION),
                ("cache", "stat"),
                ("prewarm", "--dry-run", one_kernel_manifest(folder)),
            ):
                document = run_json("--cache-dir", folder, *arguments)
                self.assertEqual(list(document)[:2], ["schema", "verb"], arguments)
                self.assertEqual(document["schema"], 1)
                self.assertTrue(document["verb"].startswith(arguments[0]))


def one_kernel_manifest(folder, **changes):
    path = pathlib.Path(folder, "one.json")
    path.write_text(json.dumps({
        "schema": 1, "name": "one", "description": "one kernel",
        "defaults": {"op": OPERATION, "archs": ["sm_90a"]},
        "entries": [{"name": "x", "m": 1, "n": 128, "k": 128, **changes}],
    }))
    return str(path)


class Prewarm(unittest.TestCase):
    def test_a_dry_run_counts_and_says_no_more(self):
        with tempfile.TemporaryDirectory() as folder:
            document = run_json("prewarm", "--dry-run", one_kernel_manifest(folder))
            self.assertEqual(document, {"schema": 1, "verb": "prewarm", "dry_run": True, "requested": 1})

    def test_a_range_that_would_never_end_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("prewarm", "--dry-run", one_kernel_manifest(folder, m=[1, 2000000000], m_policy="exact"))
            self.assertEqual(done.returncode, 4)
            self.assertIn("at most 65536 values", done.stderr)

    def test_kernels_are_those_of_the_device_that_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            database = pathlib.Path(folder, "rows.json")
            database.write_text(json.dumps({"schema": 1, "rows": [{
                "problem": "block_scaled_mm sm_90a m=1 n=128 k=128 e4m3*e4m3->bf16 scales=f32 group_n=128 group_k=128 "
                           "m_policy=exact",
                "device": "Mine", "sm_count": 99, "plan": {"kernel": "reference"}, "time_us": 1, "spread": 0,
                "model_time_us": 2, "candidates": 3, "driver_version": 13000, "version": "0.1.0",
                "date": "2026-01-31T12:00:00Z"}]}))
            settings = ("--cache-dir", folder, "--tuning-db", str(database))
            problem = (OPERATION, "-m", "1", "-n", "128", "-k", "128")
            mine = ("--sm-count", "99", "--device-name", "Mine")
            self.assertEqual(run(*settings, "prewarm", one_kernel_manifest(folder), *mine).returncode, 0)
            document = run_json(*settings, "compile", *problem, *mine, "--cached")
            self.assertEqual(document["plan"]["kernel"], "reference")
            self.assertTrue(document["from_cache"])
            self.assertIn("gemm_reference.cu", run(*settings, "source", *problem, *mine).stdout)
            for other in (("--sm-count", "99", "--device-name", "Theirs"), ("--device-name", "Mine")):
                self.assertEqual(run_json(*settings, "plan", *problem, *other)["plan"]["source"], "model", other)


class CacheFolder(unittest.TestCase):
    PROBLEM = (OPERATION, "--arch", "sm_90a", "-m", "1", "-n", "128", "-k", "128", "--kernel", "reference")

    def test_relative_one_is_below_the_working_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("--cache-dir", "kept", "compile", *self.PROBLEM, cwd=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(list(pathlib.Path(folder, "kept").rglob("*.jgk"))), 1)

    def test_prewarm_compiles_nothing_where_nothing_can_be_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            manifest = one_kernel_manifest(folder)
            for arguments, word in (
                (("--cache-dir", "/dev/null/none"), "'/dev/null/none' cannot be used"),
                (("--cache-mode", "memory"), "no folder"),
                (("--cache-dir", folder, "--cache-mode", "ro"), folder),
            ):
                done = run(*arguments, "prewarm", manifest)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn("expected a cache that kernels can be stored in", done.stderr)
                self.assertIn(word, done.stderr)
                self.assertIn(word, run(*arguments, "doctor").stdout)


class Plan(unittest.TestCase):
    def test_lists_both_launches_of_an_operation_that_quantises(self):
        document = run_json("plan", OPERATION, "--a-dtype", "bf16", "-m", "128", "-n", "256", "-k", "512")
        self.assertEqual([launch["kernel"] for launch in document["launches"]], ["quantize_rows", "sm90"])
        self.assertEqual(document["workspace_bytes"], 128 * 512 + 128 * 4 * 4)
        self.assertEqual(document["workspace_alignment"], 256)
        self.assertEqual(document["plan"]["problem"]["a_dtype"], "F8_E4M3")
        text = run("plan", OPERATION, "--a-dtype", "bf16", "-m", "128", "-n", "256", "-k", "512").stdout
        for part in ("launch 1", "quantize_rows", "launch 2", "workspace  67584 bytes"):
            self.assertIn(part, text)

    def test_says_what_the_problem_is(self):
        document = run_json("plan", "group_gemm_fp8_nt_groupwise", "--layout", "masked", "--groups", "3")
        self.assertEqual(document["problem"]["operation"], "group_gemm_fp8_nt_groupwise")
        self.assertEqual((document["problem"]["layout"], document["problem"]["groups"]), ("masked", 3))
        packed = run_json("plan", OPERATION, "--arch", "sm_100a", "--scale-dtype", "ue8m0", "--a-scale-major", "packed")
        self.assertEqual(packed["problem"]["a_scale_major"], "packed")

    def test_m_takes_a_range(self):
        for flag in ("-m", "--m"):
            document = run_json("plan", OPERATION, flag, "1..16384", "-n", "2112", "-k", "7168")
            self.assertEqual(document["exact"]["kernels"], 16384)
            self.assertLessEqual(document["class"]["kernels"], 32)
            self.assertEqual(document["any"]["kernels"], 1)

    def test_range_that_is_none_is_named(self):
        for text in ("0..4", "5..4", "1..", "x"):
            done = run("plan", OPERATION, "--m", text)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--m: expected", done.stderr)

    def test_range_is_for_plan_alone(self):
        done = run("source", OPERATION, "--m", "1..4")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--m: a range is for plan", done.stderr)


class Source(unittest.TestCase):
    def test_shows_the_launch_that_is_asked_for(self):
        arguments = ("source", OPERATION, "--a-dtype", "f16", "-m", "8", "-k", "256")
        self.assertIn('#include "gemm_sm90.cu"', run(*arguments).stdout)
        self.assertIn('#include "quantize_rows.cu"', run(*arguments, "--launch", "1").stdout)
        done = run(*arguments, "--launch", "3")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--launch: expected 1 to 2, found 3", done.stderr)


class Compile(unittest.TestCase):
    arguments = ("compile", OPERATION, "--cached", "-m", "8", "-n", "64", "-k", "128", "--a-dtype", "bf16")

    def test_says_what_the_compiler_made_of_each_launch(self):
        document = run_json(*self.arguments)
        self.assertEqual([kernel["kernel"] for kernel in document["kernels"]], ["quantize_rows", "sm90_swap"])
        for kernel in document["kernels"]:
            self.assertGreater(kernel["image"]["registers"], 0)
            self.assertEqual(kernel["image"]["spill_bytes"], 0)
        self.assertGreater(document["image"]["shared_bytes"], 0)

    def test_sass_is_that_of_a_disassembler_on_the_path(self):
        with tempfile.TemporaryDirectory() as folder:
            tool = pathlib.Path(folder, "nvdisasm")
            tool.write_text("#!/bin/sh\nhead -c 4 \"$2\" | tail -c 3\n"
                            "echo '        /*0000*/ MOV R1, c[0x0][0x28] ; /* 0x00000a0000017a02 */'\n"
                            "echo '        /*0010*/ EXIT ; /* 0x000000000000794d */'\n")
            tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
            target = pathlib.Path(folder, "kernel.sass")
            path = folder + ":" + os.environ["PATH"]
            done = run(*self.arguments, "--sass", str(target), path=path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("sass       2 instructions, by " + str(tool), done.stdout)
            self.assertTrue(target.read_text().startswith("ELF"), "it was given the cubin")

    def test_a_missing_disassembler_is_said(self):
        if any(pathlib.Path(folder, name).exists()
               for folder in ("/usr/local/cuda/bin", "/usr/local/cuda-13/bin", "/usr/local/cuda-12/bin", "/opt/cuda/bin")
               for name in ("nvdisasm", "cuobjdump")):
            return  # the toolkit of this machine has one
        done = run(*self.arguments, path="/nonexistent")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("sass       no disassembler found", done.stdout)
        done = run(*self.arguments, "--sass", "/dev/null", path="/nonexistent")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no disassembler found", done.stderr)


def write_safetensors(path, tensors):
    """tensors: name -> (dtype, shape, bytes)"""
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


class Bench(unittest.TestCase):
    def test_shapes_are_checked_before_a_device_is_opened(self):
        for arguments, word in (
            (("-m", "64"), "-n"),
            (("-m", "64", "-n", "1,2", "-k", "1,2,3"), "-n, -k"),
            (("--suite", "huge"), "huge"),
            (("--suite", "seed", "-m", "1"), "--suite"),
            (("-m", "1", "-n", "128", "-k", "128", "--regime", "cold"), "cold"),
        ):
            done = run("bench", OPERATION, *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(word, done.stderr)

    def test_shapes_of_groups_are_checked_before_a_device_is_opened(self):
        lists = ("-m", "8", "-n", "128", "-k", "256")
        for arguments, word in (
            (lists, "--groups"),
            ((*lists, "--groups", "2", "--mean", "9"), "--mean"),
            (("--suite", "seed"), "contiguous"),
            (("--suite", "masked", "--groups", "2"), "--suite"),
        ):
            for verb in ("bench", "tune"):
                with tempfile.TemporaryDirectory() as folder:
                    done = run("--cache-dir", folder, verb, "group_gemm_fp8_nt_groupwise", *arguments)
                self.assertEqual(done.returncode, 2, arguments)
                self.assertIn(word, done.stderr)

    def test_kernels_of_every_form_of_groups_are_compiled_without_a_device(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("--cache-dir", folder, "bench", "group_gemm_fp8_nt_groupwise", "--groups", "2", "-m", "8", "-n", "128",
                       "-k", "256", "--m-policy", "class", "--compile-only")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("3 kernels of 1 shapes", done.stdout)

    def test_the_simulator_has_no_time(self):
        done = run("bench", OPERATION, "-m", "64", "-n", "128", "-k", "256", "--device", "sim")
        self.assertEqual(done.returncode, 2)
        self.assertIn("timing needs a GPU", done.stderr)

    def test_kernels_of_candidates_are_compiled_without_a_device(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("--cache-dir", folder, "bench", OPERATION, "-m", "64", "-n", "128", "-k", "256", "--plans",
                       "model:2", "--compile-only")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("2 kernels of 1 shapes", done.stdout)


class Tune(unittest.TestCase):
    def row(self, folder, problem_flags, plan, name="row.json", device="NVIDIA H200"):
        """A database with one row for the problem, made from the key that explain and plan look up."""
        document = {"schema": 1, "rows": [{
            "problem": problem_flags, "device": device, "sm_count": 132, "plan": plan, "time_us": 7.5, "spread": 0.01,
            "model_time_us": 8.0, "candidates": 3, "driver_version": 13000, "version": "0.1.0",
            "date": "2026-01-31T12:00:00Z"}]}
        path = pathlib.Path(folder) / name
        path.write_text(json.dumps(document))
        return str(path)

    # Not one that the library ships a row for: that would be the later one.
    PROBLEM = ("-m", "65", "-n", "4096", "-k", "7168")
    KEY = ("block_scaled_mm sm_90a m=65 n=4096 k=7168 e4m3*e4m3->bf16 scales=f32 group_n=128 group_k=128 "
           "m_policy=exact")

    def test_a_merged_row_is_planned_explained_and_exported(self):
        with tempfile.TemporaryDirectory() as folder:
            row = self.row(folder, self.KEY, {"kernel": "sm90", "tile_m": 64, "tile_n": 48, "split_k": 1})
            database = str(pathlib.Path(folder) / "tuning.json")
            self.assertEqual(run("--cache-dir", folder, "tune", "--merge", row).returncode, 0)
            plan = run_json("--tuning-db", database, "plan", OPERATION, *self.PROBLEM)["plan"]
            self.assertEqual(plan["source"], "database")
            self.assertEqual(plan["tile"][:2], [64, 48])
            document = run_json("--cache-dir", folder, "explain", OPERATION, *self.PROBLEM)
            self.assertEqual(document["plan"]["source"], "database")
            self.assertIn("7.50 us", document["plan"]["reasons"][0])
            exported = str(pathlib.Path(folder) / "all.json")
            self.assertEqual(run("--cache-dir", folder, "tune", "--export", exported).returncode, 0)
            rows = json.loads(pathlib.Path(exported).read_text())["rows"]
            self.assertIn(self.KEY, [r["problem"] for r in rows])

    def test_off_is_the_model_and_an_override_is_an_override(self):
        with tempfile.TemporaryDirectory() as folder:
            row = self.row(folder, self.KEY, {"kernel": "sm90", "tile_m": 64, "tile_n": 48, "split_k": 1})
            off = run_json("--tuning-db", "off", "plan", OPERATION, *self.PROBLEM)["plan"]
            self.assertEqual(off["source"], "model")
            forced = run_json("--tuning-db", row, "plan", OPERATION, *self.PROBLEM, "--stages", "3")["plan"]
            self.assertEqual(forced["source"], "override")

    def test_a_damaged_database_that_was_named_is_exit_code_4(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tuning.json"
            path.write_text("{")
            done = run("--tuning-db", str(path), "plan", OPERATION, *self.PROBLEM)
            self.assertEqual(done.returncode, 4)
            self.assertIn("tuning.json", done.stderr)

    def test_measuring_needs_a_gpu(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("--cache-dir", folder, "tune", OPERATION, *self.PROBLEM, "--device", "sim")
            self.assertEqual(done.returncode, 2)
            self.assertIn("timing needs a GPU", done.stderr)


class Explain(unittest.TestCase):
    def test_candidates_are_ranked_and_one_is_chosen(self):
        document = run_json("--tuning-db", "off", "explain", OPERATION, "-m", "349", "-n", "2048", "-k", "2048")
        candidates = document["candidates"]
        self.assertEqual([c["chosen"] for c in candidates], [True] + [False] * 7)
        estimates = [c["estimate_us"] for c in candidates]
        self.assertEqual(estimates, sorted(estimates))
        self.assertTrue(document["plan"]["row_bits_depend_on_m"])

    def test_a_batch_invariant_problem_has_no_splits(self):
        document = run_json("--tuning-db", "off", "explain", OPERATION, "-m", "1", "-n", "2112", "-k", "7168",
                            "--batch-invariant", "--top", "1000")
        self.assertEqual({c["overrides"]["split_k"] for c in document["candidates"]}, {1})
        self.assertFalse(document["plan"]["row_bits_depend_on_m"])


class Run(unittest.TestCase):
    def test_quantises_a_on_both_archs(self):
        for arch in ("sm_90a", "sm_100a"):
            document = run_json("run", OPERATION, "--device", "sim", "--arch", arch, "--a-dtype", "f32", "--data",
                                "integers", "--out-dtype", "f32", "-m", "20", "-n", "64", "-k", "256")
            self.assertTrue(document["passed"], document["verdict"])
            self.assertEqual(len(document["operation"]["launches"]), 2)

    def test_a_file_whose_a_is_f32_needs_no_a_scales(self):
        with tempfile.TemporaryDirectory() as folder:
            source = str(pathlib.Path(folder, "in.safetensors"))
            values = [((i * 37) % 101 - 50) / 16 for i in range(5 * 128)]
            write_safetensors(source, {
                "a": ("F32", [5, 128], struct.pack("<640f", *values)),
                "b": ("F8_E4M3", [16, 128], bytes([0x38] * 16 * 128)),
                "b_scales": ("F32", [1, 1], struct.pack("<f", 0.5)),
            })
            done = run("--json", "run", OPERATION, "--device", "sim", "--input", source)
            self.assertEqual(done.returncode, 0, done.stdout)
            document = json.loads(done.stdout)
            self.assertTrue(document["passed"], document["verdict"])
            self.assertEqual(document["operation"]["problem"]["a_dtype"], "F32")

    def test_missing_driver_is_code_5(self):
        environment = dict(os.environ, JITGEMM_DRIVER="/nonexistent/libcuda.so.1")
        done = subprocess.run([JITGEMM, "run", OPERATION, "--device", "cuda:0"], capture_output=True, text=True,
                              env=environment)
        self.assertEqual(done.returncode, 5)
        self.assertIn("NO_DRIVER", done.stderr)


if __name__ == "__main__":
    JITGEMM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
