"""The paper's decoders: the class whose codeword is nearest to the symbols that the columns say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._base import SymbolDecoder


class Hamming(SymbolDecoder):
    """Generalised Hamming distance: 1 for a wrong symbol, 0 for the right one, 1/2 where a class is UNUSED.

    Parameters
    ----------
    temperature : float, default=1.0
        Probabilities are the softmax of -distance / temperature.

    Notes
    -----
    Zhou, Tsang, Ho and Mueller, "N-ary Error Correcting Coding Scheme", definition 1. Equal distances go to the first
    class. If every column errs with probability p and then says any other symbol alike, the distance is a
    log-likelihood and the temperature that belongs to it is 1 / log((1 - p)(N - 1) / p).
    """

    distance = "hamming"

    def neutral(self, alphabet: NDArray[np.int16]) -> NDArray[np.float64]:
        return np.full(alphabet.shape, 0.5)

    def profile(self, n_symbols: int) -> NDArray[np.float64]:
        return (np.arange(n_symbols) > 0).astype(np.float64)


class Absolute(SymbolDecoder):
    """Absolute distance |v - m| between the symbol said and the class's own.

    An UNUSED entry costs half of its column's span, (N - 1) / 2, as 0 lies between -1 and +1.

    Parameters
    ----------
    temperature : float, default=1.0
        Probabilities are the softmax of -distance / temperature.

    Notes
    -----
    Zhou, Tsang, Ho and Mueller, "N-ary Error Correcting Coding Scheme", definition 2. It takes symbols for numbers, so
    choose it only where columns err to neighbouring symbols. Equal distances go to the first class.
    """

    distance = "absolute"

    def neutral(self, alphabet: NDArray[np.int16]) -> NDArray[np.float64]:
        return (alphabet.astype(np.float64) - 1) / 2

    def profile(self, n_symbols: int) -> NDArray[np.float64]:
        return np.arange(n_symbols, dtype=np.float64)
