#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each source file names its licence; nothing is left unfinished in words."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = {".h", ".hpp", ".c", ".cpp", ".cu", ".cuh", ".def", ".py", ".sh", ".cmake"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def main() -> int:
    errors = []
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in names.splitlines():
        path = ROOT / name
        if path.suffix not in SOURCE or not path.is_file() or name == "tools/check_text.py":
            continue
        text = path.read_text()
        if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(text.splitlines()[:3]):
            errors.append(f"{name}: the first lines lack 'SPDX-License-Identifier: Apache-2.0'")
        for number, line in enumerate(text.splitlines(), 1):
            if UNFINISHED.search(line):
                errors.append(f"{name}:{number}: {line.strip()}")
    print("\n".join(errors) if errors else "licences and words are fine")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
