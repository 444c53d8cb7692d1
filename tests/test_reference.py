"""The NumPy twins against worked examples and definitions that others wrote."""

from __future__ import annotations

import numpy as np
import pytest

from nary import _reference

# The paper's table of a 4-ary code for seven classes, counted from 0 here.
PAPER_CODE = np.array(
    [
        [1, 1, 2, 4, 1, 1],
        [2, 1, 1, 3, 2, 1],
        [3, 2, 1, 2, 3, 1],
        [4, 3, 1, 1, 4, 2],
        [4, 3, 2, 2, 4, 3],
        [4, 3, 3, 3, 3, 4],
        [3, 4, 4, 4, 2, 4],
    ],
    np.int16,
)


def test_the_paper_decodes_its_example_to_class_four() -> None:
    said = np.array([[4, 3, 1, 2, 4, 2]], np.int16) - 1
    for profile in (np.array([0, 1, 1, 1], np.float32), np.arange(4, dtype=np.float32)):
        costs = _reference.fold_symbols(np.int16(PAPER_CODE - 1), said, profile, np.zeros(6, np.float32), 0.0)
        assert costs.argmin() + 1 == 4
        assert costs.min() == 1


def test_unused_entries_cost_the_neutral_amount() -> None:
    symbols = np.array([[0, -1], [1, 0], [-1, 1]], np.int16)
    costs = np.array([[[1, 2], [4, 8]]], np.float32)
    neutral = np.array([0.5, 0.25], np.float32)
    folded = _reference.fold_costs(symbols, costs, neutral, float(neutral.sum()))
    np.testing.assert_array_equal(folded, [[1 + 0.25, 2 + 4, 0.5 + 8]])


@pytest.mark.parametrize(
    ("value", "settled"), [(0.1, 6554 / 65536), (-0.1, -6554 / 65536), (70.123456, np.float32(70.123456))]
)
def test_settled_costs(value: float, settled: float) -> None:
    assert _reference.settle(np.array([value], np.float32))[0] == np.float32(settled)


def test_settling_rounds_half_to_even() -> None:
    halves = np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32) / 65536
    np.testing.assert_array_equal(_reference.settle(halves) * 65536, [0, 2, 2, 0, -2])


def test_splitmix64_gives_its_authors_numbers() -> None:
    # First outputs of the reference implementation (Vigna) from the seed 1234567.
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    np.testing.assert_array_equal(_reference.splitmix64(1234567, np.arange(5, dtype=np.uint64)), np.uint64(expected))


def test_draws_are_uniform_over_the_symbols() -> None:
    counts = np.bincount(_reference.draw_code(3, 300, 301, 7).ravel(), minlength=7)
    expected = 300 * 301 / 7
    assert counts.size == 7
    assert ((counts - expected) ** 2 / expected).sum() < 22.5  # chi-square, 6 degrees of freedom: 1 in 1,000


def test_canonical_form_is_blind_to_names() -> None:
    assert _reference.canonical(np.array([5, 2, 5, 0])) == _reference.canonical(np.array([1, 0, 1, 3])) == (0, 1, 0, 2)
