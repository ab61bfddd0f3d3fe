"""Derived metrics, and metrics and expressions of one's own."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow.parquet
import pytest
import small_study
from small_study import metrics_of, study_in

from gridsched.analysis.study_results import read_results
from gridsched.campaign.messages import Job
from gridsched.campaign.rerun import rerun
from gridsched.campaign.store import Store
from gridsched.campaign.worker import perform
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.figures.figure_style import style
from gridsched.metrics import METRICS, known_metrics
from gridsched.page.study_report import files_folder, write_report
from gridsched.page.study_tables import mean_frame, mean_table
from gridsched.runs.figure_kinds import figure_kinds
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.study import Study

# Metrics that follow from stored rows: distances from the bounds, energy times delay.

#: Speed [flop/s] and full power [W]; idle hosts draw 1 W.
HOSTS = {"a": (2.0, 5), "b": (1.0, 2)}
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Full">
<host id="a" speed="2f"><prop id="wattage_per_state" value="1:5:5"/></host>
<host id="b" speed="1f"><prop id="wattage_per_state" value="1:2:2"/></host>
</zone></platform>
"""
STUDY = """
name = "distances"
driver = "reference"
network = "none"
replicates = 2
seed = 5
schedulers = {schedulers}
platform = "p.xml"
metrics = {metrics}

[workload]
generator = "bag"
mean_flops = 6.0
tasks = [1, 7]
"""
ALL = '["makespan_s", "energy_j", "energy_above_bound", "makespan_above_bound", "energy_delay_js"]'


def results_of(folder: Path, schedulers: str, metrics: str = ALL):
    """Run the study and read its results."""
    (folder / "p.xml").write_text(PLATFORM)
    path = folder / "study.toml"
    path.write_text(STUDY.format(schedulers=schedulers, metrics='["energy_j"]'))
    study, store = Study.from_file(path), Store.create(folder / "store")
    store.add(study)
    writer, maker = store.writer(), ScenarioMaker(store.inputs(), folder)
    for each in study.scenarios():
        writer.write(perform(maker, Job(each.run_id, each.scenario), None)[0])
    writer.close()
    path.write_text(STUDY.format(schedulers=schedulers, metrics=metrics))
    return read_results(str(store.root), Study.from_file(path))


def least_joules(flops: float, shortest_s: float, *, counts_idle: bool) -> float:
    """Least energy of divisible work in no less than the least makespan: a search over shares."""
    found = []
    for k in range(1001):
        work = {"a": flops * k / 1000, "b": flops * (1 - k / 1000)}
        busy = {name: work[name] / speed for name, (speed, _) in HOSTS.items()}
        joules = sum(busy[name] * power for name, (_, power) in HOSTS.items())
        if counts_idle:
            length_s = max(shortest_s, *busy.values())
            joules += sum(length_s - busy[name] for name in HOSTS)
        found.append(joules)
    return min(found)


@pytest.mark.parametrize("schedulers", ['["wq", "mct"]', '["wq", "lecsa"]'])
def test_stored_runs_have_their_distances(tmp_path: Path, schedulers: str):
    """Rows stored before a metric was asked for have it; bounds agree with a search by hand."""
    results = results_of(tmp_path, schedulers)
    rows = results.finished
    assert len(rows) == 8
    for row in rows.to_dict("records"):
        flops = 6.0 * row["workload.tasks"]  # tasks of equal size
        shortest = max(flops / 3, 6.0 / 2)
        assert row["makespan_bound_s"] == pytest.approx(shortest)
        assert row["makespan_above_bound"] == pytest.approx(row["makespan_s"] / shortest - 1)
        for infix, counts_idle in (("", False), ("fixed_", True)):
            joules = least_joules(flops, shortest, counts_idle=counts_idle)
            assert row[f"{infix}energy_bound_j"] == pytest.approx(joules, rel=2e-3)
            above = row["energy_j"] / row[f"{infix}energy_bound_j"] - 1
            if infix and row["scheduler"] == "lecsa":
                above = math.nan
            found = row[f"energy_above_{infix}bound"]
            assert found == pytest.approx(above, abs=1e-9, nan_ok=True)
        assert row["energy_delay_js"] == row["energy_j"] * row["makespan_s"]
    assert (rows[["makespan_above_bound", "energy_above_bound"]] >= 0).all(axis=None)


def test_report_shows_shares_in_percent(tmp_path: Path):
    """The table is in percent and names its bound; the CSV holds the shares."""
    page = tmp_path / "r.html"
    wanted = '["energy_above_bound", "energy_above_fixed_bound"]'
    results = results_of(tmp_path, '["wq", "lecsa"]', wanted)
    write_report(results, page)
    text = page.read_text(encoding="utf-8")
    assert "Energy above bound [%]" in text
    assert "with divisible tasks, whether or not hosts are off, and in any P-state." in text
    assert "with divisible tasks, where every host is on to the end" in text
    folder = files_folder(page)
    means = pd.read_csv(folder / "means-energy_above_bound.csv")
    expected = results.finished.groupby(["workload.tasks", "scheduler"])["energy_above_bound"].mean()
    found = means.set_index(["workload.tasks", "scheduler"])["mean"]
    pd.testing.assert_series_equal(found.sort_index(), expected.sort_index(), check_names=False)
    assert not (folder / "differences-energy_above_bound.csv").exists()
    assert (folder / "bars-energy_above_bound.png").exists()


def test_only_what_is_named_is_computed(tmp_path: Path):
    """A study that names no derived metric has no further columns."""
    rows = results_of(tmp_path, '["wq"]', '["energy_j"]').runs
    assert not {"energy_delay_js", "energy_bound_j", "energy_above_bound"} & set(rows)


def test_a_misspelt_metric_is_told(tmp_path: Path):
    """The hint knows derived metrics, too."""
    (tmp_path / "p.xml").write_text(PLATFORM)
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(schedulers='["wq"]', metrics='["energy_above_bond"]'))
    with pytest.raises(InputError, match="'energy_above_bound'"):
        Study.from_file(path)


def test_rows_tell_whom_a_run_followed(tmp_path: Path):
    """The provenance names the scheduler that auto_bag chose; other runs chose none."""
    rows = results_of(tmp_path, '["wq", {id = "auto_bag", candidates = "mct"}]').runs
    told = [json.loads(text).get("delegated_to") for text in rows["provenance"]]
    assert [name == "auto_bag" for name in rows["scheduler"]] == [each == "MCT()" for each in told]
    assert set(told) == {"MCT()", None}


# Metrics of a study's own, and the store's lines on metrics.

ROOT = Path(__file__).resolve().parents[2]
POLICY = """
from gridsched import Metric, register_metric

register_metric(Metric(
    "energy_per_task_j", "J", "energy over finished tasks",
    lambda row: row["energy_j"] / row["tasks_finished"], of="row", better="less",
))
register_metric(Metric(
    "last_host", "", "host of the last execution",
    lambda run: int(run.trace.executions["host"][-1]),
))
"""
OWN_STUDY = f"""
name = "own"
driver = "reference"
policies = ["own_metrics.py"]
schedulers = ["wq"]
metrics = ["energy_j", "energy_per_task_j", "last_host"]
replicates = 2
platform = "{ROOT}/platforms/ex_a.xml"
workload = {{ generator = "bag", tasks = 4, mean_flops = 100, heterogeneity = 1 }}
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store with that study's runs."""
    before = dict(METRICS)
    folder = tmp_path_factory.mktemp("own")
    (folder / "own_metrics.py").write_text(POLICY)
    (folder / "own.toml").write_text(OWN_STUDY)
    results = folder / "results"
    command = ["study", "run", folder / "own.toml", "--store", results, "--workers", 1, "--quiet", "--trust"]
    assert main([str(word) for word in command]) == 0
    yield results
    METRICS.clear()
    METRICS.update(before)


def test_a_metric_of_runs_is_stored(store: Path):
    """Workers import a study's policies, though none of its schedulers comes from them."""
    opened = Store.open(store, trust=True)
    rows = opened.rows(opened.study())
    assert rerun(opened, rows["run_id"][0]).is_identical
    assert rows["last_host"].notna().all()
    assert set(rows["energy_source"]) == {"model"}


def test_a_metric_of_rows_needs_no_run(store: Path, tmp_path: Path):
    """It is computed when the report is written, by the policy of a store that is trusted."""
    words = ["study", "report", str(store), "-o", str(tmp_path / "own.html"), "--quiet", "--trust"]
    assert main(words) == 0
    page = (tmp_path / "own.html").read_text(encoding="utf-8")
    assert "Energy per task [J]" in page
    assert "Last host" in page


def test_a_report_says_whose_joules_it_shows(store: Path, tmp_path: Path):
    """Below the table of energy_j, and in its file a column beside the means."""
    assert main(["study", "report", str(store), "-o", str(tmp_path / "own.html"), "--quiet"]) == 0
    assert "Energy by model." in (tmp_path / "own.html").read_text(encoding="utf-8")
    means = pd.read_csv(tmp_path / "own_files" / "means-energy_j.csv")
    assert set(means["energy_source"]) == {"model"}


def test_parquet_columns_say_what_they_are(store: Path):
    """The metadata of each metric's column have unit, meaning and direction."""
    Store.open(store).compact()
    (file,) = store.glob("rows-*.parquet")
    schema = pyarrow.parquet.read_schema(file)
    said = {key.decode(): value.decode() for key, value in schema.field("energy_j").metadata.items()}
    assert (said["unit"], said["better"]) == ("J", "less")
    assert "computing hosts" in said["description"]


# A study's own metrics as expressions: in claims, figures, the report and its files.

EXTRA = """
[expressions]
ed2p = { formula = "energy_j * makespan_s ** 2", unit = "J s^2", better = "less", meaning = "ED2P" }
watt = "ed2p / makespan_s ** 3 + 0 * energy_delay_js"

[[figures]]
name = "own"
kind = "lines"
metric = "watt"
along = "workload.heterogeneity"
"""
CLAIMS = 'CLAIMS = [Claim("a", "number", "", "by hand", mean("ed2p", "wq"), (-1e9, 1e9), BEFORE, paper=0.0)]'


@pytest.fixture(autouse=True)
def own_names():
    """What a study declares does not stay."""
    before = dict(METRICS)
    yield
    METRICS.clear()
    METRICS.update(before)


def test_expressions_are_metrics(small_store: Path, tmp_path: Path):
    """Each value by hand, in claims, figures and tables; no new run is needed."""
    study = study_in(tmp_path, EXTRA, small_study.of_metrics("energy_j", "ed2p"), CLAIMS)
    results = read_results(str(small_store), study)
    assert results.metrics == ["energy_j", "ed2p"]
    for run in results.finished.to_dict("records"):
        metrics = metrics_of(run)
        energy, makespan = metrics["energy_j"], metrics["makespan_s"]
        assert run["ed2p"] == energy * makespan**2
        assert run["watt"] == pytest.approx(energy / makespan, rel=1e-15)
    assert results.failed["ed2p"].isna().all()
    (declared,) = results.study.figures
    with style():
        plotted = figure_kinds("declared")["lines"].draw(results, declared)
    assert plotted.figure.axes[0].get_ylabel() == "Watt"
    assert mean_table(results, "ed2p", mean_frame(results, "ed2p")).title == "Ed2p [J s^2]"
    assert main(["study", "claims", str(small_store), "--study", str(tmp_path / "small.toml"), "--trust"]) == 0


def test_they_are_kept_with_the_study(tmp_path: Path, capsys: pytest.CaptureFixture):
    """A store knows them without the study's file."""
    store = Store.create(tmp_path / "copy")
    store.add(study_in(tmp_path, EXTRA, claims=CLAIMS))
    writer = store.writer()
    for run in store.study().scenarios():
        writer.write(small_study.row_of(run) or small_study.row_of(next(store.study().scenarios())))
    writer.close()
    assert main(["study", "claims", str(store.root), "--json", "--trust"]) == 0
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
    ("line", "problem"),
    [
        ('energy_j = "makespan_s"', "expressions.energy_j: is a metric already"),
        ('replicate = "makespan_s"', "expressions.replicate is a column of the results"),
        ('environment = "makespan_s"', "expressions.environment is a column of the results"),
        ('b = "a"\na = "tasks"', "expressions.b 'a': 'a' is not a metric"),
        ('a = "energy_source"', "'energy_source' is not a metric"),
        ("a = 5", "expressions.a is 5; "),
        ('a = { unit = "J" }', "expressions.a.formula is missing"),
    ],
)
def test_a_wrong_expression_is_named(tmp_path: Path, line: str, problem: str):
    """File and key in one line."""
    with pytest.raises(InputError) as caught:
        study_in(tmp_path, f"\n[expressions]\n{line}\n")
    assert str(caught.value).startswith(str(tmp_path / "small.toml"))
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
