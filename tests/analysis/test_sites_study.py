"""The study of sites: its made intensities, and what it asks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gridsched.runs.study import Study
from gridsched.runs.study_document import shipped_study_file

ROOT = Path(__file__).resolve().parents[2]


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
    assert all(claim.tolerance_set == "before" for claim in study.claims)
