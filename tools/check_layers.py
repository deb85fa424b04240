#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Enforces who may include whom under src/: data flows one way, and two parts know nothing of products."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# folder -> the folders whose headers it may include, besides its own
MAY_INCLUDE = {
    "support": set(),
    "problem": {"support"},
    "plan": {"support", "problem"},
    "specialize": {"support", "problem", "plan"},
    "compile": {"support", "specialize"},
    "cache": {"support"},
    "ptx": {"support"},
    "sim": {"support", "ptx"},
    "device": {"support", "problem", "plan", "compile"},
    "verify": {"support", "problem"},
    "simrun": {"support", "ptx", "sim", "verify"},
    "runtime": {"support", "problem", "plan", "specialize", "compile", "cache", "device"},
    "selftest": {"support", "problem", "plan", "compile", "device", "runtime", "verify"},
    "bench": {"support", "problem", "plan", "specialize", "compile", "device", "runtime", "selftest", "verify"},
    "api": {"support", "problem", "plan", "device", "runtime", "simrun", "jitgemm"},
}
# Files that may see more, with the reason.
EXCEPTIONS = {
    "device/sim_device.h": {"sim"},  # the one door between devices and the simulator
    "device/sim_device.cpp": {"sim"},
}
# The simulator runs any PTX: it may not know what our kernels are.
FORBIDDEN_WORDS = {
    "sim": re.compile(r"\b(gemm|block_scaled|jitgemm_kernel|gemm_sm\w*|tile_m|tile_n|kTileM|kTileN)\b", re.I),
    "simrun": re.compile(r"\b(gemm|block_scaled|jitgemm_kernel|gemm_sm\w*)\b", re.I),
    "ptx": re.compile(r"\b(gemm|block_scaled|jitgemm_kernel|gemm_sm\w*)\b", re.I),
}


def main() -> int:
    errors = []
    for path in sorted((ROOT / "src").glob("*/*")):
        if path.suffix not in {".h", ".cpp", ".def"}:
            continue
        folder = path.parent.name
        name = f"{folder}/{path.name}"
        if folder not in MAY_INCLUDE:
            errors.append(f"{name}: folder '{folder}' is not in tools/check_layers.py")
            continue
        allowed = MAY_INCLUDE[folder] | EXCEPTIONS.get(name, set()) | {folder}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'#include "([a-z_]+)/', line)
            if match and match.group(1) in MAY_INCLUDE.keys() | {"jitgemm"} and match.group(1) not in allowed:
                errors.append(f"{name}:{number}: {folder} may not include {match.group(1)}")
            words = FORBIDDEN_WORDS.get(folder)
            text = re.sub(r"jitgemm::|namespace jitgemm", "", line)
            if words and words.search(text):
                errors.append(f"{name}:{number}: {folder} must not know '{words.search(text).group(0)}'")
    print("\n".join(errors) if errors else "layers hold")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
