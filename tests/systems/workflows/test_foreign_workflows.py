"""WfFormat, DAX and DOT become tables: work, edges by files and by parents; what is wrong is refused in a line."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from gridsched.systems.workflows.recorded_tasks import Recorded, _makers_for
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


#: The same in WfFormat 1.4, on a machine of 3 MHz; task b had four cores.
OLD = {
    "name": "small",
    "schemaVersion": "1.4",
    "workflow": {
        "machines": [{"nodeName": "m", "cpu": {"count": 8, "speed": 3}}],
        "tasks": [
            {
                "name": "b",
                "id": "2",
                "runtime": 4,
                "cores": 4,
                "machine": "m",
                "parents": ["a"],
                "files": [
                    {"link": "input", "name": "x", "size": 500},
                    {"link": "input", "name": "raw", "sizeInBytes": 9},
                ],
            },
            {
                "name": "a",
                "id": "1",
                "runtimeInSeconds": 2.5,
                "parents": [],
                "files": [
                    {"link": "input", "name": "raw", "size": 9},
                    {"link": "output", "name": "x", "sizeInBytes": 500},
                ],
            },
            {"name": "c", "id": "3", "runtime": 0, "parents": ["1"]},
        ],
    },
}
DOT = """digraph G { // by hand
/* as SimGrid reads it */ edge [alpha=1];
root [size="0"]; end [size=0];
a [size="30", alpha="0.5"];
b [size="40"]
"c" [size=10];
root -> a; a -> b [size="500"] ; a -> c
b -> c; b -> c [size=20]; c -> end [size="3"];
}
"""


def imported(gridsched, path, *words, speed="10"):
    """Return the tasks of an imported file, and the messages."""
    output = path.with_name("made.toml")
    speeds = [] if speed is None else ["--reference-speed", speed]
    done = gridsched("workflow", "import", path, "-o", output, *speeds, *words)
    assert done.status == 0, done.err
    return read_workload(output), done.err


def edges_of(tasks):
    """Return (task, on, bytes) by names."""
    pairs, name = tasks.dependencies, tasks.labels.tolist()
    return sorted((name[t], name[o], s) for t, o, s in zip(pairs.task, pairs.on, pairs.size_bytes, strict=True))


def test_wf_format(gridsched, tmp_path):
    """10 flop/s: a has 25 flop; b has file x of it, c nothing; no task makes raw, and c took no time."""
    path = tmp_path / "w.json"
    path.write_text(json.dumps(WF))
    tasks, said = imported(gridsched, path)
    flops = dict(zip(tasks.labels.tolist(), tasks.flops.tolist(), strict=True))
    assert flops == pytest.approx({"a": 25.0, "b": 40.0, "c": 1e-5})
    assert edges_of(tasks) == [("b", "a", 500.0), ("c", "a", 0.0)]
    assert "1 file that no task makes" in said
    assert "1 task without run time" in said


def test_dax(gridsched, tmp_path):
    """A file that two make goes from the one that the reader names as parent."""
    path = tmp_path / "w.dax"
    path.write_text(DAX)
    tasks, said = imported(gridsched, path)
    assert sorted(tasks.flops.tolist()) == pytest.approx([1e-5, 25.0, 40.0])
    assert edges_of(tasks) == [("b", "a", 500.0), ("c", "a", 7.0)]
    assert "'log' is made by 2 tasks" in said


def flops_of(tasks):
    """Return the work of each task by its name."""
    return dict(zip(tasks.labels.tolist(), tasks.flops.tolist(), strict=True))


SUBWORKFLOWS = """<adag name="t"><file name="s.dax"/>
<job id="a" runtime="1"><uses file="x" link="output"/><uses file="y" link="output" size="8"/></job>
<dax id="s" file="s.dax"><uses name="x" link="input"/></dax><dag id="d" file="d.dag"/>
<job id="b" runtime="2"><uses file="x" link="input"/><uses file="y" link="input"/>
<uses file="z" link="checkpoint"/></job>
<job id="c" runtime="3"><uses file="y" link="input" size="8"/></job>
<child ref="s"><parent ref="a"/></child><child ref="d"><parent ref="s"/></child><child ref="c"><parent ref="d"/></child>
<child ref="b"><parent ref="s"/></child></adag>"""


def test_what_a_dax_has_beside_jobs_is_reported(gridsched, tmp_path):
    """Sub-workflows s and d are left out: b and c wait for a. No use of x has a size, and one of y has none.

    The link of z is neither input nor output.
    """
    path = tmp_path / "w.dax"
    path.write_text(SUBWORKFLOWS)
    tasks, said = imported(gridsched, path)
    assert edges_of(tasks) == [("b", "a", 0.0), ("b", "a", 8.0), ("c", "a", 8.0)]
    for part in ("<dax> left out ('s')", "<dag> left out ('d')", "1 file has no size", "'x'", "'z'", "'checkpoint'"):
        assert part in said, said


def test_sizes_of_wf_format_that_are_missing_are_reported(gridsched, tmp_path):
    """File x of WF has no size: b gets 0 bytes of a, and a line names it."""
    content = json.loads(json.dumps(WF))
    del content["workflow"]["specification"]["files"][0]["sizeInBytes"]
    path = tmp_path / "w.json"
    path.write_text(json.dumps(content))
    tasks, said = imported(gridsched, path)
    assert edges_of(tasks) == [("b", "a", 0.0), ("c", "a", 0.0)]
    assert "1 file has no size" in said
    assert "'x' of task 'b'" in said


class Unread(dict):
    """Makers that may be looked up, but not gone through."""

    def __iter__(self):
        raise AssertionError("all makers are gone through")


def test_the_makers_of_a_file_are_not_gone_through_for_each_reader():
    """What n tasks make and n read costs n look-ups: a reader's parents in the order of the makers."""
    made_by = Unread({f"t{k}": k for k in range(1000)})
    reader = Recorded("w.json, line 1", "r", parents={"t7": 0.0, "other": 0.0, "t3": 0.0})
    assert _makers_for(reader, "x", made_by) == ["t3", "t7"]
    assert _makers_for(Recorded("w.json, line 1", "t5"), "x", made_by) == []


def test_wf_format_1_4(gridsched, tmp_path):
    """Parents by name or by id; 3 MHz are 3e6 flop/s; b had four cores for 4 s; a and c ran on the only machine."""
    path = tmp_path / "w.json"
    path.write_text(json.dumps(OLD))
    tasks, said = imported(gridsched, path, speed=None)
    assert flops_of(tasks) == pytest.approx({"a": 7.5e6, "b": 48e6, "c": 3.0})
    assert edges_of(tasks) == [("b", "a", 500.0), ("c", "a", 0.0)]
    assert "clock rate of the task's machine, 3e+06 flop/s" in said
    assert "1 task ran on several cores" in said
    tasks, said = imported(gridsched, path, "--force")
    assert flops_of(tasks) == pytest.approx({"a": 25.0, "b": 160.0, "c": 1e-5})
    assert "--reference-speed, 10 flop/s" in said


def test_several_cores_of_a_task(gridsched, refused, tmp_path):
    """b had four cores for 4 s: 4 s at 10 flop/s are 40 flop, on one core or each of four; else the file is refused."""
    path = tmp_path / "w.json"
    path.write_text(json.dumps(OLD))
    tasks, said = imported(gridsched, path, "--several-cores", "time")
    assert flops_of(tasks) == pytest.approx({"a": 25.0, "b": 40.0, "c": 1e-5})
    assert "1 task ran on several cores, at most 4" in said
    tasks, said = imported(gridsched, path, "--several-cores", "parallel", "--force")
    assert flops_of(tasks) == pytest.approx({"a": 25.0, "b": 40.0, "c": 1e-5})
    assert dict(zip(tasks.labels.tolist(), tasks.size.tolist(), strict=True)) == {"a": 1, "b": 4, "c": 1}
    assert "at most 4: they take as many cores of one host" in said
    words = ("--reference-speed", "10", "-o", tmp_path / "none.toml", "--several-cores", "refuse")
    message = refused("workflow", "import", path, *words)
    assert all(part in message for part in ("w.json, line 1", "'b'", "4 cores", "--several-cores"))
    path.write_text(json.dumps(WF))  # without cores
    imported(gridsched, path, "--several-cores", "refuse", "--force")


def test_work_by_the_machine_of_each_task(gridsched, refused, tmp_path):
    """a ran at 2 MHz and b at 5 MHz; c names two machines that differ, and is refused by its line."""
    content = copy.deepcopy(WF)
    execution = content["workflow"]["execution"]
    execution["machines"] = [
        {"nodeName": name, "cpu": {"speedInMHz": rate}} for name, rate in (("p", 2), ("q", 5), ("r", 5))
    ]
    for task, machines in zip(execution["tasks"], (["p"], ["q", "r"], ["q"]), strict=True):
        task["machines"] = machines
    path = tmp_path / "w.json"
    path.write_text(json.dumps(content, indent=1))
    tasks, said = imported(gridsched, path, speed=None)
    assert flops_of(tasks) == pytest.approx({"a": 5e6, "b": 20e6, "c": 5.0})
    assert "2e+06 to 5e+06 flop/s" in said
    execution["tasks"][2]["machines"] = ["p", "q"]
    path.write_text(text := json.dumps(content, indent=1))
    line = text[: text.index('"id": "c"')].count("\n") + 1
    message = refused("workflow", "import", path, "-o", tmp_path / "other.toml")
    assert f"w.json, line {line}: " in message
    assert "'c'" in message
    assert "--reference-speed" in message


def test_dot(gridsched, tmp_path):
    """Sizes are flop and byte; two edges of one pair add up; the empty ends are left out."""
    path = tmp_path / "w.dot"
    path.write_text(DOT)
    tasks, said = imported(gridsched, path, speed=None)
    assert flops_of(tasks) == {"a": 30.0, "b": 40.0, "c": 10.0}
    assert edges_of(tasks) == [("b", "a", 500.0), ("c", "a", 0.0), ("c", "b", 20.0)]
    assert "results of 3 bytes" in said


def test_the_root_of_dot_sends_files(gridsched, tmp_path):
    """Data of an empty root are files that no task makes; a root that works is a task."""
    path = tmp_path / "w.dot"
    path.write_text(DOT.replace("root -> a", 'root -> a [size="70"]'))
    tasks, said = imported(gridsched, path, "--inputs-from", "h")
    assert (tasks.staged.host, tasks.staged.task.tolist(), tasks.staged.size_bytes.tolist()) == ("h", [0], [70.0])
    assert "1 file that no task makes, 70 bytes, is sent from h" in said
    path.write_text(DOT.replace('root [size="0"]', 'root [size="5"]'))
    tasks, _ = imported(gridsched, path, "--force")
    assert flops_of(tasks)["root"] == 5.0


@pytest.mark.parametrize(("name", "text"), [("w.json", json.dumps(WF)), ("w.json", json.dumps(OLD))])
def test_files_that_no_task_makes(gridsched, tmp_path, name, text):
    """File raw of 9 bytes lies on the host that is named; a and b read it."""
    path = tmp_path / name
    path.write_text(text)
    tasks, said = imported(gridsched, path, "--inputs-from", "h")
    labels, staged = tasks.labels.tolist(), tasks.staged
    assert sorted(labels[task] for task in staged.task) == ["a", "b"]
    assert set(staged.size_bytes.tolist()) == {9.0}
    assert len(set(staged.file.tolist())) == 1
    assert "1 file that no task makes, 9 bytes, is sent from h" in said


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
        ("w.json", changed(("schemaVersion",), "1.3"), ("1.3", "1.4")),
        ("w.json", changed((*TASK, "parents"), ["zz"]), ("'b'", "'zz'")),
        ("w.json", changed((*TASK, "parents"), 5), ("'b'", "parents")),
        ("w.json", changed((*TASK, "id"), "a"), ("'a'", "already")),
        ("w.json", changed(("workflow", "execution", "tasks", 1, "runtimeInSeconds"), -1), ("'b'", "-1")),
        ("w.json", changed(("workflow", "execution", "tasks", 1, "runtimeInSeconds"), "nan"), ("'b'", "nan")),
        ("w.json", changed(("workflow", "specification", "tasks", 1, "parents"), ["b"]), ("w.json, line ", "a cycle")),
        ("w.json", changed((*TASK, "parents"), ["b"]), ("'b'", "itself")),
        ("w.json", changed((*TASK, "inputFiles"), ["two\nlines"]), ("not a name of a file",)),
        ("w.json", json.dumps(OLD).replace('"c"', f'"{"x" * 1001}"'), ("'xxx", "not a name of a task")),
        ("w.json", changed(("workflow", "specification", "files", 0, "sizeInBytes"), -5), ("'x'", "'b'", "-5")),
        ("w.json", changed(("workflow", "execution", "tasks", 0, "coreCount"), 1e9), ("'a'", "coreCount")),
        ("w.dax", DAX.replace('runtime="4"', 'runtime="x"'), ("line 4", "'b'", "'x'")),
        ("w.dax", DAX.replace('link="input" size="500"', 'link="input" size="-5"'), ("line 4", "'x'", "'b'", "-5")),
        ("w.dax", DAX.replace('<child ref="c"><parent ref="a"/></child>', ""), ("line 5", "'log'", "'a'", "'b'")),
        ("w.dax", DAX.replace('<child ref="b">', '<child ref="zz">'), ("line 6", "'zz'")),
        ("w.dax", DAX.replace("</adag>", ""), ("w.dax, line",)),
        ("w.dax", "<platform/>", ("<adag>", "<platform>")),
        ("w.txt", "", (".json",)),
        ("w.dot", DOT.replace("digraph", "graph"), ("line 1", "'digraph'")),
        ("w.dot", DOT.replace('size="30"', 'size="-30"'), ("line 4", "'a'", "-30")),
        ("w.dot", DOT.replace('size="500"', 'size="many"'), ("line 7", "a -> b", "'many'")),
        ("w.dot", DOT.replace('b [size="40"]', "b"), ("'b'", "no size")),
        ("w.dot", DOT.replace("b -> c", "b -> b"), ("'b'", "itself")),
        ("w.dot", DOT.replace("b -> c", "b -> a"), ("a cycle",)),
        ("w.dot", DOT.replace("b -> c", "subgraph s { b }"), ("line 8", "subgraphs")),
        ("w.dot", DOT.replace("b -> c", "b -> c [size=<i>]"), ("line 8", "'<i>]")),
        ("w.dot", DOT.replace("b -> c", 'b [size="4"]'), ("line 8", "'b'", "already")),
        ("w.dot", DOT.replace("}", ""), ("the end of the file",)),
        ("w.dot", "digraph {" + "a -> " * 100_000, ("the end of the file",)),
        ("w.json", json.dumps(OLD).replace('"output"', '"inout"'), ("w.json, line ", "'a'", "inout")),
        ("w.json", json.dumps(OLD).replace('["a"]', '["zz"]'), ("'b'", "'zz'")),
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


WORKFLOWS = Path(__file__).resolve().parents[4] / "shared/data/workflows"
NAMES = (
    "bacass-dirt02-001.json",
    "blast-chameleon-small-001.json",
    "epigenomics-chameleon-hep-1seq-100k-001.json",
    "helloworld-chain-5-chameleon.json",
    "montage-chameleon-dss-05d-001.json",
    "srasearch-chameleon-10a-003.json",
    "Epigenomics_100.dax.xml",
    "Montage_25.dax.xml",
)


def platform_of_pairs():
    """Return four hosts, each two of which have a link on which every transfer has the whole bandwidth."""
    hosts = [("p", 9.8e9), ("q", 7.6e9), ("r", 5e9), ("s", 4.8e9)]
    pairs = [(a, b) for k, (a, _) in enumerate(hosts) for b, _ in hosts[k + 1 :]]
    lines = [
        *(f'<host id="{n}" speed="{v}f"><prop id="wattage_per_state" value="90:95:200"/></host>' for n, v in hosts),
        *(
            f'<link id="l{k}" bandwidth="{100 + 7 * k}MBps" latency="{50 + k}us" sharing_policy="FATPIPE"/>'
            for k in range(len(pairs))
        ),
        *(f'<route src="{a}" dst="{b}"><link_ctn id="l{k}"/></route>' for k, (a, b) in enumerate(pairs)),
    ]
    return (
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        '<config><prop id="network/model" value="CM02"/><prop id="network/crosstraffic" value="0"/></config>'
        f'<zone id="z" routing="Full">{"".join(lines)}</zone></platform>'
    )


OTHERS = (
    "cpop", "dls", "ecs", "ees", "hbmct", "heft_slack", "lookahead_heft", "peft", "ready_max_min", "ready_mct",
    "ready_met", "ready_olb", "ready_sufferage",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "scheduler", ["heft", "ready_min_min", *(pytest.param(id, marks=pytest.mark.long) for id in OTHERS)]
)
def test_workflows_of_others_run_alike_on_both_drivers(gridsched, tmp_path, name, scheduler):
    """Their files staged in, too: no two transfers share a link, so that times and joules are equal to 1e-9."""
    if not (WORKFLOWS / name).exists():
        pytest.skip("shared/data/workflows is not in this checkout")
    (tmp_path / "p.xml").write_text(platform_of_pairs())
    words = ("--reference-speed", "4.2e9", "--inputs-from", "p", "-o", tmp_path / "w.toml")
    assert gridsched("workflow", "import", WORKFLOWS / name, *words).status == 0
    files = ("--platform", tmp_path / "p.xml", "--workload", tmp_path / "w.toml", "--scheduler", scheduler, "--json")
    first, second = (gridsched("run", *files, "--driver", driver).json for driver in ("reference", "simgrid"))
    assert first["makespan_s"] == pytest.approx(second["makespan_s"], rel=1e-9)
    assert first["energy_model_j"] == pytest.approx(second["energy_j"], rel=1e-9)
