"""Jobs that share nodes: every start, node and core as by plain loops, and by hand."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
import shared_oracles as oracle

from gridsched.engine import Controller, reference
from gridsched.errors import InputError
from gridsched.model.estimates import RequestedTimes
from gridsched.model.platform import Cluster, Host, Partition, Platform, PState
from gridsched.model.rules import Rules
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.shared_nodes import PLACES
from gridsched.model.system import System
from gridsched.model.tasks import make_tasks
from gridsched.policy.base import Scheduler
from gridsched.policy.registry import make_scheduler

RESOURCES = ("cores", "memory_mb", "gpu")


def machine(nodes, partitions) -> Platform:
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


def play(jobs, nodes, partitions, scheduler, place="pack", users=None):
    """Run jobs as the oracle has them on the reference driver, every instant validated."""
    submit, run, estimate, partition, parts, anywhere, need = zip(*jobs, strict=True)
    platform = machine(nodes, partitions)
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
    system = System(platform, RequestedTimes(platform, tasks), rules=Rules(place=place))
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


@pytest.mark.parametrize("scheduler", list(oracle.RULES))
def test_random_cases_are_as_by_plain_loops(scheduler):
    """667 cases of two partitions under each of three rules: starts, nodes and cores are equal."""
    for seed in range(667):
        case, place = random_case(seed), PLACES[seed % 3]
        jobs = case[0]
        starts, on = oracle.simulate(*case, oracle.RULES[scheduler], place)
        expected = [
            (start, {n: nodes.count(n) * job[oracle.NEED][0] for n in nodes})
            for job, start, nodes in zip(jobs, starts, on, strict=True)
        ]
        assert places(play(*case, scheduler, place)) == expected, (seed, place)


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


def test_a_policy_of_whole_nodes_is_refused():
    """The example that makes room counts nodes; where jobs share them it is no answer."""
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "preempt_by_qos.py"))["PreemptByQos"]
    with pytest.raises(InputError, match="'shares'"):
        play([queued(0, 10, 0, 1, 8)], ALONE, [([0], 0)], example())
