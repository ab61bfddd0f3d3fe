"""Tables of what power costs or emits by time and site, from CSV files."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

from gridsched.errors import InputError
from gridsched.files.csv_files import Column, Format, Number, Table, Text
from gridsched.files.input_files import read_text
from gridsched.model.calendar import Calendar, on_calendar, time_zone
from gridsched.model.carbon import Carbon
from gridsched.model.limits import LARGEST
from gridsched.model.prices import PriceSeries
from gridsched.model.rules import EnergyBudget
from gridsched.model.series import Series, SiteSeries
from gridsched.model.signals import J_PER_KWH
from gridsched.model.tariff import Tariff

INTENSITY = "g_per_kwh"
#: What `Carbon.start` is where the run begins with the log, by its own calendar.
OF_LOG = "log"
#: What columns of times may hold: seconds of the run, or dates on the log's calendar.
_TIMES = {"time_s": Number(), "time": Text()}
#: A pound for each MWh in grams for each kWh.
_LB_PER_MWH = 0.45359237


class Preset(NamedTuple):
    """How somebody publishes tables of carbon intensity with time stamps.

    Attributes
    ----------
    time, value : tuple of str
        What the columns may be called, whatever the case.
    zone : str
        Of stamps that have none.
    unit : float
        Of the values [g/kWh].
    """

    time: tuple[str, ...]
    value: tuple[str, ...]
    zone: str = "UTC"
    unit: float = 1.0


_MAPS_TIME = ("Datetime (UTC)",)
_MAPS = "Carbon intensity gCO₂eq/kWh"
#: Sources of such tables by the names that `Carbon.columns` takes.
PRESETS = {
    "electricity_maps": Preset(
        _MAPS_TIME, (f"{_MAPS} (Life cycle)", f"{_MAPS} (LCA)", f"{_MAPS} (life cycle assessment)")
    ),
    "electricity_maps_direct": Preset(_MAPS_TIME, (f"{_MAPS} (direct)",)),
    "neso": Preset(("datetime", "from"), ("actual",)),
    "watttime": Preset(("point_time", "timestamp"), ("value", "MOER"), unit=_LB_PER_MWH),
}
_EVERYONE = "*"
#: What columns of tables with time stamps are called.
_STAMPS, _INTENSITIES = (
    re.compile(r"time|date|stamp|\bMTU\b", re.I),
    re.compile(r"carbon intensity|co2|co₂|g/kwh", re.I),
)
_NUMBER = Number()
#: A stamp as ENTSO-E's tables have it, alone or as the begin of an interval.
_DAY_FIRST = re.compile(r"^(\d\d)[./](\d\d)[./](\d{4}) (\d\d:\d\d(?::\d\d)?)(?: - .*)?$")


def read_site_series(path: str | Path, value: str, calendar: Calendar | None = None) -> SiteSeries:
    """Read values by time and site, one line for each change.

    Parameters
    ----------
    path : path
        CSV ``[host,]time_s,VALUE``: hosts by name or by a pattern of names of hosts or clusters;
        without the column all hosts. A column ``time`` in the place of ``time_s`` has dates.
    value : str
        Name of the column of values.
    calendar : Calendar, optional
        On which the dates are; of rows before its begin the last one of each host holds from there on.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    time = _time_column(path)
    columns = {"host": Text(is_name=True, default=_EVERYONE), time: _TIMES[time], value: Number()}
    table = Format(columns, rows="rows").read(path)
    rows, times = _from_begin(table, time, table["host"], calendar)
    return _by_host(table, rows, [table["host"][row] for row in rows], times, [table[value][row] for row in rows], time)


def _time_column(path: str | Path) -> str:
    """Return which column has the times: ``time`` where a table has dates on the log's calendar."""
    present = _header(path, read_text(path))
    return "time" if "time" in present and "time_s" not in present else "time_s"


def _from_begin(
    table: Table, column: str, hosts: Sequence[str], calendar: Calendar | None
) -> tuple[Sequence[int], list[float]]:
    """Return which rows hold from the run's begin on, and when they begin [s]; all where times are in seconds."""
    if column == "time_s":
        return range(len(table)), table[column]
    owner = f"{table.path}, line "
    times = [
        on_calendar(calendar, text, f"{owner}{line}") for text, line in zip(table[column], table.lines, strict=True)
    ]
    last: dict[str, int] = {}
    for row, (host, time) in enumerate(zip(hosts, times, strict=True)):
        if time <= 0:
            last[host] = row
    for row, host in enumerate(hosts):
        if host not in last:
            raise table.fail(row, column, "the first row must not be later than the first submission of the log")
    rows = [row for row, time in enumerate(times) if time > 0 or last[hosts[row]] == row]
    return rows, [max(times[row], 0.0) for row in rows]


def _by_host(
    table: Table,
    rows: Sequence[int],
    hosts: Sequence[str],
    times: Sequence[float],
    values: Sequence[float],
    column: str,
) -> SiteSeries:
    """Gather the rows of each host; their times ascend from 0."""
    series: dict[str, tuple[list[float], list[float]]] = {}
    for row, host, time, value in zip(rows, hosts, times, values, strict=True):
        begins, held = series.setdefault(host, ([], []))
        if not begins and time != 0:
            raise table.fail(row, column, f"the first row of {host!r} begins at 0")
        if begins and time <= begins[-1]:
            raise table.fail(row, column, f"it must be later than in the row of {host!r} before, {begins[-1]:g} s")
        begins.append(time)
        held.append(value)
    return SiteSeries(tuple(series), tuple(Series(tuple(b), tuple(v)) for b, v in series.values()))


def with_carbon_read(carbon: Carbon | None, calendar: Calendar | None = None) -> Carbon | None:
    """Return the carbon intensity with the files that it names read; any other as it is.

    Parameters
    ----------
    carbon : Carbon or None
    calendar : Calendar, optional
        Of the log, on which dates are.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value, or a setting that has no effect.
    """
    if carbon is not None and isinstance(carbon.intensity, float):
        constant = SiteSeries((_EVERYONE,), (Series.constant(carbon.intensity),))
        carbon = replace(carbon, intensity=constant)
    if carbon is not None and isinstance(carbon.forecast, str | Path):
        carbon = replace(carbon, forecast=read_site_series(carbon.forecast, INTENSITY, calendar))
    if carbon is None or not isinstance(carbon.intensity, str | Path):
        return carbon
    if carbon.columns is None:
        for name in ("fill", "start"):
            if getattr(carbon, name) is not None:
                raise InputError(
                    f"carbon_{name} belongs to tables with time stamps; name their columns by carbon_columns."
                )
        _refuse_time_stamps(carbon.intensity)
        return replace(carbon, intensity=read_site_series(carbon.intensity, INTENSITY, calendar))
    series = _HourlyTable(Path(carbon.intensity), carbon, calendar).read()
    return replace(carbon, intensity=series, columns=None, fill=None, start=None)


def _refuse_time_stamps(path: str | Path) -> None:
    """Raise `InputError` for a table without times in seconds, whose columns nothing names."""
    present = _header(path, read_text(path))
    if "time_s" in present or {"time", INTENSITY} <= set(present) or len(present) < len(("time", "value")):
        return
    guessed = [next((name for name in present if pattern.search(name)), None) for pattern in (_STAMPS, _INTENSITIES)]
    # a comma would part the option's own keys
    is_sure = all(name is not None and "," not in name for name in guessed)
    columns = f"'time={guessed[0]},value={guessed[1]}'" if is_sure else "time=NAME,value=NAME"
    known = [source for source, preset in PRESETS.items() if preset_columns(preset, present) is not None]
    columns = " or ".join(known) or columns
    raise InputError(
        f"{path}: no column 'time_s'; the header is host,time_s,{INTENSITY}. For a table with time stamps, name its "
        f"columns by --carbon-columns {columns} (in a study carbon_columns); it has {', '.join(present)}."
    )


def preset_columns(preset: Preset, present: Sequence[str]) -> dict[str, str] | None:
    """Return the columns of a preset as a table calls them; None where it lacks one."""
    folded = {name.casefold(): name for name in present}
    found = [
        next((folded[name.casefold()] for name in names if name.casefold() in folded), None)
        for names in (preset.time, preset.value)
    ]
    if found[0] is None or found[1] is None:
        return None
    return {"time": found[0], "value": found[1], "zone": preset.zone}


def _header(path: str | Path, text: str) -> list[str]:
    """Return the columns of a table, without empty ones behind the last."""
    try:
        header = next((row for row in csv.reader(text.splitlines()) if row and not row[0].startswith("#")), [])
    except csv.Error as error:
        raise InputError(f"{path}: no readable CSV: {error}.") from None
    present = [name.strip() for name in header]
    while present[-1:] == [""]:
        present.pop()
    return present


class _HourlyTable:
    """A table with time stamps, as Electricity Maps and ENTSO-E have it.

    Parameters
    ----------
    path : Path
    carbon : Carbon
        Specifies the columns, what fills gaps, and when the run begins.
    calendar : Calendar or None
        Of the log, for a run that begins with it.
    """

    def __init__(self, path: Path, carbon: Carbon, calendar: Calendar | None) -> None:
        self._fills = carbon.fill == "hold"
        text = read_text(path)
        present = _header(path, text)
        source = PRESETS.get(carbon.columns or "")
        self._unit = 1.0 if source is None else source.unit
        names = _named_columns(carbon.columns or "") if source is None else preset_columns(source, present)
        if names is None:
            assert source is not None
            raise InputError(
                f"{path}: a table of {carbon.columns} has the columns {' or '.join(map(repr, source.time))} and "
                f"{' or '.join(map(repr, source.value))}; this one has {', '.join(present)}. Name its columns by "
                "carbon_columns."
            )
        self._zone = _zone(names)
        self._start = None if carbon.start is None else self._begin(carbon.start, calendar)
        for name in (name for key, name in names.items() if key != "zone"):
            if name not in present:
                raise InputError(f"{path}: no column {name!r} (carbon_columns); its columns are {', '.join(present)}.")
        self._table = Format({name: Text() for name in present}, rows="rows", trailing_commas=True).read(path, text)
        self._time, self._value = names["time"], names["value"]
        self._host = names.get("host")

    def _begin(self, text: str, calendar: Calendar | None) -> datetime:
        """Return when the run begins: at a stamp, or with the log."""
        if text != OF_LOG:
            return self._stamp(text, "carbon_start", self._zone)
        begin_s = None if calendar is None else calendar.begin_unix_s
        if begin_s is None:
            why = "the dates of the log have no time zone: name it by --log-zone (log_zone)"
            why = "the workload has no dates: give a time stamp" if calendar is None else why
            raise InputError(f"carbon_start is {OF_LOG!r}, and {why}.")
        return datetime.fromtimestamp(begin_s, UTC)

    @staticmethod
    def _stamp(text: str, owner: str, zone: tzinfo | None) -> datetime:
        try:
            # ENTSO-E prints the begin and the end, and the day first
            stamp = datetime.fromisoformat(_DAY_FIRST.sub(r"\3-\2-\1T\4", text))
        except ValueError:
            raise InputError(f"{owner} is {text!r}; it must be a time stamp, as 2026-01-31T00:00+01:00.") from None
        if stamp.tzinfo is None:
            if zone is None:
                raise InputError(
                    f"{owner} is {text!r}; its time zone is missing, as in 2026-01-31T00:00+01:00, or name it in "
                    "carbon_columns, as zone=UTC."
                )
            stamp = stamp.replace(tzinfo=zone)
        return stamp

    def read(self) -> SiteSeries:
        """Return the series of each host, from the run's begin on."""
        table = self._table
        hosts = table[self._host] if self._host else [_EVERYONE] * len(table)
        stamps, values = list[float](), list[float]()
        last: dict[str, float] = {}
        for row, text in enumerate(table[self._time]):
            try:
                stamp = self._stamp(text, "", self._zone)
                at = stamp.timestamp()
                if at <= last.get(hosts[row], -math.inf):  # the hour that a clock shows twice
                    at = stamp.replace(fold=1).timestamp()
                last[hosts[row]] = at
                stamps.append(at)
            except InputError as error:
                raise table.fail(row, self._time, str(error).partition("; ")[2].rstrip(".")) from None
            try:
                values.append(_NUMBER.read(table[self._value][row]) * self._unit)
            except ValueError as error:
                raise table.fail(row, self._value, str(error)) from None
        start = min(stamps) if self._start is None else self._start.timestamp()
        kept = self._kept(hosts, stamps, start)
        times = [max(stamps[row] - start, 0.0) for row in kept]
        if not kept:
            raise InputError(f"{table.path}: no row holds at {self._start}; carbon_start must lie within the table.")
        return _by_host(table, kept, [hosts[row] for row in kept], times, [values[row] for row in kept], self._time)

    def _kept(self, hosts: Sequence[str], stamps: Sequence[float], start: float) -> list[int]:
        """Return the rows that hold from the start on [s]; refuse missing hours, unless they are filled."""
        rows: dict[str, list[int]] = {}
        for row, host in enumerate(hosts):
            rows.setdefault(host, []).append(row)
        kept = []
        for own in rows.values():
            steps = [stamps[after] - stamps[before] for before, after in pairwise(own)]
            step = min((each for each in steps if each > 0), default=0.0)
            for k, length in enumerate(steps):
                if length > step and not self._fills:
                    raise self._table.fail(
                        own[k + 1],
                        self._time,
                        f"rows before it are missing, {step:g} s is a step; carbon_fill = hold fills",
                    )
            last = max((row for row in own if stamps[row] <= start), default=None)
            kept += [row for row in own if stamps[row] > start or row == last]
        return sorted(kept)


def _named_columns(text: str) -> Mapping[str, str]:
    """Return what ``time=NAME,value=NAME[,host=NAME][,zone=ZONE]`` names."""
    names = {key.strip(): name.strip() for key, _, name in (item.partition("=") for item in text.split(","))}
    if not {"time", "value"} <= set(names) <= {"time", "value", "host", "zone"} or not all(names.values()):
        raise InputError(
            f"carbon_columns is {text!r}; it must read time=NAME,value=NAME[,host=NAME][,zone=ZONE], with a zone as "
            f"UTC, +01:00 or Europe/Berlin, or be one of {', '.join(PRESETS)}."
        )
    return names


def _zone(names: Mapping[str, str]) -> tzinfo | None:
    """Return the zone of stamps that have none: the one that is named, or UTC where the column's name has it."""
    text = names.get("zone", "UTC" if "UTC" in names["time"] else None)
    return None if text is None else time_zone(text, "carbon_columns")


Priced = TypeVar("Priced", Tariff | None, EnergyBudget | None)
ENERGY_COST = "energy_cost_per_kwh"
#: Columns that are missing, and empty cells, have the values of the tariff.
_PRICES: Mapping[str, Column] = {
    "price": Number(default=math.nan),
    ENERGY_COST: Number(default=math.nan),
    "price_per_waiting_bag": Number(-LARGEST, default=0.0),
}


def read_prices(path: str | Path, tariff: Tariff | None = None, calendar: Calendar | None = None) -> PriceSeries:
    """Read prices by time of day, one line for each change.

    Parameters
    ----------
    path : path
        CSV ``time_s[,price][,energy_cost_per_kwh][,price_per_waiting_bag]``, or by site
        ``host,time_s,energy_cost_per_kwh``: hosts as in a table of carbon intensities. A column ``time`` in the
        place of ``time_s`` has dates.
    tariff : Tariff, optional
        Gives the price and the energy cost if the table does not. Without it the table must state
        what energy costs, which is positive, and nothing pays.
    calendar : Calendar, optional
        On which the dates are; of lines before its begin the last one holds from there on.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    if _is_by_site(path):
        costs_by_site = read_site_series(path, ENERGY_COST, calendar)
        sites = (replace(each, value=tuple(v / J_PER_KWH for v in each.value)) for each in costs_by_site.series)
        price = 0.0 if tariff is None else tariff.price
        return PriceSeries.by_site(replace(costs_by_site, series=tuple(sites)), price)
    time = _time_column(path)
    columns: dict[str, Column] = {time: _TIMES[time], **_PRICES}
    if tariff is None:
        columns[ENERGY_COST] = Number(above=True)
        tariff = Tariff(price=0.0)
    table = Format(columns, rows="prices").read(path)
    rows, times = _from_begin(table, time, [_EVERYONE] * len(table), calendar)
    if times[0] != 0:
        raise table.fail(0, time, "the first line begins at 0")
    for (row, at), before in zip(zip(rows[1:], times[1:], strict=True), times, strict=False):
        if at <= before:
            raise table.fail(row, time, f"it must be greater than the line before's, {before:g}")
    prices, costs, waiting = (
        [table[column][row] for row in rows] for column in ("price", ENERGY_COST, "price_per_waiting_bag")
    )
    return PriceSeries(
        tuple(times),
        tuple(tariff.price if math.isnan(each) else each for each in prices),
        tuple(tariff.energy_cost_per_j if math.isnan(each) else each / J_PER_KWH for each in costs),
        tuple(waiting),
    )


def _is_by_site(path: str | Path) -> bool:
    """Whether the head of a table has a column of hosts."""
    lines = (line.strip() for line in read_text(path).splitlines())
    head = next((line for line in lines if line and not line.startswith("#")), "")
    return "host" in [name.strip() for name in head.split(",")]


def with_prices_read(priced: Priced, calendar: Calendar | None = None) -> Priced:
    """Return a tariff or a budget with the file of prices that it names read; any other as it is.

    Parameters
    ----------
    priced : Tariff, EnergyBudget or None
    calendar : Calendar, optional
        Of the log, on which dates are.
    """
    if priced is None or not isinstance(priced.prices, str | Path):
        return priced
    prices = read_prices(priced.prices, priced if isinstance(priced, Tariff) else None, calendar)
    return replace(priced, prices=prices)
