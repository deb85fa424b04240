# SPDX-License-Identifier: Apache-2.0
"""Options and fixtures. The CPU part needs numpy and ml_dtypes only and runs on the simulator."""

from __future__ import annotations

import importlib.util
import os
import pathlib

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCHS = ("sm_90a", "sm_100a")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--arch", choices=(*ARCHS, "all"), default="all", help="simulated target of the CPU part")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "arch" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--arch")
        metafunc.parametrize("arch", ARCHS if chosen == "all" else (chosen,))


def _missing(item: pytest.Item) -> str | None:
    if not (item.get_closest_marker("gpu") or item.get_closest_marker("torch")):
        return None
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            return "torch sees no GPU"
        if torch.cuda.get_device_capability()[0] not in (9, 10):
            return f"no kernels for {torch.cuda.get_device_name()}"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons: dict[bool, str | None] = {}
    for item in items:
        gpu = item.get_closest_marker("gpu") is not None
        if gpu or item.get_closest_marker("torch"):
            if gpu not in reasons:
                reasons[gpu] = _missing(item)
            if reasons[gpu]:
                item.add_marker(pytest.mark.skip(reason=str(reasons[gpu])))


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Kernels go where JITGEMM_CACHE_DIR says, and without it to a folder of this run."""
    if "JITGEMM_CACHE_DIR" not in os.environ:
        os.environ["JITGEMM_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1234)
