"""What keeps a task from being mapped: too many joules (algorithms B5), or too little utility.

``energy_leniency = "auto"`` is beyond paper 000: its section VII asks for a leniency that needs no
sensitivity study. The filter itself stays that of algorithms B5; only the leniency is set again at
each mapping event, so that it keeps pace with the day's budget.
"""

from __future__ import annotations

import math

import numpy as np

from gridsched.arrays import Floats, distinct
from gridsched.errors import InputError
from gridsched.model.system import System
from gridsched.model.task_types import TypedEstimates
from gridsched.policy.base import check_number
from gridsched.policy.state import EnergyState, State

#: Leniency while the budget is used exactly in proportion to the time.
EVEN_LENIENCY = 1.05
#: Leniency while more than that is used; it still lets pass what needs little energy.
STRICT_LENIENCY = 0.5
#: How strongly the leniency follows the pace.
GAIN = 20.0
#: Larger paces are treated like this one: the leniency is beyond a million then.
LARGEST_PACE = 2.0
#: Tasks per core up to which the energy filter is strict, and from which on it is lenient.
SHALLOW, DEEP = 0.8, 1.2


class EnergyFilter:
    """An option passes if its whole energy is at most its fair share of what remains today.

    Parameters
    ----------
    leniency : float
        Multiple of the fair share, greater than 0; infinite is not a filter.

    Notes
    -----
    With the energy that remains today (paper 000, eq. 1), the time that all machines together
    have left today, and the mean of all feasible ETC entries (eq. 2)::

        task_budget = leniency * energy_remaining / (time_remaining / mean_etc)

    Examples
    --------
    >>> round(fair_share_j(350e3, 90 * 60, 15 * 60) * 0.75)
    43750
    """

    def __init__(self, leniency: float) -> None:
        self.leniency = leniency

    def prepare(self, system: System) -> None:
        """Take the mean of the feasible ETC entries."""
        self.mean_etc_s_ = mean_etc_s(system)

    def task_budget(self, state: State, ready_time: Floats) -> float:
        """Return the largest estimated energy that a task may have at this event [J]."""
        leniency = self._present_leniency(state)
        if leniency == math.inf:
            return math.inf
        energy = state.energy
        time_left = time_remaining_s(ready_time, energy.period_end)
        return leniency * fair_share_j(energy.remaining_j, time_left, self.mean_etc_s_)

    def _present_leniency(self, state: State) -> float:
        return self.leniency


class AdaptiveFilter(EnergyFilter):
    """The energy filter whose leniency follows from the budget used so far; see `leniency_at`.

    It knows only the period's budget, what of it is drawn and committed, and the time: not what
    arrives later, nor anything of earlier periods. Without a finite budget it is not a filter.

    Parameters
    ----------
    by_utility : bool
        Whether the heuristic maps the tasks first that are worth most.
    """

    def __init__(self, by_utility: bool) -> None:
        super().__init__(math.inf)
        self.by_utility = by_utility

    def _present_leniency(self, state: State) -> float:
        energy = state.energy
        if energy.budget_j == math.inf:
            return math.inf
        return leniency_at(budget_pace(energy, state.now), self.by_utility)


def mean_etc_s(system: System) -> float:
    """Return the mean of the ETC entries of all feasible (task type, host type, P-state) [s].

    Host types without a host do not count.

    Raises
    ------
    InputError
        If the system has no task types.
    """
    estimates = system.estimates
    if not isinstance(estimates, TypedEstimates):
        raise InputError("The energy filter needs an ETC matrix of task types, which utility workloads have.")
    etc = estimates.etc_matrix[:, distinct(estimates.host_type)]
    return float(etc[np.isfinite(etc)].mean())


def time_remaining_s(ready_time: Floats, period_end: float) -> float:
    """Return how long all machines together are free until the period's end [s].

    Examples
    --------
    >>> hours = np.array([22.0, 20.0, 18.0])  # figure 2 of paper 000
    >>> time_remaining_s(hours * 3600, 24 * 3600) / 3600
    12.0
    """
    usable = ready_time[ready_time < np.inf]
    return float(np.maximum(period_end - usable, 0.0).sum())


def fair_share_j(remaining_j: float, time_left_s: float, mean_etc_s: float) -> float:
    """Return the energy that remains, divided by the tasks that still fit into the time [J].

    Minus infinity where nothing remains, infinite where no time is left (then no option can start
    today anyway), the energy is unlimited, or the period has no end: it has no computable share.
    """
    if remaining_j <= 0.0:
        return -math.inf
    if time_left_s <= 0.0 or math.inf in (remaining_j, time_left_s):
        return math.inf
    return remaining_j / (time_left_s / mean_etc_s)


def energy_filter(owner: str, leniency: object, by_utility: bool = True) -> EnergyFilter:
    """Return the filter that parameter ``energy_leniency`` of the scheduler `owner` asks for.

    `by_utility` states whether that maps the tasks first that are worth most; ``"auto"`` respects it.

    Raises
    ------
    InputError
        Unless `leniency` is a number greater than 0 or ``"auto"``.
    """
    if isinstance(leniency, str) and leniency == "auto":
        return AdaptiveFilter(by_utility)
    return EnergyFilter(
        check_number(
            owner, "energy_leniency", leniency, lambda x: x > 0, "a number greater than 0 (inf: no filter) or 'auto'"
        )
    )


def budget_pace(energy: EnergyState, now: float) -> float:
    """Return the share of the budget that is left, over the share of the period that is left.

    Parameters
    ----------
    energy : EnergyState
        The budget must be finite.
    now : float
        Simulated time [s].

    Returns
    -------
    float
        1: the energy drawn or committed so far is in proportion to the time; less: there was more;
        infinite at the period's end. 1 also in a period without end, where no pace can be computed.

    Notes
    -----
    With ``remaining_j`` of paper 000, eq. 1::

        pace = (remaining_j / budget_j) / ((period_end - now) / (period_end - period_start))
    """
    if energy.period_end == math.inf:
        return 1.0
    time_left = (energy.period_end - now) / (energy.period_end - energy.period_start)
    if time_left <= 0.0:
        return math.inf
    return energy.remaining_j / energy.budget_j / time_left


def leniency_at(pace: float, by_utility: bool) -> float:
    """Return the leniency for a pace of `budget_pace`.

    Parameters
    ----------
    pace : float
    by_utility : bool
        Whether the heuristic maps the tasks first that are worth most.

    Notes
    -----
    ::

        pace >= 1              1.05 * pace ** 20   (opens quickly while energy is left over)
        pace < 1, by utility   0.5
        pace < 1, otherwise    max(1.05 * pace ** 20, 0.5)

    A heuristic that uses utility gains from a filter that is either open or shut: tasks gather
    while it is shut, and the most valuable of many are mapped when it opens. One that does not
    use utility gains nothing from waiting; it has a filter that yields smoothly and so comes
    to rest at the task budget whose consumption is just sustained.

    Examples
    --------
    >>> leniency_at(1.0, by_utility=True), leniency_at(0.99, by_utility=True)
    (1.05, 0.5)
    >>> round(leniency_at(0.99, by_utility=False), 4)
    0.8588
    """
    if by_utility and pace < 1.0:
        return STRICT_LENIENCY
    bounded = min(max(pace, 0.0), LARGEST_PACE)
    return max(EVEN_LENIENCY * bounded**GAIN, STRICT_LENIENCY)


def check_dropping_threshold(owner: str, threshold: object) -> float:
    """Return the parameter ``dropping_threshold`` of the scheduler `owner`.

    Tasks that can no longer earn it are dropped (papers 000, section III-A; 001, section 3.3).

    Raises
    ------
    InputError
        Unless it is a finite number of at least 0.
    """
    return check_number(owner, "dropping_threshold", threshold, lambda x: 0 <= x < math.inf, "a number of at least 0")


def energy_multiplier(depth: float) -> float:
    """Return what multiple of its fair share of energy a task may use (algorithms D4).

    Parameters
    ----------
    depth : float
        Mean number of tasks per core, without the one that arrives.

    Examples
    --------
    >>> [energy_multiplier(depth) for depth in (0.79, 0.8, 1.2, 1.21)]
    [0.8, 1.0, 1.0, 1.2]
    """
    if depth < SHALLOW:
        return 0.8
    return 1.0 if depth <= DEEP else 1.2
