"""The generator of systems and workloads of paper 000 (algorithms B2)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pydantic import ValidationError

from gridsched.errors import InputError
from gridsched.model.seeds import random_stream
from gridsched.model.task_types import TYPED_TASK_FLOPS
from gridsched.systems.utility.arrivals import Bursts, Waves, burst_arrivals, draw_intervals, wave_arrivals
from gridsched.systems.utility.utility_day import UtilityDay, draw_task_types, generate_utility_day
from gridsched.workloads.etc_matrices import cvb, gamma, pstate_factors

DAY_S = 86_400.0
SMALL = {
    "special_machine_counts": [1],
    "general_machine_counts": [1, 2],
    "task_types": 4,
    "special_task_types": [1],
    "days": 0.25,
}


def within_sigmas(values, mean: float, deviation: float, sigmas: float = 5.0) -> bool:
    """Whether the mean of independent values lies near the expected one."""
    values = np.asarray(values)
    return abs(values.mean() - mean) <= sigmas * deviation / math.sqrt(values.size)


def same(a, b) -> bool:
    """Whether two generated workloads are equal to the last bit."""
    return (
        np.array_equal(a.types.etc, b.types.etc)
        and np.array_equal(a.types.apc, b.types.apc)
        and np.array_equal(a.tasks.submit_time_s, b.tasks.submit_time_s)
        and np.array_equal(a.tasks.task_type, b.tasks.task_type)
        and np.array_equal(a.tasks.utility.priority, b.tasks.utility.priority)
        and np.array_equal(a.tasks.utility.utility_class, b.tasks.utility.utility_class)
    )


def test_the_papers_system():
    """13 machine types, 100 machines, 100 task types, 3 P-states, two days, the second measured."""
    whole = generate_utility_day(UtilityDay(seed=1))
    assert whole.types.etc.shape == whole.types.apc.shape == (100, 13, 3)
    counts = np.bincount(whole.types.host_type).tolist()
    assert counts == [2, 2, 3, 3, 5, 5, 5, 10, 10, 10, 10, 15, 20]
    assert len(whole.platform) == 100
    assert len({host.name for host in whole.platform.hosts}) == 100
    assert (whole.rules.horizon_s, whole.window_s) == (2 * DAY_S, (DAY_S, 2 * DAY_S))
    assert (whole.rules.mapping_interval_s, whole.rules.pending_slots, whole.rules.budget) == (60.0, 1, None)
    assert set(whole.tasks.flops) == {TYPED_TASK_FLOPS}
    assert 0 <= whole.tasks.submit_time_s[0] <= whole.tasks.submit_time_s[-1] < 2 * DAY_S


def test_special_machines_run_only_their_own_task_types():
    """5, 4, 5, 3 task types for special machines, all 100 on the general ones."""
    etc = draw_task_types(UtilityDay(seed=3)).etc
    feasible = np.isfinite(etc)
    assert feasible[:, 4:].all()
    assert feasible[:, :4].any(axis=2).sum(axis=0).tolist() == [5, 4, 5, 3]
    assert feasible[:17, :4].any(axis=2).sum(axis=1).tolist() == [1] * 17
    assert not feasible[17:, :4].any()
    # ten times faster there: 1 min against 10 min on average
    assert 5 < etc[:17, 4:, 0].mean() / etc[:, :4, 0][feasible[:, :4, 0]].mean() < 15


def test_pstate_0_is_the_fastest_and_draws_the_most():
    """Slower P-states never take less time; on average they save energy."""
    for seed in range(20):
        types = draw_task_types(UtilityDay(seed=seed))
        feasible = np.isfinite(types.etc[..., 0])
        etc, apc = types.etc[feasible], types.apc[feasible]
        assert (etc[:, 1:] >= etc[:, :1]).all()
        assert (apc[:, 1:] < apc[:, :1]).all()
        assert types.eec[..., 0][feasible].mean() > types.eec[..., 2][feasible].mean()


def test_means_and_covs_of_time_and_power():
    """Over many systems: 10 min, 1 min, 66 W + 133 W, and the coefficients of variation."""
    special, general, apc, machine_cov = [], [], [], []
    for seed in range(60):
        types = draw_task_types(UtilityDay(seed=seed))
        special.append(types.etc[:, :4, 0][np.isfinite(types.etc[:, :4, 0])])
        general.append(types.etc[:, 4:, 0])
        apc.append(types.apc[:, 4:, 0])
        rows = types.etc[:, 4:, 0]
        machine_cov.append((rows.var(axis=1, ddof=1) / rows.mean(axis=1) ** 2).mean())
    # rows share their mean (cov 0.1): the mean of a row deviates by cov 0.1 and by 0.25/sqrt(9)
    rows = np.concatenate(general).mean(axis=1)
    assert within_sigmas(rows, 600.0, 600.0 * math.hypot(0.1, 0.25 / 3 * math.hypot(1, 0.1)))
    assert within_sigmas(np.concatenate(special), 60.0, 60.0 * math.hypot(0.1, 0.1 * 1.005))
    assert np.sqrt(np.mean(machine_cov)) == pytest.approx(0.25, rel=0.03)
    # a column shares its base power (cov 0.2)
    columns = np.concatenate([each.mean(axis=0) for each in apc])
    assert within_sigmas(columns, 199.0, math.hypot(66 * 0.2, 133 * 0.2 / 10 * 1.1))


@pytest.mark.parametrize(("mean", "cov"), [(600.0, 0.1), (1.0, 0.5), (66.0, 1.0)])
def test_gamma_has_the_mean_and_cov_it_is_given(mean, cov):
    """A gamma of shape 1/cov^2 has kurtosis 6 cov^2, which bounds the variance's error."""
    x = gamma(np.random.default_rng(1), mean, cov, 100_000)
    assert within_sigmas(x, mean, cov * mean)
    error = math.sqrt((2 + 6 * cov**2) / x.size)
    assert x.var() / mean**2 == pytest.approx(cov**2, rel=6 * error)
    assert gamma(np.random.default_rng(1), mean, 0.0, 3).tolist() == [mean] * 3


def test_cvb_rows_share_a_mean():
    """Variation within rows and of the rows' means are those asked for."""
    matrix = cvb(np.random.default_rng(2), 10.0, 0.1, 0.25, 2000, 200)
    assert within_sigmas(matrix.mean(axis=1), 10.0, 10 * math.hypot(0.1, 0.25 / math.sqrt(200)))
    assert (matrix.std(axis=1) / matrix.mean(axis=1)).mean() == pytest.approx(0.25, rel=0.01)
    assert matrix.mean(axis=1).std() / 10 == pytest.approx(0.1, rel=0.1)


def test_pstate_factors_are_the_nominal_ones_where_nothing_varies():
    """Without variation: 1, 0.75, 0.5 of the power, 1/sqrt of it in time."""
    rng = np.random.default_rng(3)
    time, power = pstate_factors(rng, 2, 3, (1.0, 0.75, 0.5), type_cov=0.0, power_cov=0.0, time_cov=0.0)
    assert power == pytest.approx(np.broadcast_to([1, 0.75, 0.5], (2, 3, 3)))
    assert time == pytest.approx(np.broadcast_to([1, 0.75**-0.5, 0.5**-0.5], (2, 3, 3)))


def test_pstate_factors_below_one_are_redrawn_then_clamped():
    """Power that hardly falls: most first draws are faster than P-state 0."""
    rng = np.random.default_rng(4)
    time, _ = pstate_factors(rng, 500, 9, (1.0, 0.999), type_cov=0.2, power_cov=0.01, time_cov=0.01)
    assert (time >= 1).all()
    clamped = (time[..., 1] == 1).mean()
    assert clamped < 0.01  # redrawing found slower ones
    none_is_slower = pstate_factors(rng, 50, 9, (1.0, 1.0), type_cov=0.0, power_cov=0.0, time_cov=0.0)
    assert (none_is_slower[0] == 1).all()


def test_about_101_000_tasks_in_two_days():
    """The mean over seeds is the sum of the types' expected counts in bursts and waves."""
    counts, by_day = [], []
    for seed in range(30):
        tasks = generate_utility_day(UtilityDay(seed=seed, days=2.0)).tasks
        counts.append(len(tasks))
        by_day.append(np.searchsorted(tasks.submit_time_s, DAY_S))
    # special types: 4 h at 0.625, then 1 h at 1.375 of the mean rate
    special = (4 * 0.625 + 1 * 1.375) / 5
    expected = 580 / 26.5 * 48 * (83 + 17 * special)
    assert expected == pytest.approx(101_100, rel=0.005)
    # the types' rates deviate by 10 % each, Poisson noise comes on top
    assert within_sigmas(counts, expected, math.hypot(expected * 0.1 / 10, math.sqrt(expected)))
    assert np.mean(by_day) == pytest.approx(expected / 2, rel=0.01)


def test_the_arrival_factor_scales_the_rates():
    """Half and double the arrivals."""
    base = len(generate_utility_day(UtilityDay(seed=2)).tasks)
    for factor in (0.5, 2.0):
        n = len(generate_utility_day(UtilityDay(seed=2, arrival_factor=factor)).tasks)
        assert abs(n - factor * base) < 5 * math.sqrt(factor * base + factor**2 * base) + 0.01 * n


def test_waves_are_thinned_exactly():
    """Counts in each slice of the day are Poisson around the integral of the rate."""
    rng = np.random.default_rng(7)
    waves = Waves(np.array([2.0, 0.5]), np.array([0.9, 0.4]), np.array([3, 1]), np.array([1.0, 4.0]))
    time_s, process = wave_arrivals(rng, waves, DAY_S)
    edges = np.linspace(0, DAY_S, 97)
    for k in range(2):
        found = np.histogram(time_s[process == k], edges)[0]
        rate, a, m, phi = (float(each[k]) for each in (waves.rate, waves.amplitude, waves.waves, waves.phase))
        omega = 2 * math.pi * m / DAY_S

        def integral(t, rate=rate, a=a, omega=omega, phi=phi):
            return rate * (t - a / omega * math.cos(omega * t - phi))

        expected = np.diff([integral(t) for t in edges])
        chi2 = float((((found - expected) ** 2) / expected).sum())
        # chi-squared with 96 degrees of freedom: mean 96, variance 192
        assert abs(chi2 - 96) < 5 * math.sqrt(192)


def test_waves_agree_with_an_independent_simulation():
    """Thinning against cumulated intervals of the integrated rate (inverse method)."""
    waves = Waves(np.array([0.05]), np.array([0.8]), np.array([2]), np.array([0.5]))
    times, _ = wave_arrivals(np.random.default_rng(8), waves, 20 * DAY_S)
    grid = np.linspace(0, 20 * DAY_S, 400_001)
    omega = 2 * math.pi * 2 / DAY_S
    cumulated = 0.05 * (grid - 0.8 / omega * (np.cos(omega * grid - 0.5) - math.cos(-0.5)))
    unit = np.cumsum(np.random.default_rng(9).exponential(size=int(cumulated[-1] * 1.1)))
    other = np.interp(unit[unit < cumulated[-1]], cumulated, grid)
    assert abs(len(times) - len(other)) < 5 * math.sqrt(2 * cumulated[-1])
    a, b = np.sort(times % DAY_S), np.sort(other % DAY_S)
    at = np.concatenate([a, b])
    distance = np.abs(
        np.searchsorted(a, at, side="right") / len(a) - np.searchsorted(b, at, side="right") / len(b)
    ).max()
    # Kolmogorov-Smirnov at a level of 1e-6
    assert distance < math.sqrt(-math.log(1e-6 / 2) / 2 * (1 / len(a) + 1 / len(b)))


BURSTS = Bursts((10_800.0, 18_000.0), (1_800.0, 5_400.0), (0.5, 0.75), (1.25, 1.5))


def test_baselines_and_bursts_alternate():
    """Durations and factors lie in their ranges; either kind comes first half the time."""
    rng, first = np.random.default_rng(11), []
    for _ in range(400):
        edges, factor, is_burst = draw_intervals(rng, BURSTS, 2 * DAY_S)
        assert (edges[0], edges[-1]) == (0, 2 * DAY_S)
        assert (is_burst[1:] != is_burst[:-1]).all()
        lengths = np.diff(edges)[:-1]  # the last interval is cut
        for kind, shortest, longest, low, high in ((True, 1_800, 5_400, 1.25, 1.5), (False, 10_800, 18_000, 0.5, 0.75)):
            chosen = is_burst == kind
            assert ((factor[chosen] >= low) & (factor[chosen] <= high)).all()
            chosen = lengths[chosen[:-1]]
            assert ((chosen >= shortest * (1 - 1e-12)) & (chosen <= longest * (1 + 1e-12))).all()
        first.append(is_burst[0])
    assert within_sigmas(first, 0.5, 0.5)


def test_arrivals_of_bursts_are_poisson_in_their_intervals():
    """The intervals are drawn first: the same seed gives the same ones."""
    rate = np.array([1.0])
    times, process = burst_arrivals(np.random.default_rng(12), rate, BURSTS, DAY_S)
    edges, factor, _ = draw_intervals(np.random.default_rng(12), BURSTS, DAY_S)
    assert set(process) == {0}
    found = np.histogram(times, edges)[0]
    expected = factor * np.diff(edges)
    assert (abs(found - expected) < 5 * np.sqrt(expected)).all()
    none = burst_arrivals(np.random.default_rng(12), np.empty(0), BURSTS, DAY_S)
    assert [len(each) for each in none] == [0, 0]


def test_the_same_seed_gives_the_same():
    """Equal to the last bit; another seed or replicate differs."""
    spec = UtilityDay(seed=5, **SMALL)
    assert same(generate_utility_day(spec), generate_utility_day(spec))
    for changes in ({"seed": 6}, {"replicate": 1}):
        other = generate_utility_day(UtilityDay(**{"seed": 5, **SMALL, **changes}))
        assert not np.array_equal(generate_utility_day(spec).types.apc, other.types.apc)


def test_streams_do_not_touch_each_other():
    """Other arrivals leave the machines as they are, and other machines the arrivals."""
    base = generate_utility_day(UtilityDay(seed=5, **SMALL))
    arrivals = generate_utility_day(UtilityDay(seed=5, **SMALL, arrival_factor=2.0))
    assert np.array_equal(base.types.etc, arrivals.types.etc)
    assert len(arrivals.tasks) > len(base.tasks)
    machines = generate_utility_day(UtilityDay(seed=5, **SMALL, etc_mean_s=1.0))
    assert np.array_equal(base.tasks.submit_time_s, machines.tasks.submit_time_s)
    assert np.array_equal(base.tasks.utility.priority, machines.tasks.utility.priority)


def test_replicates_are_independent():
    """Rates of 60 replicates are uncorrelated, and no replicate repeats another's numbers."""
    values = [random_stream(1, "platform", r).normal(size=200) for r in range(60)]
    correlation = np.corrcoef(values)[~np.eye(60, dtype=bool)]
    assert np.abs(correlation).max() < 6 / math.sqrt(200)
    means = [draw_task_types(UtilityDay(replicate=r)).apc[20:, 4:, 0].mean() for r in range(40)]
    lag = np.corrcoef(means[:-1], means[1:])[0, 1]
    assert len(set(means)) == 40
    assert abs(lag) < 5 / math.sqrt(39)


def test_classes_are_shared_by_all_trials():
    """The set of utility classes depends on its own seed only."""
    first, second = (generate_utility_day(UtilityDay(seed=s, **SMALL)) for s in (1, 2))
    a, b = first.tasks.utility.classes, second.tasks.utility.classes
    assert np.array_equal(a.start_time, b.start_time)
    exponential = UtilityDay(**SMALL, utility_classes="exponential")
    assert len(generate_utility_day(exponential).tasks.utility.classes) == 1


def test_small_systems_without_special_or_general_machines():
    """Any list of counts will do, as long as each task type can run somewhere."""
    general = UtilityDay(
        special_machine_counts=[], special_task_types=[], task_types=3, days=0.1, general_machine_counts=[2]
    )
    assert len(generate_utility_day(general).platform) == 2
    special = UtilityDay(
        special_machine_counts=[1, 1], special_task_types=[1, 2], task_types=3, general_machine_counts=[], days=0.1
    )
    etc = generate_utility_day(special).types.etc
    assert np.isfinite(etc[..., 0]).sum(axis=1).tolist() == [1, 1, 1]
    none = UtilityDay(**SMALL, arrival_factor=0.0)
    assert len(generate_utility_day(none).tasks) == 0


def test_the_budget_is_handed_on():
    """Keys of the budget become an EnergyBudget; an infinite one only counts."""
    spec = UtilityDay(
        **SMALL,
        energy_budget_j=1e9,
        budget_period_s=3600.0,
        budget_carry_over=True,
        budget_periods=6,
        budget_enforcement="stop",
    )
    budget = generate_utility_day(spec).rules.budget
    assert (budget.energy_j, budget.period_s, budget.periods) == (1e9, 3600.0, 6)
    assert (budget.carry_over, budget.enforcement) == (True, "stop")
    assert UtilityDay(energy_budget_j=math.inf).rules.budget.energy_j == math.inf


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"special_task_types": [1, 2]}, "special_task_types has 2 numbers and"),
        ({"task_types": 10}, "special_task_types are 17 in all, but task_types is 10"),
        ({"general_machine_counts": []}, "general_machine_counts is empty; 83 of the"),
        ({"power_factors": [0.9, 0.5]}, "the first must be 1"),
        ({"power_factors": []}, "the first must be 1"),
        ({"tasks_per_type": 1e7}, "at most 10,000,000 fit into memory"),
        ({"tasks_per_type_deviation": 1e30}, "at most 10,000,000 fit into memory"),
        ({"burst_factor": (1.0, 1e30)}, "at most 10,000,000 fit into memory"),
        ({"burst_duration_s": (1e-30, 1.0), "baseline_duration_s": (1e-30, 1.0)}, "more than 1,00"),
        ({"task_types": 10_000, "general_machine_counts": [1] * 9000}, "at most 10,000,000 are"),
        ({"joint_percent": [[1.0]]}, "joint_percent needs 4 rows"),
        ({"joint_percent": [[0.0] * 4] * 4}, "joint_percent holds only zeros"),
        ({"measured_from_s": 2e5}, "measured_from_s 200000 and measured_until_s 172800"),
        ({"measured_until_s": 2e5}, "must rise within 0 to 172800 s"),
        ({"budget_period_s": 3600.0}, "budget_period_s has no effect without energy_budget_j"),
        ({"energy_budget_j": 1.0, "budget_carry_over": True}, "budget_periods is missing"),
        ({"etc_csv": "e.csv"}, "machines_csv is missing"),
        ({"tasks_csv": "t.csv", "arrival_factor": 2.0}, "arrival_factor has no effect beside"),
    ],
)
def test_contradictions_are_refused(changes, message):
    """The message names the keys and what they must fulfil."""
    with pytest.raises(InputError, match=message):
        UtilityDay(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"no_such_key": 1},
        {"seed": -1},
        {"etc_mean_s": math.inf},
        {"etc_mean_s": 0.0},
        {"etc_task_cov": 1.5},
        {"special_machine_counts": [0]},
        {"wave_amplitude": [0.5, 1.5]},
        {"wave_amplitude": [0.9, 0.5]},
        {"waves_per_day": [0, 3]},
        {"power_factors": [1.0, 0.0]},
        {"energy_budget_j": 0.0},
        {"energy_budget_j": math.nan},
        {"pending_slots": 2},
        {"days": 0},
        {"budget_enforcement": "wait"},
        {"kind": "bag"},
    ],
)
def test_values_out_of_range_are_refused(changes):
    """Pydantic names the key; the command line's message is tested with the files."""
    with pytest.raises(ValidationError, match=next(iter(changes))):
        UtilityDay(**changes)
