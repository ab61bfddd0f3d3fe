"""The batch heuristics once more as plain loops over lists: what the kernels must equal."""

from __future__ import annotations

from dataclasses import dataclass, field

INF = float("inf")


@dataclass
class Instance:
    """One mapping event; `run_time[task][host]`, `ready[host]` one time for each core."""

    tasks: list[int]
    run_time: dict[int, list[float]]
    ready: list[list[float]]
    cluster_of: list[int]
    now: float = 0.0
    needs: dict[int, list[int]] = field(default_factory=dict)
    size: list[float] = field(default_factory=list)
    available: list[list[float]] = field(default_factory=list)
    uplink_free: list[float] = field(default_factory=list)
    latency: list[float] = field(default_factory=list)
    bandwidth: list[float] = field(default_factory=list)

    def data_ready(self, task: int, cluster: int) -> tuple[float, list[int]]:
        """When the task's files are in the cluster, and which must be brought there."""
        ready, missing = self.now, []
        for file in self.needs.get(task, ()):
            if self.available[file][cluster] == INF:
                missing.append(file)
            else:
                ready = max(ready, self.available[file][cluster])
        if missing:
            total = 0.0
            for file in missing:
                total += self.size[file]
            begin = max(self.now, self.uplink_free[cluster])
            ready = max(ready, begin + self.latency[cluster] + total / self.bandwidth[cluster])
        return ready, missing

    def completion(self, task: int, host: int) -> float:
        """Completion time of the task on the host's earliest core."""
        data, _ = self.data_ready(task, self.cluster_of[host])
        return max(self.ready[host][0], data) + self.run_time[task][host]

    def evaluate(self, task: int, by_cluster: bool) -> tuple[float, float, int]:
        """Best completion time, sufferage, and host of a task."""
        hosts = range(len(self.ready))
        unit_of = self.cluster_of if by_cluster else list(hosts)
        of_unit: dict[int, tuple[float, int]] = {}
        for host in hosts:
            option = (self.completion(task, host), host)
            of_unit[unit_of[host]] = min(option, of_unit.get(unit_of[host], (INF, host)))
        ranked = sorted((time, unit, host) for unit, (time, host) in of_unit.items())
        usable = {unit_of[host] for host in hosts if self.ready[host][0] < INF}
        best, _, host = ranked[0]
        if best == INF:
            return INF, -INF, -1
        second = ranked[1][0] if len(ranked) > 1 else INF
        return best, best if len(usable) == 1 else second - best, host

    def place(self, task: int, host: int) -> None:
        """Occupy the host's earliest core and book the transfers."""
        end = self.completion(task, host)
        cluster = self.cluster_of[host]
        data, missing = self.data_ready(task, cluster)
        for file in missing:
            self.available[file][cluster] = data
        if missing:
            self.uplink_free[cluster] = data
        self.ready[host] = sorted([*self.ready[host][1:], end])


def greedily(case: Instance, rule: str, by_cluster: bool = False) -> list[tuple[int, int]]:
    """Sufferage (greedy), XSufferage, Min-Min or Max-Min."""
    left, plan = list(case.tasks), []
    while left:
        options = []
        for task in left:
            best, sufferage, host = case.evaluate(task, by_cluster)
            score = {"sufferage": sufferage, "min_min": -best, "max_min": best}[rule]
            if best < INF:
                options.append((-score, task, host))
        if not options:
            break
        _, task, host = min(options)
        case.place(task, host)
        left.remove(task)
        plan.append((task, host))
    return plan


def in_passes(case: Instance, by_cluster: bool = False) -> list[tuple[int, int]]:
    """Maheswaran's Sufferage."""
    left, plan = list(case.tasks), []
    while left:
        claims: dict[int, tuple[float, int]] = {}
        for task in left:
            best, sufferage, host = case.evaluate(task, by_cluster)
            if best < INF and (host not in claims or sufferage > claims[host][0]):
                claims[host] = (sufferage, task)
        if not claims:
            break
        for task, host in sorted((task, host) for host, (_, task) in claims.items()):
            case.place(task, host)
            left.remove(task)
            plan.append((task, host))
    return plan


def largest_first(case: Instance, flops: list[float], load: list[float]) -> list[tuple[int, int]]:
    """Dynamic FPLTF with background load."""

    def stretched(time: float, x: float) -> float:
        if x >= 1:
            return INF
        return case.now + (time - case.now) / (1 - x) if x else time

    available = [[stretched(time, x) for time in row] for row, x in zip(case.ready, load, strict=True)]
    plan = []
    for task in sorted(case.tasks, key=lambda task: (-flops[task], task)):
        options = [
            (available[host][0] + case.run_time[task][host] / (1 - load[host]), host)
            for host in range(len(load))
            if load[host] < 1
        ]
        end, host = min(options, default=(INF, -1))
        if end < INF:
            available[host] = sorted([*available[host][1:], end])
            plan.append((task, host))
    return plan
