"""The compiled batch heuristics decide exactly as the plain loops do."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest
from batch_oracles import Instance, greedily, in_passes, largest_first
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_cases import pairs, platform_of, prepared, state_of, system_of

from gridsched.loop_library import KERNELS
from gridsched.model.data_files import DataFiles
from gridsched.model.platform import Cluster, Platform
from gridsched.model.task_types import TypedEstimates
from gridsched.model.tasks import make_tasks
from gridsched.policy.registry import make_scheduler
from gridsched.schedulers.bag.batch import DynamicFPLTF, MaxMin, MinMin, Sufferage, XSufferage

INF = float("inf")
#: Ready times [s]: many equal ones, and neighbors that one addition rounds to equal sums.
AFTER_3, BEFORE_4 = float(np.nextafter(3.0, 4.0)), float(np.nextafter(4.0, 3.0))
READY = (3.0, 3.0, 4.0, 5.5, 7.0, AFTER_3, BEFORE_4, 1e16)


def random_case(draw: random.Random):
    """Return (system, tasks, state, instance) of a small random mapping event full of ties."""
    n_hosts, n_tasks = draw.randint(1, 6), draw.randint(1, 9)
    speeds = [draw.choice((1, 1, 2, 3, 4, 7)) for _ in range(n_hosts)]
    platform = platform_of(speeds, [1.0] * n_hosts, cores=[draw.choice((1, 1, 2, 3)) for _ in range(n_hosts)])
    cluster_of = [draw.randint(0, draw.randint(0, 2)) for _ in range(n_hosts)]
    names = sorted(set(cluster_of))
    cluster_of = [names.index(c) for c in cluster_of]
    clusters = tuple(
        Cluster(
            f"c{c}",
            tuple(h for h in range(n_hosts) if cluster_of[h] == c),
            draw.choice((1.0, 2.0, INF)),
            draw.choice((0.0, 0.5)),
        )
        for c in range(len(names))
    )
    platform = Platform(platform.hosts, clusters)
    flops = [draw.choice((1, 2, 2, 3, 4, 6, 12, 0.1, 0.3)) for _ in range(n_tasks)]
    files = needs = None
    if draw.random() < 0.4:
        n_files = draw.randint(1, 3)
        size = [float(draw.choice((1, 2, 4))) for _ in range(n_files)]
        files = DataFiles(tuple("fgh"[:n_files]), np.array(size), (("c0",),) * n_files)
        needs = [draw.sample(range(n_files), draw.randint(0, n_files)) for _ in flops]
    tasks = make_tasks(flops, input_files=needs, files=files)
    system = system_of(platform, tasks, random_estimates(draw, n_hosts, n_tasks))
    return system, tasks, *random_event(draw, system, tasks)


def random_estimates(draw: random.Random, n_hosts: int, n_tasks: int) -> TypedEstimates | None:
    """Return estimates by type with infeasible pairs, or None for flops over speed."""
    if draw.random() < 0.6:
        return None
    etc = [[[draw.choice((1, 2, 2, 3, 5, INF))] for _ in range(3)] for _ in range(3)]
    kinds = [[draw.randint(0, 2) for _ in range(n)] for n in (n_tasks, n_hosts)]
    return TypedEstimates(etc, np.ones((3, 3, 1)), *kinds)


def random_event(draw: random.Random, system, tasks):
    """Return the state of a moment of the run, and the same as a plain instance."""
    cores, now = system.platform.cores.tolist(), 3.0
    ready = [sorted(draw.choice(READY) for _ in range(c)) for c in cores]
    for h in range(len(cores)):
        if draw.random() < 0.1:
            ready[h] = [INF] * cores[h]
    table = np.array([row + [INF] * (max(cores) - len(row)) for row in ready])
    waiting = sorted(draw.sample(range(len(tasks)), draw.randint(1, len(tasks))))
    every = np.arange(len(cores))
    case = Instance(
        waiting,
        {task: system.estimates.etc([task], every)[0].tolist() for task in waiting},
        ready,
        system.platform.cluster_of.tolist(),
        now,
    )
    if tasks.files is not None:
        clusters = system.platform.clusters
        case.needs = dict(enumerate(tasks.input_files))
        case.size = tasks.files.size_bytes.tolist()
        case.available = [[draw.choice((0.0, 4.0, INF)) for _ in clusters] for _ in case.size]
        case.uplink_free = [draw.choice((0.0, 4.5)) for _ in clusters]
        case.latency = [cluster.latency_s for cluster in clusters]
        case.bandwidth = [cluster.bandwidth for cluster in clusters]
    load = np.array([draw.choice((0.0, 0.0, 0.5, 0.25, 1.0)) for _ in cores])
    state = state_of(
        system,
        tasks,
        now=now,
        mappable=np.array(waiting),
        core_ready_time=table,
        background_load=load,
        file_available=np.array(case.available),
        uplink_free=np.array(case.uplink_free),
    )
    return state, case


def check(draw: random.Random, id: str, parameters: dict) -> None:
    """Let policy and plain loop decide the same random mapping event."""
    system, tasks, state, case = random_case(draw)
    decisions = prepared(make_scheduler(id, parameters), system).schedule(state)
    if id in ("min_min", "max_min"):
        case.needs = {}  # they take no notice of files
        expected = greedily(case, id)
    elif id == "dynamic_fpltf":
        case.needs = {}
        expected = largest_first(case, tasks.flops.tolist(), state.background_load.tolist())
    elif parameters["variant"] == "greedy":
        expected = greedily(case, "sufferage", id == "xsufferage")
    else:
        expected = in_passes(case, id == "xsufferage")
    assert pairs(decisions) == expected


policies = pytest.mark.parametrize(
    ("id", "parameters"),
    [
        ("sufferage", {"variant": "greedy"}),
        ("sufferage", {"variant": "pass"}),
        ("xsufferage", {"variant": "greedy"}),
        ("xsufferage", {"variant": "pass"}),
        ("min_min", {}),
        ("max_min", {}),
        ("dynamic_fpltf", {}),
    ],
)


@policies
@settings(max_examples=100, deadline=None)
@given(draw=st.randoms(use_true_random=False))
def test_equals_plain_loop(id, parameters, draw):
    """With files, several cores, infeasible pairs, hosts off and exact ties (hypothesis)."""
    check(draw, id, parameters)


@policies
def test_equals_plain_loop_on_many_seeds(id, parameters):
    """The same on 800 seeded cases, more evenly spread than hypothesis draws them."""
    draw = random.Random(5)
    for _ in range(800):
        check(draw, id, parameters)


def test_random_cases_contain_what_is_hard():
    """The cases draw exact ties, rounding ties, infeasible tasks, hosts off and transfers."""
    draw = random.Random(1)
    seen = dict.fromkeys(("tie", "rounding", "infeasible", "off", "transfer", "cores"), 0)
    for _ in range(300):
        _, _, _, case = random_case(draw)
        for task in case.tasks:
            ends = [(case.completion(task, h), case.ready[h][0]) for h in range(len(case.ready))]
            best = min(end for end, _ in ends)
            seen["infeasible"] += best == INF
            tied = [ready for end, ready in ends if end == best < INF]
            seen["tie"] += len(tied) > 1
            seen["rounding"] += any(tied[0] > ready for ready in tied)
            seen["transfer"] += any(case.data_ready(task, c)[1] for c in set(case.cluster_of))
        seen["off"] += any(row[0] == INF for row in case.ready)
        seen["cores"] += any(len(row) > 1 for row in case.ready)
    assert min(seen.values()) >= 20, seen


@pytest.mark.parametrize("policy", [Sufferage, MinMin, MaxMin, DynamicFPLTF, XSufferage])
def test_equal_completion_times_go_to_the_lowest_host(policy):
    """A host that is ready later wins by its id if the completion times round to equal numbers."""
    platform = platform_of([1, 1], [1.0, 1.0])
    tasks = make_tasks([4.0])
    system = system_of(platform, tasks)
    later = np.nextafter(1.0, 2.0)
    assert later + 4.0 == 1.0 + 4.0
    state = state_of(system, tasks, core_ready_time=np.array([[later], [1.0]]))
    assert pairs(prepared(policy(), system).schedule(state)) == [(0, 0)]


@pytest.mark.parametrize("n_levels", [9, 90])
@pytest.mark.parametrize("id", ["sufferage", "xsufferage", "min_min", "max_min"])
def test_larger_cases_equal_plain_loop(id, n_levels):
    """Sixty tasks on ninety hosts, few and many speed levels: the pruned search misses nothing."""
    rng = np.random.default_rng(n_levels)
    levels = np.arange(6000, 6000 + n_levels, dtype=float) * rng.uniform(1, 2, n_levels)
    speeds = rng.permutation(np.resize(levels, 90))
    platform = platform_of(speeds.tolist(), [1.0] * 90)
    clusters = tuple(Cluster(f"c{c}", tuple(range(c, 90, 4))) for c in range(4))
    platform = Platform(platform.hosts, clusters)
    tasks = make_tasks(rng.uniform(5e5, 1.5e6, 60))
    system = system_of(platform, tasks)
    ready = rng.uniform(0, 150, (90, 1))
    case = Instance(
        list(range(60)),
        dict(enumerate(system.estimates.etc(range(60), range(90)).tolist())),
        ready.tolist(),
        platform.cluster_of.tolist(),
    )
    decisions = prepared(make_scheduler(id), system).schedule(state_of(system, tasks, core_ready_time=ready))
    rule = id if id in ("min_min", "max_min") else "sufferage"
    assert pairs(decisions) == greedily(case, rule, id == "xsufferage")


def test_import_compiles_nothing_and_warm_up_compiles_what_policies_call():
    """Importing the policies compiles no kernel; after `warm_up` they find their signatures.

    A second process finds all in the cache that the first has filled.
    """
    program = """
import numpy as np
from gridsched.schedulers.bag.batch import DynamicFPLTF, MinMin, Sufferage, XSufferage
from gridsched.schedulers.kernels import batch, warm_up
kernels = (batch.map_greedily, batch.map_in_passes, batch.map_in_order)
assert not any(kernel.signatures for kernel in kernels)
warm_up()
assert all(len(kernel.signatures) == 1 for kernel in kernels)
from scheduler_cases import *
for policy in (Sufferage(), XSufferage(variant="pass"), MinMin(), DynamicFPLTF()):
    for platform, tasks in ((ex_a_platform(), ex_a_tasks()), (data_platform(), data_tasks())):
        system = system_of(platform, tasks)
        files = dict(file_available=np.array([[0.0, np.inf]]), uplink_free=np.zeros(2))
        assert prepared(policy, system).schedule(state_of(system, tasks, **files))
assert all(len(kernel.signatures) == 1 for kernel in kernels)
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels))
"""
    here = __file__.rpartition("/")[0]
    root = here.rpartition("/tests/")[0]
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=False,
            env={"PYTHONPATH": f"{root}:{here}", KERNELS: "numba"},
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "0\n"


def test_warm_up_leaves_alone_what_nobody_has_imported():
    """A work queue needs no compiled loop: not even the compiler is loaded for it."""
    program = """
import sys
from gridsched.schedulers.bag import baselines
from gridsched.schedulers.kernels import warm_up
warm_up()
assert "numba" not in sys.modules
import gridsched.schedulers.bag.batch
warm_up()
from gridsched.schedulers.kernels import batch
assert batch.map_greedily.signatures
assert "gridsched.systems.utility.kernels.two_stage" not in sys.modules
from gridsched.schedulers.parallel import backfilling
assert "gridsched.systems.utility.kernels.parallel_options" not in sys.modules
"""
    root = __file__.rpartition("/tests/")[0]
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": root, KERNELS: "numba"},
    )
    assert (done.returncode, done.stderr) == (0, "")
