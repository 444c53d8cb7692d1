"""What the tests share: repeatable Hypothesis runs, every CPU level, and the real data sets where they are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from nary import _kernels

settings.register_profile(
    "nary", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("nary")


@pytest.fixture(params=_kernels.levels())
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the test at each CPU level of this machine."""
    before = _kernels.level()
    _kernels.use_level(request.param)
    yield request.param
    _kernels.use_level(before)


@pytest.fixture(scope="session")
def letter() -> tuple[np.ndarray, np.ndarray]:
    """The letter data set: 20,000 rows, 26 classes."""
    folder = os.environ.get("NARY_DATA")
    if not folder:
        pytest.skip("NARY_DATA does not name the folder of real data sets")
    with np.load(Path(folder) / "letter.npz", allow_pickle=False) as file:
        return file["X"].astype(np.float64), file["y"]
