"""The fold: totals of class costs, added to block by block, and what is read from them at the end."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ._core import TILE, _native, check_array, expect, thread_count

MAX_CELLS = 1 << 16  # of a block of columns: a cell is numbered in 16 bits

Totals: TypeAlias = NDArray[np.float32] | NDArray[np.uint16]


class FoldOrder(NamedTuple):
    """A code in the order in which the fold reads it: columns cut into blocks, each class's cells of a block together.

    A cell is a row of the block's cost table: one of the N^group words that a group of neighbouring columns can spell.
    Word w (a number to base N, the first column's symbol its first digit) of group g, counted from the block's first,
    is cell g * N^group + w. Class c of block b uses cells[starts[b * K + c] : starts[b * K + c + 1]]; in groups of more
    than one column it must use every column.
    """

    cells: NDArray[np.uint16]
    starts: NDArray[np.int64]
    n_classes: int
    n_columns: int
    n_symbols: int
    block_columns: int
    group: int

    @classmethod
    def checked(cls, *fields: Any) -> FoldOrder:
        """A FoldOrder whose arrays are proven to stay inside their tables."""
        order = cls(*fields)
        cells, starts, K, L, N, width, group = order
        check_array(cells, "cells", np.uint16, 1)
        check_array(starts, "starts", np.int64, 1)
        expect(group >= 1 and width % group == 0 and width >= 1, "blocks of whole groups", f"{width} and {group}")
        expect(
            width // group * N**group <= MAX_CELLS, f"1..{MAX_CELLS} cells a block", f"{width // group} x {N**group}"
        )
        blocks = -(-L // width)
        expect(starts.size == blocks * K + 1, f"{blocks * K + 1} starts", f"{starts.size}")
        expect(starts[0] == 0 and starts[-1] == cells.size, f"starts from 0 to {cells.size}", f"{starts[[0, -1]]}")
        expect(bool((np.diff(starts) >= 0).all()), "ascending starts", "descending ones")
        for b, first in enumerate(starts[:-1:K]):
            last, columns = starts[(b + 1) * K], min(width, L - b * width)
            whole, rest = divmod(columns, group)
            beyond = whole * N**group + (N**rest if rest else 0)
            expect(last == first or int(cells[first:last].max()) < beyond, "cells inside the block", "cells beyond it")
        cells.flags.writeable = starts.flags.writeable = False
        return order

    def part(self, first: int, last: int) -> FoldOrder:
        """The same order for columns first..last-1; both must be block borders (or the end)."""
        width, K = self.block_columns, self.n_classes
        expect(first % width == 0 and (last % width == 0 or last == self.n_columns), "block borders", f"{first}:{last}")
        starts = self.starts[first // width * K : -(-last // width) * K + 1]
        cells = self.cells[starts[0] : starts[-1]]
        return self._replace(cells=cells, starts=starts - starts[0], n_columns=last - first)


def empty_totals(n_rows: int, n_classes: int, dtype: type[np.float32] | type[np.uint16]) -> Totals:
    """Class totals at zero: (tiles, classes, 64), the samples of a tile on the last axis."""
    shape = (-(-n_rows // TILE), n_classes, TILE)
    return np.zeros(shape, np.uint16) if dtype is np.uint16 else np.zeros(shape, np.float32)


def add_costs(
    order: FoldOrder, costs: NDArray[np.float32], neutral: NDArray[np.float32], totals: Totals, n_threads: int = 1
) -> None:
    """Folds a cost table (rows, columns, symbols) into `totals`; `neutral` (columns,) is taken off every cost."""
    n_rows = costs.shape[0]
    check_array(costs, "costs", np.float32, 3, (n_rows, order.n_columns, order.n_symbols))
    check_array(neutral, "neutral", np.float32, 1, (order.n_columns,))
    _totals(totals, np.float32, n_rows, order.n_classes)
    spread = np.repeat(neutral, order.n_symbols)
    _native.add_costs(
        order.cells, order.starts, order.block_columns, order.group, costs, spread, thread_count(n_threads), totals
    )


def add_symbols(
    order: FoldOrder,
    symbols: NDArray[np.int16],
    profile: NDArray[np.float32] | NDArray[np.uint16],
    neutral: NDArray[np.float32] | NDArray[np.uint16],
    totals: Totals,
    n_threads: int = 1,
) -> None:
    """Folds hard symbols (rows, columns): a column that says v charges profile[|v - m|] - neutral to symbol m."""
    n_rows, N, dtype = symbols.shape[0], order.n_symbols, profile.dtype.type
    expect(dtype in (np.float32, np.uint16), "a profile in float32 or uint16", str(profile.dtype))
    check_array(symbols, "symbols", np.int16, 2, (n_rows, order.n_columns))
    check_array(profile, "profile", dtype, 1, (N,))
    check_array(neutral, "neutral", dtype, 1, (order.n_columns,))
    _totals(totals, dtype, n_rows, order.n_classes)
    if symbols.size:
        low, high = int(symbols.min()), int(symbols.max())
        expect(low >= 0 and high < N, f"symbols from 0 to {N - 1}", f"{low} to {high}")
    mirrored = np.concatenate([profile[:0:-1], profile])  # at N - 1 + m - v
    _native.add_symbols(
        order.cells,
        order.starts,
        order.block_columns,
        order.group,
        symbols,
        mirrored,
        neutral,
        thread_count(n_threads),
        totals,
    )


def finish_costs(totals: Totals, n_rows: int, base: float, scale: float, n_threads: int = 1) -> NDArray[np.float32]:
    """Class costs (rows, K): scale * (totals + base), settled to multiples of 2^-16; 16-bit totals wrap around."""
    _totals(totals, totals.dtype.type, n_rows, totals.shape[1])
    out = np.empty((n_rows, totals.shape[1]), np.float32)
    _native.finish_costs(totals, _start(totals, base), scale, thread_count(n_threads), out)
    return out


def nearest_classes(totals: Totals, n_rows: int, base: float, scale: float, n_threads: int = 1) -> NDArray[np.int32]:
    """The class of least cost, by `finish_costs`, for each row: the first of equals. No (rows, K) array is made."""
    _totals(totals, totals.dtype.type, n_rows, totals.shape[1])
    out = np.empty(n_rows, np.int32)
    _native.nearest_classes(totals, _start(totals, base), scale, thread_count(n_threads), out)
    return out


def _totals(totals: Totals, dtype: type[np.generic], n_rows: int, n_classes: int) -> None:
    check_array(totals, "totals", dtype, 3, (-(-n_rows // TILE), n_classes, TILE))
    expect(totals.flags.writeable, "writeable totals", "read-only ones")


def _start(totals: Totals, base: float) -> int | float:
    return int(base) % 65536 if totals.dtype == np.uint16 else float(base)
