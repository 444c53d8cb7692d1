"""The demo and its command: every method on every data set, one table, one sentence that follows from it."""

from __future__ import annotations

import dataclasses
import re
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
    many = [
        dataclasses.replace(r, data="many classes", n_classes=100, fit_seconds=12.345, model_bytes=1_234_567_890)
        for r in results
    ]
    many[1] = dataclasses.replace(many[1], n_columns=4950, rho=2475.5)
    results = results + many
    monkeypatch.setattr(demo, "run_all", lambda jobs, seed: iter(results))
    run = CliRunner(env={"COLUMNS": "80"}).invoke(cli.app, ["demo"])
    assert run.exit_code == 0
    lines = [line.strip() for line in run.output.splitlines()]
    assert max(map(len, run.output.splitlines())) <= 80
    heading = next(line for line in lines if line.startswith("method"))
    assert re.split(r"  +| (?=accuracy|fit|predict|model|rho)", heading) == [
        "method", "L x N", "accuracy", "fit s", "predict s", "model", "rho",
    ]  # fmt: skip
    sections = [lines.index("digits, K=10"), lines.index("many classes, K=100")]
    for i, r in enumerate(results):
        (line,) = [line for line in lines[sections[i // 5] :][:6] if line.startswith(f"{r.method} ")]
        figures = f"{r.n_columns:,} x {r.n_symbols}", f"{r.accuracy:.1%}", f"{r.fit_seconds:.2f}"
        rest = f"{r.predict_seconds:.2f}", cli._size(r.model_bytes), f"{r.rho:g}"
        assert line.split() == " ".join([r.method, *figures, *rest]).split()
    assert " ".join(demo.verdict(results).split()) in " ".join(run.output.split())


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_949, "999.9 kB"), (999_950, "1.0 MB"), (46_049_999, "46.0 MB")],
)
def test_sizes_for_people(n_bytes: int, text: str) -> None:
    assert cli._size(n_bytes) == text
    assert cli._size(12_340_000_000_000) == "12340.0 GB"


def test_no_jobs_are_a_mistake_of_usage() -> None:
    run = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, ["demo", "--jobs", "0"])
    assert run.exit_code == 2
    assert "must be an integer other than 0" in run.output
    assert "Traceback" not in run.output


def test_the_command_knows_its_version_and_helps() -> None:
    assert CliRunner().invoke(cli.app, ["version"]).output.strip() == __version__
    assert "demo" in CliRunner().invoke(cli.app, ["--help"]).output


def test_without_the_extra_the_command_says_what_to_install() -> None:
    command = "import sys; sys.modules['typer'] = None; from nary.cli import main; main()"
    run = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "pip install 'nary[cli]'" in run.stderr
