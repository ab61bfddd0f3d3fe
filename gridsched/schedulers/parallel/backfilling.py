"""The textbook policies of rigid parallel jobs: first come, first served, and backfilling.

All three start jobs on the free nodes of the lowest ids. The queue is in order of submission, then
of the jobs' numbers, unless another order is asked for. They decide by estimated run times; jobs
end after their true ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.system import System
from gridsched.plugins import variant
from gridsched.policy.base import Scheduler, Traits, TraitsWith, check_choice, check_whole_number
from gridsched.policy.decisions import Decision, WakeAt
from gridsched.policy.state import State
from gridsched.schedulers.filters import check_dropping_threshold
from gridsched.schedulers.kernels.availability import ALL
from gridsched.schedulers.parallel.machines import CountedNodes, EachNode
from gridsched.schedulers.parallel.power_room import PowerRoom
from gridsched.schedulers.parallel.predictors import PredictedQueue, Predictor, read_only, read_predictor
from gridsched.schedulers.parallel.queue_orders import AsSubmitted, QueuedJobs, QueueOrder, read_order


def check_one_cluster(scheduler: object, system: System) -> None:
    """Raise `InputError` unless the platform is one cluster."""
    clusters = system.platform.clusters
    if len(clusters) != 1:
        raise InputError(
            f"{scheduler!r} accepts one homogeneous cluster; {system.platform.name} has "
            f"{len(clusters)}. Put all nodes into one cluster."
        )


class ParallelQueue(Scheduler):
    """Base of policies that start jobs of one queue, on one cluster of equal nodes or on nodes that they share.

    In order of the queue each job gets the earliest place that those before leave it; it starts if
    that is now. A subclass chooses which of the others have theirs reserved. A user's own may have an
    order or a predictor of its own, which `queue_order` and `predictor` return.

    Parameters
    ----------
    order : str
        Order of the queue: ``"fcfs"``, or another of `gridsched.schedulers.parallel.queue_orders`.
    depth : int, optional
        Only so many jobs of the queue are looked at, the first ones in its order.
    estimate : str
        What is taken for the run times of jobs, ``"requested"`` or ``"last_two_of_user"``, perhaps with
        parameters; see `gridsched.schedulers.parallel.predictors`.

    Attributes
    ----------
    backfill_order : str, optional
        Order of those behind the first that cannot start, where it is another; a parameter of `Backfilling`.
    n_reserved : int
        Of the jobs that cannot start now none (0), the first of each partition (1) or all
        (`ALL`) have reservations.

    Notes
    -----
    Order of the queue, prediction of run times, one profile of what is free, starts: see
    `gridsched.schedulers.kernels.availability.starts_now`. Under a power cap a job whose nodes would exceed it waits,
    and none behind it starts before it does; reservations are of nodes, not of watts (`PowerRoom`).

    References
    ----------
    .. [1] D. G. Feitelson, L. Rudolph, "Parallel job scheduling: issues and approaches", JSSPP 1995
       (not read).
    """

    traits: ClassVar[Traits] = Traits(
        trigger="event", parallel=True, shares=True, platform_order_matters=True, respects_power_cap=True
    )
    _id: ClassVar[str]
    n_reserved: ClassVar[int]
    backfill_order: str | None = None

    def __init__(self, order: str = "fcfs", depth: int | None = None, estimate: str = "requested") -> None:
        self.order = order
        self.depth = depth
        self.estimate = estimate

    def queue_order(self) -> QueueOrder | None:
        """Return the order of the queue; None is that of submission."""
        return read_order(self._id, self.order)

    def order_of_backfilling(self) -> QueueOrder:
        """Return the order of those behind the first that cannot start, where `backfill_order` is given."""
        return read_order(self._id, self.backfill_order, "backfill_order") or AsSubmitted()

    def predictor(self) -> Predictor | None:
        """Return what predicts run times; None is what users asked for."""
        return read_predictor(self._id, self.estimate)

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters and whether the platform is one cluster; nothing is estimated yet.

        Raises
        ------
        InputError
            If a parameter is not allowed, or jobs have whole nodes and the platform several clusters, or none.
        """
        if self.depth is not None:
            check_whole_number(self._id, "depth", self.depth, 1)
        predictor = self.predictor()
        self.predicted_ = None if predictor is None else PredictedQueue(predictor)
        self.may_wake_ = system.rules.mapping_interval_s is None
        self.order_ = self.queue_order()
        self.behind_ = None if self.backfill_order is None else self.order_of_backfilling()
        self.orders_ = [each for each in (self.order_, self.behind_) if each is not None]
        for each in self.orders_:
            each.prepare()
        shares = bool(system.platform.partitions)
        if not shares:
            check_one_cluster(self, system)
        each_counts = shares or system.rules.maintenance or system.rules.placement != "pack"
        machine = EachNode if each_counts else CountedNodes
        self.machine_ = machine(system, self.n_reserved)
        self.power_ = PowerRoom(system)
        self.is_textbook_ = not (
            self.orders_ or self.predicted_ is not None or self.machine_.has_priorities or self.depth is not None
        )
        self.known_ = 0
        self.run_time_, self.requested_ = np.empty(0), np.empty(0)
        self.size_ = np.empty(0, dtype=np.int64)

    def schedule(self, state: State) -> Iterable[Decision]:
        """Start what may start now."""
        machine, is_textbook, end = self.machine_, self.is_textbook_, None
        if not is_textbook:
            self._observe(state)
        if machine.is_full(state):
            return []
        queue = state.mappable
        if not len(queue):
            return []
        if queue.item(-1) >= self.known_:
            self._learn(queue.item(-1) + 1, state)
        if not is_textbook:
            queue = self._ordered(queue, state)
            if self.predicted_ is not None:
                end = self.predicted_.ends(state)
            if self.behind_ is not None:
                queue = self._with_behind_ordered(self.behind_, queue, state, end)
        decisions = machine.starts(state, queue, self.run_time_, self.requested_, self.size_, end)
        if decisions and state.power_cap_w < math.inf:
            decisions = self.power_.admitted(state, decisions)
        if is_textbook:
            return decisions
        if decisions:
            self._note_starts(state.now, np.array([each.task for each in decisions], dtype=np.int64))
        look = self.predicted_.next_look(state.now) if self.predicted_ is not None and self.may_wake_ else None
        return decisions if look is None else [*decisions, WakeAt(look)]

    def _observe(self, state: State) -> None:
        """Let order and predictor look at the run, before anything is decided."""
        for order in self.orders_:
            order.observe(state)
        if self.predicted_ is not None:
            self.predicted_.observe(state, self.requested_)

    def _ordered(self, queue: Integers, state: State) -> Integers:
        """Return the queue in its order, as far as it is looked at, with its run times predicted."""
        if self.predicted_ is not None:
            self.run_time_[queue] = self.predicted_.predict(state, queue, self.requested_)
        if self.order_ is not None:
            queue = self._sorted(self.order_, queue, state)
        if self.order_ is None or not self.order_.weighs_partitions:
            queue = self.machine_.by_priority(queue)
        return queue[: self.depth]

    def _sorted(self, order: QueueOrder, queue: Integers, state: State) -> Integers:
        """Return jobs, which are in order of submission, in another."""
        submit_time_s, attributes = state.tasks.submit_time_s[queue], state.tasks.attributes
        run_time_s, size, factor = self.run_time_[queue], self.size_[queue], self.machine_.factor_of(queue)
        machine, hosts = self.machine_, self.machine_.hosts_of(queue)
        jobs = QueuedJobs(
            state.now, queue, submit_time_s, run_time_s, size, machine.size, attributes, factor, hosts, machine.n_hosts
        )
        return read_only(queue[np.argsort(order.keys(jobs), kind="stable")])

    def _with_behind_ordered(self, order: QueueOrder, queue: Integers, state: State, end: Floats | None) -> Integers:
        """Return a queue with what no other overtakes at its head, and the others in an order of their own.

        First are those that start in order, and the first of each partition that does not.
        """
        first = self.machine_.first_in_order(state, queue, self.run_time_, self.requested_, self.size_, end)
        behind = self._sorted(order, np.sort(queue[~first]), state)
        if not order.weighs_partitions:
            behind = self.machine_.by_priority(behind)
        return read_only(np.concatenate([queue[first], behind]))

    def _note_starts(self, now: float, tasks: Integers) -> None:
        """Let order and predictor know of the jobs that start."""
        for order in self.orders_:
            order.started(tasks, self.size_[tasks])
        if self.predicted_ is not None:
            self.predicted_.started(now, tasks, self.run_time_)

    def _learn(self, count: int, state: State) -> None:
        """Take over size and estimated run time [s] of the first tasks."""
        if count > len(self.size_):
            room = max(64, count - len(self.size_), len(self.size_))
            self.requested_ = np.concatenate([self.requested_, np.empty(room)])
            self.size_ = np.concatenate([self.size_, np.empty(room, dtype=np.int64)])
            self.run_time_ = self.requested_
            if self.predicted_ is not None:
                self.run_time_ = self.run_time_.copy()
        self.machine_.learn(state)
        for task in range(self.known_, count):
            self.requested_[task], self.size_[task] = self.machine_.job(task, state)
        self.known_ = count


class FCFS(ParallelQueue):
    """First come, first served: the head of the queue starts while it fits.

    Parameters
    ----------
    order : str
        Order of the queue: ``"fcfs"``, or another of `gridsched.schedulers.parallel.queue_orders`.
    depth : int, optional
        Only so many jobs of the queue are looked at, the first ones in its order.
    estimate : str
        The run times of jobs in orders that depend on them, ``"requested"`` or
        ``"last_two_of_user"``; see `gridsched.schedulers.parallel.predictors`.

    Notes
    -----
    A job that does not fit holds up all that came after it (algorithms I, fcfs).

    References
    ----------
    .. [1] Textbook baseline; D. G. Feitelson, L. Rudolph, "Parallel job scheduling: issues and
       approaches", JSSPP 1995 (not read).
    """

    _id = "fcfs"
    n_reserved = 0


class Backfilling(ParallelQueue):
    """Base of policies that look at the estimated ends of what runs.

    Parameters
    ----------
    reservations, dropping_threshold, cluster_choice, order, depth, estimate, backfill_order
        As in `EasyBackfilling` and `FCFS`.
    """

    traits = TraitsWith(
        ParallelQueue.traits,
        "reservations",
        "permanent",
        may_drop=True,
        respects_budget=True,
        reserves=True,
        shares=False,
        respects_power_cap=False,
    )

    def __init__(
        self,
        reservations: str = "recomputed",
        dropping_threshold: float = 0.5,
        cluster_choice: str = "earliest_finish",
        order: str = "fcfs",
        depth: int | None = None,
        estimate: str = "requested",
        backfill_order: str | None = None,
    ) -> None:
        super().__init__(order, depth, estimate)
        self.backfill_order = backfill_order
        self.reservations = reservations
        self.dropping_threshold = dropping_threshold
        self.cluster_choice = cluster_choice

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters and the platform.

        Raises
        ------
        InputError
            If a parameter is not allowed, or the platform has several clusters and reservations are
            not permanent.
        """
        check_choice(self._id, "reservations", self.reservations, ["recomputed", "permanent"])
        check_dropping_threshold(self._id, self.dropping_threshold)
        if self.reservations == "recomputed":
            super().prepare(system, rng)
            return
        for name, default in (("order", "fcfs"), ("depth", None), ("estimate", "requested"), ("backfill_order", None)):
            if getattr(self, name) != default:
                raise InputError(f"Parameter {name!r} of {self._id} has no effect with permanent reservations.")
        permanent = variant("reservations", "permanent", f"Parameter 'reservations' of {self._id}")
        self.permanent_ = permanent(self._id, system, self.dropping_threshold, self.cluster_choice)

    @property
    def limited_by_budget(self) -> bool:
        """Whether a greater budget might have changed a decision; unknown where reservations are recomputed."""
        return self.reservations != "permanent" or bool(self.permanent_.limited)

    def schedule(self, state: State) -> Iterable[Decision]:
        """Start what may start now; reserve the rest, where reservations are permanent."""
        if self.reservations == "permanent":
            return self.permanent_.schedule(state)
        return super().schedule(state)


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
    order : str
    depth : int, optional
    estimate : str
        As in `FCFS`; backfilling uses the estimates, too.
    backfill_order : str, optional
        Order in which those behind the head are looked at, as `order` names it: ``"shortest"`` is EASY-SJBF
        [4]_, in which the head stays the first submitted. Default the queue's.

    Notes
    -----
    The head starts while it fits. For the head that does not fit the running jobs are walked by
    estimated end: the shadow time is the first end at which enough nodes are free for it, extra
    are the nodes that are then free beyond its own, all jobs with that end released. The rest of
    the queue is visited in order: a job that fits now starts if it ends by the shadow time, or
    takes no more than the extra nodes, which it then uses up (algorithms I, easy). A job that
    has outlived its estimate counts as ending at once.

    With permanent reservations tasks are visited by arrival, in P-state 0: one that can start
    now starts, on the cluster that `cluster_choice` selects; else, if there is no reservation in the
    whole system, it gets one at the earliest start; else it waits. A reservation is never
    moved. A place that begins after the energy budget's period, or needs more
    energy inside it than remains, is none (algorithms C4).

    References
    ----------
    .. [1] D. A. Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995 (not read).
    .. [2] A. W. Mu'alem, D. G. Feitelson, "Utilization, predictability, workloads, and user
       runtime estimates in scheduling the IBM SP2 with backfilling", IEEE TPDS 12(6), 2001
       (not read).
    .. [3] Paper 001, section 3.4.4.
    .. [4] D. Tsafrir, Y. Etsion, D. G. Feitelson, "Backfilling using system-generated predictions rather
       than user runtime estimates", IEEE TPDS 18(6), 2007, doi:10.1109/TPDS.2007.70606 (not read; its
       rules as E. Gaussier et al., SC 2015, doi:10.1145/2807591.2807646, store their results).
    """

    _id = "easy_backfilling"
    n_reserved = 1


class ConservativeBackfilling(Backfilling):
    """Conservative backfilling: jobs overtake where they delay no reservation before theirs.

    Parameters
    ----------
    reservations : {"recomputed", "permanent"}
        ``recomputed``: reservations are made again at every event, in order of the queue: each job
        gets the earliest start in the profile of estimates that the running jobs and the
        reservations before its own leave. ``permanent``: conservative backfilling of paper 001, on
        any clusters, see below.
    dropping_threshold : float
        With permanent reservations, a task with a utility function that could not even earn this
        if it started now is dropped.
    cluster_choice : {"earliest_finish", "first"}
        With permanent reservations: of the clusters on which a task can start equally early the
        one where it finishes first, then the lowest id; or the lowest id, as paper 001 states for
        heuristics "designed for homogeneous clusters" (section 3.4.3).
    order : str
    depth : int, optional
    estimate : str
        As in `FCFS`; backfilling uses the estimates, too.
    backfill_order : str, optional
        Order in which those behind the first that cannot start get their reservations, as `order` names
        it. Default the queue's.

    Notes
    -----
    As long as every job lasts as long as estimated this gives each job, once and for all, the
    earliest start at its arrival (algorithms I, conservative). When a job ends early all
    reservations are made again in order of the queue. Most move to earlier times; one may move to a
    later time, because a job before it in the queue took the place: "no start moves later", which
    algorithms I adds, does not follow from that order and is not held. Reservations on equal nodes
    are of a number of nodes, however these are described; see
    `gridsched.schedulers.parallel.machines.EachNode`.

    With permanent reservations each task, by arrival and in P-state 0, gets the earliest start
    over the clusters (of several the one that `cluster_choice` selects), and it is never moved. A
    place that begins after the energy budget's period, or needs more energy inside it than
    remains, is none (algorithms C4).

    References
    ----------
    .. [1] D. G. Feitelson, A. M. Weil, "Utilization and predictability in scheduling the IBM SP2
       with backfilling", IPPS 1998 (not read).
    .. [2] Paper 001, section 3.4.3.
    """

    _id = "conservative_backfilling"
    n_reserved = ALL
