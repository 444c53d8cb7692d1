"""CodeMatrix: what it accepts, that its dense and sparse forms say the same, that it cannot change, and its file."""

from __future__ import annotations

import copy
import gc
import html.parser
import io
import pickle
import re
import tracemalloc
import zipfile
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from nary import UNUSED, CodeMatrix, codes, matrix, measures

DETERMINISTIC = settings(deadline=None, derandomize=True, max_examples=80)

SMALL = [[0, 0, 2], [1, UNUSED, 1], [2, 1, 0], [UNUSED, UNUSED, 2]]
LIKE_SIGNS = "a code matrix of -1, 0 and 1 was read with -1 for UNUSED.* CodeMatrix.from_signs.* alphabet=2"
DENSE, SPARSE = 0.0, 2.0  # shares of used entries under which a code is kept sparse: never, always


def kept(symbols, form, alphabet=None):
    """The code in the form asked for, whatever its share of used entries."""
    with mock.patch.object(matrix, "_SPARSE_BELOW", form):
        code = CodeMatrix(symbols, alphabet)
    assert code.is_sparse == (form == SPARSE)
    return code


def loose(draw_valid=True):
    """Matrices of symbols -1..3 with 2 to 6 rows; the valid ones, or all."""
    rows = st.tuples(st.integers(2, 6), st.integers(1, 5)).flatmap(
        lambda shape: st.integers(0, 3).flatmap(
            lambda idle: st.lists(
                st.lists(st.sampled_from([UNUSED] * idle + [0, 1, 2, 3]), min_size=shape[1], max_size=shape[1]),
                min_size=shape[0],
                max_size=shape[0],
            )
        )
    )
    return rows.filter(valid) if draw_valid else rows


def valid(rows):
    """DESIGN's validity of a given matrix: distinct rows, and in every column two different symbols at least."""
    columns = list(zip(*rows, strict=True))
    return len(set(map(tuple, rows))) == len(rows) and all(len(set(column) - {UNUSED}) > 1 for column in columns)


# What is accepted


@pytest.mark.filterwarnings("ignore:a code matrix of -1, 0 and 1")
@DETERMINISTIC
@given(loose(draw_valid=False), st.sampled_from([DENSE, SPARSE]))
def test_a_matrix_is_accepted_exactly_if_it_is_valid(rows, form):
    if valid(rows):
        code = kept(rows, form)
        assert code.symbols.tolist() == rows
        assert code.alphabet.tolist() == [max(column) + 1 for column in zip(*rows, strict=True)]
    else:
        with (
            pytest.raises(ValueError, match=r"every (column|class) must"),
            mock.patch.object(matrix, "_SPARSE_BELOW", form),
        ):
            CodeMatrix(rows)


@pytest.mark.parametrize(
    "symbols",
    [
        SMALL,
        tuple(map(tuple, SMALL)),
        np.array(SMALL, np.int8),
        np.array(SMALL, np.int64, order="F"),
        np.array(SMALL, float),
        np.array(SMALL, np.float16)[:, :],
        np.repeat(np.array(SMALL), 2, axis=1)[:, ::2],
    ],
)
def test_any_whole_numbers_are_taken(symbols):
    code = CodeMatrix(symbols)
    assert code.symbols.tolist() == SMALL
    assert (code.symbols.dtype, code.alphabet.dtype) == (np.int16, np.int16)
    assert (code.shape, code.n_classes, code.n_columns, code.n_symbols) == ((4, 3), 4, 3, 3)
    assert (code.n_used, code.is_full, code.is_sparse) == (9, False, False)
    assert CodeMatrix(np.array([[0, 1], [1, 0]], np.uint8)).is_full


def test_booleans_are_the_symbols_0_and_1():
    assert CodeMatrix([[True, False], [False, True]]) == CodeMatrix([[1, 0], [0, 1]])


@pytest.mark.parametrize("given_alphabet", [[3, 2, 3], [5, 2, 32767], 7, 7.0, np.int8(3)])
def test_an_alphabet_may_be_larger_than_the_symbols_used(given_alphabet):
    code = CodeMatrix(SMALL, given_alphabet)
    assert code.alphabet.tolist() == np.broadcast_to(given_alphabet, 3).tolist()
    assert code.n_symbols == max(code.alphabet)


def test_the_largest_alphabet():
    code = CodeMatrix([[0], [32766]])
    assert (code.n_symbols, code.symbols.tolist()) == (32767, [[0], [32766]])


def test_the_smaller_form_is_kept():
    quarter = np.full((8, 8), UNUSED)
    quarter[np.arange(8), np.arange(8)] = 0
    quarter[np.arange(8), (np.arange(8) + 1) % 8] = 1
    assert not CodeMatrix(quarter, 2).is_sparse  # 16 of 64
    assert CodeMatrix(np.vstack([quarter, np.full((1, 8), UNUSED)]), 2).is_sparse  # 16 of 72


@pytest.mark.parametrize("dtype", [bool, *(f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)), "f2", "f8"])
def test_every_kind_of_number_makes_the_same_code(dtype):
    symbols = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    assert CodeMatrix(symbols.astype(dtype)) == CodeMatrix(symbols)
    one_based = np.array([[100, 255], [255, 1]], np.uint8)
    assert CodeMatrix.from_one_based(one_based).symbols.tolist() == [[99, 254], [254, 0]]
    assert CodeMatrix.from_one_based(np.array([[127], [1]], np.int8)).symbols.tolist() == [[126], [0]]


def test_a_large_full_matrix_is_checked_without_lists_of_its_entries():
    symbols = np.eye(1500, dtype=np.int8)
    symbols[7, 7:9] = [0, 1]
    with pytest.raises(ValueError, match="all classes that use column 7 have symbol 0"):
        CodeMatrix(symbols)
    symbols[7, 7] = 1
    tracemalloc.start()
    CodeMatrix(symbols)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * symbols.size  # the 2 bytes that are kept, and less than 2 beside them


@pytest.mark.parametrize("symbols", [[[1, -1, 0], [-1, 0, 1], [0, 1, -1]], [[0.0, 1], [1, -1.0], [1, 0]]])
def test_a_matrix_that_may_be_meant_as_signs_draws_a_warning(symbols):
    with pytest.warns(UserWarning, match=LIKE_SIGNS) as caught:
        code = CodeMatrix(symbols)
    assert caught[0].filename == __file__
    assert code == CodeMatrix(symbols, alphabet=2)  # says that -1 is meant as UNUSED: no warning


def test_equal_hashes_of_different_codewords_are_told_apart():
    with mock.patch("nary._validity.hash", create=True, return_value=5):
        assert CodeMatrix([[0, 1], [1, 0], [1, 1]]).n_classes == 3
        with pytest.raises(ValueError, match="classes 1 and 3 have the same"):
            CodeMatrix([[0, 1], [1, 0], [1, 1], [1, 0]])


BAD_MATRICES = {
    "1-D": ([0, 1, 2], ValueError, r"shape \(n_classes, n_columns\) with at least 2 classes and 1 column.*shape \(3,"),
    "3-D": (np.zeros((2, 2, 2), int), ValueError, r"got shape \(2, 2, 2\)\. Give one row of symbols for each class"),
    "scalar": (5, ValueError, r"got shape \(\)"),
    "empty": ([], ValueError, r"got shape \(0,\)"),
    "no column": (np.zeros((3, 0), int), ValueError, r"got shape \(3, 0\)"),
    "one class": ([[0, 1, 2]], ValueError, r"at least 2 classes and 1 column; got shape \(1, 3\)"),
    "ragged": ([[0, 1], [1]], ValueError, "a code matrix must be a rectangular array of integers; .*inhomogeneous"),
    "strings": ([["a", "b"], ["c", "d"]], TypeError, "must hold integers; got an array of <U1. Number the symbols"),
    "digits": ([["0", "1"], ["1", "0"]], TypeError, "must hold integers; got an array of <U1"),
    "None": (None, TypeError, "a code matrix must hold integers; got an array of object"),
    "complex": ([[0j, 1], [1, 0]], TypeError, "must hold integers; got an array of complex128"),
    "dates": (np.array([["2020-01-01"], ["2021-01-01"]], "M8[D]"), TypeError, r"got an array of datetime64\[D\]"),
    "signs and 0": ([[1, -1], [-1, 0]], ValueError, "column 0 have symbol 1.* symbols use CodeMatrix.from_signs"),
    "all unused": ([[-1, -1], [-1, -1]], ValueError, r"no class uses column 0 \(2 such columns\)\. Remove it"),
    "SciPy": (sp.csr_array(np.eye(3, dtype=int)), TypeError, r"a sparse csr_array.*toarray.*CodeMatrix.from_entries"),
    "2^70": ([[2**70, 1], [0, 2]], ValueError, "must hold symbols from 0 to 32766; got 1180591620717411303424. Number"),
    "-2^70": ([[-(2**70), 1], [0, 2]], ValueError, "must hold symbols from 0 to 32766; got -1180591620717411303424"),
    "objects": (np.array([[0, 1], [1, 0]], object), TypeError, "must hold integers; got an array of object"),
    "fraction": ([[0, 0.5], [1, 0]], ValueError, r"must hold integers; got 0\.5\. Symbols are the numbers 0\.\.N-1"),
    "NaN": ([[0, np.nan], [1, 0]], ValueError, "must hold integers; got nan"),
    "infinite": ([[0, -np.inf], [1, 0]], ValueError, "must hold integers; got -inf"),
    "huge float": ([[0, 1e300], [1, 0]], ValueError, "must hold integers; got 1e[+]300"),
    "2^63 - 1": ([[0, 1], [2**63 - 1, 0]], ValueError, "32767"),
    "2^64 - 1": (np.array([[0, 1], [1, 2**64 - 1], [1, 0]], np.uint64), ValueError, "18446744073709551615"),
    "large symbol": ([[0, 1], [40000, 0]], ValueError, r"must have 2 to 32767 symbols; got symbol 40000\. Number the"),
    "negative": ([[0, 1], [1, -2]], ValueError, r"numbers 0\.\.N-1; class 1 has -2 in column 1\. Number the"),
    "equal rows": ([[0, 1], [2, 0], [0, 1]], ValueError, "of its own; classes 0 and 2 have the same. Change one"),
    "equal partial": ([[0, 1], [1, -1], [2, 0], [1, -1]], ValueError, "classes 1 and 3 have the same"),
    "all unused rows": ([[0], [-1], [1], [-1]], ValueError, "classes 1 and 3 have the same"),
    "constant": ([[0, 3], [1, 3]], ValueError, "two classes different symbols; all .* column 1 have symbol 3"),
    "one user": ([[0, 1], [1, -1]], ValueError, "all classes that use column 1 have symbol 1. Remove the column"),
    "no user": ([[0, -1, 0, -1], [1, -1, 1, -1]], ValueError, r"no class uses column 1 \(2 such columns\)\. Remove it"),
    "signs": ([[1, -1, 1], [-1, 1, 1]], ValueError, "For a matrix of -1 and [+]1 use CodeMatrix.from_signs"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_MATRICES)
def test_what_is_no_code_matrix_is_refused(name):
    symbols, error, message = BAD_MATRICES[name]
    with pytest.raises(error, match=message):
        CodeMatrix(symbols)


def test_a_column_of_negative_numbers_is_not_told_an_empty_range():
    with pytest.raises(ValueError, match="class 0 has -2") as raised:
        CodeMatrix([[-2, 0], [-3, 1]])
    assert "0..-" not in str(raised.value)


@pytest.mark.parametrize(
    ("alphabet", "error", "message"),
    [
        ([3, 2], ValueError, r"one number or one for each of the 3 columns; got shape \(2,\)"),
        ([[3, 3, 3]], ValueError, r"one for each of the 3 columns; got shape \(1, 3\)"),
        ([], ValueError, r"one for each of the 3 columns; got shape \(0,\)"),
        (1, ValueError, "a column must have 2 to 32767 symbols; got 1 to 1"),
        ([3, 2, 0], ValueError, "2 to 32767 symbols; got 0 to 3"),
        (-5, ValueError, "2 to 32767 symbols; got -5 to -5"),
        (32768, ValueError, "2 to 32767 symbols; got 32768 to 32768"),
        (2, ValueError, r"symbols of column 0 must lie in 0\.\.1; class 2 has 2\. Give a larger alphabet"),
        ([3, 2, 2], ValueError, r"symbols of column 2 must lie in 0\.\.1; class 0 has 2"),
        ([3, 2.5, 3], ValueError, r"alphabet must hold integers; got 2\.5"),
        ("three", TypeError, "alphabet must hold integers; got an array of <U5"),
        ([3, None, 3], TypeError, "alphabet must hold integers; got an array of object"),
        ([[3], [2, 3]], ValueError, "alphabet must be a rectangular array of integers"),
    ],
)
def test_what_is_no_alphabet_is_refused(alphabet, error, message):
    with pytest.raises(error, match=message):
        CodeMatrix(SMALL, alphabet)


@pytest.mark.parametrize("form", [DENSE, SPARSE])
def test_two_equal_codewords_among_many_are_found_and_named(form):
    rng = np.random.default_rng(0)
    symbols = rng.integers(-1, 4, (3000, 30))
    assert kept(symbols, form).n_classes == 3000
    symbols[2718] = symbols[31]
    with pytest.raises(ValueError, match="classes 31 and 2718 have the same"):
        kept(symbols, form)
    symbols[2718, 7] = (symbols[31, 7] + 2) % 5 - 1  # and one entry tells them apart again
    assert kept(symbols, form).n_classes == 3000


# The two forms


@DETERMINISTIC
@given(loose(), st.integers(0, 2))
def test_dense_and_sparse_forms_say_the_same(rows, spare):
    K, L = len(rows), len(rows[0])
    alphabet = [max(column) + 1 + spare for column in zip(*rows, strict=True)]
    forms = [kept(rows, form, alphabet) for form in (DENSE, SPARSE)]
    used = [(c, s) for s in range(L) for c in range(K) if rows[c][s] != UNUSED]
    for code in forms:
        assert code.shape == (K, L)
        assert (code.n_classes, code.n_columns, code.n_symbols) == (K, L, max(alphabet))
        assert code.alphabet.tolist() == alphabet
        assert (code.n_used, code.is_full) == (len(used), len(used) == K * L)
        assert code.symbols.tolist() == np.asarray(code).tolist() == rows
        assert code.symbols.dtype == np.int16
        for first in range(L + 1):
            for last in range(first, L + 1):
                block = code.block(first, last)
                assert (block.shape, block.dtype) == ((K, last - first), np.int16)
                assert block.tolist() == [word[first:last] for word in rows]
        for s in range(L):
            classes, symbols = code.column(s)
            assert (classes.dtype, symbols.dtype) == (np.int32, np.int16)
            assert list(zip(classes, symbols, strict=True)) == [(c, rows[c][s]) for c, t in used if t == s]
        for c in range(K):
            assert code.word(c).tolist() == rows[c]
            assert code.word(c).dtype == np.int16
        assert [array.dtype for array in code.entries()] == [np.int32, np.int64, np.int16]
        assert list(zip(*code.entries(), strict=True)) == [(c, s, rows[c][s]) for c, s in used]
        counted = code.to_sparse()
        assert (counted.format, counted.shape, counted.nnz) == ("csc", (K, L), len(used))
        assert counted.toarray().tolist() == [[m + 1 for m in word] for word in rows]
    dense, sparse = forms
    for distance in measures.DISTANCES:
        np.testing.assert_array_equal(dense.distances(distance), sparse.distances(distance))
        assert dense.min_distance(distance) == sparse.min_distance(distance)
    np.testing.assert_array_equal(dense.column_correlation(), sparse.column_correlation())
    assert dense.summary() == sparse.summary()
    assert repr(dense) == repr(sparse)
    assert dense._repr_html_() == sparse._repr_html_()


def outcome(call):
    """What a call gives, or that it refuses the index."""
    try:
        found = call()
    except (IndexError, ValueError):
        return "refused"
    return [np.asarray(part).tolist() for part in (found if isinstance(found, tuple) else (found,))]


READS = {
    "word(-1)": lambda code: code.word(-1),
    "word(K)": lambda code: code.word(4),
    "word(-K-1)": lambda code: code.word(-5),
    "column(-1)": lambda code: code.column(-1),
    "column(L)": lambda code: code.column(3),
    "column(-L-1)": lambda code: code.column(-4),
    "block(0, L+1)": lambda code: code.block(0, 4),
    "block(-2, -1)": lambda code: code.block(-2, -1),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_an_index_out_of_range_means_the_same_in_both_forms(read):
    assert outcome(lambda: read(kept(SMALL, DENSE))) == outcome(lambda: read(kept(SMALL, SPARSE)))


# Immutability, equality, copies


def accessors(code):
    yield from (code.symbols, code.alphabet, code.block(0, code.n_columns), code.block(0, 1), code.word(0))
    yield from (*code.entries(), *code.column(0))


@pytest.mark.parametrize("form", [DENSE, SPARSE])
def test_nothing_that_a_code_hands_out_can_change_it(form):
    code = kept(SMALL, form, 5)
    for array in (code.symbols, code.alphabet):
        with pytest.raises(ValueError, match="read-only"):
            array.flat[0] = 1
    for array in accessors(code):
        if array.flags.writeable:
            array.flat[:] = 1
    counted = code.to_sparse()
    counted.data[:] = 9
    counted.indices[:] = 0
    np.array(code)[:] = 1
    code.distances()[:] = 0
    assert code == kept(SMALL, form, 5)
    assert code.symbols.tolist() == SMALL


@pytest.mark.parametrize("form", [DENSE, SPARSE])
def test_a_code_does_not_share_memory_with_what_it_was_made_of(form):
    symbols, alphabet = np.array(SMALL, np.int16), np.array([4, 4, 4], np.int16)
    code = kept(symbols, form, alphabet)
    symbols[:], alphabet[:] = 0, 2
    assert code == kept(SMALL, form, 4)


def test_entries_are_copied_too():
    parts = [np.array([0, 1], np.int32), np.array([0, 0]), np.array([0, 1], np.int16)]
    with mock.patch.object(matrix, "_SPARSE_BELOW", SPARSE):
        code = CodeMatrix.from_entries(*parts, n_classes=2, n_columns=1)
    for part in parts:
        part[:] = 0
    assert code.symbols.tolist() == [[0], [1]]


@pytest.mark.parametrize("form", [DENSE, SPARSE])
def test_attributes_can_be_neither_set_nor_added(form):
    code = kept(SMALL, form)
    assert not hasattr(code, "__dict__")
    for name in ("symbols", "alphabet", "n_classes", "n_columns", "n_symbols", "shape", "n_used", "is_full", "note"):
        with pytest.raises(AttributeError):
            setattr(code, name, 3)
    for name in code.__slots__:
        with pytest.raises(
            AttributeError, match=r"cannot be changed. Make a new one .*CodeMatrix\(symbols, alphabet\)"
        ):
            setattr(code, name, None)
        with pytest.raises(AttributeError, match="cannot be changed"):
            delattr(code, name)
    with pytest.raises(AttributeError, match="cannot be changed"):
        code.__init__([[0], [1]])
    with pytest.raises(AttributeError, match="cannot be changed"):
        code.__setstate__(CodeMatrix([[0], [1]]).__getstate__())
    assert code == kept(SMALL, form)


@pytest.mark.parametrize("form", [DENSE, SPARSE])
@pytest.mark.parametrize("pickled", [False, True])
def test_what_a_code_holds_cannot_be_made_writeable(form, pickled):
    code = kept(SMALL, form, 5)
    if pickled:
        code = pickle.loads(pickle.dumps(code, pickle.HIGHEST_PROTOCOL))
    held = [code._alphabet, code._starts, code._classes, code._used_symbols, code.alphabet, code.entries()[0]]
    held += [code.symbols, code.block(0, 2), code.word(0)] if form == DENSE else [*code.column(0), code.entries()[2]]
    for array in held:
        if not array.flags.writeable:
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
    assert not code.alphabet.flags.writeable
    assert form == SPARSE or not code.block(0, 2).flags.writeable


@DETERMINISTIC
@given(loose(), loose(), st.integers(4, 5), st.integers(4, 5))
def test_equal_exactly_if_symbols_and_alphabet_are(rows, others, size, other_size):
    a, b = CodeMatrix(rows, size), CodeMatrix(others, other_size)
    same = rows == others and size == other_size
    assert (a == b) == (b == a) == same
    assert (a != b) == (not same)
    again = CodeMatrix(rows, size)
    assert a == again
    assert hash(a) == hash(again)
    assert len({a, again, b}) == (1 if same else 2)


def test_codes_of_one_shape_that_are_kept_in_different_forms_differ():
    dense = CodeMatrix((np.arange(9)[:, None] + np.arange(9)) % 9 > 3, 2)
    sparse = CodeMatrix(codes.build("ovo", n_classes=9).block(0, 9), 2)
    assert (dense.shape, dense.is_sparse, sparse.shape, sparse.is_sparse) == ((9, 9), False, (9, 9), True)
    assert dense != sparse
    assert sparse != dense


def test_a_code_equals_nothing_else():
    code = CodeMatrix(SMALL)
    assert (code == SMALL) is False
    assert (code == 3) is False
    assert code.__eq__(code.symbols) is NotImplemented


@pytest.mark.parametrize("form", [DENSE, SPARSE])
def test_copies_are_the_code_itself(form):
    code = kept(SMALL, form)
    assert copy.copy(code) is code
    assert copy.deepcopy([code])[0] is code


@pytest.mark.parametrize("form", [DENSE, SPARSE])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_keeps_the_code_and_its_immutability(form, protocol):
    code = kept(SMALL, form, [3, 4, 5])
    back = pickle.loads(pickle.dumps(code, protocol))
    assert back == code
    assert hash(back) == hash(code)
    assert back.is_sparse == code.is_sparse
    for array in (back.alphabet, back.symbols, *(back.column(0) if form == SPARSE else ())):
        assert not array.flags.writeable
    assert back.distances().tolist() == code.distances().tolist()


@pytest.mark.parametrize("form", [DENSE, SPARSE])
def test_as_a_numpy_array(form):
    code = kept(SMALL, form)
    assert np.asarray(code).dtype == np.int16
    assert np.array(code, dtype=float).tolist() == SMALL
    mine = np.array(code)
    mine[:] = 0
    assert code.symbols.tolist() == SMALL
    if form == DENSE:
        assert np.shares_memory(np.array(code, copy=False), code.symbols)
    else:
        with pytest.raises(ValueError, match=r"no array to give without a copy\. Ask for one with copy=None"):
            np.array(code, copy=False)


# Other ways in


@DETERMINISTIC
@given(loose(), st.randoms(use_true_random=False), st.sampled_from([DENSE, SPARSE]))
def test_entries_in_any_order_make_the_same_code(rows, random, form):
    entries = [(c, s, m) for c, word in enumerate(rows) for s, m in enumerate(word) if m != UNUSED]
    random.shuffle(entries)
    classes, columns, symbols = zip(*entries, strict=True)
    with mock.patch.object(matrix, "_SPARSE_BELOW", form):
        code = CodeMatrix.from_entries(classes, columns, symbols, len(rows), len(rows[0]), 4)
    assert code == kept(rows, form, 4)
    assert list(zip(*code.entries(), strict=True)) == sorted(entries, key=lambda entry: (entry[1], entry[0]))


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"classes": [0, 1, 4, 1]}, ValueError, r"classes must lie in 0\.\.2; got 0\.\.4"),
        ({"classes": [0, -1, 2, 1]}, ValueError, r"classes must lie in 0\.\.2; got -1\.\.2"),
        ({"columns": [0, 2, 1, 0]}, ValueError, r"columns must lie in 0\.\.1; got 0\.\.2"),
        ({"columns": [0, 1, -3, 0]}, ValueError, r"columns must lie in 0\.\.1; got -3\.\.1"),
        ({"symbols": [0, 1, 1]}, ValueError, "same length; got 4, 4 and 3. Give one of each for every used entry"),
        ({"symbols": [0, 1, 0, 0.5]}, ValueError, r"symbols must hold integers; got 0\.5"),
        ({"classes": ["a", "b", "c", "d"]}, TypeError, "classes must hold integers; got an array of <U1"),
        ({"classes": [0, 1, 2, 0]}, ValueError, "given once; class 0 has two symbols in column 0"),
        ({"classes": [], "columns": [], "symbols": []}, ValueError, r"no class uses column 0 \(2 such columns\)"),
        ({"n_columns": 3}, ValueError, r"no class uses column 2 \(1 such column\)"),
        ({"n_classes": 5}, ValueError, "classes 3 and 4 have the same"),
        ({"n_classes": 1}, ValueError, "n_classes must be an integer of at least 2; got 1"),
        ({"n_classes": 3.0}, TypeError, "n_classes must be an integer of at least 2; got 3.0 of type float"),
        ({"n_columns": 0}, ValueError, "n_columns must be an integer of at least 1; got 0"),
        ({"n_columns": True}, TypeError, "n_columns must be an integer of at least 1; got True of type bool"),
        ({"alphabet": 1}, ValueError, "2 to 32767 symbols; got 1 to 1"),
    ],
)
def test_entries_that_make_no_code_are_refused(changed, error, message):
    right = {"classes": [0, 1, 2, 1], "columns": [0, 1, 1, 0], "symbols": [0, 1, 0, 1], "n_classes": 3, "n_columns": 2}
    assert CodeMatrix.from_entries(**right).symbols.tolist() == [[0, -1], [1, 1], [-1, 0]]
    with pytest.raises(error, match=message):
        CodeMatrix.from_entries(**{**right, **changed})


def test_an_unused_entry_is_refused_without_saying_that_it_may_be_given():
    with pytest.raises(ValueError, match="class 2 has -1") as raised:
        CodeMatrix.from_entries([0, 1, 2], [0, 0, 0], [0, 1, UNUSED], 3, 1)
    assert "or be -1" not in str(raised.value)


def test_from_signs():
    code = CodeMatrix.from_signs([[1, -1, 0], [-1, 0, 1], [0, 1, -1]])
    assert code.symbols.tolist() == [[1, 0, -1], [0, -1, 1], [-1, 1, 0]]
    assert code.alphabet.tolist() == [2, 2, 2]
    assert CodeMatrix.from_signs(np.array([[1.0, -1.0], [-1.0, 1.0]])) == CodeMatrix([[1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("signs", "error", "message"),
    [
        ([[1, 2], [-1, 0]], ValueError, r"signs must be -1, 0 or \+1; got values from -1 to 2"),
        ([[1, -3], [-1, 0]], ValueError, r"signs must be -1, 0 or \+1; got values from -3 to 1"),
        ([[1, 0.5], [-1, 0]], ValueError, r"a matrix of signs must hold integers; got 0\.5"),
        ([["+", "-"], ["-", "+"]], TypeError, "a matrix of signs must hold integers; got an array of <U1"),
        ([[1, 1], [1, -1], [1, 1]], ValueError, "all classes that use column 0 have symbol 1"),
        ([1, -1], ValueError, r"got shape \(2,\)"),
        ([], ValueError, r"got shape \(0,\)"),
    ],
)
def test_what_is_no_matrix_of_signs_is_refused(signs, error, message):
    with pytest.raises(error, match=message):
        CodeMatrix.from_signs(signs)


@pytest.mark.parametrize("zero_one", [[[1, 0], [0, 1]], np.eye(2, dtype=bool)])
def test_zeros_and_ones_given_as_signs_are_not_sent_back_to_from_signs(zero_one):
    with pytest.raises(ValueError, match="column 0") as raised:
        CodeMatrix.from_signs(zero_one)
    assert "use CodeMatrix.from_signs" not in str(raised.value)


@pytest.mark.filterwarnings("ignore:a code matrix of -1, 0 and 1")
@DETERMINISTIC
@given(loose())
def test_from_one_based_is_the_papers_notation(rows):
    counted = [[m + 1 for m in word] for word in rows]
    assert CodeMatrix.from_one_based(counted) == CodeMatrix(rows)
    assert CodeMatrix.from_one_based(counted, 6) == CodeMatrix(rows, 6)
    assert CodeMatrix.from_one_based(CodeMatrix(rows).to_sparse().toarray()) == CodeMatrix(rows)


def test_from_one_based_refuses_negative_numbers():
    with pytest.raises(ValueError, match=r"counted from 1 must be at least 0 \(0: unused\); got -1"):
        CodeMatrix.from_one_based([[1, -1], [2, 1]])
    with pytest.raises(TypeError, match="a code matrix must hold integers; got an array of <U1"):
        CodeMatrix.from_one_based([["1"], ["2"]])


# The file


def saved(code, path):
    code.save(path)
    return path


CODES = {
    "dense": lambda: CodeMatrix(SMALL, [3, 9, 300]),
    "sparse": lambda: codes.build("ovo", n_classes=12),
    "random": lambda: codes.build("random", n_classes=20, n_symbols=5, n_columns=30, random_state=0),
    "many symbols": lambda: CodeMatrix([[0, 0], [32766, 1]]),
}


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("as_text", [True, False])
def test_a_saved_code_comes_back(tmp_path, name, as_text):
    code, path = CODES[name](), tmp_path / "a code.nary"
    saved(code, str(path) if as_text else path)
    assert [file.name for file in tmp_path.iterdir()] == ["a code.nary"]  # no suffix added
    back = CodeMatrix.load(str(path) if as_text else path)
    assert back == code
    assert hash(back) == hash(code)
    assert back.is_sparse == code.is_sparse
    assert not back.alphabet.flags.writeable
    assert not back.symbols.flags.writeable


@DETERMINISTIC
@given(loose(), st.sampled_from([DENSE, SPARSE]))
def test_every_code_comes_back_from_a_file(tmp_path_factory, rows, form):
    code = kept(rows, form, 4)
    path = saved(code, tmp_path_factory.getbasetemp() / "code.nary")
    with mock.patch.object(matrix, "_SPARSE_BELOW", form):
        assert CodeMatrix.load(path) == code


@pytest.mark.parametrize("name", CODES)
def test_a_file_holds_plain_arrays_and_no_pickle(tmp_path, name):
    path = saved(CODES[name](), tmp_path / "code")
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            array = np.load(io.BytesIO(archive.read(member)), allow_pickle=False)
            assert array.dtype.kind in "iU"


def test_a_file_of_one_vs_one_stays_small(tmp_path):
    path = saved(codes.build("ovo", n_classes=200), tmp_path / "code")
    assert path.stat().st_size < 200_000  # 19,900 columns: 8 MB as a whole matrix


def refused(path, message, error=ValueError):
    """Loading fails with this message, and leaves no file open (that would be a ResourceWarning: an error here)."""
    with pytest.raises(error, match=message) as raised:
        CodeMatrix.load(path)
    text = str(raised.value)
    del raised
    gc.collect()
    return text


NOT_OURS = "is not a code saved by CodeMatrix.save"


def write_npz(path, **content):
    np.savez(path, **content)


def plain(code):
    return {"format": "nary.CodeMatrix", "version": 1, "shape": code.shape, "alphabet": code.alphabet}


def write_pickle(path):
    path.write_bytes(pickle.dumps(CodeMatrix(SMALL)))


def write_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")


FOREIGN = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("0,1,2\n1,2,0\n"),
    "pickle": write_pickle,
    "zip": write_zip,
    "one array": lambda path: np.save(path, np.eye(3)),
    "other arrays": lambda path: write_npz(path, a=np.eye(3)),
    "objects": lambda path: write_npz(path, format=np.array([object()])),
    "other format": lambda path: write_npz(path, format="other.Thing", version=1),
    "no version": lambda path: write_npz(path, format="nary.CodeMatrix"),
    "no symbols": lambda path: write_npz(path, **plain(CodeMatrix(SMALL))),
    "no alphabet": lambda path: write_npz(path, format="nary.CodeMatrix", version=1, symbols=SMALL),
    "worded version": lambda path: write_npz(path, format="nary.CodeMatrix", version="one", symbols=SMALL, alphabet=3),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_refused_by_name(tmp_path, name):
    path = tmp_path / "foreign.npz" if name != "one array" else tmp_path / "foreign.npy"
    FOREIGN[name](path)
    assert path.name in refused(path, f"{NOT_OURS}|format version")


@pytest.mark.parametrize("share", [0.001, 0.01, 0.3, 0.7, 0.999])
def test_a_truncated_file_is_refused(tmp_path, share):
    path = saved(CODES["random"](), tmp_path / "code")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    refused(path, NOT_OURS)


def loaded_or_error(path):
    try:
        return CodeMatrix.load(path)
    except Exception as error:
        return error


def test_a_damaged_file_is_refused_or_still_right(tmp_path):
    code = CODES["random"]()
    path = saved(code, tmp_path / "code")
    whole = path.read_bytes()
    wrong = {}
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        found = loaded_or_error(path)
        if isinstance(found, CodeMatrix):
            assert found == code
        elif type(found) is not ValueError or not re.search(f"{NOT_OURS}|format version", str(found)):
            wrong[f"{type(found).__name__}: {found}"] = place
    del found
    gc.collect()
    assert wrong == {}


def test_a_file_of_another_version_says_what_to_do(tmp_path):
    code = CodeMatrix(SMALL)
    path = tmp_path / "code.npz"
    write_npz(path, **{**plain(code), "version": 2}, symbols=code.symbols)
    refused(path, "has format version 2; this nary reads version 1. Load it with the nary that saved it, or save it")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"symbols": [[0, 1], [0, 1], [1, 0]]}, "classes 0 and 1 have the same"),
        ({"symbols": [[0, 1], [1, 1]]}, "all classes that use column 1 have symbol 1"),
        ({"alphabet": [2, 2, 2]}, r"one for each of the 2 columns; got shape \(3,\)"),
    ],
)
def test_the_content_of_a_file_is_checked_like_a_new_code(tmp_path, changed, message):
    path = tmp_path / "code.npz"
    write_npz(path, **{**plain(CodeMatrix([[0, 1], [1, 0]])), "symbols": [[0, 1], [1, 0]], **changed})
    refused(path, message)


def test_the_entries_of_a_file_are_checked_like_new_ones(tmp_path):
    code = codes.build("ovo", n_classes=12)
    classes, columns, symbols = code.entries()
    path = tmp_path / "code.npz"
    write_npz(path, **plain(code), classes=classes + 1, columns=columns, used_symbols=symbols)
    refused(path, r"classes must lie in 0\.\.11; got 1\.\.12")


def test_a_path_that_is_no_file_stays_the_systems_error(tmp_path):
    refused(tmp_path / "none", "No such file", FileNotFoundError)
    refused(tmp_path, "Is a directory", IsADirectoryError)
    with pytest.raises(FileNotFoundError, match="No such file"):
        CodeMatrix(SMALL).save(tmp_path / "no" / "folder")


# For people


def nearly_full():
    symbols = np.arange(300)[:, None] >> np.arange(9) & 1
    symbols[299, 3] = UNUSED
    return CodeMatrix(symbols, 2)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: CodeMatrix([[0, 1], [1, 0]]), "CodeMatrix(n_classes=2, n_columns=2, n_symbols=2)"),
        (lambda: CodeMatrix(SMALL), "CodeMatrix(n_classes=4, n_columns=3, n_symbols=2..3, unused=25%)"),
        (lambda: CodeMatrix(SMALL, 3), "CodeMatrix(n_classes=4, n_columns=3, n_symbols=3, unused=25%)"),
        (lambda: codes.build("ovo", n_classes=10), "CodeMatrix(n_classes=10, n_columns=45, n_symbols=2, unused=80%)"),
        (
            lambda: codes.build("ovo", n_classes=500),
            "CodeMatrix(n_classes=500, n_columns=124750, n_symbols=2, unused=99.6%)",
        ),
        (
            nearly_full,
            "CodeMatrix(n_classes=300, n_columns=9, n_symbols=2, unused=0.04%)",
        ),
    ],
)
def test_repr(make, text):
    assert repr(make()) == str(make()) == text


class Table(html.parser.HTMLParser):
    """Reads a table into rows of cells, and checks that every element is closed in its turn."""

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.widths, self.text = [], [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
            self.widths.append(0)
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.widths[-1] += int(dict(attrs).get("colspan", 1))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


@pytest.mark.parametrize(("K", "L"), [(2, 1), (12, 24), (13, 24), (12, 25), (40, 60), (5000, 300)])
def test_html_shows_the_corner_of_a_code(K, L):
    code = CodeMatrix(np.random.default_rng(0).integers(-1, 4, (K, L)) if K > 2 else [[0], [1]])
    text = code._repr_html_()
    assert len(text) < 12_000
    found = Table(text)
    rows, columns = min(K, 12), min(L, 24)
    assert found.text.startswith(repr(code))
    assert found.rows[0][: columns + 1] == ["", *map(str, range(columns))]
    for c in range(rows):
        shown = ["·" if m == UNUSED else str(m) for m in code.word(c)[:columns]]
        assert found.rows[c + 1] == [str(c), *shown, *(["…"] if L > columns else [])]
    if K > rows:
        assert found.rows[-1] == [f"… {K - rows} more classes"]
    assert len(found.rows) == 1 + rows + (K > rows)
    assert len(set(found.widths)) == 1  # every row is as wide as the table


def test_html_is_escaped_and_does_not_make_the_whole_matrix():
    with mock.patch.object(CodeMatrix, "__repr__", return_value="<script>&"):
        assert "<p>&lt;script&gt;&amp;</p>" in CodeMatrix(SMALL)._repr_html_()
    code = codes.build("ovo", n_classes=1000)
    with mock.patch.object(CodeMatrix, "symbols", property(lambda self: pytest.fail("made the whole matrix"))):
        assert "988 more classes" in code._repr_html_()


def test_summary_fields_and_text():
    code = CodeMatrix.from_one_based([[1, 1, 0], [2, 1, 1], [3, 2, 2]])
    found = code.summary()
    hamming, absolute = [1.5, 2.5, 3], [1.5, 3.5, 3]  # of the pairs 12, 13 and 23, by hand
    assert (found.n_classes, found.n_columns, found.alphabet_range) == (3, 3, (2, 3))
    assert found.used == pytest.approx(8 / 9)
    assert (found.min_hamming, found.min_absolute) == (min(hamming), min(absolute))
    assert found.mean_hamming == pytest.approx(sum(hamming) / 3)
    assert found.mean_absolute == pytest.approx(sum(absolute) / 3)
    values = np.array([[0, 0, 0.5], [1, 0, 0], [2, 1, 1]])
    between = np.abs(np.corrcoef(values, rowvar=False))
    assert found.mean_absolute_correlation == pytest.approx((between.sum() - 3) / 6)
    lines = str(found).splitlines()
    assert lines[0] == "3 classes, 3 columns, 2 to 3 symbols, 88.9% of the entries used"
    assert lines[1] == f"Hamming distance:  min (rho) 1.5, mean {sum(hamming) / 3:.4g}"
    assert lines[2] == f"absolute distance: min (rho) 1.5, mean {sum(absolute) / 3:.4g}"
    assert lines[3] == f"mean |correlation| between columns: {found.mean_absolute_correlation:.4g}"
    assert str(CodeMatrix([[0], [1]]).summary()).startswith("2 classes, 1 column, 2 symbols, 100.0% of the entries")


def test_a_summary_of_a_large_code_leaves_out_what_takes_all_pairs():
    tall = codes.build("identity", n_classes=5001).summary()
    assert tall.min_hamming is tall.mean_hamming is tall.min_absolute is tall.mean_absolute is None
    assert tall.mean_absolute_correlation == 0
    assert str(tall).count("not measured (too large)") == 4
    wide = codes.build("ovo", n_classes=65).summary()
    assert (wide.n_columns, wide.mean_absolute_correlation) == (2080, None)
    assert wide.min_hamming == (2080 - 1) / 2 + 1
    assert str(wide).count("not measured (too large)") == 1
