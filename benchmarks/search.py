"""How fast are codes made? The native candidate search beside the plain NumPy search, and one-vs-one for 1,000 classes.

python benchmarks/search.py
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
from _timing import machine

from nary import _kernels, _reference, codes

K, L, N, CANDIDATES = 1000, 1000, 5, 1000
MOST_SECONDS = 10.0
OVO_SECONDS, OVO_BYTES = 2.0, 200e6
OVO = """
import resource, time
from nary import codes
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
code = codes.build("ovo", n_classes=1000)
seconds = time.perf_counter() - start
print(code.n_columns, seconds, 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


def plain_seconds_a_candidate(seed: int, candidates: int = 2) -> float:
    """The plain search measures every candidate in full, block by block of its distance matrix."""
    start = time.perf_counter()
    for index in range(candidates):
        words = _reference.draw_candidate(seed, index, K, L, N, True)
        smallest = np.inf
        for c in range(K - 1):
            smallest = min(smallest, np.abs(words[c + 1 :] - words[c]).sum(axis=1).min())
    return (time.perf_counter() - start) / candidates


def main() -> None:
    print(machine())
    met = True
    for distance in ("absolute", "hamming"):
        design = codes.Random(CANDIDATES, distance)
        found = []
        for n_jobs in (1, 2):
            start = time.perf_counter()
            code = codes.build(design, n_classes=K, n_symbols=N, n_columns=L, random_state=0, n_jobs=n_jobs)
            seconds = time.perf_counter() - start
            found.append(code)
            print(f"best of {CANDIDATES} by {distance}, {n_jobs} threads: {seconds:.2f} s, "
                  f"rho = {code.min_distance(distance):g}")  # fmt: skip
        met &= seconds < MOST_SECONDS and found[0] == found[1]
    small = _kernels.search_random(5, 300, 60, 70, N, True, True, 2)
    plain = _reference.search_random(5, 300, 60, 70, N, True, True)
    same = small is not None and np.array_equal(small[0], plain[0])
    print(f"the same matrix as the plain search (K=60, L=70, 300 candidates): {same}")
    each = plain_seconds_a_candidate(0)
    print(f"NumPy, plain search: {each:.2f} s a candidate, {each * CANDIDATES:.0f} s for {CANDIDATES}")
    run = subprocess.run([sys.executable, "-c", OVO], capture_output=True, text=True, check=True)
    columns, seconds, grown = (float(part) for part in run.stdout.split())
    print(f"one-vs-one, K=1000: {columns:,.0f} columns in {seconds:.2f} s, {grown / 1e6:.0f} MB")
    met &= same and seconds < OVO_SECONDS and grown < OVO_BYTES
    print(f"\nunder {MOST_SECONDS:g} s; one-vs-one under {OVO_SECONDS:g} s and 200 MB: {'met' if met else 'MISSED'}")
    raise SystemExit(not met)


if __name__ == "__main__":
    main()
