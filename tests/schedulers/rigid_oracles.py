"""Plain simulations of FCFS, EASY and conservative backfilling; they import nothing of gridsched.

Jobs are (submission, run time, processors, estimate), in order of the queue. Each function returns
the start of every job. The machine is a number of free processors; nothing is fast, everything is
as algorithms I words it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

Job = tuple[float, float, int, float]


def simulate(jobs: list[Job], processors: int, choose: Callable) -> list[float]:
    """Step from instant to instant; `choose` returns which of the waiting jobs start."""
    start: dict[int, float] = {}
    running: list[int] = []
    waiting: list[int] = []
    to_come = list(range(len(jobs)))
    while to_come or waiting or running:
        times = [start[j] + jobs[j][1] for j in running] + [jobs[j][0] for j in to_come[:1]]
        now = min(times)
        running = [j for j in running if start[j] + jobs[j][1] != now]
        while to_come and jobs[to_come[0]][0] == now:
            waiting.append(to_come.pop(0))
        ends = [(start[j] + jobs[j][3], jobs[j][2]) for j in running]
        free = processors - sum(width for _, width in ends)
        for j in choose(now, [(j, *jobs[j][2:]) for j in waiting], free, ends):
            start[j] = now
            running.append(j)
            waiting.remove(j)
        assert sum(jobs[j][2] for j in running) <= processors
    return [start[j] for j in range(len(jobs))]


def fcfs(now, queue, free, ends) -> list[int]:
    """Start the head while it fits."""
    chosen = []
    for job, width, _ in queue:
        if width > free:
            break
        chosen.append(job)
        free -= width
    return chosen


def easy(now, queue, free, ends) -> list[int]:
    """Start the head while it fits; then whatever does not delay the head."""
    ends, chosen = list(ends), fcfs(now, queue, free, ends)
    for _, width, estimate in queue[: len(chosen)]:
        free -= width
        ends.append((now + estimate, width))
    rest = queue[len(chosen) :]
    if not rest:
        return chosen
    head = rest[0][1]
    shadow = next(
        time
        for time in sorted({end for end, _ in ends})
        if free + sum(width for end, width in ends if end <= time) >= head
    )
    extra = free + sum(width for end, width in ends if end <= shadow) - head
    for job, width, estimate in rest[1:]:
        if width > free:
            continue
        if now + estimate <= shadow:
            pass
        elif width <= extra:
            extra -= width
        else:
            continue
        chosen.append(job)
        free -= width
    return chosen


def conservative(now, queue, free, ends) -> list[int]:
    """Reserve the earliest start for each job in turn; start those whose turn is now.

    The usage of the machine is a list of (begin, end, processors); a job may begin now or when
    something ends, if at no instant of its stay too much is used.
    """
    total = free + sum(width for _, width in ends)
    stays = [(now, end, width) for end, width in ends]
    chosen = []
    for job, width, estimate in queue:
        for begin in sorted({now, *(end for _, end, _ in stays)}):
            until = begin + estimate
            instants = {begin, *(b for b, _, _ in stays if begin < b < until)}
            if all(sum(w for b, e, w in stays if b <= instant < e) + width <= total for instant in instants):
                break
        stays.append((begin, until, width))
        if begin == now:
            chosen.append(job)
    return chosen


def conservative_by_steps(now, queue, free, ends) -> list[int]:
    """As `conservative`, quick enough for whole logs.

    The machine is a list of steps: the time of each, and the processors that are free from then
    on. Every stay that is left ends at a time of its own step, so that all are free at last.
    """
    if all(width > free for _, width, _ in queue):
        return []  # a reservation for now needs processors that are free now
    times, left = [now], [free]
    for end, width in sorted(ends):
        if end > times[-1]:
            times.append(end)
            left.append(left[-1])
        left[-1] += width
    chosen = []
    for job, width, estimate in queue:
        first = step = 0
        while step < len(times) and times[step] < times[first] + estimate:
            if left[step] < width:
                first = step + 1
            step += 1
        begin = times[first]
        last = bisect_left(times, begin + estimate)
        if last == len(times) or times[last] > begin + estimate:
            times.insert(last, begin + estimate)
            left.insert(last, left[last - 1])
        for step in range(first, last):
            left[step] -= width
        if begin == now:
            chosen.append(job)
    return chosen


class ReservedOnce:
    """Conservative backfilling with memory: a reservation is made at arrival and kept.

    Only where a job ends before its estimate are all reservations made again, in order of the
    queue. The same reading as `conservative`, by another way.
    """

    def __init__(self) -> None:
        self.reserved: dict[int, float] = {}
        self.expected: set[float] = set()

    def __call__(self, now, queue, free, ends) -> list[int]:
        """Start the jobs whose reservation has come."""
        total = free + sum(width for _, width in ends)
        present = sorted(ends)
        ended_early = any(end > now for end in self._gone(present))
        stays = [(now, end, width) for end, width in ends]
        if ended_early:
            self.reserved.clear()
        kept = [(j, w, e) for j, w, e in queue if j in self.reserved]
        stays += [(self.reserved[j], self.reserved[j] + e, w) for j, w, e in kept]
        for job, width, estimate in queue:
            if job in self.reserved:
                continue
            for begin in sorted({now, *(end for _, end, _ in stays)}):
                until = begin + estimate
                instants = {begin, *(b for b, _, _ in stays if begin < b < until)}
                if all(sum(w for b, e, w in stays if b <= i < e) + width <= total for i in instants):
                    break
            self.reserved[job] = begin
            stays.append((begin, until, width))
        chosen = [job for job, _, _ in queue if self.reserved[job] == now]
        self.before = present + [(now + e, w) for j, w, e in queue if j in chosen]
        return chosen

    def _gone(self, present: list) -> list[float]:
        """Estimated ends of what has ended since the last instant."""
        before = sorted(getattr(self, "before", []))
        for each in present:
            before.remove(each)
        return [end for end, _ in before]
