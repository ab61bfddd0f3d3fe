"""``gridsched beside``: what a machine did beside what schedulers would have done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from gridsched.analysis.beside_log import (
    EXTRAS,
    Beside,
    beside_itself,
    beside_log,
    read_schedule,
    sampled_within_seconds,
)
from gridsched.cli.compare import report_failures, show_log
from gridsched.cli.output import PRINTED, Outputs, one_line, plot_option, warn
from gridsched.cli.scenario_options import (
    SchedulerParameters,
    loaded,
    paths_read,
    refuse_without_effect,
    split_ids,
    with_scenario_options,
)
from gridsched.cli.tables import console, print_notes, print_table
from gridsched.errors import InputError, counted
from gridsched.metrics.columns import Column
from gridsched.metrics.table import METRICS
from gridsched.runs.plugin_agreement import check_energy_agreement
from gridsched.runs.run import RunResult
from gridsched.runs.run_spec import RunSpec
from gridsched.workloads.traces.formats import format_of

#: The schedulers of a comparison that names none.
DEFAULT_SCHEDULERS = "easy_backfilling,conservative_backfilling,slurm"
#: More draws are refused.
MOST_DRAWS = 1000
_COLUMNS = (
    Column("schedule", "schedule"),
    Column("makespan_s", "makespan\n[{unit}]", "number", "s"),
    Column("utilisation", "utilisation", "number"),
    Column("mean_wait_s", "mean wait\n[{unit}]", "number", "s", "wait"),
    Column("median_wait_s", "median\n[{unit}]", "number", "s", "wait"),
    Column("longest_wait_s", "longest\n[{unit}]", "number", "s", "wait"),
    Column("rank_correlation", "waits' rank\ncorrelation", "number"),
    Column("energy_j", "energy\n[{unit}]", "number", "J"),
)
#: What changes nothing of parallel jobs, or of what is shown of them, and why.
_WITHOUT_EFFECT = {
    "idle_attribution": "it divides the energy among jobs, and only that of all nodes is shown",
    "pending_slots": "jobs of a log wait for sets of nodes, and no host fixes any behind the one that runs",
}


@with_scenario_options
def beside(
    asked: RunSpec,
    parameters: SchedulerParameters,
    schedulers: Annotated[
        str, typer.Option(metavar="A,B,...", help="Ids (see 'gridsched schedulers') or FILE.py[:CLASS].")
    ] = DEFAULT_SCHEDULERS,
    draws: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Runs of each scheduler, with random fractions added to the seconds of submissions and run times "
            "in the log (--seed); 0: one run with the full seconds.",
        ),
    ] = 0,
    plot: Annotated[Path | None, plot_option("waits and cores in use")] = None,
    outputs: Outputs = PRINTED,
) -> None:
    """Compare a machine's own schedule, from Slurm's accounting, with those of other schedulers.

    The first row is the log: its starts on its nodes, with the joules of the model. --slurm-conf
    specifies the machine and the parameters of scheduler slurm.

    Examples
    --------
    gridsched beside --workload examples/live_slurm.sacct --slurm-conf examples/live_slurm.conf
    --driver reference

    gridsched beside --workload examples/live_slurm.sacct --slurm-conf examples/live_slurm.conf
    --driver reference --schedulers slurm,easy_backfilling --draws 3 --plot beside.png

    Exit status: 0 fine, 1 a run failed, 2 bad input.
    """
    from gridsched.runs.run_many import run_many  # its bars are slow to load

    refuse_without_effect(asked, "beside", _WITHOUT_EFFECT)
    base, file = loaded(asked), Path(getattr(asked.workload, "file", ""))
    if format_of(file) != "sacct":
        raise InputError(f"{file}: only the output of sacct contains when jobs started.")
    if not 0 <= draws <= MOST_DRAWS:
        raise InputError(f"--draws is {draws}; 0 to {MOST_DRAWS:,} are allowed.")
    outputs.check(paths_read(asked), plot)
    ids = split_ids(schedulers, asked.timeout_s)
    of_each = parameters.of(ids)
    log = beside_itself(base, read_schedule(file, base.trace))
    warn([*base.warnings, *log.notes])
    each_id = [replace(base, scheduler=id, parameters=of_each[id]) for id in ids]
    n = max(draws, 1)
    scenarios = [sampled_within_seconds(each, asked.seed + k) if draws else each for each in each_id for k in range(n)]
    outcomes = run_many(scenarios, progress=False, keep_errors=True, accept=check_energy_agreement)
    failures = [f"{each.scheduler_name}: {one_line(str(e))}" for each, e in zip(scenarios, outcomes, strict=True)
                if not isinstance(e, RunResult)]  # fmt: skip
    for each in outcomes:
        if isinstance(each, RunResult):
            show_log(each)
    found: list[Beside] = [log]
    for k, id in enumerate(ids):
        results = [each for each in outcomes[k * n : (k + 1) * n] if isinstance(each, RunResult)]
        if len(results) == n:
            found.append(beside_log(id, results, log.wait_s))
    warn(note for each in found[1:] for note in each.notes)
    rows: list[dict[str, Any]] = [each.row for each in found]
    if plot is not None:
        from gridsched.figures.figure_file import draw_figure  # matplotlib is slow to load

        traces = {each.name: each.trace for each in found}
        draw_figure("waits_and_use", "schedules", traces, plot, force=outputs.force, table=outputs.output)
    if outputs.write(rows, {"schedules": rows, "draws": draws, "failures": failures}):
        out = console()
        print_table(out, _columns(rows), rows, f"{file} on {base.platform.name}")
        notes = [f"{counted(len(base.tasks), 'job')}; the log's row by the model, for its starts on its nodes."]
        if draws:
            notes.append(f"Means of {draws} draws of submissions and run times within the seconds that the log prints.")
        if plot is not None:
            notes.append(f"Figure: {plot}")
        print_notes(out, notes)
    report_failures(failures)


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    """Return the columns of every comparison, and those of carbon, money and units that some row has."""
    return [*_COLUMNS, *(METRICS[id].column for id in EXTRAS if any(id in row for row in rows))]
