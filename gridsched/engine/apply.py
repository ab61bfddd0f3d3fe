"""Checking and applying decisions: what a policy may ask for, one method a decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.budget_checks import EXCEEDS, FITS, BudgetChecks
from gridsched.engine.execution import Timer, TurnOff, TurnOn
from gridsched.engine.ledger import POSTPONED, QUEUED, RUNNING, VIRTUAL, WAITING
from gridsched.engine.live_state import LiveState
from gridsched.engine.placement import Ids
from gridsched.model.trace import TaskState
from gridsched.policy.base import Scheduler
from gridsched.policy.decisions import (
    Assign,
    Cancel,
    Decision,
    Drop,
    Plan,
    Postpone,
    PowerOff,
    PowerOn,
    WakeAt,
)
from gridsched.policy.delegate import Delegate


class DecisionChecks(BudgetChecks):
    """The half of the controller that decides whether a decision is legal and applies it."""

    commands: list
    state: LiveState

    def _prepare_checks(self) -> None:
        self._prepare_places()
        self._default_pstate = self.system.pstate
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
        state = self.state.renew(self.now, self.ledger.submitted, only)
        self.mapping_events += 1
        began = self._stopwatch()
        decisions = self._decisions(state)
        self.policy_time_s += self._stopwatch() - began
        handlers = self._handlers
        for decision in decisions:
            handler = handlers.get(decision.__class__)
            if handler is None:
                self._refuse(f"{decision!r} is no decision; see gridsched.policy.decisions")
            handler(decision)

    def _decisions(self, state: LiveState) -> list[Decision]:
        """Return all that the policy decides, before any of it is applied."""
        decisions = self.scheduler.schedule(state)
        if decisions is None:
            self._refuse("schedule() returned None; return a list of decisions, or an empty one")
        return list(decisions)

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
        elif state == POSTPONED and self._puts_off:
            return  # a moment ago, by the same answer
        elif state != WAITING:
            self._refuse(f"the task is {TaskState(state).name.lower()}", task, host)
        if self.account is not None:
            if not self._within_budget(task, host, pstate):
                if state != RUNNING:
                    self._put_off(task)
                return
            self._count_assigned(task, host, pstate)
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
        self.ledger.withdraw_plan()
        if self.staging is not None:
            self.staging.withdraw_planned(self.now)
        by_host = _by_host(tasks, hosts, pstates)
        self._check_plan(*by_host)
        if self._puts_off:
            verdicts = self._judged(tasks, hosts, pstates)
            for task in tasks[verdicts == EXCEEDS].tolist():
                self._put_off(task)
            fits = verdicts == FITS
            tasks, hosts = tasks[fits], hosts[fits]
            by_host = _by_host(tasks, hosts, pstates[fits])
        else:
            self._check_budget(*by_host, "Plan")
        self.ledger.plan(*by_host)
        if self.staging is not None:
            clusters = self.system.platform.cluster_of[hosts]
            self.staging.book_plan(tasks, clusters, self.now)

    def _ids(self, values: object, what: str) -> NDArray[np.int64]:
        """Return a column of a plan as ids; refuse what is no list of whole numbers."""
        array = np.asarray(values)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            self._refuse(f"Plan.{what} is {values!r}; it must be an array of whole numbers")
        return array.astype(np.int64)

    def _cancel(self, decision: Cancel) -> None:
        """End the task's last running copy, on the host that is named or on any; else unqueue."""
        task, host, ledger = self._whole(decision.task, "task"), decision.host, self.ledger
        if self.account is not None:
            self.account.forget_state()
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
        task = self._mappable(decision.task, "dropped")
        self._final(task, TaskState.DROPPED)

    def _mappable(self, task: object, done: str) -> int:
        """Return the id of a mappable task that leaves its virtual queue, if it is in one."""
        task = self._whole(task, "task")
        if not 0 <= task < len(self.ledger.state_of):
            self._refuse(f"there are tasks 0 to {len(self.tasks) - 1}", task)
        state = self.ledger.state_of[task]
        if state not in (WAITING, VIRTUAL):
            name = TaskState(state).name.lower()
            self._refuse(f"only a mappable task can be {done}; it is {name}", task)
        self.ledger.n_virtual -= state == VIRTUAL
        return task

    def _known_host(self, host: object, task: int | None = None) -> int:
        host = self._whole(host, "host")
        if not 0 <= host < self._n_hosts:
            self._refuse(f"there are hosts 0 to {self._n_hosts - 1}", task, host)
        return host

    def _postpone(self, decision: Postpone) -> None:
        self._need("may_drop", "Postpone")
        if self.account is None:
            self._refuse(
                "Postpone waits for the next budget period, and there is none", decision.task
            )
        self._put_off(self._mappable(decision.task, "postponed"))

    def _put_off(self, task: int) -> None:
        """Let a mappable task wait for the next period."""
        self.ledger.state_of[task] = POSTPONED
        self._postponed.append(task)
        self._times_postponed[task] += 1

    def _power_off(self, decision: PowerOff) -> None:
        self._need("powers_hosts", "PowerOff")
        host, ledger = self._known_host(decision.host), self.ledger
        if not ledger.is_on[host]:
            self._refuse("PowerOff of a host that is off", host=host)
        if ledger.running[host] or ledger.fixed[host]:
            self._refuse("PowerOff while something runs or is fixed there", host=host)
        ledger.is_on[host] = False
        ledger.set_idle(host, idle=False)
        self._host_switched(host)
        self.commands.append(TurnOff(host))

    def _power_on(self, decision: PowerOn) -> None:
        self._need("powers_hosts", "PowerOn")
        host, ledger = self._known_host(decision.host), self.ledger
        if ledger.is_on[host]:
            self._refuse("PowerOn of a host that is on", host=host)
        ledger.is_on[host] = True
        self._host_switched(host)
        self.commands.append(TurnOn(host))
        boot_time = self.system.platform.hosts[host].boot_time_s
        ledger.boot_end[host] = self.now + boot_time
        if boot_time:
            self._set_timer(ledger.boot_end[host], Timer.BOOTED, host)
        else:
            ledger.set_idle(host, idle=True)

    def _host_switched(self, host: int) -> None:
        self.ledger.host_changed(self.now, host)
        if self.account is not None:
            self.account.host_changed(host)

    def _wake_at(self, decision: WakeAt) -> None:
        if self.system.rules.mapping_interval_s:
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
        successor.prepare(self._shown, self._rng)
        self.scheduler = successor
        self.delegated_to = repr(successor)
        self._asked = successor.traits.asked
        self._renew_next_timer()  # it may have to be asked at submissions


def _by_host(tasks: Ids, hosts: Ids, pstates: Ids) -> tuple[Ids, Ids, Ids]:
    """Return the columns of a plan in order of the hosts; each queue stays in the plan's order."""
    order = np.argsort(hosts, kind="stable")
    return tasks[order], hosts[order], pstates[order]
