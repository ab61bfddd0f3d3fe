"""Compiled loops over the nodes of one execution, which takes parts of them.

Each gets the nodes of the execution, ascending, how many parts of its job each node has, or nothing (one each),
and what a part of each job takes, shape (jobs, resources).
"""

from __future__ import annotations

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.compiled import compiled

#: In the place of parts: each node has one.
ONE_EACH: Integers = np.zeros(0, dtype=np.int64)
ONE_EACH.setflags(write=False)


def _steps(_left: Integers, hosts: Integers, *_: object) -> int:
    """Return about how many steps of Python a loop takes."""
    return 5 * len(hosts)


_kernel = compiled(steps=_steps, error_model="numpy")


@_kernel
def have_room(left: Integers, hosts: Integers, parts: Integers, demand: Integers, job: int) -> bool:
    """Whether nodes have so much left, shape (hosts, resources), that they can give the parts of a job."""
    for k in range(len(hosts)):
        n = parts[k] if len(parts) > 0 else 1
        for r in range(demand.shape[1]):
            if left[hosts[k], r] < n * demand[job, r]:
                return False
    return True


@_kernel
def take_parts(
    left: Integers,
    hosts: Integers,
    parts: Integers,
    demand: Integers,
    job: int,
    free: Booleans,
    pool: Integers,
    begin: int,
) -> int:
    """Take the parts of a job from what nodes have left; return how many of them were free, and no longer are.

    Nodes and parts are noted in a pool, shape (2, any), from a place on.
    """
    n_free = 0
    for k in range(len(hosts)):
        host, n = hosts[k], parts[k] if len(parts) > 0 else 1
        pool[0, begin + k], pool[1, begin + k] = host, n
        for r in range(demand.shape[1]):
            left[host, r] -= n * demand[job, r]
        if free[host]:
            n_free += 1
            free[host] = False
    return n_free


@_kernel
def give_back_parts(
    left: Integers,
    hosts: Integers,
    parts: Integers,
    demand: Integers,
    job: int,
    free: Booleans,
    amounts: Integers,
    until: Floats,
    end: float,
) -> int:
    """Give nodes the parts of a job back; return how many of them are free then.

    These have all their cores again, as in `amounts`: what runs has one of each of its nodes at least. Since when they
    are free [s] is noted in `until`.
    """
    n_free = 0
    for k in range(len(hosts)):
        host, n = hosts[k], parts[k] if len(parts) > 0 else 1
        for r in range(demand.shape[1]):
            left[host, r] += n * demand[job, r]
        if left[host, 0] == amounts[host, 0]:
            n_free += 1
            free[host], until[host] = True, end
    return n_free
