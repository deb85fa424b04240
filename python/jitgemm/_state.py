# SPDX-License-Identifier: Apache-2.0
"""Whether the torch backend is loaded. torch is never imported by jitgemm itself: the backend is
loaded when torch is there already and is first used."""

from __future__ import annotations

import sys
from typing import Any

# The module jitgemm._torch, once it is loaded.
torch_backend: Any = None


def load_torch_backend() -> Any:
    """Imports jitgemm._torch, which registers the custom ops. By a statement: torch.compile may trace
    the first call, and follows no call of importlib."""
    global torch_backend
    if torch_backend is None:
        from . import _torch

        torch_backend = _torch
    return torch_backend


def load_if_torch_is_imported() -> None:
    """On import of jitgemm: with torch already imported, torch.compile may trace the first call."""
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "library"):
        load_torch_backend()
