"""The one door to the compiled core: every argument is checked here, so the core may trust its shapes and ranges."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

try:
    from . import _native
except ImportError as error:  # never a silent slow path
    raise ImportError(
        "nary's compiled core is missing or does not fit this Python: build it with `pip install .` in the project's "
        f"folder, or `pip install --force-reinstall nary`. The loader said: {error}"
    ) from error

TILE = 64  # samples on the vector axis: the core's kTile
MAX_CELLS = 1 << 16  # of a block of columns: a cell is numbered in 16 bits

Totals: TypeAlias = NDArray[np.float32] | NDArray[np.uint16]


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
        _array(cells, "cells", np.uint16, 1)
        _array(starts, "starts", np.int64, 1)
        _expect(group >= 1 and width % group == 0 and width >= 1, "blocks of whole groups", f"{width} and {group}")
        _expect(
            width // group * N**group <= MAX_CELLS, f"1..{MAX_CELLS} cells a block", f"{width // group} x {N**group}"
        )
        blocks = -(-L // width)
        _expect(starts.size == blocks * K + 1, f"{blocks * K + 1} starts", f"{starts.size}")
        _expect(starts[0] == 0 and starts[-1] == cells.size, f"starts from 0 to {cells.size}", f"{starts[[0, -1]]}")
        _expect(bool((np.diff(starts) >= 0).all()), "ascending starts", "descending ones")
        for b, first in enumerate(starts[:-1:K]):
            last, columns = starts[(b + 1) * K], min(width, L - b * width)
            whole, rest = divmod(columns, group)
            beyond = whole * N**group + (N**rest if rest else 0)
            _expect(last == first or int(cells[first:last].max()) < beyond, "cells inside the block", "cells beyond it")
        cells.flags.writeable = starts.flags.writeable = False
        return order

    def part(self, first: int, last: int) -> FoldOrder:
        """The same order for columns first..last-1; both must be block borders (or the end)."""
        width, K = self.block_columns, self.n_classes
        _expect(
            first % width == 0 and (last % width == 0 or last == self.n_columns), "block borders", f"{first}:{last}"
        )
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
    _array(costs, "costs", np.float32, 3, (n_rows, order.n_columns, order.n_symbols))
    _array(neutral, "neutral", np.float32, 1, (order.n_columns,))
    _totals(totals, np.float32, n_rows, order.n_classes)
    spread = np.repeat(neutral, order.n_symbols)
    _native.add_costs(
        order.cells, order.starts, order.block_columns, order.group, costs, spread, _threads(n_threads), totals
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
    _expect(dtype in (np.float32, np.uint16), "a profile in float32 or uint16", str(profile.dtype))
    _array(symbols, "symbols", np.int16, 2, (n_rows, order.n_columns))
    _array(profile, "profile", dtype, 1, (N,))
    _array(neutral, "neutral", dtype, 1, (order.n_columns,))
    _totals(totals, dtype, n_rows, order.n_classes)
    if symbols.size:
        low, high = int(symbols.min()), int(symbols.max())
        _expect(low >= 0 and high < N, f"symbols from 0 to {N - 1}", f"{low} to {high}")
    mirrored = np.concatenate([profile[:0:-1], profile])  # at N - 1 + m - v
    _native.add_symbols(
        order.cells,
        order.starts,
        order.block_columns,
        order.group,
        symbols,
        mirrored,
        neutral,
        _threads(n_threads),
        totals,
    )


def finish_costs(totals: Totals, n_rows: int, base: float, scale: float, n_threads: int = 1) -> NDArray[np.float32]:
    """Class costs (rows, K): scale * (totals + base), settled to multiples of 2^-16; 16-bit totals wrap around."""
    _totals(totals, totals.dtype.type, n_rows, totals.shape[1])
    out = np.empty((n_rows, totals.shape[1]), np.float32)
    _native.finish_costs(totals, _start(totals, base), scale, _threads(n_threads), out)
    return out


def nearest_classes(totals: Totals, n_rows: int, base: float, scale: float, n_threads: int = 1) -> NDArray[np.int32]:
    """The class of least cost, by `finish_costs`, for each row: the first of equals. No (rows, K) array is made."""
    _totals(totals, totals.dtype.type, n_rows, totals.shape[1])
    out = np.empty(n_rows, np.int32)
    _native.nearest_classes(totals, _start(totals, base), scale, _threads(n_threads), out)
    return out


def pad_words(symbols: NDArray[np.int16]) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """Codewords as the distance kernels want them: bytes if they fit, rows padded with zeros to a multiple of 64."""
    _expect(symbols.ndim == 2, "a (classes, columns) matrix", f"{symbols.ndim} axes")
    _expect(symbols.size == 0 or int(symbols.min()) >= 0, "codewords that use every column", "UNUSED entries")
    K, L = symbols.shape
    dtype = np.uint8 if symbols.size == 0 or int(symbols.max()) < 256 else np.uint16
    words = np.zeros((K, -(-L // TILE) * TILE), dtype)
    words[:, :L] = symbols
    return words


def distances(
    words: NDArray[np.uint8] | NDArray[np.uint16], first: int, last: int, absolute: bool, n_threads: int = 1
) -> NDArray[np.int32]:
    """Distances of words first..last-1 to all words (both as `pad_words` makes them): (last - first, K)."""
    dtype = words.dtype.type
    _expect(dtype in (np.uint8, np.uint16), "words in uint8 or uint16", str(words.dtype))
    _array(words, "words", dtype, 2)
    _expect(words.shape[1] % TILE == 0, f"rows padded to a multiple of {TILE}", f"{words.shape[1]}")
    _expect(0 <= first <= last <= words.shape[0], f"rows within 0:{words.shape[0]}", f"{first}:{last}")
    largest = words.shape[1] * (int(words.max(initial=0)) if absolute else 1)
    _expect(largest < 1 << 31, "columns x largest symbol below 2^31", f"{words.shape[1]} columns, {largest} in all")
    out = np.empty((last - first, words.shape[0]), np.int32)
    _native.distances(words, first, absolute, _threads(n_threads), out)
    return out


def search_random(
    seed: int,
    n_candidates: int,
    n_classes: int,
    n_columns: int,
    n_symbols: int,
    absolute: bool,
    distinct_columns: bool,
    n_threads: int = 1,
) -> tuple[NDArray[np.int16], int] | None:
    """The first candidate code with the largest minimum distance, and that distance.

    None if no candidate could be given distinct columns in a million draws of one of them.
    """
    _expect(0 <= seed < 1 << 64, "a seed of 64 bits", str(seed))
    _expect(1 <= n_candidates < 1 << 31, "1 to 2^31 - 1 candidates", str(n_candidates))
    _expect(n_classes >= 2 and n_columns >= 1, "at least 2 classes and 1 column", f"{n_classes}, {n_columns}")
    _expect(2 <= n_symbols <= 1 << 15, "2 to 32768 symbols", str(n_symbols))
    _expect(n_columns * n_symbols < 1 << 31, "columns x symbols below 2^31", f"{n_columns} x {n_symbols}")
    best = np.empty((n_classes, n_columns), np.uint8 if n_symbols <= 256 else np.uint16)
    threads = min(_threads(n_threads), n_candidates)
    index, distance = _native.search_random(seed, n_candidates, n_symbols, absolute, distinct_columns, threads, best)
    return None if index < 0 else (best.astype(np.int16), int(distance))


def _expect(holds: bool, expected: str, given: str) -> None:
    if not holds:
        raise ValueError(f"the native core expected {expected}; got {given}. This is a bug of the caller: report it.")


def _array(
    array: NDArray[Any], name: str, dtype: type[np.generic], ndim: int, shape: tuple[int, ...] | None = None
) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != ndim:
        given = f"{array.dtype} with {array.ndim} axes" if isinstance(array, np.ndarray) else type(array).__name__
        _expect(False, f"{name} as {np.dtype(dtype)} with {ndim} axes", given)
    _expect(array.flags.c_contiguous, f"{name} C-contiguous", f"strides {array.strides}")
    _expect(shape is None or array.shape == shape, f"{name} of shape {shape}", f"{array.shape}")


def _totals(totals: Totals, dtype: type[np.generic], n_rows: int, n_classes: int) -> None:
    _array(totals, "totals", dtype, 3, (-(-n_rows // TILE), n_classes, TILE))
    _expect(totals.flags.writeable, "writeable totals", "read-only ones")


def _start(totals: Totals, base: float) -> int | float:
    return int(base) % 65536 if totals.dtype == np.uint16 else float(base)


def _threads(n_threads: int) -> int:
    _expect(n_threads >= 1, "at least one thread", str(n_threads))
    return min(int(n_threads), 256)
