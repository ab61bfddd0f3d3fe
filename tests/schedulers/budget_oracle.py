"""What energy counts in a budget, in plain words: for the oracles of serial and parallel tasks.

An event has `now`, `day_end`, and by the prices `weights` of (begin, weight) that come again after
`cycle`; with one of them, or none, a joule counts 1.
"""

from __future__ import annotations

import math
from typing import Any


def inside_j(event: Any, start: float, time: float, energy: float) -> float:
    """What the energy before the day's end counts."""
    if start >= event.day_end:
        return 0.0
    until = min(start + time, event.day_end)
    if until < start + time:
        energy *= (event.day_end - start) / time
    return energy * mean_weight(event, start, until)


def mean_weight(event: Any, start: float, end: float) -> float:
    """Mean of what a joule counts between two times."""
    if len(event.weights) < 2 or not end > start:
        return 1.0
    return (counted(event, end) - counted(event, start)) / (end - start)


def counted(event: Any, time: float) -> float:
    """What 1 W counts from 0 on, through the weights (begin, weight), again and again."""
    of_cycle, begin = [0.0], 0.0
    ends = [*(begin for begin, _ in event.weights[1:]), event.cycle]
    for (begin, weight), end in zip(event.weights, ends, strict=True):
        of_cycle.append(of_cycle[-1] + weight * (end - begin))
    cycles = math.floor(time / event.cycle)
    within = time - cycles * event.cycle
    line = max(k for k, (begin, _) in enumerate(event.weights) if begin <= within)
    begin, weight = event.weights[line]
    return cycles * of_cycle[-1] + (of_cycle[line] + weight * (within - begin))


def cost(event: Any, time: float, energy: float) -> float:
    """What a whole option counts if it runs from now on."""
    return energy * mean_weight(event, event.now, event.now + time)
