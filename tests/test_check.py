"""Argument checks: what was expected, what was given and what to do stand in every message."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from nary import _check


def test_unknown_names_list_the_known_ones_and_suggest_the_nearest() -> None:
    error = _check.unknown_name("decoder", "haming", ["hamming", "absolute"])
    assert str(error) == "unknown decoder 'haming': expected one of 'absolute', 'hamming'. Did you mean 'hamming'?"
    assert "Did you mean" not in str(_check.unknown_name("decoder", "zzz", ["hamming"]))


@pytest.mark.parametrize("value", [3, np.int16(3), np.uint8(3)])
def test_integers_of_any_kind(value: object) -> None:
    assert _check.integer(value, "k", 1, 3) == 3


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (True, TypeError, r"k must be an integer from 1 to 3; got True of type bool\. Hint\."),
        (2.0, TypeError, r"got 2\.0 of type float"),
        ("2", TypeError, r"got '2' of type str"),
        (0, ValueError, r"k must be an integer from 1 to 3; got 0\. Hint\."),
        (4, ValueError, r"got 4"),
    ],
)
def test_integers_out_of_place(value: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        _check.integer(value, "k", 1, 3, "Hint.")


def test_an_open_range_is_said_as_such() -> None:
    with pytest.raises(ValueError, match="k must be an integer of at least 1; got 0"):
        _check.integer(0, "k", 1)


@pytest.mark.parametrize("value", [0.5, 1, np.float32(0.5)])
def test_reals(value: float) -> None:
    assert _check.real(value, "t", 0, 2) == float(value)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (0, ValueError, "t must lie strictly between 0 and 2; got 0"),
        (2.0, ValueError, "got 2"),
        (float("nan"), ValueError, "got nan"),
        ("1", TypeError, "t must be a number between 0 and 2; got '1' of type str"),
        (False, TypeError, "of type bool"),
    ],
)
def test_reals_out_of_place(value: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        _check.real(value, "t", 0, 2)


def test_plurals() -> None:
    assert _check.plural(1, "class", "classes") == "1 class"
    assert _check.plural(2, "class", "classes") == "2 classes"
    assert _check.plural(0, "column") == "0 columns"


@pytest.mark.parametrize("value", [None, 1, -1, np.int64(4)])
def test_numbers_of_jobs(value: object) -> None:
    assert _check.jobs(value) == value


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (
            0,
            ValueError,
            r"n_jobs must be None or an integer other than 0 \(-1: as many .*; got 0\. Give None for one job",
        ),
        ("2", TypeError, "n_jobs must be .*; got '2' of type str"),
        (1.5, TypeError, r"got 1\.5 of type float"),
        (True, TypeError, "got True of type bool"),
    ],
)
def test_what_is_no_number_of_jobs(value: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        _check.jobs(value)


def test_verbosity() -> None:
    assert [_check.verbosity(value) for value in (0, 3, True, False)] == [0, 3, 1, 0]
    for value, error in ((None, TypeError), ("loud", TypeError), (-1, ValueError)):
        with pytest.raises(error, match=r"verbose must be an integer of at least 0; got .*0 prints nothing"):
            _check.verbosity(value)


@pytest.mark.parametrize(
    "y",
    [
        ["a", "b"],
        [1, 2, 2**63],
        (-5, 3),
        [True, False],
        [[0, 1], [1, 0]],
        np.array(["a", "b"], object),
        np.array([1.0, np.nan]),  # scikit-learn says what is wrong here
        pd.Series(["a", "b"]),
        pd.Series(["a", "b"], dtype="category"),
        pl.Series(["a", "b"]),
        [np.str_("a"), "b"],
        [],
    ],
)
def test_labels_of_one_kind(y: object) -> None:
    _check.labels(y)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (["a", 1, "b"], TypeError, r"y must hold labels of one kind; got int and str\. Turn them all into strings"),
        (np.array(["a", 1.5], object), TypeError, "got float and str"),
        (["a", None], ValueError, r"y must hold a label for each row; got None in row 1\. Leave such rows out"),
        (np.array([1, None], object), ValueError, "got None in row 1"),
        (["a", float("nan")], ValueError, "got nan in row 1"),
        (pd.Series(["a", pd.NA], dtype=object), ValueError, "got <NA> in row 1"),
        ([2**70, 1], ValueError, r"y must hold integers of 64 bits; got 1180591620717411303424\. Turn the labels into"),
        ([-(2**63) - 1, 1], ValueError, "got -9223372036854775809"),
        ([2**63, -1], ValueError, "got 9223372036854775808"),
    ],
)
def test_labels_that_cannot_be_sorted_or_kept(y: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        _check.labels(y)


def test_dates_are_no_numbers() -> None:
    day = datetime.datetime(2020, 1, 1)
    for X, kind in (
        (np.zeros((2, 2), "M8[s]"), r"datetime64\[s\]"),
        (np.zeros((2, 2), "m8[D]"), r"timedelta64\[D\]"),
        (pd.DataFrame({"a": [1.0], "b": pd.to_datetime([day])}), "datetime64"),
        (pl.DataFrame({"a": [1.0], "b": [day]}), "Datetime"),
    ):
        with pytest.raises(TypeError, match=rf"X must hold numbers; got {kind}.* Turn dates into numbers first"):
            _check.numbers_in(X)
    for fine in (np.zeros((2, 2)), [[1.0]], pd.DataFrame({"date": [1.0]}), pl.DataFrame({"a": [1]})):
        _check.numbers_in(fine)


def test_memory_that_the_machine_does_not_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_check, "physical_memory", lambda: 24 * 2**30)
    _check.check_memory(24 * 2**30, "W", "Hint.")
    message = (
        "W (1,000,000 features x 5,000 machines in float64) needs 37.3 GiB, more than this machine's 24.0 GiB. Hint."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        _check.check_memory(8 * 1_000_000 * 5_000, "W (1,000,000 features x 5,000 machines in float64)", "Hint.")


def test_a_machine_has_some_memory() -> None:
    assert 2**28 < _check.physical_memory() < 2**50
