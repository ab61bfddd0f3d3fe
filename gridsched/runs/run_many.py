"""Many runs at once, from Python: one after the other or side by side."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from importlib.util import find_spec
from threading import Event, Lock
from typing import TYPE_CHECKING, TypeVar

from gridsched.errors import GridschedError, InputError
from gridsched.runs.plugin_agreement import check_energy_agreement
from gridsched.runs.run import RunResult, check, run
from gridsched.scenario import Scenario
from gridsched.sim.client import server, use_server

if TYPE_CHECKING:
    from rich.progress import Progress

Result = TypeVar("Result")
#: Runs that take longer together are worth a second server, and how often that is looked at [s].
_LONG_S, _PAUSE_S = 2.0, 0.02


def progress_bar(*, shown: bool | None = None) -> Progress:
    """Return a bar of runs on stderr.

    Parameters
    ----------
    shown : bool, optional
        Default: where stderr is a terminal, and in a notebook that has ``ipywidgets``.
    """
    from rich.console import Console  # slow to load, as its bars are; one run has none
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if shown is None:
        shown = sys.stderr.isatty() or (console.is_jupyter and find_spec("ipywidgets") is not None)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not shown)


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
        Whether a bar is shown; default on a terminal, and in a notebook that has ``ipywidgets``.
    keep_errors : bool
        Put the error of a failed run into its place; by default the first one is raised.
    accept : callable
        Called with each result; it raises an error if the run is to count as failed.

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
        raise InputError(f"run_many: workers is {workers}; it must be at least 1.")
    count = min(workers or len(os.sched_getaffinity(0)), max(len(todo), 1))

    outcome = partial(_outcome, is_apart=count > 1, accept=accept, keep_errors=keep_errors)
    results: dict[int, RunResult | GridschedError] = {}
    with progress_bar(shown=progress) as bar:
        task = bar.add_task("", total=len(todo))

        def keep(k: int, result: RunResult | GridschedError) -> None:
            results[k] = result
            bar.update(task, advance=1, description=todo[k].scheduler_name)

        if count > 1:
            _at_once(outcome, todo, count, keep)
        else:  # this thread's own server serves
            for k, scenario in enumerate(todo):
                bar.update(task, description=scenario.scheduler_name)
                keep(k, outcome(scenario))
    return [results[k] for k in range(len(todo))]


def _outcome(
    scenario: Scenario, *, is_apart: bool, accept: Callable[[RunResult], None], keep_errors: bool
) -> RunResult | GridschedError:
    try:
        result = run(scenario, is_apart=is_apart)
        accept(result)
    except GridschedError as error:
        if isinstance(error, InputError) or not keep_errors:
            raise
        return error
    return result


def _at_once(
    outcome: Callable[[Scenario], Result],
    scenarios: Sequence[Scenario],
    count: int,
    keep: Callable[[int, Result], None],
) -> None:
    """Tell what becomes of each scenario, with its place, as they end; up to `count` at a time.

    To start a server and to import there what runs need takes as long as many small runs: the first is
    this thread's own, which stays for what comes after; the others follow when it has worked for
    `_LONG_S`, if runs are left by then.
    """
    own = server()
    servers = [own]
    first, is_over = Lock(), Event()
    long_s = own.worked_s + _LONG_S

    def start() -> None:
        if first.acquire(blocking=False):
            use_server(own)
            return
        while own.worked_s < long_s and not is_over.wait(_PAUSE_S):
            pass
        if not is_over.is_set():
            servers.append(server())

    pool = ThreadPoolExecutor(count, initializer=start)
    try:
        places = {pool.submit(outcome, scenario): k for k, scenario in enumerate(scenarios)}
        for future in as_completed(places):
            keep(places[future], future.result())
    except BaseException:
        for each in servers:
            each.kill()  # whoever waits for a run of it waits no longer
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        is_over.set()
        pool.shutdown()
        for each in servers[1:]:
            each.close()
