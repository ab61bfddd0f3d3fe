"""The shipped studies: what they declare, and what their claims say of made rows."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.platform_io.from_table import platform_from_table
from gridsched.platform_io.recipe import PlatformRecipe
from gridsched.platform_io.tables import read_machine_table
from gridsched.policy.registry import make_scheduler
from gridsched.runs.study import Study
from gridsched.runs.study_claims import read_claims
from gridsched.runs.study_document import shipped_study_file, studies_folder

# The platforms that the shipped LECSA studies draw.

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


# The studies of paper 001: which runs they consist of, and what their claims are about.


@pytest.fixture(scope="module")
def parallel() -> Study:
    """The study of 5,000 tasks a day, one trial of it."""
    return Study.shipped("parallel").with_replicates(1)


@pytest.mark.systems("utility")
def test_the_runs_of_a_trial(parallel: Study):
    """All at 12 GJ; no filter and the filter per resource at the other budgets; one without."""
    budget = "workload.energy_budget_j"
    runs = [run.axes for run in parallel.scenarios()]
    reference = [axes for axes in runs if axes["driver"] == "reference"]
    assert len(runs) - len(reference) == 4
    counts = Counter(axes[budget] for axes in reference)
    assert counts[12e9] == len(parallel.schedulers)
    assert counts.pop(float("inf")) == 1
    others = {budget: count for budget, count in counts.items() if budget != 12e9}
    assert set(others) == {k * 1e9 for k in range(8, 19)} - {12e9}
    assert set(others.values()) == {6 * 2 + 4}


@pytest.mark.systems("utility")
def test_comparison_heuristics_reserve_and_have_no_filter(parallel: Study):
    """Section 3.4: permanent reservations, the first cluster; no energy filter."""
    found = {each.label: make_scheduler(each.id, each.parameters).parameters for each in parallel.schedulers}
    common = {"reservations": "permanent", "cluster_choice": "first"}
    for label in ("Conservative", "EASY"):
        assert found[label].items() >= {**common, "dropping_threshold": 0.5}.items()
        of_figure_8 = found[f"{label} dropping(dropping_threshold=0.0)"]
        assert of_figure_8.items() >= {**common, "dropping_threshold": 0.0}.items()
    assert found["UPE(energy_filter=none)"]["mode"] == "placeholder"
    assert found["UPE, reserved(energy_filter=none)"]["mode"] == "reservation"


@pytest.mark.systems("utility")
@pytest.mark.parametrize(
    ("name", "runs", "extra"),
    [
        ("parallel_10000", 14, 0),
        ("parallel_testbed", 24, 0),
        ("parallel", 246, 4),
        ("parallel_oversubscribed", 246, 0),
        ("parallel_10000_oversubscribed", 14, 0),
        ("parallel_prices", 16, 0),
        ("parallel_arrival", 18, 0),  # 27 where the log of Curie is
    ],
)
def test_how_many_runs_a_trial_has(name: str, runs: int, extra: int):
    """What the documents count with; the first trial has some on SimGrid as well."""
    study = Study.shipped(name)
    first, both = (study.with_replicates(count).n_runs for count in (1, 2))
    assert (first - extra, both - first) == (runs, runs)


@pytest.mark.systems("utility")
def test_a_log_is_fetched_by_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without any log nothing is left to run; where the whole one is absent, the excerpt stands."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="optional"):
        Study.shipped("parallel_curie")
    (tmp_path / "CEA-Curie_10day.swf.gz").touch()  # what it holds is not looked at yet
    excerpt = Study.shipped("parallel_curie")
    assert list(excerpt.files.absent) == ["CEA-Curie-2011-2.1-cln.swf.gz"]
    assert excerpt.with_replicates(1).n_runs == 250


@pytest.mark.systems("utility")
def test_tolerances_say_what_they_were_written_with():
    """What nodes, load and classes were chosen with in view is "after"."""
    for name, after in (
        ("parallel", ["F2-1", "F8"]),
        ("parallel_10000", ["F8-1"]),
        ("parallel_oversubscribed", ["F1-1", "F1-2", "F1-3", "F2-1", "F2-3", "F7-1", "F8"]),
        ("parallel_10000_oversubscribed", ["F8-1"]),
    ):
        claims = Study.shipped(name).claims
        assert [claim.id for claim in claims if claim.ground.set == "after"] == after


@pytest.mark.systems("utility")
@pytest.mark.parametrize("name", ["parallel", "parallel_10000", "parallel_curie"])
def test_what_the_oversubscribed_system_changes(name: str):
    """Load and utility classes, and of claims only what was chosen with in view."""
    text = (studies_folder() / f"{name}_oversubscribed.toml").read_text(encoding="utf-8")
    changes = tomllib.loads(text)
    inferred = {"utility_classes", "urgency_unit_s"}
    if name != "parallel_curie":  # the load of a log is its own
        inferred |= {"load_factor"}
    assert (changes["extends"], set(changes["workload"])) == (name, inferred)
    assert not {"schedulers", "figures", "metrics"}.intersection(changes)
    printed, other = (read_claims(studies_folder() / f"{each}.py") for each in (name, f"{name}_oversubscribed"))
    for one, again in zip(printed, other, strict=True):
        assert replace(again, ground=one.ground, explanation=one.explanation, run_ids=one.run_ids) == one


@pytest.mark.systems("robust")
def test_no_tolerance_of_a_paper_s_range_is_wider():
    """Where the papers print ranges, the tolerances are these: "two to three percent", "between 100 and 182.9 %"."""
    ranges = {
        (name, claim.id): (claim.paper_range, claim.tolerance)
        for name in ("robust", "lecsa")
        for claim in Study.shipped(name).claims
        if claim.paper_range is not None
    }
    assert len(ranges) == 9
    assert all(printed == tolerance for printed, tolerance in ranges.values())
    assert ranges["robust", "F6-2"][0] == (2.0, 3.0)
    assert ranges["lecsa", "F6-least"][0] == (23.2, 150.24)


# The study of paper 003: its runs, its claims, and the measured machines that come with it.


# The study of paper 002: its runs, and the numbers that the paper prints of its system.


# The study of sites: its made intensities, and what it asks.

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.systems("utility")
@pytest.mark.parametrize("week", [1, 2, 3])
def test_the_weeks_are_what_the_script_makes(week: int):
    """The seed is the number of the week."""
    script = ROOT / "examples/make_site_intensities.py"
    patterns = [f"general{k}-*" for k in (1, 2, 3, 4)]
    for name, others in (("sites", []), ("sites_utility", patterns)):
        command = [sys.executable, script, str(week), "7", *others]
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


@pytest.mark.systems("utility")
@pytest.mark.parametrize(
    ("name", "runs", "seed"),
    [
        ("sites", 2 * 3 * 23 * 10, 2026),  # idle powers, weeks, schedulers, bags
        ("sites_utility", 3 * (4 + 2) * 8, 2027),  # weeks, schedulers with and without a budget, days
    ],
)
def test_its_runs(name: str, runs: int, seed: int):
    """What the page counts with; no seed of its making."""
    study = Study.shipped(name)
    assert (study.n_runs, study.seed) == (runs, seed)
    assert all(claim.ground.set == "before" for claim in study.claims)
