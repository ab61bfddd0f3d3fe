"""Records of parallel jobs in files and figures: sets of nodes, what was asked for, the archive."""

from __future__ import annotations

import csv
import json
import warnings

import numpy as np
import pytest
from edited_archives import edit_archive

from gridsched import run
from gridsched.campaign.run_records import records_of
from gridsched.energy import trace_energy
from gridsched.errors import InputError
from gridsched.export.export import read_export, write_export
from gridsched.figures.gantt_figure import gantt
from gridsched.files.csv_files import interval_set
from gridsched.metrics import summary
from gridsched.model.timeline import bars_of
from gridsched.testing.parallel_cases import EXAMPLE, make_parallel_case
from gridsched.testing.repetition import same_run


def example():
    """Section I's jobs, of which the first ends after 4 s, under EASY."""
    jobs = [(0, 4, 3, 10), *EXAMPLE[1:]]
    case = make_parallel_case("example", 4, jobs)
    return run(case.scenario("easy_backfilling", driver="reference"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of an exported run."""
    path = tmp_path_factory.mktemp("export") / "run"
    write_export(example().trace, None, {}, path, workload_name="jobs")
    return path


def table(path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize(
    ("hosts", "text"), [([4], "4"), ([0, 1, 2, 3, 7], "0-3 7"), ([1, 3, 5], "1 3 5"), ([2, 3, 9, 10], "2-3 9-10")]
)
def test_interval_sets(hosts, text):
    """Batsim's way to write sets of hosts."""
    assert interval_set(np.array(hosts)) == text


def test_jobs_have_their_nodes_and_what_they_asked_for(folder):
    """J1 has three nodes until 4 s; J4 overtakes J2 at 3 s, which starts when J4 ends, at 10 s."""
    columns = (
        "job_id",
        "requested_number_of_resources",
        "requested_time",
        "starting_time",
        "execution_time",
        "allocated_resources",
    )
    assert [tuple(row[name] for name in columns) for row in table(folder / "jobs.csv")] == [
        ("1", "3", "10.0", "0.0", "4.0", "0-2"),
        ("2", "4", "5.0", "10.0", "5.0", "0-3"),
        ("3", "1", "20.0", "15.0", "20.0", "0"),
        ("4", "1", "7.0", "3.0", "7.0", "3"),
    ]
    found = table(folder / "executions.csv")
    assert [row["allocated_resources"] for row in found] == ["0-2", "3", "0-3", "0"]
    assert [float(row["executed_flops"]) for row in found] == [24e9, 14e9, 40e9, 40e9]


def test_evalys_reads_sets_of_nodes(folder):
    """Its sets of hosts are ours, and its utilisation is 3 x 4 + 7 + 4 x 5 + 20 node-seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it and its libraries warn on new versions of theirs
        jobset = pytest.importorskip("evalys.jobset", reason="evalys is not installed")
        jobs = jobset.JobSet.from_csv(str(folder / "jobs.csv"), resource_bounds=(0, 3))
        assert [sorted(hosts) for hosts in jobs.df.allocated_resources] == [[0, 1, 2], [0, 1, 2, 3], [0], [3]]
        assert jobs.utilisation.area.sum() == pytest.approx(59.0, abs=1e-3)


def test_the_archive_gives_back_the_nodes(folder):
    """The same records, metrics and joules; work is that of the true times."""
    trace, back = example().trace, read_export(folder).trace
    assert same_run(trace, back)
    assert back.host_offsets.tolist() == [0, 3, 4, 8, 9]
    assert json.dumps(summary(back)) == json.dumps(summary(trace))
    assert trace_energy(back).total_j.tolist() == trace_energy(trace).total_j.tolist()
    assert not back.as_estimated


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays["host_ids"].__setitem__(1, 9), "host_ids: 9 hosts from 0 to 3"),
        (lambda arrays: arrays["host_ids"].__setitem__(1, 0), "ascend from its own host"),
        (lambda arrays: arrays["host_offsets"].__setitem__(1, 5), "host_offsets: 4 executions"),
    ],
)
def test_damaged_node_sets_are_refused(tmp_path, change, message):
    """Hosts that do not exist, stand there twice, or belong to no execution."""
    write_export(example().trace, None, {}, tmp_path / "run", workload_name="jobs")
    edit_archive(tmp_path / "run", lambda _description, arrays: change(arrays))
    with pytest.raises(InputError, match=message):
        read_export(tmp_path / "run")


def test_stored_records_have_the_width():
    """One row for each job, with its first node and its width."""
    records = records_of(example())
    rows = records[records["record"] == "execution"]
    assert rows[["task_id", "host_id", "width"]].to_numpy().tolist() == [[1, 0, 3], [4, 3, 1], [2, 0, 4], [3, 0, 1]]


def test_a_gantt_chart_has_a_bar_for_each_run_of_hosts():
    """A job on nodes 0, 1 and 3 is two bars, of two hosts and of one."""
    trace = example().trace
    bars = bars_of(trace)
    assert list(zip(bars.execution, bars.top, bars.rows, strict=True)) == [(0, 0, 3), (1, 3, 1), (2, 0, 4), (3, 0, 1)]
    object.__setattr__(trace, "host_ids", np.array([0, 1, 3, *trace.host_ids[3:]]))
    assert list(zip(bars_of(trace).top, bars_of(trace).rows, strict=True))[:2] == [(0, 2), (3, 1)]
    drawn = gantt(example().trace)
    assert drawn.data["hosts"].tolist() == [3, 1, 4, 1]
    assert drawn.data["host"] == ["node0", "node3", "node0", "node0"]


def test_names_of_users_come_back(folder):
    """The archive keeps whose each job was."""
    user = read_export(folder).trace.tasks.attributes["user"]
    assert user.names == ("ann", "bob")
    assert user.texts == ["ann", "bob", "ann", "bob"]
