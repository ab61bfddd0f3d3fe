"""Axes of all figures: one number format, ticks that do not collide, limits, long bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.figure import Figure, SubFigure
from matplotlib.text import Text
from matplotlib.ticker import (
    FixedLocator,
    Formatter,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    MultipleLocator,
    NullFormatter,
)
from numpy.typing import ArrayLike

from gridsched.analysis.texts import axis_title, is_number, read_unit
from gridsched.arrays import Floats, Integers
from gridsched.metrics import METRICS
from gridsched.metrics.table import unit_of

#: A bar longer than this many times the median one makes its axis logarithmic.
STEEP = 20.0
#: More decimals than this are written with an exponent instead.
_MOST_DECIMALS = 10
#: Numbers of a logarithmic axis that ends at less than so many times its begin.
_LOG_STEPS = ((10.0, (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)), (300.0, (1.0, 2.0, 5.0)))
#: Space between two labels, as a share of the height of one.
_GAP = 0.35


class PlainNumbers(Formatter):
    """Numbers with thousands separators and, on all axes of a group, with as many decimals.

    Parameters
    ----------
    group : sequence of Axis
        The axes whose numbers are read together.
    """

    def __init__(self, group: Sequence[Axis]) -> None:
        self._group = group

    def __call__(self, value: float, pos: int | None = None) -> str:
        """Return one number."""
        return self._number(value, self._places())

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Return the numbers of an axis; the ticks of the group are looked at once for all."""
        places = self._places()
        return [self._number(value, places) for value in values]

    def _places(self) -> int:
        """Return how many decimals the axes of the group need."""
        if not isinstance(self.axis, Axis) or self.axis.get_scale() != "linear":
            return _MOST_DECIMALS + 1
        return max(decimals(visible_ticks(axis)) for axis in self._group)

    @staticmethod
    def _number(value: float, places: int) -> str:
        if places > _MOST_DECIMALS:
            return f"{value:,.10g}"
        return f"{value:,.{places}f}".replace("-", "\N{MINUS SIGN}")


def plain_numbers(*group: Axis) -> None:
    """Label axes with numbers without exponents, all with as many decimals."""
    for axis in group:
        if axis.get_scale() == "log":
            low, high = sorted(axis.get_view_interval())
            steps = next((steps for most, steps in _LOG_STEPS if high < most * low), (1.0,))
            axis.set_major_locator(LogLocator(subs=steps))
            axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(PlainNumbers(group))


def write_at(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], align: str, **style: Any
) -> None:
    """Write a text near a place.

    Parameters
    ----------
    axes : Axes
    text : str
    at : (float, float)
        The place, in the coordinates of the data or of `xycoords`.
    offset : (float, float)
        Distance of the text from it [point].
    align : str
        Which end of the text is there.
    **style
        Others of `Axes.annotate`.
    """
    axes.annotate(text, at, offset, **{"textcoords": "offset points", "ha": align, "fontsize": 8, **style})


def quantity_axis(axes: Axes, label: str, top: float | None = None, *, is_count: bool = False) -> None:
    """Make y an axis of a quantity, from 0 to `top` (default: as it is; 0: 1); of counts with whole numbers."""
    axes.set_ylim(0.0, 1.0 if top == 0 else top)
    axes.set_ylabel(label)
    axes.grid(axis="y")
    if is_count:
        axes.yaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
    plain_numbers(axes.yaxis)


def bin_edges(values: Floats, count: int, *, most: int = 60, wide: float = 100.0) -> tuple[Floats, bool]:
    """Return the edges of a histogram, and whether they grow by a ratio.

    Parameters
    ----------
    values : ndarray
        Equal ones, and none at all, give one bin.
    count : int
        Of what is counted: it is divided into bins by Rice's rule.
    most : int
        Number of bins at most.
    wide : float
        Values that span more than this factor are counted in bins of equal ratio.
    """
    least, largest = (float(values.min()), float(values.max())) if len(values) else (1.0, 1.0)
    if largest <= least * (1 + 1e-9):
        return np.array([0.5 * least, 1.5 * least or 1.0]), False
    bins = int(np.clip(np.ceil(2 * np.cbrt(count)), 1, most))
    is_log = 0 < wide * least < largest
    return (np.geomspace if is_log else np.linspace)(least, largest, bins + 1), is_log


def counts_in(values: Floats, edges: Floats) -> Integers:
    """Return how many values are in each bin."""
    # rounding must not push the smallest or largest out of the outer bins
    return np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]


def decimals(numbers: Iterable[float]) -> int:
    """Return how many decimals write all of some numbers exactly, up to rounding.

    Examples
    --------
    >>> decimals([0.0, 2.5, 5.0])
    1
    """
    values = np.array([float(each) for each in numbers])
    close = 1e-12 * np.abs(values).max(initial=0.0)
    fits = (places for places in range(_MOST_DECIMALS + 1) if (abs(values.round(places) - values) <= close).all())
    return next(fits, _MOST_DECIMALS + 1)


def visible_ticks(axis: Axis) -> np.ndarray:
    """Return the places of an axis' ticks that lie within its limits."""
    ticks = np.asarray(axis.get_majorticklocs(), dtype=np.float64)
    low, high = sorted(axis.get_view_interval())
    margin = 1e-9 * (high - low)
    return ticks[(ticks >= low - margin) & (ticks <= high + margin)]


def untangle(figure: Figure) -> bool:
    """Change tick labels that overlap: fewer numbers, names aslant; report whether any was.

    Parameters
    ----------
    figure : Figure
        Laid out already.
    """
    changed = [_untangled(axis) for axes in figure.axes if axes.axison for axis in (axes.xaxis, axes.yaxis)]
    return any(changed)


def _untangled(axis: Axis) -> bool:
    if not _overlap(axis):
        return False
    if isinstance(axis.get_major_locator(), FixedLocator):
        return isinstance(axis, XAxis) and _set_aslant(axis)
    if axis.get_scale() != "linear":
        return False
    for most in range(len(visible_ticks(axis)) - 1, 1, -1):
        axis.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]))
        if not _overlap(axis):
            break
    return True


def _labels(axis: Axis) -> list[Text]:
    """Return the labels that are seen."""
    visible = set(visible_ticks(axis).tolist())
    labels = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=False)
    return [text for at, text in labels if at in visible and text.get_visible() and text.get_text()]


def _overlap(axis: Axis) -> bool:
    boxes = [text.get_window_extent() for text in _labels(axis)]
    is_x = isinstance(axis, XAxis)
    ends = sorted((box.x0, box.x1) if is_x else (box.y0, box.y1) for box in boxes)
    gap = _GAP * min((box.height for box in boxes), default=0.0) if is_x else 0.0
    return any(right[0] < left[1] + gap for left, right in pairwise(ends))


def _set_aslant(axis: Axis) -> bool:
    """Turn names by 30 degrees, or upright where they are too close for that."""
    texts = _labels(axis)
    if any(text.get_rotation() for text in texts):
        return False
    height = max(text.get_window_extent().height / len(text.get_text().split("\n")) for text in texts)
    places = sorted(text.get_window_extent().x0 + text.get_window_extent().x1 for text in texts)
    distance = min(np.diff(places)) / 2
    angle = 30 if distance * math.sin(math.radians(30)) >= 1.1 * height else 90
    for text in axis.get_ticklabels():
        text.set(rotation=angle, rotation_mode="anchor", ha="right", va="center" if angle == 90 else "top")
    return True


def share_limits(panels: Sequence[Axes], direction: str, *, most: float = 3.0) -> bool:
    """Give panels the same limits, unless one of them would be left with little of its axis.

    Parameters
    ----------
    panels : sequence of Axes
    direction : {"x", "y"}
    most : float
        The common limits may be this many times those of the smallest panel. Logarithmic axes
        are always shared.

    Returns
    -------
    bool
        Whether they have the same limits now.
    """
    axes = [getattr(panel, f"{direction}axis") for panel in panels]
    limits = np.array([axis.get_view_interval() for axis in axes])
    low, high = limits.min(), limits.max()
    spans = limits[:, 1] - limits[:, 0]
    if axes[0].get_scale() == "linear" and high - low > most * spans.min():
        return False
    for panel in panels:
        getattr(panel, f"set_{direction}lim")(low, high)
    return True


def axes_words(figure: Figure | SubFigure) -> str:
    """Return the remarks on a figure's axes: that they differ, or are logarithmic."""
    words = ""
    for direction in ("x", "y"):
        axes = [getattr(each, f"{direction}axis") for each in figure.axes if each.axison]
        if len({tuple(axis.get_view_interval().tolist()) for axis in axes}) > 1:
            words += f" The panels' {direction} axes differ."
        if any(axis.get_scale() == "log" for axis in axes):
            words += f" The {direction} axis is logarithmic."
    return words


def is_steep(values: ArrayLike) -> bool:
    """Return whether one of some bars is so long that the others would hardly be seen beside it.

    Parameters
    ----------
    values : array_like
        Their lengths; bars of 0 do not count, and below 0 no axis can be logarithmic.
    """
    lengths = np.asarray(values, dtype=np.float64)
    lengths = lengths[~np.isnan(lengths) & (lengths != 0)]
    return bool(len(lengths) and lengths.min() > 0 and lengths.max() > STEEP * np.median(lengths))


def finish_bars_axis(panels: Sequence[Axes], values: ArrayLike) -> None:
    """Let the y axis of bars that are drawn begin at 0, or be logarithmic where `is_steep`.

    Parameters
    ----------
    panels : sequence of Axes
    values : array_like
        Lengths of all bars, as they are drawn.
    """
    for axes in panels:
        if is_steep(values):
            axes.set_yscale("log", nonpositive="clip")
            axes.set_ylim(bottom=log_bottom(values))
        else:
            axes.set_ylim(bottom=0)


def log_bottom(values: ArrayLike) -> float:
    """Return where a logarithmic axis of bars begins: at a power of 10 below all of them."""
    lengths = np.asarray(values, dtype=np.float64)
    return float(10 ** np.floor(np.log10(lengths[lengths > 0].min()) - 0.1))


def time_axis(axes: Axes, horizon_s: float) -> None:
    """Make x a time axis from 0 to the end of the run [s]."""
    axes.set_xlim(0.0, horizon_s if horizon_s > 0 else 1.0)
    axes.set_xlabel("Time [s]")
    plain_numbers(axes.xaxis)


def hours_axis(axes: Axes, end_s: float) -> None:
    """Make x, drawn over seconds, a time axis of a day or several in hours; of less than an hour in seconds."""
    hours = end_s / 3600.0
    if hours < 1:
        time_axis(axes, end_s)
        return
    steps = (0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 168, 672)
    step = next((step for step in steps if hours / step <= 14), 8760)
    axes.set_xlim(0.0, end_s)
    axes.xaxis.set_major_locator(MultipleLocator(step * 3600.0))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 3600:,.10g}"))
    axes.set_xlabel("Time [h]")


def scale_of(metric: str, largest: float) -> tuple[float, str]:
    """Return the divisor and the label under which a metric of such values is drawn."""
    entry = METRICS[metric]
    if entry.is_share:
        return 0.01, entry.title
    factor, unit = read_unit(entry.unit, largest) if entry.unit else (1.0, "")
    return factor, entry.title_in(unit)


def axis_scale(axis: str, values: Iterable[Any]) -> tuple[float, str]:
    """Return the divisor and the label under which the values of a study's axis are drawn."""
    name = axis_title(axis)
    numbers = [abs(value) for value in values if is_number(value) and math.isfinite(value)]
    if not unit_of(axis) or not numbers:
        return 1.0, name
    factor, unit = read_unit(unit_of(axis), max(numbers))
    return factor, f"{name} [{unit}]"
