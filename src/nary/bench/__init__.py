"""Comparisons that nary runs of itself: the demo."""
