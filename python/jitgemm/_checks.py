# SPDX-License-Identifier: Apache-2.0
"""Values of a call that are no arrays, checked before ctypes sees them.

ctypes cuts an integer to the width of its field and says nothing; so every integer, flag and name goes
through one of these. Knows neither arrays nor products.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from . import errors


def wrong(name: str, words: str, value: Any) -> errors.InvalidArgument:
    """The exception for a value that is not what words say."""
    # Python refuses to print integers of thousands of digits.
    long = isinstance(value, int) and value.bit_length() > 256
    shown = f"an integer of {value.bit_length()} bits" if long else repr(value)
    return errors.InvalidArgument(f"{name}: expected {words}, found {shown}")


def _integer(name: str, value: Any, least: int, greatest: int, words: str) -> int:
    try:
        number = int(operator.index(value))
    except TypeError:
        number = greatest + 1
    if not least <= number <= greatest:
        raise wrong(name, words, value)
    return number


def integer(name: str, value: Any, least: int, greatest: int) -> int:
    """An integer of a range."""
    return _integer(name, value, least, greatest, f"an integer from {least} to {greatest}")


def field(name: str, value: Any, bits: int) -> int:
    """An integer for a signed field of that many bits; which of them make sense is for the library to say."""
    half = 1 << (bits - 1)
    return _integer(name, value, -half, half - 1, f"an integer of {bits} bits")


def address(name: str, value: Any) -> int:
    """An address, or a handle that is one; None is 0."""
    return 0 if value is None else _integer(name, value, 0, 2**64 - 1, "an address as an integer")


def flag(name: str, value: Any) -> int:
    """0 or 1 of a truth value, which may be numpy's."""
    if type(value).__name__ not in ("bool", "bool_"):
        _integer(name, value, 0, 1, "True or False")
    return int(value)


def choice(name: str, table: dict[str, int], value: Any) -> int:
    """The number of one of a few names."""
    try:
        return table[value]
    except (KeyError, TypeError):
        raise wrong(name, f"one of {', '.join(table)}", value) from None


def number(name: str, value: Any) -> float:
    """A float."""
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise wrong(name, "a number", value)


def present(views: dict[str, Any], names: Iterable[str]) -> None:
    """None of the arrays that a call cannot do without is None."""
    for name in names:
        if name not in views:
            raise errors.InvalidArgument(f"{name}: expected an array, found None")
