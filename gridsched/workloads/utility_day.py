"""Systems and workloads of paper 000: serial tasks arriving all day (section V; algorithms B2)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gridsched.errors import InputError
from gridsched.model.budget import DAY_S
from gridsched.model.limits import (
    MAX_ENTRIES,
    AtLeastZero,
    Count,
    Cov,
    Positive,
)
from gridsched.model.rules import Rules
from gridsched.workloads.day_keys import BURST_KEYS, CLASS_KEYS, MAX_MACHINES, DayKeys
from gridsched.workloads.utility_classes import (
    PRIORITIES,
)


class UtilityDay(DayKeys):
    """Parameters of a generated system, its workload and its budget; the defaults are the paper's.

    ``docs/utility_workloads.md`` tells of every key. Times are in seconds, except those of
    utility classes, which are in urgency units. A pair is the smallest and largest of a uniform
    draw. The keys that end with ``_csv`` read measured values instead of drawing them.
    """

    kind: Literal["utility"] = "utility"
    # machines and task types
    special_machine_counts: tuple[Count, ...] = (2, 2, 3, 3)
    general_machine_counts: tuple[Count, ...] = (5, 5, 5, 10, 10, 10, 10, 15, 20)
    task_types: int = Field(default=100, ge=1, le=10_000)
    special_task_types: tuple[Count, ...] = (5, 4, 5, 3)
    # time and power
    etc_mean_s: Positive = 600.0
    etc_task_cov: Cov = 0.1
    etc_machine_cov: Cov = 0.25
    special_etc_mean_s: Positive = 60.0
    special_etc_task_cov: Cov = 0.1
    special_etc_machine_cov: Cov = 0.1
    base_power_mean_w: AtLeastZero = 66.0
    base_power_cov: Cov = 0.2
    dynamic_power_mean_w: AtLeastZero = 133.0
    dynamic_power_task_cov: Cov = 0.1
    dynamic_power_machine_cov: Cov = 0.2
    special_dynamic_power_machine_cov: Cov = 0.1
    # P-states
    power_factors: tuple[Annotated[float, Field(gt=0, le=1)], ...] = (1.0, 0.75, 0.5)
    pstate_type_cov: Cov = 0.2
    pstate_power_cov: Cov = 0.01
    pstate_time_cov: Cov = 0.01
    special_pstate_time_cov: Cov = 0.02
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
        self._check_files()
        self._check_types()
        self.rules  # noqa: B018 - says where rules contradict each other
        self.check_joint_percent(len(self.priorities))
        start, end = self.window_s
        if not 0 <= start < end <= self.horizon_s:
            raise InputError(
                f"measured_from_s {start:g} and measured_until_s {end:g} must rise within 0 to "
                f"{self.horizon_s:g} s (days)."
            )
        return self

    def _check_files(self) -> None:
        system = ("machines_csv", "etc_csv", "apc_csv")
        given = [name for name in system if getattr(self, name) is not None]
        if self.measurements_csv is None:
            missing = [name for name in system if name not in given]
            if given and missing:
                raise InputError(f"{missing[0]} is missing; {', '.join(system)} go together.")
        elif {"etc_csv", "apc_csv"} & set(given):
            raise InputError(
                f"{given[-1]} has no effect beside measurements_csv; remove one of them."
            )
        self.check_replaced(_REPLACED)

    def _check_types(self) -> None:
        machines = sum(self.special_machine_counts) + sum(self.general_machine_counts)
        if not 1 <= machines <= MAX_MACHINES:
            raise InputError(
                f"special_machine_counts and general_machine_counts give {machines} machines; "
                f"legal are 1 to {MAX_MACHINES:,}."
            )
        if len(self.special_task_types) != len(self.special_machine_counts):
            raise InputError(
                f"special_task_types has {len(self.special_task_types)} numbers and "
                f"special_machine_counts {len(self.special_machine_counts)}; each special machine "
                "type needs its number of task types."
            )
        special = sum(self.special_task_types)
        if special > self.task_types:
            raise InputError(
                f"special_task_types are {special} in all, but task_types is {self.task_types}; it "
                "must be at least as many."
            )
        if special < self.task_types and not self.general_machine_counts:
            raise InputError(
                f"general_machine_counts is empty; {self.task_types - special} of the task_types "
                "could run nowhere."
            )
        if not self.power_factors or self.power_factors[0] != 1:
            raise InputError(f"power_factors is {list(self.power_factors)}; the first must be 1.")
        entries = self.task_types * len(self.power_factors) * (
            len(self.special_machine_counts) + len(self.general_machine_counts)
        )  # fmt: skip
        if entries > MAX_ENTRIES:
            raise InputError(
                f"task_types, machine types and power_factors give {entries:,} times; at most "
                f"{MAX_ENTRIES:,} are drawn."
            )
        per_type = self.tasks_per_type + self.tasks_per_type_deviation
        factor = self.arrival_factor * self.horizon_s / self.tasks_per_type_in_s
        self.check_arrivals(self.task_types * per_type * factor, rates_in_bursts=special)

    def settings_beside_files(self) -> dict[str, object]:
        """Return the keys that still have an effect where all else is read from files."""
        return self.changed_but({"kind", "seed", "replicate"}.union(*_REPLACED.values()))


_ARRIVAL_KEYS = {
    "tasks_per_type", "tasks_per_type_deviation", "tasks_per_type_in_s", "arrival_factor",
    "waves_per_day", "wave_amplitude", "priorities", "urgencies", "joint_percent",
} | BURST_KEYS  # fmt: skip
_SYSTEM_KEYS = {
    "special_machine_counts", "general_machine_counts", "task_types", "special_task_types",
    "power_factors",
} | BURST_KEYS | {
    name
    for name in UtilityDay.model_fields
    if name.endswith(("_cov", "_mean_s", "_mean_w"))
}  # fmt: skip
#: File -> the keys it takes the place of.
_REPLACED = {
    "etc_csv": _SYSTEM_KEYS,
    "measurements_csv": _SYSTEM_KEYS,
    "tasks_csv": _ARRIVAL_KEYS,
    "classes_csv": CLASS_KEYS,
}
