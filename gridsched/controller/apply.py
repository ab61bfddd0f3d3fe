"""Checking and applying decisions: what a policy may ask for, one method a decision."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gridsched.controller.execution import Timer, TurnOff, TurnOn
from gridsched.controller.ledger import QUEUED, RUNNING, VIRTUAL, WAITING
from gridsched.errors import InvalidDecision
from gridsched.model.trace import TaskState
from gridsched.schedulers.base import Scheduler
from gridsched.schedulers.decisions import (
    Assign,
    Cancel,
    Decision,
    Delegate,
    Drop,
    Plan,
    Postpone,
    PowerOff,
    PowerOn,
    WakeAt,
)

if TYPE_CHECKING:
    from gridsched.controller.ledger import Ledger
    from gridsched.controller.state import State


class DecisionChecks:
    """The half of the controller that decides whether a decision is legal and applies it."""

    ledger: Ledger
    commands: list
    now: float

    def _prepare_checks(self) -> None:
        self._n_hosts = self.system.n_hosts
        self._n_pstates: list[int] = self.system.platform.n_pstates.tolist()
        self._default_pstate = self.system.pstate
        self._some_infeasible = not self.system.estimates.always_feasible
        self._handlers: dict[type, Callable[[Any], None]] = {
            Assign: self._assign,
            Plan: self._plan,
            Cancel: self._cancel,
            Drop: self._drop,
            Postpone: self._postpone,
            PowerOff: self._power_off,
            PowerOn: self._power_on,
            WakeAt: self._wake_at,
            Delegate: self._delegate,
        }

    def _ask(self, only: int | None = None) -> None:
        """Ask the policy once and apply what it answers."""
        state = self.state.renew(self.now, len(self._submit) - self._submitted, only)
        self.mapping_events += 1
        began = self._stopwatch()
        decisions = self._decisions(state)
        self.policy_time_s += self._stopwatch() - began
        handlers = self._handlers
        for decision in decisions:
            handler = handlers.get(decision.__class__)
            if handler is None:
                self._refuse(f"{decision!r} is no decision; see gridsched.schedulers.decisions")
            handler(decision)

    def _decisions(self, state: State) -> list[Decision]:
        """Return all that the policy decides, before any of it is applied."""
        decisions = self.scheduler.schedule(state)
        if decisions is None:
            self._refuse("schedule() returned None; return a list of decisions, or an empty one")
        return list(decisions)

    def _refuse(self, reason: str, task: int | None = None, host: int | None = None) -> NoReturn:
        where = ""
        if task is not None:
            known = isinstance(task, int | np.integer) and 0 <= task < len(self.tasks)
            where += f", task {int(self.tasks.labels[task]) if known else task!r}"
        if host is not None:
            known = isinstance(host, int | np.integer) and 0 <= host < self._n_hosts
            where += f", host {self.system.platform.hosts[host].name if known else host!r}"
        raise InvalidDecision(f"{self.scheduler!r} at t = {self.now:g} s{where}: {reason}.")

    def _whole(self, number: object, what: str) -> int:
        """Return an id as a plain int; refuse what is no whole number."""
        try:
            return index(number)
        except TypeError:
            self._refuse(f"{what} is {number!r}; it must be a whole number")

    def _need(self, trait: str, decision: str) -> None:
        if not getattr(self.scheduler.traits, trait):
            self._refuse(f"{decision} needs the trait {trait!r}")

    def _check_place(self, task: int, host: int, pstate: int) -> None:
        """Refuse a task, host or P-state that does not exist or cannot be used now."""
        if not 0 <= task < len(self.ledger.state_of):
            self._refuse(f"there are tasks 0 to {len(self.tasks) - 1}", task, host)
        if not 0 <= host < self._n_hosts:
            self._refuse(f"there are hosts 0 to {self._n_hosts - 1}", task, host)
        if not 0 <= pstate < self._n_pstates[host]:
            legal = self._n_pstates[host] - 1
            self._refuse(f"the host has P-states 0 to {legal}, not {pstate}", task, host)
        if not self.ledger.is_on[host]:
            self._refuse("the host is off; PowerOn it first", task, host)
        if self._some_infeasible and self._run_time(task, host, pstate) == np.inf:
            self._refuse("the task cannot run on this host", task, host)
        if self.ledger.cores[host] > 1:
            self._check_shared_pstate(task, host, pstate)

    def _check_shared_pstate(self, task: int, host: int, pstate: int) -> None:
        """A host has one P-state for all its cores: what runs, is fixed and planned must agree.

        One of each is looked at, because they agreed when they came.
        """
        ledger = self.ledger
        present = [e.pstate for e in ledger.running[host][:1]]
        present += [k for _, k in islice(ledger.fixed[host], 1)]
        planned = (
            k for t, k in ledger.virtual[host] if ledger.state_of[t] == VIRTUAL and t != task
        )
        present += islice(planned, 1)
        for other in present:
            if other != pstate:
                self._refuse(
                    f"P-state {pstate} on a host whose other work uses P-state {other}; all cores "
                    "of a host share one",
                    task,
                    host,
                )

    def _assign(self, decision: Assign) -> None:
        task, host, pstate = decision.task, decision.host, decision.pstate
        if task.__class__ is not int:
            task = self._whole(task, "task")
        if host.__class__ is not int:
            host = self._whole(host, "host")
        if pstate is None:
            pstate = self._default_pstate
        elif pstate.__class__ is not int:
            pstate = self._whole(pstate, "pstate")
        ledger = self.ledger
        self._check_place(task, host, pstate)
        state = ledger.state_of[task]
        if state == VIRTUAL:
            ledger.n_virtual -= 1
        elif state == RUNNING:
            self._need("replicates", "Assign of a running task")
        elif state != WAITING:
            self._refuse(f"the task is {TaskState(state).name.lower()}", task, host)
        if ledger.free[host] and not ledger.fixed[host] and ledger.boot_end[host] <= self.now:
            self._start(task, host, pstate)
            return
        if state == RUNNING:
            ledger.queued_copies.add(task)
        else:
            ledger.state_of[task] = QUEUED
        ledger.append_fixed(host, task, pstate)
        if self.staging is not None:
            cluster = int(self.system.platform.cluster_of[host])
            self.staging.data_ready(task, cluster, self.now)

    def _plan(self, decision: Plan) -> None:
        tasks = self._ids(decision.tasks, "tasks")
        hosts = self._ids(decision.hosts, "hosts")
        if decision.pstates is None:
            pstates = np.full(len(tasks), self._default_pstate)
        else:
            pstates = self._ids(decision.pstates, "pstates")
        if not len(tasks) == len(hosts) == len(pstates):
            self._refuse(f"Plan has {len(tasks)} tasks, {len(hosts)} hosts, {len(pstates)} pstates")
        self._withdraw_plan()
        ledger = self.ledger
        for task, host, pstate in zip(
            tasks.tolist(), hosts.tolist(), pstates.tolist(), strict=True
        ):
            self._check_place(task, host, pstate)
            if ledger.state_of[task] != WAITING:
                state = TaskState(ledger.state_of[task]).name.lower()
                self._refuse(f"Plan holds a task twice, or one that is {state}", task, host)
            ledger.state_of[task] = VIRTUAL
            ledger.virtual[host].append((task, pstate))
        ledger.n_virtual = len(tasks)
        if self.staging is not None:
            clusters = self.system.platform.cluster_of[hosts]
            self.staging.book_plan(tasks, clusters, self.now)

    def _ids(self, values: object, what: str) -> NDArray[np.int64]:
        """Return a column of a plan as ids; refuse what is no list of whole numbers."""
        array = np.asarray(values)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            self._refuse(f"Plan.{what} is {values!r}; it must be an array of whole numbers")
        return array.astype(np.int64)

    def _withdraw_plan(self) -> None:
        ledger = self.ledger
        for queue in ledger.virtual:  # even with nothing planned: assigned tasks are still in it
            for task, _ in queue:
                if ledger.state_of[task] == VIRTUAL:
                    ledger.waiting_again(task)
            queue.clear()
        ledger.n_virtual = 0
        if self.staging is not None:
            self.staging.withdraw_planned(self.now)

    def _cancel(self, decision: Cancel) -> None:
        """End the task's last running copy, on the host that is named or on any; else unqueue."""
        task, host, ledger = self._whole(decision.task, "task"), decision.host, self.ledger
        if not 0 <= task < len(ledger.state_of):
            self._refuse(f"there are tasks 0 to {len(self.tasks) - 1}", task)
        hosts = range(self._n_hosts)
        if host is not None:
            hosts = [self._known_host(host, task)]
        copies = queued = ()
        if ledger.state_of[task] == RUNNING:
            copies = [e for h in hosts for e in ledger.running[h] if e.task == task]
        if ledger.state_of[task] in (RUNNING, QUEUED):
            queued = [(h, entry) for h in hosts for entry in ledger.fixed[h] if entry[0] == task]
        if copies:
            self._need("replicates", "Cancel of a running copy")
            self.ledger.copies[task].remove(copies[-1])
            self._stop(copies[-1])
        elif queued:
            self._need("may_cancel", "Cancel of a queued task")
            ledger.remove_fixed(*queued[0])
        else:
            state = TaskState(ledger.state_of[task]).name.lower()
            self._refuse(f"no queued or running copy is there; the task is {state}", task, host)
        self._settle_state(task)
        self._start_on_freed()

    def _settle_state(self, task: int) -> None:
        """Find the state of a task that lost a copy from the copies that are left."""
        ledger = self.ledger
        if ledger.copies.get(task):
            return
        ledger.copies.pop(task, None)
        if any(t == task for queue in ledger.fixed for t, _ in queue):
            ledger.state_of[task] = QUEUED
        else:
            ledger.waiting_again(task)

    def _drop(self, decision: Drop) -> None:
        self._need("may_drop", "Drop")
        task = self._whole(decision.task, "task")
        if not 0 <= task < len(self.ledger.state_of):
            self._refuse(f"there are tasks 0 to {len(self.tasks) - 1}", task)
        state = self.ledger.state_of[task]
        if state not in (WAITING, VIRTUAL):
            name = TaskState(state).name.lower()
            self._refuse(f"only a mappable task can be dropped; it is {name}", task)
        self.ledger.n_virtual -= state == VIRTUAL
        self._final(task, TaskState.DROPPED)

    def _known_host(self, host: object, task: int | None = None) -> int:
        host = self._whole(host, "host")
        if not 0 <= host < self._n_hosts:
            self._refuse(f"there are hosts 0 to {self._n_hosts - 1}", task, host)
        return host

    def _postpone(self, decision: Postpone) -> None:
        self._need("may_drop", "Postpone")
        self._refuse("Postpone waits for the next budget period, and there is none", decision.task)

    def _power_off(self, decision: PowerOff) -> None:
        self._need("powers_hosts", "PowerOff")
        host, ledger = self._known_host(decision.host), self.ledger
        if not ledger.is_on[host]:
            self._refuse("PowerOff of a host that is off", host=host)
        if ledger.running[host] or ledger.fixed[host]:
            self._refuse("PowerOff while something runs or is fixed there", host=host)
        ledger.is_on[host] = False
        ledger.set_idle(host, idle=False)
        ledger.host_changed(self.now, host)
        self.commands.append(TurnOff(host))

    def _power_on(self, decision: PowerOn) -> None:
        self._need("powers_hosts", "PowerOn")
        host, ledger = self._known_host(decision.host), self.ledger
        if ledger.is_on[host]:
            self._refuse("PowerOn of a host that is on", host=host)
        ledger.is_on[host] = True
        ledger.host_changed(self.now, host)
        self.commands.append(TurnOn(host))
        boot_time = self.system.platform.hosts[host].boot_time_s
        ledger.boot_end[host] = self.now + boot_time
        if boot_time:
            self._set_timer(ledger.boot_end[host], Timer.BOOTED, host)
        else:
            ledger.set_idle(host, idle=True)

    def _wake_at(self, decision: WakeAt) -> None:
        if self.system.mapping_interval_s:
            self._refuse("WakeAt is illegal with a mapping interval")
        if not self.now < decision.time < np.inf:
            self._refuse(f"WakeAt({decision.time!r}) must lie in the future")
        self._set_timer(decision.time, Timer.WAKE)

    def _delegate(self, decision: Delegate) -> None:
        """Follow another policy from now on; what was declared before the run still bounds it."""
        self._need("delegates", "Delegate")
        successor = decision.scheduler
        if not isinstance(successor, Scheduler):
            self._refuse(f"Delegate.scheduler is {successor!r}; it must be a Scheduler")
        if not self.scheduler.traits.covers(successor.traits):
            self._refuse(f"Delegate to {successor!r}, whose traits go beyond its own")
        successor.prepare(self.system, self._rng)
        self.scheduler = successor
        self.delegated_to = repr(successor)
        self._asked = successor.traits.asked
