"""Whether the energy budget of the present period admits what a policy decides."""

from __future__ import annotations

import math

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.energy import counted_inside
from gridsched.engine.decision_validator import Refusal
from gridsched.engine.energy_account import EnergyAccount, NoAccount
from gridsched.engine.host_powers import BoundedPowers, HostPowers, NoCap, NoPowers, PowerCap
from gridsched.engine.ready_times import ReadyTimes
from gridsched.engine.run_state import RunState
from gridsched.engine.task_states import RUNNING, VIRTUAL
from gridsched.model.rules import EnergyBudget
from gridsched.model.system import System
from gridsched.policy.base import Traits

#: The budget's answers to a placement: yes; it begins in a later period; it is too much.
FITS, BEGINS_LATER, EXCEEDS = 0, 1, 2


class BudgetGuard:
    """Keeps decisions inside a budget that refuses.

    A policy that respects budgets must not ask for more. What another policy asks for too much is put
    off: the task waits for the next period.

    Parameters
    ----------
    system : System
    budget : EnergyBudget
    run : RunState
    account : EnergyAccount
    ready_times : ReadyTimes
    """

    exists = True

    def __init__(
        self, system: System, budget: EnergyBudget, run: RunState, account: EnergyAccount, ready_times: ReadyTimes
    ) -> None:
        self._run = run
        self._account = account
        self._ready_times = ready_times
        self._estimates = system.estimates
        self._counted = ready_times.counted
        self._weights = budget.weights
        self._limits = budget.enforcement == "refuse" and budget.limit_j < math.inf
        self.puts_off = self._once = False

    @property
    def refuses(self) -> bool:
        """Whether the present period's budget has a limit that no decision may exceed."""
        return self._limits or self._account.refuses

    def apply_traits(self, traits: Traits) -> None:
        """Judge decisions of a policy with these traits from now on."""
        # before the first period, too: what begins inside it must wait for it
        # what a policy knows of sites that differ is their mean: it may ask for too much
        self.puts_off = self._limits and (not traits.respects_budget or bool(self._weights.sites))
        self._once = traits.trigger == "start"

    def admit(
        self, tasks: Integers, hosts: Integers, pstates: Integers, now: float, what: str, starts: Floats | None = None
    ) -> tuple[Refusal | None, Booleans]:
        """Put off what exceeds the period's budget, or say why it is refused; return what fits.

        What a plan lets begin later goes on waiting, unless the policy is asked at the start
        alone: it would never plan it again.

        Parameters
        ----------
        tasks, hosts, pstates : ndarray of int64, shape (tasks,)
        now : float
            [s].
        what : str
            The decision.
        starts : ndarray of float64, shape (tasks,), optional
            When parallel tasks start [s]; serial ones start one after the other on their hosts.

        Returns
        -------
        refusal : Refusal or None
        fits : ndarray of bool, shape (tasks,)
        """
        if not self.puts_off:
            refusal = self._refusal(tasks, hosts, pstates, now, what, starts)
            return refusal, np.ones(len(tasks), dtype=np.bool_)
        verdicts = self._judged(tasks, hosts, pstates, now, starts)
        goes_on_waiting = what == "Plan" and not self._once
        put_off = verdicts == EXCEEDS if goes_on_waiting else verdicts != FITS
        for task in tasks[put_off & (self._run.states[tasks] != RUNNING)].tolist():
            self._run.postpone(task)
        return None, verdicts == FITS

    def _refusal(
        self, tasks: Integers, hosts: Integers, pstates: Integers, now: float, what: str, starts: Floats | None
    ) -> Refusal | None:
        """Say why placements exceed what remains in the period."""
        account = self._account
        if what == "Allocate" and starts is not None and self._limits:
            start, period_end = starts.item(0), account.period_end
            if start >= period_end:
                why = (
                    f"it would begin at {start:g} s, and the period ends at {period_end:g} s; "
                    "what the next budget admits is not known before it is there"
                )
                return why, int(tasks[0]), None
        if not account.refuses or not len(tasks):
            return None
        if starts is None:
            tasks, hosts, pstates = by_host(tasks, hosts, pstates)
        energy = account.state(now)
        remaining_j = energy.remaining_j - self._planned_j()
        energies = np.maximum(self._counted.energies(tasks, hosts, pstates), 0.0)
        if account.allows(float(energies.sum()) * self._weights.most, remaining_j):
            return None  # even if all of it fell into the period, at the highest price
        if starts is None:
            run_time = self._estimates.run_times(tasks, hosts, pstates)
            starts = self._starts(hosts, run_time, now)
        inside = float(self.inside_j(tasks, hosts, pstates, starts).sum())
        if account.allows(inside, remaining_j):
            return None
        why = (
            f"{what} would draw {self._weights.words(inside)} until the period's end at "
            f"{energy.period_end:g} s, and {self._weights.words(remaining_j)} remain"
        )
        return why, int(tasks[0]), int(hosts[0])

    def inside_j(self, tasks: Integers, hosts: Integers, pstates: Integers, starts: Floats) -> Floats:
        """Return what tasks that start at some times [s] count inside the period [J]."""
        left = self._account.period_end - starts
        run_time = self._estimates.run_times(tasks, hosts, pstates)
        energies = self._counted.energies(tasks, hosts, pstates)
        inside = np.clip(left / run_time, 0.0, 1.0)
        return np.asarray(energies * inside * self._weights.at_hosts(hosts, starts, run_time * inside))

    def _planned_j(self) -> float:
        """Return what place-holders of the same answer will draw inside the period [J]."""
        run = self._run
        if not run.n_virtual or not len(run.place_holders):
            return 0.0
        return run.place_holders.inside_j(run.states == VIRTUAL)

    def _starts(self, hosts: Integers, run_time: Floats, now: float) -> Floats:
        """When tasks that are appended to their hosts in this order start [s]; hosts ascend."""
        ready = self._ready_times.table(now)
        if self._run.resources.one_core:
            before = np.cumsum(run_time) - run_time  # of all hosts before it, too
            first = np.searchsorted(hosts, hosts)
            return ready[hosts, 0] + (before - before[first])
        start = np.empty(len(hosts))
        for k, (host, time) in enumerate(zip(hosts.tolist(), run_time.tolist(), strict=True)):
            core = int(np.argmin(ready[host]))
            start[k] = ready[host, core]
            ready[host, core] += time
        return start

    def _judged(
        self, tasks: Integers, hosts: Integers, pstates: Integers, now: float, starts: Floats | None
    ) -> Integers:
        """Return `FITS`, `BEGINS_LATER` or `EXCEEDS` of each entry of a plan, in its order.

        What does not fit takes neither energy nor time from what comes after it. Parallel tasks
        start at their `starts` [s], serial ones one after the other on their hosts.
        """
        if starts is not None:
            return self._judged_sets(tasks, hosts, pstates, now, starts)
        account, estimates = self._account, self._estimates
        energy = account.state(now)
        end, remaining = energy.period_end, energy.remaining_j
        run_times = estimates.run_times(tasks, hosts, pstates).tolist()
        energies = self._counted.energies(tasks, hosts, pstates).tolist()
        cores = self._ready_times.table(now)  # rows ascend
        verdicts = []
        for host, run_time, whole_j in zip(hosts.tolist(), run_times, energies, strict=True):
            ready = float(cores[host, 0])
            needed = counted_inside(ready, run_time, whole_j, end, self._weights.at_host(host))
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

    def _judged_sets(self, tasks: Integers, hosts: Integers, pstates: Integers, now: float, starts: Floats) -> Integers:
        """Judge parallel tasks, which take whole nodes from their starts on [s]."""
        account, energy = self._account, self._account.state(now)
        remaining = energy.remaining_j - self._planned_j()
        verdicts = np.where(starts >= energy.period_end, BEGINS_LATER, FITS)
        needed = self.inside_j(tasks, hosts, pstates, starts)
        if not account.allows(float(needed.sum()), remaining):
            for k in np.flatnonzero(verdicts == FITS).tolist():
                if account.allows(needed.item(k), remaining):
                    remaining -= needed.item(k)
                else:
                    verdicts[k] = EXCEEDS
        return verdicts.astype(np.int64)


class NoGuard(BudgetGuard):
    """A run without a budget: anything is admitted."""

    exists = puts_off = refuses = False

    def __init__(self) -> None:
        pass

    def apply_traits(self, traits: Traits) -> None:
        """Judge nothing."""


def by_host(tasks: Integers, hosts: Integers, pstates: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the columns of a plan in order of the hosts; each queue stays in the plan's order."""
    order = np.argsort(hosts, kind="stable")
    return tasks[order], hosts[order], pstates[order]


def energy_parts(
    system: System, run: RunState, ready_times: ReadyTimes, *, is_metered: bool = False, are_bounded: bool = False
) -> tuple[HostPowers, PowerCap, EnergyAccount, BudgetGuard]:
    """Return what counts and limits power and energy, as far as the rules ask for it.

    Where the run `is_metered`, powers are counted in any case. Where they `are_bounded`, programs decide how much
    hosts draw at a time.

    Raises
    ------
    InputError
        If the hosts draw more than a cap allows before anything runs.
    """
    budget, cap_w = system.rules.budget, system.rules.power_cap_w
    cap: PowerCap = NoCap()
    if budget is None and cap_w is None and not is_metered:
        return NoPowers(), cap, NoAccount(), NoGuard()
    powers = BoundedPowers(system.platform, run) if are_bounded else HostPowers(system.platform, run)
    if cap_w is not None:
        cap = PowerCap(cap_w, powers, system.platform)
    if budget is None:
        return powers, cap, NoAccount(), NoGuard()
    account = EnergyAccount(system, budget, run, ready_times, powers)
    return powers, cap, account, BudgetGuard(system, budget, run, account, ready_times)
