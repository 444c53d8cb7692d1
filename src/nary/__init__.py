"""Classification with many classes by N-ary error-correcting output codes."""

from .matrix import UNUSED, CodeMatrix

__all__ = ["UNUSED", "CodeMatrix"]
