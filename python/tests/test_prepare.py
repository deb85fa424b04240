# SPDX-License-Identifier: Apache-2.0
"""Plans, compiling ahead, prepared operations."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from products import assert_close, draw

import jitgemm
from jitgemm import _runtime

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
        (jitgemm.GemmProblem(m=1, n=2**64 + 1, k=1), ValueError, "n: expected an integer of 64 bits"),
        (
            jitgemm.GemmProblem(m=1, n=10**5000, k=1),
            ValueError,
            "n: expected an integer of 64 bits, found an integer of 16610",
        ),
        (jitgemm.GemmProblem(m=None, n=1, k=1), ValueError, "m: expected an integer of 64 bits, found None"),
        (jitgemm.GemmProblem(m=1, n=1, k=1, lda=2**64), ValueError, "lda: expected an integer of 64 bits"),
        (jitgemm.GemmProblem(m=1, n=1, k=1, lda=200.7), ValueError, "lda: .* found 200.7"),
        (jitgemm.GemmProblem(m=1, n=1, k=1, group_k=2**32 + 32), ValueError, "group_k: expected an integer of 32 bits"),
        (jitgemm.GemmProblem(m=1, n=1, k=1, batch_invariant=2), ValueError, "batch_invariant: expected True or False"),
        (jitgemm.GroupedGemmProblem(1, 1, 1, 2**64 + 1), ValueError, "groups: expected an integer of 64 bits"),
    ],
)
def test_a_wrong_problem_is_refused_by_name(problem: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        jitgemm.plan(problem)


def test_a_prepared_operation_is_the_one_that_a_call_finds(rng: np.random.Generator, arch: str) -> None:
    with jitgemm.simulator(arch):
        operation = jitgemm.prepare(PROBLEM, "sim")
        assert (operation.device, operation.arch) == ("sim", arch)
        assert "m=5 n=136 k=272" in operation.describe()
        p = draw(rng, 5, 136, 272)
        assert_close(jitgemm.block_scaled_mm(p.a, p.b, p.a_scales, p.b_scales), p)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_uses_what_its_parent_made(rng: np.random.Generator, arch: str) -> None:
    with jitgemm.simulator(arch, threads=2):
        p = draw(rng, 5, 136, 272)
        expected = jitgemm.block_scaled_mm(p.a, p.b, p.a_scales, p.b_scales)
        child = os.fork()
        if child == 0:
            same = False
            try:
                out = jitgemm.block_scaled_mm(p.a, p.b, p.a_scales, p.b_scales)
                same = out.tobytes() == expected.tobytes()
            finally:
                os._exit(0 if same else 1)
        deadline = time.monotonic() + 60
        while (done := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        if done[0] == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        assert os.waitstatus_to_exitcode(done[1]) == 0


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


ENTRY: dict[str, Any] = {"name": "layer", "op": "block_scaled_mm", "m": 5, "n": 136, "k": 272, "archs": ["sm_90a"]}


def test_prewarm_compiles_loads_and_reports_progress(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps({"schema": 1, "name": "one", "description": "one layer", "entries": [ENTRY]}))
    seen: list[tuple[int, int, str]] = []
    report = jitgemm.prewarm(file, progress=lambda *step: seen.append(step), workers=1)
    assert (report.problems, report.failures) == (1, ())
    assert seen == [(1, 1, "layer m=5 sm_90a")]
    report = jitgemm.prewarm(
        [PROBLEM, jitgemm.GemmProblem(m=5, n=136, k=272, group_k=40)], device="sim", progress=False
    )
    assert report.problems == 2
    assert len(report.failures) == 1
    assert "group_k" in report.failures[0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: jitgemm.plan(None), "problem: expected a GemmProblem or a GroupedGemmProblem, found None"),  # type: ignore[arg-type]
        (lambda: jitgemm.prewarm([5]), "problem: expected"),  # type: ignore[list-item]
        (lambda: jitgemm.prewarm(5), "manifest: expected a file or problems, found 5"),  # type: ignore[arg-type]
        (lambda: jitgemm.prewarm([], "sm_90a"), "archs: expected a list of targets, found 'sm_90a'"),
        (lambda: jitgemm.prewarm([], progress=5), "progress: expected True, False or a function"),  # type: ignore[arg-type]
        (lambda: jitgemm.prewarm([], workers=0), "workers: expected an integer from 1 to 1024, found 0"),
    ],
)
def test_a_wrong_argument_is_named(call: Any, words: str) -> None:
    with pytest.raises(jitgemm.InvalidArgument, match=words):
        call()
