"""Systems and bags of paper 003, drawn: times and powers by type, and how many tasks of each type.

The paper's measured data could not be found; synthetic data of the same size take their place
(algorithms E4). The system, and how frequent its task types are, follow from its own seed; the
tasks of a bag belong to a replicate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from gridsched.model.limits import Cov, Positive, Seed
from gridsched.model.seeds import random_stream
from gridsched.workloads.etc_matrices import cvb

Floats = NDArray[np.float64]


class ProfitBag(BaseModel):
    """Parameters of a system and of one bag; the defaults are those of the paper's size.

    A cov is a standard deviation over its mean, as in `etc_matrices.cvb`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

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
    power_mean_w: Positive = 200.0
    power_task_cov: Cov = 0.1
    power_machine_cov: Cov = 0.25
    idle_share: float = Field(default=0.0, ge=0, le=1)
    evenness: Positive = 3.0
    # a bag
    tasks: int = Field(default=11_000, ge=1, le=10**12)


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
    """

    etc: Floats
    apc: Floats
    idle_w: Floats
    machines: NDArray[np.int64]
    frequency: Floats


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
    return ProfitSystem(etc, apc, spec.idle_share * apc.mean(axis=0), machines, frequency)


def draw_task_counts(spec: ProfitBag, system: ProfitSystem) -> NDArray[np.int64]:
    """Draw how many of `spec.tasks` tasks are of each type, for one replicate.

    Every task's type is drawn from `ProfitSystem.frequency` (paper 003, V-B); the cost does not
    grow with the number of tasks.
    """
    rng = random_stream(spec.seed, "tasks", spec.replicate)
    return rng.multinomial(spec.tasks, system.frequency).astype(np.int64)
