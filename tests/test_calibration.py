"""Held-out rows are drawn by content, and temperatures make probabilities as sure as they should be."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax

from nary.learners._rows import as_rows, row_marks
from nary.learners.calibration import GRID, best_sharpness, held_out_rows, losses


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(500, 7)), 2) * (rng.random((500, 7)) < 0.6)
    return X, rng.integers(0, 9, 500).astype(np.int32)


def test_marks_depend_on_what_is_in_a_row_alone(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = rows
    marks = row_marks(as_rows(X), 3)
    np.testing.assert_array_equal(marks, row_marks(as_rows(sp.csr_matrix(X)), 3))
    order = np.random.default_rng(1).permutation(500)
    np.testing.assert_array_equal(marks[order], row_marks(as_rows(X[order]), 3))
    assert len(np.unique(marks)) == len(np.unique(X, axis=0))
    assert (marks != row_marks(as_rows(X), 4)).mean() > 0.9


def test_a_share_of_every_class_is_held_out_and_copies_go_together(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    held = held_out_rows(as_rows(X), y, 0.2, 0)
    counts, kept = np.bincount(y), np.bincount(np.delete(y, held), minlength=9)
    assert (kept >= 1).all()
    assert (abs(counts - kept - 0.2 * counts) <= 2).all()
    twice = held_out_rows(as_rows(np.concatenate([X, X[::-1]])), np.concatenate([y, y[::-1]]), 0.2, 0)
    np.testing.assert_array_equal(twice[twice < 500], held)
    np.testing.assert_array_equal(np.sort(999 - twice[twice >= 500]), held)


def test_rows_that_take_no_part_and_single_rows_are_not_held_out() -> None:
    X = np.arange(12.0).reshape(6, 2)
    assert held_out_rows(as_rows(X), np.array([0, 1, 2, 3, -1, -1], np.int32), 0.5, 0).size == 0
    assert set(held_out_rows(as_rows(X), np.array([0, 0, 0, 0, -1, -1], np.int32), 0.5, 0)) < {0, 1, 2, 3}


def test_losses_are_those_of_the_softmax() -> None:
    rng = np.random.default_rng(0)
    scores, symbols = rng.normal(size=(40, 3, 4)).astype(np.float32), rng.integers(-1, 3, (40, 3)).astype(np.int16)
    scores[:, 1, 3] = -np.inf  # beyond the alphabet
    scores[:, 2] = -np.inf  # a column that knows nothing
    weights, natural = rng.uniform(0, 2, 40), np.array([1, 0.5, 1], np.float32)
    sums, counts = losses(scores, symbols, weights, natural)
    for s in range(2):
        used = symbols[:, s] >= 0
        assert counts[s] == pytest.approx(weights[used].sum())
        for k, sharp in enumerate(GRID):
            logs = log_softmax(scores[used, s].astype(float) * natural[s] * sharp, axis=1)
            wanted = -(weights[used] * logs[np.arange(used.sum()), symbols[used, s]]).sum()
            assert sums[s, k] == pytest.approx(wanted, rel=1e-4)
    assert counts[2] == 0
    assert not sums[2].any()


@pytest.mark.parametrize("true", [0.25, 1.0, 3.0])
def test_the_sharpness_that_made_the_labels_is_found(true: float) -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(20000, 2, 3)).astype(np.float32)
    chances = np.exp(log_softmax(true * scores, axis=2))
    symbols = (rng.random((20000, 2, 1)) > chances.cumsum(axis=2)).sum(axis=2).clip(0, 2).astype(np.int16)
    found = best_sharpness(*losses(scores, symbols, np.ones(20000), np.ones(2, np.float32)))
    np.testing.assert_allclose(found, true, rtol=0.1)


def test_columns_of_few_rows_lean_on_the_mean_column() -> None:
    bowl = 10000 * (np.log2(GRID) - 1.0) ** 2  # many rows that want a sharpness of 2
    sums = np.stack([bowl, np.zeros(GRID.size)])
    np.testing.assert_allclose(best_sharpness(sums, np.array([10000.0, 0.0])), 2, rtol=0.01)
    np.testing.assert_array_equal(best_sharpness(0 * sums, np.zeros(2)), 1)
