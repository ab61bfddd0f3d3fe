"""Figures of plans: lines, distributions, makespan over energy, and what is possible."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gridsched.analysis.study_results import StudyResults, read_results
from gridsched.campaign.messages import Job
from gridsched.campaign.store import Store
from gridsched.campaign.worker import perform
from gridsched.errors import InputError
from gridsched.figures.figure_file import style
from gridsched.figures.study_layout import layout_of
from gridsched.figures.table import study_figures
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.study import Study

TEXT = """name = "plans"
seed = 1
replicates = 3
driver = ["optimize", "reference"]
only = "driver == 'optimize' or (replicate == 0 and tasks == 60)"
schedulers = [
    { id = "lp_max_profit", gamma = [0.9, 1.05, 1.6] },
    { id = "lp_max_profit", label = "capped", gamma = [1.05, 1.6], power_cap_w = 900.0 },
    { id = "lp_pareto", energy_weight = [0.0, 0.5, 1.0] },
]
[report]
where = { driver = "optimize" }
[workload]
generator = "profit"
idle_share = 0.05
task_types = 4
machine_types = 3
machines_per_type = 2
tasks = [30, 60]
"""
FIGURE = """[[figures]]
name = "it"
kind = "{kind}"
metric = "{metric}"
along = "{along}"
schedulers = {schedulers}
{more}
"""
GAMMAS = {
    "metric": "divided_profit_rate",
    "along": "gamma",
    "schedulers": '["lp_max_profit"]',
    "more": "where = { tasks = 60 }",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with all runs, done in this process."""
    folder = tmp_path_factory.mktemp("plans")
    study = Study.from_text(TEXT)
    kept = Store.create(folder / "store")
    kept.add(study)
    segment, maker = kept.writer(), ScenarioMaker({}, folder)
    for run in study.scenarios():
        segment.write(perform(maker, Job(run.run_id, run.scenario), None)[0])
    segment.close()
    return folder / "store"


def drawn(store: Path, kind: str, text: str = TEXT, **keys: str) -> tuple[StudyResults, object]:
    """Return the results of the study with one figure, and the figure."""
    text += FIGURE.format(kind=kind, **{**GAMMAS, **keys})
    results = read_results(str(store), Study.from_text(text))
    with style():
        ((_, found), *_) = study_figures(results, layout_of(results))
        found.figure.canvas.draw()
    return results, found


def rows(results: StudyResults, scheduler: str, tasks: int = 60):
    """Return the plans of a scheduler."""
    shown = results.shown
    return shown[(shown["scheduler"] == scheduler) & (shown["workload.tasks"] == tasks)]


def test_lines_are_means_over_the_bags(store: Path):
    """A level, its mean and its interval; the runs are those of the figure's own `where`."""
    results, found = drawn(store, "lines", more='where = { tasks = 30 }\nnames = ["all"]')
    data = found.data.set_index("gamma")
    for gamma in (0.9, 1.05, 1.6):
        values = rows(results, f"lp_max_profit(gamma={gamma})", 30)["divided_profit_rate"]
        assert data.loc[gamma, "mean"] == pytest.approx(values.mean(), rel=1e-12)
        assert data.loc[gamma, "count"] == 3


def test_a_figure_has_the_levels_of_its_own_where_though_the_report_has_fewer(store: Path):
    """What a report is of limits a figure along that axis no more than its `where` says."""
    text = TEXT.replace('driver = "optimize" }', 'driver = "optimize", tasks = 60 }')
    keys = {"along": "workload.tasks", "schedulers": '["lp_max_profit(gamma=1.6)"]'}
    of_report = drawn(store, "lines", text, **keys, more="")[1].data
    assert of_report["workload.tasks"].tolist() == [60]
    own = drawn(store, "lines", text, **keys, more="where = { tasks = [30, 60] }")[1].data
    assert own["workload.tasks"].tolist() == [30, 60]


def test_violins_are_of_single_schedulers_along_an_axis(store: Path):
    """Quantiles of each scheduler at each level, in the order of the levels."""
    schedulers = '["lp_max_profit(gamma=1.6)", "capped(gamma=1.6)"]'
    results, found = drawn(
        store,
        "violins",
        metric="relative_decrease",
        along="workload.tasks",
        schedulers=schedulers,
        more="levels = [60, 30]",
    )
    assert found.data["workload.tasks"].tolist() == [60, 30, 60, 30]
    values = rows(results, "lp_max_profit(gamma=1.6)")["relative_decrease"]
    assert found.data["quantile_0.5"][0] == pytest.approx(np.median(values), rel=1e-12)


def test_plans_stand_beside_the_front_and_the_cap(store: Path):
    """Swept families and the front; no plan lies below the front's ends; the cap is kept."""
    results, found = drawn(
        store,
        "plans",
        metric="profit_rate",
        schedulers='["lp_max_profit", "capped", "lp_pareto"]',
        more="where = { tasks = 60 }\nlevels = [1.05, 1.6]",
    )
    data = found.data.set_index("scheduler")
    assert len(data) == 2 + 2 + 3
    front = data[data["gamma"].isna()]
    assert (data["divided_energy_j"] >= front["divided_energy_j"].min() * (1 - 1e-9)).all()
    assert (data["divided_makespan_s"] >= front["divided_makespan_s"].min() * (1 - 1e-9)).all()
    capped = data.filter(like="capped", axis=0)
    assert (capped["divided_energy_j"] / capped["divided_makespan_s"]).max() <= 900.0 * (1 + 1e-9)
    whole = rows(results, "lp_max_profit(gamma=1.6)")["energy_j"].mean()
    assert data.loc["lp_max_profit(gamma=1.6)", "energy_j"] == pytest.approx(whole, rel=1e-12)
    labels = [text.get_text() for text in found.figure.legends[0].get_texts()]
    assert "more than 0.9 kW" in labels


def test_landscapes_are_of_the_stored_plans(store: Path):
    """What is recomputed for a panel is what the run has stored."""
    more = "where = { tasks = 60 }\nlevels = [1.05, 1.6]"
    results, found = drawn(store, "landscapes", more=more)
    assert len(found.figure.axes) == 2
    plans = found.data[found.data["series"] == "largest profit, divided"].set_index("gamma")
    for gamma in (1.05, 1.6):
        run = rows(results, f"lp_max_profit(gamma={gamma})").sort_values("replicate").iloc[0]
        for name in ("profit_rate", "energy_j", "makespan_s"):
            assert plans.loc[gamma, name] == pytest.approx(run[f"divided_{name}"], rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "keys", "complaint"),
    [
        ("lines", {"more": 'names = ["a", "b"]\nwhere = { tasks = 60 }'}, "2 names for 1 variants"),
        ("lines", {"more": "where = { tasks = 61 }"}, "where.tasks is 61; .* values 30, 60"),
        ("lines", {"schedulers": '["capped(gamma=1.6)"]'}, r"is 'capped\(gamma=1.6\)'"),
        (
            "landscapes",
            {"more": "where = { tasks = 60, driver = 'reference' }"},
            "no finished run with the driver 'optimize'",
        ),
    ],
)
def test_figures_that_cannot_be_drawn(store: Path, kind: str, keys: dict, complaint: str):
    """One line that says what is legal."""
    with pytest.raises(InputError, match=complaint):
        drawn(store, kind, **keys)
