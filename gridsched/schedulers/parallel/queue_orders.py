"""Orders of a queue of rigid jobs: which job is looked at first, before anything is backfilled.

An order gives each waiting job a key; the smallest comes first, of equal ones the job that was
submitted first.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError, did_you_mean
from gridsched.model.attributes import Attribute
from gridsched.platform_io.slurm_conf import PRIORITY_FLAGS, slurm_time_s
from gridsched.policy.base import check_choice, check_number
from gridsched.policy.state import State
from gridsched.schedulers.parallel.fair_share import FairShare
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
    hosts : ndarray of int64, shape (jobs,), or None
        Nodes that each asks for where `width` is its cores; None where jobs have whole nodes.
    n_hosts : int
        Nodes of the machine where `n_nodes` is its cores.
    """

    now: float
    ids: Integers
    submit_time_s: Floats
    run_time_s: Floats
    width: Integers
    n_nodes: int
    attributes: Mapping[str, Attribute]
    partition_factor: Floats | None = None
    hosts: Integers | None = None
    n_hosts: int = 0

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
    PriorityFlags : str
        ``SMALL_RELATIVE_TO_TIME``, ``FAIR_TREE`` or ``NO_FAIR_TREE``, separated by commas;
        ``ACCRUE_ALWAYS`` holds anyway.
    PriorityCalcPeriod : str or int
        Priorities of jobs that wait are computed again this often, else once when they are submitted;
        0: whenever the queue is looked at.
    first_calc_s : float
        When, on the clock of the run [s], one of these periods ends; the others follow.
    charges_ends : bool
        Whether users are charged for all that their jobs have. Slurm does so where ``AccountingStorageEnforce`` has
        ``limits`` (``safe`` and ``all`` do); else it charges jobs that run when priorities are computed again, and
        nothing for what a job has after that. Needs `PriorityCalcPeriod`.
    MaxNodeCount : int
        Number of nodes that the size is compared with, where it is set: Slurm 22.05 counts those that may come.
    shares : dict of str to int
        Shares of users, 1 if not given; those of users who submit nothing count, too. With
        accounts also of one in one account, as ``account/user``; ``/root`` is right under the root.
    by_account : bool
        Whether users share in the accounts of their jobs, else all alike.
    account_shares : dict of str to int
        Shares of accounts, 1 if not given.
    partitions : dict of str to int
        ``PriorityJobFactor`` of partitions, 0 if not given; by default the priorities of
        the table of partitions, where jobs share nodes.
    qos : dict of str to int
        ``Priority`` of qualities of service, 0 if not given.

    Notes
    -----
    The priority is the sum of weight times factor, each factor in [0, 1], rounded down and at
    least 1; the highest comes first [1]_. With N nodes of the machine:

    age
        waiting time over `PriorityMaxAge`, at most 1;
    size
        (n / N + c / C) / 2 with c of the C cores of the machine (of whole nodes both are the same),
        or what that leaves of 1 where small jobs are favored. With ``SMALL_RELATIVE_TO_TIME``
        max(n C / N, c) / C over the minutes of the time limit;
    fair share
        2^(-(U / S) / d), the classic algorithm [2]_ (``PriorityFlags=NO_FAIR_TREE``): without
        accounts U is the user's part of all usage, S the user's part of the shares of all users
        of the log and of `shares`, whether they have submitted a job or not (jobs without a user
        are one more user's), d the dampening factor. Or the rank by Fair Tree. See
        `gridsched.schedulers.parallel.fair_share`; an account's users are those who have submitted
        a job there, and those in `shares`. Usage is node-seconds (of shared nodes core-seconds),
        each of which counts 2^(-t / half-life) after t seconds: exactly, where Slurm sums every
        PriorityCalcPeriod (see `charges_ends` for what it leaves out);
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
    PriorityFlags: str = "NO_FAIR_TREE"
    PriorityCalcPeriod: str | int = 0
    first_calc_s: float = 0.0
    charges_ends: bool = True
    MaxNodeCount: int = 0
    by_account: bool = False
    account_shares: dict[str, int] = field(default_factory=dict)
    shares: dict[str, int] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    qos: dict[str, int] = field(default_factory=dict)

    def prepare(self) -> None:
        """Check the parameters; no user has used anything yet.

        Raises
        ------
        InputError
            If a parameter is not allowed.
        """
        for each in fields(self):
            value = getattr(self, each.name)
            if each.type == "int":
                least = 1 if each.name == "FairShareDampeningFactor" else 0
                _check_natural(each.name, value, least)
            elif each.type == "dict[str, int]":
                if not isinstance(value, dict):
                    raise InputError(f"Parameter {each.name!r} of multifactor is {value!r}; {{'name': 1}} is allowed.")
                for name, number in value.items():
                    _check_natural(f"{each.name}[{name!r}]", number, int(each.name == "shares"))
        self.max_age_s_ = slurm_time_s("multifactor", "PriorityMaxAge", self.PriorityMaxAge)
        self.half_life_s_ = slurm_time_s("multifactor", "PriorityDecayHalfLife", self.PriorityDecayHalfLife)
        if not self.max_age_s_:
            raise InputError("Parameter 'PriorityMaxAge' of multifactor is 0; it must be longer.")
        self.calc_period_s_ = slurm_time_s("multifactor", "PriorityCalcPeriod", self.PriorityCalcPeriod)
        check_number("multifactor", "first_calc_s", self.first_calc_s, math.isfinite, "a finite number of seconds")
        check_choice("multifactor", "charges_ends", self.charges_ends, [True, False])
        if not (self.charges_ends or self.calc_period_s_):
            raise InputError(
                "Parameter 'charges_ends' of multifactor is False; it needs PriorityCalcPeriod, when jobs are charged."
            )
        flags = [each.strip().upper() for each in str(self.PriorityFlags).split(",") if each.strip()]
        for flag in flags:
            check_choice("multifactor", "PriorityFlags", flag, PRIORITY_FLAGS)
        self.is_relative_ = "SMALL_RELATIVE_TO_TIME" in flags
        is_tree = "FAIR_TREE" in flags and "NO_FAIR_TREE" not in flags
        self.fair_share_ = FairShare(
            self.half_life_s_,
            self.FairShareDampeningFactor,
            is_tree,
            self.by_account,
            self.shares,
            self.account_shares,
            self.charges_ends,
        )
        #: of each job since it was last computed, and when [s]
        self.priority_, self.computed_s_ = np.empty(0), -math.inf

    @property
    def weighs_partitions(self) -> bool:  # type: ignore[override]
        """Whether the table of partitions contains the partition factor."""
        return bool(self.PriorityWeightPartition) and not self.partitions

    def observe(self, state: State) -> None:
        """Charge users for the nodes that their jobs had since the last look."""
        if not self.PriorityWeightFairshare:
            return
        computed_s = self.next_calc_s(state.now) - self.calc_period_s_ if self.calc_period_s_ else state.now
        self.fair_share_.observe(state, "PriorityWeightFairshare", computed_s)
        if not self.calc_period_s_ or self._is_due(state.now):
            self.fair_share_.settle()

    def started(self, tasks: Integers, width: Integers) -> None:
        """Let users have the nodes of their jobs from now on."""
        if self.PriorityWeightFairshare:
            self.fair_share_.started(tasks, width)

    def next_calc_s(self, now: float) -> float:
        """When priorities are computed again after a time [s]; infinite where that is not an event."""
        if not self.calc_period_s_:
            return math.inf
        passed = math.floor((now - self.first_calc_s) / self.calc_period_s_) + 1
        return self.first_calc_s + passed * self.calc_period_s_

    def _is_due(self, now: float) -> bool:
        """Whether priorities are to be computed again."""
        return math.isfinite(self.computed_s_) and now >= self.next_calc_s(self.computed_s_)

    def keys(self, jobs: QueuedJobs) -> Floats:
        """Return the negative priority of each job."""
        if not self.calc_period_s_:
            return -self._priorities(jobs)
        if len(jobs.ids) and jobs.ids.max() >= len(self.priority_):
            more = int(jobs.ids.max()) + 1 - len(self.priority_)
            self.priority_ = np.concatenate([self.priority_, np.full(max(more, 64, len(self.priority_)), np.nan)])
        is_new = np.isnan(self.priority_[jobs.ids])
        is_due = self._is_due(jobs.now)
        if is_due or is_new.any() or not math.isfinite(self.computed_s_):
            rows = slice(None) if is_due else is_new
            self.priority_[jobs.ids[rows]] = self._priorities(jobs)[rows]
            if is_due or not math.isfinite(self.computed_s_):
                self.computed_s_ = jobs.now
        return -self.priority_[jobs.ids]

    def _priorities(self, jobs: QueuedJobs) -> Floats:
        """Return the priority of each job as it is now."""
        priority = self.PriorityWeightAge * np.minimum(jobs.waiting_s / self.max_age_s_, 1.0)
        if self.PriorityWeightFairshare:
            priority += self.PriorityWeightFairshare * self.fair_share_.factors()[self.fair_share_.user[jobs.ids]]
        priority += self.PriorityWeightJobSize * self._of_size(jobs)
        priority += self.PriorityWeightPartition * self._of_partition(jobs)
        priority += self.PriorityWeightQOS * _listed(jobs, "qos", self.qos)
        return np.maximum(np.floor(priority), 1.0)

    def _of_size(self, jobs: QueuedJobs) -> Floats:
        """Return the size factor of each job."""
        cores = jobs.width / jobs.n_nodes
        hosts, n_hosts = (jobs.width, jobs.n_nodes) if jobs.hosts is None else (jobs.hosts, jobs.n_hosts)
        nodes = hosts / (self.MaxNodeCount or n_hosts)
        if self.is_relative_:
            size = np.maximum(hosts / n_hosts, cores) / np.maximum(jobs.run_time_s / 60.0, 1.0)
        else:
            size = (nodes + cores) / 2
        return np.asarray(1.0 - size if self.PriorityFavorSmall else size)

    def _of_partition(self, jobs: QueuedJobs) -> Floats:
        """Return the partition factor of each job."""
        if jobs.partition_factor is None or not self.weighs_partitions:
            return _listed(jobs, "partition", self.partitions)
        return jobs.partition_factor


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
        f"Parameter {parameter!r} of {owner} is {text!r}. {did_you_mean(id, names)}Allowed: {', '.join(names)}."
    )
