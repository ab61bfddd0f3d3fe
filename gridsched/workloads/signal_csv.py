"""Tables of what power costs or emits by time and site, from CSV files."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from gridsched.model.rules import DAY_S, EnergyBudget
from gridsched.model.series import Series, SiteSeries, end_of_rows, rows_of_run
from gridsched.model.signals import J_PER_KWH
from gridsched.model.tariff import Tariff

INTENSITY = "g_per_kwh"
#: What `Carbon.start` is where the run begins with the log, by its own calendar.
OF_LOG = "log"
#: What that is, for messages.
OF_FIRST = "the first submission of the log"
#: What columns of times may hold: seconds of the run, or dates on the log's calendar.
TIMES = {"time_s": Number(), "time": Text()}
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


def read_site_series(
    path: str | Path,
    value: str,
    calendar: Calendar | None = None,
    *,
    period_s: float | None = None,
    key: str = "carbon_period_s",
) -> SiteSeries:
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
    period_s : float, optional
        See `Series.end_s`.
    key : str
        The key of that period, for messages.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value, or if dates do not cover the run's begin.
    """
    time = time_column(path)
    columns = {"host": Text(is_name=True, default=_EVERYONE), time: TIMES[time], value: Number()}
    table = Format(columns, rows="rows").read(path)
    dates = _Dates.on(calendar, period_s, key) if time == "time" else None
    return _by_host(table, table["host"], times_of(table, time, calendar), table[value], time, dates)


def time_column(path: str | Path) -> str:
    """Return which column has the times: ``time`` where a table has dates on the log's calendar."""
    present = _header(path, read_text(path))
    return "time" if "time" in present and "time_s" not in present else "time_s"


@dataclass(frozen=True)
class _Dates:
    """How the rows of a table with dates become those of a run.

    Attributes
    ----------
    period_s : float or None
        See `Series.end_s`.
    key : str
        The key of that period, for messages.
    date : callable
        Returns the date of a time on the run's clock [s].
    begin : str
        When the run begins, for messages.
    """

    period_s: float | None
    key: str
    date: Callable[[float], str]
    begin: str = OF_FIRST

    @classmethod
    def on(cls, calendar: Calendar | None, period_s: float | None, key: str) -> _Dates:
        """Return this for dates on the calendar of a log."""

        def date(time_s: float) -> str:
            dates = None if calendar is None else calendar.dates([round(time_s)])
            return f"{time_s:g} s" if dates is None else dates[0]

        return cls(period_s, key, date)

    def of_run(self, table: Table, rows: Sequence[int], times: Sequence[float], column: str) -> _HostRows:
        """Return those rows of a host that hold in the run; refuse a table that does not cover its begin."""
        if times[0] > 0:
            raise table.fail(rows[0], column, f"the first row must not be later than {self.begin}, {self.date(0.0)}")
        if (end_s := end_of_rows(times, self.period_s)) <= 0:
            raise InputError(
                f"{table.path}: its rows cover {self.date(times[0])} to {self.date(end_s)}, and the run begins at "
                f"{self.date(0.0)}, {self.begin}. Give a table that covers the run, or {self.key}: 86400 repeats "
                "a day, inf lets the last row hold forever."
            )
        if self.period_s is not None and (length := times[-1] - times[0]) >= self.period_s:
            raise InputError(
                f"{table.path}: {self.key} is {self.period_s:g} s, and the last row begins {length:g} s after the "
                "first; make the period longer."
            )
        kept, begins = rows_of_run(times, self.period_s)
        # None: the kept rows have the same end
        last_until_s = None if end_of_rows(begins, self.period_s) == end_s else end_s
        return _HostRows([rows[row] for row in kept], begins, last_until_s)


class _HostRows(NamedTuple):
    """Rows of a table that are of one host, when they begin [s], and `Series.last_until_s`."""

    rows: list[int]
    begin_s: list[float]
    last_until_s: float | None = None


def times_of(table: Table, column: str, calendar: Calendar | None) -> list[float]:
    """Return when the rows of a table begin on the run's clock [s]."""
    if column == "time_s":
        return list(table[column])
    lines = zip(table[column], table.lines, strict=True)
    return [on_calendar(calendar, text, f"{table.path}, line {line}") for text, line in lines]


def _rows_by_host(
    table: Table, hosts: Sequence[str], times: Sequence[float], column: str, dates: _Dates | None
) -> dict[str, _HostRows]:
    """Gather the rows of each host; their times ascend, from 0 unless they are dates."""
    found: dict[str, _HostRows] = {}
    for row, (host, time) in enumerate(zip(hosts, times, strict=True)):
        own = found.setdefault(host, _HostRows([], []))
        of_host = "" if host == _EVERYONE else f" of {host!r}"
        if not own.rows and time != 0 and dates is None:
            raise table.fail(row, column, f"the first line{of_host} begins at 0")
        if own.rows and time <= own.begin_s[-1]:
            before = f"{own.begin_s[-1]:g} s" if dates is None else table[column][own.rows[-1]]
            raise table.fail(row, column, f"it must be greater than the line before's{of_host}, {before}")
        own.rows.append(row)
        own.begin_s.append(time)
    if dates is None:
        return found
    return {host: dates.of_run(table, own.rows, own.begin_s, column) for host, own in found.items()}


def _by_host(
    table: Table,
    hosts: Sequence[str],
    times: Sequence[float],
    values: Sequence[float],
    column: str,
    dates: _Dates | None,
) -> SiteSeries:
    """Return the series of each host."""
    found = _rows_by_host(table, hosts, times, column, dates)
    series = (
        Series(tuple(own.begin_s), tuple(values[row] for row in own.rows), own.last_until_s) for own in found.values()
    )
    return SiteSeries(tuple(found), tuple(series))


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
        forecast = read_site_series(carbon.forecast, INTENSITY, calendar, period_s=carbon.period_s)
        carbon = replace(carbon, forecast=forecast)
    if carbon is None or not isinstance(carbon.intensity, str | Path):
        return carbon
    if carbon.columns is None:
        for name in ("fill", "start"):
            if getattr(carbon, name) is not None:
                raise InputError(
                    f"carbon_{name} belongs to tables with time stamps; name their columns by carbon_columns."
                )
        _refuse_time_stamps(carbon.intensity)
        series = read_site_series(carbon.intensity, INTENSITY, calendar, period_s=carbon.period_s)
        return replace(carbon, intensity=series)
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
        start = carbon.start or (None if calendar is None else OF_LOG)
        self._period_s, self._begins = carbon.period_s, OF_FIRST if start == OF_LOG else "the carbon_start"
        self._start = None if start is None else self._begin(start, calendar, is_asked=carbon.start is not None)
        for name in (name for key, name in names.items() if key != "zone"):
            if name not in present:
                raise InputError(f"{path}: no column {name!r} (carbon_columns); its columns are {', '.join(present)}.")
        self._table = Format({name: Text() for name in present}, rows="rows", trailing_commas=True).read(path, text)
        self._time, self._value = names["time"], names["value"]
        self._host = names.get("host")

    def _begin(self, text: str, calendar: Calendar | None, *, is_asked: bool) -> datetime:
        """Return when the run begins: at a stamp, or with the log."""
        if text != OF_LOG:
            return self._stamp(text, "carbon_start", self._zone)
        begin_s = None if calendar is None else calendar.begin_unix_s
        if begin_s is None:
            why = "the dates of the log have no time zone: name it by --log-zone (log_zone)"
            why = "the workload has no dates: give a time stamp" if calendar is None else why
            given = "carbon_start is 'log'" if is_asked else "A table with time stamps begins with the log"
            raise InputError(f"{given}, and {why}{'' if is_asked else ', or give the begin by carbon_start'}.")
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
        self._check_steps(hosts, stamps)
        dates = _Dates(self._period_s, "carbon_period_s", lambda time_s: _utc(start + time_s), self._begins)
        return _by_host(table, hosts, [each - start for each in stamps], values, self._time, dates)

    def _check_steps(self, hosts: Sequence[str], stamps: Sequence[float]) -> None:
        """Refuse missing hours, unless they are filled."""
        if self._fills:
            return
        rows: dict[str, list[int]] = {}
        for row, host in enumerate(hosts):
            rows.setdefault(host, []).append(row)
        for own in rows.values():
            steps = [stamps[after] - stamps[before] for before, after in pairwise(own)]
            step = min((each for each in steps if each > 0), default=0.0)
            for k, length in enumerate(steps):
                if length > step:
                    raise self._table.fail(
                        own[k + 1],
                        self._time,
                        f"rows before it are missing, {step:g} s is a step; carbon_fill = hold fills",
                    )


def _utc(unix_s: float) -> str:
    """Return a Unix time as a date in UTC; as seconds where no date has its year."""
    try:
        return datetime.fromtimestamp(round(unix_s), UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return f"{unix_s:g} s"


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


def read_prices(
    path: str | Path,
    tariff: Tariff | None = None,
    calendar: Calendar | None = None,
    *,
    period_s: float | None = None,
    key: str = "prices_period_s",
) -> PriceSeries:
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
    period_s : float, optional
        After which the lines of a table with dates hold again [s]; see `Series.end_s`.
    key : str
        The key of that period, for messages.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value, or if dates do not cover the run's begin.
    """
    if _is_by_site(path):
        costs_by_site = read_site_series(path, ENERGY_COST, calendar, period_s=period_s, key=key)
        has_dates = time_column(path) == "time"
        sites = (
            replace(
                each,
                value=tuple(v / J_PER_KWH for v in each.value),
                last_until_s=each.end_s(period_s) if has_dates else None,
            )
            for each in costs_by_site.series
        )
        price = 0.0 if tariff is None else tariff.price
        return PriceSeries.by_site(replace(costs_by_site, series=tuple(sites)), price)
    time = time_column(path)
    columns: dict[str, Column] = {time: TIMES[time], **_PRICES}
    if tariff is None:
        columns[ENERGY_COST] = Number(above=True)
        tariff = Tariff(price=0.0)
    table = Format(columns, rows="prices").read(path)
    dates = _Dates.on(calendar, period_s, key) if time == "time" else None
    found = _rows_by_host(table, [_EVERYONE] * len(table), times_of(table, time, calendar), time, dates)[_EVERYONE]
    prices, costs, waiting = (
        [table[column][row] for row in found.rows] for column in ("price", ENERGY_COST, "price_per_waiting_bag")
    )
    end_s = end_of_rows(found.begin_s, math.inf if dates is None else period_s)
    return PriceSeries(
        tuple(found.begin_s),
        tuple(tariff.price if math.isnan(each) else each for each in prices),
        tuple(tariff.energy_cost_per_j if math.isnan(each) else each / J_PER_KWH for each in costs),
        tuple(waiting),
        last_until_s=end_s if found.last_until_s is None else found.last_until_s,
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
    tariff, key = (priced, "prices_period_s") if isinstance(priced, Tariff) else (None, "budget_prices_period_s")
    period_s = priced.prices_period_s
    prices = read_prices(priced.prices, tariff, calendar, period_s=period_s, key=key)
    if period_s is None and time_column(priced.prices) == "time":
        period_s = math.inf
    return replace(priced, prices=prices, prices_period_s=DAY_S if period_s is None else period_s)
