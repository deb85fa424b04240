#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes scalar.case: one program or more for each row of the instruction table that computes on
registers alone. Expected values come from Python's integers and fractions, by the definitions of the
PTX ISA, and from nothing of the simulator. Run it in this folder; the result is committed."""
import importlib
import random

from scalar_model import out

random.seed(7)
for part in ("scalar_integers", "scalar_floats", "scalar_moves"):  # each writes its cases when it is loaded
    importlib.import_module(part)
with open("scalar.case", "w") as file:
    file.write("\n".join(out))
print(sum(1 for line in out if line.startswith("in ")), "runs")
