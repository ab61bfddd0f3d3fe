"""Whether the energy budget of the present period admits what a policy decides."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gridsched.energy import energy_inside
from gridsched.engine.placement import Ids, PlacementChecks

if TYPE_CHECKING:
    from gridsched.engine.energy_account import EnergyAccount
    from gridsched.engine.ready_times import ReadyTimes
    from gridsched.model.system import System

#: What the budget says of a placement: yes; that it begins in a later period; that it is too much.
FITS, BEGINS_LATER, EXCEEDS = 0, 1, 2


class BudgetChecks(PlacementChecks):
    """The part of the controller that keeps decisions inside a budget that refuses.

    A policy that heeds budgets must not ask for more. What another policy asks for too much is put
    off: the task waits for the next period.
    """

    system: System
    account: EnergyAccount | None
    ready_times: ReadyTimes

    @property
    def _puts_off(self) -> bool:
        budget = self.system.rules.budget
        limits = budget is not None and budget.on_exhaustion == "refuse"
        # before the first period, too: what begins inside it must wait for it
        return limits and budget.energy_j < math.inf and not self.scheduler.traits.heeds_budget

    def _check_budget(self, tasks: Ids, hosts: Ids, pstates: Ids, what: str) -> None:
        """Refuse placements, in order of hosts, that exceed what remains in the period."""
        account = self.account
        if account is None or not account.refuses or not len(tasks):
            return
        energy, estimates = account.state(self.now), self.system.estimates
        energies = estimates.energies(tasks, hosts, pstates)
        if account.allows(float(energies.sum()), energy.remaining_j):
            return  # even if all of it fell into the period
        run_time = estimates.run_times(tasks, hosts, pstates)
        left = energy.period_end - self._starts(hosts, run_time)
        inside = float((energies * np.clip(left / run_time, 0.0, 1.0)).sum())
        if not account.allows(inside, energy.remaining_j):
            self._refuse(
                f"{what} would draw {inside:.6g} J until the period's end at "
                f"{energy.period_end:g} s, and {energy.remaining_j:.6g} J remain",
                int(tasks[0]), int(hosts[0]),
            )  # fmt: skip

    def _starts(self, hosts: Ids, run_time: NDArray[np.float64]) -> NDArray[np.float64]:
        """When tasks that are appended to their hosts in this order start [s]; hosts ascend."""
        ready = self.ready_times.table(self.now)
        if self.ledger.one_core:
            before = np.cumsum(run_time) - run_time  # of all hosts before it, too
            first = np.searchsorted(hosts, hosts)
            return ready[hosts, 0] + (before - before[first])
        start = np.empty(len(hosts))
        for k, (host, time) in enumerate(zip(hosts.tolist(), run_time.tolist(), strict=True)):
            core = int(np.argmin(ready[host]))
            start[k] = ready[host, core]
            ready[host, core] += time
        return start

    def _within_budget(self, task: int, host: int, pstate: int) -> bool:
        """Whether the period's budget admits one more task at the end of the host's queue."""
        if not self._puts_off:
            self._check_budget(np.array([task]), np.array([host]), np.array([pstate]), "Assign")
            return True
        energy = self.account.state(self.now)
        start = float(self.ready_times.table(self.now)[host, 0])
        run_time = self._run_time(task, host, pstate)
        whole_j = self.system.estimates.energy(task, host, pstate)
        needed = energy_inside(start, run_time, whole_j, energy.period_end)
        return start < energy.period_end and self.account.allows(needed, energy.remaining_j)

    def _judged(self, tasks: Ids, hosts: Ids, pstates: Ids) -> NDArray[np.int64]:
        """Return `FITS`, `BEGINS_LATER` or `EXCEEDS` of each entry of a plan, in its order.

        What does not fit takes neither energy nor time from what comes after it.
        """
        account, estimates = self.account, self.system.estimates
        energy = account.state(self.now)
        end, remaining = energy.period_end, energy.remaining_j
        run_times = estimates.run_times(tasks, hosts, pstates).tolist()
        energies = estimates.energies(tasks, hosts, pstates).tolist()
        cores = self.ready_times.table(self.now).tolist()  # rows ascend
        verdicts = []
        for host, run_time, whole_j in zip(hosts.tolist(), run_times, energies, strict=True):
            ready = cores[host]
            needed = energy_inside(ready[0], run_time, whole_j, end)
            if ready[0] >= end:
                verdicts.append(BEGINS_LATER)
            elif account.allows(needed, remaining):
                verdicts.append(FITS)
                remaining -= needed
                ready[0] += run_time
                ready.sort()
            else:
                verdicts.append(EXCEEDS)
        return np.array(verdicts, dtype=np.int64)
