"""A study of scheduler families: its claims and its report."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from family_study import make_store, study_in

from gridsched.analysis.agreement import agreement_frame
from gridsched.analysis.statistics import Interval
from gridsched.analysis.study_results import StudyResults, read_results
from gridsched.errors import InputError
from gridsched.figures.figure_file import PlottedFigure
from gridsched.figures.figure_style import style
from gridsched.figures.study_figure import layout_of, study_figures
from gridsched.page.study_report import files_folder, write_report
from gridsched.page.study_tables import mean_frame, mean_table
from gridsched.reproduction.claim_statistics import (
    best_level,
    best_level_steps,
    best_over_last,
    hours_later,
    least_difference,
    least_rise,
    mean,
    mean_difference,
    median,
    median_difference,
    percent_more,
    percent_of_budget_used,
    ratio,
    spread,
)
from gridsched.reproduction.claims import (
    DIRECTION,
    MISSED,
    NO_DATA,
    NOT_DISTINGUISHABLE,
    REPRODUCED,
    Measured,
    measure_claim,
    verdict_of,
)
from gridsched.runs.claims_schema import Claim, Ground, Ours
from gridsched.runs.figure_kinds import figure_kinds

# Statistics of claims about ratios, levels and series, against numbers computed by hand.

#: 97.5 % quantile of Student's t with 2 degrees of freedom.
T2 = 4.302652729911275
UTILITY, ENERGY = "window_utility", "window_energy_j"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> StudyResults:
    """The hand-made runs."""
    return read_results(str(make_store(tmp_path_factory.mktemp("family") / "store")))


def claim(ours: Ours, **keys: Any) -> Claim:
    """Return a claim about a number of ours."""
    given = {"kind": "shape", "tolerance": None, "ground": Ground("before", "made up"), **keys}
    return Claim(id="c", text="", source="s", ours=ours, **given)


def measured(results: StudyResults, ours: Ours, scale: float = 1.0) -> Measured:
    """Return our number for a claim."""
    return measure_claim(results, claim(ours, scale=scale))


@pytest.mark.systems("utility")
def test_the_report_counts_one_driver_and_budget_alone(results: StudyResults):
    """SimGrid's runs and those without budget are in no mean, unless a claim asks for them."""
    assert measured(results, mean(UTILITY, "wq")).interval.mean == 5.0
    assert measured(results, mean(UTILITY, "wq", where={"driver": "simgrid"})).interval.mean == 1000.0
    assert results.cell_axes == ["budget", "driver"]
    assert results.varying_axes == []
    assert len(results.shown) == 3 * 7


@pytest.mark.systems("utility")
def test_ratio_of_means(results: StudyResults):
    """The best variant's mean over another's; the interval is that of the linearized ratio."""
    found = measured(results, ratio(UTILITY, "a", "wq").of_variant("largest window_utility"), scale=100.0)
    half = 100 * T2 * 2.4 / (3**0.5 * 5)  # residuals 2.4, 0, -2.4 of 20, 22, 24 over 4, 5, 6
    ours = found.interval
    assert (ours.mean, ours.count) == (pytest.approx(440.0), 3)
    assert (ours.low, ours.high) == (pytest.approx(440 - half), pytest.approx(440 + half))
    assert found.detail == "a(max_replicas=2)"


@pytest.mark.systems("utility")
def test_ratio_of_two_metrics_of_other_runs(results: StudyResults):
    """The budget over the mean energy of the runs without one: 100 J over 150 J."""
    ours = ratio(
        "energy_budget_j", "a(max_replicas=4)", against_metric="window_energy_j", against_where={"budget": "none"}
    )
    found = measured(results, ours)
    assert found.interval.mean == pytest.approx(2 / 3)


@pytest.mark.systems("utility")
def test_variant_with_the_least_mean(results: StudyResults):
    """``least`` takes the other end; both sides of a comparison are chosen."""
    found = measured(results, percent_more(UTILITY, "a", "b").of_variant("least window_utility"))
    # a with 1 (10, 12, 14) against the first of b's least, 2 (28, 30, 32)
    expected = (180 + 150 + 100 * 18 / 14) / 3
    assert found.interval.mean == pytest.approx(expected)
    assert "a(max_replicas=1), b(max_replicas=2)" in found.detail


@pytest.mark.systems("utility")
def test_mean_difference_is_paired(results: StudyResults):
    """20, 22, 24 minus 30, 33, 36 is -10, -11, -12."""
    found = measured(results, mean_difference(UTILITY, "b(max_replicas=1)", "a(max_replicas=2)")).interval
    assert found.mean == pytest.approx(-11.0)
    assert found.half_width == pytest.approx(T2 / 3**0.5)


@pytest.mark.systems("utility")
def test_least_difference_is_the_lower_end_of_the_mean_differences_interval(results: StudyResults):
    """-10, -11, -12: the mean less half the width, for one number without an interval."""
    found = measured(results, least_difference(UTILITY, "b(max_replicas=1)", "a(max_replicas=2)")).interval
    assert found.mean == pytest.approx(-11.0 - T2 / 3**0.5)
    assert math.isnan(found.low)
    assert found.count == 3


@pytest.mark.systems("utility")
def test_medians(results: StudyResults):
    """Three replicates have a median, not yet an interval; the difference has the claim's scale."""
    one = measured(results, median(UTILITY, "b(max_replicas=1)"))
    assert (one.interval.mean, one.interval.count) == (33.0, 3)
    assert math.isnan(one.interval.low)
    assert one.detail == "b(max_replicas=1)"
    both = measured(results, median_difference(UTILITY, "b(max_replicas=1)", "a(max_replicas=2)"), scale=0.1)
    assert both.interval.mean == pytest.approx(0.1 * (22 - 33))  # pairs differ by -10, -11, -12
    assert (both.interval.low, both.interval.high) == (pytest.approx(-1.2), pytest.approx(-1.0))
    assert both.detail == "b(max_replicas=1); against a(max_replicas=2)"


@pytest.mark.systems("utility")
def test_best_level(results: StudyResults):
    """The level with the largest mean; the interval is of levels that may be the best."""
    a, b = (measured(results, best_level(UTILITY, name, "max_replicas")).interval for name in "ab")
    assert (a.mean, a.low, a.high) == (2.0, 2.0, 2.0)  # the best in every replicate
    assert (b.mean, b.low) == (1.0, 1.0)
    assert b.high in (1.0, 2.0, 4.0)
    steps = measured(results, best_level_steps(UTILITY, "a", "b", "max_replicas"))
    assert steps.interval.mean == 1.0
    assert steps.interval.high == 1.0


@pytest.mark.systems("utility")
def test_gain_of_the_best_level_over_the_last(results: StudyResults):
    """Percent in each replicate; against another family, the difference of the gains."""
    alone = measured(results, best_over_last(UTILITY, "a", "max_replicas"))
    gains = [25.0, 100 * 4 / 18, 20.0]
    assert alone.interval.mean == pytest.approx(sum(gains) / 3)
    assert "2 over 4" in alone.detail
    both = measured(results, best_over_last(UTILITY, "a", "max_replicas", against="b")).interval
    differences = [25.0 - 0, 100 * 4 / 18 - 10, 20.0 - 20]
    center = sum(differences) / 3
    deviation = (sum((each - center) ** 2 for each in differences) / 2) ** 0.5
    assert both.mean == pytest.approx(center)
    assert both.half_width == pytest.approx(T2 * deviation / 3**0.5)


@pytest.mark.systems("utility")
def test_spread_and_rise(results: StudyResults):
    """Spread of the means of some levels; the smallest of the rises from level to level."""
    wide = measured(results, spread(UTILITY, "a", "max_replicas", levels=(2, 4))).interval
    assert wide.mean == pytest.approx(100 * 4 / 22)
    assert wide.low <= wide.mean <= wide.high
    rise = measured(results, least_rise(ENERGY, "a", "max_replicas"))
    rises = [100 * 25 / 75, 100 * 10 / 90, -100 * 5 / 105]  # from 2 to 4; from 1 to 2 it is 50 %
    assert rise.interval.mean == pytest.approx(sum(rises) / 3)
    assert "from 2 to 4" in rise.detail


@pytest.mark.systems("utility")
def test_hours_later(results: StudyResults):
    """Interpolated within a step; 90 % of 100 J: after 1.75 h and after 3.6 h."""
    found = measured(results, hours_later(ENERGY, "b(max_replicas=4)", "a(max_replicas=4)", share=0.9))
    assert found.interval.mean == pytest.approx(3.6 - 1.75)
    assert found.interval.half_width == pytest.approx(0.0, abs=1e-12)
    assert "3.60 h against 1.75 h" in found.detail
    never = measured(results, hours_later(ENERGY, "b(max_replicas=1)", "a(max_replicas=4)", share=0.9))
    assert never.interval.mean == pytest.approx(4.0 - 1.75)
    assert "3 runs never" in never.detail


@pytest.mark.systems("utility")
def test_percent_of_budget_used(results: StudyResults):
    """What the series gains within some hours, of the budget."""
    last = measured(results, percent_of_budget_used(ENERGY, "a(max_replicas=4)", (1.5, 4))).interval
    assert last.mean == pytest.approx(20.0)  # 60 J after 1 h, 100 J after 2 h
    change = measured(results, percent_of_budget_used(ENERGY, "a(max_replicas=4)", (1.5, 4), (0, 1.5)))
    assert change.interval.mean == pytest.approx(20.0 - 80.0)


@pytest.mark.systems("utility")
def test_what_is_missing_gives_no_number(results: StudyResults):
    """Runs without a value leave the claim without verdict, and say so."""
    ours = ratio(ENERGY, "wq", against_metric=UTILITY, against_where={"budget": "none"})
    found = measured(results, ours)
    assert verdict_of(claim(ours), found.interval) == NO_DATA
    assert "no replicate has all runs" in found.detail


@pytest.mark.systems("utility")
@pytest.mark.parametrize(
    ("ours", "problem"),
    [
        (percent_of_budget_used("energy_j", "wq", (0, 1)), "series lead to window_energy_j, window_utility"),
        (spread(UTILITY, "wq", "max_replicas"), "max_replicas"),
        (spread(UTILITY, "a", "max_replicas", levels=(7, 9)), "has no 'max_replicas' from 7 to 9"),
    ],
)
def test_claims_of_what_a_study_lacks_are_refused(results: StudyResults, ours: Ours, problem: str):
    """What a statistic needs is named, with the claim."""
    with pytest.raises(InputError, match=f"Claim 'c': .*{problem}"):
        measured(results, ours)


def test_a_family_is_no_scheduler(tmp_path: Path):
    """Where a statistic is of one scheduler, its label is needed."""
    text = 'CLAIMS = [Claim("c", "shape", "", "s", mean("window_utility", "a"), None, BEFORE)]'
    with pytest.raises(InputError, match="of which there are variants"):
        study_in(tmp_path, claims=text).check_claims()


@pytest.mark.parametrize(
    ("tolerance", "mean", "half", "expected"),
    [
        ("order", 1.0, 2.0, NOT_DISTINGUISHABLE),
        ("order", -1.0, 2.0, NOT_DISTINGUISHABLE),
        ("order_or_tie", -1.0, 2.0, NOT_DISTINGUISHABLE),
        ("order_or_tie", -1.0, 0.5, MISSED),
        ("order_or_tie", 0.0, 0.0, REPRODUCED),
        ("order", 0.0, 0.0, MISSED),
        ("order_or_tie", 0.0, float("nan"), REPRODUCED),
        ("order_or_tie", -1.0, float("nan"), MISSED),
    ],
)
def test_ties(tolerance: str, mean: float, half: float, expected: str):
    """A tie reproduces a claim that allows one; an interval that holds 0 decides nothing."""
    made = claim(hours_later(ENERGY, "a", "b"), tolerance=tolerance)
    assert verdict_of(made, Interval(mean, mean - half, mean + half, 3)) == expected


def test_a_new_difference_may_have_the_direction_only():
    """Outside the tolerance, but with the paper's sign."""
    made = claim(hours_later(ENERGY, "a", "b"), paper=3.0, tolerance=(1.5, 5.0))
    assert verdict_of(made, Interval(6.0, 5.9, 6.1, 3)) == DIRECTION


@pytest.mark.systems("utility")
def test_store_keeps_series(results: StudyResults, tmp_path: Path):
    """They come back from segments and Parquet as they were written, in no table of numbers."""
    run = results.shown.iloc[0]
    assert run["series.time_s"].tolist() == [3600.0, 7200.0, 10800.0, 14400.0, 18000.0]
    assert not any(name.startswith("series.") for name in results.plain)
    assert not any(name.startswith("series.") for name in results.metrics)


# The report of a study with declared figures, a table of the drivers, and varied parameters.


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


def last_figure(results: StudyResults) -> PlottedFigure:
    """Draw the figure that the study declares last."""
    declared = results.study.figures[-1]
    with style():
        return figure_kinds("declared")[declared.kind].draw(results, declared)


@pytest.mark.systems("utility")
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


@pytest.mark.systems("utility")
def test_tables_have_a_row_for_each_level(store: Path):
    """What varies within a family is in the rows, families are in the columns."""
    results = read_results(str(store))
    table = mean_table(results, "window_utility", mean_frame(results, "window_utility"))
    assert table.header == ["max replicas", "a", "b", "wq"]
    assert [row[0] for row in table.rows] == ["1", "2", "4", "-"]
    assert table.rows[1][1].startswith("22.0 ±")
    assert table.rows[3][1:3] == ["-", "-"]


@pytest.mark.systems("utility")
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


@pytest.mark.systems("utility")
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


@pytest.mark.systems("utility")
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


@pytest.mark.systems("utility")
def test_panels_show_all_of_their_data(store: Path, tmp_path: Path):
    """The y axis that panels share reaches from 0 above the largest interval of any."""
    extra = "".join(
        f'\n[[figures]]\nname = "y-{kind}"\nkind = "{kind}"\nalong = "max_replicas"\nmetric = "window_utility"\n'
        for kind in ("sweep", "traces", "best")
    )
    results = read_results(str(store), study_in(tmp_path / "y", extra))
    with style():
        figures = [each for _, each in study_figures(results, layout_of(results))]
        plotted = [each for each in figures if each.name.startswith("y-")]
        assert len(plotted) == 3
        for each in plotted:
            each.figure.draw_without_rendering()
            for axes in each.figure.axes:
                bottom, top = axes.get_ylim()
                assert bottom == 0.0
                assert top >= each.data["high"].max()


@pytest.mark.systems("utility")
def test_boxes_of_variants(store: Path, tmp_path: Path):
    """A box for each variant of a family and for a label, beside the paper's median of a claim."""
    extra = """
[[figures]]
name = "box"
kind = "box"
metric = "window_utility"
schedulers = ["a", "wq"]
names = ["1", "2", "4", "wq"]
"""
    claims = """
CLAIMS = [Claim("c", "number", "", "s", median("window_utility", "a(max_replicas=2)"), 2.0, BEFORE, paper=13.0,
                scale=0.5)]
"""
    results = read_results(str(store), study_in(tmp_path / "b", extra, claims))
    plotted = last_figure(results)
    axes = plotted.figure.axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2", "4", "wq"]
    assert axes.get_ylim() == (0.0, 1.12 * 36.0)  # up to the largest of all runs, b's, too
    data = plotted.data.set_index("scheduler")
    assert data["median"].tolist() == [12.0, 22.0, 18.0, 5.0]
    assert data.loc["wq", ["minimum", "quartile_1", "quartile_3"]].tolist() == [4.0, 4.5, 5.5]
    assert data["paper"].dropna().to_dict() == {"a(max_replicas=2)": 26.0}
    short = extra.replace('names = ["1", "2", "4", "wq"]', 'names = ["1", "2"]')
    results = read_results(str(store), study_in(tmp_path / "n", short, claims))
    with pytest.raises(InputError, match=r"2 .*4"):
        last_figure(results)


@pytest.mark.systems("utility")
def test_calibration_adds_up_the_replicates(store: Path, tmp_path: Path):
    """Three runs of 4 tasks at 0.25 and 6 at 0.9; Wilson's interval of 6 of 12 by hand."""
    figure = '\n[[figures]]\nname = "c"\nkind = "calibration"\nschedulers = ["{}"]\n'
    results = read_results(str(store), study_in(tmp_path / "c", figure.format("wq")))
    data = last_figure(results).data
    assert data["tasks"].tolist() == [12.0, 18.0]
    assert data["predicted"].tolist() == pytest.approx([0.25, 0.9])
    assert data["observed"].tolist() == pytest.approx([0.5, 15 / 18])
    z2 = 1.959963984540054**2  # the center is 0.5, as the share is
    half = (z2 / (4 * 12) + z2**2 / (4 * 12**2)) ** 0.5 / (1 + z2 / 12)
    assert data.loc[0, ["low", "high"]].tolist() == pytest.approx([0.5 - half, 0.5 + half])
    results = read_results(str(store), study_in(tmp_path / "n", figure.format("a")))
    with pytest.raises(InputError, match=r"a\(max_replicas=1\).*chances"):
        last_figure(results)


@pytest.mark.systems("utility")
def test_report_with_declared_figures_repeats_exactly(store: Path, page: Path, tmp_path: Path):
    """The same store gives the same bytes."""
    again = tmp_path / "family.html"
    write_report(read_results(str(store)), again)
    assert again.read_bytes() == page.read_bytes()


@pytest.mark.systems("utility")
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
