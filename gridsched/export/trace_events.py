"""A run in Chrome's trace-event format, which Perfetto and chrome://tracing open.

A process is a cluster, its threads are the cores of its hosts. Times are whole microseconds, so that what ends
and what begins in one instant never overlap in a viewer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.energy import busy_energy_j
from gridsched.model.timeline import HostTimeline, core_lanes
from gridsched.model.trace import ExecutionEnd, Trace, down_times
from gridsched.power import TracePower, grid_power

Event = dict[str, Any]
#: Bars of a viewer: process and thread of each, begin and end [us], and further fields.
Bars = tuple[Integers, Integers, Integers, Integers, list[Event]]

#: With more bars a job of several nodes has one on its first node alone: viewers hold no more.
MOST_BARS = 500_000
#: Number of the process that draws the power of all hosts; clusters have the next ones.
_GRID = 1
_SWITCHED = ("", "boot", "shutdown", "off", "down")
_JSON = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_FIRST_NODE_ALONE = "Each job is shown on the first core of the first of its nodes alone."


def trace_events_text(trace: Trace, power: TracePower) -> str:
    """Return the run as JSON in the trace-event format, one event a line.

    Parameters
    ----------
    trace : Trace
    power : TracePower
        `trace_power` of the trace.

    References
    ----------
    .. [1] "Trace Event Format", the Chromium project: complete (``X``), counter (``C``) and
       metadata (``M``) events; ``ts`` and ``dur`` in microseconds.
    """
    execution, host = trace.placed()
    placement, core = core_lanes(trace)
    first_alone = trace.is_parallel and len(placement) > MOST_BARS
    if first_alone:
        placement, first = np.unique(execution[placement], return_index=True)
        execution, host, core = np.arange(len(trace.executions)), trace.executions["host"], core[first]
    threads = _Threads(trace)
    tables = [
        _executions(trace, execution[placement], host[placement], core, threads),
        _switched(trace, power.timeline, threads),
    ]
    events = chain(threads.names(), _without_overlap(tables), _power(trace, power))
    lines = ",\n".join(map(_JSON.encode, events))
    about = {"platform": trace.platform.name, "workload": trace.tasks.name}
    if first_alone:
        about["note"] = _FIRST_NODE_ALONE
    return f'{{"displayTimeUnit":"ms","otherData":{_JSON.encode(about)},"traceEvents":[\n{lines}\n]}}\n'


class _Threads:
    """The numbers of processes and threads in a trace.

    Parameters
    ----------
    trace : Trace
    """

    def __init__(self, trace: Trace) -> None:
        platform = trace.platform
        self._trace = trace
        # hosts without clusters are each a cluster of their own
        self._is_flat = all(len(cluster.hosts) == 1 for cluster in platform.clusters)
        n_processes = 1 if self._is_flat else len(platform.clusters)
        self.process = _GRID + 1 + (np.zeros_like(platform.cluster_of) if self._is_flat else platform.cluster_of)
        #: thread of each host's first core
        self.first = _GRID + 1 + n_processes + np.cumsum(platform.cores) - platform.cores

    def bars(self, host: Integers, core: Integers | int, start: Floats, end: Floats, said: list[Event]) -> Bars:
        """Return bars on cores of hosts, from begin to end [s], and their further fields."""
        return self.process[host], self.first[host] + core, _microseconds(start), _microseconds(end), said

    def names(self) -> Iterator[Event]:
        """Yield the names of processes and threads."""
        platform = self._trace.platform
        processes = ["hosts"] if self._is_flat else [cluster.name for cluster in platform.clusters]
        for process, name in enumerate(["grid", *processes], start=_GRID):
            yield _name("process_name", process, 0, name)
        for host, process, first in zip(platform.hosts, self.process.tolist(), self.first.tolist(), strict=True):
            for core in range(host.cores):
                name = host.name if host.cores == 1 else f"{host.name}, core {core}"
                yield _name("thread_name", process, first + core, name)


def _name(kind: str, process: int, thread: int, name: str) -> Event:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _executions(trace: Trace, execution: Integers, host: Integers, core: Integers, threads: _Threads) -> Bars:
    """Return a bar for each execution on each core that it has."""
    runs, tasks = trace.executions, trace.tasks
    values = {
        "task": tasks.labels[runs["task"]],
        "pstate": runs["pstate"],
        "outcome": [ExecutionEnd(end).name.lower() for end in runs["outcome"].tolist()],
        "wait_s": runs["start"] - tasks.submit_time_s[runs["task"]],
        **({"hosts": trace.width} if trace.is_parallel else {}),
        **({"energy_j": busy_energy_j(trace)} if trace.platform.has_energy else {}),
    }
    word = "job" if trace.is_parallel else "task"
    details = []
    columns = [each.tolist() if isinstance(each, np.ndarray) else each for each in values.values()]
    for row in zip(*columns, strict=True):
        arguments = dict(zip(values, row, strict=True))
        outcome = "" if arguments["outcome"] == "finished" else f" ({arguments['outcome']})"
        details.append({"name": f"{word} {arguments['task']}{outcome}", "cat": "execution", "args": arguments})
    events = [details[k] for k in execution.tolist()]
    return threads.bars(host, core, runs["start"][execution], runs["end"][execution], events)


def _switched(trace: Trace, timeline: HostTimeline, threads: _Threads) -> Bars:
    """Return a bar on the first core for each time in which a host boots, shuts down or is off."""
    state = np.select([timeline.is_booting, timeline.is_shutting_down, timeline.is_off], [1, 2, 3], 0)
    rows = np.flatnonzero(timeline.changes_of(state))
    host, start, state = timeline.host[rows], timeline.time[rows], state[rows]
    end = np.full(len(rows), trace.horizon_s)
    end[:-1] = np.where(host[1:] == host[:-1], start[1:], trace.horizon_s)
    chosen = (state > 0) & (end > start)
    host, start, end, state = host[chosen], start[chosen], end[chosen], state[chosen]
    for failed, begin, back in down_times(trace):
        state[(host == failed) & (state == 3) & (start >= begin) & (start < back)] = 4
    events = [{"name": _SWITCHED[k], "cat": "host", "args": {}} for k in state.tolist()]
    return threads.bars(host, 0, start, end, events)


def _without_overlap(tables: list[Bars]) -> Iterator[Event]:
    """Yield the bars by thread and time; one that ends a rounding late ends where the next begins."""
    process, thread, start, end = (np.concatenate(column) for column in list(zip(*tables, strict=True))[:4])
    events = [event for *_, said in tables for event in said]
    order = np.lexsort((end, start, thread))
    same = thread[order][1:] == thread[order][:-1]
    last = end[order[:-1]]
    end[order[:-1]] = np.where(same, np.minimum(last, start[order][1:]), last)
    columns = (each[order].tolist() for each in (process, thread, start, end - start))
    for k, pid, tid, ts, dur in zip(order.tolist(), *columns, strict=True):
        yield {**events[k], "ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur}


def _microseconds(time_s: Floats) -> Integers:
    return np.rint(time_s * 1e6).astype(np.int64)


def _power(trace: Trace, power: TracePower) -> Iterator[Event]:
    """Yield the power of all computing hosts whenever it changes; nothing where none is known."""
    if not trace.platform.has_energy:
        return
    series = grid_power(trace, power)
    for time, watts in zip(_microseconds(series.time).tolist(), series.total_w.tolist(), strict=True):
        yield {"name": "power", "ph": "C", "pid": _GRID, "ts": time, "args": {"W": watts}}
