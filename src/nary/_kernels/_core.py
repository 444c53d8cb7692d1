"""The compiled core itself, its CPU levels, and the checks that every door shares."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    from .. import _native as _native
except ImportError as error:  # never a silent slow path
    raise ImportError(
        "nary's compiled core is missing or does not fit this Python: build it with `pip install .` in the project's "
        f"folder, or `pip install --force-reinstall nary`. The loader said: {error}"
    ) from error

TILE = 64  # samples on the vector axis: the core's kTile


def levels() -> tuple[str, ...]:
    """The CPU levels that this machine can run, slowest first."""
    return tuple(_native.levels())


def level() -> str:
    """The CPU level in use."""
    return str(_native.level())


def use_level(name: str) -> None:
    """Switches the core to another CPU level; results do not depend on it."""
    if not _native.activate(name):
        raise ValueError(
            f"CPU level {name!r} is not available: this machine runs {', '.join(levels())}. "
            "Unset NARY_LEVEL to let nary choose."
        )


if os.environ.get("NARY_LEVEL"):  # an empty one counts as unset
    try:
        use_level(os.environ["NARY_LEVEL"])
    except ValueError as refused:
        raise ImportError(str(refused)) from None


def expect(holds: bool, expected: str, given: str) -> None:
    if not holds:
        raise ValueError(f"the native core expected {expected}; got {given}. This is a bug of the caller: report it.")


def check_array(
    array: NDArray[Any], name: str, dtype: type[np.generic], ndim: int, shape: tuple[int, ...] | None = None
) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != ndim:
        given = f"{array.dtype} with {array.ndim} axes" if isinstance(array, np.ndarray) else type(array).__name__
        expect(False, f"{name} as {np.dtype(dtype)} with {ndim} axes", given)
    expect(array.flags.c_contiguous, f"{name} C-contiguous", f"strides {array.strides}")
    expect(shape is None or array.shape == shape, f"{name} of shape {shape}", f"{array.shape}")


def thread_count(n_threads: int) -> int:
    expect(n_threads >= 1, "at least one thread", str(n_threads))
    return min(int(n_threads), 256)
