"""What ``gridsched compare`` prints: energy and makespan, utility's share, or how jobs waited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from gridsched.cli.output import print_notes, print_table
from gridsched.metrics import Metric, compared_metrics
from gridsched.metrics.columns import Column, amount
from gridsched.metrics.table import is_metered
from gridsched.model.rules import EnergyBudget
from gridsched.model.signals import JOULES, UNITS, Unit

if TYPE_CHECKING:
    from gridsched.analysis.bounds import ScenarioBounds

_SCHEDULER = Column("scheduler", "scheduler")
_MAPPING_EVENT = Column("mapping_event_ms", "mapping\nevent\n[ms]", "figure")
#: Metrics that tell by how much a budget was exceeded.
EXCESSES = tuple(unit.excess for unit in UNITS.values())
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


def _columns(rows: Sequence[Mapping[str, Any]], also: Sequence[Metric], bounds: ScenarioBounds | None) -> list[Column]:
    """Return the columns of which the rows have values, and those of further metrics."""
    table, shown = compared_metrics(rows)
    hidden: set[str] = set()
    if bounds is not None:
        same = {"makespan_s", "energy_j"} - bounds.differing
        hidden |= {f"{metric.rpartition('_')[0]}_above_fixed_bound" for metric in same}
    columns = [each.column for each in [*shown, *(each for each in also if each not in shown)] if each.id not in hidden]
    return [_SCHEDULER, *columns, *([_MAPPING_EVENT] if table == "system" else [])]


def _has_energy(rows: Sequence[Mapping[str, Any]]) -> bool:
    return not all(np.isnan(row["energy_j"]) for row in rows)


def _notes(
    rows: Sequence[Mapping[str, Any]],
    bounds: ScenarioBounds | None,
    budget: EnergyBudget | None,
    window_s: tuple[float, float] | None,
) -> Iterator[str]:
    """Yield what must be known to read the table, a sentence each."""
    if not _has_energy(rows):
        yield NO_ENERGY
    elif is_metered(rows):
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


def _amount(unit: Unit, value: float) -> str:
    return amount(value, "J") if unit == JOULES else f"{amount(value, '')} {unit.words}"


def excess(budget: EnergyBudget, row: Mapping[str, Any]) -> float:
    """Return what a run exceeded its budget by, in the budget's unit; 0 where that is rounding.

    Parameters
    ----------
    budget : EnergyBudget
    row : mapping
        Metrics of the run.
    """
    by: float = row.get(budget.unit.excess, 0.0)
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
    kept = "; exceeded by " + ", ".join(f"{id} ({_amount(budget.unit, by)})" for id, by in over.items())
    return (
        f"Energy budget: {_amount(budget.unit, budget.amount)} {_in_periods(budget, 'in each')} "
        f"({budget.on_exhaustion}){kept if over else '; no run exceeded it'}."
    )
