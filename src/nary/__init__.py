"""Classification with many classes by N-ary error-correcting output codes."""

from . import codes, decoders, learners, measures
from .classifier import NaryClassifier
from .matrix import UNUSED, CodeMatrix

__all__ = ["UNUSED", "CodeMatrix", "NaryClassifier", "codes", "decoders", "learners", "measures"]
__version__ = "0.1.0"
