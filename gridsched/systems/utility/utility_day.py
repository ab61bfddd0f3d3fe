"""Systems and workloads of paper 000: machines, task types and a day of tasks, drawn or read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from gridsched.arrays import Floats
from gridsched.errors import InputError
from gridsched.model.limits import AtLeastZero, Count, Cov, Positive
from gridsched.model.rules import DAY_S, Rules
from gridsched.model.seeds import random_stream
from gridsched.model.task_types import TYPED_TASK_FLOPS, SystemWorkload, TaskTypes, host_names, typed_platform
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.model.utility import UtilityClasses
from gridsched.systems.utility.arrivals import burst_arrivals, draw_waves, wave_arrivals
from gridsched.systems.utility.day_keys import BURST_KEYS, CLASS_KEYS, DayKeys
from gridsched.systems.utility.sampled_utility import PRIORITIES, draw_utility_functions
from gridsched.workloads.etc_matrices import cvb, gamma, pstate_factors
from gridsched.workloads.generator_keys import keys_between
from gridsched.workloads.measured_times import read_measurements
from gridsched.workloads.typed_csv import (
    MACHINE_PARTS,
    read_machines,
    read_task_types,
    read_typed_tasks,
    write_workload_files,
)


class UtilityDay(DayKeys):
    """Parameters of a generated system, its workload and its budget; the defaults are the paper's.

    ``docs/utility_workloads.md`` explains every key. Times are in seconds, except those of
    utility classes, which are in urgency units. A pair is the smallest and largest of a uniform
    draw. The keys that end with ``_csv`` read measured values instead of drawing them.
    """

    parts: ClassVar = MACHINE_PARTS
    kind: Literal["utility"] = "utility"
    # machines and task types
    special_machine_counts: tuple[Count, ...] = (2, 2, 3, 3)
    general_machine_counts: tuple[Count, ...] = (5, 5, 5, 10, 10, 10, 10, 15, 20)
    task_types: int = Field(default=100, ge=1, le=10_000)
    special_task_types: tuple[Count, ...] = (5, 4, 5, 3)
    # time and power; what no study varies is a constant of the paper's authors' generator
    etc_mean_s: Positive = 600.0
    etc_task_cov: Cov = 0.1
    etc_machine_cov: ClassVar[float] = 0.25
    special_etc_mean_s: ClassVar[float] = 60.0
    special_etc_task_cov: ClassVar[float] = 0.1
    special_etc_machine_cov: ClassVar[float] = 0.1
    base_power_mean_w: ClassVar[float] = 66.0
    base_power_cov: ClassVar[float] = 0.2
    dynamic_power_mean_w: ClassVar[float] = 133.0
    dynamic_power_task_cov: ClassVar[float] = 0.1
    dynamic_power_machine_cov: ClassVar[float] = 0.2
    special_dynamic_power_machine_cov: ClassVar[float] = 0.1
    # P-states, likewise
    power_factors: tuple[Annotated[float, Field(gt=0, le=1)], ...] = (1.0, 0.75, 0.5)
    pstate_type_cov: Cov = 0.2
    pstate_power_cov: ClassVar[float] = 0.01
    pstate_time_cov: ClassVar[float] = 0.01
    special_pstate_time_cov: ClassVar[float] = 0.02
    # arrivals
    days: float = Field(default=2.0, gt=0, le=10_000)
    tasks_per_type: AtLeastZero = 580.0
    tasks_per_type_deviation: AtLeastZero = 58.0
    tasks_per_type_in_s: Positive = 95_400.0  # 26.5 h
    arrival_factor: AtLeastZero = 1.0
    # utility functions
    utility_classes: Literal["drawn", "exponential"] = "drawn"
    urgency_unit_s: Positive = 60.0
    priorities: tuple[AtLeastZero, ...] = PRIORITIES
    # a rule that differs from its usual default, and the time that results are taken from
    pending_slots: int = Field(default=1, ge=0, le=1)
    measured_from_s: AtLeastZero | None = None
    measured_until_s: Positive | None = None
    # measured values instead of drawn ones
    machines_csv: str | None = None
    etc_csv: str | None = None
    apc_csv: str | None = None
    measurements_csv: str | None = None
    tasks_csv: str | None = None

    @property
    def has_measured_system(self) -> bool:
        """Whether ETC, APC and machines come from files."""
        return self.etc_csv is not None or self.measurements_csv is not None

    @property
    def horizon_s(self) -> float:
        """Length of the simulated time [s]."""
        return self.days * DAY_S

    @property
    def window_s(self) -> tuple[float, float]:
        """Time that the results are taken from [s]; by default the last day."""
        start, end = self.measured_from_s, self.measured_until_s
        end = self.horizon_s if end is None else end
        return (max(0.0, end - DAY_S) if start is None else start), end

    @property
    def rules(self) -> Rules:
        """The rules of the run."""
        return self.rules_until(self.horizon_s)

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Refuse keys that contradict each other."""
        self.check_files(together=("machines_csv", "etc_csv", "apc_csv"), replaced=_REPLACED)
        self._check_types()
        self.rules  # noqa: B018 - reports where rules contradict each other
        self.check_joint_percent(len(self.priorities))
        start, end = self.window_s
        if not 0 <= start < end <= self.horizon_s:
            raise InputError(
                f"measured_from_s {start:g} and measured_until_s {end:g} must rise within 0 to "
                f"{self.horizon_s:g} s (days)."
            )
        return self

    def _check_types(self) -> None:
        machines = (*self.special_machine_counts, *self.general_machine_counts)
        special = sum(self.special_task_types)
        self.check_machines(
            "general_machine_counts",
            "special_machine_counts",
            sum(machines),
            self.task_types - special,
            len(self.special_task_types),
        )
        if special > self.task_types:
            raise InputError(
                f"special_task_types are {special} in all, but task_types is {self.task_types}; it "
                "must be at least as many."
            )
        if not self.power_factors or self.power_factors[0] != 1:
            raise InputError(f"power_factors is {list(self.power_factors)}; the first must be 1.")
        n_times = self.task_types * len(self.power_factors) * len(machines)
        self.check_entries("task_types, machine types and power_factors", n_times)
        per_type = self.tasks_per_type + self.tasks_per_type_deviation
        factor = self.arrival_factor * self.horizon_s / self.tasks_per_type_in_s
        self.check_arrivals(self.task_types * per_type * factor, rates_in_bursts=special)

    def write_files(self, output: Path, *, force: bool) -> tuple[Tasks, list[Path]]:
        """Generate the day and write it; return the tasks and the files."""
        made = generate_utility_day(self)
        assert made.types is not None  # tasks with utility functions have types
        settings = self.settings_beside_files()
        return made.tasks, write_workload_files(made.tasks, made.types, output, settings, force=force)

    def settings_beside_files(self) -> dict[str, object]:
        """Return the keys that still have an effect where all else is read from files."""
        return self.changed_but({"kind", "seed", "replicate"}.union(*_REPLACED.values()))


_ARRIVAL_KEYS = (
    keys_between(UtilityDay, "tasks_per_type", "arrival_factor")
    | {"waves_per_day", "wave_amplitude", "priorities", "urgencies", "joint_percent"}
    | BURST_KEYS
)
_SYSTEM_KEYS = keys_between(UtilityDay, "special_machine_counts", "pstate_type_cov") | BURST_KEYS
#: File -> the keys it takes the place of.
_REPLACED = {
    "etc_csv": _SYSTEM_KEYS,
    "measurements_csv": _SYSTEM_KEYS | {"etc_csv", "apc_csv"},
    "tasks_csv": _ARRIVAL_KEYS,
    "classes_csv": CLASS_KEYS,
}


def draw_task_types(spec: UtilityDay) -> TaskTypes:
    """Draw ETC and APC: special machine types and task types first, then the general ones."""
    rng = random_stream(spec.seed, "platform", spec.replicate)
    n_special, n_general = len(spec.special_machine_counts), len(spec.general_machine_counts)
    n_types, levels = spec.task_types, len(spec.power_factors)
    etc = np.full((n_types, n_special + n_general, levels), np.inf)
    apc = np.zeros(etc.shape)
    base_w = gamma(rng, spec.base_power_mean_w, spec.base_power_cov, n_special + n_general)
    owner = np.repeat(np.arange(n_special), spec.special_task_types)

    def block(rows: int, columns: int, special: str) -> tuple[Floats, Floats]:
        """Return ETC and dynamic power [W] of some task types on alike machine types."""
        time_s = cvb(
            rng,
            getattr(spec, f"{special}etc_mean_s"),
            getattr(spec, f"{special}etc_task_cov"),
            getattr(spec, f"{special}etc_machine_cov"),
            rows,
            columns,
        )
        power_w = cvb(
            rng,
            spec.dynamic_power_mean_w,
            spec.dynamic_power_task_cov,
            getattr(spec, f"{special}dynamic_power_machine_cov"),
            rows,
            columns,
        )
        slower, lower = pstate_factors(
            rng,
            rows,
            columns,
            spec.power_factors,
            type_cov=spec.pstate_type_cov,
            power_cov=spec.pstate_power_cov,
            time_cov=getattr(spec, f"{special}pstate_time_cov"),
        )
        return time_s[..., None] * slower, power_w[..., None] * lower

    etc[:, n_special:], dynamic_w = block(n_types, n_general, "")
    apc[:, n_special:] = base_w[n_special:, None] + dynamic_w
    special_rows = np.arange(len(owner))
    time_s, dynamic_w = block(len(owner), 1, "special_")
    etc[special_rows, owner] = time_s[:, 0]
    apc[special_rows, owner] = base_w[owner, None] + dynamic_w[:, 0]
    counts = (*spec.special_machine_counts, *spec.general_machine_counts)
    return TaskTypes(
        etc,
        apc,
        np.repeat(np.arange(len(counts)), counts),
        _task_type_names(spec),
        tuple([f"special{j + 1}" for j in range(n_special)] + [f"general{j + 1}" for j in range(n_general)]),
    )


def _task_type_names(spec: UtilityDay) -> tuple[str, ...]:
    """Return ``special1_1`` for the first task type of special machine type 1, and so on."""
    special = [f"special{j + 1}_{k + 1}" for j, n in enumerate(spec.special_task_types) for k in range(n)]
    general = [f"general_{k + 1}" for k in range(spec.task_types - len(special))]
    return (*special, *general)


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
        tasks = read_typed_tasks(spec.tasks_csv, types.task_type_names, classes, spec.urgency_unit_s)
    return SystemWorkload(
        typed_platform(types, host_names(types), name="machines of the utility workload"),
        tasks,
        types,
        spec.rules,
        spec.window_s,
    )


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
    sampled = np.maximum(rng.normal(mean, deviation, n_types), 0.0)
    rate = spec.arrival_factor * sampled / spec.tasks_per_type_in_s
    waves = draw_waves(rng, rate[n_special:], spec.waves_per_day, spec.wave_amplitude)
    wave_time, wave_type = wave_arrivals(rng, waves, spec.horizon_s)
    burst_time, burst_type = burst_arrivals(rng, rate[:n_special], spec.bursts, spec.horizon_s)
    submit = np.concatenate([burst_time, wave_time])
    task_type = np.concatenate([burst_type, wave_type + n_special])
    order = np.argsort(submit, kind="stable")
    utility = draw_utility_functions(
        len(order),
        classes,
        random_stream(spec.seed, "utility", spec.replicate),
        priorities=spec.priorities,
        urgencies=spec.urgencies,
        joint_percent=spec.joint_percent,
        urgency_unit_s=spec.urgency_unit_s,
    )
    return make_tasks(
        np.full(len(order), TYPED_TASK_FLOPS),
        submit[order],
        task_type=task_type[order],
        utility=utility,
        name=f"utility workload (seed {spec.seed}, replicate {spec.replicate})",
    )
