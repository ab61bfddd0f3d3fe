"""Statistics of claims that look along levels: those of a parameter of a family, or of an axis.

`gridsched.analysis.claim_statistics` says what each is.
"""

from __future__ import annotations

import math

import pandas as pd

from gridsched.analysis.claim_requests import Request, joined
from gridsched.analysis.claim_values import Floats, Measured
from gridsched.analysis.statistics import Interval, bootstrap_interval, percent_more, t_interval
from gridsched.analysis.texts import value_text
from gridsched.errors import InputError


def best_level(request: Request) -> Measured:
    """Return the level with the largest mean."""
    levels, table, note = request.levels(request.scheduler)
    best = bootstrap_interval(table, lambda means: means.argmax(axis=1))

    def value(k: float) -> float:
        return math.nan if math.isnan(k) else float(levels[int(k)].value)

    interval = Interval(value(best.mean), value(best.low), value(best.high), best.count)
    return Measured(interval, note)


def best_level_steps(request: Request) -> Measured:
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


def best_over_last(request: Request) -> Measured:
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


def spread(request: Request) -> Measured:
    """Return the largest minus the least mean of the levels, over the largest [%]."""
    _, table, note = request.levels(request.scheduler)

    def share(means: Floats) -> Floats:
        largest = means.max(axis=1)
        return 100.0 * (largest - means.min(axis=1)) / largest

    return Measured(bootstrap_interval(table, share), note)


def least_rise(request: Request) -> Measured:
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
