"""Tasks that are held back: until a time, or until an array has room for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import Scenario, run
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.errors import InputError
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.holds import Holds
from gridsched.model.platform import homogeneous_cluster
from gridsched.model.tasks import ArrivedTasks, Tasks, make_tasks
from gridsched.testing import trace_differences
from gridsched.testing.decision_checks import early_starts

#: Submission, run time, nodes, time before which it does not start, array (-1: none), the job before that it waits
#: for (0: none) and for what.
JOBS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.integers(1, 9),
        st.integers(1, 3),
        st.integers(0, 30),
        st.integers(-1, 1),
        st.integers(0, 3),
        st.sampled_from([After.START, After.END]),
    ),
    min_size=1,
    max_size=9,
)


def tasks_of(jobs, limits) -> Tasks:
    """Return jobs, in order of submission, as tasks of a machine whose nodes compute 1 flop/s."""
    submit, run_s, width, release, array, back, kind = map(np.array, zip(*jobs, strict=True))
    waits = np.flatnonzero((back > 0) & (back <= np.arange(len(jobs))))
    pairs = Dependencies(waits, waits - back[waits], kind[waits], np.zeros(len(waits)))
    return make_tasks(
        run_s.astype(float),
        submit.astype(float),
        width=width,
        requested_time_s=run_s.astype(float),
        dependencies=pairs if len(waits) else None,
        holds=Holds(release.astype(float), array, np.array(limits)),
    )


def oracle(jobs, limits, n_nodes=4) -> list[float]:
    """Simulate FCFS second by second; nothing of the package."""
    start, has_turn = {}, set()
    for now in range(500):

        def ended(j, now=now):
            return j in start and start[j] + jobs[j][1] <= now

        changed = True
        while changed:
            changed = False
            free = []
            for j, (submit, _, _, release, array, back, kind) in enumerate(jobs):
                met = not 0 < back <= j or (ended(j - back) if kind == After.END else j - back in start)
                if max(submit, release) > now or not met or j in start:
                    continue
                turns = sum(jobs[k][4] == array and not ended(k) for k in has_turn)
                if array >= 0 and j not in has_turn and turns >= limits[array]:
                    continue
                if array >= 0:
                    has_turn.add(j)
                free.append(j)
            for j in free:  # who waits for a start is let go when all of these have started
                if sum(jobs[k][2] for k in start if not ended(k)) + jobs[j][2] > n_nodes:
                    break
                start[j] = now
                changed = True
    return [float(start[j]) for j in range(len(jobs))]


def simulated(tasks: Tasks, scheduler: str = "fcfs", driver: str = "reference"):
    return run(Scenario(homogeneous_cluster(4, speed=1.0, idle_w=1, busy_w=2), tasks, scheduler, driver=driver)).trace


@settings(max_examples=100, deadline=None)
@given(JOBS, st.tuples(st.integers(1, 3), st.integers(1, 3)))
def test_any_holds_start_as_a_plain_simulation(sampled, limits):
    """With times, limits of arrays, starts and ends of others at once; other queues keep them, too."""
    jobs = sorted(sampled, key=lambda row: row[0])
    tasks = tasks_of(jobs, limits)
    assert simulated(tasks).start_time_s.tolist() == oracle(jobs, limits)
    for scheduler in ("easy_backfilling", "conservative_backfilling"):
        trace = simulated(tasks, scheduler)
        assert early_starts(trace) == []
        assert not np.isnan(trace.finish_time_s).any()


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize("scheduler", ["fcfs", "easy_backfilling", "conservative_backfilling", "slurm"])
def test_both_drivers_agree(scheduler):
    """The same records."""
    rng = np.random.default_rng(3)
    rows = [*map(rng.integers, (0, 1, 1, 0, -1, 0, 0), (50, 30, 4, 200, 3, 4, 2), [40] * 7)]
    jobs = sorted(zip(*(row.tolist() for row in rows), strict=True), key=lambda row: row[0])
    tasks = tasks_of(jobs, (1, 2, 5))
    first, second = (simulated(tasks, scheduler, driver) for driver in ("reference", "simgrid"))
    assert trace_differences(first, second) == []
    assert early_starts(first) == []


def test_a_check_finds_what_is_not_held():
    """A start before its time, and too many tasks of an array at once."""
    trace = simulated(tasks_of([(0, 5, 1, 0, 0, 0, 0), (0, 5, 1, 0, 0, 0, 0), (0, 5, 1, 9, -1, 0, 0)], (1,)))
    assert trace.start_time_s.tolist() == [0, 5, 9]
    assert early_starts(trace) == []
    runs = trace.executions.copy()
    runs["start"][1:] -= 1
    found = early_starts(replace(trace, executions=runs))
    assert len(found) == 2
    assert "held until 9 s" in found[0]
    assert "2 tasks of array 0" in found[1]


def test_no_policy_sees_holds():
    """They are of the machine; some of the tasks keep theirs."""
    tasks = tasks_of([(0, 5, 1, 7, 0, 0, 0), (1, 5, 1, 0, -1, 0, 0)], (1,))
    assert ArrivedTasks(tasks).first(2).holds is None
    assert not tasks.are_one_bag
    assert tasks.taken(np.array([1])).holds.release_s.tolist() == [0]


@pytest.mark.parametrize(
    ("release", "array", "limit"),
    [
        ([-1.0], [-1], []),
        ([np.nan], [-1], []),
        ([0.0], [0], []),
        ([0.0], [-2], [1]),
        ([0.0], [0], [0]),
        ([0.0], [], []),
    ],
)
def test_impossible_holds_are_refused(release, array, limit):
    """Times below 0, arrays that there are not, limits below 1."""
    with pytest.raises(InputError, match="Holds"):
        Holds(np.array(release), np.array(array, dtype=np.int64), np.array(limit, dtype=np.int64))
