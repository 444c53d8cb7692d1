"""Are linear columns with a learnt decoder as accurate as one-vs-one, one-vs-all and Crammer-Singer, or more?

All contenders are machines of `learners.Linear`, on the same rows: random splits with the paper's training sizes, or
the official split of the texts. One table has the same C for all; in the other each contender takes its C by held-out
training rows. The learnt decoder is a prototype: machines fitted without a fold of the rows say tanh(decision) of that
fold, and logistic machines, one for each class, learn from what was said. Finished runs are kept in --keep.

    NARY_DATA=../shared/data python benchmarks/linear_accuracy.py [--only letter ...] [--keep FILE] > TABLE
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _data import Split, text, whole
from _timing import machine
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from nary import CodeMatrix, NaryClassifier, codes
from nary.columns import Columns
from nary.learners import Linear


class Size(NamedTuple):
    """Training rows (0: the official split), splits, splits on which C is chosen, and the one C of the first table."""

    train: int
    splits: int
    tuned: int
    C: float = 1.0


SIZES = {
    "letter": Size(5000, 5, 3),
    "pendigits": Size(3498, 5, 3),
    "vowel": Size(462, 5, 5),
    "satimage": Size(3435, 5, 3),
    "usps": Size(7291, 3, 0, 0.01),  # the best C of one-vs-one and Crammer-Singer, here and below
    "news20_text": Size(0, 1, 1),
    "clinc150": Size(0, 1, 0),
    "kanji1000": Size(40000, 1, 0, 0.01),
}
COSTS = (0.01, 0.1, 1.0, 10.0)
SECOND_COSTS = (0.1, 1.0, 10.0)  # of the learnt decoder's own machines; 1 in the first table
FOLDS, HELD_OUT = 3, 5  # a fifth of the rows is held out
MANY = 100  # classes from which similarity columns are drawn
LINEAR: dict[str, Any] = {"tol": 1e-2, "max_epochs": 300, "calibrate": False, "n_jobs": 1}
RIVALS = ("one-vs-one", "one-vs-all", "Crammer-Singer")
OURS = "N-ary, learnt decoder"
LIKELIHOOD, PLAIN = "one-vs-one, likelihood", "N-ary, likelihood"
METHODS = (*RIVALS, LIKELIHOOD, PLAIN, OURS)


class Rule(NamedTuple):
    """The columns that suit a data set."""

    code: str
    n_symbols: int
    n_columns: int
    strategy: str


def rule(n_classes: int, is_sparse: bool) -> Rule:
    """The rule that this study recommends."""
    if n_classes >= MANY:
        return Rule("similarity", 8, 20, "ovo")
    return Rule("random", min(5, n_classes - 1), 60, "ovr" if is_sparse else "ovo")


def class_means(X: Any, y: NDArray[np.int32]) -> NDArray[np.float64]:
    """Means of the classes, whitened by the spread within classes; of sparse rows only their directions."""
    member = sparse.csr_matrix((np.ones(y.size), (y, np.arange(y.size))))
    if sparse.issparse(X):
        sums = (member @ X).toarray()
        return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True))
    means = (member @ X) / np.bincount(y)[:, None]
    within = X - means[y]
    variances, axes = np.linalg.eigh(within.T @ within / y.size)
    return np.asarray(means @ axes / np.sqrt(np.maximum(variances, 1e-3 * variances.max())))


def similarity_code(X: Any, y: NDArray[np.int32], N: int, L: int, seed: int) -> CodeMatrix:
    """Voronoi columns: N classes are drawn as pivots, and every class has the symbol of the nearest."""
    random, means = np.random.default_rng(seed), class_means(X, y)
    squares = (means**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * means @ means.T
    columns: list[NDArray[np.intp]] = []
    while len(columns) < L or np.unique(columns, axis=1).shape[1] < len(means):
        columns.append(distances[:, random.choice(len(means), N, replace=False)].argmin(axis=1))
    return CodeMatrix(np.stack(columns, axis=1), N)


def random_code(n_classes: int, N: int, L: int, seed: int) -> CodeMatrix:
    random = np.random.default_rng(seed)
    columns: list[NDArray[np.int64]] = []
    while len(columns) < L or np.unique(columns, axis=1).shape[1] < n_classes:
        column = random.integers(0, N, n_classes)
        if np.unique(column).size == N:
            columns.append(column)
    return CodeMatrix(np.stack(columns, axis=1), N)


def code_by(chosen: Rule, X: Any, y: NDArray[np.int32], seed: int) -> CodeMatrix:
    if chosen.code == "similarity":
        return similarity_code(X, y, chosen.n_symbols, chosen.n_columns, seed)
    return random_code(int(y.max()) + 1, chosen.n_symbols, chosen.n_columns, seed)


def fitted(X: Any, y: NDArray[np.int32], code: CodeMatrix, **options: Any) -> Linear:
    return Linear(**{**LINEAR, **options}).fit(X, Columns(code, y))


def decisions(model: Linear, X: Any) -> NDArray[np.float32]:
    """What each machine says of each row."""
    return np.asarray(X @ model.weights_ + model.intercepts_, np.float32)


def one_vs_all(n_classes: int) -> CodeMatrix:
    return CodeMatrix(np.eye(n_classes, dtype=np.int64), 2)


def folds_of(y: NDArray[np.int32], n_folds: int, seed: int) -> NDArray[np.intp]:
    """A fold for each row; those of a class are dealt out evenly."""
    order = np.random.default_rng(seed).permutation(y.size)
    order = order[np.argsort(y[order], kind="stable")]
    folds = np.empty(y.size, np.intp)
    folds[order] = np.arange(y.size) % n_folds
    return folds


def said(X: Any, y: NDArray[np.int32], code: CodeMatrix, options: dict[str, Any]) -> NDArray[np.float32]:
    """tanh of what machines say of rows that they have not seen."""
    folds = folds_of(y, FOLDS, 0)
    out: NDArray[np.float32] | None = None
    for fold in range(FOLDS):
        rest = folds != fold
        part = decisions(fitted(X[rest], y[rest], code, **options), X[~rest])
        out = np.empty((y.size, part.shape[1]), np.float32) if out is None else out
        out[~rest] = np.tanh(part)
    assert out is not None
    return out


def second(F: NDArray[np.float32], y: NDArray[np.int32], C: float) -> Linear:
    """The learnt decoder: a logistic machine for each class, over what the columns' machines say."""
    return fitted(F, y, one_vs_all(int(y.max()) + 1), loss="logistic", C=C)


def learnt(data: Split, C: float | None, seed: int) -> tuple[NDArray[np.intp], str]:
    """Columns by the rule and a learnt decoder; C is None: both costs are chosen by held-out rows."""
    chosen = rule(int(data.y.max()) + 1, sparse.issparse(data.X))
    code = code_by(chosen, data.X, data.y, seed)
    if C is None:
        C, second_C, F = chosen_costs(data, code, chosen.strategy)
    else:
        second_C, F = 1.0, said(data.X, data.y, code, {"C": C, "strategy": chosen.strategy})
    columns = fitted(data.X, data.y, code, C=C, strategy=chosen.strategy)
    decoder = second(F, data.y, second_C)
    return decisions(decoder, np.tanh(decisions(columns, data.X_test))).argmax(axis=1), f"{C:g}, {second_C:g}"


def chosen_costs(data: Split, code: CodeMatrix, strategy: str) -> tuple[float, float, NDArray[np.float32]]:
    held = folds_of(data.y, HELD_OUT, 1) == 0
    best: tuple[float, float, float, NDArray[np.float32]] | None = None
    for C in COSTS:
        F = said(data.X, data.y, code, {"C": C, "strategy": strategy})
        for second_C in SECOND_COSTS:
            answers = decisions(second(F[~held], data.y[~held], second_C), F[held]).argmax(axis=1)
            score = float(np.mean(answers == data.y[held]))
            if best is None or score > best[0]:
                best = score, C, second_C, F
    assert best is not None
    return best[1:]


def through(estimator: Linear, code: Any, decoder: str, data: Split) -> NDArray[np.intp]:
    clf = NaryClassifier(estimator, code=code, decoder=decoder, n_jobs=1, random_state=0).fit(data.X, data.y)
    return np.asarray(clf.predict(data.X_test))


def plain(data: Split, C: float, seed: int) -> NDArray[np.intp]:
    """Columns by the rule, decoded by likelihood."""
    chosen = rule(int(data.y.max()) + 1, sparse.issparse(data.X))
    estimator = Linear(**{**LINEAR, "calibrate": True, "C": C, "strategy": chosen.strategy})  # type: ignore[arg-type]
    return through(estimator, code_by(chosen, data.X, data.y, seed), "loglikelihood", data)


def rival(name: str, data: Split, C: float, seed: int) -> NDArray[np.intp]:
    K = int(data.y.max()) + 1
    if name == PLAIN:
        return plain(data, C, seed)
    if name == "one-vs-all":
        return decisions(fitted(data.X, data.y, one_vs_all(K), C=C), data.X_test).argmax(axis=1)
    if name == "Crammer-Singer":
        model = fitted(data.X, data.y, CodeMatrix(np.arange(K)[:, None]), C=C, strategy="crammer_singer")
        return decisions(model, data.X_test).argmax(axis=1)
    likelihood = name == LIKELIHOOD
    estimator = Linear(**{**LINEAR, "loss": "hinge", "C": C, "calibrate": likelihood})
    return through(estimator, codes.OneVsOne(), "loglikelihood" if likelihood else "hamming", data)


def rival_of_chosen_cost(name: str, data: Split, seed: int) -> tuple[NDArray[np.intp], str]:
    held = folds_of(data.y, HELD_OUT, 1) == 0
    inner = Split(data.X[~held], data.y[~held], data.X[held], data.y[held])
    scores = [float(np.mean(rival(name, inner, C, seed) == inner.y_test)) for C in COSTS]
    C = COSTS[int(np.argmax(scores))]
    return rival(name, data, C, seed), f"{C:g}"


def split_of(name: str, seed: int) -> Split:
    """The official split of texts; else a random one, with features standardised by its training rows."""
    n_train = SIZES[name].train
    if n_train == 0:
        return Split(*(part.astype(t) for part, t in zip(text(name), (np.float64, np.int32) * 2, strict=True)))
    X, y = whole(name)
    order = np.random.default_rng(seed).permutation(y.size)
    train, test = order[:n_train], order[n_train:]
    spread = X[train].std(axis=0)
    Z = np.ascontiguousarray((X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1), np.float32)
    return Split(Z[train], y[train], Z[test], y[test])


Kept = dict[str, dict[str, Any]]  # "data/seed/method/same or tuned": accuracy, seconds, chosen


def left_out(name: str, method: str) -> bool:
    return name == "kanji1000" and method == LIKELIHOOD  # it would calibrate 499,500 machines


def answers(method: str, data: Split, C: float | None, seed: int) -> tuple[NDArray[np.intp], str]:
    if method == OURS:
        return learnt(data, C, seed)
    return rival_of_chosen_cost(method, data, seed) if C is None else (rival(method, data, C, seed), f"{C:g}")


def measure(names: list[str], keep: Path | None) -> Kept:
    """Every contender on every split, less what is kept already."""
    kept: Kept = json.loads(keep.read_text()) if keep is not None and keep.exists() else {}
    for name in names:
        size = SIZES[name]
        for seed in range(size.splits):
            data = split_of(name, seed)
            runs: list[tuple[str, float | None]] = [("same", size.C)]
            runs += [("tuned", None)] if seed < size.tuned else []
            for (kind, C), method in ((run, method) for run in runs for method in METHODS):
                key = f"{name}/{seed}/{method}/{kind}"
                if key in kept or left_out(name, method) or (kind == "tuned" and method in (LIKELIHOOD, PLAIN)):
                    continue
                start = time.perf_counter()
                predicted, chosen = answers(method, data, C, seed)
                seconds, accuracy = time.perf_counter() - start, 100 * float(np.mean(predicted == data.y_test))
                kept[key] = {"accuracy": accuracy, "seconds": seconds, "chosen": chosen}
                print(f"{key}: {accuracy:.2f}, {seconds:.1f} s, C={chosen}", file=sys.stderr, flush=True)
                if keep is not None:
                    keep.write_text(json.dumps(kept, indent=1))
    return kept


def of(kept: Kept, field: str, name: str, method: str, kind: str) -> list[Any]:
    keys = (f"{name}/{seed}/{method}/{kind}" for seed in range(SIZES[name].splits))
    return [kept[key][field] for key in keys if key in kept]


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def cell(values: list[float], best: float) -> str:
    if not values:
        return "-"
    mean = statistics.mean(values)
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"**{mean:.2f}**{spread}" if mean == best else f"{mean:.2f}{spread}"


def accuracy_table(kept: Kept, names: list[str], kind: str, methods: tuple[str, ...], title: str) -> list[str]:
    lines = [row([title, *methods, "ahead of the best of the three by"]), "|---" * (len(methods) + 2) + "|"]
    for name in names:
        by_method = {method: of(kept, "accuracy", name, method, kind) for method in methods}
        if not by_method[OURS]:
            continue
        means = {method: statistics.mean(values) for method, values in by_method.items() if values}
        ahead = means[OURS] - max(means[method] for method in RIVALS)
        cells = [cell(by_method[method], max(means.values())) for method in methods]
        note = f", C={SIZES[name].C:g}" if kind == "same" and SIZES[name].C != 1 else ""
        lines.append(row([f"{name}{note}", *cells, f"{ahead:+.2f}"]))
    return lines


def seconds_table(kept: Kept, names: list[str]) -> list[str]:
    lines = [row(["median s to fit and predict", *METHODS]), "|---" * (len(METHODS) + 1) + "|"]
    for name in names:
        times: list[list[float]] = [of(kept, "seconds", name, method, "same") for method in METHODS]
        lines.append(row([name, *(f"{statistics.median(t):.2f}" if t else "-" for t in times)]))
    return lines


def choices_table(kept: Kept, names: list[str]) -> list[str]:
    methods = (*RIVALS, OURS)
    lines = [row(["C chosen, times", *methods]), "|---" * (len(methods) + 1) + "|"]
    for name in (name for name in names if SIZES[name].tuned):
        counts = [Counter(of(kept, "chosen", name, method, "tuned")) for method in methods]
        texts = ["; ".join(f"{C}: {n}" for C, n in count.most_common()) for count in counts]
        lines.append(row([name, *texts]))
    return lines


def notes(names: list[str]) -> str:
    sizes = ", ".join(f"{name} {SIZES[name].train:,}" for name in names if SIZES[name].train)
    splits = ", ".join(f"{name} {SIZES[name].splits} ({SIZES[name].tuned})" for name in names)
    return (
        f"Training rows: {sizes}; the texts have their official split. Splits, and in brackets those of the second "
        f"table: {splits}. One-vs-one: hinge loss and voting; one-vs-all: squared hinge and the largest decision. "
        f"N-ary columns: with fewer than {MANY} classes 60 random columns of 5 symbols (at most K-1), one-vs-one "
        "inside a column of dense rows and one-vs-rest of sparse ones; beyond that 20 similarity columns of 8 symbols "
        "with one-vs-one inside; squared hinge. The learnt decoder's machines are logistic "
        f"with C=1 and learn from tanh(decision) out of {FOLDS} folds. C by held-out rows: a fifth of the training "
        f"rows, of {COSTS}; for the learnt decoder also its own C of {SECOND_COSTS} (given second). tol=0.01, "
        "max_epochs=300 for all.\n\n"
        f"Measured with `benchmarks/linear_accuracy.py` on {machine()}, n_jobs=1, on a machine in other use."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--keep", type=Path, help="a file of finished runs, read and written")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    kept, names = measure(asked.only, asked.keep), list(asked.only)
    tables: list[Callable[[], list[str]]] = [
        lambda: accuracy_table(kept, names, "same", METHODS, "accuracy in %, mean ± sd; the same C for all (1)"),
        lambda: accuracy_table(
            kept, names, "tuned", (*RIVALS, OURS), "accuracy in %; each with its C by held-out rows"
        ),
        lambda: choices_table(kept, names),
        lambda: seconds_table(kept, names),
    ]
    for table in tables:
        print("\n".join(table()), end="\n\n")
    print(notes(names))


if __name__ == "__main__":
    main()
