"""Code designs by name: `build` makes a CodeMatrix, `names` lists the designs."""

from __future__ import annotations

import numbers
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from .._check import integer, jobs, unknown_name
from ..matrix import CodeMatrix
from ._base import Design, FixedDesign, Request, auto_symbols
from .classic import Identity, OneVsAll, OneVsOne
from .random import Dense, Random
from .sparse import Sparse

__all__ = [
    "Dense",
    "Design",
    "FixedDesign",
    "Identity",
    "OneVsAll",
    "OneVsOne",
    "Random",
    "Request",
    "Sparse",
    "auto_symbols",
    "build",
    "names",
]

_DESIGNS: dict[str, type[Design]] = {
    "dense": Dense,
    "identity": Identity,
    "ova": OneVsAll,
    "ovo": OneVsOne,
    "random": Random,
    "sparse": Sparse,
}


def names() -> list[str]:
    """The designs that `build` and NaryClassifier know by name."""
    return sorted(_DESIGNS)


def build(
    code: str | Design | CodeMatrix | ArrayLike,
    *,
    n_classes: int | None = None,
    n_symbols: int | str = "auto",
    n_columns: int | str = "auto",
    max_symbols: int | None = None,
    randomised: bool = False,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> CodeMatrix:
    """A code by name, by design, or from a matrix of one's own.

    Parameters
    ----------
    code : str, design, CodeMatrix or array-like of int
        A name from `names()`, an instance of a design, or a matrix (-1 for UNUSED).
    n_classes : int, optional
        K; may be left out for a matrix.
    n_symbols, n_columns : int or "auto"
        N and L; "auto" leaves them to the design.
    max_symbols : int, optional
        The most symbols that the learner can tell apart; a rule that chooses N stays below it.
    randomised : bool, default=False
        Whether the learner is itself random, so that a column that repeats another is worth having.
    random_state : int, RandomState or None
        Decides every random draw.
    n_jobs : int, optional
        Threads of a candidate search; the result does not depend on it.

    Returns
    -------
    CodeMatrix

    Examples
    --------
    >>> from nary import codes
    >>> codes.build("ovo", n_classes=4)
    CodeMatrix(n_classes=4, n_columns=6, n_symbols=2, unused=50%)
    """
    K = None if n_classes is None else integer(n_classes, "n_classes", 2)
    N = _size(n_symbols, "n_symbols", 2)
    L = _size(n_columns, "n_columns", 1)
    if max_symbols is not None:
        integer(max_symbols, "max_symbols", 2)
    n_threads = joblib.effective_n_jobs(jobs(n_jobs))
    design = as_design(code)
    if isinstance(design, CodeMatrix):
        return _check_given(design, K, N, L)
    if K is None:
        raise TypeError("n_classes is needed to build a code by design; give n_classes=K, the number of classes.")
    if N is not None and N > K:
        raise ValueError(
            f"n_symbols must be at most the number of classes, {K}; got {N}. Lower n_symbols, or leave it 'auto'."
        )
    low, high = (int(part) for part in check_random_state(random_state).randint(0, 1 << 32, 2, np.uint64))
    seed = high << 32 | low
    return design.make(Request(K, N, L, max_symbols, randomised, seed, n_threads))


def as_design(code: str | Design | CodeMatrix | ArrayLike) -> Design | CodeMatrix:
    """The design or matrix that `code` stands for."""
    if isinstance(code, str):
        if code not in _DESIGNS:
            raise unknown_name("code design", code, names())
        return _DESIGNS[code]()
    if isinstance(code, (Design, CodeMatrix)):
        return code
    if isinstance(code, type):
        raise TypeError(
            f"code must be an instance of a design; got the class {code.__name__}. Write {code.__name__}()."
        )
    if code is None or isinstance(code, numbers.Number):
        raise TypeError(
            f"code must be a name ({', '.join(names())}), a design, or a matrix of symbols; got {code!r}. "
            "Give n_columns or n_symbols for the size of a code."
        )
    return CodeMatrix(code)


def _size(value: int | str, name: str, low: int) -> int | None:
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f"{name} must be an integer of at least {low}, or 'auto'; got {value!r}.")
        return None
    return integer(value, name, low, hint="'auto' leaves it to the design.")


def _check_given(code: CodeMatrix, K: int | None, N: int | None, L: int | None) -> CodeMatrix:
    """A matrix of the user's own fits what else was asked for."""
    if K is not None and code.n_classes != K:
        raise ValueError(
            f"the code must have one row for each of the {K} classes; got {code.n_classes} rows. "
            "Row c is the codeword of the c-th class in sorted order."
        )
    for name, asked, has in (("n_symbols", N, code.n_symbols), ("n_columns", L, code.n_columns)):
        if asked is not None and asked != has:
            raise ValueError(f"the given code has {name}={has}; got {name}={asked}. Leave {name}='auto'.")
    return code
