"""What mapping events of parallel tasks on several clusters share: from states to plain arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridsched.model.energy_weights import EVEN, EnergyWeights
from gridsched.model.estimates import Estimates
from gridsched.model.parallel_estimates import ParallelEstimates
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.utility_classes import UtilityClasses
from gridsched.policy.decisions import Allocate, Decision, Drop, Plan
from gridsched.policy.state import NodesState, State
from gridsched.schedulers.kernels.node_profile import (
    NodeProfile,
    Reserved,
    cluster_nodes,
    node_profile,
)
from gridsched.schedulers.kernels.parallel_options import ParallelLimits, ParallelRows, Placed
from gridsched.schedulers.kernels.utility_value import (
    UtilityTables,
    utility_tables,
    utility_values,
)

_INF = float("inf")
Ids = NDArray[np.int64]


@dataclass
class MappingEvent:
    """One mapping event as the kernels want it; a kernel uses the profile up.

    Attributes
    ----------
    now : float
        [s].
    tasks : ndarray of int64, shape (rows,)
        Ids of the mappable tasks, ascending.
    rows : ParallelRows
    functions : UtilityTables or None
        Of the rows; None where the tasks have no utility functions.
    profile : NodeProfile
        Of what runs and of permanent reservations.
    limits : ParallelLimits
        Without a filter.
    """

    now: float
    tasks: Ids
    rows: ParallelRows
    functions: UtilityTables | None
    profile: NodeProfile
    limits: ParallelLimits


class EventMaker:
    """Makes mapping events out of states, for one run.

    Parameters
    ----------
    system : System
    """

    def __init__(self, system: System) -> None:
        platform = system.platform
        clusters = [np.array(each.hosts, dtype=np.int64) for each in platform.clusters]
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
        self, estimates: Estimates, tasks: Tasks, waiting: Ids, now: float = 0.0,
        weights: EnergyWeights = EVEN,
    ) -> ParallelRows:  # fmt: skip
        """Return times, energies and nodes of the tasks `waiting`, and what their energies cost.

        Rigid jobs, which are as wide on every cluster, have the scenario's P-state only.
        """
        arrival = np.array(tasks.submit_time_s[waiting], dtype=np.float64)
        if isinstance(estimates, ParallelEstimates):
            time_s = estimates.time_s.take(waiting, axis=0)
            energy_j = estimates.energy_j.take(waiting, axis=0)
            return ParallelRows(
                time_s, energy_j, weights.cost_j(energy_j, now, time_s),
                estimates.nodes.take(waiting, axis=0), arrival, self.cores_per_node,
            )  # fmt: skip
        hosts, k = self._first_hosts, self._pstate
        assert tasks.width is not None  # the controller has looked
        nodes = np.repeat(np.array(tasks.width[waiting])[:, None], len(hosts), axis=1)
        time_s = np.array(estimates.etc(waiting, hosts, k))[:, :, None]
        energy_j = np.array(estimates.eec(waiting, hosts, k))[:, :, None]  # of all nodes
        cost_j = weights.cost_j(energy_j, now, time_s)
        return ParallelRows(time_s, energy_j, cost_j, nodes, arrival, self.cores_per_node)

    def functions(self, tasks: Tasks, waiting: Ids) -> UtilityTables | None:
        """Return the utility functions of the tasks `waiting`, if they have any."""
        functions = tasks.utility
        if functions is None:
            return None
        known = self._classes
        if known is None or known[0] is not functions.classes:
            known = functions.classes, utility_tables(functions.taken(slice(0)))
            self._classes = known
        return known[1]._replace(
            priority=functions.priority[waiting], urgency=functions.urgency[waiting],
            utility_class=functions.utility_class[waiting],
        )  # fmt: skip

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
            float(now), float(energy.period_end), float(energy.remaining_j), _INF, _INF,
            energy.weights.table,
        )  # fmt: skip
        event = MappingEvent(
            now, waiting,
            self.rows(state.estimates, state.tasks, waiting, now, energy.weights), functions,
            self._profile(state.nodes, now), limits,
        )  # fmt: skip
        return event, [Drop(task) for task in dropped.tolist()]

    def _shortest_times(self, state: State) -> NDArray[np.float64]:
        """Return the least run time of each task that was submitted [s]."""
        known, submitted = len(self._shortest_s), len(state.tasks)
        if known < submitted:
            new = np.arange(known, submitted)
            times = self.rows(state.estimates, state.tasks, new).time_s.min(axis=(1, 2))
            self._shortest_s = np.concatenate([self._shortest_s, times])
        return self._shortest_s

    def _profile(self, nodes: NodesState, now: float) -> NodeProfile:
        """Return the gaps between what runs and what is reserved.

        What has outlived its estimate ends in the next moment.
        """
        free_at = np.array(nodes.free_at, dtype=np.float64)
        free_at[~nodes.free & (free_at <= now)] = np.nextafter(now, _INF)
        found = nodes.reserved
        reserved = Reserved(
            np.array(found.start), np.array(found.end), np.array(found.offsets),
            np.array(found.hosts),
        )  # fmt: skip
        return node_profile(self.nodes, free_at, reserved)

    # ------------------------------------------------------------------ what comes out

    def place_holders(self, event: MappingEvent, placed: Placed) -> Iterable[Decision]:
        """Return the plan of what is placed."""
        if not len(placed.rows):
            return
        yield Plan(
            event.tasks[placed.rows], placed.hosts, self.pstates[placed.pstates], placed.offsets,
            placed.starts,
        )  # fmt: skip

    def reservations(self, event: MappingEvent, placed: Placed) -> Iterator[Decision]:
        """Return what starts now, and a permanent reservation of what is placed later."""
        tasks, pstates = event.tasks[placed.rows].tolist(), self.pstates[placed.pstates].tolist()
        offsets, starts = placed.offsets.tolist(), placed.starts.tolist()
        for k, task in enumerate(tasks):
            hosts = placed.hosts[offsets[k] : offsets[k + 1]]
            start = starts[k] if starts[k] > event.now else None
            yield Allocate(task, hosts, pstates[k], start)
