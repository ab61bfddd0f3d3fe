"""Logs as workloads: what machine, which jobs, what a scheduler knows of them, and the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gridsched import Scenario, run
from gridsched.errors import InputError
from gridsched.model.platform import homogeneous_cluster
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.study import Study
from gridsched.workloads.traces.formats import TraceOptions
from gridsched.workloads.traces.trace_system import trace_system

LOGS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "swf"
#: The example of algorithms I, 100 s later, and three lines that cannot be run.
LOG = """\
; MaxNodes: 2
; MaxProcs: 4
1 100 -1 10 3 -1 -1 3 10 -1 1
2 101 -1  5 4 -1 -1 4 -1 -1 1
3 102 -1 20 1 -1 -1 1 20 -1 1
4 103 -1  7 1 -1 -1 1  5 -1 1
5 104 -1  0 1 -1 -1 1  7 -1 0
6 105 -1  7 8 -1 -1 8  7 -1 1
7 104 -1  3 1 -1 -1 1  7 -1 3
4 106 -1  3 1 -1 -1 1  7 -1 1
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write the log of this file."""
    path = tmp_path / "four.swf"
    path.write_text(LOG, encoding="utf-8")
    return path


def test_a_machine_of_the_headers_size(log: Path):
    """Four nodes, times from the first submission, estimates by section I, lines of the rest."""
    found = trace_system(log, TraceOptions())
    tasks, platform = found.system.tasks, found.system.platform
    assert len(platform) == 4
    assert (platform.idle_w[0, 0], platform.busy_w[0, 0]) == (95, 190.738)
    assert tasks.labels.tolist() == [1, 2, 3, 4]
    assert tasks.submit_time_s.tolist() == [0, 1, 2, 3]
    assert tasks.width.tolist() == [3, 4, 1, 1]
    assert tasks.requested_time_s.tolist() == [10, 5, 20, 7]
    assert (tasks.flops / platform.speed[0, 0]).tolist() == [10, 5, 20, 7]
    assert {each.reason.split()[0]: each.lines for each in found.jobs.dropped} == {
        "part": (9,),
        "no": (7,),
        "a": (10,),
        "wider": (8,),
    }


def test_the_example_of_section_i_from_a_file(log: Path):
    """Starts by hand, on the log's machine and FCFS on a platform of five nodes."""
    result = run(Scenario(None, log, "easy_backfilling", driver="reference"))
    assert result.trace.start_time_s.tolist() == [0, 10, 15, 3]
    assert [each.count for each in result.scenario.left_out] == [1, 1, 1, 1]
    assert [each["lines"] for each in result.provenance["left_out"]] == ["9", "7", "10", "8"]
    platform = homogeneous_cluster(5, idle_w=10, busy_w=20, speed=7e9)
    result = run(Scenario(platform, log, "fcfs", driver="reference"))
    assert result.trace.start_time_s.tolist() == [0, 10, 10, 15]
    assert len(result.trace.platform) == 5


@pytest.mark.parametrize(
    ("options", "nodes", "widths"),
    [
        ({"procs_per_node": 2}, 2, [2, 2, 1, 1]),
        ({"procs_per_node": 2, "nodes": 9}, 9, [2, 2, 1, 1, 4]),
        ({"nodes": 8}, 8, [3, 4, 1, 1, 8]),
        ({"nodes_from": 8}, 2, [1, 1]),
        ({"nodes_from": "-3", "nodes": 30}, 30, [10, 20, 5, 7]),
    ],
)
def test_sizes_by_options(log: Path, options: dict, nodes: int, widths: list[int]):
    """Whole nodes of several processors; a field of nodes; another machine than the header's."""
    found = trace_system(log, TraceOptions(**options))
    assert len(found.system.platform) == nodes
    assert found.system.tasks.width.tolist() == widths


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nodes": 0}, "nodes is 0; it must be at least 1"),
        ({"nodes_from": "width"}, "nodes_from is 'width'; in SWF it is the number of a field"),
    ],
)
def test_options_that_are_wrong(log: Path, options: dict, words: str):
    """One line that names the option."""
    with pytest.raises(InputError, match=words):
        trace_system(log, TraceOptions(**options))


def test_what_has_no_effect_is_refused(log: Path, tmp_path: Path):
    """The machine of a platform is not the header's; only traces are read by these options."""
    platform = homogeneous_cluster(4, idle_w=1, busy_w=2)
    with pytest.raises(InputError, match="nodes"):
        Scenario(platform, log, trace=TraceOptions(nodes=4)).loaded()
    bag = tmp_path / "bag.csv"
    bag.write_text("id,flops\n1,5\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"nodes.*trace"):
        Scenario(platform, bag, trace=TraceOptions(nodes=4)).loaded()
    with pytest.raises(InputError, match="--files"):
        Scenario(platform, log, files=bag).loaded()
    headless = tmp_path / "headless.swf"
    headless.write_text("1 0 0 5 2 -1 -1 2 9\n", encoding="utf-8")
    with pytest.raises(InputError, match="nodes"):
        Scenario(None, headless).loaded()


STUDY = """
name = "logs"
driver = "reference"
schedulers = ["fcfs", "easy_backfilling"]
[group.log.four]
workload = "four.swf"
[group.log.pairs]
workload = { file = "four.swf", procs_per_node = 2 }
"""


def test_a_study_of_logs_needs_no_platform(log: Path):
    """Each level of a group is a log; a platform is legal, too; other workloads need one."""
    folder = log.parent
    study = Study.from_text(STUDY, folder / "s.toml")
    runs = list(study.scenarios())
    assert [each.axes["log"] for each in runs] == ["four", "four", "pairs", "pairs"]
    inputs = {file.sha256: file.path for file in study.inputs.values()}
    maker = ScenarioMaker(inputs, folder)
    made = [maker.make(each.scenario) for each in runs]
    assert [len(each.platform) for each in made] == [4, 4, 2, 2]
    assert made[0].tasks is made[1].tasks
    assert run(made[1]).trace.start_time_s.tolist() == [0, 10, 15, 3]
    with pytest.raises(InputError, match="serial"):
        maker.optimization(
            {
                **runs[0].scenario,
                "scheduler": {"id": "lp_max_profit", "parameters": {}},
                "settings": {**runs[0].scenario["settings"], "driver": "optimize"},
            }
        )
    with pytest.raises(InputError, match="file"):
        Study.from_text(STUDY.replace('"four.swf"\n', '"four.csv"\n'), folder / "s.toml")


@pytest.mark.parametrize(
    ("name", "options", "jobs", "node_seconds"),
    [
        ("HPC2N_excerpt.swf", {}, 3_145, 503_655_194),
        pytest.param("KTH-SP2.swf.gz", {}, 28_481, 2_024_618_666, marks=pytest.mark.long),
        pytest.param("CEA-Curie_10day.swf.gz", {"procs_per_node": 16}, 14_459, 3_131_967_306, marks=pytest.mark.long),
    ],
)
def test_logs_of_the_archive_run(name: str, options: dict, jobs: int, node_seconds: int):
    """EASY on all that can be run of real logs: every job, its nodes and its time."""
    if not (LOGS / name).exists():
        pytest.skip("the logs of the Parallel Workloads Archive are not beside the checkout")
    scenario = Scenario(None, LOGS / name, "easy_backfilling", driver="reference", trace=TraceOptions(**options))
    result = run(scenario)
    found = result.summary()
    assert found["tasks_finished"] == jobs
    assert found["busy_time_s"] == node_seconds
    waits = result.trace.start_time_s - result.trace.tasks.submit_time_s
    assert np.all(waits >= 0)
