"""NaryClassifier: code, columns, learner and decoder wired into one scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Self

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from . import _check, codes, measures
from ._check import integer, plural
from ._kernels import Totals
from .codes import Design
from .columns import Columns
from .decoders import Decoder, Explanation, Fold, as_decoder, class_totals, distance_decoder, smallest
from .learners import Learner, as_learner, default_estimator
from .matrix import CodeMatrix


class NaryClassifier(ClassifierMixin, BaseEstimator):
    """Classification with many classes by an N-ary error-correcting output code.

    Parameters
    ----------
    estimator : classifier or learner, default=None
        What learns the columns: any scikit-learn classifier (cloned for each column), a learner from `nary.learners`,
        or None for `learners.Trees()`. X may hold NaN where it takes NaN: trees do, as does a pipeline whose first step
        does.
    code : str, design, CodeMatrix or array-like of int, default="random"
        A name from `nary.codes.names()`, a design, or a matrix with a row of symbols for each class in sorted order.
    n_symbols : int or "auto", default="auto"
        N. "auto" leaves it to the design; "random" takes a quarter of the classes, at least 3, at most what the
        estimator can tell apart.
    n_columns : int or "auto", default="auto"
        L. "auto" leaves it to the design; "random" takes 100, or all columns there are for few classes
        where the learner is not itself random.
    decoder : str or decoder, default="auto"
        A name from `nary.decoders.names()` or a decoder. "auto" takes "loglikelihood" where the estimator gives
        probabilities that say more than its symbols, else "hamming"; a fully grown tree's do not, a pruned one's do.
    n_jobs : int, optional
        Columns fitted and asked at the same time, and threads of the native core. No result depends on it.
    random_state : int, RandomState or None
        Decides the code and every draw of the columns.
    verbose : int, default=0
        Above 0, joblib reports the progress of the columns.

    A nested parameter of a name, such as `code__n_candidates` where `code="random"`, turns the name into its object.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes; row c of the code belongs to classes_[c].
    code_ : CodeMatrix
        The code.
    learner_ : Learner
        The fitted columns.
    decoder_ : Decoder
        The decoder in use.
    n_features_in_ : int
        Features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, where X had names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nary import NaryClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = NaryClassifier(n_symbols=5, n_columns=60, random_state=0).fit(X[:1200], y[:1200])
    >>> clf.code_
    CodeMatrix(n_classes=10, n_columns=60, n_symbols=5)
    >>> clf.score(X[1200:], y[1200:]) > 0.9
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        code: str | Design | CodeMatrix | ArrayLike = "random",
        n_symbols: int | Literal["auto"] = "auto",
        n_columns: int | Literal["auto"] = "auto",
        decoder: str | Decoder = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.code = code
        self.n_symbols = n_symbols
        self.n_columns = n_columns
        self.decoder = decoder
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Builds the code and fits its columns.

        Parameters
        ----------
        X : array-like, data frame or CSR matrix of shape (n, n_features)
            Numbers; NaN where the estimator takes it, infinite ones never.
        y : array-like of shape (n,)
            Labels, at least two different ones.
        sample_weight : array-like of shape (n,), optional
            Weights of at least 0; a row of weight 0 takes no part.
        """
        previous = self.__dict__.pop("learner_", None)  # a fit that fails leaves no half-fitted model behind
        n_jobs, verbose = _check.jobs(self.n_jobs), _check.verbosity(self.verbose)
        learner = as_learner(self.estimator)
        learner.check()
        decoder = as_decoder(self.decoder, learner)
        X, y, weights = self._read_training(X, y, sample_weight, learner)
        self.classes_, labels = np.unique(y, return_inverse=True)
        random = check_random_state(self.random_state)
        self.code_ = self._make_code(learner, random)
        self.decoder_ = clone(decoder)
        self._fold = Fold.of(self.code_, self.decoder_)
        used = slice(None) if weights is None or weights.all() else np.flatnonzero(weights)
        fresh = clone(learner)
        self.learner_ = (fresh if previous is None else fresh.resume(previous)).fit(
            X if isinstance(used, slice) else X[used],
            Columns(self.code_, labels.astype(np.int32)[used], self.classes_),
            sample_weight=None if weights is None else weights[used],
            seed=int(random.randint(np.iinfo(np.int32).max)),
            n_jobs=n_jobs,
            verbose=verbose,
        )
        return self

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The learner's importances of the features, in the mean over all columns; `Trees` have them."""
        check_is_fitted(self, "learner_")
        importances: NDArray[np.float64] | None = getattr(self.learner_, "feature_importances_", None)
        if importances is None:
            raise AttributeError(
                f"feature_importances_ needs a learner that has them, such as learners.Trees; got {self.learner_!r}."
            )
        return importances

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of least cost for each row; of equal costs the first class."""
        best = self._nearest(self._read(X))
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, (n, K): the softmax of minus the class costs over the decoder's temperature."""
        costs = self._class_costs(self._read(X))
        return np.concatenate([self.decoder_.probabilities(block) for block in costs])

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of `predict_proba`, computed as such: finite where probabilities underflow."""
        costs = self._class_costs(self._read(X))
        return np.concatenate([self.decoder_.log_probabilities(block) for block in costs])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Minus the class costs, (n, K); of two classes the cost of the first less that of the second, (n,)."""
        blocks = [block.astype(np.float64) for block in self._class_costs(self._read(X))]
        costs = np.concatenate(blocks)
        return costs[:, 0] - costs[:, 1] if len(self.classes_) == 2 else -costs

    def predict_symbols(self, X: Any) -> NDArray[np.int16]:
        """The symbol that each column says of each row: (n, L)."""
        return self._symbols(self._read(X))

    def top_k(self, X: Any, k: int) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The k classes of least cost for each row, best first, and their costs: two arrays of shape (n, k)."""
        X = self._read(X)
        k = integer(k, "k", 1, len(self.classes_), "k counts classes.")
        best, their_costs = [], []
        for costs in self._class_costs(X):
            order = smallest(costs, k)
            best.append(order)
            their_costs.append(np.take_along_axis(costs, order, axis=1))
        return self.classes_[np.concatenate(best)], np.concatenate(their_costs)

    def explain(self, x: Any) -> Explanation:
        """Why one row is given its class: each column's symbol beside those of the winner and of the runner-up."""
        if not hasattr(x, "columns") and not sp.issparse(x) and np.ndim(x) == 1:
            named = hasattr(x, "iloc") and hasattr(self, "feature_names_in_")  # a row of a pandas frame
            x = x.to_frame().T if named else np.reshape(np.asarray(x), (1, -1))
        row = self._read(x)
        if row.shape[0] != 1:
            raise ValueError(f"explain takes one row; got {row.shape[0]}. Give X[i] or X[i:i+1].")
        (costs,) = self._class_costs(row)
        return Explanation.of(self.code_, self.classes_, costs[0], self._symbols(row)[0])

    def error_bound(self, X: Any, y: Any) -> measures.ErrorBound:
        """The paper's bound on the error rate, 2 L B-bar / rho, and the error seen on (X, y).

        Losses and rho are in the decoder's distance: absolute for the absolute decoder, else generalised Hamming.
        """
        X = self._read(X)
        labels = self._encode(X, y)
        decoder = distance_decoder(self.decoder_.distance)
        folds = [self._fold]
        if type(self.decoder_) is not type(decoder):
            folds.append(Fold.of(self.code_, decoder, self._fold.order))
        apart = np.empty(labels.size, np.float32)
        observed, decoded = np.empty((2, labels.size), np.int32)
        first = 0
        for totals, n_rows in self._totals(X, folds):
            rows = slice(first, first + n_rows)
            apart[rows] = folds[-1].finish(totals[-1], n_rows, self._threads)[np.arange(n_rows), labels[rows]]
            observed[rows] = folds[0].nearest(totals[0], n_rows, self._threads)
            decoded[rows] = folds[-1].nearest(totals[-1], n_rows, self._threads)
            first += n_rows
        return measures.ErrorBound.of(self.code_, decoder.distance, apart, labels, decoded, observed)

    def set_params(self, **params: Any) -> Self:
        """Sets parameters, nested ones included; a nested one of a name turns the name into its object first."""
        nested = {key: params.pop(key) for key in list(params) if "__" in key}
        of_decoder = {key: nested.pop(key) for key in list(nested) if key.startswith("decoder__")}
        super().set_params(**params)
        heads = {key.partition("__")[0] for key in nested}
        if "estimator" in heads and self.estimator is None:
            self.estimator = default_estimator()
        if "code" in heads and isinstance(self.code, str):
            self.code = codes.as_design(self.code)
        super().set_params(**nested)
        if of_decoder and isinstance(self.decoder, str):  # what "auto" means depends on the estimator
            self.decoder = as_decoder(self.decoder, as_learner(self.estimator))
        super().set_params(**of_decoder)
        return self

    def _make_code(self, learner: Learner, random: np.random.RandomState) -> CodeMatrix:
        code = codes.build(
            self.code,
            n_classes=len(self.classes_),
            n_symbols=self.n_symbols,
            n_columns=self.n_columns,
            max_symbols=learner.max_symbols,
            randomised=learner.randomised,
            random_state=random,
            n_jobs=self.n_jobs,
        )
        if learner.max_symbols is not None and code.n_symbols > learner.max_symbols:
            raise ValueError(
                f"n_symbols must be at most {learner.max_symbols}, what the estimator can tell apart; the code has "
                f"{code.n_symbols}. Lower n_symbols, or choose another code or estimator."
            )
        return code

    def _read_training(self, X: Any, y: Any, sample_weight: Any, learner: Learner) -> tuple[Any, Any, Any]:
        """X, y and weights checked; X as a float array or CSR matrix."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None. Give one label for each row of X.")
        _check_lengths(X, y=y, sample_weight=sample_weight)
        _check.labels(y)
        X, y = self._validated(X, y, learner)
        check_classification_targets(y)
        n_classes = len(np.unique(y))
        if n_classes < 2:
            raise ValueError(
                f"y must hold at least two classes; got 1 class ({y[0]!r}) in {plural(len(y), 'row')}. "
                "Nothing can be told apart with one class: check the labels."
            )
        if sample_weight is None:
            return X, y, None
        if not np.asarray(sample_weight).any():
            raise ValueError("sample_weight must be above 0 for at least one row; got only zeros. Leave it out.")
        return X, y, _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)

    def _read(self, X: Any) -> Any:
        """X of a prediction, checked against what `fit` saw."""
        check_is_fitted(self, "learner_")
        return self._validated(X, None, self.learner_)

    def _validated(self, X: Any, y: Any, learner: Learner) -> Any:
        """X as a float array or CSR matrix, with y where it is given; without it X is compared with what `fit` saw."""
        _check.numbers_in(X)
        form = {
            "accept_sparse": "csr" if learner.accepts_sparse else False,
            "dtype": [np.float64, np.float32],
            "order": "C",
            "ensure_all_finite": "allow-nan" if learner.accepts_missing else True,
        }
        try:
            return validate_data(self, X, reset=False, **form) if y is None else validate_data(self, X, y, **form)
        except OverflowError as error:
            raise ValueError(f"X must hold numbers below 1.8e308; {error}. Scale the features.") from error

    def _encode(self, X: Any, y: Any) -> NDArray[np.intp]:
        """Labels as numbers of classes."""
        _check_lengths(X, y=y)
        _check.labels(y)
        y = column_or_1d(y)
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(
                f"y must hold classes seen in fit; got {plural(unknown.size, 'other')}: {unknown[:5].tolist()}. "
                "Leave those rows out."
            )
        return np.asarray(np.searchsorted(self.classes_, y))

    def _class_costs(self, X: Any) -> Iterator[NDArray[np.float32]]:
        """Class costs (rows, K) of successive blocks of rows."""
        for (totals,), n_rows in self._totals(X, [self._fold]):
            yield self._fold.finish(totals, n_rows, self._threads)

    def _nearest(self, X: Any) -> NDArray[np.int32]:
        """The place in `classes_` of each row's class."""
        blocks = self._totals(X, [self._fold])
        return np.concatenate([self._fold.nearest(totals, n_rows, self._threads) for (totals,), n_rows in blocks])

    def _totals(self, X: Any, folds: list[Fold]) -> Iterator[tuple[list[Totals], int]]:
        """Totals of the folds for successive blocks of rows."""
        return class_totals(folds, self.learner_, X, _check.jobs(self.n_jobs), self._threads)

    @property
    def _threads(self) -> int:
        return int(joblib.effective_n_jobs(_check.jobs(self.n_jobs)))

    def _symbols(self, X: Any) -> NDArray[np.int16]:
        ready = self.learner_.prepare(X, n_jobs=self.n_jobs)
        return np.asarray(
            self.learner_.outputs(ready, "symbols", 0, self.code_.n_columns, n_jobs=_check.jobs(self.n_jobs))
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        learner = as_learner(self.estimator)
        tags.input_tags.sparse = learner.accepts_sparse
        tags.input_tags.allow_nan = learner.accepts_missing
        return tags


def _check_lengths(X: Any, **others: Any) -> None:
    """Refuses labels or weights that are not one for each row of X."""
    for name, values in others.items():
        if values is not None and hasattr(X, "__len__") | hasattr(X, "shape") and np.ndim(values) > 0:
            n_rows, length = _num_samples(X), _num_samples(values)
            if n_rows != length:
                raise ValueError(
                    f"X and {name} must have the same number of rows; got {n_rows} and {length}. "
                    f"Give one of {name} for each row."
                )
