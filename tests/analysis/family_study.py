"""A study of two scheduler families along a parameter, with hand-made metrics and series."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from small_study import write_claims

from gridsched.campaign.store import Store
from gridsched.runs.study import Study

TEXT = """
name = "family"
replicates = 3
driver = ["reference", "simgrid"]
network = "none"
series_step_s = 3600
metrics = ["window_utility", "window_energy_j"]
baseline = "wq"
only = "(driver == 'reference' or replicate == 0) and (budget == 'some' or scheduler == 'a(max_replicas=4)')"
schedulers = [
    { id = "wqr", label = "a", max_replicas = [1, 2, 4] },
    { id = "wqr", label = "b", pick = "random", max_replicas = [1, 2, 4] },
    "wq",
]

[workload]
generator = "utility"
days = 0.5

[group.budget.some]
workload = { energy_budget_j = 100.0 }
[group.budget.none]
workload = { energy_budget_j = inf }

[report]
where = { driver = "reference", budget = "some" }

[[figures]]
name = "best-utility"
kind = "best"
metric = "window_utility"
along = "max_replicas"
[[figures]]
name = "energy"
kind = "sweep"
metric = "window_energy_j"
along = "max_replicas"
limit = "energy_budget_j"
[[figures]]
name = "energy-over-time"
kind = "traces"
metric = "window_energy_j"
along = "max_replicas"
levels = [1, 4]
limit = "energy_budget_j"
"""
UTILITY = {
    "a(max_replicas=1)": (10, 12, 14),
    "a(max_replicas=2)": (20, 22, 24),
    "a(max_replicas=4)": (16, 18, 20),
    "b(max_replicas=1)": (30, 33, 36),
    "b(max_replicas=2)": (28, 30, 32),
    "b(max_replicas=4)": (30, 30, 30),
    "wq": (4, 5, 6),
}
ENERGY_J = {
    "a(max_replicas=1)": (50, 60, 70),
    "a(max_replicas=2)": (75, 90, 105),
    "b(max_replicas=1)": (40, 40, 40),
    "b(max_replicas=2)": (80, 80, 80),
}
#: Share of the energy that is drawn by each full hour.
SHARES = {"a(max_replicas=4)": (0, 0.6, 1, 1, 1)}
#: Tasks by predicted chance, of `wq` alone: 4 near 0.25, none near 0.5, 6 near 0.9.
CHANCES = {"chance_tasks": [4.0, 0.0, 6.0], "chance_sum": [1.0, 0.0, 5.4], "chance_in_time": [2.0, 0.0, 5.0]}
UNLIMITED_J = (150, 160, 140)


def study_in(folder: Path, extra: str = "", claims: str = "") -> Study:
    """Return the study, with further keys and claims if wanted, as a file in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "family.toml"
    path.write_text(write_claims(folder, claims, TEXT + extra) if claims else TEXT + extra)
    return Study.from_file(path, trust=True)


def row_of(run: Any) -> dict[str, Any]:
    """Return the made-up row of a run; SimGrid's differ a little, in one metric a lot."""
    label, replicate = run.axes["scheduler"], run.axes["replicate"]
    is_simgrid, is_limited = run.axes["driver"] == "simgrid", run.axes["budget"] == "some"
    energy_j = ENERGY_J.get(label, (100, 100, 100))[replicate]
    energy_j = float(energy_j if is_limited else UNLIMITED_J[replicate])
    utility = float(UTILITY[label][replicate])
    metrics = {
        "window_utility": 1000.0 if is_simgrid and label == "wq" else utility,
        "window_energy_j": energy_j,
        "energy_budget_j": 100.0 if is_limited else "inf",
        "energy_model_j": energy_j * (1 + 1e-12 * is_simgrid),
        "energy_j": energy_j,
        "tasks_finished": 10 + (is_simgrid and label == "a(max_replicas=2)"),
        "energy_relative_difference": 3e-13 if is_simgrid else None,
    }
    shares = SHARES.get(label, (0, 0.25, 0.5, 0.75, 1))
    return {
        "run_id": run.run_id,
        "status": "finished",
        "error": None,
        "metrics": metrics,
        "scenario": run.scenario,
        "provenance": {"gridsched": "0.1.0"},
        "timing": {"total_s": 0.1},
        "series": {
            "time_s": [3600.0 * k for k in range(1, 6)],
            "energy_j": [energy_j * share for share in shares],
            "utility": [utility * share for share in shares],
            **(CHANCES if label == "wq" else {}),
        },
    }


def make_store(folder: Path) -> Path:
    """Make a store with all rows of the study."""
    study = study_in(folder.with_name(folder.name + "-study"))
    store = Store.create(folder)
    store.add(study)
    writer = store.writer()
    for run in study.scenarios():
        writer.write(row_of(run))
    writer.close()
    return folder
