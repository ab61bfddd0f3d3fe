"""Executions by profiles: what is kept of their steps."""

from __future__ import annotations

from math import inf
from weakref import ref

import numpy as np

from gridsched import Host, Platform, PState, make_tasks
from gridsched.engine.execution import Execution
from gridsched.engine.placed_steps import PlacedSteps
from gridsched.engine.programs import PlacedParts, ProgramRun
from gridsched.model.job_profiles import Delay, ParallelWork, Sequence, Step
from gridsched.model.routes import RouteLinks, Routes
from gridsched.policy.registry import make_scheduler
from gridsched.scenario import LoadedScenario
from gridsched.sim.child import simulate_reference

ROUTES = Routes({(a, b): RouteLinks(("l",), 0.0) for a in "ab" for b in "ab"}, {"l": 1.0})


def test_steps_that_are_over_are_not_kept():
    """Of 3,000 delays, one after the other, a run keeps no more than of sets of hosts."""
    made: list[ref[Step]] = []

    def delays():
        for _ in range(3000):
            step = Step(delay_s=1.0)
            made.append(ref(step))
            yield step

    run, steps = (
        ProgramRun(Execution(0, 0, 0, 0.0, inf), delays(), PlacedParts(("a",), *[np.ones(1)] * 4)),
        PlacedSteps(ROUTES),
    )
    while run.next_step(0.0, steps) is not None:
        run.end_step(0.0, 1.0)
    assert len(made) == 3000
    assert sum(each() is not None for each in made) <= PlacedSteps.MOST_KEPT + 1


def test_steps_of_the_same_work_are_the_same():
    """What is read, computed and written again and again is placed once."""
    work = ParallelWork(flops=(1.0,), read_bytes=2.0, write_bytes=3.0, storage="a")
    first, second = list(work.steps(2)), list(work.steps(2))
    assert [step.size_bytes.tolist() for step in first] == [[2.0, 2.0], [], [3.0, 3.0]]
    assert all(one is other for one, other in zip(first, second, strict=True))


def test_messages_that_cross_no_link_take_no_time():
    """A node sends to itself, on a platform without a link for that: after a delay of 2 s and before one of 3 s."""
    platform = Platform((Host("a", (PState(1.0, 1.0, 2.0, 2.0),)),))
    profile = Sequence((Delay(2.0), ParallelWork(matrix=(8.0,)), Delay(3.0)))
    tasks = make_tasks(
        [1.0, 1.0], width=1, requested_time_s=10.0, profile=[0, 1], profiles=[profile, profile.profiles[1]]
    )
    routes = Routes({("a", "a"): RouteLinks((), 0.0)}, {})
    trace = simulate_reference(
        LoadedScenario(platform, tasks, "fcfs", driver="reference", routes=routes), make_scheduler("fcfs")
    )
    assert trace.executions[["start", "end"]].tolist() == [(0.0, 5.0), (5.0, 5.0)]
