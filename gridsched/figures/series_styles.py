"""How series of charts look: colors, hatches, lines and markers.

Figures are readable in gray: what differs in color differs in brightness, hatching or shape too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

import matplotlib
import numpy as np
from matplotlib.colors import to_hex

if TYPE_CHECKING:
    from matplotlib.typing import LineStyleType, MarkerType


class PatchStyle(TypedDict, total=False):
    """Keyword arguments of a matplotlib patch, or of bars."""

    facecolor: str
    edgecolor: str
    hatch: str | None


class LineStyle(TypedDict, total=False):
    """Keyword arguments of a matplotlib line and its markers."""

    color: str
    linestyle: LineStyleType
    linewidth: float
    marker: MarkerType
    markersize: float
    markeredgecolor: str
    markeredgewidth: float
    markerfacecolor: str
    label: str


@dataclass(frozen=True)
class SeriesStyle:
    """How a series, or a kind of area, is drawn.

    Attributes
    ----------
    face : str
        Color of areas.
    hatch : str or None
        Of areas.
    label : str
        Its name in the legend.
    dark : str
        Color of lines and markers.
    marker, line : str
    is_baseline : bool
        Whether it is emphasized.
    width : float
        Of lines [point].
    """

    face: str
    hatch: str | None
    label: str
    dark: str = "#2f6396"
    marker: MarkerType = "o"
    line: LineStyleType = "-"
    is_baseline: bool = False
    width: float = 1.3

    def patch(self) -> PatchStyle:
        """Return keyword arguments for a matplotlib patch or collection."""
        return {"facecolor": self.face, "hatch": self.hatch, "edgecolor": "#303030"}

    def stroke(self) -> LineStyle:
        """Return keyword arguments for a line with markers."""
        return {
            "color": self.dark,
            "linestyle": self.line,
            "marker": self.marker,
            "linewidth": self.width,
            "markersize": 8 if self.is_baseline else 5,
        }


BUSY = SeriesStyle("#2f6396", None, "busy")
WASTED = SeriesStyle("#f0b65a", "xxx", "wasted")
IDLE = SeriesStyle("#d6e2ee", "///", "idle")
BOOT = SeriesStyle("#ffffff", "+++", "booting")
SHUTDOWN = SeriesStyle("#c9c9c9", "---", "shutting down")
OFF = SeriesStyle("#8a8a8a", "...", "off")

#: Bars that are not distinguished; the same of charts, and their boxes.
PLAIN = SeriesStyle("#7d97b2", None, "_plain")
BAR, BOX = SeriesStyle("#2f6396", None, ""), SeriesStyle("#a9c1d9", None, "")

#: Fill, hatching, line color, marker and line of the series of a chart, in order.
_SERIES: tuple[tuple[str, str | None, str, MarkerType, LineStyleType], ...] = (
    ("#cfdeed", None, "#5b8db8", "o", "-"),
    ("#f0b65a", "///", "#d07d00", "s", "--"),
    ("#a8c99a", "...", "#3f7f3a", "^", "-."),
    ("#e0a093", "xxx", "#a5371b", "D", ":"),
    ("#c9b3d6", "\\\\\\", "#7a4f93", "v", "--"),
    ("#8fd0cc", "+++", "#00898a", "P", "-."),
    ("#8a8a8a", "---", "#6a6a6a", "X", ":"),
    ("#f3c7df", "ooo", "#c9499a", "<", "--"),
    ("#e3e3a0", "|||", "#8c8c00", ">", "-."),
)
_BASELINE = SeriesStyle("#1b3a5c", None, "", "#1b3a5c", "*", "-", is_baseline=True, width=1.8)
_LINES: tuple[LineStyleType, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
_MARKERS = "osv^DXP<>*"


def series_styles(names: Mapping[Any, str] | Iterable[str], *, baseline: Any = None) -> dict[Any, SeriesStyle]:
    """Return how each series of a chart looks.

    Parameters
    ----------
    names : mapping, or iterable of str
        Value in the table -> name in the legend, or values that are their own names.
    baseline : object, optional
        The value that is emphasized; with more than nine series, the tenth does.
    """
    named = names if isinstance(names, Mapping) else {name: name for name in names}
    ours = [  # a later line leaves an earlier one visible
        SeriesStyle(face, hatch, "", dark, marker, line, width=max(1.2, 2.4 - 0.3 * k))
        for k, (face, hatch, dark, marker, line) in enumerate(_SERIES)
    ]
    styles = itertools.cycle(ours if baseline in named else [*ours, _BASELINE])
    return {
        value: replace(_BASELINE if value == baseline else next(styles), label=name) for value, name in named.items()
    }


def level_styles(levels: Sequence[Any], names: Iterable[str]) -> dict[Any, SeriesStyle]:
    """Return how each level of something that varies looks: the later, the darker."""
    colours = matplotlib.colormaps["cividis"](np.linspace(0.78, 0.0, max(len(levels), 2)))
    return {
        level: SeriesStyle(
            to_hex(colour), None, name, to_hex(colour), _MARKERS[k % len(_MARKERS)], _LINES[k % len(_LINES)]
        )
        for k, (level, name, colour) in enumerate(zip(levels, names, colours, strict=False))
    }
