"""Pages from the templates of this folder: each one HTML file that needs nothing else."""

from __future__ import annotations

import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from gridsched.analysis.texts import TextTable

#: Longer tables are cut on the page; the CSV beside it holds all rows.
MAX_ROWS = 200
#: A number, perhaps with its interval, the count behind it, or a percent sign; not "29 tasks".
_NUMBER = re.compile(r"[-+]?[\d.,]+(e[-+]?\d+)?( ± \S+)?( %)?( \(\d+\))?$")


def number_columns(table: TextTable) -> list[bool]:
    """Return for each column of a table whether it holds numbers alone."""
    shown = table.rows[:MAX_ROWS]
    columns = [
        [row[k] for row in shown if k < len(row) and row[k] not in ("", "-")]
        for k in range(len(table.header))
    ]
    return [bool(texts) and all(map(_NUMBER.match, texts)) for texts in columns]


def notes(table: TextTable) -> list[str]:
    """Return what is said above a table: its note, and how much of it is shown."""
    found = [table.note] if table.note else []
    if len(table.rows) > MAX_ROWS:
        found.append(f"The first {MAX_ROWS} of {len(table.rows):,} rows.")
    return found


def marked_columns(table: TextTable, row: int) -> list[int]:
    """Return which cells of a row are marked."""
    return [column for each, column in table.marked if each == row]


TEMPLATES = Environment(
    loader=PackageLoader("gridsched.page"), autoescape=True, undefined=StrictUndefined,
    trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
)  # fmt: skip
TEMPLATES.filters |= {
    "number_columns": number_columns, "notes": notes, "marked_columns": marked_columns,
}  # fmt: skip
TEMPLATES.globals["most_rows"] = MAX_ROWS


def page_html(template: str, **content: Any) -> str:
    """Return a page.

    Parameters
    ----------
    template : str
        Name of a file in ``templates``.
    **content
        What the template shows; texts are escaped.
    """
    return TEMPLATES.get_template(template).render(content).lstrip()
