"""Names of series beside their points, where a legend would leave the reader to guess."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes

from gridsched.arrays import Floats
from gridsched.figures.marks import Series

#: Distance of two names, as a share of the panel's height; so many have room.
_GAP = 0.072
MOST_LABELS = 13


def name_series(drawn: Iterable[tuple[Axes, Series]]) -> None:
    """Write the name of each series to the right of its panel, with a line to its last point.

    Parameters
    ----------
    drawn : iterable of (Axes, Series)
        The panels have their final limits.
    """
    panels: dict[Axes, list[Series]] = {}
    for axes, series in drawn:
        panels.setdefault(axes, []).append(series)
    for axes, several in panels.items():
        into = axes.transData - axes.transAxes
        ends = [(each.at[k], each.value[k]) for each in several for k in [int(np.nanargmax(each.at))]]
        heights = into.transform(ends)[:, 1]
        order = np.argsort(heights, kind="stable")
        for k, height in zip(order.tolist(), spread(heights[order], _GAP), strict=True):
            colour = several[k].look.dark
            axes.annotate(
                several[k].look.label,
                ends[k],
                (1.03, height),
                textcoords="axes fraction",
                va="center",
                fontsize=7.5,
                color=colour,
                annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7, "linestyle": ":", "shrinkB": 3},
            )


def spread(heights: Floats, gap: float) -> Floats:
    """Return the places from 0 to 1 that are nearest to sorted ones and `gap` apart.

    Examples
    --------
    >>> spread(np.array([0.5, 0.5, 1.2]), 0.25).tolist()
    [0.375, 0.625, 1.0]
    """
    from scipy.optimize import isotonic_regression  # slow to load

    steps = gap * np.arange(len(heights))
    # without the steps, places that are apart are places that do not fall
    level = np.clip(heights - steps, 0.0, 1.0 - gap * (len(heights) - 1))
    return isotonic_regression(level).x + steps
