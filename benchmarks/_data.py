"""The data sets that benchmarks share, and their splits."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Split(NamedTuple):
    """Labelled rows to learn from and others to judge by, dense or CSR; classes count from 0."""

    X: Any
    y: NDArray[np.int32]
    X_test: Any
    y_test: NDArray[np.int32]


def located(file: str) -> Path:
    path = Path(os.environ.get("NARY_DATA", "../shared/data")) / file
    if not path.exists():
        raise SystemExit(f"{path} is not there: set NARY_DATA to the folder that holds {file}.")
    return path


@cache
def whole(name: str) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    with np.load(located(f"{name}.npz"), allow_pickle=False) as file:
        return file["X"].astype(np.float32), np.unique(file["y"], return_inverse=True)[1].astype(np.int32)


@cache
def split(name: str, n_train: int) -> Split:
    X, y = whole(name)
    order = np.random.default_rng(0).permutation(y.size)
    train, test = order[:n_train], order[n_train:]
    return Split(X[train], y[train], X[test], y[test])


@cache
def text(name: str) -> Split:
    """The official split of a set of texts; rows are tf-idf of words, CSR."""
    spec = importlib.util.spec_from_file_location("load", located("load.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    X, y, part = module.load(name)
    train, test = part == 0, part == 1
    return Split(X[train], y[train], X[test], y[test])
