"""Our own small format of tables of machines; `gridsched.platform_io.tables` documents it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gridsched.errors import InputError, did_you_mean
from gridsched.platform_io.recipe import UNIT_COLUMNS, parse_pstates, units_of_row
from gridsched.platform_io.table_files import RawTable, number_column, text_column
from gridsched.platform_io.table_headers import OWN_COLUMNS, Column

if TYPE_CHECKING:
    import pandas as pd


_TEXT = ("name", "computer", "site", "cluster", "pstates", "memory", "resources", "unit_power")
_NUMBERS = (
    "speed",
    "efficiency",
    "busy_power_w",
    "idle_power_w",
    "off_power_w",
    "count",
    "cores",
    "rank",
    "top500_rank",
    "year",
    "embodied_kg",
    "lifetime_years",
)
_ALSO = ("rank", "top500_rank", "computer", "site", "year")


#: Larger counts are refused: floats hold none of them exactly.
_MOST_COUNTED = 2**53


def read_own_format(path: str | Path, raw: RawTable) -> pd.DataFrame:
    """Return the frame of a table in our own format.

    Raises
    ------
    InputError
        If a column is unknown, a value is missing or wrong, or a name occurs twice.
    """
    places = _columns(path, raw)
    if not raw.rows:
        raise InputError(f"{path}: the table has a header and no rows.")

    import pandas as pd  # slow to load

    frame = pd.DataFrame(
        {name: text_column(raw, places.get(name)) for name in _TEXT}
        | {name: number_column(path, raw, places.get(name)) for name in _NUMBERS}
    )
    busy = frame["busy_power_w"]
    frame["efficiency"] = frame["efficiency"].fillna(frame["speed"] / busy.where(busy > 0))
    _check_rows(path, raw.lines, frame)
    frame["rank"] = frame["rank"].fillna(pd.Series(range(1, len(frame) + 1)))
    frame["count"] = frame["count"].fillna(1).astype(int)
    frame["power_w"] = frame["speed"] / frame["efficiency"]
    frame["rpeak_flops"] = np.nan
    return frame.rename(columns={"speed": "rmax_flops", "efficiency": "efficiency_flop_per_j"})


def _check_rows(path: str | Path, lines: list[int], given: pd.DataFrame) -> None:
    """Refuse the first row with a missing or impossible value."""
    speed, busy, efficiency = given["speed"], given["busy_power_w"], given["efficiency"]

    def refuse(bad: pd.Series, message: str | Callable[[int], str]) -> None:
        for k in np.flatnonzero(bad).tolist():
            name, said = given["name"][k], message if isinstance(message, str) else message(k)
            raise InputError(f"{path}, line {lines[k]}: machine {name!r} {said}")

    def is_no_count(values: pd.Series) -> pd.Series:
        return values.notna() & ((values < 1) | (values % 1 != 0))

    refuse(given["name"] == "", "needs a name.")
    refuse(given["name"].duplicated(), "occurs twice; give each row its own name.")
    refuse(~(speed > 0), lambda k: f"has speed {speed[k]:g}; a number above 0 [flop/s] is needed.")
    refuse(~(efficiency > 0), "needs an efficiency [flop/J] or a busy_power_w [W] above 0.")
    refuse(
        (efficiency * busy / speed - 1).abs() > 0.01,
        lambda k: (
            f"has busy_power_w {busy[k]:g}, but speed / efficiency is "
            f"{speed[k] / efficiency[k]:g} W; leave one of them out."
        ),
    )
    embodied, lifetime = given["embodied_kg"], given["lifetime_years"]
    refuse(
        ~(lifetime > 0) & (lifetime.notna() | (embodied > 0)),
        lambda k: f"has lifetime_years {lifetime[k]:g}; a number above 0 is needed to spread embodied_kg.",
    )
    for what in ("count", "cores"):
        refuse(is_no_count(given[what]), f"has a {what} that is not a whole number of at least 1.")
        refuse(given[what] > _MOST_COUNTED, f"has a {what} above {_MOST_COUNTED:,}.")
    for k, text in enumerate(given["pstates"]):
        try:
            parse_pstates(text or "1:1")
            units_of_row(*(given[name][k] for name in UNIT_COLUMNS))
        except ValueError as error:
            raise InputError(f"{path}, line {lines[k]}: {error}.") from None


def _columns(path: str | Path, raw: RawTable) -> dict[str, Column]:
    legal = (*OWN_COLUMNS, *_ALSO)
    places: dict[str, Column] = {}
    for index, header in enumerate(raw.headers):
        name = header.strip().lower()
        if not name:
            continue
        if name not in legal:
            raise InputError(
                f"{path}: unknown column {header!r}. {did_you_mean(name, legal)}Allowed columns: {', '.join(legal)}."
            )
        if name in places:
            raise InputError(f"{path}: column {header!r} occurs twice.")
        places[name] = Column(index, header)
    return places
