"""Why a class was chosen: what each column said, beside the codewords of the two best classes."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._check import plural
from ..matrix import UNUSED, CodeMatrix

_LINES = 40  # columns that the text and the HTML form list


@dataclass(frozen=True, eq=False)
class Explanation:
    """One prediction, column by column: the symbol said, and those of the winner and of the runner-up."""

    classes: NDArray[Any]  # the winner and the runner-up
    costs: NDArray[np.float32]  # of these two
    said: NDArray[np.int16]  # (L,)
    winner: NDArray[np.int16]  # (L,); -1 where the class takes no part
    runner_up: NDArray[np.int16]

    @classmethod
    def of(
        cls, code: CodeMatrix, labels: NDArray[Any], costs: NDArray[np.float32], said: NDArray[np.int16]
    ) -> Explanation:
        """The explanation of one row's class costs (K,) and symbols (L,)."""
        best = np.argsort(costs, kind="stable")[:2]
        return cls(labels[best], costs[best], said, *(code.word(int(c)) for c in best))

    @property
    def deciding(self) -> NDArray[np.intp]:
        """The columns in which the two classes differ and one of them has the symbol said."""
        return np.flatnonzero((self.winner != self.runner_up) & (self.supports(0) | self.supports(1)))

    def supports(self, which: int) -> NDArray[np.bool_]:
        """The columns that say the winner's symbol (0) or the runner-up's (1)."""
        return np.asarray(self.said == (self.winner, self.runner_up)[which])

    def _heading(self) -> str:
        first, second = self.classes
        for_first, for_second = (int(self.supports(k)[self.deciding].sum()) for k in (0, 1))
        return (
            f"{first!s} (cost {self.costs[0]:.4g}) before {second!s} (cost {self.costs[1]:.4g}): of "
            f"{plural(self.said.size, 'column')}, {plural(self.deciding.size, 'column')} decide between them, "
            f"{for_first} for {first!s} and {for_second} for {second!s}"
        )

    def _rows(self) -> list[list[str]]:
        def text(symbol: int) -> str:
            return "·" if symbol == UNUSED else str(symbol)

        return [
            [str(s), *(text(int(word[s])) for word in (self.said, self.winner, self.runner_up))]
            for s in self.deciding[:_LINES]
        ]

    def __str__(self) -> str:
        names = ["column", "said", *map(str, self.classes)]
        widths = [max(len(name), 6) for name in names]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in [names, *self._rows()]
        ]
        more = self.deciding.size - _LINES
        return "\n".join([self._heading(), *lines, *([f"and {plural(more, 'more column')}"] if more > 0 else [])])

    def _repr_html_(self) -> str:
        names = ["column", "said", *map(str, self.classes)]
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in self._rows())
        return f"<div><p>{escape(self._heading())}</p><table><tr>{head}</tr>{body}</table></div>"
