"""The command line: argument parsing and printing, and no work of its own."""

from __future__ import annotations

import sys
from typing import Annotated

try:
    import typer
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Table
except ImportError as error:  # pragma: no cover - only without the extra
    sys.exit(f"the nary command needs the packages of the extra 'cli': pip install 'nary[cli]' ({error})")

from . import __version__
from .bench import demo as demo_

app = typer.Typer(help="Classification with many classes by N-ary error-correcting output codes.", no_args_is_help=True)


@app.callback()
def _root() -> None:
    """Keeps commands named even while there is only one."""


@app.command()
def version() -> None:
    """Print nary's version."""
    Console().print(__version__, highlight=False)


@app.command()
def demo(
    jobs: Annotated[int, typer.Option(help="Columns fitted at the same time; -1: as many as there are cores.")] = -1,
    seed: Annotated[int, typer.Option(help="Decides the data, the codes and the columns.")] = 0,
) -> None:
    """Fit N-ary ECOC beside its rivals on two small data sets and print one table."""
    console, results = Console(), []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("fitting", total=2 * len(demo_.METHODS))
        for result in demo_.run_all(jobs, seed):
            results.append(result)
            progress.update(task, advance=1, description=f"{result.data}: {result.method}")
    console.print(_table(results))
    console.print(demo_.verdict(results), highlight=False)


def _table(results: list[demo_.Result]) -> Table:
    table = Table(title="decision-tree columns, Hamming decoding")
    table.add_column("data")
    table.add_column("method")
    for name in ("columns", "symbols", "accuracy", "fit s", "predict s", "model bytes", "rho"):
        table.add_column(name, justify="right")
    for row, result in enumerate(results):
        best = max(r.accuracy for r in results if r.data == result.data)
        table.add_row(
            f"{result.data}, K={result.n_classes}",
            result.method,
            f"{result.n_columns:,}",
            str(result.n_symbols),
            f"[bold]{result.accuracy:.1%}[/bold]" if result.accuracy == best else f"{result.accuracy:.1%}",
            f"{result.fit_seconds:.2f}",
            f"{result.predict_seconds:.2f}",
            f"{result.model_bytes:,}",
            f"{result.rho:g}",
            end_section=row + 1 < len(results) and results[row + 1].data != result.data,
        )
    return table


def main() -> None:
    """The `nary` command."""
    app()
