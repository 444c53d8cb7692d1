"""Ridge machines: least squares with a penalty, in closed form, all columns from one factorisation."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from .._check import jobs, one_of, real
from .._kernels import linear as kernels
from .._kernels.linear import Rows
from ..columns import Columns
from . import _weights
from ._base import Output
from ._machine_learner import MachineLearner
from ._ridge_solver import RidgeProblem, RidgeSystem, groups
from ._rows import as_rows, row_marks, shape_of, take_rows, to_scipy
from .calibration import GRID, best_sharpness, losses
from .linear_model import LinearModel, column_machines
from .machines import Machines

_BLOCK_BYTES = 1 << 26  # of the left-out scores of a run of machines


class Ridge(MachineLearner):
    """Ridge machines for all columns: each symbol against the others of its column, by least squares to +1 and -1.

    Columns in which the same classes take part share one factorisation; of a code that uses all classes everywhere
    there is one, and each further column costs little. BLAS works with one thread, so that threads do not change the
    weights; its last bits may differ between kinds of CPU.

    Parameters
    ----------
    alpha : float, default=1.0
        The penalty on the squared weights; the intercept is free of it.
    fit_intercept : bool, default=True
        Whether machines have an intercept.
    class_weight : {"balanced"} or dict, optional
        "balanced": all classes weigh alike. A dict gives weights to labels.
    calibrate : bool, default=True
        Whether each column gets a temperature, by the scores that every row would have were it left out; they come from
        the same factorisation.
    n_jobs : int, optional
        Threads of prediction; None leaves it to NaryClassifier.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features, n_machines)
        The machines, column by column of the code; `coef(s)` and `intercept(s)` give those of one column.
    intercepts_ : ndarray of shape (n_machines,)
        Their intercepts.
    temperatures_ : ndarray of shape (n_columns,)
        What a column's scores are divided by before the softmax.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nary import NaryClassifier, learners
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = NaryClassifier(learners.Ridge(), code="ovo").fit(X[:1200], y[:1200])
    >>> clf.score(X[1200:], y[1200:]) > 0.85
    True
    """

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        class_weight: Literal["balanced"] | dict[Any, float] | None = None,
        calibrate: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.n_jobs = n_jobs

    @property
    def says(self) -> tuple[Output, ...]:
        return ("log_probabilities", "symbols", "scores") if self.calibrate else ("symbols", "scores")

    def check(self) -> None:
        """Refuses parameters out of range."""
        real(self.alpha, "alpha", 0, math.inf, "It is the penalty on the weights: 1 is usual.")
        one_of(self.fit_intercept, "fit_intercept", (True, False))
        one_of(self.calibrate, "calibrate", (True, False))
        _weights.check(self.class_weight)
        if str(self.class_weight) == "balanced_symbols":
            raise ValueError(
                "class_weight='balanced_symbols' would need a factorisation for every machine; got it for Ridge. "
                "Choose 'balanced', or learners.Linear."
            )
        jobs(self.n_jobs)

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
        """Solves for the machines of all columns."""
        self.check()
        rows, machines = as_rows(X), Machines(columns.code, "ovr")
        weights = _weights.row_weights(self.class_weight, columns, sample_weight)
        used = columns.y if weights is None else columns.y[weights > 0]
        model = LinearModel.empty(machines, Columns(columns.code, used), shape_of(rows)[1], rows.dtype)
        rows, y, weights = _merged(rows, columns.y, weights)
        problem = RidgeProblem(
            to_scipy(rows),
            y,
            columns.code.n_classes,
            alpha=float(self.alpha),
            fit_intercept=bool(self.fit_intercept),
            sample_weight=weights,
        )
        sums, counts = np.zeros((columns.n_columns, GRID.size)), np.zeros(columns.n_columns)
        with threadpool_limits(1, "blas"):
            self._solve(problem, machines, y, weights, model, (sums, counts))
        if self.calibrate:
            model.sharpness[:] *= best_sharpness(sums, counts)
        self.model_ = model
        return self

    def _solve(
        self,
        problem: RidgeProblem,
        machines: Machines,
        y: NDArray[np.int32],
        weights: NDArray[np.float64] | None,
        model: LinearModel,
        into: tuple[NDArray[np.float64], NDArray[np.float64]],
    ) -> None:
        """Solves for all machines, and adds up what their columns lose at each sharpness."""
        for group, system in problem.systems(groups(machines)):
            for run in _runs(machines, group.machines, y.size):
                table = machines.sides(run[0], run[-1] + 1).table(machines.code.n_classes)[:, run - run[0]]
                solved = system.solve(table)
                model.weights.weights[:-1, run], model.weights.intercepts[run] = solved.weights, solved.intercepts
                if self.calibrate:
                    self._lose(system, table, run, y, weights, model, into)

    def _lose(
        self,
        system: RidgeSystem,
        table: NDArray[np.int8],
        run: NDArray[np.intp],
        y: NDArray[np.int32],
        weights: NDArray[np.float64] | None,
        model: LinearModel,
        into: tuple[NDArray[np.float64], NDArray[np.float64]],
    ) -> None:
        """Adds the losses of some machines' columns, each row's score being that of the fit without it."""
        machines, rows = model.machines, system.rows
        scores = np.ascontiguousarray(system.leave_one_out(table))
        weigh = np.ones(rows.size) if weights is None else weights[rows]
        at = np.searchsorted(machines.starts, run, side="right") - 1
        for s in np.unique(at):
            mine = column_machines(machines, model.seen, model.sharpness[s : s + 1], int(s), int(s) + 1)
            said = kernels.answer_scores(np.ascontiguousarray(scores[:, at == s]), mine, "scores")
            symbols = machines.code.block(int(s), int(s) + 1)[y[rows]]
            sums, counts = losses(said, symbols, weigh, model.sharpness[s : s + 1])
            into[0][s], into[1][s] = sums[0], counts[0]


def _merged(
    rows: Rows, y: NDArray[np.int32], weights: NDArray[np.float64] | None
) -> tuple[Rows, NDArray[np.int32], NDArray[np.float64] | None]:
    """Rows that are alike as one that weighs as much: a row is left out with all its copies, or tells nothing."""
    pairs = np.stack([y.astype(np.uint64), row_marks(rows, 0)], axis=1)
    _, first, which = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    if first.size == y.size:
        return rows, y, weights
    totals = np.bincount(which.ravel(), weights, first.size).astype(np.float64)
    order = np.argsort(first)
    return take_rows(rows, first[order]), y[first[order]], totals[order]


def _runs(machines: Machines, members: NDArray[np.intp], n_rows: int) -> list[NDArray[np.intp]]:
    """Some machines in runs of whole columns whose scores of all rows stay within the memory meant for them."""
    columns = np.searchsorted(machines.starts, members, side="right") - 1
    most = max(1, _BLOCK_BYTES // (8 * max(1, n_rows)))
    begins = np.flatnonzero(np.concatenate([[True], np.diff(columns) > 0]))
    runs, first = [], 0
    for begin, end in zip(begins, [*begins[1:], members.size], strict=True):
        if end - first > most and begin > first:
            runs.append(members[first:begin])
            first = int(begin)
    return [*runs, members[first:]]
