"""Bounds by hand, against HiGHS, and against every registered scheduler."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_cases import ex_a_platform, ex_a_tasks, platform_of, system_of
from scipy.optimize import linprog

from gridsched.drivers.reference import simulate
from gridsched.energy import trace_energy
from gridsched.engine import Controller
from gridsched.errors import InputError
from gridsched.metrics.derived_entries import share_above
from gridsched.metrics.run_metrics import makespan_s
from gridsched.model.carbon import Carbon, carbon_signal
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.seeds import random_stream
from gridsched.model.series import Series, SiteSeries
from gridsched.model.system import System
from gridsched.model.tasks import make_tasks
from gridsched.optimize.bag_bounds import bag_bounds, host_power_curve
from gridsched.policy.registry import entries, make_scheduler
from gridsched.power import host_power
from gridsched.testing.playing import CARBON

BAG_SCHEDULERS = [entry.id for entry in entries() if "bag" in entry.accepts]
SLACK = 1e-9


def run_alone(scheduler, platform, tasks, pstate=0, carbon=CARBON):
    """Makespan [s] and model energy [J] of a run on the reference driver; only few follow the intensity."""
    carbon = carbon_signal(carbon, platform)
    system = System(platform, system_of(platform, tasks).estimates, pstates=pstate, carbon=carbon)
    rng = random_stream(0, "scheduler")
    trace = simulate(Controller(system, tasks, make_scheduler(scheduler), rng=rng))
    return makespan_s(trace), trace_energy(trace).grid_total()


# ---------------------------------------------------------------------- by hand


def test_ex_a_with_idle():
    """EX-A: 5250 flop at 175 flop/s take 30 s; least energy keeps h3 and h2 busy for 70 s."""
    bounds = bag_bounds(ex_a_platform(), ex_a_tasks())
    assert bounds.makespan_s == pytest.approx(30)  # dynamic FPLTF reaches it
    # above idle: h3 1/25, h2 16/50, h1 46/100 J per flop; 12 W idle; h3 and h2 give 75 flop/s
    assert bounds.energy_j == pytest.approx(70 * (5 + 20 + 4))
    assert bounds.counts_idle
    assert "idle power of every host to the end counted" in bounds.describe()


def test_ex_a_without_idle():
    """EX-A with hosts that may be off: all work on h3, 5 W at 25 flop/s."""
    bounds = bag_bounds(ex_a_platform(), ex_a_tasks(), may_switch_off=True)
    assert (bounds.makespan_s, bounds.energy_j) == (pytest.approx(30), pytest.approx(5250 / 5))
    assert not bounds.counts_idle
    assert "hosts may be off at any time" in bounds.describe()


def test_least_energy_within_a_makespan():
    """EX-A in 40 s: 131.25 flop/s, h3 and h2 busy (29 W) and 56.25 flop/s of h1 at 0.46 J each."""
    bounds = bag_bounds(ex_a_platform(), ex_a_tasks())
    assert bounds.least_energy_j(40) == pytest.approx(40 * (29 + 56.25 * 0.46))
    assert bounds.least_energy_j(30) == pytest.approx(30 * 75)
    assert bounds.least_energy_j(30 * (1 - 1e-13)) == bounds.least_energy_j(30)
    assert bounds.least_energy_j(70) == bounds.least_energy_j(1000) == bounds.energy_j
    free = bag_bounds(ex_a_platform(), ex_a_tasks(), may_switch_off=True)
    assert free.least_energy_j(40) == pytest.approx(25 * 40 / 5 + 50 * 40 / 2.5 + 2250 / 2)
    late = bag_bounds(ex_a_platform(), make_tasks(ex_a_tasks().flops, 5.0))
    assert late.least_energy_j(40) == pytest.approx(bounds.least_energy_j(40) + 5 * 12)


def test_idle_power_makes_a_short_run_cheaper():
    """With 100 W idle each, all three hosts of EX-A work to the least makespan."""
    hosts = tuple(
        Host(h.name, (PState(h.pstates[0].speed, 100.0, 100.0 + extra, 100.0 + extra),))
        for h, extra in zip(ex_a_platform().hosts, (46.0, 16.0, 1.0), strict=True)
    )
    bounds = bag_bounds(Platform(hosts), ex_a_tasks())
    assert bounds.energy_j == pytest.approx(30 * (300 + 46 + 16 + 1))


@pytest.mark.parametrize("cores", [1, 2, 4])
@pytest.mark.parametrize("scheduler", ["wq", "lecsa", "min_min"])
def test_equal_tasks_on_one_host_reach_both_bounds(scheduler, cores):
    """Full rounds of equal tasks on one host leave no gap: the bounds are tight."""
    host = Host("h", (PState(10.0, 5.0, 20.0, 60.0),), cores=cores)
    tasks = make_tasks([100.0] * 8)
    bounds = bag_bounds(Platform((host,)), tasks)
    assert run_alone(scheduler, Platform((host,)), tasks) == (
        pytest.approx(bounds.makespan_s),
        pytest.approx(bounds.energy_j),
    )
    assert bounds.energy_j == pytest.approx(60 * 80 / cores)


def test_largest_tasks_need_the_fastest_cores():
    """Two tasks use two cores at a time: 200 flop at 10 + 1 flop/s, not at 13."""
    platform = platform_of([10, 1, 1, 1], [1.0] * 4)
    assert bag_bounds(platform, make_tasks([100, 100])).makespan_s == pytest.approx(200 / 11)
    assert bag_bounds(platform, make_tasks([100])).makespan_s == pytest.approx(10)
    assert bag_bounds(platform, make_tasks([100, 1, 1, 1])).makespan_s == pytest.approx(10)


def test_submission_times_count_from_the_first():
    """A task that comes 50 s after the first ends at least its run time later."""
    platform = platform_of([10, 5], [1.0, 1.0])
    tasks = make_tasks([100, 300], [20, 70])
    assert bag_bounds(platform, tasks).makespan_s == pytest.approx(50 + 30)
    many = make_tasks([10] + [15] * 20, [20] + [70] * 20)
    assert bag_bounds(platform, many).makespan_s == pytest.approx(50 + 300 / 15)


def test_hosts_wait_for_the_first_submission():
    """Idle power before the first submission is a part of the bound, and off power without idle."""
    host = Host("h", (PState(10.0, 4.0, 50.0, 50.0),), off_w=1.0)
    tasks = make_tasks([100], [10])
    assert bag_bounds(Platform((host,)), tasks).energy_j == pytest.approx(10 * 4 + 10 * 50)
    assert run_alone("wq", Platform((host,)), tasks)[1] == pytest.approx(540)
    free = bag_bounds(Platform((host,)), tasks, may_switch_off=True)
    assert free.energy_j == pytest.approx(10 * 1 + 10 * 50)


def test_epsilon_above_idle_does_not_enter():
    """The offset of epsilon makes partial load dearer: the bound is a straight line."""
    states = (PState(10.0, 10.0, 40.0, 60.0),)
    assert host_power_curve(2, states, None) == [(0.0, 10.0), (20.0, 60.0)]
    platform = Platform((Host("h", states, cores=2),))
    assert bag_bounds(platform, make_tasks([100, 100])).energy_j == pytest.approx(600)
    assert bag_bounds(platform, make_tasks([100])).energy_j == pytest.approx(10 * 10 + 100 * 2.5)
    assert run_alone("wq", platform, make_tasks([100]))[1] == pytest.approx(10 * 50)


def test_epsilon_below_idle_bends_the_curve():
    """SimGrid's own four-core host has epsilon 93.3 W below its idle 100 W: one core, 120 W."""
    states = (PState(1.0, 100.0, 280 / 3, 200.0),)
    corners = host_power_curve(4, states, None)
    assert [rate for rate, _ in corners] == [0.0, 1.0, 4.0]
    assert [watts for _, watts in corners] == pytest.approx([100.0, 120.0, 200.0])


def test_a_host_that_draws_less_when_busy():
    """Useless work may lower the power, so the curve starts at the least power."""
    assert host_power_curve(1, (PState(10.0, 50.0, 30.0, 30.0),), None) == [(0.0, 30.0), (10.0, 30.0)]


def test_free_pstates_choose_the_cheaper_one():
    """A slow P-state with fewer joules a flop counts where a scheduler may choose it."""
    host = Host("h", (PState(10.0, 0.0, 100.0, 100.0), PState(5.0, 0.0, 20.0, 20.0)))
    tasks = make_tasks([100])
    fixed, slow = (bag_bounds(Platform((host,)), tasks, pstate) for pstate in (0, 1))
    free = bag_bounds(Platform((host,)), tasks, free_pstates=True)
    assert (fixed.makespan_s, fixed.energy_j) == (10, 1000)
    assert (slow.makespan_s, slow.energy_j) == (20, 400)
    assert (free.makespan_s, free.energy_j) == (10, 400)
    assert "any P-state" in free.describe()


def test_hosts_that_stay_off():
    """A host that is off to the end adds its off power and no speed."""
    hosts = tuple(Host(n, (PState(10.0, 4.0, 50.0, 50.0),), off_w=2.0) for n in "ab")
    bounds = bag_bounds(Platform(hosts), make_tasks([100]), hosts_off=(1,))
    assert (bounds.makespan_s, bounds.energy_j) == (10, pytest.approx(10 * 52))
    with pytest.raises(InputError, match="host"):
        bag_bounds(Platform(hosts), make_tasks([100]), hosts_off=(0, 1))


def test_no_tasks_and_no_such_pstate():
    """Nothing to do costs nothing; a P-state that a host lacks is refused."""
    empty = bag_bounds(ex_a_platform(), make_tasks([]))
    assert (empty.makespan_s, empty.energy_j) == (0, 0)
    with pytest.raises(InputError, match="P-state 1"):
        bag_bounds(ex_a_platform(), ex_a_tasks(), 1)


def test_share_above():
    """Distances are relative to the bound, and unknown where it is 0."""
    assert share_above(2250, 2030) == pytest.approx(220 / 2030)
    assert np.isnan(share_above(1, 0))


# ---------------------------------------------------------------------- properties

watt = st.sampled_from([0.0, 1.0, 4.0, 10.0, 33.3, 95.0, 120.0])


@st.composite
def platforms(draw, most_hosts=5):
    """Hosts of several cores and two P-states; any order of idle, epsilon and busy power."""
    hosts = []
    for k in range(draw(st.integers(1, most_hosts))):
        speeds = [draw(st.sampled_from([1.0, 3.0, 10.0, 17.0])) for _ in range(2)]
        states = tuple(PState(s, draw(watt), draw(watt), draw(watt)) for s in speeds)
        cores = draw(st.sampled_from([1, 1, 2, 5]))
        hosts.append(Host(f"h{k}", states, cores=cores, off_w=draw(watt)))
    return Platform(tuple(hosts))


@st.composite
def bags(draw):
    """Tasks with ties in size and submission."""
    size = st.one_of(st.sampled_from([1.0, 10.0, 100.0]), st.floats(0.5, 500.0))
    flops = draw(st.lists(size, min_size=1, max_size=14))
    times = [draw(st.sampled_from([0.0, 0.0, 5.0, 5.5, 40.0])) for _ in flops]
    return make_tasks(flops, times)


@settings(max_examples=150, deadline=None)
@given(platforms(), st.integers(0, 1), st.sampled_from([None, 0.0, 3.0]))
def test_no_load_is_below_the_power_curve(platform, pstate, off_w):
    """The curve is convex, rises, and lies below the power at every number of busy cores."""
    for host in platform.hosts:
        state = host.pstates[pstate]
        rates, watts = np.array(host_power_curve(host.cores, (state,), off_w)).T
        busy = np.arange(host.cores + 1)
        power = host_power(busy, host.cores, state.idle_w, state.epsilon_w, state.busy_w)
        least = np.interp(busy * state.speed, rates, watts)
        assert (least <= power * (1 + 1e-12)).all()
        slopes = np.diff(watts) / np.diff(rates)
        assert (slopes >= 0).all()
        assert (np.diff(slopes) >= -1e-12 * slopes[1:]).all()


def solve_with_highs(platform, tasks, pstate, least_makespan, most_makespan=None, *, may_switch_off):
    """Least energy from the whole program: flops of each task on each host, times, makespan."""
    n, hosts = len(tasks), platform.hosts
    modes = []  # (host, useful flop/s, watts)
    for h, host in enumerate(hosts):
        state = host.pstates[pstate]
        power = host_power(np.arange(host.cores + 1), host.cores, state.idle_w, state.epsilon_w, state.busy_w)
        modes += [(h, b * state.speed, float(p)) for b, p in enumerate(power)]
        modes += [(h, 0.0, host.off_w)] * may_switch_off
    share, n_modes = n * len(hosts), len(modes)
    width = share + n_modes + 1  # then the time in each mode, then the makespan
    equal, values = [], []
    for i in range(n):
        row = np.zeros(width)
        row[i * len(hosts) : (i + 1) * len(hosts)] = 1
        equal.append(row)
        values.append(tasks.flops[i])
    capacity = np.zeros((len(hosts), width))
    for h in range(len(hosts)):
        row = np.zeros(width)
        capacity[h, h : share : len(hosts)] = 1
        for m, (host, rate, _) in enumerate(modes):
            if host == h:
                row[share + m] = 1
                capacity[h, share + m] = -rate
        row[-1] = -1
        equal.append(row)
        values.append(0.0)
    cost = np.zeros(width)
    cost[share:-1] = [watts for _, _, watts in modes]
    limits = [(0, None)] * (width - 1) + [(least_makespan, most_makespan)]
    result = linprog(cost, capacity, np.zeros(len(hosts)), np.array(equal), values, limits, method="highs")
    assert result.status == 0
    return result.fun


@settings(max_examples=40, deadline=None)
@given(platforms(most_hosts=3), bags(), st.integers(0, 1), st.booleans(), st.sampled_from([None, 1.0, 1.1, 3.0]))
def test_sorting_equals_the_linear_programme(platform, tasks, pstate, may_switch_off, longer):
    """The bound is the optimum of the program over tasks x hosts that HiGHS solves.

    So is the least energy within a makespan, some times longer than the least.
    """
    tasks = make_tasks(tasks.flops)
    bounds = bag_bounds(platform, tasks, pstate, may_switch_off=may_switch_off)
    most = None if longer is None else longer * bounds.makespan_s
    optimum = solve_with_highs(platform, tasks, pstate, bounds.makespan_s, most, may_switch_off=may_switch_off)
    found = bounds.energy_j if most is None else bounds.least_energy_j(most)
    assert found == pytest.approx(optimum, rel=1e-6, abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(platforms(), bags(), st.sampled_from(BAG_SCHEDULERS), st.integers(0, 1))
def test_no_scheduler_is_below_a_bound(platform, tasks, scheduler, pstate):
    """Every registered scheduler, on hosts of several cores and P-states, with late tasks."""
    traits = make_scheduler(scheduler).traits
    try:
        makespan, energy = run_alone(scheduler, platform, tasks, pstate)
    except InputError:  # LECSA refuses hosts without power figures
        assert not platform.busy_w[:, pstate].all()
        return
    bounds = bag_bounds(platform, tasks, pstate, may_switch_off=traits.powers_hosts, free_pstates=traits.uses_dvfs)
    assert makespan >= bounds.makespan_s * (1 - SLACK)
    assert energy >= bounds.least_energy_j(makespan) * (1 - SLACK)


@pytest.mark.parametrize("scheduler", BAG_SCHEDULERS)
def test_every_scheduler_on_a_realistic_bag(scheduler):
    """On 12 hosts and 60 tasks no scheduler is below a bound, and none is absurdly far above."""
    rng = np.random.default_rng(7)
    platform = platform_of(rng.uniform(5, 15, 12), rng.uniform(0.02, 0.1, 12))
    tasks = make_tasks(rng.uniform(50, 150, 60))
    constant = Carbon(SiteSeries(("*",), (Series.constant(400.0),)))  # nothing to wait for
    makespan, energy = run_alone(scheduler, platform, tasks, carbon=constant)
    off = make_scheduler(scheduler).traits.powers_hosts
    bounds = bag_bounds(platform, tasks, may_switch_off=off)
    assert 0 <= share_above(makespan, bounds.makespan_s) < 3
    assert 0 <= share_above(energy, bounds.energy_j) < 5


@settings(max_examples=30, deadline=None)
@given(platforms(), bags(), st.randoms(use_true_random=False))
def test_host_order_is_irrelevant(platform, tasks, random):
    """Grouping equal hosts does not depend on their places."""
    hosts = list(platform.hosts)
    random.shuffle(hosts)
    one, other = bag_bounds(platform, tasks), bag_bounds(Platform(tuple(hosts)), tasks)
    assert one.makespan_s == pytest.approx(other.makespan_s, rel=1e-12)
    assert one.energy_j == pytest.approx(other.energy_j, rel=1e-12)
