"""What is planned on each core of each host, and where a further task would fit."""

from __future__ import annotations

import math
from bisect import bisect_right
from operator import sub

import numpy as np

from gridsched.arrays import Floats
from gridsched.model.system import System

#: Host, core and start [s] of a task; several cores if it takes several.
Place = tuple[int, int | tuple[int, ...], float]
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
    host : dict of int to int
        Of each task that is planned.
    core : dict of int to int or tuple of int
        Its core, or its cores, ascending.
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
        self.core: dict[int, int | tuple[int, ...]] = {}
        self.start_s: dict[int, float] = {}
        self.end_s: dict[int, float] = {}

    def best_place(self, ready_s: Floats, time_s: Floats, weight_s: Floats | None = None, cores: int = 1) -> Place:
        """Return host, core and start [s] of the least end of a task, or of the least end plus a host's weight.

        Of equals it is the lowest host, and there the earliest start on the lowest core. Only gaps are looked at
        that may hold the task and end it earlier than behind all that is planned.

        Parameters
        ----------
        ready_s, time_s : ndarray of float64, shape (hosts,)
            When the task's data are there, and how long it takes; infinite: not there.
        weight_s : ndarray of float64, shape (hosts,), optional
        cores : int
            How many the task takes at once on its host.
        """
        if cores > 1:
            return self._best_of_hosts(ready_s, time_s, weight_s, cores)
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
        hosts, places = may.nonzero()
        for place in least_s[hosts].argsort(kind="stable").tolist():
            host, k = hosts.item(place), places.item(place)
            if least_s.item(host) > best[0]:
                break
            start = self.cores[host][k].gap(ready_s.item(host), time_s.item(host))
            key = start + time_s.item(host)
            if weight_s is not None:
                key += weight_s.item(host)
            best = min(best, (key, host, start, k))
        return best[1], best[3], best[2]

    def _best_of_hosts(self, ready_s: Floats, time_s: Floats, weight_s: Floats | None, cores: int) -> Place:
        """Return the best place of a task of several cores, host by host."""
        best: tuple[tuple[float, int], Place] = (np.inf, -1), (-1, -1, np.inf)
        for host in np.flatnonzero(np.isfinite(ready_s + time_s)).tolist():
            place = self.place_on(host, ready_s.item(host), time_s.item(host), cores)
            key = place[2] + time_s.item(host) + (0.0 if weight_s is None else weight_s.item(host))
            if key < np.inf:
                best = min(best, ((key, host), place), key=lambda each: each[0])
        return best[1]

    def _core_behind(self, host: int, core: int, start_s: float) -> int:
        """Return the lowest core of a host on which a task can start behind all that is planned there."""
        row = self._last_s[host]
        return core if len(row) == 1 else int((row <= start_s).argmax())

    def place_on(self, host: int, ready_s: float, time_s: float, cores: int = 1) -> Place:
        """Return where a task starts earliest on a host, in gaps or behind all; without room it starts never."""
        if cores == 1:
            start, core = min((core.gap(ready_s, time_s), k) for k, core in enumerate(self.cores[host]))
            return host, core, start
        # several cores are free together from when the data are there, or from the begin of a gap on
        begins = {start for core in self.cores[host] for start in core.starts if start > ready_s}
        for start in [ready_s, *sorted(begins)]:
            free = [k for k, core in enumerate(self.cores[host]) if core.gap(start, time_s) == start]
            if len(free) >= cores:
                return host, tuple(free[:cores]), start
        return host, -1, math.inf

    def place_behind(self, host: int, ready_s: float, cores: int = 1) -> Place:
        """Return where a task starts earliest on a host behind all that is planned there: host, core and start [s]."""
        if cores > 1:
            start = max(ready_s, self.free_s(cores).item(host))
            return host, tuple(np.flatnonzero(self._last_s[host] <= start)[:cores].tolist()), start
        start = max(ready_s, self._last_s[host].min().item())
        return host, self._core_behind(host, 0, start), start

    def free_s(self, cores: int = 1) -> Floats:
        """Return from when on each host has so many cores that are free for good [s], shape (hosts,)."""
        if cores > self._last_s.shape[1]:
            return np.full(len(self._last_s), np.inf)
        least: Floats = np.partition(self._last_s, cores - 1, axis=1)[:, cores - 1]
        return least

    def place(self, task: int, place: Place, time_s: float) -> None:
        """Plan a task at a place that was found for it."""
        host, core, start = place
        end = start + time_s
        for each in each_core(core):
            self.cores[host][each].take(start, end)
            self._look_at(host, each)
        self.host[task], self.core[task], self.start_s[task], self.end_s[task] = host, core, start, end

    def remove(self, task: int) -> None:
        """Free the place of a task."""
        host, start, end = self.host.pop(task), self.start_s.pop(task), self.end_s.pop(task)
        for core in each_core(self.core.pop(task)):
            self.cores[host][core].give_back(start, end)
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


def each_core(core: int | tuple[int, ...]) -> tuple[int, ...]:
    """Return the cores of a place."""
    return (core,) if isinstance(core, int) else core
