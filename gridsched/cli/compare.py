"""``gridsched compare``."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from gridsched.analysis.comparison import completed
from gridsched.cli.compare_tables import mapping_event_s, print_comparison
from gridsched.cli.output import (
    OUTPUT_PANEL,
    ForceOption,
    JsonOption,
    OutputOption,
    QuietOption,
    check_targets,
    figure_files,
    one_line,
    say,
    table_file,
    warn,
    write_rows,
)
from gridsched.cli.scenario_options import (
    PAPER_004,
    ScenarioOptions,
    split_ids,
    with_scenario_options,
)
from gridsched.cli.tables import console
from gridsched.errors import GridschedError, InputError, did_you_mean
from gridsched.files.json_files import json_text
from gridsched.metrics import METRICS, Metric
from gridsched.metrics.table import value_of_row
from gridsched.policy.registry import entries
from gridsched.spec.formulas import formula
from gridsched.spec.run import RunResult, check, check_energy_agreement
from gridsched.spec.run_many import run_many
from gridsched.spec.scenario import workload_kinds

SchedulersOption = Annotated[
    str,
    typer.Option(
        "--schedulers", "--scheduler", metavar="A,B,...",
        help="Ids, see 'gridsched schedulers', FILE.py[:CLASS], or all that take the workload.",
        show_default="the six of the LECSA paper",
    ),
]  # fmt: skip
#: Stands for every scheduler that takes the workload.
ALL = "all"
EPILOG = """Examples:

gridsched compare --platform platforms/ex_a.xml --workload examples/ex_a.csv --plot comparison.png

gridsched compare --platform platforms/ex_a.xml --workload examples/ex_a.csv --schedulers lecsa,mct

gridsched compare --platform platforms/ex_a.xml --workload examples/ex_a.csv
--schedulers all --sort energy_delay_js

gridsched compare --platform platforms/ex_a.xml --workload examples/ex_a.csv
--metric 'ed2p=energy_j*makespan_s**2'

gridsched compare --platform platforms/ex_a.xml --workload examples/ex_a.csv
--schedulers wqr,lecsa --set wqr.max_replicas=3

gridsched compare --workload examples/utility_small.toml --schedulers mct,max_max_upe
--energy-budget-j 9e6

Exit status: 0 fine, 1 a run failed, 2 bad input.
"""


def run_each(
    options: ScenarioOptions, ids: Sequence[str], *, quiet: bool,
    accept: Callable[[RunResult], None] = check_energy_agreement,
) -> Iterable[tuple[str, RunResult | GridschedError]]:  # fmt: skip
    """Run every scheduler on the same platform and workload, with a progress bar on a terminal.

    A failed run, and one that `accept` raises an error for, gives the error in place of a result;
    bad input is raised, before the first run where it can be seen by then.
    """
    parameters = options.parameters(ids)
    base = options.base_scenario()
    scenarios = [replace(base, scheduler=id, parameters=parameters[id]) for id in ids]
    shown = sys.stderr.isatty() and not quiet
    return zip(
        ids, run_many(scenarios, progress=shown, keep_errors=True, accept=accept), strict=True
    )


def ids_of(text: str, options: ScenarioOptions) -> list[str]:
    """Return the schedulers that ``--schedulers`` names; ``all``: those that take the workload.

    Raises
    ------
    InputError
        If there is no such scheduler, or none takes the workload.
    """
    if text.strip() != ALL:
        return split_ids(text, options)
    base = options.base_scenario()
    kinds = workload_kinds(base)
    found = []
    for entry in entries():
        if kinds.isdisjoint(entry.accepts):
            continue
        with contextlib.suppress(InputError):  # it says itself what it does not take
            check(replace(base, scheduler=entry.id))
            found.append(entry.id)
    if not found:
        raise InputError(f"{options.workload}: no scheduler takes this workload.")
    return found


def own_metrics(given: Sequence[str]) -> list[Metric]:
    """Return the metrics that ``--metric`` describes; the less of one, the better.

    Raises
    ------
    InputError
        If one cannot be understood.
    """
    found: list[Metric] = []
    known = [each.id for each in METRICS.values() if each.is_number and each.of in ("run", "row")]
    for text in given:
        id, equals, expression = text.partition("=")
        if not equals:
            raise InputError(
                f"--metric {text!r}: write NAME=EXPRESSION, as edp=energy_j*makespan_s."
            )
        names = [*known, *(each.id for each in found)]
        called = f"--metric {id.strip()}"
        found.append(formula(id.strip(), expression, names, better="less", called=called).metric)
    return found


def sort_metric(id: str | None, own: Sequence[Metric] = ()) -> Metric | None:
    """Return the metric that ``--sort`` names.

    Raises
    ------
    InputError
        If there is none.
    """
    if id is None:
        return None
    known = METRICS | {each.id: each for each in own}
    if id not in known or known[id].better is None:
        legal = [name for name, metric in known.items() if metric.better is not None]
        raise InputError(f"--sort {id!r}: is no metric with a best. {did_you_mean(id, legal)}")
    return known[id]


def sort_key(metric: Metric, row: Mapping[str, Any]) -> tuple[bool, float]:
    """Return what rows are sorted by: the best first, those without a value last."""
    value = row.get(metric.id)
    if value is None or math.isnan(value):
        return True, 0.0
    return False, -value if metric.better == "more" else value


@with_scenario_options
def compare(
    options: ScenarioOptions,
    schedulers: SchedulersOption = PAPER_004,
    sort: Annotated[
        str | None,
        typer.Option(metavar="METRIC", help="Best first by this metric, as energy_delay_js."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=EXPRESSION",
            help="A metric of your own, as ed2p=energy_j*makespan_s**2; less is better; "
            "repeatable.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", rich_help_panel=OUTPUT_PANEL,
            help="Draw energy and makespan or utility (.png, .svg, .pdf; data beside it).",
        ),
    ] = None,
    output: OutputOption = None,
    force: ForceOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:  # fmt: skip
    """Compare schedulers on one platform and workload by energy and makespan, or by utility.

    Energy is that of the computing hosts, by SimGrid's energy plugin and by gridsched's model.
    """
    ids = ids_of(schedulers, options)
    own = own_metrics(metric or ())
    key = sort_metric(sort, own)
    targets = {"--plot": figure_files(plot), "-o": table_file(output)}
    check_targets(targets, options.inputs, force=force)
    rows: list[dict[str, Any]] = []
    results: list[RunResult] = []
    failures: list[str] = []
    warnings: tuple[str, ...] = ()
    for id, result in run_each(options, ids, quiet=quiet or json):
        if isinstance(result, GridschedError):
            failures.append(f"{id}: {one_line(str(result))}")
            continue
        warnings = result.scenario.warnings
        rows.append(_row(id, result))
        results.append(result)
    warn(warnings)
    bounds = completed(rows, results)
    for each in own:
        for row in rows:
            row[each.id] = value_of_row(each, row)
    if key is not None:
        rows.sort(key=lambda row: sort_key(key, row))
    whole = {"results": rows, "failures": failures}
    _write(rows, whole, output, plot, force=force)
    if json:
        print(json_text(whole), end="")
    elif rows and not quiet:
        scenario = results[0].scenario
        title = f"{options.workload} on {options.platform or scenario.platform.name}"
        print_comparison(
            console(), rows, title, bounds=bounds, budget=scenario.budget,
            window_s=scenario.window_s, plot=plot, also=[*own, *([key] if key else [])],
        )  # fmt: skip
    for failure in failures:
        say(f"run failed: {failure}")
    if failures:
        raise typer.Exit(1)


def _row(id: str, result: RunResult) -> dict[str, Any]:
    row = {**result.summary(), "scheduler": id}
    row["provenance"] = result.provenance
    row["timing"] = result.timing
    row["timing"] = {**result.timing, "mapping_event_s": mapping_event_s(row)}
    return row


def _write(
    rows: list[dict[str, Any]], whole: dict[str, Any], output: Path | None, plot: Path | None, *,
    force: bool,
) -> None:  # fmt: skip
    if output is not None:
        nested = ("provenance", "timing")
        flat = [{k: v for k, v in row.items() if k not in nested} for row in rows]
        write_rows(output, flat, whole, force=force)
    if plot is not None and rows:
        from gridsched.figures.figure_file import draw_figure  # matplotlib is slow to load

        draw_figure("bars", "comparison", rows, plot, force=force)
