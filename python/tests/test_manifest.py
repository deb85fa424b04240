# SPDX-License-Identifier: Apache-2.0
"""Manifests: what is read, and what is refused as the command line refuses it."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
from conftest import ROOT

import jitgemm
from jitgemm._manifest import read_manifest

ENTRY: dict[str, Any] = {"name": "layer", "op": "block_scaled_mm", "m": 5, "n": 136, "k": 272, "archs": ["sm_90a"]}
GROUPS: dict[str, Any] = {"op": "group_gemm_fp8_nt_groupwise", "layout": "masked", "groups": 2}


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "manifest.json"


def text(top: dict[str, Any], **changes: Any) -> str:
    """A manifest of ENTRY with changes; None takes a field away."""
    entry = {name: value for name, value in {**ENTRY, **changes}.items() if value is not None}
    whole = {"schema": 1, "name": "one", "description": "one layer", "entries": [entry], **top}
    return json.dumps({name: value for name, value in whole.items() if value is not None})


def manifest(path: pathlib.Path, **changes: Any) -> pathlib.Path:
    path.write_text(text({}, **changes))
    return path


@pytest.mark.parametrize("path", sorted((ROOT / "cache" / "manifests").glob("*.json")), ids=lambda path: path.stem)
def test_every_manifest_of_the_repository_is_read_which_plans_each_entry(path: pathlib.Path) -> None:
    assert read_manifest(path)


def test_a_range_of_m_is_one_problem_a_class(file: pathlib.Path) -> None:
    rows = [problem.m for _, problem, _ in read_manifest(manifest(file, m=[1, 16384]))]
    assert rows[:6] == [1, 2, 3, 5, 9, 17]
    assert len(rows) <= 32
    assert len(read_manifest(manifest(file, m=[1, 2**30]))) < 64
    assert len(read_manifest(manifest(file, m=[1, 16384], m_policy="any"))) == 1
    assert len(read_manifest(manifest(file, m=[1, 4], m_policy="exact"))) == 4
    [(_, problem, _)] = read_manifest(manifest(file, m=[5, 5]))
    assert problem.m_policy == "class"


def test_groups_may_say_the_default_type_of_codes(file: pathlib.Path) -> None:
    assert read_manifest(manifest(file, **GROUPS, a_code_dtype="F8_E4M3"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"m": None}, "field 'm' is missing"),
        ({"m": [5, 4]}, "field 'm': expected first <= last"),
        ({"m": [1, 2, 3]}, r"field 'm': expected an integer, or \[first, last\]"),
        ({"m": True}, "field 'm': expected an integer from 0 to 2147483647, found true"),
        ({"m": [-5, 3]}, "field 'm': expected an integer from 0 to 2147483647, found -5"),
        ({"m": [1, 3_000_000_000]}, "field 'm': expected an integer from 0 to 2147483647"),
        ({"m": [1, 2**31 - 1]}, "m: expected 0 to"),
        ({"m": [1, 2_000_000_000], "m_policy": "exact"}, "field 'm': expected a range of at most 65536 values"),
        ({"n": "136"}, "field 'n': expected an integer"),
        ({"n": 136.0}, "field 'n': expected an integer"),
        ({"n": 10**30}, "field 'n': expected an integer from 0 to 9223372036854775807"),
        ({"n": 0}, "n: expected 1 to"),
        ({"group_k": 0}, "group_k: expected at least 1, found 0"),
        ({"group_k": 40}, "group_k: supported are the multiples of 32"),
        ({"a_dtype": []}, r"field 'a_dtype': expected F8_E4M3, F8_E5M2, F32, BF16 or F16, found \[\]"),
        ({"out_dtype": "F8_E8M0"}, "field 'out_dtype': expected F32, BF16 or F16"),
        ({"colour": 1}, "unknown field 'colour'"),
        ({"archs": ["sm_80"]}, "field 'archs': \"sm_80\" has no kernels"),
        ({"archs": [["sm_90a"]]}, "field 'archs': expected a list of targets"),
        ({"archs": ["sm_90a", "sm_90a"]}, "field 'archs': expected each target once"),
        ({"op": "conv"}, "field 'op': expected"),
        ({"op": None}, "field 'op' is missing"),
        ({"groups": 4}, "field 'groups' is for"),
        ({**GROUPS, "layout": None}, "field 'layout' is missing"),
        ({**GROUPS, "layout": "columns"}, "field 'layout': expected row_indices"),
        ({**GROUPS, "layout": {}}, "field 'layout': expected row_indices"),
        ({**GROUPS, "groups": -1}, "field 'groups': expected an integer from 0"),
        ({**GROUPS, "zero_ungrouped": 1}, "field 'zero_ungrouped': expected true or false"),
        ({**GROUPS, "a_code_dtype": "F8_E5M2"}, "field 'a_code_dtype': expected the default"),
    ],
)
def test_a_wrong_entry_names_itself_and_the_field(file: pathlib.Path, changes: Any, words: str) -> None:
    with pytest.raises(jitgemm.Error, match=rf"entries\[0\] 'layer': {words}"):
        jitgemm.prewarm(manifest(file, **changes))


@pytest.mark.parametrize(
    "written",
    [
        "",
        "[]",
        "[" * 100_000,
        text({"name": None}),
        text({"name": ""}),
        text({"description": 5}),
        text({"schema": None}),
        text({"defaults": {"name": "x"}}),
        text({"entries": []}),
        text({"entries": None}),
        text({"x": 0}),
        text({}, name=""),
        text({}, name="\ud800"),
        text({}).replace("136", "NaN"),
        text({}).replace('"n"', '"k": 1, "n"'),
    ],
)
def test_what_is_no_manifest_is_corrupt(file: pathlib.Path, written: str) -> None:
    file.write_text(written)
    with pytest.raises(jitgemm.CorruptData, match=r"manifest\.json"):
        jitgemm.prewarm(file)


@pytest.mark.parametrize("schema", [2, 1.0, True])
def test_another_schema_is_unsupported(file: pathlib.Path, schema: Any) -> None:
    file.write_text(text({"schema": schema}))
    with pytest.raises(jitgemm.Unsupported, match="field 'schema': this version reads 1"):
        jitgemm.prewarm(file)


def test_a_file_that_is_not_there_is_an_error_of_the_system(file: pathlib.Path) -> None:
    with pytest.raises(OSError, match="IO_ERROR"):
        jitgemm.prewarm(file)
