"""Workflows that are drawn: their edges by hand, work and data within their means, streams, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from gridsched.errors import InputError
from gridsched.model.task_types import SystemWorkload
from gridsched.workloads.generators import GENERATORS, checked_parameters
from gridsched.workloads.load import read_workload


def sampled(**keys):
    """Return the tasks of checked keys."""
    parameters = checked_parameters({"kind": "workflow", **keys}, "test")
    tasks = GENERATORS["workflow"].generate(parameters)
    assert not isinstance(tasks, SystemWorkload)
    return tasks


def edges_of(tasks) -> set[tuple[int, int]]:
    """Return (task, the one it waits for), counted from 1."""
    pairs = tasks.dependencies
    return set() if pairs is None else set(zip((pairs.on + 1).tolist(), (pairs.task + 1).tolist(), strict=True))


def parents_of(tasks) -> dict[int, list[int]]:
    """Return whom each task waits for."""
    return {t: [on for on, task in edges_of(tasks) if task == t] for t in range(1, len(tasks) + 1)}


@pytest.mark.parametrize(
    ("keys", "count", "edges"),
    [
        ({"shape": "chains", "branches": 2, "depth": 3}, 6, {(1, 2), (2, 3), (4, 5), (5, 6)}),
        (
            {"shape": "fork_join", "branches": 2, "depth": 2},
            7,
            {(1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (4, 6), (5, 7), (6, 7)},
        ),
        ({"shape": "out_tree", "branches": 2, "depth": 3}, 7, {(1, 2), (1, 3), (2, 4), (2, 5), (3, 6), (3, 7)}),
        ({"shape": "in_tree", "branches": 2, "depth": 3}, 7, {(1, 5), (2, 5), (3, 6), (4, 6), (5, 7), (6, 7)}),
        ({"shape": "out_tree", "branches": 1, "depth": 3}, 3, {(1, 2), (2, 3)}),
        # a matrix of 3: pivot 1, columns 2 and 3; pivot 4, column 5
        ({"shape": "gaussian", "size": 3}, 5, {(1, 2), (1, 3), (2, 4), (3, 5), (4, 5)}),
        # 4 points: calls 1; 2, 3; 4 to 7; butterflies 8 to 11 of neighbors, 12 to 15 of points two apart
        (
            {"shape": "fft", "size": 4},
            15,
            {(1, 2), (1, 3), (2, 4), (2, 5), (3, 6), (3, 7)}
            | {(4, 8), (5, 8), (4, 9), (5, 9), (6, 10), (7, 10), (6, 11), (7, 11)}
            | {(8, 12), (10, 12), (9, 13), (11, 13), (8, 14), (10, 14), (9, 15), (11, 15)},
        ),
        ({"shape": "layered", "tasks": 4, "width": 0}, 4, {(1, 2), (2, 3), (3, 4)}),
        ({"shape": "layered", "tasks": 4, "width": 1, "regularity": 1}, 4, set()),
    ],
)
def test_edges_by_hand(keys, count, edges):
    """Tasks are counted from 1 in their order."""
    tasks = sampled(**keys)
    assert (len(tasks), edges_of(tasks)) == (count, edges)


@pytest.mark.parametrize("size", [2, 5, 8, 20])
def test_numbers_that_topcuoglu_gives(size):
    """(m² + m - 2) / 2 tasks of an elimination; 2 m - 1 calls and m log2 m butterflies of a transform."""
    assert len(sampled(shape="gaussian", size=size)) == (size**2 + size - 2) // 2
    points = 2 ** (size // 2)
    assert len(sampled(shape="fft", size=points)) == 2 * points - 1 + points * (size // 2)


def test_all_ways_through_a_transform_are_critical():
    """Tasks of a level cost alike, and data between two levels: all ways to any task are equally long."""
    tasks = sampled(shape="fft", size=16, heterogeneity=1, data_heterogeneity=1)
    pairs = tasks.dependencies
    lengths: list[set[float]] = [set() for _ in tasks.flops]
    for task in range(len(tasks)):
        own = pairs.task == task
        for on, size in zip(pairs.on[own].tolist(), pairs.size_bytes[own].tolist(), strict=True):
            lengths[task] |= {round(way + size) for way in lengths[on]}
        lengths[task] = {round(way + tasks.flops[task]) for way in lengths[task] or {0.0}}
    assert {len(routes) for routes in lengths} == {1}
    assert len(set(tasks.flops.tolist())) == 2 * 5 - 1


@pytest.mark.parametrize("seed", range(5))
def test_layers_keep_to_their_keys(seed):
    """100 ** 0.5 = 10 tasks a layer, all alike; parents are 1 to 3 layers before, 1 to 1 + 0.4 * 10 at most."""
    keys = {"shape": "layered", "tasks": 100, "regularity": 1, "density": 0.4, "jump": 3}
    parents = parents_of(sampled(**keys, seed=seed))
    apart = {(task - 1) // 10 - (on - 1) // 10 for task in parents for on in parents[task]}
    assert apart == {1, 2, 3}
    assert {len(parents[task]) for task in parents if task <= 10} == {0}
    assert {len(parents[task]) for task in parents if task > 10} == {1, 2, 3, 4}
    irregular = parents_of(sampled(shape="layered", tasks=100, regularity=0.2, seed=seed))
    begins = sum(not irregular[task] for task in irregular)
    assert 2 <= begins <= 18  # 10 -+ 8


def test_work_and_data_have_their_means_and_spreads():
    """ccr 2: data take twice as long as tasks, 2e6 flop at 1e3 flop/s and 10 byte/s: 40,000 bytes."""
    keys = {"shape": "layered", "tasks": 2000, "mean_flops": 2e6, "heterogeneity": 1.5, "ccr": 2.0}
    tasks = sampled(**keys, data_heterogeneity=0.5, reference_speed=1e3, reference_bandwidth=10.0)
    assert tasks.flops.min() > 2e6 * 0.25
    assert tasks.flops.max() <= 2e6 * 1.75
    assert tasks.flops.mean() == pytest.approx(2e6, rel=0.05)
    sizes = tasks.dependencies.size_bytes
    assert 30_000 <= sizes.min() < 31_000
    assert 49_000 < sizes.max() <= 50_000
    assert sizes.mean() == pytest.approx(40_000, rel=0.02)
    assert (sizes == np.rint(sizes)).all()


def test_seeds():
    """One seed gives one workflow; another one, or another replicate, another."""
    keys = {"shape": "layered", "heterogeneity": 1}
    once, again = sampled(**keys, seed=3), sampled(**keys, seed=3)
    assert edges_of(once) == edges_of(again)
    assert once.flops.tolist() == again.flops.tolist()
    for others in ({"seed": 4}, {"seed": 3, "replicate": 1}):
        other = sampled(**keys, **others)
        assert edges_of(other) != edges_of(once)
        assert other.flops.tolist() != once.flops.tolist()


def test_a_stream_of_workflows():
    """Each is drawn by itself: the first stays what it is alone; all tasks of one arrive at once."""
    keys = {"shape": "layered", "tasks": 20, "heterogeneity": 1, "seed": 2}
    alone, stream = sampled(**keys), sampled(**keys, workflows=200, mean_interarrival_s=50.0)
    assert stream.flops[:20].tolist() == alone.flops.tolist()
    assert stream.flops[20:40].tolist() != alone.flops.tolist()
    assert {(on, task) for on, task in edges_of(stream) if task <= 20} == edges_of(alone)
    assert stream.attributes["workflow"].texts[19:21] == ["w1", "w2"]
    assert stream.labels.tolist()[19:21] == ["w1t20", "w2t1"]
    arrivals = stream.submit_time_s.reshape(200, 20)
    assert (arrivals == arrivals[:, :1]).all()
    gaps = np.diff(arrivals[:, 0])
    assert arrivals[0, 0] == 0.0
    assert gaps.mean() == pytest.approx(50.0, rel=0.2)
    assert gaps.std() == pytest.approx(50.0, rel=0.25)  # exponential
    apart = [(on - 1) // 20 - (task - 1) // 20 for on, task in edges_of(stream)]
    assert not any(apart)


def test_a_stream_at_given_times():
    """In order of time, whatever theirs."""
    tasks = sampled(shape="chains", branches=1, depth=2, workflows=2, submit_times_s=[7.0, 0.5])
    assert tasks.submit_time_s.tolist() == [0.5, 0.5, 7.0, 7.0]


@pytest.mark.parametrize("more", ["", "workflows = 3\nmean_interarrival_s = 9.0\n"])
def test_what_is_written_reads_back(gridsched, tmp_path, more):
    """`workload generate` writes tables, which are the same tasks."""
    path, output = tmp_path / "g.toml", tmp_path / "made.toml"
    path.write_text(f'kind = "workflow"\nshape = "layered"\ntasks = 30\nheterogeneity = 1\nseed = 5\n{more}')
    assert gridsched("workload", "generate", path, "-o", output).status == 0
    first, second = read_workload(path), read_workload(output)
    for name in ("flops", "submit_time_s", "labels"):
        assert getattr(first, name).tolist() == getattr(second, name).tolist()
    for name in ("task", "on", "size_bytes"):
        assert getattr(first.dependencies, name).tolist() == getattr(second.dependencies, name).tolist()
    assert {name: each.texts for name, each in first.attributes.items()} == {
        name: each.texts for name, each in second.attributes.items()
    }


STUDY = """
name = "graphs"
platform = "p.xml"
workload = {{ generator = "workflow", shape = ["gaussian", "fft"], size = 4, ccr = [0.1, 10]{more} }}
schedulers = ["heft", "ready_mct"]
driver = "reference"
replicates = 1
"""
PLATFORM = """<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">
<zone id="z" routing="Full"><host id="a" speed="1e10f"><prop id="wattage_per_state" value="1:1:2"/></host>
<host id="b" speed="1e10f"><prop id="wattage_per_state" value="1:1:2"/></host>
<link id="l" bandwidth="100MBps" latency="1us"/><route src="a" dst="b"><link_ctn id="l"/></route></zone></platform>
"""


def test_studies_take_shapes_as_axes(gridsched, tmp_path):
    """Two shapes, two ratios and two schedulers: eight runs."""
    (tmp_path / "p.xml").write_text(PLATFORM)
    (tmp_path / "s.toml").write_text(STUDY.format(more=""))
    done = gridsched("study", "run", tmp_path / "s.toml", "--store", tmp_path / "store", "--workers", "1")
    assert done.status == 0, done.err
    assert "8" in gridsched("study", "check", tmp_path / "s.toml").out


def test_a_study_is_refused_before_it_runs(refused, tmp_path):
    """Where keys of a workflow contradict each other."""
    (tmp_path / "p.xml").write_text(PLATFORM)
    (tmp_path / "s.toml").write_text(STUDY.format(more=", jump = 2"))
    assert "jump has no effect" in refused("study", "check", tmp_path / "s.toml")


TABLES = """id,flops
a,100
b,300
c,200
"""
EDGES = """task,on,bytes,file
a,,80,given
b,a,10,shared
c,a,10,shared
c,b,20,
"""


@pytest.fixture
def tables(tmp_path):
    """Return the keys of three tasks: two read one file of the first, one more file lies on a host."""
    (tmp_path / "t.csv").write_text(TABLES)
    (tmp_path / "e.csv").write_text(EDGES)
    files = {"tasks_csv": str(tmp_path / "t.csv"), "edges_csv": str(tmp_path / "e.csv"), "inputs_from": "h"}
    return {**files, "rescaled": True, "mean_flops": 1e6, "ccr": 0.5, "reference_speed": 1e3}


def test_tables_are_rescaled_by_hand(tables):
    """Mean work 200 becomes 1e6 flop; three edges of 40/3 bytes on average become 0.5 x 1e6 / 1e3 x 100 bytes."""
    tasks = sampled(**tables, reference_bandwidth=100)
    assert tasks.flops == pytest.approx([0.5e6, 1.5e6, 1e6])
    assert tasks.dependencies.size_bytes.tolist() == [37_500, 37_500, 75_000]
    assert tasks.staged.size_bytes.tolist() == [300_000]


def test_rescaled_tables_are_sampled_around_their_values(tables):
    """By half a spread at most, data that are shared alike, other replicates otherwise."""
    keys = {**tables, "heterogeneity": 1.0, "data_heterogeneity": 1.0, "reference_bandwidth": 100}
    draws = [sampled(**keys, replicate=k) for k in range(300)]
    work = np.array([tasks.flops for tasks in draws]) / [0.5e6, 1.5e6, 1e6]
    data = np.array([tasks.dependencies.size_bytes for tasks in draws]) / [37_500, 37_500, 75_000]
    assert ((work > 0.5) & (work <= 1.5)).all()
    assert work.mean(axis=0) == pytest.approx([1, 1, 1], abs=0.06)
    assert (data[:, 0] == data[:, 1]).all()
    assert (data[:, 0] != data[:, 2]).any()
    assert data.mean(axis=0) == pytest.approx([1, 1, 1], abs=0.06)
    again = sampled(**keys, replicate=7)
    assert (again.flops == draws[7].flops).all()


def test_no_data_cannot_be_rescaled(tables, tmp_path):
    """Zero times any factor is not the mean that is asked for."""
    (tmp_path / "e.csv").write_text("task,on\nb,a\n")
    del tables["inputs_from"]
    assert sampled(**tables | {"ccr": 0.0}).flops == pytest.approx([0.5e6, 1.5e6, 1e6])
    with pytest.raises(InputError, match=r"e\.csv|t\.csv.*ccr must be 0"):
        sampled(**tables)


@pytest.mark.parametrize(
    ("keys", "parts"),
    [
        ({}, ("shape is missing", "gaussian", "tasks_csv")),
        ({"shape": "star"}, ("shape", "star")),
        ({"shape": "fft", "size": 6}, ("size is 6", "power of two")),
        ({"shape": "fft", "depth": 4}, ("depth has no effect", "fft", "size")),
        ({"shape": "chains", "depth": 0}, ("depth",)),
        ({"shape": "layered", "width": 1.5}, ("width",)),
        ({"shape": "layered", "ccr": -1}, ("ccr",)),
        ({"shape": "layered", "tasks": 10_000_000, "workflows": 10}, ("100,000,000 tasks",)),
        ({"shape": "layered", "tasks": 1_000_000, "width": 0.9, "density": 1}, ("entries",)),
        ({"shape": "out_tree", "branches": 2, "depth": 1000}, ("tasks; at most",)),
        ({"shape": "gaussian", "size": 100_000}, ("tasks; at most",)),
        ({"shape": "layered", "mean_flops": 1e29, "ccr": 1e20}, ("bytes",)),
        ({"shape": "layered", "workflows": 3, "submit_times_s": [1.0]}, ("submit_times_s", "3")),
        ({"tasks_csv": "t.csv"}, ("edges_csv is missing",)),
        ({"edges_csv": "e.csv"}, ("tasks_csv is missing",)),
        ({"times_csv": "t.csv", "edges_csv": "e.csv", "tasks_csv": "t.csv"}, ("tasks_csv has no effect", "times_csv")),
        ({"times_csv": "t.csv", "edges_csv": "e.csv", "bag_csv": "b.csv"}, ("bag_csv has no effect", "times_csv")),
        ({"shape": "fft", "inputs_from": "h"}, ("inputs_from has no effect", "edges_csv")),
        ({"tasks_csv": "t.csv", "edges_csv": "e.csv", "ccr": 2}, ("ccr has no effect", "tasks_csv")),
        ({"shape": "fft", "rescaled": True}, ("rescaled has no effect", "edges_csv")),
        ({"times_csv": "t.csv", "edges_csv": "e.csv", "rescaled": True}, ("rescaled has no effect", "times_csv")),
        ({"tasks_csv": "t.csv", "edges_csv": "e.csv", "rescaled": True, "size": 4}, ("size has no effect",)),
    ],
)
def test_bad_keys_are_refused_in_a_line(keys, parts):
    """Naming the key."""
    with pytest.raises(InputError) as refused:
        sampled(**keys)
    assert "\n" not in str(refused.value)
    assert all(part in str(refused.value) for part in parts), str(refused.value)
