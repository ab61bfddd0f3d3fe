"""``gridsched schedulers``: what each scheduler does, accepts and is derived from."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from gridsched.cli.output import JsonOption, put_json
from gridsched.cli.tables import console, print_trimmed
from gridsched.policy.policy_files import load_with_siblings, named_file, scheduler_ids
from gridsched.policy.registry import entries, find, scheduler_class, usable
from gridsched.sim.client import check_policies

#: A kind of workload -> options of an example of it, among the shipped files.
_EXAMPLES = {
    "bag": "--platform platforms/ex_a.xml --workload examples/ex_a.csv",
    "typed": "--workload examples/profit.toml --price 300",
    "utility": "--workload examples/utility_small.toml",
    "stochastic": "--workload examples/measured.toml",
    "parallel": "--workload examples/four_nodes.swf",
    "parallel_utility": "--workload examples/parallel_small.toml",
    "workflow": "--platform platforms/ex_a.xml --workload examples/workflow.toml",
}


def _rows(ids: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "id": entry.id,
            "accepts": list(entry.accepts),
            "parameters": scheduler_class(entry.id).parameter_defaults(),
            "summary": (inspect.getdoc(scheduler_class(entry.id)) or "").split("\n\n")[0].replace("\n", " "),
            "source": entry.source,
        }
        for entry in map(find, ids)
    ]


def schedulers(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID|FILE.py]...", help="Schedulers to explain; files with some of your own."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the schedulers with their rules, accepted workloads, parameters and sources.

    With files, list the schedulers in them; with ids, explain these. --set [ID.]KEY=VALUE sets a
    parameter.

    Examples
    --------
    gridsched schedulers

    gridsched schedulers lecsa

    gridsched schedulers examples/energy_delay.py
    """
    names = names or []
    files = [Path(name) for name in names if named_file(name) is not None]
    ids = [name for name in names if named_file(name) is None]
    rows = [{**row, **_explanation(row)} for row in _rows(ids)]
    check_policies(files, None)
    own = [id for file in files for id in scheduler_ids(load_with_siblings(file)).values()]
    listed = _rows(own if names else list(usable(entry.id for entry in entries())))
    if json:
        put_json({"schedulers": [*rows, *listed]})
        return
    for row in rows:
        _print_explained(row)
    _print_list(listed)


def _explanation(row: dict[str, Any]) -> dict[str, Any]:
    """Return the documentation of a scheduler after its summary, and an example."""
    bases = [_sections(cls) for cls in scheduler_class(row["id"]).__mro__ if cls.__doc__]
    meanings = {name: text for each in reversed(bases) for name, text in _meanings(each.get("Parameters", ""))}
    paragraphs = [bases[0][""].partition("\n\n")[2], bases[0].get("Notes", "")]
    options = next((_EXAMPLES[kind] for kind in row["accepts"] if kind in _EXAMPLES), None)
    return {
        "notes": "\n\n".join(filter(None, map(str.strip, paragraphs))),
        "meanings": {name: meanings.get(name, "") for name in row["parameters"]},
        "example": options and f"gridsched run {options} --scheduler {row['id']}",
    }


def _sections(cls: type) -> dict[str, str]:
    """Return the sections of a class's own documentation by their headings; the first has none."""
    text = inspect.cleandoc(re.sub(r" ?\[\d+\]_", "", cls.__doc__ or "")).replace("``", "`")
    first, *parts = re.split(r"^(\w+)\n-+\n", f"{text}\n", flags=re.MULTILINE)
    return {"": first, **dict(zip(parts[::2], parts[1::2], strict=True))}


def _meanings(parameters: str) -> Iterator[tuple[str, str]]:
    """Yield name and meaning of each parameter of a section, with what it may be.

    One without words of its own shares those of the next.
    """
    entries = re.findall(r"^(\w[\w, ]*) : (?:{(.*)}|.*)\n((?:[ ]+.*\n|\n)*)", parameters, flags=re.MULTILINE)
    words = ""
    for names, choices, text in reversed(entries):
        words = " ".join(text.split()) or words
        for name in names.split(", "):
            yield name, f"One of {choices}. {words}" if choices else words


def _print_explained(row: dict[str, Any]) -> None:
    out = console()
    out.print(Text(row["id"], style="bold"), Text(row["summary"]), sep="\n", end="\n\n")
    if row["notes"]:
        out.print(Text(row["notes"]), end="\n\n")
    if row["parameters"]:
        table = Table.grid(padding=(0, 2))
        for name, default in row["parameters"].items():
            table.add_row(Text(f"{name}={default!r}"), Text(row["meanings"].get(name, "")))
        out.print(Text("Parameters, set with --set:"))
        print_trimmed(out, table)
    out.print(Text(f"Accepts: {', '.join(row['accepts']) or 'workloads that its author names'}."))
    out.print(Text(f"Source: {row['source']}."))
    if row["example"]:
        out.print(Text(f"Example: {row['example']}"))


def _print_list(rows: Sequence[dict[str, Any]]) -> None:
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
