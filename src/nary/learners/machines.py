"""Machines: the linear functions that a code's columns are made of, and which classes lie on which side of each.

A machine is a weight vector with a side for every class: +1, -1, or 0 where the class takes no part. One symbol against
the rest, two symbols of a column, a whole one-vs-one code and a code with UNUSED entries are all such tables of sides.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..matrix import CodeMatrix

Strategy = Literal["ovr", "ovo", "crammer_singer"]
STRATEGIES = ("ovr", "ovo", "crammer_singer")
_REST = -1  # the negative side of a machine that tells one symbol from all others of its column


class Sides(NamedTuple):
    """The classes that take part in some machines: those of machine m are classes[starts[m] : starts[m + 1]]."""

    starts: NDArray[np.int64]
    classes: NDArray[np.int32]
    signs: NDArray[np.int8]  # +1 or -1

    @property
    def n_machines(self) -> int:
        """How many machines there are."""
        return self.starts.size - 1

    def table(self, n_classes: int) -> NDArray[np.int8]:
        """The sides as a matrix (n_classes, machines), 0 where a class takes no part."""
        table = np.zeros((n_classes, self.n_machines), np.int8)
        table[self.classes, np.repeat(np.arange(self.n_machines), np.diff(self.starts))] = self.signs
        return table

    def take(self, chosen: NDArray[np.intp]) -> Sides:
        """Some of the machines."""
        sizes = np.diff(self.starts)[chosen]
        entries = _ranges(self.starts[chosen], sizes)
        return Sides(_offsets(sizes), self.classes[entries], self.signs[entries])


class Machines:
    """The machines of a code under a strategy, those of a column side by side.

    "ovr": one for each symbol, against the column's others; a column of two symbols has one machine, positive for
    symbol 1. "ovo": one for each pair a < b of symbols, positive for b. "crammer_singer": one for each symbol, also
    where there are two.
    """

    def __init__(self, code: CodeMatrix, strategy: Strategy) -> None:
        self.code = code
        self.strategy = strategy

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each column's machines begin, and where the last one's end: (L + 1,)."""
        N = self.code.alphabet.astype(np.int64)
        pairs = N * (N - 1) // 2
        counts = pairs if self.strategy == "ovo" else np.where((self.strategy == "ovr") & (N == 2), 1, N)
        return np.concatenate([[0], np.cumsum(counts)])

    @property
    def n_machines(self) -> int:
        """How many machines all columns have together."""
        return int(self.starts[-1])

    def symbols(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Column, positive symbol and negative symbol (-1: all others) of machines first..last-1."""
        machines = np.arange(first, last)
        columns = np.searchsorted(self.starts, machines, side="right") - 1
        place, N = machines - self.starts[columns], self.code.alphabet[columns].astype(np.int64)
        if self.strategy == "ovo":
            return columns, *_pair(place, N)[::-1]
        single = (self.strategy == "ovr") & (N == 2)
        return columns, np.where(single, 1, place), np.where(single, 0, _REST)

    def sides(self, first: int, last: int) -> Sides:
        """The classes of machines first..last-1 and their sides."""
        columns, positive, negative = self.symbols(first, last)
        s0, s1 = (int(columns[0]), int(columns[-1]) + 1) if columns.size else (0, 0)
        starts, classes, symbols = self.code.block_entries(s0, s1)
        columns = columns - s0
        if self.strategy != "ovo":
            sizes = np.diff(starts)[columns]
            entries = _ranges(starts[columns], sizes)
            signs = np.where(symbols[entries] == np.repeat(positive, sizes), 1, -1).astype(np.int8)
            return Sides(_offsets(sizes), classes[entries], signs)
        # Sorted by symbol, a column's classes of one symbol are a run: a pair of symbols is two runs.
        keys = np.repeat(np.arange(s1 - s0), np.diff(starts)) << 16 | symbols
        order = np.argsort(keys, kind="stable")
        runs = np.stack([columns << 16 | negative, columns << 16 | positive], axis=1).ravel()
        begins = np.searchsorted(keys[order], runs)
        sizes = np.searchsorted(keys[order], runs, side="right") - begins
        entries = order[_ranges(begins, sizes)]
        signs = np.repeat(np.tile(np.array([-1, 1], np.int8), columns.size), sizes)
        return Sides(_offsets(sizes.reshape(-1, 2).sum(axis=1)), classes[entries], signs)


def _pair(place: NDArray[np.int64], n_symbols: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pair a < b at a place in the order (0, 1), (0, 2), ..., (1, 2), ..."""
    # Places before a's pairs: a (2N - a - 1) / 2; the root is exact but for rounding, which one step mends.
    a = np.floor(((2 * n_symbols - 1) - np.sqrt((2.0 * n_symbols - 1) ** 2 - 8.0 * place)) / 2).astype(np.int64)
    before = a * (2 * n_symbols - a - 1) // 2
    a -= before > place
    a += (a + 1) * (2 * n_symbols - a - 2) // 2 <= place
    return a, place - a * (2 * n_symbols - a - 1) // 2 + a + 1


def _ranges(begins: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """begins[k], begins[k] + 1, ... of sizes[k] numbers for each k, one after another."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if ends.size else 0
    return np.asarray(np.arange(total) + np.repeat(begins - (ends - sizes), sizes))


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)])
