"""Profiles of drawn jobs: which share of them communicates, in which pattern, and for how much of their time."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.job_profiles import MOST_STEPS, ParallelWork, Pattern, Profile, Sequence, messages_of
from gridsched.model.limits import Fraction, Positive
from gridsched.model.records import checked

#: More tables of profiles in one generator, and longer names, are refused.
MOST_TABLES, LONGEST_NAME = 100, 100


class DrawnProfile(BaseModel):
    """A table ``[profiles.NAME]``: what some of the drawn jobs do.

    Such a job computes and then sends, in turns. Alone, on nodes whose own links are the only bounds, it takes
    the run time that was drawn, latencies aside. A job of one node only computes.

    Attributes
    ----------
    jobs : float
        Share of the jobs that have it.
    communication : float
        Share of the run time in which its parts send.
    pattern : str
        Who sends to whom, one of `gridsched.model.job_profiles.PATTERNS`.
    rounds : int
        How many times it computes and sends.
    bandwidth : float
        Of the link of a node, each direction [byte/s]: it decides how much is sent in the time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    jobs: Fraction = 1.0
    communication: Fraction
    pattern: Pattern
    rounds: Annotated[int, Field(ge=1, le=MOST_STEPS // 2)] = 1
    bandwidth: Positive = 1.25e9

    def work(self, run_time_s: float, width: int, speed: float) -> Profile:
        """Return what a job does that would run so long [s] on so many nodes of a speed [flop/s].

        Raises
        ------
        TooManyMessages
            If so many parts would send more messages than are allowed.
        """
        source, target = messages_of(self.pattern, width)
        sending_s = self.communication * run_time_s if len(source) else 0.0
        computing = ParallelWork(flops=((run_time_s - sending_s) * speed / self.rounds,))
        if not sending_s:
            return Sequence((computing,), self.rounds)
        busiest = max(np.bincount(source).max(), np.bincount(target).max())
        size = sending_s * self.bandwidth / (self.rounds * float(busiest))
        return Sequence((computing, ParallelWork(pattern=self.pattern, message_bytes=size)), self.rounds)


def _pairs(tables: Any) -> Any:
    """Return tables as pairs of names and checked tables, which can be hashed; `ValueError` names what is wrong."""
    if not isinstance(tables, dict):
        return tables
    pairs = []
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ValueError(f"{name[:40]!r} should be a table ([profiles.NAME])")
        keys = DrawnProfile.model_fields
        wrong = sorted(set(table) - set(keys)) or [key for key in keys if keys[key].is_required() and key not in table]
        if wrong:
            what = "lacks" if wrong[0] in keys else "has no key that is called"
            raise ValueError(f"the table {name[:40]!r} {what} {wrong[0]!r}; its keys are {', '.join(keys)}")
        try:
            pairs.append((name, checked(DrawnProfile, table)))
        except InputError as error:
            raise ValueError(f"in the table {name[:40]!r}, {error}".rstrip(".")) from None
    return tuple(pairs)


#: Tables by their names, as a generator's keys hold them: written as a dict.
DrawnProfiles = Annotated[
    tuple[tuple[str, DrawnProfile], ...],
    BeforeValidator(_pairs),
    PlainSerializer(lambda pairs: {name: table.model_dump(exclude_defaults=True) for name, table in pairs}),
    WithJsonSchema({"type": "object", "additionalProperties": DrawnProfile.model_json_schema()}),
]


def check_shares(profiles: DrawnProfiles) -> None:
    """Raise `InputError` unless there are few enough profiles, and jobs for all of them."""
    if len(profiles) > MOST_TABLES:
        raise InputError(f"profiles has {len(profiles)} tables; at most {MOST_TABLES} are allowed.")
    for name, _ in profiles:
        if not 0 < len(name) <= LONGEST_NAME:
            raise InputError(
                f"profiles: the name {name[:40]!r} has {len(name)} characters; 1 to {LONGEST_NAME} may be."
            )
    shares = sum(each.jobs for _, each in profiles)
    if shares > 1 + 1e-9:
        raise InputError(f"profiles: their shares of the jobs are {shares:g} together; at most 1 is possible.")


def drawn_profiles(
    profiles: DrawnProfiles, rng: np.random.Generator, run_time_s: Floats, width: Integers, speed: float
) -> tuple[Integers, tuple[Profile, ...]]:
    """Draw which job has which profile.

    Parameters
    ----------
    profiles : tuple of (str, DrawnProfile)
    rng : numpy.random.Generator
    run_time_s : ndarray of float64, shape (jobs,)
        Of each job [s].
    width : ndarray of int64, shape (jobs,)
        Its nodes.
    speed : float
        Of a node [flop/s].

    Returns
    -------
    profile : ndarray of int64, shape (jobs,)
        Which of the others each job has; -1: none.
    profiles : tuple of Profile

    Raises
    ------
    InputError
        If a job would send too many messages at once; it names the profile.
    """
    sampled = np.searchsorted(np.cumsum([each.jobs for _, each in profiles]), rng.random(len(width)), side="right")
    profile, numbers = np.full(len(width), -1), dict[tuple[int, float, int], int]()
    made: list[Profile] = []
    for job, k in enumerate(sampled.tolist()):
        if k == len(profiles):
            continue
        key = k, run_time_s.item(job), width.item(job)
        if key not in numbers:
            name, kind = profiles[k]
            try:
                made.append(kind.work(key[1], key[2], speed))
            except InputError as error:
                raise InputError(f"profiles.{name}: {error}") from None
            numbers[key] = len(made) - 1
        profile[job] = numbers[key]
    return profile, tuple(made)
