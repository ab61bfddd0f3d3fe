"""What a real Slurm did with 500 jobs on ten nodes, beside what scheduler `slurm` does by Slurm's documented rules."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterable
from pathlib import Path

from gridsched.analysis.beside_log import (
    LoggedSchedule,
    beside_itself,
    beside_log,
    read_schedule,
    sampled_within_seconds,
)
from gridsched.errors import InputError
from gridsched.files.input_files import read_text
from gridsched.reproduction.known.cases import Case, Input, Row, Values
from gridsched.runs.run import run
from gridsched.runs.scenario_maker import load
from gridsched.scenario import LoadedScenario, Scenario
from gridsched.workloads.traces.trace_options import TraceOptions

SOURCE = (
    "N. A. Simakov, University at Buffalo, the micro cluster of a Slurm simulator's tutorial "
    "(ubccr-slurm-simulator/slurm_sim_tools on GitHub, tutorials/micro_cluster): accounting of a real slurmctld, 2021"
)
ACCOUNTING = Input("real_run.sacct", "tutorials/micro_cluster/real_slurm_run/slurm_acct.out of that repository")
REQUESTS = Input("real_run_requests.csv", "tutorials/micro_cluster/workload/jobs500.csv of that repository")
#: The machine, its partitions and its weights, as the tutorial describes them.
CONFIGURATION = """ClusterName=micro
AccountingStorageEnforce=associations,limits,qos
FairShareDampeningFactor=5
PriorityDecayHalfLife=0-4
PriorityFavorSmall=NO
PriorityMaxAge=0-5
PriorityType=priority/multifactor
PriorityWeightAge=50000
PriorityWeightFairshare=50000
PriorityWeightJobSize=200000
PriorityWeightPartition=1000000
PriorityWeightQOS=20000
SchedulerParameters=bf_max_job_user=20,bf_window=4320,bf_interval=30,max_job_bf=1200,bf_continue
SchedulerType=sched/backfill
SelectType=select/cons_res
SelectTypeParameters=CR_Core_Memory
NodeName=DEFAULT Procs=12 RealMemory=48000
NodeName=n[1-4] Feature=CPU-N
NodeName=m[1-4] Feature=CPU-M
NodeName=g1 Gres=gpu:2
NodeName=b1 RealMemory=512000
PartitionName=normal Nodes=n[1-4],m[1-4],g1,b1 Default=YES DefMemPerCPU=2800 MaxTime=INFINITE
PartitionName=debug Nodes=n[1-2] DefMemPerCPU=2800 MaxTime=INFINITE
"""
#: slurmctld began 7 s before the first job, by the tutorial's sdiag; its sacctmgr.script has three accounts of 100
#: shares, and users who submit nothing.
PARAMETERS = {
    "ends_together": "first",
    "order": "multifactor(first_calc_s=-7, account_shares={'account0': 100, 'account1': 100, 'account2': 100}, "
    "shares={'account0/admin': 1, '/root': 1})",
}
#: What is compared, what the log has, and how near it must be.
_GOALS = (
    ("makespan_s", "makespan", "51464", "s", 0.02),
    ("utilisation", "utilisation", "0.72495", "", 0.02),
    ("mean_wait_s", "mean wait", "12301.35", "s", 0.05),
    ("rank_correlation", "rank correlation of waits with the log's", "1", "", 0.15),
)
_DRAWS = 5


def with_constraints(accounting: Path, requests: Path) -> str:
    """Return accounting with what jobs asked for in a column ``Constraints``; jobs of 0 s have 1 s.

    Parameters
    ----------
    accounting : Path
        Output of ``sacct -P``.
    requests : Path
        Table of the same jobs with ``job_id`` and ``constraint``, separated by semicolons.

    Raises
    ------
    InputError
        If a file cannot be read, lacks a column or a cell of it, or the requests lack a job.
    """
    asks = _rows(requests, csv.reader(_lines(requests), delimiter=";"), "job_id", "constraint")
    header, *rows = _rows(accounting, (line.split("|") for line in _lines(accounting)), "JobID", "Elapsed")
    of_job, of_constraint = asks[0].index("job_id"), asks[0].index("constraint")
    asked = {row[of_job]: row[of_constraint] for row in asks[1:]}
    id, elapsed = header.index("JobID"), header.index("Elapsed")
    lines = ["|".join([*header, "Constraints"])]
    for row in rows:
        if row[id] not in asked:
            raise InputError(f"{requests}: no job {row[id][:40]!r}, which {accounting} has.")
        row[elapsed] = "00:00:01" if row[elapsed] == "00:00:00" else row[elapsed]
        lines.append("|".join([*row, asked[row[id]]]))
    return "\n".join(lines) + "\n"


def _rows(path: Path, rows: Iterable[list[str]], *needed: str) -> list[list[str]]:
    """Return the header and the rows of a table that has some columns, without empty lines."""
    try:
        found = [row for row in rows if any(row)]
    except csv.Error as error:
        raise InputError(f"{path}: no readable CSV: {error}.") from None
    header = found[0] if found else []
    if missing := [name for name in needed if name not in header]:
        raise InputError(f"{path}: no column {missing[0]!r}; {', '.join(needed)} are needed.")
    least = 1 + max(map(header.index, needed))
    for row in found:
        if len(row) < least:
            raise InputError(f"{path}: the row of {row[0][:40]!r} has {len(row)} cells; at least {least} are needed.")
    return found


def _lines(path: Path) -> list[str]:
    return read_text(path).splitlines()


def _loaded(paths: tuple[Path, ...]) -> tuple[LoadedScenario, LoggedSchedule]:
    """Return the jobs under `slurm`, and what the log has of them."""
    with tempfile.TemporaryDirectory() as folder:
        log, conf = Path(folder, "jobs.sacct"), Path(folder, "slurm.conf")
        log.write_text(with_constraints(*paths), encoding="utf-8")
        conf.write_text(CONFIGURATION, encoding="utf-8")
        asked = Scenario(None, log, "slurm", PARAMETERS, driver="reference", trace=TraceOptions(slurm_conf=conf))
        return load(asked), read_schedule(log)


def _case(id: str, words: str, draws: int, why: str) -> Case:
    def measure(paths: tuple[Path, ...]) -> Values:
        scenario, logged = _loaded(paths)
        sampled = [sampled_within_seconds(scenario, seed) for seed in range(draws)] or [scenario]
        results = [run(each) for each in sampled]
        own = beside_itself(scenario, logged)
        row = beside_log("slurm", results, own.wait_s).row
        return {key: float(row[key]) for key, *_ in _GOALS}

    rows = tuple(
        Row(key, f"{what}, {words}", printed, unit, "share", share, why) for key, what, printed, unit, share in _GOALS
    )
    id = f"buffalo-{id}"
    return Case(
        id, SOURCE, f"gridsched reproduce known --inputs DIR --only {id}", measure, rows, (ACCOUNTING, REQUESTS)
    )


_OPEN = (
    "single nodes are chosen otherwise than by that Slurm's plugin for topologies, and starts within a second decide "
    "which job overtakes: from draw to draw of the seconds' fractions makespans differ by 2 %"
)
CASES = (
    _case("seconds", "the log's full seconds", 0, _OPEN),
    _case("draws", f"mean of {_DRAWS} draws within the seconds", _DRAWS, _OPEN),
)
