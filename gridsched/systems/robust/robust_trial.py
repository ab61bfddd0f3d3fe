"""Trials of paper 002: uncertain run times, hard deadlines (section VI; algorithms D1).

The system is drawn once from its own seed; arrivals, task types, deadlines and the luck of the run
times belong to a trial.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError, counted
from gridsched.model.limits import Count, CountRange, Positive, PositiveRange, Seed
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.rules import EnergyBudget, Rules
from gridsched.model.run_times import RunTimes, SampledRunTimes
from gridsched.model.seeds import random_stream
from gridsched.model.stochastic import Distributions, GammaLaw, GammaTimes, QuantileRunTimes, StochasticTypes
from gridsched.model.task_types import TYPED_TASK_FLOPS, SystemWorkload
from gridsched.model.tasks import make_tasks
from gridsched.workloads.etc_matrices import gamma
from gridsched.workloads.generator_keys import MAX_MACHINES, SystemKeys
from gridsched.workloads.measured_times import MeasuredTimes, read_run_times

#: So many draws of all nodes' cores may miss the wanted total before that is an error.
MAX_REDRAWS = 100_000
#: And so many draws of one node's.
MAX_SAMPLED = 100_000_000
#: Points of a distribution on the grid, and of all of them.
MAX_POINTS, MAX_POINTS_OF_ALL = 100_000, 50_000_000
#: The paper's equilibrium: cores and mean run time [s] for which its arrival rates are made.
PAPER_CORES = 48.3
PAPER_MEAN_TIME_S = 1353.0


class RobustTrial(SystemKeys):
    """Parameters of the system and of one trial; the defaults are the paper's.

    Times are in seconds (the paper's time units). A pair is the smallest and largest of a uniform
    draw. Where `measured_times_csv` is given, its task types and run times take the place of drawn
    ones.
    """

    kind: Literal["robust"] = "robust"
    seed: Seed = 0
    replicate: Seed = 0
    # the system, the same in all trials
    system_seed: Seed = 0
    nodes: Count = 8
    processors: CountRange = (1, 4)
    cores: CountRange = (1, 4)
    total_cores: Count | None = 48
    total_cores_tolerance: ClassVar[int] = 1
    pstates: int = Field(default=5, ge=1, le=100)
    pstate_slowdown: PositiveRange = (0.15, 0.25)
    power_w: PositiveRange = (125.0, 135.0)
    #: of the last P-state, paper 002, section VI
    lowest_voltage_v: ClassVar[tuple[float, float]] = (1.0, 1.15)
    highest_voltage_v: PositiveRange = (1.4, 1.55)
    supply_efficiency: PositiveRange = (0.90, 0.98)
    # run times
    task_types: Count = 100
    time_mean_s: Positive = 750.0
    time_task_cov: float = Field(default=0.25, ge=0, le=1)
    time_machine_cov: float = Field(default=0.25, ge=1e-3, le=1)
    time_node_cov: float = Field(default=0.0, ge=0, le=1)
    grid_s: Positive = 10.0
    measured_times_csv: str | None = None
    # a trial: phases of (tasks, mean time between arrivals)
    phases: tuple[tuple[Count, Positive], ...] = ((200, 8.0), (600, 48.0), (200, 8.0))
    scaled_to_system: bool = False
    deadline_factor: Positive = 1.0
    budget_tasks: Positive = 1000.0

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        """Refuse systems and trials that would not fit into memory."""
        n_times = self.task_types * self.nodes * self.pstates
        self.check_entries("task_types, nodes and pstates", n_times)
        self.check_entries("phases", self.n_tasks)
        least, most = (
            self.nodes * processors * cores for processors, cores in zip(self.processors, self.cores, strict=True)
        )
        total, tolerance = self.total_cores, self.total_cores_tolerance
        if least > MAX_MACHINES or (total is None and most > MAX_MACHINES):
            raise InputError(
                f"nodes, processors and cores give {least:,} to {most:,} cores; a run lists each "
                f"of them, and at most {MAX_MACHINES:,}."
            )
        if total is not None and not least - tolerance <= total <= most + tolerance:
            raise InputError(
                f"total_cores is {total}: {counted(self.nodes, 'node')} with {self.processors} processors of "
                f"{self.cores} cores have {least} to {most}."
            )
        return self

    @property
    def n_tasks(self) -> int:
        """Tasks of a trial."""
        return sum(count for count, _ in self.phases)

    @property
    def rules(self) -> Rules:
        """The rules of the run, which follow from the drawn system."""
        return rules_of(self, draw_robust_system(self))


@dataclass(frozen=True)
class RobustSystem:
    """Nodes with cores, P-states and power, and the mean run times of task types on them.

    Attributes
    ----------
    cores : ndarray of int64, shape (nodes,)
    slowdown : ndarray of float64, shape (nodes, P-states)
        Run time in each P-state over the task type's own.
    power_w : ndarray of float64, shape (nodes, P-states)
        Power of one core [W], before the power supply.
    supply_efficiency : ndarray of float64, shape (nodes,)
    mean_time_s : ndarray of float64, shape (task types, nodes, P-states)
        Mean run time [s], infinite where a type was not measured and so cannot run.
    measured : MeasuredTimes or None
        Measured run times in the place of drawn distributions.
    """

    cores: Integers
    slowdown: Floats
    power_w: Floats
    supply_efficiency: Floats
    mean_time_s: Floats
    measured: MeasuredTimes | None = None

    @property
    def wall_power_w(self) -> Floats:
        """Power of one core drawn from the grid [W], shape (nodes, P-states)."""
        return self.power_w / self.supply_efficiency[:, None]

    @property
    def t_avg_s(self) -> float:
        """Mean run time over types, nodes and P-states, unweighted [s]."""
        return float(self.mean_time_s[np.isfinite(self.mean_time_s)].mean())

    @property
    def node_names(self) -> tuple[str, ...]:
        """Names of the nodes, ``node1`` and so on."""
        return tuple(f"node{j + 1}" for j in range(len(self.cores)))

    def mean_by_type(self, times: Floats) -> Floats:
        """Return the mean over the nodes and P-states where each task type can run."""
        return np.asarray(np.mean(times, axis=(1, 2), where=np.isfinite(self.mean_time_s)))

    @property
    def p_avg_w(self) -> float:
        """Mean power over nodes and P-states, unweighted, before the supply (eq. 8) [W]."""
        return float(self.power_w.mean())

    def budget_j(self, tasks: float) -> float:
        """Return the energy budget ``t_avg * p_avg * tasks`` [J] (paper 002, eq. 8)."""
        return self.t_avg_s * self.p_avg_w * tasks


@dataclass(frozen=True)
class RobustTasks:
    """The tasks of one trial in order of arrival.

    Attributes
    ----------
    submit_time_s : ndarray of float64, shape (tasks,)
    task_type : ndarray of int64, shape (tasks,)
    deadline_s : ndarray of float64, shape (tasks,)
        Absolute hard deadlines [s].
    luck : ndarray of float64, shape (tasks,)
        The uniform number in (0, 1) that decides each task's true run time, wherever it runs.
    """

    submit_time_s: Floats
    task_type: Integers
    deadline_s: Floats
    luck: Floats


def draw_robust_system(spec: RobustTrial) -> RobustSystem:
    """Draw the nodes from `spec.system_seed` (algorithms D1).

    Raises
    ------
    InputError
        If the wanted total of cores is not met in many draws, or measured times are wrong.
    """
    rng = random_stream(spec.system_seed, "platform")
    cores = _draw_cores(rng, spec)
    n, levels = spec.nodes, spec.pstates
    steps = 1.0 + rng.uniform(*spec.pstate_slowdown, (n, levels))
    with np.errstate(over="ignore", invalid="ignore"):  # `_check_points` refuses what is infinite
        slowdown = np.cumprod(steps, axis=1, dtype=np.float64)
        frequency = slowdown[:, :1] / slowdown
    lowest, highest = (rng.uniform(*spec.lowest_voltage_v, n), rng.uniform(*spec.highest_voltage_v, n))
    share = np.arange(levels) / max(levels - 1, 1)
    voltage = highest[:, None] + (lowest - highest)[:, None] * share
    power = rng.uniform(*spec.power_w, n)[:, None] * (voltage / highest[:, None]) ** 2 * frequency
    efficiency = rng.uniform(*spec.supply_efficiency, n)
    type_mean = gamma(rng, spec.time_mean_s, spec.time_task_cov, spec.task_types)
    by_node = np.repeat(type_mean[:, None], n, axis=1)
    if spec.time_node_cov:
        by_node = by_node * gamma(rng, 1.0, spec.time_node_cov, by_node.shape)
    with np.errstate(over="ignore"):
        mean_time_s = by_node[:, :, None] * slowdown
    system = RobustSystem(cores, slowdown, power, efficiency, mean_time_s)
    if spec.measured_times_csv is not None:
        measured = read_run_times(spec.measured_times_csv, system.node_names, levels)
        system = replace(system, mean_time_s=measured.mean_s, measured=measured)
    _check_points(spec, system)
    return system


def _check_points(spec: RobustTrial, system: RobustSystem) -> None:
    """Refuse a grid on which distributions would have more points than can be computed with."""
    if system.measured is None:
        longest = system.mean_time_s * (1 + 10 * spec.time_machine_cov)
    else:
        longest = system.measured.times.longest_s
    points = longest / spec.grid_s
    if not (points.max() <= MAX_POINTS and points.sum() <= MAX_POINTS_OF_ALL):
        raise InputError(
            f"grid_s is {spec.grid_s:g}: with run times of up to {points.max() * spec.grid_s:.3g} "
            f"s a distribution has more than {MAX_POINTS:,} points, or all of them more than "
            f"{MAX_POINTS_OF_ALL:,}. Choose a coarser grid."
        )


def rules_of(spec: RobustTrial, system: RobustSystem) -> Rules:
    """Return the rules of a trial: one energy budget, with which everything stops.

    A core that runs nothing is put into its slowest P-state.
    """
    budget = EnergyBudget(system.budget_j(spec.budget_tasks), period_s=math.inf, enforcement="stop")
    return Rules(budget=budget, parked_pstate=spec.pstates - 1)


def _draw_cores(rng: np.random.Generator, spec: RobustTrial) -> Integers:
    """Draw the cores of the nodes until their total is what is wanted."""
    redraws = min(MAX_REDRAWS, MAX_SAMPLED // spec.nodes)
    for _ in range(redraws):
        processors = rng.integers(spec.processors[0], spec.processors[1] + 1, spec.nodes)
        cores = processors * rng.integers(spec.cores[0], spec.cores[1] + 1, spec.nodes)
        if spec.total_cores is None:
            return cores
        if abs(int(cores.sum()) - spec.total_cores) <= spec.total_cores_tolerance:
            return cores
    raise InputError(
        f"total_cores is {spec.total_cores}: none of {redraws:,} draws of {counted(spec.nodes, 'node')} "
        f"with {spec.processors} processors of {spec.cores} cores came within "
        f"{spec.total_cores_tolerance} of it."
    )


def draw_robust_tasks(spec: RobustTrial, system: RobustSystem) -> RobustTasks:
    """Draw arrivals, types, deadlines and luck of a trial (algorithms D1).

    A deadline is the arrival, plus the type's mean run time over nodes and P-states, plus
    `RobustSystem.t_avg_s`, both times `deadline_factor`, which is 1 in the paper.
    """
    arrivals = random_stream(spec.seed, "arrivals", spec.replicate)
    gaps = np.concatenate([arrivals.exponential(mean, count) for count, mean in spec.phases])
    if spec.scaled_to_system:
        gaps /= (system.cores.sum() / PAPER_CORES) * (PAPER_MEAN_TIME_S / system.t_avg_s)
    submit = np.cumsum(gaps)
    types = random_stream(spec.seed, "tasks", spec.replicate).integers(0, len(system.mean_time_s), spec.n_tasks)
    by_type = system.mean_by_type(system.mean_time_s)
    deadline = submit + spec.deadline_factor * (by_type[types] + system.t_avg_s)
    luck = random_stream(spec.seed, "runtime", spec.replicate).random(spec.n_tasks)
    # 0 can be drawn, and would be a run time of 0
    return RobustTasks(submit, types, deadline, np.maximum(luck, np.finfo(np.float64).tiny))


def generate_robust_trial(spec: RobustTrial) -> SystemWorkload:
    """Draw a system and one trial on it (paper 002, section VI; algorithms D1).

    Each core is a host of its own. It draws the same power whether it runs something or not, with
    the losses of the power supply inside. Run times are Gamma distributed around their means, or
    drawn from measurements; a task has the same luck wherever it runs.

    Parameters
    ----------
    spec : RobustTrial

    Returns
    -------
    SystemWorkload

    Raises
    ------
    InputError
        If the wanted total of cores is not met in many draws, or measured times are wrong.
    """
    system = draw_robust_system(spec)
    sampled = draw_robust_tasks(spec, system)
    law = GammaLaw(spec.time_machine_cov)
    types = _types(spec, system, law)
    tasks = make_tasks(
        _flops(system)[sampled.task_type],
        sampled.submit_time_s,
        deadline_s=sampled.deadline_s,
        task_type=sampled.task_type,
        name=f"robust trial {spec.seed}.{spec.replicate}",
    )
    truth: RunTimes = SampledRunTimes(types.estimates(tasks), sampled.luck, law.quantile)
    if system.measured is not None:
        truth = QuantileRunTimes(system.measured.times, sampled.task_type, types.host_type, sampled.luck)
    return SystemWorkload(_platform(system), tasks, types, rules_of(spec, system), run_times=truth)


def _types(spec: RobustTrial, system: RobustSystem, law: GammaLaw) -> StochasticTypes:
    """Return means, wall power and distributions of task types on nodes."""
    means, measured = system.mean_time_s, system.measured
    names = tuple(f"type{k + 1}" for k in range(len(means))) if measured is None else measured.task_types
    distributions: Distributions = (
        _distributions(means.tobytes(), means.shape, law, spec.grid_s)
        if measured is None
        else measured.times.coarsened(spec.grid_s)
    )
    return StochasticTypes(
        etc=means,
        apc=np.broadcast_to(system.wall_power_w, means.shape).copy(),
        host_type=np.repeat(np.arange(len(system.cores)), system.cores),
        task_type_names=names,
        host_type_names=system.node_names,
        distributions=distributions,
    )


@lru_cache(maxsize=1)
def _distributions(means: bytes, shape: tuple[int, int, int], law: GammaLaw, step_s: float) -> GammaTimes:
    """Return the distributions; trials on one system, one after the other, share them."""
    return GammaTimes(np.frombuffer(means).reshape(shape), law, step_s)


def _flops(system: RobustSystem) -> np.ndarray:
    """Return the work of each task type [flop]: the mean task has `TYPED_TASK_FLOPS`."""
    by_type = system.mean_by_type(system.mean_time_s / system.slowdown)
    return np.asarray(TYPED_TASK_FLOPS * by_type / by_type.mean())


def _platform(system: RobustSystem) -> Platform:
    """Return one one-core host for each core.

    Work over speed is the mean run time, where nodes differ by their slowdown alone.
    """
    fastest = system.mean_time_s / system.slowdown
    mean_time_s = fastest[np.isfinite(fastest)].mean()
    speeds = TYPED_TASK_FLOPS / (mean_time_s * system.slowdown)
    hosts = []
    for node, cores in enumerate(system.cores.tolist()):
        levels = zip(speeds[node].tolist(), system.wall_power_w[node].tolist(), strict=True)
        pstates = tuple(PState(speed, watts, watts, watts) for speed, watts in levels)
        name = system.node_names[node]
        hosts += [Host(f"{name}-{core + 1}", pstates) for core in range(cores)]
    return Platform(tuple(hosts), name="cores of the robust workload")
