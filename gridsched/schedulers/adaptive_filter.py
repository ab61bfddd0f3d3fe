"""``energy_leniency = "auto"``: an energy filter that keeps pace with the day's budget.

Beyond paper 000: its section VII asks for a leniency that needs no sensitivity study. The filter
itself stays that of algorithms B5; only the leniency is set anew at each mapping event.
"""

from __future__ import annotations

import math

from gridsched.policy.state import EnergyState

#: Leniency while the budget is used exactly in proportion to the time.
EVEN_LENIENCY = 1.05
#: Leniency while more than that is used; it still lets pass what needs little energy.
STRICT_LENIENCY = 0.5
#: How strongly the leniency follows the pace.
GAIN = 20.0
#: No larger pace is told from this one: the leniency is beyond a million then.
LARGEST_PACE = 2.0


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
        infinite at the period's end. 1 also in a period without end: no pace can be told there.

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

    A heuristic that goes by utility gains from a filter that is either open or shut: tasks gather
    while it is shut, and the most valuable of many are mapped when it opens. One that does not
    go by utility gains nothing from waiting; it has a filter that gives way smoothly and so comes
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
