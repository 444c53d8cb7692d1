"""Linear machines: support vector machines and logistic regression for thousands of columns, over one shared X."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from .._check import check_memory, integer, jobs, one_of, plural, real, unknown_name
from .._kernels.linear import CsrRows, Reals, Rows, Task, Weights
from ..columns import Columns
from . import _weights
from ._base import Learner, Output
from ._linear_fit import LinearProblem, fit_machines
from ._machine_learner import MachineLearner
from ._rows import as_rows, shape_of, take_rows
from .calibration import HeldOut, held_out_rows
from .linear_model import LinearModel, seen_symbols
from .machines import STRATEGIES, Machines

_LOSSES = ("squared_hinge", "hinge", "logistic")
_HELD_OUT = 0.2  # share of the rows that temperatures are fitted on
_HELD_OUT_TOL = 1e-2  # of the machines that they are fitted for
_NAMED = 5  # columns that a warning names
_MOST_SCALING = 1e9  # of the intercept: its square must be a number beside the features'


class _Left(NamedTuple):
    """What a fit by descent leaves for the next one: dual variables, and what they are of."""

    states: Reals
    kind: str
    columns: Columns

    def fits(self, kind: str, columns: Columns, weights: Reals) -> bool:
        """Whether another fit may go on from it."""
        same = self.kind == kind and self.states.dtype == weights.dtype and self.states.shape[1] == weights.shape[1]
        return same and self.columns.code == columns.code and np.array_equal(self.columns.y, columns.y)


class Linear(MachineLearner):
    """Linear machines for all columns, by dual coordinate descent or Newton's method over one X.

    The objective of a machine is LIBLINEAR's: 1/2 ||w||^2 + C sum_i weight_i loss(s_i (w x_i + b)), with s_i the side
    of row i; rows of classes that a column leaves UNUSED take no part.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge", "logistic"}, default="squared_hinge"
        The loss of a machine. "crammer_singer" has a hinge of its own and does not read it.
    C : float, default=1.0
        The weight of the losses against the size of the weights.
    strategy : {"ovr", "ovo", "crammer_singer"}, default="ovr"
        How a column of N symbols is learnt: each symbol against the others, every pair of symbols (votes, as LIBSVM
        does with more than two classes), or all N machines together. Of two symbols "ovr" and "ovo" make one machine.
    fit_intercept : bool, default=True
        Whether machines have an intercept.
    intercept_scaling : float, default=1.0
        The intercept is the weight of a feature of this constant value, and so penalised; inf: it is free of penalty,
        as in LIBSVM.
    class_weight : {"balanced", "balanced_symbols"} or dict, optional
        "balanced": all classes weigh alike. "balanced_symbols": both sides of each machine do. A dict gives weights to
        labels.
    tol : float, default=1e-3
        A machine stops when its duality gap is at most this part of its objective: no machine is better by more. With a
        free intercept that is an estimate, which takes the intercept to be wrong by about its own size at most.
    max_epochs : int, default=1000
        Passes over the rows (or Newton's steps) after which a machine stops all the same; a ConvergenceWarning says so.
    warm_start : bool, default=False
        Whether `fit` goes on from the machines that the last one left, where they are as many and of as many features.
        The descent also needs the same labels in the same order, and keeps a number for each row and machine.
    calibrate : bool, default=True
        Whether each column gets a temperature, fitted on a fifth of the rows with machines that have not seen them, so
        that its log-probabilities can be trusted. That takes about another fit, more for very many columns.
    n_jobs : int, optional
        Threads; None leaves it to NaryClassifier.

    Machines work in the precision of X: float32 takes half the time and memory of float64, and reaches gaps of about
    1e-4. Features should be of similar size, as for any linear machine with a penalty.

    Attributes
    ----------
    weights_ : ndarray or CSR matrix of shape (n_features, n_machines)
        The machines, column by column of the code; `coef(s)` and `intercept(s)` give those of one column.
    intercepts_ : ndarray of shape (n_machines,)
        Their intercepts.
    gaps_, n_epochs_ : ndarray of shape (n_machines,)
        The relative duality gap of each machine, and the passes (or steps) it took.
    temperatures_ : ndarray of shape (n_columns,)
        What a column's scores are divided by before the softmax.
    machines_ : Machines
        Which symbols each machine tells apart.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nary import NaryClassifier, learners
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = NaryClassifier(learners.Linear(), code="ova").fit(X[:1200] / 16, y[:1200])
    >>> clf.score(X[1200:] / 16, y[1200:]) > 0.85
    True
    """

    def __init__(
        self,
        *,
        loss: Literal["squared_hinge", "hinge", "logistic"] = "squared_hinge",
        C: float = 1.0,
        strategy: Literal["ovr", "ovo", "crammer_singer"] = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Literal["balanced", "balanced_symbols"] | dict[Any, float] | None = None,
        tol: float = 1e-3,
        max_epochs: int = 1000,
        warm_start: bool = False,
        calibrate: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.C = C
        self.strategy = strategy
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.tol = tol
        self.max_epochs = max_epochs
        self.warm_start = warm_start
        self.calibrate = calibrate
        self.n_jobs = n_jobs

    @property
    def says(self) -> tuple[Output, ...]:
        if self.calibrate or (self.loss == "logistic" and self.strategy == "ovr"):
            return ("log_probabilities", "symbols", "scores")
        return ("symbols", "scores")

    def check(self) -> None:
        """Refuses parameters out of range."""
        if self.loss not in _LOSSES:
            raise unknown_name("loss", self.loss, _LOSSES)
        if self.strategy not in STRATEGIES:
            raise unknown_name("strategy", self.strategy, STRATEGIES)
        real(self.C, "C", 0, math.inf, "It weighs the losses: 1 is usual.")
        real(self.tol, "tol", 0, 1, "It bounds the duality gap, relative to the objective: 1e-3 is usual.")
        if not (isinstance(self.intercept_scaling, numbers.Real) and self.intercept_scaling == math.inf):
            hint = "inf: the intercept is free of penalty."
            real(self.intercept_scaling, "intercept_scaling", 0, _MOST_SCALING, hint)
        integer(self.max_epochs, "max_epochs", 1, np.iinfo(np.int32).max)
        for name in ("fit_intercept", "warm_start", "calibrate"):
            one_of(getattr(self, name), name, (True, False))
        _weights.check(self.class_weight)
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
        """Fits the machines of all columns."""
        self.check()
        rows, machines = as_rows(X), Machines(columns.code, self.strategy)
        problem = self._problem(rows, columns, sample_weight, seed, self._threads(n_jobs))
        used = Columns(columns.code, columns.y[problem.task.groups >= 0])
        model = LinearModel.empty(machines, used, shape_of(rows)[1], rows.dtype)
        warm, states = self._start(model, columns, problem)
        report = _reporter(machines.n_machines) if verbose else lambda done: None
        fit_machines(problem, machines, 0, machines.n_machines, model.weights, warm=warm, states=states, report=report)
        self._warn_of_gaps(model)
        if self.calibrate:
            model.sharpness[:] *= self._sharpness(problem, machines, columns, model, seed)
        self.model_, self._left = model, None if states is None else _Left(states, self._kind, columns)
        return self

    def resume(self, previous: Learner) -> Self:
        if self.warm_start and isinstance(previous, Linear):
            self.__dict__ |= {name: vars(previous)[name] for name in ("model_", "_left")}
        return self

    @property
    def gaps_(self) -> NDArray[np.float64]:
        """The relative duality gap of each machine."""
        return self.model_.weights.gaps

    @property
    def n_epochs_(self) -> NDArray[np.int32]:
        """The passes over the rows, or Newton's steps, that each machine took."""
        return self.model_.weights.epochs

    def _problem(
        self, rows: Rows, columns: Columns, sample_weight: NDArray[np.float64] | None, seed: int, n_threads: int
    ) -> LinearProblem:
        """The rows, what each costs, and how machines are fitted; rows that cost nothing are left out."""
        weights = _weights.row_weights(self.class_weight, columns, sample_weight)
        costs = np.full(columns.n_rows, self.C) if weights is None else self.C * weights
        of_row = _costs(costs, rows.dtype)
        groups = np.where(of_row > 0, columns.y, -1).astype(np.int32)
        free = self.fit_intercept and self.intercept_scaling == math.inf
        task = Task(
            groups,
            of_row,
            columns.code.n_classes,
            "crammer_singer" if self.strategy == "crammer_singer" else self.loss,
            _typical_size(rows) if free else self.intercept_scaling if self.fit_intercept else 0.0,
            free,
            self.tol,
            int(self.max_epochs),
            seed,
        )
        return LinearProblem(rows, task, self.class_weight == "balanced_symbols", n_threads)

    @property
    def _kind(self) -> str:
        """What the dual variables are of."""
        return "crammer_singer" if self.strategy == "crammer_singer" else f"{self.loss}, {self.strategy}"

    def _start(self, model: LinearModel, columns: Columns, problem: LinearProblem) -> tuple[bool, Reals | None]:
        """Whether the fit begins with what `model` now holds, and the dual variables that it keeps."""
        if not self.warm_start:
            return False, None
        previous: LinearModel | None = getattr(self, "model_", None)
        left: _Left | None = getattr(self, "_left", None)
        states = None
        if not problem.newton:
            fits = left is not None and left.fits(self._kind, columns, model.weights.weights)
            states = left.states if left is not None and fits else self._cold_states(columns.n_rows, model.weights)
            if not fits:
                return False, states
        if previous is None or previous.coefficients.shape != model.coefficients.shape or previous.dtype != model.dtype:
            return False, states
        model.weights.weights[:] = previous.densified().weights.weights
        model.weights.intercepts[:] = previous.weights.intercepts
        return True, states

    def _cold_states(self, n_rows: int, weights: Weights) -> Reals:
        """Dual variables at 0: of the logistic loss it is their logit that is kept."""
        shape, dtype = (n_rows, weights.weights.shape[1]), weights.weights.dtype
        check_memory(
            n_rows * shape[1] * dtype.itemsize,
            f"the state of a warm start ({n_rows:,} rows x {weights.n_machines:,} machines in {dtype.name})",
            "Set warm_start=False, or use fewer columns.",
        )
        lowest = -80 if dtype == np.float32 else -700
        states: Reals = np.full(shape, lowest if self._kind.startswith("logistic") else 0, dtype)
        return states

    def _warn_of_gaps(self, model: LinearModel) -> None:
        """Says which columns have machines that did not reach `tol`."""
        gaps = np.maximum.reduceat(model.weights.gaps, model.machines.starts[:-1])
        late = np.flatnonzero(~(gaps <= self.tol))
        if late.size == 0:
            return
        named = ", ".join(str(s) for s in late[:_NAMED]) + (", ..." if late.size > _NAMED else "")
        precise = " Give X as float64 for gaps below 1e-4." if model.dtype == np.float32 and self.tol < 1e-3 else ""
        warnings.warn(
            f"{late.size} of {plural(gaps.size, 'column')} did not reach tol={self.tol:g} within max_epochs="
            f"{self.max_epochs}: {'column' if late.size == 1 else 'columns'} {named}; the largest relative gap is "
            f"{gaps.max():.2g}, of column {int(gaps.argmax())}. Scale the features, lower C, or raise max_epochs or "
            f"tol.{precise}",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _sharpness(
        self, problem: LinearProblem, machines: Machines, columns: Columns, model: LinearModel, seed: int
    ) -> NDArray[np.float32]:
        """The sharpness of each column, by rows that machines fitted for this purpose have not seen."""
        groups = problem.task.groups.copy()
        held = held_out_rows(problem.rows, groups, _HELD_OUT, seed)
        groups[held] = -1
        task = problem.task._replace(groups=groups, tol=max(self.tol, min(10 * self.tol, _HELD_OUT_TOL)))
        rest = LinearProblem(problem.rows, task, problem.balance_sides, problem.n_threads)
        seen = seen_symbols(Columns(columns.code, columns.y[groups >= 0]))
        rows, weights = take_rows(problem.rows, held), problem.task.costs[held].astype(np.float64) / self.C
        return HeldOut(rest, machines, rows, columns.y[held], weights, seen).sharpness(model.sharpness)


def _typical_size(rows: Rows) -> float:
    """A power of two near the size of a row: what makes the constant feature weigh as much as all others."""
    values = rows.values if isinstance(rows, CsrRows) else rows.ravel()
    square = float(np.einsum("i,i->", values, values, dtype=np.float64)) / max(1, shape_of(rows)[0])
    return float(2.0 ** round(math.log2(square) / 2)) if 0 < square < math.inf else 1.0


def _costs(costs: NDArray[np.float64], dtype: np.dtype[Any]) -> Reals:
    """What each row costs in the machines' precision; a weight of 0 stays 0, no other becomes 0 or infinite."""
    with np.errstate(over="ignore", under="ignore"):
        given = costs.astype(dtype)
    of = np.finfo(dtype)
    wrong = (costs != 0) & ~((given >= of.tiny * 1e6) & (given <= of.max * 1e-12))
    if wrong.any():
        raise ValueError(
            f"C times the weight of a row must lie between {of.tiny * 1e6:.1g} and {of.max * 1e-12:.1g} for rows of "
            f"{dtype}; got {costs[wrong][0]:.3g}. Choose another C, or scale the weights."
        )
    return np.asarray(given)


def _reporter(n_machines: int) -> Callable[[int], None]:
    return lambda done: print(f"[Linear] {done} of {n_machines} machines")  # noqa: T201
