"""Fitting the machines of a code: which way suits which machines, in portions that can be interrupted between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._kernels import linear as kernels
from .._kernels.linear import LANES, CsrRows, Reals, Rows, Task, Weights
from ._rows import shape_of
from .machines import Machines, Sides

_PORTION = 4096  # machines fitted in one call of the core, which cannot be interrupted
_TABLE_BYTES = 1 << 26  # of a portion's sides
_GRAM_ROWS = 1024  # up to which a machine's rows may be put into a Gram matrix
_FULL = 0.1  # share of the entries of CSR rows from which they count as dense
_GRAM_WORTH = 40  # and their square is at most so many times all rows: a block would look at all of them, often


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """The rows with their classes (-1: left out) and costs, and all that the machines have in common."""

    rows: Rows
    task: Task
    balance_sides: bool = False  # whether both sides of a machine weigh alike
    n_threads: int = 1

    @property
    def class_counts(self) -> NDArray[np.int64]:
        """The rows of each class that take part."""
        return np.bincount(self.task.groups[self.task.groups >= 0], minlength=self.task.n_groups).astype(np.int64)

    @property
    def class_costs(self) -> NDArray[np.float64]:
        """The costs of each class's rows, added up."""
        used = self.task.groups >= 0
        costs = self.task.costs[used].astype(np.float64)
        return np.bincount(self.task.groups[used], costs, minlength=self.task.n_groups).astype(np.float64)

    @property
    def newton(self) -> bool:
        """Whether Newton's method is worth it: smooth losses of more rows than features, most of them in use."""
        n_rows, n_features = shape_of(self.rows)
        smooth = self.task.loss in ("squared_hinge", "logistic")
        full = not isinstance(self.rows, CsrRows) or self.rows.values.size >= _FULL * n_rows * n_features
        return smooth and full and n_rows >= n_features


def fit_machines(
    problem: LinearProblem,
    machines: Machines,
    first: int,
    last: int,
    fitted: Weights,
    *,
    warm: bool = False,
    states: Reals | None = None,
    report: Callable[[int], None] = lambda done: None,
) -> None:
    """Fits machines first..last-1 into the columns of `fitted` from 0 on.

    With `warm`, from what `fitted` and `states` (the dual variables of every row and machine) hold; `states` are kept
    up to date where they are given.
    """
    if machines.strategy == "crammer_singer":
        return _fit_jointly(problem, machines, first, last, fitted, states, report)
    counts = problem.class_counts
    for begin, end in _portions(problem, first, last):
        sides = machines.sides(begin, end)
        small = _small(problem, sides, counts) & (states is None) & (not warm)
        for chosen in (np.flatnonzero(small), np.flatnonzero(~small)):
            if chosen.size == sides.n_machines:
                _fit_sides(problem, sides, bool(small[0]), begin - first, fitted, warm, states)
            elif chosen.size:
                part = Weights.empty(fitted.weights.shape[0] - 1, chosen.size, fitted.weights.dtype)
                _fit_sides(problem, sides.take(chosen), bool(small[chosen[0]]), 0, part, False, None)
                _scatter(part, chosen + begin - first, fitted)
        report(end - first)


def _portions(problem: LinearProblem, first: int, last: int) -> Iterator[tuple[int, int]]:
    step = min(_PORTION, max(LANES, _TABLE_BYTES // max(1, problem.task.n_groups)))
    return ((begin, min(begin + step, last)) for begin in range(first, last, step))


def _small(problem: LinearProblem, sides: Sides, class_counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which machines have so few rows that their Gram matrix is the better way."""
    ends = np.concatenate([[0], np.cumsum(class_counts[sides.classes])])[sides.starts]
    n_rows, (n_all, n_features) = np.diff(ends), shape_of(problem.rows)
    # With more rows than features Newton's method takes few steps where the descent may take thousands.
    descends = (n_rows < n_features) | (not problem.newton)
    # By pairs of rows only some lines of the matrix are made, and blocks are slow to find an intercept free of penalty.
    pairs = problem.task.loss == "hinge" and problem.task.free_intercept
    return np.asarray(descends & (n_rows <= _GRAM_ROWS) & (pairs | (n_rows**2 <= _GRAM_WORTH * n_all)))


def _fit_sides(
    problem: LinearProblem, sides: Sides, small: bool, at: int, fitted: Weights, warm: bool, states: Reals | None
) -> None:
    weigh = _side_weights(problem, sides) if problem.balance_sides else None
    rows, task, threads = problem.rows, problem.task, problem.n_threads
    if small:
        kernels.fit_grams(rows, task, *sides, at, fitted, side_weights=weigh, n_threads=threads)
        return
    table = sides.table(task.n_groups)
    if problem.newton:
        kernels.fit_newton(rows, task, table, at, fitted, side_weights=weigh, warm=warm, n_threads=threads)
    else:
        kernels.fit_blocks(rows, task, table, at, fitted, side_weights=weigh, states=states, n_threads=threads)


def _side_weights(problem: LinearProblem, sides: Sides) -> tuple[Reals, Reals]:
    """Factors of the costs with which both sides of each machine cost alike."""
    costs = problem.class_costs[sides.classes]
    of_machine = np.repeat(np.arange(sides.n_machines), np.diff(sides.starts))
    totals = [np.bincount(of_machine, costs * (sides.signs == side), sides.n_machines) for side in (1, -1)]
    whole = totals[0] + totals[1]
    dtype = problem.task.costs.dtype
    positive, negative = (
        np.divide(whole, 2 * total, out=np.ones_like(total), where=total > 0).astype(dtype) for total in totals
    )
    return positive, negative


def _fit_jointly(
    problem: LinearProblem,
    machines: Machines,
    first: int,
    last: int,
    fitted: Weights,
    states: Reals | None,
    report: Callable[[int], None],
) -> None:
    """Whole columns at a time: their machines have one objective together."""
    starts = machines.starts
    s, end = (int(np.searchsorted(starts, machine)) for machine in (first, last))
    step = min(_PORTION, max(LANES, _TABLE_BYTES // max(1, problem.task.n_groups)))
    while s < end:
        beyond = max(s + 1, int(np.searchsorted(starts, starts[s] + step, side="right")) - 1)
        beyond = min(beyond, end)
        sides = machines.sides(int(starts[s]), int(starts[beyond]))
        ends = np.ascontiguousarray(starts[s : beyond + 1] - starts[s])
        weigh = None
        if problem.balance_sides:
            positive, negative = _side_weights(problem, sides)
            n_symbols = np.repeat(np.diff(ends), np.diff(ends))
            weigh = ((positive * 2 / n_symbols).astype(positive.dtype), negative)
        table = sides.table(problem.task.n_groups)
        table[:, ~(table[problem.class_counts > 0] > 0).any(axis=0)] = 0  # a symbol without rows is nobody's rival
        kernels.fit_blocks(
            problem.rows,
            problem.task,
            table,
            int(starts[s]) - first,
            fitted,
            columns=ends,
            side_weights=weigh,
            states=states,
            n_threads=problem.n_threads,
        )
        s = beyond
        report(int(starts[s]) - first)


def _scatter(part: Weights, places: NDArray[np.intp], fitted: Weights) -> None:
    """Machines fitted by themselves, put into their places."""
    fitted.weights[:-1, places] = part.coefficients
    for name in ("intercepts", "gaps", "epochs"):
        getattr(fitted, name)[places] = getattr(part, name)
