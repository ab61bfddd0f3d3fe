"""Whether a policy may do what it asks for: each rule returns why not, or None.

Nothing here changes anything or raises; the controller refuses what has a reason.
"""

from __future__ import annotations

import math
from itertools import islice

import numpy as np

from gridsched.arrays import Integers
from gridsched.engine.execution import VIRTUAL, WAITING
from gridsched.engine.node_sets import SharedNodes
from gridsched.engine.run_state import RunState
from gridsched.model.system import System
from gridsched.model.trace import TaskState

#: Why not, and the task and host that this is about.
Refusal = tuple[str, int | None, int | None]
#: What is to be done about a host that is down.
DOWN = "it comes back by itself, as state.is_down tells"


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
        self._cluster_of = system.platform.cluster_of if len(system.platform.clusters) > 1 else None
        self._partitions = system.platform.partitions
        self._pstate_of = system.pstates
        self._members = np.zeros((len(self._partitions), system.n_hosts), dtype=np.bool_)
        for k, partition in enumerate(self._partitions):
            self._members[k, list(partition.hosts)] = True

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
        if not run.is_on[host]:
            return f"the host is {self._why_off(host)}"
        if self._some_infeasible and self._estimates.run_time(task, host, pstate) == np.inf:
            return "the task cannot run on this host"
        if run.cores[host] > 1:
            return self.shared_pstate(task, host, pstate)
        return None

    def node_set(self, task: int, hosts: Integers, pstate: int) -> str | None:
        """Say why the task can never run on these nodes, which ascend, in this P-state."""
        run = self._run
        if not 0 <= task < len(run.state_of):
            return self.unknown(task)
        if (why := self.assigned(run.state_of[task])) is not None:
            return why
        first, last = hosts.item(0), hosts.item(-1)
        if first < 0 or last >= self._n_hosts:
            return f"there are hosts 0 to {self._n_hosts - 1}"
        cluster_of = self._cluster_of
        if cluster_of is not None and (cluster_of[hosts] != cluster_of[first]).any():
            return "its nodes lie in several clusters; take them from one"
        if not 0 <= pstate < self._n_pstates[first]:
            return f"its nodes have P-states 0 to {self._n_pstates[first] - 1}, not {pstate}"
        if self._some_infeasible and self._estimates.run_time(task, first, pstate) == np.inf:
            return "the task cannot run on these hosts"
        width = self._estimates.width(task, first)
        if len(hosts) != width:
            return f"the task takes {width} nodes, not {len(hosts)}"
        return None

    def parts(self, task: int, hosts: Integers, parts: Integers | None, pstate: int | None) -> Refusal | None:
        """Find why a task cannot start on parts of nodes, which ascend, in this P-state; parts None: one each."""
        nodes = self._run.nodes
        assert isinstance(nodes, SharedNodes)
        why = self.unknown(task) or self.assigned(self._run.state_of[task])
        if why is not None:
            return why, task, None
        jobs, first, last = nodes.jobs, hosts.item(0), hosts.item(-1)
        if first < 0 or last >= self._n_hosts:
            return f"there are hosts 0 to {self._n_hosts - 1}", task, None
        n_parts = len(hosts) if parts is None else int(parts.sum())
        if n_parts != jobs.width.item(task):
            return f"the task has {jobs.width[task]} parts, not {n_parts}", task, None
        if n_parts > len(hosts) and not jobs.anywhere[task]:
            return "a host stands there twice, and each part of the task needs a node of its own", task, None
        if pstate != self._pstate_of.item(first):
            return "nodes that jobs share stay in the P-state in which they started", task, None
        need = jobs.demand[task]
        demand = need[None] if parts is None else np.outer(parts, need)
        enough = (nodes.left[hosts] >= demand).all(axis=1) & self._members[jobs.partition.item(task), hosts]
        if enough.all():
            return None
        k = int(np.argmin(enough))
        return self._why_cannot_give(task, hosts.item(k), demand[k % len(demand)]), task, hosts.item(k)

    def _why_cannot_give(self, task: int, host: int, wanted: Integers) -> str:
        """Say why a host cannot give what a task wants."""
        nodes = self._run.nodes
        assert isinstance(nodes, SharedNodes)
        partition = nodes.jobs.partition.item(task)
        if not self._members[partition, host]:
            return f"host {host} is not in its partition, {self._partitions[partition].name!r}"
        if not nodes.ready[host]:
            return self._why_not_free(host)
        left = nodes.left[host].tolist()
        return f"host {host} has {left} left, as state.nodes.left tells, and the task takes {wanted.tolist()}"

    def free_between(self, hosts: Integers, start: float, end: float, now: float) -> str | None:
        """Say why nodes are not free from `start` to `end` [s], as far as is known `now`."""
        run, nodes = self._run, self._run.nodes
        assert nodes is not None
        if start <= now:
            host = self.not_free(hosts)
            if host is not None:
                return self._why_not_free(host)
        else:
            free_at = nodes.free_at(now, hosts)
            if free_at.max() > start:
                host = int(hosts[np.argmax(free_at)])
                if not run.is_on[host]:
                    return f"host {host} is {self._why_off(host)}"
                return (
                    f"host {host} is free from {free_at.max():g} s on, as state.nodes.free_at "
                    f"tells; {start:g} s is too early"
                )
        if run.reservations.next_start == math.inf:
            return None
        conflict = run.reservations.found(hosts, start, end)
        if conflict is not None:
            host, other = conflict
            return (
                f"host {host} is reserved from {other.start:g} s to {other.end:g} s, as "
                f"state.nodes.reserved tells; it is asked for from {start:g} s to {end:g} s"
            )
        return None

    def not_free(self, hosts: Integers) -> int | None:
        """Find a node that can start nothing now."""
        nodes = self._run.nodes
        assert nodes is not None
        free = nodes.free[hosts]
        return None if free.all() else int(hosts[free.argmin()])

    def node_plan(
        self, tasks: Integers, hosts: Integers, first: Integers, widths: Integers, pstates: Integers
    ) -> Refusal | None:
        """Find a place-holder that is illegal, but for its nodes other than the first.

        Parameters
        ----------
        tasks : ndarray of int64, shape (tasks,)
        hosts : ndarray of int64
            Nodes of all tasks, one after the other.
        first, widths, pstates : ndarray of int64, shape (tasks,)
            First node of each task, and how many it has.
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
            legal = widths == self._estimates.widths(tasks, first)
        if legal.all():
            return None
        k = int(np.argmin(legal))
        end = int(widths[: k + 1].sum())
        part = np.sort(hosts[end - int(widths[k]) : end])
        why = self.node_set(int(tasks[k]), part, int(pstates[k]))
        return why or "the place is illegal", int(tasks[k]), None

    def _why_not_free(self, host: int) -> str:
        if self._run.is_busy(host):
            return f"host {host} is busy; take free ones, as state.nodes.free tells"
        if not self._run.is_on[host]:
            return f"host {host} is {self._why_off(host)}"
        return f"host {host} has not booted yet"

    def _why_off(self, host: int) -> str:
        return f"down; {DOWN}" if self._run.is_down[host] else "off; PowerOn it first"

    def shared_pstate(self, task: int, host: int, pstate: int) -> str | None:
        """A host has one P-state for all its cores: what runs, is fixed and planned must agree.

        One of each is looked at, because they agreed when they came.
        """
        run = self._run
        present = [e.pstate for e in run.running.get(host, [])[:1]]
        present += [k for _, k in islice(run.fixed[host], 1)]
        planned = (k for t, k in run.virtual.left(host) if run.state_of[t] == VIRTUAL and t != task)
        present += islice(planned, 1)
        return next((_shared(pstate, other) for other in present if other != pstate), None)

    def assigned(self, state: int) -> str | None:
        """Say why a task in this state cannot be assigned."""
        return None if state in (WAITING, VIRTUAL) else f"the task is {_word(state)}"

    def mappable(self, task: int, done: str) -> str | None:
        """Say why the task cannot be dropped or postponed (`done`)."""
        state = self._run.state_of[task]
        if state in (WAITING, VIRTUAL):
            return None
        return f"only a mappable task can be {done}; it is {_word(state)}"

    def plan(self, tasks: Integers, hosts: Integers, pstates: Integers) -> Refusal | None:
        """Find an entry of a plan that is illegal; all are looked at together."""
        run = self._run
        if not len(tasks):
            return None
        exist = (tasks >= 0) & (tasks < len(run.states)) & (hosts >= 0) & (hosts < self._n_hosts)
        legal = exist
        if exist.all():
            legal = (pstates >= 0) & (pstates < self._n_pstates_of[hosts])
            if not all(run.is_on):
                legal &= np.array(run.is_on)[hosts]
            if self._some_infeasible and legal.all():
                legal &= np.isfinite(self._estimates.run_times(tasks, hosts, pstates))
        if not legal.all():
            k = int(np.flatnonzero(~legal)[0])
            place = int(tasks[k]), int(hosts[k]), int(pstates[k])
            return self.place(*place) or "the place is illegal", *place[:2]
        refusal = self.common_plan(tasks, hosts)
        if refusal is None and not run.one_core:
            return self._planned_pstates(tasks, hosts, pstates)
        return refusal

    def common_plan(self, tasks: Integers, hosts: Integers | None = None) -> Refusal | None:
        """Find a planned task that is none, does not wait or stands there twice, and its host."""
        states = self._run.states
        exist = (tasks >= 0) & (tasks < len(states))
        if not exist.all():
            task = int(tasks[np.argmin(exist)])
            return self.unknown(task) or "", task, None
        free = states[tasks] == WAITING
        ascend = bool((tasks[1:] > tasks[:-1]).all())
        if free.all() and (ascend or not self._repeats(tasks)):
            return None
        repeated = np.ones(len(tasks), dtype=bool)
        repeated[np.unique(tasks, return_index=True)[1]] = False
        k = int(np.flatnonzero(repeated | ~free)[0])
        word = _word(VIRTUAL if free[k] else int(states[tasks[k]]))
        why = f"Plan holds a task twice, or one that is {word}"
        return why, int(tasks[k]), None if hosts is None else int(hosts[k])

    def _repeats(self, tasks: Integers) -> bool:
        """Whether a task stands twice among waiting ones."""
        first = int(tasks.min())
        seen = np.zeros(int(tasks.max()) + 1 - first, dtype=bool)
        seen[tasks - first] = True
        return int(np.count_nonzero(seen)) < len(tasks)

    def _planned_pstates(self, tasks: Integers, hosts: Integers, pstates: Integers) -> Refusal | None:
        """Find an entry of a plan that gives the cores of one host different P-states."""
        planned: dict[int, int] = {}
        for task, host, pstate in zip(tasks.tolist(), hosts.tolist(), pstates.tolist(), strict=True):
            if self._run.cores[host] == 1:
                continue
            why = self.shared_pstate(task, host, pstate)
            if why is None and planned.setdefault(host, pstate) != pstate:
                why = _shared(pstate, planned[host])
            if why is not None:
                return why, task, host
        return None


def _word(state: int) -> str:
    return TaskState(state).name.lower()


def _shared(pstate: int, other: int) -> str:
    return f"P-state {pstate} on a host whose other work uses P-state {other}; all cores of a host share one"
