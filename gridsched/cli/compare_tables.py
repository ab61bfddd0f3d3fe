"""What ``gridsched compare`` prints: energy and makespan, utility's share, or how jobs waited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from gridsched.cli.tables import Column, prefix, print_table
from gridsched.metrics import METRICS, Metric, utility_metric
from gridsched.model.budget import EnergyBudget
from gridsched.optimize.bag_bounds import BagBounds


def metric_columns(*ids: str) -> tuple[Column, ...]:
    """Return the columns of metrics as their entries in `METRICS` tell."""
    return tuple(
        Column(id, metric.header, metric.form, metric.unit, metric.scale)
        for id in ids
        for metric in [METRICS[id]]
    )


_SCHEDULER = Column("scheduler", "scheduler")
BAG_COLUMNS = (
    _SCHEDULER,
    *metric_columns(
        "makespan_s", "makespan_above_best", "makespan_above_bound", "busy_time_s",
        "energy_j", "energy_model_j", "energy_above_best", "energy_above_bound",
        "energy_idle_j", "energy_wasted_j", "energy_links_j", "hosts_used", "tasks_late",
        "tasks_missed", "profit", "profit_rate",
    ),
)  # fmt: skip
UTILITY_COLUMNS = (
    _SCHEDULER,
    *metric_columns(
        "window_utility", "utility", "utility_share_of_best", "window_energy_j",
        "energy_j", "energy_model_j", "tasks_finished", "tasks_dropped", "tasks_postponed",
        "tasks_late", "tasks_missed",
        "mean_waiting_time_s",
    ),
    Column("mapping_event_ms", "mapping\nevent\n[ms]", "figure"),
)  # fmt: skip
PARALLEL_COLUMNS = (
    _SCHEDULER,
    *metric_columns(
        "mean_waiting_time_s", "mean_bounded_slowdown", "utilisation", "makespan_s",
        "energy_j", "energy_model_j", "energy_above_best", "energy_idle_j", "tasks_finished",
        "tasks_late", "tasks_missed",
    ),
)  # fmt: skip
#: Keys that a table leaves out where no run has them.
_OPTIONAL = (
    "energy_links_j", "window_utility", "window_energy_j", "tasks_late", "tasks_missed", "profit",
    "profit_rate",
)  # fmt: skip
#: Columns without a value where the hosts have no power.
_OF_ENERGY = {
    "energy_j", "energy_model_j", "energy_above_best", "energy_above_bound", "energy_idle_j",
    "energy_wasted_j", "energy_links_j",
}  # fmt: skip
NO_ENERGY = "No energy: the hosts have no power (--power none)."
#: An excess of less than this share of the budget is rounding.
ROUNDING = 1e-9


def mapping_event_s(row: Mapping[str, Any]) -> float | None:
    """Mean wall time of a mapping event [s], None if there was none."""
    events = row["mapping_events"]
    return row["timing"]["policy_s"] / events if events and "policy_s" in row["timing"] else None


def print_comparison(
    out: Console,
    rows: Sequence[Mapping[str, Any]],
    title: str,
    *,
    bounds: BagBounds | None,
    budget: EnergyBudget | None,
    window_s: tuple[float, float] | None,
    plot: Path | None,
    also: Sequence[Metric] = (),
) -> None:
    """Print the table of a comparison and what must be known to read it.

    Parameters
    ----------
    out : Console
    rows : sequence of mapping
        Metrics of each scheduler, as ``--json`` gives them.
    title : str
        What was compared.
    bounds : BagBounds, optional
        Where there are some.
    budget : EnergyBudget, optional
    window_s : tuple of float, optional
        Begin and end of the time that the window's columns cover [s].
    plot : Path, optional
        Figure that was drawn.
    also : sequence of Metric
        Those that are shown in any case.
    """
    has_utility = utility_metric(rows[0]) is not None
    metered = all("energy_relative_difference" in row for row in rows)
    has_energy = not all(np.isnan(row["energy_j"]) for row in rows)
    absent = {key for key in _OPTIONAL if key not in rows[0]}
    if not metered:
        absent.add("energy_j")
    if not has_energy:
        absent |= _OF_ENERGY
    if bounds is None:
        absent |= {"makespan_above_bound", "energy_above_bound"}
    if has_utility and "window_utility" in rows[0]:
        absent.add("utility")
    is_parallel = "mean_bounded_slowdown" in rows[0]
    columns = (
        UTILITY_COLUMNS if has_utility else PARALLEL_COLUMNS if is_parallel else BAG_COLUMNS
    )  # fmt: skip
    for each in also:
        if each.id not in {column.key for column in columns}:
            header = each.header or f"{each.row_name}\n[{{unit}}]" if each.unit else each.row_name
            columns = (*columns, Column(each.id, header, each.form, each.unit, each.scale))
    shown = rows
    if has_utility:
        shown = [{**row, "mapping_event_ms": _milliseconds(row)} for row in rows]
    print_table(out, [column for column in columns if column.key not in absent], shown, title)
    if has_energy:
        _print_agreement(out, rows, metered=metered)
    else:
        out.print(NO_ENERGY)
    if window_s is not None:
        out.print(f"Window: from {window_s[0]:,.10g} s to {window_s[1]:,.10g} s.")
    if budget is not None:
        out.print(_budget_line(budget, rows))
    if bounds is not None:
        out.print(bounds.describe())
    for row in rows:
        if "delegated_to" in row["provenance"]:
            out.print(f"{row['scheduler']} followed {row['provenance']['delegated_to']}.")
    if plot is not None:
        out.print(f"Figure: {plot}")


def _milliseconds(row: Mapping[str, Any]) -> str | None:
    seconds = mapping_event_s(row)
    return None if seconds is None else f"{1000 * seconds:.3g}"


def _print_agreement(out: Console, rows: Sequence[Mapping[str, Any]], *, metered: bool) -> None:
    if metered:
        worst = max(row["energy_relative_difference"] for row in rows)
        agree = f"agree to {worst:.1e} relative" if worst else "agree exactly"
        out.print(f"Plugin and model {agree}.")
    else:
        out.print("Energy by the model alone: the reference driver has no plugin.")


def _joules(value: float) -> str:
    factor, letter = prefix(value)
    return f"{value / factor:,.6g} {letter}J"


def _in_periods(budget: EnergyBudget, words: str) -> str:
    """Return for how long the budget is, in words."""
    if budget.period_s == float("inf"):
        return "for the whole run"
    return f"{words} {budget.period_s:,.10g} s"


def _budget_line(budget: EnergyBudget, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the budget in words, and which runs exceeded it."""
    if budget.energy_j == float("inf"):
        return f"Energy budget: none, {_in_periods(budget, 'in periods of')}."
    over = {
        row["scheduler"]: row["budget_excess_j"] for row in rows
        if row.get("budget_excess_j", 0.0) > ROUNDING * budget.energy_j
    }  # fmt: skip
    kept = "; exceeded by " + ", ".join(f"{id} ({_joules(j)})" for id, j in over.items())
    return (
        f"Energy budget: {_joules(budget.energy_j)} {_in_periods(budget, 'in each')} "
        f"({budget.on_exhaustion}){kept if over else '; no run exceeded it'}."
    )
