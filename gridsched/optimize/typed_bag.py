"""A bag of tasks by type on machines by type, as linear programs see it, and plans for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.errors import InputError, counted
from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.model.tariff import Tariff

#: Most tasks of one type, and most machines of one type: every count is then exact as a float.
MOST_TASKS = 10**12
#: A part of a task so near a whole one is a whole one.
NEARLY_WHOLE = 1e-9
MOST_MACHINES = 10**6


@dataclass(frozen=True, eq=False)
class TypedBag:
    """Task types with their numbers of tasks, on machine types with their numbers of machines.

    Attributes
    ----------
    etc : ndarray of float64, shape (task types, machine types)
        Estimated time to compute a task [s]; infinite where a type cannot run.
    apc : ndarray of float64, same shape
        Average power consumption meanwhile [W]; not looked at where a type cannot run.
    tasks : ndarray of int64, shape (task types,)
        Tasks of each type.
    machines : ndarray of int64, shape (machine types,)
        Machines of each type; each executes one task at a time.
    idle_w : ndarray of float64, shape (machine types,)
        Power of a machine that executes nothing [W].
    host_share : ndarray of float64, shape (machine types,)
        Share of a host that one machine is: 1 over its cores, where each core is a machine. Wear
        and depreciation of a tariff are those of a host.
    name : str
        Where it comes from.
    task_types, machine_types : tuple of str
        How its types are called, where they have names.
    notes : tuple of str
        What the programs do not see of it.

    Notes
    -----
    Sizes follow the numbers of types; tasks and machines are counts only.
    """

    etc: Floats
    apc: Floats
    tasks: Integers
    machines: Integers
    idle_w: Floats
    host_share: Floats
    name: str = ""
    task_types: tuple[str, ...] = ()
    machine_types: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return one line: how many tasks and machines of how many types."""
        tasks, machines = (
            f"{_counted(int(counts.sum()), noun)} of {_counted(int(np.count_nonzero(counts)), 'type')}"
            for counts, noun in ((self.tasks, "task"), (self.machines, "machine"))
        )
        return f"{self.name}: {tasks} on {machines}"

    @cached_property
    def usable(self) -> Booleans:
        """Pairs of a task type that has tasks and a machine type that has machines to run it."""
        return np.isfinite(self.etc) & (self.tasks > 0)[:, None] & (self.machines > 0)

    @cached_property
    def runnable(self) -> Floats:
        """`etc` where a type can run, else 0, so that 0 tasks take 0 s [s]."""
        return np.where(np.isfinite(self.etc), self.etc, 0.0)

    @cached_property
    def extra_w(self) -> Floats:
        """Power of a task above the idle power of its machine [W]; 0 where a type cannot run."""
        return np.where(np.isfinite(self.etc), self.apc - self.idle_w, 0.0)

    @property
    def all_idle_w(self) -> float:
        """Idle power of all machines together [W]."""
        return float(self.machines @ self.idle_w)

    @property
    def hosts(self) -> Floats:
        """Hosts of each machine type."""
        return self.machines * self.host_share

    def busy_s(self, x: ArrayLike) -> Floats:
        """Return the machine-seconds of work on each machine type [s].

        Parameters
        ----------
        x : array_like, shape (task types, machine types)
            Tasks, or parts of tasks, of each type on each machine type.
        """
        total: Floats = (np.asarray(x) * self.runnable).sum(axis=0)
        return total

    def host_busy_s(self, x: ArrayLike) -> Floats:
        """Return the same as seconds of hosts, all cores busy, by which they wear [s]."""
        return self.busy_s(x) * self.host_share

    def finish_s(self, x: ArrayLike) -> Floats:
        """Return F_j, when machines of each type finish if they share `x` evenly [s] (eq. 2)."""
        return self.busy_s(x) / np.maximum(self.machines, 1)

    def above_idle_j(self, x: ArrayLike) -> float:
        """Return the energy of the tasks `x` above their machines' idle power [J]."""
        return float((np.asarray(x) * self.runnable * self.extra_w).sum())

    def energy_j(self, x: ArrayLike, length_s: float) -> float:
        """Return the energy of the tasks `x` if all machines are on for `length_s` [J] (eq. 4)."""
        return self.above_idle_j(x) + self.all_idle_w * length_s


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def typed_bag(
    etc: ArrayLike,
    apc: ArrayLike,
    tasks: ArrayLike,
    machines: ArrayLike,
    idle_w: ArrayLike = 0.0,
    host_share: ArrayLike = 1.0,
) -> TypedBag:
    """Return a checked bag of tasks by type.

    Parameters
    ----------
    etc : array_like, shape (task types, machine types)
        Times [s]; infinite where a type cannot run.
    apc : array_like, same shape
        Powers [W].
    tasks : array_like of int, shape (task types,)
    machines : array_like of int, shape (machine types,)
    idle_w : array_like, shape (machine types,) or ()
        Idle power of one machine [W].
    host_share : array_like, shape (machine types,) or ()
        Share of a host that one machine is.

    Raises
    ------
    InputError
        If shapes differ, a number is out of its range, there are no tasks, or a type that has
        tasks can run nowhere.

    Examples
    --------
    >>> bag = typed_bag([[2, 4]], [[10, 2.5]], tasks=[12], machines=[1, 1])
    >>> float(bag.finish_s([[8, 4]]).max()), bag.energy_j([[8, 4]], 16.0)
    (16.0, 200.0)
    """
    times = np.array(etc, dtype=np.float64)
    powers = np.array(apc, dtype=np.float64)
    if times.ndim != 2 or times.shape != powers.shape:
        raise InputError(
            f"ETC has shape {times.shape} and APC {powers.shape}; both need one row for each task "
            f"type and one column for each machine type."
        )
    _check_matrix("ETC", "s", times, np.isfinite(times) | np.isnan(times) | (times < 0), SMALLEST)
    _check_matrix("APC", "W", powers, np.isfinite(times), 0.0)
    bag = TypedBag(
        times,
        powers,
        _counts("tasks", tasks, times.shape[0], MOST_TASKS),
        _counts("machines", machines, times.shape[1], MOST_MACHINES),
        _floats("idle power", idle_w, times.shape[1]),
        _floats("share of a host", host_share, times.shape[1]),
    )
    if not bag.tasks.any():
        raise InputError("The bag has no tasks; give at least one task type a number of tasks.")
    homeless = np.flatnonzero((bag.tasks > 0) & ~bag.usable.any(axis=1))
    if len(homeless):
        i = int(homeless[0])
        raise InputError(
            f"Task type {i} has {counted(int(bag.tasks[i]), 'task')} and no machine that can run it; give it a "
            f"finite time in ETC on a machine type that has machines."
        )
    return bag


def _check_matrix(name: str, unit: str, values: Floats, looked_at: Booleans, least: float) -> None:
    """Refuse the first entry that is out of range."""
    fine = (values >= least) & (values <= LARGEST)
    wrong = np.argwhere(looked_at & ~fine)
    if len(wrong):
        i, j = (int(k) for k in wrong[0])
        infinite = "; inf where a type cannot run" if name == "ETC" else ""
        raise InputError(
            f"{name} of task type {i} on machine type {j} is {values[i, j]:g} {unit}; it must lie "
            f"between {least:g} and {LARGEST:g} {unit}{infinite}."
        )


def _floats(name: str, values: ArrayLike, length: int) -> Floats:
    array = np.array(values, dtype=np.float64)
    wrong = array[~((array >= 0) & (array <= LARGEST))]
    if array.ndim > 1 or wrong.size:
        found = f"{wrong.flat[0]:g}" if wrong.size else f"shape {array.shape}"
        raise InputError(
            f"The {name} must be one number, or one for each machine type, from 0 to {LARGEST:g}; found {found}."
        )
    return np.array(np.broadcast_to(array, length))


def _counts(name: str, values: ArrayLike, length: int, most: int) -> Integers:
    array: NDArray[Any] = np.asarray(values)
    if array.shape != (length,):
        raise InputError(f"The numbers of {name} have shape {array.shape}; ETC needs {length}.")
    whole = np.asarray(array, dtype=np.float64)
    wrong = np.flatnonzero(~((whole >= 0) & (whole <= most) & (whole == np.floor(whole))))
    if len(wrong):
        k = int(wrong[0])
        raise InputError(f"Type {k} has {whole[k]:g} {name}; the number must be whole, from 0 to {most:,}.")
    return array.astype(np.int64)


@dataclass(frozen=True, eq=False)
class MachineCounts:
    """What each machine of one type executes.

    Attributes
    ----------
    types : ndarray of int64, shape (k,)
        Task types that the machines execute, in the order of execution: longest first.
    counts : ndarray of int64, shape (k, machines)
        Tasks of each of these on each machine.
    loads_s : ndarray of float64, shape (machines,)
        When each machine finishes [s].
    ready_s : ndarray of float64, shape (machines,)
        When each machine began [s].
    """

    types: Integers
    counts: Integers
    loads_s: Floats
    ready_s: Floats


@dataclass(frozen=True, eq=False)
class BagPlan:
    """Tasks by type on machines by type, and what they earn.

    Attributes
    ----------
    bag : TypedBag
    x : ndarray of float64 or int64, shape (task types, machine types)
        Tasks by type, divided or whole; 0 where nothing runs.
    makespan_s : float
        Time at which the last machine type finishes, or the next bag begins [s] (eq. 3); infinite
        where nothing runs. A power cap may demand a pause before the next bag.
    energy_j : float
        Of all machines until then, idle power included, without PUE [J] (eq. 4); infinite where
        nothing runs.
    tariff : Tariff or None
        What profits are counted by.
    profit_rate : float or None
        What such bags earn if they follow each other [money/s]; None without a tariff.
    bound : float or None
        What no schedule earns more than [money/s]; None where the program bounds no profit.
    power_cap_w : float
        Largest mean power drawn from the grid, PUE included [W].
    least_rate_per_s : float
        Bags per second that have been promised.
    machines : tuple of MachineCounts
        Of whole tasks: for each machine type, what its machines execute.
    """

    bag: TypedBag
    x: Floats | Integers
    makespan_s: float
    energy_j: float
    tariff: Tariff | None = None
    profit_rate: float | None = None
    bound: float | None = None
    power_cap_w: float = np.inf
    least_rate_per_s: float = 0.0
    machines: tuple[MachineCounts, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether running the bag is better than doing nothing, or demanded."""
        return bool(np.isfinite(self.makespan_s))

    @property
    def rate_per_s(self) -> float:
        """Bags per second r; 0 means "do not run"."""
        return 1.0 / self.makespan_s

    @property
    def keeps_rate(self) -> bool:
        """Whether the promised rate of bags is kept."""
        return not self.runs or self.makespan_s * self.least_rate_per_s <= 1 + NEARLY_WHOLE

    @property
    def finish_s(self) -> float:
        """When the last machine finishes whole tasks [s]."""
        return max(float(each.loads_s.max(initial=0.0)) for each in self.machines)

    @property
    def mean_power_w(self) -> float:
        """Drawn from the grid, PUE included [W]."""
        pue = 1.0 if self.tariff is None else self.tariff.pue
        return pue * (self.energy_j / self.makespan_s if self.runs else self.bag.all_idle_w)

    def profit_rate_under(self, tariff: Tariff) -> float:
        """Return what the plan earns if such bags follow each other [money/s] (eq. 6)."""
        busy_s = self.bag.host_busy_s(self.x)
        profit = tariff.profit(self.energy_j, busy_s, self.makespan_s, self.bag.hosts)
        return profit / self.makespan_s

    def under(self, tariff: Tariff | None) -> BagPlan:
        """Return the plan with what it earns under a tariff, if there is one."""
        rate = None if tariff is None else self.profit_rate_under(tariff)
        return replace(self, tariff=tariff, profit_rate=rate)


@runtime_checkable
class Planner(Protocol):
    """A policy whose plan follows from a program on the bag alone.

    Such a policy can be asked for its plan without a run (driver ``optimize`` of studies).

    Attributes
    ----------
    power_off_unused : bool
        Whether a run of it switches hosts off that the plan does not use.
    """

    power_off_unused: bool

    def divided(self, bag: TypedBag, tariff: Tariff | None) -> BagPlan:
        """Solve the program.

        Parameters
        ----------
        bag : TypedBag
        tariff : Tariff or None
            Prices and costs of the scenario.

        Raises
        ------
        InputError
            If a parameter is out of range, or a limit cannot be kept.
        """
