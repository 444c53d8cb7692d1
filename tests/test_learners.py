"""PerColumn: a clone per column over shared rows, whatever the estimator can say and however columns are run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron, RidgeClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from nary import CodeMatrix, NaryClassifier, codes
from nary.columns import Columns
from nary.learners import PerColumn, Trees, as_learner
from nary.learners._answers import Constant
from nary.learners.per_column import releases_gil

DIGITS = tuple(part[:300] for part in load_digits(return_X_y=True))
CODE = codes.build("random", n_classes=10, n_symbols=3, n_columns=8, random_state=0)


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what it was fitted on, and says the first symbol of all."""

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Recorder:
        self.classes_ = np.unique(y)
        self.seen_ = (np.array(X), np.array(y), None if sample_weight is None else np.array(sample_weight))
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.classes_[0])


class Fails(Recorder):
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Recorder:
        raise RuntimeError("no luck")


def fitted(estimator: Any, code: CodeMatrix = CODE, **options: Any) -> PerColumn:
    X, y = DIGITS
    return PerColumn(estimator).fit(X, Columns(code, y.astype(np.int32)), **options)


def test_each_column_equals_a_clone_fitted_by_hand() -> None:
    X, y = DIGITS
    learner = fitted(LogisticRegression(C=0.01, max_iter=500))
    for s, column in enumerate(learner.estimators_):
        alone = LogisticRegression(C=0.01, max_iter=500).fit(X, CODE.symbols[y, s])
        np.testing.assert_array_equal(column.coef_, alone.coef_)
        np.testing.assert_array_equal(learner.outputs(X, "symbols", s, s + 1)[:, 0], alone.predict(X))
        np.testing.assert_allclose(
            learner.outputs(X, "log_probabilities", s, s + 1)[:, 0], alone.predict_log_proba(X), rtol=1e-6
        )


def test_rows_of_unused_classes_and_their_weights_are_left_out() -> None:
    X, y = DIGITS
    weights = np.arange(y.size) + 1.0
    learner = fitted(Recorder(), codes.build("ovo", n_classes=10), sample_weight=weights)
    pairs = np.stack(np.triu_indices(10, 1), axis=1)
    for column, (a, b) in zip(learner.estimators_, pairs, strict=True):
        rows = np.flatnonzero((y == a) | (y == b))
        np.testing.assert_array_equal(column.seen_[0], X[rows])
        np.testing.assert_array_equal(column.seen_[1], y[rows] == b)
        np.testing.assert_array_equal(column.seen_[2], weights[rows])


@pytest.mark.parametrize("estimator", [DecisionTreeClassifier(), GaussianNB(), RidgeClassifier()])
def test_symbols_missing_in_the_training_rows(estimator: Any) -> None:
    X, y = DIGITS
    code = CodeMatrix(np.stack([np.arange(10), np.arange(10) % 3, (np.arange(10) > 0) * 1], axis=1), [12, 3, 2])
    some = y > 2  # the first column misses symbols 0, 1, 2, 10 and 11, the last one has a single symbol
    learner = PerColumn(estimator).fit(X[some], Columns(code, y[some].astype(np.int32)))
    assert isinstance(learner.estimators_[2], Constant)
    said = learner.outputs(X, "symbols", 0, 3)
    assert set(said[:, 0]) <= set(range(3, 10))
    assert (said[:, 2] == 1).all()
    what = learner.says[-1]
    soft = learner.outputs(X, what, 0, 3)
    assert soft.shape == (300, 3, 12)
    assert np.isneginf(soft[:, 0, [0, 1, 2, 10, 11]]).all()
    np.testing.assert_array_equal(soft[:, 2, :2], [[-np.inf, 0]] * 300)
    np.testing.assert_array_equal(soft[:, 0].argmax(axis=1), said[:, 0])


def test_a_column_without_rows_says_something() -> None:
    X, y = DIGITS
    code = codes.build("ovo", n_classes=10)
    learner = PerColumn(GaussianNB()).fit(X[y > 1], Columns(code, y[y > 1].astype(np.int32)))
    assert learner.outputs(X[:3], "symbols", 0, 1).tolist() == [[0]] * 3


@pytest.mark.parametrize(
    ("estimator", "says"),
    [
        (DecisionTreeClassifier(), ("symbols", "log_probabilities", "scores")),
        (GaussianNB(), ("log_probabilities", "symbols", "scores")),
        (RidgeClassifier(), ("symbols", "scores")),
        (SVC(), ("symbols", "scores")),
        (Recorder(), ("symbols",)),
        (make_pipeline(StandardScaler(), RidgeClassifier()), ("symbols", "scores")),
        (make_pipeline(StandardScaler(), GaussianNB()), ("log_probabilities", "symbols", "scores")),
    ],
)
def test_what_an_estimator_can_say_is_known_before_it_is_fitted(estimator: Any, says: tuple[str, ...]) -> None:
    assert PerColumn(estimator).says == says


@pytest.mark.parametrize("estimator", [RidgeClassifier(), SVC(gamma=1e-3), SVC(kernel="linear"), GaussianNB()])
@pytest.mark.parametrize("code", ["random", "ova"])
def test_scores_agree_with_symbols(estimator: Any, code: str) -> None:
    X = DIGITS[0]
    matrix = CODE if code == "random" else codes.build("ova", n_classes=10)
    learner = fitted(estimator, matrix)
    scores = learner.outputs(X, "scores", 0, matrix.n_columns)
    assert scores.shape == (300, matrix.n_columns, matrix.n_symbols)
    np.testing.assert_array_equal(scores.argmax(axis=2), learner.outputs(X, "symbols", 0, matrix.n_columns))


def test_scores_that_are_not_one_a_symbol_are_refused() -> None:
    code = CodeMatrix(np.arange(10)[:, None])
    learner = fitted(SVC(decision_function_shape="ovo"), code)
    with pytest.raises(
        ValueError,
        match=r"decision_function of the SVC of column 0 must give .* shape \(300, 10\); got shape \(300, 45\)",
    ):
        learner.outputs(DIGITS[0], "scores", 0, 1)


@pytest.mark.parametrize("backend", ["threads", "processes"])
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_results_depend_on_no_number_of_jobs_and_no_backend(backend: Any, n_jobs: int, sparse: bool) -> None:
    X, y = DIGITS
    given = sp.csr_array(X) if sparse else X
    columns = Columns(CODE, y.astype(np.int32))
    estimator = DecisionTreeClassifier(max_features=3)
    expected = PerColumn(estimator).fit(X, columns, seed=5).outputs(X.astype(np.float32), "symbols", 0, 8)
    learner = PerColumn(estimator, backend=backend).fit(given, columns, seed=5, n_jobs=n_jobs)
    said = learner.outputs(learner.prepare(given), "symbols", 0, 8, n_jobs=n_jobs)
    np.testing.assert_array_equal(said, expected)
    np.testing.assert_array_equal(learner.outputs(learner.prepare(given), "symbols", 3, 5), expected[:, 3:5])


def test_a_joblib_backend_from_outside_is_honoured() -> None:
    with joblib.parallel_config(backend="threading", n_jobs=2):
        learner = fitted(LogisticRegression(C=0.01, max_iter=500))
    np.testing.assert_array_equal(
        learner.outputs(DIGITS[0], "symbols", 0, 8),
        fitted(LogisticRegression(C=0.01, max_iter=500)).outputs(DIGITS[0], "symbols", 0, 8),
    )


def test_random_states_left_open_are_set_column_by_column_and_others_kept() -> None:
    seeds = [column.random_state for column in fitted(Recorder(), seed=1).estimators_]
    assert len(set(seeds)) == 8
    assert seeds == [column.random_state for column in fitted(Recorder(), seed=1).estimators_]
    assert seeds != [column.random_state for column in fitted(Recorder(), seed=2).estimators_]
    assert {column.random_state for column in fitted(Recorder(random_state=7), seed=1).estimators_} == {7}
    nested = fitted(make_pipeline(StandardScaler(), DecisionTreeClassifier(max_features=1)), seed=1)
    assert len({column[-1].random_state for column in nested.estimators_}) == 8


def test_an_error_in_a_column_says_which_column() -> None:
    with pytest.raises(RuntimeError, match="no luck") as caught:
        fitted(Fails())
    assert "while fitting column 0 of the code: 300 rows, symbols [0, 1, 2]" in caught.value.__notes__[0]


def test_weights_for_an_estimator_that_takes_none() -> None:
    with pytest.raises(ValueError, match="sample_weight needs an estimator whose fit takes it; KNeighborsClassifier"):
        fitted(KNeighborsClassifier(), sample_weight=np.ones(300))


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("code", [CODE, codes.build("ovo", n_classes=10)], ids=["full", "partial"])
def test_weights_reach_the_last_step_of_a_pipeline(nested: bool, code: CodeMatrix) -> None:
    weights = np.random.default_rng(0).integers(0, 5, 300) + 0.5
    last: Any = GaussianNB(var_smoothing=1e-3)
    steps = (FunctionTransformer(), make_pipeline(FunctionTransformer(), last) if nested else last)
    got = fitted(make_pipeline(*steps), code, sample_weight=weights)
    np.testing.assert_array_equal(
        got.outputs(DIGITS[0], "log_probabilities", 0, 8),
        fitted(last, code, sample_weight=weights).outputs(DIGITS[0], "log_probabilities", 0, 8),
    )


def test_weights_are_routed_by_a_pipeline_that_routes() -> None:
    weights = np.random.default_rng(0).integers(0, 5, 300) + 0.5
    with config_context(enable_metadata_routing=True):
        asks = make_pipeline(FunctionTransformer(), GaussianNB(var_smoothing=1e-3).set_fit_request(sample_weight=True))
        for n_jobs in (1, 2):
            got = PerColumn(asks, n_jobs=n_jobs, backend="threads")
            got.fit(DIGITS[0], Columns(CODE, DIGITS[1].astype(np.int32)), sample_weight=weights)
            np.testing.assert_array_equal(
                got.outputs(DIGITS[0], "log_probabilities", 0, 8),
                fitted(GaussianNB(var_smoothing=1e-3), sample_weight=weights).outputs(
                    DIGITS[0], "log_probabilities", 0, 8
                ),
            )


def test_weights_for_a_pipeline_that_takes_none() -> None:
    with pytest.raises(
        ValueError, match=r"whose fit takes it; KNeighborsClassifier\.fit does not\. Leave sample_weight"
    ):
        fitted(make_pipeline(StandardScaler(), KNeighborsClassifier()), sample_weight=np.ones(300))


# --- What a column may do to X, and what it may answer ---------------------------------------------------------------


class InPlace(Recorder):
    """Writes to what it is given."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> InPlace:
        X -= 1
        return super().fit(X, y)  # type: ignore[return-value]


@pytest.mark.parametrize("scaler", [StandardScaler(copy=False), PowerTransformer(copy=False)])
@pytest.mark.parametrize("code", [CODE, codes.build("ovo", n_classes=10)], ids=["full", "partial"])
@pytest.mark.parametrize("missing", [False, True])
def test_estimators_that_work_in_place_see_nothing_of_each_other(scaler: Any, code: CodeMatrix, missing: bool) -> None:
    X = np.random.default_rng(0).exponential(size=(300, 3)) + DIGITS[1][:, None]
    X[5, 1] = np.nan if missing else 1.0
    before = X.copy()
    fill = [SimpleImputer()] if missing else []
    copying = clone(scaler).set_params(copy=True)
    columns = Columns(code, DIGITS[1].astype(np.int32))
    expected = PerColumn(make_pipeline(*fill, copying, GaussianNB())).fit(X, columns).outputs(X, "symbols", 0, 8)
    for n_jobs, backend in ((1, "auto"), (2, "threads"), (2, "processes")):
        learner = PerColumn(make_pipeline(*fill, scaler, GaussianNB()), n_jobs=n_jobs, backend=backend)  # type: ignore[arg-type]
        learner.fit(X, columns)
        for _ in range(2):
            np.testing.assert_array_equal(learner.outputs(learner.prepare(X), "symbols", 0, 8), expected)
        np.testing.assert_array_equal(X, before)
    assert X.flags.writeable


def test_sparse_rows_stay_as_they_are() -> None:
    X = sp.csr_array(DIGITS[0])
    X.indices[:2], X.data[:2] = X.indices[1::-1].copy(), X.data[1::-1].copy()  # the user's rows need not be in order
    X.has_sorted_indices = X.has_canonical_format = False
    before = [part.copy() for part in (X.data, X.indices, X.indptr)]
    columns = Columns(CODE, DIGITS[1].astype(np.int32))
    for estimator in (MultinomialNB(), DecisionTreeClassifier(), SVC()):
        expected = PerColumn(estimator).fit(DIGITS[0], columns).outputs(DIGITS[0].astype(np.float32), "symbols", 0, 8)
        learner = PerColumn(estimator).fit(X, columns)
        said = learner.outputs(learner.prepare(X), "symbols", 0, 8)
        assert (said == expected).mean() > 0.99
        for part, was in zip((X.data, X.indices, X.indptr), before, strict=True):
            np.testing.assert_array_equal(part, was)
            assert part.flags.writeable
    scaler = StandardScaler(with_mean=False)
    said = [
        PerColumn(make_pipeline(scaler.set_params(copy=copied), MultinomialNB()))
        .fit(X, columns)
        .outputs(X, "symbols", 0, 8)
        for copied in (False, True)
    ]
    np.testing.assert_array_equal(*said)
    np.testing.assert_array_equal(X.data, before[0])


def test_an_estimator_that_writes_to_its_rows_fails_by_name() -> None:
    with pytest.raises(ValueError, match="read-only") as caught:
        fitted(InPlace())
    assert "while fitting column 0 of the code: 300 rows" in caught.value.__notes__[0]


def answering(**methods: Any) -> Any:
    """A classifier whose answers are the given functions of X."""
    return type("Odd", (Recorder,), {name: lambda self, X, f=f: f(X) for name, f in methods.items()})()


CHANCES = np.array([0.2, 0.5, 0.3])


def rows_of(values: Any) -> Any:
    return lambda X: np.tile(values, (len(X), 1))


@pytest.mark.parametrize(
    ("methods", "what", "message"),
    [
        ({"predict": lambda X: [0]}, "symbols", r"one symbol for each row, shape \(300,\); got shape \(1,\)"),
        ({"predict": lambda X: np.zeros((len(X), 2))}, "symbols", r"shape \(300,\); got shape \(300, 2\)"),
        ({"predict": lambda X: np.full(len(X), 3)}, "symbols", "give symbols from 0 to 2; got 3"),
        ({"predict": lambda X: np.full(len(X), -1)}, "symbols", "give symbols from 0 to 2; got -1"),
        ({"predict": lambda X: np.full(len(X), 0.5)}, "symbols", r"symbols from 0 to 2; got 0\.5"),
        ({"predict": lambda X: np.full(len(X), np.nan)}, "symbols", "symbols from 0 to 2; got nan"),
        ({"predict": lambda X: np.full(len(X), "0")}, "symbols", "symbols from 0 to 2; got an array of <U1"),
        ({"predict": lambda X: np.full(len(X), None)}, "symbols", "symbols from 0 to 2; got None"),
        (
            {"predict_proba": rows_of([0.5, 0.5])},
            "log_probabilities",
            r"each of the 3 symbols, shape \(300, 3\); got shape \(300, 2\)",
        ),
        ({"predict_proba": lambda X: CHANCES}, "log_probabilities", r"shape \(300, 3\); got shape \(3,\)"),
        ({"predict_proba": rows_of(["a", "b", "c"])}, "log_probabilities", "of <U1"),
        ({"predict_proba": rows_of([0.5, 0.7, -0.2])}, "log_probabilities", r"probabilities from 0 to 1; got -0\.2"),
        ({"predict_proba": rows_of([0.5, 1.2, 0.2])}, "log_probabilities", r"probabilities from 0 to 1; got 1\.2"),
        (
            {"predict_proba": rows_of(CHANCES), "predict_log_proba": rows_of([0.0, np.inf, -1])},
            "log_probabilities",
            "logarithms of probabilities, at most 0; got inf",
        ),
        ({"decision_function": rows_of([1.0, 2.0])}, "scores", r"shape \(300, 3\); got shape \(300, 2\)"),
    ],
)
def test_answers_that_are_none_are_refused_with_their_column_and_estimator(
    methods: dict[str, Any], what: Any, message: str
) -> None:
    method = list(methods)[-1]
    with pytest.raises(ValueError, match=rf"^{method} of the Odd of column 3 must .*{message}.* Choose an") as caught:
        fitted(answering(**methods)).outputs(DIGITS[0], what, 3, 5)
    assert f"while asking column 3 of the code for {what} of 300 rows: fitted on 300" in caught.value.__notes__[0]


def test_an_estimator_that_does_not_tell_its_classes() -> None:
    learner = fitted(answering(predict_proba=rows_of(CHANCES)))
    del learner.estimators_[1].classes_
    with pytest.raises(ValueError, match=r"fit of the Odd of column 1 must give an attribute classes_.*; got None"):
        learner.outputs(DIGITS[0], "log_probabilities", 0, 8)
    learner.estimators_[1].classes_ = np.array([0, 1, 3])
    with pytest.raises(ValueError, match="classes_ of the Odd of column 1 must give symbols from 0 to 2; got 3"):
        learner.outputs(DIGITS[0], "log_probabilities", 0, 8)


@pytest.mark.parametrize(
    "form", [lambda said: said[:, None], lambda said: said.astype(float), lambda said: said.astype(object)]
)
def test_symbols_in_unusual_form_are_taken(form: Any) -> None:
    learner = fitted(answering(predict=lambda X: form(np.arange(len(X)) % 3)))
    assert learner.outputs(DIGITS[0], "symbols", 0, 8)[:, 5].tolist() == [0, 1, 2] * 100


def test_an_error_of_a_column_that_is_asked_says_which_column() -> None:
    def fail(X: Any) -> Any:
        raise RuntimeError("no luck")

    learner = fitted(answering(predict=fail), codes.build("ovo", n_classes=10))
    with pytest.raises(RuntimeError, match="no luck") as caught:
        learner.outputs(DIGITS[0][:7], "symbols", 2, 5)
    rows = int(np.isin(DIGITS[1], [0, 3]).sum())
    assert caught.value.__notes__[0].startswith(
        f"while asking column 2 of the code for symbols of 7 rows: fitted on {rows} rows, estimator Odd("
    )


def test_a_column_whose_log_probabilities_are_nan_says_nothing_of_the_row() -> None:
    X = DIGITS[0].copy()
    X[:, 0] = 7  # no variance
    learner = PerColumn(GaussianNB(var_smoothing=0)).fit(X, Columns(CODE, DIGITS[1].astype(np.int32)))
    soft = learner.outputs(X, "log_probabilities", 0, 8)
    np.testing.assert_allclose(soft, np.full_like(soft, -np.log(3)), rtol=1e-6)
    mixed = np.tile(CHANCES, (300, 1))
    mixed[5, 1] = np.nan
    learner = fitted(answering(predict_proba=lambda X: mixed, decision_function=lambda X: mixed))
    soft, scores = (learner.outputs(X, what, 0, 8) for what in ("log_probabilities", "scores"))
    np.testing.assert_allclose(soft[5], np.full((8, 3), -np.log(3)), rtol=1e-6)
    np.testing.assert_allclose(soft[4], np.log(np.tile(CHANCES, (8, 1))), rtol=1e-6)
    assert (scores[5] == 0).all()


def test_probabilities_that_are_out_by_rounding_are_taken() -> None:
    near = rows_of([-1e-9, 1 + 1e-7, 0.0])
    soft = fitted(answering(predict_proba=near)).outputs(DIGITS[0], "log_probabilities", 0, 1)
    assert np.isneginf(soft[:, 0, [0, 2]]).all()
    assert not np.isnan(soft).any()


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown backend 'thread': expected one of .* Did you mean 'threads'"):
        PerColumn(GaussianNB(), backend="thread").check()  # type: ignore[arg-type]


def test_a_value_beyond_float32_is_refused_for_trees() -> None:
    X = DIGITS[0].copy()
    X[0, 0] = 1e39
    with pytest.raises(ValueError, match=r"X must fit in float32.*1e\+39. Scale the features"):
        PerColumn(DecisionTreeClassifier()).prepare(X)


def test_trees_get_float32_once() -> None:
    learner = PerColumn(DecisionTreeClassifier())
    assert learner.prepare(DIGITS[0]).dtype == np.float32
    ready = learner.prepare(sp.csr_array(DIGITS[0]))
    assert ready.format == "csr"
    assert ready.dtype == np.float32
    assert PerColumn(GaussianNB()).prepare(DIGITS[0]) is DIGITS[0]


def test_who_releases_the_gil() -> None:
    assert releases_gil(DecisionTreeClassifier())
    assert releases_gil(make_pipeline(StandardScaler(), RandomForestClassifier()))
    assert not releases_gil(Perceptron())
    assert not releases_gil(make_pipeline(StandardScaler(), GaussianNB()))


def test_missing_values_are_the_estimators_affair() -> None:
    assert PerColumn(HistGradientBoostingClassifier()).accepts_missing
    assert not PerColumn(GaussianNB()).accepts_missing
    assert PerColumn(make_pipeline(SimpleImputer(), GaussianNB())).accepts_missing
    assert PerColumn(make_pipeline("passthrough", make_pipeline(SimpleImputer(), GaussianNB()))).accepts_missing
    assert not PerColumn(make_pipeline(PCA(), HistGradientBoostingClassifier())).accepts_missing


def test_a_step_that_takes_no_missing_values_says_so() -> None:
    X = DIGITS[0].copy()
    X[3, 4] = np.nan
    columns = Columns(CODE, DIGITS[1].astype(np.int32))
    with pytest.raises(ValueError, match=r"Input X contains NaN\.\nGaussianNB does not accept") as caught:
        PerColumn(make_pipeline(StandardScaler(), GaussianNB())).fit(X, columns)
    assert "while fitting column 0" in caught.value.__notes__[0]
    filled = PerColumn(make_pipeline(SimpleImputer(), GaussianNB())).fit(X, columns)
    assert filled.outputs(X, "symbols", 0, 8).shape == (300, 8)


def test_what_becomes_a_learner() -> None:
    assert isinstance(as_learner(None), Trees)
    learner = PerColumn(GaussianNB(), n_jobs=2)
    assert as_learner(learner) is learner
    assert clone(learner).get_params()["estimator__var_smoothing"] == 1e-9


NO_CLASSIFIERS = [
    (LinearRegression(), "got LinearRegression, which is not a classifier. Give a classifier"),
    (StandardScaler(), "got StandardScaler, which is not a classifier"),
    (make_pipeline(StandardScaler(), LinearRegression()), "got Pipeline, which is not a classifier"),
    (DecisionTreeClassifier, r"got the class DecisionTreeClassifier. Write DecisionTreeClassifier\(\)"),
    (3, r"got 3. Give an object such as DecisionTreeClassifier\(\)"),
    ("tree", "got 'tree'"),
]


@pytest.mark.parametrize(("given", "message"), NO_CLASSIFIERS)
def test_what_does_not_become_a_learner(given: Any, message: str) -> None:
    expected = "estimator must be a scikit-learn classifier, a learner from nary.learners, or None; "
    with pytest.raises(TypeError, match=expected + message):
        as_learner(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *NO_CLASSIFIERS,
        (None, "got None. Give an object"),
        (PerColumn(GaussianNB()), "got PerColumn, a learner of all columns. Give it to NaryClassifier as it is"),
    ],
)
def test_what_a_column_cannot_be(given: Any, message: str) -> None:
    expected = "the estimator of PerColumn must be a scikit-learn classifier; "
    learner = PerColumn(given)
    asks: list[Callable[[], Any]] = [
        learner.check,
        lambda: learner.says,
        lambda: learner.max_symbols,
        lambda: learner.accepts_missing,
        lambda: learner.accepts_sparse,
        lambda: learner.fit(DIGITS[0], Columns(CODE, DIGITS[1].astype(np.int32))),
        lambda: NaryClassifier(learner).fit(*DIGITS),
        lambda: NaryClassifier(learner).__sklearn_tags__(),
    ]
    for ask in asks:
        with pytest.raises(TypeError, match=expected + message):
            ask()


def test_a_number_of_jobs_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"n_jobs must be None or an integer other than 0 .* got 0"):
        PerColumn(GaussianNB(), n_jobs=0).check()
