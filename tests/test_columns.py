"""Column problems: the labels of every column are M[y], and only rows of used classes take part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nary import CodeMatrix, codes
from nary.columns import Columns

CODES = [
    codes.build("random", n_classes=9, n_symbols=3, n_columns=7, random_state=0),
    codes.build("ovo", n_classes=9),
    codes.build("sparse", n_classes=9, random_state=0),
]


@pytest.mark.parametrize("code", CODES, ids=["random", "ovo", "sparse"])
@given(y=st.lists(st.integers(0, 8), min_size=1, max_size=40))
def test_labels_and_problems_are_the_code_read_at_the_rows(code: CodeMatrix, y: list[int]) -> None:
    labels = code.symbols[y]
    columns = Columns(code, np.array(y, np.int32))
    np.testing.assert_array_equal(columns.labels(0, code.n_columns), labels)
    np.testing.assert_array_equal(columns.labels(2, 5), labels[:, 2:5])
    for s in range(code.n_columns):
        rows, symbols = columns.problem(s)
        used = np.flatnonzero(labels[:, s] >= 0)
        assert rows is None or (np.diff(rows) > 0).all()
        np.testing.assert_array_equal(np.arange(len(y)) if rows is None else rows, used)
        np.testing.assert_array_equal(symbols, labels[used, s])


def test_a_column_that_all_classes_use_takes_all_rows_without_an_index() -> None:
    columns = Columns(CODES[0], np.array([0, 1, 2], np.int32))
    assert columns.problem(0).rows is None
    assert columns.n_rows == 3
    assert columns.n_columns == 7
    assert columns.alphabet.tolist() == [3] * 7
