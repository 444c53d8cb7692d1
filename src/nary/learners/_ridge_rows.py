"""Weighted rows as ridge regression reads them, in float64: dense ones about their mean, CSR ones as they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import blas

Floats = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
_SLAB = 1 << 22  # numbers of a slab of rows: 32 MiB
_SPARSE_COST = 200  # a product of two stored entries costs what so many of a dense product do (measured: 170 to 600)


class Gram(NamedTuple):
    """Z'Z or ZZ' of some rows Z."""

    matrix: Floats  # in Fortran order, its lower triangle
    scale: Floats  # the size of what was added up in each diagonal entry
    n_terms: int  # how many terms they are sums of

    def blur(self) -> Floats:
        """By how much the rounding of such sums, and of a factorisation, commonly shifts each diagonal entry."""
        return self.scale * ((self.scale.size + float(np.sqrt(self.scale.size * self.n_terms))) * EPS)


class Rows(ABC):
    """Weighted rows, less `shift`: their mean once they are centred, if they are dense; else 0."""

    def __init__(self, X: Any, weights: Floats) -> None:
        self.n_rows, self.n_features = weights.size, X.shape[1]
        self.weights = weights
        self.roots = np.sqrt(weights)
        self.total = float(weights.sum()) or 1.0
        self.shift = np.zeros(self.n_features)

    def mean(self) -> Floats:
        """The mean row; for rows that are not centred yet."""
        return np.asarray(self.left(self.weights[None] / self.total)[0])

    def scatter(self, mean: Floats) -> Gram:
        """The Gram matrix of the weighted features about `mean`, the mean row or 0."""
        gram = self.gram_of_features()
        rest = mean - self.shift
        if not rest.any():
            return gram
        return gram._replace(matrix=blas.dsyr(-self.total, rest, lower=1, a=gram.matrix, overwrite_a=1))

    @abstractmethod
    def centre(self, mean: Floats) -> None:
        """Shifts dense rows by their mean."""

    @abstractmethod
    def slabs(self, width: int) -> Iterator[tuple[slice, Any]]:
        """The unweighted rows in parts of which (rows, width) arrays can be made."""

    @abstractmethod
    def left(self, factor: Floats) -> Floats:
        """factor @ rows, unweighted."""

    @abstractmethod
    def class_sums(self, y: NDArray[np.intp], n_classes: int) -> Any:
        """The weighted sum of the rows of each class: (classes, d), sparse if the rows are."""

    @abstractmethod
    def gram_of_features(self) -> Gram:
        """Z'Z of the weighted rows."""

    @abstractmethod
    def gram_of_rows(self) -> Gram:
        """ZZ' of the weighted rows."""


class DenseRows(Rows):
    """Some rows of an array (None: all), of which a slab at a time is made float64."""

    def __init__(self, X: NDArray[Any], rows: NDArray[np.intp] | None, weights: Floats) -> None:
        super().__init__(X, weights)
        self._X = X
        self._rows = rows

    def centre(self, mean: Floats) -> None:
        self.shift = mean

    def slabs(self, width: int) -> Iterator[tuple[slice, Floats]]:
        for part in parts(self.n_rows, max(width, self.n_features)):
            yield part, self._X[part if self._rows is None else self._rows[part]] - self.shift

    def left(self, factor: Floats) -> Floats:
        out = np.zeros((factor.shape[0], self.n_features))
        for part, slab in self.slabs(0):
            out += factor[:, part] @ slab
        return out

    def class_sums(self, y: NDArray[np.intp], n_classes: int) -> Floats:
        sums = np.zeros((n_classes, self.n_features))
        for part, slab in self.slabs(0):
            sums += _membership(y[part], self.weights[part], n_classes) @ slab
        return sums

    def gram_of_features(self) -> Gram:
        weighted = (np.multiply(slab, self.roots[part, None], out=slab) for part, slab in self.slabs(0))
        return dense_gram(weighted, self.n_features, self.n_rows)

    def gram_of_rows(self) -> Gram:
        return dense_gram(self._feature_slabs(), self.n_rows, self.n_features)

    def _feature_slabs(self) -> Iterator[Floats]:
        """The weighted rows, transposed, some features at a time."""
        for part in parts(self.n_features, self.n_rows):
            columns = self._X[slice(None) if self._rows is None else self._rows, part].T
            slab = np.subtract(columns, self.shift[part, None], order="C")
            slab *= self.roots
            yield slab


class SparseRows(Rows):
    """Some rows of a CSR matrix (None: all), never shifted: whoever needs them about their mean corrects for it."""

    def __init__(self, X: Any, rows: NDArray[np.intp] | None, weights: Floats) -> None:
        super().__init__(X, weights)
        self._X = sp.csr_array(X if rows is None else X[rows]).astype(np.float64, copy=False)

    def centre(self, mean: Floats) -> None:
        """Leaves the rows as they are: shifted they would be dense."""

    def slabs(self, width: int) -> Iterator[tuple[slice, Any]]:
        for part in parts(self.n_rows, width):
            yield part, self._X[part]

    def left(self, factor: Floats) -> Floats:
        return np.asarray(factor @ self._X)

    def class_sums(self, y: NDArray[np.intp], n_classes: int) -> Any:
        return _membership(y, self.weights, n_classes).tocsr() @ self._X

    def gram_of_features(self) -> Gram:
        return _sparse_gram(self._weighted())

    def gram_of_rows(self) -> Gram:
        return _sparse_gram(self._weighted().T.tocsr())

    def _weighted(self) -> Any:
        if (self.roots == 1).all():
            return self._X
        data = self._X.data * np.repeat(self.roots, np.diff(self._X.indptr))
        return sp.csr_array((data, self._X.indices, self._X.indptr), shape=self._X.shape)


def dense_gram(slabs: Iterable[Floats], size: int, n_terms: int) -> Gram:
    """The sum of slab' slab, of `n_terms` rows in all."""
    gram = np.zeros((size, size), order="F")
    for slab in slabs:
        gram = blas.dsyrk(1.0, slab.T, beta=1.0, c=gram, lower=1, overwrite_c=1)
    return Gram(gram, gram.diagonal().copy(), n_terms)


def _sparse_gram(Z: Any) -> Gram:
    """Z'Z of a CSR matrix: by its stored entries if they are few, else in dense slabs."""
    n, size = Z.shape
    if _SPARSE_COST * (np.diff(Z.indptr).astype(np.float64) ** 2).sum() > float(n) * size**2:
        return dense_gram((Z[part].toarray() for part in parts(n, size)), size, n)
    gram = np.empty((size, size), order="F")
    transposed = Z.T.tocsr()
    for part in parts(size, size):
        gram[:, part] = (transposed[part] @ Z).toarray().T  # the matrix is symmetric: its rows are its columns
    return Gram(gram, gram.diagonal().copy(), n)


def _membership(y: NDArray[np.intp], weights: Floats, n_classes: int) -> Any:
    """The matrix (classes, rows) that sums weighted rows by class."""
    return sp.csc_array((weights, y, np.arange(y.size + 1)), shape=(n_classes, y.size))


def parts(n: int, width: int, budget: int = _SLAB) -> Iterator[slice]:
    """0..n-1 in slices of which each, times `width`, stays within a budget."""
    step = max(1, budget // max(1, width))
    for first in range(0, n, step):
        yield slice(first, min(first + step, n))
