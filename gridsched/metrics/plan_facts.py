"""What the metrics of a plan are computed from that nobody has executed."""

from __future__ import annotations

from dataclasses import dataclass

#: A bound of the profit so small beside what whole tasks earn or lose counts as 0.
ROUNDING = 1e-9


@dataclass(frozen=True)
class PlanFacts:
    """What a linear programme promises of a bag, for divided and for whole tasks (paper 003).

    Attributes
    ----------
    tasks : int
        Tasks of the bag.
    runs : bool
        False says "do not run": standing still costs less. Times and energies are then nan.
    divided_makespan_s, divided_energy_j : float
        Of the programme's own solution, in which tasks may be cut [s], [J].
    makespan_s, energy_j, busy_time_s : float
        Of the schedule of whole tasks made from it: time until the last machine finishes [s],
        energy of all machines until then [J], time that machines execute [s].
    divided_profit_rate, profit_rate : float or None
        What both earn if such bags follow each other [money/s]; None without a price. Under a
        power cap a schedule of whole tasks that draws more pauses before the next bag.
    profit : float or None
        What a bag of whole tasks earns, such a pause included [money].
    profit_rate_bound : float or None
        What no schedule earns more than [money/s]; None where the programme bounds no profit.
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
