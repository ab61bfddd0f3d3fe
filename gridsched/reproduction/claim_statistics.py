"""The statistics that a claim may name: one table, each with what it needs and its function.

**Statistics** (`Claim.statistic`). A cell is one combination of all axes besides scheduler and
replicate; `where` chooses the cells.

=========================  ======================================================================
``mean``                   mean of `metric` of `scheduler`
``mean_difference``        mean of `metric` of `against` minus that of `scheduler`, paired
``least_difference``       lower end of the interval of ``mean_difference``: what it is at least
``median``                 median over replicates of `metric` of `scheduler`
``median_difference``      that of `against` minus that of `scheduler`
``percent_more``           how much more `against` needs than `scheduler` [%], paired over
                           replicates; over several cells, the mean of each replicate's mean
``largest_percent_more``   the largest ``percent_more`` of all cells, with that cell's interval
``smallest_percent_more``  the smallest, likewise
``worst_rank``             the highest rank of `scheduler` by its mean in any cell; 1 is the least
``rises_along``            number of cells in which ``percent_more`` is larger at the second value
                           of the axis `along` than at the first
``ratio``                  mean of `metric` of `scheduler` over the mean of `against_metric` of
                           `against` (default: the same) in `against_where`
``best_level``             the level of `along` (a parameter of the family `scheduler`, or an axis)
                           with the largest mean of `metric`
``best_level_steps``       by how many levels that of `scheduler` lies above that of `against`
``best_over_last``         how much more the best level has than the last one [%]; with `against`,
                           by how much more than that family's gain [points of percent]
``spread``                 largest minus least mean of `levels`, over the largest [%]
``least_rise``             the smallest rise from one of `levels` to the next [%]
``hours_later``            how much later `scheduler` has used `share` of its budget than `against`
``percent_of_budget_used`` share of the budget used in `hours` [%]; with `against_hours`, minus that
                           used in these
=========================  ======================================================================

Those of levels have percentile bootstrap intervals over replicates where no t-interval exists
(``best_level``, ``best_level_steps``, ``spread``); a level's interval tells which levels could as
well be the best. ``median_difference`` has one, too, and ``median`` the interval of its order
statistics. With `variant`, `scheduler` and `against` may be families: the variant with the largest
or least mean of a metric is taken. Our number is multiplied by `scale`.

`against` is a label, or ``best_other``: in each cell the scheduler with the least mean besides
`scheduler`. It is chosen by the same runs, so that its lead is a little overestimated.

Each takes a `Request` and returns our number with a 95 % interval that is paired over replicates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gridsched.analysis import statistics
from gridsched.analysis.claim_values import Measured, replicate_values, where_of
from gridsched.analysis.statistics import (
    Interval,
    bootstrap_interval,
    difference_of_medians,
    median_interval,
    percent_more,
    ratio_of_means,
    replicate_means,
    t_interval,
)
from gridsched.analysis.study_results import restricted
from gridsched.analysis.texts import axis_text, value_text
from gridsched.arrays import Floats
from gridsched.errors import InputError
from gridsched.reproduction.claim_requests import BEST_OTHER, Request, joined
from gridsched.runs.expressions import full_name


def _mean(request: Request) -> Measured:
    finished, claim = request.finished, request.claim
    whole = finished[finished["scheduler"] == request.scheduler]
    return Measured(t_interval(replicate_means(whole, request.cells, claim.metric)), request.missing)


def _differences(request: Request) -> tuple[pd.DataFrame, str]:
    """Return the paired differences of each cell and replicate, and against whom they are."""
    claim, cells = request.claim, request.cells
    _ = request.finished  # raises NoData where there are too few
    pairs, best = request.results.differences(claim.metric, request.scheduler)
    where = {axis: values for axis, values in request.where.items() if axis in cells}
    pairs = restricted(pairs, where)
    if claim.against != BEST_OTHER:
        return pairs[pairs["scheduler"] == claim.against], f"against {claim.against}"
    chosen = pairs.merge(restricted(best, where), on=[*cells, "scheduler"])
    names = chosen["scheduler"].unique()
    shown = ", ".join(names) if len(names) <= 2 else f"{len(names)} different schedulers"
    return chosen, f"against {shown}"


def _percent_more(request: Request) -> Measured:
    pairs, against = _differences(request)
    interval = t_interval(replicate_means(pairs, request.cells, "difference_percent"))
    return Measured(interval, joined(against, request.missing))


def _extreme_percent_more(request: Request) -> Measured:
    pairs, _ = _differences(request)
    table = statistics.group_intervals(pairs, [*request.cells, "scheduler"], "difference_percent")
    largest = request.claim.statistic.startswith("largest")
    row = table.loc[table["mean"].idxmax() if largest else table["mean"].idxmin()]
    mean, low, high = map(float, row[["mean", "low", "high"]])
    interval = Interval(mean, low, high, int(row["count"]))
    place = axis_text({name: row[name] for name in request.results.varying_axes})
    text = f"{place}, against {row['scheduler']}".lstrip(", ")
    return Measured(interval, joined(text, request.missing))


def _worst_rank(request: Request) -> Measured:
    table = statistics.mean_ranks(request.finished, request.cells, request.claim.metric)
    ranks = table.loc[table["scheduler"] == request.scheduler, "rank"]
    text = f"rank 1 in {int((ranks == 1).sum())} of {len(ranks)} cells"
    return Measured(Interval(float(ranks.max()), count=len(ranks)), joined(text, request.missing))


def _rises_along(request: Request) -> Measured:
    results = request.results
    axis = full_name(request.claim.along or "", [each.name for each in results.study.axes])
    first, second = results.values_of(axis)[:2]
    pairs, _ = _differences(request)
    table = statistics.group_intervals(pairs, request.cells, "difference_percent")
    others = [name for name in request.cells if name != axis]
    at_first, at_second = (table.loc[table[axis] == value, [*others, "mean"]] for value in (first, second))
    both = at_first.merge(at_second, on=others) if others else at_first.merge(at_second, how="cross")
    rising = int((both["mean_y"] > both["mean_x"]).sum())
    text = f"rises in {rising} of {len(both)} pairs from {first} to {second}"
    return Measured(Interval(float(rising), count=len(both)), joined(text, request.missing))


def _median(request: Request) -> Measured:
    table, note = request.of_replicates(request.scheduler)
    return Measured(median_interval(table[request.scheduler]), note)


def _difference(request: Request) -> Measured:
    table, note = request.of_replicates(request.scheduler, request.against)
    one, other, text = table[request.against], table[request.scheduler], joined(f"against {request.against}", note)
    if request.claim.statistic == "median_difference":
        return Measured(difference_of_medians(one, other), text)
    mean = t_interval(one - other)
    if request.claim.statistic == "least_difference":
        mean = Interval(mean.low, count=mean.count)
    return Measured(mean, text)


def _ratio(request: Request) -> Measured:
    claim, results, where = request.claim, request.results, request.where
    below = claim.against_metric or claim.metric
    against_where = where_of(results, claim.where, claim.against_where)
    table, note = request.paired(
        {
            "above": replicate_values(results, request.scheduler, where, claim.metric),
            "below": replicate_values(results, claim.against or request.scheduler, against_where, below),
        }
    )
    return Measured(ratio_of_means(table["above"], table["below"]), note)


def _hours_later(request: Request) -> Measured:
    share, never = request.claim.share, 0

    def reached(time_h: Floats, used: Floats, budget_j: float) -> float:
        nonlocal never
        target = share * budget_j
        if not used[-1] >= target:
            never += 1
            return float(time_h[-1])
        k = int(np.searchsorted(used, target))
        return float(time_h[0]) if k == 0 else float(np.interp(target, used[k - 1 : k + 1], time_h[k - 1 : k + 1]))

    table, note = request.of_series(reached, request.scheduler, request.against)
    later = table[request.scheduler] - table[request.against]
    at = table.mean()
    hours = f"{at[request.scheduler]:.2f} h against {at[request.against]:.2f} h"
    late = f"{never} runs never, counted at the end" if never else ""
    return Measured(t_interval(later), joined(hours, late, note))


def _percent_of_budget_used(request: Request) -> Measured:
    hours, against_hours = request.claim.hours, request.claim.against_hours
    assert hours is not None  # `check_claim` asks for it

    def used_percent(time_h: Floats, used: Floats, budget_j: float) -> float:
        def within(begin: float, end: float) -> float:
            at_begin, at_end = np.interp([begin, end], time_h, used)
            return float(100.0 * (at_end - at_begin) / budget_j)

        return within(*hours) - (within(*against_hours) if against_hours else 0)

    table, note = request.of_series(used_percent, request.scheduler)
    return Measured(t_interval(table[request.scheduler]), note)


def _best_level(request: Request) -> Measured:
    """Return the level with the largest mean."""
    levels, table, note = request.levels(request.scheduler)
    best = bootstrap_interval(table, lambda means: means.argmax(axis=1))

    mean, low, high = (
        math.nan if math.isnan(k) else float(levels[int(k)].value) for k in (best.mean, best.low, best.high)
    )
    return Measured(Interval(mean, low, high, best.count), note)


def _best_level_steps(request: Request) -> Measured:
    """Return by how many levels the best one of a family lies above that of another.

    Raises
    ------
    InputError
        If the families have other levels.
    """
    claim = request.claim
    levels, one, note = request.levels(request.scheduler)
    others, two, _ = request.levels(request.against)
    if [each.value for each in levels] != [each.value for each in others]:
        raise InputError(f"Claim {claim.id!r}: {request.against} has other levels.")
    both = pd.concat([one, two], axis=1, join="inner")
    split = len(levels)

    def steps(means: Floats) -> Floats:
        return means[:, :split].argmax(axis=1) - means[:, split:].argmax(axis=1)

    return Measured(bootstrap_interval(both, steps), joined(f"against {request.against}", note))


def _best_over_last(request: Request) -> Measured:
    """Return how much more the best level has than the last one [%]."""
    claim = request.claim
    gain, text, note = _gain(request, request.scheduler)
    if claim.against is not None:
        other, other_text, _ = _gain(request, claim.against)
        gain, text = (gain - other).dropna(), f"{text}; {claim.against}: {other_text}"
    return Measured(t_interval(gain), joined(text, note))


def _gain(request: Request, family: str) -> tuple[pd.Series, str, str]:
    levels, table, note = request.levels(family)
    best, last = int(table.mean().to_numpy().argmax()), len(levels) - 1
    gain = pd.Series(percent_more(table[best], table[last]), index=table.index)
    return gain, f"{value_text(levels[best].value)} over {value_text(levels[last].value)}", note


def _spread(request: Request) -> Measured:
    """Return the largest minus the least mean of the levels, over the largest [%]."""
    _, table, note = request.levels(request.scheduler)

    def share(means: Floats) -> Floats:
        largest = means.max(axis=1)
        return 100.0 * (largest - means.min(axis=1)) / largest

    return Measured(bootstrap_interval(table, share), note)


def _least_rise(request: Request) -> Measured:
    """Return the smallest rise from one level to the next [%].

    Raises
    ------
    InputError
        If there is one level alone.
    """
    claim = request.claim
    levels, table, note = request.levels(request.scheduler)
    if len(levels) < 2:
        raise InputError(f"Claim {claim.id!r}: least_rise needs two levels or more.")
    rises = [t_interval(percent_more(table[k + 1], table[k])) for k in range(len(levels) - 1)]
    least = min(range(len(rises)), key=lambda k: rises[k].mean)
    one, other = (value_text(levels[k].value) for k in (least, least + 1))
    return Measured(rises[least], joined(f"from {one} to {other}", note))


@dataclass(frozen=True)
class Statistic:
    """A way to our number.

    Attributes
    ----------
    function : callable
        Told the `Request`; raises `NoData` where runs are lacking.
    needs : tuple of str
        Keys of the claim without which it means nothing.
    is_difference : bool
        Whether its sign says who has more.
    takes_families : bool
        Whether `scheduler` and `against` may be families of labels.
    of_series : bool
        Whether the metric must be one that a series leads to.
    """

    function: Callable[[Request], Measured]
    needs: tuple[str, ...] = ()
    is_difference: bool = False
    takes_families: bool = False
    of_series: bool = False


STATISTICS: dict[str, Statistic] = {
    "mean": Statistic(_mean),
    "median": Statistic(_median, takes_families=True),
    **{
        name: Statistic(_difference, ("against",), is_difference=True, takes_families=True)
        for name in ("mean_difference", "least_difference", "median_difference")
    },
    "percent_more": Statistic(_percent_more, ("against",), is_difference=True),
    "largest_percent_more": Statistic(_extreme_percent_more, ("against",), is_difference=True),
    "smallest_percent_more": Statistic(_extreme_percent_more, ("against",), is_difference=True),
    "worst_rank": Statistic(_worst_rank),
    "rises_along": Statistic(_rises_along, ("against", "along")),
    "ratio": Statistic(_ratio, takes_families=True),
    "best_level": Statistic(_best_level, ("along",), takes_families=True),
    "best_level_steps": Statistic(_best_level_steps, ("along", "against"), is_difference=True, takes_families=True),
    "best_over_last": Statistic(_best_over_last, ("along",), is_difference=True, takes_families=True),
    "spread": Statistic(_spread, ("along",), takes_families=True),
    "least_rise": Statistic(_least_rise, ("along",), is_difference=True, takes_families=True),
    "hours_later": Statistic(_hours_later, ("against",), is_difference=True, takes_families=True, of_series=True),
    "percent_of_budget_used": Statistic(_percent_of_budget_used, ("hours",), takes_families=True, of_series=True),
}
