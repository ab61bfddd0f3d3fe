"""The least grams of a bag: by hand, against HiGHS, and against every registered scheduler."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from test_bag_bounds import BAG_SCHEDULERS, SLACK, bags, platforms

from gridsched.errors import InputError
from gridsched.model.carbon import Carbon, carbon_signal
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.series import Series, SiteSeries
from gridsched.model.signals import J_PER_KWH
from gridsched.model.tasks import make_tasks
from gridsched.optimize.bag_bounds import bag_bounds, host_power_curve
from gridsched.optimize.carbon_bound import CarbonBound, carbon_answer
from gridsched.policy.registry import make_scheduler
from gridsched.runs.run import run
from gridsched.scenario import Scenario

#: Grams a kWh, so that a joule is a whole number of grams.
PER_J = J_PER_KWH


def signal_of(platform: Platform, *series: tuple[tuple[float, ...], tuple[float, ...]], period_s=None):
    """Return an intensity [g/J] by host name pattern ``h0``, ``h1``, ...; the last is for all others."""
    names = [*(f"h{k}" for k in range(len(series) - 1)), "*"]
    patterns = tuple(reversed(names))
    rows = tuple(Series(times, tuple(PER_J * v for v in values)) for times, values in reversed(series))
    return carbon_signal(Carbon(SiteSeries(patterns, rows), period_s), platform)


def host(name: str, *, idle=0.0, off=0.0, cores=1, speed=10.0, busy=100.0) -> Host:
    return Host(name, (PState(speed, idle, busy, busy),), cores=cores, off_w=off)


# ---------------------------------------------------------------------- by hand


def test_work_goes_to_the_clean_hour_and_site():
    """Two hosts, 10 J a flop; h0 emits 3 then 1 g/J, h1 always 2: 150 flop in 20 s."""
    platform = Platform((host("h0"), host("h1")))
    signal = signal_of(platform, ((0.0, 10.0), (3.0, 1.0)), ((0.0,), (2.0,)), period_s=1e9)
    bound = CarbonBound(platform, make_tasks([150.0]), signal, may_switch_off=True)
    # in 20 s: 100 flop on h0 in its second half (1 g/J), 50 on h1 (2 g/J)
    assert bound.makespan_s == 15
    assert bound.least_g(20) == pytest.approx(100 * 10 * 1 + 50 * 10 * 2)
    # in 15 s: 50 flop on h0 at 1 g/J, 100 on h1
    assert bound.least_g(15) == pytest.approx(50 * 10 + 100 * 10 * 2)
    assert bound.least_g(15 - 1e-9) == bound.least_g(15)  # a makespan that rounding has made too short
    work = {(each.begin_s, each.site): each.flops for each in bound.shares(20)}
    assert work[10.0, 0] == pytest.approx(100)
    assert work[0.0, 0] == 0
    assert work[0.0, 1] + work[10.0, 1] == pytest.approx(50)
    assert sum(each.carbon_g for each in bound.shares(20)) == pytest.approx(bound.least_g(20))


def test_idle_power_ends_a_run_before_it_may():
    """With 40 W idle waiting for 2 g/J in place of 3 costs more than it saves; at 4 W it does not."""
    tasks = make_tasks([50.0])
    for idle, best in ((40.0, 5 * 100 * 3.0), (4.0, 10 * 4 * 3.0 + 5 * 100 * 2.0)):
        platform = Platform((host("h0", idle=idle),))
        signal = signal_of(platform, ((0.0, 10.0), (3.0, 2.0)), period_s=1e9)
        bound = CarbonBound(platform, tasks, signal)
        assert bound.least_g(15) == pytest.approx(best)
        assert bound.least_g(5) == pytest.approx(1500)


def test_nothing_runs_before_the_first_submission():
    """The clean first hour is over when the task comes; the host idles in it."""
    platform = Platform((host("h0", idle=1.0),))
    signal = signal_of(platform, ((0.0, 10.0), (1.0, 5.0)), period_s=1e9)
    bound = CarbonBound(platform, make_tasks([50.0], [10.0]), signal)
    assert bound.least_g(100) == pytest.approx(10 * 1 * 1.0 + 5 * 100 * 5.0)


#: Idle it draws 5 W in its first P-state, and 1 W in the other, in which it is half as fast.
TWO_PSTATES = Host("h0", (PState(10.0, 5.0, 100.0, 100.0), PState(5.0, 1.0, 60.0, 60.0)))


def test_before_the_first_submission_a_host_rests_in_its_first_pstate():
    """5 W for 10 s at 1 g/J; then 99 W above the least idle power, and that, for 5 s at 5 g/J."""
    signal = signal_of(Platform((TWO_PSTATES,)), ((0.0, 10.0), (1.0, 5.0)), period_s=1e9)
    bound = CarbonBound(Platform((TWO_PSTATES,)), make_tasks([50.0], [10.0]), signal, free_pstates=True)
    assert bound.least_g(5) == pytest.approx(10 * 5 + 5 * 100 * 5)
    assert [each.carbon_g for each in bound.shares(5)] == pytest.approx([10 * 5, 5 * 100 * 5])


def test_an_answer_counts_from_the_first_submission():
    """50 flop that come at 5 s take 5 s, or 10 s in the P-state 1; the intensity covers 20 s."""
    platform = Platform((TWO_PSTATES,))
    signal = signal_of(platform, ((0.0, 10.0), (3.0, 2.0)))
    answer = carbon_answer(platform, make_tasks([50.0], [5.0]), signal, 1)
    assert answer.within_s == [5.0 * k for k in (1, 1.25, 1.5, 2, 3)]
    assert [row["above_least"] for row in answer.rows()] == pytest.approx([0, 0.25, 0.5, 1, 2])
    with pytest.raises(InputError, match="21 s"):
        carbon_answer(platform, make_tasks([50.0], [5.0]), signal, 1, within_s=[16.0])


@settings(max_examples=60, deadline=None)
@given(platforms(), bags(), st.booleans(), st.booleans(), st.sampled_from([1.0, 1.5, 6.0]))
def test_one_intensity_is_the_bound_of_energy(platform, tasks, may_switch_off, free_pstates, longer):
    """Grams are joules times one number: idle P-states, hosts off and the time before the first task alike."""
    limits = {"may_switch_off": may_switch_off, "free_pstates": free_pstates}
    energy = bag_bounds(platform, tasks, **limits)
    bound = CarbonBound(platform, tasks, signal_of(platform, ((0.0,), (0.25,))), **limits)
    within = longer * energy.makespan_s
    assert bound.least_g(within) == pytest.approx(energy.least_energy_j(within) / 4, rel=1e-9, abs=1e-9)


def test_makespans_that_cannot_be_are_refused():
    """Below the least makespan, beyond what the intensity covers, without power."""
    platform = Platform((host("h0"),))
    signal = signal_of(platform, ((0.0, 10.0), (1.0, 5.0)))
    tasks = make_tasks([50.0])
    with pytest.raises(InputError, match="5 s"):
        carbon_answer(platform, tasks, signal, within_s=[4.0])
    with pytest.raises(InputError, match="20 s"):
        carbon_answer(platform, tasks, signal, within_s=[21.0])
    assert carbon_answer(platform, tasks, signal).within_s == [5.0 * k for k in (1, 1.25, 1.5, 2, 3, 4)]
    with pytest.raises(InputError, match="power"):
        carbon_answer(Platform((Host("h0", (PState(10.0),), has_energy=False),)), tasks, signal)


def test_two_sites_and_three_hours():
    """The documents' example: six hours of work at B in the first hour, at A in the second and third."""
    platform = Platform(tuple(host(name, idle=4.0, speed=100.0, busy=50.0) for name in ("a1", "a2", "b1", "b2")))
    hours = (0.0, 3600.0, 7200.0)
    series = (Series(hours, (400.0, 200.0, 100.0)), Series(hours, (100.0, 300.0, 500.0)))
    signal = carbon_signal(Carbon(SiteSeries(("a*", "b*"), series)), platform)
    tasks = make_tasks([360_000.0] * 6)
    fixed, switched = (CarbonBound(platform, tasks, signal, may_switch_off=off) for off in (False, True))
    busy = 2 * 0.05 * (100 + 200 + 100)
    assert switched.least_g(10_800.0) == pytest.approx(busy) == 40
    assert fixed.least_g(10_800.0) == pytest.approx(busy + 2 * 0.004 * (400 + 300 + 500)) == 49.6
    # two hours: B's first, both in the second but for A's first, in which A is idle
    assert fixed.least_g(7200.0) == pytest.approx(0.1 * (100 + 200 + 300) + 0.008 * 400)
    assert fixed.least_g(5400.0) == pytest.approx(0.1 * (400 + 100) + 0.05 * (200 + 300))
    work = [(each.begin_s, each.site) for each in fixed.shares(10_800.0) if each.flops > 0]
    assert work == [(0.0, 1), (3600.0, 0), (7200.0, 0)]


# ---------------------------------------------------------------------- properties

intensity = st.sampled_from([0.0, 0.5, 1.0, 2.0, 7.0])


@st.composite
def intensities(draw):
    """Two sites that change at most twice, in whole seconds."""
    series = []
    for _ in range(2):
        times = (0.0, *sorted(draw(st.sets(st.sampled_from([1.0, 3.0, 10.0, 25.0]), max_size=2))))
        series.append((times, tuple(draw(intensity) for _ in times)))
    return series


def least_by_highs(platform, tasks, signal, longest, *, may_switch_off):
    """Least grams over all ends, each stretch that the end may lie in solved by HiGHS."""
    first = tasks.submit_time_s[0]
    bound = CarbonBound(platform, tasks, signal, may_switch_off=may_switch_off)
    sites = signal.sites or (signal,)
    soonest, latest = first + bound.makespan_s, first + max(longest, bound.makespan_s)
    edges = np.unique(np.concatenate([each.stretches(0.0, latest)[0] for each in sites]))
    cuts = [soonest, *(e for e in edges if soonest < e < latest), latest]
    best = np.inf
    for low, high in pairwise(cuts) if latest > soonest else [(latest, latest)]:
        # variables: flops of each host, stretch and segment; then the end
        cost, caps, base = [], [], 0.0
        stretches = [(b, min(e, latest)) for b, e in pairwise([*edges[edges < latest], latest])]
        end_cost = 0.0
        for b, e in stretches:
            if b >= high and b > 0:
                continue
            is_last = b <= low and (e >= high or e > low)
            for h, each in enumerate(platform.hosts):
                weight = float(signal.at_host(h).at(b))
                corners = host_power_curve(each.cores, (each.pstates[0],), each.off_w if may_switch_off else None)
                if is_last:
                    end_cost += corners[0][1] * weight
                    base -= corners[0][1] * weight * b
                else:
                    base += corners[0][1] * weight * (e - b)
                for (rate, watts), (more, more_watts) in pairwise(corners):
                    cost.append(weight * (more_watts - watts) / (more - rate))
                    start = max(b, first)
                    # y <= width * (end - start), with the end fixed where the stretch is over before
                    caps.append((more - rate, start, None if is_last else max(e, start)))
        n = len(cost)
        rows, limits = [], []
        for k, (width, start, end) in enumerate(caps):
            row = np.zeros(n + 1)
            row[k] = 1.0
            if end is None:
                row[-1] = -width
                limits.append(-width * start)
            else:
                limits.append(width * (end - start))
            rows.append(row)
        whole = np.array([[*np.ones(n), 0.0]])
        result = linprog(
            [*cost, end_cost], np.array(rows), limits, whole, [tasks.flops.sum()], [(0, None)] * n + [(low, high)]
        )
        if result.status == 0:
            best = min(best, result.fun + base)
    # until the first task comes a host can do nothing, even where it draws less when busy
    for h, each in enumerate(platform.hosts):
        idle_w = each.pstates[0].idle_w
        rest_w = min(idle_w, each.off_w) if may_switch_off else idle_w
        least_w = host_power_curve(each.cores, (each.pstates[0],), each.off_w if may_switch_off else None)[0][1]
        best += (rest_w - least_w) * first * float(signal.at_host(h).mean(0.0, first))
    return best


@settings(max_examples=60, deadline=None)
@given(platforms(most_hosts=3), bags(), intensities(), st.sampled_from([1.0, 1.3, 4.0]), st.booleans())
def test_sorting_equals_the_linear_programme(platform, tasks, series, longer, may_switch_off):
    """The optimum over flops and end that HiGHS finds, stretch by stretch of the end."""
    signal = signal_of(platform, *series, period_s=1e6)
    bound = CarbonBound(platform, tasks, signal, may_switch_off=may_switch_off)
    longest = longer * bound.makespan_s
    optimum = least_by_highs(platform, tasks, signal, longest, may_switch_off=may_switch_off)
    assert bound.least_g(longest) == pytest.approx(optimum, rel=1e-6, abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(platforms(), bags(), intensities(), st.sampled_from(BAG_SCHEDULERS), st.integers(0, 1))
def test_no_scheduler_emits_less(platform, tasks, series, scheduler, pstate):
    """Every registered scheduler, on hosts of several cores and P-states, with late tasks."""
    names = [*(f"h{k}" for k in range(len(series) - 1)), "*"]
    rows = tuple(Series(times, values) for times, values in reversed(series))
    carbon = Carbon(SiteSeries(tuple(reversed(names)), rows), 1e6)
    scenario = Scenario(platform, tasks, scheduler, driver="reference", pstate=pstate, carbon=carbon)
    try:
        row = run(scenario).summary()
    except InputError:  # LECSA refuses hosts without power figures
        assert not platform.busy_w[:, pstate].all()
        return
    traits = make_scheduler(scheduler).traits
    limits = {"may_switch_off": traits.powers_hosts, "free_pstates": traits.uses_dvfs}
    bound = CarbonBound(platform, tasks, carbon_signal(carbon, platform), pstate, **limits)
    assert row["carbon_g"] >= bound.least_g(row["makespan_s"]) * (1 - SLACK)


def test_a_host_that_stays_off_emits_what_it_draws():
    """100 W for 5 s, and 3 W of the host that is off, at 2 g/J."""
    platform = Platform((host("h0"), host("h1", off=3.0)))
    signal = signal_of(platform, ((0.0,), (2.0,)), ((0.0,), (2.0,)))
    bound = CarbonBound(platform, make_tasks([50.0]), signal, hosts_off=(1,))
    assert bound.least_g(5) == pytest.approx(2 * (500 + 15))


def test_divisible_tasks_end_within_a_second():
    """b1 and b2, which emit nothing, halve three seconds of work: a1 idles at 1 W and 0.5 for 1.5 s."""
    platform = Platform(tuple(host(name, idle=1.0, speed=1.0, busy=10.0) for name in ("a1", "b1", "b2")))
    series = Series((0.0,), (PER_J * 0.5,)), Series((0.0,), (0.0,))
    bound = CarbonBound(
        platform, make_tasks([1.0] * 3), carbon_signal(Carbon(SiteSeries(("a*", "b*"), series)), platform)
    )
    assert bound.least_g(4.0) == pytest.approx(0.75, rel=1e-12)
    # in 1.2 s they do 2.4 of 3: a1 computes for 0.6 s, and idles for as long
    assert bound.least_g(1.2) == pytest.approx(0.5 * (0.6 * 10.0 + 0.6), rel=1e-12)


@settings(max_examples=80, deadline=None)
@given(
    n_tasks=st.integers(1, 4),
    hosts=st.sampled_from([("a1",), ("a1", "b1"), ("a1", "b1", "b2")]),
    values=st.tuples(*[st.lists(intensity, min_size=4, max_size=4)] * 2),
)
def test_no_schedule_of_a_tiny_bag_emits_less(n_tasks, hosts, values):
    """All places of tasks of a second that start at whole seconds: the least; equal on one host.

    By counting alone: 10 W while a host computes, 1 W while it does not, to the end of the last task.
    Divisible tasks of several hosts may end within a second, and idle hosts emit less so.
    """
    platform = Platform(tuple(host(name, idle=1.0, speed=1.0, busy=10.0) for name in hosts))
    weights = dict(zip("ab", values, strict=True))
    least = np.inf
    for chosen in combinations(product(range(4), hosts), n_tasks):
        end = 1 + max(second for second, _ in chosen)
        places = product(range(end), hosts)
        consumed = (weights[at[0]][second] * (10.0 if (second, at) in chosen else 1.0) for second, at in places)
        least = min(least, sum(consumed))
    times = tuple(float(second) for second in range(4))
    series = tuple(Series(times, tuple(PER_J * v for v in each)) for each in values)
    signal = carbon_signal(Carbon(SiteSeries(("a*", "b*"), series)), platform)
    found = CarbonBound(platform, make_tasks([1.0] * n_tasks), signal).least_g(4.0)
    assert found <= least * (1 + SLACK)
    if len(hosts) == 1:
        assert found == pytest.approx(least, rel=1e-9, abs=1e-12)
