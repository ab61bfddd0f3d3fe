"""The statistics by which claims compute our numbers: each a function of a study's results.

Each gives our number with a 95 % interval that is paired over replicates. A cell is one combination of all
axes besides scheduler and replicate; `where` chooses the cells: axis -> value, or a tuple of values.

A statistic of several levels (`best_level`, `best_level_steps`, `spread`) has a percentile bootstrap
interval over replicates, as no t-interval exists; a level's interval shows which levels could as well be the
best. `median_difference` has one, too, and `median` the interval of its order statistics.

`against` is a label, or `BEST_OTHER`: in each cell the scheduler with the least mean besides `scheduler`. It
is chosen by the same runs, so that its lead is a little overestimated.

A study's own statistic is a function ``(results, ...) -> Measured`` with the decorator ``@statistic()``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from gridsched.analysis import statistics
from gridsched.analysis.claim_values import Level, Measured, levels_of, replicate_values, series_values, where_of
from gridsched.analysis.statistics import (
    Interval,
    bootstrap_interval,
    difference_of_medians,
    median_interval,
    ratio_of_means,
    replicate_means,
    t_interval,
)
from gridsched.analysis.statistics import percent_more as percent_above
from gridsched.analysis.study_results import StudyResults, restricted
from gridsched.analysis.texts import axis_text, value_text
from gridsched.arrays import Floats
from gridsched.errors import InputError, counted
from gridsched.runs.claims_schema import BEST_OTHER, statistic
from gridsched.runs.run_filter import full_name

#: Axis -> value, or a tuple of values, of the runs that count.
Given = Mapping[str, Any]
EVERYWHERE: Given = {}
#: From the first to the second, both included.
Span = tuple[float, float]


class NoData(Exception):
    """What a claim needs is missing; its text names it."""


def joined(*texts: str) -> str:
    """Return the texts that are not empty as one."""
    return "; ".join(filter(None, texts))


def finished_runs(results: StudyResults, metric: str, where: Given, *labels: str) -> tuple[pd.DataFrame, str]:
    """Return the finished runs with a metric, and what to say of the others.

    Parameters
    ----------
    results : StudyResults
    metric : str
    where : mapping
    *labels : str
        Schedulers; none or `BEST_OTHER` for all.

    Raises
    ------
    NoData
        If a whole combination has none.
    """
    if metric not in results.plain:
        raise NoData(f"no run has {metric}")
    needed = restricted(results.plain, where_of(results, where))
    if labels and BEST_OTHER not in labels:
        needed = needed[needed["scheduler"].isin(labels)]
    finished = needed[(needed["status"] == "finished") & needed[metric].notna()]
    group = [*results.cell_axes, "scheduler"]
    needed_count, complete = (len(frame[group].drop_duplicates()) for frame in (needed, finished))
    if complete < needed_count or not needed_count:
        raise NoData(f"{needed_count - complete} of {needed_count} combinations that it needs have no finished run")
    lost = len(needed) - len(finished)
    return finished, f"{lost} of {len(needed)} runs are missing or failed" if lost else ""


def paired(results: StudyResults, columns: dict[Any, pd.Series]) -> tuple[pd.DataFrame, str]:
    """Return a row for each replicate that has all columns, and what to say if not all have.

    Raises
    ------
    NoData
        If none has.
    """
    whole = pd.concat(columns, axis=1).dropna()
    if not len(whole):
        lacking = [str(name) for name, values in columns.items() if not len(values)]
        what = f": nothing of {', '.join(lacking)}" if lacking else ""
        raise NoData(f"no replicate has all runs that it needs{what}")
    n, planned = len(whole), results.study.replicates
    return whole, "" if n == planned else f"{n} of {planned} replicates have all its runs"


def replicates_of(results: StudyResults, metric: str, where: Given, *labels: str) -> tuple[pd.DataFrame, str]:
    """Return `paired` of the metric of some schedulers."""
    chosen = where_of(results, where)
    return paired(results, {label: replicate_values(results, label, chosen, metric) for label in labels})


@statistic()
def mean(results: StudyResults, metric: str, scheduler: str, *, where: Given = EVERYWHERE) -> Measured:
    """Return the mean of `metric` of `scheduler`.

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """
    finished, note = finished_runs(results, metric, where, scheduler)
    return Measured(t_interval(replicate_means(finished, results.cell_axes, metric)), note)


@statistic(takes_families=True)
def median(results: StudyResults, metric: str, scheduler: str, *, where: Given = EVERYWHERE) -> Measured:
    """Return the median over replicates of `metric` of `scheduler`.

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """
    table, note = replicates_of(results, metric, where, scheduler)
    return Measured(median_interval(table[scheduler]), note)


def _difference(
    number: Callable[[pd.Series, pd.Series], Interval],
    results: StudyResults,
    metric: str,
    scheduler: str,
    against: str,
    where: Given,
) -> Measured:
    table, note = replicates_of(results, metric, where, scheduler, against)
    return Measured(number(table[against], table[scheduler]), joined(f"against {against}", note))


@statistic(is_difference=True, takes_families=True)
def mean_difference(
    results: StudyResults, metric: str, scheduler: str, against: str, *, where: Given = EVERYWHERE
) -> Measured:
    """Return the mean of `metric` of `against` minus that of `scheduler`, paired.

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    against : str
        Label, or `BEST_OTHER`.
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """
    return _difference(lambda one, other: t_interval(one - other), results, metric, scheduler, against, where)


@statistic(is_difference=True, takes_families=True)
def least_difference(
    results: StudyResults, metric: str, scheduler: str, against: str, *, where: Given = EVERYWHERE
) -> Measured:
    """Return the lower end of the interval of `mean_difference`: what it is at least.

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    against : str
        Label, or `BEST_OTHER`.
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """

    def least(one: pd.Series, other: pd.Series) -> Interval:
        of_mean = t_interval(one - other)
        return Interval(of_mean.low, count=of_mean.count)

    return _difference(least, results, metric, scheduler, against, where)


@statistic(is_difference=True, takes_families=True)
def median_difference(
    results: StudyResults, metric: str, scheduler: str, against: str, *, where: Given = EVERYWHERE
) -> Measured:
    """Return the median over replicates of `metric` of `against` minus that of `scheduler`.

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    against : str
        Label, or `BEST_OTHER`.
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """
    return _difference(difference_of_medians, results, metric, scheduler, against, where)


def _differences(
    results: StudyResults, metric: str, scheduler: str, against: str, where: Given
) -> tuple[pd.DataFrame, str, str]:
    """Return the paired differences of each cell and replicate, against whom they are, and which runs lack."""
    cells = results.cell_axes
    _, note = finished_runs(results, metric, where, scheduler, against)
    pairs, best = results.differences(metric, scheduler)
    of_cells = {axis: values for axis, values in where_of(results, where).items() if axis in cells}
    pairs = restricted(pairs, of_cells)
    if against != BEST_OTHER:
        return pairs[pairs["scheduler"] == against], f"against {against}", note
    chosen = pairs.merge(restricted(best, of_cells), on=[*cells, "scheduler"])
    names = chosen["scheduler"].unique()
    shown = ", ".join(names) if len(names) <= 2 else f"{len(names)} different schedulers"
    return chosen, f"against {shown}", note


@statistic(is_difference=True)
def percent_more(
    results: StudyResults, metric: str, scheduler: str, against: str, *, where: Given = EVERYWHERE
) -> Measured:
    """Return how much more `against` needs than `scheduler` [%]; over cells, the mean of each replicate's mean.

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    against : str
        Label, or `BEST_OTHER`.
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """
    pairs, detail, note = _differences(results, metric, scheduler, against, where)
    return Measured(t_interval(replicate_means(pairs, results.cell_axes, "difference_percent")), joined(detail, note))


@statistic(is_difference=True)
def largest_percent_more(
    results: StudyResults, metric: str, scheduler: str, against: str, *, where: Given = EVERYWHERE
) -> Measured:
    """Return the largest `percent_more` of all cells, with that cell's interval.

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    against : str
        Label, or `BEST_OTHER`.
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """
    return _extreme(pd.Series.idxmax, results, metric, scheduler, against, where)


@statistic(is_difference=True)
def smallest_percent_more(
    results: StudyResults, metric: str, scheduler: str, against: str, *, where: Given = EVERYWHERE
) -> Measured:
    """Return the smallest `percent_more` of all cells, with that cell's interval.

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    against : str
        Label, or `BEST_OTHER`.
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """
    return _extreme(pd.Series.idxmin, results, metric, scheduler, against, where)


def _extreme(
    place_of: Callable[[pd.Series], Any], results: StudyResults, metric: str, scheduler: str, against: str, where: Given
) -> Measured:
    pairs, _, note = _differences(results, metric, scheduler, against, where)
    table = statistics.group_intervals(pairs, [*results.cell_axes, "scheduler"], "difference_percent")
    row = table.loc[place_of(table["mean"])]
    center, low, high = map(float, row[["mean", "low", "high"]])
    place = axis_text({name: row[name] for name in results.varying_axes})
    text = f"{place}, against {row['scheduler']}".lstrip(", ")
    return Measured(Interval(center, low, high, int(row["count"])), joined(text, note))


@statistic()
def worst_rank(results: StudyResults, metric: str, scheduler: str, *, where: Given = EVERYWHERE) -> Measured:
    """Return the highest rank of `scheduler` by its mean in any cell; 1 is the least.

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """
    finished, note = finished_runs(results, metric, where)
    table = statistics.mean_ranks(finished, results.cell_axes, metric)
    ranks = table.loc[table["scheduler"] == scheduler, "rank"]
    text = f"rank 1 in {int((ranks == 1).sum())} of {len(ranks)} cells"
    return Measured(Interval(float(ranks.max()), count=len(ranks)), joined(text, note))


@statistic()
def rises_along(
    results: StudyResults, metric: str, scheduler: str, against: str, along: str, *, where: Given = EVERYWHERE
) -> Measured:
    """Return in how many cells `percent_more` is larger at the second value of the axis `along` than at the first.

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    against : str
        Label, or `BEST_OTHER`.
    along : str
        An axis.
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """
    axis = full_name(along, [each.name for each in results.study.axes])
    first, second = results.values_of(axis)[:2]
    pairs, _, note = _differences(results, metric, scheduler, against, where)
    table = statistics.group_intervals(pairs, results.cell_axes, "difference_percent")
    others = [name for name in results.cell_axes if name != axis]
    at_first, at_second = (table.loc[table[axis] == value, [*others, "mean"]] for value in (first, second))
    both = at_first.merge(at_second, on=others) if others else at_first.merge(at_second, how="cross")
    rising = int((both["mean_y"] > both["mean_x"]).sum())
    text = f"rises in {rising} of {len(both)} pairs from {first} to {second}"
    return Measured(Interval(float(rising), count=len(both)), joined(text, note))


@statistic(takes_families=True)
def ratio(
    results: StudyResults,
    metric: str,
    scheduler: str,
    against: str | None = None,
    *,
    where: Given = EVERYWHERE,
    against_metric: str | None = None,
    against_where: Given = EVERYWHERE,
) -> Measured:
    """Return the mean of a metric of `scheduler` over the mean of another of `against` (default: the same ones).

    The runs of `against` differ from `where` as `against_where` specifies.

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    against : str
        Label, or `BEST_OTHER`.
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    against_metric : str, optional
        Metric of `against`; default the same.
    against_where : mapping
        The same for `against`.
    """
    above, below = where_of(results, where), where_of(results, where, against_where)
    columns = {
        "above": replicate_values(results, scheduler, above, metric),
        "below": replicate_values(results, against or scheduler, below, against_metric or metric),
    }
    table, note = paired(results, columns)
    return Measured(ratio_of_means(table["above"], table["below"]), note)


@statistic(is_difference=True, takes_families=True)
def hours_later(
    results: StudyResults, metric: str, scheduler: str, against: str, *, share: float = 0.999, where: Given = EVERYWHERE
) -> Measured:
    """Return how much later `scheduler` has used `share` of its budget than `against` [h].

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    against : str
        Label, or `BEST_OTHER`.
    share : float
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """
    never = 0

    def reached(time_h: Floats, used: Floats, budget_j: float) -> float:
        nonlocal never
        target = share * budget_j
        if not used[-1] >= target:
            never += 1
            return float(time_h[-1])
        k = int(np.searchsorted(used, target))
        return float(time_h[0]) if k == 0 else float(np.interp(target, used[k - 1 : k + 1], time_h[k - 1 : k + 1]))

    chosen = where_of(results, where)
    columns = {label: series_values(results, label, chosen, metric, reached) for label in (scheduler, against)}
    table, note = paired(results, columns)
    at = table.mean()
    hours = f"{at[scheduler]:.2f} h against {at[against]:.2f} h"
    late = f"{counted(never, 'run')} never, counted at the end" if never else ""
    return Measured(t_interval(table[scheduler] - table[against]), joined(hours, late, note))


@statistic(takes_families=True)
def percent_of_budget_used(
    results: StudyResults,
    metric: str,
    scheduler: str,
    hours: Span,
    against_hours: Span | None = None,
    *,
    where: Given = EVERYWHERE,
) -> Measured:
    """Return the share of the budget used in `hours` since the begin [%], minus that used in `against_hours`.

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    hours : float
    against_hours : float
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """

    def used_percent(time_h: Floats, used: Floats, budget_j: float) -> float:
        def within(begin: float, end: float) -> float:
            at_begin, at_end = np.interp([begin, end], time_h, used)
            return float(100.0 * (at_end - at_begin) / budget_j)

        return within(*hours) - (within(*against_hours) if against_hours else 0)

    values = series_values(results, scheduler, where_of(results, where), metric, used_percent)
    table, note = paired(results, {scheduler: values})
    return Measured(t_interval(table[scheduler]), note)


def _levels(
    results: StudyResults, metric: str, family: str, along: str, where: Given, among: Span | None = None
) -> tuple[list[Level], pd.DataFrame, str]:
    """Return the levels of a family and the metric of each, one row a replicate."""
    chosen = where_of(results, where)
    levels = levels_of(results, family, along, chosen, among)
    columns = {
        k: replicate_values(results, level.label, {**chosen, **level.where}, metric) for k, level in enumerate(levels)
    }
    return levels, *paired(results, columns)


@statistic(takes_families=True)
def best_level(
    results: StudyResults, metric: str, scheduler: str, along: str, *, where: Given = EVERYWHERE
) -> Measured:
    """Return the level of `along`, a parameter of `scheduler` or an axis, with the largest mean of `metric`.

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    along : str
        An axis.
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """
    levels, table, note = _levels(results, metric, scheduler, along, where)
    best = bootstrap_interval(table, lambda means: means.argmax(axis=1))
    center, low, high = (
        math.nan if math.isnan(k) else float(levels[int(k)].value) for k in (best.mean, best.low, best.high)
    )
    return Measured(Interval(center, low, high, best.count), note)


@statistic(is_difference=True, takes_families=True)
def best_level_steps(
    results: StudyResults, metric: str, scheduler: str, against: str, along: str, *, where: Given = EVERYWHERE
) -> Measured:
    """Return by how many levels the best one of a family is above that of another.

    Raises
    ------
    InputError
        If the families have other levels.

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    against : str
        Label, or `BEST_OTHER`.
    along : str
        An axis.
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """
    levels, one, note = _levels(results, metric, scheduler, along, where)
    others, two, _ = _levels(results, metric, against, along, where)
    if [each.value for each in levels] != [each.value for each in others]:
        raise InputError(f"best_level_steps: {against} has other levels than {scheduler}.")
    both = pd.concat([one, two], axis=1, join="inner")
    split = len(levels)

    def steps(means: Floats) -> Floats:
        return means[:, :split].argmax(axis=1) - means[:, split:].argmax(axis=1)

    return Measured(bootstrap_interval(both, steps), joined(f"against {against}", note))


@statistic(is_difference=True, takes_families=True)
def best_over_last(
    results: StudyResults,
    metric: str,
    scheduler: str,
    along: str,
    *,
    against: str | None = None,
    where: Given = EVERYWHERE,
) -> Measured:
    """Return how much more the best level has than the last one [%].

    With `against`, by how much more than that family's gain [points of percent].

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    along : str
        An axis.
    against : str
        Label, or `BEST_OTHER`.
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """
    gain, text, note = _gain(results, metric, scheduler, along, where)
    if against is not None:
        other, other_text, _ = _gain(results, metric, against, along, where)
        gain, text = (gain - other).dropna(), f"{text}; {against}: {other_text}"
    return Measured(t_interval(gain), joined(text, note))


def _gain(results: StudyResults, metric: str, family: str, along: str, where: Given) -> tuple[pd.Series, str, str]:
    levels, table, note = _levels(results, metric, family, along, where)
    best, last = int(table.mean().to_numpy().argmax()), len(levels) - 1
    gain = pd.Series(percent_above(table[best], table[last]), index=table.index)
    return gain, f"{value_text(levels[best].value)} over {value_text(levels[last].value)}", note


@statistic(takes_families=True)
def spread(
    results: StudyResults,
    metric: str,
    scheduler: str,
    along: str,
    levels: Span | None = None,
    *,
    where: Given = EVERYWHERE,
) -> Measured:
    """Return the largest minus the least mean of the levels from the first to the second, over the largest [%].

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    along : str
        An axis.
    levels : sequence
        Values of the axis.
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """
    _, table, note = _levels(results, metric, scheduler, along, where, levels)

    def share(means: Floats) -> Floats:
        largest = means.max(axis=1)
        return 100.0 * (largest - means.min(axis=1)) / largest

    return Measured(bootstrap_interval(table, share), note)


@statistic(is_difference=True, takes_families=True)
def least_rise(
    results: StudyResults,
    metric: str,
    scheduler: str,
    along: str,
    levels: Span | None = None,
    *,
    where: Given = EVERYWHERE,
) -> Measured:
    """Return the smallest rise from one of the levels to the next [%].

    Raises
    ------
    InputError
        If there is one level alone.

    Parameters
    ----------
    results : StudyResults
    metric : str
    scheduler : str
        Label; of a family the variant that the claim chooses.
    along : str
        An axis.
    levels : sequence
        Values of the axis.
    where : mapping
        Axis -> value, or a tuple of values, of the runs that count.
    """
    chosen, table, note = _levels(results, metric, scheduler, along, where, levels)
    if len(chosen) < 2:
        raise InputError("least_rise needs two levels or more.")
    rises = [t_interval(percent_above(table[k + 1], table[k])) for k in range(len(chosen) - 1)]
    least = min(range(len(rises)), key=lambda k: rises[k].mean)
    one, other = (value_text(chosen[k].value) for k in (least, least + 1))
    return Measured(rises[least], joined(f"from {one} to {other}", note))
