"""The fold: column outputs, block by block, become class costs. The only place where a code meets outputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _kernels
from .._kernels import MAX_CELLS, TILE, FoldOrder, Totals
from ..learners import Learner
from ..matrix import CodeMatrix
from ._base import Decoder, SymbolDecoder, TableDecoder

_TABLE_BYTES = 65536  # of a block's table of costs for one tile: about the first-level cache
_MAX_WORDS = 64  # of a group of columns
_CELLS_A_VISIT = 12  # of a class in a block, at least, so that the sum and not the visit takes the time
_BLOCK_BYTES = 1 << 26  # of the class totals, and of the outputs, that are held at once


def fold_order(code: CodeMatrix, group: int | None = None, table_bytes: int = _TABLE_BYTES) -> FoldOrder:
    """The code as the fold reads it: `group` columns a cell, in blocks whose table takes about `table_bytes` a tile.

    With many symbols, or a sparse code, blocks are wider: a class that has hardly a cell in a block costs its visit.
    """
    K, L, N = code.n_classes, code.n_columns, code.n_symbols
    g = (columns_a_cell(K, N) if code.is_full else 1) if group is None else group
    used = code.n_used / (K * L)
    groups = max(table_bytes // (N**g * TILE * 4), math.ceil(_CELLS_A_VISIT / used))
    width = min(groups, MAX_CELLS // N**g, -(-L // g)) * g
    if not code.is_full:
        return _order_of_entries(code, width)
    places = np.arange(L) % g
    digits = code.symbols * N ** np.maximum(np.minimum(g, L - np.arange(L) + places) - 1 - places, 0)
    words = np.add.reduceat(digits, np.arange(0, L, g), axis=1)
    cells = (words + np.arange(words.shape[1]) % (width // g) * N**g).astype(np.uint16)
    whole = words.shape[1] // (width // g) * (width // g)
    parts = [cells[:, :whole].reshape(K, -1, width // g).transpose(1, 0, 2).ravel(), cells[:, whole:].ravel()]
    in_blocks = [width // g] * (whole // (width // g)) + [words.shape[1] - whole] * (words.shape[1] > whole)
    return FoldOrder.checked(np.concatenate(parts), _starts(np.repeat(in_blocks, K)), K, L, N, width, g)


def columns_a_cell(n_classes: int, n_symbols: int) -> int:
    """How many columns the fold takes together: their N^g words are made once, and classes add 1/g as many cells.

    A column then costs (2 N^g + K) / g: making a word takes about twice the time of adding one. Of more than 64 words
    too few groups fit in a block. It depends on K and N alone, as the order in which floats are added does on it.
    """
    groups = [g for g in range(1, 7) if g == 1 or n_symbols**g <= _MAX_WORDS]
    return min(groups, key=lambda g: (2 * n_symbols**g * (g > 1) + n_classes) / g)


def _order_of_entries(code: CodeMatrix, width: int) -> FoldOrder:
    """The order of a code with UNUSED entries, a column a cell."""
    K, L, N = code.n_classes, code.n_columns, code.n_symbols
    classes, columns, symbols = code.entries()
    order = np.lexsort((columns, classes, columns // width))
    cells = ((columns % width) * N + symbols)[order].astype(np.uint16)
    sizes = np.bincount(columns // width * K + classes, minlength=-(-L // width) * K)
    return FoldOrder.checked(cells, _starts(sizes), K, L, N, width, 1)


def _starts(sizes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Fold:
    """A code and a decoder made ready to fold outputs.

    Hard symbols are folded in 16-bit integers where twice their costs are whole numbers and no sum can overflow.
    """

    decoder: Decoder
    order: FoldOrder
    alphabet: NDArray[np.int16]
    profile: NDArray[Any] | None  # of a decoder of hard symbols
    neutral: NDArray[Any]
    base: float  # the costs of a class that uses no column
    scale: float

    @classmethod
    def of(cls, code: CodeMatrix, decoder: Decoder, order: FoldOrder | None = None) -> Fold:
        """The fold of `code` under `decoder`; `order` may be given where another fold of the code has it."""
        decoder.check()
        neutral = np.zeros(code.n_columns) if code.is_full else decoder.neutral(code.alphabet)
        order = fold_order(code) if order is None else order
        if not isinstance(decoder, SymbolDecoder):
            return cls(decoder, order, code.alphabet, None, neutral.astype(np.float32), float(neutral.sum()), 1.0)
        profile = decoder.profile(code.n_symbols)
        largest = code.n_columns * max(float(np.abs(profile).max()), float(np.abs(neutral).max()))
        doubled = np.concatenate([2 * profile, 2 * neutral])
        if profile.min() >= 0 and np.array_equal(doubled, np.rint(doubled)) and 2 * largest < 1 << 16:
            whole = [np.rint(2 * part).astype(np.uint16) for part in (profile, neutral)]
            return cls(decoder, order, code.alphabet, whole[0], whole[1], float(2 * neutral.sum()), 0.5)
        floats = [part.astype(np.float32) for part in (profile, neutral)]
        return cls(decoder, order, code.alphabet, floats[0], floats[1], float(neutral.sum()), 1.0)

    def start(self, n_rows: int) -> Totals:
        """Totals of `n_rows` rows, before any column was added."""
        dtype = np.float32 if self.profile is None else self.profile.dtype.type
        return _kernels.empty_totals(n_rows, self.order.n_classes, dtype)

    def add(self, totals: Totals, outputs: NDArray[Any], first: int, last: int, n_threads: int = 1) -> None:
        """Adds what columns first..last-1 (borders of blocks) say to the totals of their rows."""
        part = self.order.part(first, last)
        if self.profile is not None:
            _kernels.add_symbols(part, outputs, self.profile, self.neutral[first:last], totals, n_threads)
            return
        assert isinstance(self.decoder, TableDecoder)
        costs = self.decoder.costs(outputs, self.alphabet[first:last])
        _kernels.add_costs(part, costs, self.neutral[first:last], totals, n_threads)

    def finish(self, totals: Totals, n_rows: int, n_threads: int = 1) -> NDArray[np.float32]:
        """Class costs (rows, K) of totals to which every column was added."""
        return _kernels.finish_costs(totals, n_rows, self.base, self.scale, n_threads)

    def nearest(self, totals: Totals, n_rows: int, n_threads: int = 1) -> NDArray[np.int32]:
        """The class of least cost for each row, the first of equals: argmin of `finish` without a (rows, K) array."""
        return _kernels.nearest_classes(totals, n_rows, self.base, self.scale, n_threads)

    def costs(self, outputs: NDArray[Any], n_threads: int = 1) -> NDArray[np.float32]:
        """Class costs (rows, K) of the outputs of all columns."""
        totals = self.start(outputs.shape[0])
        self.add(totals, outputs, 0, self.order.n_columns, n_threads)
        return self.finish(totals, outputs.shape[0], n_threads)

    def row_blocks(self, n_rows: int) -> Iterator[slice]:
        """Runs of whole tiles whose totals stay within the memory meant for them."""
        step = max(1, _BLOCK_BYTES // (4 * self.order.n_classes * TILE)) * TILE
        return (slice(first, min(first + step, n_rows)) for first in range(0, n_rows, step))

    def column_blocks(self, n_rows: int) -> Iterator[tuple[int, int]]:
        """Runs of whole blocks of columns whose outputs stay within the memory meant for them."""
        L, width = self.order.n_columns, self.order.block_columns
        step = max(1, _BLOCK_BYTES // (n_rows * self.output_bytes * width)) * width
        return ((first, min(first + step, L)) for first in range(0, L, step))

    @property
    def output_bytes(self) -> int:
        """What a column's output for one row takes."""
        return 4 * self.order.n_symbols if self.profile is None else 2


def class_totals(
    folds: Sequence[Fold], learner: Learner, X: Any, n_jobs: int | None, n_threads: int
) -> Iterator[tuple[list[Totals], int]]:
    """(totals of each fold, rows) of successive blocks of rows of X, with what every column says added.

    The folds are of one code. A column is asked once for each kind of output that they read.
    """
    largest = max(folds, key=lambda fold: fold.output_bytes)
    for rows in largest.row_blocks(X.shape[0]):
        ready = learner.prepare(X[rows], n_jobs=n_jobs)
        n_rows = rows.stop - rows.start
        totals = [fold.start(n_rows) for fold in folds]
        for first, last in largest.column_blocks(n_rows):
            for what in dict.fromkeys(fold.decoder.needs for fold in folds):
                outputs = learner.outputs(ready, what, first, last, n_jobs=n_jobs)
                for fold, its_totals in zip(folds, totals, strict=True):
                    if fold.decoder.needs == what:
                        fold.add(its_totals, outputs, first, last, n_threads)
        yield totals, n_rows
