"""Binning: each feature's values as at most 255 numbers of bins, found once for all columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._kernels import trees as kernels
from .._kernels.trees import Ragged, Rows, SparseRows


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins of a training set: a value's bin is the number of its feature's edges that lie below it.

    A feature with at most `max_bins` different values has a bin for each, with edges half way between them; others are
    cut at quantiles. NaN has the bin `MISSING`. A category has a bin of its own, the most frequent one bin 0; those
    beyond `max_bins` share the last, and one that was not seen is missing.
    """

    edges: Ragged
    centres: Ragged  # what each bin's values are, for thresholds half way between them
    categories: dict[int, NDArray[np.float64]]  # of the categorical features: the values in the order of their bins
    any_missing: bool

    @classmethod
    def fit(cls, X: Any, max_bins: int = 255, categorical: NDArray[np.intp] | None = None, n_jobs: int = 1) -> Bins:
        """The bins of X, a float array or a CSR matrix."""
        kinds = np.zeros(X.shape[1], bool)
        kinds[[] if categorical is None else categorical] = True
        return (_bins_of_entries if sp.issparse(X) else _bins_of_columns)(X, max_bins, kinds, n_jobs)

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return self.edges.starts.size - 1

    @cached_property
    def zero_bins(self) -> NDArray[np.uint8]:
        """The bin of 0 in each feature."""
        return (
            kernels.bin_rows(self._ranked(np.zeros((1, self.n_features))), self.edges)
            .cells[0, : self.n_features]
            .copy()
        )

    def rows(self, X: Any, n_threads: int = 1) -> Rows:
        """The bins of the rows of X."""
        if sp.issparse(X):
            return self._sparse_rows(X, n_threads)
        return kernels.bin_rows(self._ranked(X), self.edges, n_threads)

    def sorted_rows(self, X: Any, y: NDArray[np.int32], n_threads: int = 1) -> tuple[Rows, NDArray[np.int64]]:
        """The bins of the rows sorted by class and, within a class, by what is in them; and the order of the rows.

        So nothing that is drawn by a row's place depends on the order in which the rows came, and a row that comes
        twice weighs what one of twice the weight does.
        """
        rows = self.rows(X, n_threads)
        order = np.lexsort((kernels.mark_rows(rows, self.zero_bins, n_threads), y)).astype(np.int64)
        return rows.take(order), order

    def _sparse_rows(self, X: Any, n_threads: int) -> SparseRows:
        X = _canonical(X)
        features = np.ascontiguousarray(X.indices, np.int32)
        values = np.ascontiguousarray(X.data)
        for f, known in self.categories.items():
            here = features == f
            values = values.copy() if here.any() else values
            values[here] = _ranks(values[here], known)
        bins = kernels.bin_entries(values, features, self.edges, n_threads)
        return SparseRows(X.indptr.astype(np.int64), features, bins, self.zero_bins)

    def _ranked(self, X: NDArray[Any]) -> NDArray[Any]:
        """X with categories replaced by the numbers of their bins."""
        if not self.categories:
            return X
        X = X.copy()
        for f, known in self.categories.items():
            X[:, f] = _ranks(X[:, f], known)
        return X


class _Feature(NamedTuple):
    """The bins of one feature."""

    edges: NDArray[np.float64]
    centres: NDArray[np.float64]
    categories: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, values: NDArray[np.float64], counts: NDArray[np.int64], max_bins: int, categorical: bool) -> _Feature:
        """From the different values, ascending, and how often each came."""
        if categorical:
            ranks = np.arange(max(1, min(values.size, max_bins)), dtype=np.float64)
            return cls(ranks[:-1] + 0.5, ranks, values[np.argsort(-counts, kind="stable")])
        if values.size == 0:
            return cls(np.zeros(0), np.zeros(1))
        if values.size <= max_bins:
            return cls(_between(values[:-1], values[1:]), values)
        # As many rows a bin as can be; a bin's centre is its middle row's value.
        ends = np.cumsum(counts)
        ranks = np.round(np.arange(1, max_bins) * (ends[-1] / max_bins))
        cuts = np.unique(np.searchsorted(ends, ranks))  # the last value of each bin: equal ones stay together
        cuts = cuts[cuts < values.size - 1]
        borders = np.concatenate([[0], ends[cuts], ends[-1:]])
        middle = np.searchsorted(ends, (borders[:-1] + borders[1:] - 1) // 2, side="right")
        return cls(_between(values[cuts], values[cuts + 1]), values[middle])


def _bins_of_columns(X: NDArray[Any], max_bins: int, kinds: NDArray[np.bool_], n_jobs: int) -> Bins:
    """The bins of an array, its columns sorted by several threads."""

    def sort_columns(first: int, last: int) -> list[tuple[_Feature, bool]]:
        found = []
        for f in range(first, last):
            column = np.sort(X[:, f])
            known = column[: np.searchsorted(column, np.nan)]  # NaN is sorted last
            found.append((_Feature.of(*_runs(known), max_bins, bool(kinds[f])), known.size < column.size))
        return found

    step = -(-X.shape[1] // (8 * n_jobs))
    parts = joblib.Parallel(n_jobs=n_jobs, prefer="threads", require="sharedmem")(
        joblib.delayed(sort_columns)(f, min(f + step, X.shape[1])) for f in range(0, X.shape[1], step)
    )
    found = [column for part in parts for column in part]
    edges, centres = (_ragged([feature[k] for feature, _ in found]) for k in (0, 1))
    categories = {f: feature.categories for f, (feature, _) in enumerate(found) if feature.categories is not None}
    return Bins(edges, centres, categories, any(missing for _, missing in found))


def _bins_of_entries(X: Any, max_bins: int, kinds: NDArray[np.bool_], n_jobs: int) -> Bins:
    """The bins of a CSR matrix: all entries are sorted at once, for there may be millions of features."""
    del n_jobs
    values, counts, any_missing = _values_of_entries(X)
    sizes = np.diff(values.starts)
    several = np.flatnonzero(kinds | (sizes > max_bins) | (sizes == 0)).tolist()
    found = {}
    for f in several:
        part = slice(values.starts[f], values.starts[f + 1])
        found[f] = _Feature.of(values.values[part], counts[part], max_bins, bool(kinds[f]))
    # All other features have an edge between each value and the next one of the same feature, if there is one.
    last = np.zeros(values.values.size, bool)
    last[values.starts[1:][sizes > 0] - 1] = True
    edges = _between(values.values[:-1], values.values[1:])[~last[:-1]]
    return Bins(
        _replaced(Ragged(edges, _starts(np.maximum(sizes - 1, 0))), {f: feature.edges for f, feature in found.items()}),
        _replaced(values, {f: feature.centres for f, feature in found.items()}),
        {f: feature.categories for f, feature in found.items() if feature.categories is not None},
        any_missing,
    )


def _values_of_entries(X: Any) -> tuple[Ragged, NDArray[np.int64], bool]:
    """The different values of each feature of a CSR matrix, how often each came, and whether any are missing."""
    X = _canonical(X)
    stored = ~np.isnan(X.data)
    zeros = X.shape[0] - np.bincount(X.indices, minlength=X.shape[1])
    with_zeros = np.flatnonzero(zeros)
    features = np.concatenate([X.indices[stored], with_zeros])
    values = np.concatenate([X.data[stored].astype(np.float64) + 0.0, np.zeros(with_zeros.size)])
    times = np.concatenate([np.ones(int(stored.sum()), np.int64), zeros[with_zeros]])
    order = np.lexsort((values, features))
    features, values, times = features[order], values[order], times[order]
    new = np.ones(values.size, bool)
    new[1:] = (features[1:] != features[:-1]) | (values[1:] != values[:-1])
    first = np.flatnonzero(new)
    counts = np.add.reduceat(times, first) if first.size else times
    starts = _starts(np.bincount(features[first], minlength=X.shape[1]))
    return Ragged(values[first], starts), counts, not bool(stored.all())


def _runs(column: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The different values of a sorted column, and how often each comes."""
    new = np.ones(column.size, bool)
    new[1:] = column[1:] != column[:-1]
    first = np.flatnonzero(new)
    return column[first].astype(np.float64) + 0.0, np.diff(np.append(first, column.size))


def _ranks(values: NDArray[Any], known: NDArray[np.float64]) -> NDArray[np.float64]:
    """The places of values among the known ones; NaN for one that is not there."""
    if not known.size:
        return np.full(values.shape, np.nan)
    order = np.argsort(known)
    places = np.minimum(np.searchsorted(known[order], values), known.size - 1)
    return np.where(known[order[places]] == values, order[places].astype(np.float64), np.nan)


def _between(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """The middle of low and high, or low where no number lies between."""
    middle = low / 2 + high / 2
    return np.where((middle >= low) & (middle < high), middle, low)


def _canonical(X: Any) -> Any:
    """X with each row's entries sorted, and none twice; the caller's matrix stays as it is."""
    if X.has_sorted_indices and X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _starts(sizes: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _ragged(parts: list[NDArray[np.float64]]) -> Ragged:
    return Ragged(np.concatenate(parts), _starts(np.array([part.size for part in parts])))


def _replaced(ragged: Ragged, features: dict[int, NDArray[np.float64]]) -> Ragged:
    """The same values but for some features, which are given others."""
    sizes = np.diff(ragged.starts)
    kept = np.ones(sizes.size, bool)
    kept[list(features)] = False
    for f, values in features.items():
        sizes[f] = values.size
    out = Ragged(np.empty(sizes.sum()), _starts(sizes))
    out.values[np.repeat(kept, sizes)] = ragged.values[np.repeat(kept, np.diff(ragged.starts))]
    for f, values in features.items():
        out.values[out.starts[f] : out.starts[f + 1]] = values
    return out
