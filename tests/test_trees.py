"""Trees against their NumPy twin, against scikit-learn split for split, and against themselves in other forms of X."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.tree import DecisionTreeClassifier

from nary import NaryClassifier, _kernels, codes
from nary._kernels import trees as kernels
from nary._reference import trees as twin
from nary.columns import Columns
from nary.learners import Trees
from nary.learners.binning import Bins

DIGITS, DIGIT = map(np.ascontiguousarray, load_digits(return_X_y=True))
WORDS = {
    "splitter": st.sampled_from(["sampled", "best", "random"]),
    "entropy": st.sampled_from([False, False, True]),
    "n_thresholds": st.integers(1, 5),
    "max_leaf_nodes": st.sampled_from([None, 2, 5]),
    "max_depth": st.sampled_from([None, 1, 3]),
    "min_samples_leaf": st.integers(1, 4),
    "min_samples_split": st.integers(2, 5),
    "row_fraction": st.sampled_from([1.0, 0.6]),
    "bootstrap": st.booleans(),
    "ccp_alpha": st.sampled_from([0.0, 0.02]),
    "min_impurity_decrease": st.sampled_from([0.0, 0.02]),
}


def draw(rng: np.random.Generator, n: int, D: int, digits: int | None = None, missing: float = 0.0) -> np.ndarray:
    X = rng.normal(size=(n, D)) * 3
    if digits is not None:
        X = np.round(X, digits)
    X[rng.random((n, D)) < missing] = np.nan
    return X


def one_column(K: int, y: np.ndarray) -> Columns:
    """The problem of the classes themselves: what a plain tree learns."""
    return Columns(codes.build("identity", n_classes=K), y.astype(np.int32), np.arange(K))


def grow(rows: kernels.Rows, bins: Bins, y: np.ndarray, rules: dict[str, Any], weights: Any) -> kernels.GrownTrees:
    """The core's tree of rows sorted by label, as column 3 of a code."""
    N = int(y.max()) + 1
    column = kernels.ColumnBlock(3, np.array([0, N]), np.arange(N, dtype=np.int32), np.arange(N, dtype=np.uint16), N)
    starts, options = np.searchsorted(y, np.arange(N + 1)), kernels.TreeOptions(**rules)
    return kernels.grow_trees(rows, bins.centres, bins.any_missing, starts, column, options, weights)


def assert_equals_twin(
    X: np.ndarray, y: np.ndarray, rules: dict[str, Any], max_bins: int = 255, weights: Any = None
) -> None:
    bins = Bins.fit(X, max_bins)
    rows, order = bins.sorted_rows(X, y.astype(np.int32))
    y, D = y[order], X.shape[1]
    weights = None if weights is None else weights[order]
    cells, centres = rows.cells[:, :D], [bins.centres.of(f) for f in range(D)]
    expected = twin.Tree(cells, y, centres, twin.Rules(**rules), 3, weights)
    grown = grow(rows, bins, y, rules, weights)
    tests = grown.splits[:, 2].view(np.uint32)
    assert [(int(t >> 9), bool(t >> 8 & 1), int(t & 255)) for t in tests] == expected.splits()
    values = grown.splits[:, :2][grown.splits[:, :2] < 0] if len(grown.splits) else grown.roots
    assert sorted(~values) == sorted(expected.leaves())
    said = kernels.walk_trees(rows, grown.splits, grown.starts, grown.roots)[:, 0]
    np.testing.assert_array_equal(said, walk_twin(expected.root, cells))
    sparse_bins = Bins.fit(sp.csr_array(X), max_bins)
    if not rules.get("entropy"):  # whose sums are added up in another order there
        sparse = grow(sparse_bins.sorted_rows(sp.csr_array(X), y_of(X, y, order))[0], sparse_bins, y, rules, weights)
        np.testing.assert_array_equal(sparse.splits, grown.splits)


def y_of(X: np.ndarray, sorted_y: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The labels in the order of X."""
    y = np.empty(len(X), np.int32)
    y[order] = sorted_y
    return y


def walk_twin(node: twin.Node, cells: np.ndarray) -> np.ndarray:
    if not node.children:
        return np.full(len(cells), node.symbol)
    f, missing_left, last = node.test
    bins = cells[:, f].astype(int)
    left = np.where(bins == 255, missing_left, bins <= last)
    return np.where(left, *(walk_twin(child, cells) for child in node.children))


# --- The twin ------------------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(st.fixed_dictionaries(WORDS), st.integers(0, 10**6), st.data())
def test_trees_equal_their_twin(words: dict[str, Any], seed: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    n, D = data.draw(st.integers(1, 70)), data.draw(st.sampled_from([1, 2, 5, 31, 32, 33, 64, 65]))
    X = draw(rng, n, D, data.draw(st.sampled_from([0, 1, None])), data.draw(st.sampled_from([0.0, 0.2, 1.0])))
    y = rng.integers(0, data.draw(st.integers(1, 9)), n)
    words["column_features"] = data.draw(st.integers(1, D))
    words["split_features"] = data.draw(st.integers(1, words["column_features"]))
    rules = {name: value for name, value in words.items() if value is not None} | {"seed": seed}
    weights = data.draw(st.sampled_from([None, rng.integers(1, 4, n).astype(float)]))
    assert_equals_twin(X, y, rules, data.draw(st.sampled_from([255, 4])), weights)


@pytest.mark.parametrize("splitter", ["sampled", "best", "random"])
@pytest.mark.parametrize("n", [254, 255, 256, 257, 510, 511])
@pytest.mark.parametrize("N", [1, 2, 40])
def test_trees_equal_their_twin_where_counts_outgrow_a_byte(level: str, n: int, N: int, splitter: str) -> None:
    rng = np.random.default_rng(n)
    rules = {"splitter": splitter, "n_thresholds": 3, "max_depth": 2, "seed": n}
    assert_equals_twin(draw(rng, n, 3), rng.integers(0, N, n), rules, 31)


@pytest.mark.parametrize("n", [65534, 65535, 65536, 65537])
def test_trees_equal_their_twin_where_counts_outgrow_two_bytes(level: str, n: int) -> None:
    rng = np.random.default_rng(n)
    X, y = draw(rng, n, 2), rng.integers(0, 2, n)
    y[: n - 5000] = 0  # one symbol's rows outgrow them almost alone
    assert_equals_twin(X, y, {"splitter": "best", "max_depth": 2, "seed": 1}, 6)


@pytest.mark.parametrize("splitter", ["sampled", "random"])
@pytest.mark.parametrize("weighted", [False, True])
def test_very_large_nodes_under_drawn_thresholds_equal_their_twin(level: str, splitter: str, weighted: bool) -> None:
    rng = np.random.default_rng(1)
    n = 65700
    weights = rng.integers(1, 4, n).astype(float) if weighted else None
    rules = {"splitter": splitter, "n_thresholds": 9, "max_depth": 2, "seed": 1}
    assert_equals_twin(draw(rng, n, 2), rng.integers(0, 3, n), rules, 40, weights)


@pytest.mark.parametrize("n_thresholds", [1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65])
@pytest.mark.parametrize("D", [7, 40])
def test_trees_equal_their_twin_for_numbers_of_thresholds_around_every_batch(
    level: str, n_thresholds: int, D: int
) -> None:
    rng = np.random.default_rng(n_thresholds)
    for splitter in ("sampled", "random"):
        rules = {"splitter": splitter, "n_thresholds": n_thresholds, "max_depth": 2, "seed": 5}
        assert_equals_twin(draw(rng, 80, D), rng.integers(0, 5, 80), rules)


def test_constant_and_all_missing_features_are_never_split() -> None:
    y = np.arange(20) % 3
    for X in (np.ones((20, 4)), np.full((20, 4), np.nan)):
        for splitter in ("sampled", "best", "random"):
            assert_equals_twin(X, y, {"splitter": splitter})
            learner = Trees(splitter=splitter).fit(X, one_column(3, y))
            assert learner.tree_arrays(0).symbol.tolist() == [0]
            assert learner.feature_importances_.tolist() == [0, 0, 0, 0]


# --- scikit-learn, split for split ---------------------------------------------------------------------------------


def walk_both(learner: Trees, tree: Any, X: np.ndarray) -> tuple[bool, list[tuple[np.ndarray, np.ndarray, np.ndarray]]]:
    """Down both trees side by side: whether their leaves agree, and where their splits first differ."""
    ours, differ, alike = learner.tree_arrays(0), [], True
    todo = [(0, 0, np.arange(len(X)))]
    while todo:
        node, other, rows = todo.pop()
        if ours.children_left[node] < 0 or tree.children_left[other] < 0:
            alike &= bool(ours.children_left[node] == tree.children_left[other])
            continue
        x, z = X[rows, ours.feature[node]], X[rows, tree.feature[other]].astype(np.float32)
        left = np.where(np.isnan(x), ours.missing_go_to_left[node], x <= ours.threshold[node])
        expected = np.where(np.isnan(z), tree.missing_go_to_left[other] == 1, z <= tree.threshold[other])
        if ours.feature[node] == tree.feature[other] and np.array_equal(left, expected):
            todo.append((ours.children_left[node], tree.children_left[other], rows[left]))
            todo.append((ours.children_right[node], tree.children_right[other], rows[~left]))
        else:
            differ.append((rows, left, expected))
    return alike, differ


ALIKE: dict[str, dict[str, Any]] = {  # parameters that both know alike
    "plain": {},
    "entropy": {"criterion": "entropy"},
    "depth": {"max_depth": 4},
    "leaf": {"min_samples_leaf": 7},
    "leaf share": {"min_samples_leaf": 0.05},
    "split": {"min_samples_split": 20},
    "split share": {"min_samples_split": 0.2},
    "leaves": {"max_leaf_nodes": 9},
    "decrease": {"min_impurity_decrease": 0.01},
    "pruned": {"ccp_alpha": 0.006},
    "by label": {"class_weight": {0: 2.0, 1: 0.5}},
}


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_exact_trees_are_those_of_scikit_learn(name: str, missing: float) -> None:
    """With odd weights hardly two splits are equally good that do not part the rows alike, or perfectly."""
    identical = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = draw(rng, 250, 6, missing=missing)
        y = (np.nan_to_num(X[:, 0]) + rng.normal(size=250) > 0).astype(int) + (np.nan_to_num(X[:, 1]) > 1)
        weights = rng.integers(512, 1536, 250) / 1024  # exact in float32, and so are their sums
        learner = Trees(splitter="best", **ALIKE[name]).fit(X, one_column(3, y), sample_weight=weights)
        theirs = DecisionTreeClassifier(random_state=0, **ALIKE[name]).fit(X, y, sample_weight=weights)
        alike, differ = walk_both(learner, theirs.tree_, X)
        assert alike
        of_label = weights * (np.array([2, 0.5, 1])[y] if name == "by label" else 1)
        for rows, left, expected in differ:
            parted = [left, expected, ~expected]
            perfect = [impurity(y[rows], of_label[rows], side, None) == 0 for side in parted[:2]]
            assert all(perfect) or any(np.array_equal(left, side) for side in parted[1:])
        identical += not differ
        said = learner.outputs(learner.prepare(X), "symbols", 0, 1)[:, 0]
        np.testing.assert_array_equal(said, theirs.predict(X))
        if not differ:
            np.testing.assert_allclose(learner.feature_importances_, theirs.feature_importances_, atol=1e-9)
    assert identical > 0 or name in ("plain", "entropy", "by label")  # which end in nodes of two rows


@pytest.mark.parametrize("options", [{}, {"criterion": "entropy"}, {"class_weight": "balanced"}], ids=str)
def test_where_trees_differ_from_scikit_learns_the_splits_are_equally_good(options: dict[str, Any]) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = draw(rng, 200, 5, digits=2), rng.integers(0, 4, 200)
        learner = Trees(splitter="best", **options).fit(X, one_column(4, y), seed=seed)
        theirs = DecisionTreeClassifier(random_state=seed, **options).fit(X, y)
        weights = np.ones(200) if "class_weight" not in options else 50 / np.bincount(y)[y]
        alike, differ = walk_both(learner, theirs.tree_, X)
        assert alike or "class_weight" in options  # its sums of odd weights make scikit-learn split pure nodes
        for rows, *sides in differ:
            ours, expected = (impurity(y[rows], weights[rows], left, options.get("criterion")) for left in sides)
            assert ours == pytest.approx(expected, abs=1e-6 if "class_weight" in options else 1e-12)


def impurity(y: np.ndarray, weights: np.ndarray, left: np.ndarray, criterion: str | None) -> float:
    total = 0.0
    for side in (left, ~left):
        shares = np.bincount(y[side], weights[side]) / weights[side].sum()
        shares = shares[shares > 0]
        entropy = -(shares * np.log2(shares)).sum()
        total += weights[side].sum() * float(entropy if criterion == "entropy" else 1 - (shares**2).sum())
    return total / weights.sum()


# --- The same trees in every form ----------------------------------------------------------------------------------


def same(a: Trees, b: Trees) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a.forest_.trees, b.forest_.trees, strict=True))


LEARNERS = [
    Trees(),
    Trees(splitter="best", max_features="sqrt"),
    Trees(splitter="random", n_thresholds=3, feature_fraction=0.5, bootstrap=True),
    Trees(row_fraction=0.6, max_leaf_nodes=12, leaf_distributions=True),
    Trees(criterion="entropy", min_samples_leaf=3, ccp_alpha=0.005),
    Trees(class_weight="balanced_symbols", max_features=3),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_threads_levels_and_the_order_of_rows_do_not_matter(learner: Trees, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = draw(rng, 400, 20, digits=1, missing=0.05), rng.integers(0, 12, 400).astype(np.int32)
    weights = rng.random(400) + 0.1 if weighted else None
    code = codes.build(codes.Random(5), n_classes=12, n_symbols=4, n_columns=9, random_state=0)
    expected = clone(learner).fit(X, Columns(code, y), sample_weight=weights, seed=3)
    before = _kernels.level()
    for name in _kernels.levels():
        _kernels.use_level(name)
        for n_jobs in (2, 5):
            assert same(clone(learner).fit(X, Columns(code, y), sample_weight=weights, seed=3, n_jobs=n_jobs), expected)
    _kernels.use_level(before)
    if not weighted:
        order = rng.permutation(400)
        assert same(clone(learner).fit(X[order], Columns(code, y[order]), seed=3), expected)
    assert not same(clone(learner).fit(X, Columns(code, y), sample_weight=weights, seed=4), expected)


@pytest.mark.parametrize(
    "learner", [Trees(), Trees(splitter="best"), Trees(splitter="random", n_thresholds=2)], ids=str
)
def test_a_weight_of_two_is_a_row_that_comes_twice(learner: Trees) -> None:
    rng = np.random.default_rng(1)
    X, y, times = draw(rng, 150, 8, digits=0), rng.integers(0, 5, 150).astype(np.int32), rng.integers(1, 4, 150)
    code = codes.build(codes.Random(5), n_classes=5, n_symbols=3, n_columns=8, random_state=0)
    weighted = clone(learner).fit(X, Columns(code, y), sample_weight=times.astype(float))
    repeated = clone(learner).fit(X.repeat(times, axis=0), Columns(code, y.repeat(times)))
    np.testing.assert_array_equal(weighted.forest_.trees.splits, repeated.forest_.trees.splits)


@pytest.mark.parametrize("weights", ["balanced", "balanced_symbols", {3: 0.3}, "random"], ids=str)
def test_weights_are_exact_in_either_form_of_rows(weights: Any) -> None:
    """Weights are whole numbers in the core, so sums of them do not depend on their order."""
    rng = np.random.default_rng(3)
    X, y = draw(rng, 300, 8, digits=1), rng.integers(0, 6, 300).astype(np.int32)
    of_row = rng.random(300) if weights == "random" else None
    code = codes.build(codes.Random(5), n_classes=6, n_symbols=3, n_columns=8, random_state=0)
    for splitter in ("sampled", "best", "random"):
        learner = Trees(splitter=splitter, class_weight=None if weights == "random" else weights)
        dense, sparse = (
            clone(learner).fit(form(X), Columns(code, y, np.arange(6)), sample_weight=of_row)
            for form in (np.asarray, sp.csr_array)
        )
        assert same(dense, sparse)
    constant = Trees(splitter="best").fit(X, Columns(code, y), sample_weight=np.full(300, 0.1))
    assert same(constant, Trees(splitter="best").fit(X, Columns(code, y)))


@pytest.mark.parametrize("scale", [1e-300, 1e-46, 1e-9, 1e30, 1e37, 1e300])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_weights_of_any_size_grow_the_same_trees(scale: float, criterion: str) -> None:
    rng = np.random.default_rng(0)
    X, y = draw(rng, 200, 4), rng.integers(0, 3, 200)
    weights = rng.choice([1.0, 2.0, 4.0], 200)
    learner = Trees(splitter="best", criterion=criterion)
    scaled = np.ldexp(weights, int(np.log2(scale)))
    expected = clone(learner).fit(X, one_column(3, y), sample_weight=weights)
    assert same(clone(learner).fit(X, one_column(3, y), sample_weight=scaled), expected)
    assert len(expected.forest_.trees.splits) > 20


def test_light_rows_are_told_apart_too() -> None:
    X = np.arange(250.0)[:, None]
    y, weights = (X[:, 0] >= 247).astype(int), np.where(X[:, 0] >= 247, 1e-6, 1.3)
    weights[0] = 1.1
    learner = Trees(splitter="best").fit(X, one_column(2, y), sample_weight=weights)
    assert len(learner.forest_.trees.splits) == 1


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_of_weight_zero_take_no_part(form: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = draw(rng, 90, 5), (np.arange(90) % 3).astype(np.int32)
    left_out = Trees(class_weight={2: 0.0}, leaf_distributions=True).fit(form(X), one_column(3, y))
    never = Trees(leaf_distributions=True).fit(form(X[y < 2]), one_column(3, y[y < 2]))
    assert left_out.tree_arrays(0).symbol.max() == never.tree_arrays(0).symbol.max() == 1


@pytest.mark.parametrize("empty", [(0, 1), (1, 2), (2, 3)])
def test_columns_without_rows_give_all_symbols_alike(empty: tuple[int, int]) -> None:
    """Whether such a column comes first, amid the others or last: it reads no other column's leaves."""
    rng = np.random.default_rng(0)
    X, y = draw(rng, 60, 3), np.arange(60) % 4
    code = codes.build("ovo", n_classes=4)
    column = next(s for s in range(6) if tuple(code.column(s)[0]) == empty)
    weights = 1.0 - np.isin(y, empty)
    for distributions in (True, False):
        learner = Trees(leaf_distributions=distributions)
        clf = NaryClassifier(learner, code=code, decoder="loglikelihood", random_state=0)
        probabilities = clf.fit(X, y, sample_weight=weights).predict_proba(X)
        assert not np.isnan(probabilities).any()
        assert clf.predict_symbols(X)[:, column].tolist() == [0] * 60
        if distributions:
            logs = clf.learner_.outputs(clf.learner_.prepare(X), "log_probabilities", column, column + 1)
            np.testing.assert_allclose(np.exp(logs), 0.5)


def test_leaves_of_very_many_symbols_keep_shares() -> None:
    K = 1200
    y = np.repeat(np.arange(K), 3)
    X = np.random.default_rng(0).normal(size=(y.size, 4)) + (y % 40)[:, None]
    clf = NaryClassifier(Trees(splitter="best", max_depth=1), code="identity", random_state=0).fit(X, y)
    assert clf.learner_.says[0] == "log_probabilities", "a limit on the trees makes leaves of several symbols"
    probabilities = clf.predict_proba(X[:50])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (probabilities.max(axis=1) < 0.01).all()


def test_thresholds_of_huge_values() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (250, 1))
    y = (np.abs(x[:, 0]) > 0.5).astype(int)
    for splitter in ("random", "best", "sampled"):
        learners = [Trees(splitter=splitter).fit(scale * x, one_column(2, y), seed=4) for scale in (1.0, 2.0**1023)]
        np.testing.assert_array_equal(*(learner.forest_.trees.splits for learner in learners))


def test_what_makes_trees_random() -> None:
    plain = Trees(splitter="best")
    assert not plain.randomised
    assert not clone(plain).set_params(max_features=None).randomised
    for options in (
        {"splitter": "sampled"}, {"max_features": 1}, {"max_features": 0.5}, {"max_features": "sqrt"},
        {"bootstrap": True}, {"row_fraction": 0.9}, {"feature_fraction": 0.9},
    ):  # fmt: skip
        assert clone(plain).set_params(**options).randomised


@pytest.mark.parametrize("splitter", ["sampled", "best", "random"])
@pytest.mark.parametrize("D", [9, 200])
def test_csr_and_dense_rows_grow_the_same_trees(splitter: str, D: int) -> None:
    rng = np.random.default_rng(D)
    X, y = draw(rng, 300, D, digits=1, missing=0.02), rng.integers(0, 12, 300).astype(np.int32)
    X[rng.random(X.shape) < 0.7] = 0
    code = codes.build(codes.Random(5), n_classes=12, n_symbols=4, n_columns=10, random_state=0)
    learner = Trees(splitter=splitter, max_features=0.5)
    dense, sparse = (clone(learner).fit(form(X), Columns(code, y)) for form in (np.asarray, sp.csr_array))
    assert same(dense, sparse)
    np.testing.assert_array_equal(
        dense.outputs(dense.prepare(X), "symbols", 2, 9),
        sparse.outputs(sparse.prepare(sp.csr_array(X)), "symbols", 2, 9),
    )


def test_sparse_rows_are_never_written_out() -> None:
    rng = np.random.default_rng(0)
    X = sp.random(
        300, 2_000_000, 1e-5, format="csr", random_state=rng
    )  # 4.8 GB as an array of floats, 0.6 as one of bytes
    y = rng.integers(0, 5, 300)
    clf = NaryClassifier(n_symbols=3, n_columns=5, random_state=0).fit(X, y)
    assert clf.predict(X).shape == (300,)


# --- What a fitted learner gives -----------------------------------------------------------------------------------


def test_arrays_walk_like_the_learner() -> None:
    rng = np.random.default_rng(2)
    X, y = draw(rng, 300, 6, missing=0.1), rng.integers(0, 8, 300).astype(np.int32)
    code = codes.build(codes.Random(5), n_classes=8, n_symbols=3, n_columns=6, random_state=0)
    learner = Trees(leaf_distributions=True, min_samples_leaf=5).fit(X, Columns(code, y))
    unseen = draw(rng, 100, 6, missing=0.1)
    said = learner.outputs(learner.prepare(unseen), "symbols", 0, 6)
    logs = learner.outputs(learner.prepare(unseen), "log_probabilities", 0, 6)
    np.testing.assert_allclose(np.exp(logs).sum(axis=2), 1, rtol=1e-5)
    for s in range(6):
        arrays = learner.tree_arrays(s)
        for i, row in enumerate(unseen):
            node = 0
            while arrays.children_left[node] >= 0:
                value = row[arrays.feature[node]]
                left = arrays.missing_go_to_left[node] if np.isnan(value) else value <= arrays.threshold[node]
                node = (arrays.children_left if left else arrays.children_right)[node]
            assert arrays.symbol[node] == said[i, s]
            assert arrays.probabilities[node].argmax() == said[i, s]
            assert arrays.probabilities[node].sum() == pytest.approx(1)
            np.testing.assert_allclose(
                np.exp(logs[i, s]), arrays.probabilities[node] / arrays.probabilities[node].sum(), rtol=1e-5
            )


def test_leaves_keep_the_shares_of_their_symbols() -> None:
    X, y = np.repeat([0.0, 1.0], 10)[:, None], np.array([0] * 9 + [1] + [1] * 6 + [2] * 4)
    learner = Trees(max_leaf_nodes=2, leaf_distributions=True).fit(X, one_column(3, y))
    shares = np.exp(learner.outputs(learner.prepare(np.array([[0.0], [1.0]])), "log_probabilities", 0, 1))[:, 0]
    np.testing.assert_allclose(shares, [[0.9, 0.1, 0], [0, 0.6, 0.4]], atol=1 / 255)
    sure = Trees(max_leaf_nodes=2, leaf_distributions=False).fit(X, one_column(3, y))
    shares = np.exp(sure.outputs(sure.prepare(np.array([[0.0], [1.0]])), "log_probabilities", 0, 1))[:, 0]
    np.testing.assert_array_equal(shares, [[1, 0, 0], [0, 1, 0]])


def test_a_split_takes_twelve_bytes() -> None:
    clf = NaryClassifier(n_symbols=4, n_columns=40, random_state=0).fit(DIGITS, DIGIT)
    trees = clf.learner_.forest_.trees
    assert trees.splits.nbytes == 12 * len(trees.splits)
    rest = sum(array.nbytes for array in trees if array is not trees.splits)
    assert rest <= 20 * 41


def test_trees_of_columns_without_rows_or_with_one_symbol() -> None:
    code = codes.build(codes.Random(5), n_classes=6, n_symbols=3, n_columns=6, random_state=0)
    y = np.zeros(5, np.int32)
    learner = Trees().fit(np.arange(5.0)[:, None], Columns(code, y))
    said = learner.outputs(learner.prepare(np.zeros((1, 1))), "symbols", 0, 6)
    np.testing.assert_array_equal(said[0], code.symbols[0])
    pairs = Trees().fit(np.arange(5.0)[:, None], Columns(codes.build("ovo", n_classes=4), y + 3))
    assert pairs.outputs(pairs.prepare(np.zeros((1, 1))), "symbols", 0, 6)[0].tolist() == [0, 0, 1, 0, 1, 1]


def test_columns_see_different_features_and_rows() -> None:
    code = codes.build(codes.Random(5), n_classes=10, n_symbols=4, n_columns=30, random_state=0)
    learner = Trees(feature_fraction=0.1).fit(DIGITS, Columns(code, DIGIT.astype(np.int32)))
    seen = [set(learner.tree_arrays(s).feature.tolist()) - {-2} for s in range(30)]
    assert max(map(len, seen)) <= 6 < len(set.union(*seen))
    assert learner.feature_importances_.sum() == pytest.approx(1)


def test_importances_of_a_classifier_are_its_learners() -> None:
    clf = NaryClassifier(n_symbols=3, n_columns=12, random_state=0)
    assert not hasattr(clf, "feature_importances_")
    clf.fit(DIGITS[:300], DIGIT[:300])
    assert clf.feature_importances_ is clf.learner_.feature_importances_
    plain = NaryClassifier(DecisionTreeClassifier(), n_symbols=3, n_columns=12).fit(DIGITS[:300], DIGIT[:300])
    with pytest.raises(AttributeError, match=r"needs a learner that has them, such as learners\.Trees; got PerColumn"):
        plain.feature_importances_  # noqa: B018


def test_categories_are_split_by_frequency() -> None:
    rng = np.random.default_rng(0)
    kinds = rng.choice([40.0, 3.0, 17.0, 8.0], 400, p=[0.4, 0.3, 0.2, 0.1])
    y = np.isin(kinds, [17.0, 8.0]).astype(int)  # the two rare ones: no threshold on the numbers themselves parts them
    X = np.stack([rng.normal(size=400), kinds], axis=1)
    plain, ordered = (
        Trees(max_depth=1, splitter="best", categorical_features=c).fit(X, one_column(2, y)) for c in (None, [1])
    )
    scores = [(t.outputs(t.prepare(X), "symbols", 0, 1)[:, 0] == y).mean() for t in (plain, ordered)]
    assert scores[0] < 1.0 == scores[1]
    assert same(
        ordered, Trees(max_depth=1, splitter="best", categorical_features=[False, True]).fit(X, one_column(2, y))
    )


def test_an_ensemble_is_as_good_as_extra_trees_on_digits() -> None:
    rng = np.random.default_rng(0)
    order = rng.permutation(len(DIGIT))
    train, test = order[:900], order[900:]
    clf = NaryClassifier(Trees(splitter="random"), n_symbols=10, n_columns=100, random_state=0, n_jobs=2)
    rival = ExtraTreesClassifier(100, random_state=0).fit(DIGITS[train], DIGIT[train])
    ours = clf.fit(DIGITS[train], DIGIT[train]).score(DIGITS[test], DIGIT[test])
    assert ours >= rival.score(DIGITS[test], DIGIT[test]) - 0.01


def test_missing_values_go_where_they_help_and_may_come_only_at_predict() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] > 0).astype(int)
    X[rng.random(400) < 0.4, 0] = np.nan
    y[np.isnan(X[:, 0])] = 2
    clf = NaryClassifier(Trees(splitter="best"), n_symbols=3, n_columns=4, random_state=0).fit(X[:300], y[:300])
    assert clf.score(X[300:], y[300:]) > 0.95
    complete = NaryClassifier(Trees(), random_state=0).fit(DIGITS[:500], DIGIT[:500])
    holes = np.where(rng.random(DIGITS[500:700].shape) < 0.05, np.nan, DIGITS[500:700])
    assert complete.score(holes, DIGIT[500:700]) > 0.75


# --- Bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"splitter": "bets"}, ValueError, "unknown splitter 'bets': expected one of 'best', 'random', 'sampled'. Did"),
        ({"criterion": "log_loss"}, ValueError, "unknown criterion 'log_loss'"),
        ({"max_bins": 256}, ValueError, "max_bins must be an integer from 2 to 255; got 256. A bin is a byte"),
        ({"max_bins": 1}, ValueError, "max_bins must be an integer from 2 to 255; got 1"),
        ({"n_thresholds": 0}, ValueError, "n_thresholds must be an integer from 1 to 65535; got 0"),
        ({"max_depth": 0}, ValueError, "max_depth must be an integer of at least 1; got 0. None: no limit"),
        ({"max_leaf_nodes": 1}, ValueError, "max_leaf_nodes must be an integer of at least 2; got 1"),
        ({"min_samples_leaf": 0}, ValueError, "min_samples_leaf must be an integer of at least 1; got 0"),
        ({"min_samples_leaf": 1.5}, ValueError, "min_samples_leaf must be an integer of at least 1, or a share .* 1.5"),
        ({"min_samples_split": 1}, ValueError, "min_samples_split must be an integer of at least 2; got 1"),
        ({"max_features": "sqr"}, ValueError, "unknown max_features 'sqr'"),
        ({"max_features": 1.5}, ValueError, "max_features must be a share above 0 and at most 1; got 1.5"),
        ({"max_features": 0}, ValueError, "max_features must be an integer of at least 1; got 0"),
        ({"feature_fraction": 0.0}, ValueError, "feature_fraction must be a share above 0"),
        ({"row_fraction": "half"}, TypeError, "row_fraction must be a share .*; got 'half' of type str"),
        ({"ccp_alpha": -1.0}, ValueError, "ccp_alpha must be a finite number of at least 0; got -1.0"),
        ({"min_impurity_decrease": np.inf}, ValueError, "min_impurity_decrease must be a finite number"),
        ({"class_weight": "equal"}, ValueError, "unknown class_weight 'equal'"),
        ({"class_weight": 3}, TypeError, "class_weight must be one of balanced, balanced_symbols, a dict"),
        ({"class_weight": {99: 1.0}}, ValueError, r"class_weight must name classes of y; got \[99\]"),
        ({"class_weight": {1: -1.0}}, ValueError, "class_weight must give weights of at least 0"),
        ({"bootstrap": "yes"}, ValueError, "bootstrap must be one of True, False; got 'yes'"),
        ({"leaf_distributions": 3}, ValueError, "leaf_distributions must be one of True, False, 'auto'; got 3"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None or an integer other than 0"),
        ({"n_jobs": "2"}, TypeError, "n_jobs must be None or an integer other than 0"),
        ({"categorical_features": [64]}, ValueError, "categorical_features must be numbers of features from 0 to 63"),
        ({"categorical_features": ["a"]}, ValueError, "categorical_features must be numbers of features"),
    ],
)
def test_bad_parameters(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        NaryClassifier(Trees(**options), n_symbols=3, n_columns=5).fit(DIGITS[:200], DIGIT[:200])


def test_infinite_values_are_refused_and_missing_ones_are_not() -> None:
    X = DIGITS[:200].copy()
    X[3, 4] = np.inf
    with pytest.raises(ValueError, match="Input X contains infinity"):
        NaryClassifier().fit(X, DIGIT[:200])
    X[3, 4] = np.nan
    assert NaryClassifier(n_columns=5, n_symbols=3).fit(X, DIGIT[:200]).predict(X).shape == (200,)


def test_columns_out_of_the_trees_range() -> None:
    learner = Trees().fit(DIGITS, one_column(10, DIGIT))
    with pytest.raises(ValueError, match=r"s must be an integer from 0 to 0; got 1\. Columns count from 0"):
        learner.tree_arrays(1)


OUT_OF_MEMORY = """
import resource
import numpy as np
from nary import NaryClassifier, codes
from nary.learners import Trees
X, y = np.random.default_rng(0).normal(size=(8000, 8)), np.arange(8000) % 4000
NaryClassifier(n_symbols=3, n_columns=12).fit(X[:100], y[:100])  # everything is loaded
clf = NaryClassifier(Trees(leaf_distributions=True), code=codes.Random(1), n_symbols=3000, n_columns=60, n_jobs=2)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20), -1))
try:
    clf.fit(X, y)
except MemoryError:
    print("MemoryError, fitted:", hasattr(clf, "learner_"))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and RLIMIT_AS")
def test_running_out_of_memory_is_an_error_and_no_crash() -> None:
    run = subprocess.run([sys.executable, "-c", OUT_OF_MEMORY], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, "MemoryError, fitted: False"), run.stderr[-2000:]


def test_limits_beyond_any_number_are_no_limits() -> None:
    plain = Trees().fit(DIGITS, one_column(10, DIGIT))
    wide = Trees(max_depth=2**63, max_leaf_nodes=None, leaf_distributions=False, categorical_features=[])
    assert same(plain, wide.fit(DIGITS, one_column(10, DIGIT)))
    assert Trees(min_samples_leaf=2**70).fit(DIGITS, one_column(10, DIGIT)).tree_arrays(0).symbol.size == 1
