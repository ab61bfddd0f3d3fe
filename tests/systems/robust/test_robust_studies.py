"""The studies of paper 002: their runs, and the numbers that the paper prints of its system."""

from __future__ import annotations

import pytest

from gridsched.policy.registry import make_scheduler
from gridsched.runs.study import Study
from gridsched.systems.robust.deadline import CheapestInTime
from gridsched.systems.robust.robust_trial import RobustTrial, draw_robust_system


def system_of(seed: int):
    """Return the system of a seed."""
    return draw_robust_system(RobustTrial(system_seed=seed))


def has_the_papers_numbers(seed: int) -> bool:
    """Claim F-002, row 10: mean run time, power of P4 over P0, least frequency over the largest."""
    system = system_of(seed)
    share = system.power_w[:, -1] / system.power_w[:, 0]
    frequency = system.slowdown[:, 0] / system.slowdown[:, -1]
    return bool(
        system.t_avg_s == pytest.approx(1353.0, rel=0.03) and 0.22 <= share.mean() <= 0.29 and frequency.min() >= 0.40
    )


def test_the_runs_of_the_robust_study():
    """50 trials of 20 variants, and one trial of each on SimGrid; every claim of F-002."""
    study = Study.shipped("robust")
    assert len(study.schedulers) == 20
    assert study.n_runs == 50 * 20 + 20
    rows = {claim.id.partition("-")[0] for claim in study.claims}
    assert rows == {f"F{k}" for k in range(1, 11)}


def test_no_tolerance_of_a_printed_range_is_wider():
    """Where paper 002 prints ranges, as "two to three percent", the tolerances are these."""
    ranges = {
        claim.id: (claim.paper_range, claim.tolerance)
        for claim in Study.shipped("robust").claims
        if claim.paper_range is not None
    }
    assert len(ranges) == 3
    assert all(printed == tolerance for printed, tolerance in ranges.values())
    assert ranges["F6-2"][0] == (2.0, 3.0)


def test_remap_is_judged_on_the_same_trials():
    """Its runs without remap are those of the study, with the same ids: one store serves both."""
    ids = {run.run_id for run in Study.shipped("robust").scenarios()}
    runs = list(Study.shipped("robust_remap").scenarios())
    without = [run.run_id for run in runs if "remap=False" in run.axes["scheduler"]]
    assert len(runs) == 2 * len(without) == 400
    assert ids.issuperset(without)


def test_the_least_chance_was_chosen_on_other_seeds():
    """The study that judges has the trials of robust; the one that chooses has other ones."""
    judging, choosing = (Study.shipped(f"robust_in_time{name}") for name in ("", "_choice"))
    robust = Study.shipped("robust")
    assert (judging.seed, judging.replicates) == (robust.seed, robust.replicates)
    assert choosing.seed != judging.seed
    made = [make_scheduler(each.id, each.parameters) for each in choosing.schedulers]
    assert CheapestInTime().least_chance in {each.parameters.get("least_chance") for each in made}


def test_the_system_is_the_first_with_the_papers_numbers():
    """As the study's file states: no seed before it has them."""
    seed = Study.shipped("robust").document.content.workload["system_seed"]
    assert [has_the_papers_numbers(k) for k in range(seed + 1)] == [False] * seed + [True]


def test_all_variants_of_a_trial_meet_the_same():
    """Their scenarios differ in the scheduler and the driver alone."""
    runs = list(Study.shipped("robust").with_replicates(2).scenarios())
    texts = {(each.axes["replicate"], str(each.scenario["workload"])) for each in runs}
    seeds = {(each.axes["replicate"], each.scenario["seed"]) for each in runs}
    assert len(texts) == len(seeds) == 2
