"""The command line: argument parsing and printing, and no work of its own."""

from __future__ import annotations

import sys
from typing import Annotated

try:
    import typer
    from rich import box
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
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Decides the data, the codes and the columns.")] = 0,
) -> None:
    """Fit N-ary ECOC beside its rivals on two small data sets and print one table."""
    if jobs == 0:
        raise typer.BadParameter(
            "must be an integer other than 0; -1 takes as many as there are cores.", param_hint="--jobs"
        )
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
    """One table of at most 80 characters a line, a section for each data set."""
    table = Table(
        title="decision-tree columns, Hamming decoding",
        caption="L x N: columns x symbols; rho: the smallest distance between two codewords",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("method", no_wrap=True)
    for name in ("L x N", "accuracy", "fit s", "predict s", "model", "rho"):
        table.add_column(name, justify="right", no_wrap=True)
    for data in dict.fromkeys(result.data for result in results):
        mine = [result for result in results if result.data == data]
        best = max(result.accuracy for result in mine)
        table.add_row(f"[italic]{data}, K={mine[0].n_classes}[/italic]")
        for result in mine:
            accuracy = f"{result.accuracy:.1%}"
            table.add_row(
                result.method,
                f"{result.n_columns:,} x {result.n_symbols}",
                f"[bold]{accuracy}[/bold]" if result.accuracy == best else accuracy,
                f"{result.fit_seconds:.2f}",
                f"{result.predict_seconds:.2f}",
                _size(result.model_bytes),
                f"{result.rho:g}",
            )
        table.add_section()
    return table


def _size(n_bytes: int) -> str:
    """'532 B', '7.3 kB', '46.0 MB', '1.2 GB'."""
    size, units = float(n_bytes), ["B", "kB", "MB", "GB"]
    while size >= 999.95 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{n_bytes} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


def main() -> None:
    """The `nary` command."""
    app()
