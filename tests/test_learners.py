"""PerColumn: a clone per column over shared rows, whatever the estimator can say and however columns are run."""

from __future__ import annotations

from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from nary import CodeMatrix, codes
from nary.columns import Columns
from nary.learners import PerColumn, Trees, as_learner
from nary.learners.per_column import _Constant, releases_gil

DIGITS = tuple(part[:300] for part in load_digits(return_X_y=True))
CODE = codes.build("random", n_classes=10, n_symbols=3, n_columns=8, random_state=0)


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what it was fitted on, and says the first symbol of all."""

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Recorder:
        self.classes_ = np.unique(y)
        self.seen_ = (np.array(X), np.array(y), None if sample_weight is None else np.array(sample_weight))
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.classes_[0])


class Fails(Recorder):
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Recorder:
        raise RuntimeError("no luck")


def fitted(estimator: Any, code: CodeMatrix = CODE, **options: Any) -> PerColumn:
    X, y = DIGITS
    return PerColumn(estimator).fit(X, Columns(code, y.astype(np.int32)), **options)


def test_each_column_equals_a_clone_fitted_by_hand() -> None:
    X, y = DIGITS
    learner = fitted(LogisticRegression(C=0.01, max_iter=500))
    for s, column in enumerate(learner.estimators_):
        alone = LogisticRegression(C=0.01, max_iter=500).fit(X, CODE.symbols[y, s])
        np.testing.assert_array_equal(column.coef_, alone.coef_)
        np.testing.assert_array_equal(learner.outputs(X, "symbols", s, s + 1)[:, 0], alone.predict(X))
        np.testing.assert_allclose(
            learner.outputs(X, "log_probabilities", s, s + 1)[:, 0], alone.predict_log_proba(X), rtol=1e-6
        )


def test_rows_of_unused_classes_and_their_weights_are_left_out() -> None:
    X, y = DIGITS
    weights = np.arange(y.size) + 1.0
    learner = fitted(Recorder(), codes.build("ovo", n_classes=10), sample_weight=weights)
    pairs = np.stack(np.triu_indices(10, 1), axis=1)
    for column, (a, b) in zip(learner.estimators_, pairs, strict=True):
        rows = np.flatnonzero((y == a) | (y == b))
        np.testing.assert_array_equal(column.seen_[0], X[rows])
        np.testing.assert_array_equal(column.seen_[1], y[rows] == b)
        np.testing.assert_array_equal(column.seen_[2], weights[rows])


@pytest.mark.parametrize("estimator", [DecisionTreeClassifier(), GaussianNB(), RidgeClassifier()])
def test_symbols_missing_in_the_training_rows(estimator: Any) -> None:
    X, y = DIGITS
    code = CodeMatrix(np.stack([np.arange(10), np.arange(10) % 3, (np.arange(10) > 0) * 1], axis=1), [12, 3, 2])
    some = y > 2  # the first column misses symbols 0, 1, 2, 10 and 11, the last one has a single symbol
    learner = PerColumn(estimator).fit(X[some], Columns(code, y[some].astype(np.int32)))
    assert isinstance(learner.estimators_[2], _Constant)
    said = learner.outputs(X, "symbols", 0, 3)
    assert set(said[:, 0]) <= set(range(3, 10))
    assert (said[:, 2] == 1).all()
    what = learner.says[-1]
    soft = learner.outputs(X, what, 0, 3)
    assert soft.shape == (300, 3, 12)
    assert np.isneginf(soft[:, 0, [0, 1, 2, 10, 11]]).all()
    np.testing.assert_array_equal(soft[:, 2, :2], [[-np.inf, 0]] * 300)
    np.testing.assert_array_equal(soft[:, 0].argmax(axis=1), said[:, 0])


def test_a_column_without_rows_says_something() -> None:
    X, y = DIGITS
    code = codes.build("ovo", n_classes=10)
    learner = PerColumn(GaussianNB()).fit(X[y > 1], Columns(code, y[y > 1].astype(np.int32)))
    assert learner.outputs(X[:3], "symbols", 0, 1).tolist() == [[0]] * 3


@pytest.mark.parametrize(
    ("estimator", "says"),
    [
        (DecisionTreeClassifier(), ("symbols", "log_probabilities", "scores")),
        (GaussianNB(), ("log_probabilities", "symbols", "scores")),
        (RidgeClassifier(), ("symbols", "scores")),
        (SVC(), ("symbols", "scores")),
        (Recorder(), ("symbols",)),
        (make_pipeline(StandardScaler(), RidgeClassifier()), ("symbols", "scores")),
        (make_pipeline(StandardScaler(), GaussianNB()), ("log_probabilities", "symbols", "scores")),
    ],
)
def test_what_an_estimator_can_say_is_known_before_it_is_fitted(estimator: Any, says: tuple[str, ...]) -> None:
    assert PerColumn(estimator).says == says


@pytest.mark.parametrize("estimator", [RidgeClassifier(), SVC(gamma=1e-3), SVC(kernel="linear"), GaussianNB()])
@pytest.mark.parametrize("code", ["random", "ova"])
def test_scores_agree_with_symbols(estimator: Any, code: str) -> None:
    X = DIGITS[0]
    matrix = CODE if code == "random" else codes.build("ova", n_classes=10)
    learner = fitted(estimator, matrix)
    scores = learner.outputs(X, "scores", 0, matrix.n_columns)
    assert scores.shape == (300, matrix.n_columns, matrix.n_symbols)
    np.testing.assert_array_equal(scores.argmax(axis=2), learner.outputs(X, "symbols", 0, matrix.n_columns))


def test_scores_that_are_not_one_a_symbol_are_refused() -> None:
    code = CodeMatrix(np.arange(10)[:, None])
    learner = fitted(SVC(decision_function_shape="ovo"), code)
    with pytest.raises(
        ValueError, match=r"one score for each of the 10 symbols; SVC gives 45\. Choose its one-vs-rest"
    ):
        learner.outputs(DIGITS[0], "scores", 0, 1)


@pytest.mark.parametrize("backend", ["threads", "processes"])
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_results_depend_on_no_number_of_jobs_and_no_backend(backend: Any, n_jobs: int, sparse: bool) -> None:
    X, y = DIGITS
    given = sp.csr_array(X) if sparse else X
    columns = Columns(CODE, y.astype(np.int32))
    estimator = DecisionTreeClassifier(max_features=3)
    expected = PerColumn(estimator).fit(X, columns, seed=5).outputs(X.astype(np.float32), "symbols", 0, 8)
    learner = PerColumn(estimator, backend=backend).fit(given, columns, seed=5, n_jobs=n_jobs)
    said = learner.outputs(learner.prepare(given), "symbols", 0, 8, n_jobs=n_jobs)
    np.testing.assert_array_equal(said, expected)
    np.testing.assert_array_equal(learner.outputs(learner.prepare(given), "symbols", 3, 5), expected[:, 3:5])


def test_a_joblib_backend_from_outside_is_honoured() -> None:
    with joblib.parallel_config(backend="threading", n_jobs=2):
        learner = fitted(LogisticRegression(C=0.01, max_iter=500))
    np.testing.assert_array_equal(
        learner.outputs(DIGITS[0], "symbols", 0, 8),
        fitted(LogisticRegression(C=0.01, max_iter=500)).outputs(DIGITS[0], "symbols", 0, 8),
    )


def test_random_states_left_open_are_set_column_by_column_and_others_kept() -> None:
    seeds = [column.random_state for column in fitted(Recorder(), seed=1).estimators_]
    assert len(set(seeds)) == 8
    assert seeds == [column.random_state for column in fitted(Recorder(), seed=1).estimators_]
    assert seeds != [column.random_state for column in fitted(Recorder(), seed=2).estimators_]
    assert {column.random_state for column in fitted(Recorder(random_state=7), seed=1).estimators_} == {7}
    nested = fitted(make_pipeline(StandardScaler(), DecisionTreeClassifier(max_features=1)), seed=1)
    assert len({column[-1].random_state for column in nested.estimators_}) == 8


def test_an_error_in_a_column_says_which_column() -> None:
    with pytest.raises(RuntimeError, match="no luck") as caught:
        fitted(Fails())
    assert "while fitting column 0 of the code: 300 rows, symbols [0, 1, 2]" in caught.value.__notes__[0]


def test_weights_for_an_estimator_that_takes_none() -> None:
    with pytest.raises(ValueError, match="sample_weight needs an estimator whose fit takes it; KNeighborsClassifier"):
        fitted(KNeighborsClassifier(), sample_weight=np.ones(300))


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown backend 'thread': expected one of .* Did you mean 'threads'"):
        PerColumn(GaussianNB(), backend="thread").check()  # type: ignore[arg-type]


def test_a_value_beyond_float32_is_refused_for_trees() -> None:
    X = DIGITS[0].copy()
    X[0, 0] = 1e39
    with pytest.raises(ValueError, match=r"X must fit in float32.*1e\+39. Scale the features"):
        PerColumn(DecisionTreeClassifier()).prepare(X)


def test_trees_get_float32_once() -> None:
    learner = PerColumn(DecisionTreeClassifier())
    assert learner.prepare(DIGITS[0]).dtype == np.float32
    ready = learner.prepare(sp.csr_array(DIGITS[0]))
    assert ready.format == "csr"
    assert ready.dtype == np.float32
    assert PerColumn(GaussianNB()).prepare(DIGITS[0]) is DIGITS[0]


def test_who_releases_the_gil() -> None:
    assert releases_gil(DecisionTreeClassifier())
    assert releases_gil(make_pipeline(StandardScaler(), RandomForestClassifier()))
    assert not releases_gil(Perceptron())
    assert not releases_gil(make_pipeline(StandardScaler(), GaussianNB()))


def test_missing_values_are_the_estimators_affair() -> None:
    assert PerColumn(HistGradientBoostingClassifier()).accepts_missing
    assert not PerColumn(GaussianNB()).accepts_missing


def test_what_becomes_a_learner() -> None:
    assert isinstance(as_learner(None), Trees)
    learner = PerColumn(GaussianNB(), n_jobs=2)
    assert as_learner(learner) is learner
    assert clone(learner).get_params()["estimator__var_smoothing"] == 1e-9


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (LinearRegression(), "got LinearRegression, which is not a classifier. Give a classifier"),
        (DecisionTreeClassifier, r"got the class DecisionTreeClassifier. Write DecisionTreeClassifier\(\)"),
        (3, "estimator must be a scikit-learn classifier, a learner from nary.learners, or None; got 3"),
        ("tree", "got 'tree'"),
    ],
)
def test_what_does_not_become_a_learner(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        as_learner(given)
