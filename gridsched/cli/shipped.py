"""``gridsched schedulers`` and ``gridsched example``: what comes with gridsched."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from gridsched.cli.options import command_group
from gridsched.cli.output import ForceOption, JsonOption, QuietOption
from gridsched.cli.tables import console, print_trimmed
from gridsched.errors import InputError, did_you_mean
from gridsched.files.input_files import FOLDERS, shipped_files
from gridsched.files.json_files import json_text
from gridsched.files.output_files import check_writable, write_whole
from gridsched.policy.policy_files import load_with_siblings, scheduler_ids
from gridsched.policy.registry import entries, find, scheduler_class
from gridsched.sim.client import check_policies

example_app = command_group()

LIST_EPILOG = """Examples:

gridsched example list
"""
COPY_EPILOG = """Examples:

gridsched example copy

gridsched example copy examples/ex_a.csv platforms/ex_a.xml --to trial
"""
SCHEDULERS_EPILOG = """Examples:

gridsched schedulers

gridsched schedulers examples/energy_delay.py
"""


def _rows(ids: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for entry in map(find, ids):
        cls = scheduler_class(entry.id)
        rows.append(
            {
                "id": entry.id,
                "accepts": list(entry.accepts),
                "parameters": cls.parameter_defaults(),
                "summary": (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " "),
                "source": entry.source,
            }
        )
    return rows


def schedulers(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE.py]...", help="Files with schedulers of your own.")
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


@example_app.command("list", epilog=LIST_EPILOG)
def list_files(json: JsonOption = False) -> None:
    """List the shipped files."""
    names = list(shipped_files())
    print(json_text({"files": names}).rstrip() if json else "\n".join(names))


@example_app.command("copy", epilog=COPY_EPILOG)
def copy(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="Files of 'example list'. Default: all of them.")
    ] = None,
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="Where their folders are made.")] = Path(),
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Copy shipped files, in their folders, so that the examples of the documents run there.

    Nothing is copied where one of the files exists, unless --force is given.
    """
    shipped = shipped_files()
    chosen = list(dict.fromkeys(names or shipped))
    for name in chosen:
        if name not in shipped:
            raise InputError(f"No shipped file {name!r}. {did_you_mean(name, shipped)}See 'gridsched example list'.")
    for folder in {to / Path(name).parent for name in chosen}:
        folder.mkdir(parents=True, exist_ok=True)
    for name in chosen:
        check_writable(to / name, force=force)
    for name in chosen:
        write_whole(to / name, shipped[name].read_bytes(), force=force)
    if not quiet:
        place = "here" if to == Path() else f"to {to}"
        files = "1 file" if len(chosen) == 1 else f"{len(chosen)} files"
        print(f"Copied {files} {place}, into {', '.join(folders_of(chosen))}.")


def folders_of(names: list[str]) -> list[str]:
    """Return the folders of some shipped files, as people read them."""
    return [f"{folder}/" for folder in FOLDERS if any(n.startswith(f"{folder}/") for n in names)]
