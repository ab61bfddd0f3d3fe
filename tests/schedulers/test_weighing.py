"""What energies weigh: joules, money or grams, in the objective of each scheduler that has `weigh`."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from scheduler_cases import b6_scenario

from gridsched import Assign, Host, Platform, PState, Scenario, make_tasks, run
from gridsched.errors import InputError
from gridsched.model.carbon import Carbon
from gridsched.model.parallel_estimates import ParallelEstimates, node_platform
from gridsched.model.prices import PriceSeries
from gridsched.model.rules import EnergyBudget
from gridsched.model.signals import Signal
from gridsched.model.site_series import Series, SiteSeries
from gridsched.model.tariff import Tariff
from gridsched.model.task_types import TYPED_TASK_FLOPS
from gridsched.model.utility import UtilityFunctions
from gridsched.policy.registry import entries, make_scheduler, scheduler_class
from gridsched.schedulers.filters import WEIGHS

WEIGHING = [each.id for each in entries() if "weigh" in inspect.signature(scheduler_class(each.id)).parameters]


def by_host(period_s: float = math.inf, **series: tuple[tuple[float, ...], tuple[float, ...]]) -> Carbon:
    """Return an intensity [g/kWh] for patterns of host names."""
    rows = tuple(Series(*each) for each in series.values())
    return Carbon(SiteSeries(tuple(series), rows), period_s)


def everywhere(*values: float, step_s: float = 10.0) -> Carbon:
    """Return an intensity that changes every `step_s`, the last for ever."""
    times = tuple(step_s * k for k in range(len(values)))
    return Carbon(SiteSeries(("*",), (Series(times, values),)), math.inf)


def by_grams(whole: Scenario) -> Scenario:
    """Return a scenario whose scheduler weighs grams."""
    return Scenario(**{**vars(whole), "parameters": {**whole.parameters, "weigh": "carbon"}})


def placed(result) -> list[tuple[int, int]]:
    """Return task and host of each execution, by task."""
    return sorted(result.trace.executions[["task", "host"]].tolist())


def test_all_that_weigh_energy_can_weigh_grams():
    """The schedulers of the bag, of utility, of programmes, and the one that tries others."""
    assert set(WEIGHING) == {"lecsa", "max_max_upe", "max_upe", "arrival_aware", "lp_max_profit", "auto_bag"}
    assert all(make_scheduler(each).weigh == "energy" for each in WEIGHING)
    assert all("weigh" in scheduler_class(each).newer_parameters for each in WEIGHING)


PAIR = Platform(tuple(Host(name, (PState(10.0, 0.0, 100.0, 100.0),)) for name in ("a", "b")))


@pytest.mark.parametrize("scheduler", ["lecsa", "auto_bag", "lp_max_profit"])
@pytest.mark.parametrize("weigh", WEIGHS[1:])
def test_nothing_says_what_a_joule_weighs(scheduler, weigh):
    """The message names the scheduler and the option that is missing."""
    option = {"money": "--prices", "carbon": "--carbon"}[weigh]
    with pytest.raises(InputError, match=option):
        run(Scenario(PAIR, make_tasks([10.0]), scheduler, {"weigh": weigh}, driver="reference"))
    with pytest.raises(InputError, match="'grams'"):
        run(Scenario(PAIR, make_tasks([10.0]), scheduler, {"weigh": "grams"}, driver="reference"))


@pytest.mark.parametrize("scheduler", ["lecsa", "max_max_upe", "auto_bag", "lp_max_profit"])
def test_one_intensity_everywhere_and_always_changes_nothing(scheduler):
    """Relative to its mean every joule counts 1."""
    if scheduler == "max_max_upe":
        whole = b6_scenario(scheduler, carbon=everywhere(300.0))
    else:
        tasks = make_tasks([30.0, 10.0, 20.0, 50.0, 10.0])
        whole = Scenario(PAIR, tasks, scheduler, driver="reference", carbon=everywhere(300.0))
    plain = run(whole).trace.executions
    assert run(by_grams(whole)).trace.executions.tolist() == plain.tolist()


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
def test_lecsa_deals_to_the_cleanest_host(driver):
    """Hosts are equal but for 200 and 100 g/kWh: the best 20 % is both by joules, b by grams."""
    carbon = by_host(a=((0.0,), (200.0,)), b=((0.0,), (100.0,)))
    tasks = make_tasks([10.0, 10.0], name="equal")
    for weigh, hosts in (("energy", [0, 1]), ("carbon", [1, 1])):
        result = run(Scenario(PAIR, tasks, "lecsa", {"weigh": weigh}, carbon=carbon, driver=driver))
        assert [host for _, host in placed(result)] == hosts


def test_auto_bag_counts_the_grams_of_its_trials():
    """b is cheaper by joules (90 W), a by grams (50 against 100 g/kWh)."""
    hosts = (Host("a", (PState(10.0, 0.0, 100.0, 100.0),)), Host("b", (PState(10.0, 0.0, 90.0, 90.0),)))
    carbon = by_host(a=((0.0,), (50.0,)), b=((0.0,), (100.0,)))
    candidates = [_Fixed(0), _Fixed(1)]
    for weigh, host in (("energy", 1), ("carbon", 0)):
        parameters = {"candidates": candidates, "weigh": weigh}
        whole = Scenario(Platform(hosts), make_tasks([10.0]), "auto_bag", parameters, carbon=carbon, driver="reference")
        assert placed(run(whole)) == [(0, host)]


class _Fixed(scheduler_class("mct")):
    """Every task to one host."""

    def __init__(self, host: int = 0) -> None:
        self.host = host

    def schedule(self, state):
        return [Assign(task, self.host) for task in state.mappable.tolist()]


@pytest.mark.parametrize(("now", "host"), [(0.0, 0), (10.0, 1)])
def test_trials_begin_at_the_moment(now, host):
    """a is clean until 10 s, b from then on; the trial of a bag of 10 s sees its own hour."""
    carbon = by_host(a=((0.0, 10.0), (50.0, 500.0)), b=((0.0, 10.0), (500.0, 50.0)))
    parameters = {"candidates": [_Fixed(0), _Fixed(1)], "weigh": "carbon"}
    whole = Scenario(PAIR, make_tasks([100.0], [now]), "auto_bag", parameters, carbon=carbon, driver="reference")
    assert placed(run(whole)) == [(0, host)]


def test_the_programme_fills_the_cleaner_site():
    """With gamma 1 only the least grams count: all tasks on b, though a machine is as fast."""
    carbon = by_host(a=((0.0,), (300.0,)), b=((0.0,), (100.0,)))
    tasks = make_tasks([10.0] * 6)
    whole = Scenario(PAIR, tasks, "lp_max_profit", {"gamma": 1.0001}, carbon=carbon, driver="reference")
    assert sorted(host for _, host in placed(run(whole))) == [0, 0, 0, 1, 1, 1]
    assert [host for _, host in placed(run(by_grams(whole)))] == [1] * 6


def test_money_goes_by_the_price_of_the_moment():
    """LECSA with one price for all hosts ranks as by joules; without a series it is refused."""
    prices = PriceSeries((0.0, 10.0), (1.0, 1.0), (1.0, 3.0), (0.0, 0.0))
    tariff = Tariff(1.0, prices=prices)
    tasks = make_tasks([30.0, 10.0, 20.0])
    runs = [
        run(Scenario(PAIR, tasks, "lecsa", {"weigh": weigh}, tariff=tariff, driver="reference"))
        for weigh in ("energy", "money")
    ]
    assert placed(runs[0]) == placed(runs[1])
    with pytest.raises(InputError, match="--prices"):
        run(Scenario(PAIR, tasks, "lecsa", {"weigh": "money"}, tariff=Tariff(1.0), driver="reference"))


def parallel(scheduler: str, carbon: Carbon | None, **parameters) -> Scenario:
    """Return a task of one node for 10 s on two clusters of a node, 100 W on the first, 90 W on the second."""
    times, watts = np.full((1, 2, 1), 10.0), np.array([[[100.0], [90.0]]])
    platform = node_platform(times, watts, [1, 1])
    tasks = make_tasks([TYPED_TASK_FLOPS], task_type=[0], width=[1], utility=UtilityFunctions.exponential([1.0], 0.0))
    nodes = np.ones((1, 2), dtype=np.int64)
    estimates = ParallelEstimates(
        platform, times, nodes, watts, [0], typical_time_s=times, typical_nodes=nodes, cores_per_node=1
    )
    return Scenario(
        platform,
        tasks,
        scheduler,
        parameters,
        estimates=estimates,
        carbon=carbon,
        mapping_interval_s=10.0,
        driver="reference",
    )


@pytest.mark.parametrize("scheduler", ["max_upe", "arrival_aware"])
def test_parallel_tasks_go_to_the_cleaner_cluster(scheduler):
    """By joules the second cluster earns more per joule, by grams (50 against 100 g/kWh) the first."""
    first, second = (cluster.name for cluster in parallel(scheduler, None).platform.clusters)
    carbon = by_host(**{first: ((0.0,), (50.0,)), second: ((0.0,), (100.0,))})
    hosts = {}
    for weigh in ("energy", "carbon"):
        whole = parallel(scheduler, carbon, weigh=weigh)
        if scheduler == "arrival_aware":  # with nothing left of a budget it goes by Max UPE
            budget = EnergyBudget(energy_j=2000.0, period_s=1e6, first_period_start_s=0.0)
            whole = Scenario(**{**vars(whole), "budget": budget})
        hosts[weigh] = placed(run(whole))
    assert hosts["carbon"] == [(0, 0)]
    if scheduler == "max_upe":
        assert hosts["energy"] == [(0, 1)]


def test_utility_per_gram_takes_the_cleaner_machine():
    """B6's machines: where the one that UPE takes emits ten times as much a joule, the other is taken."""
    plain = placed(run(b6_scenario("max_max_upe")))
    first = plain[0][1]
    names = [host.name for host in b6_scenario("max_max_upe").platform.hosts]
    series = {name: ((0.0,), (1000.0 if k == first else 1.0,)) for k, name in enumerate(names)}
    weighed = placed(run(by_grams(b6_scenario("max_max_upe", carbon=by_host(**series)))))
    assert weighed[0][1] != first


def test_a_signal_from_a_time_on():
    """Cycles go on where they are, the last weight of one without a cycle holds for ever."""
    cycle = Signal((0.0, 10.0, 30.0), (1.0, 2.0, 3.0), 40.0)
    times = np.array([0.0, 4.0, 5.0, 24.9, 25.0, 34.9, 35.0, 44.0, 60.0])
    assert cycle.later(5.0).at(times).tolist() == cycle.at(times + 5.0).tolist()
    assert cycle.later(45.0).at(times).tolist() == cycle.at(times + 45.0).tolist()
    once = Signal((0.0, 10.0), (1.0, 2.0))
    assert once.later(15.0).at(times).tolist() == [2.0] * len(times)
    assert once.later(4.0).at(np.array([5.9, 6.0])).tolist() == [1.0, 2.0]
