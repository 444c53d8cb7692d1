"""What makes a matrix a code: whole numbers, symbols in range, no constant column, no two classes with one word."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ._check import plural

UNUSED = -1
MAX_SYMBOLS = 32767  # of a column: symbols are int16


def integers(values: ArrayLike, what: str) -> NDArray[np.signedinteger[Any]]:
    """`values` as signed integers of the smallest type at hand (no copy where they are such), or an error."""
    if sp.issparse(values):
        raise TypeError(
            f"{what} must be an array of integers; got a sparse {type(values).__name__}, whose empty entries may be "
            "meant as UNUSED or as symbol 0. Give its toarray(), or its entries to CodeMatrix.from_entries."
        )
    try:
        given = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{what} must be a rectangular array of integers; {error}.") from error
    if given.dtype.kind == "O" and given.size and all(isinstance(value, numbers.Integral) for value in given.flat):
        _refuse_huge(max(given.flat, key=abs), what)
    if given.dtype.kind not in "biuf":
        raise TypeError(f"{what} must hold integers; got an array of {given.dtype}. Number the symbols from 0.")
    if given.dtype.kind == "i":
        return given
    if given.dtype.kind == "b":
        return given.astype(np.int8)
    if given.dtype.kind == "u":
        _refuse_huge(given.max(initial=0), what)
        return given.astype(f"i{min(2 * given.itemsize, 8)}")
    with np.errstate(invalid="ignore"):
        whole = given.astype(np.int64)
    if not np.array_equal(whole, given):
        wrong = given[whole != given].flat[0]
        raise ValueError(f"{what} must hold integers; got {wrong}. Symbols are the numbers 0..N-1, or -1 for UNUSED.")
    return whole


def _refuse_huge(value: Any, what: str) -> None:
    """Refuses a number beyond 64 bits by name: NumPy would not tell it from an object, or wrap it around."""
    if abs(int(value)) > np.iinfo(np.int64).max:
        raise ValueError(
            f"{what} must hold symbols from 0 to {MAX_SYMBOLS - 1}; got {value}. Number the symbols from 0."
        )


def ascending(major: NDArray[np.int64], minor: NDArray[np.int64]) -> bool:
    """Whether pairs are sorted by the first of each and then by the second."""
    steps = np.diff(major)
    return bool(((steps > 0) | ((steps == 0) & (np.diff(minor) >= 0))).all())


def column_ranges(symbols: NDArray[np.int64], starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each column's smallest and largest symbol, of its entries; refuses columns that no class uses."""
    _check_users(np.diff(starts))
    return np.minimum.reduceat(symbols, starts[:-1]), np.maximum.reduceat(symbols, starts[:-1])


def matrix_ranges(
    dense: NDArray[np.signedinteger[Any]], users: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each column's smallest and largest symbol, of a whole matrix; refuses columns that no class uses."""
    _check_users(users)
    low, high = dense.min(axis=0).astype(np.int64), dense.max(axis=0).astype(np.int64)
    for s in np.flatnonzero((users < dense.shape[0]) & (low == UNUSED)):
        column = dense[:, s]
        low[s] = column[column != UNUSED].min()
    return low, high


def _check_users(users: NDArray[np.integer[Any]]) -> None:
    if (users == 0).any():
        empty = np.flatnonzero(users == 0)
        raise ValueError(
            f"every column must be used by at least two classes; no class uses column {empty[0]} "
            f"({plural(int(empty.size), 'such column')}). Remove it."
        )


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


def check_entries(
    classes: NDArray[np.int64],
    columns: NDArray[np.int64],
    symbols: NDArray[np.int64],
    ranges: tuple[NDArray[np.int64], NDArray[np.int64]],
    alphabet: NDArray[np.int16],
) -> None:
    """Refuses symbols out of range, entries given twice and constant columns, of the used entries."""
    for wrong in (symbols < 0, symbols >= alphabet[columns]):
        if wrong.any():
            e = int(np.flatnonzero(wrong)[0])
            raise _out_of_range(classes[e], columns[e], symbols[e], alphabet)
    twice = (np.diff(columns) == 0) & (np.diff(classes) == 0)
    if twice.any():
        e = int(np.flatnonzero(twice)[0])
        raise ValueError(f"an entry may be given once; class {classes[e]} has two symbols in column {columns[e]}.")
    _check_not_constant(*ranges)


def check_matrix(
    dense: NDArray[np.signedinteger[Any]],
    ranges: tuple[NDArray[np.int64], NDArray[np.int64]],
    alphabet: NDArray[np.int16],
) -> None:
    """Refuses symbols out of range and constant columns, of a whole matrix."""
    low, high = ranges
    for wrong in (low < 0, high >= alphabet):
        if wrong.any():
            s = int(np.flatnonzero(wrong)[0])
            column = dense[:, s]
            c = int(np.flatnonzero((column < UNUSED) if low[s] < 0 else (column >= alphabet[s]))[0])
            raise _out_of_range(c, s, column[c], alphabet)
    _check_not_constant(low, high)


def _out_of_range(c: Any, s: Any, symbol: Any, alphabet: NDArray[np.int16]) -> ValueError:
    if symbol < 0:
        return ValueError(
            f"symbols must be the numbers 0..N-1; class {c} has {symbol} in column {s}. "
            f"Number the symbols from 0; {UNUSED} in a whole matrix, or no entry at all, means UNUSED."
        )
    return ValueError(
        f"symbols of column {s} must lie in 0..{alphabet[s] - 1}; class {c} has {symbol}. "
        "Give a larger alphabet, or number the symbols from 0."
    )


def _check_not_constant(low: NDArray[np.int64], high: NDArray[np.int64]) -> None:
    if (low == high).any():
        s = int(np.flatnonzero(low == high)[0])
        raise ValueError(
            f"every column must give at least two classes different symbols; all classes that use column {s} have "
            f"symbol {low[s]}. Remove the column."
        )


def check_rows(dense: NDArray[np.int16]) -> None:
    """Refuses two classes with the same codeword, of a whole matrix: a hash of each row, and no copy of the matrix."""
    seen: dict[int, int] = {}
    for c, word in enumerate(dense):
        mark = hash(word.tobytes())
        while (other := seen.setdefault(mark, c)) != c:
            if np.array_equal(dense[other], word):
                raise _same_word(other, c)
            mark += 1


def check_codewords(
    classes: NDArray[np.int64], columns: NDArray[np.int64], symbols: NDArray[np.int64], n_classes: int
) -> None:
    """Refuses two classes with the same codeword, of the used entries."""
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
            raise _same_word(min(a, b), max(a, b))


def _same_word(a: int, b: int) -> ValueError:
    return ValueError(
        f"every class must have a codeword of its own; classes {a} and {b} have the same. "
        "Change one of the rows, or add a column that tells the two classes apart."
    )
