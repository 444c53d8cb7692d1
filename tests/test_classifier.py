"""NaryClassifier: scikit-learn's contract, the invariants of the design, and what it says to bad input."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from nary import CodeMatrix, NaryClassifier, _kernels, codes, decoders, learners
from nary.bench.demo import make_many_classes
from nary.decoders import Fold

X, y = load_digits(return_X_y=True)
X_TRAIN, Y_TRAIN, X_TEST, Y_TEST = X[:1000], y[:1000], X[1000:], y[1000:]
SMALL = {"n_symbols": 3, "n_columns": 12, "random_state": 0}


def fitted(estimator: Any = None, **options: Any) -> NaryClassifier:
    return NaryClassifier(estimator, **(SMALL | options)).fit(X_TRAIN, Y_TRAIN)


@parametrize_with_checks(
    [
        NaryClassifier(),
        NaryClassifier(LogisticRegression()),
        NaryClassifier(GaussianNB(), code="ovo"),
        NaryClassifier(code="ova", decoder="absolute"),
        NaryClassifier(code="sparse", decoder="loglikelihood"),
        NaryClassifier(code="identity"),
    ]
)
def test_the_contract_of_scikit_learn(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks provoke warnings on purpose
        check(estimator)


# --- Invariant 1: same seed, same bits -----------------------------------------------------------------------------


@pytest.mark.parametrize("decoder", ["hamming", "loglikelihood"])
def test_the_same_seed_gives_the_same_bits_for_every_number_of_jobs(decoder: str, level: str) -> None:
    expected = fitted(decoder=decoder).predict_proba(X_TEST)
    for n_jobs in (2, 3, -1):
        clf = fitted(decoder=decoder, n_jobs=n_jobs)
        np.testing.assert_array_equal(clf.predict_proba(X_TEST), expected)
    expected = fitted(DecisionTreeClassifier(), decoder=decoder).predict_proba(X_TEST)
    other = fitted(learners.PerColumn(DecisionTreeClassifier(), n_jobs=2, backend="processes"), decoder=decoder)
    np.testing.assert_array_equal(other.predict_proba(X_TEST), expected)


def test_levels_give_the_same_bits() -> None:
    clf, before, seen = fitted(GaussianNB(), decoder="loglikelihood"), _kernels.level(), []
    for name in _kernels.levels():
        _kernels.use_level(name)
        seen.append(clf.decision_function(X_TEST))
    _kernels.use_level(before)
    assert all(np.array_equal(seen[0], other) for other in seen)


def test_another_seed_gives_another_code_and_other_columns() -> None:
    assert fitted(random_state=0).code_ != fitted(random_state=1).code_
    assert fitted(random_state=0).code_ == codes.build("random", n_classes=10, **SMALL)


def test_a_row_is_answered_alike_alone_and_among_others() -> None:
    clf = fitted(GaussianNB(), decoder="loglikelihood")
    together = clf.decision_function(X_TEST[:130])
    alone = np.concatenate([clf.decision_function(row[None]) for row in X_TEST[:130]])
    np.testing.assert_array_equal(together, alone)


# --- Invariant 2: one score path -----------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    K=st.integers(2, 9),
    decoder=st.sampled_from(decoders.names()),
    code=st.sampled_from(codes.names()),
    temperature=st.sampled_from([1e-3, 1.0, 40.0]),
    seed=st.integers(0, 5),
)
def test_every_method_tells_the_same_class(K: int, decoder: str, code: str, temperature: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(K), rng.integers(0, K, 40)])
    rows = rng.normal(size=(K + 40, 3)) + labels[:, None]
    if K == 2 and code == "sparse":
        code = "ovo"
    clf = NaryClassifier(DecisionTreeClassifier(max_depth=2), code=code, decoder=decoder, random_state=seed)
    clf.set_params(decoder=decoders.as_decoder(decoder, learners.as_learner(None)).set_params(temperature=temperature))
    clf.fit(rows, labels)
    said, chances = clf.predict(rows), clf.predict_proba(rows)
    scores = clf.decision_function(rows)
    by_score = (scores > 0).astype(int) if K == 2 else scores.argmax(axis=1)
    np.testing.assert_array_equal(said, clf.classes_[chances.argmax(axis=1)])
    np.testing.assert_array_equal(said, clf.classes_[by_score])
    np.testing.assert_array_equal(said, clf.top_k(rows, 1)[0][:, 0])
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert not np.isnan(chances).any()
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(rows)), chances, rtol=1e-6, atol=1e-12)


def test_probabilities_that_underflow_have_finite_logarithms() -> None:
    clf = fitted(decoder=decoders.Hamming(temperature=1e-3))
    assert (clf.predict_proba(X_TEST) == 0).any()
    assert np.isfinite(clf.predict_log_proba(X_TEST)).all()


# --- Invariant 5 and what the pieces are worth ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "rival"), [("ova", OneVsRestClassifier), ("ovo", OneVsOneClassifier), ("identity", lambda tree: tree)]
)
def test_classic_codes_fit_the_classifiers_that_scikit_learn_fits(code: str, rival: Any) -> None:
    tree = DecisionTreeClassifier(random_state=3)
    theirs = rival(tree).fit(X_TRAIN, Y_TRAIN)
    ours = NaryClassifier(tree, code=code).fit(X_TRAIN, Y_TRAIN)
    columns = [theirs] if code == "identity" else theirs.estimators_
    expected = np.stack([column.predict(X_TEST) for column in columns], axis=1)
    np.testing.assert_array_equal(ours.predict_symbols(X_TEST), expected)
    if code == "identity":
        np.testing.assert_array_equal(ours.predict(X_TEST), theirs.predict(X_TEST))


def test_one_vs_one_votes_like_the_votes_counted_by_hand() -> None:
    clf = NaryClassifier(GaussianNB(), code="ovo", decoder="hamming").fit(X_TRAIN, Y_TRAIN)
    said, votes = clf.predict_symbols(X_TEST), np.zeros((len(X_TEST), 10))
    for s, (a, b) in enumerate(zip(*np.triu_indices(10, 1), strict=True)):
        votes[np.arange(len(X_TEST)), np.where(said[:, s] == 0, a, b)] += 1
    np.testing.assert_array_equal(clf.predict(X_TEST), votes.argmax(axis=1))
    np.testing.assert_array_equal(-clf.decision_function(X_TEST), 36 / 2 + 9 - votes)


def test_more_columns_mend_what_one_tree_gets_wrong() -> None:
    alone = DecisionTreeClassifier(random_state=0).fit(X_TRAIN, Y_TRAIN).score(X_TEST, Y_TEST)
    assert fitted(n_symbols=5, n_columns=60).score(X_TEST, Y_TEST) > alone + 0.1


@pytest.mark.data
def test_letter_reaches_the_papers_accuracy(letter: tuple[np.ndarray, np.ndarray]) -> None:
    rows, labels = letter
    order = np.random.default_rng(0).permutation(len(labels))
    train, test = order[:5000], order[5000:]
    clf = NaryClassifier(n_symbols=5, n_columns=100, decoder="hamming", n_jobs=2, random_state=0)
    assert clf.fit(rows[train], labels[train]).score(rows[test], labels[test]) >= 0.9215


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (np.array(["b", "a", "c"]), "strings"),
        (np.array(["b", "a", "c"], object), "objects"),
        (np.array([3, -1, 70000]), "integers"),
        (np.array([1.0, 0.0, 2.0]), "floats"),
    ],
)
def test_labels_of_every_kind(labels: Any, kind: str) -> None:
    some = Y_TRAIN < 3
    clf = NaryClassifier(random_state=0).fit(X_TRAIN[some], labels[Y_TRAIN[some]])
    np.testing.assert_array_equal(clf.classes_, np.unique(labels))
    assert (clf.predict(X_TRAIN[some]) == labels[Y_TRAIN[some]]).mean() > 0.95


@pytest.mark.parametrize("code", ["random", "ovo", "ova", "identity"])
def test_two_classes(code: str) -> None:
    some = Y_TRAIN < 2
    clf = NaryClassifier(DecisionTreeClassifier(), code=code, random_state=0).fit(X_TRAIN[some], Y_TRAIN[some])
    assert clf.code_.shape == (2, 1)
    assert clf.decision_function(X_TEST).shape == (len(X_TEST),)
    assert clf.predict_proba(X_TEST).shape == (len(X_TEST), 2)
    said = clf.predict_symbols(X_TEST)[:, 0]
    np.testing.assert_array_equal(clf.code_.symbols[clf.predict(X_TEST), 0], said)


def test_frames_csr_and_arrays_give_the_same_answers() -> None:
    names = [f"f{i}" for i in range(64)]
    expected = fitted().predict(X_TEST)
    for train, test in [
        (pd.DataFrame(X_TRAIN, columns=names), pd.DataFrame(X_TEST, columns=names)),
        (pl.DataFrame(X_TRAIN, schema=names), pl.DataFrame(X_TEST, schema=names)),
        (sp.csr_array(X_TRAIN), sp.csr_matrix(X_TEST)),
        (sp.csc_array(X_TRAIN), sp.coo_array(X_TEST)),
        (X_TRAIN.tolist(), X_TEST.tolist()),
    ]:
        clf = NaryClassifier(**SMALL).fit(train, Y_TRAIN)
        np.testing.assert_array_equal(clf.predict(test), expected)
        if hasattr(train, "columns"):
            assert clf.feature_names_in_.tolist() == names


def test_weights_are_repeated_rows_and_zero_weights_absent_ones() -> None:
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, len(Y_TRAIN))
    repeated = np.repeat(np.arange(len(Y_TRAIN)), weights)
    options: dict[str, Any] = SMALL | {"decoder": "loglikelihood"}
    shallow = DecisionTreeClassifier(max_depth=3)
    ours = NaryClassifier(shallow, **options).fit(X_TRAIN, Y_TRAIN, sample_weight=weights)
    theirs = NaryClassifier(shallow, **options).fit(X_TRAIN[repeated], Y_TRAIN[repeated])
    np.testing.assert_allclose(ours.predict_log_proba(X_TEST), theirs.predict_log_proba(X_TEST), rtol=1e-4, atol=1e-4)
    mask = weights > 0
    tree = NaryClassifier(**SMALL).fit(X_TRAIN, Y_TRAIN, sample_weight=mask)
    np.testing.assert_array_equal(
        tree.predict(X_TEST), NaryClassifier(**SMALL).fit(X_TRAIN[mask], Y_TRAIN[mask]).predict(X_TEST)
    )


def test_weights_are_routed_through_search_and_pipelines() -> None:
    with config_context(enable_metadata_routing=True):
        clf = NaryClassifier(DecisionTreeClassifier(), code="identity")
        clf.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        weights = np.where(Y_TRAIN == 3, 0.0, 1.0)
        search = GridSearchCV(clf, {"estimator__max_depth": [9]}, cv=2)
        search.fit(X_TRAIN, Y_TRAIN, sample_weight=weights)
        assert 3 not in search.predict(X_TEST)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipe = make_pipeline(scaler, clf).fit(X_TRAIN, Y_TRAIN, sample_weight=weights)
        assert 3 not in pipe.predict(X_TEST)


def test_nested_parameters_are_searched() -> None:
    clf = NaryClassifier(
        learners.PerColumn(DecisionTreeClassifier()), code=codes.Random(5), decoder=decoders.Hamming(), **SMALL
    )
    grid = {
        "estimator__estimator__max_depth": [2, 9],
        "code__n_candidates": [1],
        "decoder__temperature": [2.0],
    }
    search = GridSearchCV(clf, grid, cv=2).fit(X_TRAIN, Y_TRAIN)
    assert search.best_params_["estimator__estimator__max_depth"] == 9
    assert search.best_estimator_.decoder_.temperature == 2.0
    assert NaryClassifier(DecisionTreeClassifier()).set_params(estimator__max_depth=3).estimator.max_depth == 3
    assert cross_val_score(make_pipeline(StandardScaler(), NaryClassifier(**SMALL)), X, y, cv=3).mean() > 0.8


def test_nested_parameters_of_a_name_turn_it_into_its_object() -> None:
    clf = NaryClassifier(**SMALL)
    again = clone(clf).set_params(code__n_candidates=5, decoder__temperature=2.0, estimator__max_depth=4)
    assert (again.code.n_candidates, again.decoder.temperature, again.estimator.max_depth) == (5, 2.0, 4)
    assert isinstance(again.code, codes.Random)
    assert isinstance(again.estimator, type(learners.default_estimator()))
    tree = NaryClassifier(DecisionTreeClassifier()).set_params(decoder__temperature=2.0, estimator__max_depth=4)
    assert isinstance(tree.decoder, decoders.LogLikelihood)  # "auto" for the pruned tree
    assert clone(again).get_params()["code__n_candidates"] == 5
    assert (clf.code, clf.decoder, clf.estimator) == ("random", "auto", None)
    dense = clone(clf).set_params(code="dense", code__n_candidates=3, decoder="absolute", decoder__temperature=3)
    assert isinstance(dense.code, codes.Dense)
    assert isinstance(dense.decoder, decoders.Absolute)
    grid = {"code__n_candidates": [1, 2], "decoder__temperature": [0.5], "estimator__max_depth": [2, 9]}
    search = GridSearchCV(clf, grid, cv=2).fit(X_TRAIN, Y_TRAIN)
    assert search.best_params_["estimator__max_depth"] == 9
    assert search.best_estimator_.decoder_.temperature == 0.5


def test_nested_parameters_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="Invalid parameter 'temprature' for estimator Hamming"):
        NaryClassifier().set_params(decoder__temprature=2)
    with pytest.raises(ValueError, match="unknown code design 'randm'"):
        NaryClassifier(code="randm").set_params(code__n_candidates=2)
    with pytest.raises(ValueError, match="Invalid parameter 'cod'"):
        NaryClassifier().set_params(cod__n_candidates=2)


def test_a_fitted_model_survives_pickle_and_fitting_changes_no_parameter() -> None:
    code, decoder, learner = codes.Random(3), decoders.Hamming(), learners.PerColumn(DecisionTreeClassifier())
    clf = NaryClassifier(learner, code=code, decoder=decoder, **SMALL).fit(X_TRAIN, Y_TRAIN)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X_TEST), clf.predict_proba(X_TEST))
    assert clf.learner_ is not learner
    assert clf.decoder_ is not decoder
    assert not hasattr(learner, "estimators_")
    assert clone(clf).get_params()["code"].n_candidates == 3


def test_sizes_left_open_follow_the_documented_rule() -> None:
    ten = NaryClassifier(random_state=0).fit(X_TRAIN, Y_TRAIN).code_
    assert (ten.n_symbols, ten.n_columns) == (3, 100)
    rows, labels = make_classification(600, 8, n_informative=8, n_redundant=0, n_classes=40, n_clusters_per_class=1)
    forty = NaryClassifier(random_state=0).fit(rows, labels).code_
    assert (forty.n_symbols, forty.n_columns) == (10, 100)
    for estimator, shape in ((GaussianNB(), (3, 4)), (learners.Trees(splitter="best"), (3, 4)), (None, (3, 100))):
        three = NaryClassifier(estimator, random_state=0).fit(X_TRAIN[Y_TRAIN < 3], Y_TRAIN[Y_TRAIN < 3]).code_
        assert three.shape == shape, "all the columns there are, or, for a learner that is itself random, a hundred"
    once = NaryClassifier(code=codes.Random(allow_repeats=False), random_state=0)
    assert once.fit(X_TRAIN[Y_TRAIN < 3], Y_TRAIN[Y_TRAIN < 3]).code_.n_columns == 4


def test_a_matrix_of_ones_own_is_the_code() -> None:
    matrix = (np.arange(10)[:, None] // [1, 2, 5]) % 5
    matrix[0, 2] = -1
    for form in (matrix, matrix.tolist(), CodeMatrix(matrix)):
        clf = NaryClassifier(code=form, random_state=0).fit(X_TRAIN, Y_TRAIN)
        np.testing.assert_array_equal(clf.code_.symbols, matrix)


def test_top_k_is_the_head_of_the_sorted_costs() -> None:
    clf = fitted()
    order = np.argsort(-clf.decision_function(X_TEST), axis=1, kind="stable")
    for k in (1, 3, 10):
        classes, costs = clf.top_k(X_TEST, k)
        np.testing.assert_array_equal(classes, clf.classes_[order[:, :k]])
        np.testing.assert_array_equal(costs, -np.take_along_axis(clf.decision_function(X_TEST), order[:, :k], axis=1))


def test_explain_tells_what_the_columns_said() -> None:
    clf = fitted()
    for form in (X_TEST[5], X_TEST[5:6], X_TEST[5].tolist(), sp.csr_array(X_TEST[5:6])):
        found = clf.explain(form)
        np.testing.assert_array_equal(found.said, clf.predict_symbols(X_TEST[5:6])[0])
        np.testing.assert_array_equal(found.classes, clf.top_k(X_TEST[5:6], 2)[0][0])
        np.testing.assert_array_equal(found.winner, clf.code_.symbols[found.classes[0]])
    names = [f"f{i}" for i in range(64)]
    frame = pd.DataFrame(X_TRAIN, columns=names)
    by_name = NaryClassifier(**SMALL).fit(frame, Y_TRAIN)
    assert by_name.explain(frame.iloc[0]).classes[0] == by_name.predict(frame[:1])[0]
    assert by_name.explain(frame[:1]).classes[0] == by_name.predict(frame[:1])[0]
    for row in (frame.iloc[5], pl.Series(X_TRAIN[5]), pl.Series("row", X_TRAIN[5])):  # no names, and no warning of them
        np.testing.assert_array_equal(clf.explain(row).said, clf.predict_symbols(X_TRAIN[5:6])[0])


@pytest.mark.parametrize("code", ["random", "ova", "ovo", "sparse"])
@pytest.mark.parametrize("decoder", ["hamming", "absolute", "loglikelihood"])
def test_the_papers_theorem_holds(code: str, decoder: str) -> None:
    options = {"n_columns": 12, "n_symbols": 3} if code == "random" else {}
    clf = NaryClassifier(code=code, decoder=decoder, random_state=0, **options).fit(X_TRAIN, Y_TRAIN)
    found = clf.error_bound(X_TEST, Y_TEST)
    assert found.distance == ("absolute" if decoder == "absolute" else "hamming")
    assert found.rho == clf.code_.min_distance(found.distance)
    assert found.observed_error == pytest.approx(1 - clf.score(X_TEST, Y_TEST))
    assert found.decoding_error <= found.bound
    assert found.bound == pytest.approx(2 * clf.code_.n_columns * found.mean_loss / found.rho)
    if code == "random" and found.distance == "hamming":
        losses = clf.predict_symbols(X_TEST) != clf.code_.symbols[Y_TEST]
        assert found.mean_loss == pytest.approx(losses.mean())
        assert "error <= 2 L B-bar / rho" in str(found)


@pytest.mark.parametrize("decoder", ["hamming", "absolute", "loglikelihood"])
def test_the_bound_asks_columns_once_and_holds_no_whole_table(monkeypatch: pytest.MonkeyPatch, decoder: str) -> None:
    rows, labels = make_many_classes(n_classes=60, rows_a_class=500, n_features=4)
    order = np.random.default_rng(0).permutation(30000)
    rows, labels = rows[order], labels[order]
    shallow = DecisionTreeClassifier(max_depth=8)
    clf = NaryClassifier(shallow, n_symbols=4, n_columns=64, decoder=decoder, random_state=0).fit(
        rows[:2000], labels[:2000]
    )
    expected = clf.error_bound(rows, labels)
    said = clf.predict_symbols(rows)
    costs = Fold.of(clf.code_, decoders.distance_decoder(expected.distance)).costs(said)
    assert expected.mean_loss == pytest.approx(costs[np.arange(30000), labels].mean(dtype=float) / 64)
    assert expected.decoding_error == np.mean(costs.argmin(axis=1) != labels)
    monkeypatch.setattr("nary.decoders.fold._BLOCK_BYTES", 1 << 18)
    asked: list[tuple[str, int]] = []

    class Spy(learners.PerColumn):
        def outputs(self, ready: Any, what: Any, first: int, last: int, **options: Any) -> Any:
            asked.append((what, ready.shape[0] * (last - first)))
            return super().outputs(ready, what, first, last, **options)

    clf.learner_.__class__ = Spy
    tracemalloc.start()
    found = clf.error_bound(rows, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == expected
    assert peak < 2 * 30000 * 60  # bytes: half of (rows, classes), and less than (rows, columns) of symbols
    kinds = {what for what, _ in asked}
    assert kinds == ({"log_probabilities", "symbols"} if decoder == "loglikelihood" else {"symbols"})
    assert all(sum(cells for what, cells in asked if what == kind) == 30000 * 64 for kind in kinds)


def test_bounds_of_string_labels_and_perfect_columns() -> None:
    names = np.array(list("abcdefghij"))
    clf = NaryClassifier(**SMALL).fit(X_TRAIN, names[Y_TRAIN])
    found = clf.error_bound(X_TRAIN, names[Y_TRAIN])
    assert (found.mean_loss, found.bound, found.observed_error) == (0, 0, 0)


def test_missing_values_go_to_estimators_that_take_them() -> None:
    rows = X_TRAIN[:200].copy()
    rows[::7, 3] = np.nan
    default, tree, filled = (
        NaryClassifier(estimator, **SMALL).fit(rows, Y_TRAIN[:200])
        for estimator in (None, DecisionTreeClassifier(), make_pipeline(SimpleImputer(), GaussianNB()))
    )
    assert all(clf.score(rows, Y_TRAIN[:200]) > 0.9 for clf in (default, tree))
    assert filled.predict(rows).shape == (200,)
    assert [clf.__sklearn_tags__().input_tags.allow_nan for clf in (default, tree, filled)] == [True] * 3
    assert not NaryClassifier(GaussianNB()).__sklearn_tags__().input_tags.allow_nan


def test_a_column_that_says_nothing_of_a_row_leaves_its_probabilities_numbers() -> None:
    rows = np.column_stack([np.full(1000, 7.0), X_TRAIN])
    clf = NaryClassifier(GaussianNB(var_smoothing=0), **SMALL).fit(rows, Y_TRAIN)
    chances = clf.predict_proba(rows)
    np.testing.assert_allclose(chances, 0.1)  # every column divides by a variance of 0
    assert np.isfinite(clf.predict_log_proba(rows)).all()
    np.testing.assert_array_equal(clf.predict(rows), clf.classes_[chances.argmax(axis=1)])


def test_columns_that_work_in_place_leave_x_alone() -> None:
    rows, pipe = X_TRAIN.copy(), make_pipeline(StandardScaler(copy=False), GaussianNB(var_smoothing=1e-2))
    one, two = (NaryClassifier(pipe, **SMALL, n_jobs=n_jobs).fit(rows, Y_TRAIN) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(rows), two.predict_proba(rows))
    np.testing.assert_array_equal(rows, X_TRAIN)


def test_a_matrix_that_may_be_meant_as_signs_draws_a_warning() -> None:
    signs, some = [[1, -1, 0], [0, 1, 0], [0, 0, 1]], Y_TRAIN < 3
    with pytest.warns(UserWarning, match=r"-1 for UNUSED .* use CodeMatrix\.from_signs") as caught:
        NaryClassifier(code=signs).fit(X_TRAIN[some], Y_TRAIN[some])
    assert len(caught) == 1
    NaryClassifier(code=CodeMatrix(signs, alphabet=2)).fit(X_TRAIN[some], Y_TRAIN[some]).predict(X_TEST)


def test_progress_is_told_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    fitted()
    assert capsys.readouterr() == ("", "")
    fitted(verbose=10)
    assert "[Trees] 12 of 12 columns" in capsys.readouterr().out
    fitted(DecisionTreeClassifier(), verbose=10)
    assert "Done" in "".join(capsys.readouterr())


def test_no_block_of_outputs_is_larger_than_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    clf, asked = fitted(DecisionTreeClassifier()), []
    ask = clf.learner_.outputs

    def spy(rows: Any, what: Any, first: int, last: int, **options: Any) -> Any:
        asked.append((rows.shape[0], last - first))
        return ask(rows, what, first, last, **options)

    monkeypatch.setattr(clf.learner_, "outputs", spy)
    expected = clf.predict_proba(X_TEST)
    monkeypatch.setattr("nary.decoders.fold._BLOCK_BYTES", 128 * 4 * 10)
    asked.clear()
    np.testing.assert_array_equal(clf.predict_proba(X_TEST), expected)
    assert max(rows for rows, _ in asked) == 128
    assert sum(rows for rows, _ in asked) >= len(X_TEST)


# --- Bad input -----------------------------------------------------------------------------------------------------

NAN, INF = X_TRAIN.copy(), X_TRAIN.copy()
NAN[3, 4], INF[3, 4] = np.nan, np.inf


@pytest.mark.parametrize(
    ("options", "data", "error", "message"),
    [
        ({}, (X_TRAIN, np.zeros(1000)), ValueError, r"at least two classes; got 1 class .* in 1000 rows"),
        ({}, (X_TRAIN, None), ValueError, "requires y to be passed, but the target y is None. Give one label"),
        ({}, (INF, Y_TRAIN), ValueError, "Input X contains infinity"),
        ({"estimator": GaussianNB()}, (NAN, Y_TRAIN), ValueError, "Input X contains NaN"),
        ({}, (X_TRAIN, Y_TRAIN[:-1]), ValueError, "same number of rows; got 1000 and 999. Give one of y for each row"),
        ({}, (X_TRAIN, Y_TRAIN + 0.5), ValueError, "Unknown label type: continuous"),
        ({}, (X_TRAIN, np.where(Y_TRAIN > 0, Y_TRAIN, np.nan)), ValueError, "Input y contains NaN"),
        ({}, (np.array([["a", "b"]] * 1000), Y_TRAIN), ValueError, "could not convert string to float|dtype"),
        (
            {"estimator": LinearRegression()},
            (X_TRAIN, Y_TRAIN),
            TypeError,
            "LinearRegression, which is not a classifier",
        ),
        ({"n_jobs": 0}, (X_TRAIN, Y_TRAIN), ValueError, r"n_jobs must be None or an integer other than 0 .*; got 0"),
        ({"n_jobs": "2"}, (X_TRAIN, Y_TRAIN), TypeError, "n_jobs must be .*; got '2' of type str"),
        ({"n_jobs": 1.5}, (X_TRAIN, Y_TRAIN), TypeError, "n_jobs must be .*; got 1.5 of type float"),
        ({"verbose": None}, (X_TRAIN, Y_TRAIN), TypeError, "verbose must be an integer of at least 0; got None"),
        ({"verbose": "loud"}, (X_TRAIN, Y_TRAIN), TypeError, "verbose must be .*; got 'loud' of type str. 0 prints"),
        ({}, ([[10**400]] * 3, [0, 1, 2]), ValueError, r"X must hold numbers below 1\.8e308; .* Scale the features"),
        ({}, (X_TRAIN.astype("M8[s]"), Y_TRAIN), TypeError, r"X must hold numbers; got datetime64\[s\]\. Turn dates"),
        ({}, (X_TRAIN, ["a", 1] * 500), TypeError, "y must hold labels of one kind; got int and str. Turn them all"),
        ({}, (X_TRAIN, ["a", None] * 500), ValueError, "y must hold a label for each row; got None in row 1. Leave"),
        ({}, (X_TRAIN, [2**70, 1] * 500), ValueError, "y must hold integers of 64 bits; got 1180591620717411303424"),
        ({"code": 3}, (X_TRAIN, Y_TRAIN), TypeError, "code must be a name .*, a design, or a matrix of symbols; got 3"),
        ({"code": sp.csr_array(np.eye(10))}, (X_TRAIN, Y_TRAIN), TypeError, "CodeMatrix.from_entries"),
        ({"code": [[2**70, 1], [0, 2]]}, (X_TRAIN, Y_TRAIN), ValueError, "0 to 32766; got 1180591620717411303424"),
        ({"n_columns": 10**9}, (X_TRAIN, Y_TRAIN), ValueError, "n_columns must be at most"),
        (
            {"estimator": learners.PerColumn(LinearRegression())},
            (X_TRAIN, Y_TRAIN),
            TypeError,
            "the estimator of PerColumn must be a scikit-learn classifier; got LinearRegression",
        ),
        (
            {"decoder": decoders.Hamming(1e-308)},
            (X_TRAIN, Y_TRAIN),
            ValueError,
            "temperature must lie strictly between",
        ),
        (
            {"decoder": decoders.LogLikelihood(1e-300)},
            (X_TRAIN, Y_TRAIN),
            ValueError,
            "noise must lie strictly between",
        ),
        ({"code": "randm"}, (X_TRAIN, Y_TRAIN), ValueError, "unknown code design 'randm'.* Did you mean 'random'"),
        ({"decoder": "hammin"}, (X_TRAIN, Y_TRAIN), ValueError, "unknown decoder 'hammin'.* Did you mean 'hamming'"),
        ({"code": np.eye(9, dtype=int)}, (X_TRAIN, Y_TRAIN), ValueError, "each of the 10 classes; got 9 rows"),
        ({"code": [[0, 1]] * 10}, (X_TRAIN, Y_TRAIN), ValueError, "Remove the column"),
        ({"code": np.eye(10)[:, :8]}, (X_TRAIN, Y_TRAIN), ValueError, "classes 8 and 9 have the same"),
        ({"code": np.eye(10) + 0.5}, (X_TRAIN, Y_TRAIN), ValueError, "must hold integers; got 1.5"),
        ({"code": np.eye(10, dtype=int) - 2}, (X_TRAIN, Y_TRAIN), ValueError, "class .* has -2"),
        (
            {"n_symbols": 11},
            (X_TRAIN, Y_TRAIN),
            ValueError,
            "n_symbols must be at most the number of classes, 10; got 11",
        ),
        (
            {"n_columns": 2},
            (X_TRAIN, Y_TRAIN),
            ValueError,
            "n_columns must be at least 3 .* got 2. Raise n_columns to 3",
        ),
        ({"n_columns": 0}, (X_TRAIN, Y_TRAIN), ValueError, "n_columns must be an integer of at least 1; got 0"),
        ({"n_columns": 5.0}, (X_TRAIN, Y_TRAIN), TypeError, "n_columns must be an integer .* got 5.0 of type float"),
        ({"n_symbols": "many"}, (X_TRAIN, Y_TRAIN), ValueError, "or 'auto'; got 'many'"),
        (
            {"estimator": Perceptron(), "decoder": "loglikelihood"},
            (X_TRAIN, Y_TRAIN),
            ValueError,
            "needs columns that say log_probabilities.* Choose one of absolute, hamming",
        ),
    ],
)
def test_fit_says_what_is_wrong(options: dict[str, Any], data: tuple[Any, Any], error: Any, message: str) -> None:
    given = ({} if "code" in options else SMALL) | options
    with pytest.raises(error, match=message):
        NaryClassifier(**given).fit(*data)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(999), "X and sample_weight must have the same number of rows; got 1000 and 999"),
        (np.zeros(1000), "sample_weight must be above 0 for at least one row"),
        (-np.ones(1000), "Negative values"),
        (np.full(1000, np.nan), "Input sample_weight contains NaN"),
        (np.ones((1000, 2)), "1D array"),
    ],
)
def test_fit_says_what_is_wrong_with_weights(weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NaryClassifier(**SMALL).fit(X_TRAIN, Y_TRAIN, sample_weight=weights)


def test_weights_for_an_estimator_that_takes_none_are_refused() -> None:
    with pytest.raises(ValueError, match=r"KNeighborsClassifier\.fit does not"):
        NaryClassifier(KNeighborsClassifier(), **SMALL).fit(X_TRAIN, Y_TRAIN, sample_weight=np.ones(1000))


def test_an_estimator_with_a_cap_on_its_symbols() -> None:
    class TwoOnly(GaussianNB):
        def __sklearn_tags__(self) -> Any:
            tags = super().__sklearn_tags__()
            tags.classifier_tags.multi_class = False
            return tags

    assert NaryClassifier(TwoOnly(), random_state=0).fit(X_TRAIN, Y_TRAIN).code_.n_symbols == 2
    with pytest.raises(ValueError, match=r"n_symbols must be at most 2, what the estimator can tell apart.* has 3"):
        NaryClassifier(TwoOnly(), **SMALL).fit(X_TRAIN, Y_TRAIN)


def test_predictions_say_what_is_wrong() -> None:
    clf = fitted()
    with pytest.raises(ValueError, match="X has 63 features, but NaryClassifier is expecting 64"):
        clf.predict(X_TEST[:, :63])
    with pytest.raises(ValueError, match="Input X contains NaN"):
        fitted(GaussianNB()).predict(NAN)
    with pytest.raises(ValueError, match="Input X contains infinity"):
        clf.predict(INF)
    with pytest.raises(ValueError, match="k must be an integer from 1 to 10; got 11"):
        clf.top_k(X_TEST, 11)
    with pytest.raises(ValueError, match=r"explain takes one row; got 2\. Give"):
        clf.explain(X_TEST[:2])
    with pytest.raises(ValueError, match=r"y must hold classes seen in fit; got 1 other: \[10\]"):
        clf.error_bound(X_TEST[:3], [0, 1, 10])
    with pytest.raises(ValueError, match=r"y should be a 1d array, got an array of shape \(3, 2\)"):
        clf.error_bound(X_TEST[:3], [[0, 1]] * 3)
    with pytest.raises(TypeError, match="y must hold labels of one kind; got int and str"):
        clf.error_bound(X_TEST[:3], [0, "1", 2])
    with pytest.raises(ValueError, match=r"X must hold numbers below 1\.8e308; .* Scale the features"):
        clf.predict([[10**400] * 64])
    with pytest.raises(TypeError, match=r"X must hold numbers; got datetime64\[s\]"):
        clf.predict(X_TEST.astype("M8[s]"))
    for n_jobs, error in ((0, ValueError), ("2", TypeError)):
        with pytest.raises(error, match="n_jobs must be None or an integer other than 0"):
            clone(clf).fit(X_TRAIN, Y_TRAIN).set_params(n_jobs=n_jobs).predict(X_TEST)
    with pytest.raises(ValueError, match="X and y must have the same number of rows; got 3 and 2"):
        clf.error_bound(X_TEST[:3], [0, 1])
    frame = pd.DataFrame(X_TRAIN, columns=[f"f{i}" for i in range(64)])
    by_name = NaryClassifier(**SMALL).fit(frame, Y_TRAIN)
    with pytest.raises(ValueError, match="feature names should match"):
        by_name.predict(frame.rename(columns={"f0": "g0"}))


def test_before_fit_and_after_a_fit_that_failed_there_is_no_model() -> None:
    clf = NaryClassifier(**SMALL)
    for ask in (clf.predict, clf.predict_proba, clf.decision_function, clf.predict_symbols, clf.explain):
        with pytest.raises(NotFittedError):
            ask(X_TEST)
    clf.fit(X_TRAIN, Y_TRAIN)
    with pytest.raises(ValueError, match="at least two classes"):
        clf.fit(X_TRAIN, np.zeros(1000))
    with pytest.raises(NotFittedError):
        clf.predict(X_TEST)


def test_an_estimator_that_takes_no_sparse_rows_says_so() -> None:
    with pytest.raises(TypeError, match="Sparse data was passed"):
        NaryClassifier(GaussianNB(), **SMALL).fit(sp.csr_array(X_TRAIN), Y_TRAIN)
