"""Checking and applying decisions: what a policy may ask for, one method a decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gridsched.controller.execution import Timer, TurnOff, TurnOn
from gridsched.controller.ledger import QUEUED, RUNNING, VIRTUAL, WAITING
from gridsched.errors import InvalidDecision
from gridsched.model.trace import TaskState
from gridsched.schedulers.decisions import (
    Assign,
    Cancel,
    Decision,
    Drop,
    Plan,
    PowerOff,
    PowerOn,
    WakeAt,
)

if TYPE_CHECKING:
    from gridsched.controller.ledger import Ledger


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
            PowerOff: self._power_off,
            PowerOn: self._power_on,
            WakeAt: self._wake_at,
        }

    def _apply(self, decision: Decision) -> None:
        handler = self._handlers.get(decision.__class__)
        if handler is None:
            self._refuse(f"{decision!r} is no decision; see gridsched.schedulers.decisions")
        handler(decision)

    def _refuse(self, reason: str, task: int | None = None, host: int | None = None) -> NoReturn:
        where = ""
        if task is not None:
            known = isinstance(task, int | np.integer) and 0 <= task < len(self.tasks)
            where += f" task {self.tasks.labels[task] if known else task!r}"
        if host is not None:
            known = isinstance(host, int | np.integer) and 0 <= host < self._n_hosts
            where += f" host {self.system.platform.hosts[host].name if known else host!r}"
        where = f",{where}" if where else ""
        raise InvalidDecision(f"{self.scheduler!r} at t = {self.now:g} s{where}: {reason}.")

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
        """A host has one P-state for all its cores: what is there must agree."""
        ledger = self.ledger
        present = {e.pstate for e in ledger.running[host]} | {k for _, k in ledger.fixed[host]}
        if present - {pstate}:
            self._refuse(
                f"P-state {pstate} on a host whose other work uses P-state {present.pop()}; "
                "all cores of a host share one",
                task,
                host,
            )

    def _assign(self, decision: Assign) -> None:
        task, host, pstate = decision.task, decision.host, decision.pstate
        if pstate is None:
            pstate = self._default_pstate
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
        if state != RUNNING:
            ledger.state_of[task] = QUEUED
        ledger.fixed[host].append((task, pstate))
        if self.staging is not None:
            cluster = int(self.system.platform.cluster_of[host])
            self.staging.data_ready(task, cluster, self.now)

    def _plan(self, decision: Plan) -> None:
        tasks = np.asarray(decision.tasks, dtype=np.int64)
        hosts = np.asarray(decision.hosts, dtype=np.int64)
        pstates = decision.pstates
        if pstates is None:
            pstates = np.full(len(tasks), self._default_pstate)
        if not len(tasks) == len(hosts) == len(pstates):
            self._refuse(f"Plan has {len(tasks)} tasks, {len(hosts)} hosts, {len(pstates)} pstates")
        self._withdraw_plan()
        ledger = self.ledger
        for task, host, pstate in zip(
            tasks.tolist(), hosts.tolist(), np.asarray(pstates).tolist(), strict=True
        ):
            self._check_place(task, host, pstate)
            if ledger.state_of[task] != WAITING:
                state = TaskState(ledger.state_of[task]).name.lower()
                self._refuse(f"Plan holds a task twice, or one that is {state}", task, host)
            if ledger.cores[host] > 1 and any(k != pstate for _, k in ledger.virtual[host]):
                self._refuse("Plan mixes P-states on a host with several cores", task, host)
            ledger.state_of[task] = VIRTUAL
            ledger.virtual[host].append((task, pstate))
        ledger.n_virtual = len(tasks)
        if self.staging is not None:
            clusters = self.system.platform.cluster_of[hosts]
            self.staging.book_plan(tasks, clusters, self.now)

    def _withdraw_plan(self) -> None:
        ledger = self.ledger
        if ledger.n_virtual:
            for queue in ledger.virtual:
                for task, _ in queue:
                    if ledger.state_of[task] == VIRTUAL:
                        ledger.waiting_again(task)
                queue.clear()
            ledger.n_virtual = 0
        if self.staging is not None:
            self.staging.withdraw_planned(self.now)

    def _cancel(self, decision: Cancel) -> None:
        task, host = decision.task, decision.host
        ledger = self.ledger
        if not 0 <= task < len(ledger.state_of):
            self._refuse(f"there are tasks 0 to {len(self.tasks) - 1}", task)
        hosts = range(self._n_hosts) if host is None else [host]
        if ledger.state_of[task] == QUEUED:
            self._need("may_cancel", "Cancel of a queued task")
            for h in hosts:
                for entry in [entry for entry in ledger.fixed[h] if entry[0] == task]:
                    ledger.fixed[h].remove(entry)
                    ledger.waiting_again(task)
                    return
        if ledger.state_of[task] == RUNNING:
            self._need("replicates", "Cancel of a running copy")
            copies = [e for h in hosts for e in ledger.running[h] if e.task == task]
            if copies:
                self._cancel_running(task, copies[-1])
                return
        state = TaskState(ledger.state_of[task]).name.lower()
        self._refuse(f"Cancel finds no queued or running copy there; the task is {state}", task, host)

    def _cancel_running(self, task: int, copy: object) -> None:
        self.ledger.copies[task].remove(copy)
        self._stop(copy)
        if not self.ledger.copies[task]:
            del self.ledger.copies[task]
            self.ledger.waiting_again(task)

    def _drop(self, decision: Drop) -> None:
        self._need("may_drop", "Drop")
        task = decision.task
        if not 0 <= task < len(self.ledger.state_of):
            self._refuse(f"there are tasks 0 to {len(self.tasks) - 1}", task)
        state = self.ledger.state_of[task]
        if state not in (WAITING, VIRTUAL):
            self._refuse(f"only a mappable task can be dropped; it is {TaskState(state).name}", task)
        self.ledger.n_virtual -= state == VIRTUAL
        self._final(task, TaskState.DROPPED)

    def _check_host(self, host: int, trait_of: str) -> None:
        self._need("powers_hosts", trait_of)
        if not 0 <= host < self._n_hosts:
            self._refuse(f"there are hosts 0 to {self._n_hosts - 1}", host=host)

    def _power_off(self, decision: PowerOff) -> None:
        host, ledger = decision.host, self.ledger
        self._check_host(host, "PowerOff")
        if not ledger.is_on[host]:
            self._refuse("PowerOff of a host that is off", host=host)
        if ledger.running[host] or ledger.fixed[host]:
            self._refuse("PowerOff while something runs or is fixed there", host=host)
        ledger.is_on[host] = False
        ledger.set_idle(host, idle=False)
        ledger.host_changed(self.now, host)
        self.commands.append(TurnOff(host))

    def _power_on(self, decision: PowerOn) -> None:
        host, ledger = decision.host, self.ledger
        self._check_host(host, "PowerOn")
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
