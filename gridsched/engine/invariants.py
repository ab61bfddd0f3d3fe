"""What holds of a run after every instant, whatever happened in it; tests ask for it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from gridsched.engine.execution import FINISHED, POSTPONED, QUEUED, RUNNING, UNENDED, VIRTUAL, WAITING, Execution
from gridsched.engine.host_powers import HostPowers, host_powers
from gridsched.engine.node_sets import NodeSets, SharedNodes
from gridsched.engine.ready_times import ReadyTimes
from gridsched.engine.run_state import RunState
from gridsched.model.system import System
from gridsched.model.trace import TaskState

#: What is compared, what it is, and what it must be.
Comparison = tuple[str, Any, Any]


def check_invariants(
    system: System, run: RunState, ready_times: ReadyTimes, powers: HostPowers | None, now: float
) -> None:
    """Compare what is kept in several places, as it is at `now` [s].

    Parameters
    ----------
    system : System
    run : RunState
    ready_times : ReadyTimes
        As they were followed from the start.
    powers : HostPowers or None
        The same.
    now : float
        [s].

    Raises
    ------
    AssertionError
        Where the parts contradict each other.
    """
    for what, kept, expected in _compared(system, run, ready_times, powers, now):
        if kept != expected:
            raise AssertionError(f"{what} at t = {now!r} s: {kept!r}, not {expected!r}")


def _compared(
    system: System, run: RunState, ready_times: ReadyTimes, powers: HostPowers | None, now: float
) -> Iterator[Comparison]:
    yield "open tasks", run.open_tasks, np.count_nonzero(run.states < FINISHED)
    if not run.open_tasks:
        return  # what is over is not cleared up
    yield from _of_run(run, now)
    anew = ReadyTimes(system, run).table(now)
    yield "ready times", ready_times.table(now).tolist(), anew.tolist()
    if powers is not None and not system.platform.profiles.speeds:
        total_w = host_powers(system.platform, run).total_w
        same = math.isclose(powers.total_w, total_w, rel_tol=1e-9, abs_tol=1e-9)
        yield "power [W]", powers.total_w, powers.total_w if same else total_w


def _of_run(run: RunState, now: float) -> Iterator[Comparison]:
    executions = run.executing()
    yield "ended executions", [each for each in executions if each.outcome != UNENDED], []
    yield from _of_tasks(run, executions)
    yield from _of_queues(run)
    up = [on and end <= now for on, end in zip(run.is_on, run.boot_end, strict=True)]
    yield "switched_on", run.switched_on.tolist(), run.is_on
    down = [host for host, is_down in enumerate(run.is_down) if is_down]
    yield "hosts that are down and on", [host for host in down if run.is_on[host]], []
    yield "busy cores", run.busy_cores, sum(each.width for each in executions)
    for each in executions:
        hosts = each.all_hosts
        yield f"hosts of {each} on", [up[host] for host in hosts], [True] * len(hosts)
        if each.has_begun:
            yield f"P-states of {each}", {run.pstate[host] for host in hosts}, {each.pstate}
    if run.nodes is None:
        yield from _of_hosts(run, executions, up)
    else:
        yield from _of_nodes(run, run.nodes, executions, up)


def _of_tasks(run: RunState, executions: list[Execution]) -> Iterator[Comparison]:
    def ids(*states: int) -> set[int]:
        return set(np.flatnonzero(np.isin(run.states, states)).tolist())

    queued = {task for queue in run.fixed for task, _ in queue}
    queued.update(run.reservations.view().task.tolist())
    plans = run.virtual.tasks, run.place_holders.tasks, run.common
    planned = {int(task) for plan in plans for task in plan}
    mappable, n_tasks = ids(WAITING, VIRTUAL), len(run.states)
    yield "to submit", ids(TaskState.NOT_SUBMITTED), set(range(run.submitted, n_tasks)) | run.held
    yield "planned tasks", run.n_virtual, len(ids(VIRTUAL))
    yield "planned tasks that are in no plan", ids(VIRTUAL) - planned, set()
    yield "running tasks", ids(RUNNING), {each.task for each in executions}
    yield "queued tasks", ids(QUEUED), queued - ids(RUNNING)
    postponed = np.flatnonzero(run.states == POSTPONED).tolist()
    yield "postponed tasks", sorted(run.postponed), postponed
    yield "mappable", set(run.mappable().tolist()), mappable
    yield "next waiting", run.next_waiting(n_tasks), sorted(mappable)


def _of_queues(run: RunState) -> Iterator[Comparison]:
    queued = [host for host, queue in enumerate(run.fixed) if queue]
    yield "hosts with queues", sorted(run.queued_hosts), queued
    if run.keeps_places:
        places: dict[int, list[int]] = {}
        for host in queued:
            for task, _ in run.fixed[host]:
                places.setdefault(task, []).append(host)
        yield "places", {task: sorted(hosts) for task, hosts in run.places.items()}, places


def _of_hosts(run: RunState, executions: list[Execution], up: list[bool]) -> Iterator[Comparison]:
    running, free = run.running, run.free
    cores = [n - len(running.get(host, ())) for host, n in enumerate(run.cores)]
    yield "free cores", free, cores
    yield "hosts where nothing runs", [host for host in running if not running[host]], []
    yield "idle hosts", run.idle, [host for host, is_up in enumerate(up) if is_up and free[host]]
    yield "queues of idle hosts", run.queued_hosts.intersection(run.idle), set()
    if run.replicates:
        copies = {each.task: {e for e in executions if e.task == each.task} for each in executions}
        yield "copies", {task: set(each) for task, each in run.copies.items()}, copies


def _of_nodes(run: RunState, nodes: NodeSets, executions: list[Execution], up: list[bool]) -> Iterator[Comparison]:
    taken = [host for each in executions for host in each.all_hosts]
    free = [is_up and host not in taken for host, is_up in enumerate(up)]
    if isinstance(nodes, SharedNodes):
        yield "least that is left", min(nodes.left.min(initial=0), 0), 0
        yield "what is left", nodes.left.tolist(), _left(nodes, executions, up)
    else:
        yield "nodes of two executions", len(taken), len(set(taken))
    yield "ready nodes", nodes.ready.tolist(), up
    yield "free nodes", nodes.free.tolist(), free
    yield "number of free nodes", nodes.n_free, sum(free)
    ends: dict[int, float] = {}
    for each in executions:
        ends |= {host: max(each.estimated_end, ends.get(host, 0.0)) for host in each.all_hosts}
    yield "ends", dict(zip(taken, nodes.free_at(-math.inf)[taken].tolist(), strict=True)), ends
    reserved = run.reservations.view()
    sets = np.split(reserved.hosts, reserved.offsets[1:-1])
    for i, k in combinations(range(len(reserved.task)), 2):
        if reserved.start[i] < reserved.end[k] and reserved.start[k] < reserved.end[i]:
            yield "nodes reserved twice", np.intersect1d(sets[i], sets[k]).tolist(), []
    yield "next reservation", run.reservations.next_start, reserved.start.min(initial=math.inf)


def _left(nodes: SharedNodes, executions: list[Execution], up: list[bool]) -> list[list[int]]:
    """Return what each node has left of what executions take of it, counted anew."""
    left = nodes.amounts * np.array(up, dtype=np.int64)[:, None]
    for each in executions:
        parts = np.ones(each.width) if each.parts is None else each.parts
        left[each.nodes] -= np.outer(parts, nodes.jobs.demand[each.task]).astype(np.int64)
    return left.tolist()
