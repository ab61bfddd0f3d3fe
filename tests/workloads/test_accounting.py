"""Slurm's accounting as real files have it: limits, attempts, clusters, memory, texts with bars and line breaks."""

from __future__ import annotations

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
