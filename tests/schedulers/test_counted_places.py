"""Conservative backfilling on equal nodes counts nodes, however they are described."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import rigid_oracles
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import Host, Platform, PState, Scenario, make_tasks, run
from gridsched.model.platform import Cluster, Partition
from gridsched.model.run_times import LoggedRunTimes
from gridsched.schedulers.parallel.counted_slots import Pools, equal_places

NODES = 8
ALL = tuple(range(NODES))
STATE = PState(1.0, 5.0, 9.0, 40.0)
YEARS = "1e8:1.1e8"


def machine(n: int = NODES, cores: int = 1, *partitions: str) -> Platform:
    """Return a cluster of equal nodes, with partitions of all of them."""
    hosts = tuple(Host(f"n{k}", (STATE,), cores=cores) for k in range(n))
    whole = tuple(range(n))
    return Platform(hosts, (Cluster("c", whole),), partitions=tuple(Partition(name, whole) for name in partitions))


def whole_nodes(width, **others):
    """Return fields of tasks that have nodes whole."""
    return {"width": width, **others}


def parts(width, cores=1, anywhere=False, **others):
    """Return fields of tasks of parts of so many cores."""
    demand = np.broadcast_to(cores, len(width))[:, None]
    return {"width": width, "demand": demand, "anywhere": np.full(len(width), anywhere), **others}


#: The machine, what tasks have beside times and width, and options of the run, for each description of eight places.
DESCRIPTIONS = {
    "whole nodes": (machine(), whole_nodes, {}),
    "maintenance years later": (machine(), whole_nodes, {"maintenance": (YEARS,)}),
    "maintenance of some": (machine(), whole_nodes, {"maintenance": (f"n[0-2]={YEARS}",)}),
    "another placement": (machine(), whole_nodes, {"placement": "spread"}),
    "a partition of whole nodes": (machine(NODES, 1, "all"), whole_nodes, {}),
    "cores": (machine(), parts, {}),
    "cores of a partition": (machine(NODES, 1, "all"), parts, {}),
    "cores anywhere": (machine(NODES, 1, "all"), lambda w: parts(w, anywhere=True), {}),
    "cores, maintenance": (machine(NODES, 1, "all"), parts, {"maintenance": (f"n[0-2]={YEARS}",)}),
    "cores of two nodes": (machine(2, 4, "all"), lambda w: parts(w, anywhere=True), {}),
    "most cores of larger nodes, two partitions of all": (
        machine(NODES, 4, "short", "long"),
        lambda w: parts(w, 3 + np.arange(len(w)) % 2, partition=np.arange(len(w)) % 2),
        {},
    ),
}

JOBS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 30), st.integers(1, NODES), st.integers(0, 20)),
    min_size=2,
    max_size=25,
)


def starts(description: str, jobs: list, scheduler: str = "conservative_backfilling") -> list[float]:
    """Return when each job starts; jobs are (submission, run time, width, estimate)."""
    platform, fields_of, options = DESCRIPTIONS[description]
    submit, run_time, width, estimate = map(np.array, zip(*jobs, strict=True))
    tasks = make_tasks(estimate, submit, requested_time_s=estimate, **fields_of(width))
    lasts = LoggedRunTimes(platform, run_time)
    trace = run(Scenario(platform, tasks, scheduler, driver="reference", run_times=lasts, **options)).trace
    return trace.start_time_s.tolist()


@pytest.mark.parametrize("description", DESCRIPTIONS)
@settings(max_examples=15, deadline=None)
@given(drawn=JOBS)
def test_equal_nodes_are_counted_however_they_are_described(description, drawn):
    """Starts are those of an oracle that counts processors, on random logs whose jobs end before their estimates."""
    jobs = [(float(s), float(r), w, float(r + more)) for s, r, w, more in sorted(drawn)]
    assert starts(description, jobs) == rigid_oracles.simulate(jobs, NODES, rigid_oracles.conservative)


def test_a_reservation_holds_no_node_by_hand():
    """Two nodes: reservations side by side take turns on both; on nodes of their own one would begin later.

    Job 1 has one node until 4, job 2 the other until 2. Job 3 (both, 4 to 6) is reserved, then job 4 (one, 4 s long)
    from 6 on, and job 5 (one, 2 s long) overtakes at 2 on either.
    """
    jobs = [(0, 4, 1, 4), (0, 2, 1, 2), (0, 2, 2, 2), (0, 4, 1, 4), (0, 2, 1, 2)]
    oracle = rigid_oracles.simulate(jobs, 2, rigid_oracles.conservative)
    assert oracle == [0, 0, 4, 6, 2]
    for platform, fields_of in ((machine(2), whole_nodes), (machine(2, 1, "all"), parts), (machine(1, 2), parts)):
        submit, estimate, width, _ = map(np.array, zip(*jobs, strict=True))
        given = fields_of(width) if len(platform) == 2 else parts(width, anywhere=True)
        tasks = make_tasks(estimate, submit, requested_time_s=estimate, **given)
        trace = run(Scenario(platform, tasks, "conservative_backfilling", driver="reference")).trace
        assert trace.start_time_s.tolist() == oracle


def test_partitions_that_share_no_node_are_counted_each_by_itself():
    """Two partitions of four nodes, jobs in turn in each: both are as two machines."""
    rng = np.random.default_rng(7)
    times, widths = rng.integers(1, 5, (2, 40)).tolist()
    jobs = [(float(k), 5.0 * time, width, 5.0 * time) for k, time, width in zip(range(40), times, widths, strict=True)]
    halves = (Partition("a", ALL[:4]), Partition("b", ALL[4:]))
    platform = replace(machine(), partitions=halves)
    submit, estimate, width, _ = map(np.array, zip(*jobs, strict=True))
    fields_of = parts(width, partition=np.arange(40) % 2)
    tasks = make_tasks(estimate, submit, requested_time_s=estimate, **fields_of)
    found = run(Scenario(platform, tasks, "conservative_backfilling", driver="reference")).trace.start_time_s
    for k in (0, 1):
        assert found[k::2].tolist() == rigid_oracles.simulate(jobs[k::2], 4, rigid_oracles.conservative)


def test_where_nodes_matter():
    """Pools that overlap are not apart; places depend on the jobs where two sizes share a node, or memory is short."""
    members = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 0, 0]], dtype=np.bool_)
    pools = Pools(members)
    assert pools.of_partition.tolist() == [0, 1, 1, 2]
    assert pools.apart.tolist() == [False, True, False]
    nodes = np.array([[4, 64], [8, 64]])
    assert equal_places(nodes, np.array([[1, 8]]), lie_apart=False).tolist() == [4, 8]
    assert equal_places(nodes, np.array([[1, 16]]), lie_apart=False) is None
    assert equal_places(nodes, np.array([[1, 8], [2, 8]]), lie_apart=False) is None
    assert equal_places(nodes, np.array([[1, 8]]), lie_apart=True) is None
