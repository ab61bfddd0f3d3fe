"""Many runs at once, from Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gridsched.errors import GridschedError, InputError
from gridsched.sim.client import SimulationServer, server
from gridsched.spec.run import RunResult, check, check_energy_agreement, run
from gridsched.spec.scenario import Scenario
from gridsched.spec.settings import MAX_TIMEOUT_S


def progress_bar(*, shown: bool | None = None) -> Progress:
    """Return a bar of runs on stderr.

    Parameters
    ----------
    shown : bool, optional
        Default: in a notebook, and where stderr is a terminal.
    """
    console = Console(stderr=True)
    is_shown = (console.is_jupyter or sys.stderr.isatty()) if shown is None else shown
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    return Progress(*columns, console=console, transient=True, disable=not is_shown)


def run_many(
    scenarios: Iterable[Scenario],
    *,
    workers: int | None = None,
    progress: bool | None = None,
    keep_errors: bool = False,
    accept: Callable[[RunResult], None] = check_energy_agreement,
) -> list[RunResult | GridschedError]:
    """Run scenarios, several at a time, and return their results in the same order.

    Parameters
    ----------
    scenarios : iterable of Scenario
    workers : int, optional
        Runs at one time; default one for each CPU. Each run has a process of its own.
    progress : bool, optional
        Whether a bar is shown; default in a notebook or on a terminal.
    keep_errors : bool
        Put the error of a failed run into its place; by default the first one is raised.
    accept : callable
        Told each result, it raises an error where the run is to count as failed.

    Raises
    ------
    InputError
        Before the first run, where a scenario contradicts itself or a file cannot be read.
    GridschedError
        What a run raises, also where plugin and model disagree, unless `keep_errors`.

    Examples
    --------
    >>> from gridsched import Scenario, run_many
    >>> found = run_many([Scenario("platforms/ex_a.xml", "examples/ex_a.csv", name)
    ...                   for name in ("wq", "lecsa")])
    >>> [result.summary()["makespan_s"] for result in found]
    [80.0, 100.0]
    """
    todo = list(scenarios)
    for scenario in todo:
        check(scenario)
    if workers is not None and workers < 1:
        raise InputError(f"run_many: workers is {workers}; at least 1 is legal.")
    count = min(workers or len(os.sched_getaffinity(0)), max(len(todo), 1))
    if count == 1:  # this thread's own server serves
        return _in_turn(todo, accept, progress=progress, keep_errors=keep_errors)
    results: dict[int, RunResult | GridschedError] = {}
    servers: list[SimulationServer] = []
    pool = ThreadPoolExecutor(count, initializer=lambda: servers.append(server()))
    try:
        with progress_bar(shown=progress) as bar:
            task = bar.add_task("", total=len(todo))
            waiting = {
                pool.submit(_one_apart, scenario, accept): k for k, scenario in enumerate(todo)
            }
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    k = waiting.pop(future)
                    results[k] = _outcome(future.result, keep_errors=keep_errors)
                    bar.update(task, advance=1, description=todo[k].scheduler_name)
    except BaseException:
        for each in servers:
            each.end_at_once()  # whoever waits for a run of it waits no longer
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        for each in servers:
            each.close()
    return [results[k] for k in range(len(todo))]


def _in_turn(
    scenarios: Sequence[Scenario], accept: Callable[[RunResult], None], *,
    progress: bool | None, keep_errors: bool,
) -> list[RunResult | GridschedError]:  # fmt: skip
    """Run scenarios one after the other."""
    found = []
    with progress_bar(shown=progress) as bar:
        task = bar.add_task("", total=len(scenarios))
        for scenario in scenarios:
            bar.update(task, description=scenario.scheduler_name)
            found.append(_outcome(partial(_one, scenario, accept), keep_errors=keep_errors))
            bar.advance(task)
    return found


def _one(scenario: Scenario, accept: Callable[[RunResult], None]) -> RunResult:
    result = run(scenario)
    accept(result)
    return result


def _one_apart(scenario: Scenario, accept: Callable[[RunResult], None]) -> RunResult:
    """Run a scenario in a process of its own, as a time-out does with either driver."""
    if scenario.timeout_s:
        return _one(scenario, accept)
    result = _one(replace(scenario, timeout_s=MAX_TIMEOUT_S), accept)
    return replace(
        result, scenario=replace(result.scenario, timeout_s=None),
        provenance={**result.provenance, "timeout_s": None},
    )  # fmt: skip


def _outcome(result: Callable[[], RunResult], *, keep_errors: bool) -> RunResult | GridschedError:
    try:
        return result()
    except InputError:
        raise
    except GridschedError as error:
        if not keep_errors:
            raise
        return error
