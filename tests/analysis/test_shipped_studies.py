"""The shipped studies: what they declare, and what their claims say of made rows."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gridsched.model.platform import Platform
from gridsched.platform_io.from_table import platform_from_table
from gridsched.platform_io.recipe import PlatformRecipe
from gridsched.platform_io.tables import read_machine_table
from gridsched.runs.study import Study
from gridsched.runs.study_document import shipped_study_file

# The platforms that the shipped LECSA studies draw.

BASE = PlatformRecipe(hosts=90, efficiency="real", idle_power_w=(4.0, 12.0))
ENV_1 = replace(BASE, rows="4-6")
LEVELS = dict(
    zip(range(6000, 15000, 1000), (0.070, 0.045, 0.098, 0.094, 0.066, 0.018, 0.049, 0.081, 0.029), strict=True)
)


def platform(recipe: PlatformRecipe) -> Platform:
    """Return the platform of a recipe on table 2."""
    return platform_from_table(read_machine_table(shipped_study_file("lecsa").with_name("lecsa_table2.csv")), recipe)


def speeds_and_efficiencies(recipe: PlatformRecipe) -> tuple[np.ndarray, np.ndarray]:
    """Return speed and efficiency of each host."""
    states = [host.pstates[0] for host in platform(recipe).hosts]
    speed = np.array([state.speed for state in states])
    return speed, speed / np.array([state.busy_w for state in states])


def test_shuffling_changes_the_order_alone():
    """Without it hosts have the table's order; with it the same hosts have another one."""
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


def test_no_tolerance_of_a_range_of_paper_004_is_wider():
    """Where it prints ranges, as from 23.2 to 150.24 %, the tolerances are these."""
    ranges = {
        claim.id: (claim.paper_range, claim.tolerance)
        for claim in Study.shipped("lecsa").claims
        if claim.paper_range is not None
    }
    assert len(ranges) == 6
    assert all(printed == tolerance for printed, tolerance in ranges.values())
    assert ranges["F6-least"][0] == (23.2, 150.24)


# The study of sites: its made intensities, and what it asks.

ROOT = Path(__file__).resolve().parents[2]


GENERAL = [f"general{k}-*" for k in (1, 2, 3, 4)]


@pytest.mark.parametrize("week", [1, 2, 3])
@pytest.mark.parametrize(
    ("name", "patterns"), [("sites", []), pytest.param("sites_utility", GENERAL, marks=pytest.mark.systems("utility"))]
)
def test_the_weeks_are_what_the_script_makes(name: str, patterns: list[str], week: int):
    """The seed is the number of the week."""
    command = [sys.executable, ROOT / "examples/make_site_intensities.py", str(week), "7", *patterns]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shipped_study_file(name).with_name(f"{name}_week{week}.csv").read_text() == made


def test_intensities_follow_the_formula():
    """The sun's site is low at noon of its own time and high in the evening; wind has no hour of its own."""
    lines = [
        line.split(",")
        for line in shipped_study_file("sites").with_name("sites_week1.csv").read_text().splitlines()[2:]
    ]
    by_site = {name: np.array([float(g) for host, _, g in lines if host == name]) for name in ("coal", "wind", "sun")}
    days = by_site["sun"].reshape(7, 24).mean(axis=0)
    assert days[12 - 2] < 0.5 * days[20 - 2]  # two hours east
    assert all(len(each) == 168 and each.min() >= 10 for each in by_site.values())
    spread = {name: np.std(each) / np.mean(each) for name, each in by_site.items()}
    assert spread["coal"] < 0.2 < spread["wind"]


@pytest.mark.parametrize(
    ("name", "runs", "seed"),
    [
        ("sites", 2 * 3 * 23 * 10, 2026),  # idle powers, weeks, schedulers, bags
        pytest.param(  # weeks, schedulers with and without a budget, days
            "sites_utility", 3 * (4 + 2) * 8, 2027, marks=pytest.mark.systems("utility")
        ),
    ],
)
def test_its_runs(name: str, runs: int, seed: int):
    """What the page counts with; no seed of its making."""
    study = Study.shipped(name)
    assert (study.n_runs, study.seed) == (runs, seed)
    assert all(claim.ground.set == "before" for claim in study.claims)
