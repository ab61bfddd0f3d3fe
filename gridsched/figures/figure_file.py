"""Figures by their kinds: what each draws, of what; drawing them, and saving them with their data.

A module of this folder whose name ends in ``_figure`` registers what it draws by
`register_figure`; what its decorators say is read from its source, so that listing the kinds loads
nothing. A user's own module may do the same: a study's ``policies`` file, say, with a figure for the
study's report.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import matplotlib
import pandas as pd
from matplotlib.figure import Figure, SubFigure

from gridsched.errors import InputError, did_you_mean
from gridsched.figures.figure_style import lay_out, set_title, style
from gridsched.files.csv_files import csv_text
from gridsched.files.output_files import check_writable, write_whole
from gridsched.runs.figure_kinds import FigureKind, figure_kinds, register_kind

#: Formats by file name suffix, with the metadata that keeps dates and versions out of the file.
FORMATS = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def check_target(path: str | Path, *, force: bool = False, table: Path | None = None) -> tuple[Path, Path]:
    """Return the paths of a figure and of its data, which end with ``.plot.csv`` where `table` is called ``.csv``.

    Parameters
    ----------
    path : str or Path
    force : bool
    table : Path, optional
        What else is written.

    Raises
    ------
    InputError
        If the format is not one of `FORMATS`, or one of the files cannot be written, for example
        because it exists and `force` is not given.
    """
    image = Path(path)
    suffix = image.suffix.lower()
    if suffix not in FORMATS:
        hint = did_you_mean(suffix, FORMATS) if suffix else ""
        ending = f"not as {suffix}" if suffix else "by the ending of the file's name"
        raise InputError(f"{path}: figures are saved as {', '.join(FORMATS)}, {ending}. {hint}".rstrip())
    data = image.with_suffix(".csv")
    if table is not None and os.path.realpath(table) == os.path.realpath(data):
        data = image.with_suffix(".plot.csv")
    for target in (image, data):
        check_writable(target, force=force)
    return image, data


#: What is drawn: a `Trace`; rows as of `compare`; `Tasks`; a `JobTable`; a `SystemWorkload`; a
#: study's results and their `Layout`; a study's results and one of its ``[[figures]]``; a
#: `Landscape` of energies and makespans that are possible; schedules of one log by their names.
Subject = Literal["run", "comparison", "tasks", "jobs", "system", "study", "declared", "landscape", "schedules"]
Data: TypeAlias = pd.DataFrame | Mapping[str, Iterable[Any]]
Draw = TypeVar("Draw", bound=Callable[..., Any])


@dataclass(frozen=True)
class PlottedFigure:
    """A drawn figure, and the data that it shows.

    Attributes
    ----------
    figure : Figure or SubFigure
    data : DataFrame or mapping of str to columns
        What is drawn, units in the names.
    name : str
        Of its files in a study's report.
    caption : str
        What it shows, in a study's report.
    """

    figure: Figure | SubFigure
    data: Data
    name: str = ""
    caption: str = ""


def register_figure(name: str, of: Subject, sentence: str, **details: Any) -> Callable[[Draw], Draw]:
    """Return a decorator that makes a function draw a kind of figures.

    Parameters
    ----------
    name : str
        Unique among the figures of the same subject; a study's ``[[figures]]`` name it as `kind`.
    of : str
        The `Subject`. The function is called with it, and returns a `PlottedFigure`; one of a study is
        called with the results and their `Layout`, and yields as many as it likes.
    sentence : str
        What it draws.
    **details
        Of a study's figures ``heading``, ``place`` and ``is_default``, of declared ones ``needs`` and
        ``is_of_variants``: see `FigureKind`.

    Raises
    ------
    InputError
        If another function draws figures of this name and subject.
    """

    def register(draw: Draw) -> Draw:
        register_kind(FigureKind(name, of, sentence, f"{draw.__module__}:{draw.__qualname__}", draw, **details))
        return draw

    return register


def file_contents(plotted: PlottedFigure, suffixes: Iterable[str]) -> dict[str, str | bytes]:
    """Return the files of a figure by their suffixes: the images, and ``.csv`` for the data.

    Parameters
    ----------
    plotted : PlottedFigure
    suffixes : iterable of str
        Some of `FORMATS`.
    """
    figure = plotted.figure
    assert isinstance(figure, Figure)  # what is drawn in a part of one is not saved
    lay_out(figure, matplotlib.rcParams["savefig.dpi"])
    figure.set_layout_engine(None)  # laid out once, for all formats; with "none" each is drawn twice
    contents: dict[str, str | bytes] = {".csv": csv_text(dict(plotted.data), for_people=True)}
    for suffix in suffixes:
        stream = io.BytesIO()
        figure.savefig(stream, format=suffix[1:], metadata=FORMATS[suffix])
        contents[suffix] = stream.getvalue()
    return contents


def kind_of(kind: str, of: Subject) -> FigureKind:
    """Return the kind of figures of this name and subject.

    Raises
    ------
    InputError
        If there is none.
    """
    kinds = figure_kinds(of)
    if kind not in kinds:
        raise InputError(
            f"There is no figure {kind!r} of a {of}. {did_you_mean(kind, kinds)}Allowed: {', '.join(kinds)}."
        )
    return kinds[kind]


def draw_figure(
    kind: str,
    of: Subject,
    subject: Any,
    path: str | Path,
    *,
    title: str = "",
    force: bool = False,
    table: Path | None = None,
    **options: Any,
) -> None:
    """Draw a figure of the table and save it with its data beside it; both or neither.

    Parameters
    ----------
    kind : str
        Its name in the table, for example ``gantt``.
    of : str
        What is drawn, for example ``run``.
    subject : object
        What is drawn, for example a `Trace`.
    path : str or Path
        ``.png``, ``.svg`` or ``.pdf``; the data are saved beside it as ``.csv``.
    title : str
        A line above.
    force : bool
        Replace existing files.
    table : Path, optional
        Another file that is written, as `check_target` takes it.
    **options
        For the figure's function, for example ``step_s``.

    Raises
    ------
    InputError
        If there is no such figure, the function refuses what it is given, or the files cannot be
        written.
    """
    image, data = check_target(path, force=force, table=table)
    function = kind_of(kind, of).draw
    suffix = image.suffix.lower()
    with style():
        plotted = function(subject, **options)
        set_title(plotted.figure, title)
        contents = file_contents(plotted, [suffix])
    write_whole(data, contents[".csv"], force=force)
    write_whole(image, contents[suffix], force=force)
