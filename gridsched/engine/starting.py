"""How tasks leave the queues: a free core takes the fixed queue first, then the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from gridsched.engine.execution import Command, Execution, Timer
from gridsched.engine.ledger import QUEUED, RUNNING
from gridsched.model.estimates import Estimates

if TYPE_CHECKING:
    from gridsched.engine.energy_account import EnergyAccount
    from gridsched.engine.ledger import Ledger
    from gridsched.engine.staging import Staging
    from gridsched.model.system import System


class QueueService:
    """The part of the controller that starts tasks."""

    system: System
    ledger: Ledger
    staging: Staging | None
    account: EnergyAccount | None
    commands: list[Command]
    now: float

    def _prepare_queues(self) -> None:
        self._run_time: Callable[[int, int, int], float] = self.system.estimates.run_time
        estimates = self.system.estimates
        #: None where a scheduler's P-states are the host's
        self._host_pstate: Callable[[int, int], int] | None = None
        if type(estimates).host_pstate is not Estimates.host_pstate:
            self._host_pstate = estimates.host_pstate
        self._replicates = self.scheduler.traits.replicates

    def _start(self, task: int, host: int, pstate: int) -> None:
        """Give the task a core of the host, now or when its data is there."""
        ledger, start = self.ledger, self.now
        ledger.state_of[task] = RUNNING
        ledger.core_taken(host)
        if self.staging is not None:
            cluster = int(self.system.platform.cluster_of[host])
            start = self.staging.data_ready(task, cluster, start)
        end = start + self._run_time(task, host, pstate)
        if self._host_pstate is not None:
            pstate = self._host_pstate(task, pstate)
        execution = Execution(task, host, pstate, start, end)
        ledger.running[host].append(execution)
        if self._replicates:
            ledger.copies.setdefault(task, []).append(execution)
        if start > self.now:
            self._set_timer(start, Timer.DATA_READY, host, execution)
        else:
            self._begin(execution)

    def _begin(self, execution: Execution) -> None:
        ledger, host = self.ledger, execution.host
        execution.has_begun = True
        if ledger.pstate[host] != execution.pstate:
            ledger.pstate[host] = execution.pstate
            ledger.host_changed(execution.start, host)
        if self.account is not None:
            self.account.execution_began(execution)
        ledger.executions.append(execution)
        self.commands.append(execution)

    def _count_assigned(self, task: int, host: int, pstate: int) -> None:
        if self.account is not None:
            self.account.forget_state()
            self.account.assigned_j += self.system.estimates.energy(task, host, pstate)

    def _start_queued(self, host: int) -> None:
        """Let free cores of the host take the head of its fixed queue."""
        ledger = self.ledger
        queue = ledger.fixed[host]
        while queue and ledger.free[host] and ledger.boot_end[host] <= self.now:
            task, pstate = ledger.take_fixed(host)
            self._start(task, host, pstate)

    def _serve_plan(self, hosts: Iterable[int]) -> None:
        """Let free cores take planned tasks; fix heads of queues in the pending slots behind them.

        There must be nothing to do on other hosts than `hosts`.
        """
        ledger, slots = self.ledger, self.system.rules.pending_slots
        for host in sorted(hosts):
            while ledger.is_on[host]:
                queue = ledger.fixed[host]
                starts = ledger.free[host] and not queue and ledger.boot_end[host] <= self.now
                if not starts and len(queue) >= slots:
                    break
                entry = ledger.next_planned(host)
                if entry is None:
                    break
                task, pstate = entry
                self._count_assigned(task, host, pstate)
                if starts:
                    self._start(task, host, pstate)
                else:
                    ledger.state_of[task] = QUEUED
                    ledger.append_fixed(host, task, pstate)
