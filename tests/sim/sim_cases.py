"""Small platforms and policies for the tests of the SimGrid runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gridsched.model.platform import Host, Platform, PState
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign
from gridsched.runs.run import RunResult, energy_check, run
from gridsched.runs.scenario import Scenario
from gridsched.sim.library import HOSTS

#: EX-A of algorithms.md: three hosts, five tasks, Workqueue makespan 80 s.
SIZES = (1000.0, 500.0, 2000.0, 1500.0, 250.0)


def ex_a() -> Platform:
    """Hosts of 100, 50 and 25 flop/s with 50, 20 and 5 W, 4 W idle."""
    values = ((100.0, 50.0), (50.0, 20.0), (25.0, 5.0))
    return Platform(
        tuple(Host(f"h{k}", (PState(s, 4.0, w, w),)) for k, (s, w) in enumerate(values, start=1)), name="EX-A"
    )


def on_simgrid(platform: Platform | Path, tasks: Tasks | list[float], scheduler="wq", **changes) -> RunResult:
    """Run on SimGrid with a time-out, so that no fault of ours stops the tests."""
    tasks = tasks if isinstance(tasks, Tasks | Path) else make_tasks(tasks)
    changes.setdefault("timeout_s", 60.0)
    return run(Scenario(platform, tasks, scheduler, **changes))


def consumed_energy_j(host: str) -> float:
    """Return what the plugin has metered for a host up to now [J]."""
    return HOSTS.consumed_j([host])[host]


def acting(act: Callable, **traits) -> Scheduler:
    """Return a work queue that calls ``act(state)`` before each decision.

    Its class is local, so it reaches the simulating process by value, as one of a notebook does.
    """

    class Acting(Scheduler):
        """Work queue with a side effect."""

        def schedule(self, state):
            act(state)
            return [Assign(t, h) for h, t in zip(state.idle_cores(), state.waiting(), strict=False)]

    Acting.traits = Traits(asked="event", **traits)
    return Acting()


def deciding(answer: Callable, **traits) -> Scheduler:
    """Return a policy whose ``schedule`` is ``answer(state)``."""

    class Deciding(Scheduler):
        """Decides as a test tells it."""

        def schedule(self, state):
            return answer(state)

    Deciding.traits = Traits(asked="event", **traits)
    return Deciding()


def largest_difference(result: RunResult) -> float:
    """Return the largest relative difference of plugin and model joules, master included."""
    return max(row["relative_difference"] for row in energy_check(result))


def executions(result: RunResult) -> list[tuple]:
    """Return (task, host, start, end) of all executions, in order of start, then host."""
    runs = result.trace.executions[["start", "host", "task", "end"]].tolist()
    return [(task, host, start, end) for start, host, task, end in sorted(runs)]
