"""X in the form in which linear machines read it: C-contiguous floats, or CSR rows with ascending features."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._kernels.linear import MAX_FEATURES, CsrRows, Rows

_ROWS_AT_ONCE = 4096  # that are marked together


def as_rows(X: Any, dtype: Any = None) -> Rows:
    """X, copied only where its type, layout or order of features must change."""
    wanted = dtype or (np.float32 if X.dtype == np.float32 else np.float64)
    if isinstance(X, np.ndarray):
        check_size(X, wanted)
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
    check_size(X.data, wanted, X.shape[1])
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


def row_marks(rows: Rows, seed: int) -> NDArray[np.uint64]:
    """A number for each row that depends on what is in it alone, the same for dense and CSR rows."""
    marks = np.zeros(shape_of(rows)[0], np.uint64)
    if isinstance(rows, CsrRows):
        for first in range(0, rows.n_rows, _ROWS_AT_ONCE):
            starts = rows.starts[first : first + _ROWS_AT_ONCE + 1]
            some = slice(int(starts[0]), int(starts[-1]))
            mixed = _scramble(rows.values[some], rows.features[some].astype(np.uint64), seed)
            sums = np.concatenate([[np.uint64(0)], np.cumsum(mixed)])
            marks[first : first + starts.size - 1] = np.diff(sums[starts - starts[0]])  # modulo 2^64
        return marks
    features = np.arange(rows.shape[1], dtype=np.uint64)
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        block = rows[first : first + _ROWS_AT_ONCE]
        marks[first : first + len(block)] = _scramble(block, features, seed).sum(axis=1, dtype=np.uint64)
    return marks


def _scramble(values: NDArray[Any], features: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Well mixed numbers of values and features, by the steps of splitmix64; 0 for a value of 0."""
    bits = values.astype(np.float64).view(np.uint64)
    mixed = bits + (features + np.uint64(seed % (1 << 32))) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.where(values != 0, mixed ^ (mixed >> np.uint64(31)), np.uint64(0))


def check_size(values: NDArray[Any], dtype: Any, n_features: int | None = None) -> None:
    """Refuses numbers so large that squares of rows, or sums of them, may not be numbers."""
    largest = max(abs(float(values.max(initial=0))), abs(float(values.min(initial=0))))
    most = float(np.sqrt(np.finfo(dtype).max / 1e9 / max(1, values.shape[-1] if n_features is None else n_features)))
    if not largest <= most:
        raise ValueError(
            f"X must hold numbers of at most {most:.2g} in size, so that squares of {np.dtype(dtype)} rows exist; "
            f"got {largest:.2g}. Scale the features, as sklearn.preprocessing.StandardScaler does."
        )


def shape_of(rows: Rows) -> tuple[int, int]:
    """(rows, features)."""
    return (rows.n_rows, rows.n_features) if isinstance(rows, CsrRows) else (rows.shape[0], rows.shape[1])


def to_scipy(rows: Rows) -> Any:
    """The rows as an array or a SciPy matrix."""
    if not isinstance(rows, CsrRows):
        return rows
    return sp.csr_matrix((rows.values, rows.features, rows.starts), shape=shape_of(rows))
