"""Binning: exact for few values, quantiles for many, missing values and categories, dense and sparse alike."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from nary import _reference
from nary._kernels import trees as kernels
from nary._reference import trees as twin
from nary.learners.binning import Bins


def edges_of(bins: Bins) -> list[np.ndarray]:
    return [bins.edges.of(f) for f in range(bins.n_features)]


def draw(seed: int, n: int, D: int, missing: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, D)) * 3, rng.integers(0, 3))
    X[rng.random((n, D)) < missing] = np.nan
    return X


@pytest.mark.parametrize("D", [1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129])
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 300])
def test_bins_count_the_edges_below_a_value(n: int, D: int) -> None:
    X = draw(D, n, D, missing=0.1)
    bins = Bins.fit(X, 16)
    for dtype in (np.float64, np.float32):
        for threads in (1, 3):
            rows = bins.rows(X.astype(dtype), threads)
            expected = twin.bin_rows(X.astype(dtype), edges_of(bins))
            np.testing.assert_array_equal(rows.cells[:, :D], expected)


@pytest.mark.parametrize("D", [1, 9, 32])
def test_few_features_are_written_as_often_as_they_fit(D: int) -> None:
    rows = Bins.fit(draw(0, 20, D)).rows(draw(1, 5, D))
    assert rows.copies == 64 // D
    for copy in range(rows.copies):
        np.testing.assert_array_equal(rows.cells[:, copy * D : (copy + 1) * D], rows.cells[:, :D])
    assert not rows.cells[:, rows.copies * D :].any()


def test_few_values_have_a_bin_each() -> None:
    X = np.array([[3.0], [1.0], [7.0], [1.0]])
    bins = Bins.fit(X, 3)
    assert bins.edges.of(0).tolist() == [2.0, 5.0]
    assert bins.centres.of(0).tolist() == [1.0, 3.0, 7.0]
    assert bins.rows(X).cells[:, 0].tolist() == [1, 0, 2, 0]


@given(st.integers(0, 10**6), st.integers(2, 255), st.integers(1, 2000))
def test_no_bin_is_empty_and_none_holds_much_more_than_its_share(seed: int, max_bins: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.choice([rng.normal(size=n), rng.integers(0, 1000, n), np.exp(4 * rng.normal(size=n))])[:, None]
    bins = Bins.fit(X, max_bins)
    counts = np.bincount(bins.rows(X).cells[:, 0])
    assert (counts > 0).all()
    assert counts.size == bins.centres.of(0).size <= max_bins
    most_alike = np.unique(X, return_counts=True)[1].max()
    assert counts.max() <= -(-n // max_bins) + 1 + most_alike
    assert (np.diff(bins.centres.of(0)) > 0).all()


def test_neighbouring_numbers_are_told_apart() -> None:
    X = np.array([[1.0], [np.nextafter(1.0, 2)], [-5e-324], [0.0], [1.7e308], [-1.7e308]])
    assert Bins.fit(X).rows(X).cells[:, 0].tolist() == [3, 4, 1, 2, 5, 0]


def test_missing_values_have_a_bin_of_their_own() -> None:
    X = np.array([[np.nan, 1.0], [np.nan, np.nan], [np.nan, 2.0]])
    bins = Bins.fit(X)
    assert bins.any_missing
    assert not Bins.fit(X[[0, 2], 1:]).any_missing
    assert bins.rows(X).cells[:, :2].tolist() == [[255, 0], [255, 255], [255, 1]]
    assert bins.centres.of(0).size == 1


@given(st.integers(0, 10**6), st.sampled_from([2, 7, 255]))
def test_sparse_rows_have_the_bins_of_dense_ones(seed: int, max_bins: int) -> None:
    X = draw(seed, 40, 12, missing=0.1)
    X[np.random.default_rng(seed).random(X.shape) < 0.6] = 0
    dense, sparse = Bins.fit(X, max_bins), Bins.fit(sp.csr_array(X), max_bins)
    for name in ("edges", "centres"):
        np.testing.assert_array_equal(getattr(dense, name).values, getattr(sparse, name).values)
    cells, rows = dense.rows(X).cells[:, :12], sparse.rows(sp.csr_array(X))
    written = np.tile(rows.zero_bins, (40, 1))
    written[np.repeat(np.arange(40), np.diff(rows.starts)), rows.features] = rows.bins
    np.testing.assert_array_equal(written, cells)
    marks = twin.mark_rows(cells, dense.zero_bins)
    for threads in (1, 2):
        np.testing.assert_array_equal(kernels.mark_rows(dense.rows(X), dense.zero_bins, threads), marks)
        np.testing.assert_array_equal(kernels.mark_rows(rows, dense.zero_bins, threads), marks)


def test_sparse_rows_with_repeated_and_unsorted_entries() -> None:
    X = sp.csr_matrix((np.array([1.0, 2.0, 5.0, 3.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3))
    rows = Bins.fit(X).rows(X)
    assert rows.features.tolist() == [0, 2, 1]
    assert X.data.tolist() == [1, 2, 5, 3], "the caller's matrix stays as it was"


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_categories_are_ordered_by_how_often_they_come(form) -> None:
    X = np.array([[7.0], [0.0], [7.0], [3.0], [7.0], [0.0], [9.0]])
    bins = Bins.fit(form(X), 3, np.array([0]))
    assert bins.categories[0].tolist() == [7, 0, 3, 9]
    asked = form(np.array([[7.0], [0.0], [3.0], [9.0], [5.0]]))
    rows = bins.rows(asked)
    cells = rows.cells[:, 0] if form is np.asarray else [rows.bins[0], rows.zero_bins[0], *rows.bins[1:]]
    assert list(cells) == [0, 1, 2, 2, 255]  # rare ones share the last bin, an unknown one is missing


@given(st.integers(0, 10**6))
def test_rows_are_sorted_by_class_and_content_whatever_order_they_come_in(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = np.round(rng.normal(size=(30, 3))), rng.integers(0, 4, 30).astype(np.int32)
    bins, shuffle = Bins.fit(X), rng.permutation(30)
    rows, order = bins.sorted_rows(X, y)
    again, order_again = bins.sorted_rows(X[shuffle], y[shuffle])
    np.testing.assert_array_equal(y[order], np.sort(y))
    np.testing.assert_array_equal(rows.cells, again.cells)
    np.testing.assert_array_equal(y[order], y[shuffle][order_again])
    sparse, _ = Bins.fit(sp.csr_array(X)).sorted_rows(sp.csr_array(X), y)
    np.testing.assert_array_equal(sparse.bins, rows.cells[:, :3][X[order] != 0])


def test_the_twin_of_the_hash_is_splitmix64() -> None:
    assert int(_reference.splitmix64(0, np.array([0], np.uint64))[0]) == 0xE220A8397B1DCDAF
