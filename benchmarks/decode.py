"""How fast is decoding? The fold beside the one-hot matrix product, NumPy comparisons and cdist; one thread each.

Each rival goes from the columns' outputs to the winning class of every row, or to all class costs; what it has to
build from the code beforehand (the fold's order, the one-hot code) is made anew in every timed run.

    python benchmarks/decode.py [--rounds 5]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from _timing import machine, side_by_side
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from nary import CodeMatrix
from nary.decoders import Fold, Hamming, TableDecoder

CASES = [(2048, 1000, 1000, 5), (10000, 26, 100, 5), (1000, 100000, 64, 256)]
REQUIRED = {
    (CASES[0], "costs", "one-hot product"): 3.0,
    (CASES[1], "symbols", "one-hot product"): 3.0,
    (CASES[2], "symbols", "NumPy comparisons"): 10.0,
}
MOST_ONE_HOT = 4 << 30  # bytes of a one-hot code that is still tried


class Given(TableDecoder):
    """Takes the outputs for costs as they are, so that only the fold is timed."""

    needs = "scores"

    def neutral(self, alphabet: NDArray[np.int16]) -> NDArray[np.float64]:
        return np.zeros(alphabet.shape)

    def costs(self, outputs: NDArray[np.float32], alphabet: NDArray[np.int16]) -> NDArray[np.float32]:
        return outputs


def nearest(costs: NDArray[np.generic]) -> NDArray[np.intp]:
    return costs.argmin(axis=1)


def fold(code: CodeMatrix, decoder: Hamming | Given, outputs: NDArray[np.generic]) -> NDArray[np.intp]:
    ready, best = Fold.of(code, decoder), []
    for rows in ready.row_blocks(outputs.shape[0]):
        n_rows = rows.stop - rows.start
        totals = ready.start(n_rows)
        ready.add(totals, outputs[rows], 0, code.n_columns)
        best.append(ready.nearest(totals, n_rows))
    return np.concatenate(best)


def one_hot_code(code: CodeMatrix) -> NDArray[np.float32]:
    K, L, N = code.n_classes, code.n_columns, code.n_symbols
    hot = np.zeros((L * N, K), np.float32)
    hot[(np.arange(L) * N + code.symbols).T, np.arange(K)] = 1
    return hot


def one_hot_of_costs(code: CodeMatrix, costs: NDArray[np.float32]) -> NDArray[np.intp]:
    return nearest(costs.reshape(costs.shape[0], -1) @ one_hot_code(code))


def one_hot_of_symbols(code: CodeMatrix, said: NDArray[np.int16]) -> NDArray[np.intp]:
    n, L, N = said.shape[0], code.n_columns, code.n_symbols
    hot = np.zeros((n, L * N), np.float32)
    hot[np.arange(n)[:, None], np.arange(L) * N + said] = 1
    return (hot @ one_hot_code(code)).argmax(axis=1)


def numpy_comparisons(code: CodeMatrix, said: NDArray[np.int16]) -> NDArray[np.intp]:
    """The line that one writes: compare a row with all codewords and count."""
    return np.array([(code.symbols != row).sum(axis=1).argmin() for row in said])


def numpy_by_column(code: CodeMatrix, said: NDArray[np.int16]) -> NDArray[np.intp]:
    """The fastest NumPy that we know: narrow counters for a block of rows, one column at a time, nothing allocated."""
    K, L = code.shape
    symbols = np.ascontiguousarray(code.symbols.T, np.uint8 if code.n_symbols <= 256 else np.int16)
    said = said.astype(symbols.dtype)
    counter = np.uint8 if L < 256 else np.uint16
    step = max(1, (1 << 18) // K)
    best = []
    for first in range(0, said.shape[0], step):
        rows = said[first : first + step]
        counts, differ = np.zeros((rows.shape[0], K), counter), np.empty((rows.shape[0], K), bool)
        for s in range(L):
            np.not_equal(rows[:, s, None], symbols[s], out=differ)
            np.add(counts, differ.view(np.uint8), out=counts)
        best.append(nearest(counts))
    return np.concatenate(best)


def by_cdist(code: CodeMatrix, said: NDArray[np.int16]) -> NDArray[np.intp]:
    words = code.symbols.astype(np.float64)
    step = max(1, (1 << 26) // code.n_classes)
    parts = [said[first : first + step].astype(np.float64) for first in range(0, said.shape[0], step)]
    return np.concatenate([nearest(cdist(part, words, "hamming")) for part in parts])


def report(case: tuple[int, ...], form: str, rivals: dict[str, Callable[[], NDArray[np.intp]]], rounds: int) -> bool:
    """Times the rivals, the fold first; whether each required ratio was reached."""
    answers = {name: run() for name, run in rivals.items()}
    first = answers["fold"]
    if form == "symbols":  # counts are exact, so ties fall alike; sums of floats may differ in their last bits
        assert all(np.array_equal(first, answer) for answer in answers.values()), "the rivals disagree"
    else:
        assert all((first == answer).mean() > 0.999 for answer in answers.values()), "the rivals disagree"
    seconds = side_by_side(rivals, rounds)
    met = True
    print(f"\n(n, K, L, N) = {case}, from {form}: fold {seconds['fold']:.4f} s")
    for name, value in seconds.items():
        if name == "fold":
            continue
        ratio, needed = value / seconds["fold"], REQUIRED.get((case, form, name))
        met &= needed is None or ratio >= needed
        bar = "" if needed is None else f"   (at least {needed:g} required: {'met' if ratio >= needed else 'MISSED'})"
        print(f"    {name:<18} {value:9.4f} s   {ratio:6.1f} times the fold{bar}")
    return met


def run_case(case: tuple[int, int, int, int], rounds: int) -> bool:
    """Draws a code and outputs and times all rivals on them; whether the required ratios were reached."""
    n, K, L, N = case
    rng = np.random.default_rng(0)
    code = CodeMatrix(rng.integers(0, N, (K, L)), N)
    said = rng.integers(0, N, (n, L)).astype(np.int16)
    hard: dict[str, Callable[[], NDArray[np.intp]]] = {
        "fold": lambda: fold(code, Hamming(), said),
        "NumPy by column": lambda: numpy_by_column(code, said),
        "NumPy comparisons": lambda: numpy_comparisons(code, said),
        "cdist": lambda: by_cdist(code, said),
    }
    if 4 * N * L * K > MOST_ONE_HOT:
        met = report(case, "symbols", hard, min(rounds, 3))
        print(f"    one-hot product: the one-hot code alone would take {4 * K * L * N / 1e9:.1f} GB")
        return met
    hard["one-hot product"] = lambda: one_hot_of_symbols(code, said)
    costs = rng.random((n, L, N), np.float32)
    soft = {
        "fold": lambda: fold(code, Given(), costs),
        "one-hot product": lambda: one_hot_of_costs(code, costs),
    }
    return report(case, "symbols", hard, rounds) & report(case, "costs", soft, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print(machine())
    met = True
    for case in CASES:
        met &= run_case(case, rounds)
    print("\nall required ratios met" if met else "\na required ratio was MISSED")
    raise SystemExit(not met)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
