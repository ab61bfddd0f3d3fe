"""What ``gridsched compare`` prints: energy and makespan, utility's share, or how jobs waited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from gridsched.analysis.bounds import ScenarioBounds
from gridsched.cli.tables import Column, prefix, print_notes, print_table
from gridsched.metrics import METRICS, Metric, utility_metric
from gridsched.model.budget import EnergyBudget


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
        "makespan_s", "makespan_above_best", "makespan_above_bound",
        "makespan_above_fixed_bound", "busy_time_s", "energy_j", "energy_model_j",
        "energy_above_best", "energy_above_bound", "energy_above_fixed_bound",
        "energy_idle_j", "energy_wasted_j", "energy_links_j", "hosts_used", "tasks_late",
        "tasks_missed", "money_spent", "profit", "profit_rate",
    ),
)  # fmt: skip
UTILITY_COLUMNS = (
    _SCHEDULER,
    *metric_columns(
        "window_utility", "utility", "utility_share_of_best", "money_spent", "window_energy_j",
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
        "tasks_late", "tasks_missed", "money_spent",
    ),
)  # fmt: skip
#: Keys that a table leaves out where no run has them.
_OPTIONAL = (
    "energy_links_j", "window_utility", "window_energy_j", "tasks_late", "tasks_missed", "profit",
    "profit_rate", "money_spent",
)  # fmt: skip
#: Columns without a value where the hosts have no power.
_OF_ENERGY = {
    "energy_j", "energy_model_j", "energy_above_best", "energy_above_bound",
    "energy_above_fixed_bound", "energy_idle_j", "energy_wasted_j", "energy_links_j",
}  # fmt: skip
NO_ENERGY = "No energy: the hosts have no power (--power none)."
#: An excess of less than this share of the budget is rounding.
ROUNDING = 1e-9


def free_boots(rows: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the line on runs in which hosts were switched on for nothing, if there are any."""
    ids = [row["scheduler"] for row in rows if row["provenance"].get("free_boots")]
    if not ids:
        return None
    return (
        f"{', '.join(ids)}: hosts boot in 0 s and for 0 J here. On a log's machine --boot S:W and "
        "--shutdown S:W say what it takes, in a platform the properties boot_time_s and "
        "shutdown_time_s."
    )


def mapping_event_s(row: Mapping[str, Any]) -> float | None:
    """Mean wall time of a mapping event [s], None if there was none."""
    events = row["mapping_events"]
    return row["timing"]["policy_s"] / events if events and "policy_s" in row["timing"] else None


def print_comparison(
    out: Console,
    rows: Sequence[Mapping[str, Any]],
    title: str,
    *,
    bounds: ScenarioBounds | None,
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
    bounds : ScenarioBounds, optional
        Where there are some.
    budget : EnergyBudget, optional
    window_s : tuple of float, optional
        Begin and end of the time that the window's columns cover [s].
    plot : Path, optional
        Figure that was drawn.
    also : sequence of Metric
        Those that are shown in any case.
    """
    columns = _columns(rows, also, bounds)
    shown = [{**row, "mapping_event_ms": _milliseconds(row)} for row in rows]
    print_table(out, columns, shown, title)
    print_notes(out, _notes(rows, bounds, budget, window_s))
    if plot is not None:
        out.print(f"Figure: {plot}")


def _columns(
    rows: Sequence[Mapping[str, Any]], also: Sequence[Metric], bounds: ScenarioBounds | None
) -> list[Column]:
    """Return the columns of which the rows have values, and those of further metrics."""
    first = rows[0]
    absent = {key for key in _OPTIONAL if key not in first}
    if not _is_metered(rows):
        absent.add("energy_j")
    if not _has_energy(rows):
        absent |= _OF_ENERGY
    for metric in ("makespan_s", "energy_j"):
        above = metric.rpartition("_")[0] + "_above"
        if bounds is None:
            absent.add(f"{above}_bound")
        if bounds is None or metric not in bounds.differing:
            absent.add(f"{above}_fixed_bound")
    if "window_utility" in first:
        absent.add("utility")
    if utility_metric(first) is not None:
        columns = UTILITY_COLUMNS
    else:
        columns = PARALLEL_COLUMNS if "mean_bounded_slowdown" in first else BAG_COLUMNS
    for each in also:
        if each.id not in {column.key for column in columns}:
            named = f"{each.row_name}\n[{{unit}}]" if each.unit else each.row_name
            header = each.header or named
            columns = (*columns, Column(each.id, header, each.form, each.unit, each.scale))
    return [column for column in columns if column.key not in absent]


def _is_metered(rows: Sequence[Mapping[str, Any]]) -> bool:
    return all("energy_relative_difference" in row for row in rows)


def _has_energy(rows: Sequence[Mapping[str, Any]]) -> bool:
    return not all(np.isnan(row["energy_j"]) for row in rows)


def _notes(
    rows: Sequence[Mapping[str, Any]], bounds: ScenarioBounds | None, budget: EnergyBudget | None,
    window_s: tuple[float, float] | None,
) -> Iterator[str]:  # fmt: skip
    """Yield what must be known to read the table, a sentence each."""
    if not _has_energy(rows):
        yield NO_ENERGY
    elif _is_metered(rows):
        worst = max(row["energy_relative_difference"] for row in rows)
        agree = f"agree to {worst:.1e} relative" if worst else "agree exactly"
        yield f"Plugin and model {agree}."
    else:
        yield "Energy by the model alone: the reference driver has no plugin."
    if window_s is not None:
        yield f"Window: from {window_s[0]:,.10g} s to {window_s[1]:,.10g} s."
    if budget is not None:
        yield _budget_line(budget, rows)
    if bounds is not None:
        yield from bounds.describe()
    for row in rows:
        if "delegated_to" in row["provenance"]:
            yield f"{row['scheduler']} followed {row['provenance']['delegated_to']}."
    if (line := free_boots(rows)) is not None:
        yield line


def _milliseconds(row: Mapping[str, Any]) -> str | None:
    seconds = mapping_event_s(row)
    return None if seconds is None else f"{1000 * seconds:.3g}"


def _joules(value: float) -> str:
    factor, letter = prefix(value)
    return f"{value / factor:,.6g} {letter}J"


def _money(value: float) -> str:
    return f"{value:,.6g} of money"


def excess(budget: EnergyBudget, row: Mapping[str, Any]) -> float:
    """Return what a run exceeded its budget by, in the budget's unit; 0 where that is rounding.

    Parameters
    ----------
    budget : EnergyBudget
    row : mapping
        Metrics of the run.
    """
    by: float = row.get("budget_excess_j" if budget.money is None else "money_excess", 0.0)
    return by if by > ROUNDING * budget.amount else 0.0


def _in_periods(budget: EnergyBudget, words: str) -> str:
    """Return for how long the budget is, in words."""
    if budget.period_s == float("inf"):
        return "for the whole run"
    return f"{words} {budget.period_s:,.10g} s"


def _budget_line(budget: EnergyBudget, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the budget in words, and which runs exceeded it."""
    if budget.amount == float("inf"):
        return f"Energy budget: none, {_in_periods(budget, 'in periods of')}."
    over = {row["scheduler"]: by for row in rows if (by := excess(budget, row))}
    words = _joules if budget.money is None else _money
    kept = "; exceeded by " + ", ".join(f"{id} ({words(by)})" for id, by in over.items())
    return (
        f"Energy budget: {words(budget.amount)} {_in_periods(budget, 'in each')} "
        f"({budget.on_exhaustion}){kept if over else '; no run exceeded it'}."
    )
