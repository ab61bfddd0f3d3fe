"""``gridsched plot``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from gridsched.cli.options import command_group, with_options
from gridsched.cli.output import ForceOption, QuietOption, check_targets, figure_files
from gridsched.errors import InputError
from gridsched.export.archive import Export
from gridsched.export.export import read_export
from gridsched.model.tariff import Tariff

plot_app = command_group("Each figure is saved with its data: `gantt.png` and `gantt.csv`.")

_EPILOG = """Examples:

gridsched run {run} --export out

gridsched plot {plot}
"""
_BAG = "--platform platforms/ex_a.xml --workload examples/ex_a.csv"
_PRICED = "--workload examples/bags.toml --scheduler lp_rolling --price 1 --prices examples/prices.csv"
_GREEN = "--platform examples/two_sites.xml --workload examples/two_sites_day.csv --carbon examples/sites.csv"
_DAY = "--workload examples/utility_small.toml --scheduler max_max_upe"


@dataclass
class FigureOptions:
    """What is drawn from, and where to."""

    export: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of 'gridsched run --export'.")]
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Figure to write: .png, .svg or .pdf.")]
    force: ForceOption = False
    quiet: QuietOption = False


@plot_app.command(epilog=_EPILOG.format(run=_BAG, plot="gantt out -o gantt.svg"))
@with_options(FigureOptions, before=2)
def gantt(options: FigureOptions) -> None:
    """Draw which host executed which task when.

    Cancelled and killed executions are hatched, times in which a host is off are grey; each core
    of a host has a lane.
    """
    _draw("gantt", options)


@plot_app.command(epilog=_EPILOG.format(run=_BAG, plot="power out -o power.png --force"))
@with_options(FigureOptions, before=2)
def power(options: FigureOptions) -> None:
    """Draw the power of all computing hosts over time, by what they do, and its energy."""
    _draw("power", options)


@plot_app.command(epilog=_EPILOG.format(run=_DAY, plot="trace out -o trace.png --step-s 600"))
@with_options(FigureOptions, before=2)
def trace(
    options: FigureOptions,
    step_s: Annotated[
        float | None,
        typer.Option(metavar="S", help="Length of a step; default 20 min, in runs of less than a day less."),
    ] = None,
) -> None:
    """Draw energy and utility so far, mean power, and tasks over time, step by step.

    With an energy budget, energy and utility begin anew in each of its periods.
    """
    _draw("trace", options, step_s=step_s)


@plot_app.command(epilog=_EPILOG.format(run=_PRICED, plot="prices out -o prices.png"))
@with_options(FigureOptions, before=2)
def prices(options: FigureOptions) -> None:
    """Draw what a kWh costs, power, and cost and income so far, of a run with `--prices`.

    Or cost so far alone, of a run with `--money-budget`.
    """
    _draw("prices", options)


@plot_app.command(epilog=_EPILOG.format(run=_GREEN, plot="carbon out -o carbon.png"))
@with_options(FigureOptions, before=2)
def carbon(options: FigureOptions) -> None:
    """Draw power, its carbon intensity at each site, and energy and carbon so far."""
    _draw("carbon", options)


def _draw(kind: str, options: FigureOptions, **others: Any) -> None:
    from gridsched.figures.figure_file import draw_figure  # matplotlib is slow to load

    files, folder = figure_files(options.output), options.export
    inputs = sorted(folder.iterdir()) if folder.is_dir() else []
    check_targets({"-o": files}, inputs, force=options.force)
    export = read_export(folder)
    title = title_of(export)
    if kind == "prices":
        others["tariff"] = _tariff_of(export, folder)
    draw_figure(kind, "run", export.trace, options.output, title=title, force=options.force, **others)
    if not options.quiet:
        print(f"Figure: {files[0]}, its data: {files[1]}")


def _tariff_of(export: Export, folder: Path) -> Tariff | None:
    try:
        return export.tariff
    except InputError as error:
        raise InputError(f"{folder}: {error}") from None


def title_of(export: Export) -> str:
    """Return who was run on what."""
    scheduler = export.provenance.get("scheduler")
    run = f"{export.workload_name} on {export.trace.platform.name}"
    return f"{scheduler}: {run}" if isinstance(scheduler, str) else run
