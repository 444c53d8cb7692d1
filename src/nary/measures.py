"""What a code is worth: distances between codewords, column correlation, bounds, and the paper's error bound.

Notation: K classes, L columns, N symbols, rho the minimum distance between two codewords, B-bar the mean column loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from . import _kernels
from ._check import unknown_name

Distance = Literal["hamming", "absolute"]
DISTANCES: tuple[Distance, ...] = ("hamming", "absolute")
_BLOCK_CELLS = 1 << 22  # of a block of rows of the distance matrix
_MAX_SUM = (1 << 31) - 1  # of the distances that the core adds up: longer words are cut
_MAX_CORRELATED = 5000  # columns whose correlations fit in 200 MB


class Code(Protocol):
    """What the measures read of a code matrix."""

    @property
    def n_classes(self) -> int:
        """K."""
        ...

    @property
    def n_columns(self) -> int:
        """L."""
        ...

    @property
    def alphabet(self) -> NDArray[np.int16]:
        """The number of symbols of each column."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether no entry is UNUSED."""
        ...

    @property
    def symbols(self) -> NDArray[np.int16]:
        """The whole matrix."""
        ...

    def entries(self) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int16]]:
        """The used entries: classes, columns, symbols."""
        ...

    def block(self, first: int, last: int) -> NDArray[np.int16]:
        """Some columns of the matrix."""
        ...


def distances(code: Code, distance: str = "hamming", n_threads: int = 1) -> NDArray[np.float64]:
    """Distances between all pairs of codewords: (K, K)."""
    return np.concatenate(list(_distance_rows(code, distance, n_threads)))


def min_distance(code: Code, distance: str = "hamming", n_threads: int = 1) -> float:
    """rho: the smallest distance between two codewords. No K x K array is held."""
    rho, first = math.inf, 0
    for rows in _distance_rows(code, distance, n_threads):
        here = np.arange(rows.shape[0])
        rows[here, first + here] = math.inf
        rho = min(rho, float(rows.min()))
        first += rows.shape[0]
    return rho


def mean_distance(code: Code, distance: str = "hamming", n_threads: int = 1) -> float:
    """The mean distance over the pairs of different classes."""
    total = 0.0
    first = 0
    for rows in _distance_rows(code, distance, n_threads):
        total += float(rows.sum()) - float(np.trace(rows, offset=first))
        first += rows.shape[0]
    return total / (code.n_classes * (code.n_classes - 1))


def _distance_rows(code: Code, distance: str, n_threads: int) -> Iterator[NDArray[np.float64]]:
    """The rows of the distance matrix in blocks; the diagonal is what the definition makes it."""
    if distance not in DISTANCES:
        raise unknown_name("distance", distance, DISTANCES)
    step = max(1, _BLOCK_CELLS // code.n_classes)
    if code.is_full:
        L, width = code.n_columns, _MAX_SUM // int(code.alphabet.max()) // _kernels.TILE * _kernels.TILE
        parts = [_kernels.pad_words(code.block(s, min(s + width, L))) for s in range(0, L, width)]
        for first in range(0, code.n_classes, step):
            last = min(first + step, code.n_classes)
            rows = np.zeros((last - first, code.n_classes))
            for words in parts:
                rows += _kernels.distances(words, first, last, distance == "absolute", n_threads)
            yield rows
    else:
        rows_of = _partial_hamming(code) if distance == "hamming" else _partial_absolute(code)
        for first in range(0, code.n_classes, step):
            yield rows_of(slice(first, min(first + step, code.n_classes)))


def _indicators(code: Code, columns: NDArray[np.int64], width: int, values: Any = 1) -> sp.csr_array:
    """A sparse (K, width) matrix with one value for each entry of the code, in the given columns."""
    classes = code.entries()[0]
    data = np.broadcast_to(np.asarray(values, np.float64), classes.shape)
    return sp.csr_array((data, (classes, columns)), shape=(code.n_classes, width))


def _partial_hamming(code: Code) -> Any:
    """The paper's generalised Hamming distance where classes may be UNUSED.

    It is 1 where both use the column and differ, 0 where both use it and agree, 1/2 where either does not:
    (L - both) / 2 + (both - agree), with `both` and `agree` counted as products of indicator matrices.
    """
    _, columns, symbols = code.entries()
    width = int(code.alphabet.max())
    used = _indicators(code, columns, code.n_columns)
    says = _indicators(code, columns * width + symbols, code.n_columns * width)

    def rows_of(rows: slice) -> NDArray[np.float64]:
        both = (used[rows] @ used.T).toarray()
        agree = (says[rows] @ says.T).toarray()
        return np.asarray((code.n_columns - both) / 2 + both - agree)

    return rows_of


def _partial_absolute(code: Code) -> Any:
    """The absolute distance where classes may be UNUSED: the middle of a column's symbols, as 0 is between -1 and +1.

    It is |a - b| where both use the column, half the column's span where one does, 0 where neither does. With T the
    unary form of a symbol (ones below it), |a - b| = a + b - 2 <T_a, T_b>.
    """
    classes, columns, symbols = code.entries()
    spans = (code.alphabet.astype(np.float64) - 1) / 2
    used = _indicators(code, columns, code.n_columns)
    values = _indicators(code, columns, code.n_columns, symbols.astype(np.float64))
    halves = _indicators(code, columns, code.n_columns, spans[columns])
    span = np.asarray(halves.sum(axis=1)).ravel()
    width = int(code.alphabet.max())
    steps = np.repeat(np.arange(symbols.size), symbols)
    heights = np.arange(steps.size) - np.repeat(np.cumsum(symbols) - symbols, symbols)
    places = (columns[steps] * width + heights, classes[steps])
    unary = sp.csr_array((np.ones(steps.size), places[::-1]), shape=(code.n_classes, code.n_columns * width))

    def rows_of(rows: slice) -> NDArray[np.float64]:
        between = (values[rows] @ used.T + used[rows] @ values.T - 2 * (unary[rows] @ unary.T)).toarray()
        one_alone = span[rows, None] + span[None, :] - 2 * (halves[rows] @ used.T).toarray()
        return np.asarray(between + one_alone)

    return rows_of


def column_correlation(code: Code) -> NDArray[np.float64]:
    """Pearson correlation between the columns: (L, L). UNUSED counts as the middle of a column's symbols."""
    L = code.n_columns
    if L > _MAX_CORRELATED:
        raise ValueError(
            f"column_correlation of {L} columns would hold {L} x {L} numbers ({8 * L * L / 1e9:.1f} GB); expected at "
            f"most {_MAX_CORRELATED}. Measure a part of the columns: "
            f"CodeMatrix(code.block(0, {_MAX_CORRELATED}), alphabet=N)."
        )
    symbols = code.block(0, L).astype(np.float64)
    middle = (code.alphabet.astype(np.float64) - 1) / 2
    values = np.where(symbols < 0, middle, symbols)
    values -= values.mean(axis=0)
    scale = np.sqrt((values**2).sum(axis=0))
    scaled = np.divide(values, scale, out=np.zeros_like(values), where=scale > 0)
    correlation: NDArray[np.float64] = np.clip(scaled.T @ scaled, -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def mean_absolute_correlation(code: Code) -> float:
    """The mean of |Pearson correlation| over the pairs of columns; 0 for a single column."""
    L = code.n_columns
    if L < 2:
        return 0.0
    return float((np.abs(column_correlation(code)).sum() - L) / (L * (L - 1)))


def expected_distance(n_columns: int, n_symbols: int, distance: str = "hamming") -> float:
    """The expected distance between two words of a uniformly random code: the paper's two lemmas.

    Hamming: L (1 - 1/N). Absolute: L (N^2 - 1) / (3 N).
    """
    L, N = n_columns, n_symbols
    if distance not in DISTANCES:
        raise unknown_name("distance", distance, DISTANCES)
    return L * (1 - 1 / N) if distance == "hamming" else L * (N * N - 1) / (3 * N)


def plotkin_bound(n_classes: int, n_symbols: int, n_columns: int) -> float:
    """No code of K words has a larger minimum Hamming distance: the mean distance is at most L (1 - 1/N) K / (K - 1).

    Exact for any K: the mean is largest when every column spreads the classes over its symbols as evenly as it can.
    """
    K, N, L = n_classes, n_symbols, n_columns
    small, larger = divmod(K, N)
    agreeing = larger * (small + 1) * small + (N - larger) * small * (small - 1)
    return L * (1 - agreeing / (K * (K - 1)))


def singleton_bound(n_classes: int, n_symbols: int, n_columns: int) -> int:
    """No code of K words has a larger minimum Hamming distance: L - ceil(log_N K) + 1."""
    return n_columns - smallest_length(n_classes, n_symbols) + 1


def smallest_length(n_classes: int, n_symbols: int) -> int:
    """The fewest columns that give K classes different words: ceil(log_N K), in integers."""
    if n_symbols < 2:
        raise ValueError(f"words need at least 2 symbols; got {n_symbols}.")
    length, words = 1, n_symbols
    while words < n_classes:
        length, words = length + 1, words * n_symbols
    return length


def count_columns(n_classes: int, n_symbols: int, most: int = 1 << 62) -> int:
    """How many columns of up to N symbols differ by more than relabelling and are not constant (at most `most`).

    That is the number of ways to cut K classes into 2 to N groups: a sum of Stirling numbers of the second kind.
    """
    if n_symbols >= 2 and n_classes - 1 > most.bit_length():  # two groups alone: 2^(K-1) - 1 ways
        return most
    groups = [1] + [0] * min(n_symbols, n_classes)
    for _ in range(n_classes):
        groups = [0] + [min(j * groups[j] + groups[j - 1], most) for j in range(1, len(groups))]
    return min(sum(groups[2:]), most)


@dataclass(frozen=True)
class ErrorBound:
    """The paper's bound on the error rate of distance decoding, 2 L B-bar / rho, beside what was observed."""

    distance: str
    rho: float
    mean_loss: float
    n_columns: int
    observed_error: float
    decoding_error: float

    @classmethod
    def of(
        cls,
        code: Code,
        distance: Distance,
        apart: NDArray[np.floating[Any]],
        labels: NDArray[np.integer[Any]],
        decoded: NDArray[np.integer[Any]],
        observed: NDArray[np.integer[Any]],
    ) -> ErrorBound:
        """From each row's distance to the codeword of its class, its class, the nearest one, and the one predicted.

        A row's losses over all columns add up to its distance to the codeword of its class, so that L B-bar is the
        mean of that distance.
        """
        mean_loss = float(apart.mean(dtype=np.float64)) / code.n_columns
        rho = min_distance(code, distance)
        return cls(distance, rho, mean_loss, code.n_columns, _rate(observed != labels), _rate(decoded != labels))

    @property
    def bound(self) -> float:
        """2 L B-bar / rho; above 1 it says nothing."""
        return error_bound(self.rho, self.mean_loss, self.n_columns)

    def __str__(self) -> str:
        return (
            f"rho = {self.rho:g} ({self.distance}), B-bar = {self.mean_loss:.4f}, L = {self.n_columns}: "
            f"error <= 2 L B-bar / rho = {self.bound:.4f}; observed {self.observed_error:.4f} "
            f"({self.distance} decoding: {self.decoding_error:.4f})"
        )


def error_bound(rho: float, mean_loss: float, n_columns: int) -> float:
    """The paper's theorem: the error rate of distance decoding is at most 2 L B-bar / rho."""
    if rho <= 0:
        raise ValueError(f"the bound needs a minimum distance above 0; got {rho:g}: two classes share a codeword.")
    return 2 * n_columns * mean_loss / rho


def _rate(wrong: NDArray[np.bool_]) -> float:
    return float(wrong.mean())
