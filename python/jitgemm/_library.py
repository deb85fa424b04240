# SPDX-License-Identifier: Apache-2.0
"""Where the C library and NVRTC are. The only place of the package that reads the environment.

Knows nothing of the library's functions; ``_abi`` declares those.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib

LIBRARY_VARIABLE = "JITGEMM_LIBRARY"
NVRTC_VARIABLE = "JITGEMM_NVRTC"


def find_library() -> str:
    """The file of the C library: ``JITGEMM_LIBRARY`` for a development build, else the one that
    the wheel carries."""
    given = os.environ.get(LIBRARY_VARIABLE)
    if given:
        return given
    carried = pathlib.Path(__file__).with_name("lib") / "libjitgemm.so.0"
    if carried.exists():
        return str(carried)
    raise ImportError(
        f"no libjitgemm.so.0 in {carried.parent}: install the wheel, or set {LIBRARY_VARIABLE} "
        "to the library of a build"
    )


def find_nvrtc() -> str | None:
    """The NVRTC of an installed Python package, newest first; None leaves the search to the
    library, as does ``JITGEMM_NVRTC``, which the library reads itself."""
    if os.environ.get(NVRTC_VARIABLE):
        return None
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return None
    roots = list(spec.submodule_search_locations or []) if spec is not None else []
    for pattern in ("cu*/lib/libnvrtc.so.*", "cuda_nvrtc/lib/libnvrtc.so.*"):
        for root in roots:
            files = [
                file for file in pathlib.Path(root).glob(pattern) if file.name.removeprefix("libnvrtc.so.").isdigit()
            ]
            if files:
                return str(max(files, key=lambda file: int(file.name.rpartition(".")[2])))
    return None
