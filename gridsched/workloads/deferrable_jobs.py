"""Long jobs of working days whose start may be put off: the machine-learning jobs of "Let's wait awhile".

P. Wiesner, I. Behnke, D. Scheinert, K. Gontarska, L. Thamsen, "Let's wait awhile: how temporal workload
shifting can reduce carbon emissions in the cloud", Middleware 2021, section 5.3, and the study's repository.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.limits import Positive, PositiveRange, Seed, rising
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.rules import DAY_S, Rules
from gridsched.model.seeds import random_stream
from gridsched.model.task_types import SystemWorkload
from gridsched.model.tasks import make_tasks
from gridsched.workloads.generator_keys import MAX_TASKS, SystemKeys

_HOUR_S = 3600.0
_MONDAY, _THURSDAY, _FRIDAY, _SATURDAY = 0, 3, 4, 5
#: Jobs that are cut into more pieces than this are refused.
_MOST_PIECES = MAX_TASKS


def _first_day(text: str) -> str:
    """Return a date; `ValueError` if it is none."""
    datetime.strptime(text, "%Y-%m-%d")
    return text


class DeferrableJobs(SystemKeys):
    """Parameters of the jobs and of their data center; the defaults are the study's.

    Attributes
    ----------
    jobs : int
    first_day : str
        Date of time 0, ``YYYY-MM-DD``: it decides which days are working days (Monday to Friday).
    days : int
        In so many days jobs arrive.
    working_hours : (float, float)
        Hours of the day between which jobs arrive, and at the first of which results are wanted.
    run_time_h : (float, float)
        Run times are uniform multiples of `step_s` from the first, below the second [h].
    step_s : float
        Arrivals and run times are multiples of it [s].
    due : {"next_workday", "semi_weekly"}
        When results are wanted. ``next_workday``: at once, if they are there in working hours, else when
        these next begin, and after those of a Friday on the Saturday morning; ``semi_weekly``: when those
        of a Monday or Thursday next begin.
    interruptible : bool
        Whether a job is a chain of tasks of `step_s` each, between which it may be interrupted.
    power_w : float
        What a job draws while it runs [W]; the data center draws nothing else.
    """

    kind: Literal["deferrable_jobs"] = "deferrable_jobs"
    seed: Seed = 0
    replicate: Seed = 0
    jobs: int = Field(default=3387, ge=1, le=100_000)
    first_day: Annotated[str, AfterValidator(_first_day)] = "2020-01-01"
    days: int = Field(default=366, ge=7, le=3660)
    working_hours: Annotated[
        tuple[Annotated[float, Field(ge=0, le=24)], Annotated[float, Field(ge=0, le=24)]], AfterValidator(rising)
    ] = (9.0, 17.0)
    run_time_h: PositiveRange = (4.0, 90.0)
    step_s: Annotated[float, Field(ge=1, le=DAY_S)] = 1800.0
    due: Literal["next_workday", "semi_weekly"] = "next_workday"
    interruptible: bool = False
    power_w: Positive = 1.0

    @property
    def rules(self) -> Rules:
        """The rules of the run: the usual ones."""
        return Rules()

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """Refuse keys of which nothing can be drawn."""
        for name, pair_s in (("working_hours", self.working_hours), ("run_time_h", self.run_time_h)):
            if pair_s[1] * _HOUR_S - pair_s[0] * _HOUR_S < self.step_s:
                raise InputError(
                    f"{name} is {pair_s[0]:g} to {pair_s[1]:g} h, which holds no step of {self.step_s:g} s (step_s)."
                )
        if self.interruptible and self.jobs * self.run_time_h[1] * _HOUR_S / self.step_s > _MOST_PIECES:
            raise InputError(
                f"{self.jobs} jobs of up to {self.run_time_h[1]:g} h are more than {_MOST_PIECES:,} pieces of "
                f"{self.step_s:g} s; choose a longer step_s."
            )
        return self


def generate_deferrable_jobs(spec: DeferrableJobs) -> SystemWorkload:
    """Draw the jobs, and return them with a data center that has a core for each.

    Parameters
    ----------
    spec : DeferrableJobs

    Returns
    -------
    SystemWorkload
        Tasks with deadlines; of interruptible jobs each piece is a task that waits for the one before it.
    """
    arrival_s, run_time_s = _sampled(spec)
    deadline_s = np.array([_due_s(spec, end_s) for end_s in arrival_s + run_time_s])
    pieces = np.rint(run_time_s / spec.step_s).astype(np.int64) if spec.interruptible else np.ones(spec.jobs, np.int64)
    job = np.repeat(np.arange(spec.jobs), pieces)
    tasks = make_tasks(
        (run_time_s / pieces)[job],
        arrival_s[job],
        deadline_s=deadline_s[job],
        dependencies=_chains(job) if spec.interruptible else None,
        name=f"{spec.jobs} deferrable jobs (seed {spec.seed}, replicate {spec.replicate})",
    )
    state = PState(1.0, 0.0, 0.0, spec.power_w * spec.jobs)
    platform = Platform((Host("data-centre", (state,), cores=spec.jobs),), name="a core for each job")
    return SystemWorkload(platform, tasks, None)


def _sampled(spec: DeferrableJobs) -> tuple[Floats, Floats]:
    """Return arrivals, ascending, and run times [s]."""
    begin = datetime.strptime(spec.first_day, "%Y-%m-%d")
    days = np.array([day for day in range(spec.days) if (begin + timedelta(days=day)).weekday() < _SATURDAY])
    arrivals = random_stream(spec.seed, "arrivals", spec.replicate)
    of_day = arrivals.choice(_steps(spec.working_hours, spec.step_s), spec.jobs)
    arrival_s = days[arrivals.integers(0, len(days), spec.jobs)] * DAY_S + of_day
    lengths = _steps(spec.run_time_h, spec.step_s)
    return np.sort(arrival_s), random_stream(spec.seed, "tasks", spec.replicate).choice(lengths, spec.jobs)


def _steps(hours: tuple[float, float], step_s: float) -> Floats:
    """Return the times [s] from the first hour on, below the second, that are a step apart."""
    first, end = hours[0] * _HOUR_S, hours[1] * _HOUR_S
    return np.arange(first, end, step_s, dtype=np.float64)


def _due_s(spec: DeferrableJobs, end_s: float) -> float:
    """Return when the results of a job are wanted that would end at a time [s], started at once."""
    begin, end = (hour * _HOUR_S for hour in spec.working_hours)
    day, time_s = divmod(end_s, DAY_S)
    today = (datetime.strptime(spec.first_day, "%Y-%m-%d") + timedelta(days=day)).weekday()
    if spec.due == "next_workday" and today < _SATURDAY and begin <= time_s <= end:
        return end_s
    if spec.due == "next_workday" and today == _FRIDAY and time_s > end:  # as the study's program has it
        return (day + 1) * DAY_S + begin
    wanted = range(_SATURDAY) if spec.due == "next_workday" else (_MONDAY, _THURSDAY)
    first = 0 if time_s <= begin else 1
    later = next(days for days in range(first, first + 7) if (today + days) % 7 in wanted)
    return (day + later) * DAY_S + begin


def _chains(job: Integers) -> Dependencies:
    """Return that each piece of a job waits for the end of the piece before it."""
    follower = np.flatnonzero(job[1:] == job[:-1]) + 1
    kind = np.full(len(follower), int(After.END), dtype=np.int64)
    return Dependencies(follower, follower - 1, kind, np.zeros(len(follower)))
