"""From tasks divided among machine types to whole tasks on machines (paper 003, III-C to III-E)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gridsched.errors import InputError
from gridsched.model.tariff import Tariff
from gridsched.optimize.lpt import MachineCounts, longest_first
from gridsched.optimize.typed_bag import Floats, Integers, TypedBag

#: A part of a task so near a whole one is a whole one.
NEARLY_WHOLE = 1e-9


@dataclass(frozen=True, eq=False)
class Allocation:
    """Whole tasks on single machines, as counts.

    Attributes
    ----------
    bag : TypedBag
    tasks : ndarray of int64, shape (task types, machine types)
        Tasks of each type on each machine type.
    machines : tuple of MachineCounts
        For each machine type, what its machines execute.
    """

    bag: TypedBag
    tasks: Integers
    machines: tuple[MachineCounts, ...]

    @property
    def finish_s(self) -> float:
        """When the last machine finishes [s]: the makespan."""
        return max(float(m.loads_s.max(initial=0.0)) for m in self.machines)

    @property
    def busy_s(self) -> Floats:
        """Machine-seconds of work on each machine type [s]."""
        return self.bag.busy_s(self.tasks)

    def energy_j(self, length_s: float | None = None) -> float:
        """Return the energy of all machines until `length_s`, by default the makespan [J]."""
        return self.bag.energy_j(self.tasks, self.finish_s if length_s is None else length_s)


@dataclass(frozen=True)
class Earnings:
    """What an allocation earns if such bags follow each other.

    Attributes
    ----------
    length_s : float
        From one bag to the next [s]: the makespan, or longer where the power cap demands a pause.
    energy_j : float
        Of the machines over that time, without PUE [J].
    profit_rate : float
        A lower bound of the largest possible one, if `keeps_rate` [money/s].
    mean_power_w : float
        Drawn from the grid, PUE included [W].
    keeps_rate : bool
        Whether the promised rate of bags is kept.
    """

    length_s: float
    energy_j: float
    profit_rate: float
    mean_power_w: float
    keeps_rate: bool = True


def whole_tasks(bag: TypedBag, x: Floats) -> Integers:
    """Round divided tasks so that each type keeps its number of tasks (algorithm 1).

    Parameters
    ----------
    bag : TypedBag
    x : ndarray of float64, shape (task types, machine types)
        Not negative; each row adds up to the type's tasks.

    Returns
    -------
    ndarray of int64, shape (task types, machine types)
        Each row rounded down, and one more where the parts cut off are largest (ties: the lower
        machine type) until no task is missing.

    Raises
    ------
    InputError
        If a row does not add up to its type's tasks, as that of a plan that does not run.
    """
    down = np.floor(x + NEARLY_WHOLE)
    missing = bag.tasks - down.sum(axis=1).astype(np.int64)
    wrong = np.flatnonzero((missing < 0) | (missing > bag.usable.sum(axis=1)))
    if len(wrong):
        i = int(wrong[0])
        raise InputError(
            f"Task type {i} has {bag.tasks[i]} tasks, of which {x[i].sum():g} are placed; only a "
            f"plan that places all of them can be rounded."
        )
    cut_off = np.where(bag.usable, np.maximum(x - down, 0.0), -1.0)
    largest_first = np.argsort(-cut_off, axis=1, kind="stable")
    more = np.zeros_like(down)
    chosen = np.arange(x.shape[1]) < missing[:, None]
    np.put_along_axis(more, largest_first, chosen, axis=1)
    whole: Integers = (down + more).astype(np.int64)
    return whole


def recover(bag: TypedBag, x: Floats, ready_s: Sequence[Floats] | None = None) -> Allocation:
    """Round divided tasks and place them on machines, longest first (algorithms 1 and 2).

    Parameters
    ----------
    bag : TypedBag
    x : ndarray of float64, shape (task types, machine types)
        Divided tasks, as `DividedPlan.x`.
    ready_s : sequence of ndarray of float64, optional
        For each machine type, when each of its machines is ready for its first task [s]; by
        default all are at 0.

    Returns
    -------
    Allocation
        A schedule that can be executed; makespan and energy are at least those of the relaxation's
        bounds.
    """
    tasks = whole_tasks(bag, x)
    machines = tuple(
        longest_first(
            bag.etc[:, j], tasks[:, j], int(count), 0.0 if ready_s is None else ready_s[j]
        )
        for j, count in enumerate(bag.machines)
    )
    return Allocation(bag, tasks, machines)


def earnings(
    allocation: Allocation,
    tariff: Tariff,
    *,
    power_cap_w: float = np.inf,
    least_rate_per_s: float = 0.0,
) -> Earnings:
    """Return what an allocation earns under the constraints of programme (10).

    Parameters
    ----------
    allocation : Allocation
    tariff : Tariff
    power_cap_w : float
        Largest mean power drawn from the grid, PUE included [W].
    least_rate_per_s : float
        Promised bags per second.

    Raises
    ------
    InputError
        If the idle machines alone draw the capped power.

    Notes
    -----
    Rounding and LPT do not know the cap. A bag whose mean power exceeds it is followed by a pause
    of all machines that brings the mean down to it, so that the profit rate belongs to a legal
    schedule. A bag that loses money apart from standing costs waits as long as the promised rate
    allows, as in the programme.
    """
    bag = allocation.bag
    busy_s, above_idle_j = bag.host_busy_s(allocation.tasks), bag.above_idle_j(allocation.tasks)
    length = allocation.finish_s
    drawn = tariff.pue * above_idle_j
    room_w = power_cap_w - tariff.pue * bag.all_idle_w
    if drawn > length * room_w:
        if room_w <= 0:
            raise InputError(
                f"The power cap is {power_cap_w:g} W, but the idle machines alone draw "
                f"{tariff.pue * bag.all_idle_w:g} W; raise the cap or leave machines out."
            )
        length = drawn / room_w
    keeps = length * least_rate_per_s <= 1 + NEARLY_WHOLE
    if least_rate_per_s > 0 and tariff.profit(above_idle_j, busy_s, 0.0, bag.hosts) < 0:
        length = max(length, 1.0 / least_rate_per_s)
    energy = allocation.energy_j(length)
    return Earnings(
        length, energy, tariff.profit(energy, busy_s, length, bag.hosts) / length,
        tariff.pue * energy / length, keeps,
    )  # fmt: skip
