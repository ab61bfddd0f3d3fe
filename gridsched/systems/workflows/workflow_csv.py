"""Workflows as two CSV tables: tasks, and edges with the data that one task makes for another."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from gridsched.errors import InputError
from gridsched.files.csv_files import Format, Number, Table, Text, csv_text
from gridsched.files.output_files import check_writable, write_whole
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.workloads.generator_keys import GeneratorKeys

TASKS = Format(
    {"id": Text(is_name=True), "flops": Number(above=True), "submit_time_s": Number(default=0.0)},
    key=("id",),
    rows="tasks",
)
EDGES = Format(
    {"task": Text(is_name=True), "on": Text(is_name=True), "bytes": Number(default=0.0), "file": Text(default="")},
    key=("task", "on", "file"),
)


class WorkflowFiles(GeneratorKeys):
    """Where the tables of a workflow lie.

    Attributes
    ----------
    tasks_csv : str
        ``id,flops[,submit_time_s]``.
    edges_csv : str
        ``task,on[,bytes][,file]``: a task waits for another's end, and for so many bytes that it makes. Edges
        from one task with one file share the data, which go to a host once.
    """

    kind: Literal["workflow"] = "workflow"
    tasks_csv: str
    edges_csv: str


def read_workflow(files: WorkflowFiles) -> Tasks:
    """Read a workflow, in an order in which every task stands behind those that it waits for.

    Of the tasks that may come next the one that is submitted earliest comes next, then the one that stands first
    in the file.

    Raises
    ------
    InputError
        Naming file, line and task of the first that is wrong.
    """
    table, edges = TASKS.read(files.tasks_csv), EDGES.read(files.edges_csv)
    names: list[str] = table["id"]
    task, on = (edges.places(column, names, files.tasks_csv) for column in ("task", "on"))
    submit_s: list[float] = table["submit_time_s"]
    _check(edges, task, on, submit_s)
    order = _order(edges, task, on, submit_s)
    place = np.empty(len(names), dtype=np.int64)
    place[order] = np.arange(len(names))
    return make_tasks(
        table.array("flops")[order],
        np.array(submit_s)[order],
        labels=[names[k] for k in order],
        dependencies=_dependencies(edges, place[np.array(task, int)], place[np.array(on, int)]),
        name=files.tasks_csv,
    )


def _check(edges: Table, task: Sequence[int], on: Sequence[int], submit_s: Sequence[float]) -> None:
    """Refuse edges that contradict their tasks or each other."""
    sizes: dict[tuple[int, str], float] = {}
    for row, (one, other) in enumerate(zip(task, on, strict=True)):
        if one == other:
            raise edges.fail(row, "on", "a task cannot wait for itself")
        if submit_s[other] > submit_s[one]:
            legal = (
                f"it is submitted at {submit_s[other]:g} s, later than task {edges['task'][row]!r} that waits for it"
            )
            raise edges.fail(row, "on", legal)
        file, size = edges["file"][row], edges["bytes"][row]
        if file and sizes.setdefault((other, file), size) != size:
            legal = f"file {file!r} of task {edges['on'][row]!r} has {sizes[other, file]:g} in an earlier line"
            raise edges.fail(row, "bytes", legal)


def _order(edges: Table, task: Sequence[int], on: Sequence[int], submit_s: Sequence[float]) -> list[int]:
    """Return the tasks so that each stands behind those that it waits for; refuse a cycle."""
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
    if len(order) < len(submit_s):
        row = _row_in_cycle(task, on, left)
        raise edges.fail(row, "on", f"task {edges['task'][row]!r} waits for it, and it for that task: a cycle")
    return order


def _row_in_cycle(task: Sequence[int], on: Sequence[int], left: Sequence[int]) -> int:
    """Return an edge of a cycle: from a task that is left it is reached by going back again and again."""
    row_of = {one: row for row, (one, other) in enumerate(zip(task, on, strict=True)) if left[one] and left[other]}
    at, seen = next(iter(row_of)), set()  # type: int, set[int]
    while at not in seen:
        seen.add(at)
        at = on[row_of[at]]
    return row_of[at]


def _dependencies(edges: Table, task: np.ndarray, on: np.ndarray) -> Dependencies | None:
    """Return the edges as dependencies on ends."""
    if not len(edges):
        return None
    numbers: dict[str, int] = {}
    item = [numbers.setdefault(file, len(numbers)) if file else -1 for file in edges["file"]]
    none = np.zeros(len(edges))
    return Dependencies(
        task, on, np.full(len(edges), int(After.END)), none, edges.array("bytes"), np.array(item)
    ).by_task()


@dataclass(frozen=True)
class Workflow:
    """A workflow that is to be written.

    Attributes
    ----------
    flops : dict of str to float
        Work of each task [flop].
    edges : list of (str, str, float, str)
        A task, the one that it waits for, bytes, and the name of the file or nothing.
    notes : list of str
        What was left out or changed, in words.
    """

    flops: dict[str, float]
    edges: list[tuple[str, str, float, str]]
    notes: list[str]

    def write(self, output: Path, *, force: bool = False) -> list[Path]:
        """Write ``NAME.toml`` and, beside it, ``NAME.tasks.csv`` and ``NAME.edges.csv``; return the three.

        Raises
        ------
        InputError
            If `output` does not end with .toml, or a file exists and `force` is not set.
        """
        if output.suffix != ".toml":
            raise InputError(f"{output}: a workflow is written as NAME.toml, and two tables beside it.")
        paths = [output.with_suffix(end) for end in (".tasks.csv", ".edges.csv", ".toml")]
        for path in paths:
            check_writable(path, force=force)
        task, on, size, file = zip(*self.edges, strict=True) if self.edges else ((), (), (), ())
        write_whole(paths[0], csv_text({"id": self.flops, "flops": self.flops.values()}), force=force)
        write_whole(paths[1], csv_text({"task": task, "on": on, "bytes": size, "file": file}), force=force)
        named = f'kind = "workflow"\ntasks_csv = "{paths[0].name}"\nedges_csv = "{paths[1].name}"\n'
        write_whole(paths[2], named, force=force)
        return paths
