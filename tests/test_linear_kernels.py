"""The kernels of linear machines against their NumPy twins, around every block border, at every level and thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from nary import _kernels
from nary._kernels import linear as kernels
from nary._kernels.linear import ColumnMachines, CsrRows, Task, Weights
from nary._reference import linear as reference

DTYPES = [np.float32, np.float64]
LOSSES = ["squared_hinge", "hinge", "logistic"]
THREADS = [1, 2, 3]
WAYS = {"blocks": kernels.fit_blocks, "newton": kernels.fit_newton}


class Problem:
    """Rows of four classes, and machines that each leave some classes out."""

    def __init__(self, n: int, d: int, m: int, dtype: Any, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)).astype(dtype)
        self.y = rng.integers(0, 4, n).astype(np.int32)
        self.table = rng.choice(np.array([-1, 0, 1], np.int8), (4, m))
        self.table[:2] = [[1], [-1]]
        self.costs = rng.uniform(0.5, 2, n).astype(dtype)

    @property
    def csr(self) -> CsrRows:
        X = sp.csr_matrix(self.X)
        return CsrRows(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, X.shape[1])

    def rows(self, form: str) -> Any:
        return self.X if form == "dense" else self.csr

    def task(self, loss: str, tol: float = 1e-2, max_epochs: int = 25, **options: Any) -> Task:
        return Task(self.y, self.costs, 4, loss, tol=tol, max_epochs=max_epochs, seed=7, **options)

    def room(self) -> Weights:
        return Weights.empty(self.X.shape[1], self.table.shape[1], self.X.dtype)

    def objectives(self, fitted: Weights, loss: str) -> np.ndarray:
        weights, intercepts = fitted.coefficients, fitted.intercepts
        return reference.objectives(self.X, self.table[self.y], self.costs, weights, intercepts, loss=loss)


def same(a: Weights, b: Weights) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("n", "d", "m"), [(3, 1, 1), (4, 15, 15), (63, 16, 16), (65, 17, 9), (129, 33, 3)])
def test_the_descent_is_its_twin(level: str, form: str, dtype: Any, loss: str, n: int, d: int, m: int) -> None:
    problem = Problem(n, d, m, dtype)
    fitted = problem.room()
    kernels.fit_blocks(problem.rows(form), problem.task(loss), problem.table, 0, fitted)
    twin = reference.descend(
        problem.X, problem.table[problem.y], problem.costs, loss=loss, tol=1e-2, max_epochs=25, seed=7,
        sparse=form == "csr",
    )  # fmt: skip
    np.testing.assert_array_equal(fitted.epochs, twin.epochs)
    np.testing.assert_array_equal(fitted.coefficients, twin.weights[:-1])
    np.testing.assert_array_equal(fitted.intercepts, twin.weights[-1])
    np.testing.assert_allclose(fitted.gaps, twin.gaps, rtol=1e-6, atol=1e-6 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("m", [15, 16, 17, 31, 33, 63, 65, 127, 129, 257])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_a_machine_is_the_same_in_every_block(form: str, m: int) -> None:
    problem = Problem(90, 7, m, np.float32)
    problem.table[:] = np.where(problem.table == 0, 1, problem.table)  # all rows take part everywhere
    problem.table[0], problem.table[1] = 1, -1
    together, alone = problem.room(), Weights.empty(7, 1, np.float32)
    for way, fit in WAYS.items():
        fit(problem.rows(form), problem.task("squared_hinge"), problem.table, 0, together)
        for machine in (0, m // 2, m - 1):
            column = np.ascontiguousarray(problem.table[:, machine : machine + 1])
            fit(problem.rows(form), problem.task("squared_hinge"), column, 0, alone)
            np.testing.assert_array_equal(together.coefficients[:, machine], alone.coefficients[:, 0], way)


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_levels_and_threads_do_not_change_newtons_machines(form: str, dtype: Any, free: bool, loss: str) -> None:
    problem, before = Problem(150, 19, 37, dtype), _kernels.level()
    fits = []
    for level in _kernels.levels():
        _kernels.use_level(level)
        for threads in THREADS:
            fitted = problem.room()
            task = problem.task(loss, 1e-4, 100, free_intercept=free)
            kernels.fit_newton(problem.rows(form), task, problem.table, 0, fitted, n_threads=threads)
            fits.append(fitted)
    _kernels.use_level(before)
    assert all(same(fits[0], fitted) for fitted in fits[1:])
    assert (fits[0].gaps <= (1e-4 if dtype == np.float64 else 1e-3)).all()


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n", [5, 15, 16, 17, 47, 48, 49, 130])
def test_gram_matrices_newton_and_blocks_find_the_same_optimum(form: str, loss: str, n: int) -> None:
    problem = Problem(n, 9, 18, np.float64, seed=n)
    problem.y[:2] = [0, 1]
    sides = [np.flatnonzero(column) for column in problem.table.T]
    starts = np.concatenate([[0], np.cumsum([len(side) for side in sides])])
    classes = np.concatenate(sides).astype(np.int32)
    signs = problem.table[classes, np.repeat(np.arange(18), np.diff(starts))]
    tol = 1e-3 if loss == "hinge" else 1e-6  # the descent is slow at corners
    task, found = problem.task(loss, tol, 20000), []
    for threads in THREADS:
        fitted = problem.room()
        kernels.fit_grams(problem.rows(form), task, starts, classes, signs, 0, fitted, n_threads=threads)
        assert (fitted.gaps <= tol).all()
        found.append(fitted)
    assert all(same(found[0], fitted) for fitted in found[1:])
    for fit in WAYS.values() if loss != "hinge" else [kernels.fit_blocks]:
        fitted = problem.room()
        fit(problem.rows(form), task, problem.table, 0, fitted)
        wanted = problem.objectives(fitted, loss)
        np.testing.assert_allclose(problem.objectives(found[0], loss), wanted, rtol=2 * tol)


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponentials_and_logarithms_are_those_of_numpy(dtype: Any) -> None:
    x = np.concatenate([-np.logspace(-6, 1.8, 500), [0]]).astype(dtype)
    u = np.linspace(0, 1, 500).astype(dtype)
    few = 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(reference.exp_of(x), np.exp(x.astype(np.float64)), rtol=8 * few)
    np.testing.assert_allclose(reference.log1p_of(u), np.log1p(u.astype(np.float64)), rtol=few)


def columns(pairs: bool, alphabet: list[int], unseen: int = -1) -> tuple[ColumnMachines, int]:
    """Columns of some alphabets, one symbol of the first not seen in training."""
    N = np.array(alphabet, np.int16)
    counts = N.astype(np.int64) * (N - 1) // 2 if pairs else np.where(N == 2, 1, N).astype(np.int64)
    seen = (np.arange(max(alphabet)) < N[:, None]).astype(np.uint8)
    if unseen >= 0:
        seen[0, unseen] = 0
    starts = np.concatenate([[0], np.cumsum(counts)])
    return ColumnMachines(starts, N, seen, np.linspace(0.5, 2, N.size).astype(np.float32), pairs), int(starts[-1])


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("n", [1, 3, 4, 255, 256, 257])
def test_answers_are_those_of_the_twin(level: str, form: str, dtype: Any, pairs: bool, n: int) -> None:
    few, m = columns(pairs, [3, 2, 5, 2, 9, 4] * 4, unseen=1)
    problem, rng = Problem(n, 21, m, dtype), np.random.default_rng(1)
    fitted = problem.room()
    fitted.weights[:-1, :m], fitted.intercepts[:] = rng.normal(size=(21, m)), rng.normal(size=m)
    scores = problem.X @ fitted.coefficients + fitted.intercepts
    read = reference.read_scores(scores, few.starts, few.alphabet, few.seen, pairs)
    sharp = read * few.sharpness[:, None]
    logs = sharp - np.log(np.exp(sharp - sharp.max(axis=2, keepdims=True)).sum(axis=2, keepdims=True))
    logs -= sharp.max(axis=2, keepdims=True)
    tolerance = {"rtol": 1e-5, "atol": 2e-4 if dtype == np.float32 else 1e-6}
    for threads in THREADS:
        said = {what: kernels.answer(problem.rows(form), fitted, 0, few, what, threads) for what in kernels.ANSWERS}
        np.testing.assert_allclose(said["scores"], read, **tolerance)
        np.testing.assert_allclose(said["log_probabilities"], logs, **tolerance)
        close = np.sort(read, axis=2)[:, :, -2:]
        sure = close[:, :, 1] - close[:, :, 0] > 1e-3
        np.testing.assert_array_equal(said["symbols"][sure], read.argmax(axis=2)[sure])
        again = {what: kernels.answer_scores(scores, few, what, threads) for what in kernels.ANSWERS}
        np.testing.assert_allclose(again["log_probabilities"], logs, **tolerance)


def test_answers_have_the_same_bits_at_every_level_and_thread_count() -> None:
    few, m = columns(False, [3, 2, 5] * 30)
    problem, before, found = Problem(300, 40, m, np.float32), _kernels.level(), []
    fitted = problem.room()
    fitted.weights[:-1, :m] = np.random.default_rng(0).normal(size=(40, m))
    for form in ("dense", "csr"):
        for level in _kernels.levels():
            _kernels.use_level(level)
            found += [kernels.answer(problem.rows(form), fitted, 0, few, "scores", threads) for threads in THREADS]
        assert all(np.array_equal(found[0], said) for said in found)
        found.clear()
    _kernels.use_level(before)


def test_the_door_refuses_what_would_leave_an_array() -> None:
    problem = Problem(20, 5, 3, np.float32)
    task, table, room = problem.task("hinge"), problem.table, problem.room()
    with pytest.raises(ValueError, match="expected groups from -1 to 3"):
        kernels.fit_blocks(problem.X, task._replace(groups=problem.y + 4), table, 0, room)
    with pytest.raises(ValueError, match="expected costs above 0"):
        kernels.fit_blocks(problem.X, task._replace(costs=problem.costs * 0), table, 0, room)
    with pytest.raises(ValueError, match="expected machines within 0:3"):
        kernels.fit_blocks(problem.X, task, table, 1, room)
    with pytest.raises(ValueError, match="expected features below 5"):
        kernels.fit_blocks(problem.csr._replace(features=problem.csr.features + 9), task, table, 0, room)
    with pytest.raises(ValueError, match="expected a smooth loss"):
        kernels.fit_newton(problem.X, task, table, 0, room)
    with pytest.raises(ValueError, match="expected columns for crammer_singer alone"):
        kernels.fit_blocks(problem.X, task._replace(loss="crammer_singer"), table, 0, room)
    starts, classes = np.array([0, 1, 2, 3]), np.array([0, 1, 7], np.int32)
    with pytest.raises(ValueError, match="expected classes below 4"):
        kernels.fit_grams(problem.X, task, starts, classes, np.ones(3, np.int8), 0, room)
    few, _ = columns(False, [3])
    with pytest.raises(ValueError, match="expected as many machines as a column's symbols ask for"):
        kernels.answer(problem.X, room, 0, few._replace(alphabet=np.array([2], np.int16)), "scores")
