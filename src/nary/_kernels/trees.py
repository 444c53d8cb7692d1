"""Trees: binning values, growing a tree for each column, and walking rows through trees."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ._core import _native, check_array, expect, thread_count

LANES = 64  # features on the vector axis: the core's kLanes
MISSING = 255  # the bin of missing values: the core's kMissing
MAX_FEATURES = 1 << 23  # a split keeps its feature in 23 bits
MAX_ROWS = (1 << 32) - 1
SPLITTERS = ("sampled", "best", "random")


class DenseRows(NamedTuple):
    """Binned rows, each in `cells.shape[1]` bytes: with few features written `copies` times, `spread` bytes apart."""

    cells: NDArray[np.uint8]
    n_features: int
    copies: int
    spread: int

    @classmethod
    def empty(cls, n_rows: int, n_features: int) -> DenseRows:
        """Room for rows of so many features."""
        few = n_features <= LANES // 2
        stride = -(-n_features // LANES) * LANES
        cells = np.zeros((n_rows, stride), np.uint8)
        return cls(cells, n_features, LANES // n_features if few else 1, n_features if few else LANES)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.cells)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(stride, copies, spread) as the core takes them."""
        return self.cells.shape[1], self.copies, self.spread

    def take(self, order: NDArray[np.int64]) -> DenseRows:
        """The rows in another order."""
        return self._replace(cells=self.cells[order])


class SparseRows(NamedTuple):
    """Binned rows in CSR form, features ascending; a feature that is not stored has its zero bin."""

    starts: NDArray[np.int64]
    features: NDArray[np.int32]
    bins: NDArray[np.uint8]
    zero_bins: NDArray[np.uint8]

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return self.zero_bins.size

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.starts.size - 1

    def take(self, order: NDArray[np.int64]) -> SparseRows:
        """The rows in another order."""
        sizes = np.diff(self.starts)[order]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.arange(starts[-1]) + np.repeat(self.starts[:-1][order] - starts[:-1], sizes)
        return self._replace(starts=starts, features=self.features[places], bins=self.bins[places])


Rows: TypeAlias = DenseRows | SparseRows


class Ragged(NamedTuple):
    """Float64 values of each feature: those of feature f are values[starts[f] : starts[f + 1]]."""

    values: NDArray[np.float64]
    starts: NDArray[np.int64]

    def of(self, feature: int) -> NDArray[np.float64]:
        """The values of one feature."""
        return self.values[self.starts[feature] : self.starts[feature + 1]]


class ColumnBlock(NamedTuple):
    """Some columns of a code: which classes take part in each, with which symbols; sorted by symbol within a column."""

    first: int  # the number of the first one in the code
    starts: NDArray[np.int64]
    classes: NDArray[np.int32]
    symbols: NDArray[np.uint16]
    n_symbols: int


class TreeOptions(NamedTuple):
    """How trees grow; counts of features and thresholds are resolved, fractions of a column's rows are not."""

    splitter: Literal["sampled", "best", "random"] = "best"
    entropy: bool = False
    n_thresholds: int = 1
    max_depth: int = np.iinfo(np.int64).max
    max_leaf_nodes: int = np.iinfo(np.int64).max
    min_samples_split: float = 2
    split_is_fraction: bool = False
    min_samples_leaf: float = 1
    leaf_is_fraction: bool = False
    column_features: int = MAX_FEATURES
    split_features: int = MAX_FEATURES
    row_fraction: float = 1.0
    bootstrap: bool = False
    min_impurity_decrease: float = 0.0
    ccp_alpha: float = 0.0
    leaf_distributions: bool = False
    seed: int = 0


class GrownTrees(NamedTuple):
    """The trees of some columns. A child is a split's number in its tree, or ~value for a leaf.

    A leaf's value is its symbol; with distributions its number, which `leaf_symbols` and `leaf_shares` (in units
    of 1/255 of the largest) are indexed with, counted from the tree's place in `leaf_starts`.
    """

    splits: NDArray[np.int32]  # (splits, 3): left, right, feature << 9 | missing goes left << 8 | last bin on the left
    gains: NDArray[np.float64]
    starts: NDArray[np.int64]
    roots: NDArray[np.int32]
    leaf_symbols: NDArray[np.uint16]
    leaf_shares: NDArray[np.uint8]
    leaf_starts: NDArray[np.int64]


def mark_rows(rows: Rows, zero_bins: NDArray[np.uint8], n_threads: int = 1) -> NDArray[np.uint64]:
    """A number for each row that depends on its bins alone, the same for both forms of rows."""
    _rows(rows)
    check_array(zero_bins, "zero_bins", np.uint8, 1, (rows.n_features,))
    marks = np.empty(rows.n_rows, np.uint64)
    if isinstance(rows, DenseRows):
        _native.mark_dense(rows.cells, rows.shape, zero_bins, thread_count(n_threads), marks)
    else:
        _native.mark_sparse(tuple(rows), thread_count(n_threads), marks)
    return marks


def bin_rows(X: NDArray[Any], edges: Ragged, n_threads: int = 1) -> DenseRows:
    """The bins of the rows of X: how many of a feature's edges lie below the value; MISSING for NaN."""
    expect(X.dtype.type in (np.float32, np.float64), "X in float32 or float64", str(X.dtype))
    check_array(X, "X", X.dtype.type, 2)
    _ragged(edges, "edges", X.shape[1], MISSING - 1)
    rows = DenseRows.empty(X.shape[0], X.shape[1])
    _native.bin_rows(X, edges.values, edges.starts, rows.shape, thread_count(n_threads), rows.cells)
    return rows


def bin_entries(
    values: NDArray[Any], features: NDArray[np.int32], edges: Ragged, n_threads: int = 1
) -> NDArray[np.uint8]:
    """The bins of the stored values of a CSR matrix."""
    expect(values.dtype.type in (np.float32, np.float64), "values in float32 or float64", str(values.dtype))
    check_array(values, "values", values.dtype.type, 1)
    check_array(features, "features", np.int32, 1, values.shape)
    n_features = edges.starts.size - 1
    _ragged(edges, "edges", n_features, MISSING - 1)
    _within(features, n_features, "features")
    bins = np.empty(values.size, np.uint8)
    _native.bin_entries(values, features, edges.values, edges.starts, thread_count(n_threads), bins)
    return bins


def grow_trees(
    rows: Rows,
    centres: Ragged,
    any_missing: bool,
    class_starts: NDArray[np.int64],
    columns: ColumnBlock,
    options: TreeOptions,
    row_weights: NDArray[np.float64] | None = None,
    balance_symbols: bool = False,
    n_threads: int = 1,
) -> GrownTrees:
    """One tree for each column, over rows sorted by class: class c's are class_starts[c] .. class_starts[c + 1]."""
    _rows(rows)
    expect(rows.n_rows <= MAX_ROWS and rows.n_features <= MAX_FEATURES, "fewer rows or features", f"{rows.n_rows}")
    _ragged(centres, "centres", rows.n_features, MISSING, least=1)
    _starts(class_starts, "class_starts", rows.n_rows)
    _columns(columns, class_starts.size - 1)
    if row_weights is not None:
        check_array(row_weights, "row_weights", np.float64, 1, (rows.n_rows,))
        expect(
            bool(np.isfinite(row_weights).all()) and row_weights.min() >= 0, "finite weights of at least 0", "others"
        )
    expect(1 <= options.n_thresholds < 1 << 16, "1 to 65535 thresholds", str(options.n_thresholds))
    fields = options._replace(
        column_features=min(options.column_features, rows.n_features),
        split_features=max(1, options.split_features),
    )._asdict()
    native = _native.TreeOptions(**{**fields, "splitter": SPLITTERS.index(options.splitter)})
    shared = (
        centres.values, centres.starts, any_missing, class_starts, columns.starts, columns.classes, columns.symbols,
        columns.first, columns.n_symbols, row_weights, balance_symbols, native, thread_count(n_threads),
    )  # fmt: skip
    if isinstance(rows, DenseRows):
        grown = _native.grow_dense(rows.cells, rows.shape, *shared)
    else:
        grown = _native.grow_sparse(tuple(rows), *shared)
    splits, gains, starts, roots, leaf_symbols, leaf_shares, leaf_starts = grown
    shares = leaf_shares.reshape(-1, columns.n_symbols)
    return GrownTrees(splits.reshape(-1, 3), gains, starts, roots, leaf_symbols, shares, leaf_starts)


def walk_trees(
    rows: Rows,
    splits: NDArray[np.int32],
    starts: NDArray[np.int64],
    roots: NDArray[np.int32],
    dtype: type[np.int16] | type[np.int32] = np.int16,
    n_threads: int = 1,
) -> NDArray[Any]:
    """The value of the leaf that each row comes to in each tree: (rows, trees). The trees are `grow_trees`'s own."""
    _rows(rows)
    check_array(splits, "splits", np.int32, 2)
    _starts(starts, "starts", splits.shape[0])
    check_array(roots, "roots", np.int32, 1, (starts.size - 1,))
    out = np.empty((rows.n_rows, roots.size), dtype)
    flat = splits.reshape(-1)
    if isinstance(rows, DenseRows):
        _native.walk_dense(rows.cells, rows.shape, rows.n_features, flat, starts, roots, thread_count(n_threads), out)
    else:
        _native.walk_sparse(tuple(rows), flat, starts, roots, thread_count(n_threads), out)
    return out


def _rows(rows: Rows) -> None:
    if isinstance(rows, DenseRows):
        check_array(rows.cells, "cells", np.uint8, 2)
        stride, copies, spread = rows.shape
        expect(stride % LANES == 0 and stride >= rows.n_features >= 1, "rows of whole blocks", f"{stride}")
        expect(copies * spread <= LANES and (copies == 1) == (spread == LANES), "copies in a block", f"{copies}")
        return
    check_array(rows.features, "features", np.int32, 1)
    check_array(rows.bins, "bins", np.uint8, 1, rows.features.shape)
    check_array(rows.zero_bins, "zero_bins", np.uint8, 1)
    _starts(rows.starts, "starts", rows.features.size)
    _within(rows.features, rows.n_features, "features")


def _columns(columns: ColumnBlock, n_classes: int) -> None:
    check_array(columns.classes, "classes", np.int32, 1)
    check_array(columns.symbols, "symbols", np.uint16, 1, columns.classes.shape)
    _starts(columns.starts, "starts", columns.classes.size)
    _within(columns.classes, n_classes, "classes")
    _within(columns.symbols, columns.n_symbols, "symbols")


def _within(values: NDArray[Any], high: int, name: str) -> None:
    if values.size:
        low, most = int(values.min()), int(values.max())
        expect(low >= 0 and most < high, f"{name} from 0 to {high - 1}", f"{low} to {most}")


def _starts(starts: NDArray[np.int64], name: str, end: int) -> None:
    check_array(starts, name, np.int64, 1)
    expect(starts.size >= 1 and starts[0] == 0 and starts[-1] == end, f"{name} from 0 to {end}", str(starts[-1:]))
    expect(bool((np.diff(starts) >= 0).all()), f"ascending {name}", "descending ones")


def _ragged(values: Ragged, name: str, n_features: int, most: int, least: int = 0) -> None:
    check_array(values.values, name, np.float64, 1)
    _starts(values.starts, name, values.values.size)
    sizes = np.diff(values.starts)
    expect(sizes.size == n_features, f"{name} of {n_features} features", str(sizes.size))
    if n_features:
        expect(sizes.min() >= least and sizes.max() <= most, f"{least} to {most} {name}", f"{sizes.max()}")
