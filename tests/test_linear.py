"""Linear against LIBLINEAR and LIBSVM through scikit-learn, and against itself in other forms, blocks and threads."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import compute_sample_weight
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import _ovr_decision_function

from nary import CodeMatrix, NaryClassifier, _kernels, codes
from nary.columns import Columns
from nary.learners import Linear

DIGITS, DIGIT = map(np.ascontiguousarray, load_digits(return_X_y=True))
TOL = 1e-8
LOSSES = ["squared_hinge", "hinge", "logistic"]
FORMS = {"dense": np.ascontiguousarray, "csr": sp.csr_array}
MANY = 100_000  # epochs: no limit


def draw(seed: int, n: int, d: int, K: int, zeros: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping clouds of K classes in turn, every class with rows if n >= K."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % K)
    X = rng.normal(size=(n, d)) + 0.7 * rng.normal(size=(K, d))[y]
    X[rng.random((n, d)) < zeros] = 0
    return X, y


def learnt(X: Any, y: np.ndarray, code: CodeMatrix | None = None, *, weights: Any = None, **options: Any) -> Linear:
    """Linear on the columns of a code, by default on the one whose symbols are the classes; to the last digit."""
    code = code or codes.build("identity", n_classes=int(y.max()) + 1)
    n_jobs = options.pop("n_jobs", None)
    learner = Linear(**({"tol": TOL, "max_epochs": MANY, "calibrate": False} | options))
    columns = Columns(code, y.astype(np.int32), np.arange(code.n_classes))
    return learner.fit(X, columns, sample_weight=weights, seed=0, n_jobs=n_jobs)


class Machine(NamedTuple):
    """A weight vector, its intercept, and the sides of the rows that it was to tell apart: +1, -1 or 0."""

    w: np.ndarray
    b: float
    sides: np.ndarray
    gap: float


def machines(learner: Linear, code: CodeMatrix, y: np.ndarray) -> Iterator[Machine]:
    """All machines of a fitted learner in the order of the columns, the sides worked out afresh from the code."""
    gaps = iter(learner.gaps_)
    for s in range(code.n_columns):
        symbols = code.symbols[y, s]
        of_column = list(sides_of(symbols, int(code.alphabet[s]), learner.strategy))
        coef, intercept = np.asarray(learner.coef(s), float), np.asarray(learner.intercept(s), float)
        assert coef.shape[0] == intercept.shape[0] == len(of_column)
        for w, b, sides in zip(coef, intercept, of_column, strict=True):
            yield Machine(w, float(b), sides, float(next(gaps)))
    assert next(gaps, None) is None


def sides_of(symbols: np.ndarray, N: int, strategy: str) -> Iterator[np.ndarray]:
    if strategy == "ovo":
        for a, b in combinations(range(N), 2):
            yield (symbols == b) * 1.0 - (symbols == a)
    else:
        for symbol in [1] if N == 2 else range(N):
            yield np.where(symbols == symbol, 1.0, -1.0) * (symbols >= 0)


class Solution(NamedTuple):
    """A rival's weight vector, its intercept, the least objective, and whether no other intercept gives it."""

    w: np.ndarray
    b: float
    least: float
    single: bool = True


def dense(given: Any) -> np.ndarray:
    return np.asarray(given.toarray() if sp.issparse(given) else given)


class Task(NamedTuple):
    """What a machine minimises: 1/2 |w|^2 + 1/2 (b / scaling)^2 + C sum_i weight_i loss(side_i (w x_i + b))."""

    loss: str
    C: float = 1.0
    intercept: bool = True
    scaling: float = 1.0

    @property
    def options(self) -> dict[str, Any]:
        """The same task as parameters of Linear."""
        return {"loss": self.loss, "C": self.C, "fit_intercept": self.intercept, "intercept_scaling": self.scaling}

    def objective(self, X: Any, sides: np.ndarray, w: np.ndarray, b: float, weights: Any = None) -> float:
        margins = sides * (X @ w + b)
        if self.loss == "logistic":
            losses = np.logaddexp(0, -margins)
        else:
            losses = np.maximum(0, 1 - margins) ** (2 if self.loss == "squared_hinge" else 1)
        losses = losses * (sides != 0) * (1.0 if weights is None else weights)
        return float(w @ w / 2 + (b / self.scaling) ** 2 / 2 + self.C * losses.sum())

    def solved(self, X: Any, sides: np.ndarray, weights: Any = None) -> Solution:
        """What LIBLINEAR or LIBSVM finds; Newton for the one task that neither of them takes."""
        rows = np.flatnonzero(sides)
        X, sides, weights = X[rows], sides[rows], None if weights is None else np.asarray(weights)[rows]
        if np.isinf(self.scaling) and self.loss == "squared_hinge":
            w, b = self._minimised(X, sides, np.ones(rows.size) if weights is None else weights)
            return Solution(w, b, self.objective(X, sides, w, b, weights))
        fitted = self._rival().fit(X, sides, sample_weight=weights)
        w = dense(fitted.coef_)[0]
        b = float(np.ravel(fitted.intercept_)[0]) if self.intercept else 0.0
        if not isinstance(fitted, SVC):
            return Solution(w, b, self.objective(X, sides, w, b, weights))
        variables = np.abs(dense(fitted.dual_coef_)[0])  # in single precision LIBSVM's b may miss the least objective
        upper = self.C * (np.ones(rows.size) if weights is None else weights)[fitted.support_]
        return Solution(w, b, float(variables.sum() - w @ w / 2), bool((variables < 0.999 * upper).any()))

    def _rival(self) -> Any:
        if np.isinf(self.scaling):
            free: Any = SVC(kernel="linear", C=self.C, tol=1e-4)
            return free if self.loss == "hinge" else LogisticRegression(C=self.C, solver="newton-cholesky", tol=1e-10)
        same = {"C": self.C, "fit_intercept": self.intercept, "intercept_scaling": self.scaling}
        if self.loss == "logistic":
            return LogisticRegression(solver="liblinear", tol=1e-10, max_iter=MANY, **same)
        if self.loss == "hinge":
            return LinearSVC(loss="hinge", tol=1e-11, max_iter=10 * MANY, random_state=0, **same)
        return LinearSVC(dual=self.C > 1000, tol=1e-10, max_iter=10 * MANY, random_state=0, **same)

    def _minimised(self, X: Any, sides: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Newton's method on a function of quadratic pieces: it ends in the right piece, and there at once."""
        Z, penalty = np.column_stack([dense(X), np.ones(sides.size)]), np.diag(np.append(np.ones(X.shape[1]), 0.0))
        v = np.zeros(Z.shape[1])
        for _ in range(500):
            lacking = np.maximum(0, 1 - sides * (Z @ v))
            slope = penalty @ v - 2 * self.C * Z.T @ (weights * sides * lacking)
            if np.linalg.norm(slope) < 1e-9 * (1 + self.C):
                break
            its = Z[lacking > 0]
            step = np.linalg.lstsq(penalty + 2 * self.C * (its.T * weights[lacking > 0]) @ its, slope, rcond=None)[0]
            t, here = 1.0, self._at(X, sides, v, weights)
            while t > 1e-12 and self._at(X, sides, v - t * step, weights) > here - 1e-4 * t * slope @ step:
                t /= 2
            v = v - t * step
        return v[:-1], float(v[-1])

    def _at(self, X: Any, sides: np.ndarray, v: np.ndarray, weights: np.ndarray) -> float:
        return self.objective(X, sides, v[:-1], v[-1], weights)


def assert_optimal(task: Task, X: Any, machine: Machine, weights: Any = None, tol: float = TOL) -> None:
    """The machine's objective is the rival's to `tol`, and so are its weights and decision values.

    The objective is strongly convex in (w, b / scaling): whoever is within eps of its minimum has weights within
    sqrt(2 eps) of the best.
    """
    w, b, least, single = task.solved(X, machine.sides, weights)
    ours = task.objective(X, machine.sides, machine.w, machine.b, weights)
    slack = 1e-6  # the rival's own
    assert ours - least <= (tol + slack) * ours
    assert least - ours <= slack * ours  # else it is no oracle
    assert machine.gap <= tol
    if not task.intercept:
        assert machine.b == 0
    radius = np.sqrt(2 * (tol + slack) * ours)
    assert np.linalg.norm(machine.w - w) <= radius
    apart = X @ (machine.w - w) + (machine.b - b)
    if np.isfinite(task.scaling):
        assert abs(machine.b - b) <= radius * task.scaling
        lengths = np.sqrt(np.asarray((X * X).sum(axis=1)).ravel() + task.scaling**2)
        assert (np.abs(apart) <= radius * lengths).all()
    elif single:
        np.testing.assert_allclose(apart, 0, atol=3e-2)


def assert_all_optimal(task: Task, X: Any, y: np.ndarray, code: CodeMatrix, learner: Linear, **others: Any) -> None:
    for machine in machines(learner, code, y):
        assert_optimal(task, X, machine, **others)


def scores_of(learner: Linear, X: Any, s: int) -> np.ndarray:
    """Decision values of column s, in double precision from its weights."""
    return np.asarray(X @ np.asarray(learner.coef(s), float).T + np.asarray(learner.intercept(s), float))


# --- LIBLINEAR and LIBSVM ------------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(
    st.builds(
        Task, st.sampled_from(LOSSES), st.sampled_from([0.01, 0.3, 1.0, 4.0]), st.booleans(),
        st.sampled_from([0.3, 1.0, 3.0]),
    ),
    st.integers(2, 5), st.integers(10, 200), st.integers(1, 70), st.sampled_from(list(FORMS)), st.integers(0, 10**6),
)  # fmt: skip
def test_machines_are_those_of_liblinear(task: Task, K: int, n: int, d: int, form: str, seed: int) -> None:
    X, y = draw(seed, n, d, K, zeros=0.5 if form == "csr" else 0.0)
    X = FORMS[form](X)
    code = codes.build("identity", n_classes=K)
    assert_all_optimal(task, X, y, code, learnt(X, y, code, tol=1e-7, **task.options), tol=1e-7)


@settings(max_examples=40)
@given(
    st.builds(Task, st.sampled_from(LOSSES), st.sampled_from([0.05, 1.0, 5.0]), st.just(True), st.just(np.inf)),
    st.integers(2, 4), st.integers(20, 120), st.integers(1, 40), st.sampled_from(list(FORMS)), st.integers(0, 10**6),
)  # fmt: skip
def test_machines_of_a_free_intercept_are_those_of_libsvm(
    task: Task, K: int, n: int, d: int, form: str, seed: int
) -> None:
    X, y = draw(seed, n, d, K, zeros=0.3 if form == "csr" else 0.0)
    X = FORMS[form](X)
    code = codes.build("identity", n_classes=K)
    assert_all_optimal(task, X, y, code, learnt(X, y, code, tol=1e-6, **task.options), tol=1e-6)


@pytest.mark.parametrize("d", [15, 16, 17, 31, 32, 33, 63, 64, 65])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_of_features_around_every_vector(level: str, d: int, form: str, dtype: Any) -> None:
    X, y = draw(d, 60, d, 3)
    X = FORMS[form](X.astype(dtype))
    code = codes.build("identity", n_classes=3)
    for loss in LOSSES:
        tol = TOL if dtype == np.float64 else 1e-4
        learner = learnt(X, y, code, loss=loss, tol=tol)
        assert learner.weights_.dtype == dtype
        assert_all_optimal(Task(loss), X.astype(np.float64), y, code, learner, tol=2 * tol)


@pytest.mark.parametrize("K", [15, 16, 17, 31, 33, 63, 64, 65])
@pytest.mark.parametrize("form", FORMS)
def test_numbers_of_machines_around_every_block(level: str, K: int, form: str) -> None:
    X, y = draw(K, 2 * K, 6, K, zeros=0.3)
    X = FORMS[form](X)
    code = codes.build("identity", n_classes=K)
    learner = learnt(X, y, code)
    assert learner.weights_.shape == (6, K)
    assert learner.intercepts_.shape == learner.gaps_.shape == learner.n_epochs_.shape == (K,)
    assert_all_optimal(Task("squared_hinge"), X, y, code, learner)


@pytest.mark.parametrize("L", [1, 15, 16, 17, 63, 64, 65])
@pytest.mark.parametrize("loss", LOSSES)
def test_numbers_of_columns_around_every_block(L: int, loss: str) -> None:
    X, y = draw(L, 64, 5, 8)
    drawn = codes.Random(5)
    code = codes.build(
        "identity" if L == 1 else drawn, n_classes=8, n_symbols=8 if L == 1 else 2, n_columns=L, random_state=0
    )
    assert_all_optimal(Task(loss), X, y, code, learnt(X, y, code, loss=loss))


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("C", [0.05, 1.0, 7.0, 100.0])
@pytest.mark.parametrize("scaling", [1.0, np.inf])
def test_smooth_losses_of_hardly_more_rows_than_features(loss: str, C: float, scaling: float) -> None:
    """Where a Newton step from nothing may lead far beyond the optimum."""
    task, code = Task(loss, C, scaling=scaling), codes.build("identity", n_classes=3)
    for d, n in ((10, 11), (28, 41), (31, 60), (50, 130)):
        X, y = draw(d, n, d, 3)
        tol = 1e-6 if C < 100 else 1e-4
        assert_all_optimal(task, X, y, code, learnt(X, y, code, tol=tol, **task.options), tol=tol)


@pytest.mark.parametrize("form", FORMS)
def test_columns_of_different_alphabets_lie_side_by_side(form: str) -> None:
    X, y = draw(0, 120, 9, 7, zeros=0.3)
    X = FORMS[form](X)
    symbols = np.stack([np.arange(7) % N for N in (2, 7, 3, 2, 5)], axis=1)
    symbols[4, 2], symbols[0, 3], symbols[6, 4] = -1, -1, -1
    code = CodeMatrix(symbols, [2, 7, 3, 2, 5])
    for strategy, n_machines in (("ovr", 1 + 7 + 3 + 1 + 5), ("ovo", 1 + 21 + 3 + 1 + 10)):
        learner = learnt(X, y, code, strategy=strategy)
        assert learner.weights_.shape == (9, n_machines)
        assert_all_optimal(Task("squared_hinge"), X, y, code, learner)
        scores = learner.outputs(learner.prepare(X), "scores", 0, 5)
        assert scores.shape == (120, 5, 7)
        for s, N in enumerate(code.alphabet):
            assert np.isneginf(scores[:, s, N:]).all()
            assert np.isfinite(scores[:, s, :N]).all()


# --- Crammer and Singer --------------------------------------------------------------------------------------------


def joint_objective(X: Any, y: np.ndarray, W: np.ndarray, b: np.ndarray, task: Task, weights: Any = None) -> float:
    """1/2 sum_m |w_m|^2 + C sum_i weight_i max(0, max_m (1 - [m = y_i] + w_m x_i) - w_y x_i); b is a feature's."""
    scores = X @ W.T + b
    own = np.take_along_axis(scores, y[:, None], axis=1)
    losses = (scores + (np.arange(len(W)) != y[:, None]) - own).max(axis=1) * (1.0 if weights is None else weights)
    return float((W * W).sum() / 2 + ((b / task.scaling) ** 2).sum() / 2 + task.C * losses.sum())


def crammer_singer(X: Any, y: np.ndarray, task: Task, weights: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """W and b of LIBLINEAR; of two machines scikit-learn keeps the difference, which halves undo."""
    rival = LinearSVC(
        multi_class="crammer_singer", C=task.C, fit_intercept=task.intercept, intercept_scaling=task.scaling, tol=1e-9,
        max_iter=10 * MANY, random_state=0,
    ).fit(X, y, sample_weight=weights)  # fmt: skip
    W, b = rival.coef_, np.broadcast_to(rival.intercept_, (len(rival.coef_),))
    return (W, b) if len(W) > 1 else (np.vstack([-W, W]) / 2, np.array([-b[0], b[0]]) / 2)


def assert_joint_optimal(learner: Linear, X: Any, y: np.ndarray, s: int, task: Task, weights: Any = None) -> None:
    seen, y = np.unique(y, return_inverse=True)  # a symbol without rows is nobody's rival
    W, b = crammer_singer(X, y, task, weights)
    mine = np.asarray(learner.coef(s), float)[seen], np.asarray(learner.intercept(s), float)[seen]
    ours, theirs = joint_objective(X, y, *mine, task, weights), joint_objective(X, y, W, b, task, weights)
    assert ours - theirs <= (TOL + 1e-6) * ours
    assert theirs - ours <= 1e-5 * theirs
    radius = np.sqrt(2 * (TOL + 1e-5) * ours)
    lengths = np.sqrt(np.asarray((X * X).sum(axis=1)).ravel() + task.scaling**2)
    assert (np.linalg.norm(X @ (mine[0] - W).T + (mine[1] - b), axis=1) <= radius * lengths).all()


@settings(max_examples=40)
@given(
    st.builds(
        Task, st.just("crammer_singer"), st.sampled_from([0.01, 0.3, 2.0]), st.booleans(), st.sampled_from([1.0, 3.0])
    ),
    st.integers(2, 5), st.integers(10, 150), st.integers(1, 70), st.sampled_from(list(FORMS)), st.integers(0, 10**6),
)  # fmt: skip
def test_crammer_singer_is_that_of_liblinear(task: Task, K: int, n: int, d: int, form: str, seed: int) -> None:
    X, y = draw(seed, n, d, K, zeros=0.5 if form == "csr" else 0.0)
    X = FORMS[form](X)
    options = task.options | {"loss": "hinge", "strategy": "crammer_singer"}
    learner = learnt(X, y, **options)
    assert learner.weights_.shape == (d, K)
    assert (learner.gaps_ <= TOL).all()
    assert_joint_optimal(learner, X, y, 0, task)


@pytest.mark.parametrize("form", FORMS)
def test_crammer_singer_with_a_free_intercept_is_no_worse_than_with_a_cheap_one(form: str) -> None:
    for seed, K in enumerate((2, 3, 5)):
        X, y = draw(seed, 60, 4, K)
        X = FORMS[form](X + 3)
        free, cheap = (Task("crammer_singer", 0.3, scaling=scaling) for scaling in (np.inf, 30.0))
        learner = learnt(X, y, strategy="crammer_singer", C=0.3, intercept_scaling=np.inf, tol=1e-6)
        ours = joint_objective(X, y, learner.coef(0), learner.intercept(0), free)
        assert ours <= joint_objective(X, y, *crammer_singer(X, y, cheap), free) * (1 + 2e-6)


@pytest.mark.parametrize("form", FORMS)
def test_crammer_singer_of_many_columns(level: str, form: str) -> None:
    X, y = draw(0, 80, 7, 9, zeros=0.2)
    X = FORMS[form](X)
    rng = np.random.default_rng(0)
    code = CodeMatrix(np.stack([rng.permutation(9) % 3 for _ in range(23)], axis=1))
    task = Task("crammer_singer", 0.1)
    learner = learnt(X, y, code, strategy="crammer_singer", C=task.C)
    said = learner.outputs(learner.prepare(X), "symbols", 0, 23)
    for s in range(23):
        assert_joint_optimal(learner, X, code.symbols[y, s].astype(int), s, task)
        scores = scores_of(learner, X, s)  # of which two may be as good as equal: that is where its losses bend
        assert (scores[np.arange(80), said[:, s]] > scores.max(axis=1) - 1e-5).all()


def test_a_symbol_without_rows_is_nobodys_rival() -> None:
    X, y = draw(2, 80, 7, 4)
    code = CodeMatrix(np.array([[0, 0], [2, 1], [4, 2], [4, 3]]), [5, 4])
    learner = learnt(X, y, code, strategy="crammer_singer", C=0.1)
    assert_joint_optimal(learner, X, code.symbols[y, 0].astype(int), 0, Task("crammer_singer", 0.1))
    said = learner.outputs(learner.prepare(X), "scores", 0, 1)[:, 0]
    assert np.isneginf(said[:, [1, 3]]).all()


def test_crammer_singer_leaves_out_unused_rows_and_weighs_the_others() -> None:
    X, y = draw(1, 90, 5, 6)
    symbols = np.stack([np.arange(6) % 3, [0, 1, -1, 2, 2, 0], np.arange(6)], axis=1)
    weights = np.random.default_rng(0).integers(1, 4, 90).astype(float)
    learner = learnt(X, y, CodeMatrix(symbols, [3, 3, 6]), strategy="crammer_singer", weights=weights)
    for s in range(3):
        used = np.flatnonzero(symbols[y, s] >= 0)
        assert_joint_optimal(learner, X[used], symbols[y[used], s], s, Task("crammer_singer"), weights[used])


# --- One against one -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [3, 6, 12])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
def test_pairs_within_a_column_are_fitted_on_their_own_rows(K: int, loss: str, form: str) -> None:
    X, y = draw(K, 10 * K, 8, K, zeros=0.2)
    X = FORMS[form](X)
    code = codes.build("identity", n_classes=K)
    learner = learnt(X, y, code, strategy="ovo", loss=loss)
    assert learner.weights_.shape == (8, K * (K - 1) // 2)
    assert_all_optimal(Task(loss), X, y, code, learner)


@pytest.mark.parametrize("K", [2, 3, 7])
def test_votes_and_confidences_are_those_of_scikit_learn(K: int) -> None:
    X, y = draw(K, 150, 6, K)
    unseen, _ = draw(K + 100, 300, 6, K)
    learner = learnt(X, y, strategy="ovo")
    decisions, ready = scores_of(learner, unseen, 0), learner.prepare(unseen)
    scores = learner.outputs(ready, "scores", 0, 1)[:, 0]
    if K > 2:
        expected = _ovr_decision_function(decisions > 0, decisions, K)
        rival = OneVsOneClassifier(LinearSVC(dual=False, tol=1e-10)).fit(X, y)
    else:
        expected, rival = decisions * [[-1, 1]], LinearSVC(dual=False, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    clear = np.abs(decisions).min(axis=1) > 1e-3
    said = learner.outputs(ready, "symbols", 0, 1)[:, 0]
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(said[clear], rival.predict(unseen)[clear])
    np.testing.assert_array_equal(said, scores.argmax(axis=1))


def test_one_against_one_with_a_free_intercept_is_libsvm() -> None:
    X, y = draw(3, 200, 4, 5)
    unseen, _ = draw(103, 300, 4, 5)
    learner = learnt(X, y, strategy="ovo", loss="hinge", intercept_scaling=np.inf)
    rival = SVC(kernel="linear", tol=1e-6, decision_function_shape="ovo").fit(X, y)
    decisions = scores_of(learner, unseen, 0)
    np.testing.assert_allclose(decisions, -rival.decision_function(unseen), atol=2e-2)
    votes = _ovr_decision_function(decisions > 0, np.zeros_like(decisions), 5)
    single = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) == 1  # LIBSVM gives ties to the first
    clear = single & (np.abs(decisions).min(axis=1) > 2e-2)
    said = learner.outputs(learner.prepare(unseen), "symbols", 0, 1)[:, 0]
    assert clear.mean() > 0.8
    np.testing.assert_array_equal(said[clear], rival.predict(unseen)[clear])


def test_a_one_against_one_code_skips_unused_rows() -> None:
    X, y = draw(5, 140, 10, 7)
    code = codes.build("ovo", n_classes=7)
    learner = learnt(X, y, code)
    assert learner.weights_.shape == (10, 21)
    assert_all_optimal(Task("squared_hinge"), X, y, code, learner)
    pairs = learnt(X, y, strategy="ovo")
    np.testing.assert_allclose(learner.weights_, pairs.weights_, atol=1e-3)


# --- The same machines in every form of X --------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("strategy", ["ovr", "ovo", "crammer_singer"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_csr_and_dense_rows_make_the_same_machines(loss: str, strategy: str, dtype: Any) -> None:
    X, y = draw(4, 90, 20, 6, zeros=0.7)
    X = X.astype(dtype)
    code = codes.build(codes.Random(5), n_classes=6, n_symbols=3, n_columns=9, random_state=0)
    tol = TOL if dtype == np.float64 else 1e-4
    dense, sparse = (learnt(form(X), y, code, loss=loss, strategy=strategy, tol=tol) for form in FORMS.values())
    near = {"atol": 2e-3 if dtype == np.float64 else 2e-2, "rtol": 0}  # each is within `tol` of the best
    np.testing.assert_allclose(sparse.weights_, dense.weights_, **near)
    np.testing.assert_allclose(sparse.intercepts_, dense.intercepts_, **near)
    np.testing.assert_allclose(
        sparse.outputs(sparse.prepare(sp.csr_array(X)), "scores", 0, 9),
        sparse.outputs(sparse.prepare(X), "scores", 0, 9),
        rtol=1e-4, atol=1e-4,
    )  # fmt: skip


def odd_forms(X: np.ndarray) -> dict[str, sp.csr_array]:
    """CSR matrices that all mean X."""
    plain = sp.csr_array(X)
    rows, features, values = sp.find(plain)
    rng = np.random.default_rng(0)
    wide = plain.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    order = np.lexsort((rng.random(rows.size), rows))
    unsorted = sp.csr_array((values[order], features[order], plain.indptr), shape=X.shape)
    twice = np.lexsort((rng.random(2 * rows.size), np.tile(rows, 2)))
    repeated = sp.csr_array(
        (np.concatenate([values / 4, values * 3 / 4])[twice], np.tile(features, 2)[twice], 2 * plain.indptr),
        shape=X.shape,
    )
    n, d = X.shape
    zeros = sp.csr_array((X.ravel(), np.tile(np.arange(d), n), d * np.arange(n + 1)), shape=X.shape)
    return {"int64": wide, "unsorted": unsorted, "repeated": repeated, "explicit zeros": zeros}


@pytest.mark.parametrize("name", ["int64", "unsorted", "repeated", "explicit zeros"])
@pytest.mark.parametrize("strategy", ["ovr", "crammer_singer"])
def test_csr_rows_in_odd_forms(name: str, strategy: str) -> None:
    X, y = draw(6, 80, 17, 5, zeros=0.6)
    rows = odd_forms(X)[name]
    np.testing.assert_array_equal(rows.toarray(), X)
    before = [part.copy() for part in (rows.data, rows.indices, rows.indptr)]
    learner, expected = (learnt(form, y, strategy=strategy) for form in (rows, sp.csr_array(X)))
    np.testing.assert_allclose(learner.weights_, expected.weights_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        learner.outputs(learner.prepare(rows), "scores", 0, 1),
        expected.outputs(expected.prepare(X), "scores", 0, 1),
        rtol=1e-4, atol=1e-4,
    )  # fmt: skip
    for part, was in zip((rows.data, rows.indices, rows.indptr), before, strict=True):
        np.testing.assert_array_equal(part, was)


@pytest.mark.parametrize("index", [17, -1, 2**32 + 1])
def test_csr_indices_out_of_range_are_refused(index: int) -> None:
    X, y = draw(6, 40, 17, 3, zeros=0.6)
    broken = odd_forms(X)["int64"]
    broken.indices[3] = index
    with pytest.raises(ValueError, match=r"ind(ex|ices)|feature"):
        learnt(broken, y)


@pytest.mark.parametrize("form", FORMS)
def test_rows_may_be_of_another_precision_than_those_of_fit(form: str) -> None:
    X, y = draw(7, 100, 12, 4, zeros=0.4)
    X = X.astype(np.float32)
    for fitted_on, asked in ((np.float32, np.float64), (np.float64, np.float32)):
        clf = NaryClassifier(Linear(tol=1e-4), code="ova").fit(FORMS[form](X.astype(fitted_on)), y)
        same, other = (clf.decision_function(FORMS[form](X.astype(kind))) for kind in (fitted_on, asked))
        np.testing.assert_allclose(other, same, rtol=1e-3, atol=1e-3)


# --- Weights of rows and classes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("strategy", ["ovr", "ovo", "crammer_singer"])
@pytest.mark.parametrize("form", FORMS)
def test_a_weight_of_k_is_a_row_that_comes_k_times(loss: str, strategy: str, form: str) -> None:
    X, y = draw(8, 60, 7, 4, zeros=0.2)
    times = np.random.default_rng(0).integers(0, 4, 60)
    weighted = learnt(FORMS[form](X), y, weights=times.astype(float), loss=loss, strategy=strategy)
    repeated = learnt(FORMS[form](X.repeat(times, axis=0)), y.repeat(times), loss=loss, strategy=strategy)
    kept = learnt(FORMS[form](X[times > 0]), y[times > 0], weights=times[times > 0] * 1.0, loss=loss, strategy=strategy)
    for other in (repeated, kept):
        np.testing.assert_allclose(weighted.weights_, other.weights_, atol=2e-3)
        np.testing.assert_allclose(weighted.intercepts_, other.intercepts_, atol=2e-3)


@pytest.mark.parametrize("scaling", [1.0, np.inf])
@pytest.mark.parametrize("loss", LOSSES)
def test_weighted_machines_are_those_of_the_rivals(loss: str, scaling: float) -> None:
    X, y = draw(9, 120, 6, 3)
    weights = np.random.default_rng(1).random(120) * 3 + 0.01
    task, code = Task(loss, 0.7, scaling=scaling), codes.build("identity", n_classes=3)
    learner = learnt(X, y, code, weights=weights, **task.options)
    assert_all_optimal(task, X, y, code, learner, weights=weights)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 3.0, 2: 0.25}], ids=str)
@pytest.mark.parametrize("given", [False, True])
def test_class_weights_are_weights_of_their_rows(class_weight: Any, given: bool) -> None:
    X, y = draw(10, 130, 6, 4)
    few = (y != 1) | (np.arange(130) % 5 == 0)
    X, y = X[few], y[few]
    weights = np.random.default_rng(2).random(y.size) + 0.5 if given else None
    code = codes.build(codes.Random(5), n_classes=4, n_symbols=2, n_columns=4, random_state=0)
    learner = learnt(X, y, code, weights=weights, class_weight=class_weight)
    of_row = np.ones(y.size) if weights is None else weights
    totals = np.bincount(y, of_row)
    factors = of_row.sum() / (4 * totals) if class_weight == "balanced" else np.array([3, 1, 0.25, 1])
    if weights is None:
        np.testing.assert_allclose(factors[y], compute_sample_weight(class_weight, y))
    assert_all_optimal(Task("squared_hinge"), X, y, code, learner, weights=of_row * factors[y])


@pytest.mark.parametrize("strategy", ["ovr", "ovo"])
@pytest.mark.parametrize("given", [False, True])
def test_both_sides_of_each_machine_are_balanced(strategy: str, given: bool) -> None:
    X, y = draw(11, 150, 6, 6)
    X, y = X[y != 1], y[y != 1]  # a class without rows
    code = CodeMatrix(np.array([[0, 0, 1], [0, 1, 0], [1, 2, -1], [1, 0, 0], [1, 1, 0], [1, 2, 0]]), [2, 3, 2])
    of_row = np.random.default_rng(3).random(y.size) + 0.5 if given else np.ones(y.size)
    learner = learnt(X, y, code, strategy=strategy, class_weight="balanced_symbols", weights=of_row if given else None)
    for machine in machines(learner, code, y):
        weights = of_row.copy()
        for side in (1, -1):
            its = machine.sides == side
            weights[its] *= of_row[machine.sides != 0].sum() / (2 * of_row[its].sum())
        assert_optimal(Task("squared_hinge"), X, machine, weights)


def test_labels_of_weight_zero_take_no_part() -> None:
    X, y = draw(12, 90, 4, 3)
    for loss in LOSSES:
        left_out = learnt(X, y, loss=loss, class_weight={2: 0.0})
        never = learnt(X[y < 2], y[y < 2], codes.build("identity", n_classes=3), loss=loss)
        said, expected = (learner.outputs(learner.prepare(X), "symbols", 0, 1) for learner in (left_out, never))
        np.testing.assert_array_equal(said, expected)
        assert said.max() == 1
        np.testing.assert_allclose(left_out.coef(0)[:2], never.coef(0)[:2], atol=1e-3)


# --- Gaps and epochs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", [1.0, np.inf])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_gap_bounds_what_a_machine_lacks(loss: str, scaling: float, dtype: Any) -> None:
    X, y = draw(13, 160, 8, 4)
    X = X.astype(dtype)
    code, task = codes.build("identity", n_classes=4), Task(loss, 0.8, scaling=scaling)
    wide = X.astype(np.float64)
    best = [task.solved(wide, sides).least for sides in sides_of(y, 4, "ovr")]
    epochs = []
    for tol in (1e-1, 1e-2, 1e-3):
        learner = learnt(X, y, code, tol=tol, **task.options)
        rounding = 1e-9 if dtype == np.float64 else 1e-5
        assert ((-rounding <= learner.gaps_) & (learner.gaps_ <= tol)).all()
        epochs.append(int(learner.n_epochs_.sum()))
        for machine, optimum in zip(machines(learner, code, y), best, strict=True):
            reached = task.objective(wide, machine.sides, machine.w, machine.b)
            assert reached - optimum <= (machine.gap + 2 * rounding) * reached + 1e-7 * optimum
    assert epochs == sorted(epochs)


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-3])
def test_a_gap_bounds_what_crammer_singer_lacks(tol: float) -> None:
    X, y = draw(14, 160, 8, 4)
    task = Task("crammer_singer", 0.5)
    optimum = joint_objective(X, y, *crammer_singer(X, y, task), task)
    learner = learnt(X, y, strategy="crammer_singer", C=0.5, tol=tol)
    assert ((-1e-9 <= learner.gaps_) & (learner.gaps_ <= tol)).all()
    reached = joint_objective(X, y, learner.coef(0), learner.intercept(0), task)
    assert reached - optimum <= (learner.gaps_.max() + 1e-9) * reached + 1e-6 * optimum


@pytest.mark.parametrize("strategy", ["ovr", "ovo", "crammer_singer"])
@pytest.mark.parametrize("loss", LOSSES)
def test_columns_that_ran_out_of_epochs_are_named(strategy: str, loss: str) -> None:
    X, y = draw(15, 100, 5, 4)
    code = codes.build(codes.Random(5), n_classes=4, n_symbols=2, n_columns=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="column"):
        learner = learnt(X, y, code, strategy=strategy, loss=loss, tol=1e-12, max_epochs=1)
    assert (learner.n_epochs_ == 1).all()
    assert (learner.gaps_ > 1e-12).any()
    assert np.isfinite(learner.outputs(learner.prepare(X), "scores", 0, 3)).all()


def test_the_classifier_passes_the_warning_on() -> None:
    X, y = draw(15, 100, 5, 4)
    with pytest.warns(ConvergenceWarning, match="column"):
        NaryClassifier(Linear(max_epochs=1, tol=1e-12), code="ova").fit(X, y)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("strategy", ["ovr", "ovo", "crammer_singer"])
@pytest.mark.parametrize("form", FORMS)
def test_a_warm_start_takes_fewer_epochs(loss: str, strategy: str, form: str) -> None:
    X, y = draw(16, 120, 6, 5)
    X = FORMS[form](X)
    columns = Columns(codes.build("identity", n_classes=5), y.astype(np.int32))
    learner = Linear(warm_start=True, tol=1e-6, max_epochs=MANY, calibrate=False, loss=loss, strategy=strategy)
    learner.fit(X, columns)
    weights, epochs = learner.weights_.copy(), learner.n_epochs_.copy()
    learner.fit(X, columns)
    assert learner.n_epochs_.sum() < epochs.sum()
    np.testing.assert_allclose(learner.weights_, weights, atol=1e-2)
    assert (learner.gaps_ <= 1e-6).all()
    cold = clone(learner).fit(X, columns)
    np.testing.assert_array_equal(cold.weights_, weights)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_warm_start_takes_other_parameters_and_other_weights(loss: str) -> None:
    X, y = draw(17, 120, 6, 4)
    code = codes.build("identity", n_classes=4)
    columns = Columns(code, y.astype(np.int32))
    weights = np.random.default_rng(0).integers(1, 4, 120).astype(float)
    learner = Linear(warm_start=True, tol=TOL, max_epochs=MANY, calibrate=False, loss=loss, C=2.0).fit(X, columns)
    for C in (0.2, 5.0):  # dual variables beyond the new bounds, and within
        learner.set_params(C=C).fit(X, columns, sample_weight=weights)
        assert_all_optimal(Task(loss, C), X, y, code, learner, weights=weights)


def test_the_classifier_goes_on_from_its_last_fit() -> None:
    X, y = draw(16, 120, 6, 5)
    clf = NaryClassifier(Linear(warm_start=True, loss="hinge", tol=1e-6, max_epochs=MANY), code="ova")
    epochs = clf.fit(X, y).learner_.n_epochs_.sum()
    assert clf.fit(X, y).learner_.n_epochs_.sum() < epochs


@pytest.mark.parametrize("other", ["features", "columns", "rows"])
def test_a_warm_start_from_another_shape_finds_its_machines(other: str) -> None:
    X, y = draw(18, 60, 6, 4)
    learner = Linear(warm_start=True, loss="hinge")
    learner.fit(X, Columns(codes.build("ova", n_classes=4), y.astype(np.int32)))
    code = codes.build("ova" if other != "columns" else "ovo", n_classes=4)
    X, y = {"features": (X[:, :5].copy(), y), "columns": (X, y), "rows": (X[:50], y[:50])}[other]
    learner.fit(X, Columns(code, y.astype(np.int32)))
    cold = Linear(loss="hinge").fit(X, Columns(code, y.astype(np.int32)))
    assert (learner.gaps_ <= 1e-3).all()
    near = (
        2 * np.sqrt(4e-3) * np.linalg.norm(cold.weights_)
    )  # a strongly convex objective, twice within 1e-3 of the least
    assert np.linalg.norm(learner.weights_ - cold.weights_) <= near


# --- Same bits -----------------------------------------------------------------------------------------------------


def bits(learner: Linear) -> list[np.ndarray]:
    """All that a fit made."""
    made = [learner.weights_, learner.intercepts_, learner.gaps_, learner.n_epochs_]
    return [np.asarray(part) for part in (*made, getattr(learner, "temperatures_", np.zeros(0)))]


SETUPS: list[dict[str, Any]] = [
    {}, {"loss": "hinge", "class_weight": "balanced"}, {"loss": "logistic"}, {"strategy": "ovo", "calibrate": True},
    {"strategy": "crammer_singer", "C": 0.1}, {"loss": "hinge", "intercept_scaling": np.inf}, {"calibrate": True},
    {"loss": "logistic", "intercept_scaling": np.inf, "class_weight": "balanced_symbols"},
]  # fmt: skip


@pytest.mark.parametrize("setup", SETUPS, ids=str)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_threads_and_levels_do_not_matter(setup: dict[str, Any], form: str, dtype: Any) -> None:
    X, y = draw(19, 100, 21, 9, zeros=0.4)
    X = FORMS[form](X.astype(dtype))
    code = codes.build(codes.Random(5), n_classes=9, n_symbols=3, n_columns=44, random_state=0)
    options = {"tol": 1e-3} | setup
    expected = learnt(X, y, code, n_jobs=1, **options)
    said = expected.outputs(expected.prepare(X), "scores", 0, 44)
    before = _kernels.level()
    for name in _kernels.levels():
        _kernels.use_level(name)
        for n_jobs in (1, 2, 3):
            learner = learnt(X, y, code, n_jobs=n_jobs, **options)
            for ours, theirs in zip(bits(learner), bits(expected), strict=True):
                np.testing.assert_array_equal(ours, theirs)
            ready = learner.prepare(X, n_jobs=n_jobs)
            np.testing.assert_array_equal(learner.outputs(ready, "scores", 0, 44, n_jobs=n_jobs), said)
            np.testing.assert_array_equal(learner.outputs(ready, "scores", 17, 41, n_jobs=n_jobs), said[:, 17:41])
    _kernels.use_level(before)
    np.testing.assert_array_equal(expected.outputs(expected.prepare(X[40:57]), "scores", 0, 44), said[40:57])


@pytest.mark.parametrize("setup", SETUPS, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_a_column_is_what_it_is_among_any_others(setup: dict[str, Any], form: str) -> None:
    X, y = draw(20, 110, 9, 8, zeros=0.4)
    X = FORMS[form](X)
    code = codes.build(codes.Random(5), n_classes=8, n_symbols=3, n_columns=40, random_state=0)
    together = learnt(X, y, code, tol=1e-4, **setup)
    for s in (0, 1, 21, 39):
        # A code needs distinct rows: the column has one other for company.
        few = CodeMatrix(np.stack([np.arange(8), code.symbols[:, s]], axis=1), [8, 3])
        alone = learnt(X, y, few, tol=1e-4, **setup)
        np.testing.assert_array_equal(alone.coef(1), together.coef(s))
        np.testing.assert_array_equal(alone.intercept(1), together.intercept(s))


def test_machines_do_not_depend_on_calibration() -> None:
    X, y = draw(21, 100, 9, 5)
    for loss in LOSSES:
        plain, calibrated = (learnt(X, y, loss=loss, calibrate=calibrate) for calibrate in (False, True))
        np.testing.assert_allclose(calibrated.weights_, plain.weights_, atol=1e-3)


# --- What columns say ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["ovr", "ovo", "crammer_singer"])
@pytest.mark.parametrize("form", FORMS)
def test_outputs_are_read_off_the_weights(level: str, strategy: str, form: str) -> None:
    X, y = draw(22, 130, 18, 6, zeros=0.3)
    code = CodeMatrix(np.stack([np.arange(6) % 2, np.arange(6) % 3, np.arange(6)], axis=1), [2, 3, 6])
    learner = learnt(FORMS[form](X), y, code, strategy=strategy, calibrate=True, tol=1e-3)
    ready = learner.prepare(FORMS[form](X))
    scores, symbols, logs = (learner.outputs(ready, what, 0, 3) for what in ("scores", "symbols", "log_probabilities"))
    assert symbols.dtype == np.int16
    for s, N in enumerate([2, 3, 6]):
        expected = scores_of(learner, X, s)
        if N == 2 and strategy != "crammer_singer":
            expected = expected * [[-1, 1]]
        elif strategy == "ovo":
            expected = _ovr_decision_function(expected > 0, expected, N)
        np.testing.assert_allclose(scores[:, s, :N], expected, rtol=1e-4, atol=1e-5)
        assert np.isneginf(scores[:, s, N:]).all()
        assert np.isneginf(logs[:, s, N:]).all()
        np.testing.assert_allclose(np.exp(logs[:, s].astype(float)).sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(symbols, scores.argmax(axis=2))
    np.testing.assert_array_equal(symbols, logs.argmax(axis=2))


@pytest.mark.parametrize("code", ["ova", "ovo", "random", "identity"])
@pytest.mark.parametrize("decoder", ["hamming", "loglikelihood", "auto"])
@pytest.mark.parametrize("form", FORMS)
def test_the_classifier_decodes_linear_columns(code: str, decoder: str, form: str) -> None:
    X, y = FORMS[form](DIGITS / 16), np.array(list("abcdefghij"))[DIGIT]
    clf = NaryClassifier(Linear(), code=code, decoder=decoder, random_state=0, n_jobs=2).fit(X[:500], y[:500])
    chances = clf.predict_proba(X[500:800])
    said = clf.predict(X[500:800])
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_array_equal(clf.classes_[chances.argmax(axis=1)], said)
    np.testing.assert_array_equal(clf.classes_[clf.decision_function(X[500:800]).argmax(axis=1)], said)
    assert (said == y[500:800]).mean() > (0.75 if code in ("ova", "random") else 0.85)


def test_weight_vectors_become_sparse_and_dense_again() -> None:
    X, y = draw(23, 60, 300, 5, zeros=0.97)
    X = sp.csr_array(X)
    code = codes.build(codes.Random(5), n_classes=5, n_symbols=3, n_columns=8, random_state=0)
    learner = learnt(X, y, code, calibrate=True)
    ready, weights, coef = learner.prepare(X), learner.weights_.copy(), np.asarray(learner.coef(3))
    expected = {what: learner.outputs(ready, what, 0, 8) for what in learner.says}
    learner.sparsify()
    assert sp.issparse(learner.weights_)
    assert learner.weights_.format == "csr"
    assert learner.weights_.nnz == np.count_nonzero(weights)
    np.testing.assert_array_equal(learner.weights_.toarray(), weights)
    its = learner.coef(3)
    np.testing.assert_array_equal(dense(its), coef)
    for form in (X, X.toarray()):
        for what, said in expected.items():
            np.testing.assert_allclose(learner.outputs(learner.prepare(form), what, 0, 8), said, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(
                learner.outputs(learner.prepare(form), what, 3, 6), said[:, 3:6], rtol=1e-4, atol=1e-5
            )
    copy = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(copy.outputs(ready, "symbols", 0, 8), expected["symbols"])
    learner.densify()
    np.testing.assert_array_equal(learner.weights_, weights)
    np.testing.assert_array_equal(learner.outputs(learner.prepare(X), "scores", 0, 8), expected["scores"])


def test_a_classifier_of_sparse_weights_predicts_the_same() -> None:
    X, y = draw(24, 80, 200, 6, zeros=0.95)
    clf = NaryClassifier(Linear(), code="ova").fit(sp.csr_array(X), y)
    chances = clf.predict_proba(sp.csr_array(X))
    clf.learner_.sparsify()
    np.testing.assert_allclose(clf.predict_proba(sp.csr_array(X)), chances, rtol=1e-3, atol=1e-5)


# --- Calibration ---------------------------------------------------------------------------------------------------


def noisy(seed: int, n: int, d: int, K: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Classes by a linear rule; of a share of the rows the label is drawn anew."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X @ np.random.default_rng(99).normal(size=(d, K))).argmax(axis=1)
    return X, np.where(rng.random(n) < share, rng.integers(0, K, n), y)


@pytest.mark.parametrize("strategy", ["ovr", "ovo", "crammer_singer"])
@pytest.mark.parametrize("loss", LOSSES)
def test_temperatures_mend_overconfidence(strategy: str, loss: str) -> None:
    X, y = noisy(0, 240, 40, 6, 0.5)
    unseen, its = noisy(1, 2000, 40, 6, 0.5)
    code = CodeMatrix(np.stack([np.arange(6) % 2, np.arange(6) % 3, np.arange(6) // 3], axis=1))
    C = 100.0 if loss == "logistic" and strategy != "crammer_singer" else 2.0
    learner = learnt(X, y, code, C=C, tol=1e-3, calibrate=True, loss=loss, strategy=strategy)
    assert learner.temperatures_.shape == (3,)
    assert (np.isfinite(learner.temperatures_) & (learner.temperatures_ > 0)).all()
    ready, symbols = learner.prepare(unseen), code.symbols[its].astype(int)
    scores = learner.outputs(ready, "scores", 0, 3).astype(float)
    logs = learner.outputs(ready, "log_probabilities", 0, 3)
    calibrated = log_softmax(scores / learner.temperatures_[:, None], axis=2)
    np.testing.assert_allclose(logs, calibrated, rtol=1e-4, atol=1e-4)
    assert (log_loss(calibrated, symbols) < log_loss(log_softmax(scores, axis=2), symbols)).all()


def log_loss(logs: np.ndarray, symbols: np.ndarray) -> np.ndarray:
    """The mean of minus the log-probability of the true symbol, column by column."""
    np.testing.assert_allclose(np.exp(logs).sum(axis=2), 1, rtol=1e-5)
    return np.asarray(-np.take_along_axis(logs, symbols[:, :, None], axis=2).mean(axis=(0, 2)))


def test_logistic_machines_need_no_temperature() -> None:
    X, y = draw(34, 150, 5, 2)
    learner = learnt(X, y, loss="logistic")
    assert learner.says[0] == "log_probabilities"
    logs = learner.outputs(learner.prepare(X), "log_probabilities", 0, 1)[:, 0]
    rival = LogisticRegression(solver="liblinear", tol=1e-10, max_iter=MANY).fit(X, y)
    np.testing.assert_allclose(np.exp(logs), rival.predict_proba(X), atol=1e-3)


def test_what_columns_can_say() -> None:
    soft = [Linear(), Linear(loss="hinge"), Linear(loss="logistic"), Linear(strategy="crammer_singer")]
    for learner in soft:
        assert {"log_probabilities", "scores", "symbols"} == set(learner.says)
    for options in ({}, {"loss": "hinge"}, {"strategy": "crammer_singer"}):
        learner = Linear(calibrate=False, **options)
        assert set(learner.says) == {"scores", "symbols"}
        with pytest.raises(ValueError, match="needs columns that say log_probabilities"):
            NaryClassifier(learner, decoder="loglikelihood").fit(DIGITS[:50], DIGIT[:50])
    assert not Linear().randomised
    assert not Linear().accepts_missing
    assert Linear().accepts_sparse


@pytest.mark.parametrize("strategy", ["ovr", "ovo", "crammer_singer"])
def test_columns_of_hardly_any_rows_are_calibrated_somehow(strategy: str) -> None:
    X, y = np.eye(4), np.arange(4)
    learner = learnt(X, y, calibrate=True, strategy=strategy)
    assert (np.isfinite(learner.temperatures_) & (learner.temperatures_ > 0)).all()
    logs = learner.outputs(learner.prepare(X), "log_probabilities", 0, 1)
    np.testing.assert_allclose(np.exp(logs[:, 0].astype(float)).sum(axis=1), 1, rtol=1e-5)


# --- Odd data ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["ovr", "ovo", "crammer_singer"])
@pytest.mark.parametrize("calibrate", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_column_with_one_symbol_left_says_it(strategy: str, calibrate: bool, form: str) -> None:
    X, y = draw(25, 60, 5, 4)
    X, y = X[y > 1], y[y > 1]
    # Of classes 2 and 3: one symbol; another one; two of three symbols; both of two.
    code = CodeMatrix(np.array([[0, 0, 0, 0], [1, 0, 1, 1], [1, -1, 2, 0], [1, 1, 0, 1]]), [2, 2, 3, 2])
    learner = learnt(FORMS[form](X), y, code, strategy=strategy, calibrate=calibrate)
    ready = learner.prepare(FORMS[form](X))
    said, soft = learner.outputs(ready, "symbols", 0, 4), learner.outputs(ready, "scores", 0, 4)
    assert (said[:, :2] == 1).all()
    assert set(said[:, 2]) <= {0, 2}
    for s, unseen in ((0, [0, 2]), (1, [0, 2]), (2, [1]), (3, [2])):
        assert np.isneginf(soft[:, s, unseen]).all()
        assert np.isfinite(np.delete(soft[:, s], unseen, axis=1)).all()
    np.testing.assert_array_equal(soft.argmax(axis=2), said)
    if calibrate:
        logs = learner.outputs(ready, "log_probabilities", 0, 4)
        np.testing.assert_array_equal(logs[:, :2], [[[-np.inf, 0, -np.inf]] * 2] * len(y))
        assert np.isneginf(logs[:, 2, 1]).all()
        np.testing.assert_allclose(np.exp(logs.astype(float)).sum(axis=2), 1, rtol=1e-5)


@pytest.mark.parametrize("empty", [(0, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize("form", FORMS)
def test_columns_without_rows_give_all_symbols_alike(empty: tuple[int, int], form: str) -> None:
    X, y = draw(26, 80, 5, 4)
    code = codes.build("ovo", n_classes=4)
    column = next(s for s in range(6) if tuple(code.column(s)[0]) == empty)
    clf = NaryClassifier(Linear(), code=code, decoder="loglikelihood")
    clf.fit(FORMS[form](X), y, sample_weight=1.0 - np.isin(y, empty))
    chances = clf.predict_proba(FORMS[form](X))
    assert not np.isnan(chances).any()
    assert clf.predict_symbols(FORMS[form](X))[:, column].tolist() == [0] * 80
    ready = clf.learner_.prepare(FORMS[form](X))
    logs = clf.learner_.outputs(ready, "log_probabilities", column, column + 1)
    np.testing.assert_allclose(np.exp(logs), 0.5)


@pytest.mark.parametrize(
    "task", [Task(loss, 2.0, intercept) for loss in LOSSES for intercept in (True, False)], ids=str
)
@pytest.mark.parametrize("form", FORMS)
def test_rows_of_zeros(task: Task, form: str) -> None:
    X, y = draw(27, 60, 5, 3)
    X[::4] = 0
    code = codes.build("identity", n_classes=3)
    some = FORMS[form](X)
    assert_all_optimal(task, some, y, code, learnt(some, y, code, **task.options))
    learner = learnt(FORMS[form](np.zeros_like(X)), y, code, **task.options)
    assert not learner.weights_.any()
    for machine in machines(learner, code, y):
        if task.intercept:
            assert_optimal(task, np.zeros_like(X), machine)
        else:
            assert machine.b == 0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("strategy", ["ovr", "ovo", "crammer_singer"])
@pytest.mark.parametrize("scaling", [1.0, np.inf])
def test_no_features_but_zeros_and_a_row_a_class(loss: str, strategy: str, scaling: float) -> None:
    for X in (np.zeros((3, 1)), np.array([[-1.0], [0.0], [2.0]]), np.ones((3, 2))):
        learner = learnt(X, np.arange(3), loss=loss, strategy=strategy, intercept_scaling=scaling, calibrate=True)
        ready = learner.prepare(X)
        assert np.isfinite(learner.outputs(ready, "scores", 0, 1)).all()
        assert np.isfinite(learner.outputs(ready, "log_probabilities", 0, 1)).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_one_feature_and_constant_features(loss: str) -> None:
    X, y = draw(28, 50, 1, 3)
    code = codes.build("identity", n_classes=3)
    for rows in (X, np.hstack([np.full((50, 1), 3.0), X]), np.hstack([X, X, np.zeros((50, 2))])):
        assert_all_optimal(Task(loss), rows, y, code, learnt(rows, y, code, loss=loss))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-10, 1e-6, 1e4])
def test_tiny_and_huge_penalties(loss: str, C: float) -> None:
    X, y = draw(29, 24, 40, 3)  # separable
    code = codes.build("identity", n_classes=3)
    assert_all_optimal(Task(loss, C), X, y, code, learnt(X, y, code, loss=loss, C=C, tol=1e-6), tol=1e-6)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e-5, 1e5, 1e30, 1e150])
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_of_any_size_give_numbers_or_an_error(scale: float, loss: str) -> None:
    X, y = draw(30, 40, 6, 3)
    X *= scale
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            clf = NaryClassifier(Linear(loss=loss, max_epochs=50), code="ova").fit(X, y)
        except ValueError as error:
            assert "Scale the features" in str(error)  # noqa: PT017
            assert scale > 1e20
            return
        assert np.isfinite(clf.learner_.weights_).all()
        assert not np.isnan(clf.predict_proba(X)).any()


# --- Bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"C": 0}, ValueError, "C must .*; got 0"),
        ({"C": -1.0}, ValueError, "C must .*; got -1"),
        ({"C": np.nan}, ValueError, "C must .*; got nan"),
        ({"C": np.inf}, ValueError, "C must .*; got inf"),
        ({"C": "1"}, TypeError, "C must .*; got '1'"),
        ({"tol": 0}, ValueError, "tol must .*; got 0"),
        ({"tol": -1e-3}, ValueError, r"tol must .*; got -0\.001"),
        ({"tol": np.nan}, ValueError, "tol must .*; got nan"),
        ({"max_epochs": 0}, ValueError, "max_epochs must be an integer from 1 to 2147483647.*; got 0"),
        ({"max_epochs": 1.5}, TypeError, r"max_epochs must be an integer from 1 to 2147483647.*; got 1\.5"),
        ({"loss": "squared_hing"}, ValueError, "unknown loss 'squared_hing': expected one of .* mean 'squared_hinge'"),
        ({"loss": "log_loss"}, ValueError, "unknown loss 'log_loss': expected one of 'hinge', 'logistic', 'squared_h"),
        ({"strategy": "crammer"}, ValueError, "unknown strategy 'crammer': expected .* Did you mean 'crammer_singer'"),
        ({"strategy": "ova"}, ValueError, "unknown strategy 'ova': expected one of 'crammer_singer', 'ovo', 'ovr'"),
        ({"intercept_scaling": 0}, ValueError, "intercept_scaling must .*; got 0"),
        ({"intercept_scaling": -1.0}, ValueError, "intercept_scaling must .*; got -1"),
        ({"intercept_scaling": np.nan}, ValueError, "intercept_scaling must .*; got nan"),
        ({"fit_intercept": "yes"}, ValueError, "fit_intercept must be .*True.*False; got 'yes'"),
        ({"warm_start": "yes"}, ValueError, "warm_start must be .*True.*False; got 'yes'"),
        ({"calibrate": 3}, ValueError, "calibrate must be .*True.*False; got 3"),
        ({"class_weight": "equal"}, ValueError, "unknown class_weight 'equal'"),
        ({"class_weight": 3}, TypeError, "class_weight must be one of balanced, balanced_symbols, a dict"),
        ({"class_weight": {99: 1.0}}, ValueError, r"class_weight must name classes of y; got \[99\]"),
        ({"class_weight": {1: -1.0}}, ValueError, "class_weight must give weights of at least 0"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None or an integer other than 0"),
        ({"n_jobs": "2"}, TypeError, "n_jobs must be None or an integer other than 0"),
    ],
)
def test_bad_parameters(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        NaryClassifier(Linear(**options), code="ova").fit(DIGITS[:100], DIGIT[:100])


@pytest.mark.parametrize(("value", "message"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("form", FORMS)
def test_values_that_are_no_numbers_are_refused(value: float, message: str, form: str) -> None:
    X, y = draw(31, 40, 6, 3)
    clf = NaryClassifier(Linear(), code="ova").fit(FORMS[form](X), y)
    X[3, 4] = value
    with pytest.raises(ValueError, match=f"Input X contains {message}"):
        NaryClassifier(Linear(), code="ova").fit(FORMS[form](X), y)
    with pytest.raises(ValueError, match=f"Input X contains {message}"):
        clf.predict(FORMS[form](X))


def test_weights_that_no_memory_holds_are_refused_with_their_size() -> None:
    rng = np.random.default_rng(0)
    d, L = 5_000_000, 20_000
    X = sp.random(50, d, 1e-6, format="csr", random_state=rng)
    code = CodeMatrix(rng.integers(0, 2, (50, L)), 2)
    with pytest.raises((ValueError, MemoryError), match=r"[0-9.,]+ GiB"):  # d L 8 bytes are 745 of them
        learnt(sp.csr_array(X), np.arange(50), code)


def test_a_dict_of_weights_needs_labels() -> None:
    X, y = draw(32, 40, 6, 3)
    columns = Columns(codes.build("identity", n_classes=3), y.astype(np.int32))
    with pytest.raises(ValueError, match="class_weight as a dict needs the labels"):
        Linear(class_weight={0: 2.0}).fit(X, columns)


# --- scikit-learn --------------------------------------------------------------------------------------------------


@parametrize_with_checks(
    [
        NaryClassifier(Linear(), code="ova"),
        NaryClassifier(Linear(loss="logistic", tol=1e-8), code="identity", decoder="loglikelihood"),
        NaryClassifier(Linear(calibrate=False, tol=1e-8), code="ovo"),
        NaryClassifier(Linear(calibrate=False, tol=1e-8, strategy="crammer_singer"), code="identity"),
    ]
)
def test_the_contract_of_scikit_learn(estimator: Any, check: Any) -> None:
    if estimator.estimator.calibrate and "sample_weight_equivalence" in check.func.__name__:
        # Probabilities are compared to seven digits, which asks for machines that have converged to as many.
        estimator = clone(estimator).set_params(estimator__tol=1e-16, estimator__max_epochs=20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks provoke warnings on purpose
        check(estimator)


def test_clones_and_pickles() -> None:
    X, y = draw(33, 90, 8, 5, zeros=0.3)
    learner = learnt(X, y, C=0.3, class_weight={1: 2.0}, calibrate=True, tol=1e-4)
    copy = pickle.loads(pickle.dumps(learner))
    for what in learner.says:
        expected = learner.outputs(learner.prepare(X), what, 0, 1)
        np.testing.assert_array_equal(copy.outputs(copy.prepare(X), what, 0, 1), expected)
    fresh = clone(learner)
    assert fresh.get_params() == learner.get_params()
    assert not hasattr(fresh, "weights_")
    clf = NaryClassifier(learner, code="random", random_state=0).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clf)).predict_proba(X), clf.predict_proba(X))
    assert clf.set_params(estimator__C=3.0).get_params()["estimator__C"] == 3.0
