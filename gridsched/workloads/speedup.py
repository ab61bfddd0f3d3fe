"""How long a parallel task takes on several nodes: Downey's model of speed-up."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gridsched.arrays import Floats


def downey_time(nodes: ArrayLike, parallelism: ArrayLike, sigma: ArrayLike) -> Floats:
    """Return the run time T(n) in units of the parallel part's shortest time.

    Parameters
    ----------
    nodes : array_like
        n, at least 1.
    parallelism : array_like
        A, the mean parallelism, at least 1.
    sigma : array_like
        Length of the sequential part, which is also the spread of the parallelism; at least 1.

    Returns
    -------
    ndarray of float64
        Of the shape to which the arguments broadcast.

    Notes
    -----
    ``T(n) = sigma + n_max / n`` up to ``n_max = A + A sigma - sigma`` nodes, ``sigma + 1`` beyond;
    ``T(1) = A (1 + sigma)``.

    References
    ----------
    A. B. Downey: A model for speedup of parallel programs. Technical report UCB/CSD-97-933,
    University of California, Berkeley, 1997.
    """
    n, a = np.asarray(nodes, dtype=np.float64), np.asarray(parallelism, dtype=np.float64)
    sequential = np.asarray(sigma, dtype=np.float64)
    most = a + a * sequential - sequential
    return sequential + np.maximum(most / n, 1.0)


def downey_speedup(nodes: ArrayLike, parallelism: ArrayLike, sigma: ArrayLike) -> Floats:
    """Return how much faster n nodes are than one: ``T(1) / T(n)``, at most A.

    Parameters
    ----------
    nodes, parallelism, sigma : array_like
        As for `downey_time`.
    """
    return downey_time(1, parallelism, sigma) / downey_time(nodes, parallelism, sigma)
