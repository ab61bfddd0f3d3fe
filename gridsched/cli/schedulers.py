"""``gridsched schedulers``."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from gridsched.cli.output import JsonOption
from gridsched.cli.tables import console, print_trimmed
from gridsched.files.json_files import json_text
from gridsched.policy.policy_files import load_with_siblings, scheduler_ids
from gridsched.policy.registry import entries, find, scheduler_class
from gridsched.sim.client import check_policies

EPILOG = """Examples:

gridsched schedulers

gridsched schedulers examples/energy_delay.py
"""


def _rows(ids: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for entry in map(find, ids):
        cls = scheduler_class(entry.id)
        rows.append({
            "id": entry.id,
            "accepts": list(entry.accepts),
            "parameters": cls.parameter_defaults(),
            "summary": (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " "),
            "source": entry.source,
        })  # fmt: skip
    return rows


def schedulers(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE.py]...", help="Files with schedulers of your own."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the schedulers: what they do, workloads they accept, parameters, sources.

    With files, those that they hold. A parameter is set with --set [ID.]KEY=VALUE.
    """
    check_policies(files or (), None)
    own = [scheduler_ids(load_with_siblings(file)) for file in files or ()]
    ids = [id for found in own for id in found.values()]
    rows = _rows(ids if files else [entry.id for entry in entries()])
    if json:
        print(json_text({"schedulers": rows}), end="")
        return
    listing = Table.grid(padding=(0, 2))
    listing.add_column(no_wrap=True)
    listing.add_column()
    for row in rows:
        about = [row["summary"]]
        if row["accepts"]:
            about.append(f"Accepts: {', '.join(row['accepts'])}.")
        if row["parameters"]:
            shown = ", ".join(f"{name}={value!r}" for name, value in row["parameters"].items())
            about.append(f"Parameters: {shown}.")
        about.append(f"Source: {row['source']}.")
        listing.add_row(Text(row["id"], style="bold"), Text("\n".join(about)))
    print_trimmed(console(), listing)
