"""Bounds beside runs: which ones are taken, and the fields that `compare` shows."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from bag_cases import ex_a_platform, ex_a_tasks

from gridsched.analysis.bounds import bound_fields, bounds_for, have_bounds
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.model.budget import EnergyBudget
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.run_times import DrawnRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign, Drop
from gridsched.spec.run import run
from gridsched.spec.scenario import Scenario
from gridsched.testing.parallel_cases import EXAMPLE, make_parallel_case

ROOT = Path(__file__).resolve().parents[2]
EX_A = Scenario(ex_a_platform(), ex_a_tasks(), driver="reference")


def results_of(*schedulers, **changes):
    """Run schedulers on EX-A."""
    return [run(replace(EX_A, scheduler=each, **changes)) for each in schedulers]


@pytest.mark.parametrize(
    ("schedulers", "joules", "counts_idle"),
    [(("wq", "mct"), 2030, True), (("wq", "lecsa"), 1050, False), (("auto_bag",), 1050, False)],
)
def test_idle_counts_unless_somebody_may_switch_off(schedulers, joules, counts_idle):
    """One scheduler that may switch hosts off takes idle power out of the common bound."""
    bounds = bounds_for(results_of(*schedulers))
    assert bounds.makespan_s == pytest.approx(30)
    assert bounds.energy_j == pytest.approx(joules)
    assert bounds.counts_idle is counts_idle


def test_hosts_off_and_pstate_of_the_scenario():
    """Hosts that stay off add no speed; LECSA could switch them on."""
    assert bounds_for(results_of("wq", hosts_off=("h1",))).makespan_s == pytest.approx(5250 / 75)
    assert bounds_for(results_of("lecsa", hosts_off=("h1",))).makespan_s == pytest.approx(30)


def test_fields():
    """Distances are relative; a run on the bound has exactly 0."""
    results = results_of("dynamic_fpltf", "wq")
    bounds = bounds_for(results)
    best, queue = (bound_fields(bounds, result.summary()) for result in results)
    assert best["makespan_above_bound"] == 0.0
    assert best["energy_above_bound"] == pytest.approx(220 / 2030)
    assert best["above_front"] == 0.0  # in 30 s all hosts have to be busy
    assert queue["above_front"] == pytest.approx((2430 - 2030) / 2030)  # 70 s are enough
    assert queue["makespan_above_bound"] == pytest.approx(50 / 30)
    assert queue["energy_bound_counts_idle"] is True
    assert (queue["makespan_bound_s"], queue["energy_bound_j"]) == pytest.approx((30, 2030))


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
    assert killed.summary()["makespan_s"] < bounds_for([killed]).makespan_s
    assert not have_bounds([killed])
    assert have_bounds([killed, whole])


def test_uncertain_run_times_have_no_bounds():
    """Half as long as estimated: a run of estimates' bounds would be below them."""
    estimates = FlopsEstimates(EX_A.platform, EX_A.tasks)
    shorter = DrawnRunTimes(estimates, [0.5] * 5, lambda share, estimate_s: share * estimate_s)
    result = results_of("dynamic_fpltf", run_times=shorter)[0]
    assert result.summary()["makespan_s"] == 15.0
    assert not have_bounds([result])
    with pytest.raises(InputError, match="how long they really take is not what is estimated"):
        bounds_for([result])


def test_nothing_to_do():
    """With no tasks the bounds are 0 and there is no distance."""
    result = results_of("wq", tasks=make_tasks([]))[0]
    fields = bound_fields(bounds_for([result]), result.summary())
    assert (fields["makespan_bound_s"], fields["energy_bound_j"]) == (0, 0)
    assert fields["energy_above_bound"] is None
    assert fields["above_front"] is None


def compare(capsys, *words: str) -> str:
    """Run ``gridsched compare`` on EX-A with the reference driver; return what it prints."""
    files = (
        "--platform", str(ROOT / "platforms" / "ex_a.xml"),
        "--workload", str(ROOT / "examples" / "ex_a.csv"),
    )  # fmt: skip
    assert main(["compare", *files, "--driver", "reference", *words]) == 0
    return capsys.readouterr().out


def test_compare_as_json(capsys):
    """Each result of `compare --json` holds the bounds and its distances."""
    rows = json.loads(compare(capsys, "--schedulers", "wq,lecsa", "--json"))["results"]
    assert [row["energy_bound_j"] for row in rows] == pytest.approx([1050, 1050])
    assert [row["makespan_bound_s"] for row in rows] == pytest.approx([30, 30])
    assert [row["energy_above_bound"] for row in rows] == pytest.approx([138 / 105, 65 / 105])
    assert [row["energy_bound_counts_idle"] for row in rows] == [False, False]


def test_compare_as_table(capsys):
    """The line under the table says which bound it is, and whom auto_bag followed."""
    shown = compare(capsys, "--schedulers", "wq,mct")
    assert "at least 30 s and 2,030 J (idle power of every host to the end counted)" in shown
    assert "links" not in shown
    shown = compare(capsys, "--schedulers", "auto_bag", "--set", "candidates=wq,lecsa")
    assert "at least 30 s and 1,050 J (idle power not counted" in shown
    assert "auto_bag followed LECSA(" in shown


def test_parallel_jobs_have_no_bounds():
    """Sets of nodes, and times that were only asked for: what holds for serial tasks does not."""
    case = make_parallel_case("example", 4, EXAMPLE)
    result = run(case.scenario("fcfs", driver="reference"))
    assert not have_bounds([result])
    with pytest.raises(InputError, match=r"they are parallel, and take sets of nodes. Name no"):
        bounds_for([result])
    asked = results_of("wq", tasks=make_tasks([1.0], requested_time_s=1.0))
    assert not have_bounds(asked)
    with pytest.raises(InputError, match="they only asked for a time"):
        bounds_for(asked)
