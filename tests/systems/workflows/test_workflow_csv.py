"""The two tables of a workflow: read in an order that holds, and refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsched.errors import InputError
from gridsched.workloads.load import read_workload

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
TASKS = "id,flops\nend,3\nbegin,1\nmiddle,2\n"
EDGES = "task,on,bytes,file\nend,middle,5,\nend,begin,7,f\nmiddle,begin,7,f\n"


def written(folder, tasks=TASKS, edges=EDGES):
    """Write a workflow; return its generator file."""
    (folder / "t.csv").write_text(tasks)
    (folder / "e.csv").write_text(edges)
    path = folder / "w.toml"
    path.write_text('kind = "workflow"\ntasks_csv = "t.csv"\nedges_csv = "e.csv"\n')
    return path


def test_tasks_stand_behind_those_they_wait_for(tmp_path):
    """In the file the last comes first; two edges share file f of the first task."""
    tasks = read_workload(written(tmp_path))
    assert tasks.labels.tolist() == ["begin", "middle", "end"]
    assert tasks.flops.tolist() == [1.0, 2.0, 3.0]
    pairs = tasks.dependencies
    rows = sorted(zip(pairs.task.tolist(), pairs.on.tolist(), pairs.size_bytes.tolist(), pairs.item, strict=True))
    assert [row[:3] for row in rows] == [(1, 0, 7.0), (2, 0, 7.0), (2, 1, 5.0)]
    assert rows[0][3] == rows[1][3] >= 0 > rows[2][3]


def test_cores_of_tasks_read_back(gridsched, tmp_path):
    """They go with their task, an empty cell is one core, and what is written again has them, beside a bag of ones."""
    path = written(tmp_path, "id,flops,cores\nend,3,2\nbegin,1,\nmiddle,2,4\n")
    tasks = read_workload(path)
    assert dict(zip(tasks.labels.tolist(), tasks.size.tolist(), strict=True)) == {"begin": 1, "middle": 4, "end": 2}
    (tmp_path / "bag.csv").write_text("id,flops\n1,9\n")
    path.write_text(path.read_text() + 'bag_csv = "bag.csv"\n')
    assert gridsched("workload", "generate", path, "-o", tmp_path / "again.toml").status == 0
    again = read_workload(tmp_path / "again.toml")
    assert sorted(zip(again.flops.tolist(), again.size.tolist(), strict=True)) == [(1, 1), (2, 4), (3, 2), (9, 1)]


def test_workflows_come_one_after_the_other(tmp_path):
    """The order is that of the submissions, whatever the file's."""
    tasks = read_workload(written(tmp_path, "id,flops,submit_time_s\nb,1,9\na,1,9\nc,2,0\n", "task,on\nb,a\n"))
    assert (tasks.labels.tolist(), tasks.submit_time_s.tolist()) == (["c", "a", "b"], [0.0, 9.0, 9.0])


@pytest.mark.parametrize(
    ("tasks", "edges", "parts"),
    [
        (TASKS, "task,on\nend,nobody\n", ("e.csv, line 2", "'nobody'")),
        (TASKS, "task,on\nend,end\n", ("line 2", "itself")),
        (TASKS, EDGES + "begin,end,1,\n", ("cycle", "'begin'")),
        (TASKS, "task,on,bytes\nend,begin,-1\n", ("line 2", "bytes", "-1")),
        (TASKS, "task,on,bytes,file\nend,begin,1,f\nmiddle,begin,2,f\n", ("line 3", "'f'")),
        (TASKS, "task,on\nend,begin\nend,begin\n", ("line 3", "line 2")),
        (TASKS + "end,4\n", EDGES, ("t.csv, line 5", "line 2")),
        ("id,flops\n", "task,on\n", ("no tasks",)),
        ("id,flops,submit_time_s\na,1,5\nb,1,0\n", "task,on\nb,a\n", ("line 2", "5 s", "'b'")),
        ("id,flops,cores\na,1,2\nb,1,0\n", "task,on\nb,a\n", ("t.csv, line 3", "cores", "0")),
    ],
)
def test_bad_tables_are_refused_in_a_line(tmp_path, tasks, edges, parts):
    """Each names the file, the line and the task."""
    with pytest.raises(InputError) as refused:
        read_workload(written(tmp_path, tasks, edges))
    message = str(refused.value)
    assert "\n" not in message
    assert all(part in message for part in parts), message


def test_a_cycle_is_told_by_an_edge_of_it(tmp_path):
    """A task behind the cycle is not blamed."""
    edges = "task,on\nbehind,a\na,b\nb,c\nc,a\n"
    with pytest.raises(InputError, match=r"line [345]: on .* a cycle"):
        read_workload(written(tmp_path, "id,flops\nbehind,1\na,1\nb,1\nc,1\n", edges))


TIMES = "id,a,b\nend,3,6\nbegin,,2\nmiddle,5,4\n"
HOSTS = """<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">
<zone id="z" routing="Full">{hosts}
<link id="l" bandwidth="1kBps" latency="0s"/><route src="{first}" dst="b"><link_ctn id="l"/></route></zone></platform>
"""
HOST = '<host id="{name}" speed="{speed}"><prop id="wattage_per_state" value="1:1:11,1:1:6"/></host>'


def written_times(folder, times=TIMES, edges="task,on\nend,middle\nmiddle,begin\n", first="a"):
    """Write a workflow of times by host; return the options of its run on two hosts of 3 and 7 flop/s."""
    (folder / "t.csv").write_text(times)
    (folder / "e.csv").write_text(edges)
    (folder / "w.toml").write_text('kind = "workflow"\ntimes_csv = "t.csv"\nedges_csv = "e.csv"\n')
    hosts = HOST.format(name=first, speed="3f,1.5f") + HOST.format(name="b", speed="7f,1f")
    (folder / "p.xml").write_text(HOSTS.format(hosts=hosts, first=first))
    return "--platform", folder / "p.xml", "--workload", folder / "w.toml", "--network", "none"


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
def test_times_by_host(gridsched, tmp_path, driver):
    """begin runs on b alone, 0-2; middle there, 2-6; end on a, 6-9: 9 s at 10 W more than the two idle hosts' 2 W."""
    files = written_times(tmp_path)
    done = gridsched("run", *files, "--scheduler", "mct", "--driver", driver, "--json").json
    assert done["makespan_s"] == pytest.approx(9.0)
    assert done["energy_j"] == pytest.approx(9 * 2 + 9 * 10)


def test_times_are_those_of_p_state_0(gridsched, tmp_path):
    """In P-state 1, a is half as fast and b a seventh: begin takes 14 s on b, middle 10 s and end 6 s on a."""
    files = written_times(tmp_path)
    done = gridsched("run", *files, "--scheduler", "mct", "--driver", "reference", "--pstate", "1", "--json").json
    assert done["makespan_s"] == pytest.approx(14.0 + 10.0 + 6.0)


def test_bounds_hold_for_times(gridsched, tmp_path):
    """Least works are 9 (3 s at 3 flop/s), 14 and 15 flop, whichever hosts are far slower: no bound is above a run."""
    files = written_times(tmp_path)
    rows = gridsched("compare", *files, "--schedulers", "mct,min_min,olb", "--driver", "reference", "--json").json
    assert len(rows["results"]) == 3
    for row in rows["results"]:
        assert 38 / 10 <= row["makespan_bound_s"] <= row["makespan_s"]
        assert row["energy_bound_j"] <= row["energy_j"]


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
@pytest.mark.parametrize(("scheduler", "makespan"), [("heft", 80.0), ("cpop", 86.0)])
def test_the_example_of_topcuoglu(gridsched, driver, scheduler, makespan):
    """As printed, times by host and 1 byte/s without contention: figures 3 and 4 of the paper."""
    files = "--platform", EXAMPLES / "topcuoglu.xml", "--workload", EXAMPLES / "topcuoglu.toml"
    done = gridsched("run", *files, "--scheduler", scheduler, "--driver", driver, "--json").json
    assert done["makespan_s"] == pytest.approx(makespan)


def test_times_that_are_written_read_back(gridsched, tmp_path):
    """`workload generate` copies the tables."""
    written_times(tmp_path)
    assert gridsched("workload", "generate", tmp_path / "w.toml", "-o", tmp_path / "again.toml").status == 0
    first, second = (read_workload(tmp_path / name).host_times for name in ("w.toml", "again.toml"))
    assert first.hosts == second.hosts == ("a", "b")
    assert first.time_s.tolist() == second.time_s.tolist() == [[float("inf"), 2.0], [5.0, 4.0], [3.0, 6.0]]


@pytest.mark.parametrize(
    ("times", "first", "parts"),
    [
        (TIMES.replace("5,4", "-5,4"), "a", ("t.csv, line 4", "-5")),
        (TIMES.replace("5,4", "nan,4"), "a", ("t.csv, line 4", "nan")),
        (TIMES.replace("5,4", ","), "a", ("line 4", "'middle'", "nowhere")),
        (TIMES.replace("5,4", "5"), "a", ("line 4", "2 cells")),
        (TIMES.replace("id,a,b", "id,a,a"), "a", ("appears twice",)),
        ("id,submit_time_s\nx,1\n", "a", ("no host",)),
        ("", "a", ("t.csv", "id")),
        (TIMES.replace("id,", f"id,{'h' * 3000},"), "a", ("t.csv", "names of hosts")),
        (TIMES, "c", ("'c'", "p.xml")),
        (TIMES.replace("id,a,b", "id,b,z"), "a", ("'a'",)),
        ("id,a,b,z\nend,1,1,1\nbegin,1,1,1\nmiddle,1,1,1\n", "a", ("'z'", "p.xml")),
    ],
)
def test_bad_times_are_refused_in_a_line(refused, tmp_path, times, first, parts):
    """With the file and the line, or the host that is missing."""
    files = written_times(tmp_path, times, first=first)
    message = refused("run", *files, "--scheduler", "mct", "--driver", "reference")
    assert all(part in message for part in parts), message
