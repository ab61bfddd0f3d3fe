"""Dynamic lists against their documented rules in plain Python, start by start and host by host."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ready_oracle import Grid, Job, Lists

from gridsched import Host, Platform, PState, make_tasks
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.network import Network
from gridsched.policy.registry import make_scheduler
from gridsched.scenario import LoadedScenario
from gridsched.sim.child import simulate_reference
from gridsched.sim.client import simulate

RULES = ["mct", "met", "olb", "min_min", "max_min", "sufferage"]
N_HOSTS = 4


def drawn(seed: int, n_tasks: int = 60):
    """Return works, speeds, edges (task, on, bytes, which) and the grid of a random graph of a CCR of 1 to 20."""
    rng = np.random.default_rng(seed)
    flops, speeds = rng.uniform(1, 20, n_tasks), rng.uniform(0.5, 2, N_HOSTS)
    latency_s, bandwidth = rng.uniform(0, 1, (N_HOSTS, N_HOSTS)), rng.uniform(0.5, 2, (N_HOSTS, N_HOSTS))
    mean_bytes = rng.uniform(1, 20) * flops.mean()
    of_all = rng.uniform(0, 2 * mean_bytes, n_tasks)
    is_shared = rng.random() < 0.5  # one file of each maker for all its readers
    edges = []
    for task in range(1, n_tasks):
        for on in sorted({int(each) for each in rng.integers(max(0, task - 15), task, rng.integers(0, 4))}):
            own = rng.uniform(0, 2 * mean_bytes) * (rng.random() < 0.9)
            edges.append((task, on, float(of_all[on] if is_shared else own), 0 if is_shared else -1))
    return flops, speeds, edges, Grid([1 + seed % 2] * N_HOSTS, latency_s.tolist(), bandwidth.tolist())


def by_oracle(rule, flops, speeds, edges, grid):
    """Return (host, start) of each task by the oracle."""
    reads: dict[int, list] = {}
    for k, (task, on, size, which) in enumerate(edges):
        reads.setdefault(task, []).append((on, which if which >= 0 else -1 - k, size))
    times = (flops[:, None] / speeds).tolist()
    return Lists(grid, [Job(row, reads.get(k, ())) for k, row in enumerate(times)], rule).run()


def scenario_of(rule, flops, speeds, edges, grid) -> LoadedScenario:
    """Return the run of the same tasks."""
    hosts = zip(speeds.tolist(), grid.cores, strict=True)
    platform = Platform(tuple(Host(f"h{k}", (PState(s, 1.0, 2.0, 2.0),), cores=n) for k, (s, n) in enumerate(hosts)))
    task, on, size, item = (np.array(column) for column in zip(*edges, strict=True))
    pairs = Dependencies(task, on, np.full(len(task), int(After.END)), np.zeros(len(task)), size, item)
    routes = Network(np.array(grid.latency_s), np.array(grid.bandwidth))
    tasks = make_tasks(flops, dependencies=pairs)
    return LoadedScenario(platform, tasks, f"ready_{rule}", network="platform", between_hosts=routes)


def mesh(path: Path, speeds, grid) -> Path:
    """Write hosts each two of which have a link of their own in each direction, which transfers do not share."""
    hosts, links = [], []
    for k, (speed, cores) in enumerate(zip(speeds.tolist(), grid.cores, strict=True)):
        hosts.append(
            f'<host id="h{k}" speed="{speed!r}f" core="{cores}"><prop id="wattage_per_state" value="1:2:2"/></host>'
        )
    routes = []
    for a in range(N_HOSTS):
        for b in set(range(N_HOSTS)) - {a}:
            width, latency = grid.bandwidth[a][b], grid.latency_s[a][b]
            links.append(
                f'<link id="{a}-{b}" bandwidth="{width!r}Bps" latency="{latency!r}s" sharing_policy="FATPIPE"/>'
            )
            routes.append(f'<route src="h{a}" dst="h{b}" symmetrical="NO"><link_ctn id="{a}-{b}"/></route>')
    options = {"network/model": "CM02", "network/crosstraffic": "0", "network/TCP-gamma": "0"}
    config = "".join(f'<prop id="{name}" value="{value}"/>' for name, value in options.items())
    path.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        f'<config>{config}</config><zone id="z" routing="Full">{"".join(hosts + links + routes)}</zone></platform>'
    )
    return path


def starts_of(trace):
    """Return (host, start) of each task of a run."""
    return [(e["host"], pytest.approx(e["start"], rel=1e-9)) for e in np.sort(trace.executions, order="task")]


@pytest.mark.parametrize("first", range(0, 300, 30))
def test_starts_and_hosts_are_those_of_the_rules(first):
    """300 graphs of 60 tasks on four hosts of one or two cores, two rules each: each start and host, one by one."""
    for seed in range(first, first + 30):
        for rule in (RULES[seed % 6], RULES[(seed + 3) % 6]):
            case = drawn(seed)
            trace = simulate_reference(scenario_of(rule, *case), make_scheduler(f"ready_{rule}"))
            assert by_oracle(rule, *case) == starts_of(trace), (seed, rule)


@pytest.mark.parametrize("rule", RULES)
def test_simgrid_agrees_where_no_link_is_shared(tmp_path, rule):
    """Sizes are no whole numbers, so bytes are not rounded either."""
    for seed in range(2):
        case = _, speeds, _, grid = drawn(1000 + seed, 40)
        trace = simulate(
            scenario_of(rule, *case), make_scheduler(f"ready_{rule}"), mesh(tmp_path / f"{seed}.xml", speeds, grid)
        ).trace
        placed = np.sort(trace.executions, order="task")
        expected = by_oracle(rule, *case)
        assert placed["host"].tolist() == [host for host, _ in expected]
        assert placed["start"] == pytest.approx([start for _, start in expected], rel=1e-9)


def written(folder: Path, times: str, edges: str, hosts: str = "ab") -> Path:
    """Write times by host, edges, and hosts of 1 flop/s with one link of 1 byte/s; return the folder."""
    (folder / "t.csv").write_text(times)
    (folder / "e.csv").write_text("task,on,bytes\n" + edges)
    (folder / "w.toml").write_text('kind = "workflow"\ntimes_csv = "t.csv"\nedges_csv = "e.csv"\n')
    each = "".join(f'<host id="{h}" speed="1f"><prop id="wattage_per_state" value="1:2:2"/></host>' for h in hosts)
    routes = "".join(
        f'<route src="{a}" dst="{b}"><link_ctn id="l"/></route>' for a in hosts for b in hosts[hosts.index(a) + 1 :]
    )
    (folder / "p.xml").write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        '<config><prop id="network/model" value="CM02"/><prop id="network/crosstraffic" value="0"/></config>'
        f'<zone id="z" routing="Full">{each}<link id="l" bandwidth="1Bps" latency="0s"/>{routes}</zone></platform>'
    )
    return folder


def spans(gridsched, folder, driver, scheduler):
    """Return {task: [host, start, end]} of a run of what is written."""
    gridsched(
        "run", "--platform", folder / "p.xml", "--workload", folder / "w.toml", "--driver", driver,
        "--scheduler", scheduler, "--export", folder / "x",
    )  # fmt: skip
    rows = pd.read_csv(folder / "x" / "executions.csv").set_index("job_id")
    return {name: [row.host, row.starting_time, row.finish_time] for name, row in rows.iterrows()}


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
@pytest.mark.parametrize("rule", ["mct", "sufferage", "min_min"])
def test_data_that_queued_tasks_wait_for_count(gridsched, tmp_path, driver, rule):
    """At 11 s Y is ready. Its end on a is 61 s; on b X waits behind Z for data until 101 s: 103 s."""
    folder = written(tmp_path, "id,a,b\nP,1,\nQ,10,\nZ,,20\nX,,1\nY,50,1\n", "X,P,100\nY,Q,0\n")
    found = spans(gridsched, folder, driver, f"ready_{rule}")
    assert found["Y"] == ["a", 11.0, 61.0]
    assert found["X"] == ["b", 101.0, 102.0]


def test_a_task_whose_data_are_late_has_all_of_its_time_before_it(gridsched, tmp_path):
    """Two transfers of 10 bytes share the link, so W has its data at 21 s, not at 11 s as expected when they left.

    At 15 s Y is ready: b is free at 16 s at the earliest, when W could end. Y ends at 16.5 s on a, at 17 s on b.
    """
    times = "id,a,b,c\nM,1,,\nQ,14,,\nW,,1,\nV,,,1\nY,1.5,1,\n"
    folder = written(tmp_path, times, "W,M,10\nV,M,10\nY,Q,0\n", "abc")
    found = spans(gridsched, folder, "simgrid", "ready_mct")
    assert found["W"] == ["b", pytest.approx(21.0), pytest.approx(22.0)]
    assert found["Y"] == ["a", 15.0, 16.5]


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
def test_bytes_are_any_numbers(gridsched, tmp_path, driver):
    """1.9 bytes at 1 byte/s, 1 s after the start: the reader of 3 s begins at 2.9 s and ends at 5.9 s."""
    folder = written(tmp_path, "id,a,b\nP,1,\nX,,3\n", "X,P,1.9\n")
    assert spans(gridsched, folder, driver, "ready_mct")["X"] == ["b", pytest.approx(2.9), pytest.approx(5.9)]
