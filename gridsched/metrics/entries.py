"""The metrics of runs, in the order of a report."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gridsched.metrics import run_metrics
from gridsched.metrics.facts import RunFacts
from gridsched.metrics.table import Condition, Metric, register_metric
from gridsched.metrics.window_metrics import utility_possible
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.power import peak_power_w

DRIVEN = Condition("", lambda run: run.driver is not None)
METERED = Condition("SimGrid's driver", lambda run: run.plugin_j is not None)
LINKS = Condition("links with power", lambda run: run.links_j is not None, usual=False)
UTILITY = Condition("utility functions", lambda run: run.has_utility, "system")
WINDOW = Condition("a window", lambda run: run.window_s is not None, "system")
WINDOW_UTILITY = Condition(
    "a window and utility functions",
    lambda run: run.window_s is not None and run.has_utility,
    "system",
)
POSSIBLE_UTILITY = Condition(
    "a window, utility functions and estimates",
    lambda run: run.window_s is not None and run.has_utility and run.shortest_s is not None,
    "system",
)
PERIODS = Condition(
    "an energy budget", lambda run: len(run.trace.periods) > 0 and run.money_per_j is None
)
MONEY = Condition(
    "an energy budget in money (`money_budget`)",
    lambda run: len(run.trace.periods) > 0 and run.money_per_j is not None,
    usual=False,
)
POSTPONING = Condition(
    "utility functions or an energy budget",
    lambda run: run.has_utility or len(run.trace.periods) > 0,
)
DEADLINES = Condition("deadlines", lambda run: run.trace.tasks.deadline_s is not None, usual=False)
BUDGET = Condition(
    "an energy budget", lambda run: run.budget is not None and run.budget.energy_j is not None
)
TARIFF = Condition("a tariff (`price`)", lambda run: run.tariff is not None, usual=False)
PARALLEL = Condition("parallel tasks", lambda run: run.is_parallel, "parallel")
PLANNED = Condition("the driver `optimize`", usual=False)
OUTAGES = Condition(
    "hosts that go down", lambda run: bool(run.trace.platform.profiles.states), usual=False
)
PRICES = Condition(
    "prices that vary (`prices`)",
    lambda run: run.tariff is not None and run.tariff.prices is not None,
    usual=False,
)
#: Told nothing of a run: the bounds follow from its description.
BOUNDED = Condition("bags of tasks", workload="bag")


def _energy(part: str) -> Callable[[RunFacts], float]:
    return lambda run: run.energy.grid_total(part)


def _count(state: TaskState) -> Callable[[RunFacts], int]:
    return lambda run: run_metrics.count_in_state(run.trace, state)


_ENERGY = (
    Metric("energy_j", "J", "energy of the computing hosts over the run; `energy_source` says by "
           "what it was metered", lambda run: run.energy_j, condition=DRIVEN, better="less",
           words="energy by plugin", header="energy,\nplugin\n[{unit}]", scale="total",
           planned=lambda plan: plan.energy_j,
           places={"run": 190, "bag": 60, "system": 60, "parallel": 50, "notebook": 60}),
    Metric("energy_source", "", "what `energy_j` is by: SimGrid's energy `plugin`, or the `model` "
           "with the reference driver, or the `plan` with the driver `optimize`",
           lambda run: "model" if run.plugin_j is None else "plugin",
           condition=DRIVEN, header="energy\nby", form="text", planned=lambda plan: "plan"),
    Metric("energy_links_j", "J", "energy of the links by SimGrid's plugin, not counted in "
           "`energy_j`", lambda run: float(sum(run.links_j.values())), condition=LINKS,
           better="less", header="links\n[{unit}]", places={"run": 280, "bag": 130}),
)  # fmt: skip
_RUN = (
    Metric("makespan_s", "s", "last finish minus first submission. Batsim 5 means the same; Batsim "
           "4 used the last finish", lambda run: run_metrics.makespan_s(run.trace), better="less",
           header="makespan\n[{unit}]", planned=lambda plan: plan.makespan_s,
           places={"run": 160, "bag": 1, "parallel": 40, "notebook": 30}),
    Metric("busy_time_s", "s", "time cores spent executing, wasted copies too",
           lambda run: run_metrics.busy_time_s(run.trace),
           header="busy\ntime [{unit}]", planned=lambda plan: plan.busy_time_s, is_detail=True,
           places={"run": 170, "bag": 50}),
    Metric("energy_model_j", "J", "energy of the computing hosts over the run by the model",
           _energy("total_j"), better="less", words="energy by model",
           header="energy,\nmodel\n[{unit}]", scale="total", is_detail=True,
           places={"run": 200, "bag": 70, "system": 70, "parallel": 60}),
    Metric("energy_busy_j", "J", "part of it drawn by hosts with a busy core",
           _energy("busy_j"), better="less", words="of it while busy", is_detail=True,
           places={"run": 210}, is_part=True),
    Metric("energy_idle_j", "J", "part of it drawn by hosts that are on and have no busy core",
           _energy("idle_j"), better="less", words="while idle", header="idle\n[{unit}]",
           places={"run": 220, "bag": 110, "parallel": 80}, is_part=True),
    Metric("energy_boot_j", "J", "part of it drawn by hosts that boot", _energy("boot_j"),
           better="less", words="while booting", is_detail=True, places={"run": 230}, is_part=True,
           hides_zero=True),
    Metric("energy_shutdown_j", "J", "part of it drawn by hosts that shut down",
           _energy("shutdown_j"), better="less", words="while shutting down", is_detail=True,
           places={"run": 240}, is_part=True, hides_zero=True),
    Metric("energy_off_j", "J", "part of it drawn by hosts that are off, and have shut down",
           _energy("off_j"), better="less", words="while off", is_detail=True, places={"run": 250},
           is_part=True, hides_zero=True),
    Metric("peak_power_w", "W", "largest power of the computing hosts together, by the model",
           lambda run: peak_power_w(run.trace, run.power), better="less", words="largest power",
           is_detail=True),
    Metric("energy_wasted_j", "J", "share of `energy_busy_j` that went into copies which did not "
           "finish their task", _energy("wasted_j"), better="less",
           words="wasted on cancelled copies", header="wasted\n[{unit}]",
           places={"run": 260, "bag": 120}, is_part=True, hides_zero=True),
    Metric("wasted_flops", "flop", "work of copies that did not finish their task",
           lambda run: run_metrics.wasted_flops(run.trace), better="less", words="work wasted",
           is_detail=True, places={"run": 290}, hides_zero=True),
    Metric("waste_ratio", "", "wasted work over all executed work",
           lambda run: run_metrics.waste_ratio(run.trace), better="less",
           words="share of the work wasted", places={"run": 300}, hides_zero=True),
    Metric("hosts_used", "", "hosts that executed anything",
           lambda run: run_metrics.hosts_used(run.trace), header="hosts\nused",
           places={"run": 330, "bag": 140, "notebook": 100}),
    Metric("executions", "", "copies of tasks that were started",
           lambda run: len(run.trace.executions), is_detail=True),
    Metric("tasks", "", "tasks that were submitted", lambda run: len(run.trace.tasks),
           planned=lambda plan: plan.tasks, is_detail=True),
    Metric("tasks_finished", "", "tasks that finished", _count(TaskState.FINISHED),
           better="more", header="finished",
           planned=lambda plan: plan.tasks if plan.runs else 0,
           places={"run": 340, "system": 80, "parallel": 90, "notebook": 90}),
    Metric("tasks_dropped", "", "tasks that the scheduler gave up", _count(TaskState.DROPPED),
           better="less", header="dropped", places={"run": 350, "system": 90}, hides_zero=True),
    Metric("tasks_rejected", "", "tasks that fit on no host", _count(TaskState.REJECTED),
           better="less", places={"run": 370}, hides_zero=True),
    Metric("tasks_killed", "", "tasks that the end of the budget killed", _count(TaskState.KILLED),
           better="less", places={"run": 380}, hides_zero=True),
    Metric("tasks_failed", "", "tasks whose host failed", _count(TaskState.FAILED),
           better="less", places={"run": 390}, hides_zero=True),
    Metric("tasks_unfinished", "", "tasks that the horizon left undone",
           _count(TaskState.UNFINISHED), better="less", places={"run": 400}, hides_zero=True),
    Metric("tasks_late", "", "tasks that finished after their deadline",
           lambda run: int(run_metrics.is_late(run.trace).sum()), condition=DEADLINES,
           better="less", header="late",
           places={"run": 410, "bag": 150, "system": 110, "parallel": 100}),
    Metric("tasks_missed", "", "tasks that did not finish by their deadline: late, dropped, "
           "rejected, killed, failed or unfinished",
           lambda run: int(run_metrics.is_missed(run.trace).sum()), condition=DEADLINES,
           better="less", header="missed",
           places={"run": 420, "bag": 160, "system": 120, "parallel": 110}),
    Metric("mean_time_to_deadline_s", "s", "mean time from submission to deadline of tasks that "
           "have one", lambda run: run_metrics.mean_time_to_deadline_s(run.trace),
           condition=DEADLINES, places={"run": 425}),
    Metric("mean_waiting_time_s", "s", "mean time from submission to start of finished tasks",
           lambda run: run_metrics.mean_of_finished(run.waiting_s), better="less",
           header="mean\nwait [{unit}]", form="rounded",
           places={"run": 430, "system": 130, "parallel": 1}),
    Metric("mean_flow_time_s", "s", "mean time from submission to finish of finished tasks",
           lambda run: run_metrics.mean_of_finished(run.flow_s), better="less",
           places={"run": 450}),
    Metric("mean_slowdown", "", "mean of flow time over execution time of finished tasks",
           lambda run: run_metrics.mean_of_finished(run.slowdown), better="less",
           places={"run": 470}),
    Metric("max_waiting_time_s", "s", "longest time from submission to start of finished tasks",
           lambda run: run_metrics.max_of_finished(run.waiting_s), better="less",
           words="longest waiting time", is_detail=True, places={"run": 440}),
    Metric("max_flow_time_s", "s", "longest time from submission to finish of finished tasks",
           lambda run: run_metrics.max_of_finished(run.flow_s), better="less",
           words="longest flow time", is_detail=True, places={"run": 460}),
    Metric("max_slowdown", "", "largest flow time over execution time of finished tasks",
           lambda run: run_metrics.max_of_finished(run.slowdown), better="less",
           words="largest slowdown", is_detail=True, places={"run": 480}),
    Metric("horizon_s", "s", "end of the run; energy is counted from 0 to here",
           lambda run: float(run.trace.horizon_s), is_detail=True),
    Metric("mapping_events", "", "instants at which the scheduler was asked",
           lambda run: run.trace.mapping_events, is_detail=True, places={"run": 510}),
)  # fmt: skip
_OUTAGES = (
    Metric("executions_failed", "", "executions that ended because their host went down",
           lambda run: len(run.trace.of_outcome(ExecutionEnd.FAILED)), condition=OUTAGES,
           better="less", words="executions that failed", header="failed\nruns",
           places={"run": 310}, hides_zero=True),
    Metric("lost_work_s", "s", "time cores (or nodes) spent on executions that failed",
           lambda run: run_metrics.lost_work_s(run.trace), condition=OUTAGES, better="less",
           words="work lost", header="lost\nwork [{unit}]", places={"run": 320}, hides_zero=True),
    Metric("energy_lost_j", "J", "part of `energy_wasted_j` that went into executions which failed",
           lambda run: run.energy_lost_j, condition=OUTAGES, better="less",
           words="of that on copies that failed", header="lost\n[{unit}]", places={"run": 270},
           is_part=True, hides_zero=True),
)  # fmt: skip
_PARALLEL = (
    Metric("mean_bounded_slowdown", "", "mean of flow time over execution time of finished tasks, "
           f"where executions shorter than {run_metrics.SLOWDOWN_BOUND_S:g} s count as that long, "
           "and at least 1", lambda run: run_metrics.mean_of_finished(run.bounded_slowdown),
           condition=PARALLEL, better="less", header="mean\nbounded\nslowdown", form="rounded",
           places={"run": 490, "parallel": 2}),
    Metric("max_bounded_slowdown", "", "largest bounded slowdown of finished tasks",
           lambda run: run_metrics.max_of_finished(run.bounded_slowdown), condition=PARALLEL,
           better="less", words="largest bounded slowdown", is_detail=True, places={"run": 500}),
    Metric("utilisation", "", "node-seconds executed over the nodes of the platform times the "
           "makespan", lambda run: run_metrics.utilisation(run.trace), condition=PARALLEL,
           better="more", header="utili-\nsation", places={"run": 180, "parallel": 30}),
)  # fmt: skip
_PLUGIN = (
    Metric("energy_relative_difference", "", "difference of plugin and model in total, relative to "
           "the larger", lambda run: run.differences[-1], condition=METERED, better="less",
           is_detail=True),
    Metric("energy_worst_host_difference", "", "the same of the host where it is largest",
           lambda run: max(run.differences[:-1], default=run.differences[-1]),
           condition=METERED, better="less", is_detail=True),
)  # fmt: skip
_UTILITY = (
    Metric("utility", "", "utility earned by finished tasks", lambda run: run.utility,
           condition=UTILITY, better="more", words="utility earned", header="utility",
           form="rounded", places={"run": 10, "system": 2, "notebook": 20}),
    Metric("utility_possible", "", "utility if each task finished the moment it arrived: the sum "
           "of priorities", lambda run: utility_possible(run.trace), condition=UTILITY,
           words="of at most", is_detail=True, places={"run": 20}, is_part=True),
    Metric("window_utility", "", "utility earned inside the workload's window; a task counts with "
           "the share of its run time that lies in it",
           lambda run: run.window_utility, condition=WINDOW_UTILITY, better="more",
           words="utility in the window", header="utility\nin\nwindow", form="rounded",
           places={"run": 30, "system": 1, "notebook": 10}),
    Metric("window_utility_possible", "", "utility if each task that arrives inside the window ran "
           "at once in its shortest time: the maximum system utility of paper 001",
           lambda run: run.window_utility_possible, condition=POSSIBLE_UTILITY,
           words="of at most, in the window", form="rounded", places={"run": 40}, is_part=True),
    Metric("window_utility_share", "", "`window_utility` over `window_utility_possible`",
           lambda run: run.window_utility_share, condition=POSSIBLE_UTILITY, better="more",
           words="share of that which is earned", header="share of\nmaximum", form="share",
           places={"run": 45}, is_part=True),
    Metric("window_energy_j", "J", "energy of the computing hosts inside the workload's window, by "
           "the model", lambda run: float(run.drawn_j[-1]), condition=WINDOW, better="less",
           words="energy in the window", header="energy\nin window\n[{unit}]", scale="total",
           places={"run": 50, "system": 50}),
    Metric("tasks_postponed", "", "tasks that were postponed to a later period at least once",
           lambda run: int(np.count_nonzero(run.trace.times_postponed)), condition=POSTPONING,
           better="less", header="post-\nponed", places={"run": 360, "system": 100},
           hides_zero=True),
    Metric("budget_excess_j", "J", "the most that a period drew beyond its budget and beyond what "
           "was carried over", lambda run: run.budget_excess_j, condition=PERIODS, better="less",
           words="energy beyond the budget", places={"run": 130}),
    Metric("carried_over_j", "J", "the most that executions from before a period drew in it",
           lambda run: float(run.carried_over_j.max()), condition=PERIODS,
           words="largest energy carried over", is_detail=True, places={"run": 140},
           hides_zero=True),
    Metric("energy_budget_j", "J", "energy budget of a period", lambda run: run.budget.energy_j,
           condition=BUDGET, is_detail=True),
    Metric("money_spent", "", "money: what the energy of all periods of the budget cost, by the "
           "model", lambda run: run.money_spent, condition=MONEY, better="less",
           words="money spent on energy", header="money\nspent",
           places={"run": 100, "bag": 170, "system": 40, "parallel": 120}),
    Metric("budget_used_share", "", "the most that a period spent over its budget",
           lambda run: run.budget_used_share, condition=MONEY, words="share of the budget used",
           header="budget\nused", form="share", places={"run": 110}, is_part=True),
    Metric("money_excess", "", "money: the most that a period spent beyond its budget and beyond "
           "what was carried over", lambda run: run.money_excess, condition=MONEY, better="less",
           words="money beyond the budget", places={"run": 120}),
    Metric("money_budget", "", "money: energy budget of a period",
           lambda run: None if run.budget is None else run.budget.money, condition=MONEY,
           is_detail=True),
)  # fmt: skip
_MONEY = (
    Metric("profit", "", "money: price of the bag, if all its tasks finished, less the costs of "
           "energy (PUE included), overhead, wear and depreciation over the run",
           lambda run: run.profit, condition=TARIFF, better="more", words="profit [money]",
           header="profit\n[money]",
           planned=lambda plan: plan.profit, places={"run": 60, "bag": 180}),
    Metric("profit_rate", "", "money per second: `profit` over the length of the run, what such "
           "bags earn if they follow each other", lambda run: run.profit_rate, condition=TARIFF,
           better="more", words="profit rate [money/s]",
           header="profit\nrate\n[money/s]", planned=lambda plan: plan.profit_rate,
           places={"run": 90, "bag": 190}),
    Metric("income", "", "money: what the finished bags paid, each by the price of the moment in "
           "which its last task finished", lambda run: run.income, condition=PRICES,
           better="more", words="income of bags", places={"run": 70}, is_part=True),
    Metric("energy_cost", "", "money: what the energy cost, PUE included, each interval by its "
           "price; by the model", lambda run: run.energy_cost, condition=PRICES, better="less",
           words="cost of the energy", header="cost of\nenergy\n[money]", places={"run": 80},
           is_part=True),
    Metric("mean_bag_flow_time_s", "s", "mean time from a bag's submission until its last task "
           "finished, of finished bags",
           lambda run: run_metrics.mean_of_finished(run.bags.flow_time_s), condition=PRICES,
           better="less", words="mean flow time of bags", header="mean\nflow of\nbags [{unit}]",
           form="rounded", places={"run": 150}),
)  # fmt: skip
for _metric in (*_ENERGY, *_RUN, *_OUTAGES, *_PARALLEL, *_PLUGIN, *_UTILITY, *_MONEY):
    register_metric(_metric)
