"""What mapping events of parallel tasks on several clusters share: plain arrays, energy filters.

The filters are those of paper 001, section 3.8: how much energy an option may need (algorithms C5).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.estimates import Estimates
from gridsched.model.parallel_estimates import ParallelEstimates
from gridsched.model.signals import EVEN, Signal
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.utility import UtilityClasses
from gridsched.policy.base import check_choice, check_number
from gridsched.policy.decisions import Allocate, Decision, Drop, Plan
from gridsched.policy.state import EnergyState, NodesState, State
from gridsched.schedulers.weighing import signals_of_groups, weighed_j
from gridsched.systems.utility.kernels.node_gaps import NodeProfile
from gridsched.systems.utility.kernels.node_profile import Reserved, cluster_nodes, node_profile
from gridsched.systems.utility.kernels.parallel_options import ParallelLimits, ParallelRows, Placed
from gridsched.systems.utility.kernels.utility_value import UtilityTables, utility_tables, utility_values

#: The leniencies that paper 001 chose (section 5.1).
PAPER_LENIENCY = {"energy_per_task": 2.0, "energy_per_resource": 4.0}

#: By so much less is a sum of rounded energies than another, if it is.
_CLEARLY_LESS = 1.0 - 1e-9


@dataclass
class MappingEvent:
    """One mapping event as the kernels want it; a kernel uses the profile up.

    Attributes
    ----------
    now : float
        [s].
    tasks : ndarray of int64, shape (rows,)
        Integers of the mappable tasks, ascending.
    rows : ParallelRows
    functions : UtilityTables or None
        Of the rows; None where the tasks have no utility functions.
    profile : NodeProfile
        Of what runs and of permanent reservations.
    limits : ParallelLimits
        Without a filter.
    """

    now: float
    tasks: Integers
    rows: ParallelRows
    functions: UtilityTables | None
    profile: NodeProfile
    limits: ParallelLimits


class EventMaker:
    """Makes mapping events out of states, for one run.

    Parameters
    ----------
    system : System
    weighing : Signal
        What a joule weighs at each host; where it is even, what it counts in the budget.
    """

    def __init__(self, system: System, weighing: Signal = EVEN) -> None:
        platform = system.platform
        clusters = [np.array(each.hosts, dtype=np.int64) for each in platform.clusters]
        self._weights = [] if weighing.is_even else signals_of_groups(weighing, clusters)
        self.nodes = cluster_nodes(clusters, len(platform))
        self._first_hosts = self.nodes.hosts[self.nodes.first[:-1]]
        self._pstate = system.pstate
        estimates = system.estimates
        #: P-state k of the rows is this one for the controller
        self.pstates = np.array([system.pstate], dtype=np.int64)
        self.cores_per_node = np.ones(len(clusters), dtype=np.int64)
        if isinstance(estimates, ParallelEstimates):
            self.pstates = np.arange(estimates.node_power_w.shape[2])
            self.cores_per_node = np.array(estimates.cores_per_node, dtype=np.int64)
        self._classes: tuple[UtilityClasses, UtilityTables] | None = None
        self._shortest_s = np.empty(0)

    def rows(
        self, estimates: Estimates, tasks: Tasks, waiting: Integers, now: float = 0.0, weights: Signal = EVEN
    ) -> ParallelRows:
        """Return times, energies and nodes of the tasks `waiting`, and what their energies cost.

        Rigid jobs, which are as wide on every cluster, have the scenario's P-state only.
        """
        arrival = np.array(tasks.submit_time_s[waiting], dtype=np.float64)
        if isinstance(estimates, ParallelEstimates):
            time_s = estimates.time_s.take(waiting, axis=0)
            energy_j = estimates.energy_j.take(waiting, axis=0)
            return ParallelRows(
                time_s,
                energy_j,
                self._cost_j(energy_j, now, time_s, weights),
                estimates.nodes.take(waiting, axis=0),
                arrival,
                self.cores_per_node,
            )
        hosts, k = self._first_hosts, self._pstate
        nodes = np.repeat(np.array(tasks.width[waiting])[:, None], len(hosts), axis=1)
        time_s = np.array(estimates.etc(waiting, hosts, k))[:, :, None]
        energy_j = np.array(estimates.eec(waiting, hosts, k))[:, :, None]  # of all nodes
        cost_j = self._cost_j(energy_j, now, time_s, weights)
        return ParallelRows(time_s, energy_j, cost_j, nodes, arrival, self.cores_per_node)

    def _cost_j(self, energy_j: Floats, now: float, time_s: Floats, of_budget: Signal) -> Floats:
        if not self._weights:
            return of_budget.cost_j(energy_j, now, time_s)
        return weighed_j(self._weights, energy_j, now, time_s)

    def functions(self, tasks: Tasks, waiting: Integers) -> UtilityTables | None:
        """Return the utility functions of the tasks `waiting`, if they have any."""
        functions = tasks.utility
        if functions is None:
            return None
        tables = self._classes
        if tables is None or tables[0] is not functions.classes:
            tables = functions.classes, utility_tables(functions.taken(slice(0)))
            self._classes = tables
        return tables[1]._replace(
            priority=functions.priority[waiting],
            urgency=functions.urgency[waiting],
            utility_class=functions.utility_class[waiting],
        )

    def event(self, state: State, threshold: float) -> tuple[MappingEvent, list[Decision]]:
        """Return the mapping event of a state without what is not worth it, and the drops of that.

        Dropped is what could not even earn `threshold` any more, if it started now where it is
        fastest (paper 001, section 3.3).
        """
        now, energy = state.now, state.energy
        waiting = np.array(state.mappable, dtype=np.int64)
        functions, dropped = self.functions(state.tasks, waiting), waiting[:0]
        if functions is not None:
            fastest_end = now + self._shortest_times(state)[waiting]
            elapsed = fastest_end - state.tasks.submit_time_s[waiting]
            short = utility_values(functions, np.arange(len(waiting)), elapsed) < threshold
            if short.any():
                dropped, waiting = waiting[short], waiting[~short]
                functions = self.functions(state.tasks, waiting)
        limits = ParallelLimits(
            float(now), float(energy.period_end), float(energy.remaining_j), math.inf, math.inf, energy.weights.table
        )
        event = MappingEvent(
            now,
            waiting,
            self.rows(state.estimates, state.tasks, waiting, now, energy.weights),
            functions,
            self._profile(state.nodes, now),
            limits,
        )
        return event, [Drop(task) for task in dropped.tolist()]

    def _shortest_times(self, state: State) -> Floats:
        """Return the least run time of each task that was submitted [s]."""
        counted, submitted = len(self._shortest_s), len(state.tasks)
        if counted < submitted:
            new = np.arange(counted, submitted)
            times = self.rows(state.estimates, state.tasks, new).time_s.min(axis=(1, 2))
            self._shortest_s = np.concatenate([self._shortest_s, times])
        return self._shortest_s

    def _profile(self, nodes: NodesState, now: float) -> NodeProfile:
        """Return the gaps between what runs and what is reserved.

        What has outlived its estimate ends in the next moment.
        """
        free_at = np.array(nodes.free_at, dtype=np.float64)
        free_at[~nodes.free & (free_at <= now)] = np.nextafter(now, math.inf)
        reservations = nodes.reserved
        reserved = Reserved(
            np.array(reservations.start),
            np.array(reservations.end),
            np.array(reservations.offsets),
            np.array(reservations.hosts),
        )
        return node_profile(self.nodes, free_at, reserved)

    # ------------------------------------------------------------------ what comes out

    def place_holders(self, event: MappingEvent, placed: Placed) -> Iterable[Decision]:
        """Return the plan of what is placed."""
        if not len(placed.rows):
            return
        yield Plan(event.tasks[placed.rows], placed.hosts, self.pstates[placed.pstates], placed.offsets, placed.starts)

    def reservations(self, event: MappingEvent, placed: Placed) -> Iterator[Decision]:
        """Return what starts now, and a permanent reservation of what is placed later."""
        tasks, pstates = event.tasks[placed.rows].tolist(), self.pstates[placed.pstates].tolist()
        offsets, starts = placed.offsets.tolist(), placed.starts.tolist()
        for k, task in enumerate(tasks):
            hosts = placed.hosts[offsets[k] : offsets[k + 1]]
            start = starts[k] if starts[k] > event.now else None
            yield Allocate(task, hosts, pstates[k], start)


def may_refuse(limits: ParallelLimits, rows: ParallelRows) -> bool:
    """Whether the energy that remains might refuse an option of an event, in whatever order its tasks are placed.

    It cannot where it suffices for all tasks, each at the most energy that it can take. Where joules weigh differently,
    nothing is promised.
    """
    if limits.remaining_j == math.inf or not len(rows.time_s):
        return False
    if limits.weights.shape[1]:
        return True
    most_j = np.where(np.isfinite(rows.time_s), rows.energy_j, 0.0).max(axis=(1, 2)).sum()
    return not most_j <= limits.remaining_j * _CLEARLY_LESS


class ParallelFilter:
    """Base of filters that share out the energy that remains in the period.

    A subclass sets in `_limited` what an option may need; with an infinite leniency all pass.
    """

    def __init__(self, estimates: ParallelEstimates, leniency: float) -> None:
        self.leniency = leniency
        self.cores_per_node = np.array(estimates.cores_per_node, dtype=np.float64)

    def tightened(self, limits: ParallelLimits, energy: EnergyState, profile: NodeProfile) -> ParallelLimits:
        """Return the limits of an event with the filter's budgets."""
        if self.leniency == math.inf or math.inf in (energy.remaining_j, energy.period_end):
            return limits
        resources = resources_remaining(profile, self.cores_per_node, energy.period_end)
        return self._limited(limits, energy.remaining_j, resources)

    @abstractmethod
    def _limited(self, limits: ParallelLimits, remaining_j: float, resources: float) -> ParallelLimits:
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

    def _limited(self, limits: ParallelLimits, remaining_j: float, resources: float) -> ParallelLimits:
        share_j = fair_share_per_task(remaining_j, resources, self.mean_resources, self.mean_energy_j)
        return limits._replace(task_budget_j=self.leniency * share_j)


class EnergyPerResource(ParallelFilter):
    """An option passes if its energy per resource is at most `leniency` fair shares.

    Notes
    -----
    ``budget = leniency * energy_remaining / resources_remaining`` (paper 001, eq. 9) [W per core].
    """

    def _limited(self, limits: ParallelLimits, remaining_j: float, resources: float) -> ParallelLimits:
        share_w = fair_share_per_resource(remaining_j, resources)
        return limits._replace(resource_budget_w=self.leniency * share_w)


def resources_remaining(profile: NodeProfile, cores_per_node: Floats, period_end: float) -> float:
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


def fair_share_per_task(remaining_j: float, resources: float, mean_resources: float, mean_energy_j: float) -> float:
    """Return the energy that remains over the tasks that it and the nodes suffice for [J].

    Minus infinity where no energy or no time is left: nothing passes.

    Parameters
    ----------
    remaining_j : float
        [J].
    resources, mean_resources : float
        What remains, and what a task takes on average [core-s].
    mean_energy_j : float
        What a task takes on average [J].

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


def parallel_filter(owner: str, name: object, leniency: object, estimates: ParallelEstimates) -> ParallelFilter:
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
        If a parameter is not allowed, or the filter needs what the workload does not have.
    """
    check_choice(owner, "energy_filter", name, ["none", *PAPER_LENIENCY])
    number = PAPER_LENIENCY.get(str(name), math.inf)
    if leniency != "paper":
        number = check_number(
            owner,
            "energy_leniency",
            leniency,
            lambda x: x > 0,
            "a number greater than 0 (inf: no filter) or 'paper' (2 per task, 4 per resource)",
        )
    if name == "energy_per_task":
        return EnergyPerTask(owner, estimates, number)
    return EnergyPerResource(estimates, math.inf if name == "none" else number)
