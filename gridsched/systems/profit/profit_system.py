"""Systems and bags of paper 003, drawn: times and powers by type, and how many tasks of each type.

The paper's measured data could not be found; synthetic data of the same size take their place
(algorithms E4). The system, and how frequent its task types are, follow from its own seed; the
tasks of a bag belong to a replicate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.limits import Cov, Positive, Seed
from gridsched.model.rules import Rules
from gridsched.model.seeds import random_stream
from gridsched.model.task_types import (
    TYPED_TASK_FLOPS,
    CountedBag,
    SystemWorkload,
    TaskTypes,
    host_names,
    typed_platform,
)
from gridsched.model.tasks import make_tasks
from gridsched.workloads.etc_matrices import cvb
from gridsched.workloads.generator_keys import MAX_MACHINES, MAX_TASKS, SystemKeys, keys_between
from gridsched.workloads.typed_csv import read_machines_and_idle_power, read_task_counts, read_task_types

_FILES = ("machines_csv", "etc_csv", "apc_csv")


class ProfitBag(SystemKeys):
    """Parameters of a system and of one bag; the defaults are those of the paper's size.

    A cov is a standard deviation over its mean, as in `etc_matrices.cvb`. Files take the place of
    what is drawn: ETC, APC and machines (``machine_type,count[,idle_w]``) all together, and the
    numbers of tasks (``task_type,tasks``).
    """

    kind: Literal["profit"] = "profit"
    seed: Seed = 5
    replicate: Seed = 0
    # the system, the same for all bags
    system_seed: Seed = 5
    task_types: int = Field(default=30, ge=1, le=100_000)
    machine_types: int = Field(default=9, ge=1, le=100_000)
    machines_per_type: int = Field(default=40, ge=1, le=1_000_000)
    time_mean_s: Positive = 100.0
    time_task_cov: Cov = 0.5
    time_machine_cov: Cov = 0.35
    #: so that the cap of 55 kW binds near the fast end (the paper's own data could not be found)
    power_mean_w: ClassVar[float] = 200.0
    power_task_cov: Cov = 0.1
    power_machine_cov: Cov = 0.25
    idle_share: float = Field(default=0.0, ge=0, le=1)
    #: parameters of the Dirichlet distribution of task types, made up likewise
    evenness: ClassVar[float] = 3.0
    # a bag
    tasks: int = Field(default=11_000, ge=1, le=10**12)
    # such bags, one after the other
    bags: int = Field(default=1, ge=1, le=100_000)
    bag_interval_s: Positive = 3600.0
    # measured values instead of drawn ones
    machines_csv: str | None = None
    etc_csv: str | None = None
    apc_csv: str | None = None
    counts_csv: str | None = None

    @property
    def rules(self) -> Rules:
        """The rules of the run: the usual ones."""
        return Rules()

    def counted_bag(self) -> CountedBag:
        """Return the first bag by its counts."""
        system = draw_or_read_profit_system(self)
        counts = draw_task_counts(self, system)
        names = system.task_type_names, system.machine_type_names
        return CountedBag(system.etc, system.apc, counts, system.machines, system.idle_w, *names)

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Refuse keys that contradict each other."""
        self.check_files(together=_FILES, needed={"etc_csv": ["counts_csv"]}, replaced=_REPLACED)
        self.check_entries("task_types and machine_types", self.task_types * self.machine_types)
        self.check_entries("task_types and bags", self.task_types * self.bags)
        return self


#: File -> the keys it takes the place of.
_REPLACED = {"etc_csv": keys_between(ProfitBag, "task_types", "idle_share"), "counts_csv": {"tasks"}}


@dataclass(frozen=True, eq=False)
class ProfitSystem:
    """Task types on machine types.

    Attributes
    ----------
    etc : ndarray of float64, shape (task types, machine types)
        Estimated time to compute [s].
    apc : ndarray of float64, same shape
        Average power consumption [W].
    idle_w : ndarray of float64, shape (machine types,)
        Idle power of one machine [W].
    machines : ndarray of int64, shape (machine types,)
        Machines of each type.
    frequency : ndarray of float64, shape (task types,)
        Probability that a task is of each type.
    task_type_names, machine_type_names : tuple of str
    """

    etc: Floats
    apc: Floats
    idle_w: Floats
    machines: Integers
    frequency: Floats
    task_type_names: tuple[str, ...]
    machine_type_names: tuple[str, ...]

    @property
    def types(self) -> TaskTypes:
        """The system with its machines one by one, type after type."""
        host_type = np.repeat(np.arange(len(self.machines)), self.machines)
        return TaskTypes(
            self.etc[:, :, None],
            self.apc[:, :, None],
            host_type,
            self.task_type_names,
            self.machine_type_names,
            self.idle_w,
        )


def draw_or_read_profit_system(spec: ProfitBag) -> ProfitSystem:
    """Return the system that `spec` asks for, drawn or from its files.

    Raises
    ------
    InputError
        If a file cannot be read, or has several P-states.
    """
    if spec.etc_csv is None:
        return draw_profit_system(spec)
    assert spec.apc_csv is not None  # `ProfitBag` has checked that they go together
    assert spec.machines_csv is not None
    machines, idle_w = read_machines_and_idle_power(spec.machines_csv)
    types = read_task_types(spec.etc_csv, spec.apc_csv, machines, spec.machines_csv)
    if types.etc.shape[2] > 1:
        raise InputError(
            f"{spec.etc_csv}: it has the P-states 0 to {types.etc.shape[2] - 1}; paper 003 has "
            f"none. Keep the lines of one of them, as P-state 0."
        )
    rng = random_stream(spec.system_seed, "platform")
    return ProfitSystem(
        types.etc[:, :, 0],
        types.apc[:, :, 0],
        idle_w,
        np.array(list(machines.values())),
        rng.dirichlet(np.full(len(types.etc), spec.evenness)),
        types.task_type_names,
        types.host_type_names,
    )


def draw_profit_system(spec: ProfitBag) -> ProfitSystem:
    """Draw a system from `spec.system_seed` (algorithms E4).

    ETC and APC are CVB matrices, the task types' frequencies a Dirichlet draw with all parameters
    `spec.evenness`. Idle power is `spec.idle_share` of the mean over a machine type's column of
    APC (paper 003, V-C: 0.05).
    """
    rng = random_stream(spec.system_seed, "platform")
    shape = spec.task_types, spec.machine_types
    etc = cvb(rng, spec.time_mean_s, spec.time_task_cov, spec.time_machine_cov, *shape)
    apc = cvb(rng, spec.power_mean_w, spec.power_task_cov, spec.power_machine_cov, *shape)
    frequency = rng.dirichlet(np.full(spec.task_types, spec.evenness))
    machines = np.full(spec.machine_types, spec.machines_per_type, dtype=np.int64)
    return ProfitSystem(
        etc,
        apc,
        spec.idle_share * apc.mean(axis=0),
        machines,
        frequency,
        tuple(f"task{i + 1}" for i in range(spec.task_types)),
        tuple(f"machine{j + 1}" for j in range(spec.machine_types)),
    )


def draw_task_counts(spec: ProfitBag, system: ProfitSystem) -> Integers:
    """Return how many tasks of the first bag are of each type."""
    return draw_bags(spec, system)[0]


def draw_bags(spec: ProfitBag, system: ProfitSystem) -> Integers:
    """Return how many tasks of each bag are of each type, shape (bags, task types).

    As a file specifies, or drawn for a replicate: every task's type is drawn from
    `ProfitSystem.frequency` (paper 003, V-B); the cost does not grow with the number of tasks.
    """
    if spec.counts_csv is not None:
        counts = read_task_counts(spec.counts_csv, system.task_type_names)
        return np.tile(counts, (spec.bags, 1))
    rng = random_stream(spec.seed, "tasks", spec.replicate)
    return rng.multinomial(spec.tasks, system.frequency, size=spec.bags).astype(np.int64)


def generate_profit_bag(spec: ProfitBag) -> SystemWorkload:
    """Return a system and a bag of single tasks in random order, submitted at time 0.

    Further bags follow as a Poisson process with the mean distance `spec.bag_interval_s`.

    Parameters
    ----------
    spec : ProfitBag

    Raises
    ------
    InputError
        If the tasks are too many to be listed, or a file of `spec` cannot be read.
    """
    system = draw_or_read_profit_system(spec)
    bags = draw_bags(spec, system)
    total = int(bags.sum())
    if total > MAX_TASKS:
        what = "The bag has" if len(bags) == 1 else f"The {len(bags):,} bags have"
        raise InputError(
            f"{what} {total:,} tasks; a run lists each of them, and at most {MAX_TASKS:,}. "
            f"The linear programs (optimize) accept any number."
        )
    machines = int(system.machines.sum())
    if machines > MAX_MACHINES:
        raise InputError(
            f"The bag has {machines:,} machines; a run lists each of them, and at most "
            f"{MAX_MACHINES:,}. The linear programs (optimize) accept any number."
        )
    order = random_stream(spec.seed, "arrivals", spec.replicate)
    types_of_bags = [order.permutation(np.repeat(np.arange(len(bag)), bag)) for bag in bags]
    gaps_s = order.exponential(spec.bag_interval_s, len(bags) - 1)
    tasks = make_tasks(
        np.full(total, TYPED_TASK_FLOPS),
        np.repeat(np.cumsum([0.0, *gaps_s]), bags.sum(axis=1)),
        task_type=np.concatenate(types_of_bags),
        name=f"profit bag (seed {spec.seed}, replicate {spec.replicate})",
    )
    types = system.types
    platform = typed_platform(types, host_names(types), name="machines of the profit bag")
    return SystemWorkload(platform, tasks, types)
