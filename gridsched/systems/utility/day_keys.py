"""Keys of a day of arriving tasks with utility functions, serial or parallel."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from gridsched.errors import InputError, counted
from gridsched.model.limits import AtLeastZero, AtLeastZeroRange, FractionRange, Positive, PositiveRange, Seed, rising
from gridsched.model.records import keys_of, with_fields, with_keys
from gridsched.model.rules import DAY_S, Rules
from gridsched.model.tasks import Tasks
from gridsched.model.utility import UtilityClasses
from gridsched.systems.utility.arrivals import Bursts
from gridsched.systems.utility.sampled_utility import JOINT_PERCENT, URGENCIES, draw_classes
from gridsched.workloads.generator_keys import MAX_MACHINES, MAX_TASKS, SystemKeys
from gridsched.workloads.typed_csv import file_names, read_classes

#: More bursts than this are refused: each is drawn by itself.
MAX_BURSTS = 1_000_000

#: Waves of a day, intervals of a class.
SmallCountRange = Annotated[
    tuple[Annotated[int, Field(ge=1, le=1000)], Annotated[int, Field(ge=1, le=1000)]], AfterValidator(rising)
]

#: The rules of a run are keys of the generator, but for what limits a scheduler; how long a run lasts follows from
#: its days.
_RULE_KEYS: dict[str, Any] = {
    name: (key.annotation, key.info)
    for name, key in keys_of(Rules).items()
    # the tasks of a day take whole nodes, and ask for no time
    if name not in ("horizon_s", "placement", "max_idle_wakeups", "walltime", "mapping_events")
}


@with_fields(_RULE_KEYS)
class DayKeys(SystemKeys):
    """Keys of the rules of a run, of waves and bursts of arrivals and of utility classes.

    Times are in seconds, except those of utility classes, which are in urgency units. A pair is
    the smallest and largest of a uniform draw.

    Attributes
    ----------
    parts : tuple of str
        The files beside that of the tasks.
    """

    parts: ClassVar[tuple[str, ...]]
    seed: Seed = 0
    replicate: Seed = 0
    # arrivals in waves
    waves_per_day: SmallCountRange = (1, 23)
    wave_amplitude: FractionRange = (0.25, 0.9)
    # arrivals in bursts
    baseline_duration_s: PositiveRange = (10_800.0, 18_000.0)
    burst_duration_s: PositiveRange = (1_800.0, 5_400.0)
    baseline_factor: AtLeastZeroRange = (0.5, 0.75)
    burst_factor: AtLeastZeroRange = (1.25, 1.5)
    # utility functions
    urgencies: tuple[AtLeastZero, ...] = URGENCIES
    joint_percent: tuple[tuple[AtLeastZero, ...], ...] = JOINT_PERCENT
    utility_classes: Literal["drawn", "exponential", "plateau_linear"] = "drawn"
    utility_classes_seed: Seed = 0
    n_classes: int = Field(default=20, ge=1, le=10_000)
    # our own: the papers print no values of their classes
    class_intervals: ClassVar[tuple[int, int]] = (2, 4)
    class_duration: ClassVar[tuple[float, float]] = (5.0, 60.0)
    class_fraction: ClassVar[tuple[float, float]] = (0.1, 0.9)
    class_modifier: ClassVar[tuple[float, float]] = (0.25, 2.0)
    # a rule that differs from its usual default
    mapping_interval_s: Positive = 60.0
    # measured values instead of drawn ones
    classes_csv: str | None = None

    @property
    def bursts(self) -> Bursts:
        """How a bursty rate alternates."""
        return Bursts(self.baseline_duration_s, self.burst_duration_s, self.baseline_factor, self.burst_factor)

    @property
    @abstractmethod
    def horizon_s(self) -> float:
        """Length of the simulated time [s]."""

    def rules_until(self, horizon_s: float, **default: Any) -> Rules:
        """Return the rules of the run that the keys say.

        Parameters
        ----------
        horizon_s : float
            End of the simulated time [s].
        **default
            Values of keys that are not set; of an energy budget, if there is one.
        """
        rules = {name: getattr(self, name) for name in _RULE_KEYS}
        if rules["energy_budget_j"] is not None or rules["money_budget"] is not None:
            rules |= {name: each for name, each in default.items() if rules[name] is None}
        return with_keys(Rules(horizon_s=horizon_s), rules)

    def written(self, output: Path) -> list[Path]:
        """Return the file of tasks and those beside it; `InputError` where it is no .csv."""
        if output.suffix.lower() != ".csv":
            raise InputError(f"{output}: tasks are written as .csv.")
        return list(file_names(output, self.parts).values())

    def write(self, output: Path, *, force: bool) -> list[str]:
        """Generate the day, and write tasks, machines, estimates, classes and the .toml that joins them."""
        tasks, paths = self.write_files(output, force=force)
        names = ", ".join(path.name for path in paths[1:-1])
        return [
            f"Wrote {output}: {counted(len(tasks), 'task')}; beside it {names}.",
            f"{paths[-1]} joins them: use it as --workload.",
        ]

    @abstractmethod
    def write_files(self, output: Path, *, force: bool) -> tuple[Tasks, list[Path]]:
        """Generate the day and write it; return the tasks and the files."""

    @abstractmethod
    def settings_beside_files(self) -> dict[str, object]:
        """Return the keys that still have an effect where all else is read from files."""

    def changed_but(self, gone: set[str]) -> dict[str, object]:
        """Return the keys with another value than the default, without some and without tables.

        The prices of a budget are no table of the workload: their file is named by its whole path.
        """
        names = {n for n in type(self).model_fields if n not in gone and not n.endswith("_csv")}
        values = {name: getattr(self, name) for name in self.changed(names)}
        if "budget_prices" in values:
            values["budget_prices"] = str(Path(values["budget_prices"]).resolve())
        return values

    def check_machines(self, general: str, special: str, machines: int, general_types: int, special_types: int) -> None:
        """Refuse machines that are none or too many, and task types that have none.

        Parameters
        ----------
        general, special : str
            Keys of the general and the special machines.
        machines : int
            All of them.
        general_types : int
            Task types that general machines run.
        special_types : int
            Special machine types whose number of task types is given.
        """
        if not 1 <= machines <= MAX_MACHINES:
            raise InputError(f"{special} and {general} give {machines} machines; allowed: 1 to {MAX_MACHINES:,}.")
        if special_types != len(getattr(self, special)):
            raise InputError(
                f"special_task_types has {special_types} numbers and {special} "
                f"{len(getattr(self, special))}; each special machine type needs its number of "
                "task types."
            )
        if general_types > 0 and not getattr(self, general):
            raise InputError(f"{general} is empty; {general_types} of the task types could run nowhere.")

    def check_arrivals(self, expected: float, *, rates_in_bursts: int) -> None:
        """Refuse more tasks than fit into memory, and more bursts than can be drawn.

        Parameters
        ----------
        expected : float
            Tasks, where no burst adds any.
        rates_in_bursts : int
            How many rates alternate by themselves.
        """
        most, horizon_s = expected, self.horizon_s
        if rates_in_bursts:
            most *= max(1.0, self.baseline_factor[1], self.burst_factor[1])
            both_s = self.baseline_duration_s[0] + self.burst_duration_s[0]
            if 2 * rates_in_bursts * horizon_s / both_s > MAX_BURSTS:
                raise InputError(
                    f"baseline_duration_s and burst_duration_s begin with {both_s:g} s together; "
                    f"in {horizon_s:g} s that may give more than {MAX_BURSTS:,} bursts."
                )
        if most > MAX_TASKS:
            raise InputError(
                f"These rates give up to {most:,.0f} tasks in {horizon_s / DAY_S:g} days; at most "
                f"{MAX_TASKS:,} fit into memory."
            )

    def check_joint_percent(self, n_priorities: int) -> None:
        """Refuse shares that are no table of priorities and urgencies, or all 0."""
        rows, columns = n_priorities, len(self.urgencies)
        if [len(row) for row in self.joint_percent] != [columns] * rows or not rows * columns:
            raise InputError(f"joint_percent needs {rows} rows (priorities) of {columns} numbers (urgencies).")
        if not sum(map(sum, self.joint_percent)) > 0:
            raise InputError("joint_percent holds only zeros; some pair must be possible.")

    def draw_or_read_classes(self) -> UtilityClasses:
        """Return the utility classes that the keys ask for.

        Raises
        ------
        InputError
            If their file cannot be read.
        """
        if self.classes_csv is not None:
            return read_classes(self.classes_csv)
        if self.utility_classes == "exponential":
            return UtilityClasses.exponential()
        return draw_classes(
            self.n_classes,
            seed=self.utility_classes_seed,
            intervals=self.class_intervals,
            duration=self.class_duration,
            fraction=self.class_fraction,
            modifier=self.class_modifier,
        )


#: Keys of bursts.
BURST_KEYS = {"baseline_duration_s", "burst_duration_s", "baseline_factor", "burst_factor"}
#: Keys that a file of utility classes takes the place of.
CLASS_KEYS = {name for name in DayKeys.model_fields if name.startswith("class_")} | {
    "n_classes",
    "utility_classes",
    "utility_classes_seed",
}
