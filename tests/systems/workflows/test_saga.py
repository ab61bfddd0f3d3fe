"""SAGA's schedulers on random graphs and networks give the makespans of ours, where the rules are one.

HEFT and MET, whose choice does not depend on the hash seed. SAGA's ranks count transfers within a machine, which
take no time, among those that they average; here they are asked for the average over machines that differ. Its CPOP
counts a task's own time in the downward rank, its Min-Min and Max-Min send data when they are made, and its HBMCT
balances otherwise: they are not oracles of ours.
"""

from __future__ import annotations

import numpy as np
import pytest
from workflow_examples import dependencies

from gridsched import Host, Platform, PState, make_tasks
from gridsched.model.network import Network
from gridsched.policy.registry import make_scheduler
from gridsched.scenario import LoadedScenario
from gridsched.sim.child import simulate_reference

saga = pytest.importorskip("saga", reason="SAGA (anrg-saga) is not installed")
GRAPHS = 200
NAMES = {"heft": "HeftScheduler", "ready_met": "METScheduler"}


class Others:
    """A network without its ways within a machine."""

    def __init__(self, network) -> None:
        self.nodes = network.nodes
        self.edges = [edge for edge in network.edges if edge.source != edge.target]


@pytest.fixture
def oracles(monkeypatch):
    """Return SAGA's schedulers, whose ranks average over machines that differ."""
    from saga.schedulers import heft

    rank = heft.upward_rank
    monkeypatch.setattr(heft, "upward_rank", lambda network, graph: rank(Others(network), graph))
    return {id: getattr(saga.schedulers, name)() for id, name in NAMES.items()}


def graph(seed: int):
    """Return work, edges, speeds and bandwidths; one task begins, and one ends."""
    rng = np.random.default_rng(seed)
    n, hosts = int(rng.integers(5, 16)), int(rng.integers(2, 5))
    edges = {(int(rng.integers(0, task)), task): float(rng.uniform(1, 100)) for task in range(1, n) for _ in range(2)}
    edges |= {(a, n - 1): float(rng.uniform(1, 100)) for a in range(n - 1) if not any(a == b for b, _ in edges)}
    bandwidth = rng.uniform(0.5, 10, (hosts, hosts))
    return rng.uniform(10, 200, n).tolist(), edges, rng.uniform(1, 5, hosts).tolist(), bandwidth + bandwidth.T


def makespan(id: str, flops, edges, speeds, bandwidth) -> float:
    """Return ours."""
    tasks = make_tasks(flops, dependencies=dependencies([(*pair, size) for pair, size in edges.items()]))
    platform = Platform(tuple(Host(f"h{k}", (PState(speed, 1.0, 2.0, 2.0),)) for k, speed in enumerate(speeds)))
    network = Network(np.zeros_like(bandwidth), bandwidth)
    scenario = LoadedScenario(platform, tasks, id, driver="reference", between_hosts=network)
    return simulate_reference(scenario, make_scheduler(id)).executions["end"].max()


@pytest.mark.parametrize("id", NAMES)
def test_makespans_are_those_of_saga(oracles, id):
    """On 200 random graphs."""
    for seed in range(GRAPHS):
        flops, edges, speeds, bandwidth = graph(seed)
        h = range(len(speeds))
        routes = [(f"h{a}", f"h{b}", bandwidth[a, b] if a != b else 1e15) for a in h for b in h if a <= b]
        network = saga.Network.create([(f"h{k}", speed) for k, speed in enumerate(speeds)], routes)
        tasks = [(f"t{k:02d}", work) for k, work in enumerate(flops)]
        there = saga.TaskGraph.create(tasks, [(f"t{a:02d}", f"t{b:02d}", size) for (a, b), size in edges.items()])
        expected = oracles[id].schedule(network, there).makespan
        assert makespan(id, flops, edges, speeds, bandwidth) == pytest.approx(expected, rel=1e-6), seed
