"""Workloads of paper 000: machines, task types and a day of tasks, drawn or read."""

from __future__ import annotations

import numpy as np

from gridsched.model.seeds import random_stream
from gridsched.model.task_types import (
    TYPED_TASK_FLOPS,
    SystemWorkload,
    TaskTypes,
    typed_platform,
)
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.model.utility_classes import UtilityClasses
from gridsched.workloads.arrivals import burst_arrivals, draw_waves, wave_arrivals
from gridsched.workloads.measurements import read_measurements
from gridsched.workloads.typed_csv import read_machines, read_task_types, read_typed_tasks
from gridsched.workloads.utility_classes import draw_utility_functions
from gridsched.workloads.utility_day import UtilityDay
from gridsched.workloads.utility_system import draw_task_types, host_names


def generate_utility_day(spec: UtilityDay) -> SystemWorkload:
    """Draw a system and its workload.

    The same seed and replicate always give the same; each part has its own random stream, so
    that for instance other arrivals leave the machines as they are.

    Parameters
    ----------
    spec : UtilityDay

    Returns
    -------
    SystemWorkload

    Raises
    ------
    InputError
        If a file of `spec` cannot be read or does not fit the others.
    """
    types = draw_or_read_types(spec)
    classes = spec.draw_or_read_classes()
    if spec.tasks_csv is None:
        tasks = draw_tasks(spec, types, classes)
    else:
        tasks = read_typed_tasks(
            spec.tasks_csv, types.task_type_names, classes, spec.urgency_unit_s
        )
    return SystemWorkload(
        typed_platform(types, host_names(types), name="machines of the utility workload"),
        tasks, types, spec.rules, spec.window_s,
    )  # fmt: skip


def draw_or_read_types(spec: UtilityDay) -> TaskTypes:
    """Return machines, ETC and APC that `spec` asks for."""
    if not spec.has_measured_system:
        return draw_task_types(spec)
    machines = None if spec.machines_csv is None else read_machines(spec.machines_csv)
    if spec.measurements_csv is not None:
        return read_measurements(spec.measurements_csv, machines)
    # `UtilityDay` has checked that they go together
    assert spec.etc_csv is not None
    assert spec.apc_csv is not None
    assert spec.machines_csv is not None
    assert machines is not None
    return read_task_types(spec.etc_csv, spec.apc_csv, machines, spec.machines_csv)


def draw_tasks(spec: UtilityDay, types: TaskTypes, classes: UtilityClasses) -> Tasks:
    """Draw arrivals and utility functions; task types of measured matrices come in waves."""
    rng = random_stream(spec.seed, "arrivals", spec.replicate)
    n_types = len(types.etc)
    n_special = 0 if spec.has_measured_system else sum(spec.special_task_types)
    mean, deviation = spec.tasks_per_type, spec.tasks_per_type_deviation
    drawn = np.maximum(rng.normal(mean, deviation, n_types), 0.0)
    rate = spec.arrival_factor * drawn / spec.tasks_per_type_in_s
    waves = draw_waves(rng, rate[n_special:], spec.waves_per_day, spec.wave_amplitude)
    wave_time, wave_type = wave_arrivals(rng, waves, spec.horizon_s)
    burst_time, burst_type = burst_arrivals(
        rng, rate[:n_special], spec.bursts, spec.horizon_s
    )  # fmt: skip
    submit = np.concatenate([burst_time, wave_time])
    task_type = np.concatenate([burst_type, wave_type + n_special])
    order = np.argsort(submit, kind="stable")
    utility = draw_utility_functions(
        len(order), classes, random_stream(spec.seed, "utility", spec.replicate),
        priorities=spec.priorities, urgencies=spec.urgencies, joint_percent=spec.joint_percent,
        urgency_unit_s=spec.urgency_unit_s,
    )  # fmt: skip
    return make_tasks(
        np.full(len(order), TYPED_TASK_FLOPS), submit[order], task_type=task_type[order],
        utility=utility, name=f"utility workload (seed {spec.seed}, replicate {spec.replicate})",
    )  # fmt: skip
