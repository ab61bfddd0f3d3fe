"""Batsim's files, as evalys reads them."""

from __future__ import annotations

import csv
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import traces_by_hand as by_hand

from gridsched import Scenario, run
from gridsched.energy import trace_energy
from gridsched.export import batsim_files
from gridsched.export.export import write_export
from gridsched.model.timeline import host_timeline
from gridsched.model.trace import TaskState
from gridsched.power import trace_power
from gridsched.workloads.traces.trace_options import TraceOptions

# Batsim's tables: exact headers and values, and evalys reads them back.

HEADERS = {
    "jobs.csv": "job_id,workload_name,profile,submission_time,requested_number_of_resources,"
    "requested_time,success,final_state,starting_time,execution_time,finish_time,waiting_time,"
    "turnaround_time,stretch,allocated_resources,consumed_energy,metadata",
    "hosts.csv": "id,name",
    "machine_states.csv": "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing",
    "pstate_changes.csv": "time,machine_id,new_pstate",
    "consumed_energy.csv": "time,energy,event_type,wattmin,epower",
}


def export(trace, folder):
    """Write an export and return its folder."""
    write_export(trace, None, {}, folder, workload_name="bag")
    return folder


def rows_of(path):
    """Read a CSV file as dictionaries of strings."""
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("make", [by_hand.empty, by_hand.everything_at_once])
@pytest.mark.parametrize("name", HEADERS)
def test_headers_are_batsims_also_on_empty_results(tmp_path, name, make):
    """The first columns are exactly Batsim's; ours come after them."""
    first = (export(make(), tmp_path / "run") / name).read_text().splitlines()[0]
    ours = name in ("jobs.csv", "hosts.csv")
    assert first == HEADERS[name] or (ours and first.startswith(HEADERS[name] + ","))


def test_jobs_of_every_final_state():
    """Finished, killed, dropped and rejected jobs; rejected rows are empty from start to energy."""
    table = batsim_files.jobs_table(by_hand.everything_at_once(), "bag")
    assert table["job_id"].tolist() == [7, 3, 5, 9, 11, 2]
    assert list(table["final_state"]) == [
        "COMPLETED_SUCCESSFULLY",
        "COMPLETED_SUCCESSFULLY",
        "COMPLETED_SUCCESSFULLY",
        "COMPLETED_KILLED",
        "REJECTED",
        "REJECTED",
    ]
    assert table["success"].tolist() == [True, True, True, False, False, False]
    assert table["allocated_resources"] == [0, 0, 0, 1, None, None]
    for column in (
        "starting_time",
        "execution_time",
        "finish_time",
        "waiting_time",
        "turnaround_time",
        "stretch",
        "consumed_energy",
    ):
        assert np.isnan(table[column][4:]).all(), column
        assert not np.isnan(table[column][:4]).any(), column


def test_a_killed_task_that_never_started_is_rejected():
    """What the budget's end finds waiting has no start to show."""
    trace = by_hand.make_trace(
        by_hand.example_platform(),
        by_hand.example_tasks(),
        [(0, 0, 0, 0.0, 10.0, by_hand.FINISHED), (1, 1, 0, 0.0, 7.0, by_hand.KILLED), (2, 2, 0, 0.0, 10.0, 3)],
        (),
        10.0,
        [TaskState.FINISHED, TaskState.KILLED, TaskState.FAILED, TaskState.KILLED, TaskState.UNFINISHED],
    )
    assert batsim_files.batsim_state(trace) == [
        "COMPLETED_SUCCESSFULLY",
        "COMPLETED_KILLED",
        "COMPLETED_FAILED",
        "REJECTED",
        "REJECTED",
    ]


def test_an_original_that_beat_its_replicas_tells_the_jobs_times():
    """Task 0 ran on h1 from 0 s to 10 s; the cancelled copies on h2 and h3 are only counted."""
    table = batsim_files.jobs_table(by_hand.beaten_replica(), "bag")
    assert table["allocated_resources"] == [0, 1]
    assert table["starting_time"].tolist() == [0.0, 0.0]
    assert table["waiting_time"].tolist() == [0.0, 0.0]
    assert table["execution_time"].tolist() == [10.0, 5.0]
    assert table["stretch"].tolist() == [1.0, 1.0]
    assert table["executions"].tolist() == [3, 1]
    found = batsim_files.schedule_values(by_hand.beaten_replica(), trace_energy(by_hand.beaten_replica()))
    assert found["max_waiting_time"] == 0.0
    assert found["max_slowdown"] == 1.0


def test_the_copy_that_won_tells_a_replicated_jobs_times():
    """Its start, its host; the energy is that of all copies."""
    table = batsim_files.jobs_table(by_hand.replication(3), "bag")
    assert table["starting_time"][2] == 25.0
    assert table["allocated_resources"][2] == 0
    assert table["executions"][2] == 3
    assert table["energy_with_idle"][2] == 1000 + 600 + 225


@pytest.mark.parametrize("cores", [1, 3])
def test_shares_of_the_jobs_sum_to_the_total(cores):
    """Above-idle shares + idle power = all; shares with idle + idle time = all."""
    trace = by_hand.list_schedule(4, 50, cores)
    table, energy = batsim_files.jobs_table(trace, "bag"), trace_energy(trace)
    floor = trace.platform.idle_w[:, 0].sum() * trace.horizon_s
    total = energy.grid_total()
    assert table["consumed_energy"].sum() + floor == pytest.approx(total, rel=1e-12)
    idle = energy.grid_total("idle_j")
    assert table["energy_with_idle"].sum() + idle == pytest.approx(total, rel=1e-12)


def test_machine_states_by_hand():
    """Sleeping, booting, idle and computing hosts at each change; each row sums to 2."""
    table = batsim_files.machine_states_table(host_timeline(by_hand.everything_at_once()))
    rows = list(zip(*(column.tolist() for column in table.values()), strict=True))
    assert rows == [
        (0.0, 0, 0, 0, 1, 1),
        (20.0, 0, 0, 0, 2, 0),
        (25.0, 1, 0, 0, 1, 0),
        (35.0, 0, 1, 0, 1, 0),
        (45.0, 0, 0, 0, 2, 0),
        (50.0, 0, 0, 0, 1, 1),
        (70.0, 0, 0, 0, 2, 0),
    ]


def test_pstate_changes_by_hand():
    """Off is a P-state of its own and booting is -1, as in Batsim."""
    trace = by_hand.everything_at_once()
    table = batsim_files.pstate_changes_table(trace, host_timeline(trace))
    rows = list(zip(*(column.tolist() for column in table.values()), strict=True))
    assert rows == [(0.0, 0, 0), (0.0, 1, 0), (25.0, 0, 2), (35.0, 0, -1), (45.0, 0, 0), (47.0, 0, 1)]


def test_consumed_energy_by_hand():
    """Energy is cumulative and exact; power is that of the time before, never NA."""
    trace = by_hand.lecsa(switch_off=True)
    table = batsim_files.consumed_energy_table(trace, trace_power(trace))
    rows = list(zip(*(column.tolist() for column in table.values()), strict=True))
    assert rows == [
        (0, 0, "p", 12, 75),
        (0, 0, "s", 12, 75),
        (0, 0, "s", 12, 75),
        (0, 0, "s", 12, 75),
        (10, 750, "e", 8, 75),
        (10, 750, "p", 8, 75),
        (30, 1250, "e", 8, 25),
        (30, 1250, "s", 8, 25),
        (35, 1375, "e", 4, 25),
        (35, 1375, "p", 4, 25),
        (80, 1600, "e", 4, 5),
        (80, 1600, "s", 4, 5),
        (100, 1700, "e", 0, 5),
        (100, 1700, "p", 0, 5),
    ]


def test_consumed_energy_ends_with_the_run():
    """A run that goes on after its last event: the last row holds the whole energy."""
    whole = by_hand.work_queue()
    trace = by_hand.make_trace(whole.platform, whole.tasks, whole.executions.tolist(), (), 90.0)
    table = batsim_files.consumed_energy_table(trace, trace_power(trace))
    assert (table["time"][-1], table["event_type"][-1]) == (90.0, "p")
    assert table["energy"][-1] == trace_energy(trace).grid_total() == 2430 + 10 * 12


def test_schedule_values(tmp_path):
    """Keys in alphabetical order; makespan is last finish minus first submission."""
    values = json.loads((export(by_hand.replication(2), tmp_path / "run") / "schedule.json").read_text())
    assert list(values) == sorted(values)
    assert values["makespan"] == 55.0
    assert values["consumed_joules"] == 2745.0
    assert values["nb_jobs"] == values["nb_jobs_success"] == values["nb_jobs_finished"] == 5
    assert values["time_computing"] == 25 + 55 + 55
    assert values["time_idle"] == 30.0
    assert values["time_sleeping"] == 0.0
    assert values["success_rate"] == 1.0


def test_schedule_values_of_an_empty_run_are_valid_json(tmp_path):
    """No tasks: means are null, not NaN."""
    text = (export(by_hand.empty(), tmp_path / "run") / "schedule.json").read_text()
    assert "NaN" not in text
    values = json.loads(text)
    assert values["mean_slowdown"] is values["success_rate"] is None
    assert values["nb_jobs"] == values["makespan"] == 0


# ---------------------------------------------------------------------- evalys


@pytest.fixture
def evalys_modules():
    """The readers of evalys; it and its libraries warn on new versions of theirs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jobset = pytest.importorskip("evalys.jobset", reason="evalys is not installed")
        from evalys import mstates, pstates

        yield jobset, mstates, pstates


def test_evalys_reads_jobs(tmp_path, evalys_modules):
    """JobSet.from_csv sees our hosts, times and energies; its utilization is our busy time."""
    trace = by_hand.list_schedule(5, 60)
    folder = export(trace, tmp_path / "run")
    jobs = evalys_modules[0].JobSet.from_csv(str(folder / "jobs.csv"), resource_bounds=(0, 4))
    assert len(jobs.df) == 60
    assert jobs.MaxProcs == 5
    assert [set(hosts) for hosts in jobs.df.allocated_resources] == [
        {host} for host in trace.executions["host"].tolist()
    ]
    busy = (trace.executions["end"] - trace.executions["start"]).sum()
    assert jobs.df.execution_time.sum() == pytest.approx(busy, abs=1e-4)
    assert jobs.utilisation.area.sum() == pytest.approx(busy, abs=1e-3)
    floor = trace.platform.idle_w[:, 0].sum() * trace.horizon_s
    joules = jobs.df.consumed_energy.sum() + floor
    assert joules == pytest.approx(trace_energy(trace).grid_total(), rel=1e-9)


def test_evalys_reads_rejected_jobs(tmp_path, evalys_modules):
    """Rows without a start are empty sets of hosts, not errors."""
    folder = export(by_hand.everything_at_once(), tmp_path / "run")
    jobs = evalys_modules[0].JobSet.from_csv(str(folder / "jobs.csv"))
    assert jobs.df.proc_alloc.tolist() == [1, 1, 1, 1, 0, 0]
    assert jobs.df.final_state.tolist().count("REJECTED") == 2


@pytest.mark.parametrize("make", [by_hand.everything_at_once, by_hand.work_queue, by_hand.empty])
def test_evalys_reads_machine_states_and_pstates(tmp_path, evalys_modules, make):
    """Both readers' own checks pass: constant row sums, a first row for every machine."""
    trace = make()
    folder = export(trace, tmp_path / "run")
    _, mstates, pstates = evalys_modules
    states = mstates.MachineStatesChanges(str(folder / "machine_states.csv"))
    assert set(states.df.total) == {len(trace.platform)}
    changes = pstates.PowerStatesChanges(str(folder / "pstate_changes.csv"))
    assert changes.res_bounds == (0, len(trace.platform))
    assert len(rows_of(folder / "pstate_changes.csv")) >= len(trace.platform)


# Exports of whole logs, as evalys reads them.

LOGS = Path(__file__).resolve().parents[3] / "shared" / "data" / "swf"


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "options"),
    [("HPC2N_excerpt.swf", {}), ("KTH-SP2.swf.gz", {}), ("CEA-Curie_10day.swf.gz", {"procs_per_node": 16})],
)
def test_evalys_reads_logs_under_easy(tmp_path: Path, name: str, options: dict):
    """Each job with its times and as many hosts as it asked for; node-seconds are ours."""
    if not (LOGS / name).exists():
        pytest.skip("the logs of the Parallel Workloads Archive are not beside the checkout")
    result = run(Scenario(None, LOGS / name, "easy_backfilling", driver="reference", trace=TraceOptions(**options)))
    write_export(result.trace, None, {}, tmp_path / "run", workload_name="jobs")
    trace = result.trace
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it and its libraries warn on new versions of theirs
        jobset = pytest.importorskip("evalys.jobset", reason="evalys is not installed")
        last = len(trace.platform.hosts) - 1
        path = tmp_path / "run" / "jobs.csv"
        read = jobset.JobSet.from_csv(str(path), resource_bounds=(0, last))
        area = read.utilisation.area.sum()
    frame = read.df.set_index("jobID").loc[[str(label) for label in trace.tasks.labels]]
    assert len(frame) == len(read.df)
    assert [len(hosts) for hosts in frame.allocated_resources] == trace.tasks.width.tolist()
    assert frame.starting_time.to_numpy() == pytest.approx(trace.start_time_s)
    assert frame.finish_time.to_numpy() == pytest.approx(trace.finish_time_s)
    assert area == pytest.approx(result.summary()["busy_time_s"], rel=1e-9)
