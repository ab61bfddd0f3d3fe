"""`wait_for_green` and `follow_sites`: worked examples, forecasts, and what holds of all runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import Host, Platform, PState, Scenario, make_tasks, run
from gridsched.errors import InputError
from gridsched.model.carbon import Carbon
from gridsched.model.site_series import Series, SiteSeries
from gridsched.schedulers.bag.follow_sites import FollowSites
from gridsched.schedulers.green import WaitForGreen
from gridsched.testing import trace_differences

ROOT = Path(__file__).parents[2]
STATE = PState(1.0, 1.0, 10.0, 10.0)
PAIR = Platform(tuple(Host(name, (STATE,)) for name in ("a", "b")))
DAY_S = 86_400.0


def everywhere(times, values, period_s=np.inf) -> Carbon:
    """Return one intensity [g/kWh] for all hosts."""
    return Carbon(SiteSeries(("*",), (Series(tuple(times), tuple(values)),)), period_s)


def starts(tasks, scheduler, carbon, **changes) -> list[float]:
    """Return when each task starts [s], on the reference driver."""
    scenario = Scenario(PAIR, tasks, scheduler, carbon=carbon, driver="reference", **changes)
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


def test_without_slack_nothing_changes():
    """Nor at an intensity that is always the same."""
    tasks = make_tasks([30.0, 20.0, 10.0, 50.0], [0.0, 0.0, 4.0, 9.0])
    carbon = everywhere((0.0, 40.0), (400.0, 100.0))
    for inner in ("wq", "sufferage", "lecsa", "wqr(max_replicas=2)"):
        name = inner.partition("(")[0]
        expected = run(Scenario(PAIR, tasks, name, carbon=carbon, driver="reference")).trace
        for wait, signal in ((0.0, carbon), (1e4, everywhere((0.0,), (300.0,)))):
            scheduler = WaitForGreen(inner, max_delay_s=wait)
            found = run(Scenario(PAIR, tasks, scheduler, carbon=signal, driver="reference")).trace
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
    """It goes by that, whatever comes; without one it is refused."""
    told = Carbon(
        SiteSeries(("*",), (Series((0.0, 50.0), (400.0, 100.0)),)),
        np.inf,
        forecast=SiteSeries(("*",), (Series((0.0, 20.0, 30.0), (400.0, 100.0, 400.0)),)),
    )
    wait = WaitForGreen("min_min", max_delay_s=100.0, forecast="table")
    assert starts(make_tasks([10.0]), wait, told) == [20.0]
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
    """Two sites of one host: 4 tasks of 10 s take 20 s at both, 40 s at one."""
    carbon = Carbon(SiteSeries(("a", "b"), (Series.constant(100.0), Series.constant(300.0))))
    tasks = make_tasks([10.0] * 4)
    for within, hosts in ((1.5, {"a", "b"}), (2.0, {"a"})):
        result = run(Scenario(PAIR, tasks, FollowSites(within), carbon=carbon, driver="reference"))
        assert set(result.tasks["host"]) == hosts
        assert result.metrics()["makespan_s"] == (40.0 if len(hosts) == 1 else 20.0)


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
