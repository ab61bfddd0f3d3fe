"""The best schedules of few tasks that wait for each other, by trying all: an oracle, which knows no gridsched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Way(NamedTuple):
    """One thing that a task may do: on a host, at a speed [flop/s], for so much above its idle power [W]."""

    host: int
    speed: float
    extra_w: float


def best(
    work: Sequence[float],
    edges: Sequence[tuple[int, int]],
    ways: Sequence[Way],
    *,
    idle_w: float = 0.0,
    most_s: float = math.inf,
    submit_s: Sequence[float] | None = None,
    data_s: float = 0.0,
) -> tuple[float, float]:
    """Return the least makespan and the least energy of schedules of at most `most_s`.

    Parameters
    ----------
    work : sequence of float
        Of each task.
    edges : sequence of (int, int)
        (task, the one that it waits for).
    ways : sequence of Way
        Hosts run one task at a time.
    idle_w : float
        Of all hosts together, from 0 to the last end.
    most_s : float
    submit_s : sequence of float, optional
    data_s : float
        What each edge takes between two hosts.

    Notes
    -----
    Tasks are taken in every order in which each comes behind those that it waits for, each in every way, as early
    as its host, which takes it behind what it has, its submission and its data allow. Some best schedule is among
    them: of any other no task ends earlier than in the one with its order of starts and its ways.
    """
    n = len(work)
    before = [[on for task, on in edges if task == k] for k in range(n)]
    submit = [0.0] * n if submit_s is None else list(submit_s)
    least = [math.inf, math.inf]

    def place(end: dict[int, tuple[float, int]], free: dict[int, float], extra_j: float, last: float, start: float):
        if last > most_s * (1 + 1e-12) or (last >= least[0] and extra_j + idle_w * last >= least[1]):
            return
        if len(end) == n:
            least[0] = min(least[0], last)
            least[1] = min(least[1], extra_j + idle_w * last)
            return
        for task in range(n):
            if task in end or any(on not in end for on in before[task]):
                continue
            for way in ways:
                begin = max(free.get(way.host, 0.0), submit[task])
                for on in before[task]:
                    begin = max(begin, end[on][0] + (data_s if end[on][1] != way.host else 0.0))
                if begin < start:
                    continue  # the same schedule is met in order of its starts
                takes = work[task] / way.speed
                place(
                    {**end, task: (begin + takes, way.host)},
                    {**free, way.host: begin + takes},
                    extra_j + takes * way.extra_w,
                    max(last, begin + takes),
                    begin,
                )

    place({}, {}, 0.0, 0.0, 0.0)
    return least[0], least[1]
