"""Where every task and host is: the bookkeeping behind the controller and the state view.

Plain lists and a bytearray, because one number is read or written at a time; the scheduler's
view builds arrays from them when asked for.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections import deque
from typing import Any

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.engine.execution import (
    FINISHED,
    QUEUED,
    RUNNING,
    VIRTUAL,
    WAITING,
    Execution,
    HostChanges,
    TaskStates,
    execution_records,
    node_records,
)
from gridsched.engine.node_sets import NodeSets, SharedNodes
from gridsched.engine.plans import PlaceHolders, Reservations, VirtualQueues
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.policy.base import Traits


class RunState(TaskStates):
    """Mutable record of one run.

    Attributes
    ----------
    free : list of int
        Free cores of each host.
    is_on : list of bool
    switched_on : ndarray of bool, shape (hosts,)
        The same as an array.
    is_down : list of bool
        Hosts that went down by themselves; they are off.
    switching_w : dict of int to float
        What each host draws that shuts down, or boots in a P-state of its own [W].
    boot_end : list of float
        Time until which a host boots [s].
    idle_since : list of float
        When the last execution on each host ended [s]; serial work's only.
    pstate : array of int
    pstates : ndarray of int64, shape (hosts,)
        The same, sharing its memory.
    nodes : NodeSets or None
        Where tasks are parallel: what runs on which nodes. `running`, `free` and `idle` are of
        serial work.
    running : dict of int to list of Execution
        On each host where something runs, in order of start.
    fixed : list of deque of (task, pstate)
        Fixed queue of each host.
    queued_hosts : set of int
        Hosts whose fixed queue is not empty.
    virtual : VirtualQueues
    place_holders : PlaceHolders
    reservations : Reservations
        Of parallel tasks, as are place-holders.
    common : deque of int
        Planned tasks that any free core takes, in this order; some may have gone another way.
    copies : dict of int to list of Execution
        Running copies of each task, where the policy replicates.
    places : dict of int to list of int
        Hosts in whose fixed queues a task stands, where the policy replicates or cancels.
    version : list of int
        Of each host: how often anything but an append to its fixed queue has happened there.
    journal : list of int
        Hosts on which something happened, one after the other; readers remember how far they read.
    executions : list of Execution
        All of them, in order of start.
    busy_cores : int
        Cores that execute, or wait for the input files of what they will execute.
    """

    def __init__(self, system: System, tasks: Tasks, hosts_off: frozenset[int], traits: Traits) -> None:
        n = system.n_hosts
        self.cores: list[int] = system.platform.cores.tolist()
        self.one_core = max(self.cores, default=1) == 1
        self.free = list(self.cores)
        self.is_on = [h not in hosts_off for h in range(n)]
        self.switched_on = np.array(self.is_on, dtype=np.bool_)
        self.is_down = [False] * n
        self.switching_w: dict[int, float] = {}
        self.boot_end = [0.0] * n
        self.idle_since = [0.0] * n
        self.pstate = array("q", system.first_pstates.tolist())
        self.pstates = np.frombuffer(self.pstate, dtype=np.int64)
        self.nodes: NodeSets | None = None
        if tasks.width is not None:
            self.nodes = NodeSets(self.is_on) if tasks.demand is None else SharedNodes(self.is_on, system, tasks)
        super().__init__(len(tasks))
        self.running: dict[int, list[Execution]] = {}
        self.fixed: list[deque[tuple[int, int]]] = [deque() for _ in range(n)]
        self.queued_hosts: set[int] = set()
        self.virtual = VirtualQueues(n)
        self.place_holders = PlaceHolders()
        self.reservations = Reservations(n)
        self.common: deque[int] = deque()
        self.executions: list[Execution] = []
        self.copies: dict[int, list[Execution]] = {}
        self.places: dict[int, list[int]] = {}
        self.replicates = traits.replicates
        self.keeps_places = traits.replicates or traits.may_cancel
        self.host_changes = HostChanges(self.pstates, self.is_on)
        self.version = [0] * n
        self.journal: list[int] = list(range(n))
        self.watches_nodes = system.rules.parked_pstate is not None
        self.busy_cores = 0
        #: ids of hosts that are on, not booting, and have a free core; ascending. Their fixed
        #: queues are empty, because a free core takes from them at once.
        self.idle: list[int] = [h for h in range(n) if self.is_on[h]]

    def end_tasks(self, state: int, *, running: bool) -> None:
        """Give all tasks a final state, perhaps those that run, too, and let none be submitted."""
        self.withdraw_plan()
        left = self.states < FINISHED
        if not running:
            left &= self.states != RUNNING
        self.states[left] = state
        self.open_tasks -= int(np.count_nonzero(left))
        self.submitted = len(self.states)
        self.held.clear()
        self.postponed = []
        for host in self.queued_hosts:
            self.fixed[host].clear()
            self.touch(host)
        self.queued_hosts.clear()
        self.places.clear()
        self.reservations.clear()

    def touch(self, host: int) -> None:
        """Note that more than an append to the fixed queue has happened on a host."""
        self.version[host] += 1
        self.journal.append(host)

    def core_freed(self, execution: Execution) -> None:
        """Take an execution off its core; the host becomes idle if it was full."""
        host = execution.host
        running = self.running[host]
        running.remove(execution)
        if not running:
            del self.running[host]
            self.idle_since[host] = execution.end
        self.busy_cores -= 1
        self.version[host] += 1  # `touch`: calls are dear here
        self.journal.append(host)
        self.free[host] += 1
        if self.free[host] == 1:
            insort(self.idle, host)

    def core_taken(self, execution: Execution) -> None:
        """Put an execution on a core; a full host is no longer idle."""
        task, host = execution.task, execution.host
        self.n_virtual -= self.state_of[task] == VIRTUAL  # `_move`, and `touch` below
        self.state_of[task] = RUNNING
        self.running.setdefault(host, []).append(execution)
        if self.replicates:
            self.copies.setdefault(task, []).append(execution)
        self.busy_cores += 1
        self.version[host] += 1
        self.journal.append(host)
        self.free[host] -= 1
        if not self.free[host]:
            del self.idle[bisect_left(self.idle, host)]

    def nodes_taken(self, execution: Execution) -> None:
        """Put an execution on its set of nodes."""
        assert self.nodes is not None
        self._move(execution.task, RUNNING)
        self.nodes.take(execution)
        self.busy_cores += execution.width

    def nodes_freed(self, execution: Execution) -> None:
        """Take an execution off its nodes."""
        assert self.nodes is not None
        self.nodes.release(execution)
        self.busy_cores -= execution.width
        if self.watches_nodes:
            self.journal += execution.all_hosts

    def reserve(self, execution: Execution) -> None:
        """Keep nodes for an execution that starts later."""
        self._move(execution.task, QUEUED)
        self.reservations.add(execution)

    def is_busy(self, host: int) -> bool:
        """Whether anything runs on the host."""
        if self.nodes is not None:
            return bool(self.nodes.ready[host] and not self.nodes.free[host])
        return host in self.running

    def executing(self) -> list[Execution]:
        """Return what runs, on each host or on sets of nodes in order of start."""
        if self.nodes is not None:
            return self.nodes.running
        return [execution for running in self.running.values() for execution in running]

    def records(self) -> dict[str, Any]:
        """Return what a `Trace` holds of tasks and hosts, by its fields."""
        sets = {} if self.nodes is None else node_records(self.executions)
        return {
            "executions": execution_records(self.executions),
            "host_changes": self.host_changes.records(),
            "final_state": self.states.astype(np.int64),
            "times_postponed": self.times_postponed,
            **sets,
        }

    def append_fixed(self, host: int, task: int, pstate: int) -> None:
        """Append a task, or a copy of a running one, to the host's fixed queue."""
        if self.state_of[task] != RUNNING:
            self._move(task, QUEUED)
        self.fixed[host].append((task, pstate))
        self.queued_hosts.add(host)
        self.journal.append(host)
        if self.keeps_places:
            self.places.setdefault(task, []).append(host)

    def take_fixed(self, host: int) -> tuple[int, int]:
        """Take the head of the host's fixed queue."""
        entry = self.fixed[host].popleft()
        self._unqueued(host, entry[0])
        return entry

    def remove_fixed(self, host: int, task: int) -> int:
        """Take the first entry of a task out of the host's fixed queue; return its P-state."""
        queue = self.fixed[host]
        entry = next(entry for entry in queue if entry[0] == task)
        queue.remove(entry)
        self._unqueued(host, task)
        return entry[1]

    def _unqueued(self, host: int, task: int) -> None:
        self.touch(host)
        if not self.fixed[host]:
            self.queued_hosts.discard(host)
        if self.keeps_places:
            places = self.places[task]
            places.remove(host)
            if not places:
                del self.places[task]

    @property
    def next_start(self) -> float:
        """When the next reservation or place-holder is due [s]; infinite if there is none."""
        first, planned = self.reservations.next_start, self.place_holders.next_start
        return planned if planned < first else first

    def boots(self, host: int, until: float) -> None:
        """Note that a host boots until a time [s]."""
        self.boot_end[host] = until
        if self.nodes is not None:
            self.nodes.boots(host, until)

    def is_spoken_for(self, host: int) -> bool:
        """Whether anything runs on the host, or is fixed or reserved there."""
        return self.is_busy(host) or bool(self.fixed[host]) or self.reservations.is_reserved(host)

    def set_idle(self, host: int, *, idle: bool) -> None:
        """Add the host to, or take it out of, the hosts that can take a task."""
        k = bisect_left(self.idle, host)
        if self.nodes is not None:
            self.nodes.set_ready(host, ready=idle)
        present = k < len(self.idle) and self.idle[k] == host
        if idle and not present:
            self.idle.insert(k, host)
        elif present and not idle:
            del self.idle[k]

    def switch(self, host: int, *, on: bool) -> None:
        """Switch a host; when it boots or is off is told by `host_changed`."""
        self.is_on[host] = self.switched_on[host] = on
        self.touch(host)

    def host_changed(self, time: float, host: int) -> None:
        """Note the host's present P-state and power switch."""
        self.host_changes.add(time, host, self.pstate[host], self.is_on[host])
        self.touch(host)

    def set_pstate(self, time: float, host: int, pstate: int) -> None:
        """Bring a host into another P-state."""
        self.pstate[host] = pstate
        self.host_changed(time, host)

    def set_pstates(self, time: float, hosts: Integers, pstate: int) -> None:
        """Bring nodes into a P-state, and note those that change as one block."""
        changed = hosts[self.pstates[hosts] != pstate]
        if len(changed):
            self.pstates[changed] = pstate
            self.host_changes.add_block(time, changed, pstate)

    def settle(self, task: int, lost: Execution | None = None) -> None:
        """Find the state of a task that lost a copy from the copies that are left."""
        if lost is not None and self.replicates:
            self.copies[task].remove(lost)
        if self.copies.get(task):
            return
        self.copies.pop(task, None)
        if task in self.places:
            self.state_of[task] = QUEUED
        else:
            self.waiting_again(task)

    def plan(self, tasks: Integers, hosts: Integers, pstates: Integers) -> None:
        """Put waiting tasks into the virtual queues, which are empty."""
        self.virtual.replace(tasks, hosts, pstates)
        self.states[tasks] = VIRTUAL
        self.n_virtual = len(tasks)

    def plan_nodes(
        self,
        tasks: Integers,
        hosts: Integers,
        pstates: Integers,
        offsets: Integers,
        starts: Floats,
        inside_j: Floats | None,
    ) -> None:
        """Make place-holders of waiting tasks (`PlaceHolders.replace`); there are none."""
        self.place_holders.replace(tasks, hosts, pstates, offsets, starts, inside_j)
        self.states[tasks] = VIRTUAL
        self.n_virtual = len(tasks)

    def plan_in_common(self, tasks: Integers) -> None:
        """Put waiting tasks into the common queue, which is empty as the virtual queues are."""
        self.common.extend(tasks.tolist())
        self.states[tasks] = VIRTUAL
        self.n_virtual = len(tasks)

    def withdraw_plan(self) -> None:
        """Let all planned tasks wait again."""
        if self.n_virtual:
            common = np.fromiter(self.common, dtype=np.int64, count=len(self.common))
            tasks = np.concatenate([self.virtual.tasks, common, self.place_holders.tasks])
            planned = tasks[self.states[tasks] == VIRTUAL]
            self.states[planned] = WAITING
            self.waits_from(int(planned.min(initial=self.submitted)))
            self.n_virtual = 0
        self.virtual.clear()
        self.place_holders.clear()
        self.common.clear()

    def next_planned(self, host: int) -> tuple[int, int] | None:
        """Take the next (task, P-state) planned for the host, to move it; None if none is."""
        virtual = self.virtual
        while virtual.has(host):
            task, pstate = virtual.pop(host)
            if self.state_of[task] == VIRTUAL:
                return task, pstate
        return None

    def next_in_common(self) -> int | None:
        """Take the next task that is planned in common, to move it; None if none is."""
        while self.common:
            task = self.common.popleft()
            if self.state_of[task] == VIRTUAL:
                return task
        return None
