"""Slurm's accounting as real files have it: limits, attempts, clusters, memory, texts with bars and line breaks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gridsched import Scenario, run
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.errors import InputError
from gridsched.export.export import read_export, write_export
from gridsched.testing import trace_differences
from gridsched.testing.decision_checks import early_starts
from gridsched.workloads.traces.formats import read_jobs, stays_behind, write_jobs
from gridsched.workloads.traces.logged_holds import begin_after
from gridsched.workloads.traces.sacct import read_sacct
from gridsched.workloads.traces.trace_options import TraceOptions
from gridsched.workloads.traces.trace_system import trace_system

LIMITS = """\
JobIDRaw|Partition|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|State|NodeList
1|p|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T00:03:20|200|4|1|1|COMPLETED|n1
2|p|2024-01-01T00:00:01|2024-01-01T00:03:20|2024-01-01T00:05:00|100|2|2|2|COMPLETED|n[1-2]
3|p|2024-01-01T00:00:10|2024-01-01T00:05:00|2024-01-01T00:05:50|50|LIMIT|1|1|COMPLETED|n1
"""
TWO_NODES = """\
SelectType=select/linear
NodeName=n[1-2] CPUs=1
PartitionName=p Nodes=n[1-2] Default=YES MaxTime=LONGEST State=UP
"""
YEAR_S = 365 * 86_400


def written(folder: Path, name: str, text: str) -> Path:
    """Write a file."""
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def ran(path: Path, scheduler: str = "easy_backfilling", **options) -> tuple[dict[str, float], str]:
    """Return when each job starts [s], by id, and all lines."""
    result = run(Scenario(None, path, scheduler, driver="reference", trace=TraceOptions(**options)))
    labels = map(str, result.trace.tasks.labels)
    lines = (*map(str, result.scenario.left_out), *result.scenario.warnings)
    return dict(zip(labels, result.trace.start_time_s.tolist(), strict=True)), "\n".join(lines)


# Time limits that are those of the partition.


@pytest.mark.parametrize("limit", ["Partition_Limit", "UNLIMITED"])
@pytest.mark.parametrize(("longest", "requested_s"), [("60", 3600), ("INFINITE", YEAR_S)])
def test_a_job_without_a_limit_does_not_overtake(tmp_path, limit, longest, requested_s):
    """It ran for 50 s in a hole of 190 s, which neither Slurm nor EASY knew: it waits behind the job of two nodes."""
    log = written(tmp_path, "log.sacct", LIMITS.replace("LIMIT", limit))
    conf = written(tmp_path, "slurm.conf", TWO_NODES.replace("LONGEST", longest))
    assert trace_system(log, TraceOptions(slurm_conf=conf)).system.tasks.requested_time_s.tolist()[2] == requested_s
    for scheduler in ("easy_backfilling", "conservative_backfilling", "slurm"):
        starts, lines = ran(log, scheduler, slurm_conf=conf)
        assert starts["3"] == pytest.approx(300, abs=1)
        assert "1 job has no time limit" in lines
    assert ran(log, slurm_conf=conf)[0] == {"1": 0, "2": 200, "3": 300}


@pytest.mark.parametrize("limit", ["Partition_Limit", "UNLIMITED", "INVALID"])
def test_a_job_without_a_limit_and_without_a_configuration(tmp_path, limit):
    """It is counted in a line, and does not overtake either; of a table of partitions the longest time counts."""
    log = written(tmp_path, "log.sacct", LIMITS.replace("LIMIT", limit))
    starts, lines = ran(log, nodes=2)
    assert starts["3"] == 300
    assert "1 job has no time limit" in lines
    names = ", ".join(f'"{host.name}"' for host in trace_system(log, TraceOptions(nodes=2)).system.platform.hosts)
    table = written(tmp_path, "p.toml", f'[[partition]]\nname = "p"\nnodes = [{names}]\nmax_time_s = 600\n')
    made = trace_system(log, TraceOptions(nodes=2, partitions=table))
    assert made.system.tasks.requested_time_s.tolist() == [240, 120, 600]


def test_files_keep_that_there_is_no_limit(tmp_path):
    """A table has it as infinite; SWF, which knows no such thing, has a year, and not the run time."""
    jobs = read_jobs(written(tmp_path, "log.sacct", LIMITS.replace("LIMIT", "UNLIMITED")), TraceOptions())
    assert jobs.requested_time_s.tolist() == [240, 120, np.inf]
    for name, requested_s in (("a.jobs.csv", np.inf), ("a.swf", YEAR_S)):
        write_jobs(jobs, tmp_path / name)
        assert read_jobs(tmp_path / name, TraceOptions()).requested_time_s.tolist() == [240, 120, requested_s]


# Several records of a job, and several clusters.

REQUEUED = """\
JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|State|SubmitLine
1|2026-03-02T00:00:00|2026-03-02T00:00:00|2026-03-02T00:01:00|60|20|1|NODE_FAIL|sbatch a
1|2026-03-02T00:00:00|2026-03-02T00:02:00|2026-03-02T00:12:00|600|20|1|COMPLETED|sbatch a
2|2026-03-02T00:00:10|2026-03-02T00:12:00|2026-03-02T00:22:00|600|20|1|COMPLETED|sbatch --dependency=afterok:1 b
"""


def test_the_last_record_of_a_job_counts(tmp_path):
    """That of job 1 is of 600 s and a success, so job 2 starts behind it; a line counts the one that failed."""
    starts, lines = ran(written(tmp_path, "a.sacct", REQUEUED), "fcfs", nodes=2)
    assert starts == {"1": 0, "2": 600}
    assert "1 job left out: an earlier record" in lines
    assert "(line 2)" in lines


def test_the_last_record_is_the_one_that_started_last(tmp_path):
    """Wherever it is in the file, also with a submission of its own for each; one that has not ended is the last."""
    head, *rows = REQUEUED.splitlines()
    swapped = "\n".join([head, rows[1], rows[0], rows[2]])
    assert ran(written(tmp_path, "a.sacct", swapped), "fcfs", nodes=2)[0] == {"1": 0, "2": 600}
    pending = "1|2026-03-02T00:00:00|Unknown|Unknown|0|20|1|PENDING|sbatch a"
    jobs = read_sacct(written(tmp_path, "b.sacct", "\n".join([head, pending, *rows])))
    assert jobs.ids.tolist() == [2]
    names = ("235929|{}|{}||{}|120|1|{}".format(t, t, *rest) for t, *rest in ATTEMPTS)
    text = "JobID|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|State\n" + "\n".join(names)
    jobs = read_jobs(written(tmp_path, "c.sacct", text), TraceOptions())
    assert (jobs.ids.tolist(), jobs.run_time_s.tolist()) == ([235929], [1800])
    assert [each.lines for each in jobs.dropped] == [(2, 3)]


#: Start, run time [s] and state of one job's attempts.
ATTEMPTS = [
    ("2023-02-01T00:00:00", 3889, "REQUEUED"),
    ("2023-02-01T02:00:00", 4489, "REQUEUED"),
    ("2023-02-01T08:00:00", 1800, "COMPLETED"),
]
CLUSTERS = """\
Cluster|JobID|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|State
east|100|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T00:01:00|60|5|1|COMPLETED
west|100|2024-01-01T00:00:30|2024-01-01T00:00:30|2024-01-01T00:02:30|120|5|2|COMPLETED
east|101|2024-01-01T00:01:00|2024-01-01T00:01:00|2024-01-01T00:02:00|60|5|1|COMPLETED
"""


def test_clusters_are_not_mixed(tmp_path):
    """Jobs of several are refused, and an option chooses one; a file of one needs none."""
    path = written(tmp_path, "a.sacct", CLUSTERS)
    with pytest.raises(InputError, match=r"Cluster.*east, west.*--cluster NAME"):
        read_jobs(path, TraceOptions())
    for name, ids, run_s in (("east", [100, 101], [60, 60]), ("west", [100], [120])):
        jobs = read_jobs(path, TraceOptions(cluster=name))
        assert (jobs.ids.tolist(), jobs.run_time_s.tolist()) == (ids, run_s)
        assert sum(each.count for each in jobs.dropped) == 3 - len(ids)
    with pytest.raises(InputError, match=r"'north'.*east, west"):
        read_jobs(path, TraceOptions(cluster="north"))
    one = written(tmp_path, "b.sacct", CLUSTERS.replace("west", "east").replace("|100|2024-01-01T00:00:30", "|99|0"))
    assert len(read_jobs(one, TraceOptions())) == len(read_jobs(one, TraceOptions(cluster="east"))) == 3
    with pytest.raises(InputError, match="cluster has no effect"):
        read_jobs(written(tmp_path, "a.swf", "1 0 0 1 1\n"), TraceOptions(cluster="east"))
    with pytest.raises(InputError, match="no column Cluster"):
        read_jobs(written(tmp_path, "c.sacct", REQUEUED), TraceOptions(cluster="east"))


def test_clusters_in_json(tmp_path):
    """`sacct -M ... --json` has them at each job."""
    jobs = [
        {
            "association": {},
            "cluster": name,
            "job_id": 100,
            "allocation_nodes": 1,
            "time": {"submission": 1, "elapsed": 5},
        }
        for name in ("east", "west")
    ]
    path = written(tmp_path, "a.json", json.dumps({"jobs": jobs}))
    with pytest.raises(InputError, match="east, west"):
        read_jobs(path, TraceOptions())
    assert len(read_jobs(path, TraceOptions(cluster="west"))) == 1


# Texts with bars and line breaks.

WITH_BARS = """\
JobIDRaw|User|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocNodes|State|SubmitLine
1|u|2026-03-02T00:00:00|2026-03-02T00:00:00|2026-03-02T00:01:00|60|20|1|COMPLETED|sbatch a.sh
2|u|2026-03-02T00:00:00|2026-03-02T00:00:00|2026-03-02T00:01:00|60|20|1|COMPLETED|sbatch --wrap=env | grep SLURM
3|u|2026-03-02T00:00:00|2026-03-02T00:00:00|2026-03-02T00:01:00|60|20|1|COMPLETED|sbatch --wrap=a
b || c 7
8
| wc --dependency=afterok:1
4|u|2026-03-02T00:00:00|2026-03-02T00:00:00|2026-03-02T00:01:00|60|20|1|COMPLETED|sbatch a.sh
"""


def test_the_last_text_takes_bars_and_line_breaks(tmp_path):
    """The number of a job begins a row; options behind a line break are options, too."""
    jobs = read_jobs(written(tmp_path, "a.sacct", WITH_BARS), TraceOptions())
    assert jobs.ids.tolist() == [1, 2, 3, 4]
    assert not jobs.dropped
    assert jobs.after[["line", "on"]].tolist() == [(4, 2)]
    with_trailing_bar = "\n".join(
        f"{line}|" if line[0] in "1Jo|24" and "wrap=a" not in line else line for line in WITH_BARS.splitlines()
    )
    assert with_trailing_bar.count("|\n") == 4
    jobs = read_jobs(written(tmp_path, "b.sacct", with_trailing_bar), TraceOptions())
    assert jobs.ids.tolist() == [1, 2, 3, 4]


NAMES = ["a|b", "a | b | 7", "|", "x\ny", "a\n5\n|7|", "12\n13 x|", "sbatch|1|u"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("line", ["sbatch a", "srun -C a|b x | y", "sbatch --wrap=x\ny | z\n\n9"])
@pytest.mark.parametrize("order", ["JobName first", "JobName last", "JobID last"])
def test_bars_and_line_breaks_in_names_of_jobs(tmp_path, name, line, order):
    """No row is lost and none changed, wherever the columns are: constraints and names keep their alternatives."""
    columns = {
        "JobID": ["7", "8_1", "9"],
        "JobName": ["plain", name, "plain"],
        "User": ["ann", "bob", "cy"],
        "Submit": ["2026-03-02T00:00:00", "2026-03-02T00:00:01", "2026-03-02T00:00:02"],
        "ElapsedRaw": ["10", "20", "30"],
        "NNodes": ["1", "2", "3"],
        "Constraints": ["", "a|b", "(a&c)"],
        "State": ["COMPLETED", "FAILED", "TIMEOUT"],
        "SubmitLine": ["sbatch x", line, "sbatch y"],
    }
    names = list(columns)
    if order == "JobName last":
        names.append(names.pop(1))
    elif order == "JobID last":
        names.append(names.pop(0))
    if order == "JobID last" and ("\n" in name or "\n" in line):
        pytest.skip("only a number of a job in front of a text begins a row")
    rows = ["|".join(columns[each][k] for each in names) for k in range(3)]
    jobs = read_jobs(written(tmp_path, "a.sacct", "\n".join(["|".join(names), *rows])), TraceOptions())
    assert jobs.ids.tolist() == ["7", "8_1", "9"]
    assert jobs.run_time_s.tolist() == [10, 20, 30]
    assert jobs.width.tolist() == [1, 2, 3]
    assert jobs.attributes["user"].tolist() == ["ann", "bob", "cy"]
    assert jobs.attributes["constraint"].tolist() == ["", "a|b", "(a&c)"]
    assert not jobs.dropped


# Times before which jobs cannot start, and limits of arrays.

TWO_OF_FOUR = """\
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=a[1-2] CPUs=4
PartitionName=a Nodes=a[1-2] Default=YES MaxTime=INFINITE State=UP
"""
BEGIN = """\
JobIDRaw|Submit|Eligible|Start|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|State|NodeList|SubmitLine
1|2026-03-02T00:00:00|2026-03-02T10:00:00|2026-03-02T10:00:00|3600|120|1|1|COMPLETED|a1|sbatch --begin=10:00 j
2|2026-03-02T00:00:00|2026-03-02T00:00:00|2026-03-02T00:00:00|3600|120|1|1|COMPLETED|a1|sbatch j
"""
ARRAY = """\
JobID|JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|State|NodeList|SubmitLine
10_0|10|2026-03-02T00:00:00|2026-03-02T00:00:00|2026-03-02T01:00:00|3600|120|1|1|COMPLETED|a1|LINE
10_1|11|2026-03-02T00:00:00|2026-03-02T01:00:00|2026-03-02T02:00:00|3600|120|1|1|COMPLETED|a1|LINE
10_2|12|2026-03-02T00:00:00|2026-03-02T02:00:00|2026-03-02T03:00:00|3600|120|1|1|COMPLETED|a1|LINE
10_3|13|2026-03-02T00:00:00|2026-03-02T03:00:00|2026-03-02T04:00:00|3600|120|1|1|COMPLETED|a1|LINE
"""
QUEUES = ["fcfs", "easy_backfilling", "conservative_backfilling", "slurm"]


def conf_of(folder: Path) -> Path:
    """Write a machine of two shared nodes."""
    return written(folder, "two.conf", TWO_OF_FOUR)


@pytest.mark.parametrize("scheduler", QUEUES)
def test_no_job_starts_before_it_is_eligible(tmp_path, scheduler):
    """From Eligible, or without that column from the option: the wait is counted from the submission as before."""
    without = "\n".join(
        "|".join(text for k, text in enumerate(line.split("|")) if k != 2) for line in BEGIN.splitlines()
    )
    for text in (BEGIN, without, BEGIN.replace("--begin=10:00", "")):
        path = written(tmp_path, "a.sacct", text)
        starts, lines = ran(path, scheduler, slurm_conf=conf_of(tmp_path))
        assert starts == {"1": 36_000, "2": 0}
        assert "1 job cannot start before" in lines
    result = run(Scenario(None, path, scheduler, driver="reference", trace=TraceOptions(slurm_conf=conf_of(tmp_path))))
    assert result.metrics()["mean_waiting_time_s"] == 18_000
    assert early_starts(result.trace) == []


@pytest.mark.parametrize("scheduler", QUEUES)
@pytest.mark.parametrize(("limit", "starts_s"), [(1, [0, 1, 2, 3]), (2, [0, 0, 1, 1]), (3, [0, 0, 0, 1]), (9, [0] * 4)])
def test_arrays_keep_their_limits(tmp_path, scheduler, limit, starts_s):
    """Of four tasks of an hour on eight cores as many run at once as the array's limit allows, in their order."""
    path = written(tmp_path, "a.sacct", ARRAY.replace("LINE", f"sbatch --array=0-3%{limit} j.sh"))
    starts, lines = ran(path, scheduler, slurm_conf=conf_of(tmp_path))
    assert list(starts.values()) == [3600 * hours for hours in starts_s]
    assert ("4 tasks of 1 array" in lines) == (limit < 4)


def test_limits_of_arrays_wherever_they_are(tmp_path):
    """In either spelling, in the id of what is left of an array, without JobID, and in JSON."""
    head, *rows = ARRAY.splitlines()
    no_id = "\n".join("|".join(line.split("|")[1:]) for line in (head, *rows))
    left = "10_[4-9%1]|14|2026-03-02T00:00:00|Unknown|Unknown|0|120|1|0|PENDING||LINE"
    texts = (
        ARRAY.replace("LINE", "sbatch -p a -a 0-3%1 j.sh"),
        ARRAY.replace("LINE", "sbatch --array 0,1,2-3%1 j.sh"),
        "\n".join([head, left, *rows]).replace("LINE", "sbatch j.sh"),
        no_id.replace("LINE", "sbatch -a0-3%1 j.sh"),
    )
    conf = conf_of(tmp_path)
    for text in texts:
        starts, _ = ran(written(tmp_path, "a.sacct", text), "fcfs", slurm_conf=conf)
        assert list(starts.values()) == [0, 3600, 7200, 10_800]
    jobs = [
        {
            "association": {},
            "job_id": 10 + k,
            "array": {
                "job_id": 10,
                "limits": {"max": {"running": {"tasks": 1}}},
                "task_id": {"set": True, "number": k},
            },
            "allocation_nodes": 1,
            "state": {"current": ["COMPLETED"]},
            "time": {"submission": 1000, "eligible": 1000 + 50 * k, "start": 1000 + 50 * k, "elapsed": 10},
        }
        for k in range(3)
    ]
    starts, _ = ran(written(tmp_path, "a.json", json.dumps({"jobs": jobs})), "fcfs", nodes=4)
    assert list(starts.values()) == [0, 10, 20]  # Eligible of later tasks is when it was their turn
    for job in jobs:
        job["array"]["limits"] = {}
    starts, _ = ran(written(tmp_path, "b.json", json.dumps({"jobs": jobs})), "fcfs", nodes=4)
    assert list(starts.values()) == [0, 50, 100]


def test_what_waits_in_the_run_is_not_held_by_the_log(tmp_path):
    """Eligible of a job that waits for another is when that ended in the log: it counts only if the run cannot know."""
    head = "JobID|Submit|Eligible|Start|ElapsedRaw|TimelimitRaw|NNodes|State|SubmitLine"
    first = "1|1000|1000|5000|100|5|1|COMPLETED|sbatch a"
    for option, start in (
        ("--dependency=afterok:1", 100),
        ("--dependency=afterok:1 --begin=now+300", 300),
        ("--dependency=afterok:99", 4100),
        ("--dependency=afterok:1,afterok:99", 4100),
        ("--dependency=afterok:1,singleton", 4100),
        ("--begin=now+300", 4100),
    ):
        path = written(tmp_path, "a.sacct", f"{head}\n{first}\n2|1000|5100|5100|10|5|1|COMPLETED|sbatch {option} b\n")
        assert ran(path, "fcfs", nodes=2)[0] == {"1": 0, "2": start}, option


def test_an_eligible_time_behind_the_start_does_not_count(tmp_path):
    """And a line counts it; --begin in a form that is not read is counted, too."""
    head = "JobID|Submit|Eligible|Start|ElapsedRaw|TimelimitRaw|NNodes|State|SubmitLine"
    rows = ("1|1000|3000|2000|100|5|1|COMPLETED|sbatch a", "2|1000|Unknown|2000|100|5|1|COMPLETED|sbatch -b soon b")
    starts, lines = ran(written(tmp_path, "a.sacct", "\n".join([head, *rows])), "fcfs", nodes=2)
    assert starts == {"1": 0, "2": 0}
    assert "1 job started before Eligible" in lines
    assert "1 option --begin" in lines


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("16:00", 4),
        ("10:00", 22),
        ("4:30pm", 4.5),
        ("now+1hour", 1),
        ("now+90minutes", 1.5),
        ("now+3600", 1),
        ("now", 0),
        ("now+2days", 48),
        ("midnight", 12),
        ("tomorrow", 12),
        ("noon", 0),
        ("2026-03-03T12:30", 24.5),
        ("2026-03-03", 12),
        ("03/03/26", 12),
        ("030326", 12),
        ("now+3fortnights", np.nan),
        ("someday", np.nan),
    ],
)
def test_options_of_begin(text, hours):
    """As the manual of sbatch has them, of a job that is submitted at noon."""
    np.testing.assert_equal(begin_after(text, "2026-03-02T12:00:00"), hours * 3600)


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize("scheduler", ["fcfs", "easy_backfilling"])
def test_both_drivers_hold_jobs_back(tmp_path, scheduler):
    """SimGrid starts the same jobs at the same times, and an archive keeps what held them."""
    texts = (BEGIN, ARRAY.replace("LINE", "sbatch --array=0-3%2 j.sh"))
    jobs = [read_jobs(written(tmp_path, "a.sacct", text), TraceOptions()) for text in texts]
    for k, each in enumerate(jobs):
        write_jobs(each, tmp_path / f"{k}.jobs.csv")
        path, options = tmp_path / f"{k}.jobs.csv", TraceOptions(nodes=2)
        found = [run(Scenario(None, path, scheduler, driver=name, trace=options)) for name in ("reference", "simgrid")]
        assert trace_differences(found[0].trace, found[1].trace) == []
        assert early_starts(found[0].trace) == early_starts(found[1].trace) == []
        write_export(found[0].trace, None, {}, tmp_path / str(k), workload_name="log")
        holds = read_export(tmp_path / str(k)).trace.tasks.holds
        for name in ("release_s", "array", "limit"):
            np.testing.assert_array_equal(getattr(holds, name), getattr(found[0].trace.tasks.holds, name))


def test_tables_keep_what_holds_jobs_back(tmp_path):
    """Written and read again they run the same; SWF loses it, and a line reports this."""
    conf = conf_of(tmp_path)
    for text in (BEGIN, ARRAY.replace("LINE", "sbatch --array=0-3%1 j.sh")):
        path = written(tmp_path, "a.sacct", text)
        jobs = read_jobs(path, TraceOptions())
        write_jobs(jobs, tmp_path / "a.jobs.csv", force=True)
        starts = [ran(each, "fcfs", slurm_conf=conf)[0] for each in (path, tmp_path / "a.jobs.csv")]
        assert starts[0] == starts[1]
        assert "limits of arrays" in stays_behind(jobs, "a.swf")
        assert stays_behind(jobs, "a.jobs.csv") is None


# Memory.

MEMORY_ROWS = """\
JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|ReqMem|State
1|2024-01-01T00:00:01|2024-01-01T00:00:01|2024-01-01T00:01:41|100|10|1|4|2000Mc|COMPLETED
2|2024-01-01T00:00:02|2024-01-01T00:00:02|2024-01-01T00:01:42|100|10|2|4|16Gn|COMPLETED
3|2024-01-01T00:00:03|2024-01-01T00:00:03|2024-01-01T00:01:43|100|10|1|1|0n|COMPLETED
4|2024-01-01T00:00:04|2024-01-01T00:00:04|2024-01-01T00:01:44|100|10|1|1|1Me|COMPLETED
5|2024-01-01T00:00:05|2024-01-01T00:00:05|2024-01-01T00:01:45|100|10|1|1|16GX|COMPLETED
6|2024-01-01T00:00:06|2024-01-01T00:00:06|2024-01-01T00:01:46|100|10|1|1|187.50M|COMPLETED
"""


def test_memory_that_is_all_of_a_node_and_that_cannot_be_read(tmp_path):
    """0n takes the 32,000 MB of its node, so what comes behind it waits; two jobs are counted in a line."""
    conf = TWO_OF_FOUR.replace("CR_Core", "CR_Core_Memory").replace("CPUs=4", "CPUs=4 RealMemory=32000")
    path, conf = written(tmp_path, "a.sacct", MEMORY_ROWS), written(tmp_path, "slurm.conf", conf)
    made = trace_system(path, TraceOptions(slurm_conf=conf))
    assert made.system.tasks.resources == ("cores", "memory_mb")
    assert made.system.tasks.demand[:, 1].tolist() == [8000, 16_384, 32_000, 0, 0, 188]
    starts, lines = ran(path, "fcfs", slurm_conf=conf)
    assert "2 jobs ask for amounts that cannot be read, as '1Me'" in lines
    assert "1 job takes all memory" in lines
    assert starts["3"] == 200  # behind job 2, which begins at 100 s and has memory of both nodes
    # memory is no resource there, so nothing is asked of it
    bare = written(tmp_path, "bare.conf", TWO_OF_FOUR)
    assert "all memory" not in ran(path, "fcfs", slurm_conf=bare)[1]


def test_all_memory_of_nodes_that_differ(tmp_path):
    """The least that a node of the partition has, which a line reports."""
    conf = TWO_OF_FOUR.replace("CR_Core", "CR_Core_Memory").replace(
        "NodeName=a[1-2] CPUs=4", "NodeName=a1 CPUs=4 RealMemory=1000\nNodeName=a2 CPUs=4 RealMemory=3000"
    )
    rows = [line for line in MEMORY_ROWS.splitlines() if line[0] in "J3"]
    path, conf = written(tmp_path, "a.sacct", "\n".join(rows)), written(tmp_path, "slurm.conf", conf)
    made = trace_system(path, TraceOptions(slurm_conf=conf))
    assert made.system.tasks.demand[:, 1].tolist() == [1000]
    assert any("the least" in note for note in made.jobs.notes)


@pytest.mark.parametrize(
    ("head", "cell"),
    [("AllocTRES", "cpu=1,mem=1X"), ("AllocTRES", "cpu=1,gres/gpu=some"), ("AllocTRES", "cpu=x"), ("ReqGRES", "2x")],
)
def test_other_amounts_that_cannot_be_read(tmp_path, head, cell):
    """They are counted, too."""
    text = f"JobIDRaw|Submit|ElapsedRaw|NNodes|AllocCPUS|{head}|State\n1|1|10|1|1|{cell}|COMPLETED\n"
    assert (
        "1 job asks for amounts that cannot be read"
        in ran(written(tmp_path, "a.sacct", text), "fcfs", slurm_conf=conf_of(tmp_path))[1]
    )


def test_a_start_before_the_submission(tmp_path):
    """The start is the submission then, so job 1 comes first and waits for nothing; a line names job and line."""
    head = "JobIDRaw|Submit|Eligible|Start|ElapsedRaw|TimelimitRaw|NNodes|State"
    rows = (
        "7|2024-01-01T00:01:40|2024-01-01T00:01:40|2024-01-01T00:00:40|100|5|1|COMPLETED",
        "8|2024-01-01T00:01:50|2024-01-01T00:01:50|2024-01-01T00:02:00|50|5|1|COMPLETED",
    )
    starts, lines = ran(written(tmp_path, "a.sacct", "\n".join([head, *rows])), "fcfs", nodes=2)
    assert starts == {"7": 0, "8": 70}
    assert "1 job starts before its submission (job 7 in line 2)" in lines
    assert "Eligible" not in lines
