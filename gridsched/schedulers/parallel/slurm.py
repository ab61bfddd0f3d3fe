"""Slurm: multifactor priority under its main scheduler and its backfilling, by the rules that it documents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from gridsched.arrays import Floats, Integers, distinct
from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.model.system import System
from gridsched.platform_io.slurm_conf import CHARGING_ENDS, CLOCK, PRIORITY_FLAGS
from gridsched.policy.base import Traits, check_choice, check_number, check_whole_number
from gridsched.policy.decisions import Allocate, Decision, WakeAt
from gridsched.policy.state import State
from gridsched.schedulers.kernels.availability import ALL
from gridsched.schedulers.kernels.slurm_passes import Machine, Running, Starts, backfill_pass, main_pass
from gridsched.schedulers.parallel.backfilling import ParallelQueue, check_one_cluster
from gridsched.schedulers.parallel.machines import EachNode
from gridsched.schedulers.parallel.power_room import PowerRoom
from gridsched.schedulers.parallel.predictors import for_kernels
from gridsched.schedulers.parallel.queue_orders import MultifactorPriority, QueueOrder, read_order
from gridsched.schedulers.wrapping import read_call

#: Parameters of `Slurm` that SchedulerParameters may set, what they are where nothing does (Slurm
#: 22.05), and the least that is allowed.
LIMITS: Mapping[str, tuple[int, int]] = {
    "bf_interval": (30, 1),
    "bf_max_job_test": (500, 1),
    "bf_max_job_user": (0, 0),
    "bf_resolution": (60, 1),
    "bf_window": (1440, 1),
    "bf_window_linear": (0, 0),
    "default_queue_depth": (100, 1),
    "sched_interval": (60, 1),
}


class Slurm(ParallelQueue):
    """What Slurm would do: its multifactor priority, its main scheduler, its backfilling.

    Parameters
    ----------
    order : str, optional
        ``"multifactor(...)"`` with what takes precedence over the configuration; or another order of
        `gridsched.schedulers.parallel.queue_orders`. By default the order of the platform's ``slurm.conf``
        (`gridsched.model.platform.Platform.queue_settings`); without one all jobs have one
        priority, and the order is that of submission.
    bf_interval : int, optional
        Time between the begins of two passes of backfilling [s]. This and what follows is by
        default the value in ``SchedulerParameters`` of the configuration, else Slurm's default.
    bf_max_job_test : int, optional
        So many jobs are looked at in a pass.
    bf_max_job_user : int, optional
        So many of one user; 0: all.
    bf_resolution : int, optional
        Reservations begin and end at multiples of it [s].
    bf_window : int, optional
        Jobs that would start later than this from now have no reservation [min].
    bf_window_linear : int, optional
        By how much the window grows in which jobs count as ending together [s]; 0: it doubles.
    default_queue_depth : int, optional
        So many jobs the main scheduler looks at when something happens.
    sched_interval : int, optional
        How often it looks at all of them [s].
    ends_together : {"aligned", "first"}
        Which ends of jobs count together where backfilling asks when a job can start: those within a
        window from a multiple of 30 s on, as by Slurm 22.05, or from the first that is left on, as by
        older ones.
    poll_s : float
        The main scheduler looks at the queue at multiples of this [s], after something has
        happened: the main loop of ``slurmctld`` turns once a second. 0: at once.
    completing_s : float
        How long nodes stay taken when a job has ended (COMPLETING): what Slurm itself takes [s].

    Attributes
    ----------
    expected_start_s_ : dict of int to float
        When the jobs that the last pass of backfilling looked at are expected to start [s].

    Notes
    -----
    Whenever a job is submitted or ends, the main scheduler goes down the queue, which is in order
    of ``PriorityTier`` and then of priority, and starts what fits; a job that does not fit holds up
    all that follow on the nodes of its partition. Backfilling takes place where something happened
    since it last did, or priorities were computed again: at the next multiple of `bf_interval` on
    the clock of the run after its last pass, or at once if that is over. In order of the queue
    each job starts if its nodes are promised to none before it for as long as its limit, or else
    has nodes promised from the time on at which it is expected to start. Nodes are promised whole.
    Neither looks at anything but time limits; passes take no time, so ``bf_continue`` has no effect.
    Of nodes that serve, stretches of neighbors that just suffice are taken, those of low weight first.
    Under a power cap a job whose nodes would exceed it waits, and none that comes behind it starts in that look.

    Slurm computes the priorities of waiting jobs every ``PriorityCalcPeriod`` (5 min) and when they
    are submitted: so does this, where a configuration is given.

    References
    ----------
    .. [1] SchedMD, "Scheduling configuration guide", https://slurm.schedmd.com/sched_config.html
    .. [2] SchedMD, ``slurm.conf`` manual page, SchedulerParameters; how nodes are promised and how
       ends are put together as in Slurm's own plugins ``sched/backfill`` and ``select/cons_tres``.
    """

    traits: ClassVar[Traits] = ParallelQueue.traits
    _id = "slurm"
    n_reserved = ALL
    depth = None  # bf_max_job_test specifies it
    estimate = "requested"

    def __init__(
        self,
        order: str | None = None,
        bf_interval: int | None = None,
        bf_max_job_test: int | None = None,
        bf_max_job_user: int | None = None,
        bf_resolution: int | None = None,
        bf_window: int | None = None,
        bf_window_linear: int | None = None,
        default_queue_depth: int | None = None,
        sched_interval: int | None = None,
        ends_together: str = "aligned",
        poll_s: float = 1.0,
        completing_s: float = 0.0,
    ) -> None:
        self.order = order  # type: ignore[assignment]
        self.bf_interval = bf_interval
        self.bf_max_job_test = bf_max_job_test
        self.bf_max_job_user = bf_max_job_user
        self.bf_resolution = bf_resolution
        self.bf_window = bf_window
        self.bf_window_linear = bf_window_linear
        self.default_queue_depth = default_queue_depth
        self.sched_interval = sched_interval
        self.ends_together = ends_together
        self.poll_s = poll_s
        self.completing_s = completing_s

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters and read the platform's configuration.

        Raises
        ------
        InputError
            If a parameter or setting is wrong, or jobs have whole nodes and the platform several
            clusters, or none.
        """
        settings = dict(system.platform.queue_settings)
        self.limits_, self.backfills_ = self._limits(settings), self._backfills(settings)
        check_choice(self._id, "ends_together", self.ends_together, ["aligned", "first"])
        check_number(self._id, "poll_s", self.poll_s, lambda s: 0 <= s < math.inf, "at least 0 [s]")
        check_number(self._id, "completing_s", self.completing_s, lambda s: 0 <= s < math.inf, "at least 0 [s]")
        if system.rules.placement != "pack":
            raise InputError(
                f"{self._id} chooses nodes as Slurm does; it does not respect --placement {system.rules.placement}."
            )
        self.settings_, self.clock_s_ = settings, float(settings.get(CLOCK, "0"))
        self.partition_factors_ = {each.name: each.job_factor for each in system.platform.partitions}
        self.order_ = self.queue_order()
        self.orders_ = [] if self.order_ is None else [self.order_]
        for each in self.orders_:
            each.prepare()
        if not system.platform.partitions:
            check_one_cluster(self, system)
        self.predicted_, self.is_textbook_ = None, False
        self.machine_: SlurmNodes = SlurmNodes(system, self.completing_s)
        self.known_ = 0
        self.run_time_, self.requested_ = np.empty(0), np.empty(0)
        self.size_ = np.empty(0, dtype=np.int64)
        #: jobs that waited after the last look; whether backfilling, and the main scheduler, have something to do
        self.waited_ = np.empty(0, dtype=np.int64)
        self.backfill_is_due_, self.full_look_is_due_ = True, True
        self.next_backfill_s_ = self.next_full_look_s_ = -math.inf
        #: when the main scheduler looks next [s]; infinite where nothing has happened since it did
        self.main_s_ = math.inf
        #: when priorities are computed again [s]
        self.recalculated_s_ = math.inf
        self.expected_start_s_: dict[int, float] = {}

    def _limits(self, settings: Mapping[str, str]) -> dict[str, int]:
        """Return the numbers that are given, else those of a configuration, else Slurm's."""
        given: dict[str, Any] = {}
        for item in settings.get("SchedulerParameters", "").split(","):
            name, equals, text = item.strip().partition("=")
            name = {"max_job_bf": "bf_max_job_test"}.get(name, name)
            if name in LIMITS and equals:
                given[name] = int(text) if text.isdecimal() and len(text) < 10 else text
        limits = {}
        for name, (default, least) in LIMITS.items():
            own = getattr(self, name)
            limits[name] = given.get(name, default) if own is None else own
            check_whole_number(self._id, name, limits[name], least)
        return limits

    def _backfills(self, settings: Mapping[str, str]) -> bool:
        return settings.get("SchedulerType", "sched/backfill").lower() == "sched/backfill"

    def queue_order(self) -> QueueOrder | None:
        """Return the order of the queue; None is that of submission."""
        own = None if self.order is None else read_order(self._id, self.order)
        if own is not None and not isinstance(own, MultifactorPriority):
            return own
        is_basic = self.settings_.get("PriorityType", "priority/basic").lower() != "priority/multifactor"
        if own is None and (self.order is not None or is_basic):
            return None
        found = self._configured()
        if self.order is not None:
            _, given = read_call(self._id, "order", self.order, "multifactor(first_calc_s=60)")
            for name, value in given.items():
                setattr(found, name, value)
        return found

    def _configured(self) -> MultifactorPriority:
        """Return multifactor with the weights of the configuration."""
        own = {each.name: each.type for each in fields(MultifactorPriority)}
        values: dict[str, Any] = {}
        for name, text in self.settings_.items():
            kind = own.get(name)
            if kind == "int":
                if not (text.isdecimal() and len(text) < 11):
                    raise InputError(f"{name} of the configuration is {text[:40]!r}; it must be a whole number.")
                values[name] = int(text)
            elif kind == "bool":
                values[name] = text.upper() in ("YES", "TRUE", "Y", "1")
            elif kind is not None:
                values[name] = text
        if self.settings_:
            values = {"PriorityCalcPeriod": "5", **values}
            flags = [each for each in values.get("PriorityFlags", "").upper().split(",") if each in PRIORITY_FLAGS]
            values["PriorityFlags"] = ",".join(flags if "NO_FAIR_TREE" in flags else [*flags, "FAIR_TREE"])
            values["by_account"] = True
            enforced = {each.strip() for each in self.settings_.get("AccountingStorageEnforce", "").lower().split(",")}
            values["charges_ends"] = not enforced.isdisjoint(CHARGING_ENDS)
            values["partitions"] = {name: factor for name, factor in self.partition_factors_.items() if factor}
        return MultifactorPriority(**values)

    def schedule(self, state: State) -> Iterable[Decision]:
        """Start what the main scheduler starts, and if it is time what backfilling does."""
        now, machine = float(state.now), self.machine_
        self._observe(state)
        has_changed = machine.note_ends(state) | machine.note_nodes(state) | machine.note_cap(state)
        queue = state.mappable
        has_changed |= not np.array_equal(queue, self.waited_)
        if has_changed or now >= self.recalculated_s_:
            self.backfill_is_due_ = self.full_look_is_due_ = True
        if has_changed and self.main_s_ == math.inf:
            self.main_s_ = _multiple_from(now, self.poll_s) if self.poll_s else now
        if not len(queue):
            self.waited_ = queue
            return []
        if queue.item(-1) >= self.known_:
            self._learn(queue.item(-1) + 1, state)
        is_full_pass = self.full_look_is_due_ and now >= self.next_full_look_s_
        backfills = self.backfills_ and self.backfill_is_due_ and now >= self.next_backfill_s_
        decisions: list[Decision] = []
        is_main = now >= self.main_s_
        if is_main or is_full_pass or backfills:
            queue = self._ordered(queue, state)
            decisions += self._passes(state, queue, is_main, is_full_pass, backfills)
        started = np.array([each.task for each in decisions if isinstance(each, Allocate)], dtype=np.int64)
        if len(started):
            self._note_starts(now, started)
            machine.note_starts([each for each in decisions if isinstance(each, Allocate)])
        self.waited_ = np.setdiff1d(state.mappable, started)
        if isinstance(self.order_, MultifactorPriority):
            self.recalculated_s_ = self.order_.next_calc_s(now)
        if len(self.waited_):
            decisions.append(WakeAt(self._next_look_s(now)))
            if decisions[-1].time == math.inf:  # type: ignore[attr-defined]
                decisions.pop()
        return decisions

    def _passes(
        self, state: State, queue: Integers, is_main: bool, is_full_pass: bool, backfills: bool
    ) -> list[Allocate]:
        """Return what the schedulers start whose turn it is."""
        now, machine, limits = float(state.now), self.machine_, self.limits_
        machine.look(state, self.requested_)
        started: list[Allocate] = []
        if is_main or is_full_pass:
            self.main_s_ = math.inf
            started += machine.start_by_main(now, queue if is_full_pass else queue[: limits["default_queue_depth"]])
        if is_full_pass:
            self.full_look_is_due_ = False
            self.next_full_look_s_ = _next_multiple(now, limits["sched_interval"])
        if backfills:
            gone = np.array([each.task for each in started], dtype=np.int64)
            rest = self._looked_at(queue[~np.isin(queue, gone)], state)
            window_s, resolution_s = 60.0 * limits["bf_window"], float(limits["bf_resolution"])
            ends = float(limits["bf_window_linear"]), self.clock_s_, self.ends_together == "aligned"
            more = machine.start_by_backfilling(now, rest, window_s, resolution_s, ends)
            self.expected_start_s_ = machine.expected_start_s
            self.backfill_is_due_ = bool(more)
            self.next_backfill_s_ = _next_multiple(now, limits["bf_interval"])
            started += more
        return started

    def _looked_at(self, queue: Integers, state: State) -> Integers:
        """Return the jobs that backfilling looks at."""
        most = self.limits_["bf_max_job_user"]
        users = state.tasks.attributes.get("user")
        if most and users is not None:
            code, kept = users.codes[queue], np.ones(len(queue), dtype=np.bool_)
            for user in distinct(code[code >= 0]).tolist():
                kept[np.flatnonzero(code == user)[most:]] = False
            queue = queue[kept]
        return queue[: self.limits_["bf_max_job_test"]]

    def _next_look_s(self, now: float) -> float:
        """When the queue is looked at again if nothing happens [s]; infinite if never."""
        times = [self.main_s_]
        if self.backfills_:
            if self.backfill_is_due_:
                times.append(max(self.next_backfill_s_, math.nextafter(now, math.inf)))
            elif self.recalculated_s_ < math.inf:
                times.append(_multiple_from(self.recalculated_s_, self.limits_["bf_interval"]))
        if self.full_look_is_due_ and len(self.waited_) > self.limits_["default_queue_depth"]:
            times.append(max(self.next_full_look_s_, math.nextafter(now, math.inf)))
        times.append(self.machine_.next_free_s(now))
        return min(times)


def _next_multiple(now: float, step: float) -> float:
    """Return the first multiple of a step after a time."""
    return float((math.floor(now / step) + 1) * step)


def _multiple_from(now: float, step: float) -> float:
    """Return the first multiple of a step that is not before a time."""
    return float(math.ceil(now / step) * step)


class SlurmNodes(EachNode):
    """Nodes as Slurm looks at them.

    Parameters
    ----------
    system : System
    completing_s : float
        As of `Slurm`.

    Attributes
    ----------
    expected_start_s : dict of int to float
        As of `Slurm`, without the underscore.
    """

    def __init__(self, system: System, completing_s: float) -> None:
        super().__init__(system, ALL)
        self._completing_s, self._power = completing_s, PowerRoom(system)
        self._whole, self._weight = _wholes(system.platform), _weights(system.platform)
        self.expected_start_s: dict[int, float] = {}
        #: nodes that ran nothing after the last look
        self._free = np.ones(system.n_hosts, dtype=np.bool_)
        self._cap_w = math.inf if system.rules.power_cap_w is None else system.rules.power_cap_w
        #: hosts and parts of what runs by task, and of what has ended, with the time until which they stay taken
        self._places_of: dict[int, Integers] = {}
        self._completing: list[tuple[float, int, Integers]] = []

    def note_ends(self, state: State) -> bool:
        """Note what has ended; return whether anything has, or has its nodes free again."""
        running = set(state.running["task"].tolist())
        ended = [task for task in self._places_of if task not in running]
        for task in ended:
            places = self._places_of.pop(task)
            if self._completing_s:
                self._completing.append((state.now + self._completing_s, task, places))
        left = [each for each in self._completing if each[0] > state.now]
        is_free_again = len(left) < len(self._completing)
        self._completing = left
        return bool(ended) or is_free_again

    def note_nodes(self, state: State) -> bool:
        """Note which nodes run nothing; return whether some have come up since the last look."""
        before, self._free = self._free, state.nodes.free.copy()
        return bool((self._free & ~before).any())

    def note_cap(self, state: State) -> bool:
        """Note the cap on power; return whether it has changed since the last look."""
        before, self._cap_w = self._cap_w, state.power_cap_w
        return self._cap_w != before

    def note_starts(self, started: Iterable[Allocate]) -> None:
        """Note the nodes of what starts now."""
        for each in started:
            self._free[each.hosts] = False

    def next_free_s(self, now: float) -> float:
        """When nodes of a job that has ended are free again [s]; infinite if none has."""
        return min((each[0] for each in self._completing), default=math.inf)

    def look(self, state: State, limit_s: Floats) -> None:
        """Take over what is free and what runs now, before anything starts."""
        jobs, now = self._jobs, state.now
        if self._cap_w < math.inf:
            self._power.look(state)
        ahead = self._down_s[1] > now
        down, down_s = self._down[ahead], np.compress(ahead, self._down_s, axis=1)
        down_now = down[down_s[0] <= now]
        left, (ends, rows, pool) = self._left_now(state, down_now), self._what_runs(state, None, down_now)
        width = for_kernels(jobs.width if self._shares else self._widths(state))
        self._now = Machine(
            jobs.demand, jobs.anywhere, width, limit_s, jobs.partition, self._hosts, self._offsets, self._whole,
            self._weight, down, down_s,
        )  # fmt: skip
        self._left = np.array(left)
        ended = [(until, task, places) for until, task, places in self._completing]
        for _, task, places in ended:
            np.subtract.at(self._left, places[0], places[1][:, None] * jobs.demand[task])
        first = pool.shape[1] + np.cumsum([0, *(places.shape[1] for *_, places in ended)], dtype=np.int64)[:-1]
        self._ends = np.concatenate([ends, [until for until, *_ in ended]])
        self._rows = np.concatenate(
            [
                rows,
                np.array(
                    [[task for _, task, _ in ended], first, [each.shape[1] for *_, each in ended]], dtype=np.int64
                ),
            ],
            axis=1,
        )
        self._pool = np.concatenate([pool, *(places for *_, places in ended)], axis=1)

    def _widths(self, state: State) -> Integers:
        width = state.tasks.width
        return np.ones(len(state.tasks), dtype=np.int64) if width is None else width

    def start_by_main(self, now: float, queue: Integers) -> list[Allocate]:
        """Return what the main scheduler starts."""
        starts = self._empty_starts(len(queue))
        count = main_pass(self._now, now, np.array(queue), self._left, starts)
        return self._allocated(now, starts, count)

    def start_by_backfilling(
        self, now: float, queue: Integers, window_s: float, resolution_s: float, ends: tuple[float, float, bool]
    ) -> list[Allocate]:
        """Return what backfilling starts."""
        starts, n, m = self._empty_starts(len(queue)), len(self._ends), len(queue)
        more, size = np.zeros(m, dtype=np.int64), self._pool.shape[1]
        task, first, count = (np.concatenate([row, more]) for row in self._rows)
        pool = np.concatenate([self._pool, np.zeros((2, self.size), dtype=np.int64)], axis=1)
        running = Running(np.concatenate([self._ends, np.zeros(m)]), task, first, count, pool, np.array([n, size]))
        args = self._now, now, np.array(queue), self._left, running, window_s, resolution_s, *ends, starts
        found = backfill_pass(*args)
        expected = zip(queue.tolist(), starts.expected_s[:m].tolist(), strict=True)
        self.expected_start_s = {task: time for task, time in expected if time == time}
        return self._allocated(now, starts, found)

    def _empty_starts(self, m: int) -> Starts:
        whole = np.zeros(m + 1, dtype=np.int64)
        return Starts(whole, whole.copy(), np.zeros((2, self.size + 1), dtype=np.int64), np.full(m + 1, np.nan))

    def _allocated(self, now: float, starts: Starts, count: int) -> list[Allocate]:
        """Return what starts as decisions; what runs then includes it."""
        decisions: list[Allocate] = []
        begin = 0
        for task, n in zip(starts.job[:count].tolist(), starts.n_places[:count].tolist(), strict=True):
            places = starts.places[:, begin : begin + n].copy()
            begin += n
            decision = Allocate(task, np.repeat(places[0], places[1]))
            if self._cap_w < math.inf and not self._power.takes(decision):
                break
            self._places_of[task] = places
            decisions.append(decision)
            row = np.array([[task], [self._pool.shape[1]], [n]], dtype=np.int64)
            self._rows = np.concatenate([self._rows, row], axis=1)
            self._pool = np.concatenate([self._pool, places], axis=1)
            self._ends = np.append(self._ends, now + self._now.limit[task])
        return decisions


def _wholes(platform: Platform) -> Integers:
    """Return the whole partition of each of a platform's partitions, and parts of some."""
    parts = platform.partitions or platform.clusters
    names = [each.name for each in parts]
    return np.array([names.index(name) for name in names], dtype=np.int64)


def _weights(platform: Platform) -> Integers:
    return np.array([host.weight for host in platform.hosts], dtype=np.int64)
