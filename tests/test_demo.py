"""The demo and its command: every method on every data set, one table, one sentence that follows from it."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from nary import __version__, cli
from nary.bench import demo


@pytest.fixture(scope="module")
def small() -> demo.DataSet:
    X, y = load_digits(return_X_y=True)
    return demo.DataSet("digits", X[:400], X[400:800], y[:400], y[400:800])


@pytest.fixture(scope="module")
def results(small: demo.DataSet) -> list[demo.Result]:
    return [demo.run(small, method, n_jobs=1) for method in demo.METHODS]


def test_every_method_is_measured(results: list[demo.Result]) -> None:
    assert [r.method for r in results] == list(demo.METHODS)
    assert [r.n_columns for r in results] == [100, 45, 10, 34, 1]
    assert [r.rho for r in results][1:3] == [23, 2]
    for r in results:
        assert 0.5 < r.accuracy <= 1
        assert r.model_bytes > 1000
        assert r.fit_seconds > 0
        assert r.predict_seconds > 0


def test_the_verdict_names_the_best_rival_and_the_figures(results: list[demo.Result]) -> None:
    said = demo.verdict(results)
    rivals = [r for r in results if r.method != demo.NARY]
    best = max(rivals, key=lambda r: r.accuracy)
    assert best.method in said
    assert f"{best.accuracy:.1%}" in said
    assert f"{results[0].accuracy:.1%}" in said
    losing = [dataclasses.replace(results[0], accuracy=0.01), *rivals]
    assert "answers 1.0% right" in demo.verdict(losing)


def test_the_generated_classes_are_the_same_for_the_same_seed() -> None:
    a, b, c = (demo.make_many_classes(7, 5, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a[0], b[0])
    assert not np.array_equal(a[0], c[0])
    assert np.bincount(a[1]).tolist() == [5] * 7
    both = demo.data_sets(0)
    assert [data.n_classes for data in both] == [10, 100]


def test_the_command_prints_the_table_and_the_sentence(
    monkeypatch: pytest.MonkeyPatch, results: list[demo.Result]
) -> None:
    monkeypatch.setattr(demo, "run_all", lambda jobs, seed: iter(results))
    run = CliRunner(env={"COLUMNS": "160"}).invoke(cli.app, ["demo"])
    assert run.exit_code == 0
    for r in results:
        assert r.method in run.output
        assert f"{r.accuracy:.1%}" in run.output
        assert f"{r.model_bytes:,}" in run.output
    assert " ".join(demo.verdict(results).split()) in " ".join(run.output.split())


def test_the_command_knows_its_version_and_helps() -> None:
    assert CliRunner().invoke(cli.app, ["version"]).output.strip() == __version__
    assert "demo" in CliRunner().invoke(cli.app, ["--help"]).output


def test_without_the_extra_the_command_says_what_to_install() -> None:
    command = "import sys; sys.modules['typer'] = None; from nary.cli import main; main()"
    run = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "pip install 'nary[cli]'" in run.stderr
