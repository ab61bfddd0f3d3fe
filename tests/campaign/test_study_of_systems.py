"""Studies of generated systems: which runs, what they share, and the series that they keep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from campaign_cases import write_study

from gridsched.campaign.campaign import Options, run_campaign
from gridsched.campaign.duration import sample
from gridsched.campaign.rerun import rerun
from gridsched.campaign.store import Store
from gridsched.errors import InputError
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.study import Study
from gridsched.runs.study_schedulers import scheduler_texts

#: Two hours on six machines; results from the second hour.
TEXT = """
name = "system"
seed = 5
replicates = 2
driver = ["reference", "simgrid"]
only = "driver == 'reference' or replicate == 0 and scheduler == 'random_mapping'"
network = "none"
series_step_s = 1200
schedulers = [{ id = "max_max_upe", energy_leniency = [1.5, inf] }, "random_mapping"]

[workload]
generator = "utility"
special_machine_counts = [1]
special_task_types = [2]
general_machine_counts = [2, 3]
task_types = 10
days = 0.08333333333333333
tasks_per_type = 20
tasks_per_type_in_s = 7200
measured_from_s = 3600
budget_period_s = 3600

[group.budget.tight]
workload = { energy_budget_j = 2.5e6 }
[group.budget.wide]
workload = { energy_budget_j = inf }
"""


def study_of(text: str, folder: Path) -> Study:
    """Return the study of a text, as if it lay in the folder."""
    return Study.from_text(text, folder / "s.toml")


# ---------------------------------------------------------------------- which runs


@pytest.mark.systems("utility")
def test_only_chooses_runs(tmp_path: Path):
    """An expression over all axes, the replicate too, selects the combinations that are run."""
    study = study_of(TEXT, tmp_path)
    runs = list(study.scenarios())
    assert study.n_runs == len(runs) == 2 * 2 * 3 + 2
    on_simgrid = [run.axes for run in runs if run.axes["driver"] == "simgrid"]
    assert {axes["scheduler"] for axes in on_simgrid} == {"random_mapping"}
    assert {axes["replicate"] for axes in on_simgrid} == {0}
    meant = list(study.scenarios(lambda axes: axes["driver"] == "simgrid"))
    assert len(meant) == 2
    assert study.with_replicates(5).n_runs == 5 * 2 * 3 + 2


@pytest.mark.systems("utility")
def test_only_reads_several_lines(tmp_path: Path):
    """A line break in the expression is a blank."""
    text = TEXT.replace(
        "only = \"driver == 'reference' or replicate == 0", "only = '''\n  driver == \"reference\"\n  or replicate == 0"
    ).replace("'random_mapping'\"\n", "\"random_mapping\"\n'''\n")
    assert study_of(text, tmp_path).n_runs == 14


@pytest.mark.systems("utility")
@pytest.mark.parametrize(
    ("only", "problem"),
    [
        ("drivers == 'simgrid'", "only is .* 'drivers' is not an axis"),
        ("driver ==", "only is .* cannot be read"),
        ("replicate > 'a'", "only is .* cannot be compared"),
        ("replicate == 7", "only leaves no run"),
    ],
)
def test_only_that_is_wrong_is_refused(only: str, problem: str, tmp_path: Path):
    """With file, line and key."""
    line = next(line for line in TEXT.splitlines() if line.startswith("only"))
    with pytest.raises(InputError, match=problem):
        study_of(TEXT.replace(line, f'only = "{only}"'), tmp_path)


@pytest.mark.systems("utility")
def test_timed_runs_are_like_those_of_the_study(tmp_path: Path):
    """What few replicates do is timed as seldom; what all do, in the first replicate."""
    study = study_of(TEXT, tmp_path).with_replicates(40)
    runs = sample(study, 30)
    assert {run.axes["replicate"] for run in runs} == {0}
    assert len({run.run_id for run in runs}) == len(runs)
    assert sum(run.axes["driver"] == "simgrid" for run in runs) <= 2


# ---------------------------------------------------------------------- generated systems


@pytest.mark.systems("utility")
def test_a_generated_system_has_no_platform_section(tmp_path: Path):
    """The scenario describes the generated system; its default values are left out."""
    run = next(study_of(TEXT, tmp_path).scenarios())
    assert run.scenario["platform"] == {}
    assert run.scenario["workload"]["energy_budget_j"] == 2.5e6
    assert "etc_mean_s" not in run.scenario["workload"]


@pytest.mark.systems("utility")
@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("[workload]", 'platform = "p.xml"\n[workload]', "platform is not allowed: the workload"),
        ("[workload]", "mapping_interval_s = 60\n[workload]", r"belongs into \[workload\]"),
        ("task_types = 10", "task_types = 1", "workload contradicts itself: special_task_types"),
        ("task_types = 10", "task_typs = 10", "Did you mean 'task_types'"),
        ("energy_budget_j = 2.5e6", 'generator = "bag"', "make two studies of it"),
        ("task_types = 10", 'etc_csv = "e.csv"', "machines_csv is missing"),
    ],
)
def test_sections_that_contradict_are_refused(old: str, new: str, problem: str, tmp_path: Path):
    """A platform or interval beside a generator that brings its own, and keys that clash."""
    assert old in TEXT
    with pytest.raises(InputError, match=problem):
        study_of(TEXT.replace(old, new), tmp_path)


@pytest.mark.systems("utility")
@pytest.mark.parametrize("metric", ["makespan_bound_s", "energy_above_bound"])
def test_bounds_of_typed_systems_are_refused(metric: str, tmp_path: Path):
    """The bounds are those of bags; P-state 0 of task type 0 bounds no system with task types."""
    text = TEXT.replace("seed = 5", f'seed = 5\nmetrics = ["utility", "{metric}"]')
    with pytest.raises(InputError, match=rf"'{metric}'.*bags"):
        study_of(text, tmp_path)


@pytest.mark.systems("utility")
def test_files_of_a_system_are_inputs(tmp_path: Path):
    """They are known by content, like all files of a study, and copied into the store."""
    (tmp_path / "c.csv").write_text("class,start,fraction,urgency_modifier\nc,0,1,1\n")
    study = study_of(TEXT.replace("task_types = 10", 'classes_csv = "c.csv"\ntask_types = 10'), tmp_path)
    reference = next(study.scenarios()).scenario["workload"]["classes_csv"]
    assert reference == study.inputs["c.csv"].reference


@pytest.mark.systems("utility")
def test_runs_of_a_replicate_share_what_is_drawn(tmp_path: Path):
    """Schedulers, drivers and budgets of a replicate meet the same tasks, drawn once."""
    maker = ScenarioMaker({}, tmp_path)
    made = [(run.axes, maker.make(run.spec)) for run in study_of(TEXT, tmp_path).scenarios()]
    for replicate in (0, 1):
        same = [scenario for axes, scenario in made if axes["replicate"] == replicate]
        assert len({id(scenario.tasks) for scenario in same}) == 1
        assert len({id(scenario.platform) for scenario in same}) == 1
        assert {scenario.budget.energy_j for scenario in same} == {2.5e6, float("inf")}
    first = made[0][1]
    assert (first.mapping_interval_s, first.pending_slots) == (60.0, 1)
    assert first.window_s == (3600.0, pytest.approx(7200.0))
    files = {scenario.platform_file for _, scenario in made if scenario.driver == "simgrid"}
    assert len(files) == 1
    assert next(iter(files)).exists()


# ---------------------------------------------------------------------- what is kept


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Store]:
    """The study, run into a store."""
    folder = tmp_path_factory.mktemp("system")
    study = study_of(TEXT, folder)
    store = Store.create(folder / "store")
    progress = run_campaign(study, store, Options(workers=1))
    assert (progress.done, progress.failed) == (14, 0), set(store.rows()["error"])
    return study, store


@pytest.mark.systems("utility")
def test_runs_have_the_metrics_of_utility(kept: tuple[Study, Store]):
    """Each of those that a study of such a workload may name."""
    study, store = kept
    assert {
        "utility",
        "utility_possible",
        "window_utility",
        "window_energy_j",
        "tasks_postponed",
        "budget_excess_j",
        "carried_over_j",
        "energy_budget_j",
    } <= set(store.row(next(study.scenarios()).run_id)["metrics"])
    assert {"utility", "window_energy_j", "budget_excess_j"} <= set(study.metrics)
    metrics = store.row(next(study.scenarios()).run_id)["metrics"]
    assert set(study.metrics) <= set(metrics)


@pytest.mark.systems("utility")
def test_series_come_back_from_segments_and_parquet(kept: tuple[Study, Store], tmp_path: Path):
    """Every digit, the window's totals at their ends; both drivers keep the same."""
    study, store = kept
    frame = store.rows(study)
    for row in frame.itertuples():
        series = store.row(row.run_id)["series"]
        assert series["time_s"] == [3600.0, 4800.0, 6000.0, pytest.approx(7200.0)]
        assert series["energy_j"][0] == series["utility"][0] == 0.0
        assert series["energy_j"][-1] == pytest.approx(row.window_energy_j, rel=1e-12)
        assert series["utility"][-1] == pytest.approx(row.window_utility, rel=1e-12)
    stored = store.row(frame["run_id"][0])
    other = Store.create(tmp_path / "other")
    writer = other.writer()
    writer.write(stored)
    writer.close()
    assert other.row(stored["run_id"])["series"] == stored["series"]
    other.compact()
    assert other.row(stored["run_id"])["series"] == stored["series"]


@pytest.mark.systems("utility")
def test_series_repeat_exactly(kept: tuple[Study, Store], tmp_path: Path):
    """A repeated run compares its series, too; runs that differ there are reported as conflicts."""
    study, store = kept
    first = [run for run in study.scenarios() if run.axes["replicate"] == 0]
    unlimited, simgrid = first[5], first[3]
    assert unlimited.axes["budget"] == "wide"
    assert unlimited.axes["scheduler"] == "max_max_upe(energy_leniency=inf)"
    assert simgrid.axes["driver"] == "simgrid"
    for run in (unlimited, simgrid):
        assert rerun(store, run.run_id).is_identical
    run_id = first[0].run_id
    stored = store.row(run_id)
    other = Store.create(tmp_path / "other")
    for last in (0.0, 1e-9):
        writer = other.writer()
        series = {name: [*values[:-1], values[-1] + last] for name, values in stored["series"].items()}
        writer.write({**stored, "series": series})
        writer.close()
    other.rows()
    assert "stored twice with different metrics" in other.damage[0]


def test_series_without_a_window_fail_the_run(tmp_path: Path):
    """A bag has no window; the run reports this instead of keeping nothing."""
    path = write_study(tmp_path, replicates=1)
    path.write_text(path.read_text().replace("seed = 3", "seed = 3\nseries_step_s = 10.0"))
    store = Store.create(tmp_path / "store")
    progress = run_campaign(Study.from_file(path), store, Options(workers=1))
    assert progress.failed == progress.total
    row = json.loads(store.rows().to_json(orient="records"))[0]
    assert "the workload" in row["error"]
    assert "has none" in row["error"]


@pytest.mark.systems("utility")
def test_many_schedulers_are_shown_by_family(tmp_path: Path):
    """A dozen labels are shown alone; more are distinguished by their parameters."""
    few = study_of(TEXT, tmp_path).schedulers
    assert scheduler_texts(few) == [each.label for each in few]
    levels = ", ".join(f"{k}.0" for k in range(1, 13))
    many = study_of(TEXT.replace("[1.5, inf]", f"[{levels}]"), tmp_path).schedulers
    texts = scheduler_texts(many)
    assert texts[0].startswith("max_max_upe(energy_leniency=1.0, 2.0, ")
    assert texts[1:] == ["random_mapping"]
