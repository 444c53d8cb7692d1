"""Which classes lie on which side of each machine, for every strategy and kind of code."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nary import CodeMatrix, codes
from nary.learners.machines import Machines

MIXED = CodeMatrix([[0, 0, -1, 1], [1, 0, 0, 0], [2, 1, 1, 2], [2, -1, 3, -1], [1, 1, 2, 1]])


def by_definition(code: CodeMatrix, strategy: str) -> np.ndarray:
    """The table of sides, machine by machine."""
    machines = []
    for s, N in enumerate(code.alphabet.tolist()):
        word = code.symbols[:, s]
        if strategy == "ovo" or (N == 2 and strategy == "ovr"):
            machines += [(word == b).astype(int) - (word == a) for a, b in combinations(range(N), 2)]
        else:
            machines += [np.where(word < 0, 0, np.where(word == k, 1, -1)) for k in range(N)]
    return np.stack(machines, axis=1)


@pytest.mark.parametrize("strategy", ["ovr", "ovo", "crammer_singer"])
@pytest.mark.parametrize(
    "code",
    [
        MIXED,
        codes.build("ovo", n_classes=7),
        codes.build("random", n_classes=9, n_symbols=4, n_columns=6, random_state=0),
    ],
    ids=["mixed", "ovo", "random"],
)
def test_sides_are_those_of_the_definition(code: CodeMatrix, strategy: str) -> None:
    machines, wanted = Machines(code, strategy), by_definition(code, strategy)
    assert machines.n_machines == wanted.shape[1] == machines.starts[-1]
    np.testing.assert_array_equal(machines.sides(0, machines.n_machines).table(code.n_classes), wanted)
    for first in range(machines.n_machines):
        for last in range(first, min(first + 4, machines.n_machines) + 1):
            table = machines.sides(first, last).table(code.n_classes)
            np.testing.assert_array_equal(table, wanted[:, first:last])


@given(st.integers(2, 300))
def test_every_place_is_a_pair_of_its_column(n_symbols: int) -> None:
    machines = Machines(codes.build("identity", n_classes=n_symbols), "ovo")
    columns, positive, negative = machines.symbols(0, machines.n_machines)
    assert not columns.any()
    assert list(zip(negative.tolist(), positive.tolist(), strict=True)) == list(combinations(range(n_symbols), 2))


def test_a_sparse_code_of_a_thousand_classes_is_read_in_portions() -> None:
    code = codes.build("ovo", n_classes=1000)
    machines = Machines(code, "ovr")
    assert machines.n_machines == 499_500
    sides = machines.sides(499_000, 499_500)
    assert np.diff(sides.starts).tolist() == [2] * 500
    assert sides.signs.tolist() == [-1, 1] * 500
    np.testing.assert_array_equal(sides.classes.reshape(-1, 2), list(combinations(range(1000), 2))[499_000:])
