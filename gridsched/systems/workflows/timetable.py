"""What is planned on each core of each host, and where a further task would fit."""

from __future__ import annotations

import math
from bisect import bisect_right
from operator import sub

import numpy as np

from gridsched.arrays import Floats
from gridsched.model.system import System

#: A gap counts as longer by so much of its time [1]: its length is a difference of sums.
_ROUNDING = 1e-9


class Core:
    """What is free on one core: begins and ends of its gaps [s], ascending; the last one has no end."""

    def __init__(self) -> None:
        self.starts: list[float] = [0.0]
        self.ends: list[float] = [math.inf]

    def gap(self, ready_s: float, time_s: float) -> float:
        """Return the earliest start from `ready_s` on of a task that takes so long [s]."""
        k = bisect_right(self.ends, ready_s)
        start = max(ready_s, self.starts[k])
        while start + time_s > self.ends[k]:
            k += 1
            start = max(ready_s, self.starts[k])
        return start

    def take(self, start_s: float, end_s: float) -> None:
        """Plan a task in a gap, which leaves up to two."""
        k = bisect_right(self.starts, start_s) - 1
        left, right = self.starts[k], self.ends[k]
        starts, ends = [], []
        if left < start_s:
            starts, ends = [left], [start_s]
        if end_s < right:
            starts.append(end_s)
            ends.append(right)
        self.starts[k : k + 1] = starts
        self.ends[k : k + 1] = ends

    def give_back(self, start_s: float, end_s: float) -> None:
        """Free what a task was planned for; gaps that meet it become one with it."""
        k = bisect_right(self.starts, start_s)
        low, high = k, k
        if k < len(self.starts) and self.starts[k] == end_s:
            high, end_s = k + 1, self.ends[k]
        if k and self.ends[k - 1] == start_s:
            low, start_s = k - 1, self.starts[k - 1]
        self.starts[low:high] = [start_s]
        self.ends[low:high] = [end_s]


class Timetable:
    """Which task is planned where and when.

    Parameters
    ----------
    system : System

    Attributes
    ----------
    cores : list of list of Core
        Of each host.
    host, core : dict of int to int
        Place of each task that is planned.
    start_s, end_s : dict of int to float
        When it starts and ends [s].
    """

    def __init__(self, system: System) -> None:
        cores = system.platform.cores
        self.cores = [[Core() for _ in range(count)] for count in cores.tolist()]
        shape = len(cores), int(cores.max(initial=1))
        is_core = np.arange(shape[1]) < cores[:, None]
        #: from when on each core is free for good [s]; infinite where there is no core
        self._last_s = np.where(is_core, 0.0, np.inf)
        #: until when each core has gaps before that, and how long the longest is [s]; none: before all times
        self._gaps_until_s = np.full(shape, -np.inf)
        self._longest_s = np.full(shape, -np.inf)
        self.host: dict[int, int] = {}
        self.core: dict[int, int] = {}
        self.start_s: dict[int, float] = {}
        self.end_s: dict[int, float] = {}

    def best_place(self, ready_s: Floats, time_s: Floats, weight_s: Floats | None = None) -> tuple[int, int, float]:
        """Return host, core and start [s] of the least end of a task, or of the least end plus a host's weight.

        Of equals it is the lowest host, and there the earliest start on the lowest core. Only gaps are looked at
        that may hold the task and end it earlier than behind all that is planned.

        Parameters
        ----------
        ready_s, time_s : ndarray of float64, shape (hosts,)
            When the task's data are there, and how long it takes; infinite: not there.
        weight_s : ndarray of float64, shape (hosts,), optional
        """
        least_s = ready_s + time_s
        core = self._last_s.argmin(axis=1)
        behind_s = np.maximum(ready_s, self._last_s[np.arange(len(core)), core])
        key_s = behind_s + time_s
        if weight_s is not None:
            key_s = key_s + weight_s
        host = int(key_s.argmin())
        best_s = float(key_s[host])
        if best_s == np.inf:
            return -1, -1, np.inf
        best = best_s, host, float(behind_s[host]), self._core_behind(host, core.item(host), behind_s.item(host))
        may = (least_s[:, None] <= self._gaps_until_s) & (self._longest_s >= time_s[:, None])
        if weight_s is not None:
            least_s = least_s + weight_s
        may &= least_s[:, None] <= best_s
        hosts, cores = may.nonzero()
        for place in least_s[hosts].argsort(kind="stable").tolist():
            host, k = hosts.item(place), cores.item(place)
            if least_s.item(host) > best[0]:
                break
            start = self.cores[host][k].gap(ready_s.item(host), time_s.item(host))
            key = start + time_s.item(host)
            if weight_s is not None:
                key += weight_s.item(host)
            best = min(best, (key, host, start, k))
        return best[1], best[3], best[2]

    def _core_behind(self, host: int, core: int, start_s: float) -> int:
        """Return the lowest core of a host on which a task can start behind all that is planned there."""
        row = self._last_s[host]
        return core if len(row) == 1 else int((row <= start_s).argmax())

    def place_on(self, host: int, ready_s: float, time_s: float) -> tuple[int, int, float]:
        """Return where a task starts earliest on a host, in gaps or behind all: host, core and start [s]."""
        start, core = min((core.gap(ready_s, time_s), k) for k, core in enumerate(self.cores[host]))
        return host, core, start

    def place_behind(self, host: int, ready_s: float) -> tuple[int, int, float]:
        """Return where a task starts earliest on a host behind all that is planned there: host, core and start [s]."""
        start = max(ready_s, self._last_s[host].min().item())
        return host, self._core_behind(host, 0, start), start

    def free_s(self) -> Floats:
        """Return from when on each host has a core that is free for good [s], shape (hosts,)."""
        least: Floats = self._last_s.min(axis=1)
        return least

    def place(self, task: int, place: tuple[int, int, float], time_s: float) -> None:
        """Plan a task at a place that was found for it."""
        host, core, start = place
        end = start + time_s
        self.cores[host][core].take(start, end)
        self._look_at(host, core)
        self.host[task], self.core[task], self.start_s[task], self.end_s[task] = host, core, start, end

    def remove(self, task: int) -> None:
        """Free the place of a task."""
        host, core = self.host.pop(task), self.core.pop(task)
        self.cores[host][core].give_back(self.start_s.pop(task), self.end_s.pop(task))
        self._look_at(host, core)

    def _look_at(self, host: int, core: int) -> None:
        """Keep what is known of the gaps of a core that has changed."""
        changed = self.cores[host][core]
        self._last_s[host, core] = changed.starts[-1]
        if len(changed.starts) > 1:
            self._gaps_until_s[host, core] = until = changed.ends[-2]
            self._longest_s[host, core] = max(map(sub, changed.ends[:-1], changed.starts)) + _ROUNDING * until
        else:
            self._gaps_until_s[host, core] = self._longest_s[host, core] = -np.inf
