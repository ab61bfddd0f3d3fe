"""Intervals, paired differences and ranks, against hand computation and scipy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gridsched.analysis.statistics import (
    best_other,
    difference_of_medians,
    group_intervals,
    half_widths,
    mean_ranks,
    median_interval,
    paired_differences,
    percent_more,
    t_interval,
)


def frame(rows: list[tuple]) -> pd.DataFrame:
    """Return rows of (cell, scheduler, replicate, value)."""
    return pd.DataFrame(rows, columns=["cell", "scheduler", "replicate", "value"])


def test_interval_by_hand():
    """1, 2, 3, 4, 5: mean 3, deviation sqrt(2.5), t(4) = 2.7764."""
    interval = t_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert interval.mean == 3.0
    assert interval.count == 5
    assert interval.half_width == pytest.approx(2.7764451 * 2.5**0.5 / 5**0.5, rel=1e-7)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40))
def test_interval_agrees_with_scipy(values: list[float]):
    """Mean and ends are those of scipy's interval of the same sample."""
    ours = t_interval(values)
    spread = stats.sem(values)
    if spread > 0:
        low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), spread)
        assert ours.low == pytest.approx(low, rel=1e-9, abs=1e-6)
        assert ours.high == pytest.approx(high, rel=1e-9, abs=1e-6)
    else:
        assert ours.half_width == pytest.approx(0.0, abs=1e-6)


def test_small_samples_have_no_interval():
    """No value: nan and 0; one: its mean without interval; nan values do not count."""
    assert t_interval([]).count == 0
    assert np.isnan(t_interval([]).mean)
    one = t_interval([7.0, np.nan])
    assert (one.mean, one.count) == (7.0, 1)
    assert np.isnan(one.low)
    assert np.isnan(half_widths(0.0, 1))


def test_median_with_the_interval_of_order_statistics():
    """Six values: the whole range, 1 - 2/64 sure; five cannot be 95 % sure. Of 50 the 18th, 33rd.

    P(at most 17 of 50 lie below the median) is 1.6 %, of at most 18 it is 3.2 %.
    """
    six = median_interval([6.0, 1, 5, 2, np.nan, 4, 3])
    assert (six.mean, six.low, six.high, six.count) == (3.5, 1.0, 6.0, 6)
    five = median_interval([1.0, 2, 3, 4, 5])
    assert five.mean == 3.0
    assert np.isnan([five.low, five.high]).all()
    fifty = median_interval(np.arange(1.0, 51.0))
    assert (fifty.mean, fifty.low, fifty.high) == (25.5, 18.0, 33.0)
    assert median_interval([]).count == 0


def test_difference_of_medians_keeps_pairs():
    """What pairs share is no uncertainty; the sign is that of the first sample."""
    other = np.array([3.0, 50.0, 7.0, 20.0, 11.0])
    shifted = difference_of_medians(other + 4.0, other)
    assert (shifted.mean, shifted.low, shifted.high, shifted.count) == (4.0, 4.0, 4.0, 5)
    found = difference_of_medians(other, np.full(5, 11.0))
    assert found.mean == 0.0
    assert -8.0 <= found.low < 0.0 < found.high <= 39.0
    assert np.isnan(difference_of_medians([2.0], [1.0]).low)


def test_groups_agree_with_single_intervals():
    """Each group's row is the interval of its values, in order of appearance."""
    table = frame(
        [("b", "x", r, v) for r, v in enumerate([1.0, 4.0, 9.0])]
        + [("a", "x", r, v) for r, v in enumerate([2.0, np.nan, 6.0])]
    )
    found = group_intervals(table, ["cell"], "value")
    assert found["cell"].tolist() == ["b", "a"]
    for row, values in zip(found.itertuples(), ([1, 4, 9], [2, 6]), strict=True):
        expected = t_interval(values)
        assert (row.mean, row.count) == (expected.mean, expected.count)
        assert row.low == pytest.approx(expected.low)
        assert row.high == pytest.approx(expected.high)
    assert group_intervals(table, [], "value")["count"].tolist() == [5]


def test_percent_more_is_the_papers_difference():
    """100 (other - reference) / reference; nothing for a reference of 0."""
    assert percent_more([8000.0], [14000.0]) == pytest.approx([-42.857142857])
    assert percent_more([282.9], [100.0]) == pytest.approx([182.9])
    assert np.isnan(percent_more([1.0], [0.0])[0])


def test_pairs_are_of_one_replicate_and_cell():
    """Each run is compared with the baseline of its own cell and replicate, or with none."""
    table = frame(
        [
            ("a", "base", 0, 10.0),
            ("a", "other", 0, 15.0),
            ("a", "base", 1, 20.0),
            ("a", "other", 1, 30.0),
            ("a", "other", 2, 99.0),
            ("b", "base", 0, np.nan),
            ("b", "other", 0, 5.0),
        ]
    )
    pairs = paired_differences(table, ["cell"], "value", "base")
    assert pairs["difference"].tolist() == [5.0, 10.0]
    assert pairs["difference_percent"].tolist() == [50.0, 50.0]
    assert pairs["replicate"].tolist() == [0, 1]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.floats(1, 100), st.floats(-5, 5)), min_size=3, max_size=12), st.floats(-50, 50))
def test_pairing_removes_what_a_replicate_shares(pairs: list[tuple[float, float]], shift: float):
    """The interval of differences is that of a one-sample t-test on them."""
    rows = []
    for r, (base, noise) in enumerate(pairs):
        rows += [("a", "base", r, base), ("a", "other", r, base + shift + noise)]
    found = paired_differences(frame(rows), ["cell"], "value", "base")["difference"]
    interval = t_interval(found)
    assert interval.mean == pytest.approx(shift + np.mean([n for _, n in pairs]), abs=1e-9)
    low, _ = stats.t.interval(0.95, len(found) - 1, np.mean(found), max(stats.sem(found), 1e-300))
    assert interval.low == pytest.approx(low, abs=1e-6)


def test_ranks_and_best_other():
    """Least mean ranks 1, ties share; the best other leaves out the one that asks."""
    table = frame(
        [
            ("a", "x", 0, 1.0),
            ("a", "x", 1, 3.0),
            ("a", "y", 0, 2.0),
            ("a", "y", 1, 2.0),
            ("a", "z", 0, 5.0),
            ("b", "x", 0, 9.0),
            ("b", "y", 0, 4.0),
            ("b", "z", 0, 3.0),
        ]
    )
    ranks = mean_ranks(table, ["cell"], "value").set_index(["cell", "scheduler"])["rank"]
    assert ranks.to_dict() == {("a", "x"): 1, ("a", "y"): 1, ("a", "z"): 3, ("b", "x"): 3, ("b", "y"): 2, ("b", "z"): 1}
    best = best_other(table, ["cell"], "value", "x")
    assert best.values.tolist() == [["a", "y"], ["b", "z"]]
    assert best_other(table[table["cell"] == "a"], [], "value", "y").values.tolist() == [["x"]]
