"""What a scheduler may know of execution times, powers and energies (ETC, APC, EEC)."""

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
from gridsched.model.room_on_nodes import jobs_that_fit, node_amounts, partition_members
from gridsched.model.tasks import Tasks, constant, is_constant

#: One P-state of all hosts, or an array of that of each of the hosts, shape (hosts,).
PStates = int | Integers

#: Times of so many tasks on all hosts are held at one time.
_TASKS_AT_ONCE = 4096

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

    def host_times(self, platform: Platform, n_tasks: int) -> Floats:
        """Return how long each host takes for all tasks one after the other [s], shape (hosts,).

        Each task in the P-state in which it is fastest there; infinite where some task cannot run.

        Parameters
        ----------
        platform : Platform
        n_tasks : int
        """
        numbers, hosts = self.n_pstates(platform), np.arange(len(platform))
        whole = np.zeros(len(hosts))
        for first in range(0, n_tasks, _TASKS_AT_ONCE):
            tasks = np.arange(first, min(first + _TASKS_AT_ONCE, n_tasks))
            least = np.full((len(tasks), len(hosts)), np.inf)
            for pstate in range(int(numbers.max(initial=1))):
                has = hosts[numbers > pstate]
                least[:, has] = np.minimum(least[:, has], self.etc(tasks, has, pstate))
            whole += least.sum(axis=0)
        return whole

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

    def insert(self, task: int, tasks: Tasks) -> None:
        """Take over that the tasks' own columns have one more, whose place is this; those behind it have moved up.

        Raises
        ------
        InputError
            If these estimates are not of tasks that may be added.
        """
        raise InputError(f"{tasks.name}: tasks can be added where times follow from flops or from requested times.")

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
    placement : str
        How jobs that share nodes are laid on them, see `PLACES`.
    """

    _of_tasks = ("_flops", "_width", "_size", "_fits")
    _lists: ClassVar[Mapping[str, str]] = {"_flops_list": "_flops"}

    def __init__(self, platform: Platform, tasks: Tasks, placement: str = "pack") -> None:
        self._platform, self._placement = platform, placement
        self._flops = tasks.flops
        self._speed = platform.speed
        self._power = platform.busy_w / platform.cores[:, None]
        self._width, self._size = tasks.width, tasks.size
        #: cores of each host for one of a task's size
        self._cores_each = platform.cores if tasks.take_whole_nodes else constant(1, (len(platform),))
        #: which tasks find room, where parts take room on a host beside others
        self._fits = jobs_that_fit(platform, tasks, placement) if tasks.share_nodes else None
        if self._fits is not None:
            self._parts, self._amounts = tasks.parts, node_amounts(platform, tasks.resources)
        # plain lists: reading one number from an ndarray costs several times as much
        self._flops_list: list[float] = tasks.flops.tolist()
        self._speed_list: list[list[float]] = platform.speed.tolist()

    def of(self, tasks: Tasks) -> FlopsEstimates:
        """Return the other tasks' flops over the same speeds."""
        return FlopsEstimates(self._platform, tasks, self._placement)

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

    def energy(self, task: int, host: int, pstate: int) -> float:
        """Energy of all parts of a task whose first lies on this host [J]; others may lie elsewhere, unlike `eec`."""
        return self.run_time(task, host, pstate) * (self._power.item(host, pstate) * self.n_cores(task, host))

    def energies(self, tasks: Integers, hosts: Integers, pstates: Integers) -> Floats:
        """Energies [J] of all parts of each, as `energy`, shape (tasks,)."""
        power_w = self._power[hosts, pstates] * self.numbers_of_cores(tasks, hosts)
        return np.asarray(self.run_times(tasks, hosts, pstates) * power_w)

    def run_times(self, tasks: Integers, hosts: Integers, pstates: Integers) -> Floats:
        """Flops over speed [s], shape (tasks,)."""
        return np.asarray(self._flops[tasks] / self._speed[hosts, pstates])

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

    def insert(self, task: int, tasks: Tasks) -> None:
        """Take over one more task; the columns that are those of `tasks` have it already."""
        self._flops_list.insert(task, self._flops.item(task))
        self._flops_list.pop()
        if self._size is not self._width and not is_constant(self._size):
            self._size[:] = tasks.size
        if self._fits is not None:
            self._fits[task + 1 :] = self._fits[task:-1]
            self._fits[task] = jobs_that_fit(self._platform, tasks.taken(np.array([task])), self._placement)[0]

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

    def __init__(self, platform: Platform, tasks: Tasks, placement: str = "pack") -> None:
        super().__init__(platform, tasks, placement)
        if tasks.requested_time_s is None:
            raise InputError(f"{tasks.name}: the tasks have no requested times.")
        # seconds in the place of flops, over relative speeds: exact where that is 1
        self._flops = tasks.requested_time_s
        self._flops_list = tasks.requested_time_s.tolist()
        self._speed = relative_speed(platform)
        self._speed_list = self._speed.tolist()

    def of(self, tasks: Tasks) -> RequestedTimes:
        """Return the other tasks' requested times on the same hosts."""
        return RequestedTimes(self._platform, tasks, self._placement)
