"""Parallel workloads as CSV, read and written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.runs.study_document import shipped_study_file
from gridsched.workloads.generators import checked_parameters, generator_of
from gridsched.workloads.load import read_system_workload

# Tabulated times of parallel tasks: interpolation, what is refused, and the testbed's tables.

STUDIES = shipped_study_file("parallel_testbed").parent
CLUSTERS = "cluster,nodes,cores_per_node\na,40,1\nb,10,8\n"
#: Paper 001, table 1, row 1 on one cluster; a coarser one on the other.
ETC = """\
task_type,cluster,pstate,nodes,time_s,power_w
t1,a,0,1,100,7
t1,a,0,2,70,7
t1,a,0,4,50,7
t1,a,0,16,25,7
t1,a,0,32,30,7
t1,b,0,1,60,9
t1,b,0,4,20,9
t2,b,0,10,5,2
"""
TASKS = "id,submit_time_s,task_type,cores,priority,urgency,utility_class\n"


def generate(folder: Path, *, etc: str = ETC, tasks: str | None = None, **keys):
    """Generate from tables in a folder."""
    files = {"clusters_csv": CLUSTERS, "etc_csv": etc}
    if tasks is not None:
        files["tasks_csv"] = TASKS + tasks
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    values = {"kind": "parallel", **{name: f"{name}.csv" for name in files}, **keys}
    parameters = checked_parameters(values, "p.toml", folder=folder)
    return generator_of(parameters).generate(parameters)


def test_times_between_listed_nodes_are_linear(tmp_path: Path):
    """Table 1: 8 nodes lie between 4 (50 s) and 16 (25 s); listed ones are themselves."""
    tasks = "4,30,t1,8,2,0.1,0\n7,10,t1,32,1,0.2,3\n1,20,t2,80,3,0.6,1\n9,10,t1,16,1,0.2,3\n"
    whole = generate(tmp_path, tasks=tasks)
    estimates = whole.estimates
    assert whole.tasks.labels.tolist() == [7, 9, 1, 4]
    assert estimates.time_s[:, 0, 0].tolist() == [30.0, 25.0, np.inf, pytest.approx(50 - 100 / 12)]
    assert estimates.time_s[:, 1, 0].tolist() == pytest.approx([20, 60 - 40 / 3, 5, 60])
    assert estimates.nodes.tolist() == [[32, 4], [16, 2], [80, 10], [8, 1]]
    assert estimates.energy_j[0].ravel() == pytest.approx([30 * 32 * 7, 20 * 4 * 9])
    assert whole.tasks.utility.priority.tolist() == [1, 1, 3, 2]
    assert [host.name for host in whole.platform.hosts][40:42] == ["b-1", "b-2"]


def test_drawn_tasks_stay_within_what_is_listed(tmp_path: Path):
    """t1: 1 to 32 cores on a, as on b; t2 on the whole of b: 73 to 80 cores."""
    whole = generate(tmp_path, tasks_per_day=2000)
    for number, (least, most) in enumerate([(1, 32), (73, 80)]):
        cores = whole.tasks.width[whole.tasks.task_type == number]
        assert (cores.min(), cores.max()) == (least, most)
    assert np.isfinite(whole.estimates.shortest_times()).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": "1,0,t1,33,1,0,0\n"}, r"'t1' takes 33 nodes of cluster 'a', but .* 1 to 32"),
        ({"tasks": "1,0,t2,8,1,0,0\n"}, "takes 1 node of cluster 'b', but .* from 10 to 10"),
        ({"tasks": "1,0,t3,8,1,0,0\n"}, "line 2: task_type is 't3'"),
        ({"tasks": "1,0,t1,0,1,0,0\n"}, "line 2: cores is '0'"),
        ({"tasks": "1,0,t1,8,1,0,20\n"}, "line 2: utility_class is '20'; it must lie from 0 to 19"),
        ({"etc": ETC + "t1,a,1,4,60,5\n"}, "no line for task type 't1', cluster 'a', P-state 1"),
        ({"etc": ETC + "t1,a,1,3,60,5\n"}, "P-state 0 and 3 nodes, which line 10 lists"),
        ({"etc": ETC + "t1,a,0,4,60,5\n"}, "line 10: nodes is '4'; line 4 has the same task_type"),
        ({"etc": ETC + "t1,a,0,40,60,5\n"}, "line 10: power_w is '5.0'; other lines .* have 7"),
        ({"etc": ETC + "t1,c,0,40,60,5\n"}, "line 10: cluster is 'c'"),
        ({"etc": ETC + "t2,a,0,4,60,5\n"}, "'t2' has no number of cores whose nodes are listed"),
        ({"etc": ETC.splitlines()[0] + "\n"}, "no entries"),
        ({"general_task_types": 3}, "general_task_types has no effect beside etc_csv"),
        ({"task_type_shares": [1]}, "task_type_shares has 1 numbers; .* has 2 task types"),
    ],
)
def test_what_the_tables_do_not_tell_is_refused(tmp_path: Path, changes, message):
    """One line: which entry, what was found, what to do."""
    with pytest.raises(InputError, match=message):
        generate(tmp_path, **changes)


def test_the_testbeds_tables():
    """Tables 4 to 6 of the paper: nodes, times and energies as they are printed."""
    values = {
        "kind": "parallel",
        "clusters_csv": "parallel_testbed_clusters.csv",
        "etc_csv": "parallel_testbed_etc.csv",
        "tasks_per_day": 720,
        "warm_up_s": 0,
        "days": 0.125,
        "task_type_shares": [0.4, 0.1, 0.1, 0.4],
        "wave_amplitude": [0, 0],
    }
    parameters = checked_parameters(values, "p.toml", folder=STUDIES)
    whole = generator_of(parameters).generate(parameters)
    assert whole.types.task_type_names == ("IS.8", "MG.8", "MG.16", "IS_CG.8")
    estimates, types = whole.estimates, whole.tasks.task_type
    assert estimates.cores_per_node.tolist() == [1, 2, 4, 8]
    printed = {
        0: ([1675, 750, 552, 430], [25_962, 35_250, 17_388, 28_380], 8),
        1: ([1100, 712, np.inf, np.inf], [27_500, 41_296, np.inf, np.inf], 8),
        2: ([702, 500, 380, 326], [34_398, 55_000, 30_400, 50_530], 16),
        3: ([1039, 900, 700, 1366], [23_897, 47_700, 27_650, 105_865], 8),
    }
    assert set(types) == set(printed)
    for task, kind in enumerate(types.tolist()):
        time_s, energy_j, cores = printed[kind]
        assert whole.tasks.width[task] == cores
        assert estimates.time_s[task, :, 0].tolist() == time_s
        assert estimates.energy_j[task, :, 0] == pytest.approx(energy_j, rel=1e-12)


# Parallel workloads are written as files that are read again to the same workload.

#: GP_1 is too wide for the second cluster, where its times are those of the whole cluster only.
KEYS = """\
kind = "parallel"
seed = 3
replicate = 2
general_clusters = [[60, 4], [3, 8], [5, 16]]
special_clusters = [[5, 6]]
general_task_types = 4
special_task_types = [2]
core_bands = [[25, 1, 4], [50, 5, 39], [25, 65, -3]]
wide_from_cores = 65
tasks_per_day = 300
days = 0.5
warm_up_s = 3600
energy_budget_j = 1e8
parked_pstate = 2
"""
#: t2 has only the whole of b; on a some widths lie between the listed ones.
TABLES = {
    "c.csv": "cluster,nodes,cores_per_node\na,40,1\nb,10,8\n",
    "e.csv": "task_type,cluster,pstate,nodes,time_s,power_w\nt2,b,0,10,5,2\nt2,b,1,10,6,1\n"
    "t1,a,0,1,100.1,7\nt1,a,0,32,30,7\nt1,a,1,1,120,3\nt1,a,1,32,50,3\n",
    "w.toml": 'kind = "parallel"\nclusters_csv = "c.csv"\netc_csv = "e.csv"\ndays = 0.1\n',
}


def written(folder: Path, files: dict[str, str]) -> Path:
    """Write files, and generate the workload of ``w.toml`` as ``out/day.csv``."""
    for name, text in files.items():
        (folder / name).write_text(text)
    target = folder / "out" / "day.csv"
    target.parent.mkdir()
    assert main(["workload", "generate", str(folder / "w.toml"), "-o", str(target)]) == 0
    return target


def fields_of(record: object, *but: str) -> dict[str, object]:
    """Return the attributes of a record that are its values, by name."""
    return {name: value for name, value in vars(record).items() if name not in but}


def assert_same(one: object, other: object, *but: str) -> None:
    """Assert that all attributes are equal, arrays to the last bit."""
    first, second = fields_of(one, *but), fields_of(other, *but)
    assert first.keys() == second.keys()
    for name, value in first.items():
        if isinstance(value, np.ndarray):
            assert np.array_equal(value, second[name]), name
        else:
            assert value == second[name], name


@pytest.mark.parametrize(
    "files",
    [
        {"w.toml": KEYS},
        {"w.toml": KEYS + 'priority_of = "task"\nutility_classes = "plateau_linear"\nplateau_times = [2, 3]\n'},
        TABLES,
    ],
    ids=["drawn", "plateau_linear", "tables"],
)
def test_what_is_written_is_read_back_exactly(tmp_path: Path, files, capsys):
    """Clusters, times, powers, tasks, utility functions and rules, to the last bit."""
    target = written(tmp_path, files)
    assert "beside it day_clusters.csv, day_etc.csv, day_task_types.csv, day_classes.csv." in (capsys.readouterr().out)
    whole = read_system_workload(tmp_path / "w.toml")
    back = read_system_workload(target.with_suffix(".toml"))
    assert len(whole.tasks) > 50
    assert_same(back.tasks, whole.tasks, "name", "utility")
    assert_same(back.tasks.utility, whole.tasks.utility, "classes")
    assert_same(back.tasks.utility.classes, whole.tasks.utility.classes)
    assert_same(back.types, whole.types)
    assert_same(back.estimates, whole.estimates, "_all")
    assert back.platform.clusters == whole.platform.clusters
    assert back.platform.hosts == whole.platform.hosts
    assert (back.rules, back.window_s) == (whole.rules, whole.window_s)
    if "general_clusters" in files["w.toml"]:
        assert (~np.isfinite(whole.estimates.time_s[:, 1])).any()  # some tasks are too wide there


def test_written_files_written_again_are_the_same(tmp_path: Path):
    """What is read is written as it was, but for the order of the settings."""
    target = written(tmp_path, {"w.toml": KEYS})
    (tmp_path / "again").mkdir()
    again = tmp_path / "again" / "day.csv"
    words = ["workload", "generate", str(target.with_suffix(".toml")), "-o", str(again), "--quiet"]
    assert main(words) == 0
    assert {path.name: path.read_text() for path in again.parent.iterdir()} == {
        path.name: path.read_text() for path in target.parent.iterdir()
    }


def test_tables_serve_other_tasks_of_the_types(tmp_path: Path):
    """Without the tasks others are drawn, of the cores that the task types have."""
    toml = written(tmp_path, {"w.toml": KEYS}).with_suffix(".toml")
    kept = [line for line in toml.read_text().splitlines() if not line.startswith("tasks_csv")]
    toml.write_text("\n".join([*kept, "seed = 9", "tasks_per_day = 2000", ""]))
    whole = read_system_workload(toml)
    assert len(whole.tasks) > 800
    assert np.isfinite(whole.estimates.shortest_times()).all()


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ("t1,1,32\n", "t.csv: no line for task type 't2' of "),
        ("t1,1,32\nt2,80,79\n", "line 3: most_cores is '79'; it must be at least least_cores, 80"),
        ("t1,1,32\nt3,80,80\n", "line 3: task_type is 't3'; "),
        ("t1,1,32\nt1,1,32\n", "line 3: task_type is 't1'; line 2 has the same"),
        ("t1,0,32\n", "line 2: least_cores is '0'; it must lie from 1"),
        ("t1,1,90\nt2,80,80\n", "nodes of cluster 'a', but its times are listed from 1 to 32"),
    ],
)
def test_task_types_that_do_not_fit_are_refused(tmp_path: Path, capsys, types, message):
    """One line: which entry, what was found, what is allowed."""
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "t.csv").write_text("task_type,least_cores,most_cores\n" + types)
    toml = tmp_path / "w.toml"
    big = TABLES["c.csv"].replace("40,1", "45,1")
    (tmp_path / "c.csv").write_text(big)
    toml.write_text(TABLES["w.toml"] + 'task_types_csv = "t.csv"\n')
    assert main(["workload", "generate", str(toml), "-o", str(tmp_path / "day.csv")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "day.csv").exists()


def test_what_has_no_room_in_tables_is_refused(tmp_path: Path, capsys):
    """Jobs of a log go as their TOML; task types need the table that they are of."""
    (tmp_path / "l.swf").write_text("; UnixStartTime: 0\n")
    for keys, message in (
        ('jobs_swf = "l.swf"\n', "use the generator's .toml itself as --workload"),
        ('task_types_csv = "t.csv"\n', "task_types_csv has no effect without etc_csv"),
    ):
        (tmp_path / "w.toml").write_text('kind = "parallel"\n' + keys)
        words = ["workload", "generate", str(tmp_path / "w.toml"), "-o", str(tmp_path / "d.csv")]
        assert main(words) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "d.csv").exists()


def test_existing_files_are_kept(tmp_path: Path, capsys):
    """One file in the way, and none is written."""
    (tmp_path / "w.toml").write_text(KEYS)
    (tmp_path / "day_task_types.csv").write_text("mine")
    assert main(["workload", "generate", str(tmp_path / "w.toml"), "-o", f"{tmp_path}/day.csv"]) == 2
    assert "day_task_types.csv: exists already" in capsys.readouterr().err
    assert not (tmp_path / "day.csv").exists()
