"""Types of the compiled core; `_kernels.py` is its only caller."""

from typing import Any

from numpy.typing import NDArray

def levels() -> list[str]: ...
def level() -> str: ...
def activate(level: str) -> bool: ...
def add_costs(
    cells: NDArray[Any],
    starts: NDArray[Any],
    block_columns: int,
    group: int,
    costs: NDArray[Any],
    neutral: NDArray[Any],
    n_threads: int,
    totals: NDArray[Any],
) -> None: ...
def add_symbols(
    cells: NDArray[Any],
    starts: NDArray[Any],
    block_columns: int,
    group: int,
    symbols: NDArray[Any],
    profile: NDArray[Any],
    neutral: NDArray[Any],
    n_threads: int,
    totals: NDArray[Any],
) -> None: ...
def finish_costs(totals: NDArray[Any], base: float, scale: float, n_threads: int, out: NDArray[Any]) -> None: ...
def nearest_classes(totals: NDArray[Any], base: float, scale: float, n_threads: int, out: NDArray[Any]) -> None: ...
def distances(words: NDArray[Any], first: int, absolute: bool, n_threads: int, out: NDArray[Any]) -> None: ...
def search_random(
    seed: int,
    n_candidates: int,
    n_symbols: int,
    absolute: bool,
    distinct_columns: bool,
    n_threads: int,
    best: NDArray[Any],
) -> tuple[int, int]: ...
