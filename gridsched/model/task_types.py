"""Task types on host types: how long each takes and what it draws, the estimates and the hosts that follow."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.arrays import Booleans, Floats, Integers, distinct
from gridsched.errors import InputError
from gridsched.model.calendar import Calendar
from gridsched.model.estimates import Estimates, PStates, energy_matrix
from gridsched.model.limits import LARGEST
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.rules import Rules
from gridsched.model.run_times import RunTimes
from gridsched.model.tasks import Tasks

#: Work of every task of a type [flop]: the type's time alone decides how long it runs.
TYPED_TASK_FLOPS = 1e12


@dataclass(frozen=True)
class TaskTypes:
    """ETC and APC of task types on host types (paper 000, II-A).

    Attributes
    ----------
    etc : ndarray of float64, shape (task types, host types, P-states)
        Estimated time to compute [s]; infinite where a type cannot run.
    apc : ndarray of float64, same shape
        Average power consumption [W].
    host_type : ndarray of int64, shape (hosts,)
        Column of each host.
    task_type_names, host_type_names : tuple of str
    idle_w : ndarray of float64, shape (host types,)
        Power of a host of each type that executes nothing [W]; one number is taken for all.

    Raises
    ------
    InputError
        If idle powers are negative, infinite, or not one for each host type.
    """

    etc: Floats
    apc: Floats
    host_type: Integers
    task_type_names: tuple[str, ...] = ()
    host_type_names: tuple[str, ...] = ()
    idle_w: Floats = field(default_factory=lambda: np.zeros(()))

    def __post_init__(self) -> None:
        idle_w, n_types = np.asarray(self.idle_w, dtype=np.float64), self.etc.shape[1]
        if idle_w.shape not in ((), (n_types,)) or not np.all((idle_w >= 0) & (idle_w <= LARGEST)):
            raise InputError(
                f"Idle powers are {idle_w.tolist()}; there are {n_types} host types, and each needs "
                f"one from 0 to {LARGEST:g} W."
            )
        # the dataclass is frozen
        object.__setattr__(self, "idle_w", np.broadcast_to(idle_w, n_types))

    @property
    def eec(self) -> Floats:
        """Estimated energy consumption [J], infinite where a type cannot run."""
        return energy_matrix(self.etc, self.apc)

    def estimates(self, tasks: Tasks) -> TypedEstimates:
        """Return what a scheduler may know of these tasks.

        Raises
        ------
        InputError
            If the tasks have no types, or one that the matrices lack.
        """
        if tasks.task_type is None:
            raise InputError(f"{tasks.name}: the tasks have no task types; ETC needs them.")
        if len(tasks) and not 0 <= tasks.task_type.min() <= tasks.task_type.max() < len(self.etc):
            raise InputError(
                f"{tasks.name}: task types reach from {tasks.task_type.min()} to "
                f"{tasks.task_type.max()}; ETC has types 0 to {len(self.etc) - 1}."
            )
        return self._estimates(tasks.task_type)

    def _estimates(self, task_type: Integers) -> TypedEstimates:
        return TypedPowerEstimates(self.etc, self.apc, task_type, self.host_type, self.idle_w)


@dataclass(frozen=True)
class SystemWorkload:
    """A workload whose generator makes its system, too (papers 000 to 003).

    Attributes
    ----------
    platform : Platform
    tasks : Tasks
    types : TaskTypes or None
        None where tasks have no types, as the jobs of a log.
    rules : Rules
        The rules that the generator's parameters say.
    window_s : tuple of float, or None
        Begin and end of the time that the results are taken from [s].
    run_times : RunTimes or None
        How long tasks really take, where that is not what is estimated.
    estimates : Estimates or None
        What is known of times and powers, where that is more than `types` hold.
    notes : tuple of str
        What people should know of where the workload comes from.
    calendar : Calendar or None
        Which date second 0 is, where the workload has dates.
    platform_file : path or None
        The SimGrid file that the platform was read from, if it was.
    """

    platform: Platform
    tasks: Tasks
    types: TaskTypes | None
    rules: Rules = field(default_factory=Rules)
    window_s: tuple[float, float] | None = None
    run_times: RunTimes | None = None
    estimates: Estimates | None = None
    notes: tuple[str, ...] = ()
    calendar: Calendar | None = None
    platform_file: Path | None = None


@dataclass(frozen=True, eq=False)
class CountedBag:
    """Task types on machine types, and how many tasks and machines are of each.

    Attributes
    ----------
    etc, apc : ndarray of float64, shape (task types, machine types)
        Estimated time to compute [s] and average power consumption [W].
    tasks : ndarray of int64, shape (task types,)
    machines : ndarray of int64, shape (machine types,)
    idle_w : ndarray of float64, shape (machine types,)
        Idle power of one machine [W].
    task_type_names, machine_type_names : tuple of str
    """

    etc: Floats
    apc: Floats
    tasks: Integers
    machines: Integers
    idle_w: Floats
    task_type_names: tuple[str, ...]
    machine_type_names: tuple[str, ...]


def host_names(types: TaskTypes) -> list[str]:
    """Return ``TYPE-1``, ``TYPE-2``, ... for the hosts of each machine type."""
    seen: dict[str, int] = {}
    names = []
    for j in types.host_type.tolist():
        # SimGrid gives some characters a meaning of their own
        name = re.sub(r"[^\w.-]+", "_", types.host_type_names[j])
        seen[name] = seen.get(name, 0) + 1
        names.append(f"{name}-{seen[name]}")
    return names


def typed_platform(
    types: TaskTypes, host_names: Sequence[str] | None = None, *, name: str = "typed platform"
) -> Platform:
    """Return one-core hosts with one SimGrid P-state for each (task type, P-state).

    With speed ``F / ETC`` and power APC, SimGrid's energy plugin meters ``ETC x APC`` exactly.
    P-state k of task type i is the host's P-state ``i * K + k``. An idle host draws its type's
    `TaskTypes.idle_w` in each of them.

    Parameters
    ----------
    types : TaskTypes
    host_names : sequence of str, optional
        Default ``m1``, ``m2``, ...
    name : str
        Used in messages.
    """
    names = host_names or [f"m{k + 1}" for k in range(len(types.host_type))]
    by_type = [
        typed_pstates(types.etc[:, j], types.apc[:, j], float(types.idle_w[j])) for j in range(types.etc.shape[1])
    ]
    hosts = (Host(host, by_type[j]) for host, j in zip(names, types.host_type.tolist(), strict=True))
    return Platform(tuple(hosts), name=name)


def typed_pstates(time_s: Floats, power_w: Floats, idle_w: float) -> tuple[PState, ...]:
    """Return SimGrid's P-states of a one-core host whose power depends on the task type.

    Parameters
    ----------
    time_s : ndarray of float64, shape (task types, P-states)
        How long `TYPED_TASK_FLOPS` take [s]; infinite where a type cannot run.
    power_w : ndarray of float64, same shape
        Power meanwhile [W].
    idle_w : float
        Power without work [W].

    Returns
    -------
    tuple of PState
        Type after type, each with its P-states.
    """
    time, power = time_s.ravel(), power_w.ravel()
    feasible = np.isfinite(time)
    # SimGrid needs some speed where a type cannot run; nothing ever uses it
    speed = TYPED_TASK_FLOPS / np.where(feasible, time, 1.0)
    watts = np.where(feasible, power, 0.0)
    return tuple(PState(s, idle_w, w, w) for s, w in zip(speed.tolist(), watts.tolist(), strict=True))


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

    _of_tasks = ("task_type",)
    _lists: ClassVar[Mapping[str, str]] = {"_task_type_list": "task_type"}

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
        self.eec_matrix = energy_matrix(self.etc_matrix, self.apc_matrix)
        self._levels = self.etc_matrix.shape[2]
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

    def runnable(self, tasks: ArrayLike, hosts: ArrayLike) -> Booleans:
        """Whether each task's type can run on any of the hosts, in any P-state."""
        types = distinct(self.host_type[np.asarray(hosts)])
        by_type = np.asarray(np.isfinite(self.etc_matrix[:, types]).any(axis=(1, 2)))
        return by_type[self.task_type[np.asarray(tasks)]]

    def shortest_times(self) -> Floats:
        """Least ETC entry of each task's type on the hosts that there are [s], shape (tasks,)."""
        shortest = self.etc_matrix[:, distinct(self.host_type)].min(axis=(1, 2), initial=np.inf)
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

    def n_pstates(self, platform: Platform) -> Integers:
        """P-states of the matrices, for each host, shape (hosts,)."""
        return np.full(len(platform), self._levels)

    def host_pstate(self, task: int, pstate: int, host: int) -> int:
        """Return ``i * K + k`` for task type i and P-state k."""
        return self._task_type_list[task] * self._levels + pstate

    def scheduler_pstate(self, task: int, host_pstate: int) -> int:
        """Return k of ``i * K + k``."""
        return host_pstate % self._levels
