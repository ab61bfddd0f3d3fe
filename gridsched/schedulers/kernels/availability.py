"""What is free from now on, and which rigid jobs of a queue start now (algorithms I). Times [s].

One rule, `starts_now`, for first come, first served (no reservation), EASY (one for each partition)
and conservative backfilling (all), over one profile: what is free now, and what changes later. Of
equal nodes that jobs have whole the profile is their number, in steps (`Steps`). Where it matters
which nodes a job has it is what each node has left of each resource, and the stays of jobs that end
or begin (`Stays`): `nodes` is then `Nodes`, else (), and numba compiles what is of use for the one or the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.schedulers.kernels import called_once, inner, interpreted_at_first, kernel

#: All jobs that cannot start now have reservations; else none (0), or the first of each partition (1).
ALL = 2
PACK, SPREAD, CONTIGUOUS, LOCALITY = 0, 1, 2, 3


class Nodes(NamedTuple):
    """Nodes one by one, and what jobs take of them.

    Attributes
    ----------
    demand : ndarray of int64, shape (jobs, resources)
        What each part of a job takes of its node, cores first.
    anywhere : ndarray of bool, shape (jobs,)
        Whether parts may share nodes.
    partition : ndarray of int64, shape (jobs,)
    longest : ndarray of float64, shape (jobs,)
        How long jobs may run [s]; nodes stay up as long.
    hosts, offsets : ndarray of int64
        Hosts of partition p, in the order in which they are filled: ``hosts[offsets[p]:offsets[p + 1]]``.
    members : ndarray of bool, shape (partitions, hosts)
    place : int
        `PACK`, `SPREAD`, `CONTIGUOUS` or `LOCALITY`.
    switch : ndarray of int64, shape (levels, hosts)
        As `Platform.switch_of`.
    pool : ndarray of int64, shape (2, any)
        Hosts of what runs, and parts on each (`SharedNodesState`).
    down : ndarray of int64, shape (windows,)
        Hosts that are down, each from a time to another:
    down_s : ndarray of float64, shape (2, windows)
    exactly, at_least : ndarray of int64, shape (most cores of a host + 2,)
        To work with: how many hosts have so many free cores, and how many at least so many.
    places : ndarray of int64, shape (2, cores)
        Filled with the hosts of what starts and the parts on each, one job after the other.
    n_places : ndarray of int64, shape (any,)
        Filled with how many of these each job that starts has; no shorter than the queue.
    """

    demand: Integers
    anywhere: Booleans
    partition: Integers
    longest: Floats
    hosts: Integers
    offsets: Integers
    members: Booleans
    place: int
    switch: Integers
    pool: Integers
    down: Integers
    down_s: Floats
    exactly: Integers
    at_least: Integers
    places: Integers
    n_places: Integers


class Steps(NamedTuple):
    """Free nodes from each time on, the first of which is now.

    `size` holds the number of steps. The end of `time` holds when the blocked job starts, and how
    many nodes are free then beside its own at the end of `free`.
    """

    time: Floats
    free: Integers
    size: Integers


class Stays(NamedTuple):
    """What nodes have left now, and stays of jobs.

    Attributes
    ----------
    left : ndarray of int64, shape (hosts, resources)
    exactly, at_least : ndarray of int64
        Those of `Nodes`.
    time : ndarray of float64
        When stays end and begin, ascending; of one time ends come first.
    change : ndarray of int64
        Which stay ends then, or, as ``~stay``, begins; `IDLE` where only a host is up again.
    row : ndarray of int64, shape (3, stays)
        Of each stay the job, and where in a pool its hosts begin, and how many there are; first of
        what runs, then of what starts or is reserved.
    pool : ndarray of int64, shape (2, any)
        Of the latter, as `Nodes.pool`.
    then, after, low, room, work : ndarray of int64
        To work with: what hosts have left at a time and after it, the least from then on, and parts that find room.
    size : ndarray of int64, shape (7,)
        Changes, stays, places of the pool that are used, free cores in all, places and number of what
        starts, and all `room` together at a start that was looked for without places.
    head : ndarray of int64, shape (partitions,)
        The blocked job of each, or -1.
    head_s : ndarray of float64, shape (partitions,)
        When it starts, or a time before which it does not [s].
    head_then : ndarray of int64, shape (partitions, hosts, resources)
        What hosts have left then, before it starts.
    head_room : ndarray of int64, shape (partitions, hosts)
        For how many of its parts each host of its partition has room then, and none other.
    head_total : ndarray of int64, shape (partitions,)
        All these together; or `UNKNOWN`.
    """

    left: Integers
    exactly: Integers
    at_least: Integers
    time: Floats
    change: Integers
    row: Integers
    pool: Integers
    then: Integers
    after: Integers
    low: Integers
    room: Integers
    work: Integers
    size: Integers
    head: Integers
    head_s: Floats
    head_then: Integers
    head_room: Integers
    head_total: Integers


IDLE = np.iinfo(np.int64).max
#: In the place of `Stays.head_total`: the job starts no earlier than at `Stays.head_s`, and when is not known.
UNKNOWN = -1


# ---------------------------------------------------------------------- where parts are laid


@inner
def room_for(left: Integers, host: int, need: Integers, anywhere: bool, most: int) -> int:
    """How many parts find room on a host, at most so many; one where each needs a host of its own."""
    for r in range(len(need)):
        if left[host, r] < need[r]:
            return 0
    if not anywhere:
        return 1  # to divide takes ten times as long
    room = most
    for r in range(len(need)):
        if need[r] > 0:
            room = min(room, left[host, r] // need[r])
    return room


@inner
def fill(hosts: Integers, left: Integers, need: Integers, anywhere: bool, width: int, out: Integers, at: int) -> int:
    """Lay parts on the first hosts that have room, in order; return where their places end, or -1."""
    cores = need[0]
    for host in hosts:
        if left[np.uint64(host), 0] < cores:  # most hosts, where many jobs wait
            continue
        room = room_for(left, host, need, anywhere, width)
        if room > 0:
            out[0, at], out[1, at] = host, room
            at += 1
            width -= room
            if width == 0:
                return at
    return -1


@inner
def fill_neighbours(
    hosts: Integers, left: Integers, need: Integers, anywhere: bool, width: int, out: Integers, first: int
) -> int:
    """As `fill`, on the first neighbors that all have room and are enough together."""
    at, missing, last = first, width, -2
    for host in hosts:
        if host != last + 1:
            at, missing = first, width
        room = room_for(left, host, need, anywhere, missing)
        if room > 0:
            last = host
            out[0, at], out[1, at] = host, room
            at += 1
            missing -= room
            if missing == 0:
                return at
    return -1


@kernel
def spread(
    hosts: Integers,
    left: Integers,
    need: Integers,
    anywhere: bool,
    width: int,
    switch: Integers,
    out: Integers,
    at: int,
) -> int:
    """As `fill`, one by one on the hosts with the most free cores, round by round.

    Of hosts with equally many, one of each of the lowest switches comes first, that with the most free cores before
    the others, then another of each.
    """
    order = hosts[np.argsort(-left[hosts, 0], kind="mergesort")]
    if len(switch):
        turn, seen = np.empty(len(order), dtype=np.int64), np.zeros(switch[0].max() + 1, dtype=np.int64)
        free = np.zeros(len(seen), dtype=np.int64)
        for k in range(len(order)):
            free[switch[0, order[k]]] += max(left[order[k], 0], 0)
            if k > 0 and left[order[k], 0] < left[order[k - 1], 0]:
                seen[:] = 0
            turn[k] = seen[switch[0, order[k]]]
            seen[switch[0, order[k]]] += 1
        by_free = np.argsort(-free[switch[0, order]], kind="mergesort")
        order, turn = order[by_free], turn[by_free]
        order = order[np.argsort(turn, kind="mergesort")]
        order = order[np.argsort(-left[order, 0], kind="mergesort")]
    room, laid = np.empty(len(order), dtype=np.int64), np.zeros(len(order), dtype=np.int64)
    for k in range(len(order)):
        room[k] = room_for(left, order[k], need, anywhere, width)
    while width > 0 and room.max() > 0:
        for k in range(len(order)):
            if room[k] > 0 and width > 0:
                room[k] -= 1
                laid[k] += 1
                width -= 1
    if width > 0:
        return -1
    for k in range(len(order)):
        if laid[k] > 0:
            out[0, at], out[1, at] = order[k], laid[k]
            at += 1
    return at


@kernel
def lowest_group(order: Integers, total: Integers, above: Integers, count: int, width: int) -> int:
    """Of switches of a level, find that with the least room whose `count` largest below it have enough, or -1.

    Parameters
    ----------
    order : ndarray of int64
        The lowest switches, those with the most room first.
    total : ndarray of int64
        For how many parts each has room.
    above : ndarray of int64
        The switch of the level that each lies under.
    count, width : int
    """
    n = above.max() + 1
    taken, best_of, room = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for leaf in order:
        group = above[leaf]
        room[group] += total[leaf]
        if taken[group] < count:
            taken[group] += 1
            best_of[group] += total[leaf]
    best = -1
    for group in range(n):
        if best_of[group] >= width and (best < 0 or room[group] < room[best]):
            best = group
    return best


@kernel
def gather(
    hosts: Integers,
    left: Integers,
    need: Integers,
    anywhere: bool,
    width: int,
    switch: Integers,
    out: Integers,
    at: int,
) -> int:
    """As `fill`, under the fewest of the lowest switches.

    These lie under one switch of the lowest level at which so few are enough, of several under that with the least
    room; where only all together are enough, those with the most room are taken, and of equals those of the next
    level's switch with the most room. All but the last are filled; the last is that with the least room that serves.
    Of equals the first is taken.
    """
    n_leaves = switch[0].max() + 1
    total, part = np.zeros(n_leaves, dtype=np.int64), np.zeros(n_leaves, dtype=np.int64)
    above = np.zeros((len(switch), n_leaves), dtype=np.int64)
    room = np.empty(len(hosts), dtype=np.int64)
    for k in range(len(hosts)):
        room[k] = room_for(left, hosts[k], need, anywhere, width)
        total[switch[0, hosts[k]]] += room[k]
    if total.sum() < width:
        return -1
    for level in range(len(switch)):
        for host in hosts:
            above[level, switch[0, host]] = switch[level, host]
    order = np.arange(n_leaves)
    if len(switch) > 1:
        next_room = np.zeros(switch[1].max() + 1, dtype=np.int64)
        for leaf in range(n_leaves):
            next_room[above[1, leaf]] += total[leaf]
        order = np.argsort(-next_room[above[1]], kind="mergesort")
    order = order[np.argsort(-total[order], kind="mergesort")]
    count, enough = 0, 0
    while enough < width:
        enough += total[order[count]]
        count += 1
    for level in range(len(switch)):
        group = lowest_group(order, total, above[level], count, width)
        if group >= 0:
            order = order[above[level][order] == group]
            break
    for k in range(count - 1):
        part[order[k]] = total[order[k]]
        width -= total[order[k]]
    last = order[count - 1]
    for leaf in order[count:]:
        if width <= total[leaf] < total[last]:
            last = leaf
    part[last] = width
    for k in range(len(hosts)):
        leaf = switch[0, hosts[k]]
        parts = min(room[k], part[leaf])
        if parts > 0:
            out[0, at], out[1, at] = hosts[k], parts
            part[leaf] -= parts
            at += 1
    return at


@inner
def lay_on(job: int, width: int, left: Integers, nodes: Nodes, out: Integers, at: int) -> int:
    """Find hosts for a job by what they have left; return where its places end, or -1."""
    partition, need, anywhere = nodes.partition[job], nodes.demand[job], nodes.anywhere[job]
    hosts = nodes.hosts[nodes.offsets[partition] : nodes.offsets[partition + 1]]
    if nodes.place == CONTIGUOUS:
        return fill_neighbours(hosts, left, need, anywhere, width, out, at)
    if nodes.place == SPREAD:
        return spread(hosts, left, need, anywhere, width, nodes.switch, out, at)
    if nodes.place == LOCALITY and len(nodes.switch):  # without switches as packed
        return gather(hosts, left, need, anywhere, width, nodes.switch, out, at)
    return fill(hosts, left, need, anywhere, width, out, at)


@kernel
def lay_on_those_up(job: int, width: int, begin: float, left: Integers, nodes: Nodes, out: Integers, at: int) -> int:
    """As `lay_on`, on hosts that stay up from a time on for as long as the job may run."""
    left, until = left.copy(), begin + nodes.longest[job]
    for k in range(len(nodes.down)):
        if nodes.down_s[0, k] < until and begin < nodes.down_s[1, k]:
            left[nodes.down[k]] = -1
    return lay_on(job, width, left, nodes, out, at)


@inner
def lay(job: int, width: int, begin: float, left: Integers, nodes: Nodes, out: Integers, at: int) -> int:
    """Find hosts for a job that begins at a time, which stay up; return where its places end, or -1."""
    if len(nodes.down):
        return lay_on_those_up(job, width, begin, left, nodes, out, at)
    return lay_on(job, width, left, nodes, out, at)


@inner
def room_is_enough(nodes: Nodes) -> bool:
    """Whether a job can be laid wherever there is room for as many parts as it has."""
    return bool(nodes.place != CONTIGUOUS and len(nodes.down) == 0)


# ---------------------------------------------------------------------- stays on nodes


@inner
def copy_into(target: Integers, source: Integers) -> None:
    """Copy all of a contiguous array into another: to assign it to a slice takes several times as long."""
    to, of = target.reshape(target.size), source.reshape(source.size)
    for k in range(len(to)):
        to[k] = of[k]


@inner
def take(left: Integers, need: Integers, pool: Integers, first: int, end: int, sign: int) -> None:
    """Take parts of the hosts in a stretch of a pool; give them back with the sign -1."""
    for k in range(first, end):
        host, parts = pool[0, k], sign * pool[1, k]
        for r in range(len(need)):
            left[host, r] -= parts * need[r]


@inner
def count_hosts(left: Integers, exactly: Integers) -> None:
    """Count hosts with so many free cores, for each number."""
    exactly[:] = 0
    for h in range(len(left)):
        exactly[max(left[h, 0], 0)] += 1


@inner
def sum_up(exactly: Integers, at_least: Integers) -> int:
    """Count hosts with at least so many free cores from those with so many; return the free cores in all.

    Both may be one array.
    """
    hosts, total = 0, 0
    for c in range(len(exactly) - 1, -1, -1):
        hosts += exactly[c]
        total += c * exactly[c]
        at_least[c] = hosts
    return total


@inner
def count_cores(profile: Stays) -> None:
    """Count free cores in all, and hosts with so many and with at least so many, for each number."""
    count_hosts(profile.left, profile.exactly)
    profile.size[3] = sum_up(profile.exactly, profile.at_least)


@inner
def are_enough(total: int, at_least: Integers, cores: int, width: int, anywhere: bool) -> bool:
    """Whether there are cores enough for parts of a job, wherever they are: quick, and never wrongly no."""
    if width * cores > total or cores >= len(at_least):
        return False
    return bool(anywhere or at_least[cores] >= width)


@inner
def take_now(profile: Stays, need: Integers, first: int, end: int) -> None:
    """Take parts of the hosts in a stretch of the profile's pool from now on, and count cores again."""
    left, exactly, pool = profile.left, profile.exactly, profile.pool
    for k in range(first, end):
        exactly[max(left[pool[0, k], 0], 0)] -= 1
    take(left, need, pool, first, end, 1)
    for k in range(first, end):
        exactly[max(left[pool[0, k], 0], 0)] += 1
    profile.size[3] = sum_up(exactly, profile.at_least)


@inner
def insert(profile: Stays, time: float, change: int) -> None:
    """Note that a stay ends, or begins, at a time."""
    n = profile.size[0]
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if profile.time[middle] < time or (change < 0 and profile.time[middle] == time):
            low = middle + 1
        else:
            high = middle
    for k in range(n, low, -1):
        profile.time[k], profile.change[k] = profile.time[k - 1], profile.change[k - 1]
    profile.time[low], profile.change[low] = time, change
    profile.size[0] = n + 1


@inner
def change_room(profile: Stays, k: int, n_running: int, job: int, width: int, total: int, nodes: Nodes) -> int:
    """Let a change come to pass in `then`; return for how many parts of a job there is room."""
    change, row, then, room = profile.change[k], profile.row, profile.then, profile.room
    if change == IDLE:
        return total
    stay, sign = (change, 1) if change >= 0 else (~change, -1)
    pool = nodes.pool if stay < n_running else profile.pool
    freed, need = nodes.demand[row[0, stay]], nodes.demand[job]
    inside, anywhere = nodes.members[nodes.partition[job]], nodes.anywhere[job]
    for place in range(row[1, stay], row[1, stay] + row[2, stay]):
        # unsigned: whether a place is negative, and so counts from the end, need not be looked at
        host, parts, fits = np.uint64(pool[0, place]), sign * pool[1, place], 1
        for r in range(len(freed)):
            free = then[host, np.uint64(r)] + parts * freed[r]
            then[host, np.uint64(r)] = free
            fits &= free >= need[r]
        if inside[host]:
            more = room_for(then, host, need, True, width) if anywhere and fits else fits
            total += more - room[host]
            room[host] = more
    return total


@inner
def least_until(profile: Stays, k: int, until: float, n_running: int, nodes: Nodes) -> bool:
    """Note in `low` the least that hosts have left from change `k` on until a time, unless that is `then`, as before.

    Return whether it is noted.
    """
    n = profile.size[0]
    for begin in range(k, n):
        if profile.time[begin] >= until:
            return False
        if profile.change[begin] < 0:
            break
    else:
        return False
    low, left = profile.low, profile.after
    copy_into(low, profile.then)
    copy_into(left, low)
    while k < n and profile.time[k] < until:
        change = profile.change[k]
        if change != IDLE:
            stay, sign = (change, -1) if change >= 0 else (~change, 1)
            first, end = profile.row[1, stay], profile.row[1, stay] + profile.row[2, stay]
            pool = nodes.pool if stay < n_running else profile.pool
            take(left, nodes.demand[profile.row[0, stay]], pool, first, end, sign)
            for place in range(first, end):
                host = pool[0, place]
                for r in range(left.shape[1]):
                    low[host, r] = min(low[host, r], left[host, r])
        k += 1
    return True


@inner
def earliest_on_nodes(
    profile: Stays, now: float, job: int, run_time: float | None, width: int, n_running: int, nodes: Nodes
) -> float:
    """Earliest start of a job on hosts that have room for all of its time; infinite if there is none.

    The places are the next of the profile's pool, their number is that of the next stay, and
    `then` is what hosts have left at the start, `room` for how many parts each has room. Without a run time,
    where nothing is reserved for later and so a job can stay where it fits, only the start is looked for.
    """
    partition, then, room, total = nodes.partition[job], profile.then, profile.room, 0
    copy_into(then, profile.left)
    room[:] = 0
    for place in range(nodes.offsets[partition], nodes.offsets[partition + 1]):
        host = nodes.hosts[place]
        room[host] = room_for(then, host, nodes.demand[job], nodes.anywhere[job], width)
        total += room[host]
    begin, k, at, stay = now, 0, profile.size[2], profile.size[1]
    while True:
        if total >= width:
            if run_time is None:
                if room_is_enough(nodes) or lay(job, width, begin, then, nodes, profile.work, 0) >= 0:
                    profile.size[6] = total
                    return begin
            else:
                is_less = least_until(profile, k, begin + run_time, n_running, nodes)
                low = profile.low if is_less else then
                end = lay(job, width, begin, low, nodes, profile.pool, at)
                if end >= 0:
                    profile.row[2, stay] = end - at
                    return begin
        if k == profile.size[0]:
            return np.inf
        begin = profile.time[k]
        while k < profile.size[0] and profile.time[k] == begin:
            total = change_room(profile, k, n_running, job, width, total, nodes)
            k += 1


@inner
def no_earlier(profile: Stays, now: float, job: int, width: int, n_running: int, nodes: Nodes) -> float:
    """A time before which a job cannot start in a profile that looks ahead: cores that get free are only counted."""
    need, free, hosts = nodes.demand[job, 0], profile.size[3], width
    if not nodes.anywhere[job]:
        hosts = profile.at_least[need] if need < len(profile.at_least) else 0
    begin = now
    for k in range(profile.size[0]):
        if free >= width * need and hosts >= width:
            return begin
        begin, stay = profile.time[k], profile.change[k]
        if 0 <= stay < IDLE:
            pool, first = nodes.pool if stay < n_running else profile.pool, profile.row[1, stay]
            hosts += profile.row[2, stay]
            for place in range(first, first + profile.row[2, stay]):
                free += pool[1, place] * nodes.demand[profile.row[0, stay], 0]
    return begin if free >= width * need and hosts >= width else np.inf


@inner
def keep_place(
    profile: Stays, job: int, begin: float, until: float, now: float, looks_ahead: bool, nodes: Nodes
) -> None:
    """Let a job have the places that were found for it."""
    stay, first = profile.size[1], profile.size[2]
    end = first + profile.row[2, stay]
    profile.row[0, stay], profile.row[1, stay] = job, first
    profile.size[1], profile.size[2] = stay + 1, end
    if looks_ahead:
        insert(profile, until, stay)
    if begin > now:
        insert(profile, begin, ~stay)
        return
    take_now(profile, nodes.demand[job], first, end)
    at = profile.size[4]
    for k in range(first, end):
        nodes.places[0, at], nodes.places[1, at] = profile.pool[0, k], profile.pool[1, k]
        at += 1
    nodes.n_places[profile.size[5]] = end - first
    profile.size[4], profile.size[5] = at, profile.size[5] + 1


# ---------------------------------------------------------------------- numbers of free nodes


@inner
def earliest_step(profile: Steps, run_time: float, width: int) -> int:
    """First step from which on so many nodes are free for a time; -1 if they never are, as some are off."""
    time, free, n, first = profile.time, profile.free, profile.size[0], 0
    while True:
        while first < n and free[first] < width:
            first += 1
        if first == n:
            return -1
        until, k = time[first] + run_time, first + 1
        while k < n and time[k] < until and free[k] >= width:
            k += 1
        if k == n or time[k] >= until:
            return first
        first = k


@inner
def step_at(profile: Steps, edge: float) -> int:
    """Let a step begin at a time; return which."""
    time, free, n = profile.time, profile.free, profile.size[0]
    k = int(np.searchsorted(time[:n], edge))
    if k == n or time[k] != edge:
        for step in range(n, k, -1):
            time[step], free[step] = time[step - 1], free[step - 1]
        time[k], free[k] = edge, free[k - 1]
        profile.size[0] = n + 1
    return k


# ---------------------------------------------------------------------- the profile, of either kind


@inner
def later(time: float, than: float) -> float:
    """Return a time, or the next moment after another that it is not behind."""
    return time if time > than else np.nextafter(than, np.inf)


@kernel
def profile_now(now: float, left: Any, end: Floats, queue: Integers, width: Integers, nodes: Any) -> Any:
    """Return what is free now."""
    n, m = len(end), len(queue)
    if len(nodes) == 0:
        room = n + 2 * m + 2
        profile = Steps(np.empty(room), np.empty(room, dtype=np.int64), np.empty(1, dtype=np.int64))
        profile.time[0], profile.free[0], profile.size[0] = now, left, 1
        return profile
    most = left.shape[0]
    for job in queue:
        most += min(width[job], left.shape[0])
    room = n + 2 * m + len(nodes.down)
    stays = Stays(
        left.copy(),
        nodes.exactly,
        nodes.at_least,
        np.empty(room),
        np.empty(room, dtype=np.int64),
        np.empty((3, n + m + 1), dtype=np.int64),
        np.empty((2, most), dtype=np.int64),
        np.empty(left.shape, dtype=np.int64),
        np.empty(left.shape, dtype=np.int64),
        np.empty(left.shape, dtype=np.int64),
        np.zeros(left.shape[0], dtype=np.int64),
        np.empty((2, left.shape[0]), dtype=np.int64),
        np.zeros(7, dtype=np.int64),
        np.empty(len(nodes.offsets) - 1, dtype=np.int64),
        np.empty(len(nodes.offsets) - 1),
        np.empty((len(nodes.offsets) - 1, *left.shape), dtype=np.int64),
        np.empty((len(nodes.offsets) - 1, left.shape[0]), dtype=np.int64),
        np.empty(len(nodes.offsets) - 1, dtype=np.int64),
    )
    count_cores(stays)
    stays.size[1], stays.head[:] = n, -1
    return stays


@kernel
def look_ahead(
    profile: Any,
    now: float,
    run_time: Floats,
    width: Integers,
    end: Floats,
    freed: Integers,
    starts: Integers,
    count: int,
    nodes: Any,
) -> None:
    """Let the profile know when what runs ends, and the jobs that start now.

    What has outlived its estimate ends in the next moment.
    """
    n = len(end)
    ends = np.empty(n + count)
    for k in range(n):
        ends[k] = later(end[k], now)
    for k in range(count):
        ends[n + k] = later(now + run_time[starts[k]], now)
    order = np.argsort(ends)
    if len(nodes) == 0:
        time, free, last = profile.time, profile.free, 0
        for k in order:
            if ends[k] != time[last]:
                last += 1
                time[last], free[last] = ends[k], free[last - 1]
            free[last] += freed[k] if k < n else width[starts[k - n]]
        profile.size[0] = last + 1
    else:
        for k in range(len(order)):
            profile.time[k], profile.change[k] = ends[order[k]], order[k]
        profile.row[:, :n] = freed
        profile.size[0] = len(order)
        for k in range(len(nodes.down)):
            if now < nodes.down_s[1, k] < np.inf:
                insert(profile, nodes.down_s[1, k], IDLE)


@inner
def may_start(profile: Any, job: int, width: int, nodes: Any) -> bool:
    """Whether there is enough for a job now, wherever that is: quick, and never wrongly no."""
    if len(nodes) == 0:
        enough: bool = width <= profile.free[0]
        return enough
    return are_enough(profile.size[3], profile.at_least, nodes.demand[job, 0], width, nodes.anywhere[job])


@inner
def last_that_may_start(profile: Any, queue: Integers, first: int, last: int, width: Integers, nodes: Any) -> int:
    """The last place from the first to the last of a queue whose job may start now, or -1: quick, never too early."""
    for k in range(last, first - 1, -1):
        job = queue[k]
        if may_start(profile, job, width[job], nodes):
            return k
    return -1


@inner
def has_place(profile: Any, now: float, job: int, width: int, nodes: Any) -> bool:
    """Whether a job that may start can, if nothing else starts later."""
    if len(nodes) == 0:
        return True
    at, stay = profile.size[2], profile.size[1]
    end = lay(job, width, now, profile.left, nodes, profile.pool, at)
    profile.row[2, stay] = end - at
    return end >= 0


@inner
def earliest(profile: Any, now: float, job: int, run_time: float, width: int, n_running: int, nodes: Any) -> float:
    """Earliest start of a job in a profile that looks ahead, infinite if there is none; as `earliest_on_nodes`."""
    if len(nodes) == 0:
        step = earliest_step(profile, run_time, width)
        return float(profile.time[step]) if step >= 0 else np.inf
    return float(earliest_on_nodes(profile, now, job, run_time, width, n_running, nodes))


@inner
def hold(
    profile: Any, now: float, job: int, begin: float, until: float, width: int, looks_ahead: bool, nodes: Any
) -> None:
    """Let a job have what was found for it, from one time to another."""
    if len(nodes) == 0:
        if looks_ahead:
            first, last = step_at(profile, begin), step_at(profile, later(until, begin))
            for k in range(first, last):
                profile.free[k] -= width
        else:
            profile.free[0] -= width
    else:
        keep_place(profile, job, begin, later(until, begin), now, looks_ahead, nodes)


@inner
def close(profile: Any, partition: int, nodes: Any) -> None:
    """Leave nothing of a partition to those behind."""
    if len(nodes) == 0:
        profile.free[0] = 0
    else:
        for k in range(nodes.offsets[partition], nodes.offsets[partition + 1]):
            profile.left[nodes.hosts[k]] = 0
        count_cores(profile)


@inner
def promise(profile: Any, now: float, job: int, width: int, n_running: int, nodes: Any) -> None:
    """Note when the first job of a partition that is blocked starts, and what is free then.

    Of nodes one by one only a time is noted before which it does not start: for most of those behind that is enough.
    """
    if len(nodes) == 0:
        step = earliest_step(profile, 0.0, width)
        profile.time[-1], profile.free[-1] = np.inf, -width
        if step >= 0:
            profile.time[-1], profile.free[-1] = profile.time[step], profile.free[step] - width
    else:
        partition = nodes.partition[job]
        profile.head[partition], profile.head_total[partition] = job, UNKNOWN
        profile.head_s[partition] = no_earlier(profile, now, job, width, n_running, nodes)


@inner
def find_start(profile: Stays, now: float, p: int, width: int, n_running: int, nodes: Nodes) -> None:
    """Note when a blocked job really starts, and what hosts have left then.

    What has started since it was blocked ends before: it would start at the same time without that.
    """
    job = profile.head[p]
    profile.head_s[p] = earliest_on_nodes(profile, now, job, None, width, n_running, nodes)
    copy_into(profile.head_then[p], profile.then)
    copy_into(profile.head_room[p], profile.room)
    profile.head_total[p] = profile.size[6]


@inner
def take_at_head(
    profile: Stays, p: int, need: Integers, width: int, first: int, end: int, sign: int, nodes: Nodes
) -> bool:
    """Take parts of hosts at the time when a blocked job starts; return whether it still can. Sign -1 gives back."""
    head, then, pool = profile.head[p], profile.head_then[p], profile.pool
    take(then, need, pool, first, end, sign)
    if not room_is_enough(nodes):
        return bool(sign < 0 or lay(head, width, profile.head_s[p], then, nodes, profile.work, 0) >= 0)
    room, total, inside = profile.head_room[p], profile.head_total[p], nodes.members[p]
    for k in range(first, end):
        host = pool[0, k]
        if inside[host]:
            more = room_for(then, host, nodes.demand[head], nodes.anywhere[head], width)
            total += more - room[host]
            room[host] = more
    profile.head_total[p] = total
    return bool(total >= width)


@inner
def keeps_promises(
    profile: Any, now: float, job: int, until: float, width: Integers, n_running: int, nodes: Any
) -> bool:
    """Whether all blocked jobs still start when promised if a job has what was found for it until a time.

    They may be on other hosts then. What it takes from them is noted, if so.
    """
    if len(nodes) == 0:
        if until <= profile.time[-1]:
            return True
        profile.free[-1] -= width[job]
        if profile.free[-1] >= 0:
            return True
        profile.free[-1] += width[job]
        return False
    first, need = profile.size[2], nodes.demand[job]
    end, broken = first + profile.row[2, profile.size[1]], -1
    for p in range(len(profile.head)):
        head = profile.head[p]
        if head >= 0 and until > profile.head_s[p] and profile.head_total[p] == UNKNOWN:
            find_start(profile, now, p, width[head], n_running, nodes)
        is_touched = head >= 0 and until > profile.head_s[p]
        if is_touched and not take_at_head(profile, p, need, width[head], first, end, 1, nodes):
            broken = p
            break
    for p in range(broken + 1):
        head = profile.head[p]
        if head >= 0 and until > profile.head_s[p]:
            take_at_head(profile, p, need, width[head], first, end, -1, nodes)
    return broken < 0


def steps_of_counting(
    left: Integers, queue: Integers, _width: Integers, _demand: Integers, _anywhere: Booleans, _at_least: Integers
) -> int:
    """Return about how many steps of Python `some_may_start` takes."""
    return len(left) + len(queue)


@interpreted_at_first(steps_of_counting)
def some_may_start(
    left: Integers, queue: Integers, width: Integers, demand: Integers, anywhere: Booleans, at_least: Integers
) -> bool:
    """Whether there are cores enough for any job of a queue now; if not, `starts_now` need not be asked.

    Parameters
    ----------
    left : ndarray of int64, shape (hosts, resources)
        What each host has left now.
    queue : ndarray of int64
        Ids of jobs.
    width : ndarray of int64
        Parts of each job, by id.
    demand, anywhere, at_least : ndarray
        As of `Nodes`.
    """
    count_hosts(left, at_least)
    total = sum_up(at_least, at_least)
    for job in queue:  # noqa: SIM110 - numba compiles no generators within any()
        if are_enough(total, at_least, demand[job, 0], width[job], anywhere[job]):
            return True
    return False


@inner
def go_down(
    reservations: int,
    now: float,
    queue: Integers,
    run_time: Floats,
    width: Integers,
    profile: Any,
    end: Floats,
    freed: Integers,
    starts: Integers,
    nodes: Any,
) -> int:
    """As `starts_now`, in a profile of what is free now."""
    count, n_heads, n = 0, 0, len(end)
    last = last_that_may_start(profile, queue, 0, len(queue) - 1, width, nodes)
    if last < 0:
        return 0
    looks_ahead = reservations == ALL
    if looks_ahead:
        look_ahead(profile, now, run_time, width, end, freed, starts, 0, nodes)
    place = 0
    while place <= last:
        job = queue[place]
        place += 1
        partition = 0 if len(nodes) == 0 else nodes.partition[job]
        if reservations == ALL:
            begin = earliest(profile, now, job, run_time[job], width[job], n, nodes)
        else:
            fits = may_start(profile, job, width[job], nodes) and has_place(profile, now, job, width[job], nodes)
            begin = now if fits else np.inf
        if begin == now:
            until = now + run_time[job]
            if n_heads and not keeps_promises(profile, now, job, until, width, n, nodes):
                continue
            hold(profile, now, job, now, until, width[job], looks_ahead, nodes)
            starts[count], count = job, count + 1
            last = last_that_may_start(profile, queue, place, last, width, nodes)
        elif reservations == 0:
            close(profile, partition, nodes)
            last = last_that_may_start(profile, queue, place, last, width, nodes)
        elif reservations == ALL:
            if begin < np.inf:
                hold(profile, now, job, begin, begin + run_time[job], width[job], True, nodes)
        elif place <= last and (n_heads == 0 or (len(nodes) > 0 and profile.head[partition] < 0)):
            if not looks_ahead:
                look_ahead(profile, now, run_time, width, end, freed, starts, count, nodes)
                looks_ahead = True
            promise(profile, now, job, width[job], n, nodes)
            n_heads += 1
    return count


def steps_of(
    reservations: int,
    _now: float,
    queue: Integers,
    _run_time: Floats,
    _width: Integers,
    left: Any,
    end: Floats,
    _freed: Integers,
    _starts: Integers,
    nodes: Any,
) -> int:
    """Return about how many steps of Python the rule takes."""
    m, n = len(queue), len(end)
    if len(nodes) > 0:
        return 20 + m * (left.size + nodes.pool.shape[1] // 8)
    return 20 + (m * (m + n) if reservations == ALL else (m + n) // 5)


@interpreted_at_first(steps_of)
def starts_now(
    reservations: int,
    now: float,
    queue: Integers,
    run_time: Floats,
    width: Integers,
    left: Any,
    end: Floats,
    freed: Integers,
    starts: Integers,
    nodes: Any,
) -> int:
    """Fill `starts` with the ids of the jobs that start now, in order; return how many there are.

    In order of the queue each job gets the earliest place that those before leave it. Those whose
    place is now start. Of the others all have theirs reserved; or the first of each partition has
    the time reserved, but may change hosts until then; or, without reservations, nothing behind
    starts on nodes of that partition.

    Parameters
    ----------
    reservations : int
        0, 1 (of each partition) or `ALL`.
    now : float
        [s].
    queue : ndarray of int64, shape (m,)
        Ids of jobs in order: places in `run_time` (estimated) [s] and in `width`.
    left : int or ndarray of int64, shape (hosts, resources)
        Free nodes, or what each node has left now.
    end : ndarray, shape (running,)
        Estimated ends of what runs [s], in any order.
    freed : ndarray of int64, shape (running,) or (3, running)
        Nodes that become free then; or rows of `SharedNodesState`.
    starts : ndarray of int64
        No shorter than the queue.
    nodes : Nodes or ()
    """
    profile = profile_now(now, left, end, queue, width, nodes)
    return go_down(reservations, now, queue, run_time, width, profile, end, freed, starts, nodes)


def steps_of_counted(
    _now: float,
    queue: Integers,
    _run_time: Floats,
    _width: Integers,
    _left: int,
    end: Floats,
    _freed: Integers,
    _starts: Integers,
) -> int:
    """Return about how many steps of Python `reserve_counted` takes."""
    return 20 + len(queue) * (len(queue) + len(end))


@interpreted_at_first(steps_of_counted)
def reserve_counted(
    now: float,
    queue: Integers,
    run_time: Floats,
    width: Integers,
    left: int,
    end: Floats,
    freed: Integers,
    starts: Integers,
) -> tuple[int, float]:
    """As `starts_now` with reservations for all on counted nodes; return besides until when the last job stays [s]."""
    profile = profile_now(now, left, end, queue, width, ())
    count = go_down(ALL, now, queue, run_time, width, profile, end, freed, starts, ())
    return count, profile.time[profile.size[0] - 1]


@called_once
def _call_once() -> None:
    """Call the kernels of parallel jobs once."""
    queue, jobs = np.arange(3), (np.ones(3), np.array([1, 2, 1]))
    running = np.ones(1), np.ones(1, dtype=np.int64)
    for array in (queue, *running):  # as a state gives them
        array.setflags(write=False)
    starts_now(1, 0.0, queue, *jobs, 2, *running, np.arange(3), ())
    width = np.array([1, 2, 1])
    width.setflags(write=False)
    reserve_counted(0.0, queue, jobs[0], width, 2, *running, np.arange(3))
