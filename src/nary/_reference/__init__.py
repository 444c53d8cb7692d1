"""Each native kernel in a few lines of NumPy: its definition, and the oracle of its tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

UNUSED = -1


def settle(costs: NDArray[np.float32]) -> NDArray[np.float32]:
    """Costs rounded to multiples of 2^-16; from 64 up a float32 has no finer digits than 2^-17 and stays."""
    fine = np.abs(costs) < 64
    return np.where(fine, np.rint(costs * np.float32(65536)) / np.float32(65536), costs).astype(np.float32)


def fold_costs(
    symbols: NDArray[np.int16], costs: NDArray[np.float32], neutral: NDArray[np.float32], base: float, group: int = 1
) -> NDArray[np.float32]:
    """Class costs (rows, K): base + sum over the columns s that c uses of costs[i, s, symbols[c, s]] - neutral[s].

    `group` columns at a time are added up before they are added to the rest, which in floats is not the same.
    """
    totals = np.zeros((costs.shape[0], symbols.shape[0]), np.float32)
    for first in range(0, symbols.shape[1], group):
        word = np.zeros_like(totals)
        for s in range(first, min(first + group, symbols.shape[1])):
            used = np.flatnonzero(symbols[:, s] != UNUSED)
            word[:, used] += (costs[:, s, :] - neutral[s])[:, symbols[used, s]]
        totals += word
    return settle(totals + np.float32(base))


def fold_symbols(
    symbols: NDArray[np.int16],
    said: NDArray[np.int16],
    profile: NDArray[np.float32],
    neutral: NDArray[np.float32],
    base: float,
    group: int = 1,
) -> NDArray[np.float32]:
    """`fold_costs` of hard symbols: a column that says v charges profile[|v - m|] to symbol m."""
    apart = np.abs(said[:, :, None].astype(np.int64) - np.arange(profile.size))
    return fold_costs(symbols, profile[apart], neutral, base, group)


def distances(words: NDArray[np.integer], absolute: bool) -> NDArray[np.int32]:
    """Distances between all codewords that use every column: sum of |a - b|, or number of unequal symbols."""
    wide = words.astype(np.int32)
    pairs = wide[:, None, :] - wide[None, :, :]
    return np.asarray((np.abs(pairs) if absolute else pairs != 0).sum(axis=2, dtype=np.int32))


def splitmix64(key: int, counter: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Outputs number `counter` of the generator splitmix64 (Steele, Lea and Flood 2014) started at `key`."""
    with np.errstate(over="ignore"):
        z = np.uint64(key) + (counter + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def draw_code(key: int, n_classes: int, n_columns: int, n_symbols: int) -> NDArray[np.int16]:
    """A matrix uniform over the symbols: each output of the generator gives two neighbours in a row."""
    pairs = (n_columns + 1) // 2
    z = splitmix64(key, np.arange(n_classes * pairs, dtype=np.uint64)).reshape(n_classes, pairs)
    halves = np.stack([z >> np.uint64(32), z & np.uint64(0xFFFFFFFF)], axis=2).reshape(n_classes, 2 * pairs)
    return ((halves[:, :n_columns] * np.uint64(n_symbols)) >> np.uint64(32)).astype(np.int16)


def canonical(column: NDArray[np.integer]) -> tuple[int, ...]:
    """A column with its symbols renamed in the order in which they first appear: equal for all relabellings."""
    names: dict[int, int] = {}
    return tuple(names.setdefault(int(symbol), len(names)) for symbol in column)


def draw_candidate(
    seed: int, index: int, n_classes: int, n_columns: int, n_symbols: int, distinct_columns: bool
) -> NDArray[np.int16]:
    """Candidate `index` of a search: constant columns, and those that repeat an earlier one, are drawn again."""
    key = int(splitmix64(seed, np.array([index], np.uint64))[0])
    code = draw_code(key, n_classes, n_columns, n_symbols)
    seen: set[tuple[int, ...]] = set()
    for s in range(n_columns):
        draws = 0
        while max(form := canonical(code[:, s])) == 0 or form in seen:
            draws += 1
            again = int(splitmix64(key ^ 0xFFFFFFFFFFFFFFFF, np.array([draws], np.uint64))[0])
            code[:, s] = draw_code(again, n_classes, n_columns, n_symbols)[:, s]
        if distinct_columns:
            seen.add(form)
    return code


def search_random(
    seed: int,
    n_candidates: int,
    n_classes: int,
    n_columns: int,
    n_symbols: int,
    absolute: bool,
    distinct_columns: bool,
) -> tuple[NDArray[np.int16], int]:
    """The plain search: every candidate measured in full, the first with the largest minimum distance kept."""
    best, best_distance = np.zeros((n_classes, n_columns), np.int16), -1
    for index in range(n_candidates):
        code = draw_candidate(seed, index, n_classes, n_columns, n_symbols, distinct_columns)
        between = distances(code, absolute)
        smallest = int(between[np.triu_indices(n_classes, 1)].min())
        if smallest > best_distance:
            best, best_distance = code, smallest
    return best, best_distance
