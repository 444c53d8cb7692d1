"""Column learners: one contract; native trees and linear machines, and any scikit-learn classifier a column."""

from __future__ import annotations

from typing import Any

from ._base import Learner, Output
from .linear import Linear
from .per_column import PerColumn, check_classifier
from .ridge import Ridge
from .trees import Trees

__all__ = ["Learner", "Linear", "Output", "PerColumn", "Ridge", "Trees", "as_learner", "default_estimator"]


def default_estimator() -> Any:
    """What learns the columns where nothing else is asked for."""
    return Trees()


def as_learner(estimator: Any) -> Learner:
    """The learner that `estimator` stands for: itself, a classifier per column, or the default for None."""
    if estimator is None:
        estimator = default_estimator()
    if isinstance(estimator, Learner):
        return estimator
    check_classifier(estimator, "estimator must be a scikit-learn classifier, a learner from nary.learners, or None")
    return PerColumn(estimator)
