"""The one chart: each kind draws a tidy table; panels, levels, series, widths and numbers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.text import Text

from gridsched.analysis.texts import value_text
from gridsched.figures.chart import KINDS, Panel, Scale, chart
from gridsched.figures.direct_labels import MOST_LABELS, spread
from gridsched.figures.figure_file import file_contents, new_figure, style
from gridsched.figures.looks import series_looks
from gridsched.figures.table import Drawn

NAMES = [f"s{k}" for k in range(10)]
TABLE = pd.DataFrame(
    {"scheduler": name, "system": system, "tasks": tasks, "mean": mean, "low": 0.9 * mean, "high": 1.1 * mean}
    for k, name in enumerate(NAMES)
    for system in ("small", "large")
    for tasks, mean in ((5000, 300.0 + k), (10_000, 700.0 + 2 * k), (20_000, 1700.0 + 3 * k))
)
LEVELS = Scale("tasks", "Tasks", levels={each: value_text(each) for each in (5000, 10_000, 20_000)})
PANELS = [Panel(0, k, name, {"system": name}) for k, name in enumerate(("small", "large"))]


def drawn(kind: str, x: Scale, y: Scale, **options) -> Figure:
    """Draw the table as it is saved."""
    with style():
        figure = chart(TABLE, kind, x, y, series_looks(NAMES), **options)
        file_contents(Drawn(figure, TABLE), [])
    return figure


def texts(axis) -> list[str]:
    """Return the tick labels of an axis."""
    return [label.get_text() for label in axis.get_ticklabels() if label.get_text()]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_draws_panels_and_names_its_series(kind: str):
    """Both panels have the same limits; the left one alone is labelled; all series are named."""
    figure = drawn(kind, LEVELS, Scale("mean", "Energy [J]"), panels=PANELS, size=(8.0, 3.0))
    left, right = figure.axes
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["small", "large"]
    assert left.get_ylim() == right.get_ylim()
    assert (left.get_ylabel(), right.get_ylabel()) == ("Energy [J]", "")
    assert [label.get_text() for label in figure.legends[0].get_texts()] == NAMES
    assert all(axes.lines or axes.patches for axes in figure.axes)


def test_ten_lines_have_ten_bands_and_no_bars():
    """Intervals of many lines do not stand side by side."""
    (axes,) = drawn("lines", Scale("tasks", "Tasks"), Scale("mean", "Energy [J]")).axes
    assert len(axes.lines) == len(axes.collections) == 10
    assert all(set(line.get_xdata()) == {5000, 10_000, 20_000} for line in axes.lines)


def test_numbers_have_one_format():
    """Levels have separators as other axes have; a logarithmic axis shows numbers, not TeX."""
    figure = drawn("points", Scale("mean", "Energy [J]", is_log=True), LEVELS)
    assert texts(figure.axes[0].yaxis) == ["5,000", "10,000", "20,000"]
    shown = texts(figure.axes[0].xaxis)
    assert "1,000" in shown
    assert not any("$" in text for text in shown)
    minor = figure.axes[0].xaxis.get_minorticklabels()
    assert not any(label.get_text() for label in minor)


def test_no_figure_is_wider_than_2000_pixels():
    """What has more columns has narrower ones."""
    with style():
        assert new_figure(15.4, 3.0).get_size_inches().tolist() == [10.0, 3.0]


def test_series_are_named_beside_their_points_once_each():
    """No legend, ten names in each panel, none on another; too many have a legend."""
    panels = {"panels": PANELS, "size": (8.0, 3.5), "is_direct": True}
    figure = drawn("paths", Scale("tasks", "Tasks"), Scale("mean", "Energy [J]"), **panels)
    assert not figure.legends
    for axes in figure.axes:
        boxes = {text.get_text(): Text.get_window_extent(text) for text in axes.texts}  # lines apart
        assert sorted(boxes) == NAMES
        places = sorted((box.y0, box.y1) for box in boxes.values())
        assert all(below[1] <= above[0] for below, above in pairwise(places))
    many = series_looks([f"s{k}" for k in range(MOST_LABELS + 1)])
    with style():
        figure = chart(TABLE, "paths", Scale("tasks", "Tasks"), Scale("mean", "Energy"), many, is_direct=True)
    assert len(figure.legends[0].get_texts()) == MOST_LABELS + 1


@given(st.lists(st.floats(-1.0, 2.0), min_size=1, max_size=8))
def test_names_are_apart_and_within_the_panel(heights: list[float]):
    """Places keep the order of the points and a distance; where these are apart, nothing moves."""
    places = spread(np.sort(heights), 0.1)
    assert (np.diff(places) >= 0.1 - 1e-9).all()
    assert -1e-9 <= places[0] <= places[-1] <= 1 + 1e-9
    assert spread(places, 0.1) == pytest.approx(places)


def test_looks_of_series_differ():
    """Ten in colour and in shape, the baseline among them or apart."""
    for looks in (series_looks(NAMES), series_looks(NAMES, baseline="s3")):
        values = list(looks.values())
        assert len({look.dark for look in values}) >= 9
        assert len({(look.marker, look.line) for look in values}) == 10
    assert [name for name, look in looks.items() if look.is_baseline] == ["s3"]
