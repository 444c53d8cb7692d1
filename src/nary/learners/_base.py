"""The learner contract: all columns of a code are fitted at once over one shared X, and say what they can."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ..columns import Columns

Output = Literal["symbols", "scores", "log_probabilities"]


class Learner(BaseEstimator, ABC):
    """Fits the column problems of a code and answers for blocks of rows and columns.

    X reaches a learner checked: a C-contiguous float array or a CSR matrix, held once however many columns there are.
    A subclass stores its parameters in `__init__`; its results depend on `seed` and never on `n_jobs`.
    """

    @property
    @abstractmethod
    def says(self) -> tuple[Output, ...]:
        """The outputs that the columns can give, the one that decodes best first; known before `fit`."""

    @property
    def max_symbols(self) -> int | None:
        """The most symbols that a column can tell apart; None: no limit."""
        return None

    @property
    def randomised(self) -> bool:
        """Whether two columns with the same labels are learnt differently, by the learner's own draws."""
        return False

    @property
    def accepts_missing(self) -> bool:
        """Whether X may hold NaN."""
        return False

    @property
    def accepts_sparse(self) -> bool:
        """Whether X may be a CSR matrix."""
        return True

    def check(self) -> None:
        """Refuses parameters that cannot work; called before any other work is done."""

    @abstractmethod
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
        """Fits all columns; `seed` decides every random draw."""

    def prepare(self, X: Any, *, n_jobs: int | None = None) -> Any:
        """Rows in the form that `outputs` reads: done once for all columns."""
        return X

    def resume(self, previous: Learner) -> Self:
        """Takes over what an earlier fit left, where `fit` is to go on from it; called before `fit`."""
        return self

    @abstractmethod
    def outputs(self, X: Any, what: Output, first: int, last: int, *, n_jobs: int | None = None) -> NDArray[Any]:
        """What columns first..last-1 say of prepared rows.

        "symbols": (rows, columns) int16; else (rows, columns, N) float32 with N the largest alphabet of the whole code,
        -inf where a symbol is beyond the column's alphabet or was never seen by it, and never NaN: a column that says
        nothing of a row gives all its symbols alike.
        """
