"""Whether a policy may do what it asks for: each rule returns why not, or None.

Nothing here changes anything or raises; the controller refuses what has a reason.
"""

from __future__ import annotations

import math
from itertools import islice

import numpy as np

from gridsched.arrays import Integers
from gridsched.engine.run_state import RunState
from gridsched.engine.task_states import BLOCKED, VIRTUAL, WAITING
from gridsched.errors import counted
from gridsched.model.system import System
from gridsched.model.trace import TaskState

#: Why not, and the task and host that this is about.
Refusal = tuple[str, int | None, int | None]
#: States of tasks that may start.
_FREE = (WAITING, VIRTUAL)
#: What is to be done about a host that is down.
DOWN = "it comes back by itself, as state.is_down shows"


class DecisionValidator:
    """The rules about places and plans.

    Parameters
    ----------
    system : System
    run : RunState
        Where everything is; only read.
    """

    def __init__(self, system: System, run: RunState) -> None:
        self._run = run
        self._estimates = system.estimates
        self._n_hosts = system.n_hosts
        self._n_pstates_of = system.estimates.n_pstates(system.platform)
        self._n_pstates: list[int] = self._n_pstates_of.tolist()
        self._some_infeasible = not system.estimates.always_feasible
        self._resources = run.resources

    def unknown(self, task: int | None = None, host: int | None = None) -> str | None:
        """Say that the task or the host does not exist."""
        n_tasks = len(self._run.state_of)
        if task is not None and not 0 <= task < n_tasks:
            return f"there are tasks 0 to {n_tasks - 1}"
        if host is not None and not 0 <= host < self._n_hosts:
            return f"there are hosts 0 to {self._n_hosts - 1}"
        return None

    def place(self, task: int, host: int, pstate: int) -> str | None:
        """Say why the task cannot go to the host in this P-state now."""
        run = self._run
        if not (0 <= task < len(run.state_of) and 0 <= host < self._n_hosts):
            return self.unknown(task, host)
        if not 0 <= pstate < self._n_pstates[host]:
            return f"the host has P-states 0 to {self._n_pstates[host] - 1}, not {pstate}"
        if not run.is_open[host]:
            return f"the host is {self.why_closed(host)}"
        if self._some_infeasible and self._estimates.run_time(task, host, pstate) == np.inf:
            return "the task cannot run on this host"
        if (why := self._resources.misfit_alone(task, host)) is not None:
            return why
        if self._resources.cores[host] > 1:
            return self.shared_pstate(task, host, pstate)
        return None

    def may_start(self, task: int, hosts: Integers, parts: Integers | None, pstate: int) -> bool:
        """Whether nothing speaks against a start now: quick, and never wrongly yes."""
        run = self._run
        if not 0 <= task < len(run.state_of) or run.state_of[task] not in _FREE or self._some_infeasible:
            return False
        if (
            run.held
            or run.reservations.next_start < math.inf
            or not self._resources.takes_now(task, hosts, parts, pstate)
        ):
            return False
        return 0 <= pstate < self._n_pstates[hosts.item(0)]

    def places(
        self, task: int, hosts: Integers, parts: Integers | None, pstate: int, *, is_copy: bool = False
    ) -> Refusal | None:
        """Find why the task can never run on these hosts, which ascend, in this P-state.

        Parameters
        ----------
        task : int
        hosts : ndarray of int64
        parts : ndarray of int64, or None
            How many of its parts lie on each host; None: one.
        pstate : int
        is_copy : bool
            Whether it may run already.
        """
        why = self.unknown(task)
        if why is None and not is_copy:
            why = self.assigned(self._run.state_of[task])
        if why is not None:
            return why, task, None
        first, last = hosts.item(0), hosts.item(-1)
        if first < 0 or last >= self._n_hosts:
            return f"there are hosts 0 to {self._n_hosts - 1}", task, None
        misfit = self._resources.misfit(task, hosts, parts)
        if misfit is not None:
            return misfit[0], task, misfit[1]
        if not 0 <= pstate < self._n_pstates[first]:
            return f"its hosts have P-states 0 to {self._n_pstates[first] - 1}, not {pstate}", task, None
        if self._some_infeasible and self._estimates.run_time(task, first, pstate) == np.inf:
            return "the task cannot run on these hosts", task, None
        return None

    def free_between(
        self, task: int, hosts: Integers, parts: Integers | None, pstate: int, start: float, end: float, now: float
    ) -> Refusal | None:
        """Find why hosts cannot give parts of a task from `start` to `end` [s], as far as is known `now`."""
        run, resources = self._run, self._resources
        if start <= now:
            refusal = self.startable(task, hosts, parts, pstate)
            if refusal is not None:
                return *refusal[:2], None  # it names the host
            if run.reservations.next_start == math.inf:
                return None
        elif (late := resources.too_early(hosts, start, now)) is not None:
            host = hosts.item(late[0])
            if not run.is_open[host]:
                return f"host {host} is {self.why_closed(host)}", task, None
            why = f"host {host} is free from {late[1]:g} s on (state.nodes.free_at); {start:g} s is too early"
            return why, task, None
        conflict = resources.conflict(task, hosts, parts, start, end, run.reservations)
        if conflict is None:
            return None
        host, other = conflict
        word = "taken" if other.has_begun else "reserved"
        why = (
            f"host {host} is {word} from {other.start:g} s to {other.end:g} s by task {other.task} (state.nodes); "
            f"it is asked for from {start:g} s to {end:g} s"
        )
        return why, task, None

    def startable(self, task: int, hosts: Integers, parts: Integers | None, pstate: int) -> Refusal | None:
        """Find why the task cannot start now on these hosts, which ascend."""
        run, resources = self._run, self._resources
        if task in run.held:
            return "the task waits for others (state.blocked)", task, None
        place = resources.lacking(task, hosts, parts)
        if place is not None:
            host = hosts.item(place)
            return self._why_not_free(task, host, 1 if parts is None else parts.item(place)), task, host
        other = resources.disagreeing(hosts, pstate)
        return None if other is None else (_shared(pstate, other[1]), task, other[0])

    def place_holders(
        self, tasks: Integers, hosts: Integers, first: Integers, widths: Integers, pstates: Integers
    ) -> Refusal | None:
        """Find a place-holder that is not allowed, but for its hosts other than the first.

        Parameters
        ----------
        tasks : ndarray of int64, shape (tasks,)
        hosts : ndarray of int64
            Hosts of all tasks, one after the other.
        first, widths, pstates : ndarray of int64, shape (tasks,)
            First host of each task, and how many places it takes.
        """
        if not len(tasks):
            return None
        refusal = self.common_plan(tasks)
        if refusal is not None:
            return refusal
        if hosts.min() < 0 or hosts.max() >= self._n_hosts:
            return f"there are hosts 0 to {self._n_hosts - 1}", None, None
        legal = (pstates >= 0) & (pstates < self._n_pstates_of[first])
        if legal.all():
            legal = np.isfinite(self._estimates.run_times(tasks, first, pstates))
        if legal.all():
            legal = widths == self._resources.widths(tasks, first)
        if legal.all():
            return None
        k = int(np.argmin(legal))
        end = int(widths[: k + 1].sum())
        part = ascending(hosts[end - int(widths[k]) : end])
        refusal = self.places(int(tasks[k]), *part, int(pstates[k]))
        return refusal or ("the place is not allowed", int(tasks[k]), None)

    def _why_not_free(self, task: int, host: int, parts: int) -> str:
        resources = self._resources
        if not self._run.is_open[host]:
            return f"host {host} is {self.why_closed(host)}"
        if not resources.is_ready(host):
            return f"host {host} has not booted yet"
        left = resources.free_cores().item(host)
        return (
            f"host {host} is busy: it has {counted(left, 'free core')}, "
            f"and {parts} parts of the task find no room there"
        )

    def why_closed(self, host: int) -> str:
        """Say why a host takes no tasks, and what helps."""
        if self._run.is_drained(host):
            return f"drained; {DOWN}"
        return f"down; {DOWN}" if self._run.is_down[host] else "off; PowerOn it first"

    def shared_pstate(self, task: int, host: int, pstate: int) -> str | None:
        """A host has one P-state for all its cores: what runs, is fixed and planned must agree.

        One of each is looked at, because they agreed when they came.
        """
        run = self._run
        present = [e.pstate for e in self._resources.on_host(host)[:1]]
        present += [k for _, k in islice(run.fixed[host], 1)]
        planned = (k for t, k in run.virtual.left(host) if run.state_of[t] == VIRTUAL and t != task)
        present += islice(planned, 1)
        return next((_shared(pstate, other) for other in present if other != pstate), None)

    def assigned(self, state: int) -> str | None:
        """Say why a task in this state cannot be assigned."""
        return None if state in (WAITING, VIRTUAL, BLOCKED) else f"the task is {_word(state)}"

    def mappable(self, task: int, done: str) -> str | None:
        """Say why the task cannot be dropped or postponed (`done`)."""
        state = self._run.state_of[task]
        if state in (WAITING, VIRTUAL):
            return None
        return f"only a mappable task can be {done}; it is {_word(state)}"

    def plan(self, tasks: Integers, hosts: Integers, pstates: Integers) -> Refusal | None:
        """Find an entry of a plan that is not allowed; all are looked at together."""
        run = self._run
        if not len(tasks):
            return None
        exist = (tasks >= 0) & (tasks < len(run.states)) & (hosts >= 0) & (hosts < self._n_hosts)
        legal = exist
        if exist.all():
            legal = (pstates >= 0) & (pstates < self._n_pstates_of[hosts])
            if not all(run.is_open):
                legal &= run.opened[hosts]
            if self._some_infeasible and legal.all():
                legal &= np.isfinite(self._estimates.run_times(tasks, hosts, pstates))
        if not legal.all():
            k = int(np.flatnonzero(~legal)[0])
            place = int(tasks[k]), int(hosts[k]), int(pstates[k])
            return self.place(*place) or "the place is not allowed", *place[:2]
        refusal = self.common_plan(tasks, hosts)
        if refusal is None:
            refusal = self._resources.misfit_of_plan(tasks, hosts)
        if refusal is None and not self._resources.one_core:
            return self._planned_pstates(tasks, hosts, pstates)
        return refusal

    def common_plan(self, tasks: Integers, hosts: Integers | None = None) -> Refusal | None:
        """Find a planned task that is none, does not wait or is listed twice, and its host."""
        states = self._run.states
        exist = (tasks >= 0) & (tasks < len(states))
        if not exist.all():
            task = int(tasks[np.argmin(exist)])
            return self.unknown(task) or "", task, None
        free = (states[tasks] == WAITING) | (states[tasks] == BLOCKED)
        ascend = bool((tasks[1:] > tasks[:-1]).all())
        if free.all() and (ascend or not self._repeats(tasks)):
            return None
        repeated = np.ones(len(tasks), dtype=bool)
        repeated[np.unique(tasks, return_index=True)[1]] = False
        k = int(np.flatnonzero(repeated | ~free)[0])
        word = _word(VIRTUAL if free[k] else int(states[tasks[k]]))
        why = f"Plan holds a task twice, or one that is {word}"
        return why, int(tasks[k]), None if hosts is None else int(hosts[k])

    def lie_alone(self, tasks: Integers) -> Refusal | None:
        """Find a task that takes several hosts, and so has no place in a common queue."""
        alone = self._resources.fits_one_host(tasks)
        if alone.all():
            return None
        return "a Plan without hosts needs tasks that one host can hold", int(tasks[alone.argmin()]), None

    def _repeats(self, tasks: Integers) -> bool:
        """Whether a task is listed twice among waiting ones."""
        first = int(tasks.min())
        seen = np.zeros(int(tasks.max()) + 1 - first, dtype=bool)
        seen[tasks - first] = True
        return int(np.count_nonzero(seen)) < len(tasks)

    def _planned_pstates(self, tasks: Integers, hosts: Integers, pstates: Integers) -> Refusal | None:
        """Find an entry of a plan that gives the cores of one host different P-states."""
        planned: dict[int, int] = {}
        for task, host, pstate in zip(tasks.tolist(), hosts.tolist(), pstates.tolist(), strict=True):
            if self._resources.cores[host] == 1:
                continue
            why = self.shared_pstate(task, host, pstate)
            if why is None and planned.setdefault(host, pstate) != pstate:
                why = _shared(pstate, planned[host])
            if why is not None:
                return why, task, host
        return None


def ascending(hosts: Integers) -> tuple[Integers, Integers | None]:
    """Return hosts in ascending order, each once, and how often each is listed; None: once."""
    if (hosts[1:] > hosts[:-1]).all():
        return hosts, None
    ordered = np.sort(hosts)
    if (ordered[1:] > ordered[:-1]).all():
        return ordered, None
    return np.unique(hosts, return_counts=True)


def _word(state: int) -> str:
    return TaskState(state).name.lower()


def _shared(pstate: int, other: int) -> str:
    return f"P-state {pstate} on a host whose other work uses P-state {other}; all cores of a host share one"
