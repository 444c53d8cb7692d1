"""Growing a tree in plain NumPy, each split measured by its definition: the oracle of the native growers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import splitmix64

MISSING = 255
LANES = 64  # features of a block: ties go round by blocks


@dataclass(frozen=True)
class Rules:
    """How the tree grows; the names are those of the core's options."""

    splitter: str = "best"
    entropy: bool = False
    n_thresholds: int = 1
    max_depth: float = math.inf
    max_leaf_nodes: float = math.inf
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    column_features: int = 1 << 23
    split_features: int = 1 << 23
    row_fraction: float = 1.0
    bootstrap: bool = False
    min_impurity_decrease: float = 0.0
    ccp_alpha: float = 0.0
    seed: int = 0


class Split(NamedTuple):
    """A candidate: rows whose bin is at most `last` go left; missing ones go where `missing_left` says."""

    score: float
    tie: tuple[int, int, bool, int]  # of equal scores the smallest wins
    feature: int
    last: int
    missing_left: bool


@dataclass
class Node:
    """A node of the growing tree."""

    rows: NDArray[np.intp]
    depth: int
    symbol: int
    value: float
    split: Split | None = None
    test: tuple[int, bool, int] = (0, False, 0)
    children: list[Node] = field(default_factory=list)

    @property
    def gain(self) -> float:
        """What its split takes off the impurity."""
        return max(0.0, self.split.score - self.value) if self.split else 0.0

    def __iter__(self) -> Iterator[Node]:
        """The node and all below it, in preorder."""
        yield self
        for child in self.children:
            yield from child


class Draws:
    """The core's stream of random numbers."""

    def __init__(self, key: int) -> None:
        self.key, self.counter = key, 0

    def next(self) -> int:
        """64 random bits."""
        number = int(splitmix64(self.key, np.array([self.counter], np.uint64))[0])
        self.counter += 1
        return number

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        return self.next() * n >> 64


def bin_rows(X: NDArray[np.floating], edges: list[NDArray[np.float64]]) -> NDArray[np.uint8]:
    """How many of a feature's edges lie below each value; MISSING for NaN."""
    bins = np.stack([np.searchsorted(mine, X[:, f], side="left") for f, mine in enumerate(edges)], axis=1)
    return np.where(np.isnan(X), MISSING, bins).astype(np.uint8)


def mark_rows(cells: NDArray[np.uint8], zero_bins: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The sum over a row's features of a hash of (feature, bin), zero bins left out."""
    hashes = np.stack([splitmix64(f, cells[:, f].astype(np.uint64)) for f in range(cells.shape[1])], axis=1)
    return np.asarray(np.where(cells == zero_bins, np.uint64(0), hashes).sum(axis=1, dtype=np.uint64))


def whole_weights(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights as whole numbers of at most 20 bits, scaled by a power of two; equal ones are 1."""
    if weights.max() == weights.min():
        return np.ones(weights.shape)
    scaled = np.ldexp(weights, 19 - int(np.floor(np.log2(weights.max()))))
    return np.asarray(np.maximum(1, np.floor(scaled + 0.5)))


class Tree:
    """One column's tree over binned rows, which come sorted by symbol."""

    def __init__(
        self,
        cells: NDArray[np.uint8],
        symbols: NDArray[np.integer],
        centres: list[NDArray[np.float64]],
        rules: Rules,
        column: int = 0,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        self.cells, self.symbols, self.centres, self.rules = cells, symbols, centres, rules
        self.draws = Draws(int(splitmix64(rules.seed, np.array([column], np.uint64))[0]))
        self.weights = np.ones(len(symbols)) if weights is None else whole_weights(weights)
        self.any_missing = bool((cells == MISSING).any())
        rows = self._take_rows()
        self.features = self._take_features()
        self.whole = float(self.weights[rows].sum())
        self.open: list[Node] = []
        self.root = self._grow(rows)

    def splits(self) -> list[tuple[int, bool, int]]:
        """(feature, missing goes left, last bin on the left) of each split, in preorder."""
        return [node.test for node in self.root if node.children]

    def leaves(self) -> list[int]:
        """The symbols of the leaves, in preorder."""
        return [node.symbol for node in self.root if not node.children]

    def _take_rows(self) -> NDArray[np.intp]:
        n, rules = len(self.symbols), self.rules
        wanted = int(max(1, math.floor(rules.row_fraction * n + 0.5)))
        if rules.bootstrap:
            return np.sort(np.array([self.draws.below(n) for _ in range(wanted)]))
        if wanted >= n:
            return np.arange(n)
        taken: list[int] = []
        for i in range(n):
            if self.draws.below(n - i) < wanted - len(taken):
                taken.append(i)
        return np.array(taken)

    def _take_features(self) -> list[int]:
        D, wanted = self.cells.shape[1], self.rules.column_features
        if wanted >= D:
            return list(range(D))
        taken: list[int] = []
        for f in range(D):
            if self.draws.below(D - f) < wanted - len(taken):
                taken.append(f)
        return taken

    def _grow(self, rows: NDArray[np.intp]) -> Node:
        root, n_leaves = self._add(rows, 0), 1
        while self.open and n_leaves < self.rules.max_leaf_nodes:
            node = self._next_open()
            node.children = [self._add(part, node.depth + 1) for part in self._part(node)]
            n_leaves += 1
        self._prune(root)
        return root

    def _next_open(self) -> Node:
        if self.rules.max_leaf_nodes == math.inf:
            return self.open.pop()
        return self.open.pop(int(np.argmax([node.gain for node in self.open])))

    def _add(self, rows: NDArray[np.intp], depth: int) -> Node:
        totals = self._totals(rows)
        node = Node(rows, depth, int(np.argmax(totals)), self._value(totals))
        small = len(rows) < max(2, self.rules.min_samples_split, 2 * self.rules.min_samples_leaf)
        if depth < self.rules.max_depth and not small and np.unique(self.symbols[rows]).size > 1:
            node.split = self._find(rows)
        if node.split and node.gain / self.whole + 1e-15 >= self.rules.min_impurity_decrease:
            self.open.append(node)
        return node

    def _totals(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        totals = np.bincount(self.symbols[rows], self.weights[rows], minlength=int(self.symbols.max()) + 1)
        return totals.astype(np.float64)

    def _value(self, totals: NDArray[np.float64]) -> float:
        """sum c_k^2 / c, or for entropy sum c_k log c_k - c log c."""
        whole = float(totals.sum())
        if not self.rules.entropy:
            return float((totals**2).sum()) / whole
        return float(sum(c * math.log2(c) for c in totals if c > 0)) - whole * math.log2(whole)

    def _find(self, rows: NDArray[np.intp]) -> Split | None:
        first, key = self.draws.below(self.cells.shape[1]), self.draws.next()
        tries: list[tuple[list[int], str]] = [(self.features, self.rules.splitter), (self.features, "best")]
        if self.rules.split_features < len(self.features):
            for k in range(self.rules.split_features):
                other = k + self.draws.below(len(self.features) - k)
                self.features[k], self.features[other] = self.features[other], self.features[k]
            tries.insert(0, (self.features[: self.rules.split_features], self.rules.splitter))
        for features, splitter in tries:
            found = [split for f in features for split in self._candidates(rows, f, splitter, first, key)]
            if found:
                return max(found, key=lambda split: (split.score, tuple(-int(part) for part in split.tie)))
        return None

    def _candidates(self, rows: NDArray[np.intp], f: int, splitter: str, first: int, key: int) -> Iterator[Split]:
        """The splits on a feature that leave enough rows on either side."""
        blocks = -(-self.cells.shape[1] // LANES)
        block, lane = (f // LANES - first // LANES) % blocks, (f % LANES - first % LANES) % LANES
        for last in sorted(set(self._thresholds(rows, f, splitter, key))):
            for missing_left in (False, True)[: 1 + self.any_missing]:
                left = self._goes_left(rows, f, last, missing_left)
                sides = [self._totals(rows[left]), self._totals(rows[~left])]
                if min(left.sum(), (~left).sum()) < self.rules.min_samples_leaf or min(map(np.sum, sides)) <= 0:
                    continue
                yield Split(self._score(*sides), (block, lane, missing_left, last), f, last, missing_left)

    def _score(self, left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
        if self.rules.entropy:
            return self._value(left) + self._value(right)
        n, m = float(left.sum()), float(right.sum())
        return float(((left**2).sum() * m + (right**2).sum() * n) / (n * m))

    def _goes_left(self, rows: NDArray[np.intp], f: int, last: int, missing_left: bool) -> NDArray[np.bool_]:
        bins = self.cells[rows, f].astype(int)
        if last == MISSING:
            return (bins == MISSING) if missing_left else np.ones(len(rows), bool)
        return np.asarray((bins <= last) | (missing_left & (bins == MISSING)))

    def _thresholds(self, rows: NDArray[np.intp], f: int, splitter: str, key: int) -> list[int]:
        bins = self.cells[rows, f]
        if splitter == "best":
            return [int(b) for b in np.unique(bins)]
        if splitter == "sampled":
            ends = np.cumsum(self.weights[rows])
            drawn = [_uniform(key, 0, t) * ends[-1] for t in range(self.rules.n_thresholds)]
            return [int(bins[min(np.searchsorted(ends, there, side="right"), len(rows) - 1)]) for there in drawn]
        known = bins[bins != MISSING]
        if known.size == 0 or known.min() == known.max():
            return [int(known[0])] if known.size else []
        low, high = int(known.min()), int(known.max())
        return [self._between(f, low, high, _uniform(key, f, t)) for t in range(self.rules.n_thresholds)]

    def _between(self, f: int, low: int, high: int, share: float) -> int:
        """The last bin before `high` whose centre is at most so far from `low` to `high`."""
        centres = self.centres[f]
        there = centres[low] * (1 - share) + centres[high] * share
        return low + max(0, int(np.searchsorted(centres[low:high], there, side="right")) - 1)

    def _part(self, node: Node) -> list[NDArray[np.intp]]:
        """The rows of both sides; the split's test is settled between the bins nearest to each other."""
        assert node.split is not None
        _, _, f, last, missing_left = node.split
        left = self._goes_left(node.rows, f, last, missing_left)
        bins = self.cells[node.rows, f]
        low, high = (bins[side & (bins != MISSING)] for side in (left, ~left))
        if low.size == 0:
            last = MISSING
        elif high.size == 0:
            last = MISSING - 1
        elif self.rules.splitter != "random":
            last = self._between(f, int(low.max()), int(high.min()), 0.5)
        if not (bins == MISSING).any():
            weights = self.weights[node.rows]
            missing_left = bool(weights[left].sum() > weights[~left].sum())
        node.test = (f, missing_left, last)
        return [node.rows[left], node.rows[~left]]

    def _prune(self, node: Node) -> float:
        """A branch's impurity and ccp_alpha for each of its leaves; a branch that costs no less than a leaf is cut."""
        as_leaf = -node.value / self.whole + self.rules.ccp_alpha
        if not node.children:
            return as_leaf
        as_branch = sum(self._prune(child) for child in node.children)
        if self.rules.ccp_alpha > 0 and as_leaf <= as_branch + 1e-15:
            node.children = []
            return as_leaf
        return as_branch


def _uniform(key: int, feature: int, t: int) -> float:
    number = np.array([feature << 16 | t], np.uint64)
    return float(int(splitmix64(key, number)[0]) >> 11) * 2.0**-53
