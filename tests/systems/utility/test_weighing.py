"""What energies weigh to schedulers: money, grams, and arrivals to come."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace

import numpy as np
import pytest
from scheduler_cases import b6_scenario

from gridsched import Assign, Host, Platform, PState, Scenario, make_tasks, run
from gridsched.drivers.simgrid_library import is_installed
from gridsched.errors import InputError
from gridsched.model.carbon import Carbon
from gridsched.model.parallel_estimates import ParallelEstimates, node_platform
from gridsched.model.prices import PriceSeries
from gridsched.model.rules import EnergyBudget
from gridsched.model.series import Series, SiteSeries
from gridsched.model.signals import Signal
from gridsched.model.tariff import Tariff
from gridsched.model.task_types import TYPED_TASK_FLOPS
from gridsched.model.utility import UtilityFunctions
from gridsched.policy.registry import entries, make_scheduler, scheduler_class
from gridsched.policy.state import EnergyState
from gridsched.runs.scenario_maker import load
from gridsched.scenario import make_system
from gridsched.schedulers.weighing import WEIGHS
from gridsched.systems.utility.arrival_aware import DemandPattern, energy_weight, least_energy_j
from gridsched.systems.utility.kernels.parallel_options import UPE, UPR, Objective

# What energies weigh: joules, money or grams, in the objective of each scheduler that has `weigh`.

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


@pytest.mark.systems("profit")
def test_all_that_weigh_energy_can_weigh_grams():
    """The schedulers of the bag, of utility, of programs, and the one that tries others."""
    assert set(WEIGHING) == {"lecsa", "max_max_upe", "max_upe", "arrival_aware", "lp_max_profit", "auto_bag"}
    assert all(make_scheduler(each).weigh == "energy" for each in WEIGHING)


PAIR = Platform(tuple(Host(name, (PState(10.0, 0.0, 100.0, 100.0),)) for name in ("a", "b")))


@pytest.mark.parametrize(
    "scheduler", ["lecsa", "auto_bag", pytest.param("lp_max_profit", marks=pytest.mark.systems("profit"))]
)
@pytest.mark.parametrize("weigh", WEIGHS[1:])
def test_nothing_says_what_a_joule_weighs(scheduler, weigh):
    """The message names the scheduler and the option that is missing."""
    option = {"money": "--prices", "carbon": "--carbon"}[weigh]
    with pytest.raises(InputError, match=option):
        run(Scenario(PAIR, make_tasks([10.0]), scheduler, {"weigh": weigh}, driver="reference"))
    with pytest.raises(InputError, match="'grams'"):
        run(Scenario(PAIR, make_tasks([10.0]), scheduler, {"weigh": "grams"}, driver="reference"))


@pytest.mark.parametrize(
    "scheduler",
    ["lecsa", "max_max_upe", "auto_bag", pytest.param("lp_max_profit", marks=pytest.mark.systems("profit"))],
)
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


@pytest.mark.systems("profit")
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
        if scheduler == "arrival_aware":  # with nothing left of a budget it uses Max UPE
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


# `arrival_aware` by hand: what it learns, its goal energy, and the objective of an event.

DRIVERS = ("reference", "simgrid") if is_installed() else ("reference",)
INF = math.inf


def pattern(*tasks: tuple[float, float]) -> DemandPattern:
    """Return a pattern that knows tasks of some times and demands, added one by one."""
    found = DemandPattern()
    for submit_s, demand in tasks:
        found.add(np.array([submit_s]), np.array([demand]))
    return found


def test_what_earlier_periods_tell_of_each_part():
    """Periods of 24 s. At 30 s 18 parts of 1 s are to come, of which that at 11 s had 3 J.

    The mean rate is 10 J in 30 s. Each part had 1 s before, to which 1 s at the mean rate is added:
    the part at 11 s is expected at (3 + 1/3) / 2, the others at (1/3) / 2: together 4.5 J.
    """
    known = pattern((1.0, 1.0), (5.0, 2.0), (11.0, 3.0), (30.0, 4.0))
    assert known.expected_j(30.0, 24.0, 48.0) == pytest.approx(4.5)
    # half a second later half a part less is to come, and the mean rate is lower
    assert known.expected_j(30.5, 24.0, 48.0) == pytest.approx((3.0 + 17.5 * 10.0 / 30.5) / 2.0)
    # the next period has two before it: 10 J and 23 parts of 1 s, each with 2 s before
    known.add(np.array([48.5]), np.array([1.0]))
    expected = (10.0 + 23.0 * 11.0 / 49.0) / 3.0
    assert known.expected_j(49.0, 48.0, 72.0) == pytest.approx(expected)
    assert known.expected_j(72.0, 48.0, 72.0) == 0.0


def test_a_warm_up_is_history_of_the_parts_that_it_covers():
    """4 s before periods of 24 s belong to the parts from 20 to 24 s; here 2 J came at 20.5 s.

    In the warm-up itself the whole period is expected at the mean rate.
    """
    known = pattern((0.5, 2.0))
    assert known.expected_j(2.0, 4.0, 28.0) == pytest.approx(24.0)
    known.add(np.array([5.0]), np.array([1.0]))
    mean = 3.0 / 8.0  # at 8 s: 4 s of today
    expected = 16 * mean + (2.0 + 4 * mean) / 2.0
    assert known.expected_j(8.0, 4.0, 28.0) == pytest.approx(expected)


def test_without_history_the_mean_rate_of_today_is_expected():
    """8 J in 10 of 24 s: 0.8 W for 14 s more. Nothing is known at time 0, or without demand."""
    known = pattern((0.0, 7.0), (2.0, 1.0))
    assert known.expected_j(10.0, 0.0, 24.0) == pytest.approx(11.2)
    assert known.is_known(10.0)
    assert not known.is_known(0.0)
    assert not pattern((1.0, 0.0)).is_known(6.0)


def test_energy_weighs_by_what_is_left_of_the_goal():
    """1,000 J, 500 spent: 1 if 500 should be; (600 / 500) ** 6 if only 400 should be."""
    energy = EnergyState(1000.0, 300.0, 200.0, 500.0, 0.0, 0.0, 100.0)
    assert energy_weight(energy, 500.0) == 1.0
    assert energy_weight(energy, 400.0) == pytest.approx(1.2**6)
    assert energy_weight(energy, 600.0) == pytest.approx(0.8**6)
    assert energy_weight(energy, -500.0) == pytest.approx(3.0**6)
    # less than a tenth of what remains counts as a tenth, more than ten times as ten times
    assert energy_weight(energy, 990.0) == energy_weight(energy, 1000.0) == pytest.approx(1e-6)
    assert energy_weight(energy, -9000.0) == pytest.approx(1e6)
    assert energy_weight(replace(energy, remaining_j=0.0), 500.0) == INF
    assert energy_weight(replace(energy, budget_j=INF, remaining_j=INF), INF) == 0.0


def two_pstates(budget: EnergyBudget | None) -> Scenario:
    """Return two one-core nodes; a task each at 0 and 20 s, with two P-states.

    10 s at 20 W, or 20 s at 8 W. The mean is 14 W, so that energy decides from a weight of 3.5:
    10 + 200 w / 14 = 20 + 160 w / 14.
    """
    times, watts = np.array([[[10.0, 20.0]]] * 2), np.array([[[20.0, 8.0]]])
    nodes = np.ones((2, 1), dtype=np.int64)
    platform = node_platform(times[:1], watts, [2])
    tasks = make_tasks(
        [TYPED_TASK_FLOPS] * 2,
        [0.0, 20.0],
        task_type=[0, 0],
        width=[1, 1],
        utility=UtilityFunctions.exponential([4.0, 4.0], 0.0),
    )
    estimates = ParallelEstimates(platform, times, nodes, watts, [0, 0], cores_per_node=1)
    return Scenario(platform, tasks, "arrival_aware", estimates=estimates, mapping_interval_s=10.0, budget=budget)


def pstates_of(budget: EnergyBudget | None, driver: str) -> list[int]:
    """Return the P-states of the two tasks."""
    trace = run(replace(two_pstates(budget), driver=driver)).trace
    return list(trace.executions["pstate"].tolist())


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_choice_by_hand(driver: str):
    """The first runs fast, with 200 J. At 20 s, after 320 J, 80 s at 16 W are expected.

    With the 160 J of the task itself 1.5 * 1,440 J should remain. Of 2,000 J: (2160 / 1800) ** 6
    = 2.99, fast again. Of 1,900 J: (2160 / 1700) ** 6 = 4.21, slowly.
    """
    assert pstates_of(EnergyBudget(2000.0, period_s=100.0), driver) == [0, 0]
    assert pstates_of(EnergyBudget(1900.0, period_s=100.0), driver) == [0, 1]
    assert pstates_of(None, driver) == [0, 0]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(("demand", "pstate"), [("submitted", 1), ("served", 0)])
def test_what_is_dropped_may_count_less(demand: str, pstate: int, driver: str):
    """A third task, worth too little, is dropped at 0 s. At 20 s 200 J of 2,000 J are spent.

    80 s at 24 W and 160 J are 2,080 J to come, of which 3,120 J should remain: more than 1,800 J, so
    that the second task runs slowly. Of what was decided on half was served: 1,560 J are enough.
    """
    whole = two_pstates(EnergyBudget(2000.0, period_s=100.0))
    assert isinstance(whole.estimates, ParallelEstimates)
    tasks = make_tasks(
        [TYPED_TASK_FLOPS] * 3,
        [0.0, 0.0, 20.0],
        task_type=[0] * 3,
        width=[1] * 3,
        utility=UtilityFunctions.exponential([4.0, 0.4, 4.0], 0.0),
    )
    times = np.array([[[10.0, 20.0]]] * 3)
    estimates = ParallelEstimates(
        whole.platform, times, np.ones((3, 1), dtype=np.int64), np.array([[[20.0, 8.0]]]), [0] * 3, cores_per_node=1
    )
    trace = run(replace(whole, tasks=tasks, estimates=estimates, driver=driver, parameters={"demand": demand})).trace
    assert trace.executions["pstate"].tolist() == [0, pstate]


@pytest.mark.parametrize("driver", DRIVERS)
def test_before_the_first_period_its_budget_counts(driver: str):
    """At 20 s 100 s at 16 W are expected, and 160 J wait: 2,640 J should remain.

    Of 2,200 J: 1.2 ** 6 = 2.99, fast; of 2,000 J: 1.32 ** 6 = 5.3, slowly.
    """
    for budget_j, chosen in ((2200.0, 0), (2000.0, 1)):
        budget = EnergyBudget(budget_j, period_s=100.0, first_period_start_s=50.0)
        assert pstates_of(budget, driver) == [0, chosen]


def test_what_an_event_goes_by():
    """Max UPR without a budget, Max UPE where nothing remains, between them a weighted sum.

    Where nothing is known the goal is Event-Based's; in a period without end it is 0.
    """
    scheduler = make_scheduler("arrival_aware")
    scheduler.prepare(make_system(load(two_pstates(None))), np.random.default_rng(0))
    energy = EnergyState(1000.0, 300.0, 200.0, 500.0, 0.0, 0.0, 100.0)
    between = Objective(resource=1.0, energy=1.0 / 14.0)
    assert scheduler._objectives(energy, 50.0) == (between, between, 500.0, 500.0)
    endless = replace(energy, period_end=INF)
    doubled = Objective(resource=1.0, energy=2.0**6 / 14.0)
    assert scheduler._objectives(endless, 50.0) == (doubled, doubled, 500.0, 0.0)
    assert scheduler._objectives(replace(energy, remaining_j=0.0), 50.0)[:2] == (UPE, UPE)
    free = replace(energy, budget_j=INF, remaining_j=INF, period_end=INF)
    assert scheduler._objectives(free, 50.0)[0] == UPR
    scheduler.core_power_w_ = 0.0
    assert scheduler._objectives(energy, 50.0)[0] == UPR


def test_what_a_task_demands():
    """Its least energy; nothing where it can run nowhere."""
    energies = np.array([[[5.0, 4.0], [6.0, INF]], [[INF, INF], [INF, INF]]])
    assert least_energy_j(energies).tolist() == [4.0, 0.0]
