"""What holds of a run after every instant, whatever happened in it; tests ask for it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from gridsched.energy import trace_energy
from gridsched.engine.execution import UNENDED, Execution
from gridsched.engine.host_powers import BoundedPowers, HostPowers
from gridsched.engine.plans import Reservations
from gridsched.engine.ready_times import ReadyTimes
from gridsched.engine.run_state import RunState
from gridsched.engine.shared_nodes import SharedNodes
from gridsched.engine.task_states import BLOCKED, FINISHED, POSTPONED, QUEUED, RUNNING, VIRTUAL, WAITING
from gridsched.metrics.identities import Identity, identities_of
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.trace import TaskState, Trace
from gridsched.policy.state import SharedNodesState

#: Whether a task of each state waits.
_WAITS = np.isin(np.arange(len(TaskState)), (BLOCKED, WAITING, VIRTUAL, QUEUED, POSTPONED))


class Laws:
    """Counts how many tasks wait from one validated instant to the next, for Little's law at the end of the run.

    Parameters
    ----------
    tasks : Tasks
    has_messages : bool
        Whether tasks receive their input before they start.
    """

    def __init__(self, tasks: Tasks, *, has_messages: bool = False) -> None:
        self._tasks, self._has_messages = tasks, has_messages
        self._since = self._waited_s = 0.0
        self._waiting = self._submitted = 0

    def look(self, run: RunState, now: float) -> None:
        """Note who waits at `now` [s]; who was submitted since the last instant has waited since then."""
        new = self._tasks.submit_time_s[self._submitted : run.submitted]
        self._waited_s += self._waiting * (now - self._since) + float((now - new).sum())
        self._since, self._submitted = now, run.submitted
        self._waiting = int(np.count_nonzero(_WAITS[run.states[: run.submitted]]))

    def check(self, trace: Trace) -> None:
        """Hold a run that is over to all that is known of any, see `gridsched.metrics.identities`.

        Raises
        ------
        AssertionError
            Where a law is broken.
        """
        laws = list(identities_of(trace, trace_energy(trace)))
        started = trace.executions["task"]
        waited_s = (trace.executions["start"] - trace.tasks.submit_time_s[started]).sum()
        # who lost its host waits again, and the records do not say how long
        is_once = np.array_equal(np.sort(started), np.arange(len(trace.tasks))) and trace.had_turn.all()
        # what waits on its host for files or data, or receives its input, has not started, but waits in no queue
        starts_at_once = self._tasks.files is None and not len(trace.transfers) and not self._has_messages
        if is_once and starts_at_once:
            laws.append(Identity("Little's law, as tasks were counted", "s", float(waited_s), self._waited_s))
        for each in laws:
            if each.fails:
                raise AssertionError(f"{each.name}: {each.direct!r} {each.unit}, not {each.other!r}")


#: What is not so while the power cap holds everything back.
_COULD_GO_ON = "hosts whose queue could go on"
#: What is compared (of what, where there are several), what it is, and what it must be.
Comparison = tuple[str | tuple[str, object], Any, Any]


def check_invariants(
    system: System,
    run: RunState,
    ready_times: ReadyTimes,
    powers: HostPowers,
    now: float,
    *,
    is_held_back: bool = False,
) -> None:
    """Compare what is kept in several places, as it is at `now` [s].

    Parameters
    ----------
    system : System
    run : RunState
    ready_times : ReadyTimes
        As they were followed from the start.
    powers : HostPowers
        The same.
    now : float
        [s].
    is_held_back : bool
        Whether nothing starts although there is room: the hosts draw more than a cap that was lowered.

    Raises
    ------
    AssertionError
        Where the parts contradict each other.
    """
    for what, kept, expected in _compared(system, run, ready_times, powers, now):
        if what == _COULD_GO_ON and is_held_back:
            continue
        if kept != expected:
            if isinstance(what, tuple):
                what = f"{what[0]} {what[1]}"
            raise AssertionError(f"{what} at t = {now!r} s: {kept!r}, not {expected!r}")


def _compared(
    system: System, run: RunState, ready_times: ReadyTimes, powers: HostPowers, now: float
) -> Iterator[Comparison]:
    yield "open tasks", run.open_tasks, int(np.count_nonzero(run.states < FINISHED))
    if not run.open_tasks:
        return  # what is over is not cleared up
    yield from _of_run(run, now)
    yield "ready times", ready_times.table(now).tolist(), ready_times.again().table(now).tolist()
    if powers.exists and not isinstance(powers, BoundedPowers) and not system.platform.profiles.speeds:
        total_w = HostPowers(system.platform, run).total_w
        same = math.isclose(powers.total_w, total_w, rel_tol=1e-9, abs_tol=1e-9)
        yield "power [W]", powers.total_w, powers.total_w if same else total_w


def _of_run(run: RunState, now: float) -> Iterator[Comparison]:
    executions = run.executing()
    yield "ended executions", [each for each in executions if each.outcome != UNENDED], []
    yield from _of_tasks(run, executions)
    yield from _of_queues(run)
    up = [on and end <= now for on, end in zip(run.is_on, run.boot_end, strict=True)]
    drained = run.resources.drained
    yield "switched_on", run.switched_on.tolist(), run.is_on
    open_hosts = [on and host not in drained for host, on in enumerate(run.is_on)]
    yield "open hosts", run.is_open, open_hosts
    yield "opened", run.opened.tolist(), open_hosts
    yield "drained hosts with queues", run.queued_hosts & drained, set()
    down = [host for host, is_down in enumerate(run.is_down) if is_down]
    yield "hosts that are down and on", [host for host in down if run.is_on[host]], []
    yield "executions", run.n_executing, len(executions)
    for each in executions:
        hosts = each.all_hosts
        yield ("hosts that are on of", each), [up[host] for host in hosts], [True] * len(hosts)
        if each.has_begun:
            yield ("P-states of", each), {run.pstate[host] for host in hosts}, {each.pstate}
    yield from _of_hosts(run, executions, up)
    yield from _of_reservations(run)
    if run.replicates:
        copies = {each.task: {e for e in executions if e.task == each.task} for each in executions}
        yield "copies", {task: set(each) for task, each in run.copies.items()}, copies


def _of_tasks(run: RunState, executions: list[Execution]) -> Iterator[Comparison]:
    # a look at each task costs less than several at all of a short array
    of: dict[int, set[int]] = defaultdict(set)
    unfinished = (run.states < FINISHED).nonzero()[0]
    for task, state in zip(unfinished.tolist(), run.states[unfinished].tolist(), strict=True):
        of[state].add(task)
    queued = {task for queue in run.fixed for task, _ in queue}
    queued.update(run.reservations.view().task.tolist())
    plans = run.virtual.tasks, run.place_holders.tasks, run.common
    planned = {int(task) for plan in plans for task in plan}
    mappable = of[WAITING] | of[VIRTUAL]
    yield "to submit", of[TaskState.NOT_SUBMITTED], set(range(run.submitted, run.n_tasks))
    yield "blocked tasks", of[BLOCKED], run.held - of[QUEUED] - of[VIRTUAL]
    yield "running tasks that wait for others", run.held & of[RUNNING], set()
    yield "planned tasks", run.n_virtual, len(of[VIRTUAL])
    yield "planned tasks that are in no plan", of[VIRTUAL] - planned, set()
    yield "running tasks", of[RUNNING], {each.task for each in executions}
    yield "queued tasks", of[QUEUED], queued - of[RUNNING]
    yield "postponed tasks", sorted(run.postponed), sorted(of[POSTPONED])
    yield "mappable", set(run.mappable().tolist()), mappable
    yield "next waiting", run.next_waiting(len(run.states)), sorted(mappable)


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
    resources, n = run.resources, len(up)
    here: list[list[Execution]] = [[] for _ in range(n)]
    ends: list[list[float]] = [[] for _ in range(n)]  # once for each core
    for each in executions:
        for host, cores in zip(each.all_hosts, each.cores.tolist(), strict=True):
            here[host].append(each)
            ends[host] += [each.estimated_end] * cores
    taken = [len(some) for some in ends]
    free = [of - used for of, used in zip(resources.cores, taken, strict=True)]
    yield "hosts with more work than cores", [host for host in range(n) if free[host] < 0], []
    yield "free cores", resources.free_cores().tolist(), free
    yield "executions of hosts", [set(resources.on_host(host)) for host in range(n)], [set(some) for some in here]
    yield "busy hosts", [resources.is_busy(host) for host in range(n)], [bool(some) for some in here]
    yield "ready hosts", [resources.is_ready(host) for host in range(n)], up
    takes = [is_up and host not in resources.drained for host, is_up in enumerate(up)]
    idle = [host for host in range(n) if takes[host] and free[host]]
    yield "idle hosts", resources.idle_hosts(), idle
    yield "idle cores", resources.idle_cores(), [host for host in idle for _ in range(free[host])]
    waiting = [host for host in run.queued_hosts if takes[host] and run.fixed[host][0][0] not in run.held]
    yield _COULD_GO_ON, [h for h in waiting if resources.has_room(run.fixed[h][0][0], h)], []
    yield "ends", [sorted(resources.core_ends(host)) for host in range(n)], [sorted(some) for some in ends]
    state = resources.state(-math.inf, run.reservations)
    yield "free nodes", state.free.tolist(), [takes[host] and not here[host] for host in range(n)]
    yield "number of free nodes", state.n_free, int(state.free.sum())
    known = [host for host in range(n) if ends[host]]
    free_at = [max(ends[host]) if host not in resources.drained else math.inf for host in known]
    yield "free at", state.free_at[known].tolist(), free_at
    back = sum(len(set(each.all_hosts) - resources.drained) for each in executions)
    yield "hosts that come back", int(state.width.sum()), back
    if isinstance(state, SharedNodesState):
        yield from _of_shares(run, state, takes)


def _of_shares(run: RunState, state: SharedNodesState, takes: list[bool]) -> Iterator[Comparison]:
    """Compare what nodes that are shared have left with what executions take, counted again."""
    resources = run.resources
    assert isinstance(resources, SharedNodes)
    left = resources.amounts * np.array(takes, dtype=np.int64)[:, None]
    for each in run.executing():
        left[each.nodes] -= np.outer(each.parts_each, resources.jobs.demand[each.task])
    left[list(resources.drained)] = 0
    yield "least that is left", min(left.min(initial=0), 0), 0
    yield "what is left", state.left.tolist(), left.tolist()


def _of_reservations(run: RunState) -> Iterator[Comparison]:
    reserved = run.reservations.view()
    yield "next reservation", run.reservations.next_start, reserved.start.min(initial=math.inf)
    made = run.reservations.between(-math.inf, math.inf)
    for each in made:
        conflict = run.resources.conflict(each.task, each.nodes, each.parts, each.start, each.end, _Without(run, each))
        yield ("what takes the hosts of the reservation of task", each.task), conflict, None


class _Without(Reservations):
    """All reservations of a run but one."""

    def __init__(self, run: RunState, left_out: Execution) -> None:
        super().__init__(len(run.is_on))
        for each in run.reservations.between(-math.inf, math.inf):
            if each is not left_out:
                self.add(each)
