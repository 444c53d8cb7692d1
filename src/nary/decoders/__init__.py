"""Decoders by name: what the columns say becomes class costs, and class costs become probabilities."""

from __future__ import annotations

from typing import Any

from .._check import unknown_name
from ..learners import Learner
from ..measures import Distance
from ._base import Decoder, SymbolDecoder, TableDecoder
from .distance import Absolute, Hamming
from .explanation import Explanation
from .fold import Fold, class_totals
from .likelihood import LogLikelihood
from .ranking import smallest

__all__ = [
    "Absolute",
    "Decoder",
    "Explanation",
    "Fold",
    "Hamming",
    "LogLikelihood",
    "SymbolDecoder",
    "TableDecoder",
    "as_decoder",
    "class_totals",
    "distance_decoder",
    "names",
    "smallest",
]

_DECODERS: dict[str, type[Decoder]] = {"absolute": Absolute, "hamming": Hamming, "loglikelihood": LogLikelihood}


def names() -> list[str]:
    """The decoders that NaryClassifier knows by name."""
    return sorted(_DECODERS)


def distance_decoder(distance: Distance) -> SymbolDecoder:
    """The decoder by a distance between codewords, the one that the paper's error bound speaks of."""
    return Absolute() if distance == "absolute" else Hamming()


def as_decoder(decoder: Any, learner: Learner) -> Decoder:
    """The decoder that `decoder` stands for, checked and proven to fit what `learner` can say.

    "auto": log-likelihood for a learner whose log-probabilities say more than its symbols, else Hamming.
    """
    if isinstance(decoder, str):
        if decoder not in (*_DECODERS, "auto"):
            raise unknown_name("decoder", decoder, [*names(), "auto"])
        soft = learner.says[0] == "log_probabilities"
        decoder = _DECODERS[("loglikelihood" if soft else "hamming") if decoder == "auto" else decoder]()
    if isinstance(decoder, type):
        raise TypeError(f"decoder must be an object; got the class {decoder.__name__}. Write {decoder.__name__}().")
    if not isinstance(decoder, Decoder):
        raise TypeError(f"decoder must be a name ({', '.join(names())}, auto) or a decoder; got {decoder!r}.")
    decoder.check()
    if decoder.needs not in learner.says:
        fitting = [name for name, known in sorted(_DECODERS.items()) if known.needs in learner.says]
        raise ValueError(
            f"the decoder {type(decoder).__name__} needs columns that say {decoder.needs}; {learner!r} says "
            f"{', '.join(learner.says)}. Choose one of {', '.join(fitting)}, or another estimator."
        )
    return decoder
