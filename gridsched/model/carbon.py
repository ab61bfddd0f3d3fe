"""Carbon: the intensity of power, by time and by site, and what making the hosts emitted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from gridsched.arrays import Floats
from gridsched.errors import InputError
from gridsched.model.limits import LARGEST
from gridsched.model.platform import Host, Platform
from gridsched.model.prices import PriceSeries
from gridsched.model.records import KeyName, check_record, number_or_text
from gridsched.model.rules import EnergyBudget
from gridsched.model.series import Series, SiteSeries, site_signal
from gridsched.model.signals import CARBON, J_PER_KWH, Signal


@dataclass(frozen=True)
class Carbon:
    """Grams of CO2 equivalents that a kWh costs, by time and by site.

    Attributes
    ----------
    intensity : SiteSeries, float or path, optional
        [g/kWh], for hosts by patterns of their names or clusters' names, or one number for all hosts and
        times. A path names a CSV file, which is read with the scenario. Hosts without a row have the
        platform's property ``carbon_intensity``.
    period_s : float or None
        After which the first row holds again [s]; infinite: the last row holds for ever. None: the
        last row lasts as long as the one before it, and a run that is longer is refused.
    pue : float
        Power usage effectiveness: power drawn from the grid over power of the hosts, at least 1.
    columns : str or None
        Names of the columns of an hourly table: ``time=NAME,value=NAME[,host=NAME][,zone=ZONE]``, or who made
        it (`gridsched.workloads.signal_csv.PRESETS`).
    fill : {"hold"} or None
        What holds where hours of such a table are missing: the hour before. None: it is refused.
    forecast : SiteSeries or path, optional
        What schedulers may expect of the intensity, in the same form [g/kWh].
    start : str or None
        Time stamp of the table at which the run begins, or ``"log"``: the log's own first date; default
        ``"log"`` if the log has dates, and else the first one of the table.

    Raises
    ------
    InputError
        Where a value is out of range.
    """

    intensity: Annotated[
        SiteSeries | float | str | Path | None,
        KeyName("carbon"),
        Field(
            description="Carbon intensity: one number [g/kWh], or by time and host (.csv: host,time_s,g_per_kwh); a "
            "run then counts its grams of CO2.",
            examples=["FILE|NUMBER"],
        ),
    ] = None
    period_s: Annotated[
        float | None,
        KeyName("carbon_period_s"),
        Field(
            gt=0,
            allow_inf_nan=True,
            description=(
                "Time after which its rows repeat; inf: the last holds forever. Default: it must cover the run."
            ),
        ),
    ] = None
    pue: Annotated[
        float,
        KeyName("carbon_pue"),
        Field(
            ge=1,
            le=LARGEST,
            description="Ratio of the power from the grid to the power of the hosts (PUE), for grams; default 1.",
        ),
    ] = 1.0
    columns: Annotated[
        str | None,
        KeyName("carbon_columns"),
        Field(
            description="Columns of an hourly table: time=NAME,value=NAME, with ,host=NAME and ,zone=ZONE where "
            "they are needed; or its source: electricity_maps, electricity_maps_direct, neso, watttime.",
            examples=["KEY=NAME,..."],
        ),
    ] = None
    fill: Annotated[
        Literal["hold"] | None,
        KeyName("carbon_fill"),
        Field(
            description=("hold: a missing hour has the value of the hour before; default: missing hours are refused.")
        ),
    ] = None
    start: Annotated[
        str | None,
        KeyName("carbon_start"),
        Field(
            description="Time stamp of an hourly table at which the run begins, or log: the date of the log's first "
            "submission; default: log if the log has dates, else the table's first.",
            examples=["STAMP|log"],
        ),
    ] = None

    forecast: Annotated[
        SiteSeries | str | Path | None,
        KeyName("carbon_forecast"),
        Field(description="Forecast of the intensity for schedulers (.csv: host,time_s,g_per_kwh).", examples=["FILE"]),
    ] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "intensity", number_or_text(self.intensity))
        check_record(self, Carbon, "Carbon: ")
        if isinstance(self.intensity, int | float) and not (
            0 <= self.intensity <= LARGEST and not isinstance(self.intensity, bool)
        ):
            raise InputError(f"carbon is {self.intensity}; an intensity of 0 g/kWh or more, or a file, is allowed.")
        for series in (self.intensity, self.forecast):
            if isinstance(series, SiteSeries):
                series.check_period(self.period_s, "carbon_period_s")
        for name in ("columns", "fill", "start"):
            if self.intensity is None and getattr(self, name) is not None:
                raise InputError(f"carbon_{name} has no effect without carbon; give it, too.")


def carbon_signal(carbon: Carbon | None, platform: Platform) -> Signal | None:
    """Return the weight of a joule in grams [g/J], PUE included; None if no intensity is given.

    Parameters
    ----------
    carbon : Carbon or None
        With its file read.
    platform : Platform
        Its hosts have the intensity of their property if `carbon` gives none.

    Raises
    ------
    InputError
        If the intensity of some hosts is given, and that of another is not.
    """
    if carbon is None and not platform.carbon_intensity:
        return None
    settings = Carbon() if carbon is None else carbon
    assert not isinstance(settings.intensity, str | float | Path), "the scenario has been loaded"
    constant = {name: Series.constant(value) for name, value in platform.carbon_intensity}
    missing = "carbon intensity", "--carbon", ", and it has no property carbon_intensity [g/kWh]"
    return site_signal(
        settings.intensity, platform, settings.period_s, settings.pue / J_PER_KWH, CARBON, missing, constant
    )


def embodied_g(hosts: Iterable[Host], time_s: float) -> Floats:
    """Return the embodied carbon of each host that falls on a time [g], shape (hosts,).

    Parameters
    ----------
    hosts : iterable of Host
    time_s : float
        How long the hosts are there for the run, used or not [s].

    Notes
    -----
    M = TE x TS x RS of the Software Carbon Intensity specification [1]_: the total embodied emissions TE
    (`embodied_kg`), the time share TS (`time_s` over the lifetime), and the resource share RS, which is 1: a run has
    whole machines.

    References
    ----------
    .. [1] Green Software Foundation, "Software Carbon Intensity (SCI) specification", 1.1.0, embodied emissions;
       ISO/IEC 21031:2024. https://github.com/Green-Software-Foundation/sci
    """
    return np.array([host.embodied_g_per_s * time_s for host in hosts], dtype=np.float64)


def forecast_signal(carbon: Carbon | None, platform: Platform) -> Signal | None:
    """Return what somebody expects of `carbon_signal`; None where there is no such table."""
    if carbon is None or carbon.forecast is None:
        return None
    return carbon_signal(replace(carbon, intensity=carbon.forecast), platform)


def with_signal(
    budget: EnergyBudget | None, signal: Signal | None, platform: Platform, *, is_parallel: bool
) -> EnergyBudget | None:
    """Return a budget in grams, or in money by site, with what it is counted by; any other as it is.

    Parameters
    ----------
    budget : EnergyBudget or None
    signal : Signal or None
        Of the hosts of the platform.
    platform : Platform
    is_parallel : bool
        Whether tasks take sets of nodes, which are at one site.

    Raises
    ------
    InputError
        If no source gives the intensity, it or a price is 0 at some time, or differs within a cluster
        of nodes.
    """
    if budget is None:
        return budget
    if budget.money is not None and isinstance(budget.prices, PriceSeries) and budget.prices.sites is not None:
        signal = budget.prices.signal(budget.prices_cycle_s, platform)
    elif budget.carbon_g is None:
        return budget
    name, words = ("carbon_budget_g", "carbon intensity") if budget.money is None else ("money_budget", "price")
    if signal is None:
        raise InputError("carbon_budget_g needs a carbon intensity: give carbon, or hosts carbon_intensity.")
    if not signal.least > 0:
        raise InputError(f"{name}: under such a budget every {words} must be positive.")
    for cluster in platform.clusters if is_parallel and signal.sites else ():
        if len({signal.site[host] for host in cluster.hosts}) > 1:
            raise InputError(
                f"{platform.name}: the nodes of cluster {cluster.name!r} differ in {words}, and {name} counts "
                "parallel tasks by that of their cluster. Give the cluster one."
            )
    return replace(budget, signal=signal)
