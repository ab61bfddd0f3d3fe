"""Bags of tasks: drawn as in paper 004 (section 4; algorithms A7), and as CSV."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from gridsched.errors import InputError
from gridsched.files.csv_files import Format, Number, Table, Text, Whole, csv_text
from gridsched.files.input_files import read_text
from gridsched.files.output_files import write_whole
from gridsched.model.data_files import DataFiles
from gridsched.model.dependencies import Dependencies
from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.model.seeds import random_stream
from gridsched.model.tasks import Tasks, deadline_column, make_tasks
from gridsched.workloads.generator_keys import MAX_TASKS, GeneratorKeys
from gridsched.workloads.traces.dependencies import KINDS


class BagOfTasks(GeneratorKeys):
    """Parameters of a generated bag.

    Attributes
    ----------
    tasks : int
        Number of tasks.
    mean_flops : float
        Mean size [flop].
    heterogeneity : float
        Sizes are uniform in ``mean_flops * (1 -+ heterogeneity / 2)``; 0 to 1.
    seed, replicate : int
        Which random stream.
    input_bytes, output_bytes : float
        Size of each task's input and result [byte].
    submit_from_s, submit_until_s : float
        Between which times tasks are submitted, uniformly [s]; default all at 0.
    """

    kind: Literal["bag"] = "bag"
    tasks: int = Field(ge=0, le=MAX_TASKS)
    mean_flops: float = Field(ge=SMALLEST, le=LARGEST / 2)  # sizes are up to 1.5 times the mean
    heterogeneity: float = Field(default=0.0, ge=0, le=1)
    seed: int = Field(default=0, ge=0)
    replicate: int = Field(default=0, ge=0)
    input_bytes: float = Field(default=0.0, ge=0, le=LARGEST)
    output_bytes: float = Field(default=0.0, ge=0, le=LARGEST)
    submit_from_s: float = Field(default=0.0, ge=0, le=LARGEST)
    submit_until_s: float = Field(default=0.0, ge=0, le=LARGEST)


def generate_bag(bag: BagOfTasks) -> Tasks:
    """Draw a bag of tasks, submitted at time 0 or over some time.

    Parameters
    ----------
    bag : BagOfTasks

    Raises
    ------
    InputError
        If submission ends before it begins.

    Returns
    -------
    Tasks
        With `nominal_heterogeneity` set, as LECSA wants it (algorithms A6.2).
    """
    rng = random_stream(bag.seed, "tasks", bag.replicate)
    if bag.submit_until_s < bag.submit_from_s:
        raise InputError(
            f"submit_until_s is {bag.submit_until_s:g} s, before submit_from_s, {bag.submit_from_s:g} s; make it later."
        )
    half = bag.heterogeneity / 2
    flops = bag.mean_flops * rng.uniform(1 - half, 1 + half, bag.tasks)
    if bag.heterogeneity == 0:
        flops = np.full(bag.tasks, bag.mean_flops)
    arrivals = random_stream(bag.seed, "arrivals", bag.replicate)
    return make_tasks(
        flops,
        np.sort(arrivals.uniform(bag.submit_from_s, bag.submit_until_s, bag.tasks)),
        input_bytes=bag.input_bytes,
        output_bytes=bag.output_bytes,
        nominal_heterogeneity=bag.heterogeneity,
        name=f"bag of {bag.tasks} tasks (seed {bag.seed})",
    )


BAG = Format(
    {
        "id": Whole(),
        "flops": Number(above=True),
        "input_bytes": Number(default=0.0),
        "output_bytes": Number(default=0.0),
        "submit_time_s": Number(default=0.0),
        "deadline_s": Number(default=math.inf),
        "input_files": Text(default=""),
        **{word: Text(default="") for word in KINDS},
    },
    key=("id",),
)
#: A task that is waited for, by its id, and perhaps how long from then on.
_ON = re.compile(r"(?P<id>-?\d+)(?:\+(?P<minutes>\d\S*))?")
_MINUTE = 60
_NOMINAL = re.compile(r"#\s*nominal_heterogeneity\s*=\s*(\S+)\s*\Z")


def read_bag(path: str | Path, *, files: str | Path | None = None) -> Tasks:
    """Read a bag of tasks.

    Parameters
    ----------
    path : path
        CSV with the columns above; ``input_files`` names files, separated by ``;``, `KINDS` hold ids
        of tasks that a task waits for, as ``3 4+2.5``: the latter and 2.5 minutes more. A first line
        ``# nominal_heterogeneity=0.5`` states the spread the sizes were drawn with (0 to 1).
    files : path, optional
        CSV ``file,size_bytes,location`` of the input files.

    Returns
    -------
    Tasks
        In order of submission (stable).

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    text = read_text(path)
    nominal = _read_nominal(path, text)
    data = None if files is None else read_data_files(files)
    table = BAG.read(path, text)
    needs: list[list[int]] = []
    if data is not None or any(table["input_files"]):  # a list for each of a million tasks takes 60 MB
        needs = [_read_needs(table, row, data) if names else [] for row, names in enumerate(table["input_files"])]
    tasks = make_tasks(
        table["flops"],
        table["submit_time_s"] or 0.0,
        input_bytes=table["input_bytes"] or 0.0,
        output_bytes=table["output_bytes"] or 0.0,
        labels=table["id"],
        deadline_s=table["deadline_s"] or None,
        input_files=None if data is None else needs,
        files=data,
        nominal_heterogeneity=nominal,
        name=str(path),
    )
    return replace(tasks, dependencies=_read_dependencies(table, tasks))


def _read_dependencies(table: Table, tasks: Tasks) -> Dependencies | None:
    """Return which tasks wait for which others, that are submitted before them."""
    if not any(any(table[word]) for word in KINDS):
        return None
    place = {label: k for k, label in enumerate(tasks.labels.tolist())}
    pairs = [
        (place[table["id"][row]], *_read_wait(table, row, word, text, place), int(kind))
        for word, kind in KINDS.items()
        if any(table[word])
        for row, cell in enumerate(table[word])
        for text in cell.replace(":", " ").split()
    ]
    if not pairs:  # blanks alone
        return None
    task, on, delay_s, kind_of = zip(*sorted(pairs), strict=True)
    return Dependencies(np.array(task), np.array(on), np.array(kind_of), np.array(delay_s))


def _read_wait(table: Table, row: int, word: str, text: str, place: Mapping[int, int]) -> tuple[int, float]:
    """Return which task is waited for, and the delay [s]."""
    match, own = _ON.fullmatch(text), table["id"][row]
    if match is None:
        raise table.fail(row, word, "ids of tasks are needed, with blanks between them, each perhaps with +MINUTES")
    try:
        delay_s = float(_MINUTE * Decimal(match["minutes"] or 0))
    except ArithmeticError:
        delay_s = math.nan
    if not 0 <= delay_s <= LARGEST:
        raise table.fail(row, word, f"the minutes behind + must be a number >= 0, at most {LARGEST / _MINUTE:g}")
    on = int(match["id"])
    if on not in place:
        raise table.fail(row, word, f"no task of the file has the id {on}")
    if on == own:
        raise table.fail(row, word, "a task cannot wait for itself")
    if place[on] > place[own]:
        raise table.fail(row, word, f"task {on} is submitted later, or is below it; wait for tasks before it")
    return place[on], delay_s


def _read_nominal(path: str | Path, text: str) -> float | None:
    """Return the nominal heterogeneity of the first line, if it states one."""
    match = _NOMINAL.match(text.splitlines()[0]) if text else None
    if match is None:
        return None
    try:
        value = float(match[1])
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(f"{path}, line 1: nominal_heterogeneity is {match[1]!r}; it must lie in [0, 1].")
    return value


def _read_needs(table: Table, row: int, data: DataFiles | None) -> list[int]:
    names = [name.strip() for name in table["input_files"][row].split(";") if name.strip()]
    if not names:
        return []
    if data is None:
        raise table.fail(row, "input_files", "give their sizes and places with --files")
    for name in names:
        if name not in data.names:
            raise table.fail(row, "input_files", f"the --files table has no file {name!r}")
    return [data.names.index(name) for name in dict.fromkeys(names)]


def write_bag(tasks: Tasks, path: str | Path, *, force: bool = False) -> None:
    """Write a bag of tasks so that `read_bag` gives it back exactly.

    Raises
    ------
    InputError
        If the file exists and `force` is not set, or cannot be written; if an input file has a
        name that would not read back.
    """
    columns: dict[str, Iterable[Any]] = {"id": tasks.labels, "flops": tasks.flops}
    for name in ("input_bytes", "output_bytes", "submit_time_s"):
        if getattr(tasks, name).any():
            columns[name] = getattr(tasks, name)
    columns |= deadline_column(tasks)
    if tasks.input_files and tasks.files is not None:
        names = tasks.files.names
        _check_names(path, names)
        columns["input_files"] = [";".join(names[f] for f in need) for need in tasks.input_files]
    columns |= _dependency_columns(tasks)
    nominal = tasks.nominal_heterogeneity
    comment = "" if nominal is None else f"# nominal_heterogeneity={nominal!r}\n"
    write_whole(path, comment + csv_text(columns), force=force)


def _dependency_columns(tasks: Tasks) -> dict[str, list[str]]:
    """Return the cells that name which tasks wait for which others, column by column."""
    edges = tasks.dependencies
    if edges is None:
        return {}
    waits: dict[str, list[list[str]]] = {}
    words = {int(kind): word for word, kind in reversed(KINDS.items())}
    if edges.size_bytes.any():
        raise InputError(f"{tasks.name}: a bag's file holds no data between tasks; write them as a workflow.")
    columns = (edges.task, edges.on, edges.kind, edges.delay_s)
    for task, on, kind, delay_s in zip(*(each.tolist() for each in columns), strict=True):
        cells = waits.setdefault(words[kind], [[] for _ in range(len(tasks))])
        cells[task].append(f"{tasks.labels[on]}{_delay(delay_s)}")
    return {word: [" ".join(cell) for cell in waits[word]] for word in KINDS if word in waits}


def _delay(delay_s: float) -> str:
    """Return a delay in minutes, with so many digits that it reads back exactly."""
    return f"+{Decimal(delay_s) / _MINUTE:.20g}" if delay_s else ""


def _check_names(path: str | Path, names: Iterable[str]) -> None:
    """Refuse names of files that a cell of ``input_files`` would not give back."""
    for name in names:
        if not name or ";" in name or name != name.strip() or len(name.splitlines()) != 1:
            raise InputError(
                f"{path}: the file name {name!r} cannot be written; a name without ';', line "
                "breaks and blanks around it is needed. Rename the file."
            )


DATA_FILES = Format({"file": Text(), "size_bytes": Number(), "location": Text()})


def read_data_files(path: str | Path) -> DataFiles:
    """Read where input files lie.

    Parameters
    ----------
    path : path
        CSV ``file,size_bytes,location``; a location is the name of a cluster (netzone) or of a
        host in it. A file with several rows lies at several places.

    Returns
    -------
    DataFiles

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    sizes: dict[str, float] = {}
    places: dict[str, list[str]] = {}
    table = DATA_FILES.read(path)
    columns = (table[name] for name in DATA_FILES.columns)
    for row, (name, size, location) in enumerate(zip(*columns, strict=True)):
        if not name or ";" in name:
            raise table.fail(row, "file", "a name without ';' is needed")
        if not location:
            raise table.fail(row, "location", "the name of a cluster or host is needed")
        if sizes.setdefault(name, size) != size:
            legal = f"an earlier row gives {sizes[name]:g} for {name!r}"
            raise table.fail(row, "size_bytes", legal)
        places.setdefault(name, []).append(location)
    names = tuple(sizes)
    return DataFiles(names, np.array([sizes[n] for n in names]), tuple(tuple(places[n]) for n in names))
