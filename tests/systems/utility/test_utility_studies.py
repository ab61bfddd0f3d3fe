"""The study that judges the energy filter that chooses its leniency."""

from __future__ import annotations

from gridsched.runs.study import Study


def test_utility_auto_has_other_seeds_and_both_goals():
    """Five settings, each heuristic with 13 leniencies and auto, 12 trials, other seeds."""
    study = Study.shipped("utility_auto")
    assert study.n_runs == 5 * 4 * (13 + 1) * 12
    assert [each.parameters.get("energy_leniency") for each in study.schedulers].count("auto") == 4
    assert not 1000 <= study.seed <= 1019
    assert study.seed != Study.shipped("utility").seed
    goals = [claim for claim in study.claims if claim.id.startswith(("best-", "recommended-"))]
    assert len(goals) == 2 * 5 * 4
    for claim in goals:
        assert claim.tolerance == (-2.0, 1000.0)
        assert claim.ours.schedulers["against"].endswith(" auto")
