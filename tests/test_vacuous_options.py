"""Options that cannot matter change nothing: limits that nothing reaches, maintenance after the end, a price of 0."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gridsched import Carbon, Host, Platform, PState, Scenario, make_tasks, run
from gridsched.model.platform import Cluster, Partition
from gridsched.model.rules import EnergyBudget
from gridsched.model.series import Series, SiteSeries
from gridsched.model.tariff import Tariff
from gridsched.policy.base import Scheduler
from gridsched.policy.registry import entries, make_scheduler, scheduler_class
from gridsched.testing.cases import cases_for
from gridsched.testing.playing import Case
from gridsched.testing.repetition import same_run
from gridsched.workloads.traces.trace_options import TraceOptions

#: No tiny case needs so many joules, watts, seconds or grams.
ENOUGH, LATE_S = 1e18, 1e9
EVEN_CARBON = Carbon(SiteSeries(("*",), (Series((0.0,), (300.0,)),)))

BUDGET, PRICE = "budget", "tariff"
#: Schedulers for which an option is an aim, not a limit: a share of the budget, the profit.
AIMS = {
    "arrival_aware": BUDGET,
    "event_based": BUDGET,
    "task_based": BUDGET,
    "lp_max_profit": PRICE,
    "lp_rolling": PRICE,
}
IDS = [entry.id for entry in entries() if not scheduler_class(entry.id).traits.external]


def one_of_each_kind(scheduler: Scheduler) -> list[Case]:
    """Return the first case of each kind of tasks that a scheduler takes, without limits of its own."""
    kinds: dict[tuple[bool, ...], Case] = {}
    for case in cases_for(scheduler):
        tasks, rules = case.tasks, case.rules
        if len(tasks) > 1 and case.estimates is None and not {"budget", "power_cap_w"} & set(rules):
            kind = tasks.are_serial, tasks.take_whole_nodes, tasks.dependencies is not None, case.logged is not None
            kinds.setdefault(kind, case)
    return list(kinds.values())


def vacuous(case: Case, scheduler: Scheduler) -> Iterator[tuple[Case, dict[str, Any]]]:
    """Yield cases and fields of scenarios that cannot matter."""
    # what begins after a period waits for the next one's budget; a queue decides about what begins now
    is_queue = scheduler.traits.parallel and not scheduler.traits.needs_utility
    yield case, {"budget": EnergyBudget(ENOUGH, period_s=math.inf)}
    yield case, {"budget": EnergyBudget(ENOUGH, period_s=7.0 if is_queue else LATE_S)}
    yield case, {"budget": EnergyBudget(ENOUGH, period_s=math.inf, enforcement="stop")}
    carbon = {} if "carbon" in case.rules else {"carbon": EVEN_CARBON}
    yield case, {"budget": EnergyBudget(carbon_g=ENOUGH, period_s=math.inf), **carbon}
    yield case, {"power_cap_w": ENOUGH}
    yield case, {"maintenance": (f"{LATE_S}:{2 * LATE_S}",)}
    yield case, {"horizon_s": LATE_S}
    yield case, {"tariff": Tariff(price=0.0)}
    if scheduler.traits.shares and not case.platform.partitions:
        whole = Partition("all", tuple(range(len(case.platform))))
        yield replace(case, platform=replace(case.platform, partitions=(whole,))), {}


@pytest.mark.parametrize("id", IDS)
def test_vacuous_options_change_nothing(id):
    """The run is the same, bit by bit, with each of them as without, on all kinds of tasks."""
    scheduler = make_scheduler(id)
    cases = one_of_each_kind(scheduler)
    assert cases
    for case in cases:
        expected = run(case.scenario(scheduler, driver="reference")).trace
        for other, changes in vacuous(case, scheduler):
            if AIMS.get(id) not in changes:
                trace = run(other.scenario(scheduler, driver="reference", **changes)).trace
                assert same_run(expected, trace), (case.name, changes)


EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("limits", [{"energy_j": 1e18}, {"energy_j": 1e18, "period_s": math.inf}, {"carbon_g": 1e18}])
def test_a_budget_that_cannot_bind_lets_jobs_of_several_shared_nodes_run(limits):
    """Of the 398 jobs of the example 132 have parts on several nodes: their energy is no less finite for that."""
    log = TraceOptions(allocation="cores", partitions=EXAMPLES / "shared_nodes.toml")
    example = EXAMPLES / "shared_nodes.xml", EXAMPLES / "shared_nodes.sacct", "easy_backfilling"
    options = {"driver": "reference", "trace": log, "carbon": EVEN_CARBON}
    expected = run(Scenario(*example, **options)).trace
    trace = run(Scenario(*example, **options, budget=EnergyBudget(**limits))).trace
    assert len(trace.executions) == 398
    assert same_run(expected, trace)


@pytest.mark.parametrize(("budget_j", "starts"), [(600.0, [0.0]), (599.0, [])])
def test_the_energy_of_parts_on_several_shared_nodes_by_hand(budget_j, starts):
    """Six parts of a core for 10 s, on nodes of four cores that draw 40 W at work, nothing idle: 6 x 10 W x 10 s."""
    hosts = tuple(Host(f"n{k}", (PState(1.0, 0.0, 0.0, 40.0),), cores=4) for k in range(2))
    platform = Platform(hosts, (Cluster("all", (0, 1)),))
    tasks = make_tasks([10.0], width=6, demand=[[1]], anywhere=[True])
    budget = EnergyBudget(budget_j, period_s=100.0, periods=1)
    scenario = Scenario(platform, tasks, "fcfs", driver="reference", budget=budget, horizon_s=90.0)
    assert run(scenario).trace.executions["start"].tolist() == starts
