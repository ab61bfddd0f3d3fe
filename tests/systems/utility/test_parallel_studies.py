"""The studies of paper 001: which runs they consist of, and what their claims are about."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gridsched.analysis.study_results import StudyResults
from gridsched.errors import InputError
from gridsched.policy.registry import make_scheduler
from gridsched.reproduction.claims import NO_DATA, judge
from gridsched.runs.study import Study
from gridsched.runs.study_claims import read_claims
from gridsched.runs.study_document import shipped_study_file


@pytest.fixture(scope="module")
def parallel() -> Study:
    """The study of 5,000 tasks a day, one trial of it."""
    return Study.shipped("parallel").with_replicates(1)


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


@pytest.mark.parametrize("name", ["parallel", "parallel_oversubscribed"])
def test_all_claims_are_of_all_trials(name: str):
    """From the seventh trial on only the rest of figures 12 and 13 is left out, which no claim is of."""
    study = Study.shipped(name).with_replicates(8)
    runs = [run for run in study.scenarios() if run.axes.get("driver", "reference") == "reference"]
    trials = Counter(run.axes["replicate"] for run in runs)
    assert [trials[k] for k in range(8)] == [246] * 6 + [113] * 2
    frame = pd.DataFrame([{"run_id": run.run_id, "status": "finished", "error": None, **run.axes} for run in runs])
    rng = np.random.default_rng(1)
    for metric in study.metrics:
        frame[metric] = rng.uniform(1.0, 2.0, len(frame))
    results = StudyResults(study, frame, [], "x")
    findings = judge(results)
    assert len(findings) == len(study.claims)
    for finding in findings:
        assert finding.verdict != NO_DATA, finding
        assert finding.ours.count == study.replicates, finding


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


@pytest.mark.parametrize(
    ("name", "runs", "extra"),
    [
        ("parallel_10000", 14, 0),
        ("parallel_testbed", 24, 0),
        ("parallel", 246, 4),
        ("parallel_oversubscribed", 246, 0),
        ("parallel_10000_oversubscribed", 14, 0),
        ("parallel_prices", 16, 0),
        ("parallel_pstates", 76, 0),  # 19 of each reading
        ("parallel_arrival", 18, 0),  # 27 where the log of Curie is
    ],
)
def test_how_many_runs_a_trial_has(name: str, runs: int, extra: int):
    """What the documents count with; the first trial has some on SimGrid as well."""
    study = Study.shipped(name)
    first, both = (study.with_replicates(count).n_runs for count in (1, 2))
    assert (first - extra, both - first) == (runs, runs)


def test_readings_are_chosen_and_judged_by_the_same_numbers():
    """Each reading by all; those that choose one are those that chose the load, and none of them judges."""
    study = Study.shipped("parallel_pstates")
    readings = study.document.content.workload["pstate_factor_of"]
    by_reading = {
        reading: {
            claim.id.removeprefix(f"{reading}-"): claim
            for claim in study.claims
            if claim.ours.where["pstate_factor_of"] == reading
        }
        for reading in readings
    }
    assert sorted(readings) == ["cluster", "pstate", "quantity", "quantity_and_pstate"]
    first = by_reading["cluster"]
    for claims in by_reading.values():
        assert [(name, claim.paper, claim.ours.schedulers) for name, claim in claims.items()] == [
            (name, claim.paper, claim.ours.schedulers) for name, claim in first.items()
        ]
    choose = [claim for claim in first.values() if claim.ground.set == "after"]
    chose_the_load = Study.shipped("parallel_inference").claims
    assert sorted((claim.ours.metric, claim.paper) for claim in choose) == sorted(
        (claim.ours.metric, claim.paper) for claim in chose_the_load
    )
    assert sum(map(len, by_reading.values())) == len(study.claims) == 4 * (7 + 17)


def test_a_log_is_fetched_by_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without any log nothing is left to run; where the whole one is absent, the excerpt is used."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="optional"):
        Study.shipped("parallel_curie")
    (tmp_path / "CEA-Curie_10day.swf.gz").touch()  # what it holds is not looked at yet
    excerpt = Study.shipped("parallel_curie")
    assert list(excerpt.files.absent) == ["CEA-Curie-2011-2.1-cln.swf.gz"]
    assert excerpt.with_replicates(1).n_runs == 250


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


@pytest.mark.parametrize("name", ["parallel", "parallel_10000", "parallel_curie"])
def test_what_the_oversubscribed_system_changes(name: str):
    """Load and utility classes, and of claims only what was chosen with in view."""
    text = shipped_study_file(f"{name}_oversubscribed").read_text(encoding="utf-8")
    changes = tomllib.loads(text)
    inferred = {"utility_classes", "urgency_unit_s"}
    if name != "parallel_curie":  # the load of a log is its own
        inferred |= {"load_factor"}
    assert (changes["extends"], set(changes["workload"])) == (name, inferred)
    assert not {"schedulers", "figures", "metrics"}.intersection(changes)
    printed, other = (
        read_claims(shipped_study_file(each).with_suffix(".py")) for each in (name, f"{name}_oversubscribed")
    )
    for one, again in zip(printed, other, strict=True):
        assert replace(again, ground=one.ground, explanation=one.explanation, run_ids=one.run_ids) == one
