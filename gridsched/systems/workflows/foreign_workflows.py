"""Workflows of others: WfFormat 1.5 and 1.6 (WfCommons), and Pegasus DAX, as tables of our own.

Work is run time times the speed of the machine on which it was measured. Data are files: what one task makes and
another reads goes along an edge.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gridsched.errors import InputError, counted
from gridsched.files.input_files import read_bytes, read_text
from gridsched.model.limits import LARGEST
from gridsched.platform_io.xml_document import parse_xml
from gridsched.systems.workflows.workflow_csv import Workflow

#: Larger files are refused [byte].
_MOST = 256 * 2**20
#: Tasks that took no time that was measured take so long [s].
_SHORTEST_S = 1e-6
_VERSIONS = ("1.5", "1.6")


@dataclass
class Recorded:
    """A task as it was recorded.

    Attributes
    ----------
    where : str
        Begin of messages on it.
    name : str
    time_s : float
        Run time [s].
    parents : list of str
        Tasks that it waits for.
    reads, makes : dict of str to float
        Files and their sizes [byte].
    """

    where: str
    name: str
    time_s: float
    parents: list[str] = field(default_factory=list)
    reads: dict[str, float] = field(default_factory=dict)
    makes: dict[str, float] = field(default_factory=dict)


def read_foreign(path: Path, reference_speed: float) -> Workflow:
    """Read a workflow by its ending: ``.json`` (WfFormat), ``.dax`` or ``.xml`` (DAX).

    Parameters
    ----------
    path : Path
    reference_speed : float
        Of a core of the machine on which the run times were measured [flop/s].

    Raises
    ------
    InputError
        Naming the task, and the line where the format has lines.
    """
    if not 0 < reference_speed <= LARGEST:
        raise InputError(f"--reference-speed is {reference_speed:g}; it must be a speed > 0 in flop/s.")
    readers = {".json": _read_wf_format, ".xml": _read_dax, ".dax": _read_dax}
    if path.suffix.lower() not in readers:
        raise InputError(f"{path}: a workflow is read from .json (WfFormat), .dax or .xml (DAX).")
    return _joined(readers[path.suffix.lower()](path), reference_speed)


def _joined(tasks: Iterable[Recorded], reference_speed: float) -> Workflow:
    """Return tasks with edges for the files that one makes and another reads, and for parents without any.

    A file that several make goes from those that the reader names as parents.
    """
    named: dict[str, Recorded] = {}
    makers: dict[str, list[str]] = {}
    for task in tasks:
        if task.name in named:
            raise InputError(f"{task.where}: there is a task {task.name!r} already.")
        named[task.name] = task
        for file in task.makes:
            makers.setdefault(file, []).append(task.name)
    edges: list[tuple[str, str, float, str]] = []
    staged: set[str] = set()
    for task in named.values():
        for parent in task.parents:
            if parent not in named:
                raise InputError(f"{task.where}: task {task.name!r} waits for {parent!r}, which is no task.")
        with_files = set()
        for file in task.reads:
            if file not in makers:
                staged.add(file)
            for other in _makers_for(task, file, makers.get(file, ())):
                with_files.add(other)
                edges.append((task.name, other, named[other].makes[file], file))
        edges += [(task.name, each, 0.0, "") for each in dict.fromkeys(task.parents) if each not in with_files]
    short = sum(task.time_s < _SHORTEST_S for task in named.values())
    notes = (
        [f"{counted(len(staged), 'file that no task makes is', 'files that no task makes are')} not staged in"]
        if staged
        else []
    )
    several = [file for file, made_by in makers.items() if len(made_by) > 1]
    notes += [
        f"file {file!r} is made by {counted(len(makers[file]), 'task')}: it goes from parents alone" for file in several
    ]
    notes += [f"{counted(short, 'task of no time takes', 'tasks of no time take')} {_SHORTEST_S:g} s"] if short else []
    flops = {name: max(task.time_s, _SHORTEST_S) * reference_speed for name, task in named.items()}
    return Workflow(flops, edges, notes)


def _makers_for(task: Recorded, file: str, made_by: Sequence[str]) -> list[str]:
    """Return from whom a task has a file: of several that make it, its parents."""
    others = [each for each in made_by if each != task.name]
    if len(made_by) < 2:
        return others
    parents = [each for each in others if each in task.parents]
    if others and not parents and task.name not in made_by:
        raise InputError(
            f"{task.where}: task {task.name!r} reads file {file!r}, which {made_by[0]!r} and {made_by[1]!r} make, and "
            "names none of its makers as a parent."
        )
    return parents


def _number(value: object, where: str, what: str) -> float:
    """Return a number >= 0 that a file gives as one or as a text."""
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not 0 <= number <= LARGEST:
        shown = str(value)[:80]
        raise InputError(f"{where}: {what} is {shown!r}; it must be a number >= 0, at most {LARGEST:g}.")
    return number


def _read_dax(path: Path) -> list[Recorded]:
    """Read jobs with what they use, and children with their parents."""
    root = parse_xml(path, read_bytes(path, _MOST, "a workflow in DAX"), with_text=(), names_others=False)
    if root.tag.rpartition(":")[2] != "adag":
        raise InputError(f"{path}: a workflow in DAX starts with <adag>; found <{root.tag}>.")
    tasks: dict[str, Recorded] = {}
    for job in root.children:
        if job.tag != "job":
            continue
        name, where = job.attributes.get("id", ""), f"{path}, line {job.line}"
        if name in tasks:
            raise InputError(f"{where}: there is a task {name!r} already.")
        task = Recorded(where, name, _number(job.attributes.get("runtime"), where, f"runtime of task {name!r}"))
        for uses in job.children:
            if uses.tag == "uses":
                file = uses.attributes.get("file", uses.attributes.get("name", ""))
                size = _number(
                    uses.attributes.get("size", "0"), f"{path}, line {uses.line}", f"size of {file!r} of task {name!r}"
                )
                link = uses.attributes.get("link")
                if link in ("input", "inout"):
                    task.reads[file] = size
                if link in ("output", "inout"):
                    task.makes[file] = size
        tasks[name] = task
    for child in root.children:
        if child.tag == "child":
            ref = child.attributes.get("ref", "")
            if ref not in tasks:
                raise InputError(f"{path}, line {child.line}: {ref!r} waits for others, and is no task.")
            tasks[ref].parents += [each.attributes.get("ref", "") for each in child.children if each.tag == "parent"]
    return list(tasks.values())


def _read_wf_format(path: Path) -> list[Recorded]:
    """Read what is specified and how long it took."""
    try:
        content = json.loads(read_text(path, _MOST))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: no readable JSON: {str(error)[:200]}.") from None
    version = _entry(content, "schemaVersion", str, str(path))
    if version not in _VERSIONS:
        raise InputError(f"{path}: WfFormat {version[:20]!r}; {' and '.join(_VERSIONS)} are read.")
    workflow = _entry(content, "workflow", dict, str(path))
    specification, execution = (_entry(workflow, each, dict, str(path)) for each in ("specification", "execution"))
    sizes = {
        _entry(each, "id", str, f"{path}: a file"): each.get("sizeInBytes", 0)
        for each in _entry(specification, "files", list, str(path), [])
    }
    times = {
        _entry(each, "id", str, f"{path}: an executed task"): each.get("runtimeInSeconds")
        for each in _entry(execution, "tasks", list, str(path))
    }
    tasks = []
    for each in _entry(specification, "tasks", list, str(path)):
        name = _entry(each, "id", str, f"{path}: a task")
        where = f"{path}: task {name!r}"
        task = Recorded(where, name, _number(times.get(name), where, "runtimeInSeconds"))
        task.parents = _names(each, "parents", where)
        for key, files in (("inputFiles", task.reads), ("outputFiles", task.makes)):
            for file in _names(each, key, where):
                files[file] = _number(sizes.get(file, 0), where, f"size of file {file!r}")
        tasks.append(task)
    return tasks


def _names(entry: Any, key: str, where: str) -> list[str]:
    names: list[Any] = _entry(entry, key, list, where, [])
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{where}: {key} must be a list of names.")
    return names


def _entry(content: Any, key: str, kind: type, where: str, usual: Any = None) -> Any:
    """Return an entry of an object of JSON, of the type that it must have."""
    value = content.get(key, usual) if isinstance(content, dict) else None
    if not isinstance(value, kind):
        words = {"str": "a text", "dict": "an object", "list": "a list"}[kind.__name__]
        raise InputError(f"{where}: {key!r} must be there, and {words}; found {type(value).__name__}.")
    return value
