"""Decoders against their definitions written out in plain Python, and against the paper's."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.linear_model import Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from nary import CodeMatrix, codes, decoders
from nary.columns import Columns
from nary.decoders import Absolute, Explanation, Fold, Hamming, LogLikelihood, as_decoder, smallest
from nary.decoders.fold import class_totals, columns_a_cell, fold_order
from nary.learners import PerColumn

UNUSED_CODE = CodeMatrix([[0, -1, 2], [1, 0, -1], [-1, 1, 0], [1, 1, 1]])
CODES = {
    "random": codes.build("random", n_classes=30, n_symbols=5, n_columns=23, random_state=1),
    "binary": codes.build("dense", n_classes=30, random_state=1),
    "mixed": CodeMatrix(np.stack([np.arange(30) % n for n in (2, 3, 5, 7, 30)], axis=1)),
    "sparse": codes.build("sparse", n_classes=30, random_state=1),
    "ovo": codes.build("ovo", n_classes=30),
    "unused": UNUSED_CODE,
}


def draw_symbols(code: CodeMatrix, n_rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, code.alphabet, (n_rows, code.n_columns)).astype(np.int16)


def cost_by_definition(word: list[int], said: list[int], alphabet: list[int], distance: str) -> float:
    """Definitions 1 and 2 of the paper, an entry at a time; 0 between -1 and +1 where a class is UNUSED."""
    total = 0.0
    for m, v, n in zip(word, said, alphabet, strict=True):
        if distance == "hamming":
            total += 0.5 if m == -1 else float(m != v)
        else:
            total += (n - 1) / 2 if m == -1 else abs(m - v)
    return total


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("decoder", [Hamming(), Absolute()])
def test_distance_decoders_equal_the_papers_definitions(name: str, decoder: Any) -> None:
    code = CODES[name]
    said = draw_symbols(code, 70)
    costs = Fold.of(code, decoder).costs(said, n_threads=2)
    expected = [
        [cost_by_definition(word, row, code.alphabet.tolist(), decoder.distance) for word in code.symbols.tolist()]
        for row in said.tolist()
    ]
    np.testing.assert_array_equal(costs, expected)


@pytest.mark.parametrize("name", CODES)
def test_codewords_decode_to_their_classes(name: str) -> None:
    code = CODES[name]
    said = np.where(code.symbols < 0, 0, code.symbols).astype(np.int16)
    if code.is_full:
        for decoder in (Hamming(), Absolute()):
            np.testing.assert_array_equal(Fold.of(code, decoder).costs(said).argmin(axis=1), np.arange(code.n_classes))


@pytest.mark.parametrize("name", CODES)
def test_log_likelihood_equals_a_sum_of_logs(name: str) -> None:
    code, noise = CODES[name], 0.03
    N = code.n_symbols
    raw = np.random.default_rng(0).exponential(size=(67, code.n_columns, N)) ** 3
    raw *= np.arange(N) < code.alphabet[:, None]
    chances = raw / raw.sum(axis=2, keepdims=True)
    chances[0, 0] = np.eye(N)[1]  # a column that is sure
    with np.errstate(divide="ignore"):
        outputs = np.log(chances).astype(np.float32)
    costs = Fold.of(code, LogLikelihood(noise=noise)).costs(outputs)
    for i in range(0, 67, 11):
        for c, word in enumerate(code.symbols.tolist()):
            expected = 0.0
            for s, m in enumerate(word):
                n = int(code.alphabet[s])
                chance = 1 / n if m == -1 else (1 - noise) * chances[i, s, m] + noise / n
                expected -= math.log(chance)
            assert costs[i, c] == pytest.approx(expected, rel=1e-5, abs=1e-4)


def test_the_largest_sums_leave_sixteen_bits() -> None:
    L = 40000
    symbols = np.zeros((3, L), np.int16)
    symbols[1], symbols[2, ::2] = 1, 1
    symbols[2, 0] = 0
    code = CodeMatrix(symbols, 2)
    fold = Fold.of(code, Hamming())
    assert fold.profile is not None
    assert fold.profile.dtype == np.float32
    np.testing.assert_array_equal(fold.costs(np.ones((1, L), np.int16)), [[L, 0, L / 2 + 1]])
    shorter = Fold.of(CodeMatrix(symbols[:, :32000], 2), Hamming())
    assert shorter.profile is not None
    assert shorter.profile.dtype == np.uint16
    np.testing.assert_array_equal(shorter.costs(np.ones((1, 32000), np.int16)), [[32000, 0, 16001]])


@pytest.mark.parametrize(("K", "N", "group"), [(1000, 2, 6), (1000, 5, 2), (26, 5, 1), (100000, 256, 1), (3, 3, 1)])
def test_groups_are_chosen_by_size_alone(K: int, N: int, group: int) -> None:
    assert columns_a_cell(K, N) == group


def test_a_sparse_code_is_folded_from_its_used_cells() -> None:
    order = fold_order(codes.build("ovo", n_classes=200))
    assert order.cells.size == 200 * 199
    assert order.group == 1
    assert order.starts.size < order.cells.size


def test_row_and_column_blocks_cover_everything_once() -> None:
    code = CODES["random"]
    fold = Fold.of(code, Hamming())
    rows = list(fold.row_blocks(1_000_000))
    assert rows[0].start == 0
    assert rows[-1].stop == 1_000_000
    assert all(a.stop == b.start and a.stop % 64 == 0 for a, b in pairwise(rows))
    assert all(4 * (r.stop - r.start) * code.n_classes <= 1 << 26 for r in rows)
    columns = list(fold.column_blocks(5_000_000))
    assert columns[0][0] == 0
    assert columns[-1][1] == code.n_columns
    assert all(a[1] == b[0] for a, b in pairwise(columns))


@given(costs=st.lists(st.lists(st.integers(0, 5), min_size=4, max_size=4), min_size=1, max_size=5), k=st.integers(1, 4))
def test_smallest_is_a_stable_sort(costs: list[list[int]], k: int) -> None:
    array = np.array(costs, np.float32)
    np.testing.assert_array_equal(smallest(array, k), np.argsort(array, axis=1, kind="stable")[:, :k])


@given(costs=st.lists(st.integers(-(2**21), 2**21), min_size=2, max_size=30), temperature=st.floats(1e-6, 1e8))
def test_probabilities_keep_the_order_of_the_costs(costs: list[int], temperature: float) -> None:
    settled = np.array([costs], np.float32) / np.float32(65536)
    decoder = Hamming(temperature=temperature)
    chances, logs = decoder.probabilities(settled), decoder.log_probabilities(settled)
    assert chances.sum() == pytest.approx(1)
    assert not np.isnan(chances).any()
    assert np.isfinite(logs).all()
    assert chances.argmax() == settled.argmin() == logs.argmax()
    np.testing.assert_allclose(np.exp(logs), chances, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("temperature", [1.0001e-9, 0.9999e9])
@pytest.mark.parametrize("top", [1.0, 2.0**31])
def test_extreme_temperatures_and_costs_give_probabilities(temperature: float, top: float) -> None:
    costs = np.array([[top, 0, 2**-16, top - 0.5], [top, top, top, top]], np.float32)
    decoder = Hamming(temperature=temperature)
    chances, logs = decoder.probabilities(costs), decoder.log_probabilities(costs)
    assert np.isfinite(chances).all()
    assert np.isfinite(logs).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert (chances.argmax(axis=1) == [1, 0]).all()


def test_the_least_noise_leaves_costs_finite() -> None:
    decoder = LogLikelihood(noise=1.0001e-30)
    outputs = np.full((2, 1, 32767), -np.inf, np.float32)
    outputs[0, 0, 3] = 0
    costs = decoder.costs(outputs, np.array([32767], np.int16))
    assert np.isfinite(costs).all()
    assert costs[0].argmin() == 3


def test_folds_of_one_code_are_filled_by_asking_each_column_once_for_each_output() -> None:
    X, y = make_classification(300, 6, n_informative=6, n_redundant=0, n_classes=9, n_clusters_per_class=1)
    code = codes.build("random", n_classes=9, n_symbols=3, n_columns=20, random_state=0)
    learner = PerColumn(GaussianNB()).fit(X, Columns(code, y.astype(np.int32)))
    folds = [Fold.of(code, decoder) for decoder in (Hamming(), LogLikelihood(), Absolute())]
    expected = [
        fold.costs(learner.outputs(X, "log_probabilities" if i == 1 else "symbols", 0, 20))
        for i, fold in enumerate(folds)
    ]
    asked: list[str] = []

    class Spy(PerColumn):
        def outputs(self, X: Any, what: Any, first: int, last: int, **options: Any) -> Any:
            asked.extend([what] * (last - first))
            return super().outputs(X, what, first, last, **options)

    learner.__class__ = Spy
    ((totals, n_rows),) = class_totals(folds, learner, X, None, 1)
    assert sorted(asked) == ["log_probabilities"] * 20 + ["symbols"] * 20
    for fold, its, costs in zip(folds, totals, expected, strict=True):
        np.testing.assert_array_equal(fold.finish(its, n_rows), costs)


@pytest.mark.parametrize(
    "pruning",
    [
        {"max_depth": 3},
        {"max_leaf_nodes": 9},
        {"min_samples_leaf": 5},
        {"min_samples_split": 0.2},
        {"min_weight_fraction_leaf": 0.1},
        {"min_impurity_decrease": 1e-3},
        {"ccp_alpha": 0.01},
    ],
)
def test_pruned_trees_are_decoded_by_their_probabilities(pruning: dict[str, Any]) -> None:
    tree = DecisionTreeClassifier(**pruning)
    for estimator in (tree, make_pipeline(StandardScaler(), tree)):
        assert isinstance(as_decoder("auto", PerColumn(estimator)), LogLikelihood)
    grown = make_pipeline(StandardScaler(), ExtraTreeClassifier(max_features=2, random_state=3))
    assert isinstance(as_decoder("auto", PerColumn(grown)), Hamming)


def test_names_become_decoders_that_fit_the_learner() -> None:
    assert decoders.names() == ["absolute", "hamming", "loglikelihood"]
    tree, bayes = PerColumn(DecisionTreeClassifier()), PerColumn(GaussianNB())
    assert isinstance(as_decoder("auto", tree), Hamming)
    assert isinstance(as_decoder("auto", bayes), LogLikelihood)
    assert isinstance(as_decoder("absolute", bayes), Absolute)
    mine = Hamming(temperature=2)
    assert as_decoder(mine, bayes) is mine


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("haming", ValueError, "unknown decoder 'haming': expected one of .* Did you mean 'hamming'"),
        (Hamming, TypeError, r"decoder must be an object; got the class Hamming. Write Hamming\(\)"),
        (None, TypeError, r"decoder must be a name \(absolute, hamming, loglikelihood, auto\) or a decoder; got None"),
        (Hamming(temperature=0), ValueError, "temperature must lie strictly between 1e-09 and 1e.09; got 0"),
        (Hamming(temperature="1"), TypeError, "temperature must be a number"),
        (
            Hamming(temperature=1e-308),
            ValueError,
            r"between 1e-09 and 1e.09; got 1e-308\. Probabilities are the softmax",
        ),
        (LogLikelihood(noise=1), ValueError, "noise must lie strictly between 1e-30 and 1; got 1"),
        (LogLikelihood(noise=1e-300), ValueError, r"between 1e-30 and 1; got 1e-300\. A column errs altogether"),
        (
            "loglikelihood",
            ValueError,
            "LogLikelihood needs columns that say log_probabilities.*one of absolute, hamming",
        ),
    ],
)
def test_what_does_not_become_a_decoder(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_decoder(given, PerColumn(Perceptron()))


def explanation(K: int = 4) -> Explanation:
    code = CodeMatrix([[0, 0, 1, 0], [0, 1, 1, 1], [1, -1, 0, 0], [1, 1, 1, -1]], alphabet=2)
    labels = np.array(["a<b", "b", "c", "d"])
    return Explanation.of(code, labels, np.array([1.0, 0.5, 3.0, 1.0], np.float32), np.array([0, 1, 0, 1], np.int16))


def test_an_explanation_names_the_columns_that_decide() -> None:
    found = explanation()
    assert found.classes.tolist() == ["b", "a<b"]
    assert found.deciding.tolist() == [1, 3]
    text = str(found)
    assert (
        "b (cost 0.5) before a<b (cost 1): of 4 columns, 2 columns decide between them, 2 for b and 0 for a<b" in text
    )
    assert text.splitlines()[1].split() == ["column", "said", "b", "a<b"]
    assert [line.split() for line in text.splitlines()[2:]] == [["1", "1", "1", "0"], ["3", "1", "1", "0"]]
    assert "a&lt;b" in found._repr_html_()
    assert "a<b" not in found._repr_html_()
