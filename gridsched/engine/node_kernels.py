"""Compiled steps over the nodes of one parallel job: numpy takes longer to begin than to do them.

All in one file: numba's cache would not notice a change of a called function in another file.
"""

from __future__ import annotations

from pathlib import Path

from gridsched.compiled import compiled

_HERE = Path(__file__)

kernel = compiled(sources=(_HERE, _HERE.parents[1] / "compiled.py"), error_model="numpy")


@kernel
def ascend(hosts):
    """Whether ids of hosts ascend strictly, so that none stands there twice."""
    for k in range(1, len(hosts)):  # noqa: SIM110 - what numba compiles to a plain loop
        if hosts[k] <= hosts[k - 1]:
            return False
    return True


@kernel
def all_are(hosts, values, value):
    """Whether each of some hosts, which exist, has the value."""
    for host in hosts:  # noqa: SIM110
        if values[host] != value:
            return False
    return True


@kernel
def set_nodes(hosts, free, is_free, until, time):
    """Note of some nodes whether they are free, and until when something runs there.

    Parameters
    ----------
    hosts : ndarray of int64
    free : ndarray of bool, shape (hosts of the platform,)
    is_free : bool
    until : ndarray of float64, shape (hosts of the platform,)
    time : float
        [s].
    """
    for host in hosts:
        free[host] = is_free
        until[host] = time


@kernel
def list_mappable(states, first, end, waiting, planned, tasks):
    """List the ids of the tasks in [first, end) that wait or are planned; return how many.

    To make an array here, and hand it out, would cost more than to fill it.

    Parameters
    ----------
    states : ndarray of uint8, shape (tasks,)
    first, end : int
    waiting, planned : int
        The states to look for.
    tasks : ndarray of int64, shape (end - first,)
        The list.
    """
    n = 0
    for task in range(first, end):
        if states[task] == waiting or states[task] == planned:
            tasks[n] = task
            n += 1
    return n
