"""Ridge regression in closed form: scikit-learn's machines, and what each row scores without itself."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge, RidgeClassifier

from nary import CodeMatrix, _check, codes
from nary.learners import _ridge_rows, _ridge_solver
from nary.learners._ridge_rows import DenseRows, SparseRows
from nary.learners._ridge_solver import RidgeFit, RidgeProblem, groups
from nary.learners.machines import Machines

FORMS = {"dense": np.asarray, "csr": sp.csr_array, "csr_matrix": sp.csr_matrix}
SHAPES = {"tall": (60, 7), "square": (20, 20), "wide": (25, 90)}
K = 5


def draw(n: int, d: int, seed: int = 0, share: float = 0.6, offset: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which a share of the entries is not 0, and their classes, each of which has a row."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < share, rng.normal(offset, 1, (n, d)), 0)
    return X, rng.permutation(np.arange(n) % K).astype(np.int32)


def sides(n_machines: int, seed: int = 0) -> np.ndarray:
    """A side of each class in each machine, never all the same."""
    table = np.random.default_rng(seed).choice([-1, 1], (K, n_machines)).astype(np.int8)
    table[0], table[1] = 1, -1
    return table


def some_weights(n: int, seed: int = 0) -> np.ndarray:
    weights = np.random.default_rng(seed).gamma(1.0, 2.0, n)
    weights[::7] = 0
    return weights


def by_sklearn(X: Any, targets: np.ndarray, **options: Any) -> RidgeFit:
    weights = options.pop("sample_weight", None)
    options.setdefault("solver", "svd")
    model = Ridge(**options).fit(X, targets.astype(float), sample_weight=weights)
    return RidgeFit(np.atleast_2d(model.coef_).T, np.broadcast_to(model.intercept_, targets.shape[1:]))


def agree(found: RidgeFit, expected: RidgeFit, within: float = 1e-8) -> None:
    np.testing.assert_allclose(found.weights, expected.weights, rtol=within, atol=within)
    np.testing.assert_allclose(found.intercepts, expected.intercepts, rtol=within, atol=within)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e4])
def test_machines_are_those_of_scikit_learn(
    form: str, shape: str, fit_intercept: bool, weighted: bool, alpha: float
) -> None:
    X, y = draw(*SHAPES[shape])
    options = {"alpha": alpha, "fit_intercept": fit_intercept, "sample_weight": some_weights(y.size)}
    if not weighted:
        del options["sample_weight"]
    system = RidgeProblem(FORMS[form](X), y, K, **options).system()
    for n_machines in (1, K, 3 * K):  # up to and beyond the number of classes
        table = sides(n_machines)
        agree(system.solve(table), by_sklearn(X, table[y], **options))


@pytest.mark.parametrize("shape", SHAPES)
def test_sparse_rows_give_the_machines_of_scikit_learn_on_sparse_rows(shape: str) -> None:
    X, y = draw(*SHAPES[shape], share=0.2)
    table = sides(3)
    expected = by_sklearn(sp.csr_array(X), table[y], alpha=0.7, solver="sparse_cg", tol=1e-14)
    agree(RidgeProblem(sp.csr_array(X), y, K, alpha=0.7).system().solve(table), expected)


@pytest.mark.parametrize("form", FORMS)
def test_one_against_the_rest_is_the_ridge_classifier(form: str) -> None:
    X, y = draw(80, 12)
    table = Machines(CodeMatrix(np.arange(K)[:, None]), "ovr").sides(0, K).table(K)
    found = RidgeProblem(FORMS[form](X), y, K, alpha=2.0).system().solve(table)
    model = RidgeClassifier(alpha=2.0).fit(X, y)
    agree(found, RidgeFit(model.coef_.T, model.intercept_))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_slab_at_a_time_gives_the_same_machines(form: str, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = draw(*SHAPES[shape])
    problem = RidgeProblem(FORMS[form](X), y, K, alpha=0.5, sample_weight=some_weights(y.size))
    table = sides(8)
    whole, held_out = problem.system().solve(table), problem.system().leave_one_out(table)
    monkeypatch.setattr(_ridge_rows.parts, "__defaults__", (150,))
    agree(problem.system().solve(table), whole, 1e-12)
    np.testing.assert_allclose(problem.system().leave_one_out(table), held_out, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("cost", [0, 10**9])
@pytest.mark.parametrize("shape", SHAPES)
def test_both_products_of_sparse_rows_give_the_same(cost: int, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = draw(*SHAPES[shape], share=0.1)
    monkeypatch.setattr(_ridge_rows, "_SPARSE_COST", cost)
    weights = some_weights(y.size)
    dense, sparse = DenseRows(X, None, weights), SparseRows(sp.csr_array(X), None, weights)
    for of in ("gram_of_features", "gram_of_rows"):
        expected, found = getattr(dense, of)(), getattr(sparse, of)()
        np.testing.assert_allclose(np.tril(found.matrix), np.tril(expected.matrix), atol=1e-12)
        np.testing.assert_allclose(found.blur(), expected.blur(), rtol=1e-12)


def test_entries_out_of_order_and_stored_twice_count_as_their_sum() -> None:
    X = np.array([[0.0, 3.0, 1.0], [2.0, 0.0, 0.0], [1.0, 1.0, -1.0]])
    parts = (np.array([1.0, 1.0, 2.0, 2.0, -1.0, 1.0, 1.0]), np.array([2, 1, 1, 0, 2, 1, 0]), np.array([0, 3, 4, 7]))
    y, table = np.array([0, 1, 2], np.int32), np.array([[1, -1], [-1, 1], [1, 1]])
    for wide in (False, True):  # both forms
        dense = np.hstack([X, np.eye(3)]) if wide else X
        sparse = sp.csr_array(parts, shape=X.shape)
        sparse = sp.hstack([sparse, sp.eye_array(3)]).tocsr() if wide else sparse
        agree(
            RidgeProblem(sparse, y, 3, alpha=0.1).system().solve(table),
            RidgeProblem(dense, y, 3, alpha=0.1).system().solve(table),
        )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_single_precision_is_read_exactly_and_given_back(form: str, shape: str) -> None:
    X, y = draw(*SHAPES[shape])
    X, table = X.astype(np.float32), sides(6)
    single = RidgeProblem(FORMS[form](X), y, K, alpha=0.1).system()
    double = RidgeProblem(FORMS[form](X.astype(np.float64)), y, K, alpha=0.1).system()
    for found, expected in zip(single.solve(table), double.solve(table), strict=True):
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, expected.astype(np.float32))
    found = single.leave_one_out(table)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, double.leave_one_out(table).astype(np.float32))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_mean_far_off_costs_dense_rows_no_digits(shape: str) -> None:
    X, y = draw(*SHAPES[shape], share=1.0)
    X = np.round(X * 2**20) / 2**20  # so that the sum below is exact
    near, far = (RidgeProblem(X + mean, y, K, alpha=0.5).system() for mean in (0.0, 2.0**24))
    table = sides(4)
    np.testing.assert_allclose(far.solve(table).weights, near.solve(table).weights, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(far.leave_one_out(table), near.leave_one_out(table), rtol=1e-6, atol=1e-8)


# Groups of machines


def test_all_machines_of_a_full_code_are_one_group() -> None:
    code = codes.build("random", n_classes=K, n_symbols=3, n_columns=6, random_state=0)
    (group,) = groups(Machines(code, "ovr"))
    assert group.classes.tolist() == list(range(K))
    assert group.machines.tolist() == list(range(18))


@pytest.mark.parametrize("strategy", ["ovr", "ovo"])
def test_groups_hold_every_machine_once_and_its_classes(strategy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ridge_solver, "_ENTRIES", 2 * K)
    symbols = np.array([[0, 1, -1, 0], [1, 0, -1, 1], [2, 2, 0, 1], [-1, -1, 1, 0], [0, 1, 1, -1]])
    machines = Machines(CodeMatrix(symbols), strategy)
    table = machines.sides(0, machines.n_machines).table(K)
    found = groups(machines)
    assert sorted(np.concatenate([group.machines for group in found]).tolist()) == list(range(machines.n_machines))
    assert len({group.classes.tobytes() for group in found}) == len(found)
    for group in found:
        for m in group.machines:
            assert np.flatnonzero(table[:, m]).tolist() == group.classes.tolist()


def test_one_against_one_has_a_group_for_each_pair() -> None:
    found = groups(Machines(codes.build("ovo", n_classes=K), "ovr"))
    assert sorted(tuple(group.classes.tolist()) for group in found) == list(combinations(range(K), 2))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("cost", [0, 10**6])  # of shared scatter matrices: none, and too much
def test_rows_of_unused_classes_take_no_part(
    form: str, shape: str, fit_intercept: bool, cost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ridge_solver, "_SCATTER_COST", cost)
    X, y = draw(*SHAPES[shape])
    machines = Machines(CodeMatrix(_some_unused()), "ovr")
    table = machines.sides(0, machines.n_machines).table(K)
    options = {"alpha": 0.3, "fit_intercept": fit_intercept}
    weights = some_weights(y.size)
    problem = RidgeProblem(FORMS[form](X), y, K, sample_weight=weights, **options)
    found = groups(machines)
    assert problem._scatters_pay(found) == (cost == 0 and shape == "tall")
    for group, system in problem.systems(found):
        rows = np.flatnonzero(np.isin(y, group.classes) & (weights > 0))
        np.testing.assert_array_equal(system.rows, rows)
        targets = table[:, group.machines]
        agree(system.solve(targets), by_sklearn(X[rows], targets[y[rows]], sample_weight=weights[rows], **options))
        alone = RidgeProblem(X[rows], y[rows], K, sample_weight=weights[rows], **options).system()
        np.testing.assert_allclose(system.leave_one_out(targets), alone.leave_one_out(targets), atol=1e-8)


def _some_unused() -> np.ndarray:
    symbols = np.random.default_rng(3).integers(0, 2, (K, 12))
    for s in range(12):
        symbols[s % K, s] = -1 if s < 10 else 2
        symbols[(s + 1) % K, s], symbols[(s + 2) % K, s] = 0, 1
    return symbols


def test_classes_without_rows_have_no_say() -> None:
    X, y = draw(40, 4)
    kept = (y != 1) & (y != 3)
    symbols = np.array([[0, 0, -1], [0, 1, 0], [1, 0, -1], [1, 1, 1], [1, -1, -1]])
    machines = Machines(CodeMatrix(symbols, alphabet=2), "ovr")
    table = machines.sides(0, 3).table(K)
    problem = RidgeProblem(X[kept], y[kept], K, alpha=1.0)
    found = {tuple(group.classes.tolist()): system for group, system in problem.systems(groups(machines))}
    agree(found[0, 1, 2, 3, 4].solve(table[:, :1]), by_sklearn(X[kept], table[y[kept], :1], alpha=1.0))
    assert found[1, 3].rows.size == 0
    fit = found[1, 3].solve(table[:, 2:])
    assert not fit.weights.any()
    assert fit.weights.shape == (4, 1)
    assert fit.intercepts.tolist() == [0]
    assert found[1, 3].leave_one_out(table[:, 2:]).shape == (0, 1)


def test_rows_of_one_side_give_that_side() -> None:
    X, y = draw(30, 3)
    fit = RidgeProblem(X, y, K, alpha=1.0).system().solve(np.ones((K, 1)))
    agree(fit, RidgeFit(np.zeros((3, 1)), np.ones(1)))


# Leaving one row out


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("d", [1, 5, 19, 20, 21, 60])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_leaving_a_row_out_is_fitting_without_it(form: str, d: int, fit_intercept: bool, weighted: bool) -> None:
    X, y = draw(20, d)
    weights = np.random.default_rng(1).gamma(1.0, 2.0, 20) if weighted else np.ones(20)
    for alpha in (1e-4, 1.0, 100.0):
        options = {"alpha": alpha, "fit_intercept": fit_intercept}
        system = RidgeProblem(FORMS[form](X), y, K, sample_weight=weights, **options).system()
        for n_machines in (2, 2 * K):
            table = sides(n_machines)
            expected = np.empty((20, n_machines))
            for row in range(20):
                kept = np.arange(20) != row
                fit = by_sklearn(X[kept], table[y[kept]], sample_weight=weights[kept], **options)
                expected[row] = X[row] @ fit.weights + fit.intercepts
            np.testing.assert_allclose(system.leave_one_out(table), expected, rtol=1e-7, atol=1e-7)


def test_without_the_only_row_nothing_is_said() -> None:
    for fit_intercept in (True, False):
        system = RidgeProblem(
            np.ones((1, 3)), np.zeros(1, np.int32), 2, alpha=1.0, fit_intercept=fit_intercept
        ).system()
        assert system.leave_one_out(np.array([[1], [-1]])).tolist() == [[0]]


def test_without_one_of_two_rows_the_other_ones_side_is_said() -> None:
    system = RidgeProblem(
        np.array([[1.0, 2.0, 3.0], [4.0, 0.0, 1.0]]), np.array([0, 1], np.int32), 2, alpha=1e-6
    ).system()
    np.testing.assert_allclose(system.leave_one_out(np.array([[1], [-1]])), [[-1], [1]], atol=1e-6)


@pytest.mark.parametrize("d", [4, 60])
def test_a_row_beyond_all_others_has_a_score_all_the_same(d: int) -> None:
    X, y = draw(20, d)
    X[3, 0] = 1e12  # its leverage is 1 within rounding
    for alpha in (1e-9, 1.0):
        assert np.isfinite(RidgeProblem(X, y, K, alpha=alpha).system().leave_one_out(sides(3))).all()


# Matrices that are no good


@given(st.integers(0, 10**6), st.sampled_from(sorted(SHAPES)), st.sampled_from([1e-12, 1e-6, 1.0]))
def test_equal_constant_and_empty_features_and_equal_rows_are_no_obstacle(seed: int, shape: str, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    X, y = draw(*SHAPES[shape], seed=seed)
    half = y.size // 2
    X[:, 0], X[:, 1], X[:, 2], X[half : 2 * half] = 0, 7, 100 * X[:, 3], X[:half]
    X *= 10 ** rng.uniform(0, 6)
    table = sides(4, seed)
    for form in FORMS.values():
        system = RidgeProblem(form(X), y, K, alpha=alpha).system()
        fit = system.solve(table)
        assert np.isfinite(system.leave_one_out(table)).all()
        if shape == "tall":  # nobody can do better than the least squares, and alpha is next to nothing
            loss = ((X @ fit.weights + fit.intercepts - table[y]) ** 2).sum(axis=0)
            best = by_sklearn(X, table[y], alpha=alpha)
            np.testing.assert_allclose(
                loss, ((X @ best.weights + best.intercepts - table[y]) ** 2).sum(axis=0), rtol=1e-3
            )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1e3, 1e5, 1e7])
def test_dependent_features_of_large_numbers_give_scores_as_of_singular_values(form: str, size: float) -> None:
    X, y = draw(200, 6)
    X[:, 1] = size * np.abs(X[:, 1])  # a price in one unit, in another, and a sum of both
    X[:, 2] = 100 * X[:, 1]
    X[:, 3] = X[:, 1] - X[:, 2]
    table = sides(3)
    system = RidgeProblem(FORMS[form](X), y, K, alpha=1.0).system()
    found, expected = system.solve(table), by_sklearn(X, table[y], alpha=1.0)
    np.testing.assert_allclose(
        X @ found.weights + found.intercepts, X @ expected.weights + expected.intercepts, atol=1e-8
    )
    without = by_sklearn(X[1:], table[y[1:]], alpha=1.0)
    np.testing.assert_allclose(system.leave_one_out(table)[0], X[0] @ without.weights + without.intercepts, atol=1e-8)


def test_a_matrix_that_cannot_be_factorised_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = draw(30, 5)
    X[:, 1] = X[:, 0] = 1e12
    monkeypatch.setattr(_ridge_solver, "_cholesky", lambda *_: None)
    with pytest.raises(ValueError, match=r"alpha must be larger for these data, .*; got 1e-09\. Give a larger alpha"):
        RidgeProblem(X, y, K, alpha=1e-9).system().solve(sides(2))


@pytest.mark.parametrize("form", FORMS)
def test_numbers_whose_squares_overflow_are_refused(form: str) -> None:
    X, y = draw(20, 4)
    X[2, 1] = -1e160
    with pytest.raises(ValueError, match=r"squares can be summed in float64; got one of magnitude 1e\+160 and weig"):
        RidgeProblem(FORMS[form](X), y, K, alpha=1.0)
    X[2, 1] = 1e140
    assert np.isfinite(RidgeProblem(FORMS[form](X), y, K, alpha=1.0).system().solve(sides(2)).weights).all()


def test_a_system_beyond_the_memory_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_check, "physical_memory", lambda: 2**30)
    n = 20_000
    X, y = sp.csr_array((n, 10**6)), (np.arange(n) % K).astype(np.int32)
    system = RidgeProblem(X, y, K, alpha=1.0).system()
    message = (
        "the system of Ridge (20,000 x 20,000 in float64, for 20,000 rows of 1,000,000 features) needs 3.0 GiB, more "
        "than this machine's 1.0 GiB. Use learners.Linear, which needs no such matrix, or fewer rows or features."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        system.solve(sides(2))


def test_leaving_out_needs_twice_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = draw(30, 50)
    system = RidgeProblem(X, y, K, alpha=1.0).system()
    monkeypatch.setattr(_check, "physical_memory", lambda: 8 * 30**2)
    system.solve(sides(2))
    with pytest.raises(
        ValueError, match=r"\(2 times 30 x 30 in float64, for 30 rows of 50 feat.* Give calibrate=False"
    ):
        system.leave_one_out(sides(2))


def test_rows_are_left_as_they_were() -> None:
    X, y = draw(30, 6)
    for form in FORMS.values():
        given_X, weights = form(X.copy()), some_weights(30)
        kept = weights.copy()
        system = RidgeProblem(given_X, y, K, alpha=1.0, sample_weight=weights).system()
        system.solve(sides(3))
        system.leave_one_out(sides(3))
        np.testing.assert_array_equal(given_X if isinstance(given_X, np.ndarray) else given_X.toarray(), X)
        np.testing.assert_array_equal(weights, kept)
