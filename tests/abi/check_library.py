#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What libjitgemm.so shows to the world: its symbols, its dependencies, its name.

Usage: check_library.py LIBRARY SYMBOLS HEADER
"""

import pathlib
import re
import subprocess
import sys

# libpthread and libdl are part of libc since glibc 2.34, and older ones may still be named.
ALLOWED = re.compile(r"(libc|libm|libstdc\+\+|libgcc_s|libpthread|libdl|ld-linux-[\w-]+)\.so(\.\d+)*$")


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> int:
    library, symbols, header = sys.argv[1:]
    errors = []

    exported = {
        line.split()[-1].split("@")[0]
        for line in run("nm", "--dynamic", "--defined-only", library).splitlines()
    } - {"JITGEMM_0"}  # the version itself
    listed = {line for line in pathlib.Path(symbols).read_text().split("\n") if line and not line.startswith("#")}
    for name in sorted(exported - listed):
        errors.append(f"{name} is exported and not in {symbols}")
    for name in sorted(listed - exported):
        errors.append(f"{name} is in {symbols} and not exported")
    declared = set(re.findall(r"JITGEMM_API[^;]*?\b(jitgemm_\w+)\(", pathlib.Path(header).read_text()))
    for name in sorted(declared ^ listed):
        errors.append(f"{name} is in one of the header and {symbols}")

    dynamic = run("readelf", "--dynamic", "--wide", library)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    errors += [f"{library} needs {name}" for name in needed if not ALLOWED.match(name)]
    if not any(name.startswith("libc.so") for name in needed):
        errors.append(f"readelf lists no libc: is its output understood? {needed}")
    if "[libjitgemm.so.0]" not in dynamic:
        errors.append("the SONAME is not libjitgemm.so.0")
    for tag in ("RPATH", "RUNPATH", "TEXTREL"):
        if f"({tag})" in dynamic:
            errors.append(f"{library} has {tag}")
    if "NODELETE" not in dynamic:
        errors.append(f"{library} may be unloaded")

    print("\n".join(errors) if errors else f"{len(exported)} symbols, needs {', '.join(needed)}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
