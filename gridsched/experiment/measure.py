"""The metrics of a run as a campaign stores them."""

from __future__ import annotations

from functools import cache

from gridsched.experiment.run import RunResult, energy_check, run
from gridsched.experiment.scenario import Scenario
from gridsched.metrics import summary
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.tasks import make_tasks


def measure(result: RunResult) -> dict[str, float | int | None]:
    """Return every metric of a run; they repeat exactly, wall times are not among them.

    Beside those of `gridsched.metrics.summary`: ``energy_j``, the plugin's joules of the computing
    hosts (the model's with the reference driver), and the relative difference of plugin and model
    in total and of the host where it is largest (None without plugin).
    """
    metrics = summary(result.trace, result.energy)
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
    return {"energy_j": energy_j, **metrics, **differences}


@cache
def metric_names() -> tuple[str, ...]:
    """Return the names of all metrics, in the order of a report."""
    host = Host("host", (PState(1.0, 1.0, 1.0, 1.0),))
    nothing = Scenario(Platform((host,)), make_tasks([]), "wq", driver="reference")
    return tuple(measure(run(nothing)))
