"""Tables as LaTeX, for the package booktabs."""

from __future__ import annotations

import re

import pandas as pd

from gridsched.analysis.texts import TextTable
from gridsched.page.html_pages import number_columns

#: A minus sign before a number; a hyphen within a name stays.
_MINUS = re.compile(r"(?<=[\s{(])-(?=\d)")


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
        hrules=True, column_format=align, position="tbp",
        caption=_escaped(f"{table.title}. {table.note}".strip()),
    )  # fmt: skip
    return _MINUS.sub("$-$", text.replace("±", r"$\pm$"))


def _escaped(text: str) -> str:
    """Return a text for LaTeX; a styler escapes cells alone, so it becomes one."""
    cell = pd.DataFrame([[text]]).style.hide(axis="index").hide(axis="columns")
    lines = cell.format(escape="latex").to_latex().splitlines()
    return lines[1].removesuffix(r" \\")
