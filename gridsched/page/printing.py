"""Tables and pages as files: HTML from the templates of this folder, CSV, LaTeX for booktabs.

A page is one HTML file that needs nothing else; other files may be beside it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pandas as pd

from gridsched.analysis.texts import TextTable
from gridsched.extras import load

#: Longer tables are cut on the page; the CSV beside it holds all rows.
MAX_ROWS = 200
#: A number, perhaps with its interval, the count behind it, or a percent sign; not "29 tasks".
_NUMBER = re.compile(r"[-+]?[\d.,]+(e[-+]?\d+)?( ± \S+)?( %)?( \(\d+\))?$")
#: A minus sign before a number; a hyphen within a name stays.
_MINUS = re.compile(r"(?<=[\s{(])-(?=\d)")


def number_columns(table: TextTable) -> list[bool]:
    """Return for each column of a table whether it holds numbers alone."""
    shown = table.rows[:MAX_ROWS]
    columns = [[row[k] for row in shown if k < len(row) and row[k] not in ("", "-")] for k in range(len(table.header))]
    return [bool(texts) and all(map(_NUMBER.match, texts)) for texts in columns]


def notes(table: TextTable) -> list[str]:
    """Return the text above a table: its note, and how much of it is shown."""
    notes = [table.note] if table.note else []
    if len(table.rows) > MAX_ROWS:
        notes.append(f"The first {MAX_ROWS} of {len(table.rows):,} rows.")
    return notes


def marked_columns(table: TextTable, row: int) -> list[int]:
    """Return which cells of a row are marked."""
    return [column for each, column in table.marked if each == row]


@cache
def templates() -> Any:
    """Return the templates of this folder, as an environment of Jinja.

    Raises
    ------
    MissingDependency
        If Jinja is not installed.
    """
    jinja2 = load("jinja2", "Reports of studies")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gridsched.page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number_columns": number_columns, "notes": notes, "marked_columns": marked_columns}
    environment.globals["most_rows"] = MAX_ROWS
    return environment


def page_html(template: str, **content: Any) -> str:
    """Return a page.

    Parameters
    ----------
    template : str
        Name of a file in ``templates``.
    **content
        What the template shows; texts are escaped.
    """
    return templates().get_template(template).render(content).lstrip()


def latex_text(table: TextTable) -> str:
    """Return a table as LaTeX: ``table`` with caption and ``tabular``, marked cells in bold.

    Parameters
    ----------
    table : TextTable
        Its texts are escaped; numbers are aligned to the right.
    """
    frame = pd.DataFrame(table.rows, columns=range(len(table.header)), dtype=object)
    marks = pd.DataFrame("", frame.index, frame.columns)
    for row, column in table.marked:
        marks.iloc[row, column] = "textbf:--rwrap;"
    align = "".join("r" if is_number else "l" for is_number in number_columns(table))
    styler = frame.style.hide(axis="index").format(escape="latex")
    header = [_escaped(text) for text in table.header]
    styler.format_index(lambda k: header[k], axis="columns")
    text = styler.apply(lambda _: marks, axis=None).to_latex(
        hrules=True, column_format=align, position="tbp", caption=_escaped(f"{table.title}. {table.note}".strip())
    )
    return _MINUS.sub("$-$", text.replace("±", r"$\pm$"))


def _escaped(text: str) -> str:
    """Return a text for LaTeX; a styler escapes cells alone, so it becomes one."""
    cell = pd.DataFrame([[text]]).style.hide(axis="index").hide(axis="columns")
    lines = cell.format(escape="latex").to_latex().splitlines()
    return lines[1].removesuffix(r" \\")
