"""``gridsched compare``, and its lines on energy, budgets and boots beside the table."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from gridsched.cli.groups import TABLE, GroupByOption, print_groups, written_groups
from gridsched.cli.output import PRINTED, Outputs, one_line, plot_option, say, warn
from gridsched.cli.scenario_options import SchedulerParameters, loaded, paths_read, split_ids, with_scenario_options
from gridsched.cli.tables import console, print_notes, print_table
from gridsched.errors import InputError, did_you_mean, shorten
from gridsched.long_work import report
from gridsched.metrics import METRICS, Metric, compared_metrics
from gridsched.metrics.columns import Column, amount
from gridsched.metrics.table import is_metered, value_of_row
from gridsched.model.rules import EnergyBudget
from gridsched.model.signals import JOULES, UNITS, Unit
from gridsched.policy.registry import PAPER_004, default_ids, entries, scheduler_class, usable
from gridsched.runs.plugin_agreement import check_energy_agreement
from gridsched.runs.run import RunResult, check, check_groups
from gridsched.runs.run_spec import RunSpec
from gridsched.scenario import LoadedScenario, Scenario, workload_kinds

if TYPE_CHECKING:
    from gridsched.analysis.bounds import ScenarioBounds

SchedulersOption = Annotated[
    str | None,
    typer.Option(
        "--schedulers",
        "--scheduler",
        metavar="A,B,...",
        help="Ids (see 'gridsched schedulers'), FILE.py[:CLASS], or all that accept the workload.",
        show_default="those made for the workload; of bags the six of the LECSA paper",
    ),
]
#: Means every scheduler that accepts the workload.
ALL = "all"
_SCHEDULER = Column("scheduler", "scheduler")
_MAPPING_EVENT = Column("ms", "mapping\nevent\n[ms]", "figure")
#: Metrics that show by how much a budget was exceeded.
EXCESSES = tuple(unit.excess for unit in UNITS.values())
NO_ENERGY = "No energy: the hosts have no power (--power none)."
#: An excess of less than this share of the budget is rounding.
ROUNDING = 1e-9


def run_each(
    scenarios: Mapping[str, LoadedScenario],
    *,
    quiet: bool,
    accept: Callable[[RunResult], None] = check_energy_agreement,
) -> tuple[dict[str, RunResult], list[str]]:
    """Run the scenario of every scheduler, with a progress bar on a terminal.

    Returns the results by scheduler, and a line for each run that failed or that `accept` raised
    an error for; bad input is raised, before the first run where it can be seen by then.

    Parameters
    ----------
    scenarios : mapping
        Scheduler -> its scenario.
    quiet : bool
        Whether no bar is shown.
    accept : callable
        Raises what is wrong with a result.
    """
    from gridsched.runs.run_many import run_many  # its bars are slow to load, and 'run' has none

    runs = list(scenarios.values())
    say_whom_runs_await(runs)
    has_bar = sys.stderr.isatty() and not quiet
    outcomes = run_many(runs, progress=has_bar, keep_errors=True, accept=accept)
    results: dict[str, RunResult] = {}
    failures = []
    for id, each in zip(scenarios, outcomes, strict=True):
        if isinstance(each, RunResult):
            results[id] = each
            show_log(each)
        else:
            failures.append(f"{id}: {one_line(str(each))}")
    return results, failures


def show_log(result: RunResult) -> None:
    """Write what SimGrid logged of a run to stderr, if ``--log`` asks for anything."""
    if result.scenario.log and result.log:
        typer.echo(result.log, err=True)


def say_whom_runs_await(scenarios: Sequence[Scenario]) -> None:
    """Report for which programs runs would wait that are not there yet; raise what is wrong with such a run first."""
    for each in scenarios:
        if scheduler_class(each.scheduler_name).traits.external:
            check(each)
            if line := each.make_scheduler().awaited():
                report(line)


def report_failures(failures: Sequence[str]) -> None:
    """Tell which runs failed, and end the command if any did."""
    for failure in failures:
        say(f"run failed: {failure}")
    if failures:
        raise typer.Exit(1)


def scenarios_of(
    text: str | None, asked: RunSpec, given: SchedulerParameters, *, meters_carbon: bool = False
) -> dict[str, LoadedScenario]:
    """Return the scenario of each scheduler that ``--schedulers`` names, or that is usual for the workload.

    Parameters
    ----------
    text : str or None
    asked : RunSpec
    given : SchedulerParameters
    meters_carbon : bool
        As that of `Scenario`.

    Raises
    ------
    InputError
        If there is no such scheduler, or none takes the workload.
    """
    if text is not None and text.strip() != ALL:
        ids: Sequence[str] = split_ids(text, asked.timeout_s)
        parameters, base = given.of(ids), loaded(asked)
    else:
        base = loaded(asked)
        ids = _all_ids(base) if text is not None else _default_ids(base)
        parameters = given.of(ids)
    return {id: replace(base, scheduler=id, parameters=parameters[id], meters_carbon=meters_carbon) for id in ids}


def _all_ids(base: LoadedScenario) -> Sequence[str]:
    kinds = workload_kinds(base)
    return _that_take(base, [each.id for each in entries() if not kinds.isdisjoint(each.accepts)])


def _default_ids(base: LoadedScenario) -> Sequence[str]:
    default = default_ids(workload_kinds(base))
    return default if default == PAPER_004 else _that_take(base, default)


def _that_take(base: LoadedScenario, ids: Sequence[str]) -> list[str]:
    """Return those of the schedulers that take a workload and start no program of the user's.

    Raises
    ------
    InputError
        Saying why none does.
    """
    takers, refusals = [], {}
    for id in usable(ids):
        if scheduler_class(id).traits.external:
            continue
        try:
            check(replace(base, scheduler=id))
            takers.append(id)
        except InputError as error:  # its own message names what it does not take
            refusals[id] = error
    if not takers:
        raise next(refusals[id] for id in default_ids(workload_kinds(base)) if id in refusals)
    return takers


def own_metrics(given: Sequence[str]) -> list[Metric]:
    """Return the metrics that ``--metric`` describes; the less of one, the better.

    Raises
    ------
    InputError
        If one cannot be understood.
    """
    from gridsched.runs.metric_formulas import formula  # only where one is given

    metrics: list[Metric] = []
    numbers = [each.id for each in METRICS.values() if each.is_number and each.of in ("run", "row")]
    for text in given:
        id, equals, expression = text.partition("=")
        if not equals:
            raise InputError(f"--metric {text!r}: write NAME=EXPRESSION, as edp=energy_j*makespan_s.")
        names = [*numbers, *(each.id for each in metrics)]
        called = f"--metric {id.strip()}"
        metrics.append(formula(id.strip(), expression, names, better="less", called=called).metric)
    return metrics


def sort_metric(id: str | None, own: Sequence[Metric] = ()) -> Metric | None:
    """Return the metric that ``--sort`` names.

    Raises
    ------
    InputError
        If there is none.
    """
    if id is None:
        return None
    metrics = {**METRICS} | {each.id: each for each in own}
    if id not in metrics or metrics[id].better is None:
        legal = [name for name, metric in metrics.items() if metric.better is not None]
        raise InputError(f"--sort {id!r}: is not a metric with a best. {did_you_mean(id, legal)}")
    return metrics[id]


def sort_key(metric: Metric, row: Mapping[str, Any]) -> tuple[bool, float]:
    """Return what rows are sorted by: the best first, those without a value last."""
    value = row.get(metric.id)
    if value is None or math.isnan(value):
        return True, 0.0
    return False, -value if metric.better == "more" else value


@with_scenario_options
def compare(
    asked: RunSpec,
    parameters: SchedulerParameters,
    schedulers: SchedulersOption = None,
    sort: Annotated[
        str | None,
        typer.Option(metavar="METRIC", help=("Sort by this metric, best first, for example energy_delay_js.")),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=EXPRESSION",
            help="A metric of your own, for example ed2p=energy_j*makespan_s**2; less is better; repeatable.",
        ),
    ] = None,
    plot: Annotated[Path | None, plot_option("energy and makespan or utility")] = None,
    group_by: GroupByOption = None,
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

    gridsched compare --platform examples/shared_nodes.xml --workload examples/shared_nodes.sacct
    --allocation cores --partitions examples/shared_nodes.toml --schedulers fcfs,easy_backfilling --group-by user

    Exit status: 0 fine, 1 a run failed, 2 bad input.
    """
    from gridsched.analysis.comparison import completed, grouped

    own = own_metrics(metric or ())
    key = sort_metric(sort, own)
    outputs.check(paths_read(asked), plot, [TABLE] if group_by else [])
    scenarios = scenarios_of(schedulers, asked, parameters)
    check_groups(next(iter(scenarios.values())), group_by or ())
    by_id, failures = run_each(scenarios, quiet=outputs.quiet or outputs.json)
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
        from gridsched.figures.figure_file import draw_figure  # matplotlib is slow to load

        draw_figure("bars", "comparison", rows, plot, force=outputs.force, table=outputs.output)
    nested = ("provenance", "timing")
    flat = [{key: each for key, each in row.items() if key not in nested} for row in rows]
    in_order = {row["scheduler"]: by_id[row["scheduler"]] for row in rows}
    groups = {each: grouped(in_order, each) for each in group_by or ()}
    whole = {"results": rows, "failures": failures} | ({"groups": groups} if groups else {})
    if outputs.write(flat, whole, written_groups(groups)) and rows:
        scenario = results[0].scenario
        files = dict(asked.files())
        title = f"{files['workload.file']} on {files.get('platform.file', scenario.platform.name)}"
        out, also = console(), [*own, *([key] if key else [])]
        events_s = [row["timing"]["mapping_event_s"] for row in rows]
        table = [{**row, "ms": None if s is None else f"{1000 * s:.3g}"} for row, s in zip(rows, events_s, strict=True)]
        print_table(out, _columns(rows, also, bounds), table, title)
        print_notes(out, _notes(rows, scenario, bounds))
        print_groups(out, groups)
        if plot is not None:
            out.print(f"Figure: {plot}")
    report_failures(failures)


def _row(id: str, result: RunResult) -> dict[str, Any]:
    row = {**result.summary(), "scheduler": id, "provenance": result.provenance, "timing": result.timing}
    return row | {"timing": {**result.timing, "mapping_event_s": mapping_event_s(row)}}


def free_boots(rows: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the line on runs in which hosts were switched on for nothing, if there are any."""
    ids = [row["scheduler"] for row in rows if row["provenance"].get("free_boots")]
    if not ids:
        return None
    return (
        f"{', '.join(ids)}: hosts boot in 0 s and for 0 J here. On a log's machine --boot S:W and "
        "--shutdown S:W set time and power, in a platform the properties boot_time_s and "
        "shutdown_time_s."
    )


def remarks(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what schedulers remark on their decisions, a line for those of one remark."""
    ids: dict[str, list[str]] = {}
    for row in rows:
        if remark := row["provenance"].get("remark"):
            ids.setdefault(remark, []).append(row["scheduler"])
    for remark, each in ids.items():
        yield f"{', '.join(each)}: {shorten(' '.join(remark.split()))}."


def mapping_event_s(row: Mapping[str, Any]) -> float | None:
    """Mean wall time of a mapping event [s], None if there was none."""
    events = row["mapping_events"]
    return row["timing"]["policy_s"] / events if events and "policy_s" in row["timing"] else None


def _columns(rows: Sequence[Mapping[str, Any]], also: Sequence[Metric], bounds: ScenarioBounds | None) -> list[Column]:
    """Return the columns of which the rows have values, and those of further metrics."""
    table, shown = compared_metrics(rows)
    hidden: set[str] = set()
    if bounds is not None:
        same = {"makespan_s", "energy_j"} - bounds.differing
        hidden |= {f"{metric.rpartition('_')[0]}_above_fixed_bound" for metric in same}
    columns = [each.column for each in [*shown, *(each for each in also if each not in shown)] if each.id not in hidden]
    return [_SCHEDULER, *columns, *([_MAPPING_EVENT] if table == "system" else [])]


def _notes(rows: Sequence[Mapping[str, Any]], scenario: LoadedScenario, bounds: ScenarioBounds | None) -> Iterator[str]:
    """Yield what must be known to read the table, a sentence each."""
    if all(np.isnan(row["energy_j"]) for row in rows):
        yield NO_ENERGY
    elif is_metered(rows):
        worst = max(row["energy_relative_difference"] for row in rows)
        agree = f"agree to {worst:.1e} relative" if worst else "agree exactly"
        yield f"Plugin and model {agree}."
    else:
        yield "Energy by the model alone: the reference driver has no plugin."
    if scenario.window_s is not None:
        yield "Window: from {:,.10g} s to {:,.10g} s.".format(*scenario.window_s)
    if scenario.budget is not None:
        yield _budget_line(scenario.budget, rows)
    if bounds is not None:
        yield from bounds.describe()
    for row in rows:
        if "delegated_to" in row["provenance"]:
            yield f"{row['scheduler']} followed {row['provenance']['delegated_to']}."
    if (line := free_boots(rows)) is not None:
        yield line
    yield from remarks(rows)


def _amount(unit: Unit, value: float) -> str:
    return amount(value, "J") if unit == JOULES else f"{amount(value, '')} {unit.words}"


def excess(budget: EnergyBudget, row: Mapping[str, Any]) -> float:
    """Return what a run exceeded its budget by, in the budget's unit; 0 where that is rounding.

    Parameters
    ----------
    budget : EnergyBudget
    row : mapping
        Metrics of the run.
    """
    by: float = row.get(budget.unit.excess, 0.0)
    return by if by > ROUNDING * budget.amount else 0.0


def _in_periods(budget: EnergyBudget, words: str) -> str:
    """Return for how long the budget is, in words."""
    if budget.period_s == float("inf"):
        return "for the whole run"
    return f"{words} {budget.period_s:,.10g} s"


def _budget_line(budget: EnergyBudget, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the budget in words, and which runs exceeded it."""
    if budget.amount == float("inf"):
        return f"Energy budget: none, {_in_periods(budget, 'in periods of')}."
    over = {row["scheduler"]: by for row in rows if (by := excess(budget, row))}
    kept = "; exceeded by " + ", ".join(f"{id} ({_amount(budget.unit, by)})" for id, by in over.items())
    return (
        f"Energy budget: {_amount(budget.unit, budget.amount)} {_in_periods(budget, 'in each')} "
        f"({budget.enforcement}){kept if over else '; no run exceeded it'}."
    )
