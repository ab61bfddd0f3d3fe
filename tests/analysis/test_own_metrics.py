"""Metrics of a study's own, and what the store says of metrics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow.parquet
import pytest

from gridsched.campaign.single_runs import rerun
from gridsched.campaign.store import Store
from gridsched.cli.app import main
from gridsched.metrics import METRICS

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
STUDY = f"""
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
    (folder / "own.toml").write_text(STUDY)
    results = folder / "results"
    command = ["study", "run", folder / "own.toml", "--store", results, "--workers", 1, "--quiet"]
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
    """Unit, meaning and direction stand in the metadata of each metric's column."""
    Store.open(store).compact()
    (file,) = store.glob("rows-*.parquet")
    schema = pyarrow.parquet.read_schema(file)
    said = {key.decode(): value.decode() for key, value in schema.field("energy_j").metadata.items()}
    assert (said["unit"], said["better"]) == ("J", "less")
    assert "computing hosts" in said["description"]
