"""How far runs of one bag on one platform are from the least that is possible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gridsched.experiment.run import RunResult
from gridsched.optimize.bag_bounds import BagBounds, bag_bounds, share_above


def bounds_for(results: Sequence[RunResult]) -> BagBounds:
    """Return the bounds common to runs of one bag on one platform.

    Parameters
    ----------
    results : sequence of RunResult
        At least one; they differ in nothing but the scheduler and its random numbers.

    Returns
    -------
    BagBounds
        Without idle power where any of the schedulers may switch hosts off, and over all P-states
        where any of them chooses P-states.
    """
    scenario, platform = results[0].scenario, results[0].trace.platform
    traits = [result.scenario.make_scheduler().traits for result in results]
    off = set(scenario.hosts_off)
    return bag_bounds(
        platform,
        results[0].trace.tasks,
        scenario.pstate,
        may_switch_off=any(each.powers_hosts for each in traits),
        free_pstates=any(each.uses_dvfs for each in traits),
        hosts_off=[h for h, host in enumerate(platform.hosts) if host.name in off],
    )


def bound_fields(bounds: BagBounds, row: dict[str, Any]) -> dict[str, Any]:
    """Return the bounds, and by which share a run lies above them.

    Parameters
    ----------
    bounds : BagBounds
    row : dict
        The run's `RunResult.summary`.

    Returns
    -------
    dict
        ``makespan_bound_s``, ``energy_bound_j``, ``energy_bound_counts_idle``,
        ``makespan_above_bound``, ``energy_above_bound``. The last two are None where the bound is 0
        or the run did not finish all tasks, and 0 where only rounding makes a difference.
    """
    complete = row["tasks_finished"] == row["tasks"]

    def above(value: float, bound: float) -> float | None:
        share = share_above(value, bound)
        if not complete or math.isnan(share):
            return None
        return 0.0 if abs(share) < 1e-9 else share

    return {
        "makespan_bound_s": bounds.makespan_s,
        "energy_bound_j": bounds.energy_j,
        "energy_bound_counts_idle": bounds.counts_idle,
        "makespan_above_bound": above(row["makespan_s"], bounds.makespan_s),
        "energy_above_bound": above(row["energy_j"], bounds.energy_j),
    }
