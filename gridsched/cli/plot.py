"""``gridsched plot``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gridsched.cli.output import ForceOption, QuietOption, check_targets, figure_files
from gridsched.export.export import Export, read_export

plot_app = typer.Typer(
    name="plot",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Draw figures from an export (`gridsched run ... --export DIR`).",
    epilog="Each figure is saved with its data: `gantt.png` and `gantt.csv`.",
)

_GANTT_EPILOG = """Examples:

gridsched run --platform p.xml --workload bag.csv --export out

gridsched plot gantt out -o gantt.svg
"""
_POWER_EPILOG = """Examples:

gridsched run --platform p.xml --workload bag.csv --export out

gridsched plot power out -o power.png --force
"""
_TRACE_EPILOG = """Examples:

gridsched run --workload day.toml --scheduler max_max_upe --export out

gridsched plot trace out -o trace.png --step-s 600
"""
ExportArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder of 'gridsched run --export'.")
]
FigureOption = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="FILE", help="Figure to write: .png, .svg or .pdf."),
]


@plot_app.command(epilog=_GANTT_EPILOG)
def gantt(
    export: ExportArgument,
    output: FigureOption,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Draw which host executed which task when.

    Cancelled and killed executions are hatched, times in which a host is off are grey; each core
    of a host has a lane.
    """
    from gridsched.figures import figures  # matplotlib takes longer to load than the rest

    _draw(figures.gantt, export, output, force=force, quiet=quiet)


@plot_app.command(epilog=_POWER_EPILOG)
def power(
    export: ExportArgument,
    output: FigureOption,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Draw the power of all computing hosts over time, by what they do, and its energy."""
    from gridsched.figures import figures

    _draw(figures.power, export, output, force=force, quiet=quiet)


@plot_app.command(epilog=_TRACE_EPILOG)
def trace(
    export: ExportArgument,
    output: FigureOption,
    step_s: Annotated[
        float | None,
        typer.Option(
            metavar="S", help="Length of a step; default 20 min, in runs of less than a day less.",
        ),
    ] = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:  # fmt: skip
    """Draw energy and utility so far, mean power, and tasks over time, step by step.

    With an energy budget, energy and utility begin anew in each of its periods.
    """
    from gridsched.figures import figures

    draw = partial(figures.run_trace, step_s=step_s)
    _draw(draw, export, output, force=force, quiet=quiet)


def _draw(
    draw: Callable[..., None], folder: Path, output: Path, *, force: bool, quiet: bool
) -> None:
    files = figure_files(output)
    inputs = sorted(folder.iterdir()) if folder.is_dir() else []
    check_targets({"-o": files}, inputs, force=force)
    export = read_export(folder)
    draw(export.trace, output, title=title_of(export), force=force)
    if not quiet:
        print(f"Figure: {files[0]}, its data: {files[1]}")


def title_of(export: Export) -> str:
    """Return who was run on what."""
    scheduler = export.provenance.get("scheduler")
    run = f"{export.workload_name} on {export.trace.platform.name}"
    return f"{scheduler}: {run}" if isinstance(scheduler, str) else run
