"""A tiny study end to end, and the studies that come with gridsched."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsched.cli.app import main
from gridsched.runs.study import Study

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

[[claims]]
id = "least"
source = "section 3"
metric = "energy_j"
statistic = "worst_rank"
scheduler = "lecsa"
paper = 1.0
tolerance = 0.0
tolerance_set = "before"
kind = "number"
tolerance_ground = "made up"

[[claims]]
id = "number"
source = "made up"
metric = "energy_j"
statistic = "percent_more"
scheduler = "lecsa"
against = "wq"
paper = 1000.0
tolerance = 1.0
tolerance_set = "before"
kind = "number"
tolerance_ground = "made up"
"""


def test_reproduce_runs_reports_and_judges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    """One command runs, reports and judges; repeated, it runs nothing and says the same."""
    platforms = Path(__file__).resolve().parents[2] / "platforms"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ex_a.xml").write_bytes((platforms / "ex_a.xml").read_bytes())
    (tmp_path / "s.toml").write_text(STUDY)
    command = ["reproduce", "s.toml", "--workers", "1"]
    assert main([*command, "--replicates", "2", "--quiet"]) == 0
    few = capsys.readouterr().err
    assert "claim number: missed without an explanation" in few
    assert "2 of the study's 3 replicates" in few
    assert main(["study", "claims", "end_to_end-results", "--quiet"]) == 0
    assert main(command) == 1
    first = capsys.readouterr()
    assert "claim number: missed without an explanation" in first.err
    assert "2 claims: numbers 1 of 2 reproduced (1 direction only)" in first.out
    assert (tmp_path / "end_to_end-report.html").exists()
    written = (tmp_path / "end_to_end-report_files" / "claims.md").read_text(encoding="utf-8")
    assert written.startswith("# end_to_end: the paper's claims beside our runs\n")
    assert "| number |" in written
    page = (tmp_path / "end_to_end-report.html").read_bytes()
    explained = 'explanation = "Made up."\nrun_ids = ["replicate == 1"]\n'
    (tmp_path / "s.toml").write_text(STUDY + explained)
    assert main([*command, "--quiet"]) == 0
    assert (tmp_path / "end_to_end-report.html").read_bytes() != page
    assert main(["study", "claims", "end_to_end-results", "--quiet"]) == 0


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
