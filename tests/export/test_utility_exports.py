"""Archives of utility runs and of parallel jobs."""

from __future__ import annotations

import csv
import json
import math
import warnings

import numpy as np
import pytest
import traces_by_hand as by_hand
from made_files import edit_archive

from gridsched import run
from gridsched.campaign.run_records import records_of
from gridsched.energy import trace_energy
from gridsched.errors import InputError
from gridsched.export.export import FILES, read_export, write_export
from gridsched.figures.figure_file import draw_figure
from gridsched.figures.gantt_figure import gantt
from gridsched.figures.run_trace_figure import trace_steps
from gridsched.files.csv_files import interval_set
from gridsched.metrics import summary
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, typed_platform
from gridsched.model.tasks import make_tasks
from gridsched.model.timeline import bars_of
from gridsched.model.trace import PERIOD, TaskState
from gridsched.model.utility import UtilityClasses, UtilityFunctions
from gridsched.testing.parallel_cases import EXAMPLE, make_parallel_case
from gridsched.testing.repetition import same_run

# Exports and trace figures of runs with utility functions, task types and an energy budget.

CLASSES = UtilityClasses.joined(
    [
        UtilityClasses.from_intervals([([0, 20, 40, 60], [1, 0.6, 0.2, 0], [1, 0.5, 2, 1])]),
        UtilityClasses.plateau_linear(5.0, 7.5),
        UtilityClasses.exponential(),
    ]
)
#: ETC [s] and APC [W] of two task types on two host types with two P-states.
ETC = np.array([[[600, 900], [np.inf, np.inf]], [[1200, 1500], [300, 400]]], dtype=float)
APC = np.array([[[200, 100], [1, 1]], [[150, 80], [300, 120]]], dtype=float)


def typed_trace():
    """Four tasks on two hosts: one finishes late in P-state 1, one is dropped, one postponed."""
    types = TaskTypes(ETC, APC, np.array([0, 1]))
    functions = UtilityFunctions(
        np.array([8.0, 4.0, 2.0, 1.0]),
        np.array([0.1, 0.2, 0.0, 0.01]),
        np.array([0, 1, 2, 2]),
        CLASSES,
        urgency_unit_s=60.0,
    )
    tasks = make_tasks(
        np.full(4, TYPED_TASK_FLOPS), [0, 0, 10, 20], task_type=[0, 1, 1, 0], utility=functions, name="four"
    )
    runs = [
        (0, 0, 1, 0.0, 900.0, by_hand.FINISHED),
        (1, 1, 2, 0.0, 300.0, by_hand.FINISHED),
        (3, 0, 0, 1000.0, 1600.0, by_hand.FINISHED),
    ]
    state = [TaskState.FINISHED, TaskState.FINISHED, TaskState.DROPPED, TaskState.FINISHED]
    switches = [(0.0, 0, 1, True), (0.0, 1, 2, True), (1000.0, 0, 0, True)]
    trace = by_hand.make_trace(typed_platform(types), tasks, runs, switches, final_state=state)
    periods = [(0.0, 960.0, 2e5, 1.8e5, 0.0), (960.0, 1920.0, math.inf, 1.2e5, 1 / 3)]
    object.__setattr__(trace, "periods", np.array(periods, dtype=PERIOD))
    object.__setattr__(trace, "times_postponed", np.array([0, 0, 0, 2]))
    return trace


def export(trace, folder, **options):
    """Write an export with little around it."""
    options = {"plugin_j": None, "provenance": {}, "workload_name": "day"} | options
    write_export(trace, directory=folder, **options)
    return folder


def rows_of(path):
    """Return a CSV file's rows."""
    with path.open() as stream:
        return list(csv.DictReader(stream))


def test_utility_periods_and_postponements_come_back(tmp_path):
    """Functions, their classes, the periods and every metric survive bit by bit."""
    trace = typed_trace()
    folder = export(trace, tmp_path / "run")
    assert {entry.name for entry in folder.iterdir()} == FILES | {"periods.csv"}
    back = read_export(folder).trace
    ours, theirs = trace.tasks.utility, back.tasks.utility
    for name in ("priority", "urgency", "utility_class"):
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist()
    for name in ("first", "start_time", "start_fraction", "end_fraction", "urgency_modifier", "kind"):
        assert getattr(ours.classes, name).tolist() == getattr(theirs.classes, name).tolist()
    assert theirs.urgency_unit_s == 60.0
    assert back.periods.tolist() == trace.periods.tolist()
    assert back.times_postponed.tolist() == [0, 0, 0, 2]
    assert back.tasks.task_type.tolist() == [0, 1, 1, 0]
    assert back.platform == trace.platform
    window = (100.0, 1200.0)
    assert json.dumps(summary(back, None, window)) == json.dumps(summary(trace, None, window))


def test_jobs_tell_utility_and_the_schedulers_pstate(tmp_path):
    """Our columns follow Batsim's; U(15 min) = 8 exp(-1.5) > 4.8 is false: the floor counts."""
    folder = export(typed_trace(), tmp_path / "run", scheduler_pstates=2)
    jobs = rows_of(folder / "jobs.csv")
    assert list(jobs[0])[-8:] == [
        "task_type",
        "scheduler_pstate",
        "utility",
        "utility_possible",
        "priority",
        "urgency",
        "utility_class",
        "times_postponed",
    ]
    assert [job["scheduler_pstate"] for job in jobs] == ["1", "0", "", "0"]
    assert [job["pstate"] for job in jobs] == ["1", "2", "", "0"]
    earned = [float(job["utility"]) for job in jobs]
    # task 1 ends after 5 minutes, where its linear decline begins; task 3 waits for 1580 s in all
    expected = [4.8, 4.0, 0.0, math.exp(-0.01 * 1580 / 60)]
    assert earned == pytest.approx(expected)
    assert [job["final_state"] for job in jobs] == [
        "COMPLETED_SUCCESSFULLY",
        "COMPLETED_SUCCESSFULLY",
        "REJECTED",
        "COMPLETED_SUCCESSFULLY",
    ]
    assert [job["times_postponed"] for job in jobs] == ["0", "0", "0", "2"]
    assert [float(job["consumed_energy"] or 0) for job in jobs] == pytest.approx([90e3, 90e3, 0, 120e3])
    budgets = [row["budget_j"] for row in rows_of(folder / "periods.csv")]
    assert budgets == ["200000.0", ""]


def test_a_bag_gets_no_columns_of_utility(tmp_path):
    """Without utility, types and budget the tables are those of a bag."""
    folder = export(by_hand.work_queue(), tmp_path / "run")
    assert list(rows_of(folder / "jobs.csv")[0])[-1] == "flops"
    assert not (folder / "periods.csv").exists()


def test_an_export_with_periods_can_be_replaced_by_one_without(tmp_path):
    """periods.csv is a file of ours; it goes with the old export."""
    folder = export(typed_trace(), tmp_path / "run")
    export(by_hand.work_queue(), folder, force=True)
    assert {entry.name for entry in folder.iterdir()} == FILES


def set_value(name, row, value):
    """Return what sets one value of an array of the archive."""

    def change(description, arrays):
        arrays[name][row] = value

    return change


SPOILT = {
    "words for classes": (
        lambda _, arrays: arrays.update({"classes.kind": np.array([b"x"] * 3)}),
        "not a whole archive",
    ),
    "rows of classes": (lambda _, arrays: arrays["classes.first"].__setitem__(-1, 2**40), "classes.first"),
    "negative priority": (set_value("utility.priority", 0, -8.0), "priority"),
    "unknown class": (set_value("utility.utility_class", 1, 9), "classes 0 to 2"),
    "no classes": (lambda _, arrays: arrays.pop("classes.kind"), "classes.kind"),
    "no unit": (lambda description, _: description.update(urgency_unit_s=0), "urgency_unit_s"),
    "a task without its postponements": (
        lambda _, arrays: arrays.update(times_postponed=arrays["times_postponed"][1:]),
        "times_postponed has 3 rows for 4 tasks",
    ),
    "negative postponements": (set_value("times_postponed", 3, -1), "times_postponed"),
    "fraction above 1": (set_value("classes.start_fraction", 1, 1.6), "start_fraction"),
    "period ends first": (set_value("periods", 0, (0.0, -1.0, 1.0, 1.0, 0.0)), "periods"),
    "periods overlap": (set_value("periods", 1, (950.0, 1920.0, 1.0, 1.0, 0.0)), "periods"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_spoilt_archives_are_refused(tmp_path, name):
    """The message names the file and what is wrong."""
    change, words = SPOILT[name]
    folder = export(typed_trace(), tmp_path / "run")
    edit_archive(folder, change)
    with pytest.raises(InputError) as caught:
        read_export(folder)
    assert "trace.npz" in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_platform_of_300_pstates_stays_small(tmp_path):
    """100 task types x 3 P-states on 100 hosts: less than 20 MB, and it comes back."""
    rng = np.random.default_rng(0)
    etc, apc = rng.uniform(100, 1000, (2, 100, 13, 3))
    platform = typed_platform(TaskTypes(etc, apc, rng.integers(0, 13, 100)))
    trace = by_hand.make_trace(platform, make_tasks([]), [])
    folder = export(trace, tmp_path / "run")
    assert (folder / "platform.json").stat().st_size < 20e6
    assert (folder / "trace.npz").stat().st_size < 2e6
    assert read_export(folder).trace.platform == platform


# ---------------------------------------------------------------------- the figure


def test_steps_begin_anew_with_each_period():
    """Steps of 500 s in periods of 960 s; energies and utilities by hand."""
    steps = trace_steps(typed_trace(), 500.0)
    assert steps["until_s"].tolist() == [500, 960, 1460, 1600]
    assert steps["period"].tolist() == [0, 0, 1, 1]
    # host 1: 100 W to 900 s, 200 W from 1000 s to 1600 s; host 2: 300 W to 300 s
    assert steps["energy_j"].tolist() == pytest.approx([140e3, 180e3, 92e3, 120e3])
    assert steps["mean_power_w"].tolist() == pytest.approx([280, 40e3 / 460, 184, 200])
    late = math.exp(-0.01 * 1580 / 60)
    expected = [4 + 4.8 * 500 / 900, 8.8, late * 460 / 600, late]
    assert steps["utility"].tolist() == pytest.approx(expected)
    assert steps["budget_j"].tolist()[:2] == [2e5, 2e5]
    assert steps["budget_j"].isna().tolist() == [False, False, True, True]
    assert steps["tasks_submitted"].tolist() == [4, 0, 0, 0]
    assert steps["tasks_started"].tolist() == [2, 0, 1, 0]
    assert steps["tasks_finished"].tolist() == [1, 1, 0, 1]


def test_the_parts_outside_all_periods():
    """Before the first period and after the last nothing is limited."""
    trace = typed_trace()
    object.__setattr__(trace, "periods", trace.periods[:1].copy())
    trace.periods["start"], trace.periods["end"] = 300.0, 700.0
    steps = trace_steps(trace, 1e6)
    assert steps["until_s"].tolist() == [300, 700, 1600]
    assert steps["period"].tolist() == [-1, 0, -1]
    assert steps["budget_j"].isna().tolist() == [True, False, True]
    assert steps["energy_j"].tolist() == pytest.approx([120e3, 40e3, 140e3])


TRACES = {
    "typed": typed_trace,
    "bag": by_hand.work_queue,
    "empty": by_hand.empty,
    "awkward": by_hand.everything_at_once,
}


@pytest.mark.parametrize("name", TRACES)
def test_every_trace_can_be_drawn(tmp_path, name):
    """The figure and its data are written; the default has 72 steps in a short run."""
    path = tmp_path / "t.png"
    draw_figure("trace", "run", TRACES[name](), path, title="a run")
    assert path.read_bytes()[:4] == b"\x89PNG"
    rows = rows_of(path.with_suffix(".csv"))
    assert len(rows) in (72, 73)
    assert all(float(row["until_s"]) > float(row["from_s"]) for row in rows)


def test_two_days_are_drawn_in_steps_of_20_minutes(tmp_path):
    """The default step of a long run is the paper's; a year of periods is drawn, too."""
    tasks = make_tasks([100.0] * 20, np.arange(20) * 8640.0)
    runs = [(k, 0, 0, 8640.0 * k, 8640.0 * k + 1, by_hand.FINISHED) for k in range(20)]
    trace = by_hand.make_trace(by_hand.example_platform(), tasks, runs, horizon_s=2 * 86400.0)
    assert set(np.diff(trace_steps(trace)["until_s"])) == {1200.0}
    days = np.zeros(365, dtype=PERIOD)
    days["start"], days["end"] = np.arange(365) * 600.0, np.arange(1, 366) * 600.0
    days["budget_j"] = 1e4
    object.__setattr__(trace, "periods", days)
    draw_figure("trace", "run", trace, tmp_path / "year.svg")
    assert len(rows_of(tmp_path / "year.csv")) == 288


# Records of parallel jobs in files and figures: sets of nodes, what was asked for, the archive.


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
    """Its sets of hosts are ours, and its utilization is 3 x 4 + 7 + 4 x 5 + 20 node-seconds."""
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
    """Hosts that do not exist, are listed twice, or belong to no execution."""
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
    plotted = gantt(example().trace)
    assert plotted.data["hosts"].tolist() == [3, 1, 4, 1]
    assert plotted.data["host"] == ["node0", "node3", "node0", "node0"]


def test_names_of_users_come_back(folder):
    """The archive keeps whose each job was."""
    user = read_export(folder).trace.tasks.attributes["user"]
    assert user.names == ("ann", "bob")
    assert user.texts == ["ann", "bob", "ann", "bob"]
