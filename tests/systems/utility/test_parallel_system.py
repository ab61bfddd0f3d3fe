"""The generator of clusters and parallel tasks of paper 001 (algorithms C1, C2)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pydantic import ValidationError

from gridsched.errors import InputError
from gridsched.systems.utility.arrivals import busy_hours_profile, profile_arrivals
from gridsched.systems.utility.parallel_day import ParallelDay
from gridsched.systems.utility.parallel_system import draw_system, make_clusters
from gridsched.systems.utility.parallel_tasks import generate_parallel_day
from gridsched.systems.utility.sampled_utility import draw_priorities
from gridsched.workloads.generators import checked_parameters
from gridsched.workloads.speedup import downey_speedup, downey_time

HOUR_S, DAY_S = 3600.0, 86_400.0
#: Two general clusters and a special one, a few task types.
SMALL = {
    "general_clusters": [(6, 4), (4, 8)],
    "special_clusters": [(5, 6)],
    "general_task_types": 4,
    "special_task_types": [2],
    "core_bands": [(50, 1, 4), (50, 5, 0)],
    "tasks_per_day": 300,
}


def within_sigmas(values, mean: float, deviation: float, sigmas: float = 5.0) -> bool:
    """Whether the mean of independent values lies near the expected one."""
    values = np.asarray(values)
    return abs(values.mean() - mean) <= sigmas * deviation / math.sqrt(values.size)


def test_downeys_model_by_hand():
    """C2's numbers: A = 4, sigma = 5."""
    assert downey_time([1, 4, 19, 30], 4, 5).tolist() == [24, 9.75, 6, 6]
    assert downey_speedup(4, 4, 5) == pytest.approx(2.4615, abs=5e-5)
    assert downey_speedup(19, 4, 5) == 4
    assert 3600 * downey_time(4, 4, 5) / downey_time(1, 4, 5) == pytest.approx(1462.5)
    # the closed form of the speed-up: n A (sigma + 1) / (sigma (n + A - 1) + A)
    n, a, sigma = 7, 4, 5
    closed = n * a * (sigma + 1) / (sigma * (n + a - 1) + a)
    assert downey_speedup(n, a, sigma) == pytest.approx(closed, rel=1e-14)
    assert downey_speedup(100, 1, 6) == 1  # what is not parallel gains nothing


def test_the_papers_clusters():
    """C1: 1,975 nodes, 100,000 cores; general clusters of 16,000, special ones of 18,000."""
    clusters = make_clusters(ParallelDay())
    assert clusters.names == ("GP1", "GP2", "GP3", "GP4", "SP1", "SP2")
    assert clusters.nodes.sum() == 1975
    assert clusters.cores.tolist() == [16_000] * 4 + [18_000] * 2
    assert clusters.nodes_for(np.array([257]))[0, 0] == 5  # of 64 cores: 320 are allocated


@pytest.mark.parametrize(
    ("total", "nodes"), [(None, [6, 4, 5]), (47, [3, 2, 2]), (94, [6, 4, 5]), (1, [1, 1, 1]), (188, [12, 8, 10])]
)
def test_nodes_scale_with_the_cores_in_all(total, nodes):
    """24 + 40 + 30 = 94 cores; rounded down, at least one node, exact where it is a multiple."""
    spec = ParallelDay(**{**SMALL, "general_clusters": [(6, 4), (4, 10)]}, total_cores=total)
    assert make_clusters(spec).nodes.tolist() == nodes


def test_a_day_of_the_paper():
    """Types, bands, P-states, rules and the window; what runs where."""
    spec = ParallelDay(seed=3, energy_budget_j=12e9)
    whole = generate_parallel_day(spec)
    estimates, cores = whole.estimates, draw_system(spec).cores
    assert estimates.node_power_w.shape == (100, 6, 3)
    runs = np.isfinite(estimates.node_power_w).all(axis=2)
    assert runs[:60, :4].all()
    assert not runs[:60, 4:].any()
    assert runs[60:].sum(axis=0).tolist() == [0, 0, 0, 0, 20, 20]
    assert len(whole.platform) == 1975
    assert [len(each.hosts) for each in whole.platform.clusters] == [250, 500, 400, 200, 250, 375]
    counts = {band: int((cores == band).all(axis=1).sum()) for band in ((2, 4), (5, 256))}
    assert counts == {(2, 4): 20, (5, 256): 20}
    assert (cores == (257, 4096)).all(axis=1).sum() == 40
    largest = np.where(np.arange(100) < 60, 16_000, 18_000)
    assert (cores[:, 0] == 4097).sum() == (cores[:, 1] == largest - 1).sum() == 19
    assert (cores == largest[:, None]).all(axis=1).sum() == 1
    assert (whole.rules.horizon_s, whole.window_s) == (28 * HOUR_S, (4 * HOUR_S, 28 * HOUR_S))
    assert whole.rules.mapping_interval_s == 60
    assert whole.rules.budget.first_period_start_s == 4 * HOUR_S
    assert whole.rules.budget.period_s == DAY_S


def test_times_follow_the_types_and_the_nodes():
    """One node's time x T(n) / T(1) x the P-state's factor; infinite beyond the cluster."""
    spec = ParallelDay(seed=2, **SMALL)
    system, whole = draw_system(spec), generate_parallel_day(spec)
    estimates, tasks, times = whole.estimates, whole.tasks, system.times
    for task in range(0, len(tasks), 7):
        i, cores = tasks.task_type[task], tasks.width[task]
        for c, (nodes, per_node) in enumerate([(6, 4), (4, 8), (5, 6)]):
            n = math.ceil(cores / per_node)
            assert estimates.nodes[task, c] == n
            if n > nodes or (i < 4) != (c < 2):
                assert not np.isfinite(estimates.time_s[task, c]).any()
                continue
            a, sigma = times.parallelism[i, c], times.sigma[i]
            most = a + a * sigma - sigma
            share = (sigma + (most / n if n <= most else 1)) / (a * (1 + sigma))
            expected = times.reference_s[i, c] * share * times.time_factor[i, c]
            assert estimates.time_s[task, c] == pytest.approx(expected, rel=1e-12)
            joules = expected * n * estimates.node_power_w[i, c]
            assert estimates.energy_j[task, c] == pytest.approx(joules, rel=1e-12)


def test_the_mean_parallelism_is_that_of_the_band():
    """Cores 5 to 24 on nodes of 4: 2 to 6 nodes, 4 numbers of cores each."""
    system = draw_system(ParallelDay(seed=2, **SMALL))
    wide = np.flatnonzero(system.cores[:, 0] == 5)
    general = wide[wide < 4]
    assert len(general)
    for i in general:
        # the band reaches to the largest cluster's 32 cores; what is wider than 24 does not fit
        assert system.cores[i].tolist() == [5, 32]
        assert system.times.parallelism[i, 0] == pytest.approx(4.0)
        assert system.times.parallelism[i, 1] == pytest.approx((1 * 4 + 2 * 8 + 3 * 8 + 4 * 8) / 28)
    assert (system.times.parallelism >= 1).all()


def test_reference_times_grow_with_priority():
    """(1, 1 h) to (8, 18 h), spread 15 %, other clusters 30 %; means over many types."""
    spec = ParallelDay(general_task_types=4000, special_task_types=[1, 1], seed=1)
    system = draw_system(spec)
    first, other = system.times.reference_s[:4000, 0], system.times.reference_s[:4000, 1]
    mean = HOUR_S * (1 + (system.priority[:4000] - 1) / 7 * 17)
    assert within_sigmas(first / mean, 1.0, 0.15)
    assert np.std(first / mean) == pytest.approx(0.15, rel=0.1)
    assert within_sigmas(other / first, 1.0, 0.3)
    assert np.std(other / first) == pytest.approx(0.3, rel=0.1)
    power = system.node_power_w[:4000, 0, 0]
    # gamma: 133 W with cov 0.2, times a gamma factor of cov 0.3, times one of 0.03
    cov = math.sqrt((1 + 0.04) * (1 + 0.09) * (1 + 0.0009) - 1)
    assert within_sigmas(power, 133.0, 133.0 * cov)


def test_the_load_factor_multiplies_all_times():
    """Times and energies twice as large, nothing else drawn again; log's jobs have their own."""
    spec = ParallelDay(seed=2, **SMALL)
    default = generate_parallel_day(spec)
    loaded = generate_parallel_day(spec.model_copy(update={"load_factor": 2.0}))
    assert (loaded.estimates.time_s == 2.0 * default.estimates.time_s).all()
    assert (loaded.estimates.energy_j == 2.0 * default.estimates.energy_j).all()
    assert loaded.tasks.submit_time_s.tolist() == default.tasks.submit_time_s.tolist()
    assert loaded.tasks.width.tolist() == default.tasks.width.tolist()
    with pytest.raises(InputError, match=r"load_factor.*jobs_swf"):
        ParallelDay(jobs_swf="log.swf", load_factor=2.0)


def test_pstate_factors_follow_one_random_factor():
    """Power s r and time 1 / sqrt(s r), P-state 0 too: their product is sqrt(s r)."""
    spec = ParallelDay(seed=1, general_task_types=2000, special_task_types=[1, 1], pstate_cov=0.0)
    system = draw_system(spec)
    time = system.times.time_factor[:2000, 0]
    for k, s in enumerate((1.0, 0.75, 0.5)):
        assert time[:, k] * math.sqrt(s) == pytest.approx(time[:, 0], rel=1e-12)
    r = time[:, 0] ** -2.0
    assert within_sigmas(r, 1.0, 0.3)
    lower = system.node_power_w[:2000, 0, 2] / system.node_power_w[:2000, 0, 0]
    assert lower == pytest.approx(0.5, rel=1e-12)


#: What has a random factor of its own in each reading of 4.2.7: power and time, P-states.
OWN = {
    "cluster": (False, False),
    "quantity": (True, False),
    "pstate": (False, True),
    "quantity_and_pstate": (True, True),
}


def factors_of(reading: str, **keys) -> tuple[np.ndarray, np.ndarray]:
    """Return a reading's factors of power (times the nominal power) and time on a cluster, shape (types, P-states)."""
    spec = ParallelDay(
        seed=1, general_task_types=2000, special_task_types=[1, 1], pstate_cov=0.0, pstate_factor_of=reading, **keys
    )
    system, nominal = draw_system(spec), np.array((1.0, 0.75, 0.5))
    return system.node_power_w[:2000, 0] / nominal, system.times.time_factor[:2000, 0] ** -2.0 / nominal


@pytest.mark.parametrize(("reading", "own"), OWN.items())
def test_what_has_a_random_factor_of_its_own(reading: str, own: tuple[bool, bool]):
    """Power s r and time 1 / sqrt(s r): the same r for what shares it, independent ones of mean 1 for the rest."""
    power, time = factors_of(reading)
    nominal_w = factors_of("cluster")[0] / factors_of("cluster")[1]
    power = power / nominal_w
    quantities, pstates = own
    for k in range(3):
        for r in (power[:, k], time[:, k]):
            assert within_sigmas(r, 1.0, 0.3)
            assert np.std(r) == pytest.approx(0.3, rel=0.1)
    for one, other, independent in (
        (power[:, 1], time[:, 1], quantities),
        (power[:, 0], power[:, 2], pstates),
        (time[:, 1], time[:, 2], pstates),
        (power[:, 0], time[:, 2], quantities or pstates),
    ):
        if independent:
            assert abs(np.corrcoef(one, other)[0, 1]) < 5 / math.sqrt(2000)
        else:
            assert one == pytest.approx(other, rel=1e-12)


def test_readings_of_the_random_factor_share_all_else():
    """The power in P-state 0, times on one node, widths: as if there were one reading; the default's are pinned."""
    systems = {reading: draw_system(ParallelDay(seed=2, pstate_factor_of=reading, **SMALL)) for reading in OWN}
    default = draw_system(ParallelDay(seed=2, **SMALL))
    assert (systems["cluster"].node_power_w == default.node_power_w).all()
    assert (systems["cluster"].times.time_factor == default.times.time_factor).all()
    assert default.node_power_w[0, 0].tolist() == pytest.approx([157.75425154, 116.35250002, 74.20439713])
    assert default.times.time_factor[4, 2].tolist() == pytest.approx([0.983566334, 1.13996547, 1.446002031])
    for system in systems.values():
        assert (system.node_power_w[..., 0] == default.node_power_w[..., 0]).all()
        assert (system.times.reference_s == default.times.reference_s).all()
        assert (system.cores == default.cores).all()


def test_read_times_have_no_random_factor():
    """Whatever it is of."""
    with pytest.raises(InputError, match=r"pstate_factor_of.*etc_csv"):
        ParallelDay(etc_csv="e.csv", clusters_csv="c.csv", pstate_factor_of="quantity")


def test_which_pstate_is_cheapest_follows_the_random_factor():
    """Energy is sqrt(s r): the slowest P-state's is least with one r, each may be with one of its own for each."""
    for reading, cheapest in (("cluster", {2}), ("quantity", {2}), ("pstate", {0, 1, 2})):
        power, time = factors_of(reading)
        energy = power / np.sqrt(time) * np.sqrt((1.0, 0.75, 0.5))
        assert set(np.argmin(energy, axis=1).tolist()) == cheapest


def test_priorities_lie_in_their_ranges_in_their_shares():
    """Table 2's joint shares; the lower end of a range is excluded."""
    spec, rng = ParallelDay(), np.random.default_rng(1)
    priority, urgency = draw_priorities(rng, 20_000, spec.priority_ranges, spec.urgencies, spec.joint_percent)
    for (low, high), row in zip(spec.priority_ranges, spec.joint_percent, strict=True):
        inside = (priority > low) & (priority <= high)
        for rate, percent in zip(spec.urgencies, row, strict=True):
            share = percent / 100
            found = inside & (urgency == rate)
            assert within_sigmas(found, share, math.sqrt(share * (1 - share)))
        assert within_sigmas(priority[inside], (low + high) / 2, (high - low) / math.sqrt(12))


def test_busy_hours_keep_the_mean_rate():
    """9:00 to 18:00 at twice the rate, 0.4 of it else, on a clock that begins at 20:00."""
    edges, factor = busy_hours_profile((9 * HOUR_S, 18 * HOUR_S), 2.0, 20 * HOUR_S, 28 * HOUR_S)
    assert (edges / HOUR_S).tolist() == [0, 13, 22, 28]
    assert factor.tolist() == pytest.approx([0.4, 2.0, 0.4])
    day = factor @ np.diff(edges) - 4 * HOUR_S * 0.4  # without the four hours before midnight
    assert day == pytest.approx(DAY_S)
    edges, factor = busy_hours_profile((0.0, DAY_S), 1.0, 0.0, 100.0)
    assert (edges.tolist(), factor.tolist()) == ([0.0, 100.0], [1.0])


def test_arrivals_by_a_profile_are_as_many_as_its_rates_say():
    """Each interval and process has its own mean; all lie within."""
    rng = np.random.default_rng(5)
    edges, factor = np.array([0.0, 10.0, 40.0]), np.array([3.0, 0.5])
    times, process = profile_arrivals(rng, np.array([20.0, 50.0]), edges, factor)
    assert ((times >= 0) & (times < 40)).all()
    for k, rate in enumerate((20.0, 50.0)):
        for (first, last), f in (((0, 10), 3.0), ((10, 40), 0.5)):
            mean = rate * f * (last - first)
            n = ((process == k) & (times >= first) & (times < last)).sum()
            assert abs(n - mean) <= 5 * math.sqrt(mean)


def test_wide_tasks_come_in_the_busy_hours():
    """Half of the mean rate's day is at 9 to 18 h for narrow ones; 75 % for wide ones."""
    spec = ParallelDay(seed=4, tasks_per_day=20_000)
    whole = generate_parallel_day(spec)
    cores = draw_system(spec).cores[whole.tasks.task_type, 1]
    hour = (whole.tasks.submit_time_s / HOUR_S + 20) % 24
    inside = (hour >= 9) & (hour < 18)
    analysed = whole.tasks.submit_time_s >= 4 * HOUR_S
    assert within_sigmas(inside[analysed & (cores > 4096)], 0.75, math.sqrt(0.75 * 0.25))
    assert abs(inside[analysed & (cores <= 4096)].mean() - 9 / 24) < 0.05


def test_all_types_have_their_bursts_at_the_same_times():
    """Nothing in two quiet hours, three times the mean rate in the hour of a burst after them."""
    bursts = {
        "arrival_pattern": "bursts",
        "baseline_duration_s": (7200, 7200),
        "baseline_factor": (0, 0),
        "burst_duration_s": (3600, 3600),
        "burst_factor": (3, 3),
    }
    first_hours = set()
    for seed in range(4):
        whole = generate_parallel_day(ParallelDay(seed=seed, **SMALL | bursts))
        hours = whole.tasks.submit_time_s // HOUR_S
        assert len(set(hours % 3)) == 1
        first_hours |= set(hours % 3)
        assert set(whole.tasks.task_type) == set(range(6))
        expected = 300 * 3 / 24 * len(set(hours))  # an hour with a burst is never empty
        assert abs(len(hours) - expected) < 5 * math.sqrt(expected)
    assert first_hours == {0, 2}  # the burst came first, or the quiet interval


def test_a_seed_repeats_and_streams_are_independent():
    """Other arrivals leave the system, another unit of urgency leaves all but the functions."""
    base = generate_parallel_day(ParallelDay(seed=7, **SMALL))
    same = generate_parallel_day(ParallelDay(seed=7, **SMALL))
    assert np.array_equal(base.estimates.time_s, same.estimates.time_s)
    assert np.array_equal(base.tasks.submit_time_s, same.tasks.submit_time_s)
    more = generate_parallel_day(ParallelDay(seed=7, **{**SMALL, "tasks_per_day": 600}))
    assert np.array_equal(base.estimates.node_power_w, more.estimates.node_power_w)
    assert np.array_equal(base.estimates.typical_time_s, more.estimates.typical_time_s)
    assert len(more.tasks) > 1.5 * len(base.tasks)
    other = generate_parallel_day(ParallelDay(seed=7, replicate=1, **SMALL))
    assert not np.array_equal(base.estimates.node_power_w, other.estimates.node_power_w)
    power = generate_parallel_day(ParallelDay(seed=7, **SMALL, node_power_mean_w=1.0))
    assert np.array_equal(base.tasks.width, power.tasks.width)
    assert np.array_equal(base.estimates.time_s, power.estimates.time_s)


def test_a_days_energy_is_that_of_the_definition():
    """C1: 5,000 tasks need some 18.6 GJ in P-state 0, 0.82 of what the nodes can do."""
    found = []
    for replicate in range(4):
        whole = generate_parallel_day(ParallelDay(seed=1, replicate=replicate))
        estimates = whole.estimates
        analysed = whole.tasks.submit_time_s >= 4 * HOUR_S
        energy = np.where(np.isfinite(estimates.energy_j), estimates.energy_j, np.nan)[:, :, 0]
        found.append(np.nanmean(energy, axis=1)[analysed].sum())
    assert 16e9 < np.mean(found) < 22e9


def test_priorities_of_single_tasks_and_plateaus():
    """The testbed's: integers 1 to 4 for each task, constant to 2.5 x the least time, 0 at 4 x."""
    spec = ParallelDay(
        seed=1,
        **SMALL,
        priority_of="task",
        priority_ranges=[(k, k) for k in (1, 2, 3, 4)],
        urgencies=[0],
        joint_percent=[[25]] * 4,
        utility_classes="plateau_linear",
    )
    whole = generate_parallel_day(spec)
    utility, shortest = whole.tasks.utility, whole.estimates.shortest_times()
    assert set(utility.priority) == {1, 2, 3, 4}
    for factor, share in ((0.0, 1.0), (2.49, 1.0), (3.25, 0.5), (4.001, 0.0)):
        value = utility.value(np.arange(len(shortest)), factor * shortest)
        assert value == pytest.approx(share * utility.priority, rel=1e-9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"general_clusters": []}, "general_clusters is empty; 4 of the"),
        ({"special_task_types": [2, 2]}, "special_task_types has 2 numbers and special_clusters 1"),
        ({"speedup_sigma": (0.5, 2)}, r"speedup_sigma is \[0.5, 2.0\]; Downey"),
        ({"core_bands": [(1, 9, 3)]}, "core_bands: entry 1 reaches from 9 to 3 cores"),
        ({"core_bands": [(0, 1, 3)]}, "core_bands has no share above 0"),
        ({"busy_hours": (18, 9)}, "busy_hours is .* the first must not exceed"),
        ({"busy_factor": 3.0}, "busy_factor is 3: with 9 busy_hours .* at most 2.66667"),
        ({"burst_factor": (2, 3)}, "burst_factor has no effect with arrival_pattern = 'waves'"),
        (
            {"arrival_pattern": "bursts", "busy_factor": 1.5},
            "busy_factor has no effect with arrival_pattern = 'bursts'",
        ),
        ({"task_type_shares": [1, 1]}, "task_type_shares has 2 numbers; there are 6"),
        ({"task_type_shares": [0] * 6}, "task_type_shares holds only zeros"),
        ({"tasks_per_day": 1e9}, "These rates give up to"),
        ({"arrival_pattern": "bursts", "burst_factor": (1, 1e30)}, "at most 10,000,000 fit into memory"),
        (
            {"arrival_pattern": "bursts", "burst_duration_s": (1e-9, 1e-9), "baseline_duration_s": (1e-9, 1)},
            "that may give more than 1,000,000 bursts",
        ),
        ({"general_clusters": [(90_000, 100_000)]}, "A cluster's cores give 9,000,000,000"),
        ({"special_task_types": [100_000], "power_factors": [0.5] * 99}, "task types, clusters and power_factors give"),
        ({"core_bands": [(1, 1, 10**400)]}, r"core_bands\[0\]\[2\] is 1000"),
        ({"log_least_jobs": 10**400, "jobs_swf": "a.swf"}, "log_least_jobs is 1000"),
        ({"joint_percent": [[1]]}, "joint_percent needs 4 rows"),
        ({"etc_csv": "e.csv"}, "clusters_csv is missing"),
        ({"tasks_csv": "t.csv"}, "tasks_csv has no effect without etc_csv"),
        ({"log_days": 3}, "log_days has no effect without jobs_swf"),
        ({"jobs_swf": "a.swf"}, "core_bands has no effect beside jobs_swf"),
        ({"power_factors": []}, "power_factors is empty"),
        ({"power_factors": [1], "pstate_factor_of": "pstate"}, "'pstate' has no effect with one P-state.*'cluster'"),
        (
            {"power_factors": [1], "pstate_factor_of": "quantity_and_pstate"},
            "'quantity_and_pstate' has no effect with one P-state.*'quantity'",
        ),
        ({"budget_period_s": 60}, "budget_period_s has no effect without energy_budget_j"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(changes, message):
    """Which key, what was found, what is allowed."""
    with pytest.raises(InputError, match=message):
        checked_parameters({"kind": "parallel", **SMALL, **changes}, "p.toml")


def test_values_out_of_range_are_refused():
    """By the model of the keys."""
    with pytest.raises(ValidationError, match="pstate_cov"):
        ParallelDay(pstate_cov=2.0)


def test_bands_beyond_a_small_cluster_end_at_their_most():
    """The paper's band from 4,097 cores to one less than a cluster of 30 cores has 29 cores."""
    keys = {**SMALL, "core_bands": [(1, 4097, -1)], "wide_from_cores": 29, "seed": 1}
    spec = checked_parameters({"kind": "parallel", **keys}, "p.toml")
    whole, cores = generate_parallel_day(spec), draw_system(spec).cores
    assert cores.tolist() == [[31, 31]] * 4 + [[29, 29]] * 2
    assert set(whole.tasks.width.tolist()) == {31, 29}
