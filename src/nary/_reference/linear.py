"""Linear machines in plain NumPy: dual coordinate descent as the core does it, bit for bit, and plain objectives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import splitmix64

BATCH = 4  # dense rows whose scores are taken together
PARTIALS = 16  # sums along features are taken in so many parts
HOPE = 2  # an estimated gap so many times too large is worth a measurement
FLUSH = 64  # rows whose losses are added up in the machines' own precision
Reals = NDArray[np.floating[Any]]


class Series(NamedTuple):
    """What exponentials and logarithms of a precision are made of."""

    exp_terms: int
    log_terms: int
    lowest: float
    shift: float
    ln2: tuple[float, float]


_SERIES = {
    "float32": Series(7, 8, -80.0, 1.5 * 2.0**23, (0.693359375, -2.12194440e-4)),
    "float64": Series(13, 17, -700.0, 1.5 * 2.0**52, (6.93147180369123816490e-01, 1.90821492927058770002e-10)),
}


def exp_of(x: Reals) -> Reals:
    """e^x for x <= 0, by the series of the core."""
    dtype = x.dtype.type
    of = _SERIES[x.dtype.name]
    x = np.maximum(x, dtype(of.lowest))
    k = (x * dtype(1.4426950408889634074) + dtype(of.shift)) - dtype(of.shift)
    r = (x - k * dtype(of.ln2[0])) - k * dtype(of.ln2[1])
    total = np.ones_like(x)
    for term in range(of.exp_terms, 0, -1):
        total = total * (r * (dtype(1) / dtype(term))) + dtype(1)
    return np.asarray(np.ldexp(total, k.astype(np.int64)))


def log1p_of(u: Reals) -> Reals:
    """log(1 + u) for 0 <= u <= 1, by the series of the core."""
    dtype = u.dtype.type
    v = u / (dtype(2) + u)
    square, total = v * v, np.zeros_like(u)
    for term in range(_SERIES[u.dtype.name].log_terms - 1, -1, -1):
        total = total * square + dtype(1) / dtype(2 * term + 1)
    return np.asarray(dtype(2) * v * total)


class Rule(NamedTuple):
    """A loss: of a margin and a cost; the dual variable of a state, its dual objective, and the state that is best."""

    loss: Callable[[Reals, Reals], Reals]
    alpha: Callable[[Reals, Reals], Reals]
    dual: Callable[[Reals, Reals], Reals]
    take: Callable[[Reals, Reals, Reals, Any], Reals]
    cold: Callable[[Any], float] = lambda dtype: 0.0


def _take_squared(margin: Reals, state: Reals, cost: Reals, norm: Any) -> Reals:
    twice = norm.dtype.type(2) * cost
    one = norm.dtype.type(1)
    return np.asarray(np.maximum(state - (twice * (margin - one) + state) / (twice * norm + one), norm.dtype.type(0)))


def _take_hinge(margin: Reals, state: Reals, cost: Reals, norm: Any) -> Reals:
    one = norm.dtype.type(1)
    return np.asarray(np.minimum(np.maximum(state - (margin - one) / norm, norm.dtype.type(0)), cost))


def _sigma_of(t: Reals, cost: Reals) -> Reals:
    e = exp_of(np.where(t < 0, t, -t))
    one = e.dtype.type(1)
    return cost * (np.where(t < 0, e, one) / (one + e))


def _entropy(t: Reals, cost: Reals) -> Reals:
    u = np.where(t < 0, t, -t)
    e = exp_of(u)
    return cost * (log1p_of(e) - u * (e / (e.dtype.type(1) + e)))


def _log_loss(margin: Reals, cost: Reals) -> Reals:
    return cost * (np.maximum(-margin, margin.dtype.type(0)) + log1p_of(exp_of(np.where(margin < 0, margin, -margin))))


def _take_logistic(margin: Reals, t: Reals, cost: Reals, norm: Any) -> Reals:
    dtype = t.dtype.type
    span, fixed = norm * cost, margin - norm * _sigma_of(t, cost)
    left = fixed + dtype(0.5) * span >= 0
    b = np.where(left, fixed, -(fixed + span))
    highest = np.minimum(-b, dtype(0))
    u = np.minimum(np.maximum(np.where(left, t, -t), -b - dtype(0.5) * span), highest)
    for _ in range(5):
        e = exp_of(u)
        sigma = e / (dtype(1) + e)
        u = np.minimum(u - (u + b + span * sigma) / (dtype(1) + span * (sigma * (dtype(1) - sigma))), highest)
    u = np.maximum(u, dtype(_SERIES[t.dtype.name].lowest))
    return np.asarray(np.where(left, u, -u))


RULES = {
    "squared_hinge": Rule(
        lambda margin, cost: cost * np.maximum(margin.dtype.type(1) - margin, margin.dtype.type(0)) ** 2,
        lambda state, cost: state,
        lambda state, cost: state - state * state * (state.dtype.type(0.25) / cost),
        _take_squared,
    ),
    "hinge": Rule(
        lambda margin, cost: cost * np.maximum(margin.dtype.type(1) - margin, margin.dtype.type(0)),
        lambda state, cost: state,
        lambda state, cost: state,
        _take_hinge,
    ),
    "logistic": Rule(
        _log_loss, _sigma_of, _entropy, _take_logistic, lambda dtype: _SERIES[np.dtype(dtype).name].lowest
    ),
}


def sum_parts(part: Reals) -> Any:
    """The sum of the parts, by halves."""
    part = part.copy()
    half = part.shape[0] // 2
    while half:
        part[:half] += part[half : 2 * half]
        half //= 2
    return part[0]


def inner(a: Reals, b: Reals) -> Any:
    """The inner product in PARTIALS interleaved parts."""
    part = np.zeros(PARTIALS, a.dtype)
    for f in range(0, a.size, PARTIALS):
        piece = a[f : f + PARTIALS] * b[f : f + PARTIALS]
        part[: piece.size] += piece
    return sum_parts(part)


def shuffled(n: int, seed: int, epoch: int) -> list[int]:
    """The order of an epoch, by Fisher and Yates."""
    order, key = list(range(n)), int(splitmix64(seed, np.array([epoch], np.uint64))[0])
    draws = splitmix64(key, np.arange(n + 1, dtype=np.uint64)).tolist()
    for i in range(n, 1, -1):
        drawn = ((draws[i] >> 32) * i) >> 32
        order[i - 1], order[drawn] = order[drawn], order[i - 1]
    return order


def row_norms(X: Reals, constant: Any, sparse: bool = False) -> Reals:
    """The squares of the rows, the constant feature's included; zeros count as the smallest of the others."""
    stored = [x[x != 0] if sparse else x for x in X]
    norms = np.array([inner(x, x) for x in stored], X.dtype) + constant * constant
    mean = float(np.add.accumulate(norms.astype(np.float64))[-1]) / norms.size if norms.size else 0.0
    least = max(norms[norms > 0].min(), X.dtype.type(1e-12 * mean)) if mean > 0 else X.dtype.type(1)
    return np.asarray(np.maximum(norms, least))


class Descended(NamedTuple):
    """Weights (features + 1, machines), the constant feature's last; relative gaps; epochs taken."""

    weights: Reals
    gaps: NDArray[np.float64]
    epochs: NDArray[np.int32]


def descend(
    X: Reals,
    signs: NDArray[np.int8],
    costs: Reals,
    *,
    loss: str,
    constant: float = 1.0,
    tol: float = 1e-3,
    max_epochs: int = 1000,
    seed: int = 0,
    sparse: bool = False,
) -> Descended:
    """Dual coordinate descent for machines whose sides of every row are `signs` (rows, machines).

    `sparse`: X is visited row by row, as one in CSR form is.
    """
    rule, dtype = RULES[loss], X.dtype.type
    members = np.flatnonzero((signs != 0).any(axis=1))
    norms = row_norms(X, dtype(constant), sparse)[members]
    X, signs, costs = X[members], signs[members], costs[members]
    n, m = signs.shape
    weights = np.zeros((X.shape[1] + 1, m), X.dtype)
    states = np.full((n, m), rule.cold(X.dtype), X.dtype)
    out = Descended(np.zeros_like(weights), np.zeros(m), np.zeros(m, np.int32))
    left = (signs > 0).any(axis=0) & (signs < 0).any(axis=0)
    for epoch in range(1, max_epochs + 1):
        if not left.any():
            break
        sums = _sweep(rule, X, signs, costs, norms, dtype(constant), weights, states, shuffled(n, seed, epoch), sparse)
        half = np.add.accumulate(0.5 * weights.astype(np.float64) ** 2, axis=0)[-1]
        seems = _gap(*sums, half) <= HOPE * tol
        lost = _measure(rule, X, signs, costs, dtype(constant), weights, sparse)
        gaps = _gap(lost, sums[1], half)
        done = left & ((seems & (gaps <= tol)) | (epoch == max_epochs))
        out.weights[:, done], out.gaps[done], out.epochs[done] = weights[:, done], gaps[done], epoch
        left &= ~done
    return out


def _gap(lost: NDArray[np.float64], dual: NDArray[np.float64], half: NDArray[np.float64]) -> NDArray[np.float64]:
    primal = lost + half
    return np.where(primal > 0, np.maximum(0, (primal - (dual - half)) / np.where(primal > 0, primal, 1)), 0)


def _scores(X: Reals, constant: Any, weights: Reals) -> Reals:
    """Scores of rows, feature after feature."""
    total = np.broadcast_to(constant * weights[-1], (X.shape[0], weights.shape[1])).copy()
    for f in range(X.shape[1]):
        total += weights[f] * X[:, f, None]
    return total


def _sweep(
    rule: Rule,
    X: Reals,
    signs: NDArray[np.int8],
    costs: Reals,
    norms: Reals,
    constant: Any,
    weights: Reals,
    states: Reals,
    order: list[int],
    sparse: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """One pass: the losses as the rows were met, and the dual objective but for the weights' part."""
    step = 1 if sparse else BATCH
    parts, totals = np.zeros((2, weights.shape[1]), X.dtype), np.zeros((2, weights.shape[1]))
    for at in range(0, len(order), step):
        rows = order[at : at + step]
        scores, changes = _scores(X[rows], constant, weights), np.zeros((len(rows), weights.shape[1]), X.dtype)
        for r, i in enumerate(rows):
            for before in range(r):
                scores[r] += (inner(X[rows[before]], X[i]) + constant * constant) * changes[before]
            sign = signs[i].astype(X.dtype)
            cost = np.full(sign.shape, costs[i])
            margin = sign * scores[r]
            after = rule.take(margin, states[i], cost, norms[i])
            alpha = rule.alpha(after, cost)
            changes[r] = sign * (alpha - rule.alpha(states[i], cost))
            states[i] = after
            parts[0] += sign * sign * rule.loss(margin, cost)
            parts[1] += sign * sign * rule.dual(after, cost)
        for change in changes:
            weights[-1] += constant * change
        for change, i in zip(changes, rows, strict=True):
            weights[:-1] += change * X[i][:, None]
        if (at + step) % FLUSH == 0 or at + step >= len(order):
            totals += parts
            parts[:] = 0
    return totals[0], totals[1]


def _measure(
    rule: Rule, X: Reals, signs: NDArray[np.int8], costs: Reals, constant: Any, weights: Reals, sparse: bool
) -> NDArray[np.float64]:
    """The losses under fixed weights."""
    totals = np.zeros(weights.shape[1])
    scores = _scores(X, constant, weights)
    for first in range(0, len(X), FLUSH):
        part = np.zeros(weights.shape[1], X.dtype)
        for i in range(first, min(first + FLUSH, len(X))):
            sign = signs[i].astype(X.dtype)
            part += sign * sign * rule.loss(sign * scores[i], np.full(sign.shape, costs[i]))
        totals += part
    return totals


def objectives(
    X: Reals,
    signs: NDArray[np.int8],
    costs: Reals,
    weights: Reals,
    intercepts: Reals,
    *,
    loss: str,
    constant: float = 1.0,
) -> NDArray[np.float64]:
    """1/2 ||w||^2 + 1/2 (b / constant)^2 + sum of cost * loss, for every machine, in double precision."""
    W, b, sides = (np.asarray(part, np.float64) for part in (weights, intercepts, signs))
    margins = sides * (np.asarray(X, np.float64) @ W + b)
    short = np.maximum(0, 1 - margins)
    lost = {"squared_hinge": short**2, "hinge": short, "logistic": np.logaddexp(0, -margins)}[loss]
    penalty = 0 if np.isinf(constant) or constant == 0 else (b / constant) ** 2
    return np.asarray(0.5 * ((W**2).sum(axis=0) + penalty) + (np.asarray(costs)[:, None] * lost * sides**2).sum(axis=0))


def read_scores(
    scores: Reals, starts: NDArray[np.int64], alphabet: NDArray[np.int16], seen: NDArray[np.uint8], pairs: bool
) -> NDArray[np.float64]:
    """Scores of symbols (rows, columns, N) from those of machines (rows, machines); -inf for a symbol never seen."""
    n_rows, (L, N) = scores.shape[0], seen.shape
    out = np.full((n_rows, L, N), -np.inf)
    for s in range(L):
        mine, n = scores[:, starts[s] : starts[s + 1]], int(alphabet[s])
        if mine.shape[1] == 1:
            out[:, s, :2] = np.concatenate([-mine, mine], axis=1)
        elif pairs:
            out[:, s, :n] = _votes(mine, n, seen[s])
        else:
            out[:, s, :n] = mine
    return np.where(seen[None] == 1, out, -np.inf)


def _votes(scores: Reals, n: int, seen: NDArray[np.uint8]) -> Reals:
    votes, sums, machine = np.zeros((len(scores), n)), np.zeros((len(scores), n), scores.dtype), 0
    for a in range(n):
        for b in range(a + 1, n):
            if seen[a] and seen[b]:
                won = scores[:, machine] > 0
                votes[:, b] += won
                votes[:, a] += ~won
                sums[:, a] -= scores[:, machine]
                sums[:, b] += scores[:, machine]
            machine += 1
    return np.asarray(votes + sums / (3 * (np.abs(sums) + 1)))
