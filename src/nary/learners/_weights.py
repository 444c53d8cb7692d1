"""The weight of each row: that of the sample, times what `class_weight` gives its class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._check import unknown_name
from ..columns import Columns

CLASS_WEIGHTS = ("balanced", "balanced_symbols")


def check(class_weight: Any) -> None:
    """Refuses what is no `class_weight`."""
    if isinstance(class_weight, str) and class_weight not in CLASS_WEIGHTS:
        raise unknown_name("class_weight", class_weight, CLASS_WEIGHTS)
    if not isinstance(class_weight, (str, dict, type(None))):
        raise TypeError(
            f"class_weight must be one of {', '.join(CLASS_WEIGHTS)}, a dict from labels to weights, or None; got "
            f"{class_weight!r}."
        )


def row_weights(
    class_weight: Any, columns: Columns, sample_weight: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """One weight a row; None: all weigh 1. What "balanced_symbols" asks for differs by column and is not in them."""
    if class_weight in (None, "balanced_symbols"):
        return sample_weight
    of_row = np.ones(columns.n_rows) if sample_weight is None else sample_weight
    if isinstance(class_weight, dict):
        of_class = _of_labels(class_weight, columns.classes)
    else:
        totals = np.bincount(columns.y, of_row, minlength=columns.code.n_classes)
        of_class = np.divide(
            of_row.sum() / np.count_nonzero(totals), totals, out=np.ones_like(totals), where=totals > 0
        )
    return np.asarray(of_row * of_class[columns.y])


def _of_labels(weights: dict[Any, float], classes: NDArray[Any] | None) -> NDArray[np.float64]:
    if classes is None:
        raise ValueError("class_weight as a dict needs the labels; use the learner through NaryClassifier.")
    labels = classes.tolist()
    unknown = [label for label in weights if label not in labels]
    if unknown:
        raise ValueError(f"class_weight must name classes of y; got {unknown[:5]}. Classes: {labels[:10]}.")
    try:
        given = np.array([float(weights.get(label, 1.0)) for label in labels])
    except (TypeError, ValueError) as error:
        raise TypeError(f"class_weight must give numbers to labels; got {weights!r}.") from error
    if not (np.isfinite(given).all() and given.min() >= 0 and given.max() > 0):
        raise ValueError(f"class_weight must give weights of at least 0, one of them above; got {weights!r}.")
    return given
