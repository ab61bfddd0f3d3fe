"""The facts from which the metrics of a run, or of a plan that was not executed, are computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from gridsched.arrays import Floats
from gridsched.energy import HostEnergy, carried_over_energy, compare_energy
from gridsched.metrics.resource_energy import ResourceEnergy, resource_energy
from gridsched.metrics.run_metrics import SLOWDOWN_BOUND_S, flow_time_s, slowdown, trace_carbon, waiting_time_s
from gridsched.metrics.varying_prices import Bags, bags_of, energy_cost, payments
from gridsched.metrics.window_metrics import (
    energy_in,
    period_intervals,
    utility_between,
    utility_earned,
    utility_possible_between,
)
from gridsched.model.records import check_choices
from gridsched.model.rules import EnergyBudget
from gridsched.model.signals import Signal, Unit
from gridsched.model.tariff import Tariff
from gridsched.model.trace import ExecutionEnd, TaskState, Trace
from gridsched.power import GridPower, TracePower, grid_power, trace_power

#: A bound of the profit so small beside what whole tasks earn or lose counts as 0.
ROUNDING = 1e-9


@dataclass(frozen=True)
class RunFacts:
    """The records of one run and what was metered; what several metrics need is computed once.

    Attributes
    ----------
    trace : Trace
    energy : HostEnergy
        `trace_energy` of the trace.
    window_s : tuple of float, or None
        Begin and end of the time that the ``window_`` metrics cover [s].
    driver : {"simgrid", "reference"} or None
        What did the run; None where only its records are known.
    plugin_j : mapping of str to float, or None
        Energy of each host by SimGrid's plugin [J].
    links_j : mapping of str to float, or None
        Energy of each link by SimGrid's plugin [J].
    budget : EnergyBudget or None
        None without one, and where only the records are known.
    tariff : Tariff or None
        What the bag pays and what operating the hosts costs; numbers by machine type for each
        host.
    shortest_s : ndarray of float64, shape (tasks,), or None
        Estimated run time of each task where it is shortest [s], infinite where it can run
        nowhere; None where it is not known.
    power : TracePower or None
        `trace_power` of the trace, where it is kept: see `whole_power`.
    grid : GridPower or None
        `grid_power` of the trace, where the caller has it.
    """

    trace: Trace
    energy: HostEnergy
    window_s: tuple[float, float] | None = None
    driver: Literal["simgrid", "reference"] | None = None
    plugin_j: Mapping[str, float] | None = None
    links_j: Mapping[str, float] | None = None
    budget: EnergyBudget | None = None
    tariff: Tariff | None = None
    shortest_s: Floats | None = None
    power: TracePower | None = None
    grid: GridPower | None = None

    def __post_init__(self) -> None:
        check_choices(self)

    @cached_property
    def whole_power(self) -> TracePower:
        """`trace_power` of the trace, for what needs that of all hosts at once."""
        return trace_power(self.trace) if self.power is None else self.power

    @property
    def grid_power(self) -> GridPower:
        """Power of all computing hosts together."""
        return grid_power(self.trace, self.power) if self.grid is None else self.grid

    @property
    def has_utility(self) -> bool:
        """Whether the tasks have utility functions."""
        return self.trace.tasks.utility is not None

    @cached_property
    def flow_s(self) -> Floats:
        """Flow time of each task [s], nan if it did not finish."""
        return flow_time_s(self.trace)

    @cached_property
    def waiting_s(self) -> Floats:
        """Waiting time of each task [s], nan if it did not finish."""
        return np.where(np.isnan(self.flow_s), np.nan, waiting_time_s(self.trace))

    @cached_property
    def slowdown(self) -> Floats:
        """Slowdown of each task, nan if it did not finish."""
        return slowdown(self.trace)

    @property
    def is_parallel(self) -> bool:
        """Whether the tasks are rigid parallel jobs."""
        return not self.trace.tasks.are_serial

    @cached_property
    def bounded_slowdown(self) -> Floats:
        """Slowdown of each task with `SLOWDOWN_BOUND_S`, nan if it did not finish."""
        return slowdown(self.trace, SLOWDOWN_BOUND_S)

    @cached_property
    def utility(self) -> float:
        """Utility of all tasks."""
        return float(utility_earned(self.trace).sum())

    @cached_property
    def window_utility(self) -> float:
        """Utility earned inside the window."""
        assert self.window_s is not None
        return float(utility_between(self.trace, np.array(self.window_s))[0])

    @cached_property
    def window_utility_possible(self) -> float:
        """Utility of the tasks that arrive in the window, if each ran at once in its least time."""
        assert self.window_s is not None
        assert self.shortest_s is not None
        return utility_possible_between(self.trace, self.window_s, self.shortest_s)

    @property
    def window_utility_share(self) -> float:
        """Utility earned in the window over what is possible; nan where nothing is."""
        possible = self.window_utility_possible
        return self.window_utility / possible if possible > 0 else float("nan")

    @property
    def energy_j(self) -> float:
        """Energy of the computing hosts [J]: the plugin's where it metered, else the model's."""
        if self.plugin_j is None:
            return self.energy.grid_total()
        return float(sum(self.plugin_j.get(h.name, np.nan) for h in self.trace.platform.hosts))

    @cached_property
    def carbon(self) -> HostEnergy | None:
        """What the hosts emitted [g], in the places of joules; None if no intensity is known."""
        return trace_carbon(self.trace, self.power)

    def resources(self, signal: Signal | None = None) -> ResourceEnergy:
        """Return what GPUs, memory and other resources draw [J], or in the unit of a signal."""
        if signal is None:
            return self._resources
        return resource_energy(self.trace, signal)

    @cached_property
    def _resources(self) -> ResourceEnergy:
        return resource_energy(self.trace)

    @property
    def energy_lost_j(self) -> float:
        """What executions drew that ended because their host went down [J]."""
        failed = self.trace.executions["outcome"] == ExecutionEnd.FAILED
        return float(np.sum(self.energy.execution_j[failed]))

    @cached_property
    def bags(self) -> Bags:
        """The bags of a run whose prices vary."""
        return bags_of(self.trace)

    @cached_property
    def income(self) -> float:
        """What the finished bags of a run pay by prices that vary [money]."""
        assert self.tariff is not None
        return float(payments(self.trace, self.bags, self.tariff)[1].sum())

    @cached_property
    def energy_cost(self) -> float:
        """What the energy of a run costs, PUE included [money]: by prices that vary, where there are any."""
        assert self.tariff is not None
        if self.tariff.prices is None:
            return self.tariff.cost_of(self.energy_j)
        return energy_cost(self.trace, self.tariff, self.whole_power)

    @cached_property
    def profit(self) -> float:
        """What the run earns [money]; a bag of which a task is unfinished pays nothing."""
        assert self.tariff is not None
        trace, tariff = self.trace, self.tariff
        finished = np.all(trace.final_state == TaskState.FINISHED)
        cores = trace.platform.cores
        execution, placed = trace.placed()
        core_s = (trace.executions["end"] - trace.executions["start"])[execution]
        busy_s = np.bincount(placed, core_s, minlength=len(cores)) / cores
        machines = np.ones(len(cores), dtype=np.int64)
        if tariff.prices is not None:
            bags = replace(tariff, prices=None, price=self.income, overhead=tariff.overhead * len(self.bags))
            return bags.profit(0.0, busy_s, trace.horizon_s, machines) - self.energy_cost
        if not finished:
            tariff = replace(tariff, price=0.0)
        return tariff.profit(self.energy_j, busy_s, trace.horizon_s, machines)

    @property
    def profit_rate(self) -> float:
        """Profit over the length of the run [money/s]; nan of a run without length."""
        length = self.trace.horizon_s
        return self.profit / length if length > 0 else float("nan")

    @cached_property
    def differences(self) -> list[float]:
        """Relative difference of plugin and model for each metered host, then in total.

        nan alone where no host has power.
        """
        if not self.plugin_j:
            return [float("nan")]
        rows = compare_energy(self.trace, self.plugin_j or {}, self.energy)
        return [row["relative_difference"] for row in rows]

    @cached_property
    def consumed_j(self) -> Floats:
        """What each period drew [J], and the window as the last; from the records alone."""
        intervals = period_intervals(self.trace.periods)
        intervals += [] if self.window_s is None else [self.window_s]
        return energy_in(self.trace, intervals, power=self.whole_power)

    @cached_property
    def counted_j(self) -> Floats:
        """What each period drew as its budget counts it [J]; from the records alone."""
        trace = self.trace
        if trace.energy_weights.is_even:
            return self.consumed_j[: len(trace.periods)]
        intervals = period_intervals(trace.periods)
        return energy_in(trace, intervals, trace.energy_weights, self.whole_power)

    def has_budget_in(self, unit: Unit) -> bool:
        """Whether the run had periods of a budget in a unit."""
        return len(self.trace.periods) > 0 and self.trace.energy_weights.unit == unit.name

    @property
    def budget_spent(self) -> float:
        """What all periods drew, in the budget's unit."""
        return self.trace.energy_weights.amount(float(self.counted_j.sum()))

    @property
    def budget_used_share(self) -> float:
        """The most that a period drew over its budget, as it is counted."""
        return float((self.counted_j / self.trace.periods["budget_j"]).max())

    @cached_property
    def carried_over_j(self) -> Floats:
        """What executions from before each period drew in it, as it is counted [J]."""
        return carried_over_energy(self.trace, self.whole_power)

    @property
    def budget_excess(self) -> float:
        """The most that a period drew beyond its budget and what was carried over, in its unit."""
        excess = self.counted_j - self.trace.periods["budget_j"] - self.carried_over_j
        return self.trace.energy_weights.amount(float(excess.max(initial=0.0)))


@dataclass(frozen=True)
class PlanFacts:
    """What a linear program promises of a bag, for divided and for whole tasks (paper 003).

    Attributes
    ----------
    tasks : int
        Tasks of the bag.
    runs : bool
        False means "do not run": standing still costs less. Times and energies are then nan.
    divided_makespan_s, divided_energy_j : float
        Of the program's own solution, in which tasks may be cut [s], [J].
    makespan_s, energy_j, busy_time_s : float
        Of the schedule of whole tasks made from it: time until the last machine finishes [s],
        energy of all machines until then [J], time that machines execute [s].
    divided_profit_rate, profit_rate : float or None
        What both earn if such bags follow each other [money/s]; None without a price. Under a
        power cap a schedule of whole tasks that draws more pauses before the next bag.
    profit : float or None
        What a bag of whole tasks earns, such a pause included [money].
    profit_rate_bound : float or None
        What no schedule earns more than [money/s]; None where the program bounds no profit.
    """

    tasks: int
    runs: bool
    divided_makespan_s: float
    divided_energy_j: float
    makespan_s: float
    energy_j: float
    busy_time_s: float
    divided_profit_rate: float | None = None
    profit_rate: float | None = None
    profit: float | None = None
    profit_rate_bound: float | None = None

    @property
    def relative_decrease(self) -> float | None:
        """Share by which whole tasks earn less than the bound; None unless that is positive.

        A bound that is so only by rounding, at a price that just pays the least energy, is not.
        """
        bound, earned = self.profit_rate_bound, self.profit_rate
        if bound is None or earned is None or not self.runs:
            return None
        if bound <= ROUNDING * abs(earned):
            return None
        return (bound - earned) / bound
