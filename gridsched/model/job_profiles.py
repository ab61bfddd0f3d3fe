"""What the parts of a job compute and send to each other: profiles, and the steps in which they are run.

A step is a parallel task: all parts compute, and all messages flow, at once and in proportion, so that all end
together (L07 of SimGrid; Casanova, Legrand, Quinson 2008). A profile is one step or several, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Literal, get_args

import numpy as np
from pydantic import Field

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.errors import InputError, counted
from gridsched.model.limits import LARGEST, AtLeastZero
from gridsched.model.records import check_record

Pattern = Literal["all_to_all", "ring", "neighbours_1d", "neighbours_2d", "neighbours_3d", "one_to_all", "all_to_one"]
PATTERNS: tuple[str, ...] = get_args(Pattern)
#: Sequences within sequences go no deeper; a job has no more steps, and a step no more messages.
DEEPEST, MOST_STEPS, MOST_MESSAGES = 50, 1_000_000, 1_000_000


class TooManyMessages(InputError):
    """Parts would send more than `MOST_MESSAGES` messages at once."""


@dataclass(frozen=True)
class Step:
    """What all parts of a job do at once.

    Attributes
    ----------
    delay_s : float
        Time in which nothing is computed or sent [s]; then all else is empty.
    flops : ndarray of float64, shape (parts,)
        Of each part [flop].
    source, target : ndarray of int64, shape (messages,)
        Parts; the number of parts means the storage host.
    size_bytes : ndarray of float64, shape (messages,)
        Each greater than 0 [byte].
    storage : str
        Name of the storage host that has a part in it; empty: none.
    is_message : bool
        Whether it is one message between a part and that host, before the task begins or after it has ended.
    """

    delay_s: float = 0.0
    flops: Floats = field(default_factory=lambda: np.zeros(0))
    source: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    target: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    size_bytes: Floats = field(default_factory=lambda: np.zeros(0))
    storage: str = ""
    is_message: bool = False

    @property
    def does_nothing(self) -> bool:
        """Whether it takes no time on any host."""
        return not (self.delay_s or self.flops.any() or len(self.size_bytes))


def grid_of(parts: int, dimensions: int) -> tuple[int, ...]:
    """Return the sides of a grid of so many parts that are as even as its divisors allow, ascending."""
    sides = []
    for left in range(dimensions, 1, -1):
        root = round(parts ** (1 / left))
        root += (root + 1) ** left <= parts
        side = next(each for each in range(max(root, 1), 0, -1) if parts % each == 0)
        sides.append(side)
        parts //= side
    return tuple(sorted((*sides, parts)))


@lru_cache(maxsize=256)
def messages_of(pattern: str, parts: int) -> tuple[Integers, Integers]:
    """Return sources and targets of the messages of a pattern among so many parts.

    Raises
    ------
    TooManyMessages
        If there would be more than `MOST_MESSAGES`.
    """
    least = parts * (parts - 1) if pattern == "all_to_all" else parts - 1
    if least > MOST_MESSAGES:
        raise TooManyMessages(f"{pattern} among {parts:,} parts: at most {MOST_MESSAGES:,} messages are allowed.")
    each = np.arange(parts)
    if pattern == "all_to_all":
        source, target = (axis.ravel() for axis in np.meshgrid(each, each, indexing="ij"))
        source, target = source[source != target], target[source != target]
    elif pattern == "ring":
        source, target = each[: parts if parts > 1 else 0], np.roll(each, -1)[: parts if parts > 1 else 0]
    elif pattern == "one_to_all":
        source, target = np.zeros(parts - 1, dtype=np.int64), each[1:]
    elif pattern == "all_to_one":
        source, target = each[1:], np.zeros(parts - 1, dtype=np.int64)
    else:
        places = each.reshape(grid_of(parts, int(pattern.removeprefix("neighbours_")[0])))
        pairs = [
            (
                np.take(places, range(places.shape[axis] - 1), axis).ravel(),
                np.take(places, range(1, side), axis).ravel(),
            )
            for axis, side in enumerate(places.shape)
        ]
        one, other = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
        source, target = np.concatenate([one, other]), np.concatenate([other, one])
    return np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)


@dataclass(frozen=True)
class Delay:
    """Time that passes on the job's nodes, which are idle.

    Attributes
    ----------
    seconds : float
        [s]
    """

    seconds: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.seconds <= LARGEST:
            raise InputError(f"A delay of {self.seconds:g} s; it must be at least 0 s.")

    @property
    def n_steps(self) -> int:
        """How many steps there are."""
        return 1

    def moves_bytes(self, parts: int) -> bool:
        """Whether so many parts send anything."""
        return False

    @property
    def storages(self) -> frozenset[str]:
        """Names of the storage hosts that have a part in it."""
        return frozenset()

    def check_width(self, parts: int) -> None:
        """Raise `InputError` if it is made for another number of parts."""

    def steps(self, parts: int) -> Iterator[Step]:
        """Yield the steps in order."""
        yield Step(delay_s=self.seconds)

    def computing_s(self, parts: int, speed: float) -> float:
        """Return how long it takes on nodes of a speed [flop/s], if bytes take no time [s]."""
        return self.seconds


@dataclass(frozen=True)
class ParallelWork:
    """Work of the parts of a job: computations, and messages that the parts send meanwhile.

    Attributes
    ----------
    flops : tuple of float
        Work of each part [flop]; one number holds for each part; empty: none.
    total_flops : float
        Work that all parts share evenly, in addition to `flops` [flop].
    pattern : str or None
        Who sends to whom, one of `PATTERNS`. With a pattern of neighbors, parts form a grid whose sides are as even
        as possible and which does not wrap around, and each part sends to each neighbor.
    message_bytes : float
        Size of each message of the pattern [byte].
    total_bytes : float
        Bytes that all messages of the pattern share evenly, in addition to `message_bytes` [byte].
    shared_bytes : float
        Each message has this over the number of parts, in addition to the others (Batsim 4's
        ``parallel_homogeneous_total``) [byte].
    matrix : tuple of float
        Replaces a pattern: bytes from each part to each part, row by row; the part of the row sends [byte].
    iterations : int
        Number of times that computations and messages are repeated, as one step, whose latency counts once.
    read_bytes, write_bytes : float
        Bytes that each part reads from the storage host before the work, and writes to it after [byte].
    storage : str
        Name of that host.

    Raises
    ------
    InputError
        If a number is out of range, or if bytes have neither a pattern nor a storage host.
    """

    flops: Annotated[tuple[AtLeastZero, ...], Field(max_length=1_000_000, description="Work of each part.")] = ()
    total_flops: Annotated[AtLeastZero, Field(description="Work that all parts share.")] = 0.0
    pattern: Annotated[Pattern | None, Field(description="Who sends to whom.")] = None
    message_bytes: Annotated[AtLeastZero, Field(description="Size of each message.")] = 0.0
    total_bytes: Annotated[AtLeastZero, Field(description="Size of all messages together.")] = 0.0
    shared_bytes: Annotated[AtLeastZero, Field(description="Size of each message times the number of parts.")] = 0.0
    matrix: Annotated[
        tuple[AtLeastZero, ...], Field(max_length=MOST_MESSAGES, description="Bytes from each part to each part.")
    ] = ()
    iterations: Annotated[int, Field(ge=1, le=10**9, description="Number of repetitions.")] = 1
    read_bytes: Annotated[AtLeastZero, Field(description="Bytes that each part reads before it computes.")] = 0.0
    write_bytes: Annotated[AtLeastZero, Field(description="Bytes that each part writes after it has computed.")] = 0.0
    storage: Annotated[str, Field(max_length=1_000, description="Name of the storage host.")] = ""

    def __post_init__(self) -> None:
        check_record(self, ParallelWork, "Profile: ")
        if self.pattern is None and self._of_pattern:
            raise InputError(f"Profile: bytes are sent without a pattern; use one of {', '.join(PATTERNS)}.")
        if self.pattern is not None and self.matrix:
            raise InputError("Profile: a matrix and a pattern both specify who sends to whom; leave one out.")
        if (self.read_bytes or self.write_bytes) and not self.storage:
            raise InputError("Profile: bytes are read or written, and storage names no host.")
        n = len(self.flops)
        if self.matrix and n > 1 and n * n != len(self.matrix):
            raise InputError(
                f"Profile: the matrix for {counted(n, 'part')} has {len(self.matrix)} numbers; it needs {n * n}."
            )

    @property
    def n_steps(self) -> int:
        """How many steps there are at most."""
        return 3

    def moves_bytes(self, parts: int) -> bool:
        """Whether so many parts send anything."""
        return any(self.matrix) or bool((self._of_pattern and parts > 1) or self.read_bytes or self.write_bytes)

    @property
    def _of_pattern(self) -> float:
        """Some of the bytes that messages of the pattern have [byte]; 0: they have none."""
        return self.message_bytes or self.total_bytes or self.shared_bytes

    @property
    def storages(self) -> frozenset[str]:
        """Names of the storage hosts that have a part in it."""
        return frozenset([self.storage] if self.read_bytes or self.write_bytes else ())

    def check_width(self, parts: int) -> None:
        """Raise `InputError` if it is made for another number of parts, or would send too many messages."""
        if parts < 1:
            raise InputError(f"the job has {counted(parts, 'part')}; it needs one at least")
        made_for = {len(self.flops)} if len(self.flops) > 1 else set()
        made_for |= {round(len(self.matrix) ** 0.5)} if self.matrix else set()
        if made_for - {parts} or (self.matrix and parts * parts != len(self.matrix)):
            raise InputError(f"it is made for {counted(min(made_for), 'part')}, and the job has {parts}")
        if self.pattern is not None and self._of_pattern:
            messages_of(self.pattern, parts)

    def steps(self, parts: int) -> Iterator[Step]:
        """Yield the steps in order: what is read, what is computed and sent, what is written."""
        yield from _steps_of(self, parts)

    def amounts(self, parts: int) -> Floats:
        """Return what each of so many parts computes [flop]."""
        flops = np.zeros(parts)
        if self.flops:
            flops[:] = self.flops
        return (flops + self.total_flops / parts) * self.iterations

    def computing_s(self, parts: int, speed: float) -> float:
        """Return how long it takes on nodes of a speed [flop/s], if bytes take no time [s]."""
        return (max(self.flops, default=0.0) + self.total_flops / parts) * self.iterations / speed


@lru_cache(maxsize=64)
def _steps_of(work: ParallelWork, parts: int) -> tuple[Step, ...]:
    """Return the steps of so many parts, the same ones each time: who places them looks for their routes once."""
    own, storage = np.arange(parts), np.full(parts, parts)
    steps = [_step_of(work, parts)]
    if work.read_bytes:
        steps.insert(0, Step(0.0, np.zeros(parts), storage, own, np.full(parts, work.read_bytes), work.storage))
    if work.write_bytes:
        steps.append(Step(0.0, np.zeros(parts), own, storage, np.full(parts, work.write_bytes), work.storage))
    return tuple(steps)


def _step_of(work: ParallelWork, parts: int) -> Step:
    """Return what so many parts compute and send to each other."""
    if work.matrix:
        size = np.array(work.matrix) * work.iterations
        sent = np.flatnonzero(size)
        return Step(0.0, work.amounts(parts), sent // parts, sent % parts, size[sent])
    if work.pattern is None or not work._of_pattern:
        return Step(0.0, work.amounts(parts))
    source, target = messages_of(work.pattern, parts)
    each = work.message_bytes + work.total_bytes / max(len(source), 1) + work.shared_bytes / parts
    each *= work.iterations
    if each <= 0:
        return Step(0.0, work.amounts(parts))
    return Step(0.0, work.amounts(parts), source, target, np.full(len(source), each))


@dataclass(frozen=True)
class Sequence:
    """Profiles one after the other, so many times over.

    Attributes
    ----------
    profiles : tuple of Delay, ParallelWork or Sequence
    repeat : int
    n_steps : int
        How many steps there are at most.
    depth : int
        How many sequences lie within each other, this one included.

    Raises
    ------
    InputError
        If there are more than `MOST_STEPS` steps, or sequences within it are deeper than `DEEPEST`.
    """

    profiles: tuple[Profile, ...]
    repeat: int = 1
    n_steps: int = field(init=False, repr=False)
    depth: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        inner = (each.depth for each in self.profiles if isinstance(each, Sequence))
        object.__setattr__(self, "depth", 1 + max(inner, default=0))
        if self.depth > DEEPEST:
            raise InputError(f"Sequences within sequences are {self.depth} deep; at most {DEEPEST} are allowed.")
        # kept, since what holds the same sequences again and again would take forever to walk through
        object.__setattr__(self, "n_steps", self.repeat * sum(each.n_steps for each in self.profiles))
        if self.repeat < 1 or not 0 < self.n_steps <= MOST_STEPS:
            raise InputError(
                f"A sequence of {len(self.profiles):,} profiles is repeated {self.repeat:,} times, {self.n_steps:,} "
                f"steps in all; at least once, and from 1 to {MOST_STEPS:,} steps are allowed."
            )

    def moves_bytes(self, parts: int) -> bool:
        """Whether so many parts send anything."""
        return any(each.moves_bytes(parts) for each in self.profiles)

    @property
    def storages(self) -> frozenset[str]:
        """Names of the storage hosts that have a part in it."""
        return frozenset().union(*(each.storages for each in self.profiles))

    def check_width(self, parts: int) -> None:
        """Raise `InputError` if any profile is made for another number of parts."""
        for each in self.profiles:
            each.check_width(parts)

    def steps(self, parts: int) -> Iterator[Step]:
        """Yield the steps in order."""
        for _ in range(self.repeat):
            for each in self.profiles:
                yield from each.steps(parts)

    def computing_s(self, parts: int, speed: float) -> float:
        """Return how long it takes on nodes of a speed [flop/s], if bytes take no time [s]."""
        return self.repeat * sum(each.computing_s(parts, speed) for each in self.profiles)


Profile = Delay | ParallelWork | Sequence


def check_profiles(profiles: tuple[Profile, ...], profile: Integers, width: Integers, name: str) -> None:
    """Raise `InputError` unless each task's profile is there, and made for its parts.

    Parameters
    ----------
    profiles : tuple of Profile
    profile : ndarray of int64, shape (tasks,)
        Place of each task's in `profiles`; -1: none.
    width : ndarray of int64, shape (tasks,)
        Its parts.
    name : str
        Of the tasks, for messages.
    """
    wrong: Booleans = (profile < -1) | (profile >= len(profiles))
    if wrong.any():
        task = int(np.argmax(wrong))
        raise InputError(f"{name}: task {task} has profile {profile[task]}; there are {len(profiles)}, from 0.")
    for number, parts in np.unique(np.stack([profile, width], axis=1), axis=0).tolist():
        if number >= 0:
            try:
                profiles[number].check_width(parts)
            except InputError as error:
                task = int(np.argmax((profile == number) & (width == parts)))
                raise InputError(f"{name}: the profile of task {task} does not fit: {error}.") from None
