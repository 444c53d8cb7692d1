"""What do native linear machines save? Linear beside LinearSVC and SVC: time at equal objective, accuracy, memory.

Objectives are LIBLINEAR's and LIBSVM's primal ones, of each machine of both in float64. Peak memory is that of a fresh
process. A peer that would take more than ten minutes is timed on a portion of its fits, and the line says so.

    NARY_DATA=../shared/data python benchmarks/linear.py [--only columns ova text text_columns ovo memory] [--rounds 5]
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from _data import Split, split, text
from _timing import bar, in_fresh_process, model_bytes, peak_of, report, side_by_side
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.parallel import Parallel, delayed

from nary import CodeMatrix, NaryClassifier, codes
from nary.columns import Columns
from nary.learners import Linear
from nary.learners.machines import Machines

JOBS = 2
EXCESS = 0.1  # %: objectives as near as this are equal
MACHINES = 64  # whose objectives are computed together
OVA_C = 0.1  # of both: with 1 all machines fit the training rows too closely for the accuracy asked
PROBES = 4  # fits from which a peer's time is estimated
SQUARED = Linear(loss="squared_hinge", strategy="ovr", calibrate=False)
HINGE = Linear(loss="hinge", intercept_scaling=np.inf, calibrate=False)
LOSS_POWERS = {"squared_hinge": 2, "hinge": 1}
Result = TypeVar("Result")


class Sizes(NamedTuple):
    """How much of the data is taken, and how long a peer may take."""

    classes: int = 1000
    train_rows: int = 40_000
    column_rows: int = 20_000
    columns: int = 64
    pair_classes: int = 100
    text_columns: int = 200
    text_step: int = 1  # every such row
    whole_seconds: float = 600


FULL = Sizes()
SMOKE = Sizes(50, 40_000, 1_000, 8, 10, 16, 10, 3)


class Task(NamedTuple):
    """Rows, their classes, and the columns that a learner is to fit on them."""

    X: Any
    y: NDArray[np.int32]
    code: CodeMatrix
    learner: Linear

    def fit(self, n_jobs: int = JOBS) -> Linear:
        return clone(self.learner).fit(self.X, Columns(self.code, self.y), seed=0, n_jobs=n_jobs)


class Weights(NamedTuple):
    """Machines by number; column m of w and place m of b are those of the m-th."""

    machines: NDArray[np.intp]
    w: NDArray[Any]
    b: NDArray[Any]

    def of(self, machines: NDArray[np.intp]) -> Weights:
        return Weights(machines, self.w[:, machines], self.b[machines])


class Part(NamedTuple):
    """One fit of a peer: the machines that come of it, and its labels."""

    machines: NDArray[np.intp]
    labels: NDArray[Any]


class Peer(NamedTuple):
    """What LinearSVC took for all its parts, and what came of those that were fitted."""

    name: str
    seconds: float
    note: str
    weights: Weights


# Tasks


@cache
def kanji(sizes: Sizes) -> Split:
    """Every feature standardised by the training rows."""
    data = of_classes(split("kanji1000", FULL.train_rows), sizes.classes)
    scaler = StandardScaler().fit(data.X)
    return data._replace(X=scaler.transform(data.X), X_test=scaler.transform(data.X_test))


@cache
def texts(name: str, sizes: Sizes) -> Split:
    return Split(*(part[:: sizes.text_step] for part in text(name)))


def of_classes(data: Split, n_classes: int) -> Split:
    """The rows of classes chosen evenly."""
    K = int(data.y.max()) + 1
    if n_classes == K:
        return data
    place = np.full(K, -1, np.int32)
    place[np.arange(n_classes) * K // n_classes] = np.arange(n_classes)
    train, test = place[data.y], place[data.y_test]
    return Split(data.X[train >= 0], train[train >= 0], data.X_test[test >= 0], test[test >= 0])


def task(data: Split, learner: Linear, design: str, **options: Any) -> Task:
    code = codes.build(design, n_classes=int(data.y.max()) + 1, random_state=0, **options)
    return Task(data.X, data.y, code, learner)


def columns_task(sizes: Sizes) -> Task:
    data = kanji(sizes)
    some = data._replace(X=data.X[: sizes.column_rows], y=data.y[: sizes.column_rows])
    return task(some, SQUARED, "random", n_symbols=5, n_columns=sizes.columns)


def text_columns_task(sizes: Sizes) -> Task:
    return task(texts("news20_text", sizes), SQUARED, "random", n_symbols=5, n_columns=sizes.text_columns)


def one_vs_all(data: Split, C: float = 1) -> Task:
    """One column, in which every class is a symbol of its own: the machines of a multi-class LinearSVC."""
    return task(data, clone(SQUARED).set_params(C=C), "identity")


def pairs_task(sizes: Sizes) -> Task:
    return task(of_classes(kanji(sizes), sizes.pair_classes), HINGE, "ovo")


# Objectives


def weights_of(learner: Linear) -> Weights:
    return Weights(np.arange(learner.intercepts_.size), learner.weights_, learner.intercepts_)


def objectives(it: Task, weights: Weights) -> NDArray[np.float64]:
    """Of each machine, 1/2 ||w||^2 + C sum of its rows' losses, and 1/2 b^2 where the intercept is not free."""
    machines = Machines(it.code, "ovr")
    sides = machines.sides(0, machines.n_machines).table(it.code.n_classes)[:, weights.machines]
    X, w, b = it.X.astype(np.float64), weights.w.astype(np.float64), weights.b.astype(np.float64)
    blocks = [slice(m, m + MACHINES) for m in range(0, b.size, MACHINES)]
    losses = [total_losses(it.learner.loss, X @ w[:, at] + b[at], sides[:, at][it.y]) for at in blocks]
    penalty = (w**2).sum(axis=0) + (b / it.learner.intercept_scaling) ** 2
    return penalty / 2 + it.learner.C * np.concatenate(losses)


def total_losses(loss: str, decisions: NDArray[np.float64], sides: NDArray[np.int8]) -> NDArray[np.float64]:
    missing = np.maximum(0, 1 - sides * decisions) * (sides != 0)
    return np.asarray((missing ** LOSS_POWERS[loss]).sum(axis=0))


class Excess(NamedTuple):
    """By how many % objectives of ours lie above a peer's."""

    largest: float
    mean: float
    total: float


def excess(it: Task, ours: Weights, theirs: Weights) -> Excess:
    """Ours over theirs, on the machines that they have."""
    mine, other = (objectives(it, weights) for weights in (ours.of(theirs.machines), theirs))
    ratios = 100 * (mine / other - 1)
    return Excess(float(ratios.max()), float(ratios.mean()), float(100 * (mine.sum() / other.sum() - 1)))


# LinearSVC


def column_parts(it: Task) -> list[Part]:
    """A part a column of N > 2, whose LinearSVC is one-vs-rest inside; it makes no machine for a symbol not seen."""
    starts = Machines(it.code, "ovr").starts[:-1]
    labels = it.code.block(0, it.code.n_columns)[it.y].T
    seen = [np.unique(of_column) for of_column in labels]
    made = [start + (symbols if symbols.size > 2 else symbols[1:]) for start, symbols in zip(starts, seen, strict=True)]
    return [Part(machines, of_column) for machines, of_column in zip(made, labels, strict=True)]


def class_parts(it: Task) -> list[Part]:
    """A part a class, against the rest: together they are the work of one multi-class LinearSVC."""
    return [Part(np.array([c]), it.y == c) for c in range(it.code.n_classes)]


def evenly(parts: list[Part], n: int) -> list[Part]:
    n = min(n, len(parts))
    return [parts[k * len(parts) // n] for k in range(n)]


def fit_parts(X: Any, parts: list[Part], n_jobs: int, options: dict[str, Any]) -> list[LinearSVC]:
    """A LinearSVC for each part; threads, which liblinear lets run and which were the faster backend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # unconverged fits are counted
        pool = Parallel(n_jobs=n_jobs, prefer="threads")
        return list(pool(delayed(LinearSVC(random_state=0, **options).fit)(X, part.labels) for part in parts))


def stacked(parts: list[Part], fitted: list[LinearSVC]) -> Weights:
    w, b = (np.concatenate([getattr(it, name) for it in fitted]) for name in ("coef_", "intercept_"))
    return Weights(np.concatenate([part.machines for part in parts]), w.T, b)


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def linear_svc(it: Task, parts: list[Part], n_jobs: int, share: float = 1, **options: Any) -> Peer:
    """A LinearSVC for each part, or for an even share of them, from which the time of all is scaled."""
    kept = parts if share == 1 else evenly(parts, max(round(share * len(parts)), 2 * n_jobs))
    seconds, fitted = timed(lambda: fit_parts(it.X, kept, n_jobs, {"C": it.learner.C, **options}))
    unconverged = sum(int(one.n_iter_ >= one.max_iter) for one in fitted)
    scale = len(parts) / len(kept)
    scaled = f"; {len(kept)} of {len(parts)} fits took {seconds:.2f} s: SCALED" if scale > 1 else ""
    name = "LinearSVC" + "".join(f", {key}={value:g}" for key, value in options.items())
    note = f"{n_jobs} job{'s' * (n_jobs > 1)}, {unconverged} of {len(kept)} fits unconverged{scaled}"
    return Peer(name, scale * seconds, note, stacked(kept, fitted))


def estimated(it: Task, parts: list[Part], n_jobs: int) -> float:
    """Seconds that all parts would take."""
    probes = evenly(parts, PROBES)
    seconds, _ = timed(lambda: fit_parts(it.X, probes, n_jobs, {"C": it.learner.C}))
    return seconds * len(parts) / len(probes)


def by_columns(it: Task, whole_seconds: float) -> Peer:
    """Clones for all columns, or for a fifth where all would take too long."""
    parts = column_parts(it)
    return linear_svc(it, parts, JOBS, 1 if estimated(it, parts, JOBS) <= whole_seconds else 0.2)


def by_classes(it: Task, whole_seconds: float) -> Peer:
    """One multi-class LinearSVC, or its machines for every twentieth class where all would take too long."""
    parts = class_parts(it)
    if estimated(it, parts, 1) <= whole_seconds:
        return linear_svc(it, column_parts(it), 1)
    return linear_svc(it, parts, 1, 0.05)


# Side by side


class Ours(NamedTuple):
    """What Linear took, and what came of it."""

    seconds: float
    learner: Linear

    @property
    def weights(self) -> Weights:
        return weights_of(self.learner)


def title(what: str, it: Task) -> None:
    n, n_features = it.X.shape
    machines = Machines(it.code, "ovr").n_machines
    kind = "dense" if isinstance(it.X, np.ndarray) else "CSR"
    print(f"\n{what}: {n:,} x {n_features:,} {kind} {it.X.dtype}, K={it.code.n_classes}, {machines:,} machines")


def show(name: str, seconds: float, note: str) -> None:
    print(f"    {name:<26}{seconds:10.3f} s  {note}", flush=True)


def show_ours(ours: Ours) -> None:
    gaps, epochs = ours.learner.gaps_, ours.learner.n_epochs_
    show("Linear", ours.seconds, f"{JOBS} jobs, largest gap {gaps.max():.1e}, "
         f"epochs: median {np.median(epochs):.0f}, most {epochs.max()}")  # fmt: skip


def show_single(seconds: float) -> None:
    show("Linear", seconds, "1 job, as the peer: for information")


def around(it: Task, theirs: Callable[[], Result], rounds: int) -> tuple[Ours, Result]:
    """Fits of ours before and after theirs, which takes long; of ours the median time."""
    before = [timed(it.fit)[0] for _ in range((rounds + 1) // 2)]
    result = theirs()
    after = [timed(it.fit) for _ in range(max(1, rounds // 2))]
    return Ours(statistics.median([*before, *(seconds for seconds, _ in after)]), after[-1][1]), result


def in_turns(it: Task, peer: Callable[[], Peer], rounds: int) -> tuple[Ours, Peer, float]:
    """Ours, the peer, and the time of ours with one thread; all of them median times, the peer's as it says itself."""
    kept: dict[str, list[Any]] = {"ours": [], "single": [], "peer": []}
    rivals: dict[str, Callable[[], Any]] = {"ours": it.fit, "single": lambda: it.fit(n_jobs=1), "peer": peer}
    seconds = side_by_side({name: lambda name=name: kept[name].append(rivals[name]()) for name in rivals}, rounds)
    theirs = kept["peer"][-1]._replace(seconds=statistics.median(one.seconds for one in kept["peer"]))
    return Ours(seconds["ours"], kept["ours"][-1]), theirs, seconds["single"]


def required(it: Task, ours: Ours, peer: Peer, ratio: float) -> bool:
    """The bars of speed and of every machine's objective."""
    above = excess(it, ours.weights, peer.weights)
    met = bar(f"faster than {peer.name}", peer.seconds / ours.seconds, ratio)
    met &= bar(f"objective above that of {peer.name}, largest", above.largest, EXCESS, " %", most=True)
    return met & bar(f"objective above that of {peer.name}, mean", above.mean, EXCESS, " %", most=True)


def informed(it: Task, ours: Ours, peer: Peer) -> None:
    """A peer beside which nothing is required."""
    show(peer.name, peer.seconds, peer.note)
    above = excess(it, ours.weights, peer.weights)
    print(f"        for information: Linear {peer.seconds / ours.seconds:.1f} times faster, "
          f"objective above it: largest {above.largest:.3f}, mean {above.mean:.3f} %")  # fmt: skip


def own_accuracy(ours: Ours, data: Split) -> float:
    """Of the single column whose symbols are the classes: the largest decision value decides."""
    said = ours.learner.outputs(ours.learner.prepare(data.X_test), "symbols", 0, 1, n_jobs=JOBS)[:, 0]
    return 100 * float((said == data.y_test).mean())


def accuracy(weights: Weights, data: Split) -> float:
    return 100 * float(((data.X_test @ weights.w + weights.b).argmax(axis=1) == data.y_test).mean())


# Sections


def columns(rounds: int, sizes: Sizes) -> bool:
    it = columns_task(sizes)
    title(f"{sizes.columns} random columns, N=5, kanji1000", it)
    ours, peer = around(it, lambda: by_columns(it, sizes.whole_seconds), rounds)
    show_ours(ours)
    show(peer.name, peer.seconds, peer.note)
    met = required(it, ours, peer, 50)
    for tol in (0.01, 0.1):
        informed(it, ours, linear_svc(it, column_parts(it), JOBS, share=0.25, tol=tol))
    return met


def ova(rounds: int, sizes: Sizes) -> bool:
    data = kanji(sizes)
    it = one_vs_all(data, OVA_C)
    title(f"one-vs-all, kanji1000, C={OVA_C}", it)
    ours, peer = around(it, lambda: by_classes(it, sizes.whole_seconds), rounds)
    show_ours(ours)
    show_single(timed(lambda: it.fit(n_jobs=1))[0])
    show(peer.name, peer.seconds, peer.note)
    if peer.weights.b.size == it.code.n_classes:
        print(f"    accuracy of {peer.name}: {accuracy(peer.weights, data):.2f} %")
    met = required(it, ours, peer, 30)
    plain = Ours(*timed(one_vs_all(data).fit))
    print(f"    with C=1, for information: Linear {plain.seconds:.2f} s, accuracy {own_accuracy(plain, data):.2f} %")
    return met & bar("accuracy", own_accuracy(ours, data), 93, " %")


def one_text(name: str, rounds: int, sizes: Sizes) -> bool:
    data = texts(name, sizes)
    it = one_vs_all(data)
    title(f"one-vs-all, {name}", it)
    ours, peer, single = in_turns(it, lambda: linear_svc(it, column_parts(it), 1), rounds)
    show_ours(ours)
    show_single(single)
    show(peer.name, peer.seconds, peer.note)
    print(f"    accuracy: Linear {own_accuracy(ours, data):.2f}, {peer.name} {accuracy(peer.weights, data):.2f} %")
    return required(it, ours, peer, 3)


def text_(rounds: int, sizes: Sizes) -> bool:
    return one_text("clinc150", rounds, sizes) & one_text("news20_text", rounds, sizes)


def text_columns(rounds: int, sizes: Sizes) -> bool:
    it = text_columns_task(sizes)
    title(f"{sizes.text_columns} random columns, N=5, news20_text", it)
    ours, peer = around(it, lambda: by_columns(it, sizes.whole_seconds), rounds)
    show_ours(ours)
    show(peer.name, peer.seconds, peer.note)
    return required(it, ours, peer, 20)


def ovo(rounds: int, sizes: Sizes) -> bool:
    it = pairs_task(sizes)
    title(f"one-vs-one, {it.code.n_classes} classes of kanji1000, hinge, free intercept", it)
    ours, peer, single = in_turns(it, lambda: svc(it), 5 * rounds)  # they take fractions of a second
    show_ours(ours)
    show_single(single)
    show(peer.name, peer.seconds, peer.note)
    above = excess(it, ours.weights, peer.weights)
    met = bar("faster than SVC", peer.seconds / ours.seconds, 20)
    met &= bar("objective above that of SVC, mean of the machines", above.mean, EXCESS, " %", most=True)
    met &= bar("objective above that of SVC, total", above.total, EXCESS, " %", most=True)
    print(f"    objective above that of SVC, largest of the machines {above.largest:.3f} %")
    informed(it, ours, svc(it, 1e-5))  # whose objectives are near the least; those of the default are not
    all_pairs(kanji(sizes))
    return met


def svc(it: Task, tol: float = 1e-3) -> Peer:
    """SVC's machines are positive for the first class of a pair, those of Linear for the second."""
    model = SVC(kernel="linear", decision_function_shape="ovo", tol=tol)
    seconds, _ = timed(lambda: model.fit(it.X, it.y))
    weights = Weights(np.arange(model.intercept_.size), -model.coef_.T, -model.intercept_)
    return Peer("SVC", seconds, f"1 job, {model.cache_size} MB of cache, tol={model.tol:g}", weights)


def all_pairs(data: Split) -> None:
    """The whole one-vs-one code, decided by votes as LIBSVM does; no bar."""
    clf = NaryClassifier(HINGE, code="ovo", decoder="hamming", n_jobs=JOBS, random_state=0)
    fit, _ = timed(lambda: clf.fit(data.X, data.y))
    predict, said = timed(lambda: clf.predict(data.X_test))
    right = 100 * float((said == data.y_test).mean())
    print(f"    all {clf.code_.n_columns:,} machines of {clf.code_.n_classes:,} classes, by NaryClassifier, votes:\n"
          f"        fit {fit:.2f} s, predict {data.y_test.size:,} rows {predict:.2f} s, "
          f"model {model_bytes(clf) / 1e6:.1f} MB, accuracy {right:.2f} %")  # fmt: skip


def memory_of_fit(it: Task) -> float:
    """MB that a fit takes at its peak beyond X and the model; runs in a fresh process."""
    kept: list[Linear] = []
    peak = peak_of(lambda: kept.append(it.fit()))
    return peak - model_bytes(kept[0]) / 1e6


def memory(rounds: int, sizes: Sizes) -> bool:
    print("\npeak memory of a fit beyond X and the model, each in a fresh process")
    tasks = {
        "random columns, kanji1000": columns_task(sizes),
        "one-vs-all, kanji1000": one_vs_all(kanji(sizes)),
        "one-vs-all, clinc150": one_vs_all(texts("clinc150", sizes)),
        "one-vs-all, news20_text": one_vs_all(texts("news20_text", sizes)),
        "random columns, news20_text": text_columns_task(sizes),
        "one-vs-one, kanji1000, all classes": task(kanji(sizes), HINGE, "ovo"),
    }
    peaks = {name: in_fresh_process(memory_of_fit, it) for name, it in tasks.items()}
    met = [bar(name, peak, 1000, " MB", most=True) for name, peak in peaks.items()]
    return all(met)


SECTIONS: dict[str, Callable[[int, Sizes], bool]] = {
    "columns": columns, "ova": ova, "text": text_, "text_columns": text_columns, "ovo": ovo, "memory": memory,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--smoke", action="store_true", help="small sizes, to see that it runs: no figures to report")
    chosen = parser.parse_args()
    sizes = SMOKE if chosen.smoke else FULL
    if chosen.smoke:
        print(f"SMOKE, not for reporting: {sizes}")
    report({name: lambda name=name: SECTIONS[name](chosen.rounds, sizes) for name in chosen.only}, JOBS)


if __name__ == "__main__":
    main()
