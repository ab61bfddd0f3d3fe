"""Jobs that wait for others: starts, ends, successes, failures, delays, and what never happens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from node_cases import at, nodes
from scripted import Scripted, controller_of

from gridsched import Scenario, run
from gridsched.engine import reference
from gridsched.errors import InputError
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.estimates import RequestedTimes
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState
from gridsched.policy.base import Traits
from gridsched.policy.decisions import Allocate, Drop
from gridsched.sim.library import HOW_TO_INSTALL, is_installed
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences


def pairs_of(rows) -> Dependencies:
    """Return dependencies of (job, other, kind, delay [s])."""
    task, on, kind, delay_s = zip(*rows, strict=True)
    return Dependencies(np.array(task), np.array(on), np.array(kind), np.array(delay_s, dtype=float))


def scenario(jobs, rows, n_nodes=4, scheduler="fcfs", **options) -> Scenario:
    """Return a run of jobs (submission, run time, nodes) that wait for each other."""
    submit, length, width = map(np.array, zip(*jobs, strict=True))
    platform = nodes(n_nodes)
    tasks = make_tasks(
        length * 10.0, submit, width=width, requested_time_s=length, dependencies=pairs_of(rows) if rows else None
    )
    options = {"driver": "reference"} | options
    return Scenario(platform, tasks, scheduler, run_times=LoggedRunTimes(platform, length), **options)


def starts(jobs, rows, **options) -> list[float]:
    """Return the start of each job."""
    return run(scenario(jobs, rows, **options)).trace.start_time_s.tolist()


JOBS = [(0, 10, 1), (1, 5, 1), (2, 3, 1)]


@pytest.mark.parametrize(
    ("kind", "delay", "start"),
    [(After.START, 0, 2), (After.START, 7, 7), (After.END, 0, 10), (After.SUCCESS, 0, 10), (After.END, 2.5, 12.5)],
)
def test_one_job_waits_for_another(kind, delay, start):
    """The first runs from 0 to 10 s; the third comes at 2 s and nodes are free all the time."""
    assert starts(JOBS, [(2, 0, kind, delay)]) == [0, 1, start]


def test_all_others_count_and_chains_hold():
    """The third waits for both, the fourth for the third."""
    jobs = [*JOBS, (3, 1, 1)]
    assert starts(jobs, [(2, 0, After.END, 0), (2, 1, After.END, 6), (3, 2, After.SUCCESS, 0)]) == [0, 1, 12, 15]


def test_who_waits_holds_up_nobody():
    """A later job starts before one that stands before it in the queue, and waits for a third."""
    jobs = [(0, 10, 3), (1, 5, 4), (2, 3, 1)]
    assert starts(jobs, []) == [0, 10, 15]
    assert starts(jobs, [(1, 0, After.END, 0)]) == [0, 10, 2]


def test_a_start_lets_others_start_in_the_same_instant():
    """The second starts at 10 s, and with it who waits for its start."""
    jobs = [(0, 10, 4), (1, 5, 1), (2, 3, 1)]
    assert starts(jobs, [(2, 1, After.START, 0)]) == [0, 10, 10]


def test_what_never_happens_is_waited_for_by_nobody():
    """A dropped job fails: who needs its success is rejected, in turn who needs that; who needs its failure runs."""
    jobs = [(0, 10, 1), (1, 5, 1), (1, 5, 1), (1, 5, 1), (1, 2, 1)]
    rows = [(1, 0, After.SUCCESS, 0), (2, 1, After.SUCCESS, 0), (3, 0, After.FAILURE, 0), (4, 2, After.END, 3)]
    submit, length, width = map(np.array, zip(*jobs, strict=True))
    platform = nodes(2)
    tasks = make_tasks(length * 10.0, submit, width=width, requested_time_s=length, dependencies=pairs_of(rows))
    answer = at({1.0: [Drop(0), Allocate(3, np.array([0]))], 4.0: [Allocate(4, np.array([1]))]})
    seen = []

    def watched(state):
        seen.append((state.now, state.mappable.tolist()))
        return [each for each in answer(state) if each.task in seen[-1][1]]

    policy = Scripted(watched, Traits(asked="event", parallel=True, may_drop=True))
    controller = controller_of(platform, tasks, policy, estimates=RequestedTimes(platform, tasks))
    trace = reference.simulate(controller)
    assert seen[:4] == [(0.0, [0]), (1.0, [0]), (1.0, [3]), (4.0, [4])]
    done, dropped, rejected = TaskState.FINISHED, TaskState.DROPPED, TaskState.REJECTED
    assert trace.final_state.tolist() == [dropped, rejected, rejected, done, done]


def oracle(jobs, rows, n_nodes) -> list[float]:
    """Simulate FCFS over the jobs that wait for nothing, instant by instant; nothing of the package."""
    start, end = {}, {}
    while len(start) < len(jobs):
        free_at = {}
        for j, (submit, _, _) in enumerate(jobs):
            times = [submit]
            for task, on, kind, delay in rows:
                if task == j:
                    times.append((start if kind == After.START else end).get(on, np.inf) + delay)
            free_at[j] = max(times)
        instants = sorted({t for j, t in free_at.items() if j not in start} | set(end.values()))
        for now in instants:
            queue = [j for j in range(len(jobs)) if j not in start and free_at[j] <= now]
            free = n_nodes - sum(jobs[j][2] for j in start if start[j] <= now < end[j])
            late = any(start[j] > now for j in start)
            if queue and not late and jobs[queue[0]][2] <= free:
                start[queue[0]] = now
                end[queue[0]] = now + jobs[queue[0]][1]
                break
    return [start[j] for j in range(len(jobs))]


GRAPHS = st.lists(
    st.tuples(
        st.integers(0, 20),
        st.integers(1, 9),
        st.integers(1, 4),
        st.lists(st.tuples(st.integers(1, 5), st.sampled_from([0, 1, 2]), st.integers(0, 4)), max_size=2),
    ),
    min_size=1,
    max_size=9,
)


def graph_of(drawn) -> tuple[list, list]:
    """Return jobs in order and their dependencies on jobs before them."""
    drawn = sorted(drawn, key=lambda row: row[0])
    rows = [(j, j - back, kind, d) for j, row in enumerate(drawn) for back, kind, d in row[3] if back <= j]
    return [row[:3] for row in drawn], rows


@settings(max_examples=80, deadline=None)
@given(GRAPHS)
def test_any_graph_starts_as_a_plain_simulation(drawn):
    """All kinds of successes, delays and ties."""
    jobs, rows = graph_of(drawn)
    assert starts(jobs, rows) == oracle(jobs, rows, 4)


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize("scheduler", ["fcfs", "easy_backfilling", "conservative_backfilling"])
def test_both_drivers_agree(scheduler):
    """The same records, and the plugin's joules."""
    rng = np.random.default_rng(5)
    jobs = [(int(s), int(rng.integers(1, 30)), int(rng.integers(1, 4))) for s in np.sort(rng.integers(0, 99, 30))]
    rows = [(j, int(rng.integers(0, j)), int(rng.integers(0, 3)), float(rng.integers(0, 9))) for j in range(3, 30, 2)]
    expected = run(scenario(jobs, rows, scheduler=scheduler))
    found = run(scenario(jobs, rows, scheduler=scheduler, driver="simgrid"))
    assert trace_differences(expected.trace, found.trace) == []
    assert metered_differences(found) == []


def test_a_policy_sees_no_dependencies():
    """What a job waits for may be a job to come."""
    case = scenario(JOBS, [(2, 0, After.END, 0)])
    platform, tasks = case.platform, case.tasks
    seen = []
    policy = Scripted(lambda state: seen.append(state.tasks.dependencies) or [], Traits(asked="event", parallel=True))
    controller = controller_of(platform, tasks, policy, estimates=RequestedTimes(platform, tasks))
    with pytest.raises(Exception, match="unfinished"):
        reference.simulate(controller)
    assert seen
    assert set(seen) == {None}


@pytest.mark.parametrize(
    "rows", [[(1, 1, 0, 0)], [(0, 1, 0, 0)], [(1, 0, 7, 0)], [(1, 0, 0, -1)], [(1, 0, 0, np.inf)], [(1, -1, 0, 0)]]
)
def test_impossible_dependencies_are_refused(rows):
    """On oneself or a later job, of an unknown kind, of no time."""
    with pytest.raises(InputError, match="Dependencies"):
        pairs_of(rows)


def test_serial_tasks_have_none():
    """They stand in queues that know of no such thing."""
    with pytest.raises(InputError, match="parallel"):
        make_tasks([1.0, 1.0], dependencies=pairs_of([(1, 0, After.END, 0)]))
    with pytest.raises(InputError, match="order"):
        make_tasks([1.0, 1.0], [5, 0], width=1, dependencies=pairs_of([(1, 0, After.END, 0)]))
