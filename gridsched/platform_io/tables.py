"""Tables of machines: Green500 and TOP500 lists in all their forms, and our own small format.

Our own format is a CSV file with the header
``name,speed,efficiency,idle_power_w[,count,pstates,busy_power_w,off_power_w,cluster,cores,embodied_kg,
lifetime_years,memory,resources,unit_power]``:

==============  ====================================================================
``name``        name of the machine; hosts are called after it
``speed``       speed of the whole machine [flop/s]; with c cores, each has 1/c of it
``efficiency``  speed over power under full load [flop/J]; or give ``busy_power_w`` [W]
``idle_power_w``  power without load [W]; may be left out or empty
``count``       how many hosts of this kind the platform gets; default 1
``pstates``     ``speed factor:power factor;...``, the fastest first; default ``1:1``
``off_power_w``  power while switched off [W]
``cluster``     name of the cluster that holds the hosts
``cores``       cores of each host; default 1
``embodied_kg``  carbon that making and disposing of a host emits [kg CO2e]; default 0
``lifetime_years``  time in service over which that is spread [years of 365 days]
``memory``      memory of each host, such as ``64G``
``resources``   other units that jobs may take: ``gpu:4;fpga:1``
``unit_power``  power of a unit, free and taken [W]: ``gpu:25:300;memory:0.1:0.4``, of memory by GiB
==============  ====================================================================

Lines that start with ``#`` are comments.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gridsched.errors import InputError, counted
from gridsched.model.limits import SI_PREFIXES
from gridsched.platform_io.own_table import read_own_format
from gridsched.platform_io.table_files import (
    LEGAL_NUMBER,
    RawTable,
    cell_number,
    number_column,
    read_raw_table,
    text_column,
)
from gridsched.platform_io.table_headers import Column, is_own_format, recognise_headers, unknown_unit

if TYPE_CHECKING:
    import pandas as pd

#: Columns of every machine table, in this order.
CANONICAL = (
    "rank",
    "top500_rank",
    "name",
    "computer",
    "site",
    "year",
    "cores",
    "rmax_flops",
    "rpeak_flops",
    "power_w",
    "efficiency_flop_per_j",
)
_TEXT = ("name", "computer", "site")
#: Through this year Rmax without a unit is in GFlop/s, later in TFlop/s.
LAST_GFLOPS_YEAR = 2016
#: A listed efficiency further than this from Rmax / power is counted in the notes, ...
_AGREEMENT = 0.01
#: ... further than this its row is named, ...
_WARNED = 0.1
#: ... and beyond this factor it is a slip (another unit, a shifted row): Rmax / power is taken.
_LARGEST_FACTOR = 2.0
#: Rows of one kind that a note names.
_NAMED = 5
#: A list may have so many rows whose cells are shifted, say by a comma in a name.
MAX_BAD_SHARE = 0.01
#: Faster or more efficient machines are refused: their unit is another. The fastest of 2024 has 1.7e18 flop/s,
#: the most efficient 7.3e10 flop/J.
LARGEST_SPEED, LARGEST_EFFICIENCY = 1e19, 1e12
#: The sources that may be chosen if a list has both.
TRUSTED = ("power", "efficiency")


@dataclass(frozen=True)
class MachineTable:
    """Machines with speed and efficiency.

    Attributes
    ----------
    frame : pandas.DataFrame
        The `CANONICAL` columns in SI units (missing values are nan or empty text), for a list
        ``taken`` (``power`` or ``efficiency``, where the two differ by more than 1 %), and for our
        own format also ``idle_power_w, off_power_w, count, pstates, cluster,
        embodied_kg, lifetime_years, memory, resources, unit_power``.
    notes : tuple of str
        What was assumed, computed or odd, with counts.
    path : str
        The file.
    own_format : bool
        Whether it is our own small format.
    """

    frame: pd.DataFrame
    notes: tuple[str, ...]
    path: str
    own_format: bool = False


def read_machine_table(
    path: str | Path, *, join: str | Path | None = None, year: int | None = None, trust: str | None = None
) -> MachineTable:
    """Read a table of machines with their speed and efficiency.

    Parameters
    ----------
    path : str or Path
        CSV, TSV, XLS or XLSX, or the XML of a TOP500 list, distinguished by content.
    join : str or Path, optional
        A TOP500 list of the same date; brings cores, Rmax and Rpeak by the TOP500 rank.
    year : int, optional
        Year of the list: which one, where the table holds several, and the unit of Rmax where the
        header names none. By default the newest year in the table's Year column, else a year in
        the file's name.
    trust : {"power", "efficiency"}, optional
        What counts where a list has both: Rmax / power, or the listed efficiency. By default the
        efficiency, unless the two are more than a factor of 2 apart.

    Returns
    -------
    MachineTable
        Efficiency and speed are completed from each other and the power where two are known; rows
        that lack one stay in the table with nan.

    Raises
    ------
    InputError
        If the file is no such table, more than `MAX_BAD_SHARE` of its rows have a wrong number,
        the year is needed and unknown, or a machine of a list is faster than `LARGEST_SPEED`
        [flop/s] or more efficient than `LARGEST_EFFICIENCY` [flop/J].
    """
    if year is not None and not 1993 <= year <= 2100:
        raise InputError(f"--year is {year}; TOP500 lists exist since 1993.")
    if trust not in (None, *TRUSTED):
        raise InputError(f"--trust is {trust!r}; {' or '.join(TRUSTED)} is allowed.")
    raw = read_raw_table(path)
    if is_own_format(raw.headers):
        for option, value in (("--join", join), ("--year", year), ("--trust", trust)):
            if value is not None:
                raise InputError(f"{path}: is a table in gridsched's own format; it needs no {option}.")
        frame = read_own_format(path, raw)
        return MachineTable(frame, (), str(path), own_format=True)
    notes: list[str] = []
    frame, factors = _read_list(path, raw, year, notes)
    if join is not None:
        frame, joined_factors = _joined(path, frame, join, year, notes)
        factors |= {name: joined_factors[name] for name in ("rmax_flops",) if name in joined_factors}
    listed = frame["efficiency_flop_per_j"].copy()
    _complete(path, frame, notes, trust)
    _refuse_impossible(path, frame, listed, factors)
    return MachineTable(frame.drop(columns="line"), tuple(notes), str(path))


def _read_list(
    path: str | Path, raw: RawTable, year: int | None, notes: list[str]
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return the canonical columns of a list as far as it has them, with ``line``, and their factors to SI units."""
    header = unknown_unit(raw.headers)
    if header:
        raise InputError(
            f"{path}: column {header!r} has an unknown unit; W, kW, MW and GFlop/s, TFlop/s, PFlop/s are known."
        )
    if not raw.rows:
        raise InputError(f"{path}: the table has a header and no rows.")
    columns = recognise_headers(raw.headers)
    raw, footnotes = _without_footnotes(raw, columns)
    if footnotes:
        notes.append(f"{path}: {counted(footnotes, 'line')} below the last machine left out.")
    data: dict[str, Any] = {}
    faults: dict[int, str] = {}
    for name in CANONICAL:
        column = columns.get(name)
        if name in _TEXT:
            data[name] = text_column(raw, column)
        else:
            data[name] = number_column(path, raw, column, faults)
    import pandas as pd  # slow to load

    frame = pd.DataFrame(data | {"line": raw.lines}).drop(index=_bad_rows(path, raw, faults, notes))
    if raw.preamble:
        notes.append(f"{path}: {counted(raw.preamble, 'line')} above the header left out.")
    month = pd.Series(number_column(path, raw, columns.get("month"), {}))
    frame = _of_one_list(path, frame, month[frame.index].fillna(0), year, notes)
    factors = {name: column.factor for name, column in columns.items() if column.factor is not None}
    for name in ("power_w", "efficiency_flop_per_j"):
        if name in columns:
            frame[name] *= factors[name]
    factors |= _scale_rates(path, frame, columns, year, notes)
    frame = frame.dropna(how="all", subset=[c for c in CANONICAL if c not in _TEXT]).reset_index(drop=True)
    return frame, factors


def _of_one_list(
    path: str | Path, frame: pd.DataFrame, month: pd.Series, year: int | None, notes: list[str]
) -> pd.DataFrame:
    """Return the rows of one list, where a table holds the lists of several dates: of a year, else the newest.

    The years of a single list show when its machines were set up. Several lists have the same ranks at
    several dates; those of a tie have equal efficiencies.
    """
    date = frame["year"] * 100 + month
    value = frame["efficiency_flop_per_j"].fillna(frame["rmax_flops"])
    known = frame.assign(date=date, value=value).dropna(subset=["rank", "date", "value"])
    by_rank = known.groupby("rank")
    again = (by_rank["date"].transform("nunique") > 1) & (by_rank["value"].transform("nunique") > 1)
    if again.sum() <= MAX_BAD_SHARE * len(frame):
        return frame
    years = np.unique(frame["year"].dropna()).astype(int).tolist()
    if year is not None and year not in years:
        raise InputError(f"{path}: holds no list of {year}; it has those of {', '.join(map(str, years))} (--year).")
    newest = date.max() if year is None else date[frame["year"] == year].max()
    chosen = date == newest
    text = f"{newest // 100:.0f}" + (f", month {newest % 100:.0f}" if newest % 100 else "")
    notes.append(
        f"{path}: holds lists of several years, {years[0]} to {years[-1]}; that of {text} is taken, "
        f"{counted(int(chosen.sum()), 'row')}, and "
        f"{counted(int((~chosen).sum()), 'row of the others is', 'rows of the others are')} left out. "
        "--year takes another."
    )
    return frame[chosen].copy()


def _bad_rows(path: str | Path, raw: RawTable, faults: dict[int, str], notes: list[str]) -> list[int]:
    """Return the rows to leave out, and name them; `InputError` where they are too many."""
    messages = [faults[row] for row in sorted(faults)]
    if len(messages) > MAX_BAD_SHARE * len(raw.rows):
        raise InputError(
            f"{path}, {messages[0]}; {LEGAL_NUMBER} is allowed. {len(messages)} of {len(raw.rows)} rows have such a "
            f"cell; up to {MAX_BAD_SHARE:.0%} are left out."
        )
    if messages:
        more = f" and {len(messages) - _NAMED} more" if len(messages) > _NAMED else ""
        named = "; ".join(messages[:_NAMED])
        notes.append(
            f"{path}: {counted(len(messages), 'row is', 'rows are')} left out, without a number where one "
            f"is expected: {named}{more}."
        )
    return sorted(faults)


def _without_footnotes(raw: RawTable, columns: dict[str, Column]) -> tuple[RawTable, int]:
    """Return the table without the last rows that hold no number, and how many these are."""
    places = [column.index for name, column in columns.items() if name not in _TEXT]
    kept = len(raw.rows)
    while kept and not any(_is_number(raw, row=kept - 1, index=index) for index in places):
        kept -= 1
    if kept in (0, len(raw.rows)):
        return raw, 0
    return replace(raw, rows=raw.rows[:kept], lines=raw.lines[:kept]), len(raw.rows) - kept


def _is_number(raw: RawTable, *, row: int, index: int) -> bool:
    cells = raw.rows[row]
    try:
        value = cell_number(cells[index] if index < len(cells) else "", decimal_comma=raw.decimal_comma)
    except ValueError:
        return False
    return not np.isnan(value)


def _scale_rates(
    path: str | Path, frame: pd.DataFrame, columns: dict[str, Column], year: int | None, notes: list[str]
) -> dict[str, float]:
    """Bring Rmax and Rpeak to flop/s; return the factors of those whose header names none."""
    rates = [name for name in ("rmax_flops", "rpeak_flops") if name in columns]
    unknown = [name for name in rates if columns[name].factor is None]
    for name in rates:
        if name not in unknown:
            frame[name] *= columns[name].factor
    if not unknown:
        return {}
    year, source = _list_year(path, frame, year)
    factor, unit = (1e9, "GFlop/s") if year <= LAST_GFLOPS_YEAR else (1e12, "TFlop/s")
    for name in unknown:
        frame[name] *= factor
    headers = " and ".join(columns[name].header for name in unknown)
    notes.append(f"{path}: {headers} in {unit}, as in lists of {year} ({source}).")
    _check_unit(path, frame, year, unit)
    return dict.fromkeys(unknown, factor)


def _list_year(path: str | Path, frame: pd.DataFrame, year: int | None) -> tuple[int, str]:
    if year is not None:
        return year, "given"
    newest = frame["year"].max()
    if np.isfinite(newest):
        return int(newest), "newest year in the table"
    match = re.search(r"(?<!\d)(19[89]\d|20\d\d)(?:\d\d)?(?!\d)", Path(path).name)
    if match:
        return int(match[1]), "from the file's name"
    raise InputError(
        f"{path}: Rmax has no unit and the list's year is unknown (GFlop/s through "
        f"{LAST_GFLOPS_YEAR}, TFlop/s later); give --year."
    )


def _check_unit(path: str | Path, frame: pd.DataFrame, year: int, unit: str) -> None:
    """Refuse a unit of Rmax that efficiency times power contradicts by a factor of hundreds."""
    ratio = frame["efficiency_flop_per_j"] * frame["power_w"] / frame["rmax_flops"]
    middle = ratio[np.isfinite(ratio) & (ratio > 0)].median()
    if np.isfinite(middle) and not 1 / 30 < middle < 30:
        raise InputError(
            f"{path}: Rmax in {unit} (year {year}) is {middle:.3g} times off efficiency x power; "
            "give the list's year by --year, or name the unit in the header, for example 'Rmax [GFlop/s]'."
        )


def _refuse_impossible(path: str | Path, frame: pd.DataFrame, listed: pd.Series, factors: dict[str, float]) -> None:
    """Refuse the first machine that is faster or more efficient than any can be; name the unit to give."""
    speed, efficiency = frame["rmax_flops"], frame["efficiency_flop_per_j"]
    wrong = np.flatnonzero((speed > LARGEST_SPEED) | (efficiency > LARGEST_EFFICIENCY))
    if not len(wrong):
        return
    k = int(wrong[0])
    if speed[k] > LARGEST_SPEED and "rmax_flops" in factors:
        times = {"rmax_flops": max(speed[k] / LARGEST_SPEED, efficiency[k] / LARGEST_EFFICIENCY)}
    elif speed[k] > LARGEST_SPEED:
        times = dict.fromkeys(("power_w", "efficiency_flop_per_j"), speed[k] / LARGEST_SPEED)
    elif efficiency[k] == listed[k]:
        times = {"efficiency_flop_per_j": efficiency[k] / LARGEST_EFFICIENCY}
    else:
        times = {"rmax_flops": efficiency[k] / LARGEST_EFFICIENCY, "power_w": LARGEST_EFFICIENCY / efficiency[k]}
    units = [unit for name in times if name in factors and (unit := _unit_for(name, factors[name], times[name]))]
    advice = f"name the unit in the header, as {' or '.join(map(repr, units))}" if units else "correct it"
    raise InputError(
        f"{path}, line {frame['line'][k]}: machine {(frame['name'][k] or frame['computer'][k])!r} would have "
        f"{speed[k]:.3g} flop/s and {efficiency[k] / 1e9:.3g} GFlops/W; up to {LARGEST_SPEED:g} flop/s and "
        f"{LARGEST_EFFICIENCY / 1e9:,.0f} GFlops/W are possible. If the row is right, {advice}."
    )


def _unit_for(name: str, factor: float, times: float) -> str | None:
    """Return the header with the nearest unit that makes the values of a column at least so many times smaller.

    Of a number below 1 the inverse is how many times larger they get.
    """
    steps = math.ceil(math.log(times, 1000)) if times > 1 else math.floor(math.log(times, 1000))
    prefix = {value: letter for letter, value in SI_PREFIXES.items()}.get(factor / 1000.0**steps)
    headers = {"rmax_flops": "Rmax [{}Flop/s]", "power_w": "Power ({}W)", "efficiency_flop_per_j": "{}Flops/W"}
    return None if prefix is None else headers[name].format(prefix)


def _joined(
    path: str | Path, frame: pd.DataFrame, join: str | Path, year: int | None, notes: list[str]
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return `frame` with cores, Rmax, Rpeak and blanks filled from a TOP500 list, and that list's factors."""
    raw = read_raw_table(join)
    if is_own_format(raw.headers):
        raise InputError(f"{join}: is in gridsched's own format; --join takes a TOP500 list.")
    other, factors = _read_list(join, raw, year, notes)
    for name, table in ((path, frame), (join, other)):
        if table["top500_rank"].isna().all():
            raise InputError(f"{name}: has no column with the TOP500 rank; --join needs one.")
    if other[["cores", "rmax_flops"]].isna().all(axis=None):
        raise InputError(f"{join}: has neither cores nor Rmax; there is nothing to join.")
    other = other.dropna(subset="top500_rank").drop_duplicates("top500_rank")
    other = other.set_index("top500_rank")
    matched = int(frame["top500_rank"].isin(other.index).sum())
    if not matched:
        raise InputError(f"{join}: shares no TOP500 rank with {path}; are they of the same date?")
    other = other.reindex(frame["top500_rank"]).reset_index(drop=True)
    for name in ("cores", "rmax_flops", "rpeak_flops", "year"):
        first, second = (frame, other) if name == "year" else (other, frame)
        frame[name] = first[name].fillna(second[name])
    for name in _TEXT:
        frame[name] = frame[name].where(frame[name] != "", other[name].fillna(""))
    notes.append(f"{join}: {matched} of {len(frame)} rows found their TOP500 rank.")
    return frame, factors


def _complete(path: str | Path, frame: pd.DataFrame, notes: list[str], trust: str | None) -> None:
    """Fill speed, power and efficiency from one another; say how often and what disagrees."""

    def fill(name: str, values: pd.Series, how: str) -> None:
        empty = frame[name].isna() & values.notna()
        if empty.any():
            frame.loc[empty, name] = values[empty]
            notes.append(f"{path}: {counted(int(empty.sum()), 'row has', 'rows have')} no {how}.")

    for name, what in (("rmax_flops", "Rmax"), ("power_w", "power"), ("efficiency_flop_per_j", "efficiency")):
        zero = frame[name] == 0
        if zero.any():
            notes.append(f"{path}: {counted(int(zero.sum()), 'row has', 'rows have')} {what} 0, taken as unknown.")
            frame.loc[zero, name] = np.nan
    rmax, power = frame["rmax_flops"], frame["power_w"]
    _settle_efficiency(path, frame, notes, trust)
    efficiency = frame["efficiency_flop_per_j"]
    fill("rmax_flops", efficiency * power, "Rmax: efficiency x power is taken")
    fill("efficiency_flop_per_j", rmax / power, "efficiency: Rmax / power is taken")
    fill("power_w", rmax / efficiency, "power: Rmax / efficiency is taken")
    usable = frame[["rmax_flops", "efficiency_flop_per_j"]].notna().all(axis=1)
    if not usable.any():
        raise InputError(
            f"{path}: no row gives both a speed and an efficiency. Needed are two of Rmax, power "
            "and efficiency; a list without Rmax can get it by --join from a TOP500 list."
        )
    if not usable.all():
        notes.append(
            f"{path}: {int((~usable).sum())} of {len(frame)} rows give no power or no speed and cannot be used."
        )


def _settle_efficiency(path: str | Path, frame: pd.DataFrame, notes: list[str], trust: str | None) -> None:
    """Replace efficiencies that Rmax / power contradicts by more than a factor; report the others.

    Where the power is trusted all of them are replaced, where the efficiency is none. The column
    ``taken`` states for each row in which they differ which of them counts.
    """
    by_power = frame["rmax_flops"] / frame["power_w"]
    differs = (frame["efficiency_flop_per_j"] / by_power - 1).abs() > _AGREEMENT
    frame["taken"] = np.where(differs, "power" if trust == "power" else "efficiency", "")
    if trust == "power":
        has_both = by_power.notna() & frame["efficiency_flop_per_j"].notna()
        frame.loc[has_both, "efficiency_flop_per_j"] = by_power[has_both]
        notes.append(f"{path}: of {counted(int(has_both.sum()), 'row')} with both, Rmax / power is taken.")
        return
    ratio = frame["efficiency_flop_per_j"] / by_power
    wrong = (ratio > _LARGEST_FACTOR) | (ratio < 1 / _LARGEST_FACTOR)
    wrong &= trust is None
    if wrong.any():
        notes.append(
            f"{path}: {counted(int(wrong.sum()), 'row has', 'rows have')} an efficiency more than a factor of "
            f"{_LARGEST_FACTOR:g} off Rmax / power; Rmax / power is taken for "
            f"{_named(frame, ratio[wrong])}."
        )
        frame.loc[wrong, "efficiency_flop_per_j"] = by_power[wrong]
        frame.loc[wrong, "taken"] = "power"
    off = ((ratio - 1).abs() > _AGREEMENT) & ~wrong
    if off.any():
        warned = ratio[off & ((ratio - 1).abs() > _WARNED)]
        named = f"; over {_WARNED:.0%}: {_named(frame, warned)}" if len(warned) else ""
        notes.append(
            f"{path}: {counted(int(off.sum()), 'row has', 'rows have')} an efficiency that is not Rmax / power "
            f"(more than {_AGREEMENT:.0%} apart{named}); the listed efficiency is kept."
        )


def _named(frame: pd.DataFrame, ratio: pd.Series) -> str:
    """Name the first rows of `ratio` by rank and machine, with what they are off by."""
    texts = []
    for k, times in ratio.iloc[:_NAMED].items():
        rank = frame["rank"][k]
        place = f"row {k + 1}" if np.isnan(rank) else f"rank {rank:.0f}"
        texts.append(f"{place} ({(frame['name'][k] or frame['computer'][k])!r}, {times:.3g} times)")
    more = len(ratio) - _NAMED
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")
