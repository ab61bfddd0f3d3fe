"""Policies that play a script, on hosts and on clusters of equal nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np

from gridsched.drivers import reference
from gridsched.engine import Controller
from gridsched.model.estimates import FlopsEstimates, RequestedTimes
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.rules import Rules
from gridsched.model.run_times import LoggedRunTimes, RunTimes
from gridsched.model.system import System
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.model.trace import Trace
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign, Decision, Plan
from gridsched.policy.state import State

# A policy with prepared answers, and the playing of it on the reference driver.

ANYTHING = Traits(trigger="event", replicates=True, may_cancel=True, may_drop=True, powers_hosts=True)


class Scripted(Scheduler):
    """Answers by a function of the state, and notes when it was asked and what was mappable."""

    def __init__(self, answer: Callable[[State], Iterable[Decision]], traits: Traits = ANYTHING) -> None:
        self.answer = answer
        self.traits = traits

    def __repr__(self) -> str:
        return "Scripted()"

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        self.asked_: list[tuple[float, list[int]]] = []

    def schedule(self, state: State) -> Iterable[Decision]:
        self.asked_.append((state.now, state.mappable.tolist()))
        return self.answer(state)

    @property
    def times(self) -> list[float]:
        """When it was asked."""
        return [time for time, _ in self.asked_]


def at(*steps: tuple[float, list[Decision]]) -> Callable[[State], list[Decision]]:
    """Answer with the decisions given for a time; with none at other times."""
    answers = dict(steps)
    return lambda state: answers.get(state.now, [])


def first_host(state: State) -> list[Decision]:
    """Queue all waiting tasks on host 0."""
    return [Assign(task, 0) for task in state.waiting()]


def idle_hosts(state: State) -> list[Decision]:
    """Give the waiting tasks to idle cores."""
    return [Assign(t, h) for h, t in zip(state.idle_cores(), state.waiting(), strict=False)]


def plan(*pairs: tuple[int, int], pstates: list[int] | None = None) -> Plan:
    """Return a plan of (task, host) pairs."""
    tasks, hosts = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Plan(tasks, hosts, None if pstates is None else np.array(pstates))


def hosts(*speeds: float, cores: int = 1, boot_time_s: float = 0.0) -> Platform:
    """Return hosts h1, h2, ... with one P-state each."""
    return Platform(
        tuple(
            Host(f"h{k}", (PState(float(s), 1, 2, 2),), cores=cores, boot_time_s=boot_time_s)
            for k, s in enumerate(speeds, start=1)
        )
    )


def controller_of(
    platform: Platform,
    tasks: Tasks | list[float],
    policy: Scheduler,
    *,
    estimates=None,
    pstate: int = 0,
    interval: float | None = None,
    pending_slots: int = 0,
    hosts_off: tuple[int, ...] = (),
    **system_rules,
) -> Controller:
    """Return a controller that is ready to run."""
    tasks = tasks if isinstance(tasks, Tasks) else make_tasks(tasks)
    system = System(
        platform,
        estimates or FlopsEstimates(platform, tasks),
        pstates=pstate,
        files=tasks.files,
        rules=Rules(mapping_interval_s=interval, pending_slots=pending_slots, **system_rules),
    )
    return Controller(system, tasks, policy, rng=np.random.default_rng(0), hosts_off=hosts_off)


class Truth(RunTimes):
    """True run times [s] by a function of (task, host, P-state)."""

    def __init__(self, function: Callable[[int, int, int], float]) -> None:
        self.function = function

    def run_time(self, task: int, host: int, pstate: int) -> float:
        return self.function(task, host, pstate)


def play(
    platform: Platform, tasks: Tasks | list[float], answer, traits: Traits = ANYTHING, *, run_time=None, **rules
) -> tuple[Trace, Scripted]:
    """Run a scripted policy to the end; return the trace and the policy."""
    policy = Scripted(answer, traits)
    truth = None if run_time is None else Truth(run_time)
    return reference.simulate(controller_of(platform, tasks, policy, **rules), truth), policy


def rows(trace: Trace) -> list[tuple]:
    """Return (task, host, start, end) of all executions, in order of start, then host."""
    runs = trace.executions
    return sorted(runs[["start", "host", "task", "end"]].tolist(), key=lambda row: row[:2])


# Rigid parallel jobs on clusters of equal nodes, and the playing of them by a script.

PARALLEL = Traits(trigger="event", parallel=True, powers_hosts=True)
NODE = (PState(10.0, 5.0, 7.0, 20.0), PState(5.0, 4.0, 5.0, 9.0))


def nodes(*sizes: int, cores: int = 1, boot_time_s: float = 0.0, pstates=NODE) -> Platform:
    """Return clusters of equal nodes n0, n1, ..."""
    hosts = tuple(Host(f"n{k}", pstates, cores=cores, boot_time_s=boot_time_s) for k in range(sum(sizes)))
    edges = np.cumsum([0, *sizes]).tolist()
    return Platform(
        hosts, tuple(Cluster(f"c{c}", tuple(range(begin, end))) for c, (begin, end) in enumerate(pairwise(edges)))
    )


def play_on_nodes(platform, jobs, answer, *, logged=None, traits=PARALLEL, **rules):
    """Run jobs (submission [s], width, requested time [s]); return the trace and the policy."""
    submit, width, requested = zip(*jobs, strict=True)
    tasks = make_tasks(np.array(requested) * 10.0, submit, width=width, requested_time_s=requested)
    policy = Scripted(answer, traits)
    controller = controller_of(platform, tasks, policy, estimates=RequestedTimes(platform, tasks), **rules)
    truth = None if logged is None else LoggedRunTimes(platform, logged)
    return reference.simulate(controller, truth), policy


def at_times(steps):
    """Answer with the decisions given for a time."""
    return lambda state: steps.get(state.now, [])


def starts(trace) -> dict[int, tuple[float, list[int]]]:
    """Return start [s] and nodes of each task that started."""
    return {
        task: (start, trace.hosts_of(k).tolist())
        for k, (task, start) in enumerate(trace.executions[["task", "start"]].tolist())
    }
