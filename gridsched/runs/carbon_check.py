"""Grams of the model beside those made of what SimGrid's plugin meters."""

from __future__ import annotations

from typing import Any

from gridsched.energy import compare_energy
from gridsched.metrics.run_metrics import trace_carbon
from gridsched.runs.run import RunResult


def carbon_check(result: RunResult) -> list[dict[str, Any]]:
    """Compare grams by SimGrid's joules with those of the model, host by host; none where not metered.

    Returns
    -------
    list of dict
        For each computing host, then for ``total``: ``host``, ``plugin_g``, ``model_g`` [g] and
        ``carbon_relative_difference``; and ``simgrid_carbon_g`` where SimGrid has a plugin of its
        own for carbon [g].
    """
    if result.grams is None or result.trace.carbon is None:
        return []
    own = result.grams.by_plugin
    found: list[dict[str, Any]] = []
    for row in compare_energy(result.trace, result.grams.by_joules, trace_carbon(result.trace)):
        host, by_joules, model = row["host"], row["plugin_j"], row["model_j"]
        found.append({"host": host, "plugin_g": by_joules, "model_g": model})
        found[-1]["carbon_relative_difference"] = row["relative_difference"]
        if own is not None:
            found[-1]["simgrid_carbon_g"] = own.get(host, sum(own.values()))
    return found
