"""The report of a study with declared figures, a table of the drivers, and varied parameters."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from family_study import make_store, study_in

from gridsched.analysis.agreement import agreement_frame
from gridsched.analysis.study_results import StudyResults, read_results
from gridsched.errors import InputError
from gridsched.figures.figure_file import style
from gridsched.figures.study_figure import layout_of
from gridsched.figures.table import Drawn, study_figures
from gridsched.page.study_report import files_folder, write_report
from gridsched.page.study_tables import mean_frame, mean_table
from gridsched.runs.figure_kinds import figure_kinds


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the hand-made runs."""
    return make_store(tmp_path_factory.mktemp("family") / "store")


@pytest.fixture(scope="module")
def page(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its report."""
    path = tmp_path_factory.mktemp("report") / "family.html"
    write_report(read_results(str(store)), path)
    return path


def last_figure(results: StudyResults) -> Drawn:
    """Draw the figure that the study declares last."""
    declared = results.study.figures[-1]
    with style():
        return figure_kinds("declared")[declared.kind].draw(results, declared)


def test_agreement_of_the_drivers(store: Path):
    """Each run that both have done, compared in all that both have; the worst one is named."""
    frame = agreement_frame(read_results(str(store))).set_index("quantity")
    assert (frame["runs"] == 8).all()  # replicate 0: seven with budget, one without
    worst = frame["largest_relative_difference"]
    assert worst["window_energy_j"] == 0.0
    assert worst["energy_model_j"] == pytest.approx(1e-12, rel=1e-3)
    assert worst["tasks_finished"] == pytest.approx(1 / 11)
    assert worst["window_utility"] == pytest.approx(996 / 1000)
    assert worst["series.energy_j"] == 0.0
    assert worst["energy_j"] == 3e-13
    assert frame.loc["tasks_finished", "where"] == "scheduler a(max_replicas=2), replicate 0"
    assert "driver" not in frame.loc["window_utility", "where"]


def test_no_agreement_without_both_drivers(small_store: Path):
    """A study that runs on one driver has no such table."""
    assert not len(agreement_frame(read_results(str(small_store))))


def test_tables_have_a_row_for_each_level(store: Path):
    """What varies within a family stands in the rows, families in the columns."""
    results = read_results(str(store))
    table = mean_table(results, "window_utility", mean_frame(results, "window_utility"))
    assert table.header == ["max replicas", "a", "b", "wq"]
    assert [row[0] for row in table.rows] == ["1", "2", "4", "-"]
    assert table.rows[1][1].startswith("22.0 ±")
    assert table.rows[3][1:3] == ["-", "-"]


def test_files_of_the_declared_figures(page: Path):
    """Each declared figure in three formats with its data; the usual ones are not drawn."""
    folder = files_folder(page)
    for name in ("best-utility", "energy", "energy-over-time"):
        for suffix in (".png", ".svg", ".pdf", ".csv"):
            assert (folder / f"{name}{suffix}").stat().st_size > 100
    assert not list(folder.glob("bars-*"))
    assert (folder / "agreement.csv").exists()
    assert not any("series" in name for name in pd.read_csv(folder / "runs.csv"))
    assert "Both drivers" in page.read_text()


def test_data_of_the_figure_of_the_best(page: Path):
    """The best and the last level of each family, and schedulers without levels."""
    data = pd.read_csv(files_folder(page) / "best-utility.csv")
    rows = list(zip(data["scheduler"], data["bar"], data["mean"], strict=True))
    assert rows == [
        ("a", "best", 22.0),
        ("a", "last", 18.0),
        ("b", "best", 33.0),
        ("b", "last", 30.0),
        ("wq", "only", 5.0),
    ]


def test_data_of_sweep_and_traces(page: Path):
    """Means of the metric at each level with the limit; mean series of the chosen levels."""
    sweep = pd.read_csv(files_folder(page) / "energy.csv")
    assert sweep["mean"].tolist() == [60.0, 90.0, 100.0, 40.0, 80.0, 100.0]
    assert set(sweep["energy_budget_j"]) == {100.0}
    traces = pd.read_csv(files_folder(page) / "energy-over-time.csv")
    assert set(traces["max_replicas"]) == {1, 4}
    chosen = traces[(traces["scheduler"] == "a") & (traces["max_replicas"] == 1)]
    assert chosen["time_h"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert chosen["mean"].tolist() == [0.0, 15.0, 30.0, 45.0, 60.0]
    assert chosen["count"].tolist() == [3] * 5


def test_panels_show_all_of_their_data(store: Path, tmp_path: Path):
    """The y axis that panels share reaches from 0 above the largest interval of any."""
    extra = "".join(
        f'\n[[figures]]\nname = "y-{kind}"\nkind = "{kind}"\nalong = "max_replicas"\nmetric = "window_utility"\n'
        for kind in ("sweep", "traces", "best")
    )
    results = read_results(str(store), study_in(tmp_path / "y", extra))
    with style():
        figures = [each for _, each in study_figures(results, layout_of(results))]
        drawn = [each for each in figures if each.name.startswith("y-")]
        assert len(drawn) == 3
        for each in drawn:
            each.figure.draw_without_rendering()
            for axes in each.figure.axes:
                bottom, top = axes.get_ylim()
                assert bottom == 0.0
                assert top >= each.data["high"].max()


def test_boxes_of_variants(store: Path, tmp_path: Path):
    """A box for each variant of a family and for a label, beside the paper's median of a claim."""
    extra = """
[[figures]]
name = "box"
kind = "box"
metric = "window_utility"
schedulers = ["a", "wq"]
names = ["1", "2", "4", "wq"]
[[claims]]
id = "c"
source = "s"
metric = "window_utility"
statistic = "median"
scheduler = "a(max_replicas=2)"
scale = 0.5
paper = 13.0
tolerance = 2.0
tolerance_set = "before"
kind = "number"
tolerance_ground = "made up"
"""
    results = read_results(str(store), study_in(tmp_path / "b", extra))
    drawn = last_figure(results)
    axes = drawn.figure.axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2", "4", "wq"]
    assert axes.get_ylim() == (0.0, 1.12 * 36.0)  # up to the largest of all runs, b's, too
    data = drawn.data.set_index("scheduler")
    assert data["median"].tolist() == [12.0, 22.0, 18.0, 5.0]
    assert data.loc["wq", ["minimum", "quartile_1", "quartile_3"]].tolist() == [4.0, 4.5, 5.5]
    assert data["paper"].dropna().to_dict() == {"a(max_replicas=2)": 26.0}
    short = extra.replace('names = ["1", "2", "4", "wq"]', 'names = ["1", "2"]')
    results = read_results(str(store), study_in(tmp_path / "n", short))
    with pytest.raises(InputError, match=r"2 .*4"):
        last_figure(results)


def test_calibration_adds_up_the_replicates(store: Path, tmp_path: Path):
    """Three runs of 4 tasks at 0.25 and 6 at 0.9; Wilson's interval of 6 of 12 by hand."""
    figure = '\n[[figures]]\nname = "c"\nkind = "calibration"\nschedulers = ["{}"]\n'
    results = read_results(str(store), study_in(tmp_path / "c", figure.format("wq")))
    data = last_figure(results).data
    assert data["tasks"].tolist() == [12.0, 18.0]
    assert data["predicted"].tolist() == pytest.approx([0.25, 0.9])
    assert data["observed"].tolist() == pytest.approx([0.5, 15 / 18])
    z2 = 1.959963984540054**2  # the centre is 0.5, as the share is
    half = (z2 / (4 * 12) + z2**2 / (4 * 12**2)) ** 0.5 / (1 + z2 / 12)
    assert data.loc[0, ["low", "high"]].tolist() == pytest.approx([0.5 - half, 0.5 + half])
    results = read_results(str(store), study_in(tmp_path / "n", figure.format("a")))
    with pytest.raises(InputError, match=r"a\(max_replicas=1\).*chances"):
        last_figure(results)


def test_report_with_declared_figures_repeats_exactly(store: Path, page: Path, tmp_path: Path):
    """The same store gives the same bytes."""
    again = tmp_path / "family.html"
    write_report(read_results(str(store)), again)
    assert again.read_bytes() == page.read_bytes()


def test_figures_of_unknown_things_are_refused(store: Path, tmp_path: Path):
    """Metrics and families when the study is read, levels when the figure is drawn."""
    figure = '\n[[figures]]\nname = "f"\nkind = "sweep"\nalong = "max_replicas"\n'
    with pytest.raises(InputError, match=r"figures\[3\].kind.*'swep'.*'sweep'"):
        study_in(tmp_path / "k", figure.replace("sweep", "swep") + 'metric = "utility"\n')
    with pytest.raises(InputError, match=r"figures\[3\].metric.*'window_utilty'"):
        study_in(tmp_path / "m", figure + 'metric = "window_utilty"\n')
    with pytest.raises(InputError, match=r"figures\[3\].schedulers\[0\] is 'c'"):
        study_in(tmp_path / "s", figure + 'metric = "utility"\nschedulers = ["c"]\n')
    with pytest.raises(InputError, match=r"figures\[3\].along.*'sweep'"):
        study_in(tmp_path / "a", figure.replace("along", "infinite") + 'metric = "utility"\n')
    extra = figure + 'metric = "window_utility"\nlevels = [3]\n'
    results = read_results(str(store), study_in(tmp_path / "l", extra))
    with pytest.raises(InputError, match=r"max_replicas 3.*1, 2, 4"):
        write_report(results, tmp_path / "family.html")
