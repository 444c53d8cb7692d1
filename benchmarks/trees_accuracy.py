"""Are tuned native trees the most accurate of the forests and boosted trees at the same number of trees?

Random splits with the paper's training sizes; all methods on the same splits. Trees' options are chosen on the training
rows alone, by cross-validation; the rivals are as they come. Finished splits are kept in --keep, so that a run goes on.

    NARY_DATA=../shared/data python benchmarks/trees_accuracy.py [--only letter ...] [--keep FILE] > TABLE
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from _timing import machine
from lightgbm import LGBMClassifier
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split

from nary import NaryClassifier, codes
from nary.learners import Trees


class Fold(NamedTuple):
    """Rows to learn from, a, and rows to judge by, b."""

    seed: int
    a: NDArray[np.intp]
    b: NDArray[np.intp]


class Size(NamedTuple):
    """Rows of the paper's table."""

    train: int
    test: int


SIZES = {
    "letter": Size(5000, 15000),
    "pendigits": Size(3498, 7494),
    "vowel": Size(462, 528),
    "satimage": Size(3435, 3000),
    "segment": Size(1310, 1000),
    "glass": Size(100, 114),
    "usps": Size(4298, 5000),
    "auslan_lq": Size(1000, 1565),
}
JOBS = 2
N_TREES, N_ROUNDS = 100, 200
FOLDS, LEAST_JUDGED = 3, 1500  # folds are drawn again until this many rows have been judged
SYMBOLS = (5, 10, 25)  # and K
SPLITTERS = ("random", "sampled")
THRESHOLDS = (1, 2, 4)
FEATURES: tuple[Any, ...] = (1.0, 0.5, "sqrt")
TUNED, DEFAULT = "nary, tuned", "nary, default options"
Options = dict[str, Any]


def nary(options: Options, seed: int, n_jobs: int = JOBS) -> NaryClassifier:
    trees = {name: value for name, value in options.items() if name != "n_symbols"}
    design = codes.Random(n_candidates=20, allow_repeats=True)
    return NaryClassifier(
        Trees(**trees),
        code=design,
        n_symbols=options["n_symbols"],
        n_columns=N_TREES,
        n_jobs=n_jobs,
        random_state=seed,
    )


def grid(n_classes: int) -> list[Options]:
    names = ("n_symbols", "splitter", "n_thresholds", "max_features")
    symbols = sorted({min(N, n_classes) for N in (*SYMBOLS, n_classes)})
    return [dict(zip(names, v, strict=True)) for v in itertools.product(symbols, SPLITTERS, THRESHOLDS, FEATURES)]


def judged(options: Options, X: NDArray[np.float32], y: NDArray[np.intp], folds: list[Fold]) -> list[float]:
    """Accuracy on the rows left out of each fold; a fold that lacks a class has no more symbols than classes."""
    scores = []
    for seed, a, b in folds:
        N = min(options["n_symbols"], np.unique(y[a]).size)
        scores.append(nary({**options, "n_symbols": N}, seed, 1).fit(X[a], y[a]).score(X[b], y[b]))
    return scores


def folds_of(X: NDArray[np.float32], y: NDArray[np.intp], seed: int) -> list[Fold]:
    splitter = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=max(1, LEAST_JUDGED // y.size), random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return [Fold(number, a, b) for number, (a, b) in enumerate(splitter.split(X, y))]


def chosen(X: NDArray[np.float32], y: NDArray[np.intp], seed: int) -> Options:
    """The best options by cross-validation on these rows; after a third of the folds only the best quarter go on."""
    folds, options = folds_of(X, y, seed), grid(int(y.max()) + 1)
    third = len(folds) // FOLDS
    with joblib.Parallel(n_jobs=JOBS) as pool:
        scores = pool(joblib.delayed(judged)(each, X, y, folds[:third]) for each in options)
        best = np.argsort([-statistics.mean(score) for score in scores], kind="stable")[: len(options) // 4]
        later = pool(joblib.delayed(judged)(options[i], X, y, folds[third:]) for i in best)
    means = [statistics.mean(scores[i] + more) for i, more in zip(best, later, strict=True)]
    return options[best[int(np.argmax(means))]]


def boosted(seed: int) -> LGBMClassifier:
    return LGBMClassifier(n_estimators=N_ROUNDS, n_jobs=JOBS, random_state=seed, verbose=-1)


def methods() -> dict[str, Callable[[NDArray[np.float32], NDArray[np.intp], int], tuple[Any, Options]]]:
    """For each method: the classifier to fit on these rows, and what was chosen for it."""

    def tuned(X: NDArray[np.float32], y: NDArray[np.intp], seed: int) -> tuple[Any, Options]:
        options = chosen(X, y, seed)
        return nary(options, seed), options

    common: dict[str, Any] = {"n_jobs": JOBS}
    return {
        "random forest": lambda X, y, seed: (RandomForestClassifier(N_TREES, random_state=seed, **common), {}),
        "extra trees": lambda X, y, seed: (ExtraTreesClassifier(N_TREES, random_state=seed, **common), {}),
        "LightGBM": lambda X, y, seed: (boosted(seed), {}),
        TUNED: tuned,
        DEFAULT: lambda X, y, seed: (NaryClassifier(Trees(), n_columns=N_TREES, random_state=seed, **common), {}),
    }


def load(name: str) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    path = Path(os.environ.get("NARY_DATA", "../shared/data")) / f"{name}.npz"
    if not path.exists():
        raise SystemExit(f"{path} is not there: set NARY_DATA to the folder of data sets.")
    with np.load(path, allow_pickle=False) as file:
        return file["X"].astype(np.float32), np.unique(file["y"], return_inverse=True)[1]


def rows(y: NDArray[np.intp], size: Size, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp], bool]:
    """Training and test rows, and whether they had to be stratified for every class to be among the training rows."""
    order = np.random.default_rng(seed).permutation(y.size)
    train, test = order[: size.train], order[size.train :]
    lacking = np.unique(y[train]).size < np.unique(y).size
    if lacking:
        train, test = train_test_split(np.arange(y.size), train_size=size.train, stratify=y, random_state=seed)
    return train, test[: size.test], lacking


Kept = dict[str, dict[str, Any]]  # "data/seed/method": accuracy, seconds, options, stratified


def measure(names: list[str], splits: int, keep: Path | None) -> Kept:
    """Every method on every split, less what is kept already."""
    kept: Kept = json.loads(keep.read_text()) if keep is not None and keep.exists() else {}
    for name, seed in itertools.product(names, range(splits)):
        X, y = load(name)
        train, test, stratified = rows(y, SIZES[name], seed)
        for method, make in methods().items():
            key = f"{name}/{seed}/{method}"
            if key in kept:
                continue
            clf, options = make(X[train], y[train], seed)
            start = time.perf_counter()
            clf.fit(X[train], y[train])
            seconds = time.perf_counter() - start
            accuracy = 100 * float(np.mean(clf.predict(X[test]) == y[test]))
            kept[key] = {"accuracy": accuracy, "seconds": seconds, "options": options, "stratified": stratified}
            print(f"{key}: {accuracy:.2f}, {seconds:.2f} s {options or ''}", file=sys.stderr)
        if keep is not None:
            keep.write_text(json.dumps(kept, indent=1))
    return kept


def of(kept: Kept, field: str, name: str, method: str, splits: int) -> list[Any]:
    return [kept[f"{name}/{seed}/{method}"][field] for seed in range(splits)]


def ranks(kept: Kept, names: list[str], ranked: list[str], splits: int) -> NDArray[np.float64]:
    """Rank of each method's mean accuracy on each data set; ties are averaged."""
    means = [[statistics.mean(of(kept, "accuracy", name, m, splits)) for m in ranked] for name in names]
    return rankdata(-np.round(means, 2), axis=1)


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def cell(values: list[float], rank: float | None) -> str:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    text = f"{statistics.mean(values):.2f} ± {spread:.2f}"
    return text if rank is None else f"{text} ({rank:g})"


def accuracy_table(kept: Kept, names: list[str], splits: int) -> list[str]:
    all_methods = list(methods())
    ranked = [method for method in all_methods if method != DEFAULT]
    of_data = ranks(kept, names, ranked, splits)
    lines = [row([f"accuracy in %, mean ± sd of {splits} splits (rank)", *all_methods]), "|---" * 6 + "|"]
    for name, places in zip(names, of_data, strict=True):
        place = dict(zip(ranked, places, strict=True))
        cells = [cell(of(kept, "accuracy", name, m, splits), place.get(m)) for m in all_methods]
        lines.append(row([f"{name} ({SIZES[name].train:,} / {SIZES[name].test:,})", *cells]))
    lines.append(row(["**mean rank**", *(f"**{mean:.2f}**" for mean in of_data.mean(axis=0)), "not ranked"]))
    return lines


def seconds_table(kept: Kept, names: list[str], splits: int) -> list[str]:
    lines = [row(["median fit s, once options are chosen", *methods()]), "|---" * 6 + "|"]
    for name in names:
        medians = (statistics.median(of(kept, "seconds", name, m, splits)) for m in methods())
        lines.append(row([name, *(f"{value:.2f}" for value in medians)]))
    return lines


def choices_table(kept: Kept, names: list[str], splits: int) -> list[str]:
    """How often cross-validation chose what."""
    lines = [row(["chosen, times", "N", "splitter, thresholds", "max_features"]), "|---" * 4 + "|"]
    for name in names:
        options = of(kept, "options", name, TUNED, splits)
        parts = (
            Counter(str(o["n_symbols"]) for o in options),
            Counter(f"{o['splitter']} {o['n_thresholds']}" for o in options),
            Counter(str(o["max_features"]) for o in options),
        )
        lines.append(row([name, *(", ".join(f"{v}: {n}" for v, n in part.most_common()) for part in parts)]))
    return lines


def notes(kept: Kept, names: list[str], splits: int) -> str:
    stratified = sum(any(of(kept, "stratified", name, TUNED, splits)) for name in names)
    drawn = f"stratified in {stratified} data sets" if stratified else "every class was in every plain random split"
    n_options = len(SPLITTERS) * len(THRESHOLDS) * len(FEATURES)
    return (
        f"Rows for training / test beside the names; {drawn}. Random forest and extra trees: {N_TREES} trees, "
        f"LightGBM: {N_ROUNDS} rounds, all with default options. nary: {N_TREES} columns; tuned: the best of "
        f"{n_options} options of Trees for each N of {SYMBOLS} and K, by {FOLDS}-fold stratified cross-validation on "
        f"the training rows of each split (repeated for small data until {LEAST_JUDGED:,} rows are judged; after a "
        "third of the folds only the best quarter of the options go on). The default is not ranked. Fit times were "
        "taken on a machine in other use.\n\n"
        f"Measured with `benchmarks/trees_accuracy.py` on {machine()}, n_jobs={JOBS}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--keep", type=Path, help="a file of finished splits, read and written")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)  # LightGBM's own
    kept = measure(asked.only, asked.splits, asked.keep)
    for table in (accuracy_table, seconds_table, choices_table):
        print("\n".join(table(kept, asked.only, asked.splits)), end="\n\n")
    print(notes(kept, asked.only, asked.splits))


if __name__ == "__main__":
    main()
