"""Scheduler slurm by hand: what is promised, when it is looked, how sizes and shares count; and a live run."""

from __future__ import annotations

import csv
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from gridsched import Scenario, run
from gridsched.analysis.beside_log import beside_itself, beside_log, read_schedule, sampled_within_seconds
from gridsched.errors import InputError
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.runs.scenario_maker import load
from gridsched.schedulers.parallel.fair_share import Association, classic_factors_of_tree, fair_tree_factors
from gridsched.schedulers.parallel.queue_orders import MultifactorPriority, QueuedJobs
from gridsched.workloads.traces.trace_options import TraceOptions
from gridsched.workloads.traces.trace_system import trace_system

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LOG, CONF = EXAMPLES / "live_slurm.sacct", EXAMPLES / "live_slurm.conf"
HEAD = "JobIDRaw|Submit|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|Partition|User|Account|State|Constraints"
NODES = """SelectType=select/cons_tres
NodeName=n[1-4] CPUs=4 Feature=N
PartitionName=normal Nodes=ALL Default=YES
PartitionName=express Nodes=n1 PriorityTier=3
"""


def starts(folder: Path, rows: list[tuple], conf: str = "", **parameters) -> list[float]:
    """Return starts of jobs: (submit, run, limit [min], nodes, cores in all[, partition, user, account])."""
    lines = []
    for k, row in enumerate(rows, start=1):
        submit, lasts, limit, nodes, cores = row[:5]
        texts = [*row[5:], *["normal", "u", "a", ""][len(row) - 5 :]]
        head, constraint = texts[:3], texts[3]
        lines.append("|".join(map(str, [k, submit, lasts, limit, nodes, cores, *head, "COMPLETED", constraint])))
    (folder / "log.sacct").write_text("\n".join([HEAD, *lines]) + "\n")
    (folder / "slurm.conf").write_text(NODES + conf)
    options = TraceOptions(slurm_conf=folder / "slurm.conf")
    scenario = Scenario(None, folder / "log.sacct", "slurm", parameters=parameters, driver="reference", trace=options)
    return run(scenario).trace.start_time_s.tolist()


EACH_SECOND = "SchedulerParameters=bf_interval=1,bf_resolution=1\n"


def test_nodes_are_promised_whole(tmp_path):
    """One core of n1 is promised to no job, but the node is: a job of one core and two minutes waits for it.

    Job 1 has all of n1 to n3 for a minute. Job 2 wants four nodes, and is expected at 60 s. Job 3 would
    end by then and overtakes on n4; job 4, which asks for two minutes, does not.
    """
    jobs = [(0, 30, 1, 3, 12), (1, 10, 1, 4, 4), (2, 5, 1, 1, 1), (3, 5, 2, 1, 1)]
    # 2 + 60 is after 60: job 3 waits, too; with a longer first job it overtakes
    assert starts(tmp_path, jobs, EACH_SECOND) == [0, 30, 30, 30]
    jobs = [(0, 130, 3, 3, 12), *jobs[1:]]
    assert starts(tmp_path, jobs, EACH_SECOND) == [0, 130, 2, 3]


def test_conservative_backfilling_promises_cores(tmp_path):
    """The same jobs: cores that no job needs are no obstacle there."""
    jobs = [(0, 30, 1, 3, 12), (1, 10, 1, 4, 4), (2, 5, 1, 1, 1), (3, 5, 2, 1, 1)]
    starts(tmp_path, jobs)
    options = TraceOptions(slurm_conf=tmp_path / "slurm.conf")
    scenario = Scenario(None, tmp_path / "log.sacct", "conservative_backfilling", driver="reference", trace=options)
    assert run(scenario).trace.start_time_s.tolist() == [0, 30, 2, 3]


@pytest.mark.parametrize(("interval", "start"), [(1, 2), (10, 10), (30, 30)])
def test_backfilling_takes_place_every_bf_interval(tmp_path, interval, start):
    """Job 3 overtakes job 2 at the next multiple; the main scheduler would not let it."""
    jobs = [(0, 500, 10, 3, 12), (1, 10, 1, 4, 16), (2, 5, 1, 1, 1)]
    conf = f"SchedulerParameters=bf_interval={interval},bf_resolution=1\n"
    assert starts(tmp_path, jobs, conf) == [0, 500, start]
    assert starts(tmp_path, jobs, conf, bf_interval=20)[2] == 20  # a parameter goes before the configuration
    assert starts(tmp_path, jobs, "SchedulerType=sched/builtin\n")[2] == 510


def test_backfilling_after_an_interval_without_a_pass_takes_place_at_once(tmp_path):
    """Passes at 0 and 30 s, none at 60 and 90, as nothing happens: at 97 s job 3 starts, and job 4 at 120 s."""
    jobs = [(0, 500, 10, 3, 12), (1, 10, 1, 4, 16), (97, 5, 1, 1, 1), (98, 5, 1, 1, 1)]
    assert starts(tmp_path, jobs, "SchedulerParameters=bf_interval=30,bf_resolution=1\n") == [0, 500, 97, 120]


def test_the_main_scheduler_looks_each_second(tmp_path):
    """At multiples of poll_s after something happened; at once with 0."""
    jobs = [(0, 10, 1, 4, 16), (1, 5, 1, 4, 16)]
    assert starts(tmp_path, jobs, poll_s=4.0) == [0, 12]
    assert starts(tmp_path, jobs, poll_s=0.0) == [0, 10]
    assert starts(tmp_path, jobs, completing_s=2.5, poll_s=0.0, bf_interval=1000) == [0, 12.5]


def test_a_blocked_job_blocks_its_partition_alone(tmp_path):
    """Express has n1 and a higher tier; its job that does not fit keeps n1 from all others."""
    jobs = [(0, 100, 2, 1, 3, "express"), (1, 10, 1, 1, 4, "express"), (2, 10, 1, 1, 1), (3, 10, 1, 4, 4)]
    assert starts(tmp_path, jobs, bf_interval=10_000) == [0, 100, 2, 110]


def test_how_far_is_looked(tmp_path):
    """bf_max_job_test, bf_max_job_user: of three that could overtake one, or one of each user."""
    jobs = [(0, 500, 10, 3, 12), (1, 9, 1, 4, 16), *[(2, 9, 1, 1, 1, "normal", user) for user in "aab"]]
    assert starts(tmp_path, jobs, EACH_SECOND) == [0, 500, 2, 2, 2]
    assert starts(tmp_path, jobs, EACH_SECOND, bf_max_job_test=2) == [0, 500, 2, 3, 4]
    found = starts(tmp_path, jobs, "SchedulerParameters=bf_interval=5,bf_resolution=1,bf_max_job_user=1\n")
    assert found == [0, 500, 5, 10, 5]


def test_depth_of_the_main_scheduler(tmp_path):
    """At the end of job 1 only one job is looked at; the others wait for sched_interval or backfilling."""
    jobs = [(0, 65, 2, 4, 16), *[(1, 300, 10, 1, 4)] * 4]
    found = starts(tmp_path, jobs, default_queue_depth=1, bf_interval=100_000, sched_interval=60)
    assert found == [0, 65, 120, 120, 120]
    assert starts(tmp_path, jobs, bf_interval=100_000) == [0, 65, 65, 65, 65]


def test_jobs_beyond_the_window_have_no_promise(tmp_path):
    """Job 2 is expected after 10 min; with a window of 5 min job 3 takes the nodes before it."""
    jobs = [(0, 600, 10, 3, 12), (1, 10, 1, 4, 16), (2, 900, 15, 1, 1)]
    assert starts(tmp_path, jobs, EACH_SECOND) == [0, 600, 610]
    assert starts(tmp_path, jobs, EACH_SECOND, bf_window=5) == [0, 902, 2]


def test_stretches_that_just_suffice_are_taken(tmp_path):
    """n2 is busy: one node is taken from n1, which is alone, and not from n3 and n4."""
    jobs = [(0, 50, 1, 1, 4), (0, 100, 2, 1, 4), (55, 10, 1, 1, 4), (56, 10, 1, 2, 8)]
    assert starts(tmp_path, jobs) == [0, 0, 55, 56]


# ---------------------------------------------------------------------- priorities


def queued(nodes: list[int], cores: list[int], limit_min: list[int]) -> QueuedJobs:
    """Return jobs of a machine of 8 nodes of 12 cores."""
    n = len(nodes)
    return QueuedJobs(
        0.0, np.arange(n), np.zeros(n), 60.0 * np.array(limit_min), np.array(cores), 96, {}, None, np.array(nodes), 8
    )


def priorities(jobs: QueuedJobs, **parameters) -> list[float]:
    """Return what multifactor gives them."""
    order = MultifactorPriority(**parameters)
    order.prepare()
    return (-order.keys(jobs)).tolist()


def test_size_is_of_nodes_and_cores():
    """1/8 and 2/96 of the machine, 4/8 and 48/96; complemented, and over minutes."""
    jobs = queued([1, 4], [2, 48], [2, 10])
    assert priorities(jobs, PriorityWeightJobSize=9600) == [700, 4800]
    assert priorities(jobs, PriorityWeightJobSize=9600, PriorityFavorSmall=True) == [8900, 4800]
    relative = {"PriorityFlags": "SMALL_RELATIVE_TO_TIME"}
    assert priorities(jobs, PriorityWeightJobSize=9600, **relative) == [600, 480]
    assert priorities(jobs, PriorityWeightJobSize=9600, PriorityFavorSmall=True, **relative) == [9000, 9120]
    with pytest.raises(InputError, match="PriorityFlags"):
        priorities(jobs, PriorityFlags="MAX_TRES")


def test_sizes_that_a_slurm_printed():
    """All 120 priorities of our live run, when they were submitted: 5000 by size of 20 nodes that may come, 1000."""
    with LOG.open() as file:
        rows = list(csv.DictReader(file, delimiter="|"))
    nodes, cores, printed = ([int(row[name]) for row in rows] for name in ("NNodes", "ReqCPUS", "Priority"))
    found = priorities(queued(nodes, cores, [1] * 120), PriorityWeightJobSize=5000, MaxNodeCount=20)
    aged = [value - 1000 - own for value, own in zip(printed, found, strict=True)]
    assert aged.count(0) == 118
    assert set(aged) == {0, 5}  # those that were three seconds old when priorities were computed again


def test_priorities_stay_until_the_period_ends(tmp_path):
    """Job 3 is larger, job 2 older: its age counts only once priorities are computed again, after five minutes."""
    weights = (
        "PriorityType=priority/multifactor\nPriorityWeightAge=100000\nPriorityMaxAge=10\nPriorityWeightJobSize=1000\n"
    )
    for length, expected in ((250, [0, 260, 250]), (350, [0, 350, 360])):
        jobs = [(0, length, 10, 4, 16), (1, 10, 1, 3, 12), (200, 10, 1, 4, 16)]
        assert starts(tmp_path, jobs, weights) == expected


#: What sshare -l printed of a Slurm 22.05 that we ran: accounts and users with shares, usage, factor.
SSHARE = (
    ("", "root", 1, 7476, 0.166667),
    ("biology", "backup", 1, 1192, 0.333333),
    ("biology", "news", 1, 628, 0.500000),
    ("guests", "irc", 1, 461, 0.666667),
    ("physics", "games", 1, 23, 1.000000),
    ("physics", "mail", 1, 143, 0.833333),
)


def tree(rows, shares) -> Association:
    """Return users in accounts, numbered in this order."""
    root = Association("root", 1)
    accounts = {name: Association(name, number) for name, number in shares.items()}
    for place, (account, user, own, usage, _) in enumerate(rows):
        parent = accounts.get(account, root)
        parent.children.append(Association(user, own, place, usage=usage))
        parent.usage += usage
    root.children += accounts.values()
    root.usage = sum(row[3] for row in rows)
    return root


def test_fair_tree_as_a_slurm_printed_it():
    """Ranks of all users, from what each had used."""
    found = fair_tree_factors(tree(SSHARE, {"biology": 30, "guests": 10, "physics": 60}), 6)
    assert found == pytest.approx([row[4] for row in SSHARE], abs=1e-6)


def test_fair_tree_of_equal_accounts():
    """No user has used anything: all are first. Equal accounts are ranked as one."""
    unused = [(*row[:3], 0, 0) for row in SSHARE]
    assert fair_tree_factors(tree(unused, {"biology": 1, "guests": 2, "physics": 3}), 6).tolist() == [1.0] * 6
    rows = [("a", "x", 1, 30, 0), ("a", "y", 1, 10, 0), ("b", "z", 1, 40, 0), ("c", "w", 1, 1, 0)]
    # a and b have used the same of equal shares; of their users y (1/2 over 1/4) is before z (1) and x (1/2 over 3/4)
    assert fair_tree_factors(tree(rows, {"a": 1, "b": 1, "c": 1}), 4).tolist() == [0.25, 0.75, 0.5, 1.0]


def test_classic_shares_of_accounts():
    """SchedMD's page: a user's usage is pulled towards that of the account, by the user's part of its shares."""
    rows = [("a", "x", 1, 60, 0), ("a", "y", 3, 20, 0), ("b", "z", 1, 20, 0)]
    found = classic_factors_of_tree(tree(rows, {"a": 1, "b": 1}), 3, 1.0)
    # x: 0.6 + (0.8 - 0.6) / 4 = 0.65 of 1/8; y: 0.2 + 0.6 * 3/4 = 0.65 of 3/8; z: 0.2 of 1/2
    assert found == pytest.approx([2 ** (-0.65 * 8), 2 ** (-0.65 * 8 / 3), 2 ** (-0.2 / 0.5)])


def test_accounts_share_in_the_configuration(tmp_path):
    """Ann's account has used all: of jobs that wait, bob's of the other account is first."""
    conf = (
        "PriorityType=priority/multifactor\nPriorityWeightFairshare=1000\nPriorityCalcPeriod=1\n"
        "PriorityFlags=FAIR_TREE\n"
    )
    jobs = [
        (0, 200, 4, 4, 16, "normal", "ann", "a"),
        (70, 10, 1, 4, 16, "normal", "ann", "a"),
        (71, 10, 1, 4, 16, "normal", "bob", "b"),
    ]
    assert starts(tmp_path, jobs, conf) == [0, 210, 200]


@pytest.mark.parametrize(
    ("enforced", "begins"),
    [
        ("", [0, 30, 200, 210]),
        ("AccountingStorageEnforce=associations,qos\n", [0, 30, 200, 210]),
        ("AccountingStorageEnforce=associations,limits\n", [0, 30, 210, 200]),
        ("AccountingStorageEnforce=safe\n", [0, 30, 210, 200]),
    ],
)
def test_ends_are_charged_where_limits_are_enforced(tmp_path, enforced, begins):
    """Ann had all nodes from 0 to 30 s, between two computations of priorities: charged or not. Bob had nothing."""
    conf = (
        "PriorityType=priority/multifactor\nPriorityWeightFairshare=1000\nPriorityCalcPeriod=1\n"
        f"PriorityFlags=FAIR_TREE\n{enforced}"
    )
    jobs = [
        (0, 30, 4, 4, 16, "normal", "ann", "a"),
        (1, 170, 4, 4, 16, "normal", "cy", "c"),
        (70, 10, 1, 4, 16, "normal", "ann", "a"),
        (71, 10, 1, 4, 16, "normal", "bob", "b"),
    ]
    assert starts(tmp_path, jobs, conf) == begins


def test_what_runs_when_priorities_are_computed_is_charged(tmp_path):
    """At 60 s ann is charged for her job, and not for what it has until 90 s: bob, who had nothing, is first."""
    conf = "PriorityType=priority/multifactor\nPriorityWeightFairshare=1000\nPriorityCalcPeriod=1\n"
    jobs = [
        (0, 90, 4, 4, 16, "normal", "ann", "a"),
        (1, 110, 4, 4, 16, "normal", "cy", "c"),
        (130, 10, 1, 4, 16, "normal", "ann", "a"),
        (131, 10, 1, 4, 16, "normal", "bob", "b"),
    ]
    assert starts(tmp_path, jobs, conf) == [0, 90, 210, 200]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"order": "multifactor(charges_ends=False, PriorityCalcPeriod=0)"}, "charges_ends"),
        ({"bf_interval": 0}, "bf_interval"),
        ({"bf_window": 1.5}, "bf_window"),
        ({"poll_s": -1.0}, "poll_s"),
        ({"completing_s": float("inf")}, "completing_s"),
        ({"order": "largest"}, "Allowed"),
    ],
)
def test_what_is_refused(tmp_path, parameters, words):
    """In one line, before anything is run."""
    with pytest.raises(InputError, match=words):
        starts(tmp_path, [(0, 1, 1, 1, 1)], **parameters)
    with pytest.raises(InputError, match="PriorityWeightAge"):
        starts(tmp_path, [(0, 1, 1, 1, 1)], "PriorityType=priority/multifactor\nPriorityWeightAge=much\n")


# ---------------------------------------------------------------------- a Slurm that ran


def test_a_live_slurm_is_met():
    """120 jobs of our own run: makespan within 3 %, mean wait within 10 %, ranks of waits at 0.9 and above.

    Nothing is fitted: priorities were computed again at 148 s, as two that were printed then show; the fractions
    of the seconds that sacct prints are drawn, 20 times.
    """
    scenario = load(
        Scenario(
            None,
            LOG,
            "slurm",
            parameters={"order": "multifactor(first_calc_s=148)"},
            driver="reference",
            trace=TraceOptions(slurm_conf=CONF),
        )
    )
    results = [run(sampled_within_seconds(scenario, seed)) for seed in range(20)]
    own = beside_itself(scenario, read_schedule(LOG))
    found = beside_log("slurm", results, own.wait_s).row
    assert own.row["makespan_s"] == 390
    assert own.row["utilisation"] == pytest.approx(0.8126, abs=1e-4)
    assert own.row["mean_wait_s"] == pytest.approx(143.925)
    assert found["makespan_s"] == pytest.approx(own.row["makespan_s"], rel=0.03)
    assert found["utilisation"] == pytest.approx(own.row["utilisation"], rel=0.03)
    assert found["mean_wait_s"] == pytest.approx(own.row["mean_wait_s"], rel=0.10)
    assert found["rank_correlation"] >= 0.9


def test_joules_of_the_log():
    """Idle power of 8 nodes for 390 s, and a twelfth of the rest for each core-second, as the log counts them."""
    scenario = load(Scenario(None, LOG, "fcfs", driver="reference", trace=TraceOptions(slurm_conf=CONF)))
    own = beside_itself(scenario, read_schedule(LOG))
    with LOG.open() as file:
        rows = list(csv.DictReader(file, delimiter="|"))
    busy = sum(int(row["AllocCPUS"]) * int(row["ElapsedRaw"]) for row in rows)
    end = max(datetime.fromisoformat(row["End"]) for row in rows)
    length = (end - min(datetime.fromisoformat(row["Submit"]) for row in rows)).total_seconds()
    assert own.row["energy_j"] == pytest.approx(8 * 95.0 * length + busy * (190.738 - 95.0) / 12)


def test_runs_where_nodes_are_whole():
    """Jobs that have nodes whole: without a configuration it is FCFS with promises."""
    from gridsched.model.platform import homogeneous_cluster

    platform = homogeneous_cluster(4, idle_w=1.0, busy_w=2.0, speed=1e9)
    length = np.array([10.0, 5.0, 3.0])
    tasks = make_tasks(length * 1e9, [0, 1, 2], width=[3, 4, 1], requested_time_s=length)
    scenario = Scenario(
        platform, tasks, "slurm", run_times=LoggedRunTimes(platform, length), driver="reference",
        parameters={"bf_interval": 1, "bf_resolution": 1},
    )  # fmt: skip
    assert run(scenario).trace.start_time_s.tolist() == [0, 10, 2]


def test_the_log_of_a_configuration_is_read_once():
    """Weights and what the clock showed are settings of the platform, which policies see."""
    settings = dict(trace_system(LOG, TraceOptions(slurm_conf=CONF)).system.platform.queue_settings)
    assert settings["PriorityWeightJobSize"] == "5000"
    assert float(settings["clock_s"]) % 60 == 21
