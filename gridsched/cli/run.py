"""``gridsched run``: one scheduler on one platform and workload."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from gridsched.cli.compare import (
    EXCESSES,
    NO_ENERGY,
    excess,
    free_boots,
    mapping_event_s,
    remarks,
    say_whom_runs_await,
    show_log,
)
from gridsched.cli.groups import TABLE, GroupByOption, print_groups, written_groups
from gridsched.cli.output import PRINTED, Outputs, listed_with_outputs, warn
from gridsched.cli.scenario_options import SchedulerParameters, loaded, paths_read, resolve_apart, with_scenario_options
from gridsched.cli.tables import console, print_values
from gridsched.metrics.table import Metric, shown_metrics
from gridsched.runs.plugin_agreement import check_energy_agreement
from gridsched.runs.run import RunResult, check_groups, run
from gridsched.runs.run_spec import RunSpec


@with_scenario_options
def run_command(
    asked: RunSpec,
    parameters: SchedulerParameters,
    scheduler: Annotated[
        str, typer.Option(metavar="ID", help="See 'gridsched schedulers'; FILE.py[:CLASS]; batsim:ADDRESS.")
    ] = "wq",
    export: Annotated[
        Path | None,
        listed_with_outputs(metavar="DIR", help="Write the run's records to this new folder (Batsim's files)."),
    ] = None,
    group_by: GroupByOption = None,
    outputs: Outputs = PRINTED,
) -> None:
    """Run one scheduler on a platform and a workload.

    Examples
    --------
    gridsched run --platform platforms/ex_a.xml --workload examples/ex_a.csv --scheduler lecsa

    gridsched run --platform platforms/ex_a.xml --workload examples/ex_a.csv --scheduler wqr
    --export out

    gridsched plot gantt out -o gantt.png

    gridsched run --workload examples/utility_small.toml --scheduler max_max_upe
    --energy-budget-j 9e6

    Exit status: 0 fine, 1 the run failed, 2 bad input.
    """
    scheduler = resolve_apart(scheduler, asked.timeout_s)
    asked = asked.under(scheduler, parameters.of([scheduler])[scheduler])
    outputs.check(paths_read(asked), tables=[TABLE] if group_by else [])
    if export is not None:
        from gridsched.export.export import EXPORT  # only then

        EXPORT.check(export, force=outputs.force)
    scenario = loaded(asked)
    check_groups(scenario, group_by or ())
    say_whom_runs_await([scenario])
    result = run(scenario)
    warn(result.scenario.warnings)
    check_energy_agreement(result)
    summary = result.summary()
    if result.trace.carbon is not None:
        from gridsched.analysis.bounds import carbon_above_bounds  # only then

        summary |= carbon_above_bounds(result)
    groups = {each: result.groups(each) for each in group_by or ()}
    whole = {**summary, "provenance": result.provenance, "timing": result.timing}
    if groups:
        whole["groups"] = groups
    if export is not None:
        export_run(result, export, force=outputs.force)
    show_log(result)
    if outputs.write([summary], whole, written_groups(groups)):
        _show(result, summary, export)
        print_groups(console(), groups)


def _show(result: RunResult, summary: dict[str, Any], export: Path | None) -> None:
    out = console()
    budget = result.scenario.budget
    is_over = budget is not None and excess(budget, summary) > 0
    hidden = () if is_over else EXCESSES
    rows = [
        _value_row(metric, summary[metric.id])
        for metric in shown_metrics("run", [summary])
        if metric.id not in hidden and (summary[metric.id] or not metric.hides_zero)
    ]
    if "utility" in summary:
        seconds = mapping_event_s({**summary, "timing": result.timing}) or 0.0
        rows.append(("wall time of a mapping event", float(f"{1000 * seconds:.3g}"), "ms"))
    print_values(out, rows, result.title)
    if np.isnan(summary["energy_j"]):
        out.print(NO_ENERGY)
    ran = [{**summary, "provenance": result.provenance}]
    for line in (free_boots(ran), *remarks(ran)):
        if line is not None:
            out.print(line, soft_wrap=True)
    if export is not None:
        out.print(f"Records: {export}")


def _value_row(metric: Metric, value: Any) -> tuple[str, Any, str]:
    name = "  " * metric.is_part + metric.row_name
    return (name, 100 * value, "%") if metric.form == "percent" else (name, value, metric.unit)


def export_run(result: RunResult, folder: Path, *, force: bool) -> None:
    """Write a run's records in the layout of `gridsched.export.export`."""
    from gridsched.export.export import write_export

    types = result.scenario.types
    write_export(
        result.trace,
        result.plugin_j,
        result.provenance,
        folder,
        workload_name=Path(result.trace.tasks.name.removesuffix(".gz")).stem,
        scheduler_pstates=None if types is None else types.etc.shape[2],
        force=force,
    )
