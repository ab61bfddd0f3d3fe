"""Dynamic lists: tasks are placed as they get ready, by when their data could be there.

The rules are those of bags, with a ready time of data: the end of task i on host j is
``max(core_j, data_ij) + w_ij``, where n cores are free at `core_j` for a task of n. Equal ends: the lowest host id;
equal tasks: the lowest task id.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from gridsched.arrays import Floats
from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign, Decision
from gridsched.policy.state import State


class ReadyList(Scheduler):
    """Base of dynamic lists: of the tasks that are ready one is chosen and queued on the host of its earliest end.

    It is repeated until none is left; a task stays in its host's queue. A subclass chooses in `_choose`.
    """

    traits: ClassVar[Traits] = Traits(trigger="event")

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Get ready for the hosts of a run."""
        self.system_ = system

    def schedule(self, state: State) -> Iterable[Decision]:
        """Queue all tasks that are ready."""
        tasks = state.mappable
        if not len(tasks):
            return []
        hosts = np.arange(self.system_.n_hosts)
        time_s = np.array(state.estimates.etc(tasks, hosts, self.system_.pstates[hosts]), dtype=np.float64)
        data_s = np.array([state.data_ready(task) for task in tasks.tolist()])
        cores = np.array(state.core_ready_time, dtype=np.float64)
        n_cores = state.estimates.numbers_of_cores(tasks, np.zeros(len(tasks), dtype=np.int64))
        last = np.minimum(n_cores, cores.shape[1]) - 1  # a task of more cores than any host has can run nowhere
        ends = np.maximum(cores[:, last].T, data_s) + time_s
        left = np.isfinite(ends).any(axis=1)  # no host that is on can run the others
        decisions: list[Decision] = []
        while left.any():
            k = self._choose(np.where(left[:, None], ends, np.inf), left)
            host = self._host(ends[k], time_s[k], cores[:, last[k]])
            decisions.append(Assign(int(tasks[k]), host))
            left[k] = False
            if not left.any():
                break
            cores[host, : last[k] + 1] = ends[k, host]
            cores[host].sort()
            ends[:, host] = np.maximum(cores[host, last], data_s[:, host]) + time_s[:, host]
        return decisions

    @abstractmethod
    def _choose(self, ends: Floats, left: Floats) -> int:
        """Return the row of the task that is queued next.

        Parameters
        ----------
        ends : ndarray of float64, shape (tasks, hosts)
            Expected ends [s]; infinite in the rows of tasks that are queued.
        left : ndarray of bool, shape (tasks,)
            Tasks that are not.
        """

    def _host(self, ends: Floats, time_s: Floats, free_s: Floats) -> int:
        """Return the host of the task that is queued next: that of its earliest end.

        Parameters
        ----------
        ends : ndarray of float64, shape (hosts,)
            When the task would end [s]; infinite where it cannot run, or the host is off.
        time_s, free_s : ndarray of float64, shape (hosts,)
            How long it takes, and from when on as many cores are free as it takes [s].
        """
        return int(np.argmin(ends))


class ReadyMCT(ReadyList):
    """Of the tasks that are ready, in order of their ids, each to the host of its earliest end, its data considered.

    References
    ----------
    .. [1] M. Maheswaran et al., "Dynamic mapping of a class of independent tasks onto heterogeneous computing
       systems", JPDC 59, 1999, section 3.1 (MCT). https://doi.org/10.1006/jpdc.1999.1581
    """

    def _choose(self, ends: Floats, left: Floats) -> int:
        return int(np.argmax(left))


class ReadyMET(ReadyList):
    """Of the tasks that are ready, in order of their ids, each to the host on which it takes least time.

    Neither data nor what is queued there count.

    References
    ----------
    .. [1] M. Maheswaran et al., "Dynamic mapping of a class of independent tasks onto heterogeneous computing
       systems", JPDC 59, 1999, section 3.1 (MET). https://doi.org/10.1006/jpdc.1999.1581
    """

    def _choose(self, ends: Floats, left: Floats) -> int:
        return int(np.argmax(left))

    def _host(self, ends: Floats, time_s: Floats, free_s: Floats) -> int:
        return int(np.argmin(np.where(np.isfinite(ends), time_s, np.inf)))


class ReadyOLB(ReadyList):
    """Of the tasks that are ready, in order of their ids, each to the host that has a free core first.

    Neither data nor how long it takes there count.

    References
    ----------
    .. [1] M. Maheswaran et al., "Dynamic mapping of a class of independent tasks onto heterogeneous computing
       systems", JPDC 59, 1999, section 3.1 (OLB). https://doi.org/10.1006/jpdc.1999.1581
    """

    traits: ClassVar[Traits] = Traits(trigger="event", platform_order_matters=True)

    def _choose(self, ends: Floats, left: Floats) -> int:
        return int(np.argmax(left))

    def _host(self, ends: Floats, time_s: Floats, free_s: Floats) -> int:
        return int(np.argmin(np.where(np.isfinite(ends), free_s, np.inf)))


class ReadyMinMin(ReadyList):
    """Min-Min over the tasks that are ready: the one that can end earliest is queued first, its data considered.

    References
    ----------
    .. [1] M. Maheswaran et al., "Dynamic mapping of a class of independent tasks onto heterogeneous computing
       systems", JPDC 59, 1999, section 3.2 (Min-min). https://doi.org/10.1006/jpdc.1999.1581
    """

    def _choose(self, ends: Floats, left: Floats) -> int:
        return int(np.argmin(ends.min(axis=1)))


class ReadyMaxMin(ReadyList):
    """Max-Min over the tasks that are ready: the one whose earliest end is latest is queued first.

    References
    ----------
    .. [1] M. Maheswaran et al., "Dynamic mapping of a class of independent tasks onto heterogeneous computing
       systems", JPDC 59, 1999, section 3.2 (Max-min). https://doi.org/10.1006/jpdc.1999.1581
    """

    def _choose(self, ends: Floats, left: Floats) -> int:
        return int(np.argmax(np.where(left, ends.min(axis=1), -np.inf)))


class ReadySufferage(ReadyList):
    """Sufferage over the tasks that are ready: the one that loses most without its best host is queued first.

    Its loss is the second earliest end less the earliest, infinite where one host alone can run it.

    References
    ----------
    .. [1] M. Maheswaran et al., "Dynamic mapping of a class of independent tasks onto heterogeneous computing
       systems", JPDC 59, 1999, section 3.2 (Sufferage). https://doi.org/10.1006/jpdc.1999.1581
    """

    def _choose(self, ends: Floats, left: Floats) -> int:
        if ends.shape[1] == 1:
            return int(np.argmax(left))
        two = np.partition(ends, 1, axis=1)
        loss = np.full(len(left), -np.inf)
        loss[left] = two[left, 1] - two[left, 0]
        return int(np.argmax(loss))
