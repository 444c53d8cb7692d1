"""Fitted linear machines: the weights of all columns, and what the columns say by them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._check import check_memory
from .._kernels import linear as kernels
from .._kernels.linear import ColumnMachines, Rows, Weights
from ..columns import Columns
from ._base import Output
from ._rows import shape_of, to_scipy
from .machines import Machines

_BLOCK_BYTES = 1 << 26  # of the scores of sparse weights that are held at once


@dataclass(frozen=True, eq=False)
class LinearModel:
    """The machines of all columns, which symbols each column has met, and how sharp its probabilities are."""

    machines: Machines
    weights: Weights
    seen: NDArray[np.uint8]  # (L, N)
    sharpness: NDArray[np.float32]  # (L,): scores are multiplied by it before the softmax
    sparse: sp.csr_matrix | None = None  # (features, machines), instead of `weights.weights`

    @classmethod
    def empty(cls, machines: Machines, columns: Columns, n_features: int, dtype: Any) -> Self:
        """Room for the machines; refuses what the machine's memory cannot hold."""
        n_machines = machines.n_machines
        check_memory(
            (n_features + 1) * -(-n_machines // kernels.LANES) * kernels.LANES * np.dtype(dtype).itemsize,
            f"W ({n_features:,} features x {n_machines:,} machines in {np.dtype(dtype).name})",
            "Use fewer columns or symbols, hash the features to fewer, give X as float32, or choose strategy='ovr'.",
        )
        weights = Weights.empty(n_features, n_machines, dtype)
        return cls(machines, weights, seen_symbols(columns), natural_sharpness(machines))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of weights and scores."""
        return self.weights.weights.dtype

    @property
    def coefficients(self) -> Any:
        """The weights, (features, machines): an array, or a CSR matrix once made sparse."""
        return self.weights.coefficients if self.sparse is None else self.sparse

    def machines_of(self, s: int) -> slice:
        """The machines of column s."""
        return slice(int(self.machines.starts[s]), int(self.machines.starts[s + 1]))

    def outputs(self, rows: Rows, what: Output, first: int, last: int, n_threads: int) -> NDArray[Any]:
        """What columns first..last-1 say of rows."""
        columns = column_machines(self.machines, self.seen, self.sharpness[first:last], first, last)
        begin = int(self.machines.starts[first])
        if self.sparse is None:
            return kernels.answer(rows, self.weights, begin, columns, what, n_threads)
        end = int(self.machines.starts[last])
        part, intercepts = self.sparse[:, begin:end], self.weights.intercepts[begin:end]
        n_rows, step = shape_of(rows)[0], max(1, _BLOCK_BYTES // (8 * max(1, end - begin)))
        X: Any = to_scipy(rows)
        answers = []
        for i in range(0, max(1, n_rows), step):
            product: Any = X[i : i + step] @ part
            scores = (
                np.asarray(product if isinstance(product, np.ndarray) else product.toarray(), self.dtype) + intercepts
            )
            answers.append(kernels.answer_scores(np.ascontiguousarray(scores), columns, what, n_threads))
        return np.concatenate(answers)

    def sparsified(self, threshold: float) -> LinearModel:
        """The same model with weights of at most `threshold` in size left out, in CSR form."""
        if self.sparse is not None:
            kept = self.sparse.copy()
            kept.data[np.abs(kept.data) <= threshold] = 0
            kept.eliminate_zeros()
            return replace(self, sparse=kept)
        weights = self.weights.coefficients
        step = max(1, _BLOCK_BYTES // (weights.itemsize * max(1, weights.shape[1])))
        slabs = (weights[f : f + step] for f in range(0, max(1, len(weights)), step))
        entries = sp.vstack([sp.csr_matrix(np.where(np.abs(slab) > threshold, slab, 0)) for slab in slabs], "csr")
        room = np.zeros((1, self.weights.weights.shape[1]), self.dtype)
        return replace(self, weights=self.weights._replace(weights=room), sparse=entries)

    def densified(self) -> LinearModel:
        """The same model with its weights in an array."""
        if self.sparse is None:
            return self
        n_features, n_machines = self.sparse.shape
        weights = Weights.empty(n_features, n_machines, self.dtype).weights
        weights[:-1, :n_machines] = self.sparse.toarray()
        return replace(self, weights=self.weights._replace(weights=weights), sparse=None)


def column_machines(
    machines: Machines, seen: NDArray[np.uint8], sharpness: NDArray[np.float32], first: int, last: int
) -> ColumnMachines:
    """Columns first..last-1 as the core reads them; `sharpness` is theirs alone."""
    starts = machines.starts[first : last + 1]
    return ColumnMachines(
        starts - starts[0],
        np.ascontiguousarray(machines.code.alphabet[first:last]),
        np.ascontiguousarray(seen[first:last]),
        np.ascontiguousarray(sharpness),
        machines.strategy == "ovo",
    )


def seen_symbols(columns: Columns) -> NDArray[np.uint8]:
    """Which symbols the training rows of each column have, (L, N); a column without rows holds all for possible."""
    seen = np.zeros((columns.n_columns, columns.code.n_symbols), np.uint8)
    has_rows = np.bincount(columns.y, minlength=columns.code.n_classes) > 0
    classes, places, symbols = columns.code.entries()
    met = has_rows[classes]
    seen[places[met], symbols[met]] = 1
    seen[~seen.any(axis=1)] = 1
    return seen


def natural_sharpness(machines: Machines) -> NDArray[np.float32]:
    """Sharpness where none was fitted: a logistic machine says the logarithm of its odds, and -d and d are 2d apart."""
    return np.where(np.diff(machines.starts) == 1, 0.5, 1.0).astype(np.float32)
