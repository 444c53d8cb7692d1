"""What a design is: a small object with parameters that makes a CodeMatrix for a request."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from sklearn.base import BaseEstimator

from ..matrix import MAX_SYMBOLS, CodeMatrix
from ..measures import count_columns, smallest_length

DEFAULT_COLUMNS = 100
_MAX_CELLS = 1 << 31  # of a matrix (4 GB), and columns x symbols: distances are counted in 32 bits


@dataclass(frozen=True)
class Request:
    """What a code is asked for; None leaves a size to the design."""

    n_classes: int
    n_symbols: int | None = None
    n_columns: int | None = None
    max_symbols: int | None = None  # what the learner can tell apart in a column
    randomised: bool = False  # whether the learner's own draws make columns differ that repeat each other
    seed: int = 0
    n_threads: int = 1


class Design(BaseEstimator, ABC):
    """Makes codes. A subclass stores its parameters in `__init__` and checks them in `make`."""

    @abstractmethod
    def make(self, request: Request) -> CodeMatrix:
        """A valid code of the size asked for: distinct codewords, no constant and no repeated column."""


class FixedDesign(Design):
    """A design with one code for each number of classes."""

    @abstractmethod
    def size(self, n_classes: int) -> tuple[int, int]:
        """(n_symbols, n_columns) of the only code for this many classes."""

    @abstractmethod
    def make_fixed(self, n_classes: int) -> CodeMatrix:
        """The only code for this many classes."""

    def make(self, request: Request) -> CodeMatrix:
        N, L = self.size(request.n_classes)
        for name, asked, has in (("n_symbols", request.n_symbols, N), ("n_columns", request.n_columns, L)):
            if asked is not None and asked != has:
                raise ValueError(
                    f"the design {type(self).__name__} has {name}={has} for {request.n_classes} classes; got "
                    f"{name}={asked}. Leave {name}='auto', or choose a design of variable size, such as 'random'."
                )
        return self.make_fixed(request.n_classes)


def auto_symbols(n_classes: int, n_columns: int | None = None, max_symbols: int | None = None) -> int:
    """N where it is left open: a quarter of the classes, at least 3; more where L columns need it for K words.

    The best N grows with K when L is fixed: 3 to 10 for some dozen classes, some hundred for a thousand.
    """
    wanted = max(3, -(-n_classes // 4), 2 if n_columns is None else fewest_symbols(n_classes, n_columns))
    return min(wanted, n_classes, MAX_SYMBOLS, MAX_SYMBOLS if max_symbols is None else max_symbols)


def auto_columns(n_classes: int, n_symbols: int, wanted: int = DEFAULT_COLUMNS) -> int:
    """L where it is left open: `wanted`, or as many columns as differ and words need."""
    return max(min(wanted, count_columns(n_classes, n_symbols, most=wanted)), smallest_length(n_classes, n_symbols))


def check_size(n_classes: int, n_symbols: int, n_columns: int, most: int | None, most_symbols: int) -> None:
    """Refuses sizes for which no valid code exists.

    `most` is the number of columns that differ, None for no limit; `most_symbols` is what may be advised.
    """
    if n_symbols > n_classes:
        raise ValueError(
            f"n_symbols must be at most the number of classes, {n_classes}; got {n_symbols}. "
            "More symbols than classes leave some without a class: lower n_symbols, or use the design 'identity'."
        )
    needed = smallest_length(n_classes, n_symbols)
    if n_columns < needed:
        raise ValueError(
            f"n_columns must be at least {needed} to give {n_classes} classes different codewords of {n_symbols} "
            f"symbols; got {n_columns}. Raise n_columns to {needed}"
            + (
                f", or n_symbols to {enough}."
                if (enough := fewest_symbols(n_classes, n_columns)) <= most_symbols
                else "."
            )
        )
    if most is not None and n_columns > most:
        raise ValueError(
            f"n_columns must be at most {most}: {n_classes} classes have no more columns of up to {n_symbols} symbols "
            f"that differ by more than the names of their symbols; got {n_columns}. Lower n_columns, or, for a learner "
            "that is itself random, use codes.Random(allow_repeats=True)."
        )
    check_cells(n_classes, n_symbols, n_columns)


def check_cells(n_classes: int, n_symbols: int, n_columns: int) -> None:
    """Refuses a code beyond what memory holds and what distances are counted in."""
    most = (_MAX_CELLS - 1) // max(n_classes, n_symbols)
    if n_columns > most:
        raise ValueError(
            f"n_columns must be at most {most} for {n_classes} classes and {n_symbols} symbols, so that the code fits "
            f"in memory; got {n_columns}. Lower n_columns: some hundred are usual."
        )


def fewest_symbols(n_classes: int, n_columns: int) -> int:
    """The fewest symbols with which L columns give K classes different words: the L-th root of K, rounded up."""
    N: int = max(2, math.floor(n_classes ** (1 / n_columns)))
    while smallest_length(n_classes, N) > n_columns:
        N += 1
    return N
