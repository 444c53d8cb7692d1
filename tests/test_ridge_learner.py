"""The Ridge learner: scikit-learn's machines for every code, calibrated, under scikit-learn's contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn import linear_model
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

from nary import CodeMatrix, NaryClassifier, codes
from nary.columns import Columns
from nary.learners import Ridge


def learnt(X: Any, y: NDArray[np.int32], code: CodeMatrix, **options: Any) -> Ridge:
    return Ridge(**options).fit(X, Columns(code, y))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("design", ["ova", "ovo", "identity", "random"])
def test_the_learner_has_scikit_learns_machines(form: Callable[[Any], Any], design: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 6)), rng.integers(0, 6, 90).astype(np.int32)
    code = codes.build(design, n_classes=6, random_state=0)
    learner = learnt(form(X), y, code, alpha=0.3)
    table = learner.machines_.sides(0, learner.machines_.n_machines).table(6)
    for machine, sides in enumerate(table[y].T):
        used = sides != 0
        rival = linear_model.Ridge(alpha=0.3).fit(X[used], sides[used])
        np.testing.assert_allclose(learner.weights_[:, machine], rival.coef_, atol=1e-8)
        assert learner.intercepts_[machine] == pytest.approx(rival.intercept_, abs=1e-8)


def test_ridge_decides_as_scikit_learns_classifier_does_and_is_calibrated() -> None:
    X, y = load_digits(return_X_y=True)
    rival = RidgeClassifier().fit(X[:1000], y[:1000])
    clf = NaryClassifier(Ridge(), code="identity", decoder="loglikelihood").fit(X[:1000], y[:1000])
    assert (clf.predict(X[1000:]) == rival.predict(X[1000:])).mean() > 0.999
    plain = NaryClassifier(Ridge(calibrate=False), code="identity", decoder="hamming").fit(X[:1000], y[:1000])
    assert (plain.predict(X[1000:]) == rival.predict(X[1000:])).mean() > 0.999
    scores = rival.decision_function(X[1000:])
    loss = log_loss(y[1000:], clf.predict_proba(X[1000:]))
    assert loss < log_loss(y[1000:], softmax(scores, axis=1)) - 0.5
    assert np.isfinite(clf.learner_.temperatures_).all()


def test_ridge_refuses_what_it_cannot_do() -> None:
    X, y = np.eye(6), np.arange(6, dtype=np.int32) % 3
    code = codes.build("identity", n_classes=3)
    with pytest.raises(ValueError, match="alpha must lie strictly between 0 and inf"):
        learnt(X, y, code, alpha=0)
    with pytest.raises(ValueError, match="balanced_symbols' would need a factorisation for every machine"):
        learnt(X, y, code, class_weight="balanced_symbols")
    with pytest.raises(ValueError, match="X must hold numbers of at most"):
        learnt(1e200 * X, y, code)


@parametrize_with_checks([NaryClassifier(Ridge(), code="identity")])
def test_ridge_keeps_scikit_learns_contract(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
