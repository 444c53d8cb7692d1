"""The one door to the compiled core: every argument is checked here, so the core may trust its shapes and ranges."""

from ._core import TILE, level, levels, use_level
from .fold import (
    MAX_CELLS,
    FoldOrder,
    Totals,
    add_costs,
    add_symbols,
    empty_totals,
    finish_costs,
    nearest_classes,
)
from .words import distances, pad_words, search_random

__all__ = [
    "MAX_CELLS",
    "TILE",
    "FoldOrder",
    "Totals",
    "add_costs",
    "add_symbols",
    "distances",
    "empty_totals",
    "finish_costs",
    "level",
    "levels",
    "nearest_classes",
    "pad_words",
    "search_random",
    "use_level",
]
