"""Where does N-ary ECOC win and where does it lose? Accuracy and fit time on small real data sets, as a Markdown table.

Training sizes of the paper, random splits; the same splits for every method. README's table is this script's output:

    NARY_DATA=../shared/data python benchmarks/accuracy.py > docs/results/accuracy.md
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from _timing import machine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from nary import NaryClassifier
from nary.learners import Trees

TRAIN_ROWS = {"letter": 5000, "pendigits": 3498, "satimage": 3435, "segment": 1310, "vowel": 462}
JOBS = 2


def methods(seed: int, n_classes: int) -> dict[str, Any]:
    tree, wild = DecisionTreeClassifier(), Trees(splitter="random", n_thresholds=1)
    nary: dict[str, Any] = {"n_jobs": JOBS, "random_state": seed}
    linear, most_symbols = LinearDiscriminantAnalysis(), min(10, n_classes)
    return {
        "**N-ary ECOC**, trees (default)": NaryClassifier(**nary),
        '**N-ary ECOC**, trees, `splitter="random"`, N=10': NaryClassifier(wild, n_symbols=most_symbols, **nary),
        "**N-ary ECOC**, scikit-learn's trees": NaryClassifier(tree, **nary),
        "one-vs-one, scikit-learn's trees": NaryClassifier(tree, code="ovo", **nary),
        "one-vs-all, scikit-learn's trees": NaryClassifier(tree, code="ova", **nary),
        "binary random ECOC, scikit-learn's trees": NaryClassifier(tree, code="dense", **nary),
        "direct tree": DecisionTreeClassifier(random_state=seed),
        "random forest, 100 trees": RandomForestClassifier(100, n_jobs=JOBS, random_state=seed),
        "extra trees, 100 trees": ExtraTreesClassifier(100, n_jobs=JOBS, random_state=seed),
        "**N-ary ECOC**, linear discriminants": make_pipeline(StandardScaler(), NaryClassifier(linear, **nary)),
        "one-vs-one, linear discriminants": make_pipeline(StandardScaler(), NaryClassifier(linear, code="ovo", **nary)),
        "direct linear discriminant": make_pipeline(StandardScaler(), linear),
    }


def measure(folder: Path, splits: int) -> tuple[dict[str, dict[str, list[float]]], dict[str, dict[str, list[float]]]]:
    """accuracy[method][data set] and seconds[method][data set], a number a split."""
    accuracy: dict[str, dict[str, list[float]]] = {}
    seconds: dict[str, dict[str, list[float]]] = {}
    for data, n_train in TRAIN_ROWS.items():
        with np.load(folder / f"{data}.npz", allow_pickle=False) as file:
            X, y = file["X"].astype(np.float64), file["y"]
        for seed in range(splits):
            order = np.random.default_rng(seed).permutation(y.size)
            train, test = order[:n_train], order[n_train:]
            for name, clf in methods(seed, np.unique(y).size).items():
                start = time.perf_counter()
                clf.fit(X[train], y[train])
                seconds.setdefault(name, {}).setdefault(data, []).append(time.perf_counter() - start)
                accuracy.setdefault(name, {}).setdefault(data, []).append(100 * clf.score(X[test], y[test]))
            print(f"{data}, split {seed + 1} of {splits}", file=sys.stderr)
    return accuracy, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=5)
    splits = parser.parse_args().splits
    folder = Path(os.environ.get("NARY_DATA", "../shared/data"))
    if not folder.is_dir():
        raise SystemExit(f"{folder} is not there: set NARY_DATA to the folder of data sets.")
    accuracy, seconds = measure(folder, splits)
    names = list(TRAIN_ROWS)
    print("| accuracy in % (" + f"mean of {splits} splits) | " + " | ".join(names) + " | letter: fit s |")
    print("|---|" + "---|" * (len(names) + 1))
    best = {data: max(np.mean(by_data[data]) for by_data in accuracy.values()) for data in names}
    for method, by_data in accuracy.items():
        means = [np.mean(by_data[data]) for data in names]
        cells = [f"**{m:.1f}**" if m == best[data] else f"{m:.1f}" for m, data in zip(means, names, strict=True)]
        print(f"| {method} | " + " | ".join(cells) + f" | {np.median(seconds[method]['letter']):.2f} |")
    print(f"\nMeasured with `benchmarks/accuracy.py` on {machine()}, n_jobs={JOBS}; training rows as in the paper: "
          + ", ".join(f"{name} {rows:,}" for name, rows in TRAIN_ROWS.items()) + ".")  # fmt: skip


if __name__ == "__main__":
    main()
