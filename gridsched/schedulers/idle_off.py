"""Switching off hosts that have been idle for some time: the timeout policy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.errors import InputError
from gridsched.model.limits import time_tolerance
from gridsched.model.platform import Platform
from gridsched.model.room_on_nodes import node_amounts, partition_members, rooms
from gridsched.model.system import System
from gridsched.platform_io.slurm_conf import power_saving_s
from gridsched.policy.base import Scheduler, Traits, check_number
from gridsched.policy.decisions import Decision, Plan, PowerOff, PowerOn, WakeAt
from gridsched.policy.state import SharedNodesState, State
from gridsched.power import host_power
from gridsched.schedulers.wrapping import TraitsOfWrapped, Wrapper

#: How long hosts are idle before they are switched off where nothing specifies it [s].
TIMEOUT_S = 60.0


class IdleOff(Wrapper):
    """Another scheduler decides; hosts that were idle for a time are off until they are needed.

    Parameters
    ----------
    scheduler : str or Scheduler
        Who decides about the tasks: an id, alone or with parameters
        (``"wqr(max_replicas=3)"``), or an instance. With one of parallel jobs
        (``"easy_backfilling"``) it takes these.
    timeout_s : float, optional
        How long a host is idle before it is switched off [s]; longer where that would not pay. By default
        ``SuspendTime`` of the platform's ``slurm.conf``, else 60.

    Notes
    -----
    At every event, before the other scheduler is asked, the tasks that wait without a place (in no
    plan of the other scheduler, or in a common queue) are counted against free cores, one for each
    task, in order of their ids: each takes a core that can run it, first of hosts where something
    runs or that boot, then of idle hosts, the one that is idle for the shortest time first, then of
    hosts that are off. Of equals it takes the one on which the first such task needs the least
    energy, as estimated, then the one of the lowest id. Then

    1. hosts that are off and got a task in this count are switched on, as far as a power cap has
       room for them to boot and to work; the other scheduler sees them as booting and may give them
       work at once. Under a cap, hosts that still shut down have to wait until they are off;
    2. hosts that are idle for `timeout_s` are switched off, but for those that got a task in this
       count or have planned or reserved work, and those that a power cap does not let shut down.
       A host is expected to stay idle for as long again as it has been: it stays on until being
       off for so long saves what shutting it down and booting it cost (`break_even_s`).

    Parallel tasks count with their width in every cluster where they can run. Where there are
    partitions, or tasks share nodes, each takes room for its parts on hosts of its partition. A core that fetches
    input files is not idle. Under a mapping interval hosts are looked at only at its multiples and
    when tasks are submitted.

    References
    ----------
    .. [1] SchedMD, "Slurm power saving guide", https://slurm.schedmd.com/power_save.html (its
       beginning read): nodes that are idle for SuspendTime are suspended, and resumed for work.
    .. [2] L. Benini, A. Bogliolo, G. De Micheli, "A survey of design techniques for system-level
       dynamic power management", IEEE TVLSI 8(3), 2000 (not read): fixed timeouts,
       break-even times.
    """

    _id: ClassVar[str] = "idle_off"
    traits: ClassVar[Traits] = TraitsOfWrapped(  # type: ignore[assignment]
        powers_hosts=True, observes_events=True
    )

    def __init__(self, scheduler: str | Scheduler = "mct", timeout_s: float | None = None) -> None:
        self.scheduler = scheduler
        self.timeout_s = timeout_s

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters; forget the last run.

        Raises
        ------
        InputError
            If a parameter is out of range, or the scheduler switches by time-outs itself.
        """
        timeout_s = self.timeout_s
        if timeout_s is None:
            suspend_s = power_saving_s(dict(system.platform.queue_settings), "SuspendTime")
            timeout_s = TIMEOUT_S if suspend_s is None else suspend_s
        check_number(self._id, "timeout_s", timeout_s, lambda x: x >= 0, "at least 0 s (inf: never)")
        super().prepare(system, rng)
        if self.wrapped_.traits.observes_events:
            raise InputError(f"idle_off cannot wrap {self.wrapped_!r}, which observes events.")
        self.system_ = system
        platform = system.platform
        #: whether hosts are counted by what parts of tasks take of them; else by nodes
        self.shares_ = self.wrapped_.traits.parallel and bool(platform.partitions)
        self.members_ = partition_members(platform)
        least_w = np.fmin.reduce(
            host_power(1, platform.cores[:, None], platform.idle_w, platform.epsilon_w, platform.busy_w), axis=1
        )
        #: what each host draws at least while it boots, and then with one core at work [W]
        self.least_w_ = np.maximum(least_w, [host.boot_w or 0.0 for host in platform.hosts])
        #: how long each host is idle before it is switched off [s], shape (hosts, P-states)
        self.timeouts_s_ = np.maximum(timeout_s, break_even_s(platform))
        #: when each host that was switched off has shut down [s]
        self.off_at_ = np.full(len(platform), -math.inf)
        self.wakes_ = system.rules.mapping_interval_s is None
        self.wake_ = -math.inf
        #: tasks of the last plan, and the hosts of each, as `Plan` has them
        self.plan_: Plan | None = None

    def _decided(self, answer: list[Decision], state: State) -> Iterable[Decision]:
        for decision in answer:
            if isinstance(decision, Plan):
                self.plan_ = decision
        return answer

    def on_event(self, state: State) -> Iterable[Decision]:
        """Switch hosts on that are needed, and off that have been idle for long."""
        since, is_on = state.idle_since, state.is_on
        idle = np.isfinite(since)
        if is_on.all() and not idle.any():
            return []
        needed, busy = self._needed(state, since)
        due_at = since + self.timeouts_s_[np.arange(len(since)), state.pstate]
        due = idle & (state.now >= due_at - time_tolerance(state.now))
        is_waking = needed & ~is_on
        off = due & ~needed & ~busy
        decisions = list(self._switched(state, np.flatnonzero(is_waking), np.flatnonzero(off)))
        times = [due_at[idle & ~due]]
        if state.power.cap_w < math.inf:
            times.append(self.off_at_[is_waking & (self.off_at_ > state.now)])
        decisions += self._wake(state.now, np.concatenate(times))
        return decisions

    def _wake(self, now: float, times: Floats) -> list[Decision]:
        """Ask to be woken when the next host has been idle for long, unless that is on its way."""
        first = float(times.min(initial=math.inf))
        if not self.wakes_ or first == math.inf or now < self.wake_ <= first:
            return []
        self.wake_ = first
        return [WakeAt(first)]

    def _switched(self, state: State, on: Integers, off: Integers) -> Iterator[Decision]:
        """Switch hosts on and off, as far as the power cap admits what they draw by that."""
        power, hosts, added_w = state.power, self.system_.platform.hosts, 0.0
        for host in on.tolist():
            if power.cap_w < math.inf and self.off_at_[host] > state.now:
                continue  # it would boot later, when others may have taken the power
            added_w += self.least_w_[host] - hosts[host].off_w
            if not power.allows(added_w):
                return
            yield PowerOn(host)
        for host in off.tolist():
            idle_w = hosts[host].pstates[int(state.pstate[host])].idle_w
            more_w = max((hosts[host].shutdown_w or 0.0) - idle_w, 0.0)
            if more_w and not power.allows(added_w + more_w):
                continue
            added_w += more_w
            self.off_at_[host] = state.now + hosts[host].shutdown_time_s
            yield PowerOff(host)

    # ------------------------------------------------------------------ what is needed

    def _needed(self, state: State, since: Floats) -> tuple[Booleans, Booleans]:
        """Whether each host is needed by tasks without a place, and has work to come."""
        needed = np.zeros(len(since), dtype=bool)
        to_come, placed = self._to_come(state)
        waiting = state.mappable
        unplaced = waiting[~np.isin(waiting, placed)]
        if not len(unplaced):
            return needed, to_come
        free = np.where(
            state.is_on,
            np.maximum(state.free_cores - state.queue_length, 0),
            np.where(state.is_down, 0, self.system_.platform.cores),
        )
        order = self._order(state, since, int(unplaced[0]))
        order = order[free[order] > 0]
        if self.shares_:
            self._count_parts(state, unplaced, order, needed)
        elif self.wrapped_.traits.parallel:
            self._count_nodes(state, unplaced, order, needed)
        elif state.estimates.always_feasible:
            before = np.cumsum(free[order]) - free[order]
            needed[order[before < len(unplaced)]] = True
        else:
            self._count_one_by_one(state, unplaced, order, free, needed)
        return needed, to_come

    def _order(self, state: State, since: Floats, task: int) -> Integers:
        """Return all hosts in the order in which tasks take their cores."""
        hosts = np.arange(len(since))
        pstates = self.system_.pstates
        if self.shares_:  # by where its first part lies; `eec` is infinite where not all lie together
            energy = state.estimates.energies(np.full(len(hosts), task), hosts, pstates)
            energy = np.where(self.members_[state.parts.partition.item(task)], energy, np.inf)
        else:
            energy = state.estimates.eec([task], hosts, pstates)[0]
        rank = np.where(state.is_on, np.where(np.isfinite(since), 1, 0), 2)
        return np.lexsort((hosts, energy, np.where(rank == 1, -since, 0.0), rank))

    def _count_one_by_one(
        self, state: State, tasks: Integers, order: Integers, free: Integers, needed: Booleans
    ) -> None:
        """Note the hosts whose cores the tasks take, each the first one that can run it."""
        left, pstates = free[order], self.system_.pstates[order]
        for task in tasks.tolist():
            fits = np.isfinite(state.estimates.etc([task], order, pstates)[0]) & (left > 0)
            if fits.any():
                k = int(fits.argmax())
                left[k] -= 1
                needed[order[k]] = True
                if not left.any():
                    return

    def _count_nodes(self, state: State, tasks: Integers, order: Integers, needed: Booleans) -> None:
        """Note the nodes that parallel tasks need in each cluster where they can run."""
        platform, estimates, pstates = self.system_.platform, state.estimates, self.system_.pstates
        cluster_of = platform.cluster_of[order]
        for number, cluster in enumerate(platform.clusters):
            host = cluster.hosts[0]
            can_run = np.isfinite(estimates.etc(tasks, [host], int(pstates[host]))[:, 0])
            there = tasks[can_run]
            nodes = int(estimates.widths(there, np.full(len(there), host)).sum())
            needed[order[cluster_of == number][:nodes]] = True

    def _count_parts(self, state: State, tasks: Integers, order: Integers, needed: Booleans) -> None:
        """Note the hosts of its partition on which each task finds room for its parts, beside those before it."""
        parts, placement = state.parts, self.system_.rules.placement
        left = self._what_hosts_have(state)
        for task in tasks.tolist():
            hosts = order[self.members_[parts.partition.item(task), order]]
            if placement == "contiguous":
                hosts = np.sort(hosts)
            need = parts.demand[task]
            room = rooms(left[hosts], need)
            if not parts.anywhere[task]:
                room = np.minimum(room, 1)
            laid = _laid(room, hosts, parts.width.item(task), placement)
            left[hosts] -= laid[:, None] * need
            needed[hosts[laid > 0]] = True
            if needed[order].all():
                return

    def _what_hosts_have(self, state: State) -> Integers:
        """Return what each host could give of each resource, shape (hosts, resources); whole hosts where nothing runs.

        They may be off, but not down.
        """
        nodes = state.nodes
        amounts = node_amounts(self.system_.platform, state.tasks.resources)
        left = nodes.left if isinstance(nodes, SharedNodesState) else amounts * nodes.free[:, None]
        runs_nothing = (state.free_cores == self.system_.platform.cores) & ~state.is_down
        return np.where(runs_nothing[:, None], amounts, left)

    def _to_come(self, state: State) -> tuple[Booleans, Integers]:
        """Whether each host has planned or reserved work, and the tasks that have their places."""
        has_work = np.zeros(self.system_.n_hosts, dtype=bool)
        if self.wrapped_.traits.parallel:
            has_work[state.nodes.reserved.hosts] = True
        plan = self.plan_
        if plan is None or plan.hosts is None:
            return has_work, np.empty(0, dtype=np.int64)
        tasks, hosts = np.asarray(plan.tasks), np.asarray(plan.hosts)
        still = np.isin(tasks, state.mappable)
        widths = 1 if plan.offsets is None else np.diff(plan.offsets)
        has_work[hosts[np.repeat(still, widths)]] = True
        return has_work, tasks[still]


def _laid(room: Integers, hosts: Integers, width: int, placement: str) -> Integers:
    """Return how many parts of a task lie on each host, in order of the hosts; none where there is no room for all."""
    if placement == "contiguous":
        has_gap = np.diff(hosts, prepend=hosts[:1]) != 1
        stretch = np.cumsum(has_gap | (room == 0) | (np.append(0, room)[:-1] == 0))
        in_all = np.bincount(stretch, room)
        enough = np.flatnonzero(in_all >= width)
        room = room * (stretch == enough[0]) if len(enough) else 0 * room
    before = np.cumsum(room) - room
    return np.clip(width - before, 0, room) if room.sum() >= width else 0 * room


def break_even_s(platform: Platform) -> Floats:
    """Return how long each host must be idle for being off meanwhile to pay.

    Parameters
    ----------
    platform : Platform

    Returns
    -------
    ndarray of float64, shape (hosts, P-states)
        Idle time in which a host that is on draws as much more than one that is off as shutting
        down and booting draw more [s]: 0 where switching costs nothing, infinite where being off
        saves nothing.
    """
    idle_w, hosts = platform.idle_w, platform.hosts
    off_w = np.array([[host.off_w] for host in hosts])
    boot_s = np.array([[host.boot_time_s] for host in hosts])
    shutdown_s = np.array([[host.shutdown_time_s] for host in hosts])
    boot_w, shutdown_w = (
        np.where(np.isnan(watts), idle_w, watts)
        for watts in (
            np.array([[getattr(host, name)] for host in hosts], dtype=np.float64) for name in ("boot_w", "shutdown_w")
        )
    )
    saved_w, cost_j = idle_w - off_w, shutdown_s * (shutdown_w - off_w) + boot_s * boot_w
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(saved_w > 0, cost_j / saved_w, np.inf)
    return np.where((cost_j <= 0) & (saved_w >= 0), 0.0, needed)
