"""EASY backfilling whose machine has an energy budget in a window of time, as CCGrid 2017 studied it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from gridsched.arrays import Booleans, Integers
from gridsched.errors import InputError
from gridsched.model.limits import time_tolerance
from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits, TraitsWith, check_choice, check_number
from gridsched.policy.decisions import Allocate, Decision, PowerOff, PowerOn, WakeAt
from gridsched.policy.state import State
from gridsched.schedulers.parallel.backfilling import check_one_cluster
from gridsched.schedulers.parallel.energy_plan import EnergyPlan, Window


class EasyEnergyBudget(Scheduler):
    """EASY backfilling under an energy budget that becomes available at a constant rate in a window of time.

    Parameters
    ----------
    budget_share : float
        The budget, as a share of what all nodes draw that compute for the whole window.
    begin_s, end_s : float
        The window [s].
    energy_reservation : {"head", "all", "none"}
        ``head``: the head of the queue may take energy that was saved, and reserves what it needs; jobs that
        overtake it may take neither its nodes nor its energy (energyBud). ``all``: every waiting job, in order, has
        nodes and energy reserved for its earliest start. ``none``: no job may take what was saved; the budget is a
        cap on power at its mean rate (PC).
    overtaking : {"energy", "saved", "power"}
        What jobs that overtake a head with reserved energy are held to: ``energy``, what becomes available until
        the head starts, and neither what runs nor the head needs; ``saved``, what was saved, less what the head and
        others of that look take of it, as the head is; ``power``, the cap, lowered by what is reserved over the time
        until the head starts (reducePC). It has no effect unless the head alone reserves.
    idle_w, busy_w : float
        What the scheduler takes a node to draw that idles, and one that computes [W].
    monitored_s : float
        How often the energy that was really drawn is looked at in the window [s].
    contiguous : bool
        Whether a job takes neighboring nodes; with ``all``, which reserves numbers of nodes, it takes them where
        there are such.
    switches_off : bool
        Whether nodes that idle are off in the window; a job whose nodes are off waits for them to boot.
    spares_idle : bool
        Whether jobs that overtake leave idle nodes what these draw, by `idle_w`.

    Notes
    -----
    The budget becomes available at the rate P = share x nodes x `busy_w`. A job whose requested time touches the
    window may start if all nodes then draw no more than P by the scheduler's watts. Energy that was not drawn is
    saved, and may be taken once that was monitored. With ``head``, the head may start above P if what it takes in
    excess within the window is saved, and not reserved by others. Where it cannot start, its start is the first end
    of a running job at which nodes and energy are enough, or later, when the idle machine has saved it; with ``none``
    not before the window's end. Others, in order, may overtake where they do not delay it: on nodes that it does not
    need or until it starts. With ``head`` they leave it its energy, in one of two ways (`overtaking`): idle nodes save
    it, since others may draw no more in all, or since the cap is lower until then.

    With ``all`` what is saved is planned from now to the window's end (`EnergyPlan`): a job starts where nodes are free
    and where at no later time less than nothing is saved, be that above or below P. Between two looks the scheduler's
    own watts count. All are planned again, in order, at each event.

    References
    ----------
    .. [1] P.-F. Dutot, Y. Georgiou, D. Glesser, L. Lefevre, M. Poquet, I. Rais, "Towards energy budget control in
       HPC", CCGrid 2017, hal-01533417 (not read; its rules as its authors' programs have them).
    """

    traits: ClassVar[Traits] = TraitsWith(  # type: ignore[assignment]
        Traits(trigger="event", parallel=True, platform_order_matters=True), "switches_off", powers_hosts=True
    )
    _id: ClassVar[str] = "easy_energy_budget"

    def __init__(
        self,
        budget_share: float = 1.0,
        begin_s: float = 172_800.0,
        end_s: float = 432_000.0,
        energy_reservation: str = "head",
        overtaking: str = "energy",
        idle_w: float = 100.0,
        busy_w: float = 203.12,
        monitored_s: float = 600.0,
        contiguous: bool = True,
        switches_off: bool = False,
        spares_idle: bool = True,
    ) -> None:
        self.budget_share = budget_share
        self.begin_s = begin_s
        self.end_s = end_s
        self.energy_reservation = energy_reservation
        self.overtaking = overtaking
        self.idle_w = idle_w
        self.busy_w = busy_w
        self.monitored_s = monitored_s
        self.contiguous = contiguous
        self.switches_off = switches_off
        self.spares_idle = spares_idle

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters; nothing has been saved yet.

        Raises
        ------
        InputError
            If a parameter is not allowed, or the platform is not one cluster.
        """
        check_number(self._id, "budget_share", self.budget_share, lambda x: 0 < x < math.inf, "greater than 0")
        check_number(self._id, "begin_s", self.begin_s, lambda x: 0 <= x < math.inf, "at least 0 s")
        check_number(self._id, "end_s", self.end_s, lambda x: self.begin_s < x < math.inf, "after begin_s")
        check_choice(self._id, "energy_reservation", self.energy_reservation, ["head", "all", "none"])
        check_choice(self._id, "overtaking", self.overtaking, ["energy", "saved", "power"])
        check_number(self._id, "idle_w", self.idle_w, lambda x: 0 <= x < math.inf, "at least 0 W")
        check_number(self._id, "busy_w", self.busy_w, lambda x: self.idle_w < x < math.inf, "greater than idle_w")
        check_number(self._id, "monitored_s", self.monitored_s, lambda x: 0 < x < math.inf, "greater than 0 s")
        for name in ("contiguous", "switches_off", "spares_idle"):
            check_choice(self._id, name, getattr(self, name), [True, False])
        check_one_cluster(self, system)
        self.n_ = system.n_hosts
        self.pstate_ = system.pstate
        #: the rate at which the budget becomes available [W]
        self.cap_w_ = self.budget_share * self.n_ * self.busy_w
        self.window_ = Window(self.begin_s, self.end_s, self.cap_w_, self.n_, self.idle_w, self.busy_w)
        self.saves_ = self.energy_reservation != "none"
        #: whether jobs are held to what is saved alone: nothing is kept for what runs, and below the cap they give back
        self.gives_back_ = self.energy_reservation == "head" and self.overtaking == "saved"
        #: what was saved until the last look, when that was [s], and what had been drawn then [J]
        self.saved_j_, self.looked_s_, self.consumed_j_ = 0.0, math.nan, 0.0
        #: nodes of what runs; what each job may draw above the cap [W], from and until when [s]
        self.nodes_: dict[int, Integers] = {}
        #: those whose nodes boot, in order of being chosen
        self.booting_: list[int] = []
        self.above_: dict[int, tuple[float, float, float]] = {}
        #: what was saved since the last look by the scheduler's watts [J], until when [s], and nodes in use since then
        self.since_j_, self.until_s_, self.used_ = 0.0, 0.0, 0
        #: for when a wake was asked for [s]
        self.woken_: set[float] = set()

    # ------------------------------------------------------------------ energy

    def _overlap_s(self, begin_s: float, end_s: float) -> float:
        """Return how much of a time lies in the window [s]."""
        return max(min(end_s, self.end_s) - max(begin_s, self.begin_s), 0.0)

    def _above_w(self, used: int, cap_w: float) -> float:
        """Return what all draw above a cap while so many nodes compute [W], 0 but for rounding."""
        excess = self.window_.power_w(used) - cap_w
        return excess if excess > 1e-9 * self.cap_w_ else 0.0

    def _excess_w(self, used: int) -> float:
        """Return the same above the cap of the budget's mean [W]; below it where what a job gives back counts, too."""
        if self.gives_back_:
            return self.window_.power_w(used) - self.cap_w_
        return self._above_w(used, self.cap_w_)

    def _lowered_w(self, now: float, head_s: float, need_j: float) -> float:
        """Return by how much the cap is lower until the head starts, so that idle nodes save its energy [W]."""
        if not self.saves_ or not now < head_s < math.inf:
            return 0.0
        return (need_j + self.saved_j_ - self._free_j()) / (head_s - now)

    def _touches(self, begin_s: float, run_s: float) -> bool:
        return begin_s < self.end_s and begin_s + run_s >= self.begin_s

    def _free_j(self) -> float:
        """Return what was saved and is not reserved [J]."""
        since = self.looked_s_ if self.looked_s_ == self.looked_s_ else self.begin_s
        reserved = (watts * self._overlap_s(max(begin, since), end) for watts, begin, end in self.above_.values())
        return self.saved_j_ - sum(reserved)

    def _monitor(self, state: State) -> None:
        """Look at what was drawn, in the window and whenever that is due."""
        now = state.now
        if not self.saves_ or now < self.begin_s - time_tolerance(now) or self.looked_s_ >= self.end_s:
            return
        is_first = self.looked_s_ != self.looked_s_
        due = self.begin_s if is_first else min(self.looked_s_ + self.monitored_s, self.end_s)
        if now < due - time_tolerance(now):
            return
        consumed_j = state.consumed_j()
        if math.isnan(consumed_j):
            raise InputError(f"{self!r} uses the energy of the hosts, and they have no power.")
        if not is_first:
            self.saved_j_ += self.cap_w_ * (now - self.looked_s_) - (consumed_j - self.consumed_j_)
        self.looked_s_, self.consumed_j_ = now, consumed_j
        self.since_j_ = 0.0

    # ------------------------------------------------------------------ nodes

    def _first(self, free: Booleans, width: int) -> Integers | None:
        """Return the first nodes of some that are free for a job; None if there are none.

        Where the nodes that are up never are a row of its width, any do.
        """
        ids = free.nonzero()[0]
        if len(ids) < width:
            return None
        if not self.contiguous:
            return ids[:width]
        begins = _rows_of(ids, width)
        if len(begins):
            return ids[begins[0] : begins[0] + width]
        return None if len(_rows_of(self.up_.nonzero()[0], width)) else ids[:width]

    # ------------------------------------------------------------------ the schedule

    def schedule(self, state: State) -> Iterable[Decision]:
        """Start the head while nodes and energy are enough, then what does not delay it."""
        running, now = state.running, state.now
        tasks = running["task"].tolist()
        self.nodes_ = {task: self.nodes_[task] for task in [*tasks, *self.booting_]}
        self.above_ = {task: each for task, each in self.above_.items() if task in self.nodes_}
        self.since_j_ += (self.cap_w_ - self.window_.power_w(self.used_)) * self._overlap_s(self.until_s_, now)
        self._monitor(state)
        ends = {task: max(end, now) for task, end in zip(tasks, running["estimated_end"].tolist(), strict=True)}
        is_free = state.nodes.free
        self.up_ = ~state.is_down if self.switches_off else state.is_on
        decisions: list[Decision] = []
        for task in self.booting_.copy():
            nodes, run_s = self.nodes_[task], state.estimates.run_time(task, 0, self.pstate_)
            ends[task] = now + run_s
            if is_free[nodes].all():
                self.booting_.remove(task)
                if task in self.above_:
                    self.above_[task] = self.above_[task][0], now, now + run_s
                decisions.append(Allocate(task, nodes))
        free = is_free.copy()
        if self.switches_off:
            free = self.up_.copy()
            for nodes in self.nodes_.values():
                free[nodes] = False
        starts = self._planned_starts if self.energy_reservation == "all" else self._starts
        decisions += starts(state, free, ends)
        self.until_s_, self.used_ = now, int(np.count_nonzero(~free))
        if self.switches_off and self.begin_s <= now < self.end_s:
            decisions += [PowerOff(host) for host in np.flatnonzero(free & is_free).tolist()]
        return [*decisions, *self._wakes(now)]

    def _starts(self, state: State, free: Booleans, ends: dict[int, float]) -> Iterator[Decision]:
        """Yield what starts, and take its nodes out of those that are free."""
        now, estimates = state.now, state.estimates
        queue = [task for task in state.mappable.tolist() if task not in self.nodes_]
        jobs = [(task, estimates.width(task, 0), estimates.run_time(task, 0, self.pstate_)) for task in queue]
        place = 0
        while place < len(jobs):
            task, width, run_s = jobs[place]
            nodes = self._first(free, width)
            if nodes is None or not self._may_draw(width, now, run_s, int(np.count_nonzero(~free))):
                break
            yield from self._start(task, nodes, run_s, state, free, ends, reserves=self.saves_ and not self.gives_back_)
            place += 1
        if place >= len(jobs):
            return
        _, width, run_s = jobs[place]
        head_s, kept, need_j = self._head(width, run_s, now, free, ends)
        left_j = self._left_j(now, head_s, ends) - max(need_j - self._free_j(), 0.0)
        spare_j = self._free_j() - need_j
        cap_w = self.cap_w_ - self._lowered_w(now, head_s, need_j)
        used = int(np.count_nonzero(~free))
        #: first nodes of a width, until the head starts or for longer; as they are until the next job starts
        found: dict[tuple[int, bool], Integers | None] = {}
        for task, width, run_s in jobs[place + 1 :]:
            if used == self.n_:
                return
            key = width, now + run_s <= head_s
            if key not in found:
                found[key] = self._first(free if key[1] else free & ~kept, width)
            nodes = found[key]
            if nodes is None:
                continue
            if self.saves_ and self.overtaking == "energy":
                added_j = width * (self.busy_w - self.idle_w) * self._overlap_s(now, min(now + run_s, head_s))
                if added_j > left_j + 1e-9 * abs(left_j):
                    continue
                left_j -= added_j
            elif self.gives_back_:
                if self._touches(now, run_s):
                    added_j = self._excess_w(used + width) * self._overlap_s(now, now + run_s)
                    if added_j > spare_j + 1e-9 * abs(spare_j):
                        continue
                    spare_j -= added_j
            elif self._touches(now, run_s) and self._above_w(used + width, cap_w):
                continue
            yield from self._start(task, nodes, run_s, state, free, ends)
            used += width
            found.clear()

    def _planned_starts(self, state: State, free: Booleans, ends: dict[int, float]) -> Iterator[Decision]:
        """Yield what starts when all, in order, reserve nodes and energy; wake for the next reservation."""
        now, estimates = state.now, state.estimates
        running = [(len(self.nodes_[task]), end) for task, end in ends.items() if end > now]
        plan = EnergyPlan(self.window_, now, int(np.count_nonzero(self.up_)), self.saved_j_ + self.since_j_, running)
        next_s = math.inf
        for task in state.mappable.tolist():
            if task in self.nodes_:
                continue
            width, run_s = estimates.width(task, 0), estimates.run_time(task, 0, self.pstate_)
            start_s = plan.earliest_s(width, run_s)
            if start_s == math.inf:
                continue
            plan.reserve(width, max(start_s, now), run_s)
            if start_s > now + time_tolerance(now):
                next_s = min(next_s, start_s)
                continue
            nodes = self._first(free, width)
            if nodes is None:
                nodes = free.nonzero()[0][:width]
            if len(nodes) == width:
                yield from self._start(task, nodes, run_s, state, free, ends)
        if next_s < math.inf and next_s not in self.woken_:
            self.woken_.add(next_s)
            yield WakeAt(next_s)

    def _start(
        self,
        task: int,
        nodes: Integers,
        run_s: float,
        state: State,
        free: Booleans,
        ends: dict[int, float],
        *,
        reserves: bool = False,
    ) -> Iterator[Decision]:
        """Let a job start, or its nodes boot, and note what it takes of energy that was saved."""
        now, free[nodes] = state.now, False
        excess_w = self._excess_w(int(np.count_nonzero(~free)))
        if reserves and excess_w and self._touches(now, run_s):
            self.above_[task] = excess_w, now, now + run_s
        self.nodes_[task], ends[task] = nodes, now + run_s
        if state.nodes.free[nodes].all():
            yield Allocate(task, nodes)
            return
        self.booting_.append(task)
        for host in nodes[~state.is_on[nodes]].tolist():
            yield PowerOn(host)

    def _may_draw(self, width: int, begin_s: float, run_s: float, used: int, saved_j: float = 0.0) -> bool:
        """Whether there is energy for a job: below the cap, or for the head, what was saved and will be."""
        if not self._touches(begin_s, run_s):
            return True
        excess_w = self._excess_w(used + width)
        if not self.gives_back_ and (not excess_w or not self.saves_):
            return not excess_w
        return excess_w * self._overlap_s(begin_s, begin_s + run_s) <= saved_j + self._free_j()

    def _head(
        self, width: int, run_s: float, now: float, free: Booleans, ends: dict[int, float]
    ) -> tuple[float, Booleans, float]:
        """Return when the head starts [s], which nodes are kept for it, and what it takes above the cap then [J]."""
        free, kept = free.copy(), np.zeros(self.n_, dtype=np.bool_)
        used, saved_j, since, first_s = int(np.count_nonzero(~free)), 0.0, now, math.inf
        for task, end in sorted(ends.items(), key=lambda item: (item[1], item[0])):
            saved_j += (self.cap_w_ - self.window_.power_w(used)) * self._overlap_s(since, end)
            free[self.nodes_[task]] = True
            used, since = used - len(self.nodes_[task]), end
            nodes = self._first(free, width) if self.n_ - used >= width else None
            if nodes is None:
                continue
            first_s = min(first_s, end)
            if self._may_draw(width, end, run_s, used, saved_j):
                kept[nodes] = True
                return end, kept, self._excess_w(used + width) * self._overlap_s(end, end + run_s)
        nodes = self._first(self.up_, width)
        if nodes is None:  # too many are down
            return math.inf, kept, 0.0
        kept[nodes] = True  # energy alone is missing
        begin_s = max(since, first_s if first_s < math.inf else since)
        if not self.saves_:
            return max(self.end_s, begin_s), kept, 0.0
        head_s = self._when_saved(width, run_s, max(begin_s, self.begin_s), saved_j + self._free_j())
        return head_s, kept, self._excess_w(width) * self._overlap_s(head_s, head_s + run_s)

    def _when_saved(self, width: int, run_s: float, since_s: float, have_j: float) -> float:
        """Return when an idle machine has saved what a job takes above the cap [s], at most the window's end."""
        excess_w, idle_w = self._excess_w(width), self.cap_w_ - self.window_.power_w(0)
        if idle_w > 0:
            start_s = since_s + (excess_w * run_s - have_j) / idle_w
            if start_s + run_s <= self.end_s:
                return max(start_s, since_s)
        rate_w = idle_w + excess_w
        start_s = since_s + (excess_w * (self.end_s - since_s) - have_j) / rate_w if rate_w > 0 else self.end_s
        return min(max(start_s, since_s), self.end_s)

    def _left_j(self, now: float, head_s: float, ends: dict[int, float]) -> float:
        """Return what becomes available until the head starts and what runs does not draw [J]."""
        if not self._overlap_s(now, head_s):
            return math.inf
        idle_w = self.idle_w if self.spares_idle else 0.0
        left_j = (self.cap_w_ - self.n_ * idle_w) * self._overlap_s(now, head_s)
        for task, end in ends.items():
            added_w = len(self.nodes_[task]) * (self.busy_w - idle_w)
            left_j -= added_w * self._overlap_s(now, min(end, head_s))
        return left_j

    def _wakes(self, now: float) -> Iterator[Decision]:
        """Ask to be woken when energy is looked at, and at the window's end."""
        times = [self.begin_s, self.end_s]
        if self.saves_ and self.looked_s_ == self.looked_s_:
            times.append(min(self.looked_s_ + self.monitored_s, self.end_s))
        for time in sorted(set(times)):
            if now + time_tolerance(now) < time < math.inf and time not in self.woken_:
                self.woken_.add(time)
                yield WakeAt(time)


def _rows_of(ids: Integers, width: int) -> Integers:
    """Return where in ascending ids rows of neighbors of a width begin."""
    if len(ids) < width:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(ids[width - 1 :] - ids[: len(ids) - width + 1] == width - 1)
