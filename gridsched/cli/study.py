"""``gridsched study``: campaigns of many runs, from one study file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gridsched.analysis.texts import value_text
from gridsched.cli.campaign_progress import JsonLines, Quiet, Screen, terminable
from gridsched.cli.options import command_group
from gridsched.cli.output import ForceOption, JsonOption, QuietOption, check_targets, put, put_json, say, warn
from gridsched.cli.plot import PageOption
from gridsched.cli.study_report import StoreArgument, TrustOption, claims, found_study, report, trusted, with_store
from gridsched.cli.tables import console, print_table
from gridsched.errors import InputError, counted
from gridsched.files.json_files import json_text
from gridsched.metrics.columns import Column
from gridsched.runs.study_schedulers import scheduler_texts

if TYPE_CHECKING:
    from gridsched.campaign.campaign import Options
    from gridsched.campaign.rerun import Repetition
    from gridsched.campaign.store import Store
    from gridsched.runs.study import Study

RunFilter = Callable[[Mapping[str, Any]], bool]
#: The largest number of different errors of failed runs that are shown.
_SHOWN_ERRORS = 5

study_app = command_group()
StudyArgument = Annotated[str, typer.Argument(metavar="STUDY", help="Study file (.toml), or a shipped study's name.")]
TimeoutOption = Annotated[
    float | None, typer.Option("--timeout-s", help="End a run after this wall time [s]; it counts as failed.")
]


@study_app.command("check")
def check(
    study: StudyArgument,
    samples: Annotated[int, typer.Option(help="Number of runs that are timed for the estimate; 0: none.", min=0)] = 6,
    workers: Annotated[int | None, typer.Option(help="Processes to estimate for; default: all CPUs.", min=1)] = None,
    timeout_s: TimeoutOption = None,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Show the axes of a study, the number of its runs, and how long they will take.

    Exit status: 0 fine, 1 a timed run failed, 2 the file is wrong.

    Examples
    --------
    gridsched study check tiny
    """
    from gridsched.campaign.duration import estimate
    from gridsched.campaign.local_pool import usable_cpus

    _check_timeout(timeout_s)
    design = found_study(study, timeout_s, trust=trust)
    warn(design.files.absent.values())
    axes = [{"axis": axis.name, "values": list(axis.values)} for axis in design.axes]
    whole: dict[str, Any] = {
        "study": design.name,
        "title": design.title,
        "axes": axes,
        "replicates": design.replicates,
        "runs": design.n_runs,
        "claims": len(design.claims),
    }
    failures: list[str] = []
    if samples:
        sample = estimate(design, samples, design.timeout_s, trust=trusted(design, trust))
        number = workers or usable_cpus()
        whole["estimate"] = {
            "timed_runs": len(sample.timed_s),
            "mean_run_s": sample.mean_s,
            "workers": number,
            "wall_s": design.n_runs * sample.mean_s / number,
            "uncertainty_s": design.n_runs * sample.uncertainty_s / number,
        }
        failures = [f"{_axes_text(run.axes)}: {error}" for run, error in sample.failures]
        whole["failures"] = failures
    if json:
        put_json(whole)
    else:
        _print_check(design, whole)
    for failure in failures:
        say(f"run failed: {failure}")
    if failures:
        raise typer.Exit(1)


def _print_check(study: Study, whole: dict[str, Any]) -> None:
    families = scheduler_texts(study.schedulers)
    rows = [
        {
            "axis": each["axis"],
            "n": len(each["values"]),
            "values": ", ".join(
                families if each["axis"] == "scheduler" else (value_text(value) for value in each["values"])
            ),
        }
        for each in whole["axes"]
    ]
    rows.append({"axis": "replicate", "n": study.replicates, "values": f"seed {study.seed}"})
    title = f"{study.name}: {study.title}" if study.title else study.name
    columns = (Column("axis", "axis"), Column("n", "values", "number"), Column("values", ""))
    print_table(console(), columns, rows, title)
    console().print(counted(study.n_runs, "run"))
    timing = whole.get("estimate")
    if timing:
        console().print(
            f"About {_duration(timing['wall_s'])} (give or take "
            f"{_duration(timing['uncertainty_s'])}) with {counted(timing['workers'], 'worker')}: "
            f"{timing['timed_runs']} timed runs took {timing['mean_run_s'] * 1e3:.0f} ms on average"
        )


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _axes_text(axes: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value_text(value)}" for name, value in axes.items())


@study_app.command("run")
def run(
    study: StudyArgument,
    store: Annotated[Path, typer.Option(help="Folder that keeps the results.")],
    workers: Annotated[int | None, typer.Option(help="Number of processes; default: one for each CPU.", min=1)] = None,
    only: Annotated[
        str | None, typer.Option(metavar="EXPR", help="Runs to execute, for example \"scheduler == 'lecsa'\".")
    ] = None,
    timeout_s: TimeoutOption = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Repeat failed runs.")] = False,
    records: Annotated[bool, typer.Option("--records", help="Keep task and host records of every run.")] = False,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler, as tcp://host:8786.")] = None,
    dask_wait_s: Annotated[
        float,
        typer.Option(min=0.1, metavar="S", help=("End after Dask has had no scheduler or no worker for this time.")),
    ] = 600.0,
    quiet: QuietOption = False,
    json_lines: Annotated[bool, typer.Option("--json-lines", help="Print the progress as JSON lines.")] = False,
    trust: TrustOption = False,
) -> None:
    """Execute the runs of a study that the store does not hold yet.

    Ctrl-C, a crash or a full disk lose at most the runs at work: the same command continues.

    Exit status: 0: fine, 1: runs failed, 2: bad input, 130: interrupted.

    Examples
    --------
    gridsched study run tiny --store tiny-results
    """
    from gridsched.campaign.campaign import Options
    from gridsched.campaign.store import Store

    _check_timeout(timeout_s)
    design = found_study(study, timeout_s, trust=trust)
    warn(design.files.absent.values())
    is_meant = _filter(design, only)
    options = Options(workers, is_meant, timeout_s, retry_failed, records)
    display = Quiet() if quiet else JsonLines() if json_lines else Screen(design.name)
    with Store.for_campaign(store, trust=trusted(design, trust)) as storage:
        _do_runs(design, storage, options, dask, dask_wait_s, display)
    if _report_failures(design, storage, is_meant):
        raise typer.Exit(1)


def _filter(study: Study, only: str | None) -> RunFilter | None:
    """Return what ``--only`` means; it must mean some run."""
    from gridsched.runs.run_filter import run_filter

    if only is None:
        return None
    is_meant = run_filter(only, study.axis_names)
    if not any(True for _ in study.scenarios(is_meant)):
        raise InputError(f"--only {only!r}: no run of the study is meant.")
    return is_meant


def _do_runs(
    study: Study, store: Store, options: Options, dask: str | None, dask_wait_s: float, display: Quiet
) -> None:
    with terminable(), display:
        if dask is None:
            from gridsched.campaign.campaign import run_campaign

            run_campaign(study, store, options, display.show)
        else:
            from gridsched.campaign.dask_pool import run_dask_campaign

            run_dask_campaign(study, store, dask, options, display.show, wait_s=dask_wait_s, report=say)


def _report_failures(study: Study, store: Store, is_meant: RunFilter | None) -> int:
    """Tell which runs are stored as failed, with some of their errors; return how many."""
    failed = {run_id for run_id, status in store.stored().items() if status == "failed"}
    if failed:
        failed &= {run.run_id for run in study.scenarios(is_meant)}
    if failed:
        frame = store.rows()
        frame = frame[frame["run_id"].isin(failed)]
        for error, group in list(frame.groupby("error", sort=False))[:_SHOWN_ERRORS]:
            first = group["run_id"].iloc[0]
            say(f"{counted(len(group), 'run')} failed, as {first[:8]}: {error}")
    return len(failed)


def _check_timeout(timeout_s: float | None) -> None:
    if timeout_s is not None and not (0 < timeout_s <= 1e8 and math.isfinite(timeout_s)):
        raise InputError(f"--timeout-s is {timeout_s:g}; it must be greater than 0 s.")


@study_app.command("rerun")
def rerun(
    store: StoreArgument,
    run_id: Annotated[str, typer.Argument(metavar="RUN_ID", help="Id of the run, or the beginning of it.")],
    timeout_s: TimeoutOption = None,
    trust: TrustOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Repeat one stored run from its provenance, and compare the metrics bit by bit.

    If its study has policies, these Python files of the store are run: with --trust, or if you agree.

    Exit status: 0 identical, 1 different, 2 bad input.
    """
    from gridsched.campaign.rerun import rerun as repeat

    def act(kept: Store) -> Repetition:
        repetition = repeat(kept, run_id, timeout_s)
        warn([*kept.damaged_studies, *kept.damage])
        return repetition

    _check_timeout(timeout_s)
    repetition = with_store(store, trust, act)
    whole_id = repetition.stored["run_id"]
    if json:
        pairs = {"differences": repetition.differences, "other_versions": repetition.other_versions}
        lists = {
            name: [{"what": what, "stored": then, "repeated": now} for what, then, now in each]
            for name, each in pairs.items()
        }
        whole = {"run_id": whole_id, "identical": repetition.is_identical, **lists, "not_stored": repetition.not_stored}
        put_json(whole)
    elif not quiet:
        for what, then, now in repetition.other_versions:
            put(f"{what}: {then} when it was stored, {now} now")
        for what, then, now in repetition.differences:
            put(f"{what}: stored {then!r}, repeated {now!r}")
        if repetition.not_stored:
            put(f"Not stored, as that version did not have it: {', '.join(repetition.not_stored)}")
        n = len(repetition.stored["metrics"])
        verdict = f"identical in all {n} metrics" if repetition.is_identical else "different"
        put(f"Run {whole_id}: {verdict}")
    if not repetition.is_identical:
        raise typer.Exit(1)


@study_app.command("view")
def view(
    store: StoreArgument,
    run_id: Annotated[str, typer.Argument(metavar="RUN_ID", help="Id of the run, or the beginning of it.")],
    output: PageOption,
    timeout_s: TimeoutOption = None,
    trust: TrustOption = False,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Repeat one stored run, and write its interactive page; needs gridsched[view].

    Exit status: 0 fine, 2 bad input.
    """
    from gridsched.campaign.rerun import result_again

    _check_timeout(timeout_s)
    check_targets({"-o": [output]}, force=force)
    result = with_store(store, trust, lambda kept: result_again(kept, run_id, timeout_s))
    result.view().save(output, force=force)
    if not quiet:
        put(f"Page: {output}")


@study_app.command("schema")
def schema(
    table: Annotated[bool, typer.Option("--table", help="Print the keys as Markdown tables instead.")] = False,
) -> None:
    """Print the JSON Schema of study files, for editors that check TOML as you write.

    Examples
    --------
    gridsched study schema > study.schema.json
    """
    from gridsched.runs.schema import study_keys, study_schema

    put(study_keys() if table else json_text(study_schema()).rstrip())


study_app.command("report")(report)
study_app.command("claims")(claims)
