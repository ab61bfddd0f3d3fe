"""Where it makes no difference which node a job has, and so the number of free places is all that counts.

Jobs that hold places for whole stays can always change among equal places so that all fit whose number fits at
each time. Reservations on such places therefore need no nodes, however the machine is described: as nodes of one
core, as nodes that each job takes whole, or as the cores of larger nodes.
"""

from __future__ import annotations

import numpy as np

from gridsched.arrays import Booleans, Integers


class Pools:
    """Partitions with the same hosts as one pool each.

    Parameters
    ----------
    members : ndarray of bool, shape (partitions, hosts)

    Attributes
    ----------
    of_partition : ndarray of int64, shape (partitions,)
    members : ndarray of bool, shape (pools, hosts)
    apart : ndarray of bool, shape (pools,)
        Whether a pool shares no host with another.
    """

    def __init__(self, members: Booleans) -> None:
        rows = [row.tobytes() for row in members]
        first = list(dict.fromkeys(rows))
        self.of_partition: Integers = np.array([first.index(row) for row in rows], dtype=np.int64)
        self.members: Booleans = members[[rows.index(row) for row in first]]
        self.apart: Booleans = ~(self.members & (self.members.sum(axis=0) > 1)).any(axis=1)


def equal_places(amounts: Integers, demand: Integers, *, lie_apart: bool) -> Integers | None:
    """Return how many parts of any jobs each host holds at once; None where that depends on the jobs.

    Parameters
    ----------
    amounts : ndarray of int64, shape (hosts, resources)
        What each host has, cores first.
    demand : ndarray of int64, shape (jobs, resources)
        What each part of the jobs takes, at least one core.
    lie_apart : bool
        Whether some job needs a host for each of its parts.

    Examples
    --------
    >>> import numpy as np
    >>> nodes = np.array([[4, 64], [4, 64]])  # cores and memory
    >>> equal_places(nodes, np.array([[3, 8], [4, 64]]), lie_apart=True)
    array([1, 1])
    >>> equal_places(nodes, np.array([[1, 16], [1, 8]]), lie_apart=False)
    array([4, 4])
    >>> equal_places(nodes, np.array([[1, 16], [2, 8]]), lie_apart=False)
    """
    places: Integers = amounts[:, 0] // demand[:, 0].min()
    # so many of the largest fit, and one more of the smallest does not
    if (places[:, None] * demand.max(axis=0) > amounts).any() or (lie_apart and places.max(initial=0) > 1):
        return None
    return places
