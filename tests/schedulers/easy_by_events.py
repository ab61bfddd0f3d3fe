"""EASY backfilling by the rules of SC 2015, in plain Python; it imports nothing of gridsched.

The rules are those of E. Gaussier, D. Glesser, V. Reis, D. Trystram, "Improving backfilling by using
machine learning to predict running times", SC 2015: a request that is too short kills its job, and
the queue is looked at after every single event, submissions before ends at one time. Arguments give
gridsched's own rules from the same loop: runs are not cut, and the queue is looked at once an instant.
"""

from __future__ import annotations

import gzip
import heapq
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

#: Executions shorter than this count as this long in the bounded slowdown [s].
BOUND_S = 10


class Job(NamedTuple):
    """A job of a log: submission and run time [s], processors, run time that was asked for [s]."""

    submit: float
    run: float
    processors: int
    request: float


def jobs_of_log(path: Path, processors: int, *, requested: bool = True, cut: bool = True) -> list[Job]:
    """Return a log's jobs of positive run time and request, none wider than the machine.

    Processors are those that were asked for (with `requested`; else those that were allocated), and the others
    where these are unknown. With `cut`, a run ends at its request; else a request that was too short counts
    as long as the run.
    """
    lines = (gzip.open if path.suffix == ".gz" else open)(path, "rt").read().splitlines()
    jobs = []
    for line in lines:
        if not line.strip() or line.startswith(";"):
            continue
        fields = [float(text) for text in line.split()]
        submit, run, allocated, asked, request = fields[1], fields[3], int(fields[4]), int(fields[7]), fields[8]
        first, second = (asked, allocated) if requested else (allocated, asked)
        width = first if first > 0 else second
        if run > 0 and request > 0 and 0 < width <= processors:
            run, request = (min(run, request), request) if cut else (run, max(run, request))
            jobs.append(Job(submit, run, width, request))
    return sorted(jobs, key=itemgetter(0))  # stable


def starts_of_easy(
    jobs: list[Job], processors: int, *, shortest_first: bool = False, each_instant: bool = False
) -> list[float]:
    """Return each job's start under EASY; the head is always the first submitted.

    Parameters
    ----------
    jobs : list of Job
        In order of submission.
    processors : int
        The machine's.
    shortest_first : bool
        Behind the head, look at the shortest requests first (EASY-SJBF).
    each_instant : bool
        Look at the queue once, after all events of an instant, instead of after each event.
    """
    start: list[float] = [-1.0] * len(jobs)
    numbers = count()  # ends of one instant come in the order in which their jobs started
    events = [(job.submit, 0, next(numbers), k) for k, job in enumerate(jobs)]  # submissions (0) before ends (1)
    heapq.heapify(events)
    running: set[int] = set()
    waiting: list[int] = []
    while events:
        now, is_end, _, k = heapq.heappop(events)
        if is_end:
            running.discard(k)
        else:
            waiting.append(k)
        if each_instant and events and events[0][0] == now:
            continue
        # One whose request ends now counts as gone, though its end may still be among the events.
        ends = [(end, jobs[r].processors) for r in running if (end := start[r] + jobs[r].request) > now]
        for each in _chosen(now, jobs, waiting, ends, processors, shortest_first):
            start[each] = now
            running.add(each)
            waiting.remove(each)
            heapq.heappush(events, (now + jobs[each].run, 1, next(numbers), each))
    return start


def _chosen(
    now: float,
    jobs: list[Job],
    waiting: list[int],
    ends: list[tuple[float, int]],
    processors: int,
    shortest_first: bool,
) -> list[int]:
    """Return which jobs start now: those at the head that fit, then whatever does not delay the next one."""
    free = processors - sum(width for _, width in ends)
    chosen: list[int] = []
    for k in waiting:
        if jobs[k].processors > free:
            break
        chosen.append(k)
        free -= jobs[k].processors
        ends.append((now + jobs[k].request, jobs[k].processors))
    behind = waiting[len(chosen) + 1 :]
    if not behind or not free:
        return chosen
    head, shadow, extra = jobs[waiting[len(chosen)]].processors, now, free
    for end, width in sorted(ends):
        if extra >= head and end > shadow:
            break
        shadow, extra = end, extra + width
    extra -= head
    for k in sorted(behind, key=lambda k: jobs[k].request) if shortest_first else behind:
        job = jobs[k]
        ends_before = now + job.request <= shadow
        if job.processors <= free and (ends_before or job.processors <= extra):
            chosen.append(k)
            free -= job.processors
            extra -= 0 if ends_before else job.processors
    return chosen


def mean_bounded_slowdown(jobs: list[Job], start: list[float]) -> float:
    """Return the mean over all jobs of response over run time, with short runs lengthened, at least 1."""
    slow = [max(1.0, (s + job.run - job.submit) / max(job.run, BOUND_S)) for s, job in zip(start, jobs, strict=True)]
    return sum(slow) / len(slow)


def flow_times(jobs: list[Job], start: list[float]) -> list[float]:
    """Return the times from submission to end [s]."""
    return [s + job.run - job.submit for s, job in zip(start, jobs, strict=True)]


def mean_wait(jobs: list[Job], start: list[float]) -> float:
    """Return the mean time from submission to start [s]."""
    return sum(s - job.submit for s, job in zip(start, jobs, strict=True)) / len(jobs)
