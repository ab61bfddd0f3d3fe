"""Nodes that several jobs share: what they have, and which jobs they can run at all."""

from __future__ import annotations

import numpy as np

from gridsched.arrays import Booleans, Integers
from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.model.tasks import CORES, Tasks

#: How the parts of a job are laid on nodes: on the first nodes that have room, on those with the
#: most free cores, or on the first neighbours that have room.
PLACES = ("pack", "spread", "contiguous")


def node_amounts(platform: Platform, resources: tuple[str, ...]) -> Integers:
    """Return what each host has of some resources, shape (hosts, resources)."""
    amounts = np.zeros((len(platform), len(resources)), dtype=np.int64)
    for h, host in enumerate(platform.hosts):
        has = {**dict(host.resources), CORES: host.cores}
        amounts[h] = [has.get(name, 0) for name in resources]
    return amounts


def rooms(amounts: Integers, need: Integers) -> Integers:
    """Return how many parts that take `need` of each resource find room on each host, shape (hosts,)."""
    resources = np.flatnonzero(need)
    return np.asarray((amounts[:, resources] // need[resources]).min(axis=1))


def jobs_that_fit(platform: Platform, tasks: Tasks) -> Booleans:
    """Return which jobs find room in their partition if nothing else runs there, shape (tasks,).

    Raises
    ------
    InputError
        If the platform lacks a partition that a job names.
    """
    shared, amounts = tasks.shared, node_amounts(platform, tasks.resources)
    n_partitions = len(platform.partitions)
    if len(tasks) and not 0 <= shared.partition.min() <= shared.partition.max() < n_partitions:
        raise InputError(f"{tasks.name}: jobs name partitions that {platform.name} has not; it has {n_partitions}.")
    kinds = np.column_stack([shared.partition, shared.anywhere, shared.demand])
    kinds, kind = np.unique(kinds, axis=0, return_inverse=True)
    room = np.zeros(len(kinds), dtype=np.int64)
    for k, (partition, anywhere, *need) in enumerate(kinds.tolist()):
        on_each = rooms(amounts[list(platform.partitions[partition].hosts)], np.array(need))
        room[k] = (on_each if anywhere else np.minimum(on_each, 1)).sum()
    return np.asarray(shared.width <= room[kind.reshape(-1)])


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
    for partition in platform.partitions:
        first = platform.hosts[partition.hosts[0]]
        for h in partition.hosts:
            other = platform.hosts[h]
            speeds = [p.speed for p in other.pstates], [p.speed for p in first.pstates]
            if speeds[0] != speeds[1] or pstates[h] != pstates[partition.hosts[0]]:
                raise InputError(
                    f"{name}: partition {partition.name!r} of {platform.name} needs nodes of one speed; "
                    f"{first.name!r} and {other.name!r} differ. Make a partition of each kind (--partitions)."
                )
