"""The XML files that top500.org gives of its lists."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

import defusedxml.ElementTree
from defusedxml import DefusedXmlException

from gridsched.errors import InputError

_SPACE = "{http://www.top500.org/xml/top500/1.0}"
#: Element of a machine -> heading of its column; Rmax and Rpeak are in GFlop/s, power in kW.
COLUMNS = {
    "rank": "Rank", "system-name": "Name", "computer": "Computer",
    "installation-site-name": "Site", "year": "Year", "number-of-processors": "Total Cores",
    "r-max": "Rmax [GFlop/s]", "r-peak": "Rpeak [GFlop/s]", "power": "Power (kW)",
}  # fmt: skip


def is_top500_xml(data: bytes) -> bool:
    """Return whether a file is one of these, by its beginning."""
    return data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and b"top500:list" in data[:4096]


def read_rows(path: str | Path, data: bytes) -> tuple[list[str], list[list[str]]]:
    """Return the headings and a row for each machine.

    Raises
    ------
    InputError
        If it is no well-formed XML, uses entities, or holds no machine.
    """
    try:
        root = defusedxml.ElementTree.fromstring(data, forbid_dtd=True)
    except DefusedXmlException:
        raise InputError(f"{path}: declares entities; they are not expanded.") from None
    except (ParseError, LookupError, ValueError) as error:
        raise InputError(f"{path}: not well-formed XML: {error}.") from None
    rows = [_row(site) for site in root.iter(f"{_SPACE}site")]
    if not rows:
        raise InputError(f"{path}: a list of top500.org without any <top500:site>.")
    return list(COLUMNS.values()), rows


def _row(site: Element) -> list[str]:
    found = {each.tag.removeprefix(_SPACE): (each.text or "").strip() for each in site.iter()}
    return [found.get(name, "") for name in COLUMNS]
