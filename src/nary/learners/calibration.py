"""Calibration: how sharp the softmax of a column's scores should be, by what held-out rows say.

A temperature is one over the sharpness.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._kernels import linear as kernels
from .._kernels.linear import LANES, Rows, Weights
from ._linear_fit import LinearProblem, fit_machines
from ._rows import row_marks, shape_of
from .linear_model import column_machines
from .machines import Machines

# Sharpness that is tried, relative to the natural one.
GRID = 2.0 ** np.arange(-5, 7.5, 0.5, dtype=np.float32)
_PRIOR_ROWS = 20  # as many rows of the mean column are added to each column's own
_BLOCK_BYTES = 1 << 25  # of scores that are looked at together
_PORTION_BYTES = 1 << 26  # of the weights, and of the scores, of the columns that are fitted together


def held_out_rows(rows: Rows, groups: NDArray[np.int32], share: float, seed: int) -> NDArray[np.intp]:
    """About a share of the rows of every class (`groups`; -1: the row takes no part), drawn by what is in them.

    Rows that are alike are held out together, so it is the same whether a row comes twice or weighs twice. A class
    keeps the first of its rows.
    """
    used = np.flatnonzero(groups >= 0)
    marks = row_marks(rows, seed)[used]
    pairs, which = np.unique(np.stack([groups[used].astype(np.uint64), marks], axis=1), axis=0, return_inverse=True)
    _, counts = np.unique(pairs[:, 0], return_counts=True)
    place = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
    # Of a class's k-th row: whether the share of k + 1 rows is a whole row more than that of k.
    offset = np.repeat(np.random.default_rng(seed).random(counts.size), counts)
    taken = (np.floor((place + 1) * share + offset) > np.floor(place * share + offset)) & (place > 0)
    return used[taken[which.ravel()]]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Machines fitted without some rows, a portion of columns at a time, and what they say of those rows."""

    problem: LinearProblem  # in which the held-out rows take no part
    machines: Machines
    rows: Rows  # held out
    y: NDArray[np.int32]
    weights: NDArray[np.float64]  # of the held-out rows
    seen: NDArray[np.uint8]  # the symbols that the other rows have: (L, N)

    def sharpness(self, natural: NDArray[np.float32]) -> NDArray[np.float32]:
        """The best sharpness of each column, relative to the natural one; one pass for all columns."""
        parts = [self.losses(first, last, natural[first:last]) for first, last in self._portions()]
        sums, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
        return best_sharpness(sums, counts)

    def losses(
        self, first: int, last: int, natural: NDArray[np.float32]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The losses of columns first..last-1 at each sharpness of the grid, and the weight of the rows that count."""
        begin, end = (int(self.machines.starts[s]) for s in (first, last))
        weights = Weights.empty(shape_of(self.rows)[1], end - begin, self.problem.task.costs.dtype)
        fit_machines(self.problem, self.machines, begin, end, weights)
        columns = column_machines(self.machines, self.seen, natural, first, last)
        scores = kernels.answer(self.rows, weights, 0, columns, "scores", self.problem.n_threads)
        return losses(scores, self.machines.code.block(first, last)[self.y], self.weights, natural)

    def _portions(self) -> list[tuple[int, int]]:
        starts, (n_rows, n_features) = self.machines.starts, shape_of(self.rows)
        widest = max(1, _PORTION_BYTES // (4 * max(1, n_rows) * self.machines.code.n_symbols))
        portions, first = [], 0
        while first < starts.size - 1:
            most = starts[first] + max(LANES, _PORTION_BYTES // (8 * (n_features + 1)))
            last = max(first + 1, int(np.searchsorted(starts, most, side="right")) - 1)
            portions.append((first, min(last, first + widest)))
            first = portions[-1][1]
        return portions


def losses(
    scores: NDArray[np.float32],
    symbols: NDArray[np.int16],
    weights: NDArray[np.float64],
    natural: NDArray[np.float32],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log loss of each column at each sharpness of the grid, (columns, grid), summed over its rows, and their weight.

    `scores` are (rows, columns, N), -inf where a symbol is unknown; `symbols` (rows, columns) are -1 where a row takes
    no part. Rows whose symbol is unknown do not count.
    """
    _, n_columns, N = scores.shape
    own = np.take_along_axis(scores, np.maximum(symbols, 0)[:, :, None].astype(np.intp), axis=2)[:, :, 0]
    rows, places = np.nonzero((symbols >= 0) & np.isfinite(own))
    sums, counts = np.zeros((n_columns, GRID.size)), np.bincount(places, weights[rows], n_columns).astype(float)
    step = max(1, _BLOCK_BYTES // (4 * N))
    for i in range(0, rows.size, step):
        row, place = rows[i : i + step], places[i : i + step]
        below = (scores[row, place] - own[row, place, None]) * natural[place, None]
        highest = below.max(axis=1, keepdims=True)
        for k, sharp in enumerate(GRID):
            lost = highest[:, 0] * sharp + np.log(np.exp((below - highest) * sharp).sum(axis=1))
            sums[:, k] += np.bincount(place, weights[row] * lost, n_columns)
    return sums, counts


def best_sharpness(sums: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float32]:
    """The sharpness of least loss of each column, relative to the natural one; columns of few rows lean on the mean."""
    total = counts.sum()
    if total == 0:
        return np.ones(counts.size, np.float32)
    blended = sums + _PRIOR_ROWS * sums.sum(axis=0) / total
    best = blended.argmin(axis=1)
    inside = np.clip(best, 1, GRID.size - 2)
    left, middle, right = (blended[np.arange(best.size), inside + k] for k in (-1, 0, 1))
    bend = left - 2 * middle + right
    # Between the points of the grid, the vertex of the parabola through the least and its neighbours.
    shift = np.divide(0.5 * (left - right), bend, out=np.zeros_like(bend), where=bend > 0)
    steps = np.where(best == inside, np.clip(shift, -1, 1), 0)
    return np.asarray(GRID[best] * 2.0 ** (0.5 * steps), np.float32)
