# SPDX-License-Identifier: Apache-2.0
"""jitgemm._abi says what the header says: the header is compiled and its numbers are compared."""

from __future__ import annotations

import ctypes
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import ROOT

from jitgemm import _abi, errors

HEADER = ROOT / "include" / "jitgemm" / "jitgemm.h"
pytestmark = pytest.mark.skipif(not HEADER.exists(), reason="no header beside the tests")

STRUCTS: dict[str, type[ctypes.Structure]] = {
    "jitgemm_context_options": _abi.ContextOptions,
    "jitgemm_gemm_problem": _abi.GemmProblem,
    "jitgemm_gemm_arguments": _abi.GemmArguments,
    "jitgemm_grouped_gemm_problem": _abi.GroupedGemmProblem,
    "jitgemm_grouped_gemm_arguments": _abi.GroupedGemmArguments,
    "jitgemm_sim_buffer": _abi.SimBuffer,
    "jitgemm_sim_run_arguments": _abi.SimRunArguments,
}


def header_text() -> str:
    return re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)


def constants() -> list[str]:
    """Every numeric macro of the header but versions and initialisers."""
    names = re.findall(r"^#define (JITGEMM_\w+) +-?\d\w*", header_text(), flags=re.M)
    return [name for name in names if not name.startswith("JITGEMM_VERSION_")]


def python_name(macro: str) -> str:
    return macro.removeprefix("JITGEMM_")


def test_every_function_of_the_header_is_declared_with_as_many_parameters() -> None:
    declared = {
        name: 0 if parameters.strip() == "void" else parameters.count(",") + 1
        for name, parameters in re.findall(r"JITGEMM_API[^;]*?\b(jitgemm_\w+)\(([^;]*)\);", header_text())
    }
    assert {name: len(parameters) for name, (_, parameters) in _abi.PROTOTYPES.items()} == declared


def test_every_struct_of_the_header_has_a_mirror_with_its_fields_in_order() -> None:
    found = {
        name: re.findall(r"(\w+)(?:\[\d+\])?;", body)
        for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", header_text(), flags=re.S)
    }
    assert found == {name: [field[0] for field in struct._fields_] for name, struct in STRUCTS.items()}


def test_every_status_of_the_header_has_an_exception_of_its_name() -> None:
    names = {python_name(name).removeprefix("STATUS_") for name in constants() if "_STATUS_" in name} - {"OK"}
    kinds = {kind.status_name: kind for kind in errors._Table.classes.values()}
    assert kinds.keys() == names
    for name, kind in kinds.items():
        assert _abi.lib.jitgemm_status_name(kind.status).decode() == name


def test_sizes_offsets_and_constants_are_those_that_a_compiler_finds(tmp_path: pathlib.Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    lines = []
    for name, struct in STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field, *_ in struct._fields_:
            lines.append(
                f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name}*)0)->{field}));'
            )
    for macro in constants():
        lines.append(f'printf("{macro} %lld\\n", (long long){macro});')
    source = tmp_path / "numbers.c"
    source.write_text(
        "#include <jitgemm/jitgemm.h>\n#include <stdio.h>\nint main(void) {\n" + "\n".join(lines) + "\nreturn 0; }\n"
    )
    program = tmp_path / "numbers"
    subprocess.run([compiler, "-std=c99", f"-I{ROOT / 'include'}", str(source), "-o", str(program)], check=True)
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    found = {line.split()[0]: [int(number) for number in line.split()[1:]] for line in printed.splitlines()}

    expected: dict[str, list[int]] = {}
    for name, struct in STRUCTS.items():
        expected[name] = [ctypes.sizeof(struct)]
        for field, *_ in struct._fields_:
            descriptor = getattr(struct, field)
            expected[f"{name}.{field}"] = [descriptor.offset, descriptor.size]
    for macro in constants():
        if "_STATUS_" in macro and macro not in ("JITGEMM_STATUS_OK", "JITGEMM_STATUS_NOT_READY"):
            name = python_name(macro).removeprefix("STATUS_")
            expected[macro] = [next(k.status for k in errors._Table.classes.values() if k.status_name == name)]
        else:
            expected[macro] = [getattr(_abi, python_name(macro))]
    assert found == expected
