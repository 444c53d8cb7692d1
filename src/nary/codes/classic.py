"""The codes that need no choice: one-vs-all, one-vs-one, and the identity (one column, a symbol a class)."""

from __future__ import annotations

import numpy as np

from ..matrix import MAX_SYMBOLS, CodeMatrix
from ._base import FixedDesign


class OneVsAll(FixedDesign):
    """One column a class: symbol 1 for the class, 0 for all others.

    Notes
    -----
    Any K; N = 2, L = K (two classes have a single column). Minimum Hamming distance 2: no column may err.
    Choose it for learners with comparable scores; decode those, not hard symbols.
    """

    def size(self, n_classes: int) -> tuple[int, int]:
        return 2, 1 if n_classes == 2 else n_classes

    def make_fixed(self, n_classes: int) -> CodeMatrix:
        symbols = np.eye(n_classes, dtype=np.int8)
        return CodeMatrix(symbols[:, 1:] if n_classes == 2 else symbols)


class OneVsOne(FixedDesign):
    """One column a pair of classes; all other classes take no part in it.

    Notes
    -----
    Any K; N = 2, L = K (K - 1) / 2. Minimum Hamming distance (L - 1) / 2 + 1, nearly all of it the constant 1/2 of
    unused entries. Choose it for learners whose cost grows faster than their rows, and for linear ones on few classes.
    """

    def size(self, n_classes: int) -> tuple[int, int]:
        return 2, n_classes * (n_classes - 1) // 2

    def make_fixed(self, n_classes: int) -> CodeMatrix:
        pairs = np.stack(np.triu_indices(n_classes, 1), axis=1)
        L = len(pairs)
        columns = np.repeat(np.arange(L), 2)
        return CodeMatrix.from_entries(pairs.ravel(), columns, np.tile([0, 1], L), n_classes=n_classes, n_columns=L)


class Identity(FixedDesign):
    """The direct classifier as a code: one column in which every class is a symbol of its own.

    Notes
    -----
    K up to 32,767; N = K, L = 1.
    """

    def size(self, n_classes: int) -> tuple[int, int]:
        if n_classes > MAX_SYMBOLS:
            raise ValueError(
                f"the design Identity takes at most {MAX_SYMBOLS} classes, one symbol each; got {n_classes}. "
                "Use the design 'random'."
            )
        return n_classes, 1

    def make_fixed(self, n_classes: int) -> CodeMatrix:
        return CodeMatrix(np.arange(n_classes)[:, None])
