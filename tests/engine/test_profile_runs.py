"""Executions by profiles: what is kept of their steps."""

from __future__ import annotations

from math import inf
from weakref import ref

import numpy as np

from gridsched.engine.execution import Execution
from gridsched.engine.profile_runs import PlacedSteps, ProfileRun
from gridsched.model.job_profiles import ParallelWork, Step
from gridsched.model.ways import Way, Ways

WAYS = Ways({(a, b): Way(("l",), 0.0) for a in "ab" for b in "ab"}, {"l": 1.0})


def test_steps_that_are_over_are_not_kept():
    """Of 3,000 delays, one after the other, a run keeps no more than of sets of hosts."""
    made: list[ref[Step]] = []

    def delays():
        for _ in range(3000):
            step = Step(delay_s=1.0)
            made.append(ref(step))
            yield step

    run, steps = (
        ProfileRun(Execution(0, 0, 0, 0.0, inf), delays(), ("a",), np.ones(1), np.ones(1), inf),
        PlacedSteps(WAYS),
    )
    while run.next_step(0.0, steps) is not None:
        run.end_step(0.0, 1.0)
    assert run.is_over
    assert len(made) == 3000
    assert sum(each() is not None for each in made) <= PlacedSteps.MOST_KEPT + 1


def test_steps_of_the_same_work_are_the_same():
    """What is read, computed and written again and again is placed once."""
    work = ParallelWork(flops=(1.0,), read_bytes=2.0, write_bytes=3.0, storage="a")
    first, second = list(work.steps(2)), list(work.steps(2))
    assert [step.size_bytes.tolist() for step in first] == [[2.0, 2.0], [], [3.0, 3.0]]
    assert all(one is other for one, other in zip(first, second, strict=True))
