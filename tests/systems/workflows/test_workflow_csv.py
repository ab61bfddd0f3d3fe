"""The two tables of a workflow: read in an order that holds, and refused in one line."""

from __future__ import annotations

import pytest

from gridsched.errors import InputError
from gridsched.workloads.load import read_workload

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
