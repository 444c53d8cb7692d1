"""The compiled kernels against their NumPy twins, around every block border, at every level and thread count."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nary import CodeMatrix, _kernels, _reference
from nary._kernels import FoldOrder
from nary.decoders.fold import fold_order

ROWS = [1, 2, 63, 64, 65, 127, 128, 129]
CLASSES = [2, 15, 16, 17, 31, 32, 33]


def draw_symbols(rng: np.random.Generator, K: int, L: int, N: int, unused: float = 0.0) -> np.ndarray:
    """A valid code: random, but for the first rows, which keep every column and every word apart."""
    symbols = rng.integers(0, N, (K, L)).astype(np.int16)
    if unused:
        symbols[rng.random((K, L)) < unused] = -1
    symbols[:2] = [[0], [1]]
    digits = max(1, int(np.ceil(np.log(K) / np.log(N))))
    symbols[:, :digits] = (np.arange(K)[:, None] // N ** np.arange(digits)) % N
    return symbols


def folded_costs(order: FoldOrder, costs: np.ndarray, neutral: np.ndarray, base: float, threads: int) -> np.ndarray:
    totals = _kernels.empty_totals(len(costs), order.n_classes, np.float32)
    _kernels.add_costs(order, costs, neutral, totals, threads)
    return _kernels.finish_costs(totals, len(costs), base, 1.0, threads)


@pytest.mark.parametrize("n_rows", ROWS)
@pytest.mark.parametrize(("K", "L", "N", "unused"), [(17, 33, 5, 0.0), (33, 40, 2, 0.5), (12, 9, 3, 0.9), (5, 1, 5, 0)])
def test_fold_of_costs_equals_its_twin_to_the_bit(
    level: str, n_rows: int, K: int, L: int, N: int, unused: float
) -> None:
    rng = np.random.default_rng(n_rows)
    symbols = draw_symbols(rng, K, L, N, unused)
    order = fold_order(CodeMatrix(symbols, N), table_bytes=4096)
    costs = rng.exponential(size=(n_rows, L, N)).astype(np.float32)
    neutral = rng.random(L).astype(np.float32)
    expected = _reference.fold_costs(symbols, costs, neutral, 1.25, order.group)
    for threads in (1, 2, 7):
        np.testing.assert_array_equal(folded_costs(order, costs, neutral, 1.25, threads), expected)


@pytest.mark.parametrize("K", CLASSES)
@pytest.mark.parametrize("group", [1, 2, 3])
@pytest.mark.parametrize("L", [1, 2, 3, 5, 6, 7, 12, 13])
def test_groups_of_columns_at_every_border(level: str, K: int, group: int, L: int) -> None:
    N = 4 if L > 2 else 33
    rng = np.random.default_rng(L)
    symbols = draw_symbols(rng, K, L, N)
    order = fold_order(CodeMatrix(symbols, N), min(group, 2 if N == 33 else 3), table_bytes=1)
    costs = rng.normal(size=(66, L, N)).astype(np.float32)
    neutral = rng.random(L).astype(np.float32)
    expected = _reference.fold_costs(symbols, costs, neutral, 0.0, order.group)
    np.testing.assert_array_equal(folded_costs(order, costs, neutral, 0.0, 2), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.uint16])
@pytest.mark.parametrize("n_rows", ROWS)
@pytest.mark.parametrize("N", [2, 3, 4, 5, 8, 9, 15, 16, 17, 40])
def test_fold_of_symbols_equals_its_twin(level: str, dtype: type, n_rows: int, N: int) -> None:
    rng = np.random.default_rng(N)
    K, L = 41, 21
    symbols = draw_symbols(rng, K, L, N, 0.3 if N % 2 else 0.0)
    order = fold_order(CodeMatrix(symbols, N))
    said = rng.integers(0, N, (n_rows, L)).astype(np.int16)
    profile, neutral = np.arange(N).astype(dtype) * 2, np.full(L, 3, dtype)
    expected = _reference.fold_symbols(
        symbols, said, profile.astype(np.float32), neutral.astype(np.float32), 3.0 * L, order.group
    )
    for threads in (1, 3):
        totals = _kernels.empty_totals(n_rows, K, dtype)
        _kernels.add_symbols(order, said, profile, neutral, totals, threads)
        np.testing.assert_array_equal(_kernels.finish_costs(totals, n_rows, 3.0 * L, 1.0, threads), expected)
        best = _kernels.nearest_classes(totals, n_rows, 3.0 * L, 1.0, threads)
        np.testing.assert_array_equal(best, expected.argmin(axis=1))


def test_whole_numbers_wrap_around_below_zero_and_come_back() -> None:
    symbols = np.array([[0, 0], [1, -1], [-1, 1]], np.int16)  # used entries cost 0 - 1 on the way
    order = fold_order(CodeMatrix(symbols, 2))
    totals = _kernels.empty_totals(1, 3, np.uint16)
    profile, neutral = np.array([0, 2], np.uint16), np.array([1, 1], np.uint16)
    _kernels.add_symbols(order, np.array([[0, 0]], np.int16), profile, neutral, totals)
    np.testing.assert_array_equal(_kernels.finish_costs(totals, 1, 2, 0.5), [[0.0, 1.5, 1.5]])


@pytest.mark.parametrize("K", [1, 2, 63, 64, 65, 300])
@pytest.mark.parametrize("n_rows", ROWS)
def test_nearest_is_the_first_of_the_least_finished_costs(level: str, K: int, n_rows: int) -> None:
    rng = np.random.default_rng(K)
    totals = _kernels.empty_totals(n_rows, K, np.float32)
    totals[:] = rng.integers(0, 4, totals.shape) + rng.random(totals.shape) * 1e-6  # ties only after settling
    costs = _kernels.finish_costs(totals, n_rows, 0.5, 2.0)
    for threads in (1, 2, 5):
        np.testing.assert_array_equal(_kernels.nearest_classes(totals, n_rows, 0.5, 2.0, threads), costs.argmin(axis=1))


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=40))
def test_finished_costs_are_settled(values: list[float]) -> None:
    totals = _kernels.empty_totals(1, len(values), np.float32)
    totals[0, :, 0] = values
    expected = _reference.settle(np.array([values], np.float32))
    np.testing.assert_array_equal(_kernels.finish_costs(totals, 1, 0.0, 1.0), expected)
    gaps = np.diff(np.unique(expected.astype(np.float64)))
    assert (gaps >= 2.0**-17).all()


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("N", [2, 255, 256, 257, 32767])
@pytest.mark.parametrize("L", [1, 63, 64, 65, 127, 128, 129, 255 * 64 + 1])
def test_distances_equal_their_twin(level: str, absolute: bool, N: int, L: int) -> None:
    words = np.random.default_rng(L).integers(0, N, (5, L)).astype(np.int16)
    words[0], words[1] = 0, N - 1  # the largest distance there is
    expected = _reference.distances(words, absolute)
    padded = _kernels.pad_words(words)
    for threads in (1, 3):
        np.testing.assert_array_equal(_kernels.distances(padded, 0, 5, absolute, threads), expected)
    np.testing.assert_array_equal(_kernels.distances(padded, 2, 4, absolute), expected[2:4])


def test_draws_do_not_depend_on_level_or_threads(level: str) -> None:
    expected, between = _reference.search_random(7, 9, 6, 65, 3, True, True)
    for threads in (1, 2, 5):
        found = _kernels.search_random(7, 9, 6, 65, 3, True, True, threads)
        assert found is not None
        np.testing.assert_array_equal(found[0], expected)
        assert found[1] == between


def test_blocks_and_parts_give_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    symbols = draw_symbols(rng, 50, 48, 3)
    costs = rng.exponential(size=(130, 48, 3)).astype(np.float32)
    neutral = np.zeros(48, np.float32)
    orders = [fold_order(CodeMatrix(symbols, 3), 2, table_bytes) for table_bytes in (1, 40000, 1 << 20)]
    first, *others = [folded_costs(order, costs, neutral, 0.0, 2) for order in orders]
    for other in others:
        np.testing.assert_array_equal(first, other)
    order = orders[0]
    totals = _kernels.empty_totals(130, 50, np.float32)
    for a in range(0, 48, order.block_columns):
        b = min(a + order.block_columns, 48)
        _kernels.add_costs(order.part(a, b), np.ascontiguousarray(costs[:, a:b]), neutral[a:b], totals)
    np.testing.assert_array_equal(_kernels.finish_costs(totals, 130, 0.0, 1.0), first)


def small_order(**changes: Any) -> FoldOrder:
    fields = {
        "cells": np.array([0, 3, 1, 2], np.uint16),
        "starts": np.array([0, 2, 4], np.int64),
        "n_classes": 2,
        "n_columns": 2,
        "n_symbols": 2,
        "block_columns": 2,
        "group": 1,
    }
    return FoldOrder.checked(*(fields | changes).values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cells": np.array([0, 4, 1, 2], np.uint16)}, "cells inside the block"),
        ({"cells": np.array([0, 3, 1, 2], np.int64)}, "cells as uint16"),
        ({"starts": np.array([0, 3, 2, 4], np.int64)}, "3 starts"),
        ({"starts": np.array([0, 5, 4], np.int64)}, "ascending starts"),
        ({"starts": np.array([1, 2, 4], np.int64)}, "starts from 0 to 4"),
        ({"block_columns": 0}, "blocks of whole groups"),
        ({"group": 0}, "blocks of whole groups"),
        ({"block_columns": 3, "group": 2}, "blocks of whole groups"),
        ({"n_symbols": 70000}, "cells a block"),
    ],
)
def test_the_door_refuses_a_wrong_order(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small_order(**changes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"symbols": np.array([[0, 2]], np.int16)}, "symbols from 0 to 1"),
        ({"symbols": np.array([[0, -1]], np.int16)}, "symbols from 0 to 1"),
        ({"symbols": np.array([[0, 1]], np.int64)}, "symbols as int16"),
        ({"symbols": np.array([[0, 1, 1]], np.int16)}, r"symbols of shape \(1, 2\)"),
        ({"symbols": np.asfortranarray(np.zeros((2, 2), np.int16))}, "C-contiguous"),
        ({"profile": np.array([0, 1, 2], np.float32)}, r"profile of shape \(2,\)"),
        ({"profile": np.array([0, 1], np.float64)}, "a profile in float32 or uint16"),
        ({"neutral": np.zeros(3, np.float32)}, r"neutral of shape \(2,\)"),
        ({"totals": np.zeros((1, 3, 64), np.float32)}, r"totals of shape \(1, 2, 64\)"),
        ({"totals": np.zeros((1, 2, 64), np.uint16)}, "totals as float32"),
        ({"n_threads": 0}, "at least one thread"),
    ],
)
def test_the_door_refuses_wrong_symbols(arguments: dict[str, Any], message: str) -> None:
    given = {
        "symbols": np.array([[0, 1]], np.int16),
        "profile": np.array([0, 1], np.float32),
        "neutral": np.zeros(2, np.float32),
        "totals": np.zeros((1, 2, 64), np.float32),
        "n_threads": 1,
    } | arguments
    with pytest.raises(ValueError, match=message):
        _kernels.add_symbols(small_order(), *given.values())


def test_the_door_refuses_wrong_costs_totals_words_and_searches() -> None:
    order, totals = small_order(), np.zeros((1, 2, 64), np.float32)
    costs, neutral = np.zeros((1, 2, 2), np.float32), np.zeros(2, np.float32)
    with pytest.raises(ValueError, match=r"costs of shape \(1, 2, 2\); got \(1, 2, 3\)"):
        _kernels.add_costs(order, np.zeros((1, 2, 3), np.float32), neutral, totals)
    with pytest.raises(ValueError, match="costs as float32"):
        _kernels.add_costs(order, costs.astype(np.float64), neutral, totals)
    totals.flags.writeable = False
    with pytest.raises(ValueError, match="writeable totals"):
        _kernels.add_costs(order, costs, neutral, totals)
    with pytest.raises(ValueError, match="totals of shape"):
        _kernels.finish_costs(totals, 65, 0.0, 1.0)
    with pytest.raises(ValueError, match="totals of shape"):
        _kernels.nearest_classes(totals, 65, 0.0, 1.0)
    with pytest.raises(ValueError, match="block borders"):
        order.part(1, 2)
    with pytest.raises(ValueError, match="padded to a multiple of 64"):
        _kernels.distances(np.zeros((3, 10), np.uint8), 0, 3, True)
    with pytest.raises(ValueError, match=r"rows within 0:3; got 0:4"):
        _kernels.distances(np.zeros((3, 64), np.uint8), 0, 4, True)
    with pytest.raises(ValueError, match=r"columns x largest symbol below 2\^31; got 65600 columns"):
        _kernels.distances(np.full((2, 65600), 32766, np.uint16), 0, 2, True)
    with pytest.raises(ValueError, match="codewords that use every column"):
        _kernels.pad_words(np.array([[0, -1]], np.int16))
    with pytest.raises(ValueError, match="2 to 32768 symbols"):
        _kernels.search_random(0, 1, 3, 3, 1, True, True)
    with pytest.raises(ValueError, match="a seed of 64 bits"):
        _kernels.search_random(-1, 1, 3, 3, 2, True, True)


def import_with_level(name: str) -> subprocess.CompletedProcess[str]:
    command = "from nary import _kernels; print(_kernels.level())"
    environment = os.environ | {"NARY_LEVEL": name}
    return subprocess.run([sys.executable, "-c", command], env=environment, capture_output=True, text=True, check=False)


def test_the_level_can_be_chosen_and_an_unavailable_one_is_refused() -> None:
    for name in _kernels.levels():
        assert import_with_level(name).stdout.strip() == name
    assert import_with_level("").stdout.strip() == _kernels.levels()[-1]  # an empty one counts as unset
    refused = import_with_level("sse9")
    assert refused.returncode != 0
    assert "CPU level 'sse9' is not available: this machine runs baseline" in refused.stderr
    with pytest.raises(ValueError, match="Unset NARY_LEVEL"):
        _kernels.use_level("sse9")


def test_a_missing_core_is_an_import_error_that_says_how_to_build_it() -> None:
    command = "import sys; sys.modules['nary._native'] = None; import nary"
    run = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "pip install ." in run.stderr
    assert "ImportError" in run.stderr
