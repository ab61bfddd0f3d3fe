"""``--group-by``: metrics of groups of jobs, printed and written by ``run`` and ``compare``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from rich.console import Console

from gridsched.cli.output import listed_with_outputs
from gridsched.cli.tables import print_table
from gridsched.metrics.columns import Column
from gridsched.metrics.group_metrics import utilisation_keys

#: Rows of groups by what the jobs are grouped by.
Groups = Mapping[str, Sequence[Mapping[str, Any]]]

GroupByOption = Annotated[
    list[str] | None,
    listed_with_outputs(
        metavar="GROUP",
        help="Group parallel jobs by partition, size, user, or another attribute of the log; repeatable.",
    ),
]
#: Name of the file of groups beside that of ``-o``.
TABLE = "groups"
_SCHEDULER = Column("scheduler", "scheduler")
_COLUMNS = (
    Column("jobs", "jobs", "number"),
    Column("core_hours", "core\nhours", "rounded"),
    Column("mean_waiting_s", "mean\nwait [{unit}]", "rounded", "s"),
    Column("mean_bounded_slowdown", "mean bounded\nslowdown", "rounded"),
    Column("unfairness_s", "later than\nFCFS [{unit}]", "rounded", "s"),
    Column("energy_j", "energy\n[{unit}]", "rounded", "J"),
)


def written_groups(groups: Groups) -> dict[str, list[dict[str, Any]]]:
    """Return the table of groups that ``-o`` writes beside the .csv or .parquet file, if any."""
    rows = [{"group_by": by, **row} for by, rows in groups.items() for row in rows]
    return {TABLE: rows} if groups else {}


def print_groups(out: Console, groups: Groups) -> None:
    """Print a table for all that the jobs are grouped by."""
    for name, rows in groups.items():
        schedulers = [_SCHEDULER] if any("scheduler" in row for row in rows) else []
        used = [Column(key, f"{key.removeprefix('utilisation_')}\nused", "share") for key in utilisation_keys(rows)]
        print_table(out, [Column("group", name), *schedulers, *_COLUMNS, *used], rows, f"Jobs by {name}")
