"""``--group-by``: metrics of groups of jobs, printed and written by ``run`` and ``compare``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from rich.console import Console

from gridsched.cli.output import listed_with_outputs
from gridsched.cli.tables import print_table
from gridsched.metrics.columns import Column
from gridsched.metrics.group_metrics import columns_of, in_one_table

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


def written_groups(groups: Groups) -> dict[str, list[dict[str, Any]]]:
    """Return the table of groups that ``-o`` writes beside the .csv or .parquet file, if any."""
    return {TABLE: in_one_table(groups)} if groups else {}


def print_groups(out: Console, groups: Groups) -> None:
    """Print a table for all that the jobs are grouped by."""
    for name, rows in groups.items():
        schedulers = [_SCHEDULER] if any("scheduler" in row for row in rows) else []
        print_table(out, [Column("group", name), *schedulers, *columns_of(rows)], rows, f"Jobs by {name}")
