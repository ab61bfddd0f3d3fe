"""Schedulers under a power cap, and green ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import Host, Platform, PState, Scenario, make_tasks, run
from gridsched.errors import InputError
from gridsched.model.carbon import Carbon
from gridsched.model.data_files import DataFiles
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.series import Series, SiteSeries
from gridsched.model.task_types import TaskTypes, typed_platform
from gridsched.policy.registry import make_scheduler
from gridsched.power import peak_power_w
from gridsched.schedulers.green import FollowSites, WaitForGreen
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

# `power_capped_mct`: worked examples, plain rules, and the cap on both drivers.

#: 100 flop/s at 100 W or 50 flop/s at 40 W, and 40 flop/s at 30 W; 10 W idle.
PAIR = Platform(
    (
        Host("fast", (PState(100.0, 10.0, 100.0, 100.0), PState(50.0, 10.0, 40.0, 40.0))),
        Host("slow", (PState(40.0, 10.0, 30.0, 30.0),)),
    )
)


def both(platform, tasks, **rules):
    """Run on both drivers, which must agree in times, joules and the largest power."""
    expected = run(Scenario(platform, tasks, "power_capped_mct", driver="reference", **rules))
    metered = run(Scenario(platform, tasks, "power_capped_mct", driver="simgrid", **rules))
    assert trace_differences(expected.trace, metered.trace) == []
    assert metered_differences(metered) == []
    peak_w = expected.summary()["peak_power_w"]
    assert peak_w == pytest.approx(metered.summary()["peak_power_w"], rel=1e-9)
    return expected


def rows(result) -> list[tuple]:
    """Return (task, host, P-state, start, end) of each execution."""
    return [row[:5] for row in result.trace.executions.tolist()]


@pytest.mark.parametrize(
    ("cap_w", "executions", "joules", "peak_w"),
    [
        # T3 rather waits for the fast host (11 s) than for the slow one (12.5 s)
        (None, [(0, 0, 0, 0, 10), (1, 1, 0, 0, 10), (2, 0, 0, 10, 11)], 11 * 100 + 10 * 30 + 1 * 10, 130),
        # with the fast host at full power 10 W remain: nothing starts on the slow one
        (120.0, [(0, 0, 0, 0, 10), (1, 0, 0, 10, 14), (2, 0, 0, 14, 15)], 15 * 100 + 15 * 10, 110),
        # 70 W above idle: the fast host in P-state 1, and the slow one beside it
        (90.0, [(0, 0, 1, 0, 20), (1, 1, 0, 0, 10), (2, 1, 0, 10, 12.5)], 20 * 40 + 12.5 * 30 + 7.5 * 10, 70),
        # only the slow host fits
        (40.0, [(0, 1, 0, 0, 25), (1, 1, 0, 25, 35), (2, 1, 0, 35, 37.5)], 37.5 * 30 + 37.5 * 10, 40),
    ],
)
def test_a_worked_example(cap_w, executions, joules, peak_w):
    """Tasks of 1000, 400 and 100 flop under four caps."""
    result = both(PAIR, make_tasks([1000.0, 400.0, 100.0]), power_cap_w=cap_w)
    assert rows(result) == executions
    assert result.summary()["energy_j"] == pytest.approx(joules, rel=1e-12)
    assert result.summary()["peak_power_w"] == peak_w


def test_ties_go_to_the_least_power_then_the_lowest_id():
    """Equal completion times: the host that adds least; of equal ones the first."""
    states = [PState(10.0, 5.0, watts, watts) for watts in (30.0, 20.0, 20.0)]
    platform = Platform(tuple(Host(f"h{k}", (each,)) for k, each in enumerate(states)))
    result = run(Scenario(platform, make_tasks([10.0, 10.0]), "power_capped_mct", driver="reference"))
    assert [row[1] for row in rows(result)] == [1, 2]


def test_cores_share_a_pstate_and_the_watts():
    """One of two cores draws 35 W, both 60 W; a task beside another keeps its P-state."""
    states = (PState(10.0, 5.0, 10.0, 60.0), PState(5.0, 5.0, 10.0, 40.0))
    host = Platform((Host("h", states, cores=2),))
    # 35 W, then 60 W; the third waits for a core
    free = both(host, make_tasks([100.0, 100.0, 10.0]))
    assert rows(free) == [(0, 0, 0, 0, 10), (1, 0, 0, 0, 10), (2, 0, 0, 10, 11)]
    # a second core at full speed would make it 60 W: it waits, and is not slowed down
    capped = both(host, make_tasks([100.0, 100.0]), power_cap_w=50.0)
    assert rows(capped) == [(0, 0, 0, 0, 10), (1, 0, 0, 10, 20)]
    # 30 W leave room for P-state 1 only: 25 W, then 40 W is too much
    slow = both(host, make_tasks([100.0, 100.0]), power_cap_w=30.0)
    assert rows(slow) == [(0, 0, 1, 0, 20), (1, 0, 1, 20, 40)]


def test_powers_by_task_type_count():
    """A type that draws more is held back where another may start."""
    watts = np.array([[[100.0]], [[40.0]]])
    types = TaskTypes(np.full((2, 1, 1), 10.0), watts, np.array([0, 0]))
    tasks = make_tasks([1e12] * 3, task_type=[0, 0, 1])
    result = run(
        Scenario(typed_platform(types), tasks, "power_capped_mct", types=types, driver="reference", power_cap_w=150.0)
    )
    # tasks 1 and 3 together draw 140 W; the second of 100 W waits for the first
    assert [row[0] for row in rows(result) if row[3] == 0] == [0, 2]
    assert peak_power_w(result.trace) <= 150.0


hosts = st.lists(
    st.tuples(st.integers(1, 2), st.lists(st.integers(2, 40), min_size=1, max_size=3), st.integers(0, 9)),
    min_size=1,
    max_size=3,
)


@settings(max_examples=60, deadline=None)
@given(
    hosts,
    st.lists(st.integers(1, 60), min_size=1, max_size=8),
    st.lists(st.integers(0, 9), min_size=8, max_size=8),
    st.floats(0.3, 1.0),
)
def test_the_cap_holds_and_all_tasks_finish(made, sizes, arrivals, share):
    """Wherever one core of each host may run alone; power grows with the speed."""
    platform = Platform(
        tuple(
            Host(
                f"h{k}",
                tuple(PState(speed, idle, idle + 1, idle + 1 + speed**1.5) for speed in sorted(speeds, reverse=True)),
                cores,
            )
            for k, (cores, speeds, idle) in enumerate(made)
        )
    )
    idle_w = platform.idle_w[:, 0].sum()
    least = max(float(h.pstates[-1].busy_w - h.pstates[-1].idle_w) for h in platform.hosts)
    most = sum(host.pstates[0].busy_w for host in platform.hosts)
    cap_w = max(idle_w + least, share * most)
    tasks = make_tasks(sizes, sorted(arrivals[: len(sizes)]))
    result = run(Scenario(platform, tasks, "power_capped_mct", driver="reference", power_cap_w=cap_w))
    assert result.summary()["tasks_finished"] == len(tasks)
    assert peak_power_w(result.trace) <= cap_w * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(1.0, 9.0), min_size=1, max_size=4, unique=True),
    st.lists(st.floats(1.0, 50.0), min_size=1, max_size=9, unique=True),
)
def test_without_cap_and_pstates_it_is_mct(speeds, sizes):
    """Tasks that are held back are decided as MCT decides at once."""
    platform = Platform(tuple(Host(f"h{k}", (PState(s, 1.0, 2.0, 2.0),)) for k, s in enumerate(speeds)))
    found, expected = (
        run(Scenario(platform, make_tasks(sizes), scheduler, driver="reference")).trace
        for scheduler in ("power_capped_mct", "mct")
    )
    assert found.finish_time_s == pytest.approx(expected.finish_time_s, rel=1e-9)


def test_input_files_are_refused():
    """The time at which a task waiting for its files begins to use power is unknown."""
    files = DataFiles(("f",), [1.0], (("h",),))
    platform = Platform((Host("h", (PState(1.0, 1.0, 2.0, 2.0),)),))
    tasks = make_tasks([1.0], files=files, input_files=((0,),))
    with pytest.raises(InputError, match="--files"):
        run(Scenario(platform, tasks, "power_capped_mct", driver="reference"))


# `wait_for_green` and `follow_sites`: worked examples, forecasts, and what holds of all runs.

ROOT = Path(__file__).parents[2]
STATE = PState(1.0, 1.0, 10.0, 10.0)
EQUAL_PAIR = Platform(tuple(Host(name, (STATE,)) for name in ("a", "b")))
DAY_S = 86_400.0


def everywhere(times, values, period_s=np.inf) -> Carbon:
    """Return one intensity [g/kWh] for all hosts."""
    return Carbon(SiteSeries(("*",), (Series(tuple(times), tuple(values)),)), period_s)


def starts(tasks, scheduler, carbon, **changes) -> list[float]:
    """Return when each task starts [s], on the reference driver."""
    scenario = Scenario(EQUAL_PAIR, tasks, scheduler, carbon=carbon, driver="reference", **changes)
    return run(scenario).trace.start_time_s.tolist()


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
def test_the_example_of_the_documents(driver):
    """B's first hour and A's third cost 100 g/kWh, A's second 200: 40 g of work, 9.6 g of idling."""
    scheduler = WaitForGreen(FollowSites(), max_delay_s=7200.0, site="best")
    paths = (ROOT / "examples/two_sites.xml", ROOT / "examples/two_sites_day.csv")
    result = run(Scenario(*paths, scheduler, carbon=Carbon(ROOT / "examples/sites.csv"), driver=driver))
    metrics = result.metrics()
    assert metrics["carbon_busy_g"] == pytest.approx(2 * 0.05 * (100 + 100 + 200), rel=1e-12)
    assert metrics["carbon_idle_g"] == pytest.approx(2 * 0.004 * (400 + 300 + 500), rel=1e-12)
    assert metrics["makespan_s"] == 10_800
    assert metrics["tasks_missed"] == 0


def test_starts_are_put_off_to_the_best_hour():
    """Of 10 s each, two at a time: from 50 s on at 100, the next ones end at 50 s or begin at 60."""
    carbon = everywhere((0.0, 40.0, 50.0, 60.0), (400.0, 300.0, 100.0, 300.0))
    wait = WaitForGreen("min_min", max_delay_s=100.0)
    assert starts(make_tasks([10.0] * 4), wait, carbon) == [50.0, 50.0, 40.0, 40.0]
    # a deadline leaves less time than that: 45 s less 10 s of work
    tasks = make_tasks([10.0, 10.0], deadline_s=[45.0, 200.0])
    assert starts(tasks, wait, carbon) == [35.0, 50.0]
    assert starts(make_tasks([10.0]), WaitForGreen("min_min", max_delay_s=45.0), carbon) == [45.0]


def test_a_core_that_gets_free_is_there_for_the_next_start():
    """Two run from 40 to 50 s, and two at once behind them, where it is dearer, but not so dear as before."""
    carbon = everywhere((0.0, 40.0, 50.0, 60.0), (400.0, 100.0, 150.0, 400.0))
    wait = WaitForGreen("min_min", max_delay_s=100.0)
    assert starts(make_tasks([10.0] * 4), wait, carbon) == [40.0, 40.0, 50.0, 50.0]


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
def test_an_interrupted_job_takes_the_cheapest_slots(driver):
    """A chain of three tasks of 10 s, due at 80 s: the slots from 20, 40 and 70 s cost least, though they are apart."""
    carbon = everywhere((0.0, 20.0, 30.0, 40.0, 50.0, 70.0, 80.0), (400.0, 100.0, 300.0, 150.0, 350.0, 200.0, 50.0))
    chain = Dependencies(np.array([1, 2]), np.array([0, 1]), np.array([After.END] * 2), np.zeros(2))
    tasks = replace(make_tasks([10.0] * 3, deadline_s=[80.0] * 3), dependencies=chain)
    scenario = Scenario(EQUAL_PAIR, tasks, WaitForGreen("min_min", max_delay_s=1e3), carbon=carbon, driver=driver)
    assert run(scenario).trace.start_time_s.tolist() == pytest.approx([20.0, 40.0, 70.0])
    # tasks of several lengths are no interrupted job: each is put off when the one before it has ended
    uneven = replace(make_tasks([10.0, 20.0], deadline_s=[80.0] * 2), dependencies=chain.first(2))
    assert starts(uneven, WaitForGreen("min_min", max_delay_s=1e3), carbon)[0] == 20.0


def test_a_run_may_end_where_it_gets_dear():
    """5 s at 100 between 200 and 400: the 10 s that end there cost least."""
    carbon = everywhere((0.0, 20.0, 25.0), (200.0, 100.0, 400.0))
    assert starts(make_tasks([10.0]), WaitForGreen("min_min", max_delay_s=100.0), carbon) == [15.0]


def test_persistence_of_what_has_not_been_is_the_present():
    """At one o'clock of the first day all later hours are as the present one; the next day's first is as today's."""
    carbon = everywhere((0.0, 3600.0), (100.0, 300.0))
    wait = WaitForGreen("min_min", max_delay_s=30 * 3600.0, forecast="persistence")
    assert starts(make_tasks([60.0], [3600.0]), wait, carbon) == [DAY_S]


def test_the_latest_start_is_in_time_on_the_slowest_host():
    """10 s on one host, 20 s on the other, due at 60 s: 40 s is the latest start, however green it is at 50."""
    platform = Platform((Host("a", (STATE,)), Host("b", (PState(0.5, 1.0, 10.0, 10.0),))))
    carbon = everywhere((0.0, 30.0, 50.0), (400.0, 300.0, 100.0))
    tasks = make_tasks([10.0], deadline_s=[60.0])
    scheduler = WaitForGreen("min_min", max_delay_s=100.0)
    result = run(Scenario(platform, tasks, scheduler, carbon=carbon, driver="reference"))
    assert result.trace.start_time_s.tolist() == [40.0]


def test_without_slack_nothing_changes():
    """Nor at an intensity that is always the same."""
    tasks = make_tasks([30.0, 20.0, 10.0, 50.0], [0.0, 0.0, 4.0, 9.0])
    carbon = everywhere((0.0, 40.0), (400.0, 100.0))
    for inner in ("wq", "sufferage", "lecsa", "wqr(max_replicas=2)"):
        name = inner.partition("(")[0]
        expected = run(Scenario(EQUAL_PAIR, tasks, name, carbon=carbon, driver="reference")).trace
        for wait, signal in ((0.0, carbon), (1e4, everywhere((0.0,), (300.0,)))):
            scheduler = WaitForGreen(inner, max_delay_s=wait)
            found = run(Scenario(EQUAL_PAIR, tasks, scheduler, carbon=signal, driver="reference")).trace
            assert trace_differences(expected, found) == [], inner


def test_persistence_knows_yesterday_only():
    """Two days alike but for their third hour: on the second the first one's is expected."""
    hours = [300.0] * 48
    hours[2], hours[24 + 5] = 100.0, 50.0
    carbon = everywhere(3600.0 * np.arange(48), hours)
    tasks = make_tasks([60.0, 60.0], [0.0, DAY_S])
    wait = WaitForGreen("min_min", max_delay_s=6 * 3600.0, forecast="persistence")
    assert starts(tasks, wait, carbon) == [0.0, DAY_S + 7200.0]  # of the first day nothing is known
    assert starts(tasks, WaitForGreen("min_min", max_delay_s=6 * 3600.0), carbon) == [7200.0, DAY_S + 5 * 3600.0]


def test_a_table_of_forecasts():
    """It keeps that order, whatever comes; without one it is refused."""
    told = Carbon(
        SiteSeries(("*",), (Series((0.0, 50.0), (400.0, 100.0)),)),
        np.inf,
        forecast=SiteSeries(("*",), (Series((0.0, 20.0, 30.0), (400.0, 100.0, 400.0)),)),
    )
    wait = WaitForGreen("min_min", max_delay_s=100.0, forecast="table")
    assert starts(make_tasks([10.0]), wait, told) == [20.0]
    every_minute = Carbon(told.intensity, 60.0, forecast=told.forecast)  # it begins again with the intensity
    assert starts(make_tasks([10.0], [65.0]), wait, every_minute) == [80.0]
    with pytest.raises(InputError, match="carbon_forecast"):
        starts(make_tasks([10.0]), wait, everywhere((0.0,), (1.0,)))


@settings(max_examples=30)
@given(
    flops=st.lists(st.floats(5.0, 60.0), min_size=1, max_size=8),
    submit=st.lists(st.floats(0.0, 100.0), min_size=8, max_size=8),
    values=st.lists(st.floats(1.0, 900.0), min_size=6, max_size=6),
    delay_s=st.floats(0.0, 200.0),
    site=st.sampled_from(["mean", "best"]),
)
def test_no_start_is_put_off_for_longer(flops, submit, values, delay_s, site):
    """All finish, and none that finds a free core starts later than it may."""
    series = (Series((0.0, 30.0, 70.0), tuple(values[:3])), Series((0.0, 50.0, 90.0), tuple(values[3:])))
    tasks = make_tasks(flops, sorted(submit[: len(flops)]))
    many = Platform(tuple(Host(f"{site}{k}", (STATE,)) for site in "ab" for k in range(8)))
    carbon = Carbon(SiteSeries(("a*", "b*"), series), 110.0)
    scheduler = WaitForGreen("sufferage", max_delay_s=delay_s, site=site)
    result = run(Scenario(many, tasks, scheduler, carbon=carbon, driver="reference"))
    waited = result.trace.start_time_s - tasks.submit_time_s
    assert (waited <= delay_s + 1e-9).all()
    assert result.metrics()["tasks_finished"] == len(flops)


def test_sites_by_hand():
    """Two sites of one host: 4 tasks of 10 s, which come at 100 s, take 20 s at both, 40 s at one."""
    carbon = Carbon(SiteSeries(("a", "b"), (Series.constant(100.0), Series.constant(300.0))))
    tasks = make_tasks([10.0] * 4, 100.0)
    for within, hosts in ((1.5, {"a", "b"}), (2.0, {"a"})):
        result = run(Scenario(EQUAL_PAIR, tasks, FollowSites(within), carbon=carbon, driver="reference"))
        assert set(result.tasks["host"]) == hosts
        assert result.metrics()["makespan_s"] == (40.0 if len(hosts) == 1 else 20.0)


def placed(platform, series, lengths, scheduler) -> tuple[set[str], float]:
    """Return the hosts that hold tasks, and the makespan [s], of sites with constant intensities by host."""
    carbon = Carbon(SiteSeries(tuple(series), tuple(map(Series.constant, series.values()))))
    result = run(Scenario(platform, make_tasks(lengths), scheduler, carbon=carbon, driver="reference"))
    return set(result.tasks["host"]), result.metrics()["makespan_s"]


def test_sites_join_in_order_of_their_grams():
    """Four tasks of 10 s take 20 s at the two best of three sites, as at all three."""
    three = Platform(tuple(Host(name, (STATE,)) for name in "abc"))
    series = {"a": 300.0, "b": 100.0, "c": 200.0}
    assert placed(three, series, [10.0] * 4, FollowSites(1.0)) == ({"b", "c"}, 20.0)


def test_at_a_site_the_longest_tasks_come_first():
    """20 s on one host and twice 10 s on the other."""
    assert placed(EQUAL_PAIR, {"*": 100.0}, [10.0, 10.0, 20.0], FollowSites()) == ({"a", "b"}, 20.0)


def test_a_site_has_all_cores_of_its_hosts():
    """Two tasks at once on the two cores of the better site take no longer than at both."""
    pair = Platform(tuple(Host(name, (STATE,), cores=2) for name in ("a", "b")))
    assert placed(pair, {"a": 100.0, "b": 300.0}, [10.0] * 2, FollowSites(1.0)) == ({"a"}, 10.0)


def test_the_mean_of_sites_or_the_best_of_them():
    """From 50 s on a has 100 for 400, and b 600 for 300: on average nothing changes."""
    two = SiteSeries(("a", "b"), (Series((0.0, 50.0), (400.0, 100.0)), Series((0.0, 50.0), (300.0, 600.0))))
    for site, start in (("mean", 0.0), ("best", 50.0)):
        assert starts(make_tasks([10.0]), WaitForGreen("min_min", 100.0, site=site), Carbon(two, np.inf)) == [start]


class Noting(type(make_scheduler("min_min"))):
    """Notes how many tasks are to arrive, and how many wait."""

    def schedule(self, state):
        """Decide as min-min does."""
        self.seen.append((state.now, state.tasks_to_arrive, len(state.mappable)))
        return super().schedule(state)


def test_tasks_that_are_held_back_are_to_arrive():
    """The wrapped scheduler is not to think that all is there, and switch hosts off for good."""
    inner = Noting()
    inner.seen = Noting.seen = []
    carbon = everywhere((0.0, 50.0), (400.0, 100.0))
    assert starts(make_tasks([10.0]), WaitForGreen(inner, max_delay_s=100.0), carbon) == [50.0]
    assert Noting.seen[0] == (0.0, 1, 0)
    assert (50.0, 0, 1) in Noting.seen


@pytest.mark.parametrize(
    ("scheduler", "fact"),
    [
        (WaitForGreen("mct"), "events"),
        (WaitForGreen(max_delay_s=-1.0), "max_delay_s"),
        (WaitForGreen(forecast="oracle"), "forecast"),
        (WaitForGreen(site="both"), "site"),
        (FollowSites(within=0.5), "within"),
    ],
)
def test_parameters_that_are_none(scheduler, fact):
    """Naming the parameter."""
    with pytest.raises(InputError, match=fact):
        starts(make_tasks([1.0]), scheduler, everywhere((0.0,), (1.0,)))


def test_without_an_intensity_they_are_refused():
    """They would not know what to wait for."""
    for scheduler in (WaitForGreen(), FollowSites()):
        with pytest.raises(InputError, match="--carbon"):
            starts(make_tasks([1.0]), scheduler, None)


def test_lecsa_weighs_grams():
    """Of two sites of four equal hosts it takes the greener one: of equal tasks a fifth of the values."""
    hosts = tuple(Host(f"{site}{k}", (STATE,)) for site in "ab" for k in range(2))
    carbon = Carbon(SiteSeries(("a*", "b*"), (Series.constant(300.0), Series((0.0, 50.0), (100.0, 900.0)))), np.inf)
    tasks = make_tasks([10.0] * 8, [0.0] * 4 + [60.0] * 4)
    for weigh, used in (("carbon", [{"b0", "b1"}, {"a0", "a1"}]), ("energy", [{"a0", "a1", "b0", "b1"}] * 2)):
        parameters = {"weigh": weigh, "switch_off": "none"}
        scenario = Scenario(Platform(hosts), tasks, "lecsa", parameters, carbon=carbon, driver="reference")
        host = run(scenario).tasks["host"]
        assert [set(host[:4]), set(host[4:])] == used
    with pytest.raises(InputError, match="--carbon"):
        run(Scenario(Platform(hosts), tasks, "lecsa", {"weigh": "carbon"}, driver="reference"))
