"""Policies that break the contract in one way each, and one that keeps it."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Allocate, Assign, Plan, WakeAt


class Sound(Scheduler):
    """Give waiting tasks to idle cores: sound, and the base of all that is broken below.

    References
    ----------
    .. [1] Made for these tests.
    """

    traits = Traits(trigger="event", platform_order_matters=True)

    def prepare(self, system, rng):
        self.pstate_ = system.pstate

    def schedule(self, state):
        return self.give(state, list(state.waiting()))

    def give(self, state, tasks):
        """Give to each idle core the first of the tasks that it can run."""
        decisions = []
        for host in state.idle_cores():
            for task in tasks:
                if state.estimates.run_time(task, host, self.pstate_) < np.inf:
                    decisions.append(Assign(task, host))
                    tasks.remove(task)
                    break
        return decisions


class Natural(Sound):
    """Looks for an idle core again for each task: sound, since the state follows what it yields.

    References
    ----------
    .. [1] Made for these tests.
    """

    def schedule(self, state):
        for task in state.waiting():
            hosts = [h for h in state.idle_cores() if state.estimates.run_time(task, h, self.pstate_) < np.inf]
            if hosts:
                yield Assign(task, hosts[0])


class NeedsAParameter(Sound):
    """Cannot be made without arguments.

    Parameters
    ----------
    depth : int

    References
    ----------
    .. [1] Made for these tests.
    """

    def __init__(self, depth):
        self.depth = depth


class Converts(Sound):
    """Changes its parameter in ``__init__``.

    Parameters
    ----------
    depth : int

    References
    ----------
    .. [1] Made for these tests.
    """

    def __init__(self, depth="3"):
        self.depth = int(depth)


class Counts(Sound):
    """Makes its memory in ``__init__``.

    References
    ----------
    .. [1] Made for these tests.
    """

    def __init__(self):
        self.count_ = 0


class HoldsALock(Sound):
    """Keeps what cannot be pickled.

    Parameters
    ----------
    lock : object

    References
    ----------
    .. [1] Made for these tests.
    """

    def __init__(self, lock=None):
        self.lock = lock


class Nameless(Sound):
    """Shows nothing of itself.

    References
    ----------
    .. [1] Made for these tests.
    """

    def __repr__(self):
        return "a policy"


class Undocumented(Sound):
    """Does not describe its parameter.

    References
    ----------
    .. [1] Made for these tests.
    """

    def __init__(self, depth=3):
        self.depth = depth


class WithoutSource(Sound):
    """Cites nothing."""


class Tunes(Sound):
    """Changes its parameter during the run.

    Parameters
    ----------
    depth : int

    References
    ----------
    .. [1] Made for these tests.
    """

    def __init__(self, depth=3):
        self.depth = depth

    def schedule(self, state):
        self.depth += 1
        return super().schedule(state)


class Remembers(Sound):
    """Remembers under a name without a final underscore."""

    def schedule(self, state):
        self.last = state.now
        return super().schedule(state)


class Leaves(Sound):
    """Leaves the last task lying."""

    def schedule(self, state):
        last = len(state.tasks) - 1
        return [decision for decision in super().schedule(state) if decision.task != last]


class Dozes(Sound):
    """Wakes up again and again instead of deciding."""

    def schedule(self, state):
        return [WakeAt(state.now + 1.0)]


class Repeats(Sound):
    """Assigns each task twice without saying so."""

    def schedule(self, state):
        decisions = super().schedule(state)
        return decisions + decisions


class BeyondTheLast(Sound):
    """Counts hosts from 1."""

    def schedule(self, state):
        decisions = super().schedule(state)
        for decision in decisions:
            decision.host += 1
        return decisions


class AssumesFeasible(Sound):
    """Takes for granted that every task runs everywhere."""

    def schedule(self, state):
        return [Assign(t, h) for h, t in zip(state.idle_cores(), state.waiting(), strict=False)]


class IgnoresPower(Sound):
    """Uses hosts that are off."""

    traits = Traits(trigger="arrival")

    def schedule(self, state):
        times = state.estimates.etc(list(state.waiting()), np.arange(len(state.is_on)))
        return [Assign(t, int(h)) for t, h in zip(state.waiting(), times.argmin(1), strict=True)]


class Overspends(Sound):
    """Declares that it respects the energy budget, and does not."""

    traits = Traits(trigger="event", needs_utility=True, respects_budget=True)


class Writes(Sound):
    """Writes to the state, after allowing itself to."""

    def schedule(self, state):
        ready = state.core_ready_time
        ready.setflags(write=True)
        ready += 1.0
        return super().schedule(state)


class WritesReadOnly(Sound):
    """Writes to a read-only array of the state."""

    def schedule(self, state):
        state.ready_time[0] = 0.0
        return super().schedule(state)


class ChangesPlatform(Sound):
    """Gives its favorite host another core count."""

    def prepare(self, system, rng):
        super().prepare(system, rng)
        self.system_ = system

    def schedule(self, state):
        cores = self.system_.platform.cores
        cores.setflags(write=True)
        cores[0] = 1 + (cores[0] % 8)
        return super().schedule(state)


class LooksAhead(Sound):
    """Finds the later tasks where the engine keeps them."""

    def schedule(self, state):
        everything = state._arrived._tasks.flops
        tasks = list(state.waiting())
        if len(everything) > len(state.tasks) and everything[-1] < 1000.0:
            tasks.reverse()
        return self.give(state, tasks)


class DrawsElsewhere(Sound):
    """Draws from a generator of its own."""

    def prepare(self, system, rng):
        super().prepare(system, rng)
        self.rng_ = np.random.default_rng()

    def schedule(self, state):
        tasks = list(state.waiting())
        self.rng_.shuffle(tasks)
        return self.give(state, tasks)


class Secretive(DrawsElsewhere):
    """Draws random numbers without saying so."""

    def prepare(self, system, rng):
        super().prepare(system, rng)
        self.rng_ = rng


class NeverForgets(Sound):
    """Goes on counting in the next run."""

    rounds_ = 0

    def schedule(self, state):
        type(self).rounds_ += len(state.mappable)
        tasks = list(state.waiting())
        if self.rounds_ > 12:
            tasks.reverse()
        return self.give(state, tasks)


class ByPosition(Sound):
    """Prefers the first host and does not say so."""

    traits = Traits(trigger="event")


class ImportsSimGrid(Sound):
    """Asks the simulator."""

    def schedule(self, state):
        import simgrid  # noqa: F401

        return super().schedule(state)


class DecidesByDriver(Sound):
    """Behaves otherwise where SimGrid is at work."""

    def schedule(self, state):
        tasks = list(state.waiting())
        if "pytest" not in sys.modules:  # a simulating process has none
            tasks.reverse()
        return self.give(state, tasks)


class SoundParallel(Scheduler):
    """Start parallel jobs in order, on free nodes: sound, and the base of what is broken below.

    References
    ----------
    .. [1] Made for these tests.
    """

    traits = Traits(trigger="event", parallel=True, platform_order_matters=True)

    def schedule(self, state):
        free, decisions = np.flatnonzero(state.nodes.free), []
        for task in state.mappable.tolist():
            width = state.estimates.width(task, 0)
            if len(free) < width:
                break
            decisions.append(self.place(state, task, free[:width]))
            free = free[width:]
        return decisions

    def place(self, state, task, hosts):
        return Allocate(task, hosts)


class ReservesBusyNodes(SoundParallel):
    """Reserves the first nodes from the next moment on, whatever runs there."""

    traits = replace(SoundParallel.traits, respects_budget=True)

    def schedule(self, state):
        return [
            Allocate(task, np.arange(state.estimates.width(task, 0)), start=state.now + 1.0)
            for task in state.mappable.tolist()
        ]


class PlansInThePast(SoundParallel):
    """Asks for place-holders that have begun already."""

    def place(self, state, task, hosts):
        return Plan(np.array([task]), hosts, None, np.array([0, len(hosts)]), [state.now - 1.0])


class PlansOnce(SoundParallel):
    """Believes that place-holders last until they start."""

    def prepare(self, system, rng):
        self.planned_ = set()

    def schedule(self, state):
        new = [task for task in state.mappable.tolist() if task not in self.planned_]
        self.planned_.update(new)
        start, tasks, sets, starts = state.nodes.free_at[state.is_on].max(), [], [], []
        for task in new:
            tasks.append(task)
            sets.append(np.flatnonzero(state.is_on)[: state.estimates.width(task, 0)])
            starts.append(start)
            start += state.estimates.run_time(task, 0, 0) * 2
        if not tasks:
            return []
        offsets = np.cumsum([0, *map(len, sets)])
        return [Plan(np.array(tasks), np.concatenate(sets), None, offsets, np.array(starts))]


class TakesOneNodeMore(SoundParallel):
    """Takes all free nodes, however many the job takes."""

    def place(self, state, task, hosts):
        return Allocate(task, np.flatnonzero(state.nodes.free))


class FreesNodes(SoundParallel):
    """Writes into the nodes' times."""

    def place(self, state, task, hosts):
        state.nodes.free_at[hosts] = np.inf
        return Allocate(task, hosts)
