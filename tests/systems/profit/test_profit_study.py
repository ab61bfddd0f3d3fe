"""The study of paper 003: its runs, its claims, and the measured machines that come with it."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest

from gridsched.optimize.named_bag import bag_of_parameters
from gridsched.runs.study import Study
from gridsched.runs.study_document import shipped_study_file
from gridsched.systems.profit.profit_system import ProfitBag


@cache
def study() -> Study:
    """The shipped study; two bags are enough to see what is run."""
    path = shipped_study_file("profit")
    text = path.read_text(encoding="utf-8")
    assert "replicates = 100" in text
    return Study.from_text(text.replace("replicates = 100", "replicates = 2"), path)


def test_the_runs_of_the_study():
    """Optimizations of every kind of bags, and two executions of a plan on each system."""
    runs = list(study().scenarios())
    kinds = Counter((run.axes["driver"], run.axes["bags"]) for run in runs)
    sizes = [f"{number} per machine" for number in (5, 10, 30)]
    assert all(kinds["optimize", size] == 2 * 3 for size in sizes)
    for bags in ("paper", "idle power", "measured"):
        assert kinds["reference", bags] == kinds["simgrid", bags] == 1
        assert kinds["optimize", bags] >= 2 * 40
    assert len({run.run_id for run in runs}) == len(runs) == study().n_runs


def test_every_claim_of_the_paper_has_a_row():
    """F-003 but for row 4, which is the run time: benchmarks/profit.py measures it."""
    rows = {claim.id.partition("-")[0] for claim in study().claims}
    assert {"F1", "F2", "F3", "F5", "F6", "F7"} <= rows


def test_the_measured_machines():
    """7 machines x 10 programs; 12 of the 70 pairs were not measured and cannot run."""
    files = {
        f"{name}_csv": str(shipped_study_file("profit").with_name(f"profit_measured_{name}.csv"))
        for name in ("machines", "etc", "apc")
    }
    bag = bag_of_parameters(ProfitBag(**files), "measured")
    assert bag.etc.shape == (10, 7)
    assert np.isinf(bag.etc).sum() == 12
    assert bag.machines.tolist() == [40] * 7
    assert not bag.idle_w.any()
    at = bag.task_types.index("bt"), bag.machine_types.index("xeon")
    assert (bag.etc[at], bag.apc[at]) == (123.63, 130.166)
    assert bag.tasks.sum() == 11_000


@pytest.mark.parametrize("bags", ["paper", "measured"])
def test_bags_of_a_replicate_are_the_same_for_all_schedulers(bags: str):
    """Their scenarios differ in the scheduler and the driver alone."""
    runs = [run.scenario for run in study().scenarios(lambda axes: axes["bags"] == bags)]
    assert len({(run["replicate"], str(run["workload"]), run["seed"]) for run in runs}) == 2
