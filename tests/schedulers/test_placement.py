"""Where jobs are placed under switches: `--placement` of whole nodes, and `locality` on nodes that are shared."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import gridsched
from gridsched import Scenario, run
from gridsched.drivers.simgrid_library import is_installed
from gridsched.errors import InputError
from gridsched.model.platform import Partition, Platform, homogeneous_cluster
from gridsched.model.tasks import make_tasks
from gridsched.platform_io.xml_reader import read_platform
from gridsched.platform_io.xml_writer import write_platform
from gridsched.scenario import LoadedScenario
from gridsched.testing import trace_differences

#: Leaf switches of 4 nodes, two or three of them under each pod.
LEAVES = (4, 4, 4, 4, 4)
PODS = (0, 0, 1, 1, 1)


def machine(leaves=LEAVES, pods=PODS, cores: int = 1) -> Platform:
    """Return nodes under leaf switches of these sizes, under pods if there are any."""
    plain = homogeneous_cluster(sum(leaves), idle_w=10.0, busy_w=20.0, speed=1.0, name="nodes")
    above = [(f"pod {pod}",) for pod in pods] or [()] * len(leaves)
    under = [(f"leaf {k}", *above[k]) for k, n in enumerate(leaves) for _ in range(n)]
    hosts = (replace(host, switches=s, cores=cores) for host, s in zip(plain.hosts, under, strict=True))
    return replace(plain, hosts=tuple(hosts))


def ran(platform: Platform, jobs, place: str, scheduler: str = "fcfs", driver: str = "reference", **columns):
    """Run jobs (submission [s], run time [s], nodes); return the nodes of each, and the trace."""
    submit, length, width = (np.array(column) for column in zip(*jobs, strict=True))
    tasks = make_tasks(length, submit, width=width, requested_time_s=length, **columns)
    trace = run(LoadedScenario(platform, tasks, scheduler=scheduler, driver=driver, placement=place)).trace
    nodes: dict[int, list[int]] = {}
    execution, host = trace.placed()
    for k, h in zip(trace.executions["task"][execution].tolist(), host.tolist(), strict=True):
        nodes.setdefault(k, []).append(h)
    return nodes, trace


def occupied(*ends) -> list[tuple[float, float, int]]:
    """Return one-node jobs that fill the first nodes, of which those with an end of 1 s make room."""
    return [(0.0, end, 1) for end in ends]


#: What each job of so many nodes has if these nodes are free, by the rules of docs/parallel_tasks.md.
HAND = [
    # one leaf is enough: that with the fewest free nodes
    ("locality", [0, 1, 2, 3, 5, 6, 7, 9, 10], 2, [9, 10]),
    ("locality", [0, 1, 2, 3, 5, 6, 7, 9, 10], 3, [5, 6, 7]),
    # two leaves, in the pod that has two with enough; the first is filled, the other has the fewest that serve
    ("locality", [0, 1, 2, 8, 9, 10, 12, 13, 14, 15, 16, 17], 6, [12, 13, 14, 15, 16, 17]),
    # three leaves of one pod; two have not enough
    ("locality", [0, 1, 4, 5, 8, 9, 12, 13, 16, 17], 5, [8, 9, 12, 13, 16]),
    # no pod has enough with two leaves: the fullest of each
    ("locality", [0, 1, 2, 3, 8, 9, 10, 12], 7, [0, 1, 2, 3, 8, 9, 10]),
    ("pack", [3, 5, 6, 12, 13], 3, [3, 5, 6]),
    ("spread", [0, 1, 2, 5, 6, 12, 13], 3, [0, 5, 12]),
    ("spread", [0, 1, 2, 5, 6, 12, 13], 5, [0, 1, 5, 6, 12]),
    ("contiguous", [0, 2, 3, 5, 6, 7, 9], 3, [5, 6, 7]),
]


@pytest.mark.parametrize(("place", "free", "width", "expected"), HAND)
@pytest.mark.parametrize("scheduler", ["fcfs", "easy_backfilling", "conservative_backfilling"])
def test_by_hand(place: str, free: list[int], width: int, expected: list[int], scheduler: str):
    """Twenty jobs of a node each fill the machine in order of ids; some end, and the next job has these nodes."""
    # under spread, the first jobs take the first node of each leaf, then the second ones, and so on
    order = range(20) if place != "spread" else [4 * leaf + k for k in range(4) for leaf in range(5)]
    if place == "locality":  # of equal leaves the one with the least room that serves: one after the other
        order = range(20)
    jobs = [*occupied(*[1.0 if node in free else 9.0 for node in order]), (0.5, 1.0, width)]
    nodes, trace = ran(machine(), jobs, place, scheduler)
    assert [nodes[k] for k in range(20)] == [[node] for node in order]
    assert nodes[20] == expected
    assert trace.executions["start"][trace.executions["task"] == 20] == [1.0]


def fewest(free: dict[int, int], width: int) -> int:
    """Return how many leaves a job needs at least: all sets are tried."""
    for count in range(1, len(free) + 1):
        if any(sum(free[leaf] for leaf in some) >= width for some in combinations(free, count)):
            return count
    raise AssertionError("it fits nowhere")


def gathered(free: dict[int, list[int]], pod: dict[int, int], width: int) -> list[int]:
    """Return the nodes that `locality` takes by its words, of the free ones of each leaf."""
    room = {leaf: len(nodes) for leaf, nodes in free.items()}
    in_pod = {p: sum(room[leaf] for leaf in room if pod[leaf] == p) for p in sorted(set(pod.values()))}
    count = fewest(room, width)
    chosen = list(room)
    for groups in ([[leaf] for leaf in room], [[leaf for leaf in room if pod[leaf] == p] for p in in_pod]):
        enough = [each for each in groups if sum(sorted((room[x] for x in each), reverse=True)[:count]) >= width]
        if enough:
            chosen = min(enough, key=lambda each: sum(room[leaf] for leaf in each))
            break
    chosen.sort(key=lambda leaf: (-room[leaf], -in_pod[pod[leaf]], leaf))
    filled = [node for leaf in chosen[: count - 1] for node in free[leaf]]
    rest = width - len(filled)
    last = min((leaf for leaf in chosen[count - 1 :] if room[leaf] >= rest), key=lambda leaf: room[leaf])
    return sorted([*filled, *free[last][:rest]])


@pytest.mark.parametrize(("seed", "levels"), [*((seed, 2) for seed in range(6)), (6, 1), (7, 1)])
def test_never_more_switches_than_needed(seed: int, levels: int):
    """Random jobs: so few leaf switches as is possible, and so never more than by any other rule.

    Where the pod of one leaf set of this size is enough, the job lies in one pod. Which nodes it has follows from the
    rule, of equals too.
    """
    rng = np.random.default_rng(seed)
    leaves = tuple(rng.integers(1, 6, 7).tolist())
    pods = tuple(np.sort(rng.integers(0, 3, 7)).tolist())
    platform = machine(leaves, pods[: 7 * (levels - 1)])
    n = len(platform)
    jobs = [(float(k) / 4, float(rng.integers(1, 9)), int(rng.integers(1, 2 * n // 3))) for k in range(60)]
    nodes, trace = ran(platform, jobs, "locality", "easy_backfilling")
    leaf = platform.switch_of[0]
    pod = platform.switch_of[1] if levels > 1 else np.zeros_like(leaf)  # all under one
    start, end = (
        dict(zip(trace.executions["task"].tolist(), trace.executions[c].tolist(), strict=True))
        for c in ("start", "end")
    )
    in_order = sorted(nodes, key=lambda k: (start[k], k))
    spans = []
    for place, k in enumerate(in_order):
        free = np.ones(n, dtype=bool)
        for other in in_order[:place]:
            if end[other] > start[k]:
                free[nodes[other]] = False
        room = {each: int(free[leaf == each].sum()) for each in range(leaf.max() + 1)}
        by_leaf = {each: np.flatnonzero(free & (leaf == each)).tolist() for each in room}
        pod_of = {each: int(pod[leaf == each][0]) for each in room}
        assert sorted(nodes[k]) == gathered(by_leaf, pod_of, len(nodes[k]))
        used = set(leaf[nodes[k]].tolist())
        assert len(used) == fewest(room, len(nodes[k]))
        packed = np.flatnonzero(free)[: len(nodes[k])]
        assert len(used) <= len(set(leaf[packed].tolist()))
        spans.append(len(used))
        in_one_pod = any(
            sum(sorted((room[each] for each in set(leaf[pod == p].tolist())), reverse=True)[: len(used)])
            >= len(nodes[k])
            for p in range(pod.max() + 1)
        )
        assert (len(set(pod[nodes[k]].tolist())) == 1) == in_one_pod
    assert len(set(spans)) > 3  # cases of all kinds occur


@pytest.mark.parametrize("scheduler", ["fcfs", "easy_backfilling"])
def test_starts_do_not_depend_on_the_place(scheduler: str):
    """Whole nodes whose jobs only compute: pack, spread and locality start the same jobs at the same times."""
    rng = np.random.default_rng(1)
    jobs = [(float(k), float(rng.integers(1, 20)), int(rng.integers(1, 15))) for k in range(80)]
    traces = [ran(machine(), jobs, place, scheduler)[1] for place in ("pack", "spread", "locality")]
    for other in traces[1:]:
        assert (other.start_time_s == traces[0].start_time_s).all()


def test_a_partition_that_begins_within_a_pod():
    """Of nodes 2 to 8 three lie under two leaves of pod 1, which has no more room; node 2 is alone under its own."""
    platform = machine((2, 1, 2, 2, 2), (0, 1, 1, 2, 2))
    platform = replace(platform, partitions=(Partition("part", tuple(range(2, 9))),))
    assert ran(platform, [(0.0, 1.0, 3)], "locality")[0] == {0: [2, 3, 4]}


def test_on_shared_nodes():
    """Parts of one core on nodes of two: a leaf that has room for all, filled in order of ids."""
    jobs = [(0.0, 9.0, 5), (1.0, 5.0, 6), (2.0, 5.0, 3)]
    columns = {"demand": np.ones((3, 1)), "anywhere": True}
    nodes, _ = ran(machine(cores=2), jobs, "locality", **columns)
    # five cores of leaf 0; six of leaf 1, since three are left; three of leaf 0
    assert nodes == {0: [0, 1, 2], 1: [4, 5, 6], 2: [2, 3]}


@pytest.mark.skipif(not is_installed(), reason="SimGrid is not installed")
@pytest.mark.parametrize("place", ["spread", "contiguous", "locality"])
def test_drivers_agree(place: str):
    """Whole nodes on SimGrid: the same records."""
    rng = np.random.default_rng(2)
    jobs = [(float(k), float(rng.integers(1, 20)), int(rng.integers(1, 12))) for k in range(40)]
    expected, result = (
        ran(machine(), jobs, place, "easy_backfilling", driver)[1] for driver in ("reference", "simgrid")
    )
    assert trace_differences(expected, result) == []


CLUSTERS = [
    ("FAT_TREE", "3;2,3,2;1,2,2;1,1,1", [2, 6]),
    ("DRAGONFLY", "2,1;2,1;3,1;4", [4, 12, 24]),
    ("DRAGONFLY", "2,1;1,1;3,1;4", [4, 12]),
    ("TORUS", "2,3,2", [2, 6]),
]


@pytest.mark.parametrize(("topology", "parameters", "under"), CLUSTERS)
def test_switches_of_topologies(tmp_path: Path, topology: str, parameters: str, under: list[int]):
    """Nodes are numbered under switches as SimGrid does it: where a way stays under one, it has fewer links."""
    n = 2 * under[-1]
    text = f"""<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="m" routing="Full">
<cluster id="c" prefix="n" suffix="" radical="0-{n - 1}" speed="1f" bw="1Bps" lat="1s" topology="{topology}"
         topo_parameters="{parameters}"/></zone></platform>"""
    path = tmp_path / "c.xml"
    path.write_text(text)
    platform = read_platform(path)
    assert len(platform) == n
    assert (platform.switch_of == [[h // size for h in range(n)] for size in under]).all()
    again = tmp_path / "again.xml"
    write_platform(platform, again, command="test")
    assert [host.switches for host in read_platform(again).hosts] == [host.switches for host in platform.hosts]


def test_switches_by_properties(tmp_path: Path):
    """Of a host, else of its zone; hosts without any lie under a switch of their cluster."""
    text = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="m" routing="Full"><prop id="switches" value="a, top"/>
<host id="x" speed="1f"/><host id="y" speed="1f"><prop id="switches" value="b,top"/></host>
<host id="z" speed="1f"/></zone></platform>"""
    path = tmp_path / "c.xml"
    path.write_text(text)
    platform = read_platform(path)
    assert [host.switches for host in platform.hosts] == [("a", "top"), ("b", "top"), ("a", "top")]
    assert platform.switch_of.tolist() == [[0, 1, 0], [0, 0, 0]]
    for value, words in (("b,,top", "different names"), ("top,b", "one place"), ("b,b", "different names")):
        path.write_text(text.replace("b,top", value))
        with pytest.raises(InputError, match=words):
            read_platform(path)


def test_locality_needs_switches():
    """A platform without any is refused in a line that names what to add."""
    tasks = make_tasks(1.0, 0.0, width=1, requested_time_s=1.0)
    plain = homogeneous_cluster(2, idle_w=1.0, busy_w=2.0, speed=1.0, name="plain")
    with pytest.raises(InputError, match="FAT_TREE"):
        run(Scenario(plain, tasks, scheduler="fcfs", driver="reference", placement="locality"))


@pytest.mark.parametrize(("name", "switches"), [("fat_tree", [64, 4]), ("dragonfly", [64, 16, 4])])
def test_platforms_of_the_study(name: str, switches: list[int]):
    """4 x 16 x 8 nodes under so many switches of each level; the study has the same files."""
    own = Path(__file__).parents[2] / f"platforms/{name}.xml"
    platform = read_platform(own)
    assert len(platform) == 512
    assert (platform.switch_of.max(axis=1) + 1).tolist() == switches
    assert [np.bincount(level).tolist() for level in platform.switch_of] == [[512 // n] * n for n in switches]
    studies = Path(gridsched.__file__).parent / "reproduction/studies"
    assert (studies / f"placement_{name}.xml").read_bytes() == own.read_bytes()
