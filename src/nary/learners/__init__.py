"""Column learners: one contract; native trees, and PerColumn, which puts any scikit-learn classifier behind it."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier

from ._base import Learner, Output
from .per_column import PerColumn
from .trees import Trees

__all__ = ["Learner", "Output", "PerColumn", "Trees", "as_learner"]


def as_learner(estimator: Any) -> Learner:
    """The learner that `estimator` stands for: itself, a classifier per column, or the default for None."""
    if estimator is None:
        return Trees()
    if isinstance(estimator, Learner):
        return estimator
    expected = "a scikit-learn classifier, a learner from nary.learners, or None"
    if isinstance(estimator, type):
        raise TypeError(
            f"estimator must be {expected}; got the class {estimator.__name__}. Write {estimator.__name__}()."
        )
    if not hasattr(estimator, "__sklearn_tags__") or not hasattr(estimator, "fit"):
        raise TypeError(
            f"estimator must be {expected}; got {estimator!r}. Give an object such as DecisionTreeClassifier()."
        )
    if not is_classifier(estimator):
        raise TypeError(
            f"estimator must be {expected}; got {type(estimator).__name__}, which is not a classifier. "
            "Give a classifier: columns are classification problems."
        )
    return PerColumn(estimator)
