#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The machine code of the product kernels: the instructions that each is made for are there, and no spill is.

Compiles one kernel of every style for sm_90a and sm_100a with `jitgemm compile --sass`, and counts mnemonics of the
disassembly. A disassembler (nvdisasm) is taken from PATH, else from the pinned PyPI package, which is unpacked into
build/nvdisasm.

Exit codes: 0 passed, 1 failed, 77 skipped with the reason on standard output.
"""

import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pypi

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = "nvidia-cuda-nvdisasm==13.3.73"
SKIP = 77

DENSE = ("block_scaled_mm", "-m", "4096", "-n", "4096", "-k", "4096")
FEW = ("block_scaled_mm", "-m", "64", "-n", "2112", "-k", "7168")
GROUPS = ("group_gemm_fp8_nt_groupwise", "-m", "8192", "-n", "4096", "-k", "7168", "--groups", "8")
HALF = ("--a-dtype", "bf16", "--b-dtype", "bf16")
POW2 = ("--scale-values", "pow2")

# Local memory: what does not fit registers.
SPILLS = ("LDL", "STL")
# name, arguments, mnemonics that must be there (prefixes at a dot), mnemonics that may not.
HOPPER = (
    ("large", DENSE, "QGMMA UTMALDG.2D UTMASTG.2D STSM USETMAXREG SYNCS.PHASECHK ACQBULK", "HGMMA"),
    ("fp32 out", (*DENSE, "--out-dtype", "f32"), "QGMMA UTMALDG.2D UTMASTG.2D", "HGMMA"),
    ("multicast", (*DENSE, "--tile-m", "128", "--tile-n", "256", "--cluster", "2"), "QGMMA UTMALDG.2D.MULTICAST UCGABAR_ARV",
     ""),
    ("k split", (*FEW, "--split-k", "2", "--cluster", "2"), "QGMMA UTMALDG.2D UCGABAR_ARV", "UTMASTG"),
    ("swapped", ("block_scaled_mm", "-m", "1", "-n", "7168", "-k", "2048"), "QGMMA UTMALDG.2D", ""),
    ("rows by cp.async", ("block_scaled_mm", "-m", "64", "-n", "4096", "-k", "3884", "--align-rows", "off"),
     "QGMMA LDGSTS.E", "UTMALDG"),
    ("groups", GROUPS, "QGMMA UTMALDG.2D UTMASTG.2D", "HGMMA"),
    ("groups of 16 bits", (*GROUPS, *HALF), "HGMMA UTMALDG.2D", "QGMMA"),
)
# UTCQMMA multiplies FP8, UTCHMMA 16 bits; LDTM reads tensor memory; UTCBAR is tcgen05.commit; UTCCP brings scales.
BLACKWELL = (
    ("pair", DENSE, "UTCQMMA.2CTA UTCBAR.2CTA.MULTICAST UTMALDG.2D.2CTA UTMASTG.2D LDTM FFMA2 USETMAXREG "
     "UTCATOMSWS.2CTA ACQBULK", "UTCHMMA UTCCP"),
    ("one CTA", (*DENSE, "--cluster", "1"), "UTCQMMA UTCBAR UTMALDG.2D UTMASTG.2D LDTM FFMA2", "UTCQMMA.2CTA UTCCP"),
    ("multicast", (*DENSE, "--tile-m", "128", "--tile-n", "128", "--cluster", "4", "--split-k", "1"),
     "UTCQMMA UTCBAR.MULTICAST UTMALDG.2D.MULTICAST LDTM FFMA2", "UTCQMMA.2CTA"),
    ("swapped", ("block_scaled_mm", "-m", "16", "-n", "24576", "-k", "1536", "--split-k", "1"),
     "UTCQMMA UTCBAR UTMALDG.2D LDTM FFMA2", "UTMASTG"),
    ("k split", (*FEW, "--split-k", "4", "--cluster", "4"), "UTCQMMA UTCBAR UTMALDG.2D LDTM UCGABAR_ARV", "UTMASTG"),
    ("hardware scales, pair", (*DENSE, *POW2), "UTCQMMA.2CTA UTCCP UTCBAR.2CTA.MULTICAST UTMALDG.2D.2CTA LDTM", "FFMA2"),
    ("hardware scales, one CTA", (*DENSE, *POW2, "--cluster", "1"), "UTCQMMA UTCCP UTCBAR UTMALDG.2D LDTM",
     "UTCQMMA.2CTA FFMA2"),
    ("groups", GROUPS, "UTCQMMA UTCBAR UTMALDG.2D UTMASTG.2D LDTM FFMA2", "UTCHMMA"),
    ("groups of 16 bits", (*GROUPS, *HALF), "UTCHMMA UTCBAR UTMALDG.2D LDTM", "UTCQMMA UTCCP FFMA2"),
)


def disassembler():
    """The folder of nvdisasm: that on PATH, else of the package, which is unpacked once. Raises pypi.Unavailable."""
    found = shutil.which("nvdisasm")
    if found:
        return pathlib.Path(found).parent
    unpacked = ROOT / "build" / "nvdisasm"
    target = unpacked / "nvidia" / "cu13" / "bin"
    if not (target / "nvdisasm").exists():
        with tempfile.TemporaryDirectory() as folder, pypi.fetch(PACKAGE, pathlib.Path(folder)) as wheel:
            wheel.extractall(unpacked)
        (target / "nvdisasm").chmod(0o755)
    return target


def mnemonics(text):
    """Opcode with modifiers -> how often, of nvdisasm's text."""
    return collections.Counter(re.findall(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", text, re.M))


def count(found, wanted):
    """How many instructions are `wanted` or have more modifiers, wherever those stand."""
    opcode, *modifiers = wanted.split(".")
    total = 0
    for name, times in found.items():
        parts = name.rstrip(".").split(".")
        if parts[0] == opcode and all(m in parts[1:] for m in modifiers):
            total += times
    return total


def check(options, arch, case, folder, path):
    name, arguments, wanted, unwanted = case
    target = pathlib.Path(folder) / "kernel.sass"
    command = [options.jitgemm, "compile", *arguments, "--arch", arch, "--cached", "--sass", target]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": path})
    if done.returncode != 0:
        print(f"FAILED {arch} {name}: exit code {done.returncode}: {done.stderr.strip()}")
        return False
    found = mnemonics(target.read_text())
    problems = [f"no {w}" for w in wanted.split() if count(found, w) == 0]
    problems += [f"{count(found, w)} x {w}" for w in (*SPILLS, *unwanted.split()) if count(found, w)]
    if ", 0 bytes spilled, 0 bytes of stack," not in done.stdout:
        problems.append("the compiler reports spills or a stack")
    shown = ", ".join(f"{count(found, w)} {w}" for w in wanted.split())
    print(f"{'FAILED' if problems else 'ok'} {arch} {name}: {sum(found.values())} instructions, "
          f"{'; '.join(problems) or shown}")
    return not problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jitgemm", required=True, help="the jitgemm command")
    options = parser.parse_args()
    try:
        path = f"{disassembler()}{os.pathsep}{os.environ['PATH']}"
    except pypi.Unavailable as reason:
        print(f"SKIPPED sass: {reason}")
        return SKIP
    with tempfile.TemporaryDirectory() as folder:
        results = [check(options, arch, case, folder, path)
                   for arch, cases in (("sm_90a", HOPPER), ("sm_100a", BLACKWELL)) for case in cases]
    print(f"sass: {sum(results)} of {len(results)} kernels passed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
