"""One log in four formats is one run; other dates, names of hosts and units of watts change nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gridsched import RunResult, Scenario, run
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.model.trace import ExecutionEnd
from gridsched.workloads.traces.trace_options import TraceOptions

FINISHED, KILLED = int(ExecutionEnd.FINISHED), int(ExecutionEnd.TIMEOUT)
#: Speed of all nodes [flop/s].
SPEED = 1e9
#: Date of second 0 of the logs' own clocks.
EPOCH = datetime(2024, 2, 28, 22, tzinfo=UTC)
SCHEDULERS: Mapping[str, Mapping[str, object]] = {
    "fcfs": {},
    "easy_backfilling": {},
    "conservative_backfilling": {},
    # of these only this one switches hosts off
    "idle_off": {"scheduler": "easy_backfilling", "timeout_s": 20.0},
}
QUEUES = tuple(id for id in SCHEDULERS if id != "idle_off")
NAMES = ("n0", "n1", "n2", "n3", "n4")
IN_ORDER = ("a", "ab", "b1", "b2", "c")
OUT_OF_ORDER = ("n10", "zeta", "n9", "Alpha", "beta")
DRAWN = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@dataclass(frozen=True)
class Job:
    """A job of a log.

    Attributes
    ----------
    id : int
    submit_s, run_s : int
        On the log's own clock [s].
    nodes : int
    requested_s : int or None
        None: unknown.
    """

    id: int
    submit_s: int
    run_s: int
    nodes: int
    requested_s: int | None


@dataclass(frozen=True)
class Log:
    """Jobs in the order of a file, and how they are run.

    Attributes
    ----------
    jobs : tuple of Job
    walltime : str
        See `Scenario.walltime`.
    down : tuple of int, or None
        Maintenance: number of a node (-1: all), begin and end since the first submission [s].
    """

    jobs: tuple[Job, ...]
    walltime: str
    down: tuple[int, int, int] | None

    def later(self, seconds: int) -> Log:
        """Return the log with all its dates so much later."""
        return replace(self, jobs=tuple(replace(job, submit_s=job.submit_s + seconds) for job in self.jobs))

    def begin_s(self, n_nodes: int) -> int:
        """Return when the first job is submitted that so many nodes can run [s]."""
        return min(job.submit_s for job in self.jobs if job.nodes <= n_nodes)


@dataclass(frozen=True)
class Machine:
    """Nodes of one cluster that differ in their watts alone.

    Attributes
    ----------
    watts : tuple of tuple of int
        Of each node idle, with hardly any load, computing and off [W].
    names : tuple of str
    """

    watts: tuple[tuple[int, ...], ...]
    names: tuple[str, ...] = NAMES

    @property
    def idle_w(self) -> int:
        """What all nodes draw while they run nothing [W]."""
        return sum(idle for idle, *_ in self.watts)

    def tripled(self) -> Machine:
        """Return the nodes with three times the watts."""
        return replace(self, watts=tuple(tuple(3 * watts for watts in each) for each in self.watts))

    def write(self, folder: Path) -> Path:
        """Write the platform file."""
        hosts = [
            f'<host id="{name}" speed="{SPEED:.0f}f">'
            f'<prop id="wattage_per_state" value="{idle}:{epsilon}:{busy}"/>'
            f'<prop id="wattage_off" value="{off}"/></host>'
            for name, (idle, epsilon, busy, off) in zip(self.names, self.watts, strict=False)
        ]
        path = folder / "machine.xml"
        path.write_text(
            '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
            f'<platform version="4.1"><zone id="z" routing="Full">{"".join(hosts)}</zone></platform>\n'
        )
        return path


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Three to five nodes."""
    watts = []
    for _ in range(draw(st.integers(3, 5))):
        off, idle, epsilon, busy = (draw(st.integers(*span)) for span in ((0, 9), (10, 90), (0, 20), (1, 200)))
        watts.append((idle, idle + epsilon, idle + epsilon + busy, off))
    return Machine(tuple(watts))


#: Widths: some jobs take all nodes, or more than there are.
NODES = st.integers(1, 3) | st.integers(1, 6)
LENGTHS = st.sampled_from([10, 20, 30]) | st.integers(1, 100)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Six to sixteen jobs in any order, one of which fits each machine; several at one time are likely."""
    times = st.integers(0, 3) | st.integers(0, 120)
    jobs = draw(
        st.lists(st.builds(Job, st.just(0), times, LENGTHS, NODES, st.none() | LENGTHS), min_size=6, max_size=16)
    )
    jobs[0] = replace(jobs[0], nodes=min(jobs[0].nodes, 3))
    begin = draw(st.sampled_from([0, 7, 100_000]))
    ids = draw(st.permutations(range(1, len(jobs) + 1)))
    window = draw(st.none() | st.tuples(st.integers(-1, 2), st.integers(1, 150), st.integers(1, 100)))
    return Log(
        tuple(replace(job, id=k, submit_s=job.submit_s + begin) for k, job in zip(ids, jobs, strict=True)),
        draw(st.sampled_from(["ignore", "kill"])),
        window and (window[0], window[1], window[1] + window[2]),
    )


def date(seconds: int) -> str:
    """Return a time on the log's own clock as Slurm prints it."""
    return f"{EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}"


def clock(seconds: int) -> str:
    """Return a time span as Slurm prints it."""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def swf(log: Log) -> str:
    """Return the log in the Standard Workload Format."""
    lines = [f"; UnixStartTime: {EPOCH.timestamp():.0f}", "; MaxProcs: 5"]
    for job in log.jobs:
        requested = job.requested_s or -1
        lines.append(
            f"{job.id} {job.submit_s} -1 {job.run_s} {job.nodes} -1 -1 {job.nodes} {requested} -1 1" + 7 * " -1"
        )
    return "\n".join(lines) + "\n"


def sacct(log: Log) -> str:
    """Return the log as ``sacct -P -X`` prints it."""
    lines = ["JobIDRaw|Submit|Start|End|ElapsedRaw|Timelimit|AllocNodes|State"]
    for job in log.jobs:
        start = job.submit_s + 1000 * job.id  # the machine's own schedule is another
        limit = "" if job.requested_s is None else clock(job.requested_s)
        cells = (
            job.id,
            date(job.submit_s),
            date(start),
            date(start + job.run_s),
            job.run_s,
            limit,
            job.nodes,
            "COMPLETED",
        )
        lines.append("|".join(map(str, cells)))
    return "\n".join(lines) + "\n"


def batsim(log: Log) -> str:
    """Return the log as a workload of Batsim: delays, and computations as long as they."""
    jobs, profiles = [], {}
    for job in log.jobs:
        name = f"p{job.run_s}{'d' if job.id % 2 else 'c'}"
        computes = {"type": "parallel_homogeneous", "cpu": job.run_s * SPEED, "com": 0}
        profiles[name] = {"type": "delay", "delay": job.run_s} if job.id % 2 else computes
        walltime = -1 if job.requested_s is None else job.requested_s
        jobs.append(
            {"id": str(job.id), "subtime": job.submit_s, "walltime": walltime, "res": job.nodes, "profile": name}
        )
    return json.dumps({"nb_res": 5, "jobs": jobs, "profiles": profiles})


def table(log: Log) -> str:
    """Return the log as a table of jobs."""
    lines = ["id,submit_time_s,run_time_s,nodes,requested_time_s"]
    for job in log.jobs:
        requested = "" if job.requested_s is None else job.requested_s
        lines.append(f"{job.id},{date(job.submit_s)},{job.run_s},{job.nodes},{requested}")
    return "\n".join(lines) + "\n"


FORMATS: Mapping[str, Callable[[Log], str]] = {
    "log.swf": swf,
    "log.sacct": sacct,
    "log.json": batsim,
    "log.jobs.csv": table,
}


def maintenance(log: Log, machine: Machine, *, as_date: bool) -> tuple[str, ...]:
    """Return the log's maintenance as options write it: by the log's dates, or since its first submission."""
    if log.down is None:
        return ()
    node, *times = log.down
    where = "" if node < 0 else f"{machine.names[node]}="
    if not as_date:
        return (f"{where}{times[0]}:{times[1]}",)
    begin = log.begin_s(len(machine.watts))
    return (f"{where}{date(begin + times[0])}/{date(begin + times[1])}",)


def played(
    folder: Path, log: Log, machine: Machine, name: str, scheduler: str, driver: str = "reference", **options: object
) -> RunResult:
    """Write the log in the format that a file's name has, and run it; `options` are further fields of the scenario."""
    path = folder / name
    path.write_text(FORMATS[name](log))
    return run(
        Scenario(
            machine.write(folder),
            path,
            scheduler,
            SCHEDULERS[scheduler],
            driver=driver,
            walltime=log.walltime,
            maintenance=maintenance(log, machine, as_date=name != "log.json"),
            timeout_s=None if driver == "reference" else 60.0,
            **options,
        )
    )


def schedule(result: RunResult, names: Mapping[str, str] | None = None) -> list[tuple[object, ...]]:
    """Return job, start, end, outcome and nodes of each execution, by its names, or what `names` makes of them."""
    trace, names = result.trace, names or {}
    hosts = [names.get(host.name, host.name) for host in trace.platform.hosts]
    labels = trace.tasks.labels.tolist()
    columns = trace.executions[["task", "start", "end", "outcome"]].tolist()
    return sorted(
        (labels[task], *rest, tuple(hosts[h] for h in trace.hosts_of(k))) for k, (task, *rest) in enumerate(columns)
    )


def joules(result: RunResult, names: Mapping[str, str] | None = None) -> dict[str, tuple[float, ...]]:
    """Return the joules of each node by name, by the model and as SimGrid's plugin counts them."""
    model = dict(zip(result.energy.names, result.energy.total_j.tolist(), strict=True))
    plugin = model if result.plugin_j is None else result.plugin_j
    return {(names or {}).get(name, name): (model[name], plugin[name]) for name in model}


def check_formats(folder: Path, log: Log, machine: Machine, scheduler: str, driver: str) -> None:
    """The four files are one run, bit by bit, of the jobs that are no wider than the machine."""
    first, *others = (played(folder, log, machine, name, scheduler, driver) for name in FORMATS)
    fitting = sorted(job.id for job in log.jobs if job.nodes <= len(machine.watts))
    assert sorted({row[0] for row in schedule(first)}) == fitting
    for other in others:
        assert schedule(other) == schedule(first)
        assert joules(other) == joules(first)


def check_relations(folder: Path, log: Log, machine: Machine, name: str, scheduler: str, driver: str) -> None:
    """Dates, names and units of watts change nothing but themselves."""
    result = played(folder, log, machine, name, scheduler, driver)
    expected, used = schedule(result), joules(result)
    for seconds in (1, 86_400 + 12_345):
        other = played(folder, log.later(seconds), machine, name, scheduler, driver)
        assert (schedule(other), joules(other)) == (expected, used)
    for names in (IN_ORDER, OUT_OF_ORDER):
        other = played(folder, log, replace(machine, names=names), name, scheduler, driver)
        back = dict(zip(names, machine.names, strict=True))
        assert (schedule(other, back), joules(other, back)) == (expected, used)
    other = played(folder, log, machine.tripled(), name, scheduler, driver)
    assert schedule(other) == expected
    for host, each in joules(other).items():
        assert each == pytest.approx([3 * used_j for used_j in used[host]], rel=1e-12)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@settings(DRAWN, max_examples=25)
@given(log=logs(), machine=machines())
def test_four_formats_of_a_log_are_one_run(tmp_path, scheduler, log, machine):
    """Starts, ends, nodes by name and joules of each are the same."""
    check_formats(tmp_path, log, machine, scheduler, "reference")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("name", FORMATS)
@settings(DRAWN, max_examples=10)
@given(log=logs(), machine=machines())
def test_other_dates_names_and_units_of_watts(tmp_path, name, scheduler, log, machine):
    """The same schedule on the same nodes, of the same joules, or three times as many."""
    check_relations(tmp_path, log, machine, name, scheduler, "reference")


#: On four nodes, the last of which is down from 55 to 75 s: job 4 takes all, and longer than it asked for.
BY_HAND = Log(
    (Job(2, 0, 30, 2, 40), Job(1, 0, 20, 1, 25), Job(4, 5, 40, 4, 30), Job(3, 6, 10, 1, None), Job(5, 6, 9, 1, 9)),
    "kill",
    (3, 55, 75),
)
FOUR = Machine(((40, 50, 120, 3), (41, 43, 99, 0), (10, 10, 200, 1), (95, 97, 190, 9)))


def test_a_log_by_hand(tmp_path):
    """Job 1 takes the node that goes down first; 3 and 5 overtake 4, which waits until that node is up again."""
    expected = [
        (1, 0.0, 20.0, FINISHED, ("n3",)),
        (2, 0.0, 30.0, FINISHED, ("n0", "n1")),
        (3, 6.0, 16.0, FINISHED, ("n2",)),
        (4, 75.0, 105.0, KILLED, ("n0", "n1", "n2", "n3")),
        (5, 16.0, 25.0, FINISHED, ("n2",)),
    ]
    assert schedule(played(tmp_path, BY_HAND, FOUR, "log.sacct", "easy_backfilling")) == expected


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@settings(DRAWN, max_examples=2)
@example(log=BY_HAND, machine=FOUR, name="log.sacct")
@given(log=logs(), machine=machines(), name=st.sampled_from(list(FORMATS)))
def test_one_log_on_simgrid(tmp_path, log, machine, name):
    """All of that holds for SimGrid and its plugin, too, under EASY."""
    check_formats(tmp_path, log, machine, "easy_backfilling", "simgrid")
    check_relations(tmp_path, log, machine, name, "easy_backfilling", "simgrid")


@pytest.mark.parametrize("scheduler", QUEUES)
@settings(DRAWN, max_examples=15)
@given(log=logs(), machine=machines(), seconds=st.integers(1, 10**6))
def test_a_run_that_begins_later_is_the_same_run_later(tmp_path, scheduler, log, machine, seconds):
    """All submissions and the maintenance so much later: so are all starts and ends, and the nodes idle before."""
    result = played(tmp_path, log, machine, "log.swf", scheduler)
    scenario, tasks = result.scenario, result.scenario.tasks
    down = log.down and (log.down[0], log.down[1] + seconds, log.down[2] + seconds)
    later = replace(
        scenario,
        tasks=replace(tasks, submit_time_s=tasks.submit_time_s + seconds),
        maintenance=maintenance(replace(log, down=down), machine, as_date=False),
    )
    other = run(later)
    moved = [(job, start + seconds, end + seconds, *rest) for job, start, end, *rest in schedule(result)]
    assert schedule(other) == moved
    more_j = machine.idle_w * seconds
    assert sum(other.energy.total_j) == pytest.approx(sum(result.energy.total_j) + more_j, rel=1e-12)


@pytest.mark.parametrize("scheduler", QUEUES)
@settings(DRAWN, max_examples=15)
@given(log=logs(), machine=machines(), name=st.sampled_from(list(FORMATS)))
def test_one_partition_of_all_nodes_changes_nothing(tmp_path, scheduler, log, machine, name):
    """Nor does it matter that jobs share nodes, if each node has one core."""
    expected = played(tmp_path, log, machine, name, scheduler)
    partitions = tmp_path / "partitions.toml"
    partitions.write_text('[[partition]]\nname = "all"\nnodes = ["*"]\n')
    for options in (TraceOptions(partitions=partitions), TraceOptions(allocation="cores")):
        result = played(tmp_path, log, machine, name, scheduler, trace=options)
        assert schedule(result) == schedule(expected)
        assert joules(result) == joules(expected)
