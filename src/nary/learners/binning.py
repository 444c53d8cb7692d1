"""Binning: each feature's values as at most 255 numbers of bins, found once for all columns."""

from __future__ import annotations

from collections.abc import Callable
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
        chosen = set() if categorical is None else set(categorical.tolist())
        column_of = _stored_columns(X) if sp.issparse(X) else lambda f: (X[:, f], 0)

        def one(features: range) -> list[_Feature]:
            stored = [(f, *column_of(f)) for f in features]
            return [_Feature.of(values, n_zeros, max_bins, f in chosen) for f, values, n_zeros in stored]

        step = -(-X.shape[1] // (8 * n_jobs))
        parts = joblib.Parallel(n_jobs=n_jobs, prefer="threads", require="sharedmem")(
            joblib.delayed(one)(range(f, min(f + step, X.shape[1]))) for f in range(0, X.shape[1], step)
        )
        found = [feature for part in parts for feature in part]
        categories = {f: feature.categories for f, feature in enumerate(found) if feature.categories is not None}
        edges, centres = _ragged([feature.edges for feature in found]), _ragged([feature.centres for feature in found])
        return cls(edges, centres, categories, any(feature.missing for feature in found))

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
        X = X if X.has_sorted_indices and X.has_canonical_format else _canonical(X)
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


def _ranks(values: NDArray[Any], known: NDArray[np.float64]) -> NDArray[np.float64]:
    if not known.size:
        return np.full(values.shape, np.nan)
    order = np.argsort(known)
    places = np.minimum(np.searchsorted(known[order], values), known.size - 1)
    ranks = order[places].astype(np.float64)
    return np.where(known[order[places]] == values, ranks, np.nan)


class _Feature(NamedTuple):
    """The bins of one feature."""

    edges: NDArray[np.float64]
    centres: NDArray[np.float64]
    categories: NDArray[np.float64] | None
    missing: bool

    @classmethod
    def of(cls, values: NDArray[Any], n_zeros: int, max_bins: int, categorical: bool) -> _Feature:
        """From the stored values; `n_zeros` more are 0."""
        seen = np.sort(values[~np.isnan(values)])
        missing = seen.size < values.size
        if n_zeros:
            seen = np.insert(seen, np.searchsorted(seen, 0), np.zeros(1, seen.dtype))
        first = np.concatenate([np.ones(min(seen.size, 1), bool), seen[1:] != seen[:-1]])
        distinct = seen[first].astype(np.float64)
        if distinct.size == 0:
            return cls(np.zeros(0), np.zeros(1), np.zeros(0) if categorical else None, missing)
        if categorical:
            counts = np.diff(np.append(np.flatnonzero(first), seen.size)) + (distinct == 0) * max(0, n_zeros - 1)
            ranks = np.arange(min(distinct.size, max_bins), dtype=np.float64)
            return cls(ranks[:-1] + 0.5, ranks, distinct[np.argsort(-counts, kind="stable")], missing)
        if distinct.size <= max_bins:
            return cls(_between(distinct[:-1], distinct[1:]), distinct, None, missing)
        return cls(*_quantiles(seen, n_zeros, max_bins), None, missing)


def _quantiles(seen: NDArray[Any], n_zeros: int, max_bins: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Edges between sorted values so that bins hold about as many each, and the middle value of each bin."""
    if n_zeros > 1:  # of the zeros that are not stored one is among the values
        at = int(np.searchsorted(seen, 0))
        seen = np.insert(seen, at, np.zeros(n_zeros - 1, seen.dtype))
    cuts = np.round(np.arange(1, max_bins) * (seen.size / max_bins)).astype(np.intp)
    # A cut within a run of equal values moves to the end of the run.
    cuts = np.unique(np.searchsorted(seen, seen[cuts - 1], side="right"))
    cuts = cuts[cuts < seen.size]
    borders = np.concatenate([[0], cuts, [seen.size]])
    edges = _between(seen[cuts - 1].astype(np.float64), seen[cuts].astype(np.float64))
    return edges, seen[(borders[:-1] + borders[1:] - 1) // 2].astype(np.float64)


def _between(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """The middle of low and high, or low where no number lies between."""
    middle = low / 2 + high / 2
    return np.where((middle >= low) & (middle < high), middle, low)


def _stored_columns(X: Any) -> Callable[[int], tuple[NDArray[Any], int]]:
    """The stored values of a column of a CSR matrix, and how many zeros are not stored."""
    by_column = _canonical(X).tocsc()

    def column(f: int) -> tuple[NDArray[Any], int]:
        stored = by_column.data[by_column.indptr[f] : by_column.indptr[f + 1]]
        return stored, X.shape[0] - stored.size

    return column


def _canonical(X: Any) -> Any:
    X = X.copy()
    X.sum_duplicates()
    return X


def _ragged(parts: list[NDArray[np.float64]]) -> Ragged:
    starts = np.concatenate([[0], np.cumsum([part.size for part in parts])]).astype(np.int64)
    return Ragged(np.concatenate(parts).astype(np.float64), starts)
