"""Ridge regression on sides in closed form: one factorisation for all machines in which the same rows take part.

A machine with the side t_i for row i minimises sum_i u_i (w.x_i + b - t_i)^2 + alpha |w|^2. Let s = sum_i u_i and
q_i = sqrt(u_i / s) (q = 0 without an intercept), P = I - q q', A = P diag(sqrt u) X the weighted rows about their mean,
and r = P diag(sqrt u) t. Then

    primal form, d <= n:   w = (A'A + alpha I)^-1 A'r       1 - h_i = 1 - q_i^2 - a_i'(A'A + alpha I)^-1 a_i
    dual form, n < d:      w = A' (AA' + alpha I)^-1 r      1 - h_i = alpha ((AA' + alpha I)^-1)_ii - q_i^2

where h_i is the leverage of row i: without that row its score would be t_i - (t_i - score_i) / (1 - h_i).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from .._check import check_memory
from ._ridge_rows import EPS, DenseRows, Floats, Gram, Rows, SparseRows, dense_gram, parts
from .machines import Machines

_ENTRIES = 1 << 24  # sides read at a time when machines are grouped
_SCATTERS = 1 << 28  # bytes that the classes' scatter matrices may take
_SCATTER_COST = 16  # adding a class's matrix costs what so many of its rows do (measured: 6 to 12)
_BLURS = 16  # so many times the rounding's blur is added where alpha is too small beside it (4 were ever needed)
_LARGEST = 1e300  # sums of squares stay below
_HINTS = {
    1: "Use learners.Linear, which needs no such matrix, or fewer rows or features.",
    2: "Give calibrate=False, or use learners.Linear, which needs no such matrix.",
}


class RidgeFit(NamedTuple):
    """Machines whose scores are x @ weights + intercepts."""

    weights: NDArray[Any]  # (d, machines)
    intercepts: NDArray[Any]  # (machines,)


class Group(NamedTuple):
    """Machines in which the same classes take part; both ascending."""

    classes: NDArray[np.int32]
    machines: NDArray[np.int64]


def groups(machines: Machines) -> list[Group]:
    """All machines, grouped by the classes that take part in them."""
    K, M = machines.code.n_classes, machines.n_machines
    if machines.strategy != "ovo" and machines.code.is_full:
        return [Group(np.arange(K, dtype=np.int32), np.arange(M))]
    members: dict[bytes, list[int]] = {}
    for part in parts(M, K, _ENTRIES):
        sides = machines.sides(part.start, part.stop)
        for m, (begin, end) in enumerate(pairwise(sides.starts.tolist()), part.start):
            members.setdefault(np.sort(sides.classes[begin:end]).tobytes(), []).append(m)
    return [Group(np.frombuffer(classes, np.int32), np.array(found)) for classes, found in members.items()]


class RidgeProblem:
    """Rows of classes y (0..K-1), of which the system of any set of classes can be made.

    X is a C-contiguous float array or a CSR matrix, alpha > 0. Rows of weight 0 take no part.
    """

    def __init__(
        self,
        X: Any,
        y: NDArray[np.int32],
        n_classes: int,
        *,
        alpha: float,
        fit_intercept: bool = True,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> None:
        self.X = X
        self.y = y
        self.n_classes = n_classes
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.weights = np.ones(y.size) if sample_weight is None else np.asarray(sample_weight, np.float64)
        _check_sizes(self.X, self.weights)
        order = np.argsort(y, kind="stable")
        self._order = order[self.weights[order] > 0]
        self._starts = np.searchsorted(y[self._order], np.arange(n_classes + 1))

    def system(self, classes: NDArray[np.int32] | None = None) -> RidgeSystem:
        """The system of the rows of these classes (ascending; None: of all)."""
        return self._system(np.arange(self.n_classes, dtype=np.int32) if classes is None else classes, None)

    def systems(self, groups: list[Group]) -> Iterator[tuple[Group, RidgeSystem]]:
        """Each group with its system; the classes' scatter matrices are made once and shared where that pays."""
        scatters = _Scatters(self) if self._scatters_pay(groups) else None
        for group in groups:
            yield group, self._system(group.classes, scatters)

    def rows_of(self, classes: Iterable[int]) -> NDArray[np.intp]:
        """The rows of some classes, ascending."""
        return np.sort(np.concatenate([self._order[self._starts[c] : self._starts[c + 1]] for c in classes]))

    def take(self, rows: NDArray[np.intp]) -> Rows:
        """Some rows, ascending, in the form that the solver reads."""
        kind = SparseRows if sp.issparse(self.X) else DenseRows
        return kind(self.X, None if rows.size == self.y.size else rows, self.weights[rows])

    def _system(self, classes: NDArray[np.int32], scatters: _Scatters | None) -> RidgeSystem:
        rows = self.rows_of(classes)
        return _Primal(self, rows, classes, scatters) if self.X.shape[1] <= rows.size else _Dual(self, rows, classes)

    def _scatters_pay(self, groups: list[Group]) -> bool:
        """Whether the rows that groups share cost more than the matrices to be added, and these are no burden."""
        K, d = self.n_classes, self.X.shape[1]
        if 8 * K * d * d > _SCATTERS:
            return False
        sizes = np.diff(self._starts)
        n_rows = np.array([sizes[group.classes].sum() for group in groups])
        n_classes = np.array([group.classes.size for group in groups])
        primal = n_rows >= d
        return bool(n_rows[primal].sum() > self._order.size + _SCATTER_COST * (K + n_classes[primal].sum()))


class RidgeSystem(ABC):
    """The equations of some rows, factorised when first solved, for all machines in which just these rows take part.

    `rows` are their places in X, `classes` the classes that they are of. Targets are tables (K, machines) of a side for
    each class, such as `Sides.table`; what they say of other classes is not read.
    """

    def __init__(
        self, problem: RidgeProblem, rows: NDArray[np.intp], classes: NDArray[np.int32], mean: Floats | None = None
    ) -> None:
        self.rows = rows
        self.classes = classes
        self._dtype = problem.X.dtype
        self._alpha = problem.alpha
        self._free = problem.fit_intercept
        self._y = np.searchsorted(classes, problem.y[rows])
        self._data = data = problem.take(rows)
        self._sizes = np.bincount(self._y, data.weights, classes.size)  # of the classes, by weight
        self._q = data.roots / np.sqrt(data.total) if self._free else np.zeros(rows.size)
        if mean is None:
            mean = data.mean() if self._free else np.zeros(data.n_features)
        self._mean = mean
        data.centre(mean)
        self._rest = mean - data.shift

    def solve(self, targets: NDArray[Any]) -> RidgeFit:
        """The machines of these targets, in the dtype of X."""
        weights, centres = self._machines(self._table(targets))
        return RidgeFit(weights.astype(self._dtype), (centres - self._mean @ weights).astype(self._dtype))

    def leave_one_out(self, targets: NDArray[Any]) -> NDArray[Any]:
        """The score of each of `rows` by the machines that would be fitted without it: (rows, machines).

        Where there is but one row nothing is fitted without it, and its score is 0.
        """
        if self.rows.size <= 1:
            return np.zeros((self.rows.size, targets.shape[1]), self._dtype)
        return self._held_out(self._table(targets))

    def _table(self, targets: NDArray[Any]) -> Floats:
        return targets[self.classes].astype(np.float64)

    def _machines(self, table: Floats) -> tuple[Floats, Floats]:
        """Weights, and scores of the mean row (of 0 without an intercept)."""
        if not self.rows.size:
            return np.zeros((self._data.n_features, table.shape[1])), np.zeros(table.shape[1])
        centres = self._sizes @ table / self._data.total if self._free else np.zeros(table.shape[1])
        return _by_class(self._weights, table), centres

    @cached_property
    def _factor(self) -> Floats:
        """The lower Cholesky factor of the system's matrix."""
        self._check_memory(1)
        factor = _cholesky(self._gram(), self._alpha, 0)
        if factor is None:
            factor = _cholesky(self._gram(), self._alpha, _BLURS)
        if factor is None:
            raise ValueError(
                f"alpha must be larger for these data, whose rows or features depend on each other; got "
                f"{self._alpha:g}. Give a larger alpha, or scale the features."
            )
        return factor

    def _inverse_factor(self) -> Floats:
        self._check_memory(2)
        return np.asarray(lapack.dtrtri(self._factor, lower=1)[0])

    def _check_memory(self, n_matrices: int) -> None:
        n, d = self._data.n_rows, self._data.n_features
        size = min(n, d)
        times = f"{n_matrices} times " if n_matrices > 1 else ""
        what = f"the system of Ridge ({times}{size:,} x {size:,} in float64, for {n:,} rows of {d:,} features)"
        check_memory(8 * n_matrices * size**2, what, _HINTS[n_matrices])

    @abstractmethod
    def _gram(self) -> Gram:
        """A'A or AA'."""

    @abstractmethod
    def _weights(self, table: Floats) -> Floats:
        """The weights of machines with these sides of classes."""

    @abstractmethod
    def _held_out(self, table: Floats) -> NDArray[Any]:
        """`leave_one_out` of two rows or more."""


class _Primal(RidgeSystem):
    """As many equations as features."""

    def __init__(
        self, problem: RidgeProblem, rows: NDArray[np.intp], classes: NDArray[np.int32], scatters: _Scatters | None
    ) -> None:
        self._scatters = scatters
        super().__init__(problem, rows, classes, scatters.mean(classes) if scatters and problem.fit_intercept else None)

    def _gram(self) -> Gram:
        return self._scatters.add(self.classes, self._mean) if self._scatters else self._data.scatter(self._mean)

    @cached_property
    def _sums(self) -> Any:
        """The sum of each class's rows, less the shift: (classes, d)."""
        if self._scatters:
            return self._sizes[:, None] * (self._scatters.means[self.classes] - self._data.shift)
        return self._data.class_sums(self._y, self.classes.size)

    def _weights(self, table: Floats) -> Floats:
        if self._free:  # so that what the rows are shifted by has no say
            table = table - self._sizes @ table / self._data.total
        right = self._sums.T @ table  # A'r
        return np.asarray(lapack.dpotrs(self._factor, right, lower=1)[0])

    @cached_property
    def _spare(self) -> Floats:
        """1 - h of each row; at least what rounding leaves uncertain of it."""
        inverse = self._inverse_factor()
        base = inverse @ self._rest
        leverage = self._q**2
        for part, slab in self._data.slabs(base.size):
            rows = slab @ inverse.T - base
            leverage[part] += self._data.weights[part] * np.einsum("ij,ij->i", rows, rows)
        return np.maximum(1 - leverage, base.size * EPS)

    def _held_out(self, table: Floats) -> NDArray[Any]:
        weights, centres = self._machines(table)
        scores = np.empty((self.rows.size, centres.size), self._dtype)
        for part, slab in self._data.slabs(centres.size):
            sides = table[self._y[part]]
            said = slab @ weights + (centres - self._rest @ weights)
            scores[part] = sides - (sides - said) / self._spare[part, None]
        return scores


class _Dual(RidgeSystem):
    """As many equations as rows: w = A'c with (AA' + alpha I) c = r.

    AA' q = 0 and c'q = 0. So that this one direction is not badly conditioned where alpha is small, `lift` q q' is
    added to the matrix, which changes nothing else.
    """

    _lift = 0.0

    def _gram(self) -> Gram:
        """P Z Z' P + lift q q' with Z = diag(sqrt u) X, by a correction of rank two."""
        gram, q = self._data.gram_of_rows(), self._q
        if not self._free:
            return gram
        self._lift = float(gram.scale.mean())
        v = blas.dsymv(1.0, gram.matrix, q, lower=1)
        added = q @ v + self._lift
        matrix = blas.dsyr2(-1.0, q, v - added / 2 * q, lower=1, a=gram.matrix, overwrite_a=1)
        return Gram(matrix, gram.scale + added * q**2, gram.n_terms)

    def _coefficients(self, table: Floats) -> Floats:
        """c of each machine: (rows, machines)."""
        right = self._centred(self._data.roots[:, None] * table[self._y])
        return self._centred(lapack.dpotrs(self._factor, right, lower=1)[0])

    def _centred(self, values: Floats) -> Floats:
        """P values."""
        return np.asarray(values - np.outer(self._q, self._q @ values))

    def _weights(self, table: Floats) -> Floats:
        return self._data.left((self._data.roots[:, None] * self._coefficients(table)).T).T

    @cached_property
    def _spare(self) -> Floats:
        """(1 - h) / alpha of each row; at least what rounding leaves uncertain of it."""
        inverse = self._inverse_factor()
        diagonal = np.einsum("ij,ij->j", inverse, inverse)
        spare = diagonal - self._q**2 / (self._alpha + self._lift)
        return np.asarray(np.maximum(spare, diagonal.size * EPS * diagonal))

    def _held_out(self, table: Floats) -> NDArray[Any]:
        scores = _by_class(self._coefficients, table)  # times alpha they are the weighted residuals
        scores /= -(self._data.roots * self._spare)[:, None]
        scores += table[self._y]
        return scores.astype(self._dtype, copy=False)


class _Scatters:
    """Each class's scatter about its own mean: the scatter of some classes is their sum, and that of their means."""

    def __init__(self, problem: RidgeProblem) -> None:
        self._sizes = np.zeros(problem.n_classes)
        self.means = np.zeros((problem.n_classes, problem.X.shape[1]))
        self._within = []
        for c in range(problem.n_classes):
            rows = problem.take(problem.rows_of([c]))
            self._sizes[c] = rows.weights.sum()
            self.means[c] = rows.mean()
            rows.centre(self.means[c])
            self._within.append(rows.scatter(self.means[c]))

    def mean(self, classes: NDArray[np.int32]) -> Floats:
        """The mean row of some classes."""
        sizes = self._sizes[classes]
        return np.asarray(sizes @ self.means[classes] / sizes.sum())

    def add(self, classes: NDArray[np.int32], mean: Floats) -> Gram:
        """The scatter of some classes about a mean row."""
        between = np.sqrt(self._sizes[classes])[:, None] * (self.means[classes] - mean)
        matrix, scale, n_terms = dense_gram([between], mean.size, classes.size)
        for c in classes:
            matrix += self._within[c].matrix
            scale += self._within[c].scale
            n_terms += self._within[c].n_terms
        return Gram(matrix, scale, n_terms)


def _by_class(solve: Callable[[Floats], Floats], table: Floats) -> Floats:
    """solve(table), which is linear in the sides of the classes: of one class each, where there are more machines."""
    n_classes, n_machines = table.shape
    return solve(table) if n_machines <= n_classes else solve(np.eye(n_classes)) @ table


def _cholesky(gram: Gram, alpha: float, blurs: float) -> Floats | None:
    """The lower factor of gram + alpha I + blurs, which takes the matrix's place; None if it is not positive."""
    np.einsum("ii->i", gram.matrix)[:] += alpha + blurs * gram.blur()
    factor, failed = lapack.dpotrf(gram.matrix, lower=1, overwrite_a=1)
    return None if failed else np.asarray(factor)


def _check_sizes(X: Any, weights: Floats) -> None:
    """Refuses numbers whose sums of squares, over rows or over features, would overflow."""
    values: Any = X
    if sp.issparse(X):
        values = values.data
    largest = max(float(values.max()), -float(values.min())) if values.size else 0.0
    # A row about the mean is up to twice as large.
    if not 4 * largest * largest * float(weights.sum()) * X.shape[1] < _LARGEST:
        raise ValueError(
            f"X must hold numbers whose weighted squares can be summed in float64; got one of magnitude {largest:.3g} "
            f"and weights up to {weights.max():.3g}. Scale the features, or the weights."
        )
