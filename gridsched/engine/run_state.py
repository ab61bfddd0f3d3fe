"""Where every task and host is: the bookkeeping behind the controller and the state view.

Plain lists and a bytearray, because one number is read or written at a time; the scheduler's
view builds arrays from them when asked for.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import Any

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.engine.execution import Execution, ExecutionLog, HostChanges
from gridsched.engine.kinds_of_resources import resources_of
from gridsched.engine.plans import PlaceHolders, Reservations, VirtualQueues
from gridsched.engine.task_states import BLOCKED, FINISHED, QUEUED, RUNNING, VIRTUAL, WAITING, TaskStates
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.policy.base import Traits


class RunState(TaskStates):
    """Mutable record of one run.

    Attributes
    ----------
    resources : Resources
        What each host has left, and what runs where.
    is_on : list of bool
    switched_on : ndarray of bool, shape (hosts,)
        The same as an array.
    is_down : list of bool
        Hosts that went down by themselves; they are off.
    is_open : list of bool
        Hosts that are on and not drained: they take tasks now, or when they have booted.
    opened : ndarray of bool, shape (hosts,)
        The same as an array.
    switching_w : dict of int to float
        What each host draws that shuts down, or boots in a P-state of its own [W].
    boot_end : list of float
        Time until which a host boots [s].
    pstate : array of int
    pstates : ndarray of int64, shape (hosts,)
        The same, sharing its memory.
    fixed : list of deque of (task, pstate)
        Fixed queue of each host.
    queued_hosts : set of int
        Hosts whose fixed queue is not empty.
    virtual : VirtualQueues
    place_holders : PlaceHolders
    reservations : Reservations
    common : deque of int
        Planned tasks that any free core takes, in this order; some may have been taken elsewhere.
    copies : dict of int to list of Execution
        Running copies of each task, where the policy replicates.
    places : dict of int to list of int
        Hosts in whose fixed queues a task waits, where the policy replicates or cancels.
    version : list of int
        Of each host: how often anything but an append to its fixed queue has happened there, as far
        as tasks of one host are concerned.
    journal : list of int
        Hosts on which something happened, one after the other; readers remember how far they read.
    executions : ExecutionLog
        All of them.
    n_executing : int
        Executions that have their hosts, those that wait for input files among them.
    """

    def __init__(
        self, system: System, tasks: Tasks, hosts_off: frozenset[int], traits: Traits, n_spare: int = 0
    ) -> None:
        n = system.n_hosts
        self.is_on = [h not in hosts_off for h in range(n)]
        self.switched_on = np.array(self.is_on, dtype=np.bool_)
        self.is_down = [False] * n
        self.is_open = list(self.is_on)
        self.opened = self.switched_on.copy()
        self.switching_w: dict[int, float] = {}
        self.boot_end = [0.0] * n
        self.pstate = array("q", system.first_pstates.tolist())
        self.pstates = np.frombuffer(self.pstate, dtype=np.int64)
        self.resources = resources_of(system, tasks, traits, self.is_on)
        self._take, self._release = self.resources.take, self.resources.release
        super().__init__(len(tasks), n_spare)
        if tasks.may_be_held:
            self.followed = []
        self.fixed: list[deque[tuple[int, int]]] = [deque() for _ in range(n)]
        self.queued_hosts: set[int] = set()
        self.virtual = VirtualQueues(n)
        self.place_holders = PlaceHolders()
        self.reservations = Reservations(n)
        self.common: deque[int] = deque()
        self.executions = ExecutionLog(has_sets=self.resources.has_sets)
        self.copies: dict[int, list[Execution]] = {}
        self.places: dict[int, list[int]] = {}
        self.replicates = traits.replicates
        self.keeps_places = traits.replicates or traits.may_cancel or tasks.may_be_held
        self.host_changes = HostChanges(self.pstates, self.is_on)
        self.version = [0] * n
        self.journal: list[int] = list(range(n))
        self.n_executing = 0
        self._watches_sets = system.rules.parked_pstate is not None

    def end_tasks(self, state: int, *, running: bool) -> None:
        """Give all tasks a final state, perhaps those that run, too, and let none be submitted."""
        self.withdraw_plan()
        left = self.states < FINISHED
        if not running:
            left &= self.states != RUNNING
        self.states[left] = state
        self.open_tasks -= int(np.count_nonzero(left))
        self.submitted = self.n_tasks
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

    def taken(self, execution: Execution) -> None:
        """Let an execution have its hosts."""
        task, host = execution.task, execution.host
        self.n_virtual -= self.state_of[task] == VIRTUAL  # `_move`, and `touch` below: calls are dear here
        self.state_of[task] = RUNNING
        if self.followed is not None:
            self.followed.append(task)
        if self.replicates:
            self.copies.setdefault(task, []).append(execution)
        self._take(execution)
        self.n_executing += 1
        self.version[host] += 1
        self.journal.append(host)

    def freed(self, execution: Execution) -> None:
        """Take an execution off its hosts."""
        host = execution.host
        self._release(execution)
        self.n_executing -= 1
        self.version[host] += 1
        if execution.hosts is None:
            self.journal.append(host)
        elif self._watches_sets:
            self.journal += execution.all_hosts

    def reserve(self, execution: Execution) -> None:
        """Keep hosts for an execution that starts later."""
        self._move(execution.task, QUEUED)
        self.reservations.add(execution)

    def is_busy(self, host: int) -> bool:
        """Whether anything runs on the host."""
        return self.resources.is_busy(host)

    def executing(self) -> list[Execution]:
        """Return what has its hosts."""
        return self.resources.running

    def records(self, *, is_over: bool = True) -> dict[str, Any]:
        """Return what a `Trace` holds of tasks and hosts, by its fields; only a run that is over may lose its own."""
        executions = self.executions if is_over else self.executions.copy()
        return {
            **executions.records(),
            "host_changes": self.host_changes.records(),
            "final_state": self.states.astype(np.int64),
            "times_postponed": self.times_postponed,
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

    def take_fixed(self, host: int) -> int:
        """Take the head of the host's fixed queue; return its P-state."""
        task, pstate = self.fixed[host].popleft()
        self._unqueued(host, task)
        return pstate

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
        self.resources.boots(host, until)

    def is_spoken_for(self, host: int) -> bool:
        """Whether anything runs on the host, or is fixed or reserved there."""
        return self.is_busy(host) or bool(self.fixed[host]) or self.reservations.is_reserved(host)

    def switch(self, host: int, *, on: bool) -> None:
        """Switch a host; `host_changed` reports when it boots or is off."""
        self.is_on[host] = self.switched_on[host] = on
        self._open_or_close(host)

    def is_drained(self, host: int) -> bool:
        """Whether the host takes no task until it is resumed, be it on or not."""
        return host in self.resources.drained

    def drain(self, host: int) -> None:
        """Let a host take no task from now on; nothing may be fixed, planned or reserved there."""
        self.resources.drain(host)
        self._open_or_close(host)

    def resume(self, host: int) -> None:
        """Let a drained host take tasks again."""
        self.resources.resume(host)
        self._open_or_close(host)

    def _open_or_close(self, host: int) -> None:
        self.is_open[host] = self.opened[host] = self.is_on[host] and not self.is_drained(host)
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

    def plan_places(
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
            if self.held:
                self.states[[task for task in planned.tolist() if task in self.held]] = BLOCKED
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

    def next_in_common(self, host: int) -> int | None:
        """Take the next task that is planned in common, waits for no others, and has room on the host, to move it.

        None if there is none, or the first such has no room there: none overtakes it.
        """
        common, state_of, held = self.common, self.state_of, self.held
        while common and state_of[common[0]] != VIRTUAL:
            common.popleft()
        place = 0
        while held and place < len(common) and (common[place] in held or state_of[common[place]] != VIRTUAL):
            place += 1
        if place == len(common) or not self.resources.has_room(common[place], host):
            return None
        task = common[place]
        del common[place]
        return task
