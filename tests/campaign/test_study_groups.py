"""``group_by`` of a study: stored metrics of groups of jobs, by hand, on both drivers."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from gridsched.analysis.study_results import StudyResults, read_results
from gridsched.campaign import row_table
from gridsched.campaign.campaign import Options, run_campaign
from gridsched.campaign.rerun import rerun
from gridsched.campaign.store import Store
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.runs.study import Study

#: Columns: job, submitted, waited, run time, nodes, 3 fields unused, requested nodes and time, memory, status, user,
#: group. User 1 has jobs 1 and 3, user 2 has job 2.
LOG = """; MaxProcs: 2
1 0 -1 100 1 -1 -1 1 100 -1 1 1 7 -1 -1 -1 -1 -1
2 0 -1 50 2 -1 -1 2 50 -1 1 2 7 -1 -1 -1 -1 -1
3 0 -1 60 1 -1 -1 1 60 -1 1 1 8 -1 -1 -1 -1 -1
"""
STUDY = """
name = "users"
driver = ["reference", "simgrid"]
power = ["100:200:200"]
group_by = ["user", "size"]
metrics = ["energy_j"]
schedulers = ["fcfs", "easy_backfilling", { id = "conservative_backfilling", order = "shortest", label = "shortest" }]
workload = "log.swf"
"""
#: Under FCFS 2 waits for 1 until 100 s and 3 for 2 until 150 s; EASY starts 3 at once; the shortest first are 2 at 0 s,
#: then 3 and 1 at 50 s, so that 1 starts 50 s later than under FCFS.
WAITS = {"fcfs": [75.0, 100.0], "easy_backfilling": [0.0, 100.0], "shortest": [50.0, 0.0]}
LATER = {"fcfs": [0.0, 0.0], "easy_backfilling": [0.0, 0.0], "shortest": [25.0, 0.0]}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the study, whose rows are in a Parquet file."""
    folder = tmp_path_factory.mktemp("groups")
    (folder / "log.swf").write_text(LOG)
    (folder / "users.toml").write_text(STUDY)
    progress = run_campaign(Study.from_file(folder / "users.toml"), Store.create(folder / "store"), Options(workers=1))
    assert (progress.done, progress.failed) == (6, 0)
    return folder / "store"


def of_users(results: StudyResults, driver: str, column: str) -> dict[str, list[float]]:
    """Return a column of the two users of each scheduler."""
    groups = results.groups
    own = groups[(groups["group_by"] == "user") & (groups["driver"] == driver)].sort_values("group")
    return {str(name): each[column].tolist() for name, each in own.groupby("scheduler", sort=False)}


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
def test_each_user_has_its_own_metrics(stored: Path, driver: str):
    """Waits, lateness after FCFS, node hours and joules of two users under three schedulers."""
    results = read_results(str(stored))
    assert of_users(results, driver, "mean_waiting_time_s") == WAITS
    assert of_users(results, driver, "unfairness_s") == LATER
    assert of_users(results, driver, "jobs") == {name: [2, 1] for name in WAITS}
    for values in of_users(results, driver, "energy_j").values():
        assert values == pytest.approx([160 * 200, 100 * 200])
    by_size = results.groups[results.groups["group_by"] == "size"]
    assert set(by_size["group"]) == {"up to 1", "up to 2"}
    assert by_size.groupby("run_id")["jobs"].sum().eq(3).all()


def test_a_row_has_its_groups_wherever_it_is_stored(stored: Path):
    """In a Parquet file, and in the run done again, which a segment would hold."""
    store = Store.open(stored)
    for run in store.study().scenarios(lambda axes: axes["scheduler"] == "shortest"):
        row = store.row(run.run_id)
        assert [(each["group_by"], each["group"]) for each in row["groups"]] == [
            *(("user", name) for name in ("1", "2")),
            *(("size", name) for name in ("up to 1", "up to 2")),
        ]
        repetition = rerun(store, run.run_id)
        assert repetition.is_identical
        assert repetition.repeated["groups"] == row["groups"]


def test_the_report_shows_groups(stored: Path, tmp_path: Path):
    """A table for each metric, and the rows of all groups in one file."""
    assert main(["study", "report", str(stored), "-o", str(tmp_path / "r.html")]) == 0
    means = pd.read_csv(tmp_path / "r_files" / "groups-user-mean_waiting_time_s.csv", dtype={"group": str})
    means = means[means["driver"] == "simgrid"].set_index(["scheduler", "group"])["mean"]
    assert {name: [means[name, "1"], means[name, "2"]] for name in WAITS} == WAITS
    assert len(pd.read_csv(tmp_path / "r_files" / "groups.csv")) == 2 * 3 * (2 + 2)
    assert "Jobs by user: mean wait [s]" in (tmp_path / "r.html").read_text()


def test_groups_stored_under_a_former_name_are_read_under_the_present_one(stored: Path, tmp_path: Path):
    """A store of an earlier version: results, the row and its repetition have one name for the mean wait."""
    store = Store.create(tmp_path / "store")
    store.add(Store.open(stored).study())
    (file,) = row_table.parquet_files(stored)
    table = row_table.read_rows(file)
    former = [each.replace("mean_waiting_time_s", "mean_waiting_s") for each in table.column("groups").to_pylist()]
    assert all('"mean_waiting_s"' in each for each in former)
    at = table.column_names.index("groups")
    row_table.write_parquet(table.set_column(at, "groups", pa.array(former)), store.root)
    results = read_results(store)
    assert of_users(results, "reference", "mean_waiting_time_s") == WAITS
    assert "mean_waiting_s" not in results.groups
    repetition = rerun(store, table.column("run_id")[0].as_py())
    assert (repetition.is_identical, repetition.not_stored) == (True, [])


def test_a_study_that_names_the_former_metric_is_refused_with_the_present_one(tmp_path: Path):
    (tmp_path / "log.swf").write_text(LOG)
    with pytest.raises(InputError, match="'mean_waiting_time_s'") as raised:
        Study.from_text(STUDY.replace('"energy_j"', '"mean_waiting_s"'), tmp_path / "s.toml")
    assert "\n" not in str(raised.value)
    assert "It is now" in str(raised.value)


def test_what_is_no_group_is_named_and_left_out(stored: Path, tmp_path: Path):
    """A forged Parquet file: a cell that holds a path, and a column of numbers."""
    store = Store.create(tmp_path / "store")
    store.add(Store.open(stored).study())
    (file,) = row_table.parquet_files(stored)
    table = row_table.read_rows(file)
    at = table.column_names.index("groups")
    cells = table.column("groups").to_pylist()
    forged = json.dumps([{"group_by": "user", "group": "1", "energy_j": {"file": "/etc/passwd"}}])
    row_table.write_parquet(table.set_column(at, "groups", pa.array([forged, *cells[1:]])), store.root)
    results = read_results(store)
    assert len(results.finished) == 6
    assert results.groups["run_id"].nunique() == 5
    (damage,) = results.damage
    assert table.column("run_id")[0].as_py() in damage
    with pytest.raises(InputError, match="groups of jobs"):
        store.row(table.column("run_id")[0].as_py())
    row_table.parquet_files(store.root)[0].unlink()
    row_table.write_parquet(table.set_column(at, "groups", pa.array([5] * 6)), store.root)
    assert "holds no rows of runs" in "".join(_damage_of(store))


def _damage_of(store: Store) -> list[str]:
    store.rows()
    return store.damage


def test_jobs_without_the_attribute_fail_with_what_they_have(stored: Path, tmp_path: Path):
    """Each run names what the log lacks and what it has."""
    (tmp_path / "log.swf").write_text(LOG)
    study = Study.from_text(STUDY.replace('"size"', '"qos"'), tmp_path / "s.toml")
    store = Store.create(tmp_path / "store")
    assert run_campaign(study, store, Options(workers=1)).failed == 6
    (error,) = store.rows()["error"].unique()
    assert "no 'qos' to group by" in error
    assert "user, group, size" in error


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ('["user", "size"]', '[["user"], ["size"]]', "group_by varies"),
        ('["user", "size"]', '"user"', "group_by"),
        ("name =", "[group.jobs.few]\npstate = 0\n[group.jobs.many]\npstate = 0\n#", "group.jobs is a column"),
    ],
)
def test_studies_that_cannot_be_grouped_are_refused(tmp_path: Path, before: str, after: str, problem: str):
    """A list of lists, a text, and an axis that is called as a column."""
    (tmp_path / "log.swf").write_text(LOG)
    text = STUDY.replace(before, after, 1) if "group." not in after else STUDY + after
    with pytest.raises(InputError, match=problem):
        Study.from_text(text, tmp_path / "s.toml")
