"""What users of linear machines run into: weights of 0, numbers beyond a precision, warm starts after changes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.svm import LinearSVC

from nary import NaryClassifier, codes
from nary.columns import Columns
from nary.learners import Linear, Ridge


def clouds(n: int = 300, d: int = 6, K: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows about K overlapping centres."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % K)
    return rng.normal(size=(K, d))[y] + 0.6 * rng.normal(size=(n, d)), y.astype(np.int32)


@pytest.mark.parametrize("code", ["ova", "ovo", "identity"])
@pytest.mark.parametrize("learner", [Linear(), Linear(strategy="crammer_singer", C=0.1), Ridge()], ids=str)
def test_a_class_of_weight_zero_is_as_if_its_rows_were_not_there(learner: Any, code: str) -> None:
    X, y = clouds()
    absent = NaryClassifier(learner, code=code, random_state=0).fit(X, y, sample_weight=(y != 3).astype(float))
    weighed = clone(absent).set_params(estimator__class_weight={3: 0}).fit(X, y)
    assert 3 not in weighed.predict(X)
    np.testing.assert_array_equal(weighed.predict(X), absent.predict(X))


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
def test_no_intercept_is_none_however_it_is_scaled(loss: str) -> None:
    X, y = clouds()
    fits = [
        NaryClassifier(
            Linear(loss=loss, fit_intercept=False, intercept_scaling=scaling), code="ova", random_state=0
        ).fit(X, y)
        for scaling in (1.0, np.inf)
    ]
    assert not fits[1].learner_.intercepts_.any()
    np.testing.assert_array_equal(*(clf.predict_proba(X) for clf in fits))


@pytest.mark.parametrize(
    ("dtype", "C", "weight"),
    [(np.float64, 1e300, 1), (np.float32, 1e30, 1), (np.float32, 1e-40, 1), (np.float32, 1, 1e300)],
)
def test_costs_beyond_the_precision_are_refused(dtype: Any, C: float, weight: float) -> None:
    X, y = clouds()
    columns = Columns(codes.build("ova", n_classes=5), y)
    with pytest.raises(ValueError, match=r"C times the weight of a row must lie between .* Choose another C"):
        Linear(C=C).fit(X.astype(dtype), columns, sample_weight=np.full(y.size, float(weight)))


def test_rows_beyond_the_precision_are_refused_in_prediction_too() -> None:
    X, y = clouds()
    for learner in (Linear(), Ridge()):
        clf = NaryClassifier(learner, code="ova").fit(X.astype(np.float32), y)
        with pytest.raises(ValueError, match="X must hold numbers of at most"):
            clf.predict_proba(1e300 * X)


def test_a_warm_start_after_anything_has_changed_finds_the_same_machines() -> None:
    X, y = clouds()
    for options in ({"loss": "hinge"}, {"strategy": "crammer_singer"}, {"loss": "logistic"}, {}):
        clf = NaryClassifier(
            Linear(C=0.1, warm_start=True, calibrate=False, **options), code="random", n_symbols=3, n_columns=8,
            random_state=0, decoder="hamming",
        ).fit(sp.csr_matrix(X), y)  # fmt: skip
        changes: list[Any] = [
            {"random_state": 1},  # another code
            {"estimator__loss": "hinge"},
            {"estimator__C": 0.5},
        ]
        for change in changes:
            clf.set_params(**change).fit(sp.csr_matrix(X), y)
            cold = NaryClassifier(**clf.get_params(deep=False) | {"estimator": Linear(
                **clf.estimator.get_params() | {"warm_start": False})}).fit(sp.csr_matrix(X), y)  # fmt: skip
            assert (clf.learner_.gaps_ <= 1e-3).all()
            near = np.sqrt(4e-3) * np.linalg.norm(cold.learner_.weights_)
            assert np.linalg.norm(clf.learner_.weights_ - cold.learner_.weights_) <= 4 * near
        for rows in (X[:200].astype(np.float32), X[::-1]):  # fewer rows of another precision, and another order
            clf.fit(rows, y[:200] if len(rows) == 200 else y[::-1])
            assert (clf.learner_.gaps_ <= 1e-3).all()


def test_one_large_row_does_not_stall_the_descent() -> None:
    X, y = clouds(100, 5, 2)
    X = np.concatenate([X, np.zeros((100, 1))], axis=1)
    X[0, 5] = 1e6
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        learner = Linear(loss="hinge", fit_intercept=False, calibrate=False, C=0.1).fit(
            sp.csr_matrix(X), Columns(codes.build("identity", n_classes=2), y)
        )
    rival = LinearSVC(loss="hinge", fit_intercept=False, C=0.1, tol=1e-8, max_iter=1_000_000).fit(X, y)

    def objective(w: np.ndarray) -> float:
        return float(0.5 * w @ w + 0.1 * np.maximum(0, 1 - (2 * y - 1) * (X @ w)).sum())

    assert objective(learner.coef(0)[0]) <= 1.001 * objective(rival.coef_[0])


def test_thresholds_of_sparse_weights() -> None:
    X, y = clouds()
    columns = Columns(codes.build("ova", n_classes=5), y)
    learner = Linear().fit(X, columns)
    dense = learner.weights_.copy()
    for threshold in (0.1, 0.4, 0.2):
        learner.sparsify(threshold)
    np.testing.assert_array_equal(learner.weights_.toarray(), np.where(abs(dense) > 0.4, dense, 0))
    with pytest.raises(ValueError, match=r"threshold must be a number of at least 0; got '0\.1'"):
        learner.sparsify("0.1")
    with pytest.raises(NotFittedError):
        Linear().sparsify()
    with pytest.raises(NotFittedError):
        Linear().prepare(X)


def test_the_state_of_a_warm_start_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = clouds()
    monkeypatch.setattr("nary._check.physical_memory", lambda: 10_000)
    with pytest.raises(ValueError, match=r"the state of a warm start .* Set warm_start=False"):
        Linear(loss="hinge", warm_start=True).fit(X, Columns(codes.build("ova", n_classes=5), y))


def test_one_vs_one_is_calibrated_at_the_cost_of_its_own_rows() -> None:
    X, y = clouds(1200, 8, 60)
    clf = NaryClassifier(Linear(), code="ovo", decoder="loglikelihood").fit(X, y)
    assert clf.learner_.temperatures_.shape == (1770,)
    assert (clf.learner_.temperatures_ > 0).all()
    assert np.isfinite(clf.predict_log_proba(X)).all()


def test_sparse_rows_that_are_full_are_fitted_as_dense_ones() -> None:
    X, y = clouds(400, 8, 3)
    columns = Columns(codes.build("identity", n_classes=3), y)
    dense, full = (Linear(C=100, calibrate=False).fit(form(X), columns) for form in (np.asarray, sp.csr_matrix))
    assert full.n_epochs_.max() < 30
    np.testing.assert_allclose(full.weights_, dense.weights_, atol=0.05 * abs(dense.weights_).max())


def test_class_weights_that_are_no_numbers() -> None:
    X, y = clouds()
    for wrong in ("heavy", None):
        with pytest.raises(TypeError, match="class_weight must give numbers to labels"):
            NaryClassifier(Linear(class_weight={0: wrong}), code="ova").fit(X, y)
    with pytest.raises(ValueError, match="max_epochs must be an integer from 1 to 2147483647"):
        Linear(max_epochs=10**30).check()
