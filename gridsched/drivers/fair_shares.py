"""How fast parallel tasks go on that share hosts and links, as SimGrid's model of parallel tasks has it.

A parallel task goes on at one rate [1/s] on all that it uses: at rate r it takes r times its flops of each host,
and r times its bytes of each link. SimGrid's default solver for them (``fairbottleneck``) fills hosts and links in
rounds: in each, what is left of a host or link is divided evenly among the tasks that still grow there, whatever
they take of it, and each task grows by the least of what it is offered. A task stops growing where something that
it uses is full. So it is in SimGrid 4.1 that a task which has stopped takes once more, of what is not full, what it
took in its last round; this is kept, since rates would differ otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from math import inf

#: What is left of a host [flop/s] or link [byte/s] below this is nothing (``precision/work-amount``).
PRECISION = 1e-5


def fair_rates(
    uses: Sequence[Mapping[Hashable, float]],
    bounds: Sequence[float],
    capacity: Mapping[Hashable, float],
    unshared: Collection[Hashable] = frozenset(),
) -> list[float]:
    """Return the rate of each task [1/s].

    Parameters
    ----------
    uses : sequence of mapping
        What each task takes of each host [flop] and link [byte] from its begin to its end, each greater than 0.
    bounds : sequence of float
        The rate that each does not exceed [1/s]; inf: any.
    capacity : mapping
        Speed of each host [flop/s] and bandwidth of each link [byte/s].
    unshared : collection
        Links of which each task has all (``FATPIPE``).

    Returns
    -------
    list of float
        Infinite where a task takes nothing.
    """
    rates, step = [0.0 if use else inf for use in uses], [0.0] * len(uses)
    growing = {task for task, use in enumerate(uses) if use}
    users: dict[Hashable, list[int]] = {}
    for task in sorted(growing):
        for each in uses[task]:
            users.setdefault(each, []).append(task)
    left = {each: capacity[each] for each in users}
    while growing:
        offer: dict[Hashable, float] = {}
        for each in list(left):
            n_growing = sum(task in growing for task in users[each])
            if n_growing:
                offer[each] = left[each] / (1 if each in unshared else n_growing)
            else:
                del left[each]
        for task in sorted(growing):
            grows = min(offer[each] / amount for each, amount in uses[task].items())
            step[task] = min(grows, bounds[task] - rates[task])
            rates[task] += step[task]
            if rates[task] == bounds[task]:
                growing.remove(task)
        for each in list(left):
            takes = [uses[task][each] * step[task] for task in users[each]]
            if each in unshared:
                takes = [min(offer[each], *takes)]
            for taken in takes:
                left[each] -= taken
                if left[each] < PRECISION:
                    left[each] = 0.0
            if left[each] <= 0.0:
                del left[each]
                growing.difference_update(users[each])
    return rates
