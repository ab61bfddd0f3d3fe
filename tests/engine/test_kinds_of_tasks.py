"""What a run can have, it has for tasks of one core, for jobs on whole nodes and for jobs that share nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scripted import NODE, Scripted, at_times, controller_of, nodes, plan

from gridsched import Scenario, run
from gridsched.drivers import reference
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.errors import InvalidDecision
from gridsched.model.data_files import DataFiles
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.host_profiles import HostProfiles, Profile
from gridsched.model.platform import Cluster, Host, Partition, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Allocate, Assign, Cancel, Drop, Plan
from gridsched.schedulers.bag.baselines import MCT
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

needs_simgrid = pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
ALL = Traits(
    trigger="event", parallel=True, shares=True, replicates=True, may_cancel=True, may_drop=True, powers_hosts=True
)
KINDS = ("serial", "whole", "shared")


def machine(kind: str, size: int = 2, *, cores: int = 4, pstates=NODE) -> Platform:
    """Return equal nodes: of one core, or of four that jobs share in one partition."""
    if kind != "shared":
        return nodes(size, pstates=pstates)
    hosts = tuple(Host(f"n{k}", pstates, cores=cores) for k in range(size))
    everybody = tuple(range(size))
    return Platform(hosts, (Cluster("c0", everybody),), partitions=(Partition("all", everybody),))


def bag(kind: str, times: list[float], submit=0.0, *, cores: int = 4, width=1, **more):
    """Return tasks of 10 flop/s for so long, of one part: a core, a node, or all four cores of a shared node."""
    kinds = {"serial": {}, "whole": {"width": width}, "shared": {"width": width, "demand": [[cores]] * len(times)}}
    return make_tasks(np.array(times) * 10.0, submit, **kinds[kind], **more)


def played(kind: str, platform: Platform, tasks, answer, traits: Traits = ALL, **rules):
    """Run a scripted policy to the end; return start and end of each task."""
    controller = controller_of(platform, tasks, Scripted(answer, traits), **rules)
    trace = reference.simulate(controller)
    controller.validate()
    return trace


def spans(trace) -> dict[int, tuple[float, float]]:
    """Return (start, end) of the finished execution of each task."""
    return {
        task: (start, end) for task, start, end in zip(range(9), trace.start_time_s, trace.finish_time_s, strict=False)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_reservation_and_what_it_leaves(kind):
    """Task 1 has host 0 from 20 s on: task 0 of 15 s may go before, task 2 of 25 s may not."""
    platform, tasks = machine(kind), bag(kind, [15, 10, 25])
    first = {0: [Allocate(1, [0], start=20.0), Allocate(0, [0]), Allocate(2, [1])]}
    trace = played(kind, platform, tasks, at_times(first))
    assert spans(trace) == {0: (0, 15), 1: (20, 30), 2: (0, 25)}
    with pytest.raises(InvalidDecision, match=r"host 0 is reserved from 20 s to 30 s"):
        played(kind, platform, tasks, at_times({0: [Allocate(1, [0], start=20.0), Allocate(2, [0])]}))


def test_reservations_share_nodes_by_cores():
    """Of 4 cores 3 are reserved from 10 to 20 s: one of a core fits beside, one of two does not."""
    platform = machine("shared", 1)
    tasks = make_tasks([100.0, 200.0, 200.0], width=1, demand=[[3], [1], [2]])
    beside = {0: [Allocate(0, [0], start=10.0), Allocate(1, [0]), Allocate(2, [0], start=20.0)]}
    assert spans(played("shared", platform, tasks, at_times(beside))) == {0: (10, 20), 1: (0, 20), 2: (20, 40)}
    for start in (None, 5.0, 19.0):
        decisions = [Allocate(0, [0], start=10.0), Allocate(2, [0], start=start)]
        with pytest.raises(InvalidDecision, match="host 0 is reserved from 10 s"):
            played("shared", platform, tasks, at_times({0: decisions}))
    running = [Allocate(0, [0]), Allocate(2, [0], start=9.0)]
    with pytest.raises(InvalidDecision, match="host 0 is taken from 0 s to 10 s"):
        played("shared", platform, tasks, at_times({0: running}))


def test_a_reservation_that_ends_leaves_room_for_one_that_begins():
    """Of 4 cores 3 are reserved from 5 to 10 s, and from 10 to 15 s: one of a core fits beside them all the time."""
    tasks = make_tasks([50.0, 50.0, 200.0], width=1, demand=[[3], [3], [1]])
    beside = [Allocate(0, [0], start=5.0), Allocate(1, [0], start=10.0), Allocate(2, [0])]
    trace = played("shared", machine("shared", 1), tasks, at_times({0: beside}))
    assert spans(trace) == {0: (5, 10), 1: (10, 15), 2: (0, 20)}


@pytest.mark.parametrize("pstates", [NODE, NODE[:1]])
def test_parts_that_need_nodes_of_their_own_are_not_allocated_together(pstates):
    """Two parts of a core on a node of four are refused where each needs a node of its own, and else start."""
    platform, answer = machine("shared", pstates=pstates), at_times({0: [Allocate(0, [0, 0])]})
    tasks = make_tasks([50.0], width=2, demand=[[1]], anywhere=True)
    assert spans(played("shared", platform, tasks, answer)) == {0: (0, 5)}
    tasks = make_tasks([50.0], width=2, demand=[[1]], anywhere=False)
    with pytest.raises(InvalidDecision, match="node of its own"):
        played("shared", platform, tasks, answer)
    for hosts in ([0], [0, 1, 2]):
        with pytest.raises(InvalidDecision, match="2 parts"):
            played("shared", machine("shared", 3, pstates=pstates), tasks, at_times({0: [Allocate(0, hosts)]}))


def test_what_shares_a_node_shares_its_p_state():
    """While task 0 runs at 5 flop/s, in P-state 1, others on its node do so, too; another node is free to differ."""
    tasks = make_tasks([50.0] * 3, [0.0, 2.0, 2.0], width=1, demand=[[1]] * 3)
    answers = {0: [Allocate(0, [0], pstate=1)], 2: [Allocate(1, [0], pstate=1), Allocate(2, [1], pstate=0)]}
    assert spans(played("shared", machine("shared"), tasks, at_times(answers))) == {0: (0, 10), 1: (2, 12), 2: (2, 7)}
    with pytest.raises(InvalidDecision, match="P-state"):
        played("shared", machine("shared"), tasks, at_times(answers | {2: [Allocate(1, [0], pstate=0)]}))


@pytest.mark.parametrize("kind", KINDS)
def test_place_holders_start_when_they_are_due(kind):
    """Tasks 1 and 2 are planned for 10 and 15 s on hosts 0 and 1; the policy is not asked in between."""
    places = Plan(np.array([1, 2]), np.array([0, 1]), None, np.array([0, 1, 2]), np.array([10.0, 15.0]))
    trace = played(kind, machine(kind), bag(kind, [30, 10, 5]), at_times({0: [places], 20: [Allocate(0, [0])]}))
    assert spans(trace) == {0: (20, 50), 1: (10, 20), 2: (15, 20)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parallel", [True, False])
def test_queues_and_plans_on_hosts(kind, parallel):
    """Three tasks wait in line on host 0, two are planned behind each other on host 1."""
    traits = ALL if parallel else Traits(trigger="event")
    answer = at_times({0: [Assign(0, 0), Assign(1, 0), Assign(2, 0), plan((3, 1), (4, 1))]})
    trace = played(kind, machine(kind), bag(kind, [5, 6, 7, 8, 9]), answer, traits)
    assert spans(trace) == {0: (0, 5), 1: (5, 11), 2: (11, 18), 3: (0, 8), 4: (8, 17)}


def test_a_queue_of_a_shared_node_goes_on_as_far_as_there_is_room():
    """Of 4 cores: 3 and 1 start together, 2 behind them wait for both, 1 behind those waits, too."""
    tasks = make_tasks([100.0, 200.0, 50.0, 50.0], width=1, demand=[[3], [1], [4], [1]])
    answer = at_times({0: [Assign(k, 0) for k in range(4)]})
    trace = played("shared", machine("shared", 1), tasks, answer, Traits(trigger="event"))
    assert spans(trace) == {0: (0, 10), 1: (0, 20), 2: (20, 25), 3: (25, 30)}


@pytest.mark.parametrize("kind", KINDS)
def test_the_common_queue_of_a_plan(kind):
    """Any host takes the next one: 9 and 2 s first, then 4 and 3 s on the second host."""
    trace = played(kind, machine(kind), bag(kind, [9, 2, 4, 3]), at_times({0: [Plan(np.arange(4), None)]}))
    assert spans(trace) == {0: (0, 9), 1: (0, 2), 2: (2, 6), 3: (6, 9)}


def test_the_common_queue_keeps_to_partitions():
    """Task 0 may run on host 1 alone, and waits there for its turn behind task 1, with host 0 free."""
    hosts = machine("shared").hosts
    pools = (Partition("second", (1,)), Partition("all", (0, 1)))
    platform = Platform(hosts, (Cluster("c0", (0, 1)),), partitions=pools)
    tasks = make_tasks([50.0, 50.0], width=1, demand=[[4]] * 2, partition=[0, 1])
    answer = at_times({0: [Allocate(1, [1]), Plan(np.array([0]), None)]})
    trace = played("shared", platform, tasks, answer)
    assert spans(trace) == {0: (5, 10), 1: (0, 5)}
    assert trace.host_ids.tolist() == [1, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_copies_of_which_the_first_ends_all(kind):
    """A copy from 2 s on is cancelled when the first ends at 8 s; what is queued behind it starts."""
    answer = at_times({0: [Assign(0, 0)], 2: [Allocate(0, [1]), Assign(1, 1)]})
    trace = played(kind, machine(kind), bag(kind, [8, 3], [0, 2]), answer)
    assert sorted(trace.executions[["task", "host", "start", "end", "outcome"]].tolist()) == [
        (0, 0, 0.0, 8.0, 0),
        (0, 1, 2.0, 8.0, 1),
        (1, 1, 8.0, 11.0, 0),
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("requeue", "ends"), [(False, {1: (3, 7)}), (True, {0: (7, 17), 1: (3, 7)})])
def test_a_running_task_is_killed_or_waits_again(kind, requeue, ends):
    """Task 0 of 10 s loses its host at 3 s to task 1 of 4 s."""
    traits = Traits(trigger="event", parallel=True, shares=True, may_cancel=True)

    def answer(state):
        if state.now == 3 and len(state.running):
            return [Cancel(0, requeue=requeue)]
        wait = [task for task in (1, 0) if task in state.mappable and len(state.idle_cores())]
        return [Allocate(wait[0], [0])] if wait else []

    trace = played(kind, machine(kind, 1), bag(kind, [10, 4], [0, 3]), answer, traits)
    finished = {task: span for task, span in spans(trace).items() if not np.isnan(span[1])}
    assert {task: end for task, (_, end) in finished.items()} == {task: end for task, (_, end) in ends.items()}


def dependencies(*rows) -> Dependencies:
    """Return pairs (task, other, kind, delay [s])."""
    task, on, kind, delay_s = zip(*rows, strict=True)
    return Dependencies(np.array(task), np.array(on), np.array(kind), np.array(delay_s, dtype=float))


DIAMOND = dependencies((1, 0, After.SUCCESS, 0), (2, 0, After.SUCCESS, 4), (3, 1, After.END, 0), (3, 2, After.END, 0))


@pytest.mark.parametrize("kind", KINDS)
def test_blocked_tasks_are_seen_and_may_be_queued_before_they_are_free(kind):
    """A diamond of 10, 5, 6, 2 s, all queued at once on two hosts: 0, 10, 14 and 20 s."""
    seen = []

    def answer(state):
        seen.append((state.now, state.blocked.tolist(), state.mappable.tolist()))
        if state.now:
            return []
        assert state.tasks.dependencies is not None
        assert list(zip(state.tasks.dependencies.task, state.tasks.dependencies.on, strict=True))[:1] == [(1, 0)]
        return [Assign(0, 0), Assign(1, 0), Assign(3, 0), Assign(2, 1)]

    tasks = bag(kind, [10, 5, 6, 2], dependencies=DIAMOND)
    trace = played(kind, machine(kind), tasks, answer)
    assert spans(trace) == {0: (0, 10), 1: (10, 15), 2: (14, 20), 3: (20, 22)}
    assert seen[0] == (0.0, [1, 2, 3], [0])


@pytest.mark.parametrize("kind", KINDS)
def test_blocked_tasks_may_be_planned(kind):
    """By a plan of queues, by a common queue, and as place-holders, of which the early one goes on waiting."""
    tasks = bag(kind, [10, 5, 6, 2], dependencies=DIAMOND)
    queues = at_times({0: [plan((0, 0), (2, 0), (1, 1), (3, 1))]})
    assert spans(played(kind, machine(kind), tasks, queues)) == {0: (0, 10), 1: (10, 15), 2: (14, 20), 3: (20, 22)}
    common = at_times({0: [Plan(np.array([3, 2, 1, 0]), None)]})
    assert spans(played(kind, machine(kind), tasks, common)) == {0: (0, 10), 1: (10, 15), 2: (14, 20), 3: (20, 22)}
    starts = np.array([0.0, 10.0, 11.0])
    places = Plan(np.array([0, 1, 2]), np.array([0, 0, 1]), None, np.arange(4), starts)
    later = {14: [Allocate(2, [1])], 20: [Allocate(3, [0])]}
    trace = played(kind, machine(kind), tasks, at_times({0: [places], 10: [Allocate(1, [0])], **later}))
    assert spans(trace) == {0: (0, 10), 1: (10, 15), 2: (14, 20), 3: (20, 22)}


@pytest.mark.parametrize("kind", KINDS)
def test_what_waits_for_what_fails_is_rejected_out_of_its_queue(kind):
    """Task 1 waits for the failure of task 0, which ends well; task 2 behind it in the queue goes on."""
    tasks = bag(kind, [10, 5, 6], dependencies=dependencies((1, 0, After.FAILURE, 0)))
    trace = played(kind, machine(kind), tasks, at_times({0: [Assign(0, 0), Assign(1, 0), Assign(2, 0)]}))
    assert np.isnan(trace.start_time_s[1])
    assert trace.start_time_s[[0, 2]].tolist() == [0, 10]


@pytest.mark.parametrize("kind", KINDS)
def test_a_failure_lets_others_start_after_its_delay(kind):
    """Task 0 is dropped at once; task 1 waits for its failure and 3 s more."""
    tasks = bag(kind, [10, 5], dependencies=dependencies((1, 0, After.FAILURE, 3)))
    trace = played(kind, machine(kind), tasks, at_times({0: [Drop(0), Assign(1, 0)]}))
    assert spans(trace)[1] == (3, 8)
    assert np.isnan(trace.start_time_s[0])


@pytest.mark.parametrize("kind", KINDS)
def test_input_files_come_before_a_task_computes(kind):
    """100 bytes at 10 byte/s to the cluster: the host is taken at 0 s, and computes from 10 s on."""
    size = {"serial": 1, "whole": 1, "shared": 4}[kind]
    hosts = tuple(Host(f"n{k}", NODE, cores=size) for k in range(2))
    partition = (Partition("all", (0, 1)),) if kind == "shared" else ()
    platform = Platform(hosts, (Cluster("c0", (0, 1), bandwidth=10.0),), partitions=partition)
    files = DataFiles(("f",), np.array([100.0]), ((),))
    tasks = bag(kind, [5, 5], input_files=[[0], []], files=files)
    answer = at_times({0: [Allocate(0, [0]), Allocate(1, [1])]})
    assert spans(played(kind, platform, tasks, answer)) == {0: (10, 15), 1: (0, 5)}


def test_power_of_shared_nodes_by_their_cores():
    """NODE draws 5 W idle, 7 W at the least load and 20 W at full load: 1 of 4 cores 10.25 W, 3 of 4 16.75 W."""
    seen = []

    def answer(state):
        seen.append((state.now, state.power.draw_w))
        return {0: [Allocate(0, [0])], 2: [Allocate(1, [0])]}.get(state.now, [])

    tasks = make_tasks([100.0, 30.0], [0, 2], width=1, demand=[[1], [2]])
    played("shared", machine("shared"), tasks, answer, power_cap_w=100.0)
    assert seen == [(0.0, 10.0), (2.0, 10.25 + 5), (5.0, 10.25 + 5)]


def test_a_cap_on_power_holds_for_shared_nodes():
    """Two jobs of two cores on one node draw 20 W, and 5 W the other node."""
    tasks = make_tasks([100.0, 100.0], width=1, demand=[[2], [2]])
    answer = at_times({0: [Allocate(0, [0]), Allocate(1, [0])]})
    played("shared", machine("shared"), tasks, answer, power_cap_w=25.0)
    with pytest.raises(InvalidDecision, match=r"25 W, and the cap .* 24.9 W"):
        played("shared", machine("shared"), tasks, answer, power_cap_w=24.9)


def test_a_budget_holds_for_shared_nodes():
    """One core of four for 10 s counts 20 W / 4 less its share of 5 W idle: 37.5 J; idle 2 x 5 W for 20 s."""
    tasks = make_tasks([100.0, 100.0], width=1, demand=[[1], [3]])
    traits = Traits(trigger="event", parallel=True, shares=True, respects_budget=True)
    seen = []

    def answer(state):
        seen.append((state.now, state.energy.committed_j, state.energy.consumed_j))
        return [Allocate(int(task), [0]) for task in state.mappable]

    budget = EnergyBudget(energy_j=350.01, period_s=20.0)
    trace = played("shared", machine("shared"), tasks, answer, traits, budget=budget)
    assert trace.periods["consumed_j"][0] == pytest.approx(10 * (20 + 5))
    assert seen[0] == (0.0, 0.0, 0.0)
    tight = EnergyBudget(energy_j=349.0, period_s=20.0)
    with pytest.raises(InvalidDecision, match=r"Allocate would draw 112.5 J"):
        played("shared", machine("shared"), tasks, answer, traits, budget=tight)


class OneByOne(Scheduler):
    """Each waiting task takes the first hosts that have room for its parts."""

    traits = Traits(trigger="event", parallel=True, shares=True)

    def schedule(self, state):
        left = state.free_cores.copy()
        for task in state.mappable.tolist():
            parts = state.tasks.parts
            need, width = parts.demand[task, 0], parts.width[task]
            room = np.repeat(np.arange(len(left)), left // need)
            if len(room) >= width:
                np.subtract.at(left, room[:width], need)
                yield Allocate(task, room[:width])


def random_case(rng, kind: str):
    """Return a platform and tasks of this kind, some of which wait for others."""
    size, n = int(rng.integers(2, 5)), int(rng.integers(5, 25))
    submit = np.sort(rng.integers(0, 60, n)).astype(float)
    times = rng.integers(1, 40, n).astype(float)
    pairs = [(t, int(rng.integers(0, t)), int(rng.integers(0, 3)), float(rng.integers(0, 5))) for t in range(2, n, 3)]
    waits = dependencies(*pairs)
    if kind == "serial":
        return nodes(size), make_tasks(times * 10, submit, dependencies=waits)
    if kind == "whole":
        return nodes(size), make_tasks(times * 10, submit, width=rng.integers(1, size + 1, n), dependencies=waits)
    demand = rng.integers(1, 5, (n, 1))
    width = rng.integers(1, size + 1, n)
    tasks = make_tasks(times * 10, submit, width=width, demand=demand, anywhere=True, dependencies=waits)
    return machine("shared", size), tasks


@needs_simgrid
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scheduler", ["fcfs", "easy_backfilling", "conservative_backfilling"])
def test_queues_serve_all_kinds_alike_on_both_drivers(kind, seed, scheduler):
    """Dependent tasks under the textbook queues: the same records, and the plugin's joules."""
    platform, tasks = random_case(np.random.default_rng(seed), kind)
    both = [run(Scenario(platform, tasks, scheduler, driver=driver)) for driver in ("reference", "simgrid")]
    assert trace_differences(both[0].trace, both[1].trace) == []
    assert metered_differences(both[1]) == []


@needs_simgrid
@pytest.mark.parametrize("scheduler", ["wq", "mct", "min_min", "max_min", "sufferage", "olb", "dynamic_fpltf", "wqr"])
def test_a_diamond_of_serial_tasks_under_bag_schedulers(scheduler):
    """The four tasks start when the others let them, whoever maps them; both drivers agree."""
    hosts = tuple(Host(f"h{k}", (PState(speed, 5.0, 7.0, 20.0),)) for k, speed in enumerate((10.0, 20.0)))
    tasks = make_tasks([100.0, 50.0, 60.0, 20.0], dependencies=DIAMOND)
    both = [run(Scenario(Platform(hosts), tasks, scheduler, driver=driver)) for driver in ("reference", "simgrid")]
    start, finish = both[0].trace.start_time_s, both[0].trace.finish_time_s
    assert start[1] >= finish[0]
    assert start[2] >= finish[0] + 4
    assert start[3] >= max(finish[1], finish[2])
    assert trace_differences(both[0].trace, both[1].trace) == []
    assert metered_differences(both[1]) == []


@needs_simgrid
@pytest.mark.parametrize("seed", range(4))
def test_serial_tasks_share_hosts_of_several_cores_under_queues(seed):
    """Tasks of one core on hosts of four: as many run at once as there are cores, on both drivers."""
    rng = np.random.default_rng(seed)
    n, submit = 30, np.sort(rng.integers(0, 30, 30)).astype(float)
    tasks = make_tasks(rng.integers(1, 40, n) * 10.0, submit)
    platform = Platform(tuple(Host(f"n{k}", NODE, cores=4) for k in range(2)), (Cluster("c0", (0, 1)),))
    both = [run(Scenario(platform, tasks, OneByOne(), driver=driver)) for driver in ("reference", "simgrid")]
    assert trace_differences(both[0].trace, both[1].trace) == []
    assert metered_differences(both[1]) == []
    trace = both[0].trace
    for time in trace.executions["start"]:
        at_once = (trace.executions["start"] <= time) & (trace.executions["end"] > time)
        assert np.count_nonzero(at_once) <= 8


def test_mct_maps_jobs_that_share_nodes():
    """A policy that names one host for each task: what finds no room there waits in the host's queue."""
    tasks = make_tasks([100.0, 80.0, 30.0], width=1, demand=[[3], [2], [4]])
    trace = run(Scenario(machine("shared", 1), tasks, MCT(), driver="reference")).trace
    assert spans(trace) == {0: (0, 10), 1: (10, 18), 2: (18, 21)}


def with_speed(platform: Platform) -> Platform:
    """Return the platform with host n0 at half of its speed from 5 to 15 s of every 20 s."""
    speed = Profile((0.0, 5.0, 15.0), (1.0, 0.5, 1.0), 5.0)
    return replace(platform, profiles=HostProfiles(speeds=(("n0", speed),)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_computes_at_the_speed_of_its_slowest_node(kind):
    """10 s of work on n0: 5 s whole, 10 s half, so it ends at 15 s; the same on n1 ends at 10 s."""
    trace = played(
        kind, with_speed(machine(kind)), bag(kind, [10, 10]), at_times({0: [Allocate(0, [0]), Allocate(1, [1])]})
    )
    assert spans(trace) == {0: (0, 15), 1: (0, 10)}


@needs_simgrid
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_speeds_that_change_agree_on_both_drivers(kind, seed):
    """Times and joules of jobs beside each other, some of which reach over the slow node."""
    platform, tasks = random_case(np.random.default_rng(seed), kind)
    slow = with_speed(platform)
    both = [run(Scenario(slow, tasks, "fcfs", driver=driver)) for driver in ("reference", "simgrid")]
    assert trace_differences(both[0].trace, both[1].trace) == []
    assert metered_differences(both[1]) == []


@needs_simgrid
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_measured_loads_agree_on_both_drivers(kind, seed):
    """Jobs that draw shares of their cores' range of power: SimGrid's joules are the model's."""
    rng = np.random.default_rng(seed)
    platform, tasks = random_case(rng, kind)
    times = LoggedRunTimes(platform, tasks.flops / 10.0)
    times.load = rng.uniform(0.1, 1.0, len(tasks))
    for scheduler in ("easy_backfilling", *(["wq"] if kind == "serial" else [])):
        both = [run(Scenario(platform, tasks, scheduler, driver=d, run_times=times)) for d in ("reference", "simgrid")]
        assert trace_differences(both[0].trace, both[1].trace) == []
        assert metered_differences(both[1]) == []


def test_a_measured_load_counts_by_the_cores_that_it_has():
    """One of four cores at half load on a node of 5, 7 and 20 W: 7 + 13/8 W for 10 s, then 5 W to 20 s."""
    platform = machine("shared", 1)
    tasks = make_tasks([100.0, 200.0], width=1, demand=[[1], [2]])
    times = LoggedRunTimes(platform, [10.0, 20.0])
    times.load = np.array([0.5, 0.25])
    result = run(Scenario(platform, tasks, "fcfs", driver="reference", run_times=times))
    load = (1 * 0.5 + 2 * 0.25) / 4, 2 * 0.25 / 4
    assert result.summary()["energy_model_j"] == pytest.approx(10 * (7 + 13 * load[0]) + 10 * (7 + 13 * load[1]))


@needs_simgrid
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", ["budget", "cap", "files", "reservations"])
def test_rules_hold_alike_on_both_drivers(kind, rule):
    """A budget that puts tasks off, a cap that nothing exceeds, input files, starts to come."""
    size = 1 if kind != "shared" else 4
    more, files = {}, {}
    if rule == "budget":
        more = {"budget": EnergyBudget(energy_j=500.0, period_s=20.0)}
    elif rule == "cap":
        more = {"power_cap_w": 60.0}
    elif rule == "files":
        files = {
            "files": DataFiles(("f", "g"), np.array([100.0, 50.0]), ((), ("c0",))),
            "input_files": [[0], [1], [0, 1], [], [0]],
        }
    hosts = tuple(Host(f"n{k}", NODE, cores=size) for k in range(2))
    partition = (Partition("all", (0, 1)),) if kind == "shared" else ()
    platform = Platform(hosts, (Cluster("c0", (0, 1), bandwidth=10.0),), partitions=partition)
    tasks = bag(kind, [10, 7, 5, 8, 6], [0, 0, 3, 4, 30], **files)
    policy = Later() if rule == "reservations" else "fcfs"
    both = [run(Scenario(platform, tasks, policy, driver=driver, **more)) for driver in ("reference", "simgrid")]
    assert trace_differences(both[0].trace, both[1].trace) == []
    assert metered_differences(both[1]) == []
    assert (both[0].trace.final_state == TaskState.FINISHED).all()


class Later(Scheduler):
    """Reserves the whole first host for each task, one after the other, from 5 s after its submission on."""

    traits = Traits(trigger="event", parallel=True, shares=True, reserves=False)

    def prepare(self, system, rng):
        self.free_from_ = 0.0

    def schedule(self, state):
        for task in state.mappable.tolist():
            start = max(self.free_from_, state.now + 5)
            self.free_from_ = start + state.estimates.run_time(task, 0, 0)
            yield Allocate(task, [0], start=start)
