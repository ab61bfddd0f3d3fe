"""A process that does runs of a campaign, one after the other, and keeps their rows.

It is a fresh interpreter, started by the process that leads the campaign, and ends with it. Each
SimGrid run has a process of its own, forked from this worker's simulation server.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gridsched.arrays import Floats
from gridsched.campaign.greater_budgets import LastUnlimited
from gridsched.campaign.messages import ATTEMPTS, Answer, AnswerKind, Job, WorkerConfig, ended_row
from gridsched.campaign.row_table import FAILED
from gridsched.campaign.segments import RunRow, SegmentWriter
from gridsched.compiled import watched_compiling
from gridsched.errors import EnvironmentFault, InputError, MissingDependency, ProcessLost, error_of_policy
from gridsched.metrics.group_metrics import in_one_table
from gridsched.metrics.run_metrics import series_of_notes
from gridsched.metrics.window_metrics import window_series
from gridsched.policy.policy_files import needs_own_process
from gridsched.runs.plugin_agreement import check_energy_agreement
from gridsched.runs.run import RunResult, check_groups, run
from gridsched.runs.run_spec import MEASURE_SETTINGS, OPTIMIZE, RunSpec, Settings
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.sim.processes import Begun, Channel
from gridsched.sim.server import COMPILING_S

#: The series of a run that a study asks for: cumulative within the window, at its steps.
SERIES = ("time_s", "energy_j", "utility")
_PR_SET_PDEATHSIG = 1
#: Beside the time-out of a run, a worker may take so long for its platform and tasks [s].
_PREPARING_S = 60.0


class FairStarts:
    """When the jobs of the last run that asked start under FCFS; it is the same under all schedulers of a cell."""

    def __init__(self) -> None:
        self._run_id, self._start_s = "", np.empty(0)

    def of(self, spec: RunSpec, result: RunResult) -> Floats:
        """Return `RunResult.fair_start_s` of a run [s].

        Parameters
        ----------
        spec : RunSpec
            What describes the run.
        result : RunResult
        """
        unmeasured = {name: Settings.model_fields[name].default for name in MEASURE_SETTINGS}
        settings = spec.settings.model_copy(update={"driver": "reference", **unmeasured})
        run_id = spec.under("fcfs", {}).model_copy(update={"settings": settings}).run_id
        if run_id != self._run_id:
            self._run_id, self._start_s = run_id, result.fair_start_s
        return self._start_s


def _unwatched(limit_s: float | None) -> None:
    """Note no time: no other process ends this one."""


def perform(
    maker: ScenarioMaker,
    job: Job,
    timeout_s: float | None,
    begin: Callable[[float | None], None] = _unwatched,
    fair_starts: FairStarts | None = None,
) -> tuple[RunRow, RunResult | None]:
    """Do one run; any error in it becomes a failed row.

    Parameters
    ----------
    maker : ScenarioMaker
    job : Job
    timeout_s : float or None
        Wall time after which SimGrid is ended [s].
    begin : callable, optional
        Called with the additional wall time [s] after which the caller has to end this process: a policy that
        decides in this process may not give in otherwise. Without it a run with a time-out has a process of its own.
    fair_starts : FairStarts, optional
        Those of the runs before, which are not computed again.

    Returns
    -------
    row : dict
    result : RunResult or None
        None if it failed.

    Raises
    ------
    MissingDependency
        If SimGrid is needed and not installed.
    EnvironmentFault
        If the machine is at fault, not the run.
    """
    began = time.perf_counter()
    try:
        begin(None if timeout_s is None else timeout_s + _PREPARING_S)
        maker.load_policies(job.policies)
        spec = RunSpec.read(job.scenario)
        if spec.settings.driver == OPTIMIZE:
            begin(timeout_s)
            return _optimized(maker, job, spec, began), None
        return _executed(maker, job, spec, timeout_s, begin, began, fair_starts or FairStarts())
    except BaseException as raised:  # noqa: BLE001 - sys.exit() in a policy, too
        error = error_of_policy(raised)
        if isinstance(error, MissingDependency | EnvironmentFault):
            raise error from None
        return ended_row(job, time.perf_counter() - began, str(error)), None


def _executed(
    maker: ScenarioMaker,
    job: Job,
    spec: RunSpec,
    timeout_s: float | None,
    begin: Callable[[float | None], None],
    began: float,
    fair_starts: FairStarts,
) -> tuple[RunRow, RunResult]:
    """Return the row of a run of a driver that executes tasks, and what it gave."""
    scenario = maker.make(spec.model_copy(update={"timeout_s": timeout_s}))
    by = spec.settings.group_by
    check_groups(scenario, by)
    is_apart = scenario.driver == "simgrid" or needs_own_process(scenario.make_scheduler())
    if timeout_s is not None and not is_apart and begin is not _unwatched:  # the leading process ends this one
        scenario = replace(scenario, timeout_s=None)
    limit_s = None
    if timeout_s is not None:
        limit_s = ATTEMPTS * timeout_s + _PREPARING_S if is_apart else timeout_s
        begin(limit_s)
    compiling_s = None if timeout_s is None else COMPILING_S
    with watched_compiling(lambda begins: begin(compiling_s if begins else limit_s)):
        result = _insistently(scenario)
    check_energy_agreement(result)
    metrics, trace = result.metrics(), result.trace
    series = series_of_notes(trace)
    if (step_s := spec.settings.series_step_s) is not None:
        series |= _series(result, step_s)
    further: dict[str, Any] = {"warnings": list(trace.platform.warnings)}
    if trace.delegated_to:
        further["delegated_to"] = trace.delegated_to
    row = ended_row(job, time.perf_counter() - began, metrics=metrics, timing=result.timing, further=further)
    if series:
        row["series"] = series
    if by:
        fair_start_s = fair_starts.of(spec, result)
        row["groups"] = in_one_table({each: result.groups(each, fair_start_s) for each in by})
    return row, result


def _series(result: RunResult, step_s: float) -> dict[str, list[float]]:
    """Return the `SERIES` of a run, at times `step_s` [s] apart; they repeat exactly."""
    window_s = result.scenario.window_s
    if window_s is None:
        raise InputError(
            "series_step_s: a series covers the window of the results; the workload "
            f"{result.scenario.tasks.name!r} has none. Leave series_step_s out, or use a "
            "generator that sets one ('utility')."
        )
    series = window_series(result.trace, window_s, step_s, result.facts.whole_power)
    return {name: series[name].tolist() for name in SERIES if name in series}


def _optimized(maker: ScenarioMaker, job: Job, spec: RunSpec, began: float) -> RunRow:
    """Return the row of a run that executes nothing."""
    from gridsched.runs.optimization import optimize  # scipy's solver is slow to load

    plan = optimize(maker.optimization(spec))
    total_s = time.perf_counter() - began
    return ended_row(job, total_s, metrics=plan.metrics(), timing=plan.timing, further={"warnings": list(plan.notes)})


def _insistently(scenario: Any) -> RunResult:
    """Run a scenario, again where its process was killed from outside."""
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(ProcessLost):
            return run(scenario)
    return run(scenario)


class Worker:
    """Does the jobs that come in, until the other side closes."""

    def __init__(self, config: WorkerConfig, channel: Channel) -> None:
        self._config, self._channel = config, channel
        config.folder.mkdir(0o700, parents=True, exist_ok=True)  # a policy may have removed it
        self._folder = Path(tempfile.mkdtemp(prefix="worker", dir=config.folder))
        self._files: set[Path] = {self._folder}
        self._maker = ScenarioMaker(config.inputs, self._folder)
        self._segment: SegmentWriter | None = None
        self._unlimited, self._fair_starts = LastUnlimited(), FairStarts()

    def serve(self) -> None:
        """Do jobs until there are no more."""
        self._channel.send(True)
        while (job := self._channel.receive()) is not None:
            try:
                answer = self._do(job)
            except EnvironmentFault as fault:
                answer = Answer(AnswerKind.FAULT, error=str(fault))
            except InputError as error:  # no run is at fault: nothing can be kept, or no SimGrid
                answer = Answer(AnswerKind.FATAL, error=str(error))
            self._channel.send(answer)
        if self._segment is not None:
            self._segment.close()

    def _do(self, job: Job) -> Answer:
        def begin(limit_s: float | None) -> None:
            self._channel.send(Begun(limit_s))

        # records are those of a run that was made
        known = None if self._config.records else self._unlimited.row_of(job)
        if known is None:
            row, result = perform(self._maker, job, self._config.timeout_s, begin, self._fair_starts)
            self._unlimited.note(job, row, result)
        else:
            row, result = known, None
        self._files.update(self._folder.glob("*"))
        has_failed = row["status"] == FAILED
        if has_failed and not all(file.exists() for file in self._files):
            return Answer(AnswerKind.SPOILT, error=row["error"])
        is_last = has_failed and bool(job.policies)  # they may have changed this process
        if self._config.store is None:
            return Answer.of(row, is_last=is_last)
        if self._config.records and result is not None:
            from gridsched.campaign.run_records import write_records

            write_records(result, self._config.store, job.run_id)
        if self._segment is None:
            self._segment = SegmentWriter(self._config.store / "segments")
        self._segment.write(row)
        return Answer.of(row, with_row=False, is_last=is_last)


def main() -> None:
    """Take orders and jobs from the process that asks."""
    channel = Channel()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    status = 1
    try:
        with contextlib.suppress(BrokenPipeError):  # the leading process has gone
            if (config := channel.receive()) is not None:
                Worker(config, channel).serve()
        status = 0
    except BaseException:  # noqa: BLE001 - sys.exit() in a policy, too
        traceback.print_exc()
    finally:  # a normal exit would wait for what policies have started: threads, processes
        os._exit(status)
