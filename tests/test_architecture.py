"""The house: files import only from files above them, the core has one door, and importing nary is cheap."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nary

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "nary"

# The layout of the design, in the order of the flow: a room imports only from rooms above it.
ORDER = [
    "_native",
    "_check",
    "_reference",
    "_kernels",
    "measures",
    "_validity",
    "matrix",
    "codes",
    "columns",
    "learners",
    "decoders",
    "classifier",
    "selection",
    "persistence",
    "distributed",
    "datasets",
    "bench",
    "plotting",
    "cli",
]
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def room(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """The rooms of nary that a file imports from, wherever in it the import stands."""
    depth = len(path.relative_to(SOURCE).parts) - 1
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            if node.level == depth + 1:  # from nary itself
                rooms |= {node.module.split(".")[0]} if node.module else set(names)
            elif node.level == 0 and (node.module or "").split(".")[0] == "nary":
                rest = (node.module or "").split(".")[1:]
                rooms |= {rest[0]} if rest else set(names)
        elif isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("nary.")}
    return rooms - {"__version__"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_imports_only_from_rooms_above_it(path: Path) -> None:
    assert room(path) in ORDER, f"{room(path)} has no place in the order of the flow: give it one"
    above = ORDER[: ORDER.index(room(path)) + 1]
    assert imported_rooms(path) <= set(above)


def test_the_import_reader_sees_every_form_of_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    inner = tmp_path / "codes" / "x.py"
    inner.parent.mkdir()
    inner.write_text(
        "import nary.cli\nfrom nary.bench import demo\nfrom nary import learners\nfrom .. import _kernels\n"
        "from ..matrix import UNUSED\nfrom ._base import Design\nimport numpy\n"
    )
    assert imported_rooms(inner) == {"cli", "bench", "learners", "_kernels", "matrix"}


def test_only_the_door_imports_the_core() -> None:
    importers = [path.relative_to(SOURCE) for path in MODULES if "_native" in imported_rooms(path)]
    assert [str(path) for path in importers] == ["_kernels/_core.py"]


def test_every_module_opens_with_a_sentence() -> None:
    for path in SOURCE.rglob("*.py"):
        doc = ast.get_docstring(ast.parse(path.read_text()))
        assert doc is not None, path
        assert doc.split("\n\n")[0].endswith("."), path


def test_public_names_exist_and_nothing_else_is_public() -> None:
    assert all(hasattr(nary, name) for name in nary.__all__)
    modules = {path.stem for path in SOURCE.glob("*.py")} | {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    shown = {name for name in vars(nary) if not name.startswith("_")} - modules
    assert shown <= set(nary.__all__)


def test_version_agrees_with_the_project_file() -> None:
    found = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found is not None
    assert found[1] == nary.__version__


def test_level_files_include_nothing_that_a_linker_could_share_between_levels() -> None:
    allowed = {
        "<cstddef>",
        "<cstdint>",
        '"kernels.h"',
        '"code.inc.h"',
        '"counts.inc.h"',
        '"fold.inc.h"',
        '"histogram.inc.h"',
        '"linear.h"',
        '"descent.inc.h"',
        '"joint.inc.h"',
        '"machine_rows.inc.h"',
        '"newton.inc.h"',
        '"losses.inc.h"',
        '"smo.inc.h"',
    }
    for name in ("level.cpp", *(header.strip('"') for header in allowed if header.startswith('"'))):
        included = set(re.findall(r"^#include (.+)$", (ROOT / "native" / name).read_text(), re.MULTILINE))
        assert included <= allowed, name


def test_the_core_counts_in_fixed_widths() -> None:
    for path in (ROOT / "native").iterdir():
        assert not re.search(r"\b(unsigned )?long\b", re.sub(r"//.*", "", path.read_text())), path.name


IMPORT_TIMES = """
import sys, time
import numpy, scipy.sparse, scipy.special, joblib, sklearn.base, sklearn.tree, sklearn.utils.validation
before = set(sys.modules)
start = time.perf_counter()
import nary
seconds = time.perf_counter() - start
heavy = {"pandas", "polars", "matplotlib", "typer", "rich", "dask", "ray"} & (set(sys.modules) - before)
print(seconds, *heavy)
"""


def test_importing_nary_is_cheap_beyond_scikit_learn() -> None:
    runs = [
        subprocess.run([sys.executable, "-c", IMPORT_TIMES], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    answers = [run.stdout.split() for run in runs]
    assert all(len(answer) == 1 for answer in answers), f"heavy imports: {answers}"
    assert min(float(answer[0]) for answer in answers) < 0.3


def test_no_committed_file_names_an_index_or_a_machine_path() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    here = "tests/test_architecture.py"
    wrong = re.compile(r"https?://[^ ]*(pypi|simple|mirror)|(^|[^a-z.])/(root|work|tmp)/")
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if name != here and path.exists():
            assert not wrong.search(path.read_text(errors="replace")), name
