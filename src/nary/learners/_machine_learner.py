"""What learners of linear machines share: the fitted machines, what they say, and their weights to look at."""

from __future__ import annotations

import numbers
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._check import integer
from .._kernels.linear import Reals, Rows
from ._base import Learner, Output
from ._rows import as_rows
from .linear_model import LinearModel
from .machines import Machines


class MachineLearner(Learner):
    """A learner whose `fit` leaves a LinearModel in `model_`."""

    model_: LinearModel
    n_jobs: int | None

    def prepare(self, X: Any, *, n_jobs: int | None = None) -> Rows:
        """The rows in the precision of the machines."""
        check_is_fitted(self, "model_")
        return as_rows(X, self.model_.dtype)

    def outputs(self, X: Rows, what: Output, first: int, last: int, *, n_jobs: int | None = None) -> NDArray[Any]:
        """What columns first..last-1 say of prepared rows."""
        return self.model_.outputs(X, what, first, last, self._threads(n_jobs))

    @property
    def weights_(self) -> Any:
        """The weights of all machines: (n_features, n_machines)."""
        return self.model_.coefficients

    @property
    def intercepts_(self) -> Reals:
        """The intercepts of all machines."""
        return self.model_.weights.intercepts

    @property
    def temperatures_(self) -> NDArray[np.float32]:
        """What each column's scores are divided by before the softmax."""
        return np.asarray(1 / self.model_.sharpness)

    @property
    def machines_(self) -> Machines:
        """Which symbols each machine tells apart."""
        return self.model_.machines

    def coef(self, s: int) -> Any:
        """The weights of column s: (machines, n_features)."""
        return self.model_.coefficients[:, self._machines_of(s)].T

    def intercept(self, s: int) -> Reals:
        """The intercepts of column s: (machines,)."""
        return self.model_.weights.intercepts[self._machines_of(s)]

    def sparsify(self, threshold: float = 0.0) -> Self:
        """Keeps only weights larger than `threshold` in size, as a CSR matrix.

        That saves memory where most weights are 0, as after a fit of few rows on very many features.
        A matrix of which more than a third remains is smaller as an array.
        """
        check_is_fitted(self, "model_")
        if isinstance(threshold, bool) or not isinstance(threshold, numbers.Real) or not float(threshold) >= 0:
            raise ValueError(f"threshold must be a number of at least 0; got {threshold!r}. 0 leaves out zeros alone.")
        self.model_ = self.model_.sparsified(threshold)
        return self

    def densify(self) -> Self:
        """Keeps the weights as an array again."""
        check_is_fitted(self, "model_")
        self.model_ = self.model_.densified()
        return self

    def _machines_of(self, s: int) -> slice:
        return self.model_.machines_of(integer(s, "s", 0, self.model_.sharpness.size - 1, "Columns count from 0."))

    def _threads(self, n_jobs: int | None) -> int:
        return int(joblib.effective_n_jobs(self.n_jobs if self.n_jobs is not None else n_jobs))
