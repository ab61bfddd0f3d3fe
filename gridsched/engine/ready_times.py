"""When each core could take a newly appended task, kept up to date instead of made anew.

A policy that maps each task at its arrival asks for it once a task; only the hosts on which
something happened since then are looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.ledger import Ledger


class ReadyTimes:
    """Estimated ready times of all cores.

    Parameters
    ----------
    ledger : Ledger
        Its sets `changed` and `grown` tell which hosts to look at; they are emptied here.
    run_time : callable
        ``run_time(task, host, pstate)``: estimated durations [s].
    """

    def __init__(self, ledger: Ledger, run_time: Callable[[int, int, int], float]) -> None:
        self._ledger = ledger
        self._run_time = run_time
        n = len(ledger.cores)
        self._ready = np.full((n, max(ledger.cores, default=1)), np.inf)
        #: the earliest end that each row is built on; in the past it has to be built again
        self._base = np.full(n, -np.inf)
        self._counted = [0] * n

    def table(self, now: float) -> NDArray[np.float64]:
        """Return the ready times [s] at `now`, shape (hosts, most cores), rows ascending."""
        ledger = self._ledger
        for host in ledger.changed.union(np.flatnonzero(self._base < now).tolist()):
            self._build(host, now)
        for host in ledger.grown - ledger.changed:
            self._append(host, self._ready[host, : ledger.cores[host]].tolist())
        ledger.changed.clear()
        ledger.grown.clear()
        return self._ready.copy()

    def _build(self, host: int, now: float) -> None:
        """Make a host's row from what runs there and its fixed queue."""
        ledger = self._ledger
        self._counted[host] = 0
        if not ledger.is_on[host]:
            self._ready[host] = np.inf
            self._base[host] = np.inf
            return
        free_from = max(now, ledger.boot_end[host])
        if ledger.one_core:  # the usual case, without lists
            running = ledger.running[host]
            end = running[0].estimated_end if running else free_from
            self._base[host] = end = end if end > free_from else free_from
            for task, pstate in ledger.fixed[host]:
                end += self._run_time(task, host, pstate)
            self._ready[host, 0] = end
            self._counted[host] = len(ledger.fixed[host])
            return
        ends = [max(free_from, e.estimated_end) for e in ledger.running[host]]
        ends += [free_from] * (ledger.cores[host] - len(ends))
        ends.sort()
        self._base[host] = ends[0]
        self._append(host, ends)

    def _append(self, host: int, ends: list[float]) -> None:
        """Add the tasks of the fixed queue that a row does not count yet."""
        queue = self._ledger.fixed[host]
        for task, pstate in islice(queue, self._counted[host], None):
            ends[0] += self._run_time(task, host, pstate)
            if len(ends) > 1:
                ends.sort()
        self._counted[host] = len(queue)
        self._ready[host, : len(ends)] = ends
