"""``--group-by`` of ``run`` and ``compare``: metrics of groups of jobs, by hand, on both drivers."""

from __future__ import annotations

import csv

import pyarrow.parquet as pq
import pytest
from cli_cases import platform_text

from gridsched import compare
from gridsched.errors import InputError

#: Columns: job, submitted, waited, run time, nodes, 3 fields unused, requested nodes and time, memory, status, user,
#: group. On one node job 1 takes 100 s and job 3 60 s, on both job 2 50 s.
LOG = """; MaxProcs: 2
1 0 -1 100 1 -1 -1 1 100 -1 1 1 7 -1 -1 -1 -1 -1
2 0 -1 50 2 -1 -1 2 50 -1 1 2 7 -1 -1 -1 -1 -1
3 0 -1 60 1 -1 -1 1 60 -1 1 1 8 -1 -1 -1 -1 -1
"""
#: Under FCFS 2 waits for 1 until 100 s and 3 for 2 until 150 s; EASY starts 3 at once; the shortest first are
#: 2 at 0 s, then 3 and 1 at 50 s, so that 1 starts 50 s later than under FCFS.
WAITS = {
    "fcfs": {"user": [75.0, 100.0], "group": [50.0, 150.0], "size": [75.0, 100.0]},
    "easy_backfilling": {"user": [0.0, 100.0], "group": [50.0, 0.0], "size": [0.0, 100.0]},
    "conservative_backfilling": {"user": [50.0, 0.0], "group": [25.0, 50.0], "size": [50.0, 0.0]},
}
#: Waiting and running over running, means of each user: under FCFS 1 and 210 / 60, and 150 / 50.
SLOWDOWNS = {"fcfs": [2.25, 3.0], "easy_backfilling": [1.0, 3.0], "conservative_backfilling": [(1.5 + 11 / 6) / 2, 1.0]}
LATER = {"fcfs": [0.0, 0.0], "easy_backfilling": [0.0, 0.0], "conservative_backfilling": [25.0, 0.0]}
GROUPS = {"user": ["1", "2"], "group": ["7", "8"], "size": ["up to 1", "up to 2"]}
BY = [word for by in GROUPS for word in ("--group-by", by)]
DRIVERS = pytest.mark.parametrize("driver", ["reference", "simgrid"])


@pytest.fixture
def on_two_nodes(write) -> list[object]:
    """Return the options of three schedulers on two nodes of 200 W, 100 W when idle."""
    schedulers = ["--schedulers", ",".join(WAITS), "--set", "conservative_backfilling.order=shortest"]
    return ["--workload", write("log.swf", LOG), "--power", "100:200:200", *schedulers]


def by_scheduler(rows: list[dict[str, object]], key: str) -> dict[str, list[object]]:
    """Return the values of each scheduler's groups, in the order of the groups."""
    found: dict[str, list[object]] = {}
    for row in rows:
        found.setdefault(str(row["scheduler"]), []).append(row[key])
    return found


@DRIVERS
def test_groups_of_each_scheduler(gridsched, on_two_nodes, driver):
    """Waits, slowdowns, lateness, node hours and joules by user, group and size."""
    outcome = gridsched("compare", *on_two_nodes, *BY, "--driver", driver, "--json")
    assert outcome.status == 0, outcome.err
    groups = outcome.json["groups"]
    assert list(groups) == list(GROUPS)
    for by, rows in groups.items():
        assert by_scheduler(rows, "group") == dict.fromkeys(WAITS, GROUPS[by])
        assert by_scheduler(rows, "mean_waiting_time_s") == {id: each[by] for id, each in WAITS.items()}
    users = groups["user"]
    for id, slowdowns in SLOWDOWNS.items():
        assert by_scheduler(users, "mean_bounded_slowdown")[id] == pytest.approx(slowdowns)
    assert by_scheduler(users, "unfairness_s") == LATER
    assert by_scheduler(users, "jobs") == by_scheduler(users, "finished") == {id: [2, 1] for id in WAITS}
    for values in by_scheduler(users, "core_hours").values():
        assert values == pytest.approx([160 / 3600, 100 / 3600])  # of whole nodes
    for values in by_scheduler(users, "energy_j").values():
        assert values == pytest.approx([160 * 200, 100 * 200])


@DRIVERS
def test_groups_of_partitions(gridsched, write, driver):
    """Jobs of one and two cores on nodes of two: 10 W idle, 30 W with one busy core, 40 W with both."""
    hosts = "".join(
        f'<host id="{name}" speed="1f" core="2"><prop id="wattage_per_state" value="10:20:40"/></host>' for name in "ab"
    )
    platform = write("p.xml", platform_text(f'<zone id="z" routing="Full">{hosts}</zone>'))
    table = write("p.toml", "".join(f"[[partition]]\nname = '{name}s'\nnodes = ['{name}']\n" for name in "ab"))
    jobs = ["1|1|60|2|1|2|as", "2|2|60|2|1|1|as", "3|3|60|2|1|1|bs"]
    head = "JobID|Submit|ElapsedRaw|TimelimitRaw|NNodes|NCPUS|Partition|State\n"
    log = write("log.sacct", head + "".join(f"{job}|COMPLETED\n" for job in jobs))
    machine = ["--platform", platform, "--workload", log, "--allocation", "cores", "--partitions", table]
    words = ["--schedulers", "fcfs,easy_backfilling", "--group-by", "partition", "--driver", driver, "--json"]
    outcome = gridsched("compare", *machine, *words)
    assert outcome.status == 0, outcome.err
    expected = [
        {
            "group": "as",
            "jobs": 2,
            "mean_waiting_time_s": 59 / 2,
            "core_hours": 180 / 3600,
            "energy_j": 40 * 60 + 30 * 60,
        },
        {"group": "bs", "jobs": 1, "mean_waiting_time_s": 0.0, "core_hours": 60 / 3600, "energy_j": 30 * 60},
    ]
    used = [180 / (2 * 120), 60 / (2 * 120)]  # 120 s from the first submission to the last end
    for id in ("fcfs", "easy_backfilling"):
        rows = [row for row in outcome.json["groups"]["partition"] if row["scheduler"] == id]
        for row, values, share in zip(rows, expected, used, strict=True):
            assert {key: row[key] for key in values} == pytest.approx(values)
            assert row["utilisation_cores"] == pytest.approx(share)


def test_groups_are_printed_and_written(gridsched, on_two_nodes, tmp_path):
    """A table for each grouping; beside FILE.csv FILE.groups.csv, and so with Parquet; JSON holds all in one."""
    words = [*on_two_nodes, *BY, "--driver", "reference", "--sort", "mean_waiting_time_s", "-o"]
    text = gridsched("compare", *words, tmp_path / "all.csv").out
    assert [f"Jobs by {by}" in text for by in GROUPS] == [True] * 3
    with open(tmp_path / "all.groups.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["group_by"] for row in rows] == [by for by in GROUPS for _ in range(6)]
    order = ["easy_backfilling", "conservative_backfilling", "fcfs"]  # waits of 100 s (twice) and 250 s in all
    assert [row["scheduler"] for row in rows[:6]] == order * 2
    found = {(row["scheduler"], row["group"]): float(row["mean_waiting_time_s"]) for row in rows[:6]}
    assert found["fcfs", "1"] == 75.0
    gridsched("compare", *words, tmp_path / "all.parquet")
    assert pq.read_table(tmp_path / "all.groups.parquet").column("group").to_pylist() == [row["group"] for row in rows]
    one = ["--scheduler", "fcfs", "--group-by", "user", "-o", tmp_path / "one.csv"]
    log = [on_two_nodes[0], on_two_nodes[1], "--driver", "reference"]
    assert gridsched("run", *log, *one).status == 0
    with open(tmp_path / "one.groups.csv", newline="") as stream:
        assert [float(row["mean_waiting_time_s"]) for row in csv.DictReader(stream)] == [75.0, 100.0]


def test_no_file_of_groups_is_replaced(gridsched, refused, on_two_nodes, tmp_path, write):
    """It is found before the runs."""
    write("all.groups.csv", "mine")
    words = [*on_two_nodes, "--group-by", "user", "--driver", "reference", "-o", tmp_path / "all.csv"]
    assert "all.groups.csv" in refused("compare", *words)
    assert gridsched("compare", *words, "--force").status == 0


@pytest.mark.parametrize("command", ["run", "compare"])
def test_what_jobs_are_not_grouped_by(refused, write, ex_a, command):
    """One line before any run: what the log lacks, with what it has; serial tasks."""
    log = ["--workload", write("log.swf", LOG), "--driver", "reference"]
    line = refused(command, *log, "--group-by", "account")
    assert "its jobs have no 'account' to group by" in line
    assert "Allowed: user, group, size." in line
    assert "Did you mean 'user'?" in refused(command, *log, "--group-by", "users")
    assert "serial tasks are not grouped by 'user'" in refused(command, *ex_a, "--group-by", "user")


def test_groups_of_a_comparison_in_python(write):
    """The same rows as those of the command."""
    found = compare(None, write("log.swf", LOG), ["fcfs", "easy_backfilling"], driver="reference")
    assert by_scheduler(found.groups("user"), "mean_waiting_time_s") == {
        id: WAITS[id]["user"] for id in ("fcfs", "easy_backfilling")
    }
    with pytest.raises(InputError, match="'qos'"):
        found.groups("qos")


@DRIVERS
@pytest.mark.parametrize(
    ("outage", "waits"),
    [(("--maintenance", "200:300"), [150.0, 100.0]), (("--failures", "mtbf=1e12,mttr=1"), [75.0, 100.0])],
    ids=["maintenance", "failures"],
)
def test_groups_of_hosts_that_go_down(gridsched, on_two_nodes, driver, outage, waits):
    """Job 3 would run from 150 s until 210 s under FCFS, whose starts are the fair ones: it waits until 300 s."""
    outcome = gridsched("compare", *on_two_nodes, *outage, "--group-by", "user", "--driver", driver, "--json")
    assert outcome.status == 0, outcome.err
    users = outcome.json["groups"]["user"]
    assert by_scheduler(users, "mean_waiting_time_s")["fcfs"] == waits
    assert by_scheduler(users, "unfairness_s") == LATER
