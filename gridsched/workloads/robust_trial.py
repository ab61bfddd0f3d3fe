"""A trial of paper 002 as a workload that brings its system: hosts, distributions and rules."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gridsched.model.platform import Host, Platform, PState
from gridsched.model.run_times import DrawnRunTimes
from gridsched.model.stochastic import GammaLaw, GammaTimes, StochasticTypes
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
    the losses of the power supply inside. Run times are Gamma distributed around their means; a
    task has the same luck wherever it runs.

    Parameters
    ----------
    spec : RobustTrial

    Returns
    -------
    SystemWorkload

    Raises
    ------
    InputError
        If the wanted total of cores is not met in many draws.
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
    truth = DrawnRunTimes(types.estimates(tasks), drawn.luck, law.quantile)
    return SystemWorkload(
        _platform(system), tasks, types, rules_of(spec, system), run_times=truth
    )  # fmt: skip


def _types(spec: RobustTrial, system: RobustSystem, law: GammaLaw) -> StochasticTypes:
    """Return means, wall power and distributions of task types on nodes."""
    means = system.mean_time_s
    return StochasticTypes(
        etc=means,
        apc=np.broadcast_to(system.wall_power_w, means.shape).copy(),
        host_type=np.repeat(np.arange(len(system.cores)), system.cores),
        task_type_names=tuple(f"type{k + 1}" for k in range(len(means))),
        host_type_names=tuple(f"node{j + 1}" for j in range(len(system.cores))),
        distributions=_distributions(means.tobytes(), means.shape, law, spec.grid_s),
    )


@lru_cache(maxsize=1)
def _distributions(
    means: bytes, shape: tuple[int, int, int], law: GammaLaw, step_s: float
) -> GammaTimes:  # fmt: skip
    """Return the distributions; trials on one system, one after the other, share them."""
    return GammaTimes(np.frombuffer(means).reshape(shape), law, step_s)


def _flops(system: RobustSystem) -> np.ndarray:
    """Return the work of each task type [flop]: the mean task has `TYPED_TASK_FLOPS`."""
    by_type = (system.mean_time_s / system.slowdown).mean(axis=(1, 2))
    return np.asarray(TYPED_TASK_FLOPS * by_type / by_type.mean())


def _platform(system: RobustSystem) -> Platform:
    """Return one one-core host for each core.

    Work over speed is the mean run time, where nodes differ by their slowdown alone.
    """
    mean_time_s = (system.mean_time_s / system.slowdown).mean()
    speeds = TYPED_TASK_FLOPS / (mean_time_s * system.slowdown)
    hosts = []
    for node, cores in enumerate(system.cores.tolist()):
        levels = zip(speeds[node].tolist(), system.wall_power_w[node].tolist(), strict=True)
        pstates = tuple(PState(speed, watts, watts, watts) for speed, watts in levels)
        hosts += [Host(f"node{node + 1}-{core + 1}", pstates) for core in range(cores)]
    return Platform(tuple(hosts), name="cores of the robust workload")
