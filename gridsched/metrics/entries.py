"""The metrics that gridsched knows, in the order of a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gridsched.metrics import of_runs
from gridsched.metrics.facts import RunFacts
from gridsched.metrics.of_windows import utility_possible
from gridsched.metrics.table import Condition, Metric, register_metric
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.power import peak_power_w

Row = Mapping[str, Any]

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
    return lambda run: of_runs.count_in_state(run.trace, state)


def share_above(value: float, bound: float) -> float:
    """Distance of a result from its bound, relative to the bound; nan where the bound is 0."""
    return (value - bound) / bound if bound > 0 else float("nan")


def _share_above(row: Row, metric: str, bound: float) -> float | None:
    """None where the run has not finished all tasks, 0 where only rounding differs."""
    share = share_above(row[metric], bound)
    if row["tasks_finished"] != row["tasks"] or np.isnan(share):
        return None
    return 0.0 if abs(share) < 1e-9 else share


def _bound(kind: str, name: str) -> Callable[[Row], float | None]:
    """Return the metric that one of the bounds is; `kind` is ``any`` or ``fixed``."""
    return lambda row: getattr(getattr(row["bounds"], kind), name, None)


def _above_bound(kind: str, metric: str, name: str) -> Callable[[Row], float | None]:
    def above(row: Row) -> float | None:
        bounds = row["bounds"]
        if kind == "fixed" and not bounds.holds_fixed:
            return None
        bound = getattr(bounds, kind)
        if name == "front":
            return _share_above(row, metric, bound.least_energy_j(row["makespan_s"]))
        return _share_above(row, metric, getattr(bound, name))

    return above


def _above_best(metric: str) -> Callable[[Sequence[Row]], list[float | None]]:
    def above(rows: Sequence[Row]) -> list[float | None]:
        """None where nothing was finished: doing nothing is no way to be the best."""
        did = [row["tasks_finished"] > 0 or not row["tasks"] for row in rows]
        best = min((row[metric] for row, any_ in zip(rows, did, strict=True) if any_), default=0.0)
        return [
            None if not any_
            else 0.0 if row[metric] == best
            else share_above(row[metric], best) if best > 0 else None
            for row, any_ in zip(rows, did, strict=True)
        ]  # fmt: skip

    return above


def utility_metric(row: Row) -> str | None:
    """Return which utility schedulers are compared by; None where tasks have none."""
    return next((key for key in ("window_utility", "utility") if key in row), None)


def _share_of_best(rows: Sequence[Row]) -> list[float | None] | None:
    utility = utility_metric(rows[0])
    if utility is None:
        return None
    best = max(row[utility] for row in rows)
    return [row[utility] / best if best > 0 else None for row in rows]


_ENERGY = (
    Metric("energy_j", "J", "energy of the computing hosts over the run; `energy_source` says by "
           "what it was metered", lambda run: run.energy_j, condition=DRIVEN, better="less",
           words="energy by plugin", header="energy,\nplugin\n[{unit}]", scale="total",
           planned=lambda plan: plan.energy_j),
    Metric("energy_source", "", "what `energy_j` is by: SimGrid's energy `plugin`, or the `model` "
           "with the reference driver, or the `plan` with the driver `optimize`",
           lambda run: "model" if run.plugin_j is None else "plugin",
           condition=DRIVEN, header="energy\nby", form="text", planned=lambda plan: "plan"),
    Metric("energy_links_j", "J", "energy of the links by SimGrid's plugin, not counted in "
           "`energy_j`", lambda run: float(sum(run.links_j.values())), condition=LINKS,
           better="less", header="links\n[{unit}]"),
)  # fmt: skip
_RUN = (
    Metric("makespan_s", "s", "last finish minus first submission. Batsim 5 means the same; Batsim "
           "4 used the last finish", lambda run: of_runs.makespan_s(run.trace), better="less",
           header="makespan\n[{unit}]", planned=lambda plan: plan.makespan_s),
    Metric("busy_time_s", "s", "time cores spent executing, wasted copies too",
           lambda run: of_runs.busy_time_s(run.trace),
           header="busy\ntime [{unit}]", planned=lambda plan: plan.busy_time_s, is_detail=True),
    Metric("energy_model_j", "J", "energy of the computing hosts over the run by the model",
           _energy("total_j"), better="less", words="energy by model",
           header="energy,\nmodel\n[{unit}]", scale="total", is_detail=True),
    Metric("energy_busy_j", "J", "part of it drawn by hosts with a busy core",
           _energy("busy_j"), better="less", words="of it while busy", is_detail=True),
    Metric("energy_idle_j", "J", "part of it drawn by hosts that are on and have no busy core",
           _energy("idle_j"), better="less", words="while idle", header="idle\n[{unit}]"),
    Metric("energy_boot_j", "J", "part of it drawn by hosts that boot", _energy("boot_j"),
           better="less", words="while booting", is_detail=True),
    Metric("energy_shutdown_j", "J", "part of it drawn by hosts that shut down",
           _energy("shutdown_j"), better="less", words="while shutting down", is_detail=True),
    Metric("energy_off_j", "J", "part of it drawn by hosts that are off, and have shut down",
           _energy("off_j"), better="less", words="while off", is_detail=True),
    Metric("peak_power_w", "W", "largest power of the computing hosts together, by the model",
           lambda run: peak_power_w(run.trace, run.power), better="less", words="largest power",
           is_detail=True),
    Metric("energy_wasted_j", "J", "share of `energy_busy_j` that went into copies which did not "
           "finish their task", _energy("wasted_j"), better="less",
           words="wasted on cancelled copies", header="wasted\n[{unit}]"),
    Metric("wasted_flops", "flop", "work of copies that did not finish their task",
           lambda run: of_runs.wasted_flops(run.trace), better="less", words="work wasted",
           is_detail=True),
    Metric("waste_ratio", "", "wasted work over all executed work",
           lambda run: of_runs.waste_ratio(run.trace), better="less",
           words="share of the work wasted"),
    Metric("hosts_used", "", "hosts that executed anything",
           lambda run: of_runs.hosts_used(run.trace), header="hosts\nused"),
    Metric("executions", "", "copies of tasks that were started",
           lambda run: len(run.trace.executions), is_detail=True),
    Metric("tasks", "", "tasks that were submitted", lambda run: len(run.trace.tasks),
           planned=lambda plan: plan.tasks, is_detail=True),
    Metric("tasks_finished", "", "tasks that finished", _count(TaskState.FINISHED),
           better="more", header="finished",
           planned=lambda plan: plan.tasks if plan.runs else 0),
    Metric("tasks_dropped", "", "tasks that the scheduler gave up", _count(TaskState.DROPPED),
           better="less", header="dropped"),
    Metric("tasks_rejected", "", "tasks that fit on no host", _count(TaskState.REJECTED),
           better="less"),
    Metric("tasks_killed", "", "tasks that the end of the budget killed", _count(TaskState.KILLED),
           better="less"),
    Metric("tasks_failed", "", "tasks whose host failed", _count(TaskState.FAILED),
           better="less"),
    Metric("tasks_unfinished", "", "tasks that the horizon left undone",
           _count(TaskState.UNFINISHED), better="less"),
    Metric("tasks_late", "", "tasks that finished after their deadline",
           lambda run: int(of_runs.is_late(run.trace).sum()), condition=DEADLINES, better="less",
           header="late"),
    Metric("tasks_missed", "", "tasks that did not finish by their deadline: late, dropped, "
           "rejected, killed, failed or unfinished",
           lambda run: int(of_runs.is_missed(run.trace).sum()), condition=DEADLINES,
           better="less", header="missed"),
    Metric("mean_time_to_deadline_s", "s", "mean time from submission to deadline of tasks that "
           "have one", lambda run: of_runs.mean_time_to_deadline_s(run.trace),
           condition=DEADLINES),
    Metric("mean_waiting_time_s", "s", "mean time from submission to start of finished tasks",
           lambda run: of_runs.mean_of_finished(run.waiting_s), better="less",
           header="mean\nwait [{unit}]", form="rounded"),
    Metric("mean_flow_time_s", "s", "mean time from submission to finish of finished tasks",
           lambda run: of_runs.mean_of_finished(run.flow_s), better="less"),
    Metric("mean_slowdown", "", "mean of flow time over execution time of finished tasks",
           lambda run: of_runs.mean_of_finished(run.slowdown), better="less"),
    Metric("max_waiting_time_s", "s", "longest time from submission to start of finished tasks",
           lambda run: of_runs.max_of_finished(run.waiting_s), better="less",
           words="longest waiting time", is_detail=True),
    Metric("max_flow_time_s", "s", "longest time from submission to finish of finished tasks",
           lambda run: of_runs.max_of_finished(run.flow_s), better="less",
           words="longest flow time", is_detail=True),
    Metric("max_slowdown", "", "largest flow time over execution time of finished tasks",
           lambda run: of_runs.max_of_finished(run.slowdown), better="less",
           words="largest slowdown", is_detail=True),
    Metric("horizon_s", "s", "end of the run; energy is counted from 0 to here",
           lambda run: float(run.trace.horizon_s), is_detail=True),
    Metric("mapping_events", "", "instants at which the scheduler was asked",
           lambda run: run.trace.mapping_events, is_detail=True),
)  # fmt: skip
_OUTAGES = (
    Metric("executions_failed", "", "executions that ended because their host went down",
           lambda run: len(run.trace.of_outcome(ExecutionEnd.FAILED)), condition=OUTAGES,
           better="less", words="executions that failed", header="failed\nruns"),
    Metric("lost_work_s", "s", "time cores (or nodes) spent on executions that failed",
           lambda run: of_runs.lost_work_s(run.trace), condition=OUTAGES, better="less",
           words="work lost", header="lost\nwork [{unit}]"),
    Metric("energy_lost_j", "J", "part of `energy_wasted_j` that went into executions which failed",
           lambda run: run.energy_lost_j, condition=OUTAGES, better="less",
           words="of that on copies that failed", header="lost\n[{unit}]"),
)  # fmt: skip
_PARALLEL = (
    Metric("mean_bounded_slowdown", "", "mean of flow time over execution time of finished tasks, "
           f"where executions shorter than {of_runs.SLOWDOWN_BOUND_S:g} s count as that long, and "
           "at least 1", lambda run: of_runs.mean_of_finished(run.bounded_slowdown),
           condition=PARALLEL, better="less", header="mean\nbounded\nslowdown", form="rounded"),
    Metric("max_bounded_slowdown", "", "largest bounded slowdown of finished tasks",
           lambda run: of_runs.max_of_finished(run.bounded_slowdown), condition=PARALLEL,
           better="less", words="largest bounded slowdown", is_detail=True),
    Metric("utilisation", "", "node-seconds executed over the nodes of the platform times the "
           "makespan", lambda run: of_runs.utilisation(run.trace), condition=PARALLEL,
           better="more", header="utili-\nsation"),
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
           form="rounded"),
    Metric("utility_possible", "", "utility if each task finished the moment it arrived: the sum "
           "of priorities", lambda run: utility_possible(run.trace), condition=UTILITY,
           words="of at most", is_detail=True),
    Metric("window_utility", "", "utility earned inside the workload's window; a task counts with "
           "the share of its run time that lies in it",
           lambda run: run.window_utility, condition=WINDOW_UTILITY, better="more",
           words="utility in the window", header="utility\nin\nwindow", form="rounded"),
    Metric("window_utility_possible", "", "utility if each task that arrives inside the window ran "
           "at once in its shortest time: the maximum system utility of paper 001",
           lambda run: run.window_utility_possible, condition=POSSIBLE_UTILITY,
           words="of at most, in the window", form="rounded"),
    Metric("window_utility_share", "", "`window_utility` over `window_utility_possible`",
           lambda run: run.window_utility_share, condition=POSSIBLE_UTILITY, better="more",
           words="share of that which is earned", header="share of\nmaximum", form="share"),
    Metric("window_energy_j", "J", "energy of the computing hosts inside the workload's window, by "
           "the model", lambda run: float(run.drawn_j[-1]), condition=WINDOW, better="less",
           words="energy in the window", header="energy\nin window\n[{unit}]", scale="total"),
    Metric("tasks_postponed", "", "tasks that were postponed to a later period at least once",
           lambda run: int(np.count_nonzero(run.trace.times_postponed)), condition=POSTPONING,
           better="less", header="post-\nponed"),
    Metric("budget_excess_j", "J", "the most that a period drew beyond its budget and beyond what "
           "was carried over", lambda run: run.budget_excess_j, condition=PERIODS, better="less",
           words="energy beyond the budget"),
    Metric("carried_over_j", "J", "the most that executions from before a period drew in it",
           lambda run: float(run.carried_over_j.max()), condition=PERIODS,
           words="largest energy carried over", is_detail=True),
    Metric("energy_budget_j", "J", "energy budget of a period", lambda run: run.budget.energy_j,
           condition=BUDGET, is_detail=True),
    Metric("money_spent", "", "money: what the energy of all periods of the budget cost, by the "
           "model", lambda run: run.money_spent, condition=MONEY, better="less",
           words="money spent on energy", header="money\nspent"),
    Metric("budget_used_share", "", "the most that a period spent over its budget",
           lambda run: run.budget_used_share, condition=MONEY, words="share of the budget used",
           header="budget\nused", form="share"),
    Metric("money_excess", "", "money: the most that a period spent beyond its budget and beyond "
           "what was carried over", lambda run: run.money_excess, condition=MONEY, better="less",
           words="money beyond the budget"),
    Metric("money_budget", "", "money: energy budget of a period",
           lambda run: None if run.budget is None else run.budget.money, condition=MONEY,
           is_detail=True),
)  # fmt: skip
_MONEY = (
    Metric("profit", "", "money: price of the bag, if all its tasks finished, less the costs of "
           "energy (PUE included), overhead, wear and depreciation over the run",
           lambda run: run.profit, condition=TARIFF, better="more", words="profit [money]",
           header="profit\n[money]",
           planned=lambda plan: plan.profit),
    Metric("profit_rate", "", "money per second: `profit` over the length of the run, what such "
           "bags earn if they follow each other", lambda run: run.profit_rate, condition=TARIFF,
           better="more", words="profit rate [money/s]",
           header="profit\nrate\n[money/s]", planned=lambda plan: plan.profit_rate),
    Metric("income", "", "money: what the finished bags paid, each by the price of the moment in "
           "which its last task finished", lambda run: run.income, condition=PRICES,
           better="more", words="income of bags"),
    Metric("energy_cost", "", "money: what the energy cost, PUE included, each interval by its "
           "price; by the model", lambda run: run.energy_cost, condition=PRICES, better="less",
           words="cost of the energy", header="cost of\nenergy\n[money]"),
    Metric("mean_bag_flow_time_s", "s", "mean time from a bag's submission until its last task "
           "finished, of finished bags",
           lambda run: of_runs.mean_of_finished(run.bags.flow_time_s), condition=PRICES,
           better="less", words="mean flow time of bags", header="mean\nflow of\nbags [{unit}]",
           form="rounded"),
)  # fmt: skip
_PLANS = (
    Metric("plan_runs", "", "1 where the programme has the bag run, 0 where standing still costs "
           "less", lambda plan: int(plan.runs), "plan", PLANNED),
    Metric("divided_makespan_s", "s", "makespan of the programme's own solution, in which tasks "
           "are divided", lambda plan: plan.divided_makespan_s, "plan", PLANNED, "less"),
    Metric("divided_energy_j", "J", "energy of that solution until its makespan",
           lambda plan: plan.divided_energy_j, "plan", PLANNED, "less"),
    Metric("divided_profit_rate", "", "money per second that it earns if such bags follow each "
           "other", lambda plan: plan.divided_profit_rate, "plan", PLANNED, "more"),
    Metric("profit_rate_bound", "", "money per second that no schedule earns more than; of "
           "`lp_max_profit`", lambda plan: plan.profit_rate_bound, "plan", PLANNED),
    Metric("relative_decrease", "", "share by which `profit_rate` is below `profit_rate_bound`; "
           "none where that is not positive", lambda plan: plan.relative_decrease, "plan", PLANNED,
           "less", form="share"),
)  # fmt: skip
_ROWS = (
    Metric("energy_delay_js", "J s", "`energy_j` times makespan",
           lambda row: row["energy_j"] * row["makespan_s"], "row", better="less"),
)  # fmt: skip


def _of_bounds(kind: str, infix: str, words: str, header: str) -> tuple[Metric, ...]:
    """Return the metrics of one of the two bounds; `infix` is part of their names."""
    unfinished = "none where not all tasks finished"
    if kind == "fixed":
        unfinished += ", or the scheduler changes power states"
    return (
        Metric(f"{infix}makespan_bound_s", "s", f"least makespan that is possible{words}",
               _bound(kind, "makespan_s"), "row", BOUNDED),
        Metric(f"{infix}energy_bound_j", "J", f"least energy that is possible{words}",
               _bound(kind, "energy_j"), "row", BOUNDED),
        Metric(f"makespan_above_{infix}bound", "", "share by which the makespan lies above "
               f"`{infix}makespan_bound_s`; {unfinished}",
               _above_bound(kind, "makespan_s", "makespan_s"), "row", BOUNDED, "less",
               header=header, form="percent"),
        Metric(f"energy_above_{infix}bound", "", "share by which `energy_j` lies above "
               f"`{infix}energy_bound_j`; {unfinished}",
               _above_bound(kind, "energy_j", "energy_j"), "row", BOUNDED, "less", header=header,
               form="percent"),
        Metric(f"above_{infix}front", "", "share by which `energy_j` lies above the least that any "
               f"schedule of at most the run's makespan needs{words}; {unfinished}",
               _above_bound(kind, "energy_j", "front"), "row", BOUNDED, "less",
               words=f"energy above the {infix.replace('_', ' ')}front",
               header=header.replace("bound", "front"), form="percent", is_detail=True),
    )  # fmt: skip


_BOUNDS = (
    *_of_bounds("any", "", ", where hosts may be off and in any P-state at any time",
                "above\nbound"),
    *_of_bounds("fixed", "fixed_", ", where every host is on (or off) to the end and in its "
                "P-state, as the scenario sets them", "above\nfixed\nbound"),
)  # fmt: skip
_COMPARISONS = (
    Metric("makespan_above_best", "", "share by which the makespan lies above the least of all; "
           "none where no task finished",
           _above_best("makespan_s"), "comparison", better="less", header="above\nbest",
           form="percent"),
    Metric("energy_above_best", "", "share by which `energy_j` lies above the least of all; none "
           "where no task finished",
           _above_best("energy_j"), "comparison", better="less", header="above\nbest",
           form="percent"),
    Metric("utility_share_of_best", "", "utility (in the window, if there is one) over that of the "
           "best", _share_of_best, "comparison", Condition("utility functions"), "more",
           header="share\nof best", form="share"),
)  # fmt: skip
_OF_RUNS = (*_ENERGY, *_RUN, *_OUTAGES, *_PARALLEL, *_PLUGIN, *_UTILITY, *_MONEY)
for _metric in (*_OF_RUNS, *_PLANS, *_ROWS, *_BOUNDS, *_COMPARISONS):
    register_metric(_metric)
