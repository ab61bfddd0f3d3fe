"""Charts of studies: kinds, axes, and figures of one's own."""

from __future__ import annotations

import collections
import io
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest
import small_study
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator
from scipy.optimize import isotonic_regression

from gridsched.analysis.study_results import StudyResults, read_results
from gridsched.analysis.texts import value_text
from gridsched.errors import InputError
from gridsched.figures.axes import axes_words, decimals, is_steep, plain_numbers, share_limits, untangle, visible_ticks
from gridsched.figures.chart import KINDS, Panel, Scale, chart
from gridsched.figures.comparison_figure import comparison_bars
from gridsched.figures.figure_file import PlottedFigure, file_contents
from gridsched.figures.figure_style import new_figure, style
from gridsched.figures.marks import MOST_LABELS, spread
from gridsched.figures.series_styles import series_styles
from gridsched.figures.study_figure import bars, layout_of, study_figures
from gridsched.page.study_report import files_folder, write_report
from gridsched.runs import figure_kinds
from gridsched.runs.schema import study_schema

# The one chart: each kind draws a tidy table; panels, levels, series, widths and numbers.

NAMES = [f"s{k}" for k in range(10)]
TABLE = pd.DataFrame(
    {"scheduler": name, "system": system, "tasks": tasks, "mean": mean, "low": 0.9 * mean, "high": 1.1 * mean}
    for k, name in enumerate(NAMES)
    for system in ("small", "large")
    for tasks, mean in ((5000, 300.0 + k), (10_000, 700.0 + 2 * k), (20_000, 1700.0 + 3 * k))
)
LEVELS = Scale("tasks", "Tasks", levels={each: value_text(each) for each in (5000, 10_000, 20_000)})
PANELS = [Panel(0, k, name, {"system": name}) for k, name in enumerate(("small", "large"))]


def plotted(kind: str, x: Scale, y: Scale, **options) -> Figure:
    """Draw the table as it is saved."""
    with style():
        figure = chart(TABLE, kind, x, y, series_styles(NAMES), **options)
        file_contents(PlottedFigure(figure, TABLE), [])
    return figure


def texts(axis) -> list[str]:
    """Return the tick labels of an axis."""
    return [label.get_text() for label in axis.get_ticklabels() if label.get_text()]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_draws_panels_and_names_its_series(kind: str):
    """Both panels have the same limits; the left one alone is labeled; all series are named."""
    figure = plotted(kind, LEVELS, Scale("mean", "Energy [J]"), panels=PANELS, size=(8.0, 3.0))
    left, right = figure.axes
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["small", "large"]
    assert left.get_ylim() == right.get_ylim()
    assert (left.get_ylabel(), right.get_ylabel()) == ("Energy [J]", "")
    assert [label.get_text() for label in figure.legends[0].get_texts()] == NAMES
    assert all(axes.lines or axes.patches for axes in figure.axes)


def test_ten_lines_have_ten_bands_and_no_bars():
    """Intervals of many lines are not side by side."""
    (axes,) = plotted("lines", Scale("tasks", "Tasks"), Scale("mean", "Energy [J]")).axes
    assert len(axes.lines) == len(axes.collections) == 10
    assert all(set(line.get_xdata()) == {5000, 10_000, 20_000} for line in axes.lines)


def test_numbers_have_one_format():
    """Levels have separators as other axes have; a logarithmic axis shows numbers, not TeX."""
    figure = plotted("points", Scale("mean", "Energy [J]", is_log=True), LEVELS)
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
    figure = plotted("paths", Scale("tasks", "Tasks"), Scale("mean", "Energy [J]"), **panels)
    assert not figure.legends
    for axes in figure.axes:
        boxes = {text.get_text(): Text.get_window_extent(text) for text in axes.texts}  # lines apart
        assert sorted(boxes) == NAMES
        places = sorted((box.y0, box.y1) for box in boxes.values())
        assert all(below[1] <= above[0] for below, above in pairwise(places))
    many = series_styles([f"s{k}" for k in range(MOST_LABELS + 1)])
    with style():
        figure = chart(TABLE, "paths", Scale("tasks", "Tasks"), Scale("mean", "Energy"), many, is_direct=True)
    assert len(figure.legends[0].get_texts()) == MOST_LABELS + 1


@pytest.mark.parametrize("name", ["auto energy-delay", "max_max_upe_of_arrivals", "ill-lit liliiliiliil", "WWWWWWWWW"])
def test_nothing_is_cut_off_at_the_edge_of_a_picture(name: str):
    """Letters are wider at some resolutions than at others: the outermost pixels of a file are white."""
    styles = series_styles([*NAMES[:3], name])
    table = pd.concat([TABLE, TABLE[TABLE["scheduler"] == NAMES[0]].assign(scheduler=name)])
    x, y = Scale("tasks", "Tasks"), Scale("mean", "Energy [J]")
    with style():
        figure = chart(table, "paths", x, y, styles, panels=PANELS, size=(10.0, 3.0), is_direct=True)
        image = file_contents(PlottedFigure(figure, table), [".png"])[".png"]
    pixels = imread(io.BytesIO(image))[:, :, :3]
    edges = pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]
    assert [edge.min() for edge in edges] == [1.0] * 4


@given(st.lists(st.floats(-1.0, 2.0), min_size=1, max_size=8))
def test_names_are_apart_and_within_the_panel(heights: list[float]):
    """Places keep the order of the points and a distance; where these are apart, nothing moves."""
    places = spread(np.sort(heights), 0.1)
    assert (np.diff(places) >= 0.1 - 1e-9).all()
    assert -1e-9 <= places[0] <= places[-1] <= 1 + 1e-9
    assert spread(places, 0.1) == pytest.approx(places)
    steps = 0.1 * np.arange(len(heights))
    level = np.clip(np.sort(heights) - steps, 0.0, 1.0 - 0.1 * (len(heights) - 1))
    assert places == pytest.approx(isotonic_regression(level).x + steps)  # the nearest such places, in squares


def test_styles_of_series_differ():
    """Ten in color and in shape, the baseline among them or apart."""
    for styles in (series_styles(NAMES), series_styles(NAMES, baseline="s3")):
        values = list(styles.values())
        assert len({series_style.dark for series_style in values}) >= 9
        assert len({(series_style.marker, series_style.line) for series_style in values}) == 10
    assert [name for name, series_style in styles.items() if series_style.is_baseline] == ["s3"]


# Axes of figures: number formats, ticks that do not collide, limits of panels, long bars.


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
    """17.5 is beside 15.0, in the panel next to it as well."""
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
    """Up to a factor of 3 they are shared; beyond that, the caption reports this."""
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


def test_results_of_a_study_are_a_table_of_arrow(small_store: Path):
    """A row for each run."""
    results = read_results(str(small_store))
    table = pyarrow.table(results)
    assert table["run_id"].to_pylist() == results.runs["run_id"].tolist()


def test_a_long_bar_makes_the_axis_logarithmic(small_store: Path):
    """The caption states this; without one, the axis begins at 0."""
    results = read_results(str(small_store))
    is_long = (results.runs["scheduler"] == "wq") & (results.runs["environment"] == "high")
    longer = results.runs["makespan_s"].mask(is_long, 4000.0)
    with style():
        plain = next(bars(results, layout_of(results)))
        steep = replace(results, runs=results.runs.assign(makespan_s=longer))
        plotted = next(bars(steep, layout_of(steep)))
    assert "logarithmic" not in plain.caption
    (limits,) = {axes.get_ylim() for axes in plain.figure.axes}
    assert limits[0] == 0
    assert 17.5 < limits[1] < 30  # 16 + mean of 0..3, and its interval
    assert "The y axis is logarithmic." in plotted.caption
    assert {axes.get_yscale() for axes in plotted.figure.axes} == {"log"}
    assert len({axes.get_ylim() for axes in plotted.figure.axes}) == 1


def test_a_long_bar_of_a_comparison():
    """The axis states that it is logarithmic, and parts of the energy are not stacked on it."""
    rows = [
        {"scheduler": name, "makespan_s": makespan, "energy_model_j": 5.0 * makespan, "energy_idle_j": makespan}
        for name, makespan in (("a", 1.0), ("b", 2.0), ("c", 300.0))
    ]
    with style():
        energy, makespan = comparison_bars(rows).figure.axes
    assert energy.get_xlabel() == "Energy [kJ], logarithmic"
    assert makespan.get_xscale() == "log"
    assert len(energy.containers) == 1


# A study's ``policies`` file registers a figure; the report draws it beside the usual ones.

POLICIES = '''
"""A figure of the user's own."""
from gridsched.figures.figure_style import new_figure
from gridsched.figures.figure_file import PlottedFigure, register_figure


@register_figure("range", "study", "Range of makespans <s>.")
def makespan_range(results, layout):
    groups = results.shown.groupby("scheduler")["makespan_s"]
    data = groups.agg(["min", "max"]).reset_index()
    figure = new_figure(6.4, 3.0)
    figure.subplots().vlines(data["scheduler"], data["min"], data["max"])
    yield PlottedFigure(figure, data, NAME, "From least to largest.")
'''
DECLARED = """
from gridsched.figures.figure_style import new_figure
from gridsched.figures.figure_file import PlottedFigure, register_figure


@register_figure("least", "declared", "The least of all.", needs=("metric",))
def least(results, declared):
    data = {"least": [float(results.shown[declared.metric].min())]}
    return PlottedFigure(new_figure(3.0, 2.0), data, declared.name)
"""


@pytest.fixture(autouse=True)
def own_entries():
    """What a test registers does not stay."""
    table = figure_kinds._table()
    before = dict(table)
    yield
    table.clear()
    table.update(before)


def results_with(name: str, store: Path, folder: Path, study: str) -> StudyResults:
    """Return the results of the small study with a policies file that names its figure so."""
    (folder / "own.py").write_text(POLICIES.replace("NAME", repr(name)))
    text = study.replace("seed = 7", 'seed = 7\npolicies = ["own.py"]')
    (folder / "small.toml").write_text(text)
    (folder / "p.xml").write_text(small_study.PLATFORM)
    return read_results(str(store), small_study.Study.from_file(folder / "small.toml", trust=True))


def test_a_users_figure_is_in_the_report(small_store: Path, tmp_path: Path):
    """Its heading, its caption, and its files with their data."""
    page, text = tmp_path / "r.html", small_study.of_metrics("makespan_s")
    write_report(results_with("makespan-range", small_store, tmp_path, text), page)
    text = page.read_text()
    assert "<h3>Range of makespans &lt;s&gt;</h3>" in text
    assert "From least to largest." in text
    figures = {path.stem for path in files_folder(page).glob("*.png")}
    assert len(figures) == text.count("data:image/png;base64,") > 1
    for suffix in (".png", ".svg", ".pdf"):
        assert (files_folder(page) / f"makespan-range{suffix}").stat().st_size > 100
    data = pd.read_csv(files_folder(page) / "makespan-range.csv").set_index("scheduler")
    assert data.loc["mct"].tolist() == [8.0, 11.0]


def test_a_kind_of_ones_own_is_declared(small_store: Path, tmp_path: Path):
    """What a policies file registers is a kind of ``[[figures]]``, with the keys that it needs."""
    text = small_study.of_metrics("makespan_s").replace("seed = 7", 'seed = 7\npolicies = ["own.py"]')
    (tmp_path / "own.py").write_text(DECLARED)
    (tmp_path / "p.xml").write_text(small_study.PLATFORM)
    path = tmp_path / "small.toml"
    path.write_text(text + '\n[[figures]]\nname = "mine"\nkind = "least"\nmetric = "makespan_s"\n')
    results = read_results(str(small_store), small_study.Study.from_file(path, trust=True))
    ((_, plotted), *_) = study_figures(results, layout_of(results))
    assert plotted.data == {"least": [8.0]}
    assert "least" in study_schema()["$defs"]["DeclaredFigure"]["properties"]["kind"]["enum"]
    path.write_text(text + '\n[[figures]]\nname = "mine"\nkind = "least"\n')
    with pytest.raises(InputError, match=r"figures\[0\].metric.*'least'"):
        small_study.Study.from_file(path, trust=True)


@pytest.mark.parametrize("name", ["../thesis", "", "a/b"])
def test_a_figures_name_is_one_of_a_file(small_store: Path, tmp_path: Path, name: str):
    """It could lie anywhere else: it is refused where it is drawn."""
    results = results_with(name, small_store, tmp_path, small_study.of_metrics("energy_j"))
    with pytest.raises(InputError, match="a figure is called"):
        collections.deque(study_figures(results, layout_of(results)), maxlen=0)


def test_a_figure_never_takes_anothers_files(small_store: Path, tmp_path: Path):
    """A name that is taken is refused; nothing is written."""
    text = small_study.of_metrics("energy_j")
    results = results_with("bars-energy_j", small_store, tmp_path, text)
    with pytest.raises(InputError, match="a figure is called"):
        write_report(results, tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()
    assert not files_folder(tmp_path / "r.html").exists()
