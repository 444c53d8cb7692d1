"""Distances, correlations, bounds and counts against the paper's definitions, written out as plain loops."""

from __future__ import annotations

import itertools
import math
import re
import signal
import tracemalloc
from contextlib import contextmanager
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nary import CodeMatrix, _kernels, codes, matrix, measures
from nary.measures import ErrorBound

DETERMINISTIC = settings(deadline=None, derandomize=True, max_examples=80)

# The paper's table "An example of N-ary coding matrix M", and the outputs it decodes to class 4.
PAPER = [
    [1, 1, 2, 4, 1, 1],
    [2, 1, 1, 3, 2, 1],
    [3, 2, 1, 2, 3, 1],
    [4, 3, 1, 1, 4, 2],
    [4, 3, 2, 2, 4, 3],
    [4, 3, 3, 3, 3, 4],
    [3, 4, 4, 4, 2, 4],
]
SAID = [4, 3, 1, 2, 4, 2]


def definition_1(a, b):
    """The paper's generalised Hamming distance of two rows of symbols 1..N, 0 for unused."""
    total = Fraction(0)
    for x, y in zip(a, b, strict=True):
        if x == 0 or y == 0:
            total += Fraction(1, 2)
        elif x != y:
            total += 1
    return float(total)


def definition_2(a, b):
    """The paper's absolute distance of two rows of numbers."""
    return float(sum(abs(x - y) for x, y in zip(a, b, strict=True)))


def absolute_of_partial(a, b, alphabet):
    """Definition 2 on 0..N-1 with nary's rule for unused entries (0 here): half a column's span where one is unused."""
    total = Fraction(0)
    for x, y, size in zip(a, b, alphabet, strict=True):
        if x and y:
            total += abs(x - y)
        elif x or y:
            total += Fraction(size - 1, 2)
    return float(total)


def table(rows, distance):
    return np.array([[distance(a, b) for b in rows] for a in rows])


def off_diagonal(square):
    return square[~np.eye(len(square), dtype=bool)]


@contextmanager
def within(seconds):
    """Fails what takes longer: a search that never ends must not hang the tests."""

    def stop(*_):
        pytest.fail(f"took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@st.composite
def one_based(draw, max_alphabet=5, partial=True):
    """A valid code in the paper's notation and its alphabet: mixed column sizes, few to many unused entries."""
    K, L = draw(st.integers(2, 7)), draw(st.integers(1, 6))
    alphabet = draw(st.lists(st.integers(2, max_alphabet), min_size=L, max_size=L))
    idle = draw(st.integers(0, 6)) if partial else 0
    columns = [
        draw(
            st.lists(st.sampled_from([0] * idle + list(range(1, size + 1))), min_size=K, max_size=K).filter(
                lambda column: len(set(column) - {0}) > 1
            )
        )
        for size in alphabet
    ]
    return [list(word) for word in zip(*columns, strict=True)], alphabet


def distinct(drawn):
    return len({tuple(word) for word in drawn[0]}) == len(drawn[0])


CODES = one_based().filter(distinct)
FULL_CODES = one_based(partial=False).filter(distinct)
TERNARY_CODES = one_based(max_alphabet=2).filter(distinct)


# Distances


def test_the_papers_example_matrix():
    code = CodeMatrix.from_one_based(PAPER)
    np.testing.assert_array_equal(code.distances("hamming"), table(PAPER, definition_1))
    np.testing.assert_array_equal(code.distances("absolute"), table(PAPER, definition_2))
    # By hand: rows 1 and 2 differ by 1, 0, 1, 1, 1, 0 and rows 1 and 7 by 2, 3, 2, 0, 1, 3.
    assert code.distances("hamming")[0, [1, 6]].tolist() == [4, 5]
    assert code.distances("absolute")[0, [1, 6]].tolist() == [4, 11]


@pytest.mark.parametrize(("distance", "definition"), [("hamming", definition_1), ("absolute", definition_2)])
def test_the_papers_example_is_decoded_to_class_4(distance, definition):
    from_said = [definition(SAID, word) for word in PAPER]
    assert from_said.index(min(from_said)) + 1 == 4
    measured = CodeMatrix.from_one_based([*PAPER, SAID]).distances(distance)[-1, :-1]
    assert measured.tolist() == from_said


@DETERMINISTIC
@given(CODES)
def test_distances_are_the_papers_definitions(drawn):
    rows, alphabet = drawn
    for below in (0.0, 2.0):  # kept dense, kept sparse
        with mock.patch.object(matrix, "_SPARSE_BELOW", below):
            code = CodeMatrix.from_one_based(rows, alphabet)
        assert code.is_sparse == (below > 1)
        hamming = table(rows, definition_1)
        absolute = table(rows, lambda a, b: absolute_of_partial(a, b, alphabet))
        for name, expected in (("hamming", hamming), ("absolute", absolute)):
            found = measures.distances(code, name)
            assert found.dtype == np.float64
            np.testing.assert_array_equal(found, expected)
            assert code.min_distance(name) == off_diagonal(expected).min()
            assert measures.mean_distance(code, name) == pytest.approx(off_diagonal(expected).mean(), rel=1e-12)


@DETERMINISTIC
@given(TERNARY_CODES)
def test_the_absolute_distance_of_ternary_codes_is_half_the_papers_on_plus_minus_one(drawn):
    signs = [[(0, -1, 1)[m] for m in word] for word in drawn[0]]
    code = CodeMatrix.from_signs(signs)
    np.testing.assert_array_equal(2 * code.distances("absolute"), table(signs, definition_2))
    np.testing.assert_array_equal(code.distances("hamming"), table(signs, definition_1))


@DETERMINISTIC
@given(CODES, st.sampled_from(measures.DISTANCES))
def test_distances_obey_the_triangle_inequality_that_the_error_bound_rests_on(drawn, distance):
    found = CodeMatrix.from_one_based(*drawn).distances(distance)
    assert (found == found.T).all()
    assert (found >= 0).all()
    assert (found[:, None, :] <= found[:, :, None] + found[None, :, :]).all()


@pytest.mark.parametrize("K", [3, 4, 5, 8, 13, 40])
def test_table_of_distances_one_vs_all(K):
    code = codes.build("ova", n_classes=K)
    assert set(off_diagonal(code.distances("hamming"))) == {2}
    assert set(2 * off_diagonal(code.distances("absolute"))) == {4}  # the paper's scale is -1, +1


@pytest.mark.parametrize("K", [3, 4, 5, 8, 13, 40])
def test_table_of_distances_one_vs_one(K):
    code = codes.build("ovo", n_classes=K)
    assert set(off_diagonal(code.distances("hamming"))) == {(math.comb(K, 2) - 1) / 2 + 1}
    assert set(2 * off_diagonal(code.distances("absolute"))) == {2 * K - 2}


@pytest.mark.parametrize("n_symbols", [2, 255, 256, 257, 300, 32767])
@pytest.mark.parametrize("n_columns", [1, 63, 64, 65, 127, 128, 129])
def test_distances_around_the_vector_width(level, n_symbols, n_columns):
    rng = np.random.default_rng(n_symbols * n_columns)
    symbols = rng.integers(0, n_symbols, (9, n_columns))
    symbols[:2] = [[0], [n_symbols - 1]]  # the furthest that two words can be
    words = _kernels.pad_words(symbols.astype(np.int16))
    for absolute in (False, True):
        expected = table(symbols.tolist(), definition_2 if absolute else lambda a, b: definition_1(*up((a, b))))
        assert _kernels.distances(words, 0, 9, absolute).tolist() == expected.tolist()
        assert _kernels.distances(words, 3, 5, absolute, 2).tolist() == expected[3:5].tolist()
    assert expected[0, 1] == n_columns * (n_symbols - 1)


def up(rows):
    """Symbols counted from 1."""
    return [[int(m) + 1 for m in row] for row in rows]


@pytest.mark.parametrize("distance", measures.DISTANCES)
@pytest.mark.parametrize("design", ["random", "sparse"])
@pytest.mark.parametrize("block_cells", [1, 100, 71 * 10])
def test_blocks_of_rows_and_threads_change_nothing(monkeypatch, distance, design, block_cells):
    made = {"random": codes.Random(n_candidates=1), "sparse": codes.Sparse(n_candidates=1)}[design]
    code = codes.build(made, n_classes=71, n_columns=70, random_state=0)
    whole = [measures.distances(code, distance), *both(code, distance)]
    monkeypatch.setattr(measures, "_BLOCK_CELLS", block_cells)
    for n_threads in (1, 2, 4):
        np.testing.assert_array_equal(measures.distances(code, distance, n_threads), whole[0])
        assert both(code, distance, n_threads) == pytest.approx(whole[1:], rel=1e-13)
    assert whole[1:] == pytest.approx([off_diagonal(whole[0]).min(), off_diagonal(whole[0]).mean()], rel=1e-13)


def test_the_minimum_distance_of_many_classes_holds_no_square_array():
    K = 6000
    code = CodeMatrix(np.random.default_rng(0).integers(0, 9, (K, 40)))
    tracemalloc.start()
    rho = code.min_distance()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0 < rho < 40
    assert peak < 0.5 * 8 * K * K


def both(code, distance, n_threads=1):
    return [measures.min_distance(code, distance, n_threads), measures.mean_distance(code, distance, n_threads)]


@pytest.mark.parametrize(
    "measure",
    [
        measures.distances,
        measures.min_distance,
        measures.mean_distance,
        lambda code, name: code.distances(name),
        lambda code, name: code.min_distance(name),
        lambda code, name: measures.expected_distance(10, 3, name),
    ],
)
def test_an_unknown_distance_is_refused_with_the_nearest_name(measure):
    code = CodeMatrix.from_one_based(PAPER)
    expected = r"unknown distance 'hamm1ng': expected one of 'absolute', 'hamming'\. Did you mean 'hamming'\?"
    with pytest.raises(ValueError, match=expected):
        measure(code, "hamm1ng")


# Column correlation


@DETERMINISTIC
@given(CODES)
def test_column_correlation_is_pearsons(drawn):
    rows, alphabet = drawn
    code = CodeMatrix.from_one_based(rows, alphabet)
    middle = [(size + 1) / 2 for size in alphabet]
    values = np.array([[m or middle[s] for s, m in enumerate(word)] for word in rows], float)
    expected = np.corrcoef(values, rowvar=False).reshape(len(alphabet), len(alphabet))
    found = code.column_correlation()
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (np.diag(found) == 1).all()
    assert (np.abs(found) <= 1).all()
    pairs = [abs(expected[s, t]) for s in range(len(alphabet)) for t in range(len(alphabet)) if s != t]
    assert measures.mean_absolute_correlation(code) == pytest.approx(sum(pairs) / len(pairs) if pairs else 0, abs=1e-12)


def test_correlation_of_more_columns_than_fit_names_the_limit_and_a_way_out():
    code = codes.build("ovo", n_classes=102)
    with pytest.raises(ValueError, match=r"5151 columns would hold 5151 x 5151 numbers \(0\.2 GB\).*at most 5000"):
        code.column_correlation()
    with pytest.raises(ValueError, match=re.escape("CodeMatrix(code.block(0, 5000), alphabet=N)")):
        measures.mean_absolute_correlation(code)
    assert CodeMatrix(code.block(0, 5000), alphabet=2).shape == (102, 5000)


# The paper's lemmas


@pytest.mark.parametrize("N", [2, 3, 4, 5, 10, 97])
def test_lemmas_by_enumerating_all_pairs_of_symbols(N):
    pairs = list(itertools.product(range(1, N + 1), repeat=2))
    hamming = Fraction(sum(a != b for a, b in pairs), N * N)
    absolute = Fraction(sum(abs(a - b) for a, b in pairs), N * N)
    assert measures.expected_distance(7, N, "hamming") == pytest.approx(float(7 * hamming), rel=1e-14)
    assert measures.expected_distance(7, N, "absolute") == pytest.approx(float(7 * absolute), rel=1e-14)
    assert measures.expected_distance(7, N) == measures.expected_distance(7, N, "hamming")


def deviation_of_mean_distance(K, L, N, n_codes, distance):
    """Standard deviation of the mean distance over all pairs, columns and codes of independent uniform symbols.

    The mean over the pairs of a column is a U-statistic: its variance is (4 (K-2) z1 + 2 z2) / (K (K-1)) with z2 the
    variance of the distance of a pair and z1 that of its mean given one of the two symbols.
    """
    apart = np.abs(np.subtract.outer(np.arange(N), np.arange(N))).astype(float)
    if distance == "hamming":
        apart = (apart > 0).astype(float)
    z1, z2 = apart.mean(axis=1).var(), apart.var()
    of_a_column = (4 * (K - 2) * z1 + 2 * z2) / (K * (K - 1))
    return math.sqrt(L * of_a_column / n_codes)


@pytest.mark.parametrize("distance", measures.DISTANCES)
@pytest.mark.parametrize("N", [2, 3, 5, 10])
def test_mean_distance_of_random_codes_is_what_the_lemmas_say(N, distance):
    K, L, n_codes = 20, 30, 100
    design = codes.Random(n_candidates=1, allow_repeats=True)  # one candidate: no selection; no redrawn columns
    means = [
        measures.mean_distance(codes.build(design, n_classes=K, n_symbols=N, n_columns=L, random_state=i), distance)
        for i in range(n_codes)
    ]
    # 5 standard deviations: a right implementation fails for one choice of seeds in 1.7 million. Constant columns
    # (drawn again) have probability below 2^-19 and shift the mean by less than a hundredth of that.
    allowed = 5 * deviation_of_mean_distance(K, L, N, n_codes, distance)
    assert abs(np.mean(means) - measures.expected_distance(L, N, distance)) < allowed
    assert allowed < 0.02 * measures.expected_distance(L, N, distance)  # and the test can tell the formulas apart


# Bounds


@pytest.mark.parametrize(("K", "N"), [(2, 2), (3, 2), (4, 2), (5, 2), (7, 2), (4, 3), (5, 3), (6, 3), (5, 4), (3, 5)])
def test_plotkin_bound_is_the_largest_mean_distance_a_column_can_have(K, N):
    best = Fraction(0)
    for column in itertools.product(range(N), repeat=K):
        differ = sum(a != b for a, b in itertools.combinations(column, 2))
        best = max(best, Fraction(differ, math.comb(K, 2)))
    assert measures.plotkin_bound(K, N, 12) == pytest.approx(float(12 * best), rel=1e-14)


@pytest.mark.parametrize(
    ("words", "rho"),
    [
        (["000", "011", "101", "110"], 2),  # even words: both bounds are reached
        (["0000000", "0001111", "0110011", "0111100", "1010101", "1011010", "1100110", "1101001"], 4),  # simplex code
        ([f"{a}{b}{(a + b) % 3}" for a in range(3) for b in range(3)], 2),  # a parity symbol: Singleton
        (["0", "1", "2", "3"], 1),
    ],
)
def test_bounds_of_known_codes(words, rho):
    code = CodeMatrix([[int(m) for m in word] for word in words])
    sizes = (code.n_classes, code.n_symbols, code.n_columns)
    assert code.min_distance() == rho
    reached = (math.floor(measures.plotkin_bound(*sizes) + 1e-9), measures.singleton_bound(*sizes))
    assert min(reached) == rho


@DETERMINISTIC
@given(FULL_CODES)
def test_no_code_exceeds_the_bounds(drawn):
    code = CodeMatrix.from_one_based(*drawn)
    sizes = (code.n_classes, code.n_symbols, code.n_columns)
    assert code.min_distance() <= measures.plotkin_bound(*sizes) + 1e-9
    assert code.min_distance() <= measures.singleton_bound(*sizes)


@pytest.mark.parametrize("N", [2, 3, 4, 5, 16, 50])
def test_no_searched_code_exceeds_the_bounds(N):
    for K, L in ((50, 20), (60, 7), (51, 100)):
        code = codes.build(codes.Random(20, "hamming"), n_classes=K, n_symbols=N, n_columns=L, random_state=N)
        bounds = (measures.plotkin_bound(K, N, L), measures.singleton_bound(K, N, L))
        assert 0 < code.min_distance() <= min(bounds) + 1e-9


def test_singleton_bound_by_the_number_of_words():
    """Deleting d - 1 columns leaves different words, so that K <= N^(L - d + 1)."""
    for K, N, L in itertools.product(range(2, 30), range(2, 6), range(1, 7)):
        if N**L >= K:
            allowed = [d for d in range(1, L + 1) if N ** (L - d + 1) >= K]
            assert measures.singleton_bound(K, N, L) == max(allowed)


def test_smallest_length_in_whole_numbers():
    for N in (2, 3, 7, 10, 32767):
        for length in (1, 2, 5, 20):
            words = N**length
            assert measures.smallest_length(words, N) == length
            assert measures.smallest_length(words + 1, N) == length + 1
    assert measures.smallest_length(2, 2) == measures.smallest_length(2, 100) == 1


def test_one_symbol_gives_no_words_and_is_refused():
    with within(2), pytest.raises(ValueError, match="at least 2"):
        measures.smallest_length(5, 1)


def test_count_columns_by_enumeration():
    for K in range(2, 7):
        for N in range(2, 7):
            partitions = set()
            for column in itertools.product(range(N), repeat=K):
                groups = {m: tuple(c for c in range(K) if column[c] == m) for m in column}
                partitions.add(frozenset(groups.values()))
            assert measures.count_columns(K, N) == len(partitions) - 1  # the constant column is none


def test_count_columns_known_values_and_limit():
    bell = [1, 1, 2, 5, 15, 52, 203, 877, 4140, 21147, 115975]
    for K in range(2, 11):
        assert measures.count_columns(K, K) == measures.count_columns(K, K + 5) == bell[K] - 1
        assert measures.count_columns(K, 2) == 2 ** (K - 1) - 1
    assert measures.count_columns(10, 2, most=100) == 100
    assert measures.count_columns(4, 2, most=100) == 7
    assert measures.count_columns(1000, 250) == 1 << 62


def test_counting_columns_of_many_classes_is_quick():
    with within(2):
        assert measures.count_columns(20_000, 5_000, most=100) == 100


# The error bound


@DETERMINISTIC
@given(
    FULL_CODES.flatmap(
        lambda drawn: st.tuples(
            st.just(drawn),
            st.lists(
                st.tuples(st.integers(0, len(drawn[0]) - 1), st.tuples(*(st.integers(1, size) for size in drawn[1]))),
                min_size=1,
                max_size=12,
            ),
        )
    ),
    st.sampled_from(measures.DISTANCES),
)
def test_distance_decoding_never_errs_more_than_the_theorem_allows(drawn, distance):
    (rows, alphabet), samples = drawn
    definition = {"hamming": definition_1, "absolute": definition_2}[distance]
    code = CodeMatrix.from_one_based(rows, alphabet)
    costs = np.array([[definition(said, word) for word in rows] for _, said in samples], np.float32)
    labels = np.array([label for label, _ in samples])
    nearest = costs.argmin(axis=1)
    found = ErrorBound.of(code, distance, costs[np.arange(labels.size), labels], labels, nearest, nearest)
    # B-bar by its own definition: the mean over the columns of the mean loss of a column.
    by_column = [
        sum(definition([said[s]], [rows[label][s]]) for label, said in samples) / len(samples)
        for s in range(len(alphabet))
    ]
    assert found.mean_loss == pytest.approx(sum(by_column) / len(alphabet), rel=1e-6)
    assert found.rho == off_diagonal(table(rows, definition)).min()
    assert found.observed_error == found.decoding_error == np.mean(costs.argmin(axis=1) != labels)
    assert found.bound == pytest.approx(2 * len(alphabet) * found.mean_loss / found.rho, rel=1e-12)
    assert found.decoding_error <= found.bound + 1e-6


def test_error_bound_tells_the_observed_error_from_that_of_distance_decoding():
    code = CodeMatrix([[0, 0, 0, 0], [1, 1, 1, 1]])
    costs = np.array([[0, 4], [1, 3], [3, 1], [4, 0]], np.float32)
    labels, observed = np.array([0, 0, 0, 1]), np.array([1, 1, 0, 1])
    found = ErrorBound.of(code, "hamming", costs[np.arange(4), labels], labels, costs.argmin(axis=1), observed)
    assert (found.rho, found.n_columns, found.mean_loss) == (4, 4, 1 / 4)
    assert (found.observed_error, found.decoding_error, found.bound) == (0.5, 0.25, 0.5)
    assert str(found) == (
        "rho = 4 (hamming), B-bar = 0.2500, L = 4: error <= 2 L B-bar / rho = 0.5000; observed 0.5000 "
        "(hamming decoding: 0.2500)"
    )


def test_error_bound_formula_and_its_refusal_of_equal_codewords():
    assert measures.error_bound(rho=5, mean_loss=0.1, n_columns=20) == pytest.approx(0.8)
    with pytest.raises(ValueError, match="minimum distance above 0; got 0: two classes share a codeword"):
        measures.error_bound(0, 0.1, 20)


def test_distances_of_huge_alphabets_are_added_up_beyond_32_bits():
    L = 70_000  # L x 32766 is more than 2^31
    symbols = np.zeros((3, L), np.int16)
    symbols[1], symbols[2, ::2] = 32766, 32766
    code = CodeMatrix(symbols)
    assert code.distances("absolute").tolist() == [
        [0, 32766 * L, 32766 * L / 2],
        [32766 * L, 0, 32766 * L / 2],
        [32766 * L / 2, 32766 * L / 2, 0],
    ]
    assert code.min_distance("absolute") == 32766 * L / 2
    assert code.min_distance("hamming") == L / 2
