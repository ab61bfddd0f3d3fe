"""Studies of generated jobs and of logs that may be absent; the study of backfilling."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gridsched.analysis.study_results import StudyResults, read_results
from gridsched.campaign.messages import Job
from gridsched.campaign.store import Store
from gridsched.campaign.worker import perform
from gridsched.errors import InputError
from gridsched.figures.figure_file import style
from gridsched.figures.study_layout import layout_of
from gridsched.figures.table import study_figures
from gridsched.reproduction.claims import judge
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.study import Study

ROOT = Path(__file__).resolve().parents[2]
LOG = "four_nodes.swf"
TEXT = f"""name = "traces"
replicates = 2
driver = "reference"
only = "trace == 'drawn' or replicate == 0"
schedulers = ["fcfs", "easy_backfilling"]
optional = ["{LOG}"]
[group.trace.drawn]
workload = {{ generator = "rigid_jobs", jobs = 40, nodes = 8, widest_job = 8 }}
[group.trace.log]
workload = "{LOG}"
[[claims]]
id = "wait"
source = "by hand"
metric = "mean_waiting_time_s"
statistic = "percent_more"
scheduler = "easy_backfilling"
against = "fcfs"
tolerance = "order"
tolerance_set = "before"
kind = "order"
tolerance_ground = "made up"
columns = ["trace"]
rows = [["drawn"], ["log"]]
[[figures]]
name = "waiting"
kind = "points"
metric = "mean_waiting_time_s"
along = "trace"
names = ["FCFS", "EASY"]
"""


def done(study: Study, folder: Path) -> StudyResults:
    """Do the runs of a study in this process, and return what its store holds."""
    kept = Store.create(folder / "store")
    kept.add(study)
    segment = kept.writer()
    maker = ScenarioMaker({each.sha256: each.path for each in study.inputs.values()}, folder)
    for run in study.scenarios():
        segment.write(perform(maker, Job(run.run_id, run.scenario), None)[0])
    segment.close()
    return read_results(str(folder / "store"))


def figure_of(results: StudyResults):
    """Return the data of the one declared figure."""
    with style():
        ((_, found), *_) = study_figures(results, layout_of(results))
        found.figure.canvas.draw()
    assert found.figure.axes[0].get_xscale() == "log"
    return found.data


def test_a_log_that_is_absent_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its runs, its claims and its row of the figure; the store later says the same."""
    monkeypatch.chdir(tmp_path)
    study = Study.from_text(TEXT, tmp_path / "s.toml")
    (reason,) = study.files.absent.values()
    assert f"{LOG} is neither beside it nor in the working folder" in reason
    assert study.n_runs == len(list(study.scenarios())) == 4
    assert [claim.id for claim in study.claims] == ["wait-1"]
    assert "mean_bounded_slowdown" in study.metrics
    results = done(study, tmp_path)
    shutil.copy(ROOT / "examples" / LOG, tmp_path)  # comes too late for this store
    assert read_results(str(tmp_path / "store")).study.n_runs == 4
    assert [finding.ours.count for finding in judge(results)] == [2]
    assert figure_of(results)["trace"].tolist() == ["drawn", "drawn"]


@pytest.mark.parametrize("beside", [True, False])
def test_a_log_beside_the_study_or_in_the_working_folder_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool
):
    """Once, in its first replicate: section I's jobs wait 8.5 s under FCFS, 5.5 s under EASY."""
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    shutil.copy(ROOT / "examples" / LOG, tmp_path / ("there" if beside else "here"))
    study = Study.from_text(TEXT, tmp_path / "there" / "s.toml")
    assert not study.files.absent
    assert study.n_runs == len(list(study.scenarios())) == 6
    results = done(study, tmp_path)
    assert [finding.verdict for finding in judge(results)][1] == "reproduced"
    data = figure_of(results)
    found = data[data["trace"] == "log"].set_index("scheduler")["mean"]
    assert found.to_dict() == {"fcfs": 8.5, "easy_backfilling": 5.5}


def test_what_is_left_must_be_something(tmp_path: Path):
    """A study of absent logs alone, and a file that is not optional, are refused."""
    of_logs = TEXT.replace(
        '{ generator = "rigid_jobs", jobs = 40, nodes = 8, widest_job = 8 }', f'{{ file = "{LOG}", nodes = 5 }}'
    )
    with pytest.raises(InputError, match="optional"):
        Study.from_text(of_logs, tmp_path / "s.toml")
    with pytest.raises(InputError, match=rf"trace.log.workload.file.*'{LOG}'"):
        Study.from_text(TEXT.replace(f'optional = ["{LOG}"]', ""), tmp_path / "s.toml")


def test_the_study_of_backfilling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Both loads 30 times, one replicate on SimGrid; logs once, where they are."""
    monkeypatch.chdir(tmp_path)
    study = Study.shipped("backfilling")
    assert len(study.files.absent) == 3
    assert study.n_runs == 2 * 3 * (30 + 1)
    assert len(study.claims) == 4 + 4 + 2
    for name in study.files.absent:
        (tmp_path / name).write_text("; MaxProcs: 4\n1 0 -1 5 1 -1 -1 1 5\n", encoding="utf-8")
    study = Study.shipped("backfilling")
    assert study.n_runs == 2 * 3 * (30 + 1) + 3 * 3
    assert len(study.claims) == 10 + 10 + 2
