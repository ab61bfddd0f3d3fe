"""Bounds of runs, and optimizations as rows of studies."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from scheduler_cases import ex_a_platform, ex_a_tasks

from gridsched.analysis.bounds import bound_fields, bounds_for, have_bounds
from gridsched.analysis.comparison import completed
from gridsched.analysis.study_results import read_results
from gridsched.campaign.campaign import Options, run_campaign
from gridsched.campaign.messages import Job
from gridsched.campaign.store import Store
from gridsched.campaign.worker import perform
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.run_times import SampledRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign, Drop, PowerOn
from gridsched.runs.run import run
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.study import Study
from gridsched.scenario import Scenario
from gridsched.testing.parallel_cases import EXAMPLE, make_parallel_case

# Bounds beside runs: which ones are taken, and the fields that `compare` shows.

ROOT = Path(__file__).resolve().parents[3]
EX_A = Scenario(ex_a_platform(), ex_a_tasks(), driver="reference")


def results_of(*schedulers, **changes):
    """Run schedulers on EX-A."""
    return [run(replace(EX_A, scheduler=each, **changes)) for each in schedulers]


@pytest.mark.parametrize("others", [(), ("wq",), ("lecsa",), ("wq", "auto_bag")])
def test_bounds_do_not_depend_on_who_else_is_listed(others):
    """Two bounds: 1,050 J where hosts may be off, 2,030 J where they are on to the end."""
    rows = [result.summary() for result in results_of(*others, "mct")]
    bounds = completed(rows, results_of(*others, "mct"))
    assert (bounds.any.makespan_s, bounds.fixed.makespan_s) == pytest.approx((30, 30))
    assert (bounds.any.energy_j, bounds.fixed.energy_j) == pytest.approx((1050, 2030))
    assert [row["energy_bound_j"] for row in rows] == pytest.approx([1050] * len(rows))
    assert [row["fixed_energy_bound_j"] for row in rows] == pytest.approx([2030] * len(rows))
    assert rows[-1]["energy_above_bound"] == pytest.approx(2510 / 1050 - 1)
    assert rows[-1]["energy_above_fixed_bound"] == pytest.approx(2510 / 2030 - 1)
    for row, name in zip(rows, others, strict=False):
        assert (row["energy_above_fixed_bound"] is None) == (name in ("lecsa", "auto_bag"))
        assert row["energy_above_bound"] >= 0


class _SwitchesOn(Scheduler):
    """Executes everything on the first host."""

    traits = Traits(trigger="start", powers_hosts=True)

    def schedule(self, state):
        return [PowerOn(0), *(Assign(task, 0) for task in state.mappable.tolist())]


def test_hosts_off_and_pstates_of_the_scenario():
    """What is fixed: hosts that stay off add no speed, and a slow P-state stays slow."""
    bounds = bounds_for(results_of("wq", hosts_off=("h1",)))
    assert bounds.fixed.makespan_s == pytest.approx(5250 / 75)
    assert bounds.any.makespan_s == pytest.approx(30)
    none_on = results_of(_SwitchesOn(), hosts_off=("h1", "h2", "h3"))[0]
    assert bounds_for([none_on]).fixed is None
    assert bound_fields(bounds_for([none_on]), none_on.summary())["fixed_energy_bound_j"] is None
    state = (PState(10.0, 1.0, 50.0, 50.0), PState(5.0, 1.0, 20.0, 20.0))
    slow = Scenario(Platform((Host("h", state),)), make_tasks([100.0]), "wq", driver="reference", pstate=1)
    bounds = bounds_for([run(slow)])
    assert (bounds.any.makespan_s, bounds.fixed.makespan_s) == (10, 20)
    assert (bounds.any.energy_j, bounds.fixed.energy_j) == (400, 400)
    assert bounds.differing == {"makespan_s"}
    assert not bounds.beside(Traits(trigger="event", uses_dvfs=True)).holds_fixed
    assert bounds.beside(Traits(trigger="event")).holds_fixed


def test_fields():
    """Distances are relative; a run on the bound has exactly 0."""
    results = results_of("dynamic_fpltf", "wq")
    bounds = bounds_for(results)
    best, queue = (bound_fields(bounds, result.summary()) for result in results)
    assert best["makespan_above_bound"] == best["makespan_above_fixed_bound"] == 0.0
    assert best["energy_above_fixed_bound"] == pytest.approx(220 / 2030)
    assert best["above_fixed_front"] == 0.0  # in 30 s all hosts have to be busy
    assert best["above_front"] == 0.0
    assert queue["above_fixed_front"] == pytest.approx((2430 - 2030) / 2030)  # 70 s are enough
    assert queue["makespan_above_bound"] == pytest.approx(50 / 30)
    assert (queue["makespan_bound_s"], queue["energy_bound_j"]) == pytest.approx((30, 1050))


class _DropsMost(Scheduler):
    """Executes the first task and drops the others."""

    traits = Traits(trigger="event", may_drop=True)

    def schedule(self, state):
        return [Assign(t, 0) if t == 0 else Drop(t) for t in state.mappable.tolist()]


def test_no_distance_where_tasks_are_left_out():
    """A run that drops tasks may be below the bound of all of them: it has no distance."""
    result = results_of(_DropsMost())[0]
    fields = bound_fields(bounds_for([result]), result.summary())
    assert fields["makespan_above_bound"] is None
    assert fields["energy_above_bound"] is None
    assert fields["above_front"] is None


def test_bounds_say_something_of_whole_runs_only():
    """A budget that ends the run leaves tasks out; one run that finishes all is enough."""
    stopped = EnergyBudget(300.0, period_s=math.inf, enforcement="stop")
    whole, killed = results_of("wq")[0], results_of("wq", budget=stopped)[0]
    assert killed.summary()["tasks_killed"] > 0
    assert killed.summary()["makespan_s"] < bounds_for([killed]).any.makespan_s
    assert not have_bounds([killed])
    assert have_bounds([killed, whole])


def test_uncertain_run_times_have_no_bounds():
    """Half as long as estimated: a run of estimates' bounds would be below them."""
    estimates = FlopsEstimates(EX_A.platform, EX_A.tasks)
    shorter = SampledRunTimes(estimates, [0.5] * 5, lambda share, estimate_s: share * estimate_s)
    result = results_of("dynamic_fpltf", run_times=shorter)[0]
    assert result.summary()["makespan_s"] == 15.0
    assert not have_bounds([result])
    with pytest.raises(InputError, match="estimated"):
        bounds_for([result])


def compare(capsys, *words: str) -> str:
    """Run ``gridsched compare`` on EX-A with the reference driver; return what it prints."""
    files = ("--platform", str(ROOT / "platforms" / "ex_a.xml"), "--workload", str(ROOT / "examples" / "ex_a.csv"))
    assert main(["compare", *files, "--driver", "reference", *words]) == 0
    return capsys.readouterr().out


def test_compare_as_json(capsys):
    """Each result of `compare --json` holds the bounds and its distances."""
    rows = json.loads(compare(capsys, "--schedulers", "wq,lecsa", "--json"))["results"]
    assert [row["energy_bound_j"] for row in rows] == pytest.approx([1050, 1050])
    assert [row["makespan_bound_s"] for row in rows] == pytest.approx([30, 30])
    assert [row["energy_above_bound"] for row in rows] == pytest.approx([138 / 105, 65 / 105])
    assert [row["fixed_energy_bound_j"] for row in rows] == pytest.approx([2030, 2030])
    assert rows[1]["energy_above_fixed_bound"] is None


def test_compare_as_table(capsys):
    """Both bounds have a column and a line, and the line names the scheduler that auto_bag followed."""
    shown = compare(capsys, "--schedulers", "wq,mct")
    assert "at least 30 s and 2,030 J (idle power of every host to the end counted)" in shown
    assert "at least 30 s and 1,050 J (idle power not counted" in shown
    assert "fixed" in shown.partition("wq")[0]
    assert "links" not in shown
    shown = compare(capsys, "--schedulers", "auto_bag", "--set", "candidates=wq,lecsa")
    assert "at least 30 s and 1,050 J (idle power not counted" in shown
    assert "auto_bag followed LECSA(" in shown


def test_parallel_jobs_have_no_bounds():
    """Sets of nodes, and times that were only asked for: what holds for serial tasks does not."""
    case = make_parallel_case("example", 4, EXAMPLE)
    result = run(case.scenario("fcfs", driver="reference"))
    assert not have_bounds([result])
    with pytest.raises(InputError, match="parallel"):
        bounds_for([result])
    asked = results_of("wq", tasks=make_tasks([1.0], requested_time_s=1.0))
    assert not have_bounds(asked)
    with pytest.raises(InputError, match=r"requested|asked"):
        bounds_for(asked)


def test_a_study_with_intensities_has_bounds_of_carbon(tmp_path):
    """As in compare: the work queue's 72.4 g lie 20.7 and 14.6 % above the bounds."""
    text = f"""
        name = "green"
        driver = "reference"
        network = "none"
        schedulers = ["wq"]
        metrics = ["carbon_g", "carbon_above_bound", "carbon_above_fixed_bound"]
        carbon = "{ROOT / "examples/sites.csv"}"
        platform = {{ file = "{ROOT / "examples/two_sites.xml"}" }}
        workload = {{ file = "{ROOT / "examples/two_sites_day.csv"}" }}
    """
    (tmp_path / "green.toml").write_text(text)
    study, store = Study.find(str(tmp_path / "green.toml")), Store.create(tmp_path / "store")
    run_campaign(study, store, Options(1))
    row = read_results(str(store.root), study).finished.iloc[0]
    # within 7,200 s: 60 g, and 3.2 g of the hosts that are idle at A in the first hour
    assert row["carbon_above_bound"] == pytest.approx(72.4 / 60 - 1)
    assert row["carbon_above_fixed_bound"] == pytest.approx(72.4 / 63.2 - 1)


# Runs that execute nothing: a campaign stores, resumes, repeats and reports them as any other.

#: The worked example of algorithms E5: 12 tasks, a fast and a slow machine.
FILES = {
    "etc.csv": "task_type,machine_type,pstate,etc_s\na,fast,0,2\na,slow,0,4\n",
    "apc.csv": "task_type,machine_type,pstate,apc_w\na,fast,0,10\na,slow,0,2.5\n",
    "counts.csv": "task_type,tasks\na,12\n",
    "machines.csv": "machine_type,count\nfast,1\nslow,1\n",
}
TEXT = """name = "plans"
driver = ["optimize", "reference"]
price = 300
schedulers = [
    "lp_max_profit",
    { id = "lp_max_profit", label = "capped", power_cap_w = 10 },
    { id = "lp_pareto", energy_weight = [0.0, 1.0] },
    "lp_pareto_profit",
]
metrics = ["makespan_s", "energy_j", "profit_rate", "relative_decrease", "makespan_bound_s"]
[workload]
generator = "profit"
etc_csv = "etc.csv"
apc_csv = "apc.csv"
machines_csv = "machines.csv"
counts_csv = "counts.csv"
"""


def study_file(folder: Path, text: str = TEXT) -> Path:
    """Write the study and the files that it reads."""
    for name, content in FILES.items():
        (folder / name).write_text(content, encoding="utf-8")
    path = folder / "plans.toml"
    path.write_text(text, encoding="utf-8")
    return path


def rows_of(folder: Path, text: str = TEXT) -> dict[tuple[str, str], dict]:
    """Do all runs of a study in this process; return them by driver and scheduler."""
    study = Study.from_file(study_file(folder, text))
    maker = ScenarioMaker({each.sha256: each.path for each in study.inputs.values()}, folder)
    return {
        (run.axes.get("driver", ""), run.axes["scheduler"]): perform(maker, Job(run.run_id, run.scenario), None)[0]
        for run in study.scenarios()
    }


def test_the_worked_example(tmp_path: Path):
    """Rows Pmax and plain of E5's table, the recovery of the former, and the ends of the front."""
    rows = rows_of(tmp_path)
    capped = rows["optimize", "capped"]["metrics"]
    expected = {
        "divided_makespan_s": 19.2,
        "divided_energy_j": 192.0,
        "divided_profit_rate": 5.625,
        "makespan_s": 20.0,
        "energy_j": 190.0,
        "profit_rate": 5.5,
        "profit": 110.0,
        "busy_time_s": 34.0,
        "tasks": 12,
        "tasks_finished": 12,
        "plan_runs": 1,
        "profit_rate_bound": 5.625,
        "relative_decrease": 0.125 / 5.625,
        "energy_source": "plan",
    }
    assert capped == {
        name: value if isinstance(value, str) else pytest.approx(value, rel=1e-9) for name, value in expected.items()
    }
    best = rows["optimize", "lp_max_profit"]["metrics"]
    assert (best["divided_makespan_s"], best["energy_j"]) == pytest.approx((16.0, 200.0))
    ends = [rows["optimize", f"lp_pareto(energy_weight={w})"]["metrics"] for w in (0.0, 1.0)]
    assert [end["makespan_s"] for end in ends] == pytest.approx([16.0, 48.0])
    assert [end["energy_j"] for end in ends] == pytest.approx([200.0, 120.0])
    assert "profit_rate_bound" not in ends[0]
    assert rows["optimize", "lp_pareto_profit"]["metrics"]["divided_profit_rate"] == pytest.approx(6.25)


def test_execution_confirms_the_plan(tmp_path: Path):
    """A driver that executes gives every metric of the plan, with the plan's value."""
    rows = rows_of(tmp_path)
    for (driver, scheduler), planned in rows.items():
        if driver == "optimize":
            executed = rows["reference", scheduler]["metrics"]
            common = planned["metrics"].keys() & executed.keys() - {"energy_source"}
            assert {"makespan_s", "energy_j", "profit_rate", "busy_time_s"} <= common
            for name in common:
                assert executed[name] == pytest.approx(planned["metrics"][name], rel=1e-9), name


def test_do_not_run(tmp_path: Path):
    """Below the cost of the least energy nothing pays: no time, no energy, profit rate 0."""
    row = rows_of(tmp_path, TEXT.replace("price = 300", "price = 100"))
    found = row["optimize", "lp_max_profit"]["metrics"]
    assert (found["plan_runs"], found["tasks_finished"], found["profit_rate"]) == (0, 0, 0.0)
    assert math.isnan(found["makespan_s"])
    assert "relative_decrease" not in found


def test_a_price_that_just_pays(tmp_path: Path):
    """The bound is 0 but for rounding: nothing can be a share of it."""
    row = rows_of(tmp_path, TEXT.replace("price = 300", "price = 120"))
    found = row["optimize", "lp_max_profit"]["metrics"]
    assert found["profit_rate_bound"] == pytest.approx(0.0, abs=1e-9)
    assert "relative_decrease" not in found


def test_bags_of_any_kind_are_planned(tmp_path: Path):
    """A platform with a bag, gathered into types: 8 equal tasks on 2 hosts of 1 Gflop/s, 4 s."""
    (tmp_path / "bag.csv").write_text("id,flops\n" + "".join(f"{k},1e9\n" for k in range(8)), encoding="utf-8")
    (tmp_path / "p.xml").write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        '<platform version="4.1"><zone id="z" routing="Full">'
        + "".join(
            f'<host id="h{k}" speed="1Gf"><prop id="wattage_per_state" value="0:10:10"/></host>' for k in range(2)
        )
        + "</zone></platform>\n",
        encoding="utf-8",
    )
    text = 'name = "bag"\ndriver = "optimize"\nplatform = "p.xml"\nworkload = "bag.csv"\n'
    rows = rows_of(tmp_path, text + 'schedulers = "lp_pareto"\n')
    found = rows["", "lp_pareto"]["metrics"]
    assert (found["makespan_s"], found["energy_j"]) == pytest.approx((4.0, 80.0))
    assert "profit_rate" not in found


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"lp_pareto_profit",', '"lp_pareto_profit", "mct",', r"schedulers\[4\].*'mct' follows no"),
        ("price = 300", "price = 300\nhorizon_s = 9", "horizon_s has no effect with the driver"),
        ("price = 300", "series_step_s = 9", "series_step_s has no effect with the driver"),
        ('["optimize", "reference"]', '"optimise"', "'simgrid', 'reference' or 'optimize'"),
    ],
)
def test_what_means_nothing_without_execution_is_refused(old, new, problem, tmp_path: Path):
    """Before the first run, with the key."""
    path = study_file(tmp_path, TEXT.replace(old, new))
    with pytest.raises(InputError, match=problem):
        Study.from_file(path)


def test_others_may_be_executed(tmp_path: Path):
    """A scheduler without a program is allowed beside planners, where it is not to be planned."""
    new = '"lp_pareto_profit", "mct",'
    text = "only = \"driver == 'reference' or scheduler != 'mct'\"\n" + TEXT
    study = Study.from_file(study_file(tmp_path, text.replace('"lp_pareto_profit",', new)))
    assert study.n_runs == 11


def test_a_campaign_keeps_them(tmp_path: Path, capsys):
    """Stored, found again, repeated to the last bit, with bounds and in the report."""
    study = Study.from_file(study_file(tmp_path, TEXT.replace(', "reference"', "")))
    store = Store.create(tmp_path / "store")
    assert run_campaign(study, store, Options(workers=1)).done == 5
    again = run_campaign(study, Store.open(tmp_path / "store"), Options(workers=1))
    assert (again.found, again.done) == (5, 0)
    rows = Store.open(tmp_path / "store").rows(study).set_index("scheduler")
    assert rows["profit_rate"]["capped"] == pytest.approx(5.5)
    assert rows["timing.programme_s"].gt(0).all()
    assert main(["study", "rerun", str(tmp_path / "store"), rows["run_id"]["capped"]]) == 0
    page = tmp_path / "r.html"
    assert main(["study", "report", str(tmp_path / "store"), "-o", str(page), "--quiet"]) == 0
    runs = pd.read_csv(tmp_path / "r_files" / "runs.csv")
    assert runs["makespan_bound_s"].to_numpy() == pytest.approx(16.0)
    assert capsys.readouterr().err == ""
