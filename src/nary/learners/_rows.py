"""X in the form in which linear machines read it: C-contiguous floats, or CSR rows with ascending features."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._kernels.linear import MAX_FEATURES, CsrRows, Rows


def as_rows(X: Any, dtype: Any = None) -> Rows:
    """X, copied only where its type, layout or order of features must change."""
    wanted = dtype or (np.float32 if X.dtype == np.float32 else np.float64)
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X, wanted)
    if X.shape[1] > MAX_FEATURES:
        raise ValueError(
            f"linear machines take at most {MAX_FEATURES:,} features; got {X.shape[1]:,}. Hash them to fewer, as "
            "sklearn.feature_extraction.FeatureHasher does."
        )
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    _check_indices(X)
    return CsrRows(
        np.ascontiguousarray(X.indptr, np.int64),
        np.ascontiguousarray(X.indices, np.int32),
        np.ascontiguousarray(X.data, wanted),
        X.shape[1],
    )


def _check_indices(X: Any) -> None:
    """Refuses a matrix whose index arrays do not fit together, such as 32-bit ones that overflowed."""
    low, high = (int(X.indices.min()), int(X.indices.max())) if X.indices.size else (0, 0)
    steps = np.diff(X.indptr)
    if low < 0 or high >= max(1, X.shape[1]) or X.indptr[0] != 0 or (steps < 0).any() or X.indptr[-1] != X.data.size:
        raise ValueError(
            f"X must be a CSR matrix whose indices lie within its {X.shape[1]} columns and whose indptr ascends; got "
            f"indices from {low} to {high} and an indptr that ends at {X.indptr[-1]} for {X.data.size} values. "
            "Indices of 32 bits that overflowed look like this: build the matrix with indices of 64 bits."
        )


def take_rows(rows: Rows, places: NDArray[np.intp]) -> Rows:
    """Some of the rows."""
    if not isinstance(rows, CsrRows):
        return rows[places]
    sizes = np.diff(rows.starts)[places]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    entries = np.arange(starts[-1]) + np.repeat(rows.starts[:-1][places] - starts[:-1], sizes)
    return CsrRows(starts, rows.features[entries], rows.values[entries], rows.n_features)


def shape_of(rows: Rows) -> tuple[int, int]:
    """(rows, features)."""
    return (rows.n_rows, rows.n_features) if isinstance(rows, CsrRows) else (rows.shape[0], rows.shape[1])


def to_scipy(rows: Rows) -> Any:
    """The rows as an array or a SciPy matrix."""
    if not isinstance(rows, CsrRows):
        return rows
    return sp.csr_matrix((rows.values, rows.features, rows.starts), shape=shape_of(rows))
