"""What makes a matrix a code: whole numbers, symbols in range, no constant column, no two classes with one word."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._check import plural

UNUSED = -1
MAX_SYMBOLS = 32767  # of a column: symbols are int16


def integers(values: ArrayLike, what: str) -> NDArray[np.int64]:
    """`values` as int64, refusing what is not a whole number."""
    try:
        given = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{what} must be a rectangular array of integers; {error}.") from error
    if given.dtype.kind not in "biuf":
        raise TypeError(f"{what} must hold integers; got an array of {given.dtype}. Number the symbols from 0.")
    with np.errstate(invalid="ignore"):
        whole = given.astype(np.int64)
    if given.dtype.kind == "u" and given.size and given.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{what} must hold symbols from 0 to {MAX_SYMBOLS - 1}; got {given.max()}.")
    if given.dtype.kind == "f" and not np.array_equal(whole, given):
        wrong = given[whole != given].flat[0]
        raise ValueError(f"{what} must hold integers; got {wrong}. Symbols are the numbers 0..N-1, or -1 for UNUSED.")
    return whole


def ascending(major: NDArray[np.int64], minor: NDArray[np.int64]) -> bool:
    """Whether pairs are sorted by the first of each and then by the second."""
    steps = np.diff(major)
    return bool(((steps > 0) | ((steps == 0) & (np.diff(minor) >= 0))).all())


def column_ranges(symbols: NDArray[np.int64], starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each column's smallest and largest symbol; refuses columns that no class uses."""
    sizes = np.diff(starts)
    if (sizes == 0).any():
        empty = np.flatnonzero(sizes == 0)
        raise ValueError(
            f"every column must be used by at least two classes; no class uses column {empty[0]} "
            f"({plural(int(empty.size), 'such column')}). Remove it."
        )
    return np.minimum.reduceat(symbols, starts[:-1]), np.maximum.reduceat(symbols, starts[:-1])


def alphabet_sizes(alphabet: ArrayLike | None, high: NDArray[np.int64], n_columns: int) -> NDArray[np.int16]:
    """The number of symbols of each column."""
    if alphabet is None:
        sizes = np.minimum(high, MAX_SYMBOLS) + 1
    else:
        sizes = integers(alphabet, "alphabet")
        if sizes.shape not in ((), (n_columns,)):
            raise ValueError(
                f"alphabet must be one number or one for each of the {n_columns} columns; got shape {sizes.shape}."
            )
        sizes = np.broadcast_to(sizes, (n_columns,))
    if sizes.size and (sizes.max() > MAX_SYMBOLS or (alphabet is not None and sizes.min() < 2)):
        given = f"symbol {high.max()}" if alphabet is None else f"{sizes.min()} to {sizes.max()}"
        raise ValueError(
            f"a column must have 2 to {MAX_SYMBOLS} symbols; got {given}. "
            "Number the symbols of a column from 0 without gaps."
        )
    return sizes.astype(np.int16)


def check_symbols(
    classes: NDArray[np.int64],
    columns: NDArray[np.int64],
    symbols: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    alphabet: NDArray[np.int16],
) -> None:
    """Refuses symbols out of range, entries given twice and constant columns."""
    if (symbols < 0).any():
        e = int(np.flatnonzero(symbols < 0)[0])
        raise ValueError(
            f"symbols must be the numbers 0..N-1; class {classes[e]} has {symbols[e]} in column {columns[e]}. "
            f"Number the symbols from 0; {UNUSED} in a whole matrix, or no entry at all, means UNUSED."
        )
    if (symbols >= alphabet[columns]).any():
        e = int(np.flatnonzero(symbols >= alphabet[columns])[0])
        raise ValueError(
            f"symbols of column {columns[e]} must lie in 0..{alphabet[columns[e]] - 1}; class {classes[e]} has "
            f"{symbols[e]}. Give a larger alphabet, or number the symbols from 0."
        )
    twice = (np.diff(columns) == 0) & (np.diff(classes) == 0)
    if twice.any():
        e = int(np.flatnonzero(twice)[0])
        raise ValueError(f"an entry may be given once; class {classes[e]} has two symbols in column {columns[e]}.")
    if (low == high).any():
        s = int(np.flatnonzero(low == high)[0])
        raise ValueError(
            f"every column must give at least two classes different symbols; all classes that use column {s} have "
            f"symbol {low[s]}. Remove the column."
        )


def check_codewords(
    classes: NDArray[np.int64], columns: NDArray[np.int64], symbols: NDArray[np.int64], n_classes: int
) -> None:
    """Refuses two classes with the same codeword."""
    keys = (columns << 16 | symbols).astype(np.uint64)
    marks = np.zeros(n_classes, np.uint64)
    with np.errstate(over="ignore"):
        keys = (keys + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        keys = (keys ^ (keys >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        np.add.at(marks, classes, keys ^ (keys >> np.uint64(32)))  # a sum of hashes: equal words have equal marks
    order = np.argsort(marks, kind="stable")
    same = np.flatnonzero(marks[order][1:] == marks[order][:-1])
    for a, b in zip(order[same], order[same + 1], strict=True):
        words = [(columns[classes == c], symbols[classes == c]) for c in (a, b)]
        if all(np.array_equal(x, y) for x, y in zip(*words, strict=True)):
            raise ValueError(
                f"every class must have a codeword of its own; classes {min(a, b)} and {max(a, b)} have the same. "
                "Change one of the rows, or add a column that tells the two classes apart."
            )
