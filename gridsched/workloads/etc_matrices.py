"""Random ETC and APC matrices of types of tasks, and how P-states change them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from gridsched.arrays import Floats

#: Draws of the factors of a slower P-state before what is left is clamped.
MAX_REDRAWS = 50
#: Smaller ones are none: their squares would leave the range of floats.
_SMALLEST_COV = 1e-9


def gamma(rng: np.random.Generator, mean: ArrayLike, cov: float, shape: int | tuple[int, ...]) -> Floats:
    """Draw from gamma distributions given by mean and coefficient of variation.

    Parameters
    ----------
    rng : numpy.random.Generator
    mean : array_like
        Broadcasts to `shape`.
    cov : float
        Standard deviation / mean; less than 1e-9 gives the means themselves.
    shape : int or tuple of int
    """
    mean = np.broadcast_to(np.asarray(mean, dtype=np.float64), shape)
    if cov < _SMALLEST_COV:
        return mean.copy()
    return mean * rng.gamma(1.0 / cov**2, cov**2, shape)


def cvb(rng: np.random.Generator, mean: float, task_cov: float, machine_cov: float, rows: int, columns: int) -> Floats:
    """Draw a matrix by the coefficient-of-variation method.

    Parameters
    ----------
    rng : numpy.random.Generator
    mean : float
    task_cov : float
        Of the rows' means.
    machine_cov : float
        Of the entries of a row around its mean.
    rows, columns : int

    Returns
    -------
    ndarray of float64, shape (rows, columns)

    References
    ----------
    Ali, Siegel, Maheswaran, Hensgen, Ali: Representing task and machine heterogeneities for
    heterogeneous computing systems. Tamkang J. of Science and Engineering 3(3), 2000.
    """
    row_mean = gamma(rng, mean, task_cov, rows)
    return gamma(rng, row_mean[:, None], machine_cov, (rows, columns))


def pstate_factors(
    rng: np.random.Generator,
    rows: int,
    columns: int,
    power_factors: Sequence[float],
    *,
    type_cov: float,
    power_cov: float,
    time_cov: float,
) -> tuple[Floats, Floats]:
    """Draw by what each P-state multiplies time and dynamic power.

    Parameters
    ----------
    rng : numpy.random.Generator
    rows, columns : int
        Task types and machine types.
    power_factors : sequence of float
        Nominal factor f of the dynamic power of each P-state; that of P-state 0 is 1.
    type_cov : float
        Of q, one for each task type: how much it gains from speed.
    power_cov, time_cov : float
        Around the nominal factors.

    Returns
    -------
    time, power : ndarray of float64, shape (task types, machine types, P-states)
        ``1 / Gamma(sqrt(q f), time_cov)``, at least 1, and ``Gamma(f, power_cov)``; 1 in P-state 0.

    Notes
    -----
    P-state 0 must be the fastest: a task type with a time factor below 1 gets a new q and new
    factors, up to `MAX_REDRAWS` times; what is then still below 1 is set to 1.
    """
    f = np.asarray(power_factors, dtype=np.float64)
    shape = (rows, columns, len(f))
    power = gamma(rng, f, power_cov, shape)
    power[..., 0] = 1.0
    time = np.zeros(shape)
    again = np.arange(rows)
    for _ in range(1 + MAX_REDRAWS):
        q = gamma(rng, 1.0, type_cov, len(again))
        speed = np.sqrt(q[:, None, None] * f)
        time[again] = 1.0 / gamma(rng, speed, time_cov, (len(again), columns, len(f)))
        time[..., 0] = 1.0
        again = np.flatnonzero((time < 1.0).any(axis=(1, 2)))
        if not len(again):
            break
    return np.maximum(time, 1.0), power
