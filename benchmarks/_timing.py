"""Side-by-side timings: rivals take turns, and the median of each is kept."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Mapping


def side_by_side(rivals: Mapping[str, Callable[[], object]], rounds: int = 5) -> dict[str, float]:
    """Median seconds of each rival; they run in turns, so that a noisy moment falls on all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(rounds):
        for name, run in rivals.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def machine() -> str:
    """One line about where the figures come from."""
    import numpy
    import sklearn

    from nary import _kernels

    model = platform.processor() or platform.machine()
    with open("/proc/cpuinfo") as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), model)
    return (
        f"{model}, level {_kernels.level()}, Python {platform.python_version()}, NumPy {numpy.__version__}, "
        f"scikit-learn {sklearn.__version__}"
    )
