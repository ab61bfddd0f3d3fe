"""What all figures share: their style, where they are drawn, layout, legend and title."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from gridsched.errors import InputError
from gridsched.figures.axes import untangle

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType


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
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,  # set for each figure, until it is laid out
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
            lay_out(self, _NOTEBOOK_DPI)
            self.savefig(stream, dpi=_NOTEBOOK_DPI)
        return stream.getvalue()


def new_figure(width: float, height: float) -> Figure | SubFigure:
    """Return an empty figure [inch], at most `WIDEST`; draw and save it within `style`.

    Within `plotting_in` it is the figure or part of one that was given, or the part where the axes
    were. The whole figure gets the constrained layout if it has none, so that legends find room.

    Parameters
    ----------
    width, height : float
        Of the figure, if it is one of its own [inch].

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
def plotting_in(place: Place | None) -> Iterator[None]:
    """Draw the figures that are made meanwhile in a place, if there is one."""
    before = _PLACE.set(place)
    try:
        yield
    finally:
        _PLACE.reset(before)


def style() -> AbstractContextManager[None]:
    """Return the context in which figures are drawn and saved."""
    return matplotlib.rc_context(STYLE)


def lay_out(figure: Figure, dpi: float) -> None:
    """Place all parts of a figure, with tick labels that do not overlap.

    Parameters
    ----------
    figure : Figure
    dpi : float
        Resolution in which it will be saved [1/inch]. Letters are not equally wide in all: a text for which there is
        room at 100 dpi may be cut off at 200.
    """
    before = figure.dpi
    figure.dpi = dpi
    try:
        figure.draw_without_rendering()
        if untangle(figure):
            figure.draw_without_rendering()
    finally:
        figure.dpi = before


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
