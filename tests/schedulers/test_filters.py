"""The filters by energy and by robustness."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler_cases import b6_scenario, day, exponential_tasks

from gridsched import Scenario, run
from gridsched.errors import InputError
from gridsched.metrics.window_metrics import window_series
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.system import System
from gridsched.model.task_types import TypedPowerEstimates
from gridsched.runs.scenario_maker import load
from gridsched.scenario import make_system
from gridsched.schedulers.filters import (
    AdaptiveFilter,
    EnergyFilter,
    budget_pace,
    energy_filter,
    leniency_at,
    mean_etc_s,
    time_remaining_s,
)

# ``energy_leniency = "auto"``: its law by hand, and what it does to whole runs.

ROOT = Path(__file__).resolve().parents[2]
INF = math.inf
HEURISTICS = ("max_max_upe", "max_max_upt", "max_max_util", "min_min_completion_time")


def energy(remaining_kj: float, *, budget_kj=1000.0, start_h=24.0, end_h=48.0) -> SimpleNamespace:
    """Return what the filter reads of `state.energy`."""
    return SimpleNamespace(
        budget_j=budget_kj * 1e3, remaining_j=remaining_kj * 1e3, period_start=start_h * 3600, period_end=end_h * 3600
    )


def at_hour(hour: float, remaining_kj: float, **changes) -> SimpleNamespace:
    """Return what the filter reads of a state."""
    return SimpleNamespace(now=hour * 3600, energy=energy(remaining_kj, **changes))


def filter_of(by_utility: bool) -> AdaptiveFilter:
    """Return a filter for the machines of algorithms B6."""
    made = AdaptiveFilter(by_utility)
    made.prepare(make_system(load(b6_scenario("max_max_upe"))))
    return made


@pytest.mark.parametrize(
    ("hour", "remaining_kj", "expected"),
    [
        (24, 1000, 1.0),  # the day begins
        (36, 500, 1.0),  # half of it is over, half is used
        (30, 600, 0.8),  # 60 % left for 75 % of the day
        (42, 300, 1.2),  # 30 % left for 25 % of the day
        (36, -10, -0.02),  # more is committed than there is
        (48, 5, INF),  # the day is over
    ],
)
def test_the_pace(hour, remaining_kj, expected):
    """Share of the budget left over share of the day left."""
    assert budget_pace(energy(remaining_kj), hour * 3600.0) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("pace", "by_utility", "otherwise"),
    [
        (1.0, 1.05, 1.05),
        (1.02, 1.560245, 1.560245),  # 1.05 * 1.02 ** 20 = 1.05 * 1.485947
        (0.99, 0.5, 0.858802),  # 1.05 * 0.99 ** 20 = 1.05 * 0.817907
        (0.97, 0.5, 0.570984),  # 1.05 * 0.543794
        (0.95, 0.5, 0.5),  # 1.05 * 0.358486 = 0.376 is too strict
        (0.0, 0.5, 0.5),
        (-0.3, 0.5, 0.5),
        (2.0, 1.05 * 2**20, 1.05 * 2**20),
        (INF, 1.05 * 2**20, 1.05 * 2**20),
    ],
)
def test_the_law(pace, by_utility, otherwise):
    """Open or shut for heuristics that use utility, smooth for the others."""
    assert leniency_at(pace, True) == pytest.approx(by_utility, rel=1e-6)
    assert leniency_at(pace, False) == pytest.approx(otherwise, rel=1e-6)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False), st.booleans())
def test_more_energy_left_is_never_stricter(one, other, by_utility):
    """The leniency is positive, finite, and rises with the pace."""
    low, high = leniency_at(min(one, other), by_utility), leniency_at(max(one, other), by_utility)
    assert 0 < low <= high < INF


@pytest.mark.systems("utility")
def test_task_budgets_by_hand():
    """At noon two machines have 24 h left, the mean of the ETC entries of B6 is 13.75 min."""
    ready = np.array([36.0, 36.0]) * 3600
    tasks_that_fit = 24 * 60 / ((10 + 14 + 20 + 28 + 5 + 7 + 10 + 14 + 10 + 14 + 10 + 14) / 12)
    for remaining_kj, by_utility, leniency in [
        (500, True, 1.05),
        (495, True, 0.5),
        (495, False, 0.858802),
        (510, False, 1.560245),
    ]:
        expected = leniency * remaining_kj * 1e3 / tasks_that_fit
        found = filter_of(by_utility).task_budget(at_hour(36, remaining_kj), ready)
        assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.systems("utility")
@given(
    st.floats(24, 48, exclude_max=True),
    st.floats(1e-3, 1000),
    st.booleans(),
    st.lists(st.floats(0, 50), min_size=2, max_size=2),
)
def test_the_task_budget_is_positive(hour, remaining_kj, by_utility, busy_h):
    """Whatever is left can be used, as with a fixed leniency."""
    ready = (hour + np.array(busy_h)) * 3600
    assert filter_of(by_utility).task_budget(at_hour(hour, remaining_kj), ready) > 0


@pytest.mark.systems("utility")
def test_limits():
    """Nothing left: nothing passes. No budget, or no finite one: no filter."""
    ready = np.array([36.0, 36.0]) * 3600
    for by_utility in (True, False):
        made = filter_of(by_utility)
        assert made.task_budget(at_hour(36, 0), ready) == -INF
        assert made.task_budget(at_hour(36, -3), ready) == -INF
        assert made.task_budget(at_hour(36, INF, budget_kj=INF), ready) == INF
        without = at_hour(36, INF, budget_kj=INF, start_h=0, end_h=INF)
        assert made.task_budget(without, ready) == INF


def test_auto_asks_for_it():
    """A heuristic that uses utility declares it; other words are not leniency."""
    made = energy_filter("mine", "auto", by_utility=False)
    assert isinstance(made, AdaptiveFilter)
    assert not made.by_utility
    assert isinstance(energy_filter("mine", 0.5), EnergyFilter)
    with pytest.raises(InputError, match="'auto'"):
        energy_filter("mine", "automatic")


# ---------------------------------------------------------------------- whole runs


def small(scheduler: str, leniency, driver: str = "reference", **changes) -> Scenario:
    """Return examples/utility_small.toml: ten machines, two periods of two hours."""
    path = ROOT / "examples/utility_small.toml"
    whole = load(Scenario(None, path, scheduler, {"energy_leniency": leniency}, driver=driver))
    return replace(whole, **changes)


def decisions(scenario: Scenario) -> list:
    """Return what ran where and when, and every task's final state."""
    trace = run(scenario).trace
    done = trace.executions
    return [done["task"].tolist(), done["host"].tolist(), done["pstate"].tolist(), trace.final_state.tolist()]


@pytest.mark.systems("utility")
@pytest.mark.parametrize("scheduler", HEURISTICS)
def test_without_a_finite_budget_it_is_no_filter(scheduler):
    """As with infinite leniency."""
    tasks = exponential_tasks(np.arange(60) * 20.0, np.arange(60) % 3, [(8, 0.01), (4, 0.1), (1, 0.01)] * 20)
    for budget in (None, day(INF, 60)):
        each = [
            replace(b6_scenario(scheduler, parameters={"energy_leniency": leniency}, budget=budget), tasks=tasks)
            for leniency in ("auto", INF)
        ]
        assert decisions(each[0]) == decisions(each[1])


@pytest.mark.systems("utility")
@pytest.mark.parametrize("scheduler", [*HEURISTICS, "random_mapping"])
def test_both_drivers_decide_alike(scheduler):
    """The filter reads nothing but the state."""
    assert decisions(small(scheduler, "auto")) == decisions(small(scheduler, "auto", "simgrid"))


@pytest.mark.systems("utility")
@pytest.mark.parametrize("scheduler", HEURISTICS)
def test_the_budget_lasts_until_the_end(scheduler):
    """Drawn nearly in proportion to the time, used up at the end, and never exceeded."""
    trace = run(small(scheduler, "auto", budget=day(6e6, 120))).trace
    for period in trace.periods[:2]:  # in a third one, tasks that run on
        limit = period["budget_j"] * (1 + 1e-9) + period["carried_over_j"]
        assert 0.98 * period["budget_j"] <= period["consumed_j"] <= limit
        window = (float(period["start"]), float(period["end"]))
        used = window_series(trace, window, 1800.0)["energy_j"] / period["budget_j"]
        assert used[[1, 2, 3]] == pytest.approx([0.25, 0.5, 0.75], abs=0.15)


@pytest.mark.systems("utility")
def test_a_second_run_forgets_the_first():
    """The filter keeps nothing."""
    scenario = small("max_max_upt", "auto")
    assert decisions(scenario) == decisions(scenario)


# The energy filter of algorithms B5, by hand.

MINUTE = 60.0


def system(etc_min, host_type) -> System:
    """Return a system with an ETC matrix (task types, host types, P-states) in minutes."""
    etc = np.array(etc_min, dtype=float) * MINUTE
    hosts = tuple(Host(f"m{h}", (PState(1.0),)) for h in range(len(host_type)))
    estimates = TypedPowerEstimates(etc, np.full(etc.shape, 100.0), [0], host_type)
    return System(Platform(hosts), estimates)


def state(remaining_kj: float, day_end_min: float) -> SimpleNamespace:
    """Return what the filter reads of a state."""
    energy = SimpleNamespace(remaining_j=remaining_kj * 1e3, period_end=day_end_min * MINUTE)
    return SimpleNamespace(energy=energy)


def budget_kj(leniency, remaining_kj, day_end_min, ready_min, etc_min=(((10,), (20,)),)) -> float:
    """Return the task budget [kJ]."""
    each = EnergyFilter(leniency)
    each.prepare(system(etc_min, [0, 1]))
    ready = np.array(ready_min, dtype=float) * MINUTE
    return each.task_budget(state(remaining_kj, day_end_min), ready) / 1e3


def test_the_worked_example():
    """500 - 100 - 50 kJ; 40 + 50 min; 15 min on average: 0.75 * 350 / 6 = 43.75 kJ."""
    assert budget_kj(0.75, 350, 1440, [1400, 1390]) == pytest.approx(43.75, rel=1e-12)


def test_figure_2_of_the_paper():
    """(24 - 22) + (24 - 20) + (24 - 18) = 12 h; a host that is off or busy until later adds 0."""
    hours = np.array([22.0, 20.0, 18.0, 25.0, INF])
    assert time_remaining_s(hours * 3600, 24 * 3600) == 12 * 3600


def test_the_mean_counts_feasible_entries_of_existing_types():
    """Infinite entries, and host types without a host, do not count."""
    matrix = [[[10, 14], [INF, INF], [900, 900]], [[20, 28], [8, 12], [900, 900]]]
    assert mean_etc_s(system(matrix, [0, 1, 1])) == pytest.approx((10 + 14 + 20 + 28 + 8 + 12) / 6 * MINUTE)


@pytest.mark.parametrize(
    ("leniency", "remaining", "ready", "expected"),
    [
        (INF, 350, [1400, 1390], INF),  # no filter
        (INF, -1, [1400, 1390], INF),
        (0.75, INF, [1400, 1390], INF),  # no budget
        (0.75, 0, [1400, 1390], -INF),  # nothing passes
        (0.75, -5, [1400, 1390], -INF),
        (0.75, 350, [1440, 1500], INF),  # no time left: nothing can start today anyway
    ],
)
def test_limits_of_energy(leniency, remaining, ready, expected):
    """No filter, no budget, nothing left, no time left."""
    assert budget_kj(leniency, remaining, 1440, ready) == expected


def test_without_a_budget_everything_passes():
    """Infinite energy until an infinite period end."""
    assert budget_kj(0.75, INF, INF, [0, 0]) == INF


@pytest.mark.parametrize("leniency", [0, -1.5, math.nan, None, True, "auto-matic"])
def test_leniency_is_checked(leniency):
    """The message names parameter, owner and what is allowed."""
    with pytest.raises(InputError, match=r"energy_leniency.*mine.*inf"):
        energy_filter("mine", leniency)


@pytest.mark.systems("utility")
def test_the_filter_needs_task_types():
    """Bags of distinct tasks have no ETC matrix."""
    from gridsched import Scenario

    bag = make_system(load(Scenario(ROOT / "platforms/ex_a.xml", ROOT / "examples/ex_a.csv", "wq")))
    with pytest.raises(InputError, match="utility"):
        EnergyFilter(1.0).prepare(bag)
    EnergyFilter(1.0).prepare(make_system(load(b6_scenario("max_max_upe"))))
