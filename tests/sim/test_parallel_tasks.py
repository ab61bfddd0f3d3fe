"""Jobs whose parts compute and send to each other: by hand, by SimGrid's examples, and against SimGrid alone."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gridsched import Scenario, make_tasks
from gridsched import run as run_freely
from gridsched.errors import InputError
from gridsched.model.job_profiles import Delay, ParallelWork, Sequence
from gridsched.model.platform import homogeneous_cluster
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Allocate, Cancel
from gridsched.runs.checks import check_loaded
from gridsched.runs.plugin_agreement import energy_check
from gridsched.scenario import LoadedScenario
from gridsched.testing import trace_differences


def run(scenario: Scenario):
    """Run a scenario with a time-out, so that no fault of ours stops the tests."""
    return run_freely(replace(scenario, timeout_s=60.0))


BARE = Path(__file__).parent / "bare_parallel_tasks.py"
#: Bandwidths of the nodes' own links, of the backbones behind them, and of the bridge that joins these [byte/s].
OWN, BACKBONE, BRIDGE = {"b": 100e6, "c": 200e6}, {"b": 250e6, "c": 300e6}, 150e6
#: Latencies alike [s].
OWN_S, BACKBONE_S, BRIDGE_S = {"b": 50e-6, "c": 5e-3}, {"b": 30e-6, "c": 3e-6}, 1e-3
NAMES = [f"{kind}{k}" for kind in "bc" for k in range(4)]


def clusters_xml() -> str:
    """Return a platform of eight nodes behind two backbones, the second one not shared, and a master at the bridge."""
    lines = [
        '<host id="m" speed="1Gf"><prop id="role" value="master"/><prop id="wattage_per_state" value="0:0"/></host>'
    ]
    routes = [("bo", "ci", "bridge"), ("co", "bi", "bridge"), ("m", "bi", "lm"), ("m", "ci", "lm")]
    routes += [("bo", "m", "lm"), ("co", "m", "lm")]
    lines += [f'<link id="{name}" bandwidth="{BRIDGE}Bps" latency="{BRIDGE_S}s"/>' for name in ("bridge", "lm")]
    for kind, policy in (("b", "SHARED"), ("c", "FATPIPE")):
        lines.append(
            f'<router id="{kind}i"/><router id="{kind}o"/><link id="{kind}" bandwidth="{BACKBONE[kind]}Bps" '
            f'latency="{BACKBONE_S[kind]}s" sharing_policy="{policy}"/>'
        )
        routes.append((f"{kind}i", f"{kind}o", kind))
    for name in NAMES:
        lines.append(
            f'<host id="{name}" speed="2Gf,1Gf"><prop id="wattage_per_state" value="50:70:200,45:60:120"/></host>'
        )
        for end, route in (("up", (name, f"{name[0]}i")), ("down", (f"{name[0]}o", name))):
            lines.append(f'<link id="{name}{end}" bandwidth="{OWN[name[0]]}Bps" latency="{OWN_S[name[0]]}s"/>')
            routes.append((*route, f"{name}{end}"))
    hosts = [line for line in lines if line.startswith("<host")]
    rest = [line for line in lines if not line.startswith("<host")]
    routes = [f'<route src="{a}" dst="{b}" symmetrical="NO"><link_ctn id="{link}"/></route>' for a, b, link in routes]
    rest.sort(key=lambda line: line.startswith("<link"))
    return (
        '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">'
        f'<zone id="z" routing="Floyd">{"".join([*hosts, *rest, *routes])}</zone></platform>'
    )


class Places(Scheduler):
    """Start each task when it comes, on the nodes that a list gives, in a P-state."""

    traits = Traits(trigger="event", parallel=True, may_cancel=True, replicates=True)

    def __init__(self, nodes: tuple = (), pstates: tuple = (), cancels_at: float = -1.0) -> None:
        self.nodes, self.pstates, self.cancels_at = nodes, pstates, cancels_at

    def schedule(self, state):
        """Allocate what waits where its nodes are free."""
        if state.now == self.cancels_at:
            return [Cancel(int(t)) for t in np.flatnonzero(state.task_state == 5)] if state.tasks else []
        free = state.nodes.free.copy()
        answer = []
        for task in state.mappable.tolist():
            nodes = np.array(self.nodes[task])
            if free[nodes].all():
                free[nodes] = False
                answer.append(Allocate(task, np.sort(nodes), self.pstates[task] if self.pstates else 0))
        return answer


@pytest.fixture
def clusters(tmp_path: Path) -> Path:
    """Eight nodes in two clusters, and a master."""
    path = tmp_path / "clusters.xml"
    path.write_text(clusters_xml())
    return path


def sampled(rng: np.random.Generator, parts: int) -> ParallelWork:
    """Draw what parts compute and send; something at least."""
    flops = np.where(rng.random(parts) < 0.5, 0.0, rng.uniform(1e8, 1e10, parts))
    size = np.where(rng.random((parts, parts)) < 0.6, 0.0, rng.uniform(1e6, 1e9, (parts, parts)))
    np.fill_diagonal(size, 0.0)
    flops[0] = flops[0] or 1e9
    return ParallelWork(flops=tuple(flops), matrix=tuple(size.ravel()))


def alone_s(nodes: list[int], work: ParallelWork) -> float:
    """Return how long a task takes alone on some of the eight nodes, written out for their platform."""
    parts, size = len(nodes), np.reshape(work.matrix, (len(nodes), -1))
    carries, latency, way_bytes = {"b": 0.0, "c": 0.0, "bridge": 0.0}, 0.0, 0.0
    for i in range(parts):
        for j in range(parts):
            if size[i, j] == 0:
                continue
            a, b = NAMES[nodes[i]], NAMES[nodes[j]]
            carries[f"{a}up"] = carries.get(f"{a}up", 0.0) + size[i, j]
            carries[f"{b}down"] = carries.get(f"{b}down", 0.0) + size[i, j]
            way_s = OWN_S[a[0]] + OWN_S[b[0]] + sum(BACKBONE_S[kind] for kind in {a[0], b[0]})
            if "b" in (a[0], b[0]):
                carries["b"] += size[i, j]
            if "c" in (a[0], b[0]):
                carries["c"] = max(carries["c"], size[i, j])
            if a[0] != b[0]:
                carries["bridge"] += size[i, j]
                way_s += BRIDGE_S
            latency, way_bytes = max(latency, way_s), max(way_bytes, way_s * size[i, j])
    width = {**BACKBONE, "bridge": BRIDGE}
    times = [carried / width.get(link, OWN[link[0]]) for link, carried in carries.items()]
    return latency + max(*times, 2 * way_bytes / 4194304, max(work.flops) / 2e9)


def largest_difference(result) -> float:
    """Return the largest relative difference of plugin and model joules."""
    return max(row["relative_difference"] for row in energy_check(result))


@pytest.mark.parametrize("driver", ["simgrid", "reference"])
def test_200_tasks_alone_take_what_the_formula_says(clusters: Path, driver: str):
    """Latency, then the longest of computing, of each link, and of what may be unacknowledged; energy agrees."""
    rng = np.random.default_rng(5)
    nodes = [sorted(rng.choice(8, rng.integers(1, 6), replace=False).tolist()) for _ in range(200)]
    works = [sampled(rng, len(each)) for each in nodes]
    tasks = make_tasks(
        np.full(200, 1e12),
        np.arange(200) * 1000.0,
        width=[len(each) for each in nodes],
        profile=np.arange(200),
        profiles=works,
    )
    result = run(Scenario(clusters, tasks, Places(tuple(nodes)), driver=driver))
    runs = result.trace.executions
    took = runs["end"] - runs["start"]
    expected = [alone_s(each, work) for each, work in zip(nodes, works, strict=True)]
    np.testing.assert_allclose(took, expected, rtol=0, atol=1e-9)
    if driver == "simgrid":
        assert largest_difference(result) < 1e-9


def test_200_cases_with_contention_end_as_by_simgrid_alone(clusters: Path, tmp_path: Path):
    """Two tasks on nodes of their own that share links, both drivers beside a program of SimGrid's; energy agrees."""
    rng = np.random.default_rng(8)
    plan, nodes, works, submit = [], [], [], []
    for case in range(200):
        order, cut = rng.permutation(8), int(rng.integers(2, 5))
        for k, some in enumerate((order[:cut], order[cut:])):
            mine = sorted(some.tolist())
            work = sampled(rng, len(mine))
            time = case * 1000.0 + k * float(rng.choice([0.0, 1.0, 3.5]))
            plan.append([time, [NAMES[n] for n in mine], list(work.flops), list(work.matrix)])
            nodes.append(mine)
            works.append(work)
            submit.append(time)
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    command = [sys.executable, str(BARE), str(clusters), str(tmp_path / "plan.json")]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    ends = json.loads(said.splitlines()[0])
    tasks = make_tasks(
        np.full(400, 1e12), submit, width=[len(n) for n in nodes], profile=np.arange(400), profiles=works
    )
    for driver in ("simgrid", "reference"):
        result = run(Scenario(clusters, tasks, Places(tuple(nodes)), driver=driver))
        np.testing.assert_allclose(result.trace.finish_time_s, ends, rtol=1e-12, atol=1e-9)
        if driver == "simgrid":
            assert largest_difference(result) < 1e-9


#: Hosts and the bus of SimGrid's example energy-exec-ptask. Of the four cores that MyHost1 has there one computes:
#: here it is one core that draws what the host draws with one core busy.
EXAMPLE = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="grid" routing="Full">
  <host id="MyHost1" speed="100Mf,50Mf,20Mf">
    <prop id="wattage_per_state" value="100:93.33333333333333:120, 93:90:110, 90:90:105"/></host>
  <host id="MyHost2" speed="100Mf,50Mf,20Mf">
    <prop id="wattage_per_state" value="100:200:200, 93:170:170, 90:150:150"/></host>
  <host id="MyHost3" speed="100Mf,50Mf,20Mf">
    <prop id="wattage_per_state" value="100:200:200, 93:170:170, 90:150:150"/></host>
  <link id="bus" bandwidth="100kBps" latency="0"/>
  <route src="MyHost1" dst="MyHost2"><link_ctn id="bus"/></route>
  <route src="MyHost1" dst="MyHost3"><link_ctn id="bus"/></route>
  <route src="MyHost2" dst="MyHost3"><link_ctn id="bus"/></route>
</zone></platform>
"""


@pytest.mark.parametrize("driver", ["simgrid", "reference"])
def test_energies_of_simgrids_example(tmp_path: Path, driver: str):
    """Computing, another P-state, computing and sending, sending alone, killed after 20 s: what its page prints."""
    path = tmp_path / "example.xml"
    path.write_text(EXAMPLE)
    both, sends = (1e9, 1e9), (0.0, 1e7, 1e7, 0.0)
    works = [ParallelWork(flops=both), ParallelWork(flops=both, matrix=sends), ParallelWork(matrix=sends)]
    tasks = make_tasks(
        np.full(5, 1e9),
        [10.0, 20.0, 70.0, 270.0, 470.0],
        width=2,
        requested_time_s=[1e3, 1e3, 1e3, 1e3, 4.0],  # at the speed of P-state 0, a fifth of that in P-state 2
        profile=[0, 0, 1, 2, 0],
        profiles=works,
    )
    places = Places(((0, 1),) * 5, (0, 2, 2, 2, 2))
    result = run(Scenario(path, tasks, places, driver=driver, walltime="kill"))
    runs = result.trace.executions
    assert (runs["end"] - runs["start"]).tolist() == pytest.approx([10, 50, 200, 200, 20], rel=1e-12)
    assert result.energy.total_j.tolist() == pytest.approx([46_300, 61_500, 49_000], rel=1e-12)
    assert result.trace.link_bytes == {"bus": pytest.approx(4e7)}
    if driver == "simgrid":
        assert list(result.plugin_j.values()) == pytest.approx([46_300, 61_500, 49_000], rel=1e-9)


def mixed_tasks(n: int, seed: int):
    """Draw jobs of patterns, sequences, delays, a storage host and no profile, and how long they ask for."""
    rng = np.random.default_rng(seed)
    ring = ParallelWork(flops=(3e9,), pattern="ring", message_bytes=2e8)
    works = [
        ring,
        ParallelWork(total_flops=8e9, pattern="all_to_all", total_bytes=1e9, iterations=2),
        Sequence((Delay(1.5), ring, Sequence((Delay(0.25), ParallelWork(flops=(1e9,))), 2)), 3),
        ParallelWork(flops=(2e9,), pattern="neighbours_2d", message_bytes=1e8, read_bytes=5e7, write_bytes=2e7,
                     storage="m"),
        Delay(7.0),
    ]  # fmt: skip
    return make_tasks(
        rng.uniform(5e9, 2e10, n),
        np.sort(rng.uniform(0, 10 * n, n)).round(3),
        width=rng.integers(1, 5, n),
        requested_time_s=rng.uniform(5, 40, n),
        profile=rng.integers(-1, len(works), n),
        profiles=works,
    )


@pytest.mark.parametrize("walltime", ["ignore", "kill"])
@pytest.mark.parametrize("scheduler", ["fcfs", "easy_backfilling", "conservative_backfilling"])
def test_drivers_agree_on_jobs_of_all_kinds(clusters: Path, scheduler: str, walltime: str):
    """Same records, joules and bytes over time; the plugin's joules are the model's, whatever shares links or ends."""
    made = [
        run(Scenario(clusters, mixed_tasks(60, 3), scheduler, driver=driver, walltime=walltime, traffic_step_s=step_s))
        for driver, step_s in (("simgrid", 7.0), ("reference", 7.0), ("simgrid", None))
    ]
    assert made[0].trace.executions.tolist() == made[2].trace.executions.tolist()  # to look changes nothing
    for each in made[:2]:
        sent = list(each.trace.link_bytes.values())
        np.testing.assert_allclose(each.trace.traffic_bytes.sum(axis=1), sent, rtol=1e-12)
    traffic, other = (dict(zip(each.trace.link_bytes, each.trace.traffic_bytes, strict=True)) for each in made[:2])
    for link, sent_bytes in traffic.items():
        np.testing.assert_allclose(sent_bytes, other[link], rtol=1e-9, atol=1.0)
    assert trace_differences(made[1].trace, made[0].trace) == []
    assert largest_difference(made[0]) < 1e-9
    assert made[0].trace.link_bytes == pytest.approx(made[1].trace.link_bytes, rel=1e-9)


def test_a_host_that_only_sends_draws_its_idle_figure(clusters: Path):
    """One node computes for 4 s, one sends for 10 s: 50 W all the time, but 200 W in 4 of its 10 s at 2/5 speed."""
    work = ParallelWork(flops=(8e9, 0.0), matrix=(0.0, 1e9, 0.0, 0.0))
    tasks = make_tasks([1e9], width=2, profile=[0], profiles=[work])
    result = run(Scenario(clusters, tasks, Places(((0, 1),))))
    took = 10.0 + 2 * 50e-6 + 30e-6
    assert result.trace.finish_time_s.tolist() == pytest.approx([took], rel=1e-12)
    # 70 + 0.4 * (200 - 70) W while it computes, 50 W in the latency; the other draws 50 W
    assert [result.plugin_j["b0"], result.plugin_j["b1"]] == pytest.approx([122 * 10 + 50 * 130e-6, 50 * took])


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"cfg": ("network/model:CM02",)}, "network/model:CM02"),
        ({"cfg": ("cpu/model:Cas01",)}, "cpu/model"),
        ({"cfg": ("host/model:default",)}, "host/model:default"),
        ({"cfg": ("host/solver:maxmin",)}, "fairbottleneck"),
        ({"cfg": ("host/solver:nothing",)}, "fairbottleneck"),
    ],
)
def test_what_contradicts_parallel_tasks_is_one_line(clusters: Path, changes: dict, word: str):
    """Never an abort of SimGrid's."""
    tasks = make_tasks([1e9], width=2, profile=[0], profiles=[ParallelWork(flops=(1e9,))])
    with pytest.raises(InputError, match=word) as refused:
        run(Scenario(clusters, tasks, "fcfs", **changes))
    assert "\n" not in str(refused.value)


def test_jobs_that_are_too_wide_for_simgrid():
    """It takes a number for each pair of parts: 4,001 of a ring would need 16 million; a job that sends nothing may."""
    platform = homogeneous_cluster(4_001, idle_w=1.0, busy_w=2.0, speed=1e9)
    profiles = [ParallelWork(flops=(1e9,), pattern="ring", message_bytes=1.0), ParallelWork(flops=(1e9,))]
    for width, profile, is_refused in ((4_001, 0, True), (4_000, 0, False), (4_001, 1, False)):
        tasks = make_tasks([1e9], width=width, profile=profile, profiles=profiles)
        with pytest.raises(InputError, match="4,001 parts") if is_refused else nullcontext():
            check_loaded(LoadedScenario(platform, tasks, "fcfs"))


def test_a_storage_host_that_is_not_there(clusters: Path):
    """The message names it."""
    work = ParallelWork(read_bytes=1e6, storage="nfs")
    tasks = make_tasks([1e9], width=2, profile=[0], profiles=[work])
    with pytest.raises(InputError, match="'nfs'"):
        run(Scenario(clusters, tasks, "fcfs"))


def test_without_network_jobs_compute_as_they_would_without_profiles(clusters: Path):
    """1 Gflop on nodes of 2 Gflop/s, whatever the profile contains."""
    tasks = make_tasks([1e9], width=2, profile=[0], profiles=[Delay(5.0)])
    assert run(Scenario(clusters, tasks, "fcfs", network="none")).trace.finish_time_s.tolist() == [0.5]
