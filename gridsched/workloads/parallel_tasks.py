"""Parallel tasks that arrive all day, and the workload that they make with their clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError
from gridsched.model.budget import DAY_S
from gridsched.model.parallel_estimates import ParallelEstimates, node_platform
from gridsched.model.seeds import random_stream
from gridsched.model.task_types import TYPED_TASK_FLOPS, SystemWorkload, TaskTypes
from gridsched.model.tasks import make_tasks
from gridsched.model.utility import UtilityFunctions
from gridsched.workloads.arrivals import (
    busy_hours_profile,
    draw_intervals,
    draw_waves,
    profile_arrivals,
    wave_arrivals,
)
from gridsched.workloads.parallel_csv import read_parallel_system, read_parallel_tasks
from gridsched.workloads.parallel_day import HOURS, ParallelDay
from gridsched.workloads.parallel_system import (
    Demand,
    ParallelSystem,
    Typical,
    draw_system,
)
from gridsched.workloads.utility_classes import draw_priorities

Floats = NDArray[np.float64]


def generate_parallel_day(spec: ParallelDay) -> SystemWorkload:
    """Draw clusters, types and tasks of paper 001, or read those that come from files.

    The same seed and replicate always give the same; each part has its own random stream, so
    that for instance other arrivals leave the clusters as they are.

    Parameters
    ----------
    spec : ParallelDay

    Returns
    -------
    SystemWorkload

    Raises
    ------
    InputError
        If a file of `spec` cannot be read or does not fit the others.
    """
    if spec.jobs_swf is not None:
        from gridsched.workloads.parallel_log import log_demand  # needed for logs alone

        typical, demand, time_s = log_demand(spec)
        return _assembled(spec, typical, demand, time_s)
    system = draw_or_read_system(spec)
    demand = (
        draw_demand(spec, system) if spec.tasks_csv is None
        else read_parallel_tasks(spec, system)
    )  # fmt: skip
    nodes = system.clusters.nodes_for(demand.cores)
    time_s = system.times.time_s(demand.task_type, nodes)
    return _assembled(spec, system.typical(), demand, time_s)


def draw_or_read_system(spec: ParallelDay) -> ParallelSystem:
    """Return the clusters and task types that `spec` asks for."""
    return draw_system(spec) if spec.etc_csv is None else read_parallel_system(spec)


def draw_demand(spec: ParallelDay, system: ParallelSystem) -> Demand:
    """Draw when tasks arrive, of which type, and how many cores they ask for (algorithms C2.5, 8).

    Types with narrow tasks arrive in waves, those with wide ones mostly in the busy hours; or all
    types have their bursts at the same times.

    Raises
    ------
    InputError
        If there are not as many shares of task types as types.
    """
    n_types = len(system.type_names)
    share = np.array(spec.task_type_shares or np.ones(n_types), dtype=np.float64)
    if len(share) != n_types:
        raise InputError(
            f"task_type_shares has {len(share)} numbers; {spec.etc_csv} has {n_types} task types, "
            "and each needs one."
        )
    rate = spec.tasks_per_day / DAY_S * share / share.sum()
    rng = random_stream(spec.seed, "arrivals", spec.replicate)
    if spec.arrival_pattern == "bursts":
        edges, factor, _ = draw_intervals(rng, spec.bursts, spec.horizon_s)
        submit, types = profile_arrivals(rng, rate, edges, factor)
    else:
        wide = system.cores[:, 1] >= spec.wide_from_cores
        submit, types = _waves_and_busy_hours(spec, rng, rate, wide)
    order = np.argsort(submit, kind="stable")
    task_type = types[order]
    least, most = system.cores[task_type].T
    widths = random_stream(spec.seed, "tasks", spec.replicate)
    return Demand(submit[order], task_type, widths.integers(least, most, endpoint=True))


def _waves_and_busy_hours(
    spec: ParallelDay, rng: np.random.Generator, rate: Floats, wide: NDArray[np.bool_]
) -> tuple[Floats, NDArray[np.int64]]:
    """Draw arrivals as in paper 001 [s] and their types, not sorted."""
    waves = draw_waves(rng, rate[~wide], spec.waves_per_day, spec.wave_amplitude)
    wave_time, wave_type = wave_arrivals(rng, waves, spec.horizon_s)
    second = DAY_S / HOURS
    busy = (spec.busy_hours[0] * second, spec.busy_hours[1] * second)
    profile = busy_hours_profile(busy, spec.busy_factor, DAY_S - spec.warm_up_s, spec.horizon_s)
    wide_time, wide_type = profile_arrivals(rng, rate[wide], *profile)
    types = np.concatenate([np.flatnonzero(~wide)[wave_type], np.flatnonzero(wide)[wide_type]])
    return np.concatenate([wave_time, wide_time]), types


def _assembled(
    spec: ParallelDay, typical: Typical, demand: Demand, time_s: Floats
) -> SystemWorkload:
    """Return the workload of tasks whose times are known, shape (tasks, clusters, P-states)."""
    clusters = typical.clusters
    name = demand.name or f"parallel workload (seed {spec.seed}, replicate {spec.replicate})"
    platform = node_platform(
        typical.time_s, typical.node_power_w, clusters.nodes.tolist(),
        cluster_names=clusters.names, name="clusters of the parallel workload",
    )  # fmt: skip
    tasks = make_tasks(
        np.full(len(demand.cores), TYPED_TASK_FLOPS), demand.submit_time_s, labels=demand.labels,
        task_type=demand.task_type, width=demand.cores,
        utility=_utility(spec, typical, demand, time_s), name=name,
    )  # fmt: skip
    estimates = ParallelEstimates(
        platform, time_s, clusters.nodes_for(demand.cores), typical.node_power_w,
        demand.task_type, typical_time_s=typical.time_s, typical_nodes=typical.nodes,
        cores_per_node=clusters.cores_per_node,
    )  # fmt: skip
    power = typical.node_power_w
    watts: Floats = np.where(np.isfinite(power), power, 0.0) * typical.nodes[..., None]
    types = TaskTypes(
        typical.time_s, watts, platform.cluster_of, typical.type_names, clusters.names
    )  # fmt: skip
    return SystemWorkload(
        platform, tasks, types, spec.rules, spec.window_s, estimates=estimates,
        notes=demand.notes,
    )  # fmt: skip


def _utility(
    spec: ParallelDay, typical: Typical, demand: Demand, time_s: Floats
) -> UtilityFunctions:
    """Return the utility functions of the tasks (algorithms C2.2; testbed: C6)."""
    if demand.utility is not None:
        return demand.utility
    n, rng = len(demand.cores), random_stream(spec.seed, "utility", spec.replicate)
    if spec.priority_of == "task":
        priority, urgency = draw_priorities(
            rng, n, spec.priority_ranges, spec.urgencies, spec.joint_percent
        )
    else:
        priority, urgency = typical.priority[demand.task_type], typical.urgency[demand.task_type]
    if spec.utility_classes == "plateau_linear":
        shortest = time_s.min(axis=(1, 2), initial=np.inf) / spec.urgency_unit_s
        # what can run nowhere earns nothing, whatever its function
        shortest = np.where(np.isfinite(shortest), shortest, 1.0)
        first, last = spec.plateau_times
        return UtilityFunctions.plateau_linear(
            priority, first * shortest, last * shortest, urgency_unit_s=spec.urgency_unit_s
        )
    classes = spec.draw_or_read_classes()
    return UtilityFunctions(
        priority, urgency, rng.integers(len(classes), size=n), classes, spec.urgency_unit_s
    )
