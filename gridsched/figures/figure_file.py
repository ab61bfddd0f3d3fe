"""What all figures share: their style, where they are drawn, how they are saved with data."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from gridsched.errors import InputError, did_you_mean
from gridsched.figures.axes import untangle
from gridsched.figures.table import Drawn, Subject, figures
from gridsched.files.csv_files import csv_text
from gridsched.files.output_files import check_writable, write_whole

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

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
            _lay_out(self)
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


def check_figure_path(path: str | Path) -> None:
    """Raise `InputError` unless figures can be saved in the format that `path` ends with."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        hint = did_you_mean(suffix, FORMATS) if suffix else ""
        found = f"not as {suffix}" if suffix else "by the ending of the file's name"
        raise InputError(f"{path}: figures are saved as {', '.join(FORMATS)}, {found}. {hint}".rstrip())


def check_target(path: str | Path, *, force: bool = False) -> tuple[Path, Path]:
    """Return the paths of a figure and of its data.

    Raises
    ------
    InputError
        If the format is not one of `FORMATS`, or one of the files cannot be written, for example
        because it exists and `force` is not given.
    """
    check_figure_path(path)
    image = Path(path)
    data = image.with_suffix(".csv")
    for target in (image, data):
        check_writable(target, force=force)
    return image, data


def file_contents(drawn: Drawn, suffixes: Iterable[str]) -> dict[str, str | bytes]:
    """Return the files of a figure by their suffixes: the images, and ``.csv`` for the data.

    Parameters
    ----------
    drawn : Drawn
    suffixes : iterable of str
        Some of `FORMATS`.
    """
    wanted, columns = list(suffixes), drawn.data
    figure = drawn.figure
    assert isinstance(figure, Figure)  # what is drawn in a part of one is not saved
    _lay_out(figure)
    figure.set_layout_engine("none")  # laid out once, for all formats
    if isinstance(columns, pd.DataFrame):
        columns = {str(name): columns[name].to_numpy() for name in columns}
    contents: dict[str, str | bytes] = {".csv": csv_text(columns, for_people=True)}
    for suffix in wanted:
        stream = io.BytesIO()
        figure.savefig(stream, format=suffix[1:], metadata=FORMATS[suffix])
        contents[suffix] = stream.getvalue()
    return contents


def _lay_out(figure: Figure) -> None:
    """Place all parts of a figure, with tick labels that do not overlap."""
    figure.draw_without_rendering()
    if untangle(figure):
        figure.draw_without_rendering()


def set_title(figure: Figure | SubFigure, title: str) -> None:
    """Write a line above a figure, if there is one."""
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=9.5, fontweight="bold")


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
    known = figures(of)
    if kind not in known:
        raise InputError(
            f"There is no figure {kind!r} of a {of}. {did_you_mean(kind, known)}Legal: {', '.join(known)}."
        )
    suffix = image.suffix.lower()
    with style():
        drawn = known[kind].draw(subject, **options)
        set_title(drawn.figure, title)
        contents = file_contents(drawn, [suffix])
    write_whole(table, contents[".csv"], force=force)
    write_whole(image, contents[suffix], force=force)
