"""What all figures share: their style, where they are drawn and saved, and the kinds of figures.

A module of this folder whose name ends in ``_figure`` registers what it draws by
`register_figure`; what its decorators say is read from its source, so that listing the kinds loads
nothing. A user's own module may do the same: a study's ``policies`` file, say, with a figure for the
study's report.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from gridsched.errors import InputError, did_you_mean
from gridsched.figures.axes import untangle
from gridsched.files.csv_files import csv_text
from gridsched.files.output_files import check_writable, write_whole
from gridsched.runs.claims_schema import FigureKind, figure_kinds, register_kind

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType


# ----------------------
# What all figures share: their style, where they are drawn, where they are saved


#: Formats by file name suffix, with the metadata that keeps dates and versions out of the file.
FORMATS = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


#: No figure is wider [inch]: 2,000 pixels.
WIDEST = 10.0
_NOTEBOOK_DPI = 100

STYLE: dict[RcKeyType, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#d0d0d0",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "svg.hashsalt": "gridsched",
    "text.parse_math": False,  # a $ in a name is a $
}


#: Where a figure may be drawn: in the place of axes, or in a whole figure or part of one.
Place = Axes | SubFigure | Figure
#: Where the next figure is drawn, if not in one of its own.
_PLACE: ContextVar[Place | None] = ContextVar("place", default=None)


class ShownFigure(Figure):
    """A figure that a notebook shows where a cell ends with it, as those of pyplot."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        with style():
            lay_out(self)
            self.savefig(stream, dpi=_NOTEBOOK_DPI)
        return stream.getvalue()


def new_figure(width: float, height: float) -> Figure | SubFigure:
    """Return an empty figure [inch], at most `WIDEST`; draw and save it within `style`.

    Within `drawn_in` it is the figure or part of one that was given, or the part where the axes
    were. The whole figure gets the constrained layout if it has none, so that legends find room.

    Raises
    ------
    InputError
        If the axes have no place among subplots, or the figure is not empty.
    """
    place = _PLACE.get()
    if place is None:
        return ShownFigure(figsize=(min(width, WIDEST), height), layout="constrained")
    if isinstance(place, Axes):
        place = _part_instead_of(place)
    elif place.axes or place.subfigs:
        raise InputError("ax is a figure that is not empty; give an empty one, or axes of it.")
    whole = place.figure if isinstance(place, SubFigure) else place
    if whole.get_layout_engine() is None:
        whole.set_layout_engine("constrained")
    return place


def _part_instead_of(axes: Axes) -> SubFigure:
    """Replace axes by an empty part of their figure."""
    place = axes.get_subplotspec()
    if place is None:
        raise InputError("ax has no place among subplots; make it by plt.subplots().")
    figure = axes.figure
    axes.remove()
    return figure.add_subfigure(place)


@contextmanager
def drawn_in(place: Place | None) -> Iterator[None]:
    """Draw the figures that are made meanwhile in a place, if there is one."""
    before = _PLACE.set(place)
    try:
        yield
    finally:
        _PLACE.reset(before)


def style() -> AbstractContextManager[None]:
    """Return the context in which figures are drawn and saved."""
    return matplotlib.rc_context(STYLE)


def check_target(path: str | Path, *, force: bool = False) -> tuple[Path, Path]:
    """Return the paths of a figure and of its data.

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
    for target in (image, data):
        check_writable(target, force=force)
    return image, data


def lay_out(figure: Figure) -> None:
    """Place all parts of a figure, with tick labels that do not overlap."""
    figure.draw_without_rendering()
    if untangle(figure):
        figure.draw_without_rendering()


def legend_below(figure: Figure | SubFigure, handles: Sequence[Artist], **options: Any) -> None:
    """Draw a legend below a figure, if there are entries: as many side by side as have room."""
    widths = [0.72 + 0.07 * len(str(handle.get_label())) for handle in handles]
    room = figure.bbox.width / figure.dpi
    columns = range(len(widths), 0, -1)
    count = next((n for n in columns if sum(map(max, np.array_split(widths, n))) <= room), 1)
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=count, title_fontsize=9, **options)


def set_title(figure: Figure | SubFigure, title: str) -> None:
    """Write a line above a figure, if there is one."""
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=9.5, fontweight="bold")


# ----------------------
# Figures by their kinds: what each draws, of what; drawing those of a study, and saving them


#: What is drawn: a `Trace`; rows as of `compare`; `Tasks`; a `JobTable`; a `SystemWorkload`; a
#: study's results and their `Layout`; a study's results and one of its ``[[figures]]``; a
#: `Landscape` of energies and makespans that are possible.
Subject = Literal["run", "comparison", "tasks", "jobs", "system", "study", "declared", "landscape"]
Data: TypeAlias = pd.DataFrame | Mapping[str, Iterable[Any]]
Draw = TypeVar("Draw", bound=Callable[..., Any])


@dataclass(frozen=True)
class Drawn:
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
        The `Subject`. The function is called with it, and returns a `Drawn`; one of a study is
        called with the results and their `Layout`, and yields as many as it likes.
    sentence : str
        What it draws.
    **details
        Of a study's figures ``heading``, ``place`` and ``is_usual``, of declared ones ``needs`` and
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


def file_contents(drawn: Drawn, suffixes: Iterable[str]) -> dict[str, str | bytes]:
    """Return the files of a figure by their suffixes: the images, and ``.csv`` for the data.

    Parameters
    ----------
    drawn : Drawn
    suffixes : iterable of str
        Some of `FORMATS`.
    """
    figure = drawn.figure
    assert isinstance(figure, Figure)  # what is drawn in a part of one is not saved
    lay_out(figure)
    figure.set_layout_engine("none")  # laid out once, for all formats
    contents: dict[str, str | bytes] = {".csv": csv_text(dict(drawn.data), for_people=True)}
    for suffix in suffixes:
        stream = io.BytesIO()
        figure.savefig(stream, format=suffix[1:], metadata=FORMATS[suffix])
        contents[suffix] = stream.getvalue()
    return contents


def draw_figure(
    kind: str, of: Subject, subject: Any, path: str | Path, *, title: str = "", force: bool = False, **options: Any
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
    **options
        For the figure's function, for example ``step_s``.

    Raises
    ------
    InputError
        If there is no such figure, the function refuses what it is given, or the files cannot be
        written.
    """
    image, table = check_target(path, force=force)
    kinds = figure_kinds(of)
    if kind not in kinds:
        raise InputError(
            f"There is no figure {kind!r} of a {of}. {did_you_mean(kind, kinds)}Legal: {', '.join(kinds)}."
        )
    suffix = image.suffix.lower()
    with style():
        drawn = kinds[kind].draw(subject, **options)
        set_title(drawn.figure, title)
        contents = file_contents(drawn, [suffix])
    write_whole(table, contents[".csv"], force=force)
    write_whole(image, contents[suffix], force=force)
