"""Compiled loops of the batch heuristics: Sufferage, XSufferage, Min-Min, Max-Min, FPLTF.

Every kernel makes exactly the choices of the plain loop in its policy's docstring: the same
operations in the same order, no fast-math. Completion time of task i on host j in cluster c:
``max(ready_j, data_ic) + p_ij`` (`data_ic`: when its input files are there; without files, now).

All in one file: numba's cache would not notice a change of a called function in another file.
"""

from __future__ import annotations

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.compiled import compiled
from gridsched.schedulers.kernels import called_once
from gridsched.schedulers.kernels.tables import FileTable, HostTable, host_table, no_files

INF = np.inf
#: What the chosen task has most of: sufferage, or the smallest or largest best completion time.
SUFFERAGE, MIN_MIN, MAX_MIN = 0, 1, 2


@compiled()
def occupy(core_ready: Floats, host: int, end: float) -> None:
    """Let the host's earliest core work until `end` [s]; the row stays sorted."""
    last = core_ready.shape[1] - 1
    k = 0
    while k < last and core_ready[host, k + 1] < end:
        core_ready[host, k] = core_ready[host, k + 1]
        k += 1
    core_ready[host, k] = end


@compiled()
def earliest_two(core_ready: Floats, table: HostTable, column: int) -> tuple[float, float]:
    """Smallest and second smallest ready time [s] over the hosts of a column."""
    first = second = INF
    for k in range(table.column_start[column], table.column_start[column + 1]):
        ready = core_ready[table.column_hosts[k], 0]
        if ready < first:
            first, second = ready, first
        elif ready < second:
            second = ready
    return first, second


@compiled()
def data_ready(files: FileTable, task: int, cluster: int, now: float) -> tuple[float, bool]:
    """When the task's files are in the cluster [s], and whether any must be transferred."""
    ready, missing_bytes, missing = now, 0.0, False
    for k in range(files.needs_start[task], files.needs_start[task + 1]):
        file = files.needs[k]
        time = files.available[file, cluster]
        if time == INF:
            missing_bytes += files.size_bytes[file]
            missing = True
        elif time > ready:
            ready = time
    if missing:
        duration = missing_bytes / files.bandwidth[cluster]
        begin = max(now, files.uplink_free[cluster])
        ready = max(ready, begin + files.latency_s[cluster] + duration)
    return ready, missing


@compiled()
def commit(task: int, host: int, p: float, core_ready: Floats, table: HostTable, files: FileTable, now: float) -> bool:
    """Give the host's earliest core the task; return whether files must be transferred for it."""
    ready, missing = now, False
    if len(files.size_bytes):
        cluster = table.data_row[table.column_of[host]]
        ready, missing = data_ready(files, task, cluster, now)
        if missing:
            files.uplink_free[cluster] = ready
            for k in range(files.needs_start[task], files.needs_start[task + 1]):
                file = files.needs[k]
                if files.available[file, cluster] == INF:
                    files.available[file, cluster] = ready
    occupy(core_ready, host, max(core_ready[host, 0], ready) + p)
    return missing


@compiled()
def update_data(data: Floats, files: FileTable, ids: Integers, n: int, cluster: int, now: float) -> None:
    """Write when the files of the first `n` tasks of `ids` are in the cluster [s]."""
    for i in range(n):
        data[cluster, i] = data_ready(files, ids[i], cluster, now)[0]


@compiled()
def initial_data(files: FileTable, ids: Integers, now: float) -> Floats:
    """When each task's files are in each cluster [s]; one row of `now` where no task has any."""
    n_clusters = len(files.uplink_free)
    data = np.full((max(1, n_clusters), len(ids)), now)
    for cluster in range(n_clusters):
        update_data(data, files, ids, len(ids), cluster, now)
    return data


@compiled()
def columns_by_speed(run_time: Floats, files: FileTable) -> Integers:
    """Columns, fastest first, if one order holds for all tasks (a consistent matrix), else none.

    With input files a column's completion times do not follow its ready time alone: none.
    """
    none = np.empty(0, np.int64)
    if len(files.size_bytes) or run_time.shape[1] == 0:
        return none
    order = np.argsort(run_time[:, 0].copy())
    for k in range(len(order) - 1):
        faster, slower = run_time[order[k]], run_time[order[k + 1]]
        for i in range(run_time.shape[1]):
            if faster[i] > slower[i]:
                return none
    return order


@compiled()
def _without_dominated(order: Integers, table: HostTable, first: Floats, second: Floats, by_cluster: bool) -> Floats:
    """Copy of `first` with infinity for columns that cannot change a task's two best values.

    Rounding keeps order: a host that is neither faster nor ready earlier than two others (in two
    other clusters, or one in its own) completes no task before them. `order` empty: plain copy.
    """
    ready_times = first.copy()
    # the two smallest ready times among faster columns; by cluster, of two different clusters
    least = next_least = INF
    least_unit = -1
    own = np.full(len(table.unit_start) - 1, INF)
    for k in order:
        ready, unit = first[k], table.unit_of[k]
        if ready >= next_least or (by_cluster and ready >= own[unit]):
            ready_times[k] = INF
            continue
        own[unit] = ready
        if by_cluster and unit == least_unit:
            least = min(least, ready)
        elif ready < least:
            next_least, least, least_unit = least, ready, unit
        else:
            next_least = ready
        if not by_cluster:
            next_least = min(next_least, second[k])
    return ready_times


@compiled()
def _two_best_hosts(
    run_time: Floats,
    data: Floats,
    table: HostTable,
    first: Floats,
    second: Floats,
    n: int,
    best: Floats,
    runner_up: Floats,
) -> None:
    """Smallest and second smallest completion time over hosts, of the first `n` tasks [s]."""
    for column in range(len(first)):
        ready, next_ready = first[column], second[column]
        if ready == INF:
            continue
        p, there = run_time[column], data[table.data_row[column]]
        for i in range(n):
            d, b, s = there[i], best[i], runner_up[i]
            x = (ready if ready > d else d) + p[i]
            y = (next_ready if next_ready > d else d) + p[i]
            worse = b if b > x else x
            s = worse if worse < s else s
            runner_up[i] = y if y < s else s
            best[i] = x if x < b else b


@compiled()
def _two_best_clusters(
    run_time: Floats,
    data: Floats,
    table: HostTable,
    first: Floats,
    n: int,
    best: Floats,
    runner_up: Floats,
    of_unit: Floats,
) -> None:
    """Smallest and second smallest over clusters of the cluster's smallest completion time [s]."""
    for unit in range(len(table.unit_start) - 1):
        used = False
        for column in range(table.unit_start[unit], table.unit_start[unit + 1]):
            ready = first[column]
            if ready == INF:
                continue
            if not used:
                of_unit[:n] = INF
                used = True
            p, there = run_time[column], data[table.data_row[column]]
            for i in range(n):
                d = there[i]
                x = (ready if ready > d else d) + p[i]
                of_unit[i] = x if x < of_unit[i] else of_unit[i]
        if not used:
            continue
        for i in range(n):
            x, b, s = of_unit[i], best[i], runner_up[i]
            worse = b if b > x else x
            runner_up[i] = worse if worse < s else s
            best[i] = x if x < b else b


@compiled()
def two_best(
    run_time: Floats,
    data: Floats,
    table: HostTable,
    order: Integers,
    first: Floats,
    second: Floats,
    n: int,
    by_cluster: bool,
    best: Floats,
    runner_up: Floats,
    room: Floats,
) -> None:
    """Smallest and second smallest completion time of the first `n` tasks [s].

    Between hosts, or between clusters; written to `best` and `runner_up`, infinite where there is
    none. `order` comes from `columns_by_speed`; `room` is to work in.
    """
    best[:n] = INF
    runner_up[:n] = INF
    undominated = _without_dominated(order, table, first, second, by_cluster)
    if by_cluster:
        _two_best_clusters(run_time, data, table, undominated, n, best, runner_up, room)
    else:
        _two_best_hosts(run_time, data, table, undominated, second, n, best, runner_up)


@compiled()
def best_hosts(
    run_time: Floats,
    data: Floats,
    table: HostTable,
    core_ready: Floats,
    first: Floats,
    start: int,
    stop: int,
    best: Floats,
    by_cluster: bool,
    hosts: Integers,
) -> None:
    """Find each task's lowest host id with completion time `best`, for tasks `start` to `stop`.

    By cluster: in the lowest cluster that has one. Written to `wanted`; -1 if `best` is infinite.
    """
    hosts[start:stop] = -1
    for column in range(len(first)):
        ready = first[column]
        if ready == INF:
            continue
        p, there = run_time[column], data[table.data_row[column]]
        for i in range(start, stop):
            d = there[i]
            if (ready if ready > d else d) + p[i] != best[i] or best[i] == INF:
                continue
            best_host = hosts[i]
            unit = table.unit_of[column]
            if by_cluster and best_host >= 0 and table.unit_of[table.column_of[best_host]] != unit:
                continue
            for k in range(table.column_start[column], table.column_start[column + 1]):
                host = table.column_hosts[k]
                if max(core_ready[host, 0], d) + p[i] == best[i]:
                    if best_host < 0 or host < best_host:
                        hosts[i] = host
                    break


@compiled()
def _score(rule: int, best: float, runner_up: float, alone: bool) -> float:
    if rule == MIN_MIN:
        return -best
    if rule == MAX_MIN or alone:
        return best
    return runner_up - best


@compiled()
def _choose(rule: int, alone: bool, ids: Integers, n: int, best: Floats, runner_up: Floats) -> int:
    """Position of the task with the largest score, then the lowest id; -1 if none can run."""
    chosen, top = -1, -INF
    for i in range(n):
        if best[i] == INF:
            continue
        score = _score(rule, best[i], runner_up[i], alone)
        if chosen < 0 or score > top or (score == top and ids[i] < ids[chosen]):
            chosen, top = i, score
    return chosen


@compiled()
def _earliest(core_ready: Floats, table: HostTable) -> tuple[Floats, Floats]:
    n = len(table.column_start) - 1
    first, second = np.empty(n), np.empty(n)
    for column in range(n):
        first[column], second[column] = earliest_two(core_ready, table, column)
    return first, second


def _steps(ids: Integers, run_time: Floats, core_ready: Floats, *_: object) -> int:
    return len(ids) * (run_time.size + 20) + len(core_ready)


@compiled(steps=_steps)
def map_greedily(
    ids: Integers,
    run_time: Floats,
    core_ready: Floats,
    table: HostTable,
    files: FileTable,
    now: float,
    by_cluster: bool,
    alone: bool,
    rule: int,
) -> tuple[Integers, Integers]:
    """Map one task after the other, each time the one with the largest score.

    All arrays but those of `table` are overwritten.

    Parameters
    ----------
    ids : ndarray of int64, shape (tasks,)
    run_time : ndarray, shape (columns, tasks)
        Estimated run times [s], infinite where infeasible.
    core_ready : ndarray, shape (hosts, cores)
        When each core is free [s], rows ascending.
    table : HostTable
    files : FileTable
    now : float
        Present time [s].
    by_cluster, alone : bool
        Take the sufferage between clusters; only one host (cluster) is usable.
    rule : int
        `SUFFERAGE`, `MIN_MIN` or `MAX_MIN`.

    Returns
    -------
    tasks, hosts : ndarray of int64
        In the order of the decisions; tasks that no host can take are left out.
    """
    n = len(ids)
    tasks, hosts, best_host = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    best, runner_up, room = np.empty(n), np.empty(n), np.empty(n)
    data, order = initial_data(files, ids, now), columns_by_speed(run_time, files)
    first, second = _earliest(core_ready, table)
    mapped = 0
    while n > 0:
        two_best(run_time, data, table, order, first, second, n, by_cluster, best, runner_up, room)
        i = _choose(rule, alone, ids, n, best, runner_up)
        if i < 0:
            break
        task = ids[i]
        best_hosts(run_time, data, table, core_ready, first, i, i + 1, best, by_cluster, best_host)
        host = best_host[i]
        tasks[mapped], hosts[mapped] = task, host
        mapped += 1
        column = table.column_of[host]
        transferred = commit(task, host, run_time[column, i], core_ready, table, files, now)
        first[column], second[column] = earliest_two(core_ready, table, column)
        n -= 1
        ids[i] = ids[n]
        run_time[:, i] = run_time[:, n]
        data[:, i] = data[:, n]
        if transferred:
            update_data(data, files, ids, n, table.data_row[column], now)
    return tasks[:mapped], hosts[:mapped]


@compiled(steps=_steps)
def map_in_passes(
    ids: Integers,
    run_time: Floats,
    core_ready: Floats,
    table: HostTable,
    files: FileTable,
    now: float,
    by_cluster: bool,
    alone: bool,
) -> tuple[Integers, Integers]:
    """Map in passes: in each, a host goes to the claimant with the largest sufferage.

    Parameters and result as of `map_greedily`; tasks of one pass are committed in order of id.
    """
    n = len(ids)
    tasks, hosts, best_host = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    best, runner_up, room = np.empty(n), np.empty(n), np.empty(n)
    stays, claimant = np.empty(n, np.int64), np.empty(len(core_ready), np.int64)
    data, order = initial_data(files, ids, now), columns_by_speed(run_time, files)
    first, second = _earliest(core_ready, table)
    mapped = 0
    while n > 0:
        two_best(run_time, data, table, order, first, second, n, by_cluster, best, runner_up, room)
        best_hosts(run_time, data, table, core_ready, first, 0, n, best, by_cluster, best_host)
        claimant[:] = -1
        for i in range(n):
            host = best_host[i]
            if host < 0:
                continue
            score = _score(SUFFERAGE, best[i], runner_up[i], alone)
            k = claimant[host]
            if k < 0 or score > _score(SUFFERAGE, best[k], runner_up[k], alone):
                claimant[host] = i
        left = 0
        for i in range(n):
            host = best_host[i]
            if host >= 0 and claimant[host] == i:
                tasks[mapped], hosts[mapped] = ids[i], host
                mapped += 1
                p = run_time[table.column_of[host], i]
                commit(ids[i], host, p, core_ready, table, files, now)
            else:
                stays[left] = i
                left += 1
        if left == n:
            break
        n = left
        ids[:n] = ids[stays[:n]]
        for column in range(len(run_time)):
            run_time[column, :n] = run_time[column, stays[:n]]
        first, second = _earliest(core_ready, table)
        for cluster in range(len(files.uplink_free)):
            update_data(data, files, ids, n, cluster, now)
    return tasks[:mapped], hosts[:mapped]


@compiled(steps=lambda order, run_time, core_ready, *_: len(order) * len(core_ready))
def map_in_order(order: Integers, run_time: Floats, core_ready: Floats, column_of: Integers, load: Floats) -> Integers:
    """Give each task of `order` the host where it completes first, then the lowest id.

    Parameters
    ----------
    order : ndarray of int64, shape (tasks,)
        Positions in `run_time`, shape (columns, tasks) [s], in the order in which tasks choose.
    core_ready : ndarray, shape (hosts, cores)
        When each core is free [s], rows ascending; overwritten.
    column_of, load : ndarray, shape (hosts,)
        Column of each host, and its background load, below 1.

    Returns
    -------
    ndarray of int64, shape (tasks,)
        Host of each task of `order`; -1 where no host can take it.
    """
    hosts = np.full(len(order), -1)
    for k in range(len(order)):
        best = INF
        for host in range(len(core_ready)):
            cost = run_time[column_of[host], order[k]] / (1.0 - load[host])
            completion = core_ready[host, 0] + cost
            if completion < best:
                best = completion
                hosts[k] = host
        if hosts[k] >= 0:
            occupy(core_ready, hosts[k], best)
    return hosts


@called_once
def _call_once() -> None:
    """Call the kernels of bags once."""
    table, files = host_table([0], [0]), no_files()
    for by_cluster in (False, True):
        for kernel, rule in ((map_greedily, (SUFFERAGE,)), (map_in_passes, ())):
            kernel(
                np.zeros(1, dtype=np.int64),
                np.ones((1, 1)),
                np.zeros((1, 1)),
                table,
                files,
                0.0,
                by_cluster,
                True,
                *rule,
            )
    order = np.zeros(1, dtype=np.int64)
    map_in_order(order, np.ones((1, 1)), np.zeros((1, 1)), table.column_of, np.zeros(1))
