"""Predicted chances beside what came of them: counts from which calibration is judged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gridsched.metrics.of_runs import is_missed
from gridsched.model.trace import Trace

#: Equal parts of [0, 1] in which predicted chances are counted.
CHANCE_BINS = 20


def chance_counts(trace: Trace, chance: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Count tasks by the chance to end in time that was predicted for them.

    Parameters
    ----------
    trace : Trace
    chance : ndarray of float64, shape (tasks,)
        Predicted chance of each task to meet its deadline; nan where none was predicted.

    Returns
    -------
    dict of str to ndarray of float64, shape (`CHANCE_BINS`,)
        ``chance_tasks``: tasks by chance; ``chance_sum``: the sum of their chances, which is how
        many are expected in time; ``chance_in_time``: how many were.

    Notes
    -----
    Only tasks whose deadline lies within the run count. Of others it is not known whether they
    would have met it, and those among them that did finish are the quick ones.
    """
    deadline = trace.tasks.deadline_s
    if deadline is None:
        none = np.zeros(CHANCE_BINS)
        return {"chance_tasks": none, "chance_sum": none, "chance_in_time": none}
    counted = np.flatnonzero(~np.isnan(chance) & (deadline <= trace.horizon_s))
    known = chance[counted]
    place = np.minimum((known * CHANCE_BINS).astype(np.int64), CHANCE_BINS - 1)
    in_time = ~is_missed(trace)[counted]

    def summed(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(place, weights, CHANCE_BINS).astype(np.float64)

    return {
        "chance_tasks": summed(np.ones(len(counted))),
        "chance_sum": summed(known),
        "chance_in_time": summed(in_time.astype(np.float64)),
    }
