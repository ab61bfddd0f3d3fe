"""Compiled loops over the nodes of one execution, which takes parts of them."""

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
    """Whether nodes have enough left for the parts of a job.

    Parameters
    ----------
    left : ndarray of int64, shape (hosts, resources)
        What each node has left.
    hosts : ndarray of int64, shape (nodes,)
        Those of the execution, ascending.
    parts : ndarray of int64, shape (nodes,)
        Parts of the job on each of them; `ONE_EACH` is one each.
    demand : ndarray of int64, shape (jobs, resources)
        What a part of each job takes.
    job : int
    """
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

    Parameters
    ----------
    left, hosts, parts, demand, job
        As `have_room` has them.
    free : ndarray of bool, shape (hosts,)
        Changed.
    pool : ndarray of int64, shape (2, any)
        Filled with the nodes and their parts.
    begin : int
        First place in the pool.
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

    A node is free if it has all its cores again: what runs has at least one core of each of its nodes.

    Parameters
    ----------
    left, hosts, parts, demand, job
        As `have_room` has them.
    free : ndarray of bool, shape (hosts,)
        Changed.
    amounts : ndarray of int64, shape (hosts, resources)
        What each node has in all.
    until : ndarray of float64, shape (hosts,)
        Changed: since when nodes are free [s].
    end : float
        End of the execution [s].
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
