"""Trees: one decision tree for each column, grown natively over one X that is binned once for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._check import integer
from .._kernels import trees as kernels
from .._kernels.trees import ColumnBlock, GrownTrees, Rows
from ..columns import Columns
from . import _tree_options, _weights
from ._base import Learner, Output
from .binning import Bins
from .forest import Forest, TreeArrays

_MAX_BLOCK = 4096  # columns grown in one call of the core, which cannot be interrupted
_MAX_BLOCK_ROWS = 1 << 21  # that take part in them, columns counted one by one


class Trees(Learner):
    """Decision trees on binned features, all columns over one shared X.

    Parameters
    ----------
    max_depth : int, optional
        The longest path; None: until leaves are pure.
    min_samples_leaf, min_samples_split : int or float, default=1 and 2
        The fewest rows of a leaf, and of a node that is split; a float below 1 is a share of the column's rows.
    max_leaf_nodes : int, optional
        The most leaves; splits are then made in the order of what they gain.
    max_features : {"sqrt", "log2"}, int or float, default=1.0
        Features that a split looks at, drawn anew for each one. A float is a share of the column's features.
    feature_fraction : float, default=1.0
        Share of the features that a column sees, drawn for each column.
    splitter : {"sampled", "best", "random"}, default="sampled"
        "sampled": the cells of `n_thresholds` random rows of the node are thresholds, of every feature at once.
        "best": all thresholds. "random": `n_thresholds` of each feature, uniform between its extremes in the node.
    n_thresholds : int, default=2
        Thresholds of a feature that "sampled" and "random" try in a node. With hundreds of symbols 1 is
        best and fastest.
    bootstrap : bool, default=False
        Whether a column draws its rows with replacement.
    row_fraction : float, default=1.0
        Share of its rows that a column draws.
    criterion : {"gini", "entropy"}, default="gini"
        What a split is to lower.
    class_weight : {"balanced", "balanced_symbols"} or dict, optional
        "balanced": all classes weigh alike. "balanced_symbols": all symbols of a column do. A dict gives weights to
        labels.
    max_bins : int, default=255
        Bins a feature, beside the one for missing values: from 2 to 255.
    min_impurity_decrease : float, default=0.0
        What a split must take off the impurity, weighted by the node's share of the rows.
    ccp_alpha : float, default=0.0
        Minimal cost-complexity pruning: a branch is cut that gains less than this for each leaf.
    categorical_features : array-like of int or bool, optional
        The features (numbers, or a mask) whose values are categories; they are ordered by frequency.
    leaf_distributions : bool or "auto", default="auto"
        Whether leaves keep the shares of their symbols, 8 bits each, for decoders that read probabilities; without them
        a leaf is sure of its symbol. "auto": where a limit on the trees leaves leaves of several symbols.
    n_jobs : int, optional
        Threads; None leaves it to NaryClassifier.

    Attributes
    ----------
    bins_ : Bins
        The bins of the features.
    forest_ : Forest
        The fitted trees.
    feature_importances_ : ndarray of shape (n_features,)
        What splits on a feature took off the impurity, as shares of a tree, in the mean over all columns.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nary import NaryClassifier, learners
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = NaryClassifier(learners.Trees(splitter="random"), n_columns=60, random_state=0).fit(X[:1200], y[:1200])
    >>> clf.score(X[1200:], y[1200:]) > 0.9
    True
    """

    def __init__(
        self,
        *,
        max_depth: int | None = None,
        min_samples_leaf: int | float = 1,
        min_samples_split: int | float = 2,
        max_leaf_nodes: int | None = None,
        max_features: Literal["sqrt", "log2"] | int | float | None = 1.0,
        feature_fraction: float = 1.0,
        splitter: Literal["sampled", "best", "random"] = "sampled",
        n_thresholds: int = 2,
        bootstrap: bool = False,
        row_fraction: float = 1.0,
        criterion: Literal["gini", "entropy"] = "gini",
        class_weight: Literal["balanced", "balanced_symbols"] | dict[Any, float] | None = None,
        max_bins: int = 255,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        categorical_features: ArrayLike | None = None,
        leaf_distributions: bool | Literal["auto"] = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.min_samples_split = min_samples_split
        self.max_leaf_nodes = max_leaf_nodes
        self.max_features = max_features
        self.feature_fraction = feature_fraction
        self.splitter = splitter
        self.n_thresholds = n_thresholds
        self.bootstrap = bootstrap
        self.row_fraction = row_fraction
        self.criterion = criterion
        self.class_weight = class_weight
        self.max_bins = max_bins
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.categorical_features = categorical_features
        self.leaf_distributions = leaf_distributions
        self.n_jobs = n_jobs

    @property
    def says(self) -> tuple[Output, ...]:
        soft = _tree_options.keeps_distributions(self)
        return ("log_probabilities", "symbols") if soft else ("symbols", "log_probabilities")

    @property
    def randomised(self) -> bool:
        some_rows = self.bootstrap or self.row_fraction < 1
        some_features = self.feature_fraction < 1 or not _tree_options.sees_all(self.max_features)
        return bool(self.splitter != "best" or some_rows or some_features)

    @property
    def accepts_missing(self) -> bool:
        return True

    def check(self) -> None:
        """Refuses parameters out of range."""
        _tree_options.check(self)

    def fit(
        self,
        X: Any,
        columns: Columns,
        *,
        sample_weight: NDArray[np.float64] | None = None,
        seed: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> Self:
        """Bins X and grows a tree for each column."""
        self.check()
        n_features = X.shape[1]
        if n_features > kernels.MAX_FEATURES:
            raise ValueError(f"trees take at most {kernels.MAX_FEATURES} features; got {n_features}. Leave some out.")
        threads = self._threads(n_jobs)
        categorical = _tree_options.feature_numbers(self.categorical_features, n_features)
        bins = Bins.fit(X, self.max_bins, categorical, threads)
        grown = self._grow(X, columns, bins, sample_weight, seed, threads, verbose)
        self.forest_ = Forest.of(grown, n_features, columns.code.n_symbols)
        self.bins_, self.feature_importances_ = bins, self.forest_.importances
        return self

    def _grow(
        self,
        X: Any,
        columns: Columns,
        bins: Bins,
        sample_weight: NDArray[np.float64] | None,
        seed: int,
        threads: int,
        verbose: int,
    ) -> Iterator[GrownTrees]:
        """The trees, a block of columns at a time, over rows sorted by class."""
        rows, order = bins.sorted_rows(X, columns.y, threads)
        class_starts = np.searchsorted(columns.y[order], np.arange(columns.code.n_classes + 1)).astype(np.int64)
        weights = _weights.row_weights(self.class_weight, columns, sample_weight)
        weights = None if weights is None else weights[order]
        options = _tree_options.options(self, bins.n_features, seed)
        balance = self.class_weight == "balanced_symbols"
        for block in _blocks(columns, threads):
            yield kernels.grow_trees(
                rows, bins.centres, bins.any_missing, class_starts, block, options, weights, balance, threads
            )
            if verbose:
                print(f"[Trees] {block.first + block.starts.size - 1} of {columns.n_columns} columns")  # noqa: T201

    def prepare(self, X: Any, *, n_jobs: int | None = None) -> Rows:
        """The bins of the rows."""
        return self.bins_.rows(X, self._threads(n_jobs))

    def outputs(self, X: Rows, what: Output, first: int, last: int, *, n_jobs: int | None = None) -> NDArray[Any]:
        """What the trees of columns first..last-1 say of binned rows."""
        say = self.forest_.symbols if what == "symbols" else self.forest_.log_probabilities
        return say(X, first, last, self._threads(n_jobs))

    def tree_arrays(self, s: int) -> TreeArrays:
        """The tree of column s in the form of scikit-learn's `tree_`."""
        return self.forest_.arrays(integer(s, "s", 0, self.forest_.n_columns - 1, "Columns count from 0."), self.bins_)

    def _threads(self, n_jobs: int | None) -> int:
        return int(joblib.effective_n_jobs(self.n_jobs if self.n_jobs is not None else n_jobs))


def _blocks(columns: Columns, threads: int) -> Iterator[ColumnBlock]:
    """The code in blocks of columns, as the core takes it."""
    L, code = columns.n_columns, columns.code
    used = code.n_used / (code.n_classes * L)
    step = max(
        4 * threads, min(_MAX_BLOCK, round(_MAX_BLOCK_ROWS / max(1, used * max(columns.n_rows, code.n_classes))))
    )
    for first in range(0, L, step):
        starts, classes, symbols = code.block_entries(first, min(first + step, L))
        of_column = np.repeat(np.arange(starts.size - 1, dtype=np.int64), np.diff(starts))
        order = np.argsort(of_column << 16 | symbols, kind="stable")
        yield ColumnBlock(first, starts, classes[order], symbols[order].astype(np.uint16), code.n_symbols)
