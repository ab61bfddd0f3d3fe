"""Axes of figures: number formats, ticks that do not collide, limits of panels, long bars."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gridsched.analysis.study_results import read_results
from gridsched.figures.axes import axes_words, decimals, is_steep, plain_numbers, share_limits, untangle, visible_ticks
from gridsched.figures.comparison_figure import comparison_bars
from gridsched.figures.figure_file import new_figure, style
from gridsched.figures.study_figure import bars
from gridsched.figures.study_layout import layout_of


def shown_labels(figure: Figure, axis: str = "x") -> list[str]:
    """Lay out a figure as it is saved; return the tick labels of its first axes."""
    figure.draw_without_rendering()
    untangle(figure)
    texts = getattr(figure.axes[0], f"get_{axis}ticklabels")()
    return [text.get_text() for text in texts]


@pytest.mark.parametrize(
    ("numbers", "places"),
    [([], 0), ([0, 5, 1e6], 0), ([0.0, 2.5, 5.0], 1), ([0.1 + 0.2], 1), ([1e-20, 1.0], 0), ([1 / 3], 11)],
)
def test_decimals_of_numbers(numbers: list[float], places: int):
    """As many as write all of them, rounding errors apart."""
    assert decimals(numbers) == places


def test_numbers_of_a_figure_have_one_format():
    """17.5 stands beside 15.0, in the panel next to it as well."""
    figure = new_figure(6, 3)
    left, right = figure.subplots(1, 2)
    left.set_yticks([0, 2.5, 5])
    right.set_yticks([0, 1000])
    plain_numbers(left.yaxis, right.yaxis)
    assert shown_labels(figure, "y") == ["0.0", "2.5", "5.0"]
    assert [text.get_text() for text in right.get_yticklabels()] == ["0.0", "1,000.0"]


def test_numbers_that_collide_become_fewer():
    """No two labels overlap in a narrow panel."""
    figure = new_figure(2.4, 2)
    axes = figure.subplots()
    axes.set_xlim(1_000_000, 1_000_009)
    axes.xaxis.set_major_locator(MaxNLocator(9))
    plain_numbers(axes.xaxis)
    figure.draw_without_rendering()
    before = len(visible_ticks(axes.xaxis))
    untangle(figure)
    seen = visible_ticks(axes.xaxis).tolist()
    texts = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    boxes = [text.get_window_extent() for at, text in texts if at in seen]
    assert 1 < len(boxes) < before
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_names_that_collide_stand_aslant():
    """All names stay; they are turned."""
    figure = new_figure(3, 2)
    axes = figure.subplots()
    names = ["energy_delay", "power_capped_mct", "dynamic_fpltf", "work_queue"]
    axes.set_xticks(range(4), names)
    assert shown_labels(figure) == names
    assert {text.get_rotation() for text in axes.get_xticklabels()} == {30.0}
    wide = new_figure(9, 2)
    wide.subplots().set_xticks(range(4), names)
    shown_labels(wide)
    assert {text.get_rotation() for text in wide.axes[0].get_xticklabels()} == {0.0}


def test_panels_share_limits_or_say_that_they_differ():
    """Up to a factor of 3 they are shared; beyond that, the caption tells."""
    figure = new_figure(6, 3)
    left, right = figure.subplots(1, 2)
    left.set_ylim(0, 10)
    right.set_ylim(0, 25)
    assert share_limits([left, right], "y")
    assert left.get_ylim() == right.get_ylim() == (0, 25)
    assert axes_words(figure) == ""
    left.set_ylim(0, 10)
    right.set_ylim(0, 50)
    assert not share_limits([left, right], "y")
    assert axes_words(figure) == " The panels' y axes differ."


@pytest.mark.parametrize(
    ("values", "steep"),
    [([1, 2, 30], False), ([1, 2, 41], True), ([0, 0, 0, 5], False), ([-1, 1, 1, 50], False), ([], False)],
)
def test_which_bars_are_steep(values: list[float], steep: bool):
    """Over 20 times the median of those that are not 0, and none below it."""
    assert is_steep(values) is steep


def test_a_long_bar_makes_the_axis_logarithmic(small_store: Path):
    """The caption says so; without one, the axis begins at 0."""
    results = read_results(str(small_store))
    is_long = (results.runs["scheduler"] == "wq") & (results.runs["environment"] == "high")
    longer = results.runs["makespan_s"].mask(is_long, 4000.0)
    with style():
        plain = next(bars(results, layout_of(results)))
        steep = replace(results, runs=results.runs.assign(makespan_s=longer))
        drawn = next(bars(steep, layout_of(steep)))
    assert "logarithmic" not in plain.caption
    (limits,) = {axes.get_ylim() for axes in plain.figure.axes}
    assert limits[0] == 0
    assert 17.5 < limits[1] < 30  # 16 + mean of 0..3, and its interval
    assert "The y axis is logarithmic." in drawn.caption
    assert {axes.get_yscale() for axes in drawn.figure.axes} == {"log"}
    assert len({axes.get_ylim() for axes in drawn.figure.axes}) == 1


def test_a_long_bar_of_a_comparison():
    """The axis says that it is logarithmic, and parts of the energy are not stacked on it."""
    rows = [
        {"scheduler": name, "makespan_s": makespan, "energy_model_j": 5.0 * makespan, "energy_idle_j": makespan}
        for name, makespan in (("a", 1.0), ("b", 2.0), ("c", 300.0))
    ]
    with style():
        energy, makespan = comparison_bars(rows).figure.axes
    assert energy.get_xlabel() == "Energy [kJ], logarithmic"
    assert makespan.get_xscale() == "log"
    assert len(energy.containers) == 1
