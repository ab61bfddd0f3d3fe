"""What fixed queues are bound to draw in a period, kept up to date instead of made anew.

Queues may hold a whole day's tasks, and a policy that maps each task at its arrival wants to know
each time: only what has changed since then is looked at.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING

from gridsched.energy import energy_inside

if TYPE_CHECKING:
    from gridsched.engine.ledger import Ledger
    from gridsched.model.estimates import Estimates


class QueuedEnergy:
    """Estimated energy of fixed queues before the end of a period.

    Parameters
    ----------
    ledger : Ledger
        Its set `requeued` tells where more happened than an append; it is emptied here.
    estimates : Estimates
    """

    def __init__(self, ledger: Ledger, estimates: Estimates) -> None:
        self._ledger = ledger
        self._estimates = estimates
        self._period_end = math.inf
        n = len(ledger.cores)
        self._inside_j = [0.0] * n
        self._counted = [0] * n
        #: when each core could take a newly appended task [s]
        self._ends: list[list[float]] = [[] for _ in range(n)]
        #: the earliest end that these are built on; in the past they have to be built again
        self._base = [-math.inf] * n

    def begin_period(self, period_end: float) -> None:
        """Count energy up to `period_end` [s] from now on."""
        self._period_end = period_end
        self._ledger.requeued.update(range(len(self._counted)))

    def inside_j(self, host: int, now: float) -> float:
        """Return what the host's fixed queue will draw from `now` to the period's end [J]."""
        requeued = self._ledger.requeued
        if host in requeued or self._base[host] < now:
            requeued.discard(host)
            self._restart(host, now)
        if self._counted[host] < len(self._ledger.fixed[host]):
            self._count(host)
        return self._inside_j[host]

    def _restart(self, host: int, now: float) -> None:
        """Let the host's queue begin behind what runs there."""
        ledger = self._ledger
        ends = [max(e.estimated_end, now) for e in ledger.running[host]]
        ends += [max(now, ledger.boot_end[host])] * (ledger.cores[host] - len(ends))
        self._ends[host] = ends
        self._base[host] = min(ends)
        self._counted[host] = 0
        self._inside_j[host] = 0.0

    def _count(self, host: int) -> None:
        """Add the tasks of the queue that are not counted yet."""
        queue, ends, total = self._ledger.fixed[host], self._ends[host], self._inside_j[host]
        run_time_of, energy_of = self._estimates.run_time, self._estimates.energy
        for task, pstate in islice(queue, self._counted[host], None):
            first = ends.index(min(ends))
            run_time, energy = run_time_of(task, host, pstate), energy_of(task, host, pstate)
            total += energy_inside(ends[first], run_time, energy, self._period_end)
            ends[first] += run_time
        self._inside_j[host] = total
        self._counted[host] = len(queue)
