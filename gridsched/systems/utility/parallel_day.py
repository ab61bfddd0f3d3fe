"""Keys of systems and workloads of paper 001: parallel tasks on clusters (algorithms C1, C2)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from gridsched.errors import InputError
from gridsched.model.limits import MAX_ENTRIES, AtLeastZero, AtLeastZeroRange, Count, Cov, Positive, PositiveRange
from gridsched.model.rules import DAY_S, Rules
from gridsched.model.tasks import Tasks
from gridsched.systems.utility.day_keys import BURST_KEYS, CLASS_KEYS, DayKeys
from gridsched.workloads.generator_keys import MAX_TASKS, keys_between

#: Hours in a day, for keys in hours.
HOURS = 24.0
#: Ranges of starting utilities: critical, high, medium, low (paper 001, table 2).
PRIORITY_RANGES = ((6.0, 8.0), (4.0, 6.0), (2.0, 4.0), (1.0, 2.0))
#: Percent of the task types, fewest and most cores of their tasks (paper 001, table 3).
CORE_BANDS = ((20, 2, 4), (20, 5, 256), (40, 257, 4096), (19, 4097, -1), (1, 0, 0))

#: Cores, or 0 and less: so many fewer than the largest cluster has.
CoresOrRest = Annotated[int, Field(ge=-MAX_ENTRIES, le=MAX_ENTRIES)]
#: Nodes, and cores of each.
ClusterSize = tuple[Count, Count]
CoreBand = tuple[AtLeastZero, CoresOrRest, CoresOrRest]
Hour = Annotated[float, Field(ge=0, le=HOURS)]


class ParallelDay(DayKeys):
    """Parameters of clusters, of parallel tasks that arrive all day, and of their budget.

    ``docs/parallel_workloads.md`` explains every key; the defaults are the paper's. Times are in
    seconds, except those of utility classes, which are in urgency units. A pair is the smallest
    and largest of a uniform draw. The keys that end with ``_csv`` or ``_swf`` read what would be
    drawn otherwise.
    """

    parts: ClassVar = ("clusters", "etc", "task_types", "classes")
    kind: Literal["parallel"] = "parallel"
    # clusters and task types
    general_clusters: tuple[ClusterSize, ...] = ((250, 64), (500, 32), (400, 40), (200, 80))
    special_clusters: tuple[ClusterSize, ...] = ((250, 72), (375, 48))
    total_cores: Count | None = None
    general_task_types: int = Field(default=60, ge=0, le=10_000)
    special_task_types: tuple[Count, ...] = (20, 20)
    # cores that tasks ask for
    core_bands: tuple[CoreBand, ...] = CORE_BANDS
    # time and power; what no study varies is a constant of paper 001, section 4
    load_factor: Positive = 1.0
    reference_time_s: PositiveRange = (3_600.0, 64_800.0)
    reference_time_cov: ClassVar[float] = 0.15
    least_reference_time_s: ClassVar[float] = 180.0
    time_cluster_cov: Cov = 0.3
    speedup_sigma: PositiveRange = (4.0, 10.0)
    node_power_mean_w: Positive = 133.0
    node_power_cov: ClassVar[float] = 0.2
    node_power_cluster_cov: ClassVar[float] = 0.2
    # P-states
    power_factors: tuple[Annotated[float, Field(gt=0, le=1)], ...] = (1.0, 0.75, 0.5)
    pstate_factor_of: Literal["cluster", "quantity", "pstate", "quantity_and_pstate"] = "cluster"
    pstate_type_cov: Cov = 0.3
    special_pstate_type_cov: Cov = 0.2
    pstate_cov: Cov = 0.03
    special_pstate_cov: Cov = 0.02
    # arrivals
    warm_up_s: float = Field(default=14_400.0, ge=0, le=DAY_S)
    days: float = Field(default=1.0, gt=0, le=1_000)
    tasks_per_day: AtLeastZero = 5_000.0
    task_type_shares: tuple[AtLeastZero, ...] | None = None
    arrival_pattern: Literal["waves", "bursts"] = "waves"
    wide_from_cores: Count = 4_097
    busy_hours: tuple[Hour, Hour] = (9.0, 18.0)
    busy_factor: AtLeastZero = 2.0
    # utility functions
    urgency_unit_s: Positive = 3_600.0
    priority_ranges: tuple[AtLeastZeroRange, ...] = PRIORITY_RANGES
    priority_of: Literal["task_type", "task"] = "task_type"
    plateau_times: AtLeastZeroRange = (2.5, 4.0)
    # jobs of a log instead of drawn tasks
    log_days: Count = 48
    log_least_jobs: int = Field(default=500, ge=0, le=MAX_TASKS)
    log_widest_job: Count | None = 4_096
    log_again: bool = False
    # read instead of drawn
    clusters_csv: str | None = None
    etc_csv: str | None = None
    task_types_csv: str | None = None
    tasks_csv: str | None = None
    jobs_swf: str | None = None

    @property
    def horizon_s(self) -> float:
        """Length of the simulated time [s]."""
        return self.warm_up_s + self.days * DAY_S

    @property
    def window_s(self) -> tuple[float, float]:
        """Time that the results are taken from [s]: all but the warm-up."""
        return self.warm_up_s, self.horizon_s

    @property
    def rules(self) -> Rules:
        """The rules of the run; a budget counts from the end of the warm-up on."""
        return self.rules_until(self.horizon_s, first_period_start_s=self.warm_up_s)

    @property
    def n_task_types(self) -> int:
        """Task types that are drawn."""
        return self.general_task_types + sum(self.special_task_types)

    @property
    def highest_priority(self) -> float:
        """Largest starting utility of all levels."""
        return max(high for _, high in self.priority_ranges)

    @property
    def lowest_priority(self) -> float:
        """Smallest starting utility of all levels."""
        return min(low for low, _ in self.priority_ranges)

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Refuse keys that contradict each other."""
        self.check_files(together=("clusters_csv", "etc_csv"), needed=_NEEDED, replaced=_REPLACED)
        if self.tasks_csv is not None and self.utility_classes == "plateau_linear":
            raise InputError(
                "utility_classes = 'plateau_linear' has no effect beside tasks_csv, which names "
                "classes; give them in classes_csv."
            )
        self._check_system()
        self._check_arrivals()
        self.rules  # noqa: B018 - reports where rules contradict each other
        self.check_joint_percent(len(self.priority_ranges))
        if self.utility_classes == "plateau_linear" and self.plateau_times[1] <= 0:
            raise InputError("plateau_times ends at 0; its second number must be greater than 0.")
        return self

    def write_files(self, output: Path, *, force: bool) -> tuple[Tasks, list[Path]]:
        """Generate the day and write it; return the tasks and the files."""
        from gridsched.systems.utility.parallel_tasks import generate_files  # reads these keys itself

        return generate_files(self, output, force=force)

    def settings_beside_files(self) -> dict[str, object]:
        """Return the keys that still have an effect where all else is read from files.

        Raises
        ------
        InputError
            If the tasks are jobs of a log.
        """
        if self.jobs_swf is not None:
            raise InputError(
                f"{self.jobs_swf}: every job of a log has run times of its own, which a table by "
                "task types has no room for; use the generator's .toml itself as --workload."
            )
        replaced = (_REPLACED[name] for name in ("etc_csv", "tasks_csv", "classes_csv"))
        return self.changed_but({"kind", "seed", "replicate", "plateau_times"}.union(*replaced))

    def _check_system(self) -> None:
        clusters = (*self.general_clusters, *self.special_clusters)
        self.check_machines(
            "general_clusters",
            "special_clusters",
            sum(nodes for nodes, _ in clusters),
            self.general_task_types,
            len(self.special_task_types),
        )
        self.check_entries("A cluster's cores", max(nodes * cores for nodes, cores in clusters))
        n_times = self.n_task_types * len(clusters) * max(len(self.power_factors), 1)
        self.check_entries("task types, clusters and power_factors", n_times)
        if not self.n_task_types:
            raise InputError("general_task_types and special_task_types are 0; some are needed.")
        if not self.power_factors:
            raise InputError("power_factors is empty; each P-state needs one.")
        if "pstate" in self.pstate_factor_of and len(self.power_factors) == 1:
            other = "quantity" if "quantity" in self.pstate_factor_of else "cluster"
            raise InputError(
                f"pstate_factor_of = {self.pstate_factor_of!r} has no effect with one P-state; set {other!r}, or "
                "give power_factors a second number."
            )
        if self.speedup_sigma[0] < 1:
            raise InputError(
                f"speedup_sigma is {list(self.speedup_sigma)}; Downey's model of high variance needs at least 1."
            )
        for k, (_, least, most) in enumerate(self.core_bands):
            if least > 0 and (most > 0) and least > most:
                raise InputError(
                    f"core_bands: entry {k + 1} reaches from {least} to {most} cores; the first "
                    "must not exceed the second."
                )
        if not sum(share for share, _, _ in self.core_bands) > 0:
            raise InputError("core_bands has no share above 0; some task types need one.")

    def _check_arrivals(self) -> None:
        beside = BURST_KEYS if self.arrival_pattern == "waves" else _WAVE_KEYS
        if useless := self.changed(beside):
            raise InputError(
                f"{useless[0]} has no effect with arrival_pattern = '{self.arrival_pattern}'; "
                "remove it or set the other pattern."
            )
        first, last = self.busy_hours
        share = (last - first) / HOURS
        if not 0 <= share <= 1:
            raise InputError(f"busy_hours is {[first, last]}; the first must not exceed the second.")
        if share * self.busy_factor > 1 + 1e-12 or (share == 1 and self.busy_factor != 1):
            raise InputError(
                f"busy_factor is {self.busy_factor:g}: with {last - first:g} busy_hours the mean "
                f"rate of a day is kept with at most {1 / share:g}."
            )
        shares = self.task_type_shares
        if shares is not None and not sum(shares) > 0:
            raise InputError("task_type_shares holds only zeros; some task type must arrive.")
        if shares is not None and self.etc_csv is None and len(shares) != self.n_task_types:
            raise InputError(
                f"task_type_shares has {len(shares)} numbers; there are {self.n_task_types} task "
                "types, and each needs one."
            )
        self.check_arrivals(
            self.tasks_per_day * self.horizon_s / DAY_S, rates_in_bursts=self.arrival_pattern == "bursts"
        )


#: File -> the keys that have no effect without it.
_NEEDED = {"jobs_swf": keys_between(ParallelDay, "log_days", "log_again"), "etc_csv": {"tasks_csv", "task_types_csv"}}
_WAVE_KEYS = {"waves_per_day", "wave_amplitude", "wide_from_cores", "busy_hours", "busy_factor"}
_ARRIVAL_KEYS = {"tasks_per_day", "task_type_shares", "arrival_pattern"} | _WAVE_KEYS | BURST_KEYS
_PRIORITY_KEYS = {"priority_ranges", "priority_of", "urgencies", "joint_percent"}
_SYSTEM_KEYS = keys_between(ParallelDay, "general_clusters", "special_pstate_cov")
#: File -> the keys it takes the place of.
_REPLACED = {
    "etc_csv": _SYSTEM_KEYS,
    "tasks_csv": _ARRIVAL_KEYS | _PRIORITY_KEYS,
    "jobs_swf": keys_between(ParallelDay, "core_bands", "reference_time_s")
    | {"clusters_csv", "etc_csv", "tasks_csv", "speedup_sigma", "days"}
    | _ARRIVAL_KEYS,
    "classes_csv": CLASS_KEYS,
}
