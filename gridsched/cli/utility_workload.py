"""What ``gridsched workload describe`` prints of a workload that brings its machines."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from gridsched.cli.tables import Column, print_table, print_values

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
    "money_budget": ("energy budget of a period, in money", ""),
}
#: What there is of parallel tasks besides.
PARALLEL_SHOWN = {
    "cores": ("cores", ""),
    "mean_cores_of_tasks": ("cores of a task, mean", ""),
    "median_cores_of_tasks": ("median", ""),
    "max_cores_of_tasks": ("most", ""),
    "tasks_that_fit_nowhere": ("tasks that fit nowhere", ""),
}
_CLUSTERS = (
    Column("cluster", "cluster"),
    Column("nodes", "nodes", "number"),
    Column("cores_per_node", "cores of\na node", "number"),
    Column("cores", "cores", "number"),
    Column("task_types", "task types\nthat run", "number"),
    Column("tasks", "tasks\nthat fit", "number"),
)
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
    """Print what `workload_statistics` tells of clusters, arrivals and matrices."""
    if "clusters" in found:
        print_values(out, [(name, found[key], "") for key, (name, _) in PARALLEL_SHOWN.items()])
        for note in found["notes"]:
            out.print(note[:1].upper() + note[1:] + ".")
        out.print()
        print_table(out, _CLUSTERS, found["clusters"], "Clusters")
    out.print()
    print_table(out, _ARRIVALS, found["arrivals"], "Arrivals")
    for matrix, title in (("etc", "ETC [s]"), ("apc", "APC [W]"), ("eec", "EEC [J]")):
        rows = [row for row in found["matrices"] if row["matrix"] == matrix]
        out.print()
        print_table(out, _MATRICES, rows, title)
