"""Decoding by likelihood: the class under whose codeword the columns' probabilities are largest together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._check import real
from ._base import TableDecoder

MIN_NOISE = 1e-30  # noise / N must stay above 0 in float32


class LogLikelihood(TableDecoder):
    """The cost of a symbol is -log of its probability, each column being wrong altogether with probability `noise`.

    Parameters
    ----------
    noise : float, default=0.01
        A column's probabilities p are read as (1 - noise) p + noise / N, so that no column alone can rule a class out.
    temperature : float, default=1.0
        Probabilities are the softmax of -cost / temperature: 1 takes the columns for independent.

    Notes
    -----
    Columns are taken for independent given the class. An UNUSED entry costs log N: a column that says nothing of a
    class gives its symbols equal probabilities.
    """

    needs = "log_probabilities"

    def __init__(self, noise: float = 0.01, temperature: float = 1.0) -> None:
        super().__init__(temperature)
        self.noise = noise

    def check(self) -> None:
        """Refuses parameters out of range."""
        super().check()
        real(self.noise, "noise", MIN_NOISE, 1, "A column errs altogether with probability `noise`.")

    def neutral(self, alphabet: NDArray[np.int16]) -> NDArray[np.float64]:
        return np.log(alphabet.astype(np.float64))

    def costs(self, outputs: NDArray[np.float32], alphabet: NDArray[np.int16]) -> NDArray[np.float32]:
        noise = np.float32(self.noise)
        table = np.exp(outputs)
        table *= 1 - noise
        table += noise / alphabet[None, :, None].astype(np.float32)
        np.log(table, out=table)
        return np.negative(table, out=table)
