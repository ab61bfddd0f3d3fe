"""Readings: fitted on one part, tested on the other, beside a constant; by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_study import study_in

from gridsched.analysis.study_results import StudyResults, read_results
from gridsched.campaign.store import Store
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.reproduction.readings import best_reading, fit_readings, readings_table
from gridsched.runs.study import Study

CLAIMS = """
[readings]
axes = ["hosts", "scheduler"]
split = "environment"

[[claims]]
id = "c"
source = "table"
metric = "energy_j"
statistic = "percent_more"
scheduler = "lecsa(share_rule=value)"
against = "best_other"
tolerance_set = "after"
kind = "number"
tolerance_ground = "made up"
columns = ["environment", "heterogeneity", "paper"]
rows = [
    ["low", 0.0, 10.0], ["low", 0.5, 20.0], ["low", 1.0, 60.0],
    ["high", 0.0, 12.0], ["high", 0.5, 22.0], ["high", 1.0, 32.0],
]
"""

#: Savings [%] of each (hosts, share rule), the same for all rows.
SAVINGS = {("few", "value"): 20.0, ("few", "levels"): 30.0, ("many", "value"): 90.0, ("many", "levels"): 22.0}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> StudyResults:
    """Results in which every reading has a constant saving."""
    folder = tmp_path_factory.mktemp("readings")
    study = study_in(folder)
    text = study.document.text.replace(
        'schedulers = ["wq", "mct", "lecsa"]',
        'schedulers = ["wq", "mct", { id = "lecsa", share_rule = ["value", "levels"] }]',
    ).replace('baseline = "lecsa"\n', "")
    groups = "[group.hosts.few]\nhosts_off = []\n[group.hosts.many]\nhosts_off = ['h']\n"
    (folder / "small.toml").write_text(text + groups + CLAIMS)
    study = Study.from_file(folder / "small.toml")
    store = Store.create(folder / "store")
    store.add(study)
    writer = store.writer()
    for run in study.scenarios():
        writer.write(
            {
                "run_id": run.run_id,
                "status": "finished",
                "error": None,
                "metrics": metrics_of(run.axes),
                "scenario": run.scenario,
                "provenance": {},
                "timing": {},
            }
        )
    writer.close()
    return read_results(str(folder / "store"))


def metrics_of(axes: dict) -> dict[str, float]:
    """Return 100 J for LECSA's variants but for their savings, which WQ tells; MCT needs more."""
    base = 100.0 + axes["replicate"]
    label = axes["scheduler"]
    if label in ("wq", "mct"):
        energy = base * (1.0 if label == "wq" else 3.0)
    else:
        rule = label.partition("=")[2].rstrip(")")
        energy = base / (1 + SAVINGS[axes["hosts"], rule] / 100)
    return {"makespan_s": 1.0, "energy_j": energy, "energy_model_j": energy}


def test_errors_by_hand(results: StudyResults):
    """Mean and median absolute errors of each reading and part; variants do not compete."""
    found = {tuple(each.values.values()): each for each in fit_readings(results)}
    assert len(found) == 4
    first = found["few", "lecsa(share_rule=value)"]
    assert first.errors == pytest.approx({"low": (10 + 0 + 40) / 3, "high": (8 + 2 + 12) / 3})
    assert first.medians == pytest.approx({"low": 10.0, "high": 8.0})
    assert found["many", "lecsa(share_rule=value)"].errors["high"] == pytest.approx(68.0)
    assert first.constants["low", "high"] == pytest.approx((18 + 8 + 2) / 3)  # predicting 30
    assert first.constants["high", "high"] == pytest.approx((10 + 0 + 10) / 3)  # predicting 22


def test_the_best_of_one_part_is_tested_on_the_other(results: StudyResults):
    """Fitted on low, few/value (16.7) beats the others; on high, many/levels (6.7)."""
    readings = fit_readings(results)
    assert list(best_reading(readings, "low").values.values()) == ["few", "lecsa(share_rule=value)"]
    assert list(best_reading(readings, "high").values.values()) == ["many", "lecsa(share_rule=levels)"]
    fits = readings_table(results, readings)[0]
    assert fits.rows[0][1:2] + fits.rows[0][3:] == ["low", "16.7", "high", "7.3", "9.3", "2 of 4"]
    assert fits.rows[1][3:] == ["6.7", "low", "17.3", "17.3", "2 of 4"]


def test_readings_by_the_command(results: StudyResults, capsys: pytest.CaptureFixture):
    """study claims prints the fits of a study that declares readings."""
    assert main(["study", "claims", results.place]) == 0
    shown = capsys.readouterr().out
    assert "Fitted on one part, tested on the other" in shown
    assert "All 4 readings: energy_j" in shown


def test_missing_runs_leave_a_reading_out(results: StudyResults):
    """A reading without all its numbers has no error; if none has, that is an error."""
    runs = results.runs.copy()
    is_few = (runs["hosts"] == "few") & (runs["scheduler"] == "lecsa(share_rule=value)")
    runs.loc[is_few & (runs["workload.heterogeneity"] == 1.0), "status"] = "failed"
    readings = fit_readings(StudyResults(results.study, runs, [], "x"))
    assert best_reading(readings, "low").values["scheduler"] == "lecsa(share_rule=levels)"
    runs["status"] = "failed"
    runs.loc[0, "status"] = "finished"
    with pytest.raises(InputError, match="finished"):
        best_reading(fit_readings(StudyResults(results.study, runs, [], "x")), "low")


def test_claims_that_cannot_be_fitted(tmp_path: Path, small_store: Path):
    """Claims of another statistic are refused; so is a study without readings."""
    with pytest.raises(InputError, match=r"\[readings\]"):
        fit_readings(read_results(str(small_store)))
    text = CLAIMS.replace('"best_other"', '"wq"').replace("lecsa(share_rule=value)", "lecsa")
    text = text.replace('["hosts", "scheduler"]', '["scheduler"]')
    study = study_in(tmp_path, text)
    with pytest.raises(InputError, match="best_other"):
        fit_readings(read_results(str(small_store), study))
