"""A study whose numbers are made by hand, so that every statistic is known beforehand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gridsched.campaign.store import Store
from gridsched.runs.study import Study

TEXT = """
name = "small"
title = "Small <study> & its claims"
source = "By hand"
seed = 7
replicates = 4
driver = "reference"
network = "none"
metrics = ["makespan_s", "energy_j", "energy_model_j"]
baseline = "lecsa"
schedulers = ["wq", "mct", "lecsa"]
platform = "p.xml"

[workload]
generator = "bag"
tasks = 4
mean_flops = 1.0
heterogeneity = [0.0, 0.5, 1.0]

[group.environment.low]
pstate = 0
[group.environment.high]
pstate = 1
"""


def of_metrics(*names: str) -> str:
    """Return the study's text with fewer metrics, and so with fewer figures to draw."""
    shown = ", ".join(f'"{name}"' for name in names)
    return re.sub(r"^metrics = .*$", f"metrics = [{shown}]", TEXT, flags=re.MULTILINE)


PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Full">
<host id="h" speed="1f,0.5f"><prop id="wattage_per_state" value="1:2:2,1:2:2"/></host>
</zone></platform>
"""

#: Energy above that of lecsa [%], exactly and in every replicate.
MORE = {"wq": 100.0, "mct": 50.0, "lecsa": 0.0}
FAILED = ("wq", 1.0, "high", (0, 1))
MISSING = ("mct", 0.5, "low", 3)


def metrics_of(axes: dict[str, Any]) -> dict[str, float]:
    """Return the made-up metrics of a run."""
    scheduler, replicate = axes["scheduler"], axes["replicate"]
    h = axes["workload.heterogeneity"]
    factor = 1 + MORE[scheduler] / 100
    if axes["environment"] == "high" and scheduler != "lecsa":
        factor += 0.1 + 0.2 * h  # savings are larger in the high environment
    energy = (100 + 10 * h + replicate) * factor
    makespan = {"wq": 10.0, "mct": 8.0, "lecsa": 16.0}[scheduler] + replicate
    return {"makespan_s": makespan, "energy_j": energy, "energy_model_j": energy}


#: What a file of claims imports, and what their tolerances are based on.
CLAIMS_HEAD = """
from gridsched.reproduction.claim_statistics import *
from gridsched.runs.claims_schema import BEST_OTHER, Claim, Explanation, Ground, numbered

BEFORE, AFTER = Ground("before", "made up"), Ground("after", "made up")
"""


def write_claims(folder: Path, claims: str, toml: str) -> str:
    """Write a file of claims; return the text of a study that names it."""
    (folder / "claims.py").write_text(CLAIMS_HEAD + claims)
    return f'claims = "claims.py"\n{toml}'


def study_in(folder: Path, extra: str = "", text: str = TEXT, claims: str = "") -> Study:
    """Return the small study, with further keys and claims if wanted, as a file in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "p.xml").write_text(PLATFORM)
    path = folder / "small.toml"
    text += extra
    path.write_text(write_claims(folder, claims, text) if claims else text)
    return Study.from_file(path, trust=True)


def row_of(run: Any) -> dict[str, Any] | None:
    """Return the row of a run, None for the one that is missing."""
    axes = run.axes
    name, h, environment = (axes[key] for key in ("scheduler", "workload.heterogeneity", "environment"))
    if (name, h, environment, axes["replicate"]) == MISSING:
        return None
    failed = (name, h, environment) == FAILED[:3] and axes["replicate"] in FAILED[3]
    return {
        "run_id": run.run_id,
        "status": "failed" if failed else "finished",
        "error": "InvalidDecision: task <3> on 'h' & more" if failed else None,
        "metrics": {} if failed else metrics_of(axes),
        "scenario": run.scenario,
        "provenance": {"gridsched": "0.1.0", "python": "3.11.2"},
        "timing": {"total_s": 0.1},
    }


def make_store(folder: Path) -> Path:
    """Make a store with the small study's rows."""
    study = study_in(folder.with_name(folder.name + "-study"))
    store = Store.create(folder)
    store.add(study)
    writer = store.writer()
    for run in study.scenarios():
        row = row_of(run)
        if row is not None:
            writer.write(row)
    writer.close()
    return folder
