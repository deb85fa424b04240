#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts of bench/ on result files with known numbers: scripts_test.py"""

import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import results  # noqa: E402
import tables  # noqa: E402


def timed(name, median, source="peer", variant="", mean=None):
    contender = {"name": name, "variant": variant, "source": source, "product": "block_scaled",
                 "check": {"passed": True, "relative_l2": 1.5e-3, "limit": 2e-3, "not_finite": 0, "checked": 9},
                 "rested": {"median_us": median, "spread": 0.02, "samples_us": [median], "tflops": 100, "gb_s": 10}}
    if mean:
        contender["sustained"] = {"mean_us": mean, "calls": 9, "sm_clock_mhz": 1500, "power_w": 690, "tflops": 90,
                                  "gb_s": 9}
    return contender


def shape(m, n, k, *contenders, out_dtype="BF16"):
    return {"m": m, "n": n, "k": k, "out_dtype": out_dtype, "fewest_bytes": m * k + n * k, "sets": 1,
            "single_call": False, "setup_s": 0, "contenders": list(contenders)}


def document(*shapes, date="2026-03-01T00:00:00Z", device="GPU", ceilings=()):
    return {"schema": 1, "verb": "bench", "date": date, "commit": "abc", "version": "0", "device": device,
            "sm_count": 132, "driver_version": 13000, "power_limit_w": 700, "cublaslt": "13.1.0", "rounds": 9,
            "ceilings": list(ceilings), "shapes": list(shapes)}


RECORDED = {"rows": [{"m": 1024, "n": 2048, "k": 2048, "out_dtype": "BF16", "regime": "rested", "deepgemm_us": 8.0,
                      "cublaslt_block_us": 10.0}]}


class Results(unittest.TestCase):
    def test_the_derived_ratio_goes_by_way_of_the_common_peer(self):
        s = shape(1024, 2048, 2048, timed("jitgemm", 9, "model"), timed("cublaslt_block", 12))
        self.assertAlmostEqual(results.ratio(s, "cublaslt_block", "rested"), 0.75)
        # We take 0.75 of the peer's time, DeepGEMM took 0.8 of it.
        self.assertAlmostEqual(results.derived_ratio(s, "rested", RECORDED), 0.9375)

    def test_nothing_is_derived_for_another_regime_dtype_or_shape_or_without_the_common_peer(self):
        mine, peer = timed("jitgemm", 9, "model", mean=10), timed("cublaslt_block", 12, mean=12)
        self.assertIsNone(results.derived_ratio(shape(1024, 2048, 2048, mine, peer), "sustained", RECORDED))
        self.assertIsNone(results.derived_ratio(shape(1024, 2048, 2048, mine, peer, out_dtype="F32"), "rested", RECORDED))
        self.assertIsNone(results.derived_ratio(shape(1025, 2048, 2048, mine, peer), "rested", RECORDED))
        self.assertIsNone(results.derived_ratio(shape(1024, 2048, 2048, mine), "rested", RECORDED))

    def test_families(self):
        self.assertEqual(results.family(shape(1024, 2048, 2048)), "seed")
        self.assertEqual(results.family(shape(64, 2112, 7168)), "decode")
        self.assertEqual(results.family(shape(4096, 2112, 7168)), "odd")

    def test_the_floor_is_the_slower_of_products_and_memory(self):
        ceilings = [{"name": "fp8_tensorwise", "unit": "TFLOP/s", "rested": 1000, "sustained": 500},
                    {"name": "read", "unit": "GB/s", "rested": 4000, "sustained": 4000}]
        large, small = shape(4096, 4096, 4096), shape(1, 4096, 4096)
        result = document(large, small, ceilings=ceilings)
        self.assertAlmostEqual(results.floor_us(large, result, "rested"), 2 * 4096**3 / 1e9)
        self.assertAlmostEqual(results.floor_us(small, result, "rested"), (4096 + 4096**2) / 4e6)
        self.assertIsNone(results.floor_us(large, document(large), "rested"))

    def test_of_two_runs_the_later_row_stays_and_devices_do_not_mix(self):
        early = document(shape(1024, 2048, 2048, timed("jitgemm", 9, "model")), date="2026-01-01T00:00:00Z")
        late = document(shape(1024, 2048, 2048, timed("jitgemm", 8, "model")), date="2026-02-01T00:00:00Z")
        merged = results.merge([late, early])
        self.assertEqual(results.time_us(results.ours(merged["shapes"][0]), "rested"), 8)
        with self.assertRaises(ValueError):
            results.merge([early, document(device="other")])

    def test_recorded_figures_are_complete(self):
        rows = json.loads((BENCH / "recorded" / "deepgemm_h200.json").read_text())["rows"]
        keys = {(r["m"], r["n"], r["k"], r["regime"]) for r in rows}
        self.assertEqual(len(keys), 24 + 24 + 30)
        self.assertTrue(all(r["deepgemm_us"] > 0 and r["cublaslt_block_us"] > 0 for r in rows))


class Tables(unittest.TestCase):
    RESULT = document(
        shape(1024, 2048, 2048, timed("jitgemm", 9, "database"), timed("jitgemm", 8.5, "override"),
              timed("cublaslt_block", 12), timed("mine", 7)),
        shape(64, 4096, 4096, timed("jitgemm", 9, "model"), timed("jitgemm", 9.9, "model", "x m=class"),
              timed("jitgemm", 12, "model", "x m=any")))

    def test_a_table_names_what_was_tuned_derived_and_external(self):
        text = tables.all_tables(results.merge([self.RESULT]), None, RECORDED)["seed_bf16_rested"]
        row = [cell.strip() for cell in text.splitlines()[-1].strip("|").split("|")]
        self.assertEqual(row[:4], ["1024", "2048", "2048", "9.0 (tuned)"])
        self.assertIn("8.5 of 2", row)
        self.assertIn("mine us", text)
        self.assertIn("derived", text)
        self.assertIn("0.94", row)

    def grouped(self, kind, count, rows, mean, m, n, k, *contenders):
        groups = {"kind": kind, "count": count, "rows": rows, "mean": mean}
        return dict(shape(m, n, k, *contenders), groups=groups)

    def ours(self, median, form, layout):
        return dict(timed("jitgemm", median, "model"), form=form, layout=layout)

    def test_groups_are_shown_in_each_form_and_derived_by_way_of_the_loop(self):
        recorded = json.loads((BENCH / "recorded" / "deepgemm_h200.json").read_text())
        peer = dict(timed("cublaslt_loop", 400), form="padded")
        contiguous = [
            self.grouped("contiguous", 32, 256, 256, 8192, 7168, 2048, self.ours(200, "tight", "row_indices"),
                         self.ours(190, "tight", "row_pointers"), peer),
            self.grouped("contiguous", 256, 8, 8, 2048, 7168, 2048, self.ours(300, "tight", "row_indices"),
                         self.ours(290, "tight", "row_pointers"), self.ours(310, "padded", "row_indices"), peer)]
        masked = self.grouped("masked", 6, 1024, 128, 777, 7168, 2048, self.ours(30, "masked", "masked"), peer)
        found = tables.all_tables(results.merge([document(*contiguous, masked)]), None, recorded)
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in found["contiguous_rested"].splitlines()]
        derived = f"{(200 / 400) / (219.3 / 327.9):.2f}"
        self.assertEqual(lines[-2][:7], ["32", "256", "7168", "2048", "200.0", "190.0", "-"])
        self.assertEqual(lines[-2][-3:], ["0.50", derived, "1.50e-03"])
        self.assertEqual(lines[-1][4:7], ["300.0", "290.0", "310.0"])
        self.assertEqual(lines[-1][-2], "-")
        self.assertIn("| 6 | 1024 | 128 | 777 | 7168 | 2048 | 30.0 |", found["masked_rested"])
        self.assertIn("37.1 (729 in use)", found["masked_rested"])
        self.assertNotIn("seed_bf16_rested", found)

    def test_policies_are_compared_with_exact_and_its_kernel_is_ready_after_some_time(self):
        documents = [dict(self.RESULT, label="policies")]
        text = tables.labelled_tables(documents, None)["policies"]
        self.assertIn("| 64 | 4096 | 4096 | 9.0 | 9.9 | 12.0 | 1.10 | 1.33 |", text)
        row = {"m": 64, "n": 4096, "k": 4096, "policy": "exact"}
        ready = {"machine": "cores", "device": "its GPU", "date": "2026-03-01", "commit": "abc", "samples": 3,
                 "rows": [dict(row, **{"from": "compiled", "median_ms": 812.4}), dict(row, **{"from": "disk", "median_ms": 301})]}
        text = tables.labelled_tables(documents, ready)["policies"]
        self.assertIn("| 1.10 | 1.33 | 812 | 301 |", text)

    def test_a_run_for_a_table_of_its_own_leaves_the_tables_of_shapes_alone(self):
        labelled = dict(self.RESULT, label="python_peers")
        self.assertEqual(results.labelled([labelled, self.RESULT], ""), [self.RESULT])
        self.assertIsNone(results.merge(results.labelled([labelled], "")))
        text = tables.labelled_tables([labelled], None)["python_peers"]
        self.assertIn("| BF16 | 1024 | 2048 | 2048 | 9.0 | 12.0 | 0.75 | 7.0 | 1.29 | 1.50e-03 |", text)

    def test_edges_are_off_on_both_sides_or_on_on_both(self):
        early = lambda name, us: dict(timed(name, us), programmatic=True)  # noqa: E731
        run = document(shape(8, 7168, 2048, timed("jitgemm", 6, "model"), early("jitgemm", 5), timed("cublaslt_block", 9),
                             timed("mine", 8), early("mine", 4)))
        text = tables.labelled_tables([dict(run, label="pdl")], None)["pdl"]
        self.assertIn("| 8 | 7168 | 2048 | 6.0 | 5.0 | 0.83 | 9.0 | 8.0 | 0.75 | 4.0 | 1.25 |", text)
        self.assertEqual(results.time_us(results.ours(run["shapes"][0]), "rested"), 6)

    def test_row_major_scales_stand_beside_column_major_ones(self):
        run = document(shape(64, 4096, 4096, timed("jitgemm", 9, "model", "x"),
                             timed("jitgemm", 10, "model", "x scales=column")))
        text = tables.labelled_tables([dict(run, label="scales")], None)["scales"]
        self.assertIn("| 64 | 4096 | 4096 | 9.0 | 10.0 | 0.90 |", text)

    def test_few_rows_of_large_weights_have_a_goal_by_their_bytes(self):
        self.assertIsNone(results.decode_goal_us(shape(1, 2112, 7168)))
        self.assertAlmostEqual(results.decode_goal_us(shape(1, 4096, 7168)), 1.15 * (7168 + 4096 * 7168) / 4.6e6 + 2.4)

    def test_only_what_is_between_the_markers_is_written_and_twice_is_once(self):
        before = "a\n<!-- table x -->\nold\n<!-- end x -->\nb\n<!-- table y -->\nkept\n<!-- end y -->\n"
        once, missing = tables.replace(before, {"x": "new", "z": "nowhere"})
        self.assertEqual(once, before.replace("old", "new"))
        self.assertEqual(missing, ["z"])
        self.assertEqual(tables.replace(once, {"x": "new"})[0], once)

    def test_the_command_writes_the_document_and_check_finds_it_written(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "result.json").write_text(json.dumps(self.RESULT))
            (folder / "policies.json").write_text(json.dumps(dict(self.RESULT, label="policies")))
            page = folder / "page.md"
            page.write_text("".join(f"<!-- table {n} -->\n<!-- end {n} -->\n"
                                    for n in ("seed_bf16_rested", "odd_bf16_rested", "policies")))
            command = [sys.executable, BENCH / "tables.py", folder / "result.json", folder / "policies.json", "--document",
                       page]
            self.assertEqual(subprocess.run([*command, "--check"]).returncode, 1)
            self.assertEqual(subprocess.run(command).returncode, 0)
            self.assertEqual(subprocess.run([*command, "--check"]).returncode, 0)
            self.assertIn("(tuned)", page.read_text())

    def test_the_page_has_a_place_for_every_table(self):
        page = (BENCH.parent / "docs" / "performance.md").read_text()
        names = ["ceilings", "policies", "jit", "pdl", "python_peers", "scales"]
        names += [f"{f}_{d}_{r}" for f in ("seed", "decode", "odd") for d in ("bf16", "f32")
                  for r in ("rested", "sustained")]
        names += [f"{kind}_{r}" for kind in ("contiguous", "masked") for r in ("rested", "sustained")]
        self.assertEqual(tables.replace(page, {name: "" for name in names})[1], [])

    def test_geometric_means_leave_out_what_was_not_measured(self):
        self.assertAlmostEqual(results.geometric_mean([2, None, 0.5]), 1)
        self.assertIsNone(results.geometric_mean([None]))
        self.assertTrue(math.isclose(results.geometric_mean([4]), 4))


class Plots(unittest.TestCase):
    def test_a_family_becomes_two_files(self):
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            self.skipTest("no matplotlib")
        ceilings = [{"name": "fp8_tensorwise", "unit": "TFLOP/s", "rested": 1000, "sustained": 500},
                    {"name": "read", "unit": "GB/s", "rested": 4000, "sustained": 4000}]
        result = document(*(shape(m, 2112, 7168, timed("jitgemm", 9 + m, "model"), timed("cublaslt_block", 12 + m))
                            for m in (1, 8, 64)), ceilings=ceilings)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "result.json").write_text(json.dumps(result))
            command = [sys.executable, BENCH / "plots.py", folder / "result.json", "--folder", folder / "plots"]
            self.assertEqual(subprocess.run(command, stdout=subprocess.DEVNULL).returncode, 0)
            names = sorted(p.name for p in (folder / "plots").iterdir())
            self.assertEqual(names, ["decode_2112_7168_bf16_rested.png", "decode_2112_7168_bf16_rested.svg"])


if __name__ == "__main__":
    unittest.main()
