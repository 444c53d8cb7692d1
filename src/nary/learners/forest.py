"""The fitted trees of all columns: gathered as they are grown, walked by rows, and given out one by one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._kernels import trees as kernels
from .._kernels.trees import MISSING, GrownTrees, Rows
from .binning import Bins


class TreeArrays(NamedTuple):
    """One tree in the form of scikit-learn's `tree_`: node 0 is the root, children come after their parents."""

    children_left: NDArray[np.int32]  # -1 for a leaf
    children_right: NDArray[np.int32]
    feature: NDArray[np.int32]  # -2 for a leaf
    threshold: NDArray[np.float64]  # a value of at most this goes left; of a categorical feature: the number of its bin
    missing_go_to_left: NDArray[np.bool_]
    symbol: NDArray[np.int32]  # what a leaf says; -1 for a split
    probabilities: NDArray[np.float64] | None  # (nodes, N) with `leaf_distributions`, else None


@dataclass(frozen=True, eq=False)
class Forest:
    """One tree a column, and what the features took off the impurity in all of them."""

    trees: GrownTrees
    importances: NDArray[np.float64]
    n_symbols: int

    @classmethod
    def of(cls, parts: Iterable[GrownTrees], n_features: int, n_symbols: int) -> Forest:
        """The trees of successive blocks of columns, as one."""
        kept, importances = [], np.zeros(n_features)
        for part in parts:
            importances += _importances(part, n_features)
            kept.append(part._replace(gains=np.zeros(0)))
        total = importances.sum()
        return cls(_joined(kept), importances / total if total > 0 else importances, n_symbols)

    @property
    def n_columns(self) -> int:
        """How many trees there are."""
        return self.trees.roots.size

    def symbols(self, rows: Rows, first: int, last: int, n_threads: int) -> NDArray[np.int16]:
        """What the trees of columns first..last-1 say of binned rows: (rows, columns)."""
        if not self.trees.leaf_symbols.size:
            return kernels.walk_trees(rows, *self._part(first, last), np.int16, n_threads)
        return self.trees.leaf_symbols[self._leaves(rows, first, last, n_threads)].astype(np.int16)

    def log_probabilities(self, rows: Rows, first: int, last: int, n_threads: int) -> NDArray[np.float32]:
        """Logarithms of the symbols' shares of the leaves that rows come to: (rows, columns, N).

        A leaf without a distribution is sure of its symbol.
        """
        if not self.trees.leaf_symbols.size:
            said = self.symbols(rows, first, last, n_threads)
            return np.where(said[:, :, None] == np.arange(self.n_symbols), np.float32(0), np.float32(-np.inf))
        shares = self.trees.leaf_shares[self._leaves(rows, first, last, n_threads)].astype(np.float32)
        shares /= shares.sum(axis=2, keepdims=True)
        with np.errstate(divide="ignore"):  # a share of 0 is -inf in logs
            return np.log(shares, out=shares)

    def arrays(self, s: int, bins: Bins) -> TreeArrays:
        """The tree of column s."""
        splits, leaves = self._nodes(s)
        tests = splits[:, 2].view(np.uint32)
        children = splits[:, :2].copy()
        is_leaf = children < 0
        children[is_leaf] = len(splits) + np.arange(leaves.size if len(splits) else 0)
        features, last = (tests >> 9).astype(np.int32), tests & 255
        no_child, n_splits = np.full(leaves.size, -1, np.int32), len(splits)
        symbols, shares = leaves, None
        if self.trees.leaf_symbols.size:
            numbers = leaves + self.trees.leaf_starts[s]
            symbols = self.trees.leaf_symbols[numbers]
            shares = self.trees.leaf_shares[numbers].astype(np.float64)
            shares /= shares.sum(axis=1, keepdims=True)
            shares = np.concatenate([np.zeros((n_splits, shares.shape[1])), shares])
        thresholds = [_threshold(bins, int(f), int(b)) for f, b in zip(features, last, strict=True)]
        return TreeArrays(
            children_left=np.concatenate([children[:, 0], no_child]),
            children_right=np.concatenate([children[:, 1], no_child]),
            feature=np.concatenate([features, no_child - 1]),
            threshold=np.array(thresholds + [-2.0] * leaves.size),
            missing_go_to_left=np.concatenate([(tests >> 8 & 1).astype(bool), no_child > 0]),
            symbol=np.concatenate([np.full(n_splits, -1, np.int32), symbols.astype(np.int32)]),
            probabilities=shares,
        )

    def _nodes(self, s: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The splits of a tree, and the values of its leaves in the order of their parents."""
        splits = self.trees.splits[self.trees.starts[s] : self.trees.starts[s + 1]]
        if not len(splits):
            return splits, ~self.trees.roots[s : s + 1]
        children = splits[:, :2]
        return splits, ~children[children < 0]

    def _part(self, first: int, last: int) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
        begin, end = self.trees.starts[first], self.trees.starts[last]
        return self.trees.splits[begin:end], self.trees.starts[first : last + 1] - begin, self.trees.roots[first:last]

    def _leaves(self, rows: Rows, first: int, last: int, n_threads: int) -> NDArray[np.int64]:
        leaves = kernels.walk_trees(rows, *self._part(first, last), np.int32, n_threads)
        return leaves + self.trees.leaf_starts[first:last]


def _threshold(bins: Bins, feature: int, last: int) -> float:
    """The largest value that goes left of a split whose last bin on the left is given."""
    if last == MISSING:
        return -np.inf  # only missing values go left
    edges = bins.edges.of(feature)
    if last >= edges.size:
        return np.inf  # only missing values go right
    return float(last) if feature in bins.categories else float(edges[last])


def _importances(trees: GrownTrees, n_features: int) -> NDArray[np.float64]:
    """For each feature the sum over trees of its share of the tree's gains."""
    L = trees.roots.size
    of_tree = np.repeat(np.arange(L), np.diff(trees.starts))
    totals = np.bincount(of_tree, trees.gains, minlength=L)[of_tree]
    shares = np.divide(trees.gains, totals, out=np.zeros_like(trees.gains), where=totals > 0)
    sums = np.bincount(trees.splits[:, 2].view(np.uint32) >> 9, shares, minlength=n_features)
    return sums.astype(np.float64)  # without splits they are integers


def _joined(parts: list[GrownTrees]) -> GrownTrees:
    joined: dict[str, NDArray[Any]] = {}
    for name in GrownTrees._fields:
        arrays = [getattr(part, name) for part in parts]
        if name in ("starts", "leaf_starts"):
            sizes = np.concatenate([np.diff(array) for array in arrays])
            joined[name] = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        else:
            joined[name] = np.concatenate(arrays)
    return GrownTrees(**joined)
