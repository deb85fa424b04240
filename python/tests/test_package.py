# SPDX-License-Identifier: Apache-2.0
"""The package as such: what it imports, what it promises, how it fails."""

from __future__ import annotations

import inspect
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest
from conftest import ROOT

import jitgemm
from jitgemm._runtime import Simulator


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_importing_it_imports_neither_torch_nor_numpy() -> None:
    done = python("import sys, jitgemm; print(sorted({'torch', 'numpy', 'ml_dtypes'} & set(sys.modules)))")
    assert done.stdout.strip() == "[]", done.stderr


def test_the_version_is_that_of_the_build() -> None:
    project = (ROOT / "CMakeLists.txt").read_text()
    match = re.search(r"project\(jitgemm VERSION ([0-9.]+)", project)
    assert match is not None
    assert jitgemm.__version__ == match.group(1)


def test_a_missing_library_says_what_to_set(tmp_path: pathlib.Path) -> None:
    done = python("import jitgemm", JITGEMM_LIBRARY=str(tmp_path / "none.so"))
    assert "none.so" in done.stderr
    if not (pathlib.Path(jitgemm.__file__).parent / "lib").exists():
        done = python("import jitgemm", JITGEMM_LIBRARY="")
        assert "ImportError" in done.stderr
        assert "JITGEMM_LIBRARY" in done.stderr


def test_a_missing_compiler_is_an_exception_of_its_own(tmp_path: pathlib.Path) -> None:
    code = (
        "import jitgemm\n"
        f"jitgemm.configure(cache_folder={str(tmp_path)!r}, nvrtc_library='/nonexistent/libnvrtc.so.13')\n"
        "try: jitgemm.compile(jitgemm.GemmProblem(m=1, n=8, k=32))\n"
        "except jitgemm.NoCompiler as error: print(error.status, error.status_name)"
    )
    assert python(code).stdout.strip() == "11 NO_COMPILER"


def public_functions() -> list[Any]:
    values = [getattr(jitgemm, name) for name in jitgemm.__all__]
    return [value for value in values if inspect.isfunction(value)]


@pytest.mark.parametrize("function", public_functions(), ids=lambda function: function.__name__)
def test_every_public_function_is_typed_and_documented(function: Any) -> None:
    signature = inspect.signature(function)
    assert function.__doc__
    assert signature.return_annotation is not inspect.Signature.empty
    for name, parameter in signature.parameters.items():
        assert parameter.annotation is not inspect.Parameter.empty, name
        assert re.search(rf"\b{name}\b", function.__doc__), f"{name} is not in the text"


def test_names_of_the_package_exist_and_py_typed_marks_it() -> None:
    assert all(hasattr(jitgemm, name) for name in jitgemm.__all__)
    assert (pathlib.Path(jitgemm.__file__).parent / "py.typed").exists()


def test_settings_are_checked_when_they_are_set() -> None:
    done = python("import jitgemm; jitgemm.configure(cache_mode='maybe')")
    assert "InvalidArgument" in done.stderr
    assert "maybe" in done.stderr


def test_what_the_sanitizer_checks_is_a_flag_or_a_name() -> None:
    assert Simulator(sanitize=True).options()["sim_sanitize"] == "1"
    assert Simulator(sanitize="no-races").options()["sim_sanitize"] == "no-races"
    with pytest.raises(jitgemm.InvalidArgument, match="sanitize: expected True or False, found 2"):
        jitgemm.simulator(sanitize=2).__enter__()  # type: ignore[arg-type]


def test_the_readme_s_lines_run_as_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)
    assert blocks
    for block in blocks:
        exec(block, {})
    assert capsys.readouterr().out.count("[") > 4
