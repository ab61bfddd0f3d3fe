"""Workflows as two CSV tables: tasks, and edges with the data that one task makes for another."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from gridsched.errors import InputError, did_you_mean
from gridsched.files.csv_files import Format, Number, Table, Text, Whole, cells_of_header, csv_text
from gridsched.files.input_files import read_text
from gridsched.files.output_files import check_writable, write_whole
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.host_times import HostTimes
from gridsched.model.limits import MAX_ENTRIES, MAX_NAME
from gridsched.model.staged_files import StagedFiles
from gridsched.model.tasks import Tasks, make_tasks

_BY_ID = {"id": Text(is_name=True), "submit_time_s": Number(default=0.0), "workflow": Text(default="")}
#: No task has more cores.
MOST_CORES = 1_000_000
_CORES = Whole(least=1, most=MOST_CORES, default=1)
TASKS = Format({**_BY_ID, "flops": Number(above=True), "cores": _CORES}, key=("id",), rows="tasks")
#: Tasks whose other columns are hosts, with the time that a task takes there; nothing where it cannot run.
TIMES = Format(_BY_ID, key=("id",), rows="tasks")
_TIME = Number(above=True, default=math.inf)
EDGES = Format(
    {"task": Text(is_name=True), "on": Text(), "bytes": Number(default=0.0), "file": Text(default="")},
    key=("task", "on", "file"),
)
#: The maker of files that no task makes.
_NO_TASK = -1


def read_workflow(
    edges_csv: str | Path,
    tasks_csv: str | Path | None,
    times_csv: str | Path | None = None,
    inputs_from: str | None = None,
) -> Tasks:
    """Read a workflow, in an order in which every task comes behind those that it waits for.

    Of the tasks that may come next the one that is submitted earliest comes next, then the one that is listed first
    in the file.

    Parameters
    ----------
    edges_csv : path
        With the columns of `EDGES`.
    tasks_csv, times_csv : path
        One of them: with the columns of `TASKS`, or those of `TIMES` and one for each host.
    inputs_from : str, optional
        Host on which the files lie that no task makes: those of edges without a second task.

    Raises
    ------
    InputError
        Naming file, line and task of the first that is wrong.
    """
    if times_csv is not None:
        table, times = _read_times(times_csv)
    else:
        assert tasks_csv is not None  # the keys have one of them
        table, times = TASKS.read(tasks_csv), None
    edges = EDGES.read(edges_csv)
    names: list[str] = table["id"]
    task = edges.places("task", names, table.path)
    on = _others(edges, names, table.path)
    submit_s: list[float] = table["submit_time_s"]
    _check(edges, task, on, submit_s)
    rows = [row for row, other in enumerate(on) if other != _NO_TASK]
    order, edge = ordered([task[row] for row in rows], [on[row] for row in rows], submit_s)
    if edge is not None:
        row = rows[edge]
        raise edges.fail(row, "on", f"task {edges['task'][row]!r} waits for it, and it waits for that task: a cycle")
    place = np.empty(len(names), dtype=np.int64)
    place[order] = np.arange(len(names))
    flops = table.array("flops") if times is None else times.time_s.min(axis=1)
    cores = np.ones(len(names), dtype=np.int64) if times is not None else table.array("cores")
    return make_tasks(
        flops[order],
        np.array(submit_s)[order],
        labels=[names[k] for k in order],
        demand=cores[order][:, None] if (cores > 1).any() else None,
        attributes=_attributes([table["workflow"][k] for k in order]),
        dependencies=_dependencies(edges, np.array(rows, int), place[np.array(task, int)], place[np.array(on, int)]),
        staged=_staged(edges, place[np.array(task, int)], on, inputs_from),
        host_times=None if times is None else times.taken(np.array(order)),
        name=str(table.path),
    )


def _read_times(path: str | Path) -> tuple[Table, HostTimes]:
    """Read tasks with their times by host; the columns that no other table of tasks has are hosts."""
    text = read_text(path)
    header = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    names = cells_of_header(path, header)
    hosts = tuple(dict.fromkeys(name for name in names if name and name not in _BY_ID))
    if "id" not in names or any(len(host) > MAX_NAME for host in hosts):
        raise InputError(f"{path}: the header needs id and names of hosts, of at most {MAX_NAME:,} characters each.")
    if not hosts:
        raise InputError(f"{path}: no host; times need a column for each host, beside {', '.join(_BY_ID)}.")
    lines = text.count("\n")
    if lines * len(hosts) > MAX_ENTRIES:
        raise InputError(f"{path}: {lines:,} lines of {len(hosts):,} hosts; at most {MAX_ENTRIES:,} times are allowed.")
    table = TIMES.read(path, text, **dict.fromkeys(hosts, _TIME))
    times = np.stack([table.array(host) for host in hosts], axis=1)
    for row in np.flatnonzero(np.isposinf(times).all(axis=1)).tolist():
        raise table.fail(row, "id", "the task has no time on any host, so it can run nowhere")
    return table, HostTimes(hosts, times)


def _others(edges: Table, names: Sequence[str], owner: Path) -> list[int]:
    """Return the place of the second task of each edge; `_NO_TASK` where a file is made by none."""
    place = {name: k for k, name in enumerate(names)} | {"": _NO_TASK}
    for row, name in enumerate(edges["on"]):
        if name not in place:
            legal = f"{owner} does not have it. {did_you_mean(name, names)}"
            raise edges.fail(row, "on", legal.rstrip(" ."))
        if not name and not edges["file"][row]:
            raise edges.fail(
                row, "on", "name a task, or, if no task makes the file, leave it empty and give the file's name"
            )
    return [place[name] for name in edges["on"]]


def _staged(edges: Table, task: np.ndarray, on: Sequence[int], inputs_from: str | None) -> StagedFiles | None:
    """Return the files that no task makes; refuse them where no host is named, and a host without any."""
    rows = np.flatnonzero(np.array(on, int) == _NO_TASK)
    if inputs_from is None and len(rows):
        row = int(rows[0])
        legal = "no task makes this file; name the host from which such files are sent (inputs_from)"
        raise edges.fail(row, "file", legal)
    if inputs_from is None:
        return None
    if not len(rows):
        raise InputError(
            f"{edges.path}: inputs_from is {inputs_from!r}, and tasks make all files. Remove it, or add lines "
            "task,,bytes,file."
        )
    rows = rows[np.argsort(task[rows], kind="stable")]
    numbers: dict[str, int] = {}
    file = [numbers.setdefault(edges["file"][row], len(numbers)) for row in rows.tolist()]
    return StagedFiles(inputs_from, task[rows], np.array(file), edges.array("bytes")[rows])


def _check(edges: Table, task: Sequence[int], on: Sequence[int], submit_s: Sequence[float]) -> None:
    """Refuse edges that contradict their tasks or each other."""
    sizes: dict[tuple[int, str], float] = {}
    for row, (one, other) in enumerate(zip(task, on, strict=True)):
        if one == other:
            raise edges.fail(row, "on", "a task cannot wait for itself")
        if other != _NO_TASK and submit_s[other] > submit_s[one]:
            legal = (
                f"it is submitted at {submit_s[other]:g} s, later than task {edges['task'][row]!r} that waits for it"
            )
            raise edges.fail(row, "on", legal)
        file, size = edges["file"][row], edges["bytes"][row]
        if file and sizes.setdefault((other, file), size) != size:
            of = f" of task {edges['on'][row]!r}" * (other != _NO_TASK)
            legal = f"file {file!r}{of} has {sizes[other, file]:g} in an earlier line"
            raise edges.fail(row, "bytes", legal)


def ordered(task: Sequence[int], on: Sequence[int], submit_s: Sequence[float]) -> tuple[list[int], int | None]:
    """Return tasks so that each comes behind those that it waits for, and if some cannot, an edge of a cycle.

    Parameters
    ----------
    task, on : sequence of int
        The first waits for the second, edge by edge.
    submit_s : sequence of float
        When each task is submitted [s]: of those that may come next the earliest one does, then the first.
    """
    left, behind = [0] * len(submit_s), [[] for _ in submit_s]  # type: list[int], list[list[int]]
    for one, other in zip(task, on, strict=True):
        left[one] += 1
        behind[other].append(one)
    ready = [(submit_s[k], k) for k, count in enumerate(left) if not count]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        order.append(heapq.heappop(ready)[1])
        for one in behind[order[-1]]:
            left[one] -= 1
            if not left[one]:
                heapq.heappush(ready, (submit_s[one], one))
    return order, None if len(order) == len(submit_s) else _row_in_cycle(task, on, left)


def _row_in_cycle(task: Sequence[int], on: Sequence[int], left: Sequence[int]) -> int:
    """Return an edge of a cycle: from a task that is left it is reached by going back again and again."""
    row_of = {one: row for row, (one, other) in enumerate(zip(task, on, strict=True)) if left[one] and left[other]}
    at, seen = next(iter(row_of)), set()  # type: int, set[int]
    while at not in seen:
        seen.add(at)
        at = on[row_of[at]]
    return row_of[at]


def _dependencies(edges: Table, rows: np.ndarray, task: np.ndarray, on: np.ndarray) -> Dependencies | None:
    """Return some edges as dependencies on ends."""
    if not len(rows):
        return None
    numbers: dict[str, int] = {}
    files = (edges["file"][row] for row in rows.tolist())
    item = np.array([numbers.setdefault(file, len(numbers)) if file else -1 for file in files])
    ends, none = np.full(len(rows), int(After.END)), np.zeros(len(rows))
    return Dependencies(task[rows], on[rows], ends, none, edges.array("bytes")[rows], item).by_task()


def _attributes(workflow: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the names of the tasks' workflows, if there are any."""
    return {"workflow": workflow} if any(workflow) else {}


@dataclass(frozen=True)
class Workflow:
    """A workflow that is to be written.

    Attributes
    ----------
    tasks : mapping of str to sequence
        Columns of `TASKS`, or of `TIMES` and hosts; ids first.
    edges : list of (str, str, float, str)
        A task, the one that it waits for or nothing, bytes, and the name of the file or nothing.
    notes : list of str
        What was left out or changed, in words.
    inputs_from : str or None
        Host on which the files lie that no task makes.
    """

    tasks: Mapping[str, Sequence[Any]]
    edges: list[tuple[str, str, float, str]]
    notes: list[str] = field(default_factory=list)
    inputs_from: str | None = None

    @classmethod
    def of(cls, tasks: Tasks) -> Workflow:
        """Return tasks as they are written; `InputError` if they wait for more than ends and data."""
        columns: dict[str, Sequence[Any]] = {"id": tasks.labels.tolist()}
        if tasks.host_times is None:
            columns["flops"] = tasks.flops.tolist()
        else:
            times = np.where(np.isposinf(tasks.host_times.time_s), np.nan, tasks.host_times.time_s)
            columns |= dict(zip(tasks.host_times.hosts, times.T.tolist(), strict=True))
        if not tasks.are_serial:
            columns["cores"] = tasks.size.tolist()
        if tasks.submit_time_s.any():
            columns["submit_time_s"] = tasks.submit_time_s.tolist()
        if "workflow" in tasks.attributes:
            columns["workflow"] = tasks.attributes["workflow"].texts
        names = [str(label) for label in columns["id"]]
        edges = []
        if (staged := tasks.staged) is not None:
            rows = zip(staged.task.tolist(), staged.size_bytes.tolist(), staged.file.tolist(), strict=True)
            edges = [(names[task], "", size, f"s{file}") for task, size, file in rows]
        inputs_from = None if staged is None else staged.host
        pairs = tasks.dependencies
        if pairs is None:
            return cls(columns, edges, inputs_from=inputs_from)
        if (pairs.kind != int(After.END)).any() or pairs.delay_s.any():
            raise InputError(
                f"{tasks.name}: in the tables of a workflow, tasks can only wait for the ends of tasks, without delays."
            )
        four = (each.tolist() for each in (pairs.task, pairs.on, pairs.size_bytes, pairs.item))
        edges += [
            (names[task], names[on], size, f"d{item}" * (item >= 0)) for task, on, size, item in zip(*four, strict=True)
        ]
        return cls(columns, edges, inputs_from=inputs_from)

    @staticmethod
    def paths(output: Path) -> list[Path]:
        """Return what is written: tasks, edges, and the file that names them.

        Raises
        ------
        InputError
            If `output` does not end with .toml.
        """
        if output.suffix != ".toml":
            raise InputError(
                f"{output}: the name of a workflow must be NAME.toml; its two tables are written beside it."
            )
        return [output.with_suffix(end) for end in (".tasks.csv", ".edges.csv", ".toml")]

    def write(self, output: Path, *, force: bool = False) -> list[Path]:
        """Write ``NAME.toml`` and, beside it, ``NAME.tasks.csv`` and ``NAME.edges.csv``; return the three.

        Raises
        ------
        InputError
            If `output` does not end with .toml, or a file exists and `force` is not set.
        """
        paths = self.paths(output)
        for path in paths:
            check_writable(path, force=force)
        edges = EDGES.named(*zip(*self.edges, strict=True)) if self.edges else EDGES.named((), (), (), ())
        tasks_key = "tasks_csv" if "flops" in self.tasks else "times_csv"
        named = {"kind": "workflow", tasks_key: paths[0].name, "edges_csv": paths[1].name}
        if self.inputs_from is not None:
            named["inputs_from"] = self.inputs_from
        texts = csv_text(self.tasks), csv_text(edges), tomli_w.dumps(named)
        for path, text in zip(paths, texts, strict=True):
            write_whole(path, text, force=force)
        return paths
