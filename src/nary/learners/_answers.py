"""What a fitted column says of rows, checked: an estimator may be anybody's, and symbols are places in tables."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._base import Output

_ROUNDING = 1e-5  # by which a probability in single precision may miss 0 or 1


class Constant(NamedTuple):
    """A column whose training rows all have one symbol: it can only say that."""

    symbol: int


class Column(NamedTuple):
    """A fitted column: its estimator, its place in the code, and how many symbols it has there."""

    estimator: Any
    place: int
    n_symbols: int

    def answer(self, X: Any, what: Output, out: NDArray[Any]) -> None:
        """Writes what the column says into `out`: (rows,) symbols, or (rows, N) where -inf stands already."""
        if what == "symbols":
            out[:] = self.estimator.symbol if isinstance(self.estimator, Constant) else self._symbols(X)
        elif isinstance(self.estimator, Constant):
            out[:, self.estimator.symbol] = 0  # the logarithm of 1
        else:
            soft = self._log_probabilities(X) if what == "log_probabilities" else self._scores(X)
            out[:, self._classes()] = soft
            blank = np.isnan(soft).any(axis=1)
            if blank.any():  # a column that says nothing of a row: all symbols alike
                out[blank, : self.n_symbols] = -np.log(self.n_symbols) if what == "log_probabilities" else 0

    def _symbols(self, X: Any) -> NDArray[Any]:
        said = np.asarray(self.estimator.predict(X))
        if said.shape == (X.shape[0], 1):
            said = said[:, 0]  # the way of catboost
        if said.shape != (X.shape[0],):
            raise self._error("predict", f"one symbol for each row, shape ({X.shape[0]},)", f"shape {said.shape}")
        return self._whole(said, "predict")

    def _classes(self) -> NDArray[Any]:
        classes = np.asarray(getattr(self.estimator, "classes_", None))
        if classes.ndim != 1:
            raise self._error("fit", "an attribute classes_ with the symbols seen", repr(classes.tolist()))
        return self._whole(classes, "classes_").astype(np.intp)

    def _whole(self, said: NDArray[Any], method: str) -> NDArray[Any]:
        """`said`, proven to be symbols of this column."""
        numbers = said
        if said.dtype.kind == "O":  # integers in a column of objects are integers still
            numbers = np.array([value if isinstance(value, (int, np.integer)) else np.nan for value in said], float)
        if numbers.dtype.kind not in "biuf":
            raise self._error(method, f"symbols from 0 to {self.n_symbols - 1}", f"an array of {said.dtype}")
        wrong = ~((numbers >= 0) & (numbers < self.n_symbols))
        if numbers.dtype.kind == "f":
            wrong |= numbers != np.floor(numbers)
        if wrong.any():
            raise self._error(method, f"symbols from 0 to {self.n_symbols - 1}", str(said[wrong][0]))
        return numbers

    def _log_probabilities(self, X: Any) -> NDArray[Any]:
        if hasattr(self.estimator, "predict_log_proba"):
            logs = self._table(self.estimator.predict_log_proba(X), "predict_log_proba", X.shape[0])
            if (logs > _ROUNDING).any():
                raise self._error("predict_log_proba", "logarithms of probabilities, at most 0", f"{np.nanmax(logs):g}")
            return logs
        chances = self._table(self.estimator.predict_proba(X), "predict_proba", X.shape[0])
        outside = (chances < -_ROUNDING) | (chances > 1 + _ROUNDING)
        if outside.any():
            raise self._error("predict_proba", "probabilities from 0 to 1", f"{chances[outside][0]:g}")
        return np.asarray(np.log(np.maximum(chances, 0)))

    def _scores(self, X: Any) -> NDArray[Any]:
        """One score for each symbol seen; a binary decision value d is -d for the first, d for the second."""
        if not hasattr(self.estimator, "decision_function"):
            return self._log_probabilities(X)
        scores = np.asarray(self.estimator.decision_function(X))
        if scores.shape == (X.shape[0],):
            scores = np.stack([-scores, scores], axis=1)
        return self._table(scores, "decision_function", X.shape[0])

    def _table(self, soft: Any, method: str, n_rows: int) -> NDArray[Any]:
        """`soft`, proven to hold a number for each row and each symbol that the estimator knows."""
        table = np.asarray(soft)
        expected = (n_rows, self._classes().size)
        if table.shape != expected or table.dtype.kind not in "iuf":
            wanted = f"one number for each row and each of the {expected[1]} symbols, shape {expected}"
            raise self._error(method, wanted, f"shape {table.shape} of {table.dtype}")
        return table

    def _error(self, method: str, expected: str, given: str) -> ValueError:
        name = type(self.estimator).__name__
        return ValueError(
            f"{method} of the {name} of column {self.place} must give {expected}; got {given}. "
            "Choose an estimator or parameters with which it answers as scikit-learn's classifiers do."
        )
