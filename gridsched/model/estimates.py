"""What a scheduler may know of execution times, powers and energies (ETC, APC, EEC)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.model.shared_nodes import jobs_that_fit
from gridsched.model.tasks import ArrivedColumns, Tasks

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
        return self, lambda n_tasks: None

    @property
    def always_feasible(self) -> bool:
        """Whether every task is known to run on every host."""
        return False

    def host_groups(self, hosts: ArrayLike, pstate: PStates = 0) -> Integers:
        """Number each host's group; hosts of one group take the same time for every task."""
        return np.arange(len(np.asarray(hosts)))


class FlopsEstimates(Estimates):
    """Run time = flops / speed, for bags of distinct tasks (algorithms A, ``p_ij = w_i / s_j``)."""

    def __init__(self, platform: Platform, tasks: Tasks) -> None:
        self._platform = platform
        self._flops = tasks.flops
        self._speed = platform.speed
        self._power = platform.busy_w / platform.cores[:, None]
        self._width = tasks.width
        #: cores that a task takes in all, where they are not as many as nodes
        self._n_cores = None if tasks.demand is None or tasks.width is None else tasks.width * tasks.demand[:, 0]
        self._fits = None if tasks.demand is None else jobs_that_fit(platform, tasks)
        # plain lists: reading one number from an ndarray costs several times as much
        self._flops_list: list[float] = tasks.flops.tolist()
        self._speed_list: list[list[float]] = platform.speed.tolist()

    def of(self, tasks: Tasks) -> FlopsEstimates:
        """Return the other tasks' flops over the same speeds."""
        return FlopsEstimates(self._platform, tasks)

    def etc(self, tasks: ArrayLike, hosts: ArrayLike, pstate: PStates = 0) -> Floats:
        """Flops over speed [s], shape (tasks, hosts)."""
        tasks, hosts = np.asarray(tasks), np.asarray(hosts)
        return self._flops[tasks][:, None] / self._speed[hosts, pstate][None, :]

    def concealed(self) -> tuple[Self, Reveal]:
        """Return a copy that knows no task's flops yet, and what makes it know more."""
        columns = {"_flops": self._flops, "_width": self._width, "_n_cores": self._n_cores, "_fits": self._fits}
        seen, arrived = copy(self), ArrivedColumns(**columns)
        seen._flops_list = []

        def reveal(n_tasks: int) -> None:
            vars(seen).update(arrived.first(n_tasks))
            seen._flops_list += seen._flops[len(seen._flops_list) :].tolist()

        reveal(0)
        return seen, reveal

    def runnable(self, tasks: ArrayLike, hosts: ArrayLike) -> Booleans:
        """Every task runs on every host; a parallel one where its cluster has nodes enough.

        One that shares nodes needs room in its partition, whichever hosts are named.
        """
        tasks, hosts = np.asarray(tasks), np.asarray(hosts)
        if self._fits is not None:
            return self._fits[tasks]
        if self._width is None:
            return np.full(len(tasks), bool(len(hosts)))
        largest = int(np.bincount(self._platform.cluster_of[hosts]).max(initial=0))
        return self._width[tasks] <= largest

    def apc(self, tasks: ArrayLike, hosts: ArrayLike, pstate: PStates = 0) -> Floats:
        """Power of one core's share of the fully loaded host [W], shape (tasks, hosts).

        Of a parallel task: of all its nodes.
        """
        tasks, hosts = np.asarray(tasks), np.asarray(hosts)
        power = np.broadcast_to(self._power[hosts, pstate], (len(tasks), len(hosts)))
        shares = self._width if self._n_cores is None else self._n_cores
        return power if shares is None else power * shares[tasks][:, None]

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
        return 1 if self._width is None else self._width.item(task)

    def widths(self, tasks: Integers, hosts: Integers) -> Integers:
        """Return `Tasks.width` of each, shape (tasks,)."""
        return super().widths(tasks, hosts) if self._width is None else self._width[tasks]

    @property
    def always_feasible(self) -> bool:
        """True: flops run everywhere."""
        return True

    def host_groups(self, hosts: ArrayLike, pstate: PStates = 0) -> Integers:
        """Hosts of equal speed form a group, shape (hosts,)."""
        speed = self._speed[np.asarray(hosts), pstate]
        return np.unique(speed, return_inverse=True)[1].reshape(-1)


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

    def __init__(self, platform: Platform, tasks: Tasks) -> None:
        super().__init__(platform, tasks)
        if tasks.requested_time_s is None:
            raise InputError(f"{tasks.name}: the tasks have no requested times.")
        # seconds in the place of flops, over relative speeds: exact where that is 1
        self._flops = tasks.requested_time_s
        self._flops_list = tasks.requested_time_s.tolist()
        self._speed = relative_speed(platform)
        self._speed_list = self._speed.tolist()

    def of(self, tasks: Tasks) -> RequestedTimes:
        """Return the other tasks' requested times on the same hosts."""
        return RequestedTimes(self._platform, tasks)


class TypedEstimates(Estimates):
    """Run time and power by (task type, host type, P-state) matrices.

    Parameters
    ----------
    etc_matrix : array_like, shape (task types, host types, P-states)
        Estimated time to compute [s]; infinite where a type cannot run.
    apc_matrix : array_like, same shape
        Average power consumption [W].
    task_type : array_like, shape (tasks,)
        Row of each task.
    host_type : array_like, shape (hosts,)
        Column of each host.
    idle_w : array_like, shape (host types,) or ()
        Power of a host of each type that executes nothing [W].

    Raises
    ------
    InputError
        If shapes differ, or a feasible pair has a time or power that is not positive.
    """

    def __init__(
        self,
        etc_matrix: ArrayLike,
        apc_matrix: ArrayLike,
        task_type: ArrayLike,
        host_type: ArrayLike,
        idle_w: ArrayLike = 0.0,
    ) -> None:
        self.etc_matrix = np.asarray(etc_matrix, dtype=np.float64)
        self.apc_matrix = np.asarray(apc_matrix, dtype=np.float64)
        if self.etc_matrix.ndim != 3 or self.etc_matrix.shape != self.apc_matrix.shape:
            raise InputError(
                f"ETC has shape {self.etc_matrix.shape} and APC {self.apc_matrix.shape}; both need "
                "(task types, host types, P-states)."
            )
        feasible = np.isfinite(self.etc_matrix)
        if np.isnan(self.etc_matrix).any() or (self.etc_matrix[feasible] <= 0).any():
            raise InputError("ETC entries must be greater than 0, or infinite where infeasible.")
        if not (self.apc_matrix[feasible] >= 0).all():
            raise InputError("APC entries must be at least 0 W wherever ETC is finite.")
        self.task_type = np.asarray(task_type, dtype=np.int64)
        self.host_type = np.asarray(host_type, dtype=np.int64)
        self.idle_w = np.broadcast_to(np.asarray(idle_w, dtype=np.float64), self.etc_matrix.shape[1])
        self.eec_matrix = np.full(self.etc_matrix.shape, np.inf)
        self.eec_matrix[feasible] = self.etc_matrix[feasible] * self.apc_matrix[feasible]
        self._etc_list = self.etc_matrix.tolist()
        self._eec_list = self.eec_matrix.tolist()
        self._task_type_list = self.task_type.tolist()
        self._host_type_list = self.host_type.tolist()

    def of(self, tasks: Tasks) -> Self:
        """Return the other tasks' rows of the same matrices.

        Raises
        ------
        InputError
            If they have no task types.
        """
        if tasks.task_type is None:
            raise InputError(f"{tasks.name}: the tasks have no task types; ETC needs them.")
        others = copy(self)
        others.task_type = np.asarray(tasks.task_type, dtype=np.int64)
        others._task_type_list = others.task_type.tolist()
        return others

    def _block(self, matrix: NDArray[Any], tasks: ArrayLike, hosts: ArrayLike, pstate: PStates) -> NDArray[Any]:
        rows, columns = self.task_type[np.asarray(tasks)], self.host_type[np.asarray(hosts)]
        return matrix[rows[:, None], columns[None, :], pstate]

    def etc(self, tasks: ArrayLike, hosts: ArrayLike, pstate: PStates = 0) -> Floats:
        """Estimated time to compute [s], shape (tasks, hosts)."""
        return self._block(self.etc_matrix, tasks, hosts, pstate)

    def apc(self, tasks: ArrayLike, hosts: ArrayLike, pstate: PStates = 0) -> Floats:
        """Average power consumption [W], shape (tasks, hosts)."""
        return self._block(self.apc_matrix, tasks, hosts, pstate)

    def concealed(self) -> tuple[Self, Reveal]:
        """Return a copy that knows no task's type yet, and what makes it know more."""
        seen, arrived = copy(self), ArrivedColumns(task_type=self.task_type)
        seen._task_type_list = []

        def reveal(n_tasks: int) -> None:
            vars(seen).update(arrived.first(n_tasks))
            seen._task_type_list += seen.task_type[len(seen._task_type_list) :].tolist()

        reveal(0)
        return seen, reveal

    def runnable(self, tasks: ArrayLike, hosts: ArrayLike) -> Booleans:
        """Whether each task's type can run on any of the hosts, in any P-state."""
        types = np.unique(self.host_type[np.asarray(hosts)])
        by_type = np.asarray(np.isfinite(self.etc_matrix[:, types]).any(axis=(1, 2)))
        return by_type[self.task_type[np.asarray(tasks)]]

    def shortest_times(self) -> Floats:
        """Least ETC entry of each task's type on the hosts that there are [s], shape (tasks,)."""
        shortest = self.etc_matrix[:, np.unique(self.host_type)].min(axis=(1, 2), initial=np.inf)
        return shortest[self.task_type]

    def run_time(self, task: int, host: int, pstate: int) -> float:
        """ETC entry [s] of the task's and the host's type."""
        return self._etc_list[self._task_type_list[task]][self._host_type_list[host]][pstate]

    def run_times(self, tasks: Integers, hosts: Integers, pstates: Integers) -> Floats:
        """ETC entries [s] of task k on host k in P-state k, shape (tasks,)."""
        return self.etc_matrix[self.task_type[tasks], self.host_type[hosts], pstates]

    def energy(self, task: int, host: int, pstate: int) -> float:
        """EEC entry [J] of the task's and the host's type."""
        return self._eec_list[self._task_type_list[task]][self._host_type_list[host]][pstate]

    def energies(self, tasks: Integers, hosts: Integers, pstates: Integers) -> Floats:
        """EEC entries [J] of task k on host k in P-state k, shape (tasks,)."""
        return self.eec_matrix[self.task_type[tasks], self.host_type[hosts], pstates]

    @property
    def always_feasible(self) -> bool:
        """Whether no entry of the ETC matrix is infinite."""
        return bool(np.isfinite(self.etc_matrix).all())

    def host_groups(self, hosts: ArrayLike, pstate: PStates = 0) -> Integers:
        """Hosts of one type in one P-state form a group, shape (hosts,)."""
        types = self.host_type[np.asarray(hosts)]
        if np.ndim(pstate) == 0:
            return types
        both = np.stack([types, np.broadcast_to(pstate, types.shape)], axis=1)
        return np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)


class TypedPowerEstimates(TypedEstimates):
    """Typed estimates on hosts with one P-state for each (task type, P-state).

    SimGrid then meters a power that depends on the task type exactly: task type i in the
    scheduler's P-state k runs in the host's P-state ``i * K + k`` (`typed_platform`).

    Parameters
    ----------
    etc_matrix, apc_matrix, task_type, host_type, idle_w : array_like
        As in `TypedEstimates`.
    """

    def __init__(
        self,
        etc_matrix: ArrayLike,
        apc_matrix: ArrayLike,
        task_type: ArrayLike,
        host_type: ArrayLike,
        idle_w: ArrayLike = 0.0,
    ) -> None:
        super().__init__(etc_matrix, apc_matrix, task_type, host_type, idle_w)
        self._levels = self.etc_matrix.shape[2]

    def n_pstates(self, platform: Platform) -> Integers:
        """P-states of the matrices, for each host, shape (hosts,)."""
        return np.full(len(platform), self._levels)

    def host_pstate(self, task: int, pstate: int, host: int) -> int:
        """Return ``i * K + k`` for task type i and P-state k."""
        return self._task_type_list[task] * self._levels + pstate

    def scheduler_pstate(self, task: int, host_pstate: int) -> int:
        """Return k of ``i * K + k``."""
        return host_pstate % self._levels
