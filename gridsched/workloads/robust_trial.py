"""A trial of paper 002 as a workload that brings its system: hosts, distributions and rules."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gridsched.model.platform import Host, Platform, PState
from gridsched.model.run_times import DrawnRunTimes, RunTimes
from gridsched.model.stochastic import (
    Distributions,
    GammaLaw,
    GammaTimes,
    QuantileRunTimes,
    StochasticTypes,
)
from gridsched.model.task_types import TYPED_TASK_FLOPS, SystemWorkload
from gridsched.model.tasks import make_tasks
from gridsched.workloads.robust_system import (
    RobustSystem,
    RobustTrial,
    draw_robust_system,
    draw_robust_tasks,
    rules_of,
)


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
    drawn = draw_robust_tasks(spec, system)
    law = GammaLaw(spec.time_machine_cov)
    types = _types(spec, system, law)
    tasks = make_tasks(
        _flops(system)[drawn.task_type], drawn.submit_time_s,
        deadline_s=drawn.deadline_s, task_type=drawn.task_type,
        name=f"robust trial {spec.seed}.{spec.replicate}",
    )  # fmt: skip
    truth: RunTimes = DrawnRunTimes(types.estimates(tasks), drawn.luck, law.quantile)
    if system.measured is not None:
        truth = QuantileRunTimes(
            system.measured.times, drawn.task_type, types.host_type, drawn.luck
        )
    return SystemWorkload(
        _platform(system), tasks, types, rules_of(spec, system), run_times=truth
    )  # fmt: skip


def _types(spec: RobustTrial, system: RobustSystem, law: GammaLaw) -> StochasticTypes:
    """Return means, wall power and distributions of task types on nodes."""
    means, measured = system.mean_time_s, system.measured
    names = (
        tuple(f"type{k + 1}" for k in range(len(means))) if measured is None
        else measured.task_types
    )  # fmt: skip
    distributions: Distributions = (
        _distributions(means.tobytes(), means.shape, law, spec.grid_s) if measured is None
        else measured.times.coarsened(spec.grid_s)
    )  # fmt: skip
    return StochasticTypes(
        etc=means,
        apc=np.broadcast_to(system.wall_power_w, means.shape).copy(),
        host_type=np.repeat(np.arange(len(system.cores)), system.cores),
        task_type_names=names,
        host_type_names=system.node_names,
        distributions=distributions,
    )


@lru_cache(maxsize=1)
def _distributions(
    means: bytes, shape: tuple[int, int, int], law: GammaLaw, step_s: float
) -> GammaTimes:  # fmt: skip
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
