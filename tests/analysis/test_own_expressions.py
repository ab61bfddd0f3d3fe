"""A study's own metrics as expressions: in claims, figures, the report and its files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import small_study
from small_study import metrics_of, study_in

from gridsched.analysis.study_results import read_results
from gridsched.campaign.store import Store
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.figures.figure_file import style
from gridsched.figures.table import figures
from gridsched.metrics import METRICS, known_metrics
from gridsched.page.study_tables import mean_frame, mean_table
from gridsched.runs.study import Study

EXTRA = """
[expressions]
ed2p = { formula = "energy_j * makespan_s ** 2", unit = "J s^2", better = "less", meaning = "ED2P" }
watt = "ed2p / makespan_s ** 3 + 0 * energy_delay_js"

[[claims]]
id = "a"
source = "by hand"
metric = "ed2p"
scheduler = "wq"
paper = 0
tolerance = [-1e9, 1e9]
tolerance_set = "before"
kind = "number"
tolerance_ground = "made up"

[[figures]]
name = "own"
kind = "lines"
metric = "watt"
along = "workload.heterogeneity"
"""


@pytest.fixture(autouse=True)
def own_names():
    """What a study declares does not stay."""
    before = dict(METRICS)
    yield
    METRICS.clear()
    METRICS.update(before)


def test_expressions_are_metrics(small_store: Path, tmp_path: Path):
    """Each value by hand, in claims, figures and tables; no new run is needed."""
    text = small_study.of_metrics("energy_j", "ed2p") + EXTRA
    (tmp_path / "p.xml").write_text(small_study.PLATFORM)
    (tmp_path / "small.toml").write_text(text)
    results = read_results(str(small_store), Study.from_file(tmp_path / "small.toml"))
    assert results.metrics == ["energy_j", "ed2p"]
    for run in results.finished.to_dict("records"):
        metrics = metrics_of(run)
        energy, makespan = metrics["energy_j"], metrics["makespan_s"]
        assert run["ed2p"] == energy * makespan**2
        assert run["watt"] == pytest.approx(energy / makespan, rel=1e-15)
    assert results.failed["ed2p"].isna().all()
    (declared,) = results.study.figures
    with style():
        drawn = figures("declared")["lines"].draw(results, declared)
    assert drawn.figure.axes[0].get_ylabel() == "Watt"
    assert mean_table(results, "ed2p", mean_frame(results, "ed2p")).title == "Ed2p [J s^2]"
    assert main(["study", "claims", str(small_store), "--study", str(tmp_path / "small.toml")]) == 0


def test_they_are_kept_with_the_study(tmp_path: Path, capsys: pytest.CaptureFixture):
    """A store knows them without the study's file."""
    store = Store.create(tmp_path / "copy")
    store.add(study_in(tmp_path, EXTRA))
    writer = store.writer()
    for run in store.study().scenarios():
        writer.write(small_study.row_of(run) or small_study.row_of(next(store.study().scenarios())))
    writer.close()
    assert main(["study", "claims", str(store.root), "--json"]) == 0
    (claim,) = json.loads(capsys.readouterr().out)["claims"]
    assert claim["verdict"] == "reproduced"


def test_they_are_no_other_studys(tmp_path: Path):
    """A name that another study has given is unknown here, and a new meaning takes its place."""
    study_in(tmp_path, '\n[expressions]\nmine = "energy_j + 1"\n')
    assert "mine" in METRICS
    assert "mine" not in [metric.id for metric in known_metrics(["bag"])]
    assert "mine" not in study_in(tmp_path).metrics
    again = study_in(tmp_path, '\n[expressions]\nmine = "energy_j + 2"\n')
    (formula,) = again.formulas
    assert formula.metric.function({"energy_j": 1.0}) == 3.0


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('energy_j = "makespan_s"', "expressions.energy_j: is a metric already"),
        ('replicate = "makespan_s"', "expressions.replicate is a column of the results"),
        ('environment = "makespan_s"', "expressions.environment is a column of the results"),
        ('b = "a"\na = "tasks"', "expressions.b 'a': 'a' is no metric"),
        ('a = "energy_source"', "'energy_source' is no metric"),
        ("a = 5", "expressions.a is 5; "),
        ('a = { unit = "J" }', "expressions.a.formula is missing"),
    ],
)
def test_a_wrong_expression_is_named(tmp_path: Path, line: str, complaint: str):
    """File and key in one line."""
    with pytest.raises(InputError) as caught:
        study_in(tmp_path, f"\n[expressions]\n{line}\n")
    assert str(caught.value).startswith(str(tmp_path / "small.toml"))
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
