"""What nodes have that jobs share, and which jobs they can run at all."""

from __future__ import annotations

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.model.tasks import CORES, WHOLE_NODE, Tasks

#: How the parts of a job are laid on nodes: on the first nodes that have room, on those with the
#: most free cores, on the first neighbors that have room, or under the fewest switches.
PLACES = ("pack", "spread", "contiguous", "locality")


def node_amounts(platform: Platform, resources: tuple[str, ...]) -> Integers:
    """Return what each host has of some resources, shape (hosts, resources); each is one whole node."""
    amounts = np.zeros((len(platform), len(resources)), dtype=np.int64)
    for h, host in enumerate(platform.hosts):
        has = {**dict(host.resources), CORES: host.cores, WHOLE_NODE: 1}
        amounts[h] = [has.get(name, 0) for name in resources]
    return amounts


def partition_members(platform: Platform) -> Booleans:
    """Return which hosts are in each of `Platform.pools`, shape (pools, hosts)."""
    pools = platform.pools
    members = np.zeros((len(pools), len(platform)), dtype=np.bool_)
    for k, partition in enumerate(pools):
        members[k, list(partition.hosts)] = True
    return members


def nodes_filled(platform: Platform, tasks: Tasks) -> Floats:
    """Return how many whole nodes of its partition each task fills, by its cores, shape (tasks,)."""
    has = node_amounts(platform, tasks.resources[:1])[:, 0]
    most = np.array([has[list(pool.hosts)].max() for pool in platform.pools])
    return np.asarray(tasks.size / most[tasks.partition])


def rooms(amounts: Integers, need: Integers) -> Integers:
    """Return how many parts that take `need` of each resource find room on each host, shape (hosts,)."""
    resources = np.flatnonzero(need)
    return np.asarray((amounts[:, resources] // need[resources]).min(axis=1))


def most_parts(room: Integers, hosts: Integers, placement: str, most_nodes: int | None = None) -> int:
    """Return how many parts of a job find room on nodes at once, laid as `placement` specifies.

    Parameters
    ----------
    room : ndarray of int64, shape (nodes,)
        How many parts each node holds.
    hosts : ndarray of int64, shape (nodes,)
        Ids of the nodes, ascending.
    placement : str
        One of `PLACES`: only where parts are contiguous it matters which nodes are neighbors.
    most_nodes : int, optional
        The most that a job may take.
    """
    most = len(room) if most_nodes is None else most_nodes
    if placement != "contiguous":
        return int(np.sort(room)[::-1][:most].sum())
    hosts, room = hosts[room > 0], room[room > 0]
    best = 0
    for part in np.split(room, np.flatnonzero(np.diff(hosts) != 1) + 1):
        in_all = np.cumsum(part)
        before = np.concatenate([np.zeros(min(most, len(part)), dtype=np.int64), in_all[:-most]])
        best = max(best, int((in_all - before).max(initial=0)))
    return best


def jobs_that_fit(platform: Platform, tasks: Tasks, placement: str = "pack") -> Booleans:
    """Return which jobs find room in their partition if nothing else runs there, shape (tasks,).

    Parameters
    ----------
    platform : Platform
    tasks : Tasks
    placement : str
        How jobs are laid on nodes, see `PLACES`.

    Raises
    ------
    InputError
        If the platform lacks a partition that a job names.
    """
    amounts, pools = node_amounts(platform, tasks.resources), platform.pools
    n_partitions = len(pools)
    if len(tasks) and not 0 <= tasks.partition.min() <= tasks.partition.max() < n_partitions:
        raise InputError(f"{tasks.name}: jobs name partitions that {platform.name} has not; it has {n_partitions}.")
    kinds = np.column_stack([tasks.partition, tasks.anywhere, tasks.demand])
    kinds, kind = np.unique(kinds, axis=0, return_inverse=True)
    room = np.zeros(len(kinds), dtype=np.int64)
    for k, (partition, anywhere, *need) in enumerate(kinds.tolist()):
        hosts = np.array(pools[partition].hosts, dtype=np.int64)
        on_each = rooms(amounts[hosts], np.array(need))
        room[k] = most_parts(on_each if anywhere else np.minimum(on_each, 1), hosts, placement)
    return np.asarray(tasks.width <= room[kind.reshape(-1)])


def check_partitions(platform: Platform, pstates: Integers, name: str) -> None:
    """Raise `InputError` unless all nodes of each partition are equally fast: jobs take one time there.

    Parameters
    ----------
    platform : Platform
    pstates : ndarray of int64, shape (hosts,)
        In which they start.
    name : str
        Of the jobs, for the message.
    """
    for partition in platform.pools:
        first = platform.hosts[partition.hosts[0]]
        for h in partition.hosts:
            other = platform.hosts[h]
            speeds = [p.speed for p in other.pstates], [p.speed for p in first.pstates]
            if speeds[0] != speeds[1] or pstates[h] != pstates[partition.hosts[0]]:
                raise InputError(
                    f"{name}: partition {partition.name!r} of {platform.name} needs nodes of one speed; "
                    f"{first.name!r} and {other.name!r} differ. Make a partition of each kind (--partitions)."
                )
