"""Money by prices that vary over the day: what the bags of a run pay, and what its energy costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.energy import grid_energy_between, trace_energy
from gridsched.model.prices import PriceSeries
from gridsched.model.tariff import Tariff
from gridsched.model.trace import TaskState, Trace
from gridsched.power import TracePower


@dataclass(frozen=True, eq=False)
class Bags:
    """The bags of a run: tasks that were submitted at one time are one bag.

    Attributes
    ----------
    submit_s : ndarray of float64, shape (bags,)
        Submission of each bag [s], ascending.
    finish_s : ndarray of float64, shape (bags,)
        When its last task finished [s]; infinite if a task of it never did.
    """

    submit_s: Floats
    finish_s: Floats

    def __len__(self) -> int:
        return len(self.submit_s)

    @property
    def flow_time_s(self) -> Floats:
        """Submission to finish of each bag [s], nan if it did not finish."""
        flow = self.finish_s - self.submit_s
        return np.where(np.isfinite(flow), flow, np.nan)

    def waiting_at(self, time_s: Floats) -> Integers:
        """Return how many bags have been submitted and are unfinished at each of these times [s].

        A bag that finishes in an instant is finished in it.
        """
        submitted = np.searchsorted(self.submit_s, time_s, side="right")
        return submitted - np.searchsorted(np.sort(self.finish_s), time_s, side="right")


def bags_of(trace: Trace) -> Bags:
    """Return the bags of a run."""
    submit_s, bag = np.unique(trace.tasks.submit_time_s, return_inverse=True)
    done = trace.final_state == TaskState.FINISHED
    finish_s = np.full(len(submit_s), -np.inf)
    np.maximum.at(finish_s, bag, np.where(done, trace.finish_time_s, np.inf))
    return Bags(submit_s, finish_s)


def payments(trace: Trace, bags: Bags, tariff: Tariff) -> tuple[Floats, Floats]:
    """Return when the finished bags of a run finished [s], and what each pays [money].

    Parameters
    ----------
    trace : Trace
    bags : Bags
        Of the trace.
    tariff : Tariff
        With a series of prices.
    """
    series = prices_of(tariff)
    finished = bags.finish_s[np.isfinite(bags.finish_s)]
    begins = series.begins(tariff.prices_cycle_s, trace.horizon_s)
    lines = (np.searchsorted(begins, finished, side="right") - 1) % len(series.time_s)
    return finished, series.paid(lines, bags.waiting_at(finished))


def energy_cost(trace: Trace, tariff: Tariff, power: TracePower | None = None) -> float:
    """Return what the energy of a run costs, PUE included [money].

    The energy of all computing hosts, by the model, is integrated over each interval of one price.

    Parameters
    ----------
    trace : Trace
    tariff : Tariff
        With a series of prices.
    power : TracePower, optional
        `trace_power` of the trace, where the caller has it already.
    """
    series = prices_of(tariff)
    if series.sites is not None:
        return tariff.pue * trace_energy(trace, power, tariff.energy_price(trace.platform)).grid_total()
    begins = series.begins(tariff.prices_cycle_s, trace.horizon_s)
    joules = grid_energy_between(trace, np.append(begins, trace.horizon_s), power)
    costs = np.array(series.energy_cost_per_j)[np.arange(len(begins)) % len(series.time_s)]
    return tariff.pue * float(joules @ costs)


def prices_of(tariff: Tariff) -> PriceSeries:
    """Return the series of prices of a tariff of a scenario that has been loaded."""
    assert isinstance(tariff.prices, PriceSeries), "the scenario has been loaded"
    return tariff.prices
