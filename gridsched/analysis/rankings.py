"""Who wins by how much: schedulers ranked over all settings of a study, with paired differences.

A setting is one combination of the axes besides scheduler and replicate. Replicates are independent
of each other, the settings of one replicate are not (they share its random numbers); so what is
averaged over settings is averaged within each replicate first, and the interval is that of the
replicates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gridsched.analysis.statistics import Interval, mean_ranks, percent_more, t_interval
from gridsched.analysis.study_results import StudyResults
from gridsched.metrics import METRICS

#: Schedulers are ranked by no more metrics than this.
MOST_RANKINGS = 4


@dataclass(frozen=True)
class RankedScheduler:
    """One scheduler beside the others in one metric.

    Attributes
    ----------
    label : str
        Of the scheduler.
    mean_rank : float
        Mean over its settings of its rank there, by the means of the replicates; 1 is the best.
    best_in, settings : int
        In how many settings it is the best (of equals, each), and in how many it ran.
    mean : Interval
        Mean over settings, in the metric's unit.
    above : Interval
        How far it is above the winner, mean over the settings that both have: [%], or the
        metric's unit where `Ranking.is_relative` is false. Nothing for the winner itself.
    """

    label: str
    mean_rank: float
    best_in: int
    settings: int
    mean: Interval
    above: Interval


@dataclass(frozen=True)
class Ranking:
    """Which scheduler is the best in a metric, over all settings of a study.

    Attributes
    ----------
    metric : str
    schedulers : tuple of RankedScheduler
        The least mean rank first; that is the winner.
    is_relative : bool
        Whether differences are shares of the winner's value [%]: not where that is 0 or less
        somewhere, nor where the metric is a share itself.
    """

    metric: str
    schedulers: tuple[RankedScheduler, ...]
    is_relative: bool

    @property
    def winner(self) -> RankedScheduler:
        """The scheduler with the least mean rank."""
        return self.schedulers[0]


def rankings(results: StudyResults) -> list[Ranking]:
    """Return the rankings by a study's first metrics that have a better and a worse.

    Parameters
    ----------
    results : StudyResults
        With one scheduler alone, there is nothing to rank.
    """
    if len(results.labels) < 2:
        return []
    asked = [name for name in results.distinct_metrics if METRICS[name].better and not METRICS[name].is_detail]
    candidates = [ranking_of(results, name) for name in asked[:MOST_RANKINGS]]
    return [ranking for ranking in candidates if len(ranking.schedulers) > 1]


def ranking_of(results: StudyResults, metric: str) -> Ranking:
    """Return which scheduler is the best in a metric, and how far the others are from it."""
    cells = results.cell_axes
    frame = results.shown[[*cells, "scheduler", "replicate", metric]].dropna(subset=[metric])
    is_most = METRICS[metric].better == "more"
    ranks = mean_ranks(frame, cells, metric, is_most_best=is_most)
    by_label = ranks.groupby("scheduler", observed=True)["rank"]
    mean_rank = by_label.mean()
    labels = sorted(
        (label for label in results.labels if label in mean_rank.index), key=lambda label: float(mean_rank[label])
    )
    wide = frame.set_index([*cells, "replicate", "scheduler"])[metric].unstack("scheduler")
    winner = wide[labels[0]] if labels else pd.Series(dtype=np.float64)
    is_relative = not METRICS[metric].is_share and bool((winner.dropna() > 0).all())
    schedulers = []
    for label in labels:
        more = percent_more(wide[label], winner) if is_relative else wide[label] - winner
        place = by_label.get_group(label)
        above = pd.Series(more, wide.index)
        schedulers.append(
            RankedScheduler(
                label,
                float(mean_rank[label]),
                int((place == 1).sum()),
                len(place),
                over_settings(wide[label]),
                over_settings(above if label != labels[0] else above[:0]),
            )
        )
    return Ranking(metric, tuple(schedulers), is_relative)


def over_settings(values: pd.Series) -> Interval:
    """Return the mean over settings with the interval of the replicates.

    Parameters
    ----------
    values : Series
        Indexed by the axes of the settings, if there are any, and ``replicate``. Settings without
        any value do not count, nor do replicates that lack one of the others.
    """
    if not len(values):
        return Interval()
    if values.index.nlevels == 1:
        return t_interval(values)
    table = values.unstack("replicate").dropna(how="all")
    return t_interval(table.dropna(axis="columns").mean())
