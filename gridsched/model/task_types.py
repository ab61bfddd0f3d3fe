"""Task types on host types: how long each takes and what it draws, and the hosts that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.estimates import Estimates, TypedEstimates, TypedPowerEstimates
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.records import LARGEST
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
        feasible = np.isfinite(self.etc)
        energy = np.full(self.etc.shape, np.inf)
        energy[feasible] = self.etc[feasible] * self.apc[feasible]
        return energy

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
        What is known of times and powers, where that is more than `types` tell.
    notes : tuple of str
        What people should know of where the workload comes from.
    """

    platform: Platform
    tasks: Tasks
    types: TaskTypes | None
    rules: Rules = field(default_factory=Rules)
    window_s: tuple[float, float] | None = None
    run_times: RunTimes | None = None
    estimates: Estimates | None = None
    notes: tuple[str, ...] = ()


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
