"""Bounds beside runs: which ones are taken, and the fields that `compare` shows."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from bag_cases import ex_a_platform, ex_a_tasks

from gridsched.analysis.bounds import bound_fields, bounds_for, have_bounds
from gridsched.analysis.comparison import completed
from gridsched.analysis.study_results import read_results
from gridsched.campaign.campaign import Options, run_campaign
from gridsched.campaign.store import Store
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.run_times import DrawnRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign, Drop, PowerOn
from gridsched.runs.run import run
from gridsched.runs.scenario import Scenario
from gridsched.runs.study import Study
from gridsched.testing.parallel_cases import EXAMPLE, make_parallel_case

ROOT = Path(__file__).resolve().parents[2]
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

    traits = Traits(asked="start", powers_hosts=True)

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
    assert not bounds.beside(Traits(asked="event", uses_dvfs=True)).holds_fixed
    assert bounds.beside(Traits(asked="event")).holds_fixed


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

    traits = Traits(asked="event", may_drop=True)

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
    stopped = EnergyBudget(300.0, period_s=math.inf, on_exhaustion="stop")
    whole, killed = results_of("wq")[0], results_of("wq", budget=stopped)[0]
    assert killed.summary()["tasks_killed"] > 0
    assert killed.summary()["makespan_s"] < bounds_for([killed]).any.makespan_s
    assert not have_bounds([killed])
    assert have_bounds([killed, whole])


def test_uncertain_run_times_have_no_bounds():
    """Half as long as estimated: a run of estimates' bounds would be below them."""
    estimates = FlopsEstimates(EX_A.platform, EX_A.tasks)
    shorter = DrawnRunTimes(estimates, [0.5] * 5, lambda share, estimate_s: share * estimate_s)
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
    """Both bounds have a column and a line, and the line says whom auto_bag followed."""
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
    """As compare tells: the work queue's 72.4 g lie 20.7 and 14.6 % above the bounds."""
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
