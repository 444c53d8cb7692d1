"""Any scikit-learn classifier as a learner: a clone for each column, all over one shared X."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Self

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import config_context, get_config
from sklearn.base import clone, is_classifier
from sklearn.tree import BaseDecisionTree
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from .._check import jobs, unknown_name
from ..columns import Columns
from ._answers import Column, Constant
from ._base import Learner, Output

# Modules whose estimators spend their time in compiled code that releases the GIL.
_RELEASE_GIL = (
    "sklearn.tree",
    "sklearn.ensemble",
    "sklearn.svm",
    "sklearn.neighbors",
    "lightgbm",
    "xgboost",
    "catboost",
)
_BACKENDS = ("auto", "threads", "processes")
_FULLY_GROWN = {  # a tree with these grows until its leaves are pure
    "max_depth": None,
    "max_leaf_nodes": None,
    "min_samples_leaf": 1,
    "min_samples_split": 2,
    "min_weight_fraction_leaf": 0,
    "min_impurity_decrease": 0,
    "ccp_alpha": 0,
}
_TASKS_PER_JOB = 16  # enough that workers end together, few enough that handing out tasks costs nothing


class PerColumn(Learner):
    """A clone of `estimator` for each column of the code.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Cloned for every column. Parameters named `random_state` that are None get a seed of their own for each column.
    n_jobs : int, optional
        Columns fitted, and asked, at the same time; None leaves it to NaryClassifier.
    backend : {"auto", "threads", "processes"}, default="auto"
        How columns run at the same time. "auto" takes threads for estimators known to release the GIL, else processes
        that share X by memory map. A backend set by `joblib.parallel_config` comes first.

    Columns get X read-only. Where a column's log-probabilities or scores hold NaN for a row, the column says nothing of
    it: all its symbols count alike there. Sample weights reach the last step of a pipeline.

    Attributes
    ----------
    estimators_ : list
        The fitted clone of each column.
    alphabet_ : ndarray of shape (n_columns,)
        The number of symbols of each column.
    fitted_rows_ : ndarray of shape (n_columns,)
        The number of rows that each column was fitted on.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from nary import NaryClassifier, learners
    >>> clf = NaryClassifier(learners.PerColumn(LogisticRegression(), backend="threads"), n_symbols=3)
    """

    def __init__(
        self, estimator: Any, n_jobs: int | None = None, backend: Literal["auto", "threads", "processes"] = "auto"
    ) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.backend = backend

    @property
    def says(self) -> tuple[Output, ...]:
        self.check()
        if hasattr(self.estimator, "predict_proba"):
            # A fully grown tree's probabilities are 0 and 1: its symbols say as much.
            if _is_fully_grown(_last_step(self.estimator)):
                return ("symbols", "log_probabilities", "scores")
            return ("log_probabilities", "symbols", "scores")
        return ("symbols", "scores") if hasattr(self.estimator, "decision_function") else ("symbols",)

    @property
    def max_symbols(self) -> int | None:
        self.check()
        tags = get_tags(self.estimator).classifier_tags
        return 2 if tags is not None and not tags.multi_class else None

    @property
    def accepts_missing(self) -> bool:
        """Whether the estimator, or the first step of a pipeline, takes NaN."""
        self.check()
        return _takes_missing(self.estimator)

    @property
    def accepts_sparse(self) -> bool:
        self.check()
        return bool(get_tags(self.estimator).input_tags.sparse)

    def check(self) -> None:
        """Refuses what is no classifier, a number of jobs that is none, and an unknown backend."""
        check_classifier(self.estimator, "the estimator of PerColumn must be a scikit-learn classifier")
        jobs(self.n_jobs)
        if self.backend not in _BACKENDS:
            raise unknown_name("backend", self.backend, _BACKENDS)

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
        """Fits a clone for each column, on the rows that take part in it."""
        self.check()
        weights: dict[str, NDArray[np.float64]] = {}
        if sample_weight is not None:
            weights = {_weight_parameter(self.estimator): sample_weight}
        L = columns.n_columns
        seeds = np.random.default_rng(seed).integers(0, np.iinfo(np.int32).max, L).tolist()
        shared = _shared(self.estimator, X, fitting=True)
        handing = _handing(self.estimator, shared)
        parts = self._run(
            lambda first, last: delayed(_fit_columns)(
                self.estimator, shared, columns, first, weights, seeds[first:last], handing
            ),
            0, L, n_jobs, verbose,
        )  # fmt: skip
        self.estimators_ = [fitted for part in parts for fitted, _ in part]
        self.fitted_rows_ = np.array([n_rows for part in parts for _, n_rows in part], np.int32)
        self.alphabet_ = columns.alphabet
        return self

    def prepare(self, X: Any, *, n_jobs: int | None = None) -> Any:
        """Rows in the dtype and layout that the estimator would else make of them anew for each column."""
        return _shared(self.estimator, X, fitting=False)

    def outputs(self, X: Any, what: Output, first: int, last: int, *, n_jobs: int | None = None) -> NDArray[Any]:
        """What columns first..last-1 say of the rows, asked `n_jobs` at a time."""
        N, handing = int(self.alphabet_.max()), _handing(self.estimator, X)
        parts = self._run(
            lambda a, b: delayed(_ask_columns)(
                [Column(self.estimators_[s], s, int(self.alphabet_[s])) for s in range(a, b)],
                X, what, N, self.fitted_rows_[a:b], handing,
            ),
            first, last, n_jobs, 0,
        )  # fmt: skip
        return np.asarray(np.concatenate(parts, axis=1))

    def _run(
        self, task: Callable[[int, int], Any], first: int, last: int, n_jobs: int | None, verbose: int
    ) -> list[Any]:
        """Runs task(a, b) for runs of columns that cover first..last, in order."""
        n_workers = joblib.effective_n_jobs(self.n_jobs if self.n_jobs is not None else n_jobs)
        step = max(1, (last - first) // (n_workers * _TASKS_PER_JOB)) if n_workers > 1 else last - first
        if verbose and n_workers == 1:
            step = max(1, (last - first) // 100)
        threads = self.backend == "threads" or (self.backend == "auto" and releases_gil(self.estimator))
        pool = Parallel(n_jobs=n_workers, prefer="threads" if threads else "processes", verbose=verbose)
        return list(pool(task(a, min(a + step, last)) for a in range(first, last, step)))


def check_classifier(estimator: Any, expected: str) -> None:
    """Refuses what is no classifier object; `expected` is the beginning of the error."""
    if isinstance(estimator, type):
        raise TypeError(f"{expected}; got the class {estimator.__name__}. Write {estimator.__name__}().")
    if isinstance(estimator, Learner):
        raise TypeError(
            f"{expected}; got {type(estimator).__name__}, a learner of all columns. Give it to NaryClassifier as it is."
        )
    if not hasattr(estimator, "__sklearn_tags__") or not hasattr(estimator, "fit"):
        raise TypeError(f"{expected}; got {estimator!r}. Give an object such as DecisionTreeClassifier().")
    if not is_classifier(estimator):
        raise TypeError(
            f"{expected}; got {type(estimator).__name__}, which is not a classifier. "
            "Give a classifier: columns are classification problems."
        )


def releases_gil(estimator: Any) -> bool:
    """Whether an estimator, or the last step of a pipeline, is known to work outside of the GIL."""
    return any(type_.__module__.startswith(_RELEASE_GIL) for type_ in type(_last_step(estimator)).__mro__)


def _takes_missing(estimator: Any) -> bool:
    return bool(get_tags(_first_step(estimator)).input_tags.allow_nan)


def _last_step(estimator: Any) -> Any:
    """The estimator, or the one at the end of a pipeline."""
    while getattr(estimator, "steps", None):
        estimator = estimator.steps[-1][1]
    return estimator


def _first_step(estimator: Any) -> Any:
    """The estimator, or the first of a pipeline that does something."""
    while getattr(estimator, "steps", None):
        estimator = next(step for _, step in estimator.steps if step not in (None, "passthrough"))
    return estimator


def _is_fully_grown(estimator: Any) -> bool:
    """Whether an estimator is a decision tree that nothing keeps from growing until its leaves are pure."""
    return isinstance(estimator, BaseDecisionTree) and all(
        getattr(estimator, name, usual) == usual for name, usual in _FULLY_GROWN.items()
    )


def _weight_parameter(estimator: Any) -> str:
    """The name under which fit takes sample weights: of a pipeline, its last step's."""
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if getattr(estimator, "steps", None) and not get_config()["enable_metadata_routing"]:
        name, last = estimator.steps[-1]
        return f"{name}__{_weight_parameter(last)}"
    if getattr(estimator, "steps", None):  # the pipeline routes them to the steps that request them
        return "sample_weight"
    raise ValueError(
        f"sample_weight needs an estimator whose fit takes it; {type(estimator).__name__}.fit does not. "
        "Leave sample_weight out, or choose another estimator."
    )


def _canonical(X: Any) -> Any:
    """Sparse rows in order and without duplicates, as an estimator would else make them in place."""
    if not sp.issparse(X) or X.has_canonical_format:  # type: ignore[attr-defined]
        return X
    ordered: Any = X.copy()  # type: ignore[attr-defined]
    ordered.sum_duplicates()
    return ordered


def _shared(estimator: Any, X: Any, fitting: bool) -> Any:
    """X as the estimator will want it, so that the conversion is done once and not once a column."""
    X = _canonical(X)
    if not isinstance(estimator, BaseDecisionTree):
        return X
    shared: Any = X
    with np.errstate(over="ignore"):  # refused below
        if sp.issparse(X):
            shared = (shared.tocsc() if fitting else shared.tocsr()).astype(np.float32)
        else:
            shared = np.ascontiguousarray(X, dtype=np.float32)
    given, cast = (part.data if sp.issparse(X) else part for part in (X, shared))
    if given.dtype != np.float32 and np.isinf(cast).any():
        raise ValueError(
            "X must fit in float32, in which decision trees work; got a value of magnitude "
            f"{np.nanmax(np.abs(given)):.3g}. Scale the features."
        )
    return shared


def _seeded(estimator: Any, seed: int) -> Any:
    """A clone whose random_state parameters that were left None are set from `seed`."""
    column = clone(estimator)
    names = sorted(
        name
        for name, value in column.get_params(deep=True).items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    )
    if names:
        draws = np.random.default_rng(seed).integers(0, np.iinfo(np.int32).max, len(names))
        column.set_params(**dict(zip(names, draws.tolist(), strict=True)))
    return column


class _Handing(NamedTuple):
    """How X is given to a column, so that none sees what another did to it."""

    way: Literal["as it is", "read-only", "copied"]
    finite: bool  # whether a column need not look for NaN


def _handing(estimator: Any, X: Any) -> _Handing:
    """Trees leave X alone. Where X holds NaN, scikit-learn's check needs to write, and a later step may not take it."""
    if isinstance(estimator, BaseDecisionTree):
        return _Handing("as it is", True)
    held: Any = X
    if _takes_missing(estimator) and np.isnan(held.data if sp.issparse(X) else held).any():
        return _Handing("copied", not hasattr(estimator, "steps"))
    return _Handing("read-only", True)


def _hand_out(X: Any, handing: _Handing) -> Any:
    """X for one column; called where it is used, for a read-only array comes writeable to another process."""
    if handing.way == "as it is":
        return X
    return X.copy() if handing.way == "copied" else _read_only(X)


def _read_only(X: Any) -> Any:
    """A view of X to which nobody can write: an estimator that works in place copies it, or fails by name."""
    if not sp.issparse(X):
        view = X.view()
        view.flags.writeable = False
        return view
    shell = copy.copy(X)
    for name in ("data", "indices", "indptr"):
        setattr(shell, name, _read_only(getattr(X, name)))
    return shell


def _fit_columns(
    estimator: Any,
    X: Any,
    columns: Columns,
    first: int,
    weights: dict[str, NDArray[np.float64]],
    seeds: list[int],
    handing: _Handing,
) -> list[tuple[Any, int]]:
    """Each column's fitted clone, and the number of its rows."""
    with config_context(assume_finite=handing.finite, skip_parameter_validation=True):
        return [_fit_column(estimator, X, columns, s, weights, seed, handing) for s, seed in enumerate(seeds, first)]


def _fit_column(
    estimator: Any,
    X: Any,
    columns: Columns,
    s: int,
    weights: dict[str, NDArray[np.float64]],
    seed: int,
    handing: _Handing,
) -> tuple[Any, int]:
    rows, symbols = columns.problem(s)
    if symbols.size == 0:
        return Constant(0), 0
    if (symbols == symbols[0]).all():
        return Constant(int(symbols[0])), symbols.size
    mine = _hand_out(X, handing) if rows is None else X[rows]
    weigh = {name: values.copy() if rows is None else values[rows] for name, values in weights.items()}
    try:
        return _seeded(estimator, seed).fit(mine, symbols, **weigh), symbols.size
    except Exception as error:
        error.add_note(
            f"while fitting column {s} of the code: {symbols.size} rows, "
            f"symbols {np.unique(symbols).tolist()}, estimator {estimator!r}"
        )
        raise


def _ask_columns(
    columns: list[Column], X: Any, what: Output, n_symbols: int, fitted_rows: NDArray[np.int32], handing: _Handing
) -> NDArray[Any]:
    n_rows, L = X.shape[0], len(columns)
    if what == "symbols":
        out: NDArray[Any] = np.empty((n_rows, L), np.int16)
    else:
        out = np.full((n_rows, L, n_symbols), -np.inf, np.float32)
    # A probability of 0 is -inf in logs; one that is NaN is dealt with.
    with config_context(assume_finite=handing.finite), np.errstate(divide="ignore", invalid="ignore"):
        for i, column in enumerate(columns):
            try:
                column.answer(_hand_out(X, handing), what, out[:, i])
            except Exception as error:
                error.add_note(
                    f"while asking column {column.place} of the code for {what} of {n_rows} rows: "
                    f"fitted on {fitted_rows[i]} rows, estimator {column.estimator!r}"
                )
                raise
    return out
