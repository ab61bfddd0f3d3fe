"""``gridsched plot`` and ``view``: figures and pages of runs that were exported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from gridsched.cli.options import command_group, with_options
from gridsched.cli.output import ForceOption, QuietOption, check_targets, figure_files, output_option, put
from gridsched.errors import InputError, shorten
from gridsched.export.archive import Export
from gridsched.export.export import read_export
from gridsched.model.tariff import Tariff
from gridsched.runs.figure_kinds import FigureKind, figure_kinds

plot_app = command_group("Each figure is saved with its data: `gantt.png` and `gantt.csv`.")


PageOption = Annotated[Path, output_option(help="Page to write (.html).")]


@dataclass
class FigureOptions:
    """What is drawn from, and where to."""

    export: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of 'gridsched run --export'.")]
    output: Annotated[Path, output_option(help="Figure to write: .png, .svg or .pdf.")]
    force: ForceOption = False
    quiet: QuietOption = False


@plot_app.command()
@with_options(FigureOptions, before=2)
def gantt(options: FigureOptions) -> None:
    """Draw which host executed which task when.

    Cancelled and killed executions are hatched; times in which a host is off are gray. Each core of a
    host has a lane.

    Examples
    --------
    gridsched run --platform platforms/ex_a.xml --workload examples/ex_a.csv --export out

    gridsched plot gantt out -o gantt.svg
    """
    _draw("gantt", options)


@plot_app.command()
@with_options(FigureOptions, before=2)
def graph(options: FigureOptions) -> None:
    """Draw which task waits for which, in layers, with their hosts and the longest path.

    Examples
    --------
    gridsched run --platform platforms/ex_a.xml --workload examples/workflow.toml --driver reference --export out

    gridsched plot graph out -o graph.svg
    """
    _draw("graph", options)


@plot_app.command()
@with_options(FigureOptions, before=2)
def power(options: FigureOptions) -> None:
    """Draw the power of all computing hosts over time, by what they do, and its energy.

    Examples
    --------
    gridsched run --platform platforms/ex_a.xml --workload examples/ex_a.csv --export out

    gridsched plot power out -o power.png --force
    """
    _draw("power", options)


@plot_app.command()
@with_options(FigureOptions, before=2)
def trace(
    options: FigureOptions,
    step_s: Annotated[
        float | None,
        typer.Option(metavar="S", help="Length of a step; default: 20 min, less in runs of less than a day."),
    ] = None,
) -> None:
    """Draw energy and utility so far, mean power, and tasks over time, step by step.

    With an energy budget, energy and utility start again at 0 in each of its periods.

    Examples
    --------
    gridsched run --workload examples/utility_small.toml --scheduler max_max_upe --export out

    gridsched plot trace out -o trace.png --step-s 600
    """
    _draw("trace", options, step_s=step_s)


@plot_app.command()
@with_options(FigureOptions, before=2)
def prices(options: FigureOptions) -> None:
    """Draw the price of a kWh, power, and cost and income so far, of a run with `--prices`.

    Or cost so far alone, of a run with `--money-budget`.

    Examples
    --------
    gridsched run
    --workload examples/bags.toml --scheduler lp_rolling --price 1 --prices examples/prices.csv --export out

    gridsched plot prices out -o prices.png
    """
    _draw("prices", options)


@plot_app.command()
@with_options(FigureOptions, before=2)
def carbon(options: FigureOptions) -> None:
    """Draw power, its carbon intensity at each site, and energy and carbon so far.

    Examples
    --------
    gridsched run --platform examples/two_sites.xml
    --workload examples/two_sites_day.csv --carbon examples/sites.csv --export out

    gridsched plot carbon out -o carbon.png
    """
    _draw("carbon", options)


@plot_app.command()
@with_options(FigureOptions, before=2)
def traffic(
    options: FigureOptions,
    beside: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="Another run, drawn on the right on the same scales; repeatable."),
    ] = None,
) -> None:
    """Draw the bytes over all links together and over the busiest links, of a run with `--traffic-step-s`.

    A message counts on each link that it crosses. The busiest link is at the top.

    Examples
    --------
    gridsched run --workload examples/halo_jobs.toml --scheduler easy_backfilling --driver reference
    --traffic-step-s 60 --export out

    gridsched plot traffic out -o traffic.png
    """
    _draw("traffic", options, beside or ())


def _add_command(kind: FigureKind) -> None:
    """Add the command of a kind of figures of runs that a plugin adds."""

    @with_options(FigureOptions, before=2)
    def command(options: FigureOptions) -> None:
        _draw(kind.name, options)

    plot_app.command(kind.name, help=kind.sentence)(command)


_OWN = {gantt, graph, power, trace, prices, carbon, traffic}
for _kind in figure_kinds("run").values():
    if _kind.name not in {each.__name__ for each in _OWN}:
        _add_command(_kind)


def _draw(kind: str, options: FigureOptions, beside: Sequence[Path] = (), **others: Any) -> None:
    from gridsched.figures.figure_file import draw_figure  # matplotlib is slow to load

    files, folder = figure_files(options.output), options.export
    inputs = [file for each in (folder, *beside) if each.is_dir() for file in sorted(each.iterdir())]
    check_targets({"-o": files}, inputs, force=options.force)
    export = read_export(folder)
    title = title_of(export)
    if beside:
        exports = [export, *map(read_export, beside)]
        others |= {"beside": [each.trace for each in exports[1:]], "titles": _told_apart(exports)}
        title = title if len({title_of(each) for each in exports}) == 1 else ""
    if kind == "prices":
        others["tariff"] = _tariff_of(export, folder)
    draw_figure(kind, "run", export.trace, options.output, title=title, force=options.force, **others)
    if not options.quiet:
        put(f"Figure: {files[0]}, its data: {files[1]}")


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


def _told_apart(exports: Sequence[Export]) -> list[str]:
    """Return titles of runs: the settings in which they differ, or who was run on what where they differ in none."""
    settings = [
        {
            key: value
            for key, value in each.provenance.items()
            if key != "command" and isinstance(value, str | int | float)
        }
        for each in exports
    ]
    keys = [key for key in settings[0] if len({str(each.get(key)) for each in settings}) > 1]
    if not keys:
        return [title_of(each) for each in exports]
    return [shorten(", ".join(f"{key} {each.get(key)}" for key in keys)) for each in settings]


def view(
    exports: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of 'gridsched run --export'.")],
    output: PageOption,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write an interactive page of a run, or of several on one time axis; needs gridsched[view].

    Examples
    --------
    gridsched run --platform platforms/ex_a.xml --workload examples/ex_a.csv --scheduler lecsa --export lecsa

    gridsched view lecsa -o lecsa.html

    Exit status: 0 fine, 2 bad input.
    """
    from gridsched.runs.result_frames import page_of_traces

    inputs = [file for folder in exports if folder.is_dir() for file in sorted(folder.iterdir())]
    check_targets({"-o": [output]}, inputs, force=force)
    read = [read_export(folder) for folder in exports]
    page_of_traces([(title_of(each), each.trace) for each in read]).save(output, force=force)
    if not quiet:
        put(f"Page: {output}")
