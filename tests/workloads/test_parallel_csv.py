"""Tabulated times of parallel tasks: interpolation, what is refused, and the testbed's tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gridsched
from gridsched.errors import InputError
from gridsched.workloads.generators import checked_parameters, generator_of

STUDIES = Path(gridsched.__file__).parent / "reproduction" / "studies"
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
        ({"tasks": "1,0,t2,8,1,0,0\n"}, "takes 1 nodes of cluster 'b', but .* from 10 to 10"),
        ({"tasks": "1,0,t3,8,1,0,0\n"}, "line 2: task_type is 't3'"),
        ({"tasks": "1,0,t1,0,1,0,0\n"}, "line 2: cores is '0'"),
        ({"tasks": "1,0,t1,8,1,0,20\n"}, "line 2: utility_class is '20'; it must lie from 0 to 19"),
        ({"etc": ETC + "t1,a,1,4,60,5\n"}, "no line for task type 't1', cluster 'a', P-state 1"),
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
