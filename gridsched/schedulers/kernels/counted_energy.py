"""What an option counts in the budget of the present period. Times [s], energies [J]."""

from __future__ import annotations

from gridsched.energy import energy_inside
from gridsched.model.prices import WEIGHT, counted_s
from gridsched.schedulers.kernels.compiled import inner

_uncounted_inside = inner(energy_inside)
_counted_s = inner(counted_s)


@inner
def inside_j(start, time, energy, day_end, weights):
    """Energy of a task before the day's end, as a budget counts it (algorithms B7).

    `weights` is a table of `gridsched.model.prices`; without columns a joule counts 1.
    """
    energy = _uncounted_inside(start, time, energy, day_end)
    if weights.shape[1] == 0 or not start < day_end:
        return energy
    until = min(start + time, day_end)
    if not until > start:
        return energy
    return energy * ((_counted_s(until, weights) - _counted_s(start, weights)) / (until - start))


@inner
def cheapest_inside_j(start, time, energy, day_end, weights):
    """What a task would count at the lowest price."""
    least = weights[WEIGHT, 0] if weights.shape[1] else 1.0
    for column in range(1, weights.shape[1]):
        least = min(least, weights[WEIGHT, column])
    return least * _uncounted_inside(start, time, energy, day_end)


#: A bound stays one, however it is rounded.
_CLEARLY_LESS = 1.0 - 1e-12


@inner
def least_inside_j(first, last, time, energy, day_end, weights):
    """What a task counts at least that starts between two times, the second before the day's end.

    Whenever it starts, it runs from the last of them until it ends after the first.
    """
    least = cheapest_inside_j(last, time, energy, day_end, weights)
    until = min(first + time, day_end)
    if weights.shape[1] and until > last:
        counted = _counted_s(until, weights) - _counted_s(last, weights)
        least = max(least, energy / time * counted * _CLEARLY_LESS)
    return least


@inner
def most_weight(weights):
    """The most that a joule counts at any time."""
    most = weights[WEIGHT, 0] if weights.shape[1] else 1.0
    for column in range(1, weights.shape[1]):
        most = max(most, weights[WEIGHT, column])
    return most
