"""``gridsched example``: platforms, workloads and studies that come with gridsched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gridsched.cli.options import command_group
from gridsched.cli.output import ForceOption, JsonOption, QuietOption, put
from gridsched.errors import InputError, counted, did_you_mean
from gridsched.files.json_files import json_text
from gridsched.files.output_files import check_writable, write_whole
from gridsched.files.shipped_files import FOLDERS, shipped_files

example_app = command_group()


@example_app.command("list")
def list_files(json: JsonOption = False) -> None:
    """List the shipped files.

    Examples
    --------
    gridsched example list
    """
    names = list(shipped_files())
    put(json_text({"files": names}).rstrip() if json else "\n".join(names))


@example_app.command("copy")
def copy(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="Files of 'example list'. Default: all of them.")
    ] = None,
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="Folder for the copies.")] = Path(),
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Copy shipped files, in their folders, so that the examples of the documents run there.

    Nothing is copied if one of the files exists, unless --force is given.

    Examples
    --------
    gridsched example copy

    gridsched example copy examples/ex_a.csv platforms/ex_a.xml --to trial
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
        files = counted(len(chosen), "file")
        folders = [f"{folder}/" for folder in FOLDERS if any(name.startswith(f"{folder}/") for name in chosen)]
        put(f"Copied {files} {place}, into {', '.join(folders)}.")
