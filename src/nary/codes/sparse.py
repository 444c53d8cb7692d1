"""The sparse random ternary code: half of the entries UNUSED, the best of many candidates."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from .._check import integer
from ..matrix import CodeMatrix
from ..measures import smallest_length
from ._base import Design, Request, check_cells
from .random import MAX_CANDIDATES

_FEW_COLUMNS = 4096  # so many are listed, for drawing them one by one would take long to find the last
_TRIES = 1_000_000  # draws of one column
_ROWS = 256  # of the distance matrix measured before a candidate may be given up


class Sparse(Design):
    """Entries unused with probability 1/2, else one of two symbols; 15 log2 K columns, the best of `n_candidates`.

    Parameters
    ----------
    n_candidates : int, default=1000
        Matrices drawn; the one with the largest minimum generalised Hamming distance is kept.

    Notes
    -----
    Allwein, Schapire and Singer, "Reducing Multiclass to Binary" (2000). Any K; N = 2. Every column is used by at
    least one class on either side, and every class differs from every other in some column that both use.
    """

    def __init__(self, n_candidates: int = 1000) -> None:
        self.n_candidates = n_candidates

    def make(self, request: Request) -> CodeMatrix:
        K = request.n_classes
        integer(self.n_candidates, "n_candidates", 1, MAX_CANDIDATES)
        if request.n_symbols not in (None, 2):
            raise ValueError(f"the design Sparse has two symbols and UNUSED; got n_symbols={request.n_symbols}.")
        most = _count_columns(K)
        L = request.n_columns or min(int(np.ceil(15 * np.log2(K))), most)
        if L > most:
            raise ValueError(
                f"n_columns must be at most {most}: {K} classes have no more ternary columns that differ; got {L}. "
                "Lower n_columns."
            )
        check_cells(K, 2, L)
        needed = smallest_length(K, 2)
        if L < needed:
            raise ValueError(
                f"n_columns must be at least {needed}: {L} binary columns oppose at most {2**L} classes to each other; "
                f"got {L} for {K} classes. Raise n_columns to {needed} or, to have a code soon, to 15 log2 K."
            )
        best, best_distance = None, -np.inf
        known = _all_columns(K) if most <= _FEW_COLUMNS else None
        for candidate in range(self.n_candidates if most > L else 1):  # with all columns there are, all are alike
            rng = np.random.default_rng([request.seed, candidate])
            signs = _draw(rng, K, L) if known is None else _choose(rng, known, L)
            distance = _min_distance(signs, best_distance)
            if distance > best_distance:
                best, best_distance = signs, distance
        if best is None:
            raise ValueError(
                f"no sparse code of {L} columns that tells {K} classes apart was found in {self.n_candidates} "
                f"candidates. Raise n_columns (15 log2 K is {int(np.ceil(15 * np.log2(K)))}) or n_candidates."
            )
        return CodeMatrix.from_signs(best.astype(np.int8))


def _count_columns(n_classes: int) -> int:
    """Columns over {-1, 0, +1} with both signs present, counted once for either sign: (3^K - 2^(K+1) + 1) / 2."""
    return int((3**n_classes - 2 ** (n_classes + 1) + 1) // 2) if n_classes < 40 else 1 << 62


def _all_columns(K: int) -> NDArray[np.float32]:
    """Every column of K signs that has both, one of each pair of opposites: (columns, K)."""
    signs = np.array(list(itertools.product((0, 1, -1), repeat=K)), np.float32)
    first = signs[np.arange(len(signs)), np.argmax(signs != 0, axis=1)]
    return np.asarray(signs[(first > 0) & (signs.min(axis=1) < 0)])


def _choose(rng: np.random.Generator, columns: NDArray[np.float32], L: int) -> NDArray[np.float32]:
    """L different columns, each as likely as if its entries were drawn: 1/2 for an unused one, 1/4 for either sign."""
    chances = 0.5 ** np.abs(columns).sum(axis=1)
    return columns[rng.choice(len(columns), L, replace=False, p=chances / chances.sum())].T.copy()


def _draw(rng: np.random.Generator, K: int, L: int) -> NDArray[np.float32]:
    """Random signs; a column without both signs, or that repeats an earlier one or its negative, is drawn again."""
    columns = _signs(rng, (L, K))
    seen: set[bytes] = set()
    for s in range(L):
        for _ in range(_TRIES):
            column = columns[s]
            form = (column * column[np.argmax(column != 0)]).tobytes()
            if column.min() < 0 < column.max() and form not in seen:
                break
            columns[s] = _signs(rng, (K,))
        seen.add(form)
    return np.ascontiguousarray(columns.T, dtype=np.float32)


def _signs(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.int8]:
    return np.array([0, 0, -1, 1], np.int8)[rng.integers(0, 4, shape, dtype=np.uint8)]


def _min_distance(signs: NDArray[np.float32], floor: float) -> float:
    """The smallest generalised Hamming distance, (L - a.b) / 2; -inf if two classes never oppose each other.

    Given up, with what was found so far, once it is not above `floor`.
    """
    K, L = signs.shape
    smallest = np.inf
    used = np.abs(signs)
    for first in range(0, K - 1, _ROWS):
        rows = slice(first, min(first + _ROWS, K - 1))
        products = signs[rows] @ signs[first + 1 :].T
        opposed = (used[rows] @ used[first + 1 :].T) > products
        above = np.arange(products.shape[1]) >= np.arange(products.shape[0])[:, None]
        if not opposed[above].all():
            return -np.inf
        smallest = min(smallest, float((L - products[above].max()) / 2))
        if smallest <= floor:
            break
    return smallest
