"""A process that does runs of a campaign, one after the other, and keeps their rows.

It is a fresh interpreter, started by the process that leads the campaign, and ends with it. Each
SimGrid run has a process of its own, forked from this worker's simulation server.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np

from gridsched import __version__
from gridsched.campaign.measure import measure_series
from gridsched.campaign.segments import SegmentWriter, cannot_write
from gridsched.errors import GridschedError, InputError, MissingDependency, ProcessLost
from gridsched.sim import wire
from gridsched.spec.canonical import RESULTS_VERSION
from gridsched.spec.run import RunResult, run
from gridsched.spec.scenario_maker import ScenarioMaker

_PR_SET_PDEATHSIG = 1
#: A run whose simulating process is killed from outside is begun so often in all.
ATTEMPTS = 3


@dataclass(frozen=True)
class Job:
    """What a worker is told about a run."""

    run_id: str
    scenario: Mapping[str, Any]


@dataclass(frozen=True)
class Orders:
    """What a worker is told at its start.

    Attributes
    ----------
    store : Path or None
        Where it keeps rows; None: they are sent back.
    inputs : dict
        SHA-256 -> file.
    folder : Path
        For temporary files.
    timeout_s : float or None
    records : bool
        Whether task and host records are kept as well.
    """

    store: Path | None
    inputs: dict[str, Path]
    folder: Path
    timeout_s: float | None = None
    records: bool = False


@dataclass(frozen=True)
class Answer:
    """What a worker says after a run; `fatal` ends the campaign."""

    run_id: str = ""
    status: str = ""
    error: str | None = None
    row: dict[str, Any] | None = None
    fatal: str | None = None


@cache
def versions() -> dict[str, Any]:
    """Return the versions of all that takes part in a run."""
    simgrid = None
    with contextlib.suppress(metadata.PackageNotFoundError):
        simgrid = metadata.version("simgrid")
    return {
        "results_version": RESULTS_VERSION,
        "gridsched": __version__,
        "simgrid": simgrid,
        "numpy": np.__version__,
        "python": python_version(),
    }


class RunTimeout(Exception):
    """A run in this process has taken too long."""


def perform(
    maker: ScenarioMaker, job: Job, timeout_s: float | None
) -> tuple[dict[str, Any], RunResult | None]:
    """Do one run; whatever goes wrong in it becomes a failed row.

    Returns
    -------
    row : dict
    result : RunResult or None
        None if it failed.

    Raises
    ------
    MissingDependency
        If SimGrid is needed and not installed.
    """
    began = time.perf_counter()
    result, error = None, None
    try:
        scenario = maker.make(job.scenario, timeout_s)
        with _time_limit(timeout_s if scenario.driver == "reference" else None):
            result = _insistently(scenario)
        metrics = result.metrics()
        step_s = job.scenario["settings"].get("series_step_s")
        series = None if step_s is None else measure_series(result, step_s)
    except MissingDependency:
        raise
    except RunTimeout:
        error = f"ended after the time-out of {timeout_s:g} s."
    except GridschedError as raised:
        error = " ".join(str(raised).split())
    except Exception as raised:  # noqa: BLE001 - a user's policy may raise anything
        frame = traceback.extract_tb(raised.__traceback__)[-1]
        place = f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}"
        error = " ".join(f"{type(raised).__name__}: {raised} ({place}).".split())
    if error is not None:
        return failed_row(job, error, time.perf_counter() - began), None
    timing = {**result.timing, **_where_and_when(time.perf_counter() - began)}
    row = _row(job, None, metrics, timing, result)
    return row if series is None else {**row, "series": series}, result


def _insistently(scenario: Any) -> RunResult:
    """Run a scenario, again where its process was killed from outside."""
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(ProcessLost):
            return run(scenario)
    return run(scenario)


@contextlib.contextmanager
def _time_limit(seconds: float | None) -> Iterator[None]:
    """Raise `RunTimeout` after so many seconds."""
    if seconds is None:
        yield
        return

    def end(*_: object) -> None:
        raise RunTimeout

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def failed_row(job: Job, error: str, total_s: float = 0.0) -> dict[str, Any]:
    """Return the row of a run that failed."""
    return _row(job, error, {}, _where_and_when(total_s), None)


def _where_and_when(total_s: float) -> dict[str, Any]:
    ended = datetime.now(UTC).isoformat()
    return {"total_s": total_s, "host": socket.gethostname(), "ended_at": ended}


def _row(
    job: Job, error: str | None, metrics: Mapping[str, Any], timing: Mapping[str, Any],
    result: RunResult | None,
) -> dict[str, Any]:  # fmt: skip
    provenance = {**versions(), "warnings": []}
    if result is not None:
        provenance["warnings"] = list(result.trace.platform.warnings)
        if result.trace.delegated_to:
            provenance["delegated_to"] = result.trace.delegated_to
    return {
        "run_id": job.run_id,
        "status": "finished" if error is None else "failed",
        "error": error,
        "metrics": metrics,
        "scenario": job.scenario,
        "provenance": provenance,
        "timing": timing,
    }


class Worker:
    """Does the jobs that come in, until the other side closes."""

    def __init__(self, orders: Orders, jobs: int, answers: int) -> None:
        self._orders, self._jobs, self._answers = orders, jobs, answers
        self._maker = ScenarioMaker(orders.inputs, orders.folder)
        self._segment: SegmentWriter | None = None

    def serve(self) -> None:
        """Do jobs until there are no more."""
        while (message := wire.receive(self._jobs)) is not None:
            try:
                answer = self._do(pickle.loads(message))
            except InputError as error:  # no run is at fault: nothing can be kept, or no SimGrid
                answer = Answer(fatal=str(error))
            wire.send(self._answers, pickle.dumps(answer))
        if self._segment is not None:
            self._segment.close()

    def _do(self, job: Job) -> Answer:
        row, result = perform(self._maker, job, self._orders.timeout_s)
        if self._orders.store is None:
            return Answer(job.run_id, row["status"], row["error"], row)
        if self._orders.records and result is not None:
            from gridsched.campaign.run_records import write_records

            write_records(result, self._orders.store, job.run_id)
        if self._segment is None:
            self._segment = SegmentWriter(self._orders.store / "segments")
        self._segment.write(row)
        return Answer(job.run_id, row["status"], row["error"])


def main() -> None:
    """Take orders and jobs on standard input, answer on standard output."""
    jobs, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what a policy prints does not belong among the answers
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the leading process's to handle
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    message = wire.receive(jobs)
    if message is None:
        return
    orders: Orders = pickle.loads(message)
    try:
        orders.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        wire.send(answers, pickle.dumps(Answer(fatal=str(cannot_write(orders.folder, error)))))
        return
    with contextlib.suppress(BrokenPipeError):  # the leading process has gone
        wire.send(answers, b"ready")
        Worker(orders, jobs, answers).serve()
    sys.stderr.flush()
