"""Any scikit-learn classifier as a learner: a clone for each column, all over one shared X."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Self

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.tree import BaseDecisionTree
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from .._check import unknown_name
from ..columns import Columns
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

    Attributes
    ----------
    estimators_ : list
        The fitted clone of each column.
    n_symbols_ : int
        The largest alphabet of the code.

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
        if hasattr(self.estimator, "predict_proba"):
            # A fully grown tree's probabilities are 0 and 1: its symbols say as much.
            if isinstance(self.estimator, BaseDecisionTree):
                return ("symbols", "log_probabilities", "scores")
            return ("log_probabilities", "symbols", "scores")
        return ("symbols", "scores") if hasattr(self.estimator, "decision_function") else ("symbols",)

    @property
    def max_symbols(self) -> int | None:
        tags = get_tags(self.estimator).classifier_tags
        return 2 if tags is not None and not tags.multi_class else None

    @property
    def accepts_missing(self) -> bool:
        return bool(get_tags(self.estimator).input_tags.allow_nan)

    @property
    def accepts_sparse(self) -> bool:
        return bool(get_tags(self.estimator).input_tags.sparse)

    def check(self) -> None:
        """Refuses an unknown backend."""
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
        if sample_weight is not None and not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(
                f"sample_weight needs an estimator whose fit takes it; {type(self.estimator).__name__}.fit does not. "
                "Leave sample_weight out, or choose another estimator."
            )
        L = columns.n_columns
        seeds = np.random.default_rng(seed).integers(0, np.iinfo(np.int32).max, L).tolist()
        shared = _shared(self.estimator, X, fitting=True)
        parts = self._run(
            lambda first, last: joblib.delayed(_fit_columns)(
                self.estimator, shared, columns, first, sample_weight, seeds[first:last]
            ),
            0, L, n_jobs, verbose,
        )  # fmt: skip
        self.estimators_ = [fitted for part in parts for fitted in part]
        self.n_symbols_ = int(columns.alphabet.max())
        return self

    def prepare(self, X: Any) -> Any:
        """Rows in the dtype and layout that the estimator would else make of them anew for each column."""
        return _shared(self.estimator, X, fitting=False)

    def outputs(self, X: Any, what: Output, first: int, last: int, *, n_jobs: int | None = None) -> NDArray[Any]:
        """What columns first..last-1 say of the rows, asked `n_jobs` at a time."""
        parts = self._run(
            lambda a, b: joblib.delayed(_ask_columns)(self.estimators_[a:b], X, what, self.n_symbols_),
            first, last, n_jobs, 0,
        )  # fmt: skip
        return np.asarray(np.concatenate(parts, axis=1))

    def _run(
        self, task: Callable[[int, int], Any], first: int, last: int, n_jobs: int | None, verbose: int
    ) -> list[Any]:
        """Runs task(a, b) for runs of columns that cover first..last, in order."""
        jobs = joblib.effective_n_jobs(self.n_jobs if self.n_jobs is not None else n_jobs)
        step = max(1, (last - first) // (jobs * _TASKS_PER_JOB)) if jobs > 1 else last - first
        if verbose and jobs == 1:
            step = max(1, (last - first) // 100)
        threads = self.backend == "threads" or (self.backend == "auto" and releases_gil(self.estimator))
        pool = joblib.Parallel(n_jobs=jobs, prefer="threads" if threads else "processes", verbose=verbose)
        return list(pool(task(a, min(a + step, last)) for a in range(first, last, step)))


def releases_gil(estimator: Any) -> bool:
    """Whether an estimator, or the last step of a pipeline, is known to work outside of the GIL."""
    if hasattr(estimator, "steps"):
        return bool(estimator.steps) and releases_gil(estimator.steps[-1][1])
    return any(type_.__module__.startswith(_RELEASE_GIL) for type_ in type(estimator).__mro__)


class _Constant(NamedTuple):
    """A column whose training rows all have one symbol: it can only say that."""

    symbol: int


def _shared(estimator: Any, X: Any, fitting: bool) -> Any:
    """X as the estimator will want it, so that the conversion is done once and not once a column."""
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


def _fit_columns(
    estimator: Any, X: Any, columns: Columns, first: int, sample_weight: NDArray[np.float64] | None, seeds: list[int]
) -> list[Any]:
    with config_context(assume_finite=True, skip_parameter_validation=True):
        return [_fit_column(estimator, X, columns, s, sample_weight, seed) for s, seed in enumerate(seeds, first)]


def _fit_column(
    estimator: Any, X: Any, columns: Columns, s: int, sample_weight: NDArray[np.float64] | None, seed: int
) -> Any:
    rows, symbols = columns.problem(s)
    if symbols.size == 0:
        return _Constant(0)
    if (symbols == symbols[0]).all():
        return _Constant(int(symbols[0]))
    weights: dict[str, Any] = {}
    if sample_weight is not None:
        weights["sample_weight"] = sample_weight if rows is None else sample_weight[rows]
    try:
        return _seeded(estimator, seed).fit(X if rows is None else X[rows], symbols, **weights)
    except Exception as error:
        error.add_note(
            f"while fitting column {s} of the code: {symbols.size} rows, "
            f"symbols {np.unique(symbols).tolist()}, estimator {estimator!r}"
        )
        raise


def _ask_columns(estimators: list[Any], X: Any, what: Output, n_symbols: int) -> NDArray[Any]:
    n_rows, L = X.shape[0], len(estimators)
    if what == "symbols":
        out: NDArray[Any] = np.empty((n_rows, L), np.int16)
    else:
        out = np.full((n_rows, L, n_symbols), -np.inf, np.float32)
    with config_context(assume_finite=True), np.errstate(divide="ignore"):  # a probability of 0 is -inf in logs
        for s, estimator in enumerate(estimators):
            if isinstance(estimator, _Constant):
                out[:, s] = estimator.symbol if what == "symbols" else _sure_of(estimator.symbol, n_symbols)
            elif what == "symbols":
                out[:, s] = estimator.predict(X)
            else:
                out[:, s, estimator.classes_] = (_log_probabilities if what == "log_probabilities" else _scores)(
                    estimator, X
                )
    return out


def _sure_of(symbol: int, n_symbols: int) -> NDArray[np.float32]:
    row = np.full(n_symbols, -np.inf, np.float32)
    row[symbol] = 0
    return row


def _log_probabilities(estimator: Any, X: Any) -> NDArray[Any]:
    if hasattr(estimator, "predict_log_proba"):
        return np.asarray(estimator.predict_log_proba(X))
    return np.asarray(np.log(estimator.predict_proba(X)))


def _scores(estimator: Any, X: Any) -> NDArray[Any]:
    """One score for each of the column's symbols; a binary decision value d is -d for the first, d for the second."""
    if not hasattr(estimator, "decision_function"):
        return _log_probabilities(estimator, X)
    scores = np.asarray(estimator.decision_function(X))
    if scores.ndim == 1:
        return np.stack([-scores, scores], axis=1)
    if scores.shape[1] != len(estimator.classes_):
        raise ValueError(
            f"decision_function must give one score for each of the {len(estimator.classes_)} symbols; "
            f"{type(estimator).__name__} gives {scores.shape[1]}. Choose its one-vs-rest form."
        )
    return scores
