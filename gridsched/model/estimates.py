"""What a scheduler may know of run times and energies, and which jobs fit on nodes that they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.errors import InputError
from gridsched.model.arrived_columns import ArrivedColumns
from gridsched.model.platform import Platform
from gridsched.model.tasks import CORES, WHOLE_NODE, Tasks, constant, is_constant

# ----------------------
# Nodes that several jobs share: what they have, and which jobs they can run at all


#: How the parts of a job are laid on nodes: on the first nodes that have room, on those with the
#: most free cores, or on the first neighbours that have room.
PLACES = ("pack", "spread", "contiguous")


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


def most_parts(room: Integers, hosts: Integers, place: str, most_nodes: int | None = None) -> int:
    """Return how many parts of a job find room on nodes at once, laid as `place` says.

    Parameters
    ----------
    room : ndarray of int64, shape (nodes,)
        How many parts each node holds.
    hosts : ndarray of int64, shape (nodes,)
        Ids of the nodes, ascending.
    place : str
        One of `PLACES`: only where parts are contiguous it matters which nodes are neighbours.
    most_nodes : int, optional
        The most that a job may take.
    """
    most = len(room) if most_nodes is None else most_nodes
    if place != "contiguous":
        return int(np.sort(room)[::-1][:most].sum())
    hosts, room = hosts[room > 0], room[room > 0]
    best = 0
    for part in np.split(room, np.flatnonzero(np.diff(hosts) != 1) + 1):
        in_all = np.cumsum(part)
        before = np.concatenate([np.zeros(min(most, len(part)), dtype=np.int64), in_all[:-most]])
        best = max(best, int((in_all - before).max(initial=0)))
    return best


def jobs_that_fit(platform: Platform, tasks: Tasks, place: str = "pack") -> Booleans:
    """Return which jobs find room in their partition if nothing else runs there, shape (tasks,).

    Parameters
    ----------
    platform : Platform
    tasks : Tasks
    place : str
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
        room[k] = most_parts(on_each if anywhere else np.minimum(on_each, 1), hosts, place)
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


# ----------------------
# What a scheduler may know of execution times, powers and energies (ETC, APC, EEC)


#: One P-state of all hosts, or an array of that of each of the hosts, shape (hosts,).
PStates = int | Integers


#: ``reveal(n)``: let concealed estimates know the first n tasks, which have arrived.
Reveal = Callable[[int], None]


class Estimates(ABC):
    """Estimated time to compute, power and energy of tasks on hosts.

    Every method takes arrays of task ids and host ids and one P-state, or that of each host, and
    returns an array of shape (tasks, hosts). A pair that is infeasible has infinite time and
    energy.
    """

    #: Fields with an entry for each task, and lists of the entries of some: a policy sees those of tasks that arrived.
    _of_tasks: ClassVar[tuple[str, ...]] = ()
    _lists: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def of(self, tasks: Tasks) -> Estimates:
        """Return what these estimates would be for other tasks on the same hosts."""

    @abstractmethod
    def etc(self, tasks: ArrayLike, hosts: ArrayLike, pstate: PStates = 0) -> Floats:
        """Estimated time to compute [s], shape (tasks, hosts)."""

    @abstractmethod
    def apc(self, tasks: ArrayLike, hosts: ArrayLike, pstate: PStates = 0) -> Floats:
        """Average power consumption [W] while a task runs alone on its share of the host."""

    def eec(self, tasks: ArrayLike, hosts: ArrayLike, pstate: PStates = 0) -> Floats:
        """Estimated energy consumption [J]: time times power."""
        return self.etc(tasks, hosts, pstate) * self.apc(tasks, hosts, pstate)

    def runnable(self, tasks: ArrayLike, hosts: ArrayLike) -> Booleans:
        """Whether each task can run on any of the hosts, shape (tasks,)."""
        return np.asarray(np.isfinite(self.etc(tasks, hosts)).any(axis=1))

    @abstractmethod
    def shortest_times(self) -> Floats:
        """Run time of each task where it is shortest [s], shape (tasks,).

        Over all hosts and P-states; infinite where the task can run nowhere.
        """

    @abstractmethod
    def run_time(self, task: int, host: int, pstate: int) -> float:
        """Estimated run time [s] of one task, the scalar twin of `etc`."""

    def energy(self, task: int, host: int, pstate: int) -> float:
        """Estimated energy [J] of one task, the scalar twin of `eec`."""
        return float(self.eec([task], [host], pstate)[0, 0])

    def run_times(self, tasks: Integers, hosts: Integers, pstates: Integers) -> Floats:
        """Run times [s] of task k on host k in P-state k, shape (tasks,)."""
        places = zip(tasks.tolist(), hosts.tolist(), pstates.tolist(), strict=True)
        return np.array([self.run_time(*place) for place in places], dtype=np.float64)

    def energies(self, tasks: Integers, hosts: Integers, pstates: Integers) -> Floats:
        """Estimated energies [J] of task k on host k in P-state k, shape (tasks,)."""
        places = zip(tasks.tolist(), hosts.tolist(), pstates.tolist(), strict=True)
        return np.array([self.energy(*place) for place in places], dtype=np.float64)

    def n_pstates(self, platform: Platform) -> Integers:
        """P-states a scheduler may choose on each host, shape (hosts,)."""
        return platform.n_pstates

    def width(self, task: int, host: int) -> int:
        """Nodes that a task takes on the cluster of a host; a serial one takes its host."""
        return 1

    def widths(self, tasks: Integers, hosts: Integers) -> Integers:
        """Nodes that task k takes on the cluster of host k, shape (tasks,)."""
        return np.ones(len(tasks), dtype=np.int64)

    def n_cores(self, task: int, host: int) -> int:
        """Cores that a task takes in all, if its first part lies on this host."""
        return self.width(task, host)

    def numbers_of_cores(self, tasks: Integers, hosts: Integers) -> Integers:
        """Cores that task k takes in all if its first part lies on host k, shape (tasks,)."""
        return self.widths(tasks, hosts)

    def host_pstate(self, task: int, pstate: int, host: int) -> int:
        """Return the host's P-state that serves a task in the scheduler's P-state `pstate`."""
        return pstate

    def scheduler_pstate(self, task: int, host_pstate: int) -> int:
        """Return the scheduler's P-state of a task that runs in the host's; see `host_pstate`."""
        return host_pstate

    def concealed(self) -> tuple[Self, Reveal]:
        """Return the estimates as a policy gets them, of no task, and what makes it know more.

        Estimates that a policy sees whole in any case return themselves.
        """
        if not self._of_tasks:
            return self, lambda n_tasks: None
        columns = {name: getattr(self, name) for name in self._of_tasks}
        hidden = {name: each for name, each in columns.items() if each is not None and not is_constant(each)}
        seen, arrived = copy(self), ArrivedColumns(**hidden)  # a constant shows nothing of what is to come
        vars(seen).update({name: [] for name in self._lists})

        def reveal(n_tasks: int) -> None:
            vars(seen).update(arrived.first(n_tasks))
            for name, column in self._lists.items():
                entries = getattr(seen, name)
                entries += getattr(seen, column)[len(entries) :].tolist()

        reveal(0)
        return seen, reveal

    @property
    def always_feasible(self) -> bool:
        """Whether every task is known to run on every host."""
        return False

    def host_groups(self, hosts: ArrayLike, pstate: PStates = 0) -> Integers:
        """Number each host's group; hosts of one group take the same time for every task."""
        return np.arange(len(np.asarray(hosts)))


class FlopsEstimates(Estimates):
    """Run time = flops / speed, for bags of distinct tasks (algorithms A, ``p_ij = w_i / s_j``).

    Parameters
    ----------
    platform : Platform
    tasks : Tasks
    place : str
        How jobs that share nodes are laid on them, see `PLACES`.
    """

    _of_tasks = ("_flops", "_width", "_size", "_fits")
    _lists: ClassVar[Mapping[str, str]] = {"_flops_list": "_flops"}

    def __init__(self, platform: Platform, tasks: Tasks, place: str = "pack") -> None:
        self._platform, self._place = platform, place
        self._flops = tasks.flops
        self._speed = platform.speed
        self._power = platform.busy_w / platform.cores[:, None]
        self._width, self._size = tasks.width, tasks.size
        #: cores of each host for one of a task's size
        self._cores_each = platform.cores if tasks.take_whole_nodes else constant(1, (len(platform),))
        #: which tasks find room, where parts take room on a host beside others
        self._fits = jobs_that_fit(platform, tasks, place) if tasks.share_nodes else None
        if self._fits is not None:
            self._parts, self._amounts = tasks.parts, node_amounts(platform, tasks.resources)
        # plain lists: reading one number from an ndarray costs several times as much
        self._flops_list: list[float] = tasks.flops.tolist()
        self._speed_list: list[list[float]] = platform.speed.tolist()

    def of(self, tasks: Tasks) -> FlopsEstimates:
        """Return the other tasks' flops over the same speeds."""
        return FlopsEstimates(self._platform, tasks, self._place)

    def etc(self, tasks: ArrayLike, hosts: ArrayLike, pstate: PStates = 0) -> Floats:
        """Flops over speed [s], shape (tasks, hosts)."""
        tasks, hosts = np.asarray(tasks), np.asarray(hosts)
        times = self._flops[tasks][:, None] / self._speed[hosts, pstate][None, :]
        return times if self._fits is None else np.where(self._lie_alone(tasks, hosts), times, np.inf)

    def _lie_alone(self, tasks: Integers, hosts: Integers) -> Booleans:
        """Whether a host of its partition has room for all parts of a task, shape (tasks, hosts)."""
        parts, members = self._parts, partition_members(self._platform)
        need = parts.demand[tasks] * parts.width[tasks, None]
        room = (self._amounts[hosts][None] >= need[:, None]).all(axis=2)
        together = parts.anywhere[tasks] | (parts.width[tasks] == 1)
        return np.asarray(room & members[parts.partition[tasks]][:, hosts] & together[:, None])

    def runnable(self, tasks: ArrayLike, hosts: ArrayLike) -> Booleans:
        """Every task runs where its cluster has hosts enough for its parts.

        One that shares nodes needs room in its partition, whichever hosts are named.
        """
        tasks, hosts = np.asarray(tasks), np.asarray(hosts)
        if self._fits is not None:
            return self._fits[tasks]
        largest = int(np.bincount(self._platform.cluster_of[hosts]).max(initial=0))
        return self._width[tasks] <= largest

    def apc(self, tasks: ArrayLike, hosts: ArrayLike, pstate: PStates = 0) -> Floats:
        """Power of a task's share of the fully loaded host [W], shape (tasks, hosts): of all its cores."""
        tasks, hosts = np.asarray(tasks), np.asarray(hosts)
        return self._power[hosts, pstate] * (self._size[tasks][:, None] * self._cores_each[hosts])

    def shortest_times(self) -> Floats:
        """Flops over the largest speed [s], shape (tasks,)."""
        tasks = np.arange(len(self._flops))
        fits = self.runnable(tasks, np.arange(len(self._platform)))
        return np.where(fits, self._flops / np.nanmax(self._speed, initial=0.0), np.inf)

    def run_time(self, task: int, host: int, pstate: int) -> float:
        """Flops over speed [s]."""
        return self._flops_list[task] / self._speed_list[host][pstate]

    def width(self, task: int, host: int) -> int:
        """Return `Tasks.width`: every cluster takes as many nodes."""
        return self._width.item(task)

    def widths(self, tasks: Integers, hosts: Integers) -> Integers:
        """Return `Tasks.width` of each, shape (tasks,)."""
        return self._width[tasks]

    def n_cores(self, task: int, host: int) -> int:
        """Cores of all its parts; whole nodes give all that they have."""
        return self._size.item(task) * self._cores_each.item(host)

    def numbers_of_cores(self, tasks: Integers, hosts: Integers) -> Integers:
        """Cores of all parts of each, shape (tasks,); whole nodes give all that they have."""
        return self._size[tasks] * self._cores_each[hosts]

    @property
    def always_feasible(self) -> bool:
        """True: flops run everywhere."""
        return True

    def host_groups(self, hosts: ArrayLike, pstate: PStates = 0) -> Integers:
        """Hosts of equal speed form a group, shape (hosts,)."""
        speed = self._speed[np.asarray(hosts), pstate]
        return np.unique(speed, return_inverse=True)[1].reshape(-1)


def energy_matrix(time_s: Floats, power_w: Floats) -> Floats:
    """Return time by power [J], infinite where the time is."""
    return np.multiply(time_s, power_w, out=np.full(time_s.shape, np.inf), where=np.isfinite(time_s))


def relative_speed(platform: Platform) -> Floats:
    """Speed of each host and P-state over the fastest host's in P-state 0, shape as `speed`.

    A time in a log is that of the fastest host in P-state 0: there it is exactly itself.
    """
    return platform.speed / platform.speed[:, 0].max(initial=0.0)


class RequestedTimes(FlopsEstimates):
    """Run time = the time that was asked for, longer on slower hosts and in slower P-states.

    Users ask for more than their jobs take: these are upper bounds (algorithms I).

    Raises
    ------
    InputError
        If the tasks have no requested times.
    """

    def __init__(self, platform: Platform, tasks: Tasks, place: str = "pack") -> None:
        super().__init__(platform, tasks, place)
        if tasks.requested_time_s is None:
            raise InputError(f"{tasks.name}: the tasks have no requested times.")
        # seconds in the place of flops, over relative speeds: exact where that is 1
        self._flops = tasks.requested_time_s
        self._flops_list = tasks.requested_time_s.tolist()
        self._speed = relative_speed(platform)
        self._speed_list = self._speed.tolist()

    def of(self, tasks: Tasks) -> RequestedTimes:
        """Return the other tasks' requested times on the same hosts."""
        return RequestedTimes(self._platform, tasks, self._place)
