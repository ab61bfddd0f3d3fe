"""Recognize the columns of Green500 and TOP500 lists, and of our own format, by meaning.

Some 47 different header rows are in use; see ``tests/platform_io/header_rows.py``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gridsched.model.limits import SI_PREFIXES

#: Columns of our own format beside the canonical ones, in the order they are documented.
OWN_COLUMNS = (
    "name",
    "speed",
    "efficiency",
    "idle_power_w",
    "count",
    "pstates",
    "busy_power_w",
    "off_power_w",
    "cluster",
    "cores",
    "embodied_kg",
    "lifetime_years",
    "memory",
    "resources",
    "unit_power",
)

_PREFIX = {letter.lower(): factor for letter, factor in SI_PREFIXES.items()}
_EFFICIENCY = re.compile(r"(?:^|efficiency|effeciency)([kmgtp]?)f(?:lops?)?s?(?:per)?w(?:atts?)?$")
_POWER = re.compile(r"^(?:total)?power(?:in)?([km]?)(w|watts?)?$")
_RATE = re.compile(r"^(rmax|rpeak)(?:(?:in)?([kmgtpe]?)f(?:lops?)?s?)?$")
_WITH_UNIT = re.compile(r"^\s*(?:total[ _]*)?(?:r_?max|r_?peak|power)[ _]*[\[(].*[\])]\s*$", re.I)
_PLAIN = {
    "green500rank": "rank",
    "top500rank": "top500_rank",
    "name": "name",
    "computer": "computer",
    "site": "site",
    "year": "year",
    "month": "month",
    "totalcores": "cores",
    "cores": "cores",
    "processors": "cores",
}
_CORES_BY_PREFERENCE = ("totalcores", "cores", "processors")


@dataclass(frozen=True)
class Column:
    """The place of a canonical column and the factor to its SI unit.

    Attributes
    ----------
    index : int
        Position in the table.
    header : str
        As written in the file.
    factor : float or None
        Multiplier to flop/s, W or flop/J; None where the unit follows from the list's year.
    """

    index: int
    header: str
    factor: float | None = 1.0


def plain_key(header: str) -> str:
    """Return the header in lower case without blanks, underscores and punctuation (% stays)."""
    return re.sub(r"[^a-z0-9%]+", "", header.lower())


def recognise_headers(headers: Sequence[str]) -> dict[str, Column]:
    """Return the canonical columns among `headers` of a Green500 or TOP500 list.

    Keys are ``rank, top500_rank, name, computer, site, year, month, cores, rmax_flops, rpeak_flops,
    power_w, efficiency_flop_per_j``. Of duplicates the first counts. ``Rank`` is the TOP500 rank
    where the list has no other, or a Green500 rank besides. A second ``name`` column without a
    ``Computer`` column means that the first holds the computer. ``Efficiency (%)`` is Rmax/Rpeak
    and left alone.
    """
    keys = [plain_key(header) for header in headers]
    columns: dict[str, Column] = {}

    def take(column: str, index: int, factor: float | None = 1.0) -> None:
        columns.setdefault(column, Column(index, headers[index].strip(), factor))

    for index, key in enumerate(keys):
        if key in _PLAIN and _PLAIN[key] != "cores":
            take(_PLAIN[key], index)
        elif match := _RATE.match(key):
            take(f"{match[1]}_flops", index, _PREFIX.get(match[2]))
        elif match := _POWER.match(key):
            # without a unit, every list means kW
            take("power_w", index, _PREFIX[match[1]] if match[2] else 1e3)
        elif match := _EFFICIENCY.search(key):
            take("efficiency_flop_per_j", index, _PREFIX[match[1]])
    for key in _CORES_BY_PREFERENCE:
        if key in keys:
            take("cores", keys.index(key))
    if "rank" in keys:  # in a list of one rank it is that of the TOP500, too
        take("rank", keys.index("rank"))
        take("top500_rank", keys.index("rank"))
    names = [index for index, key in enumerate(keys) if key == "name"]
    if len(names) > 1 and "computer" not in columns:
        take("computer", names[0])
        columns["name"] = Column(names[1], headers[names[1]].strip())
    return columns


def unknown_unit(headers: Sequence[str]) -> str | None:
    """Return a header of power, Rmax or Rpeak whose unit in brackets is not understood."""
    understood = {column.header for column in recognise_headers(headers).values()}
    for header in headers:
        if _WITH_UNIT.match(header) and header.strip() not in understood:
            return header.strip()
    return None


def is_own_format(headers: Sequence[str]) -> bool:
    """Whether these are headers of our own format: name, speed, and efficiency or busy power."""
    keys = {header.strip().lower() for header in headers}
    return {"name", "speed"} <= keys and bool(keys & {"efficiency", "busy_power_w"})


def header_score(headers: Sequence[str]) -> int:
    """Return how many columns are recognized; a header row has at least 3."""
    if is_own_format(headers):
        return 100
    return len(recognise_headers(headers))
