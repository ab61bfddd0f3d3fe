"""What a run is worth and costs: utility, in its window, too; budgets and their periods; money; carbon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from gridsched.metrics import run_metrics
from gridsched.metrics.facts import RunFacts
from gridsched.metrics.run_entries import UNIT_POWER, less, more
from gridsched.metrics.table import Condition, MetricValue, metric
from gridsched.metrics.window_metrics import utility_possible
from gridsched.model.carbon import embodied_g
from gridsched.model.signals import CARBON, J_PER_KWH, JOULES, MONEY

UTILITY = Condition("utility functions", lambda run: run.has_utility, "system")
WINDOW = Condition("a window", lambda run: run.window_s is not None, "system")
WINDOW_UTILITY = Condition(
    "a window and utility functions", lambda run: run.window_s is not None and run.has_utility, "system"
)
POSSIBLE_UTILITY = Condition(
    "a window, utility functions and estimates",
    lambda run: run.window_s is not None and run.has_utility and run.shortest_s is not None,
    "system",
)
POSTPONING = Condition(
    "utility functions or an energy budget", lambda run: run.has_utility or len(run.trace.periods) > 0
)
PERIODS = Condition("an energy budget", lambda run: run.has_budget_in(JOULES))
BUDGET = Condition("an energy budget", lambda run: run.budget is not None and run.budget.energy_j is not None)
IN_MONEY = Condition("an energy budget in money (`money_budget`)", lambda run: run.has_budget_in(MONEY), default=False)
TARIFF = Condition("a tariff (`price`)", lambda run: run.tariff is not None, default=False)
PRICES = Condition(
    "prices that vary (`prices`)", lambda run: run.tariff is not None and run.tariff.prices is not None, default=False
)

CARBON_KNOWN = Condition(
    "a carbon intensity (`carbon`)",
    lambda run: run.trace.carbon is not None and run.trace.platform.has_energy,
    default=False,
)

EMBODIED = Condition(
    "hosts with embodied carbon (`embodied_kg`)",
    lambda run: any(host.embodied_kg for host in run.trace.platform.hosts),
    default=False,
)
RESOURCES = Condition(
    "a carbon intensity and hosts whose resources have power (`unit_power`)",
    lambda run: run.trace.carbon is not None and UNIT_POWER.holds(run),
    default=False,
)
WHOLE = Condition(
    "a carbon intensity, and hosts with embodied carbon or power of resources",
    lambda run: CARBON_KNOWN.holds(run) and (EMBODIED.holds(run) or RESOURCES.holds(run)),
    default=False,
)

LIMITED = Condition(
    "an energy budget in grams (`carbon_budget_g`)", lambda run: run.has_budget_in(CARBON), default=False
)

of_carbon = partial(less, condition=CARBON_KNOWN)
excess = partial(less, function=lambda run: run.budget_excess)

_UTILITY = (
    more(
        "utility",
        "utility earned by finished tasks",
        lambda run: run.utility,
        condition=UTILITY,
        words="utility earned",
        header="utility",
        form="rounded",
    ),
    metric(
        "utility_possible",
        "utility if each task finished the moment it arrived: the sum of priorities",
        lambda run: utility_possible(run.trace),
        condition=UTILITY,
        words="of at most",
        is_detail=True,
        is_part=True,
    ),
    more(
        "window_utility",
        "utility earned inside the workload's window; a task counts with the share of its run time that lies in it",
        lambda run: run.window_utility,
        condition=WINDOW_UTILITY,
        words="utility in the window",
        header="utility\nin\nwindow",
        form="rounded",
    ),
    metric(
        "window_utility_possible",
        "utility if each task that arrives inside the window ran "
        "at once in its shortest time: the maximum system utility of paper 001",
        lambda run: run.window_utility_possible,
        condition=POSSIBLE_UTILITY,
        words="of at most, in the window",
        form="rounded",
        is_part=True,
    ),
    more(
        "window_utility_share",
        "`window_utility` over `window_utility_possible`",
        lambda run: run.window_utility_share,
        condition=POSSIBLE_UTILITY,
        words="share of that which is earned",
        header="share of\nmaximum",
        form="share",
        is_part=True,
    ),
    less(
        "window_energy_j",
        "energy of the computing hosts inside the workload's window, by the model",
        lambda run: float(run.consumed_j[-1]),
        condition=WINDOW,
        words="energy in the window",
        header="energy\nin window\n[{unit}]",
        scale="total",
    ),
    less(
        "tasks_postponed",
        "tasks that were postponed to a later period at least once",
        lambda run: int(np.count_nonzero(run.trace.times_postponed)),
        condition=POSTPONING,
        header="post-\nponed",
        hides_zero=True,
    ),
)
_BUDGETS = (
    excess(
        "budget_excess_j",
        "the most that a period used beyond its budget and the carried-over energy",
        condition=PERIODS,
        words="energy beyond the budget",
    ),
    metric(
        "carried_over_j",
        "the most energy that executions from before a period used in it",
        lambda run: float(run.carried_over_j.max()),
        condition=PERIODS,
        words="largest energy carried over",
        is_detail=True,
        hides_zero=True,
    ),
    metric(
        "energy_budget_j",
        "energy budget of a period",
        lambda run: run.budget.energy_j,
        condition=BUDGET,
        is_detail=True,
    ),
    less(
        "money_spent",
        "money: cost of the energy of all periods of the budget, by the model",
        lambda run: run.budget_spent,
        condition=IN_MONEY,
        words="money spent on energy",
        header="money\nspent",
    ),
    metric(
        "budget_used_share",
        "largest ratio of a period's spending to its budget",
        lambda run: run.budget_used_share,
        condition=IN_MONEY,
        words="share of the budget used",
        header="budget\nused",
        form="share",
        is_part=True,
    ),
    excess(
        "money_excess",
        "money: the most that a period spent beyond its budget and the carried-over money",
        condition=IN_MONEY,
        words="money beyond the budget",
    ),
    metric(
        "money_budget",
        "money: energy budget of a period",
        lambda run: None if run.budget is None else run.budget.money,
        condition=IN_MONEY,
        is_detail=True,
    ),
)
_MONEY = (
    more(
        "profit",
        "money: price of the bag, if all its tasks finished, less the costs of "
        "energy (PUE included), overhead, wear and depreciation over the run",
        lambda run: run.profit,
        condition=TARIFF,
        words="profit [money]",
        header="profit\n[money]",
        planned=lambda plan: plan.profit,
    ),
    more(
        "profit_rate",
        "money per second: `profit` over the length of the run, the earnings of such bags if they follow each other",
        lambda run: run.profit_rate,
        condition=TARIFF,
        words="profit rate [money/s]",
        header="profit\nrate\n[money/s]",
        planned=lambda plan: plan.profit_rate,
    ),
    more(
        "income",
        "money: payment for the finished bags, each at the price of the moment in which its last task finished",
        lambda run: run.income,
        condition=PRICES,
        words="income of bags",
        is_part=True,
    ),
    less(
        "energy_cost",
        "money: cost of the energy, PUE included, each interval at its price; by the model",
        lambda run: run.energy_cost,
        condition=PRICES,
        words="cost of the energy",
        header="cost of\nenergy\n[money]",
        is_part=True,
    ),
    less(
        "mean_bag_flow_time_s",
        "mean time from a bag's submission until its last task finished, of finished bags",
        lambda run: run_metrics.mean_of_finished(run.bags.flow_time_s),
        condition=PRICES,
        words="mean flow time of bags",
        header="mean\nflow of\nbags [{unit}]",
        form="rounded",
    ),
)


def _grams(part: str) -> Callable[[RunFacts], float]:
    def grams(run: RunFacts) -> float:
        assert run.carbon is not None
        return run.carbon.grid_total(part)

    return grams


def _of_resources(run: RunFacts) -> float:
    assert run.trace.carbon is not None
    return float(run.resources(run.trace.carbon).total_j.sum())


def _embodied(run: RunFacts) -> float:
    return float(embodied_g(run.trace.platform.hosts, run.trace.horizon_s).sum())


def _mean_intensity(run: RunFacts) -> float:
    consumed = run.energy.grid_total()
    return J_PER_KWH * _grams("total_j")(run) / consumed if consumed > 0 else float("nan")


CARBON_ENTRIES = (
    of_carbon(
        "carbon_g",
        "grams of CO2 that the energy of the computing hosts caused, PUE included: the exact integral of power times "
        "intensity, by the model",
        _grams("total_j"),
        words="carbon",
        header="carbon\n[{unit}]",
        scale="grams",
    ),
    *(
        of_carbon(
            f"carbon_{part}_g",
            f"grams of `energy_{part}_j`: each joule by the intensity of its time and site",
            _grams(f"{part}_j"),
            words=words,
            scale="grams",
            is_part=True,
            hides_zero=True,
        )
        for part, words in (
            ("busy", "while busy"),
            ("idle", "while idle"),
            ("boot", "while booting"),
            ("wasted", "wasted"),
        )
    ),
    of_carbon(
        "carbon_intensity_g_per_kwh",
        "grams a kWh: `carbon_g` over the energy by the model",
        _mean_intensity,
        words="grams a kWh",
    ),
    less(
        "carbon_resources_g",
        "grams of `energy_resources_j`, PUE included, not counted in `carbon_g`",
        _of_resources,
        condition=RESOURCES,
        words="carbon of GPUs, memory, ...",
        header="carbon,\nGPUs,\nmemory\n[{unit}]",
        scale="grams",
    ),
    less(
        "carbon_embodied_g",
        "grams of CO2 equivalents of making the computing hosts that fall on the run, hosts that were not used "
        "included: embodied carbon times the length of the run over the lifetime",
        _embodied,
        condition=EMBODIED,
        words="embodied carbon",
        header="embodied\ncarbon\n[{unit}]",
        scale="grams",
    ),
    less(
        "carbon_total_g",
        "`carbon_g`, `carbon_resources_g` and `carbon_embodied_g` together, as far as they are known",
        lambda run: _grams("total_j")(run) + _of_resources(run) + _embodied(run),
        condition=WHOLE,
        words="carbon in total",
        header="carbon\nin total\n[{unit}]",
        scale="grams",
    ),
    excess(
        "carbon_excess_g",
        "the most that a period emitted beyond its budget and the carried-over grams",
        condition=LIMITED,
        words="carbon beyond the budget",
    ),
    metric(
        "carbon_budget_g",
        "energy budget of a period",
        lambda run: None if run.budget is None else run.budget.carbon_g,
        condition=LIMITED,
        is_detail=True,
    ),
)
VALUE_ENTRIES = (*_UTILITY, *_BUDGETS, *_MONEY)


def under_greater_budget(metrics: Mapping[str, MetricValue], energy_budget_j: float) -> dict[str, MetricValue] | None:
    """Return what the metrics of a run would be if all was the same under another budget in joules, no smaller one.

    Parameters
    ----------
    metrics : mapping
        Of the run.
    energy_budget_j : float
        The other budget [J].

    Returns
    -------
    dict or None
        None where more than the budget itself would change: the run exceeded its own, or had none in joules.
    """
    if metrics.get("energy_budget_j") is None or metrics.get("budget_excess_j") != 0.0:
        return None
    return {**metrics, "energy_budget_j": energy_budget_j}
