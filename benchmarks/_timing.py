"""Side-by-side timings, in which rivals take turns, memory, and figures beside what is required of them."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import pickle
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

Argument = TypeVar("Argument")


class Counter:
    """A file that only counts what is written."""

    size = 0

    def write(self, part: Any) -> None:
        self.size += memoryview(part).nbytes


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


def bar(what: str, value: float, limit: float, unit: str = " times", most: bool = False) -> bool:
    """Prints a figure beside what is required of it; whether it is met."""
    met = value <= limit if most else value >= limit
    bound = "at most" if most else "at least"
    print(f"    {what:<58}{value:10.3f}{unit}   ({bound} {limit:g} required: {'met' if met else 'MISSED'})")
    return met


def model_bytes(model: Any) -> int:
    counter = Counter()
    pickle.dump(model, counter, protocol=5)
    return counter.size


def resident(line: str) -> float:
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(text.split()[1]) for text in status if text.startswith(line)) * 1024 / 1e6


def peak_of(work: Callable[[], object]) -> float:
    """MB beyond what was held before the work, at its peak."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what was freed before and kept for reuse would hide as much of the work's
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = resident("VmHWM")
    work()
    return resident("VmHWM") - before


def in_fresh_process(work: Callable[[Argument], float], argument: Argument) -> float:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, argument).result()


def cpu_seconds() -> tuple[float, float]:
    """Of this process and its children, and of the whole machine."""
    ticks = [int(part) for part in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    idle = ticks[3] + ticks[4]
    return sum(os.times()[:4]), (sum(ticks[:8]) - idle) / os.sysconf("SC_CLK_TCK")


def quietly(section: Callable[[], bool]) -> bool:
    """Runs a section, and says how busy the machine was with other work."""
    start, (own, all_) = time.perf_counter(), cpu_seconds()
    met = section()
    own_after, all_after = cpu_seconds()
    cores = (all_after - all_ - own_after + own) / (time.perf_counter() - start)
    print(f"    (other work meanwhile took {max(cores, 0):.2f} cores)", flush=True)
    return met


def report(sections: Mapping[str, Callable[[], bool]], jobs: int) -> None:
    """Runs the sections and ends the script, with status 1 where a required figure was missed."""
    print(f"{machine()}, {jobs} threads of {os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}")
    missed = [name for name, section in sections.items() if not quietly(section)]
    print(f"\na required figure was MISSED in: {', '.join(missed)}" if missed else "\nall required figures met")
    raise SystemExit(bool(missed))
