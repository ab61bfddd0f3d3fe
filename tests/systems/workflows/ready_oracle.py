"""The documented rules of dynamic lists in plain Python: when each task starts, and on which host.

Nothing of gridsched is imported. No two transfers share a link: each takes latency + bytes / bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

INF = float("inf")


@dataclass
class Grid:
    """Hosts and routes between them.

    Attributes
    ----------
    cores : list of int
    latency_s, bandwidth : list of list of float
        From each host to each.
    """

    cores: Sequence[int]
    latency_s: Sequence[Sequence[float]]
    bandwidth: Sequence[Sequence[float]]

    def transfer_s(self, size: float, source: int, target: int) -> float:
        """Return how long data take [s]."""
        if source == target:
            return 0.0
        return self.latency_s[source][target] + size / self.bandwidth[source][target]


@dataclass
class Job:
    """A task: its time on each host [s], and (maker, which of its data, bytes) of what it reads."""

    time_s: Sequence[float]
    reads: Sequence[tuple[int, int, float]] = ()
    host: int = -1
    start_s: float = INF
    end_s: float = INF


@dataclass
class Lists:
    """A run of tasks by one of the rules.

    Attributes
    ----------
    running : list of list of int
        On each host, with what waits there for data on a core of its own.
    queue : list of list of int
    there_s : dict
        When the data of (maker, which, host) are or will be there [s].
    """

    grid: Grid
    jobs: Sequence[Job]
    rule: str
    now: float = 0.0
    running: list[list[int]] = field(default_factory=list)
    queue: list[list[int]] = field(default_factory=list)
    there_s: dict[tuple[int, int, int], float] = field(default_factory=dict)

    def run(self) -> list[tuple[int, float]]:
        """Return (host, start [s]) of each task."""
        self.running = [[] for _ in self.grid.cores]
        self.queue = [[] for _ in self.grid.cores]
        placed: set[int] = set()
        done: set[int] = set()
        while True:
            ready = [
                k
                for k, job in enumerate(self.jobs)
                if k not in placed and all(maker in done for maker, _, _ in job.reads)
            ]
            placed.update(ready)
            self._place(ready)
            ends = [self.jobs[k].end_s for here in self.running for k in here]
            if not ends:
                return [(job.host, job.start_s) for job in self.jobs]
            self.now = min(ends)
            for host, here in enumerate(self.running):
                for k in [each for each in here if self.jobs[each].end_s == self.now]:
                    done.add(k)
                    here.remove(k)
                while self.queue[host] and len(here) < self.grid.cores[host]:
                    self._start(self.queue[host].pop(0), host)

    def _start(self, k: int, host: int) -> None:
        """Give a task a core, on which it waits for its data."""
        job = self.jobs[k]
        job.start_s = max(self.now, self._data_s(k, host))
        job.end_s = job.start_s + job.time_s[host]
        self.running[host].append(k)

    def _send(self, k: int, host: int) -> None:
        """Have the data of a task sent to its host, where they are not yet."""
        for maker, which, size in self.jobs[k].reads:
            source = self.jobs[maker].host
            if size and source != host:
                self.there_s.setdefault((maker, which, host), self.now + self.grid.transfer_s(size, source, host))

    def _data_s(self, k: int, host: int) -> float:
        """Return when the data of a task could be at a host [s]."""
        times = [self.now]
        for maker, which, size in self.jobs[k].reads:
            source = self.jobs[maker].host
            if size and source != host:
                sent_s = self.now + self.grid.transfer_s(size, source, host)
                times.append(self.there_s.get((maker, which, host), sent_s))
        return max(times)

    def _free_s(self, host: int) -> list[float]:
        """Return when each core of a host has done all that is queued there [s], ascending."""
        here = self.running[host]
        free = sorted([self.jobs[k].end_s for k in here] + [self.now] * (self.grid.cores[host] - len(here)))
        for k in self.queue[host]:
            free[0] = max(free[0], self._data_s(k, host)) + self.jobs[k].time_s[host]
            free.sort()
        return free

    def _place(self, ready: list[int]) -> None:
        """Queue all that is ready, by the rule; only then does anything start."""
        hosts = range(len(self.grid.cores))
        free = [self._free_s(host) for host in hosts]
        data = {k: [self._data_s(k, host) for host in hosts] for k in ready}
        left, order = list(ready), []
        while left:
            ends = {k: [max(free[h][0], data[k][h]) + self.jobs[k].time_s[h] for h in hosts] for k in left}
            k = _CHOICES[self.rule](left, ends)
            keys = {"met": self.jobs[k].time_s, "olb": [each[0] for each in free]}.get(self.rule, ends[k])
            host = min(hosts, key=lambda h: keys[h])
            order.append((k, host))
            left.remove(k)
            free[host] = sorted([ends[k][host], *free[host][1:]])
        for k, host in order:
            self.jobs[k].host = host
            self._send(k, host)
            if not self.queue[host] and len(self.running[host]) < self.grid.cores[host]:
                self._start(k, host)
            else:
                self.queue[host].append(k)


def _by_loss(left: Sequence[int], ends: Mapping[int, Sequence[float]]) -> int:
    losses = {k: sorted(ends[k])[1] - min(ends[k]) for k in left}
    return max(left, key=lambda k: losses[k])


#: Which of the tasks that are left is queued next; of equal ones the first.
_CHOICES: dict[str, Callable[[Sequence[int], Mapping[int, Sequence[float]]], int]] = {
    "mct": lambda left, ends: min(left),
    "met": lambda left, ends: min(left),
    "olb": lambda left, ends: min(left),
    "min_min": lambda left, ends: min(left, key=lambda k: min(ends[k])),
    "max_min": lambda left, ends: max(left, key=lambda k: min(ends[k])),
    "sufferage": _by_loss,
}
