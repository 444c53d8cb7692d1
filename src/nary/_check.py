"""Checks of arguments whose errors say what was expected, what was given and what to do."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Iterable
from typing import Any


def unknown_name(what: str, name: object, known: Iterable[str]) -> ValueError:
    """The error for a name that is not in a list of names: lists them and suggests the nearest."""
    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return ValueError(f"unknown {what} {name!r}: expected one of {', '.join(map(repr, names))}.{hint}")


def integer(value: Any, name: str, low: int, high: int | None = None, hint: str = "") -> int:
    """`value` as an int in low..high, or an error that names the argument."""
    span = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
    tail = f" {hint}" if hint else ""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be {span}; got {value!r} of type {type(value).__name__}.{tail}")
    number = int(value)
    if number < low or (high is not None and number > high):
        raise ValueError(f"{name} must be {span}; got {number}.{tail}")
    return number


def real(value: Any, name: str, low: float, high: float, hint: str = "") -> float:
    """`value` as a float strictly between low and high, or an error that names the argument."""
    tail = f" {hint}" if hint else ""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(
            f"{name} must be a number between {low:g} and {high:g}; got {value!r} of type {type(value).__name__}.{tail}"
        )
    number = float(value)
    if not low < number < high:
        raise ValueError(f"{name} must lie strictly between {low:g} and {high:g}; got {number:g}.{tail}")
    return number


def plural(count: int, noun: str, many: str | None = None) -> str:
    """'1 column', '3 columns', '2 classes'."""
    return f"{count} {noun if count == 1 else many or noun + 's'}"
