"""Figures of plans and rows: what they show."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure, SubFigure
from sent_bytes import sent
from small_study import TEXT

import gridsched
from gridsched import Comparison, Scenario, Study, make_tasks, read_results, run
from gridsched.analysis.study_results import StudyResults
from gridsched.campaign.messages import Job
from gridsched.campaign.store import Store
from gridsched.campaign.worker import perform
from gridsched.errors import InputError
from gridsched.figures.figure_style import style
from gridsched.figures.power_figure import money_steps
from gridsched.figures.study_figure import layout_of, study_figures
from gridsched.model.dependencies import Dependencies
from gridsched.model.prices import PriceSeries
from gridsched.model.tariff import Tariff
from gridsched.optimize.typed_bag import typed_bag
from gridsched.runs.figure_kinds import figure_kinds
from gridsched.runs.run import RunResult
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.testing.playing import CARBON
from gridsched.workloads.generators import checked_parameters, generator_of
from gridsched.workloads.load import read_system_workload
from gridsched.workloads.rigid_jobs import RigidJobs, draw_rigid_jobs

# Public plot functions: all return their figure, and draw into the given axes.

ROOT = Path(__file__).resolve().parents[2]
EX_A = (ROOT / "platforms/ex_a.xml", ROOT / "examples/ex_a.csv")
NAMES = [name for name in gridsched.__all__ if name.startswith("plot_")]
#: From 50 s on a joule costs twice as much, and a bag pays more.
PRICES = PriceSeries((0.0, 50.0), (3.0, 8.0), (0.001, 0.002), (0.0, 0.0))
OURS = """
[[figures]]
name = "ours"
kind = "lines"
metric = "energy_j"
along = "workload.heterogeneity"
"""


@cache
def ex_a() -> RunResult:
    """Return EX-A under WQ at prices and a carbon intensity that vary."""
    tariff = Tariff(3.0, pue=1.5, prices=PRICES)
    return run(Scenario(*EX_A, "wq", driver="reference", tariff=tariff, carbon=CARBON))


def a_workflow() -> RunResult:
    """Return two tasks that wait for a third, under MCT."""
    none = np.zeros(2)
    after = Dependencies(np.array([1, 2]), np.array([0, 0]), none.astype(np.int64), none)
    tasks = make_tasks([1000.0, 500.0, 700.0], dependencies=after)
    return run(Scenario(EX_A[0], tasks, "mct", driver="reference"))


def a_landscape() -> Any:
    """Return what is possible with twelve tasks of a type on two machines."""
    from gridsched.systems.profit.answers import front_answer, landscape

    bag = typed_bag([[2, 4]], [[10, 2.5]], tasks=[12], machines=[1, 1], idle_w=1.0)
    return landscape(front_answer(replace(bag, name="a bag", task_types=("t",), machine_types=("fast", "slow"))))


#: Subject and kind of a figure -> the function's name and its arguments, if it is not of a study.
CASES: dict[tuple[str, str], tuple[str, Callable[[], Any]]] = {
    ("run", "gantt"): ("plot_gantt", ex_a),
    ("run", "graph"): ("plot_graph", a_workflow),
    ("run", "power"): ("plot_power", lambda: ex_a().trace),
    ("run", "trace"): ("plot_trace", ex_a),
    ("run", "prices"): ("plot_prices", ex_a),
    ("run", "carbon"): ("plot_carbon", ex_a),
    ("run", "traffic"): ("plot_traffic", sent),
    ("comparison", "bars"): ("plot_comparison", lambda: Comparison({"wq": ex_a()}, [ex_a().summary()], {})),
    ("tasks", "sizes"): ("plot_workload", lambda: make_tasks([1000, 500, 250])),
    ("system", "overview"): ("plot_workload", lambda: read_system_workload(ROOT / "examples/utility_small.toml")),
    ("jobs", "jobs"): ("plot_workload", lambda: draw_rigid_jobs(RigidJobs(jobs=50))),
    ("landscape", "front"): ("plot_front", a_landscape),
}


def parts() -> tuple[Figure, SubFigure]:
    """Return a figure of two empty halves, and the right one."""
    figure = Figure(figsize=(14, 8))
    return figure, figure.subfigures(1, 2)[1]


def check_places(draw: Callable[..., Any]) -> None:
    """Check a function of `ax`: a figure of its own, a part, the place of axes."""
    assert isinstance(draw(), Figure)
    whole, part = parts()
    assert draw(ax=part) is part
    assert part.axes
    assert whole.subfigs[0].axes == []
    left, right = (figure := Figure(figsize=(14, 8))).subplots(1, 2)
    plotted = draw(ax=left)
    assert figure.subfigs == [plotted]
    assert plotted.axes
    assert right in figure.axes
    assert left not in figure.axes
    figure.draw_without_rendering()
    with pytest.raises(InputError, match="not empty"):
        draw(ax=part)


@pytest.mark.parametrize("name", NAMES)
def test_every_plot_function_takes_ax(name: str):
    """It comes after what is drawn, and may be left out."""
    function = getattr(gridsched, name)
    parameters = inspect.signature(function).parameters
    assert parameters["ax"].default is None
    positional = [each for each in parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert positional[-1].name == "ax"
    assert function.__annotations__["return"] == "Figure | SubFigure"


@pytest.mark.systems("profit", "utility")
def test_every_figure_has_its_function():
    """Those of studies are drawn by `plot_study`, all others by one each."""
    subjects = {"run", "comparison", "tasks", "system", "jobs", "landscape"}
    assert set(CASES) == {(of, kind) for of in subjects for kind in figure_kinds(of)}
    assert {name for name, _ in CASES.values()} == set(NAMES) - {"plot_study"}


@pytest.mark.systems("profit", "utility")
@pytest.mark.parametrize("figure", CASES, ids=lambda case: " ".join(case))
def test_it_is_drawn_where_one_wants(figure: tuple[str, str]):
    """In a figure of its own, in an empty part of one, in the place of axes."""
    name, subject = CASES[figure]
    function, plotted = getattr(gridsched, name), subject()
    check_places(lambda **place: function(plotted, **place))


@pytest.mark.systems("profit")
@pytest.mark.parametrize("figure", ["bars", "sweep", "boxes", "pareto", "ours"])
def test_figures_of_a_study_are_drawn_where_one_wants(small_store: Path, figure: str):
    """One of the usual figures, or of those that the study declares."""
    results = read_results(str(small_store), Study.from_text(TEXT + OURS, small_study(small_store)))
    check_places(lambda **place: gridsched.plot_study(results, figure, **place))


def small_study(store: Path) -> Path:
    """Return where the study of the small store lies."""
    return store.with_name(f"{store.name}-study") / "small.toml"


def test_a_study_is_drawn_for_chosen_values(small_store: Path):
    """Any metric, and some values of the axes: one that is left makes no panels."""
    results = read_results(str(small_store))
    figure = gridsched.plot_study(results, "bars", metric="makespan_s")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["low", "high"]
    assert figure.axes[0].get_ylabel() == "Makespan [s]"
    chosen = gridsched.plot_study(results, "sweep", where={"environment": ["high"]})
    assert [axes.get_title(loc="left") for axes in chosen.axes] == ["high"]
    fewer = gridsched.plot_study(results, "bars", where={"workload.heterogeneity": [0.0, 1.0]})
    assert len(fewer.axes[0].get_xticks()) == 2


@pytest.mark.systems("profit")
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"figure": "bar"}, r"no figure 'bar'\. Did you mean 'bars'\? Allowed: ours, bars"),
        ({"figure": "trace"}, "has nothing to draw as 'trace'"),
        ({"figure": "bars", "metric": "speed"}, r"no metric speed\. Allowed: makespan_s"),
        ({"figure": "bars", "where": {"x": [1]}}, r"no varying axis x\. Allowed: "),
        ({"figure": "bars", "where": {"environment": ["no"]}}, "no value of environment no"),
    ],
)
def test_what_a_study_has_not_is_refused(small_store: Path, asked: dict, message: str):
    """One line each."""
    results = read_results(str(small_store), Study.from_text(TEXT + OURS, small_study(small_store)))
    with pytest.raises(InputError, match=message):
        gridsched.plot_study(results, **asked)


def test_prices_power_and_money_by_hand():
    """EX-A under WQ draws 75 W to 15 s, 59 W to 25 s and 13 W to 80 s; its bag is paid at 80 s.

    The first 50 s are 2,040 J at 0.001, the others 390 J at 0.002; the PUE is 1.5.
    """
    result = ex_a()
    steps = money_steps(result.trace, result.scenario.tariff).set_index("time_s")
    assert steps.loc[[0, 15, 25, 50], "total_w"].tolist() == pytest.approx([75, 59, 13, 13])
    assert steps["energy_price_per_kwh"].loc[[25, 50]].tolist() == pytest.approx([3600, 7200])
    assert steps.loc[50, "energy_cost"] == pytest.approx(1.5 * 2.04)
    assert steps.loc[80, "energy_cost"] == pytest.approx(1.5 * (2.04 + 0.78))
    assert steps["income"].loc[[50, 80]].tolist() == [0, 8]
    facts = result.facts
    assert steps["energy_cost"].iloc[-1] == pytest.approx(facts.energy_cost, rel=1e-12)
    assert steps["income"].iloc[-1] == facts.income


def test_a_run_without_prices_has_no_such_figure():
    """One line explains how to get them."""
    plain = run(Scenario(*EX_A, "wq", driver="reference"))
    with pytest.raises(InputError, match="--prices FILE"):
        gridsched.plot_prices(plain)
    again = gridsched.plot_prices(plain.trace, tariff=Tariff(3.0, prices=PRICES))
    assert [axes.get_ylabel() for axes in again.axes][:2] == ["Energy price\n[money/kWh]", "A bag pays\n[money]"]


@pytest.mark.systems("profit")
def test_a_system_without_utility_functions_is_told_to_have_none() -> None:
    keys = checked_parameters({"kind": "profit", "tasks": 5}, "test")
    bag = generator_of(keys).generate(keys)
    with pytest.raises(InputError, match="utility"):
        gridsched.plot_workload(bag)
    assert gridsched.plot_workload(bag.tasks).axes


# Figures of plans: lines, distributions, makespan over energy, and what is possible.

PLANS = """name = "plans"
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
    study = Study.from_text(PLANS)
    kept = Store.create(folder / "store")
    kept.add(study)
    segment, maker = kept.writer(), ScenarioMaker({}, folder)
    for scheduled in study.scenarios():
        segment.write(perform(maker, Job(scheduled.run_id, scheduled.scenario), None)[0])
    segment.close()
    return folder / "store"


def plotted(store: Path, kind: str, text: str = PLANS, **keys: str) -> tuple[StudyResults, object]:
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


@pytest.mark.systems("profit")
def test_lines_are_means_over_the_bags(store: Path):
    """A level, its mean and its interval; the runs are those of the figure's own `where`."""
    results, found = plotted(store, "lines", more='where = { tasks = 30 }\nnames = ["all"]')
    data = found.data.set_index("gamma")
    for gamma in (0.9, 1.05, 1.6):
        values = rows(results, f"lp_max_profit(gamma={gamma})", 30)["divided_profit_rate"]
        assert data.loc[gamma, "mean"] == pytest.approx(values.mean(), rel=1e-12)
        assert data.loc[gamma, "count"] == 3


@pytest.mark.systems("profit")
def test_a_figure_has_the_levels_of_its_own_where_though_the_report_has_fewer(store: Path):
    """The runs of a report limit a figure along that axis no more than its `where` does."""
    text = PLANS.replace('driver = "optimize" }', 'driver = "optimize", tasks = 60 }')
    keys = {"along": "workload.tasks", "schedulers": '["lp_max_profit(gamma=1.6)"]'}
    of_report = plotted(store, "lines", text, **keys, more="")[1].data
    assert of_report["workload.tasks"].tolist() == [60]
    own = plotted(store, "lines", text, **keys, more="where = { tasks = [30, 60] }")[1].data
    assert own["workload.tasks"].tolist() == [30, 60]


@pytest.mark.systems("profit")
def test_violins_are_of_single_schedulers_along_an_axis(store: Path):
    """Quantiles of each scheduler at each level, in the order of the levels."""
    schedulers = '["lp_max_profit(gamma=1.6)", "capped(gamma=1.6)"]'
    results, found = plotted(
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


@pytest.mark.systems("profit")
def test_plans_stand_beside_the_front_and_the_cap(store: Path):
    """Swept families and the front; no plan lies below the front's ends; the cap is kept."""
    results, found = plotted(
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


@pytest.mark.systems("profit")
def test_landscapes_are_of_the_stored_plans(store: Path):
    """What is recomputed for a panel is what the run has stored."""
    more = "where = { tasks = 60 }\nlevels = [1.05, 1.6]"
    results, found = plotted(store, "landscapes", more=more)
    assert len(found.figure.axes) == 2
    plans = found.data[found.data["series"] == "largest profit, divided"].set_index("gamma")
    for gamma in (1.05, 1.6):
        run = rows(results, f"lp_max_profit(gamma={gamma})").sort_values("replicate").iloc[0]
        for name in ("profit_rate", "energy_j", "makespan_s"):
            assert plans.loc[gamma, name] == pytest.approx(run[f"divided_{name}"], rel=1e-9)


@pytest.mark.systems("profit")
@pytest.mark.parametrize(
    ("kind", "keys", "problem"),
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
def test_figures_that_cannot_be_drawn(store: Path, kind: str, keys: dict, problem: str):
    """One line that shows what is allowed."""
    with pytest.raises(InputError, match=problem):
        plotted(store, kind, **keys)
