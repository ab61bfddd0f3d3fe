"""FCFS, EASY and conservative backfilling around maintenance, node by node.

The textbook rules count nodes; which ones are down, and when, they cannot say. Here each job gets
the earliest place on nodes that stay up for the whole of its estimate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from gridsched.arrays import Integers
from gridsched.errors import InputError
from gridsched.model.failures import Maintenance
from gridsched.model.signals import EVEN
from gridsched.model.system import System
from gridsched.policy.decisions import Allocate
from gridsched.policy.state import State
from gridsched.schedulers.kernels.node_profile import Reserved, node_profile
from gridsched.schedulers.kernels.parallel_options import ParallelLimits
from gridsched.schedulers.kernels.parallel_queues import place_easily, place_in_cycles
from gridsched.schedulers.parallel.mapping_event import EventMaker


class AroundMaintenance:
    """What starts now, for one run.

    Parameters
    ----------
    owner : str
        Id of the scheduler, whose rule is followed.
    system : System
        With maintenance among its rules.

    Raises
    ------
    InputError
        If nodes are shared.
    """

    def __init__(self, owner: str, system: System) -> None:
        if (system.platform.cores > 1).any():
            raise InputError(
                f"{system.platform.name}: {owner} plans whole nodes around maintenance, hosts of one core."
            )
        self._owner = owner
        self._maker = EventMaker(system)
        self._boot_s = np.array([host.boot_time_s for host in system.platform.hosts])
        windows = sorted(map(Maintenance.read, system.rules.maintenance), key=lambda each: each.begin_s)
        self._windows = [(each.begin_s, each.end_s, each.hosts(system.platform)) for each in windows]

    def starts(self, state: State, queue: Integers) -> list[Allocate]:
        """Return the jobs of the queue that start now, on nodes of the lowest ids that do."""
        now, maker, nodes = state.now, self._maker, state.nodes
        free_at = np.array(nodes.free_at, dtype=np.float64)
        free_at[~nodes.free & (free_at <= now)] = np.nextafter(now, math.inf)
        to_come = []
        for begin_s, end_s, hosts in self._windows:
            if begin_s > now:
                to_come.append((begin_s, end_s, hosts))
            elif end_s > now:
                free_at[hosts] = end_s + self._boot_s[hosts]
        reserved = Reserved(
            np.array([begin_s for begin_s, _, _ in to_come], dtype=np.float64),
            np.array([end_s for _, end_s, _ in to_come], dtype=np.float64),
            np.cumsum([0, *(len(hosts) for _, _, hosts in to_come)], dtype=np.int64),
            np.concatenate([np.zeros(0, dtype=np.int64), *(hosts for _, _, hosts in to_come)]),
        )
        profile = node_profile(maker.nodes, free_at, reserved)
        rows = maker.rows(state.estimates, state.tasks, queue, now)
        limits = ParallelLimits(now, math.inf, math.inf, math.inf, math.inf, EVEN.table)
        if self._owner == "easy_backfilling":
            placed = place_easily(maker.nodes, profile, rows, False, limits, True)
        else:
            one_queue, all_at_once = np.zeros(len(queue), dtype=np.int64), np.array([len(queue)])
            placed = place_in_cycles(maker.nodes, profile, rows, one_queue, all_at_once, limits, True)
        start_now: Iterable[int] = np.flatnonzero(placed.starts <= now).tolist()
        if self._owner == "fcfs":  # nobody overtakes
            later = np.flatnonzero(np.append(placed.starts, math.inf) > now)[0]
            start_now = range(later)
        return [
            Allocate(int(queue[placed.rows[k]]), placed.hosts[placed.offsets[k] : placed.offsets[k + 1]])
            for k in start_now
        ]
