"""Slurm's accounting as real files have it: limits, attempts, clusters, memory, texts with bars and line breaks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gridsched import Scenario, run
from gridsched.errors import InputError
from gridsched.workloads.traces.formats import read_jobs, write_jobs
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
    """Job 1 runs for 600 s with success, and so job 2 starts behind it; a line counts the record that failed."""
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
