"""The rules of a run, declared once: every option, study key and record of them follows from here.

A new rule is one field here and the code that obeys it. Options of the command line, keys of
study files, provenance and documents read the fields of `Rules`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from gridsched.errors import InputError
from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.model.prices import PriceSeries
from gridsched.model.records import KeyName, check_record
from gridsched.model.signals import EVEN, JOULES, UNITS, Signal, Unit

#: Seconds of a day, the usual period.
DAY_S = 86_400.0
#: Headings under which options are listed.
SCHEDULING = "Tasks and scheduling"
_OF_SCHEDULING = {"group": SCHEDULING}
OF_HOSTS = {"group": "Hosts"}
OF_SHARED_NODES = {"group": "Jobs that share nodes"}


@dataclass(frozen=True)
class EnergyBudget:
    """Joules that may be drawn in each period (paper 000, II-B and V-D), or what they may cost.

    Attributes
    ----------
    energy_j : float or None
        Budget of one period [J]; infinite gives periods without a limit. None: it is in money.
    period_s : float
        Length of a period [s]; infinite: one budget for the whole run.
    first_period_start_s : float
        Before it nothing is limited or counted [s] (paper 001's warm-up).
    enforcement : {"refuse", "stop"}
        ``refuse``: a decision whose energy inside the present period exceeds what remains is
        invalid. ``stop``: the run ends when the consumption reaches the budget, and what is
        unfinished is killed.
    carry_over : bool
        Each period gets what is left of the budgets of all `periods`, divided by the periods
        that are left (algorithms B7: ``E_day = E_left_of_year / days_left``).
    periods : int or None
        Number of periods that share the whole budget; needed with `carry_over`.
    money : float or None
        Budget of one period [money], in place of `energy_j`.
    prices : PriceSeries or path, optional
        What a joule costs by time; needed with `money`. A path names a CSV file, which is read with
        the scenario. All prices are known to every scheduler from the start.
    prices_period_s : float or None
        After which the prices are those of the first line again [s]; see `Tariff`.
    carbon_g : float or None
        Budget of one period [g], in place of `energy_j`; the carbon intensity is the scenario's.
    signal : Signal or None
        That intensity [g/J]; the scenario sets it.
    ONE_OF : tuple of str
        Of these fields one is given, and no other.

    Raises
    ------
    InputError
        Where a value is out of range, or the budget is not either in joules, in money or in grams.

    Notes
    -----
    The account of a budget in money is kept in joules at the mean price; see `Signal`.
    """

    ONE_OF: ClassVar[tuple[str, ...]] = tuple(unit.budget for unit in UNITS.values())

    energy_j: Annotated[
        float | None,
        KeyName("energy_budget_j"),
        Field(ge=SMALLEST, allow_inf_nan=True, description="Joules that each period may use; inf: no limit."),
    ] = None
    period_s: Annotated[
        float,
        KeyName("budget_period_s"),
        Field(ge=SMALLEST, allow_inf_nan=True, description="Length of a period; inf: the whole run; default a day."),
    ] = DAY_S
    first_period_start_s: Annotated[
        float,
        KeyName("first_period_start_s"),
        Field(ge=0, allow_inf_nan=False, description="Nothing is limited or counted before this time; default 0."),
    ] = 0.0
    enforcement: Annotated[
        Literal["refuse", "stop"],
        KeyName("budget_enforcement"),
        Field(description="refuse: nothing may exceed the budget (default); stop: the run ends with it."),
    ] = "refuse"
    carry_over: Annotated[
        bool, KeyName("budget_carry_over"), Field(description="Later periods share the unused rest of a period.")
    ] = False
    periods: Annotated[
        int | None,
        KeyName("budget_periods"),
        Field(ge=1, description="Number of periods that share the whole budget, for the carry-over."),
    ] = None
    money: Annotated[
        float | None,
        KeyName("money_budget"),
        Field(
            ge=SMALLEST,
            le=LARGEST,
            description=("Money that each period may spend on energy, instead of energy_budget_j."),
        ),
    ] = None
    prices: Annotated[
        PriceSeries | str | Path | None,
        KeyName("budget_prices"),
        Field(
            description="Cost of energy by time, for money_budget (.csv: time_s,energy_cost_per_kwh).",
            examples=["FILE"],
        ),
    ] = None
    prices_period_s: Annotated[
        float | None,
        KeyName("budget_prices_period_s"),
        Field(
            gt=0,
            allow_inf_nan=True,
            description="Time after which these prices repeat; inf: the last line holds forever. Default: a day, and "
            "of a table with dates never: it must cover the run.",
        ),
    ] = None
    carbon_g: Annotated[
        float | None,
        KeyName("carbon_budget_g"),
        Field(
            ge=SMALLEST, le=LARGEST, description=("Grams of CO2 that each period may emit, instead of energy_budget_j.")
        ),
    ] = None
    signal: Signal | None = None

    def __post_init__(self) -> None:
        check_record(self, EnergyBudget, "Energy budget: ")
        if self.carry_over and self.periods is None:
            raise InputError("Energy budget: budget_periods is missing; budget_carry_over needs it.")
        units = [name for name in self.ONE_OF if getattr(self, name) is not None]
        if len(units) != 1:
            raise InputError(
                "Energy budget: it is in joules (energy_budget_j), in money (money_budget) or in grams "
                f"(carbon_budget_g); {' and '.join(units) or 'none'} of them is given."
            )
        if (self.money is None) != (self.prices is None):
            missing, given = "budget_prices", "money_budget"
            if self.money is None:
                missing, given = given, missing
            raise InputError(f"Energy budget: {given} has no effect without {missing}; give both.")
        if isinstance(self.prices, PriceSeries):
            self._check_prices(self.prices)

    def _check_prices(self, prices: PriceSeries) -> None:
        prices.check_period(self.prices_cycle_s, "budget_prices_period_s")
        if prices.sites is not None:  # looked at with the platform
            return
        for time, cost in zip(prices.time_s, prices.energy_cost_per_j, strict=True):
            if not 0 < cost <= LARGEST:
                raise InputError(
                    f"Energy budget: from {time:g} s on a joule costs {cost:g}; under a budget in "
                    "money every price must be positive."
                )

    @property
    def prices_cycle_s(self) -> float:
        """`prices_period_s`, with its default [s]."""
        return DAY_S if self.prices_period_s is None else self.prices_period_s

    @cached_property
    def weights(self) -> Signal:
        """What a joule counts, by time; the scenario must be loaded."""
        if self.unit == JOULES:
            return EVEN
        if self.signal is not None:
            return self.signal.normalised()
        assert isinstance(self.prices, PriceSeries), "the scenario has been loaded"
        return self.prices.energy_price(self.prices_cycle_s)

    @property
    def unit(self) -> Unit:
        """What the budget is in."""
        return next(each for each in UNITS.values() if getattr(self, each.budget) is not None)

    @property
    def limit_j(self) -> float:
        """Budget of one period as it is counted [J]: what its amount buys at the mean weight."""
        return self.amount / (self.weights.per_j or 1.0)

    @property
    def amount(self) -> float:
        """Budget of one period in its own unit."""
        return float(getattr(self, self.unit.budget))

    @property
    def words(self) -> str:
        """The budget of one period with its unit."""
        return f"{self.amount:g} {self.unit.words}"

    def start_of(self, period: int) -> float:
        """Return when a period starts [s]; infinite if there is no such period."""
        if period == 0:  # zero periods last no time, even if each is infinite
            return self.first_period_start_s
        return self.first_period_start_s + period * self.period_s


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What the controller holds a run to.

    Attributes
    ----------
    mapping_interval_s : float or None
        Distance of mapping events [s]; None: as `mapping_events` specifies.
    mapping_events : {"instant", "event"}
        When an event-driven scheduler is asked: once for all that happens in one instant; or after
        each submission and each end by itself, submissions first, as many simulators of queues do. What has
        come to the end of its estimate is gone before either.
    walltime : {"ignore", "kill"}
        Whether a job that has a requested time runs to its end however long that takes, or is killed
        when it has run so long; estimates are then bounds.
    pending_slots : int
        Tasks a host fixes behind the executing one as soon as there is room (1 in paper 000).
    budget : EnergyBudget or None
        Joules that each period may draw.
    horizon_s : float or None
        No task starts at or after it [s]; what then waits ends as unfinished.
    charge_mapping_time : bool
        A mapping event begins only when the last one's computation has ended, by the wall clock
        (paper 000, III-A); such runs do not repeat exactly.
    parked_pstate : int or None
        P-state of every host that is on while nothing runs there (paper 002's idle cores); None
        leaves hosts in the P-state of their last task.
    power_cap_w : float or None
        What all computing hosts together may draw at any time [W], by the model; a run that would
        draw more ends with an error.
    maintenance : tuple of str
        When which hosts are down, as everybody knows from the start; see
        `gridsched.model.maintenance`.
    on_failure : {"restart", "failed"}
        What becomes of a task whose host goes down while it runs: it waits again and starts from
        the begin, or it has failed.
    placement : {"pack", "spread", "contiguous", "locality"}
        How schedulers lay rigid jobs on nodes with room, see `gridsched.model.room_on_nodes`.
    max_idle_wakeups : int
        So often in a row a scheduler may have itself asked again, by `WakeAt` and the like, while
        nothing else is to come, no task starts for the first time and none ends; then the run
        ends with an error.

    Raises
    ------
    InputError
        Where a value is out of range.
    """

    mapping_interval_s: Annotated[
        float | None,
        Field(
            ge=SMALLEST,
            le=LARGEST,
            description="Ask schedulers only every S seconds, not at each event.",
            json_schema_extra=_OF_SCHEDULING,
        ),
    ] = None
    mapping_events: Annotated[
        Literal["instant", "event"],
        Field(
            description="Without an interval, ask schedulers once an instant (default), or after each submission and "
            "each end by itself (event).",
            json_schema_extra=_OF_SCHEDULING,
        ),
    ] = "instant"
    walltime: Annotated[
        Literal["ignore", "kill"],
        Field(
            description="Jobs that run longer than they requested continue (ignore, default), or are killed (kill).",
            json_schema_extra=_OF_SCHEDULING,
        ),
    ] = "ignore"
    pending_slots: Annotated[
        int,
        Field(ge=0, description="Tasks that a host fixes behind the executing one.", json_schema_extra=_OF_SCHEDULING),
    ] = 0
    budget: Annotated[
        EnergyBudget | None,
        Field(
            description="Joules that each period may use.",
            json_schema_extra={"group": "Energy budget (each option overrides a generator's file)"},
        ),
    ] = None
    horizon_s: Annotated[
        float | None,
        Field(gt=0, le=LARGEST, description="No task starts at or after this time.", json_schema_extra=_OF_SCHEDULING),
    ] = None
    charge_mapping_time: Annotated[
        bool,
        Field(
            description="A mapping event waits for the computation of the one before, by the wall clock.",
            json_schema_extra=_OF_SCHEDULING,
        ),
    ] = False
    parked_pstate: Annotated[
        int | None, Field(ge=0, description="P-state of hosts while nothing runs on them.", json_schema_extra=OF_HOSTS)
    ] = None
    power_cap_w: Annotated[
        float | None,
        Field(
            gt=0, le=LARGEST, description="The most power that all hosts together may use.", json_schema_extra=OF_HOSTS
        ),
    ] = None
    maintenance: Annotated[
        tuple[str, ...],
        Field(
            description="Hosts are down for maintenance, known to schedulers of rigid jobs: BEGIN:END in s, or "
            "dates of the log as 2024-03-05T08:00/12:00, or NAME_PATTERN=BEGIN:END; repeatable.",
            examples=["[PATTERN=]S:S"],
            json_schema_extra=OF_HOSTS,
        ),
    ] = ()
    on_failure: Annotated[
        Literal["restart", "failed"],
        Field(
            description="A task whose host goes down starts again (restart), or fails (failed).",
            json_schema_extra=OF_HOSTS,
        ),
    ] = "restart"
    placement: Annotated[
        Literal["pack", "spread", "contiguous", "locality"],
        Field(
            description="Rigid jobs are placed on the first nodes with room (pack), on those with the most "
            "free cores and over switches (spread), on neighbors (contiguous), or under few switches (locality).",
            json_schema_extra=OF_SHARED_NODES,
        ),
    ] = "pack"
    max_idle_wakeups: Annotated[
        int,
        Field(
            ge=1,
            description="A run ends with an error after its scheduler has only woken itself this many times, with "
            "nothing else to come and no first start or end of a task; default 10000.",
            json_schema_extra=_OF_SCHEDULING,
        ),
    ] = 10_000

    def __post_init__(self) -> None:
        check_record(self, Rules)
        if self.mapping_interval_s is not None and self.mapping_events == "event":
            raise InputError(
                f"mapping_events is 'event', and mapping_interval_s {self.mapping_interval_s:g}: schedulers are asked "
                "after every event or at an interval. Leave one of them out."
            )

    @property
    def rules(self) -> Rules:
        """The rules alone, without the other keys of how a run is done."""
        return Rules(**{field.name: getattr(self, field.name) for field in fields(Rules)})
