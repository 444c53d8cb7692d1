"""Columns: the small problems that a code makes of labelled rows, one for each column."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .matrix import UNUSED, CodeMatrix


class Problem(NamedTuple):
    """One column's training set: the rows that take part (None: all of them) and their symbols."""

    rows: NDArray[np.intp] | None
    symbols: NDArray[np.int16]


class Columns:
    """The column problems of `code` for rows whose classes are `y` (0..K-1); `classes` are their labels, if known."""

    def __init__(self, code: CodeMatrix, y: NDArray[np.int32], classes: NDArray[Any] | None = None) -> None:
        self.code = code
        self.y = y
        self.classes = classes

    @property
    def n_rows(self) -> int:
        """The number of training rows."""
        return int(self.y.size)

    @property
    def n_columns(self) -> int:
        """L, the number of columns."""
        return self.code.n_columns

    @property
    def alphabet(self) -> NDArray[np.int16]:
        """The number of symbols of each column."""
        return self.code.alphabet

    def labels(self, first: int, last: int) -> NDArray[np.int16]:
        """Column labels M[y] of columns first..last-1: (n, last - first); -1 where a row takes no part."""
        return self.code.block(first, last)[self.y]

    def problem(self, s: int) -> Problem:
        """Column s, at a cost that grows with the rows that take part in it."""
        classes, symbols = self.code.column(s)
        if classes.size == self.code.n_classes:
            return Problem(None, symbols[self.y])
        order, starts = self._rows_by_class
        rows = np.sort(np.concatenate([order[starts[c] : starts[c + 1]] for c in classes]))
        of_class = np.full(self.code.n_classes, UNUSED, np.int16)
        of_class[classes] = symbols
        return Problem(rows, of_class[self.y[rows]])

    @cached_property
    def _rows_by_class(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        counts = np.bincount(self.y, minlength=self.code.n_classes)
        return np.argsort(self.y, kind="stable"), np.concatenate([[0], np.cumsum(counts)])
