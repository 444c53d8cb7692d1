"""Types of the compiled core; `_kernels/` is its only caller."""

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
    first: int,
    last: int,
    floor: int,
    n_symbols: int,
    absolute: bool,
    distinct_columns: bool,
    n_threads: int,
    best: NDArray[Any],
) -> tuple[int, int]: ...
def bin_rows(
    values: NDArray[Any],
    edges: NDArray[Any],
    edge_starts: NDArray[Any],
    shape: tuple[int, int, int],
    n_threads: int,
    cells: NDArray[Any],
) -> None: ...
def bin_entries(
    values: NDArray[Any],
    features: NDArray[Any],
    edges: NDArray[Any],
    edge_starts: NDArray[Any],
    n_threads: int,
    bins: NDArray[Any],
) -> None: ...

class TreeOptions:
    def __init__(self, **options: Any) -> None: ...

def grow_dense(
    cells: NDArray[Any],
    shape: tuple[int, int, int],
    centres: NDArray[Any],
    centre_starts: NDArray[Any],
    any_missing: bool,
    class_starts: NDArray[Any],
    starts: NDArray[Any],
    classes: NDArray[Any],
    symbols: NDArray[Any],
    first: int,
    n_symbols: int,
    weights: NDArray[Any] | None,
    balance_symbols: bool,
    options: TreeOptions,
    n_threads: int,
) -> tuple[Any, ...]: ...
def grow_sparse(
    parts: tuple[NDArray[Any], ...],
    centres: NDArray[Any],
    centre_starts: NDArray[Any],
    any_missing: bool,
    class_starts: NDArray[Any],
    starts: NDArray[Any],
    classes: NDArray[Any],
    symbols: NDArray[Any],
    first: int,
    n_symbols: int,
    weights: NDArray[Any] | None,
    balance_symbols: bool,
    options: TreeOptions,
    n_threads: int,
) -> tuple[Any, ...]: ...
def mark_dense(
    cells: NDArray[Any],
    shape: tuple[int, int, int],
    zero_bins: NDArray[Any],
    n_threads: int,
    marks: NDArray[Any],
) -> None: ...
def mark_sparse(parts: tuple[NDArray[Any], ...], n_threads: int, marks: NDArray[Any]) -> None: ...
def walk_dense(
    cells: NDArray[Any],
    shape: tuple[int, int, int],
    n_features: int,
    splits: NDArray[Any],
    starts: NDArray[Any],
    roots: NDArray[Any],
    n_threads: int,
    out: NDArray[Any],
) -> None: ...
def walk_sparse(
    parts: tuple[NDArray[Any], ...],
    splits: NDArray[Any],
    starts: NDArray[Any],
    roots: NDArray[Any],
    n_threads: int,
    out: NDArray[Any],
) -> None: ...

class LinearOptions:
    def __init__(self, **options: Any) -> None: ...

def fit_blocks_dense(
    X: NDArray[Any],
    given: tuple[NDArray[Any], ...],
    signs: NDArray[Any],
    columns: NDArray[Any],
    first: int,
    options: LinearOptions,
    n_threads: int,
    fitted: tuple[NDArray[Any], ...],
    states: NDArray[Any] | None,
) -> None: ...
def fit_newton_dense(
    X: NDArray[Any],
    given: tuple[NDArray[Any], ...],
    signs: NDArray[Any],
    first: int,
    options: LinearOptions,
    n_threads: int,
    fitted: tuple[NDArray[Any], ...],
    warm: bool,
) -> None: ...
def fit_grams_dense(
    X: NDArray[Any],
    given: tuple[NDArray[Any], ...],
    n_groups: int,
    starts: NDArray[Any],
    classes: NDArray[Any],
    signs: NDArray[Any],
    first: int,
    options: LinearOptions,
    n_threads: int,
    fitted: tuple[NDArray[Any], ...],
) -> None: ...
def answer_dense(
    X: NDArray[Any],
    weights: NDArray[Any],
    intercepts: NDArray[Any],
    first: int,
    columns: tuple[Any, ...],
    what: int,
    n_threads: int,
    out: NDArray[Any],
) -> None: ...
def fit_blocks_sparse(
    parts: tuple[NDArray[Any], ...],
    n_features: int,
    given: tuple[NDArray[Any], ...],
    signs: NDArray[Any],
    columns: NDArray[Any],
    first: int,
    options: LinearOptions,
    n_threads: int,
    fitted: tuple[NDArray[Any], ...],
    states: NDArray[Any] | None,
) -> None: ...
def fit_newton_sparse(
    parts: tuple[NDArray[Any], ...],
    n_features: int,
    given: tuple[NDArray[Any], ...],
    signs: NDArray[Any],
    first: int,
    options: LinearOptions,
    n_threads: int,
    fitted: tuple[NDArray[Any], ...],
    warm: bool,
) -> None: ...
def fit_grams_sparse(
    parts: tuple[NDArray[Any], ...],
    n_features: int,
    given: tuple[NDArray[Any], ...],
    n_groups: int,
    starts: NDArray[Any],
    classes: NDArray[Any],
    signs: NDArray[Any],
    first: int,
    options: LinearOptions,
    n_threads: int,
    fitted: tuple[NDArray[Any], ...],
) -> None: ...
def answer_sparse(
    parts: tuple[NDArray[Any], ...],
    n_features: int,
    weights: NDArray[Any],
    intercepts: NDArray[Any],
    first: int,
    columns: tuple[Any, ...],
    what: int,
    n_threads: int,
    out: NDArray[Any],
) -> None: ...
def answer_scores(
    scores: NDArray[Any],
    columns: tuple[Any, ...],
    what: int,
    n_threads: int,
    out: NDArray[Any],
) -> None: ...
