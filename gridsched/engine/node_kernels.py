"""Compiled steps over the nodes of one parallel job: numpy takes longer to begin than to do them.

All in one file: numba's cache would not notice a change of a called function in another file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gridsched.compiled import compiled, forget_stale_kernels

_HERE = Path(__file__)

forget_stale_kernels(_HERE.parent / "__pycache__", [_HERE, _HERE.parents[1] / "compiled.py"])

kernel = compiled(error_model="numpy")


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
def mappable(states, first, end, waiting, planned):
    """Ids of the tasks in [first, end) that wait or are planned, ascending."""
    n = 0
    for task in range(first, end):
        n += states[task] == waiting or states[task] == planned
    tasks = np.empty(n, dtype=np.int64)
    n = 0
    for task in range(first, end):
        if states[task] == waiting or states[task] == planned:
            tasks[n] = task
            n += 1
    return tasks
