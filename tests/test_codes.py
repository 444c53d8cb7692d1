"""The designs: every code valid, of the size asked for, the best of its candidates, and the same bits everywhere."""

from __future__ import annotations

import functools
import itertools
import math
import os
import pickle
import re
import signal
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from nary import UNUSED, CodeMatrix, _kernels, _reference, codes, measures

DETERMINISTIC = settings(deadline=None, derandomize=True, max_examples=60)

# Every design, with so few candidates that hundreds of codes are built in a second.
QUICK = {
    "dense": codes.Dense(n_candidates=20),
    "identity": codes.Identity(),
    "ova": codes.OneVsAll(),
    "ovo": codes.OneVsOne(),
    "random": codes.Random(n_candidates=20),
    "sparse": codes.Sparse(n_candidates=5),
}


def columns_of(code):
    """Each column as a dictionary from the classes that use it to their symbols."""
    columns = [{} for _ in range(code.n_columns)]
    for c, s, m in zip(*(part.tolist() for part in code.entries()), strict=True):
        columns[s][c] = m
    return columns


def partition(column):
    """What relabelling leaves of a column: the groups of classes with one symbol."""
    groups = {}
    for c, m in column.items():
        groups.setdefault(m, []).append(c)
    return frozenset(map(tuple, groups.values()))


def assert_valid(code, repeats=False):
    """DESIGN's invariant 3: distinct rows, no constant column, none that repeats another up to relabelling."""
    columns = columns_of(code)
    words = [[] for _ in range(code.n_classes)]
    for s, column in enumerate(columns):
        assert len(set(column.values())) > 1, f"column {s} is constant"
        assert all(0 <= m < code.alphabet[s] for m in column.values())
        for c, m in column.items():
            words[c].append((s, m))
    assert len(set(map(tuple, words))) == code.n_classes, "two classes share a codeword"
    if not repeats:
        assert len(set(map(partition, columns))) == code.n_columns, "a column repeats another"


@contextmanager
def within(seconds):
    """Fails what takes longer: a search that never ends must not hang the tests."""

    def stop(*_):
        pytest.fail(f"took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds * float(os.environ.get("NARY_PATIENCE", "1")))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def nearest_pair(symbols, absolute):
    """The minimum distance of words that use every column, by its definition."""
    wide = np.asarray(symbols, np.int64)
    apart = [np.abs(a - b) if absolute else a != b for a, b in itertools.combinations(wide, 2)]
    return min(int(entries.sum()) for entries in apart)


# Every design


def test_names():
    assert codes.names() == sorted(codes.names())
    assert set(codes.names()) >= {"dense", "identity", "ova", "ovo", "random", "sparse"}
    assert set(QUICK) == set(codes.names()), "a new design: add it to QUICK, so that all tests here see it"


@pytest.mark.parametrize("name", codes.names())
def test_every_name_builds_with_its_defaults(name):
    with within(5):
        code = codes.build(name, n_classes=10, random_state=0)
    assert code.n_classes == 10
    assert_valid(code)
    assert code == codes.build(type(QUICK[name])(), n_classes=10, random_state=0)


@pytest.mark.parametrize("name", QUICK)
def test_every_design_is_valid_for_3_to_60_classes(name):
    for K in range(3, 61):
        code = codes.build(QUICK[name], n_classes=K, random_state=K)
        assert code.n_classes == K
        assert_valid(code)


@pytest.mark.parametrize("name", QUICK)
@settings(DETERMINISTIC, max_examples=4)
@given(K=st.integers(61, 300), seed=st.integers(0, 2**32 - 1))
def test_every_design_is_valid_for_many_classes(name, K, seed):
    code = codes.build(QUICK[name], n_classes=K, random_state=seed)
    assert code.n_classes == K
    assert_valid(code)


@pytest.mark.parametrize("K", [2, 3, 4, 5])
@pytest.mark.parametrize("name", codes.names())
def test_few_classes(name, K):
    with within(2):
        code = codes.build(name, n_classes=K, random_state=0)
    assert code.n_classes == K
    assert_valid(code)
    sizes = {"ova": 1 if K == 2 else K, "ovo": math.comb(K, 2), "identity": 1}
    assert code.n_columns == sizes.get(name, code.n_columns)
    if K == 2:
        assert (code.n_columns, code.n_symbols) == (1, 2)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("K", [3, 26, 90])
def test_the_same_seed_gives_the_same_code_for_any_number_of_threads(name, K):
    first = codes.build(QUICK[name], n_classes=K, random_state=7)
    for n_jobs in (None, 1, 2, 4):
        again = codes.build(clone(QUICK[name]), n_classes=K, random_state=7, n_jobs=n_jobs)
        assert again == first


@pytest.mark.parametrize("name", ["dense", "random", "sparse"])
def test_other_seeds_give_other_codes(name):
    build = functools.partial(codes.build, QUICK[name], n_classes=26)
    assert len({build(random_state=seed) for seed in range(10)}) == 10
    assert len({build(random_state=None) for _ in range(3)}) == 3


def test_random_states_of_all_kinds():
    build = functools.partial(codes.build, QUICK["random"], n_classes=12)
    assert build(random_state=np.random.RandomState(3)) == build(random_state=3)
    state = np.random.RandomState(3)
    assert build(random_state=state) != build(random_state=state)  # it moves on
    with pytest.raises(ValueError, match="cannot be used to seed"):
        build(random_state="three")


@pytest.mark.parametrize("name", QUICK)
def test_designs_are_scikit_learn_objects(name):
    design = QUICK[name]
    parameters = design.get_params()
    assert clone(design).get_params() == parameters
    assert type(design)(**parameters).get_params() == parameters
    assert design.set_params(**parameters) is design
    assert repr(design).startswith(type(design).__name__ + "(")
    if "n_candidates" in parameters:
        assert type(design)().n_candidates == 1000
        assert clone(design).set_params(n_candidates=3).n_candidates == 3
    with pytest.raises(ValueError, match="Invalid parameter 'n_canidates'"):
        design.set_params(n_canidates=3)


def test_a_design_stores_its_parameters_unchecked_and_make_leaves_them_alone():
    design = codes.Random(n_candidates="many", distance="hamming", allow_repeats=True)
    assert design.get_params() == {"n_candidates": "many", "distance": "hamming", "allow_repeats": True}
    design = codes.Random(n_candidates=2)
    codes.build(design, n_classes=5, random_state=0)
    assert vars(design) == {"n_candidates": 2, "distance": "absolute", "allow_repeats": "auto"}


# The fixed designs


@pytest.mark.parametrize("K", [3, 4, 26])
def test_one_vs_all_matrix(K):
    expected = [[1 if c == s else 0 for s in range(K)] for c in range(K)]
    assert codes.build("ova", n_classes=K).symbols.tolist() == expected


@pytest.mark.parametrize("K", [2, 3, 4, 26])
def test_one_vs_one_matrix(K):
    expected = [{a: 0, b: 1} for a, b in itertools.combinations(range(K), 2)]
    assert columns_of(codes.build("ovo", n_classes=K)) == expected


def test_one_vs_one_of_a_thousand_classes_is_kept_by_its_used_entries():
    tracemalloc.start()
    code = codes.build("ovo", n_classes=1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert code.shape == (1000, 499_500)
    assert code.is_sparse
    assert code.n_used == 2 * 499_500
    assert len(pickle.dumps(code)) < 13_000_000  # 2 x (4 + 2) bytes of entries, 8 of a start, 2 of an alphabet a column
    assert peak < 200_000_000  # as a whole matrix: 1 GB
    assert [part.tolist() for part in code.column(499_499)] == [[998, 999], [0, 1]]
    assert code.word(0)[:1000].tolist() == [0] * 999 + [UNUSED]


def test_one_vs_all_of_many_classes_takes_little_beside_its_matrix():
    tracemalloc.start()
    code = codes.build("ova", n_classes=2000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (code.shape, code.is_full) == ((2000, 2000), True)
    assert peak < 5 * 2000**2  # bytes: two of them are the matrix


def test_identity():
    assert codes.build("identity", n_classes=7).symbols.tolist() == [[c] for c in range(7)]
    assert codes.build("identity", n_classes=32767).n_symbols == 32767
    with pytest.raises(ValueError, match=r"Identity takes at most 32767 classes.*got 32768\. Use the design"):
        codes.build("identity", n_classes=32768)


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("ova", {"n_columns": 5}, "OneVsAll has n_columns=6 for 6 classes; got n_columns=5. Leave n_columns='auto'"),
        ("ova", {"n_symbols": 3}, "OneVsAll has n_symbols=2 for 6 classes; got n_symbols=3. Leave n_symbols='auto'"),
        ("ovo", {"n_columns": 6}, "OneVsOne has n_columns=15 for 6 classes; got n_columns=6"),
        ("ovo", {"n_symbols": 3}, "OneVsOne has n_symbols=2 for 6 classes; got n_symbols=3"),
        ("identity", {"n_columns": 2}, "Identity has n_columns=1 for 6 classes; got n_columns=2"),
        ("identity", {"n_symbols": 5}, "Identity has n_symbols=6 for 6 classes; got n_symbols=5.*such as 'random'"),
    ],
)
def test_a_fixed_design_takes_only_its_own_size(name, sizes, message):
    with pytest.raises(ValueError, match=message):
        codes.build(name, n_classes=6, **sizes)


@pytest.mark.parametrize(("name", "sizes"), [("ova", (2, 6)), ("ovo", (2, 15)), ("identity", (6, 1))])
def test_a_fixed_design_takes_its_own_size(name, sizes):
    code = codes.build(name, n_classes=6, n_symbols=sizes[0], n_columns=sizes[1])
    assert code == codes.build(name, n_classes=6)


# The random design


def test_the_generator_is_splitmix64():
    """The first outputs for the seed 1234567, as published with the algorithm's translations."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert _reference.splitmix64(1234567, np.arange(4, dtype=np.uint64)).tolist() == published


BORDERS = (1, 2, 63, 64, 65, 127, 128, 129)  # of the 64 symbols that a block of a codeword holds
FEW = [(2, 3, 2), (3, 3, 2), (3, 4, 3), (2, 1, 300), (3, 1, 257)]  # redrawn until they are all columns there are
AROUND_65_CLASSES = [(K, L, N) for K in (63, 64, 65, 66, 67, 130) for L, N in ((1, 2), (17, 3), (65, 257))]


def sizes(distinct):
    """(K, L, N): with few classes and many symbols nearly all columns are alike, and distinct ones not to be found."""
    yield from ((9 if N < 9 or not distinct else 40, L, N) for L in BORDERS for N in (2, 3, 255, 256, 257, 300))
    yield from AROUND_65_CLASSES
    yield from (size for size in FEW if not distinct or size[1] <= measures.count_columns(size[0], size[2]))


@functools.cache
def searched_plainly(seed, n_candidates, K, L, N, absolute, distinct):
    return _reference.search_random(seed, n_candidates, K, L, N, absolute, distinct)


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("distinct", [False, True])
def test_the_search_is_the_plain_one_at_every_size_and_level(level, absolute, distinct):
    for K, L, N in sizes(distinct):
        arguments = (K * L + N, 3, K, L, N, absolute, distinct)
        expected, distance = searched_plainly(*arguments)
        for n_threads in (1, 3):
            found = _kernels.search_random(*arguments, n_threads)
            assert found[1] == distance, (K, L, N)
            np.testing.assert_array_equal(found[0], expected, err_msg=f"{(K, L, N)}")


@DETERMINISTIC
@given(
    seed=st.integers(0, 2**64 - 1),
    n_candidates=st.integers(1, 12),
    K=st.integers(2, 12),
    L=st.integers(1, 20),
    N=st.integers(2, 12),
    absolute=st.booleans(),
    distinct=st.booleans(),
    n_threads=st.integers(1, 4),
)
def test_the_search_is_the_plain_one(seed, n_candidates, K, L, N, absolute, distinct, n_threads):
    L = min(L, measures.count_columns(K, N)) if distinct else L
    arguments = (seed, n_candidates, K, L, N, absolute, distinct)
    code, distance = _kernels.search_random(*arguments, n_threads)
    expected, expected_distance = _reference.search_random(*arguments)
    assert distance == expected_distance == nearest_pair(code, absolute)
    np.testing.assert_array_equal(code, expected)


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 - 1])
def test_the_design_keeps_the_first_candidate_of_largest_minimum_distance(seed):
    for distance, K, N, L in (("absolute", 8, 3, 10), ("hamming", 8, 3, 10), ("hamming", 12, 5, 6)):
        absolute = distance == "absolute"
        made = codes.Random(40, distance).make(codes.Request(K, N, L, seed=seed))
        candidates = [_reference.draw_candidate(seed, i, K, L, N, True) for i in range(40)]
        apart = [nearest_pair(candidate, absolute) for candidate in candidates]
        assert len(set(apart)) > 1  # there was a choice
        assert made.min_distance(distance) == max(apart)
        assert made.symbols.tolist() == candidates[apart.index(max(apart))].tolist()
        assert made.alphabet.tolist() == [N] * L


@pytest.mark.parametrize("design", [codes.Random, functools.partial(codes.Random, distance="hamming"), codes.Dense])
def test_more_candidates_are_never_worse(design):
    distance = getattr(design(), "distance", "hamming")
    apart = [
        codes.build(design(n_candidates=n), n_classes=15, n_columns=20, random_state=1).min_distance(distance)
        for n in (1, 3, 10, 100, 1000)
    ]
    assert apart == sorted(apart)
    assert apart[-1] > apart[0]


@pytest.mark.parametrize("design", [codes.Random(50), codes.Random(50, "hamming"), codes.Dense(50)])
def test_a_design_builds_the_same_bits_at_every_level(level, design):
    build = functools.partial(codes.build, design, n_classes=70, n_columns=65, random_state=3)
    found = build(n_jobs=2)
    _kernels.use_level("baseline")
    assert found == build()


@DETERMINISTIC
@given(data=st.data(), K=st.integers(2, 40), distance=st.sampled_from(measures.DISTANCES), repeats=st.booleans())
def test_every_size_that_can_be_is_built(data, K, distance, repeats):
    N = data.draw(st.integers(2, K))
    fewest, most = measures.smallest_length(K, N), measures.count_columns(K, N, most=40)
    L = data.draw(st.integers(fewest, max(fewest, 40 if repeats else most)))
    with within(5):
        code = codes.build(
            codes.Random(3, distance, repeats), n_classes=K, n_symbols=N, n_columns=L, random_state=K + L
        )
    assert (code.shape, code.alphabet.tolist()) == ((K, L), [N] * L)
    assert code.is_full
    assert_valid(code, repeats)


SHORT = [(8, 2, 3), (9, 3, 2), (27, 3, 3), (7, 7, 1), (7, 2, 3), (26, 3, 3), (2, 2, 1), (3, 2, 2), (4, 2, 2), (5, 5, 1)]
SHORT += [(64, 2, 6), (63, 2, 6), (64, 4, 3), (100, 10, 2), (256, 2, 8), (1000, 10, 3), (1024, 2, 10), (300, 300, 1)]


@pytest.mark.parametrize("distance", measures.DISTANCES)
@pytest.mark.parametrize(("K", "N", "L"), SHORT)
def test_codes_that_use_nearly_every_word_there_is(K, N, L, distance):
    with within(2):
        code = codes.build(codes.Random(distance=distance), n_classes=K, n_symbols=N, n_columns=L, random_state=0)
    assert (code.shape, code.n_symbols) == ((K, L), N)
    assert_valid(code)


ALL_COLUMNS = [(2, 2), (3, 2), (3, 3), (4, 2), (4, 3), (4, 4), (5, 2), (5, 5), (6, 2), (6, 3), (8, 2)]


@pytest.mark.parametrize(("K", "N"), ALL_COLUMNS)
def test_codes_of_all_columns_there_are(K, N):
    most = measures.count_columns(K, N)
    with within(2):
        code = codes.build("random", n_classes=K, n_symbols=N, n_columns=most, random_state=0)
    assert code.n_columns == most
    assert_valid(code)


@pytest.mark.parametrize(("K", "N"), ALL_COLUMNS)
def test_more_columns_than_there_are_is_refused_with_the_number_of_them(K, N):
    most = measures.count_columns(K, N)
    with pytest.raises(
        ValueError, match=f"at most {most}: {K} classes .* {N} symbols .* got {most + 1}. Lower n_columns"
    ):
        codes.build(codes.Random(1), n_classes=K, n_symbols=N, n_columns=most + 1)
    repeated = codes.build(codes.Random(1, allow_repeats=True), n_classes=K, n_symbols=N, n_columns=most + 1)
    again = codes.build(codes.Random(1), n_classes=K, n_symbols=N, n_columns=most + 1, randomised=True)
    assert again.n_columns == most + 1
    assert repeated.n_columns == most + 1
    assert_valid(repeated, repeats=True)


@pytest.mark.parametrize(
    ("K", "N"), [(3, 2), (4, 2), (5, 2), (8, 2), (9, 2), (9, 3), (10, 3), (26, 5), (26, 26), (100, 7), (1000, 10)]
)
def test_too_few_columns_is_refused_with_the_smallest_that_works(K, N):
    build = functools.partial(codes.build, codes.Random(1), n_classes=K, random_state=0)
    needed = next(L for L in itertools.count(1) if N**L >= K)
    assert build(n_symbols=N, n_columns=needed).shape == (K, needed)
    for L in range(1, needed):
        message = rf"at least {needed} to give {K} classes different codewords of {N} symbols; got {L}\."
        with pytest.raises(ValueError, match=message) as raised:
            build(n_symbols=N, n_columns=L)
        advised = re.search(r"Raise n_columns to (\d+), or n_symbols to (\d+)\.", str(raised.value))
        assert int(advised[1]) == needed
        enough = int(advised[2])
        assert build(n_symbols=enough, n_columns=L).shape == (K, L)
        assert (enough - 1) ** L < K


@pytest.mark.parametrize("K", [2, 3, 4, 5, 10, 26, 60, 300])
@pytest.mark.parametrize("L", ["auto", 1, 2, 3, 10])
def test_symbols_left_open_make_a_code_of_any_length(K, L):
    if L == "auto" or L <= measures.count_columns(K, K, most=10):
        code = codes.build(QUICK["random"], n_classes=K, n_columns=L, random_state=0)
        assert code.n_columns == L or L == "auto"
        assert 2 <= code.n_symbols <= K
        assert_valid(code)


def test_sizes_left_open_are_the_documented_ones():
    for K, N in ((2, 2), (3, 3), (10, 3), (12, 3), (13, 4), (60, 15), (1000, 250)):
        code = codes.build(codes.Random(1), n_classes=K, random_state=0)
        assert (code.n_symbols, code.n_columns) == (N, min(100, measures.count_columns(K, N)))
    assert codes.auto_symbols(1000, 1) == 1000
    assert codes.auto_symbols(1000, max_symbols=10) == 10


@pytest.mark.parametrize("max_symbols", [2, 3, 5, 50])
def test_an_open_number_of_symbols_stays_within_what_the_learner_can_tell_apart(max_symbols):
    for K in (2, 3, 10, 60, 300):
        code = codes.build(codes.Random(1), n_classes=K, max_symbols=max_symbols, random_state=0)
        assert code.n_symbols <= max_symbols
        assert_valid(code)


def test_too_few_columns_for_the_symbols_that_the_learner_can_tell_apart_is_refused():
    with pytest.raises(ValueError, match=r"n_columns.*at least 2"):
        codes.build("random", n_classes=20, n_columns=1, max_symbols=5)


@pytest.mark.parametrize("max_symbols", [1, 0, -3])
def test_a_learner_of_one_symbol_is_refused(max_symbols):
    with within(2), pytest.raises(ValueError, match="max_symbols must be an integer of at least 2"):
        codes.build("random", n_classes=5, max_symbols=max_symbols)


def test_the_number_of_symbols_of_very_many_classes_stays_one_that_a_column_can_have():
    assert codes.auto_symbols(200_000) <= 32767


# The dense and the sparse design


def least_power_of_two_exponent(words):
    """The ceiling of log2 of a whole number, in whole numbers."""
    return (words - 1).bit_length()


@pytest.mark.parametrize("K", [3, 4, 5, 6, 8, 10, 16, 26, 64, 100, 256, 300])
def test_dense_and_sparse_have_the_published_lengths(K):
    dense = codes.build(QUICK["dense"], n_classes=K, random_state=0)
    most = 2 ** (K - 1) - 1
    assert dense.n_columns == min(least_power_of_two_exponent(K**10), most)
    assert (dense.n_symbols, dense.is_full) == (2, True)
    sparse = codes.build(codes.Sparse(1), n_classes=K, random_state=1)
    most = (3**K - 2 ** (K + 1) + 1) // 2
    assert sparse.n_columns == min(least_power_of_two_exponent(K**15), most)
    assert set(sparse.alphabet.tolist()) == {2}


def test_the_number_of_ternary_columns_by_enumeration():
    for K in range(2, 7):
        both = {column for column in itertools.product((-1, 0, 1), repeat=K) if {-1, 1} <= set(column)}
        most = len({max(column, tuple(-m for m in column)) for column in both})
        with pytest.raises(
            ValueError, match=f"at most {most}: {K} classes have no more ternary columns.*got {most + 1}"
        ):
            codes.build("sparse", n_classes=K, n_columns=most + 1)


@pytest.mark.parametrize(("K", "L"), [(3, 6), (4, 25), (5, 90)])
def test_sparse_codes_of_all_columns_there_are(K, L):
    with within(2):
        code = codes.build("sparse", n_classes=K, n_columns=L, random_state=0)
    assert code.shape == (K, L)
    assert_valid(code)


@pytest.mark.parametrize("K", [26, 60, 200])
def test_half_of_a_sparse_code_is_unused(K):
    code = codes.build(codes.Sparse(1), n_classes=K, random_state=0)
    size = K * code.n_columns
    # 5 standard deviations of independent entries; what redrawing columns of one sign does, below 2 x 0.75^26, is less.
    assert abs(code.n_used / size - 0.5) < 5 * 0.5 / math.sqrt(size)
    ones = int((code.entries()[2] == 1).sum())
    assert abs(ones / code.n_used - 0.5) < 5 * 0.5 / math.sqrt(code.n_used)
    chosen = codes.build(codes.Sparse(50), n_classes=K, random_state=0)
    assert abs(chosen.n_used / size - 0.5) < 0.05


@pytest.mark.parametrize(("K", "L"), [(3, "auto"), (10, "auto"), (26, "auto"), (60, "auto"), (10, 25), (300, 80)])
def test_every_two_classes_of_a_sparse_code_oppose_each_other_in_some_column(K, L):
    symbols = codes.build(codes.Sparse(10), n_classes=K, n_columns=L, random_state=0).symbols
    for a, b in itertools.combinations(symbols, 2):
        assert ((a != UNUSED) & (b != UNUSED) & (a != b)).any()


def test_more_candidates_of_a_sparse_code_are_never_worse():
    apart = [
        codes.build(codes.Sparse(n), n_classes=12, n_columns=40, random_state=1).min_distance() for n in (1, 5, 20, 100)
    ]
    assert apart == sorted(apart)
    assert apart[-1] > apart[0]


def test_a_sparse_code_too_short_to_be_found_is_refused_with_a_length_that_works():
    with pytest.raises(
        ValueError, match=r"6 columns that tells 10 classes apart .* 3 candidates\. Raise n_col"
    ) as raised:
        codes.build(codes.Sparse(3), n_classes=10, n_columns=6, random_state=0)
    advised = int(re.search(r"15 log2 K is (\d+)", str(raised.value))[1])
    assert codes.build(codes.Sparse(3), n_classes=10, n_columns=advised, random_state=0).n_columns == advised


def test_a_sparse_code_too_short_to_exist_is_refused_with_the_smallest_length():
    """3 columns oppose at most 2^3 classes pairwise: no number of candidates would help."""
    with pytest.raises(ValueError, match="n_columns must be at least 4"):
        codes.build("sparse", n_classes=10, n_columns=3)


def test_a_dense_code_too_short_is_refused_with_advice_that_it_can_follow():
    with pytest.raises(ValueError, match=r"n_columns must be at least 4 .* got 3\. Raise n_columns to 4") as raised:
        codes.build("dense", n_classes=10, n_columns=3)
    assert codes.build("dense", n_classes=10, n_columns=4).n_columns == 4
    assert "n_symbols to" not in str(raised.value)  # it has 2


# A matrix of one's own


def test_a_matrix_is_taken_as_it_is():
    code = CodeMatrix([[0, 0, 2], [1, UNUSED, 1], [2, 1, 0]], [3, 2, 4])
    assert codes.build(code) is code
    assert codes.build(code, n_classes=3, n_symbols=4, n_columns=3) is code
    assert codes.build(code.symbols.tolist(), n_classes=3) == CodeMatrix(code.symbols)
    assert codes.build(np.array([[0], [1]])) == CodeMatrix([[0], [1]])


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"n_classes": 4}, "one row for each of the 4 classes; got 3 rows. Row c is the codeword of the c-th class"),
        ({"n_symbols": 2}, "the given code has n_symbols=3; got n_symbols=2. Leave n_symbols='auto'"),
        ({"n_columns": 3}, "the given code has n_columns=2; got n_columns=3. Leave n_columns='auto'"),
    ],
)
def test_sizes_that_contradict_a_matrix_are_refused(sizes, message):
    for given_code in ([[0, 0], [1, 1], [2, 0]], CodeMatrix([[0, 0], [1, 1], [2, 0]])):
        with pytest.raises(ValueError, match=message):
            codes.build(given_code, **sizes)


# What is refused

REFUSED = {
    "unknown name": (("randm",), {}, ValueError, "unknown code design 'randm': expected .*'dense'.* mean 'random'"),
    "no near name": (("zzz",), {}, ValueError, r"unknown code design 'zzz': expected one of .*'sparse'\.$"),
    "capitals": (("OVO",), {}, ValueError, "unknown code design 'OVO'"),
    "class": ((codes.Random,), {}, TypeError, r"an instance of a design; got the class Random\. Write Random\(\)\."),
    "None": ((None,), {}, TypeError, r"code must be a name \('?dense.*\), a design, or a matrix of symbols; got None"),
    "object": ((object(),), {}, TypeError, "a code matrix must hold integers; got an array of object"),
    "number": ((3,), {}, TypeError, r"a design, or a matrix of symbols; got 3\. Give n_columns or n_symbols"),
    "SciPy": ((sp.csr_array(np.eye(6)),), {}, TypeError, r"got a sparse csr_array.* CodeMatrix\.from_entries"),
    "2^70": (([[2**70, 1], [0, 2]],), {}, ValueError, r"symbols from 0 to 32766; got 1180591620717411303424"),
    "jobs 0": (("ovo",), {"n_jobs": 0}, ValueError, r"n_jobs must be None or an integer other than 0 .*; got 0"),
    "jobs text": (("ovo",), {"n_jobs": "2"}, TypeError, r"n_jobs must be .*; got '2' of type str"),
    "L 10^9": (
        (codes.Random(allow_repeats=True),), {"n_columns": 10**9}, ValueError,
        r"n_columns must be at most 357913941 for 6 classes and 3 symbols, so that .* memory; got 1000000000\. Lower",
    ),
    "dense 10^9": (("dense",), {"n_classes": 1000, "n_columns": 10**9}, ValueError, "at most 2147483 for 1000 classes"),
    "sparse 10^9": (("sparse",), {"n_classes": 1000, "n_columns": 10**9}, ValueError, "at most 2147483 for 1000 cl"),
    "random 10^9": (("random",), {"n_classes": 100, "n_columns": 10**9}, ValueError, "at most 21474836 for 100 cl"),
    "no K": (("random",), {"n_classes": None}, TypeError, "n_classes is needed to build .*; give n_classes=K"),
    "K=1": (("random",), {"n_classes": 1}, ValueError, "n_classes must be an integer of at least 2; got 1"),
    "K float": (("random",), {"n_classes": 6.0}, TypeError, "n_classes must be an integer .* got 6.0 of type float"),
    "K bool": (("random",), {"n_classes": True}, TypeError, "n_classes must be .* got True of type bool"),
    "K text": (("random",), {"n_classes": "6"}, TypeError, "n_classes must be .* got '6' of type str"),
    "N>K": (("random",), {"n_symbols": 7}, ValueError, "n_symbols must be at most the number of classes, 6; got 7"),
    "N=1": (("random",), {"n_symbols": 1}, ValueError, "n_symbols must be .* at least 2; got 1. 'auto' leaves it"),
    "N bool": (("random",), {"n_symbols": True}, TypeError, "n_symbols must be .* got True of type bool. 'auto'"),
    "N float": (("random",), {"n_symbols": 3.0}, TypeError, "n_symbols must be .* got 3.0 of type float. 'auto'"),
    "N None": (("random",), {"n_symbols": None}, TypeError, "n_symbols must be .* got None of type NoneType. 'auto'"),
    "N autoo": (("random",), {"n_symbols": "autoo"}, ValueError, "n_symbols must be .*, or 'auto'; got 'autoo'"),
    "L=0": (("random",), {"n_columns": 0}, ValueError, "n_columns must be .* at least 1; got 0. 'auto' leaves it"),
    "L bool": (("random",), {"n_columns": False}, TypeError, "n_columns must be .* got False of type bool"),
    "L float": (("random",), {"n_columns": 20.5}, TypeError, "n_columns must be .* got 20.5 of type float"),
    "L autoo": (("random",), {"n_columns": "autoo"}, ValueError, "n_columns must be .*, or 'auto'; got 'autoo'"),
    "candidates 0": ((codes.Random(0),), {}, ValueError, "n_candidates must be an integer from 1 to 21.*; got 0"),
    "candidates float": ((codes.Random(1e3),), {}, TypeError, "n_candidates must be .* got 1000.0 of type float"),
    "candidates bool": ((codes.Random(True),), {}, TypeError, "n_candidates must be .* got True of type bool"),
    "candidates 2^31": ((codes.Random(2**31),), {}, ValueError, "n_candidates must be an integer .* got 2147483648"),
    "dense candidates": ((codes.Dense(-1),), {}, ValueError, "n_candidates must be an integer from 1 to 21.*; got -1"),
    "sparse candidates": ((codes.Sparse(0),), {}, ValueError, "n_candidates must be an integer from 1 to 21.*; got 0"),
    "sparse text": ((codes.Sparse("9"),), {}, TypeError, "n_candidates must be .* got '9' of type str"),
    "distance": ((codes.Random(1, "hammin"),), {}, ValueError, "unknown distance 'hammin': .* Did you mean 'hamming'"),
    "distance None": ((codes.Random(1, None),), {}, ValueError, "unknown distance None: expected one of 'absolute'"),
    "dense N": (("dense",), {"n_symbols": 3}, ValueError, "Dense is binary; got n_symbols=3. Use 'random' for more"),
    "sparse N": (("sparse",), {"n_symbols": 3}, ValueError, "Sparse has two symbols and UNUSED; got n_symbols=3"),
    "dense L": (("dense",), {"n_columns": 32}, ValueError, "n_columns must be at most 31: 6 classes have no more"),
    "constant": (([[0, 0], [0, 1]],), {"n_classes": None}, ValueError, "all classes that use column 0 have symbol 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_built_is_refused(case):
    arguments, changed, error, message = REFUSED[case]
    with within(2), pytest.raises(error, match=message) as raised:
        codes.build(*arguments, **{"n_classes": 6, **changed})
    assert "report it" not in str(raised.value)  # no mistake of the user is called a bug of nary


def test_whole_numbers_of_numpy_are_taken():
    code = codes.build(
        codes.Random(np.int64(2)), n_classes=np.int32(6), n_symbols=np.int8(3), n_columns=np.uint16(9), random_state=0
    )
    assert code == codes.build(codes.Random(2), n_classes=6, n_symbols=3, n_columns=9, random_state=0)
