"""Jobs from tables, and the systems of logs."""

from __future__ import annotations

import gzip
import json
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gridsched import Scenario, run
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.model.dependencies import After
from gridsched.model.platform import homogeneous_cluster
from gridsched.runs.run_spec import RunSpec
from gridsched.runs.scenario_maker import ScenarioMaker, load
from gridsched.runs.study import Study
from gridsched.workloads.traces.formats import is_trace, read_jobs
from gridsched.workloads.traces.sacct import read_sacct
from gridsched.workloads.traces.trace_options import TraceOptions
from gridsched.workloads.traces.trace_system import trace_system

# Tables of jobs: our own CSV and Parquet, and made ones with the columns of PM100 and F-DATA.

OWN = """# made by hand
id,submit_time_s,run_time_s,nodes,requested_time_s,user,partition,node_power_w,afterok,aftercorr
7_0,0,10,2,20,ann,batch,150,,
7_1,0,20,1,20,ann,batch,,,
8,5,30,4,60,bob,short,180.5,7,
9_1,6,5,1,,bob,short,120,,7
x,y,z
10,9,0,1,5,cy,batch,100,,
"""


def own_file(folder):
    """Write the table by hand."""
    path = folder / "mine.jobs.csv"
    path.write_text(OWN)
    return path


def test_our_own_columns(tmp_path):
    """Times, nodes, names, watts of a node; arrays by their names."""
    assert is_trace("mine.jobs.csv")
    assert not is_trace("mine.csv")
    jobs = read_jobs(own_file(tmp_path), TraceOptions())
    assert jobs.submit_time_s.tolist() == [0, 0, 5, 6]
    assert jobs.run_time_s.tolist() == [10, 20, 30, 5]
    assert jobs.width.tolist() == [2, 1, 4, 1]
    np.testing.assert_array_equal(jobs.requested_time_s, [20, 20, 60, np.nan])
    np.testing.assert_array_equal(jobs.power_w, [300, np.nan, 722, 120])
    np.testing.assert_array_equal(jobs.node_power_w, [150, np.nan, 180.5, 120])
    assert jobs.attributes["partition"].tolist() == ["batch", "batch", "short", "short"]
    assert [(each.count, each.lines) for each in jobs.dropped] == [(1, (7,)), (1, (8,))]
    dependencies = trace_system(own_file(tmp_path), TraceOptions(nodes=4)).system.tasks.dependencies
    pairs = sorted(zip(dependencies.task.tolist(), dependencies.on.tolist(), strict=True))
    assert pairs == [(2, 0), (2, 1), (3, 1)]
    assert set(dependencies.kind.tolist()) == {After.SUCCESS}


def test_csv_and_parquet_tell_the_same(tmp_path):
    """With columns of other names, the one plain, the other compressed, too."""
    rows = {
        "number": [1, 2, 3],
        "at": [0.0, 1.5, 2.0],
        "lasted": [10, 20, 30],
        "hosts": [1, 2, 3],
        "joules": [1000.0, None, 9000.0],
        "who": ["ann", None, "bob"],
        "unused": [[1], [2], []],
    }
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    lines = [",".join(rows)]
    for values in zip(*rows.values(), strict=True):
        lines.append(",".join("" if v is None or isinstance(v, list) else str(v) for v in values))
    with gzip.open(tmp_path / "a.jobs.csv.gz", "wt") as stream:
        stream.write("\n".join(lines))
    columns = "id=number,submit_time_s=at,run_time_s=lasted,nodes=hosts,energy_j=joules,user=who"
    first, second = (
        read_jobs(tmp_path / name, TraceOptions(columns=columns)) for name in ("a.parquet", "a.jobs.csv.gz")
    )
    for name in ("job", "submit_time_s", "run_time_s", "width", "requested_time_s", "power_w"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    np.testing.assert_array_equal(first.power_w, [100, np.nan, 300])
    assert first.attributes["user"].tolist() == second.attributes["user"].tolist() == ["ann", "", "bob"]


def test_a_table_shaped_as_pm100(tmp_path):
    """Watts of the whole job every 20 s, limits in minutes, moments."""
    begin = datetime(2020, 10, 1, 12)
    table = pa.table(
        {
            "job_id": [5, 6],
            "submit_time": [begin, begin + timedelta(seconds=90)],
            "start_time": [begin + timedelta(hours=1)] * 2,
            "run_time": [40, 60],
            "num_nodes_alloc": [2, 1],
            "time_limit": [10, 1440],
            "user_id": [17, 18],
            "partition": ["1", "2"],
            "qos": [0, 1],
            "node_power_consumption": [[1000.0, 1400.0], [700.0, 800.0, 900.0]],
        }
    )
    pq.write_table(table, tmp_path / "job_table.parquet")
    jobs = read_jobs(tmp_path / "job_table.parquet", TraceOptions(columns="pm100"))
    assert jobs.from_zero().submit_time_s.tolist() == [0, 90]
    assert jobs.requested_time_s.tolist() == [600, 86_400]
    assert jobs.node_power_w.tolist() == [600, 800]
    assert jobs.attributes["user"].tolist() == ["17", "18"]
    assert jobs.attributes["qos"].tolist() == ["0", "1"]


def test_a_table_shaped_as_fdata(tmp_path):
    """Mean watts of the whole job, moments as texts, names without numbers."""
    table = pa.table(
        {
            "jid": ["jid_1", "jid_2"],
            "usr": ["usr_0", "usr_1"],
            "adt": ["2021-04-01 00:00:10", "2021-04-01 00:00:00"],
            "nnumr": [4, 2],
            "nnuma": [4, 2],
            "elpl": [3600, 7200],
            "duration": [100.0, 200.5],
            "econ": [10.0, 20.0],
            "avgpcon": [400.0, 250.0],
        }
    )
    pq.write_table(table, tmp_path / "21_04.parquet")
    jobs = read_jobs(tmp_path / "21_04.parquet", TraceOptions(columns="fdata"))
    assert jobs.job.tolist() == [2, 1]  # by rows, in order of submission
    assert jobs.node_power_w.tolist() == [125, 100]
    assert jobs.attributes["user"].tolist() == ["usr_1", "usr_0"]
    other = read_jobs(tmp_path / "21_04.parquet", TraceOptions(columns="fdata, nodes=nnumr"))
    assert other.width.tolist() == [2, 4]


def test_the_energy_that_sacct_tells(tmp_path):
    """Joules over seconds and nodes; nothing, 0 and Slurm's word for nothing state nothing."""
    head = "JobIDRaw|Submit|ElapsedRaw|AllocNodes|ConsumedEnergyRaw|ConsumedEnergy"
    cells = [
        "1|0|10|2|3000|3K",
        "2|1|10|2||",
        "3|2|10|2|0|0",
        "4|3|10|2|18446744073709551614|",
        "5|4|10|2||2.5K",
        "6|5|10|2|n/a|",
    ]
    path = tmp_path / "a.psv"
    path.write_text("\n".join([head, *cells]))
    np.testing.assert_array_equal(read_sacct(path).node_power_w, [150, np.nan, np.nan, np.nan, 125, np.nan])
    path.write_text("\n".join(line.rpartition("|")[0].rpartition("|")[0] for line in [head, *cells]))
    assert not len(read_sacct(path).power_w)


@pytest.mark.parametrize(
    ("columns", "named"),
    [("pm10", "pm100"), ("nodes=", "nodes"), ("node=hosts", "nodes"), ("nodes=hosts", "hosts"), ("fdata", "jid")],
)
def test_columns_that_are_not_there(tmp_path, columns, named):
    """One line that names it, and what is allowed."""
    with pytest.raises(InputError, match=named):
        read_jobs(own_file(tmp_path), TraceOptions(columns=columns))


@pytest.mark.parametrize("name", ["a.parquet", "a.jobs.csv"])
@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1", b"\x00" * 50, b'"' * 2**18])
def test_damaged_tables_are_refused(tmp_path, name, content):
    """No traceback, whatever is there."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=name):
        read_jobs(tmp_path / name, TraceOptions())


def test_a_cut_parquet_file_is_refused(tmp_path):
    """Its end is missing."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": list(range(1000))}), path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"a\.parquet"):
        read_jobs(path, TraceOptions())
    with pytest.raises(InputError, match=r"none\.parquet"):
        read_jobs(tmp_path / "none.parquet", TraceOptions())


def test_columns_go_with_tables_alone(tmp_path):
    """Other formats name their columns themselves."""
    path = tmp_path / "a.swf"
    path.write_text("1 0 -1 5 1 -1 -1 1 9\n")
    with pytest.raises(InputError, match="columns"):
        read_jobs(path, TraceOptions(columns="pm100"))


def test_measured_beside_modelled_joules(tmp_path, capsys):
    """By hand: ann 2 nodes x 10 s x 150 W; bob 4 x 30 x 180.5 and 5 x 120; the model has 200 W a node."""
    status = main(["workload", "describe", str(own_file(tmp_path)), "--nodes", "4", "--power", "90:100:200", "--json"])
    rows = json.loads(capsys.readouterr().out)["energy"]
    assert status == 0
    found = {(row["by"], row["name"]): (row["jobs"], row["measured_j"], row["modelled_j"]) for row in rows}
    assert found == {
        ("all", ""): (3, 3000 + 21660 + 600, 200 * (20 + 120 + 5)),
        ("partition", "short"): (2, 22260, 25_000),
        ("partition", "batch"): (1, 3000, 4000),
        ("user", "bob"): (2, 22260, 25_000),
        ("user", "ann"): (1, 3000, 4000),
    }
    assert rows[0]["modelled_above_measured"] == pytest.approx(29_000 / 25_260 - 1)
    assert rows[0]["node_power_w"] == pytest.approx(25_260 / 145)
    assert main(["workload", "describe", str(own_file(tmp_path)), "--nodes", "4"]) == 0
    assert "bob" in capsys.readouterr().out


def test_measured_joules_of_users_whose_names_end_in_nul(tmp_path, capsys):
    """Such names are kept apart from those without it, and from none."""
    path = tmp_path / "nul.jobs.csv"
    users = {"\0": 100, "ann\0": 200, "ann": 400, "NUL": 800}
    rows = [f"{k},0,10,1,{user},{joules}" for k, (user, joules) in enumerate(users.items())]
    path.write_text("\n".join(["id,submit_time_s,run_time_s,nodes,user,energy_j", *rows]))
    assert main(["workload", "describe", str(path), "--nodes", "4", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["energy"]
    assert {row["name"]: row["measured_j"] for row in rows if row["by"] == "user"} == users
    assert main(["workload", "describe", str(path), "--nodes", "4"]) == 0


@pytest.mark.parametrize("power", ["measured", "none", "1:2:x"])
def test_a_power_that_describes_nothing_is_refused(tmp_path, capsys, power):
    """One line, and status 2."""
    assert main(["workload", "describe", str(own_file(tmp_path)), "--power", power]) == 2
    assert "--power" in capsys.readouterr().err


def test_a_table_tells_all_that_is_known(tmp_path, capsys):
    """sacct's names, joules and dependencies, through 'convert' and back; for SWF, a line lists what is lost."""
    path = tmp_path / "a.psv"
    path.write_text(
        "JobID|JobIDRaw|User|Partition|Submit|ElapsedRaw|AllocNodes|ConsumedEnergyRaw|SubmitLine\n"
        '7_1|8|ann|a,"b|0|60|2|9000|x\n7_2|7|ann|batch|0|70|1||x\n9|9|bob||5|9|1|500|x -d afterok:7+2,after:8\n'
    )
    assert main(["workload", "convert", str(path), "-o", str(tmp_path / "b.jobs.csv")]) == 0
    assert "not written" not in capsys.readouterr().out
    first, second = (trace_system(tmp_path / name, TraceOptions(nodes=4)) for name in ("a.psv", "b.jobs.csv"))
    for name in ("job", "submit_time_s", "run_time_s", "width", "requested_time_s", "power_w"):
        np.testing.assert_array_equal(getattr(first.jobs, name), getattr(second.jobs, name))
    tasks, again = first.system.tasks, second.system.tasks
    assert {name: each.texts for name, each in tasks.attributes.items()} == {
        name: each.texts for name, each in again.attributes.items()
    }
    rows = [
        sorted(zip(d.task.tolist(), d.on.tolist(), d.kind.tolist(), d.delay_s.tolist(), strict=True))
        for d in (tasks.dependencies, again.dependencies)
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 3
    assert main(["workload", "convert", str(path), "-o", str(tmp_path / "c.swf")]) == 0
    assert "not written" in capsys.readouterr().out


def test_jobs_that_wait_for_others_are_counted(tmp_path, capsys):
    """Two of four; a log without dependencies has no such line."""
    assert main(["workload", "describe", str(own_file(tmp_path)), "--nodes", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["jobs_with_dependencies"] == 2
    assert main(["workload", "describe", "examples/four_nodes.swf", "--json"]) == 0
    assert "jobs_with_dependencies" not in json.loads(capsys.readouterr().out)


# Logs as workloads: what machine, which jobs, what a scheduler knows of them, and the truth.

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
        load(Scenario(platform, log, trace=TraceOptions(nodes=4)))
    bag = tmp_path / "bag.csv"
    bag.write_text("id,flops\n1,5\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"nodes.*trace"):
        load(Scenario(platform, bag, trace=TraceOptions(nodes=4)))
    with pytest.raises(InputError, match="--files"):
        load(Scenario(platform, log, files=bag))
    headless = tmp_path / "headless.swf"
    headless.write_text("1 0 0 5 2 -1 -1 2 9\n", encoding="utf-8")
    with pytest.raises(InputError, match="nodes"):
        load(Scenario(None, headless))


STUDY = """
name = "logs"
driver = "reference"
schedulers = ["fcfs", "easy_backfilling"]
[group.log.four]
workload = "four.swf"
[group.log.pairs]
workload = { file = "four.swf", procs_per_node = 2 }
"""


@pytest.mark.systems("profit")
def test_a_study_of_logs_needs_no_platform(log: Path):
    """Each level of a group is a log; a platform is allowed, too; other workloads need one."""
    folder = log.parent
    study = Study.from_text(STUDY, folder / "s.toml")
    runs = list(study.scenarios())
    assert [each.axes["log"] for each in runs] == ["four", "four", "pairs", "pairs"]
    inputs = {file.sha256: file.path for file in study.inputs.values()}
    maker = ScenarioMaker(inputs, folder)
    made = [maker.make(each.spec) for each in runs]
    assert [len(each.platform) for each in made] == [4, 4, 2, 2]
    assert made[0].tasks is made[1].tasks
    assert run(made[1]).trace.start_time_s.tolist() == [0, 10, 15, 3]
    settings = {**runs[0].scenario["settings"], "driver": "optimize"}
    planned = RunSpec.read({**runs[0].scenario, "scheduler": {"id": "lp_max_profit"}, "settings": settings})
    with pytest.raises(InputError, match="serial"):
        maker.optimization(planned)
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
