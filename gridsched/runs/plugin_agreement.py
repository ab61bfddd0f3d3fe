"""Joules and grams of the model beside what SimGrid's plugins meter."""

from __future__ import annotations

from typing import Any

import numpy as np

from gridsched.energy import HostEnergyRow, compare_energy
from gridsched.errors import InputError, SimulationError
from gridsched.metrics.run_metrics import trace_carbon
from gridsched.runs.run import RunResult


def energy_check(result: RunResult) -> list[HostEnergyRow]:
    """Compare plugin and model joules host by host.

    Returns
    -------
    list of dict
        For each host: ``host``, ``role``, ``plugin_j``, ``model_j`` [J] and
        ``relative_difference`` and ``tolerance``, the most of it that is allowed; then a row ``total`` of the
        computing hosts.

    Raises
    ------
    InputError
        If the run was not metered.
    """
    if not result.plugin_j:
        raise InputError("This run has no plugin energy; validate needs --driver simgrid, and hosts with power.")
    return compare_energy(result.trace, result.plugin_j, result.energy)


def check_energy_agreement(result: RunResult) -> None:
    """Refuse a run whose plugin and model disagree on the energy of a host or of the grid.

    A run of the reference driver has no plugin, and one without power no energy: they pass.

    Raises
    ------
    SimulationError
        Where they differ by more than their tolerance, naming the host where they differ most and both figures.
    """
    if not result.plugin_j:
        return
    rows = energy_check(result)
    bad = [row for row in rows if not row["relative_difference"] <= row["tolerance"]]
    if not bad:
        return
    hosts = [row for row in bad if row["host"] != "total"] or bad
    worst = max(hosts, key=lambda row: (np.isnan(difference := row["relative_difference"]), difference))
    raise SimulationError(
        f"{result.trace.platform.name}: host {worst['host']!r} has energy_j {worst['plugin_j']!r} "
        f"by SimGrid's plugin and energy_model_j {worst['model_j']!r} by the model, a relative "
        f"difference of {worst['relative_difference']:.3g} where {worst['tolerance']:.3g} is allowed "
        f"({len(hosts)} of {len(rows) - 1} hosts differ). All figures of this run are left out: "
        "the platform or the scheduler does something the model does not know of; see 'gridsched "
        "platform check'."
    )


def carbon_check(result: RunResult) -> list[dict[str, Any]]:
    """Compare grams by SimGrid's joules with those of the model, host by host; none where not metered.

    Returns
    -------
    list of dict
        For each computing host, then for ``total``: ``host``, ``plugin_g``, ``model_g`` [g] and
        ``carbon_relative_difference``.
    """
    if result.grams is None or result.trace.carbon is None:
        return []
    rows: list[dict[str, Any]] = []
    for row in compare_energy(result.trace, result.grams, trace_carbon(result.trace)):
        host, by_joules, model = row["host"], row["plugin_j"], row["model_j"]
        rows.append({"host": host, "plugin_g": by_joules, "model_g": model})
        rows[-1]["carbon_relative_difference"] = row["relative_difference"]
    return rows
