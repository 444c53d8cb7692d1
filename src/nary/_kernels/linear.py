"""Linear machines: fitting them by dual coordinate descent, and what fitted ones say of rows."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ._core import _native, check_array, expect, thread_count

LANES = 16  # machines on the vector axis: the core's kMachines
LOSSES = ("squared_hinge", "hinge", "logistic", "crammer_singer")
ANSWERS = ("scores", "symbols", "log_probabilities")
MAX_FEATURES = (1 << 31) - 1  # a feature of a CSR row is numbered in 32 bits

Real: TypeAlias = np.float32 | np.float64
Reals: TypeAlias = NDArray[np.float32] | NDArray[np.float64]


class CsrRows(NamedTuple):
    """Rows in CSR form: features ascending, none twice in a row."""

    starts: NDArray[np.int64]
    features: NDArray[np.int32]
    values: Reals
    n_features: int

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.starts.size - 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of the values."""
        return self.values.dtype


Rows: TypeAlias = NDArray[np.float32] | NDArray[np.float64] | CsrRows


class Task(NamedTuple):
    """What machines are fitted on: the class and the cost of each row (class -1: it takes no part), and how."""

    groups: NDArray[np.int32]
    costs: Reals
    n_groups: int
    loss: str = "squared_hinge"
    constant: float = 1.0  # the constant feature that gives the intercept; 0: none
    free_intercept: bool = False  # the intercept is free of penalty: the constant only helps to find it
    tol: float = 1e-3
    max_epochs: int = 1000
    seed: int = 0


class Weights(NamedTuple):
    """Machines in the columns of `weights`, which has room for whole vectors of them and one spare row."""

    weights: Reals  # (features + 1, machines rounded up)
    intercepts: Reals
    gaps: NDArray[np.float64]
    epochs: NDArray[np.int32]

    @classmethod
    def empty(cls, n_features: int, n_machines: int, dtype: Any) -> Weights:
        """Room for so many machines."""
        stride = -(-n_machines // LANES) * LANES
        return cls(
            np.zeros((n_features + 1, stride), dtype),
            np.zeros(n_machines, dtype),
            np.zeros(n_machines),
            np.zeros(n_machines, np.int32),
        )

    @property
    def n_machines(self) -> int:
        """How many machines there are."""
        return self.intercepts.size

    @property
    def coefficients(self) -> Reals:
        """The weights themselves: (features, machines)."""
        return self.weights[:-1, : self.n_machines]


class ColumnMachines(NamedTuple):
    """Some columns and their machines, which lie side by side; `starts` counts them from the first one."""

    starts: NDArray[np.int64]
    alphabet: NDArray[np.int16]
    seen: NDArray[np.uint8]  # (columns, N): whether a symbol was met in training
    sharpness: NDArray[np.float32]  # by which scores are multiplied before the softmax
    pairs: bool  # a machine for each pair of symbols, else for each symbol (for two, one)

    def checked(self) -> ColumnMachines:
        """The same, proven to stay inside its arrays."""
        L = self.alphabet.size
        check_array(self.starts, "starts", np.int64, 1, (L + 1,))
        check_array(self.alphabet, "alphabet", np.int16, 1)
        check_array(self.seen, "seen", np.uint8, 2, (L, self.seen.shape[1]))
        check_array(self.sharpness, "sharpness", np.float32, 1, (L,))
        N, counts = self.alphabet.astype(np.int64), np.diff(self.starts)
        fits = counts == N * (N - 1) // 2 if self.pairs else (counts == N) | ((counts == 1) & (N == 2))
        inside = self.starts[0] == 0 and bool((N <= self.seen.shape[1]).all()) and bool((N >= 2).all())
        expect(inside and bool(fits.all()), "as many machines as a column's symbols ask for", f"{counts[~fits][:3]}")
        return self


def fit_blocks(
    rows: Rows,
    task: Task,
    signs: NDArray[np.int8],
    first: int,
    fitted: Weights,
    *,
    columns: NDArray[np.int64] | None = None,
    side_weights: tuple[Reals, Reals] | None = None,
    states: Reals | None = None,
    n_threads: int = 1,
) -> None:
    """Fits machines first.. of `fitted`, as many as `signs` (classes, machines) has columns, in blocks.

    `columns` says where the machines of each column begin, for crammer_singer. `side_weights` are factors of the costs
    of rows on the positive and negative side, by machine. `states` (rows, as `weights` is wide) holds the dual
    variables to start from, and then those reached.
    """
    dtype, m = _check_task(rows, task, first, signs.shape[1], fitted)
    check_array(signs, "signs", np.int8, 2, (task.n_groups, m))
    jointly = task.loss == "crammer_singer"
    expect((columns is not None) == jointly, "columns for crammer_singer alone", task.loss)
    ends = np.zeros(1, np.int64) if columns is None else columns
    check_array(ends, "columns", np.int64, 1)
    if jointly:
        expect(
            ends[0] == 0 and ends[-1] == m and bool((np.diff(ends) >= 2).all()), "columns of machines", f"{ends[:3]}"
        )
    if states is not None:
        check_array(states, "states", dtype, 2, (task.groups.size, fitted.weights.shape[1]))
    given = _given(task, dtype, m, side_weights)
    rest = (given, signs, ends, first, _options(task), thread_count(n_threads), tuple(fitted), states)
    if isinstance(rows, CsrRows):
        _native.fit_blocks_sparse(tuple(rows[:3]), rows.n_features, *rest)
    else:
        _native.fit_blocks_dense(rows, *rest)


def fit_newton(
    rows: Rows,
    task: Task,
    signs: NDArray[np.int8],
    first: int,
    fitted: Weights,
    *,
    side_weights: tuple[Reals, Reals] | None = None,
    warm: bool = False,
    n_threads: int = 1,
) -> None:
    """As `fit_blocks`, by Newton's method, for the smooth losses; `warm`: from the machines that `fitted` holds."""
    dtype, m = _check_task(rows, task, first, signs.shape[1], fitted)
    check_array(signs, "signs", np.int8, 2, (task.n_groups, m))
    expect(task.loss in ("squared_hinge", "logistic"), "a smooth loss", task.loss)
    rest = (
        _given(task, dtype, m, side_weights),
        signs,
        first,
        _options(task),
        thread_count(n_threads),
        tuple(fitted),
        warm,
    )
    if isinstance(rows, CsrRows):
        _native.fit_newton_sparse(tuple(rows[:3]), rows.n_features, *rest)
    else:
        _native.fit_newton_dense(rows, *rest)


def fit_grams(
    rows: Rows,
    task: Task,
    starts: NDArray[np.int64],
    classes: NDArray[np.int32],
    signs: NDArray[np.int8],
    first: int,
    fitted: Weights,
    *,
    side_weights: tuple[Reals, Reals] | None = None,
    n_threads: int = 1,
) -> None:
    """Fits machines first.. of `fitted`, each over its rows' Gram matrix; machine m's classes begin at starts[m]."""
    dtype, m = _check_task(rows, task, first, starts.size - 1, fitted)
    expect(task.loss != "crammer_singer", "a loss of single machines", task.loss)
    check_array(starts, "starts", np.int64, 1)
    check_array(classes, "classes", np.int32, 1, (int(starts[-1]),))
    check_array(signs, "signs", np.int8, 1, classes.shape)
    expect(starts[0] == 0 and bool((np.diff(starts) >= 0).all()), "ascending starts from 0", "others")
    inside = classes.size == 0 or (int(classes.min()) >= 0 and int(classes.max()) < task.n_groups)
    expect(inside, f"classes below {task.n_groups}", "others")
    given = _given(task, dtype, m, side_weights)
    rest = (given, task.n_groups, starts, classes, signs, first, _options(task), thread_count(n_threads), tuple(fitted))
    if isinstance(rows, CsrRows):
        _native.fit_grams_sparse(tuple(rows[:3]), rows.n_features, *rest)
    else:
        _native.fit_grams_dense(rows, *rest)


def answer(
    rows: Rows,
    fitted: Weights,
    first: int,
    columns: ColumnMachines,
    what: Literal["scores", "symbols", "log_probabilities"],
    n_threads: int = 1,
) -> NDArray[Any]:
    """What columns whose machines begin with `first` say: (rows, columns) symbols, or else (rows, columns, N)."""
    dtype = _check_rows(rows, fitted.weights.shape[0] - 1)
    _check_fitted(fitted, first, int(columns.starts[-1]), dtype, fitted.weights.shape[0] - 1)
    n_rows = rows.n_rows if isinstance(rows, CsrRows) else rows.shape[0]
    out = _room(n_rows, columns, what)
    rest = (fitted.weights, fitted.intercepts, first, tuple(columns.checked()), ANSWERS.index(what))
    if isinstance(rows, CsrRows):
        _native.answer_sparse(tuple(rows[:3]), rows.n_features, *rest, thread_count(n_threads), out)
    else:
        _native.answer_dense(rows, *rest, thread_count(n_threads), out)
    return out


def answer_scores(
    scores: Reals,
    columns: ColumnMachines,
    what: Literal["scores", "symbols", "log_probabilities"],
    n_threads: int = 1,
) -> NDArray[Any]:
    """What columns say whose machines' scores (rows, machines) are known."""
    dtype = scores.dtype.type
    expect(dtype in (np.float32, np.float64), "scores in float32 or float64", str(scores.dtype))
    check_array(scores, "scores", dtype, 2, (scores.shape[0], int(columns.starts[-1])))
    out = _room(scores.shape[0], columns, what)
    _native.answer_scores(scores, tuple(columns.checked()), ANSWERS.index(what), thread_count(n_threads), out)
    return out


def _room(n_rows: int, columns: ColumnMachines, what: str) -> NDArray[Any]:
    expect(what in ANSWERS, f"one of {ANSWERS}", what)
    L, N = columns.seen.shape
    return np.empty((n_rows, L), np.int16) if what == "symbols" else np.empty((n_rows, L, N), np.float32)


def _check_rows(rows: Rows, n_features: int) -> type[Real]:
    dtype = rows.dtype.type
    expect(dtype in (np.float32, np.float64), "rows in float32 or float64", str(rows.dtype))
    if not isinstance(rows, CsrRows):
        check_array(rows, "rows", dtype, 2, (rows.shape[0], n_features))
        return dtype
    starts, features, values, width = rows
    check_array(starts, "starts", np.int64, 1)
    check_array(features, "features", np.int32, 1)
    check_array(values, "values", dtype, 1, features.shape)
    ascending = starts[0] == 0 and starts[-1] == features.size and bool((np.diff(starts) >= 0).all())
    expect(ascending, f"starts from 0 to {features.size}", f"{starts[[0, -1]]}")
    expect(width == n_features, f"{n_features} features", str(width))
    inside = features.size == 0 or (int(features.min()) >= 0 and int(features.max()) < n_features)
    expect(inside, f"features below {n_features}", "others")
    return dtype


def _check_fitted(fitted: Weights, first: int, n_machines: int, dtype: type[Real], n_features: int) -> None:
    weights, intercepts, gaps, epochs = fitted
    check_array(weights, "weights", dtype, 2, (n_features + 1, -(-intercepts.size // LANES) * LANES))
    check_array(intercepts, "intercepts", dtype, 1)
    check_array(gaps, "gaps", np.float64, 1, intercepts.shape)
    check_array(epochs, "epochs", np.int32, 1, intercepts.shape)
    inside = 0 <= first <= first + n_machines <= intercepts.size
    expect(inside, f"machines within 0:{intercepts.size}", f"{first}:{first + n_machines}")


def _check_task(rows: Rows, task: Task, first: int, n_machines: int, fitted: Weights) -> tuple[type[Real], int]:
    n_features = rows.n_features if isinstance(rows, CsrRows) else rows.shape[1]
    dtype = _check_rows(rows, n_features)
    _check_fitted(fitted, first, n_machines, dtype, n_features)
    n_rows = rows.n_rows if isinstance(rows, CsrRows) else rows.shape[0]
    check_array(task.groups, "groups", np.int32, 1, (n_rows,))
    check_array(task.costs, "costs", dtype, 1, (n_rows,))
    low, high = (int(task.groups.min()), int(task.groups.max())) if n_rows else (0, 0)
    expect(low >= -1 and high < task.n_groups, f"groups from -1 to {task.n_groups - 1}", f"{low} to {high}")
    expect(bool((task.costs[task.groups >= 0] > 0).all()), "costs above 0", "others")
    expect(task.loss in LOSSES, f"one of {LOSSES}", task.loss)
    expect(task.max_epochs >= 1 and task.tol > 0, "at least one epoch, and a tol above 0", f"{task.max_epochs}")
    expect(0 <= task.seed < 1 << 64, "a seed of 64 bits", str(task.seed))
    return dtype, n_machines


def _given(task: Task, dtype: type[Real], m: int, side_weights: tuple[Reals, Reals] | None) -> tuple[Any, ...]:
    sides = (np.ones(m, dtype),) * 2 if side_weights is None else side_weights
    for weights in sides:
        check_array(weights, "side_weights", dtype, 1, (m,))
        expect(bool((weights > 0).all()), "weights above 0", "others")
    return task.groups, task.costs, *sides


def _options(task: Task) -> Any:
    return _native.LinearOptions(
        loss=LOSSES.index(task.loss),
        constant=float(task.constant),
        free_intercept=bool(task.free_intercept),
        tol=float(task.tol),
        max_epochs=int(task.max_epochs),
        seed=int(task.seed),
    )
