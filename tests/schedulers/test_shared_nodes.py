"""Jobs that share nodes: every start, node and core as by plain loops, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import shared_oracles as oracle

from gridsched.engine import Controller, reference
from gridsched.model.estimates import RequestedTimes
from gridsched.model.platform import Cluster, Host, Partition, Platform, PState
from gridsched.model.rules import Rules
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.shared_nodes import PLACES
from gridsched.model.system import System
from gridsched.model.tasks import make_tasks
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


def play(jobs, nodes, partitions, scheduler, place="pack"):
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
    )
    system = System(platform, RequestedTimes(platform, tasks), rules=Rules(place=place))
    controller = Controller(system, tasks, make_scheduler(scheduler), rng=np.random.default_rng(0))
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
    """2,000 cases of two partitions in all: starts, nodes and cores are equal."""
    for seed in range(667):
        case, place = random_case(seed), PLACES[seed % 3]
        jobs = case[0]
        starts, on = oracle.simulate(*case, oracle.RULES[scheduler], place)
        expected = [
            (start, {n: nodes.count(n) * job[oracle.NEED][0] for n in nodes})
            for job, start, nodes in zip(jobs, starts, on, strict=True)
        ]
        assert places(play(*case, scheduler, place)) == expected, (seed, place)
