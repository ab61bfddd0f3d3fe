"""Tasks that wait for others, and for their files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted, at, at_times, controller_of, nodes, plan, play, rows

from gridsched import Scenario, run
from gridsched.drivers import reference
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.engine import Stop
from gridsched.errors import InputError
from gridsched.model.data_files import DataFiles
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.estimates import RequestedTimes
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.model.trace import TaskState
from gridsched.policy.base import Traits
from gridsched.policy.decisions import Allocate, Assign, Drop, WakeAt
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

# Jobs that wait for others: starts, ends, successes, failures, delays, and what never happens.


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
    """A later job starts before one that is before it in the queue, and waits for a third."""
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
    answer = at_times({1.0: [Drop(0), Allocate(3, np.array([0]))], 4.0: [Allocate(4, np.array([1]))]})
    seen = []

    def watched(state):
        seen.append((state.now, state.mappable.tolist()))
        return [each for each in answer(state) if each.task in seen[-1][1]]

    policy = Scripted(watched, Traits(trigger="event", parallel=True, may_drop=True))
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
            n_started = len(start)
            for j in [] if late else queue:  # one ask: who waits for one of these to start comes after all of them
                if jobs[j][2] > free:
                    break
                free -= jobs[j][2]
                start[j], end[j] = now, now + jobs[j][1]
            if len(start) > n_started:
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


def graph_of(sampled) -> tuple[list, list]:
    """Return jobs in order and their dependencies on jobs before them."""
    sampled = sorted(sampled, key=lambda row: row[0])
    rows = [(j, j - back, kind, d) for j, row in enumerate(sampled) for back, kind, d in row[3] if back <= j]
    return [row[:3] for row in sampled], rows


@settings(max_examples=80, deadline=None)
@given(GRAPHS)
def test_any_graph_starts_as_a_plain_simulation(sampled):
    """All kinds of successes, delays and ties."""
    jobs, rows = graph_of(sampled)
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


def test_a_policy_sees_what_submitted_jobs_wait_for():
    """Of those to come it sees nothing, of those that wait for others all; they are blocked meanwhile."""
    case = scenario(JOBS, [(2, 0, After.END, 0)])
    platform, tasks = case.platform, case.tasks
    seen = []

    def answer(state):
        waits = state.tasks.dependencies
        seen.append((state.now, waits.task.tolist(), waits.on.tolist(), state.blocked.tolist()))
        return []

    policy = Scripted(answer, Traits(trigger="event", parallel=True))
    controller = controller_of(platform, tasks, policy, estimates=RequestedTimes(platform, tasks))
    with pytest.raises(Exception, match="unfinished"):
        reference.simulate(controller)
    assert seen == [(0.0, [], [], []), (1.0, [], [], []), (2.0, [2], [0], [2])]


@pytest.mark.parametrize(
    "rows", [[(1, 1, 0, 0)], [(0, 1, 0, 0)], [(1, 0, 7, 0)], [(1, 0, 0, -1)], [(1, 0, 0, np.inf)], [(1, -1, 0, 0)]]
)
def test_impossible_dependencies_are_refused(rows):
    """On oneself or a later job, of an unknown kind, of no time."""
    with pytest.raises(InputError, match="Dependencies"):
        pairs_of(rows)


def test_dependencies_are_of_tasks_in_order():
    """By their places in order of submission."""
    with pytest.raises(InputError, match="order"):
        make_tasks([1.0, 1.0], [5, 0], width=1, dependencies=pairs_of([(1, 0, After.END, 0)]))


# Input files on their way to clusters (algorithms A4): serial uplinks, booking, withdrawal.


def clusters(latency_s: float = 0.0) -> Platform:
    """Clusters A = {a1, a2} and B = {b1, b2}: 10 flop/s, uplinks of 10 B/s."""
    names = ("a1", "a2", "b1", "b2")
    return Platform(
        tuple(Host(name, (PState(10.0, 1, 2, 2),)) for name in names),
        (Cluster("A", (0, 1), 10.0, latency_s), Cluster("B", (2, 3), 10.0, latency_s)),
    )


def tasks_with(needs: list[tuple[int, ...]], sizes: list[float], flops: float = 100.0) -> Tasks:
    """Tasks of 10 s; file k of `sizes` lies in cluster A."""
    names = tuple(f"f{k}" for k in range(len(sizes)))
    files = DataFiles(names, np.array(sizes), (("A",),) * len(sizes))
    return make_tasks([flops] * len(needs), input_files=needs, files=files)


def test_a_task_starts_at_once_where_its_files_are():
    """No transfer into the cluster that holds the file from the start."""
    trace, _ = play(clusters(), tasks_with([(0,)], [500.0]), at((0.0, [Assign(0, 0)])))
    assert rows(trace) == [(0.0, 0, 0, 10.0)]


def test_a_budget_counts_from_when_the_file_is_there():
    """100 B at 10 B/s, then 10 s at 2 W: 4 J before 12 s and 16 J after, and 1 W idle hosts."""
    seen = {}

    def answer(state):
        seen[state.now] = state.energy
        assigns = {0.0: [Assign(0, 2), WakeAt(5.0), WakeAt(11.0)], 12.0: [Assign(1, 2)]}
        return assigns.get(state.now, [])

    trace, _ = play(clusters(), tasks_with([(0,), ()], [100.0]), answer, budget=EnergyBudget(200.0, period_s=12.0))
    assert rows(trace) == [(10.0, 2, 0, 20.0), (20.0, 2, 1, 30.0)]
    # at 5 s nothing computes: four hosts idle; 2 s of the task lie before 12 s, 1 s of it at 11 s
    energies = [seen[time] for time in (5.0, 11.0)]
    assert [(e.consumed_j, e.committed_j) for e in energies] == [(20, 2), (45, 1)]
    periods = trace.periods
    assert periods["consumed_j"].tolist() == [48.0 + 2.0, 48.0 + 12.0, 24.0 + 6.0]
    assert periods["carried_over_j"].tolist() == [0.0, 16.0, 12.0]


def test_a_missing_file_takes_latency_and_size_over_bandwidth():
    """100 B at 10 B/s and 2 s latency: the task starts at 12; its core is taken from 0 on."""
    seen = {}

    def answer(state):
        seen[state.now] = (state.idle_cores(), state.ready_time.tolist(), state.running["start"])
        return {0.0: [Assign(0, 2), WakeAt(5.0)], 5.0: [Assign(1, 2)]}.get(state.now, [])

    trace, policy = play(clusters(2.0), tasks_with([(0,), ()], [100.0]), answer)
    assert rows(trace) == [(12.0, 2, 0, 22.0), (22.0, 2, 1, 32.0)]
    assert seen[5.0][:2] == ([0, 1, 3], [5.0, 5.0, 22.0, 5.0])
    assert seen[5.0][2].tolist() == [12.0]
    assert policy.times == [0.0, 5.0, 22.0]  # arriving data asks no policy


def test_transfers_into_a_cluster_are_serial():
    """Two files for two hosts of B come one after the other; A's uplink is another."""
    answer = at((0.0, [Assign(0, 2), Assign(1, 3)]))
    trace, _ = play(clusters(1.0), tasks_with([(0,), (1,)], [100.0, 50.0]), answer)
    assert trace.start_time_s.tolist() == [11.0, 17.0]


def test_only_missing_bytes_are_transferred():
    """The second task finds one of its two files on its way and transfers the other."""
    answer = at((0.0, [Assign(0, 2), Assign(1, 3)]))
    trace, _ = play(clusters(), tasks_with([(0,), (0, 1)], [100.0, 30.0]), answer)
    assert trace.start_time_s.tolist() == [10.0, 13.0]


def test_two_tasks_share_a_file_on_its_way():
    """Both start when the one transfer has ended."""
    answer = at((0.0, [Assign(0, 2), Assign(1, 3)]))
    trace, _ = play(clusters(), tasks_with([(0,), (0,)], [100.0]), answer)
    assert trace.start_time_s.tolist() == [10.0, 10.0]


def test_the_files_of_a_queued_task_are_sent_ahead():
    """While task 0 runs, the file of task 1 behind it comes in."""
    answer = at((0.0, [Assign(0, 2), Assign(1, 2)]))
    trace, _ = play(clusters(), tasks_with([(), (0,)], [80.0]), answer)
    assert trace.start_time_s.tolist() == [0.0, 10.0]


def test_a_new_plan_withdraws_transfers_that_have_not_begun():
    """f0 is on its way at t = 5 and stays so; f1, planned for 10, is missing again."""
    seen = {}

    def answer(state):
        seen[state.now] = (state.file_available[:, 1].tolist(), float(state.uplink_free[1]))
        return {0.0: [Assign(2, 2), plan((0, 2), (1, 2)), WakeAt(5.0), WakeAt(6.0)], 5.0: [plan((1, 0), (0, 2))]}.get(
            state.now, []
        )

    tasks = tasks_with([(0,), (1,), ()], [100.0, 100.0], flops=300.0)
    trace, _ = play(clusters(), tasks, answer)
    inf = float("inf")
    assert seen[5.0] == ([10.0, inf], 10.0)
    assert seen[6.0] == ([10.0, inf], 10.0)
    assert trace.start_time_s.tolist() == [30.0, 5.0, 0.0]


def test_a_new_plan_leaves_the_transfers_of_started_tasks_alone():
    """Tasks 0 and 1 hold cores for files due at 10 and 20; task 2's file comes after them."""
    seen = {}

    def answer(state):
        seen[state.now] = (state.file_available[:, 1].tolist(), float(state.uplink_free[1]))
        return {0.0: [plan((0, 2), (1, 3)), WakeAt(5.0), WakeAt(6.0)], 5.0: [plan((2, 2))]}.get(state.now, [])

    trace, _ = play(clusters(), tasks_with([(0,), (1,), (2,)], [100.0, 100.0, 100.0]), answer)
    assert seen[5.0] == ([10.0, 20.0, float("inf")], 20.0)
    assert trace.start_time_s.tolist() == [10.0, 20.0, 30.0]


def test_an_assignment_keeps_the_planned_transfer_it_relies_on():
    """Task 1 is queued in B because of f0, which task 0's plan brings; a new plan keeps it."""
    answer = at(
        (0.0, [Assign(2, 2), Assign(3, 3), plan((4, 2), (0, 2)), Assign(1, 3), WakeAt(5.0)]),
        (5.0, [plan((0, 0), (4, 1))]),
    )
    tasks = tasks_with([(0,), (0,), (), (), (1,)], [100.0, 100.0])
    trace, _ = play(clusters(), tasks, answer)
    assert trace.start_time_s[1] == 20.0


def test_a_copy_whose_data_comes_when_the_task_is_done_never_began():
    """The winner ends at 10, the instant in which the copy's file arrives: nothing to stop."""
    policy = Scripted(at((0.0, [Assign(0, 0), Assign(0, 2)])))
    controller = controller_of(clusters(), tasks_with([(0,)], [100.0]), policy)
    commands = []
    take_step = controller.step

    def step(now, finished):
        commands.extend(given := take_step(now, finished))
        return given

    controller.step = step
    trace = reference.simulate(controller)
    assert not any(isinstance(command, Stop) for command in commands)
    assert rows(trace) == [(0.0, 0, 0, 10.0)]


def test_a_copy_that_never_began_leaves_no_trace_in_the_account():
    """Its host computes another task from 10 s on: 2 W of one host, 1 W of three, for 20 s."""
    trace, _ = play(
        clusters(),
        tasks_with([(0,), ()], [1000.0]),
        at((0.0, [Assign(0, 0), Assign(0, 2)]), (10.0, [Assign(1, 2)])),
        budget=EnergyBudget(1e4, period_s=1e3),
    )
    assert rows(trace) == [(0.0, 0, 0, 10.0), (10.0, 2, 1, 20.0)]
    assert trace.periods["consumed_j"].tolist() == [100.0]


def test_an_unknown_location_is_refused():
    """A file must lie in a cluster, or on a host, that the platform has."""
    files = DataFiles(("f",), np.array([1.0]), (("C",),))
    tasks = make_tasks([1.0], input_files=[(0,)], files=files)
    with pytest.raises(InputError, match=r"'f'.*'C'"):
        controller_of(clusters(), tasks, Scripted(lambda state: []))


def test_a_host_stands_for_its_cluster():
    """A file on host a2 is at hand for all of A."""
    files = DataFiles(("f",), np.array([100.0]), (("a2",),))
    tasks = make_tasks([100.0], input_files=[(0,)], files=files)
    trace, _ = play(clusters(), tasks, at((0.0, [Assign(0, 0)])))
    assert trace.start_time_s.tolist() == [0.0]


def test_without_files_the_state_says_so():
    """Asking for file times in a run without files is a clear error."""

    def answer(state):
        with pytest.raises(AttributeError, match="input files"):
            assert state.file_available is None
        return [Assign(0, 0)]

    trace, _ = play(clusters(), [100.0], answer)
    assert trace.finish_time_s.tolist() == [10.0]
