"""The series of a run, and the counts of its predicted chances, as a campaign stores them."""

from __future__ import annotations

from gridsched.errors import InputError
from gridsched.metrics import window_series
from gridsched.metrics.run_metrics import chance_counts
from gridsched.model.trace import Trace
from gridsched.schedulers.deadline.heuristics import CHANCE
from gridsched.spec.run import RunResult

#: The series of a run: cumulative within the window, at its steps.
SERIES = ("time_s", "energy_j", "utility")


def measure_series(result: RunResult, step_s: float) -> dict[str, list[float]]:
    """Return the `SERIES` of a run; they repeat exactly.

    Parameters
    ----------
    result : RunResult
    step_s : float
        Distance of their times [s].

    Raises
    ------
    InputError
        If the run's workload says no window.
    """
    window_s = result.scenario.window_s
    if window_s is None:
        raise InputError(
            "series_step_s: a series covers the window of the results; the workload "
            f"{result.scenario.tasks.name!r} has none. Leave series_step_s out, or use a "
            "generator that sets one ('utility')."
        )
    found = window_series(result.trace, window_s, step_s, result.facts.power)
    return {name: found[name].tolist() for name in SERIES if name in found}


def measure_chances(trace: Trace) -> dict[str, list[float]]:
    """Return the counts of `chance_counts`; empty where no chances are noted."""
    if CHANCE not in trace.notes:
        return {}
    return {name: each.tolist() for name, each in chance_counts(trace, trace.notes[CHANCE]).items()}
