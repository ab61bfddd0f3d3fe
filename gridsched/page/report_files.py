"""Files beside a report's page: tables as CSV and LaTeX, figures, and the links to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote

import pandas as pd

from gridsched.analysis.texts import TextTable
from gridsched.errors import InputError
from gridsched.files.csv_files import csv_text
from gridsched.page.printing import latex_text


@dataclass(frozen=True)
class Link:
    """A file beside the page: its name, and the reference to it."""

    name: str
    href: str


@dataclass(frozen=True)
class ShownTable:
    """A table as the page shows it, with the files that hold it."""

    table: TextTable
    files: tuple[Link, ...] = ()


@dataclass
class ReportFiles:
    """The files of a report.

    Attributes
    ----------
    folder : str
        Name of their folder, which lies beside the page.
    contents : dict
        Name -> content.
    """

    folder: str
    contents: dict[str, str | bytes] = field(default_factory=dict)

    def put(self, name: str, content: str | bytes) -> Link:
        """Add a file.

        Raises
        ------
        InputError
            If there is one of that name already, which a figure's name may cause.
        """
        if name in self.contents:
            raise InputError(f"The report has two files {name!r}; give the figure another name.")
        self.contents[name] = content
        return Link(name, f"{quote(self.folder)}/{quote(name)}")

    def put_frame(self, name: str, frame: pd.DataFrame) -> Link:
        """Add the columns of a frame as CSV."""
        return self.put(name, csv_text(dict(frame), for_people=True))

    def table(self, name: str, table: TextTable, frame: pd.DataFrame | None = None) -> ShownTable:
        """Add a table as CSV and LaTeX.

        Parameters
        ----------
        name : str
            The files' name without its ending.
        table : TextTable
        frame : DataFrame, optional
            Its numbers; default: its texts.
        """
        if frame is None:
            frame = pd.DataFrame(table.rows, columns=table.header)
        data = self.put_frame(f"{name}.csv", frame)
        return ShownTable(table, (data, self.put(f"{name}.tex", latex_text(table))))
