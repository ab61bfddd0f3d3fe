"""The textbook policies of rigid parallel jobs: first come, first served, and backfilling.

All three start jobs on the free nodes of the lowest ids. The queue is in order of submission, then
of the jobs' numbers. They decide by estimated run times; jobs end after their true ones.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError
from gridsched.model.estimates import Estimates
from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits, TraitsWith, check_choice
from gridsched.policy.decisions import Allocate, Decision
from gridsched.policy.state import NodesState, State
from gridsched.schedulers.filters import check_dropping_threshold
from gridsched.schedulers.kernels.backfilling import conservative_starts, easy_starts, fcfs_starts

Ids = NDArray[np.int64]


class ParallelQueue(Scheduler):
    """Base of policies that start jobs of one queue on one cluster of equal nodes.

    A subclass says in `_starts` which jobs of the queue start now.
    """

    traits: ClassVar[Traits] = Traits(asked="event", parallel=True, platform_order_matters=True)

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Look whether the platform is one cluster; nothing is estimated yet.

        Raises
        ------
        InputError
            If the platform has several clusters, or none.
        """
        clusters = system.platform.clusters
        if len(clusters) != 1:
            raise InputError(
                f"{self!r} accepts one homogeneous cluster; {system.platform.name} has "
                f"{len(clusters)}. Put all nodes into one cluster."
            )
        self.pstate_ = system.pstate
        self.known_ = 0
        self.run_time_ = np.empty(0)
        self.starts_ = np.empty(0, dtype=np.int64)
        self.width_ = np.empty(0, dtype=np.int64)

    def schedule(self, state: State) -> Iterable[Decision]:
        """Start what may start now, each job on the free nodes of the lowest ids."""
        nodes = state.nodes
        if not nodes.n_free:
            return []
        queue = state.mappable
        if not len(queue):
            return []
        if queue.item(-1) >= self.known_:
            self._learn(queue.item(-1) + 1, state.estimates)
        if len(queue) > len(self.starts_):
            self.starts_ = np.empty(2 * len(queue), dtype=np.int64)
        count = self._starts(state.now, nodes, queue)
        if not count:
            return []
        free, begin, decisions = nodes.free.nonzero()[0], 0, []
        for task in self.starts_[:count].tolist():
            end = begin + int(self.width_[task])
            decisions.append(Allocate(task, free[begin:end]))
            begin = end
        return decisions

    def _learn(self, count: int, estimates: Estimates) -> None:
        """Take over width and estimated run time [s] of the first `count` tasks."""
        if count > len(self.run_time_):
            room = max(64, count - len(self.run_time_), len(self.run_time_))
            self.run_time_ = np.concatenate([self.run_time_, np.empty(room)])
            self.width_ = np.concatenate([self.width_, np.empty(room, dtype=np.int64)])
        for task in range(self.known_, count):
            self.run_time_[task] = estimates.run_time(task, 0, self.pstate_)
            self.width_[task] = estimates.width(task, 0)
        self.known_ = count

    @abstractmethod
    def _starts(self, now: float, nodes: NodesState, queue: Ids) -> int:
        """Put the ids of the jobs that start now into `starts_`, in order; return how many.

        Parameters
        ----------
        now : float
            Simulated time [s].
        nodes : NodesState
        queue : ndarray of int64, shape (m,)
            Ids of the jobs that wait, in order of the queue; `run_time_` [s] and `width_` tell of
            them.
        """


class FCFS(ParallelQueue):
    """First come, first served: the head of the queue starts while it fits.

    Notes
    -----
    A job that does not fit holds up all that came after it (algorithms I, fcfs).

    References
    ----------
    .. [1] Textbook baseline; D. G. Feitelson, L. Rudolph, "Parallel job scheduling: issues and
       approaches", JSSPP 1995 (not read).
    """

    def _starts(self, now: float, nodes: NodesState, queue: Ids) -> int:
        return int(fcfs_starts(queue, self.width_, nodes.n_free, self.starts_))


class Backfilling(ParallelQueue):
    """Base of policies that look at the estimated ends of what runs.

    Attributes
    ----------
    rule : callable
        A compiled rule of `gridsched.schedulers.kernels.backfilling`.
    """

    traits = TraitsWith(
        ParallelQueue.traits, "reservations", "permanent", may_drop=True, heeds_budget=True, reserves=True
    )
    rule: ClassVar[Callable[..., int]]
    _id: ClassVar[str]

    def __init__(
        self, reservations: str = "recomputed", dropping_threshold: float = 0.5, cluster_choice: str = "earliest_finish"
    ) -> None:
        self.reservations = reservations
        self.dropping_threshold = dropping_threshold
        self.cluster_choice = cluster_choice

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters and the platform.

        Raises
        ------
        InputError
            If a parameter is illegal, or the platform has several clusters and reservations are
            not permanent.
        """
        check_choice(self._id, "reservations", self.reservations, ["recomputed", "permanent"])
        check_dropping_threshold(self._id, self.dropping_threshold)
        if self.reservations == "recomputed":
            super().prepare(system, rng)
            return
        # imported only here: its kernels are many
        from gridsched.schedulers.parallel.permanent import RULES, PermanentReservations

        self.permanent_ = PermanentReservations(
            self._id, system, self.dropping_threshold, RULES[self._id], self.cluster_choice
        )

    def schedule(self, state: State) -> Iterable[Decision]:
        """Start what may start now; reserve the rest, where reservations are permanent."""
        if self.reservations == "permanent":
            return self.permanent_.schedule(state)
        return super().schedule(state)

    def _starts(self, now: float, nodes: NodesState, queue: Ids) -> int:
        return self.rule(
            now, queue, self.run_time_, self.width_, nodes.n_free, nodes.estimated_end, nodes.width, self.starts_
        )


class EasyBackfilling(Backfilling):
    """EASY backfilling: jobs overtake where they do not delay the head of the queue.

    Parameters
    ----------
    reservations : {"recomputed", "permanent"}
        ``recomputed``: at every event the head of the queue has the place that the estimated ends
        leave it. ``permanent``: EASY of paper 001, on any clusters, see below.
    dropping_threshold : float
        With permanent reservations, a task with a utility function that could not even earn this
        if it started now is dropped.
    cluster_choice : {"earliest_finish", "first"}
        As in `ConservativeBackfilling`.

    Notes
    -----
    The head starts while it fits. For the head that does not fit the running jobs are walked by
    estimated end: the shadow time is the first end at which enough nodes are free for it, extra
    are the nodes that are then free beyond its own, all jobs with that end released. The rest of
    the queue is visited in order: a job that fits now starts if it ends by the shadow time, or
    takes no more than the extra nodes, which it then uses up (algorithms I, easy). A job that
    has outlived its estimate counts as ending at once.

    With permanent reservations tasks are visited by arrival, in P-state 0: one that can start
    now starts, on the cluster that `cluster_choice` says; else, if there is no reservation in the
    whole system, it gets one at the earliest start; else it waits. Nobody
    moves a reservation. A place that begins after the energy budget's period, or needs more
    energy inside it than remains, is none (algorithms C4).

    References
    ----------
    .. [1] D. A. Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995 (not read).
    .. [2] A. W. Mu'alem, D. G. Feitelson, "Utilization, predictability, workloads, and user
       runtime estimates in scheduling the IBM SP2 with backfilling", IEEE TPDS 12(6), 2001
       (not read).
    .. [3] Paper 001, section 3.4.4.
    """

    _id = "easy_backfilling"
    rule = staticmethod(easy_starts)


class ConservativeBackfilling(Backfilling):
    """Conservative backfilling: jobs overtake where they delay no reservation before theirs.

    Parameters
    ----------
    reservations : {"recomputed", "permanent"}
        ``recomputed``: reservations are made anew at every event, in order of the queue: each job
        gets the earliest start in the profile of estimates that the running jobs and the
        reservations before its own leave. ``permanent``: conservative backfilling of paper 001, on
        any clusters, see below.
    dropping_threshold : float
        With permanent reservations, a task with a utility function that could not even earn this
        if it started now is dropped.
    cluster_choice : {"earliest_finish", "first"}
        With permanent reservations: of the clusters on which a task can start equally early the
        one where it finishes first, then the lowest id; or the lowest id, as paper 001 says of
        heuristics "designed for homogeneous clusters" (section 3.4.3).

    Notes
    -----
    As long as every job lasts as long as estimated this gives each job, once and for all, the
    earliest start at its arrival (algorithms I, conservative). When a job ends early all
    reservations are made anew in order of the queue. Most move to earlier times; one may move to a
    later time, because a job before it in the queue took the place: "no start moves later", which
    algorithms I adds, does not follow from that order and is not held.

    With permanent reservations each task, by arrival and in P-state 0, gets the earliest start
    over the clusters (of several the one that `cluster_choice` says), and nobody moves it. A
    place that begins after the energy budget's period, or needs more energy inside it than
    remains, is none (algorithms C4).

    References
    ----------
    .. [1] D. G. Feitelson, A. M. Weil, "Utilization and predictability in scheduling the IBM SP2
       with backfilling", IPPS 1998 (not read).
    .. [2] Paper 001, section 3.4.3.
    """

    _id = "conservative_backfilling"
    rule = staticmethod(conservative_starts)
