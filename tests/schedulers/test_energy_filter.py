"""The energy filter of algorithms B5, by hand."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from utility_cases import b6_scenario

from gridsched.errors import InputError
from gridsched.model.estimates import TypedPowerEstimates
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.system import System
from gridsched.runs.scenario import make_system
from gridsched.schedulers.filters import EnergyFilter, energy_filter, mean_etc_s, time_remaining_s

ROOT = Path(__file__).resolve().parents[2]
MINUTE, INF = 60.0, math.inf


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
def test_limits(leniency, remaining, ready, expected):
    """No filter, no budget, nothing left, no time left."""
    assert budget_kj(leniency, remaining, 1440, ready) == expected


def test_without_a_budget_everything_passes():
    """Infinite energy until an infinite period end."""
    assert budget_kj(0.75, INF, INF, [0, 0]) == INF


@pytest.mark.parametrize("leniency", [0, -1.5, math.nan, None, True, "auto-matic"])
def test_leniency_is_checked(leniency):
    """The message names parameter, owner and what is legal."""
    with pytest.raises(InputError, match=r"energy_leniency.*mine.*inf"):
        energy_filter("mine", leniency)


def test_the_filter_needs_task_types():
    """Bags of distinct tasks have no ETC matrix."""
    from gridsched import Scenario

    bag = make_system(Scenario(ROOT / "platforms/ex_a.xml", ROOT / "examples/ex_a.csv", "wq").loaded())
    with pytest.raises(InputError, match="utility"):
        EnergyFilter(1.0).prepare(bag)
    EnergyFilter(1.0).prepare(make_system(b6_scenario("max_max_upe")))
