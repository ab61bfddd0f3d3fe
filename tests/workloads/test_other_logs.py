"""Logs of Slurm: what is read, what is left out, and back again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gridsched import Scenario, run
from gridsched.campaign.run_records import records_of
from gridsched.errors import InputError
from gridsched.export.batsim_files import jobs_table
from gridsched.export.export import tasks_table
from gridsched.model.dependencies import After
from gridsched.model.platform import homogeneous_cluster
from gridsched.model.tasks import ArrivedTasks, make_tasks
from gridsched.model.trace import TaskState
from gridsched.workloads.traces.formats import format_of, read_jobs, stays_behind, write_jobs
from gridsched.workloads.traces.job_table import JobTable
from gridsched.workloads.traces.sacct import read_sacct
from gridsched.workloads.traces.trace_options import TraceOptions
from gridsched.workloads.traces.trace_system import rigid_system, serial_tasks, trace_system

SACCT = """\
JobIDRaw|User|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocNodes|AllocCPUS|State|ConsumedEnergyRaw
100|ann|2024-03-01T10:00:10|2024-03-01T10:01:00|2024-03-01T10:02:40|100|5|2|64|COMPLETED|123
100.batch|ann|2024-03-01T10:00:10|2024-03-01T10:01:00|2024-03-01T10:02:40|100||1|32|COMPLETED|
101|bob|2024-02-29T23:59:50|2024-03-01T00:00:00|2024-03-01T00:00:30||UNLIMITED|1|8|TIMEOUT|
102|bob|2024-03-01T10:00:00|Unknown|Unknown|0|60|0|0|CANCELLED by 1000|
103|cy|2024-03-01T10:00:00|2024-03-01T10:00:00|Unknown|999|Partition_Limit|4|128|RUNNING|
104|cy|Unknown|2024-03-01T10:00:00|2024-03-01T10:00:09|9|1|1|32|COMPLETED|
105|cy|2024-03-01T10:00:00|2024-03-01T10:00:00|2024-03-01T10:00:09|nine|1|1|32|COMPLETED|
106|cy|2024-03-01T10:00:00|a|b|c
107|cy|2024-03-01T10:00:11|2024-03-01T10:00:12|2024-03-01T10:00:19|7|Partition_Limit|3|96|FAILED|
"""


def file_of(folder: Path, name: str, text: str) -> Path:
    """Write a log."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_output_of_sacct_by_hand(tmp_path: Path):
    """Times over midnight and leap day, minutes of limits, steps, and each reason with its line."""
    jobs = read_sacct(file_of(tmp_path, "jobs.psv", SACCT))
    assert jobs.job.tolist() == [101, 100, 107]
    assert (jobs.submit_time_s - jobs.submit_time_s[0]).tolist() == [0, 36_020, 36_021]
    assert jobs.run_time_s.tolist() == [30, 100, 7]
    assert jobs.width.tolist() == [1, 2, 3]
    assert jobs.estimate_s.tolist() == [np.inf, 300, np.inf]
    assert {each.reason.split(" (")[0]: each.lines for each in jobs.dropped} == {
        "a step of a job": (3,),
        "had not ended": (6,),
        "not of the format": (8, 9),
        "no submission time": (7,),
        "no run time greater than 0 s": (5,),
    }


def test_other_columns_of_sacct(tmp_path: Path):
    """Clock times of elapsed time and limit, a trailing bar, ids of arrays, processors as width."""
    text = (
        "JobID|Submit|Elapsed|Timelimit|NNodes|NCPUS|\n"
        "7_1|1709287200|1-02:03:04|2-00:00:00|2|64|\n"
        "7_2|1709287201|05:06|UNLIMITED|1|16|\n"
    )
    path = file_of(tmp_path, "jobs.sacct", text)
    jobs = read_jobs(path, TraceOptions())
    assert jobs.job.tolist() == [2, 3]  # by line
    assert jobs.run_time_s.tolist() == [86_400 + 7_384, 306]
    assert np.array_equal(jobs.requested_time_s, [172_800, np.inf])
    jobs = read_jobs(path, TraceOptions(nodes_from="NCPUS", procs_per_node=32))
    assert jobs.width.tolist() == [2, 1]
    with pytest.raises(InputError, match="procs_per_node"):
        read_jobs(path, TraceOptions(procs_per_node=32))
    with pytest.raises(InputError, match=r"NCPU.*'NCPUS'"):
        read_jobs(path, TraceOptions(nodes_from="NCPU"))
    with pytest.raises(InputError, match=r"line 1.*Submit"):
        read_sacct(file_of(tmp_path, "x.psv", "a|b\n1|2\n"))


def test_names_of_logs(tmp_path: Path):
    """By their endings, compressed or not; what is not a log cannot be read or written as one."""
    found = [format_of(name) for name in ("A.SWF", "a.txt", "a.csv", "a.gz")]
    assert found == ["swf", "sacct", None, None]
    with pytest.raises(InputError, match=r"\.swf.*\.jobs\.csv"):
        read_jobs(tmp_path / "a.csv", TraceOptions())
    with pytest.raises(InputError, match=r"\.swf.*\.jobs\.csv"):
        write_jobs(JobTable(*([np.zeros(0)] * 5)), tmp_path / "a.psv")


def test_serial_jobs_become_tasks(tmp_path: Path):
    """Those of one node, from 0 s, with as many flops as they ran; the others are reported."""
    found = serial_tasks(read_sacct(file_of(tmp_path, "jobs.psv", SACCT)), 2e9)
    assert found.tasks.labels.tolist() == [101]
    assert found.tasks.flops.tolist() == [60e9]
    assert found.tasks.submit_time_s.tolist() == [0]
    assert found.tasks.are_serial
    assert found.jobs.dropped[-1].lines == (2, 10)


def test_names_of_users_go_with_their_jobs(tmp_path):
    """Each job keeps its user and its partition, whatever is left out, from the log to the run's tasks."""
    jobs = read_sacct(file_of(tmp_path, "a.psv", SACCT))
    assert jobs.job.tolist() == [101, 100, 107]
    assert jobs.attributes["user"].tolist() == ["bob", "ann", "cy"]
    assert "qos" not in jobs.attributes
    tasks = rigid_system(jobs, homogeneous_cluster(4, idle_w=1, busy_w=2, speed=1e9)).tasks
    user = tasks.attributes["user"]
    assert user.names == ("bob", "ann", "cy")
    assert user.codes.tolist() == [0, 1, 2]
    assert tasks.taken(np.array([2, 0])).attributes["user"].texts == ["cy", "bob"]


def test_a_policy_sees_no_name_before_its_first_job(tmp_path):
    """Names come in order of first appearance; of later tasks there is no code, and no name but in the sorted list."""
    tasks = make_tasks([1.0] * 4, [0, 1, 2, 3], attributes={"user": ["b", "", "b", "a"]})
    arrived = ArrivedTasks(tasks)
    assert arrived.first(0).attributes["user"].names == ()
    assert arrived.first(0).attributes["user"].known == ("", "a", "b")
    assert arrived.first(3).attributes["user"].names == ("b",)
    seen = arrived.first(4).attributes["user"]
    assert (seen.names, seen.codes.tolist()) == (("b", "a"), [0, -1, 0, 1])
    assert seen.codes.base is None or not np.shares_memory(seen.codes, tasks.attributes["user"].codes)


def test_names_of_the_standard_format(tmp_path):
    """Fields 12, 13, 15 and 16; -1 and fields that are not there state nothing."""
    text = "1 0 -1 5 1 -1 -1 1 9 -1 1 7 3 -1 2 4 -1 -1\n2 1 -1 5 1 -1 -1 1 9\n"
    text += "3 2 -1 5 1 -1 -1 1 9 -1 1 8 -1 -1 2 -1 -1 -1\n"
    names = read_jobs(file_of(tmp_path, "a.swf", text), TraceOptions()).attributes
    assert {name: texts.tolist() for name, texts in names.items()} == {
        "user": ["7", "", "8"],
        "group": ["3", "", ""],
        "queue": ["2", "", "2"],
        "partition": ["4", "", ""],
    }


def test_what_sacct_tells_of_dependencies(tmp_path):
    """The option of the command line, arrays by their tasks, and conditions without effect."""
    head = "JobID|JobIDRaw|Submit|ElapsedRaw|AllocNodes|SubmitLine\n"
    rows = [
        "17_1|18|0|10|1|sbatch --array=1-2 a.sh",
        "17_2|17|0|20|1|sbatch --array=1-2 a.sh",
        "20|20|1|5|1|sbatch -d afterok:17 b.sh",
        "21_1|22|2|5|1|sbatch --dependency=aftercorr:17 --array=1-2 c.sh",
        "21_2|21|2|5|1|sbatch --dependency=aftercorr:17 --array=1-2 c.sh",
        "23|23|3|5|1|sbatch --dependency after:20+2,singleton d.sh",
        "24|24|4|5|1|sbatch -dafterany:99 e.sh",
        "25|25|5|5|1|sbatch -n 4 --depend f.sh",
    ]
    path = file_of(tmp_path, "a.psv", head + "\n".join(rows))
    found = trace_system(path, TraceOptions(nodes=9))
    pairs = found.system.tasks.dependencies
    names = found.jobs.job.tolist()
    told = {
        (names[task], names[on], kind, delay)
        for task, on, kind, delay in zip(pairs.task, pairs.on, pairs.kind, pairs.delay_s, strict=True)
    }
    ok, start = int(After.SUCCESS), int(After.START)
    assert told == {(20, 17, ok, 0), (20, 18, ok, 0), (22, 18, ok, 0), (21, 17, ok, 0), (23, 20, start, 120)}
    assert [note.split()[0] for note in found.jobs.notes] == ["1", "1"]
    trace = run(Scenario(None, path, "fcfs", driver="reference", trace=TraceOptions(nodes=9))).trace
    assert dict(zip(names, trace.start_time_s.tolist(), strict=True)) == {
        17: 0,
        18: 0,
        20: 20,
        22: 10,
        21: 20,
        23: 140,
        24: 4,
        25: 5,
    }


#: An array's tasks and parts of a heterogeneous job, without the numbers of JobIDRaw.
NAMED_JOBS = """JobID|Submit|ElapsedRaw|NNodes|Dependency
9|0|10|1|
17_1|0|20|1|
17_2|0|30|1|
20+0|1|5|1|
20+1|1|5|2|
20+1.batch|1|5|2|
21|2|5|1|afterok:17
22|2|7|1|afterany:20
"""


def test_ids_of_arrays_and_heterogeneous_jobs_are_kept(tmp_path):
    """In tasks and records; one line reports that parts of one job run on their own."""
    path = file_of(tmp_path, "a.psv", NAMED_JOBS)
    ids = ["9", "17_1", "17_2", "20+0", "20+1", "21", "22"]
    result = run(Scenario(None, path, "fcfs", driver="reference", trace=TraceOptions(nodes=9)))
    trace = result.trace
    assert trace.tasks.labels.tolist() == ids
    starts = dict(zip(ids, trace.start_time_s.tolist(), strict=True))
    assert starts == {"9": 0, "17_1": 0, "17_2": 0, "20+0": 1, "20+1": 1, "21": 30, "22": 6}
    assert sum("heterogeneous" in text for text in result.scenario.warnings) == 1
    assert any("2 parts of 1 heterogeneous" in text for text in result.scenario.warnings)
    assert jobs_table(trace, "a")["job_id"].tolist() == ids
    assert tasks_table(trace)["job_id"].tolist() == ids
    assert set(records_of(result)["task_id"].dropna()) == set(ids)
    assert "ids" in str(stays_behind(read_jobs(path, TraceOptions()), "b.swf"))
    assert stays_behind(read_jobs(path, TraceOptions()), "b.jobs.csv") is None
    assert any("ids" in note for note in serial_tasks(read_jobs(path, TraceOptions()), 1.0).jobs.notes)


@pytest.mark.parametrize("name", ["b.jobs.csv", pytest.param("b.json", marks=pytest.mark.systems("batsim"))])
def test_written_files_keep_ids_of_arrays_and_heterogeneous_jobs(name, tmp_path):
    """In each format that has room for ids that are no numbers."""
    jobs = read_jobs(file_of(tmp_path, "a.psv", NAMED_JOBS), TraceOptions())
    write_jobs(jobs, tmp_path / name)
    assert read_jobs(tmp_path / name, TraceOptions()).ids.tolist() == jobs.ids.tolist()
    assert "17_1" in jobs.ids.tolist()


def test_ids_are_numbers_where_the_log_tells_them(tmp_path):
    """With JobIDRaw nothing changes but for the line on the parts of a heterogeneous job."""
    head, *rows = NAMED_JOBS.splitlines()
    lines = [f"JobIDRaw|{head}", *(f"{k}|{row}" for k, row in enumerate(rows, start=50))]
    jobs = read_sacct(file_of(tmp_path, "a.psv", "\n".join(lines).replace("55|", "54.batch|")))
    assert jobs.ids.tolist() == [50, 51, 52, 53, 54, 56, 57]
    assert any("2 parts of 1 heterogeneous" in note for note in jobs.notes)


def test_a_job_that_the_log_has_twice_counts_once(tmp_path):
    """By its id, whether or not that is a number; the last record is the job."""
    text = "JobID|Submit|ElapsedRaw|NNodes\n17_1|0|10|1\n17_1|5|20|1\n18|6|1|1\n"
    jobs = read_jobs(file_of(tmp_path, "a.psv", text), TraceOptions())
    assert jobs.ids.tolist() == ["17_1", "18"]
    assert jobs.dropped[-1].lines == (2,)


def test_messages_have_the_ids_of_the_log(tmp_path):
    """A job whose power no node draws is named as the log names it."""
    text = "JobID|Submit|ElapsedRaw|NNodes|ConsumedEnergyRaw\n17_1|0|10|1|1000\n17_2|0|10|1|100000000\n"
    path = file_of(tmp_path, "a.psv", text)
    scenario = Scenario(None, path, "fcfs", driver="reference", trace=TraceOptions(nodes=9), power=("measured",))
    with pytest.raises(InputError, match="job 17_2 "):
        run(scenario)


def test_ids_that_no_record_takes_are_left_out(tmp_path):
    """Longer than any, or with characters that are not printed; a job without an id is called by its line."""
    text = f"JobID|Submit|ElapsedRaw|NNodes\n17_1|0|10|1\n{'x' * 200}|0|10|1\na\x07|0|10|1\n|0|10|1\n8|0|1|1\n"
    jobs = read_jobs(file_of(tmp_path, "a.psv", text), TraceOptions())
    assert jobs.ids.tolist() == ["17_1", "#5", "8"]
    assert jobs.dropped[0].lines == (3, 4)


def states_log(folder: Path, *rows: str) -> Path:
    """Write a log of jobs that ran for 10 s from 0 s on, one node each, given id|State|Dependency."""
    lines = ["JobID|Submit|ElapsedRaw|NNodes|State|Dependency"]
    lines += [f"{id}|{k}|10|1|{rest}" for k, (id, rest) in enumerate(row.split("|", 1) for row in rows)]
    return file_of(folder, "states.sacct", "\n".join(lines) + "\n")


def ends_of(path: Path, **options: str) -> tuple[dict[str, float | str], list[str]]:
    """Return when each job started, or how it ended without a start, and the messages."""
    result = run(Scenario(None, path, "fcfs", driver="reference", trace=TraceOptions(nodes=9, **options)))
    trace = result.trace
    words = [TaskState(state).name.lower() for state in trace.final_state.tolist()]
    starts = [word if np.isnan(t) else t for t, word in zip(trace.start_time_s.tolist(), words, strict=True)]
    return dict(zip(map(str, trace.tasks.labels), starts, strict=True)), list(result.scenario.warnings)


def test_dependencies_take_the_state_of_the_log(tmp_path):
    """Job 1 failed and 2 succeeded: who needs the failure of 1 starts at its end, who needs its success never."""
    path = states_log(
        tmp_path,
        "1|FAILED|",
        "2|COMPLETED|",
        "3|COMPLETED|afternotok:1",
        "4|COMPLETED|afterok:1",
        "5|COMPLETED|afterok:2",
        "6|COMPLETED|afternotok:2",
        "7|COMPLETED|afterany:1",
        "8|COMPLETED|afterok:4",
    )
    starts, said = ends_of(path)
    rejected = "rejected"
    assert starts == {"1": 0, "2": 1, "3": 10, "4": rejected, "5": 11, "6": rejected, "7": 10, "8": rejected}
    assert [text for text in said if "State" in text and "1 afternotok" in text and "1 afterok" in text]
    starts, said = ends_of(path, outcomes_from="run")
    assert starts == {"1": 0, "2": 1, "3": rejected, "4": 10, "5": 11, "6": rejected, "7": 10, "8": 20}
    assert not [text for text in said if "State" in text]


@pytest.mark.parametrize("state", ["TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "CANCELLED by 1000", "DEADLINE"])
def test_what_is_no_success_in_a_log(tmp_path, state):
    """All of Slurm's words for it; of a word that is not known the run decides."""
    assert ends_of(states_log(tmp_path, f"1|{state}|", "2||afternotok:1"))[0]["2"] == 10
    assert ends_of(states_log(tmp_path, "1|LUCKY|", "2||afternotok:1"))[0]["2"] == "rejected"


def test_of_an_array_one_failure_is_enough(tmp_path):
    """As Slurm has it: afternotok of the whole waits for all tasks, of which one failed; afterok needs all."""
    path = states_log(tmp_path, "1_1|FAILED|", "1_2|COMPLETED|", "2||afternotok:1", "3||afterok:1", "4||afterok:1_2")
    starts, _ = ends_of(path)
    assert starts == {"1_1": 0, "1_2": 1, "2": 11, "3": "rejected", "4": 11}
    path.write_text(path.read_text().replace("1_1|0|10|1|FAILED", "1_1|0|0|0|CANCELLED by 7"))
    starts, said = ends_of(path)  # counted from the first job that is kept
    assert starts == {"1_2": 0, "2": 10, "3": 10, "4": 10}
    assert any("1 afternotok" in text and "0 afterok" in text for text in said)


def test_what_a_rejected_job_means_to_others(tmp_path):
    """Job 2 is rejected when 1 ends, at 10 s: that is its end without a start and without success."""
    path = states_log(
        tmp_path, "1|FAILED|", "2||afterok:1", "3||after:2", "4||afterany:2", "5||afternotok:2", "6||afterok:2"
    )
    starts, _ = ends_of(path)
    assert starts == {"1": 0, "2": "rejected", "3": 10, "4": 10, "5": 10, "6": "rejected"}


def test_states_stay_with_dependencies_that_are_written(tmp_path):
    """A table without states runs as the log; jobs left out count once; others formats know no such option."""
    path = states_log(
        tmp_path, "1|FAILED|", "2||afternotok:1", "3||afterok:1", "4||after:1+1", "5|FAILED|", "6||afterok:5"
    )
    write_jobs(read_jobs(path, TraceOptions()), tmp_path / "b.jobs.csv")
    assert ends_of(tmp_path / "b.jobs.csv")[0] == ends_of(path)[0]
    with pytest.raises(InputError, match="outcomes_from"):
        ends_of(tmp_path / "b.jobs.csv", outcomes_from="run")
    wide = path.read_text().replace("5|4|10|1|", "5|4|10|99|")
    starts, said = ends_of(file_of(tmp_path, "w.sacct", wide))
    assert starts["6"] == 5
    assert [text.split()[0] for text in said if "left out or come later" in text] == ["1"]
