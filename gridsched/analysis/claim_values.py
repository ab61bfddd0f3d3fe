"""What claims and declared figures are computed from: levels, variants, one number a replicate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gridsched.analysis.statistics import Interval, replicate_means
from gridsched.analysis.study_results import StudyResults, restricted
from gridsched.arrays import Floats
from gridsched.campaign.row_table import SERIES_PREFIX
from gridsched.errors import InputError
from gridsched.runs.run_filter import full_name

#: Metric of a whole window -> the series that leads to it.
SERIES_OF = {"window_energy_j": "energy_j", "window_utility": "utility"}
Where = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Measured:
    """Our number for a claim: its interval and, in words, what it is of."""

    interval: Interval
    detail: str = ""


@dataclass(frozen=True)
class Level:
    """One level of what varies: its value, the scheduler's label, and further axis values."""

    value: Any
    label: str
    where: Where


def flat(where: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested tables of axis values with dotted names; `prefix` comes before each."""
    by_key: dict[str, Any] = {}
    for key, value in where.items():
        name = prefix + key
        by_key |= flat(value, f"{name}.") if isinstance(value, dict) else {name: value}
    return by_key


def where_of(results: StudyResults, *wheres: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return axis -> values: those of the study's report, then each of `wheres` before them."""
    axes = [axis.name for axis in results.study.axes]
    chosen = dict(results.study.report_where)
    for name, value in (item for where in wheres for item in flat(where).items()):
        axis = full_name(name, axes)
        is_value = value in results.values_of(axis)
        chosen[axis] = (value,) if is_value or not isinstance(value, tuple | list) else tuple(value)
    return chosen


def levels_of(
    results: StudyResults, family: str, along: str, where: Where, among: tuple[float, float] | None = None
) -> list[Level]:
    """Return the levels of a scheduler along one of its parameters, or along an axis.

    Parameters
    ----------
    results : StudyResults
    family : str
        The scheduler's label without parameters; or with them, to look at it alone along an axis.
    along : str
        Name of the parameter or axis.
    where : mapping
        Axis -> values; levels along an axis are those of them.
    among : (float, float), optional
        Only levels from the first to the second.

    Raises
    ------
    InputError
        If it does not vary along it, or by something else as well.
    """
    known = results.study.schedulers
    variants = [each for each in known if each.label == family] or [each for each in known if each.family == family]
    levels = [Level(each.varied[along], each.label, {}) for each in variants if along in each.varied]
    if not levels and len(variants) == 1:
        axis = full_name(along, [each.name for each in results.study.axes])
        levels = [
            Level(value, variants[0].label, {axis: (value,)}) for value in where.get(axis, results.values_of(axis))
        ]
    values = [level.value for level in levels]
    if not levels or len(set(values)) < len(values):
        raise InputError(
            f"{family!r} has {len(levels)} variants for {len(set(values))} values of {along!r}; it "
            "needs one for each value of a parameter or axis that varies."
        )
    if among is None:
        return levels
    low, high = among
    kept = [each for each in levels if not isinstance(each.value, str) and low <= each.value <= high]
    if not kept:
        raise InputError(f"{family!r} has no {along!r} from {low:g} to {high:g}.")
    return kept


def chosen_variant(results: StudyResults, family: str, variant: str, where: Where) -> str:
    """Return the label of a family's variant with the ``largest`` or ``least`` mean of a metric.

    Chosen by the same runs that are then measured, so its lead is a little overestimated. A label
    of its own is returned as it is; so is a family none of whose variants has finished runs.
    """
    labels = [each.label for each in results.study.schedulers if each.family == family]
    direction, metric = variant.split()
    means = {label: float(replicate_values(results, label, where, metric).mean()) for label in labels}
    known = {label: mean for label, mean in means.items() if not np.isnan(mean)}
    if family in results.labels or not known:
        return family
    return (max if direction == "largest" else min)(known, key=known.__getitem__)


def replicate_values(results: StudyResults, label: str, where: Where, metric: str) -> pd.Series:
    """Return the mean of a metric in each replicate of which all chosen runs have finished."""
    if metric not in results.runs:
        return pd.Series(dtype=np.float64)
    key = label, metric, tuple(sorted((axis, repr(values)) for axis, values in where.items()))
    if key not in results.memo:
        chosen = restricted(results.plain, {**where, "scheduler": (label,)})
        results.memo[key] = _by_replicate(results, chosen, results.runs.loc[chosen.index, metric])
    return results.memo[key]


def series_values(
    results: StudyResults, label: str, where: Where, metric: str, number: Callable[[Floats, Floats, float], float]
) -> pd.Series:
    """Return a number of the series of each replicate of which all chosen runs have finished.

    Parameters
    ----------
    results : StudyResults
    label : str
    where : mapping
    metric : str
        A key of `SERIES_OF`.
    number : callable
        Called with the times since the window's begin [h], the cumulative values, and the budget [J].

    Raises
    ------
    InputError
        If no series leads to the metric.
    """
    if metric not in SERIES_OF:
        raise InputError(f"metric is {metric!r}; series lead to {', '.join(SERIES_OF)}.")
    names = [SERIES_PREFIX + "time_s", SERIES_PREFIX + SERIES_OF[metric]]
    if not set(names) <= set(results.runs):
        return pd.Series(dtype=np.float64)
    chosen = restricted(results.runs, {**where, "scheduler": (label,)})
    budget = chosen.get("energy_budget_j", pd.Series(np.nan, index=chosen.index))
    rows = zip(*(chosen[name] for name in names), budget, strict=True)
    numbers = [
        np.nan
        if time is None or isinstance(time, float)
        else number((np.asarray(time) - time[0]) / 3600.0, np.asarray(values), float(limit))
        for time, values, limit in rows
    ]
    return _by_replicate(results, chosen, pd.Series(numbers, index=chosen.index, dtype=np.float64))


def _by_replicate(results: StudyResults, chosen: pd.DataFrame, values: pd.Series) -> pd.Series:
    finished = chosen.assign(value=values.where(chosen["status"] == "finished"))
    return replicate_means(finished, results.cell_axes, "value")
