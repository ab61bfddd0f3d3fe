"""Runs under greater energy budgets that follow from one whose budget limited nothing."""

from __future__ import annotations

from pathlib import Path

from gridsched.campaign.campaign import Options, run_campaign
from gridsched.campaign.rerun import result_again
from gridsched.campaign.store import Store
from gridsched.runs.study import Study

#: A day of few tasks: 0.1 GJ are too little, 2 GJ are enough for everyone.
STUDY = """
name = "budgets"
seed = 5
driver = "reference"
network = "none"
schedulers = [
    { id = "max_upe", label = "UPE" },
    { id = "max_upr", label = "UPR, reserved", energy_filter = "none", mode = "reservation" },
    { id = "max_upr", label = "UPR, filter" },
    { id = "task_based", label = "Task-Based", counts_place_holders = true },
    { id = "conservative_backfilling", label = "Conservative", reservations = "permanent" },
    { id = "fcfs_multiple_queues", label = "Queues" },
    { id = "random_parallel", label = "Random" },
]

[workload]
generator = "parallel"
tasks_per_day = 200
total_cores = 8000
mapping_interval_s = 1800
energy_budget_j = [3e9, 2e9, 1e8]
"""
#: They look at the budget only to see whether something still fits.
ONLY_LIMITED = {"UPE", "UPR, reserved", "Conservative", "Queues", "Random"}


def test_rows_that_follow_are_those_of_runs_that_are_made(tmp_path: Path):
    """Each stored row, whether its run was made or not, has the metrics of its run made by itself, bit by bit."""
    study = Study.from_text(STUDY)
    store = Store.create(tmp_path / "store")
    progress = run_campaign(study, store, Options(workers=1))
    assert (progress.done, progress.failed, progress.followed) == (21, 0, len(ONLY_LIMITED))
    followed = set()
    for run in study.scenarios():
        row = store.row(run.run_id)
        again = result_again(store, run.run_id)
        assert repr(again.metrics()) == repr(row["metrics"])
        if origin := row["provenance"].get("follows_from"):
            followed.add((run.axes["scheduler"], run.axes["workload.energy_budget_j"]))
            assert store.row(origin)["scenario"]["workload"]["energy_budget_j"] == 2e9
            assert not again.trace.limited_by_budget
        elif run.axes["workload.energy_budget_j"] == 1e8:
            assert again.trace.limited_by_budget
    assert followed == {(label, 3e9) for label in ONLY_LIMITED}
