"""WfFormat and DAX become tables: work, edges by files, edges by parents alone; what is wrong is refused in a line."""

from __future__ import annotations

import copy
import json

import pytest

from gridsched.workloads.load import read_workload

WF = {
    "name": "small",
    "schemaVersion": "1.5",
    "workflow": {
        "specification": {
            "tasks": [
                {"id": "b", "parents": ["a"], "children": [], "inputFiles": ["x", "raw"], "outputFiles": []},
                {"id": "a", "parents": [], "children": ["b", "c"], "inputFiles": ["raw"], "outputFiles": ["x"]},
                {"id": "c", "parents": ["a"], "children": [], "inputFiles": [], "outputFiles": []},
            ],
            "files": [{"id": "x", "sizeInBytes": 500}, {"id": "raw", "sizeInBytes": 9}],
        },
        "execution": {
            "tasks": [
                {"id": "a", "runtimeInSeconds": 2.5},
                {"id": "b", "runtimeInSeconds": 4},
                {"id": "c", "runtimeInSeconds": 0},
            ]
        },
    },
}
DAX = """<?xml version="1.0"?>
<adag xmlns="http://pegasus.isi.edu/schema/DAX" version="2.1">
<job id="a" runtime="2.5"><uses file="x" link="output" size="500"/><uses file="log" link="output" size="7"/></job>
<job id="b" runtime="4"><uses file="x" link="input" size="500"/><uses file="log" link="output" size="8"/></job>
<job id="c" runtime="0"><uses file="log" link="input" size="7"/></job>
<child ref="b"><parent ref="a"/></child>
<child ref="c"><parent ref="a"/></child>
</adag>
"""


def imported(gridsched, path, *words):
    """Return the tasks of an imported file, and what was said."""
    output = path.with_name("made.toml")
    done = gridsched("workflow", "import", path, "--reference-speed", "10", "-o", output, *words)
    assert done.status == 0, done.err
    return read_workload(output), done.err


def edges_of(tasks):
    """Return (task, on, bytes) by names."""
    pairs, name = tasks.dependencies, tasks.labels.tolist()
    return sorted((name[t], name[o], s) for t, o, s in zip(pairs.task, pairs.on, pairs.size_bytes, strict=True))


def test_wf_format(gridsched, tmp_path):
    """10 flop/s: a has 25 flop; b has file x of it, c nothing; raw is made by nobody, and c took no time."""
    path = tmp_path / "w.json"
    path.write_text(json.dumps(WF))
    tasks, said = imported(gridsched, path)
    flops = dict(zip(tasks.labels.tolist(), tasks.flops.tolist(), strict=True))
    assert flops == pytest.approx({"a": 25.0, "b": 40.0, "c": 1e-5})
    assert edges_of(tasks) == [("b", "a", 500.0), ("c", "a", 0.0)]
    assert "1 file that no task makes" in said
    assert "1 task of no time" in said


def test_dax(gridsched, tmp_path):
    """A file that two make goes from the one that the reader names as parent."""
    path = tmp_path / "w.dax"
    path.write_text(DAX)
    tasks, said = imported(gridsched, path)
    assert sorted(tasks.flops.tolist()) == pytest.approx([1e-5, 25.0, 40.0])
    assert edges_of(tasks) == [("b", "a", 500.0), ("c", "a", 7.0)]
    assert "'log' is made by 2 tasks" in said


def changed(path, value):
    """Return WF with another value at a path of keys."""
    content = copy.deepcopy(WF)
    at = content
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return json.dumps(content)


TASK = ("workflow", "specification", "tasks", 0)


@pytest.mark.parametrize(
    ("name", "text", "parts"),
    [
        ("w.json", "{", ("no readable JSON",)),
        ("w.json", "[" * 100_000, ("no readable JSON",)),
        ("w.json", "[]", ("schemaVersion",)),
        ("w.json", changed(("schemaVersion",), "1.3"), ("1.3", "1.5")),
        ("w.json", changed((*TASK, "parents"), ["zz"]), ("'b'", "'zz'")),
        ("w.json", changed((*TASK, "parents"), 5), ("'b'", "parents")),
        ("w.json", changed((*TASK, "id"), "a"), ("'a'", "already")),
        ("w.json", changed(("workflow", "execution", "tasks", 1, "runtimeInSeconds"), -1), ("'b'", "-1")),
        ("w.json", changed(("workflow", "execution", "tasks", 1, "runtimeInSeconds"), "nan"), ("'b'", "nan")),
        ("w.json", changed(("workflow", "specification", "tasks", 1, "parents"), ["b"]), ("a cycle",)),
        ("w.dax", DAX.replace('runtime="4"', 'runtime="x"'), ("line 4", "'b'", "'x'")),
        ("w.dax", DAX.replace('link="input" size="500"', 'link="input" size="-5"'), ("line 4", "'x'", "'b'", "-5")),
        ("w.dax", DAX.replace('<child ref="c"><parent ref="a"/></child>', ""), ("line 5", "'log'", "'a'", "'b'")),
        ("w.dax", DAX.replace('<child ref="b">', '<child ref="zz">'), ("line 6", "'zz'")),
        ("w.dax", DAX.replace("</adag>", ""), ("w.dax, line",)),
        ("w.dax", "<platform/>", ("<adag>", "<platform>")),
        ("w.txt", "", (".json",)),
    ],
)
def test_bad_files_are_refused_in_a_line(refused, tmp_path, name, text, parts):
    """With the file and the task, and nothing is written."""
    path = tmp_path / name
    path.write_text(text)
    message = refused("workflow", "import", path, "--reference-speed", "10", "-o", tmp_path / "made.toml")
    assert all(part in message for part in parts), message


def test_a_speed_that_is_none_is_refused(refused, tmp_path):
    """Work is time times it."""
    path = tmp_path / "w.json"
    path.write_text(json.dumps(WF))
    assert "--reference-speed" in refused(
        "workflow", "import", path, "--reference-speed", "0", "-o", tmp_path / "m.toml"
    )
