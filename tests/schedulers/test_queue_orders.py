"""Orders of a queue, and backfilling on logs."""

from __future__ import annotations

import math

import easy_by_events as sc2015
import numpy as np
import pytest
import rigid_oracles as oracles
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_cases import ORACLES, jobs_of, log_of, machine, scenario, starts

from gridsched import Scenario, run
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.errors import GridschedError, InputError
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.schedulers.parallel.backfilling import EasyBackfilling
from gridsched.schedulers.parallel.queue_orders import FORMULAS, QueueOrder, slurm_time_s
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

# Orders of a queue before any backfilling: published formulas, Slurm's priority, depth.

#: Keys by hand: (now, submission, estimate, nodes) -> smallest first.
KEYS = {
    "shortest": lambda now, s, r, n: r,
    "smallest": lambda now, s, r, n: n,
    "wfp3": lambda now, s, r, n: -(((now - s) / r) ** 3) * n,
    "unicef": lambda now, s, r, n: -(now - s) / (max(math.log2(n), 1e-9) * r),
    "f1": lambda now, s, r, n: math.log10(r) * n + 870 * math.log10(max(s, 1)),
    "f2": lambda now, s, r, n: math.sqrt(r) * n + 25_600 * math.log10(max(s, 1)),
    "f3": lambda now, s, r, n: r * n + 6_860_000 * math.log10(max(s, 1)),
    "f4": lambda now, s, r, n: r * math.sqrt(n) + 530_000 * math.log10(max(s, 1)),
}
JOBS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 9), st.integers(1, 5), st.integers(0, 9)), min_size=1, max_size=14
).map(lambda rows: [(s, r, n, r + more) for s, r, n, more in sorted(rows, key=lambda row: row[0])])


def starts_of(jobs, n_nodes, scheduler, **options) -> list[float]:
    """Return the start of each job."""
    return run(scenario(jobs, n_nodes, scheduler, **options)).trace.start_time_s.tolist()


def in_order(rule, jobs, order, depth=None):
    """Return the rule of an oracle over a queue in another order, cut to a depth."""

    def choose(now, queue, free, ends):
        def key(row):
            job, width, estimate = row
            return KEYS[order](now, jobs[job][0], estimate, width) if order in KEYS else job

        return rule(now, sorted(queue, key=key)[:depth], free, ends) if queue else []

    return choose


def test_every_formula_is_tried():
    """There is a key by hand for each."""
    assert set(KEYS) == set(FORMULAS)


@settings(max_examples=60, deadline=None)
@given(JOBS, st.sampled_from(sorted(KEYS)), st.sampled_from(sorted(ORACLES)), st.sampled_from([None, 1, 2, 5]))
def test_all_rules_over_all_orders(jobs, order, scheduler, depth):
    """The plain oracles over a sorted queue start every job at the same time."""
    expected = oracles.simulate(jobs, 5, in_order(ORACLES[scheduler], jobs, order, depth))
    assert starts_of(jobs, 5, scheduler, parameters={"order": order, "depth": depth}) == expected


def test_shortest_first_by_hand():
    """Four nodes: while the first runs, three wait for 10 s; of these the shortest goes first."""
    jobs = [(0, 10, 4, 10), (1, 9, 4, 9), (2, 5, 4, 5), (3, 7, 4, 7)]
    assert starts_of(jobs, 4, "fcfs") == [0, 10, 19, 24]
    assert starts_of(jobs, 4, "fcfs", parameters={"order": "shortest"}) == [0, 22, 10, 15]


def test_depth_is_how_far_is_looked():
    """The third job would overtake the second, but only two are looked at."""
    jobs = [(0, 10, 3, 10), (1, 5, 4, 5), (2, 5, 2, 5), (3, 7, 1, 7)]
    assert starts_of(jobs, 4, "easy_backfilling") == [0, 10, 15, 3]
    assert starts_of(jobs, 4, "easy_backfilling", parameters={"depth": 2}) == [0, 10, 15, 15]


# ---------------------------------------------------------------------- Slurm's multifactor priority

DAY = 86_400.0
#: Five jobs that wait at 3 days for a machine of 10 nodes: submission, nodes, user, partition, qos.
FIVE = (
    (1.0 * DAY, 5, "ann", "batch", "normal"),
    (1.5 * DAY, 10, "bob", "short", "normal"),
    (2.0 * DAY, 1, "ann", "short", "high"),
    (2.5 * DAY, 2, "cy", "batch", "high"),
    (3.0 * DAY, 10, "cy", "", "normal"),
)


def multifactor(**parameters) -> str:
    """Return the order with parameters, as text."""
    return f"multifactor({', '.join(f'{name}={value!r}' for name, value in parameters.items())})"


class Recorded(EasyBackfilling):
    """EASY that keeps each priority that it went by."""

    def queue_order(self):
        """Return the order, under observation."""
        order, priorities = super().queue_order(), self.priorities
        keys = order.keys

        def recorded(jobs):
            values = keys(jobs)
            priorities.append((jobs.now, dict(zip(jobs.ids.tolist(), (-values).tolist(), strict=True))))
            return values

        order.keys = recorded
        return order


def priorities_of_five(**parameters) -> dict[int, float]:
    """Return the priorities at 3 days; until then all nodes were bob's."""
    rows = [(0.0, 10, "bob", "batch", "normal"), *FIVE]
    submit, width, user, partition, qos = zip(*rows, strict=True)
    length = np.array([3 * DAY, *(10.0,) * 5])
    platform = machine(10)
    attributes = {"user": user, "partition": partition, "qos": qos}
    tasks = make_tasks(length * 1e9, submit, width=width, requested_time_s=length, attributes=attributes)
    scheduler = Recorded(order=multifactor(**parameters))
    Recorded.priorities = []
    run(Scenario(platform, tasks, scheduler, run_times=LoggedRunTimes(platform, length), driver="reference"))
    return {task - 1: value for now, values in Recorded.priorities if now == 3 * DAY for task, value in values.items()}


def test_age_by_hand():
    """Of a maximum of 4 days 2, 1.5, 1, 0.5 and 0 have passed."""
    found = priorities_of_five(PriorityWeightAge=1000, PriorityMaxAge="4-0")
    assert found == {0: 500, 1: 375, 2: 250, 3: 125, 4: 1}


def test_age_is_at_most_one():
    """A day and 12 hours are the whole factor."""
    found = priorities_of_five(PriorityWeightAge=1000, PriorityMaxAge="1-12")
    assert found == {0: 1000, 1: 1000, 2: 666, 3: 333, 4: 1}


def test_size_by_hand():
    """5, 10, 1, 2 and 10 nodes of 10, or what they leave."""
    assert priorities_of_five(PriorityWeightJobSize=100) == {0: 50, 1: 100, 2: 10, 3: 20, 4: 100}
    found = priorities_of_five(PriorityWeightJobSize=100, PriorityFavorSmall=True)
    assert found == {0: 50, 1: 1, 2: 90, 3: 80, 4: 1}


def test_partition_and_quality_of_service_by_hand():
    """Numbers over the largest that is listed; what is not listed counts 0."""
    found = priorities_of_five(
        PriorityWeightPartition=1000,
        partitions={"batch": 1, "short": 4},
        PriorityWeightQOS=100,
        qos={"high": 30, "normal": 15},
    )
    assert found == {0: 250 + 50, 1: 1000 + 50, 2: 1000 + 100, 3: 250 + 100, 4: 50}


def test_fair_share_by_hand():
    """All usage is bob's: with shares of 2, 1 and 1 his factor is 2^(-1 / 0.25), the others' is 1."""
    found = priorities_of_five(PriorityWeightFairshare=1024, shares={"ann": 2})
    assert found == {0: 1024, 1: 64, 2: 1024, 3: 1024, 4: 1024}
    damped = priorities_of_five(PriorityWeightFairshare=1024, shares={"ann": 2}, FairShareDampeningFactor=2)
    assert damped[1] == 256


def test_all_factors_together():
    """The sum of all, rounded down once."""
    found = priorities_of_five(
        PriorityWeightAge=1000,
        PriorityMaxAge="4-0",
        PriorityWeightFairshare=1024,
        shares={"ann": 2},
        PriorityWeightJobSize=100,
        PriorityWeightPartition=10,
        partitions={"batch": 1, "short": 3},
        PriorityWeightQOS=7,
        qos={"high": 3, "normal": 2},
    )
    assert found == {
        0: math.floor(500 + 1024 + 50 + 10 / 3 + 14 / 3),
        1: math.floor(375 + 64 + 100 + 10 + 14 / 3),
        2: math.floor(250 + 1024 + 10 + 10 + 7),
        3: math.floor(125 + 1024 + 20 + 10 / 3 + 7),
        4: math.floor(0 + 1024 + 100 + 0 + 14 / 3),
    }


@pytest.mark.parametrize(("half_life", "halves"), [("1-0", 1.0), ("0-12", 2.0), (0, 0.0)])
def test_usage_counts_half_after_the_half_life(half_life, halves):
    """Ann has a node for the first day, bob for the second; then ann's counts `halves` half-lives less."""
    platform = machine(1)
    rows = [(0, DAY, "ann"), (0, DAY, "bob"), (1, 5.0, "ann"), (1, 5.0, "bob")]
    submit, length, user = zip(*rows, strict=True)
    tasks = make_tasks(np.array(length) * 1e9, submit, width=1, requested_time_s=length, attributes={"user": user})
    weight = 2**30
    scheduler = Recorded(order=multifactor(PriorityWeightFairshare=weight, PriorityDecayHalfLife=half_life))
    Recorded.priorities = []
    times = LoggedRunTimes(platform, length)
    run(Scenario(platform, tasks, scheduler, run_times=times, driver="reference"))
    found = next(values for now, values in Recorded.priorities if now == 2 * DAY)
    ann = 0.5**halves / (1 + 0.5**halves)
    assert found == {2: math.floor(weight * 2 ** (-2 * ann)), 3: math.floor(weight * 2 ** (-2 * (1 - ann)))}


@pytest.mark.parametrize(
    ("rows", "shares", "second"),
    [
        # bob 416 + 400 * 2^-2 = 516, ann 83 + 400 = 483
        ((), {}, "bob"),
        # zed, who submits nothing, has 98 of 100 shares: bob 416 + 400 * 2^-100, ann 483
        ((), {"zed": 98}, "ann"),
        # cy, whose job is to come, has one of three shares: bob 416 + 400 * 2^-3 = 466, ann 483
        (((5000, "cy"),), {}, "ann"),
        # a job without a user likewise
        (((5000, ""),), {}, "ann"),
        # shares of 5, 3 and 2: bob 416 + 400 * 2^-2, ann 483
        (((5000, "cy"),), {"cy": 2, "ann": 3, "bob": 5}, "bob"),
    ],
)
def test_fair_share_is_of_all_users(rows, shares, second):
    """Bob's job has the node for 600 s; his next one waits since 100 s, ann's since 500 s, of at most 20 min."""
    submit, user = zip((0, "bob"), (100, "bob"), (500, "ann"), *rows, strict=True)
    length = np.full(len(submit), 600.0)
    platform = machine(1)
    tasks = make_tasks(length * 1e9, submit, width=1, requested_time_s=length, attributes={"user": user})
    order = multifactor(
        PriorityWeightAge=1000, PriorityMaxAge=20, PriorityWeightFairshare=400, PriorityDecayHalfLife=0, shares=shares
    )
    times = LoggedRunTimes(platform, length)
    trace = run(Scenario(platform, tasks, EasyBackfilling(order=order), run_times=times, driver="reference")).trace
    starts = trace.start_time_s.tolist()[:3]
    assert starts == ([0, 600, 1200] if second == "bob" else [0, 1200, 600])


def test_without_weights_the_order_is_that_of_submission():
    """As in Slurm, whose weights are 0 unless somebody sets them."""
    jobs = [(0, 10, 3, 10), (1, 5, 4, 5), (2, 20, 1, 20), (3, 7, 1, 7)]
    expected = starts_of(jobs, 4, "easy_backfilling")
    assert starts_of(jobs, 4, "easy_backfilling", parameters={"order": "multifactor"}) == expected


@pytest.mark.parametrize(
    ("text", "seconds"), [(90, 5400), ("90", 5400), ("1:30", 90), ("2:0:5", 7205), ("7-0", 7 * DAY), ("1-2:3:4", 93784)]
)
def test_times_of_slurm(text, seconds):
    """Minutes by default."""
    assert slurm_time_s("multifactor", "PriorityMaxAge", text) == seconds


class Largest(QueueOrder):
    """An order of a user's own: largest area first."""

    def keys(self, jobs):
        """Return minus width times run time."""
        return -jobs.width * jobs.run_time_s


class LargestFirst(EasyBackfilling):
    """EASY over it."""

    def queue_order(self):
        """Return the own order."""
        return Largest()


@pytest.mark.parametrize(
    "driver",
    ["reference", pytest.param("simgrid", marks=pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL))],
)
def test_an_order_of_ones_own(driver):
    """A subclass chooses: the largest of those that wait at 10 s starts then."""
    jobs = [(0, 10, 4, 10), (1, 9, 4, 9), (2, 5, 4, 5), (3, 20, 4, 20)]
    assert starts_of(jobs, 4, LargestFirst(), driver=driver) == [0, 30, 39, 10]


@pytest.mark.systems("utility")
@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"order": "wfp4"}, "wfp3"),
        ({"order": "wfp3(x=1)"}, "'x'"),
        ({"order": 3}, "order"),
        ({"order": "multifactor(PriorityWeightAges=1)"}, "PriorityWeightAge"),
        ({"order": "multifactor(PriorityWeightAge=-1)"}, "PriorityWeightAge"),
        ({"order": "multifactor(PriorityWeightAge=4294967296)"}, "PriorityWeightAge"),
        ({"order": "multifactor(PriorityMaxAge='soon')"}, "PriorityMaxAge"),
        ({"order": "multifactor(PriorityMaxAge=0)"}, "PriorityMaxAge"),
        ({"order": "multifactor(shares={'ann': 0})"}, "ann"),
        ({"order": "multifactor(qos=3)"}, "qos"),
        ({"depth": 0}, "depth"),
        ({"estimate": "guess"}, "estimate"),
        ({"reservations": "permanent", "order": "f1"}, "order"),
    ],
)
def test_what_is_no_order_is_refused(parameters, named):
    """One line that names it."""
    with pytest.raises(InputError, match=named):
        run(scenario([(0, 1, 1, 1)], 2, "easy_backfilling", parameters=parameters))


@pytest.mark.parametrize(
    "parameters", [{"order": "multifactor(PriorityWeightFairshare=1)"}, {"estimate": "last_two_of_user"}]
)
def test_who_goes_by_users_needs_a_log_with_users(parameters):
    """Nothing is guessed."""
    with pytest.raises(GridschedError, match="user"):
        run(scenario([(0, 1, 1, 1), (2, 1, 1, 1)], 2, "easy_backfilling", parameters=parameters))


# FCFS, EASY and conservative backfilling on logs of real machines, against plain oracles.

HPC2N, KTH, CURIE = "HPC2N_excerpt.swf", "KTH-SP2.swf.gz", "CEA-Curie_10day.swf.gz"
#: The quick one of two equal oracles.
QUICK = ORACLES | {"conservative_backfilling": oracles.conservative_by_steps}


@pytest.mark.parametrize("scheduler", sorted(QUICK))
@pytest.mark.parametrize("name", [HPC2N, KTH])
def test_starts_on_the_first_jobs(name, scheduler):
    """The same starts as the oracles, to the last digit."""
    jobs, n_nodes = jobs_of(name)
    jobs = jobs[:400]
    assert starts(jobs, n_nodes, scheduler) == oracles.simulate(jobs, n_nodes, QUICK[scheduler])


@pytest.mark.long
@pytest.mark.parametrize("scheduler", sorted(QUICK))
@pytest.mark.parametrize(
    ("name", "procs_per_node", "n_jobs"), [(HPC2N, 1, 3_145), (KTH, 1, 28_481), (CURIE, 16, 14_459)]
)
def test_starts_on_whole_logs(name, procs_per_node, n_jobs, scheduler):
    """All jobs: the same starts as the oracles, to the last digit."""
    jobs, n_nodes = jobs_of(name, procs_per_node)
    assert len(jobs) == n_jobs
    trace = run(scenario(jobs, n_nodes, scheduler)).trace
    assert trace.start_time_s.tolist() == oracles.simulate(jobs, n_nodes, QUICK[scheduler])


@pytest.mark.long
@pytest.mark.parametrize(
    ("shortest_first", "slowdown", "flow_s"),
    [(False, 92.5765397336295, 15696.7981812436), (True, 69.4054005803035, 14764.0026684456)],
)
def test_oracle_repeats_what_sc_2015_stored(shortest_first, slowdown, flow_s):
    """Figures of E. Gaussier et al. (SC 2015) on KTH-SP2, as their repository stores them."""
    jobs = sc2015.jobs_of_log(log_of(KTH), 100)
    start = sc2015.starts_of_easy(jobs, 100, shortest_first=shortest_first)
    flow = sc2015.flow_times(jobs, start)
    assert len(jobs) == 28_481
    assert sc2015.mean_bounded_slowdown(jobs, start) == pytest.approx(slowdown, rel=1e-13)
    assert sum(flow) / len(flow) == pytest.approx(flow_s, rel=1e-13)
    assert shortest_first or max(flow) == 309_231


@pytest.mark.long
@pytest.mark.parametrize(("shortest_first", "slowdown"), [(False, 92.68765), (True, 69.39364)])
def test_oracle_that_looks_once_an_instant(shortest_first, slowdown):
    """The same rules but for the passes: other figures, measured by another small program."""
    jobs = sc2015.jobs_of_log(log_of(KTH), 100)
    start = sc2015.starts_of_easy(jobs, 100, shortest_first=shortest_first, each_instant=True)
    assert sc2015.mean_bounded_slowdown(jobs, start) == pytest.approx(slowdown, abs=5e-6)


@pytest.mark.long
def test_easy_is_sc_2015s_with_other_rules():
    """Allocated processors, runs that are not cut, one pass an instant: gridsched's starts, one by one."""
    jobs = sc2015.jobs_of_log(log_of(KTH), 100, requested=False, cut=False)
    start = sc2015.starts_of_easy(jobs, 100, each_instant=True)
    assert sc2015.mean_bounded_slowdown(jobs, start) == pytest.approx(90.8155, abs=5e-5)
    assert sc2015.mean_wait(jobs, start) == pytest.approx(6855.456, abs=5e-4)
    ours, n_nodes = jobs_of(KTH)
    assert ours == jobs
    assert starts(ours, n_nodes, "easy_backfilling") == start


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize("scheduler", sorted(QUICK))
@pytest.mark.parametrize("name", [HPC2N, KTH])
def test_both_drivers_agree_on_the_first_jobs(name, scheduler):
    """The same records; the plugin's joules are the model's, node by node."""
    jobs, n_nodes = jobs_of(name)
    assert driver_differences(jobs[:120], n_nodes, scheduler) == []


@pytest.mark.long
@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize("scheduler", sorted(QUICK))
@pytest.mark.parametrize(("name", "procs_per_node"), [(HPC2N, 1), (KTH, 1), (CURIE, 16)])
def test_both_drivers_agree_on_whole_logs(name, procs_per_node, scheduler):
    """All jobs, likewise."""
    jobs, n_nodes = jobs_of(name, procs_per_node)
    assert driver_differences(jobs, n_nodes, scheduler) == []


def driver_differences(jobs, n_nodes, scheduler) -> list[str]:
    """Run jobs on both drivers; return in what records and joules differ."""
    expected = run(scenario(jobs, n_nodes, scheduler))
    found = run(scenario(jobs, n_nodes, scheduler, driver="simgrid"))
    return trace_differences(expected.trace, found.trace) + metered_differences(found)
