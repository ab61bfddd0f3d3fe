"""Predicted run times, preemption, maintenance and shared nodes."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import shared_oracles as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from rigid_oracles import easy
from scheduler_cases import machine

from gridsched import Scenario, run
from gridsched.drivers import reference
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.energy import trace_energy
from gridsched.engine import Controller
from gridsched.errors import InputError
from gridsched.model.estimates import RequestedTimes
from gridsched.model.host_profiles import HostProfiles, Profile
from gridsched.model.platform import Cluster, Host, Partition, Platform, PState
from gridsched.model.room_on_nodes import PLACES
from gridsched.model.rules import Rules
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.system import System
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Allocate, Cancel
from gridsched.policy.registry import make_scheduler
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

# Predicted run times, preemption and maintenance.

needs_simgrid = pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)

# Run times that are predicted from a user's last jobs, and corrected as they pass.

#: Tsafrir, Etsion, Feitelson 2007: one minute, five, fifteen, thirty, one hour, two, five, ...
STEPS = [60, 300, 900, 1800, 3600, 7200, 18_000, 36_000, 72_000, 180_000, 360_000]


def starts(jobs, n_nodes, scheduler="easy_backfilling", **parameters) -> list[float]:
    """Return the starts of jobs: submission, run time, nodes, request, user."""
    submit, length, width, request, user = zip(*jobs, strict=True)
    platform = machine(n_nodes)
    tasks = make_tasks(
        np.array(request) * 1e9, submit, width=width, requested_time_s=request, attributes={"user": user}
    )
    parameters = {"estimate": "last_two_of_user", **parameters}
    times = LoggedRunTimes(platform, length)
    return run(
        Scenario(platform, tasks, scheduler, parameters, run_times=times, driver="reference")
    ).trace.start_time_s.tolist()


def easy_starts(jobs, n_nodes) -> list[float]:
    """Simulate EASY on predictions, instant by instant; nothing of the package."""
    start, predicted, steps, history = {}, {}, {}, {}
    waiting, running, to_come = [], [], list(range(len(jobs)))
    while to_come or waiting or running:
        now = min([start[j] + jobs[j][1] for j in running] + [jobs[j][0] for j in to_come[:1]])
        for j in [j for j in running if start[j] + jobs[j][1] == now]:
            running.remove(j)
            if jobs[j][4]:
                history.setdefault(jobs[j][4], []).append(jobs[j][1])
        while to_come and jobs[to_come[0]][0] == now:
            waiting.append(to_come.pop(0))
        for j in running:
            while start[j] + predicted[j] <= now and predicted[j] < jobs[j][3]:
                predicted[j] = min(predicted[j] + STEPS[min(steps[j], len(STEPS) - 1)], jobs[j][3])
                steps[j] += 1
        guess = {}
        for j in waiting:
            last = history.get(jobs[j][4], [])[-2:]
            guess[j] = min(sum(last) / 2, jobs[j][3]) if len(last) == 2 else jobs[j][3]
        ends = [(max(start[j] + predicted[j], np.nextafter(now, np.inf)), jobs[j][2]) for j in running]
        free = n_nodes - sum(width for _, width in ends)
        for j in easy(now, [(j, jobs[j][2], guess[j]) for j in waiting], free, ends) if waiting else []:
            start[j], predicted[j], steps[j] = now, guess[j], 0
            waiting.remove(j)
            running.append(j)
    return [start[j] for j in range(len(jobs))]


def test_the_last_two_jobs_of_the_user_by_hand():
    """Ann asks for an hour and takes 8 and 12 s: her next job counts as 10 s, and slips in before bob's."""
    jobs = [
        (0, 8, 1, 3600, "ann"),
        (0, 12, 1, 3600, "ann"),
        (20, 40, 3, 40, "bob"),
        (21, 30, 4, 30, "bob"),
        (22, 9, 1, 3600, "ann"),
    ]
    assert starts(jobs, 4) == [0, 0, 20, 60, 22]
    assert starts(jobs, 4, estimate="requested") == [0, 0, 20, 60, 90]


def test_a_prediction_that_passed_grows_by_a_minute_then_by_five():
    """Predicted 10 s, the job runs 500 s: at 130 s it counts as 370 s long, the third guess."""
    jobs = [
        (0, 10, 1, 3600, "ann"),
        (0, 10, 1, 3600, "ann"),
        (20, 500, 2, 3600, "ann"),
        (21, 900, 4, 900, "bob"),
        # until 30 s + 20 s: ends before the head's shadow at 390 s, and starts at once at 150 s
        (150, 230, 1, 230, "bob"),
        (160, 240, 1, 240, "bob"),
    ]
    assert starts(jobs, 4) == [0, 0, 20, 520, 150, 1420]
    assert starts(jobs, 4) == easy_starts(jobs, 4)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 900), st.integers(1, 700), st.integers(1, 5), st.integers(0, 900), st.sampled_from("abc")
        ),
        min_size=1,
        max_size=25,
    )
)
def test_easy_on_predictions_starts_as_a_plain_simulation(rows):
    """Histories, corrections and backfilling together."""
    jobs = [(s, r, n, r + more, user) for s, r, n, more, user in sorted(rows, key=lambda row: row[0])]
    assert starts(jobs, 5) == easy_starts(jobs, 5)


@pytest.mark.parametrize("scheduler", ["fcfs", "easy_backfilling", "conservative_backfilling"])
def test_predictions_that_come_true_are_requests(scheduler):
    """Where every job takes what it asks for, each predictor's jobs of one length change nothing."""
    jobs = [(7 * k, 10, 1 + k % 4, 10, "ann") for k in range(12)]
    assert starts(jobs, 5, scheduler) == starts(jobs, 5, scheduler, estimate="requested")


# Jobs that make room for others: they wait again, or are killed.

DRIVERS = ["reference", pytest.param("simgrid", marks=pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL))]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "preempt_by_qos.py"
PreemptByQos = runpy.run_path(str(EXAMPLE))["PreemptByQos"]
#: Submission, run time, nodes, quality of service: two jobs run on four nodes, at 5 s an urgent one needs three.
JOBS = [(0, 20, 2, "normal"), (1, 20, 2, "normal"), (5, 10, 3, "high"), (6, 4, 1, "normal")]


def scenario(jobs, n_nodes=4, **options):
    """Return a run of jobs under the example's policy."""
    submit, length, width, qos = zip(*jobs, strict=True)
    platform = machine(n_nodes)
    tasks = make_tasks(
        np.array(length) * 1e9, submit, width=width, requested_time_s=length, attributes={"qos": list(qos)}
    )
    requeue = options.pop("requeue", True)
    options = {"driver": "reference"} | options
    return Scenario(
        platform, tasks, PreemptByQos(requeue=requeue), run_times=LoggedRunTimes(platform, length), **options
    )


def test_requeue_by_hand():
    """The youngest makes room, then the other; the urgent job runs from 5 to 15 s, the others start again."""
    result = run(scenario(JOBS))
    trace = result.trace
    assert result.metrics()["requeues"] == 2
    runs = trace.executions
    found = [(r["task"].item(), r["start"].item(), r["end"].item(), r["outcome"].item()) for r in runs]
    ended, cancelled = int(ExecutionEnd.FINISHED), int(ExecutionEnd.CANCELLED)
    assert sorted(found) == [
        (0, 0, 5, cancelled), (0, 15, 35, ended), (1, 1, 5, cancelled), (1, 15, 35, ended), (2, 5, 15, ended),
        (3, 6, 10, ended),
    ]  # fmt: skip
    assert (trace.final_state == TaskState.FINISHED).all()
    energy = trace_energy(trace)
    assert energy.wasted_j.sum() == pytest.approx(200 * (2 * 5 + 2 * 4))


def test_cancel_by_hand():
    """Those that made room are killed."""
    trace = run(scenario(JOBS, requeue=False)).trace
    killed, done = TaskState.KILLED, TaskState.FINISHED
    assert trace.final_state.tolist() == [killed, killed, done, done]


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_kill_asks_again_in_the_same_instant(driver):
    """Job 0 has all four nodes and is killed at 5 s, by an answer of that alone; job 1 starts in it."""

    class KillsTheLast(Scheduler):
        """Start what fits, else end what started last."""

        traits = Traits(trigger="event", parallel=True, may_cancel=True)

        def schedule(self, state):
            free, waiting = np.flatnonzero(state.nodes.free), state.next_waiting(1)
            if not waiting:
                return []
            if len(free) == 4:
                return [Allocate(waiting[0], free)]
            return [Cancel(int(state.running["task"][-1]))]

    tasks = make_tasks([100e9, 10e9], [0, 5], width=[4, 4], requested_time_s=[100, 10])
    trace = run(Scenario(machine(4), tasks, KillsTheLast(), driver=driver)).trace
    assert trace.final_state.tolist() == [TaskState.KILLED, TaskState.FINISHED]
    assert trace.start_time_s.tolist() == [0, 5]


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize("requeue", [True, False])
def test_both_drivers_agree(requeue):
    """The same records, and the plugin's joules are the model's."""
    rng = np.random.default_rng(11)
    jobs = [
        (int(s), int(rng.integers(5, 60)), int(rng.integers(1, 6)), str(rng.choice(["high", "normal"], p=[0.2, 0.8])))
        for s in np.sort(rng.integers(0, 900, 40))
    ]
    expected = run(scenario(jobs, 6, requeue=requeue))
    found = run(scenario(jobs, 6, requeue=requeue, driver="simgrid"))
    assert (expected.trace.executions["outcome"] != ExecutionEnd.FINISHED).any()
    assert trace_differences(expected.trace, found.trace) == []
    assert metered_differences(found) == []


# Maintenance that is known before: nodes are down, and no job starts that would not end by then.

POLICIES = ["fcfs", "easy_backfilling", "conservative_backfilling"]


def maintained(jobs, windows, n_nodes=4, scheduler="easy_backfilling", **options) -> Scenario:
    """Return a run of jobs (submission, run time, nodes, request) on nodes n0, n1, ..."""
    submit, length, width, request = zip(*jobs, strict=True)
    platform = machine(n_nodes)
    tasks = make_tasks(np.array(request) * 1e9, submit, width=width, requested_time_s=request)
    options = {"driver": "reference", "maintenance": tuple(windows)} | options
    return Scenario(platform, tasks, scheduler, run_times=LoggedRunTimes(platform, length), **options)


def starts_around(*arguments, **options) -> list[float]:
    """Return the start of each job."""
    return run(maintained(*arguments, **options)).trace.start_time_s.tolist()


@pytest.mark.parametrize("scheduler", POLICIES)
def test_a_job_that_would_not_end_by_then_waits(scheduler):
    """All nodes are down from 20 to 30 s: what asks for 20 s from 5 s on waits, although it takes 2 s."""
    assert starts_around([(0, 15, 2, 20), (5, 2, 2, 20)], ["20:30"], scheduler=scheduler) == [0, 30]


@pytest.mark.parametrize(
    ("scheduler", "start"), [("fcfs", 30), ("easy_backfilling", 6), ("conservative_backfilling", 6)]
)
def test_short_jobs_fill_the_time_before(scheduler, start):
    """The third ends by 20 s; who does not let it overtake makes it wait for the second."""
    jobs = [(0, 15, 2, 20), (5, 2, 2, 20), (6, 10, 2, 14)]
    assert starts_around(jobs, ["20:30"], scheduler=scheduler) == [0, 30, start]


@pytest.mark.parametrize("scheduler", POLICIES)
def test_other_nodes_go_on(scheduler):
    """Nodes n0 and n1 are down: the long job takes the others."""
    result = run(maintained([(0, 50, 2, 50), (1, 50, 2, 50)], ["n[01]=20:30"], scheduler=scheduler))
    assert result.trace.start_time_s.tolist() == [0, 30]
    assert [result.trace.hosts_of(k).tolist() for k in range(2)] == [[2, 3], [0, 1]]


def test_nodes_that_are_down_draw_what_is_drawn_when_off():
    """Four nodes are down for 10 of 40 s, and idle else, but for 10 s of one."""
    trace = run(maintained([(0, 10, 1, 10), (25, 10, 1, 10)], ["20:30"])).trace
    assert trace.start_time_s.tolist() == [0, 30]
    assert trace_energy(trace).grid_total() == pytest.approx(2 * 10 * 200 + (4 * 40 - 4 * 10 - 20) * 50)


SAMPLED_JOBS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 20), st.integers(1, 4), st.integers(0, 9)), min_size=1, max_size=10
).map(lambda rows: [(s, r, n, r + more) for s, r, n, more in sorted(rows, key=lambda row: row[0])])
WINDOWS = st.lists(
    st.tuples(st.integers(10, 80), st.integers(1, 15), st.sampled_from(["*", "n0", "n[0-2]"])), max_size=2
)


def texts_of(sampled) -> list[str]:
    """Return windows that do not touch."""
    windows, last = [], -1
    for begin, length, pattern in sorted(sampled):
        if begin > last:
            windows.append(f"{pattern}={begin}:{begin + length}")
            last = begin + length
    return windows


@settings(max_examples=60, deadline=None)
@given(SAMPLED_JOBS, WINDOWS, st.sampled_from(POLICIES))
def test_no_job_is_ever_lost(jobs, sampled, scheduler):
    """Each runs once, on nodes that are up, although what it asked for may be longer than it takes."""
    trace = run(maintained(jobs, texts_of(sampled), scheduler=scheduler)).trace
    assert len(trace.executions) == len(jobs)
    for text in texts_of(sampled):
        pattern, _, times = text.partition("=")
        begin, end = map(float, times.split(":"))
        nodes = {"*": range(4), "n0": [0], "n[0-2]": range(3)}[pattern]
        for k, each in enumerate(trace.executions):
            if set(trace.hosts_of(k).tolist()) & set(nodes):
                asked = each["start"] + jobs[each["task"]][3]
                assert asked <= begin or each["start"] >= end


@settings(max_examples=40, deadline=None)
@given(SAMPLED_JOBS, st.sampled_from(["fcfs", "easy_backfilling"]))
def test_maintenance_after_all_is_over_changes_nothing(jobs, scheduler):
    """By nodes FCFS and EASY start what they start by counting."""
    assert starts_around(jobs, ["100000:100001"], scheduler=scheduler) == starts_around(jobs, [], scheduler=scheduler)


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize("scheduler", POLICIES)
def test_both_drivers_agree_on_maintenance(scheduler):
    """The same records, and the plugin's joules are the model's."""
    rng = np.random.default_rng(4)
    jobs = [
        (int(s), r := int(rng.integers(1, 40)), int(rng.integers(1, 5)), r + 5)
        for s in np.sort(rng.integers(0, 200, 30))
    ]
    windows = ["n[12]=60:90", "150:170", "n0=200:230"]
    expected = run(maintained(jobs, windows, scheduler=scheduler))
    found = run(maintained(jobs, windows, scheduler=scheduler, driver="simgrid"))
    assert trace_differences(expected.trace, found.trace) == []
    assert metered_differences(found) == []


@pytest.mark.parametrize("scheduler", POLICIES)
def test_predictions_do_not_shorten_what_ends_before_maintenance(scheduler):
    """Ann's jobs take 2 of 20 s, as is predicted of the third; but it may take 20 s, and waits from 5 to 30 s."""
    jobs = [(0, 2, 1, 20), (0, 2, 1, 20), (5, 2, 4, 20), (6, 2, 4, 14)]
    submit, length, width, request = zip(*jobs, strict=True)
    platform, users = machine(4), {"user": ["ann"] * 4}
    tasks = make_tasks(np.array(request) * 1e9, submit, width=width, requested_time_s=request, attributes=users)
    parameters, times = {"estimate": "last_two_of_user"}, LoggedRunTimes(platform, length)
    options = {"run_times": times, "driver": "reference", "maintenance": ("20:30",)}
    found = run(Scenario(platform, tasks, scheduler, parameters, **options)).trace.start_time_s.tolist()
    assert found == [0, 0, 30, 32 if scheduler == "fcfs" else 6]


@pytest.mark.parametrize("driver", ["reference", pytest.param("simgrid", marks=needs_simgrid)])
@pytest.mark.parametrize("scheduler", POLICIES)
def test_maintenance_of_nodes_that_jobs_share(scheduler, driver):
    """Of two nodes of four cores n0 is down from 20 to 30 s: nothing is on it that could last longer.

    The first two take n0, which goes down first, until 10 s. The third asks for 25 s and has n1, and so has
    the fourth from 26 s on. The last ends in time beside the third; without reservations it waits for the
    fourth, and then for n0.
    """
    jobs = [(0, 10, 10, 2), (0, 10, 10, 2), (1, 25, 25, 2), (2, 25, 25, 3), (3, 15, 15, 2)]
    submit, length, request, cores = zip(*jobs, strict=True)
    platform = shared_machine([[4, 8, 0]] * 2, [([0, 1], 0)])
    need = [[n, 0, 0] for n in cores]
    tasks = make_tasks(
        np.array(request) * 1e9, submit, width=[1] * 5, requested_time_s=request, demand=need,
        anywhere=[False] * 5, partition=[0] * 5, resources=RESOURCES,
    )  # fmt: skip
    options = {"run_times": LoggedRunTimes(platform, length), "driver": driver, "maintenance": ("n0=20:30",)}
    trace = run(Scenario(platform, tasks, scheduler, **options)).trace
    last = 30 if scheduler == "fcfs" else 3
    assert [start for start, _ in places(trace)] == [0, 0, 1, 26, last]
    assert [list(on) for _, on in places(trace)][:3] == [[0], [0], [1]]


@pytest.mark.parametrize(
    ("windows", "options", "named"),
    [
        (["30:20"], {}, "30:20"),
        (["x"], {}, "BEGIN:END"),
        (["m*=1:2"], {}, r"m\*"),
        (["1:5", "n0=5:7"], {}, "n0"),
        (["1:5"], {"failures": "mtbf=9,mttr=1"}, "failures"),
    ],
)
def test_what_is_no_maintenance_is_refused(windows, options, named):
    """One line that names it."""
    with pytest.raises(InputError, match=named):
        run(maintained([(0, 1, 1, 1)], windows, **options))


# Jobs that share nodes: every start, node and core as by plain loops, and by hand.

RESOURCES = ("cores", "memory_mb", "gpu")


def shared_machine(nodes, partitions) -> Platform:
    """Return a platform of nodes with so much of each of `RESOURCES`."""
    state = (PState(1e9, 90.0, 100.0, 200.0),)
    hosts = tuple(
        Host(f"n{k}", state, cores=cores, resources=(("memory_mb", memory), ("gpu", gpus)))
        for k, (cores, memory, gpus) in enumerate(nodes)
    )
    made = tuple(
        Partition(f"p{k}", tuple(members), priority=priority) for k, (members, priority) in enumerate(partitions)
    )
    return Platform(hosts, (Cluster("c", tuple(range(len(hosts)))),), partitions=made)


def play(jobs, nodes, partitions, scheduler, placement="pack", users=None):
    """Run jobs as the oracle has them on the reference driver, every instant validated."""
    submit, run, estimate, partition, parts, anywhere, need = zip(*jobs, strict=True)
    platform = shared_machine(nodes, partitions)
    tasks = make_tasks(
        np.array(estimate) * 1e9,
        submit,
        width=parts,
        requested_time_s=estimate,
        demand=need,
        anywhere=anywhere,
        partition=partition,
        resources=RESOURCES,
        attributes={} if users is None else {"user": users},
    )
    system = System(platform, RequestedTimes(platform, tasks, placement), rules=Rules(placement=placement))
    controller = Controller(
        system,
        tasks,
        scheduler if isinstance(scheduler, Scheduler) else make_scheduler(scheduler),
        rng=np.random.default_rng(0),
    )
    step = controller.step

    def checked(*instant):
        commands = step(*instant)
        controller.validate()
        return commands

    controller.step = checked
    return reference.simulate(controller, LoggedRunTimes(platform, run))


def places(trace) -> list:
    """Return the start of each job, and the nodes with their cores."""
    found = {}
    for k, (task, start) in enumerate(trace.executions[["task", "start"]].tolist()):
        some = slice(trace.host_offsets[k], trace.host_offsets[k + 1])
        found[task] = start, dict(zip(trace.host_ids[some].tolist(), trace.host_cores[some].tolist(), strict=True))
    return [found[task] for task in range(len(trace.tasks))]


def random_case(seed: int) -> tuple:
    """Return jobs, nodes and two partitions, which may overlap."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    nodes = [[int(rng.integers(1, 5)), int(rng.integers(4, 9)), int(rng.integers(0, 3))] for _ in range(n)]
    cut, overlap = int(rng.integers(1, n)), int(rng.integers(0, 2))
    partitions = [(list(range(cut + overlap)), int(rng.integers(0, 2))), (list(range(cut, n)), 0)]
    jobs, time = [], 0.0
    for _ in range(int(rng.integers(4, 13))):
        time += float(rng.integers(0, 4))
        run = float(rng.integers(1, 15))
        need = [int(rng.integers(1, 4)), int(rng.integers(0, 5)), int(rng.random() < 0.2)]
        anywhere, k = bool(rng.random() < 0.5), int(rng.integers(0, 2))
        job = (time, run, run + float(rng.integers(0, 6)), k, int(rng.integers(1, 5)), anywhere, need)
        if oracle.lay(nodes, partitions, job, "contiguous"):
            jobs.append(job)
    return jobs or [(0.0, 1.0, 1.0, 0, 1, False, [1, 0, 0])], nodes, partitions


@pytest.mark.parametrize("placement", PLACES)
def test_a_job_without_room_on_empty_nodes_is_rejected(placement):
    """200 cases: jobs that plain loops cannot lay on nodes where nothing runs; all others finish."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        _, nodes, _ = random_case(seed)
        members = sorted(rng.choice(len(nodes), rng.integers(1, len(nodes) + 1), replace=False).tolist())
        partitions = [(members, 0)]
        jobs = [
            (0.0, 1.0, 1.0, 0, int(rng.integers(1, 6)), bool(rng.random() < 0.5), [int(rng.integers(1, 4)), 0, 0])
            for _ in range(5)
        ]
        fits = [oracle.lay(nodes, partitions, job, placement) is not None for job in jobs]
        final = play(jobs, nodes, partitions, "easy_backfilling", placement).final_state
        expected = [TaskState.FINISHED if each else TaskState.REJECTED for each in fits]
        assert final.tolist() == expected, (seed, placement)


@pytest.mark.parametrize("scheduler", list(oracle.RULES))
def test_random_cases_are_as_by_plain_loops(scheduler):
    """667 cases of two partitions under each of three rules: starts, nodes and cores are equal."""
    for seed in range(667):
        case, placement = random_case(seed), PLACES[seed % 3]
        jobs = case[0]
        starts, on = oracle.simulate(*case, oracle.RULES[scheduler], placement)
        expected = [
            (start, {n: nodes.count(n) * job[oracle.NEED][0] for n in nodes})
            for job, start, nodes in zip(jobs, starts, on, strict=True)
        ]
        assert places(play(*case, scheduler, placement)) == expected, (seed, placement)


@pytest.mark.parametrize("scheduler", list(oracle.RULES))
def test_a_long_queue_of_one_partition_is_as_by_plain_loops(scheduler):
    """40 cases of 25 jobs, of which many overtake the same blocked one: what each takes of it adds up."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, time, jobs = int(rng.integers(4, 9)), 0.0, []
        for _ in range(25):
            time += float(rng.integers(0, 3))
            run = float(rng.integers(1, 15))
            need = [int(rng.integers(1, 5)), int(rng.integers(0, 5)), 0]
            ask = run + float(rng.integers(0, 9))
            jobs.append((time, run, ask, 0, int(rng.integers(1, n + 1)), bool(rng.random() < 0.3), need))
        case, placement = (jobs, [[4, 8, 0]] * n, [(list(range(n)), 0)]), PLACES[seed % 3]
        jobs = [job for job in jobs if oracle.lay(case[1], case[2], job, placement)]
        starts, on = oracle.simulate(jobs, *case[1:], oracle.RULES[scheduler], placement)
        expected = [
            (start, {n: nodes.count(n) * job[oracle.NEED][0] for n in nodes})
            for job, start, nodes in zip(jobs, starts, on, strict=True)
        ]
        assert places(play(jobs, *case[1:], scheduler, placement)) == expected, (seed, placement)


#: A node of 8 cores, and two of 4.
ALONE, PAIR = [[8, 64, 0]], [[4, 64, 0], [4, 64, 0]]


def queued(submit, run_s, partition, parts, cores, *, anywhere=False) -> tuple:
    """Return a job whose parts take so many cores each, and whose estimate is right."""
    return submit, run_s, run_s, partition, parts, anywhere, [cores, 1, 0]


def test_fair_share_counts_cores():
    """Ann has a part of four cores, bob four of one: both used as much, and bob came first."""
    jobs = [queued(0, 10, 0, 1, 4), queued(0, 10, 0, 4, 1, anywhere=True), queued(1, 5, 0, 1, 8), queued(2, 5, 0, 1, 8)]
    order = make_scheduler("fcfs", {"order": "multifactor(PriorityWeightFairshare=1000000)"})
    trace = play(jobs, ALONE, [([0], 0)], order, users=("ann", "bob", "bob", "ann"))
    assert trace.start_time_s.tolist() == [0, 0, 10, 15]


@pytest.mark.parametrize("scheduler", list(oracle.RULES))
def test_nodes_with_a_gap_between_them_are_no_neighbours(scheduler):
    """Of a partition of n0, n1 and n3 the first is taken: two neighbors are free when it is."""
    jobs = [queued(0, 10, 0, 1, 4), queued(1, 5, 0, 2, 4)]
    trace = play(jobs, [[4, 64, 0]] * 4, [([0, 1, 3], 0)], scheduler, "contiguous")
    assert places(trace) == [(0, {0: 4}), (10, {0: 4, 1: 4})]


def test_depth_counts_behind_the_priority_of_partitions():
    """With one job looked at, that of the partition of higher priority is."""
    jobs = [queued(0, 10, 0, 1, 8), queued(1, 5, 0, 1, 8), queued(2, 5, 1, 1, 8)]
    partitions = [([0], 0), ([0], 5)]
    trace = play(jobs, ALONE, partitions, make_scheduler("easy_backfilling", {"depth": 1}))
    assert trace.start_time_s.tolist() == [0, 15, 10]


def test_multifactor_takes_the_priorities_of_partitions():
    """They are a factor then: by its weight the later job comes first, by a larger age it does not."""
    jobs = [queued(0, 100, 0, 1, 8), queued(1, 5, 0, 1, 8), queued(51, 5, 1, 1, 8)]
    partitions = [([0], 1), ([0], 2)]
    for weight_of_age, starts in ((10, [0, 105, 100]), (10_000, [0, 100, 105])):
        order = f"multifactor(PriorityWeightPartition=1000, PriorityWeightAge={weight_of_age}, PriorityMaxAge='0:1:0')"
        trace = play(jobs, ALONE, partitions, make_scheduler("fcfs", {"order": order}))
        assert trace.start_time_s.tolist() == starts
    # numbers of one's own leave the table's priorities what they are: tiers, whatever the age
    own = order.replace("=1000,", "=1000, partitions={'p0': 1},", 1)
    trace = play(jobs, ALONE, partitions, make_scheduler("fcfs", {"order": own}))
    assert trace.start_time_s.tolist() == [0, 105, 100]


class Noting(type(make_scheduler("fcfs"))):
    """First come, first served, which notes since when nodes are idle."""

    idle: ClassVar[dict[float, list[float]]] = {}

    def schedule(self, state):
        """Note and decide."""
        self.idle[state.now] = state.idle_since.tolist()
        return super().schedule(state)


def test_a_shared_node_is_idle_since_its_last_job_ended():
    """Of two jobs on n0 one ends at 6 s, the other at 10; n1 has had none."""
    Noting.idle.clear()
    jobs = [queued(0, 6, 0, 1, 2), queued(0, 10, 0, 1, 2), queued(12, 5, 0, 1, 4)]
    play(jobs, PAIR, [([0, 1], 0)], Noting())
    assert Noting.idle[6.0] == [np.inf, 0.0]
    assert Noting.idle[12.0] == [10.0, 0.0]


def test_more_than_a_thousand_places_on_nodes():
    """25 jobs on all of 40 nodes end one after the other, while others come: as by plain loops."""
    nodes, partitions = [[26, 64, 0]] * 40, [(list(range(40)), 0)]
    jobs = [queued(0, 5 + k, 0, 40, 1) for k in range(25)]
    jobs += [queued(6.5 + k, 9, 0, 40, 1 + k % 3) for k in range(8)]
    starts, _ = oracle.simulate(jobs, nodes, partitions, oracle.RULES["easy_backfilling"], "pack")
    assert play(jobs, nodes, partitions, "easy_backfilling").start_time_s.tolist() == starts


def test_nothing_is_left_of_a_shared_node_that_is_down():
    """n0 is down from 4 s on, so the job that comes at 5 s waits for n1."""
    platform = shared_machine(PAIR, [([0, 1], 0)])
    down = HostProfiles(states=(("n0", Profile((4.0, 100.0), (0.0, 1.0))),))
    jobs = [queued(0, 3, 0, 1, 4), queued(0, 10, 0, 1, 4), queued(5, 5, 0, 1, 4)]
    submit, run_s, _, _, parts, anywhere, need = zip(*jobs, strict=True)
    tasks = make_tasks(
        np.array(run_s) * 1e9,
        submit,
        width=parts,
        requested_time_s=run_s,
        demand=need,
        anywhere=anywhere,
        partition=[0] * 3,
        resources=RESOURCES,
    )
    trace = run(Scenario(replace(platform, profiles=down), tasks, "fcfs", driver="reference")).trace
    assert trace.start_time_s.tolist() == [0, 0, 10]


def test_what_outlives_its_estimate_ends_in_the_next_moment():
    """At 7 s the first has 6 of 8 cores, though it was to end at 5: the second waits for all, the third for it."""
    jobs = [(0, 10, 5, 0, 1, False, [6, 1, 0]), queued(7, 5, 0, 1, 8), queued(7, 1, 0, 1, 2)]
    trace = play(jobs, ALONE, [([0], 0)], "conservative_backfilling")
    assert trace.start_time_s.tolist() == [0, 10, 15]


def test_what_ends_when_a_reservation_begins_delays_nothing():
    """Two cores are free until all eight are reserved at 10 s: for 8 s from 2 s on."""
    jobs = [queued(0, 10, 0, 1, 6), queued(1, 5, 0, 1, 8), queued(2, 8, 0, 1, 2)]
    for scheduler in ("conservative_backfilling", "easy_backfilling"):
        trace = play(jobs, ALONE, [([0], 0)], scheduler)
        assert trace.start_time_s.tolist() == [0, 10, 2]


def test_all_that_ends_together_is_there_for_the_first_blocked_job():
    """n0 and n1 get free at 10 s, enough for the third job: the last one may have n2 for longer than that."""
    jobs = [queued(0, 10, 0, 1, 4), queued(0, 10, 0, 1, 4), queued(1, 5, 0, 2, 4), queued(2, 20, 0, 1, 4)]
    trace = play(jobs, [[4, 64, 0]] * 3, [([0, 1, 2], 0)], "easy_backfilling")
    assert places(trace)[2:] == [(10, {0: 4, 1: 4}), (2, {2: 4})]


def test_a_policy_of_whole_nodes_is_refused():
    """The example that makes room counts nodes; where jobs share them it is not an answer."""
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "preempt_by_qos.py"))["PreemptByQos"]
    with pytest.raises(InputError, match="'shares'"):
        play([queued(0, 10, 0, 1, 8)], ALONE, [([0], 0)], example())
