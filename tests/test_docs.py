"""The documents keep their word: examples run, links lead somewhere, and figures are the scripts' own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
README = (ROOT / "README.md").read_text()


def test_the_examples_of_the_readme_run(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(block, names)
    printed = capsys.readouterr().out
    assert float(printed.split()[0]) > 0.9
    assert "error <= 2 L B-bar / rho" in printed


def test_the_first_example_is_twelve_lines() -> None:
    block = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    assert len(block.strip().splitlines()) <= 12


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(("name", "text"), re.findall(r"<!-- table: (\S+) -->\n(.*?)<!-- end -->", README, re.DOTALL))
def test_tables_of_the_readme_are_the_scripts_output(name: str, text: str) -> None:
    assert text.strip() == (ROOT / name).read_text().strip()


def test_commands_named_in_the_documents_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        for line in re.findall(r"^make ([a-z ]+?)(?: *#.*)?$", page.read_text(), re.MULTILINE):
            assert set(line.split()) <= targets, f"{page.name}: make {line}"
