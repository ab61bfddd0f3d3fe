"""Statistics of claims about ratios, about levels along a parameter, and about series.

Each takes the results, the claim, and the runs it chooses, and returns our number with a 95 %
interval that is paired over replicates; `gridsched.analysis.claims` tells what each means.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from gridsched.analysis.claim_values import (
    SERIES_OF,
    Floats,
    Level,
    Measured,
    Where,
    levels_of,
    replicate_values,
    series_values,
    where_of,
)
from gridsched.analysis.statistics import (
    Interval,
    bootstrap_interval,
    percent_more,
    ratio_of_means,
    t_interval,
)
from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import value_text
from gridsched.errors import InputError
from gridsched.spec.study_document import Claim


class _NoData(Exception):
    """What a claim needs is not there; says what."""


def measure_sweep(results: StudyResults, claim: Claim) -> Measured:
    """Return our number for a claim with one of the `MEASURES`.

    Raises
    ------
    InputError
        If the claim lacks a key that its statistic needs.
    """
    _check(claim)
    try:
        return MEASURES[claim.statistic](results, claim, where_of(results, claim.where))
    except _NoData as error:
        return Measured(t_interval([]), str(error))


def _check(claim: Claim) -> None:
    needs = {
        "best_level": ["along"], "best_level_steps": ["along", "against"],
        "best_over_last": ["along"], "spread": ["along"], "least_rise": ["along"],
        "ratio": [], "hours_later": ["against"], "percent_of_budget_used": ["hours"],
    }  # fmt: skip
    for key in ["scheduler", *needs[claim.statistic]]:
        if getattr(claim, key) is None:
            raise InputError(f"Claim {claim.id!r}: {claim.statistic} needs the key {key!r}.")
    is_of_series = claim.statistic in ("hours_later", "percent_of_budget_used")
    if is_of_series and claim.metric not in SERIES_OF:
        raise InputError(
            f"Claim {claim.id!r}: metric is {claim.metric!r}; series lead to "
            f"{', '.join(SERIES_OF)}."
        )


def _paired(results: StudyResults, columns: dict[Any, pd.Series]) -> tuple[pd.DataFrame, str]:
    """Return a row for each replicate that has all columns, and what to say if some have not."""
    table = pd.concat(columns, axis=1)
    whole = table.dropna()
    if not len(whole):
        lacking = [str(name) for name, values in columns.items() if not len(values)]
        what = f": nothing of {', '.join(lacking)}" if lacking else ""
        raise _NoData(f"no replicate has all runs that it needs{what}")
    n, planned = len(whole), results.study.replicates
    return whole, "" if n == planned else f"{n} of {planned} replicates have all its runs"


def _table(
    results: StudyResults, family: str, claim: Claim, where: Where
) -> tuple[list[Level], pd.DataFrame, str]:
    """Return the levels of a family and the metric of each, one row a replicate."""
    levels = levels_of(results, family, claim.along or "", claim.levels)
    columns = {
        k: replicate_values(results, level.label, {**where, **level.where}, claim.metric)
        for k, level in enumerate(levels)
    }
    return levels, *_paired(results, columns)


def _joined(*texts: str) -> str:
    return "; ".join(filter(None, texts))


# ---------------------------------------------------------------------- ratios


def _ratio(results: StudyResults, claim: Claim, where: Where) -> Measured:
    below = claim.against_metric or claim.metric
    against_where = where_of(results, claim.where, claim.against_where)
    table, note = _paired(results, {
        "above": replicate_values(results, claim.scheduler, where, claim.metric),
        "below": replicate_values(
            results, claim.against or claim.scheduler, against_where, below
        ),
    })  # fmt: skip
    return Measured(ratio_of_means(table["above"], table["below"]), note)


# ---------------------------------------------------------------------- levels


def _best_level(results: StudyResults, claim: Claim, where: Where) -> Measured:
    levels, table, note = _table(results, claim.scheduler, claim, where)
    best = bootstrap_interval(table, lambda means: means.argmax(axis=1))

    def value(k: float) -> float:
        return math.nan if math.isnan(k) else float(levels[int(k)].value)

    interval = Interval(value(best.mean), value(best.low), value(best.high), best.count)
    return Measured(interval, note)


def _best_level_steps(results: StudyResults, claim: Claim, where: Where) -> Measured:
    levels, one, note = _table(results, claim.scheduler, claim, where)
    others, two, _ = _table(results, claim.against, claim, where)
    if [each.value for each in levels] != [each.value for each in others]:
        raise InputError(f"Claim {claim.id!r}: {claim.against} has other levels.")
    both = pd.concat([one, two], axis=1, join="inner")
    split = len(levels)

    def steps(means: Floats) -> Floats:
        return means[:, :split].argmax(axis=1) - means[:, split:].argmax(axis=1)

    return Measured(bootstrap_interval(both, steps), _joined(f"against {claim.against}", note))


def _best_over_last(results: StudyResults, claim: Claim, where: Where) -> Measured:
    gain, text, note = _gain(results, claim.scheduler, claim, where)
    if claim.against is not None:
        other, other_text, _ = _gain(results, claim.against, claim, where)
        gain, text = (gain - other).dropna(), f"{text}; {claim.against}: {other_text}"
    return Measured(t_interval(gain), _joined(text, note))


def _gain(
    results: StudyResults, family: str, claim: Claim, where: Where
) -> tuple[pd.Series, str, str]:
    levels, table, note = _table(results, family, claim, where)
    best, last = int(table.mean().to_numpy().argmax()), len(levels) - 1
    gain = pd.Series(percent_more(table[best], table[last]), index=table.index)
    return gain, f"{value_text(levels[best].value)} over {value_text(levels[last].value)}", note


def _spread(results: StudyResults, claim: Claim, where: Where) -> Measured:
    _, table, note = _table(results, claim.scheduler, claim, where)

    def spread(means: Floats) -> Floats:
        largest = means.max(axis=1)
        return 100.0 * (largest - means.min(axis=1)) / largest

    return Measured(bootstrap_interval(table, spread), note)


def _least_rise(results: StudyResults, claim: Claim, where: Where) -> Measured:
    levels, table, note = _table(results, claim.scheduler, claim, where)
    if len(levels) < 2:
        raise InputError(f"Claim {claim.id!r}: least_rise needs two levels or more.")
    rises = [t_interval(percent_more(table[k + 1], table[k])) for k in range(len(levels) - 1)]
    least = min(range(len(rises)), key=lambda k: rises[k].mean)
    one, other = (value_text(levels[k].value) for k in (least, least + 1))
    return Measured(rises[least], _joined(f"from {one} to {other}", note))


# ---------------------------------------------------------------------- series


def _hours_later(results: StudyResults, claim: Claim, where: Where) -> Measured:
    never = 0

    def reached(time_h: Floats, used: Floats, budget_j: float) -> float:
        nonlocal never
        target = claim.share * budget_j
        if not used[-1] >= target:
            never += 1
            return float(time_h[-1])
        k = int(np.searchsorted(used, target))
        return float(time_h[0]) if k == 0 else float(
            np.interp(target, used[k - 1 : k + 1], time_h[k - 1 : k + 1])
        )  # fmt: skip

    table, note = _paired(results, {
        name: series_values(results, name, where, claim.metric, reached)
        for name in (claim.scheduler, claim.against)
    })  # fmt: skip
    later = table[claim.scheduler] - table[claim.against]
    at = table.mean()
    hours = f"{at[claim.scheduler]:.2f} h against {at[claim.against]:.2f} h"
    late = f"{never} runs never, counted at the end" if never else ""
    return Measured(t_interval(later), _joined(hours, late, note))


def _percent_of_budget_used(results: StudyResults, claim: Claim, where: Where) -> Measured:
    def used_percent(time_h: Floats, used: Floats, budget_j: float) -> float:
        def within(begin: float, end: float) -> float:
            at_begin, at_end = np.interp([begin, end], time_h, used)
            return float(100.0 * (at_end - at_begin) / budget_j)

        return within(*claim.hours) - (within(*claim.against_hours) if claim.against_hours else 0)

    values = series_values(results, claim.scheduler, where, claim.metric, used_percent)
    table, note = _paired(results, {claim.scheduler: values})
    return Measured(t_interval(table[claim.scheduler]), note)


MEASURES: dict[str, Callable[[StudyResults, Claim, Where], Measured]] = {
    "ratio": _ratio,
    "best_level": _best_level,
    "best_level_steps": _best_level_steps,
    "best_over_last": _best_over_last,
    "spread": _spread,
    "least_rise": _least_rise,
    "hours_later": _hours_later,
    "percent_of_budget_used": _percent_of_budget_used,
}
#: Those of them that are differences: their sign says who has more.
DIFFERENCES = ("best_level_steps", "best_over_last", "least_rise", "hours_later")
