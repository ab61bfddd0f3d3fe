"""Workflows by the commands, on both drivers: the schedulers are those of workflows, and both drivers agree."""

from __future__ import annotations

import csv

import pytest

from gridsched.workloads.load import read_workload

IDS = [
    "cpop", "dls", "ecs", "ees", "hbmct", "heft", "heft_slack", "lookahead_heft", "peft", "ready_max_min", "ready_mct",
    "ready_met", "ready_min_min", "ready_olb", "ready_sufferage",
]  # fmt: skip
#: Two hosts with a link of their own to a router without limit: no two transfers of a fork to one host share time.
PLATFORM = """<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">
<config><prop id="network/model" value="CM02"/><prop id="network/crosstraffic" value="0"/></config>
<zone id="z" routing="Full"><host id="a" speed="1f"><prop id="wattage_per_state" value="1:1:2"/></host>
<host id="b" speed="1f"><prop id="wattage_per_state" value="1:1:2"/></host>
<link id="l" bandwidth="2Bps" latency="1s"/><route src="a" dst="b"><link_ctn id="l"/></route></zone></platform>
"""
TASKS = "id,flops\nfirst,4\nnear,6\nfar,5\nlast,1\n"
EDGES = "task,on,bytes\nnear,first,6\nfar,first,2\nlast,near,9\nlast,far,4\n"


@pytest.fixture
def files(tmp_path):
    """The options of a run of two ways through four tasks."""
    (tmp_path / "p.xml").write_text(PLATFORM)
    (tmp_path / "t.csv").write_text(TASKS)
    (tmp_path / "e.csv").write_text(EDGES)
    (tmp_path / "w.toml").write_text('kind = "workflow"\ntasks_csv = "t.csv"\nedges_csv = "e.csv"\n')
    return "--platform", tmp_path / "p.xml", "--workload", tmp_path / "w.toml"


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
def test_heft_by_hand_by_the_command(gridsched, files, driver):
    """near stays on a: 4-10. far's 2 bytes are on b at 4 + 1 + 1, it ends at 11, its 4 bytes are back at 14; 15."""
    done = gridsched("run", *files, "--scheduler", "heft", "--driver", driver, "--json")
    assert done.json["makespan_s"] == pytest.approx(15.0)


def test_without_network_data_take_no_time(gridsched, files):
    """far on a at 4-9, near on b at 4-10, last at 10-11."""
    done = gridsched("run", *files, "--scheduler", "ready_min_min", "--network", "none", "--json")
    assert done.json["makespan_s"] == pytest.approx(11.0)


def test_a_comparison_is_of_schedulers_of_workflows(gridsched, files):
    """If none is named."""
    done = gridsched("compare", *files, "--driver", "reference", "--json")
    assert sorted(row["scheduler"] for row in done.json["results"]) == IDS


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
@pytest.mark.parametrize("id", ["ready_min_min", "heft", "peft", "lookahead_heft", "dls", "hbmct", "heft_slack"])
@pytest.mark.parametrize(("size", "end"), [(20, 10.0), (2, 7.0)])
def test_a_task_runs_where_its_file_is_soonest(gridsched, files, tmp_path, driver, id, size, end):
    """Host a is half as fast: 10 flop there take 10 s; on b 5 s, and 1 s of latency and size / 2 s before that."""
    (tmp_path / "p.xml").write_text(PLATFORM.replace('id="b" speed="1f"', 'id="b" speed="2f"'))
    (tmp_path / "t.csv").write_text("id,flops\nonly,10\n")
    (tmp_path / "e.csv").write_text(f"task,on,bytes,file\nonly,,{size},raw\n")
    with (tmp_path / "w.toml").open("a") as stream:
        stream.write('inputs_from = "a"\n')
    done = gridsched("run", *files, "--scheduler", id, "--driver", driver, "--json")
    assert done.json["makespan_s"] == pytest.approx(end)


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
@pytest.mark.parametrize(("size", "end"), [(30, 16.0), (16, 14.0)])
def test_heft_counts_files_and_data_together(gridsched, files, tmp_path, driver, size, end):
    """first takes 4 s on b. second takes 10 s on a, with first's 2 bytes there at 6 s; on b 5 s after its file.

    The file of 30 bytes is on b at 1 + 30 / 2 = 16 s, so that a is better; of 16 bytes it is there at 9 s.
    """
    (tmp_path / "p.xml").write_text(PLATFORM.replace('id="b" speed="1f"', 'id="b" speed="2f"'))
    (tmp_path / "t.csv").write_text("id,flops\nfirst,8\nsecond,10\n")
    (tmp_path / "e.csv").write_text(f"task,on,bytes,file\nsecond,first,2,\nsecond,,{size},raw\n")
    with (tmp_path / "w.toml").open("a") as stream:
        stream.write('inputs_from = "a"\n')
    done = gridsched("run", *files, "--scheduler", "heft", "--driver", driver, "--json")
    assert done.json["makespan_s"] == pytest.approx(end)


@pytest.mark.parametrize(
    ("edges", "more", "parts"),
    [
        ("task,on,bytes,file\nfar,,5,raw\n", "", ("e.csv, line 2", "'raw'", "inputs_from")),
        ("task,on,bytes,file\nfar,,5,\n", 'inputs_from = "a"\n', ("e.csv, line 2", "the file's name")),
        ("task,on,bytes,file\nfar,,5,raw\nnear,,6,raw\n", 'inputs_from = "a"\n', ("e.csv, line 3", "'raw' has 5")),
        ("task,on,bytes,file\nfar,,5,raw\n", 'inputs_from = "zz"\n', ("p.xml", "'zz'", "a, b")),
        (EDGES, 'inputs_from = "a"\n', ("e.csv", "tasks make all files")),
    ],
)
def test_bad_files_that_no_task_makes_are_refused_in_a_line(refused, files, tmp_path, edges, more, parts):
    """Naming the line and the file, or the host."""
    (tmp_path / "e.csv").write_text(edges)
    with (tmp_path / "w.toml").open("a") as stream:
        stream.write(more)
    message = refused("run", *files, "--scheduler", "ready_min_min", "--driver", "reference")
    assert all(part in message for part in parts), message


BAG = "id,flops,submit_time_s,afterok\n7,2,0,\n8,3,1,7\n"


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
def test_a_bag_beside_a_workflow(gridsched, files, tmp_path, driver):
    """On one host: 16 flop of the workflow and 5 of the bag, of which 8 waits for 7; no data cross a link."""
    (tmp_path / "b.csv").write_text(BAG)
    with (tmp_path / "w.toml").open("a") as stream:
        stream.write('bag_csv = "b.csv"\n')
    tasks = read_workload(tmp_path / "w.toml")
    assert tasks.labels.tolist() == ["first", "near", "far", "last", "bag7", "bag8"]
    assert tasks.attributes["workflow"].texts == ["", "", "", "", "bag", "bag"]
    pairs = tasks.dependencies
    found = list(zip(pairs.task.tolist(), pairs.on.tolist(), pairs.size_bytes.tolist(), strict=True))
    assert found == [(1, 0, 6.0), (2, 0, 2.0), (3, 1, 9.0), (3, 2, 4.0), (5, 4, 0.0)]
    done = gridsched("run", *files, "--scheduler", "ready_mct", "--hosts-off", "b", "--driver", driver, "--json")
    assert done.json["makespan_s"] == pytest.approx(21.0)


def test_tasks_without_edges_stand_in_the_same_tables(gridsched, files, tmp_path):
    """One free task of 5 flop at 0 s on b beside first on a; the workflow then ends as if alone, at 15 s or earlier."""
    (tmp_path / "t.csv").write_text(TASKS + "free,5\n")
    done = gridsched("run", *files, "--scheduler", "heft", "--driver", "reference", "--json")
    assert done.json["tasks_finished"] == 5


def test_a_stream_of_workflows_is_seen_as_it_comes(gridsched, files, tmp_path):
    """The second of two equal workflows comes at 100 s, when the first has ended after 15 s: 115 s."""
    rows, edges = TASKS.splitlines(), EDGES.splitlines()
    again = [f"{name}2,{flops},100" for name, flops in (row.split(",") for row in rows[1:])]
    (tmp_path / "t.csv").write_text("\n".join(["id,flops,submit_time_s", *(f"{row},0" for row in rows[1:]), *again]))
    more = [f"{task}2,{on}2,{size}" for task, on, size in (edge.split(",") for edge in edges[1:])]
    (tmp_path / "e.csv").write_text("\n".join([*edges, *more]))
    done = gridsched("run", *files, "--scheduler", "heft", "--driver", "reference", "--json")
    assert done.json["makespan_s"] == pytest.approx(115.0)


@pytest.mark.parametrize(
    ("bag", "more", "parts"),
    [
        (BAG.replace("afterok", "deadline_s"), "", ("b.csv", "deadlines")),
        ("id,flops,input_bytes\n1,2,3\n", "", ("b.csv", "bytes")),
        ("id,flops\n1,-2\n", "", ("b.csv, line 2", "-2")),
        (BAG, 'times_csv = "t.csv"\n', ("bag_csv", "times_csv")),
    ],
)
def test_bad_bags_beside_are_refused_in_a_line(refused, files, tmp_path, bag, more, parts):
    """Naming the file."""
    (tmp_path / "b.csv").write_text(bag)
    with (tmp_path / "w.toml").open("a") as stream:
        stream.write(f'bag_csv = "b.csv"\n{more}')
    message = refused("run", *files, "--scheduler", "heft", "--driver", "reference")
    assert all(part in message for part in parts), message


CORES = """<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">
<config><prop id="network/model" value="CM02"/><prop id="network/crosstraffic" value="0"/></config>
<zone id="z" routing="Full">
<host id="big" core="4" speed="10f"><prop id="wattage_per_state" value="8:8:20"/></host>
<host id="small" core="1" speed="1f"><prop id="wattage_per_state" value="1:1:2"/></host>
<link id="l" bandwidth="1Bps" latency="0s"/><route src="big" dst="small"><link_ctn id="l"/></route></zone></platform>"""


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
@pytest.mark.parametrize(
    ("id", "second"), [("heft", "c"), ("dls", "c"), ("ready_min_min", "b"), ("ready_max_min", "c")]
)
def test_tasks_of_several_cores_by_hand(gridsched, tmp_path, driver, id, second):
    """Behind a (0 to 2 s) b of three cores and c of two have no room beside each other on four; d takes all of them.

    Whichever is second, b and c end at 12 s and d at 13 s. 30 core-seconds of 3 W each above 8 W are 194 J, and the
    small host draws 13 J. The longest path, a, c, d, takes 9 s.
    """
    (tmp_path / "p.xml").write_text(CORES)
    (tmp_path / "t.csv").write_text("id,flops,cores\na,20,\nb,40,3\nc,60,2\nd,10,4\n")
    (tmp_path / "e.csv").write_text("task,on,bytes\nb,a,1\nc,a,1\nd,b,1\nd,c,1\n")
    (tmp_path / "w.toml").write_text('kind = "workflow"\ntasks_csv = "t.csv"\nedges_csv = "e.csv"\n')
    files = "--platform", tmp_path / "p.xml", "--workload", tmp_path / "w.toml", "--driver", driver
    done = gridsched("run", *files, "--scheduler", id, "--export", tmp_path / "x", "--json")
    assert done.json["makespan_s"] == pytest.approx(13.0, rel=1e-9)
    energies = [done.json["energy_model_j"]] + [done.json["energy_j"]] * (driver == "simgrid")
    assert energies == pytest.approx([207.0] * len(energies), rel=1e-9)
    assert done.json["schedule_length_ratio"] == pytest.approx(13 / 9)
    assert done.json["mean_slack_s"] == 0.0
    with (tmp_path / "x/executions.csv").open() as file:
        start = {row["job_id"]: float(row["starting_time"]) for row in csv.DictReader(file)}
    first = 2.0, 2.0 + (6.0 if second == "c" else 4.0)
    assert start == pytest.approx({"a": 0.0, "b": first[second == "c"], "c": first[second == "b"], "d": 12.0})
