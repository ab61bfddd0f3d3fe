"""The earliest-ready host of each type, kept up to date while tasks are appended. Times [s].

One heap for each type, by ready time, then id. See `two_stage_options` on numba's cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.schedulers.kernels.compiled import inner, kernel

if TYPE_CHECKING:
    from gridsched.schedulers.kernels.two_stage_options import TypeTables

_INF = np.inf


@inner
def sift_host(heap: Integers, ready: Floats, base: int, size: int, k: int) -> None:
    """Let position `k` of a type's heap sink: earlier ready times stand above, then lower ids."""
    host = heap[base + k]
    time = ready[host]
    while True:
        child = 2 * k + 1
        if child >= size:
            break
        lower = heap[base + child]
        if child + 1 < size:
            other = heap[base + child + 1]
            if ready[other] < ready[lower] or (ready[other] == ready[lower] and other < lower):
                child, lower = child + 1, other
        if time < ready[lower] or (time == ready[lower] and host < lower):
            break
        heap[base + k] = lower
        k = child
    heap[base + k] = host


@kernel
def gather_hosts(
    tables: TypeTables, ready_time: Floats, day_end: float
) -> tuple[Floats, Integers, Integers, Floats, Integers]:
    """Make one heap for each type of the hosts that can start something before `day_end` [s].

    Returns
    -------
    ready : ndarray, shape (hosts,)
        A copy of `ready_time` that `occupy_first` changes.
    heap : ndarray of int64, shape (hosts,)
        Type j's heap begins at ``tables.host_start[j]``.
    size, first_ready, first_host : ndarray, shape (host types,)
        Of each type: hosts in the heap, and the earliest-ready one (infinite and -1 if none).
    """
    host_start, hosts = tables.host_start, tables.hosts
    n_types = len(host_start) - 1
    ready, heap = ready_time.copy(), np.empty(len(ready_time), np.int64)
    size, first_host = np.empty(n_types, np.int64), np.full(n_types, -1, np.int64)
    first_ready = np.full(n_types, _INF)
    for j in range(n_types):
        base, count = host_start[j], 0
        for n in range(base, host_start[j + 1]):
            if ready[hosts[n]] < day_end:
                heap[base + count] = hosts[n]
                count += 1
        for k in range(count // 2 - 1, -1, -1):
            sift_host(heap, ready, base, count, k)
        size[j] = count
        if count:
            first_host[j], first_ready[j] = heap[base], ready[heap[base]]
    return ready, heap, size, first_ready, first_host


@inner
def occupy_first(
    host_start: Integers,
    ready: Floats,
    heap: Integers,
    size: Integers,
    first_ready: Floats,
    first_host: Integers,
    j: int,
    run_time: float,
    day_end: float,
) -> None:
    """Append a task of `run_time` [s] to the earliest-ready host of type `j`."""
    base = host_start[j]
    host = heap[base]
    ready[host] += run_time
    if ready[host] >= day_end:
        size[j] -= 1
        heap[base] = heap[base + size[j]]
    if size[j]:
        sift_host(heap, ready, base, size[j], 0)
        first_host[j] = heap[base]
        first_ready[j] = ready[heap[base]]
    else:
        first_host[j] = -1
        first_ready[j] = _INF
