"""Energy filters of paper 001, section 3.8: how much energy an option may need (algorithms C5)."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError
from gridsched.model.parallel_estimates import ParallelEstimates
from gridsched.policy.base import check_choice, check_number
from gridsched.policy.state import EnergyState
from gridsched.schedulers.kernels.node_profile import NodeProfile
from gridsched.schedulers.kernels.parallel_options import ParallelLimits

#: The leniencies that paper 001 chose (section 5.1).
PAPER_LENIENCY = {"energy_per_task": 2.0, "energy_per_resource": 4.0}


class ParallelFilter:
    """Base of filters that share out the energy that remains in the period.

    A subclass says in `_limited` what an option may need; with an infinite leniency all pass.
    """

    def __init__(self, estimates: ParallelEstimates, leniency: float) -> None:
        self.leniency = leniency
        self.cores_per_node = np.array(estimates.cores_per_node, dtype=np.float64)

    def tightened(
        self, limits: ParallelLimits, energy: EnergyState, profile: NodeProfile
    ) -> ParallelLimits:
        """Return the limits of an event with the filter's budgets."""
        if self.leniency == math.inf or math.inf in (energy.remaining_j, energy.period_end):
            return limits
        resources = resources_remaining(profile, self.cores_per_node, energy.period_end)
        return self._limited(limits, energy.remaining_j, resources)

    @abstractmethod
    def _limited(
        self, limits: ParallelLimits, remaining_j: float, resources: float
    ) -> ParallelLimits:
        """Return the limits that follow from energy [J] and resources [core-s] that remain."""


class EnergyPerTask(ParallelFilter):
    """An option passes if its energy is at most `leniency` fair shares of what remains.

    Notes
    -----
    With the mean resources and energy of all task types, where they can run, at their mean width
    (paper 001, eq. 7 and 8)::

        tasks  = min(resources_remaining / mean_resources, energy_remaining / mean_energy)
        budget = leniency * energy_remaining / tasks
    """

    def __init__(self, owner: str, estimates: ParallelEstimates, leniency: float) -> None:
        super().__init__(estimates, leniency)
        if estimates.typical_time_s is None or estimates.typical_nodes is None:
            raise InputError(
                f"Parameter 'energy_filter' of {owner} is 'energy_per_task', which needs typical "
                "times and nodes of the task types; this workload has none. Use "
                "'energy_per_resource'."
            )
        time, nodes = estimates.typical_time_s, estimates.typical_nodes[:, :, None]
        feasible = np.isfinite(time)
        resources = time * (nodes * self.cores_per_node[None, :, None])
        self.mean_resources = float(resources[feasible].mean())
        power = (nodes * estimates.node_power_w)[feasible]
        self.mean_energy_j = float((time[feasible] * power).mean())

    def _limited(
        self, limits: ParallelLimits, remaining_j: float, resources: float
    ) -> ParallelLimits:
        share_j = fair_share_per_task(
            remaining_j, resources, self.mean_resources, self.mean_energy_j
        )
        return limits._replace(task_budget_j=self.leniency * share_j)


class EnergyPerResource(ParallelFilter):
    """An option passes if its energy per resource is at most `leniency` fair shares.

    Notes
    -----
    ``budget = leniency * energy_remaining / resources_remaining`` (paper 001, eq. 9) [W per core].
    """

    def _limited(
        self, limits: ParallelLimits, remaining_j: float, resources: float
    ) -> ParallelLimits:
        share_w = fair_share_per_resource(remaining_j, resources)
        return limits._replace(resource_budget_w=self.leniency * share_w)


def resources_remaining(
    profile: NodeProfile, cores_per_node: NDArray[np.float64], period_end: float
) -> float:
    """Return the unallocated time of all nodes until the period's end, times their cores (eq. 6).

    Parameters
    ----------
    profile : NodeProfile
    cores_per_node : ndarray of float64, shape (clusters,)
    period_end : float
        [s].

    Returns
    -------
    float
        [core-s].
    """
    total = 0.0
    for c, cores in enumerate(cores_per_node.tolist()):
        gaps = slice(profile.size[c])
        begin = np.minimum(profile.begin[c, gaps], period_end)
        end = np.minimum(profile.end[c, gaps], period_end)
        total += float(((end - begin) * profile.n_nodes[c, gaps]).sum()) * cores
    return total


def fair_share_per_task(
    remaining_j: float, resources: float, mean_resources: float, mean_energy_j: float
) -> float:
    """Return the energy that remains over the tasks that it and the nodes suffice for [J].

    Minus infinity where no energy or no time is left: nothing passes.

    Parameters
    ----------
    remaining_j : float
        [J].
    resources, mean_resources : float
        What remains, and what a task takes in the mean [core-s].
    mean_energy_j : float
        What a task takes in the mean [J].

    Examples
    --------
    >>> 2.0 * fair_share_per_task(1000.0, 2800.0, 300.0, 400.0)  # algorithms C6
    800.0
    """
    if remaining_j <= 0.0 or resources <= 0.0:
        return -math.inf
    by_energy = remaining_j / mean_energy_j if mean_energy_j > 0.0 else math.inf
    return remaining_j / min(resources / mean_resources, by_energy)


def fair_share_per_resource(remaining_j: float, resources: float) -> float:
    """Return the energy that remains over the resources that remain [W per core].

    Minus infinity where no energy or no time is left: nothing passes.

    Parameters
    ----------
    remaining_j : float
        [J].
    resources : float
        [core-s].

    Examples
    --------
    >>> round(4.0 * fair_share_per_resource(1000.0, 2800.0), 4)  # algorithms C6
    1.4286
    """
    if remaining_j <= 0.0 or resources <= 0.0:
        return -math.inf
    return remaining_j / resources


def parallel_filter(
    owner: str, name: object, leniency: object, estimates: ParallelEstimates
) -> ParallelFilter:
    """Return the filter that the parameters of the scheduler `owner` ask for.

    Parameters
    ----------
    owner : str
    name : object
        Parameter ``energy_filter``.
    leniency : object
        Parameter ``energy_leniency``; ``"paper"``: 2 per task, 4 per resource.
    estimates : ParallelEstimates

    Raises
    ------
    InputError
        If a parameter is illegal, or the filter needs what the workload does not have.
    """
    check_choice(owner, "energy_filter", name, ["none", *PAPER_LENIENCY])
    number = PAPER_LENIENCY.get(str(name), math.inf)
    if leniency != "paper":
        number = check_number(
            owner, "energy_leniency", leniency, lambda x: x > 0,
            "a number greater than 0 (inf: no filter) or 'paper' (2 per task, 4 per resource)",
        )  # fmt: skip
    if name == "energy_per_task":
        return EnergyPerTask(owner, estimates, number)
    return EnergyPerResource(estimates, math.inf if name == "none" else number)
