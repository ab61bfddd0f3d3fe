"""Whether the energy budget of the present period admits what a policy decides."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gridsched.energy import energy_inside
from gridsched.engine.commitments import Commitments
from gridsched.engine.energy_account import EnergyAccount
from gridsched.engine.ledger import Ledger
from gridsched.engine.legality import Ids, Refusal
from gridsched.model.budget import EnergyBudget
from gridsched.model.system import System
from gridsched.policy.base import Traits

#: What the budget says of a placement: yes; that it begins in a later period; that it is too much.
FITS, BEGINS_LATER, EXCEEDS = 0, 1, 2


class BudgetGuard:
    """Keeps decisions inside a budget that refuses.

    A policy that heeds budgets must not ask for more. What another policy asks for too much is put
    off: the task waits for the next period.

    Parameters
    ----------
    system : System
    budget : EnergyBudget
    ledger : Ledger
    account : EnergyAccount
    commitments : Commitments
    """

    def __init__(
        self, system: System, budget: EnergyBudget, ledger: Ledger, account: EnergyAccount,
        commitments: Commitments,
    ) -> None:  # fmt: skip
        self._ledger = ledger
        self._account = account
        self._commitments = commitments
        self._estimates = system.estimates
        self._limits = budget.on_exhaustion == "refuse" and budget.energy_j < math.inf

    @property
    def refuses(self) -> bool:
        """Whether the present period's budget has a limit that nobody may exceed."""
        return self._limits or self._account.refuses

    def puts_off(self, traits: Traits) -> bool:
        """Whether what exceeds the budget waits for the next period, instead of being an error."""
        # before the first period, too: what begins inside it must wait for it
        return self._limits and not traits.heeds_budget

    def refusal(
        self, tasks: Ids, hosts: Ids, pstates: Ids, now: float, what: str
    ) -> Refusal | None:  # fmt: skip
        """Say why placements, in order of hosts, exceed what remains in the period."""
        account = self._account
        if not account.refuses or not len(tasks):
            return None
        energy = account.state(now)
        energies = self._estimates.energies(tasks, hosts, pstates)
        if account.allows(float(energies.sum()), energy.remaining_j):
            return None  # even if all of it fell into the period
        run_time = self._estimates.run_times(tasks, hosts, pstates)
        left = energy.period_end - self._starts(hosts, run_time, now)
        inside = float((energies * np.clip(left / run_time, 0.0, 1.0)).sum())
        if account.allows(inside, energy.remaining_j):
            return None
        why = (
            f"{what} would draw {inside:.6g} J until the period's end at {energy.period_end:g} s, "
            f"and {energy.remaining_j:.6g} J remain"
        )
        return why, int(tasks[0]), int(hosts[0])

    def _starts(self, hosts: Ids, run_time: NDArray[np.float64], now: float) -> NDArray[np.float64]:
        """When tasks that are appended to their hosts in this order start [s]; hosts ascend."""
        ready = self._commitments.table(now)
        if self._ledger.one_core:
            before = np.cumsum(run_time) - run_time  # of all hosts before it, too
            first = np.searchsorted(hosts, hosts)
            return ready[hosts, 0] + (before - before[first])
        start = np.empty(len(hosts))
        for k, (host, time) in enumerate(zip(hosts.tolist(), run_time.tolist(), strict=True)):
            core = int(np.argmin(ready[host]))
            start[k] = ready[host, core]
            ready[host, core] += time
        return start

    def judged(self, tasks: Ids, hosts: Ids, pstates: Ids, now: float) -> Ids:
        """Return `FITS`, `BEGINS_LATER` or `EXCEEDS` of each entry of a plan, in its order.

        What does not fit takes neither energy nor time from what comes after it.
        """
        account, estimates = self._account, self._estimates
        energy = account.state(now)
        end, remaining = energy.period_end, energy.remaining_j
        run_times = estimates.run_times(tasks, hosts, pstates).tolist()
        energies = estimates.energies(tasks, hosts, pstates).tolist()
        cores = self._commitments.table(now)  # rows ascend
        verdicts = []
        for host, run_time, whole_j in zip(hosts.tolist(), run_times, energies, strict=True):
            ready = float(cores[host, 0])
            needed = energy_inside(ready, run_time, whole_j, end)
            if ready >= end:
                verdicts.append(BEGINS_LATER)
            elif account.allows(needed, remaining):
                verdicts.append(FITS)
                remaining -= needed
                cores[host, 0] += run_time
                cores[host].sort()
            else:
                verdicts.append(EXCEEDS)
        return np.array(verdicts, dtype=np.int64)
