"""The parameters of trees: what is refused, and what they come to for a number of features and rows."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._check import integer, jobs, one_of, unknown_name
from .._kernels.trees import MISSING, SPLITTERS, TreeOptions
from . import _weights

CRITERIA = ("gini", "entropy")
_MOST_ROWS = (1 << 31) - 1  # more than any column has


def check(trees: Any) -> None:
    """Refuses parameters out of range."""
    for name, known in (("splitter", SPLITTERS), ("criterion", CRITERIA)):
        if getattr(trees, name) not in known:
            raise unknown_name(name, getattr(trees, name), known)
    _weights.check(trees.class_weight)
    if trees.max_depth is not None:
        integer(trees.max_depth, "max_depth", 1, hint="None: no limit.")
    if trees.max_leaf_nodes is not None:
        integer(trees.max_leaf_nodes, "max_leaf_nodes", 2, hint="None: no limit.")
    integer(trees.max_bins, "max_bins", 2, MISSING, hint="A bin is a byte, and one is kept for missing values.")
    integer(trees.n_thresholds, "n_thresholds", 1, 65535, hint="splitter='best' tries all there are.")
    _rows_or_share(trees.min_samples_leaf, "min_samples_leaf", 1)
    _rows_or_share(trees.min_samples_split, "min_samples_split", 2)
    for name in ("feature_fraction", "row_fraction"):
        _share(getattr(trees, name), name)
    for name in ("min_impurity_decrease", "ccp_alpha"):
        _at_least_zero(getattr(trees, name), name)
    _count_features(trees.max_features, 1)
    if trees.n_jobs is not None:
        jobs(trees.n_jobs)
    one_of(trees.bootstrap, "bootstrap", (True, False))
    one_of(trees.leaf_distributions, "leaf_distributions", (True, False, "auto"))


def keeps_distributions(trees: Any) -> bool:
    """Whether leaves keep the shares of their symbols."""
    if trees.leaf_distributions != "auto":
        return bool(trees.leaf_distributions)
    plain = {
        "max_depth": None, "max_leaf_nodes": None, "min_samples_leaf": 1, "min_samples_split": 2,
        "min_impurity_decrease": 0, "ccp_alpha": 0,
    }  # fmt: skip
    return any(getattr(trees, name) != value for name, value in plain.items())


def sees_all(max_features: Any) -> bool:
    """Whether a split looks at all features of its column."""
    return max_features is None or (isinstance(max_features, float) and max_features == 1)


def options(trees: Any, n_features: int, seed: int) -> TreeOptions:
    """The parameters as the core takes them."""
    of_column = max(1, round(trees.feature_fraction * n_features))
    unlimited = TreeOptions()
    return TreeOptions(
        splitter=trees.splitter,
        entropy=trees.criterion == "entropy",
        n_thresholds=int(trees.n_thresholds),
        max_depth=_limit(trees.max_depth, unlimited.max_depth),
        max_leaf_nodes=_limit(trees.max_leaf_nodes, unlimited.max_leaf_nodes),
        min_samples_split=float(min(trees.min_samples_split, _MOST_ROWS)),
        split_is_fraction=not isinstance(trees.min_samples_split, numbers.Integral),
        min_samples_leaf=float(min(trees.min_samples_leaf, _MOST_ROWS)),
        leaf_is_fraction=not isinstance(trees.min_samples_leaf, numbers.Integral),
        column_features=of_column,
        split_features=_count_features(trees.max_features, of_column),
        row_fraction=float(trees.row_fraction),
        bootstrap=bool(trees.bootstrap),
        min_impurity_decrease=float(trees.min_impurity_decrease),
        ccp_alpha=float(trees.ccp_alpha),
        leaf_distributions=keeps_distributions(trees),
        seed=seed,
    )


def feature_numbers(categorical: ArrayLike | None, n_features: int) -> NDArray[np.intp] | None:
    """The numbers of the categorical features."""
    if categorical is None:
        return None
    given = np.asarray(categorical)
    if given.size == 0 and given.ndim == 1:
        return None
    if given.dtype == bool and given.shape == (n_features,):
        return np.flatnonzero(given)
    if (
        given.dtype.kind not in "iu"
        or given.ndim != 1
        or (given.size and not 0 <= given.min() <= given.max() < n_features)
    ):
        raise ValueError(
            f"categorical_features must be numbers of features from 0 to {n_features - 1}, or a mask of {n_features}; "
            f"got {categorical!r}."
        )
    return given.astype(np.intp)


def _count_features(given: Any, n_features: int) -> int:
    """How many features a split looks at."""
    if given is None:
        return n_features
    if isinstance(given, str):
        if given not in ("sqrt", "log2"):
            raise unknown_name("max_features", given, ("sqrt", "log2"))
        return max(1, int(np.sqrt(n_features) if given == "sqrt" else np.log2(n_features)))
    if isinstance(given, numbers.Integral) and not isinstance(given, bool):
        return min(integer(given, "max_features", 1), n_features)
    _share(given, "max_features")
    return max(1, int(given * n_features))


def _limit(given: int | None, most: int) -> int:
    return most if given is None else min(int(given), most)


def _share(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a share above 0 and at most 1; got {value!r} of type {type(value).__name__}.")
    if not 0 < float(value) <= 1:
        raise ValueError(f"{name} must be a share above 0 and at most 1; got {value}.")


def _rows_or_share(value: Any, name: str, low: int) -> None:
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        integer(value, name, low, hint="A float below 1 is a share of the rows.")
    elif isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) <= 1:
        raise ValueError(
            f"{name} must be an integer of at least {low}, or a share above 0 and at most 1; got {value!r}."
        )


def _at_least_zero(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be a finite number of at least 0; got {value!r}.")
