"""What a run of a workflow is judged by: its length beside the longest path, speedup, slack, data, readiness."""

from __future__ import annotations

from functools import partial

import numpy as np

from gridsched.arrays import Floats
from gridsched.metrics import Metric, RunFacts, register_metric
from gridsched.metrics.run_metrics import data_times_s, makespan_s, mean_of_finished
from gridsched.metrics.table import Condition
from gridsched.model.dependencies import After
from gridsched.model.timeline import core_lanes
from gridsched.model.trace import ExecutionEnd, TaskState, Trace
from gridsched.optimize.task_paths import task_paths

WORKFLOW = Condition(
    "tasks of one host that wait for each other", lambda run: run.trace.tasks.are_workflow, "bag", default=False
)


def schedule_length_ratio(run: RunFacts) -> float:
    """Makespan over the longest path, each task where it is fastest and data in no time; nan if some task is left."""
    least = run.trace.shortest_s
    if not len(least) or not _is_done(run.trace):
        return float("nan")
    length = task_paths(run.trace.tasks, least).length_s if np.isfinite(least).all() else 0.0
    return makespan_s(run.trace) / length if length > 0 else float("nan")


def speedup(run: RunFacts) -> float:
    """Time of the host that alone would take the least for all tasks, over the makespan; nan if some task is left."""
    length = makespan_s(run.trace)
    if not len(run.trace.host_times_s) or not _is_done(run.trace) or length <= 0:
        return float("nan")
    alone = float(run.trace.host_times_s.min())
    return alone / length if np.isfinite(alone) else float("nan")


def efficiency(run: RunFacts) -> float:
    """Speedup over the cores of all hosts."""
    return speedup(run) / int(run.trace.platform.cores.sum())


def slack_s(trace: Trace) -> Floats:
    """Return how much later each task could end without moving the last end [s], nan if it did not finish.

    Hosts, the order of tasks on their cores, and how long data and tasks take stay as they are in the run
    (Bölöni, Marinescu, "Robust scheduling of metaprograms", Journal of Scheduling 5(5), 2002).
    """
    tasks, runs = trace.tasks, trace.executions
    slack = np.full(len(tasks), np.nan)
    done = np.flatnonzero(runs["outcome"] == ExecutionEnd.FINISHED)
    if not len(done):
        return slack
    placement, core = core_lanes(trace)
    lanes: dict[int, list[int]] = {}
    for k, lane in zip(trace.placed()[0][placement].tolist(), core.tolist(), strict=True):
        lanes.setdefault(k, []).append(lane)
    run_of = {int(runs["task"][k]): k for k in done.tolist()}
    latest = np.full(len(tasks), float(runs["end"][done].max()))
    sent_s = data_times_s(trace).tolist()
    rows = _rows_behind(trace)
    next_on: dict[tuple[int, int], int] = {}
    # from the last; of equal starts a task may wait for another's, which has the lower id
    for k in done[np.lexsort((runs["task"][done], runs["start"][done]))][::-1].tolist():
        task, start, end = int(runs["task"][k]), float(runs["start"][k]), float(runs["end"][k])
        for other, pair, kind, delay in rows.get(task, ()):
            if other in run_of:
                begin = latest[other] - float(runs["end"][run_of[other]] - runs["start"][run_of[other]])
                until = begin - delay - sent_s[pair]
                latest[task] = min(latest[task], until + (end - start if kind == After.START else 0.0))
        for place in ((int(runs["host"][k]), lane) for lane in lanes[k]):
            if place in next_on:
                behind = next_on[place]
                begin = latest[runs["task"][behind]] - float(runs["end"][behind] - runs["start"][behind])
                latest[task] = min(latest[task], begin)
            next_on[place] = k
        slack[task] = max(latest[task] - end, 0.0)
    return slack


def _rows_behind(trace: Trace) -> dict[int, list[tuple[int, int, int, float]]]:
    """Return for each task (who waits for it, the pair, kind, delay [s])."""
    rows: dict[int, list[tuple[int, int, int, float]]] = {}
    if trace.tasks.dependencies is not None:
        pairs = trace.tasks.dependencies.by_task()  # as transfers number them
        columns = (pairs.on, pairs.task, pairs.kind, pairs.delay_s)
        for pair, (on, task, kind, delay) in enumerate(zip(*(each.tolist() for each in columns), strict=True)):
            rows.setdefault(on, []).append((task, pair, kind, delay))
    return rows


def wait_from_ready_s(trace: Trace) -> Floats:
    """Return the time from each task's readiness to its start [s], nan if it did not finish.

    It is ready when it is submitted and all that it waits for has come; then its data may still be on their way.
    """
    ready, pairs = trace.tasks.submit_time_s.copy(), trace.tasks.dependencies
    if pairs is not None:
        last = np.where(pairs.kind == After.START, trace.start_time_s[pairs.on], trace.finish_time_s[pairs.on])
        np.fmax.at(ready, pairs.task, last + pairs.delay_s)
    return np.where(np.isnan(trace.finish_time_s), np.nan, trace.start_time_s - ready)


def _is_done(trace: Trace) -> bool:
    return bool((trace.final_state == TaskState.FINISHED).all())


_of_workflows = partial(Metric, condition=WORKFLOW)
METRICS = (
    _of_workflows(
        "schedule_length_ratio",
        "",
        "makespan over the longest path, each task on its fastest host and data in no time (Topcuoglu, Hariri, Wu "
        "2002, section 5.1); nan if not all tasks finished",
        schedule_length_ratio,
        better="less",
    ),
    _of_workflows(
        "speedup",
        "",
        "least time that one host would take for all tasks, over the makespan (the same section)",
        speedup,
        better="more",
    ),
    _of_workflows(
        "efficiency",
        "",
        "`speedup` over the number of cores of all hosts (the same section)",
        efficiency,
        better="more",
    ),
    _of_workflows(
        "mean_slack_s",
        "s",
        "mean time by which finished tasks could end later without moving the last end, each alone, with the hosts, "
        "orders and durations of the run",
        lambda run: mean_of_finished(slack_s(run.trace)),
    ),
    _of_workflows(
        "moved_bytes",
        "byte",
        "data that tasks made for each other and that arrived at another host",
        lambda run: float(run.trace.transfers["size_bytes"].sum()),
        better="less",
    ),
    _of_workflows(
        "mean_wait_from_ready_s",
        "s",
        "mean time of finished tasks from the end of the last task that each waits for, or its submission, to its "
        "start; transfers count",
        lambda run: mean_of_finished(wait_from_ready_s(run.trace)),
        better="less",
    ),
)
for _each in METRICS:
    register_metric(_each)
