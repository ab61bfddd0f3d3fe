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

    def queued_ends(self, host: int, now: float) -> list[Pmf]:
        """Return when each task in the fixed queue of `host` ends, as known at `now` [s]."""
        queue = self._ledger.fixed[host]
        end = self._known(host).end(now)
        ends = []
        for task, pstate in queue:
            end = _followed(end, self._estimates.pmf(task, host, pstate))
            ends.append(end)
        return ends

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
        known = self._known(host)
        queue = ledger.fixed[host]
        for task, pstate in islice(queue, known.counted, None):
            known.append(self._estimates.pmf(task, host, pstate))
        return known.ready(now)

    def _known(self, host: int) -> _Host:
        """Return what is kept of a host where something runs or is queued."""
        known = self._hosts.get(host)
        if known is None or known.version != self._ledger.version[host]:
            known = self._hosts[host] = self._begun(host)
        return known

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


def _followed(end: Pmf, run_time: Pmf) -> Pmf:
    """Return when the run time ends that begins at `end`; what is certain needs no common grid."""
    if len(end) == 1:
        return run_time.shifted(float(end.times[0]))
    return end.convolved(run_time)


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
        left, queue = self.end(now), self._queue
        return left if queue is None else _followed(left, queue)

    def end(self, now: float) -> Pmf:
        """Return when what runs ends, if it has not yet at `now` [s]: at once if it should have."""
        return self._end.not_before(now)
