"""The platforms that the shipped LECSA studies draw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gridsched.model.platform import Platform
from gridsched.platform_io.from_table import platform_from_table
from gridsched.platform_io.recipe import PlatformRecipe
from gridsched.platform_io.tables import read_machine_table
from gridsched.runs.study_document import studies_folder

BASE = PlatformRecipe(hosts=90, efficiency="real", idle_power_w=(4.0, 12.0))
ENV_1 = replace(BASE, rows="4-6")
LEVELS = dict(
    zip(range(6000, 15000, 1000), (0.070, 0.045, 0.098, 0.094, 0.066, 0.018, 0.049, 0.081, 0.029), strict=True)
)


def platform(recipe: PlatformRecipe) -> Platform:
    """Return the platform of a recipe on table 2."""
    return platform_from_table(read_machine_table(studies_folder() / "lecsa_table2.csv"), recipe)


def speeds_and_efficiencies(recipe: PlatformRecipe) -> tuple[np.ndarray, np.ndarray]:
    """Return speed and efficiency of each host."""
    states = [host.pstates[0] for host in platform(recipe).hosts]
    speed = np.array([state.speed for state in states])
    return speed, speed / np.array([state.busy_w for state in states])


def test_shuffling_changes_the_order_alone():
    """Without it hosts stand in the table's order; with it the same hosts stand elsewhere."""
    ordered, _ = speeds_and_efficiencies(ENV_1)
    shuffled, _ = speeds_and_efficiencies(replace(ENV_1, shuffle=True))
    assert ordered.tolist() == [9000.0] * 30 + [10000.0] * 30 + [11000.0] * 30
    assert sorted(shuffled) == ordered.tolist()
    assert shuffled.tolist() != ordered.tolist()
    levels = replace(ENV_1, speed_levels=(9000.0, 10000.0, 11000.0))
    assert shuffled.tolist() == speeds_and_efficiencies(levels)[0].tolist()


def test_uniform_speeds_lie_between_the_rows():
    """speed_uniform = "rows" draws between the slowest and the fastest row used."""
    for recipe, low, high in ((ENV_1, 9000, 11000), (BASE, 6000, 14000)):
        recipe = replace(recipe, speed_uniform="rows", efficiency="nearest")
        explicit = replace(recipe, speed_uniform=(float(low), float(high)))
        speed, efficiency = speeds_and_efficiencies(recipe)
        assert low <= speed.min() < speed.max() <= high
        assert speed.tolist() == speeds_and_efficiencies(explicit)[0].tolist()
        nearest = [LEVELS[min(LEVELS, key=lambda level: (abs(level - s), level))] for s in speed]
        assert efficiency == pytest.approx(nearest)


def test_linear_efficiency_is_interpolated():
    """Between two levels the efficiency is on the straight line through them."""
    recipe = replace(BASE, speed_uniform="rows", efficiency="linear")
    speed, efficiency = speeds_and_efficiencies(recipe)
    for s, e in zip(speed, efficiency, strict=True):
        below = min(int(s // 1000 * 1000), 13000)
        share = (s - below) / 1000
        expected = (1 - share) * LEVELS[below] + share * LEVELS[below + 1000]
        assert e == pytest.approx(expected)


def test_replicates_draw_anew():
    """Another replicate has other hosts under the same ids; the same one repeats."""
    recipe = replace(ENV_1, shuffle=True)
    assert platform(recipe).hosts == platform(recipe).hosts
    assert platform(recipe).hosts != platform(replace(recipe, replicate=1)).hosts
