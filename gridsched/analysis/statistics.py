"""Means and medians with their intervals, and differences paired over replicates.

All schedulers of a replicate meet the same platform and the same tasks, so the difference within a
replicate is free of their chance; its interval is much shorter than that of two separate means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from gridsched.arrays import Floats
from gridsched.extras import load

#: Confidence of all intervals that gridsched prints.
CONFIDENCE = 0.95
#: Quantiles between which a bootstrap's interval lies.
_OUTSIDE = ((1 - CONFIDENCE) / 2, 1 - (1 - CONFIDENCE) / 2)
#: What needs SciPy here.
_INTERVALS = "Confidence intervals"
#: Samples of a bootstrap, and the seed of their draw.
RESAMPLES, BOOTSTRAP_SEED = 4000, 20140519


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence interval.

    Attributes
    ----------
    mean : float
        nan if there is no value.
    low, high : float
        Ends of the interval; nan with fewer than two values.
    count : int
        Number of values.
    """

    mean: float = np.nan
    low: float = np.nan
    high: float = np.nan
    count: int = 0

    @property
    def half_width(self) -> float:
        """Half the length of the interval; nan with fewer than two values."""
        return (self.high - self.low) / 2


def half_widths(deviation: ArrayLike, count: ArrayLike, confidence: float = CONFIDENCE) -> Floats:
    """Return ``t(count - 1) * deviation / sqrt(count)``, nan for fewer than two values.

    Parameters
    ----------
    deviation : array_like
        Standard deviations of samples (divisor ``count - 1``).
    count : array_like
        Sizes of the samples.
    confidence : float
        Probability that an interval holds the mean.
    """
    n = np.asarray(count, dtype=np.float64)
    several = np.where(n >= 2, n, np.nan)
    special = load("scipy.special", _INTERVALS)  # scipy.stats calls it, and takes four times as long to load
    quantile = special.stdtrit(several - 1, (1 + confidence) / 2)
    return quantile * np.asarray(deviation, dtype=np.float64) / np.sqrt(several)


def _without_nan(values: ArrayLike) -> Floats:
    sample = np.asarray(values, dtype=np.float64)
    return sample[~np.isnan(sample)]


def t_interval(values: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Return the mean of a sample with Student's interval; nan values do not count.

    Parameters
    ----------
    values : array_like
        The sample.
    confidence : float
        Probability that the interval holds the mean.
    """
    sample = _without_nan(values)
    if not len(sample):
        return Interval()
    mean = float(sample.mean())
    deviation = float(sample.std(ddof=1)) if len(sample) > 1 else np.nan
    half = float(half_widths(deviation, len(sample), confidence))
    return Interval(mean, mean - half, mean + half, len(sample))


def median_interval(values: ArrayLike) -> Interval:
    """Return the median of a sample with the interval of its order statistics.

    It holds the median with the confidence at least, whatever the distribution is.

    Parameters
    ----------
    values : array_like
        The sample; nan values do not count.

    Returns
    -------
    Interval
        Its `mean` is the median; the ends are values of the sample, nan where it is too small for
        the confidence (less than 6 values for 95 %).
    """
    stats = load("scipy.stats", _INTERVALS)
    sample = _without_nan(values)
    if not len(sample):
        return Interval()
    ends = stats.quantile_test(sample, p=0.5).confidence_interval(CONFIDENCE)
    return Interval(float(np.median(sample)), float(ends.low), float(ends.high), len(sample))


def difference_of_medians(one: ArrayLike, other: ArrayLike) -> Interval:
    """Return the median of one sample minus that of another, with its percentile bootstrap.

    Parameters
    ----------
    one, other : array_like, shape (replicates,)
        Paired samples: pairs are drawn again as pairs.
    """
    pairs = np.column_stack([one, other]).astype(np.float64)
    n = len(pairs)
    if not n:
        return Interval()
    first, second = np.median(pairs, axis=0).tolist()
    value = first - second
    if n < 2:
        return Interval(value, count=n)
    sampled = np.random.default_rng(BOOTSTRAP_SEED).integers(n, size=(RESAMPLES, n))
    medians = np.median(pairs[sampled], axis=1)
    low, high = np.quantile(medians[:, 0] - medians[:, 1], _OUTSIDE)
    return Interval(value, float(low), float(high), n)


def proportion_intervals(hits: ArrayLike, tries: ArrayLike) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's intervals of proportions.

    Parameters
    ----------
    hits, tries : array_like of whole numbers, shape (n,)
        Independent tries, at least 1 each, and how many of them succeeded.
    """
    stats = load("scipy.stats", _INTERVALS)
    pairs = zip(np.asarray(hits), np.asarray(tries), strict=True)
    ends = [stats.binomtest(int(hit), int(n)).proportion_ci(CONFIDENCE, method="wilson") for hit, n in pairs]
    low, high = (np.array([getattr(each, end) for each in ends]) for end in ("low", "high"))
    return low, high


def ratio_of_means(numerator: ArrayLike, denominator: ArrayLike) -> Interval:
    """Return the mean of one sample over that of another, paired with it.

    Parameters
    ----------
    numerator, denominator : array_like
        Paired values; pairs with a nan do not count.

    Notes
    -----
    Student's interval of the linearized ratio r: half-width ``t(n - 1) s / (sqrt(n) |mean of
    denominator|)``, s being the standard deviation of ``numerator - r denominator``.
    """
    pairs = np.column_stack([numerator, denominator]).astype(np.float64)
    above, below = pairs[~np.isnan(pairs).any(axis=1)].T
    if not len(below) or below.mean() == 0:
        return Interval()
    ratio = float(above.mean() / below.mean())
    deviation = float((above - ratio * below).std(ddof=1)) if len(below) > 1 else np.nan
    half = float(half_widths(deviation, len(below))) / abs(float(below.mean()))
    return Interval(ratio, ratio - half, ratio + half, len(below))


def bootstrap_interval(table: ArrayLike, of_means: Callable[[Floats], Floats]) -> Interval:
    """Return a function of several paired means with its percentile bootstrap interval.

    For what has no t-interval: which level has the largest mean, or how far means spread. The
    ends of the interval are numbers that occurred.

    Parameters
    ----------
    table : array_like, shape (replicates, columns)
        Paired samples.
    of_means : callable
        From means of shape (n, columns) to n numbers.
    """
    sample = np.asarray(table, dtype=np.float64)
    value, n = float(of_means(sample.mean(axis=0)[None])[0]), len(sample)
    if n < 2:
        return Interval(value, count=n)
    counts = np.random.default_rng(BOOTSTRAP_SEED).multinomial(n, np.full(n, 1 / n), RESAMPLES)
    low, high = np.quantile(of_means(counts @ sample / n), _OUTSIDE, method="inverted_cdf")
    return Interval(value, float(low), float(high), n)


def group_intervals(frame: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """Return the mean and interval of a column in each group.

    Parameters
    ----------
    frame : DataFrame
    by : sequence of str
        Columns that make a group; none: all rows are one.
    value : str
        Column; nan values do not count.

    Returns
    -------
    DataFrame
        Columns `by`, ``mean``, ``low``, ``high``, ``count``, groups in order of appearance.
    """
    if not by:
        interval = t_interval(frame[value].to_numpy(dtype=np.float64))
        return pd.DataFrame([vars(interval)])
    groups = frame.groupby(list(by), sort=False, dropna=False, observed=True)[value]
    table = groups.agg(["mean", "std", "count"]).reset_index()
    half = half_widths(table.pop("std"), table["count"])
    table.insert(len(by) + 1, "low", table["mean"] - half)
    table.insert(len(by) + 2, "high", table["mean"] + half)
    return table


def percent_more(other: ArrayLike, reference: ArrayLike) -> Floats:
    """Return how much more `other` is than `reference` [%]; nan where the reference is 0.

    Parameters
    ----------
    other, reference : array_like
        Numbers of one unit.

    Notes
    -----
    ``100 (other - reference) / reference``: the difference of table 3 of paper 004 with LECSA as
    reference, positive where LECSA needs less (algorithms A0).
    """
    reference = np.asarray(reference, dtype=np.float64)
    difference = np.asarray(other, dtype=np.float64) - reference
    legal = np.where(reference != 0, reference, np.nan)
    return 100.0 * difference / legal


def paired_differences(frame: pd.DataFrame, cell: Sequence[str], metric: str, baseline: str) -> pd.DataFrame:
    """Return the difference of each run from the baseline's run of the same cell and replicate.

    Parameters
    ----------
    frame : DataFrame
        One row a run; a run that failed has nan as `metric` or is left out.
    cell : sequence of str
        Columns that must agree besides the replicate.
    metric : str
        Column that is compared.
    baseline : str
        The scheduler that others are compared with.

    Returns
    -------
    DataFrame
        Columns `cell`, ``replicate``, ``scheduler``, ``difference`` (other minus baseline) and
        ``difference_percent``; only pairs of which both runs have a value.
    """
    keys = [*cell, "replicate"]
    known = frame.loc[frame[metric].notna(), [*keys, "scheduler", metric]]
    is_baseline = known["scheduler"] == baseline
    reference = known.loc[is_baseline, [*keys, metric]].rename(columns={metric: "_reference"})
    both = known[~is_baseline].merge(reference, on=keys, how="inner", validate="many_to_one")
    return both[[*keys, "scheduler"]].assign(
        difference=both[metric] - both["_reference"], difference_percent=percent_more(both[metric], both["_reference"])
    )


def mean_ranks(frame: pd.DataFrame, cell: Sequence[str], metric: str, *, is_most_best: bool = False) -> pd.DataFrame:
    """Return the mean of each scheduler in each cell, and its rank there, 1 being the best.

    Parameters
    ----------
    frame : DataFrame
        One row a run.
    cell : sequence of str
        Columns that make a cell.
    metric : str
        Column that is ranked.
    is_most_best : bool
        Whether the largest mean is the best instead of the least.

    Returns
    -------
    DataFrame
        Columns `cell`, ``scheduler``, ``mean``, ``rank`` (ties share the lowest rank).
    """
    table = group_intervals(frame, [*cell, "scheduler"], metric)[[*cell, "scheduler", "mean"]]
    table = table[table["mean"].notna()]
    means = table["mean"]
    if cell:
        means = table.groupby(list(cell), sort=False, dropna=False, observed=True)["mean"]
    return table.assign(rank=means.rank(method="min", ascending=not is_most_best).astype(np.int64))


def best_other(frame: pd.DataFrame, cell: Sequence[str], metric: str, than: str) -> pd.DataFrame:
    """Return in each cell the scheduler with the least mean among those other than `than`.

    Parameters
    ----------
    frame : DataFrame
        One row a run.
    cell : sequence of str
        Columns that make a cell.
    metric : str
        Column whose least mean is the best.
    than : str
        The scheduler that is left out.

    Returns
    -------
    DataFrame
        Columns `cell` and ``scheduler``; of equals the first to appear.
    """
    ranked = mean_ranks(frame[frame["scheduler"] != than], cell, metric)
    best = ranked.loc[ranked["rank"] == 1, [*cell, "scheduler"]]
    return best.drop_duplicates(list(cell)) if cell else best.head(1)


def replicate_means(frame: pd.DataFrame, cell: Sequence[str], value: str) -> pd.Series:
    """Return the mean of a column over all cells, of each replicate that has a value in all of them.

    Parameters
    ----------
    frame : DataFrame
        With the column ``replicate``; nan values do not count.
    cell : sequence of str
        Columns that make a cell; none: all rows of a replicate are one.
    value : str
        Column.
    """
    whole = len(frame[list(cell)].drop_duplicates()) if cell else 1
    table = frame.groupby("replicate")[value].agg(["mean", "count"])
    return table.loc[table["count"] == whole, "mean"]


def without_falls(values: Floats) -> Floats:
    """Return numbers that do not fall and are nearest to `values` in squares: falling neighbors take their mean.

    Parameters
    ----------
    values : ndarray of float64
    """
    means: list[float] = []
    counts: list[int] = []
    for value in values.tolist():
        means.append(value)
        counts.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            mean, count = means.pop(), counts.pop()
            means[-1] += (mean - means[-1]) * count / (counts[-1] + count)
            counts[-1] += count
    return np.repeat(means, counts)
