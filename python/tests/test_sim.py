# SPDX-License-Identifier: Apache-2.0
"""Any PTX on the simulator, with arrays as its buffers."""

from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import ROOT

import jitgemm

EXAMPLE = ROOT / "examples" / "sim_run"
# Adds 1 to a word for each thread.
INCREMENT = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x)
{
.reg .b32 %r<3>;
.reg .b64 %rd<3>;
ld.param.u64 %rd1, [x];
mov.u32 %r1, %tid.x;
mad.wide.u32 %rd2, %r1, 4, %rd1;
ld.global.u32 %r2, [%rd2];
add.u32 %r2, %r2, 1;
st.global.u32 [%rd2], %r2;
ret;
}
"""
LAUNCH: dict[str, Any] = {"launches": [{"entry": "k", "block": 4, "parameters": [{"buffer": "x"}]}]}


def test_arrays_describe_themselves_and_hold_what_was_written() -> None:
    x = np.arange(4, dtype=np.uint32)
    report = jitgemm.sim_run(INCREMENT, LAUNCH, {"x": x})
    assert x.tolist() == [1, 2, 3, 4]
    assert report["schema"] == 1
    raw = bytearray(16)
    jitgemm.sim_run(INCREMENT, LAUNCH, {"x": raw})
    assert raw == bytearray(np.ones(4, np.uint32).tobytes())


def test_a_document_and_its_files_are_taken_as_they_are(tmp_path: Any) -> None:
    x, z = np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)
    x[:] = np.random.default_rng(1).random((64, 64))
    document = json.loads((EXAMPLE / "transpose.json").read_text())
    del document["buffers"]["z"]["expect"]
    kept = x.copy()
    ptx = (EXAMPLE / "transpose.ptx").read_text()
    jitgemm.sim_run(ptx, json.dumps(document), {"x": x, "z": z}, folder=tmp_path)
    assert (x == kept).all()
    assert (z == kept).all()
    y = np.fromfile(tmp_path / "y.bin", np.float32).reshape(64, 64)
    assert (y == kept.T).all()


def test_faults_and_unmet_expectations_are_exceptions() -> None:
    x = np.zeros(3, np.uint32)
    with pytest.raises(jitgemm.SimulatorFault, match=r"ld\.global\.u32"):
        jitgemm.sim_run(INCREMENT, LAUNCH, {"x": x})
    assert (x == 0).all()
    expecting = {**LAUNCH, "buffers": {"x": {"dtype": "U32", "shape": 4, "expect": {"value": 3}}}}
    x = np.ones(4, np.uint32)
    with pytest.raises(jitgemm.VerificationFailed, match="expected 3, found 2") as caught:
        jitgemm.sim_run(INCREMENT, expecting, {"x": x})
    assert caught.value.report is not None
    assert (x == 2).all()


@pytest.mark.parametrize(
    ("launch", "buffers", "words"),
    [
        ({}, {}, "launches"),
        (["k"], {}, "launch: expected a mapping or JSON text, found list"),
        (LAUNCH, ["x"], "buffers: expected a mapping, found list"),
        ({**LAUNCH, "buffers": []}, {"x": np.zeros(4, np.uint32)}, "buffers: expected an object"),
        (LAUNCH, {"x": np.zeros((4, 2), np.uint32)[:, 0]}, "x: expected a contiguous array"),
        (LAUNCH, {"x": b"0123"}, "x: expected a numpy array"),
        (LAUNCH, {"x": np.zeros(4, bool)}, "x: expected one of"),
        ({**LAUNCH, "buffers": {"x": {"dtype": "U32", "shape": 4}}}, {"x": np.zeros(3, np.uint32)}, "12"),
    ],
)
def test_wrong_calls_say_what_is_wrong(launch: Any, buffers: Any, words: str) -> None:
    with pytest.raises(jitgemm.InvalidArgument, match=words):
        jitgemm.sim_run(INCREMENT, launch, buffers)


def test_types_of_ml_dtypes_have_names() -> None:
    x = np.zeros(8, ml_dtypes.float8_e4m3fn)
    launch = {"launches": [{"entry": "k", "block": 2, "parameters": [{"buffer": "x"}]}]}
    jitgemm.sim_run(INCREMENT, launch, {"x": x})
    assert x.view(np.uint8).tolist() == [1, 0, 0, 0, 1, 0, 0, 0]


def test_what_c_could_not_take_is_told() -> None:
    x, y = np.arange(4, dtype=np.uint32), np.arange(4, dtype=np.uint32)
    two = {**LAUNCH, "buffers": {"y": {"dtype": "U32", "shape": 4}}}
    wrong: list[tuple[Any, Any, Any, str]] = [
        (INCREMENT + "\0", LAUNCH, {"x": x}, "ptx: expected text without NUL"),
        (5, LAUNCH, {"x": x}, "ptx: expected text, found int"),
        (INCREMENT, LAUNCH, {"x": [1, 2]}, "x: expected a numpy array"),
        (INCREMENT, LAUNCH, {1: x}, "buffers: expected names"),
        (INCREMENT, LAUNCH, {"x": x.astype(">u4")}, "byte order"),
        (INCREMENT, {**LAUNCH, "options": {"seed": float("nan")}}, {"x": x}, "launch: expected what JSON has"),
        (INCREMENT, {**LAUNCH, "options": {"seed": {1}}}, {"x": x}, "launch: expected what JSON has"),
        (INCREMENT, two, {"x": x, "y": x}, "buffers[1].data: expected memory of its own"),
    ]
    for ptx, launch, buffers, message in wrong:
        with pytest.raises(jitgemm.errors.InvalidArgument) as raised:
            jitgemm.sim_run(ptx, launch, buffers)
        assert message in str(raised.value)
    assert (x == y).all()


def test_bytes_numpy_scalars_and_read_only_inputs_are_taken() -> None:
    x = np.arange(4, dtype=np.uint32)
    launch: dict[str, Any] = {"launches": [{**LAUNCH["launches"][0], "block": np.int64(4)}]}
    jitgemm.sim_run(INCREMENT.encode(), launch, {"x": x})
    assert x.tolist() == [1, 2, 3, 4]
    x.setflags(write=False)
    with pytest.raises(jitgemm.errors.InvalidArgument):
        jitgemm.sim_run(INCREMENT, LAUNCH, {"x": x})
    described = {"launches": launch["launches"], "buffers": {"x": {"dtype": "U32", "shape": 4, "access": "in"}}}
    with pytest.raises(jitgemm.errors.SimulatorFault):  # the kernel writes it
        jitgemm.sim_run(INCREMENT, described, {"x": x})
    assert x.tolist() == [1, 2, 3, 4]
