"""Schedulers that use the carbon intensity: waiting for green hours, and following sites."""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any, ClassVar, cast

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers, distinct
from gridsched.errors import InputError
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.limits import LARGEST, time_tolerance
from gridsched.model.signals import Signal, begins_of_lines
from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits, check_choice, check_number
from gridsched.policy.decisions import Assign, Decision, WakeAt
from gridsched.policy.state import State
from gridsched.schedulers.wrapping import TraitsOfWrapped, Wrapper

DAY_S = 86_400.0


class WithoutTasks:
    """A state in which some tasks are not there yet.

    Parameters
    ----------
    state : State
    held : ndarray of int64
        Ids of the tasks.
    """

    def __init__(self, state: State, held: Integers) -> None:
        self._state = state
        self._held = held
        self.tasks_to_arrive = state.tasks_to_arrive + len(held)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)

    @property
    def mappable(self) -> Integers:
        """As `State.mappable`."""
        return np.setdiff1d(self._state.mappable, self._held, assume_unique=True)

    def waiting(self) -> Iterator[int]:
        """As `State.waiting`."""
        return iter(self.mappable.tolist())

    def next_waiting(self, count: int) -> list[int]:
        """As `State.next_waiting`."""
        return cast(list[int], self.mappable[:count].tolist())


class WaitForGreen(Wrapper):
    """Another scheduler decides; it sees tasks when power is expected to be green.

    Parameters
    ----------
    scheduler : str or Scheduler
        Who decides about the tasks: an id, alone or with parameters, or an instance. It is asked
        at events.
    max_delay_s : float
        How long the start of a task may be put off [s]; less where its deadline comes before.
    forecast : {"perfect", "persistence", "table"}
        What is expected of the intensity: what will be; at each time of day what was at it last; or
        the table of the scenario's `carbon_forecast`.
    site : {"mean", "best"}
        Use the mean of the hosts that can run a task, or the best of them: right for a
        scheduler that chooses sites by their grams.

    Notes
    -----
    When a task is first seen a start is chosen for it between then and its latest one, at which
    the expected grams are least, the earliest of equals: of all times at which the intensity
    changes at its begin or its end, those at which not all cores are taken by tasks whose start was
    chosen before. If it is as good to start as soon as a core is free, it is not put off. Until
    then the wrapped scheduler does not see it. Nothing that runs is suspended. With
    ``max_delay_s=0``, or an intensity that never changes, the run is that of the wrapped scheduler.

    A job that may be interrupted is a chain of tasks of equal run time, each of which waits for the end
    of the one before it and for nothing else. When its first task is seen the whole chain is put into
    those of the slots from then to its latest end, one after the other and as long as a task each, at
    which the expected grams are least ([1]_, section 4.3, "interruptible").

    References
    ----------
    .. [1] P. Wiesner, I. Behnke, D. Scheinert, K. Gontarska, L. Thamsen, "Let's wait awhile: how
       temporal workload shifting can reduce carbon emissions in the cloud", Middleware 2021 (not
       read).
    """

    _id: ClassVar[str] = "wait_for_green"
    traits: ClassVar[Traits] = TraitsOfWrapped(needs_carbon=True)  # type: ignore[assignment]

    def __init__(
        self,
        scheduler: str | Scheduler = "sufferage",
        max_delay_s: float = 43_200.0,
        forecast: str = "perfect",
        site: str = "mean",
    ) -> None:
        self.scheduler = scheduler
        self.max_delay_s = max_delay_s
        self.forecast = forecast
        self.site = site

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters; forget the last run.

        Raises
        ------
        InputError
            If a parameter is out of range, the carbon intensity is not given, or the scheduler is
            not asked at events.
        """
        legal = f"from 0 to {LARGEST:g} s"
        check_number(self._id, "max_delay_s", self.max_delay_s, lambda x: 0 <= x <= LARGEST, legal)
        check_choice(self._id, "site", self.site, ("mean", "best"))
        super().prepare(system, rng)
        if self.wrapped_.traits.trigger != "event":
            raise InputError(f"wait_for_green cannot wrap {self.wrapped_!r}, which is not asked at events.")
        self.system_ = system
        self.forecast_ = Forecast(system, self._id, self.forecast)
        hosts = np.arange(system.n_hosts)
        signal = self.forecast_.signal
        by_site = [hosts[rows] for _, rows in signal.by_site(hosts)] if self.site == "best" else [hosts]
        self.pools_ = [Pool(system, each) for each in by_site if len(each)]
        self.chains_ = Chains()
        #: when each task that is held back may start [s], and the same in order of the starts
        self.start_: dict[int, float] = {}
        self.due_: list[tuple[float, int]] = []
        #: tasks whose start was chosen
        self.seen_: set[int] = set()

    def schedule(self, state: State) -> Iterable[Decision]:
        """Ask the wrapped scheduler about the tasks that may start."""
        expected, mappable = None, state.mappable.tolist()
        for task in mappable:
            if task not in self.seen_:
                expected = expected or self.forecast_.at(state.now)
                chain = self.chains_.from_task(task, state)
                self.seen_.update(chain)
                for each, start in zip(chain, self._starts(chain, expected, state), strict=True):
                    self.start_[each] = start
                    heappush(self.due_, (start, each))
        now = state.now + time_tolerance(state.now)
        while self.due_ and self.due_[0][0] <= now:
            del self.start_[heappop(self.due_)[1]]
        held = np.array([task for task in mappable if task in self.start_], dtype=np.int64)
        decisions = list(super().schedule(cast(State, WithoutTasks(state, held)) if len(held) else state) or ())
        if self.due_:
            decisions.append(WakeAt(self.due_[0][0]))
        return decisions

    def _decided(self, answer: list[Decision], state: State) -> Iterable[Decision]:
        return answer

    def _starts(self, chain: list[int], expected: Signal, state: State) -> list[float]:
        """Choose when each task of a chain may start [s], and note that it will take a core then."""
        latest = self._latest(chain[0], state)
        if len(chain) == 1:
            options = [[pool.option(chain[0], latest, expected, state)] for pool in self.pools_]
        else:
            options = [pool.slots(chain, latest, expected, state) for pool in self.pools_]
        pool, best = min(
            zip(self.pools_, options, strict=True), key=lambda each: sum(option.grams for option in each[1])
        )
        for option in best:
            if option.grams < math.inf:  # it can run somewhere
                pool.take(option)
        return [option.release for option in best]

    def _latest(self, task: int, state: State) -> float:
        """Return the latest start of a task [s], were it not interrupted."""
        latest = float(state.tasks.submit_time_s[task]) + self.max_delay_s
        if state.tasks.deadline_s is not None:
            times = state.estimates.etc([task], np.arange(self.system_.n_hosts), self.system_.pstates)[0]
            longest = float(times[np.isfinite(times)].max(initial=0.0))
            latest = min(latest, float(state.tasks.deadline_s[task]) - longest)
        return latest


class Chains:
    """Tasks of equal size, each of which waits for the end of the one before it and for nothing else."""

    def __init__(self) -> None:
        self._read = 0
        #: tasks that wait for each other task, and what each waits for: positions in the dependencies
        self._waiting: dict[int, list[int]] = {}
        self._awaited: dict[int, list[int]] = {}

    def from_task(self, task: int, state: State) -> list[int]:
        """Return the chain of submitted tasks that begins with one that waits: it alone, where there is none."""
        chain, flops, dependencies = [task], state.tasks.flops, state.tasks.dependencies
        if dependencies is None:
            return chain
        self._read_new(dependencies)
        blocked = state.blocked
        while (after := self._follower(chain[-1], dependencies)) is not None:
            k = int(np.searchsorted(blocked, after))
            if k == len(blocked) or blocked[k] != after or flops[after] != flops[task]:
                break
            chain.append(after)
        return chain

    def _read_new(self, dependencies: Dependencies) -> None:
        """Take over the dependencies of tasks that were submitted since."""
        for k in range(self._read, len(dependencies)):
            self._waiting.setdefault(dependencies.on.item(k), []).append(k)
            self._awaited.setdefault(dependencies.task.item(k), []).append(k)
        self._read = len(dependencies)

    def _follower(self, task: int, dependencies: Dependencies) -> int | None:
        """Return the task that waits for the end of this one alone, and nothing else does; None without one."""
        pairs = self._waiting.get(task, ())
        if len(pairs) != 1:
            return None
        k = pairs[0]
        follower = dependencies.task.item(k)
        is_end = dependencies.kind[k] in (After.END, After.SUCCESS) and dependencies.delay_s[k] == 0
        return follower if is_end and len(self._awaited[follower]) == 1 else None


@dataclass(frozen=True)
class Option:
    """When a task may start, from when on it is expected to run, for how long [s], and for how much [g]."""

    grams: float
    release: float
    start: float
    run_time: float


class Pool:
    """Hosts on which tasks are expected to start, and when these hosts' cores are taken.

    Parameters
    ----------
    system : System
    hosts : ndarray of int64
    """

    def __init__(self, system: System, hosts: Integers) -> None:
        self._hosts = hosts
        self._pstates = system.pstates[hosts]
        self._cores = int(system.platform.cores[hosts].sum())
        self._begins: list[float] = []
        self._ends: list[float] = []

    def option(self, task: int, latest: float, expected: Signal, state: State) -> Option:
        """Return the start of a task that is expected to cost the least grams here."""
        times = state.estimates.etc([task], self._hosts, self._pstates)[0]
        fits = np.isfinite(times)
        if not fits.any():
            return Option(math.inf, state.now, state.now, 0.0)
        hosts, times = self._hosts[fits], times[fits]
        energies = state.estimates.eec([task], hosts, self._pstates[fits])[0]
        run_time = float(times.mean())
        soonest = self._soonest(state.now)
        starts = self._starts(state.now, latest, run_time, expected)
        starts = np.append(soonest, starts[self._has_core(starts, run_time)])
        of_host, of_start = np.repeat(hosts, len(starts)), np.tile(starts, len(hosts))
        weights = expected.at_hosts(of_host, of_start, np.repeat(times, len(starts))).reshape(len(hosts), -1)
        grams = (energies[:, None] * weights).mean(axis=0)
        least = int(np.flatnonzero(grams <= grams.min() * (1 + 1e-12))[0])
        release = starts.item(least) if least else state.now  # the first waits for a core, not for grams
        return Option(grams.item(least), release, starts.item(least), run_time)

    def slots(self, chain: list[int], latest: float, expected: Signal, state: State) -> list[Option]:
        """Return the slots of a chain of equal tasks that are expected to cost the least grams here, in order.

        `latest` is the latest start [s] of its last task. Where too few slots have a core, or no host can run
        the tasks, nothing is put off.
        """
        times = state.estimates.etc(chain[:1], self._hosts, self._pstates)[0]
        fits = np.isfinite(times)
        if not fits.any():
            return [Option(math.inf, state.now, state.now, 0.0)] * len(chain)
        hosts, times = self._hosts[fits], times[fits]
        energies = state.estimates.eec(chain[:1], hosts, self._pstates[fits])[0]
        run_time = float(times.mean())
        count = max(len(chain), 1 + int((latest - state.now + time_tolerance(latest)) // run_time))
        starts = state.now + run_time * np.arange(count, dtype=np.float64)
        starts = starts[self._has_core(starts, run_time)]
        if len(starts) < len(chain):
            starts = state.now + run_time * np.arange(len(chain), dtype=np.float64)
        of_host, of_start = np.repeat(hosts, len(starts)), np.tile(starts, len(hosts))
        weights = expected.at_hosts(of_host, of_start, np.repeat(times, len(starts))).reshape(len(hosts), -1)
        grams = (energies[:, None] * weights).mean(axis=0)
        chosen = np.sort(np.argsort(grams, kind="stable")[: len(chain)]).tolist()
        return [Option(grams.item(k), starts.item(k), starts.item(k), run_time) for k in chosen]

    def _soonest(self, now: float) -> float:
        """Return when a task that is not put off finds a core [s]."""
        times = np.concatenate([[now], self._ends[bisect_right(self._ends, now) :]])
        taken = np.searchsorted(self._begins, times, side="right") - np.searchsorted(self._ends, times, side="right")
        return float(times[np.argmax(taken < self._cores)])

    @staticmethod
    def _starts(now: float, latest: float, run_time: float, expected: Signal) -> Floats:
        """Return the times at which a start may be best, ascending [s]: now, and around changes."""
        if latest <= now:
            return np.array([now])
        sites = expected.sites or (expected,)
        begins = np.concatenate([begins_of_lines(each.begin_s, each.cycle_s, now, latest + run_time) for each in sites])
        starts = distinct(np.concatenate([[now, latest], begins, begins - run_time]))
        return starts[(starts >= now) & (starts <= latest)]

    def _has_core(self, starts: Floats, run_time: float) -> Booleans:
        """Whether a core is free from each start on, as far as starts were chosen."""
        begun = np.searchsorted(self._begins, starts + run_time, side="left")
        return np.asarray(begun - np.searchsorted(self._ends, starts, side="right") < self._cores)

    def take(self, option: Option) -> None:
        """Note that a task takes a core."""
        insort(self._begins, option.start)
        insort(self._ends, option.start + option.run_time)


class Forecast:
    """What a scheduler expects of the carbon intensity.

    Parameters
    ----------
    system : System
    owner : str
        Id of the scheduler, for messages.
    kind : {"perfect", "persistence", "table"}
        What will be; at each time of day what was at it last; or the scenario's `carbon_forecast`.

    Raises
    ------
    InputError
        If there is no such kind, or no forecast is given.
    """

    def __init__(self, system: System, owner: str, kind: str) -> None:
        check_choice(owner, "forecast", kind, ("perfect", "persistence", "table"))
        signal = system.carbon_forecast if kind == "table" else system.carbon
        if signal is None:
            option = "carbon_forecast" if kind == "table" else "carbon"
            raise InputError(f"{owner} needs a carbon intensity: give {option}.")
        self.signal = signal
        self._persists = kind == "persistence"

    def at(self, now: float) -> Signal:
        """Return what is expected at a time [s] of all later ones."""
        if not self._persists:
            return self.signal
        sites = tuple(_persistent(each, now) for each in self.signal.sites)
        return replace(_persistent(self.signal, now), sites=sites, site=self.signal.site)


def _persistent(signal: Signal, now: float) -> Signal:
    """Return a day that repeats: today's until now [s], yesterday's of later hours, else as it is now."""
    today = now // DAY_S * DAY_S
    changes = begins_of_lines(signal.begin_s, signal.cycle_s, max(now - DAY_S, 0.0), now)
    recent = changes[(changes > now - DAY_S) & (changes <= now)]
    begins = distinct(np.concatenate([[0.0, now - today], recent % DAY_S]))
    source_s = np.where(begins < now - today, today + begins, today - DAY_S + begins)
    weight = signal.at(np.where(source_s < 0, now, source_s))
    return Signal(tuple(begins.tolist()), tuple(weight.tolist()), DAY_S, signal.per_j, signal.unit)


@dataclass(frozen=True)
class _Placement:
    """A host for each task, in the order in which they are given out, when the last ends [s], and grams."""

    tasks: Integers
    hosts: Integers
    end: float
    grams: float


class FollowSites(Scheduler):
    """Place what waits at the sites that emit least, if that takes not much longer than all sites do.

    Parameters
    ----------
    within : float
        How many times as long as at all sites a bag may take, at least 1.
    forecast : {"perfect", "persistence", "table"}
        What is expected of the intensity; as for `WaitForGreen`.

    Notes
    -----
    A site is all hosts of one carbon intensity. Tasks that wait at an event are one bag: the
    longest first, each goes to the core on which it ends first (list scheduling). That is done at
    each site alone; then at the site of least grams, at it and the next one, and so on to all
    sites. Of these placements that end within `within` times the time that all sites take, the one
    of least expected grams (energy of the tasks by the intensity while they run) is decided.

    References
    ----------
    .. [1] R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Appl. Math. 17(2),
       1969 (not read): list scheduling by longest tasks. The choice of sites is our own.
    """

    _id: ClassVar[str] = "follow_sites"
    traits: ClassVar[Traits] = Traits(trigger="event", needs_carbon=True)

    def __init__(self, within: float = 1.5, forecast: str = "perfect") -> None:
        self.within = within
        self.forecast = forecast

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters, and find the sites.

        Raises
        ------
        InputError
            If a parameter is out of range, or the carbon intensity is not given.
        """
        check_number(self._id, "within", self.within, lambda x: 1 <= x < math.inf, "at least 1, finite")
        self.forecast_ = Forecast(system, self._id, self.forecast)
        self.pstates_ = system.pstates
        hosts = np.arange(system.n_hosts)
        self.sites_ = [hosts[rows] for _, rows in self.forecast_.signal.by_site(hosts)]

    def schedule(self, state: State) -> Iterable[Decision]:
        """Place the tasks that wait at some of the sites."""
        waiting, expected = state.mappable, self.forecast_.at(state.now)
        is_on = state.is_on
        sites = [hosts for hosts in (site[is_on[site]] for site in self.sites_) if len(hosts)]
        if not len(waiting) or not sites:
            return []
        alone = [self._placed(waiting, site, expected, state) for site in sites]
        order = sorted(range(len(sites)), key=lambda k: (alone[k].grams, k))
        several = [np.sort(np.concatenate([sites[k] for k in order[:n]])) for n in range(2, len(sites) + 1)]
        options = [*alone, *(self._placed(waiting, hosts, expected, state) for hosts in several)]
        limit = state.now + self.within * (options[-1].end - state.now)
        best = min((each for each in options if each.end <= limit), key=lambda each: each.grams, default=options[-1])
        return [Assign(task, host) for task, host in zip(best.tasks.tolist(), best.hosts.tolist(), strict=True)]

    def _placed(self, tasks: Integers, hosts: Integers, expected: Signal, state: State) -> _Placement:
        """Give tasks to some hosts, the longest first, each to the one on which it ends first."""
        etc = state.estimates.etc(tasks, hosts, self.pstates_[hosts])
        eec = state.estimates.eec(tasks, hosts, self.pstates_[hosts])
        fits = np.isfinite(etc)
        if not fits.any(axis=1).all():
            return _Placement(tasks[:0], hosts[:0], math.inf, math.inf)
        mean = np.where(fits, etc, 0.0).sum(axis=1) / fits.sum(axis=1)
        order = np.lexsort((tasks, -mean))
        cores = np.maximum(state.core_ready_time[hosts], state.now)
        chosen, starts = np.empty(len(tasks), dtype=np.int64), np.empty(len(tasks))
        for row in order.tolist():
            host = int(np.argmin(cores[:, 0] + etc[row]))
            chosen[row], starts[row] = host, cores[host, 0]
            cores[host, 0] += etc[row, host]
            cores[host].sort()
        rows = np.arange(len(tasks))
        times, energies = etc[rows, chosen], eec[rows, chosen]
        grams = float((energies * expected.at_hosts(hosts[chosen], starts, times)).sum())
        return _Placement(tasks[order], hosts[chosen][order], float((starts + times).max()), grams)
