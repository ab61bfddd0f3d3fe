"""``gridsched compare`` and ``validate``."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gridsched.analysis.comparison import completed
from gridsched.cli.compare_tables import mapping_event_s, print_comparison
from gridsched.cli.output import PRINTED, Outputs, console, one_line, plot_option, print_notes, print_table, say, warn
from gridsched.cli.scenario_options import ScenarioOptions, split_ids, with_scenario_options
from gridsched.energy import compare_energy
from gridsched.errors import InputError, did_you_mean
from gridsched.export.export import read_export
from gridsched.metrics import METRICS, Metric
from gridsched.metrics.columns import Column
from gridsched.metrics.table import value_of_row
from gridsched.policy.registry import PAPER_004, entries, scheduler_class, usual_ids
from gridsched.runs.carbon_check import carbon_check
from gridsched.runs.formulas import formula
from gridsched.runs.run import ENERGY_TOLERANCE, RunResult, check, check_energy_agreement, energy_check
from gridsched.runs.run_many import run_many
from gridsched.runs.scenario import LoadedScenario, workload_kinds

SchedulersOption = Annotated[
    str | None,
    typer.Option(
        "--schedulers",
        "--scheduler",
        metavar="A,B,...",
        help="Ids, see 'gridsched schedulers', FILE.py[:CLASS], or all that take the workload.",
        show_default="those made for the workload; of bags the six of the LECSA paper",
    ),
]
#: Stands for every scheduler that takes the workload.
ALL = "all"
_HOST_COLUMNS = (
    Column("scheduler", "scheduler"),
    Column("host", "host"),
    Column("role", "role"),
    Column("plugin_j", "plugin\n[{unit}]", "number", "J", "total"),
    Column("model_j", "model\n[{unit}]", "number", "J", "total"),
    Column("relative_difference", "relative\ndifference", "exponent"),
)
_GRAM_COLUMNS = (
    *_HOST_COLUMNS[:2],
    Column("plugin_g", "plugin's\njoules [{unit}]", "number", "g", "grams"),
    Column("model_g", "model\n[{unit}]", "number", "g", "grams"),
    Column("carbon_relative_difference", "relative\ndifference", "exponent"),
    Column("simgrid_carbon_g", "SimGrid's carbon\nplugin [{unit}]", "number", "g", "grams"),
)
_NO_OWN_PLUGIN = (
    "This SimGrid has no plugin for carbon (sg_host_get_carbon_footprint), so there are no grams of its own to compare."
)
_OWN_PLUGIN = (
    "SimGrid's carbon plugin does not look when a P-state changes, and charges the time before with the new power: "
    "where P-states change its grams are wrong. They do not count for the exit status."
)


def run_each(
    options: ScenarioOptions,
    ids: Sequence[str],
    *,
    quiet: bool,
    accept: Callable[[RunResult], None] = check_energy_agreement,
    meters_carbon: bool = False,
) -> tuple[dict[str, RunResult], list[str]]:
    """Run every scheduler on the same platform and workload, with a progress bar on a terminal.

    Returns the results by scheduler, and a line for each run that failed or that `accept` raised
    an error for; bad input is raised, before the first run where it can be seen by then.

    Parameters
    ----------
    options : ScenarioOptions
    ids : sequence of str
        The schedulers.
    quiet : bool
        Whether no bar is shown.
    accept : callable
        Raises what is wrong with a result.
    meters_carbon : bool
        As that of `Scenario`.
    """
    parameters = options.parameters(ids)
    base = replace(options.base_scenario, meters_carbon=meters_carbon)
    scenarios = [replace(base, scheduler=id, parameters=parameters[id]) for id in ids]
    shown = sys.stderr.isatty() and not quiet
    ended = run_many(scenarios, progress=shown, keep_errors=True, accept=accept)
    results: dict[str, RunResult] = {}
    failures = []
    for id, each in zip(ids, ended, strict=True):
        if isinstance(each, RunResult):
            results[id] = each
        else:
            failures.append(f"{id}: {one_line(str(each))}")
    return results, failures


def report_failures(failures: Sequence[str]) -> None:
    """Tell which runs failed, and end the command if any did."""
    for failure in failures:
        say(f"run failed: {failure}")
    if failures:
        raise typer.Exit(1)


def ids_of(text: str | None, options: ScenarioOptions) -> Sequence[str]:
    """Return the schedulers that ``--schedulers`` names, or those that are usual for the workload.

    Raises
    ------
    InputError
        If there is no such scheduler, or none takes the workload.
    """
    if text is not None and text.strip() != ALL:
        return split_ids(text, options)
    base = options.base_scenario
    kinds = workload_kinds(base)
    if text is not None:
        return _that_take(base, [each.id for each in entries() if not kinds.isdisjoint(each.accepts)])
    usual = usual_ids(kinds)
    return usual if usual == PAPER_004 else _that_take(base, usual)


def _that_take(base: LoadedScenario, ids: Sequence[str]) -> list[str]:
    """Return those of the schedulers that take a workload and start no program of the user's.

    Raises
    ------
    InputError
        Saying why none does.
    """
    takers, refusals = [], {}
    for id in ids:
        if scheduler_class(id).traits.external:
            continue
        try:
            check(replace(base, scheduler=id))
            takers.append(id)
        except InputError as error:  # it says itself what it does not take
            refusals[id] = error
    if not takers:
        raise next(refusals[id] for id in usual_ids(workload_kinds(base)) if id in refusals)
    return takers


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
            raise InputError(f"--metric {text!r}: write NAME=EXPRESSION, as edp=energy_j*makespan_s.")
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
    schedulers: SchedulersOption = None,
    sort: Annotated[
        str | None, typer.Option(metavar="METRIC", help="Best first by this metric, as energy_delay_js.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=EXPRESSION",
            help="A metric of your own, as ed2p=energy_j*makespan_s**2; less is better; repeatable.",
        ),
    ] = None,
    plot: Annotated[Path | None, plot_option("energy and makespan or utility")] = None,
    outputs: Outputs = PRINTED,
) -> None:
    """Compare schedulers on one platform and workload by energy and makespan, or by utility.

    Energy is that of the computing hosts, by SimGrid's energy plugin and by gridsched's model.

    Examples
    --------
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
    own = own_metrics(metric or ())
    key = sort_metric(sort, own)
    outputs.check(options.inputs, plot)
    ids = ids_of(schedulers, options)
    by_id, failures = run_each(options, ids, quiet=outputs.quiet or outputs.json)
    rows, results = [_row(id, each) for id, each in by_id.items()], list(by_id.values())
    for last in results[-1:]:
        warn(last.scenario.warnings)
    bounds = completed(rows, results)
    for each in own:
        for row in rows:
            row[each.id] = value_of_row(each, row)
    if key is not None:
        rows.sort(key=lambda row: sort_key(key, row))
    if plot is not None and rows:
        from gridsched.figures.table import draw_figure  # matplotlib is slow to load

        draw_figure("bars", "comparison", rows, plot, force=outputs.force)
    nested = ("provenance", "timing")
    flat = [{key: each for key, each in row.items() if key not in nested} for row in rows]
    if outputs.write(flat, {"results": rows, "failures": failures}) and rows:
        scenario = results[0].scenario
        title = f"{options.workload} on {options.platform or scenario.platform.name}"
        print_comparison(
            console(),
            rows,
            title,
            bounds=bounds,
            budget=scenario.budget,
            window_s=scenario.window_s,
            plot=plot,
            also=[*own, *([key] if key else [])],
        )
    report_failures(failures)


def _row(id: str, result: RunResult) -> dict[str, Any]:
    row = {**result.summary(), "scheduler": id, "provenance": result.provenance, "timing": result.timing}
    return row | {"timing": {**result.timing, "mapping_event_s": mapping_event_s(row)}}


# ---------------------------------------------------------------------- validate


@with_scenario_options
def validate(
    options: ScenarioOptions,
    export: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Folder of 'gridsched run --export'.", show_default=False)
    ] = None,
    schedulers: SchedulersOption = None,
    outputs: Outputs = PRINTED,
) -> None:
    """Check the model's joules against SimGrid's energy plugin, host by host.

    Either of runs made for it (options as in compare), or of an export. The model's joules come
    from the trace and the formulas alone. With a carbon intensity runs have their grams compared,
    too: SimGrid's joules are read at each change of it.

    Examples
    --------
    gridsched validate --platform platforms/ex_a.xml --workload examples/ex_a.csv
    --schedulers wqr,lecsa

    gridsched run --platform platforms/ex_a.xml --workload examples/ex_a.csv --export out

    gridsched validate out

    Exit status: 0 all agree to 1e-9 relative, 1 some differ or a run failed, 2 bad input.
    """
    outputs.check(options.inputs)
    failures: list[str] = []
    if export is not None:
        if any(options.inputs):
            raise InputError("Give either DIR or --platform and --workload, not both.")
        rows = _rows_of_export(export)
    else:
        ids, quiet = ids_of(schedulers, options), outputs.quiet or outputs.json
        rows, failures = _rows_of_runs(options, ids, quiet=quiet)
    bad = [row for row in rows if not _agrees(row)]
    has_grams = any("model_g" in row for row in rows)
    whole = {"tolerance": ENERGY_TOLERANCE, "differences": len(bad), "hosts": rows, "failures": failures}
    if outputs.write(rows, whole) and rows:
        out = console()
        print_table(out, _HOST_COLUMNS, rows, "Energy by SimGrid's plugin and by the model")
        if has_grams:
            _print_grams(out, [row for row in rows if "model_g" in row])
        if not bad and not failures:
            out.print(f"All {len(rows)} rows agree to {ENERGY_TOLERANCE:g} relative.")
    for row in bad:
        say(
            f"{row['scheduler']}: host {row['host']!r}: plugin {row['plugin_j']!r} J, model "
            f"{row['model_j']!r} J, relative difference {row['relative_difference']:.3g}"
            + (f"; grams {row['plugin_g']!r} and {row['model_g']!r}" if "model_g" in row else "")
        )
    report_failures(failures)
    if bad:
        raise typer.Exit(1)


def _agrees(row: Mapping[str, Any]) -> bool:
    """Whether plugin and model agree on a host's joules, and on its grams where these are known."""
    differences = (row["relative_difference"], row.get("carbon_relative_difference", 0.0))
    return all(each <= ENERGY_TOLERANCE for each in differences)


def _print_grams(out: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    out.print()
    has_own = "simgrid_carbon_g" in rows[0]
    columns = _GRAM_COLUMNS if has_own else _GRAM_COLUMNS[:-1]
    print_table(out, columns, rows, "Carbon by SimGrid's joules at each change of the intensity, and by the model")
    print_notes(out, [_OWN_PLUGIN if has_own else _NO_OWN_PLUGIN])


def _rows_of_export(folder: Path) -> list[dict[str, Any]]:
    export = read_export(folder)
    if export.plugin_j is None:
        raise InputError(f"{folder}: was not made by the SimGrid driver; no plugin joules in it.")
    if export.trace.carbon is not None:
        warn([f"{folder}: an export holds SimGrid's joules of the whole run alone, so its grams are not compared."])
    name = str(export.provenance.get("scheduler", ""))
    return [{"scheduler": name, **row} for row in compare_energy(export.trace, export.plugin_j)]


def _accept_any(result: RunResult) -> None:
    """Let every run pass: a difference is a row of the table here."""


def _rows_of_runs(
    options: ScenarioOptions, ids: Sequence[str], *, quiet: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    if options.settings.get("driver") == "reference":
        raise InputError("The reference driver has no energy plugin; use --driver simgrid.")
    results, failures = run_each(options, ids, quiet=quiet, accept=_accept_any, meters_carbon=True)
    rows: list[dict[str, Any]] = []
    for id, result in results.items():
        grams = {each["host"]: each for each in carbon_check(result)}
        rows += [{"scheduler": id, **row, **grams.get(row["host"], {})} for row in energy_check(result)]
    return rows, failures
