"""What ``gridsched workload describe`` prints of a workload that brings its machines."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from gridsched.cli.tables import Column, print_table

#: Statistic -> its name and unit for people.
SYSTEM_SHOWN = {
    "tasks": ("tasks", ""),
    "horizon_s": ("simulated time", "s"),
    "tasks_per_day": ("tasks per day", ""),
    "machines": ("machines", ""),
    "machine_types": ("machine types", ""),
    "task_types": ("task types", ""),
    "pstates": ("P-states", ""),
    "offered_load": ("offered load", ""),
    "utility_classes": ("utility classes", ""),
    "utility_possible": ("utility at most", ""),
    "mean_priority": ("mean priority", ""),
    "mean_urgency": ("mean urgency", "1/unit"),
    "urgency_unit_s": ("urgency unit", "s"),
    "energy_budget_j": ("energy budget of a period", "J"),
}
_ARRIVALS = (
    Column("kind", "task types"),
    Column("task_types", "number", "figure"),
    Column("tasks", "tasks", "number"),
    Column("min_per_day", "per type and\nday: fewest", "rounded", scale="rate"),
    Column("mean_per_day", "mean", "rounded", scale="rate"),
    Column("max_per_day", "most", "rounded", scale="rate"),
)
_MATRICES = (
    Column("machine_types", "machine types"),
    Column("pstate", "P-state", "figure"),
    Column("entries", "entries", "number"),
    Column("mean", "mean", "number"),
    Column("cov", "cov", "rounded"),
    Column("min", "least", "number"),
    Column("max", "most", "number"),
)


def print_system(out: Console, found: dict[str, Any]) -> None:
    """Print what `workload_statistics` tells of arrivals and matrices."""
    out.print()
    print_table(out, _ARRIVALS, found["arrivals"], "Arrivals")
    for matrix, title in (("etc", "ETC [s]"), ("apc", "APC [W]"), ("eec", "EEC [J]")):
        rows = [row for row in found["matrices"] if row["matrix"] == matrix]
        out.print()
        print_table(out, _MATRICES, rows, title)
