"""Argument checks: what was expected, what was given and what to do stand in every message."""

from __future__ import annotations

import numpy as np
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
