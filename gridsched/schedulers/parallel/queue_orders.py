"""Orders of a queue of rigid jobs: which job is looked at first, before anything is backfilled.

An order gives each waiting job a key; the smallest comes first, of equal ones the job that was
submitted first.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError, did_you_mean
from gridsched.model.attributes import Attribute
from gridsched.policy.state import State
from gridsched.schedulers.wrapping import read_call


@dataclass(frozen=True)
class QueuedJobs:
    """Jobs that wait, in order of submission, as an order sees them.

    Attributes
    ----------
    now : float
        Simulated time [s].
    ids : ndarray of int64, shape (jobs,)
    submit_time_s, run_time_s : ndarray of float64, shape (jobs,)
        When each was submitted, and how long it runs as estimated [s].
    width : ndarray of int64, shape (jobs,)
        Nodes.
    n_nodes : int
        Nodes of the machine.
    attributes : mapping of str to Attribute
        Users and the like of all tasks that were submitted, by their ids.
    partition_factor : ndarray of float64, shape (jobs,), or None
        Priority of each job's partition over the largest, by their table; None where there is none.
    """

    now: float
    ids: Integers
    submit_time_s: Floats
    run_time_s: Floats
    width: Integers
    n_nodes: int
    attributes: Mapping[str, Attribute]
    partition_factor: Floats | None = None

    @property
    def waiting_s(self) -> Floats:
        """How long each has waited [s]."""
        return self.now - self.submit_time_s


class QueueOrder(ABC):
    """Base of all orders; what one remembers during a run is set by `prepare`.

    Attributes
    ----------
    weighs_partitions : bool
        Whether the priority of a partition is a part of the key; else its jobs come before all of
        lower ones, as by Slurm's ``PriorityTier``.
    """

    weighs_partitions: bool = False

    def prepare(self) -> None:  # noqa: B027
        """Forget the last run."""

    def observe(self, state: State) -> None:  # noqa: B027
        """Look at the run, whenever the scheduler is asked and before anything is decided."""

    def started(self, tasks: Integers, width: Integers) -> None:  # noqa: B027
        """Take note of the jobs that start now, with their nodes."""

    @abstractmethod
    def keys(self, jobs: QueuedJobs) -> Floats:
        """Return the key of each job, shape (jobs,); the smallest comes first."""


class AsSubmitted(QueueOrder):
    """The order of submission, where another order's queue is to be looked at in it."""

    def keys(self, jobs: QueuedJobs) -> Floats:
        """Return the same key for all jobs."""
        return np.zeros(len(jobs.ids))


#: The least log2 of a size: that of one node is 0, and UNICEF divides by it.
_LEAST_LOG = 1e-9


def _wfp3(jobs: QueuedJobs) -> Floats:
    return -((jobs.waiting_s / jobs.run_time_s) ** 3) * jobs.width


def _unicef(jobs: QueuedJobs) -> Floats:
    size = np.maximum(np.log2(jobs.width), _LEAST_LOG)
    return -jobs.waiting_s / (size * jobs.run_time_s)


def _since(jobs: QueuedJobs) -> Floats:
    """Decimal logarithm of the submission [s], that of the first second being 0."""
    return np.log10(np.maximum(jobs.submit_time_s, 1.0))


#: Keys by formulas of estimated run time r [s], nodes n, submission s [s], waiting time w [s].
FORMULAS: Mapping[str, Callable[[QueuedJobs], Floats]] = {
    "shortest": lambda jobs: jobs.run_time_s,
    "smallest": lambda jobs: jobs.width.astype(np.float64),
    "wfp3": _wfp3,
    "unicef": _unicef,
    "f1": lambda jobs: np.log10(jobs.run_time_s) * jobs.width + 8.70e2 * _since(jobs),
    "f2": lambda jobs: np.sqrt(jobs.run_time_s) * jobs.width + 2.56e4 * _since(jobs),
    "f3": lambda jobs: jobs.run_time_s * jobs.width + 6.86e6 * _since(jobs),
    "f4": lambda jobs: jobs.run_time_s * np.sqrt(jobs.width) + 5.30e5 * _since(jobs),
}


class FormulaOrder(QueueOrder):
    """An order by one of `FORMULAS`.

    Notes
    -----
    ======== ========================================= ==================
    shortest r
    smallest n
    wfp3     -(w / r)^3 n                              Tang et al. [1]_
    unicef   -w / (log2(n) r)                          Tang et al. [1]_
    f1       log10(r) n + 8.70e2 log10(s)              [2]_
    f2       sqrt(r) n + 2.56e4 log10(s)               [2]_
    f3       r n + 6.86e6 log10(s)                     [2]_
    f4       r sqrt(n) + 5.30e5 log10(s)               [2]_
    ======== ========================================= ==================

    r is the estimated run time [s], n the nodes, s the submission on the clock of the run [s], at
    least 1, and w the waiting time [s]. Jobs of one node, whose log2 is 0, come first by UNICEF, in
    order of w / r.

    References
    ----------
    .. [1] W. Tang, Z. Lan, N. Desai, D. Buettner, "Fault-aware, utility-based job scheduling on
       Blue Gene/P systems", IEEE Cluster 2009 (not read; as [2]_ and others quote it).
    .. [2] D. Carastan-Santos, R. Y. de Camargo, "Obtaining dynamic scheduling policies with
       simulation and machine learning", SC 2017, doi:10.1145/3126908.3126955 (not read; the
       coefficients as published simulators have them).
    """

    def __init__(self, name: str) -> None:
        self._formula = FORMULAS[name]

    def keys(self, jobs: QueuedJobs) -> Floats:
        """Return the formula's value for each job."""
        return self._formula(jobs)


_TIME = re.compile(r"(?:(?P<days>\d{1,6})-)?(?P<clock>\d{1,9}(?::\d{1,9}){0,2})")


def slurm_time_s(owner: str, name: str, text: object) -> float:
    """Return a time as ``slurm.conf`` writes it [s]: minutes, ``h:m:s``, ``d-h``, ``d-h:m:s``.

    Raises
    ------
    InputError
        If it is no such time.
    """
    match = _TIME.fullmatch(str(text)) if isinstance(text, str | int) else None
    if match is None or isinstance(text, bool):
        raise InputError(
            f"Parameter {name!r} of {owner} is {text!r}; a time of slurm.conf is legal: minutes, "
            "'minutes:seconds', 'hours:minutes:seconds', 'days-hours' or 'days-hours:minutes:seconds'."
        )
    parts = [int(part) for part in match["clock"].split(":")]
    if match["days"]:
        units: tuple[int, ...] = (3600, 60, 1)
    else:
        units = {1: (60,), 2: (60, 1), 3: (3600, 60, 1)}[len(parts)]
    return 86_400.0 * int(match["days"] or 0) + sum(p * u for p, u in zip(parts, units, strict=False))


@dataclass
class MultifactorPriority(QueueOrder):
    """Slurm's multifactor priority; parameters are named, and by default valued, as in slurm.conf.

    Parameters
    ----------
    PriorityWeightAge, PriorityWeightFairshare, PriorityWeightJobSize : int
    PriorityWeightPartition, PriorityWeightQOS : int
    PriorityMaxAge : str or int
        Waiting time from which the age factor is 1, as slurm.conf writes times.
    PriorityDecayHalfLife : str or int
        Time in which usage counts half; 0: it counts for ever.
    PriorityFavorSmall : bool
        Whether the size factor grows with fewer nodes.
    FairShareDampeningFactor : int
    shares : dict of str to int
        Shares of users, 1 where nothing is said; those of users who submit nothing count, too.
    partitions : dict of str to int
        ``PriorityJobFactor`` of partitions, 0 where nothing is said; by default the priorities of
        the table of partitions, where jobs share nodes.
    qos : dict of str to int
        ``Priority`` of qualities of service, 0 where nothing is said.

    Notes
    -----
    The priority is the sum of weight times factor, each factor in [0, 1], rounded down and at
    least 1; the highest comes first [1]_. With N nodes of the machine:

    age
        waiting time over `PriorityMaxAge`, at most 1;
    size
        n / N, or (N - n) / N where small jobs are favoured: whole nodes, so that their share of
        processors is the same;
    fair share
        2^(-(U / S) / d), the classic algorithm [2]_ (``PriorityFlags=NO_FAIR_TREE``) without
        accounts: U is the user's part of all usage, S the user's part of the shares of all users
        of the log and of `shares`, whether they have submitted a job or not (jobs without a user
        are one more user's), d the dampening factor. Usage is node-seconds, each of which
        counts 2^(-t / half-life) after t seconds: exactly, where Slurm sums every
        PriorityCalcPeriod;
    partition, quality of service
        the number of the job's over the largest.

    References
    ----------
    .. [1] SchedMD, "Multifactor priority plugin", https://slurm.schedmd.com/priority_multifactor.html
    .. [2] SchedMD, "Classic fairshare algorithm", https://slurm.schedmd.com/classic_fair_share.html
    """

    PriorityWeightAge: int = 0
    PriorityWeightFairshare: int = 0
    PriorityWeightJobSize: int = 0
    PriorityWeightPartition: int = 0
    PriorityWeightQOS: int = 0
    PriorityMaxAge: str | int = "7-0"
    PriorityDecayHalfLife: str | int = "7-0"
    PriorityFavorSmall: bool = False
    FairShareDampeningFactor: int = 1
    shares: dict[str, int] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    qos: dict[str, int] = field(default_factory=dict)

    def prepare(self) -> None:
        """Check the parameters; nobody has used anything.

        Raises
        ------
        InputError
            If a parameter is illegal.
        """
        for each in fields(self):
            value = getattr(self, each.name)
            if each.type == "int":
                least = 1 if each.name == "FairShareDampeningFactor" else 0
                _check_natural(each.name, value, least)
            elif each.type == "dict[str, int]":
                if not isinstance(value, dict):
                    raise InputError(f"Parameter {each.name!r} of multifactor is {value!r}; {{'name': 1}} is legal.")
                for name, number in value.items():
                    _check_natural(f"{each.name}[{name!r}]", number, int(each.name == "shares"))
        self.max_age_s_ = slurm_time_s("multifactor", "PriorityMaxAge", self.PriorityMaxAge)
        self.half_life_s_ = slurm_time_s("multifactor", "PriorityDecayHalfLife", self.PriorityDecayHalfLife)
        if not self.max_age_s_:
            raise InputError("Parameter 'PriorityMaxAge' of multifactor is 0; it must be longer.")
        #: of each user, the first being all jobs of users who are not told
        self.usage_: Floats = np.zeros(1)
        self.nodes_: Floats = np.zeros(1)
        self.user_ = np.zeros(0, dtype=np.int64)
        self.all_shares_ = 0
        self.last_s_ = 0.0

    @property
    def weighs_partitions(self) -> bool:  # type: ignore[override]
        """Whether the table of partitions says the partition factor."""
        return bool(self.PriorityWeightPartition) and not self.partitions

    def observe(self, state: State) -> None:
        """Charge users for the nodes that their jobs had since the last look."""
        if not self.PriorityWeightFairshare:
            return
        user = attribute_of(state, "user", "PriorityWeightFairshare")
        n_users = len(user.names) + 1
        if not self.all_shares_:
            self.all_shares_ = sum(self.shares.get(name, 1) for name in {*user.known, *self.shares})
        self.user_ = user.codes + 1
        lasts_s, self.last_s_ = state.now - self.last_s_, state.now
        charged = self.nodes_ * lasts_s
        if self.half_life_s_:
            kept = 0.5 ** (lasts_s / self.half_life_s_)
            self.usage_ = self.usage_ * kept
            charged = self.nodes_ * (1.0 - kept) * self.half_life_s_ / math.log(2)
        self.usage_ = np.pad(self.usage_ + charged, (0, n_users - len(self.usage_)))
        running = state.running
        self.nodes_ = np.bincount(self.user_[running["task"]], running["width"], n_users).astype(np.float64)

    def started(self, tasks: Integers, width: Integers) -> None:
        """Let users have the nodes of their jobs from now on."""
        if self.PriorityWeightFairshare:
            np.add.at(self.nodes_, self.user_[tasks], width)

    def keys(self, jobs: QueuedJobs) -> Floats:
        """Return the negative priority of each job."""
        priority = self.PriorityWeightAge * np.minimum(jobs.waiting_s / self.max_age_s_, 1.0)
        if self.PriorityWeightFairshare:
            priority += self.PriorityWeightFairshare * self._fair_share(jobs.attributes["user"])[self.user_[jobs.ids]]
        size = jobs.width / jobs.n_nodes
        priority += self.PriorityWeightJobSize * (1.0 - size if self.PriorityFavorSmall else size)
        priority += self.PriorityWeightPartition * self._of_partition(jobs)
        priority += self.PriorityWeightQOS * _listed(jobs, "qos", self.qos)
        return -np.maximum(np.floor(priority), 1.0)

    def _of_partition(self, jobs: QueuedJobs) -> Floats:
        """Return the partition factor of each job."""
        if jobs.partition_factor is None or not self.weighs_partitions:
            return _listed(jobs, "partition", self.partitions)
        return jobs.partition_factor

    def _fair_share(self, user: Attribute) -> Floats:
        """Return the fair-share factor of each user who has submitted a job, first of those not told."""
        share = np.array([self.shares.get(name, 1) for name in ("", *user.names)]) / self.all_shares_
        used = self.usage_ / max(self.usage_.sum(), np.finfo(float).tiny)
        return np.exp2(-used / share / self.FairShareDampeningFactor)


def _check_natural(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**32:
        raise InputError(
            f"Parameter {name!r} of multifactor is {value!r}; it must be a whole number from {least} to 2^32 - 1."
        )


def _listed(jobs: QueuedJobs, name: str, listed: Mapping[str, int]) -> Floats:
    """Return the number of each job's partition, or the like, over the largest that is listed."""
    attribute, largest = jobs.attributes.get(name), max(listed.values(), default=0)
    if attribute is None or not largest:
        return np.zeros(len(jobs.ids))
    return np.array([*(listed.get(each, 0) for each in attribute.names), 0])[attribute.codes[jobs.ids]] / largest


def attribute_of(state: State, name: str, owner: str) -> Attribute:
    """Return what the log tells of the jobs so far; `InputError` where it tells nothing."""
    attribute = state.tasks.attributes.get(name)
    if attribute is None:
        raise InputError(f"{owner} goes by the {name} of each job, and {state.tasks.name} tells of none.")
    return attribute


def read_order(owner: str, text: object, parameter: str = "order") -> QueueOrder | None:
    """Return the order that a parameter names; None for the order of submission.

    Parameters
    ----------
    owner : str
        Id of the scheduler that has the parameter, for messages.
    text : object
        ``"fcfs"``, a name of `FORMULAS`, or ``"multifactor(...)"`` with the parameters of
        `MultifactorPriority`.
    parameter : str
        What it is called, for messages.

    Raises
    ------
    InputError
        If it names none.
    """
    id, parameters = read_call(owner, parameter, text, "multifactor(PriorityWeightAge=1000)")
    legal = {each.name for each in fields(MultifactorPriority)} if id == "multifactor" else set()
    for name in parameters:
        if name not in legal:
            legal_text = f"Its parameters: {', '.join(sorted(legal)) or 'none'}."
            raise InputError(
                f"Order {id!r} of {owner} has no parameter {name!r}. {did_you_mean(name, legal)}{legal_text}"
            )
    if id == "multifactor":
        return MultifactorPriority(**parameters)
    if id in FORMULAS:
        return FormulaOrder(id)
    if id == "fcfs":
        return None
    names = ["fcfs", *FORMULAS, "multifactor"]
    raise InputError(
        f"Parameter {parameter!r} of {owner} is {text!r}. {did_you_mean(id, names)}Legal: {', '.join(names)}."
    )
