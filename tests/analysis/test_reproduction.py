"""Statistics of claims, readings and the command that reproduces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from small_study import study_in, write_claims

from gridsched.analysis.statistics import (
    best_other,
    difference_of_medians,
    group_intervals,
    half_widths,
    mean_ranks,
    median_interval,
    paired_differences,
    percent_more,
    t_interval,
)
from gridsched.analysis.study_results import StudyResults, read_results
from gridsched.campaign.store import Store
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.reproduction.readings import best_reading, fit_readings, readings_table
from gridsched.runs.study import Study

# Intervals, paired differences and ranks, against hand computation and scipy.


def frame(rows: list[tuple]) -> pd.DataFrame:
    """Return rows of (cell, scheduler, replicate, value)."""
    return pd.DataFrame(rows, columns=["cell", "scheduler", "replicate", "value"])


def test_interval_by_hand():
    """1, 2, 3, 4, 5: mean 3, deviation sqrt(2.5), t(4) = 2.7764."""
    interval = t_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert interval.mean == 3.0
    assert interval.count == 5
    assert interval.half_width == pytest.approx(2.7764451 * 2.5**0.5 / 5**0.5, rel=1e-7)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40))
def test_interval_agrees_with_scipy(values: list[float]):
    """Mean and ends are those of scipy's interval of the same sample."""
    ours = t_interval(values)
    spread = stats.sem(values)
    if spread > 0:
        low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), spread)
        assert ours.low == pytest.approx(low, rel=1e-9, abs=1e-6)
        assert ours.high == pytest.approx(high, rel=1e-9, abs=1e-6)
    else:
        assert ours.half_width == pytest.approx(0.0, abs=1e-6)


def test_small_samples_have_no_interval():
    """No value: nan and 0; one: its mean without interval; nan values do not count."""
    assert t_interval([]).count == 0
    assert np.isnan(t_interval([]).mean)
    one = t_interval([7.0, np.nan])
    assert (one.mean, one.count) == (7.0, 1)
    assert np.isnan(one.low)
    assert np.isnan(half_widths(0.0, 1))


def test_median_with_the_interval_of_order_statistics():
    """Six values: the whole range, 1 - 2/64 sure; five cannot be 95 % sure. Of 50 the 18th, 33rd.

    P(at most 17 of 50 lie below the median) is 1.6 %, of at most 18 it is 3.2 %.
    """
    six = median_interval([6.0, 1, 5, 2, np.nan, 4, 3])
    assert (six.mean, six.low, six.high, six.count) == (3.5, 1.0, 6.0, 6)
    five = median_interval([1.0, 2, 3, 4, 5])
    assert five.mean == 3.0
    assert np.isnan([five.low, five.high]).all()
    fifty = median_interval(np.arange(1.0, 51.0))
    assert (fifty.mean, fifty.low, fifty.high) == (25.5, 18.0, 33.0)
    assert median_interval([]).count == 0


def test_difference_of_medians_keeps_pairs():
    """What pairs share is not an uncertainty; the sign is that of the first sample."""
    other = np.array([3.0, 50.0, 7.0, 20.0, 11.0])
    shifted = difference_of_medians(other + 4.0, other)
    assert (shifted.mean, shifted.low, shifted.high, shifted.count) == (4.0, 4.0, 4.0, 5)
    found = difference_of_medians(other, np.full(5, 11.0))
    assert found.mean == 0.0
    assert -8.0 <= found.low < 0.0 < found.high <= 39.0
    assert np.isnan(difference_of_medians([2.0], [1.0]).low)


def test_groups_agree_with_single_intervals():
    """Each group's row is the interval of its values, in order of appearance."""
    table = frame(
        [("b", "x", r, v) for r, v in enumerate([1.0, 4.0, 9.0])]
        + [("a", "x", r, v) for r, v in enumerate([2.0, np.nan, 6.0])]
    )
    found = group_intervals(table, ["cell"], "value")
    assert found["cell"].tolist() == ["b", "a"]
    for row, values in zip(found.itertuples(), ([1, 4, 9], [2, 6]), strict=True):
        expected = t_interval(values)
        assert (row.mean, row.count) == (expected.mean, expected.count)
        assert row.low == pytest.approx(expected.low)
        assert row.high == pytest.approx(expected.high)
    assert group_intervals(table, [], "value")["count"].tolist() == [5]


def test_percent_more_is_the_papers_difference():
    """100 (other - reference) / reference; nothing for a reference of 0."""
    assert percent_more([8000.0], [14000.0]) == pytest.approx([-42.857142857])
    assert percent_more([282.9], [100.0]) == pytest.approx([182.9])
    assert np.isnan(percent_more([1.0], [0.0])[0])


def test_pairs_are_of_one_replicate_and_cell():
    """Each run is compared with the baseline of its own cell and replicate, or with none."""
    table = frame(
        [
            ("a", "base", 0, 10.0),
            ("a", "other", 0, 15.0),
            ("a", "base", 1, 20.0),
            ("a", "other", 1, 30.0),
            ("a", "other", 2, 99.0),
            ("b", "base", 0, np.nan),
            ("b", "other", 0, 5.0),
        ]
    )
    pairs = paired_differences(table, ["cell"], "value", "base")
    assert pairs["difference"].tolist() == [5.0, 10.0]
    assert pairs["difference_percent"].tolist() == [50.0, 50.0]
    assert pairs["replicate"].tolist() == [0, 1]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.floats(1, 100), st.floats(-5, 5)), min_size=3, max_size=12), st.floats(-50, 50))
def test_pairing_removes_what_a_replicate_shares(pairs: list[tuple[float, float]], shift: float):
    """The interval of differences is that of a one-sample t-test on them."""
    rows = []
    for r, (base, noise) in enumerate(pairs):
        rows += [("a", "base", r, base), ("a", "other", r, base + shift + noise)]
    found = paired_differences(frame(rows), ["cell"], "value", "base")["difference"]
    interval = t_interval(found)
    assert interval.mean == pytest.approx(shift + np.mean([n for _, n in pairs]), abs=1e-9)
    low, _ = stats.t.interval(0.95, len(found) - 1, np.mean(found), max(stats.sem(found), 1e-300))
    assert interval.low == pytest.approx(low, abs=1e-6)


def test_ranks_and_best_other():
    """Least mean ranks 1, ties share; the best other leaves out the one that asks."""
    table = frame(
        [
            ("a", "x", 0, 1.0),
            ("a", "x", 1, 3.0),
            ("a", "y", 0, 2.0),
            ("a", "y", 1, 2.0),
            ("a", "z", 0, 5.0),
            ("b", "x", 0, 9.0),
            ("b", "y", 0, 4.0),
            ("b", "z", 0, 3.0),
        ]
    )
    ranks = mean_ranks(table, ["cell"], "value").set_index(["cell", "scheduler"])["rank"]
    assert ranks.to_dict() == {("a", "x"): 1, ("a", "y"): 1, ("a", "z"): 3, ("b", "x"): 3, ("b", "y"): 2, ("b", "z"): 1}
    best = best_other(table, ["cell"], "value", "x")
    assert best.values.tolist() == [["a", "y"], ["b", "z"]]
    assert best_other(table[table["cell"] == "a"], [], "value", "y").values.tolist() == [["x"]]


# Readings: fitted on one part, tested on the other, beside a constant; by hand.

READINGS = """
[readings]
axes = ["hosts", "scheduler"]
split = "environment"
"""
CLAIMS = """
CLAIMS = [
    Claim(f"c-{k}", "number", "", "table",
          percent_more("energy_j", "lecsa(share_rule=value)", BEST_OTHER,
                       where={"environment": environment, "heterogeneity": heterogeneity}),
          None, AFTER, paper=paper)
    for k, (environment, heterogeneity, paper) in numbered(
        ("low", 0.0, 10.0), ("low", 0.5, 20.0), ("low", 1.0, 60.0),
        ("high", 0.0, 12.0), ("high", 0.5, 22.0), ("high", 1.0, 32.0),
    )
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
    study = study_in(folder, groups + READINGS, text, CLAIMS)
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
    return read_results(str(folder / "store"), study)


def metrics_of(axes: dict) -> dict[str, float]:
    """Return 100 J for LECSA's variants but for their savings, relative to WQ; MCT needs more."""
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
    assert main(["study", "claims", results.place, "--trust"]) == 0
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
    claims = CLAIMS.replace("BEST_OTHER", '"wq"').replace("lecsa(share_rule=value)", "lecsa")
    study = study_in(tmp_path, READINGS.replace('["hosts", "scheduler"]', '["scheduler"]'), claims=claims)
    with pytest.raises(InputError, match="best_other"):
        fit_readings(read_results(str(small_store), study))


# A tiny study end to end, and the studies that come with gridsched.

STUDY = """
name = "end_to_end"
seed = 3
replicates = 3
driver = "reference"
metrics = ["makespan_s", "energy_j"]
baseline = "lecsa"
schedulers = ["wq", "lecsa"]
platform = "ex_a.xml"

[workload]
generator = "bag"
tasks = 6
mean_flops = 1000.0
heterogeneity = [0.0, 0.5, 1.0]
"""
JUDGED = """
CLAIMS = [
    Claim("least", "number", "", "section 3", worst_rank("energy_j", "lecsa"), 0.0, BEFORE, paper=1.0),
    Claim("number", "number", "", "made up", percent_more("energy_j", "lecsa", "wq"), 1.0, BEFORE, paper=1000.0),
]
"""


def test_reproduce_runs_reports_and_judges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    """One command runs, reports and judges; repeated, it runs nothing and reports the same."""
    platforms = Path(__file__).resolve().parents[2] / "platforms"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ex_a.xml").write_bytes((platforms / "ex_a.xml").read_bytes())
    (tmp_path / "s.toml").write_text(write_claims(tmp_path, JUDGED, STUDY))
    command = ["reproduce", "s.toml", "--workers", "1", "--trust"]
    assert main([*command, "--replicates", "2", "--quiet"]) == 0
    few = capsys.readouterr().err
    assert "claim number: missed without an explanation" in few
    assert "2 of the study's 3 replicates" in few
    assert main(["study", "claims", "end_to_end-results", "--quiet", "--trust"]) == 0
    assert main(command) == 1
    first = capsys.readouterr()
    assert "claim number: missed without an explanation" in first.err
    assert "2 claims: numbers 1 of 2 reproduced (1 direction only)" in first.out
    assert (tmp_path / "end_to_end-report.html").exists()
    written = (tmp_path / "end_to_end-report_files" / "claims.md").read_text(encoding="utf-8")
    assert written.startswith("# end_to_end: the paper's claims beside our runs\n")
    assert "| number |" in written
    page = (tmp_path / "end_to_end-report.html").read_bytes()
    write_claims(
        tmp_path, f'{JUDGED}\nEXPLANATIONS = [Explanation(("number",), "Made up.", ("replicate == 1",))]', STUDY
    )
    assert main([*command, "--quiet"]) == 0
    assert (tmp_path / "end_to_end-report.html").read_bytes() != page
    assert main(["study", "claims", "end_to_end-results", "--quiet", "--trust"]) == 0


@pytest.mark.parametrize(("name", "runs"), [("lecsa", 5400), ("lecsa_readings", 10_800)])
def test_shipped_studies(name: str, runs: int):
    """The studies are whole: their runs, the 30 rows of table 3 in each column, known labels."""
    study = Study.shipped(name)
    assert study.n_runs == runs
    for column in ("C", "PM", "PB"):
        papers = [claim for claim in study.claims if claim.id.startswith(f"{column}-")]
        assert len(papers) == 30
    values = {claim.id: claim.paper for claim in study.claims}
    assert all(values[f"PM-{k}"] == values[f"PB-{k}"] for k in range(1, 31))


def test_the_papers_own_averages():
    """Section 5 quotes the means of rows of table 3: they confirm the transcription (G6)."""
    values = {claim.id: claim.paper for claim in Study.shipped("lecsa").claims}

    def mean(column: str, rows: range) -> float:
        return sum(values[f"{column}-{k}"] for k in rows) / len(rows)

    assert mean("C", range(1, 6)) == pytest.approx(147.57, abs=0.01)
    assert mean("PM", range(16, 21)) == pytest.approx(-38.25, abs=0.005)
    assert mean("C", range(26, 31)) == pytest.approx(59.04, abs=0.005)
    assert mean("PM", range(11, 16)) == pytest.approx(-1.82, abs=0.005)
