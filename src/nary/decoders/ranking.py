"""The best classes of each row by class cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def smallest(costs: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """The places of each row's k smallest costs, smallest first, equal ones in order: (rows, k)."""
    n_rows, K = costs.shape
    if k == K:
        return np.argsort(costs, axis=1, kind="stable")
    # Of the costs equal to the k-th smallest the first ones are taken: whatever partition took of them is not used.
    limit = np.partition(costs, k - 1, axis=1)[:, k - 1 : k]
    below, equal = costs < limit, costs == limit
    spare = k - below.sum(axis=1, keepdims=True)
    taken = below | (equal & (np.cumsum(equal, axis=1) <= spare))
    places = np.nonzero(taken)[1].reshape(n_rows, k)
    order = np.argsort(np.take_along_axis(costs, places, axis=1), axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1)
