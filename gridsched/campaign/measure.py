"""The metrics of a run as a campaign stores them."""

from __future__ import annotations

from functools import cache

from gridsched.errors import InputError
from gridsched.metrics import summary, window_series
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.tasks import make_tasks
from gridsched.spec.run import RunResult, energy_check, run
from gridsched.spec.scenario import Scenario

#: What a run of tasks with utility functions has besides.
UTILITY_METRICS = (
    "utility", "utility_possible", "window_utility", "window_energy_j", "tasks_postponed",
    "budget_excess_j", "carried_over_j", "energy_budget_j",
)  # fmt: skip
#: The series of a run: cumulative within the window, at its steps.
SERIES = ("time_s", "energy_j", "utility")


def measure(result: RunResult) -> dict[str, float | int | None]:
    """Return every metric of a run; they repeat exactly, wall times are not among them.

    Beside those of `gridsched.metrics.summary`: ``energy_j``, the plugin's joules of the computing
    hosts (the model's with the reference driver), and the relative difference of plugin and model
    in total and of the host where it is largest (None without plugin); ``energy_budget_j``, the
    budget of a period, where there is one.
    """
    metrics = summary(result.trace, result.energy, result.scenario.window_s)
    differences: dict[str, float | None] = {
        "energy_relative_difference": None, "energy_worst_host_difference": None,
    }  # fmt: skip
    energy_j = metrics["energy_model_j"]
    if result.plugin_j is not None:
        *hosts, total = energy_check(result)
        energy_j = result.energy_plugin_j
        differences = {
            "energy_relative_difference": total["relative_difference"],
            "energy_worst_host_difference": max(
                (row["relative_difference"] for row in hosts), default=0.0
            ),
        }
    budget = result.scenario.budget
    budgets = {} if budget is None else {"energy_budget_j": budget.energy_j}
    return {"energy_j": energy_j, **metrics, **differences, **budgets}


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
    found = window_series(result.trace, window_s, step_s)
    return {name: found[name].tolist() for name in SERIES if name in found}


@cache
def metric_names() -> tuple[str, ...]:
    """Return the names of all metrics, in the order of a report."""
    host = Host("host", (PState(1.0, 1.0, 1.0, 1.0),))
    nothing = Scenario(Platform((host,)), make_tasks([]), "wq", driver="reference")
    return tuple(measure(run(nothing)))
