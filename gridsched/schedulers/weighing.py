"""What an energy weighs to a scheduler: joules, money or grams, by time and by site."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.signals import EVEN, Signal
from gridsched.model.system import System
from gridsched.policy.base import check_choice

#: The parameter `weigh` of schedulers.
WEIGHS = ("energy", "money", "carbon")


def weighing_signal(owner: str, weigh: str, system: System) -> Signal:
    """Return what a joule weighs at each host and time, relative to its mean: 1 where joules count.

    Parameters
    ----------
    owner : str
        Id of the scheduler, for messages.
    weigh : {"energy", "money", "carbon"}
    system : System

    Raises
    ------
    InputError
        If there is no such choice, or the cost or emission of a joule is not given.
    """
    check_choice(owner, "weigh", weigh, WEIGHS)
    if weigh == "energy":
        return EVEN
    tariff = system.tariff
    signal = system.carbon if weigh == "carbon" else None if tariff is None else tariff.energy_price(system.platform)
    if signal is None:
        option = "a carbon intensity (--carbon FILE)" if weigh == "carbon" else "prices that vary (--prices FILE)"
        raise InputError(f"{owner}: weigh={weigh!r} needs {option}.")
    return signal.normalised() if signal.most > 0 else EVEN


def weighed_j(signals: Sequence[Signal], energy_j: Floats, now: float, run_time_s: Floats) -> Floats:
    """Return what energies count that are drawn from now on at constant powers [J].

    Parameters
    ----------
    signals : sequence of Signal
        Of each column: of the hosts of a type, or of a cluster.
    energy_j : ndarray of float64, shape (rows, columns, ...)
        [J].
    now : float
        [s].
    run_time_s : ndarray of float64, same shape
        [s].
    """
    columns = [signal.cost_j(energy_j[:, j], now, run_time_s[:, j]) for j, signal in enumerate(signals)]
    return np.ascontiguousarray(np.stack(columns, axis=1))


def signals_of_groups(signal: Signal, groups: Sequence[Integers]) -> list[Signal]:
    """Return what a joule weighs on average over each group of computing hosts."""
    return [signal.of_hosts(group) for group in groups]


def mean_weights(signals: Sequence[Signal], start: float, length: ArrayLike) -> Floats:
    """Return what a joule weighs on average over some time, by each signal."""
    return np.array([float(signal.mean(start, length)) for signal in signals])
