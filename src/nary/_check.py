"""Checks of arguments whose errors say what was expected, what was given and what to do."""

from __future__ import annotations

import difflib
import math
import numbers
import os
from collections.abc import Iterable
from typing import Any

import numpy as np


def unknown_name(what: str, name: object, known: Iterable[str]) -> ValueError:
    """The error for a name that is not in a list of names: lists them and suggests the nearest."""
    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return ValueError(f"unknown {what} {name!r}: expected one of {', '.join(map(repr, names))}.{hint}")


def one_of(value: Any, name: str, known: Iterable[Any]) -> None:
    """Refuses a value that is none of those known."""
    known = tuple(known)
    if not any(value == choice for choice in known):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; got {value!r}.")


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


def jobs(value: Any, name: str = "n_jobs") -> int | None:
    """`value` as a number of jobs in joblib's sense, or an error that names the argument."""
    expected = f"{name} must be None or an integer other than 0 (-1: as many as there are cores)"
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{expected}; got {value!r} of type {type(value).__name__}. Give None for one job.")
    if value == 0:
        raise ValueError(f"{expected}; got 0. Give None for one job.")
    return int(value)


def verbosity(value: Any) -> int:
    """`value` as a degree of talkativeness, or an error."""
    return int(value) if isinstance(value, bool) else integer(value, "verbose", 0, hint="0 prints nothing.")


def labels(y: Any) -> None:
    """Refuses labels that NumPy would turn into others or cannot sort: missing ones, mixed kinds, huge integers."""
    values = y if isinstance(y, (list, tuple)) else np.asarray(y)
    if isinstance(values, np.ndarray) and (values.dtype.kind != "O" or values.ndim != 1):
        return
    for row, value in enumerate(values):
        if _is_missing(value):
            raise ValueError(f"y must hold a label for each row; got {value} in row {row}. Leave such rows out.")
    kinds = {type(value) for value in values}
    if any(issubclass(kind, str) for kind in kinds) and not all(issubclass(kind, str) for kind in kinds):
        names = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise TypeError(
            f"y must hold labels of one kind; got {names}. Turn them all into strings: [str(k) for k in y]."
        )
    if kinds and all(issubclass(kind, numbers.Integral) for kind in kinds):
        low, high = int(min(values)), int(max(values))
        if low < -(1 << 63) or high >= 1 << 64 or (low < 0 and high >= 1 << 63):
            raise ValueError(
                f"y must hold integers of 64 bits; got {high if high >= 1 << 63 else low}. "
                "Turn the labels into strings: [str(k) for k in y]."
            )


def _is_missing(value: Any) -> bool:
    """None, NaN, and the missing values of pandas."""
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and math.isnan(value))
    )


def numbers_in(X: Any) -> None:
    """Refuses dates and durations, which NumPy would take for numbers of some unit."""
    kinds = X.dtypes if hasattr(X, "dtypes") else [getattr(X, "dtype", None)]
    dates = [str(kind) for kind in kinds if str(kind).lower().startswith(("date", "time", "duration", "period"))]
    if dates:
        raise TypeError(
            f"X must hold numbers; got {dates[0]}. Turn dates into numbers first, such as days since a date: "
            "(X - start) / np.timedelta64(1, 'D')."
        )


def plural(count: int, noun: str, many: str | None = None) -> str:
    """'1 column', '3 columns', '2 classes'."""
    return f"{count} {noun if count == 1 else many or noun + 's'}"


def physical_memory() -> int:
    """This machine's memory in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_memory(n_bytes: int, what: str, hint: str) -> None:
    """Refuses what is larger than this machine's memory; `what` says its name and shape, `hint` what to do."""
    memory = physical_memory()
    if n_bytes > memory:
        raise ValueError(f"{what} needs {_gib(n_bytes)}, more than this machine's {_gib(memory)}. {hint}")


def _gib(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:,.1f} GiB"
