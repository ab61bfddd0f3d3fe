"""``gridsched optimize``: linear programmes on bags by type (paper 003)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gridsched.cli.optimize_options import OptimizeOptions, with_optimize_options
from gridsched.cli.output import (
    OUTPUT_PANEL,
    ForceOption,
    JsonOption,
    OutputOption,
    QuietOption,
    check_targets,
    figure_files,
    table_file,
    warn,
    write_rows,
)
from gridsched.cli.tables import console
from gridsched.errors import InputError
from gridsched.files.json_files import json_text

if TYPE_CHECKING:  # scipy's solver is slow to load
    from gridsched.optimize.answers import FrontAnswer, ProfitAnswer

optimize_app = typer.Typer(
    name="optimize",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="What is possible at best: profit, energy and makespan by linear programming.",
    epilog="The programmes look at types of tasks and machines and at their numbers, not at single "
    "tasks: 10^9 tasks take as long as 10^4 (docs/profit.md).",
)
_PARETO_EPILOG = """Examples:

gridsched optimize pareto --workload examples/profit.toml --plot front.png

gridsched optimize pareto --platform platforms/ex_a.xml --workload examples/ex_a.csv
-o bag_front.csv

gridsched optimize pareto --etc examples/profit_etc.csv --apc examples/profit_apc.csv
--counts examples/profit_counts.csv --gamma 1.2

Exit status: 0 fine, 2 bad input.
"""
_PROFIT_EPILOG = """Examples:

gridsched optimize profit --workload examples/profit.toml --gamma 1.2 --plot profit.png

gridsched optimize profit --workload examples/profit.toml --price 20 --energy-cost 1e-7 --pue 1.4
--power-cap-w 55e3

gridsched optimize profit --etc examples/profit_etc.csv --apc examples/profit_apc.csv
--counts examples/profit_counts.csv --price 300 --json

Exit status: 0 fine, 1 "do not run": every bag would lose more than standing still, 2 bad input.
"""
PlotOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", rich_help_panel=OUTPUT_PANEL,
        help="Draw front, feasible region and profit (.png, .svg, .pdf; data beside it).",
    ),
]  # fmt: skip


@optimize_app.command(epilog=_PARETO_EPILOG)
@with_optimize_options
def pareto(
    options: OptimizeOptions,
    points: Annotated[
        int, typer.Option(min=2, metavar="N", help="Corners of the front, at most.")
    ] = 200,
    plot: PlotOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Energy against makespan: all corners of the front that no schedule is below.

    Each comes with a schedule of whole tasks; with a price, with its profit per second.
    """
    from gridsched.cli.optimize_tables import print_front, print_written
    from gridsched.optimize.answers import front_answer

    _check_targets(options, plot, output, force=force)
    named = options.bag()
    answer = front_answer(named, options.tariff(named), most_points=points)
    if output is not None:
        write_rows(output, answer.rows(), answer.as_dict(), force=force)
    _plot(plot, answer, None, force=force)
    warn(named.notes)
    if json:
        print(json_text(answer.as_dict()), end="")
    elif not quiet:
        print_front(console(), answer)
        print_written(console(), output, plot)


@optimize_app.command(epilog=_PROFIT_EPILOG)
@with_optimize_options
def profit(
    options: OptimizeOptions,
    power_cap_w: Annotated[
        float | None,
        typer.Option(
            "--power-cap-w", metavar="W", rich_help_panel="Limits",
            help="Largest mean power drawn from the grid, PUE included.",
        ),
    ] = None,
    least_rate_per_s: Annotated[
        float,
        typer.Option(
            "--least-rate-per-s", "--r-min", metavar="R", rich_help_panel="Limits",
            help="Bags per second that have been promised.",
        ),
    ] = 0.0,
    plot: PlotOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:  # fmt: skip
    """The largest profit per second if such bags follow each other, and a schedule that nears it.

    Says what a machine more, a watt more and a task less are worth. -o writes how many tasks of
    each type go to which machines.
    """
    from gridsched.cli.optimize_tables import print_profit, print_written
    from gridsched.optimize.answers import front_answer, profit_answer

    _check_targets(options, plot, output, force=force)
    named = options.bag()
    tariff = options.tariff(named)
    if tariff is None:
        raise InputError("Missing option '--price' (what the bag pays) or '--gamma'.")
    answer = profit_answer(
        named, tariff, power_cap_w=math.inf if power_cap_w is None else power_cap_w,
        least_rate_per_s=least_rate_per_s,
    )  # fmt: skip
    if output is not None:
        write_rows(output, answer.places(), answer.as_dict(), force=force)
    if plot is not None:
        _plot(plot, front_answer(named), answer, force=force)
    warn(answer.notes)
    if json:
        print(json_text(answer.as_dict()), end="")
    elif not quiet:
        print_profit(console(), answer)
        print_written(console(), output, plot)
    if not answer.plan.runs:
        raise typer.Exit(1)


def _check_targets(
    options: OptimizeOptions, plot: Path | None, output: Path | None, *, force: bool
) -> None:
    targets = {"--plot": figure_files(plot), "-o": table_file(output)}
    check_targets(targets, options.inputs, force=force)


def _plot(
    plot: Path | None, answer: FrontAnswer, profit: ProfitAnswer | None, *, force: bool
) -> None:
    if plot is None:
        return
    from gridsched.figures.figure_file import draw_figure  # matplotlib is slow to load
    from gridsched.optimize.answers import landscape

    title = answer.named.describe()
    draw_figure("front", "landscape", landscape(answer, profit), plot, title=title, force=force)
