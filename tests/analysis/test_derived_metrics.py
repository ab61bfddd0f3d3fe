"""Metrics that follow from stored rows: distances from the bounds, energy times delay."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd
import pytest

from gridsched.analysis.study_results import read_results
from gridsched.campaign.messages import Job
from gridsched.campaign.store import Store
from gridsched.campaign.worker import perform
from gridsched.errors import InputError
from gridsched.page.study_report import files_folder, write_report
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.study import Study

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
    """The table is in percent and says which bound it is; the CSV holds the shares."""
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
