"""When each one-core host is ready, as a distribution (paper 002, IV-B; algorithms D3).

What runs ends by its distribution, without the impulses that have passed; the fixed queue is
convolved with it. Both parts are kept, so that an append convolves once.
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from gridsched.engine.ledger import Ledger
from gridsched.model.pmf import Pmf, point_mass
from gridsched.model.stochastic import StochasticEstimates


class ReadyPmfs:
    """Distributions of the times at which hosts could start a newly appended task.

    Parameters
    ----------
    ledger : Ledger
    estimates : StochasticEstimates
    """

    def __init__(self, ledger: Ledger, estimates: StochasticEstimates) -> None:
        self._ledger = ledger
        self._estimates = estimates
        self._hosts: dict[int, _Host] = {}

    def of(self, host: int, now: float) -> Pmf:
        """Return when `host` is ready, as known at `now` [s].

        Raises
        ------
        AttributeError
            If the host has several cores.
        """
        ledger = self._ledger
        if ledger.cores[host] != 1:
            raise AttributeError(
                f"state.ready_pmf: host {host} has {ledger.cores[host]} cores; distributions of "
                "ready times are known of hosts with one core only."
            )
        if not ledger.is_on[host]:
            return point_mass(np.inf)
        if host not in ledger.running and not ledger.fixed[host]:
            return point_mass(max(ledger.boot_end[host], now))
        known = self._hosts.get(host)
        if known is None or known.version != ledger.version[host]:
            known = self._hosts[host] = self._begun(host)
        queue = ledger.fixed[host]
        for task, pstate in islice(queue, known.counted, None):
            known.append(self._estimates.pmf(task, host, pstate))
        return known.ready(now)

    def _begun(self, host: int) -> _Host:
        """Return what runs on the host, without its queue."""
        ledger = self._ledger
        running = ledger.running.get(host)
        if not running:  # it boots
            end = point_mass(ledger.boot_end[host])
        else:
            copy = running[0]
            pstate = self._estimates.scheduler_pstate(copy.task, copy.pstate)
            end = self._estimates.pmf(copy.task, host, pstate).shifted(copy.start)
        return _Host(ledger.version[host], end)


class _Host:
    """One host: the end of what runs there, and the fixed queue behind it.

    Parameters
    ----------
    version : int
        The ledger's, for which this is true.
    end : Pmf
        End of what runs, as known at its start [s].
    """

    def __init__(self, version: int, end: Pmf) -> None:
        self.version = version
        self.counted = 0
        self._end = end
        self._queue: Pmf | None = None

    def append(self, run_time: Pmf) -> None:
        """Add the run time of the task that comes next in the fixed queue."""
        self._queue = run_time if self._queue is None else self._queue.convolved(run_time)
        self.counted += 1

    def ready(self, now: float) -> Pmf:
        """Return when the host is ready, if it is not yet at `now` [s]."""
        end, queue = self._end, self._queue
        passed = int(np.searchsorted(end.times, now, side="left"))
        if passed == len(end) or end.mass_after[passed] <= 0:
            # it should have ended: now, as far as is known
            return point_mass(now) if queue is None else queue.shifted(now)
        left = end.not_before(now)
        return left if queue is None else left.convolved(queue)
