"""Random N-ary codes: the paper's design, the candidate with the furthest words of many drawn uniformly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import _kernels
from .._check import integer, unknown_name
from ..matrix import MAX_SYMBOLS, CodeMatrix
from ..measures import DISTANCES, count_columns, smallest_length
from ._base import DEFAULT_COLUMNS, Design, Request, auto_columns, auto_symbols, check_size

MAX_CANDIDATES = (1 << 31) - 1
_TRIES = 1000  # matrices of distinct words drawn where the plain search found none


class Random(Design):
    """Uniformly random symbols; of `n_candidates` matrices the one with the largest minimum distance.

    Parameters
    ----------
    n_candidates : int, default=1000
        Matrices drawn.
    distance : {"absolute", "hamming"}, default="absolute"
        What the minimum distance is measured in.
    allow_repeats : bool or "auto", default="auto"
        Whether columns may repeat others, which is worth it for learners that are themselves random: "auto" lets those.

    Notes
    -----
    Zhou, Tsang, Ho and Mueller, "N-ary Error Correcting Coding Scheme" (section 3). Any K, 2 <= N <= K,
    L >= log_N K. N left open: a quarter of the classes, at least 3. L left open: 100, or all columns there are
    unless they may repeat.
    With few classes and long codes all candidates are alike; n_candidates=1 is then as good.

    Examples
    --------
    >>> from nary import codes
    >>> code = codes.build("random", n_classes=26, n_symbols=5, n_columns=100, random_state=0)
    >>> code.shape, code.n_symbols
    ((26, 100), 5)
    """

    def __init__(
        self, n_candidates: int = 1000, distance: str = "absolute", allow_repeats: bool | str = "auto"
    ) -> None:
        self.n_candidates = n_candidates
        self.distance = distance
        self.allow_repeats = allow_repeats

    def make(self, request: Request) -> CodeMatrix:
        K = request.n_classes
        N = request.n_symbols or auto_symbols(K, request.n_columns, request.max_symbols)
        repeats = request.randomised if self.allow_repeats == "auto" else self._checked_repeats()
        L = request.n_columns or (max(DEFAULT_COLUMNS, smallest_length(K, N)) if repeats else auto_columns(K, N))
        most = min(K, MAX_SYMBOLS, MAX_SYMBOLS if request.max_symbols is None else request.max_symbols)
        return search(request, N, L, self.n_candidates, self.distance, repeats, most_symbols=most)

    def _checked_repeats(self) -> bool:
        if not isinstance(self.allow_repeats, (bool, np.bool_)):
            raise TypeError(f"allow_repeats must be True, False or 'auto'; got {self.allow_repeats!r}.")
        return bool(self.allow_repeats)


class Dense(Design):
    """The dense random binary code: 10 log2 K columns of two symbols, the best of `n_candidates` matrices.

    Parameters
    ----------
    n_candidates : int, default=1000
        Matrices drawn.

    Notes
    -----
    Allwein, Schapire and Singer, "Reducing Multiclass to Binary" (2000). The paper's "random ECOC".
    """

    def __init__(self, n_candidates: int = 1000) -> None:
        self.n_candidates = n_candidates

    def make(self, request: Request) -> CodeMatrix:
        K = request.n_classes
        if request.n_symbols not in (None, 2):
            raise ValueError(
                f"the design Dense is binary; got n_symbols={request.n_symbols}. Use 'random' for more symbols."
            )
        L = request.n_columns or auto_columns(K, 2, wanted=int(np.ceil(10 * np.log2(K))))
        return search(request, 2, L, self.n_candidates, "hamming", False, most_symbols=2)


def search(
    request: Request, N: int, L: int, n_candidates: int, distance: str, allow_repeats: bool, most_symbols: int
) -> CodeMatrix:
    """The first of the candidates with the largest minimum distance."""
    K = request.n_classes
    integer(n_candidates, "n_candidates", 1, MAX_CANDIDATES)
    if distance not in DISTANCES:
        raise unknown_name("distance", distance, DISTANCES)
    check_size(K, N, L, None if allow_repeats else count_columns(K, N), most_symbols)
    absolute, distinct = distance == "absolute", not allow_repeats
    found = _kernels.search_random(request.seed, n_candidates, K, L, N, absolute, distinct, request.n_threads)
    if found is None or found[1] == 0:
        found = _distinct_words(request.seed, K, L, N, absolute, distinct)
    if found is None:
        raise ValueError(
            f"no code of {K} classes, {L} columns and {N} symbols with distinct words and columns was found in "
            f"{_TRIES} tries, though one may exist. Change n_columns or n_symbols, or give a matrix of your own."
        )
    return CodeMatrix(found[0], alphabet=N)


def _distinct_words(
    seed: int, K: int, L: int, N: int, absolute: bool, distinct_columns: bool
) -> tuple[NDArray[np.int16], int] | None:
    """For codes so short that independent words collide: K different words are drawn from all N^L of them."""
    best: tuple[NDArray[np.int16], int] | None = None
    for attempt in range(_TRIES):
        words = _draw_words(np.random.default_rng([seed, attempt]), K, L, N)
        if not valid_columns(words, distinct_columns):
            continue
        padded = _kernels.pad_words(words)
        between = min(int(_kernels.distances(padded, c, c + 1, absolute)[0, c + 1 :].min()) for c in range(K - 1))
        if best is None or between > best[1]:
            best = words, between
        if attempt >= _TRIES // 100 and best is not None:
            break
    return best


def _draw_words(rng: np.random.Generator, K: int, L: int, N: int) -> NDArray[np.int16]:
    """K different words of L symbols, uniform over the sets of K words."""
    if N**L < 1 << 62:
        numbers = rng.choice(N**L, size=K, replace=False)
        return np.stack([numbers // N**s % N for s in range(L)], axis=1).astype(np.int16)
    words = rng.integers(0, N, (K, L), dtype=np.int16)  # collisions are rarer than 2^-62 K^2
    return words


def valid_columns(symbols: NDArray[np.integer], distinct: bool) -> bool:
    """Whether no column is constant and, if asked, none repeats another under other names for its symbols."""
    if bool((symbols == symbols[0]).all(axis=0).any()):
        return False
    if not distinct:
        return True
    forms = {relabelled(column) for column in symbols.T}
    return len(forms) == int(symbols.shape[1])


def relabelled(column: NDArray[np.integer]) -> bytes:
    """A column with its symbols renamed by first appearance, as bytes: equal for all relabellings."""
    _, first, inverse = np.unique(column, return_index=True, return_inverse=True)
    return bytes(np.argsort(np.argsort(first))[inverse].astype(np.int16))
