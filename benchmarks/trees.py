"""What do native trees save? Trees beside DecisionTreeClassifier, random forest and extra trees: time, size, accuracy.

Column learners are timed on the same columns: one code, the same rows. Peak memory is that of a fresh process.

    NARY_DATA=../shared/data python benchmarks/trees.py [--only exact letter ensemble predict growth ovo] [--rounds 3]
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from _data import Split, split, whole
from _timing import bar, in_fresh_process, model_bytes, peak_of, report, side_by_side
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from nary import CodeMatrix, NaryClassifier, codes
from nary.columns import Columns
from nary.learners import PerColumn, Trees

JOBS = 2
KANJI_ROWS, LETTER_ROWS = 40_000, 5_000  # of training
KANJI_COLUMNS = 8  # DecisionTreeClassifier takes seconds for each
PORTION = 20  # trees of a rival grown, asked and freed together: 100 of them do not fit in memory
SAMPLED = {"splitter": "sampled", "n_thresholds": 12}
FAST = {"splitter": "sampled", "n_thresholds": 1}
ENSEMBLE_N, ENSEMBLE_L = 250, 100
RIVALS = {"random forest": RandomForestClassifier, "extra trees": ExtraTreesClassifier}
TIMES = {"random forest": 50, "extra trees": 20}


class Run(NamedTuple):
    """What a classifier took."""

    fit_seconds: float
    predict_seconds: float
    model_bytes: float


class Outcome(NamedTuple):
    """What a classifier took and gave."""

    took: Run
    accuracy: float


def ensemble(L: int, seed: int = 0) -> NaryClassifier:
    """The options that were fastest at the forests' accuracy; one code is drawn."""
    code = codes.Random(n_candidates=1)
    return NaryClassifier(Trees(**FAST), code=code, n_symbols=ENSEMBLE_N, n_columns=L, n_jobs=JOBS, random_state=seed)


# The same columns: Trees beside clones of DecisionTreeClassifier


def column_fits(data: Split, code: CodeMatrix, learners: dict[str, Any]) -> dict[str, Callable[[], object]]:
    """A fit of each learner on the same columns; each keeps what it fitted."""
    columns = Columns(code, data.y)
    return {name: lambda it=it: it.fit(data.X, columns, seed=0, n_jobs=JOBS) for name, it in learners.items()}


def column_accuracy(learner: Any, data: Split, code: CodeMatrix) -> float:
    said = learner.outputs(learner.prepare(data.X_test), "symbols", 0, code.n_columns, n_jobs=JOBS)
    return 100 * float((said == code.block(0, code.n_columns)[data.y_test]).mean())


def beside_clones(data: Split, L: int, required: dict[str, tuple[dict[str, Any], float, float | None]], n: int) -> bool:
    """Fits and column accuracies of Trees with options beside the clones'; required: options, ratio, points."""
    code = codes.build("random", n_classes=int(data.y.max()) + 1, n_symbols=5, n_columns=L, random_state=0)
    learners: dict[str, Any] = {name: Trees(**options) for name, (options, _, _) in required.items()}
    learners["clones"] = PerColumn(DecisionTreeClassifier())
    seconds = side_by_side(column_fits(data, code, learners), n)
    accuracy = {name: column_accuracy(learner, data, code) for name, learner in learners.items()}
    for name, value in seconds.items():
        print(f"    {name:<28}{value:9.3f} s, column accuracy {accuracy[name]:.2f}")
    met = True
    for name, (_, ratio, points) in required.items():
        met &= bar(f"{name}: faster than the clones", seconds["clones"] / seconds[name], ratio)
        if points is not None:
            behind = accuracy["clones"] - accuracy[name]
            met &= bar(f"{name}: column accuracy behind the clones", behind, points, " points", most=True)
    return met


def exact(rounds: int) -> bool:
    data = split("kanji1000", KANJI_ROWS)
    print(f"\nfit, kanji1000, {KANJI_ROWS:,} x 128, N=5, L={KANJI_COLUMNS}, all features")
    required = {
        "exact best splits": ({"splitter": "best"}, 10, 0.5),
        f"sampled, {SAMPLED['n_thresholds']} thresholds": (SAMPLED, 25, 1.5),
    }
    return beside_clones(data, KANJI_COLUMNS, required, rounds)


def letter(rounds: int) -> bool:
    print(f"\nfit, letter, {LETTER_ROWS:,} x 16, N=5, L=100")
    required = {"exact best splits": ({"splitter": "best"}, 8, None)}
    return beside_clones(split("letter", LETTER_ROWS), 100, required, rounds)


# Whole ensembles beside forests


def run(clf: Any, data: Split) -> tuple[Run, Any]:
    """Fits, and asks three times; also what is to be judged: a forest's probabilities, else the classes."""
    start = time.perf_counter()
    clf.fit(data.X, data.y)
    fit = time.perf_counter() - start
    ask = clf.predict if isinstance(clf, NaryClassifier) else clf.predict_proba
    predict = side_by_side({"": lambda: ask(data.X_test)}, 3)[""]
    return Run(fit, predict, model_bytes(clf)), ask(data.X_test)


@cache
def turns(name: str) -> tuple[Outcome, Outcome]:
    """NaryClassifier and a portion of the rival's trees in turn, until the rival has a hundred.

    Of NaryClassifier medians are kept, each time of another code and other trees. Of the rival's portions sizes and
    probabilities are summed, and the median time counts for each, so that a noisy moment weighs on neither.
    """
    data = split("kanji1000", KANJI_ROWS)
    ours, accuracy, theirs, total = [], [], [], np.zeros((data.y_test.size, int(data.y.max()) + 1))
    for portion in range(100 // PORTION):
        mine, said = run(ensemble(ENSEMBLE_L, portion), data)
        ours.append(mine)
        accuracy.append(100 * float((said == data.y_test).mean()))
        part, shares = run(RIVALS[name](PORTION, n_jobs=JOBS, random_state=portion), data)
        theirs.append(part)
        total += shares
        gc.collect()
    rights = 100 * float((total.argmax(axis=1) == data.y_test).mean())
    medians = [Run(*map(statistics.median, zip(*runs, strict=True))) for runs in (ours, theirs)]
    hundred = Run(
        medians[1].fit_seconds * len(theirs),
        medians[1].predict_seconds * len(theirs),
        sum(part.model_bytes for part in theirs),
    )
    return Outcome(medians[0], statistics.median(accuracy)), Outcome(hundred, rights)


def peak_of_fit(L: int) -> float:
    """MB beyond what was held before the fit, X among it; runs in a fresh process."""
    data = split("kanji1000", KANJI_ROWS)
    whole.cache_clear()
    return peak_of(lambda: ensemble(L).fit(data.X, data.y))


def show(name: str, took: Run, accuracy: float) -> None:
    print(f"    {name:<28}fit {took.fit_seconds:7.2f} s, predict {took.predict_seconds:6.3f} s, "
          f"model {took.model_bytes / 1e6:8.1f} MB, accuracy {accuracy:.2f}")  # fmt: skip


def title(what: str, name: str) -> None:
    print(f"\n{what}, kanji1000, N={ENSEMBLE_N}, L={ENSEMBLE_L}, {FAST}, one drawn code; "
          f"{name}: 100 trees, {PORTION} at a time, median times {100 // PORTION}; n_jobs={JOBS}")  # fmt: skip


def beside_forest(name: str) -> bool:
    title("whole ensemble", name)
    mine, theirs = turns(name)
    show("NaryClassifier", *mine)
    show(name, *theirs)
    met = bar(f"fit faster than {name}", theirs.took.fit_seconds / mine.took.fit_seconds, TIMES[name])
    met &= bar(f"accuracy ahead of {name}", mine.accuracy - theirs.accuracy, 0, " points")
    if name == "random forest":
        met &= bar(f"model smaller than that of {name}", theirs.took.model_bytes / mine.took.model_bytes, 300)
        peak = in_fresh_process(peak_of_fit, ENSEMBLE_L)
        met &= bar("peak memory of the fit beyond X", peak, 400, " MB", most=True)
    return met


def ensembles(rounds: int) -> bool:
    return beside_forest("random forest") & beside_forest("extra trees")


def predict(rounds: int) -> bool:
    title("predict of 13,890 rows", "random forest")
    mine, theirs = (outcome.took.predict_seconds for outcome in turns("random forest"))
    print(f"    NaryClassifier {mine:.3f} s, random forest {theirs:.3f} s")
    return bar("predict faster than random forest", theirs / mine, 10)


# Growth of cost


class Task(NamedTuple):
    """A fit whose cost is looked at."""

    size: int
    X: NDArray[np.float32]
    columns: Columns


def task(size: int, X: NDArray[np.float32], y: NDArray[np.int32], N: int, L: int) -> Task:
    code = codes.build(codes.Random(1), n_classes=int(y.max()) + 1, n_symbols=N, n_columns=L, random_state=0)
    return Task(size, X, Columns(code, y))


def slope(sizes: list[int], values: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def exponent(what: str, tasks: list[Task], options: dict[str, Any], limit: float, rounds: int) -> bool:
    """Fits the slope of log seconds over log size, and beside it that of the trees' sizes."""
    learners = [Trees(**options) for _ in tasks]
    fits = {
        str(it.size): lambda it=it, trees=trees: trees.fit(it.X, it.columns, seed=0, n_jobs=JOBS)
        for it, trees in zip(tasks, learners, strict=True)
    }
    seconds = side_by_side(fits, rounds)
    splits = [len(trees.forest_.trees.splits) / it.columns.n_columns for it, trees in zip(tasks, learners, strict=True)]
    sizes = [it.size for it in tasks]
    print("    " + ", ".join(f"{size}: {value:.3f} s" for size, value in seconds.items())
          + f"; splits a tree {splits[0]:.0f} to {splits[-1]:.0f}, exponent {slope(sizes, splits):.2f}")  # fmt: skip
    return bar(what, slope(sizes, list(seconds.values())), limit, "", most=True)


def of_classes(K: int, n: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """n rows of K classes, as many of each as can be."""
    X, y = whole("kanji1000")
    rng = np.random.default_rng(0)
    kept = rng.permutation(1000)[:K]
    place = np.concatenate([rng.permutation(np.flatnonzero(y == c))[: -(-n // K)] for c in kept])[:n]
    return X[place], np.unique(y[place], return_inverse=True)[1].astype(np.int32)


def merged(data: Split, K: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """All rows, the thousand classes merged at random into K of equal size."""
    return data.X, (np.random.default_rng(0).permutation(1000)[data.y] % K).astype(np.int32)


def growth(rounds: int) -> bool:
    data, classes = split("kanji1000", KANJI_ROWS), [100, 200, 500, 1000]
    rounds = 2 * rounds - 1
    print(f"\ngrowth of the fit's cost, kanji1000, {FAST}: medians of {rounds} rounds, fitted exponents")
    by_rows = [task(n, data.X[:n], data.y[:n], ENSEMBLE_N, 50) for n in (5_000, 10_000, 20_000, 40_000)]
    met = exponent(f"n, with K=1000, N={ENSEMBLE_N}, L=50", by_rows, FAST, 1.1, rounds)
    same_rows = [task(K, *merged(data, K), 50, 25) for K in classes]
    met &= exponent("K, n=40000 the same rows, classes merged, N=50, L=25", same_rows, FAST, 0.1, rounds)
    subsets = [task(K, *of_classes(K, 5_000), 5, 50) for K in classes]
    met &= exponent("K, n=5000 of K classes (the trees grow), N=5, L=50", subsets, FAST, 0.1, rounds)
    best = {"splitter": "best"}
    met &= exponent("K, n=5000 of K classes, N=5, L=50, exact splits", subsets, best, 0.1, rounds)
    by_columns = [task(L, data.X, data.y, ENSEMBLE_N, L) for L in (25, 50, 100, 200)]
    return met & exponent(f"L, with n=40000, K=1000, N={ENSEMBLE_N}", by_columns, FAST, 1.0, rounds)


# One-vs-one


def ovo(rounds: int) -> bool:
    data = split("kanji1000", KANJI_ROWS)
    print(f"\none-vs-one, kanji1000, {KANJI_ROWS:,} x 128, K=1000: 499,500 trees")
    start = time.perf_counter()
    clf = NaryClassifier(Trees(), code="ovo", n_jobs=JOBS, random_state=0).fit(data.X, data.y)
    fitted = time.perf_counter()
    right = clf.predict(data.X_test) == data.y_test
    took = Run(fitted - start, time.perf_counter() - fitted, model_bytes(clf))
    show("NaryClassifier, one-vs-one", took, 100 * float(right.mean()))
    met = bar("fit", took.fit_seconds, 120, " s", most=True)
    met &= bar("model", took.model_bytes / 1e6, 200, " MB", most=True)
    return met & bar(f"predict, {data.y_test.size:,} rows", took.predict_seconds, 120, " s", most=True)


SECTIONS: dict[str, Callable[[int], bool]] = {
    "exact": exact, "letter": letter, "ensemble": ensembles, "predict": predict, "growth": growth, "ovo": ovo,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    report({name: lambda name=name: SECTIONS[name](chosen.rounds) for name in chosen.only}, JOBS)


if __name__ == "__main__":
    main()
