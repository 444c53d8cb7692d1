"""What a decoder is: a reading of column outputs as costs of symbols, and of class costs as probabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator

from .._check import real
from ..learners import Output
from ..measures import Distance

# Beyond these, costs that differ by 2^-17 would have equal probabilities in double precision, and log-probabilities of
# large costs might be infinite.
MIN_TEMPERATURE, MAX_TEMPERATURE = 1e-9, 1e9


class Decoder(BaseEstimator, ABC):
    """The cost of class c is the sum over columns s of the cost that column s gives to symbol M[c, s].

    Parameters
    ----------
    temperature : float, default=1.0
        Probabilities are the softmax of -cost / temperature; classes and their order do not depend on it.
    """

    needs: ClassVar[Output]  # what the learner must be able to say
    distance: ClassVar[Distance] = "hamming"  # of codewords: in which the error bound is stated

    def __init__(self, temperature: float = 1.0) -> None:
        self.temperature = temperature

    def check(self) -> None:
        """Refuses parameters out of range."""
        hint = "Probabilities are the softmax of -cost / temperature."
        real(self.temperature, "temperature", MIN_TEMPERATURE, MAX_TEMPERATURE, hint)

    @abstractmethod
    def neutral(self, alphabet: NDArray[np.int16]) -> NDArray[np.float64]:
        """What a column charges to a class that does not use it: (L,)."""

    def probabilities(self, costs: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Class costs (rows, K) as probabilities."""
        return np.asarray(softmax(self._logits(costs), axis=1))

    def log_probabilities(self, costs: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Logarithms of `probabilities`, computed as such: finite where those underflow."""
        return np.asarray(log_softmax(self._logits(costs), axis=1))

    def _logits(self, costs: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        above_least = costs.astype(np.float64) - costs.min(axis=1, keepdims=True)
        return np.asarray(above_least / -float(self.temperature))


class SymbolDecoder(Decoder):
    """A decoder of hard symbols: a column that says v charges `profile[|v - m|]` to symbol m."""

    needs = "symbols"

    @abstractmethod
    def profile(self, n_symbols: int) -> NDArray[np.float64]:
        """The cost of a symbol by how far it lies from the one said: (N,)."""


class TableDecoder(Decoder):
    """A decoder of soft outputs: it reads them as a table with a cost for each symbol of each column."""

    @abstractmethod
    def costs(self, outputs: NDArray[np.float32], alphabet: NDArray[np.int16]) -> NDArray[np.float32]:
        """Outputs of a block of columns as costs, both (rows, columns, N); beyond a column's alphabet none is read."""
