# SPDX-License-Identifier: Apache-2.0
"""Plans, compiling ahead, prepared operations, manifests."""

from __future__ import annotations

import json
import pathlib
import threading
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from products import assert_close, draw

import jitgemm
from jitgemm import _prepare, _runtime

PROBLEM = jitgemm.GemmProblem(m=5, n=136, k=272)


def test_a_plan_names_its_kernel(arch: str) -> None:
    assert ("sm90" if arch == "sm_90a" else "sm100") in jitgemm.plan(PROBLEM, arch)


def test_dtypes_of_a_problem_may_be_types(arch: str) -> None:
    typed = jitgemm.GemmProblem(m=5, n=136, k=272, out_dtype=np.float32)
    assert jitgemm.plan(typed, arch) == jitgemm.plan(jitgemm.GemmProblem(m=5, n=136, k=272, out_dtype="F32"), arch)


@pytest.mark.parametrize(
    ("problem", "kind", "words"),
    [
        (jitgemm.GemmProblem(m=-1, n=1, k=1), ValueError, "m: expected 0 to"),
        (jitgemm.GemmProblem(m=1, n=1, k=1, group_k=40), NotImplementedError, "group_k"),
        (jitgemm.GemmProblem(m=1, n=1, k=1, b_dtype="float16"), NotImplementedError, "b_dtype"),
        (jitgemm.GemmProblem(m=1, n=1, k=1, m_policy="most"), ValueError, "m_policy"),
        (jitgemm.GemmProblem(m=1, n=1, k=1, alignment=3), ValueError, "alignment"),
    ],
)
def test_a_wrong_problem_is_refused_by_name(problem: jitgemm.GemmProblem, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        jitgemm.plan(problem)


def test_a_prepared_operation_is_the_one_that_a_call_finds(rng: np.random.Generator, arch: str) -> None:
    with jitgemm.simulator(arch):
        operation = jitgemm.prepare(PROBLEM, "sim")
        assert (operation.device, operation.arch) == ("sim", arch)
        assert "m=5 n=136 k=272" in operation.describe()
        p = draw(rng, 5, 136, 272)
        assert_close(jitgemm.block_scaled_mm(p.a, p.b, p.a_scales, p.b_scales), p)


@pytest.mark.parametrize(("policy", "prepared", "called"), [("class", 16, (9, 12, 16)), ("any", 3, (1, 9, 200))])
def test_an_operation_serves_every_m_that_shares_its_kernel(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, policy: str, prepared: int, called: tuple[int, ...]
) -> None:
    with jitgemm.simulator("sm_90a", seed=5):
        jitgemm.prepare(jitgemm.GemmProblem(m=prepared, n=136, k=272, m_policy=policy), "sim")
        monkeypatch.setattr(_runtime.Device, "prepare", lambda *_: pytest.fail("prepared again"))
        for m in called:
            p = draw(rng, m, 136, 272)
            assert_close(jitgemm.block_scaled_mm(p.a, p.b, p.a_scales, p.b_scales, m_policy=policy), p)
    monkeypatch.undo()
    with jitgemm.simulator("sm_90a"):  # columns of 12 scales: too close for 16 rows
        p = draw(rng, 9, 136, 272)
        memory = np.zeros((3, 12), np.float32)
        memory[:, :9] = p.a_scales.T
        out = jitgemm.block_scaled_mm(p.a, p.b, memory[:, :9].T, p.b_scales, m_policy=policy)
        assert_close(out, p)


def test_threads_share_problems_and_results_are_right(rng: np.random.Generator) -> None:
    products = [draw(rng, m, 136, 272) for m in (3, 5) for _ in range(2)]
    failures: list[BaseException] = []

    def work(p: Any) -> None:
        try:
            for _ in range(2):
                assert_close(jitgemm.block_scaled_mm(p.a, p.b, p.a_scales, p.b_scales), p)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(p,)) for p in products]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("path", sorted((ROOT / "cache" / "manifests").glob("*.json")), ids=lambda path: path.stem)
def test_every_manifest_of_the_repository_is_read_and_can_be_planned(path: pathlib.Path) -> None:
    work = _prepare.read_manifest(path)
    assert work
    for _, problem, archs in work[:: max(1, len(work) // 8)]:
        for arch in archs:
            assert jitgemm.plan(problem, arch)


ENTRY: dict[str, Any] = {"name": "layer", "op": "block_scaled_mm", "m": 5, "n": 136, "k": 272, "archs": ["sm_90a"]}


def manifest(path: pathlib.Path, **changes: Any) -> pathlib.Path:
    """A manifest of ENTRY with changes; None takes a field away."""
    entry = {name: value for name, value in {**ENTRY, **changes}.items() if value is not None}
    path.write_text(json.dumps({"schema": 1, "entries": [entry]}))
    return path


def test_a_range_of_m_is_one_problem_a_class(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "manifest.json"
    rows = [problem.m for _, problem, _ in _prepare.read_manifest(manifest(file, m=[1, 16384]))]
    assert rows[:6] == [1, 2, 3, 5, 9, 17]
    assert len(rows) <= 32
    assert len(_prepare.read_manifest(manifest(file, m=[1, 16384], m_policy="any"))) == 1
    assert len(_prepare.read_manifest(manifest(file, m=[1, 4], m_policy="exact"))) == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"m": None}, "layer: m: missing"),
        ({"m": [5, 4]}, r"layer: m: expected an integer or \[first, last\]"),
        ({"n": "136"}, "layer: n: expected an integer"),
        ({"out_dtype": "F64"}, "layer: out_dtype: expected one of"),
        ({"colour": 1}, "layer: unknown field 'colour'"),
        ({"archs": ["sm_80"]}, "layer: archs: expected a list of"),
        ({"op": "conv"}, "layer: op: expected"),
        ({"op": None}, "layer: op: missing"),
        ({"groups": 4}, "layer: unknown field 'groups'"),
        ({"op": "group_gemm_fp8_nt_groupwise", "groups": 4}, "layer: layout: missing"),
        ({"op": "group_gemm_fp8_nt_groupwise", "layout": "columns"}, "layer: layout: expected one of"),
        ({"op": "group_gemm_fp8_nt_groupwise", "zero_ungrouped": 1}, "layer: zero_ungrouped: expected true or false"),
    ],
)
def test_a_wrong_manifest_names_the_entry_and_the_field(tmp_path: pathlib.Path, changes: Any, words: str) -> None:
    with pytest.raises(jitgemm.Error, match=words):
        jitgemm.prewarm(manifest(tmp_path / "manifest.json", **changes))


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"schema": 2}', '{"schema": 1, "schema": 1}', '{"schema": 1, "entries": []}', '{"schema": 1, "x": 0}'],
)
def test_what_is_no_manifest_is_corrupt(tmp_path: pathlib.Path, text: str) -> None:
    file = tmp_path / "manifest.json"
    file.write_text(text)
    with pytest.raises(jitgemm.CorruptData):
        jitgemm.prewarm(file)
    with pytest.raises(OSError, match="IO_ERROR"):
        jitgemm.prewarm(tmp_path / "none.json")


def test_prewarm_compiles_loads_and_reports_progress(tmp_path: pathlib.Path) -> None:
    seen: list[tuple[int, int, str]] = []
    report = jitgemm.prewarm(manifest(tmp_path / "manifest.json"), progress=lambda *step: seen.append(step), workers=1)
    assert (report.problems, report.failures) == (1, ())
    assert seen == [(1, 1, "layer m=5 sm_90a")]
    report = jitgemm.prewarm(
        [PROBLEM, jitgemm.GemmProblem(m=5, n=136, k=272, group_k=40)], device="sim", progress=False
    )
    assert report.problems == 2
    assert len(report.failures) == 1
    assert "group_k" in report.failures[0]
